"""Turns the llama.cpp, the model, ports and folders of a machine into findings about what will run."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from clef.engines.doctor.finding import Finding, Patient
from clef.engines.llama.devices import AUTO
from clef.engines.models.access import tidy_token
from clef.engines.models.catalogue import CATALOGUE, named
from clef.engines.models.fitting import USABLE_RAM
from clef.errors import SettingsError

FIRST_BUILD, CLEF_BUILD = 11361, 11379
"""The builds of llama.cpp that brought /v1/systemone, and clef models."""
ROOM_BYTES = 12_000_000_000
"""Free space under which Clef-Flash Q8_0 does not fit."""
_BUILD = re.compile(r"version: (?:[^\n]*\(build |b)?(\d+)")
"""As "5000 (a1b2c3d)", and since build 10434 at the latest as "0.1.0-dev (build 11434, commit a1b2c3d)"."""
NO_BUILD = 1
"""What a build says that was made without the history of its source, which is 0 or 1."""
_PORT = re.compile(r"--port[ =](\d+)")


def find(patient: Patient) -> Iterator[Finding]:
    """Every finding about what will run."""
    yield server(patient)
    yield devices(patient)
    for check in (several, memory, place, folder, token):
        finding = check(patient)
        if finding is not None:
            yield finding
    yield from ports(patient)


def server(patient: Patient) -> Finding:
    """Which llama.cpp would be run, and whether it is new enough."""
    title, shown = "llama.cpp", patient.shown_program
    ran = patient.machine.run([*patient.program, "--version"])
    found = _BUILD.search(ran.output) if ran else None
    if found is None:
        said = "it does not run" if ran is None else "it does not say its version"
        level, remedy = ("fail", "install it again") if ran is None or ran.code != 0 else ("unknown", None)
        return Finding("server", title, level, f"{shown}: {said}", remedy)  # type: ignore[arg-type] # both are levels
    build = int(found[1])
    if build <= NO_BUILD:
        seen = f"{shown} does not know its own build; /v1/systemone came with build {FIRST_BUILD}"
        return Finding("server", title, "unknown", seen, None)
    if build < FIRST_BUILD:
        seen = f"{shown} is build {build}; /v1/systemone came with build {FIRST_BUILD}"
        return Finding(
            "server", title, "fail", seen, "update it, or unset CLEF_LLAMA_SERVER to use the one in the wheel"
        )
    if build < CLEF_BUILD:
        seen = f"{shown} is build {build}; clef models came with build {CLEF_BUILD}"
        return Finding("server", title, "warn", seen, "update it to run Clef and Clef-Flash")
    return Finding("server", title, "ok", f"{shown}, build {build}")


def devices(patient: Patient) -> Finding:
    """What the llama.cpp can put a model on."""
    title, gpus = "Devices of llama.cpp", patient.memory.gpus
    if gpus:
        known = [f"{gpu.description} ({gpu.name}, {_gb(gpu.total_bytes)})" for gpu in gpus]
        return Finding("devices", title, "ok", "; ".join(known))
    if not patient.devices_ran:
        return Finding("devices", title, "unknown", "it could not be asked", None)
    if patient.has_amd_signs or patient.has_nvidia_signs:
        seen = "it sees no GPU, though this machine seems to have one: decisions would run on the processor"
        remedy = "use a llama.cpp built for your GPU (docs/hardware.md), or put the driver right"
        return Finding("devices", title, "fail", seen, remedy)
    return Finding("devices", title, "ok", "no GPU: decisions run on the processor, which is right for small models")


def several(patient: Patient) -> Finding | None:
    """Whether a model might be put on the wrong one of several devices."""
    gpus = patient.memory.gpus
    if len(gpus) < 2 or patient.settings.device != AUTO:
        return None
    names = ", ".join(gpu.name for gpu in gpus)
    remedy = (
        f"choose one on the Engine page, or CLEF_DEVICE={gpus[0].name}; a model is split over all of them otherwise"
    )
    return Finding("several", "Several devices", "warn", f"there are {len(gpus)}: {names}", remedy)


def memory(patient: Patient) -> Finding | None:
    """Whether the model fits."""
    size = patient.machine.size(str(patient.model)) if patient.model else None
    if patient.model is None or size is None:
        return None
    needed = size + _bytes_per_token(patient.model.name) * patient.settings.context
    title, wants = "Memory", f"{patient.model.name} takes about {needed / 1e9:.1f} GB"
    gpu, ram = patient.memory.best_gpu, patient.memory.ram_bytes
    if gpu is not None and needed <= (gpu.usable_bytes or 0):
        if patient.is_wsl and ram is not None and ram < size:
            seen = f"{wants}, which {gpu.description} has; WSL itself has {_gb(ram)}, less than the file"
            return Finding("memory", title, "warn", seen, "give WSL more in .wslconfig, and leave --no-mmap out")
        return Finding("memory", title, "ok", f"{wants} of the {_gb(gpu.total_bytes)} of {gpu.description}")
    less = "a smaller quantisation, or a smaller CLEF_CONTEXT"
    if gpu is not None:
        seen = f"{wants}, more than the {_gb(gpu.total_bytes)} of {gpu.description} hold"
        return Finding("memory", title, "warn", seen, f"use {less}; otherwise a part runs on the processor")
    if ram is None:
        return Finding("memory", title, "unknown", f"{wants}; how much there is, is not known")
    if needed <= ram * USABLE_RAM:
        return Finding("memory", title, "ok", f"{wants} of {_gb(ram)}")
    wsl = "; WSL gets half of the machine's memory unless .wslconfig says more" if patient.is_wsl else ""
    return Finding("memory", title, "fail", f"{wants}, and there is {_gb(ram)}{wsl}", f"use {less}")


def place(patient: Patient) -> Finding | None:
    """Whether the model lies where reading is slow."""
    where = [str(path) for path in (patient.model, patient.cache) if path is not None]
    slow = [path for path in where if path.startswith("/mnt/")] if patient.is_wsl else []
    if not slow:
        return None
    remedy = "move it into WSL's own disk, such as ~/models"
    return Finding(
        "place", "Place of the model", "warn", f"{slow[0]} is on a disk of Windows: loading takes minutes", remedy
    )


def folder(patient: Patient) -> Finding:
    """Whether models can be kept."""
    title, cache = "Folder of models", patient.cache
    if patient.machine.is_writable(str(cache)) is False:
        return Finding("folder", title, "fail", f"{cache} cannot be written", "set HF_HOME to a folder of yours")
    free = patient.machine.free_bytes(str(cache))
    if free is None:
        return Finding("folder", title, "unknown", f"{cache}; its free space is not known")
    if free < ROOM_BYTES and patient.model is None:
        seen = f"{cache} has {free / 1e9:.1f} GB free, too little for Clef-Flash"
        return Finding("folder", title, "warn", seen, "make room, or set HF_HOME to a folder on another disk")
    return Finding("folder", title, "ok", f"{cache}, {free / 1e9:.0f} GB free")


def token(patient: Patient) -> Finding | None:
    """Whether an access token has the shape of one."""
    given = patient.machine.env.get("HF_TOKEN")
    if not given:
        return None
    try:
        tidy_token(given)
    except SettingsError as error:
        return Finding("token", "Access token of the hub", "warn", error.message, error.hint)
    return Finding("token", "Access token of the hub", "ok", "HF_TOKEN is set, and looks like one")


def ports(patient: Patient) -> Iterator[Finding]:
    """Whether somebody listens where clef or its child wants to, and where a server may be."""
    upstream = urlsplit(patient.settings.upstream)
    host, port = upstream.hostname or "127.0.0.1", upstream.port or (443 if upstream.scheme == "https" else 80)
    if patient.machine.port_answers(host, port):
        seen = (
            f"something listens at {patient.settings.upstream}; if it answers decisions, clef uses and never stops it"
        )
        yield Finding("upstream", "Server that is there", "ok", seen)
    fixed = _PORT.search(" ".join(patient.settings.llama_args))
    if fixed and patient.machine.port_answers("127.0.0.1", int(fixed[1])):
        seen = f"port {fixed[1]}, which CLEF_LLAMA_ARGS name, is taken"
        yield Finding(
            "port", "Port of llama.cpp", "fail", seen, "leave --port out to get a free one, or stop what uses it"
        )


def _bytes_per_token(file: str) -> int:
    """What a model of the catalogue takes for each token; Clef-Flash's for others, which is more than most."""
    for model in CATALOGUE:
        if file in (known.file for known in model.files):
            return model.bytes_per_token
    return named("clef-flash").model.bytes_per_token


def _gb(count: int | None) -> str:
    return "memory unknown" if count is None else f"{count / 2**30:.1f} GiB"
