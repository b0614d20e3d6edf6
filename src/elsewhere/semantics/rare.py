"""Rare places, merged away before anything is learnt: nothing shown later rests on fewer than m_min people (E31)."""

import numpy as np

from elsewhere.errors import InvalidTraces, require_whole
from elsewhere.traces.model import Ints, Traces


def merge_rare(traces: Traces, m_min: int) -> tuple[Traces, Ints]:
    """
    The traces without places that fewer than `m_min` distinct users visit, and what stands for each place.

    A rare place becomes the geographically nearest surviving one; without coordinates its slots become missing (-1).
    Merging adds visitors, so a place that survives on its own keeps at least its own.

    Examples
    --------
    >>> import elsewhere as ew
    >>> three = ew.Traces([[0, 1], [0, 2], [0, 2]], ew.Locations(xy=[[0, 0], [1, 0], [5, 0]]))
    >>> shared, place = merge_rare(three, 2)
    >>> shared.r.tolist(), place.tolist()
    ([[0, 0], [0, 2], [0, 2]], [0, 0, 2])

    """
    require_whole("m_min", m_min, 1)
    place = np.arange(traces.R)
    if m_min == 1:
        return traces, place
    rows, slots = np.nonzero(traces.r >= 0)
    pairs = np.unique(traces.user[rows] * traces.R + traces.r[rows, slots])
    users = np.bincount(pairs % traces.R, minlength=traces.R)
    kept = np.flatnonzero(users >= m_min)
    if len(kept) == 0:
        raise InvalidTraces(
            f"no place is visited by `m_min` = {m_min} users: nothing would be left; lower `m_min`, or use fewer, "
            "larger places.",
            code="E_SUPPRESSED",
        )
    rare = np.flatnonzero(users < m_min)
    place[rare] = -1
    if traces.locations.has_coordinates:
        for start in range(0, len(rare), 1024):
            block = rare[start : start + 1024]
            place[block] = kept[np.argmin(traces.locations.distance(block[:, None], kept[None, :]), axis=1)]
    merged = np.where(traces.r >= 0, place[traces.r], -1)
    if np.any(np.all(merged < 0, axis=1)):
        raise InvalidTraces(
            f"a user visits only places that fewer than `m_min` = {m_min} users share; give coordinates, or lower it.",
            code="E_SUPPRESSED",
        )
    return traces.with_places(merged), place
