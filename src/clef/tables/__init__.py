"""Turns bytes of any table into labelled examples, or into the full list of what is wrong with it.

What reads is imported at the first reading: a server starts without it.
"""

from pathlib import Path
from typing import Any

from clef.decisions.questions import Question
from clef.tables.table import ReadOptions, Table, TableFacts

__all__ = ["ReadOptions", "Table", "TableFacts", "read", "read_question_set"]

_DEFAULTS = ReadOptions()


def read(source: Any, options: ReadOptions = _DEFAULTS) -> Table:
    """Read a table: bytes, a path, a pandas frame, any Arrow table, or a Hugging Face dataset.

    What is wrong with the content is in the table's problems. Raises InputError for what is wrong with the request:
    a file that is not there, an unknown encoding or sheet, TooLarge for more rows than `max_rows`.
    """
    from clef.tables.formats import read as read_any

    return read_any(source, options)


def read_question_set(source: bytes | Path) -> dict[str, Question]:
    """The questions of a YAML or JSON file by id. Raises NotFound, or InputError with everything that is wrong and
    where it stands.
    """
    from clef.tables.questionset import read_question_set as read_set

    return read_set(source)
