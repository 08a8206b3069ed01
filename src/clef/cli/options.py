"""Turns what several commands take into one definition of each option."""

from pathlib import Path
from typing import Annotated, Literal

import typer

AsJson = Annotated[bool, typer.Option("--json", help="JSON instead of text.")]
Engine = Annotated[str | None, typer.Option(help="auto, builtin, llama or upstream.")]
Upstream = Annotated[str | None, typer.Option(help="Root address of a System One server.")]
Model = Annotated[str | None, typer.Option(help="Decision model (.gguf, or a name of `clef models`) for llama.cpp.")]
Encoding = Annotated[str | None, typer.Option(help="Character encoding, where the guess is wrong.")]
Separator = Annotated[str | None, typer.Option(help="Column separator, where the guess is wrong.")]
Sheet = Annotated[str | None, typer.Option(help="Sheet of a workbook; the first one by default.")]
Columns = Annotated[list[str] | None, typer.Option("--column", help="role:header, where the guess is wrong.")]
Questions = Annotated[
    Path | None, typer.Option(help="File of typed questions (YAML or JSON), for a table of labels only.")
]
EveryRow = Annotated[
    str | None, typer.Option("--question", help="The question of every row, for a table without a column of questions.")
]
Joint = Annotated[bool, typer.Option("--joint/--isolated", help="The questions of a state together, or each alone.")]
SkipBadRows = Annotated[bool, typer.Option("--skip-bad-rows", help="Run the rows that are good.")]
On = Annotated[
    Literal["ray"] | None,
    typer.Option("--on", help="ray: on the machines of a Ray cluster (RAY_ADDRESS); --out is a folder then."),
]
Workers = Annotated[
    int | None, typer.Option(help="Engines, with --on; else one an upstream, a GPU or a machine.", min=1)
]
Gpus = Annotated[float | None, typer.Option(help="GPUs an engine takes, with --on.", min=0)]
Upstreams = Annotated[str | None, typer.Option(help="Servers, with --on: URL,URL, given out one a worker.")]


def mapping(columns: list[str] | None, question: str | None = None) -> dict[str, str]:
    """Role → column header, from `role:header` items and the question of every row."""
    said = dict(item.partition(":")[::2] for item in columns or ())
    return said | ({"question": f"={question}"} if question else {})
