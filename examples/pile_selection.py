"""Pile selection: which test is best, by the probability that a long pile is needed."""

from __future__ import annotations

import actmeasure as am


def values(p_long: float) -> dict[str, float]:
    """Return the value of each test, or none, followed by the better pile."""
    model = am.problems.pile_selection(p_long)
    start = am.Belief.start(model)

    def order(belief: am.Belief) -> float:
        return float(belief.expected(model.rewards).max())

    found = {"none": order(start.predict(model, 0))}
    for number, test in enumerate(model.measurements, start=1):
        chances = start.outcomes(model, 0, number)
        after = [p * order(start.update(model, 0, number, o)) for o, p in enumerate(chances) if p > 0]
        found[test.name] = sum(after) - test.of(0, 0)
    return found


def main() -> None:
    """Print a table of values."""
    print(f"{'p_long':>6} {'none':>8} {'sonic':>8} {'drilling':>8}   best")
    for p_long in (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8):
        found = values(p_long)
        best = max(found, key=lambda test: found[test])
        print(f"{p_long:6.2f} " + " ".join(f"{value:8.2f}" for value in found.values()) + f"   {best}")


if __name__ == "__main__":
    main()
