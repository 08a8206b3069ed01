"""A llama.cpp child that is slow, broken, stubborn or dying: what a user sees of it."""

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from clef.decisions.examples import Request
from clef.decisions.questions import Choice, Noul
from clef.engines.llama.supervisor import LlamaEngine
from clef.errors import BadReply, Crashed, EngineError, Refused, SettingsError, Unavailable
from tests.process.conftest import FAST
from tests.process.waiting import is_alive, pids_in, signal_process, until

pytestmark = pytest.mark.anyio
Make = Callable[..., LlamaEngine]
Start = Callable[..., Awaitable[LlamaEngine]]

ASKED = Request("the sky", (Choice("Which?", ["blue", "red"]),))
BOOM = Request("BOOM", (Noul("Is it?"),))


async def failure_of(engine: LlamaEngine) -> Unavailable:
    """The reason for which an engine that is started does not become ready."""
    with pytest.raises(Unavailable) as caught:
        await engine.wait_ready()
    return caught.value


class TestStarting:
    async def test_an_answer_comes_back_as_soon_as_it_is_ready(self, start_engine: Start) -> None:
        engine = await start_engine()
        reply = await engine.decide(ASKED)
        facts = await engine.facts()
        assert reply.answers[0].prediction == "blue"
        assert (facts.phase, facts.model, facts.max_tokens) == ("ready", "clef flash.gguf", 4096)
        assert facts.identity == f"llama:clef flash.gguf:{facts.fingerprint}"

    async def test_start_returns_at_once_and_a_slow_load_is_shown_as_starting_then_loading(
        self, make_engine: Make
    ) -> None:
        engine = make_engine("--silent-s", "0.5", "--load-s", "0.3")
        began = time.monotonic()
        await engine.start()
        assert time.monotonic() - began < 0.5
        assert (await engine.facts()).phase == "starting"
        await until(lambda: engine.state == "loading")
        with pytest.raises(Unavailable, match="Loading the model") as caught:
            await engine.decide(ASKED)
        assert caught.value.phase == "loading"
        await engine.wait_ready()
        assert (await engine.facts()).message is None

    async def test_a_crash_at_start_is_tried_again(self, start_engine: Start, starts: Path) -> None:
        engine = await start_engine("--crash-at-start", "2")
        assert len(pids_in(starts)) == 3
        assert engine.state == "ready"

    async def test_crashes_at_every_start_end_with_the_signal_and_the_last_lines(
        self, make_engine: Make, starts: Path
    ) -> None:
        engine = make_engine("--say", "load_tensors: loading", "--crash-at-start", "99", start_attempts=2)
        await engine.start()
        error = await failure_of(engine)
        assert "SIGSEGV" in error.message
        assert "load_tensors: loading" in error.message
        assert "start 2 of 2" in error.message
        assert error.phase == "failed"
        assert len(pids_in(starts)) == 2

    async def test_a_server_that_exits_by_itself_is_not_tried_again_and_its_own_words_are_shown(
        self, make_engine: Make, starts: Path
    ) -> None:
        engine = make_engine("--exit-at-start", "error: something only it knows")
        await engine.start()
        error = await failure_of(engine)
        assert "exit code 1" in error.message
        assert "error: something only it knows" in error.message
        assert len(pids_in(starts)) == 1

    async def test_a_port_that_was_taken_in_the_meantime_is_tried_again_with_another(
        self, make_engine: Make, starts: Path
    ) -> None:
        engine = make_engine("--exit-at-start", "couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 1")
        await engine.start()
        error = await failure_of(engine)
        assert "its port was taken in the meantime" in error.message
        assert len(pids_in(starts)) == 3

    async def test_an_option_that_the_server_does_not_know_is_named(self, make_engine: Make) -> None:
        engine = make_engine("--nonsense")
        await engine.start()
        assert "error: invalid argument: --nonsense" in (await failure_of(engine)).message

    async def test_a_load_without_end_fails_after_the_time_that_is_set(self, make_engine: Make, starts: Path) -> None:
        engine = make_engine("--load-s", "60", ready_timeout=0.4)
        await engine.start()
        error = await failure_of(engine)
        assert "no decision within 0.4 s" in error.message
        assert "CLEF_READY_TIMEOUT" in (error.hint or "")
        assert not [pid for pid in pids_in(starts) if is_alive(pid)]

    @pytest.mark.parametrize(
        ("how", "said"),
        [
            ("404", "no /v1/systemone"),
            ("501", "not a decision model"),
            ("401", "access key"),
            ("500", "HTTP 500"),
            ("html", "answers with a web page"),
            ("nan", "not a number"),
        ],
    )
    async def test_a_green_health_is_not_enough_and_what_is_wrong_is_said(
        self, make_engine: Make, starts: Path, how: str, said: str
    ) -> None:
        engine = make_engine("--decide", how)
        await engine.start()
        assert said in (await failure_of(engine)).message
        assert not is_alive(pids_in(starts)[0])

    async def test_a_file_that_is_no_program_is_said_so(self, make_engine: Make, tmp_path: Path) -> None:
        program = tmp_path / "llama-server"
        program.write_bytes(b"\x00\x01\x02")
        program.chmod(0o755)
        engine = make_engine(llama_server=program)
        await engine.start()
        assert "Exec format error" in (await failure_of(engine)).message

    async def test_bad_settings_are_refused_before_anything_is_started(self, make_engine: Make, starts: Path) -> None:
        engine = make_engine(model="/nowhere/x.gguf")
        with pytest.raises(SettingsError, match="no model file"):
            await engine.start()
        facts = await engine.facts()
        assert facts.phase == "failed"
        assert "no model file" in (facts.message or "")
        assert not pids_in(starts)

    async def test_it_can_be_started_again_after_a_failure(
        self, make_engine: Make, tmp_path: Path, model: Path
    ) -> None:
        later = tmp_path / "later.gguf"
        engine = make_engine(model=str(later))
        with pytest.raises(SettingsError):
            await engine.start()
        later.write_bytes(model.read_bytes())
        await engine.start()
        await engine.wait_ready()

    async def test_two_starts_at_once_start_one(self, make_engine: Make, starts: Path) -> None:
        engine = make_engine()
        await asyncio.gather(engine.start(), engine.start())
        await engine.wait_ready()
        await engine.start()
        assert len(pids_in(starts)) == 1

    async def test_a_port_that_is_taken_is_named_at_once(self, start_engine: Start, make_engine: Make) -> None:
        first = await start_engine()
        port = ((await first.facts()).address or "").rpartition(":")[2]
        said = rf"127\.0\.0\.1:{port} cannot be used: Address already in use by .+ \(process {first.pid}\)"
        with pytest.raises(SettingsError, match=said):
            await make_engine("--port", port).start()

    async def test_a_fixed_port_can_be_used_again_right_after_a_stop(self, start_engine: Start) -> None:
        engine = await start_engine()
        port = ((await engine.facts()).address or "").rpartition(":")[2]
        for _ in range(3):
            await engine.decide(ASKED)
            await engine.close()
            engine = await start_engine("--port", port)
        assert (await engine.facts()).address == f"http://127.0.0.1:{port}"

    async def test_proxies_of_the_environment_are_passed_on_and_never_used(
        self, monkeypatch: pytest.MonkeyPatch, start_engine: Start, starts: Path
    ) -> None:
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
        monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
        engine = await start_engine()
        await engine.decide(ASKED)
        environment = Path(f"/proc/{pids_in(starts)[0]}/environ").read_text()
        assert "HTTP_PROXY=http://127.0.0.1:9" in environment

    async def test_the_access_key_is_in_no_process_list_and_in_no_fact(self, start_engine: Start, starts: Path) -> None:
        engine = await start_engine("--api-key", "of-my-own-choice")
        pid = pids_in(starts)[0]
        await engine.decide(ASKED)
        assert "LLAMA_API_KEY=of-my-own-choice" in Path(f"/proc/{pid}/environ").read_text()
        assert "of-my-own-choice" not in Path(f"/proc/{pid}/cmdline").read_text()
        assert "of-my-own-choice" not in repr(await engine.facts())


class TestStopping:
    async def test_a_server_that_ignores_a_polite_stop_is_killed_after_the_grace(
        self, start_engine: Start, starts: Path
    ) -> None:
        engine = await start_engine("--ignore-term")
        began = time.monotonic()
        await engine.close()
        assert 0.3 <= time.monotonic() - began < 1.3
        assert (engine.state, is_alive(pids_in(starts)[0])) == ("stopped", False)

    async def test_a_stop_while_loading_ends_it(self, make_engine: Make, starts: Path) -> None:
        engine = make_engine("--load-s", "60")
        await engine.start()
        await until(lambda: engine.state == "loading")
        waiting = asyncio.create_task(engine.wait_ready())
        await engine.close()
        with pytest.raises(Unavailable, match="topp"):
            await waiting
        assert not is_alive(pids_in(starts)[0])

    async def test_a_stop_during_the_pause_before_a_restart_ends_it(self, make_engine: Make, starts: Path) -> None:
        engine = make_engine("--crash-at-start", "99", pace=replace(FAST, pauses_s=(60,)))
        await engine.start()
        await until(lambda: engine.state == "restarting")
        await engine.close()
        assert engine.state == "stopped"
        assert len(pids_in(starts)) == 1

    async def test_stopping_twice_and_before_a_start_does_no_harm(self, make_engine: Make) -> None:
        engine = make_engine()
        await engine.close()
        await engine.start()
        await asyncio.gather(engine.close(), engine.close())
        await engine.close()
        assert (await engine.facts()).phase == "off"

    async def test_what_the_server_started_is_ended_and_cannot_hold_up_the_stop(
        self, start_engine: Start, tmp_path: Path
    ) -> None:
        note = tmp_path / "grandchild"
        engine = await start_engine("--grandchild", str(note))
        grandchild = pids_in(note)[0]
        assert is_alive(grandchild)
        began = time.monotonic()
        await engine.close()
        assert time.monotonic() - began < 2
        await until(lambda: not is_alive(grandchild))

    async def test_a_decision_under_way_is_told_of_the_stop(self, start_engine: Start) -> None:
        engine = await start_engine("--decide", "silence", "--from", "2")
        asking = asyncio.create_task(engine.decide(ASKED))
        await until(lambda: "decision 2" in engine.log_tail())
        await engine.close()
        with pytest.raises(Unavailable):
            await asking

    async def test_a_hundred_starts_that_are_stopped_at_once_leave_nothing_behind(
        self, make_engine: Make, starts: Path, tmp_path: Path
    ) -> None:
        for n in range(100):
            engine = make_engine("--load-s", "60")
            await engine.start()
            await asyncio.sleep(0.05 * (n % 5) / 4)  # at once, and up to 50 ms later
            await engine.close()
        assert not [pid for pid in pids_in(starts) if is_alive(pid)]
        assert not list((tmp_path / "children").glob("*.json"))


class TestRestarting:
    async def test_other_settings_take_effect_with_a_new_process(
        self, start_engine: Start, starts: Path, model: Path, tmp_path: Path
    ) -> None:
        engine = await start_engine()
        other = tmp_path / "other.gguf"
        other.write_bytes(model.read_bytes())
        await engine.restart(engine.settings.model_copy(update={"model": str(other), "context": 8192}))
        await engine.wait_ready()
        facts = await engine.facts()
        assert (facts.model, facts.max_tokens) == ("other.gguf", 8192)
        assert [is_alive(pid) for pid in pids_in(starts)] == [False, True]

    async def test_settings_that_cannot_work_stop_nothing(self, start_engine: Start, starts: Path) -> None:
        engine = await start_engine()
        with pytest.raises(SettingsError, match="no model file"):
            await engine.restart(engine.settings.model_copy(update={"model": "/nowhere/x.gguf"}))
        assert (await engine.decide(ASKED)).answers
        assert len(pids_in(starts)) == 1

    async def test_one_that_was_given_up_can_be_restarted(self, make_engine: Make) -> None:
        engine = make_engine("--exit-at-start", "no")
        await engine.start()
        await engine.wait_ended()
        assert engine.state == "failed"
        await engine.restart(engine.settings.model_copy(update={"llama_args": ()}))
        await engine.wait_ready()


class TestServing:
    async def test_a_crash_reaches_the_requests_it_held_and_the_next_ones_are_answered(
        self, start_engine: Start, starts: Path
    ) -> None:
        engine = await start_engine("--crash-word", "BOOM")
        with pytest.raises(Crashed, match="SIGSEGV") as caught:
            await engine.decide(BOOM)
        assert caught.value.transient
        await until(lambda: engine.state != "ready")
        assert "SIGSEGV" in ((await engine.facts()).message or "")
        await engine.wait_ready()
        assert (await engine.decide(ASKED)).answers[0].prediction == "blue"
        assert len(pids_in(starts)) == 2

    async def test_a_server_killed_from_outside_is_started_again(self, start_engine: Start, starts: Path) -> None:
        engine = await start_engine()
        signal_process(pids_in(starts)[0], signal.SIGKILL)
        await until(lambda: engine.state != "ready")
        assert "SIGKILL" in ((await engine.facts()).message or "")
        await engine.wait_ready()
        await engine.decide(ASKED)

    async def test_a_server_that_answers_once_and_dies_is_given_up_not_started_for_ever(
        self, start_engine: Start, starts: Path
    ) -> None:
        engine = await start_engine("--crash-at", "2")
        for n in range(4):
            await engine.wait_ready()
            with pytest.raises(Crashed):
                await engine.decide(Request(f"state {n}", ASKED.questions))
            await until(lambda: engine.state != "ready")
        await until(lambda: engine.state == "gave up")
        error = await failure_of(engine)
        assert "gave up" in error.message
        assert "4 times within 10 minutes" in error.message
        assert len(pids_in(starts)) == 4

    async def test_a_server_that_no_longer_decides_is_restarted_though_its_health_is_green(
        self, start_engine: Start, starts: Path
    ) -> None:
        engine = await start_engine("--decide", "500", "--from", "2")
        for _ in range(2):
            with pytest.raises(Refused):
                await engine.decide(ASKED)
        await until(lambda: len(pids_in(starts)) == 2)
        await engine.wait_ready()
        assert not is_alive(pids_in(starts)[0])

    async def test_a_server_that_is_silent_is_restarted(self, start_engine: Start, starts: Path) -> None:
        engine = await start_engine("--decide", "silence", "--from", "2", upstream_timeout=0.5)
        for _ in range(2):
            with pytest.raises(EngineError):
                await engine.decide(ASKED)
        await until(lambda: len(pids_in(starts)) == 2)

    async def test_bad_replies_to_single_requests_restart_nothing(self, start_engine: Start, starts: Path) -> None:
        engine = await start_engine("--decide", "nan", "--from", "2")
        with pytest.raises(BadReply):
            await engine.decide(ASKED)
        assert engine.state == "ready"
        assert len(pids_in(starts)) == 1

    async def test_a_connection_that_the_server_closes_costs_no_answer(self, start_engine: Start, starts: Path) -> None:
        engine = await start_engine("--hang-up-at", "3")
        for _ in range(4):
            assert (await engine.decide(ASKED)).answers[0].prediction == "blue"
        assert "decision 6" in engine.log_tail()
        assert len(pids_in(starts)) == 1

    async def test_what_runs_is_told_in_full(self, start_engine: Start, starts: Path, fake_server: Path) -> None:
        engine = await start_engine("--say", "load_tensors: offloaded 0/33 layers to GPU", "--api-key", "secret word")
        details = engine.details()
        assert (details.state, details.pid, details.starts) == ("ready", pids_in(starts)[0], 1)
        assert details.program == f"{fake_server} (from CLEF_LLAMA_SERVER)"
        assert "'clef flash.gguf'" in details.command_line
        assert "secret word" not in repr(details)
        assert details.start.placement == "cpu"
        assert "0 of 33 layers" in ((await engine.facts()).message or "")
        assert details.log[0] == "load_tensors: offloaded 0/33 layers to GPU"

    async def test_a_flood_of_output_without_a_newline_stops_no_answer(
        self, start_engine: Start, tmp_path: Path
    ) -> None:
        log = tmp_path / "logs" / "server.log"
        engine = await start_engine("--say", "offloaded 33/33 layers", "--flood", "200000", server_log=log)
        for _ in range(50):
            await engine.decide(ASKED)
        assert "offloaded 33/33 layers" in log.read_text(errors="replace")
        assert max(map(len, engine.log_tail())) <= 2000
        assert sum(file.stat().st_size for file in log.parent.iterdir()) <= 15_000_000

    async def test_tokens_are_not_counted_while_there_is_nobody_to_ask(self, start_engine: Start) -> None:
        engine = await start_engine()
        assert await engine.count_tokens(ASKED) is not None
        await engine.close()
        assert await engine.count_tokens(ASKED) is None

    async def test_an_input_that_kills_it_twice_is_refused_and_every_other_is_answered(
        self, start_engine: Start, starts: Path
    ) -> None:
        engine = await start_engine("--crash-word", "BOOM")
        asked = [BOOM if n == 5 else Request(f"state {n}", ASKED.questions) for n in range(12)]
        refused: list[int] = []

        async def persist(n: int) -> None:
            """As a run does: again after what may pass, never after a refusal."""
            while True:
                try:
                    await engine.wait_ready()
                    await engine.decide(asked[n])
                except (Crashed, Unavailable):
                    continue
                except Refused:
                    refused.append(n)
                return

        await asyncio.wait_for(asyncio.gather(*map(persist, range(12))), 20)
        assert refused == [5]
        await until(lambda: len(pids_in(starts)) == 3)  # the last start may still be on its way when all are answered
        with pytest.raises(Refused, match="twice"):
            await engine.decide(BOOM)

    async def test_inputs_that_kill_it_do_not_use_up_its_restarts(self, start_engine: Start, starts: Path) -> None:
        engine = await start_engine("--crash-word", "BOOM")
        for n in range(3):
            boom = Request(f"BOOM {n}", BOOM.questions)
            for expected in (Crashed, Refused):
                await engine.wait_ready()
                with pytest.raises(expected):
                    await engine.decide(boom)
                await until(lambda: engine.state != "ready")
        await engine.wait_ready()
        assert len(pids_in(starts)) == 7
