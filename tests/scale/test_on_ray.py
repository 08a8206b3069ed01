"""Many machines, on a cluster of two nodes: what one machine would give, whatever is lost on the way."""

import asyncio
import itertools
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from aiohttp import web

import clef
from clef.scale.cluster import Cluster
from clef.scale.on_ray import evaluate_on_ray
from tests.fakes.system_one import SystemOne, system_one
from tests.scale.conftest import by_text, slow_answer
from tests.scale.making import seen, task_for, write_table

pytestmark = pytest.mark.filterwarnings("default")  # Ray Data warns of its own settings
ROWS = 95


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_table(tmp_path / "table.csv", ROWS)


def alone(table: Path, server: SystemOne) -> clef.Run:
    return clef.evaluate(table, engine="upstream", upstream=server.address)


def test_the_outcomes_and_the_summary_are_those_of_one_machine(
    cluster: Any, server: SystemOne, table: Path, tmp_path: Path
) -> None:
    many = evaluate_on_ray([str(table)], task_for(tmp_path / "out", server), Cluster(workers=2))
    one = alone(table, server)
    assert seen(many.run) == seen(one)
    assert many.run.summary == one.summary
    assert (many.done.rows, many.done.parts, many.sampled) == (ROWS, 10, False)
    assert many.done.accuracy == pytest.approx(one.summary.overall.value)
    parts = sorted((tmp_path / "out").glob("*.parquet"))
    assert pq.read_table(tmp_path / "out").num_rows == ROWS
    assert pq.read_table(parts[0]).column("row").to_pylist() == list(range(2, 12))


def test_a_job_that_is_killed_goes_on_where_it_was(
    cluster: Any, server: SystemOne, table: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    task = task_for(out, server, part_rows=1000)
    write_table(table, 2000)
    killed = False

    async def hold_the_second_part(server: SystemOne, body: dict[str, Any]) -> web.StreamResponse:
        number = re.search(r"\d+", body["state"])  # the first decision of an engine has none
        while not killed and number and int(number[0]) >= 1000:
            await asyncio.sleep(0.01)
        return web.json_response(by_text(body))

    server.handler = hold_the_second_part
    options = ["--on", "ray", "--out", str(out), "--workers", "2", "--engine", "upstream", "--upstream", server.address]
    environment = os.environ | {"RAY_ADDRESS": cluster.address}
    child = subprocess.Popen([sys.executable, "-m", "clef", "eval", str(table), *options], env=environment)
    receipts = out / "_clef" / "receipts"
    try:
        wait_for(lambda: (receipts.is_dir() and any(receipts.glob("*.json"))) or child.poll() is not None, 100)
        assert child.poll() is None
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
        killed = True
    kept = {path.stem for path in receipts.glob("*.json")}
    texts = [pq.read_table(out / f"{name}.parquet").column("context").to_pylist() for name in kept]
    asked_before = len(server.bodies)
    many = evaluate_on_ray([str(table)], task, Cluster(workers=2))
    asked = [body["state"] for body in server.bodies[asked_before:]]
    assert kept
    assert many.done.kept >= len(kept)
    assert set(itertools.chain(*texts)).isdisjoint(asked)
    assert seen(many.run) == seen(alone(table, server))


def test_an_engine_that_stays_away_leaves_its_rows_to_the_others(
    cluster: Any, server: SystemOne, table: Path, tmp_path: Path
) -> None:
    write_table(table, 600)
    with ExitStack() as stack:
        second = stack.enter_context(system_one())
        second.handler = slow_answer

        def told(rows: int, total: int) -> None:
            if rows >= 20:
                stack.close()

        cluster_of_two = Cluster(upstreams=(second.address, server.address))
        many = evaluate_on_ray([str(table)], task_for(tmp_path / "out", server), cluster_of_two, told)
    assert second.bodies
    assert seen(many.run) == seen(alone(table, server))


def test_where_no_engine_is_left_the_reason_is_told_and_the_folder_can_be_gone_on_with(
    cluster: Any, server: SystemOne, table: Path, tmp_path: Path
) -> None:
    task = task_for(tmp_path / "out", server)
    with pytest.raises(clef.EngineError, match=r"no engine is left: .*nothing answers at http://127\.0\.0\.1:9"):
        evaluate_on_ray([str(table)], task, Cluster(upstreams=("http://127.0.0.1:9",)))
    with pytest.raises(clef.EngineError, match="no machine of the cluster has 1 GPU"):
        evaluate_on_ray([str(table)], task, Cluster(gpus=1))
    assert evaluate_on_ray([str(table)], task, Cluster(workers=1)).done.rows == ROWS


def test_a_node_that_is_lost_in_the_middle_costs_no_row(
    cluster: Any, server: SystemOne, table: Path, tmp_path: Path
) -> None:
    write_table(table, 600)
    nodes = [node for node in cluster.worker_nodes if node.node_id]
    lost: list[str] = []

    def told(rows: int, total: int) -> None:
        if rows >= 40 and not lost:
            lost.append(nodes[0].node_id)
            cluster.remove_node(nodes[0], allow_graceful=False)

    many = evaluate_on_ray([str(table)], task_for(tmp_path / "out", server), Cluster(workers=2), told)
    assert lost
    assert many.done.parts == 60
    assert seen(many.run) == seen(alone(table, server))


def wait_for(condition: Any, limit_s: float) -> None:
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)
