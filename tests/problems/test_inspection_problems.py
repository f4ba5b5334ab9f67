"""Sewer, fatigue crack, inventory and snake maze: transitions by slow loops, closed forms, published and certified values."""

import math

import numpy as np
import pytest

import actmeasure as am
from actmeasure.problems import fatigue


def row(model, state, action):
    """Successors and their probabilities."""
    return dict(zip(*(values.tolist() for values in model.transitions.row(state, action)), strict=True))


class TestSnakeMaze:
    @pytest.mark.parametrize(("width", "height"), [(10, 10), (4, 3), (2, 1), (5, 2)])
    def test_cell_by_cell(self, width, height):
        model = am.problems.snake_maze(width, height)
        goal = (0 if height % 2 == 0 else width - 1, height - 1)
        assert np.flatnonzero(model.terminal).tolist() == [goal[1] * width + goal[0]]
        for y in range(height):
            for x in range(width):
                if (x, y) == goal:
                    continue
                for action, name in enumerate(model.action_names):
                    expected, paid = {}, -0.005
                    for to, chance in self.moves(x, y, name, width, height).items():
                        expected[to[1] * width + to[0]] = chance
                        paid += chance * (to == goal)
                    assert row(model, y * width + x, action) == pytest.approx(expected)
                    assert model.rewards[y * width + x, action] == pytest.approx(paid)

    @staticmethod
    def moves(x, y, name, width, height):
        if name == "down":
            at_end = x == (width - 1 if y % 2 == 0 else 0)
            return {(x, y + 1) if at_end and y + 1 < height else (x, y): 1.0}
        steps = {0: 0.5, 3: 0.5} if name.startswith("risky") else {1: 0.6, 2: 0.4}
        found = {}
        for cells, chance in steps.items():
            to = max(0, x - cells) if name.endswith("left") else min(width - 1, x + cells)
            found[to, y] = found.get((to, y), 0.0) + chance
        return found

    def test_certified_optimum(self):
        model = am.problems.snake_maze()
        solution = am.solve(model, tolerance=1e-6)
        assert (solution.lower, solution.upper) == pytest.approx((0.236262, 0.236262), abs=2e-6)
        assert solution.value >= am.solve(model, "atm").value - 1e-9

    def test_a_row_of_two_is_one_step(self):
        """`right` surely reaches the end of a row of two cells."""
        solution = am.solve(am.problems.snake_maze(2, 1))
        assert solution.value == pytest.approx(0.995, abs=1e-9)


class TestInventory:
    def test_published_values_with_free_counting(self):
        model = am.problems.inventory(measuring_cost=0.0)
        assert am.q_mdp(model).max(axis=1) == pytest.approx([5.75, 6.75, 7.75, 8.05], abs=1e-9)
        for stock, value in enumerate([5.75, 6.75, 7.75, 8.05]):
            solution = am.solve(model.replace(initial=stock))
            assert (solution.lower, solution.upper) == pytest.approx((value, value), abs=2e-6)

    @pytest.mark.parametrize(
        "settings",
        [{}, {"capacity": 6, "demand": [0.1, 0.2, 0.3, 0.4], "price": 5.0, "production": 1.5, "holding": 0.25}],
    )
    def test_stock_by_stock(self, settings):
        model = am.problems.inventory(**settings)
        given = {"capacity": 3, "demand": [0, 0.5, 0.5], "price": 2, "production": 1, "holding": 0.5} | settings
        for stock in range(given["capacity"] + 1):
            for order in range(given["capacity"] + 1):
                expected, paid = {}, 0.0
                filled = min(stock + order, given["capacity"])
                for wanted, chance in enumerate(given["demand"]):
                    if chance:
                        sold = min(wanted, filled)
                        expected[filled - sold] = expected.get(filled - sold, 0.0) + chance
                        paid += chance * (given["price"] * sold - given["holding"] * (filled - sold))
                assert row(model, stock, order) == pytest.approx(expected)
                assert model.rewards[stock, order] == pytest.approx(paid - given["production"] * (filled - stock))

    def test_certain_demand_needs_no_counting(self):
        """One customer each time: order one each time, earn price minus production for ever."""
        solution = am.solve(am.problems.inventory(demand=[0, 1.0]))
        assert solution.value == pytest.approx(1 / (1 - 0.8), abs=1e-6)
        assert solution.evaluation.average_measurements == 0


class TestSewer:
    def test_by_hand(self):
        model = am.problems.sewer()
        stay = [0.955, 0.972, 0.979, 0.988]
        for severity, p in enumerate(stay):
            assert row(model, severity, 0) == pytest.approx({severity: p, severity + 1: 1 - p})
        assert row(model, 4, 0) == {4: 1.0}
        assert [row(model, severity, 1) for severity in (2, 3, 4)] == [{1: 1.0}] * 3
        assert [row(model, severity, 1) for severity in (0, 1)] == [row(model, severity, 0) for severity in (0, 1)]
        assert [row(model, severity, 2) for severity in range(5)] == [{0: 1.0}] * 5
        failing = 100_000 * (1 - math.sqrt(0.98))  # half a year at 0.02 a year
        assert model.rewards[:, 0] == pytest.approx([0, 0, 0, 0, -failing])
        assert model.rewards[:, 1] == pytest.approx([-500, -500, -1000, -1200, -1400 - failing])
        assert model.rewards[:, 2] == pytest.approx([-24_560] * 4 + [-24_560 - failing])

    @pytest.mark.parametrize("discount", [0.95, 0.985])
    def test_doing_nothing(self, discount):
        """Each severity but the last takes a geometric time; then failures for ever."""
        model = am.problems.sewer(discount=discount)
        nothing = am.Schedule({0: am.BlindPlan((0,), then="repeat", repeat=1)}, 5)
        reaching = math.prod((1 - p) * discount / (1 - p * discount) for p in (0.955, 0.972, 0.979, 0.988))
        closed = -reaching * 100_000 * (1 - math.sqrt(0.98)) / (1 - discount)
        assert am.evaluate(model, nothing).discounted_return == pytest.approx(closed, rel=1e-9)

    def test_without_a_price_on_failure_nothing_is_best(self):
        solution = am.solve(am.problems.sewer(failure=0.0))
        assert solution.value == pytest.approx(0.0, abs=1e-6)
        assert solution.evaluation.average_measurements == 0

    def test_longer_steps_have_more_failures(self):
        yearly = am.problems.sewer(step_years=1.0).rewards[4, 0]
        assert yearly == pytest.approx(-2_000)
        assert am.problems.sewer(step_years=2.0).rewards[4, 0] == pytest.approx(-100_000 * (1 - 0.98**2))

    def test_certified_optimum(self):
        solution = am.solve(am.problems.sewer(), tolerance=0.01)
        assert (solution.lower, solution.upper) == pytest.approx((-1243.81, -1243.81), abs=0.02)
        assert solution.schedule[0].then == "measure"


class TestFatigueCrack:
    def test_growth_is_that_of_a_slow_simulation(self):
        """The same units, one by one, with the law as it is written: in depths, not transformed."""
        years, samples = 4, 2_000
        begin, ageing = fatigue.growth(years, samples, np.random.default_rng(5))
        rng = np.random.default_rng(5)
        factors = [math.exp(value) for value in rng.normal(-35.2, 0.5, samples)]
        stresses = rng.normal(70, 10, samples).tolist()
        depths = rng.exponential(1.0, samples).tolist()
        edges = [1e-4 * (20 / 1e-4) ** (k / 28) for k in range(29)]
        counts = np.zeros((years + 1, 30, 30))
        for C, S, first in zip(factors, stresses, depths, strict=True):
            d = first
            size = sum(d > edge for edge in edges)
            counts[years, size, size] += 1
            for age in range(years):
                inner = (2 - 3.5) / 2 * C * (math.sqrt(math.pi) * S) ** 3.5 * 1e6 + d ** ((2 - 3.5) / 2)
                d = inner ** (2 / (2 - 3.5)) if inner > 0 and d <= 20 else math.inf
                after = sum(d > edge for edge in edges)
                counts[age, size, after] += 1
                size = after
        assert begin == pytest.approx(counts[years].diagonal() / samples)
        seen = counts[:years].sum(axis=2)
        for age in range(years):
            for size in range(30):
                expected = counts[age, size] / seen[age, size] if seen[age, size] else np.eye(30)[size]
                assert ageing[age, size] == pytest.approx(expected, abs=1e-12)

    def test_never_repairing_costs_the_share_of_units_that_fail(self):
        """The shares of size classes at each age are exactly those of the simulated units."""
        years, samples = 30, 20_000
        model = am.problems.fatigue_crack(years, samples=samples, seed=3)
        never = am.Schedule({}, model.n_states, start=am.BlindPlan((0,) * years, then="end"))
        rng = np.random.default_rng(3)
        C, S = np.exp(rng.normal(-35.2, 0.5, samples)), rng.normal(70, 10, samples)
        d = rng.exponential(1.0, samples)
        left = d**-0.75 - years * 0.75 * C * (np.sqrt(np.pi) * S) ** 3.5 * 1e6
        failed = np.mean((left <= 20**-0.75) & (d <= 20))
        assert failed > 0.01
        result = am.evaluate(model, never, horizon=years)
        assert (result.scalarized_return, result.steps) == pytest.approx((-10_000 * failed, years), rel=1e-9)

    def test_states(self):
        model = am.problems.fatigue_crack(years=3, samples=5_000)
        assert model.n_states == (1 + 2 + 3) * 30 + 1
        assert (model.n_actions, model.reveal_start) == (2, False)
        at = fatigue.state_number
        assert model.state_names[at(2, 1, 29)] == "year 2, age 1: failed"
        assert model.state_names[at(0, 0, 0)] == "year 0, age 0: below 0.0001 mm"
        assert model.state_names[-1] == "over"
        begin = model.initial_distribution[:30]
        repaired = row(model, at(1, 1, 20), 1)  # back to a new crack, a year later
        assert repaired == pytest.approx({at(2, 0, k): p for k, p in enumerate(begin) if p > 0})
        assert row(model, at(0, 0, 29), 0) == {at(1, 1, 29): 1.0}  # a failed weld stays failed
        assert row(model, at(2, 2, 5), 0) == {model.n_states - 1: 1.0}
        assert model.rewards[at(0, 0, 29)] == pytest.approx([0.0, -20.0])
        assert model.rewards[-1].tolist() == [0.0, 0.0]

    def test_seeds(self):
        assert am.problems.fatigue_crack(2, samples=1_000) == am.problems.fatigue_crack(2, samples=1_000, seed=0)
        assert am.problems.fatigue_crack(2, samples=1_000) != am.problems.fatigue_crack(2, samples=1_000, seed=1)

    def test_certified_optimum(self):
        solution = am.solve(am.problems.fatigue_crack(years=12, samples=20_000), tolerance=1e-4)
        assert solution.gap <= 1e-4
        assert am.solve(solution.model, "never").value <= solution.value + 1e-9


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("snake-maze", {"width": 1}, "width is 1, expected a whole number from 2 up"),
        ("snake-maze", {"height": 0}, "height is 0"),
        ("inventory", {"capacity": 0}, "capacity is 0"),
        ("inventory", {"demand": [0.5, 0.4]}, "demand sums to 0.9, expected 1"),
        ("inventory", {"demand": [1.5, -0.5]}, r"demand\[0\] is 1.5, expected a probability"),
        ("inventory", {"demand": "ab"}, "demand is 'ab', expected the probabilities"),
        ("inventory", {"demand": []}, r"demand is \[\], expected the probabilities"),
        ("inventory", {"demand": 2}, "demand is 2, expected the probabilities"),
        ("inventory", {"price": -1}, "price is -1, expected a finite number that is 0 or more"),
        ("inventory", {"holding": math.inf}, "holding is inf"),
        ("inventory", {"production": "x"}, "production is 'x'"),
        ("sewer", {"replacement": -1}, "replacement is -1"),
        ("sewer", {"failure": math.nan}, "failure is nan"),
        ("sewer", {"failure_rate": 2}, "failure_rate is 2, expected a probability"),
        ("sewer", {"step_years": 0}, "step_years is 0, expected a finite number above 0"),
        ("sewer", {"discount": 1.0}, "discount"),
        ("fatigue-crack", {"years": 0}, "years is 0"),
        ("fatigue-crack", {"samples": 10}, "samples is 10, expected a whole number from 1000 up"),
        ("fatigue-crack", {"seed": -1}, "seed is -1"),
        ("fatigue-crack", {"repair": None}, "repair is None"),
        ("fatigue-crack", {"failure": -5}, "failure is -5"),
    ],
)
def test_bad_settings(name, settings, message):
    with pytest.raises(am.ModelError, match=message):
        am.problems.make(name, **settings)
