"""A response leaves in one write, a long one as it comes, and none is cut off."""

import asyncio

import pytest

from clef.web.one_write import AT_ONCE, OneWrite


class Wire(asyncio.Transport):
    """Keeps each write."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.closed = False

    def write(self, data: object) -> None:
        assert isinstance(data, bytes)
        assert not self.closed
        self.writes.append(data)

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def wire() -> Wire:
    return Wire()


def test_head_and_body_are_one_write(wire: Wire) -> None:
    async def respond() -> None:
        transport = OneWrite(wire, asyncio.get_running_loop())
        for piece in (b"HTTP/1.1 200 OK\r\n\r\n", b"", b"body"):
            transport.write(piece)
        assert wire.writes == []
        await asyncio.sleep(0)

    asyncio.run(respond())
    assert wire.writes == [b"HTTP/1.1 200 OK\r\n\r\nbody"]


def test_each_line_of_a_stream_leaves_when_it_is_there(wire: Wire) -> None:
    async def respond() -> None:
        transport = OneWrite(wire, asyncio.get_running_loop())
        for line in (b"1\n", b"2\n"):
            transport.write(line)
            await asyncio.sleep(0)

    asyncio.run(respond())
    assert wire.writes == [b"1\n", b"2\n"]


def test_a_long_answer_is_not_gathered(wire: Wire) -> None:
    async def respond() -> None:
        transport = OneWrite(wire, asyncio.get_running_loop())
        for _ in range(4):
            transport.write(bytes(AT_ONCE // 2))
        assert [len(piece) for piece in wire.writes] == [AT_ONCE, AT_ONCE]
        await asyncio.sleep(0)

    asyncio.run(respond())
    assert len(wire.writes) == 2


def test_closing_writes_the_rest_first(wire: Wire) -> None:
    async def respond() -> None:
        transport = OneWrite(wire, asyncio.get_running_loop())
        transport.write(b"last words")
        transport.close()

    asyncio.run(respond())
    assert (wire.writes, wire.closed) == ([b"last words"], True)
