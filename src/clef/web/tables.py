"""Turns the parameters and the body of a request into a table, or into every problem with it."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import Body, Depends, Query

from clef.decisions.examples import Example
from clef.errors import InputError
from clef.settings import Settings
from clef.tables import ReadOptions, Table, read

TableBody = Annotated[bytes, Body(media_type="text/csv", description="A table, as bytes, in any format clef reads")]
BadRows = Annotated[Literal["refuse", "skip"], Query(description="skip runs the rows without problems")]


@dataclass(frozen=True, slots=True)
class TableQuery:
    """The query parameters that say how to read a table."""

    name: Annotated[str, Query(description="File name, a hint for the format")] = ""
    encoding: Annotated[str | None, Query(description="Character encoding, where the guess is wrong")] = None
    separator: Annotated[str | None, Query(description="Column separator, where the guess is wrong")] = None
    sheet: Annotated[str | None, Query(description="Sheet of a workbook; the first one by default")] = None
    columns: Annotated[list[str] | None, Query(description="role:column header, where the guess is wrong")] = None

    def options(self, settings: Settings) -> ReadOptions:
        """The same for the reader, with the row limit of the settings."""
        pairs = [item.partition(":") for item in self.columns or ()]
        return ReadOptions(
            name=self.name,
            encoding=self.encoding,
            separator=self.separator,
            sheet=self.sheet,
            mapping={role: header for role, _, header in pairs},
            max_rows=settings.max_rows,
        )


Reading = Annotated[TableQuery, Depends()]


async def read_table(
    body: bytes, reading: TableQuery, settings: Settings, bad_rows: str
) -> tuple[Table, tuple[Example, ...]]:
    """The table and the examples to ask, read in a thread. Raises InputError with every problem unless they may be
    skipped, and where no row is left to ask.
    """
    table = await asyncio.to_thread(read, body, reading.options(settings))
    examples = table.examples if bad_rows == "skip" else table.require()
    if not examples:
        raise InputError("the table has no row to ask", table.problems)
    return table, examples
