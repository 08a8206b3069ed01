"""Turns what a row says about its question (its text, type, options and label) into a Question and a label, once.

Rows repeat each other: a table of 100,000 rows has a handful of questions and a few hundred different combinations
of question, options and label. Each combination is resolved once, and equal questions are one object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from clef.decisions.questions import (
    MAX_OPTIONS,
    Choice,
    Noul,
    Option,
    Question,
    QuestionType,
    Score,
    fold,
    problems_in,
)
from clef.errors import InputError, Problem
from clef.tables.columns import normalised
from clef.tables.options import (
    Mismatches,
    choose_separator,
    duplicates,
    match,
    match_level,
    match_noul,
    read_json_options,
    split,
)
from clef.tables.table import shown

TYPES: Mapping[str, QuestionType] = {
    "": "choice",
    **dict.fromkeys(("choice", "category", "categorical", "enum", "select"), "choice"),
    **dict.fromkeys(("noul", "boolean", "bool", "binary", "yes/no", "yes_no", "predicate"), "noul"),
    **dict.fromkeys(("score", "scale", "ordinal", "rating"), "score"),
}
"""What a type column may say."""


class Combination(NamedTuple):
    """What a row of a long table says besides its state."""

    question: str
    options: str
    type: str
    label: str


@dataclass(frozen=True)
class Resolved:
    """The question and the label of a combination, or why there is none."""

    question: Question | None
    label: int | None = None
    written: str = ""
    name: str = ""
    problem: Problem | None = None
    shared: bool = False
    """Whether the problem is the question's: then it is reported once, not for every row."""


@dataclass
class _Group:
    """The labels given to one question whose options are not written down."""

    names: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    texts: dict[str, None] = field(default_factory=dict)


class Resolver:
    """Resolves the combinations of a long table; needs all of them, with their counts, before the first."""

    def __init__(
        self, counts: Mapping[Combination, int], headers: Mapping[str, str], known: Mapping[str, Question]
    ) -> None:
        self.headers = headers
        """Role → column header, for messages."""
        self.known = {normalised(name): (name, question) for name, question in known.items()}
        self.only = next(iter(known.items())) if len(known) == 1 and "question" not in headers else None
        self.options_from: dict[str, None] = {}
        self._json: dict[str, list[Option] | None] = {}
        self._split: dict[str, list[Option]] = {}
        self._questions: dict[tuple[str, str, str], Question | Problem] = {}
        self._same: dict[Question, Question] = {}
        self._answers: dict[int, tuple[str, ...]] = {}
        self._mismatches = Mismatches()
        asked = self._by_type(counts)
        self.separator = self._separator(asked)
        self.groups = self._derived(asked["choice"], counts)
        self.score_labels = self._score_labels(asked["score"])

    def resolve(self, combination: Combination) -> Resolved:
        """The question and label, or the problem, of a combination."""
        name, question = self._question(combination)
        written = combination.label
        if isinstance(question, Problem):
            return Resolved(None, problem=question, shared=True)
        if not written or written.isspace():
            return Resolved(question, None, "", name)
        if isinstance(question, Noul):
            label = match_noul(written)
        else:
            answers = self._answers.get(id(question)) or self._answers.setdefault(id(question), question.answers)
            by = self.score_labels or "text" if isinstance(question, Score) else "text"
            label = match_level(written, answers, by)
        if label is None:
            return Resolved(None, problem=self._mislabelled(written, question))
        return Resolved(question, label, written, name)

    def _question(self, combination: Combination) -> tuple[str, Question | Problem]:
        if self.only:
            return self.only
        found = self.known.get(normalised(combination.question)) if self.known else None
        if found:
            self.options_from["given"] = None
            return found
        key = combination[:3]
        if key not in self._questions:
            self._questions[key] = self._built(combination)
        return combination.question, self._questions[key]

    def _built(self, combination: Combination) -> Question | Problem:
        text = combination.question
        if not text.strip():
            return Problem("the question is empty", "empty_question", column=self.headers.get("question"))
        kind = TYPES.get(combination.type.strip().casefold())
        if kind is None:
            message, hint = f"unknown question type {shown(combination.type)}", "use choice, noul or score"
            return Problem(message, "unknown_type", column=self.headers.get("type"), hint=hint)
        column = self.headers.get("options")
        try:
            question = self._noul(combination) if kind == "noul" else self._listed(combination, kind)
        except InputError as error:
            first = error.problems[0]
            return Problem(first.message, first.code, column=column, hint=first.hint)
        wrong = problems_in(question)
        if wrong:
            return Problem(wrong[0].message, wrong[0].code, column=column, hint=wrong[0].hint)
        return self._same.setdefault(question, question)

    def _noul(self, combination: Combination) -> Noul:
        options = self._options(combination.options)
        meanings: dict[str, object] = {}
        for option in options:
            side = match_noul(option.name)
            if side is None or len(options) > 2:
                hint = "leave its options empty, or make its type choice"
                problem = Problem(f"a yes/no question has no option {shown(option.name)}", "noul_options", hint=hint)
                raise InputError.of([problem])
            meanings["false" if side else "true"] = option.description
        return Noul(combination.question, **meanings)  # type: ignore[arg-type]  # descriptions are Text | None

    def _listed(self, combination: Combination, kind: QuestionType) -> Choice | Score:
        options = self._options(combination.options)
        if not options and kind == "choice":
            return self._derived_choice(combination)
        names = [option.name for option in options]
        if not options:
            hint = "write the levels into the options column, lowest first"
            raise InputError.of([Problem("a score without levels", "no_levels", hint=hint)])
        same = duplicates(names)
        if same:
            hint = "names that differ only in case or surrounding space count as one"
            raise InputError.of([Problem(f"the same option twice: {same}", "duplicate_options", hint=hint)])
        return Choice(combination.question, options) if kind == "choice" else Score(combination.question, names)

    def _options(self, cell: str) -> list[Option]:
        stripped = cell.strip()
        if not stripped:
            return []
        listed = self._as_json(stripped)
        if listed is not None:
            self.options_from["json"] = None
            return listed
        self.options_from["separated"] = None
        if stripped not in self._split:
            self._split[stripped] = [Option(name) for name in split(stripped, self.separator)]
        return self._split[stripped]

    def _as_json(self, stripped: str) -> list[Option] | None:
        if stripped not in self._json:
            self._json[stripped] = read_json_options(stripped)
        return self._json[stripped]

    def _derived_choice(self, combination: Combination) -> Choice:
        group = self.groups.get(question_key(combination.question))
        names = list(group.names.values()) if group else []
        self.options_from["derived"] = None
        if len(names) == 1:
            message = f"only one answer to this question in the whole table: {shown(names[0])}"
            hint = "one option is always right: add an options column"
            raise InputError.of([Problem(message, "one_option", hint=hint)])
        if not names:
            hint = "add an options column, or label some of its rows"
            raise InputError.of([Problem("no options and no answers to take them from", "no_options", hint=hint)])
        if len(names) > MAX_OPTIONS:
            message = f"{len(names)} different answers to this question; at most {MAX_OPTIONS} are possible"
            raise InputError.of([Problem(message, "too_many_options", hint="is this the right answer column?")])
        return Choice(combination.question, names)

    def _mislabelled(self, written: str, question: Question) -> Problem:
        column = self.headers.get("label")
        if isinstance(question, Noul):
            message, hint = f"the answer {shown(written)} is neither yes nor no", "use yes/no, true/false, 1/0 or y/n"
            return Problem(message, "label", column=column, hint=hint)
        if isinstance(question, Score):
            if self.score_labels == "index":
                top = len(question.levels) - 1
                hint = "the other labels of scores are positions too, the lowest level being 0"
                message = f"the answer {shown(written)} is no position from 0 to {top}"
                return Problem(message, "label", column=column, hint=hint)
            return self._mismatches.problem(written, question.answers, column, "levels")
        return self._mismatches.problem(written, question.answers, column)

    def _by_type(self, counts: Iterable[Combination]) -> dict[QuestionType, list[Combination]]:
        """The combinations whose questions are not known already, by type; those of an unknown type are left out."""
        asked: dict[QuestionType, list[Combination]] = {"choice": [], "score": [], "noul": []}
        kinds = {text: TYPES.get(text.strip().casefold()) for text in {combination.type for combination in counts}}
        for combination in counts:
            kind = kinds[combination.type]
            if kind and not (self.known and normalised(combination.question) in self.known):
                asked[kind].append(combination)
        return asked

    def _separator(self, asked: Mapping[QuestionType, list[Combination]]) -> str | None:
        labelled = [(combination.options, combination.label) for combination in asked["choice"]]
        others = [*asked["score"], *asked["noul"]]
        pairs = {(cell.strip(), label) for cell, label in labelled}
        pairs |= {(combination.options.strip(), "") for combination in others}
        return choose_separator((cell, label) for cell, label in pairs if cell and self._as_json(cell) is None)

    def _derived(self, asked: Iterable[Combination], counts: Mapping[Combination, int]) -> dict[str, _Group]:
        groups: dict[str, _Group] = {}
        for combination in asked:
            if combination.options.strip() or not combination.question.strip():
                continue
            group = groups.setdefault(question_key(combination.question), _Group())
            group.texts[combination.question] = None
            name = combination.label.strip()
            if name:
                key = fold(name)
                group.names.setdefault(key, name)
                group.counts[key] = group.counts.get(key, 0) + counts[combination]
        return groups

    def _score_labels(self, asked: Iterable[Combination]) -> str | None:
        """Text or index, whichever suits more labels; text where both suit all, since a person writes what they see."""
        text = index = 0
        for combination in asked:
            if combination.label.strip():
                _, question = self._question(combination)
                if isinstance(question, Score):
                    text += match(combination.label, question.answers) is not None
                    index += match_level(combination.label, question.answers, "index") is not None
        if not text and not index:
            return None
        return "text" if text >= index else "index"


def question_key(text: str) -> str:
    """What two spellings of one question share: case and spacing aside."""
    return " ".join(fold(text).split())


def rare_answers(group: _Group) -> Sequence[str]:
    """Derived options that only one row has, in a question with enough rows for that to be odd."""
    if sum(group.counts.values()) <= len(group.counts):
        return ()
    return [group.names[key] for key, count in group.counts.items() if count == 1]
