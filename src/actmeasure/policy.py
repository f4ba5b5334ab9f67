"""Policies: what decides at each step of an episode, and how a deterministic one becomes a schedule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, cast, runtime_checkable

import numpy as np

from actmeasure.belief import Belief, running_belief
from actmeasure.decision import Decision, expected_decision, is_valid
from actmeasure.errors import ScheduleError, quoted
from actmeasure.kernel_arrays import flat_plans
from actmeasure.kernels import follow_schedule
from actmeasure.kernels.simulate import NOTHING
from actmeasure.model import Model
from actmeasure.schedule import BlindPlan, Schedule
from actmeasure.settings import whole

__all__ = [
    "BeliefFunction",
    "BeliefPolicy",
    "Policy",
    "SchedulePolicy",
    "guide_for",
    "is_deterministic",
    "unroll",
    "unroll_from",
]

#: A policy without memory: a function from the belief to the decision in it.
BeliefFunction = Callable[[Belief], Decision]

#: Decimals to which two beliefs must agree to count as equal when a repetition is looked for.
BELIEF_DECIMALS = 12


@runtime_checkable
class Policy(Protocol):
    """Decides step by step: the protocol of everything that can act.

    An episode is one call of `start`, then `decide` and `observe` in turn for as long as it runs; after the step with which it
    ends, `observe` is not called. Any class with these three methods is a policy, it need not inherit from this one;
    `actmeasure.testing.check_policy` tells whether it keeps the contract.

    A policy whose decisions are random, or that simulates to find them, has the attribute `deterministic = False`; without
    the attribute a policy counts as deterministic.

    Examples
    --------
    >>> import actmeasure as am
    >>> class LookEverySecondStep:
    ...     def start(self, belief):
    ...         self.blind_steps = 0
    ...     def decide(self):
    ...         return am.Decision(0, self.blind_steps == 1)
    ...     def observe(self, outcome):
    ...         self.blind_steps = 0 if outcome is not None else self.blind_steps + 1
    >>> model = am.problems.maintenance()
    >>> am.testing.check_policy(LookEverySecondStep(), model)
    >>> am.unroll(model, LookEverySecondStep()).describe(model).splitlines()[0]
    'after seeing W0: 2x work, then look'
    """

    def start(self, belief: Belief) -> None:
        """Begin an episode, forgetting the one before, with what is known of its first state."""

    def decide(self) -> Decision:
        """Return the action to take next, and the measurement to make with it."""

    def observe(self, outcome: int | None) -> None:
        """Take in the outcome of the last decision: its number within the measurement that was made, None for nothing seen.

        The outcome of an exact measurement is the state; without a measurement it is the passive outcome, if there is one.
        """


def is_deterministic(policy: Policy) -> bool:
    """Return whether a policy always decides the same after the same outcomes: unless its attribute says otherwise."""
    return bool(getattr(policy, "deterministic", True))


class BeliefPolicy:
    """Decides by the belief alone, which it keeps up to date with what is seen: acts in any belief.

    Parameters
    ----------
    model : Model
    decide_at : function from Belief to Decision

    Attributes
    ----------
    belief : Belief
        What is known at present.

    Examples
    --------
    >>> import actmeasure as am
    >>> model = am.problems.maintenance()
    >>> policy = BeliefPolicy(model, lambda belief: am.Decision(0, belief.known is None))
    >>> policy.start(am.Belief.at(0))
    >>> policy.decide()
    Decision(action=0, measurement=0)
    """

    def __init__(self, model: Model, decide_at: BeliefFunction) -> None:
        self.model, self._decide_at = model, decide_at
        self.belief = Belief.start(model)
        self._decided: Decision | None = None

    def start(self, belief: Belief) -> None:
        """Begin an episode with what is known of its first state."""
        self.belief, self._decided = running_belief(self.model, belief), None

    def decide_at(self, belief: Belief) -> Decision:
        """Return the decision in any belief of a running episode."""
        return self._decide_at(running_belief(self.model, belief))

    def decide(self) -> Decision:
        """Return the decision in the present belief."""
        self._decided = self._decide_at(self.belief)
        return self._decided

    def observe(self, outcome: int | None) -> None:
        """Update the belief with the outcome of the step that was decided; None for nothing seen."""
        action, measurement = self.decide() if self._decided is None else self._decided
        self.belief, self._decided = self.belief.update(self.model, action, measurement, outcome), None


class SchedulePolicy:
    """Follows a schedule on the model that it was made for; `schedule.policy(model)` returns one.

    Parameters
    ----------
    schedule : Schedule
    model : Model
        Its dynamics tell which state a plan that ends with `then="known"` leads to.

    Attributes
    ----------
    schedule : Schedule
    model : Model
    guide : actmeasure.kernels.follow_schedule.Guide
        The schedule as arrays, for kernels.
    progress : int64 array, shape (4,)
        The plan that is being followed and the position in it, as `actmeasure.kernels.follow_schedule` defines it.

    Examples
    --------
    >>> import actmeasure as am
    >>> model = am.problems.measuring_value(measuring_cost=0.05)
    >>> policy = am.solve(model).schedule.policy(model)
    >>> policy.start(am.Belief.at(0))
    >>> policy.decide()
    Decision(action=1, measurement=1)
    >>> policy.observe(2)
    >>> policy.decide()
    Decision(action=0, measurement=0)
    """

    def __init__(self, schedule: Schedule, model: Model) -> None:
        if not isinstance(schedule, Schedule):
            raise ScheduleError(f"the schedule is {quoted(schedule)}, expected a Schedule")
        if not isinstance(model, Model):
            raise ScheduleError(f"the model is {quoted(model)}, expected the Model that the schedule was made for")
        model.require_exact_looks("a Schedule", "write the rule as a PolicyGraph")
        schedule.check_fits(model)
        self.schedule, self.model = schedule, model
        self.guide = guide_for(schedule, model)
        self.progress = follow_schedule.new_progress(model.n_states)

    def start(self, belief: Belief) -> None:
        """Take up the plan of the state, if the belief knows it, otherwise the plan for the model's hidden start."""
        known = belief.known
        if known is not None and known in self.schedule:
            self.start_at(known)
        elif belief.is_close(Belief.start(self.model)):
            self.start_at(None)
        elif known is not None:
            self.start_at(known)
        else:
            raise ScheduleError(
                f"the belief is {belief!r}; a schedule has plans for known states and for the model's own start, so start it "
                "with Belief.at(state) or Belief.start(model)"
            )

    def start_at(self, state: int | None) -> None:
        """Take up the plan of a state, or with None that of a start that is not shown."""
        follow_schedule.begin(self.guide, self.progress, self._number(state))

    def decide(self) -> Decision:
        """Return the next decision of the plan; a `ScheduleError` where the schedule has none."""
        if self.progress[follow_schedule.PLAN] < 0:
            raise self.no_decision()
        action, measure = follow_schedule.decide(self.guide, self.progress)
        return Decision(int(action), bool(measure))

    def observe(self, outcome: int | None) -> None:
        """Go on with the plan, or take up that of the state that was seen or has become known."""
        follow_schedule.observe(self.guide, self.progress, self._number(outcome))

    def no_decision(self) -> ScheduleError:
        """Return the error that says why the schedule has no next decision."""
        number, _, origin, _ = self.progress.tolist()
        at_start = origin == self.model.n_states
        where = "a start that is not shown" if at_start else self.model.describe_state(origin)
        if number == follow_schedule.NO_PLAN:
            return ScheduleError(f"the schedule has no plan for {where}, which came up; add a BlindPlan for it")
        plan = _hidden_start_plan(self.schedule, self.model) if at_start else self.schedule[origin]
        claim = {
            "end": "says that the episode is over after it",
            "known": "says that the episode is over, or the state known, after it",
            "measure": "looks at its end, but nothing was shown",
        }[plan.then if plan else "end"]
        return ScheduleError(
            f"the plan for {where} {claim}, but the episode still runs; use the schedule on the model it was made for, or "
            "correct the plan"
        )

    def _number(self, state: int | None) -> int:
        if state is None:
            return NOTHING
        return whole(
            state, "the state that was seen", 0, self.model.n_states - 1, ScheduleError, "None or a whole number"
        )

    def __repr__(self) -> str:
        return f"SchedulePolicy({self.schedule!r})"


def guide_for(schedule: Schedule, model: Model) -> follow_schedule.Guide:
    """Return the arrays by which kernels follow a schedule."""
    start = _hidden_start_plan(schedule, model)
    plans, start_number = flat_plans(schedule, start)
    known_after = np.full(model.n_states + 1, -1, dtype=np.int64)
    known = [number for number, plan in enumerate(schedule.plans) if plan.then == "known"]
    for state in np.flatnonzero(np.isin(schedule.plan_of_state, known)):
        known_after[state] = _state_after(model, Belief.at(int(state)), schedule[int(state)])
    if start is not None and start.then == "known":
        known_after[-1] = _state_after(model, Belief.start(model), start)
    return follow_schedule.Guide(plans, start_number, known_after)


def _hidden_start_plan(schedule: Schedule, model: Model) -> BlindPlan | None:
    """Return the plan for a start that is not shown: its own, or that of the only state it can be."""
    if len(model.initial_states) == 1:
        return schedule.get(int(model.initial_states[0]), schedule.start)
    return None if model.reveal_start else schedule.start


def _state_after(model: Model, belief: Belief, plan: BlindPlan) -> int:
    """Return the state that a plan with `then="known"` leads to, -1 if the episode is over by then."""
    for action in plan.actions:
        belief = belief.predict(model, action)
    if len(belief.states) > 1:
        raise ScheduleError(
            f"a plan ends with then='known', but may lead to {len(belief.states)} states; use then='measure'"
        )
    return -1 if belief.is_over else int(belief.states[0])


def unroll(model: Model, policy: Policy | BeliefFunction, *, depth: int = 1000, settle: bool = False) -> Schedule:
    """Return the schedule that a deterministic policy follows, with a plan for every state that it comes to know.

    Parameters
    ----------
    model : Model
    policy : Policy, or function from Belief to Decision
        A `Policy` must decide the same after a look as when it starts in the state that the look showed: a schedule
        has no other memory. One that does not, or is not deterministic, is a `ScheduleError`.
    depth : int
        Number of blind steps after a known state after which a policy that neither looks nor repeats itself is a
        `ScheduleError`. A `Policy` that has not looked in all these steps counts as one that never does.
    settle : bool
        Instead of that error, have the policy repeat its last action from then on.
    """
    depth = whole(depth, "depth", 1, error=ScheduleError, what="a whole number of steps")
    if isinstance(policy, SchedulePolicy):
        policy.schedule.check_fits(model)
        return policy.schedule
    if isinstance(policy, Policy) and not is_deterministic(policy):
        raise ScheduleError(
            f"the policy is {quoted(policy)}, whose decisions are random, so that no schedule says what it does; let it act: "
            "actmeasure.planners.simulate(planner), or train with an agent that follows it"
        )
    start, reached = None, [int(state) for state in model.initial_states]
    if not model.start_is_known:
        start, reached = unroll_from(model, policy, Belief.start(model), depth, "the start", settle)
    plans: dict[int, BlindPlan] = {}
    while reached:
        state = reached.pop()
        if state not in plans:
            where = model.describe_state(state)
            plans[state], further = unroll_from(model, policy, Belief.at(state), depth, where, settle)
            reached += further
    schedule = Schedule(plans, model.n_states, start)
    if isinstance(policy, Policy):
        _check_is_followed(model, policy, schedule)
    return schedule


def unroll_from(
    model: Model,
    policy: Policy | BeliefFunction,
    belief: Belief,
    depth: int,
    where: str = "the belief",
    settle: bool = False,
) -> tuple[BlindPlan, list[int]]:
    """Return the plan that a policy follows from a belief, and the states that may be known at its end."""
    # A Policy may remember more than the belief: a known state, or a belief that was held before, does not tell what follows.
    acting = policy if isinstance(policy, Policy) else None
    if acting is not None:
        acting.start(belief)
    decide = (lambda _: acting.decide()) if acting is not None else cast("BeliefFunction", policy)
    actions: list[int] = []
    keys = [_key(belief)]
    first_step = {keys[0]: 0}  # at which each belief was first held
    while len(actions) < depth:
        action, measure = _checked(decide(belief), model, where)
        actions.append(action)
        belief = belief.predict(model, action)
        possible = [int(state) for state in belief.states]
        if belief.is_over and not measure:
            return BlindPlan(tuple(actions), then="end"), []
        if measure:
            return BlindPlan(tuple(actions), then="measure"), possible
        if belief.known is not None and acting is None:
            return BlindPlan(tuple(actions), then="known"), possible
        keys.append(_key(belief))
        first = first_step.setdefault(keys[-1], len(actions))
        if acting is not None:
            acting.observe(None)
        elif first < len(actions):
            return BlindPlan(tuple(actions), then="repeat", repeat=len(actions) - first), []
    repeating = None if acting is None else _repetition(actions, keys)
    if repeating is not None:
        return repeating, []
    if settle:
        return BlindPlan(tuple(actions), then="repeat", repeat=1), []
    raise ScheduleError(
        f"the policy neither looked nor came to repeat itself within {depth} blind steps after {where}; "
        "raise depth, or use a policy that looks"
    )


def _repetition(actions: list[int], keys: list[tuple[bytes, bytes]]) -> BlindPlan | None:
    """Return the plan with a repeating tail that agrees with all actions and beliefs, with the tail at least twice."""
    steps = list(zip(actions, keys, strict=False))
    for period in range(1, len(steps) // 2 + 1):
        first = len(steps) - period
        while first > 0 and steps[first - 1] == steps[first - 1 + period]:
            first -= 1
        if first + 2 * period <= len(steps):
            return BlindPlan(tuple(actions[: first + period]), then="repeat", repeat=period)
    return None


def _check_is_followed(model: Model, policy: Policy, schedule: Schedule) -> None:
    """Raise a `ScheduleError` unless a policy decides as the schedule does when it is asked again, also across looks."""
    origins: list[tuple[Belief, BlindPlan]] = [(Belief.at(state), plan) for state, plan in schedule.items()]
    if schedule.start is not None:
        origins.append((Belief.start(model), schedule.start))
    for belief, plan in origins:
        after = belief
        for action in plan.actions:
            after = after.predict(model, action)
        for state in after.states.tolist() if plan.then == "measure" else [None]:
            policy.start(belief)
            _compare(policy, plan, "when it was asked again after the same outcomes")
            if state is not None:
                policy.observe(state)
                _compare(
                    policy,
                    schedule[state],
                    f"after a look showed {model.describe_state(state)} than when it starts there",
                )


def _compare(policy: Policy, plan: BlindPlan, when: str) -> None:
    """Raise a `ScheduleError` unless a policy decides as a plan does while nothing is seen."""
    for step in range(len(plan)):
        if step > 0:
            policy.observe(None)
        if tuple(policy.decide()) != plan.decision(step):
            raise ScheduleError(
                f"the policy decided otherwise {when}; a schedule remembers only the last known state, and decides the same "
                "every time: let the policy depend on the belief alone, or let it act in simulated episodes instead"
            )


def _key(belief: Belief) -> tuple[bytes, bytes]:
    return belief.states.tobytes(), np.round(belief.probabilities, BELIEF_DECIMALS).tobytes()


def _checked(decision: Decision, model: Model, where: str) -> Decision:
    try:
        action, measurement = decision
        checked = Decision(action, measurement)
        valid = is_valid(Decision(int(action), checked.measurement), model.n_actions) and int(action) == action
    except (TypeError, ValueError):
        valid = False
    if not valid:
        raise ScheduleError(f"the policy decided {decision!r} after {where}, {expected_decision(model.n_actions)}")
    return Decision(int(action), int(checked.measurement))
