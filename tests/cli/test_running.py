"""How commands find the clef that serves their data folder, and when they do the work themselves."""

import json
import os
import signal
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from clef.running import NAME, Running, announced, announcement, find
from tests.cli.conftest import Cli, serving
from tests.cli.test_serve import started

TABLE = "context,question,answer,options\nrefund me,Which team?,billing,billing|technical\n"


def test_a_clef_that_serves_is_found_by_its_file_which_only_its_owner_reads(data_dir: Path) -> None:
    with started("serve", "--port", "0", "--engine", "builtin") as (process, address):
        path = data_dir / NAME
        urllib.request.urlopen(f"{address}/api/health", timeout=10).close()
        found = find(data_dir)
        assert found is not None
        assert (found.url, found.pid) == (address, process.pid)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert len(found.token) > 30
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=10)
    assert not path.exists()


def test_a_file_of_a_clef_that_died_is_not_believed(data_dir: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    (data_dir / NAME).write_text(json.dumps(asdict(replace(announcement("127.0.0.1", 1), pid=gone.pid))))
    assert find(data_dir) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"url": 1, "pid": "x", "started": 1, "token": 1}'])
def test_a_damaged_file_is_nobody(data_dir: Path, text: str) -> None:
    (data_dir / NAME).write_text(text)
    assert find(data_dir) is None


def test_somebody_else_at_the_address_is_nobody(data_dir: Path, cli: Cli, tmp_path: Path) -> None:
    with announced(data_dir, announcement("127.0.0.1", 1)):  # this process lives, and nothing answers there
        assert find(data_dir) is None
        (tmp_path / "t.csv").write_text(TABLE)
        done = cli("eval", str(tmp_path / "t.csv"), "--engine", "builtin")
        assert (done.code, done.err) == (0, "")


def test_the_file_of_a_later_clef_is_left_alone(data_dir: Path) -> None:
    first, second = announcement("127.0.0.1", 1), announcement("127.0.0.1", 2)
    with announced(data_dir, first), announced(data_dir, second):
        (data_dir / NAME).write_text(json.dumps(asdict(second)))
    (data_dir / NAME).unlink(missing_ok=True)
    with announced(data_dir, first):
        (data_dir / NAME).write_text(json.dumps(asdict(second)))
    assert Running(**json.loads((data_dir / NAME).read_text())) == second


def test_a_listener_to_all_is_reached_by_loopback() -> None:
    assert announcement("0.0.0.0", 8000).url == "http://127.0.0.1:8000"
    assert announcement("::", 8000).url == "http://[::1]:8000"


def test_the_run_of_a_command_is_kept_by_the_clef_that_serves(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TABLE)
    with serving() as running:
        done = cli("eval", str(tmp_path / "t.csv"), "--json")
        assert done.code == 0, done.err
        listed = json.loads(cli("runs", "list", "--json").out)
    assert [run["id"] for run in listed] == [json.loads(done.out)["run"]]
    assert listed == json.loads(cli("runs", "list", "--json").out)  # and stays when it has gone
    assert running.pid == os.getpid()


def test_another_engine_than_that_of_the_clef_that_serves_is_refused_with_the_way_out(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TABLE)
    with serving():
        assert cli("eval", str(tmp_path / "t.csv"), "--engine", "builtin").code == 0
        done = cli("eval", str(tmp_path / "t.csv"), "--engine", "llama", "--model", "other.gguf")
    assert done.code == 2
    assert "--engine llama --model other.gguf" in done.err
    assert "CLEF_DATA_DIR" in done.err


def test_a_clef_that_asks_for_a_key_lets_this_users_commands_in(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t.csv").write_text(TABLE)
    monkeypatch.setenv("CLEF_API_KEY", "a-key-that-is-long-enough-to-be-one")
    with serving() as running:
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{running.url}/api/runs", timeout=10)
        monkeypatch.delenv("CLEF_API_KEY")  # a command needs none of its own
        done = cli("eval", str(tmp_path / "t.csv"), "--json")
        assert (done.code, done.err) == (0, "")
        assert cli("ask", "refund me", "--noul", "Angry?").code == 0
        request = urllib.request.Request(
            f"{running.url}/api/runs", headers={"Authorization": f"Bearer {running.token}"}
        )
        with urllib.request.urlopen(request, timeout=10) as listed:
            assert json.loads(listed.read())["runs"][0]["id"] == json.loads(done.out)["run"]
