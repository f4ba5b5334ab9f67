"""Follow every blind plan of a schedule from each state that it can come to know: the Markov chain behind an evaluation."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from actmeasure.kernels.dynamics import Dynamics, Weights, expected, expected_size, make_weights, push, total
from actmeasure.kernels.jit import compiled, no_refcount

MEASURE, KNOWN, END, REPEAT = 0, 1, 2, 3
FITS, NO_PLAN, NOT_KNOWN, NOT_OVER, BUFFERS_FULL = 0, 1, 2, 3, 4
DONE, NODES, STEPS, ENTRIES, ENTERED = 0, 1, 2, 3, 4
FIRST_CAPACITY = 1024


class Plans(NamedTuple):
    """The distinct plans of a schedule, end to end."""

    offsets: Any  # int64 (n_plans + 1,)
    actions: Any  # int64 (total length,)
    then: Any  # int64 (n_plans,)
    repeat: Any  # int64 (n_plans,): number of last actions that are repeated without end
    plan_of_state: Any  # int32 (S,)


class Trace(NamedTuple):
    """The chain of known states. A node is a state that is known; node 0 is the start if that is not known."""

    problem: int  # FITS, or what is wrong at `problem_state`
    problem_state: int  # -1 for the start
    states: Any  # int64 (n_nodes,), -1 for a start that is not known
    plans: Any  # int64 (n_nodes,)
    ending: Any  # float64 (n_nodes,): probability that the episode ends on the way, as a sum that keeps its digits
    step_offsets: Any  # int64 (n_nodes + 1,)
    step_rewards: Any  # float64 (n_steps,): expected reward of each step of a node's plan
    step_sizes: Any  # float64 (n_steps,): expected size of the reward
    step_running: Any  # float64 (n_steps,): probability that the episode still runs when it is taken
    costs: Any  # float64 (n_nodes,): expected price of the measurement at the end
    measured: Any  # float64 (n_nodes,): probability that it is taken
    entry_nodes: Any  # int64 (n_entries,)
    entry_states: Any  # int64 (n_entries,): possible states at the end of the plan
    entry_weights: Any  # float64 (n_entries,)


class PlanEnd(NamedTuple):
    """The result of following one plan."""

    steps: int  # how many of its actions could be taken before the episode was surely over
    possible: int  # how many states are possible at its end
    ending: float
    cost: float
    measured: float


class PlanBuffers(NamedTuple):
    """Arrays of a `Trace` with spare capacity, and work arrays."""

    counts: Any  # int64 (4,): nodes followed, nodes known of, steps, entries
    states: Any  # from here on as in `Trace`, with spare capacity
    plans: Any
    ending: Any
    step_offsets: Any
    costs: Any
    measured: Any
    step_rewards: Any
    step_sizes: Any
    step_running: Any
    entry_nodes: Any
    entry_states: Any
    entry_weights: Any
    queued: Any  # bool (S,): whether a state has a node
    current: Weights
    scratch: Weights
    position: Any  # int64 (S,), -1 everywhere


def trace_plans(model: Dynamics, plans: Plans, start_states: Any, start_weights: Any, start_plan: int) -> Trace:
    """Follow the plans from the known start states, or `start_plan` from the start belief if that is not -1."""
    buffers = _plan_buffers(model.terminal.shape[0], start_states, start_plan)
    while (problem := follow_plans(model, plans, start_states, start_weights, start_plan, buffers)) == BUFFERS_FULL:
        buffers = buffers._replace(
            step_rewards=_doubled(buffers.step_rewards), step_sizes=_doubled(buffers.step_sizes),
            step_running=_doubled(buffers.step_running),
            entry_nodes=_doubled(buffers.entry_nodes), entry_states=_doubled(buffers.entry_states),
            entry_weights=_doubled(buffers.entry_weights),
        )  # fmt: skip
    node, n_nodes, n_steps, n_entries = (int(count) for count in buffers.counts)
    return Trace(
        problem, int(buffers.states[node]) if problem != FITS else -1,
        buffers.states[:n_nodes], buffers.plans[:node], buffers.ending[:node],
        buffers.step_offsets[: node + 1],
        buffers.step_rewards[:n_steps], buffers.step_sizes[:n_steps], buffers.step_running[:n_steps],
        buffers.costs[:node], buffers.measured[:node],
        buffers.entry_nodes[:n_entries], buffers.entry_states[:n_entries], buffers.entry_weights[:n_entries],
    )  # fmt: skip


def _plan_buffers(n_states: int, start_states: Any, start_plan: int) -> PlanBuffers:
    most = n_states + 1  # a node for every state, and one for a start that is not known
    states, queued = np.empty(most, np.int64), np.zeros(n_states, np.bool_)
    count = 1 if start_plan >= 0 else len(start_states)
    states[:count] = -1 if start_plan >= 0 else start_states
    if start_plan < 0:
        queued[start_states] = True
    return PlanBuffers(
        counts=np.array([0, count, 0, 0]),
        states=states,
        plans=np.empty(most, np.int64),
        ending=np.empty(most),
        step_offsets=np.zeros(most + 1, np.int64),
        costs=np.empty(most),
        measured=np.empty(most),
        step_rewards=np.empty(FIRST_CAPACITY),
        step_sizes=np.empty(FIRST_CAPACITY),
        step_running=np.empty(FIRST_CAPACITY),
        entry_nodes=np.empty(FIRST_CAPACITY, np.int64),
        entry_states=np.empty(FIRST_CAPACITY, np.int64),
        entry_weights=np.empty(FIRST_CAPACITY),
        queued=queued,
        current=make_weights(n_states),
        scratch=make_weights(n_states),
        position=np.full(n_states, -1),
    )


def _doubled(array: Any) -> Any:
    """Return a copy with twice the capacity."""
    larger = np.empty(2 * len(array), array.dtype)
    larger[: len(array)] = array
    return larger


@no_refcount
def follow_plans(
    model: Dynamics, plans: Plans, start_states: Any, start_weights: Any, start_plan: int, buffers: PlanBuffers
) -> int:
    """Follow the plans of all nodes from the first that is not done; returns FITS, what is wrong with one, or BUFFERS_FULL."""
    while buffers.counts[DONE] < buffers.counts[NODES]:
        node = buffers.counts[DONE]
        state = buffers.states[node]
        plan = start_plan if state < 0 else plans.plan_of_state[state]
        if plan < 0:
            return NO_PLAN
        if buffers.counts[STEPS] + plans.offsets[plan + 1] - plans.offsets[plan] > buffers.step_rewards.shape[0]:
            return BUFFERS_FULL
        count = 1
        if state < 0:
            count = start_states.shape[0]
            for i in range(count):
                buffers.current.states[i], buffers.current.values[i] = start_states[i], start_weights[i]
        else:
            buffers.current.states[0], buffers.current.values[0] = state, 1.0
        outcome = _follow(model, plans, plan, count, buffers)
        problem = _enter(plans, plan, node, outcome, buffers)
        if problem != FITS:
            return problem
    return FITS


@no_refcount
def _follow(model: Dynamics, plans: Plans, plan: int, count: int, buffers: PlanBuffers) -> PlanEnd:
    """Follow a plan from the first `count` weights of `buffers.current`, which then hold what it leads to."""
    current, scratch = buffers.current, buffers.scratch
    ending, cost, measured = 0.0, 0.0, 0.0
    first, steps, length = buffers.counts[STEPS], 0, plans.offsets[plan + 1] - plans.offsets[plan]
    while steps < length and count > 0:
        action = plans.actions[plans.offsets[plan] + steps]
        running = total(current, count)
        buffers.step_rewards[first + steps] = expected(model.rewards, model.n_actions, action, current, count)
        buffers.step_sizes[first + steps] = expected_size(model.rewards, model.n_actions, action, current, count)
        buffers.step_running[first + steps] = running
        if plans.then[plan] == MEASURE and steps == length - 1:
            cost = expected(model.costs, model.n_actions, action, current, count)
            measured = running
        count, ended = push(model, action, current, count, scratch, buffers.position)
        for i in range(count):
            current.states[i], current.values[i] = scratch.states[i], scratch.values[i]
        ending += ended
        steps += 1
    return PlanEnd(steps, count, ending, cost, measured)


@no_refcount
def _enter(plans: Plans, plan: int, node: int, outcome: PlanEnd, buffers: PlanBuffers) -> int:
    """Store the result of following a node's plan; returns FITS, what is wrong with the plan, or BUFFERS_FULL."""
    first = buffers.counts[ENTRIES]
    if first + outcome.possible > buffers.entry_nodes.shape[0]:
        return BUFFERS_FULL
    if plans.then[plan] == KNOWN and outcome.possible > 1:
        return NOT_KNOWN
    if plans.then[plan] == END and outcome.possible > 0:
        return NOT_OVER
    buffers.plans[node], buffers.ending[node] = plan, outcome.ending
    buffers.costs[node], buffers.measured[node] = outcome.cost, outcome.measured
    for i in range(outcome.possible):
        successor = buffers.current.states[i]
        buffers.entry_nodes[first + i], buffers.entry_states[first + i] = node, successor
        buffers.entry_weights[first + i] = buffers.current.values[i]
        if plans.then[plan] != REPEAT and not buffers.queued[successor]:
            buffers.queued[successor] = True
            buffers.states[buffers.counts[NODES]] = successor
            buffers.counts[NODES] += 1
    buffers.counts[STEPS] += outcome.steps
    buffers.counts[ENTRIES] += outcome.possible
    buffers.counts[DONE] += 1
    buffers.step_offsets[node + 1] = buffers.counts[STEPS]
    return FITS


class Tail(NamedTuple):
    """The states and phases in which a repeating tail can be; a node is one of them, and lasts one step."""

    states: Any  # int64 (n_nodes,)
    phases: Any  # int64 (n_nodes,)
    ending: Any  # float64 (n_nodes,): probability that the episode ends with the step
    entry_nodes: Any  # int64 (n_entries,)
    entry_targets: Any  # int64 (n_entries,): nodes
    entry_weights: Any  # float64 (n_entries,)


class TailBuffers(NamedTuple):
    """Arrays of a `Tail` with spare capacity, and work arrays."""

    counts: Any  # int64 (5,): nodes followed, nodes known of, unused, entries, nodes entered into `slots`
    nodes: Any  # int64 (capacity,): phase * n_states + state
    ending: Any  # float64 (capacity,)
    slots: Any  # int64 (a power of two,): open addressing, -1 where free
    entry_nodes: Any
    entry_targets: Any
    entry_weights: Any


def trace_tail(model: Dynamics, actions: Any, first_states: Any) -> Tail:
    """Return the states and phases that can be reached from distinct `first_states` while `actions`, int64 (m,), are repeated."""
    n_first, n_states = len(first_states), model.terminal.shape[0]
    size = max(FIRST_CAPACITY, 1 << n_first.bit_length())
    buffers = TailBuffers(
        np.array([0, n_first, 0, 0, 0]), np.empty(size, np.int64), np.empty(size),
        np.full(4 * size, -1), np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size),
    )  # fmt: skip
    buffers.nodes[:n_first] = first_states
    while not follow_tail(model, actions, buffers):
        buffers = TailBuffers(
            buffers.counts, _doubled(buffers.nodes), _doubled(buffers.ending), np.full(2 * len(buffers.slots), -1),
            _doubled(buffers.entry_nodes), _doubled(buffers.entry_targets), _doubled(buffers.entry_weights),
        )  # fmt: skip
        buffers.counts[ENTERED] = 0
    n_nodes, n_entries = buffers.counts[NODES], buffers.counts[ENTRIES]
    return Tail(
        buffers.nodes[:n_nodes] % n_states, buffers.nodes[:n_nodes] // n_states, buffers.ending[:n_nodes],
        buffers.entry_nodes[:n_entries], buffers.entry_targets[:n_entries], buffers.entry_weights[:n_entries],
    )  # fmt: skip


@no_refcount
def follow_tail(model: Dynamics, actions: Any, buffers: TailBuffers) -> bool:
    """Follow the actions from all nodes that are not done yet; returns False when the arrays are full."""
    n_states, n_phases = model.terminal.shape[0], actions.shape[0]
    while buffers.counts[ENTERED] < buffers.counts[NODES]:
        number = buffers.counts[ENTERED]
        buffers.slots[_slot(buffers.slots, buffers.nodes, buffers.nodes[number])] = number
        buffers.counts[ENTERED] += 1
    while buffers.counts[DONE] < buffers.counts[NODES]:
        node = buffers.counts[DONE]
        phase, state = buffers.nodes[node] // n_states, buffers.nodes[node] % n_states
        following = ((phase + 1) % n_phases) * n_states
        row = state * model.n_actions + actions[phase]
        size = model.offsets[row + 1] - model.offsets[row]
        if (
            buffers.counts[NODES] + size > buffers.nodes.shape[0]
            or buffers.counts[ENTRIES] + size > buffers.entry_nodes.shape[0]
        ):
            return False
        buffers.ending[node] = 0.0
        for entry in range(model.offsets[row], model.offsets[row + 1]):
            successor = model.successors[entry]
            if model.terminal[successor]:
                buffers.ending[node] += model.probabilities[entry]
                continue
            key = following + successor
            slot = _slot(buffers.slots, buffers.nodes, key)
            target = buffers.slots[slot]
            if target < 0:
                target = buffers.counts[NODES]
                buffers.slots[slot] = target
                buffers.nodes[target] = key
                buffers.counts[NODES] += 1
                buffers.counts[ENTERED] += 1
            into = buffers.counts[ENTRIES]
            buffers.entry_nodes[into], buffers.entry_targets[into] = node, target
            buffers.entry_weights[into] = model.probabilities[entry]
            buffers.counts[ENTRIES] += 1
        buffers.counts[DONE] += 1
    return True


@no_refcount
def _slot(slots: Any, keys: Any, key: int) -> int:
    """Return the slot of `key` in an open-addressing table, or the free slot (-1) where it belongs."""
    # Multiplicative hashing: the high bits of the product depend on all bits of the key.
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    slot = np.int64(mixed >> np.uint64(32)) & (slots.shape[0] - 1)
    while slots[slot] >= 0 and keys[slots[slot]] != key:
        slot = (slot + 1) & (slots.shape[0] - 1)
    return slot  # type: ignore[no-any-return]


class Nodes(NamedTuple):
    """A Markov chain over nodes that last some steps each, with k sums (reward, looks, ...) per node."""

    durations: Any  # int64 (n_nodes,)
    totals: Any  # float64 (n_nodes, k): what a whole node gives
    step_offsets: Any  # int64 (n_nodes + 1,)
    so_far: Any  # float64 (n_steps + 1, k): what the steps give without the end of their node, summed over all steps
    move_offsets: Any  # int64 (n_nodes + 1,)
    targets: Any  # int (n_moves,)
    weights: Any  # float64 (n_moves,)


@compiled
def push_forward(
    nodes: Nodes, arrivals: Any, sums: Any, begin: int, latest: int, horizon: int, pause: int
) -> tuple[int, int]:
    """Add the sums of the steps from `begin` up to `pause` to `sums`; returns the time reached and the latest arrival.

    Of nodes that last beyond the `horizon`, the steps up to it count.

    Parameters
    ----------
    arrivals : float64 (longest + 1, n_nodes)
        A ring over the next moments: the probability of arriving in each node at a moment, modulo its size. `longest` is the
        longest duration, or the horizon if that is shorter.
    sums : float64 (k,)
    begin, latest : int
        The moment to go on from, and the latest one at which anything arrives. After that one nothing is left to push.
    """
    n_nodes, _ = nodes.totals.shape
    size = arrivals.shape[0]
    time = begin
    while time < pause and time <= latest:
        now = arrivals[time % size]
        left = horizon - time
        for node in range(n_nodes):
            weight = now[node]
            if weight == 0.0:
                continue
            now[node] = 0.0
            duration = nodes.durations[node]
            if duration > left:
                first = nodes.step_offsets[node]
                sums += weight * (nodes.so_far[first + left] - nodes.so_far[first])
                continue
            sums += weight * nodes.totals[node]
            if duration == left or nodes.move_offsets[node] == nodes.move_offsets[node + 1]:
                continue
            latest = max(latest, time + duration)
            later = arrivals[(time + duration) % size]
            for move in range(nodes.move_offsets[node], nodes.move_offsets[node + 1]):
                later[nodes.targets[move]] += weight * nodes.weights[move]
        time += 1
    return time, latest
