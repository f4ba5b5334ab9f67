"""Following a schedule step by step."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from actmeasure.kernels.jit import lean
from actmeasure.kernels.simulate import Record, World, first_state, move, write
from actmeasure.kernels.streams import WORLD, seed_stream
from actmeasure.kernels.trace import KNOWN, MEASURE, REPEAT, Plans

#: What is kept between steps: the plan that is followed, the step in it, the state in which it began, and steps since then,
#: which are more than the plan has where it repeats.
PLAN, STEP, ORIGIN, TAKEN = 0, 1, 2, 3
#: Instead of a plan: there is none for `ORIGIN`; or the one from `ORIGIN` is over, and it does not say how to go on.
NO_PLAN, PLAN_OVER = -1, -2
NOTHING = -1


class Guide(NamedTuple):
    """A schedule, and where those of its plans lead whose end is known for free."""

    plans: Plans
    start_plan: int  # -1 where there is none for a start that is not shown
    known_after: Any  # int64 (S + 1,): state after the plan of a state, or of the start (last); -1 unless it is known


@lean
def begin(guide: Guide, progress: Any, observation: int) -> None:
    """Take up the plan of the state that was seen, or the plan for a start that was not shown."""
    plan_of_state = guide.plans.plan_of_state
    plan = guide.start_plan if observation == NOTHING else plan_of_state[observation]
    progress[PLAN] = plan if plan >= 0 else NO_PLAN
    progress[STEP], progress[TAKEN] = 0, 0
    progress[ORIGIN] = plan_of_state.shape[0] if observation == NOTHING else observation


@lean
def decide(guide: Guide, progress: Any) -> tuple[int, bool]:
    """The plan's next action, with a look if it is the last one of a plan that looks."""
    plans, plan = guide.plans, progress[PLAN]
    position = plans.offsets[plan] + progress[STEP]
    measure = plans.then[plan] == MEASURE and position == plans.offsets[plan + 1] - 1
    return plans.actions[position], measure


@lean
def observe(guide: Guide, progress: Any, observation: int) -> None:
    """Go on with the plan, or take up the next one where the state is known."""
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


@lean
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
    """Episodes `first_episode` and on. Whether all could be played; if not, `progress` tells what was missing."""
    n_actions = world.dynamics.n_actions
    for episode in range(record.steps.shape[0]):
        seed_stream(stream, entropy, first_episode + episode, WORLD)
        state = first_state(world, stream)
        begin(guide, progress, state if world.reveal_start else NOTHING)
        ended = False
        while not ended and record.steps[episode] < max_steps:
            if progress[PLAN] < 0:
                return False
            action, measure = decide(guide, progress)
            cost = world.dynamics.costs[state * n_actions + action] if measure else 0.0
            state, reward, ended = move(world, state, action, stream)
            write(record, episode, reward, cost, measure, ended)
            if not ended:
                observe(guide, progress, state if measure else NOTHING)
    return True


def new_progress(n_states: int) -> Any:
    """Before the first episode, when no plan is followed; int64 (4,)."""
    return np.array([NO_PLAN, 0, n_states, 0])
