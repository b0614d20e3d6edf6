"""Decoding at a human tempo: movers and stayers, bursts of moves, and few returns, as in the population."""
