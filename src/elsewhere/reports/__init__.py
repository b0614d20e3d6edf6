"""
What people look at: the figures of the paper, and pages of HTML that load nothing.

`figures` draws the figures of the paper; `page` is the report, with a file for each of its parts; `preparation` tells
what was read.
"""
