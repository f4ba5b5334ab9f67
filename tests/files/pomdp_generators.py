"""Well-known POMDPs as `.pomdp` text in the usual style of such files, and as arrays."""

from __future__ import annotations

import itertools
from typing import ClassVar

import numpy as np

#: Cassandra, Kaelbling and Littman's tiger, with wild cards, matrices and the keywords `uniform` and `identity`.
TIGER = """
# Behind one of two doors is a tiger; listening tells which, most of the time.
discount: 0.95
values: reward
states: tiger-left tiger-right
actions: listen open-left open-right
observations: tiger-left tiger-right

T:listen
identity

T:open-left
uniform

T:open-right
uniform

O:listen
0.85 0.15
0.15 0.85

O:open-left
uniform

O:open-right
uniform

R:listen : * : * : * -1
R:open-left : tiger-left : * : * -100
R:open-left : tiger-right : * : * 10
R:open-right : tiger-left : * : * 10
R:open-right : tiger-right : * : * -100
"""


def tiger_arrays():
    """P (S, A, S), R (S, A), Z (A, S, O) and the initial distribution of the tiger problem."""
    P = np.stack([np.eye(2), np.full((2, 2), 0.5), np.full((2, 2), 0.5)], axis=1)
    R = np.array([[-1.0, -100.0, 10.0], [-1.0, 10.0, -100.0]])
    Z = np.stack([[[0.85, 0.15], [0.15, 0.85]], np.full((2, 2), 0.5), np.full((2, 2), 0.5)])
    return P, R, Z, np.full(2, 0.5)


class RockSample:
    """RockSample(n, k): a rover on an n x n grid with k rocks, good or bad; it samples them, senses them, or leaves to the east.

    States are (cell, qualities), then the exit. Sensing rock i from distance d is right with probability (1 + 2^(-d / half)) / 2.
    Sampling pays 10 at a good rock, which becomes bad, and -10 otherwise; leaving pays 10.
    """

    MOVES: ClassVar = {"amn": (0, 1), "ams": (0, -1), "ame": (1, 0), "amw": (-1, 0)}

    def __init__(self, n, k, half=4.0):
        self.n, self.k = n, k
        cells = [(x, y) for y in range(n) for x in range(n)]
        self.rocks = cells[1 :: max(1, len(cells) // (k + 1))][:k]
        self.states = list(itertools.product(cells, itertools.product((0, 1), repeat=k)))
        self.number = {state: index for index, state in enumerate(self.states)}
        self.actions = [*self.MOVES, "as", *(f"ac{rock}" for rock in range(k))]
        self.observations = ["ogood", "obad", "onone"]
        self.n_states = len(self.states) + 1
        self.half = half

    def successor(self, state, action):
        """The state that follows, and the reward; the last state is the exit."""
        (x, y), good = self.states[state]
        if action == "as":
            rock = self.rocks.index((x, y)) if (x, y) in self.rocks else -1
            if rock < 0 or not good[rock]:
                return state, -10.0
            return self.number[(x, y), tuple(q and i != rock for i, q in enumerate(good))], 10.0
        if action in self.MOVES:
            x, y = x + self.MOVES[action][0], y + self.MOVES[action][1]
            if x == self.n:
                return self.n_states - 1, 10.0
            return self.number[(min(max(x, 0), self.n - 1), min(max(y, 0), self.n - 1)), good], 0.0
        return state, 0.0

    def sees_good(self, state, rock):
        (x, y), good = self.states[state]
        distance = np.hypot(x - self.rocks[rock][0], y - self.rocks[rock][1])
        right = (1 + 2 ** (-distance / self.half)) / 2
        return float(right if good[rock] else 1 - right)

    def start(self):
        first = [state for state, (cell, _) in enumerate(self.states) if cell == (0, self.n // 2)]
        initial = np.zeros(self.n_states)
        initial[first] = 1 / len(first)
        return initial

    def text(self):
        """The file, with defaults by wild cards that later lines override, states as a count, and rewards by successor."""
        yield f"# RockSample[{self.n},{self.k}]\ndiscount: 0.95\nvalues: reward\nstates: {self.n_states}\n"
        yield f"actions: {' '.join(self.actions)}\nobservations: {' '.join(self.observations)}\n"
        starts = [str(state) for state in np.flatnonzero(self.start())]
        yield f"start include: {' '.join(starts)}\n\nT: * identity\n"
        yield "O: * : * : onone 1.0\n"
        for action in self.actions:
            for state in range(self.n_states - 1):
                successor, reward = self.successor(state, action)
                if successor != state:
                    yield f"T: {action} : {state} : {state} 0.0\nT: {action} : {state} : {successor} 1.0\n"
                if reward:
                    yield f"R: {action} : {state} : {successor} : * {reward}\n"
        for rock in range(self.k):
            for state in range(self.n_states - 1):
                good = self.sees_good(state, rock)
                yield f"O: ac{rock} : {state}\n{good!r} {1 - good!r} 0.0\n"

    def arrays(self):
        """P (S, A, S), R (S, A), Z (A, S, O) and the initial distribution."""
        n_actions = len(self.actions)
        P, R = np.zeros((self.n_states, n_actions, self.n_states)), np.zeros((self.n_states, n_actions))
        Z = np.zeros((n_actions, self.n_states, 3))
        Z[:, :, 2] = 1.0
        P[-1, :, -1] = 1.0
        for state in range(self.n_states - 1):
            for number, action in enumerate(self.actions):
                successor, R[state, number] = self.successor(state, action)
                P[state, number, successor] = 1.0
            for rock in range(self.k):
                good = self.sees_good(state, rock)
                Z[5 + rock, state] = good, 1 - good, 0.0
        return P, R, Z, self.start()


def tag_like(rng, n_states=870, n_actions=5, n_observations=30, successors=5):
    """The lines of a random POMDP of Tag's size, one transition to a line."""
    yield f"discount: 0.95\nvalues: reward\nstates: {n_states}\nactions: {n_actions}\nobservations: {n_observations}\n"
    yield "start: uniform\n"
    for action in range(n_actions):
        for state in range(n_states):
            to = np.sort(rng.choice(n_states, successors, replace=False))
            chances = rng.dirichlet(np.ones(successors))
            for successor, chance in zip(to.tolist(), chances.tolist(), strict=True):
                yield f"T: {action} : {state} : {successor} {chance!r}\n"
    for state in range(n_states):
        yield f"O: * : {state} : {state % n_observations} 1.0\n"
    yield "R: * : * : * : * -1\n"
    for state in range(0, n_states, 30):
        yield f"R: {n_actions - 1} : {state} : * : * 10\n"
