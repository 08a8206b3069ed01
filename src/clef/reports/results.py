"""Turns a file of results (JSONL, as `export` writes it) back into outcomes, so that old results can be compared."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from clef.decisions.answers import Answer
from clef.decisions.examples import Example, Failure, Outcome
from clef.decisions.questions import Question
from clef.errors import InputError, NotFound, Problem
from clef.tables.questionset import question_in

OWN = ("state", "questions", "labels", "row", "line", "images", "result")


def read_results(path: Path) -> Iterator[Outcome]:
    """The outcomes of a results file, in its order, one by one.

    Raises NotFound where there is no file and, after the last one, InputError with every line that is not a result.
    """
    if not path.is_file():
        raise NotFound(f"no file {path}")
    if path.suffix.lower() != ".jsonl":
        hint = "only JSONL keeps everything that was answered: clef eval --out results.jsonl"
        raise InputError(f"{path.name} cannot be read as results", hint=hint)
    return _passing(path)


def _passing(path: Path) -> Iterator[Outcome]:
    problems: list[Problem] = []
    questions: dict[str, Question] = {}
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                outcome = _outcome(json.loads(line), questions)
            except InputError as error:
                problems.append(Problem(error.message, "no_result", line=number))
            except (ValueError, KeyError, TypeError, StopIteration, AttributeError):
                problems.append(Problem("is no result that clef wrote", "no_result", line=number))
            else:
                yield outcome
    if problems:
        raise InputError.of(problems, path.name)


def _outcome(raw: Mapping[str, Any], questions: dict[str, Question]) -> Outcome:
    name, body = next(iter(raw["questions"].items()))
    key = json.dumps(body)
    question = questions.setdefault(key, question_in(body, f"questions.{name}"))
    label = raw["labels"].get(name)
    example = Example(
        raw["state"],
        question,
        None if label is None else _position(question, label),
        row=raw["row"],
        line=raw["line"],
        question_name=name,
        extra={key: value for key, value in raw.items() if key not in OWN},
        images=tuple(raw.get("images", ())),
    )
    result = raw["result"]
    answer = failure = None
    if "error" in result:
        failure = Failure(result["error"]["code"], result["error"]["message"])
    else:
        found = result["probabilities"]
        answer = Answer(question.type, question.answers, tuple(float(found[one]) for one in question.answers))
    elapsed_s = float(result["elapsed_ms"]) / 1000
    return Outcome(example, answer, failure, elapsed_s, result["shape"], result["model"])


def _position(question: Question, label: Any) -> int:
    if question.type == "noul":
        return 0 if label else 1
    return int(label) if question.type == "score" else question.answers.index(label)
