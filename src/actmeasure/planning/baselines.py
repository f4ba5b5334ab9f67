"""What people do today: look always, or by the calendar."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from actmeasure.belief import Belief
from actmeasure.evaluation import evaluate
from actmeasure.kernels.stopping import TIE
from actmeasure.model import Model
from actmeasure.model.transitions import FloatArray
from actmeasure.planning.bounds import ALMOST_ONE, informed_bounds, start_bound
from actmeasure.planning.budget import Clock
from actmeasure.planning.solution import Plan
from actmeasure.planning.value_iteration import free_action_values, mdp_values
from actmeasure.schedule import BlindPlan, Schedule

__all__ = ["Control", "always", "always_schedule", "every", "values_of"]

# ----------------------------------------------------------------------------------------------------
# Act-then-measure's control: greedy in the values that hold when looking is free.
# ----------------------------------------------------------------------------------------------------


class Control:
    """The control action for a belief: the one with the highest mean value as if the state were shown from then on.

    Ties go to the first action, without discount to the one that ends the episode sooner.
    """

    def __init__(self, model: Model, clock: Clock | None = None) -> None:
        clock = clock or Clock()
        self.model = model
        #: Upper bounds on the values of states when looking is free, shape (S,).
        self.bounds: FloatArray = mdp_values(model, clock)
        #: The same of actions, shape (S, A), up to rounding.
        self.values: FloatArray = free_action_values(model, clock, self.bounds)
        #: What decides between equals, shape (S, A).
        self.tie_values: FloatArray = np.zeros_like(self.values)
        if model.discount == 1:
            self.tie_values = free_action_values(model.replace(discount=ALMOST_ONE), clock)

    @property
    def actions(self) -> npt.NDArray[np.int64]:
        """The control action in every state once it is known, shape (S,); -1 in terminal ones."""
        return np.where(self.model.terminal, -1, _choose(self.values, self.tie_values))

    def __call__(self, belief: Belief) -> int:
        return int(_choose(belief.expected(self.values), belief.expected(self.tie_values)))


def _choose(means: FloatArray, ties: FloatArray) -> npt.NDArray[np.int64]:
    """The best action, and the best tie value among equals; `means` and `ties` have the actions as last axis."""
    best = means.max(axis=-1, keepdims=True)
    ties = np.where(means >= best - TIE * (1 + np.abs(best)), ties, -np.inf)
    return np.asarray(np.argmax(ties >= ties.max(axis=-1, keepdims=True) - TIE, axis=-1))


# ----------------------------------------------------------------------------------------------------
# What a schedule is worth from every state that it has a plan for.
# ----------------------------------------------------------------------------------------------------


def values_of(model: Model, schedule: Schedule) -> FloatArray:
    """Discounted return from each state once it is known, shape (S,): 0 where terminal, -infinity where there is no plan."""
    planned = schedule.plan_of_state >= 0
    values = np.where(model.terminal, 0.0, -np.inf)
    if planned.any():
        anywhere = model.replace(initial=planned / planned.sum(), reveal_start=True)
        values[planned] = evaluate(anywhere, schedule).values[planned]
    return values


def always(model: Model, tolerance: float, clock: Clock) -> Plan:
    """Look at every step, with the control that is best when looking is free."""
    control = Control(model, clock)
    schedule = always_schedule(control)
    return Plan(schedule, values_of(model, schedule), _upper(control, clock))


def always_schedule(control: Control) -> Schedule:
    """The control action in every state, and a look with each."""
    start = None if control.model.start_is_known else control(Belief.start(control.model))
    return Schedule.always_measure(control.actions, start)


def _upper(control: Control, clock: Clock) -> float:
    return start_bound(control.model, *informed_bounds(control.model, clock, control.bounds))


def every(model: Model, k: int, clock: Clock) -> Plan:
    """Look at every k-th step, with act-then-measure's control in between."""
    control = Control(model, clock)
    start, found = None, [int(state) for state in model.initial_states]
    if not model.start_is_known:
        start, found = _calendar(control, Belief.start(model), k, clock)
    plans: dict[int, BlindPlan] = {}
    while found:
        state = found.pop()
        if state not in plans:
            plans[state], further = _calendar(control, Belief.at(state), k, clock)
            found += further
    schedule = Schedule(plans, model.n_states, start)
    return Plan(schedule, values_of(model, schedule), _upper(control, clock))


def _calendar(control: Control, belief: Belief, k: int, clock: Clock) -> tuple[BlindPlan, list[int]]:
    """k actions from a belief, the last with a look, and the states that it may show."""
    actions: list[int] = []
    for _ in range(k):
        clock.check("the calendar's plans")
        if belief.is_over:
            return BlindPlan(tuple(actions), then="end"), []
        actions.append(control(belief))
        belief = belief.predict(control.model, actions[-1])
    return BlindPlan(tuple(actions), then="measure"), [int(state) for state in belief.states]
