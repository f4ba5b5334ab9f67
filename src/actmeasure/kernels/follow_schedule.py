"""Following a schedule step by step.

The position in a schedule is an int64 array of shape (4,), `progress`, with the entries `PLAN`, `STEP`, `ORIGIN` and `TAKEN`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from actmeasure.kernels.jit import no_refcount
from actmeasure.kernels.schedule_chain import KNOWN, MEASURE, REPEAT, Plans
from actmeasure.kernels.simulate import NOTHING, Record, World, first_state, step
from actmeasure.kernels.streams import WORLD, seed_stream

#: Entries of `progress`: number of the plan, step in the plan, state in which it began (S for a start that is not shown), and
#: steps taken since, which in a repeating plan may be more than it has.
PLAN, STEP, ORIGIN, TAKEN = 0, 1, 2, 3
#: Values of `PLAN` without a plan: there is none for `ORIGIN`; or the one of `ORIGIN` is over, with no known state to go on from.
NO_PLAN, PLAN_OVER = -1, -2


class Guide(NamedTuple):
    """A schedule as arrays, with the states that its plans with `then="known"` lead to."""

    plans: Plans
    start_plan: int  # number of the plan for a start that is not shown, or -1
    known_after: Any  # int64 (S + 1,): state after the plan of each state, and of the start (last); -1 unless known


@no_refcount
def begin(guide: Guide, progress: Any, observation: int) -> None:
    """Begin the plan of the state that was seen, or the plan for a start that was not shown."""
    plan_of_state = guide.plans.plan_of_state
    plan = guide.start_plan if observation == NOTHING else plan_of_state[observation]
    progress[PLAN] = plan if plan >= 0 else NO_PLAN
    progress[STEP], progress[TAKEN] = 0, 0
    progress[ORIGIN] = plan_of_state.shape[0] if observation == NOTHING else observation


@no_refcount
def decide(guide: Guide, progress: Any) -> tuple[int, bool]:
    """Return the next decision of the plan: its action, and whether to look."""
    plans, plan = guide.plans, progress[PLAN]
    position = plans.offsets[plan] + progress[STEP]
    measure = plans.then[plan] == MEASURE and position == plans.offsets[plan + 1] - 1
    return plans.actions[position], measure


@no_refcount
def observe(guide: Guide, progress: Any, observation: int) -> None:
    """Advance by a step: to the next one of the plan, or to the plan of a state that was seen or has become known."""
    if observation != NOTHING:
        begin(guide, progress, observation)
        return
    plans, plan = guide.plans, progress[PLAN]
    if plan < 0:
        return
    progress[STEP] += 1
    progress[TAKEN] += 1
    if plans.offsets[plan] + progress[STEP] < plans.offsets[plan + 1]:
        return
    after = guide.known_after[progress[ORIGIN]]
    if plans.then[plan] == REPEAT:
        progress[STEP] -= plans.repeat[plan]
    elif plans.then[plan] == KNOWN and after >= 0:
        begin(guide, progress, after)
    else:
        progress[PLAN] = PLAN_OVER


@no_refcount
def run(
    world: World,
    guide: Guide,
    progress: Any,
    entropy: Any,
    first_episode: int,
    max_steps: int,
    record: Record,
    stream: Any,
) -> bool:
    """Simulate the episodes from number `first_episode` on that `record` has room for.

    Returns whether the schedule had a decision at every step; if not, `progress` is where it had none.
    """
    for episode in range(record.steps.shape[0]):
        seed_stream(stream, entropy, first_episode + episode, WORLD)
        state = first_state(world, stream)
        begin(guide, progress, state if world.reveal_start else NOTHING)
        ended = False
        while not ended and record.steps[episode] < max_steps:
            if progress[PLAN] < 0:
                return False
            action, measure = decide(guide, progress)
            state, _, _, ended = step(world, record, episode, state, action, measure, stream)
            if not ended:
                observe(guide, progress, state if measure else NOTHING)
    return True


def new_progress(n_states: int) -> Any:
    """Return the progress before the first episode, in which no plan is followed; int64 (4,)."""
    return np.array([NO_PLAN, 0, n_states, 0])
