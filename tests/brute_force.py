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
    """Simplified fatigue: three conditions, an inspection that may be wrong while nothing is done, and a repair."""
    wear = np.array([[0.95, 0.05, 0.0], [0.0, 0.95, 0.05], [0.0, 0.0, 1.0]])
    P = np.stack([wear, np.tile([0.95, 0.05, 0.0], (3, 1))], axis=1)
    R = np.array([[0.0, -20.0], [-50.0, -20.0], [0.0, -20.0]])
    found = np.array([0.8, 0.15, 0.05])
    inspection = am.Measurement.noisy(
        "inspection", 1.0, probabilities=np.stack([found, 1 - found], axis=1), outcomes=("no defect", "defect"),
        with_actions=("nothing",),
    )  # fmt: skip
    return am.Model.from_arrays(
        P, R, measurements=[inspection], discount=discount, action_names=["nothing", "repair"],
        state_names=["intact", "damaged", "failed"],
    )  # fmt: skip


def pile_selection(probability_long):
    """Benjamin and Cornell's pile: two steps, first a test or none, then the order of a short or a long pile."""
    P = np.zeros((5, 2, 5))  # (before, layer), (after, layer), ordered
    P[0, :, 2] = P[1, :, 3] = P[2, :, 4] = P[3, :, 4] = P[4, :, 4] = 1.0
    R = np.zeros((5, 2))  # actions: short, long; the first of them only passes time
    R[3, 0], R[2, 1] = -400.0, -100.0
    Z = np.array([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7]])
    sonic = am.Measurement.noisy("sonic", 20.0, outcomes=("40 ft", "45 ft", "50 ft"), probabilities=Z[[0, 1, 0, 1, 0]])
    drilling = am.Measurement.exact("drilling", 50.0)
    return am.Model.from_arrays(
        P, R, measurements=[sonic, drilling], discount=1.0, terminal=[False] * 4 + [True],
        initial=[1 - probability_long, probability_long, 0.0, 0.0, 0.0],
    )  # fmt: skip
