"""A slow, obvious planner: every blind plan from every known state, written out. No code shared with the library.

`w[x]` is the weight "in state x and still running". A plan that looks after k actions is worth what it earned, minus the price,
plus discount^k times w . V, where V are the values of known states. Plans are written out action by action; one that has not
looked yet is worth at most w . V (seeing the state for free cannot harm), and at least as much as repeating one action for ever.
"""

import itertools

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
