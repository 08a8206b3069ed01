"""Turns the path of a model file into what its header says, or says in words why llama.cpp could not load it.

Only the header is read (some MB of a 10 GB file, 0.1 s with a vocabulary of 250,000 tokens). Layout: GGUF version 2
and 3, https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""

import hashlib
import mmap
import re
import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from clef.errors import SettingsError

MAGIC: Final = b"GGUF"
SAMPLES, SAMPLE_BYTES = 32, 16_384
_AGAIN = "download the file again"
_WINDOWS_PATH = re.compile(r"^([A-Za-z]):[\\/](.*)$")
_SHARD = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$")
_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_STRING, _ARRAY = 8, 9
BLOCKS: Final[dict[int, tuple[int, int]]] = {
    **{0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 9: (32, 40)},
    **{10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 15: (256, 292)},
    **{16: (256, 66), 17: (256, 74), 18: (256, 98), 19: (256, 50), 20: (32, 18), 21: (256, 110), 22: (256, 82)},
    **{23: (256, 136), 24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8), 28: (1, 8), 29: (256, 56), 30: (1, 2)},
    **{34: (256, 54), 35: (256, 66), 39: (32, 17), 40: (64, 36), 41: (128, 18)},
}
"""Values a block and bytes a block of each tensor type."""


MAX_DIMENSIONS = 4
"""Dimensions of a tensor in ggml; a damaged header may claim billions."""


@dataclass(frozen=True, slots=True)
class Header:
    """What a GGUF file says about itself."""

    architecture: str
    kind: str
    """`general.type`: model, mmproj, adapter, …"""
    name: str | None
    decision_type: str | None
    """How it decides, such as clef or openjev; None for a model that does not, and for some old conversions."""
    context: int | None
    """Tokens it was trained for."""
    layers: int | None
    size_bytes: int
    """Size of the file."""
    needed_bytes: int
    """Size that the tensor table asks for."""


def check_model(given: str) -> Path:
    """The absolute path of a whole model that is there. Raises SettingsError otherwise."""
    windows = _WINDOWS_PATH.match(given)
    if windows and sys.platform != "win32":
        there = f"/mnt/{windows[1].lower()}/{windows[2]}".replace("\\", "/")
        raise SettingsError(f'"{given}" is a Windows path', hint=f'inside WSL that file is "{there}"')
    path = Path(given).expanduser().absolute()
    if path.is_dir():
        raise SettingsError(f'"{path}" is a folder, not a model file', hint=_models_in(path))
    if not path.is_file():
        raise SettingsError(f'there is no model file "{path}"', hint=_models_in(path.parent))
    shard = _SHARD.search(path.name)
    if shard and int(shard[1]) > 1:
        first = _SHARD.sub(f"-00001-of-{shard[2]}.gguf", path.name)
        raise SettingsError(f'"{path.name}" is part {int(shard[1])} of {int(shard[2])}', hint=f'choose "{first}"')
    header = read_header(path)
    if header.kind == "mmproj" or header.architecture == "clip":
        raise SettingsError(f'"{path.name}" is a projector for images, not a model', hint=_models_in(path.parent))
    return path


def find_projector(model: Path) -> Path | None:
    """The projector for images that lies beside a model; of several, the one that shares most of the model's name."""
    found = [path for path in sorted(model.parent.glob("*mmproj*.gguf")) if path.is_file()]
    stem = model.stem.lower()
    return max(found, key=lambda path: sum(part in stem for part in path.stem.lower().split("-")), default=None)


def fingerprint(path: Path) -> str:
    """What tells this file's weights from others of the same name: a hash of its size and of samples all through it.

    A hash of everything would take half a minute for a 10 GB file. Raises OSError.
    """
    size = path.stat().st_size
    digest = hashlib.blake2b(str(size).encode(), digest_size=8)
    with path.open("rb") as file:
        for n in range(SAMPLES):
            file.seek(size * n // SAMPLES)
            digest.update(file.read(SAMPLE_BYTES))
    return digest.hexdigest()


def read_header(path: Path) -> Header:
    """What the file says about itself. Raises SettingsError for what is no GGUF, is damaged or cut short."""
    try:
        with path.open("rb") as file:
            start = file.read(512)
            if start[:4] != MAGIC:
                raise SettingsError(f'"{path}" is not a GGUF model: {_what_it_is(start)}', hint=_AGAIN)
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                header = _Reader(data).header()
    except OSError as error:
        raise SettingsError(f'the model file "{path}" cannot be read: {error.strerror}') from error
    except (struct.error, LookupError, ArithmeticError, UnicodeDecodeError, RecursionError) as error:
        raise SettingsError(f'the model file "{path}" is damaged or cut short in its header', hint=_AGAIN) from error
    if header.size_bytes < header.needed_bytes:
        has, needs = (f"{size / 1e6:,.1f} MB" for size in (header.size_bytes, header.needed_bytes))
        raise SettingsError(f'the model file "{path}" is cut short: it has {has} of {needs}', hint=_AGAIN)
    return header


class _Reader:
    """A cursor over the header of a GGUF file."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._at = 4

    def header(self) -> Header:
        version = self._number("<I")
        if not 2 <= version <= 3:
            raise KeyError(version)
        tensors, entries = self._number("<Q"), self._number("<Q")
        values = dict(self._entry() for _ in range(entries))
        ends = [self._tensor() for _ in range(tensors)]
        alignment = _int(values.get("general.alignment")) or 32
        needed = max((-(-self._at // alignment) * alignment + end for end in ends), default=self._at)
        architecture = str(values["general.architecture"])
        name, decision_type = values.get("general.name"), values.get(f"{architecture}.decision.type")
        return Header(
            architecture,
            str(values.get("general.type", "model")),
            None if name is None else str(name),
            None if decision_type is None else str(decision_type),
            _int(values.get(f"{architecture}.context_length")),
            _int(values.get(f"{architecture}.block_count")),
            len(self._data),
            needed,
        )

    def _scalar(self, layout: str) -> int | float:
        (value,) = struct.unpack_from(layout, self._data, self._at)
        self._at += struct.calcsize(layout)
        return value  # type: ignore[no-any-return] # the layouts are all of numbers

    def _number(self, layout: str) -> int:
        return int(self._scalar(layout))

    def _text(self) -> str:
        length = self._number("<Q")
        self._at += length
        if self._at > len(self._data):
            raise IndexError(self._at)
        return self._data[self._at - length : self._at].decode()

    def _entry(self) -> tuple[str, object]:
        return self._text(), self._value(self._number("<I"))

    def _value(self, kind: int) -> object:
        """One value; an array is passed over, since none is needed here."""
        if kind == _STRING:
            return self._text()
        if kind == _ARRAY:
            item, count = self._number("<I"), self._number("<Q")
            if item in _SCALARS:
                self._at += struct.calcsize(_SCALARS[item]) * count
            else:
                self._skip_array(item, count)
            return None
        return self._scalar(_SCALARS[kind])

    def _skip_array(self, item: int, count: int) -> None:
        if item != _STRING:
            for _ in range(count):
                self._value(item)
            return
        length_of, data, at = struct.Struct("<Q").unpack_from, self._data, self._at
        for _ in range(count):
            at += 8 + length_of(data, at)[0]
        self._at = at

    def _tensor(self) -> int:
        """Where a tensor ends, from the start of the data; where it begins for a type that is not known."""
        self._text()
        values, dimensions = 1, self._number("<I")
        if dimensions > MAX_DIMENSIONS:
            raise KeyError(dimensions)
        for _ in range(dimensions):
            values *= self._number("<Q")
        block, size = BLOCKS.get(self._number("<I"), (1, 0))
        return self._number("<Q") + -(-values // block) * size


def _int(value: object) -> int | None:
    return value if isinstance(value, int) else None


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
    if text.startswith(b"<"):
        return "it is a web page, saved under a model's name"
    if text.startswith(b"version https://git-lfs"):
        return "it is a Git LFS pointer, not the file it points to"
    if text.startswith((b"{", b"invalid", b"entry not found", b"access to")):
        return "it is the error message of a download"
    return f"it begins with {start[:4]!r}, not with {MAGIC!r}"
