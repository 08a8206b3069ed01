"""Turns CLEF_* variables and command-line options into one frozen Settings.

Each field's docstring is the help text of its option, its entry in docs/settings.md and its tooltip on the page.
Options win over the environment, the environment over the defaults.
"""

import re
import shlex
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from platformdirs import user_data_dir
from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from clef.errors import SettingsError

EngineChoice = Literal["auto", "builtin", "llama", "upstream"]
PREFIX = "CLEF_"
DEVICE = r"^\w+(,\w+)*$"
"""What a device may be called, or several."""


class Settings(BaseSettings):
    """Everything that can be set, in one place."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, frozen=True, use_attribute_docstrings=True, env_ignore_empty=True, extra="ignore"
    )

    host: str = "127.0.0.1"
    """Address the page listens on. Beyond this machine (0.0.0.0 is every address) an access key is asked for."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    """Port the page listens on; 0 takes a free one."""
    engine: EngineChoice = "auto"
    """Who answers: auto (a decision server at the upstream address, else a configured model on llama.cpp, else the
    built-in model), builtin, llama, or upstream."""
    upstream: str = "http://127.0.0.1:8080"
    """Address of a System One server, such as llama-server, that is used when it answers decisions: its root, its /v1,
    or where decisions are posted, such as https://HOST/api/v1/systemone."""
    upstream_key: SecretStr | None = None
    """Access key of the upstream server; sent as a bearer token, never logged or shown."""
    upstream_model: str | None = None
    """Model name sent upstream, for servers that hold several."""
    upstream_timeout: Annotated[float, Field(gt=0)] = 120
    """Seconds to wait for one answer."""
    manage_server: bool = True
    """Whether clef may start a llama.cpp of its own; 0 never does."""
    llama_server: Path | None = None
    """The llama-server program to run; by default the one on PATH, else the one inside the xllamacpp wheel."""
    model: str | None = None
    """Decision model to run on llama.cpp: the path of a .gguf file, or a name that `clef models` lists, which is
    downloaded where it is not on this machine yet."""
    llama_args: Annotated[tuple[str, ...], NoDecode] = ()
    """Further llama-server options, written as on a command line. They come last and win."""
    llama_unset: Annotated[tuple[str, ...], NoDecode] = ()
    """Environment variables that llama.cpp is started without, such as HSA_OVERRIDE_GFX_VERSION."""
    server_log: Path | None = None
    """File that gets the llama.cpp output, or - for the terminal; by default only its last lines are kept, in
    memory."""
    start_attempts: Annotated[int, Field(ge=1, le=20)] = 3
    """How often a llama.cpp that crashes while starting is started again before clef gives up."""
    ready_timeout: Annotated[float, Field(gt=0)] = 1800
    """Seconds a llama.cpp may take from its start until it answers a decision."""
    context: Annotated[int, Field(ge=256)] = 4096
    """Tokens that one request may have: state and questions together. More needs more memory."""
    device: Annotated[str, Field(pattern=DEVICE)] = "auto"
    """Where llama.cpp puts the model: auto (it chooses, and splits over several), none (the processor), or a device by
    its name in `llama-server --list-devices`, such as ROCm0 or CUDA0; several are written with commas."""
    images: bool = False
    """Read images as well: loads the projector (mmproj) that lies beside the model, which takes memory."""
    exit_with_engine: bool = False
    """End clef when the llama.cpp it started dies, rather than starting it again."""
    questions: Literal["joint", "isolated"] = "joint"
    """How /v1/systemone asks the questions of one request: in one prompt (fewer tokens, and each may move the others)
    or each in a request of its own."""
    api_key: SecretStr | None = None
    """Access keys that clef asks for, as KEY or NAME:KEY,NAME:KEY; each at least 16 characters. Without one clef asks
    for none on this machine, and makes one where it is reachable from elsewhere."""
    allowed_hosts: Annotated[tuple[str, ...], NoDecode] = ()
    """Further host names that clef answers to, with commas between them: its name behind a reverse proxy, or *.NAME. An
    access key is asked for then."""
    cors_origins: Annotated[tuple[str, ...], NoDecode] = ()
    """Origins, such as https://app.example.com, whose pages may call the API from a browser; none by default."""
    policy: str | None = None
    """Policy that rules on every answer of /v1: the path of a .json file, or the name of a saved one. The reply says
    act or review for each question."""
    concurrency: Annotated[int, Field(ge=1, le=1024)] = 8
    """Live requests that are in the engine at the same time; further ones wait."""
    max_waiting: Annotated[int, Field(ge=0)] = 64
    """Live requests that may wait for the engine; beyond them the answer is 529, at once, with Retry-After."""
    max_wait: Annotated[float, Field(gt=0)] = 30
    """Seconds a live request may wait for its place in the engine before the answer is 529."""
    eval_concurrency: Annotated[int, Field(ge=1, le=256)] = 4
    """Requests of an evaluation that are under way at the same time."""
    max_body: Annotated[int, Field(ge=1024)] = 200_000_000
    """Bytes a request to clef may have, uploads included."""
    data_dir: Path = Field(default_factory=lambda: Path(user_data_dir("clef")))
    """Folder that keeps runs and the answers of earlier ones; by default the user's own data folder."""
    max_rows: Annotated[int, Field(ge=1)] = 1_000_000
    """Rows a table may have."""

    @field_validator("llama_args", "llama_unset", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return tuple(shlex.split(value)) if isinstance(value, str) else value

    @field_validator("allowed_hosts", "cors_origins", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        return tuple(filter(None, (part.strip() for part in value.split(",")))) if isinstance(value, str) else value

    @field_validator("cors_origins")
    @classmethod
    def _origins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not all(re.fullmatch(r"https?://[^/*]+", origin) for origin in value):
            raise ValueError("write each as https://HOST or http://HOST:PORT, without a path or a *")
        return value

    @field_validator("api_key")
    @classmethod
    def _keys(cls, value: SecretStr | None) -> SecretStr | None:
        read_keys(value.get_secret_value() if value else "")
        return value

    @property
    def access_keys(self) -> dict[str, str]:
        """The keys of `api_key`, by name."""
        return read_keys(self.api_key.get_secret_value() if self.api_key else "")

    @field_validator("upstream")
    @classmethod
    def _address(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("write it with http:// or https:// and a host")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ValueError("write it without a user, password, ? or #; the access key goes into CLEF_UPSTREAM_KEY")
        return value.rstrip("/")

    @field_validator("upstream_key")
    @classmethod
    def _sendable(cls, value: SecretStr | None) -> SecretStr | None:
        key = value.get_secret_value() if value else ""
        if not (key.isascii() and key.isprintable()) or " " in key:
            raise ValueError("a key has no spaces, line breaks or letters beyond ASCII")
        return value


def read_keys(text: str) -> dict[str, str]:
    """Keys by name, of `KEY` or `NAME:KEY,NAME:KEY`. Raises ValueError, which never tells a key."""
    keys: dict[str, str] = {}
    for position, part in enumerate(filter(None, (part.strip() for part in text.split(","))), 1):
        name, separator, key = part.partition(":")
        name, key = (name, key) if separator else (f"key{position}", part)
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,40}", name):
            raise ValueError(f"the name of key {position} may have letters, digits, - and _ only")
        if name in keys or name in ("local", "made"):
            raise ValueError(f'the name "{name}" is taken')
        if len(key) < SHORTEST_KEY or not (key.isascii() and key.isprintable()) or " " in key:
            raise ValueError(f"key {position} needs at least {SHORTEST_KEY} printable characters, and no space")
        keys[name] = key
    return keys


SHORTEST_KEY = 16
SECRETS = frozenset({"upstream_key", "api_key"})
"""Settings that are read from the environment only."""


def load_settings(**options: Any) -> Settings:
    """Settings from the environment and from options that are not None.

    Raises SettingsError naming every value that cannot be used, as the user wrote its name.
    """
    try:
        return Settings(**{name: value for name, value in options.items() if value is not None})
    except ValidationError as error:
        said = [f"{PREFIX}{str(item['loc'][0]).upper()}: {item['msg']}" for item in error.errors()]
        raise SettingsError("; ".join(said), hint="see `clef serve --help` for what each setting takes") from None
