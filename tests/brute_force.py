"""Optimal values by backward induction over beliefs, for models in which every episode ends: independent of all planners."""

import numpy as np

import actmeasure as am


def optimal_value(model):
    """Return the best expected discounted return from the start; beliefs that agree to 12 digits are evaluated once."""
    known = {}

    def value(belief):
        key = (belief.states.tobytes(), np.round(belief.probabilities, 12).tobytes())
        if key not in known:
            known[key] = max(
                decision_value(belief, int(action), int(measurement))
                for action, measurement in zip(*np.nonzero(model.allowed_decisions), strict=True)
            )
        return known[key]

    def decision_value(belief, action, measurement):
        total = float(belief.expected(model.rewards[:, action]))
        if measurement:
            prices = model.measurements[measurement - 1].table(model.n_states, model.n_actions)
            total -= float(belief.expected(prices[:, action]))
        running = belief.running_probability(model, action)
        if running == 0:
            return total
        after = 0.0
        if model.shown_by(measurement) is None:
            after = value(belief.predict(model, action))
        else:
            for outcome, chance in enumerate(belief.outcomes(model, action, measurement)):
                if chance > 0:
                    after += chance * value(belief.update(model, action, measurement, outcome))
        return total + model.discount * running * after

    starts = zip(model.initial_states.tolist(), model.initial_probabilities.tolist(), strict=True)
    if model.reveal_start:
        return sum(chance * value(am.Belief.at(state)) for state, chance in starts)
    return value(am.Belief.start(model))


def fatigue(discount=0.95):
    """Simplified fatigue over an infinite horizon."""
    return am.problems.simple_fatigue(periods=None, discount=discount)


def pile_selection(probability_long):
    """Benjamin and Cornell's pile."""
    return am.problems.pile_selection(probability_long)
