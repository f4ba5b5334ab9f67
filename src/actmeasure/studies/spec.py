"""The specification of a study as plain data: a study has parts, a part is problems times agents times seeds."""

from __future__ import annotations

import hashlib
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import msgspec

from actmeasure.errors import StudyError, quoted
from actmeasure.file_access import explain
from actmeasure.files import FORMATS
from actmeasure.learning.agent import Agent
from actmeasure.settings import (
    LARGEST_INTEGER,
    MOST_EPISODES,
    amount,
    between_0_and_1,
    discount_factor,
    is_import_name,
    whole,
)
from actmeasure.studies.sweeps import Sweep, is_sweep, swept_settings

__all__ = [
    "COUNTS",
    "FORMAT",
    "AgentSpec",
    "Part",
    "ProblemSpec",
    "Study",
    "Trial",
    "canonical",
    "checked_count",
    "checked_label",
    "checked_name",
    "digest",
    "import_name",
    "is_model_file",
    "label_of",
    "plain_settings",
]

#: Defaults for plans: relative gap between the bounds, and budget of beliefs (a round of the search counts for 40).
TOLERANCE, BELIEFS = 1e-6, 1_000_000
#: Most episodes and seeds of a quick study; results are means of the last 50 episodes.
QUICK_EPISODES, QUICK_SEEDS = 100, 2
#: Integer settings of a part and their smallest values.
COUNTS = {"episodes": 1, "seeds": 1, "first_seed": 0, "max_steps": 1, "beliefs": 1}


class _Specification:
    """A dataclass that is written as JSON and read again."""

    def to_json(self) -> dict[str, Any]:
        """Return plain data for JSON: all fields, with labels and paths, but those that are None."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]
        return {name: _json_value(value) for name, value in values.items() if value is not None}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Build it from what `to_json` returns; other keys are ignored. What does not fit is a `StudyError`."""
        try:
            return msgspec.convert(data, cls)
        except msgspec.ValidationError as error:
            raise StudyError(str(error)) from error


def _json_value(value: Any) -> Any:
    if isinstance(value, _Specification | Sweep):
        return value.to_json()
    if isinstance(value, Mapping):
        return dict(value)
    return [_json_value(one) for one in value] if isinstance(value, tuple) else value


@dataclass(frozen=True)
class Part(_Specification):
    """Problems times agents times seeds, and problems times planning methods.

    Attributes
    ----------
    name : str
        Used in file names, so without spaces and slashes.
    title : str
    problems : sequence of ProblemSpec, str or function
        Names alone, and functions that build a model, are taken too. Settings that are sweeps give a problem for each value.
    agents : sequence of AgentSpec, str or class
        Likewise; classes are subclasses of `Agent`.
    episodes : int
        For each seed.
    seeds, first_seed : int
        How many, and the first of them.
    max_steps : int
        Steps after which an episode is cut off, and horizon over which plans are evaluated.
    methods : sequence of str
        Planning methods, as for `actmeasure.solve`, that are run once for each problem.
    tolerance : float
        Gap between the bounds, relative to the value, at which `optimal` and `never` end.
    beliefs : int
        Number of beliefs after which they end otherwise; a round of the search counts for 40. The clock never ends them, so
        that they always give the same.
    """

    name: str
    title: str
    problems: Sequence[ProblemSpec]
    agents: Sequence[AgentSpec] = ()
    episodes: int = 1000
    seeds: int = 5
    first_seed: int = 0
    max_steps: int = 1000
    methods: Sequence[str] = ()
    tolerance: float = TOLERANCE
    beliefs: int = BELIEFS

    if TYPE_CHECKING:  # names alone are taken too, and made problems and agents

        def __init__(
            self,
            name: str,
            title: str,
            problems: ProblemSpec | str | Callable[..., Any] | Iterable[ProblemSpec | str | Callable[..., Any]],
            agents: AgentSpec | str | type[Any] | Iterable[AgentSpec | str | type[Any]] = (),
            episodes: int = 1000,
            seeds: int = 5,
            first_seed: int = 0,
            max_steps: int = 1000,
            methods: str | Iterable[str] = (),
            tolerance: float = TOLERANCE,
            beliefs: int = BELIEFS,
        ) -> None: ...

    def __post_init__(self) -> None:
        name = checked_name(self.name, "a part")
        checked_label(self.title, f"the part {name!r}, its title")
        object.__setattr__(self, "problems", _items(self.problems, ProblemSpec, f"problems of the part {name!r}"))
        object.__setattr__(self, "agents", _items(self.agents, AgentSpec, f"agents of the part {name!r}"))
        object.__setattr__(self, "methods", _texts(self.methods, f"methods of the part {name!r}"))
        for what in COUNTS:
            value = checked_count(getattr(self, what), what, f"{what} of the part {name!r}")
            object.__setattr__(self, what, value)
        tolerance = between_0_and_1(self.tolerance, f"tolerance of the part {name!r}", StudyError, 1e-3)
        object.__setattr__(self, "tolerance", tolerance)
        if not self.problems:
            raise StudyError(f"the part {name!r} has no problems; give at least one")
        if not self.agents and not self.methods:
            raise StudyError(f"the part {name!r} has neither agents nor methods; give at least one of either")

    def runs(self) -> Iterator[tuple[ProblemSpec, AgentSpec, Trial]]:
        """Return every problem, agent and trial of the agent on it, in order."""
        for problem in self.problems:
            for agent in self.agents:
                for number in range(agent.seeds or self.seeds):
                    seed, episodes = self.first_seed + number, agent.episodes or self.episodes
                    yield problem, agent, Trial.train(problem, agent, episodes, seed, self.max_steps)

    def plans(self) -> Iterator[tuple[ProblemSpec, str, Trial]]:
        """Return every problem, planning method and trial of it, in order."""
        for problem in self.problems:
            for method in self.methods:
                yield problem, method, Trial.plan(problem, method, self.max_steps, self.tolerance, self.beliefs)

    def trials(self) -> list[Trial]:
        """Return every distinct trial."""
        return _distinct(trial for _, _, trial in [*self.plans(), *self.runs()])


@dataclass(frozen=True)
class Study(_Specification):
    """A name, a title and parts.

    Examples
    --------
    >>> lake = ProblemSpec("4x4", "frozen-lake", {"size": 4})
    >>> study = Study("lakes", "Two learners on ice", [Part("small", "Small lakes", [lake], ["atmq", "amrl-q"], seeds=3)])
    >>> len(study.trials())
    6
    """

    name: str
    title: str
    parts: Sequence[Part]

    def __post_init__(self) -> None:
        name = checked_name(self.name, "the study")
        checked_label(self.title, f"the study {name!r}, its title")
        parts = tuple(self.parts) if isinstance(self.parts, Iterable) else (self.parts,)
        for part in parts:
            if not isinstance(part, Part):
                raise StudyError(f"a part of the study {name!r} is {quoted(part)}, expected a Part")
        if not parts:
            raise StudyError(f"the study {name!r} has no parts; give at least one")
        _check_once([part.name for part in parts], f"name among the parts of the study {name!r}")
        object.__setattr__(self, "parts", parts)

    def trials(self) -> list[Trial]:
        """Return every distinct trial; equal trials in two parts are one."""
        return _distinct(trial for part in self.parts for trial in part.trials())

    def quick(self) -> Study:
        """Return the study with at most two seeds and a hundred episodes, under a name of its own."""
        parts = [
            replace(
                part,
                agents=[
                    replace(agent, seeds=_at_most(agent.seeds, QUICK_SEEDS), episodes=_at_most(agent.episodes, QUICK_EPISODES))
                    for agent in part.agents
                ],
                episodes=min(part.episodes, QUICK_EPISODES),
                seeds=min(part.seeds, QUICK_SEEDS),
            )
            for part in self.parts
        ]  # fmt: skip
        return Study(f"{self.name}-quick", f"{self.title} (quick)", parts)


def checked_count(value: Any, which: str, what: str) -> int:
    """Return the integer setting `which` of a part, or raise an error that calls it `what`."""
    return whole(
        value,
        what,
        COUNTS[which],
        LARGEST_INTEGER - MOST_EPISODES if which == "first_seed" else MOST_EPISODES,
        StudyError,
    )


def _items(given: Any, kind: type[Any], what: str) -> tuple[Any, ...]:
    """Return problems or agents as specifications (a name alone is also the label) with different labels, sweeps written out."""
    listed = [given] if isinstance(given, (str, kind)) or callable(given) or not isinstance(given, Iterable) else given
    items: list[Any] = []
    for one in listed:
        item = kind(label_of(one), one) if isinstance(one, str) or callable(one) else one
        if not isinstance(item, kind):
            article = "an" if kind.__name__[0] in "AEIOU" else "a"
            raise StudyError(f"one of the {what} is {quoted(one)}, expected {article} {kind.__name__} or a name")
        items += item.each()
    _check_once([one.label for one in items], f"label among the {what}")
    return tuple(items)


def label_of(name: Any, settings: Mapping[str, Any] | None = None) -> str:
    """Return the label of a problem or agent that is given none.

    Examples
    --------
    >>> label_of("frozen-lake", {"size": 8, "variant": "slippery"}), label_of("my_agents:Surprised")
    ('frozen-lake size=8 variant=slippery', 'Surprised')
    """
    named = name.rpartition(":")[2] if is_import_name(name) else getattr(name, "__name__", str(name))
    return " ".join([named, *(f"{key}={value}" for key, value in (settings or {}).items())])


def import_name(thing: Any, what: str) -> str:
    """Return the name `module:Name` with which worker processes import a class or function; an error calls it `what`."""
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", "")
    if module == "__main__":
        file = getattr(sys.modules["__main__"], "__file__", None)
        if file is None:
            raise StudyError(
                f"{what} is {quoted(thing)}, defined at a prompt or in a notebook, from which workers cannot import it; write it "
                "into a file, and import it from there"
            )
        module = Path(file).stem
        sys.modules.setdefault(module, sys.modules["__main__"])
    found = f"{module}:{name}"
    if not is_import_name(found):
        raise StudyError(
            f"{what} is {quoted(thing)}, which workers cannot import as {found!r}; define it at the top level of a module"
        )
    return found


def _texts(given: Any, what: str) -> tuple[str, ...]:
    texts = (given,) if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
    for one in texts:
        if not isinstance(one, str):
            raise StudyError(f"one of the {what} is {quoted(one)}, expected a name, such as 'optimal'")
    _check_once(texts, f"name among the {what}")
    return texts


def _check_once(names: Sequence[str], what: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise StudyError(f"{name!r} is twice a {what}; give each its own")


def _distinct(trials: Iterable[Trial]) -> list[Trial]:
    return list({trial.hash: trial for trial in reversed(list(trials))}.values())[::-1]


def _at_most(count: int | None, most: int) -> int | None:
    return None if count is None else min(count, most)


@dataclass(frozen=True)
class _Item(_Specification):
    """What problems and agents have in common: a label, a name, settings, and the values of a sweep.

    Attributes
    ----------
    sweep : Sweep or None
        Of which sweep this is one of the problems or agents, and the values that it has.
    """

    label: str
    name: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    sweep: Sweep | None = field(default=None, kw_only=True)

    what: ClassVar[str]

    def _check(self) -> None:
        label = checked_label(self.label, f"{_article(self.what)} {self.what}")
        if callable(self.name):
            object.__setattr__(self, "name", import_name(self.name, f"the {self.what} {label!r}"))
        object.__setattr__(self, "settings", plain_settings(self.settings, f"the {self.what} {label!r}"))

    def each(self) -> list[Self]:
        """Return the problems or agents that this stands for: one for each combination of the values of its sweeps."""
        if self.sweep is not None:
            return [self]
        plain = {key: value for key, value in vars(self).items() if key in self.swept_fields and value is not None}
        grid: dict[str, Any] = getattr(self, "grid", None) or {}
        cells = {key: value for key, value in grid.items() if is_sweep(value)}
        combinations = swept_settings(self.what, self.name, {**self.settings, **plain, **cells}, always=plain)
        if combinations is None:
            return [self]
        return [
            self._with_values(values, plain, {**grid, **{key: values[key] for key in cells}}) for values in combinations
        ]

    def _with_values(self, values: Mapping[str, Any], fields: Iterable[str], grid: Mapping[str, Any]) -> Self:
        """Return the problem or agent with one combination of the values of its sweeps."""
        changed: dict[str, Any] = {key: values[key] for key in fields if key in values}
        if grid:
            changed["grid"] = grid
        settings = {key: values.get(key, value) for key, value in self.settings.items()}
        return replace(
            self, label=label_of(self.label, values), settings=settings, sweep=Sweep(self.label, values), **changed
        )

    #: Fields other than the settings that may be swept.
    swept_fields: ClassVar[tuple[str, ...]] = ()


def _article(word: str) -> str:
    return "an" if word[0] in "aeiou" else "a"


@dataclass(frozen=True)
class ProblemSpec(_Item):
    """A problem and its settings.

    Attributes
    ----------
    label : str
        Name in tables and figures.
    name : str, or function
        A name of the catalogue (`actmeasure.problems`), the path of a model file, or `package.module:function` of a function that
        returns a `Model` or an environment; the function itself is taken, too.
    settings : mapping
        Arguments of the problem; of a model file `measuring_cost` and `discount`, to replace its own; of a Gymnasium environment
        the arguments of `gymnasium.make`. A list where a setting takes one value is a sweep, as is `{"values": [...]}`.
    content : str or None
        SHA-256 of a model file, by default that of the file as it is now; it identifies the trial, the path does not.
    gymnasium : str or None
        Instead of a name: the id of a Gymnasium environment, such as `Taxi-v4` or `my_package:Mine-v0`.
    measuring_cost : float or None
        Price of a look in that environment; None if it has one already.
    discount : float or None
        Discount of the task on that environment; 0.95 by default.
    grid : mapping or None
        Arguments of `actmeasure.envs.Grid`, such as `{"bins": 6}`, for an environment with continuous states;
        `{"bins": {"values": [4, 6]}}` is a sweep.

    Examples
    --------
    >>> ProblemSpec("lake", "frozen-lake", {"size": 4}).label
    'lake'
    >>> [one.label for one in ProblemSpec("taxi", gymnasium="Taxi-v4", measuring_cost=[0.01, 0.1]).each()]
    ['taxi measuring_cost=0.01', 'taxi measuring_cost=0.1']
    """

    content: str | None = None
    gymnasium: str | None = field(default=None, kw_only=True)
    measuring_cost: Any = field(default=None, kw_only=True)
    discount: Any = field(default=None, kw_only=True)
    grid: Mapping[str, Any] | None = field(default=None, kw_only=True)

    what: ClassVar[str] = "problem"

    def __post_init__(self) -> None:
        self._check()
        whose = f"the problem {self.label!r}"
        if self.gymnasium is None:
            if not isinstance(self.name, str) or not self.name:
                raise StudyError(f"{whose} is called {quoted(self.name)}, expected a name or a file")
            given = [name for name in ("measuring_cost", "discount", "grid") if getattr(self, name) is not None]
            if given:
                raise StudyError(
                    f"{whose} has a {given[0]} of its own, which goes with gymnasium = ...; put it into the settings"
                )
            if self.is_file and self.content is None:
                object.__setattr__(self, "content", digest(self.read()))
            return
        if not isinstance(self.gymnasium, str) or not self.gymnasium:
            raise StudyError(f"gymnasium of {whose} is {quoted(self.gymnasium)}, expected an id, such as 'Taxi-v4'")
        if self.name and self.name != self.gymnasium:
            raise StudyError(f"{whose} has a name, {quoted(self.name)}, and a Gymnasium id; give one of them")
        object.__setattr__(self, "name", self.gymnasium)
        if self.grid is not None:
            object.__setattr__(self, "grid", plain_settings(self.grid, f"the grid of {whose}"))
        for name in self.swept_fields:
            value = getattr(self, name)
            if value is not None and not isinstance(value, (list, tuple, Mapping)):
                check = discount_factor if name == "discount" else amount
                object.__setattr__(self, name, check(value, f"{name} of {whose}", error=StudyError))

    swept_fields: ClassVar[tuple[str, ...]] = ("measuring_cost", "discount")

    @property
    def is_file(self) -> bool:
        """Whether the problem is a model file."""
        return self.gymnasium is None and is_model_file(self.name)

    def read(self) -> bytes:
        """Return the contents of the model file."""
        try:
            return Path(self.name).read_bytes()
        except OSError as error:
            raise StudyError(str(explain(error, Path(self.name), "read"))) from error

    def identity(self) -> dict[str, Any]:
        """Return what results depend on: not the label, and of a model file its content."""
        if self.gymnasium is not None:
            own = {"measuring_cost": self.measuring_cost, "discount": self.discount, "grid": self.grid}
            given = {name: value for name, value in own.items() if value is not None}
            return {"gymnasium": self.gymnasium, **given, "settings": dict(self.settings)}
        which = {"content": self.content} if self.is_file else {"name": self.name}
        return {**which, "settings": dict(self.settings)}


@dataclass(frozen=True)
class AgentSpec(_Item):
    """An agent and its settings.

    Attributes
    ----------
    label : str
        Name in tables and figures.
    name : str, or class
        As for `actmeasure.learning.make`: of the library, registered, of an entry point, or `package.module:Class`; the class
        itself is taken, too.
    settings : mapping
        Settings of the agent, such as a `preset`. A list where a setting takes one value is a sweep, as is `{"values": [...]}`.
    seeds, episodes : int or None
        Numbers for this agent, instead of those of the part.
    """

    seeds: int | None = None
    episodes: int | None = None

    what: ClassVar[str] = "agent"

    def __post_init__(self) -> None:
        if callable(self.name) and not (isinstance(self.name, type) and issubclass(self.name, Agent)):
            raise StudyError(
                f"the agent {self.label!r} is {quoted(self.name)}, expected a subclass of Agent, or a name"
            )
        self._check()
        label = self.label
        if not isinstance(self.name, str) or not self.name:
            raise StudyError(f"the agent {label!r} is called {quoted(self.name)}, expected a name")
        for what in ("seeds", "episodes"):
            if getattr(self, what) is not None:
                count = whole(getattr(self, what), f"{what} of the agent {label!r}", 1, MOST_EPISODES, StudyError)
                object.__setattr__(self, what, count)

    def identity(self) -> dict[str, Any]:
        """Return what results depend on: not the label; seed and episodes belong to the trial."""
        return {"name": self.name, "settings": dict(self.settings)}


def is_model_file(name: str) -> bool:
    """Return whether a name is that of a model file: names in the catalogue have no dot or slash."""
    if is_import_name(name) and Path(name).suffix.lower() not in FORMATS:
        return False
    return bool(Path(name).suffix) or "/" in name or "\\" in name


NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


def plain_settings(settings: Any, whose: str) -> dict[str, Any]:
    """Return settings as numbers, text, truth values and lists of them; tuples and arrays become lists."""
    if not isinstance(settings, Mapping):
        raise StudyError(f"the settings of {whose} are {quoted(settings)}, expected names and values")
    plain = {}
    for name, value in settings.items():
        if not isinstance(name, str):
            raise StudyError(f"a setting of {whose} is called {quoted(name)}, expected text")
        plain[name] = _plain(value, f"the setting {name!r} of {whose}")
    return plain


def _plain(value: Any, what: str) -> Any:
    if hasattr(value, "tolist"):  # NumPy's numbers and arrays
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(one, what) for one in value]
    if isinstance(value, Mapping):
        return plain_settings(value, what)
    if isinstance(value, float) and not math.isfinite(value):
        raise StudyError(f"{what} is {value!r}, expected a finite number")
    if value is not None and not isinstance(value, (bool, int, float, str)):
        raise StudyError(f"{what} is {quoted(value)}, expected a number, text, a truth value or a list of these")
    return value


def canonical(data: Any) -> str:
    """Return JSON that is the same for equal data."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(contents: bytes) -> str:
    """Return the SHA-256 as 64 hexadecimal digits."""
    return hashlib.sha256(contents).hexdigest()


def checked_name(name: Any, what: str) -> str:
    """Return a name that can be used in file names, or raise an error about the name of `what`."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise StudyError(
            f"the name of {what} is {quoted(name)}, expected letters, digits, '-', '_' and '.', such as 'my-study'"
        )
    return name


def checked_label(label: Any, what: str) -> str:
    """Return text that is not blank, or raise an error about the label of `what`."""
    if not isinstance(label, str) or not label.strip():
        raise StudyError(f"the label of {what} is {quoted(label)}, expected text")
    try:
        label.encode()
    except UnicodeEncodeError:  # half of a pair of surrogates, which no file can hold
        raise StudyError(f"the label of {what} is {quoted(label)}, which is not valid Unicode; change it") from None
    return label


#: Version of the results: raise it when a specification gives other results or columns than before, so that all trials are new.
FORMAT = 3


@dataclass(frozen=True)
class Trial(_Specification):
    """One agent with one seed on one problem (`train`), or one plan for it (`plan`); make it with the method of that name.

    Attributes
    ----------
    kind : "train" or "plan"
    problem : ProblemSpec
    max_steps : int
        Steps after which an episode is cut off, and horizon over which the plan is evaluated.
    agent, episodes, seed : AgentSpec, int, int
        For `train`.
    method, settings : str, mapping
        For `plan`; settings are `tolerance` and `beliefs`.
    """

    kind: Literal["train", "plan"]
    problem: ProblemSpec
    max_steps: int
    agent: AgentSpec | None = None
    episodes: int = 0
    seed: int = 0
    method: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def train(cls, problem: ProblemSpec, agent: AgentSpec, episodes: int, seed: int, max_steps: int = 1000) -> Trial:
        """Return a trial that trains an agent."""
        return cls("train", problem, max_steps, agent=agent, episodes=episodes, seed=seed)

    @classmethod
    def plan(
        cls, problem: ProblemSpec, method: str, max_steps: int = 1000, tolerance: float = 1e-6, beliefs: int = 1_000_000
    ) -> Trial:
        """Return a trial that plans, and evaluates the plan over `max_steps` steps."""
        return cls("plan", problem, max_steps, method=method, settings={"tolerance": tolerance, "beliefs": beliefs})

    def identity(self) -> dict[str, Any]:
        """Return all that results depend on, and nothing else: no labels, no parts, no paths."""
        common = {"format": FORMAT, "kind": self.kind, "problem": self.problem.identity()}
        if self.agent is None:
            return common | {"method": self.method, "settings": {**self.settings, "horizon": self.max_steps}}
        own = {"episodes": self.episodes, "seed": self.seed, "max_steps": self.max_steps}
        return common | {"agent": self.agent.identity()} | own

    @cached_property
    def specification(self) -> str:
        """The identity as JSON that is the same for equal trials."""
        return canonical(self.identity())

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the specification: 64 hexadecimal digits."""
        return digest(self.specification.encode())

    def __str__(self) -> str:
        """Return the trial in words."""
        if self.agent is None:
            return f"{self.method} on {self.problem.label}"
        return f"{self.agent.label} on {self.problem.label}, seed {self.seed}"
