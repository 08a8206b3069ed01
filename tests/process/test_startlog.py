"""What llama.cpp writes while it starts, and how it dies, in words a person understands."""

from pathlib import Path

import pytest

from clef.engines.llama.child import Exit
from clef.engines.llama.deaths import cause_of, running_in_wsl, telling
from clef.engines.llama.startlog import Device, StartFacts, StartLog

ROCM = """\
0.00.001.852 I srv          init: build_info: b11434-1a2b3c4d
0.00.001.936 I cmn  common_param:   - ROCm0   : AMD Radeon RX 9070 XT (16304 MiB, 16112 MiB free)
0.00.001.937 I cmn  common_param:   - CPU     : AMD Ryzen 7 9800X3D 8-Core Processor (7862 MiB, 0 MiB free)
0.00.120.100 I llama_prepare_model_devices: using device ROCm0 (AMD Radeon RX 9070 XT) (0000:03:00.0) - 16112 MiB free
0.00.820.100 I load_tensors: offloading output layer to GPU
0.00.820.101 I load_tensors: offloaded {}/33 layers to GPU
0.00.820.102 I load_tensors:   CPU_Mapped model buffer size =   682.03 MiB
0.00.820.103 I load_tensors:        ROCm0 model buffer size =  5018.17 MiB
0.02.021.754 I llama_context: n_batch               = 4096
0.02.021.766 I llama_context: n_ubatch              = 4096
0.02.121.766 I sched_reserve:      ROCm0 compute buffer size =  1412.00 MiB
0.02.145.482 I srv          init: decision model type: clef
0.02.145.503 I srv    load_model: initializing, n_slots = 1, n_ctx_slot = 4096, kv_unified = 'false'
"""


def read(text: str) -> StartFacts:
    log = StartLog()
    for line in text.splitlines():
        log.read(line)
    return log.facts


def test_device_layers_buffers_batch_and_decision_type_are_read() -> None:
    facts = read(ROCM.format(33))
    assert facts.devices == (Device("ROCm0", "AMD Radeon RX 9070 XT", 16112),)
    assert (facts.layers_offloaded, facts.layers, facts.placement, facts.warning) == (33, 33, "gpu", None)
    assert facts.buffers_mib["ROCm0 model"] == 5018.17
    assert facts.buffers_mib["ROCm0 compute"] == 1412
    assert (facts.context, facts.batch, facts.physical_batch, facts.slots) == (4096, 4096, 4096, 1)
    assert (facts.decision_type, facts.build, facts.has_projector) == ("clef", "b11434-1a2b3c4d", False)


@pytest.mark.parametrize(
    ("layers", "placement", "said"),
    [(0, "cpu", "0 of 33 layers"), (20, "partly", "20 of 33 layers fit on AMD Radeon RX 9070 XT (ROCm0)")],
)
def test_a_model_that_is_not_all_on_the_gpu_is_said_in_words(layers: int, placement: str, said: str) -> None:
    facts = read(ROCM.format(layers))
    assert facts.placement == placement
    assert said in (facts.warning or "")


def test_no_line_about_layers_is_unknown_and_never_gpu() -> None:
    facts = read("\n".join(line for line in ROCM.splitlines() if "offload" not in line))
    assert (facts.placement, facts.warning) == ("unknown", None)


def test_a_build_that_found_the_processor_alone_says_so_though_it_has_no_line_about_layers() -> None:
    facts = read("common_param:   - CPU     : AMD Ryzen 7 9800X3D 8-Core Processor (7862 MiB, 7000 MiB free)")
    assert facts.placement == "cpu"
    assert facts.warning == "It runs on the processor: this llama.cpp found no GPU."


NO_DRIVER = """\
0.00.003.103 I cmn  common_param: common_params_print_info: build 10434 (7e4c0a9) with GNU 11.4.0 for Linux x86_64
0.00.003.142 I cmn  common_param: device_info:
0.00.003.149 I cmn  common_param:   - CPU     : AMD EPYC (24105 MiB, 24105 MiB free)
0.00.013.838 I load_tensors: offloading output layer to GPU
0.00.013.839 I load_tensors: offloaded 33/33 layers to GPU
0.00.013.840 I load_tensors:   CPU_Mapped model buffer size =  9210.29 MiB
0.00.014.009 I llama_kv_cache:        CPU KV buffer size =     0.12 MiB
"""


def test_a_build_for_gpus_that_finds_none_is_on_the_processor_whatever_it_says_of_layers() -> None:
    facts = read(NO_DRIVER)
    assert (facts.placement, facts.layers_on_gpu, facts.layers) == ("cpu", 0, 33)
    assert facts.warning == "It runs on the processor: this llama.cpp found no GPU."
    assert facts.build == "10434 (7e4c0a9)"


def test_a_model_that_lies_in_main_memory_alone_is_on_the_processor_though_there_is_a_gpu() -> None:
    facts = read(ROCM.format(33).replace("       ROCm0 model", "   ROCm_Host model"))
    assert facts.placement == "cpu"
    assert "0 of 33 layers went to a GPU" in (facts.warning or "")


def test_an_integrated_gpu_that_was_chosen_is_named() -> None:
    facts = read(
        "  - Vulkan0 : AMD Radeon RX 9070 XT (RADV GFX1201) (16304 MiB, 16000 MiB free)\n"
        "  - Vulkan1 : AMD Radeon Graphics (RADV RAPHAEL) (32000 MiB, 31000 MiB free)\n"
        "llama_model_load_from_file_impl: using device Vulkan1 (AMD Radeon Graphics (RADV RAPHAEL)) - 31000 MiB free\n"
    )
    assert facts.devices == (Device("Vulkan1", "AMD Radeon Graphics (RADV RAPHAEL)", 31000),)


def test_the_smaller_of_context_and_physical_batch_is_the_limit_of_a_request() -> None:
    assert read("n_ubatch = 512\nn_slots = 4, n_ctx_slot = 1024").max_tokens == 512
    assert read("n_slots = 4, n_ctx_slot = 1024").max_tokens == 1024
    assert read("nothing known").max_tokens is None


@pytest.mark.parametrize(
    ("end", "line", "cause", "hint"),
    [
        (1, "ggml_gallocr: failed to allocate ROCm0 buffer of size 14", "not enough memory", "CLEF_CONTEXT"),
        (1, "E llama_model_load: error loading model: unknown model architecture: 'clef'", '"clef"', "newer llama.cpp"),
        (1, "tensor 'x' data is not within the file bounds, model is corrupted or incomplete", "damaged", "again"),
        (1, "error: invalid argument: -fa", 'the option "-fa"', "CLEF_LLAMA_ARGS"),
        (1, "E srv start: couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 9", "port was taken", "--port"),
        (
            127,
            "llama-server: error while loading shared libraries: libhipblas.so.3: cannot open",
            "libhipblas.so.3",
            "LD_",
        ),
        (1, 'error while handling argument "-c": stoi', 'the option "-c"', "CLEF_LLAMA_ARGS"),
        (1, 'error while handling argument "--device": invalid device: ROCm7', 'the device "ROCm7"', "CLEF_DEVICE"),
        (-6, "ROCm error: invalid device function", "not built for this GPU", "HSA_OVERRIDE_GFX_VERSION"),
        (-9, "load_tensors: loading", "out of memory", "smaller"),
        (-4, "load_tensors: loading", "processor", "built for this machine"),
    ],
)
def test_known_deaths_have_a_cause_and_a_remedy(end: int, line: str, cause: str, hint: str) -> None:
    death = cause_of(Exit(end), ["before", line, "after"], is_wsl=False)
    assert death is not None
    assert cause in death.cause
    assert hint in death.hint


def test_under_wsl_a_crash_after_loading_points_to_the_drivers_and_a_kill_to_wslconfig() -> None:
    loading = ["load_tensors: offloaded 33/33 layers to GPU", "llama_context: constructing llama_context"]
    crash = cause_of(Exit(-11), loading, is_wsl=True)
    assert crash is not None
    assert "GPU context" in crash.cause
    kill = cause_of(Exit(-9), loading, is_wsl=True)
    assert kill is not None
    assert ".wslconfig" in kill.hint
    assert cause_of(Exit(-11), loading, is_wsl=False) is None


def test_an_unknown_death_has_no_made_up_cause() -> None:
    assert cause_of(Exit(3), ["something else"], is_wsl=False) is None


def test_the_lines_that_say_most_are_shown_without_their_stamps() -> None:
    lines = [
        "0.00.005.034 I srv    load_model: loading model 'bad.gguf'",
        "0.00.005.115 E gguf_init_from_reader: invalid magic characters: '<htm', expected 'GGUF'",
        "0.00.005.115 E gguf_init_from_reader: invalid magic characters: '<htm', expected 'GGUF'",
        "0.00.005.601 I srv    operator(): operator(): cleaning up before exit...",
        "0.00.005.608 E srv          init: exiting due to model loading error",
    ]
    assert telling(lines) == ["E gguf_init_from_reader: invalid magic characters: '<htm', expected 'GGUF'"]
    assert telling(["one", "", "two"]) == ["one", "two"]


def test_a_kill_is_not_followed_by_what_it_did_just_before() -> None:
    busy = ["0.12.003.103 I slot launch_slot_: id  0 | task 0 | processing task", "0.12.003.104 I slot release: id  0"]
    assert telling(busy, is_known=True) == []
    assert len(telling(busy)) == 2
    assert telling([*busy, "E out of memory"], is_known=True) == ["E out of memory"]


def test_signals_and_codes_are_named() -> None:
    assert [str(Exit(code)) for code in (0, 1, -11, -9, -99)] == [
        *("exit code 0", "exit code 1", "SIGSEGV", "SIGKILL", "signal 99")
    ]


def test_wsl_is_known_by_its_kernel(tmp_path: Path) -> None:
    version = tmp_path / "version"
    version.write_text("Linux version 6.6.87.2-microsoft-standard-WSL2")
    assert running_in_wsl(version)
    version.write_text("Linux version 6.12.0-generic")
    assert not running_in_wsl(version)
    assert not running_in_wsl(tmp_path / "nowhere")
