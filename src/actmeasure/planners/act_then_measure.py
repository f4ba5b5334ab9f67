"""Act-then-measure: choose the control as if the state were shown from now on, then decide whether to look.

Three readings of when to look: the best moment (`exact`), as the paper runs it (`with_q_mdp`), and its equations as printed
(`linear`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from actmeasure.belief import Belief
from actmeasure.decision import Decision
from actmeasure.kernels import stopping
from actmeasure.model import Model
from actmeasure.planners.baselines import control_actions
from actmeasure.planners.bounds import informed_bounds
from actmeasure.planners.clock import Clock
from actmeasure.planners.control import Control
from actmeasure.planners.plan import Plan
from actmeasure.planners.values import values_of
from actmeasure.schedule import BlindPlan, Ending, Schedule
from actmeasure.transitions import FloatArray
from actmeasure.unrolling import unroll
from actmeasure.world import dynamics

__all__ = ["exact", "linear", "with_q_mdp"]

#: Blind paths are followed no longer than this; where the discount is below 1 what comes later is worth nothing.
LONGEST_PATH = 5_000
#: A plan is replaced if another is better by this much, relatively.
BETTER = 1e-10
ENDINGS: dict[int, Ending] = {
    stopping.LOOK: "measure",
    stopping.KNOWN: "known",
    stopping.END: "end",
    stopping.ON: "repeat",
}


def exact(model: Model, tolerance: float, clock: Clock) -> Plan:
    """Act-then-measure with the true value of looking.

    The control settles the blind path out of a known state, so when to look is a matter of optimal stopping along it. By the
    paper's Lemma 1 no other rule of when to look is better with this control. Without discount that holds as far as policy
    iteration from looking always gets: going round in a circle for nothing may be missed.
    """
    stops = _Stops(model, Control(model), clock)
    return Plan(stops.settled_schedule(), stops.known)


class _Stops:
    """The best moments to look, for all states that a look along the control's paths can show; by policy iteration."""

    def __init__(self, model: Model, control: Control, clock: Clock) -> None:
        self.model, self.clock = model, clock
        self._arrays = dynamics(model)
        self._room = stopping.make_room(model.n_states, model.n_actions)
        self._always = Schedule.always_measure(control_actions(control))
        self._paths = stopping.Paths(
            q_values=control.values,
            tie_values=control.tie_values,
            known=values_of(model, self._always),
            ceiling=informed_bounds(model, clock)[0],
            touched=np.isin(np.arange(model.n_states), model.initial_states),
            actions=np.empty(LONGEST_PATH, np.int64),
        )

    @property
    def known(self) -> FloatArray:
        """What each state is worth once it is known, shape (S,)."""
        return np.asarray(self._paths.known)

    def settled_schedule(self) -> Schedule:
        """Choose the best moments, evaluate exactly, and choose again until nothing gets better."""
        plans: dict[int, BlindPlan] = {}
        if not self.model.start_is_known:
            self._start_plan()  # brings up the states that it may come to know
        while self._improve(plans):
            self.clock.check("the best moments to look")
            self._paths.known[:] = np.maximum(self.known, values_of(self.model, Schedule(plans, self.model.n_states)))
        start = None if self.model.start_is_known else self._start_plan()
        return Schedule(plans, self.model.n_states, start)

    def _start_plan(self) -> BlindPlan:
        """The plan from a start that is not shown."""
        count = len(self.model.initial_states)
        self._room.weights.states[:count] = self.model.initial_states
        self._room.weights.values[:count] = self.model.initial_probabilities
        stop = stopping.best_stop(self._arrays, self.model.discount, self._paths, self._room, count)
        return _plan(self._paths.actions[: stop.length], stop.ending, stop.period)

    def _improve(self, plans: dict[int, BlindPlan]) -> bool:
        """Replace plans by strictly better ones, and plan for states that come up; whether anything changed.

        What is only as good stays: without discount, an equal might lead round in a circle for ever.
        """
        changed, looked_at = False, np.zeros(self.model.n_states, dtype=bool)
        while len(states := np.flatnonzero(self._paths.touched & ~looked_at)):
            looked_at[states] = True
            out, values = np.empty((len(states), 4), np.int64), np.empty(len(states))
            actions = stopping.stops_from(
                self._arrays, self.model.discount, self._paths, self._room, states, out, values
            )  # fmt: skip
            known = self.known[states]
            better = values > known + BETTER * np.where(np.isfinite(known), 1 + np.abs(known), 0.0)
            for state, (length, ending, period, begin), is_better in zip(states.tolist(), out, better, strict=True):
                best = _plan(actions[begin : begin + length], int(ending), int(period)) if is_better else None
                plan = best or plans.get(state, self._always[state])
                changed |= plans.get(state) != plan
                plans[state] = plan
        return changed


def _plan(actions: npt.NDArray[np.int64], ending: int, period: int) -> BlindPlan:
    return BlindPlan(tuple(actions.tolist()), then=ENDINGS[ending], repeat=period if ending == stopping.ON else 0)


def with_q_mdp(model: Model, tolerance: float, clock: Clock) -> Plan:
    """Act-then-measure as the paper runs it: the value of looking is estimated with values that hold when looking is free.

    On a known model this can walk in circles for ever: going back always seems better than acting on a doubtful belief, and
    never worth the price of a look.
    """
    control = Control(model)
    best = control.values.max(axis=1)

    def policy(belief: Belief) -> Decision:
        action = control(belief)
        after = belief.predict(model, action)
        if after.is_over:
            return Decision(action, False)
        running = belief.running_probability(model, action)
        regret = best - control.values[:, control(after)]
        price = float(belief.expected(model.measuring_costs[:, action]))
        worth = model.discount * running * float(after.expected(regret)) - price
        return Decision(action, after.known is None and worth >= 0)

    schedule = unroll(model, policy, depth=LONGEST_PATH, settle=True)
    return Plan(schedule, values_of(model, schedule))


def linear(model: Model, tolerance: float, clock: Clock) -> Plan:
    """The paper's Bellman equations as printed, in which the value of a belief is the mean of its states' values.

    That claim is false. The equations then are those of the fast informed bound, so that what they claim is at least the
    optimum, while the schedule that is greedy in them may earn nothing.
    """
    values, vectors = informed_bounds(model, clock)

    def policy(belief: Belief) -> Decision:
        choice = int(np.argmax(belief.expected(vectors)))
        return Decision(choice // 2, choice % 2 == 1)

    schedule = unroll(model, policy, depth=LONGEST_PATH, settle=True)
    if model.start_is_known:
        claimed = float(model.initial_probabilities @ values[model.initial_states])
    else:
        claimed = float(Belief.start(model).expected(vectors).max())
    return Plan(schedule, values_of(model, schedule), claimed=claimed)
