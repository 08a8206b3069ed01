"""Turns a request body as it came over the wire into bytes and JSON: gzip and zstd opened, never beyond a limit.

A client that stops in the middle of its body is told so after BODY_S without a byte; meanwhile it holds no place in
any line.
"""

import asyncio
import json
import zlib
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import orjson
from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from clef.errors import InputError, Problem
from clef.web.security import too_large

CHUNK = 1 << 16
"""Bytes that are unpacked at a time, so that a small bomb is stopped long before it is large."""


SMALLEST_LOST = 2.0**63
"""From here on, below zero as above, orjson may have read a whole number as a float."""
BODY_S = 30.0
"""How long a client may pause within its body."""
MOST_PARTS = 9
"""Parts of a form with a request: the request and its images."""


class UnknownEncoding(InputError):
    """A Content-Encoding that clef does not open."""

    code = "content_encoding"
    status = 415


class WrongType(InputError):
    """A Content-Type that a route does not take."""

    code = "content_type"
    status = 415


class TooSlow(InputError):
    """The client stopped in the middle of its body."""

    code = "body_timeout"
    status = 408


async def read_json_body(request: Request, limit: int) -> Any:
    """The JSON of a body. Raises as `read_body`, and WrongType for a body that says it is something else."""
    kind = _kind(request.headers)
    if kind and kind != "application/json" and not kind.endswith("+json"):
        raise WrongType(f'the body is "{kind[:60]}"', hint="send JSON, with Content-Type: application/json")
    return read_json(await read_body(request, limit))


async def read_request_body(request: Request, limit: int) -> tuple[Any, dict[str, bytes]]:
    """The JSON of a body and the bytes of the parts beside it, by name: a form with a part `request`, or JSON alone.

    Raises as `read_json_body`.
    """
    if _kind(request.headers) != "multipart/form-data":
        return await read_json_body(request, limit), {}
    body = await read_body(request, limit)
    parser = MultiPartParser(request.headers, _once(body), max_files=MOST_PARTS, max_part_size=limit)
    try:
        form = await parser.parse()
    except (MultiPartException, KeyError) as error:
        said = error.message if isinstance(error, MultiPartException) else "it has no boundary"
        raise InputError(f"the form cannot be read: {said}") from error
    parts = {}
    for name, value in form.multi_items():
        parts[name] = await value.read() if isinstance(value, UploadFile) else value.encode()
    await form.close()
    if "request" not in parts:
        raise InputError("the form has no part `request`")
    return read_json(parts.pop("request")), parts


def read_json(body: bytes) -> Any:
    """The JSON of a body, its whole numbers exact. Raises InputError saying where it stops being JSON."""
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        problem = Problem(f"the body is not JSON: {error}", "not_json", line=error.lineno)
        raise InputError.of([problem]) from error
    if not _has_float_beyond_64_bits(found):
        return found
    try:
        return json.loads(body)
    except RecursionError:
        raise InputError.of([Problem("the body is nested too deep to be read", "too_deep")]) from None


def _has_float_beyond_64_bits(value: Any) -> bool:
    """Whether a number may be a whole one that orjson read as a float. Walks without recursion."""
    left = [value]
    while left:
        item = left.pop()
        if isinstance(item, float):
            if abs(item) >= SMALLEST_LOST:
                return True
        elif isinstance(item, dict):
            left.extend(item.values())
        elif isinstance(item, list):
            left.extend(item)
    return False


async def read_body(request: Request, limit: int) -> bytes:
    """The body, unpacked. Raises TooLarge above `limit` bytes, TooSlow, and InputError where it is not what its header
    says.
    """
    body = await _received(request, limit)
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding in ("", "identity"):
        return body
    unpackers = {"gzip": _gzip, "deflate": _gzip, "zstd": _zstd}
    if encoding not in unpackers:
        message = f'the body is packed with "{encoding}", which clef does not open'
        raise UnknownEncoding(message, hint="send it plain, or with gzip or zstd")
    unpacked = bytearray()
    for chunk in unpackers[encoding](body):
        unpacked += chunk
        if len(unpacked) > limit:
            raise too_large(limit)
    return bytes(unpacked)


async def _received(request: Request, limit: int) -> bytes:
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > limit:
        raise too_large(limit)
    chunks: list[bytes] = []
    size, more = 0, True
    while more:
        try:
            async with asyncio.timeout(BODY_S):
                message = await request.receive()
        except TimeoutError:
            raise TooSlow(f"nothing more of the body came for {BODY_S:g} s") from None
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        if size > limit:
            raise too_large(limit)
        more = message.get("more_body", False)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


async def _once(body: bytes) -> AsyncGenerator[bytes, None]:
    yield body


def _kind(headers: Headers) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _gzip(body: bytes) -> Iterator[bytes]:
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 32)  # gzip or zlib, as its first bytes say
    try:
        while body and not unpacker.eof:
            yield unpacker.decompress(body, CHUNK)
            body = unpacker.unconsumed_tail
    except zlib.error as error:
        raise InputError(f"the body is not the gzip that its header says: {error}") from error
    if not unpacker.eof:
        raise InputError("the gzip body ends too early")


def _zstd(body: bytes) -> Iterator[bytes]:
    import zstandard

    try:
        with zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(body) as reader:
            while chunk := reader.read(CHUNK):
                yield chunk
    except zstandard.ZstdError as error:
        raise InputError(f"the body is not the zstd that its header says: {error}") from error
