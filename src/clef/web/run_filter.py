"""Turns the address of a run's page into what of it is looked at, and that back into addresses."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Literal, get_args
from urllib.parse import parse_qsl, urlencode

from clef.decisions.questions import QuestionType
from clef.runs.narrowing import Narrowed, RowFilter, Show, Sort

PAGE_ROWS = 100
"""Rows of one page."""
Pool = Literal["auto", "each", "all"]
"""Whether each question has its gate, or all of a type share one; by itself where only together they have labels."""
PLAIN = {"show": "all", "page": 1, "sort": "rank", "text": "", "gate": "", "pool": "auto", "labels": "own"}
"""What an address need not say."""

KEPT = ("sort", "descending", "gate", "pool", "labels")
"""What is looked at besides which rows."""


@dataclass(frozen=True, slots=True)
class Filter(Narrowed):
    """What of a run is looked at; its query string is the page's address."""

    page: int = 1
    row: int | None = None
    """The place of the row that is open."""
    gate: str = ""
    """The rule of the gates, as `GateRule` reads it."""
    pool: Pool = "auto"

    @classmethod
    def read(cls, query: Mapping[str, str]) -> "Filter":
        """The filter in a query string; what cannot be meant is left out."""
        return cls(
            show=next((show for show in get_args(Show) if show == query.get("show")), "all"),
            question=query.get("question") or None,
            label=query.get("label") or None,
            prediction=query.get("prediction") or None,
            low=_share(query.get("low")),
            high=_share(query.get("high")),
            sure=_share(query.get("sure")),
            unsure=_share(query.get("unsure")),
            type=next((kind for kind in get_args(QuestionType) if kind == query.get("type")), None),
            off=_levels(query.get("off")),
            text=query.get("text", "").strip()[:500],
            column=query.get("column") or None,
            value=query.get("value", ""),
            sort=next((sort for sort in get_args(Sort) if sort == query.get("sort")), "rank"),
            descending=query.get("order") != "asc",
            page=max(1, number(query.get("page")) or 1),
            row=number(query.get("row")),
            gate=query.get("gate", "")[:60],
            pool=next((pool for pool in get_args(Pool) if pool == query.get("pool")), "auto"),
            labels="table" if query.get("labels") == "table" else "own",
        )

    def query(self, **changes: object) -> str:
        """The query string of this filter with changes; page and open row start again unless they are what changes."""
        values = {item.name: getattr(self, item.name) for item in fields(self)} | {"page": 1, "row": None} | changes
        values["order"] = None if values.pop("descending") else "asc"
        if values["column"] is None:
            values["value"] = None
        said = {name: value for name, value in values.items() if value is not None and value != PLAIN.get(name)}
        return f"?{urlencode(said)}" if said else "?"

    def only(self, **parts: object) -> str:
        """The query string of the rows with these parts and no others; order, gates and labels stay as they are."""
        return Filter(**{name: getattr(self, name) for name in KEPT}).query(**parts)

    def sorted_by(self, sort: Sort) -> str:
        """The query string that sorts by a column; the other way round where it is sorted by it already."""
        descending = not self.descending if sort == self.sort else sort != "row"
        return self.query(sort=sort, descending=descending)

    @property
    def beside_form(self) -> list[tuple[str, str]]:
        """What the form of the rows has no field for, as it stands in an address."""
        return parse_qsl(self.query(question=None, label=None, text="")[1:])

    @property
    def narrows(self) -> bool:
        """Whether it leaves rows out."""
        kept = {name: getattr(self, name) for name in (*KEPT, "page", "row")}
        return self != Filter(**kept)

    @property
    def rows(self) -> RowFilter:
        """The same for the store."""
        narrowed = {item.name: getattr(self, item.name) for item in fields(Narrowed)}
        return RowFilter(**narrowed, limit=PAGE_ROWS, offset=(self.page - 1) * PAGE_ROWS)


def number(text: str | None) -> int | None:
    """A number that can be meant in an address; None for anything else."""
    return int(text) if text is not None and text.isdecimal() and len(text) < 8 else None


def _levels(text: str | None) -> int | None:
    found = number((text or "").removeprefix("-"))
    return -found if found is not None and (text or "").startswith("-") else found


def _share(text: str | None) -> float | None:
    try:
        share = float(text or "")
    except ValueError:
        return None
    return share if 0 <= share <= 1 else None
