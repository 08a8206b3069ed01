"""Turns a labelled table into a regression test: the pytest fixture `clef_eval`.

pytest loads this module in every project where clef is installed, so it imports nothing of clef before the fixture is
used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from clef.reports.run import Run
    from clef.session import Engine

OPTIONS = ("engine", "model", "upstream")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --clef-engine, --clef-model and --clef-upstream."""
    group = parser.getgroup("clef", "decisions as regression tests")
    for name in OPTIONS:
        group.addoption(f"--clef-{name}", help=f"as `clef serve --{name}`, for the fixture clef_eval")


@pytest.fixture(scope="session")
def clef_engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """An open engine, one for all tests: `clef_engine.decide(state, question)`."""
    import clef

    options = {name: request.config.getoption(f"--clef-{name}") for name in OPTIONS}
    with clef.Engine.open(**options) as engine:
        yield engine


@pytest.fixture
def clef_eval(request: pytest.FixtureRequest) -> Callable[..., Run]:
    """Measure a table, and fail where a bar is missed: `clef_eval("table.csv", min_accuracy=0.9)`.

    Bars are `min_accuracy`, `max_ece`, and `baseline`, a file that `Run.save` or `clef eval --out` wrote as .jsonl.
    Further arguments are those of `clef.Engine.evaluate`. Paths start at the test's folder where they are there.
    """
    here = request.path.parent

    def evaluate(
        table: Any,
        *,
        min_accuracy: float | None = None,
        max_ece: float | None = None,
        baseline: Any = None,
        **reading: Any,
    ) -> Run:
        __tracebackhide__ = True
        from clef.reports.bars import Bars
        from clef.reports.run import load_run

        engine: Engine = request.getfixturevalue("clef_engine")
        before = load_run(_found(here, baseline)) if baseline is not None else None
        run = engine.evaluate(_found(here, table), **reading)
        missed = Bars(min_accuracy, max_ece).missed(run.outcomes, run.compare(before) if before is not None else None)
        if missed:
            pytest.fail("\n".join(missed), pytrace=False)
        return run

    return evaluate


def _found(here: Any, path: Any) -> Any:
    """The path, from the test's folder where it is there."""
    if isinstance(path, str) and (here / path).exists():
        return here / path
    return path
