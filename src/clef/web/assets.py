"""Turns the files of static/ into addresses a browser may keep for ever, and every page into compressed bytes.

An address carries a hash of its file. What is fetched without the hash is checked again at each use, which costs a 304.
Text goes out gzipped, and each file is compressed once. Some files go out as one; see `clef.web.bundles`.
"""

import gzip
import hashlib
import os
from collections.abc import Sequence
from functools import lru_cache
from os import PathLike, fspath, stat_result
from pathlib import Path

from starlette.datastructures import Headers, QueryParams
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from clef.web.bundles import JOINT, STATIC, bundle, joined

FOR_EVER = "public, max-age=31536000, immutable"
CHECK_AGAIN = "no-cache"
SMALLEST = 500
"""Bytes below which compressing costs more than it saves."""
MEDIA_TYPES = {"css": "text/css", "js": "text/javascript"}
TEXT = ("text/", "application/json", "application/javascript", "image/svg")


def static_url(path: str) -> str:
    """Address of a file of static/, which changes whenever the file does."""
    file = STATIC / path
    return f"/static/{path}?v={_digest(path, file.stat().st_mtime_ns)}"


def joint_url(ending: str, names: Sequence[str]) -> str:
    """Address of some styles (css) or elements (js) in one, which changes whenever one of them does."""
    path = joined(ending, names)
    body = bundle(path)
    if body is None:
        raise FileNotFoundError(path)
    return f"/static/{path}?v={_digest_of(body)}"


class Assets(StaticFiles):
    """The static files: compressed, kept for ever under their hashed address, checked again under the plain one."""

    def __init__(self) -> None:
        super().__init__(directory=STATIC)

    async def get_response(self, path: str, scope: Scope) -> Response:
        """A file, or some of them in one."""
        address = path.replace(os.sep, "/")
        body = bundle(address) if address.startswith(f"{JOINT}/") else None
        return await super().get_response(path, scope) if body is None else _joint_response(address, body, scope)

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


def _joint_response(path: str, body: bytes, scope: Scope) -> Response:
    headers, digest = Headers(scope=scope), _digest_of(body)
    is_same = QueryParams(scope["query_string"]).get("v") == digest
    given = {"etag": f'"{digest}"', "vary": "accept-encoding", "cache-control": FOR_EVER if is_same else CHECK_AGAIN}
    if headers.get("if-none-match") == given["etag"]:
        return Response(None, 304, given)
    media_type = MEDIA_TYPES[path.rpartition(".")[2]]
    if _may_gzip(headers, media_type):
        body = _packed(body)
        given["content-encoding"] = "gzip"
    return Response(body, 200, given, media_type)


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


@lru_cache(maxsize=64)
def _digest_of(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:12]


@lru_cache(maxsize=64)
def _packed(body: bytes) -> bytes:
    return gzip.compress(body, 9, mtime=0)
