"""Systems of independent components: the joint model against products that are written out, and what is refused."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, systems

import actmeasure as am
from actmeasure.model.system import Factors

WEAR = np.array([[0.8, 0.2], [0.0, 1.0]])
CHECK = am.Measurement.detection("check", cost=1.0, pod=[0.1, 0.9], with_actions=("nothing",))
OPENING = am.Measurement.exact("opening", cost=2.0)


def pump(**changes):
    given = {
        "transitions": {"nothing": WEAR, "replace": WEAR[[0, 0]]},
        "costs": {"replace": 20.0},
        "start": [0.7, 0.3],
        "measurements": [CHECK],
    }
    return am.Component(**(given | changes))


def law_of(component, measurement, action):
    """Probabilities of outcomes by the definition, as a list of (outcome, probabilities by state); one where none is made."""
    n_states = component.model.n_states
    if measurement == 0:
        return [(None, np.ones(n_states))]
    rows = [am.Belief.at(s) for s in range(n_states)]
    shown = component.model.measurements[measurement - 1]
    if shown.law is None:
        return list(enumerate(np.eye(n_states)))
    dense = shown.law.of_action(action, n_states).toarray()
    assert dense.shape[0] == len(rows)
    return list(enumerate(dense.T))


@examples(60)
@given(systems())
def test_the_joint_model_is_the_product_of_its_components(model):
    factors = model.origin
    parts = factors.components
    states = list(product(*(range(part.model.n_states) for part in parts)))
    actions = list(product(*(range(part.model.n_actions) for part in parts)))
    looks = list(product(*(range(1 + len(part.model.measurements)) for part in parts)))
    dense = model.transitions.dense()
    of_parts = [part.model.transitions.dense() for part in parts]
    assert len(states) == model.n_states
    assert len(actions) == model.n_actions
    assert len(looks) == 1 + len(model.measurements)
    assert not model.reveal_start
    for (s, x), (a, u) in product(enumerate(states), enumerate(actions)):
        expected = [np.prod([of_parts[c][x[c], u[c], y[c]] for c in range(len(parts))]) for y in states]
        assert dense[s, a] == pytest.approx(np.array(expected), abs=1e-14)
        cost = factors.penalty[x] - sum(part.model.rewards[x[c], u[c]] for c, part in enumerate(parts))
        assert model.rewards[s, a] == pytest.approx(-cost - factors.mobilisation * any(u), abs=1e-12)
    for m, look in enumerate(looks[1:], start=1):
        shown = model.measurements[m - 1]
        for a, u in enumerate(actions):
            allowed = all(part.model.allowed_decisions[u[c], look[c]] for c, part in enumerate(parts))
            assert model.allowed_decisions[a, m] == allowed
            if not allowed:
                continue
            laws = [law_of(part, look[c], u[c]) for c, part in enumerate(parts)]
            joint = np.eye(model.n_states) if shown.law is None else shown.law.of_action(a, model.n_states).toarray()
            for o, outcome in enumerate(product(*laws)):
                expected = [np.prod([outcome[c][1][y[c]] for c in range(len(parts))]) for y in states]
                assert joint[:, o] == pytest.approx(np.array(expected), abs=1e-14)
            for s, x in enumerate(states):
                price = sum(
                    part.model.measurements[look[c] - 1].of(x[c], u[c]) for c, part in enumerate(parts) if look[c]
                )
                assert shown.of(s, a) == pytest.approx(price + factors.mobilisation * (not any(u)), abs=1e-12)


@examples(40)
@given(systems(), st.integers(0, 2**32 - 1))
def test_beliefs_stay_products(model, seed):
    rng = np.random.default_rng(seed)
    factors = model.origin
    marginals = list(factors.start)
    belief = am.Belief.start(model)
    for _ in range(4):
        chosen = [int(rng.integers(len(options))) for options in factors.choices]
        action, measurement = factors.decisions[tuple(chosen)].tolist()
        outcomes = []
        for c, u in enumerate(chosen):
            after = marginals[c] @ factors.transitions[c][u]
            chances = after @ factors.laws[c][u]
            outcomes.append(int(rng.choice(len(chances), p=chances / chances.sum())))
            marginals[c] = after * factors.laws[c][u][:, outcomes[-1]]
            marginals[c] /= marginals[c].sum()
        sizes = [factors.laws[c][u].shape[1] for c, u in enumerate(chosen)]
        seen = int(np.ravel_multi_index(outcomes, sizes))
        belief = belief.update(model, action, measurement, seen if measurement else None)
        joint = marginals[0]
        for other in marginals[1:]:
            joint = np.multiply.outer(joint, other).ravel()
        assert belief.dense(model.n_states) == pytest.approx(joint, abs=1e-12)


@examples(40)
@given(systems())
def test_factors_have_the_costs_of_every_joint_decision(model):
    factors = model.origin
    assert isinstance(factors, Factors)
    pairs = {tuple(pair) for pair in factors.decisions.reshape(-1, 2).tolist()}
    assert pairs == set(zip(*(numbers.tolist() for numbers in np.nonzero(model.allowed_decisions)), strict=True))
    for chosen in np.ndindex(*factors.decisions.shape[:-1]):
        action, measurement = factors.decisions[chosen].tolist()
        cost = factors.penalty + factors.mobilisation * any(chosen)
        for c, u in enumerate(chosen):
            shape = [1] * len(chosen)
            shape[c] = -1
            cost = cost + factors.costs[c][u].reshape(shape)
        paid = model.rewards[:, action]
        if measurement:
            paid = paid - model.measurements[measurement - 1].table(model.n_states, model.n_actions)[:, action]
        assert paid == pytest.approx(-cost.ravel(), abs=1e-12)


class TestDecision:
    model = am.system([pump(), pump(measurements=[CHECK, OPENING])], mobilisation=4.0)

    def test_names_of_choices(self):
        model = self.model
        assert model.action_names[2] == "replace + nothing"
        for choices, action, measurement in [
            (("nothing", "nothing"), 0, 0),
            (("replace", "nothing"), 2, 0),
            (("replace", "check"), 2, 1),
            (("check", ("replace", "opening")), 1, 5),
            ((("nothing", "check"), ("nothing", None)), 0, 3),
            ([1, (0, 1)], 2, 1),
            ((1, ("replace", "none")), 3, 0),
        ]:
            assert model.decision(choices) == am.Decision(action, measurement)
            names = [one.name for one in model.measurements]
            assert measurement == 0 or names[measurement - 1].count(" + ") == 1

    @pytest.mark.parametrize(
        ("choices", "message"),
        [
            (("nothing",), "expected one for each of the 2 components, such as \\('nothing', 'nothing'\\)"),
            ("nothing", "the choices are 'nothing', expected one for each"),
            (("nothing", "repalce"), "unknown choice for component 1 'repalce'; did you mean 'replace'"),
            ((True, "nothing"), "unknown choice for component 0 True"),
            ((2, "nothing"), "unknown choice for component 0 2"),
            (("nothing", "opening"), "'opening' of component 1 can be made with several actions; say which: "),
            ((("replace", "check"), "nothing"), "'check' of component 0 cannot be made with the action 'replace'"),
            ((("nothing", "look"), "nothing"), "unknown measurement of component 0 'look'"),
        ],
    )
    def test_what_is_not_a_choice_is_refused(self, choices, message):
        with pytest.raises(am.ModelError, match=message):
            self.model.decision(choices)

    def test_other_models_have_no_components(self):
        with pytest.raises(am.ModelError, match="not that of a system"):
            am.problems.chain().decision(("forward",))


def test_an_exact_measurement_of_every_component_is_exact():
    model = am.system([pump(measurements=[OPENING]), pump(measurements=[OPENING])])
    assert [one.is_exact for one in model.measurements] == [False, False, True]
    assert model.measurements[2].name == "opening + opening"
    assert model.measurements[2].cost == 4.0
    alone = am.system([pump(measurements=[OPENING])])
    assert alone.is_exact_look_model
    assert not alone.reveal_start


def test_names_of_outcomes_are_those_of_the_measured_components():
    named = pump(state_names=["up", "down"], measurements=[CHECK, OPENING])
    model = am.system([named, named])
    by_name = {one.name: one.outcomes for one in model.measurements}
    assert by_name["none + check"] == ("miss", "hit")
    assert by_name["check + opening"] == ("miss + up", "miss + down", "hit + up", "hit + down")
    assert model.state_names == ("up + up", "up + down", "down + up", "down + down")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pump(transitions=WEAR), "transitions of a component are .*, expected a matrix"),
        (lambda: pump(transitions={}), "transitions of a component are {}"),
        (lambda: pump(transitions={3: WEAR}), "an action of a component is 3, expected a name"),
        (lambda: pump(transitions={"nothing": "x"}), "transitions of the action 'nothing' are 'x'"),
        (lambda: pump(transitions={"nothing": [[1.0, 0.0]]}), r"have shape \(1, 2\), expected a square matrix"),
        (
            lambda: pump(transitions={"nothing": WEAR, "replace": np.eye(3)}),
            r"have shape \(3, 3\), expected a square matrix \(2, 2\) as for 'nothing'",
        ),
        (lambda: pump(transitions={"nothing": 0.9 * WEAR}, costs=None), r"sums to 0.9, expected 1"),
        (lambda: pump(costs={"repair": 1.0}), "unknown action in costs 'repair'"),
        (lambda: pump(costs=[1.0]), r"costs of a component are \[1.0\]"),
        (lambda: pump(costs={"replace": "x"}), "the cost of the action 'replace' is 'x'"),
        (lambda: pump(costs={"replace": [1.0, 2.0, 3.0]}), "expected a number, or 2, one for each state"),
        (lambda: pump(costs={"replace": np.inf}), "the cost of the action 'replace' is inf, expected finite numbers"),
        (lambda: pump(start=[0.5, 0.4]), "initial sums to 0.9"),
        (lambda: pump(measurements=[am.Measurement.exact("replace")]), "are both named 'replace'"),
        (lambda: pump(measurements=[am.Measurement.exact("none")]), "named 'none', which means that none is made"),
        (lambda: pump(measurements=["check"]), "expected a list of Measurement"),
        (lambda: am.system(pump()), "components are Component.*, expected a list of Component"),
        (lambda: am.system([]), r"components are \[\], expected a list"),
        (lambda: am.system([pump(), "pump"]), "expected a list of Component"),
        (
            lambda: am.system([pump()] * 5),
            "5 components of up to 2 states make 32 joint states and 243 joint decisions",
        ),
        (
            lambda: am.system([am.Component({"nothing": np.eye(5)})] * 2),
            "2 components of up to 5 states make 25 joint states .* bounds would need a grid",
        ),
        (lambda: am.system([pump()], penalty=3.0), "penalty is 3.0, expected a function of the tuple"),
        (lambda: am.system([pump()], penalty=lambda states: "x"), r"the penalty in the states \(0,\) is 'x'"),
        (lambda: am.system([pump()], penalty=lambda states: np.nan), r"the penalty in the states \(0,\) is nan"),
        (lambda: am.system([pump()], mobilisation=-1.0), "mobilisation is -1.0"),
        (lambda: am.system([pump()], discount=1.0), "discount is 1, but from state 0 no policy is sure to end"),
        (
            lambda: am.system([am.Component({"a": WEAR, "a + a": WEAR})] * 2),
            "two joint actions are both named 'a \\+ a \\+ a'",
        ),
    ],
)
def test_what_does_not_fit_is_refused(make, message):
    with pytest.raises(am.ModelError, match=message):
        make()


class TestKOutOfN:
    def test_sizes_and_costs(self):
        model = am.problems.k_out_of_n(4, 2, hard=True)
        assert (model.n_states, model.n_actions, len(model.measurements)) == (81, 16, 15)
        assert model.allowed_decisions.sum() == 81
        # Failed, failed, failed, intact: one component of the two that are needed.
        state = model.state_names.index("failed + failed + failed + intact")
        action, measurement = model.decision(("nothing", "inspect", "replace", "nothing"))
        penalty = 3.0 * (50 + 30 + 80 + 90)
        price = model.measurements[measurement - 1].of(state, action)
        assert -model.rewards[state, action] + price == pytest.approx(penalty + 3.0 + 80.0 + 4.0)
        assert model.rewards[0, 0] == 0.0
        assert model.rewards[0, model.decision(("replace",) * 4).action] == pytest.approx(-(50 + 30 + 80 + 90) - 4.0)

    def test_factors_of_the_penalty(self):
        failed = -1
        assert am.problems.k_out_of_n(2, 1).rewards[failed, 0] == pytest.approx(-240.0)
        assert am.problems.k_out_of_n(4, 1).rewards[failed, 0] == pytest.approx(-375.0)
        assert am.problems.k_out_of_n(4, 1, hard=True).rewards[failed, 0] == pytest.approx(-750.0)
        assert am.problems.k_out_of_n(2, penalty_factor=1.0, mobilisation=2.0).rewards[failed, -1] == pytest.approx(
            -162.0
        )

    def test_transitions_after_a_replacement_and_reports(self):
        model = am.problems.k_out_of_n(1)
        assert model.transitions.dense()[1, 1] == pytest.approx([0.95 * 0.82, 0.95 * 0.18 + 0.05 * 0.87, 0.05 * 0.13])
        assert model.transitions.dense()[2, 1] == pytest.approx([0.95 * 0.82, 0.95 * 0.18, 0.05])
        report = model.measurements[0].law.matrix().toarray()
        assert report == pytest.approx(np.array([[0.8, 0.2, 0.0], [0.1, 0.8, 0.1], [0.0, 0.05, 0.95]]))

    @pytest.mark.parametrize(("settings", "message"), [({"n": 5}, "n is 5"), ({"n": 2, "k": 3}, "k is 3")])
    def test_what_does_not_exist_is_refused(self, settings, message):
        with pytest.raises(am.ModelError, match=message):
            am.problems.k_out_of_n(**settings)
