"""Where the docs suppose their reader to be: a folder with a table and questions, and a clef that runs."""

import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import serving
from tools.docs import DOCS

TABLE = "context,question,answer,options\n" + "".join(
    f"I was charged {n} times please refund me,Which team?,billing,billing|technical\n"
    f"error {n}: the app crashes,Which team?,technical,billing|technical\n"
    for n in range(15)
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as the docs suppose it: a table, and the question file of docs/question-files.md."""
    (tmp_path / "support.csv").write_text(TABLE)
    example = re.search(r"```yaml\n(.*?)^```$", (DOCS / "question-files.md").read_text(), re.M | re.S)
    assert example is not None
    (tmp_path / "questions.yaml").write_text(example[1])
    shutil.copytree(DOCS / "tutorial", tmp_path / "docs" / "tutorial")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLEF_ENGINE", "builtin")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


@pytest.fixture
def address() -> Iterator[str]:
    """A clef that runs; it has its own engine, and the commands of a page go through it."""
    with serving() as running:
        yield running.url
