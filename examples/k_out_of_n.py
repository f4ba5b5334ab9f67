"""A k-out-of-n system: what simple rules cost, and below which cost no policy can come."""

from __future__ import annotations

import argparse

import actmeasure as am
from actmeasure.planning import Budget
from actmeasure.planning.tensor_grid import tensor_grid


def main() -> None:
    """Print the costs of simple methods and the bound on the optimal cost, with free looks and on a grid of beliefs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=int, default=2, help="number of components, 1 to 4 (default 2)")
    parser.add_argument("--k", type=int, default=1, help="number of components that have to work (default 1)")
    parser.add_argument("--hard", action="store_true", help="the instances that are called hard")
    arguments = parser.parse_args()
    model = am.problems.k_out_of_n(arguments.n, arguments.k, arguments.hard)
    print(f"{model.n_states} joint states, {int(model.allowed_decisions.sum())} joint decisions")
    for method in ("never", "atm-qmdp"):
        solution = am.solve(model, method, time_limit=20)
        print(f"{method:<9} costs {-solution.value:8.3f}")
    free = float(model.initial_distribution @ am.q_mdp(model).max(axis=1))
    grid = tensor_grid(model, Budget())
    print(f"no policy costs less than {-grid.start_bound:.3f}, and with free looks {-free:.3f}")


if __name__ == "__main__":
    main()
