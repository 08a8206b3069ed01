"""Turns outcomes into a Run: what a program holds of an evaluation, with its numbers, its rows and its files."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clef.decisions.examples import Outcome
from clef.errors import InputError, Problem
from clef.reports.results import read_results
from clef.statistics.summary import Summary, summarise

if TYPE_CHECKING:
    import pandas

    from clef.statistics.compare import Comparison
    from clef.statistics.gates import Gates
    from clef.statistics.guarantee import GuaranteedGates

SHOWN = 20
"""Questions that a notebook shows of a run."""


@dataclass(frozen=True, slots=True)
class Run:
    """An evaluation that is done. In a notebook it shows its numbers."""

    outcomes: tuple[Outcome, ...]
    """One an example, in the table's order."""
    summary: Summary
    name: str = "clef"
    """What the run is called in comparisons and reports: the table's file name, where it has one."""

    @classmethod
    def of(cls, outcomes: Iterable[Outcome], name: str = "clef") -> Run:
        """The run of these outcomes, measured."""
        held = tuple(outcomes)
        return cls(held, summarise(held), name)

    @property
    def rows(self) -> pandas.DataFrame:
        """The outcomes as a frame: the columns of the CSV export, numbers as numbers."""
        from clef.reports.export import to_frame

        return to_frame(self.outcomes)

    def gates(
        self,
        *,
        accuracy: float | None = None,
        review: float | None = None,
        risk: float | None = None,
        confidence: float = 0.95,
    ) -> Gates | GuaranteedGates:
        """From which top probability on answers need no check, for exactly one aim: this `accuracy` of what is not
        checked, at most this share `review`ed, or at most this `risk` with this `confidence`.

        Raises InputError for none or several aims. The formulas are in docs/metrics.md.
        """
        from clef.statistics.gates import gates
        from clef.statistics.guarantee import guaranteed_gates
        from clef.statistics.ladder import ReviewBudget, TargetAccuracy

        if sum(aim is not None for aim in (accuracy, review, risk)) != 1:
            problem = Problem("one gate is measured at a time", "gate_rule", hint="give accuracy, or review, or risk")
            raise InputError.of([problem])
        if accuracy is not None:
            return gates(self.outcomes, TargetAccuracy(accuracy))
        if review is not None:
            return gates(self.outcomes, ReviewBudget(review))
        return guaranteed_gates(self.outcomes, risk or 0.0, confidence)

    def compare(self, other: Run) -> Comparison:
        """This run against another one, on the rows that both have; differences are this less the other.

        Raises InputError where no labelled row is in both.
        """
        from clef.statistics.compare import compare

        names = (other.name, self.name) if other.name != self.name else (f"the other {other.name}", self.name)
        return compare(other.outcomes, self.outcomes, names=names)

    def to_html(self, name: str | None = None, *, redact: bool = False) -> str:
        """The report: one self-contained page. With `redact` it holds no text of any state."""
        from clef.reports.html import About, report

        first = next((outcome for outcome in self.outcomes if outcome.model), None)
        about = About(name or self.name, first.model if first else "", first.shape if first else "isolated")
        return report(self.outcomes, about, redact=redact)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the run by the name's ending: .jsonl keeps everything and is what `load_run` reads; .csv, .parquet and
        .html (the report) are for other programs. Raises InputError for another ending, or where it cannot be written.
        """
        from clef.reports.export import extra_names, write
        from clef.reports.files import FORMATS, into, writer_of

        target = Path(path)
        format = target.suffix.lower().removeprefix(".")
        if format not in (*FORMATS, "html"):
            hint = "end it in .csv, .jsonl, .parquet or .html"
            raise InputError.of([Problem(f'cannot write "{target.name}"', "format", hint=hint)])
        if format == "html":
            into(target, [self.to_html().encode()])
        else:
            into(target, write(self.outcomes, writer_of(format, extra_names(self.outcomes))))

    def _repr_html_(self) -> str:
        """The numbers as a small table; no text of any state, and nothing that runs."""
        summary: dict[str, Any] = self.summary.to_dict()
        lines = [_row("all", summary)]
        lines += [_row(question["question"], question) for question in summary["questions"][:SHOWN]]
        more = len(summary["questions"]) - SHOWN
        rest = f"<p>… and {more} more questions</p>" if more > 0 else ""
        head = "<tr><th>question</th><th>right</th><th>95 % interval</th><th>rows</th><th>always the same</th></tr>"
        failed = f", {summary['failed']} failed" if summary["failed"] else ""
        title = f"{escape(self.name)}: {summary['rows']} rows{failed}"
        return f"<table><caption>{title}</caption>{head}{''.join(lines)}</table>{rest}"


def _row(name: str, found: dict[str, Any]) -> str:
    if found["accuracy"] is None:
        cells = ["–", "", str(found["count"]), ""]
    else:
        always = found.get("majority_accuracy")
        interval = f"{found['low']:.1%} to {found['high']:.1%}"
        cells = [f"{found['accuracy']:.1%}", interval, str(found["count"]), "" if always is None else f"{always:.1%}"]
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in (name, *cells)) + "</tr>"


def load_run(path: str | os.PathLike[str]) -> Run:
    """The run that `Run.save`, `clef eval --out` or `clef runs export` wrote as .jsonl; no model is asked.

    Raises NotFound, or InputError with every line that is not a result.
    """
    return Run.of(read_results(Path(path)), Path(path).name)
