"""The chain: it is deterministic, so a look is never worth its price. Certified optima beside the closed form."""

from __future__ import annotations

import actmeasure as am


def closed_form(n: int, discount: float) -> float:
    """Return the value of going forward n times: a reward of 1 in the last step, and a cost of 0.01 for every step."""
    return discount ** (n - 1) - 0.01 * (1 - discount**n) / (1 - discount)


def main() -> None:
    """Print a row for each length."""
    print(" n   certified optimum      closed form  looks")
    for n in (10, 20, 30, 40, 50):
        solution = am.solve(am.problems.chain(n))
        looks = solution.evaluation.measurements
        print(f"{n:>2}  {solution.lower:.6f} to {solution.upper:.6f}  {closed_form(n, 0.95):10.6f}  {looks:5.2f}")


if __name__ == "__main__":
    main()
