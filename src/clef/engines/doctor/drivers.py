"""Turns files, drivers and variables of a machine into findings about its GPU.

A check that makes no sense on a machine finds nothing there. Under WSL a card hangs off /dev/dxg and a bridge library
in the place of a kernel driver, so what is right on plain Linux is wrong there, and the other way round. `rocm-smi`
proves nothing under WSL and is not asked.
"""

import re
from collections.abc import Iterator

from clef.engines.doctor.finding import Finding, Patient
from clef.engines.llama.command import GPU_VARIABLES

BRIDGES = ("/opt/rocm/lib/librocdxg.so", "/opt/rocm/lib64/librocdxg.so", "/usr/lib/librocdxg.so")
SHADOW = "/lib/x86_64-linux-gnu/libhsa-runtime64.so.1"
"""Ubuntu's own HSA library: older than WSL support, and found before ROCm's."""
HIP_FILES = ("/opt/rocm/include/hip/hip_runtime.h", "/opt/rocm/include/hipblas/hipblas.h")
_TARGET = re.compile(r"\bName:\s+(gfx\w+)")
_DOZEN = re.compile(r"Dozen|dzn|Microsoft Direct3D12", re.IGNORECASE)
_VULKAN_DEVICE = re.compile(r"deviceName\s*=\s*(.+)")


def find(patient: Patient) -> Iterator[Finding]:
    """Every finding about drivers."""
    yield platform(patient)
    for check in (dxg, bridge, rocm_target, kernel_driver, hip_files, nvidia, vulkan, variables):
        finding = check(patient)
        if finding is not None:
            yield finding


def platform(patient: Patient) -> Finding:
    """Which kind of system this is."""
    names = {"darwin": "macOS", "win32": "Windows", "linux": "Linux"}
    name = "Linux under Windows (WSL)" if patient.is_wsl else names.get(patient.machine.system, patient.machine.system)
    return Finding("platform", "System", "ok", name)


def dxg(patient: Patient) -> Finding | None:
    """The door to the GPU under WSL."""
    if not patient.is_wsl:
        return None
    if patient.machine.exists("/dev/dxg"):
        return Finding("dxg", "GPU door of WSL", "ok", "/dev/dxg is there")
    remedy = "install the Windows driver of your GPU anew, then `wsl --update` and `wsl --shutdown` in Windows"
    return Finding("dxg", "GPU door of WSL", "fail", "/dev/dxg is missing, so no program here sees a GPU", remedy)


def bridge(patient: Patient) -> Finding | None:
    """The library by which ROCm reaches the GPU under WSL."""
    machine = patient.machine
    if not patient.is_wsl or not patient.has_amd_signs:
        return None
    title = "ROCm bridge of WSL"
    there = next((path for path in BRIDGES if machine.exists(path)), None)
    if there is None:
        return Finding("bridge", title, "fail", "librocdxg is missing", "install librocdxg; see docs/hardware.md")
    if machine.exists(SHADOW):
        seen = f"{SHADOW}, which is Ubuntu's and knows no WSL, is found before ROCm's"
        return Finding("bridge", title, "warn", seen, "sudo apt remove libhsa-runtime64-1 libhsakmt1")
    if machine.env.get("HSA_ENABLE_DXG_DETECTION") != "1":
        seen = f"{there} is there, and HSA_ENABLE_DXG_DETECTION is not 1: many ROCm releases need it to look there"
        return Finding("bridge", title, "warn", seen, "export HSA_ENABLE_DXG_DETECTION=1 before clef is started")
    return Finding("bridge", title, "ok", f"{there}, with HSA_ENABLE_DXG_DETECTION=1")


def rocm_target(patient: Patient) -> Finding | None:
    """Whether ROCm sees a GPU, and of which target."""
    if not patient.has_amd_signs:
        return None
    title, ran = "ROCm", patient.machine.run(["rocminfo"])
    if ran is None:
        return Finding("rocm", title, "unknown", "rocminfo is not installed", "install the package rocminfo to look")
    targets = list(dict.fromkeys(_TARGET.findall(ran.output)))
    if targets:
        return Finding("rocm", title, "ok", f"GPU targets: {', '.join(targets)}")
    remedy = (
        "Windows driver, bridge library and ROCm have to fit each other: update all three"
        if patient.is_wsl
        else "check that the card is supported, and that you are in the groups render and video"
    )
    return Finding("rocm", title, "fail", "rocminfo lists no GPU, only the processor", remedy)


def kernel_driver(patient: Patient) -> Finding | None:
    """A kernel driver where there must be one, and none where there must be none."""
    machine, title = patient.machine, "Kernel driver"
    if patient.machine.system != "linux" or not patient.has_amd_signs:
        return None
    if patient.is_wsl:
        ran = machine.run(["dkms", "status"])
        if ran is not None and "amdgpu" in ran.output:
            seen = "amdgpu is installed as a kernel driver; under WSL the driver is that of Windows"
            return Finding(
                "kernel", title, "fail", seen, "sudo apt purge amdgpu-dkms, then `wsl --shutdown` in Windows"
            )
        return Finding("kernel", title, "ok", "no amdgpu driver of Linux's own, as it has to be under WSL")
    if not machine.exists("/dev/kfd"):
        seen, remedy = "/dev/kfd is missing: the amdgpu driver is not loaded", "sudo modprobe amdgpu, or install it"
        return Finding("kernel", title, "fail", seen, remedy)
    if machine.is_writable("/dev/kfd") is False:
        remedy = "sudo usermod -aG render,video $USER, then log in again"
        return Finding("kernel", title, "fail", "/dev/kfd is there, and you may not use it", remedy)
    return Finding("kernel", title, "ok", "/dev/kfd is there")


def hip_files(patient: Patient) -> Finding | None:
    """What a build of llama.cpp for AMD needs, and running it does not."""
    if not patient.machine.exists("/opt/rocm"):
        return None
    missing = [path for path in HIP_FILES if not patient.machine.exists(path)]
    if not missing:
        return Finding("hip", "HIP development files", "ok", "there, for building llama.cpp yourself")
    seen = f"missing: {', '.join(missing)}; needed only to build llama.cpp yourself"
    return Finding("hip", "HIP development files", "unknown", seen, "to build: sudo apt install rocm-hip-sdk")


def nvidia(patient: Patient) -> Finding | None:
    """Whether the NVIDIA driver sees a card."""
    if not patient.has_nvidia_signs:
        return None
    ran = patient.machine.run(["nvidia-smi", "-L"])
    if ran is not None and ran.code == 0 and "GPU 0" in ran.output:
        return Finding("nvidia", "NVIDIA driver", "ok", ran.output.strip().splitlines()[0].partition(" (UUID")[0])
    where = "in Windows" if patient.is_wsl else "here"
    seen = "nvidia-smi lists no card" if ran else "nvidia-smi is not on PATH"
    return Finding("nvidia", "NVIDIA driver", "warn", seen, f"install NVIDIA's driver {where}")


def vulkan(patient: Patient) -> Finding | None:
    """Whether Vulkan under WSL is only a translation to Direct3D."""
    ran = patient.machine.run(["vulkaninfo", "--summary"]) if patient.is_wsl else None
    if ran is None:
        return None
    found = [name.strip() for name in _VULKAN_DEVICE.findall(ran.output)]
    real = [name for name in found if not _DOZEN.search(name) and "llvmpipe" not in name]
    if real:
        return Finding("vulkan", "Vulkan", "ok", ", ".join(real))
    if _DOZEN.search(ran.output):
        seen = "Vulkan reaches the GPU only through Dozen, a translation to Direct3D"
        return Finding("vulkan", "Vulkan", "warn", seen, "use a ROCm or CUDA build of llama.cpp, not a Vulkan one")
    return Finding("vulkan", "Vulkan", "unknown", "Vulkan sees no GPU", "nothing to do unless yours is a Vulkan build")


def variables(patient: Patient) -> Finding:
    """Variables that change which GPU is found, and how it is treated."""
    env = patient.machine.env
    found = {name: env[name] for name in GPU_VARIABLES if name in env and name != "HSA_ENABLE_DXG_DETECTION"}
    if not found:
        return Finding("variables", "GPU variables", "ok", "none is set")
    seen = ", ".join(f"{name}={value}" for name, value in found.items())
    if "HSA_OVERRIDE_GFX_VERSION" in found:
        remedy = "unset HSA_OVERRIDE_GFX_VERSION unless your card is not supported without it: it breaks those that are"
        return Finding("variables", "GPU variables", "warn", seen, remedy)
    return Finding(
        "variables", "GPU variables", "warn", seen, "make sure that they name the card you want, or unset them"
    )
