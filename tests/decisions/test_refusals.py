"""What servers of the protocol say when they do not decide, and which error of ours it becomes."""

import json
from typing import Any

import pytest

from clef.decisions.refusals import EXCERPT, error_within, read_error
from clef.errors import Barred, ClefError, EngineError, Refused, Rejected, TimedOut, TooLong, Unavailable


def cloudflare(code: int, message: str) -> str:
    errors = [{"code": code, "message": message}]
    return json.dumps({"result": None, "success": False, "errors": errors, "messages": []})


def openai(message: str, kind: str, code: Any = None, param: str | None = None) -> str:
    return json.dumps({"error": {"message": message, "type": kind, "param": param, "code": code}})


@pytest.mark.parametrize(
    ("status", "text", "kind", "said"),
    [
        (
            503,
            '{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}',
            Unavailable,
            "Loading model",
        ),
        (429, '{"detail":{"error_type":"rate","message":"slow down"}}', Unavailable, "slow down"),
        (529, "", Unavailable, "busy"),
        (
            401,
            '{"error":{"code":401,"message":"Invalid API Key","type":"authentication_error"}}',
            Barred,
            "access key",
        ),
        (403, '{"detail":{"error_type":"authentication_error","message":"no"}}', Barred, "access key"),
        (404, '{"error":{"message":"File Not Found","type":"not_found_error"}}', Barred, "no /v1/systemone"),
        (501, '{"error":{"message":"not a decision model","type":"not_supported_error"}}', Barred, "decision model"),
        (
            400,
            '{"error":{"message":"too many options (53)","type":"invalid_request_error"}}',
            Rejected,
            "too many options (53)",
        ),
        (422, '{"detail":[{"loc":["body"],"msg":"field required","type":"missing"}]}', Rejected, "field required"),
        (400, '{"detail":"more than 255 options"}', Rejected, "more than 255 options"),
        (400, '{"success":false,"errors":[{"code":5006,"message":"no questions"}]}', Rejected, "no questions"),
        (500, '{"error":{"message":"scores are not finite"}}', Refused, "not finite"),
        (500, "<html><body><h1>Internal Server Error</h1></body></html>", Refused, "web page"),
        (502, "<html><body><h1>Bad Gateway</h1></body></html>", Unavailable, "cannot reach it (HTTP 502)"),
        (500, '"down"', Refused, "down"),
        (504, "", TimedOut, "504"),
    ],
)
def test_every_servers_error_becomes_ours(status: int, text: str, kind: type[EngineError], said: str) -> None:
    error = read_error(status, text)
    assert type(error) is kind
    assert said in error.message


@pytest.mark.parametrize(
    ("status", "message", "numbers"),
    [
        (
            500,
            "input (6059 tokens) is too large to process. increase the physical batch size (current batch size: 4096)",
            (6059, 4096),
        ),
        (
            400,
            "request (6033 tokens) exceeds the available context size (1024 tokens), try increasing it",
            (6033, 1024),
        ),
    ],
)
def test_too_long_is_permanent_and_has_both_numbers_whatever_the_status(
    status: int, message: str, numbers: tuple[int, int]
) -> None:
    error = read_error(status, json.dumps({"error": {"code": status, "message": message, "type": "server_error"}}))
    assert isinstance(error, TooLong)
    assert (error.tokens, error.limit) == numbers
    assert f"{numbers[0]} of {numbers[1]}" in error.message


def test_too_long_without_numbers_is_still_permanent() -> None:
    error = read_error(400, '{"detail":{"error_type":"max_tokens_exceeded"}}')
    assert isinstance(error, TooLong)
    assert error.tokens is None
    assert "None" not in error.message


BUSY, SPENT, AWAY = "ready", "failed", "off"
SAYINGS: list[tuple[str, int, str, type[ClefError], str, str | None]] = [
    # server, status, body, our error, words in its message, words in its hint or its phase
    ("Jev", 400, '{"detail":{"error_type":"max_tokens_exceeded"}}', TooLong, "too long", "shorten"),
    ("Jev", 400, '{"detail":{"error_type":"api_usage_error","message":"Unknown model: jev-1.13"}}', Barred,
     "Unknown model: jev-1.13", "CLEF_UPSTREAM_MODEL"),
    ("Jev", 400, '{"detail":"A choice may have at most 255 options"}', Rejected, "at most 255 options", None),
    ("Jev", 401, '{"detail":{"error_type":"authentication_error","message":"Cannot authenticate"}}', Barred,
     "does not accept the access key: Cannot", "check CLEF_UPSTREAM_KEY"),
    ("Jev", 422, '{"detail":[{"loc":["body","model"],"msg":"Field required","type":"missing"}]}', Barred,
     "model: Field required", "CLEF_UPSTREAM_MODEL"),
    ("Jev", 422, '{"detail":[{"loc":["body","questions","q1","choice","criteria"],"msg":"too many","type":"x"}]}',
     Rejected, "q1.choice.criteria: too many", None),
    ("Jev", 429, '{"detail":{"error_type":"rate_limit","message":"40 requests a second"}}', Unavailable, "40", BUSY),
    ("Jev", 529, '{"detail":{"error_type":"unknown","message":"overloaded"}}', Unavailable, "overloaded", BUSY),
    ("Vercel", 400, '{"message":"too much","error_type":"tokens_exceeded"}', TooLong, "too long", None),
    ("llama.cpp", 400, openai("question q1: too many options (53), this model supports at most 52",
                              "invalid_request_error", 400), Rejected, "at most 52", None),
    ("llama.cpp", 501, openai("the loaded model is not a decision model", "not_supported_error", 501), Barred,
     "not a decision model", "Clef-Flash"),
    ("llama.cpp", 501, openai("image input needs --mmproj", "not_supported_error", 501), Rejected, "images", None),
    ("llama.cpp router", 400, openai("model 'x' not found", "invalid_request_error", 400), Barred, "'x' not found",
     "CLEF_UPSTREAM_MODEL"),
    ("llama.cpp", 500, openai("scores are not finite", "server_error", 500), Refused, "not finite", "log"),
    ("SGLang", 400, '{"object":"error","message":"The input (5000 tokens) is longer than the model\'s context length '
     '(4096 tokens).","type":"BadRequestError","param":null,"code":400}', TooLong, "5000 of 4096", None),
    ("SGLang", 401, '{"error":"Unauthorized"}', Barred, "Unauthorized", "CLEF_UPSTREAM_KEY"),
    ("vLLM", 404, openai("The model `x` does not exist.", "NotFoundError", 404, "model"), Barred, "`x` does not exist",
     "CLEF_UPSTREAM_MODEL"),
    ("vLLM", 404, '{"detail":"Not Found"}', Barred, "no /v1/systemone", "another kind"),
    ("vLLM", 400, openai("This model's maximum context length is 4096 tokens. However, your request has 5000 input "
                         "tokens.", "BadRequestError", 400), TooLong, "5000 of 4096", None),
    ("vLLM", 400, openai("At most 0 image(s) may be provided in one prompt.", "BadRequestError", 400), Rejected,
     "cannot read these images", None),
    ("Ollama", 400, openai("model is required", "invalid_request_error"), Barred, "model is required",
     "CLEF_UPSTREAM_MODEL"),
    ("Ollama", 404, openai("model 'clef-flash' not found", "not_found_error"), Barred, "'clef-flash' not found",
     "CLEF_UPSTREAM_MODEL"),
    ("Ollama", 400, openai('"llama3.2" does not support decisions', "invalid_request_error"), Barred,
     "not a decision model", "Clef-Flash"),
    ("Ollama", 404, "404 page not found", Barred, "no /v1/systemone", None),
    ("laya-serve", 422, '{"error":{"message":"at most 64 questions","field":"questions"}}', Rejected, "64", None),
    ("laya-serve", 503, '{"detail":"Server is overloaded, try again"}', Unavailable, "overloaded", BUSY),
    ("laya-serve", 422, '{"error":{"code":"STATE_TRUNCATED","message":"state was cut"}}', TooLong, "too long", None),
    ("mlx-vlm", 400, '{"detail":"images: at most 10"}', Rejected, "images", None),
    ("clef-serve", 507, '{"error":{"message":"out of memory"}}', Refused, "out of memory", "log"),
    ("Workers AI", 401, cloudflare(10000, "Authentication error"), Barred, "Authentication error", "UPSTREAM_KEY"),
    ("Workers AI", 400, cloudflare(5006, "no questions"), Rejected, "no questions", None),
    ("Workers AI", 422, cloudflare(5012, "instructions must not be empty"), Rejected, "must not be empty", None),
    ("Workers AI", 400, cloudflare(7000, "No route for that URI"), Barred, "No route", None),
    ("Workers AI", 413, cloudflare(5021, "estimated tokens exceed the limit"), TooLong, "too long", "shorten"),
    ("Workers AI", 429, cloudflare(3040, "Capacity temporarily exceeded"), Unavailable, "Capacity", BUSY),
    ("Workers AI", 429, cloudflare(4006, "you have used up your daily free allocation"), Unavailable, "used up", SPENT),
    ("Workers AI", 429, cloudflare(3036, "account limited"), Unavailable, "used up", SPENT),
    ("Workers AI", 529, cloudflare(5012, "inference failed"), Unavailable, "inference failed", BUSY),
    ("OpenRouter", 402, openai("Insufficient credits", "x", 402), Unavailable, "Insufficient credits", SPENT),
    ("OpenRouter", 400, openai("clef-flash is not a valid model ID", "x", 400), Barred, "not a valid model",
     "CLEF_UPSTREAM_MODEL"),
    ("OpenRouter", 403, openai("your input was flagged", "x", 403), Rejected, "flagged", None),
    ("OpenRouter", 413, "", TooLong, "too long", "shorten"),
    ("OpenRouter", 503, openai("There is no available model provider", "x", 503), Unavailable, "provider", BUSY),
    ("a proxy", 502, "<html><h1>502 Bad Gateway</h1></html>", Unavailable, "cannot reach it", AWAY),
    ("a proxy", 413, "<html><h1>413 Request Entity Too Large</h1></html>", TooLong, "too long", "shorten"),
    ("a proxy", 504, "<html>504</html>", TimedOut, "504", None),
    ("a proxy", 403, "<!doctype html><title>Sign in</title>", Barred, "web page", "UPSTREAM_KEY"),
    ("a proxy", 405, "", Barred, "no /v1/systemone", None),
    ("a proxy", 418, "", Refused, "418", None),
    ("anything", 400, "[" * 5000, Rejected, "[[[", None),
    ("anything", 400, "null", Rejected, "HTTP 400", None),
    ("anything", 400, '{"errors":[]}', Rejected, "cannot decide this", None),
    ("anything", 400, '{"error":null,"detail":{}}', Rejected, "cannot decide this", None),
]  # fmt: skip


@pytest.mark.parametrize(("server", "status", "text", "kind", "said", "then"), SAYINGS)
def test_each_server_is_understood(
    server: str, status: int, text: str, kind: type[ClefError], said: str, then: str | None
) -> None:
    error = read_error(status, text, has_key=True)
    assert type(error) is kind, error.message
    assert said in error.message
    if isinstance(error, Unavailable):
        assert error.phase == then
    elif then:
        assert then in str(error.hint)


def test_a_key_that_is_missing_and_one_that_is_wrong_are_told_apart() -> None:
    body = '{"detail":{"error_type":"authentication_error","message":"no"}}'
    for status in (401, 403):
        assert "wants an access key" in read_error(status, body).message
        assert "does not accept the access key" in read_error(status, body, has_key=True).message


@pytest.mark.parametrize(("wait_s", "phase", "told"), [(None, "ready", 2), (7, "ready", 7), (3600, "failed", 3600)])
def test_a_busy_server_is_waited_for_as_long_as_it_asks_but_not_for_ever(
    wait_s: int | None, phase: str, told: int
) -> None:
    error = read_error(429, "", wait_s=wait_s)
    assert isinstance(error, Unavailable)
    assert (error.phase, error.retry_after_s, error.is_asked_for) == (phase, told, wait_s is not None)


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        ({"success": False, "result": None, "errors": [{"code": 3040, "message": "busy"}]}, Unavailable, "busy"),
        ({"success": False, "errors": [{"code": 10000, "message": "who?"}]}, Barred, "access key"),
        ({"success": False, "errors": [{"code": 5012, "message": "empty"}]}, Rejected, "empty"),
        ({"success": False, "errors": []}, Refused, "failed"),
        ({"error": {"code": 502, "message": "model is down"}}, Unavailable, "model is down"),
        ({"error": {"code": 429, "message": "slow down"}, "answers": {}}, Unavailable, "slow down"),
        ({"error": "something broke"}, Refused, "something broke"),
    ],
)
def test_an_error_in_a_reply_of_success_is_one(body: Any, kind: type[ClefError], said: str) -> None:
    error = error_within(body)
    assert type(error) is kind
    assert said in error.message


@pytest.mark.parametrize("body", [None, [], {}, {"answers": {"q1": {}}}, {"answers": {"q1": {}}, "error": None}, "x"])
def test_what_is_no_error_is_none(body: Any) -> None:
    assert error_within(body) is None


def test_long_foreign_texts_are_cut() -> None:
    assert len(read_error(400, "x" * 10_000).message) < EXCERPT + 100
