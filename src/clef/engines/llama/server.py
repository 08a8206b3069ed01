"""Turns a Request into a Reply, or into its length in tokens, by a llama-server of our own over HTTP."""

import asyncio

import aiohttp
import orjson

from clef.decisions.examples import Reply, Request
from clef.decisions.refusals import read_error
from clef.engines.exchange import Exchange
from clef.engines.llama.tokens import Template, measure, prompt_tokens
from clef.engines.upstream import UpstreamEngine
from clef.errors import BadReply, Unavailable

CONNECTIONS = 32
"""Decisions under way at once; more wait here. llama.cpp decides one after the other, and its connections should stay
well below its threads (see command.py): above, it hangs up on kept-alive ones, or lets new ones wait for seconds."""


class LlamaServer(UpstreamEngine):
    """An UpstreamEngine that is known to be llama-server."""

    def __init__(self, address: str, *, key: str, timeout_s: float) -> None:
        super().__init__(address, key=key, timeout_s=timeout_s, kind="llama")
        self._places = asyncio.Semaphore(CONNECTIONS)
        self._is_closed = False
        self._measuring = asyncio.Lock()
        self._template: Template | None = None

    async def decide(self, request: Request) -> Reply:
        """Answer a request, after those that came before."""
        async with self._places:
            return await super().decide(request)

    async def close(self) -> None:
        """Close the connections for good: what still waits for one gets Unavailable and opens none."""
        self._is_closed = True
        await super().close()

    async def count_tokens(self, request: Request) -> int | None:
        """Tokens of the longest prompt that the request makes. The first call takes ten small decisions more."""
        async with self._measuring:
            if self._template is None:
                self._template = await measure(self._took, self._tokenize)
        return await prompt_tokens(request, self._template, self._tokenize)

    async def _took(self, request: Request) -> int:
        tokens = (await self.decide(request)).input_tokens
        if tokens is None:
            raise BadReply("llama.cpp does not say how many tokens a decision took")
        return tokens

    async def _tokenize(self, texts: list[str]) -> int:
        body = orjson.dumps({"content": texts, "parse_special": True})
        exchange = await self._send("POST", f"{self.address}/tokenize", body)
        if exchange.status >= 300:
            raise read_error(exchange.status, exchange.text)
        return len(exchange.json()["tokens"])

    async def _send(
        self, method: str, url: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> Exchange:
        """As the base does, and once more where the server hung up: it may close a kept-alive connection just as it is
        used again, and nothing we send changes anything there."""
        if self._is_closed:
            raise Unavailable("llama.cpp has ended", phase="starting")
        try:
            return await super()._send(method, url, body, headers)
        except Unavailable as error:
            if self._is_closed or not hung_up(error):
                raise
            try:
                return await super()._send(method, url, body, headers)
            except Unavailable:
                raise error from error.__cause__  # the first one tells that the server had the request


def hung_up(error: Unavailable) -> bool:
    """Whether the server had the request and ended the connection, rather than never taking one."""
    broken = isinstance(error.__cause__, aiohttp.ServerDisconnectedError | aiohttp.ClientOSError)
    return broken and not isinstance(error.__cause__, aiohttp.ClientConnectorError)
