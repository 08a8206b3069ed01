"""Turns files of answers (what clef exported, or replies of POST /api/predict) into answers that a policy can rule on,
and these into the same file with act or review in it.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clef.decisions.answers import Answer
from clef.errors import InputError, NotFound, Problem
from clef.reports.export import GATE_COLUMNS
from clef.statistics.policy import Ruling
from clef.tables.guards import is_own_export, unguard

Rule = Callable[[str, Answer | None], Ruling]
"""What a policy says of a question's answer; None is one that never came."""


@dataclass(frozen=True, slots=True)
class Ruled:
    """A file with what a policy says of each answer in it."""

    text: str
    """The file, its rulings in it."""
    rulings: tuple[Ruling, ...]


def rule_on(path: Path, rule: Rule) -> Ruled:
    """The answers of a file, ruled on, in its order.

    CSV as clef exports it gets two columns more, each result of a JSONL line a `gate`. Raises NotFound where there is
    no file, InputError with every line that holds no answers.
    """
    if not path.is_file():
        raise NotFound(f"no file {path}")
    rulings: list[Ruling] = []
    problems: list[Problem] = []

    def kept(question: str, answer: Answer | None) -> Ruling:
        rulings.append(rule(question, answer))
        return rulings[-1]

    lines = {".csv": _csv_lines, ".jsonl": _json_lines}.get(path.suffix.lower())
    if lines is None:
        hint = "give a .csv or .jsonl that clef wrote, or a .jsonl of replies of POST /api/predict"
        raise InputError(f"{path.name} cannot be read as answers", hint=hint)
    text = "".join(lines(path, kept, problems))
    if problems:
        raise InputError.of(problems, path.name)
    return Ruled(text, tuple(rulings))


def predicted(raw: Any) -> tuple[str, Answer]:
    """The question's name and the answer of one result of POST /api/predict. Raises InputError for anything else."""
    try:
        listed = {item["answer"]: float(item["probability"]) for item in raw["answers"]}
        names = tuple(raw.get("levels") or raw.get("options") or (("yes", "no") if raw["type"] == "noul" else listed))
        return raw["question"], Answer(raw["type"], names, tuple(listed[name] for name in names))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        hint = "send what POST /api/predict answered, unchanged"
        raise InputError("is no result of POST /api/predict", hint=hint) from error


def _csv_lines(path: Path, rule: Rule, problems: list[Problem]) -> Iterator[str]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file)
        header = next(reader, [])
        if not is_own_export(header):
            hint = "give a CSV that clef exported"
            raise InputError(f"{path.name} has no answers in it", hint=hint)
        yield "\ufeff" + _csv_line([*header, *GATE_COLUMNS])
        for row in reader:
            cells = dict(zip(header, row, strict=False))
            try:
                said = rule(unguard(cells["question"]), _exported(cells))
            except (KeyError, TypeError, ValueError, AttributeError):
                problems.append(Problem("is no row that clef wrote", "no_result", line=reader.line_num))
                continue
            yield _csv_line([*row, said.decision, said.reason or ""])


def _csv_line(cells: list[str]) -> str:
    buffer = io.StringIO(newline="")
    csv.writer(buffer, lineterminator="\r\n").writerow(cells)
    return buffer.getvalue()


def _exported(cells: dict[str, str]) -> Answer | None:
    """The answer in an exported row; None for a failure."""
    if not cells["probabilities"]:
        return None
    found = json.loads(unguard(cells["probabilities"]))
    if cells["type"] not in ("choice", "noul", "score"):
        raise ValueError(cells["type"])
    return Answer(cells["type"], tuple(found), tuple(map(float, found.values())))  # type: ignore[arg-type]  # checked


def _json_lines(path: Path, rule: Rule, problems: list[Problem]) -> Iterator[str]:
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                raw = json.loads(line)
                for result, question, answer in _results(raw):
                    result["gate"] = rule(question, answer).to_dict()
            except InputError as error:
                problems.append(Problem(error.message, "no_result", line=number, hint=error.hint))
            except (KeyError, TypeError, ValueError, AttributeError, StopIteration):
                problems.append(Problem("holds no answer that clef wrote", "no_result", line=number))
            else:
                yield json.dumps(raw, ensure_ascii=False) + "\n"


def _results(raw: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str, Answer | None]]:
    """Each result in a line, with its question and answer: an exported row, a reply, or one result of a reply."""
    if "questions" in raw:
        name, question = next(iter(raw["questions"].items()))
        found = raw["result"].get("probabilities")
        answer = Answer(question["type"], tuple(found), tuple(map(float, found.values()))) if found else None
        yield raw["result"], name, answer
        return
    for result in raw.get("results", [raw]):
        yield result, *predicted(result)
