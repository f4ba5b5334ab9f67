"""What does not fit, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["MEANING", "TESTS", "Finding", "describe", "periods"]

#: What is compared.
TESTS = {
    "gap": "ends of gaps, by their length",
    "history": "ends of gaps, by the inspection before",
    "age": "ends of gaps, by time since the unit's first record",
}

#: What it means when a test fails.
MEANING = {
    "gap": "The chances after long gaps do not follow from those after short ones: the time in a state is not geometric, or "
    "inspections were made when something seemed wrong.",
    "history": "The state is not all that matters: how long a unit has been in it does (ageing), or units differ from each "
    "other.",
    "age": "The chances change with time since a unit's first record: ageing, or conditions that changed.",
}


@dataclass(frozen=True)
class Finding:
    """A class of gaps and a last state that was seen more or less often than expected.

    `first` and `last` are the least and most periods of the class: of its gaps, or since the units' first records.
    """

    begin: int
    action: int
    part: int
    first: int
    last: int | None
    state: int
    seen: int
    expected: float
    total: int


def describe(kind: str, findings: Sequence[Finding], names: tuple[Sequence[str], Sequence[str], str]) -> list[str]:
    """What the failed test means, and its largest differences."""
    states, actions, period = names
    sentences = [MEANING[kind]]
    for one in findings:
        done = f"{actions[one.action]!r}" if one.action < len(actions) else "several actions"
        match kind:
            case "gap":
                where = f"after {done} for {periods(one.first, one.last, period)}"
            case "history":
                where = (
                    f"after {done}, {'also' if one.part else 'not'} in {states[one.begin]} at the inspection before,"
                )
            case _:
                where = f"after {done}, {periods(one.first, one.last, period)} from the unit's first record,"
        sentences.append(
            f"Of {one.total:,} times that a unit was seen in {states[one.begin]}, {where} it was then seen in "
            f"{states[one.state]} {one.seen:,} time{'s' * (one.seen != 1)}; {one.expected:,.1f} were expected."
        )
    return sentences


def periods(first: int, last: int | None, period: str) -> str:
    """`3 years`, `3 to 5 years` or `3 years or more`."""
    many = f"{period}s"
    if last is None:
        return f"{first:,} {period if first == 1 else many} or more"
    if first == last:
        return f"{first:,} {period if first == 1 else many}"
    return f"{first:,} to {last:,} {many}"
