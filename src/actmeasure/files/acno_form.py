"""Is a POMDP one in which looking is a choice? Which of its actions look, which do not, and which belong together.

The form: every action either shows the state by an observation of its own (it measures) or shows one and the same
observation, *nothing* (it is blind), except in terminal states, which are shown for free; and blind and measuring
actions come in pairs that move alike, of which the measuring one pays less by a cost.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from actmeasure.errors import ModelError
from actmeasure.files.acno_pairs import ROUNDING, IndexArray, Moves, control_names, find_pairs, looks_measuring
from actmeasure.files.pomdp_reader import ROW_ERROR
from actmeasure.files.pomdp_tables import Pomdp, ProbabilityTable
from actmeasure.transitions import ROUNDING_ERROR

__all__ = ["Form", "find_form"]


@dataclass(frozen=True)
class Form:
    """Who is who in the file.

    Attributes
    ----------
    pairs : list of (blind, measuring)
        The file's actions for each control action, in the order of the blind ones.
    moves : list of Moves, one per action of the file
    terminal : bool array, shape (S,)
    names : list of str, or None
        Names of the control actions.
    """

    pairs: list[tuple[int, int]]
    moves: list[Moves]
    terminal: npt.NDArray[np.bool_]
    names: list[str] | None


def find_form(pomdp: Pomdp) -> Form:
    """Who is who; a `ModelError` names the action, state and observation that break the form."""
    shown = _shown(pomdp)
    moves = [_moves(pomdp, action, shown[action]) for action in range(pomdp.actions.count)]
    candidates = _candidates(pomdp, shown)
    first_error: ModelError | None = None
    for blind, measuring in candidates:
        try:
            terminal = _terminal(pomdp, shown, moves, blind[0], measuring[0])
            pairs = find_pairs(pomdp, moves, blind, measuring)
        except ModelError as error:
            first_error = first_error or error
            continue
        return Form(pairs, moves, terminal, control_names(pomdp, [pair[0] for pair in pairs]))
    raise first_error or ModelError("no action of the file can be told to be blind or measuring")


def _rows(pomdp: Pomdp, table: ProbabilityTable, action: int, what: str) -> Iterator[list[tuple[int, float]]]:
    """The rows of an action, state by state, once they are known to be distributions."""
    for state in range(pomdp.states.count):
        row = sorted(table.row(action, state).items())
        total = sum(probability for _, probability in row)
        if abs(total - 1) > ROW_ERROR:
            raise ModelError(
                f"the {what} probabilities of action {pomdp.actions[action]!r} in state {pomdp.states[state]!r} sum to "
                f"{total:.6g}, expected 1; complete them"
            )
        yield row


def _shown(pomdp: Pomdp) -> IndexArray:
    """The one observation that each action shows in each state it leads to, shape (actions, S)."""
    shown = np.empty((pomdp.actions.count, pomdp.states.count), dtype=np.int64)
    for action in range(pomdp.actions.count):
        for state, row in enumerate(_rows(pomdp, pomdp.shown, action, "observation")):
            observation, probability = max(row, key=lambda entry: entry[1])
            if probability < 1 - ROUNDING:
                raise ModelError(
                    f"action {pomdp.actions[action]!r} shows observation {pomdp.observations[observation]!r} with "
                    f"probability {probability:.6g} in state {pomdp.states[state]!r}, expected 1: a measurement must show "
                    "the state exactly, and a blind action nothing"
                )
            shown[action, state] = observation
    return shown


def _moves(pomdp: Pomdp, action: int, shown: IndexArray) -> Moves:
    sizes = [0]
    entries: list[tuple[int, float, float]] = []
    for state, row in enumerate(_rows(pomdp, pomdp.transitions, action, "transition")):
        total = sum(probability for _, probability in row)
        scale = 1.0 if abs(total - 1) <= ROUNDING_ERROR else total
        for successor, probability in row:
            paid = pomdp.reward(action, state, successor, int(shown[successor]))
            entries.append((successor, probability / scale, paid))
        sizes.append(len(entries))
    return Moves(
        np.array(sizes),
        np.array([entry[0] for entry in entries]),
        np.array([entry[1] for entry in entries]),
        np.array([entry[2] for entry in entries]),
    )


def _candidates(pomdp: Pomdp, shown: IndexArray) -> list[tuple[list[int], list[int]]]:
    """The blind and the measuring actions; both ways round where a single running state leaves it open."""
    groups: dict[bytes, list[int]] = {}
    for action in range(len(shown)):
        groups.setdefault(shown[action].tobytes(), []).append(action)
    telling = [actions for actions in groups.values() if len(set(shown[actions[0]].tolist())) == shown.shape[1]]
    silent = [actions for actions in groups.values() if actions not in telling]
    if len(telling) == 2 and not silent:
        return [(telling[0], telling[1]), (telling[1], telling[0])]
    if not telling:
        raise ModelError(_shown_twice(pomdp, shown))
    if len(telling) > 1 and silent:
        # One that shows what the silent ones show is a blind action that sees too much rather than a measurement.
        nothing = _most_common(shown[silent[0][0]])
        silent += [actions for actions in telling if nothing in shown[actions[0]]]
        telling = [actions for actions in telling if actions not in silent] or telling
    if len(telling) > 1:
        raise ModelError(_two_ways(pomdp, shown, telling[0][0], telling[1][0]))
    if not silent:
        raise ModelError(
            f"every action shows the state, as action {pomdp.actions[0]!r} does: expected a blind action, which does not, "
            "to go with each one that measures"
        )
    if len(silent) > 1:
        raise ModelError(_two_ways(pomdp, shown, silent[0][0], silent[1][0]))
    return [(silent[0], telling[0])]


def _most_common(values: IndexArray) -> int:
    found, counts = np.unique(values, return_counts=True)
    return int(found[np.argmax(counts)])


def _shown_twice(pomdp: Pomdp, shown: IndexArray) -> str:
    """No action tells all states apart: name two states that the most telling one confuses."""
    best = max(
        range(len(shown)), key=lambda action: (len(set(shown[action].tolist())), looks_measuring(pomdp.actions[action]))
    )
    seen: dict[int, int] = {}
    for state, observation in enumerate(shown[best].tolist()):
        if observation in seen:
            return (
                f"no action measures: action {pomdp.actions[best]!r} shows observation {pomdp.observations[observation]!r} "
                f"in state {pomdp.states[seen[observation]]!r} and in state {pomdp.states[state]!r} alike; a measurement "
                "must show the state exactly"
            )
        seen[observation] = state
    return "no action measures"


def _two_ways(pomdp: Pomdp, shown: IndexArray, one: int, other: int) -> str:
    state = int(np.argmax(shown[one] != shown[other]))
    return (
        f"in state {pomdp.states[state]!r}, action {pomdp.actions[one]!r} shows observation "
        f"{pomdp.observations[int(shown[one, state])]!r} and action {pomdp.actions[other]!r} shows "
        f"{pomdp.observations[int(shown[other, state])]!r}: all measurements must show a state alike, and all blind actions "
        "must show one and the same observation"
    )


def _terminal(pomdp: Pomdp, shown: IndexArray, moves: list[Moves], blind: int, measuring: int) -> npt.NDArray[np.bool_]:
    """States that are shown for free, once they are known to end the episode and the others to show nothing."""
    free: npt.NDArray[np.bool_] = shown[blind] == shown[measuring]
    hidden = shown[blind][~free]
    of_its_own = hidden[~np.isin(hidden, shown[measuring])]
    nothing = _most_common(of_its_own if of_its_own.size else hidden)
    for state in np.flatnonzero(free | (shown[blind] != nothing)).tolist():
        reason = _why_not_over(pomdp, moves, state) if free[state] else "a blind action must not tell states apart"
        if reason:
            raise ModelError(
                f"action {pomdp.actions[blind]!r} shows observation {pomdp.observations[int(shown[blind, state])]!r} in "
                f"state {pomdp.states[state]!r}, expected {pomdp.observations[nothing]!r}: {reason}"
            )
    if nothing in shown[measuring]:
        state = int(np.argmax(shown[measuring] == nothing))
        raise ModelError(
            f"action {pomdp.actions[blind]!r} shows observation {pomdp.observations[nothing]!r}, which is also what action "
            f"{pomdp.actions[measuring]!r} shows in state {pomdp.states[state]!r}: expected one that stands for nothing"
        )
    return free


def _why_not_over(pomdp: Pomdp, moves: list[Moves], state: int) -> str:
    """What keeps a state from being terminal; empty if nothing does."""
    rule = "only a terminal state, which absorbs without reward, is shown for free, and"
    for action, move in enumerate(moves):
        entries = slice(int(move.offsets[state]), int(move.offsets[state + 1]))
        for successor, probability, paid in zip(
            move.successors[entries].tolist(), move.probabilities[entries], move.rewards[entries], strict=True
        ):
            if successor != state and probability > ROUNDING:
                return f"{rule} action {pomdp.actions[action]!r} leads from there to state {pomdp.states[successor]!r}"
            if paid != 0:
                return f"{rule} action {pomdp.actions[action]!r} pays {paid:.6g} there"
    return ""
