"""The report file: whole in itself, honest, and with no text of a state where that is asked."""

import re
import sys
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from clef.decisions.answers import Answer
from clef.decisions.examples import Example, Failure, Outcome
from clef.decisions.questions import Choice
from clef.reports.html import NO_CHARTS, About, hold, report

TEAM = Choice("Which team?", ["billing", "technical"])
ABOUT = About("support.csv", "clef-flash", "isolated", datetime(2026, 11, 30, 14, 2, tzinfo=UTC), "first <try>")
HOSTILE = "<script>alert(1)</script> secret state"


def outcomes(count: int = 60) -> list[Outcome]:
    found = []
    for n in range(count):
        p = 0.5 + (n % 50) / 100
        example = Example(f"{HOSTILE} {n}", TEAM, int(n % 5 == 0), row=n + 2, question_name="Which team?")
        found.append(Outcome(example, Answer("choice", TEAM.answers, (p, 1 - p)), None, 0.01, "isolated", "clef-flash"))
    lost = Example(f"{HOSTILE} lost", TEAM, 0, row=99, question_name="Which team?")
    return [*found, Outcome(lost, None, Failure("too_long", "too long: 9 of 8 tokens"))]


def test_it_asks_for_nothing_from_elsewhere_and_runs_nothing() -> None:
    text = report(outcomes(), ABOUT)
    assert "<script" not in text
    assert re.findall(r'(?:src|href)="(?!data:|#)[^"]+"', text) == []
    assert "default-src 'none'" in text


def test_it_says_what_the_summary_says() -> None:
    text = report(outcomes(), ABOUT)
    assert "48 of 60 answered rows" in text
    assert "1 failed" in text
    assert "too long: 9 of 8 tokens" in text
    assert "first &lt;try&gt;" in text
    assert "12 of 12 rows" in text


def test_charts_are_drawn_into_the_file() -> None:
    assert report(outcomes(), ABOUT).count("<svg") == 5


def test_redacted_it_holds_no_state() -> None:
    assert "secret state" in report(outcomes(), ABOUT)
    assert "secret state" not in report(outcomes(), ABOUT, redact=True)


def test_without_the_extra_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    text = report(outcomes(), ABOUT)
    assert "<svg" not in text
    assert NO_CHARTS.replace("'", "&#39;") in text


def test_a_run_without_a_label_has_a_report_too() -> None:
    unlabelled = [
        Outcome(
            Example("x", TEAM, None, row=2, question_name="Which team?"), Answer("choice", TEAM.answers, (0.6, 0.4))
        )
    ]
    text = report(unlabelled, ABOUT)
    assert "nothing was counted" in text
    assert "nan" not in text.lower().replace("finance", "")


def test_outcomes_may_stream_by_and_only_those_listed_are_held() -> None:
    def passing() -> Iterator[Outcome]:
        for n in range(4000):
            p = 0.5 + (n % 50) / 100
            example = Example(f"{n} {'x' * 20_000}", TEAM, n % 2, row=n + 2, question_name="Which team?")
            yield Outcome(example, Answer("choice", TEAM.answers, (p, 1 - p)))

    tracemalloc.start()
    held = hold(passing())
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 4000 * 20_000 / 5
    listed = [one.example.row for one in held.wrong]
    surest = [n + 2 for n in range(4000) if n % 50 == 49] + [n + 2 for n in range(4000) if n % 50 == 47]
    assert (listed, held.wrong_count) == (surest[:100], 2000)
