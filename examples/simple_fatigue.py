"""Simplified fatigue: what rules lose against the known optimum, by the number of periods."""

from __future__ import annotations

import actmeasure as am

OPTIMA = {5: -15.756466, 10: -34.390916, 20: -60.01600, 30: -75.35871}
METHODS = ("never", "every-2", "always", "atm")


def main() -> None:
    """Print a table of values."""
    print("periods  optimum  " + "  ".join(f"{method:>7}" for method in METHODS))
    for periods, optimum in OPTIMA.items():
        model = am.problems.simple_fatigue(periods)
        found = [am.solve(model, method).value for method in METHODS]
        print(f"{periods:7}  {optimum:7.3f}  " + "  ".join(f"{value:7.3f}" for value in found))


if __name__ == "__main__":
    main()
