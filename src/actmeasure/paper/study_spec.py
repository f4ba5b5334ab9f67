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

__all__ = [
    "BEST_KNOWN",
    "EIGHT",
    "LEFT",
    "NAMES",
    "OPTIMA",
    "RIGHT",
    "SCALING",
    "SWEEP",
    "SWEEP_OTP",
    "paper_study",
    "published",
]

#: Names of the study, in full and quick, and of its parts.
NAMES = ("paper", "paper-quick")
LEFT, RIGHT, SWEEP, SWEEP_OTP = "table-1-left", "table-1-right", "cost-sweep", "cost-sweep-acno-otp"
EIGHT, SCALING, OPTIMA, BEST_KNOWN = "lake-8x8", "scaling", "optima", "patient-optima"

LAKE_COST = 0.05
#: Probability that the gamble of the measuring value problem succeeds.
SUCCESS = 0.8
TABLE_COSTS = (0.05, 0.10, 0.20)
VARIANTS = ("deterministic", "semi-slippery", "slippery")
#: The published runs on the measuring value problem also measured at random; here those on random lakes do too.
RANDOM_LOOKS = {"random_measuring": 0.05}
#: Discounts close to 1: agents are compared by their undiscounted return, and schedules that are optimal at these discounts come
#: close to the largest one.
HIGH_DISCOUNTS = (0.99, 0.999)
#: The measuring value problem can be planned for without a discount, exactly.
NO_DISCOUNT = 1.0


@dataclass(frozen=True)
class Extent:
    """Size of the study; by default that of the published one, with more seeds."""

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


#: Every part in small, which takes a minute and shows that it works; the numbers say nothing about the paper.
QUICK = Extent(
    seeds=2, few_seeds=2, episodes=150, fewer_episodes=100, episodes_on_8x8=150, episodes_on_large_lakes=150, max_steps=50,
    simulations=200, sweep=(0.05, 0.10, 0.15, 0.20), sizes=(8, 12), lakes_of_a_size=2, beliefs=10_000,
)  # fmt: skip


def paper_study(quick: bool = False) -> Study:
    """Return the paper's experiments as a study, or all of them in small."""
    how = QUICK if quick else Extent()
    title = "Act-Then-Measure: the paper's experiments" + (" in small" if quick else "")
    return Study(NAMES[quick], title, [*_tables(how), *_sweeps(how), _eight(how), _scaling(how), *_optima(how)])


def published() -> Iterable[Published]:
    """Return the published cells of the tables, under the names that parts and problems have here."""
    left, right = [_gamble(cost).label for cost in TABLE_COSTS], [_lake(4, variant).label for variant in VARIANTS]
    return published_results((LEFT, left), (RIGHT, right), (EIGHT, [_lake(8, "semi-slippery").label]))


def _tables(how: Extent) -> list[Part]:
    """Return the parts of Table 1: the measuring value problem at three costs, and the three variants of the 4x4 lake."""
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
    """Return the parts with the measuring value problem at many costs; ACNO-OTP at four of them."""
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
    """Return the part with the standard 8x8 map, semi-slippery; the act-then-measure learners also with random looks."""
    looking = [
        AgentSpec(f"{label} (published, random looks)", name, {"preset": "published", **RANDOM_LOOKS})
        for label, name in (("ATMQ", "atmq"), ("Dyna-ATMQ", "dyna-atmq"))
    ]
    return Part(
        EIGHT, "8x8 frozen lake", [_lake(8, "semi-slippery")], [*_learners(), *looking],
        episodes=how.episodes_on_8x8, seeds=how.few_seeds, max_steps=how.max_steps,
    )  # fmt: skip


def _scaling(how: Extent) -> Part:
    """Return the part with random semi-slippery lakes of growing size: several of each size, with one seed on each."""
    return Part(
        SCALING, "Random lakes of growing size", _random_lakes(how), _learners(looks=RANDOM_LOOKS),
        episodes=how.episodes_on_large_lakes, seeds=1, max_steps=how.max_steps,
    )  # fmt: skip


def _optima(how: Extent) -> list[Part]:
    """Return the plans: certified optima at the paper's discount, and the best known returns at discounts close to 1."""
    costs = sorted({*TABLE_COSTS, *how.sweep, *how.sweep_otp})
    lakes = [*(_lake(4, variant) for variant in VARIANTS), _lake(8, "semi-slippery"), *_random_lakes(how)]
    common: dict[str, Any] = {"methods": ["optimal"], "max_steps": how.max_steps, "beliefs": how.beliefs}
    certified = [*(_gamble(cost) for cost in costs), *lakes]
    undiscounted = [
        *(_with_discount(_gamble(cost), NO_DISCOUNT) for cost in costs),
        *(_with_discount(lake, discount) for lake in lakes for discount in HIGH_DISCOUNTS),
    ]
    return [
        Part(OPTIMA, "Certified optima", certified, tolerance=1e-6, **common),
        Part(BEST_KNOWN, "Best known returns", undiscounted, tolerance=1e-3, **common),
    ]


def _learners(episodes_of_atmq: int | None = None, looks: dict[str, Any] | None = None) -> list[AgentSpec]:
    """Return the agents that learn from the first episode on; `looks` are added to the published act-then-measure settings."""
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
    """Return ACNO-OTP, which takes long and therefore has few seeds."""
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
