"""
Time and memory of making visits of many fixes: 25 million by default, of taxis or of phones, without reading a file.

    python bench/read_fixes.py [--fixes 25000000] [--kind taxi|phone]
"""

import argparse
import resource
import time

import numpy as np

from elsewhere.data.places import make_visits
from elsewhere.data.stays import clean, find_stays, split_vehicles
from elsewhere.data.visits import Form, Preparation, Records


def fixes(n: int, kind: str, rng: np.random.Generator) -> Records:
    """Return random walks over a city: a fix a minute of a taxi, or one in ten minutes of a phone that mostly stays."""
    per_user = 10_000
    users = max(1, n // per_user)
    user = np.repeat(np.arange(users, dtype=np.int32), per_user)
    n = len(user)
    every = 60 if kind == "taxi" else 600
    start = np.tile(every * np.arange(per_user, dtype=np.int64), users) + 1_700_000_000
    pace = 0.004 if kind == "taxi" else 0.0001
    lat, lon = np.empty(n), np.empty(n)
    for u in range(users):
        rows = slice(u * per_user, (u + 1) * per_user)
        for side, middle, width in ((lat, 39.9, 0.2), (lon, 116.4, 0.25)):
            walk = np.cumsum(rng.normal(0, pace, per_user)) + rng.uniform(-width, width)
            side[rows] = middle + width * (np.abs((walk / width + 1) % 4 - 2) - 1)  # reflected at the city's edge
    return Records(user, tuple(map(str, range(users))), start, start, lat, lon, form=Form("fixes"))


def main() -> None:
    """Print seconds of processor and the peak of memory, of the fixes alone and of the visits made of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fixes", type=int, default=25_000_000)
    parser.add_argument("--kind", choices=("taxi", "phone"), default="taxi")
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    small = fixes(10_000, options.kind, rng)
    make_visits(find_stays(clean(small, Preparation())[0]), Preparation(), rng=rng)  # compile
    records = fixes(options.fixes, options.kind, rng)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{len(records):,} fixes of {len(records.users):,} users: {peak:.2f} GiB")
    begin = last = time.process_time()
    records, preparation = clean(records, Preparation(rows=len(records)))
    print(f"clean     {time.process_time() - last:6.1f} s")
    last = time.process_time()
    records = find_stays(records)
    print(f"stays     {time.process_time() - last:6.1f} s  {records}")
    last = time.process_time()
    records = split_vehicles(records)
    print(f"vehicles  {time.process_time() - last:6.1f} s  {records.form.unit}")
    last = time.process_time()
    visits = make_visits(records, preparation, rng=rng)
    print(f"places    {time.process_time() - last:6.1f} s  {visits}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"together  {time.process_time() - begin:6.1f} s, peak {peak:.2f} GiB")


if __name__ == "__main__":
    main()
