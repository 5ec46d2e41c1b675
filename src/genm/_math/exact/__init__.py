"""Exact search for the best weights: line search and certified branch and bound."""
