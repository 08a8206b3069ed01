"""Turns a llama-server program into what it says to --version.

It is asked beside the start, never before it: a build with GPU libraries takes a second to answer, a stranger on
PATH may never do.
"""

import asyncio
import contextlib
import os
import re
import signal

from clef.engines.llama.command import Program

PATIENCE_S = 5.0
_VERSION = re.compile(r"version: (.+)")


async def ask_version(program: Program) -> str | None:
    """Its version in its own words; None where it says nothing of the kind in time. Safe to cancel."""
    if program.known_version is not None:
        return program.known_version
    try:
        process = await asyncio.create_subprocess_exec(
            *program.argv,
            "--version",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            process_group=0,
        )
    except OSError:
        return None
    try:
        async with asyncio.timeout(PATIENCE_S):
            said, _ = await process.communicate()
    except TimeoutError:
        return None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    found = _VERSION.search(said.decode("utf-8", "replace"))
    return found[1].strip() if found else None
