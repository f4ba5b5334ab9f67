r"""Models over a finite life: the same decision problem for a number of periods, and then over.

A state of the result is a pair (period, state). With discount g, periods T and final rewards f, an episode that does not end
before has the return

    sum over t < T of  g^t (reward - price in period t)  +  g^T f(state after the last action)

The period is a known part of the state: it only moves forward, so that no belief ever mixes two periods and nothing has to be
observed to know it. States come in the order of periods; behind them come the terminal states of the original, once each, and
the state *over*, in which life ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from actmeasure.errors import ModelError, quoted
from actmeasure.model.measurement import Measurement
from actmeasure.model.model import Model
from actmeasure.model.transitions import FloatArray, Transitions
from actmeasure.settings import real, whole

__all__ = ["Lifetime", "lifetime"]

#: Most pairs of state and action, times periods, of a model that is made.
MOST_ROWS = 50_000_000


@dataclass(frozen=True, eq=False)
class Lifetime:
    """How a model over a finite life was made, kept as its `origin`.

    Attributes
    ----------
    models : tuple of Model
        One for all periods, or one for each.
    periods : int
    final : float64 array, shape (S,), or None
    """

    models: tuple[Model, ...]
    periods: int
    final: FloatArray | None

    @property
    def is_stationary(self) -> bool:
        """Whether dynamics, rewards and prices are the same in every period."""
        return len(self.models) == 1

    def model(self, period: int) -> Model:
        """Return the model of a period."""
        return self.models[0 if self.is_stationary else period]


def lifetime(
    model: Model | Sequence[Model],
    periods: int | None = None,
    final: npt.ArrayLike | None = None,
    *,
    discount: float | None = None,
) -> Model:
    """Return the decision problem over a finite life as an ordinary model: exactly `periods` decisions, and then over.

    Parameters
    ----------
    model : Model, or a sequence of Model
        One model for all periods, or one for each, with equal states, actions, discount, and names and outcomes of measurements.
        The start is that of the first.
    periods : int, optional
        Number of decisions; with a sequence it may be left out.
    final : array of shape (S,), optional
        Reward for the state after the last action, worth `discount ** periods` of it; not for episodes that ended before. It is
        paid with the last action: undiscounted sums count it times `discount`.
    discount : float, optional
        Another discount, such as 1, which a finite life always allows.

    Examples
    --------
    >>> import actmeasure as am
    >>> machine = am.problems.maintenance()
    >>> am.lifetime(machine, periods=30)
    Model(331 states, 2 actions, measuring_cost=0.01, discount=0.95, 1 terminal)
    """
    models = _checked_models(model)
    periods = _checked_periods(periods, None if isinstance(model, Model) else len(models))
    first = models[0]
    factor = first.discount if discount is None else real(discount, "discount")
    ending = None if final is None else _checked_final(final, first)
    if periods * first.n_states * first.n_actions > MOST_ROWS:
        raise ModelError(
            f"{periods:,} periods of {first.n_states:,} states and {first.n_actions:,} actions are too many for one model "
            f"(at most {MOST_ROWS:,} pairs of state and action); use longer periods"
        )
    layout = _StatesOverTime.of(first, periods)
    made_of = Lifetime(models, periods, ending)
    table, rewards, transition_rewards = _dynamics(made_of, layout, factor)
    initial = np.zeros(layout.n_states)
    initial[layout.number[first.initial_states]] = first.initial_probabilities
    joint = Model.assemble(
        table, rewards, transition_rewards, layout.terminal, initial, None, factor, first.reveal_start,
        layout.names(first), first.action_names,
        [_over_time([one.measurements[m] for one in models], made_of, layout) for m in range(len(first.measurements))],
        None if first.passive is None else _over_time([one.passive for one in models], made_of, layout),  # type: ignore[misc]
    )  # fmt: skip
    return replace(joint, origin=made_of)


@dataclass(frozen=True, eq=False)
class _StatesOverTime:
    """The numbers of states over time.

    Attributes
    ----------
    running : int64 array, shape (n,)
        The states of the original that are not terminal.
    number : int64 array, shape (S,)
        Their numbers in the first period; in period `t` they are `t * n` higher. Terminal states have their only number.
    terminal : bool array, shape (n_states,)
        In the result.
    """

    running: npt.NDArray[np.int64]
    number: npt.NDArray[np.int64]
    terminal: npt.NDArray[np.bool_]
    periods: int

    @classmethod
    def of(cls, model: Model, periods: int) -> _StatesOverTime:
        running, ended = np.flatnonzero(~model.terminal), np.flatnonzero(model.terminal)
        number = np.zeros(model.n_states, dtype=np.int64)
        number[running] = np.arange(len(running))
        number[ended] = periods * len(running) + np.arange(len(ended))
        terminal = np.zeros(periods * len(running) + len(ended) + 1, dtype=bool)
        terminal[periods * len(running) :] = True
        return cls(running, number, terminal, periods)

    @property
    def n_states(self) -> int:
        return len(self.terminal)

    def after(
        self, successors: npt.NDArray[Any], terminal: npt.NDArray[np.bool_], period: int
    ) -> npt.NDArray[np.int64]:
        """Return the numbers of successors of a period's states, in the period that follows."""
        later = self.number[successors] + np.where(terminal[successors], 0, (period + 1) * len(self.running))
        is_last = period == self.periods - 1
        return np.where(is_last & ~terminal[successors], self.n_states - 1, later)

    def names(self, model: Model) -> list[str] | None:
        """Return names such as "worn, period 3"; None where states have none."""
        if model.state_names is None:
            return None
        running = [model.state_names[state] for state in self.running.tolist()]
        ended = [model.state_names[state] for state in np.flatnonzero(model.terminal).tolist()]
        timed = [f"{name}, period {period}" for period in range(self.periods) for name in running]
        over = "over" if "over" not in ended else "end of life"
        return [*timed, *ended, over]


def _checked_models(model: Any) -> tuple[Model, ...]:
    models = (model,) if isinstance(model, Model) else tuple(model) if isinstance(model, (list, tuple)) else ()
    if not models or not all(isinstance(one, Model) for one in models):
        raise ModelError(f"the model is {quoted(model)}, expected a Model, or a list with one for each period")
    first = models[0]
    for period, one in enumerate(models):
        for what, same in (
            ("states", one.n_states == first.n_states and one.state_names == first.state_names),
            ("terminal states", np.array_equal(one.terminal, first.terminal)),
            ("actions", one.n_actions == first.n_actions and one.action_names == first.action_names),
            ("discount", one.discount == first.discount),
            ("measurements", _kinds(one) == _kinds(first)),
        ):
            if not same:
                raise ModelError(
                    f"the model of period {period} differs from that of period 0 in its {what}; only dynamics, rewards, "
                    "prices and probabilities of outcomes may change"
                )
    return models


def _kinds(model: Model) -> list[Any]:
    """Return what must be equal in all periods: names, outcomes and actions of measurements."""
    shown = [*model.measurements, model.passive]
    return [
        None
        if one is None
        else (one.name, one.outcomes, one.with_actions, None if one.law is None else one.law.n_outcomes)
        for one in shown
    ]


def _checked_periods(periods: int | None, n_models: int | None) -> int:
    """Return the number of periods: that of the models in a list, where there is one."""
    if periods is None:
        if n_models is None:
            raise ModelError("periods is missing; say how many decisions there are: lifetime(model, periods=30)")
        return n_models
    count = whole(periods, "periods", 1)
    if n_models is not None and count != n_models:
        raise ModelError(
            f"periods is {count}, but there are {n_models} models; leave it out, or give one model, no list"
        )
    return count


def _checked_final(final: npt.ArrayLike, model: Model) -> FloatArray:
    try:
        values = np.array(final, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.zeros(0)
    if values.shape != (model.n_states,):
        raise ModelError(f"final is {quoted(final)}, expected {model.n_states} rewards, one for every state")
    values[model.terminal] = 0.0
    if not np.isfinite(values).all():
        state = int(np.argmin(np.isfinite(values)))
        raise ModelError(f"final[{model.describe_state(state)}] is {values[state]}, expected a finite number")
    values.setflags(write=False)
    return values


def _dynamics(
    made_of: Lifetime, layout: _StatesOverTime, discount: float
) -> tuple[Transitions, FloatArray, FloatArray | None]:
    """Return the transition table over time, the expected rewards, and those of each entry where a model has them."""
    first = made_of.models[0]
    n_actions, n_running, last = first.n_actions, len(layout.running), made_of.periods - 1
    by_entry = any(one.transition_rewards is not None for one in made_of.models)
    rewards = np.zeros((layout.n_states, n_actions))
    offsets, successors, chances, paid = [np.zeros(1, dtype=np.int64)], [], [], []
    size = 0
    kept: Any = None
    for period in range(made_of.periods):
        model = made_of.model(period)
        here = slice(period * n_running, (period + 1) * n_running)
        rewards[here] = model.rewards[layout.running]
        table = model.transitions
        if made_of.final is not None and period == last:
            gain = discount * np.asarray(table.stacked() @ made_of.final).reshape(model.rewards.shape)
            rewards[here] += gain[layout.running]
        if kept is not None and made_of.is_stationary and period < last:
            # As in the period before, one period later.
            counts, to, chance, earned = kept
            to = np.where(layout.terminal[to], to, to + n_running)
        else:
            counts, to, chance, earned = _rows(made_of, layout, period, discount)
        kept = (counts, to, chance, earned)
        offsets.append(size + np.cumsum(counts))
        size += len(to)
        successors.append(to)
        chances.append(chance)
        paid.append(earned)
    offsets.append(np.full((layout.n_states - made_of.periods * n_running) * n_actions, size))
    table = Transitions.checked(
        layout.n_states, n_actions, np.concatenate(offsets), np.concatenate(successors), np.concatenate(chances),
        layout.terminal,
    )  # fmt: skip
    if not by_entry:
        return table, rewards, None
    # Summed as readers of files do, so that a file read back is the same model to the last bit.
    earned = np.concatenate(paid)
    return table, table.stacked(table.probabilities * earned).sum(axis=1).reshape(rewards.shape), earned


def _rows(
    made_of: Lifetime, layout: _StatesOverTime, period: int, discount: float
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], FloatArray, FloatArray]:
    """Return the table's rows of one period: entries per row, successors, probabilities, and rewards of entries."""
    model = made_of.model(period)
    table, n_actions = model.transitions, model.n_actions
    earned = (
        np.repeat(model.rewards.ravel(), np.diff(table.offsets))
        if model.transition_rewards is None
        else model.transition_rewards
    )
    if made_of.final is not None and period == made_of.periods - 1:
        earned = earned + discount * made_of.final[table.successors]
    to = layout.after(table.successors, model.terminal, period)
    # Rows of terminal states are empty, so that the others keep their order.
    rows = layout.number[table.entry_rows() // n_actions] * n_actions + table.entry_rows() % n_actions
    order = np.lexsort((to, rows))
    rows, to, chance, earned = rows[order], to[order], table.probabilities[order], earned[order]
    is_first = np.ones(len(rows), dtype=bool)
    is_first[1:] = (rows[1:] != rows[:-1]) | (to[1:] != to[:-1])
    starts = np.flatnonzero(is_first)
    total = np.add.reduceat(chance, starts)
    merged = np.diff(np.append(starts, len(rows))) > 1
    mean = np.where(merged, np.add.reduceat(chance * earned, starts) / total, earned[starts])
    counts = np.bincount(rows[starts], minlength=len(layout.running) * n_actions)
    return counts, to[starts], total, mean


def _over_time(shown: list[Measurement], made_of: Lifetime, layout: _StatesOverTime) -> Measurement:
    """Return a measurement with its prices and law in every period; the law is that of the period whose action led to a state."""
    first, periods, n_running = shown[0], made_of.periods, len(layout.running)
    of_period = [shown[0 if made_of.is_stationary else period] for period in range(periods)]
    model = made_of.models[0]
    cost: float | FloatArray = first.cost
    if not (isinstance(cost, float) and all(isinstance(one.cost, float) and one.cost == cost for one in shown)):
        cost = np.zeros((layout.n_states, model.n_actions))
        tables = [one.table(model.n_states, model.n_actions)[layout.running] for one in of_period]
        cost[: periods * n_running] = np.concatenate(tables)
    if first.law is None:
        return Measurement.exact(first.name, cost, with_actions=first.with_actions)
    laws = []
    for action in range(model.n_actions) if any(one.law is not None and one.law.by_action for one in shown) else [0]:
        # States of period t + 1 were reached by the action of period t; none are reached in period 0, which repeats that law.
        rows = [
            one.law.of_action(action, model.n_states)[layout.running]  # type: ignore[union-attr]
            for one in [of_period[0], *of_period[: periods - 1]]
        ]
        ended = sparse.csr_array((layout.n_states - periods * n_running, first.law.n_outcomes))
        laws.append(sparse.csr_array(sparse.vstack([*rows, ended], format="csr")))
    given: Any = laws[0] if len(laws) == 1 else tuple(laws)
    return Measurement(first.name, cost, first.outcomes, first.with_actions, None, given, True)
