"""Turns a file of a model into the place where it lies in the cache of Hugging Face, if it does.

Reads folders only: no network, and no import of the hub's library, which costs 0.4 s. The layout is documented by
the hub: models--OWNER--NAME/{blobs,refs,snapshots/COMMIT/FILE}. What is on its way lies in a folder of ours beside
them, because the hub's own partial files are for one process and do not outlive it.
"""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PARTIAL = ".clef-partial"


def hub_cache(env: Mapping[str, str] = os.environ) -> Path:
    """The hub's cache folder, found by the variables it goes by."""
    home = env.get("HF_HOME") or os.path.join(env.get("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    given = env.get("HF_HUB_CACHE") or env.get("HUGGINGFACE_HUB_CACHE") or os.path.join(home, "hub")
    return Path(os.path.expandvars(given)).expanduser()


@dataclass(frozen=True, slots=True)
class Cached:
    """The files of one repository, as far as they are here."""

    repo: str
    cache: Path

    @property
    def folder(self) -> Path:
        """The repository's folder, which need not exist."""
        return self.cache / f"models--{self.repo.replace('/', '--')}"

    def path_of(self, file: str) -> Path | None:
        """Where a whole file is; of several versions the one that was fetched last."""
        found = [path for path in self.folder.glob(f"snapshots/*/{file}") if path.is_file()]
        return max(found, key=lambda path: path.lstat().st_mtime, default=None)

    def partial_bytes(self, file: str) -> int:
        """How much of a file is here that has not arrived in whole."""
        return sum(path.stat().st_size for path in self.partials(file) if path.is_file())

    def partials(self, file: str) -> list[Path]:
        """What is here of a file that has not arrived in whole."""
        return sorted((self.folder / PARTIAL).glob(f"{file.replace('/', '--')}.*.part"))

    def remove(self, file: str) -> int:
        """Delete every version of a file and all that is left of an unfinished one; the bytes that are free then."""
        links = [path for path in self.folder.glob(f"snapshots/*/{file}") if path.is_symlink() or path.is_file()]
        targets = {path.resolve() for path in links}
        freed = sum(path.stat().st_size for path in targets if path.is_file())
        freed += self.partial_bytes(file)
        for path in links + self.partials(file):
            path.unlink(missing_ok=True)
        still_used = {path.resolve() for path in self.folder.glob("snapshots/*/*")}
        for blob in targets - still_used:
            if blob.is_relative_to(self.folder.resolve()):
                blob.unlink(missing_ok=True)
        if not any(path.is_file() for path in self.folder.glob("snapshots/*/*")):
            shutil.rmtree(self.folder, ignore_errors=True)
        return freed
