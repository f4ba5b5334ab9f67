"""The command `actmeasure`, and `python -m actmeasure`."""

from __future__ import annotations

import sys
from typing import NoReturn

from actmeasure.errors import ActMeasureError, NotCoveredError, shown

#: Exit codes: what is wrong with the input, and certificates of a kind that cannot be made yet.
BAD_INPUT, NOT_COVERED = 2, 4


def main() -> None:
    """Run the command line; what is wrong with the input is said in a sentence, with exit code 2."""
    try:
        from actmeasure.cli import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit("the command line needs the optional extra 'cli'; install it with: pip install 'actmeasure[cli]'")
    except KeyboardInterrupt:  # while it was loading; later ones are the commands' own
        sys.exit(130)
    try:
        app()
    except NotCoveredError as error:
        _stop(str(error), NOT_COVERED)
    except ActMeasureError as error:
        _stop(str(error))
    except OSError as error:  # a full disk, a name that is too long, a pipe that was closed
        _stop(
            f"{error.strerror or error}{f' ({error.filename})' if error.filename else ''}; choose another place or name"
        )
    except (MemoryError, OverflowError, RecursionError) as error:
        _stop(f"a number or the depth of an argument is too large ({error}); use a smaller one")


def _stop(why: str, code: int = BAD_INPUT) -> NoReturn:
    """Say why nothing was done, and exit with a code, by default that of bad input."""
    print(f"actmeasure: {shown(why)}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
