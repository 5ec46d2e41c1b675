"""`python -m genm` is the command `genm`."""

from genm.cli.main import run

run()
