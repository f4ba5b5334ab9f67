"""Find the model that a POMDP describes: with exact looks, with measurements if this package wrote the file, or any other.

Exact looks have this form: every action either shows the state by an observation of its own (it measures) or shows one and the
same observation, *nothing* (it is blind), except in terminal states, which are shown for free; blind and measuring actions come
in pairs with the same transitions, of which the measuring one has a reward that is lower by a cost.

The comment line `# actmeasure` of files that this package wrote (`pomdp_writer`) adds what the format cannot express, where it
agrees with the rest of the file. That of version 2 tells which pairs of action and measurement the actions are: the model that
results is written again, and a file that says something else than that is refused. A file that is neither of the form above nor
has the comment is read as a plain POMDP: no measurements, and the observations as passive outcomes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from actmeasure.errors import ModelError
from actmeasure.files import pomdp_writer
from actmeasure.files.parts import Parts, stored_law, stored_measurement
from actmeasure.files.pomdp_reader import CompressedRows, IndexArray, Pomdp, Tables, Words, read, tables_of
from actmeasure.files.pomdp_writer import (
    BEGIN,
    BLIND,
    MEASURE,
    Described,
    FileLayout,
    LookComment,
    PairsComment,
    check_sizes,
    identifiers,
    state_identifiers,
)
from actmeasure.model import Measurement, Model
from actmeasure.model.measurement import Law
from actmeasure.model.transitions import FloatArray

__all__ = ["build", "observed_model"]

BoolArray = npt.NDArray[np.bool_]

T = TypeVar("T")

#: Largest accepted difference between numbers that should be equal, relative to their size where that is above 1.
EQUAL_WITHIN = 1e-9
#: Name of the passive measurement whose outcomes are the observations of a plain POMDP.
OBSERVATION = "observation"
BLIND_NAME = re.compile(r"[-_](blind|unmeasured|no-?measure|no-?look)$", re.IGNORECASE)
MEASURING_NAME = re.compile(r"[-_](measure|measured|measuring|look|observe|sense)$", re.IGNORECASE)


def build(pomdp: Pomdp) -> Model:
    """Return the model that a POMDP describes.

    A `ModelError` names the row that is not a distribution or, in a file with the comment line, what does not agree with it.
    """
    comment = pomdp.comment
    if comment is not None and comment.statements != pomdp.statements:
        raise ModelError(
            f"it has {pomdp.statements} lines of T, O and R, but had {comment.statements} when it was written; the file is "
            "incomplete, or if it was changed on purpose, remove the comment '# actmeasure'"
        )
    tables = tables_of(pomdp)
    with np.errstate(over="ignore", invalid="ignore"):  # differences of the largest numbers; infinity is refused later
        if isinstance(comment, PairsComment):
            return _agreeing(lambda: _pairs_model(pomdp, tables, comment))
        try:
            form = _find_form(pomdp, tables)
        except ModelError:
            if comment is not None:
                raise
            return _plain_model(pomdp, tables)
        parts, measured = _look_parts(pomdp, form)
        _check_start(pomdp, form.terminal)
        if comment is not None:
            parts = _agreeing(lambda: _with_comment(parts, measured, pomdp, form, comment))
    return parts.model()


def _agreeing(read: Callable[[], T]) -> T:
    """Return what is read by the comment line; an error says that it does not agree with the rest of the file."""
    try:
        return read()
    except ModelError as error:
        raise ModelError(
            f"the comment '# actmeasure' does not agree with the rest of the file: {error}; "
            "remove the comment if the rest is right"
        ) from error


def _stacked(parts: Sequence[CompressedRows]) -> CompressedRows:
    """Return rows one after the other."""
    sizes = np.concatenate([part.sizes() for part in parts])
    return CompressedRows(
        np.concatenate([[0], np.cumsum(sizes)]),
        np.concatenate([part.columns for part in parts]),
        np.concatenate([part.values for part in parts]),
    )


def _by_state(
    moves: CompressedRows, n_states: int, n_actions: int, terminal: BoolArray
) -> tuple[CompressedRows, IndexArray]:
    """Return rows in the order of states and then actions, without those of terminal states, and where each entry was before."""
    action, state = np.divmod(moves.row_of_entry(), n_states)
    rows = state * n_actions + action
    order = np.argsort(rows, kind="stable")
    order = order[~terminal[state[order]]]
    offsets = np.searchsorted(rows[order], np.arange(n_states * n_actions + 1))
    return CompressedRows(offsets, moves.columns[order], moves.values[order]), order


def _parts(
    moves: CompressedRows,
    rewards: FloatArray,
    terminal: BoolArray,
    initial: FloatArray,
    successor_rewards: bool | None = None,
    **rest: Any,
) -> Parts:
    """Return the contents of a file; `successor_rewards` None keeps rewards per successor only where they differ within a row."""
    n_states = len(terminal)
    sizes = n_states, (len(moves.offsets) - 1) // n_states
    rows = moves.row_of_entry()
    varying = bool(np.any(rewards != rewards[moves.offsets[rows]]))
    if successor_rewards is False and varying:
        raise ModelError("it says that rewards do not depend on the successor, but they do")
    keep = varying if successor_rewards is None else successor_rewards
    per_pair = np.zeros(sizes[0] * sizes[1])
    per_pair[rows] = rewards
    return Parts(
        *sizes, moves.offsets, moves.columns, moves.values, None if keep else per_pair.reshape(sizes),
        rewards if keep else None, terminal, initial, **rest,
    )  # fmt: skip


@dataclass(frozen=True)
class Form:
    """Which actions of the file are blind or measuring, and which states are terminal.

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


@dataclass(frozen=True)
class Moves(CompressedRows):
    """The transitions of one action of the file: rows over the states, columns are successors, with the reward of every entry."""

    rewards: FloatArray

    def state_of(self, entry: int) -> int:
        """Return the state whose row an entry belongs to."""
        return int(np.searchsorted(self.offsets, entry, side="right")) - 1


def _look_parts(pomdp: Pomdp, form: Form) -> tuple[Parts, FloatArray]:
    """Return the contents of the file without its comment line, and the reward of each entry when it is measured."""
    n_states, n_actions = pomdp.states.count, len(form.pairs)
    blind, measuring = ([form.moves[pair[kind]] for pair in form.pairs] for kind in (0, 1))
    moves, order = _by_state(_stacked(blind), n_states, n_actions, form.terminal)
    paid, measured = (np.concatenate([one.rewards for one in kind])[order] for kind in (blind, measuring))
    parts = _parts(
        moves,
        paid,
        form.terminal,
        pomdp.start,
        measuring_cost=_cost(moves.row_of_entry(), paid, measured, (n_states, n_actions)),
        discount=pomdp.discount,
        reveal_start=bool(np.count_nonzero(pomdp.start) == 1),
        state_names=pomdp.states.names,
        action_names=form.names,
    )
    return parts, measured


def _cost(rows: IndexArray, paid: FloatArray, measured: FloatArray, shape: tuple[int, int]) -> float | FloatArray:
    """Return the measuring cost: one number where it is the same everywhere up to rounding, otherwise one per state and action.

    Where there are several differences to choose from, the one between the smallest rewards has lost the fewest bits.
    """
    costs = np.maximum(paid - measured, 0.0)
    best = costs[np.argmin(np.abs(paid))]
    if np.all(np.abs(costs - best) <= EQUAL_WITHIN * np.maximum(1.0, np.abs(paid) + np.abs(measured))):
        return float(best)
    table = np.zeros(shape[0] * shape[1])
    smallest_last = np.lexsort((-np.abs(paid), rows))
    table[rows[smallest_last]] = costs[smallest_last]  # of several entries of a row, the last one stays
    return table.reshape(shape)


def _check_start(pomdp: Pomdp, terminal: npt.NDArray[np.bool_]) -> None:
    ended = np.flatnonzero(terminal & (pomdp.start > 0))
    if ended.size:
        hint = (
            "the start is uniform over all states, as it is where there is no 'start:' line; " * pomdp.uniform_start()
        )
        raise ModelError(
            f"the start gives state {pomdp.states[int(ended[0])]!r} a chance, but it is terminal; {hint}"
            "add a line 'start: <state>' with a state that is not"
        )


def _with_comment(parts: Parts, measured: FloatArray, pomdp: Pomdp, form: Form, comment: LookComment) -> Parts:
    """Return the parts with the contents of the comment line, after checking that the two agree."""
    _check_actions(pomdp, form, comment)
    _check_states(pomdp.states, comment)
    if comment.successor_rewards and parts.transition_rewards is None and parts.rewards is not None:
        rows = np.repeat(np.arange(len(parts.offsets) - 1), np.diff(parts.offsets))
        parts = replace(parts, rewards=None, transition_rewards=parts.rewards.ravel()[rows])
    elif not comment.successor_rewards and parts.transition_rewards is not None:
        raise ModelError("it says that rewards do not depend on the successor, but they do")
    if comment.begin:
        parts, measured = _without_begin(parts, measured)
    if not comment.begin and comment.reveal_start and np.count_nonzero(parts.initial) > 1:
        raise ModelError("it says that a random start is shown, but there is no additional state 'begin' that shows it")
    if comment.begin and not comment.reveal_start:
        raise ModelError("it says that the start is not shown, but there is an additional state 'begin' that shows it")
    cost = comment.cost
    _check_cost(parts, measured, cost)
    return replace(
        parts,
        measuring_cost=cost,
        reveal_start=comment.reveal_start,
        state_names=comment.states,
        action_names=comment.actions,
    )


def _check_actions(pomdp: Pomdp, form: Form, comment: LookComment) -> None:
    n_actions = len(form.pairs)
    names = identifiers(comment.actions, n_actions, "a")
    written = [name + kind for name in names for kind in (BLIND, MEASURE)]
    if len(names) != n_actions or written != pomdp.actions.names:
        raise ModelError("it has other actions")
    if form.pairs != [(2 * action, 2 * action + 1) for action in range(n_actions)]:
        raise ModelError("it has its actions in another order")


def _check_states(states: Words, comment: LookComment) -> None:
    n_states = states.count - comment.begin
    names = state_identifiers(comment.states, n_states, comment.begin)
    if len(names) != n_states or [*([BEGIN] if comment.begin else []), *names] != states.names:
        raise ModelError("it has other states")


def _without_begin(parts: Parts, measured: FloatArray) -> tuple[Parts, FloatArray]:
    """Replace the additional first state `begin` by a random start that is shown."""
    n_actions = parts.n_actions
    starts = [slice(int(parts.offsets[row]), int(parts.offsets[row + 1])) for row in range(n_actions)]
    kept = slice(int(parts.offsets[n_actions]), len(parts.successors))
    first_rewards = np.zeros(0) if parts.rewards is None else parts.rewards[0]
    if parts.transition_rewards is not None:
        first_rewards = parts.transition_rewards[: kept.start]
    sound = (
        not parts.terminal[0]
        and np.flatnonzero(parts.initial).tolist() == [0]
        and not np.any(parts.successors == 0)
        and not np.any(first_rewards)
        and not np.any(measured[: kept.start])
        and all(
            np.array_equal(parts.successors[entries], parts.successors[starts[0]])
            and np.array_equal(parts.probabilities[entries], parts.probabilities[starts[0]])
            for entries in starts
        )
    )
    if not sound:
        raise ModelError(
            "its additional state 'begin' has to lead to the start under every action, for free, and never back"
        )
    initial = np.zeros(parts.n_states - 1)
    initial[parts.successors[starts[0]] - 1] = parts.probabilities[starts[0]]
    folded = replace(
        parts,
        n_states=parts.n_states - 1,
        offsets=parts.offsets[n_actions:] - kept.start,
        successors=parts.successors[kept] - 1,
        probabilities=parts.probabilities[kept],
        rewards=None if parts.rewards is None else parts.rewards[1:],
        transition_rewards=None if parts.transition_rewards is None else parts.transition_rewards[kept],
        terminal=parts.terminal[1:],
        initial=initial,
    )
    return folded, measured[kept]


def _check_cost(parts: Parts, measured: FloatArray, cost: float | FloatArray) -> None:
    """Check that the cost in the comment line gives the rewards of the measuring actions."""
    shape = (parts.n_states, parts.n_actions)
    if not isinstance(cost, float) and cost.shape != shape:
        raise ModelError(f"its measuring costs have the shape {cost.shape}, expected {shape}")
    rows = np.repeat(np.arange(len(parts.offsets) - 1), np.diff(parts.offsets))
    paid = parts.transition_rewards
    if paid is None:
        paid = np.asarray(parts.rewards).ravel()[rows]
    price = np.broadcast_to(np.asarray(cost, dtype=np.float64), shape).ravel()[rows]
    wrong = np.abs(paid - price - measured) > EQUAL_WITHIN * np.maximum(1.0, np.abs(paid) + np.abs(price))
    if wrong.any():
        entry = int(np.argmax(wrong))
        raise ModelError(
            f"it has the measuring cost {price[entry]:.6g} where the rewards of blind and measuring action differ by "
            f"{paid[entry] - measured[entry]:.6g}"
        )


def _find_form(pomdp: Pomdp, tables: Tables) -> Form:
    """Return blind and measuring actions, their transitions and the terminal states of a POMDP."""
    shown = _shown(pomdp, tables)
    candidates = _candidates(pomdp, shown)
    moves = [_moves(tables, action, pomdp.states.count) for action in range(pomdp.actions.count)]
    first_error: ModelError | None = None
    for blind, measuring in candidates:
        try:
            terminal = _terminal(pomdp, shown, moves, blind[0], measuring[0])
            pairs = _find_pairs(pomdp, moves, blind, measuring)
        except ModelError as error:
            first_error = first_error or error
            continue
        return Form(pairs, moves, terminal, _control_names(pomdp, [pair[0] for pair in pairs]))
    raise first_error or ModelError("no action of the file can be told to be blind or measuring")


def _shown(pomdp: Pomdp, tables: Tables) -> IndexArray:
    """Return the one observation that each action shows in each successor state, shape (actions, S)."""
    rows = tables.shown
    most = np.maximum.reduceat(rows.values, rows.offsets[:-1])
    likeliest = rows.values == most[rows.row_of_entry()]
    shown = np.empty(len(most), dtype=np.int64)
    shown[rows.row_of_entry()[likeliest][::-1]] = rows.columns[likeliest][::-1]  # of equal ones the first stays
    uncertain = most < 1 - EQUAL_WITHIN
    if uncertain.any():
        row = int(np.argmax(uncertain))
        action, state = divmod(row, pomdp.states.count)
        raise ModelError(
            f"action {pomdp.actions[action]!r} shows observation {pomdp.observations[int(shown[row])]!r} with "
            f"probability {most[row]:.6g} in state {pomdp.states[state]!r}, expected 1: a measurement must show "
            "the state exactly, and a blind action nothing"
        )
    return shown.reshape(pomdp.actions.count, pomdp.states.count)


def _moves(tables: Tables, action: int, n_states: int) -> Moves:
    first, last = action * n_states, (action + 1) * n_states
    rows = tables.moves.part(first, last)
    return Moves(rows.offsets, rows.columns, rows.values, tables.rewards_of(first, last))


def _candidates(pomdp: Pomdp, shown: IndexArray) -> list[tuple[list[int], list[int]]]:
    """Return the blind and the measuring actions; both assignments where a single non-terminal state leaves it open."""
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
        # An action that also shows what the silent ones show is a blind action with a mistake rather than a measurement.
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
    distinct, counts = np.unique(values, return_counts=True)
    return int(distinct[np.argmax(counts)])


def _shown_twice(pomdp: Pomdp, shown: IndexArray) -> str:
    """Return the message that no action distinguishes all states, with two states that the best one confuses."""
    best = max(
        range(len(shown)),
        key=lambda action: (len(set(shown[action].tolist())), MEASURING_NAME.search(pomdp.actions[action]) is not None),
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
    """Return the states that are shown for free, after checking that they are terminal and the others show nothing."""
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
    """Return why a state is not terminal; empty if it is."""
    rule = "only a terminal state, which absorbs without reward, is shown for free, and"
    for action, move in enumerate(moves):
        entries = slice(int(move.offsets[state]), int(move.offsets[state + 1]))
        for successor, probability, paid in zip(
            move.columns[entries].tolist(), move.values[entries], move.rewards[entries], strict=True
        ):
            if successor != state and probability > EQUAL_WITHIN:
                return f"{rule} action {pomdp.actions[action]!r} leads from there to state {pomdp.states[successor]!r}"
            if paid != 0:
                return f"{rule} action {pomdp.actions[action]!r} pays {paid:.6g} there"
    return ""


def _control_names(pomdp: Pomdp, blind: list[int]) -> list[str] | None:
    """Return names for the model's actions: those of the blind actions, without an ending such as '-blind' if all have one."""
    if pomdp.actions.names is None:
        return None
    names = [pomdp.actions[action] for action in blind]
    stems = [BLIND_NAME.sub("", name) for name in names]
    usable = all(stem and stem != name for stem, name in zip(stems, names, strict=True))
    return stems if usable and len(set(stems)) == len(stems) else names


def _find_pairs(pomdp: Pomdp, moves: list[Moves], blind: list[int], measuring: list[int]) -> list[tuple[int, int]]:
    """Return pairs of a blind and a measuring action: by their names where these match, otherwise by their transitions."""
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
            # Report the mismatch of an action with equal transitions, if there is one.
            telling = sorted(problems.items(), key=lambda item: item[1].startswith("from "))
            why = f"{pomdp.actions[telling[0][0]]!r} is not: {telling[0][1]}" if telling else "all others have theirs"
            raise ModelError(f"no measuring action is the partner of the blind action {pomdp.actions[one]!r}; {why}")
        free.remove(partner)
        pairs.append((one, partner))
    if free:
        raise ModelError(f"no blind action is the partner of the measuring action {pomdp.actions[free[0]]!r}; add one")
    return pairs


def _mismatch(pomdp: Pomdp, moves: list[Moves], blind: int, measuring: int) -> str:
    """Return why the measuring action is not the blind action with a measurement added; empty if it is."""
    one, other = moves[blind], moves[measuring]
    states, actions = pomdp.states, pomdp.actions
    if not (np.array_equal(one.offsets, other.offsets) and np.array_equal(one.columns, other.columns)):
        for state in range(states.count):
            rows = [move.columns[move.offsets[state] : move.offsets[state + 1]].tolist() for move in (one, other)]
            if rows[0] != rows[1]:
                successor = min(set(rows[0]) ^ set(rows[1]))
                goes, stays = (blind, measuring) if successor in rows[0] else (measuring, blind)
                return (
                    f"from state {states[state]!r}, {actions[goes]!r} may lead to {states[successor]!r} "
                    f"and {actions[stays]!r} not"
                )
    apart = np.abs(one.values - other.values) > EQUAL_WITHIN
    if apart.any():
        entry = int(np.argmax(apart))
        return (
            f"from state {states[one.state_of(entry)]!r} to {states[int(one.columns[entry])]!r} it goes with probability "
            f"{other.values[entry]:.6g}, the blind action with {one.values[entry]:.6g}"
        )
    return _cost_problem(pomdp, one, other)


def _cost_problem(pomdp: Pomdp, one: Moves, other: Moves) -> str:
    """Return why the difference of rewards is not a measuring cost; empty if it is."""
    cost = one.rewards - other.rewards
    allowed = EQUAL_WITHIN * np.maximum(1.0, np.abs(one.rewards) + np.abs(other.rewards))
    rows = np.repeat(np.arange(len(one.offsets) - 1), np.diff(one.offsets))
    negative = cost < -allowed
    if negative.any():
        entry = int(np.argmax(negative))
        return (
            f"in state {pomdp.states[one.state_of(entry)]!r} it pays {-cost[entry]:.6g} more than the blind action, "
            "expected the same or less; a measurement cannot earn reward"
        )
    first = one.offsets[:-1][rows]
    varying = np.abs(cost - cost[first]) > allowed + allowed[first]
    if varying.any():
        entry = int(np.argmax(varying))
        arriving = pomdp.states[int(one.columns[entry])]
        return (
            f"in state {pomdp.states[one.state_of(entry)]!r} it costs {cost[first[entry]]:.6g} or, arriving in {arriving!r}, "
            f"{cost[entry]:.6g}, expected a cost that does not depend on where one arrives"
        )
    return ""


def _plain_model(pomdp: Pomdp, tables: Tables) -> Model:
    """Return a POMDP as a model without measurements, whose observations are passive outcomes; the start is hidden."""
    return observed_model(
        tables, pomdp.discount, pomdp.start, pomdp.observations.count,
        pomdp.states.names, pomdp.actions.names, pomdp.observations.names,
    )  # fmt: skip


def observed_model(
    tables: Tables,
    discount: float,
    start: FloatArray,
    n_observations: int,
    state_names: list[str] | None,
    action_names: list[str] | None,
    observation_names: list[str] | None,
    reveal_start: bool = False,
) -> Model:
    """Return the model of tables whose observations are passive outcomes; by action only where the law depends on it."""
    shown, n_states = tables.shown, len(start)
    n_actions = (len(shown.offsets) - 1) // n_states
    parts = [shown.part(action * n_states, (action + 1) * n_states) for action in range(n_actions)]
    by_action = not all(_same(part, parts[0]) for part in parts)
    rows = shown if by_action else parts[0]
    law = stored_law(n_observations, by_action, rows.offsets, rows.columns, rows.values, "the observations")
    names = None if observation_names is None else tuple(observation_names)
    terminal = np.zeros(n_states, dtype=bool)
    moves, order = _by_state(tables.moves, n_states, n_actions, terminal)
    return _parts(
        moves, tables.rewards[order], terminal, start, measuring_cost=None, discount=discount, reveal_start=reveal_start,
        state_names=state_names, action_names=action_names, measurements=[],
        passive=stored_measurement(OBSERVATION, 0.0, names, None, law),
    ).model()  # fmt: skip


def _same(one: CompressedRows, other: CompressedRows) -> bool:
    return (
        np.array_equal(one.offsets, other.offsets)
        and np.array_equal(one.columns, other.columns)
        and np.array_equal(one.values, other.values)
    )


def _pairs_model(pomdp: Pomdp, tables: Tables, comment: PairsComment) -> Model:
    """Return the model of a file with a comment line of version 2; a `ModelError` says where the two do not agree."""
    check_sizes(comment, pomdp.states.count, pomdp.actions.count, pomdp.observations.count)
    layout = FileLayout.of(comment)
    for what, expected, found in (
        ("states", layout.states, pomdp.states.names),
        ("actions", layout.actions, pomdp.actions.names),
        ("observations", layout.observations, pomdp.observations.names),
    ):
        if expected != found:
            raise ModelError(f"it has other {what}")
    reader = _PairsReader(pomdp, tables, comment, layout)
    model = reader.model()
    _check_written_again(pomdp, tables, model)
    return model


class _PairsReader:
    """Finds the parts of a model in the tables of its file."""

    def __init__(self, pomdp: Pomdp, tables: Tables, comment: PairsComment, layout: FileLayout) -> None:
        self.pomdp, self.tables, self.comment, self.layout = pomdp, tables, comment, layout
        self.n_file_states = pomdp.states.count
        self.pair_number = {pair: number for number, pair in enumerate(layout.pairs)}

    def rows(self, pair: tuple[int, int], added: int = 0) -> tuple[int, int]:
        """Return the first row of the tables for the model's states under a pair, and the row after the last."""
        begin = self.pair_number[pair] * self.n_file_states
        return begin + added, begin + self.n_file_states

    def model(self) -> Model:
        comment, added = self.comment, self.layout.n_added
        n_states, n_actions = comment.n_states, comment.n_actions
        blind = [self.rows((action, 0), added) for action in range(n_actions)]
        moves = _stacked([self.tables.moves.part(*rows) for rows in blind])
        rewards = np.concatenate([self.tables.rewards_of(*rows) for rows in blind])
        if np.any(moves.columns < added):
            raise ModelError("a state leads to a state that is only there for the start")
        moves = CompressedRows(moves.offsets, moves.columns - added, moves.values)
        terminal = np.zeros(n_states, dtype=bool)
        if comment.ends:
            terminal = self._shows(self.tables.shown.part(*blind[0]), self.layout.end)
        moves, order = _by_state(moves, n_states, n_actions, terminal)
        measurements = [self._measurement(one, number, terminal) for number, one in enumerate(comment.measurements, 1)]
        passive = None if comment.passive is None else self._measurement(comment.passive, 0, terminal)
        return _parts(
            moves, rewards[order], terminal, self._initial(), comment.successor_rewards, measuring_cost=None,
            discount=self.pomdp.discount, reveal_start=comment.reveal_start, state_names=comment.state_names,
            action_names=comment.action_names, measurements=measurements, passive=passive,
        ).model()  # fmt: skip

    @staticmethod
    def _shows(rows: CompressedRows, observation: int) -> BoolArray:
        """Return for every row whether it shows one observation only, this one."""
        shows: BoolArray = rows.sizes() == 1
        shows &= rows.columns[np.minimum(rows.offsets[:-1], len(rows.columns) - 1)] == observation
        return shows

    def _initial(self) -> FloatArray:
        """Return the initial distribution, shape (S,): that of the file, or that to which `begin` leads."""
        starts = self.comment.starts
        if starts is None:
            return self.pomdp.start
        row = self.tables.moves.part(0, 1)
        initial = np.zeros(self.comment.n_states)
        if not np.array_equal(row.columns, np.arange(1, 1 + len(starts))):
            raise ModelError("its additional state 'begin' does not lead to the copies of the initial states")
        initial[starts] = row.values
        return initial

    def _measurement(self, given: Described, number: int, terminal: BoolArray) -> Measurement:
        """Return a measurement, 0 for the passive one, with the law that the observations of its pairs have."""
        law = None if given.n_outcomes is None else self._law(given, given.n_outcomes, number, terminal)
        with_actions = None if given.with_actions is None else tuple(given.with_actions)
        return stored_measurement(given.name, given.price, given.outcome_names, with_actions, law)

    def _law(self, given: Described, n_outcomes: int, number: int, terminal: BoolArray) -> Law:
        n_states, n_actions = self.comment.n_states, self.comment.n_actions
        allowed = range(n_actions) if given.with_actions is None else given.with_actions
        outcome_of = np.full(self.pomdp.observations.count, -1)
        outcome_of[self.layout.numbers[number]] = np.arange(n_outcomes)
        rows, outcomes, chances = [], [], []
        for action in allowed if given.by_action else list(allowed)[:1]:
            shown = self.tables.shown.part(*self.rows((action, number), self.layout.n_added))
            kept = ~terminal[shown.row_of_entry()]
            rows.append(shown.row_of_entry()[kept] + (action * n_states if given.by_action else 0))
            outcomes.append(outcome_of[shown.columns[kept]])
            chances.append(shown.values[kept])
        for action, state, outcome, chance in given.unused:
            if action >= n_actions or action in allowed or state >= n_states or not given.by_action:
                raise ModelError(
                    f"its measurement {given.name!r} has probabilities with an action that it does not have"
                )
            rows.append(np.array([action * n_states + state]))
            outcomes.append(np.array([outcome]))
            chances.append(np.array([chance]))
        row, seen, values = np.concatenate(rows), np.concatenate(outcomes), np.concatenate(chances)
        if np.any(seen < 0):
            raise ModelError(f"the pairs with {given.name!r} show observations that are no outcomes of it")
        order = np.lexsort((seen, row))
        offsets: IndexArray = np.searchsorted(
            row[order], np.arange((n_actions if given.by_action else 1) * n_states + 1)
        )
        return stored_law(n_outcomes, given.by_action, offsets, seen[order], values[order], given.name)


def _check_written_again(pomdp: Pomdp, tables: Tables, model: Model) -> None:
    """Raise a `ModelError` unless the file of the model says, up to rounding, what this file says."""
    text = "".join(pomdp_writer.lines(model))
    if text == pomdp.text:
        return
    again = read(text.encode())
    written = tables_of(again)
    if np.any(np.abs(again.start - pomdp.start) > EQUAL_WITHIN):
        raise ModelError("the start is another one")
    for what, mine, found in (
        ("transitions", written.moves, tables.moves),
        ("observations", written.shown, tables.shown),
    ):
        row = _first_difference(mine, found)
        if row >= 0:
            raise ModelError(f"the {what} {_of_row(pomdp, row)} are others than those that the comment implies")
    size = np.maximum(1.0, np.abs(written.rewards))
    wrong = ~(np.abs(written.rewards - tables.rewards) <= EQUAL_WITHIN * size)
    if wrong.any():
        entry = int(np.argmax(wrong))
        row = int(tables.moves.row_of_entry()[entry])
        raise ModelError(
            f"the reward {_of_row(pomdp, row)} is {tables.rewards[entry]:.6g}, the comment implies "
            f"{written.rewards[entry]:.6g}"
        )


def _of_row(pomdp: Pomdp, row: int) -> str:
    action, state = divmod(row, pomdp.states.count)
    return f"of action {pomdp.actions[action]!r} in state {pomdp.states[state]!r}"


def _first_difference(one: CompressedRows, other: CompressedRows) -> int:
    """Return the first row that differs by more than rounding, or -1."""
    if np.array_equal(one.offsets, other.offsets) and np.array_equal(one.columns, other.columns):
        apart = np.abs(one.values - other.values) > EQUAL_WITHIN
        return int(one.row_of_entry()[np.argmax(apart)]) if apart.any() else -1
    sizes = np.flatnonzero(one.offsets != other.offsets)
    row = int(sizes[0]) - 1 if sizes.size else len(one.offsets) - 2
    last = min(len(one.columns), len(other.columns))
    columns = np.flatnonzero(one.columns[:last] != other.columns[:last])
    if columns.size:
        row = min(row, int(one.row_of_entry()[columns[0]]))
    return row
