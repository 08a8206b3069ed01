"""A server that a dead clef left behind is ended at the next start; nothing else is."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from clef.engines.llama import orphans
from clef.engines.llama.orphans import Identity, Register, identify
from tests.process.waiting import is_alive

SLEEP = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)", "an argument"]


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[str]]:
    """A process that leads its group, as our children do."""
    with subprocess.Popen(SLEEP, stdout=subprocess.PIPE, text=True, process_group=0) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def note(folder: Path, process: "subprocess.Popen[str]", **changes: object) -> Path:
    """The note of a child whose clef is gone, with changes."""
    Register(folder).enter(process.pid, SLEEP)
    path = folder / f"{process.pid}.json"
    content = json.loads(path.read_text()) | {"by": [os.getpid(), "some other start"]} | changes
    path.write_text(json.dumps(content))
    return path


def test_a_server_whose_clef_is_gone_is_ended(tmp_path: Path, sleeper: "subprocess.Popen[str]") -> None:
    path = note(tmp_path, sleeper)
    assert Register(tmp_path).sweep() == [sleeper.pid]
    assert sleeper.wait(5) < 0
    assert not path.exists()


def test_the_server_of_another_clef_that_runs_survives(tmp_path: Path, sleeper: "subprocess.Popen[str]") -> None:
    register = Register(tmp_path)
    register.enter(sleeper.pid, SLEEP)
    assert register.sweep() == []
    assert is_alive(sleeper.pid)
    register.leave(sleeper.pid)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("changes", [{"started": "another time"}, {"argv": ["llama-server", "-m", "x.gguf"]}])
def test_a_stranger_that_was_given_the_pid_survives(
    tmp_path: Path, sleeper: "subprocess.Popen[str]", changes: dict[str, object]
) -> None:
    path = note(tmp_path, sleeper, **changes)
    assert Register(tmp_path).sweep() == []
    assert is_alive(sleeper.pid)
    assert not path.exists()


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"pid": "x"}', '{"pid": 1, "started": "", "argv": [], "by": [1]}']
)
def test_a_note_that_cannot_be_read_ends_nothing_and_is_removed(tmp_path: Path, content: str) -> None:
    path = tmp_path / "1.json"
    path.write_text(content)
    assert Register(tmp_path).sweep() == []
    assert not path.exists()


def test_a_folder_that_is_not_there_or_cannot_be_written_is_no_trouble(
    tmp_path: Path, sleeper: "subprocess.Popen[str]"
) -> None:
    (tmp_path / "file").touch()
    register = Register(tmp_path / "file" / "children")
    register.enter(sleeper.pid, SLEEP)
    assert register.sweep() == []
    register.leave(sleeper.pid)


def test_a_process_is_the_same_after_it_has_become_another_program() -> None:
    shell = ["/bin/sh", "-c", "read line; exec sleep 60"]
    with subprocess.Popen(shell, stdin=subprocess.PIPE, text=True) as process:
        before = identify(process.pid)
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
        while (after := identify(process.pid)) is not None and after.arguments[0] != "sleep":
            pass
        assert before is not None
        assert after is not None
        assert before.started == after.started
        process.kill()
    assert identify(process.pid) is None


def test_without_a_proc_folder_ps_is_asked(
    tmp_path: Path, sleeper: "subprocess.Popen[str]", monkeypatch: pytest.MonkeyPatch
) -> None:
    said = " Mon Nov 30 20:30:00 2026     python -c import time; an argument\n"
    monkeypatch.setattr(orphans, "PROC", tmp_path / "no proc")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 0, said))
    assert identify(7) == Identity(7, "Mon Nov 30 20:30:00 2026", tuple(said.split()[5:]))
