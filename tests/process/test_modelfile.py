"""What is no model file is refused in words, before anything is started."""

import random
import re
from pathlib import Path

import gguf
import pytest

from clef.engines.llama.modelfile import BLOCKS, check_model, fingerprint, read_header
from clef.errors import SettingsError
from tests.tiny.models import write_clef


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_clef(tmp_path_factory.mktemp("models") / "whole.gguf")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it is empty"),
        (b"\n<!DOCTYPE html><html>", "a web page"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "a Git LFS pointer"),
        (b'{"error":"Invalid credentials"}', "the error message of a download"),
        (b"PK\x03\x04", r"it begins with b'PK\x03\x04'"),
        (b"GGUF", "damaged or cut short in its header"),
        (b"GGUF" + bytes(40), "damaged or cut short in its header"),
        (b"GGUF\x03\x00\x00\x00" + b"\xff" * 400, "damaged or cut short in its header"),
    ],
)
def test_what_is_saved_as_gguf_and_is_none_is_named(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    with pytest.raises(SettingsError, match=re.escape(said)):
        check_model(str(path))


@pytest.mark.parametrize("share", [0.001, 0.01, 0.5, 0.999])
def test_a_download_that_broke_off_is_noticed(tmp_path: Path, whole: Path, share: float) -> None:
    path = tmp_path / "part.gguf"
    path.write_bytes(whole.read_bytes()[: int(whole.stat().st_size * share)])
    with pytest.raises(SettingsError, match="cut short"):
        check_model(str(path))


def test_a_whole_model_passes_and_says_what_it_is(whole: Path) -> None:
    assert check_model(str(whole)) == whole
    header = read_header(whole)
    assert (header.architecture, header.decision_type, header.kind) == ("clef", "clef", "model")
    assert (header.context, header.layers, header.name) == (32768, 4, "tiny-whole")
    assert header.size_bytes - 32 < header.needed_bytes <= header.size_bytes


def test_a_windows_path_is_answered_with_the_path_inside_wsl() -> None:
    with pytest.raises(SettingsError, match="is a Windows path") as caught:
        check_model(r"C:\models\José\x.gguf")
    assert caught.value.hint == 'inside WSL that file is "/mnt/c/models/José/x.gguf"'


def test_a_later_part_of_a_split_model_is_answered_with_the_first(tmp_path: Path, whole: Path) -> None:
    path = tmp_path / "big-00002-of-00003.gguf"
    path.write_bytes(whole.read_bytes())
    with pytest.raises(SettingsError, match="is part 2 of 3") as caught:
        check_model(str(path))
    assert caught.value.hint == 'choose "big-00001-of-00003.gguf"'


def test_a_folder_and_a_missing_file_are_answered_with_what_is_there(whole: Path) -> None:
    for given in (whole.parent, whole.with_name("hole.gguf")):
        with pytest.raises(SettingsError) as caught:
            check_model(str(given))
        assert caught.value.hint == "there are: whole.gguf"


def test_a_projector_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "mmproj.gguf"
    writer = gguf.GGUFWriter(str(path), "clip")
    writer.add_type("mmproj")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with pytest.raises(SettingsError, match="a projector for images"):
        check_model(str(path))


def test_every_kind_of_value_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "values.gguf"
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_float32("a.float", float("nan"))
    writer.add_float64("a.double", float("inf"))
    writer.add_bool("a.bool", True)
    writer.add_array("a.strings", ["x", "", "ü"])
    writer.add_array("a.floats", [1.5, 2.5])
    writer.add_uint32("llama.context_length", 77)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    assert read_header(path).context == 77


def test_no_damage_to_a_header_is_more_than_a_refusal(tmp_path: Path, whole: Path) -> None:
    dice = random.Random(1)
    content = whole.read_bytes()
    path = tmp_path / "damaged.gguf"
    for _ in range(200):
        damaged = bytearray(content[:20_000])
        for _ in range(dice.randint(1, 8)):
            damaged[dice.randrange(4, 6000)] = dice.randrange(256)
        path.write_bytes(damaged)
        with pytest.raises(SettingsError):
            read_header(path)


def test_the_sizes_of_tensor_types_are_those_of_the_gguf_package() -> None:
    assert {int(kind): sizes for kind, sizes in gguf.GGML_QUANT_SIZES.items()} == BLOCKS


def test_a_fingerprint_follows_the_weights_and_not_the_name(tmp_path: Path, whole: Path) -> None:
    content = bytearray(whole.read_bytes())
    same, other = tmp_path / "same.gguf", tmp_path / "other.gguf"
    same.write_bytes(content)
    content[len(content) // 2] ^= 1
    other.write_bytes(content)
    assert fingerprint(same) == fingerprint(whole)
    assert fingerprint(other) != fingerprint(whole)
