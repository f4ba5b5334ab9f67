"""Which columns of the paper's tables are shown on the page, and how."""

from __future__ import annotations

from actmeasure.report.deviations import REPETITIONS
from actmeasure.report.document import Column

__all__ = ["DEVIATIONS", "EIGHT", "OPTIMA", "PAIRS", "SCALING", "TABLE"]

RETURN = Column("return found", "scalarized_return", 2, ("low", "high"))
MIDDLE = Column("interquartile mean", "iqm", 2, ("iqm_low", "iqm_high"))
BEST = Column("best known", "optimal_return")

TABLE = [
    Column("setting", "problem"), Column("agent", "agent"), Column("published return", "published_return"), RETURN,
    MIDDLE, BEST,
    Column("published looks", "published_measurements"),
    Column("looks found", "measurements", 2, ("measurements_low", "measurements_high")),
    Column("looks of the best", "optimal_measurements"), Column("runs", "runs", 0), Column("episodes", "episodes", 0),
]  # fmt: skip
EIGHT = [
    Column("agent", "agent"), Column("published return", "published_return"), RETURN,
    MIDDLE, BEST,
    Column("looks found", "measurements", 2, ("measurements_low", "measurements_high")),
    Column("looks of the best", "optimal_measurements"), Column("runs", "runs", 0), Column("episodes", "episodes", 0),
]  # fmt: skip
SCALING = [
    Column("size", "size", 0), Column("agent", "agent"), Column("published return", "published_return"),
    Column("return found", "scalarized_return", 2, ("low", "high"), "lakes"), BEST,
    Column("looks found", "measurements", 2, ("measurements_low", "measurements_high"), "lakes"), Column("lakes", "lakes", 0),
]  # fmt: skip
OPTIMA = [
    Column("problem", "problem"), Column("best known return", "optimal_return", 3),
    Column("looks", "optimal_measurements"), Column("steps", "optimal_steps", 1),
    Column("discounted optimum at least", "value", 4), Column("at most", "value_at_most", 4),
]  # fmt: skip
PAIRS = [
    Column("part", "part"), Column("agent", "agent"), Column("other", "other"),
    Column("earns more by", "difference", 2, ("difference_low", "difference_high")),
    Column("probability that it earns more", "probability", 2, ("low", "high")),
]  # fmt: skip
DEVIATIONS = [
    Column("problem", "problem"), Column("agent", "agent"), Column("what", "measure"), Column("published", "published"),
    Column("found", "found"), Column(f"means of {REPETITIONS} runs, from", "expected_low"), Column("to", "expected_high"),
    Column("what is known about it", "reasons"),
]  # fmt: skip
