"""
Which classes are closest to the truth, and why rows of w_G are not: the evidence for docs/decisions.md.

`python bench/compare_classes.py [WORD]` (a quarter of an hour; with a word, only choices whose name holds it). Every
choice is run from several starts on simulated towns (true classes), on Foursquare NYC (root categories) and on
StudentLife (campus dining venues), the last two if they lie in ../shared/data. The score is adjusted mutual
information; for StudentLife, where seven venues are all that is known, how many times likelier a place near one venue
shares its class with a place near another venue than with any place elsewhere.
"""

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.metrics import adjusted_mutual_info_score

import elsewhere as ew
from elsewhere.paper.profiles import count

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data"
STARTS = 5
PAIR_LOOP = 150  # users for whom every pair may be searched
MANY_EDGES = 1_000_000  # too many for a community method in Python


class Truth(NamedTuple):
    """Visits (columns user, place, hour), what is known of each place, where it lies, and the kappa to ask for."""

    visits: pd.DataFrame
    known: np.ndarray  # category of each place, -1 unknown
    xy: np.ndarray
    kappa: int
    score: object

    def profiles(self, T):
        user, place = self.visits.user.to_numpy(), self.visits.place.to_numpy()
        slot = self.visits.groupby(["user", "row"]).cumcount().to_numpy()
        row = self.visits.row.to_numpy()
        r = np.full((row.max() + 1, slot.max() + 1), -1, dtype=np.int32)
        tau = np.zeros(r.shape, dtype=np.int32)
        r[row, slot], tau[row, slot] = place, ew.Periods.of(T).of_minute(60 * self.visits.hour.to_numpy())
        owner = self.visits.groupby("row").user.first().to_numpy()
        return count(r, owner, tau, U=user.max() + 1, R=len(self.known), T=T)


def agreement(label, known):
    kept = (known >= 0) & (label >= 0)
    return adjusted_mutual_info_score(known[kept], label[kept])


def town(users, days):
    made = ew.simulate_town(users=users, days=days, rng=np.random.default_rng(1))
    t = made.traces
    columns = {
        "user": np.repeat(t.user, t.L),
        "row": np.repeat(np.arange(len(t)), t.L),
        "place": t.r.ravel(),
        "hour": np.tile(t.minutes() / 60, len(t)),
    }
    return Truth(pd.DataFrame(columns), made.truth, t.locations.planar(), 6, agreement)


def foursquare():
    """1,028 users with 30 check-ins or more at 3,328 venues with 15 or more."""
    seen = pd.read_csv(DATA / "foursquare_nyc" / "fsq_nyc_checkins.csv.gz", low_memory=False)
    seen = seen[seen.poi.map(seen.poi.value_counts()) >= 15]
    seen = seen[seen.uid.map(seen.uid.value_counts()) >= 30].sort_values(["uid", "timestamp_local"])
    when = pd.to_datetime(seen.timestamp_local)
    seen["user"] = seen["row"] = pd.factorize(seen.uid)[0]
    seen["place"] = pd.factorize(seen.poi)[0]
    seen["hour"] = when.dt.hour + when.dt.minute / 60
    venue = seen.groupby("place").first()
    return Truth(seen, pd.factorize(venue.category)[0], _planar(venue.lat, venue.lon), 20, agreement)


def studentlife(cell=50.0, visitors=3, reach=60.0):
    """Cells of 50 m with three visitors or more; known are those within 60 m of a dining venue's median position."""
    folder = DATA / "studentlife"
    fixes = pd.read_parquet(folder / "studentlife_72slots.parquet")
    fixes = fixes[fixes.lat.between(43.60, 43.80) & fixes.lon.between(-72.45, -72.10)].copy()
    metres = 1000 * _planar(fixes.lat, fixes.lon)
    fixes["cell"] = pd.factorize(pd.Series(map(tuple, np.floor(metres / cell).astype(int))))[0]
    fixes = fixes[fixes.cell.map(fixes.groupby("cell").uid.nunique()) >= visitors]
    fixes["user"], fixes["place"] = pd.factorize(fixes.uid.astype(str))[0], pd.factorize(fixes.cell)[0]
    fixes = fixes.sort_values(["user", "date", "slot"])
    fixes["row"] = pd.factorize(fixes.user.astype(str) + " " + fixes.date.astype(str))[0]
    fixes["hour"] = fixes.slot / 3
    middle = fixes.groupby("place")[["lat", "lon"]].median()
    venue = _dining_venues(folder)
    known = np.full(len(middle), -1)
    for number, (lat, lon) in enumerate(venue.to_numpy()):
        east, north = (middle.lon - lon) * np.cos(np.radians(lat)), middle.lat - lat
        known[np.hypot(east, north) * 111_195 < reach] = number
    return Truth(fixes, known, _planar(middle.lat, middle.lon), 20, dining)


def _dining_venues(folder):
    """Median position of the phones around card payments; venues of one building are one."""
    fixes = pd.read_parquet(folder / "studentlife_gps.parquet")
    fixes["when"] = pd.to_datetime(fixes.timestamp_local.astype(str).str[:19])
    fixes["uid"] = fixes.uid.astype(str)
    paid = pd.read_csv(folder / "studentlife_dining_labels.csv.gz")
    paid["when"] = pd.to_datetime(paid.timestamp_local)
    paid["venue"] = paid.venue.replace({"Collis Market": "Collis Cafe", "King Arthur Flour Coffee Bar": "Novack Cafe"})
    near = pd.merge_asof(
        paid.sort_values("when"), fixes[["uid", "when", "lat", "lon"]].sort_values("when"),
        on="when", by="uid", direction="nearest", tolerance=pd.Timedelta("20min"),
    ).dropna(subset="lat")  # fmt: skip
    return near.groupby("venue")[["lat", "lon"]].median()[near.groupby("venue").size() >= 20]


def dining(label, known):
    here, elsewhere = np.flatnonzero(known >= 0), np.flatnonzero((known < 0) & (label >= 0))
    other_venue = known[here][:, None] != known[here]
    same = (label[here][:, None] == label[here])[other_venue].mean()
    return same / (label[here][:, None] == label[elsewhere]).mean()


def _planar(lat, lon):
    return ew.Locations(lat=lat, lon=lon).planar()


def by_rows(rows, kappa, start):
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
    return KMeans(kappa, n_init=10, random_state=start).fit_predict(rows)


def hours(truth):
    table = np.zeros((len(truth.known), 24))
    np.add.at(table, (truth.visits.place, truth.visits.hour.astype(int)), 1)
    return table


def spectral(graph, kappa, start):
    label = np.full(graph.R, -1)
    label[graph.visited] = SpectralClustering(
        kappa, affinity="precomputed", n_init=10, random_state=start, assign_labels="kmeans"
    ).fit_predict(graph.w_visited + 1e-9 * graph.w_visited.mean())
    return label


def without_popularity(graph, kappa, start):
    """Rows of w_G, each column divided by the sum of its weights."""
    label = np.full(graph.R, -1)
    label[graph.visited] = by_rows(graph.w_visited / np.maximum(graph.w_visited.sum(axis=0), 1e-12), kappa, start)
    return label


def louvain(graph, kappa, start):
    import networkx

    label = np.full(graph.R, -1)
    places = np.flatnonzero(graph.visited)
    found = networkx.community.louvain_communities(networkx.from_numpy_array(graph.w_visited), seed=start)
    for number, community in enumerate(found):
        label[places[list(community)]] = number
    return label


def choices():
    """Name of each choice -> (truth, start) -> label of each place, or None where it would take too long."""

    def graph(truth, T, **how):
        few = truth.visits.user.nunique() <= PAIR_LOOP
        return ew.semantic_graph(truth.profiles(T), rng=np.random.default_rng(0), **how) if few or not how else None

    def clustered(T, method, **how):
        def make(truth):
            g, options = graph(truth, T, **how), {"kappa": truth.kappa, "method": method}
            return g and (lambda start: ew.semantic_clustering(g, **options, rng=np.random.default_rng(start)).label)

        return make

    def by_graph(T, function):
        def make(truth):
            g = graph(truth, T)
            if function is louvain and np.count_nonzero(g.w_visited) > MANY_EDGES:
                return None
            return lambda start: function(g, truth.kappa, start)

        return make

    yield "random partition", lambda t: lambda s: np.random.default_rng(s).integers(0, t.kappa, len(t.known))
    yield "geography", lambda t: lambda s: KMeans(t.kappa, n_init=10, random_state=s).fit_predict(t.xy)
    yield "time of day, 24 hours", lambda t: lambda s: by_rows(hours(t), t.kappa, s)
    yield "time of day, square roots", lambda t: lambda s: by_rows(np.sqrt(hours(t)), t.kappa, s)
    for T in (1, 4, 24):
        yield f"rows of w_G, T = {T}" + (" (the paper)" if T == 1 else ""), clustered(T, "kmeans")
    yield "rows of w_G, T = 4, common", clustered(4, "kmeans", mapping="common")
    yield "rows of w_G, T = 1, order 1", clustered(1, "kmeans", order=1)
    yield "rows of w_G, T = 4, order 1", clustered(4, "kmeans", order=1)
    yield "spectral on w_G, T = 4", by_graph(4, spectral)
    yield "Louvain on w_G, T = 4", by_graph(4, louvain)
    for T in (1, 24):
        yield f"w_G over popularity, T = {T}", by_graph(T, without_popularity)
    for T in (1, 4, 8, 12, 24):
        yield f"roles, T = {T}", clustered(T, "roles")


def main():
    truths = {"town 120": town(120, 2), "town 500": town(500, 5), "town 2000": town(2000, 5)}
    if (DATA / "foursquare_nyc").is_dir():
        truths["Foursquare"] = foursquare()
    if (DATA / "studentlife").is_dir():
        truths["StudentLife"] = studentlife()
    print(f"{'':30}" + "".join(f"{name:>16}" for name in truths))
    for name, make in choices():
        if not all(word in name for word in sys.argv[1:]):
            continue
        cells = []
        for truth in truths.values():
            label_of = make(truth)
            if label_of is None:
                cells.append("-")
                continue
            score = [truth.score(label_of(s), truth.known) for s in range(STARTS)]
            cells.append(f"{np.mean(score):.3f} ± {np.std(score):.3f}")
        print(f"{name:30}" + "".join(f"{cell:>16}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
