"""Turns a table of any size into the same table with answers, row by row, and goes on where it was killed."""

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Literal

import typer

from clef.cli.options import (
    Columns,
    Encoding,
    Engine,
    Gpus,
    Joint,
    Model,
    On,
    Separator,
    Upstream,
    Upstreams,
    Workers,
    mapping,
)
from clef.cli.terminal import say
from clef.errors import InputError, NotFound, Problem

if TYPE_CHECKING:
    from clef.cli.service import EngineOptions, Service
    from clef.decisions.answers import Answer
    from clef.decisions.questions import Question
    from clef.reports.labels import Growing
    from clef.runs.labelling import Labelled
    from clef.statistics.policy import Policy
    from clef.tables.stream import Stream

FLUSH_S = 0.25
"""How long written rows may be lost for, should the process be killed."""
KINDS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}


@dataclass(frozen=True, slots=True)
class Task:
    """What is asked of every row."""

    questions: "Mapping[str, Question]"
    shape: Literal["isolated", "joint"]
    policy: "Policy | None"
    prefix: str

    def made_with(self, stream: "Stream", model: str) -> dict[str, Any]:
        """What a file must have been begun with, to be gone on with."""
        return {
            "questions": {name: repr(question) for name, question in self.questions.items()},
            "shape": self.shape,
            "policy": self.policy and self.policy.to_dict(),
            "prefix": self.prefix,
            "model": model,
            "table": list(stream.header),
        }


def predict(
    table: Annotated[
        str,
        typer.Argument(help="CSV, JSONL or Parquet; - for standard input; with --on ray also a folder or s3://…"),
    ],
    questions: Annotated[Path, typer.Option(help="File of typed questions, YAML or JSON.")],
    out: Annotated[
        str, typer.Option(help=".csv, .tsv, .jsonl or .parquet; - for standard output; with --on a folder.")
    ] = "-",
    output_format: Annotated[
        Literal["csv", "tsv", "jsonl"] | None,
        typer.Option("--format", help="Of standard output; else the table's own."),
    ] = None,
    policy: Annotated[
        str | None, typer.Option(help="A policy's name or file: adds act or review to each answer.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what an earlier call left unfinished.")] = False,
    probabilities: Annotated[bool, typer.Option("--probabilities", help="Add every answer's probability.")] = False,
    prefix: Annotated[str, typer.Option(help="What the names of added columns begin with.")] = "",
    joint: Joint = False,
    encoding: Encoding = None,
    separator: Separator = None,
    column: Columns = None,
    engine: Engine = None,
    upstream: Upstream = None,
    model: Model = None,
    on: On = None,
    workers: Workers = None,
    gpus: Gpus = None,
    upstreams: Upstreams = None,
) -> None:
    """Label a table of any size: its rows in, the same rows with answers out.

    Each question adds its answer and its top probability, a score its expected level, a policy act or review. What
    could not be asked of a row stands in its column `error`.
    """
    from clef.cli.scaled import cluster_of, predicted, refuse, task_of
    from clef.cli.service import EngineOptions, TableSource

    options = EngineOptions(engine, upstream, model)
    cluster = cluster_of(on, workers, gpus, upstreams)
    if cluster is not None:
        refuse({"--policy": policy, "--format": output_format, "--probabilities": probabilities, "--prefix": prefix})
        shape: Literal["isolated", "joint"] = "joint" if joint else "isolated"
        source = TableSource(Path(table), encoding, separator, None, mapping(column), questions, shape=shape)
        predicted([table], task_of(source, out, options, labelled=False), cluster)
        return
    from clef.reports.labels import Columns as Added
    from clef.reports.labels import Growing
    from clef.tables import read_question_set
    from clef.tables.stream import StreamOptions, open_stream

    asked = read_question_set(questions)
    judge = _policy(policy, asked) if policy is not None else None
    task = Task(asked, "joint" if joint else "isolated", judge, prefix)

    def opened() -> "Stream":
        return open_stream(_source(table), StreamOptions(encoding, separator, mapping(column)))

    kind = _kind(table, out, output_format)
    stream = opened()
    added = Added(asked, prefix, _judge(judge, asked) if judge else None, all_of=probabilities)
    added.clash(stream.header)
    growing = Growing(_target(out), kind or stream.kind, stream, added)
    counts = asyncio.run(_label(stream, task, growing, resume=resume, options=options))
    growing.finish(opened)
    _tell(counts)


def _kind(table: str, out: str, output_format: str | None) -> str | None:
    """The format of the output; None for the table's own. Raises InputError for one that cannot be written there."""
    if out == "-":
        return output_format or ("jsonl" if table.endswith(".parquet") else None)
    kind = KINDS.get(Path(out).suffix.lower())
    hint = f"end it in {', '.join(KINDS)}"
    if kind is None or output_format is not None:
        message = f'cannot write "{out}"' if kind is None else "--format is for standard output; the name says it here"
        raise InputError.of([Problem(message, "format", hint=hint)])
    if kind == "parquet" and table == "-":
        hint = "write .jsonl or .csv, or give the table as a file"
        raise InputError.of([Problem("Parquet is made of a table that can be read twice", "format", hint=hint)])
    if table != "-" and Path(out).exists() and Path(out).samefile(table):
        raise InputError.of([Problem("the output is the table itself", "format", hint="give --out another name")])
    return kind


def _source(table: str) -> "Path | BinaryIO":
    return sys.stdin.buffer if table == "-" else Path(table)


def _target(out: str) -> "Path | BinaryIO":
    if out == "-":
        return sys.stdout.buffer
    if not Path(out).absolute().parent.is_dir():
        raise InputError.of([Problem(f"no folder {Path(out).absolute().parent}", "no_folder", hint="make it first")])
    return Path(out)


def _policy(name: str, questions: "Mapping[str, Question]") -> "Policy":
    """The policy of a file, or of this name in the data folder. Raises InputError where there is none or it fits
    nothing.
    """
    import json

    from clef.statistics.policy import Policy

    if Path(name).is_file():
        try:
            body = json.loads(Path(name).read_text(encoding="utf-8"))
        except ValueError as error:
            raise InputError(f"{name} is no policy: {error}") from None
    else:
        body = asyncio.run(_kept(name))
    policy = Policy.from_dict(body)
    known = [one for one in questions if _name(policy, one, questions[one]) is not None]
    if not known:
        hint = f"it is about {', '.join(policy.questions)}"
        raise InputError(f"the policy {name} knows none of the questions {', '.join(questions)}", hint=hint)
    return policy


async def _kept(name: str) -> "Mapping[str, Any]":
    """A policy that is kept by name; read beside a clef that serves the folder as well."""
    from clef.runs.database import Database
    from clef.runs.store import Store
    from clef.settings import load_settings

    store = Store(Database(load_settings().data_dir / "clef.db", alone=False))
    try:
        return (await store.policies.get(name)).body
    except NotFound:
        raise NotFound(f"no policy {name}, neither a file nor kept by this name") from None
    finally:
        await store.close()


def _judge(policy: "Policy", questions: "Mapping[str, Question]") -> Any:
    from clef.statistics.policy import decide

    names = {one: _name(policy, one, question) for one, question in questions.items()}

    def judge(one: str, answer: "Answer") -> str:
        return decide(policy, names[one] or one, answer)

    return judge


def _name(policy: "Policy", one: str, question: "Question") -> str | None:
    """What the policy calls a question: its id, or its text where it was measured on a table of one question a row."""
    return next((name for name in (one, str(question.instructions)) if name in policy.questions), None)


async def _label(
    stream: "Stream", task: Task, growing: "Growing", *, resume: bool, options: "EngineOptions"
) -> Counter[str]:
    """Label every row that is not there yet."""
    from clef.cli.service import service

    async with service("decisions", options) as at:
        made_with = task.made_with(stream, (await at.facts()).identity)
        done = growing.open(made_with, resume=resume)
        try:
            return await _rows(stream, task, growing, at, done)
        except asyncio.CancelledError:
            say("stopped: the same command with --resume goes on", err=True)
            raise
        finally:
            growing.close()


async def _rows(stream: "Stream", task: Task, growing: "Growing", at: "Service", done: int) -> Counter[str]:
    from clef.runs.labelling import each, label
    from clef.settings import load_settings

    counts: Counter[str] = Counter(rows=done, before=done)
    records = each(_after(stream, done), may_block=stream.is_piped)
    flushed = started = time.monotonic()
    async for row in label(records, task.questions, at.decide, load_settings().eval_concurrency, task.shape):
        growing.add(row)
        _count(row, counts)
        if (now := time.monotonic()) - flushed > FLUSH_S or stream.is_piped:
            growing.flush()
            flushed = now
            if sys.stderr.isatty():
                speed = (counts["rows"] - done) / (now - started)
                print(f"\r\x1b[K{counts['rows']:,} rows, {speed:,.0f} a second", end="", file=sys.stderr, flush=True)
    return counts


def _after(stream: "Stream", done: int) -> "Iterator[Any]":
    """The records after those that are done. Raises InputError where the table has fewer by now."""
    skipped = sum(1 for _ in islice(stream.records, done))
    if skipped < done:
        raise InputError(f"{done} rows are labelled already, and the table has {skipped}", hint="is it the same table?")
    return stream.records


def _count(row: "Labelled", counts: Counter[str]) -> None:
    from clef.decisions.answers import Answer

    counts["rows"] += 1
    counts["failed"] += any(not isinstance(answer, Answer) for answer in row.answers.values())
    counts["ties"] += any(isinstance(answer, Answer) and answer.tie for answer in row.answers.values())


def _tell(counts: Counter[str]) -> None:
    """What a person should know, on standard error: nothing where all is well and nobody looks."""
    if sys.stderr.isatty():
        before = f", {counts['before']:,} of them before" if counts["before"] else ""
        say(f"\r\x1b[K{counts['rows']:,} rows{before}", err=True)
    if counts["failed"]:
        say(
            f"{counts['failed']:,} rows have no answer to some question; their column error says why",
            "yellow",
            err=True,
        )
    if counts["ties"]:
        say(f"{counts['ties']:,} rows have a tie: two answers share the top probability", "yellow", err=True)
