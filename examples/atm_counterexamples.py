"""What of act-then-measure carries over to looks that are not exact: a search for counterexamples among small random models.

Two states, two actions, three periods, and a sensor that costs 0.1 and is right with probability 0.7. For each model the optimum
is computed by trying all decisions, and compared with `atm`, `atm-qmdp`, and rules that measure at fixed steps with the same
control:

* Lemma 1 (with the control given, no rule of when to measure is better than `atm`): the search finds no counterexample.
* Lemma 1 for `atm-qmdp`, whose measuring values are those of Q_MDP: it finds some.
* Theorem 1 (`atm` loses at most the price of looking at every step): it finds some, and prints the worst.

`python examples/atm_counterexamples.py --models 2000 --seed 1` searches further.
"""

from __future__ import annotations

import argparse

import numpy as np

import actmeasure as am

DISCOUNT, PERIODS, RIGHT, COST = 0.9, 3, 0.7, 0.1
#: What Theorem 1 allows `atm` to lose: the discounted price of looking at every step.
ALLOWED = sum(COST * DISCOUNT**period for period in range(PERIODS))


def random_model(rng: np.random.Generator) -> am.Model:
    """Two states and actions, deterministic moves, small whole rewards, a hidden start, and a noisy sensor."""
    P = np.eye(2)[rng.integers(2, size=(2, 2))]
    R = rng.integers(-4, 5, size=(2, 2)).astype(float)
    sensor = am.Measurement.noisy("sensor", COST, probabilities=[[RIGHT, 1 - RIGHT], [1 - RIGHT, RIGHT]])
    return am.Model.from_arrays(P, R, measurements=[sensor], initial=[0.5, 0.5], discount=DISCOUNT)


def optimum(model: am.Model, belief: am.Belief) -> float:
    """The largest expected return from a belief, by trying all decisions until the episode ends."""
    best = -np.inf
    for action, measurement in np.argwhere(model.allowed_decisions).tolist():
        value = float(belief.expected(model.rewards[:, action])) - COST * bool(measurement)
        running = belief.running_probability(model, action)
        for outcome, chance in enumerate(belief.outcomes(model, action, measurement)):
            if chance > 0:
                after = belief.update(model, action, measurement, outcome if measurement else None)
                value += DISCOUNT * running * chance * optimum(model, after)
        best = max(best, value)
    return best


def main() -> None:
    """Search, and print how often each statement fails and the worst case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    better_rule, better_than_qmdp, losing = 0, 0, 0
    worst: tuple[float, am.Model | None, float, float] = (0.0, None, 0.0, 0.0)
    for _ in range(arguments.models):
        base = random_model(rng)
        model = am.lifetime(base, PERIODS)
        values = {method: am.solve(model, method).value for method in ("atm", "atm-qmdp", "always", "never", "every-2")}
        best = optimum(model, am.Belief.start(model))
        others = max(value for method, value in values.items() if method != "atm")
        better_rule += others > values["atm"] + 1e-9
        better_than_qmdp += max(values.values()) > values["atm-qmdp"] + 1e-9
        losing += best > values["atm"] + ALLOWED + 1e-9
        if best - values["atm"] > worst[0] + 1e-9:
            worst = (best - values["atm"], base, values["atm"], best)
    print(f"{arguments.models} models, seed {arguments.seed}; counterexamples found:")
    print(f"  Lemma 1, for atm                         {better_rule}")
    print(f"  Lemma 1, for atm-qmdp                    {better_than_qmdp}")
    print(f"  Theorem 1, a loss of at most {ALLOWED:.3f}       {losing}")
    loss, found, earned, best = worst
    if found is not None:
        print(f"The worst of the last: atm earns {earned:.4g}, the optimum is {best:.4g}, the loss {loss:.4g}, with")
        successors = found.transitions.dense().argmax(axis=2).tolist()
        print(f"  successors of [state][action] {successors}, rewards {found.rewards.tolist()}")


if __name__ == "__main__":
    main()
