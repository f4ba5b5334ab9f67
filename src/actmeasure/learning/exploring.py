"""Phases of exploration in which every step is measured."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from actmeasure.errors import AgentError
from actmeasure.kernels import exploring
from actmeasure.kernels.learned_model import Counts, any_of
from actmeasure.model.transitions import FloatArray

__all__ = ["CounterExploration", "EulerExploration", "Exploration"]


class Exploration(ABC):
    """What to try next, by what has been measured so far.

    Attributes
    ----------
    table : float64 array, shape (S * A,)
        Everything that is remembered between episodes, apart from the counts.
    """

    name: ClassVar[str]

    def __init__(self, n_states: int, n_actions: int, unknown: float) -> None:
        self.n_states, self.n_actions = n_states, n_actions
        self.table: FloatArray = np.full(n_states * n_actions, unknown)

    @abstractmethod
    def begin(self) -> None:
        """An episode begins."""

    @abstractmethod
    def decide(self, counts: Counts, state: int, stream: Any) -> int:
        """The action to try in a state."""

    @abstractmethod
    def observe(self, counts: Counts, state: int, action: int) -> None:
        """The transition from a state by an action has been counted."""

    def restore(self, table: FloatArray) -> None:
        """Take over a table that was saved; an `AgentError` if it cannot be one."""
        if not self._fits(table):
            raise AgentError("its table of what to explore cannot be; the file is damaged")
        self.table[:] = table

    @abstractmethod
    def _fits(self, table: FloatArray) -> bool: ...


class CounterExploration(Exploration):
    """Greedy Q-learning with the state-action counter reward, 1 / N (Araya-Lopez et al., 2011), as in the act-then-measure paper.

    N is 1 for what was never tried, and one more after every try. At each step all actions of the visited state are updated,
    towards 1 / N and what the successors counted so far are worth on average. Ties are broken at random.

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
        return int(exploring.best_action(self.table, state, self.n_actions, stream))

    def observe(self, counts: Counts, state: int, action: int) -> None:
        exploring.learn_counter(counts, self.table, state, self.n_actions, self.learning_rate, self.discount)

    def _fits(self, table: FloatArray) -> bool:
        # No value can exceed the discounted sum of rewards of 1; without a discount nothing bounds it.
        most = 1 / (1 - self.discount) if self.discount < 1 else np.inf
        return bool((table >= 0).all() and (table <= most * (1 + 1e-9)).all())


class EulerExploration(Exploration):
    """EULER (Zanette and Brunskill, 2019), with one goal after the other, as Nam et al. (2021) use it.

    A goal is a state and an action that were measured fewer than `visits` times. The way to it is that with the largest upper
    confidence bound on a reward of 1 for the goal, by backward induction over `horizon` steps. With n measurements of a pair,
    V and v the upper and lower bounds a step later, L = `log_term` and H = `horizon`, the bonus is

        sqrt(2 L Var(V) / n) + H L / (3 (n - 1)) + (4 J + B_p) / n + B_v sqrt(E[(V - v)^2] / n)

    with B_v = sqrt(2 L), B_p = H B_v and J = H L / 3. An action never measured is worth all steps that are left. Each goal is
    tried for at most `visits` times. When there is none left, actions are taken at random.

    What differs from Nam et al.: bounds use everything that was measured, not only what was measured for the same goal; the
    horizon begins anew when it, or the way to a goal, is over, so that what is further away can be reached too; states that
    were never seen are no goals.

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
        self.constants, self.visits = exploring.Confidence(horizon, log_term), visits
        self._bounds = exploring.make_bounds(horizon, n_states, n_actions)
        self.begin()

    def begin(self) -> None:
        self._goal, self._step = exploring.NO_GOAL, self.constants.horizon

    def decide(self, counts: Counts, state: int, stream: Any) -> int:
        pairs = slice(state * self.n_actions, (state + 1) * self.n_actions)
        np.maximum(self.table[pairs], 0.0, out=self.table[pairs])  # now it has been seen
        if self._step == self.constants.horizon:
            self._step = 0
            self._goal = int(exploring.next_goal(counts, self.table, self.visits))
            if self._goal != exploring.NO_GOAL:
                exploring.plan_euler(counts, self._bounds, self._goal, self.n_actions, self.constants)
        if self._goal == exploring.NO_GOAL:
            return int(any_of(self.n_actions, stream))
        return int(exploring.best_action(self._bounds.values[self._step], state, self.n_actions, stream))

    def observe(self, counts: Counts, state: int, action: int) -> None:
        reached = state * self.n_actions + action == self._goal
        self._step = self.constants.horizon if reached else self._step + 1

    def _fits(self, table: FloatArray) -> bool:
        return bool(((table >= exploring.UNSEEN) & (table <= self.visits) & (table == np.rint(table))).all())
