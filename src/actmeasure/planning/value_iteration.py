"""Values when looking is free: the bound that everything starts from, and the control that act-then-measure uses.

Sweeps come close to the fixed point of T v = max_a (R_a + g P_a v) at the rate g, which is quick on large models at an ordinary
discount g, and hopeless near 1; small models then go on with policy iteration, a sparse linear solve a step. Neither is taken at
its word. Below 1, |T v - v| <= d in every state proves |v - v*| <= d / (1 - g). At discount 1, v bounds every policy from above
if v >= R_a + P_a v for every action and v >= 0 wherever an episode can go on for ever without reward: the expected rewards of n
steps are then at most v(s) - E[v(s_n)], and either the episode ends, or it stays in such a place, or what it loses has no limit.
Here v is the solution for rewards that are a little too high, so that the inequality survives rounding, and it is checked.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import linalg

from actmeasure import markov
from actmeasure.errors import PlanError
from actmeasure.kernels import value_iteration as kernel
from actmeasure.kernels.blind import relative_error
from actmeasure.model import Model
from actmeasure.model.structure import end_components
from actmeasure.model.transitions import FloatArray
from actmeasure.planning.budget import Clock
from actmeasure.world import dynamics

__all__ = ["free_action_values", "mdp_values", "q_mdp", "repeat_values", "row_values"]

#: How exact the values are made, relatively; far below any tolerance that is asked for.
PRECISION = 1e-10
#: Sweeps between two looks at the clock.
SWEEPS_AT_ONCE = 20
#: After so many sweeps, models of up to so many states go on with linear solves.
MOST_SWEEPS, MOST_FACTORED = 400, 5_000
#: Steps of policy iteration; it takes a handful.
MOST_IMPROVEMENTS = 200
#: Relative gain below which an action is no better than another.
NO_GAIN = 1e-13
#: So many rows are checked in exact arithmetic, where rounding leaves open whether they are proved.
MOST_EXACT = 10_000
#: Attempts to find values without discount that are proved, each with rewards raised by this factor more.
MOST_ATTEMPTS, RAISED = 20, 8.0
#: Stands for the best row of every state instead of a given one.
ALL_ROWS: npt.NDArray[np.int64] = np.empty(0, np.int64)


def q_mdp(model: Model) -> FloatArray:
    """Action values when the state is always known for free, shape (S, A); 0 in terminal states.

    They are bounds from above on what is possible when looking costs, and exact to nine digits.
    """
    return free_action_values(model, Clock())


def free_action_values(model: Model, clock: Clock, values: FloatArray | None = None) -> FloatArray:
    """As `q_mdp`, within the time, and from the values of `mdp_values`, shape (S,), where they are there already."""
    if values is None:
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
    """Bring values close to their limit, in place; returns how far they still can be from it.

    With `rows`, shape (S,), that row is taken in each state; if it is empty, the best one.
    """
    arrays = dynamics(model)
    most_entries = int(np.diff(model.transitions.offsets).max())
    per_step = float(relative_error(most_entries))
    contraction = model.discount * (1 + per_step)  # probabilities sum to 1 up to rounding
    paid = float(np.abs(model.rewards).max() + (model.measuring_costs.max() if looking else 0.0))
    if contraction > 1 - 1e-14:
        raise PlanError(
            f"the discount is 1 - {1 - model.discount:.2g}, so close to 1 that bounds are lost in rounding; use 1 - 1e-12, or 1"
        )
    swept, enough = 0, 0.0
    while True:
        if swept >= MOST_SWEEPS and model.n_states <= MOST_FACTORED:
            change = _solve_directly(model, rows, looking, values)
            clock.check("the values when looking is free")
            return (change + per_step * (paid + float(np.abs(values).max()))) / (1 - contraction)
        change = kernel.sweeps(arrays, model.discount, rows, looking, values, enough, SWEEPS_AT_ONCE)
        swept += SWEEPS_AT_ONCE
        clock.check("the values when looking is free")
        scale = paid + float(np.abs(values).max())
        rounding = per_step * scale
        enough = max(PRECISION * (1 + scale) * (1 - contraction), rounding)
        if change <= enough:
            return (change + rounding) / (1 - contraction)


def _solve_directly(model: Model, rows: npt.NDArray[np.int64], looking: bool, values: FloatArray) -> float:
    """Set values to the solution of their equations by linear solves, in place; returns the largest error in an equation."""
    running = np.flatnonzero(~model.terminal)
    rewards = model.rewards - model.measuring_costs if looking else model.rewards
    gains = np.empty((model.n_states, model.n_actions))
    chosen = rows[running] - running * model.n_actions if len(rows) else None
    change = np.inf
    for _ in range(MOST_IMPROVEMENTS):
        kernel.action_values(dynamics(model), model.discount, values, gains)
        if looking:
            gains -= model.measuring_costs
        now = gains[running, chosen] if len(rows) else gains[running].max(axis=1)
        error = float(np.abs(now - values[running]).max())
        if error >= change / 2:  # it does not get better than this
            break
        change, best = error, values.copy()
        taken = chosen if chosen is not None else gains[running].argmax(axis=1)
        moves = model.transitions.stacked()[running * model.n_actions + taken][:, running]
        factors = np.full(len(running), model.discount)
        values[running] = markov.discounted_sums(moves, factors, rewards[running, taken][:, None])[:, 0]
    values[:] = best
    return change


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
    """Upper bounds on the values without discount, shape (S,), proved as the module says.

    States among which an episode can go on for ever without reward are worth the same, at least 0, and are one place here, in
    which one may also rest. The other rows of all places are then searched by policy iteration, beginning with a policy that
    surely ends; each improvement does so too, because no cycle pays.
    """
    n_states, n_actions = model.n_states, model.n_actions
    place_of = np.arange(n_states)
    rests = np.zeros(n_states, dtype=bool)
    is_row = ~np.repeat(model.terminal, n_actions)
    for states, rows in end_components(model.transitions, model.terminal, allowed=model.rewards.ravel() == 0):
        place_of[states], rests[states] = states[0], True
        is_row[rows] = False
    _, place_of[~model.terminal] = np.unique(place_of[~model.terminal], return_inverse=True)
    n_places = int(place_of[~model.terminal].max(initial=-1)) + 1
    rows = np.flatnonzero(is_row)
    problem = _Ending(model, rows, place_of, n_places)
    can_rest = np.zeros(n_places, dtype=bool)
    can_rest[place_of[rests]] = True
    found = problem.best_values(can_rest)
    if found is None:
        raise PlanError(
            "without discount, bounds on the values cannot be proved: gains and losses cancel in a cycle, or ends are too "
            "unlikely for the rewards on the way to them; use a discount below 1"
        )
    values = np.zeros(n_states)
    values[~model.terminal] = found[place_of[~model.terminal]]
    return values


class _Ending:
    """Places and the rows that lead from one to others or to the end, for `_undiscounted`."""

    def __init__(
        self, model: Model, rows: npt.NDArray[np.int64], place_of: npt.NDArray[np.int64], n_places: int
    ) -> None:
        self.rewards: FloatArray = model.rewards.ravel()[rows]
        self.place: npt.NDArray[np.int64] = place_of[rows // model.n_actions]
        self.n_places = n_places
        taken = model.transitions.stacked()[rows].tocoo()
        row, to = taken.coords
        ends = model.terminal[to]
        self._ends: FloatArray = np.bincount(row[ends], weights=taken.data[ends], minlength=len(rows)).astype(
            np.float64
        )
        shape = (len(rows), n_places)
        self._moves = sparse.csr_array((taken.data[~ends], (row[~ends], place_of[to[~ends]])), shape=shape)
        self._moves.sum_duplicates()
        stays = self._moves.tocoo()
        own = stays.coords[1] == self.place[stays.coords[0]]
        #: Moves to other places; how often a row leaves its place is added up, as 1 minus how often it stays loses digits.
        self._away = sparse.csr_array((stays.data[~own], (stays.coords[0][~own], stays.coords[1][~own])), shape=shape)
        self._leaves: FloatArray = self._ends + np.asarray(self._away.sum(axis=1)).ravel()
        self._errors: FloatArray = relative_error(np.diff(model.transitions.offsets)[rows])
        self._model, self._rows, self._place_of = model, rows, place_of

    def best_values(self, can_rest: npt.NDArray[np.bool_]) -> FloatArray | None:
        """Return values, shape (n_places,), at least those of every row, and 0 where one can rest; None if not found."""
        policy = self._ending_policy(can_rest)
        values = self._improve(policy, self.rewards, can_rest)
        if values is None:
            return None
        raised = np.zeros(len(self.rewards))
        for _ in range(MOST_ATTEMPTS):
            if self._holds(values):
                return values
            raised = RAISED * np.maximum(raised, self._rounding(values))
            values = self._improve(policy, self.rewards + raised, can_rest)
            if values is None:
                return None
        return None

    def _holds(self, values: FloatArray) -> bool:
        """Return whether values, shape (n_places,), are surely at least those of every row."""
        slack = values[self.place] - (self.rewards + self._moves @ values)
        rounding = self._rounding(values)
        doubtful = np.flatnonzero(slack < rounding)
        if np.any(slack < -rounding):
            return False
        return len(doubtful) <= MOST_EXACT and all(self._holds_exactly(row, values) for row in doubtful.tolist())

    def _holds_exactly(self, row: int, values: FloatArray) -> bool:
        """Return whether a place is worth at least as much as one of its rows, in exact arithmetic."""
        successors, probabilities = self._model.transitions.row(*divmod(int(self._rows[row]), self._model.n_actions))
        whole, mean = Fraction(0), Fraction(0)
        for successor, probability in zip(successors.tolist(), probabilities.tolist(), strict=True):
            whole += Fraction(probability)
            if not self._model.terminal[successor]:
                mean += Fraction(probability) * Fraction(float(values[self._place_of[successor]]))
        return Fraction(float(values[self.place[row]])) >= Fraction(float(self.rewards[row])) + mean / whole

    def _rounding(self, values: FloatArray) -> FloatArray:
        """Bounds on the rounding of a row's value, shape (n_rows,); 0 where only zeros are added up."""
        return np.asarray(self._errors * (np.abs(self.rewards) + self._moves @ np.abs(values)))

    def _ending_policy(self, can_rest: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """Return a row for each place, shape (n_places,), such that the episode surely ends; -1 is resting."""
        policy = np.full(self.n_places, -2)
        policy[can_rest] = -1
        first = np.flatnonzero((self._ends > 0) & (policy[self.place] == -2))
        policy[self.place[first[::-1]]] = first[::-1]
        backward = self._away.tocsc()
        waiting = list(np.flatnonzero(policy > -2))
        while waiting:
            to = waiting.pop()
            for row in backward.indices[backward.indptr[to] : backward.indptr[to + 1]]:
                if policy[self.place[row]] == -2:
                    policy[self.place[row]] = row
                    waiting.append(self.place[row])
        return policy

    def _improve(
        self, policy: npt.NDArray[np.int64], rewards: FloatArray, can_rest: npt.NDArray[np.bool_]
    ) -> FloatArray | None:
        """Improve a policy, in place, until it is the best; returns its values, or None where these cannot be computed."""
        for _ in range(MOST_IMPROVEMENTS):
            values = self._evaluate(policy, rewards)
            if values is None:
                return None
            # The gain of a row against its place is computed from differences, so that staying often does not hide it.
            gains = rewards + self._away @ values - self._leaves * values[self.place]
            size = np.abs(rewards) + self._away @ np.abs(values) + self._leaves * np.abs(values[self.place])
            better = np.flatnonzero(gains > NO_GAIN * size)
            rest = can_rest & (values < 0)
            if not better.size and not rest.any():
                return values
            best = np.full(self.n_places, -np.inf)
            np.maximum.at(best, self.place[better], gains[better])
            chosen = better[gains[better] == best[self.place[better]]]
            policy[self.place[chosen]] = chosen
            policy[rest] = -1
        return None

    def _evaluate(self, policy: npt.NDArray[np.int64], rewards: FloatArray) -> FloatArray | None:
        """Solve leaves * v = rewards + away v for the rows of a policy, 0 where it rests."""
        going = np.flatnonzero(policy >= 0)
        values = np.zeros(self.n_places)
        if going.size:
            rows = policy[going]
            matrix = sparse.diags_array(self._leaves[rows]) - self._away[rows][:, going]
            try:
                values[going] = linalg.splu(sparse.csc_array(matrix)).solve(rewards[rows])
            except RuntimeError:  # "exactly singular"
                return None
        return values if np.isfinite(values).all() else None
