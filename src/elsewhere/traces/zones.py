"""Find time zones by name, by a fixed offset, and by where people are."""

import re
from datetime import datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from numpy.typing import NDArray

from elsewhere.errors import InvalidParameter

ASKED = 200  # points whose zone is looked up: one zone is wanted, not a map of them


def zone_of(name: str) -> tzinfo:
    """Return the zone of an IANA name, or of "UTC+05:30" or "+05:30"; anything else is refused (E_TZ)."""
    fixed = re.fullmatch(r"(?:UTC)?([+-]\d\d:\d\d)", name) if isinstance(name, str) else None
    try:
        return timezone(timedelta(seconds=offset_seconds(fixed[1]))) if fixed else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        raise InvalidParameter(
            f'`tz` must be an IANA zone such as "Europe/Zurich", or an offset "+02:00", got {name!r}.', code="E_TZ"
        ) from None


def changing_days(name: str, dates: NDArray[np.datetime64]) -> NDArray[np.bool_]:
    """
    Return which days have more or fewer than 24 hours in a zone: its clock is put forward or back on them.

    Examples
    --------
    >>> changing_days("Europe/Zurich", np.array(["2024-03-30", "2024-03-31"], dtype="datetime64[D]")).tolist()
    [False, True]

    """
    zone = zone_of(name)
    midnights = [datetime.fromisoformat(str(day)) for day in (*dates, *(dates + 1))]
    shift = [midnight.replace(tzinfo=zone).utcoffset() for midnight in midnights]
    return np.array([a != b for a, b in zip(shift[: len(dates)], shift[len(dates) :], strict=True)], dtype=bool)


def offset_seconds(offset: str) -> int:
    """Return seconds east of Greenwich of "Z", "+02", "+0200" or "+02:00"."""
    if offset == "Z":
        return 0
    digits = offset[1:].replace(":", "").ljust(4, "0")
    seconds = 3600 * int(digits[:2]) + 60 * int(digits[2:])
    return -seconds if offset[0] == "-" else seconds


def offset_zone(seconds: int) -> str:
    """
    Return the name of the zone that is always `seconds` east of Greenwich; IANA's if it has one (with reversed signs).

    Examples
    --------
    >>> offset_zone(9 * 3600), offset_zone(19800), offset_zone(0)
    ('Etc/GMT-9', 'UTC+05:30', 'UTC')

    """
    hours, rest = divmod(abs(seconds), 3600)
    if seconds == 0:
        return "UTC"
    if rest == 0 and -12 * 3600 <= seconds <= 14 * 3600:
        return f"Etc/GMT{'-' if seconds > 0 else '+'}{hours}"
    return f"UTC{'+' if seconds > 0 else '-'}{hours:02}:{rest // 60:02}"


def land_share(lat: NDArray[np.float64], lon: NDArray[np.float64]) -> float:
    """Return share of the points that lie on land, of some that are evenly chosen; 1 where nobody can tell."""
    try:
        from tzfpy import get_tz
    except ImportError:
        return 1.0
    valid = np.flatnonzero((np.abs(lat) <= 90) & (np.abs(lon) <= 180))
    chosen = valid[np.linspace(0, len(valid) - 1, min(ASKED, len(valid))).astype(np.int64)] if len(valid) else valid
    zones = [get_tz(float(lon[i]), float(lat[i])) for i in chosen]
    return sum(bool(zone) and not zone.startswith("Etc/") for zone in zones) / max(1, len(zones))


def zone_at(lat: NDArray[np.float64], lon: NDArray[np.float64]) -> tuple[str | None, str]:
    """
    Return the IANA zone in which most of the points lie, and a word on it; None where it cannot be found.

    Looked up among evenly chosen points, offline, by the library tzfpy.
    """
    try:
        from tzfpy import get_tz
    except ImportError:
        return None, "install tzfpy to find the zone from the coordinates"
    valid = np.flatnonzero(np.isfinite(lat) & np.isfinite(lon) & (np.abs(lat) <= 90) & (np.abs(lon) <= 180))
    chosen = valid[np.linspace(0, len(valid) - 1, min(ASKED, len(valid))).astype(np.int64)] if len(valid) else valid
    names = [get_tz(float(lon[i]), float(lat[i])) for i in chosen]
    counts = {name: names.count(name) for name in sorted(set(names)) if name and not name.startswith("Etc/")}
    if not counts:
        return None, "the coordinates lie in no zone"
    best = max(counts, key=lambda name: counts[name])
    try:
        zone_of(best)
    except InvalidParameter:
        return None, "the zone of the coordinates is not known here"
    share = counts[best] / len(names)
    return best, "" if share > 0.98 else f"{1 - share:.0%} of the points lie in other zones"
