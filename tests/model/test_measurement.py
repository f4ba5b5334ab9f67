"""Measurements: their kinds, the checks against a model, and what a model with them says of itself."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from strategies import general_models, models, random_law

import actmeasure as am

P = np.array(
    [[[0.9, 0.1, 0.0], [1.0, 0.0, 0.0]], [[0.0, 0.8, 0.2], [1.0, 0.0, 0.0]], [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]]
)
R = np.array([[0.0, -1.0], [0.0, -1.0], [-5.0, -1.0]])
NAMES = {"state_names": ["new", "worn", "failed"], "action_names": ["nothing", "repair"]}
Z = np.array([[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]])


def build(*measurements, **settings):
    return am.Model.from_arrays(P, R, measurements=measurements, **{**NAMES, **settings})


def law(model, number=1, action=0):
    return model.measurements[number - 1].law.of_action(action, model.n_states).toarray()


class TestKinds:
    def test_noisy(self):
        model = build(am.Measurement.noisy("ultrasound", 40.0, probabilities=Z, outcomes=("clear", "echo")))
        np.testing.assert_array_equal(law(model), Z)
        assert [model.outcome_name(1, o) for o in range(2)] == ["clear", "echo"]
        assert not model.looks_are_exact
        assert not model.reveal_start

    @pytest.mark.parametrize("given", [sparse.csr_array(Z), [sparse.coo_array(Z)] * 2, np.stack([Z, Z]), Z.tolist()])
    def test_laws_are_given_dense_or_sparse_and_by_action(self, given):
        model = build(am.Measurement.noisy("m", 1.0, probabilities=given))
        for action in range(2):
            np.testing.assert_array_equal(law(model, action=action), Z)

    def test_detection_is_miss_and_hit(self):
        model = build(am.Measurement.detection("visual", cost=10.0, pod=[0.0, 0.4, 0.95]))
        np.testing.assert_allclose(law(model), [[1.0, 0.0], [0.6, 0.4], [0.05, 0.95]])
        assert model.measurements[0].outcomes == ("miss", "hit")

    def test_partial_has_its_labels_in_order_of_first_appearance(self):
        model = build(am.Measurement.partial("alarm", 1.0, shows=["quiet", "quiet", "loud"]))
        np.testing.assert_array_equal(law(model), [[1, 0], [1, 0], [0, 1]])
        assert model.measurements[0].outcomes == ("quiet", "loud")

    def test_combined_outcomes_are_independent_given_the_state(self):
        rng = np.random.default_rng(0)
        one, two = random_law(rng, 3, 2), random_law(rng, 3, 4, n_actions=2)
        parts = [
            am.Measurement.noisy("a", 1.0, probabilities=one, with_actions=[0, 1]),
            am.Measurement.noisy("b", 2.5, probabilities=two, with_actions=["nothing"]),
            am.Measurement.exact("c", 4.0),
        ]
        model = build(am.Measurement.combined(parts))
        joint = model.measurements[0]
        assert joint.name == "a + b + c"
        assert joint.cost == 7.5
        assert joint.with_actions == (0,)
        for action in range(2):
            expected = np.einsum("so,sp,sq->sopq", one, two[action], np.eye(3)).reshape(3, -1)
            np.testing.assert_allclose(law(model, action=action), expected, atol=1e-15)
        assert joint.outcomes[0] == "0 + 0 + new"

    def test_combined_prices_and_actions_can_be_told(self):
        visual = am.Measurement.detection("visual", 10.0, pod=[0.0, 0.4, 0.9])
        both = am.Measurement.combined([visual, visual], "twice", cost=15.0, with_actions=["repair"])
        model = build(both)
        assert model.measurements[0].cost == 15.0
        assert model.allowed_decisions.tolist() == [[True, False], [True, True]]
        np.testing.assert_allclose(law(model)[1], [0.36, 0.24, 0.24, 0.16])

    def test_a_price_per_state_and_action(self):
        cost = np.arange(6.0).reshape(3, 2)
        model = build(am.Measurement.detection("visual", cost, pod=[0.0, 0.4, 0.9]))
        assert model.measurements[0].of(1, 1) == 3.0
        summed = build(am.Measurement.combined([am.Measurement.exact("e", cost), am.Measurement.exact("f", 1.0)]))
        np.testing.assert_array_equal(summed.measurements[0].cost, cost + 1)

    def test_rows_of_terminal_states_are_ignored(self):
        ends = P.copy()
        wrong = Z.copy()
        wrong[2] = np.nan
        rewards = R.copy()
        rewards[2] = 0
        measurement = am.Measurement.noisy("m", 1.0, probabilities=wrong)
        model = am.Model.from_arrays(ends, rewards, measurements=[measurement], terminal=[False, False, True])
        assert law(model)[2].tolist() == [0.0, 0.0]

    def test_rows_of_single_precision_are_rescaled(self):
        model = build(am.Measurement.noisy("m", 1.0, probabilities=np.full((3, 3), 1 / 3, dtype=np.float32)))
        np.testing.assert_allclose(law(model).sum(axis=1), 1.0, atol=1e-15)


class TestModels:
    def test_measuring_cost_is_short_for_one_exact_measurement(self):
        for cost in (0.25, np.arange(6.0).reshape(3, 2)):
            short = am.Model.from_arrays(P, R, measuring_cost=cost, **NAMES)
            long = build(am.Measurement.exact("look", cost=cost))
            assert short == long
            assert hash(short) == hash(long)
            assert short.looks_are_exact
            assert short.reveal_start
            assert repr(short) == repr(long)

    def test_a_name_or_law_makes_another_model(self):
        model = build(am.Measurement.exact("look", cost=1.0))
        assert model != build(am.Measurement.exact("opening", cost=1.0))
        assert model != build(am.Measurement.partial("look", 1.0, shows=[0, 1, 2]), reveal_start=True)
        assert model != build(
            am.Measurement.exact("look", cost=1.0), passive=am.Measurement.partial("p", shows=[0, 0, 1])
        )
        assert build(am.Measurement.detection("v", 1.0, pod=[0, 0.4, 0.9])) != build(
            am.Measurement.detection("v", 1.0, pod=[0, 0.5, 0.9])
        )

    def test_replace(self):
        visual = am.Measurement.detection("visual", 1.0, pod=[0.0, 0.4, 0.9])
        model = build(visual)
        assert model.replace(measuring_cost=2.0).measurements[0].cost == 2.0
        assert model.replace(measuring_cost=2.0).measurements[0].name == "visual"
        two = model.replace(measurements=[visual, am.Measurement.exact("opening", 5.0)])
        assert [m.name for m in two.measurements] == ["visual", "opening"]
        assert two.replace(measurements=two.measurements) == two  # a model's own measurements can be used again
        with pytest.raises(am.ModelError, match="2 measurements, so that there is no one measuring_cost"):
            two.replace(measuring_cost=1.0)
        alarm = am.Measurement.partial("alarm", shows=["quiet", "quiet", "loud"])
        assert model.replace(passive=alarm).passive.name == "alarm"
        assert model.replace(passive=alarm).replace(passive=None) == model

    def test_a_passive_outcome_alone_makes_a_pomdp(self):
        model = am.Model.from_arrays(P, R, passive=am.Measurement.noisy("sensor", probabilities=Z))
        assert model.measurements == ()
        assert not model.reveal_start
        assert model.n_outcomes(0) == 2

    def test_repr_names_the_measurements(self):
        model = build(
            am.Measurement.detection("visual", 1.5, pod=[0.0, 0.4, 0.9]), am.Measurement.exact("opening", 5.0)
        )
        assert "measurements visual (1.5) and opening (5)" in repr(model)

    def test_which_decisions_are_allowed(self):
        model = build(
            am.Measurement.exact("opening", 5.0, with_actions=("nothing",)), am.Measurement.exact("other", 1.0)
        )
        assert model.allowed_decisions.tolist() == [[True, True, True], [True, False, True]]
        assert model.measurement_number("other") == 2
        assert model.measurement_number(True) == 1
        with pytest.raises(am.ModelError, match="did you mean 'opening'"):
            model.measurement_number("openning")

    @given(general_models())
    def test_a_models_measurements_make_the_same_model_again(self, model):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            again = model.replace(measurements=model.measurements, passive=model.passive)
        assert again == model

    @given(models())
    def test_exact_models_have_the_tables_of_before(self, model):
        from actmeasure.kernel_arrays import dynamics, outcome_tables

        tables = outcome_tables(model)
        assert tables.kinds.tolist() == [0, 1]
        np.testing.assert_array_equal(tables.costs[1], dynamics(model).costs)


def detect(**changes):
    return am.Measurement.detection("visual", **{"cost": 1.0, "pod": [0.0, 0.4, 0.9], **changes})


BAD = [
    (lambda: build(am.Measurement.noisy("us", 1.0, probabilities=[[0.9, 0.1], [0.5, 0.4], [0.1, 0.9]], outcomes=("a", "b"))),
     r"outcomes of the measurement 'us' in state 1 \('worn'\) sum to 0.9 \(a 0.5, b 0.4\), expected 1"),
    (lambda: build(am.Measurement.noisy("us", 1.0, probabilities=[[1.5, -0.5], [0.5, 0.5], [0.1, 0.9]], outcomes=("a", "b"))),
     r"outcome 'a' of the measurement 'us' in state 0 \('new'\) is 1.5, expected a probability"),
    (lambda: build(am.Measurement.noisy("us", 1.0, probabilities=[[np.nan, 0.5], [0.5, 0.5], [0.1, 0.9]])), "is nan, expected"),
    (lambda: build(am.Measurement.noisy("us", 1.0, probabilities=Z.T)), r"shape \(2, 3\), expected \(3, O\).*pass the transpose"),
    (lambda: build(am.Measurement.noisy("us", 1.0, probabilities=np.array([[0.5, 0.2, 0.1], [0.3, 0.7, 0.1], [0.2, 0.1, 0.8]]))),
     "the columns sum to 1: pass the transpose"),
    (lambda: build(am.Measurement.noisy("us", 1.0, probabilities=np.stack([Z, Z], axis=1))), r"looks like \(S, A, O\)"),
    (lambda: build(am.Measurement.noisy("us", 1.0, probabilities=np.zeros(3))), r"shape \(3,\), expected \(S, O\)"),
    (lambda: build(am.Measurement.noisy("us", 1.0, probabilities="high")), "the measurement 'us' are 'high', expected"),
    (lambda: build(am.Measurement.noisy("us", 1.0, probabilities=Z, outcomes=("a",))), "1 names of outcomes"),
    (lambda: build(am.Measurement.noisy("us", 1.0, probabilities=Z, outcomes=("a", "a"))), "the outcome 'a' more than once"),
    (lambda: build(am.Measurement.noisy("us", 1.0, probabilities=sparse.csr_array((3, 10**6)))), "1,000,000 outcomes.* at most"),
    (lambda: build(detect(cost=-1.0)), "the cost of the measurement 'visual' is -1.0, expected a finite number"),
    (lambda: build(detect(cost=np.nan)), "is nan, expected a finite number"),
    (lambda: build(detect(cost=[1.0, 2.0])), r"has shape \(2,\).*np.tile"),
    (lambda: build(detect(cost=np.zeros((2, 3)))), r"looks like \(A, S\): pass cost.T"),
    (lambda: build(detect(cost="dear")), "'dear', expected a number"),
    (lambda: build(detect(pod=[0.0, 0.4])), r"shape \(2, 2\), expected \(3, O\)"),
    (lambda: build(detect(pod=[0.0, 0.4, 1.4])), "pod of the measurement 'visual' in state 2 is 1.4"),
    (lambda: build(detect(), detect()), "two measurements are named 'visual'"),
    (lambda: build(detect(with_actions=["repare"])), "did you mean 'repair'"),
    (lambda: build(detect(with_actions=[2])), "has 2, expected names of actions or numbers from 0 to 1"),
    (lambda: build(detect(with_actions=[])), r"with_actions of the measurement 'visual' is \[\]"),
    (lambda: build(detect(with_actions="nothing")), "with_actions of the measurement 'visual' is 'nothing'"),
    (lambda: build(am.Measurement.partial("p", 1.0, shows=["a", "b"])), "has a label for 2 states, expected one for each of 3"),
    (lambda: build(am.Measurement.partial("p", 1.0, shows=[1, "1", 2])), "different labels that are both written '1'"),
    (lambda: build(am.Measurement.partial("p", 1.0, shows=[[1], [2], [1]])), "expected a label for every state"),
    (lambda: build(am.Measurement.partial("p", 1.0, shows=3)), "shows of the measurement 'p' is 3, expected a label"),
    (lambda: build(am.Measurement.exact("")), "the name of a measurement is ''"),
    (lambda: build("visual"), "expected a list of Measurement"),
    (lambda: am.Model.from_arrays(P, R, measurements=detect()), "expected a list of Measurement"),
    (lambda: am.Model.from_arrays(P, R), "needs to know what a look costs"),
    (lambda: am.Model.from_arrays(P, R, measuring_cost=1.0, measurements=[detect()]), "are both given"),
    (lambda: build(passive=detect()), "has a price, expected 0"),
    (lambda: build(passive=am.Measurement.exact("p", with_actions=[0])), "has with_actions, but it comes with every action"),
    (lambda: build(detect(), passive=detect(cost=0.0)), "are both named 'visual'"),
    (lambda: build(passive="alarm"), "passive is 'alarm', expected a Measurement"),
    (lambda: am.Measurement.combined([]), "expected a list of at least one Measurement"),
    (lambda: build(am.Measurement.combined([detect(with_actions=[0]), detect(with_actions=[1])])), "no action with which"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "message"), BAD, ids=range(len(BAD)))
def test_bad_input_is_an_error_with_a_remedy(make, message):
    with pytest.raises(am.ModelError, match=message) as error:
        make()
    assert "\n" not in str(error.value)


def test_many_outcomes_of_which_two_have_one_name():
    """Found at once: comparing every name with all others would take minutes."""
    names = [str(number) for number in range(50_000)] + ["49999"]
    with pytest.raises(am.ModelError, match="has the outcome '49999' more than once"):
        am.Measurement.noisy("us", 1.0, probabilities=sparse.csr_array((3, 50_001)), outcomes=names)


def test_an_outcome_that_no_state_can_produce_is_a_warning():
    with pytest.warns(am.ModelWarning, match="no state can produce the outcome 'hit' of the measurement 'visual'"):
        build(detect(pod=[0.0, 0.0, 0.0]))


def test_what_needs_exact_looks_says_so():
    model = build(detect())
    with pytest.raises(am.ModelError, match=r"needs one exact measurement .* 'visual', is not exact"):
        am.evaluate(model, am.Schedule({0: am.BlindPlan((0,), then="repeat", repeat=1)}, 3))


@given(st.integers(0, 2**32 - 1))
def test_dense_and_sparse_laws_are_the_same(seed):
    rng = np.random.default_rng(seed)
    Z = random_law(rng, 3, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", am.ModelWarning)
        one = build(am.Measurement.noisy("m", 1.0, probabilities=Z))
        two = build(am.Measurement.noisy("m", 1.0, probabilities=sparse.csc_array(Z)))
    assert one == two


class TestOtherModels:
    def test_names_of_measurements_and_of_what_is_passive_differ_after_replace_too(self):
        alarm = am.Measurement.partial("alarm", shows=["quiet", "quiet", "loud"])
        model = build(detect(), passive=alarm)
        with pytest.raises(am.ModelError, match="are both named 'alarm'"):
            model.replace(measurements=[am.Measurement.exact("alarm")])
        with pytest.raises(am.ModelError, match="are both named 'visual'"):
            model.replace(passive=detect(cost=0.0), measurements=[detect()])
        renamed = model.replace(passive=detect(cost=0.0), measurements=[am.Measurement.exact("opening")])
        assert renamed.passive.name == "visual"
        assert model.replace(measurements=None).measurements == ()

    def test_whether_the_start_is_shown_can_be_left_to_the_measurements(self):
        exact = am.Model.from_arrays(P, R, measuring_cost=1.0)
        noisy = exact.replace(measurements=[detect()])
        assert noisy.reveal_start
        assert not noisy.replace(reveal_start=None).reveal_start

    def test_a_law_by_action_does_not_fit_other_sizes(self):
        law = random_law(np.random.default_rng(0), 3, 2, n_actions=2, sparsity=0.0)
        made = build(am.Measurement.noisy("m", 1.0, probabilities=law)).measurements
        other = np.tile(np.eye(2)[:, None], (1, 3, 1))  # two states, three actions
        with pytest.raises(am.ModelError, match="was made for a model of 3 states and 2 actions"):
            am.Model.from_arrays(other, np.zeros((2, 3)), measurements=made)

    def test_arrays_are_copied(self):
        law = sparse.csr_array(Z)
        measurement = am.Measurement.noisy("m", 1.0, probabilities=law)
        law.data[:] = 0.0
        np.testing.assert_array_equal(build(measurement).measurements[0].law.matrix().toarray(), Z)

    def test_measurements_without_a_model_are_not_compared(self):
        with pytest.raises(am.ModelError, match="only measurements of models"):
            am.Measurement.noisy("m", probabilities=Z).equals(am.Measurement.noisy("m", probabilities=Z[::-1]))

    @pytest.mark.parametrize("given", ["visual", 5])
    def test_measurements_are_a_list(self, given):
        with pytest.raises(am.ModelError, match="expected a list of Measurement"):
            am.Model.from_arrays(P, R, measurements=given)
