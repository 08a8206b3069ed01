"""A System One server in this process, whose every reply a test decides."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from aiohttp import web

NO_PICTURE = "data:image/png;base64,AAAA"
Handler = Callable[["SystemOne", dict[str, Any]], Awaitable[web.StreamResponse]]


def even(body: dict[str, Any]) -> dict[str, Any]:
    """A correct reply: the first answer of each question gets 0.6, the rest share what is left."""
    answers: dict[str, Any] = {}
    for name, question in body["questions"].items():
        if question["type"] == "noul":
            answers[name] = {"type": "noul", "noul": 0.6}
            continue
        criteria = question["criteria"]
        keys = list(criteria) if isinstance(criteria, dict) else [str(n) for n in range(len(criteria))]
        rest = 0.4 / max(1, len(keys) - 1)
        probabilities = {key: 0.6 if n == 0 else rest for n, key in enumerate(keys)}
        answer = {"type": question["type"], "probabilities": dict(sorted(probabilities.items())), "confidence": 0.123}
        answers[name] = answer | ({"choice": keys[0]} if question["type"] == "choice" else {"score": 1.0, "legend": {}})
    return {"model": "fake.gguf", "answers": answers, "usage": {"input_tokens": 10, "output_tokens": 0}}


async def answer(server: "SystemOne", body: dict[str, Any]) -> web.StreamResponse:
    """Answer as a healthy server does; one that reads images notices those that are none."""
    if server.sees and NO_PICTURE in body.get("images", ()):
        return web.json_response({"error": {"message": "failed to decode image"}}, status=400)
    return web.json_response(even(body))


class SystemOne:
    """The server: counts what it gets, and answers with `handler`, which a test may replace at any time."""

    def __init__(self) -> None:
        self.handler: Handler = answer
        self.health_status = 200
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.pages: dict[str, tuple[int, str]] = {}
        """Status and text of what is got, by path, instead of /health, /props and 404."""
        self.in_flight = 0
        self.most_in_flight = 0
        self.address = ""
        self.sees: bool | None = None
        """Whether it says that it reads images; None says nothing."""

    async def _systemone(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.bodies.append(body)
        self.paths.append(request.path)
        self.headers.append(dict(request.headers))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            return await self.handler(self, body)
        finally:
            self.in_flight -= 1

    async def _health(self, request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"}, status=self.health_status)

    async def _props(self, request: web.Request) -> web.Response:
        modalities = {} if self.sees is None else {"modalities": {"vision": self.sees}}
        return web.json_response({"default_generation_settings": {"n_ctx": 4096}} | modalities)

    async def _page(self, request: web.Request) -> web.Response:
        if request.path in self.pages:
            status, text = self.pages[request.path]
            return web.Response(status=status, text=text)
        known = {"/health": self._health, "/props": self._props}.get(request.path)
        return await known(request) if known else web.json_response({"detail": "Not Found"}, status=404)

    def app(self) -> web.Application:
        """Its routes."""
        app = web.Application(client_max_size=2**30)
        app.router.add_post("/{path:.*systemone|.*ai/run/.*}", self._systemone)
        app.router.add_get("/{path:.*}", self._page)
        return app


@contextmanager
def system_one() -> Iterator[SystemOne]:
    """A running server on a free port of 127.0.0.1, in a thread of its own."""
    server = SystemOne()
    loop = asyncio.new_event_loop()
    runner = web.AppRunner(server.app(), handler_cancellation=True, shutdown_timeout=0.2)

    async def start() -> None:
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        server.address = f"http://{host}:{port}"

    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(start(), loop).result(10)
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
