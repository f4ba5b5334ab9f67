"""Hand-written and damaged .json files."""

import json

import pytest
from model_strategies import small_model

import actmeasure as am
from actmeasure.files import json_format


def document(**changes):
    data = json.loads("".join(json_format.lines(small_model())))
    return data | changes


def load(data):
    return json_format.read((data if isinstance(data, str) else json.dumps(data)).encode())


def line(index=0, **changes):
    data = document()
    data["transitions"][index] |= changes
    return data


def without(data, key):
    return {name: value for name, value in data.items() if name != key}


def test_one_transition_to_a_line():
    text = "".join(json_format.lines(small_model()))
    first = (
        '{"state": "here", "action": "go", "to": {"there": 0.8, "stuck": 0.2}, "reward": {"there": 0.1, "stuck": 0.0}},'
    )
    assert f"    {first}" in text.splitlines()
    assert '    {"state": "here", "action": "wait", "to": {"here": 1.0}, "reward": 0.0},' in text.splitlines()


def test_without_names_states_are_numbers():
    text = "".join(json_format.lines(small_model(state_names=None, action_names=None)))
    assert '"states": 4' in text
    assert '"start": {"0": 1.0}' in text
    assert '"terminal": [3]' in text
    assert '    {"state": 0, "action": 1, "to": {"0": 1.0}, "reward": 0.0},' in text.splitlines()


def test_letters_of_all_scripts_stay_readable():
    text = "".join(json_format.lines(small_model(state_names=("hier", "là", "どこ", "end"))))
    assert "どこ" in text


def test_what_a_person_writes():
    model = load(document(start={"here": 1}, discount=0.5, measuring_cost=2))
    assert model.discount == 0.5
    assert model.measuring_cost == 2.0
    model = load(line(0, to={"stuck": 0.2, "here": 0, "there": 0.8}, reward={"here": 9, "stuck": 1, "there": 2}))
    assert model.transitions.row(0, 0)[0].tolist() == [1, 2]
    assert model.transition_rewards[:2].tolist() == [2.0, 1.0]


def test_what_a_person_need_not_write():
    short = document()
    for key in ("version", "start", "reveal_start"):
        del short[key]
    assert load(short) == small_model()
    with pytest.raises(am.ModelError, match="no transition for state 'end'"):
        load(without(short, "terminal"))
    endless = {
        "format": "actmeasure model", "discount": 0.5, "states": 1, "actions": 1,
        "transitions": [{"state": 0, "action": 0, "to": {"0": 1}, "reward": 1, "measuring_cost": 2}],
    }  # fmt: skip
    model = load(endless)
    assert (model.terminal.tolist(), model.initial_states.tolist(), model.reveal_start) == ([False], [0], True)


def test_a_byte_order_mark_is_no_harm():
    assert json_format.read(b"\xef\xbb\xbf" + json.dumps(document()).encode()).equals(small_model())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("", "line 1, column 1 is not valid JSON"),
        ("[]", "not a model file of actmeasure"),
        ("{}", 'not a model file of actmeasure; .* add the line "format": "actmeasure model"'),
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        ('{"format": "actmeasure model", "version": 1, "version": 1}', "'version' is given twice"),
        (json.dumps(document()).replace("0.95", "NaN"), "holds NaN"),
        (json.dumps(document()).replace("0.95", "-Infinity"), "holds -Infinity"),
        (json.dumps(document()).replace("0.95", "1e999"), "'discount' is inf"),
        (json.dumps(document()).replace("0.95", "9" * 309), "'discount' is 9+"),
        (json.dumps(document()).replace("0.95", "9" * 5000), "5000 digits"),
        (json.dumps(document())[:-1], "not valid JSON"),
        (json.dumps(document()).replace('"here"', '"here', 1), "not valid JSON"),
        (document(version=3), "update actmeasure"),
        (document(version=0), "version is 0"),
        (document(version=True), "version is True"),
        (document(format="x"), "not a model file"),
        (document(**{"a` - at `$.b": 1}), "unknown key 'a` - at `\\$.b'"),
        (document(discont=1), "unknown key 'discont'; did you mean 'discount'"),
        (without(document(), "discount"), "no 'discount'"),
        (without(document(), "measuring_cost"), "no 'measuring_cost', neither here nor"),
        (line(0, measuring_cost=1), "given here and for the whole model"),
        (document(discount=None), "'discount' is None"),
        (document(discount=0), "discount is 0"),
        (document(reveal_start="yes"), "true or false"),
        (document(measuring_cost=-1), "0 or more"),
        (document(measuring_cost="much"), "'measuring_cost' is 'much'"),
        (document(states=[]), "'states' is empty"),
        (document(states=["here", "here", "stuck", "end"]), "'here' more than once"),
        (document(states=["here", 1, "stuck", "end"]), "'states\\[1\\]' is 1, expected a string"),
        (document(states={}), "whole number"),
        (document(states=10**12), "whole number"),
        (document(states=2_000_000_000), "only 7 lines"),
        (document(actions=0), "whole number of at least 1"),
        (document(actions=2.0), "whole number"),
        (document(actions=3), "have no names|whole number"),
        (document(terminal=["ende"]), "terminal\\[0\\]: unknown state 'ende'; did you mean 'end'"),
        (document(terminal=[3]), "the states have names, use them"),
        (document(terminal="end"), "'terminal' is 'end', expected a list"),
        (document(terminal=["here", "there", "stuck", "end"]), "terminal, where no action is taken"),
        (document(terminal=[]), "no transition for state 'end', action 'go'"),
        (document(start={"end": 1}), "terminal"),
        (document(start={}), "sums to 0"),
        (document(start={"her": 1}), "'start': unknown state 'her'; did you mean 'here'"),
        (document(start={"here": 0.5}), "sums to 0.5"),
        (document(start=["here"]), "'start' is"),
        (document(start={"here": None}), "'start' of 'here' is None"),
        (document(transitions={}), "expected a list"),
        (document(transitions=document()["transitions"][1:]), "no transition for state 'here', action 'go'"),
        (document(transitions=[*document()["transitions"], document()["transitions"][0]]), "given twice"),
        (document(transitions=[1]), "transitions\\[0\\] is 1, expected an object"),
        (line(2, stat="x"), "transitions\\[2\\] .*: unknown key 'stat'; did you mean 'state'"),
        (line(2, state="ther"), "transitions\\[2\\] .*: unknown state 'ther'; did you mean 'there'"),
        (line(2, state=None), "'state' is None, expected a whole number or a string"),
        (line(2, state=1), "1 is no name of state"),
        (line(2, state="end"), "the state is terminal"),
        (line(2, measuring_cost=[]), "'measuring_cost' is \\[\\], expected a finite number"),
        (line(0, reward={"there": 1, "stuck": 1e308 * 10}), "Infinity"),
        (json.dumps(line(0, reward={"there": 1, "stuck": 9.5})).replace("9.5", "1e999"), "'reward' of 'stuck' is inf"),
        (without(document(), "states"), "it has no 'states'; add it"),
        (document(transitions=[{"state": "here"}]), "transitions\\[0\\] has no 'action'"),
        (document(**{"\ud800": 1}), r"unknown key '\\ud800'"),
        (line(2, **{"\ud800": 1}), r"transitions\[2\] .*: unknown key '\\ud800'"),
        (document(start={"\ud800": None}), r"'start' of '\\ud800' is None"),
        (line(2, action="og"), "unknown action 'og'; did you mean 'go'"),
        (line(0, to={}), "'to' is"),
        (line(0, to={"there": 1}), "unknown key 'stuck'"),
        (line(0, to={"there": 0.8, "stick": 0.2}, reward=0), "transitions\\[0\\] .*, to: unknown state 'stick'"),
        (line(0, to={"there": 0.8, "stuck": 0.1}), "sums to 0.9"),
        (line(0, to={"there": 1.2, "stuck": -0.2}), "is not a probability"),
        (line(0, to={"there": "0.8", "stuck": 0.2}), "'to' of 'there' is '0.8', expected a finite number"),
        (line(0, to={"there": True, "stuck": 0.2}), "'to' of 'there' is True"),
        (line(0, to={"there": 0, "stuck": 0}), "sums to 0"),
        (line(0, reward=None), "'reward' is None"),
        (line(0, reward={"there": 1}), "has no 'stuck'"),
        (line(0, reward={"there": 1, "stuck": "2"}), "'reward' of 'stuck' is '2'"),
        (line(0, expected_reward=7), "successors give"),
        (line(0, expected_reward=[]), "'expected_reward' is \\[\\]"),
    ],
)
def test_the_place_is_named(data, message):
    with pytest.raises(am.ModelError, match=message):
        load(data)


def test_bytes_that_are_no_text():
    with pytest.raises(am.ModelError, match="byte 1 is not UTF-8"):
        json_format.read(b"{\xff}")


@pytest.mark.parametrize("key", ["01", "4", "-1", "1.0", " 1", "\uff11"])
def test_numbers_of_states_are_plain(key):
    data = json.loads("".join(json_format.lines(small_model(state_names=None))))
    with pytest.raises(am.ModelError, match="use numbers from 0 to 3"):
        load(data | {"start": {key: 1.0}})
    with pytest.raises(am.ModelError, match="expected a whole number from 0 to 3"):
        load(data | {"terminal": [key]})


def test_expected_rewards_need_rewards_per_successor():
    data = document()
    for entry in data["transitions"]:
        entry["reward"] = 0.0
    data["transitions"][0]["expected_reward"] = 0.0
    with pytest.raises(am.ModelError, match="goes with rewards per successor"):
        load(data)


def test_many_names_are_not_all_listed():
    lake = am.problems.frozen_lake(8)
    named = lake.replace(state_names=[f"cell-{state}" for state in range(64)])
    data = json.loads("".join(json_format.lines(named)))
    with pytest.raises(am.ModelError, match="unknown state 'cell-7x'; did you mean 'cell-7'") as caught:
        load(data | {"start": {"cell-7x": 1.0}})
    assert len(str(caught.value)) < 200
