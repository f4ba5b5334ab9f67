"""One episode of foresight: exploring, or following the plan until it is of no more use."""

from __future__ import annotations

from typing import Any

from actmeasure.kernels import follow_schedule
from actmeasure.kernels.follow_schedule import PLAN, Guide
from actmeasure.kernels.foresight import (
    ACTION,
    EXPLORES,
    LOST,
    MET,
    NOTHING,
    SPENT,
    STATE,
    VAIN,
    Mind,
    Rules,
    can_afford_a_look,
    explore,
    is_in_vain,
    is_worth_checking,
    learn,
    needs_room,
    see,
    sweep,
)
from actmeasure.kernels.jit import lean
from actmeasure.kernels.simulate import Record, World, move, write


@lean
def begin(mind: Mind, guide: Guide, progress: Any, follows: bool, observation: int) -> None:
    """An episode begins, in the state shown if any; one that follows the plan takes it up."""
    mind.memory[MET], mind.memory[LOST], mind.memory[STATE], mind.memory[VAIN] = False, not follows, NOTHING, 0
    if observation != NOTHING:
        see(mind, observation)
    if follows:
        follow_schedule.begin(guide, progress, observation)


@lean
def decide(mind: Mind, rules: Rules, guide: Guide, progress: Any, n_actions: int, stream: Any) -> tuple[int, bool]:
    """What the plan says; where there is none, or it has turned out wrong, explore, and look as long as that can pay."""
    if not mind.memory[LOST] and progress[PLAN] < 0:
        mind.memory[LOST] = True
    if mind.memory[LOST]:
        action = explore(mind, rules, n_actions, stream)
        explores = can_afford_a_look(mind) and not is_in_vain(mind)
        look = explores
    else:
        action, look = follow_schedule.decide(guide, progress)
        explores = not look and is_worth_checking(mind, n_actions, action)
        look = look or explores
    mind.memory[ACTION], mind.memory[EXPLORES] = action, explores
    return action, look


@lean
def observe(
    mind: Mind,
    rules: Rules,
    guide: Guide,
    progress: Any,
    n_actions: int,
    reward: float,
    cost: float,
    observation: int,
    terminated: bool,
) -> None:
    """Learn from a step, and go on with the plan."""
    mind.purse[SPENT] += cost * mind.memory[EXPLORES]
    learn(mind, rules, n_actions, reward, observation, terminated)
    if not terminated:
        if not mind.memory[LOST]:
            follow_schedule.observe(guide, progress, _for_the_plan(guide, progress, observation))
        sweep(mind, rules, n_actions)


@lean
def _for_the_plan(guide: Guide, progress: Any, observation: int) -> int:
    """What was seen, unless the plan did not ask for it and does not say how to go on from there."""
    if observation != NOTHING and guide.plans.plan_of_state[observation] < 0:
        _, asked = follow_schedule.decide(guide, progress)
        return observation if asked else NOTHING
    return observation


@lean
def play(
    world: World,
    mind: Mind,
    rules: Rules,
    guide: Guide,
    progress: Any,
    state: int,
    max_steps: int,
    record: Record,
    episode: int,
    world_stream: Any,
    agent_stream: Any,
) -> int:
    """Go on with an episode, in a state of the world, until it ends (-1) or the mind needs more room (the state)."""
    n_actions, ended = world.dynamics.n_actions, False
    while not ended and record.steps[episode] < max_steps:
        if needs_room(mind):
            return state
        action, look = decide(mind, rules, guide, progress, n_actions, agent_stream)
        cost = world.dynamics.costs[state * n_actions + action] if look else 0.0
        state, reward, ended = move(world, state, action, world_stream)
        write(record, episode, reward, cost, look, ended)
        observe(mind, rules, guide, progress, n_actions, reward, cost, state if look else NOTHING, ended)
    return NOTHING
