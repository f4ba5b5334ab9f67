"""Exploring with open eyes: look at every step, and go where too little was measured, as if the best were waiting there."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from actmeasure.kernels import follow_schedule
from actmeasure.kernels.follow_schedule import PLAN, Guide
from actmeasure.kernels.jit import lean
from actmeasure.kernels.learned_model import Counts, any_of, count, is_full, make_counts
from actmeasure.kernels.simulate import Record, World, move, write

#: What is remembered: how many states were seen, the known state (-1 if it is not), the last action, whether a look at it is
#: paid for by exploring, whether values are out of date, whether the episode has come to a pair that was measured too little,
#: whether the plan was of no more use in it, steps since it last came to such a pair, and whether what the plan relies on is
#: measured while it is followed.
SEEN, STATE, ACTION, EXPLORES, CHANGED, MET, LOST, VAIN, CHECKS = 0, 1, 2, 3, 4, 5, 6, 7, 8
NOTHING = -1
#: What looks for exploring have cost so far, and may cost at most.
SPENT, AFFORDABLE = 0, 1
#: Values that differ by less than this share of the precision are the same.
TIE = 1e-3
#: What is not come to within so many steps for each state seen, and so many more, is out of reach.
STEPS_FOR_EACH, STEPS_MORE = 2, 50


class Rules(NamedTuple):
    """The settings, as plain numbers."""

    discount: float
    first: int
    optimism: float
    sweeps: int
    precision: float


class Mind(NamedTuple):
    """Everything that was learned; the state n_states, of value 0, stands for the end of the episode."""

    counts: Counts
    needed: Any  # int64 (S * A,): measurements after which a pair counts as known
    taken: Any  # int64 (S * A,): how often a pair was taken in a known state, looking or not
    ended: Any  # int64 (S * A,): and how often the episode ended with it
    values: Any  # float64 (S + 1,): of a known state, hoping for the best where little was measured, looks free
    seen: Any  # int64 (S,): states that came up, the first memory[SEEN] of them
    is_seen: Any  # bool (S + 1,)
    hope: Any  # float64 (1,): what a pair that was measured too little may lead to
    purse: Any  # float64 (2,)
    memory: Any  # int64 (9,)


def make_mind(n_states: int, n_actions: int, hope: float, needed: int, room: int) -> Mind:
    """Before the first episode."""
    pairs = n_states * n_actions
    return Mind(
        make_counts(n_states, n_actions, room), np.full(pairs, needed), np.zeros(pairs, np.int64), np.zeros(pairs, np.int64),
        np.zeros(n_states + 1), np.zeros(n_states, np.int64), np.zeros(n_states + 1, np.bool_),
        np.array([hope]), np.zeros(2), np.zeros(9, np.int64),
    )  # fmt: skip


@lean
def see(mind: Mind, state: int) -> None:
    """A state is known now; it may be new."""
    mind.memory[STATE] = state
    if not mind.is_seen[state]:
        mind.is_seen[state] = True
        mind.seen[mind.memory[SEEN]] = state
        mind.memory[SEEN] += 1
        mind.values[state] = mind.hope[0]
        mind.memory[CHANGED] = True


@lean
def pair_value(mind: Mind, rules: Rules, pair: int) -> float:
    """What an action in a known state may be worth: hope, until it was measured often enough.

    One that has ended an episode costs an episode to measure again. Unless a plan relies on it, it is worth what was measured,
    with hope as part of one more measurement only, in which the episode goes on. As that is hoped for the goal too, hope rises
    above the largest reward (to 1.5 times it with half a measurement), which keeps the agent from being content too soon.
    """
    measured, hoped = float(mind.counts.measured[pair]), 0.0
    if measured < mind.needed[pair]:
        if measured == 0 or mind.ended[pair] == 0 or mind.needed[pair] > rules.first:
            return mind.hope[0]  # type: ignore[no-any-return]
        hoped = rules.optimism
    total, entry = 0.0, mind.counts.first[pair]
    while entry != 0:
        total += mind.counts.times[entry] * mind.values[mind.counts.successors[entry]]
        entry = mind.counts.following[entry]
    total += hoped * mind.hope[0]
    return mind.counts.rewards[pair] + rules.discount * total / (measured + hoped)  # type: ignore[no-any-return]


@lean
def explore(mind: Mind, rules: Rules, n_actions: int, stream: Any) -> int:
    """The most promising action in the known state, ties broken at random; any action if the state is not known."""
    state = mind.memory[STATE]
    if state == NOTHING:
        return any_of(n_actions, stream)
    best, chosen, ties, tie = -np.inf, 0, 0, TIE * rules.precision
    for action in range(n_actions):
        value = pair_value(mind, rules, state * n_actions + action)
        if value > best + tie:
            best, chosen, ties = value, action, 1
        elif value >= best - tie:
            ties += 1
            if any_of(ties, stream) == 0:
                chosen = action
    return chosen


@lean
def learn(mind: Mind, rules: Rules, n_actions: int, reward: float, observation: int, terminated: bool) -> None:
    """Take in a step: a measured transition where the state was known before and after, and whether it was the end."""
    state, action, end = mind.memory[STATE], mind.memory[ACTION], mind.seen.shape[0]
    if state != NOTHING:
        pair = state * n_actions + action
        mind.taken[pair] += 1
        mind.ended[pair] += terminated
        mind.memory[VAIN] += 1
        if mind.counts.measured[pair] < mind.needed[pair]:
            mind.memory[MET], mind.memory[VAIN] = True, 0
        if observation != NOTHING:
            count(mind.counts, pair, end if terminated else observation, reward)
            measured, needed = mind.counts.measured[pair], mind.needed[pair]
            if measured == needed or (measured < needed and mind.ended[pair] > 0):
                mind.memory[CHANGED] = True
    mind.memory[STATE] = NOTHING
    if observation != NOTHING and not terminated:
        see(mind, observation)


@lean
def sweep(mind: Mind, rules: Rules, n_actions: int) -> None:
    """Bring the values of all states seen up to date, if anything has changed."""
    if not mind.memory[CHANGED]:
        return
    for _ in range(rules.sweeps):
        change = 0.0
        for i in range(mind.memory[SEEN] - 1, -1, -1):
            state = mind.seen[i]
            best = -np.inf
            for action in range(n_actions):
                best = max(best, pair_value(mind, rules, state * n_actions + action))
            change = max(change, abs(best - mind.values[state]))
            mind.values[state] = best
            # What is known to be possible can be hoped for elsewhere too; that matters where rewards add up.
            mind.hope[0] = max(mind.hope[0], best)
        if change < rules.precision:
            mind.memory[CHANGED] = False
            return


@lean
def reach(mind: Mind, rules: Rules, n_actions: int, chances: Any) -> None:
    """How likely exploring comes, from each state seen, to a pair measured too little; into `chances`, float64 (S + 1,).

    What is far away counts less, by the discount.
    """
    for i in range(mind.memory[SEEN]):
        chances[mind.seen[i]] = 0.0
    for _ in range(10 * rules.sweeps):
        change = 0.0
        for i in range(mind.memory[SEEN] - 1, -1, -1):
            state = mind.seen[i]
            best, pair = -np.inf, 0
            for action in range(n_actions):
                value = pair_value(mind, rules, state * n_actions + action)
                if value > best + TIE * rules.precision:
                    best, pair = value, state * n_actions + action
            chance = 1.0
            if mind.counts.measured[pair] >= mind.needed[pair]:
                chance, entry = 0.0, mind.counts.first[pair]
                while entry != 0:
                    chance += mind.counts.times[entry] * chances[mind.counts.successors[entry]]
                    entry = mind.counts.following[entry]
                chance *= rules.discount / mind.counts.measured[pair]
            change = max(change, abs(chance - chances[state]))
            chances[state] = chance
        if change < rules.precision:
            return


@lean
def is_in_vain(mind: Mind) -> bool:
    """Whether the episode has gone on for so long without anything new that there is no hope of it."""
    return mind.memory[VAIN] > STEPS_FOR_EACH * mind.memory[SEEN] + STEPS_MORE  # type: ignore[no-any-return]


@lean
def can_afford_a_look(mind: Mind) -> bool:
    """Whether the budget for exploring is not used up yet."""
    return mind.purse[SPENT] < mind.purse[AFFORDABLE]  # type: ignore[no-any-return]


@lean
def is_worth_checking(mind: Mind, n_actions: int, action: int) -> bool:
    """Whether an action of the plan, in a known state, was measured too little, if that is to be measured at all."""
    if not mind.memory[CHECKS] or mind.memory[STATE] == NOTHING or not can_afford_a_look(mind):
        return False
    pair = mind.memory[STATE] * n_actions + action
    return mind.counts.measured[pair] < mind.needed[pair]  # type: ignore[no-any-return]


@lean
def needs_room(mind: Mind) -> bool:
    """Whether the next step could need more room for transitions than there is."""
    return is_full(mind.counts)


# ----------------------------------------------------------------------------------------------------
# One episode of foresight: exploring, or following the plan until it is of no more use.
# ----------------------------------------------------------------------------------------------------


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
