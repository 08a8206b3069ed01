"""Turns settings and a machine into all findings, the last of them a decision that was timed."""

import asyncio
import time
from pathlib import Path

from clef.decisions.examples import Request
from clef.decisions.questions import Noul
from clef.engines.doctor import drivers, serving
from clef.engines.doctor.finding import Finding, Patient
from clef.engines.engine import Engine
from clef.engines.machine import Machine, ThisMachine
from clef.engines.models.catalogue import is_name
from clef.engines.models.fitting import memory_of
from clef.engines.models.shelf import Shelf
from clef.errors import ClefError, SettingsError
from clef.settings import Settings

PROBE = Request("A short text to decide about.", (Noul("Is this a text?"),))
TIMES = 3
SLOW_MS = 2000.0
POLL_S = 0.1


def patient_of(settings: Settings, machine: Machine | None = None) -> Patient:
    """What is to be examined. Asks the llama-server for its devices, which takes up to a second or so."""
    from clef.engines.llama.command import find_program

    machine, shelf = machine or ThisMachine(), Shelf(settings)
    try:
        program = find_program(settings)
        argv, shown = program.argv, program.shown
    except SettingsError as error:
        argv, shown = ("llama-server",), error.message
    listing = (*argv, "--list-devices")
    memory = memory_of(machine, listing)
    ran = machine.run(listing) if not memory.gpus else None
    return Patient(
        machine=machine,
        settings=settings,
        program=argv,
        shown_program=shown,
        memory=memory,
        devices_ran=bool(memory.gpus) or (ran is not None and ran.code == 0),
        model=_model(settings, shelf),
        cache=shelf.cache,
    )


def examine(settings: Settings, machine: Machine | None = None) -> list[Finding]:
    """Everything that can be found without a running engine. Blocks for some seconds at most."""
    patient = patient_of(settings, machine)
    return [*drivers.find(patient), *serving.find(patient)]


async def examine_all(
    settings: Settings, engine: Engine, wait_s: float = 0.0, machine: Machine | None = None
) -> list[Finding]:
    """As `examine`, with a decision by an engine that gets `wait_s` to become ready."""
    findings = await asyncio.to_thread(examine, settings, machine)
    return [*findings, await timed_decision(engine, wait_s)]


async def timed_decision(engine: Engine, wait_s: float = 0.0) -> Finding:
    """How long a small decision takes, the first one aside."""
    title, end = "A decision", time.monotonic() + wait_s
    facts = await engine.facts()
    while facts.phase in ("starting", "loading") and time.monotonic() < end:
        await asyncio.sleep(POLL_S)
        facts = await engine.facts()
    if not facts.reachable:
        level = "fail" if facts.phase == "failed" else "unknown"
        seen = f"none was asked: {facts.message or facts.phase}"
        return Finding("decision", title, level, seen, facts.hint)  # type: ignore[arg-type] # both are levels
    took = []
    try:
        for _ in range(TIMES + 1):
            started = time.perf_counter()
            await engine.decide(PROBE)
            took.append((time.perf_counter() - started) * 1000)
    except ClefError as error:
        return Finding("decision", title, "fail", error.message, error.hint)
    middle = sorted(took[1:])[TIMES // 2]
    seen = f"{facts.model} answers in {middle:.1f} ms"
    if facts.kind == "builtin":
        return Finding("decision", title, "warn", f"{seen}; it is the built-in one, for trying things", facts.hint)
    if middle > SLOW_MS:
        remedy = "look at where it runs under Devices; a smaller model suits a processor better"
        return Finding("decision", title, "warn", seen, remedy)
    return Finding("decision", title, "ok", seen)


def _model(settings: Settings, shelf: Shelf) -> Path | None:
    if not settings.model:
        return next((shelf.path_of(wanted.name) for wanted in shelf.here()), None)
    return shelf.path_of(settings.model) if is_name(settings.model) else Path(settings.model).expanduser()
