"""Turns a request into a `clef ask` command that a shell takes as it is.

Questions go into options where these can say them in this order, and else, like images, into files beside the command.
"""

import json
import shlex
from collections.abc import Callable, Iterator
from typing import Any

from clef.decisions.examples import Request
from clef.decisions.questions import Choice, Noul, Question, Score

ORDER = {"choice": 0, "noul": 1, "score": 2}
"""The order in which `clef ask` asks what its options say."""


def command(request: Request, plain: Callable[[Question], dict[str, Any]]) -> str:
    """The command, with the files it needs written first. `plain` makes the JSON of a question."""
    before, options = [], []
    for place, image in enumerate(request.images, 1):
        kind, _, content = image.removeprefix("data:image/").partition(";base64,")
        name = f"image-{place}.{kind.replace('jpg', 'jpeg')}"
        before.append(_file(f"base64 -d > {name}", content))
        options.append(f"--image {name}")
    flags = list(_flags(request.questions))
    if len(flags) == len(request.questions):
        options += flags
    else:
        listed = json.dumps([plain(question) for question in request.questions], ensure_ascii=False, indent=2)
        before.append(_file("cat > questions.json", listed))
        options.append("--questions questions.json")
    state, is_text = request.state, isinstance(request.state, str)
    text = str(state) if is_text else json.dumps(state, ensure_ascii=False)
    options.append("--as text" if is_text else "--as json")
    if text.startswith("@") or text == "-":  # an argument like this names a file
        before.append(_file("cat > state.txt", text))
        options.append("--file state.txt")
    else:
        options.append(f"-- {shlex.quote(text)}")
    return "".join(before) + "clef ask " + " \\\n  ".join(options) + "\n"


def _file(writes: str, content: str) -> str:
    """A command that writes a file with this content, whatever lines it has."""
    end = "END"
    while end in content.splitlines():
        end += "_"
    return f"{writes} <<'{end}'\n{content}\n{end}\n"


def _flags(questions: tuple[Question, ...]) -> Iterator[str]:
    """An option a question; fewer where one cannot be said by an option."""
    if [ORDER[question.type] for question in questions] != sorted(ORDER[question.type] for question in questions):
        return
    for question in questions:
        text = _said(question)
        if text is not None:
            yield f"--{question.type} {shlex.quote(text)}"


def _said(question: Question) -> str | None:
    """A question as the text of its option; None where that would be read as another question."""
    asked = question.instructions
    if not isinstance(asked, str) or asked != asked.strip():
        return None
    match question:
        case Noul():
            return None if question.true or question.false else asked
        case Choice():
            parts = [_option(option.name, option.description) for option in question.options]
        case Score():
            parts = [level if isinstance(level, str) else None for level in question.levels]
    if any(part is None or part != part.strip() or "|" in part or "=" in part for part in parts):
        return None
    return f"{asked}={'|'.join(part or '' for part in parts)}"


def _option(name: str, description: Any) -> str | None:
    if ": " in name or (description is not None and not isinstance(description, str)):
        return None
    return f"{name}: {description}" if description else name
