"""POMCP: a search tree of histories in flat arrays, the simulations that grow it, and particles of the belief.

A *choice* is the number of a decision among those allowed. A *history* is a node of the tree; an *edge* to the next history is
choice * n_observations + observation. The observation is the outcome's number within the measurement that was made, the state
where that is exact, or the largest number of outcomes for nothing seen. `search` simulates: `_simulate` descends the tree, adds
a history and rolls out, `_back_up` updates the means along the path.
"""

from __future__ import annotations

from math import log, sqrt
from typing import Any, NamedTuple

import numpy as np

from actmeasure.kernels.jit import inlined, no_refcount
from actmeasure.kernels.outcomes import LAW, draw_outcome, outcome_probability
from actmeasure.kernels.simulate import MeasuredWorld, World, move
from actmeasure.kernels.streams import any_of, random

#: Instead of the number of a history: there is none.
NONE = -1
#: Number of the history from which all simulations start.
ROOT = 0
#: Multiplier of the hash function: 2**64 divided by the golden ratio.
SPREAD = np.uint64(0x9E3779B97F4A7C15)


class Tree(NamedTuple):
    """The search tree: arrays over at most `most` histories, numbered from the root, 0, and a hash table of them."""

    visits: Any  # int64 (most,): number of simulations through the history
    tries: Any  # int64 (most, n): number of simulations that made each choice there
    means: Any  # float64 (most, n): mean discounted return from each choice on
    samples: Any  # int64 (most, n): number of returns in each mean; with shared samples more than tries
    parent: Any  # int64 (most,)
    edge: Any  # int64 (most,): edge from the parent, choice * n_observations + observation
    child: Any  # int64 (most,): the child that was added last, -1 if none
    sibling: Any  # int64 (most,): the child of the same parent that was added before, -1 if none
    table: Any  # int64 (a power of two,): histories by the hash of parent and edge, -1 where free
    used: Any  # int64 (1,): number of histories


def make_tree(n_choices: int, most: int) -> Tree:
    """Return a tree with only the root, of at most `most` histories."""
    size = 1 << int(2 * most - 1).bit_length()
    tree = Tree(
        np.zeros(most, np.int64), np.zeros((most, n_choices), np.int64), np.zeros((most, n_choices)),
        np.zeros((most, n_choices), np.int64), np.full(most, NONE), np.full(most, NONE), np.full(most, NONE),
        np.full(most, NONE), np.full(size, NONE), np.zeros(1, np.int64),
    )  # fmt: skip
    clear(tree)
    return tree


@no_refcount
def clear(tree: Tree) -> None:
    """Remove all histories but the root, and its statistics."""
    for slot in range(tree.table.shape[0]):
        tree.table[slot] = NONE
    tree.used[0] = 0
    add(tree, NONE, NONE)


@no_refcount
def _slot(tree: Tree, parent: int, edge: int) -> Any:
    """Return the slot of the hash table at which the search for a history begins."""
    key = np.uint64(parent) * SPREAD + np.uint64(edge)
    key = (key ^ (key >> np.uint64(29))) * SPREAD
    return (key ^ (key >> np.uint64(32))) & np.uint64(tree.table.shape[0] - 1)


@no_refcount
def find(tree: Tree, parent: int, edge: int) -> int:
    """Return the child of a history along an edge, -1 if it is not in the tree."""
    slot = _slot(tree, parent, edge)
    history = tree.table[slot]
    while history != NONE and (tree.parent[history] != parent or tree.edge[history] != edge):
        slot = (slot + np.uint64(1)) & np.uint64(tree.table.shape[0] - 1)
        history = tree.table[slot]
    return history  # type: ignore[no-any-return]


@no_refcount
def add(tree: Tree, parent: int, edge: int) -> int:
    """Add a history that is not in the tree and return its number, -1 if the tree is full."""
    history = tree.used[0]
    if history == tree.visits.shape[0]:
        return NONE
    tree.used[0] += 1
    tree.visits[history] = 0
    for choice in range(tree.tries.shape[1]):
        tree.tries[history, choice] = 0
        tree.means[history, choice] = 0.0
        tree.samples[history, choice] = 0
    tree.parent[history], tree.edge[history] = parent, edge
    tree.child[history], tree.sibling[history] = NONE, NONE
    if parent != NONE:
        tree.sibling[history] = tree.child[parent]
        tree.child[parent] = history
        slot = _slot(tree, parent, edge)
        while tree.table[slot] != NONE:
            slot = (slot + np.uint64(1)) & np.uint64(tree.table.shape[0] - 1)
        tree.table[slot] = history
    return history  # type: ignore[no-any-return]


@no_refcount
def keep_below(tree: Tree, root: int, target: Tree, origin: Any) -> None:
    """Copy the subtree of a history into another tree of the same size, in which the history is the root.

    `origin`, int64 (most,), is scratch memory: the number that each copied history had before.
    """
    clear(target)
    origin[ROOT] = root
    new = 0
    while new < target.used[0]:
        old = origin[new]
        target.visits[new] = tree.visits[old]
        for choice in range(tree.tries.shape[1]):
            target.tries[new, choice] = tree.tries[old, choice]
            target.means[new, choice] = tree.means[old, choice]
            target.samples[new, choice] = tree.samples[old, choice]
        following = tree.child[old]
        while following != NONE:
            origin[add(target, new, tree.edge[following])] = following
            following = tree.sibling[following]
        new += 1


#: Rollouts: random actions and looks; random actions without looks; given actions of each state without looks; with looks.
RANDOM, BLIND, GIVEN, LOOKING = 0, 1, 2, 3
#: Number of times that particles are moved if none of them is left, before they are replaced.
ATTEMPTS = 10


class Parameters(NamedTuple):
    """Settings of the planner, as plain numbers; see `actmeasure.planning.POMCP`."""

    discount: float
    depth: int
    exploration: float
    rollout: int
    clamp: bool
    share: bool
    exact_look: bool  # whether the only measurement is an exact look


class Choices(NamedTuple):
    """The allowed decisions, ascending by action and then by measurement; the first of every action is without a measurement."""

    actions: Any  # int64 (n,)
    measurements: Any  # int64 (n,)
    first: Any  # int64 (A + 1,): the choices of action `a` are those from first[a] to first[a + 1] - 1
    n_observations: int  # largest number of outcomes, and 1 for nothing seen


class Rollout(NamedTuple):
    """What is done in rollouts of the kinds `GIVEN` and `LOOKING`."""

    actions: Any  # int64 (S,): action of each state
    costs: Any  # float64 (S,): price of the measurement that is made with it in `LOOKING` rollouts


class SimulatedPath(NamedTuple):
    """The path of one simulation through the tree; all of shape (depth,)."""

    histories: Any  # int64
    choices: Any  # int64
    gains: Any  # float64: reward minus measuring cost of each step


def make_path(depth: int) -> SimulatedPath:
    """Return memory for the path of a simulation of at most `depth` steps."""
    return SimulatedPath(np.zeros(depth, np.int64), np.zeros(depth, np.int64), np.zeros(depth))


@no_refcount
def search(
    measured: MeasuredWorld,
    tree: Tree,
    parameters: Parameters,
    choices: Choices,
    particles: Any,
    simulations: int,
    rollout: Rollout,
    path: SimulatedPath,
    stream: Any,
) -> None:
    """Grow the tree by simulations from the particles of the root's belief.

    Parameters
    ----------
    measured : MeasuredWorld
    tree : Tree
    parameters : Parameters
    choices : Choices
    particles : int64 array, shape (n,)
    simulations : int
    rollout : Rollout
    path : Path
        Scratch memory.
    stream : uint64 array
        Random numbers.
    """
    for _ in range(simulations):
        state = particles[any_of(particles.shape[0], stream)]
        length, tail = _simulate(measured, tree, parameters, choices, state, rollout, path, stream)
        _back_up(tree, parameters, choices, path, length, tail)


@inlined
def _simulate(
    measured: MeasuredWorld,
    tree: Tree,
    parameters: Parameters,
    choices: Choices,
    state: int,
    rollout: Rollout,
    path: SimulatedPath,
    stream: Any,
) -> tuple[int, float]:
    """Descend the tree, add a history and roll out; return the steps in the tree and the discounted return after them."""
    costs, n_actions = measured.outcomes.costs, measured.world.dynamics.n_actions
    history = ROOT
    for step in range(parameters.depth):
        choice = choose(tree, parameters, history, stream)
        action = choices.actions[choice]
        pair = state * n_actions + action
        state, reward, ended = move(measured.world, state, action, stream)
        path.histories[step], path.choices[step] = history, choice
        path.gains[step] = reward - costs[choices.measurements[choice], pair]
        if parameters.share:
            _sample_others(measured, tree, parameters, choices, history, choice, reward, pair, state, ended, stream)
        if ended:
            return step + 1, 0.0
        edge = drawn_edge(measured, choices, choice, state, stream)
        following = find(tree, history, edge)
        if following == NONE:
            add(tree, history, edge)
            tail = _roll_out(measured, parameters, choices, state, parameters.depth - step - 1, rollout, stream)
            return step + 1, tail
        history = following
    return parameters.depth, 0.0


@no_refcount
def edge_of(choices: Choices, choice: int, outcome: int) -> int:
    """Return the edge of a choice and its outcome, -1 for nothing seen."""
    n_observations = choices.n_observations
    return choice * n_observations + (outcome if outcome >= 0 else n_observations - 1)


@inlined
def drawn_edge(measured: MeasuredWorld, choices: Choices, choice: int, state: int, stream: Any) -> int:
    """Draw the outcome of a choice in the running state that was reached; return the edge of both."""
    action, measurement = choices.actions[choice], choices.measurements[choice]
    uniform = random(stream) if measured.outcomes.kinds[measurement] == LAW else 0.0
    return edge_of(choices, choice, draw_outcome(measured.outcomes, measurement, action, state, uniform))


@no_refcount
def choose(tree: Tree, parameters: Parameters, history: int, stream: Any) -> int:
    """Return an untried choice, drawn uniformly, or if there is none the one with the highest upper confidence bound."""
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
    width = parameters.exploration * sqrt(log(float(tree.visits[history])))
    best, chosen = -np.inf, 0
    for choice in range(n_choices):
        bound = tree.means[history, choice] + width / sqrt(float(tree.tries[history, choice]))
        if bound > best:
            best, chosen = bound, choice
    return chosen


@inlined
def _sample_others(
    measured: MeasuredWorld,
    tree: Tree,
    parameters: Parameters,
    choices: Choices,
    history: int,
    choice: int,
    reward: float,
    pair: int,
    state: int,
    ended: bool,
    stream: Any,
) -> None:
    """Add a sample to the same action with every other measurement, which would have led to the same state.

    Its outcome is drawn. The return after the step is estimated at the history that this leads to, if there are simulations
    through it: after an exact look by the best mean of its choices, else by the mean return of these simulations. (The best mean
    would be too high where few simulations were made, and the more so the less an outcome tells: planners would wait and measure
    without end.) The sample does not count as a try, which would lower the confidence bound of a choice that was not made.
    """
    action = choices.actions[choice]
    for other in range(choices.first[action], choices.first[action + 1]):
        if other == choice or (not ended and tree.tries[history, other] == 0):
            continue
        future = 0.0
        if not ended:
            following = find(tree, history, drawn_edge(measured, choices, other, state, stream))
            if following == NONE or tree.visits[following] == 0:
                continue
            future = best_mean(tree, following) if parameters.exact_look else _mean_return(tree, following)
        gain = reward - measured.outcomes.costs[choices.measurements[other], pair]
        sample(tree, history, other, gain + parameters.discount * future)


@no_refcount
def _mean_return(tree: Tree, history: int) -> float:
    """Return the mean return of the simulations through a history that was visited."""
    total = 0.0
    for choice in range(tree.tries.shape[1]):
        total += tree.tries[history, choice] * tree.means[history, choice]
    return total / tree.visits[history]  # type: ignore[no-any-return]


@no_refcount
def best_mean(tree: Tree, history: int) -> float:
    """Return the highest mean of the choices that were tried, 0 if none was."""
    best, chosen = 0.0, NONE
    for choice in range(tree.tries.shape[1]):
        if tree.tries[history, choice] > 0 and (chosen == NONE or tree.means[history, choice] > best):
            best, chosen = tree.means[history, choice], choice
    return best


@no_refcount
def best_choice(tree: Tree, history: int, stream: Any) -> int:
    """Return the choice with the highest mean, drawn uniformly from ties, or -1 if none was tried."""
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


@no_refcount
def _roll_out(
    measured: MeasuredWorld,
    parameters: Parameters,
    choices: Choices,
    state: int,
    steps: int,
    rollout: Rollout,
    stream: Any,
) -> float:
    """Return the discounted return of a rollout of at most `steps` steps from a state."""
    n_actions = measured.world.dynamics.n_actions
    total, factor = 0.0, 1.0
    for _ in range(steps):
        action = rollout.actions[state] if parameters.rollout >= GIVEN else any_of(n_actions, stream)
        if parameters.rollout == LOOKING:
            total -= factor * rollout.costs[state]
        elif parameters.rollout == RANDOM and any_of(2, stream) == 1:
            n_measurements = choices.first[action + 1] - choices.first[action] - 1
            if n_measurements > 0:
                choice = choices.first[action] + 1
                if not parameters.exact_look:
                    choice += any_of(n_measurements, stream)
                total -= factor * measured.outcomes.costs[choices.measurements[choice], state * n_actions + action]
        state, reward, ended = move(measured.world, state, action, stream)
        total += factor * reward
        if ended:
            break
        factor *= parameters.discount
    return total


@no_refcount
def _back_up(
    tree: Tree, parameters: Parameters, choices: Choices, path: SimulatedPath, length: int, tail: float
) -> None:
    """Add the returns of a simulation to the means of all choices on its path; `tail` is the return after it."""
    value = tail
    for step in range(length - 1, -1, -1):
        history, choice = path.histories[step], path.choices[step]
        value = path.gains[step] + parameters.discount * value
        if parameters.clamp and choices.measurements[choice] == 0 and value < 0.0:
            value = 0.0
        tree.visits[history] += 1
        tree.tries[history, choice] += 1
        sample(tree, history, choice, value)


@no_refcount
def sample(tree: Tree, history: int, choice: int, value: float) -> None:
    """Add a return to the mean of a choice."""
    tree.samples[history, choice] += 1
    tree.means[history, choice] += (value - tree.means[history, choice]) / tree.samples[history, choice]


@no_refcount
def move_particles(world: World, particles: Any, action: int, stream: Any) -> int:
    """Move particles, int64 (n,), one blind step, given that the episode goes on; return the number that were replaced.

    Particles that end are replaced by copies of others. If all end in every one of `ATTEMPTS` attempts, which the model rules
    out, they are replaced by states drawn uniformly.
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
            particles[i] = _any_running_state(world, n_states, stream)
    return missing


@no_refcount
def _any_running_state(world: World, n_states: int, stream: Any) -> int:
    """Return a state that is not terminal, drawn uniformly."""
    state = any_of(n_states, stream)
    while world.dynamics.terminal[state]:
        state = any_of(n_states, stream)
    return state


@no_refcount
def update_particles(
    measured: MeasuredWorld,
    particles: Any,
    moved: Any,
    weights: Any,
    action: int,
    measurement: int,
    outcome: int,
    stream: Any,
) -> tuple[int, float]:
    """Move particles one step, weight them by the probability of the outcome in a running episode, and draw them by weight.

    Parameters
    ----------
    measured : MeasuredWorld
    particles : int64 array, shape (n,)
        Unchanged if all weights are 0 in every one of `ATTEMPTS` attempts.
    moved, weights : arrays, shape (n,)
        Scratch memory, int64 and float64.
    action, measurement : int
    outcome : int
        -1 for nothing seen.
    stream : uint64 array

    Returns
    -------
    rejected : int
        Number of particles of weight 0.
    effective : float
        Effective number of particles, (sum of weights)**2 / (sum of squares); 0 if all weights are 0.
    """
    size = particles.shape[0]
    total, squares, rejected = 0.0, 0.0, 0
    for _ in range(ATTEMPTS):
        rejected = 0
        for i in range(size):
            state, _, ended = move(measured.world, particles[i], action, stream)
            weight = 0.0 if ended else outcome_probability(measured.outcomes, measurement, action, state, outcome)
            moved[i], weights[i] = state, weight
            total += weight
            squares += weight * weight
            rejected += weight == 0.0
        if total > 0.0:
            break
    if total <= 0.0 or squares <= 0.0:
        return size, 0.0
    # Systematic resampling: `size` equidistant points over the cumulative weights, with one random offset.
    step = total / size
    point, index, passed = random(stream) * step, 0, weights[0]
    last = size - 1
    while weights[last] == 0.0:  # rounding must not lead to a particle of weight 0
        last -= 1
    for i in range(size):
        while passed <= point and index < last:
            index += 1
            passed += weights[index]
        particles[i] = moved[index]
        point += step
    return rejected, total * total / squares
