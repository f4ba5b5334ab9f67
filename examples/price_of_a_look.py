"""What is a look worth? Exact answers on the paper's problems, as a table and a picture.

Run with `make paper` until the whole study is there.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import actmeasure as am

COSTS = np.round(np.arange(0.0, 0.2001, 0.01), 2)
OUT = Path("results")


def gamble(cost: float) -> tuple[float, float, float]:
    """Measuring value at discount 1: return when looking, return when not, and the closed-form optimum."""
    p = 0.8
    model = am.problems.measuring_value(p=p, measuring_cost=cost, discount=1.0)
    look = {0: am.BlindPlan((1,)), 1: am.BlindPlan((1,), then="end"), 2: am.BlindPlan((0,), then="known")}
    blind = {0: am.BlindPlan((1, 1), then="end")}
    returns = [am.evaluate(model, am.Schedule(plans, 4)).scalarized_return for plans in (look, blind)]
    return returns[0], returns[1], max(p, 1 - cost / p)


def exact(value: float) -> str:
    """Four decimals, which hold these figures exactly; with fewer, halves would be rounded up here and down there."""
    return f"{round(value, 10):7.4f}"


def best_known_state_actions(model: am.Model) -> np.ndarray:
    """Value iteration as if looking were free: the action to take in each state, shape (S,); -1 where the episode is over."""
    table, values = model.transitions.stacked(), np.zeros(model.n_states)
    for _ in range(500):
        q = model.rewards + model.discount * np.asarray(table @ values).reshape(model.rewards.shape)
        values = q.max(axis=1)
    return np.where(model.terminal, -1, q.argmax(axis=1))


def lake(cost: float) -> dict[str, float]:
    """4x4 semi-slippery lake: the same control with a look at every step, or only when in doubt (undiscounted return)."""
    model = am.problems.frozen_lake(4, measuring_cost=cost)
    actions = best_known_state_actions(model)

    def when_in_doubt(belief: am.Belief) -> am.Decision:
        action = int(actions[belief.states[np.argmax(belief.probabilities)]])
        wanted = {int(actions[state]) for state in belief.predict(model, action).states}
        return am.Decision(action, len(wanted) > 1)

    always = am.evaluate(model, am.Schedule.always_measure(actions), horizon=200)
    doubt = am.evaluate(model, when_in_doubt, horizon=200)
    return {
        "always": always.scalarized_return, "always looks": always.measurements,
        "in doubt": doubt.scalarized_return, "in doubt looks": doubt.measurements,
    }  # fmt: skip


def main() -> None:
    """Print the tables and draw the picture."""
    gambles = np.array([gamble(cost) for cost in COSTS])
    lakes = [lake(float(cost)) for cost in COSTS]
    print("Measuring value, p = 0.8, discount 1      4x4 semi-slippery lake (return, looks)")
    print(" cost     look    blind  optimum           look always          look when in doubt")
    for cost, (look, blind, best), row in zip(COSTS, gambles, lakes, strict=True):
        print(
            f" {cost:4.2f}  {exact(look)}  {exact(blind)}  {exact(best)}"
            f"        {exact(row['always'])} ({row['always looks']:4.2f})"
            f"       {exact(row['in doubt'])} ({row['in doubt looks']:4.2f})"
        )
    worth = COSTS[gambles[:, 0] > gambles[:, 1] + 1e-12]
    print(f"\nIn the gamble a look pays up to a cost of {worth.max():.2f}; the closed form says below {0.8 * 0.2:.2f}.")

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    left.plot(COSTS, gambles[:, 0], "k-", label="look")
    left.plot(COSTS, gambles[:, 1], "k--", label="blind")
    left.set(title="Measuring value (p = 0.8)", xlabel="price of a look", ylabel="return")
    right.plot(COSTS, [row["always"] for row in lakes], "k:", label="look at every step")
    right.plot(COSTS, [row["in doubt"] for row in lakes], "k-", label="look when in doubt")
    right.set(title="4x4 semi-slippery lake", xlabel="price of a look", ylabel="return")
    for axes in (left, right):
        axes.set_xticks(np.arange(0.0, 0.2001, 0.05))  # few enough not to overlap
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
    OUT.mkdir(exist_ok=True)
    figure.savefig(OUT / "price_of_a_look.svg")
    figure.savefig(OUT / "price_of_a_look.png", dpi=120)
    print(f"Picture: {OUT / 'price_of_a_look.svg'}")


if __name__ == "__main__":
    main()
