"""Methods without a search where looks are not exact: against brute force, and measuring values by their definition."""

import numpy as np
import pytest
from brute_force import fatigue, optimal_value, pile_selection
from hypothesis import given
from strategies import examples, general_models

import actmeasure as am
from actmeasure.planning.baselines import Always, Every
from actmeasure.planning.belief_plans import measuring_values

METHODS = ["always", "every-2", "never", "atm-qmdp", "atm"]


def tried(model, method):
    if not model.measurements and method in ("always", "every-2"):
        with pytest.raises(am.PlanError, match="no measurements to make; use the method never"):
            am.solve(model, method)
        return None
    return am.solve(model, method)


@examples(40)
@given(general_models(max_states=3, max_actions=2))
def test_values_lie_below_the_optimum_and_the_optimum_below_the_bound(model):
    life = am.lifetime(model, 2)
    if life.is_exact_look_model:
        return
    best = optimal_value(life)
    solutions = {method: tried(life, method) for method in METHODS}
    for method, solution in solutions.items():
        if solution is not None:
            assert solution.schedule is None
            assert solution.lower <= best + 1e-9, method
            assert best <= solution.upper + 1e-9, method
            assert am.evaluate(life, solution.policy_graph()).discounted_return == pytest.approx(
                solution.value, abs=1e-9
            )
    # With the control fixed, no choice of measurements is better: Lemma 1 of the paper, for any measurements.
    for method in METHODS:
        if solutions[method] is not None:
            assert solutions["atm"].value >= solutions[method].value - 1e-9, method


@pytest.mark.parametrize("periods", [5, pytest.param(10, marks=pytest.mark.slow)])
def test_fatigue_is_close_to_its_optimum(periods):
    model = am.lifetime(fatigue(), periods)
    best = optimal_value(model)
    assert best - 0.05 * abs(best) < am.solve(model, "atm").value <= best + 1e-9


def test_pile_selection_drills_where_that_is_best():
    solution = am.solve(pile_selection(0.4), "atm")
    assert solution.value == pytest.approx(-50.0)
    assert solution.evaluation.looks.tolist() == [0.0, 1.0]
    assert solution.policy.decide_at(am.Belief.start(solution.model)) == am.Decision(0, 2)
    assert "drilling 1" in str(solution)


def test_without_an_end_atm_is_no_worse_than_what_it_goes_on_with():
    model = fatigue()
    values = {method: am.solve(model, method).value for method in ("atm", "atm-qmdp", "never")}
    assert values["atm"] > values["atm-qmdp"] > values["never"]


def test_measuring_values_are_those_of_the_definition():
    model = fatigue().replace(initial=[0.5, 0.3, 0.2])
    belief, values = am.Belief.start(model), am.q_mdp(model)

    def value(after):
        return float(after.expected(values).max())

    found = measuring_values(model, belief, 0, value)
    chances = belief.outcomes(model, 0, 1)
    after = sum(p * value(belief.update(model, 0, 1, o)) for o, p in enumerate(chances))
    assert found[0] == 0.0
    assert found[1] == pytest.approx(0.95 * (after - value(belief.predict(model, 0))) - 1.0)
    assert measuring_values(model, belief, 1, value).tolist() == [0.0, -np.inf]  # not allowed with a repair


def test_the_measurement_can_be_named():
    cheap = am.Measurement.detection("visual", 0.1, pod=[0.0, 0.5, 0.9])
    model = fatigue().replace(measurements=[cheap, am.Measurement.exact("opening", 5.0)])
    for method in (Always, lambda name: Every(2, name)):
        by_name = {name: am.solve(model, method(name)) for name in ("visual", "opening")}
        assert by_name["opening"].evaluation.discounted_looks[0] == 0.0
        assert by_name["visual"].evaluation.discounted_looks[1] == 0.0
    assert am.solve(model, "always").value == pytest.approx(
        max(am.solve(model, Always(name)).value for name in ("visual", "opening"))
    )
    with pytest.raises(am.ModelError, match="did you mean 'visual'"):
        am.solve(model, Always("visaul"))


def test_atm_linear_says_that_it_needs_exact_looks():
    with pytest.raises(am.ModelError, match=r"the method atm-linear needs one exact measurement .* use atm"):
        am.solve(fatigue(), "atm-linear")


def test_the_loss_of_act_then_measure_is_no_longer_bounded_by_the_price_of_looks():
    """With exact looks it loses at most the price of looking at every step; here looks are free and it loses."""
    P = np.array([[[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]])
    R = np.array([[4.0, -4.0], [-3.0, 2.0]])
    sensor = am.Measurement.noisy("sensor", 0.0, probabilities=[[0.7, 0.3], [0.3, 0.7]])
    model = am.lifetime(am.Model.from_arrays(P, R, measurements=[sensor], initial=[0.5, 0.5], discount=0.9), 2)
    assert am.solve(model, "atm").value == pytest.approx(1.445)
    assert optimal_value(model) == pytest.approx(2.6)
    exact = model.replace(measurements=[am.Measurement.exact("look", 0.0)])
    assert am.solve(exact, "atm").value == pytest.approx(optimal_value(exact))


def test_the_counterexample_of_the_documentation():
    """What `examples/atm_counterexamples.py` finds: a loss of 1.774 where Theorem 1 of the paper would allow 0.271."""
    P, R = np.eye(2)[[[1, 1], [1, 0]]], np.array([[2.0, -3.0], [-4.0, 2.0]])
    sensor = am.Measurement.noisy("sensor", 0.1, probabilities=[[0.7, 0.3], [0.3, 0.7]])
    model = am.lifetime(am.Model.from_arrays(P, R, measurements=[sensor], initial=[0.5, 0.5], discount=0.9), 3)
    assert am.solve(model, "atm").value == pytest.approx(0.646, abs=5e-4)
    assert optimal_value(model) == pytest.approx(2.42, abs=5e-3)


def test_a_passive_outcome_is_used_without_a_measurement():
    alarm = am.Measurement.detection("alarm", pod=[0.01, 0.3, 0.99])
    without = am.solve(fatigue(), "never").value
    with_alarm = am.solve(fatigue().replace(passive=alarm), "never")
    assert with_alarm.value > without
    assert with_alarm.evaluation.measurements == 0.0


class TestManyBeliefs:
    """Where more beliefs come up than a graph may have nodes, it keeps to the rule with merged beliefs, and says so."""

    life = am.lifetime(am.problems.inspection(), 30)

    def test_a_rule_is_kept_to_the_end(self):
        solution = am.solve(self.life, Always("ultrasonic"))
        np.testing.assert_allclose(solution.evaluation.looks, [0.0, 30.0, 0.0])
        assert solution.merged > 0
        assert "are one node" in str(solution)
        third = am.solve(self.life, Every(3, "visual"))
        np.testing.assert_allclose(third.evaluation.looks, [10.0, 0.0, 0.0])

    def test_the_policy_of_every_k_counts_its_steps(self):
        solution = am.solve(am.problems.inspection(), Every(3, "visual"))
        policy = solution.policy
        policy.start(am.Belief.start(solution.model))
        decisions = []
        for _ in range(6):
            decisions.append(policy.decide())
            policy.observe(0 if decisions[-1].measure else None)
        assert [decision.measurement for decision in decisions] == [0, 0, 1, 0, 0, 1]

    def test_a_time_limit_gives_what_there_is(self):
        solution = am.solve(am.problems.inspection(), "atm", time_limit=0.5)
        assert solution.lower <= solution.upper
        assert solution.stopped in ("time", "done")


def test_what_needs_exact_looks_says_what_to_use():
    solution = am.solve(fatigue(), "never")
    with pytest.raises(am.PlanError, match=r"explain.*policy_graph\(\)\.describe"):
        solution.explain()
    with pytest.raises(am.ModelError, match=r"tradeoff.* is not exact; name one measurement"):
        am.tradeoff(fatigue(), method="atm")
    with pytest.raises(am.ModelError, match=r"a Schedule needs one exact measurement .*PolicyGraph"):
        am.Schedule({0: am.BlindPlan((0,))}, 3).policy(fatigue())


def test_long_steps_of_a_solution_keep_their_decision():
    sound = am.Measurement.detection("sound", pod=[0.1, 0.9, 0.9], outcomes=("none", "a creak " * 30))
    solution = am.solve(am.lifetime(fatigue().replace(passive=sound), 3), "never")
    first = next(line for line in str(solution).splitlines() if "a creak" in line)
    assert first.startswith("1. nothing. If 'a creak a creak")
    assert first.endswith(" ...")
