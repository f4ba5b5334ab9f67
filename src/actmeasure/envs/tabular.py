"""A model as a Gymnasium environment."""

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
from actmeasure.kernels.simulate import pick
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray
from actmeasure.settings import MOST_STEPS, truth, whole

__all__ = ["TabularEnv", "checked_steps"]

register_environments()  # for the command line, in which importing actmeasure does not do it

#: Largest number of successors for which choosing one in Python is faster than calling compiled code.
SHORT_ROW = 8


class TabularEnv(gymnasium.Env[Any, Any]):
    """A model as an environment, with the action and observation spaces of `ActiveMeasuring`.

    An action is `[control, look]`, `look` being 0 or 1. The observation is the state if it looked, and `n_states` (*nothing
    seen*) if not. The reward is what the model pays minus the measuring cost. `info` has `reward` (what the model
    paid), `measuring_cost` (what was paid for looking) and `measured`.

    The random numbers drawn are part of the contract: `reset` draws one `np_random.random()` if there is more than one
    initial state, `step` draws exactly one, and both choose by inversion.

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

    Examples
    --------
    >>> import actmeasure as am
    >>> env = TabularEnv(am.problems.measuring_value(p=1.0, measuring_cost=0.1))
    >>> env.reset(seed=0)
    (0, {'reward': 0.0, 'measuring_cost': 0.0, 'measured': True})
    >>> env.step([1, 0])                                         # blind: 4 means that nothing was seen
    (4, 0.0, False, False, {'reward': 0.0, 'measuring_cost': 0.0, 'measured': False})
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
        self.action_space = spaces.MultiDiscrete([model.n_actions, 2])
        self.observation_space = spaces.Discrete(model.n_states + 1)
        self._n_actions, self._nothing = model.n_actions, model.n_states
        self._read_model()
        self._state = -1
        self._running = False
        self._steps = 0
        self._history: EpisodeHistory | None = None

    @property
    def measuring_cost(self) -> float | FloatArray:
        """Price of a measurement: a number, or an array of shape (S, A)."""
        return self.model.measuring_cost

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
        observation = self._state if shown else self._nothing
        return observation, {"reward": 0.0, "measuring_cost": 0.0, "measured": shown}

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Take an action and, if its second component is 1, measure the state that it leads to."""
        control, measured = self._split(action)
        reward, cost, state = 0.0, 0.0, self._state
        if self._running:
            choose, offsets, probabilities, successors, rewards, per_entry, terminal = self._table
            row = state * self._n_actions + control
            entry = choose(offsets, probabilities, row, self.np_random.random())
            reward = rewards[entry if per_entry else row]
            if measured:
                cost = self.model.measurements[0].of(state, control)
            self._state = state = successors[entry]
            self._running = not terminal[state]
        else:
            self._stay()
        self._steps += 1
        if self._history is not None:
            self._history.add(control, measured, state, reward - cost)
        return (
            state if measured else self._nothing,
            reward - cost,
            not self._running,
            self._running and self._steps >= self.max_steps,
            {"reward": reward, "measuring_cost": cost, "measured": measured},
        )

    def _stay(self) -> None:
        """Take a step after the end of an episode, which leaves the state as it is, like Gymnasium's toy-text environments."""
        if self._state < 0:
            raise ResetNeeded("the episode has not begun; call reset() before step()")
        self.np_random.random()

    def _split(self, action: Any) -> tuple[int, bool]:
        try:
            control, look = action.tolist() if isinstance(action, np.ndarray) else action
            control = index(control)
            if 0 <= control < self._n_actions and look in (0, 1):
                return control, bool(look)
        except (TypeError, ValueError):
            pass
        raise SpaceError(
            f"the action is {action!r}, expected [control, look] with a control from 0 to {self._n_actions - 1} "
            "and a look of 1 (yes) or 0 (no)"
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

    def __getstate__(self) -> dict[str, Any]:
        # Memory views cannot be copied or pickled; `__setstate__` makes them again.
        return {name: value for name, value in vars(self).items() if name not in ("_table", "_start")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._read_model()


def _chooser(offsets: npt.NDArray[np.int64], probabilities: FloatArray) -> tuple[Callable[..., int], Any, Any]:
    """Return the function that selects an entry of a row, and the two tables to call it with.

    It is `kernels.simulate.pick` compiled or, for short rows, uncompiled on plain Python numbers, which is faster than a call
    of compiled code.
    """
    if np.diff(offsets).max() <= SHORT_ROW:
        return getattr(pick, "py_func", pick), _view(offsets), _view(probabilities)
    offsets.setflags(write=False)  # as the model's own are, so that it is compiled once
    return pick, offsets, probabilities


def _view(array: Any) -> memoryview:
    """Return the memory of an array, whose entries are plain Python numbers and read faster than those of the array."""
    return memoryview(array)


def checked_steps(max_steps: Any) -> int:
    """Return the largest number of steps of an episode as an int, or raise a `ModelError`."""
    return whole(max_steps, "max_steps", 1, MOST_STEPS, what="a whole number of steps")
