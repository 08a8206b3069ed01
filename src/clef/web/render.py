"""Turns templates and what they show into pages and fragments, compressed, with nothing of a person's text as code."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import Response

from clef import __version__
from clef.decisions.questions import as_text
from clef.errors import ClefError, InputError
from clef.web import words
from clef.web.assets import compress, joint_url, static_url
from clef.web.security import SESSION
from clef.web.standing import standing_of


async def page(request: Request, name: str, status: int = 200, **context: Any) -> Response:
    """A whole page in its frame."""
    engine = await request.app.state.engine.status()
    context |= {"facts": engine.facts, "standing": standing_of(engine)}
    return fragment(request, name, status, path=request.url.path, signed_in=SESSION in request.scope, **context)


def fragment(request: Request, name: str, status: int = 200, **context: Any) -> Response:
    """A part of a page."""
    response = HTMLResponse(render(name, **context), status, {"cache-control": "no-cache"})
    return compress(response, request.headers)


def render(name: str, **context: Any) -> str:
    """A template filled in; half a character, which no page can carry, becomes a question mark."""
    return _templates().get_template(name).render(context).encode("utf-8", "replace").decode()


def problems(request: Request, error: ClefError, *, in_file: bool = False) -> Response:
    """An error as a fragment that names each problem and the field it is in, or its line in a file."""
    found = error.problems if isinstance(error, InputError) else ()
    return fragment(request, "problems.html", error.status, error=error, problems=found, in_file=in_file)


def coded(text: str) -> Markup:
    """A text as HTML, with what stands in backticks as code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # one that has no partner is a character like any other
        return escape(text)
    marked = (Markup("<code>{}</code>").format(part) if at % 2 else escape(part) for at, part in enumerate(parts))
    return Markup("").join(marked)


def _query(base: Mapping[str, Any], changes: Mapping[str, Any]) -> str:
    """A query string; a list is said several times, and what is None or usual (all, page 1) is not said."""
    said = {name: value for name, value in {**base, **changes}.items() if value not in (None, "all")}
    return urlencode({name: value for name, value in said.items() if (name, value) != ("page", 1)}, doseq=True)


@lru_cache(maxsize=1)
def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("clef.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(words=words, static_url=static_url, joint_url=joint_url, version=__version__)
    environment.filters.update(as_text=as_text, coded=coded, urlencode_many=_query)
    return environment
