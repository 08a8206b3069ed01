"""Code that the page gives to copy, run as a person would run it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from clef.decisions.examples import Request
from clef.decisions.questions import Choice, Noul, Score
from clef.decisions.wire import encode
from clef.engines.upstream import UpstreamEngine
from clef.web.snippets import Language, snippet
from tests.fakes.pictures import png, url
from tests.fakes.system_one import SystemOne
from tests.http.conftest import Client, served
from tests.needing import ROOT, need, without

PNG = url(png(2, 2))
ASKED = Request(
    [{"role": "user", "content": 'it\'s \\ "new"\n$HOME `id` !x'}, {"role": "assistant", "content": "Où? 👍"}],
    (Choice("Où?", {"thé": "leaf", "eau": None}), Noul("Hot?", true="steams"), Score("How?", ["a'", 'b"'])),
    (PNG, PNG),
)
TEXT = Request("-a $tate's", (Choice("Who=?", ["a", "b c"]), Noul("Is it?"), Score("How?", ["low", "high"])))
FILED = Request("@home\nEND\nagain", (Score("a|b", ["1|2", "3"]), Choice("b", {"x: y": None, "z": None})))
RUNNERS = {
    "cli": ["bash", "-c"],
    "curl": ["bash", "-c"],
    "python": [sys.executable, "-c"],
    "sdk": [sys.executable, "-c"],
    "javascript": ["node", "--input-type=module", "-e"],
    "jssdk": ["node", "--input-type=module", "-e"],
}


@pytest.fixture
def address(server: SystemOne) -> Iterator[str]:
    server.sees = True
    with served(UpstreamEngine(server.address)) as found:
        yield found


def missing(language: str) -> str | None:
    """What this machine lacks to run a language; None where nothing."""
    return without(RUNNERS[language][0], *["curl"] * (language == "curl"), npm_sdk=language == "jssdk")


@pytest.mark.parametrize("language", get_args(Language))
def test_code_that_was_copied_runs_and_asks_just_the_same(
    address: str, server: SystemOne, language: Language, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need(missing(language))
    monkeypatch.setenv("CLEF_ENGINE", "upstream")
    monkeypatch.setenv("CLEF_UPSTREAM", server.address)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    if language == "jssdk":
        (tmp_path / "node_modules").symlink_to(ROOT / "node_modules")
    for request in (TEXT, FILED, ASKED) if language == "cli" else (TEXT, ASKED):
        code = snippet(request, language, address)
        command = [*RUNNERS[language], code]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        sent = {name: server.bodies[-1].get(name) for name in ("state", "questions", "images")}
        assert sent == {"images": None} | encode(request)
    assert "0.6" in done.stdout


@pytest.mark.parametrize("language", [name for name in get_args(Language) if name != "cli"])
def test_code_for_a_clef_with_keys_takes_its_key_from_the_environment(
    server: SystemOne, language: Language, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need(missing(language))
    key = "a-key-of-many-characters"
    monkeypatch.chdir(tmp_path)
    if language == "jssdk":
        (tmp_path / "node_modules").symlink_to(ROOT / "node_modules")
    with served(UpstreamEngine(server.address), api_key=key) as address:
        code = snippet(TEXT, language, address, keyed=True)
        assert key not in code
        monkeypatch.setenv("CLEF_API_KEY", key)
        command = [*RUNNERS[language], code]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "0.6" in done.stdout


def test_the_page_gives_such_code_where_keys_are_asked_for(client_of: Client, tmp_path: Path) -> None:
    key = "a-key-of-many-characters"
    form = '{"state": "x", "as": "text", "questions": [{"type": "noul", "question": "Is it?"}]}'
    bearer = {"Authorization": f"Bearer {key}"}
    code = client_of(api_key=key).post("/ask/code?language=curl", content=form, headers=bearer)
    assert "$CLEF_API_KEY" in code.text
    assert "$CLEF_API_KEY" not in client_of(data_dir=tmp_path).post("/ask/code?language=curl", content=form).text
