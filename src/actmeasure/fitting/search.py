"""The steps of a fit, from gaps between inspections to the result."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from actmeasure.errors import FitError
from actmeasure.fitting.assumptions import assumed_rows
from actmeasure.fitting.estimation import Estimate, maximise, persistent_start
from actmeasure.fitting.gaps import Gaps
from actmeasure.fitting.goodness import Goodness
from actmeasure.fitting.goodness_tests import goodness_of_fit
from actmeasure.fitting.identifiability import flat_directions, one_step_counts, other_chains
from actmeasure.fitting.intervals import intervals
from actmeasure.fitting.likelihood import FloatArray, Likelihood
from actmeasure.fitting.progress import Progress
from actmeasure.fitting.records import Records
from actmeasure.fitting.resampling import resample
from actmeasure.fitting.result import Fit
from actmeasure.fitting.weaknesses import ambiguity, data_notes, little_data

__all__ = ["Search"]

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
