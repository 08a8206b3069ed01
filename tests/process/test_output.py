"""Whatever a server writes is taken, and none of it fills memory or disk."""

import os
import time
from pathlib import Path

from clef.engines.llama.output import KEPT_LINES, MAX_LINE, LogFile, Output, TerminalLog, open_log


def test_lines_are_put_together_from_pieces_and_handed_on() -> None:
    seen: list[str] = []
    output = Output(seen.append)
    for piece in (b"on", b"e\ntwo\r\nth", b"\xc3", b"\xa9\n", b"open"):
        output.feed(piece)
    assert seen == ["one", "two", "thé"]
    assert output.tail() == ["one", "two", "thé", "open"]
    assert output.tail(2) == ["thé", "open"]


def test_only_the_last_lines_are_kept_and_long_ones_are_cut() -> None:
    output = Output()
    output.feed(b"x" * 1_000_000)
    output.feed(b"y" * 1_000_000 + b"\n")
    output.feed(b"".join(b"%d\n" % n for n in range(KEPT_LINES - 1)))
    assert len(output.tail()) == KEPT_LINES
    assert output.tail()[0] == "x" * MAX_LINE
    output.feed(b"last\n")
    assert output.tail()[0] == "0"


def test_what_is_no_utf8_is_shown_as_far_as_it_can_be() -> None:
    output = Output()
    output.feed(b"a\xff\xfeb\n")
    assert output.tail() == ["a\ufffd\ufffdb"]


def test_a_log_keeps_its_start_and_its_end_and_no_more_than_three_files(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "logs" / "server.log", size=100)
    log.write(b"offloaded 33/33 layers\n")
    for n in range(200):
        log.write(b"request %03d\n" % n)
    log.close()
    files = {path.name: path.read_bytes() for path in (tmp_path / "logs").iterdir()}
    assert set(files) == {"server.log", "server.log.1", "server.log.2"}
    assert files["server.log"].startswith(b"offloaded 33/33 layers")
    assert (files["server.log.2"] + files["server.log.1"]).endswith(b"request 199\n")
    assert max(map(len, files.values())) <= 100


def test_the_log_of_the_run_before_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    for said in (b"first", b"second"):
        log = LogFile(path)
        log.write(said)
        log.close()
        log.close()
        log.write(b"after the end")
    assert path.read_bytes() == b"second"
    assert path.with_name("server.log.previous").read_bytes() == b"first"


def test_fifty_megabytes_leave_fifteen_at_most_and_the_start_up(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "server.log")
    log.write(b"load_tensors: offloaded 33/33 layers to GPU\n")
    for _ in range(500):
        log.write(b"x" * 100_000)
    log.close()
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 15_000_000
    assert b"offloaded 33/33" in (tmp_path / "server.log").read_bytes()


def test_on_the_terminal_it_is_shown_and_a_terminal_that_is_held_holds_up_nothing() -> None:
    reading, writing = os.pipe()
    # The reading end is closed first, which ends a write that hangs; a buffer would hold its lock while it does.
    with os.fdopen(writing, "wb", buffering=0) as terminal, os.fdopen(reading, "rb") as seen:
        log = TerminalLog(terminal)
        log.write(b"load_tensors: offloaded 33/33 layers to GPU\n")
        assert seen.readline() == b"load_tensors: offloaded 33/33 layers to GPU\n"
        began = time.monotonic()
        for _ in range(3000):  # nobody reads: the pipe takes 64 kB
            log.write(b"x" * 1000)
        assert time.monotonic() - began < 1
        log.close()
    assert isinstance(open_log(Path("-")), TerminalLog)
