"""Compile all kernels ahead of their first use: `python -m actmeasure.warm`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from actmeasure.schedule import Schedule

__all__ = ["warm"]


def warm() -> None:
    """Run each compiled function on a small problem, in two processes at a time; the machine code is kept on disk."""
    from actmeasure.studies.pool import Call, Work, WorkerDiedError, run_calls

    try:
        for _ in run_calls(Work([Call(part.__name__, part) for part in (_plan, _learn, _search)]), processes=2):
            pass
    except WorkerDiedError as error:
        raise SystemExit(f"compiling the kernels failed: {error}") from error


def _plan() -> None:
    """Compile the kernels of planning, evaluation and fitting."""
    import numpy as np

    from actmeasure import problems
    from actmeasure.belief import Belief
    from actmeasure.evaluation import evaluate
    from actmeasure.inspection import fit
    from actmeasure.kernels import belief_graph, graph_search
    from actmeasure.planning import POMCP, solve
    from actmeasure.planning.budget import Budget
    from actmeasure.planning.optimal import Search
    from actmeasure.planning.pomcp import simulate

    model = problems.measuring_value()
    evaluate(model, _repeating(model.n_states), horizon=10)
    lake = problems.frozen_lake(4)
    hidden = lake.replace(initial=[0.5, 0.5, *[0.0] * 14], reveal_start=False)
    for method in ("optimal", "atm"):
        solve(lake, method)
        solve(hidden, method)
    solve(lake.replace(discount=1.0))  # blind moves that lead round in a cycle
    search = Search(lake, Budget())
    search.mixes_above = 0
    search.run(tolerance=1e-6)
    graph_search.raise_lower_bounds(search._graph, search.bounds, lake.discount, 1)
    # What a larger graph needs.
    belief_graph.fill_table(search._graph._replace(table=np.full_like(search._graph.table, -1)))
    POMCP(model, simulations=10).decide(Belief.at(0))
    simulate(POMCP(problems.inspection(), simulations=10), episodes=1, max_steps=2)
    seen = {"unit": [1, 1, 1], "time": [0, 1, 3], "state": ["good", "worn", "worn"], "action": ["wait"] * 3}
    fit(seen, bootstrap=1, goodness=1)
    gap = {"unit": [1, 1], "time": [0, 2], "state": ["good", "worn"], "action": ["wait"] * 2}
    fit(gap, bootstrap=1, goodness=1)  # needs derivatives
    fit(seen, errors={"worn": ["good"]}, bootstrap=0, goodness=1)


def _search() -> None:
    """Compile the kernels of the general search, with and without the grid of a system, and of its certificates."""
    import numpy as np

    from actmeasure import problems
    from actmeasure.belief import Belief
    from actmeasure.kernels.interpolation import make_programme, solve_packing
    from actmeasure.kernels.outcome_search import rehash
    from actmeasure.planning import solve
    from actmeasure.planning.budget import Budget
    from actmeasure.planning.certificate import certificate

    for model in (problems.tiger(), problems.k_out_of_n(2, 1)):
        solution = solve(model, budget=Budget(work=300))
        solution.policy.decide()
        solution.explain()
        if (search := solution.search) and model.origin is None:  # what a longer search needs
            search._sweep(math.inf, once=True)
            search.decision_bounds(Belief.start(model))
            rehash(search.points)
    certificate(solve(problems.frozen_lake(4)))
    solve_packing(make_programme(1, 1, 1), np.ones(1), 0, 1, 1)


def _learn() -> None:
    """Compile the kernels of agents, on models and in environments."""
    from actmeasure import learning, problems
    from actmeasure.envs.tabular import TabularEnv
    from actmeasure.learning.train import train

    model, lake = problems.measuring_value(), problems.frozen_lake(4)
    repeat = _repeating(model.n_states)
    for agent in (learning.make("random"), learning.make("schedule", schedule=repeat, model=model)):
        train(agent, model, episodes=2, max_steps=10)
    for name in ("atmq", "dyna-atmq", "amrl-q"):
        for world in (model, TabularEnv(model)):
            train(learning.make(name), world, episodes=2, max_steps=10)
    for world in (lake, TabularEnv(lake)):
        train(learning.make("foresight"), world, episodes=60, max_steps=50)
    for method in ("counter", "euler"):
        train(
            learning.make("acno-otp", exploring_method=method, exploring_episodes=1, simulations=10), model, episodes=2
        )
    train(learning.make("acno-pomcp", simulations=10), problems.inspection(), episodes=2, max_steps=5)


def _repeating(n_states: int) -> Schedule:
    from actmeasure.schedule import BlindPlan, Schedule

    return Schedule({0: BlindPlan((1, 0), then="repeat", repeat=2)}, n_states)


if __name__ == "__main__":
    warm()
