"""Turns llama-server's command line into the llama.cpp of the xllamacpp wheel, serving as llama-server would.

    python -m clef.engines.llama.host -m MODEL.gguf --port 8080 -c 4096 -b 4096 -ub 4096 -np 1

Invariants: options are llama-server's own, with the same errors on stderr and the same exit code 1; the access key
comes from LLAMA_API_KEY, never from the command line, where every process list shows it; standard library and
xllamacpp only, so that the child costs one interpreter and no clef. A first SIGTERM or SIGINT ends the server in
order, a second one at once; while the model loads the first one does, too, as with llama-server.
"""

import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Setter = Callable[[Any, str], None]

FLASH_ATTENTION = {"on": 1, "1": 1, "true": 1, "off": 0, "0": 0, "false": 0, "auto": -1}
SPLIT_MODES = ("none", "layer", "row", "tensor")
_GPU, _INTEGRATED = "GGML_BACKEND_DEVICE_TYPE_GPU", "GGML_BACKEND_DEVICE_TYPE_IGPU"
ALL_LAYERS = {"all": 2**31 - 1, "auto": -1}


def _text(field: str) -> Setter:
    return lambda params, value: _assign(params, field, value)


def _number(field: str) -> Setter:
    return lambda params, value: _assign(params, field, int(value))


def _constant(field: str, value: object) -> Setter:
    return lambda params, _: _assign(params, field, value)


def _assign(params: Any, field: str, value: object) -> None:
    *path, last = field.split(".")
    for name in path:
        params = getattr(params, name)
    setattr(params, last, value)


def _enum(field: str, type_name: str, numbers: Mapping[str, int]) -> Setter:
    def assign(params: Any, value: str) -> None:
        import xllamacpp

        if value not in numbers:
            raise ValueError(f"expected one of {', '.join(numbers)}")
        _assign(params, field, getattr(xllamacpp, type_name)(numbers[value]))

    return assign


def _cache_type(field: str) -> Setter:
    def assign(params: Any, value: str) -> None:
        import xllamacpp

        _assign(params, field, xllamacpp.ggml_type[f"GGML_TYPE_{value.upper()}"])

    return assign


def _load_mode(name: str) -> Setter:
    def assign(params: Any, _: str) -> None:
        import xllamacpp

        params.load_mode = xllamacpp.llama_load_mode[f"LLAMA_LOAD_MODE_{name}"]

    return assign


def _gpu_layers(params: Any, value: str) -> None:
    params.n_gpu_layers = ALL_LAYERS[value] if value in ALL_LAYERS else int(value)


def _tensor_split(params: Any, value: str) -> None:
    shares = [float(share) for share in value.replace("/", ",").split(",")]
    params.tensor_split = (shares + [0.0] * len(params.tensor_split))[: len(params.tensor_split)]


def _device(params: Any, value: str) -> None:
    """One device or none. The wheel has no list of devices to set, but the main GPU of a model that is not split, which
    is counted as llama.cpp does: integrated ones take part only where there is no other."""
    import xllamacpp

    kinds = xllamacpp.ggml_backend_dev_type
    found = xllamacpp.get_device_info()
    of_kind = [[one["name"] for one in found if one["type"] == kind] for kind in (kinds[_GPU], kinds[_INTEGRATED])]
    usable = of_kind[0] or of_kind[1]
    if value == "none":
        params.main_gpu, params.n_gpu_layers, params.no_op_offload = -1, 0, True
    elif value in usable:
        params.main_gpu = usable.index(value)
    else:
        one_only = "several need a llama-server of your own; " if "," in value else ""
        raise ValueError(f"{one_only}invalid device: {value}; it can use: {', '.join(usable) or 'none'}")
    params.split_mode = xllamacpp.llama_split_mode(SPLIT_MODES.index("none"))


def _timeout(params: Any, value: str) -> None:
    params.timeout_read = params.timeout_write = int(value)


WITH_VALUE: dict[tuple[str, ...], Setter] = {
    ("-m", "--model"): _text("model.path"),
    ("-mm", "--mmproj"): _text("mmproj.path"),
    ("-a", "--alias"): lambda params, value: _assign(params, "model_alias", set(value.split(","))),
    ("--host",): lambda params, value: _assign(params, "hostnames", [value]),
    ("--port",): _number("port"),
    ("-c", "--ctx-size"): _number("n_ctx"),
    ("-b", "--batch-size"): _number("n_batch"),
    ("-ub", "--ubatch-size"): _number("n_ubatch"),
    ("-np", "--parallel"): _number("n_parallel"),
    ("-t", "--threads"): _number("cpuparams.n_threads"),
    ("-tb", "--threads-batch"): _number("cpuparams_batch.n_threads"),
    ("--threads-http",): _number("n_threads_http"),
    ("-to", "--timeout"): _timeout,
    ("-ngl", "--gpu-layers", "--n-gpu-layers"): _gpu_layers,
    ("-dev", "--device"): _device,
    ("-mg", "--main-gpu"): _number("main_gpu"),
    ("-sm", "--split-mode"): _enum("split_mode", "llama_split_mode", {name: n for n, name in enumerate(SPLIT_MODES)}),
    ("-ts", "--tensor-split"): _tensor_split,
    ("-fa", "--flash-attn"): _enum("flash_attn_type", "llama_flash_attn_type", FLASH_ATTENTION),
    ("-ctk", "--cache-type-k"): _cache_type("cache_type_k"),
    ("-ctv", "--cache-type-v"): _cache_type("cache_type_v"),
    ("--image-min-tokens",): _number("image_min_tokens"),
    ("--image-max-tokens",): _number("image_max_tokens"),
    ("-fit", "--fit"): lambda params, value: _assign(params, "fit_params", FLASH_ATTENTION[value] == 1),
    ("-lv", "--verbosity", "--log-verbosity"): _number("verbosity"),
}
"""Options that take a value, by all their names."""

ALONE: dict[tuple[str, ...], Setter] = {
    ("--no-mmproj", "--no-mmproj-auto"): _constant("no_mmproj", True),
    ("--mmproj-offload",): _constant("mmproj_use_gpu", True),
    ("--no-mmproj-offload",): _constant("mmproj_use_gpu", False),
    ("--mmap",): _load_mode("MMAP"),
    ("--no-mmap",): _load_mode("NONE"),
    ("--mlock",): _load_mode("MMAP_MLOCK"),
    ("--warmup",): _constant("warmup", True),
    ("--no-warmup",): _constant("warmup", False),
    ("-kvo", "--kv-offload"): _constant("no_kv_offload", False),
    ("-nkvo", "--no-kv-offload"): _constant("no_kv_offload", True),
    ("-kvu", "--kv-unified"): _constant("kv_unified", True),
    ("-no-kvu", "--no-kv-unified"): _constant("kv_unified", False),
    ("--metrics",): _constant("endpoint_metrics", True),
    ("--props",): _constant("endpoint_props", True),
    ("--check-tensors",): _constant("check_tensors", True),
    ("--ui", "--webui"): _constant("ui", True),
    ("--no-ui", "--no-webui"): _constant("ui", False),
    ("-v", "--verbose", "--log-verbose"): _constant("verbosity", 2**31 - 1),
}
"""Options that stand alone, by all their names."""


class Rejected(Exception):
    """An option cannot be used; the text is what llama-server would print."""


def by_name(options: Mapping[tuple[str, ...], Setter]) -> dict[str, Setter]:
    """The same options under each of their names."""
    return {name: setter for names, setter in options.items() for name in names}


def apply(arguments: Sequence[str], params: Any) -> None:
    """Set `params` as the arguments say; the last of several wins. Raises Rejected as llama-server would."""
    with_value, alone = by_name(WITH_VALUE), by_name(ALONE)
    given = iter(arguments)
    for name in given:
        if name in alone:
            alone[name](params, "")
            continue
        if name not in with_value:
            raise Rejected(f"error: invalid argument: {name}")
        value = next(given, None)
        if value is None:
            raise Rejected(f"error: expected value for argument: {name}")
        try:
            with_value[name](params, value)
        except (ValueError, KeyError, OverflowError) as error:
            raise Rejected(f'error while handling argument "{name}": cannot use "{value}": {error}') from None


def serve(params: Any) -> None:
    """Serve until SIGTERM or SIGINT. Raises RuntimeError when the model or the port cannot be used."""
    import xllamacpp

    # The loader holds the main thread in C++, where Python's own handlers would wait for it to come back.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    server = xllamacpp.Server(params)
    asked_to_stop, bell = os.pipe()
    os.set_blocking(bell, False)
    # A signal may reach any thread; the bell wakes this one wherever it was delivered.
    signal.set_wakeup_fd(bell, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _next_one_kills)
    os.read(asked_to_stop, 1)
    del server


def _next_one_kills(number: int, _: object) -> None:
    signal.signal(number, signal.SIG_DFL)


def version() -> str:
    """What `--version` prints: the wheel's build, and that it is the wheel."""
    import xllamacpp

    # The wheel's own build number is 0; its version ends with that of llama.cpp: 2026.10.11549 is b11549.
    build = xllamacpp.__version__.rsplit(".", 1)[-1]
    built = "built with {compiler} for {build_target}".format_map(xllamacpp.BUILD_INFO)
    return f"version: {build} (xllamacpp {xllamacpp.__version__})\n{built}"


def devices() -> str:
    """What `--list-devices` prints: every device that is not the CPU, with its memory."""
    import xllamacpp

    lines = ["Available devices:"]
    for device in xllamacpp.get_device_info():
        if device["name"] != "CPU":
            total, free = device["memory_total"] // 2**20, device["memory_free"] // 2**20
            lines.append(f"  {device['name']}: {device['description']} ({total} MiB, {free} MiB free)")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Run as llama-server would with these arguments; the exit code."""
    import xllamacpp

    if "--version" in arguments:
        print(version(), file=sys.stderr)
        return 0
    if "--list-devices" in arguments:
        print(devices())
        return 0
    params = xllamacpp.CommonParams()
    params.port = 8080
    try:
        apply(arguments, params)
    except Rejected as error:
        print(error, file=sys.stderr)
        return 1
    key = os.environ.get("LLAMA_API_KEY")
    if key:
        params.api_keys = [key]
    if not params.model.path:
        print("error: no model: give one with -m", file=sys.stderr)
        return 1
    try:
        serve(params)
    except RuntimeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
