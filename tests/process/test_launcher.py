"""A server never outlives the clef that started it, however that clef ends."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from clef.engines.llama.child import LAUNCHER
from tests.process.waiting import is_alive, pids_in, until, wait_for

pytestmark = pytest.mark.anyio

PARENT = """
import asyncio, os, sys
from pathlib import Path
from clef.engines.llama import child
from clef.engines.llama.supervisor import LlamaEngine
from clef.settings import Settings

async def main():
    tie, model, server, folder, *arguments = sys.argv[1:]
    child.TIED_BY_PIPE = tie == "pipe"
    settings = Settings(model=model, llama_server=server, llama_args=tuple(arguments))
    engine = LlamaEngine(settings, folder=Path(folder))
    await engine.start()
    await engine.wait_ready()
    print("ready", engine.pid, flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


def launch(tie: str, parent: int, *program: str) -> "subprocess.Popen[str]":
    """A program started through the launcher."""
    argv = [sys.executable, "-I", "-S", str(LAUNCHER), tie, str(parent), *program]
    pipe = subprocess.PIPE
    return subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, text=True, process_group=0)


@pytest.fixture(params=["signal", "pipe"])
def tie(request: pytest.FixtureRequest) -> str:
    """How the child is tied to us: as on Linux, and as elsewhere."""
    return str(request.param)


@pytest.fixture
def clef(tie: str, fake_server: Path, model: Path, starts: Path, tmp_path: Path) -> list[str]:
    """A clef to run, that prints "ready" when its server is; options of the fake may follow."""
    arguments = (tie, model, fake_server, tmp_path / "children", "--starts", starts)
    return [sys.executable, "-c", PARENT, *map(str, arguments)]


def wait_ready(parent: "subprocess.Popen[str]") -> int:
    """The pid that such a clef knows its server by."""
    assert parent.stdout is not None
    word, pid = parent.stdout.readline().split()
    assert word == "ready"
    return int(pid)


async def test_a_killed_clef_takes_its_server_with_it(clef: list[str], starts: Path, tmp_path: Path) -> None:
    grandchild = tmp_path / "grandchild"
    faults = ("--ignore-term", "--grandchild", str(grandchild))
    with subprocess.Popen([*clef, *faults], stdout=subprocess.PIPE, text=True) as parent:
        known = {wait_ready(parent), *pids_in(starts)}
        assert all(is_alive(pid) for pid in known)
        parent.send_signal(signal.SIGKILL)
        await until(lambda: not any(is_alive(pid) for pid in known), within_s=2)
    held = pids_in(grandchild)
    if is_alive(held[0]):  # the parent-death signal reaches the server alone
        os.kill(held[0], signal.SIGKILL)


def test_a_ctrl_c_in_the_terminal_does_not_reach_the_server(clef: list[str], starts: Path) -> None:
    with subprocess.Popen(clef, stdout=subprocess.PIPE, text=True) as parent:
        known = {wait_ready(parent), *pids_in(starts)}
        assert os.getpgid(parent.pid) not in {os.getpgid(pid) for pid in known}
        parent.kill()


def test_a_stopped_clef_leaves_no_note_and_a_killed_one_leaves_its_own(clef: list[str], tmp_path: Path) -> None:
    notes = tmp_path / "children"
    for number, left in ((signal.SIGINT, 0), (signal.SIGKILL, 1)):
        with subprocess.Popen(clef, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as parent:
            wait_ready(parent)
            assert len(list(notes.iterdir())) == 1
            parent.send_signal(number)
        assert len(list(notes.iterdir())) == left


def test_a_server_whose_clef_has_gone_already_is_not_started(tmp_path: Path) -> None:
    note = tmp_path / "started"
    with launch("signal", os.getppid(), "/usr/bin/touch", str(note)) as child:
        assert child.wait(5) == 2
    assert not note.exists()


def test_a_program_that_is_not_there_is_named(tie: str) -> None:
    with launch(tie, os.getpid(), "/nowhere/llama-server") as child:
        _, said = child.communicate(timeout=5)
    assert child.returncode == 1
    assert said == "error: cannot run /nowhere/llama-server: No such file or directory\n"


@pytest.mark.parametrize(("how", "end"), [("exit 7", 7), ("kill -SEGV $$", -11), ("kill -KILL $$", -9)])
def test_the_end_of_the_server_is_told_as_it_was(tie: str, how: str, end: int) -> None:
    with launch(tie, os.getpid(), "/bin/sh", "-c", how) as child:
        assert child.wait(5) == end


def test_a_polite_stop_waits_for_the_server_to_end_in_its_own_way(tie: str) -> None:
    ends_in_order = "trap 'echo in order; exit 3' TERM; echo up; while :; do sleep 0.02; done"
    with launch(tie, os.getpid(), "/bin/sh", "-c", ends_in_order) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "up\n"
        os.killpg(child.pid, signal.SIGTERM)
        assert child.wait(5) == 3
        assert child.stdout.readline() == "in order\n"


def test_a_server_whose_clef_closes_the_pipe_is_ended_with_all_it_started() -> None:
    with launch("pipe", os.getpid(), "/bin/sh", "-c", "trap '' TERM; sleep 60 & echo $!; wait") as child:
        assert child.stdin is not None
        assert child.stdout is not None
        sleeper = int(child.stdout.readline())
        child.stdin.close()
        assert child.wait(2) == -signal.SIGKILL
        assert child.stdout.read() == ""  # nobody holds it open any more
    wait_for(lambda: not is_alive(sleeper))  # its end of the pipe closes a moment before it is gone


def test_the_tie_is_to_the_thread_that_started_it() -> None:
    """Why a server is started from the event loop's thread and never from a passing one."""
    children: list[subprocess.Popen[str]] = []
    ready = threading.Event()
    leave = threading.Event()

    def start() -> None:
        children.append(launch("signal", os.getpid(), "/bin/sh", "-c", "echo up; sleep 60"))
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
