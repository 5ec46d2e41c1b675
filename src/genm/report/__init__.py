"""Evidence that a person can look at: one page that shows what the weights are worth."""
