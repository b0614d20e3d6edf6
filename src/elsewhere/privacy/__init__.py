"""
What is proven of fakes: `private` has a theorem, by a walk learnt from noisy sums over people;
`certificate` says what holds for a release.
"""
