"""POMCP on models with any measurements: simulations through a tree whose histories branch by outcomes, and its particles.

`kernels.pomcp` has the tree, and the same for models with one exact measurement, whose outcome is the state. Here a *choice* is
the number of a decision among those allowed, and the observation of an edge is the outcome's number within the measurement that
was made, or the largest number of outcomes for nothing seen.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from actmeasure.kernels.jit import no_refcount
from actmeasure.kernels.learned_model import any_of
from actmeasure.kernels.outcomes import LAW, draw_outcome, outcome_probability
from actmeasure.kernels.pomcp import (
    ATTEMPTS,
    GIVEN,
    LOOKING,
    NONE,
    RANDOM,
    ROOT,
    Parameters,
    Path,
    Tree,
    add,
    choose,
    find,
    sample,
)
from actmeasure.kernels.simulate import move
from actmeasure.kernels.simulate_outcomes import MeasuredWorld
from actmeasure.kernels.streams import random


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


@no_refcount
def search(
    measured: MeasuredWorld,
    tree: Tree,
    parameters: Parameters,
    choices: Choices,
    particles: Any,
    simulations: int,
    rollout: Rollout,
    path: Path,
    stream: Any,
) -> None:
    """Grow the tree by simulations from the particles of the root's belief, int64 (n,); `path` is scratch memory."""
    for _ in range(simulations):
        state = particles[any_of(particles.shape[0], stream)]
        length, tail = _simulate(measured, tree, parameters, choices, state, rollout, path, stream)
        _back_up(tree, parameters, choices, path, length, tail)


@no_refcount
def _simulate(
    measured: MeasuredWorld,
    tree: Tree,
    parameters: Parameters,
    choices: Choices,
    state: int,
    rollout: Rollout,
    path: Path,
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


@no_refcount
def drawn_edge(measured: MeasuredWorld, choices: Choices, choice: int, state: int, stream: Any) -> int:
    """Draw the outcome of a choice in the running state that was reached; return the edge of both."""
    action, measurement = choices.actions[choice], choices.measurements[choice]
    uniform = random(stream) if measured.outcomes.kinds[measurement] == LAW else 0.0
    return edge_of(choices, choice, draw_outcome(measured.outcomes, measurement, action, state, uniform))


@no_refcount
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

    Its outcome is drawn. The return after the step is the mean return of simulations through the history that this leads to, if
    there are any. (The best mean of its choices would be too high where few simulations were made, and the more so the less an
    outcome tells: planners would wait and measure without end.) The sample does not count as a try, which would lower the
    confidence bound of a choice that was not made.
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
            future = _mean_return(tree, following)
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
                choice = choices.first[action] + 1 + any_of(n_measurements, stream)
                total -= factor * measured.outcomes.costs[choices.measurements[choice], state * n_actions + action]
        state, reward, ended = move(measured.world, state, action, stream)
        total += factor * reward
        if ended:
            break
        factor *= parameters.discount
    return total


@no_refcount
def _back_up(tree: Tree, parameters: Parameters, choices: Choices, path: Path, length: int, tail: float) -> None:
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
