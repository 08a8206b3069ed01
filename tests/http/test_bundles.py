"""Several files of static/ in one: complete, in order, kept for ever, and nothing but what is there."""

import re
import subprocess
from pathlib import Path

import pytest
from starlette.routing import Mount
from starlette.testclient import TestClient

from clef.web import bundles
from clef.web.assets import Assets, joint_url
from clef.web.bundles import STATIC, bundle
from tests.needing import need, without

ELEMENTS = sorted(file.stem for file in (STATIC / "elements").glob("*.js"))
MODULE = re.compile(r"^// ([a-z-]+)\.js$", re.M)


@pytest.fixture
def browser() -> TestClient:
    return TestClient(Mount("/static", Assets()), base_url="http://127.0.0.1:8000")


def of(path: str) -> str:
    found = bundle(path)
    assert found is not None
    return found.decode()


@pytest.fixture
def static(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A static/ of its own."""
    for name in ("styles", "elements", "vendor"):
        (tmp_path / name).mkdir()
    (tmp_path / "vendor" / "manifest.json").write_text("[]")
    monkeypatch.setattr(bundles, "STATIC", tmp_path)
    bundles._bundle.cache_clear()
    return tmp_path


def test_a_module_comes_once_and_after_those_it_imports() -> None:
    text = of("joint/review-queue+row-label+run-gates.js")
    assert MODULE.findall(text) == ["run-parts", "figures", "review-queue", "row-label", "run-gates"]
    assert "const { label: give, showWhole } = $run_parts;" in text
    assert re.search(r"Object\.assign\(\$run_parts, \{ .*\bshowWhole, label \}\);", text)


def by_node(*arguments: str, text: str = "") -> bytes:
    """What Node prints when it runs a module."""
    need(without("node"))
    command = ["node", "--input-type=module", *arguments]
    return subprocess.run(command, input=text.encode(), check=True, timeout=60, capture_output=True).stdout


def test_every_element_in_one_is_a_module_that_can_be_read() -> None:
    text = of(f"joint/{'+'.join(ELEMENTS)}.js")
    assert sorted(MODULE.findall(text)) == ELEMENTS
    by_node("--check", text=text)


def test_two_modules_may_use_one_name_and_import_under_another(static: Path) -> None:
    (static / "elements" / "words.js").write_text('const NAME = "a";\nexport function said() {\n  return NAME;\n}\n')
    (static / "elements" / "page.js").write_text(
        'import { said as say } from "./words.js";\nconst NAME = "b";\nconsole.log(say(), NAME);\n'
    )
    assert by_node(text=of("joint/page.js")) == b"a b\n"


def test_a_module_that_is_loaded_later_exports_what_it_did(static: Path) -> None:
    (static / "elements" / "words.js").write_text('export function said() {\n  return "a";\n}\n')
    (static / "elements" / "later.js").write_text(
        'import { said } from "./words.js";\nexport async function all() {\n  return said() + said();\n}\n'
    )
    (static / "later.mjs").write_text(of("joint/later.js"))
    script = "const { all } = await import(process.argv[1]); console.log(await all());"
    assert by_node("-e", script, str(static / "later.mjs")) == b"aa\n"


@pytest.mark.parametrize("line", ["export default 1;", 'import "./words.js";', 'export * from "./words.js";'])
def test_what_a_bundle_cannot_hold_is_said_with_its_place(static: Path, line: str) -> None:
    (static / "elements" / "words.js").write_text(f"{line}\n")
    with pytest.raises(ValueError, match=r"elements/words\.js: .*port"):
        bundle("joint/words.js")


def test_the_vendored_base_stands_in_its_layer_within_the_style() -> None:
    text = of("joint/tokens+ground.css")
    assert "@import" not in text
    assert "@charset" not in text
    assert (STATIC / "vendor" / "pico.min.css").read_text("utf-8").removeprefix('@charset "UTF-8";') in text
    assert text.index("@layer base {") < text.index("--size-1") < text.index("/* What every page stands on")


def test_a_changed_file_changes_the_address(static: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = static / "styles" / "one.css"
    file.write_text("a {}")
    monkeypatch.setattr(bundles, "_changed", lambda folder: folder.stat().st_ino + len(file.read_text()))
    before = joint_url("css", ["one"])
    file.write_text("a { b: c }")
    assert joint_url("css", ["one"]) != before


def test_a_bundle_may_be_kept_for_ever_under_its_address(browser: TestClient) -> None:
    address = joint_url("js", ["ask-form", "key-list"])
    response = browser.get(address)
    assert response.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert response.headers["content-encoding"] == "gzip"
    assert response.headers["content-type"] == "text/javascript; charset=utf-8"
    assert response.content == bundle("joint/ask-form+key-list.js")
    plain = browser.get(address.partition("?")[0], headers={"accept-encoding": "identity"})
    assert plain.headers["cache-control"] == "no-cache"
    assert plain.content == response.content
    again = browser.get(address, headers={"if-none-match": response.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "path", ["run+run.css", "nothing.css", "run.js", "..%2F..%2Fassets+run.css", "run.css.map", "+.css", ".css"]
)
def test_what_is_not_there_is_not_found(client: TestClient, path: str) -> None:
    assert client.get(f"/static/joint/{path}").status_code == 404
