"""Turns what a person wants to see of a run into SQL: which rows, by whose labels, in which order.

Everything is narrowed by names on a list; nothing of a request becomes SQL.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from clef.decisions.questions import QuestionType

Show = Literal["all", "judged", "right", "wrong", "failed", "ties", "unlabelled", "reviewed"]
Sort = Literal["rank", "row", "probability", "margin", "elapsed"]
Labels = Literal["own", "table"]
"""Whether a person's labels count, or those that the table came with."""
SORTS: dict[Sort, str] = {
    "rank": "outcomes.rank",
    "row": "outcomes.position",
    "probability": "outcomes.top",
    "margin": "outcomes.margin",
    "elapsed": "outcomes.elapsed_s",
}


@dataclass(frozen=True, slots=True)
class Narrowed:
    """Which rows, in which order. Each part that is given narrows the rows further."""

    show: Show = "all"
    question: str | None = None
    """Name of the question in the table."""
    label: str | None = None
    prediction: str | None = None
    low: float | None = None
    """Top probability at least this."""
    high: float | None = None
    """Top probability below this; 1 includes 1."""
    sure: float | None = None
    """What a gate at this threshold acts on: at least this top probability, and no tie."""
    unsure: float | None = None
    """What a gate at this threshold leaves to be checked: below it, or a tie."""
    type: QuestionType | None = None
    """Of the question."""
    off: int | None = None
    """Levels by which the most likely level of a score is above its label; negative where it is below."""
    text: str = ""
    """Part of the state, the label or the prediction, in any case."""
    column: str | None = None
    """A column of the table with no role, which must have `value`."""
    value: str = ""
    labels: Labels = "own"
    """Whether a row's label is what a person said of it, or what the table says."""
    sort: Sort = "rank"
    descending: bool = True


@dataclass(frozen=True, slots=True)
class RowFilter(Narrowed):
    """The same for the store, a page at a time."""

    reviewed: bool | None = None
    """Whether a person has looked at the row; None for either."""
    limit: int = 100
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Labelling:
    """Where a row's label stands, and what has to be joined for it."""

    label: str
    """The place of the label among the answers."""
    text: str
    correct: str
    joined: str = ""


_OF_A_PERSON = Labelling("examples.label", "examples.label_text", "outcomes.correct")
_OF_THE_TABLE = Labelling(
    "iif(said.position is null, examples.label, said.was)",
    "iif(said.position is null, examples.label_text, said.was_text)",
    "case when said.position is null then outcomes.correct when said.was_text is null then null"
    " else outcomes.prediction = said.was_text end",
    " left join corrections as said on said.run = outcomes.run and said.position = outcomes.position",
)
_OUTCOMES = "outcomes indexed by outcomes_narrow"
_SAME_ROW = "on examples.run = outcomes.run and examples.position = outcomes.position"
_NARROW = f"{_OUTCOMES} cross join examples indexed by examples_narrow {_SAME_ROW}"
_UNLABELLED = f"examples indexed by examples_narrow cross join {_OUTCOMES} {_SAME_ROW}"
_WITH_STATES = f"{_OUTCOMES} cross join examples {_SAME_ROW}"


def labelling(chosen: Narrowed) -> Labelling:
    """Where the labels of a filter stand."""
    return _OF_THE_TABLE if chosen.labels == "table" else _OF_A_PERSON


def shows(chosen: Narrowed) -> dict[Show, str]:
    """What a row of each `show` is like."""
    by = labelling(chosen)
    return {
        "all": "1",
        "judged": f"({by.correct}) is not null",
        "right": f"({by.correct}) = 1",
        "wrong": f"({by.correct}) = 0",
        "failed": "outcomes.failure is not null",
        "ties": "outcomes.tie",
        "unlabelled": f"{by.text} is null",
        "reviewed": "outcomes.position in (select position from corrections where run = ?1)",
    }


def needs_examples(chosen: Narrowed) -> bool:
    """Whether a filter asks for more than what came back."""
    return chosen.show == "unlabelled" or chosen.question is not None or chosen.label is not None


def source(chosen: Narrowed) -> str:
    """The narrowest tables that the filter can be read from."""
    return (_NARROW if needs_examples(chosen) else _OUTCOMES) + labelling(chosen).joined


def from_examples(chosen: Narrowed) -> str:
    """The same, led by the examples: for few rows of a run."""
    return _UNLABELLED + labelling(chosen).joined


def with_states(chosen: Narrowed) -> str:
    """The tables that hold the whole text of the rows."""
    return _WITH_STATES + labelling(chosen).joined


def condition(run_id: str, chosen: RowFilter, places: str | None) -> tuple[str, Sequence[Any]]:
    """The condition of a filter, and what goes into it; `places` is a JSON list of the only ones that are meant."""
    shown = shows(chosen)
    parts: list[tuple[str, tuple[Any, ...]]] = [("outcomes.run = ?1", (run_id,)), (shown[chosen.show], ())]
    if chosen.question is not None:
        parts.append(("examples.name = ?", (chosen.question,)))
    if chosen.label is not None:
        parts.append((f"{labelling(chosen).text} = ?", (chosen.label,)))
    if chosen.prediction is not None:
        parts.append(("outcomes.prediction = ?", (chosen.prediction,)))
    if chosen.low is not None:
        parts.append(("outcomes.top >= ?", (chosen.low,)))
    if chosen.high is not None:
        parts.append(("outcomes.top <= ?" if chosen.high >= 1 else "outcomes.top < ?", (chosen.high,)))
    if chosen.sure is not None:
        parts.append(("outcomes.top >= ? and not outcomes.tie", (chosen.sure,)))
    if chosen.unsure is not None:
        parts.append(("(outcomes.top < ? or outcomes.tie)", (chosen.unsure,)))
    if chosen.reviewed is not None:
        parts.append((shown["reviewed"] if chosen.reviewed else f"not {shown['reviewed']}", ()))
    if places is not None:
        parts.append(("outcomes.position in (select value from json_each(?))", (places,)))
    return " and ".join(part for part, _ in parts), [value for _, values in parts for value in values]


def of_whole_texts(chosen: Narrowed) -> tuple[str, Sequence[object]] | None:
    """The condition of what only the whole text of a row tells, and what goes into it; None where nothing is asked."""
    by = labelling(chosen)
    parts: list[tuple[str, tuple[object, ...]]] = []
    if chosen.text:
        columns = ("examples.state", by.text, "outcomes.prediction")
        either = " or ".join(f"{column} like ? escape '\\'" for column in columns)
        parts.append((f"({either})", (containing(chosen.text),) * len(columns)))
    if chosen.column is not None:
        has = "exists (select 1 from json_each(examples.extra) where key = ? and value = ?)"
        parts.append((has, (chosen.column, chosen.value)))
    of_type = "examples.question in (select id from questions where json_extract(body, '$.type') = ?)"
    if chosen.type is not None:
        parts.append((of_type, (chosen.type,)))
    if chosen.off is not None:
        level = "(select key from json_each(outcomes.probabilities) order by value desc, key limit 1)"
        off = f"{of_type} and ({by.correct}) is not null and {level} - {by.label} = ?"
        parts.append((off, ("score", chosen.off)))
    if not parts:
        return None
    return " and ".join(part for part, _ in parts), [value for _, values in parts for value in values]


def containing(text: str) -> str:
    """The LIKE pattern of what has a text anywhere in it, wildcards taken as text; to be used with `escape '\\'`."""
    return "%" + text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
