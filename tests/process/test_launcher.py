"""A server never outlives the clef that started it, however that clef ends."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from clef.engines.llama.child import LAUNCHER
from tests.process.waiting import is_alive, pids_in, until

pytestmark = pytest.mark.anyio

PARENT = """
import asyncio, sys
from pathlib import Path
from clef.engines.llama.supervisor import LlamaEngine
from clef.settings import Settings

async def main():
    model, server, folder, *arguments = sys.argv[1:]
    settings = Settings(model=model, llama_server=server, llama_args=tuple(arguments))
    engine = LlamaEngine(settings, folder=Path(folder))
    await engine.start()
    await engine.wait_ready()
    print("ready", flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


def launch(parent: int, *program: str) -> "subprocess.Popen[str]":
    """A program started through the launcher."""
    argv = [sys.executable, "-I", "-S", str(LAUNCHER), str(parent), *program]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def clef(fake_server: Path, model: Path, starts: Path, tmp_path: Path) -> list[str]:
    """A clef to run, that prints "ready" when its server is; options of the fake may follow."""
    return [sys.executable, "-c", PARENT, *map(str, (model, fake_server, tmp_path / "children", "--starts", starts))]


async def test_a_killed_clef_takes_its_server_with_it(clef: list[str], starts: Path) -> None:
    with subprocess.Popen([*clef, "--ignore-term"], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "ready\n"
        server = pids_in(starts)[0]
        assert is_alive(server)
        parent.send_signal(signal.SIGKILL)
        await until(lambda: not is_alive(server), within_s=2)


def test_a_ctrl_c_in_the_terminal_does_not_reach_the_server(clef: list[str], starts: Path) -> None:
    with subprocess.Popen(clef, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "ready\n"
        assert os.getpgid(pids_in(starts)[0]) != os.getpgid(parent.pid)
        parent.kill()


def test_a_stopped_clef_leaves_no_note_and_a_killed_one_leaves_its_own(clef: list[str], tmp_path: Path) -> None:
    notes = tmp_path / "children"
    for number, left in ((signal.SIGINT, 0), (signal.SIGKILL, 1)):
        with subprocess.Popen(clef, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as parent:
            assert parent.stdout is not None
            assert parent.stdout.readline() == "ready\n"
            assert len(list(notes.iterdir())) == 1
            parent.send_signal(number)
        assert len(list(notes.iterdir())) == left


def test_a_server_whose_clef_has_gone_already_is_not_started(tmp_path: Path) -> None:
    note = tmp_path / "started"
    with launch(os.getppid(), "/usr/bin/touch", str(note)) as child:
        assert child.wait(5) == 2
    assert not note.exists()


def test_a_program_that_is_not_there_is_named() -> None:
    with launch(os.getpid(), "/nowhere/llama-server") as child:
        _, said = child.communicate(timeout=5)
    assert child.returncode == 1
    assert said == "error: cannot run /nowhere/llama-server: No such file or directory\n"


def test_the_tie_is_to_the_thread_that_started_it() -> None:
    """Why a server is started from the event loop's thread and never from a passing one."""
    children: list[subprocess.Popen[str]] = []
    ready = threading.Event()
    leave = threading.Event()

    def start() -> None:
        children.append(launch(os.getpid(), "/bin/sh", "-c", "echo up; sleep 60"))
        assert children[0].stdout is not None
        children[0].stdout.readline()
        ready.set()
        leave.wait(5)

    thread = threading.Thread(target=start)
    thread.start()
    assert ready.wait(5)
    with children[0] as child:
        assert child.poll() is None
        leave.set()
        thread.join(5)
        assert child.wait(5) == -signal.SIGKILL
