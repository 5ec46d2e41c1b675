"""Run the benchmarks named on the command line, or all of them; the last lines are a table of all bars."""

import importlib
import pkgutil
import sys

import benchmarks
from benchmarks import _bars


def main() -> None:
    known = sorted(m.name for m in pkgutil.iter_modules(benchmarks.__path__) if not m.name.startswith("_"))
    wanted = sys.argv[1:] or known
    unknown = sorted(set(wanted) - set(known))
    if unknown:
        sys.exit(f"unknown benchmark {', '.join(unknown)}; known are {', '.join(known)}")
    for name in wanted:
        print(f"== {name}", flush=True)
        sys.argv = [name]
        importlib.import_module(f"benchmarks.{name}").main()
    _bars.print_table()


main()
