"""Turns answers, rates and engine facts into the words and figures that a person reads on the page."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

TYPES = {"choice": "choice", "noul": "yes/no", "score": "score"}
"""How each question type is called on the page."""
PHASES = {
    "off": "no engine is running",
    "starting": "starting",
    "loading": "loading the model",
    "ready": "ready",
    "failed": "failed",
}
ENGINES = {"builtin": "built-in model", "upstream": "decision server", "llama": "llama.cpp"}
RUN_STATES = {
    "queued": "waiting in line",
    "running": "running",
    "paused": "paused",
    "finished": "finished",
    "stopped": "stopped early",
    "failed": "cut short",
}
SHAPES = {"isolated": "every question asked alone", "joint": "questions of a row asked together"}
NOUL_WORDS = ((0.9, "Yes"), (0.65, "Probably yes"), (0.5, "Leaning yes"), (0.35, "Leaning no"), (0.1, "Probably not"))
"""Lowest probability of yes, excluded, for which the words stand; below the last one it is "No"."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """An answer said in words."""

    words: str
    beside: str = ""
    """What stands smaller beside it."""


def verdict(result: Mapping[str, Any]) -> Verdict:
    """A result of `predict` in words."""
    if result["tie"]:
        return _tied(result)
    if result["type"] == "noul":
        return Verdict(noul_words(probability_of(result, "yes")))
    if result["type"] == "score":
        return Verdict(result["prediction"], expected_level(result["score"], len(result["levels"])))
    return Verdict(result["prediction"])


def noul_words(probability: float) -> str:
    """How likely a yes is, in words."""
    if probability == 0.5:
        return "Undecided"
    return next((words for least, words in NOUL_WORDS if probability > least), "No")


def expected_level(score: float, levels: int) -> str:
    """The expected level on its scale."""
    return f"{score:.2f} of {levels - 1}"


def probability_of(result: Mapping[str, Any], name: str) -> float:
    """Probability of one answer of a result."""
    return next(float(item["probability"]) for item in result["answers"] if item["answer"] == name)


def _tied(result: Mapping[str, Any]) -> Verdict:
    if result["type"] == "noul":
        return Verdict("Undecided", "exactly a half")
    names = [item["answer"] for item in result["answers"] if item["probability"] == result["probability"]]
    others = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return Verdict("A tie", " · ".join(names[:3]) + others)


def probability(value: float | None) -> str:
    """A probability or confidence with two figures; what rounds to certainty says so."""
    if value is None:
        return "–"
    if 0 < value < 0.005:
        return "<0.01"
    return ">0.99" if 0.995 <= value < 1 else f"{value:.2f}"


def change(difference: float) -> str:
    """How far a probability moved, with its sign."""
    said = f"{abs(difference):.2f}"
    if said == "0.00":
        return "±0"
    return f"+{said}" if difference > 0 else f"\N{MINUS SIGN}{said}"


def percent(value: float | None, digits: int = 1) -> str:
    """A share as a percentage."""
    return "–" if value is None else f"{value * 100:.{digits}f} %"


def interval(ends: tuple[float, float] | None) -> str:
    """The interval of a share, such as "88.9 to 93.3 %"."""
    if ends is None:
        return "nothing was counted"
    low, high = ends
    return f"{low * 100:.1f} to {high * 100:.1f} %"


def count(number: int) -> str:
    """A count with thin spaces between thousands."""
    return f"{number:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def levels_off(levels: int) -> str:
    """How far a score's prediction is from its label."""
    return (
        "the label's level" if not levels else f"{counted(abs(levels), 'level')} {'above' if levels > 0 else 'below'}"
    )


def threshold(value: float) -> str:
    """A threshold in as few digits as tell it from its neighbours on a page."""
    return f"{value:.2f}" if abs(value - round(value, 2)) < 1e-9 else f"{value:.4f}"


def ends(low: float | None, high: float | None) -> str:
    """The ends of a range of probabilities."""
    return f"{threshold(low or 0)} – {threshold(1 if high is None else high)}"


def counted(number: int, one: str, many: str | None = None) -> str:
    """A count with its noun in the right number."""
    return f"{count(number)} {one if number == 1 else many or one + 's'}"


def milliseconds(value: float) -> str:
    """A duration as a person says it."""
    if value < 10:
        return f"{value:.1f} ms"
    return f"{value:.0f} ms" if value < 1000 else f"{value / 1000:.1f} s"


def moment(when: datetime) -> str:
    """A moment in this machine's time zone, to the minute."""
    here = when.astimezone()
    return f"{here.day} {here:%b %Y %H:%M}"


def short(text: str, characters: int = 160) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(text[: characters * 4].split())
    return line if len(line) <= characters else line[: characters - 1].rstrip() + "…"


def field_name(path: str | None) -> str:
    """A field's path as the form numbers it: `questions[0].answers[1]` is "question 1, option 2"."""
    if not path:
        return ""
    said = []
    for part in path.split("."):
        name, _, index = part.rstrip("]").partition("[")
        word = {"questions": "question", "answers": "option", "levels": "level", "true": "what yes means"}.get(
            name, name
        )
        word = {"false": "what no means"}.get(name, word)
        if index and name in ("questions", "answers"):
            said.append(f"{word} {int(index) + 1}")
        elif index:
            said.append(f"{word} {index}")
        else:
            said.append({"option": "options", "level": "levels", "question": "wording"}.get(word, word))
    return ", ".join(said) if said != ["wording"] else "questions"
