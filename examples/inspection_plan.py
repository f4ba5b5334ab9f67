"""When to send the camera into the sewer: a plan, what it costs, and a page to read it on.

The chain is that of the mains of Breda; prices and the length of a step are assumptions, see `am.problems.sewer`.
"""

from __future__ import annotations

from pathlib import Path

import actmeasure as am
from actmeasure.inspection.page import write_page

OUT = Path("results")


def main() -> None:
    """Print the advice and write the page."""
    model = am.problems.sewer(measuring_cost=300.0, discount=0.97)  # 6 % a year, in steps of half a year
    advice = am.inspection.advise(
        model, currency="EUR", period="half-year", title="Inspection plan for sewer mains", time_limit=None
    )
    print(advice)
    OUT.mkdir(exist_ok=True)
    page = OUT / "inspection_plan.html"
    write_page(advice, page)
    print(f"\nPage: {page}")


if __name__ == "__main__":
    main()
