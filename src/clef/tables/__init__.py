"""Turns bytes of any table into labelled examples, or into the full list of what is wrong with it."""

from clef.tables.formats import read
from clef.tables.questionset import read_question_set
from clef.tables.table import ReadOptions, Table, TableFacts

__all__ = ["ReadOptions", "Table", "TableFacts", "read", "read_question_set"]
