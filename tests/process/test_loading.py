"""How far a model is read: by real processes that read, or map, a part of a sparse file."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from clef.engines.llama.loading import Loading, Reading, model_files
from clef.engines.llama.supervisor import LlamaEngine
from clef.errors import Unavailable
from tests.process.test_supervisor import ASKED
from tests.process.waiting import until

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a process has read"),
]
SIZE = 300_000_000


@pytest.fixture
def large(model: Path, tmp_path: Path) -> Path:
    """A model that is large and mostly a hole."""
    path = tmp_path / "large model.gguf"
    path.write_bytes(model.read_bytes())
    os.truncate(path, SIZE)
    return path


@pytest.mark.parametrize("how", ["--take", "--map"])
async def test_a_load_says_how_much_is_read_and_how_long_the_rest_takes(
    make_engine: Callable[..., LlamaEngine], large: Path, how: str
) -> None:
    engine = make_engine(how, "0.5", "--load-s", "60", model=str(large))
    await engine.start()

    def far() -> Loading | None:
        return engine.details().loading

    await until(lambda: engine.state == "loading" and (now := far()) and now.share > 0.1)
    loading = far()
    assert loading is not None
    assert loading.size_bytes == SIZE
    assert loading.share == pytest.approx(0.5, abs=0.05)
    assert loading.seconds_left is not None
    assert 0 < loading.seconds_left < 60
    told = (await engine.facts()).message or ""
    assert told == loading.in_words
    assert "Loading the model: 5" in told
    with pytest.raises(Unavailable, match=r"of its 0\.3 GB are read, about"):
        await engine.decide(ASKED)


async def test_what_is_ready_no_longer_loads(make_engine: Callable[..., LlamaEngine], large: Path) -> None:
    engine = make_engine("--take", "1", model=str(large))
    await engine.start()
    await engine.wait_ready()
    assert engine.details().loading is None
    assert (await engine.facts()).message is None


def test_a_small_model_is_not_worth_telling(model: Path) -> None:
    assert Reading(os.getpid(), ["-m", str(model)]).now() is None


def test_a_process_that_has_ended_tells_nothing(large: Path) -> None:
    pid = os.spawnlp(os.P_NOWAIT, "true", "true")
    os.waitpid(pid, 0)
    assert Reading(pid, ["-m", str(large)]).now() is None


def test_all_parts_of_a_split_model_and_its_projector_count(tmp_path: Path) -> None:
    for name in ("m-00001-of-00002.gguf", "m-00002-of-00002.gguf", "mmproj.gguf", "other.gguf"):
        (tmp_path / name).touch()
    named = [
        "-m",
        str(tmp_path / "m-00001-of-00002.gguf"),
        "--mmproj",
        str(tmp_path / "mmproj.gguf"),
        "--alias",
        "a.gguf",
    ]
    found = [file.name for file in model_files(named)]
    assert found == ["m-00001-of-00002.gguf", "m-00002-of-00002.gguf", "mmproj.gguf"]


def test_words() -> None:
    assert Loading(0, 9_800_000_000, None).in_words == "Loading the model: 0 % of its 9.8 GB are read"
    whole = Loading(9_800_000_000, 9_800_000_000, None)
    assert whole.in_words == "Loading the model: all of its 9.8 GB are read, and it is made ready"
    assert whole.in_short == "100 %"
    assert Loading(4_900_000_000, 9_800_000_000, 200.0).in_short == "50 % · 3 min left"
