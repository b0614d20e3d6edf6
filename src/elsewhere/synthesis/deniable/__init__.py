"""Soft emissions and the sampler whose Pr{f|s} is known exactly (READINGS section 11)."""
