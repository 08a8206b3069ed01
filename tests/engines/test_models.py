"""Which models there are, which fit a machine, and what is in the cache."""

import subprocess
import sys
from pathlib import Path

import pytest

from clef.engines.models.cache import Cached, hub_cache
from clef.engines.models.catalogue import CATALOGUE, Wanted, is_name, named
from clef.engines.models.fitting import Gpu, Memory, chosen_file, fit_of, memory_of, needed_bytes, recommended
from clef.errors import NotFound
from tests.fakes.machine import CannedMachine, amd_wsl, apple, cpu_laptop, devices, nvidia_linux

GIB = 2**30
LIST = ["llama-server", "--list-devices"]


def card(gigabytes: float) -> Memory:
    return Memory(16 * GIB, (Gpu("ROCm0", "card", int(gigabytes * GIB)),))


class TestCatalogue:
    def test_a_name_may_leave_the_quantisation_open_or_name_it_in_any_case(self) -> None:
        assert named("clef-flash").file is None
        assert named("Clef-Flash:q8_0").name == "clef-flash:Q8_0"
        assert named("ggml-org/Clef-Flash-GGUF:Q4_K_M").name == "clef-flash:Q4_K_M"

    def test_a_wrong_name_or_quantisation_is_answered_with_the_choices(self) -> None:
        with pytest.raises(NotFound) as model:
            named("gpt-5")
        assert "clef-flash" in str(model.value.hint)
        with pytest.raises(NotFound) as quantisation:
            named("clef-flash:Q9_X")
        assert quantisation.value.hint == "there are: clef-flash:Q4_K_M, clef-flash:Q8_0, clef-flash:BF16"

    def test_a_path_is_no_name(self) -> None:
        assert is_name("clef-flash")
        assert not is_name("/models/clef-flash.gguf")
        assert not is_name("clef-flash.gguf")

    def test_every_file_has_a_name_a_size_and_a_licence_and_smaller_come_first(self) -> None:
        for model in CATALOGUE:
            assert model.licence
            assert list(model.files) == sorted(model.files, key=lambda file: file.size_bytes)
            assert all(file.file.endswith(f"{file.quantisation}.gguf") for file in model.files)
            assert len({file.quantisation for file in model.files}) == len(model.files)


class TestFitting:
    @pytest.mark.parametrize(
        ("gigabytes", "name"),
        [
            *((8, "julia-1:Q8_0"), (10, "clef-flash:Q4_K_M"), (12, "clef-flash:Q8_0"), (16, "clef-flash:Q8_0")),
            *((24, "clef-flash:BF16"), (80, "clef-flash:BF16")),
        ],
    )
    def test_a_gpu_gets_the_largest_clef_flash_that_fits_with_its_buffers(self, gigabytes: int, name: str) -> None:
        assert recommended(card(gigabytes), 4096).name == name

    def test_a_larger_context_leaves_less_for_the_weights(self) -> None:
        assert recommended(card(12), 16384).name == "julia-1:Q8_0"
        assert recommended(card(16), 16384).name == "clef-flash:Q4_K_M"

    def test_the_estimate_is_what_was_measured_on_a_card(self) -> None:
        flash = named("clef-flash:Q4_K_M")
        assert flash.file is not None
        assert needed_bytes(flash.model, flash.file, 16384) / GIB == pytest.approx(14.1, rel=0.05)

    @pytest.mark.parametrize(
        ("machine", "name"),
        [
            (cpu_laptop(), "julia-1:Q8_0"),
            (amd_wsl(), "clef-flash:Q8_0"),
            (nvidia_linux(), "clef-flash:BF16"),
            (apple(), "clef-flash:BF16"),
        ],
        ids=["laptop", "AMD under WSL", "NVIDIA", "Apple"],
    )
    def test_each_kind_of_machine_gets_one(self, machine: CannedMachine, name: str) -> None:
        assert recommended(memory_of(machine, LIST), 4096).name == name

    def test_a_driver_that_says_zero_says_nothing(self) -> None:
        machine = amd_wsl(programs={"--list-devices": devices("ROCm0: AMD Radeon RX 9070 XT (0 MiB, 0 MiB free)")})
        memory = memory_of(machine, LIST)
        assert memory.gpus[0].total_bytes is None
        assert memory.best_gpu is None

    def test_a_name_without_quantisation_means_the_largest_that_fits(self) -> None:
        assert chosen_file(named("clef-flash"), card(12), 4096).quantisation == "Q8_0"
        assert chosen_file(named("clef-flash:BF16"), card(12), 4096).quantisation == "BF16"
        assert chosen_file(named("clef"), Memory(8 * GIB), 4096).quantisation == "Q4_K_M"

    def test_what_fits_nowhere_is_said(self) -> None:
        clef = named("clef").model
        assert [fit_of(clef, file, 4096, Memory(16 * GIB)) for file in clef.files] == ["no", "no"]
        assert fit_of(clef, clef.files[0], 4096, Memory(None)) == "unknown"


def put(cache: Path, wanted: Wanted, content: bytes, commit: str = "c1") -> Path:
    """A file in the cache, as the hub's library lays it there."""
    assert wanted.file is not None
    folder = Cached(wanted.model.repo, cache).folder
    blob = folder / "blobs" / f"{wanted.file.quantisation}{commit}"
    link = folder / "snapshots" / commit / wanted.file.file
    for path in (blob, link):
        path.parent.mkdir(parents=True, exist_ok=True)
    blob.write_bytes(content)
    link.symlink_to(blob)
    return link


class TestCache:
    @pytest.mark.parametrize(
        "env",
        [
            {},
            {"HF_HOME": "/data/hf"},
            {"XDG_CACHE_HOME": "/data/cache"},
            {"HUGGINGFACE_HUB_CACHE": "/data/old"},
            {"HF_HUB_CACHE": "~/mine", "HF_HOME": "/data/hf"},
            {"HF_HOME": "$HOME/hf"},
        ],
    )
    def test_it_is_where_the_hubs_library_has_it(self, env: dict[str, str], tmp_path: Path) -> None:
        whole = {"HOME": str(tmp_path), "PATH": "/usr/bin"} | env
        code = (
            "from pathlib import Path; from huggingface_hub import constants;"
            "from clef.engines.models.cache import hub_cache; print(hub_cache() == Path(constants.HF_HUB_CACHE))"
        )
        ran = subprocess.run([sys.executable, "-c", code], env=whole, capture_output=True, text=True, check=True)
        assert ran.stdout == "True\n"

    def test_a_model_is_found_without_the_hubs_library_and_without_a_network(self, tmp_path: Path) -> None:
        wanted = named("julia-1:Q8_0")
        assert wanted.file is not None
        link = put(tmp_path, wanted, b"GGUF")
        assert Cached(wanted.model.repo, tmp_path).path_of(wanted.file.file) == link
        assert "huggingface_hub" not in hub_cache.__globals__

    def test_removing_one_file_leaves_the_others_of_its_repository(self, tmp_path: Path) -> None:
        small, large = named("clef-flash:Q4_K_M"), named("clef-flash:Q8_0")
        assert small.file is not None
        assert large.file is not None
        put(tmp_path, small, b"four")
        link = put(tmp_path, large, b"eight bytes")
        cached = Cached(small.model.repo, tmp_path)
        assert cached.remove(large.file.file) == 11
        assert not link.is_symlink()
        assert [blob.read_bytes() for blob in (cached.folder / "blobs").iterdir()] == [b"four"]
        assert cached.remove(small.file.file) == 4
        assert not cached.folder.exists()

    def test_removing_what_is_not_there_does_no_harm(self, tmp_path: Path) -> None:
        assert Cached("ggml-org/Clef-GGUF", tmp_path).remove("x.gguf") == 0
