"""Turns the routes of the app into its OpenAPI description: what they declare, and the errors any may have.

The framework announces 422 for parameters that are wrong; clef answers 400 in its one error shape. Shapes that a
hand-read body declares inside itself become shapes of the whole description.
"""

from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from clef.web.schemas import ErrorResponse

ANY = {
    "401": "An access key is asked for, and none or a wrong one was sent",
    "403": "The Host or the Origin is none that clef answers to",
    "429": "Too many wrong keys from this address; see Retry-After",
}
GIVEN = {"400": "The input cannot be used; every problem is listed"}
BODY = {
    "408": "The client stopped in the middle of its body",
    "413": "Larger than a limit, which the message names",
    "415": "A Content-Type or Content-Encoding that is not taken",
}
FRAMEWORK = ("HTTPValidationError", "ValidationError")
OWN_ERRORS = ("/v1/", "/sign-")
"""Paths whose errors have another shape, which they declare themselves."""


def describe(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI description of an app, made once."""
    if app.openapi_schema is None:
        spec = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
        shapes: dict[str, Any] = spec["components"]["schemas"]
        shapes.setdefault("ErrorResponse", ErrorResponse.model_json_schema(ref_template="#/components/schemas/{model}"))
        for path, operation in _operations(spec):
            _hoist(operation, shapes)
            if not path.startswith(OWN_ERRORS):
                _add_errors(operation)
            elif not path.startswith("/v1/"):
                operation["responses"].pop("422", None)
            operation["responses"] = dict(sorted(operation["responses"].items()))
        for name in FRAMEWORK:
            shapes.pop(name, None)
        app.openapi_schema = spec
    return app.openapi_schema


def _operations(spec: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in spec["paths"].items():
        for operation in methods.values():
            yield path, operation


def _add_errors(operation: dict[str, Any]) -> None:
    """The errors that a route may answer without saying so."""
    responses = operation["responses"]
    responses.pop("422", None)
    has_body = "requestBody" in operation
    said = ANY | (GIVEN if has_body or operation.get("parameters") else {}) | (BODY if has_body else {})
    for status, text in said.items():
        content = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorResponse"}}}
        responses.setdefault(status, {"description": text, "content": content})


def _hoist(operation: dict[str, Any], shapes: dict[str, Any]) -> None:
    """Shapes that a body declares inside itself, put where references look for them."""
    for content in operation.get("requestBody", {}).get("content", {}).values():
        schema = content.get("schema", {})
        shapes.update(schema.pop("$defs", {}))
        if schema.get("title") and "properties" in schema:
            shapes[schema["title"]] = schema
            content["schema"] = {"$ref": f"#/components/schemas/{schema['title']}"}
