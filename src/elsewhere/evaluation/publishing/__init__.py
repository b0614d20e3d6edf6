"""The publishing scenario of sec:evaluation: do fakes keep the statistics of the real traces?"""
