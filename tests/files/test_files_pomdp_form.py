"""Which POMDPs are of the form with exact looks, and what is said of those that are not, which are read as plain POMDPs."""

import re

import numpy as np
import pytest
from model_strategies import check_sound, small_model
from pomdp_generators import TIGER

import actmeasure as am
from actmeasure.files import pomdp_model, pomdp_reader
from actmeasure.files.pomdp_reader import tables_of

# Two rooms and a way out. "stay" and "go" without and with a look, by somebody who names things differently.
GOOD = """
discount: 0.9
values: reward
states: left right out
actions: stay stay+ go go+
observations: l r gone none
start: left

T: stay identity
T: stay+ identity
T: go : left : right 1
T: go+ : left : right 1
T: go : right : left 0.5
T: go+ : right : left 0.5
T: go : right : out 0.5
T: go+ : right : out 0.5
T: * : out : out 1

O: stay : * : none 1
O: go : * : none 1
O: stay+
1 0 0 0
0 1 0 0
0 0 1 0
O: go+
1 0 0 0
0 1 0 0
0 0 1 0
O: * : out 0 0 1 0

R: stay+ : * : * : * -0.25
R: go+ : * : * : * -0.25
R: go : right : out : * 4
R: go+ : right : out : * 3.75
R: * : out : * : * 0
""".replace("stay+", "stay_look").replace("go+", "go_look")


def test_a_file_by_somebody_else(load):
    model = load(GOOD)
    check_sound(model)
    assert model.state_names == ("left", "right", "out")
    assert model.action_names == ("stay", "go")
    assert model.terminal.tolist() == [False, False, True]
    assert model.measuring_cost == 0.25
    assert model.rewards.tolist() == [[0, 0], [0, 2], [0, 0]]
    assert model.transition_rewards is not None
    assert model.transitions.row(1, 1)[0].tolist() == [0, 2]
    assert model.reveal_start
    assert model.initial_states.tolist() == [0]


def test_names_do_not_matter(load):
    plain = GOOD.replace("stay_look", "u").replace("go_look", "v").replace("stay", "w").replace("go ", "z ")
    model = load(plain)
    assert model.action_names == ("w", "z")
    assert model.measuring_cost == 0.25
    numbered = plain.replace("actions: w u z v", "actions: 4")
    for number, name in enumerate("wuzv"):
        numbered = numbered.replace(f": {name} ", f": {number} ").replace(f": {name}\n", f": {number}\n")
    assert load(numbered).action_names is None


def test_measuring_actions_may_come_first(load):
    model = load(GOOD.replace("actions: stay stay_look go go_look", "actions: go_look stay_look go stay"))
    assert model.action_names == ("go", "stay")


def test_costs_in_place_of_rewards(load):
    flipped = GOOD.replace("values: reward", "values: cost").replace("-0.25", "0.25").replace("* 4", "* -4")
    assert load(flipped.replace("* 3.75", "* -3.75")).rewards.tolist() == [[0, 0], [0, 2], [0, 0]]


def test_costs_that_differ_are_a_table(load):
    model = load(f"{GOOD}\nR: stay_look : left : * : * -0.5\n")
    np.testing.assert_array_equal(model.measuring_cost, [[0.5, 0.25], [0.25, 0.25], [0, 0]])


def test_absorbing_is_not_terminal(load):
    """A state that absorbs but is not shown for free is an ordinary state, and measuring in it may cost."""
    hidden = GOOD.replace("O: * : out 0 0 1 0", "").replace("R: * : out : * : * 0", "")
    model = load(hidden)
    assert not model.terminal.any()
    assert model.transitions.row(2, 0)[0].tolist() == [2]
    assert model.measuring_cost == 0.25


def test_a_start_that_is_not_a_state_is_not_shown(load):
    model = load(GOOD.replace("start: left", "start: 0.5 0.5 0"))
    assert not model.reveal_start
    assert model.initial_probabilities.tolist() == [0.5, 0.5]


def test_six_digits_are_enough(load):
    model = load(
        GOOD.replace("right : left 0.5", "right : left 0.333333").replace("right : out 0.5", "right : out 0.666666")
    )
    np.testing.assert_allclose(model.transitions.row(1, 1)[1], [1 / 3, 2 / 3], atol=1e-6)
    assert model.transitions.row(1, 1)[1].sum() == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize("cost", [0.0, 0.25])
@pytest.mark.parametrize("order", ["x-blind x-measure", "x-measure x-blind"])
def test_a_single_running_state_tells_by_the_rewards(load, cost, order):
    """With one state there is nothing to see, and both actions of a pair look alike but for what they pay."""
    text = f"""
        discount: 0.9 values: reward states: on off actions: {order} observations: on off nothing start: on
        T: * : on 0.5 0.5  T: * : off : off 1
        O: x-blind : on : nothing 1 O: x-measure : on : on 1 O: * : off : off 1
        R: x-blind : on : * : * 1 R: x-measure : on : * : * {1 - cost}
    """
    model = load(text)
    assert model.measuring_cost == cost
    assert model.action_names in (("x",), ("x-measure",))
    if cost:
        assert model.action_names == ("x",)


def no_looks(load, text, message):
    """The model of a file without exact looks: a plain POMDP. The reason is told where a comment claims that it has them."""
    pomdp = pomdp_reader.read(text.encode())
    with pytest.raises(am.ModelError, match=message):
        pomdp_model._find_form(pomdp, tables_of(pomdp))
    model = load(text)
    check_sound(model)
    assert model.measurements == ()
    assert model.passive.outcomes == tuple(pomdp.observations.names)
    assert model.action_names == tuple(pomdp.actions.names)
    assert not model.terminal.any()
    assert not model.reveal_start
    return model


def test_the_tiger_is_heard_not_seen(load):
    message = (
        r"action 'listen' shows observation 'tiger-left' with probability 0.85 in state 'tiger-left', expected 1: "
        r"a measurement must show the state exactly"
    )
    model = no_looks(load, TIGER, message)
    assert model.passive.law.by_action


NEAR_MISSES = {
    "a noisy measurement": (
        "O: go_look : left 0.9 0.1 0 0",
        "'go_look' shows observation 'l' with probability 0.9 in state 'left'",
    ),
    "two states look alike": (
        "O: * : right 1 0 0 0 O: stay : right : l 0 O: stay : right : none 1 O: go : right : l 0 O: go : right : none 1",
        "no action measures: action 'stay_look' shows observation 'l' in state 'left' and in state 'right' alike",
    ),
    "measurements disagree": (
        "O: go_look : left 0 1 0 0 O: go_look : right 1 0 0 0",
        "in state 'left', action 'stay_look' shows observation 'l' and action 'go_look' shows 'r': all measurements",
    ),
    "a blind action that sees one room": (
        "O: stay : left 0 0 0 1 O: stay : right 0 0 1 0 O: go : right 0 0 1 0",
        "action 'stay' shows observation 'gone' in state 'right', expected 'none': a blind action must not tell",
    ),
    "blind actions disagree": (
        "O: go : left : none 0 O: go : left : l 1",
        "in state 'left', action 'stay' shows observation 'none' and action 'go' shows 'l'",
    ),
    "the end is not the end": (
        "T: go : out 1 0 0 T: go_look : out 1 0 0",
        "action 'stay' shows observation 'gone' in state 'out', expected 'none': only a terminal state, which absorbs "
        "without reward, is shown for free, and action 'go' leads from there to state 'left'",
    ),
    "the end pays": (
        "R: stay : out : * : * 1 R: stay_look : out : * : * 1",
        "only a terminal state, .*, is shown for free, and action 'stay' pays 1 there",
    ),
    "measuring the end costs": ("R: stay_look : out : * : * -0.25", "action 'stay_look' pays -0.25 there"),
    "a room is shown for free": (
        "O: stay : left 1 0 0 0 O: go : left 1 0 0 0",
        "shows observation 'l' in state 'left', expected 'none'",
    ),
    "looking pays": (
        "R: go_look : left : * : * 1",
        "action 'go_look' does not measure for 'go': in state 'left' it pays 1 more than the blind action",
    ),
    "the cost depends on the successor": (
        "R: go_look : right : out : * 3",
        "'go_look' does not measure for 'go': in state 'right' it costs 0.25 or, arriving in 'out', 1, expected",
    ),
    "the cost depends on the observation": ("R: go_look : right : * : gone 3", "arriving in 'out', 1"),
    "measuring moves differently": (
        "T: go_look : left : right 0 T: go_look : left : left 1",
        "'go_look' does not measure for 'go': from state 'left', 'go_look' may lead to 'left' and 'go' not",
    ),
    "measuring moves a little differently": (
        "T: go_look : right : left 0.4 T: go_look : right : out 0.6",
        "from state 'right' to 'left' it goes with probability 0.4, the blind action with 0.5",
    ),
}  # fmt: skip

INCOMPLETE = {
    "rows that are not full": ("T: go : left : right 0.5", "transition probabilities of action 'go' in state 'left' sum to 0.5"),
    "rows that are empty": ("T: go : left : right 0", "sum to 0, expected 1"),
    "observations that are not full": (
        "O: go : left : none 0",
        "observation probabilities of action 'go' in state 'left' sum to 0",
    ),
    "observations that are too full": ("O: go : left : l 1", "of action 'go' in state 'left' sum to 2"),
}  # fmt: skip


@pytest.mark.parametrize("case", NEAR_MISSES)
def test_near_misses(load, case):
    change, message = NEAR_MISSES[case]
    no_looks(load, f"{GOOD}\n{change}\n", message)


@pytest.mark.parametrize("case", INCOMPLETE)
def test_incomplete_rows(load, case):
    change, message = INCOMPLETE[case]
    with pytest.raises(am.ModelError, match=message):
        load(f"{GOOD}\n{change}\n")


def test_every_action_measures(load):
    text = GOOD + "O: * : left 1 0 0 0 O: * : right 0 1 0 0"
    no_looks(load, text, "every action shows the state, as action 'stay' does")


def test_no_action_measures(load):
    text = GOOD + "O: * : left 0 0 0 1 O: * : right 0 0 0 1"
    no_looks(load, text, "no action measures: action 'stay_look' shows observation 'none' in state 'left' and")


def test_nothing_must_be_nothing(load):
    """A blind action that shows in the running states what a measurement shows at the end."""
    text = """
        discount: 0.9 values: reward states: a b out actions: x-blind x-measure observations: A B gone start: a
        T: * : a : b 1 T: * : b : out 1 T: * : out : out 1
        O: x-blind : * : gone 1 O: x-measure : a : A 1 O: x-measure : b : B 1 O: x-measure : out : gone 1
    """
    no_looks(load, text, "shows observation 'gone', which is also what action 'x-measure' shows in state 'out'")


def test_partners_are_missing(load):
    three = GOOD.replace("actions: stay stay_look go go_look", "actions: stay stay_look go go_look rest")
    extra = "T: rest : left : right 1 T: rest : right : right 1"
    text = three + extra + " O: rest : * : none 1 O: rest : out 0 0 1 0"
    no_looks(load, text, "no measuring action is the partner of the blind action 'rest'")
    text = three + extra + " O: rest : left 1 0 0 0 O: rest : right 0 1 0 0"
    no_looks(load, text, "no blind action is the partner of the measuring action 'rest'")


def test_an_end_to_begin_in(load):
    with pytest.raises(
        am.ModelError, match="start gives state 'out' a chance, but it is terminal; the start is uniform"
    ):
        load(GOOD.replace("start: left", ""))
    with pytest.raises(am.ModelError, match="start gives state 'out' a chance, but it is terminal; add a line 'start"):
        load(GOOD.replace("start: left", "start: out"))


def test_the_discount_is_checked(load):
    with pytest.raises(am.ModelError, match=r"discount is 1\.5"):
        load(GOOD.replace("0.9", "1.5"))
    with pytest.raises(am.ModelError, match="discount is 1, but a cycle"):
        load(GOOD.replace("discount: 0.9", "discount: 1") + "R: stay : left : * : * 5 R: stay_look : left : * : * 4.75")


COMMENT_CHANGES = [
    ('"measuring_cost": 0.05', '"measuring_cost": 0.06', "measuring cost 0.06 where the rewards .* differ by 0.05"),
    ('"measuring_cost": 0.05', '"measuring_cost": [[0.05]]', "shape \\(1, 1\\), expected \\(4, 2\\)"),
    ('"measuring_cost": 0.05', '"measuring_cost": [[0.05], 1]', r"'measuring_cost\[1\]' is 1, expected a list"),
    ('"measuring_cost": 0.05', '"measuring_cost": [[0.05], []]', "not a number or a table"),
    ('"measuring_cost": 0.05', '"measuring_cost": [["x"]]', r"'measuring_cost\[0\]\[0\]' is 'x'"),
    ('"measuring_cost": 0.05', '"measuring_cost": null', "'measuring_cost' is None"),
    ('"states": ["here", ', '"states": ["hers", ', "other states"),
    ('"states": ["here", ', '"states": [', "other states"),
    ('"actions": ["go", ', '"actions": ["gone", ', "other actions"),
    ('"actions": ["go", "wait"]', '"actions": ["go"]', "other actions"),
    ('"successor_rewards": true', '"successor_rewards": false', "rewards do not depend on the successor, but they do"),
    ('"begin": false', '"begin": true', "other states"),
    ('"begin": false', '"begin": 0', "true or false"),
    ('"begin": false', '"beginn": false', "unknown key 'beginn'; did you mean 'begin'"),
    (
        '"statements": ',
        '"statements": 9',
        "lines of T, O and R, but had 9.* when it was written; the file is incomplete",
    ),
    ("T: go-blind : here : there 0.8\n", "", "lines of T, O and R"),
    ("T: go-blind : here : there 0.8", "T: go-blind : here : there 0.9", "does not measure for|sum to"),
    ("actions: go-blind go-measure", "actions: go-measure go-blind", "other actions"),
]


@pytest.mark.parametrize(("old", "new", "message"), COMMENT_CHANGES)
def test_the_comment_is_trusted_only_where_it_agrees(load, written, old, new, message):
    text = written(small_model())
    assert old in text
    with pytest.raises(am.ModelError, match=message):
        load(text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("start: begin", "start: here", "additional state 'begin'"),
        ("T: * : begin : here 0.5", "T: * : begin 0.1 0.4 0.5 0 0", "additional state 'begin'"),
        ("R: * : begin : * : * 0.0", "R: * : begin : * : * 1.0", "additional state 'begin'"),
        ("R: * : begin : * : * 0.0", "R: go-blind : begin : * : * 0.0", "additional state 'begin'"),
        ('"begin": true', '"begin": false', "other states"),
        ('"reveal_start": true', '"reveal_start": false', "start is not shown, but there is an additional state"),
    ],
)
def test_the_beginning_is_confirmed(load, written, old, new, message):
    text = written(small_model(initial=[0.5, 0.5, 0, 0]))
    assert old in text
    with pytest.raises(am.ModelError, match=message):
        load(text.replace(old, new, 1))


def test_the_beginning_is_the_same_for_all_actions(load, written):
    text = written(small_model(initial=[0.5, 0.5, 0, 0]))
    text += "T: go-blind : begin 0 0.4 0.6 0 0\nT: go-measure : begin 0 0.4 0.6 0 0\n"
    with pytest.raises(am.ModelError, match="lines of T, O and R"):
        load(text)
    more = re.sub('(?<="statements": )[0-9]+', lambda found: str(int(found[0]) + 2), text)
    with pytest.raises(am.ModelError, match="additional state 'begin'"):
        load(more)


def test_a_random_start_is_shown_only_by_a_beginning(load, written):
    text = written(small_model(initial=[0.5, 0.5, 0, 0], reveal_start=False))
    with pytest.raises(am.ModelError, match="says that a random start is shown, but there is no additional state"):
        load(text.replace('"reveal_start": false', '"reveal_start": true'))


def test_two_comments(load, written):
    text = written(small_model())
    with pytest.raises(am.ModelError, match="line 2: the comment '# actmeasure' is there twice"):
        load(text.split("\n", 1)[0] + "\n" + text)


def test_a_newer_comment(load, tmp_path):
    path = tmp_path / "model.pomdp"
    small_model().save(path)
    with pytest.raises(am.ModelError, match=r"version 3.*update actmeasure"):
        load(path.read_text(encoding="ascii").replace('{"version": 1', '{"version": 3'))
