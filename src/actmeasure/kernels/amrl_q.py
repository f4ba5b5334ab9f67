"""AMRL-Q (Bellinger et al., 2021): Q-learning over decisions (action, look) in the most likely state.

Without a look, the successor that was measured most often is taken for the next state.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from actmeasure.kernels.jit import no_refcount
from actmeasure.kernels.learned_model import Counts, count, greedy_action, is_full, largest_value, make_counts
from actmeasure.kernels.simulate import EPISODE, NOTHING, STATE, Run, World, run_step, start_episode
from actmeasure.kernels.streams import any_of, random

#: Entries of `memory`: the state that is taken for the current one, and the last action.
BELIEVED, ACTION = 0, 1


class AmrlQParameters(NamedTuple):
    """The settings of `AmrlQSettings` that the kernels need, as plain numbers."""

    discount: float
    learning_rate: float
    random_decisions: float
    exploring_episodes: int


class AmrlQTables(NamedTuple):
    """Counts and values of the learner.

    The state S stands for the end of the episode. It has values as other states, as it may be taken for the
    current one by mistake.
    """

    counts: Counts  # of S + 1 states
    likeliest: Any  # int64 ((S + 1) * A,): entry in `counts` of the successor measured most often, 0 if none was
    values: Any  # float64 ((S + 1) * 2 A,): Q without a look, then with one, for each action
    costs: Any  # float64 (1,) or ((S + 1) * A,): cost of a look
    memory: Any  # int64 (2,)


def make_tables(n_states: int, n_actions: int, costs: Any, bias: float, capacity: int) -> AmrlQTables:
    """Return the tables before the first episode: decisions with a look have the value `bias`, others 0."""
    values = np.zeros((n_states + 1, n_actions, 2))
    values[:, :, 1] = bias
    counts = make_counts(n_states + 1, n_actions, capacity)
    return AmrlQTables(
        counts, np.zeros((n_states + 1) * n_actions, np.int64), values.ravel(), costs, np.zeros(2, np.int64)
    )


@no_refcount
def play(world: World, tables: AmrlQTables, parameters: AmrlQParameters, likely: int, run: Run) -> bool:
    """Play the episodes of a run; return False if the counts need more capacity: then call it again with larger counts."""
    n_actions, n_states = world.dynamics.n_actions, world.dynamics.terminal.shape[0]
    while run.position[EPISODE] < run.record.steps.shape[0]:
        if start_episode(world, run):
            begin(tables, run.position[STATE] if world.reveal_start else NOTHING, likely, n_states, run.agent_stream)
        if is_full(tables.counts):
            return False
        explores = run.first_episode + run.position[EPISODE] < parameters.exploring_episodes
        random_decisions = parameters.random_decisions if explores else 0.0
        action, measure = decide(tables, n_actions, random_decisions, run.agent_stream)
        reward, _, observation, ended = run_step(world, run, action, measure)
        observe(tables, parameters, n_actions, reward, observation, ended, run.agent_stream)
    return True


@no_refcount
def begin(tables: AmrlQTables, observation: int, likely: int, n_states: int, stream: Any) -> None:
    """Begin an episode in the state that is shown, else in the most likely one, else (`likely` is -1) in a random one."""
    if observation != NOTHING:
        tables.memory[BELIEVED] = observation
    elif likely != NOTHING:
        tables.memory[BELIEVED] = likely
    else:
        tables.memory[BELIEVED] = any_of(n_states, stream)


@no_refcount
def decide(tables: AmrlQTables, n_actions: int, random_decisions: float, stream: Any) -> tuple[int, bool]:
    """Return the decision (action, look) of the largest value, ties broken at random, or sometimes a random one."""
    if random_decisions > 0.0 and random(stream) < random_decisions:
        pair = any_of(2 * n_actions, stream)
    else:
        pair = greedy_action(tables.values, tables.memory[BELIEVED], 2 * n_actions, stream)
    tables.memory[ACTION] = pair // 2
    return pair // 2, pair % 2 == 1


@no_refcount
def observe(
    tables: AmrlQTables,
    parameters: AmrlQParameters,
    n_actions: int,
    reward: float,
    observation: int,
    terminated: bool,
    stream: Any,
) -> None:
    """Learn from a step as if the assumed state were the true one, and move to the state seen or the likeliest successor."""
    state, action = tables.memory[BELIEVED], tables.memory[ACTION]
    pair, end = state * n_actions + action, tables.likeliest.shape[0] // n_actions - 1
    successor = end if terminated else observation
    if observation != NOTHING:
        entry = count(tables.counts, pair, successor, reward)
        if tables.counts.times[entry] > tables.counts.times[tables.likeliest[pair]]:
            tables.likeliest[pair] = entry
    elif not terminated:
        successor = _likeliest(tables, pair, end, stream)
    future = 0.0 if terminated else largest_value(tables.values, successor, 2 * n_actions)
    cost = tables.costs[pair if tables.costs.shape[0] > 1 else 0]
    for look in range(2):
        target = reward - look * cost + parameters.discount * future
        tables.values[2 * pair + look] += parameters.learning_rate * (target - tables.values[2 * pair + look])
    tables.memory[BELIEVED] = successor


@no_refcount
def _likeliest(tables: AmrlQTables, pair: int, end: int, stream: Any) -> int:
    """Return the successor that was measured most often; a random state if none was."""
    if tables.likeliest[pair] == 0:
        return any_of(end, stream)
    return tables.counts.successors[tables.likeliest[pair]]  # type: ignore[no-any-return]
