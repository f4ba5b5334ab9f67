"""How good could it be? The paper's problems with certified optima beside what its agents earned, and the price of a look.

Run with `make paper` until the whole study is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

import actmeasure as am

OUT = Path("results")
METHODS = ("optimal", "atm", "atm-qmdp", "always", "every-2", "never")


@dataclass(frozen=True)
class Case:
    """A column of the paper's table: a problem, and the best return that an agent is published with."""

    name: str
    model: am.Model
    published: float


def cases() -> list[Case]:
    """The paper's Table 1."""
    published = {0.05: 0.94, 0.10: 0.86, 0.20: 0.82}
    gambles = [
        Case(f"measuring value, c = {c:.2f}", am.problems.measuring_value(measuring_cost=c, discount=1.0), best)
        for c, best in published.items()
    ]
    lakes = [
        Case(f"4x4 {variant} lake", am.problems.frozen_lake(4, variant, measuring_cost=0.05), best)
        for variant, best in {"deterministic": 1.00, "semi-slippery": 0.75, "slippery": 0.04}.items()
    ]
    return [*gambles, *lakes]


def undiscounted_return(case: Case, method: str) -> float:
    """What a planned schedule earns per episode, over 200 steps, as the paper reports it."""
    schedule = am.solve(case.model, method).schedule
    return am.evaluate(case.model, schedule, horizon=200).scalarized_return


def print_table(columns: list[Case]) -> None:
    """Returns of planned schedules beside the best published agent."""
    print("Return per episode of schedules planned on the known model, and of the best agent published\n")
    print(f"{'':26}{'published':>10}" + "".join(f"{method:>10}" for method in METHODS))
    for case in columns:
        returns = (f"{undiscounted_return(case, method):10.3f}" for method in METHODS)
        print(f"{case.name:26}{case.published:10.2f}" + "".join(returns), flush=True)
    print(
        "\nPublished agents learned; a published figure above the optimum is luck in 50 episodes. Lakes are planned at"
    )
    print(
        "discount 0.95, so their schedules need not be the best without one. atm-qmdp is act-then-measure as published:"
    )
    print(
        "on a known model it cycles without end. every-2 loses without end where it does not look when it would need to."
    )


def draw_prices() -> Path:
    """The frontier between reward and looks of the semi-slippery lake."""
    frontier = am.tradeoff(am.problems.frozen_lake(4, "semi-slippery"))
    low, high = frontier.break_even
    print(f"\nOn the 4x4 semi-slippery lake a look pays up to a price between {low:.4f} and {high:.4f}.")
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    frontier.plot(axes)
    OUT.mkdir(exist_ok=True)
    picture = OUT / "price_of_a_look.svg"
    figure.savefig(picture)
    figure.savefig(picture.with_suffix(".png"), dpi=120)
    return picture


def main() -> None:
    """Print the table and draw the picture."""
    print_table(cases())
    print(f"Picture: {draw_prices()}")


if __name__ == "__main__":
    main()
