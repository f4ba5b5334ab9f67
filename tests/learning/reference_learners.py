"""The learners once more, slow and obvious: dense tables, written from the equations. Shares no code with the kernels.

A belief is a dictionary from state to probability, in the order in which its states are updated (the paper's pseudo-code goes
through them one after the other, each seeing what the one before has changed). The state `n_states` is the end of an episode.
"""

import numpy as np


class ReferenceAtmq:
    """Act-then-measure Q-learning: equations of the paper's section on Dyna-ATMQ, with the switches of `AtmqSettings`."""

    def __init__(self, n_states, n_actions, costs, largest_reward, discount, settings):
        self.n_states, self.n_actions, self.end = n_states, n_actions, n_states
        self.costs, self.largest_reward, self.discount, self.settings = costs, largest_reward, discount, settings
        self.counts = np.zeros((n_states, n_actions, n_states + 1))  # measured transitions, without the prior
        self.received = np.zeros((n_states, n_actions))  # sum of the rewards that were measured
        self.Q = np.zeros((n_states + 1, n_actions))
        self.Q_opt = np.full((n_states + 1, n_actions), float(largest_reward))
        self.Q_opt[self.end] = 0.0

    # What is known of the dynamics.

    def measured(self, state, action):
        return self.counts[state, action].sum()

    def transition(self, state, action):
        """P(. | s, a), shape (S + 1,): mean of the Dirichlet distribution, whose prior is 1 spread over all states."""
        alpha = self.counts[state, action].copy()
        until = self.settings.prior_until
        if until is None or self.measured(state, action) <= until:
            alpha[: self.n_states] += 1 / self.n_states
        return alpha / alpha.sum()

    def mean_reward(self, state, action):
        """R_{s,a}; by the paper it starts as one reward of 0."""
        n = self.measured(state, action)
        return self.received[state, action] / max(n + self.settings.prior_in_rewards, 1)

    def count(self, state, action, successor, reward):
        self.counts[state, action, successor] += 1
        self.received[state, action] += reward
        self.update_optimistic(state, action)

    # What actions are worth.

    def update_optimistic(self, state, action):
        """Q_opt = Q + max(0, (N_opt - alpha_{s,a}) / N_opt * (R_max - Q)), while alpha_{s,a} < N_opt."""
        alpha, N_opt, Q = 1 + self.measured(state, action), self.settings.optimism, self.Q[state, action]
        bonus = (N_opt - alpha) / N_opt * (self.largest_reward - Q) if alpha < N_opt else 0.0
        self.Q_opt[state, action] = Q + max(0.0, bonus)

    def psi(self, state, action):
        """Expected optimistic value of the successor."""
        return float(self.transition(state, action) @ self.Q_opt.max(axis=1))

    def move(self, state, action, target, rate):
        self.Q[state, action] = (1 - rate) * self.Q[state, action] + rate * target
        self.update_optimistic(state, action)

    def modelled(self, state, action):
        return self.mean_reward(state, action) + self.discount * self.psi(state, action)

    def raise_hopes(self, reward):
        if reward > self.largest_reward:
            self.largest_reward = reward
            for state in range(self.n_states):
                for action in range(self.n_actions):
                    self.update_optimistic(state, action)

    def observe(self, belief, action, reward, cost, observation, terminated):
        """Everything that is learned from a step but for training; an observation of None is a step without a look."""
        self.raise_hopes(reward)
        successor = self.end if terminated else observation
        known = [state for state, weight in belief.items() if weight == 1.0 and state != self.end]
        if known and observation is not None:
            self.count(known[0], action, successor, reward)
        paid = reward - cost if self.settings.cost_in_target else reward
        seen = self.settings.observed_target and (terminated or observation is not None)
        for state, weight in belief.items():
            if state == self.end:
                continue
            if self.settings.own_rewards and len(belief) > 1:
                if self.measured(state, action) == 0:
                    continue
                target = self.modelled(state, action)
            else:
                future = self.Q_opt[successor].max() if seen else self.psi(state, action)
                target = paid + self.discount * future
            self.move(state, action, target, self.settings.learning_rate * weight)

    def next_belief(self, predicted, observation):
        """The state that was seen; or else what was predicted, given that the episode still runs if the agent knows that."""
        if observation is not None:
            return {observation: 1.0}
        running = {s: weight for s, weight in predicted.items() if s != self.end or not self.settings.knows_it_runs}
        total = sum(running.values())
        return {state: weight / total for state, weight in running.items()}

    def train(self, state, action):
        """One training update of a pair."""
        if self.measured(state, action) >= self.settings.training_needs:
            self.move(state, action, self.modelled(state, action), self.settings.learning_rate)

    def training_chances(self):
        """How likely each pair is to be drawn for an update, shape (S, A); pairs without one have those of no update."""
        chances = np.zeros((self.n_states, self.n_actions))
        needs = self.settings.training_needs
        states = [s for s in range(self.n_states) if needs == 0 or self.counts[s].sum(axis=1).max() >= needs]
        for state in states:
            greedy = int(np.argmax(self.Q_opt[state]))
            for action in range(self.n_actions):
                share = self.settings.training_greedy if action == greedy else 1 - self.settings.training_greedy
                others = 1 if action == greedy else self.n_actions - 1
                chances[state, action] = (1.0 if self.n_actions == 1 else share / others) / len(states)
        return chances

    # What to do.

    def value_in(self, belief, table):
        return sum(weight * table[state] for state, weight in belief.items())

    def controls(self, belief):
        """The actions that may be chosen: all that are best, within rounding."""
        values = self.value_in(belief, self.Q_opt)
        return set(np.flatnonzero(values >= values.max() - 1e-9).tolist())

    def explores(self, belief, action):
        known = [state for state, weight in belief.items() if weight == 1.0 and state != self.end]
        return bool(known) and self.measured(known[0], action) < self.settings.exploratory_measurements

    def is_spread(self, following):
        share = self.settings.measure_when_spread
        return share is not None and len(following) > int(share * self.settings.particles)

    def is_settled(self, belief, following):
        """Whether the belief hardly changes: half the absolute difference is the share of particles that moved."""
        states = belief.keys() | following.keys()
        moved = sum(abs(belief.get(s, 0.0) - following.get(s, 0.0)) for s in states) / 2
        return len(following) > 1 and round(moved, 9) < self.settings.measure_when_settled

    def measuring_values(self, belief, action, following):
        """What knowing the next state is worth, less its cost; one value for each next action that may be the best."""
        cost = sum(weight * self.costs[state, action] for state, weight in belief.items() if state != self.end)
        if np.ptp(self.costs) == 0:
            cost = self.costs[0, 0]
        table = self.Q_opt if self.settings.optimistic_measuring else self.Q
        blind = self.value_in(following, table)
        found = []
        for best in np.flatnonzero(blind >= blind.max() - 1e-9):
            gain = sum(weight * max(0.0, table[s].max() - self.Q[s, best]) for s, weight in following.items())
            found.append((1.0 if self.settings.optimistic_measuring else self.discount) * gain - cost)
        return found


class ReferenceAmrl:
    """AMRL-Q: the update of the paper's background section; the state `n_states` is the end of an episode."""

    def __init__(self, n_states, n_actions, costs, discount, learning_rate, bias):
        self.end, self.discount, self.learning_rate, self.costs = n_states, discount, learning_rate, costs
        self.counts = np.zeros((n_states + 1, n_actions, n_states + 1))
        self.Q = np.zeros((n_states + 1, n_actions, 2))
        self.Q[:, :, 1] = bias

    def count(self, state, action, successor):
        self.counts[state, action, successor] += 1

    def likeliest(self, state, action):
        """The successors that may be assumed: those seen most often, or any state at all."""
        seen = self.counts[state, action]
        return set(np.flatnonzero(seen == seen.max()).tolist()) if seen.any() else set(range(self.end))

    def learn(self, state, action, reward, successor, terminated):
        """Both looks of the action learn, with the successor seen or assumed."""
        future = 0.0 if terminated else self.Q[successor].max()
        for look in (0, 1):
            target = reward - look * self.costs[state, action] + self.discount * future
            rate = self.learning_rate
            self.Q[state, action, look] = (1 - rate) * self.Q[state, action, look] + rate * target

    def best(self, state):
        """The pairs of action and look that may be chosen."""
        return {tuple(pair) for pair in np.argwhere(self.Q[state] == self.Q[state].max()).tolist()}
