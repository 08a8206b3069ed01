"""Turns a whole run of `CLEF_BENCH_ROWS` rows on the built-in engine into the server's memory and time at each step.

It takes a quarter of an hour for a million rows, so `make bench` leaves it out: `python -m bench memory`. A figure is
the most memory that the server held during that step alone, the whole process counted.
"""

import json
import os
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from bench.servers import clef
from clef.running import find

ROWS = int(os.environ.get("CLEF_BENCH_ROWS", "1000000"))
WORDS = "refund me twice please the parcel arrived broken and nobody answers my letters since the third of May"
LOOKS = {
    "its page, first look": "/runs/{run}",
    "its page, again": "/runs/{run}",
    "wrong rows": "/api/runs/{run}/rows?show=wrong",
    "rows with a text": "/api/runs/{run}/rows?text=parcel+arrived",
    "charts": "/runs/{run}/charts",
    "exported as CSV": "/api/runs/{run}/export?format=csv",
    "exported as JSONL": "/api/runs/{run}/export?format=jsonl",
    "report": "/api/runs/{run}/report?redact=true",
    **{f"measured: {part}": f"/api/runs/{{run}}/measures/{part}" for part in ("calibration", "classes", "suspects")},
    "compared with the run again": "/api/compare?run={run}&run={other}",
}


def table(path: Path) -> None:
    """A labelled CSV of ROWS rows, states of about 130 characters, with one extra column."""
    with path.open("w") as file:
        file.write("context,question,answer,options,source\n")
        for n in range(ROWS):
            state = f"message {n}: {WORDS[n % 40 :]} {WORDS[: n % 40]}"
            file.write(f"{state},Which team?,billing,billing|technical,{('mail', 'chat')[n % 2]}\n")


def peak_mb(pid: int) -> int:
    """The most memory that a process has held since it was last forgotten, in MB of 10^6 bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (found,) = (line for line in lines if line.startswith("VmHWM"))
    return int(found.split()[1]) * 1024 // 10**6


def forget(pid: int) -> None:
    """Let the peak of a process start again from what it holds now."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def fetch(address: str, body: Path | None = None) -> bytes:
    """What an address answers, the last line of it where there are many; a file as the body makes it a POST."""
    data = body.read_bytes() if body else None
    with urllib.request.urlopen(urllib.request.Request(address, data=data), timeout=7200) as response:
        last = b""
        for line in response:
            last = line
    return last


def steps(page: str, pid: int, path: Path) -> Iterator[tuple[str, float, int]]:
    """Each step of two runs of a table, the second from the cache: what it is, its seconds and its peak in MB."""
    runs = []
    for name, query in (("run", "cache=false"), ("run again, from the cache", "")):
        forget(pid)
        started = time.perf_counter()
        runs.append(json.loads(fetch(f"{page}/api/runs?{query}", path))["id"])
        yield f"{name}: the table read and kept", time.perf_counter() - started, peak_mb(pid)
        forget(pid)
        started = time.perf_counter()
        fetch(f"{page}/api/runs/{runs[-1]}/events")
        yield f"{name}: planned, every row answered", time.perf_counter() - started, peak_mb(pid)
        yield from looks(page, pid, {"summarised": "/api/runs/{run}"}, runs[-1], runs[0])
    yield from looks(page, pid, LOOKS, runs[0], runs[1])


def looks(page: str, pid: int, addresses: dict[str, str], run: str, other: str) -> Iterator[tuple[str, float, int]]:
    """The same of what is looked at of runs that are there."""
    for name, address in addresses.items():
        forget(pid)
        started = time.perf_counter()
        fetch(page + address.format(run=run, other=other))
        yield name, time.perf_counter() - started, peak_mb(pid)


def measure() -> list[tuple[str, str, str]]:
    """Rows of the table: what, measured, budget."""
    found = []
    limits = {"max_rows": str(ROWS), "max_body": str(ROWS * 400)}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        table(folder / "t.csv")
        with clef(engine="builtin", data_dir=str(folder / "data"), **limits) as page:
            running = find(folder / "data")
            assert running is not None
            for name, seconds, peak in steps(page, running.pid, folder / "t.csv"):
                print(f"{name}: {seconds:.1f} s, {peak} MB", flush=True)  # it takes long: tell as it goes
                found.append((f"{ROWS:,} rows: {name}", f"{peak} MB ({seconds:,.0f} s)", "1.5 GB"))
    return found
