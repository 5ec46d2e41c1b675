"""The codes that the command exits with; `genm.cli.exit_codes` says when. Imports nothing."""

FAULT, INTERRUPTED, READER_GONE, TERMINATED = 2, 130, 141, 143
