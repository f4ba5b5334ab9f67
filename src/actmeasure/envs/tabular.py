"""Models, and the problems of `actmeasure.problems` by name, as Gymnasium environments."""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from actmeasure.envs.episode_history import EpisodeHistory
from actmeasure.envs.registration import register_environments
from actmeasure.errors import ModelError, SpaceError, quoted, unknown_name
from actmeasure.kernel_arrays import outcome_tables
from actmeasure.kernels.outcomes import EXACT, LAW, NONE_SEEN, law_row
from actmeasure.kernels.streams import pick
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray
from actmeasure.settings import MOST_STEPS, make_by_name, truth, whole

__all__ = ["SHOWN_START", "Numbering", "ProblemEnv", "TabularEnv", "checked_steps"]

register_environments()  # for the command line, in which importing actmeasure does not do it

#: Stands for a measurement where an observation is the first state, shown for free.
SHOWN_START = -1
#: Largest number of successors for which choosing one in Python is faster than calling compiled code.
SHORT_ROW = 8

#: Uncompiled, as a single row is found faster in Python than by a call of compiled code.
_law_row = getattr(law_row, "py_func", law_row)


class Numbering:
    """The observations of a model's environment: one number for every outcome.

    Where looks are exact, observations are the states, and then *nothing seen*. Otherwise they are the outcomes of all
    measurements in a row, then the passive outcomes, then the states if the start is shown, then *nothing seen*.

    Parameters
    ----------
    model : Model

    Attributes
    ----------
    counts : tuple of int, length 1 + k
        Number of outcomes without a measurement (of the passive one, 0 if there is none), and of each measurement.
    first : tuple of int, length 1 + k
        Observation of the first outcome of each of them.
    first_start : int
        Observation that shows that the episode began in state 0, where the start is shown.
    nothing : int
        The last observation: *nothing seen*.
    size : int
        Number of observations.
    """

    def __init__(self, model: Model) -> None:
        self.counts = tuple(model.n_outcomes(number) for number in range(1 + len(model.measurements)))
        ends = np.cumsum([0, *self.counts[1:], self.counts[0]]).tolist()  # the passive outcomes come last
        self.first = (ends[-2], *ends[:-2])
        if model.looks_are_exact:
            self.first_start, self.nothing = 0, model.n_states
        else:
            self.first_start = ends[-1]
            self.nothing = self.first_start + (model.n_states if model.reveal_start else 0)
        self.size = self.nothing + 1
        self._looks_are_exact = model.looks_are_exact

    def observation(self, measurement: int, outcome: int | None) -> int:
        """Return the observation of an outcome; with None that of *nothing seen*. The inverse of `outcome`."""
        if outcome is None:
            return self.nothing
        number = whole(measurement, "the measurement", SHOWN_START, len(self.counts) - 1, SpaceError)
        if number == SHOWN_START:
            n_shown = self.nothing - self.first_start
            return self.first_start + whole(outcome, "the first state that is shown", 0, n_shown - 1, SpaceError)
        return int(self.first[number]) + whole(outcome, "the outcome", 0, self.counts[number] - 1, SpaceError)

    def outcome(self, observation: int) -> tuple[int, int | None]:
        """Return the measurement and the outcome, a number within that measurement, that an observation stands for.

        *Nothing seen* is `(0, None)`, a passive outcome `(0, outcome)`, and a first state that is shown `(-1, state)`; where
        looks are exact it is `(1, state)` as any other.
        """
        try:
            number = index(observation)
        except TypeError:
            number = -1
        if not 0 <= number < self.size:
            raise SpaceError(
                f"the observation is {quoted(observation)}, expected a whole number from 0 to {self.nothing}"
            )
        if number == self.nothing:
            return 0, None
        if not self._looks_are_exact and number >= self.first_start:
            return SHOWN_START, number - self.first_start
        for measurement in (*range(1, len(self.counts)), 0):
            if number < self.first[measurement] + self.counts[measurement]:
                return measurement, number - self.first[measurement]
        raise AssertionError(number)


class TabularEnv(gymnasium.Env[Any, Any]):
    """A model as an environment, with the action and observation spaces of `ActiveMeasuring`.

    An action is `[control, look]`, `look` being 0 or 1. The observation is the state if it looked, and `n_states` (*nothing
    seen*) if not. The reward is what the model pays minus the measuring cost. `info` has `reward` (what the model
    paid), `measuring_cost` (what was paid for looking) and `measured`.

    The random numbers drawn are part of the contract: `reset` draws one `np_random.random()` if there is more than one
    initial state, `step` draws exactly one, and both choose by inversion.

    So it is where the model has one exact measurement. Where it has others, an action is `[control, measurement]`, from 0 (none)
    to k. A measurement that is not allowed with the action counts as none: it is not paid for, and what is seen without a
    measurement is seen. The observation is a number for every outcome: those of all measurements in a row, then the passive ones,
    then the states if the start is shown, then *nothing seen*; `outcome` and `observation` convert. `info` also has `measurement`
    (the number of the one that was made, 0 for none) and `outcome` (its number within that measurement, -1 for nothing seen; at
    the start that is shown, the state). With the end of an episode only exact measurements show something. `step` draws a
    second number for an outcome that is not exact.

    Parameters
    ----------
    model : Model
    max_steps : int
        Number of steps after which an episode is truncated, unless it ends with the last of them.
    reveal_start : bool, optional
        Whether `reset` shows the first state, for free. By default as the model says.
    render_mode : "ansi", optional
        Text with the state, what may be believed, the last look, and the return so far.

    Attributes
    ----------
    model : Model
        With `reveal_start` as it is here.
    numbering : Numbering
        The numbers of observations: how many outcomes each measurement has, and where they begin.

    Examples
    --------
    >>> import actmeasure as am
    >>> env = TabularEnv(am.problems.measuring_value(p=1.0, measuring_cost=0.1))
    >>> env.reset(seed=0)
    (0, {'reward': 0.0, 'measuring_cost': 0.0, 'measured': True})
    >>> env.step([1, 0])                                         # blind: 4 means that nothing was seen
    (4, 0.0, False, False, {'reward': 0.0, 'measuring_cost': 0.0, 'measured': False})

    With several measurements:

    >>> env = TabularEnv(am.problems.inspection())               # visual, ultrasonic, opening
    >>> env.action_space, env.observation_space
    (MultiDiscrete([3 4]), Discrete(13))
    >>> _ = env.reset(seed=0)
    >>> observation = env.step([0, 2])[0]                        # nothing, and ultrasonic
    >>> env.outcome(observation)                                 # measurement 2 showed the rating 0
    (2, 0)
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012  (declared so by Gymnasium)

    def __init__(
        self,
        model: Model,
        *,
        max_steps: int = 1000,
        reveal_start: bool | None = None,
        render_mode: str | None = None,
    ) -> None:
        if not isinstance(model, Model):
            raise ModelError(f"model is {quoted(model)}, expected a Model, such as actmeasure.problems.frozen_lake()")
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise SpaceError(unknown_name("render mode", render_mode, self.metadata["render_modes"]))
        same = reveal_start is None or truth(reveal_start, "reveal_start") == model.reveal_start
        self.model = model if same else model.replace(reveal_start=reveal_start)
        self.max_steps = checked_steps(max_steps)
        self.render_mode = render_mode
        self.numbering = Numbering(self.model)
        self.action_space = spaces.MultiDiscrete([model.n_actions, 1 + len(model.measurements)])
        self.observation_space = spaces.Discrete(self.numbering.size)
        self._n_actions, self._nothing = model.n_actions, self.numbering.nothing
        self._looks = tuple(range(1 + len(model.measurements)))
        self._looks_are_exact = model.looks_are_exact
        self._read_model()
        self._state = -1
        self._running = False
        self._steps = 0
        self._history: EpisodeHistory | None = None

    @property
    def measuring_cost(self) -> float | FloatArray | tuple[float | FloatArray, ...]:
        """Price of the measurement: a number, or an array of shape (S, A); a tuple of these unless there is exactly one."""
        prices = tuple(measurement.cost for measurement in self.model.measurements)
        return prices[0] if len(prices) == 1 else prices

    def outcome(self, observation: int) -> tuple[int, int | None]:
        """Return the measurement and the outcome within it that an observation stands for.

        *Nothing seen* is `(0, None)`, a passive outcome `(0, outcome)`, and a first state that is shown `(-1, state)`; where
        looks are exact it is `(1, state)` as any other.
        """
        return self.numbering.outcome(observation)

    def observation(self, measurement: int, outcome: int | None) -> int:
        """Return the observation that stands for an outcome of a measurement, or for *nothing seen* (None)."""
        return self.numbering.observation(measurement, outcome)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Begin an episode; the first state is drawn from the model's start distribution."""
        super().reset(seed=seed)
        model = self.model
        chosen = 0
        if len(model.initial_states) > 1:
            choose, offsets, probabilities = self._start
            chosen = choose(offsets, probabilities, 0, self.np_random.random())
        self._state = int(model.initial_states[chosen])
        self._running, self._steps = True, 0
        shown = model.reveal_start
        if self.render_mode is not None:
            self._history = EpisodeHistory(model, self._state, shown)
        info = {"reward": 0.0, "measuring_cost": 0.0, "measured": shown}
        if self._looks_are_exact:
            return self._state if shown else self._nothing, info
        info |= {"measurement": 0, "outcome": self._state if shown else NONE_SEEN}
        return self.numbering.first_start + self._state if shown else self._nothing, info

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Take an action and, if its second component is not 0, measure the state that it leads to."""
        control, measurement = self._split(action)
        reward, cost, state = 0.0, 0.0, self._state
        if self._running:
            choose, offsets, probabilities, successors, rewards, per_entry, terminal = self._table
            row = state * self._n_actions + control
            entry = choose(offsets, probabilities, row, self.np_random.random())
            reward = rewards[entry if per_entry else row]
            if measurement:
                cost = self._prices[measurement](state, control)
            self._state = state = successors[entry]
            self._running = not terminal[state]
        else:
            self._stay()
        self._steps += 1
        info = {"reward": reward, "measuring_cost": cost, "measured": bool(measurement)}
        observation = outcome = state if measurement else self._nothing
        if not self._looks_are_exact:
            outcome = self._draw_outcome(control, measurement)
            observation = self._nothing if outcome < 0 else self.numbering.first[measurement] + outcome
            info["measurement"], info["outcome"] = measurement, outcome
        if self._history is not None:
            seen = outcome if measurement or not self._looks_are_exact else NONE_SEEN
            self._history.add(control, measurement, seen, state, reward - cost)
        return (
            observation,
            reward - cost,
            not self._running,
            self._running and self._steps >= self.max_steps,
            info,
        )

    def _draw_outcome(self, control: int, measurement: int) -> int:
        """Return the outcome of a measurement of the present state; -1 where nothing is seen."""
        laws = self._laws
        kind = laws.kinds[measurement]
        if kind == EXACT:
            return self._state
        if kind != LAW or not self._running:
            return NONE_SEEN
        choose, offsets, probabilities = self._law_rows
        row = _law_row(laws, measurement, control, self._state)
        return int(laws.outcomes[choose(offsets, probabilities, row, self.np_random.random())])

    def _stay(self) -> None:
        """Take a step after the end of an episode, which leaves the state as it is, like Gymnasium's toy-text environments."""
        if self._state < 0:
            raise ResetNeeded("the episode has not begun; call reset() before step()")
        self.np_random.random()

    def _split(self, action: Any) -> tuple[int, int]:
        """Return the control action and the measurement, 0 where it is not allowed with the action."""
        try:
            control, look = action.tolist() if isinstance(action, np.ndarray) else action
            control = index(control)
            if 0 <= control < self._n_actions and look in self._looks:
                return control, int(look) if self._allowed is None or self._allowed[control, int(look)] else 0
        except (TypeError, ValueError):
            pass
        last = self._looks[-1]
        name, choice = ("look", "of 1 (yes) or 0 (no)") if last == 1 else ("measurement", f"from 0 (none) to {last}")
        raise SpaceError(
            f"the action is {action!r}, expected [control, {name}] with a control from 0 to {self._n_actions - 1} "
            f"and a {name} {choice}"
        )

    def render(self) -> Any:
        """Return the episode so far as the render mode says; None without a render mode."""
        if self.render_mode is None:
            gymnasium.logger.warn(
                'render() shows nothing without a render mode; make the environment with render_mode="ansi"'
            )
            return None
        if self._history is None:
            raise ResetNeeded("the episode has not begun; call reset() before render()")
        return self._render(self._history)

    def _render(self, history: EpisodeHistory) -> Any:
        """Return a history as the render mode says."""
        return history.text()

    def _read_model(self) -> None:
        """Prepare views of the model's arrays for fast reading of single numbers."""
        model = self.model
        rewards = model.rewards if model.transition_rewards is None else model.transition_rewards
        self._table = (
            *_chooser(model.transitions.offsets, model.transitions.probabilities),
            _view(model.transitions.successors),
            _view(np.ravel(rewards)),
            model.transition_rewards is not None,
            _view(model.terminal),
        )
        self._start = _chooser(np.array([0, len(model.initial_states)]), model.initial_probabilities)
        self._prices: tuple[Any, ...] = (None, *(measurement.of for measurement in model.measurements))
        self._allowed = None if model.allowed_decisions.all() else _view(model.allowed_decisions)
        if not model.looks_are_exact:
            laws = outcome_tables(model)
            arrays: dict[str, Any] = {
                name: _view(value) for name, value in laws._asdict().items() if isinstance(value, np.ndarray)
            }
            self._laws = laws._replace(**arrays)
            self._law_rows = _chooser(laws.offsets, laws.probabilities)

    def __getstate__(self) -> dict[str, Any]:
        # Memory views cannot be copied or pickled; `__setstate__` makes all that is read from the model again.
        views = ("_table", "_start", "_prices", "_allowed", "_laws", "_law_rows")
        return {name: value for name, value in vars(self).items() if name not in views}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._read_model()


class ProblemEnv(TabularEnv):
    """The environment of a problem by name, as `gymnasium.make("actmeasure/MeasuringValue-v0", p=0.9)` returns it.

    Parameters
    ----------
    problem : str
        A name in `problems.PROBLEMS`.
    max_steps, reveal_start, render_mode
        As in `TabularEnv`.
    **settings
        The problem's own, such as its measuring cost. An unknown one is a `ModelError`.
    """

    def __init__(
        self,
        problem: str,
        *,
        max_steps: int = 1000,
        reveal_start: bool | None = None,
        render_mode: str | None = None,
        **settings: Any,
    ) -> None:
        from actmeasure.problems import PROBLEMS  # here, because importing all problems takes a while

        own = ("max_steps", "reveal_start", "render_mode")
        model = make_by_name("problem", problem, PROBLEMS, settings, ModelError, also=own)
        super().__init__(model, max_steps=max_steps, reveal_start=reveal_start, render_mode=render_mode)


def _chooser(offsets: npt.NDArray[np.int64], probabilities: FloatArray) -> tuple[Callable[..., int], Any, Any]:
    """Return the function that selects an entry of a row, and the two tables to call it with.

    It is `kernels.simulate.pick` compiled or, for short rows, uncompiled on plain Python numbers, which is faster than a call
    of compiled code.
    """
    if np.diff(offsets).max(initial=0) <= SHORT_ROW:
        return getattr(pick, "py_func", pick), _view(offsets), _view(probabilities)
    offsets.setflags(write=False)  # as the model's own are, so that it is compiled once
    return pick, offsets, probabilities


def _view(array: Any) -> memoryview:
    """Return the memory of an array, whose entries are plain Python numbers and read faster than those of the array."""
    return memoryview(array)


def checked_steps(max_steps: Any) -> int:
    """Return the largest number of steps of an episode as an int, or raise a `ModelError`."""
    return whole(max_steps, "max_steps", 1, MOST_STEPS, what="a whole number of steps")
