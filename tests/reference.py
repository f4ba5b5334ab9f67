"""Slow, obvious versions of what the library computes; no code shared with it."""

import numpy as np


def dense(model):
    """Transition array (S, A, S) and expected rewards (S, A) of a small model."""
    return model.transitions.dense(), np.array(model.rewards)


class Walker:
    """A schedule as a memory machine: (plan, step, origin) -> what to do, written out step by step."""

    def __init__(self, model, schedule):
        self.model, self.schedule = model, schedule
        self.after = {}

    def memory(self, observation):
        return ("start", 0) if observation is None else (observation, 0)

    def plan(self, memory):
        return self.schedule.start if memory[0] == "start" else self.schedule[memory[0]]

    def act(self, memory):
        plan, step = self.plan(memory), memory[1]
        last = step == len(plan.actions) - 1
        return plan.actions[step], plan.then == "measure" and last

    def next_memory(self, memory, measured, state):
        """Where the memory goes; `state` is the true one, used only where the plan makes it known."""
        plan, step = self.plan(memory), memory[1]
        if measured:
            return (state, 0)
        if step < len(plan.actions) - 1:
            return (memory[0], step + 1)
        if plan.then == "known":
            return (state, 0)
        return (memory[0], len(plan.actions) - plan.repeat)


def product_chain(model, schedule):
    """The schedule and the model as one dense Markov chain over (memory, state), with rewards, costs and looks."""
    walker = Walker(model, schedule)
    P, R = dense(model)
    costs = np.array(model.measuring_costs)
    begin = {}
    for state, p in zip(model.initial_states, model.initial_probabilities, strict=True):
        known = model.reveal_start or len(model.initial_states) == 1
        node = (walker.memory(int(state) if known else None), int(state))
        begin[node] = begin.get(node, 0.0) + p
    nodes, edges, values = list(begin), {}, {}
    for node in nodes:
        memory, state = node
        action, measure = walker.act(memory)
        values[node] = (R[state, action], costs[state, action] * measure, float(measure), 1.0)
        for successor in np.flatnonzero(P[state, action]):
            if not model.terminal[successor]:
                target = (walker.next_memory(memory, measure, int(successor)), int(successor))
                edges[node, target] = P[state, action, successor]
                if target not in values and target not in nodes:
                    nodes.append(target)
    index = {node: k for k, node in enumerate(nodes)}
    T = np.zeros((len(nodes), len(nodes)))
    for (a, b), p in edges.items():
        T[index[a], index[b]] = p
    return T, np.array([values[n] for n in nodes]), np.array([begin.get(n, 0.0) for n in nodes])


def evaluate(model, schedule, horizon):
    """Discounted (reward, cost, looks, steps) over all time, and undiscounted over a horizon."""
    T, values, begin = product_chain(model, schedule)
    discounted = begin @ np.linalg.solve(np.eye(len(T)) - model.discount * T, values)
    sums, now = np.zeros(4), begin.copy()
    for _ in range(horizon):
        sums += now @ values
        now = now @ T
    return discounted, sums


def simulate(model, schedule, episodes, horizon, rng):
    """Play episodes one step at a time; returns arrays of discounted return, return, reward, looks and steps."""
    walker = Walker(model, schedule)
    P = model.transitions.dense()
    rewards = None if model.transition_rewards is None else model.transitions.dense(model.transition_rewards)
    out = np.zeros((episodes, 5))
    start = model.initial_distribution
    for episode in range(episodes):
        state = int(rng.choice(model.n_states, p=start))
        known = model.reveal_start or len(model.initial_states) == 1
        memory = walker.memory(state if known else None)
        for t in range(horizon):
            action, measure = walker.act(memory)
            successor = int(rng.choice(model.n_states, p=P[state, action] / P[state, action].sum()))
            reward = model.rewards[state, action] if rewards is None else rewards[state, action, successor]
            paid = reward - measure * model.measurements[0].of(state, action)
            out[episode] += (model.discount**t * paid, paid, reward, measure, 1)
            if model.terminal[successor]:
                break
            memory, state = walker.next_memory(memory, measure, successor), successor
    return out
