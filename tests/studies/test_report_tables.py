"""Tables: what is averaged over what, beside which optimum, and that they are the same every time."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from synthetic import own_study, results_of

from actmeasure.studies import AgentSpec, Part, ProblemSpec, Study
from actmeasure.studies.report import tables
from actmeasure.studies.report.tables import best_known


def test_means_are_of_the_last_episodes_of_each_run():
    results = results_of(own_study())
    episodes = results.episodes.assign(
        scalarized_return=np.where(results.episodes["episode"] < 10, -100.0, results.episodes["seed"])
    )
    means = tables.run_means(episodes)
    assert len(means) == 2 * 2 * 4
    assert means["scalarized_return"].tolist() == means["seed"].tolist()  # 60 episodes, the last 50 count


def test_summaries_have_a_row_for_every_problem_and_agent_in_the_order_of_the_study():
    results = results_of(own_study(), earn=lambda problem, agent, seed: 10 * (agent.label == "other") + seed)
    found = tables.summaries(tables.run_means(results.episodes))
    assert found[["problem", "agent"]].to_numpy().tolist() == [
        ["lake", "learner"], ["lake", "other"], ["gamble", "learner"], ["gamble", "other"],
    ]  # fmt: skip
    assert found["runs"].tolist() == [4] * 4
    assert found["scalarized_return"].tolist() == [1.5, 11.5, 1.5, 11.5]
    assert found["iqm"].tolist() == [1.5, 11.5, 1.5, 11.5]
    assert found["measurements"].tolist() == [2.5] * 4
    assert np.all((found["low"] < found["scalarized_return"]) & (found["scalarized_return"] < found["high"]))


def test_a_cell_does_not_depend_on_what_else_is_there():
    results = results_of(own_study())
    means = tables.run_means(results.episodes)
    alone = means[(means["problem"] == "lake") & (means["agent"] == "other")]
    everything = tables.summaries(means)
    row = everything[(everything["problem"] == "lake") & (everything["agent"] == "other")].reset_index(drop=True)
    pd.testing.assert_frame_equal(tables.summaries(alone), row)


def test_improvements_are_of_all_pairs_over_problems_of_both():
    results = results_of(own_study(), earn=lambda problem, agent, seed: float(agent.label == "other"))
    found = tables.improvements(tables.run_means(results.episodes))
    (row,) = found.to_dict("records")
    assert (row["agent"], row["other"], row["problems"], row["probability"]) == ("learner", "other", 2, 0.0)


def test_curves_are_running_means_with_few_points():
    results = results_of(own_study(), earn=lambda problem, agent, seed: seed)
    found = tables.curves(results.episodes, points=10)
    assert set(found.groupby(["problem", "agent"]).size()) == {10}
    assert found["window"].unique().tolist() == [6]
    assert found["episode"].min() == 6
    assert found["episode"].max() == 60
    assert found["scalarized_return"].unique() == pytest.approx([1.5])


def test_the_optimum_is_the_best_undiscounted_return_whatever_the_discount_of_the_plan():
    lake = ProblemSpec("lake", "frozen-lake", {"size": 4})
    others = [ProblemSpec(f"lake {d}", "frozen-lake", {"size": 4, "discount": d}) for d in (0.99, 0.999)]
    another = ProblemSpec("another", "frozen-lake", {"size": 8})
    study = Study(
        "s", "s",
        [
            Part("runs", "runs", [lake, another], [AgentSpec("a", "atmq")], episodes=2, seeds=1),
            Part("plans", "plans", [lake, *others], methods=["optimal", "always"]),
        ],
    )  # fmt: skip
    worth = {"lake": 0.7, "lake 0.99": 0.9, "lake 0.999": 0.8}
    found = best_known(study.to_json(), results_of(study, plan=lambda problem: worth[problem.label]).plans)
    assert found["optimal_return"].tolist() == [0.9] * 4
    by_label = found.set_index(["part", "problem"])
    assert "another" not in found["problem"].tolist()
    assert by_label.loc[("runs", "lake"), "value"] == 0.7  # the bounds are those at the problem's own discount
    assert by_label.loc[("plans", "lake 0.99"), "value"] == 0.9


def test_the_optimum_is_that_of_as_many_steps():
    lake = ProblemSpec("lake", "frozen-lake", {"size": 4})
    limits = {"short": 10, "long": 100}
    study = Study(
        "s", "s",
        [Part(name, name, [lake], ["atmq"], 2, 1, max_steps=steps, methods=["optimal"]) for name, steps in limits.items()],
    )  # fmt: skip
    plans = results_of(study).plans
    plans["scalarized_return"] = plans["part"].map({"short": 0.2, "long": 0.9})
    found = best_known(study.to_json(), plans).set_index("part")["optimal_return"]
    assert found.to_dict() == {"short": 0.2, "long": 0.9}


def test_improvements_of_an_unfinished_study_are_of_the_runs_that_are_there():
    results = results_of(own_study(), earn=lambda problem, agent, seed: seed + (agent.label == "other"))
    means = tables.run_means(results.episodes)
    some = means[~((means["problem"] == "lake") & (means["agent"] == "other") & (means["seed"] > 0))]
    (row,) = tables.improvements(some).to_dict("records")
    gamble = np.mean([(x > y) + (x == y) / 2 for x in range(4) for y in range(1, 5)])
    lake = np.mean([(x > 1) + (x == 1) / 2 for x in range(4)])
    assert (row["problems"], row["probability"]) == (2, pytest.approx((gamble + lake) / 2))


def test_nothing_found_gives_empty_tables_with_all_columns():
    results = results_of(own_study(), keep=lambda trial: False)
    means = tables.run_means(results.episodes)
    assert means.empty
    for table in (tables.summaries(means), tables.curves(results.episodes), tables.improvements(means)):
        assert table.empty
        assert len(table.columns) > 3
    assert best_known(results.study, results.plans).empty


def test_the_same_problem_from_a_file_is_found_by_its_content():
    study = own_study()
    part = study.parts[0]
    by_file = replace(part.problems[0], name="a.json", content="abc")
    moved = replace(part.problems[0], label="moved", name="elsewhere/b.json", content="abc")
    changed = replace(part, problems=[by_file, moved], methods=[])
    planned = Part("plans", "plans", [by_file], methods=["optimal"])
    both = Study("s", "s", [changed, planned])
    found = best_known(both.to_json(), results_of(both).plans)
    assert found["problem"].tolist() == ["lake", "moved", "lake"]
