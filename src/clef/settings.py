"""Turns CLEF_* variables and command-line options into one frozen Settings.

Each field's docstring is the help text of its option, its entry in docs/settings.md and its tooltip on the page.
Options win over the environment, the environment over the defaults.
"""

import shlex
from pathlib import Path
from typing import Annotated, Any, Literal

from platformdirs import user_data_dir
from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from clef.errors import SettingsError

EngineChoice = Literal["auto", "builtin", "llama", "upstream"]
PREFIX = "CLEF_"


class Settings(BaseSettings):
    """Everything that can be set, in one place."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, frozen=True, use_attribute_docstrings=True, env_ignore_empty=True, extra="ignore"
    )

    host: str = "127.0.0.1"
    """Address the page listens on. Only loopback addresses are accepted: clef has no access keys yet."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    """Port the page listens on; 0 takes a free one."""
    engine: EngineChoice = "auto"
    """Who answers: auto (a decision server at the upstream address, else a configured model on llama.cpp, else the
    built-in model), builtin, llama, or upstream."""
    upstream: str = "http://127.0.0.1:8080"
    """Root address of a System One server, such as llama-server, that is used when it answers decisions."""
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
    images: bool = False
    """Read images as well: loads the projector (mmproj) that lies beside the model, which takes memory."""
    exit_with_engine: bool = False
    """End clef when the llama.cpp it started dies, rather than starting it again."""
    questions: Literal["joint", "isolated"] = "joint"
    """How /v1/systemone asks the questions of one request: in one prompt (fewer tokens, and each may move the others)
    or each in a request of its own."""
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

    @field_validator("upstream")
    @classmethod
    def _address(cls, value: str) -> str:
        address = value.rstrip("/").removesuffix("/v1/systemone").removesuffix("/v1")
        if not address.startswith(("http://", "https://")):
            raise ValueError("write it with http:// or https://")
        return address


SECRETS = frozenset({"upstream_key"})
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
