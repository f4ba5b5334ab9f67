"""Damaged and foreign .npz files."""

import io
import json
import zipfile

import numpy as np
import pytest
from model_strategies import check_sound, small_model

import actmeasure as am
from actmeasure.files import npz

MODEL = small_model(initial=[0.5, 0.5, 0, 0], measuring_cost=np.arange(8.0).reshape(4, 2))


def members():
    file = io.BytesIO()
    npz.write(MODEL, file)
    with np.load(io.BytesIO(file.getvalue()), allow_pickle=False) as archive:  # NumPy itself can read it
        return {name: archive[name] for name in archive.files}


def load(arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return npz.read(file.getvalue())


def changed(name, value):
    return members() | {name: value}


def about(**changes):
    header = json.loads(members()["about"].tobytes()) | changes
    return np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)


def test_arrays_saved_by_numpy_are_read():
    assert load(members()).equals(MODEL)


def test_files_are_the_same_every_time():
    files = [io.BytesIO(), io.BytesIO()]
    for file in files:
        npz.write(MODEL, file)
    assert files[0].getvalue() == files[1].getvalue()


def entry(name, index, value):
    array = members()[name].copy()
    array[index] = value
    return array


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("offsets", members()["offsets"][:-1], "shape"),
        ("offsets", entry("offsets", 3, -1), "out of range"),
        ("offsets", entry("offsets", 3, 2**63 - 1), "out of range"),
        ("offsets", entry("offsets", 1, 9), "not ascending"),
        ("offsets", entry("offsets", 0, 1), "do not fit"),
        ("successors", entry("successors", 0, 99), "outside 0..3"),
        ("successors", entry("successors", 0, 3), "not sorted"),
        ("successors", members()["successors"].astype(np.int64), "type <i4"),
        ("probabilities", entry("probabilities", 0, 0.0), "probability of 0"),
        ("probabilities", entry("probabilities", 0, np.nan), "expected a probability"),
        ("probabilities", entry("probabilities", 0, -0.8), "expected a probability"),
        ("probabilities", entry("probabilities", 0, 0.7), "sums to 0.9"),
        ("probabilities", members()["probabilities"][:-1], "shape"),
        ("probabilities", members()["probabilities"].astype(">f8"), "type <f8"),
        ("rewards", entry("rewards", (0, 0), np.inf), "finite"),
        ("rewards", entry("rewards", (0, 0), 5.0), "successors give"),
        ("rewards", np.asfortranarray(members()["rewards"]), "C order"),
        ("rewards", members()["rewards"].ravel(), "expected \\(states, actions\\)"),
        ("rewards", np.zeros((4, 0)), "shape"),
        ("transition_rewards", entry("transition_rewards", 0, np.nan), "finite"),
        ("transition_rewards", entry("transition_rewards", 0, 7.0), "successors give"),
        ("transition_rewards", np.zeros(1), "shape"),
        ("terminal", entry("terminal", 2, True), "state 2 is terminal, but has transitions"),
        ("terminal", np.ones(4, dtype=bool), "every state is terminal"),
        ("terminal", members()["terminal"].astype(np.uint8), "type |b1"),
        ("initial_states", entry("initial_states", 1, 4), "ascending numbers from 0 to 3"),
        ("initial_states", entry("initial_states", 1, 3), "terminal"),
        ("initial_states", entry("initial_states", 1, 0), "ascending"),
        ("initial_states", np.zeros(0, dtype=np.int64), "shape|ascending"),
        ("initial_probabilities", entry("initial_probabilities", 0, 0.0), "probability 0"),
        ("initial_probabilities", entry("initial_probabilities", 0, np.nan), "expected a probability"),
        ("initial_probabilities", entry("initial_probabilities", 0, 0.25), "sums to 0.75"),
        ("measuring_cost", entry("measuring_cost", (0, 0), -1.0), "0 or more"),
        ("measuring_cost", np.full((), np.nan), "0 or more"),
        ("measuring_cost", np.zeros(8), "shape"),
        ("about", about(discount=1.5), "discount is 1.5"),
        ("about", about(discount="0.9"), "expected a finite number"),
        ("about", about(discount=True), "expected a finite number"),
        ("about", about(reveal_start=1), "true or false"),
        ("about", about(state_names=["a", "b"]), "2 names, expected 4"),
        ("about", about(state_names=["a", "b", "c", 4]), r"'about': 'state_names\[3\]' is 4, expected a string"),
        ("about", about(action_names=["a", "a"]), "more than once"),
        ("about", about(version=3), "update actmeasure"),
        ("about", about(version="1"), "version"),
        ("about", about(format="something else"), "not a model file of actmeasure"),
        ("about", about(format="actmeasure fit"), "not a model file of actmeasure; it is a fit: .*actmeasure plan"),
        ("about", about(extra=1), "unknown key 'extra'"),
        ("about", np.frombuffer(b"\xff\xfe", dtype=np.uint8), "not text"),
        ("about", np.frombuffer(b"[" * 9_000, dtype=np.uint8), "nested too deeply"),
        ("about", np.frombuffer(b"{", dtype=np.uint8), "not valid JSON"),
        ("about", np.frombuffer(b"null", dtype=np.uint8), "not a model file"),
        ("surprise", np.zeros(3), "unknown key 'surprise'"),
    ],
)
def test_damage_is_named(name, value, message):
    with pytest.raises(am.ModelError, match=message):
        load(changed(name, value))


def test_a_newer_version_is_refused_whatever_it_holds():
    with pytest.raises(am.ModelError, match=r"version 7.*update actmeasure"):
        load({"about": about(version=7), "new": np.zeros(3)})


@pytest.mark.parametrize("name", [name for name in members() if name != "transition_rewards"])
def test_missing_arrays(name):
    arrays = members()
    del arrays[name]
    with pytest.raises(am.ModelError, match=name):
        load(arrays)


def test_rewards_per_successor_may_be_absent():
    arrays = members()
    del arrays["transition_rewards"]
    loaded = load(arrays)
    assert loaded.transition_rewards is None
    check_sound(loaded)


def test_terminal_states_pay_nothing():
    arrays = changed("rewards", entry("rewards", (3, 0), 1.0))
    with pytest.raises(am.ModelError, match=r"successors give|terminal"):
        load(arrays)
    del arrays["transition_rewards"]
    with pytest.raises(am.ModelError, match="state 3 is terminal, but has a reward"):
        load(arrays)


def test_offsets_that_overflow_are_no_way_around_the_checks():
    offsets = members()["offsets"].copy()
    offsets[1:5] = 2**63 - 1, -(2**63), -1, 3
    with pytest.raises(am.ModelError, match="out of range"):
        load(changed("offsets", offsets))


def test_pickles_are_never_opened():
    file = io.BytesIO()
    np.savez(file, allow_pickle=True, **changed("offsets", np.array([{}, None], dtype=object)))
    with pytest.raises(am.ModelError, match="type <i8"):
        npz.read(file.getvalue())


def test_truth_values_are_zero_or_one():
    file, other = io.BytesIO(), io.BytesIO()
    npz.write(MODEL, file)
    with zipfile.ZipFile(file) as source, zipfile.ZipFile(other, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            target.writestr(name, data[:-1] + b"\x07" if name == "terminal.npy" else data)
    with pytest.raises(am.ModelError, match="other than true and false"):
        npz.read(other.getvalue())


def with_member(name, data):
    file, other = io.BytesIO(), io.BytesIO()
    npz.write(MODEL, file)
    with zipfile.ZipFile(file) as source, zipfile.ZipFile(other, "w") as target:
        for known in source.namelist():
            target.writestr(known, data if known == name else source.read(known))
    return other.getvalue()


def npy(header, data=b""):
    text = header.encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x93NUMPY",
        b"\x93NUMPY\x03\x00" + bytes(20),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (999999999999,), }\n"),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (" + "9" * 5000 + ",), }\n"),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (" + "1," * 100 + "), }\n", bytes(8)),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }\n", bytes(15)),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }\n", bytes(17)),
        npy("{'descr': '|O', 'fortran_order': False, 'shape': (2,), }\n", bytes(16)),
        npy("__import__('os')\n", bytes(16)),
    ],
)
def test_headers_that_lie(data):
    with pytest.raises(am.ModelError, match=r"array|archive"):
        npz.read(with_member("probabilities.npy", data))


def test_a_zip_of_something_else():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(am.ModelError, match="no member 'about'"):
        npz.read(file.getvalue())


def test_other_compression_is_refused():
    file, other = io.BytesIO(), io.BytesIO()
    npz.write(MODEL, file)
    with zipfile.ZipFile(file) as source, zipfile.ZipFile(other, "w", zipfile.ZIP_LZMA) as target:
        for name in source.namelist():
            target.writestr(name, source.read(name))
    with pytest.raises(am.ModelError, match="packed in an unknown way"):
        npz.read(other.getvalue())
