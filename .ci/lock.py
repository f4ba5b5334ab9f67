"""Pin and hash what pyproject.toml asks for: `make lock`, or `python .ci/lock.py --keep` to change only what has to change.

Three files, none of which names a package index: requirements.lock (to run and test actmeasure), and beyond it
requirements-tools.lock (to lint, check types, build the documentation) and requirements-extras.lock (for tests marked `extras`).
requirements-sb3.lock is kept by hand: pip-tools would pin CUDA with torch.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
FILES = {
    "requirements.lock": ("test", "What it takes to run and to test actmeasure"),
    "requirements-tools.lock": ("tools", "What `make check` and `make docs` need beyond requirements.lock"),
    "requirements-extras.lock": ("extras", "What tests marked `extras` need beyond requirements-tools.lock"),
}
OPTIONS = ["--generate-hashes", "--strip-extras", "--no-header", "--no-annotate", "--allow-unsafe", "--quiet"]
#: A requirement and its hashes; nothing else of what pip-tools writes is kept.
PIN = re.compile(r"^[a-zA-Z0-9].*==(?:.*\\\n)*.*\n", re.MULTILINE)


def pins(path: Path) -> list[str]:
    """Return the pinned requirements of a lock file, each with its hashes, without actmeasure itself."""
    found: list[str] = PIN.findall(path.read_text()) if path.exists() else []
    return found


def main() -> None:
    """Write all lock files, each in agreement with those before."""
    known: list[str] = []
    with tempfile.TemporaryDirectory() as directory:
        for name, (extra, purpose) in FILES.items():
            whole, constraints = Path(directory, name), Path(directory, "known.txt")
            constraints.write_text("".join(pin.split(" ")[0].strip() + "\n" for pin in known))
            if "--keep" in sys.argv:
                whole.write_text("".join(dict.fromkeys(known + pins(ROOT / name))))
            command = [sys.executable, "-m", "piptools", "compile", *OPTIONS, "--extra", extra, "--output-file", whole]
            upgrade = [] if "--keep" in sys.argv else ["--upgrade"]
            subprocess.run([*command, *upgrade, "-c", constraints, ROOT / "pyproject.toml"], check=True, cwd=ROOT)
            new = [pin for pin in pins(whole) if pin not in known]
            first = f"# {purpose}: pinned and hash-checked; refresh with `make lock`.\n"
            (ROOT / name).write_text(first + "".join(new))
            known += new if name != "requirements-extras.lock" else []
            print(f"{name}: {len(new)} packages", file=sys.stderr)


if __name__ == "__main__":
    main()
