"""Exploration of ACNO-OTP, with a look at every step: by visit counts, and by confidence bounds (EULER)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from actmeasure.errors import AgentError
from actmeasure.kernels import exploring
from actmeasure.kernels.learned_model import Counts, greedy_action
from actmeasure.kernels.streams import any_of
from actmeasure.model.transitions import FloatArray

__all__ = ["CounterExploration", "EulerExploration", "Exploration"]


class Exploration(ABC):
    """Chooses the actions of exploring episodes, by the transitions measured so far.

    Attributes
    ----------
    table : float64 array, shape (S * A,)
        Everything that is kept between episodes, apart from the counts.
    """

    name: ClassVar[str]

    def __init__(self, n_states: int, n_actions: int, unknown: float) -> None:
        self.n_states, self.n_actions = n_states, n_actions
        self.table: FloatArray = np.full(n_states * n_actions, unknown)

    @abstractmethod
    def begin(self) -> None:
        """Begin an episode."""

    @abstractmethod
    def decide(self, counts: Counts, state: int, stream: Any) -> int:
        """Return the action to take in a state."""

    @abstractmethod
    def observe(self, counts: Counts, state: int, action: int) -> None:
        """Learn from a transition by an action in a state, after it was counted."""

    def restore(self, table: FloatArray) -> None:
        """Take over a table that was saved; raise an `AgentError` if it cannot be one."""
        if not self._fits(table):
            raise AgentError("its table of exploration is out of range; the file is damaged")
        self.table[:] = table

    @abstractmethod
    def _fits(self, table: FloatArray) -> bool:
        """Return whether the values of a table are possible."""


class CounterExploration(Exploration):
    """Greedy Q-learning with the state-action counter reward, 1 / N (Araya-Lopez et al., 2011), as in the act-then-measure paper.

    N is one more than the number of measurements of the pair. At each step the values of all actions of the visited state are
    updated, towards 1 / N plus the discounted mean value of the successors counted so far. Ties are broken at random.

    Parameters
    ----------
    n_states, n_actions : int
    learning_rate, discount : float
    """

    name = "counter"

    def __init__(self, n_states: int, n_actions: int, learning_rate: float = 0.3, discount: float = 0.95) -> None:
        super().__init__(n_states, n_actions, 0.0)
        self.learning_rate, self.discount = learning_rate, discount

    def begin(self) -> None:
        """Nothing changes between episodes."""

    def decide(self, counts: Counts, state: int, stream: Any) -> int:
        return int(greedy_action(self.table, state, self.n_actions, stream))

    def observe(self, counts: Counts, state: int, action: int) -> None:
        exploring.learn_counter(counts, self.table, state, self.n_actions, self.learning_rate, self.discount)

    def _fits(self, table: FloatArray) -> bool:
        # No value can exceed the discounted sum of rewards of 1; without a discount nothing bounds it.
        most = 1 / (1 - self.discount) if self.discount < 1 else np.inf
        return bool((table >= 0).all() and (table <= most * (1 + 1e-9)).all())


class EulerExploration(Exploration):
    """EULER (Zanette and Brunskill, 2019), with one goal after the other, as Nam et al. (2021) use it.

    A goal is a pair (state, action) that was measured fewer than `visits` times. Actions maximise an upper confidence bound on
    the probability to reach it, by backward induction over `horizon` steps. With n measurements of a pair,
    V and v the upper and lower bounds a step later, L = `log_term` and H = `horizon`, the bonus is

        sqrt(2 L Var(V) / n) + H L / (3 (n - 1)) + (4 J + B_p) / n + B_v sqrt(E[(V - v)^2] / n)

    with B_v = sqrt(2 L), B_p = H B_v and J = H L / 3. The bound of a pair never measured is the number of steps left. A pair is
    the goal at most `visits` times. When no goal is left, actions are random.

    What differs from Nam et al.: bounds use everything that was measured, not only what was measured for the same goal; the
    horizon begins anew when it is over or the goal was reached, so that pairs further away can be reached too; pairs of states
    that were never seen are no goals.

    Parameters
    ----------
    n_states, n_actions : int
    horizon : int
    visits : int
    log_term : float
        ln(4 S A T / delta) in theory; Nam et al. use 0.01.
    """

    name = "euler"

    def __init__(
        self, n_states: int, n_actions: int, horizon: int = 5, visits: int = 10, log_term: float = 0.01
    ) -> None:
        super().__init__(n_states, n_actions, exploring.UNSEEN)
        self.constants, self.visits = exploring.EulerConstants(horizon, log_term), visits
        self._bounds = exploring.make_bounds(horizon, n_states, n_actions)
        self.begin()

    def begin(self) -> None:
        self._goal, self._step = exploring.NO_GOAL, self.constants.horizon

    def decide(self, counts: Counts, state: int, stream: Any) -> int:
        pairs = slice(state * self.n_actions, (state + 1) * self.n_actions)
        np.maximum(self.table[pairs], 0.0, out=self.table[pairs])  # the state has been seen now
        if self._step == self.constants.horizon:
            self._step = 0
            self._goal = int(exploring.next_goal(counts, self.table, self.visits))
            if self._goal != exploring.NO_GOAL:
                exploring.plan_euler(counts, self._bounds, self._goal, self.n_actions, self.constants)
        if self._goal == exploring.NO_GOAL:
            return int(any_of(self.n_actions, stream))
        return int(greedy_action(self._bounds.values[self._step], state, self.n_actions, stream))

    def observe(self, counts: Counts, state: int, action: int) -> None:
        reached = state * self.n_actions + action == self._goal
        self._step = self.constants.horizon if reached else self._step + 1

    def _fits(self, table: FloatArray) -> bool:
        return bool(((table >= exploring.UNSEEN) & (table <= self.visits) & (table == np.rint(table))).all())
