"""Sepsis: 3,600 states of a patient, a blood test at a price, and five steps of treatment."""

from __future__ import annotations

import actmeasure as am


def main() -> None:
    """Compare planning methods, and print what a blood test may cost."""
    model = am.problems.sepsis()
    solution = am.solve(model, tolerance=1e-5)
    print(f"certified optimum: {solution.lower:.5f} to {solution.upper:.5f}\n")
    print("method    value   looks in an episode")
    for method in ("optimal", "atm", "always", "never"):
        plan = solution if method == "optimal" else am.solve(model, method, tolerance=1e-5)
        print(f"{method:<8}  {plan.value:.4f}  {plan.evaluation.measurements:6.3f}")
    print("\nprice of a look   value   looks")
    for price in (0.0, 0.01, 0.02, 0.05, 0.1, 0.2):
        plan = am.solve(model.replace(measuring_cost=price), tolerance=1e-4)
        print(f"{price:15.2f}  {plan.value:.4f}  {plan.evaluation.measurements:6.3f}")


if __name__ == "__main__":
    main()
