"""RockSample: the map, a bound on the optimum, and what planning by simulation earns; sizes as arguments, such as 7 8."""

from __future__ import annotations

import sys

import actmeasure as am
from actmeasure.problems.rock_sample import LAYOUTS


def main() -> None:
    """Draw the map in letters and print returns."""
    size, rocks = (int(word) for word in sys.argv[1:3]) if len(sys.argv) > 2 else (4, 4)
    model = am.problems.rock_sample(size, rocks)
    numbers = {cell: str(rock + 1) for rock, cell in enumerate(LAYOUTS.get((size, rocks), ()))}
    for y in reversed(range(size)):
        line = [numbers.get((x, y), ".") for x in range(size)]
        if y == size // 2:
            line[0] = "R" if line[0] == "." else line[0]
        print(" ".join(line) + "  |")
    known = float(model.initial_probabilities @ am.q_mdp(model).max(axis=1)[model.initial_states])
    print(f"\nif good rocks were known: {known:.3f}; leaving at once: {10 * 0.95 ** (size - 1):.3f}")
    planner = am.planners.POMCP(model, simulations=2_000, exploration=10.0)
    result = am.planners.simulate(planner, episodes=10, max_steps=60)
    print(f"POMCP, 10 episodes: {result.discounted_return}")


if __name__ == "__main__":
    main()
