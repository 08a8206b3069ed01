"""What a test needs of the machine besides Python: it skips with the reason, and fails where nothing may be skipped."""

import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NO_SKIPS = bool(os.environ.get("CLEF_TEST_NO_SKIPS"))  # read before any fixture clears the environment
NPM_SDK = ROOT / "node_modules/@typesafe-ai/sdk"


def need(lacking: str | None) -> None:
    """Skip the test for what this machine lacks; nothing where it lacks nothing."""
    if lacking and NO_SKIPS:
        pytest.fail(f"{lacking}, and CLEF_TEST_NO_SKIPS is set")
    elif lacking:
        pytest.skip(lacking)


def without(*programs: str, npm_sdk: bool = False) -> str | None:
    """What this machine lacks of these programs and of the npm packages; None where nothing."""
    for program in programs:
        if shutil.which(program) is None:
            return f"no {program} on this machine"
    return "the npm packages are missing: make setup" if npm_sdk and not NPM_SDK.is_dir() else None
