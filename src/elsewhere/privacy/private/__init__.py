"""A walk learnt from noisy sums over people: one person is one bounded vector, all else is post-processing."""
