"""The numbers in the paper's tables and figures, to compare results with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

__all__ = ["AMRL_Q_EPISODES", "DISCOUNT", "RANDOM_LAKES", "Published", "published_results"]

#: Discount of all experiments.
DISCOUNT = 0.95
#: Episodes of AMRL-Q on random lakes, where the others had 7,500.
AMRL_Q_EPISODES = 1_000


class Published(NamedTuple):
    """A published mean of the last 50 episodes; measurements are None where only returns were published."""

    part: str
    problem: str
    agent: str
    scalarized_return: float
    measurements: float | None


#: Table 1, left: return and measurements by agent, in the order of the costs 0.05, 0.10 and 0.20.
LEFT = {
    "atmq": ((0.94, 1.30), (0.76, 0.50), (0.78, 0.11)),
    "dyna-atmq": ((0.93, 1.34), (0.86, 1.14), (0.82, 0.16)),
    "amrl-q": ((0.82, 0.00), (0.80, 0.00), (0.78, 0.00)),
    "acno-otp": ((0.94, 1.18), (0.81, 0.00), (0.79, 0.00)),
}
#: Table 1, right: deterministic, semi-slippery, slippery. The paper prints 0.76 and 0.93 measurements on the slippery lake
#: for the first two; its data files have a tenth of that.
RIGHT = {
    "atmq": ((1.00, 0.00), (0.75, 2.65), (0.02, 0.08)),
    "dyna-atmq": ((1.00, 0.00), (0.65, 2.95), (0.03, 0.09)),
    "amrl-q": ((1.00, 0.00), (0.41, 0.00), (0.03, 0.00)),
    "acno-otp": ((1.00, 0.00), (0.40, 0.00), (0.04, 0.00)),
}
#: The standard 8x8 map, semi-slippery.
EIGHT = {"atmq": 0.43, "dyna-atmq": 0.62, "amrl-q": 0.53}
#: Random semi-slippery lakes, returns by size; AMRL-Q had 1,000 episodes, the others 7,500, Dyna-ATMQ one repetition.
RANDOM_LAKES: Mapping[str, Mapping[int, float]] = {
    agent: dict(zip(range(8, 21), returns, strict=True))
    for agent, returns in {
        "atmq": (0.82, 0.76, 0.38, 0.53, 0.31, 0.19, -0.44, -0.06, -0.09, -0.13, -0.22, -0.07, -0.07),
        "dyna-atmq": (0.86, 0.85, 0.60, 0.65, 0.65, 0.52, 0.55, 0.38, 0.50, 0.48, 0.10, 0.17, 0.02),
        "amrl-q": (0.78, 0.36, 0.21, 0.31, -0.02, -0.00, -0.01, -0.02, -0.01, -0.03, -0.02, -0.04, -0.05),
    }.items()
}


def published_results(
    left: tuple[str, list[str]], right: tuple[str, list[str]], eight: tuple[str, list[str]]
) -> Iterator[Published]:
    """Return the published cells of the tables, each with the name of its part and the label of its problem.

    Parameters
    ----------
    left, right, eight : tuples of a part's name and its problems' labels, in the order of the tables above
    """
    for (part, problems), table in ((left, LEFT), (right, RIGHT)):
        for agent, cells in table.items():
            for problem, (earned, looks) in zip(problems, cells, strict=True):
                yield Published(part, problem, agent, earned, looks)
    part, (problem,) = eight
    for agent, earned in EIGHT.items():
        yield Published(part, problem, agent, earned, None)
