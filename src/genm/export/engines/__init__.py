"""One module for each engine: what it accepts, and a simulator of what it does."""
