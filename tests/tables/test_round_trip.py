"""Turns tables that programs may write, under any separator, quoting, line end and encoding, back into themselves."""

import csv
import io
import json

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from clef.tables import read

CELL = st.text(st.characters(codec="utf-8", exclude_characters="\0\ufeff"), max_size=12)
STATE = CELL.filter(lambda text: bool(text.strip()))
NAMES = st.lists(STATE.map(str.strip), min_size=2, max_size=4, unique_by=lambda name: name.casefold())
HEADER = ["context", "question", "answer", "options"]


@settings(max_examples=300)
@given(
    st.lists(st.tuples(STATE, st.integers(0, 1)), min_size=1, max_size=5),
    NAMES,
    st.sampled_from(",;\t|~^"),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]),
)
def test_a_written_table_is_read_as_it_was(
    rows: list[tuple[str, int]], names: list[str], separator: str, end: str, quoting: int, encoding: str
) -> None:
    from clef.decisions.questions import fold

    assume(len({fold(name) for name in names}) == len(names))
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=separator, lineterminator=end, quoting=quoting)  # type: ignore[arg-type]
    writer.writerow(HEADER)
    # the writer of the csv module leaves a lone CR in a cell without quotes where lines end in LF
    assume(
        quoting == csv.QUOTE_ALL
        or not any("\r" in text or "\n" in text for text in [*names, *(row[0] for row in rows)])
    )
    for state, label in rows:
        writer.writerow([state, "Which?", names[label], json.dumps(names)])
    table = read(out.getvalue().encode(encoding))
    assert table.problems == ()
    assert [(example.state, example.label, example.written_label) for example in table.examples] == [
        (state, label, names[label]) for state, label in rows
    ]
    assert {example.question.answers for example in table.examples} == {tuple(names)}
    assert [example.row for example in table.examples] == list(range(2, len(rows) + 2))
    assert table.facts.separator == separator


@settings(max_examples=200)
@given(st.lists(st.tuples(STATE, st.integers(0, 2)), min_size=1, max_size=6), st.sampled_from("|;,/"))
def test_separated_options_are_split_where_they_were_joined(rows: list[tuple[str, int]], separator: str) -> None:
    names = ["first one", "no", "not given"]
    out = io.StringIO(newline="")
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    writer.writerow(HEADER)
    writer.writerows([state, "Which?", names[label].upper(), separator.join(names)] for state, label in rows)
    table = read(out.getvalue().encode())
    assert table.require()
    assert table.facts.option_separator == separator
    assert [example.label for example in table.examples] == [label for _, label in rows]


@settings(max_examples=200)
@given(st.lists(st.sampled_from(["row", "blank", "two lines", "bad"]), min_size=1, max_size=12))
def test_every_problem_names_its_spreadsheet_row_and_text_line(kinds: list[str]) -> None:
    lines = {"row": "x,q,a,a|b\n", "blank": "\n", "two lines": '"x\ny",q,a,a|b\n', "bad": "x,q,nothing,a|b\n"}
    table = read(("context,question,answer,options\n" + "".join(lines[kind] for kind in kinds)).encode())
    line, bad, good = 2, [], []
    for row, kind in enumerate(kinds, 2):
        if kind == "bad":
            bad.append((row, line))
        elif kind != "blank":
            good.append((row, line))
        line += lines[kind].count("\n")
    assert [(example.row, example.line) for example in table.examples] == good
    if good or bad:
        assert [(problem.row, problem.line) for problem in table.problems] == bad
