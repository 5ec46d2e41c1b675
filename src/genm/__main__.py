"""`python -m genm` is the command `genm`."""

try:
    from genm.cli.main import run
except KeyboardInterrupt:  # before the command line can tell it in its own words
    raise SystemExit(130) from None

run()
