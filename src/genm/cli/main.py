"""Where the command `genm` begins: ready for signals before anything is loaded; and the codes it exits with.

`genm.cli.app` says when each code is used.
"""

import contextlib
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
    try:
        command.main(prog_name="genm")
    except SystemExit as ended:
        if ended.code in (INTERRUPTED, TERMINATED):
            _leave_at_once(ended.code)
        raise


def _leave_at_once(code: int) -> None:
    """Exit without waiting for threads at work: Python would let each finish, and a long fit takes minutes.

    What the command had begun to write is removed by now; a file appears only when it is complete.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(code)
