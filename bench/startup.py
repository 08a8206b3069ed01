"""From the start of `clef` to a served page, with the built-in engine.

Python compiles what it imports at the first start and keeps that, so a person has two kinds of start: the first one
after the install, and all others. The budget is for the others. Both are measured whatever the machine's own settings
say (some forbid Python to keep anything), with what is compiled in a folder of this measurement.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from bench.servers import free_port

RUNS = 7
FIRST_RUNS = 3
BUDGET_S = 1.0


def environment(folder: Path) -> dict[str, str]:
    """That of a person who uses clef: what Python compiles is kept, here in `folder`, and so are runs."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": str(folder / "compiled"), "CLEF_DATA_DIR": str(folder / "data")}


def one_start(folder: Path) -> float:
    """Seconds from starting the process to the whole Ask page."""
    port = free_port()
    started = time.perf_counter()
    command = [sys.executable, "-m", "clef", "serve", "--port", str(port), "--engine", "builtin"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment(folder)) as process:
        try:
            while True:
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as page:
                        page.read()
                    return time.perf_counter() - started
                except OSError:
                    time.sleep(0.005)
        finally:
            process.terminate()


def bare_import(folder: Path) -> float:
    """Seconds that Python takes to import the web framework alone, the floor of any start."""
    started = time.perf_counter()
    command = [sys.executable, "-c", "import fastapi, uvicorn, jinja2"]
    subprocess.run(command, check=True, env=environment(folder))
    return time.perf_counter() - started


def first_start() -> float:
    """Seconds of a start that finds nothing compiled but Python's own library."""
    with tempfile.TemporaryDirectory() as folder:
        bare = [sys.executable, "-c", "import asyncio, email.message, http.server, inspect, logging, sqlite3, ssl"]
        subprocess.run(bare, check=True, env=environment(Path(folder)))
        return one_start(Path(folder))


def measure() -> list[tuple[str, str, str]]:
    """Rows of the table: what, measured, budget."""
    first = statistics.median(first_start() for _ in range(FIRST_RUNS))
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        one_start(place)
        bare_import(place)
        pairs = [(one_start(place), bare_import(place)) for _ in range(RUNS)]
    start = statistics.median(first for first, _ in pairs)
    ratio = statistics.median(first / floor for first, floor in pairs)
    return [
        ("start to served page, built-in engine, every start but the first", f"{start:.2f} s", f"{BUDGET_S:.1f} s"),
        ("  the first after an install, which compiles what it imports", f"{first:.2f} s", ""),
        ("  against importing fastapi, uvicorn and jinja2 alone", f"{ratio:.2f} x", ""),
    ]
