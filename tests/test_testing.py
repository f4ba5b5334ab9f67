"""The public checks find what is broken."""

import numpy as np
import pytest

import actmeasure as am


class Broken(am.agents.Agent):
    def __init__(self, decision=None, own_randomness=False):
        self.decision, self.own = decision or am.Decision(0, False), np.random.default_rng() if own_randomness else None

    def begin(self, observation):
        self.seen = observation

    def decide(self):
        return am.Decision(0, bool(self.own.integers(2))) if self.own else self.decision

    def observe(self, reward, cost, observation, terminated, truncated):
        self.seen = observation


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"decision": (0, 1)}, "expected a Decision"),
        ({"decision": am.Decision(9, False)}, "chose action 9"),
        ({"own_randomness": True}, "two runs with the same seed differ"),
    ],
)
def test_broken_agents_are_found(settings, message):
    with pytest.raises(AssertionError, match=message):
        am.testing.check_agent(lambda model: Broken(**settings))


class Memory(Broken):
    """Behaves differently in every run, which continuing it brings to light."""

    def prepare(self, task):
        super().prepare(task)
        self.steps = 0

    def decide(self):
        self.steps += 1
        return am.Decision(0, self.steps % 3 == 0)


def test_agents_that_can_be_continued_pass():
    am.testing.check_agent(lambda model: Memory())


def test_models_that_are_none_are_refused():
    with pytest.raises(AssertionError, match="expected a Model"):
        am.testing.check_model("model")
