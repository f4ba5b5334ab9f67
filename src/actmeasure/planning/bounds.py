"""Bounds on the optimum that need no search: values with free looks, the fast informed bound, and values of simple plans.

Write g for the discount, R_a and P_a for the rewards and transition probabilities of action a.

*Free looks* (`mdp_values`): the values of the MDP in which the state is always known bound the optimum from above. Value
iteration approaches the fixed point of T v = max_a (R_a + g P_a v) at the rate g, which is fast at an ordinary discount and
useless near 1; small models then go on with policy iteration, a sparse linear solve a step. The result is not trusted but proved.
Below 1, |T v - v| <= d in every state implies |v - v*| <= d / (1 - g), so v + d / (1 - g) is an upper bound, and likewise
v - d / (1 - g) a lower bound on the values of a fixed policy.
At discount 1, v bounds every policy from above if v >= R_a + P_a v for every action and v >= 0 in every state of a set in which
an episode can stay for an unlimited time without reward: by induction the expected rewards of n steps are at most
v(s) - E[v(s_n)], and either the episode ends, or it stays in such a set, or its losses have no limit. There v is the solution for
rewards that are raised slightly, so that the inequality survives rounding, and the inequality is checked.

*Fast informed bound* (`informed_bounds`): the state before the last action is shown for free at every step. It is tighter.

*Control* (`Control`): the action that is best if the state were known from the next step on (Q_MDP), as act-then-measure acts.

*Simple plans* (`first_bounds`): repeating one action, and looking at every step, are lower bounds.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import linalg

from actmeasure import markov
from actmeasure.belief import Belief
from actmeasure.errors import PlanError
from actmeasure.kernel_arrays import control_dynamics, dynamics
from actmeasure.kernels.belief_graph import Bounds
from actmeasure.kernels.dynamics import EPSILON, Dynamics, action_values, informed_sweep, relative_error, sweeps
from actmeasure.kernels.stopping import CONTROL_TIE
from actmeasure.model import Model
from actmeasure.model.structure import end_components
from actmeasure.model.transitions import FloatArray
from actmeasure.planning.budget import Budget
from actmeasure.settings import LARGEST_RETURN

__all__ = [
    "Control", "first_bounds", "free_action_values", "informed_bounds", "mdp_values", "mean_bound", "q_mdp", "repeat_values",
    "row_values", "start_bound",
]  # fmt: skip

#: A price that is never worth paying: more than all rewards of a model can make up for, and within what a model may have.
PROHIBITIVE = 10 * LARGEST_RETURN
#: Without discount, control is taken from values at this discount, which prefer ending sooner.
ALMOST_ONE = 0.999


# Bounds for the search.


def first_bounds(model: Model, budget: Budget, may_look: bool = True) -> Bounds:
    """Return the bounds that a search begins with; without `may_look`, for schedules that never look.

    Upper bounds are the fast informed bound. Lower bounds are the values of simple plans: repeat one action, look at every step,
    or take one action with a look and then the better of these.
    """
    if not may_look:
        model = model.replace(measuring_cost=PROHIBITIVE)
    upper, upper_vectors = informed_bounds(model, budget)
    repeats = repeat_values(model, budget) if model.discount < 1 else _undiscounted_repeats(model)
    lower = repeats.max(axis=1)
    if may_look and not budget.is_out_of_time:
        lower = np.maximum(lower, _always(model, upper_vectors, budget))
    looks = np.empty((model.n_states, model.n_actions))
    action_values(dynamics(model), model.discount, lower, looks)
    looks -= model.measuring_costs
    looks[model.terminal] = 0.0
    lower_vectors = np.column_stack([looks, repeats])
    return Bounds(
        upper=upper,
        lower=np.minimum(lower, upper),
        upper_vectors=upper_vectors,
        lower_vectors=lower_vectors,
        ceiling=_ceiling(upper, upper_vectors),
        loss=np.maximum(0.0, -model.rewards.min(keepdims=True).ravel()),
    )


def _always(model: Model, vectors: FloatArray, budget: Budget) -> FloatArray:
    """Return lower bounds on the values of looking at every step, shape (S,), with the control that is greedy in upper bounds.

    `vectors` are the bounds per action of `informed_bounds`; without discount, those at `ALMOST_ONE` are used instead.
    """
    if model.discount == 1:
        _, vectors = informed_bounds(model.replace(discount=ALMOST_ONE), budget)
    rows = np.arange(model.n_states) * model.n_actions + vectors[:, 1::2].argmax(axis=1)
    if model.discount < 1:
        return row_values(model, rows, True, budget)
    return _undiscounted_rows(model, rows, model.rewards.ravel() - model.measuring_costs.ravel())


def _undiscounted_repeats(model: Model) -> FloatArray:
    """Return the values of repeating one action without end, without discount, shape (S, A)."""
    first = np.arange(model.n_states) * model.n_actions
    rewards = model.rewards.ravel()
    return np.column_stack([_undiscounted_rows(model, first + a, rewards) for a in range(model.n_actions)])


def _undiscounted_rows(model: Model, rows: npt.NDArray[np.int64], rewards: FloatArray) -> FloatArray:
    """Return the values of always taking the given row in each state, without discount, shape (S,); -infinity if undefined."""
    running = np.flatnonzero(~model.terminal)
    taken = model.transitions.stacked()[rows[running]]
    moves = taken[:, running]
    ending = np.asarray(taken[:, np.flatnonzero(model.terminal)].sum(axis=1), dtype=np.float64).ravel()
    recurrent = markov.recurrence(moves, ending, np.full(len(running), 1 / len(running)))
    values = np.zeros(model.n_states)
    try:
        values[running] = markov.undiscounted_values(moves, recurrent, rewards[rows[running]][:, None])[:, 0]
    except markov.RoundingError:  # no bound, then
        values[running] = -np.inf
    return np.where(np.isfinite(values), values, -np.inf)


# The fast informed bound.

#: Largest change of a bound in a sweep of `informed_bounds` that ends it, and most sweeps; the bounds are sound after each.
INFORMED_PRECISION, MOST_INFORMED_SWEEPS = 1e-8, 5000


def informed_bounds(
    model: Model, budget: Budget, free_values: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return the fast informed bound: upper bounds once a state is known, shape (S,), and per choice, shape (S, 2 A).

    Column 2 a is action a without a look, 2 a + 1 with one; see `informed_sweep` for the derivation. When the time is over
    the bounds are sound, and as tight as they got by then.

    Parameters
    ----------
    model : Model
    budget : Budget
    free_values : float64 array, shape (S,), optional
        Those of `mdp_values`, where they have been computed.
    """
    arrays = dynamics(model)
    values = mdp_values(model, budget) if free_values is None else free_values.copy()
    vectors = np.repeat(_action_bounds(model, values), 2, axis=1)
    vectors[:, 1::2] -= model.measuring_costs * (1 - 4 * EPSILON)
    vectors[model.terminal] = 0.0
    ceiling, scratch = _ceiling(values, vectors), np.empty(2 * model.n_actions)
    for _ in range(MOST_INFORMED_SWEEPS):
        change = informed_sweep(arrays, model.discount, values, vectors, ceiling, scratch)
        if change < INFORMED_PRECISION or budget.is_out_of_time:
            break
    return values, vectors


def start_bound(model: Model, values: FloatArray, vectors: FloatArray) -> float:
    """Return the upper bound at the start from those of `informed_bounds`."""
    if model.start_is_known:
        return mean_bound(model.initial_probabilities, values[model.initial_states])
    by_choice = vectors[model.initial_states]
    return max(mean_bound(model.initial_probabilities, by_choice[:, k]) for k in range(by_choice.shape[1]))


def mean_bound(probabilities: FloatArray, values: FloatArray) -> float:
    """Return the mean of values with these weights, both of shape (n,), rounded upwards."""
    mean = float(probabilities @ values)
    if len(values) == 1:
        return mean
    return mean + float(relative_error(len(values)) * (probabilities @ np.abs(values)))


def _action_bounds(model: Model, values: FloatArray) -> FloatArray:
    """Return upper bounds per action from those of states, shape (S, A), rounded upwards as in `informed_sweep`."""
    actions = np.empty((model.n_states, model.n_actions))
    action_values(dynamics(model), model.discount, values, actions)
    table = model.transitions
    ceiling = np.where(model.terminal, 0.0, np.maximum(values, 0.0))
    size = np.abs(model.rewards).ravel() + 2 * model.discount * (table.stacked() @ ceiling) + np.abs(actions).ravel()
    errors = relative_error(np.diff(table.offsets)) * size
    return np.asarray(np.where(model.terminal[:, None], 0.0, actions + errors.reshape(actions.shape)))


def _ceiling(values: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return numbers, shape (S,), that are at least 0 and at least every bound of the state, now and later."""
    return np.asarray(np.maximum(0.0, np.maximum(values, vectors.max(axis=1))))


# Values when looking is free.

#: Relative precision of the values; far below any usual tolerance.
PRECISION = 1e-10
#: Sweeps between two checks of the budget.
SWEEPS_AT_ONCE = 20
#: Number of sweeps after which models of up to `MOST_FACTORED` states go on with linear solves.
MOST_SWEEPS, MOST_FACTORED = 400, 5_000
#: Most steps of policy iteration, which usually takes a handful.
MOST_IMPROVEMENTS = 200
#: Relative gain below which an action is no better than another.
NO_GAIN = 1e-13
#: Most rows that are checked in exact arithmetic, where floating point leaves open whether their inequality holds.
MOST_EXACT = 10_000
#: Most attempts to prove values without discount, and the factor by which the raise of the rewards grows with each.
MOST_ATTEMPTS, RAISED = 20, 8.0
#: Argument of `_settle` that stands for maximising over all rows of a state, in place of one given row for each state.
ALL_ROWS: npt.NDArray[np.int64] = np.empty(0, np.int64)


def _arrays(model: Model) -> Dynamics:
    """Return the arrays of a model; those of one whose looks are not exact have no prices."""
    return dynamics(model) if model.is_exact_look_model else control_dynamics(model)


def q_mdp(model: Model) -> FloatArray:
    """Return the action values of the MDP in which the state is always known, shape (S, A); 0 in terminal states.

    They are upper bounds on the optimum when looking costs, and exact to nine digits.
    """
    return free_action_values(model, Budget())


def free_action_values(model: Model, budget: Budget, values: FloatArray | None = None) -> FloatArray:
    """Return the same as `q_mdp` within a budget, from the values of `mdp_values`, shape (S,), if these are given."""
    if values is None:
        values = mdp_values(model, budget)
    actions = np.empty((model.n_states, model.n_actions))
    action_values(_arrays(model), model.discount, values, actions)
    return actions


def mdp_values(model: Model, budget: Budget) -> FloatArray:
    """Return upper bounds on the values when looking is free, shape (S,), tight up to `PRECISION`."""
    if model.discount == 1:
        values = _undiscounted(model)
        budget.check("the values when looking is free")
        return values
    values = np.zeros(model.n_states)
    error = _settle(model, ALL_ROWS, False, values, budget)
    values[~model.terminal] += error
    return values


def _settle(model: Model, rows: npt.NDArray[np.int64], looking: bool, values: FloatArray, budget: Budget) -> float:
    """Iterate values, in place, until they are close to their fixed point v*; returns d with |values - v*| <= d in every state.

    With `rows`, shape (S,), that row is taken in each state; if it is empty, the best one. With q = g (1 + e) the contraction
    factor, e the relative rounding error of a back-up and `change` >= |T v - v| as computed, the exact |T v - v| is at most
    change + e (largest payment + max |v|), and d is that divided by 1 - q.
    """
    arrays = _arrays(model)
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
            budget.check("the values when looking is free")
            return (change + per_step * (paid + float(np.abs(values).max()))) / (1 - contraction)
        change = sweeps(arrays, model.discount, rows, looking, values, enough, SWEEPS_AT_ONCE)
        swept += SWEEPS_AT_ONCE
        budget.check("the values when looking is free")
        scale = paid + float(np.abs(values).max())
        rounding = per_step * scale
        enough = max(PRECISION * (1 + scale) * (1 - contraction), rounding)
        if change <= enough:
            return (change + rounding) / (1 - contraction)


def _solve_directly(model: Model, rows: npt.NDArray[np.int64], looking: bool, values: FloatArray) -> float:
    """Solve for values by policy iteration, in place; returns the largest residual |T v - v|, from which `_settle` gets its d."""
    running = np.flatnonzero(~model.terminal)
    rewards = model.rewards - model.measuring_costs if looking else model.rewards
    gains = np.empty((model.n_states, model.n_actions))
    chosen = rows[running] - running * model.n_actions if len(rows) else None
    change = np.inf
    for _ in range(MOST_IMPROVEMENTS):
        action_values(_arrays(model), model.discount, values, gains)
        if looking:
            gains -= model.measuring_costs
        now = gains[running, chosen] if len(rows) else gains[running].max(axis=1)
        error = float(np.abs(now - values[running]).max())
        if error >= change / 2:  # rounding prevents further progress
            break
        change, best = error, values.copy()
        taken = chosen if chosen is not None else gains[running].argmax(axis=1)
        moves = model.transitions.stacked()[running * model.n_actions + taken][:, running]
        factors = np.full(len(running), model.discount)
        values[running] = markov.discounted_sums(moves, factors, rewards[running, taken][:, None])[:, 0]
    values[:] = best
    return change


def row_values(model: Model, rows: npt.NDArray[np.int64], looking: bool, budget: Budget) -> FloatArray:
    """Return lower bounds on the values of always taking the given row in each state, shape (S,); discount below 1."""
    values = np.zeros(model.n_states)
    error = _settle(model, rows, looking, values, budget)
    values[~model.terminal] -= error
    return values


def repeat_values(model: Model, budget: Budget) -> FloatArray:
    """Return lower bounds on the values of repeating one action without end, shape (S, A); discount below 1."""
    first = np.arange(model.n_states) * model.n_actions
    return np.column_stack([row_values(model, first + a, False, budget) for a in range(model.n_actions)])


def _undiscounted(model: Model) -> FloatArray:
    """Return upper bounds on the values without discount, shape (S,), proved as the module says.

    States among which an episode can go on without end and without reward (an end component of the rows with reward 0) have the
    same value, at least 0. They form one group here, in which one may also stay; every other state is a group of its own. Policy
    iteration over the other rows begins with a policy that surely ends; so does each improvement of it, because no cycle pays.
    """
    n_states, n_actions = model.n_states, model.n_actions
    group_of = np.arange(n_states)
    stays_free = np.zeros(n_states, dtype=bool)
    is_row = ~np.repeat(model.terminal, n_actions)
    for states, rows in end_components(model.transitions, model.terminal, allowed=model.rewards.ravel() == 0):
        group_of[states], stays_free[states] = states[0], True
        is_row[rows] = False
    _, group_of[~model.terminal] = np.unique(group_of[~model.terminal], return_inverse=True)
    n_groups = int(group_of[~model.terminal].max(initial=-1)) + 1
    rows = np.flatnonzero(is_row)
    problem = _Ending(model, rows, group_of, n_groups)
    can_stay = np.zeros(n_groups, dtype=bool)
    can_stay[group_of[stays_free]] = True
    best = problem.best_values(can_stay)
    if not np.any(problem.rewards > 0):
        # Without positive rewards 0 is a bound too, which may be tighter where rounding enters, as where ends are unlikely.
        best = np.zeros(n_groups) if best is None else np.minimum(best, 0.0)
    if best is None:
        raise PlanError(
            "without discount, bounds on the values cannot be proved: gains and losses cancel in a cycle, or ends are too "
            "unlikely for the rewards on the way to them; use a discount below 1"
        )
    values = np.zeros(n_states)
    values[~model.terminal] = best[group_of[~model.terminal]]
    return values


class _Ending:
    """Groups of states and the rows that lead from one to others or to the end, for `_undiscounted`."""

    def __init__(
        self, model: Model, rows: npt.NDArray[np.int64], group_of: npt.NDArray[np.int64], n_groups: int
    ) -> None:
        self.rewards: FloatArray = model.rewards.ravel()[rows]
        self.group: npt.NDArray[np.int64] = group_of[rows // model.n_actions]
        self.n_groups = n_groups
        taken = model.transitions.stacked()[rows].tocoo()
        row, to = taken.coords
        ends = model.terminal[to]
        self._ends: FloatArray = np.bincount(row[ends], weights=taken.data[ends], minlength=len(rows)).astype(
            np.float64
        )
        shape = (len(rows), n_groups)
        self._moves = sparse.csr_array((taken.data[~ends], (row[~ends], group_of[to[~ends]])), shape=shape)
        self._moves.sum_duplicates()
        stays = self._moves.tocoo()
        own = stays.coords[1] == self.group[stays.coords[0]]
        #: Moves to other groups; the probability of leaving is added up, as 1 minus that of staying loses digits.
        self._away = sparse.csr_array((stays.data[~own], (stays.coords[0][~own], stays.coords[1][~own])), shape=shape)
        self._leaves: FloatArray = self._ends + np.asarray(self._away.sum(axis=1)).ravel()
        self._errors: FloatArray = relative_error(np.diff(model.transitions.offsets)[rows])
        self._model, self._rows, self._group_of = model, rows, group_of

    def best_values(self, can_stay: npt.NDArray[np.bool_]) -> FloatArray | None:
        """Return values v >= R + P v for every row, v >= 0 where one can stay, shape (n_groups,); None if not proved.

        The rewards are raised more and more until the computed values satisfy the inequality for the true rewards.
        """
        policy = self._ending_policy(can_stay)
        values = self._improve(policy, self.rewards, can_stay)
        if values is None:
            return None
        raised = np.zeros(len(self.rewards))
        for _ in range(MOST_ATTEMPTS):
            if self._holds(values):
                return values
            raised = RAISED * np.maximum(raised, self._rounding(values))
            values = self._improve(policy, self.rewards + raised, can_stay)
            if values is None:
                return None
        return None

    def _holds(self, values: FloatArray) -> bool:
        """Return whether values, shape (n_groups,), surely satisfy v >= R + P v for every row.

        Where the slack is within the rounding error, the inequality is checked in rational arithmetic.
        """
        slack = values[self.group] - (self.rewards + self._moves @ values)
        rounding = self._rounding(values)
        doubtful = np.flatnonzero(slack < rounding)
        if np.any(slack < -rounding):
            return False
        return len(doubtful) <= MOST_EXACT and all(self._holds_exactly(row, values) for row in doubtful.tolist())

    def _holds_exactly(self, row: int, values: FloatArray) -> bool:
        """Return whether v >= R + P v holds for one row, in rational arithmetic."""
        successors, probabilities = self._model.transitions.row(*divmod(int(self._rows[row]), self._model.n_actions))
        whole, mean = Fraction(0), Fraction(0)
        for successor, probability in zip(successors.tolist(), probabilities.tolist(), strict=True):
            whole += Fraction(probability)
            if not self._model.terminal[successor]:
                mean += Fraction(probability) * Fraction(float(values[self._group_of[successor]]))
        return Fraction(float(values[self.group[row]])) >= Fraction(float(self.rewards[row])) + mean / whole

    def _rounding(self, values: FloatArray) -> FloatArray:
        """Return bounds on the rounding error of R + P v, shape (n_rows,); 0 where only zeros are added up."""
        return np.asarray(self._errors * (np.abs(self.rewards) + self._moves @ np.abs(values)))

    def _ending_policy(self, can_stay: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """Return a row for each group, shape (n_groups,), such that the episode surely ends; -1 for staying."""
        policy = np.full(self.n_groups, -2)
        policy[can_stay] = -1
        first = np.flatnonzero((self._ends > 0) & (policy[self.group] == -2))
        policy[self.group[first[::-1]]] = first[::-1]
        backward = self._away.tocsc()
        waiting = list(np.flatnonzero(policy > -2))
        while waiting:
            to = waiting.pop()
            for row in backward.indices[backward.indptr[to] : backward.indptr[to + 1]]:
                if policy[self.group[row]] == -2:
                    policy[self.group[row]] = row
                    waiting.append(self.group[row])
        return policy

    def _improve(
        self, policy: npt.NDArray[np.int64], rewards: FloatArray, can_stay: npt.NDArray[np.bool_]
    ) -> FloatArray | None:
        """Improve a policy, in place, until it is optimal; returns its values, or None where these cannot be computed."""
        for _ in range(MOST_IMPROVEMENTS):
            values = self._evaluate(policy, rewards)
            if values is None:
                return None
            # The gain over the group's value is computed from moves that leave it, so that rare leaving does not hide it.
            gains = rewards + self._away @ values - self._leaves * values[self.group]
            size = np.abs(rewards) + self._away @ np.abs(values) + self._leaves * np.abs(values[self.group])
            better = np.flatnonzero(gains > NO_GAIN * size)
            stay = can_stay & (values < 0)
            if not better.size and not stay.any():
                return values
            best = np.full(self.n_groups, -np.inf)
            np.maximum.at(best, self.group[better], gains[better])
            chosen = better[gains[better] == best[self.group[better]]]
            policy[self.group[chosen]] = chosen
            policy[stay] = -1
        return None

    def _evaluate(self, policy: npt.NDArray[np.int64], rewards: FloatArray) -> FloatArray | None:
        """Solve leaves * v = rewards + away v for the rows of a policy, 0 where it stays; None where that is not possible."""
        going = np.flatnonzero(policy >= 0)
        values = np.zeros(self.n_groups)
        if going.size:
            rows = policy[going]
            matrix = sparse.diags_array(self._leaves[rows]) - self._away[rows][:, going]
            try:
                values[going] = linalg.splu(sparse.csc_array(matrix)).solve(rewards[rows])
            except RuntimeError:  # "exactly singular"
                return None
        return values if np.isfinite(values).all() else None


class Control:
    """Act-then-measure's control: the action with the highest mean value over a belief if looking were free from then on.

    Ties go to the first action; without discount, to the one that ends the episode sooner.

    Parameters
    ----------
    model : Model
    budget : Budget, optional
        Without limits by default.

    Attributes
    ----------
    bounds : float64 array, shape (S,)
        Upper bounds on the values of states when looking is free.
    values : float64 array, shape (S, A)
        The same of actions, up to rounding.
    tie_values : float64 array, shape (S, A)
        The highest mean of these decides between actions of equal value.
    """

    def __init__(self, model: Model, budget: Budget | None = None) -> None:
        budget = budget or Budget()
        self.model = model
        self.bounds: FloatArray = mdp_values(model, budget)
        self.values: FloatArray = free_action_values(model, budget, self.bounds)
        self.tie_values: FloatArray = np.zeros_like(self.values)
        if model.discount == 1:
            self.tie_values = free_action_values(model.replace(discount=ALMOST_ONE), budget)

    @property
    def actions(self) -> npt.NDArray[np.int64]:
        """The control action in every state once it is known, shape (S,); -1 in terminal states."""
        return np.where(self.model.terminal, -1, _choose(self.values, self.tie_values))

    def best_mean(self, belief: Belief) -> float:
        """Return the highest mean value of an action over a belief."""
        return float(belief.expected(self.values).max())

    def __call__(self, belief: Belief) -> int:
        return int(_choose(belief.expected(self.values), belief.expected(self.tie_values)))


def _choose(means: FloatArray, ties: FloatArray) -> npt.NDArray[np.int64]:
    """Return the actions (last axis) with the highest mean, and among equals the first with the highest tie value."""
    best = means.max(axis=-1, keepdims=True)
    ties = np.where(means >= best - CONTROL_TIE * (1 + np.abs(best)), ties, -np.inf)
    return np.asarray(np.argmax(ties >= ties.max(axis=-1, keepdims=True) - CONTROL_TIE, axis=-1))
