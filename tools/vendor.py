"""Turns pinned npm packages into the files of static/vendor/, with a manifest of what they are.

`python tools/vendor.py` fetches and writes; `python tools/vendor.py --check` only compares what is there with the
manifest. npm itself does the fetching, so a mirror that npm is set up for is used.
"""

import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

VENDOR = Path(__file__).parent.parent / "src" / "clef" / "web" / "static" / "vendor"
MANIFEST = VENDOR / "manifest.json"


@dataclass(frozen=True)
class Vendored:
    """One file that is taken from a package."""

    package: str
    version: str
    path: str
    """Path inside the package."""
    licence_path: str
    why: str

    @property
    def name(self) -> str:
        """The name it gets here."""
        return Path(self.path).name

    @property
    def licence_name(self) -> str:
        """The name that the licence gets here."""
        return f"{self.name.split('.')[0]}.LICENSE.txt"


FILES = (
    Vendored("htmx.org", "4.0.1", "dist/htmx.min.js", "LICENSE", "fragments of pages that the server renders"),
    Vendored("@picocss/pico", "2.1.1", "css/pico.min.css", "LICENSE.md", "the base that the styles build on"),
    Vendored("vega", "6.4.0", "build/vega.min.js", "LICENSE", "charts, where there are any"),
    Vendored("vega-lite", "6.4.3", "build/vega-lite.min.js", "LICENSE", "charts, where there are any"),
    Vendored("vega-embed", "7.3.0", "build/vega-embed.min.js", "LICENSE", "charts, where there are any"),
)


def main(arguments: list[str]) -> int:
    """Fetch, or check with `--check`; the exit status says whether all is well."""
    if arguments == ["--check"]:
        wrong = problems()
        print("\n".join(wrong) or f"{len(FILES)} vendored files are as the manifest says")
        return bool(wrong)
    VENDOR.mkdir(parents=True, exist_ok=True)
    entries = [fetch(file) for file in FILES]
    MANIFEST.write_text(json.dumps(entries, indent=2) + "\n", "utf-8")
    print("\n".join(f"{entry['file']}  {entry['package']} {entry['version']}  {entry['licence']}" for entry in entries))
    return 0


def fetch(file: Vendored) -> dict[str, str]:
    """Write one file and its licence; its entry in the manifest."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", "--silent", "--pack-destination", folder, f"{file.package}@{file.version}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        (archive,) = Path(folder).glob("*.tgz")
        content = member(archive, file.path)
        package = json.loads(member(archive, "package.json"))
        (VENDOR / file.licence_name).write_bytes(member(archive, file.licence_path))
    (VENDOR / file.name).write_bytes(content)
    return {
        "file": file.name,
        "package": file.package,
        "version": file.version,
        "from": file.path,
        "licence": package["license"],
        "licence_file": file.licence_name,
        "sha256": hashlib.sha256(content).hexdigest(),
        "why": file.why,
    }


def member(archive: Path, path: str) -> bytes:
    """The bytes of one file in a package."""
    with tarfile.open(archive) as package:
        found = package.extractfile(f"package/{path}")
        if found is None:
            raise FileNotFoundError(f"{path} is no file in {archive.name}")
        return found.read()


def problems() -> list[str]:
    """What differs between the manifest, the files, and the versions pinned here."""
    entries = {entry["file"]: entry for entry in json.loads(MANIFEST.read_text("utf-8"))}
    wrong = [
        f"{name}: in the manifest, not in tools/vendor.py" for name in entries if name not in {f.name for f in FILES}
    ]
    for file in FILES:
        entry = entries.get(file.name)
        if entry is None or entry["version"] != file.version:
            wrong.append(f"{file.name}: not in the manifest as {file.version}; run tools/vendor.py")
        elif hashlib.sha256((VENDOR / file.name).read_bytes()).hexdigest() != entry["sha256"]:
            wrong.append(f"{file.name}: changed since it was fetched")
    return wrong


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
