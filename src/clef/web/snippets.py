"""Turns a request into code that asks it of this clef: for a shell, for Python, for JavaScript."""

import json
import shlex
from pprint import pformat
from typing import Any, Literal

from clef.decisions.examples import Request
from clef.decisions.questions import Choice, Question, Score
from clef.decisions.wire import encode
from clef.web.predict import question_json
from clef.web.shell_snippet import command

Language = Literal["curl", "cli", "python", "sdk", "javascript", "jssdk"]
ENVIRON = 'os.environ["CLEF_API_KEY"]'
"""Where Python finds the access key."""
LINE = 100
"""Characters a line of Python may have."""


def snippet(request: Request, language: Language, address: str, *, keyed: bool = False) -> str:
    """Code that asks the request of the clef at an address; where that is `keyed`, with the access key that the
    environment holds, which no code ever shows.
    """
    match language:
        case "curl":
            quoted = shlex.quote(_json(_body(request)))
            key = '  -H "Authorization: Bearer $CLEF_API_KEY" \\\n' if keyed else ""
            return f"curl {shlex.quote(f'{address}/api/predict')} \\\n{key}  --json {quoted}\n"
        case "cli":
            return command(request, question_json)
        case "javascript":
            bearer = ", Authorization: `Bearer ${process.env.CLEF_API_KEY}`" if keyed else ""
            return (
                f"const response = await fetch({json.dumps(f'{address}/api/predict')}, {{\n"
                f'  method: "POST",\n  headers: {{ "Content-Type": "application/json"{bearer} }},\n'
                f"  body: JSON.stringify({_json(_body(request), 2)}),\n}});\n"
                "const { results } = await response.json();\n"
                "for (const { question, prediction, probability } of results) {\n"
                "  console.log(question, prediction, probability);\n}\n"
            )
        case "jssdk":
            js_key = "process.env.CLEF_API_KEY" if keyed else '"any"'
            return (
                'import { TypeSafeClient } from "@typesafe-ai/sdk";\n\n'
                f"const client = new TypeSafeClient({{ apiKey: {js_key}, baseURL: {json.dumps(address)} }});\n"
                f"const {{ answers }} = await client.systemOne({_json(encode(request))}, {{ timeout: 60_000 }});\n"
                "for (const [name, answer] of Object.entries(answers)) {\n  console.log(name, answer);\n}\n"
            )
        case "python":
            return _python(request, address, keyed)
        case "sdk":
            return _python_sdk(request, address, keyed)


def _python(request: Request, address: str, keyed: bool) -> str:
    asked = ",\n".join(_typed(question) for question in request.questions)
    images = f"images = {_literal(list(request.images))}\n" if request.images else ""
    given = ", images=images" if request.images else ""
    key = f", upstream_key={ENVIRON}" if keyed else ""
    head = "import os\n\n" if keyed else ""
    return (
        f"{head}import clef\n\nstate = {_literal(request.state)}\n{images}questions = [\n{_indented(asked)},\n]\n"
        f"answers = clef.decide(\n    state, questions{given}, engine='upstream', upstream={address!r},"
        f" upstream_model='clef'{key}\n)\n"
        "for answer in answers:\n    print(answer.prediction, answer.top_probability)\n"
    )


def _python_sdk(request: Request, address: str, keyed: bool) -> str:
    wire = encode(request)
    images = f"images = {_literal(wire['images'])}\n" if request.images else ""
    given = ', extra_body={"images": images}' if request.images else ""
    head = "import os\n\n" if keyed else ""
    return (
        f"{head}from typesafe_sdk import TypeSafeClient\n\nstate = {_literal(wire['state'])}\n{images}"
        f"questions = {_literal(wire['questions'])}\n"
        f"client = TypeSafeClient(api_key={ENVIRON if keyed else repr('any')}, base_url={address!r})\n"
        f"reply = client.system_one(state, questions{given}, timeout=60)\n"
        "for name, answer in reply.answers.items():\n    print(name, answer)\n"
    )


def _body(request: Request) -> dict[str, Any]:
    """The request as POST /api/predict takes it."""
    body: dict[str, Any] = {
        "state": request.state,
        "questions": [question_json(question) for question in request.questions],
    }
    return body | ({"images": list(request.images)} if request.images else {})


def _json(value: Any, indent: int = 0) -> str:
    """JSON on many lines, those after the first moved in."""
    return json.dumps(value, ensure_ascii=False, indent=2).replace("\n", "\n" + " " * indent)


def _typed(question: Question) -> str:
    """A question as a call of the package's own class."""
    instructions = _literal(question.instructions)
    match question:
        case Choice():
            described = {option.name: option.description for option in question.options}
            options: Any = described if any(described.values()) else list(described)
            return f"clef.Choice(\n{_indented(instructions)},\n{_indented(_literal(options))},\n)"
        case Score():
            return f"clef.Score(\n{_indented(instructions)},\n{_indented(_literal(list(question.levels)))},\n)"
    sides = {"true": question.true, "false": question.false}
    said = "".join(f", {side}={_literal(text)}" for side, text in sides.items() if text)
    return f"clef.Noul({instructions}{said})"


def _literal(value: Any) -> str:
    return pformat(value, width=LINE, sort_dicts=False, compact=False)


def _indented(text: str) -> str:
    """Four spaces before each line; a literal has no line end inside a text, so that nothing in it moves."""
    return "    " + text.replace("\n", "\n    ")
