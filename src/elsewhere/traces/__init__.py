"""
ROOM 1: read, prepare and write traces; a town in which they are simulated.

An input walks one way: `sources` (bytes) and `formats` -> `inputs` (tables) -> `columns` (what they mean), `clock`
(when) and `rows` (who and where) -> `fixes` -> `clean`, `gaps`, `maps`, `places` and `locate` -> `prepare` -> `Traces`
(`model`). `read` is the door to all of it, `together` reads several inputs onto one map, `write` writes traces and
`kept` prepared ones, `days` lays the days of a person on a calendar, `town` simulates.
"""
