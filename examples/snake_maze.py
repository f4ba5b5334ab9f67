"""The snake maze: several blind steps in a row, and looks where one step more would be wasted."""

from __future__ import annotations

import actmeasure as am
from actmeasure.problems.snake_maze import state_number


def main() -> None:
    """Print the certified optimum, how methods compare, and the plans of the first two rows."""
    model = am.problems.snake_maze()
    solution = am.solve(model)
    print(f"certified optimum: {solution.lower:.6f} to {solution.upper:.6f}\n")
    print("method    value   looks  steps")
    for method in ("optimal", "atm", "always", "every-2", "every-4"):
        plan = am.solve(model, method)
        print(f"{method:<8} {plan.value:7.4f}  {plan.evaluation.measurements:5.1f}  {plan.evaluation.steps:5.1f}")
    print()
    for state in range(state_number(0, 2)):
        if state in solution.schedule:
            print(f"after seeing {model.state_name(state)}: {solution.schedule[state].describe(model)}")


if __name__ == "__main__":
    main()
