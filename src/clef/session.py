"""Turns Python calls into decisions and evaluations, against the same engines as the page.

`AsyncEngine` does it; `Engine` is the same without `await`, on an event loop in a thread of its own, so that it works
in a notebook, where one is running already.
"""

import os
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, aclosing
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, overload

from clef.decisions.answers import Answer
from clef.decisions.examples import Request, Shape
from clef.decisions.images import read_images
from clef.decisions.questions import Choice, Json, Noul, Question, Score, problems_in, read_question, state_problems
from clef.engines.engine import EngineFacts
from clef.engines.opening import ChosenEngine
from clef.errors import ClefError, InputError, Problem
from clef.reports.run import Run
from clef.runs.execute import decide as decide_patiently
from clef.runs.execute import outcomes as outcomes_of
from clef.runs.many import many
from clef.settings import load_settings
from clef.tables import ReadOptions, read, read_question_set

if TYPE_CHECKING:
    import pandas

Askable = Question | Mapping[str, Any]
"""A typed question, or the API's JSON of one."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What came back for one of many states."""

    position: int
    """Place of the state among those given, counted from 0."""
    state: Json
    answers: tuple[Answer, ...]
    """One a question, in their order; empty where there is an error."""
    error: ClefError | None = None

    @property
    def answer(self) -> Answer:
        """The answer to the first question. Raises the error where there is one."""
        if self.error is not None:
            raise self.error
        return self.answers[0]


class AsyncEngine:
    """An open engine, for `async with`. See `Engine`, which is the same without `await`."""

    def __init__(self, **options: Any) -> None:
        """Raise SettingsError for an option that cannot be used."""
        self._settings = load_settings(**options)

    @classmethod
    def open(cls, **options: Any) -> "AsyncEngine":
        """An engine to use with `async with`; options are those of `clef serve`."""
        return cls(**options)

    async def __aenter__(self) -> "AsyncEngine":
        self._engine = ChosenEngine(self._settings)
        self._engine.start()
        try:
            await self._engine.chosen()
        except BaseException:
            await self._engine.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._engine.close()

    async def facts(self) -> EngineFacts:
        """Who answers, and whether it is ready."""
        return await self._engine.facts()

    async def decide(
        self, state: Json, questions: Askable | Sequence[Askable], *, images: Sequence[str] = ()
    ) -> list[Answer]:
        """The answers to one question or several, asked together, in their order. Waits for an engine that comes up.

        `images` are data URLs. Raises InputError for what cannot be asked, with every problem, and EngineError where
        nobody answers.
        """
        request = _request(state, _typed(_listed(questions)), images)
        return list((await decide_patiently(request, self._engine)).answers)

    async def decide_many(
        self,
        states: Iterable[Json],
        questions: Askable | Sequence[Askable],
        *,
        ordered: bool = True,
        concurrency: int | None = None,
    ) -> AsyncGenerator[Decision, None]:
        """The decision about each state: in their order, or as they come. States are taken as there is room for them.

        At most `concurrency` requests (CLEF_EVAL_CONCURRENCY) are under way. What cannot be decided keeps its error in
        its Decision; an engine that stays away raises Unavailable.
        """
        asked = _typed(_listed(questions))
        wrong = [problem for question in asked for problem in problems_in(question)]
        if wrong:
            raise InputError.of(wrong, "the questions")
        held: dict[int, Json] = {}

        def requests() -> Iterator[Request | InputError]:
            for place, state in enumerate(states):
                held[place] = state
                problems = state_problems(state)
                yield InputError.of(problems) if problems else Request(state, asked)

        limit = concurrency or self._settings.eval_concurrency
        async with aclosing(many(requests(), self._engine, limit, ordered=ordered)) as replies:
            async for place, reply in replies:
                failed = isinstance(reply, ClefError)
                yield Decision(
                    place,
                    held.pop(place),
                    () if isinstance(reply, ClefError) else reply.answers,
                    reply if failed else None,  # type: ignore[arg-type]
                )

    async def evaluate(
        self,
        table: "str | os.PathLike[str] | bytes | pandas.DataFrame",
        *,
        questions: "Mapping[str, Question] | str | os.PathLike[str] | None" = None,
        skip_bad_rows: bool = False,
        shape: Shape = "isolated",
        **reading: Any,
    ) -> Run:
        """Ask every row of a labelled table, each question alone or those of a state together, and measure.

        `table` is a path, the bytes of a file, or a frame; `questions` those of a table that holds labels only, or the
        path of their file; `reading` are the fields of `clef.tables.ReadOptions`. Raises InputError with every problem
        of the table unless `skip_bad_rows`.
        """
        source = Path(table) if isinstance(table, str | os.PathLike) else table
        if isinstance(questions, str | os.PathLike):
            questions = read_questions(questions)
        found = read(source, ReadOptions(questions=questions, **{"beside": True} | reading))
        examples = found.examples if skip_bad_rows else found.require()
        asked = outcomes_of(examples, self._engine, self._settings.eval_concurrency, shape)
        placed = [pair async for pair in asked]
        name = source.name if isinstance(source, Path) else "table"
        return Run.of((outcome for _, outcome in sorted(placed, key=lambda pair: pair[0])), name)


class Engine:
    """An open engine for many calls.

    >>> with Engine.open(engine="builtin") as engine:
    ...     answer = engine.decide("I was charged twice", Choice("Which team?", ["billing", "technical"]))
    ...     found = [one.answer.prediction for one in engine.decide_many(["refund me"], Noul("Is it about money?"))]
    >>> answer.prediction
    'billing'
    >>> len(found)
    1
    """

    def __init__(self, **options: Any) -> None:
        """Raise SettingsError for an option that cannot be used."""
        self._async = AsyncEngine(**options)
        self._stack = ExitStack()

    @classmethod
    def open(cls, **options: Any) -> "Engine":
        """An engine to use with `with`; options are those of `clef serve`, such as engine, model and upstream."""
        return cls(**options)

    def __enter__(self) -> "Engine":
        from anyio.from_thread import start_blocking_portal

        with ExitStack() as opening:
            self._portal = opening.enter_context(start_blocking_portal())
            opening.enter_context(self._portal.wrap_async_context_manager(self._async))
            self._stack = opening.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    @property
    def facts(self) -> EngineFacts:
        """Who answers, and whether it is ready."""
        return self._portal.call(self._async.facts)

    @overload
    def decide(self, state: Json, questions: Askable, *, images: Sequence[str] = ()) -> Answer: ...
    @overload
    def decide(self, state: Json, questions: Sequence[Askable], *, images: Sequence[str] = ()) -> list[Answer]: ...
    def decide(
        self, state: Json, questions: Askable | Sequence[Askable], *, images: Sequence[str] = ()
    ) -> Answer | list[Answer]:
        """Answer one question, or several in one request, in their order. `images` are data URLs.

        Raises InputError for what cannot be asked, with every problem, and EngineError where nobody answers.
        """
        answers = self._portal.call(lambda: self._async.decide(state, questions, images=images))
        return answers[0] if isinstance(questions, Choice | Noul | Score | Mapping) else answers

    def decide_many(
        self,
        states: Iterable[Json],
        questions: Askable | Sequence[Askable],
        *,
        ordered: bool = True,
        concurrency: int | None = None,
    ) -> Iterator[Decision]:
        """As `AsyncEngine.decide_many`."""
        found = self._async.decide_many(states, questions, ordered=ordered, concurrency=concurrency)

        async def following() -> Decision | None:
            return await anext(found, None)

        try:
            while (decision := self._portal.call(following)) is not None:
                yield decision
        finally:
            self._portal.call(found.aclose)

    def evaluate(
        self,
        table: "str | os.PathLike[str] | bytes | pandas.DataFrame",
        *,
        questions: "Mapping[str, Question] | str | os.PathLike[str] | None" = None,
        skip_bad_rows: bool = False,
        shape: Shape = "isolated",
        **reading: Any,
    ) -> Run:
        """As `AsyncEngine.evaluate`."""
        told: dict[str, Any] = {"questions": questions, "skip_bad_rows": skip_bad_rows, "shape": shape, **reading}
        return self._portal.call(lambda: self._async.evaluate(table, **told))


def decide(state: Json, questions: Any, *, images: Sequence[str] = (), **options: Any) -> Any:
    """Answer one question or several about a state. Opens an engine for the call; see Engine for many calls.
    `images` are those of the state, as data URLs; the setting of this name is an option of Engine.

    >>> decide("It crashes when I log in", Choice("Which team?", ["billing", "bugs"]), engine="builtin").names
    ('billing', 'bugs')
    """
    with Engine(**options) as engine:
        return engine.decide(state, questions, images=images)


def evaluate(
    table: Any, *, questions: Any = None, skip_bad_rows: bool = False, shape: Shape = "isolated", **options: Any
) -> Run:
    """Measure a labelled table (a path, bytes or a frame). Opens an engine for the call; options as `clef serve`.

    >>> run = evaluate(b"context,question,answer,options\\nrefund me,Which?,billing,billing|bugs\\n", engine="builtin")
    >>> run.summary.overall.count
    1
    """
    with Engine(**options) as engine:
        return engine.evaluate(table, questions=questions, skip_bad_rows=skip_bad_rows, shape=shape)


def read_questions(source: "str | os.PathLike[str] | bytes") -> dict[str, Question]:
    """Typed questions by id, from a file (YAML or JSON) or its bytes. Raises InputError with everything that is wrong.

    >>> read_questions(b"angry: {question: Is the customer angry}")
    {'angry': Noul(instructions='Is the customer angry', true=None, false=None)}
    """
    return read_question_set(source if isinstance(source, bytes) else Path(source))


def _request(state: Json, questions: tuple[Question, ...], images: Sequence[str]) -> Request:
    """Raises InputError with every problem."""
    problems = state_problems(state, has_images=bool(images))
    problems += [problem for question in questions for problem in problems_in(question)]
    if problems:
        raise InputError.of(problems, "the request")
    return Request(state, questions, read_images(list(images)))


def _listed(questions: Askable | Sequence[Askable]) -> Sequence[Askable]:
    return [questions] if isinstance(questions, Choice | Noul | Score | Mapping) else questions


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
