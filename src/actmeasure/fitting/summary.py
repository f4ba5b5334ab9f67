"""A fit in words and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from actmeasure.errors import shown
from actmeasure.fitting.goodness_text import TESTS

if TYPE_CHECKING:
    from actmeasure.fitting.result import Fit

__all__ = ["summary"]

#: Smaller probabilities are not listed one by one.
SHOWN = 0.0005


def summary(fit: Fit) -> str:
    """The fit in words and tables."""
    period = shown(fit.period or "period")
    lines = [
        ", ".join(
            f"{count:,} {noun}{'s' * (count != 1)}"
            for count, noun in ((fit.n_units, "unit"), (fit.n_records, "record"), (fit.n_inspections, "inspection"))
        ),
        f"{len(fit.state_names)} states: {' < '.join(map(shown, fit.state_names))}",
    ]
    if fit.noticed:
        lines.append(f"noticed without an inspection: {', '.join(map(shown, fit.noticed))}")
    for action in range(len(fit.action_names)):
        lines += ["", *_action_table(fit, action, period)]
    lines += ["", *_goodness(fit)]
    for title, sentences in (
        ("Cannot be told from such records", fit.identifiability), ("Mind", fit.warnings), ("Notes", fit.notes)
    ):  # fmt: skip
        if sentences:
            lines += ["", f"{title}:", *(f"- {shown(sentence)}" for sentence in sentences)]
    return "\n".join(lines)


def _action_table(fit: Fit, action: int, period: str) -> Iterator[str]:
    """The chances of an action, a line for each transition."""
    inspected, exposure = int(fit.inspected[action].sum()), float(fit.exposure[action].sum())
    yield (
        f"{shown(fit.action_names[action])} (transitions: {shown(fit.structure[action])}; done {inspected:,} times in a "
        f"state just seen, about {exposure:,.0f} {period}s in all)"
    )
    interval = [] if fit.low is None else [f"{100 * fit.level:g} % interval"]
    rows: list[Sequence[str]] = [("from", f"{period}s", "to", "chance", *interval)]
    for state in range(len(fit.state_names)):
        rows += _row(fit, action, state)
    widths = [max(len(row[column]) for row in rows if column < len(row)) for column in range(len(rows[0]))]
    for row in rows:
        cells = [
            cell.rjust(width) if column == 1 else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=False))
        ]
        yield f"  {'  '.join(cells).rstrip()}"


def _row(fit: Fit, action: int, state: int) -> Iterator[Sequence[str]]:
    """The chances from one state."""
    begin = (shown(fit.state_names[state]), f"{fit.exposure[action, state]:,.1f}")
    chances = fit.probabilities[action, state]
    if not chances.sum() >= 0:
        yield (*begin, "?", "not known")
        return
    rare = 0.0
    for to, chance in enumerate(chances):
        ends = (
            [] if fit.low is None or fit.high is None else [(fit.low[action, state, to], fit.high[action, state, to])]
        )
        if chance < SHOWN:
            rare = max([rare, *(float(high) for _, high in ends)])
            continue
        between = [f"{low:.3f} to {high:.3f}" for low, high in ends]
        if fit.assumed[action, state]:
            between = ["assumed"]
        yield (*begin, shown(fit.state_names[to]), f"{chance:.3f}", *between)
        begin = ("", "")
    if rare >= SHOWN:
        yield ("", "", "others", "0.000", f"each at most {rare:.3f}")


def _goodness(fit: Fit) -> Iterator[str]:
    if fit.goodness is None:
        yield "Goodness of fit: not tested."
        return
    yield f"Goodness of fit, against {fit.goodness.replicates} simulated sets of records: {fit.goodness.verdict}."
    for test in fit.goodness.tests:
        yield f"  {TESTS[test.name]}: p = {test.p_value:.3f}"
    yield from (f"- {shown(finding)}" for finding in fit.goodness.findings)
