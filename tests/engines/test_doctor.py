"""What the doctor finds on machines that are not here."""

from collections.abc import Callable
from pathlib import Path

import pytest

from clef.engines.builtin import BuiltinEngine
from clef.engines.doctor.examine import examine, timed_decision
from clef.engines.doctor.finding import Finding, exit_code
from clef.engines.machine import Ran, ThisMachine
from clef.engines.upstream import UpstreamEngine
from clef.settings import Settings
from tests.fakes.machine import (
    LINUX_VERSION,
    RX_9070_XT,
    WSL_VERSION,
    CannedMachine,
    amd_linux,
    amd_wsl,
    apple,
    cpu_laptop,
    devices,
    meminfo,
    nvidia_linux,
)
from tests.fakes.system_one import SystemOne

GB = 10**9
GOOD = {"--version": Ran(0, "version: 11549 (abcdef01)\nbuilt with a compiler")}
MODEL = "/home/me/models/Clef-Flash-Q8_0.gguf"


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("clef.engines.llama.command.DEFAULT_PLACE", "/nowhere")


def found(machine: CannedMachine, **settings: object) -> dict[str, Finding]:
    """The findings by their check."""
    machine.programs = machine.programs | {name: ran for name, ran in GOOD.items() if name not in machine.programs}
    given: dict[str, object] = {"upstream": "http://127.0.0.1:8080", **settings}
    return {finding.check: finding for finding in examine(Settings(**given), machine)}  # type: ignore[arg-type] # pydantic checks them


def with_model(machine: CannedMachine, size: float = 9.66 * GB, path: str = MODEL) -> CannedMachine:
    machine.sizes[path] = int(size)
    return machine


class TestWholeMachines:
    @pytest.mark.parametrize("make", [amd_wsl, amd_linux, nvidia_linux, apple, cpu_laptop])
    def test_one_in_order_has_nothing_to_look_at(self, make: Callable[..., CannedMachine]) -> None:
        findings = list(found(make()).values())
        assert [finding for finding in findings if finding.level in ("warn", "fail")] == []
        assert exit_code(findings) == 0

    def test_the_kind_of_system_is_named(self) -> None:
        kinds = [found(make())["platform"].seen for make in (amd_wsl, amd_linux, apple)]
        assert kinds == ["Linux under Windows (WSL)", "Linux", "macOS"]

    def test_every_finding_that_is_not_well_says_what_to_do(self) -> None:
        broken = CannedMachine(
            files={"/proc/version": WSL_VERSION, "/opt/rocm": "", "/proc/meminfo": meminfo(4)},
            programs={"dkms status": Ran(0, "amdgpu/6.16, installed"), "--version": Ran(0, "version: 5000 (old)")},
            env={"HSA_OVERRIDE_GFX_VERSION": "10.3.0", "HF_TOKEN": "sk-no"},
            free=10**9,
            writable=False,
            answering=frozenset({8080, 9000}),
        )
        findings = found(with_model(broken, path="/mnt/c/m.gguf"), model="/mnt/c/m.gguf", llama_args="--port 9000")
        bad = [finding for finding in findings.values() if finding.level in ("warn", "fail")]
        assert len(bad) >= 9
        assert all(finding.remedy for finding in bad)
        assert exit_code(list(findings.values())) == 2


class TestWsl:
    def test_without_its_gpu_door_no_program_sees_a_gpu(self) -> None:
        machine = amd_wsl()
        del machine.files["/dev/dxg"]
        finding = found(machine)["dxg"]
        assert finding.level == "fail"
        assert "wsl --update" in str(finding.remedy)

    def test_a_missing_bridge_and_a_missing_variable_are_told_apart(self) -> None:
        without = amd_wsl()
        del without.files["/opt/rocm/lib/librocdxg.so"]
        assert found(without)["bridge"].level == "fail"
        undetected = amd_wsl()
        undetected.env = {}
        finding = found(undetected)["bridge"]
        assert finding.level == "warn"
        assert "HSA_ENABLE_DXG_DETECTION=1" in str(finding.remedy)

    def test_an_older_library_of_ubuntus_own_stands_in_the_way(self) -> None:
        shadowed = amd_wsl(files={"/lib/x86_64-linux-gnu/libhsa-runtime64.so.1": ""})
        finding = found(shadowed)["bridge"]
        assert finding.level == "warn"
        assert "libhsa-runtime64-1" in str(finding.remedy)

    def test_a_kernel_driver_of_linuxs_own_must_not_be_there(self) -> None:
        finding = found(amd_wsl(programs={"dkms status": Ran(0, "amdgpu/6.16.6, x86_64: installed")}))["kernel"]
        assert finding.level == "fail"
        assert "purge amdgpu-dkms" in str(finding.remedy)

    def test_rocminfo_that_lists_the_processor_alone_is_a_failure(self) -> None:
        machine = amd_wsl(programs={"rocminfo": Ran(0, "Agent 1\n  Name: AMD Ryzen 7 9800X3D\n")})
        finding = found(machine)["rocm"]
        assert finding.level == "fail"
        assert "Windows driver" in str(finding.remedy)

    def test_rocm_smi_is_never_asked(self) -> None:
        machine = amd_wsl()
        found(machine)
        assert not [line for line in machine.ran if "smi" in line]

    def test_vulkan_through_dozen_is_warned_of(self) -> None:
        said = "GPU0:\n\tdeviceName        = Microsoft Direct3D12 (AMD Radeon RX 9070 XT)\n\tdriverName = Dozen\n"
        assert found(amd_wsl(programs={"vulkaninfo": Ran(0, said)}))["vulkan"].level == "warn"
        assert "vulkan" not in found(amd_wsl())
        assert "vulkan" not in found(amd_linux(programs={"vulkaninfo": Ran(0, said)}))

    def test_a_model_on_a_disk_of_windows_is_slow_to_load(self) -> None:
        path = "/mnt/c/models/Clef-Flash-Q8_0.gguf"
        finding = found(with_model(amd_wsl(), path=path), model=path)["place"]
        assert finding.level == "warn"
        assert path in finding.seen
        assert "place" not in found(with_model(amd_linux(), path=path), model=path)

    def test_less_memory_than_the_file_is_told_with_wslconfig(self) -> None:
        machine = with_model(amd_wsl(files={"/proc/meminfo": meminfo(7.7)}))
        finding = found(machine, model=MODEL)["memory"]
        assert finding.level == "warn"
        assert ".wslconfig" in str(finding.remedy)

    def test_an_nvidia_card_under_wsl_is_not_asked_for_amds_bridge(self) -> None:
        machine = CannedMachine(
            files={"/proc/version": WSL_VERSION, "/dev/dxg": "", "/usr/lib/wsl/lib/libcuda.so.1": ""},
            programs={
                "nvidia-smi": Ran(0, "GPU 0: NVIDIA GeForce RTX 4090 (UUID: x)"),
                "--list-devices": devices("CUDA0: NVIDIA GeForce RTX 4090 (24563 MiB, 22994 MiB free)"),
            },
        )
        findings = found(machine)
        assert "bridge" not in findings
        assert findings["nvidia"].seen == "GPU 0: NVIDIA GeForce RTX 4090"


class TestLinux:
    def test_a_driver_that_is_not_loaded_and_one_that_may_not_be_used(self) -> None:
        without = amd_linux()
        del without.files["/dev/kfd"]
        assert "modprobe amdgpu" in str(found(without)["kernel"].remedy)
        forbidden = amd_linux()
        forbidden.writable = False
        finding = found(forbidden)["kernel"]
        assert finding.level == "fail"
        assert "render,video" in str(finding.remedy)

    def test_what_only_a_build_needs_is_no_failure(self) -> None:
        missing = found(amd_linux())["hip"]
        assert (missing.level, "only to build" in missing.seen) == ("unknown", True)
        files = {"/opt/rocm/include/hip/hip_runtime.h": "", "/opt/rocm/include/hipblas/hipblas.h": ""}
        assert found(amd_linux(files=files))["hip"].level == "ok"

    def test_an_nvidia_driver_that_is_not_there(self) -> None:
        machine = nvidia_linux(programs={"nvidia-smi": Ran(9, "NVIDIA-SMI has failed")})
        assert found(machine)["nvidia"].level == "warn"


class TestLlamaCpp:
    def test_one_that_sees_no_gpu_on_a_machine_that_has_one_is_a_failure(self) -> None:
        for machine in (amd_linux(), amd_wsl(), nvidia_linux()):
            machine.programs["--list-devices"] = devices()
            finding = found(machine)["devices"]
            assert finding.level == "fail"
            assert "processor" in finding.seen

    def test_one_that_cannot_be_asked_is_unknown_and_not_called_a_processor(self) -> None:
        machine = cpu_laptop()
        machine.programs = {"--list-devices": Ran(1, "error: invalid argument: --list-devices")}
        assert found(machine)["devices"].level == "unknown"

    def test_a_driver_that_says_zero_does_not_know(self) -> None:
        machine = amd_wsl(programs={"--list-devices": devices("ROCm0: AMD Radeon RX 9070 XT (0 MiB, 0 MiB free)")})
        finding = found(machine)["devices"]
        assert (finding.level, "memory unknown" in finding.seen) == ("ok", True)

    def test_two_devices_are_named_with_the_way_to_choose(self) -> None:
        second = "ROCm1: AMD Radeon Graphics (32000 MiB, 31000 MiB free)"
        finding = found(amd_linux(programs={"--list-devices": devices(RX_9070_XT, second)}))["several"]
        assert finding.level == "warn"
        assert "CLEF_DEVICE=ROCm0" in str(finding.remedy)

    @pytest.mark.parametrize(
        ("said", "level", "words"),
        [
            (Ran(0, "version: 11549 (abc)"), "ok", "build 11549"),
            (Ran(0, "version: b11400-abc"), "ok", "build 11400"),
            (Ran(0, "load_backend: x\nversion: 0.1.0-dev (build 11434, commit a1b2c3d)"), "ok", "build 11434"),
            (Ran(0, "version: 0.1.0-dev (build 10434, commit a1b2c3d)"), "fail", "is build 10434"),
            (Ran(0, "version: 0.1.0-dev (build 1, commit a1b2c3d)"), "unknown", "does not know its own build"),
            (Ran(0, "version: 11365 (abc)"), "warn", "clef models came with build 11379"),
            (Ran(0, "version: 5000 (abc)"), "fail", "/v1/systemone came with build 11361"),
            (Ran(0, "hello"), "unknown", "does not say its version"),
            (Ran(127, "error while loading shared libraries"), "fail", "does not say its version"),
        ],
    )
    def test_one_that_is_too_old_is_told_by_its_build(self, said: Ran, level: str, words: str) -> None:
        finding = found(cpu_laptop(programs={"--version": said}))["server"]
        assert finding.level == level
        assert words in finding.seen

    def test_one_that_is_set_and_not_there(self) -> None:
        machine = cpu_laptop()
        finding = found(machine, llama_server=Path("/nowhere/llama-server"))["server"]
        assert "there is no file" in finding.seen


class TestModelAndFolders:
    @pytest.mark.parametrize(
        ("machine", "size", "level", "words"),
        [
            (amd_linux(), 9.66, "ok", "AMD Radeon RX 9070 XT"),
            (amd_linux(), 18.2, "warn", "more than the 15.9 GiB"),
            (cpu_laptop(), 9.66, "ok", "12.0 GB of 15.5 GiB"),
            (cpu_laptop(), 28.7, "fail", "and there is 15.5 GiB"),
        ],
    )
    def test_a_model_is_held_against_the_memory(
        self, machine: CannedMachine, size: float, level: str, words: str
    ) -> None:
        finding = found(with_model(machine, size * GB), model=MODEL)["memory"]
        assert finding.level == level
        assert words in finding.seen

    def test_without_a_model_there_is_nothing_to_hold(self) -> None:
        assert "memory" not in found(cpu_laptop())

    def test_a_folder_that_is_full_or_closed(self) -> None:
        full = found(cpu_laptop(free=5 * GB))["folder"]
        assert (full.level, "5.0 GB free" in full.seen) == ("warn", True)
        assert found(cpu_laptop(writable=False))["folder"].level == "fail"
        assert found(cpu_laptop(free=None))["folder"].level == "unknown"

    def test_variables_that_choose_a_gpu_are_shown_with_their_values(self) -> None:
        override = found(amd_linux(env={"HSA_OVERRIDE_GFX_VERSION": "10.3.0"}))["variables"]
        assert (override.level, override.seen) == ("warn", "HSA_OVERRIDE_GFX_VERSION=10.3.0")
        assert "unset HSA_OVERRIDE_GFX_VERSION" in str(override.remedy)
        assert found(nvidia_linux(env={"CUDA_VISIBLE_DEVICES": ""}))["variables"].level == "warn"

    def test_a_token_is_looked_at_and_never_shown(self) -> None:
        finding = found(cpu_laptop(env={"HF_TOKEN": "sk-secret-of-mine"}))["token"]
        assert finding.level == "warn"
        assert "secret" not in repr(finding)

    def test_a_taken_port_and_a_server_that_is_there(self) -> None:
        busy = cpu_laptop(answering=frozenset({8080, 9000}))
        findings = found(busy, llama_args="--port 9000")
        assert findings["port"].level == "fail"
        assert "never stops it" in findings["upstream"].seen
        assert not {"port", "upstream"} & set(found(cpu_laptop(), llama_args="--port 9000"))


@pytest.mark.anyio
class TestDecision:
    async def test_one_is_timed_and_the_built_in_model_is_not_taken_for_a_real_one(self) -> None:
        finding = await timed_decision(BuiltinEngine())
        assert finding.level == "warn"
        assert " ms; it is the built-in one" in finding.seen

    async def test_a_server_that_answers_is_well(self, server: SystemOne) -> None:
        engine = UpstreamEngine(server.address)
        finding = await timed_decision(engine)
        assert (finding.level, "fake.gguf answers in" in finding.seen) == ("ok", True)
        await engine.close()

    async def test_with_nobody_there_it_is_not_known(self, nobody: str) -> None:
        engine = UpstreamEngine(nobody)
        assert (await timed_decision(engine)).level == "unknown"
        await engine.close()


class TestThisMachine:
    """The seam on the machine the tests run on: it never raises."""

    def test_what_is_there_is_seen_and_what_is_not_is_none(self, tmp_path: Path) -> None:
        here = ThisMachine()
        file = tmp_path / "file"
        file.write_text("content")
        assert (here.read(str(file)), here.size(str(file)), here.exists(str(file))) == ("content", 7, True)
        assert (here.read("/nowhere"), here.size("/nowhere"), here.exists("/nowhere")) == (None, None, False)
        assert (here.free_bytes(str(tmp_path / "not" / "yet")) or 0) > 0
        assert here.is_writable(str(tmp_path / "not" / "yet"))
        assert not here.port_answers("127.0.0.1", 9)
        assert LINUX_VERSION

    def test_programs_are_run_and_missing_ones_are_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", "/usr/bin:/bin")
        here = ThisMachine()
        assert here.run(["sh", "-c", "echo out; echo err >&2; exit 3"]) == Ran(3, "out\nerr\n")
        assert here.run(["no-such-program-at-all"]) is None
