"""What a planner earns that decides as it goes, by simulation."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from actmeasure import statistics
from actmeasure.belief import Belief
from actmeasure.errors import PlanError, quoted
from actmeasure.interrupts import deferred_interrupts
from actmeasure.kernels import streams
from actmeasure.kernels.simulate import World, first_state, move
from actmeasure.planners.clock import Clock
from actmeasure.planners.pomcp import POMCP
from actmeasure.settings import MOST_EPISODES, MOST_STEPS, real, whole
from actmeasure.transitions import FloatArray
from actmeasure.world import world

__all__ = ["Mean", "SimulatedReturn", "simulate"]


@dataclass(frozen=True)
class Mean:
    """A mean over episodes, and its 95 % interval by Student's t; not numbers for one episode, or equal ones."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, found: FloatArray) -> Mean:
        """Of one number for every episode."""
        return cls(*statistics.mean(found))

    def __str__(self) -> str:
        return f"{self.value:.4g}" if math.isnan(self.low) else f"{self.value:.4g} ({self.low:.4g} to {self.high:.4g})"


@dataclass(frozen=True)
class SimulatedReturn:
    """What a planner earned in simulated episodes.

    Attributes
    ----------
    discounted_return, scalarized_return : Mean
        Reward minus measuring cost, with the model's discount and without one.
    measurements, steps : Mean
    episodes : int
        How many were finished.
    seconds : float
    stopped : str
        `done`, `time` or `interrupted`.
    lost : int
        How often all particles of a belief had died out and it was made up.
    """

    discounted_return: Mean
    scalarized_return: Mean
    measurements: Mean
    steps: Mean
    episodes: int
    seconds: float
    stopped: str
    lost: int

    def __str__(self) -> str:
        rows = {
            "discounted return": self.discounted_return, "return": self.scalarized_return,
            "looks": self.measurements, "steps": self.steps,
        }  # fmt: skip
        lines = [f"{name:<18} {mean}" for name, mean in rows.items()]
        lines.append(f"{'episodes':<18} {self.episodes} in {self.seconds:.1f} s; the intervals cover 95 %")
        if self.lost:
            lines.append(f"A belief had died out and was made up {self.lost} times; use more particles.")
        if self.stopped != "done":
            why = "the time was over" if self.stopped == "time" else "it was stopped"
            lines.append(f"There are fewer episodes than asked for, as {why}.")
        return "\n".join(lines)


def simulate(
    planner: POMCP,
    episodes: int = 100,
    seed: int = 0,
    max_steps: int = 200,
    time_limit: float | None = None,
    progress: Callable[[int, Mean], None] | None = None,
) -> SimulatedReturn:
    """Let a planner act in the model it plans on, and say what it earns.

    Parameters
    ----------
    planner : POMCP
    episodes : int
    seed : int
        Episodes are those of `train` with the same seed.
    max_steps : int
        An episode is cut off after this many steps.
    time_limit : float, optional
        Seconds, after which the current episode is the last.
    progress : function, optional
        Called after every episode with how many there are and the discounted return so far.

    Returns
    -------
    SimulatedReturn
        Of fewer episodes, if the time was over or Ctrl-C was pressed.

    Examples
    --------
    >>> import actmeasure as am
    >>> planner = am.planners.POMCP(am.problems.measuring_value(), simulations=500, exploration=1.0)
    >>> am.planners.simulate(planner, episodes=20).episodes
    20
    """
    if not isinstance(planner, POMCP):
        raise PlanError(f"the planner is {quoted(planner)}, expected a POMCP")
    count, seed = whole(episodes, "episodes", 1, MOST_EPISODES, PlanError), whole(seed, "seed", error=PlanError)
    max_steps = whole(max_steps, "max_steps", 1, MOST_STEPS, PlanError)
    clock = Clock(None if time_limit is None else _seconds(time_limit))
    place, entropy, stream = world(planner.model), streams.entropy_words(seed), streams.make_stream()
    found, lost, stopped = np.zeros((count, 4)), planner.lost, None
    with deferred_interrupts() as interrupts:
        for episode in range(count):
            planner.reseed(seed, episode)
            streams.seed_stream(stream, entropy, episode, streams.WORLD)
            found[episode] = _one_episode(planner, place, stream, max_steps)
            if progress is not None:
                progress(episode + 1, Mean.of(found[: episode + 1, 0]))
            stopped = clock.stops(interrupts)
            if stopped is not None:
                break
    done = found[: episode + 1]
    stopped = "done" if len(done) == count or stopped is None else stopped
    discounted, total, looks, steps = (Mean.of(done[:, column]) for column in range(4))
    return SimulatedReturn(discounted, total, looks, steps, len(done), clock.seconds, stopped, planner.lost - lost)


def _seconds(limit: float) -> float:
    found = real(limit, "time_limit", PlanError)
    if not found > 0:
        raise PlanError(f"time_limit is {limit!r}, expected a number of seconds above 0")
    return found


def _one_episode(planner: POMCP, place: World, stream: FloatArray, max_steps: int) -> tuple[float, float, int, int]:
    """Discounted and undiscounted return, measurements and steps of an episode."""
    model = planner.model
    state = int(first_state(place, stream))
    planner.begin(Belief.at(state) if model.reveal_start else Belief.start(model))
    discounted, total, looks, factor = 0.0, 0.0, 0, 1.0
    for step in range(1, max_steps + 1):
        decision = planner.decide()
        cost = float(model.measuring_costs[state, decision.action]) if decision.measure else 0.0
        state, reward, ended = move(place, state, decision.action, stream)
        discounted += factor * (reward - cost)
        total, looks, factor = total + reward - cost, looks + decision.measure, factor * model.discount
        if ended:
            return discounted, total, looks, step
        planner.observe(decision, int(state) if decision.measure else None)
    return discounted, total, looks, max_steps
