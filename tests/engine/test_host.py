"""The llama.cpp inside the wheel takes llama-server's options and answers as llama-server would."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.engine


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    argv = [sys.executable, "-m", "clef.engines.llama.host", *arguments]
    return subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-m", "x.gguf", "--nonsense"), "error: invalid argument: --nonsense"),
        (("-c",), "error: expected value for argument: -c"),
        (("-c", "many"), 'error while handling argument "-c"'),
        (("-fa", "perhaps"), 'error while handling argument "-fa"'),
        (("-ctk", "q99"), 'error while handling argument "-ctk"'),
        ((), "error: no model"),
    ],
)
def test_an_option_it_cannot_use_is_named_and_ends_it_with_1(arguments: tuple[str, ...], said: str) -> None:
    done = run(*arguments)
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_model_it_cannot_load_ends_it_with_1_and_a_message(tmp_path: Path) -> None:
    path = tmp_path / "page.gguf"
    path.write_text("<html>")
    done = run("-m", str(path), "--port", "0")
    assert done.returncode == 1
    assert "invalid magic" in done.stderr
    assert "Traceback" not in done.stderr


def test_it_tells_its_version_and_its_devices() -> None:
    version = run("--version")
    assert version.returncode == 0
    assert "xllamacpp" in version.stderr
    devices = run("--list-devices")
    assert devices.returncode == 0
    assert devices.stdout.startswith("Available devices:")


def test_every_option_sets_what_it_names() -> None:
    import xllamacpp

    from clef.engines.llama.host import apply

    params = xllamacpp.CommonParams()
    line = """
        -m m.gguf -mm p.gguf -a one,two --host 0.0.0.0 --port 81 --ctx-size 11 --batch-size 12 -ub 13 -np 2 -t 3 -tb 4
        --threads-http 5 -to 6 -ngl all -mg 1 -sm row -ts 3/1 -fa off -ctk q8_0 -ctv f16 --image-min-tokens 7
        --image-max-tokens 8 -fit off -lv 4 --no-mmproj --no-mmproj-offload --no-mmap --no-warmup -nkvo -kvu
        --metrics --props --check-tensors --no-webui -c 99
    """
    apply(line.split(), params)
    assert (params.model.path, params.mmproj.path, params.model_alias) == ("m.gguf", "p.gguf", {"one", "two"})
    assert (params.hostnames, params.port, params.n_ctx, params.n_batch, params.n_ubatch) == (
        ["0.0.0.0"],
        81,
        99,
        12,
        13,
    )
    assert (params.cpuparams.n_threads, params.cpuparams_batch.n_threads, params.n_threads_http) == (3, 4, 5)
    assert (params.timeout_read, params.timeout_write, params.n_parallel, params.main_gpu) == (6, 6, 2, 1)
    assert params.n_gpu_layers >= 1000
    assert list(params.tensor_split)[:3] == [3, 1, 0]
    assert (params.split_mode.name, params.load_mode.name) == ("LLAMA_SPLIT_MODE_ROW", "LLAMA_LOAD_MODE_NONE")
    assert (params.flash_attn_type.value, params.cache_type_k.name) == (0, "GGML_TYPE_Q8_0")
    assert (params.image_min_tokens, params.image_max_tokens, params.verbosity) == (7, 8, 4)
    on = (params.no_mmproj, params.no_kv_offload, params.kv_unified, params.endpoint_metrics, params.check_tensors)
    off = (params.mmproj_use_gpu, params.warmup, params.fit_params, params.ui)
    assert all(on)
    assert not any(off)


def found_devices(*kinds: str) -> list[dict[str, object]]:
    """What the wheel says of its devices: Vulkan0, Vulkan1, … of these kinds, and the processor."""
    import xllamacpp

    types = xllamacpp.ggml_backend_dev_type
    found = [("CPU", "CPU"), *((f"Vulkan{number}", kind) for number, kind in enumerate(kinds))]
    return [{"name": name, "type": types[f"GGML_BACKEND_DEVICE_TYPE_{kind}"]} for name, kind in found]


@pytest.mark.parametrize(
    ("kinds", "device", "main_gpu"),
    [
        (("GPU", "GPU"), "Vulkan1", 1),
        (("IGPU", "GPU"), "Vulkan1", 0),  # llama.cpp counts no integrated one beside a card
        (("IGPU",), "Vulkan0", 0),
        ((), "none", -1),
    ],
)
def test_one_device_is_chosen_as_llama_cpp_counts_them(
    kinds: tuple[str, ...], device: str, main_gpu: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    import xllamacpp

    from clef.engines.llama.host import apply

    monkeypatch.setattr(xllamacpp, "get_device_info", lambda: found_devices(*kinds))
    params = xllamacpp.CommonParams()
    apply(["--device", device], params)
    assert (params.main_gpu, params.split_mode.name) == (main_gpu, "LLAMA_SPLIT_MODE_NONE")


@pytest.mark.parametrize(
    ("device", "said"),
    [("Vulkan0", "invalid device: Vulkan0; it can use: Vulkan1"), ("Vulkan0,Vulkan1", "several need a llama-server")],
)
def test_a_device_that_the_wheel_cannot_use_is_refused_with_those_it_can(
    device: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import xllamacpp

    from clef.engines.llama.host import Rejected, apply

    monkeypatch.setattr(xllamacpp, "get_device_info", lambda: found_devices("IGPU", "GPU"))
    with pytest.raises(Rejected, match=said):
        apply(["--device", device], xllamacpp.CommonParams())
