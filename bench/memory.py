"""Memory of the server through a whole run on the built-in engine: `python -m bench memory`, `CLEF_BENCH_ROWS` rows.

It takes a quarter of an hour for a million rows, so `make bench` leaves it out.
"""

import json
import os
import tempfile
import time
import urllib.request
from pathlib import Path

from bench.servers import clef
from clef.running import find

ROWS = int(os.environ.get("CLEF_BENCH_ROWS", "1000000"))
WORDS = "refund me twice please the parcel arrived broken and nobody answers my letters since the third of May"


def table(path: Path) -> None:
    """A labelled CSV of ROWS rows, states of about 130 characters, with one extra column."""
    with path.open("w") as file:
        file.write("context,question,answer,options,source\n")
        for n in range(ROWS):
            state = f"message {n}: {WORDS[n % 40 :]} {WORDS[: n % 40]}"
            file.write(f"{state},Which team?,billing,billing|technical,{('mail', 'chat')[n % 2]}\n")


def peak_mb(pid: int) -> int:
    """The most memory that a process has held so far, in MB of 10^6 bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (found,) = (line for line in lines if line.startswith("VmHWM"))
    return int(found.split()[1]) * 1024 // 10**6


def fetch(address: str, body: Path | None = None) -> bytes:
    """What an address answers, the last line of it where there are many; a file as the body makes it a POST."""
    data = body.read_bytes() if body else None
    with urllib.request.urlopen(urllib.request.Request(address, data=data), timeout=7200) as response:
        last = b""
        for line in response:
            last = line
    return last


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
            started = time.perf_counter()
            run = json.loads(fetch(f"{page}/api/runs?cache=false", folder / "t.csv"))["id"]
            parts = {"the table read and kept": peak_mb(running.pid)}
            fetch(f"{page}/api/runs/{run}/events")
            seconds = time.perf_counter() - started
            parts[f"every row answered, {ROWS / seconds:,.0f} rows/s"] = peak_mb(running.pid)
            fetch(f"{page}/api/runs/{run}")
            parts["summarised"] = peak_mb(running.pid)
            fetch(f"{page}/api/runs/{run}/export?format=csv")
            parts["exported"] = peak_mb(running.pid)
            for part in ("calibration", "risk", "classes", "slices", "suspects"):
                fetch(f"{page}/api/runs/{run}/measures/{part}")
                parts[f"measured: {part}"] = peak_mb(running.pid)
            fetch(f"{page}/api/runs/{run}/report")
            parts["its report written"] = peak_mb(running.pid)
            again = json.loads(fetch(f"{page}/api/runs", folder / "t.csv"))["id"]
            fetch(f"{page}/api/runs/{again}/events")
            fetch(f"{page}/api/compare?run={run}&run={again}")
            parts["two such runs compared"] = peak_mb(running.pid)
            fetch(f"{page}/compare?run={run}&run={again}")
            parts["the page of their comparison"] = peak_mb(running.pid)
    found += [(f"{ROWS:,} rows: {name}", f"{peak} MB", "1.5 GB") for name, peak in parts.items()]
    return found
