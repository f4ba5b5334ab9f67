"""The other problems of the field are what their sources say: transitions and rewards by hand, closed forms, certified optima."""

import numpy as np
import pytest

import actmeasure as am
from actmeasure.problems.sepsis import CURED, DEAD, OVER, state_number

SEPSIS = am.problems.sepsis()


def row(model, state, action):
    """Successors and their probabilities."""
    return dict(zip(*(values.tolist() for values in model.transitions.row(state, action)), strict=True))


@pytest.mark.parametrize(
    "model", [am.problems.chain(1), am.problems.chain(50), am.problems.maintenance(), SEPSIS], ids=repr
)
def test_rows_are_distributions(model):
    sums = model.transitions.stacked().sum(axis=1).reshape(model.n_states, model.n_actions)
    assert sums[~model.terminal] == pytest.approx(1.0, abs=1e-12)
    am.testing.check_model(model)


class TestChain:
    def test_by_hand(self):
        model = am.problems.chain(3)
        assert [row(model, s, 0) for s in range(3)] == [{1: 1.0}, {2: 1.0}, {3: 1.0}]
        assert [row(model, s, 1) for s in range(3)] == [{0: 1.0}] * 3
        assert model.rewards[:3].tolist() == [[-0.01, -0.01], [-0.01, -0.01], [0.99, -0.01]]
        assert model.terminal.tolist() == [False, False, False, True]

    @pytest.mark.parametrize("n", [1, 2, 10, 30, 50])
    @pytest.mark.parametrize("discount", [0.95, 0.99])
    def test_going_forward_without_a_look_is_best(self, n, discount):
        model = am.problems.chain(n, discount=discount)
        closed = discount ** (n - 1) - 0.01 * (1 - discount**n) / (1 - discount)
        forward = am.Schedule({0: am.BlindPlan((0,) * n, then="end")}, n + 1)
        assert am.evaluate(model, forward).discounted_return == pytest.approx(closed, abs=1e-12)
        solution = am.solve(model)
        assert (solution.lower, solution.upper) == pytest.approx((closed, closed), abs=1e-6)
        result = am.evaluate(model, solution.schedule, horizon=200)
        assert (result.scalarized_return, result.measurements) == pytest.approx((1 - n / 100, 0), abs=1e-9)

    @pytest.mark.parametrize("n", [0, -1, 2.5, "ten", None])
    def test_bad_lengths(self, n):
        with pytest.raises(am.ModelError, match=r"n is .*expected a whole number"):
            am.problems.chain(n)


class TestMaintenance:
    def test_by_hand(self):
        model = am.problems.maintenance()
        assert model.state_names == ("R2", "R1", "W0", "W1", "W2", "W3", "W4", "W5", "W6", "W7", "B")
        assert [row(model, s, 0) for s in (0, 1, 2, 9)] == [{s: 0.5, s + 1: 0.5} for s in (0, 1, 2, 9)]
        assert row(model, 10, 0) == {10: 1.0}
        assert row(model, 5, 1) == pytest.approx({0: 0.1, 1: 0.6, 6: 0.3})
        assert row(model, 10, 1) == pytest.approx({0: 0.1, 1: 0.6, 10: 0.3})
        assert row(model, 0, 1) == pytest.approx({0: 0.1, 1: 0.9})
        assert row(model, 1, 1) == pytest.approx({0: 0.1, 1: 0.6, 2: 0.3})
        assert model.rewards[:, 0].tolist() == [-0.5, -0.1] + [0.0] * 8 + [-1.0]
        assert (model.rewards[:, 0] == model.rewards[:, 1]).all()
        assert model.initial_states.tolist() == [2]
        assert not model.terminal.any()

    @pytest.mark.parametrize("discount", [0.9, 0.95])
    def test_never_repairing(self, discount):
        """Each of the eight steps of wear takes a geometric time; a broken machine costs 1 for ever."""
        model = am.problems.maintenance(discount=discount)
        work = am.Schedule({2: am.BlindPlan((0,), then="repeat", repeat=1)}, 11)
        closed = -((0.5 * discount / (1 - 0.5 * discount)) ** 8) / (1 - discount)
        assert am.evaluate(model, work).discounted_return == pytest.approx(closed, rel=1e-9)

    def test_the_optimum_looks_now_and_then(self):
        solution = am.solve(am.problems.maintenance(), tolerance=1e-6)
        assert (solution.lower, solution.upper) == pytest.approx((-0.40061, -0.40061), abs=2e-5)
        result = am.evaluate(am.problems.maintenance(), solution.schedule)
        assert 0.1 < result.average_measurements < 0.5


class TestSepsis:
    def test_sizes(self):
        assert (SEPSIS.n_states, SEPSIS.n_actions) == (720 * 5 + 3, 8)
        assert np.flatnonzero(SEPSIS.terminal).tolist() == [DEAD, CURED, OVER]
        assert len({state_number(2, (h, p, o, g), (a, v, b)) for h in range(3) for p in range(3) for o in range(2)
                    for g in range(5) for a in (0, 1) for v in (0, 1) for b in (0, 1)}) == 720  # fmt: skip
        assert SEPSIS.action_names[0] == "nothing"
        assert SEPSIS.action_names[4] == "antibiotic"
        assert SEPSIS.state_names[state_number(1, (2, 0, 1, 3), (0, 1, 1))] == (
            "step 1: heart 2, pressure 0, oxygen 1, glucose 3, vasopressor+ventilation"
        )

    def test_beginning_with_antibiotics(self):
        """Heart rate 2 comes down with .5; pressure is touched and stays; oxygen and glucose drift."""
        state = state_number(0, (2, 1, 1, 2))
        found = row(SEPSIS, state, 4)
        assert found[state_number(1, (1, 1, 1, 2), (1, 0, 0))] == pytest.approx(0.5 * 0.9 * 0.8)
        assert found[state_number(1, (2, 1, 0, 2), (1, 0, 0))] == pytest.approx(0.5 * 0.1 * 0.8)
        assert found[DEAD] == pytest.approx(0.5 * 0.1 * 0.2)
        assert CURED not in found  # as a treatment is on
        assert len(found) == 2 * 2 * 3 - 2 + 1
        assert SEPSIS.rewards[state, 4] == pytest.approx(0.25 * 0.99)

    @pytest.mark.parametrize("step", [1, 4])
    def test_stopping_antibiotics(self, step):
        """Heart rate and pressure relapse with .1 each; what is left is health, and at the end of time it is over."""
        state = state_number(step, (1, 1, 1, 2), (1, 0, 0))
        found = row(SEPSIS, state, 0)
        cured = 0.9 * 0.9 * 0.9 * 0.8
        dead = 0.1**3 * 0.8 + 3 * 0.1**2 * 0.9 * 0.2 + 0.1**3 * 0.2
        assert (found[CURED], found[DEAD]) == pytest.approx((cured, dead))
        assert SEPSIS.rewards[state, 0] == pytest.approx(cured + 0.25 * (1 - cured - dead))
        if step == 1:
            assert found[state_number(2, (2, 1, 1, 2))] == pytest.approx(0.1 * 0.9 * 0.9 * 0.8)
            assert state_number(2, (0, 1, 1, 2)) not in found
        else:
            assert found[OVER] == pytest.approx(1 - cured - dead)
            assert found.keys() == {CURED, DEAD, OVER}

    def test_two_treatments_of_blood_pressure_one_after_the_other(self):
        state = state_number(0, (1, 2, 1, 2))
        found = row(SEPSIS, state, 6)  # antibiotic and vasopressor: down with .5, then up again with .7
        on = (1, 1, 0)
        assert found[state_number(1, (1, 1, 1, 2), on)] == pytest.approx(0.5 * 0.3 * 0.9 * 0.8)
        assert found[state_number(1, (1, 2, 1, 2), on)] == pytest.approx(0.85 * 0.9 * 0.8)

    def test_vasopressors_and_ventilation(self):
        low = state_number(0, (1, 0, 0, 2))
        found = row(SEPSIS, low, 3)  # heart rate drifts both ways
        assert found[state_number(1, (1, 1, 1, 2), (0, 1, 1))] == pytest.approx(0.8 * 0.7 * 0.7 * 0.8)
        stopped = row(SEPSIS, state_number(1, (1, 2, 1, 2), (0, 1, 1)), 0)
        assert stopped[CURED] == pytest.approx(0.8 * 0.1 * 0.9 * 0.8)  # pressure falls to normal
        assert stopped[state_number(2, (1, 2, 0, 2))] == pytest.approx(0.8 * 0.9 * 0.1 * 0.8)

    def test_beginning(self):
        probabilities = dict(zip(SEPSIS.initial_states.tolist(), SEPSIS.initial_probabilities.tolist(), strict=True))
        assert state_number(0, (1, 1, 1, 2)) not in probabilities  # healthy
        assert state_number(0, (0, 0, 0, 2)) not in probabilities  # too ill
        one, other = probabilities[state_number(0, (2, 1, 1, 2))], probabilities[state_number(0, (1, 1, 0, 1))]
        assert one / other == pytest.approx((0.25 * 0.5 * 0.8 * 0.6) / (0.5 * 0.5 * 0.2 * 0.15))
        assert all((state % 8, state < 720) == (0, True) for state in probabilities)

    def test_with_free_looks_it_is_a_decision_process_of_five_steps(self):
        """Backward over the steps, with the library's own arrays but none of its planners."""
        values = np.zeros(SEPSIS.n_states)
        stacked = SEPSIS.transitions.stacked()
        for _ in range(5):
            values = (SEPSIS.rewards + 0.95 * (stacked @ values).reshape(-1, 8)).max(axis=1)
            values[DEAD:] = 0.0
        best = float(SEPSIS.initial_probabilities @ values[SEPSIS.initial_states])
        solution = am.solve(SEPSIS.replace(measuring_cost=0.0))
        assert (solution.lower, solution.upper) == pytest.approx((best, best), abs=1e-5)
        assert am.solve(SEPSIS).upper < best

    def test_certified_optimum(self):
        solution = am.solve(SEPSIS, tolerance=1e-4)
        assert solution.upper - solution.lower <= 1e-4
        assert solution.value == pytest.approx(1.2006, abs=2e-4)
        result = am.evaluate(SEPSIS, solution.schedule)
        assert (result.steps, result.ending_probability) == pytest.approx((4.93, 1.0), abs=0.01)
