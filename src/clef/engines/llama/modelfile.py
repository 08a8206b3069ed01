"""Turns the path of a model file into a path that llama.cpp can load, or says in words why it cannot be one."""

import re
import sys
from pathlib import Path

from clef.errors import SettingsError

MAGIC = b"GGUF"
_WINDOWS_PATH = re.compile(r"^([A-Za-z]):[\\/](.*)$")
_SHARD = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$")


def check_model(given: str) -> Path:
    """The absolute path of a model that is there and begins like one. Raises SettingsError otherwise."""
    windows = _WINDOWS_PATH.match(given)
    if windows and sys.platform != "win32":
        there = f"/mnt/{windows[1].lower()}/{windows[2]}".replace("\\", "/")
        raise SettingsError(f'"{given}" is a Windows path', hint=f'inside WSL that file is "{there}"')
    path = Path(given).expanduser().absolute()
    if path.is_dir():
        raise SettingsError(f'"{path}" is a folder, not a model file', hint=_models_in(path))
    if not path.is_file():
        raise SettingsError(f'there is no model file "{path}"', hint=_models_in(path.parent))
    _refuse_parts(path)
    try:
        with path.open("rb") as file:
            start = file.read(512)
    except OSError as error:
        raise SettingsError(f'the model file "{path}" cannot be read: {error.strerror}') from error
    if start[:4] != MAGIC:
        raise SettingsError(f'"{path}" is not a GGUF model: {_what_it_is(start)}', hint="download the file again")
    return path


def _refuse_parts(path: Path) -> None:
    shard = _SHARD.search(path.name)
    if shard and int(shard[1]) > 1:
        first = _SHARD.sub(f"-00001-of-{shard[2]}.gguf", path.name)
        raise SettingsError(f'"{path.name}" is part {int(shard[1])} of {int(shard[2])}', hint=f'choose "{first}"')


def _models_in(folder: Path) -> str:
    try:
        names = sorted(item.name for item in folder.glob("*.gguf"))[:5]
    except OSError:
        names = []
    return f"there are: {', '.join(names)}" if names else "give the path of a .gguf file"


def _what_it_is(start: bytes) -> str:
    """What a file that is no GGUF looks like."""
    text = start.lstrip().lower()
    if not start:
        return "it is empty"
    if text.startswith((b"<!doctype", b"<html", b"<?xml", b"<")):
        return "it is a web page, saved under a model's name"
    if text.startswith(b"version https://git-lfs"):
        return "it is a Git LFS pointer, not the file it points to"
    if text.startswith((b"{", b"invalid", b"entry not found", b"access to")):
        return "it is the error message of a download"
    return f"it begins with {start[:4]!r}, not with {MAGIC!r}"
