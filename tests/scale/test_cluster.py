"""What is said where there is no Ray, and no cluster."""

import socket
import sys
from pathlib import Path
from typing import Any

import pytest

import clef
from clef.cli.scaled import cluster_of, task_of
from clef.cli.service import EngineOptions, TableSource
from clef.errors import SettingsError
from clef.scale.cluster import Cluster, connected
from clef.scale.seats import Machine, machines_of, next_seat


def test_a_missing_library_is_told_with_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(clef.InputError) as caught, connected(Cluster()):
        pass
    assert caught.value.problems[0].hint == "pip install 'clef[ray]' on every machine of the cluster"


def test_a_cluster_that_is_not_there_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens there
        monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{taken.getsockname()[1]}")
        monkeypatch.setattr("ray.is_initialized", lambda: False)
        with pytest.raises(SettingsError, match="no Ray cluster is reached at 127") as caught, connected(Cluster()):
            pass
    assert "ray start --head" in (caught.value.hint or "")


def test_options_of_a_cluster_need_one() -> None:
    assert cluster_of(None, None, None, None) is None
    with pytest.raises(clef.InputError, match="--workers and --upstreams without --on"):
        cluster_of(None, 2, None, "http://a")
    found = cluster_of("ray", None, None, "http://a, http://b")
    assert found is not None
    assert found.upstreams == ("http://a", "http://b")
    with pytest.raises(clef.InputError, match="no folder"):
        task_of(TableSource(Path("t.csv")), None, EngineOptions(), labelled=True)
    with pytest.raises(clef.InputError, match="--note with --on"):
        task_of(TableSource(Path("t.csv"), note="mine"), "out", EngineOptions(), labelled=True)


def test_workers_are_spread_and_gpus_are_not_given_twice() -> None:
    nodes: list[dict[str, Any]] = [
        {"NodeID": "h", "NodeManagerHostname": "head", "Alive": True, "Resources": {}},
        {"NodeID": "a", "NodeManagerHostname": "a", "Alive": True, "Resources": {"CPU": 8, "GPU": 2}},
        {"NodeID": "b", "NodeManagerHostname": "b", "Alive": True, "Resources": {"CPU": 8, "GPU": 1}},
        {"NodeID": "x", "NodeManagerHostname": "x", "Alive": False, "Resources": {"CPU": 8, "GPU": 8}},
    ]
    machines = machines_of(nodes)

    def placed(gpus: float, count: int) -> str:
        taken: list[str] = []
        for _ in range(count):
            seat: Machine | None = next_seat(machines, taken, gpus)
            taken.append(seat.id if seat else "-")
        return "".join(taken)

    assert sorted(placed(1, 4)) == ["-", "a", "a", "b"]
    assert placed(0.5, 7).count("-") == 1
    assert placed(0, 4) == "abab"
