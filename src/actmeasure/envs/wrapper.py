"""A Gymnasium wrapper that puts a price on observations: on the true one, or on functions of it."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from copy import deepcopy
from operator import index
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs

from actmeasure.envs.contract import (
    Where,
    checked_box,
    checked_observation,
    checked_reward,
    location,
    reset_parts,
    step_parts,
)
from actmeasure.envs.tabular import checked_steps
from actmeasure.errors import SpaceError, first_repeated, quoted
from actmeasure.model.measurement import checked_price
from actmeasure.settings import truth

__all__ = [
    "Actions",
    "ActiveMeasuring",
    "BoxObservations",
    "DiscreteObservations",
    "FunctionMeasurement",
    "FunctionObservations",
    "observations",
]

#: Entries of an observation that are not results of functions, so that no measurement can have these names.
RESERVED = ("measurement", "start")


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

    With `measurements` a look shows not the true observation but a function of it, and there can be several to choose from: the
    last component of an action is then the number of the measurement, 0 for none (with `Box` actions there can be only one).
    Observations are dictionaries with `measurement`, the number of the one that was made, and an entry for each measurement by
    its name, which has room for *not measured*: the last value of `Discrete(n + 1)`, or zeros. `info` also has `measurement`; the
    environment's own `info` is hidden. If the start is shown, `measurement` is k + 1 there, and the entry `start` has the
    true observation.

    Parameters
    ----------
    env : gymnasium.Env
        With `Discrete`, `MultiDiscrete` or one-axis `Box` actions, and `Discrete` or `Box` observations; with `measurements`,
        observations of any kind, unless the start is shown.
    measuring_cost : float
        Price of a look that shows the true observation.
    measurements : list of (name, price, function, output space), instead of `measuring_cost`
        Functions of the true observation, or of it and a `numpy.random.Generator`: the environment's own, `env.np_random`. The
        output space is a `Discrete` or `Box`, and every result is checked against it.
    reveal_start : bool, optional
        Whether `reset` shows the first state, for free; by default it does with `measuring_cost`, and not with `measurements`.
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

    A coarse look that shows only the row, and an error of one column:

    >>> from gymnasium.spaces import Discrete
    >>> row = ("row", 0.01, lambda cell: cell // 12, Discrete(4))
    >>> near = ("near", 0.05, lambda cell, rng: int(min(cell % 12 + rng.integers(2), 11)), Discrete(12))
    >>> env = ActiveMeasuring(gymnasium.make("CliffWalking-v1"), measurements=[row, near])
    >>> env.action_space, env.reset(seed=0)[0]
    (MultiDiscrete([4 3]), {'measurement': 0, 'row': 4, 'near': 12})
    >>> env.step([0, 1])[0]                                      # up, and look at the row
    {'measurement': 1, 'row': 2, 'near': 12}
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        measuring_cost: float | None = None,
        *,
        measurements: Iterable[tuple[str, float, Any, Any]] | None = None,
        reveal_start: bool | None = None,
        max_steps: int = 1000,
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
        if measuring_cost is not None and measurements is not None:
            raise SpaceError(
                "measuring_cost and measurements are both given; put the prices into the measurements: (name, price, function, "
                "output space)"
            )
        looks = None if measurements is None else function_measurements(measurements)
        if reveal_start is None:
            reveal_start = looks is None
        # Recorded so that `gymnasium.make(env.spec)` can wrap again.
        given = {"measuring_cost": measuring_cost} if looks is None else {"measurements": list(measurements or ())}
        RecordConstructorArgs.__init__(self, **given, reveal_start=reveal_start, max_steps=max_steps)
        gymnasium.Wrapper.__init__(self, env)
        if env.has_wrapper_attr("measuring_cost"):
            raise SpaceError(f"looking already costs something in {env}; use it as it is, without ActiveMeasuring")
        self.measuring_cost: float | tuple[float, ...] = (
            checked_price(measuring_cost) if looks is None else tuple(look.cost for look in looks)
        )
        self.reveal_start = truth(reveal_start, "reveal_start")
        self.max_steps = checked_steps(max_steps)
        self._actions = Actions(env, 1 if looks is None else len(looks))
        self._observations: DiscreteObservations | BoxObservations | FunctionObservations = (
            observations(env) if looks is None else FunctionObservations(env, looks, self.reveal_start)
        )
        self.action_space, self.observation_space = self._actions.space, self._observations.space
        self._episodes, self._steps = 0, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; the first state is shown unless `reveal_start` is False."""
        given = self.env.reset(seed=seed, options=options)
        self._episodes, self._steps = self._episodes + 1, 0
        observation, info = reset_parts(given, (self._episodes, 0))
        if isinstance(self._observations, FunctionObservations):
            shown = self._observations.at_start(observation, (self._episodes, 0))
            ours = {"reward": 0.0, "measuring_cost": 0.0, "measured": self.reveal_start, "measurement": 0}
            return shown, (_copied(info) if self.reveal_start else {}) | ours
        return self._shown(observation, info, 0.0, 0.0, self.reveal_start)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take an action and, if its last component says so, measure the state that it leads to."""
        control, measurement = self._actions.split(action)
        given = self.env.step(control)
        self._steps += 1
        where = (self._episodes, self._steps)
        observation, paid, terminated, truncated, info = step_parts(given, where)
        reward, price = checked_reward(paid, "the environment's reward", where), self.measuring_cost
        cost = 0.0 if measurement == 0 else price[measurement - 1] if isinstance(price, tuple) else price
        if isinstance(self._observations, FunctionObservations):
            observation = self._observations.measured(observation, measurement, self.np_random, where)
            info = {"reward": reward, "measuring_cost": cost, "measured": measurement > 0, "measurement": measurement}
        else:
            observation, info = self._shown(observation, info, reward, cost, measurement > 0)
        cut_off = self._steps >= self.max_steps and not terminated
        return observation, reward - cost, terminated, truncated or cut_off, info

    def _shown(
        self, observation: Any, info: Mapping[str, Any], reward: float, cost: float, measured: bool
    ) -> tuple[Any, dict[str, Any]]:
        assert not isinstance(self._observations, FunctionObservations)
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
        `MultiDiscrete` with a last component of 0 (blind) or 1 (look), or up to the number of measurements, or `Box` with a last
        dimension from -1 to 1 (above 0 means look).
    """

    def __init__(self, env: gymnasium.Env[Any, Any], n_measurements: int = 1) -> None:
        base = env.action_space
        self._base = base
        self._n_measurements = n_measurements
        self.space: spaces.MultiDiscrete[Any] | spaces.Box
        if isinstance(base, spaces.Discrete):
            self.space = spaces.MultiDiscrete([int(base.n), 1 + n_measurements], start=[int(base.start), 0])
        elif isinstance(base, spaces.MultiDiscrete) and base.nvec.ndim == 1:
            nvec, start = np.append(base.nvec, 1 + n_measurements), np.append(base.start, 0)
            self.space = spaces.MultiDiscrete(nvec, dtype=base.dtype, start=start)
        elif isinstance(base, spaces.Box) and n_measurements > 1:
            raise SpaceError(
                f"the action space of {env} is {base}, with which there can be one measurement, but {n_measurements} are given; "
                "pass one, or make the actions Discrete first (gymnasium.wrappers.DiscretizeAction)"
            )
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

    def split(self, action: Any) -> tuple[Any, int]:
        """Return the environment's own action, and the measurement: 0 for none."""
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
            return array[:-1].astype(self._base.dtype), int(array[-1] > 0)
        above = array.astype(np.int64) - self.space.start
        if not 0 <= array[-1] <= self._n_measurements:
            last = self._n_measurements
            choice = "1 (look) or 0 (do not)" if last == 1 else f"a measurement from 0 (none) to {last}"
            raise SpaceError(f"the action is {action!r}, expected its last number to be {choice}")
        if (above < 0).any() or (above >= self.space.nvec).any():
            largest = (self.space.start + self.space.nvec - 1).tolist()
            raise SpaceError(
                f"the action is {action!r}, expected whole numbers from {self.space.start.tolist()} to {largest}"
            )
        control = array[:-1].astype(self._base.dtype)
        return (control[0] if isinstance(self._base, spaces.Discrete) else control), int(array[-1])


class DiscreteObservations:
    """A Discrete observation space with one more observation, the last: *nothing seen*."""

    _nothing: int

    def __init__(self, base: spaces.Discrete[Any]) -> None:
        self.space, self._nothing = with_filler(base)
        self._first = int(base.start)

    def shown(self, observation: Any, where: Where) -> int:
        """Return an observation that is shown; a `SpaceError` if it is not in the space of the environment."""
        return checked_observation(observation, self._first, self._nothing - 1, where)

    def nothing(self) -> int:
        """Return the observation *nothing seen*."""
        return self._nothing


class BoxObservations:
    """A Box observation space as a dictionary of the observation, zeros for *nothing seen*, and whether it was measured."""

    def __init__(self, base: spaces.Box) -> None:
        box, self._zeros = with_filler(base)
        self.space = spaces.Dict({"observation": box, "measured": spaces.Discrete(2)})

    def shown(self, observation: Any, where: Where) -> dict[str, Any]:
        """Return an observation that is shown: a copy, as the environment may write into its own array later.

        An observation of another shape or kind, or with numbers that the Box's type cannot hold, is a `SpaceError`. The limits of
        a Box are not checked: many environments end with an observation just outside of them.
        """
        return {"observation": checked_box(observation, self._zeros.shape, self._zeros.dtype, where), "measured": 1}

    def nothing(self) -> dict[str, Any]:
        """Return the observation *nothing seen*."""
        return {"observation": self._zeros.copy(), "measured": 0}


class FunctionObservations:
    """Results of functions of the true observation, as a dictionary with the number of the measurement that was made.

    Attributes
    ----------
    space : gymnasium.spaces.Dict
        `measurement`, `start` if the start is shown, and an entry for every measurement.
    """

    def __init__(
        self, env: gymnasium.Env[Any, Any], measurements: tuple[FunctionMeasurement, ...], reveal_start: bool
    ) -> None:
        base = env.observation_space
        self._measurements = measurements
        # Other kinds of spaces have observations that are not checked, and can be measured, but not be shown.
        is_plain = isinstance(base, spaces.Discrete | spaces.Box)
        self._true = observations(env) if is_plain or reveal_start else None
        entries = {look.name: (look.space, look.filler) for look in measurements}
        if reveal_start:
            entries = {"start": with_filler(base), **entries}
        self._shows_start = reveal_start
        self._fillers = {name: filler for name, (_, filler) in entries.items()}
        kinds = spaces.Discrete(1 + len(measurements) + reveal_start)
        self.space = spaces.Dict({"measurement": kinds} | {name: space for name, (space, _) in entries.items()})

    def at_start(self, observation: Any, where: Where) -> dict[str, Any]:
        """Return the first observation of an episode."""
        true = self._checked(observation, where)
        shown = self._unmeasured()
        return shown | {"measurement": 1 + len(self._measurements), "start": true} if self._shows_start else shown

    def measured(self, observation: Any, measurement: int, rng: np.random.Generator, where: Where) -> dict[str, Any]:
        """Return the result of a measurement of an observation, 0 for none."""
        true = self._checked(observation, where)
        shown = self._unmeasured()
        if measurement == 0:
            return shown
        look = self._measurements[measurement - 1]
        own = deepcopy(observation) if self._true is None else true
        return shown | {"measurement": measurement, look.name: look.result(own, rng, where)}

    def _checked(self, observation: Any, where: Where) -> Any:
        """Return a copy of the true observation, where its space is Discrete or Box; others are not checked."""
        if self._true is None:
            return None
        shown = self._true.shown(observation, where)
        return shown["observation"] if isinstance(shown, dict) else shown

    def _unmeasured(self) -> dict[str, Any]:
        fillers = {
            name: filler.copy() if isinstance(filler, np.ndarray) else filler for name, filler in self._fillers.items()
        }
        return {"measurement": 0, **fillers}


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


class FunctionMeasurement:
    """A measurement whose outcome is a function of the true observation.

    Attributes
    ----------
    name : str
    cost : float
    function : callable
        Of the observation, or of the observation and a random generator, if it takes two arguments or one named `rng`.
    output : gymnasium.spaces.Discrete or Box
        The space of its results, as it was declared.
    space : gymnasium.spaces.Discrete or Box
        With a value for *not measured*.
    filler : int or array
        That value.
    """

    def __init__(self, name: str, cost: Any, function: Any, output: Any) -> None:
        if not isinstance(name, str) or not name.strip() or name in RESERVED:
            raise SpaceError(
                f"the name of a measurement is {quoted(name)}, expected a string other than {' and '.join(map(repr, RESERVED))}"
            )
        self.name, self.cost = name, checked_price(cost, f"the cost of the measurement {name!r}")
        self._rng_as = _how_rng_is_passed(function, name)
        self.function, self.output = function, output
        if not isinstance(output, spaces.Discrete | spaces.Box):
            raise SpaceError(
                f"the output space of the measurement {name!r} is {quoted(output)}, expected a gymnasium.spaces.Discrete or Box; "
                "let the function return a number or an array"
            )
        self.space, self.filler = with_filler(output)

    def result(self, observation: Any, rng: np.random.Generator, where: Where) -> Any:
        """Return the function's result as a value of the space; one outside of `output` is a `SpaceError`."""
        if self._rng_as == "not":
            given = self.function(observation)
        else:
            given = (
                self.function(observation, rng) if self._rng_as != "keyword" else self.function(observation, rng=rng)
            )
        outcome = _whole_number(given) if isinstance(self.output, spaces.Discrete) else _array(given, self.output)
        if outcome is None or not self.output.contains(outcome):
            raise SpaceError(
                f"the measurement {self.name!r} returned {quoted(given)} {location(where)}, expected a value of {self.output}, "
                "the space that was declared for it; correct the function, or the space"
            )
        return outcome


def function_measurements(given: Any) -> tuple[FunctionMeasurement, ...]:
    """Return the measurements that were given as (name, price, function, output space)."""
    listed = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else []
    measurements = []
    for entry in listed:
        if not isinstance(entry, tuple | list) or len(entry) != 4:
            raise SpaceError(
                f"a measurement is {quoted(entry)}, expected (name, price, function, output space), such as "
                "('coarse', 0.01, lambda observation: observation // 10, gymnasium.spaces.Discrete(50))"
            )
        measurements.append(FunctionMeasurement(*entry))
    if not measurements:
        raise SpaceError(
            f"measurements are {quoted(given)}, expected a list of at least one (name, price, function, output space)"
        )
    names = [measurement.name for measurement in measurements]
    twice = first_repeated(names)
    if twice is not None:
        raise SpaceError(f"two measurements are named {twice!r}; give each a name of its own")
    return tuple(measurements)


def with_filler(space: spaces.Space[Any]) -> tuple[spaces.Space[Any], Any]:
    """Return a Discrete or Box space that has room for a filler, and the filler: one more number, or zeros in a wider Box."""
    if isinstance(space, spaces.Discrete):
        return spaces.Discrete(int(space.n) + 1, start=int(space.start)), int(space.start) + int(space.n)
    assert isinstance(space, spaces.Box)
    low, high = np.minimum(space.low, 0), np.maximum(space.high, 0)
    box = spaces.Box(low.astype(space.dtype), high.astype(space.dtype), space.shape, space.dtype.type)
    return box, np.zeros(space.shape, dtype=space.dtype)


def _how_rng_is_passed(function: Any, name: str) -> str:
    """Return how a function takes a random generator, by its signature: "second argument", "keyword" or "not"."""
    if not callable(function):
        raise SpaceError(f"the function of the measurement {name!r} is {quoted(function)}, expected a function")
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # of some functions in C, which have no signature
        return "not"
    positional = [p for p in parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = [p for p in positional if p.default is p.empty]
    others = [p for p in parameters.values() if p.kind == p.KEYWORD_ONLY and p.default is p.empty and p.name != "rng"]
    takes_one = len(required) == 1 or positional or any(p.kind == p.VAR_POSITIONAL for p in parameters.values())
    if len(required) > 2 or others or not takes_one:
        raise SpaceError(
            f"the function of the measurement {name!r} takes ({', '.join(parameters)}), expected (observation), or (observation, "
            "rng) for random results"
        )
    if len(required) == 2:
        return "second argument"
    return "keyword" if "rng" in parameters and parameters["rng"] not in required else "not"


def _whole_number(given: Any) -> int | None:
    try:
        return None if isinstance(given, bool | np.bool_) or np.ndim(given) else index(given)
    except (TypeError, ValueError):
        return None


def _array(given: Any, space: spaces.Box) -> Any:
    """Return a copy as an array of the type of a Box; None where it has another shape or kind."""
    try:
        array = np.array(given)
    except (TypeError, ValueError):
        return None
    if array.shape != space.shape or array.dtype.kind not in "biuf":
        return None
    with np.errstate(invalid="ignore", over="ignore"):
        converted = array.astype(space.dtype)
    is_same = space.dtype.kind == "f" or np.array_equal(converted, array)
    return converted if is_same else None
