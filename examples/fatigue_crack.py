"""The fatigue crack: when to inspect a weld, and how much the approximation by simulated units matters.

With `--full` also for ten times as many units.
"""

from __future__ import annotations

import sys

import actmeasure as am


def main() -> None:
    """Print the certified optimum, how methods compare, and how the optimum varies with the simulation."""
    if unknown := set(sys.argv[1:]) - {"--full"}:
        sys.exit(f"unknown option {', '.join(sorted(unknown))}; there is --full")
    model = am.problems.fatigue_crack()
    solution = am.solve(model, tolerance=1e-5)
    print(f"certified optimum: {solution.lower:.5f} to {solution.upper:.5f} ({model.n_states:,} states)")
    if solution.schedule.start is not None:
        print(f"from the beginning: {solution.schedule.start.describe(model)}\n")
    print("method     value  inspections")
    for method in ("optimal", "every-5", "every-10", "never"):
        plan = am.solve(model, method, tolerance=1e-4)
        print(f"{method:<8} {plan.value:7.2f}  {plan.evaluation.measurements:11.2f}")
    print("\nsimulated units   optimum with other seeds")
    counts, seeds = ((30_000, 300_000, 3_000_000), 3) if "--full" in sys.argv else ((30_000,), 2)
    for samples in counts:
        models = (am.problems.fatigue_crack(samples=samples, seed=seed) for seed in range(1, 1 + seeds))
        print(f"{samples:15,}   " + "  ".join(f"{am.solve(m, tolerance=1e-4).value:.3f}" for m in models), flush=True)


if __name__ == "__main__":
    main()
