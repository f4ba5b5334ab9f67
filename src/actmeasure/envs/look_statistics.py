"""A Gymnasium wrapper that counts the looks of an episode and what they cost, and a monitor for Stable-Baselines3."""

from __future__ import annotations

import time
from typing import Any

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from actmeasure.errors import SpaceError, import_extra

__all__ = ["LookStatistics", "monitored"]


class LookStatistics(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Add the number of looks of an episode, and their cost, to `info["episode"]` as it ends.

    `info["episode"]` has `r` (the return), `l` (the number of steps) and `t` (seconds since the wrapper was made), as
    Gymnasium and Stable-Baselines3 have it, and `looks` and `looks_cost`. Where a wrapper inside of this one, such as
    `gymnasium.wrappers.RecordEpisodeStatistics` or the `Monitor` of Stable-Baselines3, has written it already, the last two are
    added.

    Parameters
    ----------
    env : gymnasium.Env
        In which looking costs: `info` has `measured` and `measuring_cost` in every step.

    Examples
    --------
    >>> import actmeasure as am
    >>> env = LookStatistics(am.envs.TabularEnv(am.problems.measuring_value(p=1.0, measuring_cost=0.1)))
    >>> _ = env.reset(seed=0)
    >>> _ = env.step([1, 1])
    >>> *_, info = env.step([1, 0])
    >>> info["episode"]["looks"], info["episode"]["looks_cost"], info["episode"]["r"]
    (1, 0.1, 0.9)
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        RecordConstructorArgs.__init__(self)
        gymnasium.Wrapper.__init__(self, env)
        if not env.has_wrapper_attr("measuring_cost"):
            raise SpaceError(
                "looking costs nothing in this environment; wrap it: ActiveMeasuring(env, measuring_cost=...)"
            )
        self._begun = time.perf_counter()
        self._earned, self._steps, self._looks, self._cost = 0.0, 0, 0, 0.0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        self._earned, self._steps, self._looks, self._cost = 0.0, 0, 0, 0.0
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take an action; the last step of an episode has its statistics in `info`."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._earned += float(reward)
        self._steps += 1
        self._looks += bool(info["measured"])
        self._cost += float(info["measuring_cost"])
        if terminated or truncated:
            own = {"r": self._earned, "l": self._steps, "t": time.perf_counter() - self._begun}
            looks = {"looks": self._looks, "looks_cost": self._cost}
            info["episode"] = own | dict(info.get("episode") or {}) | looks
        return observation, reward, terminated, truncated, info


def monitored(env: gymnasium.Env[Any, Any], filename: str | None = None) -> LookStatistics:
    """Return an environment for Stable-Baselines3 (needs the extra `sb3`) whose `info["episode"]` has the looks of an episode.

    Its own `Monitor` is inside, so that it adds none, which would replace what is there. `model.ep_info_buffer` then has `looks`
    and `looks_cost` of the last episodes.

    Parameters
    ----------
    env : gymnasium.Env
        In which looking costs.
    filename : str, optional
        Where the `Monitor` writes its CSV file.
    """
    monitor = import_extra("stable_baselines3.common.monitor", "monitored", "sb3").Monitor
    return LookStatistics(monitor(env, filename))
