"""Turns YAML text into JSON values and back, and the path of a field into the line and column where it stands.

Plain words mean what YAML 1.2 says: `yes`, `no`, `on` and `off` are text, as an author of options means them; only
`true`, `false`, `null` and numbers are not. A key that is there twice is a problem, and keys are always text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from clef.errors import InputError, Problem
from clef.tables.table import shown

MAX_VALUES = 100_000
"""Values a file may come to once its references are written out; a small file can otherwise stand for billions."""
MAX_DEPTH = 100
"""Nesting a file may have."""
_COLLECTIONS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")
_PLAIN = {
    "bool": (re.compile(r"true|True|TRUE|false|False|FALSE"), "tTfF"),
    "int": (re.compile(r"[-+]?[0-9]+"), "-+0123456789"),
    "float": (re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"), "-+.0123456789"),
    "null": (re.compile(r"~|null|Null|NULL|"), "~nN\0"),
}
"""What plain scalars other than text look like: the core schema of YAML 1.2, https://yaml.org/spec/1.2.2/#103."""

_WORDS = re.compile(r"[^\W\d_][^\W_]*(?:[ _][^\W_]+)*[?.!]?")
"""Text that needs no quotes."""
_TAKEN = ("true", "false", "null", "yes", "no", "on", "off", "y", "n")
"""Words that some reader of YAML takes for something else than text."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands in a text, both counted from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Document:
    """A YAML document: its value, and where each part of it stands."""

    value: Any
    root: Any
    """The node of the parser; None for an empty text."""

    def place(self, path: str, *, exact: bool = False) -> Place | None:
        """Where a field such as `questions.team.options[1]` stands, or the nearest thing around it that is there;
        None where it is not `exact`ly there and should be.
        """
        node, rest = self.root, path
        while node is not None and rest:
            found = _step(node, rest)
            if found is None:
                break
            node, rest = found
        if node is None or (exact and rest):
            return None
        return Place(node.start_mark.line + 1, node.start_mark.column + 1)


def read_yaml(text: str) -> Document:
    """The document of a text. Raises InputError with line and column where it is no YAML, or has a key twice."""
    import yaml

    try:
        root = yaml.compose(text, Loader=_loader())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = " ".join(filter(None, (error.context, error.problem)))
        raise InputError.of([_problem(f"this is not YAML: {said}", mark)]) from None
    except (yaml.YAMLError, RecursionError) as error:
        raise InputError(f"this is not YAML: {' '.join(str(error).split())}") from None
    problems: list[Problem] = []
    counted = iter(range(MAX_VALUES))
    value = None if root is None else _value(root, counted, 0, problems)
    if problems:
        raise InputError.of(problems, "the YAML")
    return Document(value, root)


def write_yaml(value: Any) -> str:
    """A JSON value as YAML text that `read_yaml`, and a reader of YAML 1.1, take for the same value."""
    import yaml

    written: str = yaml.dump(value, Dumper=_dumper(), allow_unicode=True, sort_keys=False, width=100)
    return written


@cache
def _dumper() -> Any:
    import yaml

    class Plain(yaml.SafeDumper):  # type: ignore[misc]
        """Text that could be taken for something else is quoted, and nothing is written as a reference."""

        def ignore_aliases(self, data: Any) -> bool:
            """Always: a value that is there twice is written twice."""
            return True

    def text(dumper: Any, value: str) -> Any:
        is_word = _WORDS.fullmatch(value) and value.lower() not in _TAKEN
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=None if is_word else '"')

    Plain.add_representer(str, text)
    return Plain


@cache
def _loader() -> Any:
    import yaml

    class Core(yaml.SafeLoader):  # type: ignore[misc]
        """The scalars of YAML 1.2, nothing else."""

        yaml_implicit_resolvers: Any = {}  # noqa: RUF012 - the parser's own way

    for name, (pattern, first) in _PLAIN.items():
        Core.add_implicit_resolver(f"tag:yaml.org,2002:{name}", re.compile(f"^(?:{pattern.pattern})$"), list(first))
    Core.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"^$"), [""])
    return Core


def _value(node: Any, counted: Iterator[int], depth: int, problems: list[Problem]) -> Any:
    if next(counted, None) is None or depth > MAX_DEPTH:
        raise InputError("the YAML stands for more than it may", hint="write it without references to references")
    if node.id != "scalar" and node.tag not in _COLLECTIONS:
        problems.append(_problem(f"values of the type {shown(node.tag)} are not read", node.start_mark))
    if node.id == "sequence":
        return [_value(item, counted, depth + 1, problems) for item in node.value]
    if node.id == "mapping":
        found: dict[str, Any] = {}
        for key, item in node.value:
            if key.id != "scalar":
                problems.append(_problem("a key must be text", key.start_mark))
                continue
            if key.value in found:
                problems.append(_problem(f"the key {shown(key.value)} is there twice", key.start_mark))
            found[key.value] = _value(item, counted, depth + 1, problems)
        return found
    return _scalar(node, problems)


def _scalar(node: Any, problems: list[Problem]) -> Any:
    text: str = node.value
    match node.tag.rpartition(":")[2]:
        case "str":
            return text
        case "null":
            return None
        case "bool":
            return text.lower() == "true"
        case "int":
            return int(text)
        case "float":
            return float(text)
    problems.append(_problem(f"values of the type {shown(node.tag)} are not read", node.start_mark))
    return None


def _step(node: Any, rest: str) -> tuple[Any, str] | None:
    """The part of a node that a path begins with, and the rest of the path."""
    if node.id == "sequence":
        index = re.match(r"\[(\d+)\]\.?", rest)
        return (node.value[int(index[1])], rest[index.end() :]) if index and int(index[1]) < len(node.value) else None
    if node.id != "mapping":
        return None
    keys = sorted(((key.value, item) for key, item in node.value if key.id == "scalar"), key=lambda pair: -len(pair[0]))
    for key, item in keys:  # the longest first: a name may hold points
        if rest == key or rest.startswith((f"{key}.", f"{key}[")):
            return item, rest[len(key) :].removeprefix(".")
    return None


def _problem(message: str, mark: Any) -> Problem:
    if mark is None:
        return Problem(message, "not_yaml")
    return Problem(message, "not_yaml", line=mark.line + 1, column=f"column {mark.column + 1}")
