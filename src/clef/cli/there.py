"""Turns the work of a command into requests to the clef that serves this data folder."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import aiohttp
import orjson

from clef.cli.service import Made, TableSource
from clef.decisions.examples import Reply, Request
from clef.decisions.refusals import read_error
from clef.decisions.wire import decode, encode
from clef.engines.engine import EngineFacts
from clef.errors import ClefError, EngineError, InputError, NotFound, Problem, StoreError, TooLarge, Unavailable
from clef.running import Running

if TYPE_CHECKING:
    from clef.runs.store import Store

LONG_S = 600
"""Seconds without a byte after which a clef that was there is given up."""


class There:
    """A clef that runs does the work."""

    def __init__(self, running: Running) -> None:
        self.where: str | None = running.url
        self._url = running.url
        self._key = {"Authorization": f"Bearer {running.token}"}
        self._session: aiohttp.ClientSession | None = None
        self._folder: TemporaryDirectory[str] | None = None
        self._fetched: list[Store] = []

    async def facts(self) -> EngineFacts:
        """Who answers there."""
        found = await self._json("GET", "/api/health")
        names = ("phase", "model", "address", "max_tokens", "message", "hint")
        return EngineFacts(found["engine"], **{name: found[name] for name in names})

    async def decide(self, request: Request) -> Reply:
        """Answer a request as it is, waiting for an engine that is coming up."""
        body = encode(request) | {"model": "clef", "x_questions": request.shape}
        while True:
            async with self._exchange("POST", "/v1/systemone", json=body) as response:
                content = await response.read()
                if response.status < 300:
                    return decode(orjson.loads(content), request)
                retry_after_s = response.headers.get("Retry-After")
                error = read_error(response.status, content.decode("utf-8", "replace"))
            if not isinstance(error, Unavailable) or retry_after_s is None or not await self._is_coming():
                raise error
            await asyncio.sleep(min(float(retry_after_s), 2))

    async def runs(self, search: str = "", limit: int = 50) -> list[dict[str, Any]]:
        """Runs, newest first."""
        found = await self._json("GET", "/api/runs", params={"search": search, "limit": str(limit)})
        return list(found["runs"])

    async def run(self, run_id: str) -> dict[str, Any]:
        """One run."""
        found: dict[str, Any] = await self._json("GET", _path(run_id))
        found.pop("summary", None)  # commands reckon it from the outcomes, here as there
        return found

    async def rows(self, run_id: str, chosen: Mapping[str, Any]) -> dict[str, Any]:
        """A page of rows."""
        params = {name: json.dumps(value) if isinstance(value, bool) else str(value) for name, value in chosen.items()}
        found = await self._json("GET", f"{_path(run_id)}/rows", params=params)
        return {"rows": found["rows"], "total": found["total"]}

    async def kept(self, run_id: str) -> "Store":
        """The run, fetched as a file of its own, which is there until the command ends."""
        from clef.runs.database import Database
        from clef.runs.store import Store

        if self._folder is None:
            self._folder = TemporaryDirectory(prefix="clef-")
        path = Path(self._folder.name, f"{len(self._fetched)}.clef")
        await self.export(run_id, path)
        self._fetched.append(Store(Database(path, alone=False)))
        return self._fetched[-1]

    async def submit(self, table: TableSource) -> Made:
        """Put a run of a table in line there."""
        params = [("name", table.path.name), ("shape", table.shape), ("note", table.note)]
        params.append(("bad_rows", "skip" if table.skip_bad_rows else "refuse"))
        told = {"encoding": table.encoding, "separator": table.separator, "sheet": table.sheet}
        params += [(name, value) for name, value in told.items() if value is not None]
        params += [("columns", f"{role}:{header}") for role, header in table.mapping.items()]
        with aiohttp.MultipartWriter("form-data") as form:
            for name, path in (("table", table.path), ("questions", table.questions)):
                if path is not None:
                    content = await asyncio.to_thread(_content, path, table if name == "table" else None)
                    part = form.append(content)
                    part.set_content_disposition("form-data", name=name, filename=path.name)
        run = await self._json("POST", "/api/runs", params=params, data=form)
        return Made(run["id"], run["rows"], run["name"])

    async def events(self, run_id: str) -> AsyncGenerator[dict[str, Any], None]:
        """How a run goes until it ends."""
        async with self._exchange("GET", f"{_path(run_id)}/events") as response:
            if response.status >= 300:
                raise _error(response.status, await response.read())
            async for line in response.content:
                event: dict[str, Any] = orjson.loads(line)
                if event.pop("type") == "progress":
                    yield event

    async def stop(self, run_id: str) -> None:
        """Stop a run."""
        await self._json("POST", f"{_path(run_id)}/cancel")

    async def go_on(self, run_id: str, *, retry: bool) -> None:
        """Put a run in line again."""
        await self._json("POST", f"{_path(run_id)}/{'retry' if retry else 'resume'}")

    async def delete(self, run_id: str) -> None:
        """Put a run away."""
        await self._json("DELETE", _path(run_id))

    async def export(self, run_id: str, path: Path) -> None:
        """Fetch a run as a file that another clef takes in."""
        async with self._exchange("GET", f"{_path(run_id)}/export", params={"format": "clef"}) as response:
            if response.status >= 300:
                raise _error(response.status, await response.read())
            try:
                with path.open("wb") as file:
                    async for part in response.content.iter_chunked(1 << 20):
                        file.write(part)
            except OSError as error:
                raise StoreError(f"{path} cannot be written: {error.strerror}") from error

    async def take_in(self, path: Path) -> str:
        """Send the run of such a file; its new id."""
        content = await asyncio.to_thread(_content, path)
        return str((await self._json("POST", "/api/runs/import", data=content))["id"])

    async def close(self) -> None:
        """Close the connections, and give up what was fetched."""
        for store in self._fetched:
            await store.close()
        if self._folder is not None:
            self._folder.cleanup()
        if self._session is not None:
            await self._session.close()

    async def _is_coming(self) -> bool:
        return (await self.facts()).phase in ("starting", "loading")

    async def _json(self, method: str, path: str, **what: Any) -> Any:
        async with self._exchange(method, path, **what) as response:
            content = await response.read()
            if response.status >= 300:
                raise _error(response.status, content)
            return orjson.loads(content)

    @asynccontextmanager
    async def _exchange(self, method: str, path: str, **what: Any) -> AsyncGenerator[aiohttp.ClientResponse, None]:
        """One request. Raises Unavailable where the clef has gone meanwhile."""
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=None, sock_read=LONG_S)
            self._session = aiohttp.ClientSession(timeout=timeout, headers=self._key)
        try:
            async with self._session.request(method, self._url + path, **what) as response:
                yield response
        except (aiohttp.ClientError, TimeoutError) as error:
            raise Unavailable(f"the clef at {self._url} does not answer any more ({type(error).__name__})") from error


def _path(run_id: str) -> str:
    return f"/api/runs/{quote(run_id, safe='')}"


def _content(path: Path, table: TableSource | None = None) -> bytes:
    """The bytes of a file; of a table with images beside it, or of a folder, an archive of all that is to be read."""
    if not path.is_file() and not (table and path.is_dir()):
        raise NotFound(f"no file {path}")
    if table is None:
        return path.read_bytes()
    from clef.tables.files import packed

    return packed(path, table.reading()) or path.read_bytes()


def _error(status: int, content: bytes) -> ClefError:
    """The error that a clef answered with, as it was raised there."""
    try:
        body = orjson.loads(content)["error"]
        message, hint = str(body["message"]), body.get("hint")
    except (ValueError, TypeError, KeyError):
        return EngineError(f"the clef that runs answered {status}", hint="is it of another version?")
    problems = [Problem(**problem) for problem in body.get("problems") or ()]
    kinds: dict[str, type[InputError]] = {"not_found": NotFound, "too_large": TooLarge}
    error: ClefError
    if body.get("fault") == "upstream":
        error = EngineError(message, hint=hint)
    elif body.get("fault") == "input":
        error = kinds.get(body["code"], InputError)(message, problems, hint=hint)
    else:
        error = ClefError(message, hint=hint)
    error.code = body["code"]
    return error
