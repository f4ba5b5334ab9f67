"""What a user should know before trusting a fit, in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from actmeasure.errors import shown
from actmeasure.inspection.economics import Economics
from actmeasure.inspection.estimation import Estimate, FloatArray
from actmeasure.inspection.fit_result import Fit
from actmeasure.inspection.gaps import Gaps
from actmeasure.inspection.records import Records
from actmeasure.inspection.uncertainty import MOST_FREE, entries

__all__ = ["ambiguity", "data_notes", "fit_notes", "little_data"]

#: Rows with fewer periods of data are reported.
LITTLE = 10.0
FEW_UNITS = 20


def data_notes(records: Records, gaps: Gaps) -> list[str]:
    """What was filled in or could not be used."""
    notes = []
    if gaps.filled:
        how = "as asked for" if len(records.action_names) > 1 else "the only action there is"
        notes.append(
            f"{gaps.filled:,} periods without a recorded action count as {records.action_names[gaps.default]!r}, {how}."
        )
    useful = len(np.unique(gaps.unit))
    if useful < gaps.n_units:
        notes.append(
            f"{gaps.n_units - useful:,} of {gaps.n_units:,} units were inspected only once or never; they tell nothing "
            "about change."
        )
    looks_like_dates = (records.time >= 1900_01_01) & (records.time <= 2100_12_31)
    if looks_like_dates.all() and len(records.time) > 1:
        notes.append("The times look like dates without dashes, but were read as numbers of periods; write 2024-05-31.")
    return notes


def little_data(
    estimate: Estimate, unknown: npt.NDArray[np.bool_], assumed: npt.NDArray[np.bool_], records: Records, gaps: Gaps
) -> list[str]:
    """Actions and states with little or no data."""
    found = []
    states = records.state_names
    if len(np.unique(gaps.unit)) < FEW_UNITS:
        found.append(
            f"So few units tell about change ({len(np.unique(gaps.unit))}) that intervals, which take units at random, are rough."
        )
    for number, action in enumerate(records.action_names):
        rows = np.flatnonzero(unknown[number] & ~assumed[number])
        if len(rows) == len(states):
            found.append(f"Action {action!r} was never tried, or nobody looked afterwards; a model cannot have it.")
        elif rows.size:
            named = ", ".join(states[row] for row in rows)
            found.append(
                f"Action {action!r} was never seen tried in {named}: no model can have it without an assumption there."
            )
        few = np.flatnonzero(~unknown[number] & (estimate.exposure[number] < LITTLE))
        if few.size:
            each = ", ".join(f"{states[row]} ({estimate.exposure[number, row]:.1f})" for row in few)
            found.append(f"Action {action!r} has fewer than {LITTLE:.0f} periods of data in state {each}.")
    if not estimate.converged:
        found.append("The search for the most likely probabilities had not settled; they are rough.")
    return found


def ambiguity(
    flat: list[FloatArray] | None, others: list[Estimate], best: Estimate, records: Records, gaps: Gaps, starts: int
) -> list[str]:
    """What such records cannot tell, however many there are."""
    found = []
    states, actions = records.state_names, records.action_names
    if flat is None:
        found.append(
            f"Not checked: with more than {MOST_FREE:,} probabilities it would take too long to find flat directions."
        )
    if flat:
        ways = "There is a way" if len(flat) == 1 else f"There are {len(flat)} ways"
        found.append(
            f"{ways} to change the probabilities that such records cannot show, as gaps hide it; most of all these, of which one "
            f"choice of many is shown: {entries(flat, states, actions)}."
        )
    common = math.gcd(*np.unique(gaps.length).tolist())
    if common > 1:
        told = f"All gaps are multiples of {common} periods"
        if others:
            found.append(f"{told}, and the records fix only what happens in {common} periods.")
        else:
            found.append(
                f"{told}; only what happens in {common} periods is seen. {starts} searches from random starts led to the same "
                "probabilities, but that is no proof that no others have the same effect."
            )
    if others:
        furthest = max(others, key=lambda one: float(np.abs(one.probabilities - best.probabilities).max()))
        change = furthest.probabilities - best.probabilities
        place = np.unravel_index(int(np.argmax(np.abs(change))), change.shape)
        action, state, to = (int(part) for part in place)
        found.append(
            f"Several chains fit equally well: {actions[action]} from {states[state]} to {states[to]}, for example, has "
            f"probability {best.probabilities[place]:.3f} in one and {furthest.probabilities[place]:.3f} in another, with the "
            "same likelihood. One of them is shown; inspections after other gaps, best of 1 period, or a structure would tell."
        )
    return found


# ----------------------------------------------------------------------------------------------------
# What a fit itself has to say about the plan that rests on it.
# ----------------------------------------------------------------------------------------------------


def fit_notes(fit: Fit, economics: Economics) -> Iterator[str]:
    """Sentences: what does not fit, what the records cannot tell, what was assumed, and what the plan takes for granted."""
    if fit.goodness is not None and fit.goodness.findings:
        yield f"The model does not fit the records in all respects, so mind the plan: {shown(fit.goodness.findings[0])}"
        yield from map(shown, fit.goodness.findings[1:])
    yield from map(shown, (*fit.warnings, *fit.identifiability, *fit.notes))
    for state in economics.failure_states:
        if state not in economics.terminal and not economics.running.get(state):
            yield (
                f"By the prices a unit that stays in {state!r} costs nothing after it has failed; if it does, give that a price "
                "under [running]."
            )
    for state in fit.noticed:
        if state not in economics.terminal:
            yield (
                f"State {state!r} is noticed at once in the records, but the plan assumes that nobody notices it before the "
                "next inspection; what is done when it is noticed is not in the figures."
            )
