"""
StudentLife from raw fixes beside the file that was prepared elsewhere: `python bench/compare_prepared.py`.

Both as 72 slots and 400 places; complete days only. Needs ../shared/data/studentlife.
"""

from pathlib import Path

import numpy as np

import elsewhere as ew

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "studentlife"


def figures(traces):
    visits = np.bincount(traces.r.ravel(), minlength=traces.R)
    share = visits[visits > 0] / visits.sum()
    moves = np.count_nonzero(np.diff(traces.r, axis=1), axis=1)
    distinct = [len(np.unique(row)) for row in traces.r]
    return {
        "users": traces.U,
        "days": len(traces),
        "places": traces.R,
        "entropy of visits, nats": -(share * np.log(share)).sum(),
        "moves a day": moves.mean(),
        "places a day": np.mean(distinct),
    }


def main():
    told = []
    how = {"places": "merge", "map": "whole"}
    raw = ew.read_traces(
        DATA / "studentlife_gps.parquet", tz="America/New_York", max_gap="3h", min_coverage=1, report=told.append, **how
    )
    made = ew.read_traces(DATA / "studentlife_72slots.parquet", **how)
    # days whose first slots are filled from their first fix are complete here and not there
    there = set(zip(made.users, made.dates, strict=True))
    raw = raw.select([day in there for day in zip(raw.users, raw.dates, strict=True)])
    both = {"raw, read here": figures(raw), "prepared elsewhere": figures(made)}
    for name in both["raw, read here"]:
        print(f"{name:28}" + "".join(f"{column[name]:>14.3f}" for column in both.values()))
    print(f"{'slots observed':28}{told[0].slots_observed / raw.r.size:>14.3f}{0.963:>14.3f}   (its own note)")
    apart = np.array([raw.locations.lat[raw.r], raw.locations.lon[raw.r]])
    there = np.array([made.locations.lat[made.r], made.locations.lon[made.r]])
    scale = np.cos(np.radians(43.7))
    km = 111.195 * np.hypot(apart[0] - there[0], (apart[1] - there[1]) * scale)
    near = [float(np.mean(km < reach)) for reach in (0.1, 1)]
    same_days = np.array_equal(raw.users, made.users) and np.array_equal(raw.dates, made.dates)
    print(f"same users and days: {same_days}; slots within 100 m: {near[0]:.3f}, within 1 km: {near[1]:.3f}")


if __name__ == "__main__":
    main()
