"""The command line in this process: to load Python, the library and its compiled kernels anew takes seconds per command."""

import io
import subprocess
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from unittest.mock import patch

from actmeasure.__main__ import main


def actmeasure(*arguments, code=0):
    """Run `actmeasure ARGUMENTS`, expect an exit code, and return what a process of its own would have printed."""
    words = ["actmeasure", *map(str, arguments)]
    done = subprocess.CompletedProcess(words, 0)
    with (
        redirect_stdout(io.StringIO()) as out,
        redirect_stderr(io.StringIO()) as error,
        patch.object(sys, "argv", words),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("default")  # which are errors in tests, and text on a terminal
        try:
            main()
        except SystemExit as left:
            if isinstance(left.code, str):
                print(left.code, file=sys.stderr)
            done.returncode = 1 if isinstance(left.code, str) else left.code or 0
    done.stdout, done.stderr = out.getvalue(), error.getvalue()
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done
