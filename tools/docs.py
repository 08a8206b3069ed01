"""Turns the settings and the API's own description into docs/settings.md and docs/api.md."""

from pathlib import Path
from typing import Any

from pydantic_core import PydanticUndefined

from clef.settings import PREFIX, SECRETS, Settings
from clef.web.app import create_app

DOCS = Path(__file__).parent.parent / "docs"
NOTE = "Written by `make docs` from the code; a test fails when it is stale.\n"


def settings_page() -> str:
    """docs/settings.md: one line a setting."""
    lines = ["# Settings", "", NOTE]
    lines += ["Each is an environment variable and an option of `clef serve`; the option wins. Keys are read from the"]
    lines += ["environment only, since a command line shows in every process list.", ""]
    lines += ["| variable | option | default | what it does |", "|---|---|---|---|"]
    for name, field in Settings.model_fields.items():
        default = "" if field.default in (None, (), PydanticUndefined) else f"`{field.default}`"
        text = " ".join(str(field.description).split()).replace("|", "\\|")
        option = "" if name in SECRETS else f"`--{name.replace('_', '-')}`"
        lines.append(f"| `{PREFIX}{name.upper()}` | {option} | {default} | {text} |")
    return "\n".join(lines) + "\n"


def api_page() -> str:
    """docs/api.md: every route with its parameters, bodies and errors."""
    spec = create_app(Settings()).openapi()
    shapes: dict[str, Any] = spec["components"]["schemas"]
    lines = ["# HTTP API", "", NOTE]
    lines += ['Every error is `{"error": {code, message, hint, fault, problems}}`; `fault` tells whose it is.', ""]
    for path, methods in spec["paths"].items():
        for method, route in methods.items():
            if path.startswith("/api"):
                lines += _route(f"{method.upper()} {path}", route)
    lines += ["## Shapes", ""]
    for name, shape in sorted(shapes.items()):
        if "Validation" in name:
            continue
        lines += _shape(name, shape)
    return "\n".join(lines).rstrip() + "\n"


def _route(title: str, route: dict[str, Any]) -> list[str]:
    lines = [f"## {title}", "", route.get("description", ""), ""]
    for content in route.get("requestBody", {}).get("content", {}).items():
        lines += [f"Body: `{content[0]}`{_name_of(content[1].get('schema', {}))}", ""]
    if route.get("parameters"):
        lines += ["| parameter | in | type | meaning |", "|---|---|---|---|"]
        for item in route["parameters"]:
            lines.append(
                f"| `{item['name']}` | {item['in']} | {_type(item['schema'])} | {item.get('description', '')} |"
            )
        lines.append("")
    lines += ["| status | body |", "|---|---|"]
    for status, response in route["responses"].items():
        if status == "422":  # what the framework says it would send; ours is 400, in the one error shape
            continue
        contents: dict[str, Any] = response.get("content", {})
        shape: dict[str, Any] = next((content.get("schema", {}) for content in contents.values()), {})
        lines.append(f"| {status} | {response['description']}{_name_of(shape)} |")
    return [*lines, ""]


def _shape(name: str, shape: dict[str, Any]) -> list[str]:
    lines = [f"### {name}", "", shape.get("description", ""), "", "| field | type | meaning |", "|---|---|---|"]
    for field, schema in shape.get("properties", {}).items():
        needed = "" if field in shape.get("required", []) else ", optional"
        text = " ".join(schema.get("description", "").split())
        lines.append(f"| `{field}` | {_type(schema)}{needed} | {text} |")
    return [*lines, ""]


def _name_of(schema: dict[str, Any]) -> str:
    named = schema.get("$ref", "").rpartition("/")[2] or schema.get("title", "")
    return f": {named}" if named and " " not in named else ""


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(part) for part in schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("type", "any"))


PAGES = {"settings.md": settings_page, "api.md": api_page}


def main() -> None:
    """Write every page."""
    for name, page in PAGES.items():
        (DOCS / name).write_text(page())


if __name__ == "__main__":
    main()
