"""Turns the wish for many machines into a Ray cluster that is reached, or into the reason in words."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from clef.errors import InputError, Problem, SettingsError

REACH_S = 5.0
"""How long the head of a cluster may take to accept a connection; Ray itself would wait for minutes."""
BLOCK_BYTES = 8_000_000
"""What a reading task hands on at a time: small enough for a small object store, many parts for a large one."""
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # under `uv run` every worker would pack this folder and install it anew
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # what it will do by default, and warns about
}
"""Switches of Ray, where the user has not set them; it reads them when it is imported."""
START = "start one with `ray start --head`, and set RAY_ADDRESS to HOST:PORT where it runs on another machine"


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where the work is done, and by how many."""

    address: str | None = None
    """HOST:PORT of the head; without it RAY_ADDRESS, else the cluster that runs on this machine."""
    workers: int | None = None
    """Engines. By default one an upstream, else one a GPU share, else one a machine."""
    gpus: float = 0
    """GPUs that an engine takes."""
    upstreams: tuple[str, ...] = ()
    """Servers, given out one a worker."""


def ray_library() -> Any:
    """The ray module. Raises InputError where it is not installed."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError:
        hint = "pip install 'clef[ray]' on every machine of the cluster"
        problem = Problem("many machines need the ray library, which is not installed", "missing_library", hint=hint)
        raise InputError.of([problem]) from None
    return ray


@contextmanager
def connected(cluster: Cluster) -> Iterator[Any]:
    """The ray module, connected; a connection that was there before stays. Raises SettingsError where none is made."""
    ray = ray_library()
    if ray.is_initialized():
        with _quiet_data():
            yield ray
        return
    address = cluster.address or os.environ.get("RAY_ADDRESS") or "auto"
    _check(address)
    try:
        ray.init(address=address, log_to_driver=False, configure_logging=False, namespace="clef")
    except (ConnectionError, RuntimeError, ValueError) as error:
        said = "" if address == "auto" else f" at {address}: {next(iter(str(error).splitlines()), '')}"
        raise SettingsError(f"no Ray cluster is reached{said}", hint=START) from None
    try:
        with _quiet_data():
            yield ray
    finally:
        ray.shutdown()


def _check(address: str) -> None:
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        if address != "auto":
            raise SettingsError(f'"{address}" is no address of a Ray cluster', hint="write it as HOST:PORT")
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), REACH_S).close()
    except OSError as error:
        raise SettingsError(f"no Ray cluster is reached at {address}: {error.strerror or error}", hint=START) from None


@contextmanager
def _quiet_data() -> Iterator[None]:
    """Ray Data without its bars and log lines, and with blocks of our size; as it was before, afterwards."""
    from ray.data import DataContext

    context, log = DataContext.get_current(), logging.getLogger("ray.data")
    before = context.enable_progress_bars, context.target_max_block_size, log.level
    context.enable_progress_bars, context.target_max_block_size = False, BLOCK_BYTES
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        context.enable_progress_bars, context.target_max_block_size = before[:2]
        log.setLevel(before[2])
