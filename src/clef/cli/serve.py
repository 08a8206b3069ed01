"""Turns options into settings and serves the page and the API until Ctrl+C."""

import inspect
import ipaddress
import socket
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from clef.errors import EngineError, SettingsError
from clef.settings import SECRETS, Settings, load_settings

GRACE_S = 3
"""Seconds that open requests get when clef is stopped; a second Ctrl+C ends it at once."""


def serve(**options: Any) -> None:
    """Serve the page and the API until Ctrl+C."""
    settings = load_settings(**options)
    listener = listen(settings.host, settings.port)
    host, port = listener.getsockname()[:2]
    typer.echo(f"clef is at http://{f'[{host}]' if ':' in host else host}:{port}   (Ctrl+C stops it)")
    run(settings, listener)


def run(settings: Settings, listener: socket.socket) -> None:
    """Serve on a listening socket. Ctrl+C and SIGTERM end it, the engine with it.

    Raises EngineError where CLEF_EXIT_WITH_ENGINE is set and the engine is lost.
    """
    import uvicorn

    from clef.running import announced, announcement
    from clef.web.app import create_app, open_store

    class Server(uvicorn.Server):
        """Tells the programs of this machine where it is, as long as it answers."""

        async def main_loop(self) -> None:
            with announced(settings.data_dir, running):
                await super().main_loop()

    running = announcement(*listener.getsockname()[:2])
    app = create_app(settings, store=open_store(settings), local_token=running.token)
    # With httptools each answer left in more pieces here, and took 1 ms longer (measured on two cores).
    config = uvicorn.Config(app, http="h11", log_level="warning", access_log=False, lifespan="on")
    config.timeout_graceful_shutdown = GRACE_S
    server = Server(config)
    app.state.end = lambda: setattr(server, "should_exit", True)
    server.run(sockets=[listener])
    if app.state.lost is not None:
        raise EngineError(app.state.lost.message or "the engine ended", hint=app.state.lost.hint)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Raises SettingsError where the address is not this machine's alone, or the port is taken."""
    try:
        address = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        raise SettingsError(f'CLEF_HOST: "{host}" is not an address', hint="use 127.0.0.1 or ::1") from None
    if not address.is_loopback:
        message = f"CLEF_HOST: {host} would let others on the network use clef, which has no access keys yet"
        raise SettingsError(
            message, hint="use 127.0.0.1, and an SSH tunnel (ssh -L 8000:127.0.0.1:8000) from elsewhere"
        )
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    try:
        return socket.create_server((str(address), port), family=family, backlog=2048)
    except OSError as error:
        hint = "is clef running already? another port: --port 8001, or --port 0 for any free one"
        raise SettingsError(f"port {port} cannot be used: {error.strerror}", hint=hint) from error


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
