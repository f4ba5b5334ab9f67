"""Models of `.pomdp` files without exact looks: any discrete POMDP, and what this package writes of models with measurements.

A file without a comment line is read as a plain POMDP: no measurements, and the observations as passive outcomes. The
comment line of version 2 tells which pairs of action and measurement the actions are. The model that results is then written
again, and a file that says something else than that is refused.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from actmeasure.errors import ModelError
from actmeasure.files import pomdp_reader, pomdp_writer
from actmeasure.files.checks import Parts
from actmeasure.files.laws import stored_law, stored_measurement
from actmeasure.files.pomdp_pairs import Described, Layout, PairsComment, check_sizes
from actmeasure.files.pomdp_reader import Pomdp
from actmeasure.files.pomdp_tables import IndexArray, Rows, Tables, tables_of
from actmeasure.model import Measurement, Model
from actmeasure.model.measurement import Law
from actmeasure.model.transitions import FloatArray

__all__ = ["observed_model", "pairs_model", "plain_model"]

BoolArray = npt.NDArray[np.bool_]

#: Name of the passive measurement whose outcomes are the observations of a plain POMDP.
OBSERVATION = "observation"
#: Largest accepted difference between numbers that should be equal, relative to their size where that is above 1.
ROUNDING = 1e-9


def plain_model(pomdp: Pomdp, tables: Tables) -> Model:
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
    moves, rewards = _by_state(tables.moves, tables.rewards, n_states, n_actions, terminal)
    return _parts(
        moves, rewards, (n_states, n_actions), terminal, start, discount, reveal_start,
        state_names, action_names, [], stored_measurement(OBSERVATION, 0.0, names, None, law), None,
    ).model()  # fmt: skip


def _same(one: Rows, other: Rows) -> bool:
    return (
        np.array_equal(one.offsets, other.offsets)
        and np.array_equal(one.columns, other.columns)
        and np.array_equal(one.values, other.values)
    )


def _by_state(
    moves: Rows, rewards: FloatArray, n_states: int, n_actions: int, terminal: BoolArray
) -> tuple[Rows, FloatArray]:
    """Return rows in the order of states and then actions, without those of terminal states, and the reward of each entry."""
    action, state = np.divmod(moves.row_of_entry(), n_states)
    rows = state * n_actions + action
    order = np.argsort(rows, kind="stable")
    order = order[~terminal[state[order]]]
    offsets = np.searchsorted(rows[order], np.arange(n_states * n_actions + 1))
    return Rows(offsets, moves.columns[order], moves.values[order]), rewards[order]


def _parts(
    moves: Rows,
    rewards: FloatArray,
    sizes: tuple[int, int],
    terminal: BoolArray,
    initial: FloatArray,
    discount: float,
    reveal_start: bool,
    state_names: list[str] | None,
    action_names: list[str] | None,
    measurements: list[Measurement],
    passive: Measurement | None,
    successor_rewards: bool | None,
) -> Parts:
    """Return the contents of a file; `successor_rewards` None keeps rewards per successor only where they differ within a row."""
    rows = moves.row_of_entry()
    varying = bool(np.any(rewards != rewards[moves.offsets[rows]]))
    if successor_rewards is False and varying:
        raise ModelError("it says that rewards do not depend on the successor, but they do")
    keep = varying if successor_rewards is None else successor_rewards
    per_pair = np.zeros(sizes[0] * sizes[1])
    per_pair[rows] = rewards
    return Parts(
        n_states=sizes[0],
        n_actions=sizes[1],
        offsets=moves.offsets,
        successors=moves.columns,
        probabilities=moves.values,
        rewards=None if keep else per_pair.reshape(sizes),
        transition_rewards=rewards if keep else None,
        terminal=terminal,
        initial=initial,
        measuring_cost=None,
        discount=discount,
        reveal_start=reveal_start,
        state_names=state_names,
        action_names=action_names,
        measurements=measurements,
        passive=passive,
    )


def pairs_model(pomdp: Pomdp, tables: Tables, comment: PairsComment) -> Model:
    """Return the model of a file with a comment line of version 2; a `ModelError` says where the two do not agree."""
    check_sizes(comment, pomdp.states.count, pomdp.actions.count, pomdp.observations.count)
    layout = Layout.of(comment)
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

    def __init__(self, pomdp: Pomdp, tables: Tables, comment: PairsComment, layout: Layout) -> None:
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
        moves = Rows(moves.offsets, moves.columns - added, moves.values)
        terminal = np.zeros(n_states, dtype=bool)
        if comment.ends:
            terminal = self._shows(self.tables.shown.part(*blind[0]), self.layout.end)
        moves, rewards = _by_state(moves, rewards, n_states, n_actions, terminal)
        measurements = [self._measurement(one, number, terminal) for number, one in enumerate(comment.measurements, 1)]
        passive = None if comment.passive is None else self._measurement(comment.passive, 0, terminal)
        return _parts(
            moves, rewards, (n_states, n_actions), terminal, self._initial(), self.pomdp.discount,
            comment.reveal_start, comment.state_names, comment.action_names, measurements, passive,
            comment.successor_rewards,
        ).model()  # fmt: skip

    @staticmethod
    def _shows(rows: Rows, observation: int) -> BoolArray:
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
        return stored_measurement(given.name, given.cost, given.outcomes, given.with_actions, law)

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
        row, found, values = np.concatenate(rows), np.concatenate(outcomes), np.concatenate(chances)
        if np.any(found < 0):
            raise ModelError(f"the pairs with {given.name!r} show observations that are no outcomes of it")
        order = np.lexsort((found, row))
        offsets: IndexArray = np.searchsorted(
            row[order], np.arange((n_actions if given.by_action else 1) * n_states + 1)
        )
        return stored_law(n_outcomes, given.by_action, offsets, found[order], values[order], given.name)


def _stacked(parts: list[Rows]) -> Rows:
    """Return rows one after the other."""
    sizes = np.concatenate([part.sizes() for part in parts])
    return Rows(
        np.concatenate([[0], np.cumsum(sizes)]),
        np.concatenate([part.columns for part in parts]),
        np.concatenate([part.values for part in parts]),
    )


def _check_written_again(pomdp: Pomdp, tables: Tables, model: Model) -> None:
    """Raise a `ModelError` unless the file of the model says, up to rounding, what this file says."""
    text = "".join(pomdp_writer.lines(model))
    if text == pomdp.text:
        return
    again = pomdp_reader.read(text.encode())
    written = tables_of(again)
    if np.any(np.abs(again.start - pomdp.start) > ROUNDING):
        raise ModelError("the start is another one")
    for what, mine, found in (
        ("transitions", written.moves, tables.moves),
        ("observations", written.shown, tables.shown),
    ):
        row = _first_difference(mine, found)
        if row >= 0:
            raise ModelError(f"the {what} {_of_row(pomdp, row)} are others than those that the comment implies")
    size = np.maximum(1.0, np.abs(written.rewards))
    wrong = ~(np.abs(written.rewards - tables.rewards) <= ROUNDING * size)
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


def _first_difference(one: Rows, other: Rows) -> int:
    """Return the first row that differs by more than rounding, or -1."""
    if np.array_equal(one.offsets, other.offsets) and np.array_equal(one.columns, other.columns):
        apart = np.abs(one.values - other.values) > ROUNDING
        return int(one.row_of_entry()[np.argmax(apart)]) if apart.any() else -1
    sizes = np.flatnonzero(one.offsets != other.offsets)
    row = int(sizes[0]) - 1 if sizes.size else len(one.offsets) - 2
    last = min(len(one.columns), len(other.columns))
    columns = np.flatnonzero(one.columns[:last] != other.columns[:last])
    if columns.size:
        row = min(row, int(one.row_of_entry()[columns[0]]))
    return row
