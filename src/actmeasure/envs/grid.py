"""A Gymnasium wrapper that divides continuous states, and actions, into finitely many cells."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import product
from math import inf, isnan, nextafter, prod
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs

from actmeasure.envs.contract import Where, checked_box, location, reset_parts, step_parts
from actmeasure.errors import SpaceError, quoted
from actmeasure.model.transitions import FloatArray
from actmeasure.settings import real, whole

__all__ = ["Grid"]

#: Largest number of cells: tabular agents keep a row for each.
MOST_CELLS = 2**31 - 1
#: Largest number of cells along one dimension.
MOST_BINS = 10**6


class Grid(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Divide the observations of an environment into the cells of a grid, and its actions into a few values.

    An observation becomes the number of its cell, so that tabular agents can be trained on the environment. What they see is
    coarser than the state: the process between cells is not exactly Markov, and what an agent earns depends on the grid.

    The wrapper may be inside of `ActiveMeasuring` or outside. Outside it keeps its contract: *nothing seen* is the last number,
    an action's last component is whether to look, and the reward and `info` are unchanged.

    Parameters
    ----------
    env : gymnasium.Env
        With observations in a `Box` with one axis, of D dimensions, or such an environment wrapped by `ActiveMeasuring`.
    bins : int, or sequence of length D
        Number of cells along every dimension, or for each dimension a number or an increasing list of the edges between cells.
    low, high : float or sequence of length D, optional
        Range that is divided into cells of equal width; by default the bounds of the space. Observations outside belong to the
        first and the last cell. A dimension without bounds for which no range is given has cells of equal width in
        arctan(x), from -infinity to infinity.
    actions : int, or sequence of int, optional
        For `Box` actions: number of values of each component, evenly spaced from its lowest to its highest; 1 is the middle.

    Attributes
    ----------
    edges : tuple of arrays
        Edges between the cells along each dimension.
    shape : tuple of int
        Number of cells along each dimension; the last dimension counts fastest.
    n_states : int
        Number of cells.

    Examples
    --------
    >>> import gymnasium
    >>> from actmeasure.envs import ActiveMeasuring
    >>> env = Grid(gymnasium.make("MountainCar-v0"), bins=[10, 8])
    >>> env.observation_space, env.cell_of([-0.5, 0.0])
    (Discrete(80), 28)
    >>> ActiveMeasuring(env, measuring_cost=0.1).action_space
    MultiDiscrete([3 2])
    >>> Grid(gymnasium.make("Pendulum-v1"), bins=6, actions=5).action_space
    Discrete(5)
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        bins: int | Sequence[Any] = 10,
        *,
        low: float | Sequence[float] | None = None,
        high: float | Sequence[float] | None = None,
        actions: int | Sequence[int] | None = None,
    ) -> None:
        if not isinstance(env, gymnasium.Env):
            raise SpaceError(f"the environment is of type {type(env).__name__}, expected a Gymnasium environment")
        RecordConstructorArgs.__init__(self, bins=bins, low=low, high=high, actions=actions)
        gymnasium.Wrapper.__init__(self, env)
        base = env.observation_space
        self._is_measuring = isinstance(base, spaces.Dict) and set(base.spaces) == {"observation", "measured"}
        box: Any = base["observation"] if isinstance(base, spaces.Dict) and self._is_measuring else base
        if not isinstance(box, spaces.Box) or len(box.shape) != 1:
            raise SpaceError(
                f"the observation space of {env} is {base}, expected a Box with one axis, or one that ActiveMeasuring wraps; "
                "apply gymnasium.wrappers.FlattenObservation first"
            )
        self._box = box
        lows, highs = _per_dimension(low, "low", box.low), _per_dimension(high, "high", box.high)
        self.edges = tuple(
            _edges(one, lows[number], highs[number], number)
            for number, one in enumerate(_listed(bins, box.shape[0], "bins"))
        )
        self.shape = tuple(len(edges) + 1 for edges in self.edges)
        self.n_states = prod(self.shape)
        if self.n_states > MOST_CELLS:
            raise SpaceError(f"the grid has {self.n_states:,} cells, expected {MOST_CELLS:,} at most; give fewer bins")
        self.observation_space = spaces.Discrete(self.n_states + self._is_measuring)
        self._lists = [edges.tolist() for edges in self.edges]  # searched faster than arrays
        self._values: FloatArray | None = None
        self.action_space = self._actions(env.action_space, actions)
        self._episodes, self._steps = 0, 0

    def cell_of(self, observation: Any) -> int:
        """Return the number of the cell that an observation of the environment is in; one that is NaN is a `SpaceError`."""
        return self._cell(np.asarray(observation, dtype=np.float64), (self._episodes, self._steps))

    def centre_of(self, cell: int) -> FloatArray:
        """Return the middle of a cell, shape (D,); along dimensions where it has no end, the edge that it has."""
        numbers = np.unravel_index(whole(cell, "the cell", 0, self.n_states - 1, SpaceError), self.shape)
        return np.array([_middle(edges, int(number)) for edges, number in zip(self._lists, numbers, strict=True)])

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Begin an episode."""
        given = self.env.reset(seed=seed, options=options)
        self._episodes, self._steps = self._episodes + 1, 0
        observation, info = reset_parts(given, (self._episodes, 0))
        return self._seen(observation), dict(info)

    def step(self, action: Any) -> tuple[int, Any, bool, bool, dict[str, Any]]:
        """Take an action."""
        given = self.env.step(action if self._values is None else self._control(action))
        self._steps += 1
        observation, reward, terminated, truncated, info = step_parts(given, (self._episodes, self._steps))
        return self._seen(observation), reward, terminated, truncated, dict(info)

    def _seen(self, observation: Any) -> int:
        """Return the number of what is seen: of the cell, or the last one for nothing."""
        if self._is_measuring:
            if not observation["measured"]:
                return self.n_states
            observation = observation["observation"]
        where = (self._episodes, self._steps)
        return self._cell(checked_box(observation, self._box.shape, self._box.dtype, where), where)

    def _cell(self, observation: Any, where: Where) -> int:
        number = 0
        for value, edges in zip(observation.tolist(), self._lists, strict=True):
            if isnan(value):
                raise SpaceError(
                    f"the environment's observation is {quoted(observation)} {location(where)}, expected numbers; correct the "
                    "environment"
                )
            number = number * (len(edges) + 1) + bisect_right(edges, value)
        return number

    def _actions(self, base: spaces.Space[Any], count: Any) -> spaces.Space[Any]:
        """Return the action space, and prepare the values of `Box` actions."""
        if not isinstance(base, spaces.Box):
            if count is not None:
                raise SpaceError(
                    f"actions are {quoted(count)}, but the environment's are {base} already; leave them out"
                )
            return base
        if len(base.shape) != 1 or count is None:
            raise SpaceError(
                f"the actions are {base}, expected Discrete ones for agents with tables; say how many values each component is "
                "to have, such as actions=5"
            )
        size = base.shape[0] - self._is_measuring
        low, high = base.low[:size].astype(np.float64), base.high[:size].astype(np.float64)
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            raise SpaceError(
                f"the actions are {base}, expected finite bounds; apply gymnasium.wrappers.RescaleAction first"
            )
        counts = [whole(one, "actions", 1, MOST_BINS, SpaceError) for one in _listed(count, size, "actions")]
        spaced = [
            np.linspace(low[k], high[k], counts[k]) if counts[k] > 1 else np.array([(low[k] + high[k]) / 2])
            for k in range(size)
        ]
        if prod(counts) > MOST_BINS:
            raise SpaceError(
                f"there are {prod(counts):,} combinations of actions, expected {MOST_BINS:,} at most; give fewer"
            )
        self._values = np.array(list(product(*spaced)))
        n_actions = len(self._values)
        return spaces.MultiDiscrete([n_actions, 2]) if self._is_measuring else spaces.Discrete(n_actions)

    def _control(self, action: Any) -> Any:
        """Return the action of the environment with Box actions that a number, or a number and a look, stands for."""
        assert self._values is not None
        if not self.action_space.contains(np.asarray(action) if self._is_measuring else action):
            raise SpaceError(f"the action is {quoted(action)}, expected one of {self.action_space}")
        dtype = self.env.action_space.dtype
        if self._is_measuring:
            control, look = (int(part) for part in action)
            return np.append(self._values[control], 1.0 if look else -1.0).astype(dtype)
        return self._values[int(action)].astype(dtype)


def _listed(given: Any, size: int, what: str) -> list[Any]:
    """Return one value for each dimension: those that are given, or the same for all."""
    if isinstance(given, (list, tuple, np.ndarray)):
        if len(given) != size:
            raise SpaceError(f"{what} has {len(given)} entries, expected {size}, one for each dimension")
        return list(given)
    return [given] * size


def _per_dimension(given: Any, what: str, default: Any) -> list[float]:
    """Return the lower or upper end of the range of each dimension."""
    listed = default.astype(np.float64).tolist() if given is None else _listed(given, len(default), what)
    return [float(default[number]) if one is None else real(one, what, SpaceError) for number, one in enumerate(listed)]


def _edges(bins: Any, low: float, high: float, number: int) -> FloatArray:
    """Return the edges between the cells of a dimension."""
    if isinstance(bins, (list, tuple, np.ndarray)):
        edges = np.array([real(one, f"an edge of dimension {number}", SpaceError) for one in bins], dtype=np.float64)
        if not np.isfinite(edges).all() or np.any(np.diff(edges) <= 0):
            raise SpaceError(
                f"the edges of dimension {number} are {quoted(bins)}, expected finite numbers that increase"
            )
        return edges
    count = whole(bins, f"bins of dimension {number}", 1, MOST_BINS, SpaceError)
    # Some spaces have the largest number of their type instead of infinity.
    if not (abs(low) < 1e30 and abs(high) < 1e30):
        found: FloatArray = np.tan(np.pi * (np.arange(1, count) / count - 0.5))
        return found
    if not low < high:
        raise SpaceError(f"the range of dimension {number} is from {low} to {high}, expected low below high")
    return np.linspace(low, high, count + 1)[1:-1]


def _middle(edges: list[float], number: int) -> float:
    if not edges:
        return 0.0
    if number == 0:
        return nextafter(edges[0], -inf)
    return edges[-1] if number == len(edges) else (edges[number - 1] + edges[number]) / 2
