"""
The pool service: a published pool, handed out to devices in buckets of whole lives (public side).

`store` keeps lives, tokens and who may not get what; `app` is the interface over HTTP, `guard` its limits, `run` starts
it; the owner's page is in `elsewhere/page`. Nothing here can reach code that has seen a seed.
"""
