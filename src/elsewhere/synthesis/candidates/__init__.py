"""Candidate sets of a semantic seed."""
