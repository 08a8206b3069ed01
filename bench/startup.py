"""From the start of `clef` to a served page, with the built-in engine."""

import statistics
import subprocess
import sys
import time
import urllib.request

from bench.servers import free_port

RUNS = 7
BUDGET_S = 1.0


def one_start() -> float:
    """Seconds from starting the process to the whole Ask page."""
    port = free_port()
    started = time.perf_counter()
    command = [sys.executable, "-m", "clef", "serve", "--port", str(port), "--engine", "builtin"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
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


def bare_import() -> float:
    """Seconds that Python takes to import the web framework alone, the floor of any start."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import fastapi, uvicorn, jinja2"], check=True)
    return time.perf_counter() - started


def measure() -> list[tuple[str, str, str]]:
    """Rows of the table: what, measured, budget."""
    one_start()
    pairs = [(one_start(), bare_import()) for _ in range(RUNS)]
    start = statistics.median(first for first, _ in pairs)
    ratio = statistics.median(first / floor for first, floor in pairs)
    return [
        ("start to served page, built-in engine", f"{start:.2f} s (median of {RUNS})", f"{BUDGET_S:.1f} s"),
        ("  against importing fastapi, uvicorn and jinja2 alone", f"{ratio:.2f} x", ""),
    ]
