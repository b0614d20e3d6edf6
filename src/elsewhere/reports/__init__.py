"""
What people look at: pages of HTML that load nothing, and figures for print.

`page` turns results into what the templates show, `claims` says in words what attacks learnt and what may be said,
`charts` draws every figure once, `maps` what lies on a map.
"""
