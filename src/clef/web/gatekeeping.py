"""Turns a policy and a live reply into act or review for each question, and recalibrated probabilities beside it.

The policy is CLEF_POLICY, a file or the name of a saved one, or the saved one that a request names. A request never
names a file. A policy that is set and cannot be read ends every request: a gate must not be missing in silence.

A question is looked up by its id, else by its instructions: a table's question column holds the one or the other.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from fastapi import Request

from clef.decisions.examples import Reply
from clef.decisions.questions import Question, as_text
from clef.decisions.served import Served, served_body
from clef.errors import ClefError, InputError, SettingsError


class NoPolicy(ClefError):
    """CLEF_POLICY leads to no policy."""

    code = "policy"
    status = 503


@dataclass(frozen=True, slots=True)
class Gate:
    """A policy with its name."""

    name: str
    policy: Any
    """A `clef.statistics.policy.Policy`."""

    def judge(self, served: Served, reply: Reply, *, in_place: bool) -> tuple[Reply, dict[str, Any]]:
        """The reply, with recalibrated probabilities where they are wanted in place, and what is said beside it."""
        from clef.statistics.policy import ruling

        known = self.policy.questions
        gates, seen = {}, []
        for name, question, answer in zip(served.ids, served.request.questions, reply.answers, strict=True):
            gates[name] = ruling(self.policy, _known_as(name, question, known), answer).to_dict()
            seen.append(answer if self.policy.recalibration is None else self.policy.recalibration.apply(answer))
        extras: dict[str, Any] = {"x_policy": self.name, "x_gate": gates}
        if self.policy.recalibration is None:
            return reply, extras
        recalibrated = Reply(tuple(seen), reply.model, reply.input_tokens)
        if in_place:
            return recalibrated, extras | {"x_probabilities": "recalibrated"}
        answers = served_body(served, recalibrated, "")["answers"]
        kept = ("noul", "choice", "score", "probabilities")
        mapped = {name: {key: body[key] for key in kept if key in body} for name, body in answers.items()}
        return reply, extras | {"x_probabilities": "engine", "x_recalibrated": mapped}


async def gate_for(request: Request, named: str | None) -> Gate | None:
    """The gate of a request, if there is one. Raises NotFound for a name nobody saved, NoPolicy where CLEF_POLICY leads
    to none.
    """
    state = request.app.state
    if named is None and state.gate is not None:
        gate: Gate = state.gate
        return gate
    wanted = named if named is not None else state.settings.policy
    if wanted is None:
        return None
    try:
        return _gate(wanted, (await state.store.policies.get(wanted)).body)
    except InputError as error:
        if named is not None:
            raise
        hint = "save a policy of this name, or name a file that ends in .json"
        raise NoPolicy(f'CLEF_POLICY: "{wanted}" is no policy: {error.message}', hint=hint) from error


def gate_of_file(policy: str | None) -> Gate | None:
    """The gate of a policy file; None where CLEF_POLICY is not set or is the name of a saved one.

    Raises SettingsError for a file that cannot be read or is no policy.
    """
    if policy is None or not policy.endswith(".json"):
        return None
    try:
        return _gate(Path(policy).name, orjson.loads(Path(policy).read_bytes()))
    except OSError as error:
        raise SettingsError(f"CLEF_POLICY: {policy} cannot be read: {error.strerror}") from error
    except (ValueError, InputError) as error:
        raise SettingsError(f"CLEF_POLICY: {policy} is no policy: {error}", hint="`clef gate` writes one") from error


def _gate(name: str, body: Mapping[str, Any]) -> Gate:
    from clef.statistics.policy import Policy

    return Gate(name, Policy.from_dict(body))


def _known_as(name: str, question: Question, known: Mapping[str, object]) -> str:
    """What the policy calls a question."""
    return name if name in known or question.instructions is None else as_text(question.instructions)
