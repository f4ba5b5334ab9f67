"""Fits as files."""

import dataclasses
import io
import json
import re
import zipfile

import numpy as np
import pytest
from simulated import CHAINS, records

import actmeasure as am
from actmeasure.inspection.advising import fit_diagnostics
from actmeasure.inspection.diagnostics import diagnostic


@pytest.fixture(scope="module")
def fit():
    columns = records(CHAINS, 40, 15, np.random.default_rng(0))
    return am.fit(columns, bootstrap=3, goodness=3, period="year", noticed=["4"], default_action="nothing")


@pytest.mark.parametrize(
    "parts", [{}, {"bootstrap": None, "low": None, "high": None, "goodness": None, "period": None}]
)
def test_what_is_saved_is_loaded(tmp_path, fit, parts):
    before = dataclasses.replace(fit, **parts)
    before.save(tmp_path / "fit.npz")
    after = am.Fit.load(tmp_path / "fit.npz")
    for field in dataclasses.fields(am.Fit):
        one, other = getattr(before, field.name), getattr(after, field.name)
        if isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, other)
            assert one.dtype == other.dtype
            assert not other.flags.writeable
        else:
            assert one == other, field.name
    assert after.summary() == before.summary()


def test_damaged_and_other_files_are_refused(tmp_path, fit):
    path = tmp_path / "fit.npz"
    fit.save(path)
    whole = path.read_bytes()
    flipped = whole[:300] + bytes([whole[300] ^ 255]) + whole[301:]
    for damaged in (whole[: len(whole) // 2], b"", b"PK\x03\x04 nothing", flipped):
        path.write_bytes(damaged)
        with pytest.raises(am.FitError, match=r"fit\.npz"):
            am.Fit.load(path)
    am.problems.measuring_value().save(path)
    with pytest.raises(am.FitError, match="not a fit file"):
        am.Fit.load(path)
    with pytest.raises(am.FitError, match="no such file"):
        am.Fit.load(tmp_path / "nowhere.npz")
    with pytest.raises(am.FitError, match=r"ends in \.npz"):
        fit.save(tmp_path / "fit.json")
    with pytest.raises(am.FitError, match="its folder does not exist"):
        fit.save(tmp_path / "nowhere" / "fit.npz")


@pytest.mark.parametrize(
    "change",
    [
        {"probabilities": np.full((2, 5, 5), 0.3)},
        {"initial": np.ones(4)},
        {"bootstrap": np.full((3, 2, 5, 5), -0.2)},
        {"inspected": np.zeros((5, 2), dtype=np.int64)},
        {"n_units": -1},
        {"period": 3},
    ],
)
def test_what_does_not_fit_together_is_refused(tmp_path, fit, change):
    dataclasses.replace(fit, **change).save(tmp_path / "fit.npz")
    with pytest.raises(am.FitError):
        am.Fit.load(tmp_path / "fit.npz")


def test_the_summary_tells_all(fit):
    text = fit.summary()
    for part in (
        "40 units",
        "0 < 1 < 2 < 3 < 4",
        "noticed without an inspection: 4",
        "90 % interval",
        "years",
        "Goodness of fit",
    ):
        assert part in text
    assert "3 replicates" in repr(fit)


PRICES = am.Economics(
    currency="EUR", period="year", discount=0.95, inspection=10.0, actions={"repair": 50.0}, running={"4": 100.0}
)
ODD = [
    None,
    True,
    -1,
    0,
    2,
    0.5,
    1e308,
    2**70,
    "",
    "x",
    "\u202eage\n",
    [],
    [1],
    ["a"],
    ["a", "a"],
    {},
    {"tests": []},
    [None],
]


def told(path):
    """What a file says of itself, and its other members."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    about = np.lib.format.read_array(io.BytesIO(members.pop("about.npy")))
    return json.loads(about.tobytes()), members


def write(path, about, members):
    file = io.BytesIO()
    np.lib.format.write_array(file, np.frombuffer(json.dumps(about).encode(), np.uint8), version=(1, 0))
    with zipfile.ZipFile(path, "w") as archive:
        for name, contents in (members | {"about.npy": file.getvalue()}).items():
            archive.writestr(name, contents)


def use(fit):
    """Everything a fit is for; our own errors, such as of prices that do not fit, are an answer too."""
    assert "units" in fit.summary()
    assert "Fit(" in repr(fit)
    assert isinstance(fit.unknown, tuple)
    try:
        fit.model(PRICES)
        list(fit.models(PRICES) if fit.bootstrap is not None else ())
        fit.without(fit.action_names[:1])
        assert all(str(one).isprintable() for one in fit_diagnostics(fit, PRICES))
    except am.ActMeasureError:
        pass


def places(found, at=()):
    """All places in nested lists and mappings."""
    yield at
    pairs = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
    for key, value in pairs:
        yield from places(value, (*at, key))


def replaced(found, at, value):
    copy = json.loads(json.dumps(found))
    if not at:
        return value
    inner = copy
    for key in at[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[at[-1]]
    else:
        inner[at[-1]] = value
    return copy


def test_whatever_is_changed_is_refused_or_works(tmp_path, fit):
    path = tmp_path / "fit.npz"
    fit.save(path)
    about, members = told(path)
    loaded, messages = 0, []
    for at in places(about):
        for value in (*ODD, ...):
            write(path, replaced(about, at, value) if at or value is not ... else {}, members)
            try:
                found = am.Fit.load(path)
            except am.FitError as error:
                messages.append(str(error))
                continue
            loaded += 1
            use(found)
    assert loaded > 50
    assert len(messages) > 50
    assert all(message.isprintable() for message in messages)  # nothing of the file acts on the terminal


@pytest.mark.parametrize(
    "name", ["probabilities", "low", "high", "bootstrap", "initial", "inspected", "exposure", "assumed"]
)
def test_whatever_number_is_changed_is_refused_or_works(tmp_path, fit, name):
    path = tmp_path / "fit.npz"
    rng = np.random.default_rng(0)
    array = getattr(fit, name)
    values = (
        [-1, 2, 0, 10**15] if array.dtype.kind in "ib" else [np.nan, np.inf, -np.inf, -0.5, 1.5, 1e308, 0.0, 1e-320]
    )
    for value in values:
        for everywhere in (False, True):
            changed = np.array(array)
            if everywhere:
                changed[...] = value
            else:
                changed.flat[rng.integers(changed.size)] = value
            dataclasses.replace(fit, **{name: changed}).save(path)
            try:
                found = am.Fit.load(path)
            except am.FitError:
                continue
            use(found)


def test_diagnostics_of_version_1_are_read_as_text(tmp_path, fit):
    path = tmp_path / "fit.npz"
    fit.save(path)
    about, members = told(path)
    assert about["version"] == 3
    sentences = {
        "identifiability": ["Flat."],
        "warnings": ["Few units.", "State 'B' was never seen."],
        "notes": ["Assumed."],
    }
    old = about | {"version": 1} | sentences
    old["goodness"] = about["goodness"] | {"findings": ["It does not fit."]}
    write(path, old, members)
    found = am.Fit.load(path)
    for name, texts in sentences.items():
        assert [str(one) for one in getattr(found, name)] == texts
        assert {one.code for one in getattr(found, name)} == {"stored-text"}
    assert [one.severity for one in (*found.warnings, *found.notes)] == ["warning", "warning", "info"]
    assert str(found.goodness.findings[0]) == "It does not fit."
    found.save(path)
    assert am.Fit.load(path).warnings == found.warnings
    write(path, old | {"version": 4}, members)
    with pytest.raises(am.FitError, match="reads versions up to 3; update actmeasure"):
        am.Fit.load(path)


@pytest.mark.parametrize(
    "wrong",
    [
        {"code": "few-unit"},
        {"severity": "info"},
        {"numbers": {}},
        {"numbers": {"units": [1, 2]}},
        {"numbers": {"units": "2"}},
        {"names": {"x": 3}},
        {"more": 1},
    ],
)
def test_damaged_diagnostics_are_refused(tmp_path, fit, wrong):
    path = tmp_path / "fit.npz"
    fit.save(path)
    about, members = told(path)
    sound = {"code": "few-units", "severity": "warning", "numbers": {"units": 2}, "names": {}}
    write(path, about | {"warnings": [sound]}, members)
    assert am.Fit.load(path).warnings == (diagnostic("few-units", units=2),)
    write(path, about | {"warnings": [sound | wrong]}, members)
    with pytest.raises(am.FitError, match="the file is damaged"):
        am.Fit.load(path)


@pytest.mark.parametrize("member", ["low.npy", "high.npy", "bootstrap.npy"])
def test_intervals_are_there_together_or_not_at_all(tmp_path, fit, member):
    path = tmp_path / "fit.npz"
    fit.save(path)
    about, members = told(path)
    del members[member]
    write(path, about, members)
    with pytest.raises(am.FitError, match="but not all of low, high, bootstrap"):
        am.Fit.load(path)


def test_an_unknown_test_of_the_goodness_is_refused_when_it_is_loaded(tmp_path, fit):
    path = tmp_path / "fit.npz"
    fit.save(path)
    about, members = told(path)
    about["goodness"]["tests"][0]["name"] = "agee"
    write(path, about, members)
    with pytest.raises(
        am.FitError, match=r"goodness\.tests\[0\]\.name: Invalid enum value 'agee'.*the file is damaged"
    ):
        am.Fit.load(path)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"default_action": "nonsense"}, "'default_action' is 'nonsense', which does not fit its actions"),
        ({"structure": ["nonsense", "any"]}, "'structure' names 'nonsense', which is none"),
        ({"structure": ["any", "any+nonsense"]}, "'structure' names 'nonsense', which is none"),
        (
            {"notes": [{"code": "states-sorted", "severity": "info", "numbers": {}, "names": {"states": "nonsense"}}]},
            "the diagnostic 'states-sorted' is not one that a fit has",
        ),
    ],
)
def test_texts_that_no_fit_has_are_refused_when_they_are_loaded(tmp_path, fit, changes, reason):
    path = tmp_path / "fit.npz"
    fit.save(path)
    about, members = told(path)
    write(path, about | changes, members)
    with pytest.raises(am.FitError, match=re.escape(reason)):
        am.Fit.load(path)


EVIL = "\u202eevil\x1b[31m\x00\n\u2028"


def test_control_characters_in_names_are_shown_escaped(tmp_path, fit):
    path = tmp_path / "fit.npz"
    fit.save(path)
    about, members = told(path)
    for name in ("state_names", "action_names"):
        about[name] = [text + EVIL for text in about[name]]
    about["default_action"] += EVIL
    evil = {"code": "stored-text", "severity": "info", "numbers": {}, "names": {"text": EVIL}}
    about |= {"warnings": [evil], "notes": [evil], "identifiability": [evil]}
    about |= {"noticed": ["4" + EVIL], "dropped": [EVIL], "period": "year" + EVIL}
    about["goodness"]["findings"] = [evil]
    write(path, about, members)
    found = am.Fit.load(path)
    assert found.state_names[0] == "0" + EVIL  # as it is in the data
    for text in (repr(found), *found.summary().split("\n")):
        assert text.isprintable(), text
    with pytest.raises(am.FitError) as error:
        found.model(PRICES)
    assert str(error.value).isprintable()
