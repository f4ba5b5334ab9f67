"""Problems with imperfect or partial measurements: transitions by slow loops, closed forms, published values."""

import math
from itertools import product

import numpy as np
import pytest
from brute_force import optimal_value

import actmeasure as am
from actmeasure.problems import fatigue
from actmeasure.problems.crack_life import detection
from actmeasure.problems.rock_sample import LAYOUTS

CRACKS = {"samples": 100_000}


def row(model, state, action):
    """Successors and their probabilities."""
    return dict(zip(*(values.tolist() for values in model.transitions.row(state, action)), strict=True))


def law(model, measurement, action):
    """Probabilities of outcomes after an action, shape (S, O)."""
    return model.shown_by(measurement).law.of_action(action, model.n_states).toarray()


class TestTiger:
    def test_by_hand(self):
        model = am.problems.tiger()
        assert [row(model, state, 0) for state in (0, 1)] == [{0: 1.0}, {1: 1.0}]
        assert [row(model, state, action) for state in (0, 1) for action in (1, 2)] == [{0: 0.5, 1: 0.5}] * 4
        assert model.rewards.tolist() == [[-1, -100, 10], [-1, 10, -100]]
        assert law(model, 0, 0) == pytest.approx(np.array([[0.85, 0.15], [0.15, 0.85]]))
        assert [law(model, 0, action).tolist() for action in (1, 2)] == [[[0.5, 0.5]] * 2] * 2
        assert (model.measurements, model.reveal_start, model.initial_probabilities.tolist()) == ((), False, [0.5, 0.5])

    def test_the_best_controller_has_the_known_value(self):
        """Listen until one side was heard twice more often than the other, then open the other door."""
        start, left, right, opens_right, opens_left = range(5)
        graph = am.PolicyGraph(
            [am.Decision(action) for action in (0, 0, 0, 2, 1)],
            edges=[
                {0: left, 1: right}, {0: opens_right, 1: start}, {0: start, 1: opens_left}, {None: start}, {None: start},
            ],
        )  # fmt: skip
        assert 19.3711 < am.evaluate(am.problems.tiger(), graph).discounted_return < 19.3721

    def test_a_sure_ear_listens_once(self):
        """Listen and open, again and again: -1 + 10 g, every two steps."""
        model = am.problems.tiger(accuracy=1.0)
        graph = am.PolicyGraph(
            [am.Decision(action) for action in (0, 2, 1)], edges=[{0: 1, 1: 2}, {None: 0}, {None: 0}]
        )
        closed = (-1 + 10 * 0.95) / (1 - 0.95**2)
        assert am.evaluate(model, graph).discounted_return == pytest.approx(closed, rel=1e-9)


class TestPileSelection:
    """Its optimal values are in `tests/model/test_finite_life.py`."""

    def test_by_hand(self):
        model = am.problems.pile_selection(p_long=0.3)
        assert [one.name for one in model.measurements] == ["sonic", "drilling"]
        assert model.rewards.tolist() == [[0, 0], [0, 0], [0, -100], [-400, 0], [0, 0]]
        assert [row(model, state, 0) for state in range(4)] == [{2: 1.0}, {3: 1.0}, {4: 1.0}, {4: 1.0}]
        assert law(model, 1, 0)[2:4] == pytest.approx(np.array([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7]]))
        assert model.initial_distribution == pytest.approx([0.7, 0.3, 0, 0, 0])

    def test_prices(self):
        free = am.problems.pile_selection(p_long=0.3, measuring_cost=0.0)
        assert optimal_value(free) == pytest.approx(0.0)
        dear = am.problems.pile_selection(p_long=0.3, measuring_cost=[1000.0, 1000.0])
        assert optimal_value(dear) == pytest.approx(-70.0)


class TestSimpleFatigue:
    """Its optimal values are in `tests/model/test_finite_life.py`."""

    def test_horizons(self):
        endless = am.problems.simple_fatigue(periods=None, discount=0.9)
        made = am.problems.simple_fatigue(periods=4, discount=0.9)
        assert (endless.n_states, endless.origin, made.n_states) == (3, None, 13)
        assert made.equals(am.lifetime(endless, 4))
        assert made.origin.is_stationary
        assert endless.allowed_decisions.tolist() == [[True, True], [True, False]]
        assert am.problems.simple_fatigue(periods=4, discount=1.0).discount == 1.0
        with pytest.raises(am.ModelError, match="discount"):
            am.problems.simple_fatigue(periods=None, discount=1.0)

    def test_one_period(self):
        assert optimal_value(am.problems.simple_fatigue(periods=1)) == 0.0
        # Damaged with 0.05 after the first period, which costs 50; a repair costs 20.
        assert optimal_value(am.problems.simple_fatigue(periods=2)) == pytest.approx(-0.95 * 2.5)


class TestRockSample:
    @pytest.mark.parametrize(("size", "places"), [(3, [(1, 0), (2, 2)]), (1, [(0, 0)]), (4, [(0, 2), (3, 1), (1, 1)])])
    def test_state_by_state(self, size, places):
        model = am.problems.rock_sample(size, len(places), positions=places, half_efficiency=3.0, measuring_cost=0.25)
        k, end = len(places), model.n_states - 1
        names = ["north", "south", "east", "west", "sample", *(f"check {i + 1}" for i in range(k))]
        assert list(model.action_names) == names

        def number(x, y, good):
            return (y * size + x) * 2**k + sum(2**i for i in good)

        seen = set()
        for x, y, flags in product(range(size), range(size), product((False, True), repeat=k)):
            good = {i for i in range(k) if flags[i]}
            state = number(x, y, good)
            seen.add(state)
            for action, name in enumerate(names):
                after, paid, told = state, 0.0, {0: 1.0}
                if name == "east":
                    after, paid = (number(x + 1, y, good), 0.0) if x + 1 < size else (end, 10.0)
                elif name == "west":
                    after = number(max(x - 1, 0), y, good)
                elif name == "north":
                    after = number(x, min(y + 1, size - 1), good)
                elif name == "south":
                    after = number(x, max(y - 1, 0), good)
                elif name == "sample" and (x, y) in places:
                    rock = places.index((x, y))
                    after, paid = number(x, y, good - {rock}), 10.0 if rock in good else -10.0
                elif name.startswith("check"):
                    rock, paid = action - 5, -0.25
                    right = 0.5 + 0.5 * 2 ** (-math.dist((x, y), places[rock]) / 3.0)
                    told = {1: right, 2: 1 - right} if rock in good else {1: 1 - right, 2: right}
                assert row(model, state, action) == {after: 1.0}
                assert model.rewards[state, action] == paid
                assert law(model, 0, action)[state] == pytest.approx([told.get(outcome, 0.0) for outcome in range(3)])
        assert seen == set(range(end))
        assert model.terminal.tolist() == [False] * end + [True]

    def test_start_is_a_known_cell_with_hidden_rocks(self):
        model = am.problems.rock_sample(4, 4)
        first = 2 * 4 * 16  # x 0, y 2
        assert model.initial_states.tolist() == list(range(first, first + 16))
        assert model.initial_probabilities == pytest.approx(1 / 16)
        assert (model.state_names[first], model.state_names[first + 5]) == ("x 0, y 2: none good", "x 0, y 2: good 1 3")
        assert not model.reveal_start
        moved = am.problems.rock_sample(4, 4, start=(3, 0))
        assert moved.initial_states[0] == 3 * 16

    @pytest.mark.parametrize(("size", "rocks", "n_states"), [(4, 4, 257), (5, 5, 801), (7, 8, 12_545)])
    def test_published_layouts(self, size, rocks, n_states):
        model = am.problems.rock_sample(size, rocks)
        assert (model.n_states, model.n_actions) == (n_states, 5 + rocks)
        assert len(set(LAYOUTS[size, rocks])) == rocks
        assert max(map(max, LAYOUTS[size, rocks])) < size
        given = am.problems.rock_sample(size, rocks, positions=LAYOUTS[size, rocks], start=(0, size // 2))
        assert model.equals(given)

    def test_seeds(self):
        assert am.problems.rock_sample(3, 2).equals(am.problems.rock_sample(3, 2, seed=0))
        assert not am.problems.rock_sample(3, 2, seed=1).equals(am.problems.rock_sample(3, 2, seed=2))
        assert not am.problems.rock_sample(4, 4).equals(am.problems.rock_sample(4, 4, seed=0))

    def test_one_cell(self):
        """Check the rock under the rover, sample it if it is good, and leave."""
        model = am.problems.rock_sample(1, 1)
        assert optimal_value(am.lifetime(model, 4)) == pytest.approx(0.95 * (0.5 * (10 + 0.95 * 10) + 0.5 * 10))
        # Where a check costs more than it is worth, leave at once.
        assert optimal_value(am.lifetime(am.problems.rock_sample(1, 1, measuring_cost=5.0), 4)) == pytest.approx(10.0)

    def test_with_free_looks_the_best_tour_is_known(self):
        """With all rocks known, at the start (0, 2): the best order of good rocks, by enumeration."""
        model = am.problems.rock_sample(4, 4)
        values = am.q_mdp(model).max(axis=1)

        def best(x, y, good):
            found = 10 * 0.95 ** (3 - x)
            for rock in good:
                to_x, to_y = LAYOUTS[4, 4][rock]
                steps = abs(x - to_x) + abs(y - to_y)
                found = max(found, 0.95**steps * (10 + 0.95 * best(to_x, to_y, good - {rock})))
            return found

        for bits in range(16):
            good = frozenset(i for i in range(4) if bits >> i & 1)
            assert values[2 * 4 * 16 + bits] == pytest.approx(best(0, 2, good), abs=1e-6)


class TestComponentLine:
    @pytest.mark.parametrize("n", [1, 2, 3])
    def test_state_by_state(self, n):
        model = am.problems.component_line(n)
        levels = list(product(range(4), repeat=n))
        number = {level: state for state, level in enumerate(levels)}
        assert model.n_states == 4**n
        assert model.initial_states.tolist() == [number[(1,) * n]]
        for action in range(2**n):
            repaired = {k for k in range(n) if action >> k & 1}
            for state, level in enumerate(levels):
                expected = {(): 1.0}
                for k in range(n):
                    neighbours = sum(level[j] == 3 for j in (k - 1, k + 1) if 0 <= j < n)
                    rise = {0: 0.2, 1: 0.5, 2: 0.9}[neighbours]
                    if k in repaired:
                        after = {0: 1.0}
                    else:
                        after = {3: 1.0} if level[k] == 3 else {level[k]: 1 - rise, level[k] + 1: rise}
                    expected = {(*so_far, new): p * q for so_far, p in expected.items() for new, q in after.items()}
                assert row(model, state, action) == pytest.approx({number[to]: p for to, p in expected.items()})
                paid = -0.5 * level.count(3) - 0.25 * len(repaired)
                assert model.rewards[state, action] == pytest.approx(paid)

    @pytest.mark.parametrize("n", [1, 2, 3, 4])
    def test_every_joint_decision_is_there_once(self, n):
        model = am.problems.component_line(n)
        actions, measurements = np.nonzero(model.allowed_decisions)
        found = set()
        for action, measurement in zip(actions.tolist(), measurements.tolist(), strict=True):
            assert action & measurement == 0  # the numbers of both are sets of components, as bits
            found.add((action, measurement))
        assert len(found) == len(actions) == 3**n
        assert [one.cost for one in model.measurements] == pytest.approx(
            [0.05 * mask.bit_count() for mask in range(1, 2**n)]
        )

    def test_what_is_inspected_is_seen(self):
        model = am.problems.component_line(3)
        belief = am.Belief.at(int(model.initial_states[0]))
        middle = model.measurement_number("inspect 2")
        assert belief.outcomes(model, 0, middle) == pytest.approx([0, 0.8, 0.2, 0])
        seen = belief.update(model, 0, middle, "2:2")
        assert {model.state_name(state).split()[1] for state in seen.states.tolist()} == {"2"}
        assert len(seen.states) == 4
        both = belief.update(model, 2, model.measurement_number("inspect 1 3"), "1:1 3:2")  # the second one is repaired
        assert [model.state_name(state) for state in both.states.tolist()] == ["1 0 2"]

    def test_bounds_on_two_components(self):
        """The optimum is between -1.74901 and -1.74804."""
        solution = am.solve(am.problems.component_line(2), "atm")
        assert -1.9 < solution.value <= -1.74804
        assert solution.upper >= -1.74901

    def test_never_repairing_a_single_one(self):
        """Two rises until it fails, then 0.5 for ever."""
        nothing = am.PolicyGraph([am.Decision(0)], edges=[{None: 0}])
        value = am.evaluate(am.problems.component_line(1), nothing).discounted_return
        assert value == pytest.approx(-((0.2 * 0.95 / (1 - 0.8 * 0.95)) ** 2) * 0.5 / (1 - 0.95), rel=1e-9)


def calendar_rule(every):
    """Inspect at the years k, 2k, ...; what is found is repaired in the next year, in place of that year's inspection.

    Nodes: one for the first year, then one for each year since the last inspection, and a repair in the year after it.
    """
    waits, repairs = range(1, 1 + every), 1 + every
    after = 2 if every > 1 else 1  # the year after an inspection
    decisions = [am.Decision(0), am.Decision(0, 1), *[am.Decision(0)] * (every - 1), am.Decision(1)]
    edges = [{None: after}, {1: repairs, 0: after}]
    edges += [{None: wait + 1 if wait < every else 1} for wait in waits[1:]]
    edges += [{None: after + 1 if after < every else 1}]
    return am.PolicyGraph(decisions, edges=edges)


class TestCrackLife:
    def test_failures_without_repairs_are_those_of_an_integral(self):
        """Fails within t years: d0 above [20^-.75 + .75 t C (sqrt(pi) S)^3.5 n]^(-1/.75); integrated over C and S."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(120)
        C, S = np.exp(-35.2 + 0.5 * nodes)[:, None], np.maximum(70 + 10 * nodes, 0)
        weights = np.outer(weights, weights) / weights.sum() ** 2
        samples = 1_000_000
        weld = am.problems.crack_life(samples=samples).origin.models[0]
        belief = am.Belief.start(weld)
        for year, measured in ((10, 0.0039829), (20, 0.0265537), (30, 0.063436)):
            for _ in range(10):
                belief = belief.predict(weld, 0)
            limit = (20**-0.75 + 0.75 * year * C * (np.sqrt(np.pi) * S) ** 3.5 * 1e6) ** (-1 / 0.75)
            exact = float((weights * np.exp(-limit)).sum())
            found = belief.dense(weld.n_states)[fatigue.FAILED :: fatigue.BINS].sum()
            error = math.sqrt(exact * (1 - exact) / samples)
            assert found == pytest.approx(exact, abs=4 * error)
            assert measured == pytest.approx(exact, abs=4 * error)

    def test_by_hand(self):
        model = am.problems.crack_life(failure_price=500.0, **CRACKS)
        assert (model.n_states, model.discount, model.reveal_start) == (27_901, 0.95, False)
        weld, begin = model.origin.models[0], model.initial_distribution[:30]
        assert (weld.n_states, model.origin.periods, model.origin.is_stationary) == (930, 30, True)
        estimated, ageing = fatigue.growth(30, 100_000, np.random.default_rng(0))
        assert begin == pytest.approx(estimated)
        for age, size in ((0, 18), (7, 22), (29, 25), (30, 27), (3, 29)):
            changes, older = ageing[min(age, 29)][size], min(age + 1, 30)
            grown = {older * 30 + to: p for to, p in enumerate(changes) if p > 0}
            assert row(weld, age * 30 + size, 0) == pytest.approx(grown)
            assert row(weld, age * 30 + size, 1) == pytest.approx({k: p for k, p in enumerate(begin) if p > 0})
            failing = changes[29] if size < 29 else 0.0
            assert weld.rewards[age * 30 + size] == pytest.approx([-500 * failing, -20.0], abs=1e-12)
        assert weld.allowed_decisions.tolist() == [[True, True], [True, False]]
        assert weld.state_names[7 * 30 + 29] == "age 7: failed"

    def test_probability_of_detection(self):
        pod = detection(8.0)
        edges = [0.0, *(1e-4 * (20 / 1e-4) ** (k / 28) for k in range(29))]
        for size in range(29):
            assert pod[size] == pytest.approx(1 - math.exp(-(edges[size] + edges[size + 1]) / 2 / 8))
        assert pod[29] == pytest.approx(1 - math.exp(-21 / 8))
        weld = am.problems.crack_life(periods=2, samples=1_000).origin.models[0]
        assert law(weld, 1, 0)[:, 1] == pytest.approx(np.tile(pod, 3))

    @pytest.mark.parametrize(("price", "every", "cost"), [(10_000, 2, 22.690), (2_000, 4, 14.545), (500, 10, 8.391)])
    def test_calendar_rules_cost_what_is_known(self, price, every, cost):
        """From other simulated cracks, which differ in the third digit."""
        model = am.problems.crack_life(failure_price=price)
        assert -am.evaluate(model, calendar_rule(every)).discounted_return == pytest.approx(cost, rel=0.01)

    def test_an_infinite_horizon(self):
        endless = am.problems.crack_life(periods=None, **CRACKS)
        finite = am.problems.crack_life(periods=30, **CRACKS)
        assert endless.equals(finite.origin.models[0])
        assert not endless.terminal.any()

    def test_the_same_cracks_as_with_exact_looks(self):
        settings = {"samples": 2_000, "seed": 3}
        exact, noisy = am.problems.fatigue_crack(years=6, **settings), am.problems.crack_life(periods=6, **settings)
        never = am.PolicyGraph([am.Decision(0)], edges=[{None: 0}])
        values = [am.evaluate(model, never).discounted_return for model in (exact, noisy)]
        assert values[0] == pytest.approx(values[1], rel=1e-9)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("tiger", {"accuracy": 2}, "accuracy is 2, expected a probability"),
        ("tiger", {"measuring_cost": -1}, "measuring_cost is -1, expected a finite number that is 0 or more"),
        ("tiger", {"discount": 1.0}, "discount"),
        ("pile-selection", {"p_long": -0.1}, "p_long is -0.1"),
        ("pile-selection", {"measuring_cost": [1.0]}, "or 2, of sonic, drilling, such as"),
        ("simple-fatigue", {"periods": 0}, "periods is 0"),
        ("simple-fatigue", {"failure": "x"}, "failure is 'x'"),
        ("rock-sample", {"size": 0}, "size is 0"),
        ("rock-sample", {"size": 2, "rocks": 5}, "rocks is 5, expected at most 4"),
        ("rock-sample", {"rocks": 30}, "expected at most 1,000,000; use fewer rocks"),
        ("rock-sample", {"positions": [(0, 0)]}, "expected 4 different cells"),
        ("rock-sample", {"rocks": 2, "positions": [(0, 0), (0, 0)]}, "expected 2 different cells"),
        ("rock-sample", {"rocks": 1, "positions": [(0, 4)]}, "positions: y is 4, expected a whole number from 0 to 3"),
        ("rock-sample", {"rocks": 1, "positions": 3}, "positions: 3 is no cell"),
        ("rock-sample", {"start": (1,)}, r"start: \(1,\) is no cell"),
        ("rock-sample", {"half_efficiency": 0}, "half_efficiency is 0"),
        ("rock-sample", {"seed": -1}, "seed is -1"),
        ("component-line", {"n": 6}, "n is 6, expected a whole number from 1 to 5"),
        ("component-line", {"repair": -1}, "repair is -1"),
        ("crack-life", {"periods": 0}, "periods is 0"),
        ("crack-life", {"samples": 10}, "samples is 10"),
        ("crack-life", {"failure_price": math.nan}, "failure_price is nan"),
        ("crack-life", {"detection_size": 0}, "detection_size is 0"),
    ],
)
def test_bad_settings(name, settings, message):
    with pytest.raises(am.ModelError, match=message):
        am.problems.make(name, **settings)
