"""Paths through candidate sets: both decoders."""
