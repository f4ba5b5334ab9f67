"""Explanations agree with the plans they explain, with closed forms, and with what is printed and drawn of them."""

import dataclasses
import re
import sys

import numpy as np
import pytest

import actmeasure as am
from actmeasure.planning.plots import plot_explanation
from actmeasure.text import percent

METHODS = ["optimal", "atm", "atm-qmdp", "atm-linear", "always", "never", "every-2", "every-3"]


def models():
    lake = am.problems.frozen_lake(4)
    hidden = am.problems.measuring_value().replace(initial=[0.3, 0.3, 0.4, 0.0], reveal_start=False)
    costs = np.arange(64.0).reshape(16, 4) / 1000
    return {
        "lake": lake,
        "slippery": am.problems.frozen_lake(4, variant="slippery"),
        "costs": lake.replace(measuring_cost=costs),
        "value": am.problems.measuring_value(),
        "hidden": hidden,
        "tight": am.problems.tight_bound(),
        "random": random_model(0),
        "random hidden": random_model(1, hidden=True),
    }


def random_model(seed, hidden=False):
    generator = np.random.default_rng(seed)
    P = generator.dirichlet(np.full(5, 0.5), size=(5, 3))
    R = np.vstack([generator.normal(size=(4, 3)), np.zeros((1, 3))])
    initial = generator.dirichlet(np.ones(5)) * [1, 1, 1, 1, 0] if hidden else 0
    terminal = [False, False, False, False, True]
    initial = initial / np.sum(initial) if hidden else initial
    cost = np.vstack([generator.random((4, 3)) / 4, np.zeros((1, 3))])
    return am.Model.from_arrays(
        P, R, measuring_cost=cost, discount=0.9, initial=initial, terminal=terminal, reveal_start=not hidden
    )


def explained(solution):
    """All explanations of a solution, with what each plan is worth."""
    model, found = solution.model, []
    if not model.start_is_known:
        found.append((solution.explain(), solution.value))
    return found + [(solution.explain(state), solution.values[state]) for state in solution.schedule]


@pytest.mark.parametrize("name", models())
@pytest.mark.parametrize("method", METHODS)
def test_an_explanation_is_worth_what_the_plan_is_worth(name, method):
    solution = am.solve(models()[name], method, tolerance=1e-6)
    for explanation, value in explained(solution):
        assert explanation.value == pytest.approx(value, abs=1e-9)
        for step in explanation.steps:
            if step.looks:
                assert step.step == len(explanation.plan) == len(explanation.steps)
        check_recursion(explanation)


def check_recursion(explanation):
    """Worth of a step = reward + discounted worth of the next; at the last look, the value of looking."""
    model, steps = explanation.model, explanation.steps
    following = [step.looking if step.looks else step.waiting for step in steps]
    assert following[0] == pytest.approx(explanation.value, abs=1e-9)
    for step, after, worth, next_worth in zip(steps, steps[1:], following, following[1:], strict=False):
        chance = step.belief.running_probability(model, step.action)
        reward = float(step.belief.expected(model.rewards[:, step.action]))
        assert worth == pytest.approx(reward + model.discount * chance * next_worth, abs=1e-9)
        assert after.running == pytest.approx(step.running * chance)
        assert after.belief.is_close(step.belief.predict(model, step.action))


@pytest.mark.parametrize("name", models())
def test_the_optimum_looks_exactly_where_looking_is_worth_it(name):
    solution = am.solve(models()[name], tolerance=1e-9)
    for explanation, _ in explained(solution):
        for step in explanation.steps:
            if step.running < 1e-3 or np.isnan(step.measuring_value):
                continue
            assert step.measuring_value >= -1e-5 if step.looks else step.measuring_value <= 1e-5


@pytest.mark.parametrize("cost", [0.0, 0.05, 0.1, 0.19, 0.25, 0.5])
def test_two_state_belief_is_the_figure_of_the_paper(cost):
    first = am.solve(am.problems.two_state_belief(p=0.8, measuring_cost=cost)).explain("begin").steps[0]
    assert first.measuring_value == pytest.approx(0.2 - cost, abs=1e-12)
    assert first.looks == (cost < 0.2)
    assert max(first.looking, first.waiting) == pytest.approx(max(1 - cost, 0.8), abs=1e-12)


@pytest.mark.parametrize("cost", [0.05, 0.1])
def test_measuring_value_in_closed_form(cost):
    p, discount = 0.8, 0.95
    value = (discount * p - cost) / (1 - discount**2 * (1 - p))  # V = -c + d (p + (1 - p) d V)
    step = am.solve(am.problems.measuring_value(p, cost, discount)).explain().steps[0]
    assert step.looking == pytest.approx(value, abs=1e-9)
    assert step.waiting == pytest.approx(discount * max(p, discount * value), abs=1e-9)
    assert step.looks


def test_a_look_that_shows_nothing_loses_its_price_at_least():
    solution = am.solve(am.problems.frozen_lake(4, variant="deterministic"), "always")
    for explanation, _ in explained(solution):
        assert all(step.measuring_value <= -0.05 + 1e-9 for step in explanation.steps)


def test_states_that_are_not_planned_for_are_unknown_not_worthless():
    text = str(am.solve(am.problems.frozen_lake(4), "atm-qmdp").explain())
    assert text.endswith("... and so on without end.\n?: a look may show a state that this schedule has no plan for.")


def test_the_explanation_as_text_and_table():
    explanation = am.solve(am.problems.frozen_lake(4)).explain(2)
    assert str(explanation).splitlines() == [
        "After seeing 2: 3x down; the state is then known",
        "Worth 0.857375 from here on.",
        "",
        "step  action  belief before it    running  look now  not now  measuring value",
        "----  ------  ------------------  -------  --------  -------  ---------------",
        "   1  down    2: 100 %              100 %    0.8074   0.8574          -0.0500",
        *str(explanation).splitlines()[6:],
    ]
    frame = explanation.to_pandas()
    assert list(frame.index) == [1, 2, 3]
    assert list(frame["measuring_value"]) == [step.measuring_value for step in explanation.steps]
    assert list(frame["belief"]) == ["2: 100 %", "6: 50 %, 10: 50 %", "14: 75 %, 10: 25 %"]
    assert "3x down" in repr(explanation)


def test_many_states_are_counted_not_listed():
    explanation = am.solve(am.problems.most_likely_successor(penalty=0.0), "never").explain()
    assert ", 7 more" in str(explanation)


@pytest.mark.parametrize(
    ("probability", "text"), [(0.0, "0 %"), (0.001, "<1 %"), (0.5, "50 %"), (0.999, ">99 %"), (1.0, "100 %")]
)
def test_percent(probability, text):
    assert percent(probability) == text


def test_what_cannot_be_explained_is_said_in_a_sentence():
    lake = am.solve(am.problems.frozen_lake(4))
    with pytest.raises(
        am.PlanError, match=r"no plan for state 6, .* plans for state 0, state 1, state 2, state 3, state 14"
    ):
        lake.explain(6)
    for state in (-1, 16, 99):
        with pytest.raises(
            am.PlanError, match=rf"no state {state}, the model has the states 0 to 15; .* plans for state 0,"
        ):
            lake.explain(state)
    with pytest.raises(am.PlanError, match="have no names"):
        lake.explain("here")
    with pytest.raises(am.PlanError, match="expected its number"):
        lake.explain(1.5)
    value = am.solve(am.problems.measuring_value())
    with pytest.raises(am.PlanError, match=r"no plan for state 3 \('end'\)"):
        value.explain("end")
    with pytest.raises(am.PlanError, match="did you mean"):
        value.explain("edn")
    with pytest.raises(am.PlanError, match="may begin in 2 states"):
        am.solve(am.problems.measuring_value().replace(initial=[0.5, 0.5, 0, 0])).explain()
    many = am.solve(am.problems.frozen_lake(8), "always")
    with pytest.raises(am.PlanError, match=r"and \d+ more$"):
        many.explain(63)


def test_solution_to_pandas():
    solution = am.solve(am.problems.frozen_lake(4))
    frame = solution.to_pandas()
    assert list(frame.columns) == ["state", "plan", "steps", "ending", "value"]
    assert list(frame.index) == list(solution.schedule)
    assert frame.loc[2].tolist()[1:4] == ["3x down; the state is then known", 3, "known"]
    assert list(frame["value"]) == [solution.values[state] for state in solution.schedule]
    hidden = am.solve(models()["hidden"]).to_pandas()
    assert hidden.index[0] == -1
    assert hidden.loc[-1, "state"] == "(start)"


def test_solution_as_text():
    lake = am.problems.frozen_lake(4)
    text = str(am.solve(lake))
    for part in ("optimal", "0.680482", "2 per episode", "6 steps", "3x down; the state is then known"):
        assert part in text
    assert "claimed  0.723593" in str(am.solve(lake, "atm-linear"))
    assert "best 'never'  0.423329 to 0.423329" in str(am.solve(lake, "never"))
    assert "never ends" in str(am.solve(lake, "atm-qmdp"))
    always = am.solve(am.problems.tight_bound(), "atm")
    assert "1 per step" in str(always)
    assert "after seeing" not in always.table(plans=0)
    assert "... and 1 more plan" in always.table(plans=2)
    assert "(start)" in str(am.solve(models()["hidden"]))


def test_why_a_gap_is_open_is_said_with_what_to_do():
    solution = am.solve(am.problems.frozen_lake(4))
    undiscounted = dataclasses.replace(solution, model=solution.model.replace(discount=1.0))
    assert solution.stopped == "closed"
    assert solution.table().count("\n\n") == 1  # the figures, and the plans
    for open_one, reason, sentence in [
        (solution, "time", "The time limit was reached: more time may close the gap."),
        (solution, "interrupted", "Stopped with Ctrl-C: more time may close the gap."),
        (solution, "memory", "The search's memory limit was reached: a larger tolerance"),
        (solution, "exhausted", "found nothing more to improve: it is as close as rounding"),
        (undiscounted, "exhausted", "Without discount .* a discount slightly below 1 closes the gap further."),
    ]:
        assert re.search(f"\n\n.*{sentence}", dataclasses.replace(open_one, stopped=reason).table())
    hurried = dataclasses.replace(solution, method="atm", stopped="time")
    assert "more time may find better moments to look." in str(hurried)


def test_what_loses_without_end_is_said_in_a_sentence():
    gamble = am.problems.measuring_value(discount=1.0)
    rewards = np.where(gamble.terminal[:, None], 0.0, gamble.rewards - 0.01)
    model = am.Model.from_arrays(
        gamble.transitions.dense(), rewards, measuring_cost=0.1, discount=1.0, terminal=gamble.terminal
    )
    solution = am.solve(model, "every-2")
    assert solution.value == -np.inf
    assert "Without discount this schedule loses without end" in str(solution)
    assert "optimum  at most 0.85" in str(solution)
    explanation = solution.explain()
    assert "Loses without end from here on, as there is no discount." in str(explanation)
    assert explanation.plot()


def test_long_plans_are_shortened_in_the_table_only():
    actions = tuple(np.arange(100) % 2)
    solution = am.solve(am.problems.tight_bound(), "never")
    schedule = am.Schedule({0: am.BlindPlan(actions, then="repeat", repeat=2)}, solution.model.n_states)
    long = dataclasses.replace(solution, schedule=schedule)
    assert max(map(len, str(long).splitlines())) < 130
    assert ", ..., b; the last 2 repeated without end" in str(long)
    assert "..." not in long.to_pandas().loc[0, "plan"]


def test_endings_with_a_chance_are_named():
    P = np.zeros((3, 1, 3))
    P[0, 0] = [0.0, 0.5, 0.5]
    P[1, 0, 1] = 1.0
    model = am.Model.from_arrays(P, [[1.0], [1.0], [0.0]], measuring_cost=1.0, terminal=[False, False, True])
    assert "ends with probability 0.5" in str(am.solve(model))


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_lakes_are_drawn(tmp_path, ending):
    path = tmp_path / f"lake.{ending}"
    figure = am.solve(am.problems.frozen_lake(4)).plot(path)
    assert path.stat().st_size > 1000
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "moves blindly (mean path)",
        "looks",
        "known without a look",
        "hole",
    ]
    letters = [text.get_text() for text in axes.texts if text.get_text() in ("S", "G")]
    assert sorted(letters) == ["G", "S"]
    assert "worth 0.6805" in axes.get_title(loc="left")


@pytest.mark.parametrize("method", METHODS)
def test_every_method_can_be_drawn(method):
    assert am.solve(am.problems.frozen_lake(4), method).plot()
    hidden = am.problems.frozen_lake(map=["SFFS", "FHFG"]).replace(reveal_start=False)
    assert am.solve(hidden, method, tolerance=1e-4).plot(shape=(2, 4))


def test_lakes_without_rewards_per_transition_and_with_a_price_per_state_are_drawn():
    lake = am.problems.frozen_lake(4, variant="deterministic")
    plain = am.Model.from_arrays(
        lake.transitions.dense(), lake.rewards, measuring_cost=np.full((16, 4), 0.1), terminal=lake.terminal,
        action_names=lake.action_names,
    )  # fmt: skip
    (axes,) = am.solve(plain).plot().axes
    assert "varies" in axes.get_title(loc="left")
    assert [text.get_text() for text in axes.texts].count("G") == 1


def test_what_cannot_be_drawn_is_said_in_a_sentence(tmp_path):
    with pytest.raises(am.PlanError, match=r"use solution.explain\(\).plot\(\)"):
        am.solve(am.problems.measuring_value()).plot()
    oblong = am.solve(am.problems.frozen_lake(map=["SFF", "FFG"]))
    with pytest.raises(am.PlanError, match="6 cells, which is no square"):
        oblong.plot()
    with pytest.raises(am.PlanError, match="makes 8 cells; the lake has 6"):
        oblong.plot(shape=(2, 4))
    with pytest.raises(am.PlanError, match=r"expected \(rows, columns\)"):
        oblong.plot(shape=6)
    with pytest.raises(am.PlanError, match="no ending that can be drawn"):
        oblong.plot(tmp_path / "lake.txt", shape=(2, 3))
    with pytest.raises(am.PlanError, match="there is no folder"):
        oblong.plot(tmp_path / "none" / "lake.png", shape=(2, 3))
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(am.PlanError, match="cannot be written, it is a folder"):
        oblong.plot(tmp_path / "folder.png", shape=(2, 3))


def test_explanations_are_drawn(tmp_path):
    explanation = am.solve(am.problems.frozen_lake(4), "every-3").explain()
    (axes,) = explanation.plot(tmp_path / "value.png").axes
    assert (tmp_path / "value.png").stat().st_size > 1000
    heights = [bar.get_height() for bar in axes.patches]
    assert sorted(heights) == pytest.approx(sorted(step.measuring_value for step in explanation.steps))
    assert [text.get_text() for text in axes.texts] == ["look"]
    (axes,) = plot_explanation(am.solve(am.problems.frozen_lake(4), "atm-qmdp").explain()).axes
    assert {text.get_text() for text in axes.texts} == {"?"}


def test_extras_that_are_missing_are_named(monkeypatch):
    solution = am.solve(am.problems.frozen_lake(4))
    for module in ("pandas", "matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, module, None)
    for draw in (solution.plot, solution.explain().plot):
        with pytest.raises(am.MissingExtraError, match=r"actmeasure\[plots\]"):
            draw()
    for table in (solution.to_pandas, solution.explain().to_pandas):
        with pytest.raises(am.MissingExtraError, match=r"actmeasure\[data\]"):
            table()
