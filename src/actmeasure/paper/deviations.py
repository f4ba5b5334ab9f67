"""Where our results differ from the published ones, and the known reasons, both by rule."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from actmeasure import statistics
from actmeasure.paper import study_spec

__all__ = ["REPETITIONS", "TEXT_AND_RUNS", "deviations"]

#: Number of runs behind a published mean.
REPETITIONS = 5
#: Differences up to this size are rounding, or the spread of means of 50 episodes, and not counted.
NEGLIGIBLE = {"return": 0.02, "measurements": 0.1}
#: A run counts as stuck if its return is below this share of the best known, its measurements per episode are below this number,
#: and its steps per episode are within this share of the maximum.
STUCK = 0.05
COLUMNS = [
    "part", "problem", "agent", "measure", "published", "found", "difference", "expected_low", "expected_high", "differs",
    "reasons",
]  # fmt: skip
#: How the runs behind the published numbers differ from the text of the paper.
TEXT_AND_RUNS = (
    "ATMQ and Dyna-ATMQ compare an optimistic best value with the un-optimistic value of the action they would "
    "take blindly, undiscounted; the text has the un-optimistic value in both places and a discount. As written "
    "they stop looking and walk in circles.",
    "Their prior is dropped once a state and action were measured more than seven times; the text keeps it.",
    "Dyna-ATMQ made 25 times 25 training updates at each step; the text says 25.",
    "On the measuring value problem they also looked at random at "
    f"{study_spec.RANDOM_LOOKS['random_measuring']:.0%} of the steps.",
    "ATMQ had 500 episodes on the measuring value problem, the others 1,000.",
    "AMRL-Q had a learning rate of 0.3; the text says 0.1.",
    "ACNO-OTP planned with discount 0.99 and depth 10; the text says 0.95 and 25.",
    "On the slippery lake the table prints 0.76 and 0.93 looks for ATMQ and Dyna-ATMQ; the data files have 0.076 "
    "and 0.093, which is what is compared with here.",
)


def deviations(cells: pd.DataFrame, means: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each published return and number of measurements, compared with our runs with the published settings.

    A number `differs` if it is outside of where the mean of five other runs is expected, 95 % of the time, and by more than what
    is negligible. Each published number is compared once: with the settings of the runs behind it, not with random looks added.

    Parameters
    ----------
    cells : pandas.DataFrame
        As `PaperTables.cells`.
    means : pandas.DataFrame
        As `tables.run_means`.
    """
    added = (cells["part"] == study_spec.EIGHT) & cells["agent_settings"].map(_looks_at_random)
    comparable = cells[(cells["preset"] == "published") & cells["published_return"].notna() & ~added.astype(bool)]
    rows = [_row(case) for _, cell in comparable.iterrows() for case in _cases(cell, means)]
    return pd.DataFrame(rows, columns=COLUMNS)


def _looks_at_random(agent_settings: str) -> bool:
    return bool(study_spec.RANDOM_LOOKS.keys() & json.loads(agent_settings).keys())


class Case(NamedTuple):
    """A published number and the runs that it is compared with.

    Attributes
    ----------
    cell : row of `PaperTables.cells`
    measure : "return" or "measurements"
    published : float
    runs : array of shape (runs,)
        That measure of our runs.
    means : pandas.DataFrame
        All means of our runs, a row for each.
    """

    cell: Any
    measure: str
    published: float
    runs: statistics.FloatArray
    means: pd.DataFrame

    @property
    def is_act_then_measure(self) -> bool:
        return str(self.cell["agent_name"]) in ("atmq", "dyna-atmq")

    @property
    def stuck(self) -> int:
        """Number of our runs that act until the step limit, do not measure, and earn nothing where something can be earned."""
        best, runs = float(self.cell["optimal_return"]), self.means
        poor = runs["scalarized_return"].abs() < STUCK * best  # never, if the best is not known
        blind = runs["measurements"] < STUCK
        endless = runs["steps"] > (1 - STUCK) * float(self.cell["max_steps"])
        return int((poor & blind & endless).sum()) if self.measure == "return" else 0


def _cases(cell: Any, means: pd.DataFrame) -> list[Case]:
    chosen = np.logical_and.reduce([means[name] == cell[name] for name in ("part", "problem", "agent")])
    runs = means[chosen]
    measures = {
        "return": ("scalarized_return", cell["published_return"]),
        "measurements": ("measurements", cell["published_measurements"]),
    }
    return [
        Case(cell, measure, float(published), runs[column].to_numpy(dtype=np.float64), runs)
        for measure, (column, published) in measures.items()
        if not pd.isna(published)
    ]


def _row(case: Case) -> tuple[Any, ...]:
    labels = [str(case.cell[name]) for name in ("part", "problem", "agent")]
    low, high = statistics.expected_means(case.runs, REPETITIONS)
    mean = float(case.runs.mean())
    slack = NEGLIGIBLE[case.measure]
    differs = case.published < low - slack or case.published > high + slack  # unknown bounds tell nothing
    reasons = [reason(case) for applies, reason in REASONS if applies(case)] or ["No reason is known."]
    known = " ".join(reasons) if differs else ""
    return (*labels, case.measure, case.published, mean, mean - case.published, low, high, differs, known)


def _is_shorter(case: Case) -> bool:
    """Return whether our runs had fewer episodes than the published ones."""
    return int(case.cell["episodes"]) < _published_episodes()[case.cell["part"], case.cell["agent"]]


@cache
def _published_episodes() -> dict[tuple[str, str], int]:
    parts = study_spec.paper_study().parts
    return {(part.name, agent.label): agent.episodes or part.episodes for part in parts for agent in part.agents}


#: Known reasons: whether one applies to a case, and its text. All that apply are given.
REASONS: list[tuple[Callable[[Case], bool], Callable[[Case], str]]] = [
    (_is_shorter, lambda case: f"It had {case.cell['episodes']:,} episodes, fewer than the published runs."),
    (
        lambda case: case.measure == "return" and case.published > float(case.cell["optimal_return"]) + 0.005,
        lambda case: f"The published mean is above the best known, {case.cell['optimal_return']:.3f}: chance.",
    ),
    (
        lambda case: case.is_act_then_measure and case.stuck > 0,
        lambda case: (
            f"{case.stuck} of our {len(case.runs)} runs earn nothing: they have come to a belief in which they "
            "neither look nor get anywhere. The measuring condition has Q_MDP where the theory needs Q_ATM. How "
            "many runs end so is chance, and decides the mean."
        ),
    ),
    (
        lambda case: str(case.cell["agent_name"]) == "amrl-q",
        lambda case: (
            f"In the published runs exploration was not switched on again after the first of {REPETITIONS} repetitions; here "
            "every run explores."
        ),
    ),
    (
        lambda case: str(case.cell["agent_name"]) == "acno-otp",
        lambda case: f"Both are means of few runs of {statistics.LAST} planned episodes each, here {len(case.runs)}.",
    ),
    (
        lambda case: case.measure == "measurements" and case.is_act_then_measure,
        lambda case: (
            "Looks and returns hang together: where looking and not looking earn about the same, runs choose either."
        ),
    ),
    (
        lambda case: str(case.cell["part"]) == study_spec.EIGHT,
        lambda case: "The published limit on the steps of an episode is not known.",
    ),
]
