"""Turns the files of static/ into addresses a browser may keep for ever, and every page into compressed bytes.

An address carries a hash of its file. What is fetched without the hash (an import inside a script or a style sheet)
is checked again at each use, which costs a 304. Text goes out gzipped, and each file is compressed once.
"""

import gzip
import hashlib
from functools import lru_cache
from os import PathLike, fspath, stat_result
from pathlib import Path

from starlette.datastructures import Headers, QueryParams
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

STATIC = Path(__file__).parent / "static"
FOR_EVER = "public, max-age=31536000, immutable"
CHECK_AGAIN = "no-cache"
SMALLEST = 500
"""Bytes below which compressing costs more than it saves."""
TEXT = ("text/", "application/json", "application/javascript", "image/svg")


def static_url(path: str) -> str:
    """Address of a file of static/, which changes whenever the file does."""
    file = STATIC / path
    return f"/static/{path}?v={_digest(path, file.stat().st_mtime_ns)}"


class Assets(StaticFiles):
    """The static files: compressed, kept for ever under their hashed address, checked again under the plain one."""

    def __init__(self) -> None:
        super().__init__(directory=STATIC)

    def file_response(
        self, full_path: str | PathLike[str], stat_result: stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        """The file with its caching headers, or a 304."""
        response = super().file_response(full_path, stat_result, scope, status_code)
        wanted = QueryParams(scope["query_string"]).get("v")
        path = Path(full_path)
        hashed = wanted is not None and wanted == _digest(_name(path), path.stat().st_mtime_ns)
        if response.status_code == 200 and _may_gzip(Headers(scope=scope), response.headers["content-type"]):
            body = _compressed(fspath(full_path), stat_result.st_mtime_ns)
            kept = {name: response.headers[name] for name in ("etag", "last-modified", "content-type")}
            kept |= {"content-encoding": "gzip"}
            response = Response(body, status_code, kept)
        response.headers["cache-control"] = FOR_EVER if hashed else CHECK_AGAIN
        response.headers["vary"] = "accept-encoding"
        return response


def compress(response: Response, request_headers: Headers) -> Response:
    """The response, its body gzipped where the browser takes that. Changes the response it is given."""
    body = bytes(response.body)
    response.headers["vary"] = "accept-encoding, hx-request"
    if len(body) >= SMALLEST and _may_gzip(request_headers, response.headers["content-type"]):
        response.body = gzip.compress(body, 6, mtime=0)
        response.headers["content-encoding"] = "gzip"
        response.headers["content-length"] = str(len(response.body))
    return response


def _may_gzip(headers: Headers, content_type: str) -> bool:
    return "gzip" in headers.get("accept-encoding", "") and content_type.startswith(TEXT)


def _name(path: Path) -> str:
    return path.resolve().relative_to(STATIC.resolve()).as_posix()


@lru_cache(maxsize=256)
def _digest(path: str, modified_ns: int) -> str:
    return hashlib.sha256((STATIC / path).read_bytes()).hexdigest()[:12]


@lru_cache(maxsize=256)
def _compressed(path: str, modified_ns: int) -> bytes:
    return gzip.compress(Path(path).read_bytes(), 9, mtime=0)
