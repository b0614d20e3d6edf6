"""
Slow twins: every metric, sampler and gate again, from its definition, with loops.

Imports nothing of ours, so that it can judge us.
"""
