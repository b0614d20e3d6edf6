"""
What is proven of fakes: `private` is the preset with a theorem, a walk learnt from noisy sums over people;
`certificate` says what holds for a release.
"""
