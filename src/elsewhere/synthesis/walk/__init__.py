"""A walk with memory: the next place by all places so far, with exact probabilities (docs/decisions.md)."""
