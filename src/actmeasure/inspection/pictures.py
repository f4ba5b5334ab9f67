"""Pictures of an inspection plan as PNG and SVG files: beliefs, risk and cost over time, cost by cause, and the comparison."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from actmeasure.drawing import INK, matplotlib_for, new_figure
from actmeasure.errors import PlanError, quoted, shown
from actmeasure.file_access import explain, replacing
from actmeasure.inspection.graph_page import state_groups
from actmeasure.inspection.imperfect_rules import course
from actmeasure.inspection.plan_text import ending_words
from actmeasure.inspection.schedules import belief_after, plan_of
from actmeasure.model.transitions import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from actmeasure.inspection.advice import Advice

__all__ = ["check_figures_path", "write_figures"]

FEATURE = "pictures of an inspection plan"
SUFFIXES = (".png", ".svg")
#: Width and height of a picture, in inches, and points per inch of PNG files.
SIZE, RESOLUTION = (7.0, 3.6), 150
#: Largest number of bands of states, and of policies and causes.
MOST_BANDS, MOST_BARS = 7, 14
#: Bars are drawn as high as if there were at least this number of them.
FEW_BARS = 4
GREYS = ("0.95", "0.82", "0.68", "0.54", "0.4", "0.27", "0.12")
HATCHES = ("", "//", "\\\\", "..", "--", "xx", "")
#: Names are no formulas, and files are the same every time.
SETTINGS = {
    "text.parse_math": False,
    "svg.hashsalt": "actmeasure",
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def check_figures_path(folder: str | os.PathLike[str]) -> Path:
    """Return the folder for pictures, made if it is missing; a `PlanError` says why it cannot be used."""
    matplotlib_for(FEATURE)
    if not isinstance(folder, (str, os.PathLike)):
        raise PlanError(f"the folder for pictures is {quoted(folder)}, expected a path such as 'figures'")
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PlanError(
            f"the folder for pictures {str(place)!r} cannot be made: {error.strerror or error}; choose another one"
        ) from error
    return place


def write_figures(advice: Advice, folder: str | os.PathLike[str]) -> list[Path]:
    """Write the pictures of an advice into a folder, each as PNG and SVG, and return their paths (needs the extra `plots`).

    `comparison` has the plan beside other policies, and `beliefs` what is believed over time: along the likeliest outcomes, or
    until the first inspection where inspections are exact. Plans that are policy graphs have `risk` and `cost` in each period and
    `causes` of costs as well.
    """
    place = check_figures_path(folder)
    makers: dict[str, Callable[[Advice, Axes], bool]] = {"comparison": _comparison, "beliefs": _beliefs}
    if advice.graph is not None:
        makers |= {"risk": _risk, "cost": _cost, "causes": _causes}
    written = []
    with matplotlib_for(FEATURE).rc_context(SETTINGS):
        for name, draw in makers.items():
            figure = new_figure(FEATURE, *SIZE)
            if draw(advice, figure.add_subplot()):
                written += [_saved(figure, place / f"{name}{suffix}") for suffix in SUFFIXES]
    return written


def _saved(figure: Figure, path: Path) -> Path:
    try:
        with replacing(path) as file:
            kind = path.suffix.lstrip(".")
            # Without the date, which would make every file different.
            figure.savefig(file, format=kind, dpi=RESOLUTION, metadata={"Date": None} if kind == "svg" else None)
    except OSError as error:
        raise PlanError(str(explain(error, path, "write"))) from error
    return path


def _bars(axes: Axes, names: list[str], values: list[float], words: list[str]) -> None:
    """Draw horizontal bars, the first on top, with a text at the end of each."""
    places = np.arange(len(names))[::-1]
    colours = ["0.2", *["0.7"] * (len(names) - 1)]
    axes.barh(places, values, color=colours, edgecolor=INK, linewidth=0.6)
    axes.set_yticks(places, [_short(name) for name in names])
    for where, value, text in zip(places, values, words, strict=True):
        axes.annotate(f" {text}", (max(value, 0.0), where), va="center", fontsize=8)
    axes.margins(x=0.18)
    axes.set_ylim(min(len(names) - FEW_BARS, 0) - 0.6, len(names) - 0.4)


def _short(name: str, most: int = 44) -> str:
    return name if len(name) <= most else name[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _comparison(advice: Advice, axes: Axes) -> bool:
    units = advice.units
    found = [policy for policy in advice.policies if np.isfinite(policy.value)][:MOST_BARS]
    values = [units.shown(policy.value) for policy in found]
    _bars(axes, [policy.name for policy in found], values, [units.money(policy.value) for policy in found])
    axes.set_xlabel(f"{units.figure} in all, {units.currency}" if units.currency else f"{units.figure} in all")
    return bool(found)


def _causes(advice: Advice, axes: Axes) -> bool:
    assert advice.figures is not None
    total = sum(abs(cost) for cost in advice.figures.costs.values())
    order = sorted(advice.figures.costs.items(), key=lambda item: -abs(item[1]))
    found = [(cause, cost) for cause, cost in order if abs(cost) > 1e-9 * total][:MOST_BARS]
    if found:
        _bars(axes, [shown(name) for name, _ in found], [cost for _, cost in found],
              [advice.units.amount(cost) for _, cost in found])  # fmt: skip
        axes.set_xlabel(f"discounted, {advice.units.currency}" if advice.units.currency else "discounted")
    return bool(found)


def _curves(advice: Advice, axes: Axes, values_of: Callable[[Any], FloatArray | None]) -> bool:
    """Draw a line for every policy: the plan in black, others in grey with dashes."""
    drawn = 0
    styles = ("-", "--", ":", "-.", (0, (1, 3)), (0, (5, 1)), (0, (3, 1, 1, 1)))
    for number, policy in enumerate(advice.policies[: len(styles)]):
        values = None if policy.graph is None else values_of(policy)
        if values is None or not np.isfinite(values).all():
            continue
        colour, width = ("0", 2.0) if number == 0 else ("0.45", 1.2)
        axes.plot(np.arange(1, len(values) + 1), values, color=colour, linewidth=width, linestyle=styles[number],
                  label=_short(policy.name))  # fmt: skip
        drawn += 1
    axes.set_xlabel(advice.units.period)
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    if drawn > 1:
        axes.figure.legend(fontsize=7, frameon=False, loc="outside lower center", ncols=2)
    return drawn > 0


def _risk(advice: Advice, axes: Axes) -> bool:
    assert advice.problem is not None
    axes.set_ylabel(f"failures per {advice.units.period}")
    return bool(advice.problem.failed.any()) and _curves(
        advice, axes, lambda policy: None if policy.figures is None else policy.figures.risk
    )


def _cost(advice: Advice, axes: Axes) -> bool:
    assert advice.figures is not None
    periods = len(advice.figures.risk)
    units = advice.units
    axes.set_ylabel(f"{units.figure} per {units.period}{f', {units.currency}' if units.currency else ''}")
    sign = -1.0 if units.is_cost else 1.0
    is_drawn = _curves(advice, axes, lambda policy: sign * course(advice.model, policy.graph, periods).rewards)
    if ending := ending_words(advice):
        axes.set_xlabel(f"{units.period}; {ending}")
    return is_drawn


def _beliefs(advice: Advice, axes: Axes) -> bool:
    """Draw the probabilities of the states over time as bands, with a line at every inspection."""
    times, rows, marks, names = _belief_rows(advice) if advice.graph is None else _history_rows(advice)
    if len(rows) < 2:
        return False
    table = np.array(rows)
    weights = table.max(axis=0)
    weights[_failed_bands(advice)] += weights.max() * (weights[_failed_bands(advice)] > 0)  # never among other states
    likely = np.argsort(-weights, kind="stable")[: MOST_BANDS if table.shape[1] <= MOST_BANDS else MOST_BANDS - 1]
    kept = np.sort(likely)
    bands = [table[:, one] for one in kept]
    labels = [_short(names[one], 24) for one in kept.tolist()]
    rest = table.sum(axis=1) - table[:, kept].sum(axis=1)
    if rest.max() > 1e-9:
        bands, labels = [*bands, rest], [*labels, "other states"]
    below = np.zeros(len(times))
    for number, (band, label) in enumerate(zip(bands, labels, strict=True)):
        axes.fill_between(times, below, below + band, facecolor=GREYS[number % len(GREYS)], edgecolor="0.3", linewidth=0.3,
                          hatch=HATCHES[number % len(HATCHES)], label=label)  # fmt: skip
        below = below + band
    for time, words in marks:
        axes.axvline(time, color=INK, linewidth=1.2)
        axes.annotate(_short(words, 16), (time, 1.02), rotation=60, fontsize=7, annotation_clip=False)
    axes.set_xlim(times[0], times[-1])
    axes.set_ylim(0, 1)
    axes.set_xlabel(f"{advice.units.period}s from now")
    axes.set_ylabel("probability")
    axes.figure.legend(fontsize=7, frameon=False, loc="outside lower center", ncols=4)
    return True


def _failed_bands(advice: Advice) -> list[int]:
    """Return the bands of failed states."""
    assert advice.problem is not None
    failed = np.flatnonzero(advice.problem.failed).tolist()
    if advice.graph is None:
        return failed
    _, groups = state_groups(advice.problem.base)
    return sorted({groups[state] for state in failed})


def _history_rows(advice: Advice) -> tuple[list[float], list[FloatArray], list[tuple[float, str]], list[str]]:
    """Return times, beliefs, inspections and names of bands along the likeliest outcomes of a policy graph."""
    assert advice.problem is not None
    base = advice.problem.base
    names, groups = state_groups(base)

    def grouped(belief: FloatArray) -> FloatArray:
        return np.bincount(groups, belief, len(names)).astype(np.float64)

    times, rows, marks = [0.0], [grouped(base.initial_distribution)], []
    for period, one in enumerate(advice.history, start=1):
        times.append(float(period))
        rows.append(grouped(one.predicted))
        if one.outcome is not None:
            times.append(float(period))
            rows.append(grouped(one.belief))
            marks.append((float(period), base.outcome_name(one.measurement, one.outcome)))
    return times, rows, marks, names


def _belief_rows(advice: Advice) -> tuple[list[float], list[FloatArray], list[tuple[float, str]], list[str]]:
    """Return times, beliefs, the first inspection and names of states for a schedule, from the start."""
    model = advice.model
    first = None if not model.start_is_known else int(model.initial_states[np.argmax(model.initial_probabilities)])
    plan = plan_of(advice.schedule, first)
    assert plan is not None  # there is a plan for every start
    belief = belief_after(model, first)
    rows = [belief.dense(model.n_states)]
    for action in plan.actions:
        belief = belief.predict(model, action)
        if belief.is_over:
            break
        rows.append(belief.dense(model.n_states))
    marks = [(float(len(plan)), "inspect")] if plan.then == "measure" else []
    return list(map(float, range(len(rows)))), rows, marks, [model.state_name(s) for s in range(model.n_states)]
