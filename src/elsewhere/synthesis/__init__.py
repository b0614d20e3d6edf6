"""ROOM 5: from a seed trace to one attempt at a fake (semantic seed, then decoding)."""
