"""Running studies: only what is missing, whatever stops them, with the same tables in the end."""

import hashlib
import heapq
import json
import os
import signal

import numpy as np
import pandas as pd
import pytest
from study_tools import InlineEngine, small_study, stored, tables

import actmeasure as am
from actmeasure.paper.study_spec import paper_study
from actmeasure.studies import AgentSpec, Part, ProblemSpec, Study, read_results, run_study, runner
from actmeasure.studies.machine import available_memory, total_memory, workers_that_fit
from actmeasure.studies.resources import WORKER_BYTES, Pace, ResourceEstimator, Resources
from actmeasure.studies.runner import check_study, in_order


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


def test_all_have_their_first_seed_before_any_has_a_second(finished):
    """The last round has its longest trials first, the others their shortest."""
    ran = finished[2].ran
    rounds = [trial.seed for trial in ran]
    assert rounds == sorted(rounds)
    assert set(rounds) == {0, 1, 2, 3}
    expected = {trial.hash: ResourceEstimator().estimate(trial, None).work for trial in ran}
    second = [expected[trial.hash] for trial in ran if trial.seed == 1]
    assert second == sorted(second)
    third = [trial for trial in small_study().trials() if trial.seed < 3 and trial.kind == "train"]
    (*_, last) = in_order(small_study(), {trial.hash: trial for trial in third}, lambda trial: expected[trial.hash])
    assert expected[last.hash] == min(expected[trial.hash] for trial in third if trial.seed == 2)


def test_there_is_soon_something_of_everything():
    """A part whose trials are all long does not wait for a part of which there are many."""
    study = paper_study()
    appraiser = ResourceEstimator()
    expected = {trial.hash: appraiser.estimate(trial, None).work for trial in study.trials()}
    order = in_order(study, {trial.hash: trial for trial in study.trials()}, lambda trial: expected[trial.hash])
    place = {trial.hash: number for number, trial in enumerate(order)}
    for part in study.parts:
        for agent in part.agents:
            assert min(place[trial.hash] for _, one, trial in part.runs() if one == agent) < 60
        assert min(place[trial.hash] for trial in part.trials()) < 40
    seeds = [trial.seed for trial in order]
    assert seeds == sorted(seeds)
    assert len(order) == len(study.trials())


def test_a_summary_is_a_table_and_json(finished):
    summary = finished[1]
    lines = summary.table().splitlines()
    assert lines[0].split() == ["part", "done", "now", "found", "failed", "left", "computing"]
    assert lines[3].split()[:5] == ["second", "4", "0", "0", "0"]
    assert json.loads(json.dumps(summary.to_json()))["parts"][0]["done"] == 18


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
    assert workers_that_fit([giga], 4, giga // 2) == 1
    assert workers_that_fit([giga] * 3, 2, 16 * giga) == 2
    assert 0 < available_memory() <= total_memory()
    plan, training = (trial for trial in small_study().trials() if trial.seed == 0 and trial.method in ("optimal", "")
                      and trial.problem.label == "chain" and (trial.agent is None or trial.agent.name == "random"))  # fmt: skip
    assert (
        ResourceEstimator().estimate(plan, None).memory
        > ResourceEstimator().estimate(training, None).memory
        >= WORKER_BYTES
    )


def test_estimates_learn_from_what_trials_take():
    slow, same, larger, other, strange = small_study().trials()[-5:]
    pace = Pace({
        slow.hash: Resources("a", "slow", "slow", 10.0, 0), same.hash: Resources("a", "slow", "slow", 10.0, 0),
        larger.hash: Resources("b", "slow", "slow", 20.0, 0), other.hash: Resources("c", "slow, else", "slow", 10.0, 0),
        strange.hash: Resources("d", "strange", "strange", 10.0, 0),
    })  # fmt: skip
    assert not pace.knows
    assert pace.expected(strange) == 10.0  # by the rough rule
    pace.note(slow, 5.0)
    assert pace.knows
    assert pace.expected(same) == 5.0
    assert pace.expected(larger) == pytest.approx(10.0)  # in proportion to work
    assert [pace.expected(each) for each in (other, strange)] == pytest.approx([5.0, 5.0])  # as the only ones known
    pace.note(strange, 1.0)
    assert pace.expected(strange) == 1.0
    assert pace.expected(other) == pytest.approx(5.0)


def test_what_a_worker_loads_first_is_forgotten_once_another_trial_tells_better():
    first, second, third = small_study().trials()[-3:]
    pace = Pace(
        {
            trial.hash: Resources(name, "slow", "slow", 10.0, 0)
            for trial, name in ((first, "a"), (second, "b"), (third, "a"))
        }
    )
    pace.note(first, 50.0, has_loaded=True)
    assert pace.expected(third) == 50.0
    pace.note(second, 2.0)
    assert pace.expected(third) == pytest.approx(2.0)
    pace.note(first, 70.0, has_loaded=True)
    assert pace.expected(third) == pytest.approx(2.0)


def test_the_longest_trial_counts_and_so_does_what_is_done_of_it():
    long, *short = small_study().trials()[-4:]
    pace = Pace({trial.hash: Resources(trial.hash, trial.hash, "a", 1.0, 0) for trial in (long, *short)})
    for trial in (long, *short):
        pace.note(trial, 30.0 if trial is long else 2.0)
    ends = pace.finishing([long, *short], 2)
    assert [ends[trial.hash] for trial in (long, *short)] == pytest.approx([30.0, 2.0, 4.0, 6.0])
    ends = pace.finishing([long, *short], 2, {long.hash: 29.0, short[0].hash: 4.0})
    assert ends[long.hash] == pytest.approx(5.8)  # at least a fifth of the time that it has taken
    assert ends[short[0].hash] == pytest.approx(0.8)  # overdue


def simulated_estimates(workers, seconds_of):
    """Run the paper's study in no time: when each estimate was made, what it said, and when all was done."""
    study = paper_study()
    trials = {trial.hash: trial for trial in study.trials()}
    resources = check_study(study)
    pace = Pace(resources)
    waiting = in_order(study, trials, pace.expected)
    missing, free, told, now = {trial.hash: trial for trial in waiting}, [], [], 0.0
    begun = {}
    queue = list(reversed(waiting))
    while queue or free:
        while queue and len(free) < workers:
            trial = queue.pop()
            begun[trial.hash] = now
            heapq.heappush(free, (now + seconds_of(trial, resources[trial.hash]), trial.hash))
        now, name = heapq.heappop(free)
        pace.note(missing.pop(name), now - begun[name])
        if missing and (not told or now - told[-1][0] > 30.0):
            running = {other: now - begun[other] for _, other in free}
            told.append((now, max(pace.finishing(list(missing.values()), workers, running).values())))
    return np.array(told), now


def unequal(trial, needed):
    """Seconds that the rough rule is far off of: another speed for each kind of trial, and another growth with size."""
    kind = int.from_bytes(hashlib.sha256(needed.kind.encode()).digest()[:4]) / 2**32
    chance = int.from_bytes(hashlib.sha256(trial.hash.encode()).digest()[:4]) / 2**32
    return 0.01 + 4 ** (2 * kind - 1) * needed.work ** (1.0 + 0.4 * kind) * (0.7 + 0.6 * chance)


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow), 8])
def test_the_time_left_is_honest_where_trials_are_unequal(workers):
    told, end = simulated_estimates(workers, unequal)
    left = end - told[:, 0]
    share = told[:, 0] / end
    ratio = told[:, 1] / left
    for at, most in ((0.1, 2.0), (0.25, 1.5), (0.5, 1.3), (0.75, 1.2), (0.9, 1.2)):
        number = int(np.abs(share - at).argmin())
        assert 1 / most < ratio[number] < most, (at, ratio[number])


def test_progress_tells_part_by_part(tmp_path):
    told = []
    run_study(small_study(), tmp_path, InlineEngine(), told.append)
    assert [(part.name, part.total) for part in told[0].parts] == [("first", 18), ("second", 4)]
    assert [(part.done, part.seconds_left) for part in told[-1].parts] == [(18, 0.0), (4, 0.0)]
    assert told[-1].seconds_left == 0.0
