"""The codes that the command exits with; `genm.cli.exits` says when. Needs nothing, so that it is there at once."""

FAULT, INTERRUPTED, READER_GONE, TERMINATED = 2, 130, 141, 143
