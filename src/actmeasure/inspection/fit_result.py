"""What was fitted to records of inspections."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from actmeasure.errors import FitError, shown, unknown_name
from actmeasure.inspection.economics import Economics
from actmeasure.inspection.goodness import TESTS, Goodness
from actmeasure.inspection.money import DAYS
from actmeasure.model import Model

__all__ = ["Fit", "summary"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Fit:
    """Transition probabilities that were fitted to records, with intervals and with what the records cannot tell.

    Made by `actmeasure.fit`; all arrays are read-only. A, S and B are the numbers of actions, states and bootstrap replicates.

    Attributes
    ----------
    state_names, action_names : tuple of str
    probabilities : float64 array, shape (A, S, S)
        Chance of going from a state to another in a period with the action. A row of which the records tell nothing, and nothing
        was assumed, is NaN.
    low, high : float64 arrays, shape (A, S, S), or None
        Ends of the interval for every probability; None without a bootstrap.
    level : float
        How often such an interval should cover, such as 0.9.
    bootstrap : float64 array, shape (B, A, S, S), or None
        The probabilities fitted to resampled units.
    initial : float64 array, shape (S,)
        How often units were in each state when they were first inspected.
    log_likelihood : float
    goodness : Goodness or None
        Whether a Markov chain fits the records at all.
    identifiability : tuple of str
        Sentences about what no amount of such records could tell; empty where all is well.
    warnings : tuple of str
        Sentences about little data and other weaknesses.
    notes : tuple of str
        What was assumed, filled in, merged or left out.
    inspected : int64 array, shape (A, S)
        How often a unit was inspected in the state and the action was done next.
    exposure : float64 array, shape (A, S)
        Expected number of periods that began in the state with the action, inspected or not.
    assumed : bool array, shape (A, S)
        Rows that the user gave because the records do not tell.
    structure : tuple of str
        For every action, which transitions were allowed.
    noticed : tuple of str
        States that are noticed without an inspection as soon as they are entered.
    dropped : tuple of str
        Actions of the records that were left out of the fit; prices may still name them.
    period : str or None
        What the times of the records count, such as "year", if that was said.
    n_units, n_records, n_inspections : int
    """

    state_names: tuple[str, ...]
    action_names: tuple[str, ...]
    probabilities: FloatArray
    low: FloatArray | None
    high: FloatArray | None
    level: float
    bootstrap: FloatArray | None
    initial: FloatArray
    log_likelihood: float
    goodness: Goodness | None
    identifiability: tuple[str, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    inspected: npt.NDArray[np.int64]
    exposure: FloatArray
    assumed: npt.NDArray[np.bool_]
    structure: tuple[str, ...]
    noticed: tuple[str, ...]
    dropped: tuple[str, ...]
    period: str | None
    n_units: int
    n_records: int
    n_inspections: int

    def __post_init__(self) -> None:
        for name in ("probabilities", "low", "high", "bootstrap", "initial", "inspected", "exposure", "assumed"):
            array = getattr(self, name)
            if array is not None:
                array.setflags(write=False)

    @cached_property
    def unknown(self) -> tuple[tuple[str, str], ...]:
        """Pairs (action, state) of which the records tell nothing and nothing was assumed."""
        rows = np.argwhere(np.isnan(self.probabilities).any(axis=2))
        return tuple((self.action_names[action], self.state_names[state]) for action, state in rows)

    def model(self, economics: Economics | str | os.PathLike[str]) -> Model:
        """The model with these probabilities and prices, the latter from an `Economics` or its file.

        Units begin as they were first inspected. Raises `FitError` if prices do not fit, or if the records tell nothing about an
        action in some state: then drop the action, or say what to assume, when fitting.
        """
        return self._model(self._checked(economics), self.probabilities)

    def models(self, economics: Economics | str | os.PathLike[str]) -> Iterator[Model]:
        """The models of all bootstrap replicates, as `model` builds them."""
        prices = self._checked(economics)
        if self.bootstrap is None:
            raise FitError("the fit has no bootstrap replicates; fit with bootstrap=200 (--bootstrap 200)")
        return (self._model(prices, probabilities) for probabilities in self.bootstrap)

    def _checked(self, economics: Economics | str | os.PathLike[str]) -> Economics:
        prices = economics if isinstance(economics, Economics) else Economics.load(economics)
        if self.period is not None and self.period != prices.period:
            remedy = f'period = "{self.period}"' if self.period in DAYS else f'period = "{self.period}" and its prices'
            raise FitError(
                f"{prices.place(('period',))}the prices are for a period of a {prices.period}, but the records were fitted "
                f"by {self.period}; write {remedy} there, or fit with period={prices.period!r} (--period {prices.period})"
            )
        prices.check_names(self.state_names, self.action_names, self.dropped)
        self._check_known(set(prices.terminal))
        return prices

    def _check_known(self, terminal: set[str]) -> None:
        unknown = [(action, state) for action, state in self.unknown if state not in terminal]
        if not unknown:
            return
        action = unknown[0][0]
        states = [repr(there) for name, there in unknown if name == action]
        raise FitError(
            f"the records do not tell what {action!r} does in state {', '.join(states)}: it was never seen tried there; fit "
            f"again and say what to assume with assume={{{action!r}: {self.state_names[0]!r}}} (--assume {action}:"
            f"{self.state_names[0]}, or --assume {action}:stay), or leave the action out with drop=[{action!r}] (--drop {action})"
        )

    def _model(self, prices: Economics, probabilities: FloatArray) -> Model:
        terminal = np.isin(self.state_names, prices.terminal)
        initial = np.where(terminal, 0.0, self.initial)
        if not initial.sum():
            raise FitError("every unit was first inspected in a terminal state; leave some states non-terminal")
        return Model.from_arrays(
            probabilities.transpose(1, 0, 2),
            prices.rewards(self.state_names, self.action_names),
            measuring_cost=prices.measuring_costs(self.state_names, self.action_names),
            discount=prices.discount,
            initial=initial / initial.sum(),
            terminal=terminal,
            state_names=self.state_names,
            action_names=self.action_names,
        )

    def without(self, actions: Sequence[str]) -> Fit:
        """The fit without some actions, which a model of it then does not have."""
        for action in actions:
            if action not in self.action_names:
                raise FitError(unknown_name("action to drop", action, self.action_names))
        kept = [number for number, name in enumerate(self.action_names) if name not in actions]
        if not kept:
            raise FitError("no action is left; keep at least one")
        return replace(
            self,
            action_names=tuple(self.action_names[number] for number in kept),
            dropped=(*self.dropped, *actions),
            structure=tuple(self.structure[number] for number in kept),
            probabilities=self.probabilities[kept],
            low=None if self.low is None else self.low[kept],
            high=None if self.high is None else self.high[kept],
            bootstrap=None if self.bootstrap is None else self.bootstrap[:, kept],
            inspected=self.inspected[kept],
            exposure=self.exposure[kept],
            assumed=self.assumed[kept],
        )

    def summary(self) -> str:
        """The fit in words and tables."""
        return summary(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fit into an `.npz` file; an existing one is replaced in one step, or stays as it was."""
        from actmeasure.inspection.fit_files import save_fit

        save_fit(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Fit:
        """Read a fit from an `.npz` file; everything in it is checked."""
        from actmeasure.inspection.fit_files import load_fit

        return load_fit(path)

    def __repr__(self) -> str:
        intervals = "no intervals" if self.bootstrap is None else f"{len(self.bootstrap)} replicates"
        return (
            f"Fit({len(self.state_names)} states, actions {', '.join(map(shown, self.action_names))}, {self.n_units:,} units, "
            f"{self.n_inspections:,} inspections, {intervals})"
        )


# ----------------------------------------------------------------------------------------------------
# A fit in words and tables.
# ----------------------------------------------------------------------------------------------------


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
