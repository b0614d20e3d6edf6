"""Archetypes, and the law of a fake of each: what the noisy count of seeds is a mixture of (docs/promise.md)."""
