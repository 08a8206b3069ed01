"""Turns frames (pandas, polars, Arrow, Parquet, Hugging Face datasets) into a Grid of text.

Numbers lose a decimal part that is zero where the whole column has none, since one empty cell turns integers into
decimals; missing values are empty; lists and objects become JSON, images data URLs. Rows count as in a spreadsheet: the
first is row 2.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from clef.errors import InputError, Problem
from clef.tables.gridbuilder import too_many_rows
from clef.tables.pictures import picture_url
from clef.tables.table import Grid, Notes


def is_frame(source: Any) -> bool:
    """Whether this is a pandas frame, or anything that hands its columns out in Arrow's way."""
    return hasattr(source, "itertuples") or hasattr(source, "__arrow_c_stream__")


def is_dataset(source: Any) -> bool:
    """Whether this looks like a Hugging Face dataset."""
    return hasattr(source, "features") and hasattr(source, "column_names") and not hasattr(source, "itertuples")


def from_frame(frame: Any, max_rows: int, notes: Notes) -> Grid:
    """The columns of a pandas frame, a polars frame or an Arrow table."""
    if not hasattr(frame, "itertuples"):
        return from_arrow(_pyarrow("this kind of frame").table(frame), max_rows, notes)
    if len(frame) > max_rows:
        raise too_many_rows(max_rows)
    header = [_name(name) for name in frame.columns]
    columns = [frame.iloc[:, at].astype(object).tolist() for at in range(len(header))]
    return _grid(header, columns, len(frame), notes)


def from_arrow(table: Any, max_rows: int, notes: Notes) -> Grid:
    """The columns of an Arrow table."""
    if table.num_rows > max_rows:
        raise too_many_rows(max_rows)
    return _grid(list(table.column_names), [column.to_pylist() for column in table.columns], table.num_rows, notes)


def from_parquet(source: bytes | Path, max_rows: int, notes: Notes) -> Grid:
    """The columns of a Parquet file. Raises InputError where pyarrow is missing or cannot read it."""
    _pyarrow("Parquet")
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(io.BytesIO(source) if isinstance(source, bytes) else source)
        if file.metadata.num_rows > max_rows:
            raise too_many_rows(max_rows)
        table = file.read()
        return from_arrow(table, max_rows, notes)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"the Parquet file cannot be read: {error}", hint="write it again") from None


def from_dataset(dataset: Any, max_rows: int, notes: Notes) -> Grid:
    """The columns of a Hugging Face dataset, class numbers turned into their names; -1 is no label."""
    if not isinstance(dataset.column_names, Sequence) or isinstance(dataset.column_names, str):
        splits = ", ".join(map(str, dataset.column_names))
        raise InputError("this is a set of splits, not one table", hint=f"give one of them: {splits}")
    header = list(dataset.column_names)
    count = len(dataset)
    if count > max_rows:
        raise too_many_rows(max_rows)
    columns = []
    for name in header:
        cells = list(dataset[name])
        classes = getattr(dataset.features[name], "names", None)
        if isinstance(classes, Sequence):
            cells = [_class_name(cell, classes) for cell in cells]
        columns.append(cells)
    return _grid(header, columns, count, notes)


def _class_name(cell: Any, classes: Sequence[str]) -> Any:
    if isinstance(cell, int) and not isinstance(cell, bool):
        return classes[cell] if 0 <= cell < len(classes) else None
    return cell


def _pyarrow(what: str) -> Any:
    try:
        import pyarrow
    except ImportError:
        hint = "pip install 'clef[parquet]'"
        problem = Problem(f"{what} needs the pyarrow library, which is not installed", "missing_library", hint=hint)
        raise InputError.of([problem]) from None
    return pyarrow


def _name(name: Any) -> str:
    return " ".join(map(str, name)) if isinstance(name, tuple) else str(name)


def _grid(header: Sequence[str], columns: Iterable[Sequence[Any]], count: int, notes: Notes) -> Grid:
    texts = [_as_texts(cells) for cells in columns]
    rows: list[int] = list(range(2, count + 2))
    blank = [not any(cells) for cells in zip(*texts, strict=True)]
    if any(blank):
        notes.blank += sum(blank)
        keep = [at for at, empty in enumerate(blank) if not empty]
        texts = [[cells[at] for at in keep] for cells in texts]
        rows = [rows[at] for at in keep]
    return Grid(tuple(header), texts, rows, [None] * len(rows), 1, None)


def _as_texts(cells: Sequence[Any]) -> list[str]:
    """A column as text; whether decimals keep a zero behind the point is decided for the whole column."""
    if all(cell.__class__ is str for cell in cells):
        return list(cells)
    decimals = [cell for cell in cells if isinstance(cell, float) and math.isfinite(cell)]
    whole = bool(decimals) and all(cell.is_integer() and abs(cell) < 1e15 for cell in decimals)
    return [_as_text(cell, whole) for cell in cells]


def _as_text(cell: Any, whole: bool) -> str:
    if isinstance(cell, str):
        return str(cell)
    if cell is None or _is_missing(cell):
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return str(int(cell)) if whole else repr(float(cell))
    if (picture := picture_url(cell)) is not None:
        return picture
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "backslashreplace")
    convert: Callable[[], Any] | None = getattr(cell, "tolist", None)
    if convert is not None:  # a numpy value or array
        return _as_text(convert(), whole)
    if isinstance(cell, dict | list | tuple):
        return json.dumps(
            [picture_url(one) or one for one in cell] if isinstance(cell, list) else cell,
            ensure_ascii=False,
            default=str,
        )
    return str(cell)


def _is_missing(cell: Any) -> bool:
    """NaN, NaT and pandas.NA, which are the values that are not equal to themselves, or say neither."""
    if type(cell).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(cell, float) and math.isnan(cell)
