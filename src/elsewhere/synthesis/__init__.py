"""
Lives: how from many, where by meaning.

`groups` finds people alike and what places are to them, `diaries` learns how people live, `mapping` and `ways` where,
and `generate_life` draws lives and tests them. `walk` is what certified fakes are drawn by.
"""
