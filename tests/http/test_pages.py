"""The pages without a browser: what they say, their status, and that everything a person typed is text."""

import base64
import gzip
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from starlette.datastructures import Headers, QueryParams
from starlette.responses import HTMLResponse
from starlette.routing import Mount
from starlette.testclient import TestClient

from clef.decisions.examples import Example, Request
from clef.decisions.questions import Choice, Noul, Score
from clef.errors import InputError
from clef.tables import ReadOptions, read
from clef.web import words
from clef.web.advice import advice
from clef.web.assets import Assets, compress, static_url
from clef.web.bundles import STATIC
from clef.web.drafts import as_draft, as_json, json_problem, read_draft
from clef.web.measured import Measured
from clef.web.render import coded
from clef.web.run_filter import PAGE_ROWS, Filter
from clef.web.run_pages import LONGEST_LINK, ask_link
from clef.web.snippets import snippet
from tests.fakes.pictures import png as grey
from tests.fakes.pictures import url

HOSTILE = "<script>alert(1)</script>"


def draft(**changes: Any) -> str:
    question = {"type": "choice", "question": "Which?", "answers": ["a", {"answer": "b", "description": "the other"}]}
    return json.dumps({"state": "some text", "as": "text", "questions": [question]} | changes)


@pytest.mark.parametrize("path", ["/", "/evaluate", "/runs", "/engine"])
def test_every_page_is_whole_and_needs_no_inline_code(client: TestClient, path: str) -> None:
    response = client.get(path)
    assert response.status_code == 200
    assert response.text.startswith("<!doctype html>")
    assert not re.search(r'\sstyle="|\son[a-z]+="|<style|hx-on|javascript:', response.text)
    scripts = re.findall(r"<script[^>]*>", response.text)
    assert all("src=" in script or "application/json" in script for script in scripts)
    assert not re.search(r'(src|href)="(https?:)?//', response.text)


def test_the_built_in_model_is_announced(client: TestClient) -> None:
    page = client.get("/").text
    assert "2 MB built-in model" in page
    assert "sparrow" in client.get("/engine/standing").text


def test_a_draft_is_answered_with_a_fragment(client: TestClient) -> None:
    response = client.post("/ask", content=draft())
    assert response.status_code == 200
    assert "<html" not in response.text
    assert "top probability" in response.text
    assert "confidence" in response.text
    assert "asked alone" in response.text


def test_what_was_typed_comes_back_as_text(client: TestClient) -> None:
    questions = [{"type": "choice", "question": HOSTILE, "answers": [HOSTILE, "b"]}]
    response = client.post("/ask", content=draft(questions=questions, state=HOSTILE))
    assert response.status_code == 200
    assert HOSTILE not in response.text
    assert "&lt;script&gt;" in response.text


def test_every_problem_is_named_with_its_field(client: TestClient) -> None:
    questions = [{"type": "choice", "question": "", "answers": ["a", ""]}, {"type": "score", "question": "How?"}]
    response = client.post("/ask", content=draft(state=" ", questions=questions))
    assert response.status_code == 400
    paths = re.findall(r'data-path="([^"]+)"', response.text)
    assert paths == ["state", "questions[0].question", "questions[1].levels"]
    assert "question 2, levels" in response.text


def test_half_a_character_breaks_nothing(client: TestClient) -> None:
    half = json.dumps("half \ud83d")
    body = draft(state="HALF", questions=[{"type": "choice", "question": "HALF", "answers": ["HALF", "b"]}])
    response = client.post("/ask", content=body.replace('"HALF"', half))
    assert response.status_code in (200, 400)
    assert "half" in response.text


@pytest.mark.parametrize("body", ["", "[]", "null", "{", '{"state": 1}', '{"state": "a", "questions": 3}'])
def test_a_body_that_is_no_draft_is_refused_in_words(client: TestClient, body: str) -> None:
    response = client.post("/ask", content=body)
    assert response.status_code == 400
    assert 'role="alert"' in response.text


def test_a_state_that_is_too_long_says_so(client: TestClient) -> None:
    response = client.post("/ask", content=draft(state="word " * 3000))
    assert response.status_code == 413
    assert "512" in response.text


def test_json_is_read_by_the_server_so_that_no_number_is_bent() -> None:
    request = read_draft(draft(**{"state": '{"id": 12345678901234567890}', "as": "json"}))
    assert request.state == {"id": 12345678901234567890}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1,\n "b" 2}', "line 2, column 6"),
        ("[NaN]", "NaN is no JSON value"),
        ("[" * 100_000, "nested too deep"),
        ("{'a': 1}", "line 1, column 2"),
    ],
)
def test_where_a_state_stops_being_json(client: TestClient, text: str, said: str) -> None:
    problem = json_problem(text)
    assert problem is not None
    assert said in problem.message
    assert said in client.post("/ask/json", content=text).text.replace("Nested", "nested")


def test_good_json_and_nothing_are_no_problem(client: TestClient) -> None:
    assert client.post("/ask/json", content='{"a": [1, "ü"]}').text.strip() == ""
    assert json_problem("  ") is None


def test_a_run_that_is_not_there_is_a_page(client: TestClient) -> None:
    response = client.get("/runs/nope")
    assert response.status_code == 404
    assert "No run &#34;nope&#34;" in response.text
    assert client.get("/runs/nope/rows/0").status_code == 404


def evaluated(client: TestClient, table: str) -> str:
    lines = client.post("/api/evaluate?name=t.csv", content=table.encode()).text.splitlines()
    return str(json.loads(lines[0])["run"])


def test_a_run_is_shown_with_its_numbers_and_rows(client: TestClient) -> None:
    rows = "".join(f'"{HOSTILE} {n}",Good?,yes,yes;no\n' for n in range(150))
    run = evaluated(client, f"context,question,answer,options\n{rows}nothing,Good?,,yes;no\n")
    page = client.get(f"/runs/{run}").text
    assert "of 150 answered rows" in page
    assert "1 row has no label" in page
    assert HOSTILE not in page
    assert page.count('class="details"') == PAGE_ROWS
    second = client.get(f"/runs/{run}?page=2").text
    assert second.count('class="details"') == 51
    assert client.get(f"/runs/{run}?page=99").text.count('class="details"') == 51
    assert client.get(f"/runs/{run}?show=unlabelled").text.count('class="details"') == 1
    assert client.get(f"/runs/{run}?show=bad&question=x&band=99&page=0").status_code == 200
    detail = client.get(f"/runs/{run}/rows/3").text
    assert HOSTILE not in detail
    assert "label in the table" in detail
    assert client.get(f"/runs/{run}/rows/151").status_code == 404
    assert client.get(f"/runs/{run}/rows/x").status_code in (400, 422)
    assert run in client.get("/runs").text


def test_a_run_with_no_label_claims_no_accuracy(client: TestClient) -> None:
    run = evaluated(client, "context,question,answer,options\ntext,Good?,,yes;no\n")
    page = client.get(f"/runs/{run}").text
    assert "No accuracy" in page
    assert (
        "%" not in re.sub(r'width="[^"]*"|x\d="[^"]*"|x="[^"]*"|y\d="[^"]*"|height="[^"]*"', "", page).split("Rows")[0]
    )


def test_an_address_holds_every_filter_and_nothing_of_it_is_trusted() -> None:
    chosen = Filter.read(QueryParams("show=wrong&question=A%26B?&low=0.9&high=1&text=x&sort=row&order=asc&page=3"))
    assert Filter.read(QueryParams(chosen.query(page=3)[1:])) == chosen
    assert (chosen.rows.offset, chosen.rows.sort, chosen.rows.descending) == (200, "row", False)
    assert chosen.query().count("page=") == 0
    assert Filter.read(QueryParams("show=drop&low=nan&high=2&sort=;&order=x&page=-1&question=")) == Filter()
    assert Filter().query() == "?"


def test_a_column_is_sorted_the_other_way_round_when_pressed_again() -> None:
    assert Filter().sorted_by("probability") == "?sort=probability"
    assert Filter(sort="probability").sorted_by("probability") == "?sort=probability&order=asc"
    assert Filter().sorted_by("row") == "?sort=row&order=asc"


def test_baselines_weigh_each_question_by_its_rows(client: TestClient) -> None:
    run = evaluated(client, "context,question,answer,options\na,A?,x,x;y\nb,A?,y,x;y\nc,B?,z,z;w\n")
    assert "always the most frequent answer 67 %, guessing evenly 50 %" in client.get(f"/runs/{run}").text


def test_a_row_leads_to_ask_with_its_request_in_the_fragment() -> None:
    questions = (Choice("Où?", {"thé": "leaf", "eau": None}), Noul("Hot?", true="steams"), Score("How?", ["a", "b"]))
    for question in questions:
        state = {"text": "é", "big": 12345678901234567890}
        link = ask_link(Example(state, question, None, "", 2, question_name="q"))
        assert link is not None
        packed = link.removeprefix("/#ask=")
        draft = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4)).decode()
        read = read_draft(draft)
        assert (read.state, read.questions) == (state, (question,))
    assert ask_link(Example("x" * LONGEST_LINK, Noul("Hot?"), None, "", 2, question_name="q")) is None


def test_runs_are_searched_deleted_and_brought_back(client: TestClient) -> None:
    run = evaluated(client, "context,question,answer,options\na,A?,x,x;y\n")
    client.patch(f"/api/runs/{run}", params={"name": HOSTILE})
    page = client.get("/runs").text
    assert HOSTILE not in page
    assert f"/runs/{run}" in page
    assert f"/runs/{run}" not in client.get("/runs?search=another&page=x").text
    client.delete(f"/api/runs/{run}")
    assert f'href="/runs/{run}"' not in client.get("/runs").text
    assert f"/api/runs/{run}/restore" in client.get(f"/runs?deleted={run}").text
    assert "is deleted" in client.get(f"/runs/{run}").text
    client.post(f"/api/runs/{run}/restore")
    assert f"/api/runs/{run}/restore" not in client.get(f"/runs?deleted={run}").text


@pytest.mark.parametrize(
    ("probability", "said"),
    [(1, "Yes"), (0.9, "Probably yes"), (0.6, "Leaning yes"), (0.5, "Undecided"), (0.4, "Leaning no"),
     (0.3, "Probably not"), (0.1, "No"), (0, "No")],
)  # fmt: skip
def test_a_yes_or_no_in_words(probability: float, said: str) -> None:
    assert words.noul_words(probability) == said


def test_numbers_never_claim_more_than_they_are() -> None:
    assert words.probability(0.9999) == ">0.99"
    assert words.probability(0.0001) == "<0.01"
    assert words.probability(1) == "1.00"
    assert words.probability(None) == "–"
    assert words.percent(None) == "–"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("state", "state"),
        ("questions", "questions"),
        ("questions[0].question", "question 1, wording"),
        ("questions[1].answers[2]", "question 2, option 3"),
        ("questions[1].answers[2].description", "question 2, option 3, description"),
        ("questions[0].levels[0]", "question 1, level 0"),
        ("questions[0].true", "question 1, what yes means"),
    ],
)
def test_a_field_is_called_as_the_form_calls_it(path: str, said: str) -> None:
    assert words.field_name(path) == said


def test_an_address_changes_with_its_file_and_may_be_kept_for_ever(client: TestClient) -> None:
    mounted = TestClient(Mount("/static", Assets()), base_url="http://127.0.0.1:8000")
    response = mounted.get(static_url("styles/tokens.css"))
    assert response.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert response.headers["content-encoding"] == "gzip"
    assert response.content == (STATIC / "styles/tokens.css").read_bytes()
    plain = mounted.get("/static/styles/tokens.css", headers={"accept-encoding": "identity"})
    assert plain.headers["cache-control"] == "no-cache"
    assert plain.content == response.content
    again = mounted.get("/static/styles/tokens.css", headers={"if-none-match": plain.headers["etag"]})
    assert again.status_code == 304
    assert mounted.get("/static/styles/tokens.css?v=old").headers["cache-control"] == "no-cache"


def test_pages_are_compressed_for_those_who_take_it() -> None:
    response = compress(HTMLResponse("a" * 5000), Headers({"accept-encoding": "gzip"}))
    assert gzip.decompress(bytes(response.body)) == b"a" * 5000
    assert response.headers["content-length"] == str(len(response.body))
    assert compress(HTMLResponse("a" * 5000), Headers({})).body == b"a" * 5000


def test_the_sample_is_read_without_a_problem_and_shows_the_quirks() -> None:
    table = read((STATIC / "sample.csv").read_bytes(), ReadOptions(name="sample.csv"))
    assert table.problems == ()
    assert table.facts.questions >= 5
    assert table.facts.unlabelled == 1
    labels = {item.written_label for item in table.examples}
    assert {"NA", "007", "TRUE", "NULL"} <= labels
    states = [str(item.state) for item in table.examples]
    assert any("\n\n" in state for state in states)
    assert any('"' in state for state in states)
    assert any(not state.isascii() for state in states)


def test_the_vendored_files_are_those_of_the_manifest() -> None:
    entries = json.loads((STATIC / "vendor" / "manifest.json").read_text("utf-8"))
    files = {"htmx.min.js", "pico.min.css", "vega.min.js", "vega-lite.min.js", "vega-embed.min.js"}
    assert {entry["file"] for entry in entries} == files
    for entry in entries:
        assert (STATIC / "vendor" / entry["licence_file"]).is_file()
        assert entry["licence"] in ("BSD-0-Clause", "BSD-3-Clause", "MIT")


def test_examples_are_drafts_that_can_be_asked(client: TestClient) -> None:
    page = client.get("/").text
    found = re.search(r'id="example-drafts">(.*?)</script>', page, re.DOTALL)
    assert found
    drafts = json.loads(found[1])
    assert len(drafts) >= 6
    for item in drafts:
        assert advice(read_draft(json.dumps(item)).questions) == []  # what we show is as we advise


def test_no_file_of_the_page_is_forgotten() -> None:
    templates = Path(STATIC).parent / "templates"
    elements = list((STATIC / "elements").glob("*.js"))
    used = "".join(file.read_text("utf-8") for file in [*templates.glob("*.html"), *elements])
    for element in elements:
        ways = (f'"{element.stem}"', f'from "./{element.name}"', f'import("./{element.name}")')
        assert any(way in used for way in ways)


def typed(*questions: Any) -> str:
    return json.dumps({"state": {"a": [1, "é"]}, "questions": questions}, ensure_ascii=False, indent=2)


def test_the_json_of_a_request_and_its_draft_are_one_thing() -> None:
    text = typed(
        {"type": "choice", "question": "Which?", "answers": ["a", {"answer": "b", "description": "the other"}]},
        {"type": "noul", "question": "Good?", "true": "it is"},
        {"type": "score", "question": "How?", "levels": ["low", "high"]},
    )
    found = as_draft(text)
    assert found["as"] == "json"
    assert as_json(json.dumps(found)) == text
    assert read_draft(json.dumps(found)) == read_draft(json.dumps({"json": text}))


def test_what_the_form_has_no_field_for_is_said_and_not_lost() -> None:
    for raw in ({"question": {"a": 1}}, {"question": "Q", "answers": [{"answer": "a", "description": ["x"]}]}, 7):
        with pytest.raises(InputError) as caught:
            as_draft(typed({"question": "fine"}, raw))
        assert [problem.column for problem in caught.value.problems] == ["questions[1]"]
    assert as_draft('{"questions": [{}]}')["questions"] == [{"type": "choice"}]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"questions": 1}', "nope", "[" * 100_000])
def test_a_text_that_is_no_request_is_refused_in_words(client: TestClient, text: str) -> None:
    response = client.post("/ask/view?to=form", content=text)
    assert response.status_code == 400
    assert 'role="alert"' in response.text


ASKED = Request(
    {"text": 'it\'s \\ "new"\n$HOME', "n": 10**18 + 1},
    (Choice("Où?", {"thé": "leaf", "eau": None}), Noul("Hot?", true="steams"), Score("How?", ["a'", 'b"'])),
)


def test_code_in_python_is_the_request_again() -> None:
    names: dict[str, Any] = {}
    code = snippet(ASKED, "python", "http://127.0.0.1:8000")
    exec(code.partition("answers =")[0], names)
    assert names["state"] == ASKED.state
    assert tuple(names["questions"]) == ASKED.questions
    sdk: dict[str, Any] = {}
    exec(snippet(ASKED, "sdk", "x").partition("client =")[0], sdk)
    assert (sdk["state"], list(sdk["questions"])) == (ASKED.state, ["q1", "q2", "q3"])


def test_code_for_a_shell_and_for_javascript_is_the_request_again(client: TestClient) -> None:
    shell = shlex.split(snippet(ASKED, "curl", "http://127.0.0.1:8000").replace("\\\n", " "))
    body = json.loads(shell[-1])
    assert read_draft(json.dumps({"json": json.dumps(body)})).questions == ASKED.questions
    assert body["state"] == ASKED.state
    script = snippet(ASKED, "javascript", "http://127.0.0.1:8000")
    text = script.partition("JSON.stringify(")[2].partition("),\n});")[0]
    assert json.loads(text) == body
    response = client.post("/ask/code?language=curl", content=draft())
    assert "http://127.0.0.1:8000/api/predict" in response.text
    assert client.post("/ask/code?language=cobol", content=draft()).status_code in (400, 422)
    assert client.post("/ask/code?language=curl", content=draft(state="")).status_code == 400


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (Choice("Is it?", ["yes", "No"]), "a yes/no question answers this"),
        (Choice("Which?", ["card", "transfer", "cash"]), "none of these"),
        (Choice("Which?", ["card", "card payment", "other"]), "overlap"),
        (Choice("Which?", [str(n) for n in range(11)] + ["other"]), "12 options are many"),
        (Noul("Is it new and is it good?"), "two questions in one"),
        (Noul("Isn't it good?"), "easily misread"),
        (Score("How?", ["1", "2"]), "Say in words"),
    ],
)
def test_advice_on_wording(question: Any, said: str) -> None:
    assert any(said in line for _, line in advice([question]))


@pytest.mark.parametrize(
    "question",
    [
        Noul("Is it new and good?"),
        Choice("Which?", ["a", "b", "other"]),
        Choice("Which?", ["entailed", "not entailed", "other"]),
        Choice("Which?", {"card": "the plastic", "card payment": "the money", "other": None}),
        Score("How?", ["low", "high"]),
    ],
)
def test_no_advice_where_none_is_needed(question: Any) -> None:
    assert advice([question]) == []
    assert advice([question, question])[0][1] == "Asks the same as question 1."


def test_a_draft_that_is_not_finished_has_no_notes(client: TestClient) -> None:
    assert "tokens" not in client.post("/ask/notes", content=draft(state="")).text
    assert "tokens" in client.post("/ask/notes", content=draft()).text


def test_each_question_alone_and_both_ways(client: TestClient) -> None:
    questions = [{"type": "noul", "question": "Good?"}, {"type": "score", "question": "How?", "levels": ["a", "b"]}]
    alone = client.post("/ask", content=draft(questions=questions, how="alone")).text
    assert "asked alone" in alone
    both = client.post("/ask", content=draft(questions=questions, how="both")).text
    assert "asked together, and each alone" in both
    assert "alone: yes" in both
    assert words.change(0.051) == "+0.05"
    assert words.change(-0.001) == "±0"


def test_charts_come_in_the_colours_of_the_theme(client: TestClient) -> None:
    rows = "".join(f"text {n},Good?,{'yes' if n % 3 else 'no'},yes;no\n" for n in range(40))
    run = evaluated(client, f"context,question,answer,options\n{rows}")
    light, dark = (client.get(f"/runs/{run}/charts?theme={theme}").json() for theme in ("light", "dark"))
    assert light["confusion"][0]["question"] == "Good?"
    light_risk, dark_risk = light["risk"][0]["spec"], dark["risk"][0]["spec"]
    assert light_risk["data"] == dark_risk["data"]
    assert light_risk["config"] != dark_risk["config"]
    assert '"--' not in json.dumps(light) + json.dumps(dark)
    assert client.get("/runs/none/charts").status_code == 404
    assert client.get(f"/runs/{run}/charts?theme=red").status_code in (400, 422)
    assert "run-charts" in client.get(f"/runs/{run}").text


def test_questions_with_too_few_labels_are_one_line_below_those_that_have_a_gate(client: TestClient) -> None:
    few = "".join(f"text {n},Is it {n}?,yes,yes;no\n" for n in range(40))
    rows = "".join(f"text {n},Good?,{'yes' if n % 3 else 'no'},yes;no\n" for n in range(60))
    run = evaluated(client, f"context,question,answer,options\n{few}{rows}")
    each = client.get(f"/runs/{run}/gates").text
    assert each.count("<gate-slider") == 1
    assert "Good?" in each
    assert "40 more questions have too few labels" in each
    pooled = client.get(f"/runs/{run}/gates?pool=all").text
    assert "all 41 choice questions" in pooled
    assert "more questions" not in pooled


def test_a_chat_goes_up_as_messages_and_comes_back_as_a_form(client: TestClient) -> None:
    messages = [{"role": "user", "content": "Hello?"}, {"role": "assistant", "content": ""}]
    chat = draft(**{"as": "chat"}, messages=messages)
    assert read_draft(chat).state == messages[:1]
    turned = client.post("/ask/view?to=json", content=chat).text
    back = client.post("/ask/view?to=form", content=turned).json()
    assert (back["as"], back["messages"]) == ("chat", messages[:1])
    middle = client.post("/ask", content=draft(**{"as": "chat"}, messages=[*reversed(messages)]))
    assert middle.status_code == 400
    assert "message 1 is empty" in middle.text
    empty = client.post("/ask", content=draft(**{"as": "chat"}, messages=[]))
    assert "the state is empty" in empty.text


def test_images_stay_beside_the_json_of_a_request_and_come_out_of_it(client: TestClient) -> None:
    png = url(grey(2, 2))
    with_image = draft(images=[{"name": "a.png", "url": png}])
    assert read_draft(with_image).images == (png,)
    turned = client.post("/ask/view?to=json", content=with_image).text
    assert "images" not in turned
    assert read_draft(json.dumps({"json": turned, "images": [{"name": "a.png", "url": png}]})).images == (png,)
    own = json.dumps(json.loads(turned) | {"images": [png]})
    assert client.post("/ask/view?to=form", content=own).json()["images"] == [{"name": "image 1", "url": png}]
    assert "is read" not in client.post("/ask", content=with_image).text
    assert "reads no images" in client.post("/ask", content=with_image).text
    damaged = client.post("/ask", content=draft(images=[{"url": "data:image/gif;base64,R0lG"}]))
    assert (damaged.status_code, "GIF is not read" in damaged.text) == (400, True)


def test_what_is_finished_has_notes_though_another_question_is_not(client: TestClient) -> None:
    same = {"type": "noul", "question": "Is it bad?"}
    questions = [{"type": "choice", "question": "Which?", "answers": []}, same, same]
    said = client.post("/ask/notes", content=draft(questions=questions)).text
    assert "tokens" in said
    assert 'data-advice="2">Asks the same as question 2.' in said


def test_a_bug_behind_a_part_of_a_page_is_told_in_words(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    run = evaluated(client, "context,question,answer,options\nx,Good?,yes,yes;no\n")

    async def broken(*_: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(Measured, "kept", broken)
    response = client.get(f"/runs/{run}/gates", headers={"HX-Request": "true"})
    assert response.status_code == 500
    assert response.headers["content-type"].startswith("text/html")
    assert "Clef itself failed" in response.text
    assert "{" not in response.text
    assert (response.headers["hx-reswap"], response.headers["hx-reselect"]) == ("innerHTML", ".problems")
    assert client.get(f"/runs/{run}/gates").json()["error"]["code"] == "bug"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("run `clef models` <now>", "run <code>clef models</code> &lt;now&gt;"),
        ("`<b>` and `a`", "<code>&lt;b&gt;</code> and <code>a</code>"),
        ("one ` alone", "one ` alone"),
        ("", ""),
    ],
)
def test_what_a_hint_has_in_backticks_is_shown_as_code(text: str, shown: str) -> None:
    assert coded(text) == shown
