"""`clef doctor` as a person and a script use it."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from clef.cli.doctor import doctor

app = typer.Typer()
app.command()(doctor)


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("CLEF_UPSTREAM", "http://127.0.0.1:9")
    monkeypatch.setattr("clef.engines.llama.command.DEFAULT_PLACE", "/nowhere")
    for name in ("HSA_OVERRIDE_GFX_VERSION", "CUDA_VISIBLE_DEVICES", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def test_findings_are_said_in_words_with_what_to_do() -> None:
    result = CliRunner().invoke(app, [])
    assert result.exit_code == 1
    assert "look A decision: sparrow-nano-general-v1.1 answers in" in result.stdout
    assert "→ For real answers" in result.stdout


def test_a_script_gets_json_and_the_same_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEF_LLAMA_SERVER", "/nowhere/llama-server")
    result = CliRunner().invoke(app, ["--json", "--wait", "5"])
    report = json.loads(result.stdout)
    assert result.exit_code == report["exit_code"] == 2
    levels = {finding["check"]: finding["level"] for finding in report["findings"]}
    assert levels["server"] == "fail"
