"""Time to a plan within 1 % of the optimum on RockSample, beside the HSVI of `pomdp-toolkit`, in one process and by turns.

`pomdp-toolkit` (with tqdm) is not among the locked requirements: install it into an environment of your own, then
`python -m benchmarks.against_hsvi`. HSVI is timed until the value of its vectors at the start is within 1 % of the optimum, or
for `MOST_SECONDS`; it proves no upper bound along the way, which the search here has to. Version 0.0.4 fails where an outcome is
impossible, so there every outcome gets a probability of at least `LEAST`.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import actmeasure as am
from benchmarks.goals import Goal

__all__ = ["against_hsvi"]

#: Share of the optimum that has to be reached, and the most CPU seconds that HSVI gets.
SHARE, MOST_SECONDS = 0.01, 150.0
#: Least probability of an outcome for HSVI.
LEAST = 1e-6
#: The search here should be this many times as fast.
FASTER = 10.0


def _toolkit_model(model: am.Model) -> object:
    """Return a model with passive outcomes only as one of `pomdp-toolkit`."""
    from pomdp_toolkit import POMDP  # type: ignore[import-not-found]

    n, n_actions = model.n_states, model.n_actions
    moves = np.asarray(model.transitions.stacked().todense()).reshape(n, n_actions, n)
    ended = np.flatnonzero(model.terminal)
    moves[ended] = 0.0
    moves[ended, :, ended[0]] = 1.0
    assert model.passive is not None
    assert model.passive.law is not None
    assert model.passive.outcomes is not None
    law, seen = model.passive.law, np.zeros((n, n_actions, len(model.passive.outcomes)))
    for action in range(n_actions):
        for state in range(n):
            row = state + (action * n if law.by_action else 0)
            cells = slice(law.offsets[row], law.offsets[row + 1])
            seen[state, action, law.outcomes[cells]] = law.probabilities[cells]
    seen[ended] = 0.0
    seen[ended, :, 0] = 1.0
    seen = (seen + LEAST) / (1 + LEAST * seen.shape[2])
    rewards = np.where(model.terminal[:, None], 0.0, model.rewards)
    table = np.broadcast_to(rewards[:, :, None, None], (*moves.shape, seen.shape[2]))
    start = np.zeros(n)
    start[model.initial_states] = model.initial_probabilities
    return POMDP(
        states=n,
        actions=n_actions,
        observations=seen.shape[2],
        observation_table=seen,
        transition_table=moves,
        reward_table=table,
        start_probabilities=start,
        end_states=[int(ended[0])],
    )


def _hsvi_seconds(model: am.Model, optimum: float) -> tuple[float, float]:
    """Return the CPU seconds of HSVI, and the value at the start that its vectors prove by then."""
    from pomdp_toolkit import Belief
    from pomdp_toolkit.solvers import HSVI  # type: ignore[import-not-found]

    toolkit = _toolkit_model(model)
    start = np.zeros(model.n_states)
    start[model.initial_states] = model.initial_probabilities
    value, vectors, mdp, begun = -np.inf, None, None, time.process_time()
    while value < (1 - SHARE) * optimum and time.process_time() - begun < MOST_SECONDS:
        try:
            vectors, _, mdp = HSVI.solve(
                toolkit,
                expansions=1,
                max_belief_growth=100,
                initial_belief=Belief(toolkit, start),
                initial_value_function=vectors,
                gamma=model.discount,
                epsilon=SHARE,
                print_progress=False,
                print_stats=False,
                mdp_policy=mdp,
                return_mdp_policy=True,
            )
        except ValueError:  # it fails where an expansion finds no new belief
            break
        value = float((np.asarray(vectors.alpha_vector_array) @ start).max())
    return time.process_time() - begun, value


def against_hsvi() -> list[Goal]:
    """Return for each model how many times as long HSVI takes; at least that, if it did not reach the goal."""
    am.solve(am.problems.tiger())  # compiles
    goals = []
    for size, rocks in ((4, 4), (5, 5)):
        model = am.problems.rock_sample(size, rocks)
        begun = time.process_time()
        solution = am.solve(model, relative_tolerance=SHARE, tolerance=1e-9)
        own = time.process_time() - begun
        seconds, value = _hsvi_seconds(model, solution.lower)
        title = (
            f"RockSample({size},{rocks}): [{solution.lower:.4g}, {solution.upper:.4g}] in {own:.2f} s; "
            f"HSVI {value:.4g} in {seconds:.1f} s"
        )
        goals.append(Goal(title, own / seconds, 1 / FASTER, "x"))
        print(goals[-1], file=sys.stderr, flush=True)
    return goals


if __name__ == "__main__":
    sys.exit(sum(not goal.met for goal in against_hsvi()))
