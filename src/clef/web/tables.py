"""Turns the parameters and the body of a request into a table, or into every problem with it."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Annotated, Any, Literal

from fastapi import Depends, Query, Request
from starlette.datastructures import UploadFile

from clef.decisions.examples import Example
from clef.decisions.questions import Question
from clef.errors import InputError, Problem
from clef.runs.remembered import read_as_before
from clef.settings import Settings
from clef.tables import ReadOptions, Table, read_question_set

TABLE_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "A table as bytes, in any format clef reads; or a form with `table` and a `questions` file",
        "content": {
            "text/csv": {"schema": {"type": "string", "format": "binary"}},
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["table"],
                    "properties": {
                        "table": {"type": "string", "format": "binary"},
                        "questions": {"type": "string", "format": "binary"},
                    },
                }
            },
        },
    }
}
"""What a route that takes a table says of its body."""


@dataclass(frozen=True, slots=True)
class Upload:
    """The bytes of a table, with what came beside them."""

    content: bytes
    name: str = ""
    questions: Mapping[str, Question] | None = None
    """Typed questions by id, for a table that holds labels only."""


async def upload(request: Request) -> Upload:
    """The table of a request: its body, or the `table` of a form. Raises InputError where a form has none."""
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        return Upload(await request.body())
    async with request.form(max_files=2, max_fields=2) as form:
        table, questions = form.get("table"), form.get("questions")
        if not isinstance(table, UploadFile):
            problem = Problem("the form has no file `table`", "no_table", column="table")
            raise InputError.of([problem])
        asked = None
        if questions is not None:
            text = await questions.read() if isinstance(questions, UploadFile) else questions.encode()
            asked = await asyncio.to_thread(read_question_set, text)
        return Upload(await table.read(), table.filename or "", asked)


TableBody = Annotated[Upload, Depends(upload)]
BadRows = Annotated[Literal["refuse", "skip"], Query(description="skip runs the rows without problems")]


@dataclass(frozen=True, slots=True)
class TableQuery:
    """The query parameters that say how to read a table."""

    name: Annotated[str, Query(description="File name, a hint for the format")] = ""
    encoding: Annotated[str | None, Query(description="Character encoding, where the guess is wrong")] = None
    separator: Annotated[str | None, Query(description="Column separator, where the guess is wrong")] = None
    sheet: Annotated[str | None, Query(description="Sheet of a workbook; the first one by default")] = None
    columns: Annotated[list[str] | None, Query(description="role:column header, where the guess is wrong")] = None
    labels: Annotated[
        Literal["required", "optional"], Query(description="optional for a table that is to be labelled")
    ] = "required"

    @property
    def mapping(self) -> dict[str, str]:
        """Role → column header, as they were named."""
        pairs = [item.partition(":") for item in self.columns or ()]
        return {role: header for role, _, header in pairs}

    def options(self, upload: Upload, settings: Settings) -> ReadOptions:
        """The same for the reader, with what came beside the table and the row limit of the settings."""
        return ReadOptions(
            name=self.name or upload.name,
            encoding=self.encoding,
            separator=self.separator,
            sheet=self.sheet,
            mapping=self.mapping,
            questions=upload.questions,
            labelled=self.labels == "required",
            max_rows=settings.max_rows,
        )


Reading = Annotated[TableQuery, Depends()]


async def read_upload(request: Request, upload: Upload, reading: TableQuery) -> Table:
    """The table of an upload, read in a thread. Where no column is named, those that a person named for the same header
    before are, and the table says so.
    """
    options = reading.options(upload, request.app.state.settings)
    return await read_as_before(request.app.state.store, upload.content, options)


async def read_table(
    request: Request, upload: Upload, reading: TableQuery, bad_rows: str
) -> tuple[Table, Sequence[Example]]:
    """The table and the examples to ask. Raises InputError with every problem unless they may be skipped, and where no
    row is left to ask. Columns that were named are remembered for the next table with this header.
    """
    table = await read_upload(request, upload, reading)
    examples = table.examples if bad_rows == "skip" else table.require()
    if not examples:
        raise InputError("the table has no row to ask", table.problems)
    mapping = reading.mapping
    if mapping:
        await request.app.state.store.remember(table.facts.columns, mapping)
    return table, examples


def drawn(examples: Sequence[Example], rows: int | None, seed: int) -> Sequence[Example]:
    """The examples of that many rows of the table, drawn at random and left in their order; the same seed draws the
    same. All of them where there are no more.
    """
    if rows is None:
        return examples
    there = sorted({example.row for example in examples})
    if rows >= len(there):
        return examples
    chosen = set(Random(seed).sample(there, rows))  # noqa: S311 - a draw to be repeated, not a secret
    return tuple(example for example in examples if example.row in chosen)
