"""Measures every budget, prints one table and writes it to bench/results.md: `make bench`."""

import os
import platform
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.table import Table

MODULES = ("startup", "hop", "shapes", "load", "runs", "tables", "statistics", "page")
RESULTS = Path(__file__).with_name("results.md")
VERSIONS = ("xllamacpp", "sparrow-decider", "fastapi", "aiohttp", "pandas", "jev-eval")


def processor() -> str:
    """What the machine calls its processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def written(rows: Sequence[tuple[str, str, str]]) -> str:
    """The page of results."""
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    where = f"{processor()}, {os.cpu_count()} cores, Python {platform.python_version()}, load {load}"
    with_ = ", ".join(f"{name} {version(name)}" for name in VERSIONS)
    lines = ["# What things cost", "", "Written by `make bench`; figures of a shared machine, so read the ratios.", ""]
    lines += [f"{datetime.now(UTC):%d %B %Y} · {where}", "", with_, "", "| what | measured | budget |", "|---|---|---|"]
    lines += [f"| {what.strip()} | {measured} | {budget} |" for what, measured, budget in rows]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure what is named on the command line, or everything; only the whole is written down."""
    chosen = sys.argv[1:] or MODULES
    rows: list[tuple[str, str, str]] = []
    table = Table("what", "measured", "budget")
    for name in chosen:
        for row in import_module(f"bench.{name}").measure():
            rows.append(row)
            table.add_row(*row)
    Console().print(table)
    if tuple(chosen) == MODULES:
        RESULTS.write_text(written(rows))


main()
