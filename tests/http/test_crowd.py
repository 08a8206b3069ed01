"""A crowd of clients: every answer is a decision or a stated refusal, and nothing is left behind."""

import asyncio

import aiohttp
import pytest

from clef.engines.builtin import BuiltinEngine
from tests.http.conftest import served

CLIENTS, EACH = 100, 6
BODY = {"model": "clef", "state": "charged twice", "questions": {"a": {"type": "noul", "instructions": "Angry?"}}}


@pytest.mark.anyio
async def test_a_hundred_clients_get_decisions_or_refusals_that_say_when_to_come_back() -> None:
    async def client(session: aiohttp.ClientSession, url: str) -> list[int]:
        found = []
        for _ in range(EACH):
            async with session.post(url, json=BODY) as response:
                await response.read()
                assert response.status == 200 or (response.status == 529 and int(response.headers["retry-after"]) > 0)
                found.append(response.status)
        return found

    with served(BuiltinEngine(), concurrency=2, max_waiting=20) as address:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            url = f"{address}/v1/systemone"
            answers = await asyncio.gather(*(client(session, url) for _ in range(CLIENTS)))
            statuses = [status for each in answers for status in each]
            assert set(statuses) == {200, 529}
            async with session.get(f"{address}/metrics") as response:
                text = await response.text()
    assert 'clef_line_waiting{lane="live"} 0.0' in text
    assert 'clef_line_inside{lane="live"} 0.0' in text
    assert f'clef_decisions_total{{lane="live",result="answered"}} {statuses.count(200)}.0' in text
