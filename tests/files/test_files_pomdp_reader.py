"""The grammar of the POMDP format, in all its forms."""

import numpy as np
import pytest

import actmeasure as am
from actmeasure.files import pomdp_reader

PREAMBLE = """
discount: 0.9
values: reward
states: a b c
actions: x y
observations: p q
"""


def read(body, preamble=PREAMBLE):
    return pomdp_reader.read((preamble + body).encode())


def dense(table, n_actions, n_states, n_columns):
    found = np.zeros((n_actions, n_states, n_columns))
    for action in range(n_actions):
        for state in range(n_states):
            for column, value in table.row(action, state).items():
                found[action, state, column] = value
    return found


def transitions(body):
    return dense(read(body).transitions, 2, 3, 3)


def shown(body):
    return dense(read(body).shown, 2, 3, 2)


def rewards(body, preamble=PREAMBLE):
    pomdp = read(body, preamble)
    return np.array(
        [[[[pomdp.reward(a, s, t, o) for o in range(2)] for t in range(3)] for s in range(3)] for a in range(2)]
    )


def test_preamble_in_any_order_over_any_lines():
    pomdp = read("", "observations:\n 2 # two\nactions\n:\nx\ny values: cost\tdiscount:+0.5\r\nstates: 3\n")
    assert (pomdp.discount, pomdp.sign) == (0.5, -1.0)
    assert pomdp.states.names is None
    assert pomdp.actions.names == ["x", "y"]
    assert (pomdp.states.count, pomdp.actions.count, pomdp.observations.count) == (3, 2, 2)
    np.testing.assert_array_equal(pomdp.start, np.full(3, 1 / 3))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", [1 / 3] * 3),
        ("start: uniform", [1 / 3] * 3),
        ("start: 0.5 0.25\n0.25", [0.5, 0.25, 0.25]),
        ("start: .5 5e-1 0", [0.5, 0.5, 0]),
        ("start: b", [0, 1, 0]),
        ("start: 2", [0, 0, 1]),
        ("start include: a c", [0.5, 0, 0.5]),
        ("start include: 0 b", [0.5, 0.5, 0]),
        ("start exclude: a", [0, 0.5, 0.5]),
        ("start exclude: 0 1", [0, 0, 1]),
        ("start include: *", [1 / 3] * 3),
    ],
)
def test_start(text, expected):
    np.testing.assert_array_equal(read(text).start, expected)
    np.testing.assert_array_equal(read(f"T: x identity {text}").start, expected)


@pytest.mark.parametrize("text", ["start: 1", "start: 1.0", "start: 0", "start: a", "start: uniform"])
def test_start_of_a_single_state(text):
    preamble = "discount: 0.9 values: reward states: a actions: x observations: p\n"
    np.testing.assert_array_equal(read(text, preamble).start, [1.0])


def test_transition_forms():
    found = transitions("""
        T: x : a : b 0.5
        T:x:0:2 0.5          # without spaces, by number
        T: x : b
        0.25 0.25
        0.5
        T: x : c uniform
        T: 1 identity
    """)
    expected = [[[0, 0.5, 0.5], [0.25, 0.25, 0.5], [1 / 3] * 3], np.eye(3)]
    np.testing.assert_array_equal(found, expected)


def test_matrices_and_wildcards():
    matrix = "T: x\n1 0 0  0 1 0  0.5 0.5 0\n"
    np.testing.assert_array_equal(transitions(matrix)[0], [[1, 0, 0], [0, 1, 0], [0.5, 0.5, 0]])
    np.testing.assert_array_equal(transitions("T: * uniform"), np.full((2, 3, 3), 1 / 3))
    np.testing.assert_array_equal(transitions("T: * : * : b 1.0"), np.tile([0, 1, 0], (2, 3, 1)))
    np.testing.assert_array_equal(transitions("T: y : * : * 0.25")[1], np.full((3, 3), 0.25))
    np.testing.assert_array_equal(transitions("T: * : a 0 1 0")[:, 0], [[0, 1, 0]] * 2)
    np.testing.assert_array_equal(transitions("start: 0.5 0.5 0 T: * : c reset")[:, 2], [[0.5, 0.5, 0]] * 2)


def test_later_lines_override():
    found = transitions("T: * identity T: x : a : a 0.0 T: x : a : b 1 T: y : b 0 0 1 T: y : c : * 0 T: y : c : a 1")
    np.testing.assert_array_equal(found[0], [[0, 1, 0], [0, 1, 0], [0, 0, 1]])
    np.testing.assert_array_equal(found[1], [[1, 0, 0], [0, 0, 1], [1, 0, 0]])
    np.testing.assert_array_equal(transitions("T: x : a : b 1 T: * : * : * 0.0"), np.zeros((2, 3, 3)))


def test_observation_forms():
    found = shown("O: x : a : q 1.0 O: x : b 0.25 0.75 O: x : c uniform O: y\n1 0\n0 1\n0.5 0.5")
    np.testing.assert_array_equal(found, [[[0, 1], [0.25, 0.75], [0.5, 0.5]], [[1, 0], [0, 1], [0.5, 0.5]]])
    np.testing.assert_array_equal(shown("O: * uniform"), np.full((2, 3, 2), 0.5))
    np.testing.assert_array_equal(shown("O: * : * : p 1 O: y : b : p 0 O: y : b : q 1")[1], [[1, 0], [0, 1], [1, 0]])


def test_reward_forms():
    expected = np.zeros((2, 3, 3, 2))
    expected[:, :, :, :] = -1
    expected[0, 1] = 7
    expected[0, 1, 2] = [3, -4.5]
    expected[1, 2] = np.arange(6).reshape(3, 2)
    expected[:, 0, 0, 1] = 100
    body = """
        R: * : * : * : * -1
        R: x : b : * : * 7   R: x : b : c : * 1
        R: x : b : c
        3 - 4.5
        R: y : c
        0 1 2 3 4 5
        R: * : a : a : q +1e2
    """
    np.testing.assert_array_equal(rewards(body), expected)
    np.testing.assert_array_equal(rewards(body, PREAMBLE.replace("reward", "cost")), -expected)
    # A later general line overrides a special one.
    assert not rewards(f"{body} R: * : * : * : * 0").any()
    assert rewards(f"{body} R: y : * : * : p 9")[1, 2, :, 0].tolist() == [9] * 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: expected 'states' in the preamble, got the end of the file"),
        ("hello", "line 1: expected 'states'"),
        ("state: a b", "unknown keyword 'state'; did you mean 'states'"),
        ("discount 0.9", "line 1: expected ':' after 'discount'"),
        ("discount: much", "line 1: expected the discount, got 'much'"),
        ("discount: 1e999", "the discount is inf"),
        ("discount: 0.9\ndiscount: 0.9", "line 2: 'discount' is given a second time"),
        ("values: rewards", "expected 'reward' or 'cost'"),
        ("values: reward values: cost", "'values' is given a second time"),
        ("states: a b\nstates: 2", "line 2: 'states' is given a second time"),
        ("states: a a", "the state 'a' is listed twice"),
        ("states: 0", "the number of states is '0'"),
        ("states: 2.5", "the number of states is '2.5'"),
        ("states: -2", "the number of states is '-'"),
        ("states: 99999999999", "the number of states is"),
        ("states: T O", "expected a number of states or their names, got 'T'"),
        ("states: é", "expected a number of states"),
        ("start: 1", "'start' comes before 'states'"),
        ("discount: 0.9 values: reward states: 2 actions: 2", "expected 'observations' in the preamble"),
        ("discount: 0.9 values: reward states: 5000000 actions: 5000 observations: 2", "too many for a text file"),
    ],
)
def test_preamble_errors(text, message):
    with pytest.raises(am.ModelError, match=message):
        pomdp_reader.read(text.encode())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("*: x", "line 7: expected a line that begins with 'T:', 'O:' or 'R:', got '\\*'"),
        ("discount: 0.9", "line 7: 'discount' is given a second time"),
        ("T: x identity discount: 0.9", "expected a line that begins with"),
        ("T x", "expected ':' after 'T'"),
        ("T: z : a : b 1", "unknown action 'z'"),
        ("T: x :\n\nd : b 1", "line 9: unknown state 'd'"),
        ("T: x : 3 : b 1", "number from 0 to 2 or '\\*', got '3'"),
        ("T: x : a : b", "the transition probability has 0 numbers, expected 1, then got the end of the file"),
        ("T: x : a : b 1 1", "more than the expected 1 numbers"),
        ("T: x : a : b 1.5", "line 7: the transition probability has the entry 1.5"),
        ("T: x : a : b -0.5", "has the entry -0.5"),
        ("T: x : a 0.5 0.5", "the transition row has 2 numbers, expected 3"),
        ("T: x : a 1 0 0 0", "more than the expected 3"),
        ("T: x 1 0 0", "the transition matrix has 3 numbers, expected 9"),
        ("T: x : a identity", "the transition row has 0 numbers"),
        ("T: x reset", "the transition matrix has 0 numbers"),
        ("T: x : a : b é", "has 0 numbers, expected 1, then got"),
        ("O: x identity", "the observation matrix has 0 numbers"),
        ("O: x : a : r 1", "unknown observation 'r'"),
        ("O: x : a : 2 1", "number from 0 to 1"),
        ("R: x 1 2 3", "expected ':' after the action of a reward"),
        ("R: x : a : b : p", "expected the reward, got the end of the file"),
        ("R: x : a : b : p much", "expected the reward, got 'much'"),
        ("R: x : a : b : p 1e400", "the reward is inf"),
        ("R: x : a : b 1", "the reward row has 1 numbers, expected 2"),
        ("R: x : a 1 2", "the reward matrix has 2 numbers, expected 6"),
        ("start: 1 start: 2", "'start' is given a second time"),
        ("T: * : a reset start: b", "line 7: 'start' comes after a 'reset'"),
        ("start: 3", "line 7: the start is state 3"),
        ("start: d", "unknown state 'd'"),
        ("start: 0.5", "the start is state 0.5"),
        ("start: 0.5 0.5", "expected 2"),
        ("start: 0.5 0.5 0.5", "sums to 1.5"),
        ("start: 1.5 -0.5 0", "least entry -0.5"),
        ("start include:", "expected state, as a name"),
        ("start exclude: a b c", "leaves no state"),
        ("start everywhere", "expected ':' after 'start'"),
        ("# actmeasure {}", "line 7, the comment '# actmeasure': 'version' is None"),
        ("# actmeasure {", "line 7, the comment '# actmeasure': line 1, column 2 is not valid JSON"),
        ('# actmeasure {"version": 3}', "update actmeasure"),
        ('# actmeasure {"version": 2}', "has no 'states'"),
        ('# actmeasure {"version": 1}', "has no 'states'"),
    ],
)
def test_body_errors_name_the_line(text, message):
    with pytest.raises(am.ModelError, match=message):
        read(text)


def test_names_that_a_file_does_not_have():
    with pytest.raises(am.ModelError, match="the states have no names, got 'a'"):
        read("T: x : a : b 1", PREAMBLE.replace("a b c", "3"))


def test_comments_may_hold_anything():
    assert pomdp_reader.read(PREAMBLE.encode() + b"# caf\xe9 T: x : y\n").discount == 0.9


def test_a_count_does_not_make_us_reserve_memory_for_it(monkeypatch):
    with pytest.raises(am.ModelError, match="more than 5,000,000 entries"):
        read("T: * uniform", PREAMBLE.replace("a b c", "10000"))
    monkeypatch.setattr(pomdp_reader, "MOST_ENTRIES", 20)
    with pytest.raises(am.ModelError, match="more than 20 entries"):
        read("T: * : * : a 1.0 T: * : * : b 1.0 O: * : * : p 1 T: * : * : * 0.0 T: x : * : * 0.1")
