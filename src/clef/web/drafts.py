"""Turns what stands in the Ask form into the body of a predict request, or into what is wrong with it.

A draft is what the form keeps: the state as the person typed it, with whether to read it as text or as JSON, and
the questions as they stand, unfinished ones included. Its JSON is one hidden field, so that no browser rewrites a
line end and no script has to read a number that it cannot hold.
"""

import json
from typing import Any, NoReturn

from clef.decisions.examples import Request
from clef.errors import InputError, Problem
from clef.web.predict import read_request

DESCRIBED = ("true", "false")


def read_draft(text: str) -> Request:
    """The request in a draft. Raises InputError with every problem; its paths are those of the predict body."""
    try:
        draft = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError("the form sent no request", hint="reload the page and try again") from error
    if not isinstance(draft, dict):
        raise InputError("the form sent no request", hint="reload the page and try again")
    state, problems = _state(draft)
    try:
        request = read_request({"state": state, "questions": draft.get("questions")})
    except InputError as error:
        found = [*problems, *(problem for problem in error.problems if not (problems and problem.column == "state"))]
        raise InputError.of(found, "the request") from error
    if problems:
        raise InputError.of(problems, "the request")
    return request


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
