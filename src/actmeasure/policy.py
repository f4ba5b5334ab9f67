"""Turn a policy, a function of the belief, into a schedule."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from actmeasure.belief import Belief
from actmeasure.decision import Decision
from actmeasure.errors import ScheduleError
from actmeasure.model import Model
from actmeasure.schedule import BlindPlan, Schedule
from actmeasure.settings import whole

__all__ = ["unroll", "unroll_from"]

#: Beliefs that agree to this many decimals count as the same, so that a policy that has come to rest is seen to repeat.
BELIEF_DECIMALS = 12


def unroll(model: Model, policy: Callable[[Belief], Decision], *, depth: int = 1000, settle: bool = False) -> Schedule:
    """Follow a deterministic policy from the start through every state that it comes to know.

    Parameters
    ----------
    model : Model
    policy : function from Belief to Decision
    depth : int
        How many blind steps after a known state are followed at most. A policy that has neither looked nor come to repeat
        itself by then is a `ScheduleError`.
    settle : bool
        Instead of that error, have the policy repeat its last action for ever from then on.
    """
    depth = whole(depth, "depth", 1, error=ScheduleError, what="a whole number of steps")
    start, found = None, [int(state) for state in model.initial_states]
    if not model.start_is_known:
        start, found = unroll_from(model, policy, Belief.start(model), depth, "the start", settle)
    plans: dict[int, BlindPlan] = {}
    while found:
        state = found.pop()
        if state not in plans:
            where = model.describe_state(state)
            plans[state], further = unroll_from(model, policy, Belief.at(state), depth, where, settle)
            found += further
    return Schedule(plans, model.n_states, start)


def unroll_from(
    model: Model,
    policy: Callable[[Belief], Decision],
    belief: Belief,
    depth: int,
    where: str = "the belief",
    settle: bool = False,
) -> tuple[BlindPlan, list[int]]:
    """The plan that the policy follows from a belief, and the states that it may come to know at its end."""
    actions: list[int] = []
    seen = {_key(belief): 0}
    while len(actions) < depth:
        action, measure = _checked(policy(belief), model, where)
        actions.append(action)
        belief = belief.predict(model, action)
        possible = [int(state) for state in belief.states]
        if belief.is_over and not measure:
            return BlindPlan(tuple(actions), then="end"), []
        if measure:
            return BlindPlan(tuple(actions), then="measure"), possible
        if belief.known is not None:
            return BlindPlan(tuple(actions), then="known"), possible
        first = seen.setdefault(_key(belief), len(actions))
        if first < len(actions):
            return BlindPlan(tuple(actions), then="repeat", repeat=len(actions) - first), []
    if settle:
        return BlindPlan(tuple(actions), then="repeat", repeat=1), []
    raise ScheduleError(
        f"the policy neither looked nor came to repeat itself within {depth} blind steps after {where}; "
        "raise depth, or use a policy that looks"
    )


def _key(belief: Belief) -> tuple[bytes, bytes]:
    return belief.states.tobytes(), np.round(belief.probabilities, BELIEF_DECIMALS).tobytes()


def _checked(decision: Decision, model: Model, where: str) -> Decision:
    try:
        action, measure = decision
        valid = 0 <= action < model.n_actions and int(action) == action
    except (TypeError, ValueError):
        valid = False
    if not valid:
        raise ScheduleError(
            f"the policy decided {decision!r} after {where}, expected a Decision with an action from 0 to {model.n_actions - 1}"
        )
    return Decision(int(action), bool(measure))
