"""Following every blind plan of a schedule, once, from each state that it can come to know."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from actmeasure.kernels.blind import Dynamics, Weights, expected, make_weights, push, total
from actmeasure.kernels.jit import compiled

MEASURE, KNOWN, END, REPEAT = 0, 1, 2, 3
FITS, NO_PLAN, NOT_KNOWN, NOT_OVER = 0, 1, 2, 3


class Plans(NamedTuple):
    """The distinct plans of a schedule, end to end."""

    offsets: Any  # int64 (n_plans + 1,)
    actions: Any  # int64 (total length,)
    then: Any  # int64 (n_plans,)
    repeat: Any  # int64 (n_plans,): how many of the last actions go on for ever
    plan_of_state: Any  # int32 (S,)


class Trace(NamedTuple):
    """What following the plans showed. A node is a state that is known; node 0 is the start when that is not."""

    problem: int  # FITS, or what is wrong at `problem_state`
    problem_state: int  # -1 for the start
    states: Any  # int64 (n_nodes,), -1 for a start that is not known
    plans: Any  # int64 (n_nodes,)
    ends: Any  # bool (n_nodes,): whether the episode may end on the way
    step_offsets: Any  # int64 (n_nodes + 1,)
    step_rewards: Any  # float64 (n_steps,): expected reward of each step of a node's plan
    step_running: Any  # float64 (n_steps,): probability that the episode still runs when it is taken
    costs: Any  # float64 (n_nodes,): expected price of the measurement at the end
    measured: Any  # float64 (n_nodes,): probability that it is taken
    entry_nodes: Any  # int64 (n_entries,)
    entry_states: Any  # int64 (n_entries,): where the plan leaves off
    entry_weights: Any  # float64 (n_entries,)


@compiled
def _room(array: Any, size: int) -> Any:
    """The array itself, or a copy of at least twice the length if `size` entries do not fit."""
    if size <= array.shape[0]:
        return array
    larger = np.empty(max(size, 2 * array.shape[0]), array.dtype)
    larger[: array.shape[0]] = array
    return larger


class Outcome(NamedTuple):
    """What following one plan gave."""

    steps: int  # how many of its actions could be taken before the episode was surely over
    possible: int  # how many states are possible at its end
    ends: bool
    cost: float
    measured: float


@compiled
def _follow(
    model: Dynamics, actions: Any, measures: bool, current: Weights, count: int, scratch: Weights, position: Any,
    rewards: Any, running: Any,
) -> Outcome:  # fmt: skip
    """Follow a plan from the first `count` weights of `current`, which then hold what it leads to."""
    ends = False
    steps = 0
    cost, measured = 0.0, 0.0
    while steps < actions.shape[0] and count > 0:
        action = actions[steps]
        rewards[steps] = expected(model.rewards, model.n_actions, action, current, count)
        running[steps] = total(current, count)
        if measures and steps == actions.shape[0] - 1:
            cost = expected(model.costs, model.n_actions, action, current, count)
            measured = running[steps]
        count, ended = push(model, action, current, count, scratch, position)
        current.states[:count] = scratch.states[:count]
        current.values[:count] = scratch.values[:count]
        ends |= ended
        steps += 1
    return Outcome(steps, count, ends, cost, measured)


@compiled
def _mismatch(then: int, count: int) -> int:
    """Whether a plan's end agrees with the number of states that are possible there."""
    if then == KNOWN and count > 1:
        return NOT_KNOWN
    if then == END and count > 0:
        return NOT_OVER
    return FITS


@compiled
def trace_plans(model: Dynamics, plans: Plans, start_states: Any, start_weights: Any, start_plan: int) -> Trace:
    """Follow the plans from the known start states, or `start_plan` from the start belief if that is not -1."""
    n_states = model.terminal.shape[0]
    current, scratch = make_weights(n_states), make_weights(n_states)
    position = np.full(n_states, -1, np.int64)
    queued = np.zeros(n_states, np.bool_)
    if start_plan >= 0:
        node_states = np.full(1, -1, np.int64)
    else:
        node_states = start_states.copy()
        queued[start_states] = True
    n_nodes = node_states.shape[0]
    node_plans, ends = np.empty(1024, np.int64), np.empty(1024, np.bool_)
    costs, measured = np.empty(1024), np.empty(1024)
    step_offsets = np.zeros(1024, np.int64)
    step_rewards, step_running = np.empty(1024), np.empty(1024)
    entry_nodes, entry_states, entry_weights = np.empty(1024, np.int64), np.empty(1024, np.int64), np.empty(1024)
    n_steps, n_entries, node, problem = 0, 0, 0, FITS

    while node < n_nodes:
        state = node_states[node]
        plan = start_plan if state < 0 else plans.plan_of_state[state]
        if plan < 0:
            problem = NO_PLAN
            break
        if state < 0:
            count = start_states.shape[0]
            current.states[:count] = start_states
            current.values[:count] = start_weights
        else:
            count = 1
            current.states[0] = state
            current.values[0] = 1.0
        actions = plans.actions[plans.offsets[plan] : plans.offsets[plan + 1]]
        step_rewards = _room(step_rewards, n_steps + actions.shape[0])
        step_running = _room(step_running, n_steps + actions.shape[0])
        outcome = _follow(
            model, actions, plans.then[plan] == MEASURE, current, count, scratch, position,
            step_rewards[n_steps:], step_running[n_steps:],
        )  # fmt: skip
        count = outcome.possible
        n_steps += outcome.steps
        node_plans, ends = _room(node_plans, node + 1), _room(ends, node + 1)
        costs, measured = _room(costs, node + 1), _room(measured, node + 1)
        step_offsets = _room(step_offsets, node + 2)
        node_plans[node], ends[node] = plan, outcome.ends
        costs[node], measured[node] = outcome.cost, outcome.measured
        step_offsets[node + 1] = n_steps
        problem = _mismatch(plans.then[plan], count)
        if problem != FITS:
            break
        entry_nodes, entry_states = _room(entry_nodes, n_entries + count), _room(entry_states, n_entries + count)
        entry_weights = _room(entry_weights, n_entries + count)
        entry_nodes[n_entries : n_entries + count] = node
        entry_states[n_entries : n_entries + count] = current.states[:count]
        entry_weights[n_entries : n_entries + count] = current.values[:count]
        n_entries += count
        if plans.then[plan] != REPEAT:
            for successor in current.states[:count]:
                if not queued[successor]:
                    queued[successor] = True
                    node_states = _room(node_states, n_nodes + 1)
                    node_states[n_nodes] = successor
                    n_nodes += 1
        node += 1

    problem_state = node_states[node] if problem != FITS else -1
    return Trace(
        problem, problem_state, node_states[:n_nodes].copy(), node_plans[:node].copy(), ends[:node].copy(),
        step_offsets[: node + 1].copy(), step_rewards[:n_steps].copy(), step_running[:n_steps].copy(),
        costs[:node].copy(), measured[:node].copy(),
        entry_nodes[:n_entries].copy(), entry_states[:n_entries].copy(), entry_weights[:n_entries].copy(),
    )  # fmt: skip


class Tail(NamedTuple):
    """The states and phases in which a repeating tail can be; a node is one of them, and lasts one step."""

    states: Any  # int64 (n_nodes,)
    phases: Any  # int64 (n_nodes,)
    ends: Any  # bool (n_nodes,)
    entry_nodes: Any  # int64 (n_entries,)
    entry_targets: Any  # int64 (n_entries,): nodes
    entry_weights: Any  # float64 (n_entries,)


@compiled
def trace_tail(model: Dynamics, actions: Any, first_states: Any) -> Tail:
    """Everything that can be reached from `first_states`, all different, while `actions`, int64 (m,), repeat for ever."""
    n_states, n_phases = model.terminal.shape[0], actions.shape[0]
    nodes = np.empty(max(1024, first_states.shape[0]), np.int64)  # phase * n_states + state
    nodes[: first_states.shape[0]] = first_states
    n_nodes = first_states.shape[0]
    slots = _filled_slots(nodes, n_nodes)
    ends = np.zeros(1024, np.bool_)
    entry_nodes, entry_targets, entry_weights = np.empty(1024, np.int64), np.empty(1024, np.int64), np.empty(1024)
    n_entries = 0
    node = 0
    while node < n_nodes:
        phase, state = nodes[node] // n_states, nodes[node] % n_states
        following = ((phase + 1) % n_phases) * n_states
        row = state * model.n_actions + actions[phase]
        ends = _room(ends, node + 1)
        ends[node] = False
        size = model.offsets[row + 1] - model.offsets[row]
        entry_nodes, entry_targets = _room(entry_nodes, n_entries + size), _room(entry_targets, n_entries + size)
        entry_weights = _room(entry_weights, n_entries + size)
        for entry in range(model.offsets[row], model.offsets[row + 1]):
            successor = model.successors[entry]
            if model.terminal[successor]:
                ends[node] = True
                continue
            key = following + successor
            slot = _slot(slots, nodes, key)
            target = slots[slot]
            if target < 0:
                target = n_nodes
                slots[slot] = target
                nodes = _room(nodes, n_nodes + 1)
                nodes[n_nodes] = key
                n_nodes += 1
                if 2 * n_nodes > slots.shape[0]:
                    slots = _filled_slots(nodes, n_nodes)
            entry_nodes[n_entries], entry_targets[n_entries] = node, target
            entry_weights[n_entries] = model.probabilities[entry]
            n_entries += 1
        node += 1
    return Tail(
        nodes[:n_nodes] % n_states, nodes[:n_nodes] // n_states, ends[:n_nodes].copy(),
        entry_nodes[:n_entries].copy(), entry_targets[:n_entries].copy(), entry_weights[:n_entries].copy(),
    )  # fmt: skip


@compiled
def _slot(slots: Any, keys: Any, key: int) -> int:
    """Where the number of `key` stands in an open-addressing table, or the free slot (-1) where it belongs."""
    # Multiplicative hashing: the high bits of the product depend on all bits of the key.
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    slot = np.int64(mixed >> np.uint64(32)) & (slots.shape[0] - 1)
    while slots[slot] >= 0 and keys[slots[slot]] != key:
        slot = (slot + 1) & (slots.shape[0] - 1)
    return slot  # type: ignore[no-any-return]


@compiled
def _filled_slots(keys: Any, count: int) -> Any:
    """A table, int64 (a power of two,), at most a quarter full, of the first `count` keys, all different."""
    size = 1024
    while size < 4 * count:
        size *= 2
    slots = np.full(size, -1, np.int64)
    for number in range(count):
        slots[_slot(slots, keys, keys[number])] = number
    return slots
