"""A slow interval around the optimum of any small model: a tree of beliefs, written out. No code shared with the planners.

Beliefs are unnormalised vectors w over states, mass that ends the episode is dropped. A decision d earns w . r_d and leads with
outcome o to w M_{d,o}, where M_{d,o}(s, t) = discount * P(s, a, t) Z(o | t, a). A leaf is worth at most as much as if the state
before each decision were shown a step later, and at least as much as the best action repeated without end. Leaves whose interval
is narrow are not written out.
"""

import dataclasses
import warnings

import numpy as np
from strategies import random_law, random_measurement

import actmeasure as am


class OutcomeJudge:
    """Bounds `lower <= optimum <= upper`; for a discount below 1, or a model in which every episode surely ends.

    Parameters
    ----------
    model : Model
    precision : float
        The width of the interval that is aimed at, relative to the largest value.
    most_beliefs : int
        The tree ends after so many.
    """

    def __init__(self, model, precision=1e-5, most_beliefs=3000, deepest=40):
        self.P = model.transitions.dense().copy()
        self.P[:, :, model.terminal] = 0.0
        self.P[model.terminal] = 0.0
        self.R = np.where(model.terminal[:, None], 0.0, model.rewards)
        self.discount = model.discount
        self.above, self.below = self._shown(), self._repeated()
        self.decisions = [self._decision(model, int(a), int(m)) for a, m in np.argwhere(model.allowed_decisions)]
        self.linear = self._informed()
        self.scale = max(1e-300, np.abs(self.above).max(), np.abs(self.below.max(axis=1)).max(), np.abs(self.R).max())
        start = np.zeros(model.n_states)
        start[model.initial_states] = model.initial_probabilities
        known = model.reveal_start or len(model.initial_states) == 1
        roots = [np.where(np.arange(len(start)) == s, start, 0.0) for s in model.initial_states] if known else [start]
        self.lower, self.upper = sum(self.leaf(w)[0] for w in roots), sum(self.leaf(w)[1] for w in roots)
        wanted = self.scale
        while wanted > precision * self.scale:
            wanted /= 8
            self.left = most_beliefs
            found = [self.interval(w, wanted, deepest) for w in roots]
            self.lower = max(self.lower, sum(low for low, _ in found))
            self.upper = min(self.upper, sum(high for _, high in found))
            if self.left < 0 or self.upper - self.lower <= precision * self.scale:
                break

    def _shown(self):
        """Return the values if the state were always shown, shape (S,)."""
        values = np.full(len(self.R), max(0.0, self.R.max()) / max(1 - self.discount, 1e-3))
        for _ in range(5000):
            before, values = values, (self.R + self.discount * self.P @ values).max(axis=1)
            if np.abs(values - before).max() <= 1e-15 * np.abs(values).max():
                break
        return values

    def _repeated(self):
        """Return the values of repeating one action, shape (S, A)."""
        eye = np.eye(len(self.R))
        return np.column_stack(
            [np.linalg.solve(eye - self.discount * self.P[:, a], self.R[:, a]) for a in range(self.R.shape[1])]
        )

    def _decision(self, model, action, measurement):
        """Return rewards, shape (S,), and a matrix for each outcome."""
        rewards = self.R[:, action].copy()
        shows = model.passive
        if measurement:
            shows = model.measurements[measurement - 1]
            rewards -= np.where(model.terminal, 0.0, shows.table(model.n_states, model.n_actions)[:, action])
        moves = self.discount * self.P[:, action]
        if shows is None:
            return rewards, [moves]
        Z = np.eye(model.n_states) if shows.law is None else shows.law.of_action(action, model.n_states).toarray()
        return rewards, [moves * Z[:, o] for o in range(Z.shape[1])]

    def _informed(self, sweeps=60):
        """Return linear upper bounds of decisions, shape (S, D): the state before a decision is shown a step later."""
        values = np.column_stack([r + sum(M @ self.above for M in matrices) for r, matrices in self.decisions])
        for _ in range(sweeps):
            values = np.column_stack(
                [r + sum((M @ values).max(axis=1) for M in matrices) for r, matrices in self.decisions]
            )
        return values

    def leaf(self, w):
        """Return the bounds that need no successors."""
        return float((w @ self.below).max()), float((w @ self.linear).max())

    def interval(self, w, wanted, depth):
        """Return bounds on the value of w; a leaf if those are within `wanted`."""
        low, high = self.leaf(w)
        self.left -= 1
        if high - low <= wanted or depth == 0 or self.left < 0:
            return low, high
        best_low, best_high = low, -np.inf
        simple = []
        for rewards, matrices in self.decisions:
            after = [v for v in (w @ M for M in matrices) if v.any()]
            simple.append((w @ rewards + sum((v @ self.linear).max() for v in after), w @ rewards, after))
        for hope, earned, after in sorted(simple, key=lambda each: -each[0]):
            if hope <= best_low:
                best_high = max(best_high, hope)
                continue
            found = [self.interval(v, wanted, depth - 1) for v in after]
            best_low = max(best_low, earned + sum(each[0] for each in found))
            best_high = max(best_high, earned + sum(each[1] for each in found))
        return float(best_low), float(min(high, best_high))


def random_model(rng, max_states=5, max_actions=3, discounts=(0.3, 0.5, 0.7, 0.9, 0.99, 1.0)):
    """Return a model with measurements of every kind, hidden or shown starts, ends, prices of 0 and 1e9, outcomes of 1e-300.

    At discount 1 states only lead to later ones, or stay with a probability below 1, whatever is done.
    """
    n_states, n_actions = int(rng.integers(1, max_states + 1)), int(rng.integers(1, max_actions + 1))
    discount = float(rng.choice(discounts))
    ends = discount == 1 or (n_states > 1 and rng.random() < 0.5)
    if ends:
        n_states = max(n_states, 2)
    P = rng.dirichlet(np.ones(n_states), size=(n_states, n_actions))
    P[rng.random(P.shape) < rng.choice([0.0, 0.5, 0.8])] = 0.0
    if discount == 1:
        P *= np.triu(np.ones((n_states, n_states)))[:, None, :]
        P[..., -1] += 0.05
    P[..., -1] += P.sum(axis=2) == 0
    if discount < 1 and rng.random() < 0.1:
        P[rng.random(P.shape) < 0.2] *= 1e-300
        P[..., -1] += P.sum(axis=2) < 1e-200
    P /= P.sum(axis=2, keepdims=True)
    terminal = np.zeros(n_states, dtype=bool)
    terminal[-1] = ends
    R = rng.normal(size=(n_states, n_actions)) + rng.choice([-2.0, 0.0, 2.0])
    if rng.random() < 0.15:
        R *= 10.0 ** rng.uniform(-10, 3, size=R.shape)
    if rng.random() < 0.1:
        R = np.round(R)
    R[terminal] = 0.0
    running = np.flatnonzero(~terminal)
    initial = np.zeros(n_states)
    initial[running] = rng.dirichlet(np.ones(len(running)))
    if rng.random() < 0.3:
        initial = int(rng.choice(running))
    looks = [_random_look(rng, f"m{i}", n_states, n_actions) for i in range(rng.integers(0, 4))]
    if looks and rng.random() < 0.2:  # a copy that is dearer: dominated
        looks.append(_dearer(looks[0], n_states, n_actions))
    free = random_measurement(rng, "free", n_states, n_actions, False) if rng.random() < 0.3 else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", am.ModelWarning)
        return am.Model.from_arrays(
            P, R, measurements=looks, passive=free, discount=discount, initial=initial, terminal=terminal,
            reveal_start=bool(rng.random() < 0.3),
        )  # fmt: skip


def _random_look(rng, name, n_states, n_actions):
    """Return a measurement of any kind; sometimes useless, with rare outcomes, for nothing or at a prohibitive price."""
    kind = rng.random()
    cost = float(rng.choice([0.0, 1e9])) if kind < 0.15 else float(0.3 * rng.random())
    if kind < 0.15 or 0.9 <= kind < 0.95:
        Z = random_law(rng, n_states, int(rng.integers(1, 4)))
    elif kind < 0.25:
        Z = np.full((n_states, 2), 0.5)
    elif kind < 0.35:
        rare = rng.choice([1e-300, 1e-18, 1e-12], size=n_states)
        Z = np.column_stack([1 - rare, rare])
    elif kind < 0.42:
        Z = np.eye(n_states)
    else:
        return random_measurement(rng, name, n_states, n_actions)
    return am.Measurement.noisy(name, cost, probabilities=Z)


def _dearer(look, n_states, n_actions):
    prices = look.table(n_states, n_actions) + 0.01
    return dataclasses.replace(look, name="dearer", cost=prices)
