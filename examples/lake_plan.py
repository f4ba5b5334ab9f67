"""The picture of the front page, a lake with its best plan: `python examples/lake_plan.py docs/pictures/lake-plan.png`.

Without a path the picture goes to results/lake-plan.png.
"""

from __future__ import annotations

import sys
from pathlib import Path

import actmeasure as am


def main(path: Path) -> None:
    """Solve a lake on which a step may slip, draw the best plan with its looks, and print the certificate."""
    lake = am.problems.frozen_lake(size=6, variant="semi-slippery", seed=2, measuring_cost=0.01)
    solution = am.solve(lake)
    path.parent.mkdir(parents=True, exist_ok=True)
    solution.plot(path)
    print(f"{path}: worth {solution.value:.4f}; nothing is worth more than {solution.upper:.4f}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "results/lake-plan.png"))
