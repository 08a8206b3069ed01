"""A model on its way: progress, pauses, kills, cuts and refusals, against a local hub and by the hub's own library."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import huggingface_hub
import pytest

from clef.engines.models.access import child_environment, tidy_token
from clef.engines.models.catalogue import CatalogueModel, ModelFile
from clef.engines.models.downloads import Downloads, Order, Progress
from clef.errors import SettingsError
from tests.fakes.hub import Hub, running_hub
from tests.process.waiting import is_alive, until

pytestmark = pytest.mark.anyio
CONTENT = os.urandom(1_000_000)
REPO, FILE = "owner/Tiny-GGUF", ModelFile("Q8_0", "Tiny-Q8_0.gguf", 999)
MODEL = CatalogueModel(
    name="tiny",
    title="Tiny",
    repo=REPO,
    licence="MIT",
    decision_type="clef",
    parameters="1",
    about="",
    files=(FILE,),
    max_options=2,
    bytes_per_token=1,
    projector=ModelFile("BF16", "mmproj-Tiny-BF16.gguf", 10),
)
ORDER = Order(MODEL, FILE)
TOKEN = "hf_abcdefghijklmnopqrst"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    with running_hub() as running:
        running.files[f"{REPO}/{FILE.file}"] = CONTENT
        monkeypatch.setenv("HF_ENDPOINT", running.address)
        monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
        for name in ("HF_TOKEN", "HF_HUB_CACHE", "HF_HUB_OFFLINE"):
            monkeypatch.delenv(name, raising=False)
        yield running


@pytest.fixture
async def downloads(hub: Hub, tmp_path: Path) -> AsyncIterator[Downloads]:
    made = Downloads(tmp_path / "cache")
    yield made
    await made.close()


async def failure(downloads: Downloads, order: Order = ORDER) -> Progress:
    downloads.start(order)
    progress = await asyncio.wait_for(downloads.wait(order), 30)
    assert progress.state == "failed"
    return progress


async def begun(downloads: Downloads, hub: Hub, done: int = 100_000) -> None:
    """A download that is on its way and slow."""
    hub.bytes_per_s = 400_000
    downloads.start(ORDER)
    await until(lambda: downloads.progress(ORDER).done_bytes >= done)


async def test_a_model_arrives_whole_in_the_hubs_own_cache(downloads: Downloads, hub: Hub) -> None:
    downloads.start(ORDER)
    progress = await downloads.wait(ORDER)
    assert (progress.state, progress.done_bytes, progress.size_bytes) == ("done", len(CONTENT), len(CONTENT))
    (path,) = downloads.paths(ORDER) or []
    assert path.read_bytes() == CONTENT
    asked = len(hub.requests)
    again = Downloads(downloads.cache)
    assert again.progress(ORDER).state == "done"
    assert again.start(ORDER).state == "done"
    assert len(hub.requests) == asked
    offline = huggingface_hub.hf_hub_download(REPO, FILE.file, cache_dir=downloads.cache, local_files_only=True)
    assert Path(offline) == path


async def test_progress_is_what_lies_on_the_disk_and_has_a_speed_and_a_time_left(
    downloads: Downloads, hub: Hub
) -> None:
    await begun(downloads, hub)
    on_disk = sum(path.stat().st_size for path in downloads.cache.rglob("*.part"))
    seen = downloads.progress(ORDER)
    assert on_disk <= seen.done_bytes < len(CONTENT)
    await until(lambda: downloads.progress(ORDER).bytes_per_s)
    moving = downloads.progress(ORDER)
    assert moving.bytes_per_s == pytest.approx(400_000, rel=0.9)
    assert moving.seconds_left is not None
    assert downloads.active() == [moving] or downloads.active()[0].name == ORDER.name


async def test_a_pause_comes_at_once_and_what_came_is_not_fetched_again(downloads: Downloads, hub: Hub) -> None:
    await begun(downloads, hub)
    paused = await asyncio.wait_for(downloads.pause(ORDER), 3)
    assert paused.state == "paused"
    assert 0 < paused.done_bytes < len(CONTENT)
    hub.bytes_per_s = None
    downloads.start(ORDER)
    assert (await downloads.wait(ORDER)).state == "done"
    assert hub.ranges() == [None, f"bytes={paused.done_bytes}-"]


async def test_a_kill_at_the_middle_costs_nothing_and_the_next_clef_goes_on(downloads: Downloads, hub: Hub) -> None:
    await begun(downloads, hub)
    child = downloads._downloads[ORDER.name].child
    assert child is not None
    os.kill(child.pid, signal.SIGKILL)
    ended = await downloads.wait(ORDER)
    assert (ended.state, ended.failure) == ("failed", "crash")
    assert "SIGKILL" in str(ended.message)
    hub.bytes_per_s = None
    later = Downloads(downloads.cache)
    waiting = later.progress(ORDER)
    assert waiting.state == "paused"
    assert waiting.done_bytes == ended.done_bytes > 0
    later.start(ORDER)
    assert (await later.wait(ORDER)).state == "done"
    assert (later.paths(ORDER) or [])[0].read_bytes() == CONTENT
    assert hub.ranges()[-1] == f"bytes={waiting.done_bytes}-"


async def test_a_connection_that_is_cut_is_taken_up_where_it_ended(downloads: Downloads, hub: Hub) -> None:
    hub.cuts = [300_000]
    downloads.start(ORDER)
    assert (await downloads.wait(ORDER)).state == "done"
    assert (downloads.paths(ORDER) or [])[0].read_bytes() == CONTENT
    first, second = hub.ranges()
    assert first is None
    assert str(second).startswith("bytes=")


async def test_a_server_that_ignores_the_range_costs_time_and_no_content(downloads: Downloads, hub: Hub) -> None:
    await begun(downloads, hub)
    await downloads.pause(ORDER)
    hub.bytes_per_s, hub.ignores_range = None, True
    downloads.start(ORDER)
    assert (await downloads.wait(ORDER)).state == "done"
    assert (downloads.paths(ORDER) or [])[0].read_bytes() == CONTENT


async def test_a_refused_range_is_repaired_by_the_next_try(downloads: Downloads, hub: Hub) -> None:
    await begun(downloads, hub)
    await downloads.pause(ORDER)
    hub.bytes_per_s, hub.refuses_range = None, True
    refused = await failure(downloads)
    assert (refused.failure, refused.done_bytes) == ("range", 0)
    downloads.start(ORDER)
    assert (await downloads.wait(ORDER)).state == "done"


async def test_a_partial_file_that_is_complete_is_not_asked_for_again(downloads: Downloads, hub: Hub) -> None:
    await begun(downloads, hub)
    await downloads.pause(ORDER)
    (partial,) = downloads.cache.rglob("*.part")
    partial.write_bytes(CONTENT)
    asked = len(hub.ranges())
    downloads.start(ORDER)
    assert (await downloads.wait(ORDER)).state == "done"
    assert len(hub.ranges()) == asked


async def test_what_arrives_damaged_is_never_taken_for_the_model(downloads: Downloads, hub: Hub) -> None:
    hub.is_damaged = True
    failed = await failure(downloads)
    assert failed.failure == "damaged"
    assert downloads.paths(ORDER) is None
    hub.is_damaged = False
    downloads.start(ORDER)
    assert (await downloads.wait(ORDER)).state == "done"


async def test_a_disk_without_room_is_told_before_the_first_byte(downloads: Downloads, hub: Hub) -> None:
    hub.claims_size = 10**15
    failed = await failure(downloads)
    assert failed.failure == "space"
    assert "1,000,000.0 GB are needed" in str(failed.message)
    assert str(downloads.cache) in str(failed.message)
    assert hub.ranges() == []


async def test_a_missing_file_is_answered_with_the_files_there_are(downloads: Downloads, hub: Hub) -> None:
    hub.files[f"{REPO}/Tiny-Q4_K_M.gguf"] = hub.files.pop(f"{REPO}/{FILE.file}")
    hub.files[f"{REPO}/README.md"] = b"# Tiny"
    failed = await failure(downloads)
    assert failed.failure == "missing"
    assert failed.choices == ("Tiny-Q4_K_M.gguf",)
    assert "Tiny-Q4_K_M.gguf" in str(failed.hint)


async def test_a_missing_repository_a_gated_one_and_a_broken_hub_are_told_apart(downloads: Downloads, hub: Hub) -> None:
    hub.gated = True
    gated = await failure(downloads)
    assert gated.failure == "gated"
    assert f"{hub.address}/{REPO}" in str(gated.hint)
    assert "HF_TOKEN" in str(gated.hint)
    hub.gated = False
    hub.files.clear()
    assert (await failure(downloads)).failure == "missing"
    hub.broken_status = 500
    assert (await failure(downloads)).message == "the hub answered 500"


async def test_without_a_network_it_says_so_and_keeps_what_there_is(
    downloads: Downloads, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    await begun(downloads, hub)
    there = (await downloads.pause(ORDER)).done_bytes
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    failed = await failure(downloads)
    assert (failed.failure, failed.done_bytes) == ("network", there)
    assert "stays" in str(failed.hint)


async def test_a_token_opens_a_gated_repository_and_is_on_no_command_line_and_in_no_output(
    downloads: Downloads, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.wants_token, hub.gated = TOKEN, True
    assert (await failure(downloads)).failure == "gated"
    monkeypatch.setenv("HF_TOKEN", f'"{TOKEN}"\n')
    hub.bytes_per_s = 400_000
    downloads.start(ORDER)
    await until(lambda: downloads.progress(ORDER).done_bytes)
    child = downloads._downloads[ORDER.name].child
    assert child is not None
    assert TOKEN not in Path(f"/proc/{child.pid}/cmdline").read_text()
    assert TOKEN not in repr(downloads.progress(ORDER).to_dict())
    hub.bytes_per_s = None
    assert (await downloads.wait(ORDER)).state == "done"


@pytest.mark.parametrize("given", [TOKEN, f"{TOKEN}\n", f'"{TOKEN}"', f" '{TOKEN}' "])
def test_a_token_is_freed_from_the_quotes_and_line_ends_it_was_pasted_with(given: str) -> None:
    assert tidy_token(given) == TOKEN
    assert child_environment({"HF_TOKEN": given})["HF_TOKEN"] == TOKEN


@pytest.mark.parametrize("given", ["sk-abcdefghijklmnop", "hf_abc def ghij klmn", "Bearer hf_abcdefghijkl"])
def test_what_cannot_be_a_token_is_refused_without_being_shown(given: str) -> None:
    with pytest.raises(SettingsError, match="HF_TOKEN does not look like an access token") as caught:
        child_environment({"HF_TOKEN": given})
    assert given not in f"{caught.value.message} {caught.value.hint}"


async def test_model_and_projector_are_one_total(downloads: Downloads, hub: Hub) -> None:
    hub.files[f"{REPO}/mmproj-Tiny-BF16.gguf"] = b"p" * 5000
    both = Order(MODEL, FILE, with_projector=True)
    downloads.start(both)
    progress = await downloads.wait(both)
    assert (progress.state, progress.size_bytes) == ("done", len(CONTENT) + 5000)
    model, projector = downloads.paths(both) or []
    assert projector.parent == model.parent
    assert await downloads.remove(ORDER) == len(CONTENT) + 5000


async def test_two_clefs_never_write_one_file_together(downloads: Downloads, hub: Hub) -> None:
    await begun(downloads, hub)
    hub.bytes_per_s = 10_000  # longer than the other one takes to begin on a busy machine
    other = Downloads(downloads.cache)
    failed = await failure(other)
    assert failed.failure == "busy"
    hub.bytes_per_s = None
    assert (await downloads.wait(ORDER)).state == "done"


async def test_removing_ends_a_download_and_leaves_no_byte(downloads: Downloads, hub: Hub) -> None:
    await begun(downloads, hub)
    child = downloads._downloads[ORDER.name].child
    assert child is not None
    assert await downloads.remove(ORDER) > 0
    assert not is_alive(child.pid)
    assert not list(downloads.cache.rglob("*.part"))
    assert not downloads.known(ORDER)


async def test_a_pause_while_the_process_is_being_started_holds(downloads: Downloads, hub: Hub) -> None:
    downloads.start(ORDER)
    assert (await downloads.pause(ORDER)).state == "paused"
    assert downloads.active() == []


async def test_who_waits_hears_how_it_goes(downloads: Downloads, hub: Hub) -> None:
    heard: list[Progress] = []
    hub.bytes_per_s = 1_000_000
    downloads.start(ORDER)
    tell: Callable[[Progress], None] = heard.append
    await downloads.wait(ORDER, tell, every_s=0.05)
    sizes = [progress.done_bytes for progress in heard]
    assert sizes == sorted(sizes)
    assert len(set(sizes)) > 3
