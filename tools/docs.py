"""Turns the settings and the API's own description into docs/settings.md, docs/api.md and docs/cli.md."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from pydantic_core import PydanticUndefined

from clef.cli.main import COMMANDS, Lazy
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
    lines += ['Errors of `/api` are `{"error": {code, message, hint, fault, problems}}`; `fault` tells whose they are.']
    lines += [
        "Those of `/v1` are in the shapes of its protocols. Examples are what the built-in model answers.",
        "",
    ]
    for path, methods in spec["paths"].items():
        for method, route in methods.items():
            lines += _route(f"{method.upper()} {path}", route)
    lines += ["## Shapes", ""]
    for name, shape in sorted(shapes.items()):
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
        contents: dict[str, Any] = response.get("content", {})
        shape: dict[str, Any] = next((content.get("schema", {}) for content in contents.values()), {})
        lines.append(f"| {status} | {response['description']}{_name_of(shape)} |")
    return [*lines, "", *_examples(route)]


def _examples(route: dict[str, Any]) -> list[str]:
    """A request and its reply."""
    lines = []
    for kind, content in route.get("requestBody", {}).get("content", {}).items():
        if "example" in content:
            is_form = kind == "application/x-www-form-urlencoded"
            asked = urlencode(content["example"], safe="/") if is_form else content["example"]
            lines += ["A request:", "", *_fenced(asked)]
    for status, response in route["responses"].items():
        for content in response.get("content", {}).values():
            if "example" in content:
                lines += [f"Its reply, {status}:" if lines else f"A reply, {status}:", "", *_fenced(content["example"])]
        headers = [f"{name}: {header['example']}" for name, header in response.get("headers", {}).items()]
        if headers:
            lines += [f"The headers of {status}:", "", *_fenced("\n".join(headers))]
    return lines


def _fenced(example: Any) -> list[str]:
    if isinstance(example, str):
        return ["```text", *example.splitlines(), "```", ""]
    return ["```json", *json.dumps(example, indent=2, ensure_ascii=False).splitlines(), "```", ""]


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


def cli_page() -> str:
    """docs/cli.md: every command with its arguments and options."""
    lines = ["# Command line", "", NOTE]
    lines += ["| exit code | meaning |", "|---|---|", "| 0 | done |", "| 1 | a bar was missed, or a gate failed |"]
    lines += ["| 2 | the input, an option or a setting cannot be used |", "| 3 | the engine did not answer |"]
    lines += ["| 130 | interrupted |", ""]
    lines += [
        "Results go to standard output, progress and errors to standard error; progress is shown on a terminal only,"
    ]
    lines += ["colours as well, and never where `NO_COLOR` is set. With `--json` results and errors are JSON.", ""]
    lines += [
        "Commands find a clef that serves the same data folder (`CLEF_DATA_DIR`) and go through it, with its engine and"
    ]
    lines += ["its runs. Where none does, they open what they need and close it. `clef` alone is `clef serve`.", ""]
    for name, entry in COMMANDS.items():
        lines += _command(f"clef {name}", Lazy(name, entry).real())
    return "\n".join(lines).rstrip() + "\n"


def _command(path: str, command: Any) -> list[str]:
    """One command, or a group with all of its own."""
    text = " ".join((command.help or "").split())
    lines = [f"## {path}", "", text, ""]
    if path == "clef serve":
        return [*lines, "Every [setting](settings.md) is an option.", ""]
    rows = [_parameter(one) for one in command.params if not getattr(one, "hidden", False) and one.name != "help"]
    if rows:
        lines += ["| option | meaning |", "|---|---|", *rows, ""]
    for name, one in getattr(command, "commands", {}).items():
        lines += _command(f"{path} {name}", one)
    return lines


def _parameter(one: Any) -> str:
    names = ", ".join(f"`{name}`" for name in (*one.opts, *one.secondary_opts))
    if one.param_type_name == "argument":
        names = f"`{one.name.upper()}`"
    text = " ".join((getattr(one, "help", None) or "").split()).replace("|", "\\|")
    return f"| {names} | {text} |"


PAGES = {"settings.md": settings_page, "api.md": api_page, "cli.md": cli_page}


def main() -> None:
    """Write every page."""
    for name, page in PAGES.items():
        (DOCS / name).write_text(page())


if __name__ == "__main__":
    main()
