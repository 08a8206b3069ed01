"""The pictures of README and docs can be made again, and there is one of every page, theme and size."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools.screenshots import IMAGES, PAGES, SIZES, THEMES

pytestmark = pytest.mark.browser
TIMEOUT_S = 120
ONCE = """
import pathlib, sys
from tools import screenshots
screenshots.THEMES, screenshots.SIZES = ("dark",), {"phone": screenshots.SIZES["phone"]}
raise SystemExit(screenshots.main([], pathlib.Path(sys.argv[1])))
"""


def test_every_page_can_be_made_a_picture_of(browser: object, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", ONCE, str(tmp_path)], check=True, timeout=TIMEOUT_S)
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}-dark-phone.png" for name in PAGES}


def test_no_picture_is_missing_or_of_a_page_that_is_gone() -> None:
    expected = {f"{name}-{theme}-{size}.png" for name in PAGES for theme in THEMES for size in SIZES}
    assert {path.name for path in IMAGES.glob("*.png")} == expected
