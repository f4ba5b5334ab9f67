"""A slow, obvious planner: every blind plan from every known state, written out. No code shared with the library.

`w[x]` is the weight "in state x and still running". A plan that looks after k actions is worth what it earned, minus the price,
plus discount^k times w . V, where V are the values of known states. Plans are written out action by action; one that has not
looked yet is worth at most w . V (seeing the state for free cannot harm), and at least as much as repeating one action for ever.
"""

import itertools
from fractions import Fraction

import numpy as np


class Judge:
    """Bounds `lower <= optimum <= upper` for a small model with a discount below 1, or one in which no state comes again."""

    def __init__(self, model, precision=1e-6, most_plans=40_000, deepest=60):
        self.P, self.R, self.costs = (
            model.transitions.dense().copy(),
            np.array(model.rewards),
            np.array(model.measuring_costs),
        )
        self.discount, self.terminal = model.discount, np.array(model.terminal)
        self.P[:, :, self.terminal] = 0.0  # mass that ends is dropped
        self.most_plans = most_plans
        states = np.flatnonzero(~self.terminal)
        self.repeats = self._repeats()
        self.above, self.below = self._free_values(), self.repeats.max(axis=1)
        roots = {int(s): np.eye(len(self.R))[s] for s in states}
        for depth in range(2, deepest, 2):
            unfinished = self._improve(roots, depth)
            start = self._start(model, depth)
            self.lower, self.upper = start
            if self.upper - self.lower < precision or unfinished:
                break

    def _free_values(self):
        """Upper bounds: the values if every look were free."""
        steps = len(self.R) if self.discount == 1 else 1 / (1 - self.discount)
        values = np.full(len(self.R), np.abs(self.R).max() * steps)
        values[self.terminal] = 0.0
        for _ in range(2000):
            values = (self.R + self.discount * self.P @ values).max(axis=1)
            values[self.terminal] = 0.0
        return values

    def _repeats(self):
        """Worth of each action repeated for ever, shape (S, A)."""
        n_states, n_actions = self.R.shape
        columns = [
            np.linalg.solve(np.eye(n_states) - self.discount * self.P[:, a], self.R[:, a]) for a in range(n_actions)
        ]
        return np.where(self.terminal[:, None], 0.0, np.column_stack(columns))

    def _improve(self, roots, depth):
        """Value iteration with all plans of up to `depth` actions; returns whether some were too many to write out."""
        written = {s: self._plans(root, depth, self.below[s]) for s, root in roots.items()}
        for _ in range(1000):
            before = self.above.copy(), self.below.copy()
            for s, plans in written.items():
                self.above[s] = min(self.above[s], self._best(plans, self.above, open_ended="above"))
                self.below[s] = max(self.below[s], self._best(plans, self.below, open_ended="below"))
            if np.abs(before[0] - self.above).max() + np.abs(before[1] - self.below).max() < 1e-13:
                break
        return any(plans[2] for plans in written.values())

    def _plans(self, root, depth, at_least):
        """(what a look plan earned, discounted weights after it), (the same for open ends), whether there were too many.

        Plans are written out as long as they may be worth more than `at_least`.
        """
        looks, ends = [], []
        earned, weights, factor, too_many = np.zeros(1), root[None, :], 1.0, False
        for _ in range(depth):
            if len(earned) * self.R.shape[1] > self.most_plans:
                too_many = True
                break
            after = [earned + factor * weights @ self.R[:, a] for a in range(self.R.shape[1])]
            prices = [factor * weights @ self.costs[:, a] for a in range(self.R.shape[1])]
            moved = [weights @ self.P[:, a] for a in range(self.R.shape[1])]
            earned, weights, factor = np.concatenate(after), np.concatenate(moved), factor * self.discount
            looks.append((earned - np.concatenate(prices), factor * weights))
            hopeful = earned + factor * weights @ self.above >= at_least - 1e-12
            earned, weights = earned[hopeful], weights[hopeful]
        ends = (earned, factor * weights)
        return (np.concatenate([e for e, _ in looks]), np.concatenate([w for _, w in looks])), ends, too_many

    def _best(self, plans, values, open_ended):
        (earned, weights), (end_earned, end_weights), _ = plans
        best = (earned + weights @ values).max()
        if len(end_earned) == 0:
            return best
        ahead = end_weights @ self.above if open_ended == "above" else (end_weights @ self.repeats).max(axis=1)
        return max(best, (end_earned + ahead).max())

    def _start(self, model, depth):
        start = np.zeros(len(self.R))
        start[model.initial_states] = model.initial_probabilities
        if model.reveal_start or len(model.initial_states) == 1:
            return float(start @ self.below), float(start @ self.above)
        worst = float((start @ self.repeats).max())
        plans = self._plans(start, depth, worst)
        lower = max(worst, self._best(plans, self.below, open_ended="below"))
        return float(lower), float(max(lower, self._best(plans, self.above, open_ended="above")))


def best_of_all_schedules(model, longest):
    """The best of all schedules whose plans look after at most `longest` actions, or repeat one action for ever.

    For a known start. Every combination of one such plan per state is evaluated by a linear solve of its own.
    """
    P, R, costs = model.transitions.dense().copy(), np.array(model.rewards), np.array(model.measuring_costs)
    P[:, :, model.terminal] = 0.0
    states = np.flatnonzero(~np.array(model.terminal))
    start = np.zeros(len(R))
    start[model.initial_states] = model.initial_probabilities
    options = {int(s): _options(P, R, costs, model.discount, int(s), longest) for s in states}
    best = -np.inf
    for chosen in itertools.product(*options.values()):
        constants, moves = np.zeros(len(R)), np.zeros((len(R), len(R)))
        for s, (constant, weights) in zip(options, chosen, strict=True):
            constants[s], moves[s] = constant, weights
        best = max(best, start @ np.linalg.solve(np.eye(len(R)) - moves, constants))
    return float(best)


def _options(P, R, costs, discount, state, longest):
    """Every plan from a state as (what it earns until the look, discounted weights at the look)."""
    n_states, n_actions = R.shape
    found = []
    for action in range(n_actions):
        worth = np.linalg.solve(np.eye(n_states) - discount * P[:, action], R[:, action])
        found.append((worth[state], np.zeros(n_states)))
    for length in range(1, longest + 1):
        for actions in itertools.product(range(n_actions), repeat=length):
            earned, weights, factor = 0.0, np.eye(n_states)[state], 1.0
            for step, action in enumerate(actions):
                earned += factor * weights @ R[:, action]
                if step == length - 1:
                    earned -= factor * weights @ costs[:, action]
                weights, factor = weights @ P[:, action], factor * discount
            found.append((earned, factor * weights))
    return found


def exact_value(model, schedule):
    """The discounted return of a schedule from the start as a Fraction, or None where it has no finite value.

    Rows of the model are taken as they are stored, divided by their exact sums.
    """
    world = _ExactWorld(model)
    return world.value_of({state: schedule[state] for state in schedule}, _start_plan(model, schedule))


def exact_value_of_best_found(model, longest):
    """The exact value of a schedule that is good: the best one by floating-point value iteration over short plans."""
    import actmeasure as am

    P, R, costs = model.transitions.dense().copy(), np.array(model.rewards), np.array(model.measuring_costs)
    P[:, :, model.terminal] = 0.0
    states = [int(s) for s in np.flatnonzero(~np.array(model.terminal))]
    plans = [
        am.BlindPlan(actions, then="measure")
        for length in range(1, longest + 1)
        for actions in itertools.product(range(R.shape[1]), repeat=length)
    ]
    ends = [am.BlindPlan((action,), then="repeat", repeat=1) for action in range(R.shape[1])]
    options = {s: [(*_float_option(P, R, costs, model.discount, s, plan), plan) for plan in plans] for s in states}
    for action, plan in enumerate(ends):
        matrix = np.eye(len(R)) - model.discount * P[:, action]
        if np.linalg.cond(matrix) < 1e14:
            worth = np.linalg.solve(matrix, R[:, action])
            for s in states:
                options[s].append((worth[s], np.zeros(len(R)), plan))
    values = np.zeros(len(R))
    for _ in range(300):
        values = np.array(
            [max(c + w @ values for c, w, _ in options[s]) if s in options else 0.0 for s in range(len(R))]
        )
    chosen = {s: max(options[s], key=lambda option: option[0] + option[1] @ values)[2] for s in states}
    first = None
    if not model.reveal_start and len(model.initial_states) > 1:
        start = np.zeros(len(R))
        start[model.initial_states] = model.initial_probabilities
        first = max(plans, key=lambda plan: _worth(P, R, costs, model.discount, start, plan, values))
    return _ExactWorld(model).value_of(chosen, first)


def _start_plan(model, schedule):
    known = model.reveal_start or len(model.initial_states) == 1
    return None if known else schedule.start_plan(model)


def _worth(P, R, costs, discount, weights, plan, values):
    earned, factor = 0.0, 1.0
    for step, action in enumerate(plan.actions):
        earned += factor * weights @ R[:, action]
        if step == len(plan.actions) - 1:
            earned -= factor * weights @ costs[:, action]
        weights, factor = weights @ P[:, action], factor * discount
    return earned + factor * weights @ values


def _float_option(P, R, costs, discount, state, plan):
    zero = np.zeros(len(R))
    here = np.eye(len(R))[state]
    constant = _worth(P, R, costs, discount, here, plan, zero)
    weights, factor = here, 1.0
    for action in plan.actions:
        weights, factor = weights @ P[:, action], factor * discount
    return constant, factor * weights


class _ExactWorld:
    """A small model in exact arithmetic; terminal successors are dropped."""

    def __init__(self, model):
        self.n_states, self.discount = model.n_states, Fraction(model.discount)
        terminal = np.array(model.terminal)
        dense = model.transitions.dense()
        self.rows = {}
        for s in range(model.n_states):
            for a in range(model.n_actions):
                row = {j: Fraction(float(p)) for j, p in enumerate(dense[s, a]) if p > 0}
                whole = sum(row.values())
                self.rows[s, a] = {j: p / whole for j, p in row.items() if not terminal[j]} if whole else {}
        self.R = [[Fraction(float(r)) for r in row] for row in model.rewards]
        self.costs = [[Fraction(float(c)) for c in row] for row in model.measuring_costs]
        whole = sum(Fraction(float(p)) for p in model.initial_probabilities)
        self.start = {
            int(s): Fraction(float(p)) / whole
            for s, p in zip(model.initial_states, model.initial_probabilities, strict=True)
        }

    def value_of(self, plans, first):
        """Value of plans {state: BlindPlan}; `first` is the plan for a start that is not shown, or None."""
        states = sorted(plans)
        equations, constants = [], []
        for s in states:
            option = self.option({s: Fraction(1)}, plans[s])
            if option is None:
                return None
            constant, weights = option
            equations.append([Fraction(int(s == t)) - weights.get(t, 0) for t in states])
            constants.append(constant)
            if any(t not in plans for t in weights):
                return None
        solved = solve_exactly(equations, constants)
        if solved is None:
            return None
        values = dict(zip(states, solved, strict=True))
        if first is None:
            return sum((p * values[s] for s, p in self.start.items()), Fraction(0))
        option = self.option(self.start, first)
        if option is None or any(t not in values for t in option[1]):
            return None
        return option[0] + sum((w * values[t] for t, w in option[1].items()), Fraction(0))

    def option(self, weights, plan):
        """(what a plan earns until the state is known, discounted weights then), or None where it never stops earning."""
        earned, factor = Fraction(0), Fraction(1)
        for step, action in enumerate(plan.actions):
            earned += factor * sum((w * self.R[s][action] for s, w in weights.items()), Fraction(0))
            if plan.then == "measure" and step == len(plan.actions) - 1:
                earned -= factor * sum((w * self.costs[s][action] for s, w in weights.items()), Fraction(0))
            weights, factor = self.moved(weights, action), factor * self.discount
        if plan.then == "repeat":
            if not weights:
                return earned, {}
            tail = self.for_ever(plan.actions[-plan.repeat :])
            return None if tail is None else (earned + factor * sum(w * tail[s] for s, w in weights.items()), {})
        return earned, {s: factor * w for s, w in weights.items()}

    def moved(self, weights, action):
        after = {}
        for s, w in weights.items():
            for j, p in self.rows[s, action].items():
                after[j] = after.get(j, Fraction(0)) + w * p
        return after

    def for_ever(self, actions):
        """Worth of a cycle of actions repeated for ever from each state, or None."""
        constants, moves = [], []
        for s in range(self.n_states):
            weights, earned, factor = {s: Fraction(1)}, Fraction(0), Fraction(1)
            for action in actions:
                earned += factor * sum((w * self.R[x][action] for x, w in weights.items()), Fraction(0))
                weights, factor = self.moved(weights, action), factor * self.discount
            constants.append(earned)
            moves.append([Fraction(int(s == t)) - factor * weights.get(t, 0) for t in range(self.n_states)])
        return solve_exactly(moves, constants)


def solve_exactly(matrix, right):
    """Gaussian elimination with Fractions; None where the matrix is singular."""
    rows = [[*row, r] for row, r in zip(matrix, right, strict=True)]
    size = len(rows)
    for column in range(size):
        pivot = next((i for i in range(column, size) if rows[i][column] != 0), None)
        if pivot is None:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for i in range(size):
            if i != column and rows[i][column] != 0:
                ratio = rows[i][column] / rows[column][column]
                rows[i] = [x - ratio * y for x, y in zip(rows[i], rows[column], strict=True)]
    return [row[-1] / row[i] for i, row in enumerate(rows)]
