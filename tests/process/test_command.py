"""Which llama-server is run, and how."""

from pathlib import Path

import pytest

from clef.engines.llama.command import find_program, plan
from clef.errors import SettingsError
from clef.settings import Settings, load_settings


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def program_at(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def value_of(option: str, arguments: tuple[str, ...]) -> str:
    return arguments[len(arguments) - 1 - arguments[::-1].index(option) + 1]


def test_the_server_is_the_one_that_is_set_else_on_path_else_in_the_default_place_else_in_the_wheel(
    tmp_path: Path,
) -> None:
    assert find_program(Settings()).origin == "the xllamacpp wheel"
    built = program_at(tmp_path / "home/src/llama.cpp/build/bin/llama-server")
    assert find_program(Settings()).argv == (str(built),)
    on_path = program_at(tmp_path / "bin/llama-server")
    assert find_program(Settings()).argv == (str(on_path),)
    own = program_at(tmp_path / "own/llama-server")
    found = find_program(Settings(llama_server=own))
    assert (found.argv, found.origin) == ((str(own),), "CLEF_LLAMA_SERVER")
    assert find_program(Settings(llama_server=own.parent)).argv == (str(own),)


@pytest.mark.parametrize(("mode", "said"), [(None, "there is no file"), (0o644, "is not executable")])
def test_a_server_that_is_set_and_cannot_be_run_is_named(tmp_path: Path, mode: int | None, said: str) -> None:
    path = tmp_path / "llama-server"
    if mode is not None:
        program_at(path).chmod(mode)
    with pytest.raises(SettingsError, match=f"CLEF_LLAMA_SERVER: .*{said}"):
        find_program(Settings(llama_server=path))


def test_the_three_sizes_that_limit_a_request_are_all_the_context(model: Path) -> None:
    arguments = plan(Settings(model=str(model), context=8192)).arguments
    assert [value_of(option, arguments) for option in ("-c", "-b", "-ub", "-np")] == ["8192", "8192", "8192", "1"]
    assert value_of("-m", arguments) == str(model)
    assert "--no-mmproj" in arguments


def test_the_users_options_come_last_and_the_address_follows_them(model: Path) -> None:
    command = plan(Settings(model=str(model), llama_args=("-ub", "512", "--host", "0.0.0.0", "--port", "0")))
    assert command.arguments[-6:] == ("-ub", "512", "--host", "0.0.0.0", "--port", "0")
    assert command.address.startswith("http://127.0.0.1:")


def test_every_start_has_its_own_port_and_key_and_the_key_is_in_the_environment_alone(model: Path) -> None:
    one, other = (plan(Settings(model=str(model))) for _ in range(2))
    assert one.key != other.key
    assert one.env["LLAMA_API_KEY"] == one.key
    assert one.key not in " ".join(one.argv) + repr(one)


def test_a_key_among_the_options_goes_to_the_environment(model: Path) -> None:
    command = plan(Settings(model=str(model), llama_args=("--api-key", "mine", "-v")))
    assert command.env["LLAMA_API_KEY"] == "mine"
    assert "mine" not in command.argv
    assert command.arguments[-1] == "-v"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"model": None}, "needs a model"),
        ({"manage_server": False}, "CLEF_MANAGE_SERVER=0"),
        ({"llama_args": ("--port", "many")}, '--port "many" is not a port'),
        ({"llama_args": ("--host", "192.0.2.1")}, r"192\.0\.2\.1:0 cannot be used"),
    ],
)
def test_settings_that_cannot_work_are_refused_by_name(model: Path, settings: dict[str, object], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        plan(Settings(**({"model": str(model)} | settings)))  # type: ignore[arg-type] # pydantic checks them


class TestDevice:
    @pytest.fixture
    def two_devices(self, fake_server: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A llama-server that sees a card and an integrated GPU."""
        monkeypatch.setenv(
            "FAKE_DEVICES",
            "  ROCm0: AMD Radeon RX 9070 XT (16304 MiB, 16112 MiB free)\n"
            "  ROCm1: AMD Radeon Graphics (32000 MiB, 31000 MiB free)",
        )
        return fake_server

    @pytest.mark.parametrize("device", ["ROCm0", "ROCm0,ROCm1", "none"])
    def test_the_one_that_is_set_is_passed_on(self, model: Path, two_devices: Path, device: str) -> None:
        arguments = plan(Settings(model=str(model), llama_server=two_devices, device=device)).arguments
        assert value_of("--device", arguments) == device

    def test_left_alone_llama_cpp_chooses(self, model: Path, two_devices: Path) -> None:
        assert "--device" not in plan(Settings(model=str(model), llama_server=two_devices)).arguments

    def test_one_that_is_not_there_is_answered_with_those_that_are(self, model: Path, two_devices: Path) -> None:
        with pytest.raises(SettingsError, match=r'CLEF_DEVICE: this llama\.cpp has no device "CUDA0"') as caught:
            plan(Settings(model=str(model), llama_server=two_devices, device="ROCm0,CUDA0"))
        assert caught.value.hint is not None
        assert (
            "ROCm0 is AMD Radeon RX 9070 XT; ROCm1 is AMD Radeon Graphics; none is the processor" in caught.value.hint
        )

    def test_a_server_that_cannot_list_its_devices_is_left_to_judge(self, model: Path, fake_server: Path) -> None:
        arguments = plan(Settings(model=str(model), llama_server=fake_server, device="ROCm0")).arguments
        assert value_of("--device", arguments) == "ROCm0"

    def test_what_cannot_be_a_device_is_refused_as_a_setting(self) -> None:
        with pytest.raises(SettingsError, match="CLEF_DEVICE"):
            load_settings(device="ROCm0 --port 1")
