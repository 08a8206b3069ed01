"""Turns a request body as it came over the wire into bytes: gzip and zstd opened, never beyond a limit."""

import zlib
from collections.abc import Iterator

from starlette.requests import Request

from clef.errors import InputError
from clef.web.security import too_large

CHUNK = 1 << 16
"""Bytes that are unpacked at a time, so that a small bomb is stopped long before it is large."""


class UnknownEncoding(InputError):
    """A Content-Encoding that clef does not open."""

    code = "content_encoding"
    status = 415


async def read_body(request: Request, limit: int) -> bytes:
    """The body, unpacked. Raises TooLarge above `limit` bytes, InputError where it is not what its header says."""
    body = await request.body()
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
