"""Turns Python calls into decisions and evaluations, against the same engines as the page.

A Session owns an event loop in a thread of its own, so it works in a notebook, where one is running already.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, overload

from clef.decisions.answers import Answer
from clef.decisions.examples import Example, Outcome, Request, Shape
from clef.decisions.images import read_images
from clef.decisions.questions import Choice, Json, Noul, Question, Score, problems_in, read_question, state_problems
from clef.engines.engine import EngineFacts
from clef.engines.opening import ChosenEngine
from clef.errors import InputError, Problem
from clef.runs.execute import outcomes as outcomes_of
from clef.settings import load_settings
from clef.statistics.summary import Summary, summarise
from clef.tables import ReadOptions, read, read_question_set

if TYPE_CHECKING:
    import pandas

Askable = Question | Mapping[str, Any]
"""A typed question, or the API's JSON of one."""


@dataclass(frozen=True, slots=True)
class Run:
    """An evaluation that is done."""

    outcomes: tuple[Outcome, ...]
    """One an example, in the table's order."""
    summary: Summary

    @classmethod
    def of(cls, outcomes: Iterable[Outcome]) -> "Run":
        """The run of these outcomes, measured."""
        held = tuple(outcomes)
        return cls(held, summarise(held))

    @property
    def rows(self) -> "pandas.DataFrame":
        """The outcomes as a frame: the columns of the CSV export, numbers as numbers."""
        from clef.reports.export import to_frame

        return to_frame(self.outcomes)

    def to_html(self, name: str = "clef", *, redact: bool = False) -> str:
        """The report: one self-contained page. With `redact` it holds no text of any state."""
        from clef.reports.html import About, report

        first = next((outcome for outcome in self.outcomes if outcome.model), None)
        about = About(name, first.model if first else "", first.shape if first else "isolated")
        return report(self.outcomes, about, redact=redact)

    def write(self, path: "str | os.PathLike[str]") -> None:
        """Write the outcomes as CSV, JSONL or Parquet, by the name's ending. Raises InputError for another ending."""
        from clef.reports.export import write_csv, write_jsonl, write_parquet

        target = Path(path)
        writers = {
            ".csv": lambda: b"".join(write_csv(self.outcomes)),
            ".jsonl": lambda: b"".join(write_jsonl(self.outcomes)),
            ".parquet": lambda: write_parquet(self.outcomes),
        }
        if target.suffix.lower() not in writers:
            problem = Problem(f'cannot write "{target.name}"', "format", hint="end it in .csv, .jsonl or .parquet")
            raise InputError.of([problem])
        target.write_bytes(writers[target.suffix.lower()]())


class Session:
    """An open engine for several calls. Use as a context manager; options are those of `clef serve`."""

    def __init__(self, **options: Any) -> None:
        """Raise SettingsError for an option that cannot be used."""
        self._settings = load_settings(**options)
        self._stack = ExitStack()

    def __enter__(self) -> "Session":
        from anyio.from_thread import start_blocking_portal

        self._portal = self._stack.enter_context(start_blocking_portal())
        self._engine = self._portal.call(self._open)
        self._stack.callback(self._portal.call, self._engine.close)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    @property
    def facts(self) -> EngineFacts:
        """Who answers, and whether it is ready."""
        return self._portal.call(self._engine.facts)

    @overload
    def decide(self, state: Json, questions: Askable, images: Sequence[str] = ...) -> Answer: ...
    @overload
    def decide(self, state: Json, questions: Sequence[Askable], images: Sequence[str] = ...) -> list[Answer]: ...
    def decide(
        self, state: Json, questions: Askable | Sequence[Askable], images: Sequence[str] = ()
    ) -> Answer | list[Answer]:
        """Answer one question, or several in one request, in their order; `images` are PNG or JPEG as data URLs.

        Raises InputError for what cannot be asked, with every problem, and EngineError where nobody answers.
        """
        single = isinstance(questions, Choice | Noul | Score | Mapping)
        asked = _typed([questions] if single else questions)  # type: ignore[list-item, arg-type]
        problems = state_problems(state) + [problem for question in asked for problem in problems_in(question)]
        if problems:
            raise InputError.of(problems, "the request")
        reply = self._portal.call(self._engine.decide, Request(state, asked, read_images(list(images))))
        return reply.answers[0] if single else list(reply.answers)

    def evaluate(
        self,
        table: "str | os.PathLike[str] | bytes | pandas.DataFrame",
        *,
        skip_bad_rows: bool = False,
        shape: Shape = "isolated",
        **reading: Any,
    ) -> Run:
        """Ask every row of a labelled table, each question alone or those of a state together, and measure.

        `table` is a path, the bytes of a file, or a frame; `reading` are the fields of `clef.tables.ReadOptions`.
        Raises InputError with every problem of the table unless `skip_bad_rows`.
        """
        source = Path(table) if isinstance(table, str | os.PathLike) else table
        found = read(source, ReadOptions(**reading))
        examples = found.examples if skip_bad_rows else found.require()
        outcomes = self._portal.call(self._execute, examples, shape)
        return Run(tuple(outcomes), summarise(outcomes))

    async def _open(self) -> ChosenEngine:
        engine = ChosenEngine(self._settings)
        engine.start()
        await engine.chosen()
        return engine

    async def _execute(self, examples: Sequence[Example], shape: Shape) -> list[Outcome]:
        """The outcome of each example, in the table's order."""
        source = outcomes_of(examples, self._engine, self._settings.eval_concurrency, shape)
        placed = [pair async for pair in source]
        return [outcome for _, outcome in sorted(placed, key=lambda pair: pair[0])]


def decide(state: Json, questions: Any, *, images: Sequence[str] = (), **options: Any) -> Any:
    """Answer one question or several about a state. Opens an engine for the call; see Session for many calls."""
    with Session(**options) as session:
        return session.decide(state, questions, images)


def evaluate(table: Any, *, skip_bad_rows: bool = False, **options: Any) -> Run:
    """Measure a labelled table (a path, bytes or a frame). Opens an engine for the call; options as `clef serve`."""
    with Session(**options) as session:
        return session.evaluate(table, skip_bad_rows=skip_bad_rows)


def read_questions(source: "str | os.PathLike[str] | bytes") -> dict[str, Question]:
    """Typed questions by id, from a file (YAML or JSON) or its bytes. Raises InputError with everything that is wrong.

    >>> read_questions(b"angry: {question: Is the customer angry?}")
    {'angry': Noul(instructions='Is the customer angry?', true=None, false=None)}
    """
    return read_question_set(source if isinstance(source, bytes) else Path(source))


def _typed(questions: Iterable[Askable]) -> tuple[Question, ...]:
    """Typed questions; JSON ones are read. Raises InputError with the problems of all."""
    typed: list[Question] = []
    problems: list[Problem] = []
    for position, question in enumerate(questions):
        try:
            raw = isinstance(question, Mapping)
            typed.append(read_question(question, f"questions[{position}]") if raw else question)  # type: ignore[arg-type]
        except InputError as error:
            problems.extend(error.problems)
    if problems:
        raise InputError.of(problems, "the questions")
    return tuple(typed)
