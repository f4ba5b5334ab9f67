"""The inspected unit: what rules with one or several measurements earn, and how often each measurement is made."""

from __future__ import annotations

import argparse

import numpy as np

import actmeasure as am

NOTHING, REPAIR, REPLACE = 0, 1, 2
VISUAL, ULTRASONIC, OPENING = 1, 2, 3
MODERATE, SEVERE, FAILED = 2, 3, 4


class Rule:
    """Measure at intervals, repair or replace by the belief, and open the unit where a cheaper measurement leaves doubts.

    Parameters
    ----------
    model : am.Model
    every : int
        Number of periods between measurements.
    kind : int
        The measurement that is made then.
    opens : bool
        Whether the unit is opened in the period after which damage is likely but its extent is not known.
    """

    def __init__(self, model: am.Model, every: int, kind: int, opens: bool) -> None:
        self.model, self.every, self.kind, self.opens = model, every, kind, opens

    def start(self, belief: am.Belief) -> None:
        """Begin with a belief."""
        self.belief, self.periods = belief, 0

    def decide(self) -> am.Decision:
        """Return the next decision."""
        action, chance = NOTHING, self.belief.dense(self.model.n_states)
        if chance[FAILED] > 0.5:
            action = REPLACE
        elif chance[MODERATE] + chance[SEVERE] > 0.6:
            action = REPAIR
        doubtful = action == NOTHING and chance[MODERATE:].sum() > 0.3
        if self.opens and doubtful:
            measurement = OPENING
        else:
            measurement = self.kind if self.periods % self.every == self.every - 1 else 0
        self.decision = am.Decision(action, measurement if action != REPLACE else 0)
        return self.decision

    def observe(self, outcome: int | None) -> None:
        """Update the belief with what was seen."""
        self.belief = self.belief.update(self.model, *self.decision, outcome)
        self.periods = 0 if self.decision.measure else self.periods + 1


def main() -> None:
    """Simulate several rules and print mean costs and measurements a period."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--periods", type=int, default=200)
    given = parser.parse_args()
    model = am.problems.inspection()
    names = [measurement.name for measurement in model.measurements]
    print(f"{'rule':<35} {'cost a period':>13}  " + "  ".join(names) + "  (a period)")
    for kind in (VISUAL, ULTRASONIC, OPENING):
        for opens in (False, True):
            for every in (2, 4):
                agent = am.agents.PolicyAgent(Rule(model, every, kind, opens), model)
                run = am.train(agent, model, given.episodes, seed=0, max_steps=given.periods)
                cost = -run.scalarized_return.sum() / run.steps.sum()
                looks = run.looks.sum(axis=0) / run.steps.sum()
                label = f"{names[kind - 1]} every {every}{', opened in doubt' if opens else ''}"
                shares = "  ".join(f"{share:>{len(name)}.2f}" for share, name in zip(looks, names, strict=True))
                print(f"{label:<35} {cost:13.2f}  {shares}")
    start = am.Belief.at(0)
    for _ in range(6):
        start = start.predict(model, NOTHING)
    print(f"\nafter 6 periods unseen: {np.round(start.dense(model.n_states), 2)}")
    print(f"and if visual finds damage in the 7th: {start.update(model, NOTHING, 'visual', 'damage found')}")


if __name__ == "__main__":
    main()
