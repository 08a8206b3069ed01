"""Turns a Request into one POST to a System One server somewhere, and its reply into a Reply.

A decision that was answered, not a green /health, is what makes a server ready. No proxy of the environment ever
stands between clef and a loopback address.
"""

import asyncio
import ipaddress
import math
import time
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import orjson

from clef.decisions.examples import Reply, Request
from clef.decisions.questions import Noul
from clef.decisions.wire import decode, encode, read_error
from clef.engines.engine import EngineFacts, EngineKind, Phase
from clef.errors import BadReply, ClefError, EngineError, Refused, TimedOut, TooLong, Unavailable

PROBE = Request("ping", (Noul("Is this a test?"),))
"""The smallest real decision: shows that a server decides, not only that it listens."""
CHECK_TIMEOUT_S = 1.5
"""A status must come quickly; a server that is busy with a long prompt still answers /health."""
KEEP_ALIVE_S = 3.0
"""Idle connections are closed by us before llama.cpp does, which is after 5 s: a request would meet the closing."""
FRESH_S = 1.0
"""A decision answered this recently says more than /health would, so none is asked."""


class UpstreamEngine:
    """Any server that speaks /v1/systemone over HTTP."""

    def __init__(
        self,
        address: str,
        *,
        key: str | None = None,
        model: str | None = None,
        timeout_s: float = 120,
        kind: EngineKind = "upstream",
    ) -> None:
        """`address` is the root of the server, without /v1; `key` goes out as a bearer token and nowhere else."""
        self.address = address.rstrip("/")
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        self._model = model
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._timeout_s = timeout_s
        self._kind: EngineKind = kind
        self._session: aiohttp.ClientSession | None = None
        self._served: str | None = None
        self._limit: int | None = None
        self._sees: bool | None = None
        self._answered_at = -math.inf
        self._closed = False

    async def facts(self) -> EngineFacts:
        """What the server says about itself now."""
        if time.monotonic() - self._answered_at < FRESH_S:
            return self._facts("ready")
        try:
            return await asyncio.wait_for(self._ask_health(), CHECK_TIMEOUT_S)
        except (EngineError, TooLong) as error:
            phase: Phase = "loading" if isinstance(error, Unavailable) and error.phase == "loading" else "off"
            return self._facts(phase, error)
        except TimeoutError:
            return self._facts("off", TimedOut(f"{self.address} does not answer within {CHECK_TIMEOUT_S} s"))

    async def probe(self, timeout_s: float | None = None) -> EngineFacts:
        """Like `facts`, but ready only if a real one-question decision is answered. Never raises."""
        try:
            await asyncio.wait_for(self.decide(PROBE), timeout_s)
        except TimeoutError:
            return self._facts("off", TimedOut(f"{self.address} does not answer a decision within {timeout_s} s"))
        except Unavailable as error:
            return self._facts("loading" if error.phase == "loading" else "off", error)
        except ClefError as error:
            return self._facts("failed", error)
        await self._learn_props()
        return self._facts("ready")

    async def decide(self, request: Request) -> Reply:
        """Answer a request by one POST."""
        body = encode(request)
        if self._model:
            body["model"] = self._model
        status, content = await self._send("POST", "/v1/systemone", orjson.dumps(body))
        if status >= 300:
            raise read_error(status, content.decode("utf-8", "replace"))
        reply = decode(self._parse(content), request)
        self._served = reply.model or self._served
        self._answered_at = time.monotonic()
        return reply

    async def count_tokens(self, request: Request) -> int | None:
        """Not known for a foreign server."""
        return None

    async def close(self) -> None:
        """Close the connections; whatever is asked after that is Unavailable."""
        self._closed = True
        if self._session is not None:
            await self._session.close()

    async def _ask_health(self) -> EngineFacts:
        status, content = await self._send("GET", "/health")
        if status == 404:  # hosted servers have no /health; that they answer at all is enough
            return self._facts("ready")
        if status >= 300:
            raise read_error(status, content.decode("utf-8", "replace"))
        if self._served is None:
            return await self.probe(CHECK_TIMEOUT_S)
        return self._facts("ready")

    async def _learn_props(self) -> None:
        """llama-server tells its context and whether it sees in /props; another server need not have it."""
        if self._limit is not None:
            return
        try:
            status, content = await self._send("GET", "/props")
            props = self._parse(content) if status == 200 else {}
            self._limit = int(props["default_generation_settings"]["n_ctx"])
            self._sees = bool(props["modalities"]["vision"])
        except (ClefError, KeyError, TypeError, ValueError):
            return

    async def _send(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        """Status and body of one exchange. Raises Unavailable where nobody listens, TimedOut after the time-out."""
        try:
            async with self._open().request(method, self.address + path, data=body, headers=self._headers) as response:
                return response.status, await response.read()
        except TimeoutError as error:
            raise TimedOut(
                f"no answer from {self.address} within {self._timeout_s:g} s",
                hint="raise CLEF_UPSTREAM_TIMEOUT, or use a smaller model",
            ) from error
        except aiohttp.InvalidURL as error:
            raise Refused(
                f"{self.address} is not an address", hint="write CLEF_UPSTREAM as http://HOST:PORT"
            ) from error
        except aiohttp.ClientError as error:
            raise Unavailable(
                f"nothing answers at {self.address} ({type(error).__name__})",
                hint="is the server running there? CLEF_UPSTREAM sets the address",
            ) from error

    def _open(self) -> aiohttp.ClientSession:
        """The one keep-alive session, opened in the running event loop at its first use."""
        if self._closed:
            raise Unavailable(f"{self.address} is not asked any more: clef is ending", phase="off")
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S)
            self._session = aiohttp.ClientSession(
                timeout=self._timeout, connector=connector, trust_env=not is_loopback(self.address)
            )
        return self._session

    def _parse(self, content: bytes) -> Any:
        try:
            return orjson.loads(content)
        except orjson.JSONDecodeError as error:
            said = " ".join(content[:60].decode("utf-8", "replace").split())
            raise BadReply(
                f'{self.address} answers something that is not JSON: "{said}"', hint="is this a System One server?"
            ) from error

    def _facts(self, phase: Phase, error: ClefError | None = None) -> EngineFacts:
        return EngineFacts(
            kind=self._kind,
            phase=phase,
            model=self._served or self._model,
            address=self.address,
            max_tokens=self._limit,
            message=error.message if error else None,
            hint=error.hint if error else None,
            images=self._sees,
        )


def is_loopback(address: str) -> bool:
    """Whether an http address is on this machine."""
    host = urlsplit(address).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
