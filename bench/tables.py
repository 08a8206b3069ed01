"""Turns tables of 100,000 and 1,000,000 rows into a few figures: time against pandas, and memory against the file.

Times are the best of several runs, ours and pandas' taken in turn; pandas only reads, we also check every row. Each
example is made when it is asked for, so going through all of them once is a figure of its own. Memory is what a fresh
process gains from holding the result and getting there, from a path.
"""

from __future__ import annotations

import csv
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

TEXT = (
    "please card account transfer why is my the order late refund not working today need help with charged twice app "
    "login password reset shipping address change invoice question about plan upgrade cancel subscription payment"
)
OPTIONS = ["billing", "technical", "shipping", "account", "sales", "other"]
RUNS = 9
TABLES = [
    (100_000, "prose"),
    (100_000, "all quoted"),
    (100_000, "own options"),
    (100_000, "two lines"),
    (1_000_000, "prose"),
]
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


def compare(path: Path, runs: int) -> tuple[float, float, float]:
    """Seconds, for one file, of a bare pandas.read_csv, of our reading, and of going once through the examples."""
    import pandas as pd

    from clef.tables import read

    table = read(path)
    if table.problems or not table.examples:
        raise SystemExit(f"the table of the benchmark is misread: {table.problems[:3]}")
    examples = table.examples
    pandas_s, ours_s, through_s = best(
        runs, lambda: pd.read_csv(path, dtype=str), lambda: read(path), lambda: deque(examples, 0)
    )
    return pandas_s, ours_s, through_s


def memory_of(path: Path) -> dict[str, float]:
    """Seconds and bytes of reading the file in a process of its own."""
    done = subprocess.run([sys.executable, __file__, str(path)], capture_output=True, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def read_alone(path: Path) -> None:
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


def measure() -> list[tuple[str, str, str]]:
    """Rows of the table: what, measured, budget."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for rows, kind in TABLES:
            path = Path(folder) / "table.csv"
            write_table(path, rows, kind)
            size = path.stat().st_size
            pandas_s, ours_s, through_s = compare(path, RUNS if rows <= 100_000 else 2)
            peak = memory_of(path)["peak_bytes"]
            name = f"{rows:,} rows of CSV ({kind}, {size / 1e6:.0f} MB), read and checked"
            ratio = f"{ours_s / pandas_s:.2f} x pandas.read_csv ({ours_s:.2f} s)"
            found += [(name, ratio, "2 x"), ("  its memory", f"{peak / size:.1f} x the file", "4 x")]
            found += [("  its examples, gone through once", f"{through_s / pandas_s:.2f} x pandas.read_csv", "")]
    return found


if __name__ == "__main__":
    read_alone(Path(sys.argv[1]))
