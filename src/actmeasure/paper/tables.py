"""The tables and figures of the paper, as data frames beside the published numbers and the best known."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any
import pandas as pd
from actmeasure import statistics
from actmeasure.paper import experiments
from actmeasure.paper.published import RANDOM_LAKES
from actmeasure.studies.results import Results
from actmeasure.studies.report import tables
from actmeasure.studies.report.tables import best_known
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple
import numpy as np

__all__ = ["CURVES", "PaperTables", "REASONS", "REPETITIONS", "TEXT_AND_RUNS", "deviations"]

CELL = ["part", "problem", "agent"]
#: Training curves are drawn for this problem of the table.
CURVES = "4x4 semi-slippery"
#: ACNO-OTP explores until its last episodes, so that it has no training curve.
NO_CURVE = "acno-otp"


class PaperTables:
    """All tables of the report, each made when it is first asked for."""

    def __init__(self, results: Results) -> None:
        self._results = results

    @cached_property
    def means(self) -> pd.DataFrame:
        """A row for each run."""
        return tables.run_means(self._results.episodes)

    @cached_property
    def optima(self) -> pd.DataFrame:
        """A row for each problem: the best known."""
        return best_known(self._results.study, self._results.plans)

    @cached_property
    def cells(self) -> pd.DataFrame:
        """A row for each part, problem and agent, with settings, estimates, published numbers and the best known."""
        limits = {part["name"]: part["max_steps"] for part in self._results.study["parts"]}
        found = _with_settings(tables.summaries(self.means), self._results.runs)
        found = found.assign(max_steps=found["part"].map(limits))
        return _with_published(found).merge(self.optima, on=["part", "problem"], how="left")

    @cached_property
    def table1(self) -> pd.DataFrame:
        """Table 1, a row for each setting and agent."""
        return _table1(self.cells)

    @cached_property
    def eight(self) -> pd.DataFrame:
        """The 8x8 lake, a row for each agent."""
        dropped = ["part", "agent_settings", "problem_settings", "published_measurements", "max_steps"]
        return self.cells[self.cells["part"] == experiments.EIGHT].drop(columns=dropped).reset_index(drop=True)

    @cached_property
    def costs(self) -> pd.DataFrame:
        """The figure by cost, a row for each cost and agent."""
        return _costs(self.cells)

    @cached_property
    def curves(self) -> pd.DataFrame:
        """The training curves, a row for each agent and some episodes."""
        return _curves(self._results)

    @cached_property
    def scaling(self) -> pd.DataFrame:
        """The figure by size, a row for each size and agent."""
        return _scaling(_with_settings(self.means, self._results.runs), self.optima)

    @cached_property
    def comparisons(self) -> pd.DataFrame:
        """Table 1, who earns more: a row for each pair of agents and half of the table."""
        return tables.improvements(self.means[self.means["part"].isin((experiments.LEFT, experiments.RIGHT))])


def _with_settings(table: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """With columns for what an agent is and was given."""
    known = runs.drop_duplicates(CELL)[[*CELL, "agent_name", "agent_settings", "problem_settings", "episodes"]]
    joined = table.merge(known, on=CELL, how="left")
    presets = joined["agent_settings"].map(lambda text: json.loads(text).get("preset", "default"))
    return joined.assign(preset=presets)


def _with_published(cells: pd.DataFrame) -> pd.DataFrame:
    """With what the paper says of the same agent, whatever settings it has here."""
    columns = ["part", "problem", "agent_name", "published_return", "published_measurements"]
    return cells.merge(pd.DataFrame(experiments.published(), columns=columns), on=columns[:3], how="left")


def _table1(cells: pd.DataFrame) -> pd.DataFrame:
    shown = cells[cells["part"].isin((experiments.LEFT, experiments.RIGHT))]
    table = shown["part"].map({experiments.LEFT: "measuring value", experiments.RIGHT: "frozen lake"})
    renamed = shown.assign(table=table).rename(columns={"problem": "setting"})
    return renamed[
        [
            "table", "setting", "agent", "agent_name", "preset", "episodes", "runs", "scalarized_return", "low", "high",
            "measurements", "measurements_low", "measurements_high", "published_return", "published_measurements",
            "optimal_return", "optimal_measurements", "iqm", "iqm_low", "iqm_high", "value", "value_at_most",
        ]
    ].reset_index(drop=True)  # fmt: skip


def _costs(cells: pd.DataFrame) -> pd.DataFrame:
    shown = cells[cells["part"].isin((experiments.SWEEP, experiments.SWEEP_OTP))]
    found = shown.assign(cost=_setting(shown, "measuring_cost"))
    return found[
        [
            "agent", "agent_name", "preset", "cost", "episodes", "runs", "scalarized_return", "low", "high", "measurements",
            "measurements_low", "measurements_high", "optimal_return", "optimal_measurements",
        ]
    ].reset_index(drop=True)  # fmt: skip


def _curves(results: Results) -> pd.DataFrame:
    runs, episodes = results.runs, results.episodes
    drawn = runs[(runs["part"] == experiments.RIGHT) & (runs["problem"] == CURVES) & (runs["agent_name"] != NO_CURVE)]
    agents = drawn["agent"].unique()
    chosen = (episodes["part"] == experiments.RIGHT) & (episodes["problem"] == CURVES) & episodes["agent"].isin(agents)
    return _with_settings(tables.curves(episodes[chosen]), runs).drop(
        columns=["part", "agent_settings", "problem_settings"]
    )


def _scaling(means: pd.DataFrame, optima: pd.DataFrame) -> pd.DataFrame:
    """By size and agent: means over the lakes of a size, with intervals over lakes."""
    shown = means[means["part"] == experiments.SCALING]
    lakes = shown.assign(size=_setting(shown, "size")).merge(optima, on=["part", "problem"], how="left")
    rows = []
    for _, runs in lakes.groupby(["size", "agent"], sort=False, observed=True):
        first = runs.iloc[0]
        size, agent = int(first["size"]), str(first["agent"])
        rows.append(
            {
                "size": size, "agent": agent, "agent_name": first["agent_name"], "preset": first["preset"],
                "episodes": first["episodes"], "lakes": len(runs),
                **_estimates(runs),
                "published_return": RANDOM_LAKES.get(first["agent_name"], {}).get(size, float("nan")),
                "optimal_return": runs["optimal_return"].mean(),
            }
        )  # fmt: skip
    columns = [
        "size", "agent", "agent_name", "preset", "episodes", "lakes", "scalarized_return", "low", "high", "measurements",
        "measurements_low", "measurements_high", "published_return", "optimal_return",
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def _estimates(runs: pd.DataFrame) -> dict[str, float]:
    found: dict[str, float] = {}
    for column, names in (
        ("scalarized_return", ("scalarized_return", "low", "high")),
        ("measurements", ("measurements", "measurements_low", "measurements_high")),
    ):
        estimate = statistics.mean(runs[column].to_numpy())
        found |= dict(zip(names, estimate, strict=True))
    return found


def _setting(rows: pd.DataFrame, name: str) -> pd.Series[Any]:
    """A setting of the problem of each row."""
    return pd.Series([json.loads(text)[name] for text in rows["problem_settings"]], rows.index, dtype=float)


# ----------------------------------------------------------------------------------------------------
# Where what was found differs from what was published, and the known reasons, both by rule.
# ----------------------------------------------------------------------------------------------------






#: Published numbers are means of so many runs.
REPETITIONS = 5
#: Smaller differences do not matter: by rounding, and by the chance of 50 episodes in each run.
NEGLIGIBLE = {"return": 0.02, "measurements": 0.1}
#: A run is stuck that earns less than this share of the best known return, looks less often than this in an episode, and uses up
#: all steps of an episode but this share of them.
NOTHING = 0.05

COLUMNS = [
    "part", "problem", "agent", "measure", "published", "found", "difference", "expected_low", "expected_high", "differs",
    "reasons",
]  # fmt: skip


class Case(NamedTuple):
    """A published number, and what it is compared with: `runs` has what is compared of our runs, `habits` all means of them."""

    cell: Any
    measure: str
    published: float
    runs: statistics.FloatArray
    habits: pd.DataFrame

    @property
    def is_act_then_measure(self) -> bool:
        return str(self.cell["agent_name"]) in ("atmq", "dyna-atmq")

    @property
    def stuck(self) -> int:
        """How many of our runs walk until the time is up, do not look, and earn nothing where something can be earned."""
        best, runs = float(self.cell["optimal_return"]), self.habits
        poor = runs["scalarized_return"].abs() < NOTHING * best  # never, if the best is not known
        blind = runs["measurements"] < NOTHING
        endless = runs["steps"] > (1 - NOTHING) * float(self.cell["max_steps"])
        return int((poor & blind & endless).sum()) if self.measure == "return" else 0


def deviations(cells: pd.DataFrame, means: pd.DataFrame) -> pd.DataFrame:
    """A row for each published return and number of measurements, with what runs with the published settings give here.

    A number `differs` if it is outside of where the mean of five other runs is expected, 95 % of the time, and by more than what
    is negligible. Each published number is compared once: with the settings of the runs behind it, not with random looks added.

    Parameters
    ----------
    cells : pandas.DataFrame
        As `PaperTables.cells`.
    means : pandas.DataFrame
        As `tables.run_means`.
    """
    added = (cells["part"] == experiments.EIGHT) & cells["agent_settings"].map(_looks_at_random)
    comparable = cells[(cells["preset"] == "published") & cells["published_return"].notna() & ~added.astype(bool)]
    rows = [_row(case) for _, cell in comparable.iterrows() for case in _cases(cell, means)]
    return pd.DataFrame(rows, columns=COLUMNS)


def _looks_at_random(agent_settings: str) -> bool:
    return bool(experiments.RANDOM_LOOKS.keys() & json.loads(agent_settings).keys())


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
    found = float(case.runs.mean())
    slack = NEGLIGIBLE[case.measure]
    differs = case.published < low - slack or case.published > high + slack  # unknown bounds tell nothing
    reasons = [reason(case) for applies, reason in REASONS if applies(case)] or ["No reason is known."]
    known = " ".join(reasons) if differs else ""
    return (*labels, case.measure, case.published, found, found - case.published, low, high, differs, known)


def _is_shorter(case: Case) -> bool:
    """Whether runs had fewer episodes than the published ones."""
    return int(case.cell["episodes"]) < _published_episodes()[case.cell["part"], case.cell["agent"]]


@cache
def _published_episodes() -> dict[tuple[str, str], int]:
    parts = experiments.paper_study().parts
    return {(part.name, agent.label): agent.episodes or part.episodes for part in parts for agent in part.agents}


#: When a reason applies, and what it says. All that apply are given.
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
        lambda case: str(case.cell["part"]) == experiments.EIGHT,
        lambda case: "The published limit on the steps of an episode is not known.",
    ),
]

#: What the runs behind the published numbers did, and the text does not say.
TEXT_AND_RUNS = (
    "ATMQ and Dyna-ATMQ compare an optimistic best value with the un-optimistic value of the action they would "
    "take blindly, undiscounted; the text has the un-optimistic value in both places and a discount. As written "
    "they stop looking and walk in circles.",
    "Their prior is dropped once a state and action were measured more than seven times; the text keeps it.",
    "Dyna-ATMQ made 25 times 25 training updates at each step; the text says 25.",
    f"On the measuring value problem they also looked at random at {experiments.RANDOM_LOOKS['random_measuring']:.0%} of the steps.",
    "ATMQ had 500 episodes on the measuring value problem, the others 1,000.",
    "AMRL-Q had a learning rate of 0.3; the text says 0.1.",
    "ACNO-OTP planned with discount 0.99 and depth 10; the text says 0.95 and 25.",
    "On the slippery lake the table prints 0.76 and 0.93 looks for ATMQ and Dyna-ATMQ; the data files have 0.076 "
    "and 0.093, which is what is compared with here.",
)
