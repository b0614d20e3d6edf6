"""Rare places, merged away before anything is learnt: nothing shown later rests on fewer than m_min people (E31)."""

import numpy as np

from elsewhere.errors import InvalidTraces, require_whole
from elsewhere.traces.model import Evidence, Ints, Locations, Traces


def merge_rare(traces: Traces, m_min: int) -> tuple[Traces, Ints]:
    """
    The traces without places that fewer than `m_min` distinct users visit, and (R,) what stands for each place.

    A rare place becomes the geographically nearest surviving one. Without coordinates nothing stands for it (-1): its
    slots become missing, and a row of which nothing is left is dropped. `m_min` = 1 changes nothing.

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
    users = traces.visitors()
    rare, kept = users < m_min, np.flatnonzero(users >= m_min)
    if len(kept) == 0:
        raise InvalidTraces(
            f"no place is visited by `m_min` = {m_min} users: nothing would be left; give more users or larger places "
            "(a lower `m_min` is less privacy).",
            code="E_SUPPRESSED",
        )
    place[rare] = _nearest(traces.locations, np.flatnonzero(rare), kept)
    return _replaced(traces, place), place


def _nearest(locations: Locations, rare: Ints, kept: Ints) -> Ints:
    if not locations.has_coordinates:
        return np.full(len(rare), -1)
    return np.asarray(kept[locations.select(kept).nearest(locations.points()[rare])[0]])


def _replaced(traces: Traces, place: Ints) -> Traces:
    r = np.where(traces.r >= 0, place[traces.r], -1)
    left = np.any(r >= 0, axis=1)
    if not left.all():
        traces, r = traces.select(left), r[left]
    evidence = None
    if traces.evidence is not None:
        e = traces.evidence
        known = place[e.place] >= 0
        stands = place[e.place[known]].astype(np.int32)
        evidence = Evidence(e.row[known], e.slot[known], stands, e.weight[known])
    return traces.on(traces.locations, r, evidence)
