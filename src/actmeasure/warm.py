"""Compile every kernel once, so that the first real use does not wait for it: `python -m actmeasure.warm`."""

from __future__ import annotations

__all__ = ["warm"]


def warm() -> None:
    """Run each compiled function on a small problem; Numba keeps the machine code on disk."""
    from actmeasure import agents, problems
    from actmeasure.belief import Belief
    from actmeasure.envs.tabular import TabularEnv
    from actmeasure.evaluation import evaluate
    from actmeasure.fitting import fit
    from actmeasure.planners import POMCP, solve
    from actmeasure.schedule import BlindPlan, Schedule
    from actmeasure.training import train

    model = problems.measuring_value()
    repeat = Schedule({0: BlindPlan((1, 0), then="repeat", repeat=2)}, model.n_states)
    evaluate(model, repeat, horizon=10)
    lake = problems.frozen_lake(4)
    hidden = lake.replace(initial=[0.5, 0.5, *[0.0] * 14], reveal_start=False)
    for method in ("optimal", "atm"):
        solve(lake, method)
        solve(hidden, method)
    for agent in (agents.make("random"), agents.make("schedule", schedule=repeat, model=model)):
        train(agent, model, episodes=2, max_steps=10)
    for name in ("atmq", "dyna-atmq", "amrl-q"):
        for world in (model, TabularEnv(model)):
            train(agents.make(name), world, episodes=2, max_steps=10)
    for world in (lake, TabularEnv(lake)):
        train(agents.make("foresight"), world, episodes=60, max_steps=50)
    POMCP(model, simulations=10).decide(Belief.at(0))
    for exploration in ("counter", "euler"):
        train(agents.make("acno-otp", exploration=exploration, exploring_episodes=1, simulations=10), model, episodes=2)
    seen = {"unit": [1, 1, 1], "time": [0, 1, 3], "state": ["good", "worn", "worn"], "action": ["wait"] * 3}
    fit(seen, bootstrap=1, goodness=1)


if __name__ == "__main__":
    warm()
