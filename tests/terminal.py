"""Programs on a terminal, as progress and Ctrl-C need one: of a known kind and size, and read within a time limit."""

import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
import threading

#: Kind of terminal and its size: without them rich shows no progress on a terminal that is "dumb", or guesses a size.
ROWS, COLUMNS = 30, 100
KIND = {"TERM": "xterm", "LINES": str(ROWS), "COLUMNS": str(COLUMNS)}
#: Seconds after which a test fails that waits for a program.
MOST_SECONDS = 300.0


class Terminal:
    """A program in a session of its own whose stderr is a terminal; all that it writes is read as it is written."""

    def __init__(self, command):
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=theirs, text=True, start_new_session=True, env=os.environ | KIND
        )
        os.close(theirs)
        self._shown, self._more = b"", threading.Condition()
        self._is_open = True
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    @property
    def shown(self):
        """What the terminal has shown so far."""
        return self._shown.decode(errors="replace")

    def wait_until(self, is_shown, what):
        """Wait until `is_shown(text)` of all that was shown is true, or the program has ended; fail after `MOST_SECONDS`."""
        with self._more:
            came = self._more.wait_for(lambda: not self._is_open or is_shown(self.shown), MOST_SECONDS)
        if not came:
            self._kill(f"did not show {what}")

    def press_ctrl_c(self):
        """Interrupt the program and its children, as a terminal does."""
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self):
        """Return what the program wrote to stdout and what the terminal showed, once it has ended."""
        try:
            text, _ = self.process.communicate(timeout=MOST_SECONDS)
        except subprocess.TimeoutExpired:
            self._kill("did not end")
        self._reader.join(MOST_SECONDS)
        assert "Traceback" not in self.shown, self.shown
        return text, self.shown

    def _kill(self, complaint):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()
        raise AssertionError(f"{self.process.args} {complaint} within {MOST_SECONDS:g} s, but showed: {self.shown!r}")

    def _read(self):
        try:
            while piece := os.read(self._ours, 4096):
                with self._more:
                    self._shown += piece
                    self._more.notify_all()
        except OSError:  # the other side is closed
            pass
        with self._more:
            self._is_open = False
            self._more.notify_all()
        os.close(self._ours)
