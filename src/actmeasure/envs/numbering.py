"""The numbers that stand for outcomes in the observations of an environment with any measurements."""

from __future__ import annotations

from operator import index

import numpy as np

from actmeasure.errors import SpaceError, quoted
from actmeasure.model import Model
from actmeasure.settings import whole

__all__ = ["SHOWN_START", "Numbering"]

#: Stands for a measurement where an observation is the first state, shown for free.
SHOWN_START = -1


class Numbering:
    """The observations of a model's environment: one number for every outcome.

    Where looks are exact, observations are the states, and then *nothing seen*. Otherwise they are the outcomes of all
    measurements in a row, then the passive outcomes, then the states if the start is shown, then *nothing seen*.

    Parameters
    ----------
    model : Model

    Attributes
    ----------
    counts : tuple of int, length 1 + k
        Number of outcomes without a measurement (of the passive one, 0 if there is none), and of each measurement.
    first : tuple of int, length 1 + k
        Observation of the first outcome of each of them.
    first_start : int
        Observation that shows that the episode began in state 0, where the start is shown.
    nothing : int
        The last observation: *nothing seen*.
    size : int
        Number of observations.
    """

    def __init__(self, model: Model) -> None:
        self.counts = tuple(model.n_outcomes(number) for number in range(1 + len(model.measurements)))
        ends = np.cumsum([0, *self.counts[1:], self.counts[0]]).tolist()  # the passive outcomes come last
        self.first = (ends[-2], *ends[:-2])
        if model.looks_are_exact:
            self.first_start, self.nothing = 0, model.n_states
        else:
            self.first_start = ends[-1]
            self.nothing = self.first_start + (model.n_states if model.reveal_start else 0)
        self.size = self.nothing + 1
        self._looks_are_exact = model.looks_are_exact

    def observation(self, measurement: int, outcome: int | None) -> int:
        """Return the observation of an outcome; with None that of *nothing seen*. The inverse of `outcome`."""
        if outcome is None:
            return self.nothing
        number = whole(measurement, "the measurement", SHOWN_START, len(self.counts) - 1, SpaceError)
        if number == SHOWN_START:
            n_shown = self.nothing - self.first_start
            return self.first_start + whole(outcome, "the first state that is shown", 0, n_shown - 1, SpaceError)
        return int(self.first[number]) + whole(outcome, "the outcome", 0, self.counts[number] - 1, SpaceError)

    def outcome(self, observation: int) -> tuple[int, int | None]:
        """Return the measurement and the outcome, a number within that measurement, that an observation stands for.

        *Nothing seen* is `(0, None)`, a passive outcome `(0, outcome)`, and a first state that is shown `(-1, state)`; where
        looks are exact it is `(1, state)` as any other.
        """
        try:
            number = index(observation)
        except TypeError:
            number = -1
        if not 0 <= number < self.size:
            raise SpaceError(
                f"the observation is {quoted(observation)}, expected a whole number from 0 to {self.nothing}"
            )
        if number == self.nothing:
            return 0, None
        if not self._looks_are_exact and number >= self.first_start:
            return SHOWN_START, number - self.first_start
        for measurement in (*range(1, len(self.counts)), 0):
            if number < self.first[measurement] + self.counts[measurement]:
                return measurement, number - self.first[measurement]
        raise AssertionError(number)
