"""The base classes of agents that learn from measured transitions, their settings, and the model that the transitions give."""

from __future__ import annotations

import inspect
import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from actmeasure.belief import Belief
from actmeasure.episodes import Episodes
from actmeasure.errors import AgentError, unknown_name
from actmeasure.kernel_arrays import new_run, world
from actmeasure.kernels import streams
from actmeasure.kernels.learned_model import Counts, is_full, with_doubled_capacity
from actmeasure.learning.agent import Agent, CompiledAgent, Task, checked_state
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray
from actmeasure.settings import amount, discount_factor, probability, real, truth, whole

__all__ = [
    "NEVER", "NOTHING_KNOWN", "AgentSettings", "CompiledLearner", "LearningAgent", "count_up_to", "current_names",
    "entries_of_pairs", "finite", "flag", "fraction", "model_from_counts", "not_negative", "one_of", "optional", "own_discount",
    "positive", "setting", "with_prior",
]  # fmt: skip

#: The belief of an agent that knows nothing of the current state.
NOTHING_KNOWN = Belief(np.zeros(0, np.int64), np.zeros(0))
#: Stands for infinity where kernels compare with a whole number.
NEVER = int(np.iinfo(np.int64).max)

T = TypeVar("T")
#: Returns the value of a setting, of which it is also given the name, as a plain number or string, or raises an `AgentError`.
Check = Callable[[Any, str], Any]


def setting(default: T, check: Check) -> T:
    """Return a field of `AgentSettings` with its default and the check of its values."""
    return field(default=default, metadata={"check": check})


@dataclass(frozen=True)
class AgentSettings:
    """Settings of an agent: a base class of dataclasses whose fields are made with `setting`."""

    def __post_init__(self) -> None:
        for each in fields(self):
            object.__setattr__(self, each.name, each.metadata["check"](getattr(self, each.name), each.name))


def optional(check: Check) -> Check:
    """Return a check that accepts None as well."""
    return lambda value, name: None if value is None else check(value, name)


def count_up_to(most: int | None, least: int = 0) -> Check:
    """Return the check for whole numbers from `least` to `most`."""
    return lambda value, name: whole(value, name, least, most, AgentError)


def one_of(names: Iterable[str]) -> Check:
    """Return the check for one of several names."""

    def check(value: Any, name: str) -> str:
        if not isinstance(value, str) or value not in names:
            raise AgentError(unknown_name(name, value, names))
        return value

    return check


def fraction(value: Any, name: str) -> float:
    """Return a plain number from 0 to 1."""
    return probability(value, name, AgentError)


def flag(value: Any, name: str) -> bool:
    """Return a truth value."""
    return truth(value, name, AgentError)


def finite(value: Any, name: str) -> float:
    """Return a plain number that is neither infinite nor NaN."""
    number = real(value, name, AgentError)
    if not np.isfinite(number):
        raise AgentError(f"{name} is {value!r}, expected a finite number")
    return number


def not_negative(value: Any, name: str) -> float:
    """Return a plain finite number from 0 up."""
    return amount(value, name, error=AgentError)


def positive(value: Any, name: str) -> float:
    """Return a plain finite number above 0."""
    return amount(value, name, above_zero=True, error=AgentError)


def own_discount(value: Any, name: str) -> float:
    """Return a plain number above 0 and at most 1."""
    return discount_factor(value, name, AgentError)


def current_names(kind: type[Agent], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of an agent under their present names; studies and saved agents may use the former ones."""
    if not issubclass(kind, LearningAgent):
        return dict(settings)
    named: dict[str, Any] = {}
    for name, value in settings.items():
        present = kind.present_name(name, value)
        if present in named:
            raise AgentError(f"{present!r} is given twice, once by its former name; leave that out")
        named[present] = value
    return named


class LearningAgent(Agent):
    """An agent that learns tables for finitely many states and actions; it can be saved, and what it learned can be read.

    A subclass implements `begin`, `decide` and `observe` as any `Agent`, and calls `note_start(observation)` in `begin`. It has
    the class attributes `name` and `types`, and either `defaults` or a constructor that sets `settings`, and implements

    - `counts`: the measured transitions, on which `model()` is based;
    - `q_values` and `belief`: the learned values of actions, and the belief about the current state;
    - `learned` and `restore`: everything that changes from episode to episode, as arrays by name, and back. An agent that was
      saved and loaded between two episodes then continues as if it had not been. `prepare` is called before `restore`.

    Attributes
    ----------
    name : str
        As in `am.agents.make`, and in files.
    defaults : AgentSettings
        The settings of `preset="default"`.
    presets : dict of str to dict
        What other presets change in `defaults`, by name.
    settings : AgentSettings
        All settings, also those that were not given.
    types : dict of str to str
        NumPy type of each array of `learned`, such as `"<f8"`.
    hidden_types : dict of str to str
        The same for arrays that are only there where one exact measurement is not all that the task tells.
    version_1_types : dict of str to str, or None
        The same for files of format version 1, where these differ; `upgrade` then converts their arrays.
    starts : dict of int to int
        How often episodes began in each state, where the task does not tell the start.
    """

    needs_exact_looks: ClassVar[bool] = True
    name: ClassVar[str]
    types: ClassVar[dict[str, str]]
    hidden_types: ClassVar[dict[str, str]] = {}
    version_1_types: ClassVar[dict[str, str] | None] = None
    defaults: ClassVar[Any]
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    settings: Any

    def __init__(self, preset: str = "default", **settings: Any) -> None:
        self.starts: dict[int, int] = {}
        if not hasattr(self, "defaults"):
            return
        presets = {"default": {}, **self.presets}
        if not isinstance(preset, str) or preset not in presets:
            raise AgentError(unknown_name("preset", preset, presets))
        given, known = current_names(type(self), settings), [each.name for each in fields(self.defaults)]
        for name in given:
            if name not in known:
                raise AgentError(unknown_name("setting", name, [*known, "preset"]))
        self.settings = replace(self.defaults, **(dict(presets[preset]) | given))

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Give the class a signature with all settings, for `help` and for the check for unknown names."""
        super().__init_subclass__(**arguments)
        if "defaults" in vars(cls):
            parameter, only = inspect.Parameter, inspect.Parameter.KEYWORD_ONLY
            preset = parameter("preset", parameter.POSITIONAL_OR_KEYWORD, default="default", annotation=str)
            settings = [
                parameter(each.name, only, default=getattr(cls.defaults, each.name), annotation=each.type)
                for each in fields(cls.defaults)
            ]
            cls.__signature__ = inspect.Signature([preset, *settings])  # type: ignore[attr-defined]

    @classmethod
    def present_name(cls, setting: str, value: Any) -> str:
        """Return the present name of a setting, which may be given by a former one."""
        return setting

    @property
    @abstractmethod
    def counts(self) -> Counts:
        """The measured transitions."""

    @abstractmethod
    def q_values(self) -> FloatArray:
        """Return the learned values of actions."""

    @abstractmethod
    def belief(self) -> Belief:
        """Return the belief about the current state, empty if there is none."""

    @abstractmethod
    def learned(self) -> dict[str, npt.NDArray[Any]]:
        """Return everything that was learned, as the agent's own arrays by name."""

    @abstractmethod
    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over the arrays that `learned` returned; raise an `AgentError` if they cannot be its."""

    @classmethod
    def upgrade(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Mapping[str, npt.NDArray[Any]]:
        """Return the arrays of a file of format version 1 as `learned` returns them now."""
        return arrays

    def check_goes_on_with(self, task: Task) -> None:
        """Raise an `AgentError` unless the task has the sizes, cost, discount and `reveal_start` of the agent's."""
        super().check_goes_on_with(task)
        mine = self.prepared()
        told = {
            "the measuring cost": (_prices(mine), _prices(task)),
            "the discount": (mine.discount, task.discount),
            "reveal_start": (mine.reveal_start, task.reveal_start),
            "what measurements show": (True, mine.shows_states or _same_instruments(mine, task)),
        }
        for what, (before, now) in told.items():
            if before != now:
                raise AgentError(f"{what} is not what the agent was trained with, and learned for; make a new agent")

    def prepared(self) -> Task:
        """Return the task; raise an `AgentError` if the agent has none yet."""
        if self.task is None:
            raise AgentError("the agent has not been trained yet; call actmeasure.train(agent, ...) first")
        return self.task

    def note_start(self, observation: int | None) -> None:
        """Count the first state of an episode if the task does not tell the start; raise an `AgentError` if it is no state."""
        if observation is None:
            return
        task = self.prepared()
        observation = checked_state(observation, task.n_states)
        if task.start is None:
            self.starts[observation] = self.starts.get(observation, 0) + 1

    def model(self, discount: float | None = None, initial: Belief | int | None = None) -> Model:
        """Return the dynamics, rewards and starts as they were measured, as a `Model` that can be solved.

        It has one state more than the task, in which all episodes end. An action that was never measured in a state stays
        there, for the smallest reward measured, or 0 if all are positive: a plan for the model keeps to what is known. At
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
        """Return the model of `counts`, the agent's own by default; for `ends` see `model_from_counts`."""
        task = self.prepared()
        task = task if discount is None else replace(task, discount=own_discount(discount, "discount"))
        start = self._start(task) if initial is None else initial
        known = start if isinstance(start, Belief) else Belief.at(start)
        return model_from_counts(self.counts if counts is None else counts, task, known, ends)

    def _start(self, task: Task) -> Belief:
        """Return the start that the task tells, else the frequencies of the starts seen."""
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
        """Write everything learned into a file; `am.agents.load(path)` returns an agent that continues as this one would."""
        from actmeasure.learning.saving import save_agent

        save_agent(self, path)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in asdict(self.settings).items())
        return f"{type(self).__name__}({shown})"


def _same_instruments(one: Task, other: Task) -> bool:
    """Return whether two tasks tell the same measurements."""
    mine, theirs = ([*(task.measurements or ()), task.passive] for task in (one, other))
    return len(mine) == len(theirs) and all(
        a is b or (a is not None and b is not None and a.equals(b)) for a, b in zip(mine, theirs, strict=True)
    )


def _prices(task: Task) -> list[list[float]]:
    """Return the prices of all measurements, as lists that can be compared."""
    costs = task.measuring_cost if isinstance(task.measuring_cost, tuple) else (task.measuring_cost,)
    return [np.ravel(cost).tolist() for cost in costs]


class CompiledLearner(LearningAgent, CompiledAgent):
    """A learning agent whose tables are a named tuple of a kernel module, with a field `counts`.

    Attributes
    ----------
    kernel : module
        Its function `run` plays episodes until all are done, and returns whether they are, or until the counts are full.
    """

    kernel: ClassVar[Any]
    _tables: Any
    _parameters: Any
    _first: tuple[Any, ...]  # what `kernel.run` is told of the start

    def __init__(self, preset: str = "default", **settings: Any) -> None:
        super().__init__(preset, **settings)
        self._stream = streams.make_stream()

    def run(self, model: Model, seed: int, first_episode: int, max_steps: int, episodes: Episodes) -> None:
        run = new_run(episodes, seed, first_episode, max_steps, self._stream)
        while not self.kernel.play(world(model), self._tables, self._parameters, *self._first, run):
            self._grow_if_full()

    def reseed(self, seed: int, episode: int) -> None:
        streams.seed_stream(self._stream, streams.entropy_words(seed), episode, streams.AGENT)

    @property
    def counts(self) -> Counts:
        self.prepared()
        return self._tables.counts  # type: ignore[no-any-return]

    def _grow_if_full(self) -> None:
        """Double the capacity of the counts if they have none for another transition; kernels cannot do that themselves."""
        if is_full(self._tables.counts):
            self._tables = self._tables._replace(counts=with_doubled_capacity(self._tables.counts))


def model_from_counts(counts: Counts, task: Task, start: Belief, ends: FloatArray | None = None) -> Model:
    """Return the model of the measured frequencies and mean rewards, with a state added in which episodes end.

    A pair that was never measured stays in its state, for the smallest reward measured, or 0 if all are positive; without
    discount, where staying forever is not allowed, it ends the episode.

    Parameters
    ----------
    counts : Counts
    task : Task
        Sizes, cost of looks, discount and `reveal_start`.
    start : Belief
    ends : float64 array, shape (S * A,), optional
        Probability that a pair ends the episode where it is known better than from the counts, NaN elsewhere.
    """
    n_states, n_actions = task.n_states, task.n_actions
    pairs = n_states * n_actions
    measured = counts.measured[:pairs].reshape(n_states, n_actions)
    rewards = counts.rewards[:pairs].reshape(n_states, n_actions)
    least = min(0.0, float(rewards.min()))
    transitions = _matrices(counts, measured, ends, unknown_ends=task.discount == 1)
    return _model_with_end(transitions, np.where(measured > 0, rewards, least), task, start)


def with_prior(counts: Counts, task: Task, start: Belief, prior: float) -> Model:
    """Return the model in which every transition, also to the end, has been counted `prior` times more, with a reward of 0."""
    n_states, n_actions = task.n_states, task.n_actions
    pairs = n_states * n_actions
    times = np.full((pairs, n_states + 1), prior)
    for pair, entries in entries_of_pairs(counts.first[:pairs], counts.following):
        times[pair, counts.successors[entries]] += counts.times[entries]
    mass = times.sum(axis=1, keepdims=True)
    probabilities = np.zeros((n_states + 1, n_actions, n_states + 1))
    probabilities[:-1] = (times / mass).reshape(n_states, n_actions, n_states + 1)
    probabilities[-1, :, -1] = 1.0
    rewards = (counts.rewards[:pairs] * counts.measured[:pairs] / mass[:, 0]).reshape(n_states, n_actions)
    return _model_with_end(probabilities, rewards, task, start)


def _model_with_end(transitions: Any, rewards: FloatArray, task: Task, start: Belief) -> Model:
    """Return the model of transitions between S + 1 states, the last of which is the end, and rewards (S, A)."""
    cost = task.measuring_cost
    return Model.from_arrays(
        transitions,
        np.vstack([rewards, np.zeros(task.n_actions)]),
        measuring_cost=cost if np.ndim(cost) == 0 else np.vstack([cost, np.zeros(task.n_actions)]),
        discount=task.discount,
        initial=start.dense(task.n_states + 1),
        terminal=np.arange(task.n_states + 1) == task.n_states,
        reveal_start=task.reveal_start,
    )


def _matrices(
    counts: Counts, measured: npt.NDArray[np.int64], ends: FloatArray | None, unknown_ends: bool
) -> list[sparse.csr_array]:
    """Return a transition matrix for each action; pairs never measured end the episode if `unknown_ends`, or else stay."""
    n_states, n_actions = measured.shape
    lists = list(entries_of_pairs(counts.first[: n_states * n_actions], counts.following))
    pairs = np.concatenate([pair for pair, _ in lists]) if lists else np.zeros(0, np.int64)
    entries = np.concatenate([entry for _, entry in lists]) if lists else np.zeros(0, np.int64)
    probabilities = counts.times[entries] / counts.measured[pairs]
    successors = counts.successors[entries]
    if ends is not None:
        # An end that was noticed, but never with a look, has no entry yet.
        is_end = successors == n_states
        noticed = np.setdiff1d(np.flatnonzero((ends > 0) & (ends < 1) & (measured.ravel() > 0)), pairs[is_end])
        probabilities *= _corrections(pairs, is_end, probabilities, ends)
        pairs, probabilities = np.concatenate([pairs, noticed]), np.concatenate([probabilities, ends[noticed]])
        successors = np.concatenate([successors, np.full_like(noticed, n_states)])
    state, action = np.divmod(pairs, n_actions)
    matrices = []
    for number in range(n_actions):
        own, unknown = action == number, np.flatnonzero(measured[:, number] == 0)
        rows = np.concatenate([state[own], unknown, [n_states]])
        led_to = np.full_like(unknown, n_states) if unknown_ends else unknown
        columns = np.concatenate([successors[own], led_to, [n_states]])
        values = np.concatenate([probabilities[own], np.ones(len(unknown) + 1)])
        matrices.append(sparse.csr_array((values, (rows, columns)), shape=(n_states + 1, n_states + 1)))
    return matrices


def entries_of_pairs(
    first: npt.NDArray[np.int64], following: npt.NDArray[np.int64]
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Yield, for k = 1, 2, ..., the pairs that have a k-th entry in the lists of `Counts`, and that entry; shape (n,) each."""
    pairs = np.flatnonzero(first)
    entries = first[pairs]
    while len(entries):
        yield pairs, entries
        entries = following[entries]
        more = entries != 0
        pairs, entries = pairs[more], entries[more]


def _corrections(
    pairs: npt.NDArray[np.int64], is_end: npt.NDArray[np.bool_], probabilities: FloatArray, ends: FloatArray
) -> FloatArray:
    """Return factors that scale the measured probabilities so that the end of the episode has its known probability."""
    measured = np.zeros(len(ends))
    measured[pairs[is_end]] = probabilities[is_end]
    # Where only the end was measured, there is no other successor to scale.
    known = np.isfinite(ends) & (measured < 1) & (ends > 0) & (ends < 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        factors = np.where(is_end, ends[pairs] / measured[pairs], (1 - ends[pairs]) / (1 - measured[pairs]))
    return np.where(known[pairs], factors, 1.0)
