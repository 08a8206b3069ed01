"""Runs made over HTTP, for tests that are about what is done with a run and not about how it is made."""

import csv
import io
import json
import urllib.request
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import urlencode

HEADER = ("context", "question", "answer", "options", "channel")


def send(address: str, method: str = "GET", body: bytes | None = None) -> Any:
    """What clef answers, as JSON."""
    request = urllib.request.Request(address, data=body, method=method)
    with urllib.request.urlopen(request) as response:
        return json.load(response)


def start_run(address: str, rows: Iterable[Sequence[str]], *, name: str = "run", header: Sequence[str] = HEADER) -> str:
    """The id of a run of these rows that has just begun."""
    text = io.StringIO()
    csv.writer(text).writerows([header, *rows])
    query = urlencode({"title": name, "cache": "false"})
    return str(send(f"{address}/api/runs?{query}", "POST", text.getvalue().encode())["id"])


def make_run(address: str, rows: Iterable[Sequence[str]], *, name: str = "run", header: Sequence[str] = HEADER) -> str:
    """The id of a run of these rows that has come to its end."""
    run = start_run(address, rows, name=name, header=header)
    with urllib.request.urlopen(f"{address}/api/runs/{run}/events") as events:
        events.read()
    return run


def graded(count: int = 240) -> list[list[str]]:
    """Rows of one question from a top probability of 0.51 to 0.99; of the surer half all are right, of the other half
    every second one, and all rows that came by mail.
    """
    rows = []
    for number in range(count):
        top = 0.51 + 0.48 * number / (count - 1)
        right = number >= count // 2 or number % 2 == 0
        label = "billing" if right else "shipping"
        channel = "mail" if right and number % 3 else "chat"
        rows.append([f"message {number} p={top:.4f}", "Which team?", label, "billing|shipping|returns", channel])
    return rows
