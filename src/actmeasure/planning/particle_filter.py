"""Beliefs as particles on models with any measurements: moved, weighted by outcomes, and redrawn where too few are left."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from actmeasure.belief import Belief
from actmeasure.errors import ModelError, PlanError
from actmeasure.kernels import pomcp, streams
from actmeasure.kernels.outcomes import outcome_probability
from actmeasure.kernels.simulate import MeasuredWorld
from actmeasure.model import Model

__all__ = ["ParticleFilter", "draw_particles"]

#: Effective number of particles below which they are drawn from the exact belief, as a fraction of their number.
LEAST_EFFECTIVE = 0.1
#: Largest number of transitions, times steps since it was last computed, for which the exact belief is computed.
MOST_EXACT_WORK = 10**7


def draw_particles(belief: Belief, particles: npt.NDArray[np.int64], stream: Any) -> None:
    """Fill particles, shape (n,), with states drawn from a belief."""
    uniform = np.array([streams.random(stream) for _ in range(len(particles))])
    drawn = np.searchsorted(np.cumsum(belief.probabilities), uniform, side="right")
    particles[:] = belief.states[np.minimum(drawn, len(belief.states) - 1)]


class ParticleFilter:
    """Particles of the present belief, which follow decisions and outcomes.

    Where an outcome leaves too few of them they are drawn from the exact belief, if that is affordable and the model does not
    rule the outcome out. Otherwise those that are left are kept; if none is, states that can give the outcome are drawn
    uniformly.

    Parameters
    ----------
    model : Model
    measured : MeasuredWorld
        Arrays of the model.
    particles : int64 array, shape (n,)
        Changed in place.

    Attributes
    ----------
    reinvigorated : int
        Number of particles so far that were replaced because they disagreed with what happened, or were too few.
    deprivations : int
        Number of times that no particle was left.
    """

    def __init__(self, model: Model, measured: MeasuredWorld, particles: npt.NDArray[np.int64]) -> None:
        self.model, self.measured, self.particles = model, measured, particles
        self._moved, self._weights = np.zeros_like(particles), np.zeros(len(particles))
        self._exact: Belief | None = None  # before the steps in `_since`; None where it is not known
        self._since: list[tuple[int, int, int | None]] = []
        self.reinvigorated, self.deprivations = 0, 0

    def start(self, belief: Belief, stream: Any) -> None:
        """Draw the particles from a belief."""
        draw_particles(belief, self.particles, stream)
        self._exact, self._since = belief, []

    def update(self, action: int, measurement: int, outcome: int | None, stream: Any) -> None:
        """Condition the particles on a decision and its outcome, after which the episode still runs."""
        shows = self.model.shown_by(measurement)
        if shows is not None and shows.law is None and outcome is not None:
            self.particles[:] = outcome
            self._exact, self._since = Belief.at(outcome), []
            return
        self._remember(action, measurement, outcome)
        rejected, effective = pomcp.update_particles(
            self.measured, self.particles, self._moved, self._weights, action, measurement,
            -1 if outcome is None else outcome, stream,
        )  # fmt: skip
        self.reinvigorated += int(rejected)
        if effective >= LEAST_EFFECTIVE * len(self.particles):
            return
        redrawn_from = self._exact_belief()
        if effective == 0:
            if redrawn_from is None:
                redrawn_from = self._consistent_states(action, measurement, outcome)
            self.deprivations += 1
        if redrawn_from is not None:
            draw_particles(redrawn_from, self.particles, stream)
            self.reinvigorated += len(self.particles) - int(rejected)
            self._exact, self._since = redrawn_from, []

    def _remember(self, action: int, measurement: int, outcome: int | None) -> None:
        """Note a step from which the exact belief can be computed later, as long as that is affordable."""
        self._since.append((action, measurement, outcome))
        if self._exact is None or len(self._since) * len(self.model.transitions.successors) > MOST_EXACT_WORK:
            self._exact, self._since = None, []

    def _exact_belief(self) -> Belief | None:
        """Return the belief by Bayes' rule, None where it is not affordable or the model rules out what happened."""
        belief = self._exact
        try:
            for action, measurement, outcome in self._since:
                belief = None if belief is None else belief.update(self.model, action, measurement, outcome)
        except ModelError:
            return None
        return None if belief is None or belief.is_over else belief

    def _consistent_states(self, action: int, measurement: int, outcome: int | None) -> Belief:
        """Return the uniform belief over the running states in which an outcome is possible."""
        laws, seen = self.measured.outcomes, -1 if outcome is None else outcome
        possible = np.array(
            [
                not ended and outcome_probability(laws, measurement, action, state, seen) > 0
                for state, ended in enumerate(self.model.terminal.tolist())
            ]
        )
        if not possible.any():
            name = "nothing" if outcome is None else repr(self.model.outcome_name(measurement, outcome))
            raise PlanError(
                f"{name} was seen and the episode goes on, but no state in which it runs can give that after action "
                f"{self.model.action_name(action)!r}; check the outcome, or plan on the model of the task"
            )
        return Belief.from_distribution(possible)
