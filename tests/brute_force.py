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
                decision_value(model, belief, int(action), int(measurement), value)
                for action, measurement in zip(*np.nonzero(model.allowed_decisions), strict=True)
            )
        return known[key]

    return start_value(model, value)


def decision_value(model, belief, action, measurement, value):
    """Return what a decision earns in a belief if what comes after it earns `value` of the belief that it leads to."""
    total = float(belief.expected(model.rewards[:, action]))
    if measurement:
        prices = model.measurements[measurement - 1].table(model.n_states, model.n_actions)
        total -= float(belief.expected(prices[:, action]))
    running = belief.running_probability(model, action)
    if running == 0:
        return total
    if model.shown_by(measurement) is None:
        return total + model.discount * running * value(belief.predict(model, action))
    after = 0.0
    for outcome, chance in enumerate(belief.outcomes(model, action, measurement)):
        if chance > 0:
            after += chance * value(belief.update(model, action, measurement, outcome))
    return total + model.discount * running * after


def start_value(model, value):
    """Return the mean of `value` over the beliefs in which episodes begin."""
    if model.start_is_known:
        starts = zip(model.initial_states.tolist(), model.initial_probabilities.tolist(), strict=True)
        return sum(chance * value(am.Belief.at(state)) for state, chance in starts)
    return value(am.Belief.start(model))


def fatigue(discount=0.95):
    """Simplified fatigue over an infinite horizon."""
    return am.problems.simple_fatigue(periods=None, discount=discount)


def pile_selection(probability_long):
    """Benjamin and Cornell's pile."""
    return am.problems.pile_selection(probability_long)
