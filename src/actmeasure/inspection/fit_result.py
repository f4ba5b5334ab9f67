"""`Fit`: transition probabilities fitted to records of inspections, and the models that follow from it with prices."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from actmeasure.errors import FitError, quoted, shown, unknown_name
from actmeasure.inspection.diagnostics import Diagnostic
from actmeasure.inspection.economics import DAYS, Economics
from actmeasure.inspection.flows import generator, transition_probabilities
from actmeasure.inspection.gaps import SAME_AGE
from actmeasure.inspection.goodness import Goodness
from actmeasure.inspection.problem import INSPECTION, Problem, priced_problem
from actmeasure.inspection.text import fit_text
from actmeasure.model import Measurement, Model

__all__ = ["Fit", "age_names", "over_period"]

FloatArray = npt.NDArray[np.float64]

#: Largest age in periods of a model with breaks of age.
MOST_AGES = 1000


@dataclass(frozen=True, eq=False)
class Fit:
    """Transition probabilities fitted to records, with intervals, goodness of fit and diagnostics.

    Returned by `actmeasure.fit`; arrays are read-only. A, S and B are the numbers of actions, states and bootstrap replicates.
    With breaks of age, every action is there once for each interval of age, named `nothing, age 0 to 10`.

    Attributes
    ----------
    state_names, action_names : tuple of str
    probabilities : float64 array, shape (A, S, S)
        Probability of each state one period later; in continuous time after one unit of time. A row without information in the
        records and without an assumption is NaN.
    low, high : float64 arrays, shape (A, S, S), or None
        Ends of the interval of every probability; None without a bootstrap.
    level : float
        Coverage probability of the intervals, such as 0.9.
    bootstrap : float64 array, shape (B, A, S, S), or None
        The probabilities fitted to resampled units.
    initial : float64 array, shape (S,)
        Distribution of the state at the units' first inspections.
    log_likelihood : float
    converged : bool
        Whether the conditions of a maximum of the likelihood hold: the gradient vanishes, and no parameter at 0 would rise.
    free_parameters : int
        Number of parameters that were estimated, for likelihood ratios.
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
    time : {"discrete", "continuous"}
    dynamics : float64 array, shape (A, S, S), or None
        In continuous time: intensities, with a diagonal of 0, or the transition probabilities of actions that act at once.
    dynamics_low, dynamics_high : float64 arrays, shape (A, S, S), or None
    bootstrap_dynamics : float64 array, shape (B, A, S, S), or None
    at_once : tuple of str
        In continuous time: actions that act at once.
    default_action : str or None
        The action of periods without a recorded one; in continuous time it goes on after actions that act at once.
    age_breaks : tuple of float
        Ages at which the parameters change.
    errors : float64 array, shape (S, S), or None
        Probability of each recorded state (column) given the state (row); None if records are taken to be right.
    errors_low, errors_high : float64 arrays, shape (S, S), or None
    bootstrap_errors : float64 array, shape (B, S, S), or None
    start : str or None
        Where records may be wrong, the state at a unit's first record: "seen", "drawn", or the name of a state.
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
    converged: bool = True
    free_parameters: int = 0
    time: Literal["discrete", "continuous"] = "discrete"
    dynamics: FloatArray | None = None
    dynamics_low: FloatArray | None = None
    dynamics_high: FloatArray | None = None
    bootstrap_dynamics: FloatArray | None = None
    at_once: tuple[str, ...] = ()
    default_action: str | None = None
    age_breaks: tuple[float, ...] = ()
    errors: FloatArray | None = None
    errors_low: FloatArray | None = None
    errors_high: FloatArray | None = None
    bootstrap_errors: FloatArray | None = None
    start: str | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            array = getattr(self, field.name)
            if isinstance(array, np.ndarray):
                array.setflags(write=False)

    @property
    def intensities(self) -> FloatArray | None:
        """Intensities in continuous time, shape (A, S, S), with rows that sum to 0; NaN for actions that act at once."""
        if self.dynamics is None:
            return None
        return np.where(self._acts_at_once[:, None, None], np.nan, generator(self.dynamics))

    @property
    def measurement(self) -> Measurement:
        """What an inspection shows, as a measurement without a price: the recorded state, or exactly the state."""
        if self.errors is None:
            return Measurement.exact(INSPECTION)
        return Measurement.noisy(INSPECTION, outcomes=self.state_names, probabilities=self.errors)

    @property
    def plain_actions(self) -> tuple[str, ...]:
        """The actions, each once also where there are breaks of age."""
        count = len(self.action_names) // (1 + len(self.age_breaks))
        first = f", {age_names(self.age_breaks)[0]}" if self.age_breaks else ""
        return tuple(name.removesuffix(first) for name in self.action_names[:count])

    @property
    def _acts_at_once(self) -> npt.NDArray[np.bool_]:
        return np.tile(np.isin(self.plain_actions, self.at_once), 1 + len(self.age_breaks))

    @cached_property
    def unknown(self) -> tuple[tuple[str, str], ...]:
        """Pairs (action, state) without information in the records and without an assumption."""
        rows = np.argwhere(np.isnan(self.probabilities).any(axis=2))
        return tuple((self.action_names[action], self.state_names[state]) for action, state in rows)

    def model(self, economics: Economics | str | os.PathLike[str], period: str | None = None) -> Model:
        """Return the model with these probabilities and prices, the latter from an `Economics` or its file.

        A fit in continuous time gives a model for any period: that of the prices, or `period`, to which running costs and
        discount are converted. The start is distributed as the states at first inspections. Where records may be wrong,
        inspections of the model are, too. With breaks of age, a state of the model is an age in periods and a state, named `3,
        age 12`, and the age is always known; only actions of `at_once` or an assumption with the first state as target start a
        new life: the first have the age of one period at its end, the others 0. With inspection methods, a life, limits or
        components in the prices, it is the model of all that.

        Raises `FitError` if the prices do not match the fit, or if a row of probabilities is not known: then drop the action, or
        give an assumption, when fitting.
        """
        return self.problem(economics, period).model

    def problem(self, economics: Economics | str | os.PathLike[str], period: str | None = None) -> Problem:
        """Return the model together with its costs by cause, its failures and the meaning of its states; see `model`."""
        prices = self._checked(economics, period)
        return self._problem(prices, self._over(prices, self.dynamics, self.probabilities), self.errors)

    def models(self, economics: Economics | str | os.PathLike[str], period: str | None = None) -> Iterator[Model]:
        """Return an iterator over the models of all bootstrap replicates, built as by `model`."""
        return (one.model for one in self.problems(economics, period))

    def problems(self, economics: Economics | str | os.PathLike[str], period: str | None = None) -> Iterator[Problem]:
        """Return an iterator over the problems of all bootstrap replicates, built as by `problem`."""
        prices = self._checked(economics, period)
        if self.bootstrap is None:
            raise FitError("the fit has no bootstrap replicates; fit with bootstrap=200 (--bootstrap 200)")
        count = len(self.bootstrap)
        dynamics = self.bootstrap_dynamics if self.bootstrap_dynamics is not None else [None] * count
        errors = self.bootstrap_errors if self.bootstrap_errors is not None else [None] * count
        return (
            self._problem(prices, self._over(prices, one, probabilities), wrong)
            for one, probabilities, wrong in zip(dynamics, self.bootstrap, errors, strict=True)
        )

    def _checked(self, economics: Economics | str | os.PathLike[str], period: str | None) -> Economics:
        """Return the prices, read if they are a path; raise a `FitError` if they do not match the fit."""
        prices = economics if isinstance(economics, Economics) else Economics.load(economics)
        if period is not None:
            prices = prices.per(period)
        if self.time == "continuous":
            if self.period is None or self.period not in DAYS or prices.period not in DAYS:
                unit = "has no name" if self.period is None else f"is {quoted(self.period)}"
                if self.period != prices.period:
                    raise FitError(
                        f"{prices.location(('period',))}the prices are for a period of a {prices.period}, and the unit of the "
                        f"records' times {unit}, so that its length is not known; fit with period='year' (--period year), or "
                        f"what times are counted in, and give prices for one of: {', '.join(DAYS)}"
                    )
        elif self.period is not None and self.period != prices.period:
            remedy = f'period = "{self.period}"' if self.period in DAYS else f'period = "{self.period}" and its prices'
            raise FitError(
                f"{prices.location(('period',))}the prices are for a period of a {prices.period}, but the records were fitted "
                f"by {self.period}; write {remedy} there, or fit with period={prices.period!r} (--period {prices.period})"
            )
        prices.check_names(self.state_names, self.plain_actions, self.dropped)
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

    def _over(self, prices: Economics, dynamics: FloatArray | None, probabilities: FloatArray) -> FloatArray:
        """Return the transition probabilities of a period of the prices, (A, S, S)."""
        if dynamics is None:
            return probabilities
        same = self.period == prices.period or self.period is None
        length = 1.0 if same else DAYS[prices.period] / DAYS[str(self.period)]
        count = len(self.plain_actions)
        number = self.plain_actions.index(self.default_action) if self.default_action in self.plain_actions else 0
        interval = np.arange(len(self.action_names)) // count
        if self.age_breaks:  # what acts at once starts a new life
            interval = np.where(self._acts_at_once, self._ages(prices)[0], interval)
        return over_period(dynamics, self._acts_at_once, interval * count + number, length)

    def _problem(self, prices: Economics, probabilities: FloatArray, errors: FloatArray | None) -> Problem:
        """Return the problem with transition probabilities, (A, S, S), and probabilities of recorded states, (S, S)."""
        copies = 1
        if self.age_breaks:
            ages = self._ages(prices)
            copies = len(ages)
            probabilities = self._with_ages(probabilities, ages)
        return priced_problem(probabilities, prices, self.state_names, self.plain_actions, self.initial, errors, copies)

    def _ages(self, prices: Economics) -> npt.NDArray[np.int64]:
        """Return the interval of each age in periods, up to the age from which nothing changes any more."""
        length = 1.0
        if self.time == "continuous" and self.period in DAYS:
            length = DAYS[prices.period] / DAYS[str(self.period)]
        last = math.ceil(self.age_breaks[-1] / length - SAME_AGE)
        if last > MOST_AGES:
            raise FitError(
                f"the last break of age is {last:,} periods of a {prices.period}, more than {MOST_AGES}; plan with longer periods"
            )
        # The interval in which the middle of the period lies.
        middle = (np.arange(last + 1) + 0.5) * length
        return np.searchsorted(np.array(self.age_breaks), middle, side="right")

    def _with_ages(self, probabilities: FloatArray, ages: npt.NDArray[np.int64]) -> FloatArray:
        """Return transition probabilities of pairs of an age and a state, (A, ages * S, ages * S)."""
        count, size, copies = len(self.plain_actions), len(self.state_names), len(ages)
        result = np.zeros((count, copies, size, copies, size))
        for action, name in enumerate(self.plain_actions):
            for age, interval in enumerate(ages):
                following = min(age + 1, copies - 1)
                if name in self.at_once:  # at the beginning of the period
                    following = min(1, copies - 1)
                elif name in self.renewing:  # in the course of it
                    following = 0
                result[action, age, :, following, :] = probabilities[interval * count + action]
        return result.reshape(count, copies * size, copies * size)

    @property
    def renewing(self) -> tuple[str, ...]:
        """Actions after which the age is 0: those that act at once, and those assumed to lead to the first state everywhere."""
        new = np.zeros(len(self.state_names))
        new[0] = 1.0
        count = len(self.plain_actions)
        assumed = [
            name
            for number, name in enumerate(self.plain_actions)
            if self.assumed[number::count].all()
            and self.dynamics is None
            and (self.probabilities[number::count] == new).all()
        ]
        return (*self.at_once, *assumed)

    def without(self, actions: Sequence[str]) -> Fit:
        """Return the fit without some actions."""
        plain = self.plain_actions
        for action in actions:
            if action not in plain:
                raise FitError(unknown_name("action to drop", action, plain))
        if self.at_once and self.default_action in actions:
            raise FitError(
                f"{self.default_action!r} goes on after actions that act at once, so that it cannot be dropped; drop others"
            )
        kept = [number for number in range(len(self.action_names)) if plain[number % len(plain)] not in actions]
        if not kept:
            raise FitError("no action is left; keep at least one")
        by_action = (
            "probabilities", "low", "high", "inspected", "exposure", "assumed", "dynamics", "dynamics_low", "dynamics_high"
        )  # fmt: skip
        changed: dict[str, Any] = {name: getattr(self, name) for name in by_action}
        changed = {name: None if array is None else array[kept] for name, array in changed.items()}
        for name in ("bootstrap", "bootstrap_dynamics"):
            array = getattr(self, name)
            changed[name] = None if array is None else array[:, kept]
        return replace(
            self,
            action_names=tuple(self.action_names[number] for number in kept),
            dropped=(*self.dropped, *actions),
            structure=tuple(self.structure[number] for number in kept),
            at_once=tuple(name for name in self.at_once if name not in actions),
            **changed,
        )

    def summary(self) -> str:
        """Return the fit in words and tables."""
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


def over_period(
    dynamics: FloatArray, at_once: npt.NDArray[np.bool_], default: npt.NDArray[np.int64], length: float
) -> FloatArray:
    """Return the transition probabilities of a period, (A, S, S).

    Parameters
    ----------
    dynamics : float64 array, shape (A, S, S)
        Intensities, with a diagonal of 0, or the transition probabilities of actions that act at once.
    at_once : bool array, shape (A,)
    default : int64 array, shape (A,)
        The action that goes on after one that acts at once.
    length : float
        Of the period, in the unit of the intensities.
    """
    flows = transition_probabilities(np.where(at_once[:, None, None], 0.0, dynamics), length)
    following = flows[default]
    stays = np.where(np.isnan(following), np.eye(following.shape[1]), following)  # states without known intensities
    after = dynamics @ stays
    return np.where(at_once[:, None, None], after, flows)


def age_names(breaks: Sequence[float]) -> tuple[str, ...]:
    """Return the names of the intervals of age: `age 0 to 10`, `age 10 or more`."""
    limits = [0.0, *breaks]
    spans = [f"age {low:g} to {high:g}" for low, high in pairwise(limits)]
    return (*spans, f"age {limits[-1]:g} or more")
