"""The machine that wears out: how often to look at it, by what a look costs."""

from __future__ import annotations

import actmeasure as am


def main() -> None:
    """Print the plans at the default price, and the value and the looks at others."""
    model = am.problems.maintenance()
    solution = am.solve(model)
    print(f"certified optimum: {solution.lower:.6f} to {solution.upper:.6f} (a broken machine costs 1 a step)\n")
    print(solution.schedule.describe(model))
    print("\nprice   value   looks per step  after seeing W0")
    for price in (0.0, 0.003, 0.01, 0.03, 0.1, 0.3):
        dearer = model.replace(measuring_cost=price)
        plan = am.solve(dearer)
        words = plan.schedule[int(model.initial_states[0])].describe(model)
        print(f"{price:5.3f}  {plan.value:6.3f}  {plan.evaluation.average_measurements:14.3f}  {words}")


if __name__ == "__main__":
    main()
