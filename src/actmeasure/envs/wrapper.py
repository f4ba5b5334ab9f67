"""A Gymnasium wrapper that puts a price on observations."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs

from actmeasure.envs.contract import Where, checked_box, checked_observation, checked_reward, reset_parts, step_parts
from actmeasure.envs.tabular import checked_steps
from actmeasure.errors import SpaceError
from actmeasure.model.measurement import checked_price
from actmeasure.settings import truth

__all__ = ["Actions", "ActiveMeasuring", "BoxObservations", "DiscreteObservations", "observations"]


class ActiveMeasuring(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Wrap an environment so that an observation is shown only if it is paid for.

    An action gets one more component, the decision to look: `Discrete(n)` becomes `MultiDiscrete([n, 2])`, a `MultiDiscrete`
    gets one more component, a `Box` one more dimension (above 0 means look). An observation can be *nothing seen*: the last
    value of `Discrete(n + 1)`, or `measured` 0 (and zeros) in `Dict(observation=Box, measured=Discrete(2))`. The end of an
    episode is noticed without looking, but what it looks like is not seen.

    The reward is what the environment pays minus the cost of looking. `info` has

    * `reward`: what the environment paid;
    * `measuring_cost`: what was paid for looking in this step, 0 without a look;
    * `measured`: whether the state was shown;

    and a copy of the environment's own `info` only where the state is shown, as it can give the state away (entries of the
    same three names are hidden by ours, entries that cannot be copied are left out). Wrappers that add to `info`, such as
    `RecordEpisodeStatistics`, therefore belong outside of this one.

    Parameters
    ----------
    env : gymnasium.Env
        With `Discrete`, `MultiDiscrete` or one-axis `Box` actions, and `Discrete` or `Box` observations.
    measuring_cost : float
        Price of a look.
    reveal_start : bool
        Whether `reset` shows the first state, for free.
    max_steps : int
        Number of steps after which an episode is truncated, unless it ends with the last of them or the environment truncates
        it earlier.

    Examples
    --------
    >>> import gymnasium
    >>> env = ActiveMeasuring(gymnasium.make("CliffWalking-v1"), measuring_cost=0.1)
    >>> env.action_space, env.observation_space
    (MultiDiscrete([4 2]), Discrete(49))
    >>> env.reset(seed=0)[0]
    36
    >>> observation, reward, _, _, info = env.step([0, 1])       # up, and look
    >>> observation, reward, info["reward"], info["measuring_cost"]
    (24, -1.1, -1.0, 0.1)
    >>> env.step([0, 0])                                         # up, blind
    (48, -1.0, False, False, {'reward': -1.0, 'measuring_cost': 0.0, 'measured': False})
    """

    def __init__(
        self, env: gymnasium.Env[Any, Any], measuring_cost: float, *, reveal_start: bool = True, max_steps: int = 1000
    ) -> None:
        if not isinstance(env, gymnasium.Env):
            vector = isinstance(env, gymnasium.vector.VectorEnv)
            remedy = (
                "wrap each environment before it goes into the vector"
                if vector
                else "pass one, as gymnasium.make gives"
            )
            raise SpaceError(
                f"the environment is of type {type(env).__name__}, expected a Gymnasium environment; {remedy}"
            )
        # Recorded so that `gymnasium.make(env.spec)` can wrap again.
        RecordConstructorArgs.__init__(
            self, measuring_cost=measuring_cost, reveal_start=reveal_start, max_steps=max_steps
        )
        gymnasium.Wrapper.__init__(self, env)
        if env.has_wrapper_attr("measuring_cost"):
            raise SpaceError(f"looking already costs something in {env}; use it as it is, without ActiveMeasuring")
        self.measuring_cost = checked_price(measuring_cost)
        self.reveal_start = truth(reveal_start, "reveal_start")
        self.max_steps = checked_steps(max_steps)
        self._actions, self._observations = Actions(env), observations(env)
        self.action_space, self.observation_space = self._actions.space, self._observations.space
        self._episodes, self._steps = 0, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; the first state is shown unless `reveal_start` is False."""
        given = self.env.reset(seed=seed, options=options)
        self._episodes, self._steps = self._episodes + 1, 0
        observation, info = reset_parts(given, (self._episodes, 0))
        return self._shown(observation, info, 0.0, 0.0, self.reveal_start)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take an action and, if its last component says so, measure the state that it leads to."""
        control, measured = self._actions.split(action)
        given = self.env.step(control)
        self._steps += 1
        where = (self._episodes, self._steps)
        observation, paid, terminated, truncated, info = step_parts(given, where)
        reward, cost = checked_reward(paid, "the environment's reward", where), self.measuring_cost if measured else 0.0
        observation, info = self._shown(observation, info, reward, cost, measured)
        cut_off = self._steps >= self.max_steps and not terminated
        return observation, reward - cost, terminated, truncated or cut_off, info

    def _shown(
        self, observation: Any, info: Mapping[str, Any], reward: float, cost: float, measured: bool
    ) -> tuple[Any, dict[str, Any]]:
        ours = {"reward": reward, "measuring_cost": cost, "measured": measured}
        # Checked also where it is not shown, so that an error is raised in the step that causes it.
        shown = self._observations.shown(observation, (self._episodes, self._steps))
        if not measured:
            return self._observations.nothing(), ours
        return shown, _copied(info) | ours


def _copied(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return a deep copy: objects that the environment changes later would show states that were not paid for."""
    copies = {}
    for key, value in info.items():
        try:
            copies[key] = deepcopy(value)
        except Exception:  # objects of the environment may raise anything; those that cannot be copied are left out
            continue
    return copies


class Actions:
    """The action space of an environment with one more component, the decision to look.

    Attributes
    ----------
    space : gymnasium.spaces.Space
        `MultiDiscrete` with a last component of 0 (blind) or 1 (look), or `Box` with a last dimension from -1 to 1 (above
        0 means look).
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        base = env.action_space
        self._base = base
        self.space: spaces.MultiDiscrete[Any] | spaces.Box
        if isinstance(base, spaces.Discrete):
            self.space = spaces.MultiDiscrete([int(base.n), 2], start=[int(base.start), 0])
        elif isinstance(base, spaces.MultiDiscrete) and base.nvec.ndim == 1:
            nvec, start = np.append(base.nvec, 2), np.append(base.start, 0)
            self.space = spaces.MultiDiscrete(nvec, dtype=base.dtype, start=start)
        elif isinstance(base, spaces.Box) and len(base.shape) == 1:
            # An unsigned Box has no -1; 0 means not to look, too.
            lowest = 0 if np.issubdtype(base.dtype, np.unsignedinteger) else -1
            low, high = np.append(base.low, lowest).astype(base.dtype), np.append(base.high, 1).astype(base.dtype)
            self.space = spaces.Box(low, high, dtype=base.dtype.type)
        else:
            raise SpaceError(
                f"the action space of {env} is {base}, expected Discrete, or MultiDiscrete or Box with one axis; apply "
                "gymnasium.wrappers.TransformAction with such a space first (gymnasium.spaces.flatten_space makes one, "
                "gymnasium.spaces.unflatten leads back)"
            )

    def split(self, action: Any) -> tuple[Any, bool]:
        """Return the environment's own action, and whether to look."""
        try:
            array = np.asarray(action)
        except ValueError:
            array = np.empty(0)
        whole = isinstance(self.space, spaces.MultiDiscrete)
        if array.shape != self.space.shape or array.dtype.kind not in ("iub" if whole else "iubf"):
            raise SpaceError(f"the action is {action!r}, expected {self.space.shape[0]} numbers in {self.space}")
        if isinstance(self.space, spaces.Box):
            if np.isnan(array[-1]):
                raise SpaceError(
                    f"the action is {action!r}, expected its last number to be above 0 (look) or not (do not)"
                )
            return array[:-1].astype(self._base.dtype), bool(array[-1] > 0)
        above = array.astype(np.int64) - self.space.start
        if array[-1] not in (0, 1):
            raise SpaceError(f"the action is {action!r}, expected its last number to be 1 (look) or 0 (do not)")
        if (above < 0).any() or (above >= self.space.nvec).any():
            largest = (self.space.start + self.space.nvec - 1).tolist()
            raise SpaceError(
                f"the action is {action!r}, expected whole numbers from {self.space.start.tolist()} to {largest}"
            )
        control = array[:-1].astype(self._base.dtype)
        return (control[0] if isinstance(self._base, spaces.Discrete) else control), bool(array[-1])


class DiscreteObservations:
    """A Discrete observation space with one more observation, the last: *nothing seen*."""

    def __init__(self, base: spaces.Discrete[Any]) -> None:
        self.space = spaces.Discrete(int(base.n) + 1, start=int(base.start))
        self._first, self._nothing = int(base.start), int(base.start) + int(base.n)

    def shown(self, observation: Any, where: Where) -> int:
        """Return an observation that is shown; a `SpaceError` if it is not in the space of the environment."""
        return checked_observation(observation, self._first, self._nothing - 1, where)

    def nothing(self) -> int:
        """Return the observation *nothing seen*."""
        return self._nothing


class BoxObservations:
    """A Box observation space as a dictionary of the observation, zeros for *nothing seen*, and whether it was measured."""

    def __init__(self, base: spaces.Box) -> None:
        # The Box is widened where it does not contain 0.
        low, high = np.minimum(base.low, 0), np.maximum(base.high, 0)
        box = spaces.Box(low.astype(base.dtype), high.astype(base.dtype), base.shape, base.dtype.type)
        self.space = spaces.Dict({"observation": box, "measured": spaces.Discrete(2)})
        self._shape, self._dtype = base.shape, base.dtype

    def shown(self, observation: Any, where: Where) -> dict[str, Any]:
        """Return an observation that is shown: a copy, as the environment may write into its own array later.

        An observation of another shape or kind, or with numbers that the Box's type cannot hold, is a `SpaceError`. The limits of
        a Box are not checked: many environments end with an observation just outside of them.
        """
        return {"observation": checked_box(observation, self._shape, self._dtype, where), "measured": 1}

    def nothing(self) -> dict[str, Any]:
        """Return the observation *nothing seen*."""
        return {"observation": np.zeros(self._shape, dtype=self._dtype), "measured": 0}


def observations(env: gymnasium.Env[Any, Any]) -> DiscreteObservations | BoxObservations:
    """Return the observation space of an environment with *nothing seen* added; a `SpaceError` for other kinds of spaces."""
    base = env.observation_space
    if isinstance(base, spaces.Discrete):
        return DiscreteObservations(base)
    if isinstance(base, spaces.Box):
        return BoxObservations(base)
    remedy = (
        "gymnasium.wrappers.FlattenObservation, which makes it a Box,"
        if base.is_np_flattenable
        else "gymnasium.wrappers.TransformObservation with a Discrete or Box space"
    )
    raise SpaceError(f"the observation space of {env} is {base}, expected Discrete or Box; apply {remedy} first")
