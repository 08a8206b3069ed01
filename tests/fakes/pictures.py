"""Small images, and headers that claim to be large ones."""

import base64
import struct
import zlib
from typing import Any

from aiohttp import web

from tests.fakes.system_one import SystemOne, even


async def look(server: SystemOne, body: dict[str, Any]) -> web.StreamResponse:
    """Answer as a server does that looks at images, and so notices what is none."""
    if any(image.endswith("base64,AAAA") for image in body.get("images", ())):
        return web.json_response({"error": {"message": "cannot decode the image"}}, status=400)
    return web.json_response(even(body))


def url(content: bytes, kind: str = "image/png") -> str:
    """A data URL."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def png(width: int, height: int) -> bytes:
    """A grey PNG; of one that is too large to be real only its header is true."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    rows = b"".join(b"\0" + b"\x80" * width for _ in range(height)) if width * height < 10_000 else b""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
