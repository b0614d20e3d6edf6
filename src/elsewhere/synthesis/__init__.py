"""
Lives: how from many, where by meaning.

`groups` finds people alike and what places are to them, `diaries` learns how people live, `mapping` and `ways` where,
and `generate_life` draws lives and tests them. `certified` draws lives from noisy sums over everybody, of which
`certificate` says what is proven.
"""
