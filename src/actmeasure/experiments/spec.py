"""What is to be run, as plain data: a study has parts, a part is problems times agents times seeds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from actmeasure.errors import StudyError, quoted
from actmeasure.experiments.ingredients import MOST, AgentSpec, ProblemSpec
from actmeasure.experiments.plain import checked_label, checked_name
from actmeasure.experiments.trial_spec import Trial
from actmeasure.settings import real, whole

__all__ = ["COUNTS", "AgentSpec", "Part", "ProblemSpec", "Study", "Trial", "checked_count", "checked_tolerance"]

#: What a plan may cost by default: it ends when the bounds are this close, or after so many beliefs, of which a round of the
#: search counts for 40. Never by the clock.
TOLERANCE, BELIEFS = 1e-6, 1_000_000
#: A quick look at a study has so many episodes and seeds at most; results are means of the last 50 episodes.
QUICK_EPISODES, QUICK_SEEDS = 100, 2
#: Whole numbers of a part, and the least that they may be.
COUNTS = {"episodes": 1, "seeds": 1, "first_seed": 0, "max_steps": 1, "beliefs": 1}
#: What fits into a column of a table.
LARGEST = 2**63 - 1


@dataclass(frozen=True)
class Part:
    """Problems times agents times seeds, and problems times planning methods.

    Attributes
    ----------
    name : str
        Also of files, so without spaces and slashes.
    title : str
    problems : sequence of ProblemSpec or str
    agents : sequence of AgentSpec or str
    episodes : int
        For each seed.
    seeds, first_seed : int
        How many, and the first of them.
    max_steps : int
        An episode is cut off after so many steps; plans are evaluated over as many.
    methods : sequence of str
        Planning methods, as for `actmeasure.solve`, that are run once for each problem.
    tolerance : float
        `optimal` and `never` end when their bounds are this close, as a share of the value ...
    beliefs : int
        ... or after so many beliefs, of which a round of the search counts for 40. They are never ended by the clock, so that
        they always give the same.
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
            problems: ProblemSpec | str | Iterable[ProblemSpec | str],
            agents: AgentSpec | str | Iterable[AgentSpec | str] = (),
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
        tolerance = checked_tolerance(self.tolerance, f"tolerance of the part {name!r}")
        object.__setattr__(self, "tolerance", tolerance)
        if not self.problems:
            raise StudyError(f"the part {name!r} has no problems; give at least one")
        if not self.agents and not self.methods:
            raise StudyError(f"the part {name!r} has neither agents nor methods; give at least one of either")

    def runs(self) -> Iterator[tuple[ProblemSpec, AgentSpec, Trial]]:
        """Every problem, agent and trial of the agent on it, in order."""
        for problem in self.problems:
            for agent in self.agents:
                for number in range(agent.seeds or self.seeds):
                    seed, episodes = self.first_seed + number, agent.episodes or self.episodes
                    yield problem, agent, Trial.train(problem, agent, episodes, seed, self.max_steps)

    def plans(self) -> Iterator[tuple[ProblemSpec, str, Trial]]:
        """Every problem, planning method and trial of it, in order."""
        for problem in self.problems:
            for method in self.methods:
                yield problem, method, Trial.plan(problem, method, self.max_steps, self.tolerance, self.beliefs)

    def trials(self) -> list[Trial]:
        """Every distinct trial."""
        return _distinct(trial for _, _, trial in [*self.plans(), *self.runs()])

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "name": self.name, "title": self.title, "problems": [one.to_json() for one in self.problems],
            "agents": [one.to_json() for one in self.agents], "episodes": self.episodes, "seeds": self.seeds,
            "first_seed": self.first_seed, "max_steps": self.max_steps, "methods": list(self.methods),
            "tolerance": self.tolerance, "beliefs": self.beliefs,
        }  # fmt: skip

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Part:
        """From what `to_json` gives."""
        problems = [ProblemSpec.from_json(one) for one in data["problems"]]
        agents = [AgentSpec.from_json(one) for one in data["agents"]]
        others = ("name", "title", "episodes", "seeds", "first_seed", "max_steps", "methods", "tolerance", "beliefs")
        return cls(problems=problems, agents=agents, **{name: data[name] for name in others})


@dataclass(frozen=True)
class Study:
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
        """Every distinct trial; equal trials in two parts are one."""
        return _distinct(trial for part in self.parts for trial in part.trials())

    def quick(self) -> Study:
        """The same study in small, under a name of its own: two seeds and a hundred episodes at most."""
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

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {"name": self.name, "title": self.title, "parts": [part.to_json() for part in self.parts]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Study:
        """From what `to_json` gives."""
        return cls(data["name"], data["title"], [Part.from_json(part) for part in data["parts"]])


def checked_count(value: Any, which: str, what: str) -> int:
    """A whole number of a part, such as its `seeds`, called `what` in the sentence if it is none."""
    return whole(value, what, COUNTS[which], LARGEST - MOST if which == "first_seed" else MOST, StudyError)


def checked_tolerance(value: Any, what: str) -> float:
    """A number between 0 and 1."""
    tolerance = real(value, what, StudyError)
    if not 0 < tolerance < 1:
        raise StudyError(f"{what} is {value!r}, expected a number between 0 and 1")
    return tolerance


def _items(given: Any, kind: type[Any], what: str) -> tuple[Any, ...]:
    """Problems or agents, of which those given by name alone are called by it; labels are different."""
    listed = [given] if isinstance(given, (str, kind)) or not isinstance(given, Iterable) else given
    items = tuple(kind(one, one) if isinstance(one, str) else one for one in listed)
    for one in items:
        if not isinstance(one, kind):
            article = "an" if kind.__name__[0] in "AEIOU" else "a"
            own = "; a class of your own can be trained with am.train_seeds" * (isinstance(one, type) or callable(one))
            raise StudyError(f"one of the {what} is {quoted(one)}, expected {article} {kind.__name__} or a name{own}")
    _check_once([one.label for one in items], f"label among the {what}")
    return items


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
