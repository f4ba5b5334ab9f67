"""Act-then-measure Q-learning: how it chooses, when it looks, what it learns from a step."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from actmeasure.kernels.jit import lean
from actmeasure.kernels.learned_model import Counts, any_of, count, is_full, make_counts
from actmeasure.kernels.particles import Particles, draw, exclude_end, know, make_particles, moved, predict
from actmeasure.kernels.simulate import Record, World, first_state, move, write
from actmeasure.kernels.streams import AGENT, WORLD, random, seed_stream

#: What is remembered from step to step: which of the two beliefs is held, the last action, how many states are trained.
NOW, ACTION, READY = 0, 1, 2
#: Sums that are kept up to date: of the best values of all states; and the largest reward.
BEST_SUM, LARGEST_REWARD = 0, 1
NOTHING = -1
#: Values closer than this, relatively, are taken for equal.
TIE = 1e-12


class Rules(NamedTuple):
    """The settings of the learner; those of `AtmqSettings`, as plain numbers."""

    discount: float
    learning_rate: float
    optimism: int
    exploratory_measurements: int
    prior_until: int
    most_states: int
    random_measuring: float
    settled_below: float
    knows_it_runs: bool
    own_rewards: bool
    optimistic_measuring: bool
    observed_target: bool
    cost_in_target: bool
    prior_in_rewards: bool
    training_updates: int
    training_greedy: float
    training_needs: int


class Mind(NamedTuple):
    """Everything the learner knows; the state n_states, of value 0, stands for the end of the episode."""

    counts: Counts
    particles: Particles
    values: Any  # float64 ((S + 1) * A,): Q
    optimistic: Any  # float64 ((S + 1) * A,): moved towards the largest reward the less a pair was measured
    best: Any  # float64 (S + 1,): largest optimistic value
    greedy: Any  # int64 (S + 1,): its action
    ready: Any  # int64 (S,): states with a pair that can be trained, the first memory[READY] of them
    costs: Any  # float64 (1,) or (S * A,): of a measurement
    sums: Any  # float64 (2,)
    memory: Any  # int64 (3,)
    scores: Any  # float64 (A,): room for the values of actions in a belief


def make_mind(n_states: int, n_actions: int, costs: Any, largest_reward: float, particles: int, room: int) -> Mind:
    """Before the first episode: every value is 0, and every optimistic value the largest reward."""
    best, optimistic = np.full(n_states + 1, largest_reward), np.full((n_states + 1) * n_actions, largest_reward)
    best[-1], optimistic[-n_actions:] = 0.0, 0.0
    return Mind(
        make_counts(n_states, n_actions, room), make_particles(n_states, particles),
        np.zeros((n_states + 1) * n_actions), optimistic, best, np.zeros(n_states + 1, np.int64), np.zeros(n_states, np.int64),
        costs, np.array([n_states * largest_reward, largest_reward]), np.zeros(3, np.int64), np.zeros(n_actions),
    )  # fmt: skip


@lean
def begin(mind: Mind, observation: int, states: Any, probabilities: Any, stream: Any) -> None:
    """An episode begins: in the state shown, or else somewhere in a distribution, of which nothing may be known (n = 0)."""
    now = mind.memory[NOW]
    if observation != NOTHING:
        know(mind.particles, now, observation)
    else:
        draw(mind.particles, now, states, probabilities, stream)


@lean
def decide(mind: Mind, rules: Rules, stream: Any) -> tuple[int, bool]:
    """The control that looks best, hoping for the best where little is known; then whether to look."""
    now = mind.memory[NOW]
    if mind.particles.sizes[now] == 0:  # nothing is known at all
        action, measure = any_of(mind.scores.shape[0], stream), True
    else:
        action = _control(mind, stream)
        measure = _looks(mind, rules, action, stream)
    mind.memory[ACTION] = action
    return action, measure


@lean
def _control(mind: Mind, stream: Any) -> int:
    """The action with the largest optimistic value in the belief; ties are broken at random."""
    _score(mind, mind.memory[NOW], True)
    scores = mind.scores
    largest = scores[0]
    for action in range(1, scores.shape[0]):
        largest = max(largest, scores[action])
    enough = largest - TIE * (1.0 + abs(largest))
    ties = 0
    for action in range(scores.shape[0]):
        ties += scores[action] >= enough
    skip = any_of(ties, stream) if ties > 1 else 0
    for action in range(scores.shape[0]):
        if scores[action] >= enough:
            if skip == 0:
                return action
            skip -= 1
    return 0


@lean
def _score(mind: Mind, which: int, optimistic: bool) -> None:
    """Values of all actions in a belief, into `scores`."""
    n_actions = mind.scores.shape[0]
    for action in range(n_actions):
        mind.scores[action] = 0.0
    for i in range(mind.particles.sizes[which]):
        state, weight = mind.particles.states[which, i], mind.particles.times[which, i] / mind.particles.totals[which]
        if state == mind.ready.shape[0]:
            continue
        for action in range(n_actions):
            pair = state * n_actions + action
            mind.scores[action] += weight * (mind.optimistic[pair] if optimistic else mind.values[pair])


@lean
def _looks(mind: Mind, rules: Rules, action: int, stream: Any) -> bool:
    """Whether to look: to learn the dynamics, by chance, or because it pays. Else the next belief has been predicted."""
    now, then = mind.memory[NOW], 1 - mind.memory[NOW]
    particles, n_actions = mind.particles, mind.scores.shape[0]
    if particles.sizes[now] == 1 and particles.states[now, 0] < mind.ready.shape[0]:
        pair = particles.states[now, 0] * n_actions + action
        if mind.counts.measured[pair] < rules.exploratory_measurements:
            return True
    if rules.random_measuring > 0.0 and random(stream) < rules.random_measuring:
        return True
    predict(particles, now, mind.counts, n_actions, action, rules.prior_until, stream)
    if particles.sizes[then] > rules.most_states:
        return True
    if (
        rules.settled_below > 0.0
        and particles.sizes[then] > 1
        and moved(particles) < rules.settled_below * particles.totals[now]
    ):
        return True
    return _pays(mind, rules, action)


@lean
def _pays(mind: Mind, rules: Rules, action: int) -> bool:
    """Whether knowing the state after the action is worth what looking costs."""
    now, then = mind.memory[NOW], 1 - mind.memory[NOW]
    worth, cost = 0.0, _cost(mind, now, action)
    _score(mind, then, rules.optimistic_measuring)
    blind, n_actions = 0, mind.scores.shape[0]
    for other in range(1, n_actions):
        if mind.scores[other] > mind.scores[blind]:
            blind = other
    for i in range(mind.particles.sizes[then]):
        state, weight = mind.particles.states[then, i], mind.particles.times[then, i] / mind.particles.totals[then]
        if state < mind.ready.shape[0]:
            gain = _best(mind, rules, state) - mind.values[state * n_actions + blind]
            worth += weight * max(0.0, gain)
    if rules.optimistic_measuring:
        return worth > cost
    return rules.discount * worth >= cost


@lean
def _best(mind: Mind, rules: Rules, state: int) -> float:
    """The value of the best action in a state, as the rule for looking sees it."""
    if rules.optimistic_measuring:
        return mind.best[state]  # type: ignore[no-any-return]
    n_actions = mind.scores.shape[0]
    largest = mind.values[state * n_actions]
    for action in range(1, n_actions):
        largest = max(largest, mind.values[state * n_actions + action])
    return largest  # type: ignore[no-any-return]


@lean
def _cost(mind: Mind, which: int, action: int) -> float:
    """What looking is expected to cost."""
    if mind.costs.shape[0] == 1:
        return mind.costs[0]  # type: ignore[no-any-return]
    cost = 0.0
    for i in range(mind.particles.sizes[which]):
        state = mind.particles.states[which, i]
        if state < mind.ready.shape[0]:
            pair = state * mind.scores.shape[0] + action
            cost += mind.particles.times[which, i] / mind.particles.totals[which] * mind.costs[pair]
    return cost


@lean
def observe(
    mind: Mind, rules: Rules, reward: float, cost: float, observation: int, terminated: bool, stream: Any
) -> None:
    """Learn from a step: dynamics where the state was known before and after, values in the whole belief, then by training."""
    now, action, end = mind.memory[NOW], mind.memory[ACTION], mind.ready.shape[0]
    if reward > mind.sums[LARGEST_REWARD]:
        _raise_hopes(mind, rules, reward)
    measured = observation != NOTHING
    successor = end if terminated else observation
    if measured and mind.particles.sizes[now] == 1 and mind.particles.states[now, 0] < end:
        _learn_transition(mind, rules, mind.particles.states[now, 0], action, successor, reward)
    _learn_values(mind, rules, reward - cost if rules.cost_in_target else reward, measured or terminated, successor)
    if not terminated:
        _believe(mind, rules, observation)
    train(mind, rules, stream)


@lean
def _learn_values(mind: Mind, rules: Rules, reward: float, seen: bool, successor: int) -> None:
    """Update the values of the action in every state of the belief, as much as each is believed in."""
    now, action, n_actions = mind.memory[NOW], mind.memory[ACTION], mind.scores.shape[0]
    by_model = rules.own_rewards and mind.particles.sizes[now] > 1
    for i in range(mind.particles.sizes[now]):
        state = mind.particles.states[now, i]
        if state == mind.ready.shape[0]:
            continue
        pair = state * n_actions + action
        rate = rules.learning_rate * mind.particles.times[now, i] / mind.particles.totals[now]
        if by_model:
            if mind.counts.measured[pair] > 0:
                _update(mind, rules, state, pair, modelled_target(mind, rules, pair), rate)
        else:
            direct = rules.observed_target and seen
            future = mind.best[successor] if direct else expected_best(mind, rules, pair)
            _update(mind, rules, state, pair, reward + rules.discount * future, rate)


@lean
def modelled_target(mind: Mind, rules: Rules, pair: int) -> float:
    """What a pair is worth by the learned rewards and dynamics."""
    measured = mind.counts.measured[pair]
    reward = mind.counts.rewards[pair]
    if rules.prior_in_rewards:
        reward *= measured / (measured + 1.0)
    return reward + rules.discount * expected_best(mind, rules, pair)  # type: ignore[no-any-return]


@lean
def _believe(mind: Mind, rules: Rules, observation: int) -> None:
    """Take up the state that was seen, or the belief that was predicted."""
    now, then = mind.memory[NOW], 1 - mind.memory[NOW]
    if observation != NOTHING:
        know(mind.particles, now, observation)
        return
    mind.memory[NOW] = then
    if rules.knows_it_runs:
        exclude_end(mind.particles, then)


@lean
def _learn_transition(mind: Mind, rules: Rules, state: int, action: int, successor: int, reward: float) -> None:
    pair = state * mind.scores.shape[0] + action
    if mind.counts.measured[pair] + 1 == rules.training_needs and not _is_ready(mind, rules, state):
        mind.ready[mind.memory[READY]] = state
        mind.memory[READY] += 1
    count(mind.counts, pair, successor, reward)
    _hope(mind, rules, state, pair)


@lean
def _is_ready(mind: Mind, rules: Rules, state: int) -> bool:
    """Whether some action of the state was measured often enough to be trained."""
    first, often = state * mind.scores.shape[0], 0
    for action in range(mind.scores.shape[0]):
        often = max(often, mind.counts.measured[first + action])
    return often >= rules.training_needs


@lean
def expected_best(mind: Mind, rules: Rules, pair: int) -> float:
    """The optimistic value that a pair is expected to lead to."""
    counts = mind.counts
    total, entry = 0.0, counts.first[pair]
    while entry != 0:
        total += counts.times[entry] * mind.best[counts.successors[entry]]
        entry = counts.following[entry]
    measured = counts.measured[pair]
    if measured > rules.prior_until:
        return total / measured  # type: ignore[no-any-return]
    return (total + mind.sums[BEST_SUM] / mind.ready.shape[0]) / (measured + 1.0)  # type: ignore[no-any-return]


@lean
def _update(mind: Mind, rules: Rules, state: int, pair: int, target: float, rate: float) -> None:
    mind.values[pair] += rate * (target - mind.values[pair])
    _hope(mind, rules, state, pair)


@lean
def _hope(mind: Mind, rules: Rules, state: int, pair: int) -> None:
    """Bring the optimistic value of a pair up to date, and with it the best one of its state.

    A pair measured often enough gets no bonus. By the paper's formula one whose value is above the largest reward of a step, as
    it is where rewards add up, would get one that grows with every measurement, and values would grow without end.
    """
    value, missing = mind.values[pair], rules.optimism - 1.0 - mind.counts.measured[pair]
    bonus = missing / rules.optimism * (mind.sums[LARGEST_REWARD] - value)
    mind.optimistic[pair] = value + bonus if missing > 0.0 and bonus > 0.0 else value
    _choose(mind, state)


@lean
def _choose(mind: Mind, state: int) -> None:
    """Bring the best action of a state up to date; written so that no branch depends on the values, which is faster."""
    n_actions, old = mind.scores.shape[0], mind.best[state]
    first = state * n_actions
    best, greedy = mind.optimistic[first], 0
    for action in range(1, n_actions):
        value = mind.optimistic[first + action]
        greedy = action if value > best else greedy
        best = max(best, value)
    mind.greedy[state] = greedy
    mind.best[state] = best
    mind.sums[BEST_SUM] += best - old


@lean
def _raise_hopes(mind: Mind, rules: Rules, reward: float) -> None:
    """A reward larger than any thought possible."""
    mind.sums[LARGEST_REWARD] = reward
    for state in range(mind.ready.shape[0]):
        for action in range(mind.scores.shape[0]):
            _hope(mind, rules, state, state * mind.scores.shape[0] + action)


@lean
def train(mind: Mind, rules: Rules, stream: Any) -> None:
    """Update values of random pairs by the learned dynamics: half of the time of the action that looks best.

    One random number tells both the state (by its leading digits) and the action (by those that follow).
    """
    n_actions, everywhere = mind.scores.shape[0], rules.training_needs == 0
    states = mind.ready.shape[0] if everywhere else mind.memory[READY]
    if states == 0:
        return
    for _ in range(rules.training_updates):
        number = random(stream) * states
        place = int(number)
        state = place if everywhere else mind.ready[place]
        action = _trained_action(mind.greedy[state], n_actions, number - place, rules.training_greedy)
        pair = state * n_actions + action
        if mind.counts.measured[pair] >= rules.training_needs:
            _update(mind, rules, state, pair, modelled_target(mind, rules, pair), rules.learning_rate)


@lean
def _trained_action(greedy: int, n_actions: int, uniform: float, chance: float) -> int:
    """The greedy action with a given chance, otherwise any other."""
    if uniform < chance or n_actions == 1:
        return greedy
    other = int((uniform - chance) / (1.0 - chance) * (n_actions - 1))
    other = min(other, n_actions - 2)
    return other + (other >= greedy)


@lean
def needs_room(mind: Mind) -> bool:
    """Whether the next step could need more room for transitions than there is."""
    return is_full(mind.counts)


# ----------------------------------------------------------------------------------------------------
# Act-then-measure Q-learning on a model, many episodes at a time.
# ----------------------------------------------------------------------------------------------------


#: Where a run is: the episode in the record, the state of the world, and whether the episode is still running.
EPISODE, STATE, RUNNING = 0, 1, 2


@lean
def run(
    world: World,
    mind: Mind,
    rules: Rules,
    start_states: Any,
    start_probabilities: Any,
    entropy: Any,
    first_episode: int,
    max_steps: int,
    record: Record,
    place: Any,
    world_stream: Any,
    agent_stream: Any,
) -> bool:
    """Episodes `first_episode` and on. False if the mind needs more room; call again with it, and the same place (int64 (3,))."""
    n_actions = world.dynamics.n_actions
    while place[EPISODE] < record.steps.shape[0]:
        episode = place[EPISODE]
        if not place[RUNNING]:
            seed_stream(world_stream, entropy, first_episode + episode, WORLD)
            seed_stream(agent_stream, entropy, first_episode + episode, AGENT)
            place[STATE] = first_state(world, world_stream)
            shown = place[STATE] if world.reveal_start else NOTHING
            begin(mind, shown, start_states, start_probabilities, agent_stream)
            place[RUNNING] = True
        while place[RUNNING] and record.steps[episode] < max_steps:
            if needs_room(mind):
                return False
            action, measure = decide(mind, rules, agent_stream)
            cost = world.dynamics.costs[place[STATE] * n_actions + action] if measure else 0.0
            place[STATE], reward, ended = move(world, place[STATE], action, world_stream)
            write(record, episode, reward, cost, measure, ended)
            observe(mind, rules, reward, cost, place[STATE] if measure else NOTHING, ended, agent_stream)
            place[RUNNING] = not ended
        place[RUNNING] = False
        place[EPISODE] += 1
    return True
