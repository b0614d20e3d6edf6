"""ROOM 6: which fakes may leave the house."""
