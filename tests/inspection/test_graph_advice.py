"""Plans with imperfect or several inspections, a life, limits and components, beside brute force and closed forms."""

import json
import math
from functools import cache
from types import SimpleNamespace

import brute_force
import numpy as np
import pytest
from command_line import actmeasure

import actmeasure as am
from actmeasure.inspection.advice import MethodWorth
from actmeasure.inspection.economics import Components, InspectionMethod, RuleStep, Units
from actmeasure.inspection.graph_advising import GraphAdviceRun, completed, present_rule
from actmeasure.inspection.graph_page import graph_page_words
from actmeasure.inspection.imperfect_rules import course
from actmeasure.inspection.plan_figures import figures, plan_steps, stepwise
from actmeasure.inspection.plan_text import certificate_sentence, cut_words, ending_words, method_lines, step_words
from actmeasure.inspection.problem import priced_problem, problem_of_model
from actmeasure.planning.budget import Budget
from actmeasure.text import plain_number

STATES, ACTIONS = ("sound", "cracked", "failed"), ("nothing", "repair")
WEAR = np.array([[0.8, 0.18, 0.02], [0.0, 0.7, 0.3], [0.0, 0.0, 1.0]])
P = np.stack([WEAR, WEAR[[0, 0, 0]]])
VISUAL = InspectionMethod(2.0, pod={"cracked": 0.5, "failed": 0.9, "otherwise": 0.05})
OPENING = InspectionMethod(12.0, with_actions=("nothing",))


def prices(**changes):
    given = {
        "inspections": {"visual": VISUAL, "opening": OPENING},
        "actions": {"nothing": 0.0, "repair": 40.0},
        "running": {"failed": 30.0},
        "failure_states": ("failed",),
        "failure_price": 200.0,
        "start": "sound",
    }
    return am.Economics("EUR", "year", 0.95, **(given | changes))


def problem(**changes):
    return priced_problem(P, prices(**changes), STATES, ACTIONS, np.array([1.0, 0.0, 0.0]))


def advice(economics=None, nodes=60, seconds=30.0, **changes):
    economics = prices(**changes) if economics is None else economics
    asked = priced_problem(P, economics, STATES, ACTIONS, np.array([1.0, 0.0, 0.0]))
    units = Units.of(asked.model, "EUR", "year")
    rule = present_rule(asked, economics, None)
    return GraphAdviceRun(asked, units, Budget(seconds), lambda _: None, nodes, economics, None, rule).advice("Plan")


@pytest.fixture(scope="module")
def plan():
    return advice(life=6, final={"failed": 70.0})


def test_the_plan_is_as_good_as_brute_force(plan):
    best = brute_force.optimal_value(plan.model)
    assert plan.best_found <= best + 1e-9 <= plan.upper + 1e-9
    assert plan.best_found == pytest.approx(best, rel=2e-3)
    assert best - plan.value <= 0.01 * abs(best) + 1e-9
    assert am.evaluate(plan.model, plan.graph).discounted_return == pytest.approx(plan.value)


def test_costs_by_cause_add_up_and_failures_follow_the_chain(plan):
    assert sum(plan.figures.costs.values()) == pytest.approx(-plan.value)
    assert plan.figures.failures == pytest.approx(plan.figures.risk.sum())
    looks = plan.figures.looks.sum(axis=0)
    np.testing.assert_allclose(looks, plan.evaluation.looks)
    never = am.PolicyGraph([am.Decision(0)], [{None: 0}])
    found = figures(plan.problem, never)
    inside = np.array([np.linalg.matrix_power(WEAR, year)[0] for year in range(6)])
    np.testing.assert_allclose(found.risk, inside[:, 0] * 0.02 + inside[:, 1] * 0.3)
    discounts = 0.95 ** np.arange(6)
    assert found.costs["failures"] == pytest.approx(200 * discounts @ found.risk)
    assert found.costs["running"] == pytest.approx(30 * discounts @ inside[:, 2])
    assert found.costs["end of life"] == pytest.approx(70 * 0.95**6 * np.linalg.matrix_power(WEAR, 6)[0, 2])
    assert sum(found.costs.values()) == pytest.approx(-found.evaluation.discounted_return)


def test_steps_partition_a_graph_of_the_same_behaviour(plan):
    again, nodes = stepwise(plan.problem, plan.graph)
    assert sorted(node for step in nodes for node in step) == list(range(len(again)))
    assert am.evaluate(plan.model, again).discounted_return == pytest.approx(plan.value)
    for step in plan_steps(plan.problem, again, nodes):
        assert sum(branch.chance for branch in step.branches) == pytest.approx(1.0 if step.branches else 0.0)
        assert step.times == 0 or step.belief.sum() == pytest.approx(1.0)
    first = plan.history[0]
    np.testing.assert_allclose(first.predicted, WEAR[0])
    for before, after in zip(plan.history, plan.history[1:], strict=False):
        if before.measurement == 0:
            np.testing.assert_allclose(after.predicted, before.belief @ P[after.action])


def test_everything_is_said_in_words_and_as_data(plan):
    text = str(plan)
    assert "Certified for this model: no plan costs less than" in text
    for part in (
        "cost by cause",
        "failures per year",
        "In words",
        "a calendar that begins anew",
        "What inspections are worth",
    ):
        assert part in text
    data = am.inspection.advice.summary(plan)
    json.dumps(data, default=float)
    assert data["steps"][0]["step"] == 1
    assert len(data["failures_in_each_period"]) == 6
    assert {one["inspection"] for one in data["inspections_worth"]} == {"visual", "opening"}
    assert next(plan.records())["step"] == 1


def with_longest_interval(model, longest):
    """The best value where inspections are at most `longest` periods apart, by backward induction over beliefs and clocks."""
    lives = model.origin

    @cache
    def value(time, since, key):
        if time == lives.periods:
            return 0.0
        belief = am.Belief(np.frombuffer(key[0], dtype=np.int64), np.frombuffer(key[1]))
        best = -np.inf
        for action, look in zip(*np.nonzero(model.allowed_decisions), strict=True):
            if look == 0 and since + 1 >= longest:
                continue

            def after(then, look=look):
                states, chances = then.states.astype(np.int64), np.round(then.probabilities, 12)
                return value(time + 1, 0 if look else since + 1, (states.tobytes(), chances.tobytes()))

            best = max(best, brute_force.decision_value(model, belief, int(action), int(look), after))
        return best

    start = am.Belief.start(model)
    return value(0, 0, (start.states.astype(np.int64).tobytes(), start.probabilities.tobytes()))


@pytest.mark.parametrize("longest", [1, 2, 3])
def test_a_longest_interval_is_kept_and_its_plan_is_the_best(longest):
    found = problem(life=5, longest_interval=longest)
    best = with_longest_interval(found.model, longest)
    solution = am.solve(found.search_model, relative_tolerance=1e-4)
    assert solution.lower - 1e-9 <= best <= solution.upper + 1e-9
    graph = found.limited.unlimited(solution.policy_graph(nodes=60))
    assert found.limited.is_kept(graph)
    assert am.evaluate(found.model, graph).discounted_return == pytest.approx(best, rel=1e-2)
    late = am.PolicyGraph(
        [am.Decision(0)] * longest + [am.Decision(0, 1)], [{None: n + 1} for n in range(longest)] + [{None: 0}]
    )
    assert not found.limited.is_kept(late)
    always = am.PolicyGraph([am.Decision(0, 1)], [{None: 0}])
    assert found.limited.is_kept(always)


def test_advice_with_a_longest_interval_marks_what_exceeds_it():
    routine = RuleStep("routine", "nothing", 3, "visual", {"defect": "repair"}, "routine")
    rule = (routine, RuleStep("repair", "repair", then="routine"))
    found = advice(life=6, longest_interval=2, rule=rule)
    assert found.problem.limited.is_kept(found.graph)
    notes = {policy.key: policy.note for policy in found.policies}
    assert notes["present-rule"].code == "longest-interval-exceeded"
    assert "longest interval" in str(found)
    gap = [0, 0]
    for period in found.history:
        gap = [0 if period.measurement else gap[0] + 1, max(gap[1], gap[0] + 1)]
    assert gap[1] <= 2


@pytest.mark.slow
def test_a_limit_on_failures_is_kept_at_a_certified_cost():
    free = advice(life=6)
    limit = 0.6 * free.figures.failures_per_period
    found = advice(life=6, failures_per_year=limit)
    assert found.figures.failures_per_period <= limit
    assert found.figures.weighted_failures_per_period <= limit
    assert found.value <= free.upper
    assert found.value <= found.limit.upper + 1e-9
    assert found.limit.least <= limit
    assert found.upper - found.value <= 0.2 * abs(found.value)
    assert "what the limit costs" in str(found)
    assert any(policy.note is not None and policy.note.code == "failure-limit-exceeded" for policy in found.policies)


@pytest.mark.slow
def test_the_bound_under_a_limit_holds_for_every_rule_that_keeps_it():
    """All rules of two periods: any decision first, any after each outcome."""
    economics = prices(life=2, start={"sound": 0.5, "cracked": 0.5}, inspections={"visual": VISUAL})
    asked = priced_problem(P, economics, STATES, ACTIONS, np.array([1.0, 0.0, 0.0]))
    decisions = [am.Decision(a, m) for a in range(2) for m in range(2)]
    rules = []
    for first in decisions:
        for one in decisions:
            for two in decisions if first.measurement else [one]:
                graph = am.PolicyGraph(
                    [first, one, two], [{0: 1, None: 2} if first.measurement else {None: 1}, {None: 1}, {None: 2}]
                )
                found = figures(asked, graph)
                rules.append(
                    (found.failures_per_period, found.weighted_failures_per_period, found.evaluation.discounted_return)
                )
    least = min(weighted for _, weighted, _ in rules)
    possible = min(max(plain, weighted) for plain, weighted, _ in rules)
    for share in (1.01, 1.5, 3.0):
        limit = share * possible
        best = max(value for plain, weighted, value in rules if max(plain, weighted) <= limit)
        limited = prices(life=2, start=economics.start, inspections=economics.inspections, failures_per_year=limit)
        found = advice(limited)
        assert found.value <= best + 1e-9 <= found.limit.upper + 2e-9
        assert found.limit.least <= least + 1e-12


def test_a_limit_that_cannot_be_met_says_by_how_much():
    with pytest.raises(am.PlanError, match=r"no plan has fewer than 0\.0\d+, which is .* times as many"):
        advice(life=6, failures_per_year=1e-4)


def test_a_system_is_that_of_its_components():
    economics = prices(
        inspections={"visual": VISUAL}, components=Components(2, 1, down=500.0, mobilisation=4.0), failure_price=0.0
    )
    found = priced_problem(P, economics, STATES, ACTIONS, np.array([1.0, 0.0, 0.0]))
    costs = {"nothing": [0, 0, 30.0], "repair": [40.0, 40.0, 70.0]}
    look = am.Measurement.noisy(
        "visual", cost=2.0, outcomes=("no defect", "defect"), probabilities=[[0.95, 0.05], [0.5, 0.5], [0.1, 0.9]]
    )
    part = am.Component(dict(zip(ACTIONS, P, strict=True)), costs, 0, [look], STATES)
    other = am.system([part, part], penalty=lambda s: 500.0 * all(x == 2 for x in s), mobilisation=4.0, discount=0.95)
    np.testing.assert_allclose(found.model.rewards, other.rewards)
    np.testing.assert_allclose(found.model.transitions.dense(), other.transitions.dense())
    assert found.model.action_names == other.action_names
    rule = am.PolicyGraph(
        [found.model.decision(("nothing", ("nothing", "visual"))), am.Decision(1)], [{1: 1, None: 0}, {None: 0}]
    )
    result = figures(found, rule)
    assert sum(result.costs.values()) == pytest.approx(-result.evaluation.discounted_return)
    assert result.costs["system down"] == pytest.approx(500 * result.failures)
    assert found.failed.tolist() == [False] * 8 + [True]


def test_a_present_rule_is_priced_as_written():
    steps = (
        RuleStep("routine", "nothing", 2, "visual", {"defect": "open"}, "routine"),
        RuleStep("open", "nothing", 1, "opening", {"cracked": "mend", "failed": "mend"}, "routine"),
        RuleStep("mend", "repair", then="routine"),
    )
    economics = prices(rule=steps)
    asked = priced_problem(P, economics, STATES, ACTIONS, np.array([1.0, 0.0, 0.0]))
    graph = present_rule(asked, economics, None)
    wait, look, opening, repair = am.Decision(0), am.Decision(0, 1), am.Decision(0, 2), am.Decision(1)
    own = am.PolicyGraph(
        [wait, look, opening, repair],
        [{None: 1}, {"defect": 2, None: 0}, {"cracked": 3, "failed": 3, None: 0}, {None: 0}],
    )
    value = am.evaluate(asked.model, own).discounted_return
    assert am.evaluate(asked.model, graph).discounted_return == pytest.approx(value)
    with pytest.raises(am.FitError, match="unknown outcome 'hole'"):
        present_rule(asked, prices(rule=(RuleStep("a", "nothing", 1, "visual", {"hole": "a"}, "a"),)), None)
    with pytest.raises(am.FitError, match="unknown inspection method 'xray'"):
        present_rule(asked, prices(rule=(RuleStep("a", "nothing", 1, "xray", {}, "a"),)), None)
    with pytest.raises(am.PlanError, match="does not fit the model"):
        present_rule(asked, None, am.PolicyGraph([am.Decision(7)], [{None: 0}]))


def test_outcomes_without_an_edge_go_where_the_nearest_does():
    asked = problem()
    graph = am.PolicyGraph([am.Decision(0, 2), am.Decision(1)], [{0: 0, 2: 1}, {None: 0}])
    assert completed(graph, asked.model).edges[0] == {0: 0, 1: 0, 2: 1}


def test_a_model_with_imperfect_inspections_has_advice():
    found = am.inspection.advise(
        am.problems.simple_fatigue(periods=10, discount=0.95), period="year", failures=[2], time_limit=20.0
    )
    assert found.value <= -34.390916 + 1e-5
    assert found.upper >= -34.390916 - 1e-5
    assert found.value == pytest.approx(-34.390916, rel=0.011)
    assert len(found.figures.risk) == 10
    assert problem_of_model(found.model, [2]).periods == 10
    with pytest.raises(am.PlanError, match="failure state is 9"):
        am.inspection.advise(am.problems.simple_fatigue(periods=3), failures=[9])


SEEN = {
    "unit": [u for u in range(12) for _ in range(8)],
    "time": [*range(8)] * 12,
    "state": list("11122333") * 6 + list("11112223") * 6,
    "action": ["wait"] * 96,
}
TOML = """\
currency = "EUR"
period = "year"
interest = "3 %/year"
life = "6 years"
longest_interval = "24 months"
start = "1"
[inspections."<b>visual</b>"]
price = "6 EUR"
pod = { "2" = 0.4, "3" = 0.95 }
outcomes = ["<i>clear</i>", "hit"]
[inspections.opening]
price = "50 EUR"
with = ["wait"]
[actions]
wait = 0
repair = "90 EUR"
[running]
"3" = "10 EUR/month"
[failure]
states = ["3"]
price = "500 EUR"
[final]
"3" = "100 EUR"
[rule.routine]
do = "wait"
lasts = "24 months"
inspect = "opening"
if = { "3" = "mend" }
[rule.mend]
do = "repair"
"""


@pytest.fixture(scope="module")
def fitted():
    return am.fit(
        SEEN, assume={"repair": "1"}, default_action="wait", bootstrap=2, goodness=0, structure="deteriorate-by-steps"
    )


def write(tmp_path, text=TOML):
    path = tmp_path / "prices.toml"
    path.write_text(text)
    return path


def test_a_file_says_all_of_it(tmp_path, fitted):
    economics = am.Economics.load(write(tmp_path))
    assert (economics.life, economics.longest_interval, economics.start) == (6, 2, "1")
    assert economics.inspections["opening"] == InspectionMethod(50.0, with_actions=("wait",))
    assert [step.periods for step in economics.rule] == [2, 1]
    assert economics.per("month").life == 72
    found = am.inspection.advise(fitted, economics, time_limit=20.0)
    assert found.confidence.values.shape == (2,)
    assert "<b>visual</b>" in str(found)
    present = next(policy for policy in found.policies if policy.key == "present-rule")
    assert present.note.code == "longest-interval-exceeded"  # two years after a repair, which takes one


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ('"6 years"', '"6 furlongs"', ["line 4: life", "unknown period 'furlong'"]),
        ('"6 years"', '"-6 years"', ["line 4: life is '-6 years', expected a duration"]),
        ('"6 years"', '"5 months"', ["line 4: life, '5 months', is 0.416667 periods of a year, expected a whole number"]),
        ('"6 years"', "0", ["line 4: life is 0"]),
        ('"6 years"', "true", ["line 4: life is True"]),
        ('"24 months"\nstart', '"7 months"\nstart', ["line 5: longest_interval"]),
        ('life = "6 years"\n', "", ["costs at the end of life need a life"]),
        ('"2" = 0.4', '"2" = 1.4', ["line 9", "probabilities from 0 to 1"]),
        ('"2" = 0.4', '"2" = nan', ["line 9", "pod"]),
        ("pod = {", "pods = {", ["line 9: unknown key 'pods'; did you mean 'pod'"]),
        ('price = "6 EUR"\n', "", ["the method has no price"]),
        ('with = ["wait"]', 'from = "records"', ["line 13", '"fit"']),
        ('with = ["wait"]', "errors = [[1, 0], [0.5, 0.6]]", ["row 2 of errors is [0.5, 0.6]"]),
        ('with = ["wait"]', 'from = "fit"\npod = {}\nerrors = [[1]]', ["give one of them"]),
        ('outcomes = ["<i>clear</i>", "hit"]', 'outcomes = ["a"]', ["1 outcomes, expected two"]),
        ('start = "1"', "start = { \"1\" = 0.5 }", ["the sum 1"]),
        ('start = "1"', 'failures_per_year = 0', ["line 6: failures_per_year is 0", "above 0"]),
        ('start = "1"', 'inspection = "5 EUR"', ["a price of an inspection and methods"]),
        ('[final]', "[components]\nnumber = 5\nneeded = 1\n[final]", ["components.number is 5"]),
        ('[final]', "[components]\nnumber = 2\nneeded = 3\n[final]", ["components.needed is 3"]),
        ('[final]', "[components]\nneeded = 3\n[final]", ["give both"]),
        ('[final]', "[components]\nnumber = 2\nneeded = 1\n[final]", ["longest_interval cannot be combined"]),
        ('"3" = "mend"', '"3" = "mendd"', ["line 28: unknown step 'mendd'; did you mean 'mend'"]),
        ('inspect = "opening"\n', "", ["nothing is inspected"]),
        ('do = "repair"', "", ["the step has no action"]),
    ],
)  # fmt: skip
def test_wrong_settings_are_sentences(tmp_path, old, new, parts):
    assert old in TOML
    with pytest.raises(am.FitError) as error:
        am.Economics.load(write(tmp_path, TOML.replace(old, new, 1)))
    for part in parts:
        assert part in str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ('"2" = 0.4', '"9" = 0.4', ["line 9: unknown state '9'"]),
        ('with = ["wait"]', 'with = ["weit"]', ["line 13: unknown action 'weit'"]),
        ('with = ["wait"]', 'from = "fit"', ["in this fit records are right"]),
        ('with = ["wait"]', "errors = [[1, 0], [0, 1]]", ["expected 3 rows"]),
        ('start = "1"', 'start = "8"', ["line 6: unknown state '8'"]),
        ('"3" = "100 EUR"', '"7" = "100 EUR"', ["unknown state '7'"]),
        ('do = "repair"', 'do = "mend"', ["unknown action 'mend'"]),
        ('inspect = "opening"', 'inspect = "xray"', ["unknown inspection method 'xray'"]),
        ('if = { "3" =', 'if = { "4" =', ["unknown outcome '4'"]),
    ],
)  # fmt: skip
def test_names_that_the_fit_does_not_have_are_sentences(tmp_path, fitted, old, new, parts):
    assert old in TOML
    with pytest.raises(am.FitError) as error:
        am.inspection.advise(fitted, write(tmp_path, TOML.replace(old, new, 1)), time_limit=5.0)
    for part in parts:
        assert part in str(error.value)


@pytest.mark.slow
def test_the_command_prints_all_and_its_code_says_whether_to_use_the_plan(tmp_path, fitted):
    fitted.save(tmp_path / "fit.npz")
    done = actmeasure(
        "plan", tmp_path / "fit.npz", "--economics", write(tmp_path), "--nodes", "12", "--json", "--time-limit", "15"
    )
    data = json.loads(done.stdout)
    assert data["usable"]
    assert data["nodes"] <= 12
    assert any("not tested" in note for note in data["read_first"])
    free = TOML.replace('"3" = "10 EUR/month"', "").replace('"500 EUR"', '"0 EUR"').replace('"100 EUR"', '"0 EUR"')
    free = free.replace("24 months", "20 years", 1).replace("6 years", "20 years")
    done = actmeasure(
        "plan", tmp_path / "fit.npz", "--economics", write(tmp_path, free),
        "--csv", tmp_path / "plan.csv", "--time-limit", "15", code=3,
    )  # fmt: skip
    text = done.stdout
    assert text.index("Read this first: the plan should not be used as it is") < text.index("Certified for this model")
    assert "A price seems to be missing" in text
    assert (tmp_path / "plan.csv").read_text().startswith("step,do,inspection,reported,chance,go_to")
    done = actmeasure("plan", tmp_path / "fit.npz", "--economics", write(tmp_path), "--price", "5", code=2)
    assert "there are the methods" in done.stderr


@pytest.mark.slow
def test_rules_that_people_use_keep_the_limits_where_they_can():
    found = advice(life=8, longest_interval=2, failures_per_year=0.06)
    allowed = {one.key: one.is_allowed for one in found.policies}
    assert allowed["plan"]
    assert allowed["calendar-kept"]
    assert not allowed["never"]
    for one in found.policies:
        keeps = found.problem.limited.is_kept(one.graph) and one.figures.failures_per_period <= 0.06
        assert one.is_allowed == keeps
    assert "never inspecting (not allowed)" in str(found)


def test_a_rule_that_does_not_begin_with_its_first_node_keeps_the_interval():
    limited = problem(longest_interval=2).limited
    rule = am.PolicyGraph([am.Decision(0), am.Decision(0, 1)], [{None: 0}, {None: 1}], start=1)
    assert limited.is_kept(rule)


def test_inspections_of_components_are_counted_and_paid_by_method():
    economics = prices(components=Components(2, 1, down=500.0, mobilisation=4.0))
    found = priced_problem(P, economics, STATES, ACTIONS, np.array([1.0, 0.0, 0.0]))
    both = found.model.decision((("nothing", "visual"), ("nothing", "visual")))
    mixed = found.model.decision((("nothing", "visual"), ("nothing", "opening")))
    rule = am.PolicyGraph([both, mixed], [{None: 1}, {None: 0}])
    result = figures(found, rule)
    looks = {name: float(of_each @ result.evaluation.discounted_looks) for name, of_each in found.methods().items()}
    first, second = 1 / (1 - 0.95**2), 0.95 / (1 - 0.95**2)
    assert looks == pytest.approx({"visual": 2 * first + second, "opening": second})
    assert result.costs["visual"] == pytest.approx(2.0 * looks["visual"])
    assert result.costs["opening"] == pytest.approx(12.0 * looks["opening"])
    assert result.costs["mobilisation"] == pytest.approx(4.0 * (first + second))
    assert sum(result.costs.values()) == pytest.approx(-result.evaluation.discounted_return)


def test_what_a_method_is_worth_is_said_where_something_is_known(plan):
    unknown, bounded = (0.5, 0.0, math.inf), (0.5, 1.0, 3.0)
    lines = list(
        method_lines(plan, MethodWorth("visual", 2.0, break_even=(0.0, math.inf), qualities=(unknown, bounded)))
    )
    assert lines == [
        "visual: costs 2 EUR; whether it pays is not known yet.",
        "with 0.5 times the probability of detection it may cost between 1 EUR and 3 EUR",
    ]
    # A probability of detection of 0.9 cannot be higher by a quarter, one of 0.99 by nothing that is worth telling.
    assert max(one[0] for one in plan.worth[0].qualities) == pytest.approx(1 / 0.9)
    sure = advice(life=3, inspections={"visual": InspectionMethod(2.0, pod={"failed": 0.99})}, seconds=5.0)
    assert [one[0] for one in sure.worth[0].qualities] == [0.5]


def test_json_has_what_was_put_in(plan):
    data = json.loads(json.dumps(am.inspection.advice.summary(plan), default=float))
    visual = data["inspections"][0]
    assert (visual["name"], visual["price"], visual["outcomes"]) == ("visual", 2.0, ["no defect", "defect"])
    np.testing.assert_allclose(visual["probabilities"], [[0.95, 0.05], [0.5, 0.5], [0.1, 0.9]])
    assert data["inspections"][1]["with"] == ["nothing"]
    assert data["put_in"]["failure_price"] == 200.0
    assert data["put_in"]["final"] == {"failed": 70.0}


def test_inspections_of_a_system_mean_the_same_everywhere():
    """Each component that is inspected counts: in the facts, the comparison, the page and the JSON."""
    found = advice(components=Components(2, 1, down=500.0, mobilisation=4.0), life=5, nodes=8, seconds=10.0)
    methods = found.problem.methods()
    made = [sum(float(kind @ one.evaluation.looks) for kind in methods.values()) for one in found.policies]
    occasions = [float(one.evaluation.looks.sum()) for one in found.policies]
    always = next(n for n, one in enumerate(found.policies) if one.key == "always")
    assert made[always] == pytest.approx(2 * occasions[always])
    words = graph_page_words(found)
    assert ("inspections of components", plain_number(made[0])) in [fact[:2] for fact in words["facts"]]
    assert words["looks"] == "inspections of components in all"
    assert [one["looks"] for one in words["policies"]] == [plain_number(count) for count in made]
    assert "inspections of components in all" in str(found)
    record = am.inspection.advice.summary(found)["policies"][always]
    assert record["inspections_in_all"] == pytest.approx(made[always])
    assert record["periods_with_an_inspection"]["in_all"] == pytest.approx(occasions[always])


def test_a_life_is_shown_to_its_end(plan):
    """The likeliest course has every period of the life, the last one with the belief at its end."""
    assert len(plan.history) == 6
    last, before = plan.history[-1], plan.history[-2]
    np.testing.assert_allclose(last.predicted, before.belief @ P[last.action])
    assert last.outcome is None
    assert len(am.inspection.advice.summary(plan)["likeliest_course"]) == 6
    assert ending_words(plan) == "the last year includes the cost of the state at the end of life"
    paid = course(plan.model, plan.graph, 6).rewards @ 0.95 ** np.arange(6)
    assert paid == pytest.approx(plan.value)


def told(graph, asked):
    """Return the words of the steps of a graph, and those on steps that the end of life may cut short."""
    whole, nodes = stepwise(asked, graph)
    steps = plan_steps(asked, whole, nodes)
    found = SimpleNamespace(problem=asked, units=Units.of(asked.model, "EUR", "year"), steps=steps)
    return [step_words(found, step) for step in steps], cut_words(found)


def test_the_end_of_life_is_told_as_such():
    """A step that life always cuts short says what is done until then; those that it may cut short are named below the table."""
    lived = problem(life=4)
    wait, look, repair = am.Decision(0), am.Decision(0, 1), am.Decision(1)
    edges = [{None: node} for node in (1, 2, 3, 4, 5, 0)]
    begin = "nothing, then visual 1 year later"
    cases = {
        (look, wait, wait, repair, wait, look): [begin, "nothing for 2 years, repair; life is then over"],
        (look, wait, repair, wait, wait, look): [begin, "nothing, repair, nothing until the end"],
        (look, wait, wait, wait, wait, look): [begin, "nothing until the end"],
    }
    for decisions, words in cases.items():
        assert told(am.PolicyGraph(decisions, edges), lived) == (words, [])
    again = am.PolicyGraph([wait, wait, look], [{None: 1}, {None: 2}, {None: 0}])
    assert told(again, lived)[1] == ["Life may end before the inspection of step 1, which is then left out."]


def test_a_certificate_without_a_gap_does_not_show_rounding():
    found = advice(life=2, nodes=12, seconds=5.0)
    assert found.gap < 1e-6
    assert certificate_sentence(found).endswith("as this plan does.")
