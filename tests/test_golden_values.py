"""What a recorded version computed and wrote is computed and read by this one, to the last bit where that is defined.

See `golden/record.py` for what is recorded, how, and when to record again.
"""

import numpy as np
import pytest
from golden import record

import actmeasure as am

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

RECORDED = record.load_values()
SECTIONS = record.sections()
CASES = [(section, case) for section, cases in SECTIONS.items() for case in cases]
IS_SAME_MACHINE = RECORDED["recorded_with"] == record.recorded_with()


#: Parts that were recorded on another machine than the rest.
ELSEWHERE = {tuple(part) for part in RECORDED.pop(record.ELSEWHERE, [])}


def check(recorded, computed, path, others=()):
    """Compare values to the last bit where this is the machine of the recording, and the parts `others` within a tolerance."""
    found = []
    for key in others:
        found += record.differences(recorded[key], computed.pop(key, None), False, f"{path} / {key}")
    kept = {key: part for key, part in recorded.items() if key not in others} if others else recorded
    found += record.differences(kept, computed, IS_SAME_MACHINE, path)
    shown = "\n".join(found[:20])
    assert not found, f"{len(found)} values differ from those recorded:\n{shown}"


@pytest.mark.parametrize(("section", "case"), CASES, ids=[f"{section}-{case}" for section, case in CASES])
def test_values_are_as_recorded(section, case):
    if (section, case) in (("advice", "page"), ("studies", "report")):
        pytest.importorskip("jinja2")
        pytest.importorskip("matplotlib")
    others = {part[2] for part in ELSEWHERE if part[:2] == (section, case)}
    check(RECORDED[section][case], SECTIONS[section][case](), f"{section} / {case}", others)


def test_all_that_is_recorded_is_computed():
    recorded = [(section, case) for section in RECORDED if section != "recorded_with" for case in RECORDED[section]]
    assert sorted(recorded) == sorted(CASES)


def test_nothing_is_left_out():
    # All problems but those whose looks are not exact, which the recorded methods and agents refuse.
    not_exact = {
        "inspection", "tiger", "pile-selection", "simple-fatigue", "rock-sample", "component-line", "crack-life",
        "k-out-of-n",
    }  # fmt: skip
    assert {name for name, _, _ in record.SMALL.values()} == set(am.problems.PROBLEMS) - not_exact
    solved = RECORDED["solutions"].values()
    assert all(set(am.planners.METHODS) <= set(methods) for methods in solved)
    assert set(am.agents.AGENTS) <= set(RECORDED["episodes"])
    learning = {name for name, kind in am.agents.AGENTS.items() if issubclass(kind, am.agents.LearningAgent)}
    assert learning == set(record.LEARNING)


@pytest.mark.parametrize("suffix", record.FORMATS)
@pytest.mark.parametrize("name", record.MODEL_FILES)
def test_model_files_can_be_read(name, suffix):
    assert am.Model.load(record.FOLDER / f"{name}.{suffix}") == record.MODEL_FILES[name]()


@pytest.mark.parametrize("suffix", ["json", "pomdp"])
@pytest.mark.parametrize("name", record.MODEL_FILES)
def test_models_are_written_as_before(name, suffix):
    assert record.model_text(name, suffix) == (record.FOLDER / f"{name}.{suffix}").read_text()


@pytest.mark.parametrize("name", record.LEARNING)
def test_agents_from_files_go_on_as_before(name):
    loaded = am.agents.load(record.FOLDER / f"agent-{name}.npz")
    check(RECORDED["files"][f"agent {name} goes on"], record.goes_on(name, loaded), name)


@pytest.mark.parametrize("name", record.LEARNING)
def test_agents_that_are_stored_now_go_on_as_before(name, tmp_path):
    record.agent_to_store(name).save(tmp_path / "now.npz")
    loaded = am.agents.load(tmp_path / "now.npz")
    check(RECORDED["files"][f"agent {name} goes on"], record.goes_on(name, loaded), name)


def test_a_fit_can_be_read():
    """The file was written when intervals were further inside the replicates, and few of these were not remarked on."""
    fit = am.Fit.load(record.FIT)
    changed = ("low", "high", "remarks")
    same, found = ({key: one for key, one in data.items() if key not in changed}
                   for data in (RECORDED["fit"]["records"], record.fit_data(fit)))  # fmt: skip
    check(same, found, "fit.npz")
    low, high = np.quantile(fit.bootstrap, [0.05, 0.95], axis=0)
    kept = (fit.low > 0) & (fit.high < 1)
    np.testing.assert_allclose(fit.low[kept], np.minimum(low, fit.probabilities)[kept])
    np.testing.assert_allclose(fit.high[kept], np.maximum(high, fit.probabilities)[kept])


def test_a_stored_study_can_be_read():
    check(RECORDED["studies"]["run"], record.study_data(record.STUDY_FOLDER), "study")


def test_a_table_of_seeds_is_written_as_before():
    assert record.seed_table() == (record.FOLDER / "runs.csv").read_text()


@pytest.mark.parametrize("name", ["records", "prices", "study"])
def test_inputs_are_those_that_were_recorded(name):
    """So that recording again does not change them without notice."""
    path, text = {
        "records": (record.RECORDS, record.make_records),
        "prices": (record.PRICES, lambda: record.PRICES_TEXT),
        "study": (record.STUDY, lambda: record.STUDY_TEXT),
    }[name]
    assert path.read_text() == text()


@pytest.mark.parametrize(
    ("recorded", "computed", "exactly", "elsewhere"),
    [
        ("0x1p+0", "0x1p+0", True, True),
        ("0x1p+0", "0x1.0000000000001p+0", False, False),
        ("~0x1p+0", "~0x1.0000000000001p+0", False, True),
        ("~0x1p+0", "~0x1.00001p+0", False, False),
        ("~~0x1p+0", "~~0x1.00000001p+0", False, True),
        ("~~0x1p+0", "~~0x1.0001p+0", False, False),
        ("~nan", "~nan", True, True),
        ("~inf", "~0x1p+0", False, False),
        ("~0x1p+0", "0x1p+0", False, False),
        ("~sha256:00", "~sha256:01", False, True),
        ("sha256:00", "sha256:01", False, False),
        (1, True, False, False),
        (1, 2, False, False),
        ([1, 2], [1], False, False),
        ({"a": 1}, {"b": 1}, False, False),
        (None, None, True, True),
    ],
)
def test_differences_are_found(recorded, computed, exactly, elsewhere):
    for is_same_machine, expected in ((True, exactly), (False, elsewhere)):
        found = record.differences({"x": recorded}, {"x": computed}, is_same_machine)
        assert (not found) is expected


def test_a_difference_is_told_with_key_and_both_values():
    (line,) = record.differences({"lake": {"lower": "~0x1p+0"}}, {"lake": {"lower": "~0x1.8p+0"}}, True, "solutions")
    assert line == "solutions / lake / lower: recorded ~0x1p+0 (1.0), computed ~0x1.8p+0 (1.5)"
