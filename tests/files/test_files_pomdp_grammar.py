"""Cassandra's grammar, statement by statement: random files against a plain interpreter with dense arrays."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pomdp_generators import Hallway, Tag
from strategies import examples

import actmeasure as am


class Writer:
    """Writes random statements, and does to dense arrays what each of them means.

    Attributes
    ----------
    T : array (A, S, S);  O : array (A, S, O);  R : array (A, S, S, O);  start : array (S,)
    """

    def __init__(self, rng, sizes, named):
        self.rng = rng
        self.n_actions, self.n_states, self.n_observations = sizes
        self.words = {}
        self.lines = []
        for kind, count in zip("aso", sizes, strict=True):
            self.words[kind] = [f"{kind}{i}-x_{i}" for i in range(count)] if named[kind] else None
        self.T, self.O = np.zeros((sizes[0], sizes[1], sizes[1])), np.zeros(sizes)
        self.R = np.zeros((sizes[0], sizes[1], sizes[1], sizes[2]))
        self.start = np.full(sizes[1], 1 / sizes[1])

    def word(self, kind, index):
        """A name or the number, as one likes; numbers work where there are names too."""
        names = self.words[kind]
        return str(index) if names is None or self.rng.random() < 0.3 else names[index]

    def reference(self, kind, count, stars=0.3):
        """A word or `*`, and the indices that it stands for."""
        if self.rng.random() < stars:
            return "*", np.arange(count)
        index = int(self.rng.integers(count))
        return self.word(kind, index), np.array([index])

    def number(self, value):
        """A number in one of the forms that the grammar has."""
        text = repr(float(value))
        sign, text = ("-", text[1:]) if text.startswith("-") else (str(self.rng.choice(["", "", "+"])), text)
        if text.startswith("0.") and self.rng.random() < 0.3:
            text = text[1:]
        elif text.endswith(".0") and self.rng.random() < 0.5:
            text = text[: -1 - int(self.rng.integers(2))]
        return sign + " " * bool(sign and self.rng.random() < 0.3) + text

    def chances(self, shape):
        rows = self.rng.random(shape) * (self.rng.random(shape) < 0.6)
        rows[..., 0] += rows.sum(axis=-1) == 0
        return rows / rows.sum(axis=-1, keepdims=True)

    def text(self, values):
        """Numbers, on any number of lines."""
        words = [self.number(value).lstrip("+ ") for value in np.ravel(values)]
        return " ".join(word + "\n" * bool(self.rng.random() < 0.2) for word in words)

    def line(self, *parts):
        """Put a statement together, with spaces, line breaks and comments where they may be."""
        gap = [" ", "  ", "\t", "\n", " # a remark: T: 0 : 0 1\n"]
        colon = [":", " : ", ": ", " :", "\n:\n"]
        text = parts[0] + str(self.rng.choice(colon))
        for position, part in enumerate(parts[1:]):
            if position:
                text += str(self.rng.choice(colon)) if part[0] == ":" else str(self.rng.choice(gap))
            text += part[1:] if part[0] == ":" else part
        self.lines.append(text + str(self.rng.choice(["\n", " ", "\n\n", " # done\n"])))

    def probabilities(self, section):
        """Write one statement about transitions or observations that leaves distributions."""
        table, kind = (self.T, "s") if section == "T" else (self.O, "o")
        n_columns = table.shape[2]
        action, actions = self.reference("a", self.n_actions)
        match str(self.rng.choice(["entry", "row", "uniform row", "reset", "matrix", "uniform", "identity"])):
            case "entry":
                state, states = self.reference("s", self.n_states)
                column = int(self.rng.integers(n_columns))
                self.line(section, action, f":{state}", ":*", "0")
                self.line(section, action, f":{state}", f":{self.word(kind, column)}", self.number(1.0))
                table[np.ix_(actions, states)] = np.eye(n_columns)[column]
            case "row":
                state, states = self.reference("s", self.n_states)
                row = self.chances(n_columns)
                self.line(section, action, f":{state}", self.text(row))
                table[np.ix_(actions, states)] = row
            case "uniform row":
                state, states = self.reference("s", self.n_states)
                self.line(section, action, f":{state}", "uniform")
                table[np.ix_(actions, states)] = 1 / n_columns
            case "reset" if section == "T":
                state, states = self.reference("s", self.n_states)
                self.line(section, action, f":{state}", "reset")
                table[np.ix_(actions, states)] = self.start
            case "identity" if n_columns == self.n_states and section == "T":
                self.line(section, action, "identity")
                table[actions] = np.eye(n_columns)
            case "uniform":
                self.line(section, action, "uniform")
                table[actions] = 1 / n_columns
            case _:
                matrix = self.chances((self.n_states, n_columns))
                self.line(section, action, self.text(matrix))
                table[actions] = matrix

    def reward(self):
        action, actions = self.reference("a", self.n_actions, 0.4)
        state, states = self.reference("s", self.n_states, 0.4)
        form = str(self.rng.choice(["entry", "row", "matrix"]))
        if form == "matrix":
            values = np.round(self.rng.normal(size=(self.n_states, self.n_observations)) * 4) / 2
            self.line("R", action, f":{state}", " ".join(self.number(value) for value in values.ravel()))
            self.R[np.ix_(actions, states)] = values
            return
        successor, successors = self.reference("s", self.n_states, 0.4)
        if form == "row":
            values = np.round(self.rng.normal(size=self.n_observations) * 4) / 2
            self.line("R", action, f":{state}", f":{successor}", " ".join(self.number(value) for value in values))
            self.R[np.ix_(actions, states, successors)] = values
            return
        seen, observations = self.reference("o", self.n_observations, 0.6)
        value = float(np.round(self.rng.normal() * 4) / 2)
        self.line("R", action, f":{state}", f":{successor}", f":{seen}", self.number(value))
        self.R[np.ix_(actions, states, successors, observations)] = value

    def beginning(self):
        """Write `start` in one of its forms."""
        form = str(self.rng.choice(["none", "uniform", "state", "distribution", "include", "exclude"]))
        some = np.flatnonzero(self.rng.random(self.n_states) < 0.5)
        some = some if 0 < len(some) < self.n_states else np.array([0])
        listed = " ".join(self.word("s", int(state)) for state in some)
        match form:
            case "uniform":
                self.lines.append("start: uniform\n")
            case "state":
                self.lines.append(f"start: {self.word('s', int(some[0]))}\n")
                self.start = np.eye(self.n_states)[some[0]]
            case "distribution":
                self.start = self.chances(self.n_states)
                self.lines.append(f"start: {self.text(self.start)}\n")
            case "include":
                self.lines.append(f"start include: {listed}\n")
                self.start = np.isin(np.arange(self.n_states), some) / len(some)
            case "exclude" if len(some) < self.n_states:
                self.lines.append(f"start exclude: {listed}\n")
                left = ~np.isin(np.arange(self.n_states), some)
                self.start = left / left.sum()

    def file(self, n_statements, sign):
        preamble = [f"discount: {self.rng.choice(['0.9', '.9', '9e-1', '0.90'])}", f"values: {sign}"]
        kinds = (("a", "actions", self.n_actions), ("s", "states", self.n_states))
        for kind, keyword, count in (*kinds, ("o", "observations", self.n_observations)):
            names = self.words[kind]
            preamble.append(f"{keyword}: {count if names is None else ' '.join(names)}")
        self.lines += [f"{line}\n" for line in self.rng.permutation(preamble)]
        self.beginning()
        self.line("T", "*", self.text(first := self.chances((self.n_states, self.n_states))))
        self.T[:] = first
        self.line("O", "*", self.text(first := self.chances((self.n_states, self.n_observations))))
        self.O[:] = first
        for _ in range(n_statements):
            match str(self.rng.choice(["T", "O", "R"])):
                case "R":
                    self.reward()
                case section:
                    self.probabilities(section)
        return "".join(self.lines)


sizes = st.tuples(st.integers(1, 3), st.integers(2, 4), st.integers(1, 4))


@examples(600)
@given(sizes, st.tuples(st.booleans(), st.booleans(), st.booleans()), st.integers(0, 12), st.integers(0, 2**32 - 1))
def test_random_files_mean_what_their_statements_say(tmp_path_factory, sizes, named, n_statements, seed):
    rng = np.random.default_rng(seed)
    writer = Writer(rng, sizes, dict(zip("aso", named, strict=True)))
    sign = str(rng.choice(["reward", "cost"]))
    path = tmp_path_factory.mktemp("files") / "model.pomdp"
    path.write_text(writer.file(n_statements, sign), encoding="ascii")
    model = am.Model.load(path)
    if model.measurements:  # every action comes twice, without and with an exact look, by chance
        return
    np.testing.assert_allclose(model.initial_distribution, writer.start, atol=1e-12)
    np.testing.assert_allclose(model.transitions.dense(), writer.T.transpose(1, 0, 2), atol=1e-12)
    law = model.passive.law
    for action in range(model.n_actions):
        np.testing.assert_allclose(law.of_action(action, model.n_states).toarray(), writer.O[action], atol=1e-12)
    paid = np.einsum("ast,ato,asto->sa", writer.T, writer.O, writer.R) * (1 if sign == "reward" else -1)
    np.testing.assert_allclose(model.rewards, paid, atol=1e-12)
    assert model.state_names == (None if writer.words["s"] is None else tuple(writer.words["s"]))
    assert model.action_names == (None if writer.words["a"] is None else tuple(writer.words["a"]))
    assert model.passive.outcomes == (None if writer.words["o"] is None else tuple(writer.words["o"]))
    for suffix in (".pomdp", ".json", ".npz"):
        again = path.with_name(f"again{suffix}")
        model.save(again)
        assert am.Model.load(again) == model


@pytest.mark.parametrize("problem", [Hallway(4), Hallway(7, noise=0.3), Tag(3, 3), Tag(5, 2)], ids=repr)
def test_robots_in_buildings(problem, tmp_path):
    """Files in the style of those that people bring, with all the forms of their statements, are read as what they mean."""
    path = tmp_path / "robot.pomdp"
    path.write_text("".join(problem.text()), encoding="ascii")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = am.Model.load(path)
    P, R, Z, start = problem.arrays()
    assert model.measurements == ()
    np.testing.assert_allclose(model.transitions.dense(), P, atol=1e-12)
    np.testing.assert_allclose(model.rewards, R, atol=1e-12)
    np.testing.assert_allclose(model.initial_distribution, start, atol=1e-12)
    for action in range(model.n_actions):
        np.testing.assert_allclose(model.passive.law.of_action(action, model.n_states).toarray(), Z[action], atol=1e-12)
    for suffix in (".pomdp", ".json", ".npz"):
        again = tmp_path / f"again{suffix}"
        model.save(again)
        assert am.Model.load(again) == model


def test_tag_has_its_published_sizes():
    tag = Tag.published()
    assert (tag.n_states, len(tag.ACTIONS), len(tag.observations)) == (870, 5, 30)
