"""What learning agents share: they can be saved, and what they learned can be read."""

from __future__ import annotations

import inspect
import os
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from actmeasure.belief import Belief
from actmeasure.errors import AgentError, unknown_name
from actmeasure.kernels.learned_model import Counts
from actmeasure.learning.agent import Agent, Task, checked_state
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray
from actmeasure.settings import real

__all__ = [
    "LearningAgent",
    "checked_discount",
    "chosen",
    "finite",
    "model_from_counts",
    "own_discount",
    "settings_signature",
    "with_prior",
]

# ----------------------------------------------------------------------------------------------------
# A model from the transitions that an agent has measured.
# ----------------------------------------------------------------------------------------------------


def model_from_counts(counts: Counts, task: Task, start: Belief, ends: FloatArray | None = None) -> Model:
    """Measured frequencies and mean rewards, with a state added in which episodes end.

    An action that was never measured stays where it is, for the smallest reward seen, or 0 if all are positive; without
    discount, where staying for ever is not allowed, it ends the episode. How often an episode ends with a pair may be known
    better than from what was measured: `ends`, float64 (S * A,), nan where it is not.
    """
    n_states, n_actions = task.n_states, task.n_actions
    end, pairs = n_states, n_states * n_actions
    measured = counts.measured[:pairs].reshape(n_states, n_actions)
    rewards = counts.rewards[:pairs].reshape(n_states, n_actions)
    least = min(0.0, float(rewards.min()))
    terminal = np.zeros(n_states + 1, bool)
    terminal[end] = True
    return Model.from_arrays(
        _matrices(counts, measured, ends, unknown_ends=task.discount == 1),
        np.vstack([np.where(measured > 0, rewards, least), np.zeros(n_actions)]),
        measuring_cost=_with_end(task.measuring_cost),
        discount=task.discount,
        initial=start.dense(n_states + 1),
        terminal=terminal,
        reveal_start=task.reveal_start,
    )


def with_prior(counts: Counts, task: Task, start: Belief, prior: float) -> Model:
    """A model in which every transition, also to the end, has been counted `prior` times before, with a reward of 0."""
    n_states, n_actions = task.n_states, task.n_actions
    pairs = n_states * n_actions
    times = np.full((pairs, n_states + 1), prior)
    for pair, entries in _entries(counts, pairs):
        times[pair, counts.successors[entries]] += counts.times[entries]
    mass = times.sum(axis=1, keepdims=True)
    terminal = np.arange(n_states + 1) == n_states
    chances = np.zeros((n_states + 1, n_actions, n_states + 1))
    chances[:-1] = (times / mass).reshape(n_states, n_actions, n_states + 1)
    chances[-1, :, -1] = 1.0
    rewards = np.zeros((n_states + 1, n_actions))
    rewards[:-1] = (counts.rewards[:pairs] * counts.measured[:pairs] / mass[:, 0]).reshape(n_states, n_actions)
    return Model.from_arrays(
        chances,
        rewards,
        measuring_cost=_with_end(task.measuring_cost),
        discount=task.discount,
        initial=start.dense(n_states + 1),
        terminal=terminal,
        reveal_start=task.reveal_start,
    )


def _matrices(
    counts: Counts, measured: npt.NDArray[np.int64], ends: FloatArray | None, unknown_ends: bool
) -> list[sparse.csr_array]:
    n_states, n_actions = measured.shape
    found = list(_entries(counts, n_states * n_actions))
    pairs = np.concatenate([pair for pair, _ in found]) if found else np.zeros(0, np.int64)
    entries = np.concatenate([entry for _, entry in found]) if found else np.zeros(0, np.int64)
    chances = counts.times[entries] / counts.measured[pairs]
    successors = counts.successors[entries]
    if ends is not None:
        # Where the end was noticed, but never with a look, it has no entry yet.
        is_end = successors == n_states
        noticed = np.setdiff1d(np.flatnonzero((ends > 0) & (ends < 1) & (measured.ravel() > 0)), pairs[is_end])
        chances *= _corrections(pairs, is_end, chances, ends)
        pairs, chances = np.concatenate([pairs, noticed]), np.concatenate([chances, ends[noticed]])
        successors = np.concatenate([successors, np.full_like(noticed, n_states)])
    state, action = np.divmod(pairs, n_actions)
    matrices = []
    for number in range(n_actions):
        own, unknown = action == number, np.flatnonzero(measured[:, number] == 0)
        rows = np.concatenate([state[own], unknown, [n_states]])
        led_to = np.full_like(unknown, n_states) if unknown_ends else unknown
        columns = np.concatenate([successors[own], led_to, [n_states]])
        values = np.concatenate([chances[own], np.ones(len(unknown) + 1)])
        matrices.append(sparse.csr_array((values, (rows, columns)), shape=(n_states + 1, n_states + 1)))
    return matrices


def _entries(counts: Counts, count: int) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """The first `count` pairs with their entries: the first of every list, then the second, and so on."""
    pairs = np.flatnonzero(counts.first[:count])
    entries = counts.first[pairs]
    while len(entries):
        yield pairs, entries
        entries = counts.following[entries]
        more = entries != 0
        pairs, entries = pairs[more], entries[more]


def _corrections(
    pairs: npt.NDArray[np.int64], is_end: npt.NDArray[np.bool_], chances: FloatArray, ends: FloatArray
) -> FloatArray:
    """Factors by which measured chances are to be multiplied, so that the end has the chance that is known for it."""
    measured = np.zeros(len(ends))
    measured[pairs[is_end]] = chances[is_end]
    # Where only the end was measured, there is nothing that could be scaled.
    known = np.isfinite(ends) & (measured < 1) & (ends > 0) & (ends < 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        factors = np.where(is_end, ends[pairs] / measured[pairs], (1 - ends[pairs]) / (1 - measured[pairs]))
    return np.where(known[pairs], factors, 1.0)


def _with_end(cost: float | FloatArray) -> float | FloatArray:
    return cost if np.ndim(cost) == 0 else np.vstack([cost, np.zeros(np.shape(cost)[1])])


# ----------------------------------------------------------------------------------------------------
# Settings of agents: what has a name of its own, what is given instead, and what is allowed.
# ----------------------------------------------------------------------------------------------------


Settings = TypeVar("Settings")


def chosen(
    kind: type[Settings], presets: Mapping[str, Mapping[str, Any]], preset: str, given: Mapping[str, Any]
) -> Settings:
    """The settings of a preset, and those given instead; unknown names are an `AgentError`."""
    if not isinstance(preset, str) or preset not in presets:
        raise AgentError(unknown_name("preset", preset, presets))
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    for name in given:
        if name not in known:
            raise AgentError(unknown_name("setting", name, [*known, "preset"]))
    return replace(kind(), **(dict(presets[preset]) | dict(given)))  # type: ignore[type-var]


def settings_signature(defaults: Any) -> inspect.Signature:
    """What an agent with these settings can be made with, for those who ask: `help`, and the check for unknown names."""
    preset = inspect.Parameter("preset", inspect.Parameter.POSITIONAL_OR_KEYWORD, default="default", annotation=str)
    kind = inspect.Parameter.KEYWORD_ONLY
    settings = [
        inspect.Parameter(f.name, kind, default=getattr(defaults, f.name), annotation=f.type) for f in fields(defaults)
    ]
    return inspect.Signature([preset, *settings])


def checked_discount(discount: Any) -> float | None:
    """A discount, or None for the task's own."""
    return None if discount is None else own_discount(discount, "discount")


def own_discount(discount: Any, name: str) -> float:
    """A plain number above 0 and at most 1."""
    found = finite(discount, name)
    if not 0 < found <= 1:
        raise AgentError(f"{name} is {discount!r}, expected a number above 0 and at most 1, such as 0.95")
    return found


def finite(value: Any, name: str) -> float:
    """A plain number that is neither infinite nor undefined."""
    found = real(value, name, AgentError)
    if not np.isfinite(found):
        raise AgentError(f"{name} is {value!r}, expected a finite number")
    return found


class LearningAgent(Agent):
    """An agent that learns tables for finitely many states and actions.

    Attributes
    ----------
    name : str
        As in `am.agents.make`.
    settings : dataclass
        All settings, also those that were not given.
    """

    name: ClassVar[str]
    settings: Any
    #: Types of the arrays in which it is saved.
    types: ClassVar[dict[str, str]]

    def __init__(self) -> None:
        self.starts: dict[int, int] = {}

    @property
    @abstractmethod
    def counts(self) -> Counts:
        """The measured transitions."""

    @abstractmethod
    def q_values(self) -> FloatArray:
        """What the agent thinks its actions are worth."""

    @abstractmethod
    def belief(self) -> Belief:
        """Where the agent thinks it is."""

    @abstractmethod
    def learned(self) -> dict[str, npt.NDArray[Any]]:
        """Everything that was learned, as the agent's own arrays by name."""

    @abstractmethod
    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over what `learned` gave; an `AgentError` if that cannot be."""

    def check_goes_on_with(self, task: Task) -> None:
        super().check_goes_on_with(task)
        mine = self.prepared()
        told = {
            "the measuring cost": (mine.measuring_cost, task.measuring_cost),
            "the discount": (mine.discount, task.discount),
            "reveal_start": (mine.reveal_start, task.reveal_start),
        }
        for what, (before, now) in told.items():
            if not np.array_equal(before, now):
                raise AgentError(f"{what} is not what the agent was trained with, and learned for; make a new agent")

    def prepared(self) -> Task:
        """The task, if there is one yet."""
        if self.task is None:
            raise AgentError("the agent has not been trained yet; call actmeasure.train(agent, ...) first")
        return self.task

    def note_start(self, observation: int | None) -> None:
        """Remember where an episode began, where the task does not tell; no state of the task is an `AgentError`."""
        if observation is None:
            return
        task = self.prepared()
        observation = checked_state(observation, task.n_states)
        if task.start is None:
            self.starts[observation] = self.starts.get(observation, 0) + 1

    def model(self, discount: float | None = None, initial: Belief | int | None = None) -> Model:
        """The dynamics, rewards and starts as they were measured, as a `Model` that can be solved.

        It has one state more than the task, in which all episodes end. Where an action was never measured, it is taken to
        change nothing, for the smallest reward seen, or 0 if all are positive: a plan on it keeps to what is known. At
        discount 1 it ends the episode instead.

        Parameters
        ----------
        discount : float, optional
            Instead of the task's.
        initial : Belief or int, optional
            Where episodes begin; by default as the task says, or where they were seen to begin.
        """
        return self._learned_model(discount, initial)

    def _learned_model(
        self,
        discount: float | None,
        initial: Belief | int | None,
        ends: FloatArray | None = None,
        counts: Counts | None = None,
    ) -> Model:
        task = self.prepared()
        task = replace(task, discount=checked_discount(discount) or task.discount)
        start = self._start(task) if initial is None else initial
        known = start if isinstance(start, Belief) else Belief.at(start)
        return model_from_counts(self.counts if counts is None else counts, task, known, ends)

    def _start(self, task: Task) -> Belief:
        if task.start is not None:
            return task.start
        if not self.starts:
            raise AgentError(
                "no start of an episode was told or shown, so that the model has none; say where: initial=..."
            )
        states = np.array(sorted(self.starts), dtype=np.int64)
        times = np.array([self.starts[state] for state in states.tolist()], dtype=np.float64)
        return Belief(states, times / times.sum())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything learned into a file, from which `am.agents.load` makes an agent that goes on as this one would."""
        from actmeasure.learning.saving import save_agent

        save_agent(self, path)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in asdict(self.settings).items())
        return f"{type(self).__name__}({shown})"
