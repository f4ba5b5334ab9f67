"""Results of other code: noticed, run again or kept, and never mixed in silence."""

import json
import sys
from functools import cache

import pytest
from study_tools import InlineEngine, place_of, small_study, stored, tables

from actmeasure import learning
from actmeasure.learning.fixed_agents import RandomAgent
from actmeasure.studies import AgentSpec, Part, ProblemSpec, Study, Trial, code_digest, read_results, report, run_study
from actmeasure.studies.code_digest import code_of, module_digest

AMRL = "actmeasure.learning.amrl_q"
LAKE = ProblemSpec("4x4", "frozen-lake", {"size": 4})
#: What is remembered for the life of a process, but for the syntax of a module.
REMEMBERED = (code_digest._code, code_digest._source_file, code_digest._exported, code_digest._everything)
MODULE = code_digest._module


def forget():
    """Have sources read again, as a new process does."""
    for cached in (*REMEMBERED, MODULE):
        cached.cache_clear()


@cache
def syntax(name, source):
    """The digest and imports of a module with this source, kept from one edit to the next: only one module is edited."""
    return MODULE.__wrapped__(name)


@pytest.fixture
def edit(monkeypatch):
    """Edit the source of a module, as far as digests are concerned."""
    sources = {}
    read = code_digest._source
    monkeypatch.setattr(code_digest, "_source", lambda name: sources.get(name, read(name)))
    monkeypatch.setattr(code_digest, "_module", lambda name: syntax(name, code_digest._source(name)))

    def change(module, old=None, new=b""):
        text = read(module)
        if old is None:
            sources.pop(module, None)
        else:
            assert text.count(old) >= 1
            sources[module] = text.replace(old, new, 1)
        forget()

    yield change
    forget()


def codes():
    """The digests of an agent's trials, and of a plan."""
    found = {
        name: code_of(Trial.train(LAKE, AgentSpec("a", name), 1, 0))
        for name in ("amrl-q", "atmq", "dyna-atmq", "foresight")
    }
    return found | {"plan": code_of(Trial.plan(LAKE, "optimal"))}


@pytest.fixture(scope="module")
def unedited():
    """The digests of the sources as they are."""
    forget()
    return codes()


LEARNERS = {"amrl-q", "atmq", "dyna-atmq", "foresight"}


@pytest.mark.parametrize(
    ("module", "changed"),
    [
        (AMRL, {"amrl-q"}),
        ("actmeasure.kernels.amrl_q", {"amrl-q"}),
        ("actmeasure.kernels.atmq", {"atmq", "dyna-atmq"}),
        ("actmeasure.learning.foresight", {"foresight"}),
        ("actmeasure.kernels.graph_search", {"foresight", "plan"}),
        ("actmeasure.studies.planning_trial", {"plan"}),
        ("actmeasure.studies.trial", LEARNERS | {"plan"}),
        ("actmeasure.studies.resources", set()),
        ("actmeasure.studies.pool", set()),
        ("actmeasure.learning.train", LEARNERS),
        ("actmeasure.problems.frozen_lake", LEARNERS | {"plan"}),
        ("actmeasure.model", LEARNERS | {"plan"}),
        ("actmeasure.problems.chain", set()),
        ("actmeasure.files.json_format", set()),
        ("actmeasure.studies.report.tables", set()),
        ("actmeasure.cli.studies", set()),
        ("actmeasure.errors", set()),
    ],
)
def test_what_computes_a_trial_counts_and_nothing_else(unedited, edit, module, changed):
    source = code_digest._source(module)
    edit(module, source, source + b"\nSETTING = 1\n")
    after = codes()
    assert {name for name in unedited if unedited[name] != after[name]} == changed


def test_comments_docstrings_and_formatting_do_not_count(unedited, edit):
    text = code_digest._source(AMRL)
    first = next(line for line in text.splitlines() if line.startswith(b"from actmeasure"))
    edit(AMRL, first, b"# a comment\n\n\n" + first + b"  # another")
    assert codes() == unedited
    docstring = text[text.index(b'"""') : text.index(b'"""', 3) + 3]
    edit(AMRL, docstring, b'"""Something else."""')
    assert codes() == unedited


def test_the_digest_is_that_of_the_syntax(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    place = tmp_path / "outside_syntax.py"
    found = []
    for text in (
        'class A:\n    "Text."\n    def f(self, x):\n        return [x, "a"]\n',
        "class A:\n    # what\n    def f(self, x):\n        return [x,\n            'a']\n",
        "class A:\n    def f(self, x):\n        return [x, 'b']\n",
        "class A:\n    def f(self, y):\n        return [y, 'a']\n",
    ):
        place.write_text(text)
        forget()
        found.append(module_digest("outside_syntax"))
    assert found[0] == found[1]
    assert len(set(found)) == 3


def test_an_agent_from_outside_counts_with_its_module_and_package(tmp_path, monkeypatch):
    package = tmp_path / "outside_agents"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "helper.py").write_text("NUMBER = 1\n")
    (package / "mine.py").write_text("from .helper import NUMBER\nfrom actmeasure.learning.fixed_agents import RandomAgent\n\n\n"
                                     "class Mine(RandomAgent):\n    pass\n")  # fmt: skip
    monkeypatch.syspath_prepend(str(tmp_path))
    from outside_agents.mine import Mine

    monkeypatch.setitem(learning.AGENTS, "mine", Mine)
    trial = Trial.train(LAKE, AgentSpec("mine", "mine"), 5, 0)
    seen = []
    for name, text in (
        ("mine.py", None),
        ("mine.py", "\nX = 1\n"),
        ("helper.py", "\nX = 1\n"),
        ("helper.py", "# a comment\n"),
    ):
        if text is not None:
            (package / name).write_text((package / name).read_text() + text)
        forget()
        seen.append(code_of(trial))
    forget()
    assert len(set(seen)) == 3
    assert seen[2] == seen[3]
    for name in ("outside_agents.mine", "outside_agents.helper", "outside_agents"):
        sys.modules.pop(name)


@pytest.mark.parametrize(
    ("imported", "planner", "chain"),
    [
        ("import actmeasure as am", True, True),
        pytest.param("import actmeasure.planning", True, True, marks=pytest.mark.slow),
        ("from actmeasure import *", True, True),
        pytest.param("from actmeasure import planners", True, True, marks=pytest.mark.slow),
        pytest.param("from actmeasure.learning import make", True, True, marks=pytest.mark.slow),
        ("from actmeasure import solve", True, False),
        ("from actmeasure.planning import solve", True, False),
        pytest.param("def act():\n    import actmeasure as am", True, True, marks=pytest.mark.slow),
        ("from actmeasure import Belief", False, False),
    ],
)
def test_an_agent_from_outside_that_calls_a_planner_counts_with_it(
    tmp_path, monkeypatch, edit, imported, planner, chain
):
    (tmp_path / "outside_planning.py").write_text(f"{imported}\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    class Planning(RandomAgent):
        pass

    Planning.__module__ = "outside_planning"
    monkeypatch.setitem(learning.AGENTS, "planning", Planning)
    trial = Trial.train(LAKE, AgentSpec("a", "planning"), 1, 0)
    forget()
    before = code_of(trial)
    for module, counts in (
        ("actmeasure.kernels.graph_search", planner),
        ("actmeasure.problems.chain", chain),
        ("actmeasure.cli.studies", False),
        ("actmeasure.studies.report.tables", False),
    ):
        source = code_digest._source(module)
        edit(module, source, source + b"\nSETTING = 1\n")
        assert (code_of(trial) != before) == counts, module
        edit(module)


def test_trials_are_run_again_when_their_code_changes(tmp_path, edit):
    study = small_study()
    run_study(study, tmp_path, InlineEngine())
    before = tables(tmp_path)
    edit(AMRL, b"class AmrlQAgent", b"SETTING = 1\nclass AmrlQAgent")
    engine, told = InlineEngine(), []
    summary = run_study(study, tmp_path, engine, tell=told.append)
    assert {trial.agent.name for trial in engine.ran} == {"amrl-q"}
    count = sum(trial.kind == "train" and trial.agent.name == "amrl-q" for trial in study.trials())
    assert len(engine.ran) == count
    assert (
        told
        == list(summary.notes)
        == [
            f"{count} of {len(study.trials())} trials were computed by other code (amrl-q) and are run again; "
            "--keep (keep=True) keeps the old results."
        ]
    )
    assert not read_results(tmp_path).other_code
    assert tables(tmp_path) == before
    again = run_study(study, tmp_path, InlineEngine())
    assert again.notes == ()
    # Nothing is lost: whoever goes back to the code from before finds its results.
    edit(AMRL)
    back = InlineEngine()
    run_study(study, tmp_path, back)
    assert not back.ran
    assert len(list((tmp_path / "trials").iterdir())) == len(study.trials()) + count


def test_kept_results_are_told_everywhere(tmp_path, edit, without_pictures):
    study = small_study()
    run_study(study, tmp_path, InlineEngine())
    edit(AMRL, b"class AmrlQAgent", b"SETTING = 1\nclass AmrlQAgent")
    engine = InlineEngine()
    (note,) = run_study(study, tmp_path, engine, keep=True).notes
    assert not engine.ran
    assert "were computed by other code (amrl-q) and are kept" in note
    results = read_results(tmp_path)
    assert not results.missing
    assert {trial.agent.name for trial in results.other_code} == {"amrl-q"}
    page = report.build(tmp_path).read_text()
    count = len(results.other_code)
    assert f"{count} of {len(study.trials())} trials were computed by other code than the others" in page
    run_study(study, tmp_path, InlineEngine())
    assert "computed by other code" not in report.build(tmp_path).read_text()


def test_results_of_a_version_without_digests_count_as_other_code(tmp_path, edit):
    study = Study("old", "Old", [Part("a", "A", [LAKE], ["random"], episodes=5, seeds=2)])
    run_study(study, tmp_path, InlineEngine())
    for trial in study.trials():  # as they were
        place_of(tmp_path, trial).rename(tmp_path / "trials" / f"{trial.hash}.parquet")
    data = json.loads((tmp_path / "study.json").read_text())
    data.pop("code"), data.pop("keep")
    (tmp_path / "study.json").write_text(json.dumps(data))
    assert read_results(tmp_path).missing == ()  # a report of them can still be made
    kept = InlineEngine()
    assert (
        "2 of 2 trials were computed by other code (random) and are kept"
        in run_study(study, tmp_path, kept, keep=True).notes[0]
    )
    assert not kept.ran
    engine = InlineEngine()
    assert "are run again" in run_study(study, tmp_path, engine).notes[0]
    assert len(engine.ran) == 2
    assert stored(tmp_path) == {trial.hash for trial in study.trials()}
    assert all((tmp_path / "trials" / f"{trial.hash}.parquet").exists() for trial in study.trials())


def test_a_module_without_source_counts_by_its_name(monkeypatch):
    class Local(RandomAgent):
        pass

    Local.__module__ = "__nowhere__"
    monkeypatch.setitem(learning.AGENTS, "local", Local)
    forget()
    one = code_of(Trial.train(LAKE, AgentSpec("a", "local"), 1, 0))
    assert one != code_of(Trial.train(LAKE, AgentSpec("a", "random"), 1, 0))
    forget()
