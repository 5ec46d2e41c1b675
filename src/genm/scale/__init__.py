"""Training data larger than memory, and devices other than the CPU."""
