"""Fit a Markov chain per action to records of inspections: `fit`, and the steps of a fit in order."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from actmeasure.errors import FitError, quoted, shown, unknown_name
from actmeasure.inspection.diagnostics import Diagnostic, diagnostic
from actmeasure.inspection.economics import DAYS, Economics
from actmeasure.inspection.estimation import (
    ChainEstimate,
    FloatArray,
    Likelihood,
    allowed_transitions,
    assumed_rows,
    check_assumptions,
    maximise,
    persistent_start,
)
from actmeasure.inspection.gaps import Gaps, find_gaps
from actmeasure.inspection.goodness import Goodness, goodness_of_fit
from actmeasure.inspection.records import Progress, Records, ignore_progress, read_records
from actmeasure.inspection.text import fit_text
from actmeasure.inspection.uncertainty import (
    MOST_FREE,
    Replication,
    flat_directions,
    intervals,
    largest_entries,
    one_step_counts,
    other_chains,
    resample,
)
from actmeasure.model import Model
from actmeasure.settings import real, whole

__all__ = ["EstimationRun", "Fit", "fit"]

#: Largest number of bootstrap replicates, and of simulated records for the goodness of fit.
MOST_REPLICATES = 10**6
#: A row with less expected exposure, in periods, and without an inspection at the beginning of a period is not estimated.
LEAST_EXPOSURE = 5.0
#: Number of random starts, and the larger number where the gap lengths have a common factor: then roots of a matrix are
#: estimated, of which there may be several.
STARTS, MORE_STARTS = 4, 20
#: No random starts where every row was inspected this often one period later, which determines it.
ENOUGH_SHORT_GAPS = 20
#: Rows with less exposure, in periods, get a diagnostic, and so do records with fewer units.
LITTLE_EXPOSURE, FEW_UNITS = 10.0, 20


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
                f"{prices.location(('period',))}the prices are for a period of a {prices.period}, but the records were fitted "
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
        arrays = ("probabilities", "low", "high", "inspected", "exposure", "assumed")
        given = {name: getattr(self, name) for name in arrays if getattr(self, name) is not None}
        by_action: dict[str, Any] = {name: array[kept] for name, array in given.items()}
        return replace(
            self,
            action_names=tuple(self.action_names[number] for number in kept),
            dropped=(*self.dropped, *actions),
            structure=tuple(self.structure[number] for number in kept),
            bootstrap=None if self.bootstrap is None else self.bootstrap[:, kept],
            **by_action,
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


def fit(
    records: Any,
    *,
    states: Sequence[str] | None = None,
    actions: Sequence[str] | None = None,
    structure: Any = None,
    noticed: Sequence[str] = (),
    default_action: str | None = None,
    assume: Mapping[str, str] | None = None,
    drop: Sequence[str] = (),
    columns: Mapping[str, str] | None = None,
    period: float | str | None = None,
    delimiter: str = ",",
    encoding: str = "utf-8",
    skip_broken: bool = False,
    bootstrap: int = 200,
    goodness: int = 100,
    level: float = 0.9,
    seed: int | np.random.Generator = 0,
    progress: Progress = ignore_progress,
) -> Fit:
    """Fit a Markov chain per action to records of inspections, with gaps of any length between them.

    A record with unit, time, state and action says: at the beginning of period `time` the unit was seen in the state (empty:
    not inspected), and during that period the action was done. Fitted are the probabilities of the states at the beginning of
    the next period. Records may come in any order. A unit's last action is not used, as its result was not observed.

    Parameters
    ----------
    records : path of a CSV file, or pandas DataFrame
        With the columns unit, time, state and action.
    states : list of str, optional
        All states in order, the best first; by default those of the records, where 9 comes before 10.
    actions : list of str, optional
        All actions; by default those of the records.
    structure : str, mask, or mapping from action to either, optional
        Which transitions are possible: "any", "deteriorate" (stay or get worse), "deteriorate-by-steps" (stay or the next),
        "improve", "improve-by-steps", or truth values of shape (S, S). One for all actions, or a mapping; actions that it does
        not name have that of "*", or else may do anything.
    noticed : list of str
        States that are noticed, and recorded, as soon as they are entered, without an inspection, such as a breakdown. So until
        a unit's last record it entered such states only where a record says so.
    default_action : str, optional
        The action of periods without a record or without an action in it. Required if there are such periods and several
        actions, or no column of actions.
    assume : mapping from action to state or "stay"
        The effect of an action in states in which the records contain no information about it: it leads to that state, or
        changes nothing.
    drop : list of str
        Actions to remove from the result.
    columns : mapping
        Other names of the columns, such as `{"unit": "pipe"}`.
    period : float or str, optional
        By default times are whole numbers. A number: times are divided by it and rounded down. "day", "week", "month",
        "quarter" or "year": times are such whole numbers, or dates, which fall into periods of the calendar.
    delimiter, encoding : str
        Of the CSV file.
    skip_broken : bool
        Leave out lines that cannot be read, with a diagnostic in `Fit.notes`, instead of raising an error that names them.
    bootstrap : int
        Bootstrap replicates for the intervals; 0 for none. Ctrl-C keeps those that are done.
    goodness : int
        Simulated sets of records for the goodness-of-fit tests; 0 for none.
    level : float
        Coverage probability of the intervals.
    seed : int or numpy Generator
    progress : function of (task, done, total)

    Raises
    ------
    FitError
        If the records or settings are not valid; the message names the line.

    Examples
    --------
    >>> import actmeasure as am
    >>> seen = {"unit": [1, 1, 1, 2, 2], "time": [0, 1, 2, 0, 1], "state": ["good", "good", "worn", "good", "worn"]}
    >>> found = am.fit(seen, default_action="nothing", bootstrap=0)
    >>> found.probabilities[0, 0].round(3).tolist()
    [0.333, 0.667]
    """
    whole(bootstrap, "bootstrap", 0, MOST_REPLICATES, FitError)
    whole(goodness, "goodness", 0, MOST_REPLICATES, FitError)
    if not isinstance(seed, np.random.Generator):
        whole(seed, "seed", error=FitError)
    if not 0 < real(level, "level", FitError) < 1:
        raise FitError(f"level is {quoted(level)}, expected a number between 0 and 1 such as 0.9")
    assumptions = dict(assume or {})
    read = read_records(
        records, states=states, actions=actions, default_action=default_action, untried=list(assumptions),
        columns=columns, period=period, delimiter=delimiter, encoding=encoding, skip_broken=skip_broken,
        progress=progress,
    )  # fmt: skip
    for action in drop:
        if action not in read.action_names:
            raise FitError(unknown_name("action to drop", action, read.action_names))
    check_assumptions(assumptions, read.state_names)
    gaps = find_gaps(read, default_action, noticed)
    allowed, structures = allowed_transitions(structure, read.action_names, len(read.state_names))
    run = EstimationRun(read, gaps, allowed, structures, assumptions, np.random.default_rng(seed), progress)
    fitted = run.fit(bootstrap, goodness, float(level))
    return fitted.without(drop) if drop else fitted


class EstimationRun:
    """The steps of a fit, from gaps between inspections to the result.

    Parameters
    ----------
    records : Records
    gaps : Gaps
    allowed : bool array, shape (A, S, S)
        Which transitions are possible.
    structures : tuple of str
        The name of each action's structure, for messages.
    assumptions : mapping from action to state or "stay"
    rng : numpy Generator
    progress : function of (task, done, total)
    """

    def __init__(
        self,
        records: Records,
        gaps: Gaps,
        allowed: npt.NDArray[np.bool_],
        structures: tuple[str, ...],
        assumptions: Mapping[str, str],
        rng: np.random.Generator,
        progress: Progress,
    ) -> None:
        self._records, self._gaps, self._allowed, self._structures = records, gaps, allowed, structures
        self._assumptions, self._progress = assumptions, progress
        self._starts_rng, self._bootstrap_rng, self._goodness_rng = rng.spawn(3)
        self._likelihood = Likelihood(gaps)
        self._counts = gaps.counts()
        self._notes = [*records.notes, *_data_diagnostics(records, gaps)]

    def fit(self, bootstrap: int, goodness: int, level: float) -> Fit:
        """Estimate the probabilities, check whether they are determined, test the fit and resample units."""
        records, gaps = self._records, self._gaps
        self._progress("fitting", 0, 1)
        inspected = gaps.inspected(records)
        estimate, unknown, fixed, assumed = self._first_estimate(inspected)
        estimate, others, starts = self._other_chains(estimate, fixed)
        flat = flat_directions(self._likelihood, estimate, fixed)
        start = persistent_start(self._allowed, fixed)
        replication = Replication(self._likelihood, estimate.probabilities, start, fixed, self._progress)
        tested = self._goodness(replication, goodness)
        missing = (unknown & ~assumed)[:, :, None]
        replicates, low, high = self._intervals(replication, estimate, missing, bootstrap, level)
        first = np.unique(gaps.unit, return_index=True)[1]
        return Fit(
            state_names=records.state_names,
            action_names=records.action_names,
            probabilities=np.where(missing, np.nan, estimate.probabilities),
            low=low,
            high=high,
            level=level,
            bootstrap=replicates,
            initial=np.bincount(gaps.begin[first], minlength=gaps.n_states) / len(first),
            log_likelihood=estimate.log_likelihood,
            goodness=tested,
            identifiability=tuple(_identifiability(flat, others, estimate, records, gaps, starts)),
            warnings=(*records.warnings, *_little_data(estimate, unknown, assumed, records, gaps)),
            notes=tuple(self._notes),
            inspected=inspected,
            exposure=estimate.exposure,
            assumed=assumed,
            structure=self._structures,
            noticed=tuple(np.array(records.state_names)[gaps.noticed].tolist()),
            dropped=(),
            period=records.period,
            n_units=gaps.n_units,
            n_records=len(records.unit),
            n_inspections=int((records.state >= 0).sum()),
        )

    def _first_estimate(
        self, inspected: npt.NDArray[np.int64]
    ) -> tuple[ChainEstimate, npt.NDArray[np.bool_], FloatArray, npt.NDArray[np.bool_]]:
        """Return the estimate, rows without information (A, S), rows by assumption (A, S, S) and a mask of these (A, S)."""
        records = self._records
        free = np.full(self._allowed.shape, np.nan)
        start = persistent_start(self._allowed, free)
        self._check_possible(start)
        estimate = maximise(self._likelihood, self._counts, start, free)
        unknown = (estimate.exposure < LEAST_EXPOSURE) & (inspected == 0)
        if not self._assumptions:
            return estimate, unknown, free, np.zeros_like(unknown)
        fixed, assumed, notes = assumed_rows(unknown, self._assumptions, records.action_names, records.state_names)
        self._notes += notes
        if assumed.any():
            start = persistent_start(self._allowed, fixed)
            self._check_possible(start)
            estimate = maximise(self._likelihood, self._counts, start, fixed)
        return estimate, unknown, fixed, assumed

    def _check_possible(self, start: FloatArray) -> None:
        """Raise a `FitError` that names the record if the structure or assumptions exclude an observed transition."""
        gaps, records = self._gaps, self._records
        ends = self._likelihood.end_probabilities(start)
        ends = np.c_[ends, ends.sum(axis=1)]
        wrong = np.flatnonzero(ends[gaps.group, gaps.end] <= 0)
        if not wrong.size:
            return
        gap = int(wrong[np.argmin(records.line[gaps.last_record[wrong]])])
        end = gaps.last_record[gap]
        done = (
            f"only {records.action_names[gaps.action[gap]]!r}"
            if gaps.action[gap] < gaps.n_actions
            else "several actions"
        )
        rules = ", ".join(f"{name}: {kind}" for name, kind in zip(records.action_names, self._structures, strict=True))
        seen = f"in {records.state_names[gaps.end[gap]]!r}" if gaps.end[gap] < gaps.n_states else "still running"
        more = f" and {len(wrong) - 1:,} more times" * (len(wrong) > 1)
        begin, unit = records.state_names[gaps.begin[gap]], records.unit_names[gaps.unit[gap]]
        raise FitError(
            f"{records.location(end)}: unit {unit!r} was seen in {begin!r} at time {records.time[gaps.record[gap]]} and {seen} "
            f"at time {records.time[end]} after {done}{more}, which cannot be with the states in the order "
            f"{' < '.join(records.state_names)} and the structure or assumptions given ({rules}); correct the record, or "
            "allow it: structure={'repair': 'any'} (--structure repair=any)"
        )

    def _other_chains(
        self, estimate: ChainEstimate, fixed: FloatArray
    ) -> tuple[ChainEstimate, list[ChainEstimate], int]:
        """Return the best estimate of several starts, different ones that are as likely, and the number of starts."""
        informed = estimate.exposure >= LEAST_EXPOSURE
        if (one_step_counts(self._likelihood)[informed] >= ENOUGH_SHORT_GAPS).all():
            return estimate, [], 0
        starts = MORE_STARTS if np.gcd.reduce(self._gaps.length) > 1 else STARTS
        best, others = other_chains(self._likelihood, estimate, self._allowed, fixed, starts, self._starts_rng)
        return best, others, starts

    def _goodness(self, replication: Replication, replicates: int) -> Goodness | None:
        if not replicates:
            return None
        names = (self._records.state_names, self._records.action_names, self._records.period or "period")
        tested = goodness_of_fit(replication, names, replicates, self._goodness_rng)
        done = 0 if tested is None else tested.replicates
        if done < replicates:
            self._notes.append(diagnostic("goodness-incomplete", done=done, requested=replicates))
        return tested

    def _intervals(
        self,
        replication: Replication,
        estimate: ChainEstimate,
        missing: npt.NDArray[np.bool_],
        replicates: int,
        level: float,
    ) -> tuple[FloatArray | None, FloatArray | None, FloatArray | None]:
        """Return the replicates, (B, A, S, S), and the ends of the intervals, (A, S, S); None if there are fewer than two."""
        if not replicates:
            return None, None, None
        drawn = resample(replication, replicates, self._bootstrap_rng)
        if len(drawn) < replicates:
            self._notes.append(diagnostic("intervals-incomplete", done=len(drawn), requested=replicates))
        if len(drawn) < 2:
            return None, None, None
        low, high = intervals(estimate.probabilities, estimate.transitions, drawn, level)
        fixed, known = replication.fixed, ~np.isnan(replication.fixed)
        low, high = np.where(known, fixed, low), np.where(known, fixed, high)
        return np.where(missing, np.nan, drawn), np.where(missing, np.nan, low), np.where(missing, np.nan, high)


def _data_diagnostics(records: Records, gaps: Gaps) -> Iterator[Diagnostic]:
    """Yield what was filled in, what could not be used, and times that look like dates."""
    if gaps.filled:
        action = records.action_names[gaps.default]
        yield diagnostic("actions-filled-in", periods=gaps.filled, action=action, actions=len(records.action_names))
    useful = len(np.unique(gaps.unit))
    if useful < gaps.n_units:
        yield diagnostic("units-without-change", units=gaps.n_units - useful, all_units=gaps.n_units)
    look_like_dates = (records.time >= 1900_01_01) & (records.time <= 2100_12_31)
    if look_like_dates.all() and len(records.time) > 1:
        yield diagnostic("times-look-like-dates")


def _little_data(
    estimate: ChainEstimate,
    unknown: npt.NDArray[np.bool_],
    assumed: npt.NDArray[np.bool_],
    records: Records,
    gaps: Gaps,
) -> Iterator[Diagnostic]:
    """Yield actions and states with little or no data, few units, and whether the estimate did not converge."""
    states = records.state_names
    units = len(np.unique(gaps.unit))
    if units < FEW_UNITS:
        yield diagnostic("few-units", units=units)
    for number, action in enumerate(records.action_names):
        rows = np.flatnonzero(unknown[number] & ~assumed[number])
        if len(rows) == len(states):
            yield diagnostic("action-without-data", action=action)
        elif rows.size:
            yield diagnostic("action-without-data-in-states", action=action, states=tuple(states[row] for row in rows))
        few = np.flatnonzero(~unknown[number] & (estimate.exposure[number] < LITTLE_EXPOSURE))
        if few.size:
            yield diagnostic(
                "little-exposure",
                action=action,
                states=tuple(states[row] for row in few),
                periods=tuple(estimate.exposure[number, few].tolist()),
                least=LITTLE_EXPOSURE,
            )
    if not estimate.converged:
        yield diagnostic("estimation-not-converged")


def _identifiability(
    flat: list[FloatArray] | None,
    others: list[ChainEstimate],
    best: ChainEstimate,
    records: Records,
    gaps: Gaps,
    starts: int,
) -> Iterator[Diagnostic]:
    """Yield what records with such gaps do not determine, whatever their number."""
    states, actions = records.state_names, records.action_names
    if flat is None:
        yield diagnostic("flat-directions-not-checked", most=MOST_FREE)
    if flat:
        entries = largest_entries(flat)
        yield diagnostic(
            "flat-directions",
            directions=len(flat),
            actions=tuple(actions[action] for action, _, _ in entries),
            begins=tuple(states[begin] for _, begin, _ in entries),
            ends=tuple(states[end] for _, _, end in entries),
        )
    common = math.gcd(*np.unique(gaps.length).tolist())
    if common > 1:
        yield diagnostic("gaps-with-common-factor", periods=common, other_chains=len(others), starts=starts)
    if others:
        furthest = max(others, key=lambda one: float(np.abs(one.probabilities - best.probabilities).max()))
        change = furthest.probabilities - best.probabilities
        entry = np.unravel_index(int(np.argmax(np.abs(change))), change.shape)
        action, begin, end = (int(part) for part in entry)
        yield diagnostic(
            "several-chains",
            action=actions[action],
            begin=states[begin],
            end=states[end],
            probability=float(best.probabilities[entry]),
            other_probability=float(furthest.probabilities[entry]),
        )
