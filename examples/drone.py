"""The drone: a small corridor to a certified optimum, or with `--full` the one with 40,656 states for five minutes."""

from __future__ import annotations

import sys

import actmeasure as am


def main() -> None:
    """Print the bound with free looks, what methods earn, and the bounds on the optimum."""
    if unknown := set(sys.argv[1:]) - {"--full"}:
        sys.exit(f"unknown option {', '.join(sorted(unknown))}; there is --full")
    full = "--full" in sys.argv
    model = am.problems.drone() if full else am.problems.drone(size=9, width=4, top_speed=2)
    print(model)
    free = float(am.q_mdp(model)[model.initial_states[0]].max())
    solution = am.solve(model, tolerance=1e-3, time_limit=300 if full else 5, progress=full)
    print(f"\noptimum: {solution.lower:.4f} to {solution.upper:.4f} ({solution.stopped})\n")
    print("method      value  looks  steps")
    print(f"free looks  {free:.4f}")
    for method in ("optimal", "atm", "always"):
        plan = solution if method == "optimal" else am.solve(model, method, time_limit=300)
        result = plan.evaluation
        print(f"{method:<10}  {plan.value:.4f}  {result.measurements:5.2f}  {result.steps:5.2f}")
    start = int(model.initial_states[0])
    print(f"\nafter seeing {model.state_name(start)}: {solution.schedule[start].describe(model)}")


if __name__ == "__main__":
    main()
