"""Turns the form of a question file into its JSON schema, for editors and for checks."""

from importlib.resources import files

from clef.cli.terminal import say


def schema() -> None:
    """Print the JSON schema of question files, for editors. A running clef serves it at /schemas/questions.json."""
    say(files("clef.tables").joinpath("questions.schema.json").read_text(encoding="utf-8").rstrip())
