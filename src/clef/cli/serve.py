"""Turns options into settings and serves the page and the API until Ctrl+C."""

import errno
import gc
import inspect
import ipaddress
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from clef.errors import EngineError, SettingsError
from clef.settings import SECRETS, Settings, load_settings

DRAIN_S = 30
"""Seconds that decisions under way get when clef is stopped; a second Ctrl+C ends it at once."""
GRACE_S = 3
"""Seconds that all else which is open gets after that."""

KEPT_S = 75
"""Seconds that an idle connection is kept: longer than clients keep theirs, so that none sends into a closing one."""


def serve(**options: Any) -> None:
    """Serve the page and the API until Ctrl+C."""
    die_by_interrupt()
    settings = load_settings(**options)
    listener = listen(settings.host, settings.port)
    run(settings, listener)


def greet(settings: Settings, listener: socket.socket, made_key: str | None) -> None:
    """Say where clef is; with the link that signs a browser in where a key was made."""
    from clef.engines.machine import ThisMachine, is_wsl
    from clef.web.reach import is_loopback, shown_host

    host, port = listener.getsockname()[:2]
    address = f"http://{shown_host(host)}:{port}"
    typer.echo(f"clef is at {address}   (Ctrl+C stops it)")
    if is_wsl(ThisMachine()) and host in ("127.0.0.1", "0.0.0.0"):
        typer.echo(
            f"In a browser of Windows: http://localhost:{port}   (unless .wslconfig has localhostForwarding=false)"
        )
    if made_key is not None:
        typer.echo(f"It asks for an access key. This link signs a browser in: {address}/?key={made_key}")
        typer.echo(f"Programs send it as a bearer token. It is kept in {settings.data_dir / 'access.key'}")
    if not is_loopback(host) or settings.allowed_hosts:
        typer.echo("What is sent is not encrypted unless a proxy in front of clef does that.", err=True)


def run(settings: Settings, listener: socket.socket) -> None:
    """Serve on a listening socket. Ctrl+C and SIGTERM end it, the engine with it; a second one ends it at once.

    Raises EngineError where CLEF_EXIT_WITH_ENGINE is set and the engine is lost, else Exit with 128 + the signal.
    """
    with uncollected():
        import uvicorn

        from clef.cli.server import Server
        from clef.running import announced, announcement
        from clef.web.app import create_app, open_store
        from clef.web.one_write import OneWriteProtocol

        running = announcement(*listener.getsockname()[:2])
        app = create_app(settings, store=open_store(settings), local_token=running.token)
    greet(settings, listener, app.state.reach.made_key)
    config = uvicorn.Config(app, http=OneWriteProtocol, log_level="warning", access_log=False, lifespan="on")
    config.timeout_keep_alive = KEPT_S
    config.timeout_graceful_shutdown = GRACE_S
    server = Server(config, lambda: announced(settings.data_dir, running), app.state.engine.hurry)
    server.drain = lambda: app.state.line.drain(DRAIN_S)
    app.state.end = lambda: setattr(server, "should_exit", True)
    server.run(sockets=[listener])
    if app.state.lost is not None:
        raise EngineError(app.state.lost.message or "the engine ended", hint=app.state.lost.hint)
    if server.ended_by is not None:
        raise typer.Exit(128 + server.ended_by)


@contextmanager
def uncollected() -> Iterator[None]:
    """Look for no garbage while the block loads what stays anyway, nor later in what it loaded. A tenth of the start
    went into that.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def die_by_interrupt() -> None:
    """Let Ctrl+C end the process without a word while it has nothing to end in order: it loads, or is done.

    Nothing changes where it was told to ignore it, as in the background of a shell.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Raises SettingsError where that is no address of this machine, or the port is taken."""
    try:
        address = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        raise SettingsError(
            f'CLEF_HOST: "{host}" is not an address', hint="use 127.0.0.1, or 0.0.0.0 for others too"
        ) from None
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    try:
        return socket.create_server((str(address), port), family=family, backlog=2048)
    except OSError as error:
        raise _unusable(str(address), port, error) from error


def _unusable(host: str, port: int, error: OSError) -> SettingsError:
    """Why there is no listening at an address, with whoever is there already."""
    from clef.engines import holders
    from clef.web.reach import shown_host

    another = "another port: --port 8001, or --port 0 for any free one"
    if error.errno != errno.EADDRINUSE:
        return SettingsError(f"port {port} cannot be used: {error.strerror}", hint=another)
    there = f"http://{shown_host({'0.0.0.0': '127.0.0.1', '::': '::1'}.get(host, host))}:{port}"
    whose = holders.by_whom(port, host)
    if holders.is_clef(there):
        return SettingsError(f"clef is running already at {there}{whose}", hint=f"open it there; {another}")
    return SettingsError(f"port {port} cannot be used: it is taken{whose}", hint=another)


def _option(name: str, field: FieldInfo) -> inspect.Parameter:
    """The command-line option of a setting: its name with dashes, its docstring as help; unset means not given."""
    default = "" if field.default in (None, (), PydanticUndefined) else f" [default: {field.default}]"
    flags = [f"--{name.replace('_', '-')}"]
    if field.annotation is bool:
        flags = [f"{flags[0]}/--no-{flags[0][2:]}"]
    option = typer.Option(*flags, help=f"{field.description}{default}", show_default=False)
    annotation = Annotated[_plain(field.annotation) | None, option]  # type: ignore[valid-type]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _plain(annotation: Any) -> Any:
    """The type as the command line takes it: keys and lists are written as text."""
    if get_origin(annotation) in (Union, UnionType):
        annotation = next(kind for kind in get_args(annotation) if kind is not type(None))
    if get_origin(annotation) is Literal or annotation in (bool, int, float, str, Path):
        return annotation
    return str


# A key on a command line shows in every process list, so secrets come from the environment alone.
_options = [_option(name, field) for name, field in Settings.model_fields.items() if name not in SECRETS]
serve.__signature__ = inspect.Signature(_options)  # type: ignore[attr-defined]
serve.__annotations__ = {option.name: option.annotation for option in _options}
