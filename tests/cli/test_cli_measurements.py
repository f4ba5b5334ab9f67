"""Commands on a problem whose looks are not exact: what acts there does, what cannot says so with exit code 2."""

import json

import pytest
from command_line import actmeasure


def test_a_random_agent_acts():
    words = ("--problem", "inspection", "--agent", "random", "--episodes", "3", "--max-steps", "9", "--json")
    shown = json.loads(actmeasure("train", *words).stdout)
    assert [look["name"] for look in shown["model"]["measurements"]] == ["visual", "ultrasonic", "opening"]
    assert shown["summary"]["steps"]["mean"] == 9


@pytest.mark.parametrize("agent", ["atmq", "dyna-atmq", "amrl-q", "foresight", "acno-otp"])
def test_learners_that_need_exact_looks_are_refused(agent):
    message = actmeasure("train", "--problem", "inspection", "--agent", agent, "--episodes", "2", code=2).stderr
    assert (
        f"the agent '{agent}' needs one exact measurement that can be made with every action, and this model has 3"
        in message
    )


def test_a_study_names_the_line_of_an_agent_that_cannot_act_on_a_problem(tmp_path):
    pytest.importorskip("pyarrow")
    study = tmp_path / "study.toml"
    study.write_text(
        'name = "x"\n[[part]]\nname = "p"\nproblems = ["chain", "inspection"]\nagents = [\n  "random",\n  "dyna-atmq",\n]\n'
        '[[part]]\nname = "q"\nproblems = ["chain"]\nagents = ["atmq"]\n'
    )
    message = actmeasure("run", str(study), "--out", str(tmp_path / "out"), code=2).stderr
    assert "line 7: the agent 'dyna-atmq' needs one exact measurement" in message
    assert not (tmp_path / "out").exists()
