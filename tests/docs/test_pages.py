"""Pages that are written from the code match it; links lead somewhere; one list of versions."""

import re
from pathlib import Path

import pytest

import clef
from clef.settings import PREFIX, Settings
from tools.constraints import in_pyproject, pinned
from tools.docs import DOCS, PAGES

ROOT = DOCS.parent
PROSE = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])


@pytest.mark.parametrize("name", sorted(PAGES))
def test_the_page_says_what_the_code_does(name: str) -> None:
    assert (DOCS / name).read_text() == PAGES[name](), "run `make docs`"


@pytest.mark.parametrize("page", PROSE, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_to_files_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_settings_named_in_prose_exist() -> None:
    known = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields}
    named = {name for page in PROSE for name in re.findall(r"CLEF_[A-Z_]+", page.read_text())}
    assert named - known == set()


def test_every_setting_has_a_help_text() -> None:
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


def test_the_two_lists_of_versions_are_one() -> None:
    assert pinned() == in_pyproject() != []


def test_every_public_name_is_there_and_described() -> None:
    for name in clef.__all__:
        assert getattr(clef, name).__doc__, name


def test_the_version_is_one() -> None:
    assert f'version = "{clef.__version__}"' in (ROOT / "pyproject.toml").read_text()


def test_modules_stay_within_four_hundred_lines() -> None:
    long = [path.name for path in (ROOT / "src").rglob("*.py") if len(path.read_text().splitlines()) > 400]
    assert long == []


def test_every_line_of_the_threat_model_names_a_test_that_is_there() -> None:
    lines = [line for line in (ROOT / "SECURITY.md").read_text().splitlines() if line.startswith("| ")][1:]
    named = [re.search(r"`(tests/[\w/]+\.py)::(\w+)`", line) for line in lines]
    assert len(lines) > 20
    assert None not in named
    missing = [found[0] for found in named if found and f"def {found[2]}(" not in (ROOT / found[1]).read_text()]
    assert missing == []
