"""A table's examples are made when they are asked for: one by one, in parts or all, they are the same."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clef.decisions.examples import Example
from clef.tables import read
from tests.fakes.pictures import png, url

HEADER = "context,question,answer,options,source,images\n"
PICTURE = url(png(1, 1))
ROWS = st.lists(st.sampled_from(["a", "b", "", "none of them"]), min_size=1, max_size=8)


@settings(max_examples=100)
@given(ROWS, st.slices(8))
def test_examples_are_the_same_however_they_are_asked_for(labels: list[str], part: slice) -> None:
    lines = [f'text {at},Q?,{label},a|b,mail {at},"{PICTURE}"' for at, label in enumerate(labels)]
    table = read((HEADER + "\n".join(lines)).encode())
    good = [(at, label) for at, label in enumerate(labels) if label != "none of them"]
    for found in (list(table.examples), [table.examples[at] for at in range(len(table.examples))]):
        assert [(one.state, one.written_label, one.row, one.line, one.extra, one.images) for one in found] == [
            (f"text {at}", label, at + 2, at + 2, {"source": f"mail {at}"}, (PICTURE,)) for at, label in good
        ]
        assert {one.question.answers for one in found} <= {("a", "b")}
        assert {type(one) for one in found} <= {Example}
    assert list(table.examples[part]) == list(table.examples)[part]
    assert table.examples == list(table.examples)
    assert table.facts.unlabelled == sum(not label for _, label in good)
    assert len(table.problems) == len(labels) - len(good)


def test_examples_are_counted_from_both_ends() -> None:
    table = read(b"context,question,answer,options\nx,Q?,a,a|b\ny,Q?,b,a|b\n")
    assert (table.examples[0].state, table.examples[-1].state) == ("x", "y")
    for beyond in (2, -3):
        with pytest.raises(IndexError):
            table.examples[beyond]
    assert table.examples != list(table.examples)[:1]
