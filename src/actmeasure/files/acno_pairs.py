"""Pairs of a blind and a measuring action: which belong together, and whether the second is the first with a look added."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from actmeasure.errors import ModelError
from actmeasure.files.pomdp_tables import Pomdp
from actmeasure.transitions import FloatArray

__all__ = ["ROUNDING", "IndexArray", "Moves", "control_names", "find_pairs", "looks_measuring"]

IndexArray = npt.NDArray[np.int64]

#: Numbers that should be equal may differ by this much, relative to their size where that is above 1.
ROUNDING = 1e-9
BLIND_NAME = re.compile(r"[-_](blind|unmeasured|no-?measure|no-?look)$", re.IGNORECASE)
MEASURING_NAME = re.compile(r"[-_](measure|measured|measuring|look|observe|sense)$", re.IGNORECASE)


@dataclass(frozen=True)
class Moves:
    """What one action of the file does: compressed rows over the states, with the reward of every entry."""

    offsets: IndexArray
    successors: IndexArray
    probabilities: FloatArray
    rewards: FloatArray

    def state_of(self, entry: int) -> int:
        """The state whose row an entry belongs to."""
        return int(np.searchsorted(self.offsets, entry, side="right")) - 1


def looks_measuring(name: str) -> bool:
    """Whether the name of an action says that it measures."""
    return MEASURING_NAME.search(name) is not None


def control_names(pomdp: Pomdp, blind: list[int]) -> list[str] | None:
    """Names for the control actions: those of the blind actions, without an ending such as '-blind' if all have one."""
    if pomdp.actions.names is None:
        return None
    names = [pomdp.actions[action] for action in blind]
    stems = [BLIND_NAME.sub("", name) for name in names]
    usable = all(stem and stem != name for stem, name in zip(stems, names, strict=True))
    return stems if usable and len(set(stems)) == len(stems) else names


def find_pairs(pomdp: Pomdp, moves: list[Moves], blind: list[int], measuring: list[int]) -> list[tuple[int, int]]:
    """The measuring partner of every blind action: by their names where these tell, otherwise by what they do."""
    by_stem = {MEASURING_NAME.sub("", pomdp.actions[action]): action for action in measuring}
    stems = [BLIND_NAME.sub("", pomdp.actions[action]) for action in blind]
    if len(by_stem) == len(measuring) == len(blind) and set(stems) == set(by_stem):
        pairs = [(action, by_stem[stem]) for action, stem in zip(blind, stems, strict=True)]
        for one, other in pairs:
            problem = _mismatch(pomdp, moves, one, other)
            if problem:
                raise ModelError(
                    f"action {pomdp.actions[other]!r} does not measure for {pomdp.actions[one]!r}: {problem}"
                )
        return pairs
    free = list(measuring)
    pairs = []
    for one in blind:
        problems = {other: _mismatch(pomdp, moves, one, other) for other in free}
        partner = next((other for other in free if not problems[other]), None)
        if partner is None:
            # Best explained by an action that at least moves alike.
            telling = sorted(problems.items(), key=lambda item: item[1].startswith("from "))
            why = f"{pomdp.actions[telling[0][0]]!r} is not: {telling[0][1]}" if telling else "all others have theirs"
            raise ModelError(f"no measuring action is the partner of the blind action {pomdp.actions[one]!r}; {why}")
        free.remove(partner)
        pairs.append((one, partner))
    if free:
        raise ModelError(f"no blind action is the partner of the measuring action {pomdp.actions[free[0]]!r}; add one")
    return pairs


def _mismatch(pomdp: Pomdp, moves: list[Moves], blind: int, measuring: int) -> str:
    """Why an action is not another with a measurement added; empty if it is."""
    one, other = moves[blind], moves[measuring]
    states, actions = pomdp.states, pomdp.actions
    if not (np.array_equal(one.offsets, other.offsets) and np.array_equal(one.successors, other.successors)):
        for state in range(states.count):
            rows = [move.successors[move.offsets[state] : move.offsets[state + 1]].tolist() for move in (one, other)]
            if rows[0] != rows[1]:
                successor = min(set(rows[0]) ^ set(rows[1]))
                goes, stays = (blind, measuring) if successor in rows[0] else (measuring, blind)
                return (
                    f"from state {states[state]!r}, {actions[goes]!r} may lead to {states[successor]!r} "
                    f"and {actions[stays]!r} not"
                )
    apart = np.abs(one.probabilities - other.probabilities) > ROUNDING
    if apart.any():
        entry = int(np.argmax(apart))
        return (
            f"from state {states[one.state_of(entry)]!r} to {states[int(one.successors[entry])]!r} it goes with probability "
            f"{other.probabilities[entry]:.6g}, the blind action with {one.probabilities[entry]:.6g}"
        )
    return _cost_problem(pomdp, one, other)


def _cost_problem(pomdp: Pomdp, one: Moves, other: Moves) -> str:
    """Why the difference of rewards is not the price of a look; empty if it is."""
    cost = one.rewards - other.rewards
    allowed = ROUNDING * np.maximum(1.0, np.abs(one.rewards) + np.abs(other.rewards))
    rows = np.repeat(np.arange(len(one.offsets) - 1), np.diff(one.offsets))
    negative = cost < -allowed
    if negative.any():
        entry = int(np.argmax(negative))
        return (
            f"in state {pomdp.states[one.state_of(entry)]!r} it pays {-cost[entry]:.6g} more than the blind action, "
            "expected the same or less; looking cannot pay"
        )
    first = one.offsets[:-1][rows]
    varying = np.abs(cost - cost[first]) > allowed + allowed[first]
    if varying.any():
        entry = int(np.argmax(varying))
        arriving = pomdp.states[int(one.successors[entry])]
        return (
            f"in state {pomdp.states[one.state_of(entry)]!r} it costs {cost[first[entry]]:.6g} or, arriving in {arriving!r}, "
            f"{cost[entry]:.6g}, expected a cost that does not depend on where one arrives"
        )
    return ""
