"""The benchmark: twelve problems, a leaderboard with intervals, and agents that are added and stay."""

import sys
from dataclasses import replace

import pytest
from study_tools import InlineEngine
from synthetic import results_of

import actmeasure as am
from actmeasure.learning.fixed_agents import RandomAgent
from actmeasure.studies import AgentSpec, bench_suite, read_results, report, run_study
from actmeasure.studies.report.document import Table
from actmeasure.studies.runner import check_study


class Mine(RandomAgent):
    """An agent that is added."""


NAME = f"{__name__}:Mine"


def test_the_suite_has_twelve_problems_that_can_be_made():
    study = bench_suite.bench_suite()
    labels = {problem.label for part in study.parts for problem in part.problems}
    assert len(labels) == 12
    assert {"sepsis", "drone", "inspection", "CartPole on a grid"} <= labels
    assert len(check_study(study)) == len(study.trials())
    suite = study.parts[0]
    agents = {agent.name for part in study.parts for agent in part.agents}
    assert agents == set(am.agents.AGENTS) - {"schedule"}
    assert "acno-pomcp" not in {agent.name for agent in suite.agents}
    assert {method for part in study.parts for method in part.methods} == {"optimal"}


def test_agents_that_need_no_exact_looks_also_act_on_imperfect_ones():
    study = bench_suite.bench_suite(added=[AgentSpec("Mine", NAME), AgentSpec("other", "atmq", {"learning_rate": 0.3})])
    suite, imperfect = study.parts[:2]
    assert [agent.label for agent in suite.agents][-2:] == ["Mine", "other"]
    assert [agent.label for agent in imperfect.agents] == ["pomcp, told the dynamics", "random", "Mine"]


def test_the_leaderboard_is_sorted_by_the_score(without_pictures):
    order = [*(agent.label for agent in bench_suite.AGENTS), "acno-pomcp"]  # which has fewer problems

    def earn(problem, agent, seed):
        return 0.0 if agent.label == "random" else 0.9 - 0.1 * order.index(agent.label) if agent.label in order else 0.5

    results = results_of(bench_suite.bench_suite(quick=True), earn=earn, plan=lambda problem: 1.0)
    document, outputs = report.REPORTS[bench_suite.NAMES[1]](results, None)
    section = document.sections[0]
    ranks, returns = (block for block in section.blocks if isinstance(block, Table))
    assert [row[1].text for row in ranks.rows] == order
    assert len(returns.rows) == 11
    cart = next(row for row in returns.rows if row[0].text == "CartPole on a grid")
    assert cart[1].text == "500.000"
    assert "leaderboard.csv" in outputs.names
    assert "pomcp, told the dynamics" in outputs.contents("results.csv").decode()


def small(study):
    """The suite with its smallest problems, fast agents and short runs."""
    kept = ("lake 4x4", "chain", "CartPole on a grid", "inspection")
    agents = ("amrl-q", "random", "Mine", "pomcp, told the dynamics")
    return replace(
        study,
        parts=[
            replace(
                part,
                problems=[problem for problem in part.problems if problem.label in kept],
                agents=[replace(one, episodes=3, seeds=2) for one in part.agents if one.label in agents],
                max_steps=20,
                beliefs=200,
            )
            for part in study.parts
            if part.name != bench_suite.SMALL
        ],
    )


def test_an_added_agent_is_ranked_and_stays(tmp_path, without_pictures):
    first = InlineEngine()
    assert run_study(small(bench_suite.bench_suite()), tmp_path, first).failures == ()
    added = bench_suite.added_agents(tmp_path, [NAME])
    second = InlineEngine()
    assert run_study(small(bench_suite.bench_suite(added=added)), tmp_path, second).failures == ()
    assert {trial.agent.name for trial in second.ran} == {NAME}
    page = report.build(tmp_path).read_text()
    assert "Leaderboard" in page
    assert "Mine" in page
    assert [agent.name for agent in bench_suite.added_agents(tmp_path, [])] == [NAME]
    plans = read_results(tmp_path).plans
    assert (plans["lower"] <= plans["upper"] + 1e-9).all()
    assert "inspection" in set(plans["problem"])


def test_what_cannot_be_added_is_a_sentence(tmp_path):
    with pytest.raises(am.StudyError, match="'atmq' is part of the suite already"):
        bench_suite.added_agents(tmp_path, ["atmq"])
    added = bench_suite.added_agents(tmp_path, ["nowhere_at_all:Mine"])
    with pytest.raises(am.AgentError, match="cannot be imported"):
        bench_suite.bench_suite(added=added)


def test_the_command_adds_agents_of_this_folder(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from actmeasure.cli import app
    from actmeasure.cli import studies as commands

    asked = []
    monkeypatch.setattr(commands, "_run_and_report", lambda *arguments: asked.append(arguments))
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "mine_benched.py").write_text(
        "from actmeasure.learning.fixed_agents import RandomAgent\n\n\nclass Own(RandomAgent):\n    pass\n"
    )
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["bench-suite", "--quick", "--agent", "mine_benched:Own"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    ((study, directory, *_),) = asked
    assert study.name == directory.name == bench_suite.NAMES[1]
    assert study.parts[0].agents[-1].name == "mine_benched:Own"
