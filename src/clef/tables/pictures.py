"""Turns what a row says of its images into data URLs, or into what is wrong with them.

The check is that of a request's images, so a table leads an engine to no address and no file either.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from clef.decisions.images import SIGNATURES, as_url, read_images
from clef.errors import InputError, Problem
from clef.tables.columns import Roles
from clef.tables.table import Grid, Notes, shown

if TYPE_CHECKING:
    from clef.tables.files import Album


def images_in(said: Any) -> list[Any]:
    """The images a row names, unchecked: a list, its JSON, or one a line."""
    if said is None:
        return []
    if isinstance(said, list):
        return [picture_url(one) or one for one in said]
    if not isinstance(said, str):
        return [picture_url(said) or said]
    if said.lstrip()[:1] == "[":
        try:
            return list(json.loads(said))
        except ValueError:
            pass
    return [part for line in said.splitlines() if (part := line.strip())]


def picture_url(cell: Any) -> str | None:
    """The data URL of an image as a library holds it; None for what is none.

    That is the bytes of a PNG or JPEG, the pair of bytes and path that Hugging Face puts into Parquet, or an image of
    Pillow, of which it makes a PNG.
    """
    if isinstance(cell, dict) and cell.keys() == {"bytes", "path"}:
        cell = cell["bytes"]
    if type(cell).__module__.partition(".")[0] == "PIL":
        buffer = io.BytesIO()
        cell.save(buffer, "PNG")
        cell = buffer.getvalue()
    is_image = isinstance(cell, bytes) and cell.startswith(tuple(SIGNATURES.values()))
    return as_url(cell) if is_image else None


def checked_images(said: Any, name: str) -> tuple[str, ...]:
    """The data URLs a row names. Raises InputError with every problem; `name` is what the images are called there."""
    return read_images(images_in(said), name)


def bad_images(grid: Grid, roles: Roles, notes: Notes, album: Album | None) -> set[int]:
    """Positions of the records with images that cannot be taken, each image reported."""
    at = roles.columns.get("images")
    if at is None:
        return set()
    bad = set()
    for position, cell in enumerate(grid.columns[at]):
        try:
            checked_images(album.taken(cell) if album else cell, grid.header[at])
        except InputError as error:
            bad.add(position)
            for problem in error.problems:
                column = problem.column or grid.header[at]
                notes.problem(replace(problem, row=grid.rows[position], line=grid.lines[position], column=column))
    return bad


def without_foreign_images(grid: Grid, roles: Roles, told: Sequence[str], notes: Notes) -> Roles:
    """A column called `image` that holds other things, such as addresses, is an ordinary column unless it was `told`
    to be one of images."""
    at = roles.columns.get("images")
    if at is None or "images" in told or any("data:" in cell for cell in grid.columns[at]):
        return roles
    if any(cell.strip() for cell in grid.columns[at]):
        name = grid.header[at]
        message = f"the column {shown(name)} has no image as a data URL, so it is kept as it is and no image is sent"
        hint = "where it names files: pack the table and its images into one ZIP"
        notes.warn(Problem(message, "images_column", grid.header_row, grid.header_line, name, hint))
    return replace(roles, columns={role: place for role, place in roles.columns.items() if role != "images"})
