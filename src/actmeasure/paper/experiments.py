"""The experiments of the paper (Krale, Simão and Jansen, ICAPS 2023, section "Empirical Evaluation"), as data.

Every agent of the paper comes in two readings: `published`, the settings of the runs behind the published numbers where they
differ from its text, and `default`, what was found to be good since. `foresight` is beside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from actmeasure.paper.published import RANDOM_LAKES, Published, published_results
from actmeasure.studies.spec import AgentSpec, Part, ProblemSpec, Study

__all__ = ["EIGHT", "LEFT", "NAMES", "OPTIMA", "PATIENT", "RIGHT", "SCALING", "SWEEP", "SWEEP_OTP", "paper_study", "published"]

#: The study is called by one of these, in full or quick; its parts are called:
NAMES = ("paper", "paper-quick")
LEFT, RIGHT, SWEEP, SWEEP_OTP = "table-1-left", "table-1-right", "cost-sweep", "cost-sweep-acno-otp"
EIGHT, SCALING, OPTIMA, PATIENT = "lake-8x8", "scaling", "optima", "patient-optima"

LAKE_COST = 0.05
#: How likely the gamble of the measuring value problem succeeds.
SUCCESS = 0.8
TABLE_COSTS = (0.05, 0.10, 0.20)
VARIANTS = ("deterministic", "semi-slippery", "slippery")
#: The published runs on the measuring value problem also looked at random; here those on random lakes do too.
RANDOM_LOOKS = {"random_measuring": 0.05}
#: Agents are judged by their undiscounted return; the best schedules for these discounts come close to the best of that.
PATIENCE = (0.99, 0.999)
#: The measuring value problem can be planned for without a discount, exactly.
NO_DISCOUNT = 1.0


@dataclass(frozen=True)
class Extent:
    """How large the study is: in full as the published one, with more seeds."""

    seeds: int = 20
    few_seeds: int = 5
    episodes: int = 1_000
    fewer_episodes: int = 500
    episodes_on_8x8: int = 2_000
    episodes_on_large_lakes: int = 7_500
    max_steps: int = 1_000
    simulations: int = 25_000
    sweep: Sequence[float] = tuple(cents / 100 for cents in range(5, 21))
    sweep_otp: Sequence[float] = (0.05, 0.10, 0.15, 0.20)
    sizes: Sequence[int] = tuple(RANDOM_LAKES["atmq"])
    lakes_of_a_size: int = 5
    beliefs: int = 500_000


#: Everything there is, in small, to see in a minute that it works; the numbers say nothing about the paper.
QUICK = Extent(
    seeds=2, few_seeds=2, episodes=150, fewer_episodes=100, episodes_on_8x8=150, episodes_on_large_lakes=150, max_steps=50,
    simulations=200, sweep=(0.05, 0.10, 0.15, 0.20), sizes=(8, 12), lakes_of_a_size=2, beliefs=10_000,
)  # fmt: skip


def paper_study(quick: bool = False) -> Study:
    """The paper's experiments, or all of them in small."""
    how = QUICK if quick else Extent()
    title = "Act-Then-Measure: the paper's experiments" + (" in small" if quick else "")
    return Study(NAMES[quick], title, [*_tables(how), *_sweeps(how), _eight(how), _scaling(how), *_optima(how)])


def _tables(how: Extent) -> list[Part]:
    """Table 1: the measuring value problem at three costs, and the three variants of the 4x4 lake."""
    agents = [*_learners(episodes_of_atmq=how.fewer_episodes, looks=RANDOM_LOOKS), *_observe_then_plan(how)]
    left = Part(
        LEFT, "Table 1, left: measuring value", [_gamble(cost) for cost in TABLE_COSTS], agents,
        episodes=how.episodes, seeds=how.seeds, max_steps=how.max_steps,
    )  # fmt: skip
    right = Part(
        RIGHT, "Table 1, right: 4x4 frozen lake", [_lake(4, variant) for variant in VARIANTS],
        [*_learners(), *_observe_then_plan(how)],
        episodes=how.episodes, seeds=how.seeds, max_steps=how.max_steps,
    )  # fmt: skip
    return [left, right]


def _sweeps(how: Extent) -> list[Part]:
    """The measuring value problem at many costs; ACNO-OTP at four of them."""
    common: dict[str, Any] = {"episodes": how.episodes, "seeds": how.seeds, "max_steps": how.max_steps}
    learners = _learners(episodes_of_atmq=how.fewer_episodes, looks=RANDOM_LOOKS)
    return [
        Part(SWEEP, "Measuring value by cost", [_gamble(cost) for cost in how.sweep], learners, **common),
        Part(
            SWEEP_OTP, "Measuring value by cost: ACNO-OTP", [_gamble(cost) for cost in how.sweep_otp],
            _observe_then_plan(how), **common,
        ),
    ]  # fmt: skip


def _eight(how: Extent) -> Part:
    """The standard 8x8 map, semi-slippery; the act-then-measure learners also with random looks."""
    looking = [
        AgentSpec(f"{label} (published, random looks)", name, {"preset": "published", **RANDOM_LOOKS})
        for label, name in (("ATMQ", "atmq"), ("Dyna-ATMQ", "dyna-atmq"))
    ]
    return Part(
        EIGHT, "8x8 frozen lake", [_lake(8, "semi-slippery")], [*_learners(), *looking],
        episodes=how.episodes_on_8x8, seeds=how.few_seeds, max_steps=how.max_steps,
    )  # fmt: skip


def _scaling(how: Extent) -> Part:
    """Random semi-slippery lakes of growing size: several of each, which nobody has published, with one seed on each."""
    return Part(
        SCALING, "Random lakes of growing size", _random_lakes(how), _learners(looks=RANDOM_LOOKS),
        episodes=how.episodes_on_large_lakes, seeds=1, max_steps=how.max_steps,
    )  # fmt: skip


def _optima(how: Extent) -> list[Part]:
    """What could be earned: certified at the paper's discount, and as good as could be found where patience pays."""
    costs = sorted({*TABLE_COSTS, *how.sweep, *how.sweep_otp})
    lakes = [*(_lake(4, variant) for variant in VARIANTS), _lake(8, "semi-slippery"), *_random_lakes(how)]
    common: dict[str, Any] = {"methods": ["optimal"], "max_steps": how.max_steps, "beliefs": how.beliefs}
    certified = [*(_gamble(cost) for cost in costs), *lakes]
    patient = [
        *(_with_discount(_gamble(cost), NO_DISCOUNT) for cost in costs),
        *(_with_discount(lake, discount) for lake in lakes for discount in PATIENCE),
    ]
    return [
        Part(OPTIMA, "Certified optima", certified, tolerance=1e-6, **common),
        Part(PATIENT, "Best known returns", patient, tolerance=1e-3, **common),
    ]


def _learners(episodes_of_atmq: int | None = None, looks: dict[str, Any] | None = None) -> list[AgentSpec]:
    """The agents that act and learn from the first episode; the published act-then-measure ones with these looks."""
    published = {"preset": "published"}
    looking = published | (looks or {})
    return [
        AgentSpec("ATMQ (published)", "atmq", looking, episodes=episodes_of_atmq),
        AgentSpec("ATMQ", "atmq", episodes=episodes_of_atmq),
        AgentSpec("Dyna-ATMQ (published)", "dyna-atmq", looking),
        AgentSpec("Dyna-ATMQ", "dyna-atmq"),
        AgentSpec("AMRL-Q (published)", "amrl-q", published),
        AgentSpec("AMRL-Q", "amrl-q"),
        AgentSpec("Foresight", "foresight"),
    ]


def _observe_then_plan(how: Extent) -> list[AgentSpec]:
    """ACNO-OTP, which takes long and therefore has few seeds."""
    return [
        AgentSpec(label, "acno-otp", {"simulations": how.simulations} | preset, seeds=how.few_seeds)
        for label, preset in (("ACNO-OTP (published)", {"preset": "published"}), ("ACNO-OTP", {}))
    ]


def _gamble(cost: float) -> ProblemSpec:
    return ProblemSpec(f"c = {cost:.2f}", "measuring-value", {"p": SUCCESS, "measuring_cost": cost})


def _lake(size: int, variant: str) -> ProblemSpec:
    settings = {"size": size, "variant": variant, "measuring_cost": LAKE_COST}
    return ProblemSpec(f"{size}x{size} {variant}", "frozen-lake", settings)


def _random_lakes(how: Extent) -> list[ProblemSpec]:
    return [
        ProblemSpec(
            f"{size}x{size} lake {number + 1}", "frozen-lake",
            {"size": size, "variant": "semi-slippery", "measuring_cost": LAKE_COST, "seed": 100 * size + number},
        )
        for size in how.sizes for number in range(how.lakes_of_a_size)
    ]  # fmt: skip


def _with_discount(problem: ProblemSpec, discount: float) -> ProblemSpec:
    return ProblemSpec(
        f"{problem.label}, discount {discount:g}", problem.name, {**problem.settings, "discount": discount}
    )


def published() -> Iterable[Published]:
    """The published cells of the tables, by the names that parts and problems have here."""
    left, right = [_gamble(cost).label for cost in TABLE_COSTS], [_lake(4, variant).label for variant in VARIANTS]
    return published_results((LEFT, left), (RIGHT, right), (EIGHT, [_lake(8, "semi-slippery").label]))
