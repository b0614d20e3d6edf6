"""Random streams that kernels draw from."""
