"""Turns a Request into one POST to a System One server somewhere, and its reply into a Reply.

A decision that was answered, not a green /health, is what makes a server ready. No proxy of the environment ever
stands between clef and a loopback address. The access key is in the header that goes out and in nothing that is
shown: a server that repeats it has it taken out of what it said.
"""

import asyncio
import ipaddress
import math
import os
import time
from dataclasses import replace
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import orjson

from clef.decisions.examples import PROBE, Reply, Request
from clef.decisions.refusals import MODEL_WANTED, SET_MODEL, error_within, read_error
from clef.decisions.wire import decode
from clef.engines.engine import EngineFacts, EngineKind, Phase
from clef.engines.exchange import Exchange
from clef.engines.places import Place, body_for, place_of
from clef.errors import BadReply, Barred, ClefError, EngineError, Refused, Rejected, TimedOut, TooLong, Unavailable

BLIND = replace(PROBE, images=("data:image/png;base64,AAAA",))
"""A picture that is none. A server which decides it all the same does not look at pictures."""
CHECK_TIMEOUT_S = 1.5
"""A status must come quickly; a server that is busy with a long prompt still answers /health."""
KEEP_ALIVE_S = 3.0
"""Idle connections are closed by us before llama.cpp does, which is after 5 s: a request would meet the closing."""
FRESH_S = 1.0
"""A decision answered this recently says more than /health would, so none is asked."""
HOSTED_FRESH_S = 20.0
"""How long what a hosted server last said is true: it is asked by decisions, which cost something."""
NAMES_SHOWN = 5
ANY_MODEL = "jev-latest"
"""What clef, and servers like TypeSafe's own, take for whichever model answers there."""


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
        """`address` is any of the forms that `place_of` knows; `key` goes out as a bearer token and nowhere else."""
        self._place: Place = place_of(address)
        self.address = self._place.root
        self._key = key
        self._headers: dict[str, str] = {"Content-Type": "application/json"} | (
            {"Authorization": f"Bearer {key}"} if key else {}
        )
        self._model = model
        self._named = model
        """Name of the model that is sent; None sends none."""
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._timeout_s = timeout_s
        self._kind: EngineKind = kind
        self._session: aiohttp.ClientSession | None = None
        self._served: str | None = None
        self._limit: int | None = None
        self._sees: bool | None = None
        """Whether it looks at images; None while nobody knows."""
        self._answered_at = -math.inf
        self._failed_until = -math.inf
        self._failure: EngineFacts | None = None
        self._first: asyncio.Task[EngineFacts] | None = None
        self._closed = False

    async def facts(self) -> EngineFacts:
        """What the server says about itself now."""
        if time.monotonic() - self._answered_at < FRESH_S:
            return self._facts("ready")
        if self._failure is not None and time.monotonic() < self._failed_until:
            return self._failure
        try:
            async with asyncio.timeout(CHECK_TIMEOUT_S):
                return await self._ask_health()
        except (EngineError, TooLong) as error:
            phase: Phase = "loading" if isinstance(error, Unavailable) and error.phase == "loading" else "off"
            return self._facts(phase, error)
        except TimeoutError:
            if self._first is not None and not self._first.done():
                return replace(self._facts("loading"), message=f"{self.address} is asked for its first decision")
            return self._facts("off", TimedOut(f"{self.address} does not answer within {CHECK_TIMEOUT_S} s"))

    async def probe(self, timeout_s: float | None = None) -> EngineFacts:
        """Like `facts`, but ready only if a real one-question decision is answered. Never raises."""
        try:
            async with asyncio.timeout(timeout_s):
                await self.decide(PROBE)
        except TimeoutError:
            return self._facts("off", TimedOut(f"{self.address} does not answer a decision within {timeout_s} s"))
        except Unavailable as error:
            return self._facts("loading" if error.phase == "loading" else "off", error)
        except ClefError as error:
            facts = self._facts("failed", error)
            return replace(facts, hint=await self._named_models()) if error.hint == SET_MODEL else facts
        await self._learn_props()
        return self._facts("ready")

    async def decide(self, request: Request) -> Reply:
        """Answer a request by one POST."""
        if request.images and not self._sees and self._kind == "upstream" and not self._place.is_hosted:
            await self._look()
        try:
            reply = await self._decide(request)
        except Unavailable as error:
            if error.phase == "failed" and error.is_asked_for:  # nothing left to spend, until then
                self._fail(self._facts("failed", error), error.retry_after_s)
            raise
        except Barred as error:
            if request == PROBE:
                self._fail(self._facts("failed", error), HOSTED_FRESH_S if self._place.is_hosted else 0)
            raise
        self._served = reply.model or self._served
        self._answered_at = time.monotonic()
        self._failure = None
        return reply

    async def count_tokens(self, request: Request) -> int | None:
        """Not known for a foreign server."""
        return None

    async def close(self) -> None:
        """Close the connections; whatever is asked after that is Unavailable."""
        self._closed = True
        if self._first is not None:
            self._first.cancel()
            await asyncio.gather(self._first, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    async def _decide(self, request: Request) -> Reply:
        """One decision; a server that wants a model named, where none is set, is told the name that means any."""
        try:
            return await self._post(request, self._named)
        except Refused as error:
            if self._named or self._place.model or not MODEL_WANTED.search(error.message):
                raise
            try:
                reply = await self._post(request, ANY_MODEL)
            except Refused as other:
                raise error if other.hint == SET_MODEL else other from other
        self._named = ANY_MODEL
        return reply

    async def _post(self, request: Request, model: str | None) -> Reply:
        body, headers = body_for(self._place, request, model)
        exchange = await self._send("POST", self._place.decisions, orjson.dumps(body), headers)
        exchange.check_not_moved()
        if exchange.status >= 300:
            raise self._refusal(exchange)
        said = exchange.json()
        if error := error_within(said, has_key=self._key is not None):
            raise error
        return decode(said, request)

    async def _look(self) -> None:
        """Raise Rejected where the server decides as if there were no images, rather than refusing them."""
        await self._learn_props()
        if self._sees is None:
            try:
                await self._decide(BLIND)
                self._sees = False
            except (Refused, BadReply, TooLong):  # it noticed; what it says to a real image is for the real request
                self._sees = True
        if not self._sees:
            hint = "leave the images out, or use a model that reads them"
            raise Rejected(f"{self.address} does not look at images: it decides as if there were none", hint=hint)

    async def _ask_health(self) -> EngineFacts:
        if not self._place.is_hosted:
            exchange = await self._send("GET", f"{self.address}/health")
            if exchange.status == 503:
                message = f"the engine is not ready yet (HTTP 503 from {self.address}/health)"
                raise Unavailable(message, phase="loading")
            if exchange.status >= 500:
                raise self._refusal(exchange)
        if self._answered_at > -math.inf:
            return self._facts("ready")
        if self._first is None or self._first.done():
            self._first = asyncio.create_task(self.probe())
        facts = await asyncio.shield(self._first)
        if self._place.is_hosted and facts.phase != "ready":
            self._fail(facts, HOSTED_FRESH_S)
        return facts

    def _fail(self, facts: EngineFacts, for_s: float) -> None:
        """Let nobody ask again for a while what was just told; only a decision shows that it has changed."""
        self._answered_at = -math.inf
        self._failure, self._failed_until = facts, time.monotonic() + for_s

    async def _learn_props(self) -> None:
        """llama-server tells its context and whether it sees in /props; another server need not have it."""
        if self._limit is not None or self._place.is_hosted:
            return
        try:
            exchange = await self._send("GET", f"{self.address}/props")
            props = exchange.json() if exchange.status == 200 else {}
            self._limit = int(props["default_generation_settings"]["n_ctx"])
            self._sees = bool(props["modalities"]["vision"])
        except (ClefError, KeyError, TypeError, ValueError):
            return

    async def _named_models(self) -> str:
        """What to do about a model that is not there, with the names of those that are."""
        try:
            body = (await self._send("GET", self._place.models)).json() if self._place.models else {}
            names = [str(one.get("name") or one["id"]) for one in body.get("models") or body["data"]]
        except (ClefError, AttributeError, KeyError, TypeError):
            return SET_MODEL
        return f"set CLEF_UPSTREAM_MODEL to one of: {', '.join(names[:NAMES_SHOWN])}" if names else SET_MODEL

    def _refusal(self, exchange: Exchange) -> EngineError | TooLong:
        has_key = self._key is not None
        return read_error(exchange.status, exchange.text, wait_s=exchange.wait_s, has_key=has_key)

    async def _send(
        self, method: str, url: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> Exchange:
        """One exchange. Raises Unavailable where nobody listens, TimedOut after the time-out."""
        try:
            session = self._open()
            sent = self._headers | headers if headers else self._headers
            async with session.request(method, url, data=body, headers=sent, allow_redirects=False) as response:
                content = await response.read()
                return Exchange(self.address, response.status, content, response.headers).without(self._key)
        except TimeoutError as error:
            raise TimedOut(
                f"no answer from {self.address} within {self._timeout_s:g} s",
                hint="raise CLEF_UPSTREAM_TIMEOUT, or use a smaller model",
            ) from error
        except (aiohttp.ClientError, ValueError) as error:
            raise self._broken(error) from error

    def _broken(self, error: Exception) -> EngineError:
        """What an exchange that came to no reply means."""
        if isinstance(error, aiohttp.InvalidURL):
            return Barred(f"{self.address} is not an address", hint="write CLEF_UPSTREAM as http://HOST:PORT")
        if isinstance(error, ValueError):
            return Barred("the access key cannot be sent", hint="CLEF_UPSTREAM_KEY has a character that no header has")
        if isinstance(error, aiohttp.ClientSSLError):
            hint = "is it https, and does this machine trust who signed its certificate?"
            return Barred(f"no safe connection to {self.address} ({type(error).__name__})", hint=hint)
        if isinstance(error, aiohttp.ClientPayloadError):
            if isinstance(error.__cause__, aiohttp.http_exceptions.ContentEncodingError):
                return BadReply(f"{self.address} sends a reply that is not packed as its header says")
            return Unavailable(f"{self.address} broke off its reply", hint="it may have been stopped or restarted")
        return Unavailable(
            f"nothing answers at {self.address} ({type(error).__name__})",
            hint="is the server running there? CLEF_UPSTREAM sets the address",
        )

    def _open(self) -> aiohttp.ClientSession:
        """The one keep-alive session, opened in the running event loop at its first use."""
        if self._closed:
            raise Unavailable(f"{self.address} is not asked any more: clef is ending", phase="off")
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S)
            trusts = is_in_environment(self.address)
            signs = (self._sign,) if trusts and self._key else ()
            if signs:
                del self._headers["Authorization"]
            self._session = aiohttp.ClientSession(
                timeout=self._timeout, connector=connector, trust_env=trusts, middlewares=signs
            )
        return self._session

    async def _sign(self, request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
        """Put the key in place of what a netrc says of this server; beside one, aiohttp takes no such header."""
        request.headers["Authorization"] = f"Bearer {self._key}"
        return await send(request)

    def _facts(self, phase: Phase, error: ClefError | None = None) -> EngineFacts:
        return EngineFacts(
            kind=self._kind,
            phase=phase,
            model=self._served or self._model or self._place.model,
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


def is_in_environment(address: str) -> bool:
    """Whether the environment may name a proxy or a password for an http address.

    aiohttp looks for both at every request, each in a thread: 0.36 ms of processor time, four times the rest of it.
    """
    if is_loopback(address):
        return False
    parts = urlsplit(address)
    has_proxy = parts.scheme in getproxies() and not proxy_bypass(parts.hostname or "")
    has_passwords = "NETRC" in os.environ or any(map(os.path.isfile, map(os.path.expanduser, ("~/.netrc", "~/_netrc"))))
    return has_proxy or has_passwords
