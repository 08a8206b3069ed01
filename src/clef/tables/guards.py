"""Turns a cell into one that no spreadsheet runs as a formula, and back, for the CSV that clef itself writes.

The guard is an apostrophe before a cell that begins, after any space, with one of = + - @, their full-width forms, a
tab or a line break, and before one that begins with an apostrophe already. So taking one apostrophe off gives back
exactly what was there, and only in a file that clef wrote: in any other an apostrophe is the user's.
"""

from collections.abc import Sequence

SEED_COLUMNS = (
    "row",
    "context",
    "question",
    "options",
    "answer",
    "prediction",
    "confidence",
    "answer_probability",
    "correct",
    "error",
)
"""The columns every export begins with; programs rely on their order."""
FURTHER_COLUMNS = (
    "type",
    "probability",
    "margin",
    "tie",
    "probabilities",
    "score",
    "level",
    "shape",
    "model",
    "elapsed_ms",
    "line",
)
"""Columns after those; the table's own extra columns follow."""
OUR_COLUMNS = SEED_COLUMNS + FURTHER_COLUMNS
OWN_ROLES = {
    "state": "context",
    "question": "question",
    "options": "options",
    "label": "answer",
    "type": "type",
    "images": "",
}
"""Role → column of ours that is read again; the others are results, and the table's own columns play no role."""
_STARTS = frozenset("=+-@＝＋－＠\t\r\n")


def guard(cell: str) -> str:
    """The cell as an export writes it."""
    if not cell:
        return cell
    start = cell[0]
    if start == "'" or start in _STARTS or (start.isspace() and cell.lstrip()[:1] in _STARTS and cell.lstrip()):
        return "'" + cell
    return cell


def unguard(cell: str) -> str:
    """The cell as it was before `guard`."""
    return cell[1:] if cell[:1] == "'" else cell


def is_own_export(header: Sequence[str]) -> bool:
    """Whether clef wrote a CSV with this header."""
    return tuple(header[: len(OUR_COLUMNS)]) == OUR_COLUMNS
