"""Turns what is installed into constraints.txt and the same list in pyproject.toml, where uv reads it.

uv.lock spells out download addresses, so it is not kept; plain `name==version` lines are.
"""

import re
from importlib.metadata import distributions
from pathlib import Path

ROOT = Path(__file__).parent.parent
HEAD = "# The versions that the last green run used; written by `make constraints`.\n"
LIST = re.compile(r"constraint-dependencies = \[\n(.*?)\]\n", re.DOTALL)


def installed() -> list[str]:
    """`name==version` of every installed distribution but clef itself, sorted."""
    pins = {f"{_name(found.metadata['Name'])}=={found.version}" for found in distributions()}
    return sorted(pin for pin in pins if not pin.startswith("clef=="))


def pinned() -> list[str]:
    """The lines of constraints.txt without its comment."""
    return [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]


def in_pyproject() -> list[str]:
    """The list that uv reads."""
    found = LIST.search((ROOT / "pyproject.toml").read_text())
    return re.findall(r'"(.+?)"', found[1]) if found else []


def main() -> None:
    """Write both."""
    pins = installed()
    (ROOT / "constraints.txt").write_text(HEAD + "".join(f"{pin}\n" for pin in pins))
    lines = "".join(f'  "{pin}",\n' for pin in pins)
    path = ROOT / "pyproject.toml"
    path.write_text(LIST.sub(f"constraint-dependencies = [\n{lines}]\n", path.read_text()))


def _name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    main()
