"""Fit Markov chains or intensities to records of inspections: `fit`, and the steps of a fit in order."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import stats

from actmeasure.errors import FitError, counted, quoted, unknown_name
from actmeasure.inspection.diagnostics import Diagnostic, diagnostic
from actmeasure.inspection.estimation import (
    FASTEST,
    ChainEstimate,
    FloatArray,
    better,
    counted_start,
    fast_start,
    maximise,
    nested_masks,
    persistent_start,
    refine,
    starts_without,
)
from actmeasure.inspection.fit_result import Fit, age_names, over_period
from actmeasure.inspection.gaps import Gaps, find_gaps, unit_events
from actmeasure.inspection.goodness import SIGNIFICANT, Goodness, gap_events, goodness_of_fit
from actmeasure.inspection.likelihood import DRAWN, SEEN, Likelihood, RecordErrors
from actmeasure.inspection.records import Progress, Records, ignore_progress, read_records
from actmeasure.inspection.structures import allowed_transitions, assumed_rows, check_assumptions, possible_errors
from actmeasure.inspection.uncertainty import (
    MOST_FREE,
    ROUGH_GAIN,
    Confounded,
    Replication,
    confounded_errors,
    flat_directions,
    informed_rows,
    intervals,
    largest_entries,
    one_step_counts,
    other_chains,
    resample,
)
from actmeasure.settings import amount, between_0_and_1, whole
from actmeasure.statistics import quantile_interval

__all__ = ["EstimationRun", "Fit", "FitSettings", "fit"]

#: Largest number of bootstrap replicates, and of simulated records for the goodness of fit.
MOST_REPLICATES = 10**6
#: A row with less expected exposure, in periods or mean gaps, and without an inspection at its beginning is not estimated.
LEAST_EXPOSURE = 5.0
#: Number of random starts, the larger number where the gap lengths have a common factor: then roots of a matrix are estimated, of
#: which there may be several; the smallest in continuous time, where there are other starts, too; and that where records may be
#: wrong, which often makes several maxima.
STARTS, MORE_STARTS, FEW_STARTS, ERROR_STARTS = 4, 20, 2, 20
#: No other starts where every row was inspected this often one period later, which determines it.
ENOUGH_SHORT_GAPS = 20
#: A search from another start is continued if its log-likelihood is at most this much below the best.
PROMISING = 50.0
#: A transition or error is rare if it is expected less often than this in the records; the most searches without one,
#: which go on if their log-likelihood is at most this much below the best.
RARELY, MOST_WITHOUT, CLOSE = 10.0, 30, 6.0
#: Rows with less exposure, in periods or mean gaps, get a diagnostic, and so do records with fewer units.
LITTLE_EXPOSURE, FEW_UNITS = 10.0, 20
#: Numbers of replicates that differ by less than this are the same; in floating point 1.9 / 0.1 is above 19.
SAME_LEVEL = 1e-6
#: Largest number of lines of contradictions that are kept in a diagnostic.
SHOWN_LINES = 5
#: The order of the states is asked about if reversing it leaves fewer contradictions than one in this many.
FEWER = 10


@dataclass(frozen=True)
class FitSettings:
    """What is fitted, as given to `fit`; see there."""

    structure: Any = None
    noticed: tuple[str, ...] = ()
    default_action: str | None = None
    assume: Mapping[str, str] | None = None
    at_once: tuple[str, ...] = ()
    errors: Any = None
    start: str = SEEN
    age_breaks: tuple[float, ...] = ()
    skip_contradictions: bool = False
    by_group: bool = False


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
    time: Literal["discrete", "continuous"] = "discrete",
    at_once: Sequence[str] = (),
    errors: Mapping[str, Any] | None = None,
    start: str = SEEN,
    age_breaks: Sequence[float] = (),
    columns: Mapping[str, str] | None = None,
    period: float | str | None = None,
    delimiter: str = ",",
    encoding: str = "utf-8",
    skip_broken: bool = False,
    skip_contradictions: bool = False,
    date_format: str | None = None,
    wide: bool = False,
    header: int = 1,
    sheet: str | None = None,
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

    In continuous time there are no periods: a record says that at that moment the unit was in the state, and that from then until
    the unit's next record the action was done. Fitted are intensities Q; probabilities over a time t are expm(Q t).

    Parameters
    ----------
    records : path of a CSV, Excel (.xlsx) or Parquet file, or pandas DataFrame
        With the columns unit, time, state and action.
    states : list of str, optional
        All states in order, the best first; by default those of the records, where 9 comes before 10.
    actions : list of str, optional
        All actions; by default those of the records.
    structure : str, mask, or mapping from action to either, optional
        Which transitions are possible: "any", "deteriorate" (stay or get worse), "deteriorate-by-steps" (stay or the next),
        "improve", "improve-by-steps", "no-healing" (the same as "deteriorate"), "by-steps" (stay or a neighbour), "absorbing"
        (the last state is not left), several joined by "+", or truth values of shape (S, S). One for all actions, or a mapping;
        actions that it does not name have that of "*", or else may do anything. In continuous time it says which intensities
        may be above 0, and the diagonal is ignored.
    noticed : list of str
        States that are noticed, and recorded, as soon as they are entered, without an inspection, such as a breakdown. So until
        a unit's last record it entered such states only where a record says so. In continuous time their records are exact times.
    default_action : str, optional
        The action of periods without a record or without an action in it. Required if there are such periods and several
        actions, or no column of actions.
    assume : mapping from action to state or "stay"
        The effect of an action in states in which the records contain no information about it: it leads to that state, or
        changes nothing.
    drop : list of str
        Actions to remove from the result.
    time : "discrete" or "continuous"
    at_once : list of str
        In continuous time: actions that act at the moment of their record, such as a replacement, after which the default action
        goes on. Their effect is a matrix of probabilities. Actions with an assumption that leads to a state act at once.
    errors : mapping, optional
        Recorded states may be wrong: from a state to those that may be recorded instead, as a list, `{"1": ["2"]}`, or with known
        probabilities, `{"1": {"2": 0.1, "3": None}}`, of which None are estimated. Noticed states are recorded without error.
    start : "seen", "drawn" or the name of a state
        With `errors`, the state at a unit's first record: as recorded; drawn from a distribution that is estimated; or that
        state. In the last two cases the first record may be wrong like any other.
    age_breaks : list of float
        Ages, in periods or in the unit of time, at which the parameters change; the age is that of the column `age`, if `columns`
        names one, or else time since a unit's first record. After an action that acts at once the age is 0.
    columns : mapping
        Other names of the columns, such as `{"unit": "pipe"}`.
    period : float or str, optional
        By default times are whole numbers. A number: times are divided by it and rounded down. "day", "week", "month",
        "quarter" or "year": times are such whole numbers, or dates, which fall into periods of the calendar. In continuous
        time it is the unit of intensities, by default a year for dates and 1 for numbers, and nothing is rounded.
    delimiter, encoding : str
        Of the CSV file.
    skip_broken : bool
        Leave out lines that cannot be read, with a diagnostic in `Fit.notes`, instead of raising an error that names them.
    skip_contradictions : bool
        Leave out what cannot be, with a diagnostic: gaps that the structure excludes, and times at which a unit has two states.
    date_format : str, optional
        How dates are written, such as "%d.%m.%Y"; by default 2012-04-13, 13.4.2012, 04/13/2012 and Apr 2012 are recognised.
    wide : bool
        The table has a row for each unit and a column for each time, which hold states; `default_action` is what was done.
    header : int
        Number of rows of the header; names of several rows are joined by spaces.
    sheet : str, optional
        Of an Excel file; the first by default.
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
    read, settings = prepared(
        records, states=states, actions=actions, structure=structure, noticed=noticed, default_action=default_action,
        assume=assume, drop=drop, time=time, at_once=at_once, errors=errors, start=start, age_breaks=age_breaks,
        columns=columns, period=period, delimiter=delimiter, encoding=encoding, skip_broken=skip_broken,
        skip_contradictions=skip_contradictions, date_format=date_format, wide=wide, header=header, sheet=sheet,
        progress=progress,
    )  # fmt: skip
    check_numbers(bootstrap, goodness, level, seed)
    fitted, _ = run_fit(read, settings, seed, progress, bootstrap, goodness, float(level))
    return fitted.without(_names(drop)) if drop else fitted


def check_numbers(bootstrap: int, goodness: int, level: float, seed: int | np.random.Generator) -> None:
    """Raise a `FitError` if a number of replicates, the level or the seed is not valid."""
    whole(bootstrap, "bootstrap", 0, MOST_REPLICATES, FitError)
    whole(goodness, "goodness", 0, MOST_REPLICATES, FitError)
    if not isinstance(seed, np.random.Generator):
        whole(seed, "seed", error=FitError)
    between_0_and_1(level, "level", FitError)


def prepared(
    records: Any,
    *,
    structure: Any,
    noticed: Sequence[str],
    default_action: str | None,
    assume: Mapping[str, str] | None,
    drop: Sequence[str],
    time: str,
    at_once: Sequence[str],
    errors: Mapping[str, Any] | None,
    start: str,
    age_breaks: Sequence[float],
    skip_contradictions: bool,
    **reading: Any,
) -> tuple[Records, FitSettings]:
    """Return the records, read as `reading` says, and what is to be fitted; raise a `FitError` if they do not go together."""
    assumptions = dict(assume or {})
    if time not in ("discrete", "continuous"):
        raise FitError(unknown_name("time", time, ("discrete", "continuous")))
    continuous = time == "continuous"
    if at_once and not continuous:
        raise FitError("at_once is for continuous time; give time='continuous' (--time continuous), or leave it out")
    if errors is None and start != SEEN:
        raise FitError(
            f"start is {quoted(start)}, but records are taken to be right; say how they may be wrong with errors=..."
        )
    breaks = _checked_breaks(age_breaks)
    noticed, at_once, drop = (_names(one) for one in (noticed, at_once, drop))
    read = read_records(
        records,
        default_action=default_action,
        untried=list(assumptions),
        continuous=continuous,
        skip_contradictions=skip_contradictions,
        **reading,
    )
    for action in drop:
        if action not in read.action_names:
            raise FitError(unknown_name("action to drop", action, read.action_names))
    check_assumptions(assumptions, read.state_names)
    jumping = [action for action, target in assumptions.items() if continuous and target in read.state_names]
    settings = FitSettings(
        structure=structure,
        noticed=tuple(noticed),
        default_action=default_action,
        assume=assumptions,
        at_once=tuple(dict.fromkeys([*at_once, *jumping])),
        errors=errors,
        start=start,
        age_breaks=breaks,
        skip_contradictions=skip_contradictions,
    )
    return read, settings


def run_fit(
    records: Records,
    settings: FitSettings,
    seed: int | np.random.Generator,
    progress: Progress,
    bootstrap: int,
    goodness: int,
    level: float,
) -> tuple[Fit, ChainEstimate]:
    """Return the fit and its estimate; with breaks of age, with a diagnostic of whether these make a difference."""
    nested = None
    if settings.age_breaks:
        constant = EstimationRun(records, replace(settings, age_breaks=()), np.random.default_rng(0), ignore_progress)
        without = constant.fit(0, 0, level)
        nested = constant.estimate
    run = EstimationRun(records, settings, np.random.default_rng(seed), progress, nested)
    fitted = run.fit(bootstrap, goodness, level)
    if settings.age_breaks:
        statistic, degrees, p_value = likelihood_ratio(without, fitted)
        code = "age-matters" if p_value <= SIGNIFICANT else "age-does-not-matter"
        note = diagnostic(code, statistic=statistic, degrees=degrees, p_value=p_value)
        fitted = replace(fitted, notes=(*fitted.notes, note))
    return fitted, run.estimate


def likelihood_ratio(smaller: Fit, larger: Fit) -> tuple[float, int, float]:
    """Return the likelihood ratio statistic of two nested fits, its degrees of freedom and the p-value (chi-squared)."""
    statistic = max(0.0, 2 * (larger.log_likelihood - smaller.log_likelihood))
    degrees = max(1, larger.free_parameters - smaller.free_parameters)
    return statistic, degrees, float(stats.chi2.sf(statistic, degrees))


def _names(given: Sequence[str]) -> Sequence[str]:
    """Return names as a list, also where one name is given as it is."""
    return [given] if isinstance(given, str) else given


def _checked_breaks(breaks: Sequence[float]) -> tuple[float, ...]:
    """Return breaks of age as numbers; raise a `FitError` if they are not above 0 and ascending."""
    if isinstance(breaks, str) or not isinstance(breaks, (Sequence, np.ndarray)):
        raise FitError(f"age_breaks is {quoted(breaks)}, expected a list of numbers such as [10, 20]")
    found = tuple(amount(one, "a break of age", above_zero=True, error=FitError) for one in breaks)
    if any(later <= earlier for earlier, later in pairwise(found)):
        raise FitError(f"the breaks of age are {', '.join(f'{one:g}' for one in found)}, expected ascending numbers")
    return found


class EstimationRun:
    """The steps of a fit, from gaps between inspections to the result.

    Parameters
    ----------
    records : Records
    settings : FitSettings
    rng : numpy Generator
    progress : function of (task, done, total)
    nested : ChainEstimate, optional
        The estimate without groups and breaks of age, where another search starts.

    Attributes
    ----------
    estimate : ChainEstimate
        After `fit`: the estimate.
    """

    estimate: ChainEstimate

    def __init__(
        self,
        records: Records,
        settings: FitSettings,
        rng: np.random.Generator,
        progress: Progress,
        nested: ChainEstimate | None = None,
    ) -> None:
        self._records, self._settings, self._progress, self._nested = records, settings, progress, nested
        self._starts_rng, self._bootstrap_rng, self._goodness_rng = rng.spawn(3)
        self._notes = list(records.notes)
        self._left_out: list[int] = []
        self._use(self._find_gaps())
        self._check_possible()
        self._notes += _data_diagnostics(self._records, self._gaps)

    def _find_gaps(self) -> Gaps:
        settings = self._settings
        return find_gaps(
            self._records,
            settings.default_action,
            settings.noticed,
            settings.at_once,
            settings.age_breaks,
            settings.by_group,
            np.array(self._left_out, dtype=np.int64),
        )

    def _use(self, gaps: Gaps) -> None:
        """Set the gaps, and what follows from them: the likelihood and which parameters there are."""
        records, settings = self._records, self._settings
        self._gaps = gaps
        size, repeats = gaps.n_states, gaps.n_strata
        rates = ~gaps.at_once if gaps.continuous else None
        masks, self._structures = allowed_transitions(
            settings.structure, records.action_names, records.state_names, rates
        )
        blocks, known = [np.tile(masks, (repeats, 1, 1))], [np.full((gaps.n_blocks, size, size), np.nan)]
        errors = None
        if settings.errors is not None:
            possible, chances = possible_errors(settings.errors, records.state_names, settings.noticed)
            blocks.append(possible[None])
            known.append(chances[None])
            start = _start_of(settings.start, records.state_names)
            errors = RecordErrors(unit_events(gaps, records, with_first=start != SEEN), start)
            if start == DRAWN:
                first = np.zeros((1, size, size), dtype=bool)
                first[0, 0] = True
                blocks.append(first)
                known.append(np.where(first, np.nan, 0.0))
        self._allowed, self._known = np.concatenate(blocks), np.concatenate(known)
        self._likelihood = Likelihood(gaps, errors)
        self._data = self._likelihood.data()
        # Random starts and searches within smaller structures are for likelihoods that may have several maxima.
        self._is_plain = errors is None and not gaps.continuous

    def fit(self, bootstrap: int, goodness: int, level: float) -> Fit:
        """Estimate the parameters, check whether they are determined, test the fit and resample units."""
        self._progress("fitting", 0, 1)
        estimate, unknown, fixed, assumed = self._first_estimate(self._inspected())
        records, gaps, inspected = self._records, self._gaps, self._inspected()
        estimate, others, starts = self._best(estimate, fixed)
        self.estimate = estimate
        flat = flat_directions(self._likelihood, estimate, fixed)
        confounded = confounded_errors(self._likelihood, estimate, fixed)
        replication = Replication(
            self._likelihood, estimate.parameters, self._start(self._allowed, fixed), fixed, self._progress
        )
        tested = self._goodness(replication, goodness)
        missing = (unknown & ~assumed)[:, :, None]
        drawn = self._resampled(replication, bootstrap, level)
        low, high = (None, None) if drawn is None else self._intervals(estimate, fixed, drawn, level)
        results = _Results(self._likelihood, missing, estimate, drawn, low, high, level)
        counts: dict[str, Any] = fit_counts(records, gaps)
        arrays: dict[str, Any] = results.arrays()
        return Fit(
            state_names=records.state_names,
            action_names=self._block_names(),
            level=level,
            log_likelihood=estimate.log_likelihood,
            converged=estimate.converged,
            free_parameters=int((self._allowed & np.isnan(fixed)).sum() - self._sums(fixed)),
            goodness=tested,
            identifiability=tuple(self._identifiability(flat, others, confounded, starts)),
            warnings=(*records.warnings, *self._little_data(unknown, assumed)),
            notes=tuple(self._notes),
            initial=self._initial(estimate),
            inspected=inspected,
            exposure=estimate.exposure[: gaps.n_blocks],
            assumed=assumed,
            structure=self._structures * gaps.n_strata,
            noticed=tuple(np.array(records.state_names)[gaps.noticed].tolist()),
            dropped=(),
            period=records.period,
            time="continuous" if gaps.continuous else "discrete",
            at_once=tuple(name for name, at_once in zip(records.action_names, gaps.at_once, strict=True) if at_once),
            default_action=records.action_names[gaps.default],
            age_breaks=tuple(float(one) for one in gaps.age_breaks),
            start=None if self._likelihood.errors is None else self._settings.start,
            **arrays,
            **counts,
        )

    def _sums(self, fixed: FloatArray) -> int:
        """Return the number of rows of probabilities in which one parameter follows from the others."""
        free = (self._allowed & np.isnan(fixed)).any(axis=2)
        return int((free & ~self._likelihood.rates[:, :, 0]).sum())

    def _block_names(self) -> tuple[str, ...]:
        """Return the names of the blocks of actions: with breaks of age, each action with its interval of age."""
        names, breaks = self._records.action_names, self._gaps.age_breaks
        if breaks:
            names = tuple(f"{name}, {interval}" for interval in age_names(breaks) for name in names)
        if self._settings.by_group:
            names = tuple(f"{group}: {name}" for group in self._records.group_names for name in names)
        return names

    def _inspected(self) -> npt.NDArray[np.int64]:
        """Return how often a unit was inspected in a state and the action was done next, by block, (n_blocks, S)."""
        gaps, action = self._gaps, self._records.action[self._gaps.record]
        interval = np.searchsorted(np.array(gaps.age_breaks), gaps.age, side="right")
        if self._settings.by_group and self._records.group is not None:
            interval += self._records.group[gaps.unit] * (1 + len(gaps.age_breaks))
        block = interval * gaps.n_actions + np.where(action < 0, gaps.default, action)
        table = np.zeros((gaps.n_blocks, gaps.n_states), dtype=np.int64)
        np.add.at(table, (block, gaps.begin), 1)
        return table

    def _initial(self, estimate: ChainEstimate) -> FloatArray:
        """Return the distribution of the state at the units' first inspections."""
        gaps, errors = self._gaps, self._likelihood.errors
        if errors is not None and errors.start == DRAWN:
            drawn: FloatArray = estimate.parameters[-1, 0].copy()
            return drawn
        if errors is not None and errors.start != SEEN:
            given: FloatArray = np.eye(gaps.n_states)[int(errors.start)]
            return given
        first = np.unique(gaps.unit, return_index=True)[1]
        return np.bincount(gaps.begin[first], minlength=gaps.n_states) / len(first)

    def _start(self, allowed: npt.NDArray[np.bool_], fixed: FloatArray) -> FloatArray:
        """Return the start of the main search."""
        if self._is_plain:
            return persistent_start(allowed, fixed)
        return counted_start(self._likelihood, allowed, fixed)

    def _determined(self) -> npt.NDArray[np.bool_]:
        """Return the rows that the structure determines, (n_blocks, S): one possible transition, or no intensity above 0."""
        n_blocks = self._gaps.n_blocks
        most = np.where(self._likelihood.rates[:n_blocks, :, 0], 0, 1)
        determined: npt.NDArray[np.bool_] = self._allowed[:n_blocks].sum(axis=2) <= most
        return determined

    def _first_estimate(
        self, inspected: npt.NDArray[np.int64]
    ) -> tuple[ChainEstimate, npt.NDArray[np.bool_], FloatArray, npt.NDArray[np.bool_]]:
        """Return the estimate, rows without information (A, S), fixed parameters (B, S, S) and rows by assumption (A, S)."""
        gaps, assumptions = self._gaps, self._settings.assume
        estimate = maximise(self._likelihood, self._data, self._start(self._allowed, self._known), self._known)
        least = LEAST_EXPOSURE * self._likelihood.mean_length
        unknown = (estimate.exposure[: gaps.n_blocks] < least) & (inspected == 0)
        unknown &= ~self._determined()
        if not assumptions:
            return estimate, unknown, self._known, np.zeros_like(unknown)
        rows, assumed, notes = assumed_rows(
            unknown, assumptions, self._records.action_names, self._records.state_names, gaps.rate_blocks
        )
        self._notes += notes
        fixed = self._known.copy()
        fixed[: gaps.n_blocks] = rows
        if assumed.any():
            self._check_possible(fixed)
            estimate = maximise(self._likelihood, self._data, self._start(self._allowed, fixed), fixed)
        return estimate, unknown, fixed, assumed

    def _check_possible(self, fixed: FloatArray | None = None) -> None:
        """Raise a `FitError` that names the record if the structure, errors or assumptions exclude what was recorded.

        If the settings say so, leave that out instead, with a note: gaps; or, where records may be wrong, records, and
        units whose first record cannot be.
        """
        fixed = self._known if fixed is None else fixed
        if self._likelihood.errors is not None:
            self._check_records(fixed)
            return
        wrong = self._contradictions(self._start(self._allowed, fixed))
        if not wrong.size:
            return
        if not self._settings.skip_contradictions:
            raise FitError(self._contradiction(wrong))
        gaps = self._gaps
        ends = gaps.last_record[wrong]
        self._notes.append(self._left_out_note("contradictions-left-out", ends, all_gaps=len(gaps.begin)))
        self._left_out += ends.tolist()
        self._use(self._find_gaps())

    def _check_records(self, fixed: FloatArray) -> None:
        """Do what `_check_possible` does where records may be wrong: a record that cannot be is left out, and gaps are longer."""
        skip = self._settings.skip_contradictions
        first = self._impossible_first(fixed)
        if first.size:
            if not skip:
                raise FitError(self._wrong_first(first))
            self._notes.append(self._left_out_note("contradicting-units-left-out", first))
            units = np.isin(self._records.unit, self._records.unit[first])
            self._records = self._records.without_inspections(np.flatnonzero(units))
            self._use(self._find_gaps())
        left_out: list[int] = []
        while (wrong := self._contradictions(self._start(self._allowed, fixed))).size:
            if not skip:
                raise FitError(self._contradiction(wrong))
            left_out += self._gaps.last_record[wrong].tolist()
            self._records = self._records.without_inspections(self._gaps.last_record[wrong])
            self._use(self._find_gaps())
        if left_out:
            self._notes.append(self._left_out_note("contradicting-records-left-out", np.array(left_out)))

    def _left_out_note(self, code: str, records: npt.NDArray[np.int64], **numbers: int) -> Diagnostic:
        """Return the diagnostic about what was left out at some records."""
        lines = sorted(self._records.line[records].tolist())
        return diagnostic(code, count=len(records), lines=tuple(lines[:SHOWN_LINES]), **numbers)

    def _impossible_first(self, fixed: FloatArray) -> npt.NDArray[np.int64]:
        """Return the first records of units that cannot be, where units are known to start in a certain state."""
        errors, records = self._likelihood.errors, self._records
        assert errors is not None
        if errors.start in (SEEN, DRAWN):
            return np.array([], dtype=np.int64)
        inspections = np.flatnonzero(records.state >= 0)
        first = inspections[np.unique(records.unit[inspections], return_index=True)[1]]
        chances = self._start(self._allowed, fixed)[self._gaps.n_blocks, int(errors.start)]
        impossible: npt.NDArray[np.int64] = first[chances[records.state[first]] <= 0]
        return impossible

    def _wrong_first(self, first: npt.NDArray[np.int64]) -> str:
        """Return the message about first records that cannot be with the start."""
        records, start = self._records, self._settings.start
        record = int(first[np.argmin(records.line[first])])
        state, unit = records.state_names[records.state[record]], records.unit_names[records.unit[record]]
        more = f", and so {counted(len(first) - 1, 'more unit')}" * (len(first) > 1)
        allow = f"allow the error (--error {start}:{state}), " * (state not in self._settings.noticed)
        return (
            f"{records.location(record)}: unit {unit!r} was first recorded in {state!r}{more}, which cannot be if units start in "
            f"{start!r} with the errors given; {allow}estimate where units start with start='drawn' (--start drawn), or leave "
            "such units out with skip_contradictions=True (--skip-contradictions)"
        )

    def _contradictions(self, start: FloatArray) -> npt.NDArray[np.int64]:
        """Return the gaps that are impossible."""
        gaps, errors = self._gaps, self._likelihood.errors
        if errors is None:
            ends = self._likelihood.end_probabilities(start)
            ends = np.c_[ends, ends.sum(axis=1)]
            return np.flatnonzero(ends[gaps.group, gaps.end] <= 0)
        places = gap_events(errors.events)
        ends = self._likelihood.record_probabilities(start, errors.events)[places]
        ends = np.c_[ends, ends.sum(axis=1)]
        # After an impossible record the filter has no distribution, so that only the first of a unit counts.
        wrong = np.flatnonzero(ends[np.arange(len(places)), gaps.end] <= 0)
        return wrong[np.unique(gaps.unit[wrong], return_index=True)[1]]

    def _contradiction(self, wrong: npt.NDArray[np.int64]) -> str:
        """Return the message about impossible gaps."""
        gaps, records = self._gaps, self._records
        gap = int(wrong[np.argmin(records.line[gaps.last_record[wrong]])])
        end = gaps.last_record[gap]
        done = (
            f"only {records.action_names[gaps.action[gap]]!r}"
            if gaps.action[gap] < gaps.n_actions
            else "several actions"
        )
        rules = ", ".join(f"{name}: {kind}" for name, kind in zip(records.action_names, self._structures, strict=True))
        seen = f"in {records.state_names[gaps.end[gap]]!r}" if gaps.end[gap] < gaps.n_states else "still running"
        more = f" and {counted(len(wrong) - 1, 'more time')}" * (len(wrong) > 1)
        begin, unit = records.state_names[gaps.begin[gap]], records.unit_names[gaps.unit[gap]]
        action = records.action_names[gaps.action[gap]] if gaps.action[gap] < gaps.n_actions else "repair"
        return (
            f"{records.location(end)}: unit {unit!r} was seen in {begin!r} at time {records.when(gaps.record[gap])} and {seen} "
            f"at time {records.when(end)} after {done}{more}, which cannot be with the states in the order "
            f"{' < '.join(records.state_names)} and the structure or assumptions given ({rules}); {self._reversal(len(wrong))}"
            f"correct the record, or allow it: structure={{{action!r}: 'any'}} (--structure {action}=any), or leave such "
            "gaps out with skip_contradictions=True (--skip-contradictions)"
        )

    def _reversal(self, wrong: int) -> str:
        """Return the question whether the order of the states is reversed, if that would remove the contradictions."""
        flipped = self._allowed.copy()
        flipped[: self._gaps.n_blocks] = flipped[: self._gaps.n_blocks, ::-1, ::-1]
        left = len(self._contradictions(self._start(flipped, self._known)))
        if left * FEWER > wrong:
            if all(note.code != "states-sorted" for note in self._records.notes):
                return ""
            return "that is how they sort; give their order, the best first, with states=[...] (--states ...), or "
        names = list(reversed(self._records.state_names))
        return f"did you mean states={names} (--states {','.join(names)})? Otherwise "

    def _best(self, estimate: ChainEstimate, fixed: FloatArray) -> tuple[ChainEstimate, list[ChainEstimate], int]:
        """Return the best estimate of several starts, different ones that are as likely, and the number of random starts."""
        likelihood, data = self._likelihood, self._data
        best = refine(likelihood, data, estimate, self._allowed, fixed)
        informed = estimate.exposure[: self._gaps.n_blocks] >= LEAST_EXPOSURE
        plain = self._is_plain and self._gaps.n_strata == 1
        if plain and (one_step_counts(likelihood)[informed] >= ENOUGH_SHORT_GAPS).all():
            return best, [], 0
        for one in self._other_starts(fixed):
            if one.log_likelihood > best.log_likelihood - PROMISING:
                best = better(best, refine(likelihood, data, one, self._allowed, fixed))
        starts = FEW_STARTS if likelihood.errors is None else ERROR_STARTS
        if self._is_plain:
            starts = MORE_STARTS if np.gcd.reduce(self._gaps.length) > 1 else STARTS
        found, others = other_chains(likelihood, best, self._allowed, fixed, starts, self._starts_rng)
        if found is not best:
            best = better(best, refine(likelihood, data, found, self._allowed, fixed))
        return self._without_rare(best, fixed), others, starts

    def _without_rare(self, best: ChainEstimate, fixed: FloatArray) -> ChainEstimate:
        """Return the best estimate of searches that start at the best one so far without a transition or error that is rare.

        Of two ways that explain a few records, a search keeps the one it comes to first; without it, the other one can rise.
        """
        likelihood, data = self._likelihood, self._data
        tried: set[bytes] = set()
        while len(tried) < MOST_WITHOUT:
            for start in starts_without(best, fixed, RARELY):
                if start.tobytes() in tried or len(tried) == MOST_WITHOUT:
                    continue
                tried.add(start.tobytes())
                if not np.isfinite(likelihood.gradient(start, data)[0]):
                    continue
                one = maximise(likelihood, data, start, fixed, least_gain=ROUGH_GAIN)
                if one.log_likelihood < best.log_likelihood - CLOSE:
                    continue
                one = refine(likelihood, data, one, self._allowed & ~((start == 0) & (best.parameters > 0)), fixed)
                one = refine(likelihood, data, one, self._allowed, fixed)
                if better(best, one) is one:
                    best = one
                    break
            else:
                break
        return best

    def _other_starts(self, fixed: FloatArray) -> Iterator[ChainEstimate]:
        """Yield the estimates of searches from the counts of transitions and within smaller structures."""
        likelihood, data = self._likelihood, self._data
        if self._is_plain:
            yield maximise(likelihood, data, counted_start(likelihood, self._allowed, fixed), fixed)
        if likelihood.rates.any():
            yield maximise(likelihood, data, fast_start(likelihood, self._allowed, fixed), fixed)
        if self._nested is not None:
            dynamic = len(self._nested.parameters) - (likelihood.n_blocks - self._gaps.n_blocks)
            repeats = self._gaps.n_blocks // dynamic
            whole = np.concatenate(
                [np.tile(self._nested.parameters[:dynamic], (repeats, 1, 1)), self._nested.parameters[dynamic:]]
            )
            whole = np.where(np.isnan(fixed), whole, fixed)
            if np.isfinite(likelihood.gradient(whole, data)[0]):
                yield maximise(likelihood, data, whole, fixed)
        for mask in nested_masks(self._allowed, self._gaps.n_blocks, self._gaps.n_actions):
            start = self._start(mask, fixed)
            if np.isfinite(likelihood.gradient(start, data)[0]):
                nested = maximise(likelihood, data, start, fixed)
                yield refine(likelihood, data, nested, mask, fixed)

    def _little_data(self, unknown: npt.NDArray[np.bool_], assumed: npt.NDArray[np.bool_]) -> Iterator[Diagnostic]:
        """Yield actions and states with little or no data, few units, and what is wrong with the maximum."""
        estimate, records, gaps = self.estimate, self._records, self._gaps
        states, names, determined = records.state_names, self._block_names(), self._determined()
        unit = float(gaps.length.mean()) if gaps.continuous else 1.0
        units = len(np.unique(gaps.unit))
        if not estimate.converged:
            yield diagnostic("estimation-not-converged")
        if units < FEW_UNITS:
            yield diagnostic("few-units", units=units)
        for number, action in enumerate(names):
            rows = np.flatnonzero(unknown[number] & ~assumed[number])
            if len(rows) == len(states):
                yield diagnostic("action-without-data", action=action)
            elif rows.size:
                yield diagnostic(
                    "action-without-data-in-states", action=action, states=tuple(states[row] for row in rows)
                )
            is_jump = gaps.continuous and gaps.at_once[number % gaps.n_actions]
            least = LITTLE_EXPOSURE * (1.0 if is_jump else unit)
            exposure = estimate.exposure[number]
            few = np.flatnonzero(~(unknown | assumed | determined)[number] & (exposure < least) & (exposure > 0))
            if few.size:
                yield diagnostic(
                    "little-exposure",
                    action=action,
                    states=tuple(states[row] for row in few),
                    periods=tuple(exposure[few].tolist()),
                    least=least,
                    unit=("times" if is_jump else _units_of_time(records.period)) if gaps.continuous else "periods",
                )
        yield from _left_unseen(estimate, unknown | assumed, records, gaps)
        fastest = estimate.rates & (estimate.parameters >= 0.99 * FASTEST / unit)
        for block, state, to in np.argwhere(fastest):
            yield diagnostic("intensity-at-limit", action=names[block], begin=states[state], end=states[to])

    def _identifiability(
        self,
        flat: list[FloatArray] | None,
        others: list[ChainEstimate],
        confounded: Confounded | None,
        starts: int,
    ) -> Iterator[Diagnostic]:
        """Yield what records with such gaps do not determine, whatever their number."""
        gaps, best = self._gaps, self.estimate
        states, actions = self._records.state_names, self._records.action_names
        if flat is None:
            yield diagnostic("flat-directions-not-checked", most=MOST_FREE)
        if flat:
            entries = [entry for entry in largest_entries(flat) if entry[0] < gaps.n_blocks]
            yield diagnostic(
                "flat-directions",
                directions=len(flat),
                actions=tuple(actions[block % gaps.n_actions] for block, _, _ in entries),
                begins=tuple(states[begin] for _, begin, _ in entries),
                ends=tuple(states[end] for _, _, end in entries),
            )
        if confounded is not None:
            block, begin, end = confounded.transition
            yield diagnostic(
                "errors-confounded",
                state=states[confounded.error[0]],
                recorded=states[confounded.error[1]],
                standard_error=confounded.standard_error,
                action=actions[block % gaps.n_actions],
                begin=states[begin],
                end=states[end],
                correlation=confounded.correlation,
            )
        common = 1 if gaps.continuous else math.gcd(*np.unique(gaps.length).tolist())
        if common > 1:
            yield diagnostic("gaps-with-common-factor", periods=common, other_chains=len(others), starts=starts)
        if others:
            informed = informed_rows(self._likelihood, best)[:, :, None]
            differences = [np.where(informed, np.abs(one.parameters - best.parameters), 0.0) for one in others]
            changes = [one[: gaps.n_blocks] for one in differences]
            number, *entry = np.unravel_index(int(np.argmax(changes)), np.shape(changes))
            block, begin, end = (int(part) for part in entry)
            yield diagnostic(
                "several-chains",
                action=actions[block % gaps.n_actions],
                begin=states[begin],
                end=states[end],
                probability=float(best.parameters[block, begin, end]),
                other_probability=float(others[number].parameters[block, begin, end]),
                what="rate" if gaps.rate_blocks[block] else "probability",
            )

    def _goodness(self, replication: Replication, replicates: int) -> Goodness | None:
        if not replicates:
            return None
        names = (self._records.state_names, self._records.action_names, self._records.period or "period")
        tested = goodness_of_fit(replication, names, replicates, self._goodness_rng)
        done = 0 if tested is None else tested.replicates
        if done < replicates:
            self._notes.append(diagnostic("goodness-incomplete", done=done, requested=replicates))
        return tested

    def _resampled(self, replication: Replication, replicates: int, level: float) -> FloatArray | None:
        """Return the parameters of resampled units, (n, B, S, S); None if there are fewer than two."""
        if not replicates:
            return None
        drawn = resample(replication, replicates, self._bootstrap_rng)
        if len(drawn) < replicates:
            self._notes.append(diagnostic("intervals-incomplete", done=len(drawn), requested=replicates))
        if len(drawn) < 2:
            return None
        needed = math.ceil((1 + level) / (1 - level) - SAME_LEVEL)
        if len(drawn) < needed:
            held = (len(drawn) - 1) / (len(drawn) + 1)
            self._notes.append(diagnostic("few-replicates", done=len(drawn), level=level, held=held, needed=needed))
        return drawn

    def _intervals(
        self, estimate: ChainEstimate, fixed: FloatArray, drawn: FloatArray, level: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the intervals of all parameters, (B, S, S)."""
        low, high = intervals(estimate.parameters, estimate.transitions, drawn, level, estimate.rates)
        known = ~np.isnan(fixed)
        return np.where(known, fixed, low), np.where(known, fixed, high)


class _Results:
    """The arrays of a fit from the parameters of the estimate and of the replicates.

    Parameters
    ----------
    likelihood : Likelihood
    missing : bool array, shape (n_blocks, S, 1)
        Rows without information.
    estimate : ChainEstimate
    drawn : float64 array, shape (n, B, S, S), or None
    low, high : float64 arrays, shape (B, S, S), or None
    level : float
    """

    def __init__(
        self,
        likelihood: Likelihood,
        missing: npt.NDArray[np.bool_],
        estimate: ChainEstimate,
        drawn: FloatArray | None,
        low: FloatArray | None,
        high: FloatArray | None,
        level: float,
    ) -> None:
        self._gaps, self._missing, self._level = likelihood.gaps, missing, level
        self._errors = likelihood.errors
        self._parts = {"": estimate.parameters, "_low": low, "_high": high, "bootstrap_": drawn}

    def arrays(self) -> dict[str, FloatArray | None]:
        """Return the arrays by their names in `Fit`."""
        n_blocks = self._gaps.n_blocks
        dynamics = {
            part: None if values is None else np.where(self._missing, np.nan, values[..., :n_blocks, :, :])
            for part, values in self._parts.items()
        }
        errors = {
            part: None if values is None or self._errors is None else values[..., n_blocks, :, :]
            for part, values in self._parts.items()
        }
        return {
            **(self._of_a_period(dynamics) if self._gaps.continuous else _named("probabilities", dynamics, short=True)),
            **_named("dynamics", dynamics if self._gaps.continuous else dict.fromkeys(dynamics)),
            **_named("errors", errors),
        }

    def _of_a_period(self, dynamics: dict[str, FloatArray | None]) -> dict[str, FloatArray | None]:
        """Return the transition probabilities of a period of length 1, with intervals from the replicates."""
        gaps, fitted = self._gaps, dynamics[""]
        assert fitted is not None
        jumps = np.tile(gaps.at_once, gaps.n_strata)
        stratum = np.arange(gaps.n_blocks) // gaps.n_actions
        stratum = np.where(jumps, stratum - stratum % (1 + len(gaps.age_breaks)), stratum)  # after a jump the age is 0
        default = stratum * gaps.n_actions + gaps.default
        probabilities = over_period(fitted, jumps, default, 1.0)
        drawn = dynamics["bootstrap_"]
        if drawn is None:
            return {"probabilities": probabilities, "low": None, "high": None, "bootstrap": None}
        replicates = np.array([over_period(one, jumps, default, 1.0) for one in drawn])
        low, high = quantile_interval(replicates, self._level)
        return {
            "probabilities": probabilities,
            "low": np.minimum(low, probabilities),
            "high": np.maximum(high, probabilities),
            "bootstrap": replicates,
        }


def _named(name: str, parts: dict[str, FloatArray | None], short: bool = False) -> dict[str, FloatArray | None]:
    """Return arrays by their names in `Fit`; those of probabilities are short: low, high and bootstrap."""
    low, high, drawn = ("low", "high", "bootstrap") if short else (f"{name}_low", f"{name}_high", f"bootstrap_{name}")
    return {name: parts[""], low: parts["_low"], high: parts["_high"], drawn: parts["bootstrap_"]}


def _start_of(start: str, states: Sequence[str]) -> str | int:
    """Return `start` with the name of a state as its number."""
    if start in (SEEN, DRAWN):
        return start
    if start not in states:
        raise FitError(unknown_name("start", start, [SEEN, DRAWN, *states]))
    return list(states).index(start)


def fit_counts(records: Records, gaps: Gaps) -> dict[str, int]:
    """Return the numbers of units, records and inspections of a fit."""
    return {
        "n_units": gaps.n_units,
        "n_records": len(records.unit),
        "n_inspections": int((records.state >= 0).sum()),
    }


def _data_diagnostics(records: Records, gaps: Gaps) -> Iterator[Diagnostic]:
    """Yield what was filled in, what could not be used, and times that look like dates."""
    if gaps.filled:
        code = "actions-filled-in-between" if gaps.continuous else "actions-filled-in"
        action = records.action_names[gaps.default]
        yield diagnostic(code, periods=gaps.filled, action=action, actions=len(records.action_names))
    useful = len(np.unique(gaps.unit))
    if useful < gaps.n_units:
        yield diagnostic("units-without-change", units=gaps.n_units - useful, all_units=gaps.n_units)
    look_like_dates = (records.time >= 1900_01_01) & (records.time <= 2100_12_31)
    if look_like_dates.all() and len(records.time) > 1 and not records.has_dates:
        yield diagnostic("times-look-like-dates")


def _left_unseen(
    estimate: ChainEstimate, not_estimated: npt.NDArray[np.bool_], records: Records, gaps: Gaps
) -> Iterator[Diagnostic]:
    """Yield the states after which no unit was inspected, although the estimate lets units leave them unseen."""
    last = np.r_[records.unit[1:] != records.unit[:-1], True]
    diagonal = np.eye(gaps.n_states, dtype=bool)
    leaving = np.where(diagonal | not_estimated[:, :, None], 0.0, estimate.transitions[: gaps.n_blocks]).sum(
        axis=(0, 2)
    )
    for state in np.flatnonzero((leaving >= 1.0) & (np.bincount(gaps.begin, minlength=gaps.n_states) == 0)):
        name, is_last = records.state_names[state], state == gaps.n_states - 1
        units = int((last & (records.state == state)).sum())
        yield diagnostic("state-left-unseen", state=name, units=units, structure="absorbing" if is_last else "mask.csv")


def _units_of_time(period: str | None) -> str:
    """Return `years`, or what times without a name are counted in."""
    return "units of time" if period is None else f"{period}s"
