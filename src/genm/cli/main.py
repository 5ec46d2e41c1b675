"""Where the command `genm` begins: ready for signals before anything is loaded; and the codes it exits with.

`genm.cli.app` says when each code is used.
"""

import sys

FAULT, INTERRUPTED, BROKEN_PIPE, TERMINATED = 2, 130, 141, 143
OBJECTS_PER_COLLECTION = 200_000
"""Python looks for cycles of garbage after so many new objects.

A short command makes 150,000, nearly all of them by its imports, and none of them garbage. After every 700, as is
usual, Python looks 220 times, which takes a tenth of a second. Compiling kernels makes many more.
"""


def run() -> None:
    """Run the command line and exit with its code."""
    came: list[int] = []
    try:
        # Imported here, so that an interrupt meanwhile is told in one line, too.
        import gc
        import os
        import signal

        gc.set_threshold(OBJECTS_PER_COLLECTION)
        # numba would colour its own errors, for which it has colorama write escape codes to every terminal at exit
        os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")

        def terminate(*_: object) -> None:
            came.append(TERMINATED)
            sys.exit(TERMINATED)  # half a file is taken away, as after Ctrl-C

        def interrupt(*_: object) -> None:
            came.append(INTERRUPTED)
            raise KeyboardInterrupt

        signal.signal(signal.SIGTERM, terminate)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # it may be ignored, as in the background
            signal.signal(signal.SIGINT, interrupt)
        sys.unraisablehook = _signal_again
        import typer

        from genm.cli.app import app

        typer.main.get_command(app).main(prog_name="genm")
    except BaseException as error:
        code = _code_of_signal(error)
        if code is None and came and not isinstance(error, SystemExit):
            code = came[0]  # a library in C or Rust made another error of what the signal raised
        if code is None:
            raise
        if code == INTERRUPTED and not isinstance(error, SystemExit):
            sys.stderr.write("genm: interrupted\n")
        _leave_at_once(code)


def _code_of_signal(error: BaseException | None) -> int | None:
    """Return the code to exit with if a signal led to this; None for all other errors and exits.

    Python wraps what a signal raises in an error of its own where a class is being made.
    """
    while error is not None:
        if isinstance(error, SystemExit):
            return error.code if error.code in (INTERRUPTED, TERMINATED) else None
        if isinstance(error, KeyboardInterrupt):
            return INTERRUPTED
        error = error.__cause__ or error.__context__
    return None


def _signal_again(unraisable: "sys.UnraisableHookArgs") -> None:
    """Send a signal again that came in the middle of a call from C, which drops what it raises."""
    import os
    import signal
    from threading import Timer

    if issubclass(unraisable.exc_type, KeyboardInterrupt | SystemExit):
        number = signal.SIGINT if issubclass(unraisable.exc_type, KeyboardInterrupt) else signal.SIGTERM
        Timer(0.01, os.kill, (os.getpid(), number)).start()
    else:
        sys.__unraisablehook__(unraisable)


def _leave_at_once(code: int) -> None:
    """Exit without waiting for threads at work: Python would let each finish, and a long fit takes minutes.

    What the command had begun to write is removed; a file appears only when it is complete.
    """
    import contextlib
    import os

    written_by = sys.modules.get("genm.io")
    if written_by is not None:
        with contextlib.suppress(Exception):
            written_by.remove_parts()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(code)
