"""
Read, prepare and write traces; a town in which they are simulated.

An input walks one way: `sources` (bytes and columns), by the readers of its `formats` -> `columns` (what they mean),
`clock` (when) and `rows` (who and where) -> `fixes`, cleaned, on the map (`maps`) at their `places`, gaps filled ->
`prepare` -> `Traces` (`model`). `read` is the door to all of it, for one input or several onto one map; `write` writes
traces, `town` simulates, and `ground` is what lies under a drawn map.
"""
