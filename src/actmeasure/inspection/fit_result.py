"""`Fit`: transition probabilities fitted to records of inspections."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from actmeasure.errors import FitError, shown, unknown_name
from actmeasure.inspection.diagnostics import Diagnostic
from actmeasure.inspection.economics import Economics
from actmeasure.inspection.goodness import Goodness
from actmeasure.inspection.money import DAYS
from actmeasure.model import Model

__all__ = ["Fit"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Fit:
    """Transition probabilities fitted to records, with intervals, goodness of fit and diagnostics.

    Returned by `actmeasure.fit`; arrays are read-only. A, S and B are the numbers of actions, states and bootstrap replicates.

    Attributes
    ----------
    state_names, action_names : tuple of str
    probabilities : float64 array, shape (A, S, S)
        Probability of each state one period later. A row without information in the records and without an assumption is NaN.
    low, high : float64 arrays, shape (A, S, S), or None
        Ends of the interval of every probability; None without a bootstrap.
    level : float
        Coverage probability of the intervals, such as 0.9.
    bootstrap : float64 array, shape (B, A, S, S), or None
        The probabilities fitted to resampled units.
    initial : float64 array, shape (S,)
        Distribution of the state at the units' first inspections.
    log_likelihood : float
    goodness : Goodness or None
        Tests of whether a Markov chain fits the records; None if not tested.
    identifiability : tuple of Diagnostic
        What records with such gaps do not determine, whatever their number; usually empty.
    warnings : tuple of Diagnostic
        Little data and other weaknesses.
    notes : tuple of Diagnostic
        What was assumed, filled in, merged or left out.
    inspected : int64 array, shape (A, S)
        Number of inspections that showed the state and were followed by the action.
    exposure : float64 array, shape (A, S)
        Expected number of periods that began in the state with the action, inspected or not.
    assumed : bool array, shape (A, S)
        Rows given by assumptions, because the records contain no information about them.
    structure : tuple of str
        The name of each action's allowed transitions.
    noticed : tuple of str
        States that are noticed without an inspection as soon as they are entered.
    dropped : tuple of str
        Actions of the records that were removed from the fit; prices may still name them.
    period : str or None
        Unit of the records' times, such as "year"; None if it was not given.
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
    identifiability: tuple[Diagnostic, ...]
    warnings: tuple[Diagnostic, ...]
    notes: tuple[Diagnostic, ...]
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
        """Pairs (action, state) without information in the records and without an assumption."""
        rows = np.argwhere(np.isnan(self.probabilities).any(axis=2))
        return tuple((self.action_names[action], self.state_names[state]) for action, state in rows)

    def model(self, economics: Economics | str | os.PathLike[str]) -> Model:
        """Return the model with these probabilities and prices, the latter from an `Economics` or its file.

        The start is distributed as the states at first inspections. Raises `FitError` if the prices do not match the fit, or if
        a row of probabilities is not known: then drop the action, or give an assumption, when fitting.
        """
        return self._model(self._checked(economics), self.probabilities)

    def models(self, economics: Economics | str | os.PathLike[str]) -> Iterator[Model]:
        """Return an iterator over the models of all bootstrap replicates, built as by `model`."""
        prices = self._checked(economics)
        if self.bootstrap is None:
            raise FitError("the fit has no bootstrap replicates; fit with bootstrap=200 (--bootstrap 200)")
        return (self._model(prices, probabilities) for probabilities in self.bootstrap)

    def _checked(self, economics: Economics | str | os.PathLike[str]) -> Economics:
        """Return the prices, read if they are a path; raise a `FitError` if they do not match the fit."""
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
            f"the records contain no information about {action!r} in state {', '.join(states)}: it was never observed there; fit "
            f"again with an assumption, assume={{{action!r}: {self.state_names[0]!r}}} (--assume {action}:"
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
        """Return the fit without some actions."""
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
        """Return the fit in words and tables."""
        from actmeasure.inspection.text import fit_text

        return fit_text(self)

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
