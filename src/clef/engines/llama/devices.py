"""Turns the name of a device into one that llama.cpp has, or into words that say which it has."""

from collections.abc import Sequence

from clef.engines.machine import Machine, ThisMachine
from clef.engines.models.fitting import Gpu, devices_in
from clef.errors import SettingsError

AUTO, NONE = "auto", "none"
"""llama.cpp chooses by itself; the processor alone."""


def check_device(wanted: str, list_devices: Sequence[str], machine: Machine | None = None) -> None:
    """Raise SettingsError for a device that is not there, with those that are; `list_devices` is the command for it.

    Asks the program only where a device is named. One that cannot list its devices is left to judge by itself.
    """
    if wanted in (AUTO, NONE):
        return
    ran = (machine or ThisMachine()).run(list_devices)
    if ran is None or ran.code != 0:
        return
    known = devices_in(ran.output)
    unknown = [name for name in wanted.split(",") if name not in [device.name for device in known]]
    if unknown:
        names = " and ".join(f'"{name}"' for name in unknown)
        raise SettingsError(f"CLEF_DEVICE: this llama.cpp has no device {names}", hint=in_words(known))


def in_words(devices: Sequence[Gpu]) -> str:
    """What can be chosen, each with what it is."""
    if not devices:
        return "it found none but the processor: use auto or none, or a llama.cpp built for your GPU"
    said = "; ".join(f"{device.name} is {device.description}" for device in devices)
    return f"{said}; none is the processor, and auto lets llama.cpp choose"
