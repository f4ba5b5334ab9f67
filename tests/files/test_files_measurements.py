"""Measurements in `.json` and `.npz` files and in the comment line of `.pomdp` files: damage is named, memory is not reserved."""

import copy
import io
import json
import tracemalloc

import numpy as np
import pytest
from model_strategies import check_sound, measuring_model

import actmeasure as am
from actmeasure.files import json_format, npz

MODEL = measuring_model()


def document():
    return json.loads("".join(json_format.lines(MODEL)))


def load(data):
    return json_format.read((data if isinstance(data, str) else json.dumps(data)).encode())


def changed(number, **changes):
    """The document with changed keys of a measurement; None removes one."""
    data = document()
    data["measurements"][number] |= changes
    data["measurements"][number] = {
        key: value for key, value in data["measurements"][number].items() if value is not None
    }
    return data


def test_the_file_reads_well():
    text = "".join(json_format.lines(MODEL))
    assert '"version": 2,' in text
    assert (
        '    {"name": "visual", "kind": "outcomes", "cost": 0.25, "outcomes": ["miss", "hit"], "probabilities": {'
        in text
    )
    assert '      "here": {"miss": 0.9, "hit": 0.1},' in text
    assert '"with_actions": ["wait"]' in text
    assert '  "passive": {"name": "alarm", "kind": "outcomes", "outcomes": ["off", "on"], "probabilities": {' in text
    assert load(text) == MODEL


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (document() | {"measurements": {}}, "'measurements' is {}, expected a list"),
        (document() | {"measurements": [1]}, r"measurements\[0\] is 1, expected an object"),
        (document() | {"passive": 1}, "passive is 1, expected an object"),
        (document() | {"measuring_cost": 1}, "'measuring_cost' and 'measurements' are both given"),
        (changed(0, name=1), r"measurements\[0\]: 'name' is 1, expected a string"),
        (changed(0, name=" "), "the name of a measurement is ' '"),
        (changed(0, name="opening"), "two measurements are named 'opening'"),
        (changed(0, name="alarm"), "both named 'alarm'"),
        (changed(0, kind="noisy"), "'kind' is 'noisy', expected 'exact' or 'outcomes'"),
        (changed(0, kind=None), "has no 'kind'"),
        (changed(0, kind="exact"), "it is exact, and 'probabilities' is given"),
        (changed(0, colour=1), r"measurements\[0\] \('visual'\): unknown key 'colour'"),
        (changed(0, cost=-1), "the cost of the measurement 'visual' is -1"),
        (changed(0, cost="1"), "'cost' is '1', expected a finite number or an object"),
        (changed(0, cost={"her": {}}), "cost of 'her': unknown state 'her'; did you mean 'here'"),
        (changed(0, cost={"here": 1}), "cost of 'here' is 1, expected an object"),
        (changed(0, cost={"here": {"g": 1}}), "unknown action 'g'"),
        (changed(0, cost={"here": {"go": None}}), "cost of 'here', 'go' is None, expected a finite number"),
        (changed(0, cost={"here": {"go": -2}}), r"\[state 0, action 0\] is -2.0"),
        (changed(0, outcomes=["miss"]), "unknown outcome 'hit'"),
        (changed(0, outcomes=["miss", "miss"]), "'outcomes' has 'miss' more than once"),
        (changed(0, outcomes=[]), "'outcomes' is empty"),
        (changed(0, outcomes=2), "unknown outcome 'miss'; use numbers from 0 to 1"),
        (changed(0, outcomes=10**9), "unknown outcome 'miss'"),
        (changed(0, outcomes=10**12), "whole number"),
        (changed(0, outcomes=10**9, probabilities={name: {"0": 1} for name in document()["states"]}), "1,000,000,000 outcomes"),
        (changed(0, outcomes=None), "expected 'outcomes' and one of"),
        (changed(0, probabilities=None), "expected 'outcomes' and one of"),
        (changed(0, probabilities_by_action={}), "expected 'outcomes' and one of"),
        (changed(0, probabilities=[]), r"'probabilities' is \[\], expected an object"),
        (changed(0, probabilities={}), r"in state 0 \('here'\) sum to 0"),
        (changed(0, probabilities={"here": {"hit": 0.5}}), "sum to 0.5 .hit 0.5., expected 1"),
        (changed(0, probabilities={"here": {"hit": 1.5}}), "'hit': 1.5 is not a probability between 0 and 1"),
        (changed(0, probabilities={"here": {"hit": True}}), "probabilities, 'here', 'hit' is True, expected a finite number"),
        (changed(0, probabilities={"here": 1}), "probabilities, 'here' is 1, expected an object"),
        (changed(0, probabilities={"hier": {}}), "unknown state 'hier'"),
        (changed(2, probabilities_by_action={"go": 1}), "probabilities_by_action of 'go' is 1, expected an object"),
        (changed(2, probabilities_by_action={"g": {}}), "unknown action 'g'"),
        (changed(2, probabilities_by_action={}), "sum to 0"),
        (changed(1, with_actions=["stop"]), "with_actions: unknown action 'stop'"),
        (changed(1, with_actions=[0]), "0 is no name of action"),
        (changed(1, with_actions=[]), "expected names or numbers of actions"),
        (document() | {"passive": document()["measurements"][0]}, "has a price|both named"),
        (document() | {"passive": document()["measurements"][1] | {"name": "x", "cost": 0}}, "has with_actions"),
    ],
)  # fmt: skip
def test_the_place_is_named(data, message):
    with pytest.raises(am.ModelError, match=message):
        load(data)


def test_prices_stand_with_measurements():
    data = document()
    data["transitions"][0]["measuring_cost"] = 1.0
    with pytest.raises(am.ModelError, match="'measuring_cost' is given here and for measurements"):
        load(data)


def test_what_may_be_left_out():
    data = document()
    del data["version"], data["reveal_start"], data["measurements"]
    assert load(data).measurements == ()
    assert not load(data).reveal_start
    with_price = load(data | {"measuring_cost": 0.5})
    assert with_price.measuring_cost == 0.5
    assert with_price.passive.equals(MODEL.passive)


def archive():
    file = io.BytesIO()
    npz.write(MODEL, file)
    with np.load(io.BytesIO(file.getvalue()), allow_pickle=False) as members:
        return {name: members[name] for name in members.files}


def read_archive(**changes):
    file = io.BytesIO()
    np.savez(file, **{name: array for name, array in (archive() | changes).items() if array is not None})
    return npz.read(file.getvalue())


def about(**changes):
    header = json.loads(archive()["about"].tobytes()) | changes
    return np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)


def about_measurement(number, **changes):
    described = json.loads(archive()["about"].tobytes())["measurements"]
    described[number] |= changes
    return about(measurements=described)


def entry(name, index, value):
    array = archive()[name].copy()
    array[index] = value
    return array


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"allowed": np.ones((3, 3), dtype=bool)}, r"'allowed' has shape \(3, 3\), expected \(3, 2\)"),
        ({"allowed": np.ones(3, dtype=bool)}, r"'allowed' has shape \(3,\), expected \(3, 2\)"),
        ({"allowed": entry("allowed", (1, 1), False)}, "expected names or numbers of actions"),
        ({"allowed": None}, "the archive has no 'allowed'"),
        ({"price_tables": np.zeros((2, 4, 2))}, r"'price_tables' has shape \(2, 4, 2\), expected \(1, 4, 2\)"),
        ({"price_tables": entry("price_tables", (0, 0, 0), -1)}, r"measuring|is -1.0, expected a finite number"),
        ({"law_offsets": entry("law_offsets", 1, 2**62)}, "'law_offsets' are not ascending"),
        ({"law_offsets": entry("law_offsets", 0, -1)}, "'law_offsets' are not ascending"),
        ({"law_offsets": archive()["law_offsets"][:-1]}, "'law_offsets' has shape"),
        ({"law_outcomes": entry("law_outcomes", 0, 7)}, r"measurements\[0\]: an outcome is not a number from 0 to 1"),
        ({"law_outcomes": entry("law_outcomes", 0, -1)}, "an outcome is not a number"),
        ({"law_outcomes": entry("law_outcomes", 0, 1)}, "not sorted by outcome"),
        ({"law_outcomes": archive()["law_outcomes"][:-1]}, "'law_probabilities' has shape"),
        ({"law_probabilities": entry("law_probabilities", 0, 0.0)}, "a probability is 0"),
        ({"law_probabilities": entry("law_probabilities", 0, np.nan)}, "expected a probability between 0 and 1"),
        ({"law_probabilities": entry("law_probabilities", 0, 0.5)}, "sum to 0.6"),
        ({"measuring_cost": np.array(1.0)}, "'measurements', but there is an array 'measuring_cost'"),
        ({"about": about(measurements=None)}, "no 'measurements', but there are arrays of them"),
        ({"about": about(measurements=[])}, r"expected \(0, 2\)"),
        ({"about": about(passive=None)}, "'law_offsets' has shape"),
        ({"about": about_measurement(0, name="")}, r"measurements\[0\]: the name of a measurement is ''"),
        ({"about": about_measurement(0, cost=-1)}, r"measurements\[0\]: the cost of the measurement 'visual' is -1"),
        ({"about": about_measurement(0, cost=None)}, "'price_tables' has shape"),
        ({"about": about_measurement(0, cost="1")}, r"'about': measurements\[0\]: 'cost' is '1'"),
        ({"about": about_measurement(0, outcomes=["a", "a"])}, "the outcome 'a' is there more than once"),
        ({"about": about_measurement(0, outcomes=["a"])}, "an outcome is not a number from 0 to 0"),
        ({"about": about_measurement(0, outcomes=None)}, "'law_offsets' has shape"),
        ({"about": about_measurement(0, by_action=True)}, "'law_offsets' has shape"),
        ({"about": about_measurement(0, extra=1)}, "unknown key 'extra'"),
    ],
)  # fmt: skip
def test_damaged_arrays_are_named(changes, message):
    with pytest.raises(am.ModelError, match=message):
        read_archive(**changes)


def test_sound_arrays_are_read():
    assert read_archive() == MODEL


@pytest.mark.parametrize("name", ["price_tables", "law_offsets", "law_outcomes", "law_probabilities", "allowed"])
def test_arrays_that_are_too_large_are_refused_before_they_are_read(name):
    kind = archive()[name].dtype
    file = io.BytesIO()
    np.savez_compressed(file, **(archive() | {name: np.zeros(5_000_000, dtype=kind)}))
    contents = file.getvalue()
    tracemalloc.start()
    try:
        with pytest.raises(am.ModelError, match="damaged"):
            npz.read(contents)
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


def mutated(value, rng):
    """Parsed JSON with one value changed, removed or repeated somewhere."""
    strange = [None, True, -1, 0, 1, 2, 0.5, 1e300, 2**31, "", "x", [], {}, [0], [[0.5]], {"here": 1}, ["a", "a"]]
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = list(value)[int(rng.integers(len(value)))]
        if rng.random() < 0.1:
            return {name: inner for name, inner in value.items() if name != key}
        return value | {key: mutated(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.8:
        at = int(rng.integers(len(value)))
        if rng.random() < 0.2:
            return value[:at] + value[at + 1 :] if rng.random() < 0.5 else [*value, value[at]]
        return [*value[:at], mutated(value[at], rng), *value[at + 1 :]]
    return copy.deepcopy(strange[int(rng.integers(len(strange)))])


def mutated_file(whole, suffix, rng):
    """The contents of a file with its JSON mutated: all of it, the member `about`, or the comment line."""
    if suffix == ".json":
        return json.dumps(mutated(json.loads(whole), rng)).encode()
    if suffix == ".pomdp":
        comment, body = whole.decode().split("\n", 1)
        return f"# actmeasure {json.dumps(mutated(json.loads(comment.removeprefix('# actmeasure ')), rng))}\n{body}".encode()
    with np.load(io.BytesIO(whole)) as members:
        arrays = {name: members[name] for name in members.files}
    text = json.dumps(mutated(json.loads(arrays["about"].tobytes()), rng))
    file = io.BytesIO()
    np.savez(file, **(arrays | {"about": np.frombuffer(text.encode(), dtype=np.uint8)}))
    return file.getvalue()


@pytest.mark.parametrize(
    "model", [MODEL, measuring_model(initial=[0.5, 0.5, 0, 0], reveal_start=True)], ids=["plain", "start"]
)
@pytest.mark.parametrize("suffix", [".json", ".npz", ".pomdp"])
def test_mutated_json_is_an_error_or_a_sound_model(model, suffix, tmp_path):
    path = tmp_path / f"model{suffix}"
    model.save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(1)
    accepted = 0
    for _ in range(300):
        path.write_bytes(mutated_file(whole, suffix, rng))
        try:
            loaded = am.Model.load(path)
        except am.ModelError:
            continue
        check_sound(loaded)
        accepted += 1
    assert accepted < 150
