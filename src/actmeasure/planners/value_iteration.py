"""Values when looking is free: the bound that everything starts from, and the control that act-then-measure uses."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import optimize, sparse

from actmeasure.errors import PlanError
from actmeasure.kernels import value_iteration as kernel
from actmeasure.model import Model
from actmeasure.planners.clock import Clock
from actmeasure.structure import end_components
from actmeasure.transitions import FloatArray
from actmeasure.world import dynamics

__all__ = ["free_action_values", "mdp_values", "q_mdp", "repeat_values", "row_values"]

#: How exact the values are made, relatively; far below any tolerance that is asked for.
PRECISION = 1e-10
#: Sweeps between two looks at the clock.
SWEEPS_AT_ONCE = 20
#: Stands for the best row of every state instead of a given one.
ALL_ROWS: npt.NDArray[np.int64] = np.empty(0, np.int64)


def q_mdp(model: Model) -> FloatArray:
    """Action values when the state is always known for free, shape (S, A); 0 in terminal states.

    They are bounds from above on what is possible when looking costs, and exact to nine digits.
    """
    return free_action_values(model, Clock())


def free_action_values(model: Model, clock: Clock) -> FloatArray:
    """As `q_mdp`, within the time."""
    values = mdp_values(model, clock)
    actions = np.empty((model.n_states, model.n_actions))
    kernel.action_values(dynamics(model), model.discount, values, actions)
    return actions


def mdp_values(model: Model, clock: Clock) -> FloatArray:
    """Upper bounds on the values when looking is free, shape (S,), tight up to `PRECISION`."""
    if model.discount == 1:
        values = _undiscounted(model)
        clock.check("the values when looking is free")
        return values
    values = np.zeros(model.n_states)
    error = _settle(model, ALL_ROWS, False, values, clock)
    values[~model.terminal] += error
    return values


def _settle(model: Model, rows: npt.NDArray[np.int64], looking: bool, values: FloatArray, clock: Clock) -> float:
    """Sweep until the values are as exact as they can get; returns how far they still can be from their limit."""
    arrays = dynamics(model)
    amplified = model.discount / (1 - model.discount)
    while True:
        scale = 1 + float(np.abs(values).max())
        rounding = 4 * np.finfo(float).eps * scale
        enough = max(PRECISION * scale / amplified, rounding)
        change = kernel.sweeps(arrays, model.discount, rows, looking, values, enough, SWEEPS_AT_ONCE)
        clock.check("the values when looking is free")
        if change * amplified <= PRECISION * scale or change <= rounding:
            return max(change, rounding) * amplified


def row_values(model: Model, rows: npt.NDArray[np.int64], looking: bool, clock: Clock) -> FloatArray:
    """Lower bounds, tight up to `PRECISION`, on always taking the given row in each state, shape (S,); discount below 1."""
    values = np.zeros(model.n_states)
    error = _settle(model, rows, looking, values, clock)
    values[~model.terminal] -= error
    return values


def repeat_values(model: Model, clock: Clock) -> FloatArray:
    """Lower bounds on repeating one action for ever without looking, shape (S, A); discount below 1."""
    first = np.arange(model.n_states) * model.n_actions
    return np.column_stack([row_values(model, first + a, False, clock) for a in range(model.n_actions)])


def _undiscounted(model: Model) -> FloatArray:
    """Without discount the values are the least that no action beats, and no less than staying for nothing where one can."""
    n_states, n_actions = model.n_states, model.n_actions
    running = np.flatnonzero(~model.terminal)
    column = np.full(n_states, -1)
    column[running] = np.arange(len(running))
    rows = (running[:, None] * n_actions + np.arange(n_actions)).ravel()
    moves = model.transitions.stacked()[rows][:, running]
    own = sparse.csr_array(
        (np.ones(len(rows)), (np.arange(len(rows)), np.repeat(np.arange(len(running)), n_actions))), shape=moves.shape
    )
    least = np.full(len(running), -np.inf)
    for states, _ in end_components(model.transitions, model.terminal, allowed=model.rewards.ravel() == 0):
        least[column[states]] = 0.0
    result = optimize.linprog(
        np.ones(len(running)),
        A_ub=(moves - own).tocsr(),  # type: ignore[call-overload]
        b_ub=-model.rewards.ravel()[rows],
        bounds=np.column_stack([least, np.full(len(running), np.inf)]),
        method="highs",
    )
    if not result.success:
        raise PlanError(f"the values without discount could not be found ({result.message}); use a discount below 1")
    values = np.zeros(n_states)
    values[running] = result.x + 1e-9 * (1 + np.abs(result.x))  # the solver's own tolerance
    return values
