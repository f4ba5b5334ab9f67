"""Following a schedule step by step."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from actmeasure.kernels.jit import compiled
from actmeasure.kernels.simulate import Record, World, first_state, move, write
from actmeasure.kernels.streams import WORLD, make_stream, seed_stream
from actmeasure.kernels.trace import KNOWN, MEASURE, REPEAT

#: What is kept between steps: the plan that is followed, the step in it, and the state in which it began.
PLAN, STEP, ORIGIN = 0, 1, 2
NOTHING = -1


class Guide(NamedTuple):
    """A schedule, and where those of its plans lead whose end is known for free."""

    offsets: Any  # int64 (n_plans + 1,)
    actions: Any  # int64 (total length,)
    then: Any  # int64 (n_plans,)
    repeat: Any  # int64 (n_plans,)
    plan_of_state: Any  # int32 (S,)
    start_plan: int  # -1 where the first state is always known
    known_after: (
        Any  # int64 (S + 1,): the state after the plan of a state, or of the start (last); -1 unless it is known
    )


@compiled
def begin(guide: Guide, progress: Any, observation: int) -> None:
    """Take up the plan of the state that was seen, or the plan for a start that was not shown."""
    progress[PLAN] = guide.start_plan if observation == NOTHING else guide.plan_of_state[observation]
    progress[STEP] = 0
    progress[ORIGIN] = guide.plan_of_state.shape[0] if observation == NOTHING else observation


@compiled
def decide(guide: Guide, progress: Any) -> tuple[int, bool]:
    """The plan's next action, with a look if it is the last one of a plan that looks."""
    plan = progress[PLAN]
    position = guide.offsets[plan] + progress[STEP]
    measure = guide.then[plan] == MEASURE and position == guide.offsets[plan + 1] - 1
    return guide.actions[position], measure


@compiled
def observe(guide: Guide, progress: Any, observation: int) -> None:
    """Go on with the plan, or take up the next one where the state is known."""
    plan = progress[PLAN]
    progress[STEP] += 1
    if observation != NOTHING:
        begin(guide, progress, observation)
    elif guide.offsets[plan] + progress[STEP] == guide.offsets[plan + 1]:
        if guide.then[plan] == KNOWN:
            begin(guide, progress, guide.known_after[progress[ORIGIN]])
        elif guide.then[plan] == REPEAT:
            progress[STEP] -= guide.repeat[plan]


@compiled
def run(world: World, guide: Guide, entropy: Any, first_episode: int, max_steps: int, record: Record) -> int:
    """Episodes `first_episode` and on. Returns -1, or the state that was met without a plan for it."""
    stream = make_stream()
    progress = np.zeros(3, np.int64)
    n_actions = world.dynamics.n_actions
    for episode in range(record.steps.shape[0]):
        seed_stream(stream, entropy, first_episode + episode, WORLD)
        state = first_state(world, stream)
        begin(guide, progress, state if world.reveal_start else NOTHING)
        ended = False
        while not ended and record.steps[episode] < max_steps:
            if progress[PLAN] < 0:
                return progress[ORIGIN]  # type: ignore[no-any-return]
            action, measure = decide(guide, progress)
            cost = world.dynamics.costs[state * n_actions + action] if measure else 0.0
            state, reward, ended = move(world, state, action, stream)
            write(record, episode, reward, cost, measure, ended)
            if not ended:
                observe(guide, progress, state if measure else NOTHING)
    return -1
