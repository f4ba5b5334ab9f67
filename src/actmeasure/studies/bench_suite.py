"""The benchmark: twelve fixed problems, the agents of the library, and a leaderboard to which others can be added.

Changing a problem or a number here changes what the results mean: raise `VERSION`, which is part of the study's name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from actmeasure.errors import StudyError
from actmeasure.studies.report import register
from actmeasure.studies.spec import AgentSpec, Part, ProblemSpec, Study, label_of
from actmeasure.studies.store import DamagedError, Store
from actmeasure.studies.trial import new_agent

if TYPE_CHECKING:
    from actmeasure.studies.report.document import Document, Outputs
    from actmeasure.studies.results import Results

__all__ = ["AGENTS", "BOUNDS", "IMPERFECT", "NAMES", "PROBLEMS", "SMALL", "SUITE", "added_agents", "bench_suite"]

VERSION = 1
#: Names of the study, in full and quick, and of its parts.
NAMES = (f"bench-suite-{VERSION}", f"bench-suite-{VERSION}-quick")
SUITE, SMALL, IMPERFECT, BOUNDED, UNDISCOUNTED = "suite", "small", "imperfect-looks", "bounds", "optima"
EPISODES, SEEDS, MAX_STEPS = 500, 5, 200
#: Simulations for each decision of agents that plan by simulation, so that the suite takes minutes.
SIMULATIONS = 100
#: Budget of the optimum, in beliefs, and its relative gap.
BELIEFS, TOLERANCE = 20_000, 1e-3
#: Discount of plans that come close to the largest undiscounted return.
NEAR_ONE = 0.99
#: Most steps of an episode of CartPole, each of which pays 1.
CART_POLE_STEPS = 500

#: The problems on which a look shows the state exactly.
PROBLEMS = (
    ProblemSpec("measuring value, cheap", "measuring-value", {"measuring_cost": 0.05}),
    ProblemSpec("measuring value, dear", "measuring-value", {"measuring_cost": 0.2}),
    ProblemSpec("lake 4x4", "frozen-lake", {"size": 4, "variant": "semi-slippery"}),
    ProblemSpec("lake 4x4, slippery", "frozen-lake", {"size": 4, "variant": "slippery"}),
    ProblemSpec("lake 8x8", "frozen-lake", {"size": 8, "variant": "semi-slippery"}),
    ProblemSpec("snake maze", "snake-maze", {"width": 4, "height": 3}),
    ProblemSpec("chain", "chain"),
    ProblemSpec("maintenance", "maintenance"),
    ProblemSpec("sepsis", "sepsis"),
    ProblemSpec("drone", "drone"),
    ProblemSpec(
        "CartPole on a grid",
        gymnasium="CartPole-v1",
        measuring_cost=0.01,
        discount=0.99,
        grid={"bins": [1, 3, 6, 3], "low": [-2.4, -1.5, -0.21, -2.0], "high": [2.4, 1.5, 0.21, 2.0]},
    ),
)
#: The problem with imperfect looks, on which agents act that need no exact ones.
INSPECTION = ProblemSpec("inspection", "inspection")
#: Largest undiscounted return of problems for which nothing can be planned.
BOUNDS = {(SUITE, "CartPole on a grid"): float(CART_POLE_STEPS)}
#: The agents of the library; `pomcp` is told the dynamics.
AGENTS = (
    AgentSpec("foresight", "foresight"),
    AgentSpec("dyna-atmq", "dyna-atmq"),
    AgentSpec("atmq", "atmq"),
    AgentSpec("amrl-q", "amrl-q"),
    AgentSpec("acno-otp", "acno-otp", {"simulations": SIMULATIONS}),
    AgentSpec("random", "random"),
)
#: Keeps a probability of every transition, so that it is left out where there are many states.
DENSE = AgentSpec("acno-pomcp", "acno-pomcp", {"simulations": SIMULATIONS})
LARGE = ("sepsis", "drone")
#: Agents that spend their time on simulations have fewer episodes and seeds.
FEWER = {"acno-otp": (200, 3), "acno-pomcp": (200, 3), "pomcp": (100, 3)}


def bench_suite(quick: bool = False, added: Iterable[AgentSpec] = ()) -> Study:
    """Return the study of the benchmark, with agents of your own beside those of the library.

    Parameters
    ----------
    quick : bool
        Two seeds and a hundred episodes at most: to see that it works.
    added : iterable of AgentSpec
        They act on the problem with imperfect looks as well, unless they need exact ones.
    """
    own = list(added)
    agents = [*map(_shortened, AGENTS), *own]
    planning = AgentSpec("pomcp, told the dynamics", "pomcp", {"simulations": SIMULATIONS})
    without = [agent for agent in own if not new_agent(agent).needs_exact_looks]
    limits: dict[str, Any] = {"max_steps": CART_POLE_STEPS, "tolerance": TOLERANCE, "beliefs": BELIEFS}
    models = [problem for problem in PROBLEMS if problem.gymnasium is None]
    small = [problem for problem in PROBLEMS if problem.label not in LARGE]
    undiscounted = [replace(one, settings={**one.settings, "discount": NEAR_ONE}) for one in models]
    study = Study(
        NAMES[0],
        "Active measuring: a benchmark of twelve problems",
        [
            Part(SUITE, "Eleven problems with exact looks", PROBLEMS, agents, EPISODES, SEEDS, **limits),
            Part(
                IMPERFECT, "Inspection with imperfect looks", [INSPECTION], [_shortened(planning), "random", *without],
                EPISODES, SEEDS, max_steps=MAX_STEPS, methods=["optimal"], tolerance=TOLERANCE, beliefs=BELIEFS,
            ),
            Part(SMALL, "An agent for small problems", small, [_shortened(DENSE)], EPISODES, SEEDS, **limits),
            Part(BOUNDED, "Optima at the problems' own discounts", models, methods=["optimal"], **limits),
            Part(UNDISCOUNTED, f"Optima at a discount of {NEAR_ONE}", undiscounted, methods=["optimal"], **limits),
        ],
    )  # fmt: skip
    return replace(study.quick(), name=NAMES[1]) if quick else study


def _shortened(agent: AgentSpec) -> AgentSpec:
    episodes, seeds = FEWER.get(agent.name, (None, None))
    return replace(agent, episodes=episodes, seeds=seeds)


def added_agents(directory: Path, names: Sequence[str]) -> list[AgentSpec]:
    """Return the agents that were added to the suite in a folder before, and those of these names.

    Parameters
    ----------
    directory : Path
        Folder of results, which need not be there.
    names : sequence of str
        As for `actmeasure.learning.make`: registered, of an entry point, or `package.module:Class`.
    """
    before: list[AgentSpec] = []
    try:
        data = Store(directory).read_study() or {}
    except DamagedError:
        data = {}
    shipped = {agent.label for agent in (*AGENTS, DENSE)}
    if data.get("name") in NAMES:
        stored = Study.from_json(data)
        suite = next((part for part in stored.parts if part.name == SUITE), None)
        before = [agent for agent in (suite.agents if suite else ()) if agent.label not in shipped]
    agents = {agent.name: replace(agent, seeds=None, episodes=None) for agent in before}
    for name in names:
        if name in shipped:
            raise StudyError(f"the agent {name!r} is part of the suite already; add one of your own")
        agents.setdefault(name, AgentSpec(label_of(name), name))
    return list(agents.values())


def _report(results: Results, directory: Path) -> tuple[Document, Outputs] | None:
    """Return the leaderboard; None for another study of the same name."""
    from actmeasure.studies.report import leaderboard  # which needs pandas and matplotlib

    if {SUITE, IMPERFECT} - {part["name"] for part in results.study["parts"]}:
        return None
    return leaderboard.report(results, directory)


for _name in NAMES:
    register(_name, _report)
