"""POMDPX files: several variables become a flat model, and what is damaged or dangerous is refused."""

import numpy as np
import pytest
from model_strategies import check_sound, damaged

import actmeasure as am

#: A rover on three cells, one of them with a rock, which may be good; it moves west and east, checks the rock, and samples it.
ROVER = """<?xml version="1.0" encoding="ISO-8859-1"?>
<pomdpx version="1.0" id="rover" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="pomdpx.xsd">
  <Description>A rover &amp; a rock</Description>
  <Discount>0.95</Discount>
  <Variable>
    <StateVar vnamePrev="cell_0" vnameCurr="cell_1" fullyObs="true"><NumValues>3</NumValues></StateVar>
    <StateVar vnamePrev="rock_0" vnameCurr="rock_1"><ValueEnum>good bad</ValueEnum></StateVar>
    <ObsVar vname="sensor"><ValueEnum>ogood obad</ValueEnum></ObsVar>
    <ActionVar vname="action"><ValueEnum>west east check sample</ValueEnum></ActionVar>
    <RewardVar vname="gain" />
    <RewardVar vname="effort" />
  </Variable>
  <InitialStateBelief>
    <CondProb><Var>cell_0</Var><Parent>null</Parent><Parameter type="TBL">
      <Entry><Instance> - </Instance><ProbTable>0.0 1.0 0.0</ProbTable></Entry></Parameter></CondProb>
    <CondProb><Var>rock_0</Var><Parent>null</Parent><Parameter type="TBL">
      <Entry><Instance>-</Instance><ProbTable>uniform</ProbTable></Entry></Parameter></CondProb>
  </InitialStateBelief>
  <StateTransitionFunction>
    <CondProb><Var>cell_1</Var><Parent>action cell_0</Parent><Parameter>
      <Entry><Instance>* - -</Instance><ProbTable>identity</ProbTable></Entry>
      <Entry><Instance>west s1 -</Instance><ProbTable>1 0 0</ProbTable></Entry>
      <Entry><Instance>east s0 -</Instance><ProbTable>0 1 0</ProbTable></Entry>
      <Entry><Instance>east s1 s1</Instance><ProbTable>0.25</ProbTable></Entry>
      <Entry><Instance>east s1 s2</Instance><ProbTable>0.75</ProbTable></Entry></Parameter></CondProb>
    <CondProb><Var>rock_1</Var><Parent>action cell_0 rock_0</Parent><Parameter type="TBL">
      <Entry><Instance>* * - - </Instance><ProbTable>1.0 0.0 0.0 1.0</ProbTable></Entry>
      <Entry><Instance>sample s0 * - </Instance><ProbTable>0.0 1.0</ProbTable></Entry></Parameter></CondProb>
  </StateTransitionFunction>
  <ObsFunction>
    <CondProb><Var>sensor</Var><Parent>action cell_1 rock_1</Parent><Parameter type="TBL">
      <Entry><Instance>* * * - </Instance><ProbTable>1.0 0.0</ProbTable></Entry>
      <Entry><Instance>check s0 - - </Instance><ProbTable>1.0 0.0 0.0 1.0</ProbTable></Entry>
      <Entry><Instance>check s1 - - </Instance><ProbTable>0.8 0.2 0.2 0.8</ProbTable></Entry></Parameter></CondProb>
  </ObsFunction>
  <RewardFunction>
    <Func><Var>gain</Var><Parent>action cell_0 rock_0</Parent><Parameter type="TBL">
      <Entry><Instance>sample * *</Instance><ValueTable>-100</ValueTable></Entry>
      <Entry><Instance>sample s0 -</Instance><ValueTable>10 -10</ValueTable></Entry></Parameter></Func>
    <Func><Var>effort</Var><Parent>cell_1</Parent><Parameter type="TBL">
      <Entry><Instance>s2</Instance><ValueTable>-0.5</ValueTable></Entry></Parameter></Func>
  </RewardFunction>
</pomdpx>
"""


@pytest.fixture
def load(load_as):
    return lambda text: load_as("pomdpx", text if isinstance(text, bytes) else text.encode("latin-1"))


def expected_model():
    """The same model from arrays, state by state."""
    states = [(cell, rock) for cell in range(3) for rock in range(2)]
    P, R, Z = np.zeros((6, 4, 6)), np.zeros((6, 4, 6)), np.zeros((4, 6, 6))
    for s, (cell, rock) in enumerate(states):
        for a in range(4):
            goes = {cell: 1.0}
            if (a, cell) == (0, 1):
                goes = {0: 1.0}
            if a == 1 and cell < 2:
                goes = {1: 1.0} if cell == 0 else {1: 0.25, 2: 0.75}
            after = 1 if (a, cell) == (3, 0) else rock
            for to, chance in goes.items():
                t = states.index((to, after))
                P[s, a, t] += chance
                gain = (10 if rock == 0 else -10) if cell == 0 else -100
                R[s, a, t] = (gain if a == 3 else 0) - 0.5 * (to == 2)
            right = {0: 1.0, 1: 0.8, 2: None}[cell] if a == 2 else None
            good = 1.0 if right is None else (right if rock == 0 else 1 - right)
            Z[a, s, 2 * cell : 2 * cell + 2] = good, 1 - good
    seen = Z.sum(axis=(0, 1)) > 0
    outcomes = [f"s{cell} + {sensor}" for cell in range(3) for sensor in ("ogood", "obad")]
    names = [f"s{cell} + {rock}" for cell in range(3) for rock in ("good", "bad")]
    passive = am.Measurement.noisy(
        "observation",
        probabilities=Z[:, :, seen],
        outcomes=[name for name, one in zip(outcomes, seen, strict=True) if one],
    )
    return am.Model.from_arrays(
        P, R, passive=passive, discount=0.95, initial=[0, 0, 0.5, 0.5, 0, 0], state_names=names,
        action_names=["west", "east", "check", "sample"],
    )  # fmt: skip


def test_variables_become_states(load):
    model = load(ROVER)
    check_sound(model)
    expected = expected_model()
    assert model.state_names == expected.state_names
    assert model.passive.outcomes == expected.passive.outcomes
    np.testing.assert_array_equal(model.transitions.dense(), expected.transitions.dense())
    np.testing.assert_allclose(model.rewards, expected.rewards, atol=1e-15)
    np.testing.assert_allclose(
        model.passive.law.matrix().toarray(), expected.passive.law.matrix().toarray(), atol=1e-15
    )
    assert model.initial_distribution.tolist() == [0, 0, 0.5, 0.5, 0, 0]
    assert not model.reveal_start


def test_parents_of_the_same_step(load):
    """A variable may depend on what another one has become, in any order, but not on itself."""
    rock = "<Var>rock_1</Var><Parent>action cell_0 rock_0</Parent>"
    assert rock in ROVER
    text = ROVER.replace(rock, rock.replace("cell_0", "cell_1"))
    model = load(text)
    assert model.transitions.row(0, 3)[0].tolist() == [1]
    circle = text.replace("<Parent>action cell_0</Parent>", "<Parent>action rock_1</Parent>").replace(
        "* - -</", "* * -</"
    )
    circle = (
        circle.replace("identity", "uniform").replace("west s1 -", "west good -").replace("east s0 -", "east bad -")
    )
    for old in ("<Entry><Instance>east s1 s1</Instance><ProbTable>0.25</ProbTable></Entry>",
                "<Entry><Instance>east s1 s2</Instance><ProbTable>0.75</ProbTable></Entry>"):  # fmt: skip
        circle = circle.replace(old, "")
    with pytest.raises(am.ModelError, match="depends on itself"):
        load(circle)


def test_everything_is_observed(load):
    text = ROVER.replace('vnameCurr="rock_1">', 'vnameCurr="rock_1" fullyObs="true">')
    assert load(text).reveal_start
    first = text.replace('vnameCurr="cell_1" fullyObs="true"', 'vnameCurr="cell_1"')
    with pytest.raises(am.ModelError, match="'rock_0' is fully observed and starts with more than one value"):
        load(first)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("<pomdpx ", "<!DOCTYPE pomdpx><pomdpx ", "has a document type definition"),
        ("<pomdpx ", '<!DOCTYPE a [<!ENTITY b "c"><!ENTITY d "&b;&b;">]><pomdpx ', "has a document type definition"),
        ("A rover &amp; a rock", "A rover &lol; a rock", "line 3 is not valid XML"),
        ("</pomdpx>", "", "is not valid XML"),
        ("ISO-8859-1", "none-such", "not valid XML"),
        ("<Discount>0.95</Discount>", "", "<pomdpx> has 0 elements <Discount>"),
        ("0.95", "much", "<Discount> is no number"),
        ('type="TBL"', 'type="DD"', "has type 'DD', expected 'TBL'"),
        ("<NumValues>3<", "<NumValues>3000000000<", "<NumValues> from 1 to"),
        ("<NumValues>3<", "<NumValues>400000<", "too many for this format"),
        ("<ValueEnum>good bad<", "<ValueEnum>good good<", "one of them twice"),
        ('vnameCurr="rock_1"', 'vnameCurr="rock_0"', "two variables are named 'rock_0'"),
        ('vname="sensor"', 'name="sensor"', "<ObsVar> has no attribute 'vname'"),
        ("<Var>cell_1<", "<Var>cell_2<", "<StateTransitionFunction>: unknown variable 'cell_2'"),
        ("<Var>rock_1<", "<Var>cell_1<", "has the variable 'cell_1' twice"),
        ("<Parent>action cell_0<", "<Parent>action cell_9<", "unknown parent 'cell_9'"),
        ("<Parent>action cell_0<", "<Parent>action action<", "a parent is there twice"),
        ("west s1 -", "west s7 -", "entry 1: unknown value of cell_0 's7'"),
        ("west s1 -", "west -", "<Instance> has 2 words, expected 3"),
        ("1 0 0<", "1 0<", "the table has 2 numbers, expected 3"),
        ("1 0 0<", "1 0 zero<", "is not a list of numbers"),
        ("1 0 0<", "2 0 0<", "is not a probability"),
        ("1 0 0<", "nan 0 0<", "is not a probability"),
        ("0.75<", "0.5<", "'cell_1' given action = east, cell_0 = s1 sum to 0.75"),
        ("<Instance>* - -<", "<Instance>* * -<", "'identity' needs two variables"),
        ("-0.5<", "inf<", "is not finite"),
        ("<Var>effort<", "<Var>joy<", "unknown reward variable 'joy'"),
        ("<pomdpx", "<model", "expected <pomdpx>|not valid XML"),
    ],
)
def test_what_is_wrong_is_named(load, old, new, message):
    assert old in ROVER
    with pytest.raises(am.ModelError, match=message):
        load(ROVER.replace(old, new, 1))


def test_elements_within_elements(load):
    with pytest.raises(am.ModelError, match="nested too deeply"):
        load("<pomdpx>" + "<a>" * 100_000)


def test_damaged_files(load):
    rng = np.random.default_rng(4)
    for contents in damaged(ROVER.encode("latin-1"), rng, times=300):
        try:
            model = load(contents)
        except am.ModelError:
            continue
        check_sound(model)


def test_it_is_not_written(tmp_path):
    with pytest.raises(am.ModelError, match=r"unknown file ending '\.pomdpx'"):
        expected_model().save(tmp_path / "model.pomdpx")
