"""Run benchmarks, each in a process of its own; the last lines are a table of all bars of speed.

Without a name it runs those that hold a bar and take minutes on one machine (`QUICK`), with `--all` every one of
them: studies of quality take hours, and tables 32 GB of disk. Options of a benchmark itself are for
`python -m benchmarks.NAME`.
"""

import argparse
import os
import pkgutil
import subprocess
import sys
import tempfile
from pathlib import Path

import benchmarks
from benchmarks import _bars

QUICK = ("startup", "kernels", "read", "align", "report", "many_rankers", "explain", "evaluate", "serve")


def main() -> int:
    known = sorted(m.name for m in pkgutil.iter_modules(benchmarks.__path__) if not m.name.startswith("_"))
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(known)}")
    parser.add_argument("--all", action="store_true", help="every benchmark: this takes hours")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(known))
    if unknown:
        parser.error(f"unknown benchmark {', '.join(unknown)}; known are {', '.join(known)}")
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "bars.jsonl"
        for name in known if options.all else options.names or QUICK:
            print(f"== {name}", flush=True)
            done = subprocess.run(
                [sys.executable, "-m", f"benchmarks.{name}"],
                env={**os.environ, _bars.KEPT_IN: str(kept)},
                check=False,
            )
            if done.returncode:
                failed.append(name)
        _bars.print_table(_bars.read(kept))
    for name in failed:
        print(f"benchmarks.{name} did not finish: its bars may be missing above")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
