"""The pytest fixtures, in projects of their own."""

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

TABLE = "context,question,answer,options\n" + "".join(
    f"I was charged twice in month {n} please refund the payment,Which team?,billing,billing|technical\n"
    for n in range(12)
)


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    (Path(pytester.path) / "table.csv").write_text(TABLE)
    pytester.makeconftest("")
    return pytester


def run(project: pytest.Pytester, body: str) -> pytest.RunResult:
    project.makepyfile(f"def test_it(clef_eval):\n    {body}\n")
    return project.runpytest_subprocess("--clef-engine", "builtin", "-p", "no:cacheprovider")


def test_a_table_that_reaches_its_bars_passes_and_one_that_does_not_says_why(project: pytest.Pytester) -> None:
    run(
        project,
        'clef_eval("table.csv", min_accuracy=0.9).save("base.jsonl"); clef_eval("table.csv", baseline="base.jsonl")',
    ).assert_outcomes(passed=1)
    wrong = Path(project.path) / "table.csv"
    wrong.write_text(TABLE.replace(",billing,billing|", ",technical,billing|"))
    failed = run(project, 'clef_eval("table.csv", min_accuracy=0.9, max_ece=0.01)')
    failed.assert_outcomes(failed=1)
    failed.stdout.fnmatch_lines(["*the accuracy is 0.0%, below the 90.0% that was asked for*", "*calibration error*"])


def test_clef_is_not_imported_where_it_is_not_used(project: pytest.Pytester) -> None:
    project.makepyfile("""
        import sys

        def test_it():
            assert "clef.testing" in sys.modules
            assert not {"clef.session", "clef.settings", "sparrow_decider"} & set(sys.modules)
    """)
    project.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)
