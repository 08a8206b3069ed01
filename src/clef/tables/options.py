"""Turns an options cell into options, and a written label into the position of the option it means.

One separator holds for a whole table: chosen row by row it would flip between rows. Splitting is literal, matching
is never a substring test: exactly first, then in any case and any Unicode composition.
"""

from __future__ import annotations

import ast
import json
import unicodedata
from collections.abc import Iterable, Sequence

from clef.decisions.questions import Option, fold
from clef.errors import Problem
from clef.tables.table import shown

_FIRST = ("|", "\n", ";", ",")
_LAST = ":.-_'\"()[]{}"
"""Punctuation that is a part of words and numbers more often than it is between them."""
_EXPLAINED = 100
_SAMPLE = 2_000
"""Option cells that punctuation beyond the usual four is tried on."""
YES_WORDS = frozenset({"yes", "true", "1", "y"})
NO_WORDS = frozenset({"no", "false", "0", "n"})


def read_json_options(cell: str) -> list[Option] | None:
    """The options of a cell that is a JSON list, or an object of descriptions; None for any other cell.

    A Python list of strings, which is how frames are often written to CSV, counts as well.
    """
    if cell[:1] not in "[{" or cell[-1:] not in "]}":
        return None
    try:
        value = json.loads(cell, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        value = _python_list(cell)
    if isinstance(value, dict):
        return [Option(name, None if text in (None, "") else _description(text)) for name, text in value.items()]
    if isinstance(value, list) and value:
        return [_option(item) for item in value]
    return None


def _option(item: object) -> Option:
    if isinstance(item, dict):
        name = next((item[key] for key in ("answer", "name", "value", "option") if key in item), None)
        if name is not None:
            text = item.get("description")
            return Option(_name(name), None if text in (None, "") else _description(text))
    return Option(_name(item))


def _name(item: object) -> str:
    return item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)


def _description(text: object) -> str:
    return text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)


def _python_list(cell: str) -> list[str] | None:
    if len(cell) > 20_000 or cell[:2] not in ("['", '["'):
        return None
    try:
        value = ast.literal_eval(cell)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, list) and all(isinstance(item, str) for item in value) else None


def _no_constant(name: str) -> object:
    raise ValueError(name)


def split(cell: str, separator: str | None) -> list[str]:
    """The option names in a cell, without surrounding space; empty parts are left out."""
    parts = [cell] if separator is None else cell.split(separator)
    return [name for part in parts if (name := part.strip())]


def choose_separator(cells: Iterable[tuple[str, str]]) -> str | None:
    """The separator of a table's options, from (options cell, label) pairs; None where nothing separates anything.

    It is the first with which every cell has two different options and every label is one of them. Bar, line
    break, semicolon and comma come before other punctuation, which is looked at only where none of the four
    separates every cell: otherwise `1.0|2.0` with the label `1` would be split at the points. Where no separator
    suits all rows, the one that suits most is taken, so that the rest are reported.
    """
    pairs = list(cells)
    if not pairs:
        return None
    usual = []
    for separator in _FIRST:
        matching, separated = _suits(pairs, separator)
        if matching == len(pairs):
            return separator
        usual.append((separator, matching, separated))
    everywhere = [entry for entry in usual if entry[2] == len(pairs)]
    if everywhere:
        return max(everywhere, key=lambda entry: entry[1])[0]
    candidates = [entry for entry in usual if entry[2] * 2 >= len(pairs)]
    if not candidates:
        sample = pairs[:_SAMPLE]
        every = [*_FIRST, *_other_punctuation(pairs)]
        candidates = [(separator, *_suits(sample, separator)) for separator in every]
    best = max(candidates, key=lambda entry: (entry[1], entry[2]))
    if best[2]:
        return best[0]
    return next((separator for separator in _FIRST if all(separator in cell for cell, _ in pairs)), None)


def _suits(pairs: Sequence[tuple[str, str]], separator: str) -> tuple[int, int]:
    """(cells with two options, the label among them; cells with two options) under this separator."""
    matching = separated = 0
    parts: dict[str, tuple[list[str], set[str]]] = {}
    for cell, label in pairs:
        if separator not in cell:
            continue
        if cell not in parts:
            names = split(cell, separator)
            parts[cell] = names, set(map(fold, names))
        names, folded = parts[cell]
        if len(folded) < 2:
            continue
        separated += 1
        wanted = label.strip()
        matching += not wanted or (len(folded) == len(names) and (wanted in names or fold(wanted) in folded))
    return matching, separated


def _other_punctuation(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Punctuation of the first cells that is none of the usual four, most likely first."""
    found = {char for cell, _ in pairs[:50] for char in cell if _is_punctuation(char)}
    return sorted(found.difference(_FIRST), key=lambda char: (char in _LAST, _LAST.find(char), char))


def _is_punctuation(char: str) -> bool:
    return char == "\t" or (not char.isalnum() and not char.isspace() and unicodedata.category(char)[0] in "PS")


def match(label: str, names: Sequence[str]) -> int | None:
    """Position of the name that a label means: the same text, or the only one that is the same when folded."""
    if label in names:
        return names.index(label)
    wanted = fold(label)
    found = [at for at, name in enumerate(names) if fold(name) == wanted]
    return found[0] if len(found) == 1 else None


def match_noul(label: str) -> int | None:
    """0 for yes, true, 1 and y; 1 for no, false, 0 and n; in any case."""
    word = fold(label)
    return 0 if word in YES_WORDS else (1 if word in NO_WORDS else None)


def match_level(label: str, names: Sequence[str], by: str) -> int | None:
    """Position of a score's level by its text, or by its position from 0."""
    if by == "text":
        return match(label, names)
    digits = label.strip().removesuffix(".0")
    return int(digits) if digits.isascii() and digits.isdecimal() and int(digits) < len(names) else None


class Mismatches:
    """Words the problems of labels that mean no answer.

    The first hundred get a hint of what was meant; with 255 options the search for it takes milliseconds.
    """

    def __init__(self) -> None:
        self._worded = 0

    def problem(self, label: str, names: Sequence[str], column: str | None = None, what: str = "options") -> Problem:
        """The problem of a label that is none of these names."""
        self._worded += 1
        listed = ", ".join(shown(name, 40) for name in names[:12]) + (", …" if len(names) > 12 else "")
        message = f"the answer {shown(label)} is not one of the {what}: {listed}"
        hint = resemblance(label, names) if self._worded <= _EXPLAINED else None
        return Problem(message, "label", column=column, hint=hint)


def resemblance(label: str, names: Sequence[str]) -> str | None:
    """What a label nearly is, as a hint: a name that looks the same, is the same number, or is spelt almost alike."""
    for name in names:
        hint = _nearly(label.strip(), name.strip())
        if hint:
            return hint
    close = _closest(label, names)
    return f"did you mean {shown(close)}?" if close else None


def _nearly(label: str, name: str) -> str | None:
    if _bare(label) == _bare(name):
        mine = [char for char in label if char not in name] or list(label)
        theirs = [char for char in name if char not in label] or list(name)
        points = " and ".join("+".join(f"U+{ord(char):04X}" for char in chars[:4]) for chars in (mine, theirs))
        return f"{shown(label)} and {shown(name)} look alike and differ in {points}"
    try:
        same_number = float(label) == float(name)
    except ValueError:
        return None
    return f"{shown(label)} and {shown(name)} are the same number and different texts" if same_number else None


_LOOKALIKES = str.maketrans(
    {"’": "'", "‘": "'", "ʼ": "'", "“": '"', "”": '"', "–": "-", "—": "-", "‑": "-", "−": "-", "\u00a0": " "}
)


def _bare(text: str) -> str:
    """What a person sees: plain quotes, dashes and spaces, and nothing invisible."""
    plain = unicodedata.normalize("NFKC", text.translate(_LOOKALIKES)).casefold().replace("\u0307", "")
    visible = "".join(char for char in plain if unicodedata.category(char) not in ("Cf", "Cc"))
    return " ".join(visible.split())


def _closest(label: str, names: Sequence[str]) -> str | None:
    from difflib import get_close_matches

    if len(label) > 200 or len(names) > 300:
        return None
    folded = {fold(name): name for name in names}
    close = get_close_matches(fold(label), list(folded), n=1, cutoff=0.6)
    return folded[close[0]] if close else None


def duplicates(names: Sequence[str]) -> str | None:
    """Names that are one and the same when folded, for a message; None where all differ."""
    if len(set(map(fold, names))) == len(names):
        return None
    seen: dict[str, str] = {}
    for name in names:
        key = fold(name)
        if key in seen:
            return f"{shown(seen[key])} and {shown(name)}"
        seen[key] = name
    return None
