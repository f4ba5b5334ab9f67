"""Every problem keeps the contract; the paper's small examples are what the paper says."""

import numpy as np
import pytest

import actmeasure as am
from actmeasure.problems import PROBLEMS

#: Settings with which large problems are checked quickly.
SMALLER = {
    "drone": {"size": 9, "width": 4, "top_speed": 2},
    "fatigue-crack": {"years": 8, "samples": 2_000},
    "crack-life": {"periods": 8, "samples": 2_000},
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_problem_passes_the_public_check(name):
    am.testing.check_model(am.problems.make(name, **SMALLER.get(name, {})))


def test_unknown_names_and_settings():
    with pytest.raises(am.ModelError, match="unknown problem 'frozen-lak'; did you mean 'frozen-lake'"):
        am.problems.make("frozen-lak")
    with pytest.raises(am.ModelError, match="did you mean 'variant'"):
        am.problems.make("frozen-lake", varient="slippery")
    with pytest.raises(
        am.ModelError, match=r"unknown problem \['x'\]; choose one of: chain, component-line, crack-life, drone"
    ):
        am.problems.make(["x"])
    with pytest.raises(
        am.ModelError, match="unknown problem 'zzzz'; choose one of: chain, component-line, crack-life, drone"
    ):
        am.problems.make("zzzz")


def test_two_state_belief_is_worth_a_look_up_to_what_doubt_costs():
    for cost in (0.05, 0.2, 0.3):
        model = am.problems.two_state_belief(measuring_cost=cost)
        end = {1: am.BlindPlan((0,), then="end"), 2: am.BlindPlan((1,), then="end")}
        look = am.evaluate(model, am.Schedule({0: am.BlindPlan((0,))} | end, 4)).discounted_return
        blind = am.evaluate(model, am.Schedule({0: am.BlindPlan((0, 0), then="end")}, 4)).discounted_return
        assert look - blind == pytest.approx(0.2 - cost, abs=1e-12)


@pytest.mark.parametrize("penalty", [1.0, 10.0, 1000.0])
def test_assuming_the_likeliest_successor_loses_without_bound(penalty):
    model = am.problems.most_likely_successor(successors=10, epsilon=0.01, penalty=penalty)
    successors, probabilities = model.transitions.row(0, 0)
    assert successors[np.argmax(probabilities)] == 1
    assert probabilities.max() == pytest.approx(0.11)
    gamble = am.evaluate(model, am.Schedule({0: am.BlindPlan((0, 0), then="end")}, 12)).discounted_return
    assert gamble == pytest.approx(0.95 * (0.11 - 0.89 * penalty))
    decline = am.evaluate(model, am.Schedule({0: am.BlindPlan((1,), then="end")}, 12)).discounted_return
    assert decline == 0.0


def test_where_the_bound_is_tight():
    cost, discount = 0.1, 0.95
    for epsilon in (0.1, 0.001):
        model = am.problems.tight_bound(epsilon, measuring_cost=cost, discount=discount)
        safe = am.Schedule({0: am.BlindPlan((0,), then="known"), 1: am.BlindPlan((0,), then="repeat", repeat=1)}, 4)
        looking = am.Schedule({0: am.BlindPlan((1,)), 2: am.BlindPlan((0,)), 3: am.BlindPlan((1,))}, 4)
        loss = am.evaluate(model, safe).discounted_return - am.evaluate(model, looking).discounted_return
        bound = cost / (1 - discount)
        assert loss == pytest.approx(bound - epsilon * discount / (1 - discount), abs=1e-9)


@pytest.mark.parametrize(
    ("build", "settings", "message"),
    [
        (am.problems.measuring_value, {"p": 1.5}, "p is 1.5"),
        (am.problems.two_state_belief, {"p": -1}, "p is -1"),
        (am.problems.tight_bound, {"epsilon": 2}, "epsilon is 2"),
        (am.problems.most_likely_successor, {"successors": 1}, "successors is 1"),
        (am.problems.most_likely_successor, {"epsilon": 0}, "epsilon is 0"),
        (am.problems.measuring_value, {"p": "x"}, "p is 'x', expected a probability"),
        (am.problems.two_state_belief, {"p": None}, "p is None, expected a probability"),
        (am.problems.tight_bound, {"epsilon": "a"}, "epsilon is 'a', expected a number"),
        (am.problems.most_likely_successor, {"successors": 2.5}, "successors is 2.5, expected a whole number"),
        (am.problems.most_likely_successor, {"epsilon": "a"}, "epsilon is 'a', expected a number"),
        (am.problems.most_likely_successor, {"penalty": "a"}, "penalty is 'a', expected a number"),
    ],
)
def test_bad_settings(build, settings, message):
    with pytest.raises(am.ModelError, match=message):
        build(**settings)
