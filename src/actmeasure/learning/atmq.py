"""Act-then-measure Q-learning (Krale et al., 2023), with and without training on the learned model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from actmeasure.belief import Belief
from actmeasure.decision import Decision
from actmeasure.episodes import Episodes
from actmeasure.errors import AgentError
from actmeasure.kernel_arrays import record, world
from actmeasure.kernels import atmq, streams
from actmeasure.kernels.atmq import AtmqParameters
from actmeasure.kernels.learned_model import INITIAL_CAPACITY, Counts
from actmeasure.learning import saving
from actmeasure.learning.agent import Task, checked_state
from actmeasure.learning.learning_agent import (
    NEVER,
    CompiledLearner,
    checked_discount,
    chosen,
    finite,
    settings_signature,
)
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray
from actmeasure.settings import probability, truth, whole

__all__ = ["ATMQ", "DYNA_ATMQ", "AtmqAgent", "AtmqSettings", "DynaAtmqAgent"]


@dataclass(frozen=True)
class AtmqSettings:
    """Settings of act-then-measure Q-learning; the defaults are those of `preset="default"`.

    Attributes
    ----------
    learning_rate : float
        Fraction by which a value moves towards its target (eta in the paper).
    discount : float or None
        Discount of values; None for the task's own.
    particles : int
        Number of particles in a belief (N_b).
    optimism : int
        Number of measurements of a pair (state, action) after which it has no exploration bonus (N_opt).
    largest_reward : float or None
        Optimistic value of a pair never measured (R_max). None for what the task tells, or else the largest reward so far, 1 at
        first.
    exploratory_measurements : int
        In a known state, the agent looks after an action that was measured fewer times than this (N_m).
    prior_until : int or None
        A pair measured at most this many times has a uniform prior over its successors, with the weight of one transition; None
        for always.
    measure_when_spread : float or None
        Look when the next belief has more states than this fraction of the particles; None for never.
    measure_when_settled : float
        Look when fewer than this fraction of the particles change their state, so that acting has no effect; 0 for never.
    random_measuring : float
        Probability of a random look at each step.
    optimistic_measuring : bool
        Whether knowing the state is valued by the best *optimistic* value, undiscounted. Else by the paper's equation.
    observed_target : bool
        Whether the target of a value uses the state that was seen, if it was, and the end of an episode. Else always the
        expectation by the learned dynamics.
    cost_in_target : bool
        Whether the measuring cost is subtracted from the target.
    prior_in_rewards : bool
        Whether the mean reward of a pair counts one more reward of 0.
    own_rewards : bool
        Whether in an uncertain belief each state learns from its own mean reward and dynamics. Else all of them learn from
        the reward received, also those in which the agent was not, whose values become wrong.
    knows_it_runs : bool
        Whether a belief takes into account that the episode has not ended.
    training_updates : int
        Number of values updated from the learned model at every step (N_train).
    training_greedy : float
        Fraction of these for the greedy action of a state; the others are for any other action.
    training_needs : int
        Measurements that a pair needs before it is trained; with 0 all pairs are trained, seen or not.
    """

    learning_rate: float = 0.1
    discount: float | None = None
    particles: int = 100
    optimism: int = 20
    largest_reward: float | None = None
    exploratory_measurements: int = 20
    prior_until: int | None = 7
    measure_when_spread: float | None = 0.5
    measure_when_settled: float = 0.02
    random_measuring: float = 0.0
    optimistic_measuring: bool = True
    observed_target: bool = True
    cost_in_target: bool = False
    prior_in_rewards: bool = False
    own_rewards: bool = True
    knows_it_runs: bool = True
    training_updates: int = 0
    training_greedy: float = 0.5
    training_needs: int = 5

    def __post_init__(self) -> None:
        for name in ("learning_rate", "measure_when_settled", "random_measuring", "training_greedy"):
            object.__setattr__(self, name, probability(getattr(self, name), name, AgentError))
        for name, (least, most) in LIMITS.items():
            object.__setattr__(self, name, whole(getattr(self, name), name, least, most, error=AgentError))
        for name in (field.name for field in fields(self) if field.type == "bool"):
            object.__setattr__(self, name, truth(getattr(self, name), name, AgentError))
        if self.prior_until is not None:
            object.__setattr__(self, "prior_until", whole(self.prior_until, "prior_until", 0, 10**9, AgentError))
        if self.measure_when_spread is not None:
            share = probability(self.measure_when_spread, "measure_when_spread", AgentError)
            object.__setattr__(self, "measure_when_spread", share)
        if self.largest_reward is not None:
            object.__setattr__(self, "largest_reward", finite(self.largest_reward, "largest_reward"))
        object.__setattr__(self, "discount", checked_discount(self.discount))

    def parameters(self, task: Task) -> AtmqParameters:
        """Return the settings as the kernels take them."""
        return AtmqParameters(
            discount=task.discount if self.discount is None else self.discount,
            learning_rate=self.learning_rate,
            optimism=self.optimism,
            exploratory_measurements=self.exploratory_measurements,
            prior_until=NEVER if self.prior_until is None else self.prior_until,
            most_states=NEVER if self.measure_when_spread is None else int(self.measure_when_spread * self.particles),
            random_measuring=self.random_measuring,
            settled_below=self.measure_when_settled,
            optimistic_measuring=self.optimistic_measuring,
            observed_target=self.observed_target,
            cost_in_target=self.cost_in_target,
            prior_in_rewards=self.prior_in_rewards,
            own_rewards=self.own_rewards,
            knows_it_runs=self.knows_it_runs,
            training_updates=self.training_updates,
            training_greedy=self.training_greedy,
            training_needs=self.training_needs,
        )


#: Smallest and largest value of settings that are whole numbers.
LIMITS = {
    "particles": (1, 10**6),
    "optimism": (1, 10**9),
    "exploratory_measurements": (0, 10**9),
    "training_updates": (0, 10**9),
    "training_needs": (0, 10**9),
}

#: Settings of the runs behind the paper's table; those on the measuring value problem also had `random_measuring=0.05`.
PUBLISHED: dict[str, Any] = {"measure_when_settled": 0.0, "own_rewards": False, "knows_it_runs": False}
#: Settings for the equations of the paper's main text.
PAPER: dict[str, Any] = PUBLISHED | {
    "prior_until": None,
    "measure_when_spread": None,
    "optimistic_measuring": False,
    "observed_target": False,
    "cost_in_target": True,
    "prior_in_rewards": True,
    "training_needs": 0,
}
#: What each preset changes in `AtmqSettings`, for agents without training and with it.
ATMQ: dict[str, dict[str, Any]] = {"default": {}, "published": PUBLISHED, "paper": PAPER}
DYNA_ATMQ: dict[str, dict[str, Any]] = {
    "default": {"training_updates": 25},
    "published": PUBLISHED | {"training_updates": 625},
    "paper": PAPER | {"training_updates": 25},
}


class AtmqAgent(CompiledLearner):
    """Act-then-measure Q-learning (Krale et al., 2023): act as if the state will be known, then look if that is worth its cost.

    It counts the transitions it measures, predicts its belief by them while it does not look, and learns values for all states of
    the belief.

    Parameters
    ----------
    preset : str
        `default`: does not get stuck in a belief that it cannot leave. `published`: as the runs behind the paper's table.
        `paper`: the equations of the paper's main text.
    **settings
        Any setting of `AtmqSettings`, to be used instead of the preset's.

    Examples
    --------
    >>> import actmeasure as am
    >>> agent = am.agents.make("atmq", preset="published", learning_rate=0.2)
    >>> agent.settings.measure_when_settled
    0.0
    """

    name = "atmq"
    types: ClassVar[dict[str, str]] = saving.TYPES | {
        "values": "<f8", "optimistic": "<f8", "best": "<f8", "greedy": "<i8", "ready": "<i8", "sums": "<f8"
    }  # fmt: skip
    presets: ClassVar[dict[str, dict[str, Any]]] = ATMQ

    def __init__(self, preset: str = "default", **settings: Any) -> None:
        super().__init__()
        self.settings: AtmqSettings = chosen(AtmqSettings, self.presets, preset, settings)
        self._tables: atmq.AtmqTables
        self._parameters: atmq.AtmqParameters

    def prepare(self, task: Task) -> None:
        super().prepare(task)
        self._parameters = self.settings.parameters(task)
        # Copies: a read-only array is another type to Numba, for which it would compile everything once more.
        costs = np.array(task.measuring_cost, dtype=np.float64).reshape(-1)
        largest = self.settings.largest_reward
        if largest is None:
            largest = 1.0 if task.largest_reward is None else task.largest_reward
        self._tables = atmq.make_tables(
            task.n_states, task.n_actions, costs, float(largest), self.settings.particles, INITIAL_CAPACITY
        )
        start = Belief(np.zeros(0, np.int64), np.zeros(0)) if task.start is None else task.start
        self._first = np.array(start.states, dtype=np.int64), np.array(start.probabilities, dtype=np.float64)

    def begin(self, observation: int | None) -> None:
        self.note_start(observation)
        shown = atmq.NOTHING if observation is None else observation
        atmq.begin(self._tables, shown, *self._first, self._stream)

    def decide(self) -> Decision:
        action, measure = atmq.decide(self._tables, self._parameters, self._stream)
        return Decision(int(action), bool(measure))

    def observe(self, reward: float, cost: float, observation: int | None, terminated: bool, truncated: bool) -> None:
        self._grow_if_full()
        seen = atmq.NOTHING if observation is None else checked_state(observation, self.prepared().n_states)
        atmq.observe(self._tables, self._parameters, float(reward), float(cost), seen, bool(terminated), self._stream)

    def run(self, model: Model, seed: int, first_episode: int, max_steps: int, episodes: Episodes) -> None:
        entropy, stream, position = streams.entropy_words(seed), streams.make_stream(), np.zeros(3, np.int64)
        while not atmq.run(
            world(model), self._tables, self._parameters, *self._first, entropy, first_episode, max_steps, record(episodes),
            position, stream, self._stream,
        ):  # fmt: skip
            self._grow_if_full()

    def q_values(self, optimistic: bool = False) -> FloatArray:
        """Return the values of all actions, shape (S, A); with `optimistic`, including the exploration bonus."""
        task = self.prepared()
        values: FloatArray = self._tables.optimistic if optimistic else self._tables.values
        return values.reshape(-1, task.n_actions)[: task.n_states].copy()

    def belief(self) -> Belief:
        """Return the belief over the states in which an episode runs; empty if nothing is known."""
        task = self.prepared()
        particles, now = self._tables.particles, self._tables.memory[atmq.NOW]
        size = particles.sizes[now]
        dense = np.zeros(task.n_states + 1)
        dense[particles.states[now, :size]] = particles.times[now, :size]
        running = dense[:-1]
        return Belief.from_distribution(running) if running.sum() > 0 else Belief(np.zeros(0, np.int64), np.zeros(0))

    def learned(self) -> dict[str, npt.NDArray[Any]]:
        tables = self._tables
        ready = tables.ready[: tables.memory[atmq.READY]]
        return saving.stored(tables.counts) | {
            "values": tables.values, "optimistic": tables.optimistic, "best": tables.best, "greedy": tables.greedy,
            "ready": ready, "sums": tables.sums,
        }  # fmt: skip

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        task, tables, ready = self.prepared(), self._tables, arrays["ready"]
        counts = saving.counts_from(arrays, task.n_states, task.n_actions, task.n_states)
        copied = {name: getattr(tables, name) for name in ("values", "optimistic", "best", "greedy", "sums")}
        saving.check_shapes(arrays, {name: values.shape for name, values in copied.items()} | {"ready": (ready.size,)})
        optimistic, greedy = arrays["optimistic"].reshape(-1, task.n_actions), arrays["greedy"][:, None]
        if (
            arrays["values"][-task.n_actions :].any()
            or optimistic[-1].any()
            or not np.array_equal(arrays["best"], optimistic.max(axis=1))
            or (greedy < 0).any()
            or (greedy >= task.n_actions).any()
            or not np.array_equal(arrays["best"], np.take_along_axis(optimistic, greedy, axis=1)[:, 0])
        ):
            raise AgentError("its tables of values contradict each other; the file is damaged")
        if not np.array_equal(np.sort(ready), self._trainable(counts)):
            raise AgentError("the states it trains are not those measured often enough; the file is damaged")
        for name, values in copied.items():
            values[:] = arrays[name]
        tables.ready[: ready.size] = ready
        tables.memory[atmq.READY] = ready.size
        self._tables = tables._replace(counts=counts)

    def _trainable(self, counts: Counts) -> npt.NDArray[np.int64]:
        """Return the states with an action measured often enough for training; none if all states are trained anyway."""
        needs = self._parameters.training_needs
        often = counts.measured.reshape(-1, self.prepared().n_actions).max(axis=1)
        return np.flatnonzero(often >= needs) if needs > 0 else np.zeros(0, np.int64)


class DynaAtmqAgent(AtmqAgent):
    """Dyna-ATMQ (Krale et al., 2023): act-then-measure Q-learning that also trains on the model it learns, at every step.

    Parameters
    ----------
    preset : str
        `default`, `published` (625 training updates a step, as the runs behind the paper's table) or `paper` (25).
    **settings
        Any setting of `AtmqSettings`, to be used instead of the preset's.
    """

    name = "dyna-atmq"
    presets: ClassVar[dict[str, dict[str, Any]]] = DYNA_ATMQ


AtmqAgent.__signature__ = settings_signature(AtmqAgent().settings)  # type: ignore[attr-defined]
DynaAtmqAgent.__signature__ = settings_signature(DynaAtmqAgent().settings)  # type: ignore[attr-defined]
