"""The pages without a browser: what they say, their status, and that everything a person typed is text."""

import gzip
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from starlette.datastructures import Headers, QueryParams
from starlette.responses import HTMLResponse
from starlette.routing import Mount
from starlette.testclient import TestClient

from clef.decisions.answers import Answer
from clef.decisions.examples import Example, Failure, Outcome
from clef.decisions.questions import Choice
from clef.engines.engine import EngineFacts
from clef.runs.recent import Run
from clef.tables import ReadOptions, read
from clef.web import words
from clef.web.assets import STATIC, Assets, compress, static_url
from clef.web.drafts import json_problem, read_draft
from clef.web.run_view import PAGE_ROWS, Filter, RunView

HOSTILE = "<script>alert(1)</script>"


def draft(**changes: Any) -> str:
    question = {"type": "choice", "question": "Which?", "answers": ["a", {"answer": "b", "description": "the other"}]}
    return json.dumps({"state": "some text", "as": "text", "questions": [question]} | changes)


def example(state: str, label: int | None, row: int, question: str = "Good?") -> Example:
    return Example(state, Choice(question, ["yes", "no"]), label, "yes", row, question_name=question)


def outcome(yes: float | None, label: int | None = 0, row: int = 2, question: str = "Good?") -> Outcome:
    answer = None if yes is None else Answer("choice", ("yes", "no"), (yes, 1 - yes))
    return Outcome(example("text", label, row, question), answer, None if answer else Failure("refused", "no"))


def run_of(*outcomes: Outcome) -> Run:
    facts = EngineFacts("builtin", "ready", "small")
    examples = tuple(item.example for item in outcomes)
    return Run("r1", "t.csv", examples, facts, {}, datetime.now(UTC), "finished", outcomes=list(outcomes))


@pytest.mark.parametrize("path", ["/", "/evaluate", "/runs", "/engine"])
def test_every_page_is_whole_and_needs_no_inline_code(client: TestClient, path: str) -> None:
    response = client.get(path)
    assert response.status_code == 200
    assert response.text.startswith("<!doctype html>")
    assert not re.search(r'\sstyle="|\son[a-z]+="|<style|hx-on|javascript:', response.text)
    scripts = re.findall(r"<script[^>]*>", response.text)
    assert all("src=" in script or "application/json" in script for script in scripts)
    assert not re.search(r'(src|href)="(https?:)?//', response.text)


def test_the_built_in_model_is_announced(client: TestClient) -> None:
    page = client.get("/").text
    assert "2 MB built-in model" in page
    assert "sparrow" in client.get("/engine/standing").text


def test_a_draft_is_answered_with_a_fragment(client: TestClient) -> None:
    response = client.post("/ask", content=draft())
    assert response.status_code == 200
    assert "<html" not in response.text
    assert "top probability" in response.text
    assert "confidence" in response.text
    assert "asked alone" in response.text


def test_what_was_typed_comes_back_as_text(client: TestClient) -> None:
    questions = [{"type": "choice", "question": HOSTILE, "answers": [HOSTILE, "b"]}]
    response = client.post("/ask", content=draft(questions=questions, state=HOSTILE))
    assert response.status_code == 200
    assert HOSTILE not in response.text
    assert "&lt;script&gt;" in response.text


def test_every_problem_is_named_with_its_field(client: TestClient) -> None:
    questions = [{"type": "choice", "question": "", "answers": ["a", ""]}, {"type": "score", "question": "How?"}]
    response = client.post("/ask", content=draft(state=" ", questions=questions))
    assert response.status_code == 400
    paths = re.findall(r'data-path="([^"]+)"', response.text)
    assert paths == ["state", "questions[0].question", "questions[1].levels"]
    assert "question 2, levels" in response.text


def test_half_a_character_breaks_nothing(client: TestClient) -> None:
    half = json.dumps("half \ud83d")
    body = draft(state="HALF", questions=[{"type": "choice", "question": "HALF", "answers": ["HALF", "b"]}])
    response = client.post("/ask", content=body.replace('"HALF"', half))
    assert response.status_code in (200, 400)
    assert "half" in response.text


@pytest.mark.parametrize("body", ["", "[]", "null", "{", '{"state": 1}', '{"state": "a", "questions": 3}'])
def test_a_body_that_is_no_draft_is_refused_in_words(client: TestClient, body: str) -> None:
    response = client.post("/ask", content=body)
    assert response.status_code == 400
    assert 'role="alert"' in response.text


def test_a_state_that_is_too_long_says_so(client: TestClient) -> None:
    response = client.post("/ask", content=draft(state="word " * 3000))
    assert response.status_code == 413
    assert "512" in response.text


def test_json_is_read_by_the_server_so_that_no_number_is_bent() -> None:
    request = read_draft(draft(**{"state": '{"id": 12345678901234567890}', "as": "json"}))
    assert request.state == {"id": 12345678901234567890}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1,\n "b" 2}', "line 2, column 6"),
        ("[NaN]", "NaN is no JSON value"),
        ("[" * 100_000, "nested too deep"),
        ("{'a': 1}", "line 1, column 2"),
    ],
)
def test_where_a_state_stops_being_json(client: TestClient, text: str, said: str) -> None:
    problem = json_problem(text)
    assert problem is not None
    assert said in problem.message
    assert said in client.post("/ask/json", content=text).text.replace("Nested", "nested")


def test_good_json_and_nothing_are_no_problem(client: TestClient) -> None:
    assert client.post("/ask/json", content='{"a": [1, "ü"]}').text.strip() == ""
    assert json_problem("  ") is None


def test_a_run_that_is_not_there_is_a_page(client: TestClient) -> None:
    response = client.get("/runs/nope")
    assert response.status_code == 404
    assert "No run &#34;nope&#34;" in response.text
    assert client.get("/runs/nope/rows/0").status_code == 404


def evaluated(client: TestClient, table: str) -> str:
    lines = client.post("/api/evaluate?name=t.csv", content=table.encode()).text.splitlines()
    return str(json.loads(lines[0])["run"])


def test_a_run_is_shown_with_its_numbers_and_rows(client: TestClient) -> None:
    rows = "".join(f'"{HOSTILE} {n}",Good?,yes,yes;no\n' for n in range(150))
    run = evaluated(client, f"context,question,answer,options\n{rows}nothing,Good?,,yes;no\n")
    page = client.get(f"/runs/{run}").text
    assert "of 150 answered rows" in page
    assert "1 row has no label" in page
    assert HOSTILE not in page
    assert page.count('class="details"') == PAGE_ROWS
    second = client.get(f"/runs/{run}?page=2").text
    assert second.count('class="details"') == 51
    assert client.get(f"/runs/{run}?page=99").text.count('class="details"') == 51
    assert client.get(f"/runs/{run}?show=unlabelled").text.count('class="details"') == 1
    assert client.get(f"/runs/{run}?show=bad&question=x&band=99&page=0").status_code == 200
    detail = client.get(f"/runs/{run}/rows/3").text
    assert HOSTILE not in detail
    assert "label as written" in detail
    assert client.get(f"/runs/{run}/rows/151").status_code == 404
    assert client.get(f"/runs/{run}/rows/x").status_code in (400, 422)
    assert run in client.get("/runs").text


def test_a_run_with_no_label_claims_no_accuracy(client: TestClient) -> None:
    run = evaluated(client, "context,question,answer,options\ntext,Good?,,yes;no\n")
    page = client.get(f"/runs/{run}").text
    assert "No accuracy" in page
    assert (
        "%" not in re.sub(r'width="[^"]*"|x\d="[^"]*"|x="[^"]*"|y\d="[^"]*"|height="[^"]*"', "", page).split("Rows")[0]
    )


def test_rows_are_ranked_by_confidence_with_failures_last() -> None:
    view = RunView(run_of(outcome(0.6, row=2), outcome(None, row=3), outcome(0.1, row=4), outcome(0.5, row=5)))
    assert [found.example.row for _, found in view.rows(Filter()).items] == [4, 2, 5, 3]
    rows = view.rows(Filter())
    assert rows.counts == {"all": 4, "wrong": 1, "errors": 1, "ties": 1, "unlabelled": 0}
    assert (rows.first, rows.last, rows.total, rows.pages) == (1, 4, 4, 1)


def test_filters_combine() -> None:
    view = RunView(
        run_of(
            outcome(0.96, 0, 2, "A?"), outcome(0.97, 1, 3, "A?"), outcome(0.98, 0, 4, "B?"), outcome(0.55, 1, 5, "A?")
        )
    )
    chosen = Filter.read(QueryParams("show=wrong&question=1&band=6"), 2)
    assert [found.example.row for _, found in view.rows(chosen).items] == [3]
    assert chosen.query(page=2) == "?show=wrong&question=1&band=6&page=2"
    assert chosen.query(question=None, band=None, show="all") == "?"


def test_baselines_weigh_each_question_by_its_rows() -> None:
    view = RunView(run_of(outcome(0.9, 0, 2, "A?"), outcome(0.9, 1, 3, "A?"), outcome(0.9, 0, 4, "B?")))
    assert view.baseline == pytest.approx(2 / 3)
    assert view.chance == pytest.approx(1 / 2)


@pytest.mark.parametrize(
    ("probability", "said"),
    [(1, "Yes"), (0.9, "Probably yes"), (0.6, "Leaning yes"), (0.5, "Undecided"), (0.4, "Leaning no"),
     (0.3, "Probably not"), (0.1, "No"), (0, "No")],
)  # fmt: skip
def test_a_yes_or_no_in_words(probability: float, said: str) -> None:
    assert words.noul_words(probability) == said


def test_numbers_never_claim_more_than_they_are() -> None:
    assert words.probability(0.9999) == ">0.99"
    assert words.probability(0.0001) == "<0.01"
    assert words.probability(1) == "1.00"
    assert words.probability(None) == "–"
    assert words.percent(None) == "–"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("state", "state"),
        ("questions", "questions"),
        ("questions[0].question", "question 1, wording"),
        ("questions[1].answers[2]", "question 2, option 3"),
        ("questions[1].answers[2].description", "question 2, option 3, description"),
        ("questions[0].levels[0]", "question 1, level 0"),
        ("questions[0].true", "question 1, what yes means"),
    ],
)
def test_a_field_is_called_as_the_form_calls_it(path: str, said: str) -> None:
    assert words.field_name(path) == said


@pytest.mark.parametrize("phase", ["off", "starting", "loading", "ready", "failed"])
def test_every_phase_has_its_words(phase: Any) -> None:
    assert words.PHASES[phase] in words.standing(EngineFacts("llama", phase)) or phase == "ready"


def test_an_address_changes_with_its_file_and_may_be_kept_for_ever(client: TestClient) -> None:
    mounted = TestClient(Mount("/static", Assets()), base_url="http://127.0.0.1:8000")
    response = mounted.get(static_url("styles/tokens.css"))
    assert response.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert response.headers["content-encoding"] == "gzip"
    assert response.content == (STATIC / "styles/tokens.css").read_bytes()
    plain = mounted.get("/static/styles/tokens.css", headers={"accept-encoding": "identity"})
    assert plain.headers["cache-control"] == "no-cache"
    assert plain.content == response.content
    again = mounted.get("/static/styles/tokens.css", headers={"if-none-match": plain.headers["etag"]})
    assert again.status_code == 304
    assert mounted.get("/static/styles/tokens.css?v=old").headers["cache-control"] == "no-cache"


def test_pages_are_compressed_for_those_who_take_it() -> None:
    response = compress(HTMLResponse("a" * 5000), Headers({"accept-encoding": "gzip"}))
    assert gzip.decompress(bytes(response.body)) == b"a" * 5000
    assert response.headers["content-length"] == str(len(response.body))
    assert compress(HTMLResponse("a" * 5000), Headers({})).body == b"a" * 5000


def test_the_sample_is_read_without_a_problem_and_shows_the_quirks() -> None:
    table = read((STATIC / "sample.csv").read_bytes(), ReadOptions(name="sample.csv"))
    assert table.problems == ()
    assert table.facts.questions >= 5
    assert table.facts.unlabelled == 1
    labels = {item.written_label for item in table.examples}
    assert {"NA", "007", "TRUE", "NULL"} <= labels
    states = [str(item.state) for item in table.examples]
    assert any("\n\n" in state for state in states)
    assert any('"' in state for state in states)
    assert any(not state.isascii() for state in states)


def test_the_vendored_files_are_those_of_the_manifest() -> None:
    entries = json.loads((STATIC / "vendor" / "manifest.json").read_text("utf-8"))
    assert {entry["file"] for entry in entries} == {"htmx.min.js", "pico.min.css"}
    for entry in entries:
        assert (STATIC / "vendor" / entry["licence_file"]).is_file()
        assert entry["licence"] in ("BSD-0-Clause", "MIT")


def test_examples_are_drafts_that_can_be_asked(client: TestClient) -> None:
    page = client.get("/").text
    found = re.search(r'id="example-drafts">(.*?)</script>', page, re.DOTALL)
    assert found
    drafts = json.loads(found[1])
    assert len(drafts) >= 6
    for item in drafts:
        assert read_draft(json.dumps(item)).questions


def test_no_file_of_the_page_is_forgotten() -> None:
    templates = Path(STATIC).parent / "templates"
    used = "".join(file.read_text("utf-8") for file in templates.glob("*.html"))
    for element in (STATIC / "elements").glob("*.js"):
        assert f"elements/{element.name}" in used
