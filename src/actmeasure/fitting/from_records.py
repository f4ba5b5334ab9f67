"""Fit a Markov chain per action to records of inspections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from actmeasure.errors import FitError, quoted, unknown_name
from actmeasure.fitting.assumptions import check_assumptions
from actmeasure.fitting.gaps import find_gaps
from actmeasure.fitting.progress import Progress, ignore_progress
from actmeasure.fitting.records import read_records
from actmeasure.fitting.result import Fit
from actmeasure.fitting.search import Search
from actmeasure.fitting.structures import allowed_transitions
from actmeasure.settings import real, whole

__all__ = ["fit"]

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
