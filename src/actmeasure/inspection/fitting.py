"""Fit a Markov chain per action to records of inspections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from actmeasure.errors import FitError, quoted, unknown_name
from actmeasure.inspection.diagnostics import ambiguity, data_notes, little_data
from actmeasure.inspection.estimation import (
    Estimate,
    FloatArray,
    Likelihood,
    allowed_transitions,
    assumed_rows,
    check_assumptions,
    maximise,
    persistent_start,
)
from actmeasure.inspection.fit_result import Fit
from actmeasure.inspection.gaps import Gaps, find_gaps
from actmeasure.inspection.goodness import Goodness, goodness_of_fit
from actmeasure.inspection.records import Progress, Records, ignore_progress, read_records
from actmeasure.inspection.uncertainty import flat_directions, intervals, one_step_counts, other_chains, resample
from actmeasure.settings import real, whole

__all__ = ["Search", "fit"]

#: Most replicates for intervals, or for the goodness of fit.
MOST_REPLICATES = 10**6


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
    nobody looked), and during that period the action was done. What is fitted is the chance of each state at the beginning of
    the next period. Records may come in any order; a unit's last action tells nothing, as nobody saw what it led to.

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
        States that are noticed, and recorded, as soon as they are entered, without an inspection, such as a breakdown. Until a
        unit's last record none was entered that is not there.
    default_action : str, optional
        What was done in periods without a record or without an action in it. Needed where there are such periods and several
        actions; it also makes up for a missing column.
    assume : mapping from action to state or "stay"
        What an action does in states in which the records tell nothing about it: leads to that state, or changes nothing.
    drop : list of str
        Actions to leave out of the fit, after it was made.
    columns : mapping
        Names of the columns, where they are others: `{"unit": "pipe"}`.
    period : float or str, optional
        By default times are whole numbers. A number: times are divided by it and rounded down. "day", "week", "month",
        "quarter" or "year": times are such whole numbers, or dates, which fall into periods of the calendar.
    delimiter, encoding : str
        Of the CSV file.
    skip_broken : bool
        Leave out lines that cannot be read, and say so, instead of raising an error that names them.
    bootstrap : int
        Replicates for the intervals; 0 for none. Ctrl-C keeps those that are done.
    goodness : int
        Simulated records for the goodness of fit; 0 for none.
    level : float
        How often the intervals should cover.
    seed : int or numpy Generator
    progress : function of (doing, done, total)

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
    search = Search(read, gaps, allowed, structures, assumptions, np.random.default_rng(seed), progress)
    found = search.run(bootstrap, goodness, float(level))
    return found.without(drop) if drop else found


# ----------------------------------------------------------------------------------------------------
# The steps of a fit, from gaps between inspections to the result.
# ----------------------------------------------------------------------------------------------------


#: A row with fewer expected periods than this, and no inspection right before it, is not known.
LEAST_EXPOSURE = 5.0
#: Searches from random starts; not needed where every row was seen so often with an inspection right after it.
#: More of them where all gaps have a common factor, so that roots of a matrix are sought, of which there may be several.
STARTS, MORE_STARTS, ENOUGH_SHORT_GAPS = 4, 20, 20


class Search:
    """A fit that is being made."""

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
        self._notes = [*records.notes, *data_notes(records, gaps)]

    def run(self, bootstrap: int, goodness: int, level: float) -> Fit:
        """Estimate, look for what cannot be told, test and resample."""
        records, gaps = self._records, self._gaps
        self._progress("fitting", 0, 1)
        inspected = gaps.inspected(records)
        found, unknown, fixed, assumed = self._first_estimate(inspected)
        found, others, starts = self._other_chains(found, fixed)
        flat = flat_directions(self._likelihood, found, fixed)
        tested = self._goodness(found, fixed, goodness)
        missing = (unknown & ~assumed)[:, :, None]
        replicates, low, high = self._intervals(found, fixed, missing, bootstrap, level)
        first = np.unique(gaps.unit, return_index=True)[1]
        return Fit(
            state_names=records.state_names,
            action_names=records.action_names,
            probabilities=np.where(missing, np.nan, found.probabilities),
            low=low,
            high=high,
            level=level,
            bootstrap=replicates,
            initial=np.bincount(gaps.begin[first], minlength=gaps.n_states) / len(first),
            log_likelihood=found.log_likelihood,
            goodness=tested,
            identifiability=tuple(ambiguity(flat, others, found, records, gaps, starts)),
            warnings=(*records.warnings, *little_data(found, unknown, assumed, records, gaps)),
            notes=tuple(self._notes),
            inspected=inspected,
            exposure=found.exposure,
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
    ) -> tuple[Estimate, npt.NDArray[np.bool_], FloatArray, npt.NDArray[np.bool_]]:
        """The estimate; rows that the records do not tell about, (A, S); rows by assumption, (A, S, S), and which these are."""
        records = self._records
        free = np.full(self._allowed.shape, np.nan)
        start = persistent_start(self._allowed, free)
        self._check_possible(start)
        found = maximise(self._likelihood, self._counts, start, free)
        unknown = (found.exposure < LEAST_EXPOSURE) & (inspected == 0)
        if not self._assumptions:
            return found, unknown, free, np.zeros_like(unknown)
        fixed, assumed, notes = assumed_rows(unknown, self._assumptions, records.action_names, records.state_names)
        self._notes += notes
        if assumed.any():
            start = persistent_start(self._allowed, fixed)
            self._check_possible(start)
            found = maximise(self._likelihood, self._counts, start, fixed)
        return found, unknown, fixed, assumed

    def _check_possible(self, start: FloatArray) -> None:
        """Raise an error that names the record if something was seen that the structure rules out."""
        gaps, records = self._gaps, self._records
        chances = self._likelihood.end_chances(start)
        chances = np.c_[chances, chances.sum(axis=1)]
        wrong = np.flatnonzero(chances[gaps.group, gaps.end] <= 0)
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
            f"{records.place(end)}: unit {unit!r} was seen in {begin!r} at time {records.time[gaps.record[gap]]} and {seen} at "
            f"time {records.time[end]} after {done}{more}, which cannot be with the states in the order "
            f"{' < '.join(records.state_names)} and the structure or assumptions given ({rules}); correct the record, or "
            "allow it: structure={'repair': 'any'} (--structure repair=any)"
        )

    def _other_chains(self, found: Estimate, fixed: FloatArray) -> tuple[Estimate, list[Estimate], int]:
        """The best of several searches, others as likely as it, and how many searches there were."""
        told = found.exposure >= LEAST_EXPOSURE
        if (one_step_counts(self._likelihood)[told] >= ENOUGH_SHORT_GAPS).all():
            return found, [], 0
        starts = MORE_STARTS if np.gcd.reduce(self._gaps.length) > 1 else STARTS
        best, others = other_chains(self._likelihood, found, self._allowed, fixed, starts, self._starts_rng)
        return best, others, starts

    def _goodness(self, found: Estimate, fixed: FloatArray, replicates: int) -> Goodness | None:
        if not replicates:
            return None
        start = persistent_start(self._allowed, fixed)
        names = (self._records.state_names, self._records.action_names, self._records.period or "period")
        tested = goodness_of_fit(
            self._likelihood, found.probabilities, start, fixed, names, replicates, self._goodness_rng, self._progress
        )
        if tested is None or tested.replicates < replicates:
            done = 0 if tested is None else tested.replicates
            self._notes.append(f"Goodness of fit: {done} of {replicates} simulated records; too few gaps, or stopped.")
        return tested

    def _intervals(
        self, found: Estimate, fixed: FloatArray, missing: npt.NDArray[np.bool_], replicates: int, level: float
    ) -> tuple[FloatArray | None, FloatArray | None, FloatArray | None]:
        if not replicates:
            return None, None, None
        start = persistent_start(self._allowed, fixed)
        drawn = resample(
            self._likelihood, found.probabilities, start, fixed, replicates, self._bootstrap_rng, self._progress
        )
        if len(drawn) < replicates:
            self._notes.append(f"Intervals come from {len(drawn)} of {replicates} replicates: stopped early.")
        if len(drawn) < 2:
            return None, None, None
        low, high = intervals(found.probabilities, found.transitions, drawn, level)
        known = ~np.isnan(fixed)
        low, high = np.where(known, fixed, low), np.where(known, fixed, high)
        return np.where(missing, np.nan, drawn), np.where(missing, np.nan, low), np.where(missing, np.nan, high)
