"""Turns a state and questions of a command line into answers with a probability for each."""

import asyncio
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from clef.cli.options import AsJson, Engine, Model, Upstream
from clef.cli.terminal import bar, paint, say, say_json
from clef.errors import InputError, NotFound, Problem

if TYPE_CHECKING:
    from clef.cli.service import EngineOptions
    from clef.decisions.examples import Reply, Request
    from clef.decisions.questions import Json, Question

WIDEST = 32
"""Characters of an option's name that are shown."""


@dataclass(frozen=True, slots=True)
class Flags:
    """The questions that options of the command line ask."""

    choices: list[str]
    nouls: list[str]
    scores: list[str]
    file: Path | None


def ask(
    state: Annotated[
        str | None, typer.Argument(help="What is decided about: text, JSON, @FILE, or - for standard input.")
    ] = None,
    file: Annotated[Path | None, typer.Option(help="File that holds the state.")] = None,
    choice: Annotated[
        list[str] | None, typer.Option(help='"Which team?=billing|technical"; "name: description" says what one means.')
    ] = None,
    noul: Annotated[list[str] | None, typer.Option(help='A yes/no question: "Is the customer angry?"')] = None,
    score: Annotated[
        list[str] | None, typer.Option(help='"How urgent?=can wait|this week|today", lowest first.')
    ] = None,
    questions: Annotated[Path | None, typer.Option(help="File of typed questions, YAML or JSON.")] = None,
    read_as: Annotated[
        Literal["auto", "text", "json"], typer.Option("--as", help="auto takes an object or a list for JSON.")
    ] = "auto",
    image: Annotated[list[Path] | None, typer.Option(help="A PNG or JPEG that belongs to the state.")] = None,
    joint: Annotated[
        bool, typer.Option("--joint/--isolated", help="All questions in one request, or each alone.")
    ] = True,
    engine: Engine = None,
    upstream: Upstream = None,
    model: Model = None,
    as_json: AsJson = False,
) -> None:
    """Ask questions about a state, and see a probability for every allowed answer.

    Chat messages are a JSON list such as [{"role": "user", "content": "…"}].
    """
    from clef.cli.service import EngineOptions
    from clef.decisions.examples import Request

    given = _state("" if _is_pictured(state, file, image) else _text(state, file), read_as)
    asked = _questions(Flags(choice or [], noul or [], score or [], questions))
    request = Request(given, asked, _images(image or []))
    _check(request)
    answered, kind, message = asyncio.run(_ask(request, joint, EngineOptions(engine, upstream, model)))
    if as_json:
        say_json(_json(request, answered, joint) | {"engine": kind})
        return
    _print(request, answered)
    if message and sys.stderr.isatty():
        say(f"\n{message}", "dim", err=True)


def _is_pictured(state: str | None, file: Path | None, image: list[Path] | None) -> bool:
    """Whether images are all there is to decide about."""
    return bool(image) and state is None and file is None and sys.stdin.isatty()


def _text(state: str | None, file: Path | None) -> str:
    """The state as it was given, in exactly one way; standard input where something is piped in."""
    if state is not None and file is not None:
        raise InputError("the state is given twice", hint="give it as an argument, or with --file")
    if state is not None and state.startswith("@"):
        file, state = Path(state[1:]), None
    if file is not None:
        if not file.is_file():
            raise NotFound(f"no file {file}", hint="a state that begins with @ is read from a file; pipe it in instead")
        return _decoded(file.read_bytes(), str(file))
    if state is None or state == "-":
        if state is None and sys.stdin.isatty():
            raise InputError(
                "there is no state to ask about", hint="give it as an argument, with --file, or pipe it in"
            )
        return _decoded(sys.stdin.buffer.read(), "standard input")
    return state


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError as error:
        hint = "convert it, or give an image with --image"
        raise InputError(f"{name} is not UTF-8 text (byte {error.start + 1})", hint=hint) from None


def _state(text: str, read_as: str) -> "Json":
    if read_as == "text" or (read_as == "auto" and text.lstrip()[:1] not in ("{", "[")):
        return text
    try:
        found: Json = json.loads(text)
    except ValueError as error:
        if read_as == "auto":
            return text
        raise InputError.of([Problem(f"the state is not JSON: {error}", "not_json", column="state")]) from None
    return found


def _questions(flags: Flags) -> "tuple[Question, ...]":
    """The questions: choices, then yes/no, then scores, then those of the file. Raises InputError with the problems of
    all.
    """
    asked: list[Question] = []
    problems: list[Problem] = []
    written = [(_choice, text) for text in flags.choices] + [(_noul, text) for text in flags.nouls]
    for make, text in [*written, *((_score, text) for text in flags.scores)]:
        try:
            asked.append(make(text))
        except InputError as error:
            problems += error.problems
    if flags.file is not None:
        from clef.tables import read_question_set

        try:
            asked += read_question_set(flags.file).values()
        except InputError as error:
            problems += error.problems or [Problem(error.message, error.code, hint=error.hint)]
    if problems:
        raise InputError.of(problems, "the questions")
    if not asked:
        hint = 'give --choice "Which team?=billing|technical", --noul "Is it angry?" or --questions FILE'
        raise InputError("there is no question to ask", hint=hint)
    return tuple(asked)


def _choice(text: str) -> "Question":
    from clef.decisions.questions import Choice, Option

    instructions, names = _parts(text, "--choice")
    if not any(": " in name for name in names):
        return Choice(instructions, names, where="--choice")
    pairs = [name.partition(": ") for name in names]
    options = [Option(name.strip(), description.strip() or None) for name, _, description in pairs]
    return Choice(instructions, options, where="--choice")


def _noul(text: str) -> "Question":
    from clef.decisions.questions import Noul

    return Noul(text)


def _score(text: str) -> "Question":
    from clef.decisions.questions import Score

    return Score(*_parts(text, "--score"), where="--score")


def _parts(text: str, flag: str) -> tuple[str, list[str]]:
    """The question and its answers. Raises InputError where there are none."""
    instructions, equals, listed = text.rpartition("=")
    if not equals:
        hint = f'write {flag} "{text}=one|another"'
        raise InputError.of([Problem(f'"{text}" has no answers', "no_options", column=flag, hint=hint)])
    answers = [part.strip() for part in listed.split("|")]
    if len(answers) == 1 and re.search("[,;/]", listed):
        meant = "|".join(part.strip() for part in re.split("[,;/]", listed))
        hint = f'write {flag} "{instructions.strip()}={meant}"'
        raise InputError.of([Problem(f'"{listed}" is one answer', "one_option", column=flag, hint=hint)])
    return instructions.strip(), answers


def _check(request: "Request") -> None:
    from clef.decisions.questions import problems_in, state_problems

    problems = state_problems(request.state, has_images=bool(request.images))
    problems += [problem for question in request.questions for problem in problems_in(question)]
    if problems:
        raise InputError.of(problems, "the request")


def _images(paths: list[Path]) -> tuple[str, ...]:
    """Image files as data URLs. Raises InputError with every problem, NotFound for a file that is not there."""
    from clef.decisions.images import HINT, as_url, bytes_fault, count_problems

    for path in paths:
        if not path.is_file():
            raise NotFound(f"no file {path}")
    problems = count_problems(len(paths), "--image")
    images = []
    for path in paths:
        content = path.read_bytes()
        if fault := bytes_fault(content):
            problems.append(Problem(f"{path.name}: {fault.message}", fault.code, column="--image", hint=HINT))
        else:
            images.append(as_url(content))
    if problems:
        raise InputError.of(problems, "the images")
    return tuple(images)


async def _ask(request: "Request", joint: bool, options: "EngineOptions") -> "tuple[list[Reply], str, str | None]":
    """A reply a request, one for all questions or one each; who answered, and what should be known of it."""
    from clef.cli.service import service
    from clef.decisions.examples import Request

    alone = [Request(request.state, (question,), request.images) for question in request.questions]
    async with service("decisions", options) as at:
        replies = [await at.decide(one) for one in ([request] if joint else alone)]
        facts = await at.facts()
    return replies, facts.kind, facts.message


def _json(request: "Request", replies: "list[Reply]", joint: bool) -> dict[str, Any]:
    """As POST /api/predict answers."""
    from clef.decisions.examples import Reply
    from clef.web.predict import to_dict

    counts = [reply.input_tokens for reply in replies]
    tokens = None if None in counts else sum(count or 0 for count in counts)
    whole = Reply(tuple(answer for reply in replies for answer in reply.answers), replies[0].model, tokens)
    shape = request.shape if joint else "isolated"
    return to_dict(request, whole) | {"shape": shape}


def _print(request: "Request", replies: "list[Reply]") -> None:
    from clef.decisions.questions import as_text

    answers = [answer for reply in replies for answer in reply.answers]
    for place, (question, answer) in enumerate(zip(request.questions, answers, strict=True)):
        say(("" if place == 0 else "\n") + as_text(question.instructions or question.answers[0]), "bold")
        width = min(WIDEST, max(len(name) for name in answer.names))
        shown = zip(answer.names, answer.probabilities, strict=True) if answer.type == "score" else answer.ranked()
        for name, probability in shown:
            is_top = name == answer.prediction
            line = f"  {_cut(name, width):<{width}}  {bar(probability)} {probability:.3f}"
            say(paint(line, "green") if is_top and not answer.tie else line)
        if answer.tie:
            say("  a tie: the prediction means nothing")
        if answer.score is not None:
            say(f"  expected level {answer.score:.2f} of 0 to {len(answer.names) - 1}")


def _cut(name: str, width: int) -> str:
    flat = " ".join(name.split())
    return flat if len(flat) <= width else f"{flat[: width - 1]}…"
