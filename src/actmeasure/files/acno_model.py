"""Build the model from a POMDP of the right form, and from our own comment line where it agrees with the rest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from actmeasure.errors import ModelError
from actmeasure.files.acno_form import Form, find_form
from actmeasure.files.acno_pairs import ROUNDING, IndexArray
from actmeasure.files.checks import Parts
from actmeasure.files.pomdp_tables import Pomdp, Words
from actmeasure.files.pomdp_text import BEGIN, BLIND, MEASURE, Comment, identifiers
from actmeasure.files.pomdp_writer import state_identifiers
from actmeasure.model import Model
from actmeasure.transitions import FloatArray

__all__ = ["build"]


def build(pomdp: Pomdp) -> Model:
    """The model that a POMDP describes; a `ModelError` says what breaks the form."""
    if pomdp.comment is not None and pomdp.comment.statements != pomdp.statements:
        raise ModelError(
            f"it has {pomdp.statements} lines of T, O and R, but had {pomdp.comment.statements} when it was written; the file is "
            "incomplete, or if it was changed on purpose, remove the comment '# actmeasure'"
        )
    with np.errstate(over="ignore", invalid="ignore"):  # differences of the largest numbers; infinity is refused later
        form = find_form(pomdp)
        parts, measured = _parts(pomdp, form)
        _check_start(pomdp, form.terminal)
        if pomdp.comment is not None:
            try:
                parts = _with_comment(parts, measured, pomdp, form, pomdp.comment)
            except ModelError as error:
                raise ModelError(
                    f"the comment '# actmeasure' does not agree with the rest of the file: {error}; "
                    "remove the comment if the rest is right"
                ) from error
    return parts.model()


def _parts(pomdp: Pomdp, form: Form) -> tuple[Parts, FloatArray]:
    """The model as the body of the file has it, and what each entry pays when measured.

    The rows of the blind actions, action after action, are put in the order of states and then actions; the rows of
    terminal states are left out.
    """
    n_states, n_actions = pomdp.states.count, len(form.pairs)
    blind = [form.moves[pair[0]] for pair in form.pairs]
    measuring = [form.moves[pair[1]] for pair in form.pairs]
    rows = np.concatenate([
        np.repeat(np.arange(n_states), np.diff(move.offsets)) * n_actions + action for action, move in enumerate(blind)
    ])  # fmt: skip
    order = np.argsort(rows, kind="stable")
    order = order[~form.terminal[rows[order] // n_actions]]
    rows = rows[order]
    paid, measured = (np.concatenate([move.rewards for move in moves])[order] for moves in (blind, measuring))
    offsets = np.searchsorted(rows, np.arange(n_states * n_actions + 1))
    varying = bool(np.any(paid != paid[offsets[rows]]))
    rewards = np.zeros(n_states * n_actions)
    rewards[rows] = paid
    parts = Parts(
        n_states=n_states,
        n_actions=n_actions,
        offsets=offsets,
        successors=np.concatenate([move.successors for move in blind])[order],
        probabilities=np.concatenate([move.probabilities for move in blind])[order],
        rewards=None if varying else rewards.reshape(n_states, n_actions),
        transition_rewards=paid if varying else None,
        terminal=form.terminal,
        initial=pomdp.start,
        measuring_cost=_cost(rows, paid, measured, (n_states, n_actions)),
        discount=pomdp.discount,
        reveal_start=bool(np.count_nonzero(pomdp.start) == 1),
        state_names=pomdp.states.names,
        action_names=form.names,
    )
    return parts, measured


def _cost(rows: IndexArray, paid: FloatArray, measured: FloatArray, shape: tuple[int, int]) -> float | FloatArray:
    """The cost of a look: one number where it is everywhere the same up to rounding, otherwise one per state and action.

    Where there are several differences to choose from, the one between the smallest rewards has lost the fewest bits.
    """
    costs = np.maximum(paid - measured, 0.0)
    best = costs[np.argmin(np.abs(paid))]
    if np.all(np.abs(costs - best) <= ROUNDING * np.maximum(1.0, np.abs(paid) + np.abs(measured))):
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


def _with_comment(parts: Parts, measured: FloatArray, pomdp: Pomdp, form: Form, comment: Comment) -> Parts:
    """The parts with what the comment knows better, once the two are seen to agree."""
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
    _check_cost(parts, measured, comment.measuring_cost)
    return replace(
        parts,
        measuring_cost=comment.measuring_cost,
        reveal_start=comment.reveal_start,
        state_names=comment.state_names,
        action_names=comment.action_names,
    )


def _check_actions(pomdp: Pomdp, form: Form, comment: Comment) -> None:
    n_actions = len(form.pairs)
    names = identifiers(comment.action_names, n_actions, "a")
    written = [name + kind for name in names for kind in (BLIND, MEASURE)]
    if len(names) != n_actions or written != pomdp.actions.names:
        raise ModelError("it has other actions")
    if form.pairs != [(2 * action, 2 * action + 1) for action in range(n_actions)]:
        raise ModelError("it has its actions in another order")


def _check_states(states: Words, comment: Comment) -> None:
    n_states = states.count - comment.begin
    names = state_identifiers(comment.state_names, n_states, comment.begin)
    if len(names) != n_states or [*([BEGIN] if comment.begin else []), *names] != states.names:
        raise ModelError("it has other states")


def _without_begin(parts: Parts, measured: FloatArray) -> tuple[Parts, FloatArray]:
    """Fold the additional first state back into a random start that is shown."""
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
    """The cost in the comment has to give the rewards of the measuring actions."""
    shape = (parts.n_states, parts.n_actions)
    if not isinstance(cost, float) and cost.shape != shape:
        raise ModelError(f"its measuring costs have the shape {cost.shape}, expected {shape}")
    rows = np.repeat(np.arange(len(parts.offsets) - 1), np.diff(parts.offsets))
    paid = parts.transition_rewards
    if paid is None:
        paid = np.asarray(parts.rewards).ravel()[rows]
    price = np.broadcast_to(np.asarray(cost, dtype=np.float64), shape).ravel()[rows]
    wrong = np.abs(paid - price - measured) > ROUNDING * np.maximum(1.0, np.abs(paid) + np.abs(price))
    if wrong.any():
        entry = int(np.argmax(wrong))
        raise ModelError(
            f"it has the measuring cost {price[entry]:.6g} where the rewards of blind and measuring action differ by "
            f"{paid[entry] - measured[entry]:.6g}"
        )
