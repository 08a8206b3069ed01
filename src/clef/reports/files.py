"""Turns outcomes into a file by the ending of its name, written as they pass by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from clef.errors import InputError
from clef.reports.export import CsvWriter, JsonlWriter, ParquetWriter, Writer

if TYPE_CHECKING:
    from clef.statistics.policy import Policy

FORMATS = ("csv", "jsonl", "parquet")


def writer_of(format: str, extra: Sequence[str], policy: Policy | None = None) -> Writer:
    """The writer of one of FORMATS. Raises InputError where what it needs is not installed."""
    makers: dict[str, Callable[[], Writer]] = {
        "csv": lambda: CsvWriter(extra, policy),
        "jsonl": lambda: JsonlWriter(policy),
        "parquet": lambda: ParquetWriter(extra, policy),
    }
    return makers[format]()


def into(path: Path, blocks: Iterable[bytes]) -> None:
    """Write a file block by block. It takes its name when the last one is there, so that none is ever cut short.

    Raises InputError where it cannot be written.
    """
    target = path.resolve()
    part = target.with_name(f"{target.name}.part")
    try:
        try:
            with part.open("wb") as file:
                file.writelines(blocks)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error
