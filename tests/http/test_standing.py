"""What stands on every page about the engine: who answers, on what, how fast; or how far it is."""

from dataclasses import replace
from typing import get_args

import pytest
from fastapi.testclient import TestClient

from clef.engines.engine import EngineFacts, Phase
from clef.engines.status import Device, Speed, Status
from clef.settings import Settings
from clef.web.app import create_app
from clef.web.standing import standing_of
from clef.web.words import PHASES
from tests.fakes.scripted_engine import READY, STATUSES, ScriptedEngine, child

CARD = Device("ROCm0", "AMD Radeon RX 9070 XT", 16_000)


def said(status: Status) -> str:
    standing = standing_of(status)
    return " · ".join(filter(None, (standing.model, standing.rest)))


@pytest.mark.parametrize("phase", [phase for phase in get_args(Phase) if phase != "ready"])
def test_what_does_not_answer_says_its_phase(phase: Phase) -> None:
    assert said(Status(EngineFacts("llama", phase), phase, ())) == PHASES[phase]
    assert said(Status(EngineFacts("llama", phase, "clef-9B"), phase, ())) == f"clef-9B: {PHASES[phase]}"


def test_what_answers_says_its_model_its_device_and_its_speed() -> None:
    facts = replace(READY.facts, model="/models/Clef-Flash-Q8_0.gguf")
    ready = replace(READY, facts=facts, child=child(devices=(CARD,)), speed=Speed((40.0, 41.0, 300.0)))
    assert said(ready) == "Clef-Flash-Q8_0 · AMD Radeon RX 9070 XT · 41 ms"
    assert standing_of(ready).place == "gpu"
    assert said(replace(ready, speed=Speed())) == "Clef-Flash-Q8_0 · AMD Radeon RX 9070 XT"
    assert said(replace(STATUSES["upstream"], speed=Speed((12.0,)))) == "clef-9B · 12 ms"


def test_a_model_that_is_not_all_on_the_gpu_is_told_by_more_than_a_colour() -> None:
    partly = standing_of(STATUSES["partly"])
    assert partly.place == "partly"
    assert "20 of 33 layers" in partly.place_words
    assert "processor" in standing_of(STATUSES["on the processor"]).rest
    with TestClient(create_app(Settings(), ScriptedEngine(STATUSES["partly"])), base_url="http://127.0.0.1") as client:
        shown = client.get("/engine/standing").text
    assert "dot partly" in shown
    assert shown.count(partly.place_words) == 2


def test_a_load_says_how_far_it_is() -> None:
    assert said(STATUSES["half loaded"]) == "Clef-Flash-Q8_0: loading the model · 50 % · 21 s left"
    assert said(STATUSES["loading"]) == "Clef-Flash-Q8_0: loading the model"


def test_where_the_layers_are_is_not_guessed() -> None:
    unknown = standing_of(replace(READY, child=child(placement="unknown"), speed=Speed()))
    assert (unknown.rest, unknown.place) == ("", "")


def test_a_download_says_how_far_it_is() -> None:
    assert said(STATUSES["downloading"]).startswith("Downloading clef-flash:Q8_0 · 42 % · ")
    assert "left at" in said(STATUSES["downloading"])
