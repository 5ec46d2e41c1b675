"""Judgments for people who have none: what to judge next, by whom, and what the judgments are worth."""
