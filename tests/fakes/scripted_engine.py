"""An engine whose status is what a test says, with models and actions that do as the real ones do."""

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from clef.decisions.examples import Reply, Request
from clef.engines.builtin import BuiltinEngine
from clef.engines.engine import EngineFacts
from clef.engines.llama.loading import Loading
from clef.engines.models.fitting import Gpu, Memory
from clef.engines.opening import ChosenEngine
from clef.engines.status import Change, Child, Device, Remedy, Speed, Status
from clef.errors import InputError
from clef.settings import Settings

LOG = ("load_tensors: offloaded 33/33 layers to GPU", "main: model loaded", "srv: listening <b>here</b>")
GPU = Memory(32 * 2**30, (Gpu("ROCm0", "AMD Radeon RX 9070 XT", 16 * 2**30, 15 * 2**30),))
DOWNLOAD = {
    "name": "clef-flash:Q8_0",
    "state": "fetching",
    "done_bytes": 4_100_000_000,
    "size_bytes": 9_657_260_192,
    "bytes_per_s": 50e6,
    "seconds_left": 111.0,
    "message": None,
    "hint": None,
    "failure": None,
    "choices": [],
}


def child(**changes: Any) -> Child:
    """A llama.cpp all of whose layers are on a GPU."""
    made = Child(
        state="ready",
        program="/opt/llama/llama-server (on the PATH)",
        version="11549 (a1b2c3d)",
        build="b11549",
        command_line="llama-server -m /models/Clef-Flash-Q8_0.gguf -c 4096 -b 4096 -ub 4096 -np 1",
        pid=4711,
        starts=1,
        model_path="/models/Clef-Flash-Q8_0.gguf",
        devices=(Device("ROCm0", "AMD Radeon RX 9070 XT", 15900),),
        placement="gpu",
        layers=33,
        layers_offloaded=33,
        buffers_mib={"ROCm0 model": 9210.0, "ROCm0 KV": 512.0, "ROCm0 compute": 801.5},
        context=4096,
        batch=4096,
        physical_batch=4096,
        slots=1,
        decision_type="clef",
        reads_images=False,
        gpu_variables={"HSA_OVERRIDE_GFX_VERSION": "12.0.1"},
        warnings=(),
    )
    return replace(made, **changes)


def llama(phase: Any, state: str, *actions: str, message: str | None = None, **changes: Any) -> Status:
    """The status of a llama.cpp that clef started."""
    facts = EngineFacts("llama", phase, "Clef-Flash-Q8_0.gguf", "http://127.0.0.1:40123", 4096, message)
    status = Status(facts, state, actions, child=child(state=state))
    return replace(status, **changes)


READY = llama(
    "ready",
    "ready",
    *("stop", "restart"),
    speed=Speed((44.0, 41.5, 40.2, 61.7, 39.8, 41.1, 40.0, 43.9, 88.4, 42.0, 40.9, 41.3, 39.2, 40.4, 45.1, 41.0)),
)
HALF = Loading(4_900_000_000, 9_800_000_000, 21.0)
TOO_LARGE = "it needs more memory than the GPU has"
STATUSES = {
    "built-in": Status(EngineFacts("builtin", "ready", "sparrow", message="You are trying it out."), "ready", ()),
    "upstream": Status(EngineFacts("upstream", "ready", "clef-9B", "http://127.0.0.1:8080", 8192), "ready", ()),
    "looking": Status(EngineFacts("upstream", "starting", message="Looking for a server at …"), "starting", ("stop",)),
    "downloading": Status(
        EngineFacts("llama", "starting", message="Downloading clef-flash:Q8_0: 4.1 of 9.7 GB, 2 minutes left"),
        "downloading",
        ("stop",),
        download=DOWNLOAD,
    ),
    "loading": llama("loading", "loading", "stop", "restart", child=child(state="loading", placement="unknown")),
    "half loaded": llama(
        *("loading", "loading", "stop", "restart"),
        message=HALF.in_words,
        child=child(state="loading", placement="unknown", loading=HALF),
    ),
    "ready": READY,
    "partly": replace(
        READY,
        child=child(placement="partly", layers_offloaded=20, warnings=("Only 20 of 33 layers fit on the GPU.",)),
    ),
    "on the processor": replace(READY, child=child(placement="cpu", layers_offloaded=0)),
    "failed": replace(
        llama("failed", "failed", "start", "restart", message=TOO_LARGE, child=child(state="failed", pid=None)),
        remedies=(
            Remedy("Restart with 2,048 tokens", Change(context=2048)),
            Remedy("Get clef-flash:Q4_K_M, which is smaller", Change(model="clef-flash:Q4_K_M"), is_ready=False),
        ),
    ),
    "gave up": llama("failed", "gave up", "start", "restart", message="it ended three times", child=child(starts=3)),
    "stopped": llama("off", "stopped", "start", "restart", child=child(state="stopped", pid=None)),
    "off": Status(EngineFacts("llama", "off", message="The engine is off, as you asked."), "off", ("start",)),
}


class ScriptedEngine(ChosenEngine):
    """Says what `now` is; its actions are counted, and lead where they should."""

    def __init__(self, now: Status = READY, lines: Sequence[str] = LOG, memory: Memory = GPU) -> None:
        self.answering = BuiltinEngine()
        super().__init__(Settings(data_dir=Path(tempfile.gettempdir())), self.answering)
        self.now = now
        self.lines = list(lines)
        self.done: list[str] = []
        self.refusal: InputError | None = None
        self.models._memory = memory

    def start(self) -> None:
        """Nothing to choose."""

    async def facts(self) -> EngineFacts:
        """Of the status."""
        return self.now.facts

    async def status(self) -> Status:
        """What the test says."""
        return self.now

    async def decide(self, request: Request) -> Reply:
        """As the built-in model."""
        return await self.answering.decide(request)

    def log_tail(self, count: int) -> list[str]:
        """The end of the lines."""
        return self.lines[-count:]

    def log_since(self, life: int, finished: int) -> tuple[int, int, list[str]]:
        """The lines after a place; the first call of a stream asks for the place alone."""
        return 1, len(self.lines), self.lines[finished:] if life else []

    async def turn_on(self) -> None:
        """As the real one, at once."""
        self._do("start", READY)

    async def turn_off(self) -> None:
        """As the real one, at once."""
        self._do("stop", STATUSES["stopped"])

    async def restart(self, change: Change) -> None:
        """As the real one, at once."""
        self._do(f"restart {change.to_dict()}", READY)

    async def forget(self) -> None:
        """As the real one, at once."""
        self._do("forget", replace(self.now, kept=()))

    def _do(self, action: str, then: Status) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.done.append(action)
        self.now = then
