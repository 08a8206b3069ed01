"""Turns what stands in the Ask form into the body of a predict request, or into what is wrong with it.

A draft is what the form keeps: the state as the person typed it, with whether to read it as text or as JSON, and
the questions as they stand, unfinished ones included; or, from the JSON view, `{"json": …}` with the whole request as
text. One becomes the other here and not in the browser, so that no script has to read a number that it cannot hold.
"""

import json
from dataclasses import replace
from typing import Any, Literal, NoReturn, get_args

from clef.decisions.examples import Request
from clef.errors import InputError, Problem
from clef.web.predict import read_request

How = Literal["together", "alone", "both"]
"""All questions in one request, each in its own, or both ways to be compared."""


def read_draft(text: str) -> Request:
    """The request in a draft. Raises InputError with every problem; its paths are those of the predict body."""
    draft = _opened(text)
    if isinstance(draft.get("json"), str):
        return read_request(_read_json(draft["json"]))
    state, problems = _state(draft)
    try:
        request = read_request({"state": state, "questions": draft.get("questions")})
    except InputError as error:
        found = [*problems, *(problem for problem in error.problems if not (problems and problem.column == "state"))]
        raise InputError.of(found, "the request") from error
    if problems:
        raise InputError.of(problems, "the request")
    return request


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
    if isinstance(state, str):
        return {"state": state, "as": "text", "questions": drafts}
    return {"state": json.dumps(state, ensure_ascii=False, indent=2), "as": "json", "questions": drafts}


def _question_draft(raw: Any, where: str, problems: list[Problem]) -> dict[str, Any]:
    """One question as the form holds it; what it has no field for becomes a problem."""
    if not isinstance(raw, dict):
        problems.append(Problem("expected a question, {…}", "not_an_object", column=where))
        return {}
    known = ("type", "question", "answers", "levels", "true", "false")
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


def _state(draft: dict[str, Any]) -> tuple[Any, list[Problem]]:
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
