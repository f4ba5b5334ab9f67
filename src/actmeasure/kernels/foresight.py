"""One episode of the foresight agent: optimistic exploration with a look at every step, or following a schedule.

Exploration is optimistic value iteration on the measured transitions (as in R-max, Brafman and Tennenholtz, 2002). A pair
(state, action) that was measured fewer times than it needs, an *under-sampled* pair, has the optimistic value; all others have
the value of the measured frequencies. What happens between episodes is in `actmeasure.learning.foresight`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from actmeasure.kernels import follow_schedule
from actmeasure.kernels.follow_schedule import PLAN, Guide
from actmeasure.kernels.jit import no_refcount
from actmeasure.kernels.learned_model import Counts, count, is_full, make_counts
from actmeasure.kernels.simulate import NOTHING, Record, World, step
from actmeasure.kernels.streams import any_of

#: Entries of `memory`.
#: Number of states seen so far.
N_SEEN = 0
#: The current state, `NOTHING` where it is not known.
STATE = 1
#: The last action.
ACTION = 2
#: Whether the last look is paid from the exploration budget.
LOOK_EXPLORES = 3
#: Whether the state values are older than the counts.
VALUES_OUTDATED = 4
#: Whether the episode has visited an under-sampled pair.
VISITED_UNDERSAMPLED = 5
#: Whether the episode does not follow the schedule (any more).
OFF_SCHEDULE = 6
#: Steps since the episode visited an under-sampled pair.
STEPS_SINCE_UNDERSAMPLED = 7
#: Whether under-sampled pairs are measured while the schedule is followed.
CONFIRMS = 8

#: Entries of `budget`: cost of exploratory looks so far, and their largest total cost.
SPENT, LIMIT = 0, 1
#: Values that differ by less than this fraction of the precision are ties.
TIE_FRACTION = 1e-3
#: Exploration has stalled after this many steps per state seen, plus a constant, without an under-sampled pair.
STALL_STEPS_PER_STATE, STALL_STEPS = 2, 50


class ForesightParameters(NamedTuple):
    """Settings of the agent that the kernels need."""

    discount: float
    first: int  # measurements that a pair needs unless a plan relies on it
    optimism: float  # weight of the optimistic value, in measurements, for a pair that has ended an episode
    sweeps: int  # most sweeps of value iteration at a time
    precision: float  # change of values at which value iteration stops


class ForesightTables(NamedTuple):
    """Counts and values of the agent; the state S, of value 0, stands for the end of the episode."""

    counts: Counts
    needed: Any  # int64 (S * A,): number of measurements below which a pair is under-sampled
    taken: (
        Any  # int64 (S * A,): visit count: steps in which the pair was taken in a known state, with or without a look
    )
    ended: Any  # int64 (S * A,): number of these steps that ended the episode
    values: Any  # float64 (S + 1,): optimistic value of each state if looks were free
    seen: Any  # int64 (S,): states seen so far, the first memory[N_SEEN] entries
    is_seen: Any  # bool (S + 1,)
    optimistic_value: Any  # float64 (1,): value of under-sampled pairs
    budget: Any  # float64 (2,)
    memory: Any  # int64 (9,)


def make_tables(n_states: int, n_actions: int, optimistic_value: float, needed: int, capacity: int) -> ForesightTables:
    """Return the tables before the first episode."""
    pairs = n_states * n_actions
    return ForesightTables(
        make_counts(n_states, n_actions, capacity), np.full(pairs, needed), np.zeros(pairs, np.int64),
        np.zeros(pairs, np.int64), np.zeros(n_states + 1), np.zeros(n_states, np.int64), np.zeros(n_states + 1, np.bool_),
        np.array([optimistic_value]), np.zeros(2), np.zeros(9, np.int64),
    )  # fmt: skip


# An episode: begin, then decide and observe at every step


@no_refcount
def play(
    world: World,
    tables: ForesightTables,
    parameters: ForesightParameters,
    guide: Guide,
    progress: Any,
    state: int,
    max_steps: int,
    record: Record,
    episode: int,
    world_stream: Any,
    agent_stream: Any,
) -> int:
    """Continue an episode from a state of the world; return -1 when it is over, or the state if the counts need more capacity."""
    n_actions, ended = world.dynamics.n_actions, False
    while not ended and record.steps[episode] < max_steps:
        if is_full(tables.counts):
            return state
        action, look = decide(tables, parameters, guide, progress, n_actions, agent_stream)
        state, reward, cost, ended = step(world, record, episode, state, action, look, world_stream)
        observe(tables, parameters, guide, progress, n_actions, reward, cost, state if look else NOTHING, ended)
    return NOTHING


@no_refcount
def begin(tables: ForesightTables, guide: Guide, progress: Any, follows: bool, observation: int) -> None:
    """Begin an episode in the state that is shown, if any, with the schedule's plan for it if `follows`."""
    tables.memory[VISITED_UNDERSAMPLED], tables.memory[STEPS_SINCE_UNDERSAMPLED] = False, 0
    tables.memory[OFF_SCHEDULE], tables.memory[STATE] = not follows, NOTHING
    if observation != NOTHING:
        see(tables, observation)
    if follows:
        follow_schedule.begin(guide, progress, observation)


@no_refcount
def decide(
    tables: ForesightTables, parameters: ForesightParameters, guide: Guide, progress: Any, n_actions: int, stream: Any
) -> tuple[int, bool]:
    """Return action and look of the schedule; where it has no plan, or has led off the schedule, those of exploration.

    Exploration looks at every step while the budget lasts and it has not stalled.
    """
    if not tables.memory[OFF_SCHEDULE] and progress[PLAN] < 0:
        tables.memory[OFF_SCHEDULE] = True
    if tables.memory[OFF_SCHEDULE]:
        action = explore(tables, parameters, n_actions, stream)
        explores = has_budget(tables) and not has_stalled(tables)
        look = explores
    else:
        action, look = follow_schedule.decide(guide, progress)
        explores = not look and _confirms(tables, n_actions, action)
        look = look or explores
    tables.memory[ACTION], tables.memory[LOOK_EXPLORES] = action, explores
    return action, look


@no_refcount
def observe(
    tables: ForesightTables,
    parameters: ForesightParameters,
    guide: Guide,
    progress: Any,
    n_actions: int,
    reward: float,
    cost: float,
    observation: int,
    terminated: bool,
) -> None:
    """Learn from a step and advance the schedule; the counts must have capacity for another transition."""
    tables.budget[SPENT] += cost * tables.memory[LOOK_EXPLORES]
    learn(tables, n_actions, reward, observation, terminated)
    if not terminated:
        if not tables.memory[OFF_SCHEDULE]:
            follow_schedule.observe(guide, progress, _seen_by_schedule(guide, progress, observation))
        sweep(tables, parameters, n_actions)


@no_refcount
def _seen_by_schedule(guide: Guide, progress: Any, observation: int) -> int:
    """Return the observation, or `NOTHING` if the schedule did not ask for it and has no plan for that state."""
    if observation != NOTHING and guide.plans.plan_of_state[observation] < 0:
        _, asked = follow_schedule.decide(guide, progress)
        return observation if asked else NOTHING
    return observation


@no_refcount
def _confirms(tables: ForesightTables, n_actions: int, action: int) -> bool:
    """Return whether to look because the schedule's action is under-sampled in the current, known state."""
    if not tables.memory[CONFIRMS] or tables.memory[STATE] == NOTHING or not has_budget(tables):
        return False
    pair = tables.memory[STATE] * n_actions + action
    return tables.counts.measured[pair] < tables.needed[pair]  # type: ignore[no-any-return]


@no_refcount
def has_budget(tables: ForesightTables) -> bool:
    """Return whether exploratory looks have cost less than their budget."""
    return tables.budget[SPENT] < tables.budget[LIMIT]  # type: ignore[no-any-return]


@no_refcount
def has_stalled(tables: ForesightTables) -> bool:
    """Return whether the episode has gone on for too long without an under-sampled pair to expect another."""
    most = STALL_STEPS_PER_STATE * tables.memory[N_SEEN] + STALL_STEPS
    return tables.memory[STEPS_SINCE_UNDERSAMPLED] > most  # type: ignore[no-any-return]


# Learning and optimistic values


@no_refcount
def learn(tables: ForesightTables, n_actions: int, reward: float, observation: int, terminated: bool) -> None:
    """Count a step: whether it ended the episode, and its transition where the state before and after is known."""
    state, action, end = tables.memory[STATE], tables.memory[ACTION], tables.seen.shape[0]
    if state != NOTHING:
        pair = state * n_actions + action
        tables.taken[pair] += 1
        tables.ended[pair] += terminated
        tables.memory[STEPS_SINCE_UNDERSAMPLED] += 1
        if tables.counts.measured[pair] < tables.needed[pair]:
            tables.memory[VISITED_UNDERSAMPLED], tables.memory[STEPS_SINCE_UNDERSAMPLED] = True, 0
        if observation != NOTHING:
            count(tables.counts, pair, end if terminated else observation, reward)
            measured, needed = tables.counts.measured[pair], tables.needed[pair]
            if measured == needed or (measured < needed and tables.ended[pair] > 0):
                tables.memory[VALUES_OUTDATED] = True
    tables.memory[STATE] = NOTHING
    if observation != NOTHING and not terminated:
        see(tables, observation)


@no_refcount
def see(tables: ForesightTables, state: int) -> None:
    """Make a state the current one; one that was never seen gets the optimistic value."""
    tables.memory[STATE] = state
    if not tables.is_seen[state]:
        tables.is_seen[state] = True
        tables.seen[tables.memory[N_SEEN]] = state
        tables.memory[N_SEEN] += 1
        tables.values[state] = tables.optimistic_value[0]
        tables.memory[VALUES_OUTDATED] = True


@no_refcount
def explore(tables: ForesightTables, parameters: ForesightParameters, n_actions: int, stream: Any) -> int:
    """Return the action of the largest optimistic value, ties broken at random; any action if the state is not known."""
    state = tables.memory[STATE]
    if state == NOTHING:
        return any_of(n_actions, stream)
    best, chosen, ties, tie = -np.inf, 0, 0, TIE_FRACTION * parameters.precision
    for action in range(n_actions):
        value = pair_value(tables, parameters, state * n_actions + action)
        if value > best + tie:
            best, chosen, ties = value, action, 1
        elif value >= best - tie:
            ties += 1
            if any_of(ties, stream) == 0:
                chosen = action
    return chosen


@no_refcount
def pair_value(tables: ForesightTables, parameters: ForesightParameters, pair: int) -> float:
    """Return the value of a pair if looks were free: the optimistic value if it is under-sampled, else as measured.

    A pair that has ended an episode costs an episode to measure again. Unless a plan relies on it, its value is as measured even
    if it is under-sampled, with the optimistic value as the successor's in `optimism` further measurements. As this applies to
    the goal too, the optimistic value rises above the largest reward (to 1.5 times it for half a measurement), which keeps
    exploration from stopping too soon.
    """
    measured, optimism = float(tables.counts.measured[pair]), 0.0
    if measured < tables.needed[pair]:
        if measured == 0 or tables.ended[pair] == 0 or tables.needed[pair] > parameters.first:
            return tables.optimistic_value[0]  # type: ignore[no-any-return]
        optimism = parameters.optimism
    total, entry = 0.0, tables.counts.first[pair]
    while entry != 0:
        total += tables.counts.times[entry] * tables.values[tables.counts.successors[entry]]
        entry = tables.counts.following[entry]
    total += optimism * tables.optimistic_value[0]
    return tables.counts.rewards[pair] + parameters.discount * total / (measured + optimism)  # type: ignore[no-any-return]


@no_refcount
def sweep(tables: ForesightTables, parameters: ForesightParameters, n_actions: int) -> None:
    """Update the values of all states seen by value iteration, if they are outdated."""
    if not tables.memory[VALUES_OUTDATED]:
        return
    for _ in range(parameters.sweeps):
        change = 0.0
        for i in range(tables.memory[N_SEEN] - 1, -1, -1):
            state = tables.seen[i]
            best = -np.inf
            for action in range(n_actions):
                best = max(best, pair_value(tables, parameters, state * n_actions + action))
            change = max(change, abs(best - tables.values[state]))
            tables.values[state] = best
            # Where rewards add up, values exceed the largest reward, and so must the optimistic value.
            tables.optimistic_value[0] = max(tables.optimistic_value[0], best)
        if change < parameters.precision:
            tables.memory[VALUES_OUTDATED] = False
            return


@no_refcount
def reach(tables: ForesightTables, parameters: ForesightParameters, n_actions: int, probabilities: Any) -> None:
    """Compute the probability that exploration from each state seen visits an under-sampled pair.

    Probabilities of later visits are discounted. They are written into `probabilities`, float64 (S + 1,).
    """
    for i in range(tables.memory[N_SEEN]):
        probabilities[tables.seen[i]] = 0.0
    for _ in range(10 * parameters.sweeps):
        change = 0.0
        for i in range(tables.memory[N_SEEN] - 1, -1, -1):
            state = tables.seen[i]
            best, pair = -np.inf, 0
            for action in range(n_actions):
                value = pair_value(tables, parameters, state * n_actions + action)
                if value > best + TIE_FRACTION * parameters.precision:
                    best, pair = value, state * n_actions + action
            probability = 1.0
            if tables.counts.measured[pair] >= tables.needed[pair]:
                probability, entry = 0.0, tables.counts.first[pair]
                while entry != 0:
                    probability += tables.counts.times[entry] * probabilities[tables.counts.successors[entry]]
                    entry = tables.counts.following[entry]
                probability *= parameters.discount / tables.counts.measured[pair]
            change = max(change, abs(probability - probabilities[state]))
            probabilities[state] = probability
        if change < parameters.precision:
            return
