"""The tutorial, word for word: its commands run in order, and print what it says they print."""

import re
from pathlib import Path

from tests.snippets.test_snippets import ran
from tools.docs import DOCS

BLOCK = re.compile(r"(<!-- not run: [^\n]+ -->\n)?```(bash|text|csv|yaml)\n(.*?)^```$", re.M | re.S)


def test_every_command_prints_what_the_tutorial_says(folder: Path, address: str) -> None:
    files = "\n".join(path.read_text() for path in sorted((DOCS / "tutorial").iterdir()))
    last, compared = "", 0
    for not_run, language, code in BLOCK.findall((DOCS / "tutorial.md").read_text()):
        if language == "bash" and not not_run:
            command = code.replace("uv run ", "").replace("http://127.0.0.1:8000", address)
            last = ran(["bash", "-euo", "pipefail", "-c", command])
            written = re.search(r"--out (\S+\.csv)", code)
            last += (folder / written[1]).read_text() if written else ""
            if "x_policy" in code:
                assert re.search(r'"x_gate": *{"team": *{"decision": *"act"', last), last
                compared += 1
        elif language != "bash":
            assert [line for line in code.splitlines() if line not in last + files] == []
            compared += 1
    assert compared == 8
