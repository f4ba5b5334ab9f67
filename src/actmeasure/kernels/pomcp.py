"""Monte-Carlo planning under partial observability: simulate, expand, back up."""

from __future__ import annotations

from math import log, sqrt
from typing import Any, NamedTuple

import numpy as np

from actmeasure.kernels.jit import lean
from actmeasure.kernels.learned_model import any_of
from actmeasure.kernels.search_tree import NONE, ROOT, Tree, add, find
from actmeasure.kernels.simulate import World, move

#: Rollouts: any action, with or without a look; any without looks; the given action of each state, without and with a look.
RANDOM, BLIND, GIVEN, LOOKING = 0, 1, 2, 3
#: How often particles are moved anew if all of them end, before they are put anywhere.
ATTEMPTS = 10


class Rules(NamedTuple):
    """The settings of the planner, as plain numbers."""

    discount: float
    depth: int
    exploration: float
    rollout: int
    clamp: bool
    share: bool


class Path(NamedTuple):
    """The way of one simulation through the tree, all of shape (depth,), and what each step paid."""

    histories: Any  # int64
    choices: Any  # int64
    gains: Any  # float64


def make_path(depth: int) -> Path:
    """Room for a simulation."""
    return Path(np.zeros(depth, np.int64), np.zeros(depth, np.int64), np.zeros(depth))


@lean
def search(
    world: World, tree: Tree, rules: Rules, particles: Any, simulations: int, actions: Any, path: Path, stream: Any
) -> None:
    """Simulate so often from particles of the root's belief, int64 (n,); `actions`, int64 (S,), are for given rollouts."""
    for _ in range(simulations):
        state = particles[any_of(particles.shape[0], stream)]
        length, tail = _simulate(world, tree, rules, state, actions, path, stream)
        _back_up(tree, rules, path, length, tail)


@lean
def _simulate(
    world: World, tree: Tree, rules: Rules, state: int, actions: Any, path: Path, stream: Any
) -> tuple[int, float]:
    """Go down the tree to its edge, expand it there, and play on; returns the steps in the tree and the worth of the rest."""
    n_actions, n_states = world.dynamics.n_actions, world.dynamics.terminal.shape[0]
    history = ROOT
    for step in range(rules.depth):
        choice = _choose(tree, rules, history, stream)
        action, look = choice // 2, choice % 2
        cost = world.dynamics.costs[state * n_actions + action]
        state, reward, ended = move(world, state, action, stream)
        path.histories[step], path.choices[step] = history, choice
        path.gains[step] = reward - cost if look else reward
        if rules.share:
            _tell_twin(tree, rules, history, choice, reward if look else reward - cost, state, n_states, ended)
        if ended:
            return step + 1, 0.0
        edge = choice * (n_states + 1) + (state if look else n_states)
        following = find(tree, history, edge)
        if following == NONE:
            add(tree, history, edge)
            return step + 1, _roll_out(world, rules, state, rules.depth - step - 1, actions, stream)
        history = following
    return rules.depth, 0.0


@lean
def _choose(tree: Tree, rules: Rules, history: int, stream: Any) -> int:
    """A choice that was never tried, any of them; else the one with the highest upper confidence bound."""
    n_choices, untried = tree.tries.shape[1], 0
    for choice in range(n_choices):
        untried += tree.tries[history, choice] == 0
    if untried > 0:
        skip = any_of(untried, stream)
        for choice in range(n_choices):
            if tree.tries[history, choice] == 0:
                if skip == 0:
                    return choice
                skip -= 1
    width = rules.exploration * sqrt(log(float(tree.visits[history])))
    best, chosen = -np.inf, 0
    for choice in range(n_choices):
        bound = tree.means[history, choice] + width / sqrt(float(tree.tries[history, choice]))
        if bound > best:
            best, chosen = bound, choice
    return chosen


@lean
def _tell_twin(
    tree: Tree, rules: Rules, history: int, choice: int, gain: float, state: int, n_states: int, ended: bool
) -> None:
    """The same action with and without a look leads to the same state, so what the other would have paid is known too.

    What comes after it is taken from the tree, where the other has been tried already. It does not count as a try, or else
    the other would never be explored further.
    """
    twin = choice ^ 1
    future = 0.0
    if not ended:
        following = find(tree, history, twin * (n_states + 1) + (state if twin % 2 else n_states))
        if following == NONE or tree.visits[following] == 0:
            return
        future = best_mean(tree, following)
    _sample(tree, history, twin, gain + rules.discount * future)


@lean
def best_mean(tree: Tree, history: int) -> float:
    """The highest mean of the choices tried, 0 if none was."""
    best, chosen = 0.0, NONE
    for choice in range(tree.tries.shape[1]):
        if tree.tries[history, choice] > 0 and (chosen == NONE or tree.means[history, choice] > best):
            best, chosen = tree.means[history, choice], choice
    return best


@lean
def best_choice(tree: Tree, history: int, stream: Any) -> int:
    """The choice with the highest mean, of several any: where nothing is known, all are worth the same. -1 if none was tried."""
    best, ties = best_mean(tree, history), 0
    for choice in range(tree.tries.shape[1]):
        ties += tree.tries[history, choice] > 0 and tree.means[history, choice] == best
    skip = any_of(ties, stream) if ties > 1 else 0
    for choice in range(tree.tries.shape[1]):
        if tree.tries[history, choice] > 0 and tree.means[history, choice] == best:
            if skip == 0:
                return choice
            skip -= 1
    return NONE


@lean
def _roll_out(world: World, rules: Rules, state: int, steps: int, actions: Any, stream: Any) -> float:
    """What playing on from a state without a tree is worth."""
    n_actions = world.dynamics.n_actions
    total, factor = 0.0, 1.0
    for _ in range(steps):
        action = actions[state] if rules.rollout >= GIVEN else any_of(n_actions, stream)
        if rules.rollout == LOOKING or (rules.rollout == RANDOM and any_of(2, stream) == 1):
            total -= factor * world.dynamics.costs[state * n_actions + action]
        state, reward, ended = move(world, state, action, stream)
        total += factor * reward
        if ended:
            break
        factor *= rules.discount
    return total


@lean
def _back_up(tree: Tree, rules: Rules, path: Path, length: int, tail: float) -> None:
    """Take what a simulation was worth into the means of all choices on its way."""
    worth = tail
    for step in range(length - 1, -1, -1):
        worth = path.gains[step] + rules.discount * worth
        if rules.clamp and path.choices[step] % 2 == 0 and worth < 0.0:
            worth = 0.0
        history, choice = path.histories[step], path.choices[step]
        tree.visits[history] += 1
        tree.tries[history, choice] += 1
        _sample(tree, history, choice, worth)


@lean
def _sample(tree: Tree, history: int, choice: int, worth: float) -> None:
    tree.samples[history, choice] += 1
    tree.means[history, choice] += (worth - tree.means[history, choice]) / tree.samples[history, choice]


@lean
def move_particles(world: World, particles: Any, action: int, stream: Any) -> int:
    """Move particles, int64 (n,), one blind step, after which the episode is still running; returns how many had to be made up.

    Those that end are replaced by copies of others. If all end, also after several attempts, they are put anywhere: the world
    is then not as the model has it.
    """
    size, n_states = particles.shape[0], world.dynamics.terminal.shape[0]
    alive = 0
    for _ in range(ATTEMPTS):
        for i in range(size - 1, -1, -1):
            state, _, ended = move(world, particles[i], action, stream)
            if not ended:  # kept at the end of the array, where all have been moved already
                alive += 1
                particles[size - alive] = state
        if alive > 0:
            break
    missing: int = size - alive
    for i in range(missing):
        if alive > 0:
            particles[i] = particles[size - 1 - any_of(alive, stream)]
        else:
            particles[i] = _anywhere(world, n_states, stream)
    return missing


@lean
def _anywhere(world: World, n_states: int, stream: Any) -> int:
    """Any state in which the episode runs."""
    state = any_of(n_states, stream)
    while world.dynamics.terminal[state]:
        state = any_of(n_states, stream)
    return state
