"""clef behind clef: one app is the upstream of another, with nothing said of a model."""

from pathlib import Path

import httpx2

from clef.engines.builtin import BuiltinEngine
from clef.engines.upstream import UpstreamEngine
from tests.fakes.pictures import png, url
from tests.http.conftest import served

QUESTIONS = {"angry": {"type": "noul", "instructions": "Is the customer angry?"}}
BODY = {"model": "jev-latest", "state": "I was charged twice.", "questions": QUESTIONS}


def test_one_clef_answers_through_another(tmp_path: Path) -> None:
    with (
        served(BuiltinEngine(), data_dir=tmp_path) as behind,
        served(UpstreamEngine(behind)) as front,
    ):
        direct = httpx2.post(f"{behind}/v1/systemone", json=BODY)
        through = httpx2.post(f"{front}/v1/systemone", json=BODY)
        health = httpx2.get(f"{front}/api/health").json()
        pictured = httpx2.post(f"{front}/v1/systemone", json=BODY | {"images": [url(png(2, 2))]})
    assert through.status_code == 200, through.text
    assert through.json()["answers"] == direct.json()["answers"]
    assert (health["phase"], health["model"]) == ("ready", direct.json()["model"])
    assert pictured.status_code == 400
    assert "image" in pictured.json()["detail"]["message"]
