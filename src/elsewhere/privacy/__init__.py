"""
Which fakes may be published.

`rules` is the paper's PrivacyTest. `deniable` and `private` are the presets with a theorem each: a noisy count of seeds
by archetype, and a walk learnt from noisy sums over people. `certificate` says what is proven of a release.
"""
