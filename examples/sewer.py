"""The sewer main: an inspection schedule in years and EUR, and how much it depends on assumptions."""

from __future__ import annotations

import actmeasure as am

STEP_YEARS = 0.5


def main() -> None:
    """Print the best schedule, what others cost, and the first inspection under other assumptions."""
    model = am.problems.sewer(step_years=STEP_YEARS)
    solution = am.solve(model, tolerance=0.001)
    print(f"certified optimum, EUR: {solution.lower:,.2f} to {solution.upper:,.2f}")
    print(f"a step is {STEP_YEARS:g} years\n")
    print(solution.schedule.describe(model))
    print("\npolicy     EUR, discounted  EUR a year  inspections a year")
    for method in ("optimal", "atm", "every-10", "every-20", "every-40", "always"):
        plan = am.solve(model, method, tolerance=0.01)
        per_year = (plan.evaluation.average_return or 0.0) / STEP_YEARS
        looks = (plan.evaluation.average_measurements or 0.0) / STEP_YEARS
        print(f"{method:<9}  {plan.value:15,.0f}  {per_year:10,.1f}  {looks:18.3f}")
    print("\nassumed: inspection  failures a year  a new main")
    for price in (100.0, 300.0, 500.0):
        for rate in (0.005, 0.02, 0.1):
            other = am.problems.sewer(failure_rate=rate, measuring_cost=price, step_years=STEP_YEARS)
            print(f"{price:15,.0f} EUR  {rate:15g}  {first_of(am.solve(other, tolerance=1.0).schedule[0])}")


def first_of(plan: am.BlindPlan) -> str:
    """Return what the plan does first after years of doing nothing: an inspection, or work without one."""
    idle = next((step for step, action in enumerate(plan.actions) if action != 0), None)
    if idle is None:
        return f"is inspected after {len(plan.actions) * STEP_YEARS:.1f} years"
    return f"is worked on, unseen, after {idle * STEP_YEARS:.1f} years"


if __name__ == "__main__":
    main()
