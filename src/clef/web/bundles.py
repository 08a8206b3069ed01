"""Turns several files of static/ into one, so that a page asks once for its styles and once for its scripts.

    joint/run+gates.css           styles one after the other; what `@import` names stands in its place, in its layer
    joint/run-gates+row-label.js  each module in a block of its own, after the modules that it imports

The sources stay apart and nothing has to be built. A request costs the server more than its bytes do, and a page in an
empty browser made twenty of them. Modules say `import { a, b as c } from "./name.js"` and `export function`; what they
load later by `import("./name.js")` is a bundle of its own, so a module that others import keeps nothing it cannot have
twice.
"""

import os
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

STATIC = Path(__file__).parent / "static"
JOINT = "joint"
"""The folder of static/ that all this seems to be in."""
FOLDERS = {"css": "styles", "js": "elements"}
"""The folders whose files are put together, by what those end in."""
_NAME = re.compile(r"[a-z][a-z-]*")
_STYLE = re.compile(r'^@import url\("([^"]+)"\) layer\(([a-z]+)\);$', re.M)
_CHARSET = re.compile(r'^@charset "[^"]*";')
_IMPORT = re.compile(r'^import \{ ([^}]+) \} from "\./([a-z-]+)\.js";$', re.M)
_EXPORT = re.compile(r"^export (?=(?:async )?function (\w+))", re.M)
_OTHER = re.compile(r"^(?:import|export)\b.*", re.M)


def joined(ending: str, names: Sequence[str]) -> str:
    """The path of some styles (css) or elements (js) in one."""
    return f"{JOINT}/{'+'.join(names)}.{ending}"


def bundle(path: str) -> bytes | None:
    """What is at such a path; None where one of its files is not there. It is made anew once a file changes."""
    stem, _, ending = path.removeprefix(f"{JOINT}/").rpartition(".")
    names = tuple(stem.split("+"))
    if ending not in FOLDERS or len(set(names)) < len(names) or not all(_NAME.fullmatch(name) for name in names):
        return None
    folder = STATIC / FOLDERS[ending]
    if not all((folder / f"{name}.{ending}").is_file() for name in names):
        return None
    return _bundle(ending, names, max(_changed(folder), _changed(STATIC / "vendor")))


@lru_cache(maxsize=64)
def _bundle(ending: str, names: tuple[str, ...], changed_ns: int) -> bytes:
    parts = _scripts(names) if ending == "js" else (_style(STATIC / "styles" / f"{name}.css") for name in names)
    return "\n".join(parts).encode()


def _changed(folder: Path) -> int:
    """When a file of a folder was changed last."""
    with os.scandir(folder) as files:
        return max(file.stat().st_mtime_ns for file in files)


def _style(file: Path) -> str:
    def imported(found: re.Match[str]) -> str:
        return f"@layer {found[2]} {{\n{_style(file.parent / found[1])}\n}}"

    return _STYLE.sub(imported, _CHARSET.sub("", file.read_text("utf-8")))


def _scripts(names: Sequence[str]) -> Iterator[str]:
    """The modules in an order in which each comes after those it needs, and once; one alone exports as it did."""
    waiting, done = list(reversed(names)), set[str]()
    while waiting:
        name = waiting[-1]
        text = (STATIC / "elements" / f"{name}.js").read_text("utf-8")
        missing = [needed for _, needed in _IMPORT.findall(text) if needed not in done]
        if missing:
            waiting.extend(missing)
            continue
        waiting.pop()
        if name not in done:
            done.add(name)
            yield _module(name, text)
    exported = _EXPORT.findall(text)
    if exported and len(names) == 1:
        yield f"export const {{ {', '.join(exported)} }} = {_constant(name)};\n"


def _module(name: str, text: str) -> str:
    """A module as a block; what it exports is in a constant named after it. Raises ValueError for another way to
    import or to export.
    """
    exported = _EXPORT.findall(text)
    body = _EXPORT.sub("", text)
    body = _IMPORT.sub(lambda found: f"const {{ {found[1].replace(' as ', ': ')} }} = {_constant(found[2])};", body)
    if other := _OTHER.search(body):
        raise ValueError(f"elements/{name}.js: a bundle has no room for `{other[0]}`")
    if not exported:
        return f"// {name}.js\n{{\n{body}}}\n"
    constant = _constant(name)
    given = f"Object.assign({constant}, {{ {', '.join(exported)} }});"
    return f"// {name}.js\nconst {constant} = {{}};\n{{\n{body}{given}\n}}\n"


def _constant(name: str) -> str:
    return f"${name.replace('-', '_')}"
