"""Measures every budget and prints one table: `make bench`."""

import os
import platform

from rich.console import Console
from rich.table import Table

from bench import hop, runs, startup


def main() -> None:
    """Measure and print."""
    table = Table("what", "measured", "budget", title=f"{platform.machine()}, {os.cpu_count()} cores")
    for module in (startup, hop, runs):
        for row in module.measure():
            table.add_row(*row)
    Console().print(table)


main()
