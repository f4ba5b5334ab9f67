"""The command `actmeasure`, and `python -m actmeasure`."""

from __future__ import annotations

import sys

from actmeasure.errors import ActMeasureError


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
    except ActMeasureError as error:
        print(f"actmeasure: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
