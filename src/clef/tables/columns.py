"""Turns a header into roles: which column holds the state, the question, the label and the options.

Names are compared without case, spaces, hyphens and underscores at their ends. A role taken by two columns is never
decided here: it is a problem that names both.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clef.errors import Problem
from clef.tables.table import letter, shown

SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "state": ("context", "state", "text", "input", "message", "body", "content", "passage", "premise"),
    "question": ("question", "instructions", "prompt", "query"),
    "label": ("answer", "gold", "label", "expected", "expect", "truth", "target"),
    "options": ("options", "choices", "criteria", "answers", "labels", "levels"),
    "type": ("type", "kind", "question_type", "primitive"),
    "images": ("images", "image"),
}
"""The names a role goes by; the first is the one our messages use."""
NEEDED = ("state", "question", "label")
EVERY_ROW = "="
"""Begins what a mapping says of the question where that is no column, but the question of every row."""
_ROLE_OF = {name: role for role, names in SYNONYMS.items() for name in names}


@dataclass(frozen=True)
class Roles:
    """Which column plays which role, by position."""

    columns: Mapping[str, int]
    wide: Mapping[str, int]
    """Question id → the column with its labels; empty in a long table."""
    doubled: Mapping[str, tuple[int, ...]]
    """Roles that more than one column claims."""
    missing: tuple[str, ...]
    unmapped: Mapping[str, str]
    """What the user's mapping names and the header does not have."""
    stray_labels: tuple[int, ...] = ()
    """Columns called expected_<id> for which no question is known."""
    given: tuple[str, ...] = ()
    """Ids of the questions that were given beside the table."""
    asked: str = ""
    """The question of every row, where the mapping says one and no column has it."""

    @property
    def complete(self) -> bool:
        """Whether every needed role has a column."""
        return not self.missing

    @property
    def found(self) -> int:
        """How many needed roles have a column."""
        return len(set(NEEDED) & set(self.columns)) + len(self.wide)

    def named(self, header: Sequence[str]) -> dict[str, str]:
        """Role → column header."""
        named = {role: header[at] for role, at in self.columns.items()}
        if self.asked:
            named["question"] = EVERY_ROW + self.asked
        return named | {f"expected_{name}": header[at] for name, at in self.wide.items()}

    def without_role(self, header: Sequence[str]) -> tuple[int, ...]:
        """Positions without a role."""
        taken = {*self.columns.values(), *self.wide.values()}
        return tuple(at for at in range(len(header)) if at not in taken)


def normalised(name: str) -> str:
    """A column name without what people vary: case, a byte order mark, spaces, hyphens."""
    return re.sub(r"[\s_-]+", "_", name.replace("\ufeff", "").strip().casefold()).strip("_")


def assign(
    header: Sequence[str], mapping: Mapping[str, str], question_ids: Sequence[str] = (), *, labelled: bool = True
) -> Roles:
    """The roles of these columns. `mapping` wins; columns that it does not name are recognised by their names.

    A table that is not `labelled` needs no labels, nor a question column where questions are given.
    """
    names = [normalised(name) for name in header]
    asked = _asked(header, mapping)
    if asked:
        mapping = {**{name: at for name, at in mapping.items() if role_named(name) != "question"}, "question": ""}
    told, unmapped, doubled = _told(header, mapping)
    taken = set(told.values())
    claims: dict[str, list[int]] = {}
    for at, name in enumerate(names):
        role = _ROLE_OF.get(name)
        if role and at not in taken and role not in told and role not in unmapped and not _silenced(role, mapping):
            claims.setdefault(role, []).append(at)
    columns = {role: at for role, at in told.items() if not role.startswith("expected_")}
    columns |= {role: at[0] for role, at in claims.items()}
    doubled |= {role: tuple(at) for role, at in claims.items() if len(at) > 1}
    bare = labelled and "label" not in columns
    wide, stray = _wide(names, taken | set(columns.values()), question_ids, bare=bare)
    wide |= {role.removeprefix("expected_"): at for role, at in told.items() if role.startswith("expected_")}
    if wide:
        for role in ("question", "label", "options", "type"):
            columns.pop(role, None)
            doubled.pop(role, None)
    single = len(question_ids) == 1 and "label" in columns
    needed: tuple[str, ...] = ("state",) if wide else (("state", "label") if single else NEEDED)
    if not labelled:
        needed = ("state",) if question_ids else tuple(role for role in needed if role != "label")
    if asked:
        needed = tuple(role for role in needed if role != "question")
    if "images" in columns:
        needed = tuple(role for role in needed if role != "state")
    missing = tuple(role for role in needed if role not in columns)
    return Roles(columns, wide, doubled, missing, unmapped, stray, tuple(question_ids), "" if wide else asked)


def role_named(name: str) -> str | None:
    """The role that a person means by a name in a mapping, such as `answer` for the label."""
    key = normalised(name)
    if key in SYNONYMS:
        return key
    if key.startswith("expected_"):
        return name.strip()
    return _ROLE_OF.get(key)


def _asked(header: Sequence[str], mapping: Mapping[str, str]) -> str:
    """The question of every row that a mapping says: "=" and its text, unless a column is called just so."""
    for name, said in mapping.items():
        if role_named(name) == "question" and said.startswith(EVERY_ROW) and said not in header:
            return said[len(EVERY_ROW) :].strip()
    return ""


def _silenced(role: str, mapping: Mapping[str, str]) -> bool:
    return any(role_named(name) == role and not header.strip() for name, header in mapping.items())


def _told(
    header: Sequence[str], mapping: Mapping[str, str]
) -> tuple[dict[str, int], dict[str, str], dict[str, tuple[int, ...]]]:
    """The mapping as (role → position, role → header that is not there, role → positions of equal headers)."""
    told: dict[str, int] = {}
    unmapped: dict[str, str] = {}
    doubled: dict[str, tuple[int, ...]] = {}
    for name, wanted in mapping.items():
        role = role_named(name)
        if not wanted.strip():
            continue
        exact = [at for at, title in enumerate(header) if title == wanted]
        found = exact or [at for at, title in enumerate(header) if normalised(title) == normalised(wanted)]
        if role is None or not found:
            unmapped[role or name] = wanted
            continue
        told[role] = found[0]
        if len(found) > 1:
            doubled[role] = tuple(found)
    return told, unmapped, doubled


def _wide(
    names: Sequence[str], taken: set[int], question_ids: Sequence[str], *, bare: bool
) -> tuple[dict[str, int], tuple[int, ...]]:
    """Label columns of a wide table, and those that look like one for a question nobody gave.

    Where `bare`, a column that is called like a question holds its labels, too.
    """
    known = {normalised(name): name for name in question_ids}
    wide: dict[str, int] = {}
    stray = []
    for at, name in enumerate(names):
        if at in taken:
            continue
        inner = name.removeprefix("expected_") if name.startswith("expected_") else name.removesuffix("_expected")
        if inner == name or not inner:
            continue
        if inner in known and known[inner] not in wide:
            wide[known[inner]] = at
        else:
            stray.append(at)
    if bare:
        for at, name in enumerate(names):
            if at not in taken and name in known:
                wide.setdefault(known[name], at)
    return wide, tuple(stray)


def role_problems(roles: Roles, header: Sequence[str], row: int | None, line: int | None) -> list[Problem]:
    """What keeps these roles from being used, all of it at once."""
    problems = []
    listed = ", ".join(shown(name) for name in header[:30])
    for role, wanted in roles.unmapped.items():
        known = role in SYNONYMS or role.startswith("expected_")
        message = f"no column {shown(wanted)} for {role}" if known else f"unknown role {shown(role)}"
        hint = f"the columns are {listed}" if known else f"the roles are {', '.join(SYNONYMS)} and expected_<id>"
        problems.append(Problem(message, "mapping", row, line, wanted, hint))
    for role, positions in roles.doubled.items():
        both = " and ".join(f"{shown(header[at])} ({letter(at)})" for at in positions)
        hint = "rename or remove one, or say which column to use"
        message = f"{len(positions)} columns for the {role}: {both}"
        problems.append(Problem(message, "two_columns", row, line, header[positions[0]], hint))
    missing = [role for role in roles.missing if role not in roles.unmapped]
    if roles.given and missing and set(missing) <= {"question", "label"}:
        ids = ", ".join(shown(name) for name in roles.given)
        message = f"no column has labels of the questions that were given ({ids})"
        hint = f"call it as the question is called, or say which column it is; the columns are {listed}"
        return [*problems, Problem(message, "missing_column", row, line, roles.given[0], hint)]
    for role in missing:
        every = ", or give one question for every row" if role == "question" else ""
        hint = f"call it {' or '.join(SYNONYMS[role][:2])}, or say which column it is{every}; the columns are {listed}"
        if roles.stray_labels and role == "question":
            ids = ", ".join(shown(header[at]) for at in roles.stray_labels)
            hint = f"{ids} look like labels of several questions: give those questions in a file of their own"
        message = f'no column for the {role} ("{SYNONYMS[role][0]}")'
        problems.append(Problem(message, "missing_column", row, line, SYNONYMS[role][0], hint))
    return problems
