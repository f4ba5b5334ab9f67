"""Act-then-measure: choose the control as if looking were free from then on, then decide whether to look.

Three readings of when to look: at the best moment (`ActThenMeasure`), as the paper's code runs it (`AtmQmdp`), and by the paper's
equations as printed (`AtmLinear`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from actmeasure.belief import Belief
from actmeasure.decision import Decision
from actmeasure.evaluation import values_of
from actmeasure.kernel_arrays import dynamics
from actmeasure.kernels import stopping
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray
from actmeasure.planning.baselines import always_schedule
from actmeasure.planning.belief_plans import atm_plan, atm_qmdp_plan
from actmeasure.planning.bounds import Control, informed_bounds, start_bound
from actmeasure.planning.budget import Budget, Stopped
from actmeasure.planning.solution import Plan
from actmeasure.policy import unroll
from actmeasure.schedule import BlindPlan, Ending, Schedule

__all__ = ["ActThenMeasure", "AtmLinear", "AtmQmdp"]

IntArray = npt.NDArray[np.int64]

#: Largest number of steps of a blind path; with a discount below 1, what comes later is worth next to nothing.
LONGEST_CONTROL_PATH = 5_000
#: Relative gain from which on a plan replaces another.
BETTER = 1e-10
#: States planned for between two checks of the budget.
STATES_PER_CHECK = 32
#: A state counts as losing if its value is below minus this; smaller losses may be rounding errors.
LOSING = 1e-12
#: Loss that stands for minus infinity while ways out of a state are compared, as a multiple of the largest value.
LARGE_LOSS = 1e6
ENDINGS: dict[int, Ending] = {
    stopping.LOOK: "measure",
    stopping.KNOWN: "known",
    stopping.END: "end",
    stopping.ON: "repeat",
}


@dataclass(frozen=True)
class ActThenMeasure:
    """Act-then-measure with the exact value of looking.

    The control determines the blind path out of a known state, so when to look is optimal stopping along that path. By the
    paper's Lemma 1 no other rule of when to look is better with this control.
    """

    def solve(self, model: Model, budget: Budget) -> Plan:
        """Return the best schedule with this control; when the budget is over, the best so far, at worst looking always.

        Where looks are not exact, a policy graph with the best choice of measurements along the control, as far as it reaches.
        """
        if not model.is_exact_look_model:
            return atm_plan(model, budget)
        control = Control(model, budget)
        ceiling, vectors = informed_bounds(model, budget, control.bounds)
        upper = start_bound(model, ceiling, vectors)
        stops = _Stops(model, control, ceiling)
        with budget.deferred_interrupts():
            budget.note(stops.lower, upper)
            stopped = stops.settle(upper, budget)
        return Plan(stops.schedule(complete=stopped == "done"), upper, stops.values, stopped)


@dataclass(frozen=True)
class AtmQmdp:
    """Act-then-measure as the paper's code runs it: the value of looking is estimated with values that hold if looking is free.

    On a known model this can go round in a cycle without end: going back always seems better than acting on an uncertain belief,
    and looking never seems worth its price.
    """

    def solve(self, model: Model, budget: Budget) -> Plan:
        """Return the schedule, with the fast informed bound on the optimum; a policy graph where looks are not exact."""
        if not model.is_exact_look_model:
            return atm_qmdp_plan(model, budget)
        control = Control(model, budget)
        best = control.values.max(axis=1)

        def policy(belief: Belief) -> Decision:
            budget.check("the plans")
            action = control(belief)
            after = belief.predict(model, action)
            if after.is_over:
                return Decision(action, False)
            running = belief.running_probability(model, action)
            regret = best - control.values[:, control(after)]
            price = float(belief.expected(model.measuring_costs[:, action]))
            worth = model.discount * running * float(after.expected(regret)) - price
            return Decision(action, after.known is None and worth >= 0)

        schedule = unroll(model, policy, depth=LONGEST_CONTROL_PATH, settle=True)
        upper = start_bound(model, *informed_bounds(model, budget, control.bounds))
        return Plan(schedule, upper, values_of(model, schedule))


@dataclass(frozen=True)
class AtmLinear:
    """The paper's Bellman equations as printed, in which the value of a belief is the mean of its states' values.

    That claim is false. The equations are those of the fast informed bound, so the value that they claim is at least the optimum,
    while the schedule that is greedy in them may earn nothing.
    """

    def solve(self, model: Model, budget: Budget) -> Plan:
        """Return the schedule and the value claimed for it, which is an upper bound on the optimum."""
        model.require_exact_looks("the method atm-linear", "use atm or atm-qmdp")
        values, vectors = informed_bounds(model, budget)

        def policy(belief: Belief) -> Decision:
            budget.check("the plans")
            choice = int(np.argmax(belief.expected(vectors)))
            return Decision(choice // 2, choice % 2 == 1)

        schedule = unroll(model, policy, depth=LONGEST_CONTROL_PATH, settle=True)
        claimed = start_bound(model, values, vectors)
        return Plan(schedule, claimed, values_of(model, schedule), claimed=claimed)


class _Stops:
    """Policy iteration over the moments to look, for all states that a look along the control's paths can show.

    It begins with looking at every step. Replacing plans by strictly better ones never lowers a value, so it may be stopped at
    any time. Plans of equal value are kept: without discount, another one might lead round in a cycle without end.

    Parameters
    ----------
    model : Model
    control : Control
    ceiling : float64 array, shape (S,)
        Upper bounds on the values of states once they are known.
    """

    def __init__(self, model: Model, control: Control, ceiling: FloatArray) -> None:
        self.model = model
        self._arrays = dynamics(model)
        self._buffers = stopping.make_buffers(model.n_states, model.n_actions)
        self._always = always_schedule(control)
        self._plans: dict[int, BlindPlan] = {}
        known = np.nan_to_num(values_of(model, self._always), nan=-np.inf, neginf=-np.inf)
        #: States for which no plan with a finite value is known yet; a large loss stands in, so that plans can be compared.
        self._lost = ~np.isfinite(known)
        loss = LARGE_LOSS * (1 + np.abs(ceiling).max() + np.abs(known[~self._lost]).max(initial=0.0))
        self._paths = stopping.Paths(
            q_values=control.values,
            tie_values=control.tie_values,
            known=np.where(self._lost, -loss, known),
            ceiling=ceiling,
            touched=np.isin(np.arange(model.n_states), model.initial_states),
            actions=np.empty(LONGEST_CONTROL_PATH, np.int64),
        )
        if not model.start_is_known:
            self._start_stop()  # marks the states that it may come to know

    @property
    def values(self) -> FloatArray:
        """Lower bounds on what is achieved from each state once it is known, shape (S,)."""
        return np.where(self._lost, -np.inf, self._paths.known)

    @property
    def lower(self) -> float:
        """Lower bound on what is achieved from the start."""
        if self.model.start_is_known:
            return float(self.model.initial_probabilities @ self.values[self.model.initial_states])
        value = self._start_stop().value
        return float(value if not self._lost.any() else -np.inf)

    def settle(self, upper: float, budget: Budget) -> Stopped:
        """Choose the best moments to look, evaluate exactly, and repeat until no plan changes; returns why it stopped."""
        look_for_cycles = self.model.discount == 1
        while self._improve(budget) and not budget.stops():
            if look_for_cycles:
                self._add_free_cycles(budget)
                look_for_cycles = False
            exact = values_of(self.model, Schedule(self._plans, self.model.n_states))
            self._paths.known[:] = np.fmax(self._paths.known, exact)
            self._lost &= ~np.isfinite(exact)
            budget.note(self.lower, upper)
        return budget.stops() or "done"

    def schedule(self, complete: bool) -> Schedule:
        """Return the plans so far; unless they are `complete`, other states get the plan to look at every step."""
        start = None if self.model.start_is_known else self._start_plan()
        plans = self._plans if complete else {**self._always, **self._plans}
        return Schedule(plans, self.model.n_states, start)

    def _start_stop(self) -> stopping.Stop:
        """Return the best moment for the first look from a start that is not shown."""
        count = len(self.model.initial_states)
        self._buffers.weights.states[:count] = self.model.initial_states
        self._buffers.weights.values[:count] = self.model.initial_probabilities
        return stopping.best_stop(self._arrays, self.model.discount, self._paths, self._buffers, count)

    def _start_plan(self) -> BlindPlan:
        stop = self._start_stop()
        return _plan(self._paths.actions[: stop.length], stop.ending, stop.period)

    def _improve(self, budget: Budget) -> bool:
        """Replace plans by strictly better ones, and plan for states that have none yet; returns whether anything changed."""
        changed, looked_at = False, np.zeros(self.model.n_states, dtype=bool)
        while len(states := np.flatnonzero(self._paths.touched & ~looked_at)[:STATES_PER_CHECK]) and not budget.stops():
            looked_at[states] = True
            plan_of, values = self._best_plans(self._paths, states)
            known = self._paths.known[states]
            better = values > known + BETTER * (1 + np.abs(known))
            for number, state in enumerate(states.tolist()):
                chosen = plan_of(number) if better[number] else self._plans.get(state, self._always[state])
                changed |= self._plans.get(state) != chosen
                self._plans[state] = chosen
            rising = self._lost[states] & better
            self._paths.known[states[rising]] = values[rising]
        return changed

    def _best_plans(self, paths: stopping.Paths, states: IntArray) -> tuple[Callable[[int], BlindPlan], FloatArray]:
        """Return the best plans from `states`, shape (n,), as a function of the number, and their values.

        The values count `paths.known` at the look.
        """
        out, values = np.empty((len(states), 4), np.int64), np.empty(len(states))
        actions = stopping.stops_from(self._arrays, self.model.discount, paths, self._buffers, states, out, values)

        def plan_of(number: int) -> BlindPlan:
            length, ending, period, begin = out[number].tolist()
            return _plan(actions[begin : begin + length], ending, period)

        return plan_of, values

    def _add_free_cycles(self, budget: Budget) -> None:
        """Without discount: where looking at every step loses, plan to stay in a cycle of plans that cost nothing, if there is
        one.

        No single plan of such a cycle is better than the plan before, so policy iteration alone does not find it. Once every
        state on such a cycle has a value of at least 0, policy iteration ends with the best plans. The states on cycles are those
        left when states from which every plan loses, or leads to such a state, are removed repeatedly.
        """
        free = self._paths.touched.copy()
        below = np.flatnonzero(free & (self._paths.known < -LOSING))
        while len(below):
            paths = self._paths._replace(known=np.where(free, 0.0, -np.inf), touched=self._paths.touched.copy())
            plans: dict[int, BlindPlan] = {}
            for piece in np.array_split(below, -(-len(below) // STATES_PER_CHECK)):
                if budget.stops():
                    return
                plan_of, values = self._best_plans(paths, piece)
                free[piece[values < 0]] = False
                plans.update({state: plan_of(number) for number, state in enumerate(piece.tolist())})
            if free[below].all():
                self._plans.update(plans)
                return
            below = below[free[below]]


def _plan(actions: IntArray, ending: int, period: int) -> BlindPlan:
    return BlindPlan(tuple(actions.tolist()), then=ENDINGS[ending], repeat=period if ending == stopping.ON else 0)
