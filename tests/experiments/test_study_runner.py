"""Running studies: only what is missing, whatever stops them, with the same tables in the end."""

import json
import math
import os
import signal

import pandas as pd
import pytest
from study_tools import InlineEngine, small_study, stored, tables

import actmeasure as am
from actmeasure.experiments import AgentSpec, Part, ProblemSpec, Study, read_results, run_study, runner
from actmeasure.experiments.expense import WORKER_BYTES, Appraiser, Expense
from actmeasure.experiments.memory import available_memory, total_memory, workers_that_fit
from actmeasure.experiments.progress import Pace


def part_counts(summary):
    return {part.name: (part.done, part.found, part.failed, part.left) for part in summary.parts}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A study that was run without a break."""
    directory = tmp_path_factory.mktemp("finished")
    engine = InlineEngine()
    return directory, run_study(small_study(), directory, engine), engine


def test_tables_say_what_was_run(finished):
    directory, summary, engine = finished
    study = small_study()
    assert len(engine.ran) == len(study.trials()) == len(stored(directory))
    assert part_counts(summary) == {"first": (18, 0, 0, 0), "second": (4, 0, 0, 0)}
    results = read_results(directory)
    first = results.runs[results.runs.part == "first"]
    assert list(first.agent.unique()) == ["amrl-q", "published", "few"]
    assert first[first.agent == "published"].agent_settings.unique().tolist() == ['{"preset":"published"}']
    assert first[first.problem == "4x4"].problem_settings.unique().tolist() == ['{"size":4}']
    assert set(first.agent_name) == {"amrl-q", "atmq", "random"}
    assert (results.episodes.groupby(["part", "problem", "agent", "seed"]).size() == 30).all()
    lake = am.problems.frozen_lake(4)
    episodes = am.train(am.agents.make("amrl-q"), lake, 30, seed=3).to_pandas()
    columns = ["scalarized_return", "reward", "measurements", "steps"]
    chosen = results.episodes.query("part == 'second' and seed == 3")
    pd.testing.assert_frame_equal(chosen[columns].reset_index(drop=True), episodes[columns], check_names=False)
    assert results.plans[["part", "problem", "method"]].to_numpy().tolist() == [
        ["first", problem, method] for problem in ("4x4", "chain") for method in ("optimal", "every-2")
    ]


def test_the_study_file_says_with_what(finished):
    directory, summary, _ = finished
    study = read_results(directory).study
    assert (study["name"], study["title"], study["engine"]) == ("small", "A small study", "inline")
    assert [part["title"] for part in study["parts"]] == ["First", "Second"]
    assert {"python", "numpy", "numba", "actmeasure"} <= study["versions"].keys()
    assert study["machine"]["cores"] >= 1
    assert study["machine"]["memory"] == total_memory()
    assert study["started"] <= study["finished"]
    assert study["seconds"] == {part.name: part.seconds for part in summary.parts}
    assert study["wall_seconds"] == summary.seconds


def test_running_again_does_only_what_is_missing(finished, tmp_path, monkeypatch):
    whole = tables(finished[0])
    study = small_study()
    seen = []

    def interrupt(progress):
        seen.append(sum(part.done for part in progress.parts))
        if len(seen) == 4:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(runner, "SHOW_SECONDS", 0.0)
    summary = run_study(study, tmp_path, InlineEngine(), interrupt)
    done = len(stored(tmp_path))
    assert summary.stopped == "interrupted"
    assert 0 < done < len(study.trials())
    assert read_results(tmp_path).study["finished"] is None
    assert len(read_results(tmp_path).missing) == len(study.trials()) - done
    engine = InlineEngine()
    again = run_study(study, tmp_path, engine)
    assert again.stopped == "done"
    assert len(engine.ran) == len(study.trials()) - done
    assert tables(tmp_path) == whole
    idle = InlineEngine()
    assert part_counts(run_study(study, tmp_path, idle)) == {"first": (0, 18, 0, 0), "second": (0, 4, 0, 0)}
    assert not idle.ran


def test_a_changed_setting_runs_what_it_changes(finished, tmp_path):
    run_study(small_study(), tmp_path, InlineEngine())
    engine = InlineEngine()
    summary = run_study(small_study(seeds=4), tmp_path, engine)
    assert {(trial.agent.label, trial.seed) for trial in engine.ran} == {
        ("amrl-q", 3), ("published", 3), ("amrl-q", 4),
    }  # fmt: skip
    assert len(engine.ran) == 2 + 1 + 1  # amrl-q with seed 3 on the lake was there, of the second part
    assert summary.stopped == "done"
    run_study(small_study(), tmp_path, InlineEngine())
    assert tables(tmp_path) == tables(finished[0])


def test_a_failed_trial_does_not_lose_the_others(tmp_path):
    study = small_study()
    engine = InlineEngine(lambda trial: "no luck" if trial.seed == 2 else "")
    summary = run_study(study, tmp_path, engine)
    failed = [trial for trial in study.trials() if trial.seed == 2]
    assert summary.stopped == "failed"
    assert {failure.trial.hash for failure in summary.failures} == {trial.hash for trial in failed}
    assert part_counts(summary) == {"first": (14, 0, 4, 0), "second": (3, 0, 1, 0)}
    assert "Failed: published on chain, seed 2: no luck" in summary.remarks()
    assert read_results(tmp_path).study["failures"][0]["why"] == "no luck"
    again = InlineEngine()
    assert run_study(study, tmp_path, again).stopped == "done"
    assert {trial.hash for trial in again.ran} == {trial.hash for trial in failed}


def test_the_longest_come_first(finished):
    ran = finished[2].ran
    costs = [Appraiser().appraise(trial, None).work for trial in ran]
    assert costs == sorted(costs, reverse=True)


def test_a_summary_is_a_table_and_json(finished):
    summary = finished[1]
    lines = summary.table().splitlines()
    assert lines[0].split() == ["part", "done", "now", "found", "failed", "left", "computing"]
    assert lines[2].split()[:5] == ["second", "4", "0", "0", "0"]
    assert json.loads(json.dumps(summary.to_json()))["parts"][0]["done"] == 18


def test_trials_of_another_version_are_told(finished, tmp_path, monkeypatch):
    from actmeasure.experiments import store

    monkeypatch.setattr(store, "__version__", "0.0.1")
    run_study(small_study(), tmp_path, InlineEngine())
    monkeypatch.undo()
    (note,) = run_study(small_study(), tmp_path, InlineEngine()).notes
    assert "made by actmeasure 0.0.1" in note


@pytest.mark.parametrize(
    ("part", "sentence"),
    [
        (
            Part("a", "A", ["frozn-lake"], ["atmq"]),
            "part 'a', atmq on frozn-lake, seed 0: unknown problem 'frozn-lake'",
        ),
        (Part("a", "A", [ProblemSpec("l", "frozen-lake", {"sise": 4})], ["atmq"]), "did you mean 'size'"),
        (Part("a", "A", [ProblemSpec("l", "frozen-lake", {"size": "x"})], ["atmq"]), "size is 'x'"),
        (Part("a", "A", ["chain"], ["atmqq"]), "unknown agent 'atmqq'; did you mean 'atmq'?"),
        (Part("a", "A", ["chain"], [AgentSpec("b", "atmq", {"preset": "publishd"})]), "did you mean 'published'"),
        (Part("a", "A", ["chain"], methods=["optimum"]), "unknown method 'optimum'; did you mean 'optimal'?"),
    ],
)
def test_what_cannot_be_run_is_known_before_anything_is(part, sentence, tmp_path):
    with pytest.raises(am.StudyError) as caught:
        run_study(Study("s", "S", [part]), tmp_path / "out", InlineEngine())
    assert sentence in str(caught.value)
    assert not (tmp_path / "out").exists()
    with pytest.raises(am.StudyError, match="expected a Study"):
        run_study(part, tmp_path / "out", InlineEngine())


def test_fewer_workers_where_memory_would_not_suffice():
    giga = 1 << 30
    assert workers_that_fit([giga] * 10, 4, 16 * giga) == 4
    assert workers_that_fit([giga] * 10, 4, 3 * giga) == 3
    assert workers_that_fit([5 * giga, giga], 4, 3 * giga) == 1
    assert workers_that_fit([giga], 4, None) == 1
    assert workers_that_fit([giga] * 3, 2, None) == 2
    assert 0 < available_memory() <= total_memory()
    plan, training = (trial for trial in small_study().trials() if trial.seed == 0 and trial.method in ("optimal", "")
                      and trial.problem.label == "chain" and (trial.agent is None or trial.agent.name == "random"))  # fmt: skip
    assert Appraiser().appraise(plan, None).memory > Appraiser().appraise(training, None).memory >= WORKER_BYTES


def test_estimates_learn_from_what_trials_take():
    slow, fast, other = small_study().trials()[-3:]
    pace = Pace({
        slow.hash: Expense("slow", 10.0, 0), fast.hash: Expense("fast", 10.0, 0), other.hash: Expense("slow", 20.0, 0)
    })  # fmt: skip
    assert math.isnan(pace.expected(fast))
    pace.note(slow, 5.0)
    assert pace.expected(other) == 10.0
    assert pace.expected(fast) == 5.0  # as the only ones known
    pace.note(fast, 1.0)
    assert pace.expected(fast) == 1.0
    assert pace.finishing([other, fast], 2) == {other.hash: 10.0, fast.hash: 6.0}


def test_progress_tells_part_by_part(tmp_path):
    told = []
    run_study(small_study(), tmp_path, InlineEngine(), told.append)
    assert [(part.name, part.total) for part in told[0].parts] == [("first", 18), ("second", 4)]
    assert [(part.done, part.seconds_left) for part in told[-1].parts] == [(18, 0.0), (4, 0.0)]
    assert told[-1].seconds_left == 0.0
