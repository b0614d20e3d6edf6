"""Hypothesis strategies shared by all rooms: small traces, profiles, classes."""

import numpy as np
from hypothesis import strategies as st

import elsewhere as ew


@st.composite
def traces(draw, *, max_users=4, max_places=6, max_slots=8, min_users=1, days=1):
    """A small complete dataset; several rows per user if `days` > 1."""
    U = draw(st.integers(min_users, max_users))
    R = draw(st.integers(2, max_places))
    L = draw(st.integers(2, max_slots))
    N = U * days
    r = draw(st.lists(st.lists(st.integers(0, R - 1), min_size=L, max_size=L), min_size=N, max_size=N))
    return ew.Traces(
        np.array(r), ew.Locations(n=R), users=np.repeat(np.arange(U), days), step_minutes=1440 / L, start="00:00"
    )
