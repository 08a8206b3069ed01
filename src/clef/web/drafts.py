"""Turns what stands in the Ask form into the body of a predict request, or into what is wrong with it.

A draft is what the form keeps: the state as the person typed it, with whether to read it as text, as JSON or as a
chat, the images, and the questions as they stand, unfinished ones included; or, from the JSON view, `{"json": …}` with
the request but its images as text. One becomes the other here and not in the browser, so that no script has to read a
number that it cannot hold.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal, NoReturn, get_args

from clef.decisions.examples import Request
from clef.decisions.questions import Question, read_questions, state_problems
from clef.errors import InputError, Problem
from clef.web.predict import question_json, read_request

How = Literal["together", "alone", "both"]
"""All questions in one request, each in its own, or both ways to be compared."""


def read_draft(text: str) -> Request:
    """The request in a draft. Raises InputError with every problem; its paths are those of the predict body."""
    draft = _opened(text)
    images = _images(draft)
    if isinstance(draft.get("json"), str):
        body = _read_json(draft["json"])
        if images and isinstance(body, dict):
            body["images"] = [*(body.get("images") or ()), *images]
        return read_request(body)
    state, problems = _state(draft)
    try:
        request = read_request({"state": state, "questions": draft.get("questions"), "images": images})
    except InputError as error:
        found = [*problems, *(problem for problem in error.problems if not (problems and problem.column == "state"))]
        raise InputError.of(found, "the request") from error
    if problems:
        raise InputError.of(problems, "the request")
    return request


def read_finished(text: str) -> tuple[Request | None, tuple[int, ...]]:
    """What of a draft could be asked already, without its images, with the place of each of its questions; no request
    where there is nothing yet.
    """
    draft = _opened(text)
    if isinstance(draft.get("json"), str) or not isinstance(draft.get("questions"), list):
        try:
            request = read_draft(text)
        except InputError:
            return None, ()
        return request, tuple(range(len(request.questions)))
    state, _ = _state(draft)
    found: list[Question] = []
    places: list[int] = []
    for place, raw in enumerate(draft["questions"]):
        with suppress(InputError):
            found += read_questions([raw])
            places.append(place)
    is_asked = bool(found) and not state_problems(state, has_images=bool(draft.get("images")))
    return (Request(state, tuple(found)) if is_asked else None), tuple(places)


def how_asked(text: str) -> How:
    """How a draft wants its questions asked; together where it does not say."""
    how = _opened(text).get("how")
    return next((known for known in get_args(How) if known == how), "together")


def as_json(text: str) -> str:
    """The request of a draft as JSON to be edited, finished or not. Raises InputError where its state is no JSON."""
    draft = _opened(text)
    state, problems = _state(draft)
    if problems:
        raise InputError.of(problems, "the request")
    return json.dumps({"state": state, "questions": draft.get("questions", [])}, ensure_ascii=False, indent=2)


def as_draft(text: str) -> dict[str, Any]:
    """The draft of a request in JSON. Raises InputError where it is none, or holds what the form has no field for."""
    body = _read_json(text)
    questions = body.get("questions") if isinstance(body, dict) else None
    if not isinstance(body, dict) or not isinstance(questions, list):
        raise InputError.of([Problem('expected {"state": …, "questions": […]}', "not_an_object")])
    state = body.get("state", "")
    problems: list[Problem] = []
    drafts = [_question_draft(raw, f"questions[{place}]", problems) for place, raw in enumerate(questions)]
    if problems:
        raise InputError.of(problems, "the request")
    images = body.get("images")
    draft: dict[str, Any] = {"state": "", "as": "text", "questions": drafts}
    if isinstance(images, list):
        draft["images"] = [{"name": f"image {place}", "url": image} for place, image in enumerate(images, 1)]
    if isinstance(state, str):
        return draft | {"state": state}
    if _is_chat(state):
        return draft | {"as": "chat", "messages": state}
    return draft | {"state": json.dumps(state, ensure_ascii=False, indent=2), "as": "json"}


def _question_draft(raw: Any, where: str, problems: list[Problem]) -> dict[str, Any]:
    """One question as the form holds it; what it has no field for becomes a problem."""
    if not isinstance(raw, dict):
        problems.append(Problem("expected a question, {…}", "not_an_object", column=where))
        return {}
    known = ("id", "type", "question", "answers", "levels", "true", "false")
    draft: dict[str, Any] = {"type": "choice"} | {name: raw[name] for name in known if raw.get(name) is not None}
    if draft["type"] == "score" and "answers" in draft:
        draft.setdefault("levels", draft.pop("answers"))
    if isinstance(draft.get("answers"), dict):
        draft["answers"] = [{"answer": name, "description": text or ""} for name, text in draft["answers"].items()]
    lists = [draft.get(name, []) for name in ("answers", "levels")]
    texts = [draft.get(name, "") for name in ("question", "true", "false")]
    for item in (item for items in lists if isinstance(items, list) for item in items):
        texts += [item.get("answer", ""), item.get("description") or ""] if isinstance(item, dict) else [item]
    is_plain = all(isinstance(text, str) for text in texts) and all(isinstance(items, list) for items in lists)
    if not is_plain or draft["type"] not in ("choice", "noul", "score"):
        hint = "it can be asked from here all the same"
        problems.append(Problem("the form has no field for what this holds", "no_field", column=where, hint=hint))
    return draft


def question_draft(question: Question) -> dict[str, Any] | None:
    """A question as the form holds it; None where the form has no field for a part of it."""
    problems: list[Problem] = []
    draft = _question_draft(question_json(question), "", problems)
    return None if problems else draft


def drafts_of(questions: Mapping[str, Question]) -> list[dict[str, Any]]:
    """Questions of a file as the form holds them, each with its id. Raises InputError for what has no field there."""
    drafts = {name: question_draft(question) for name, question in questions.items()}
    hint = "the form holds text only; Evaluate and `clef ask` take this file as it is"
    problems = [
        Problem("the form has no field for what this question holds", "no_field", column=f"questions.{name}", hint=hint)
        for name, draft in drafts.items()
        if draft is None
    ]
    if problems:
        raise InputError.of(problems, "the questions")
    return [{"id": name, **draft} for name, draft in drafts.items() if draft is not None]


def questions_of(text: str) -> dict[str, Question]:
    """The questions of a draft by their ids: those of the file they came from, or q1, q2, … Raises InputError."""
    draft = _opened(text)
    body = _read_json(draft["json"]) if isinstance(draft.get("json"), str) else draft
    raw = body.get("questions") if isinstance(body, dict) else None
    found: dict[str, Question] = {}
    for place, question in enumerate(read_questions(raw), 1):
        told = raw[place - 1].get("id") if isinstance(raw, list) else None
        name = told if isinstance(told, str) and told.strip() and told not in found else f"q{place}"
        found[name if name not in found else f"{name}_{place}"] = question
    return found


def _opened(text: str) -> dict[str, Any]:
    """The draft in a body. Raises InputError where there is none."""
    try:
        draft = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError("the form sent no request", hint="reload the page and try again") from error
    if not isinstance(draft, dict):
        raise InputError("the form sent no request", hint="reload the page and try again")
    return draft


def _read_json(text: str) -> Any:
    """The JSON of the JSON view. Raises InputError saying where it stops being JSON."""
    problem = json_problem(text) if text.strip() else Problem("nothing is written here", "empty")
    if problem:
        raise InputError.of([replace(problem, column=None)], "the request")
    return json.loads(text)


def json_problem(text: str) -> Problem | None:
    """Where a text stops being JSON; None where it is JSON, or empty."""
    if not text.strip():
        return None
    try:
        json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        return Problem(f"not JSON at {where}: {_said(error.msg)}", "not_json", line=error.lineno, column="state")
    except RecursionError:
        return Problem("nested too deep to be read", "too_deep", column="state")
    except ValueError as error:
        return Problem(f"not JSON: {error}", "not_json", column="state")
    return None


def _is_chat(state: Any) -> bool:
    """Whether a state is messages of a chat that the form has fields for."""
    return (
        isinstance(state, list)
        and bool(state)
        and all(
            isinstance(message, dict)
            and set(message) == {"role", "content"}
            and all(isinstance(part, str) for part in message.values())
            for message in state
        )
    )


def _chat(messages: Any) -> tuple[Any, list[Problem]]:
    """The messages that hold something; one that is empty before another that is not is a problem."""
    listed = [message for message in messages or () if isinstance(message, dict)]
    while listed and not str(listed[-1].get("content") or "").strip():
        listed.pop()
    empty = [place for place, message in enumerate(listed, 1) if not str(message.get("content") or "").strip()]
    hint = "write it, or remove it"
    problems = [Problem(f"message {place} is empty", "empty_message", column="state", hint=hint) for place in empty]
    return listed, problems


def _images(draft: dict[str, Any]) -> list[Any]:
    """The data URLs of a draft's images."""
    images = draft.get("images")
    return [image.get("url") if isinstance(image, dict) else image for image in images or ()]


def _state(draft: dict[str, Any]) -> tuple[Any, list[Problem]]:
    if draft.get("as") == "chat":
        return _chat(draft.get("messages"))
    text = draft.get("state")
    if draft.get("as") != "json" or not isinstance(text, str) or not text.strip():
        return text, []
    problem = json_problem(text)
    return (None, [problem]) if problem else (json.loads(text), [])


def _said(message: str) -> str:
    """The parser's message in the words of the page."""
    return message[:1].lower() + message[1:].replace("property name enclosed in double quotes", 'a "name" in quotes')


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")
