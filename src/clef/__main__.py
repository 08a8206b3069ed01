"""Turns `python -m clef` into the `clef` command."""

from clef.cli.main import main

main()
