"""A picture of every problem of the field, for the gallery in the documentation: `python examples/gallery.py docs/pictures`.

Without a folder the pictures go to results/gallery.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

import actmeasure as am
from actmeasure.planning import Budget
from actmeasure.planning.tensor_grid import tensor_grid
from actmeasure.problems import fatigue
from actmeasure.problems.crack_life import detection
from actmeasure.problems.drone import Corridor
from actmeasure.problems.rock_sample import LAYOUTS
from actmeasure.problems.sepsis import state_number

FloatArray = npt.NDArray[np.float64]
LOOK = "tab:red"
#: Colours of states, from good to bad.
SHADES = plt.get_cmap("viridis_r")


def along(model: am.Model, state: int, actions: Sequence[int]) -> FloatArray:
    """Return the belief at the beginning and after each blind action, shape (steps + 1, S)."""
    belief = am.Belief.at(state)
    beliefs = [belief.dense(model.n_states)]
    for action in actions:
        belief = belief.predict(model, action)
        beliefs.append(belief.dense(model.n_states))
    return np.array(beliefs)


def stacked(axes: Axes, beliefs: FloatArray, names: Sequence[str], step: float = 1.0) -> None:
    """Draw beliefs over time as stacked areas, and a line where the plan looks."""
    at = np.arange(len(beliefs)) * step
    axes.stackplot(at, beliefs.T, labels=names, colors=SHADES(np.linspace(0.05, 0.95, len(names))))
    axes.axvline(at[-1], color=LOOK, linewidth=3)
    axes.annotate("look", (at[-1], 0.5), (-6, 0), textcoords="offset points", ha="right", color=LOOK, weight="bold")
    axes.set(xlim=(0, at[-1]), ylim=(0, 1), ylabel="probability")
    axes.legend(loc="upper left", fontsize=7, ncols=1 + (len(names) > 6), framealpha=0.8)


def draw_chain(axes: Axes) -> None:
    """Draw the states in a row, with the transitions forward and back."""
    n = 6
    for k in range(n):
        last = k == n - 1
        axes.annotate(str(k) if not last else "n-1", (k, 0), ha="center", va="center",
                      bbox={"boxstyle": "circle,pad=0.5", "fc": "white", "ec": "black"})  # fmt: skip
        axes.annotate("", (k + 0.75, 0), (k + 0.25, 0), arrowprops={"arrowstyle": "->", "lw": 1.5})
        back = {"arrowstyle": "->", "color": "gray", "connectionstyle": f"arc3,rad={-0.35 - 0.03 * k}"}
        if k > 0:
            axes.annotate("", (0, -0.2), (k, -0.2), arrowprops=back)
    axes.annotate("+1", (n - 0.1, 0), ha="center", va="center", color="tab:green", weight="bold", size=13)
    axes.annotate("back", (2.4, -1.3), ha="center", color="gray")
    axes.set(xlim=(-0.6, n + 0.3), ylim=(-1.6, 0.7), title="forward: next state; back: to 0; every step -0.01")
    axes.axis("off")


def draw_sepsis(axes: Axes) -> None:
    """Draw the first action of the best schedule, by heart rate and blood pressure, other vitals normal."""
    model = am.problems.sepsis()
    schedule = am.solve(model, tolerance=1e-3).schedule
    names = ("low", "normal", "high")
    for heart in range(3):
        for pressure in range(3):
            state = state_number(0, (heart, pressure, 1, 2))
            plan = schedule.get(state)
            text = "healthy" if plan is None else model.action_name(plan.actions[0])
            axes.add_patch(
                Rectangle(
                    (heart - 0.5, pressure - 0.5), 1, 1, fc=SHADES(0.05 if text == "healthy" else 0.2), ec="white"
                )
            )
            axes.annotate(text.replace("+", "\n+ "), (heart, pressure), ha="center", va="center", size=8)
    axes.set(xlim=(-0.5, 2.5), ylim=(-0.5, 2.5), xticks=range(3), yticks=range(3), xticklabels=names, yticklabels=names,
             xlabel="heart rate", ylabel="blood pressure", title="first treatment")  # fmt: skip


def draw_snake_maze(axes: Axes) -> None:
    """Draw the values of the cells, the path, and the cells where plans begin after a look."""
    model = am.problems.snake_maze()
    solution = am.solve(model)
    values = am.q_mdp(model).max(axis=1).reshape(10, 10)
    values[9, 0] = 1.0
    axes.imshow(values, cmap="viridis")
    way = [(x if y % 2 == 0 else 9 - x, y) for y in range(10) for x in range(10)]
    axes.plot(*zip(*way, strict=True), color="white", linewidth=1)
    seen = np.array([divmod(state, 10)[::-1] for state in solution.schedule])
    axes.plot(*seen.T, "o", color=LOOK, markersize=4)
    axes.set(title="dots: cells in which the best schedule plans anew", xlabel="x", ylabel="y")


def draw_drone(axes: Axes) -> None:
    """Draw the corridor, and the belief along a flight without looks."""
    model, corridor = am.problems.drone(), Corridor(31, 6, 5)
    values = am.q_mdp(model)
    belief = am.Belief.at(int(model.initial_states[0]))
    cloud = np.zeros((31, 31))
    for _ in range(6):
        belief = belief.predict(model, int(belief.expected(values).argmax()))
        np.add.at(cloud, (corridor.y[belief.states], corridor.x[belief.states]), belief.probabilities)
    axes.imshow(np.where(cloud > 1e-4, np.log(cloud + 1e-12), np.nan), origin="lower", cmap="Blues", vmin=-9)
    axes.add_patch(Rectangle((5.5, 5.5), 25, 25, fc="dimgray"))
    axes.add_patch(Rectangle((0.5, 27.5), 4, 3, fc="tab:green"))
    axes.plot(29, 2, "o", color=LOOK)
    axes.annotate("goal", (2.5, 29), ha="center", va="center", size=8)
    axes.annotate("wall", (18, 18), ha="center", color="white")
    axes.set(title="where it may be after 1 to 6 blind steps", xlabel="x", ylabel="y")


def draw_maintenance(axes: Axes) -> None:
    """Draw the belief between two looks."""
    model = am.problems.maintenance()
    state = int(model.initial_states[0])
    plan = am.solve(model).schedule[state]
    beliefs = along(model, state, plan.actions)
    shown = np.flatnonzero(beliefs.max(axis=0) > 0)
    stacked(axes, beliefs[:, shown], [model.state_name(int(k)) for k in shown])
    axes.set(xlabel="steps since W0 was seen", title=plan.describe(model))


def draw_sewer(axes: Axes) -> None:
    """Draw the belief about a new main until its first inspection."""
    model = am.problems.sewer()
    plan = am.solve(model, tolerance=0.1).schedule[0]
    stacked(axes, along(model, 0, plan.actions), [model.state_name(k) for k in range(5)], step=0.5)
    axes.set(xlabel="years since severity 1 was seen", title=plan.describe(model))


def draw_fatigue(axes: Axes) -> None:
    """Draw quantiles of the crack's size class, and failures, without repairs."""
    begin, ageing = fatigue.growth(30, 100_000, np.random.default_rng(0))
    shares = [begin]
    for changes in ageing:
        shares.append(shares[-1] @ changes)
    edges = np.append(fatigue.crack_bins(), np.inf)
    for quantile, style in ((0.95, "--"), (0.75, "-."), (0.5, "-")):
        sizes = [edges[np.searchsorted(np.cumsum(share), quantile)] for share in shares]
        axes.plot(np.where(np.isfinite(sizes), sizes, np.nan), f"k{style}", label=f"{quantile:.0%} of units are below")
    axes.axhline(fatigue.CRITICAL, color=LOOK)
    axes.set(yscale="log", xlabel="years", ylabel="crack, mm", title="without repairs", xlim=(0, 30))
    failures = axes.twinx()
    failures.fill_between(range(31), [100 * share[-1] for share in shares], color=LOOK, alpha=0.2)
    failures.set(ylabel="failed, %", ylim=(0, 20))
    axes.legend(loc="lower right", fontsize=7)


def draw_inventory(axes: Axes) -> None:
    """Draw the belief about the stock between two counts."""
    model = am.problems.inventory()
    plan = am.solve(model).schedule[0]
    stacked(axes, along(model, 0, plan.actions), [model.state_name(k) for k in range(4)])
    axes.set(xlabel="steps since an empty shelf was seen", title=plan.describe(model))
    axes.title.set_fontsize(9)


def draw_inspection(axes: Axes) -> None:
    """Draw the belief about a unit after six periods unseen, and after each outcome of two measurements in the seventh."""
    model = am.problems.inspection()
    before = am.Belief.at(0)
    for _ in range(6):
        before = before.predict(model, 0)
    bars = {"no measurement": before.predict(model, 0).dense(5)}
    for measurement, name in ((1, "visual"), (2, "ultrasonic")):
        for outcome, chance in enumerate(before.outcomes(model, 0, measurement)):
            label = f"{name}: {model.outcome_name(measurement, outcome)} ({chance:.0%})"
            bars[label] = before.update(model, 0, measurement, outcome).dense(5)
    left = np.zeros(len(bars))
    for state, chances in enumerate(np.array(list(bars.values())).T):
        axes.barh(list(bars), chances, left=left, color=SHADES(0.05 + 0.225 * state), label=model.state_name(state))
        left += chances
    axes.invert_yaxis()
    axes.tick_params(axis="y", labelsize=7)
    axes.set(xlim=(0, 1), xlabel="probability", title="7 periods after it was new")
    axes.title.set_fontsize(9)
    axes.legend(
        fontsize=6, ncols=5, loc="upper center", bbox_to_anchor=(0.35, -0.18), columnspacing=0.8, handlelength=1
    )


def draw_k_out_of_n(axes: Axes) -> None:
    """Draw the upper bound on the value at the start, as a lower bound on the cost, after each sweep on a tensor grid."""
    for k, colour in ((1, "tab:blue"), (2, "tab:green"), (3, LOOK)):
        grid = tensor_grid(am.problems.k_out_of_n(3, k), Budget(), levels=(10, 30))
        axes.plot([-bound for _, bound in grid.record], color=colour, label=f"{k} of 3")
    axes.set(xlabel="sweep", ylabel="no policy costs less", title="bounds on a grid of component beliefs")
    axes.title.set_fontsize(9)
    axes.legend(fontsize=7)


def draw_tiger(axes: Axes) -> None:
    """Draw the belief about the tiger by how much more often one side was heard, and what is best there."""
    leads = np.arange(-3, 4)
    likely = 1 / (1 + (0.15 / 0.85) ** leads)
    axes.bar(leads, likely, color=[SHADES(0.1) if abs(lead) < 2 else LOOK for lead in leads])
    for lead, chance in zip(leads.tolist(), likely.tolist(), strict=True):
        axes.annotate(f"{chance:.3f}", (lead, chance), (0, 2), textcoords="offset points", ha="center", size=8)
    axes.set(
        xlabel="times left was heard more often than right",
        ylabel="probability: tiger left",
        ylim=(0, 1.1),
        title="listen (green); open the other door (red)",
    )


def draw_pile_selection(axes: Axes) -> None:
    """Draw what each test is worth, by the probability that a long pile is needed."""
    chances = np.linspace(0, 1, 101)
    Z = np.array([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7]])
    joint = np.stack([1 - chances, chances], axis=1)[:, :, None] * Z
    values = {
        "no test": np.maximum(-400 * chances, -100 * (1 - chances)),
        "sonic": np.maximum(-400 * joint[:, 1], -100 * joint[:, 0]).sum(axis=1) - 20,
        "drilling": np.full(101, -50.0),
    }
    for (name, value), colour in zip(values.items(), ("gray", "tab:blue", LOOK), strict=True):
        axes.plot(chances, value, color=colour, label=name)
    axes.set(xlabel="probability that a long pile is needed", ylabel="value", xlim=(0, 1), ylim=(-85, 2))
    axes.set_title("tests, with the better pile after them", fontsize=10)
    axes.legend(loc="lower right", fontsize=8)


def draw_simple_fatigue(axes: Axes) -> None:
    """Draw the probability of damage over time, without inspections and after inspections that found nothing."""
    model = am.problems.simple_fatigue(periods=None)
    unseen = along(model, 0, [0] * 12)
    belief, clear = am.Belief.at(0), [0.0]
    for _ in range(12):
        belief = belief.update(model, 0, "inspection", "no defect")
        clear.append(float(belief.dense(3)[1:].sum()))
    axes.plot(unseen[:, 1:].sum(axis=1), "k-", label="not inspected")
    axes.plot(clear, "o-", color=LOOK, markersize=3, label="inspected each period, no defect")
    axes.set(xlabel="periods since it was intact", ylabel="probability: damaged or failed", xlim=(0, 12), ylim=(0, 0.5))
    axes.legend(loc="upper left", fontsize=8)


def draw_rock_sample(axes: Axes) -> None:
    """Draw the map of RockSample(7, 8), and how reliable a check of one of the rocks is."""
    x, y = np.meshgrid(np.arange(7), np.arange(7))
    rocks = LAYOUTS[7, 8]
    right = (1 + 2 ** (-np.hypot(x - rocks[3][0], y - rocks[3][1]) / 20)) / 2
    picture = axes.imshow(right, origin="lower", cmap="viridis", vmin=0.8, vmax=1)
    axes.figure.colorbar(picture, ax=axes, label="check of rock 4 is right", shrink=0.8)
    for rock, cell in enumerate(rocks):
        axes.annotate(str(rock + 1), cell, ha="center", va="center", bbox={"boxstyle": "circle", "fc": "white"})
    axes.plot(0, 3, "s", color=LOOK, markersize=10)
    axes.axvline(6.5, color="tab:green", linewidth=4)
    axes.set(title="rover (red), rocks, and the exit", xlabel="x", ylabel="y", xlim=(-0.5, 6.6))
    axes.title.set_fontsize(9)


def draw_component_line(axes: Axes) -> None:
    """Draw the probability that each of three components has failed, without repairs."""
    model = am.problems.component_line(3)
    beliefs = along(model, int(model.initial_states[0]), [0] * 25)
    failed = np.array([[name[2 * k] == "3" for k in range(3)] for name in model.state_names or ()])
    shares = beliefs @ failed
    axes.plot(shares[:, 1], "-", color=LOOK, label="the middle one")
    axes.plot(shares[:, 0], "k--", label="each of the outer ones")
    axes.plot(along(am.problems.component_line(1), 1, [0] * 25)[:, 3], ":", color="gray", label="one alone")
    axes.set(
        xlabel="steps", ylabel="probability: failed", xlim=(0, 25), ylim=(0, 1), title="three in a line, no repairs"
    )
    axes.legend(loc="lower right", fontsize=8)


def draw_crack_life(axes: Axes) -> None:
    """Draw the size classes after 20 years without repairs, and the probability of detection."""
    share, ageing = fatigue.growth(20, 100_000, np.random.default_rng(0))
    for changes in ageing:
        share = share @ changes
    edges = np.concatenate([[5e-5], fatigue.crack_bins(), [28.0]])
    axes.stairs(100 * share, edges, fill=True, color="lightgray")
    axes.set(xscale="log", xlim=(0.01, 28), xlabel="crack, mm", ylabel="welds after 20 years, %")
    found = axes.twinx()
    found.stairs(100 * detection(8.0), edges, color=LOOK, baseline=None)
    found.set(ylabel="detected by an inspection, %", ylim=(0, 100))
    found.yaxis.label.set_color(LOOK)


PICTURES: dict[str, Callable[[Axes], None]] = {
    "chain": draw_chain,
    "sepsis": draw_sepsis,
    "snake-maze": draw_snake_maze,
    "drone": draw_drone,
    "maintenance": draw_maintenance,
    "sewer": draw_sewer,
    "fatigue-crack": draw_fatigue,
    "inventory": draw_inventory,
    "inspection": draw_inspection,
    "k-out-of-n": draw_k_out_of_n,
    "tiger": draw_tiger,
    "pile-selection": draw_pile_selection,
    "simple-fatigue": draw_simple_fatigue,
    "rock-sample": draw_rock_sample,
    "component-line": draw_component_line,
    "crack-life": draw_crack_life,
}


def main() -> None:
    """Draw all pictures."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "results/gallery")
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        figure, axes = plt.subplots(figsize=(4.2, 3.2), layout="constrained")
        draw(axes)
        path = folder / f"problem-{name}.png"
        figure.savefig(path, dpi=90)
        plt.close(figure)
        print(f"{path}  {path.stat().st_size / 1024:.0f} KB", flush=True)


if __name__ == "__main__":
    main()
