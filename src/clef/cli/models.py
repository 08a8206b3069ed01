"""Turns `clef models` into the list of decision models, and into files that come and go."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from clef.engines.models.catalogue import is_name, named
from clef.engines.models.downloads import Progress
from clef.engines.models.shelf import Offer, Shelf
from clef.errors import InputError
from clef.settings import load_settings

app = typer.Typer(help="Decision models for llama.cpp: which there are, which fit here, get and remove them.")
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of words.")]
Name = Annotated[str, typer.Argument(help="Such as clef-flash, or clef-flash:Q8_0 with the quantisation.")]
INTERRUPTED = 130
FITS = {"gpu": "on the GPU", "cpu": "in memory", "no": "no", "unknown": "not known"}


@app.callback(invoke_without_command=True)
def _root(context: typer.Context, as_json: AsJson = False) -> None:
    if context.invoked_subcommand is None:
        list_models(as_json)


@app.command("list")
def list_models(as_json: AsJson = False) -> None:
    """Every decision model, with what fits this machine and the one to take."""
    shelf = Shelf(load_settings())
    offers = asyncio.run(shelf.offers())
    if as_json:
        _print_json({"models": [offer.to_dict() for offer in offers], "cache": str(shelf.cache)})
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("name", "size", "fits", "licence", "here", box=None, pad_edge=False)
    for offer in offers:
        mark = " (recommended)" if offer.is_recommended else ""
        table.add_row(
            _name(offer) + mark, _gb(offer.file.size_bytes), FITS[offer.fit], offer.model.licence, _here(offer)
        )
    Console().print(table)
    typer.echo(f"\nThey are kept in {shelf.cache}. To get one: clef models get NAME")


@app.command()
def show(
    what: Annotated[str, typer.Argument(help="A name of the list, or the path of a .gguf file.")],
    as_json: AsJson = False,
) -> None:
    """What is known about a model, or what a file says of itself."""
    known = _about_name(what) if is_name(what) else _about_file(Path(what))
    if as_json:
        _print_json(known)
        return
    for name, value in known.items():
        typer.echo(f"{name.replace('_', ' '):<18} {value}")


@app.command()
def get(
    name: Name,
    images: Annotated[bool, typer.Option("--images", help="Get the projector for images as well.")] = False,
    as_json: AsJson = False,
) -> None:
    """Download a model, going on where an earlier try ended. Ctrl+C keeps what is there."""
    try:
        end = asyncio.run(_get(name, images, _silent if as_json else None))
    except KeyboardInterrupt:
        typer.echo("\nWhat came stays: the same command goes on with it.", err=True)
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        _print_json(end.to_dict())
    elif end.state == "done":
        typer.echo(f"{end.name} is here. To run it: clef serve --model {end.name}")
    if end.state != "done":
        raise InputError(f"{end.name}: {end.message or end.state}", hint=end.hint)


@app.command()
def remove(name: Name, as_json: AsJson = False) -> None:
    """Delete a model, or what came of it, from this machine."""

    async def work() -> tuple[str, int]:
        shelf = Shelf(load_settings())
        order = await shelf.order(name)
        return order.name, await shelf.downloads.remove(order)

    removed, freed = asyncio.run(work())
    if as_json:
        _print_json({"name": removed, "freed_bytes": freed})
    else:
        typer.echo(f"{removed} is gone; {_gb(freed)} are free." if freed else f"{removed} was not here.")


async def _get(name: str, images: bool, tell: Callable[[Progress], None] | None) -> Progress:
    shelf = Shelf(load_settings())
    order = await shelf.order(name, with_projector=images)
    try:
        shelf.downloads.start(order)
        if tell is not None:
            return await shelf.downloads.wait(order, tell)
        with _bar() as show_progress:
            end = await shelf.downloads.wait(order, show_progress)
            show_progress(end)
            return end
    finally:
        await shelf.close()


class _bar:
    """A progress bar on a terminal; lines of it elsewhere are left out."""

    def __enter__(self) -> Callable[[Progress], None]:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
        from rich.progress import Progress as Bar

        columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
        console = Console(stderr=True)
        self._bar = Bar(TextColumn("{task.description}"), *columns, console=console, disable=not console.is_terminal)
        self._bar.start()
        task = self._bar.add_task("", total=None)

        def tell(progress: Progress) -> None:
            words = f"checking {progress.name}" if progress.state == "verifying" else progress.name
            self._bar.update(task, description=words, completed=progress.done_bytes, total=progress.size_bytes)

        return tell

    def __exit__(self, *error: object) -> None:
        self._bar.stop()


def _silent(progress: Progress) -> None:
    """Nothing is shown where JSON is wanted."""


def _about_name(name: str) -> dict[str, Any]:
    offers = asyncio.run(Shelf(load_settings()).offers())
    wanted = named(name)
    found = [offer for offer in offers if offer.model == wanted.model and wanted.file in (None, offer.file)]
    first = found[0].to_dict()
    shared = ("title", "about", "parameters", "repo", "licence", "decision_type", "max_options", "joint", "images")
    files = [f"{_name(offer)} {_gb(offer.file.size_bytes)}, fits {FITS[offer.fit]}, {_here(offer)}" for offer in found]
    return {name: first[name] for name in shared} | {"files": "; ".join(files)}


def _about_file(path: Path) -> dict[str, Any]:
    from clef.engines.llama.modelfile import check_model, read_header

    whole = check_model(str(path))
    header = read_header(whole)
    return {
        "path": str(whole),
        "name": header.name,
        "architecture": header.architecture,
        "decision_type": header.decision_type or "none is named in the file",
        "context": header.context,
        "layers": header.layers,
        "size": _gb(header.size_bytes),
    }


def _name(offer: Offer) -> str:
    return f"{offer.model.name}:{offer.file.quantisation}"


def _here(offer: Offer) -> str:
    if offer.path is not None:
        return "here"
    if offer.progress is None:
        return "–"
    return f"{100 * offer.progress.done_bytes // max(1, offer.progress.size_bytes)} % came"


def _gb(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


def _print_json(content: object) -> None:
    typer.echo(orjson.dumps(content, option=orjson.OPT_INDENT_2).decode())
