"""Where the command `genm` begins: ready for signals before anything is loaded; and the codes it exits with.

`genm.cli.app` says when each code is used.
"""

import os
import signal
import sys

FAULT, INTERRUPTED, BROKEN_PIPE, TERMINATED = 2, 130, 141, 143


def run() -> None:
    """Run the command line and exit with its code."""
    # numba would colour its own errors, for which it has colorama write escape codes to every terminal at exit
    os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))  # half a file is taken away, as after Ctrl-C
    try:
        import typer

        from genm.cli.app import app

        command = typer.main.get_command(app)
    except KeyboardInterrupt:
        sys.stderr.write("genm: interrupted\n")
        sys.exit(INTERRUPTED)
    command.main(prog_name="genm")
