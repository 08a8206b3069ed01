"""Turns tables of 100,000 and 1,000,000 rows into a few figures: time against pandas, and memory against the file.

Times are the best of several runs, ours and pandas' taken in turn; pandas only reads, we also check and make
examples. Memory is what a fresh process gains from holding the result and getting there, from a path.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

TEXT = (
    "please card account transfer why is my the order late refund not working today need help with charged twice app "
    "login password reset shipping address change invoice question about plan upgrade cancel subscription payment"
)
OPTIONS = ["billing", "technical", "shipping", "account", "sales", "other"]
HEADER = ["context", "question", "answer", "options"]


def write_table(path: Path, rows: int, kind: str) -> None:
    """A labelled table: prose with quotes where a comma asks for them, all cells quoted, or cells of two lines."""
    chance, words = random.Random(rows), TEXT.split()
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL if kind == "all quoted" else csv.QUOTE_MINIMAL)
        writer.writerow(HEADER)
        for at in range(rows):
            text = " ".join(chance.choices(words, k=chance.randint(8, 30)))
            if kind == "two lines":
                text = text.replace(" ", "\n", 1)
            elif at % 3 == 0:
                text += ", thanks"
            options = chance.sample(OPTIONS, 4) if kind == "own options" else OPTIONS
            writer.writerow([text, f"Question {at % 2}?", chance.choice(options), "|".join(options)])


def best(runs: int, *steps: Callable[[], object]) -> list[float]:
    """The shortest time of each step, all taken in turn."""
    times = [float("inf")] * len(steps)
    for _ in range(runs):
        for at, step in enumerate(steps):
            start = time.perf_counter()
            result = step()
            times[at] = min(times[at], time.perf_counter() - start)
            del result
    return times


def compare(path: Path, runs: int) -> tuple[float, float]:
    """Seconds of a bare pandas.read_csv, and of ours, for one file."""
    import pandas as pd

    from clef.tables import read

    table = read(path)
    if table.problems or not table.examples:
        raise SystemExit(f"the table of the benchmark is misread: {table.problems[:3]}")
    del table
    pandas_s, ours_s = best(runs, lambda: pd.read_csv(path, dtype=str), lambda: read(path))
    return pandas_s, ours_s


def memory_of(path: Path) -> dict[str, float]:
    """Seconds and bytes of reading the file in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--measure", str(path)], capture_output=True, text=True, check=True
    )
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def measure(path: Path) -> None:
    """Print what reading this file costs this process."""
    from clef.tables import read

    read(b"context,question,answer,options\nx,q,a,a|b\n")
    before = peak_bytes()
    start = time.perf_counter()
    table = read(path)
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "peak_bytes": peak_bytes() - before, "examples": len(table.examples)}))


def peak_bytes() -> int:
    """The most memory this process has had; its own, where getrusage would count what the parent had at the fork."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def main() -> None:
    """Make the tables, read them, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--runs", type=int, default=9)
    asked = parser.parse_args()
    if asked.measure:
        measure(asked.measure)
        return
    print(f"{'table':<24}{'MB':>7}{'pandas s':>10}{'clef s':>9}{'ratio':>7}{'peak MB':>9}{'x file':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for rows, kind in [
            (100_000, "prose"),
            (100_000, "all quoted"),
            (100_000, "own options"),
            (100_000, "two lines"),
            (1_000_000, "prose"),
        ]:
            path = Path(folder) / "table.csv"
            write_table(path, rows, kind)
            size = path.stat().st_size
            pandas_s, ours_s = compare(path, asked.runs if rows <= 100_000 else 2)
            peak = memory_of(path)["peak_bytes"]
            name = f"{rows:,} {kind}"
            print(
                f"{name:<24}{size / 1e6:>7.1f}{pandas_s:>10.3f}{ours_s:>9.3f}{ours_s / pandas_s:>7.2f}"
                f"{peak / 1e6:>9.0f}{peak / size:>8.2f}"
            )


if __name__ == "__main__":
    main()
