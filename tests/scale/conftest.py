"""A Ray cluster of two nodes on 127.0.0.1, one for all the tests here, and a decision server that answers by the text.

Ray reads its switches when it is imported, so they are set here, before any test imports it.
"""

import asyncio
import atexit
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from aiohttp import web

from clef.scale.cluster import QUIET
from tests.fakes.system_one import SystemOne, system_one

os.environ.update(QUIET)
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # or every worker compiles clef, Ray and Arrow for itself
os.environ["PYTHONPYCACHEPREFIX"] = tempfile.mkdtemp(prefix="clef-bytecode-")
atexit.register(shutil.rmtree, os.environ["PYTHONPYCACHEPREFIX"], ignore_errors=True)
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # or Ray takes the outward address for 127.0.0.1
QUICK = {"health_check_initial_delay_ms": 1000, "health_check_period_ms": 1000, "health_check_failure_threshold": 5}
NODE: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 80_000_000, "node_ip_address": "127.0.0.1"}
NODE["include_log_monitor"] = False


STARTS = 3
"""Tries to start a node: Ray gives each 30 s, which a machine that does much else may need more often."""


def started(start: Callable[[], Any]) -> Any:
    """What `start` makes, at the first try that Ray has the patience for."""
    for _ in range(STARTS - 1):
        with suppress(Exception):
            return start()
    return start()


@contextmanager
def two_nodes() -> Iterator[Any]:
    """The cluster, with this process connected to it."""
    import ray
    from ray.cluster_utils import Cluster

    head = NODE | {"include_dashboard": False, "no_monitor": True, "_system_config": QUICK}
    made: Any = started(lambda: Cluster(initialize_head=True, head_node_args=head))
    try:
        started(lambda: made.add_node(**NODE))
        ray.init(address=made.address, log_to_driver=False, configure_logging=False, namespace="clef")
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


@pytest.fixture(scope="package")
def cluster() -> Iterator[Any]:
    """The cluster of all the tests here."""
    with two_nodes() as made:
        yield made


def by_text(body: dict[str, Any]) -> dict[str, Any]:
    """Probabilities that depend on all that was asked, so that a row that got another's answer is seen."""
    answers: dict[str, Any] = {}
    for name, question in body["questions"].items():
        if question["type"] == "noul":
            answers[name] = {"type": "noul", "noul": 0.6}
            continue
        keys = list(question["criteria"])
        weights = [1 + hashlib.sha256(repr((body["state"], question, key)).encode()).digest()[0] for key in keys]
        shares = {key: weight / sum(weights) for key, weight in zip(keys, weights, strict=True)}
        answers[name] = {"type": "choice", "choice": max(shares, key=shares.__getitem__), "probabilities": shares}
    return {"model": "fake.gguf", "answers": answers, "usage": {"input_tokens": 10, "output_tokens": 0}}


async def slow_answer(server: SystemOne, body: dict[str, Any]) -> web.StreamResponse:
    """Answer by the text after 10 ms, as an engine that is waited for."""
    await asyncio.sleep(0.01)
    return web.json_response(by_text(body))


@pytest.fixture
def server() -> Iterator[SystemOne]:
    """A server that answers by the text."""
    with system_one() as made:
        made.handler = slow_answer
        yield made
