"""From a list of past inspections to an inspection schedule.

`pipes.csv` holds 150 pipes from 1975 to 2024: when each was inspected, in what condition it was (1 is as new, 5 has failed), and
whether it was repaired then. The records are simulated, so that what made them is known; `pipes.toml` holds made-up prices.
The same on the command line:

    actmeasure fit pipes.csv --column unit=pipe --column time=year --column state=condition --column action=work --period year \
        --default-action nothing --structure nothing=deteriorate-by-steps --assume repair:1 --out fit.npz
    actmeasure plan fit.npz --economics pipes.toml
"""

from __future__ import annotations

from pathlib import Path

import actmeasure as am

HERE = Path(__file__).parent
#: Probability of staying in conditions 1 to 4 for a year, in the simulation that made the records.
TRUE_STAY = (0.90, 0.92, 0.90, 0.86)


def main() -> None:
    fit = am.fit(
        HERE / "pipes.csv",
        columns={"unit": "pipe", "time": "year", "state": "condition", "action": "work"},
        period="year",
        default_action="nothing",  # in years without a record
        structure={"nothing": "deteriorate-by-steps"},
        assume={"repair": "1"},  # no pipe in condition 1, 2 or 3 was ever repaired
        bootstrap=100,
        seed=0,
    )
    print(fit.summary())

    print("\nstaying as it is for a year: fitted, 90 % interval, and the truth")
    assert fit.low is not None
    assert fit.high is not None
    for state, truth in enumerate(TRUE_STAY):
        low, high = fit.low[0, state, state], fit.high[0, state, state]
        print(
            f"  condition {state + 1}: {fit.probabilities[0, state, state]:.3f} ({low:.3f} to {high:.3f}), {truth:.2f}"
        )

    model = fit.model(HERE / "pipes.toml")
    solution = am.solve(model)
    print("\nbest schedule at 150 EUR an inspection:")
    print(solution.schedule.describe(model, period="year"))


if __name__ == "__main__":
    main()
