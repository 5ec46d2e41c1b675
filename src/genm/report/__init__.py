"""Evidence that a person can look at: one page about a model, and the same for papers and pipelines."""
