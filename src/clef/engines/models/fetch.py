"""Turns names of files on a hub into whole files in its cache, going on where an earlier try was cut off.

    python -P fetch.py CACHE REPO FILE [FILE ...]

A program of its own, so that a pause is the end of a process and a page never waits for a slow link; standard library
and huggingface-hub only, run by path. It says what happens as JSON lines on stdout: {"files": …} with sizes first,
{"fetching": FILE}, {"verifying": FILE}, {"done": PATHS}, or {"failed": KIND, …}. The token is read from the
environment by the hub's library. That library's own download function deletes what it has when it is interrupted, so
its parts are used instead: a file's facts, the transfer with resume and retries, and the cache for the whole file.
"""

import hashlib
import json
import logging
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

LOCK_WAIT_S = 0.2
MARGIN_BYTES = 200_000_000
"""Left free on the disk."""
SHA256 = re.compile(r"[0-9a-f]{64}")
CHUNK_BYTES = 256 * 1024
"""The library's 10 MB would lose as much at each pause, and show progress in such steps."""


class Failed(Exception):
    """The download cannot go on; `kind` is a stable name."""

    def __init__(self, kind: str, message: str, **more: object) -> None:
        super().__init__(message)
        self.report = {"failed": kind, "message": message, **more}


def say(**event: object) -> None:
    """One line for whoever started us."""
    print(json.dumps(event), flush=True)


@dataclass(frozen=True, slots=True)
class Piece:
    """One file that is wanted, and where it is collected and kept."""

    repo: str
    file: str
    size: int
    commit: str
    etag: str
    folder: Path
    """The repository's folder in the cache."""

    @property
    def partial(self) -> Path:
        """Where this version of the file is collected."""
        return self.folder / ".clef-partial" / f"{self.file.replace('/', '--')}.{self.etag}.part"

    @property
    def blob(self) -> Path:
        """Where the whole file goes."""
        return self.folder / "blobs" / self.etag

    @property
    def missing_bytes(self) -> int:
        """What has still to come."""
        if self.blob.exists():
            return 0
        return self.size - (self.partial.stat().st_size if self.partial.exists() else 0)


def piece_of(cache: Path, repo: str, file: str) -> Piece:
    """What the hub says about a file."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_url

    facts = get_hf_file_metadata(hf_hub_url(repo, file), token=None)
    if facts.size is None or facts.etag is None or facts.commit_hash is None:
        raise Failed("hub", "what answers there is not a model hub", hint="check HF_ENDPOINT and the proxy settings")
    folder = cache / f"models--{repo.replace('/', '--')}"
    return Piece(repo, file, facts.size, facts.commit_hash, facts.etag, folder)


def transfer(piece: Piece) -> None:
    """Bring a partial file to its full length."""
    from huggingface_hub import hf_hub_url
    from huggingface_hub.errors import HfHubHTTPError
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined] # documented there, not in __all__

    partial = piece.partial
    for stale in partial.parent.glob(f"{piece.file.replace('/', '--')}.*.part"):
        if stale != partial:
            stale.unlink()
    with partial.open("ab") as out:
        if out.tell() > piece.size:
            out.truncate(0)
        try:
            http_get(
                hf_hub_url(piece.repo, piece.file, revision=piece.commit),
                out,
                resume_size=out.tell(),
                headers=build_hf_headers(),
                expected_size=piece.size,
            )
        except HfHubHTTPError as error:
            if error.response.status_code != 416:
                raise
            partial.unlink()
            message = f"the server refused to go on with {piece.file}, so what was there of it was deleted"
            raise Failed("range", message, hint="start the download again") from error


def verify(piece: Piece) -> None:
    """Compare the content with its hash, which is the hub's name for a large file."""
    say(verifying=piece.file)
    if not SHA256.fullmatch(piece.etag):
        return
    with piece.partial.open("rb") as content:
        if hashlib.file_digest(content, "sha256").hexdigest() == piece.etag:
            return
    piece.partial.unlink()
    raise Failed("damaged", f"{piece.file} arrived damaged and was deleted", hint="start the download again")


def fetch(cache: Path, repo: str, files: list[str]) -> list[str]:
    """The paths of files that are whole now."""
    from filelock import Timeout
    from huggingface_hub import hf_hub_download
    from huggingface_hub.utils import WeakFileLock  # type: ignore[attr-defined] # documented there, not in __all__

    pieces = [piece_of(cache, repo, file) for file in files]
    say(files=[{"file": piece.file, "size": piece.size} for piece in pieces])
    for folder in (pieces[0].partial.parent, pieces[0].blob.parent):
        folder.mkdir(parents=True, exist_ok=True)
    paths: list[str] = []
    try:
        with WeakFileLock(pieces[0].partial.with_name("lock"), timeout=LOCK_WAIT_S):
            require_space(cache, sum(piece.missing_bytes for piece in pieces))
            for piece in pieces:
                if not piece.blob.exists():
                    say(fetching=piece.file)
                    transfer(piece)
                    verify(piece)
                    piece.partial.replace(piece.blob)
                paths.append(hf_hub_download(repo, piece.file, cache_dir=cache, revision=piece.commit))
            # By commit, or a repository that was changed meanwhile would be fetched again; so the name is noted here.
            ref = pieces[0].folder / "refs" / "main"
            ref.parent.mkdir(exist_ok=True)
            ref.write_text(pieces[0].commit)
    except Timeout as error:
        raise Failed("busy", f"{repo} is being downloaded already, by another clef", hint="wait for it") from error
    return paths


def require_space(cache: Path, needed: int) -> None:
    """Raise Failed where the disk has no room for what has still to come."""
    free = shutil.disk_usage(cache).free
    if needed and needed + MARGIN_BYTES > free:
        said = f"{needed / 1e9:,.1f} GB are needed and {free / 1e9:,.1f} GB are free in {cache}"
        raise Failed("space", said, hint="make room there, or set HF_HOME to a folder on another disk")


def explain(error: Exception, repo: str) -> dict[str, object]:
    """What a failure means, with the choices there are."""
    from huggingface_hub import constants, errors

    page = f"{constants.ENDPOINT}/{repo}"
    if isinstance(error, Failed):
        return error.report
    if isinstance(error, errors.GatedRepoError):
        hint = f"open {page} in a browser, accept its terms, and set HF_TOKEN to an access token of yours"
        return {"failed": "gated", "message": f"{repo} is only for those who accepted its terms", "hint": hint}
    if isinstance(error, errors.RepositoryNotFoundError):
        hint = f"look at {page}; a private one needs HF_TOKEN"
        return {"failed": "missing", "message": f"there is no {repo}, or it is private", "hint": hint}
    if isinstance(error, errors.EntryNotFoundError):
        choices = _choices(repo)
        hint = f"there are: {', '.join(choices)}" if choices else f"look at {page}"
        return {"failed": "missing", "message": f"that file is not in {repo}", "hint": hint, "choices": choices}
    if isinstance(error, errors.HfHubHTTPError):
        status = error.response.status_code
        if status == 401:
            said = "the hub refuses the access token in HF_TOKEN"
            return {"failed": "token", "message": said, "hint": "make a new one, or unset HF_TOKEN"}
        return {"failed": "hub", "message": f"the hub answered {status}", "hint": "try again later; what is here stays"}
    if isinstance(error, OSError) and error.errno is not None and error.filename is not None:
        return {"failed": "disk", "message": f"{error.filename}: {error.strerror}", "hint": None}
    hint = "what is here stays: start the download again when there is a connection"
    return {"failed": "network", "message": f"no connection to {constants.ENDPOINT}", "hint": hint}


def _choices(repo: str) -> list[str]:
    from huggingface_hub import list_repo_files

    try:
        return sorted(name for name in list_repo_files(repo) if name.endswith(".gguf"))
    except Exception:  # the list is a help; without it the message stands alone
        return []


def main(arguments: list[str]) -> int:
    """Fetch as the arguments say; the exit code."""
    cache, repo, *files = arguments
    from huggingface_hub import constants

    constants.DOWNLOAD_CHUNK_SIZE = CHUNK_BYTES
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    try:
        say(done=fetch(Path(cache), repo, files))
    except Exception as error:  # every failure becomes a line; nobody reads a traceback from here
        say(**explain(error, repo))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
