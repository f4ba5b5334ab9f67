"""The inventory of Kapoor and Nair: the published values with free counting, and what counting may cost."""

from __future__ import annotations

import actmeasure as am


def main() -> None:
    """Print values with free counting, the best plans when counting costs, and the price from which on counting does not pay."""
    model = am.problems.inventory()
    free = am.q_mdp(model).max(axis=1)
    print("free counting, from a stock of 0, 1, 2, 3:", ", ".join(f"{value:.2f}" for value in free))
    solution = am.solve(model)
    print(f"at a price of {model.measuring_cost:g}: certified optimum {solution.lower:.6f} to {solution.upper:.6f}\n")
    print(solution.schedule.describe(model))
    print("\nprice of counting   value  counts per step")
    for price in (0.0, 0.05, 0.1, 0.2, 0.4, 0.8):
        plan = am.solve(model.replace(measuring_cost=price))
        print(f"{price:17.2f}  {plan.value:.4f}  {plan.evaluation.average_measurements:15.3f}")
    low, high = am.tradeoff(model).break_even
    print(f"\ncounting pays up to a price between {low:.3f} and {high:.3f}")


if __name__ == "__main__":
    main()
