"""Each update of act-then-measure Q-learning, compared with the dense reference after every step of random events."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_learners import ReferenceAtmq
from scipy import stats
from strategies import examples

import actmeasure as am
from actmeasure.kernels import atmq, particles, streams
from actmeasure.kernels.learned_model import is_full, with_doubled_capacity
from actmeasure.learning.atmq import AtmqSettings

CLOSE = 1e-9


def stream_for(seed):
    stream = streams.make_stream()
    streams.seed_stream(stream, streams.entropy_words(seed), 0, streams.AGENT)
    return stream


class Pair:
    """Tables of the kernel and a reference, which are told the same."""

    def __init__(self, n_states, n_actions, costs, largest, chosen, seed=0, discount=0.9):
        self.n_states, self.n_actions, self.chosen = n_states, n_actions, chosen
        task = am.agents.Task(n_states, n_actions, costs, discount, None, True, None, None)
        self.parameters = chosen.parameters(task)
        flat = np.ascontiguousarray(costs, dtype=float).reshape(-1)
        self.tables = atmq.make_tables(n_states, n_actions, flat, largest, chosen.particles, 2)
        dense = np.broadcast_to(np.asarray(costs, dtype=float), (n_states, n_actions))
        self.reference = ReferenceAtmq(n_states, n_actions, dense, largest, discount, chosen)
        self.stream = stream_for(seed)

    def belief(self, which=None):
        held = self.tables.particles
        which = self.tables.memory[atmq.NOW] if which is None else which
        size, total = held.sizes[which], held.totals[which]
        weights = held.times[which, :size] / total
        return dict(zip(held.states[which, :size].tolist(), weights.tolist(), strict=True))

    def following(self):
        return self.belief(1 - self.tables.memory[atmq.NOW])

    def begin(self, state):
        atmq.begin(self.tables, state, np.zeros(0, np.int64), np.zeros(0), self.stream)

    def make_room(self):
        if is_full(self.tables.counts):
            self.tables = self.tables._replace(counts=with_doubled_capacity(self.tables.counts))

    def insist(self, action, measure):
        """Decide in place of the learner."""
        self.tables.memory[atmq.ACTION] = action
        if not measure:
            now = self.tables.memory[atmq.NOW]
            until = self.parameters.prior_until
            particles.predict(
                self.tables.particles, now, self.tables.counts, self.n_actions, action, until, self.stream
            )  # fmt: skip

    def observe(self, reward, cost, observation, terminated):
        """Learn without training, and believe in what was seen or else predicted."""
        before, action = self.belief(), int(self.tables.memory[atmq.ACTION])
        predicted = self.reference.next_belief(self.following(), observation)
        self.make_room()
        seen = atmq.NOTHING if observation is None else observation
        silent = self.parameters._replace(training_updates=0)
        atmq.observe(self.tables, silent, reward, cost, seen, terminated, self.stream)
        self.reference.observe(before, action, reward, cost, observation, terminated)
        if not terminated:
            assert self.belief() == pytest.approx(predicted)

    def train_once(self):
        """One training update; the pair that changed is found by looking for it."""
        before = self.tables.values.copy()
        atmq.train(self.tables, self.parameters._replace(training_updates=1), self.stream)
        changed = np.flatnonzero(self.tables.values != before)
        assert len(changed) <= 1
        for pair in changed:
            self.reference.train(*divmod(int(pair), self.n_actions))

    def check_tables(self):
        tables, reference, shape = self.tables, self.reference, (self.n_states + 1, self.n_actions)
        size = 1 + abs(reference.Q_opt).max()
        assert abs(tables.values.reshape(shape) - reference.Q).max() <= CLOSE * size
        assert abs(tables.optimistic.reshape(shape) - reference.Q_opt).max() <= CLOSE * size
        best = tables.optimistic.reshape(shape).max(axis=1)
        assert tables.best.tolist() == best.tolist()
        assert tables.optimistic.reshape(shape)[np.arange(self.n_states + 1), tables.greedy].tolist() == best.tolist()
        assert abs(tables.sums[atmq.BEST_SUM] - best[:-1].sum()) <= CLOSE * size * self.n_states
        assert tables.sums[atmq.LARGEST_REWARD] == reference.largest_reward
        self.check_counts()

    def check_counts(self):
        counts, reference = self.tables.counts, self.reference
        dense = np.zeros_like(reference.counts).reshape(-1, self.n_states + 1)
        for pair, first in enumerate(counts.first):
            entry = first
            while entry != 0:
                assert dense[pair, counts.successors[entry]] == 0, "a successor is in the list twice"
                dense[pair, counts.successors[entry]] = counts.times[entry]
                entry = counts.following[entry]
        assert dense.tolist() == reference.counts.reshape(dense.shape).tolist()
        assert counts.measured.tolist() == dense.sum(axis=1).tolist()
        means = reference.received.ravel() / np.maximum(counts.measured, 1)
        assert abs(counts.rewards - means).max() <= CLOSE * (1 + abs(means).max())
        assert counts.used[0] == 1 + np.count_nonzero(dense)

    def check_expectations(self):
        """P with the prior kept and dropped, mean rewards with and without theirs, and what training aims at."""
        for state in range(self.n_states):
            for action in range(self.n_actions):
                pair = state * self.n_actions + action
                size = 1 + abs(self.reference.Q_opt).max()
                psi = atmq.expected_best(self.tables, self.parameters, pair)
                assert abs(psi - self.reference.psi(state, action)) <= CLOSE * size
                target = atmq.modelled_target(self.tables, self.parameters, pair)
                assert abs(target - self.reference.modelled(state, action)) <= CLOSE * size

    def check_ready(self):
        needs = self.chosen.training_needs
        often = self.reference.counts.sum(axis=2).max(axis=1)
        ready = self.tables.ready[: self.tables.memory[atmq.READY]].tolist()
        assert sorted(ready) == (np.flatnonzero(often >= needs).tolist() if needs else [])


@st.composite
def settings_of_any_kind(draw):
    flags = ("optimistic_measuring", "observed_target", "cost_in_target", "prior_in_rewards", "own_rewards")
    return AtmqSettings(
        learning_rate=draw(st.sampled_from([0.1, 0.5, 1.0])),
        particles=draw(st.sampled_from([1, 7, 100, 300])),
        optimism=draw(st.sampled_from([1, 3, 20])),
        exploratory_measurements=draw(st.sampled_from([0, 2, 20])),
        prior_until=draw(st.sampled_from([None, 0, 1, 7])),
        measure_when_spread=draw(st.sampled_from([None, 0.0, 0.02, 0.5])),
        measure_when_settled=draw(st.sampled_from([0.0, 0.02, 0.5])),
        knows_it_runs=draw(st.booleans()),
        training_needs=draw(st.sampled_from([0, 1, 3])),
        training_greedy=draw(st.sampled_from([0.0, 0.5, 1.0])),
        **{name: draw(st.booleans()) for name in flags},
    )


@st.composite
def pairs(draw):
    n_states, n_actions = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    costs = draw(st.sampled_from([0.0, 0.05, 0.5]))
    if draw(st.booleans()):
        costs = rng.random((n_states, n_actions))
    largest, seed = draw(st.sampled_from([-1.0, 0.0, 1.0])), draw(st.integers(0, 2**32 - 1))
    return Pair(n_states, n_actions, costs, largest, draw(settings_of_any_kind()), seed)


#: What happens at a step: who decides (the learner, or else the action and look given), successor, reward, end of the episode.
EVENTS = st.lists(
    st.tuples(
        st.booleans(),
        st.integers(0, 2),
        st.booleans(),
        st.integers(0, 4),
        st.sampled_from([0.0, 0.0, -1.0, 0.25, 1.0, 3.0]),
        st.sampled_from([False] * 5 + [True]),
    ),
    min_size=1,
    max_size=40,
)


def play(both, event, check_decision=None):
    """One step of both; `check_decision` is called if it was the learner that decided."""
    own, action, measure, successor, reward, ends = event
    empty = not both.belief()
    if own or empty:
        action, measure = atmq.decide(both.tables, both.parameters, both.stream)
        if check_decision:
            check_decision(both, action, measure)
    else:
        action = action % both.n_actions
        both.insist(action, measure)
    successor %= both.n_states
    cost = both.reference.costs[successor, action] if measure else 0.0
    both.observe(reward, cost, successor if measure else None, ends)
    if ends:
        both.begin(successor)


@given(pairs(), EVENTS)
@examples(300)
def test_everything_learned_equals_the_reference_after_every_step(both, events):
    both.begin(0)
    for event in events:
        play(both, event)
        both.check_tables()
        both.train_once()
        both.check_tables()
        both.check_ready()
    both.check_expectations()


@pytest.mark.parametrize("preset", ["default", "published", "paper"])
def test_presets_over_many_steps(preset):
    """As above, for long; the sum of all best values is kept up to date by adding differences, and does not drift away."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        chosen = am.agents.make("dyna-atmq", preset=preset).settings
        both = Pair(6, 3, 0.05, 1.0, chosen, seed)
        both.begin(0)
        for step in range(1000):
            event = (rng.random() < 0.7, int(rng.integers(3)), rng.random() < 0.7, int(rng.integers(3)) * 2)
            play(both, (*event, float(rng.choice([0.0, -0.5, 1.0])), rng.random() < 0.1))
            both.train_once()
            if step % 50 == 0:
                both.check_tables()
        both.check_tables()
        both.check_expectations()
        assert both.tables.counts.measured.sum() > 100


def decision_is_sound(both, action, measure):
    """The action is a best one in the belief; the look follows the paper's rule, or that of the published runs."""
    belief, following, reference = both.belief(), both.following(), both.reference
    if not belief:
        assert measure, "nothing is known, and the learner does not look"
        return
    assert action in reference.controls(belief)
    if reference.explores(belief, action):
        assert measure
        return
    held = both.tables.particles
    assert held.totals[0] == held.totals[1], "no particle is lost on the way"
    if reference.is_spread(following) or reference.is_settled(belief, following):
        assert measure
        return
    worth = reference.measuring_values(belief, action, following)
    possible = {value > 0 for value in worth} | {True for value in worth if abs(value) < CLOSE}
    possible |= {False for value in worth if abs(value) < CLOSE}
    assert measure in possible


@given(pairs(), EVENTS)
@settings(max_examples=150)
def test_decisions_are_those_of_the_equations(both, events):
    both.begin(0)
    for event in events:
        play(both, event, decision_is_sound)


def looks_for(both, parameters, cost):
    """Whether the learner would look if a look after the action it will take were expected to cost that."""
    stream, price = both.stream.copy(), both.tables.costs.copy()
    both.tables.costs[:] = cost
    decision = atmq.decide(both.tables, parameters, stream)
    both.tables.costs[:] = price
    return decision


@given(pairs(), EVENTS)
@settings(max_examples=150)
def test_looking_pays_up_to_exactly_what_it_is_worth(both, events):
    """A little cheaper, and the learner looks; a little dearer, and it does not."""
    parameters = both.parameters._replace(exploratory_measurements=0, most_states=10**6, settled_below=0.0)
    both.begin(0)
    for event in events:
        play(both, event)
        belief = both.belief()
        if not belief or both.reference.end in belief:
            continue
        action, _ = looks_for(both, parameters, 1e9)
        costs, both.reference.costs = both.reference.costs, np.zeros_like(both.reference.costs)
        worth = both.reference.measuring_values(belief, action, both.following())
        both.reference.costs = costs
        if np.ptp(worth) > CLOSE:  # two actions tie, of which either may be taken
            continue
        little = 1e-6 * (1 + worth[0])
        assert looks_for(both, parameters, worth[0] + little) == (action, False)
        assert looks_for(both, parameters, worth[0] - little) == (action, True)


def test_the_expected_cost_of_a_look():
    """Where it depends on state and action, it is that of the action taken, in the belief before it."""
    costs = np.array([[0.1, 0.2], [0.4, 0.8], [5.0, 6.0]])
    both = Pair(3, 2, costs, 0.0, AtmqSettings())
    held = both.tables.particles
    held.sizes[0], held.totals[0] = 3, 100
    held.states[0, :3], held.times[0, :3] = [1, 0, 3], [50, 30, 20]  # some believe that the episode is over
    assert atmq._cost(both.tables, 0, 0) == pytest.approx(0.5 * 0.4 + 0.3 * 0.1)
    assert atmq._cost(both.tables, 0, 1) == pytest.approx(0.5 * 0.8 + 0.3 * 0.2)
    same = Pair(3, 2, 0.25, 0.0, AtmqSettings())
    assert atmq._cost(same.tables, 0, 1) == 0.25


@pytest.mark.parametrize(("optimistic", "looks"), [(False, True), (True, False)])
def test_where_looking_is_worth_exactly_its_cost(optimistic, looks):
    """The paper looks where the measuring value is 0 or more, the published runs where it is above."""
    chosen = AtmqSettings(optimistic_measuring=optimistic, exploratory_measurements=0, optimism=1, prior_until=0)
    both = Pair(3, 2, 0.0, 0.0, chosen)
    both.begin(0)
    both.tables.memory[atmq.ACTION] = 0
    both.observe(0.0, 0.0, 1, False)
    both.begin(0)
    assert atmq.decide(both.tables, both.parameters, both.stream)[1] == looks


def test_random_measuring():
    """Nothing is worth a look here, but for chance."""
    for chance in (0.0, 0.3, 1.0):
        chosen = AtmqSettings(random_measuring=chance, exploratory_measurements=0, optimism=1, prior_until=0)
        both = Pair(2, 1, 0.5, 0.0, chosen, seed=3)
        both.begin(0)
        both.tables.memory[atmq.ACTION] = 0
        both.observe(0.0, 0.0, 1, False)
        looks = 0
        for _ in range(2000):
            both.begin(0)
            looks += atmq.decide(both.tables, both.parameters, both.stream)[1]
        assert stats.binomtest(looks, 2000, chance).pvalue > 1e-6


def test_ties_are_broken_at_random():
    both = Pair(3, 4, 0.1, 1.0, AtmqSettings())
    drawn = np.zeros(4)
    for _ in range(4000):
        both.begin(1)
        drawn[atmq.decide(both.tables, both.parameters, both.stream)[0]] += 1
    assert stats.chisquare(drawn).pvalue > 1e-6


@pytest.mark.parametrize("needs", [0, 2])
@pytest.mark.parametrize("greedy", [0.5, 0.2, 1.0])
@pytest.mark.parametrize("n_actions", [1, 3])
def test_training_draws_states_and_actions_as_it_says(needs, greedy, n_actions):
    """A state at random among those measured often enough; its best action half of the time, otherwise any other."""
    chosen = AtmqSettings(training_needs=needs, training_greedy=greedy, learning_rate=1e-9, optimism=1)
    both = Pair(5, n_actions, 0.1, 1.0, chosen, seed=1)
    rng = np.random.default_rng(0)
    for _ in range(12 * n_actions):
        both.begin(int(rng.integers(4)))
        both.tables.memory[atmq.ACTION] = int(rng.integers(n_actions))
        both.observe(float(rng.random()), 0.1, int(rng.integers(5)), False)
    both.tables.values[: 5 * n_actions] = -10.0 - rng.random(5 * n_actions)  # every update can be told by the change
    for pair in range(5 * n_actions):
        atmq._update(both.tables, both.parameters, pair // n_actions, pair, 0.0, 0.0)
        both.reference.Q.reshape(-1)[pair] = both.tables.values[pair]
        both.reference.update_optimistic(*divmod(pair, n_actions))
    chances = both.reference.training_chances()
    drawn, still = np.zeros_like(chances), 0
    for _ in range(6000):
        before = both.tables.values.copy()
        atmq.train(both.tables, both.parameters._replace(training_updates=1), both.stream)
        changed = np.flatnonzero(both.tables.values != before)
        still += not len(changed)
        drawn.reshape(-1)[changed] += 1
    able = (both.reference.counts.sum(axis=2) >= needs) & (chances > 0)
    assert drawn[~able].sum() == 0
    seen, expected = np.append(drawn[able], still), np.append(chances[able], chances[~able].sum()) * 6000
    assert seen[expected == 0].sum() == 0
    assert expected.sum() == pytest.approx(6000)
    assert np.count_nonzero(expected) == 1 or stats.chisquare(seen[expected > 0], expected[expected > 0]).pvalue > 1e-6


def test_training_makes_as_many_updates_as_it_says():
    chosen = AtmqSettings(training_needs=0, learning_rate=1e-3)
    both = Pair(50, 4, 0.1, 1.0, chosen, seed=1)
    copy = both.stream.copy()
    atmq.train(both.tables, both.parameters._replace(training_updates=25), both.stream)
    for _ in range(25):
        streams.random(copy)
    assert both.stream.tolist() == copy.tolist()
    assert 20 <= np.count_nonzero(both.tables.values) <= 25


def test_values_stay_bounded_where_rewards_add_up():
    """Values beyond the largest reward get no bonus, in which the paper's formula lets them grow for ever."""
    model = am.problems.tight_bound()
    for name in ("atmq", "dyna-atmq"):
        for preset in ("default", "published", "paper"):
            agent = am.agents.make(name, preset=preset, **({"training_updates": 25} if name == "dyna-atmq" else {}))
            am.train(agent, model, episodes=10, max_steps=1000)
            assert abs(agent.q_values(optimistic=True)).max() <= 1 / (1 - model.discount) + 1e-6
            assert (agent.q_values(optimistic=True) >= agent.q_values()).all()


def test_hope_begins_with_the_largest_reward_of_the_task_or_the_setting():
    for given_reward, largest in ((None, 1.0), (5.0, 5.0), (-2.0, -2.0)):
        agent = am.agents.make("atmq", largest_reward=given_reward)
        agent.prepare(am.agents.Task.of_model(am.problems.measuring_value()))
        assert (agent.q_values(optimistic=True) == largest).all()
        assert (agent.q_values() == 0).all()


def test_hope_grows_with_the_largest_reward_seen_where_the_task_does_not_tell():
    agent = am.agents.make("atmq")
    agent.prepare(am.agents.Task(3, 2, 0.1, 0.95, None, True, None, None))
    agent.reseed(0, 0)
    bonuses = []
    for reward in (-1.0, 2.0, 1.0, 4.0):
        agent.begin(0)
        agent.decide()
        agent.observe(reward, 0.1, 1, False, False)
        bonuses.append(agent.q_values(optimistic=True)[2, 0])
    assert bonuses == pytest.approx([1.0, 0.95 * 2, 0.95 * 2, 0.95 * 4])


@pytest.mark.parametrize(
    ("numbers", "below", "looks"),
    [
        ([100, 0, 0, 0], 0.02, False),  # a known state in which one stays: there is nothing to find out
        ([50, 50, 0, 0], 0.02, True),  # one may be in either, and stays there for ever
        ([99, 1, 0, 0], 0.02, True),
        ([50, 50, 0, 0], 0.0, False),
        ([98, 0, 2, 0], 0.02, False),  # as many particles move as it takes
        ([99, 0, 1, 0], 0.02, True),
    ],
)
def test_looking_when_acting_leads_nowhere(numbers, below, looks):
    """One stays in every state but the third, which leads to the fourth."""
    chosen = AtmqSettings(measure_when_settled=below, exploratory_measurements=0, optimism=1, prior_until=0)
    both = Pair(4, 1, 0.5, 0.0, chosen)
    for state in range(4):
        both.begin(state)
        both.tables.memory[atmq.ACTION] = 0
        both.observe(0.0, 0.0, max(state, 3 * (state == 2)), False)
    held, now, states = both.tables.particles, both.tables.memory[atmq.NOW], np.flatnonzero(numbers)
    held.sizes[now] = len(states)
    held.states[now, : len(states)], held.times[now, : len(states)] = states, np.array(numbers)[states]
    assert atmq.decide(both.tables, both.parameters, both.stream) == (0, looks)
