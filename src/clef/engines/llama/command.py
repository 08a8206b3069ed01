"""Turns Settings into the llama-server to run: its program, its argument list, its environment and its address.

Invariants: an argument list, never a shell; the access key is in the environment and in no argument; CLEF_LLAMA_ARGS
come last and win; what cannot work is refused here, in words, before anything is started.
"""

import errno
import os
import secrets
import shutil
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from clef.engines.holders import by_whom
from clef.engines.llama.devices import AUTO, check_device
from clef.engines.llama.modelfile import check_model, find_projector
from clef.errors import SettingsError
from clef.settings import Settings

Origin = Literal["CLEF_LLAMA_SERVER", "PATH", "the default place", "the xllamacpp wheel"]

DEFAULT_PLACE = "~/src/llama.cpp/build/bin/llama-server"
"""Where the set-up guide builds it."""
HOST_PROGRAM = Path(__file__).with_name("host.py")
LOOPBACK = "127.0.0.1"
HTTP_THREADS = "64"
"""A kept-alive connection holds one of the server's threads; with its usual 5 a sixth client waits 5 s for one."""
VERBOSITY = "4"
"""The lowest at which llama.cpp says how many layers went to the GPU; none of its lines has request text. From 5 on
they do."""
GPU_VARIABLES = (
    *("HSA_OVERRIDE_GFX_VERSION", "HSA_ENABLE_DXG_DETECTION", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"),
    *("CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "GGML_VK_VISIBLE_DEVICES"),
)
"""Variables that decide which GPU is found, and how; the child inherits them."""
_PROJECTOR = ("-mm", "--mmproj")
_LEVEL = ("-lv", "--verbosity", "--log-verbosity")
_LOUD = ("-v", "--verbose", "--log-verbose")


@dataclass(frozen=True, slots=True)
class Program:
    """A llama-server that can be run."""

    argv: tuple[str, ...]
    """The program and, for the wheel, the script it runs."""
    origin: Origin
    """Why this one."""

    @property
    def shown(self) -> str:
        """How a person is told which one it is."""
        if self.origin == "the xllamacpp wheel":
            return f"llama.cpp inside xllamacpp {version('xllamacpp')}"
        return f"{self.argv[-1]} (from {self.origin})"

    @property
    def known_version(self) -> str | None:
        """Its version where no process has to be started to learn it."""
        if self.origin != "the xllamacpp wheel":
            return None
        whole = version("xllamacpp")
        return f"{whole.rpartition('.')[2]} (xllamacpp {whole})"


@dataclass(frozen=True, slots=True)
class Command:
    """One start of a llama-server."""

    program: Program
    model: Path
    arguments: tuple[str, ...]
    address: str
    """Where it will listen."""
    key: str = field(repr=False)
    """Access key of this one start."""
    warnings: tuple[str, ...] = ()
    """What a person should know about these options."""
    unset: tuple[str, ...] = ()
    """Variables of our environment that it does not get."""

    @property
    def argv(self) -> tuple[str, ...]:
        """Everything after the shell's prompt; has no secret."""
        return (*self.program.argv, *self.arguments)

    @property
    def env(self) -> dict[str, str]:
        """Our environment with the key. Proxies stay in it: the child may download with them."""
        kept = {name: value for name, value in os.environ.items() if name not in self.unset}
        return kept | {"LLAMA_API_KEY": self.key}


def find_program(settings: Settings) -> Program:
    """The llama-server to run: the one that is set, on PATH, in the default place, or inside the wheel.

    Raises SettingsError when the one that is set cannot be run.
    """
    if settings.llama_server is not None:
        return Program((_runnable(settings.llama_server),), "CLEF_LLAMA_SERVER")
    on_path = shutil.which("llama-server")
    if on_path:
        return Program((str(Path(on_path).resolve()),), "PATH")
    built = Path(DEFAULT_PLACE).expanduser()
    if os.access(built, os.X_OK):
        return Program((str(built),), "the default place")
    # By path and with -P: as a module it would import clef's own packages first.
    return Program((sys.executable, "-P", str(HOST_PROGRAM)), "the xllamacpp wheel")


def check(settings: Settings) -> tuple[Program, Path]:
    """The program and the model's path. Raises SettingsError naming the setting that cannot be used.

    Reads the model file's header, so call it off the event loop; `plan` as well.
    """
    if not settings.manage_server:
        raise SettingsError("CLEF_MANAGE_SERVER=0 forbids starting llama.cpp", hint="set CLEF_UPSTREAM to a server")
    if not settings.model:
        raise SettingsError("llama.cpp needs a model", hint="give --model PATH.gguf or set CLEF_MODEL")
    program, model = find_program(settings), check_model(settings.model)
    _projector(settings, model)
    check_device(settings.device, (*program.argv, "--list-devices"))
    return program, model


def plan(settings: Settings) -> Command:
    """One start with a fresh key and port. Raises SettingsError as `check`, and for a port that cannot be used."""
    program, model = check(settings)
    extra, key = _take(settings.llama_args, ("--api-key",))
    host = _last(extra, ("--host",)) or LOOPBACK
    port = _port(_last(extra, ("--port",)), host)
    context = str(settings.context)
    arguments = (
        # The alias is what answers and exports name; without it the wheel gives the whole path. It splits at commas.
        *("-m", str(model), "--alias", model.name.replace(",", "_")),
        *("--host", host, "--port", str(port), "--threads-http", HTTP_THREADS),
        *("-c", context, "-b", context, "-ub", context, "-np", "1"),
        *_projector(settings, model),
        *(() if settings.device == AUTO else ("--device", settings.device)),
        *("-lv", VERBOSITY),
        *extra,
    )
    address = f"http://{LOOPBACK if host == '0.0.0.0' else host}:{port}"
    key = key or secrets.token_urlsafe(24)
    return Command(program, model, arguments, address, key, _warnings(extra), settings.llama_unset)


def check_address(settings: Settings) -> None:
    """Raise SettingsError for a port that cannot be used; for what takes long, to look before it begins."""
    port = _last(settings.llama_args, ("--port",))
    if port is not None:
        host = _last(settings.llama_args, ("--host",)) or LOOPBACK
        _port(port, host)


def inherited_gpu_variables(settings: Settings) -> dict[str, str]:
    """The variables about GPUs that a child gets from us."""
    names = [name for name in GPU_VARIABLES if name not in settings.llama_unset]
    return {name: os.environ[name] for name in names if name in os.environ}


def _projector(settings: Settings, model: Path) -> tuple[str, ...]:
    """The options about images; none where CLEF_LLAMA_ARGS name a projector. Raises SettingsError where none is."""
    if _last(settings.llama_args, _PROJECTOR) is not None:
        return ()
    if not settings.images:
        return ("--no-mmproj",)
    projector = find_projector(model)
    if projector is None:
        raise SettingsError(
            f'CLEF_IMAGES=1 needs a projector, and there is none beside "{model.name}"',
            hint="put its mmproj file into the same folder, or name it by --mmproj in CLEF_LLAMA_ARGS",
        )
    return ("--mmproj", str(projector))


def _warnings(extra: Sequence[str]) -> tuple[str, ...]:
    level = _last(extra, _LEVEL) or VERBOSITY
    if any(name in extra for name in _LOUD) or (level.isdecimal() and int(level) > int(VERBOSITY)):
        return ("CLEF_LLAMA_ARGS ask for so much output that the text of requests is written to the log.",)
    return ()


def _runnable(path: Path) -> str:
    path = path.expanduser()
    if path.is_dir():
        path /= "llama-server"
    if not path.is_file():
        raise SettingsError(f'CLEF_LLAMA_SERVER: there is no file "{path}"', hint="give the path of llama-server")
    if not os.access(path, os.X_OK):
        raise SettingsError(f'CLEF_LLAMA_SERVER: "{path}" is not executable', hint=f'run: chmod +x "{path}"')
    return str(path.resolve())


def _take(arguments: Sequence[str], names: Sequence[str]) -> tuple[tuple[str, ...], str | None]:
    """The arguments without an option and its value, and the last value it had."""
    left: list[str] = []
    value = None
    given = iter(arguments)
    for argument in given:
        if argument in names:
            value = next(given, None)
        else:
            left.append(argument)
    return tuple(left), value


def _last(arguments: Sequence[str], names: Sequence[str]) -> str | None:
    return _take(arguments, names)[1]


def _port(wanted: str | None, host: str) -> int:
    """The port that is asked for, or a free one. Raises SettingsError when it is taken or is no port."""
    if wanted is not None and not (wanted.isdecimal() and int(wanted) <= 65535):
        raise SettingsError(f'CLEF_LLAMA_ARGS: --port "{wanted}" is not a port')
    with socket.socket() as probe:
        # As the server does: a port that only waits for old connections to time out is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, int(wanted or 0)))
        except OSError as error:
            whose = by_whom(int(wanted or 0), host) if error.errno == errno.EADDRINUSE else ""
            raise SettingsError(
                f"CLEF_LLAMA_ARGS: {host}:{wanted or 0} cannot be used: {error.strerror}{whose}",
                hint="leave --port out to get a free one, or stop what uses it",
            ) from error
        return int(probe.getsockname()[1])
