"""How the decision to look goes into an action, and *nothing seen* into an observation, for each kind of space."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from actmeasure.envs.contract import Where, checked_box, checked_observation
from actmeasure.errors import SpaceError

__all__ = ["Actions", "BoxObservations", "DiscreteObservations", "observations"]


class Actions:
    """Actions of an environment with one more component, the decision to look.

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
            # There is no -1 in an unsigned Box; 0 means blind just as well.
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
        """The environment's own action, and whether to look."""
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
    """Observations 0..n-1 (or from `start`), and one more that means *nothing seen*."""

    def __init__(self, base: spaces.Discrete[Any]) -> None:
        self.space = spaces.Discrete(int(base.n) + 1, start=int(base.start))
        self._first, self._nothing = int(base.start), int(base.start) + int(base.n)

    def shown(self, observation: Any, where: Where) -> int:
        """What the agent gets when it looks, if that is in the space of the environment; otherwise a `SpaceError`."""
        return checked_observation(observation, self._first, self._nothing - 1, where)

    def nothing(self) -> int:
        """What the agent gets when it does not."""
        return self._nothing


class BoxObservations:
    """A dictionary of the observation and whether there is one; without one it is 0 everywhere."""

    def __init__(self, base: spaces.Box) -> None:
        # Zeros are outside of some Boxes, so the Box is widened where it must be.
        low, high = np.minimum(base.low, 0), np.maximum(base.high, 0)
        box = spaces.Box(low.astype(base.dtype), high.astype(base.dtype), base.shape, base.dtype.type)
        self.space = spaces.Dict({"observation": box, "measured": spaces.Discrete(2)})
        self._shape, self._dtype = base.shape, base.dtype

    def shown(self, observation: Any, where: Where) -> dict[str, Any]:
        """What the agent gets when it looks: a copy, as the environment may go on writing into its own array.

        An observation of another shape or kind, or with numbers that the Box's type cannot hold, is a `SpaceError`. The limits of
        a Box are not checked: many environments end with an observation just outside of them.
        """
        return {"observation": checked_box(observation, self._shape, self._dtype, where), "measured": 1}

    def nothing(self) -> dict[str, Any]:
        """What the agent gets when it does not."""
        return {"observation": np.zeros(self._shape, dtype=self._dtype), "measured": 0}


def observations(env: gymnasium.Env[Any, Any]) -> DiscreteObservations | BoxObservations:
    """The observations of an environment with *nothing seen* added; a `SpaceError` where there is no room for it."""
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
