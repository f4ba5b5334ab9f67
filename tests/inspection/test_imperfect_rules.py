"""Rules for imperfect inspections, against a plain recursion over all sequences of outcomes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

import actmeasure as am
from actmeasure.errors import PlanError
from actmeasure.inspection import imperfect_rules
from actmeasure.inspection.imperfect_rules import KINDS, compared, course, failure_model, failure_rates
from actmeasure.planning.budget import Budget

History = tuple[tuple[am.Decision, int], ...]
PERIODS = 6
FAILED = np.array([False, False, True])


def worn(passive: am.Measurement | None = None, discount: float = 0.9) -> am.Model:
    """Three states; wait or renew; a cheap inspection, which can only be made while waiting."""
    wait = [[0.7, 0.25, 0.05], [0.0, 0.8, 0.2], [0.0, 0.0, 1.0]]
    renew = [[0.95, 0.05, 0.0]] * 3
    visual = am.Measurement.detection("visual", cost=0.4, pod=[0.1, 0.6, 0.9], with_actions=("wait",))
    return am.Model.from_arrays(
        np.stack([wait, renew], axis=1), np.array([[0.0, -3.0], [-0.5, -3.0], [-4.0, -6.0]]), measurements=[visual],
        passive=passive, discount=discount, initial=[0.8, 0.2, 0.0], action_names=["wait", "renew"],
        state_names=["sound", "worn", "failed"],
    )  # fmt: skip


def tree_value(model: am.Model, periods: int, rule: Callable[[History], am.Decision]) -> float:
    """Return the discounted return of a rule over some periods, by recursion over all sequences of outcomes."""

    def value(weights: np.ndarray, history: History, left: int) -> float:
        if left == 0:
            return 0.0
        action, m = decision = rule(history)
        total = float(weights @ model.rewards[:, action])
        if m:
            total -= float(weights @ model.measurements[m - 1].table(model.n_states, model.n_actions)[:, action])
        after = weights @ model.transitions.matrix(action).toarray()
        after = np.where(model.terminal, 0.0, after)
        shows = model.shown_by(m)
        law = np.ones((model.n_states, 1)) if shows is None else shows.law.of_action(action, model.n_states).toarray()
        for outcome in range(law.shape[1]):
            reached = after * law[:, outcome]
            if reached.sum() > 0:
                total += model.discount * value(reached, (*history, (decision, outcome)), left - 1)
        return total

    return value(model.initial_distribution, (), periods)


def calendar(k: int, restarts: bool, repaired: tuple[int, ...]) -> Callable[[History], am.Decision]:
    """The calendar rule as a function of the history, as facts about it are written: by the clock and the last outcome."""

    def rule(history: History) -> am.Decision:
        clock = len(history)
        if restarts:
            repairs = [time for time, (decision, _) in enumerate(history) if decision.action == 1]
            clock = len(history) - (repairs[-1] + 1 if repairs else 0)
        if history and history[-1][0].measurement == 1 and history[-1][1] in repaired:
            return am.Decision(1, 0)
        return am.Decision(0, int(clock > 0 and clock % k == 0))

    return rule


@pytest.mark.parametrize("restarts", [False, True])
def test_the_best_calendar_is_the_best_of_all_calendars_by_brute_force(restarts: bool) -> None:
    model = worn()
    by_hand = {
        (k, repaired): tree_value(model, PERIODS, calendar(k, restarts, repaired))
        for k in range(1, PERIODS)
        for repaired in [(), (0,), (1,), (0, 1)]
    }
    (rule,), notes = compared(
        am.lifetime(model, PERIODS), failed=FAILED, kinds=["calendar-restarted" if restarts else "calendar-kept"]
    )
    assert not notes
    assert rule.note is None
    assert rule.value == pytest.approx(max(by_hand.values()), abs=1e-12)
    k, repaired = max(by_hand, key=lambda key: by_hand[key])
    assert rule.interval == k
    assert rule.actions == {("miss", "hit")[outcome]: "renew" for outcome in repaired}
    assert rule.tried == 4 * (PERIODS - 1)


def risk_after(model: am.Model, history: History) -> float:
    """The believed probability of being failed after one more period of waiting, by `Belief.update`."""
    belief = am.Belief.start(model)
    for (action, m), outcome in history:
        belief = belief.update(model, action, m, outcome if m else None)
    return float(belief.predict(model, 0).dense(model.n_states)[FAILED].sum())


def test_a_threshold_rule_is_evaluated_exactly_and_beats_every_threshold_of_a_fine_grid() -> None:
    model = worn()

    def threshold(low: float) -> Callable[[History], am.Decision]:
        def rule(history: History) -> am.Decision:
            if history and history[-1][0].measurement and history[-1][1] == 1:
                return am.Decision(1, 0)
            return am.Decision(0, int(risk_after(model, history) > low))

        return rule

    (rule,), _ = compared(am.lifetime(model, PERIODS), failed=FAILED, kinds=["threshold"])
    assert rule.actions == {"hit": "renew"}
    assert rule.value == pytest.approx(tree_value(model, PERIODS, threshold(rule.thresholds[0])), abs=1e-9)
    others = [tree_value(model, PERIODS, threshold(low)) for low in np.linspace(0.02, 0.6, 15)]
    assert rule.value >= max(others) - 1e-9


def test_two_thresholds_are_evaluated_exactly() -> None:
    model = worn()
    (rule,), _ = compared(am.lifetime(model, PERIODS), failed=FAILED, kinds=["two-thresholds"])
    low, high = rule.thresholds

    def by_risk(history: History) -> am.Decision:
        risk = risk_after(model, history)
        return am.Decision(1, 0) if risk > high else am.Decision(0, int(risk > low))

    assert low <= high
    assert rule.value == pytest.approx(tree_value(model, PERIODS, by_risk), abs=1e-9)


def test_always_and_never_are_the_best_of_their_kind() -> None:
    model = worn()
    life = am.lifetime(model, PERIODS)
    (always, never), _ = compared(life, failed=FAILED, kinds=["always", "never"])

    def inspects(repaired: tuple[int, ...]) -> Callable[[History], am.Decision]:
        def rule(history: History) -> am.Decision:
            hit = history and history[-1][0].measurement == 1 and history[-1][1] in repaired
            return am.Decision(1, 0) if hit else am.Decision(0, 1)

        return rule

    assert always.value == pytest.approx(
        max(tree_value(model, PERIODS, inspects(repaired)) for repaired in [(), (0,), (1,), (0, 1)]), abs=1e-12
    )
    blind = [tree_value(model, PERIODS, lambda history: am.Decision(0))]
    for k in range(1, PERIODS):
        blind.append(tree_value(model, PERIODS, lambda history, k=k: am.Decision(int(len(history) % k == k - 1))))
    assert never.value == pytest.approx(max(blind), abs=1e-12)
    assert never.evaluation.measurements == 0


def test_never_inspecting_may_act_once_at_the_end_of_a_life() -> None:
    final = np.array([0.0, -20.0, -20.0])
    model = am.Model.from_arrays(
        worn().transitions.dense(), [[0.0, -3.0]] * 3, measurements=worn().measurements, discount=0.9,
        initial=[0.8, 0.2, 0.0],
    )  # fmt: skip
    (never,), _ = compared(am.lifetime(model, PERIODS, final=final), failed=FAILED, kinds=["never"])

    def every(k: int) -> float:
        value = tree_value(model, PERIODS, lambda history: am.Decision(int(len(history) % k == k - 1)))
        state = np.array([0.8, 0.2, 0.0])
        for period in range(PERIODS):
            state = state @ model.transitions.matrix(int(period % k == k - 1)).toarray()
        return value + 0.9**PERIODS * float(state @ final)

    values = {k: every(k) for k in range(1, PERIODS + 1)}
    assert max(values, key=values.__getitem__) == PERIODS
    assert never.value == pytest.approx(values[PERIODS], abs=1e-12)


def test_a_rule_by_outcome_is_at_least_as_good_as_the_calendar_and_chooses_the_next_inspection() -> None:
    """A cheap inspection that often errs, and a dear one that does not: the dear one follows a hit of the cheap one."""
    cheap = am.Measurement.detection("cheap", cost=0.05, pod=[0.3, 0.8, 0.9], with_actions=("wait",))
    sure = am.Measurement.detection("sure", cost=1.0, pod=[0.0, 1.0, 1.0], with_actions=("wait",))
    wait, renew = [[0.93, 0.07, 0.0], [0.0, 0.9, 0.1], [0.0, 0.0, 1.0]], [[1.0, 0.0, 0.0]] * 3
    model = am.Model.from_arrays(
        np.stack([wait, renew], axis=1), np.array([[0.0, -25.0], [-6.0, -25.0], [-9.0, -25.0]]), discount=0.95,
        measurements=[cheap, sure], initial=[1.0, 0.0, 0.0], action_names=["wait", "renew"],
    )  # fmt: skip
    rules, _ = compared(model, failed=FAILED, kinds=["calendar-restarted", "by-outcome"], longest=8)
    calendar_rule, by_outcome = rules
    assert by_outcome.value >= calendar_rule.value
    followed = {(made, outcome): then for made, outcome, _, _, then in by_outcome.plans}
    assert followed["cheap", "hit"] == "sure"
    assert am.evaluate(model, by_outcome.graph).discounted_return == by_outcome.value
    assert "After hit (cheap): inspect (sure) after 1 year." in by_outcome.words("year")


@pytest.mark.slow
def test_all_rules_over_all_time_stay_below_the_upper_bound() -> None:
    model = worn()
    rules, notes = compared(model, failed=FAILED, longest=6)
    assert [rule.key for rule in rules] == list(KINDS)
    assert not notes
    upper = am.solve(model, time_limit=5).upper
    assert all(rule.value <= upper + 1e-9 for rule in rules)
    for rule in rules:
        assert rule.failures is not None
        assert rule.failures.average_reward is not None
        assert 0 < rule.failures.average_reward < 0.25
        assert rule.words("year").endswith(".")
        assert rule.name


def test_an_alarm_that_comes_for_free_is_answered() -> None:
    alarm = am.Measurement.detection("alarm", cost=0.0, pod=[0.0, 0.0, 1.0])
    rules, _ = compared(worn(passive=alarm), failed=FAILED, kinds=["calendar-kept", "never"], longest=6)
    for rule in rules:
        assert rule.actions["hit"] == "renew"
    silent, _ = compared(worn(), failed=FAILED, kinds=["never"], longest=6)
    assert rules[1].value > silent[0].value


def test_components_are_renewed_by_their_own_outcomes() -> None:
    model = am.problems.k_out_of_n(2, 2)
    (rule,), _ = compared(model, kinds=["calendar-kept"], longest=3)
    assert rule.failures is None
    assert rule.measurement == "inspect + inspect"
    by_component = [
        {o.split(" + ")[c]: a.split(" + ")[c] for o, a in rule.actions.items() if a.split(" + ")[c] == "replace"}
        for c in range(2)
    ]
    for outcome, action in rule.actions.items():
        for c, (seen, done) in enumerate(zip(outcome.split(" + "), action.split(" + "), strict=True)):
            assert (done == "replace") == (seen in by_component[c])
    assert rule.value < -193.46


@pytest.mark.slow
def test_exact_looks_and_a_start_that_is_shown() -> None:
    model = am.problems.maintenance()
    failed = np.array([name == "B" for name in model.state_names or ()])
    rules, notes = compared(model.replace(reveal_start=True), failed=failed, longest=8)
    assert not notes
    upper = am.solve(model, time_limit=5).upper
    assert rules
    assert all(rule.value <= upper + 1e-9 for rule in rules)


def test_failures_are_counted_where_the_life_ends_too() -> None:
    model = worn()
    life = am.lifetime(model, PERIODS)
    wait = am.PolicyGraph([am.Decision(0)], [{None: 0}])
    P = model.transitions.matrix(0).toarray()
    after = [float((model.initial_distribution @ np.linalg.matrix_power(P, t))[2]) for t in range(PERIODS + 1)]
    found = course(life, wait, PERIODS, FAILED)
    assert found.failures is not None
    np.testing.assert_allclose(np.cumsum(found.failures), after[1:], atol=1e-14)
    assert am.evaluate(failure_model(life, FAILED), wait).reward == pytest.approx(after[-1], abs=1e-14)
    assert failure_rates(model, FAILED)[2].max() == 0


def test_the_course_adds_up_to_the_evaluation() -> None:
    life = am.lifetime(worn(), PERIODS)
    for rule in compared(life, failed=FAILED, kinds=["calendar-kept", "two-thresholds"])[0]:
        found = course(life, rule.graph, PERIODS, FAILED)
        assert rule.failures is not None
        assert found.failures is not None
        assert found.rewards.sum() == pytest.approx(rule.evaluation.scalarized_return, abs=1e-12)
        assert found.failures.sum() == pytest.approx(rule.failures.reward, abs=1e-12)
        np.testing.assert_allclose(found.looks.sum(axis=0), rule.evaluation.looks, atol=1e-12)
        np.testing.assert_allclose(found.actions.sum(axis=1), 1.0)


@pytest.mark.slow
def test_random_models_over_a_life_by_brute_force() -> None:
    """Every rule that is returned earns what a recursion over all histories says, and thresholds are no exception."""
    rng = np.random.default_rng(5)
    for _ in range(5):
        P = rng.dirichlet([0.6] * 3, size=(3, 2))
        law = rng.dirichlet([1.0] * 3, size=3)
        model = am.Model.from_arrays(
            P, -rng.random((3, 2)), measurements=[am.Measurement.noisy("look", cost=0.05, probabilities=law)],
            discount=0.95, initial=rng.dirichlet([1.0] * 3),
        )  # fmt: skip
        for rule in compared(am.lifetime(model, 4), failed=FAILED)[0]:
            bound = rule.graph.policy(am.lifetime(model, 4))

            def follow(history: History, bound: am.GraphPolicy = bound) -> am.Decision:
                bound.start(am.Belief.at(0))
                for decision, outcome in history:
                    bound.observe(outcome if decision.measurement else None)
                return bound.decide()

            assert rule.value == pytest.approx(tree_value(model, 4, follow), abs=1e-10), rule.key


@pytest.mark.parametrize(("price", "kept", "restarted"), [(10_000.0, 22.690, 21.827), (500.0, 8.391, 8.397)])
def test_calendars_of_the_crack_cost_what_is_published(price: float, kept: float, restarted: float) -> None:
    """Within the sampling error of two times a million simulated cracks, which is some tenths of a percent."""
    model = am.problems.crack_life(price)
    rules, _ = compared(model, kinds=["calendar-kept", "calendar-restarted"], longest=12)
    assert [-rule.value for rule in rules] == pytest.approx([kept, restarted], rel=5e-3)
    assert [rule.interval for rule in rules] == ([2, 2] if price == 10_000 else [10, 10])


def test_what_cannot_be_compared_is_said() -> None:
    model = worn()
    rules, notes = compared(model, kinds=["threshold"])
    assert not rules
    assert "not known which states are failures" in str(notes[0])
    over = Budget(seconds=1e-9)
    rules, notes = compared(model, kinds=["always", "never"], budget=over)
    assert not rules
    assert [note.code for note in notes] == ["policy-out-of-time"] * 2
    assert "no time to compare with never inspecting" in str(notes[1])
    safe = am.lifetime(worn(), 3)
    _, notes = compared(safe, failed=np.zeros(3, dtype=bool), kinds=["threshold"])
    assert "never fails" in str(notes[0])
    for arguments, message in (
        ({"kinds": ["sometimes"]}, "expected some of"),
        ({"waiting": 7}, "waiting"),
        ({"failed": [1, 2]}, "truth values"),
        ({"longest": 0}, "longest"),
    ):
        with pytest.raises(PlanError, match=message):
            compared(model, **arguments)  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="expected a Model"):
        compared("model")  # type: ignore[arg-type]


def test_enumeration_covers_all_assignments() -> None:
    """With two outcomes and three actions all nine assignments are tried for each interval."""
    base = worn()
    P = np.concatenate([base.transitions.dense(), base.transitions.dense()[:, 1:]], axis=1)
    R = np.column_stack([base.rewards, base.rewards[:, 1] - 0.5])
    model = am.Model.from_arrays(P, R, measurements=[am.Measurement.detection("look", 0.1, pod=[0.0, 0.5, 1.0])])
    (rule,), _ = compared(model, kinds=["calendar-kept"], longest=2)
    assert rule.tried == 2 * len(list(product(range(3), repeat=2)))
    assert rule.note is None


def test_exact_and_noisy_inspections_together_over_a_life() -> None:
    """Outcomes that show the state are numbered by period and state; rules go by the state."""
    base = worn()
    sure = am.Measurement.exact("opening", cost=0.6, with_actions=("wait",))
    model = am.Model.from_arrays(
        base.transitions.dense(), base.rewards, measurements=[*base.measurements, sure], discount=0.9,
        initial=[0.8, 0.2, 0.0], action_names=base.action_names, state_names=base.state_names,
    )  # fmt: skip
    flat = am.Measurement.noisy("opening", cost=0.6, probabilities=np.eye(3), with_actions=("wait",))
    twin = am.Model.from_arrays(
        base.transitions.dense(), base.rewards, measurements=[*base.measurements, flat], discount=0.9,
        initial=[0.8, 0.2, 0.0], action_names=base.action_names, state_names=base.state_names,
    )  # fmt: skip
    kinds = ["calendar-kept", "always", "never", "threshold"]
    found, other = (compared(am.lifetime(one, 4), failed=FAILED, kinds=kinds)[0] for one in (model, twin))
    assert [rule.value for rule in found] == pytest.approx([rule.value for rule in other], abs=1e-9)


def test_thresholds_are_compared_where_exact_beliefs_are_too_many_to_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imperfect_rules, "MOST_NODES", 60)
    rng = np.random.default_rng(2)
    errors = 0.7 * np.eye(4) + 0.3 * rng.dirichlet(np.ones(4), size=4)
    wait = [[0.9, 0.1, 0.0, 0.0], [0.0, 0.85, 0.13, 0.02], [0.0, 0.0, 0.8, 0.2], [0.0, 0.0, 0.0, 1.0]]
    model = am.Model.from_arrays(
        np.stack([wait, [[1.0, 0.0, 0.0, 0.0]] * 4], axis=1), [[0, -40], [0, -40], [0, -40], [-60, -90]], discount=0.95,
        measurements=[am.Measurement.noisy("gauge", cost=0.5, probabilities=errors)], initial=[1, 0, 0, 0],
        action_names=["wait", "renew"], reveal_start=False,
    )  # fmt: skip
    life = am.lifetime(model, 12)
    rules, notes = compared(life, 0, [False] * 3 + [True], kinds=["never", "two-thresholds"])
    assert notes == []
    never, found = rules
    assert found.value > never.value
    assert am.evaluate(life, found.graph).discounted_return == pytest.approx(found.value)


def test_words_name_the_years_of_the_graph() -> None:
    rules, _ = compared(worn(), 0, FAILED, kinds=["calendar-kept", "calendar-restarted", "by-outcome"], longest=6)
    for rule in rules:
        looks = course(worn(), rule.graph, 40).looks[:, 0]
        first = 1 + int(np.flatnonzero(looks)[0])  # in the years before, nothing is inspected
        words = rule.words("year")
        named = f"after {first} year" + "s" * (first > 1)
        assert named in (words if rule.key != "by-outcome" else words.split(".")[0])


def test_equal_components_are_treated_alike() -> None:
    visual = am.Measurement.detection("visual", cost=0.4, pod=[0.1, 0.6, 0.9], with_actions=("wait",))
    part = am.Component(
        {"wait": [[0.7, 0.25, 0.05], [0.0, 0.8, 0.2], [0.0, 0.0, 1.0]], "renew": [[0.95, 0.05, 0.0]] * 3},
        {"renew": 3.0}, start=[1, 0, 0], measurements=[visual], state_names=("sound", "worn", "failed"),
    )  # fmt: skip
    pair = am.lifetime(am.system([part, part], penalty=lambda s: 20.0 * (s == (2, 2)), discount=0.9), 4)
    rules, _ = compared(pair, 0, np.arange(9) == 8, kinds=["calendar-restarted", "always", "never"])
    for rule in rules[:2]:
        assert rule.measurement == "visual + visual"
        assert rule.by_component
        assert rule.note is None  # all rules of its kind were tried
        assert set(rule.actions) <= {"miss", "hit"}
        assert "each component by its own outcome" in rule.words()
    assert set(rules[2].actions.values()) <= {"renew + renew"}


def test_the_best_rule_that_keeps_a_limit_is_found_by_a_judge() -> None:
    model = worn()
    fewest = 6.0  # discounted inspections; the best calendar makes fewer

    def judge(graph: am.PolicyGraph) -> tuple[float, float]:
        result = am.evaluate(model, graph)
        keeps = result.discounted_looks[0] >= fewest
        return result.discounted_return, result.discounted_return if keeps else -np.inf

    free, _ = compared(model, 0, FAILED, kinds=["calendar-kept"], longest=6)
    kept, _ = compared(model, 0, FAILED, kinds=["calendar-kept", "never"], longest=6, judge=judge)
    assert free[0].evaluation.discounted_looks[0] < fewest
    assert kept[0].evaluation.discounted_looks[0] >= fewest
    assert kept[0].value < free[0].value
    assert kept[1].evaluation.discounted_looks[0] == 0  # none of its kind keeps it


def test_rules_by_outcome_begin_with_the_calendar_also_in_systems_and_without_time() -> None:
    visual = am.Measurement.detection("visual", cost=0.4, pod=[0.1, 0.9], with_actions=("wait",))
    part = am.Component(
        {"wait": [[0.8, 0.2], [0.0, 1.0]], "renew": [[1.0, 0.0]] * 2}, {"renew": 3.0}, start=[1, 0],
        measurements=[visual], state_names=("sound", "failed"),
    )  # fmt: skip
    pair = am.lifetime(
        am.system([part, part], penalty=lambda s: 20.0 * (s == (1, 1)), discount=0.9), 5, -np.arange(4.0)
    )
    rules, _ = compared(pair, 0, np.arange(4) == 3, kinds=["calendar-restarted", "by-outcome"])
    assert rules[1].value >= rules[0].value - 1e-12
    for rule in rules:
        assert am.evaluate(pair, rule.graph).discounted_return == pytest.approx(rule.value)
    search = imperfect_rules._RuleSearch(pair, 0, np.arange(4) == 3, None)
    for rule in rules:  # what is compared is the exact value, the end of life included
        assert search._value(rule.graph) == pytest.approx(rule.value, rel=1e-12)
