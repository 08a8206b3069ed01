"""Every command and snippet of README and docs runs as it stands, but for those whose source says why they cannot."""

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tools.docs import DOCS, PAGES

ROOT = DOCS.parent
LANGUAGES = ("sh", "bash", "console", "python")
WRITTEN = [ROOT / "README.md", *sorted(path for path in DOCS.glob("*.md") if path.name not in PAGES)]
BLOCK = re.compile(r"(?:<!-- not run: (?P<why>[^\n]+) -->\n)?```(?P<language>\w+)\n(?P<code>.*?)^```$", re.M | re.S)


@dataclass(frozen=True)
class Snippet:
    page: Path
    language: str
    code: str
    why_not: str | None


def snippets(page: Path) -> list[Snippet]:
    found = BLOCK.finditer(page.read_text())
    return [Snippet(page, one["language"], one["code"], one["why"]) for one in found if one["language"] in LANGUAGES]


ALL = [snippet for page in WRITTEN for snippet in snippets(page)]
PAGES_WITH = sorted({snippet.page for snippet in ALL if not snippet.why_not and snippet.page.name != "tutorial.md"})
"""The tutorial has a test of its own, which reads what its commands print as well."""


def test_no_snippet_is_missed() -> None:
    fences = "".join(page.read_text() for page in WRITTEN)
    assert len(ALL) == sum(len(re.findall(rf"^```{language}$", fences, re.M)) for language in LANGUAGES)
    assert len([snippet for snippet in ALL if not snippet.why_not]) >= 10
    assert all(len(snippet.why_not) > 10 for snippet in ALL if snippet.why_not)


@pytest.mark.parametrize("page", PAGES_WITH, ids=lambda page: page.name)
def test_what_a_page_shows_works(page: Path, folder: Path, address: str) -> None:
    for snippet in snippets(page):
        if snippet.why_not:
            continue
        code = snippet.code.replace("http://127.0.0.1:8000", address)
        if snippet.language == "python" and "def test_" in code:
            (folder / "test_shown.py").write_text(code)
            ran([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_shown.py"])
        elif snippet.language == "python":
            exec(compile(code, f"{page.name}", "exec"), {"__name__": "__main__"})
        else:
            lines = code.splitlines(keepends=True)
            if snippet.language == "console":  # the rest of it is what is printed
                code = "".join(line[2:] for line in lines if line.startswith("$ "))
            ran(["bash", "-euo", "pipefail", "-c", code.replace("uv run ", "")])


def ran(command: list[str]) -> str:
    """What the command printed. It must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{command[-1]}\n{done.stdout[-800:]}\n{done.stderr[-2000:]}"
    assert not re.search(r'"error": ?\{', done.stdout), done.stdout
    return done.stdout
