r"""Dynamics learned where states are not seen: expected transitions, by the forward-backward algorithm, and online EM.

An agent that sees outcomes knows the probability of each outcome in each state, as an inspector knows the probability of
detection of the instrument, but not the dynamics. After every episode, the probabilities of its hidden transitions given all of
its outcomes are computed under the present estimate (the E step), and added to sums from which the next estimate is made (the
M step). Older episodes, which were judged by poorer estimates, count less: with n episodes the last one has weight 1 and all of
them together n ** STEP_EXPONENT (online EM of Cappé and Moulines, 2009).

Rewards are not used to infer the state. The expected reward of a step is the mean of R(s, a) over the probabilities of its
state, so that R is estimated by least squares of the rewards on these probabilities, with a penalty that stands for the prior
of 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from actmeasure.belief import Belief
from actmeasure.errors import AgentError
from actmeasure.learning.agent import Task
from actmeasure.learning.saving import check_shapes
from actmeasure.model import Measurement, Model
from actmeasure.model.transitions import FloatArray

__all__ = ["HiddenStates", "ObservedStep"]

#: Online EM: the step size after n episodes is n to the power of minus this, which is between 1/2 and 1.
STEP_EXPONENT = 0.7


class ObservedStep(NamedTuple):
    """What an agent knows of a step: its decision, the outcome (None for nothing seen), the reward, whether it was the last."""

    action: int
    measurement: int
    outcome: int | None
    reward: float
    terminated: bool


class HiddenStates:
    """Sums over episodes from which dynamics and rewards are estimated.

    Parameters
    ----------
    task : Task
        With `measurements`.
    prior : float
        Prior count of every transition from state to state, and to the end, with a reward of 0.

    Attributes
    ----------
    times : float64 array, shape (A, S, S + 1)
        Expected number of transitions, the last column being the end of the episode, weighted.
    products : float64 array, shape (A, S, S)
        Sums of products of the probabilities of states in which an action was taken, weighted.
    sums : float64 array, shape (A, S)
        Sums of these probabilities times rewards, weighted.
    episodes : int
    """

    #: Arrays of `stored` and their types.
    TYPES: ClassVar[dict[str, str]] = {
        "hidden_times": "<f8",
        "hidden_products": "<f8",
        "hidden_sums": "<f8",
        "hidden_rewards": "<f8",
        "hidden_episodes": "<i8",
    }

    def __init__(self, task: Task, prior: float) -> None:
        n_states, n_actions = task.n_states, task.n_actions
        self.task, self.prior, self.episodes = task, prior, 0
        self.times = np.zeros((n_actions, n_states, n_states + 1))
        self.products = np.zeros((n_actions, n_states, n_states))
        self.sums = np.zeros((n_actions, n_states))
        self._rewards = (0.0, 0.0)  # smallest and largest that was seen, and 0
        measurements = task.measurements or ()
        self.measurements = [_with_end(one, n_states, n_actions) for one in measurements]
        self.passive = None if task.passive is None else _with_end(task.passive, n_states, n_actions)
        self._laws = [self._law(one) for one in (self.passive, *self.measurements)]

    def _law(self, shown: Measurement | None) -> list[Any] | None:
        """Return the law of a measurement for each action, columns first; None where it is exact or shows nothing."""
        if shown is None or shown.is_exact:
            return None
        given = shown.given if isinstance(shown.given, tuple) else (shown.given,) * self.task.n_actions
        return [sparse.csc_array(rows[:-1]) for rows in given]

    def stored(self) -> dict[str, npt.NDArray[Any]]:
        """Return everything that episodes have changed, as arrays by the names of `TYPES`."""
        return {
            "hidden_times": self.times,
            "hidden_products": self.products,
            "hidden_sums": self.sums,
            "hidden_rewards": np.array(self._rewards),
            "hidden_episodes": np.array(self.episodes),
        }

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over the arrays that `stored` returned; raise an `AgentError` if they cannot be its."""
        check_shapes(arrays, {name: values.shape for name, values in self.stored().items()})
        times, products, sums = (arrays[f"hidden_{name}"] for name in ("times", "products", "sums"))
        least, most = arrays["hidden_rewards"].tolist()
        episodes = int(arrays["hidden_episodes"])
        # Sums of products of probabilities have no negative eigenvalue but by rounding.
        spread = np.linalg.eigvalsh((products + products.transpose(0, 2, 1)) / 2)
        sound = (
            not (times < 0).any()
            and not (products < 0).any()
            and spread.min() >= -1e-9 * max(1.0, spread.max())
            and np.allclose(products, products.transpose(0, 2, 1), rtol=1e-9, atol=1e-300)
            and least <= 0 <= most
            and episodes >= 0
        )
        if not sound:
            raise AgentError("its sums of expected transitions and rewards contradict each other; the file is damaged")
        self.times, self.products, self.sums = times.copy(), products.copy(), sums.copy()
        self._rewards, self.episodes = (least, most), episodes

    def transitions(self) -> FloatArray:
        """Return the present estimate of the dynamics, shape (A, S, S + 1)."""
        counts = self.times + self.prior
        return np.asarray(counts / counts.sum(axis=2, keepdims=True))

    def rewards(self) -> FloatArray:
        """Return the present estimate of the rewards, shape (S, A), none of them outside of the range that was seen."""
        n_states = self.task.n_states
        penalty = self.prior * (n_states + 1) * np.eye(n_states)
        estimates = np.linalg.solve(self.products + penalty, self.sums[..., None])[..., 0]
        least, most = self._rewards
        return np.asarray(np.clip(estimates, least, most).T)

    def model(self, discount: float, start: Belief) -> Model:
        """Return the present estimate as a model, with a state added in which episodes end."""
        task = self.task
        n_states, n_actions = task.n_states, task.n_actions
        P = np.zeros((n_states + 1, n_actions, n_states + 1))
        P[:-1] = self.transitions().transpose(1, 0, 2)
        P[-1, :, -1] = 1.0
        return Model.from_arrays(
            P,
            np.vstack([self.rewards(), np.zeros(n_actions)]),
            measurements=self.measurements,
            passive=self.passive,
            discount=discount,
            initial=start.dense(n_states + 1),
            terminal=np.arange(n_states + 1) == n_states,
            reveal_start=task.reveal_start,
        )

    def likelihood(self, step: ObservedStep) -> FloatArray:
        """Return the probability of the outcome of a step in every state that may have been reached, shape (S,)."""
        n_states = self.task.n_states
        shown = self.passive if step.measurement == 0 else self.measurements[step.measurement - 1]
        if shown is None or step.outcome is None:
            return np.ones(n_states)
        laws = self._laws[step.measurement]
        if laws is None:
            return np.where(np.arange(n_states) == step.outcome, 1.0, 0.0)
        column: FloatArray = laws[step.action][:, [step.outcome]].toarray().ravel()
        return np.asarray(column if column.any() else np.ones(n_states))

    def add(self, start: Belief, steps: Sequence[ObservedStep]) -> None:
        """Add the expected transitions of an episode."""
        if not steps:
            return
        P = self.transitions()
        self._forget()
        likelihoods = [self.likelihood(step) for step in steps]
        before = self._forward(P, start, steps, likelihoods)
        ahead = np.ones(self.task.n_states)  # probability of what comes after, up to a factor
        for step, seen, weights in zip(reversed(steps), reversed(likelihoods), reversed(before), strict=True):
            a = step.action
            if step.terminated:
                joint = weights * P[a, :, -1]
                state = joint / joint.sum()
                self.times[a, :, -1] += state
                ahead = P[a, :, -1]
            else:
                later = seen * ahead
                pairs = weights[:, None] * P[a, :, :-1] * later
                pairs /= pairs.sum()
                state = pairs.sum(axis=1)
                self.times[a, :, :-1] += pairs
                ahead = P[a, :, :-1] @ later
            ahead = ahead / ahead.max()
            self.products[a] += np.outer(state, state)
            self.sums[a] += state * step.reward
            self._rewards = (min(self._rewards[0], step.reward), max(self._rewards[1], step.reward))

    def _forward(
        self, P: FloatArray, start: Belief, steps: Sequence[ObservedStep], likelihoods: Sequence[FloatArray]
    ) -> list[FloatArray]:
        """Return the probability of each state before every step, given the outcomes so far."""
        weights = start.dense(self.task.n_states)
        before = []
        for step, seen in zip(steps, likelihoods, strict=True):
            before.append(weights)
            weights = (weights @ P[step.action, :, :-1]) * seen
            weights = weights / weights.sum()  # above 0: every transition is possible
        return before

    def _forget(self) -> None:
        """Reduce the weight of the episodes so far, relative to the next one."""
        self.episodes += 1
        if self.episodes > 1:
            rate, former = self.episodes**-STEP_EXPONENT, (self.episodes - 1) ** -STEP_EXPONENT
            weight = (1 - rate) / rate * former
            self.times *= weight
            self.products *= weight
            self.sums *= weight


def _with_end(shown: Measurement, n_states: int, n_actions: int) -> Measurement:
    """Return a measurement of a model for the states of a learned one, which has the state *end* more.

    Rows that are not told, those of states in which episodes end, are uniform.
    """
    cost = shown.cost if isinstance(shown.cost, float) else np.vstack([shown.cost, np.zeros(n_actions)])
    if shown.law is None:
        return Measurement.exact(shown.name, cost, with_actions=shown.with_actions)
    n_outcomes = shown.law.n_outcomes
    laws = []
    for action in range(n_actions) if shown.law.by_action else [0]:
        rows = sparse.csr_array(shown.law.of_action(action, n_states))
        empty = np.append(np.diff(rows.indptr) == 0, True)
        uniform = sparse.csr_array(np.full((1, n_outcomes), 1 / n_outcomes))
        parts = [uniform if empty[state] else rows[[state]] for state in range(n_states + 1)]
        laws.append(sparse.csr_array(sparse.vstack(parts, format="csr")))
    given: Any = tuple(laws) if shown.law.by_action else laws[0]
    return Measurement(shown.name, cost, shown.outcomes, shown.with_actions, None, given, True)
