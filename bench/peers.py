"""
Lives beside their peers on one town and on People Flow Tokyo, in one table of docs/results.md:

    python bench/peers.py [--only town|pf] [--which life,markov]

Half of the people teach, the other half are strangers whom no generator has met. Columns: how many uses the fakes are
good and rough for; told from strangers (A15, AUC); who was in the file (the larger AUC of A3 and A10, beside what
exchanged people reach); fakes nearer to people of the file than to strangers (the largest share of A2, A4, A5, A24);
seconds of processor. `paper` samples as the paper does, `certified` has eps 4 and a week.

DITRAS (Pappalardo and Simini, DMKD 2018) and the pooled Markov chain are small ones of our own, after their
descriptions: scikit-mobility, which has the first, could not be installed beside this package's libraries.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

import elsewhere as ew
from elsewhere.data.visits import DAY, Visits
from elsewhere.evaluation.usefulness import judge_usefulness

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "pf_tokyo"
HOUR = 3_600
NEW, LESS_NEW = 0.6, 0.21  # rho and gamma of exploration: Pr{new place} = rho S^-gamma after S places
SENTINEL = -1  # an hour in which nobody was seen
Rng = np.random.Generator


def by_hour(people: Visits) -> tuple[Any, int]:
    """Return (U, hours) the place of each person in each hour, the last one known where nobody was seen, and hour 0."""
    first = int(people.start.min()) // HOUR
    n = int(people.end.max() - 1) // HOUR + 1 - first
    out = np.full((people.U, n), SENTINEL)
    for u, start, end, place in zip(people.user, people.start, people.end, people.place, strict=True):
        out[u, start // HOUR - first : max(end - 1, start) // HOUR + 1 - first] = place
    for t in range(1, n):
        out[:, t] = np.where(out[:, t] < 0, out[:, t - 1], out[:, t])
    return out, first


def to_visits(table: Any, first: int, like: Visits, step: int = HOUR) -> Visits:
    """Return runs of one place as visits."""
    N, n = table.shape
    flat = table.ravel()
    begins = np.flatnonzero(np.r_[True, (flat[1:] != flat[:-1]) | (np.arange(1, N * n) % n == 0)])
    ends = np.r_[begins[1:], N * n]
    seen = flat[begins] >= 0
    user, start = begins // n, (first + begins % n) * step
    columns = user[seen], start[seen], (start + (ends - begins) * step)[seen], flat[begins][seen]
    return Visits(*columns, like.locations, tz=like.tz)


# ---- peers


def markov(people: Visits, rng: Rng) -> Visits:
    """Return lives of a chain over places, pooled over all people, by hour of the day."""
    table, first = by_hour(people)
    N, n = table.shape
    out = np.empty_like(table)
    out[:, 0] = rng.permutation(table[:, 0])
    hour = (first + np.arange(n)) % 24
    for t in range(1, n):
        at = np.flatnonzero(hour[1:] == hour[t]) + 1
        a, b = table[:, at - 1].ravel(), table[:, at].ravel()
        order = np.argsort(a, kind="stable")
        low, high = (np.searchsorted(a[order], out[:, t - 1], side) for side in ("left", "right"))
        pick = low + (rng.random(N) * (high - low)).astype(np.int64)
        out[:, t] = np.where(high > low, b[order][np.minimum(pick, len(b) - 1)], out[:, t - 1])
    return to_visits(out, first, people)


def ditras(people: Visits, rng: Rng) -> Visits:
    """
    Return lives by DITRAS: a diary of hours at the typical place or away, then d-EPR for where.

    The diary is a Markov chain over (hour of the day, at home or not, for how long): away for a number of hours that
    somebody stayed away from that hour on. d-EPR: with probability .6 S^-.21 a new place, by relevance over squared
    distance (gravity), else one visited before, by how often.
    """
    table, first = by_hour(people)
    N, n = table.shape
    hour = (first + np.arange(n)) % 24
    home = np.array([np.bincount(row[row >= 0]).argmax() for row in table])
    away = (table != home[:, None]) & (table >= 0)
    leaves: list[list[int]] = [[] for _ in range(24)]  # hours that a stay away from home lasts, 0: stays at home
    again: list[list[int]] = [[] for _ in range(24)]  # the same after another stay away
    for u in range(N):
        t = 1
        while t < n:
            kind = again if away[u, t - 1] else leaves
            stay = 0
            if away[u, t]:
                stay = 1
                while t + stay < n and table[u, t + stay] == table[u, t]:
                    stay += 1
            kind[hour[t]].append(stay)
            t += max(stay, 1)
    relevance = np.bincount(people.place, minlength=people.R).astype(np.float64)
    xy = people.locations.planar()
    out = np.empty_like(table)
    for i in range(N):
        own = {int(rng.choice(len(relevance), p=relevance / relevance.sum())): 1}
        at_home = next(iter(own))
        out[i, 0], t = at_home, 1
        while t < n:
            said = (leaves if out[i, t - 1] == at_home else again)[hour[t]] or [0]
            stay = min(said[rng.integers(len(said))], n - t)
            here = int(out[i, t - 1])
            out[i, t : t + max(stay, 1)] = at_home if stay == 0 else next_place(own, here, relevance, xy, rng)
            t += max(stay, 1)
    return to_visits(out, first, people)


def next_place(own: dict[int, int], here: int, relevance: Any, xy: Any, rng: Rng) -> int:
    """Return where somebody goes by d-EPR, and remember it in `own`."""
    if rng.random() < NEW * len(own) ** -LESS_NEW:
        weight = relevance / np.maximum(((xy - xy[here]) ** 2).sum(axis=1), 0.01)
        weight[list(own)] = 0.0
    else:
        weight = np.zeros(len(relevance))
        weight[list(own)] = list(own.values())
        weight[here] = 0.0
    place = int(rng.choice(len(weight), p=weight / weight.sum())) if weight.sum() > 0 else here
    own[place] = own.get(place, 0) + 1
    return place


def made(**how: Any) -> Callable[[Visits, Rng], Visits]:
    """Return the generator of this package with these options."""
    return lambda people, rng: ew.generate_fakes(people, rng=rng, **how).visits


def paper(people: Visits, rng: Rng) -> Visits:
    """Return fakes of the paper's sampler, which works on days of slots."""
    return ew.generate_fakes(people.traces(), method="paper", rng=rng).visits


GENERATORS: dict[str, Callable[[Visits, Rng], Visits]] = {
    "life": made(),
    "certified, eps 4": made(eps=4.0, days=7),
    "paper": paper,
    "DITRAS": ditras,
    "pooled Markov chain": markov,
}


# ---- data


def town() -> Visits:
    """Return 1,400 people for a week, of a town that no generator was designed on; a certificate needs some 600."""
    return ew.simulate_town(users=1_400, days=7, locations=400, rng=np.random.default_rng(177)).visits


def pf() -> Visits:
    """Return the 1,000 people of PF Tokyo, ten hours of a day each."""
    import pandas as pd

    table = pd.read_csv(DATA / "pf_tokyo_traces.csv.gz", usecols=["uid", "slot", "loc"]).sort_values(["uid", "slot"])
    where = pd.read_csv(DATA / "pf_tokyo_locations.csv")
    r = table["loc"].to_numpy().reshape(1000, 30)
    places = ew.Locations(lat=where["lat"].to_numpy(), lon=where["lon"].to_numpy())
    first = 19_786 * DAY // 1_200 + 27  # nine o'clock
    return to_visits(r, first, Visits([0], [0], [1], [0], places), 1_200)


# ---- the table


def judge(make: Callable[[Visits, Rng], Visits], people: Visits, strangers: Visits) -> dict[str, str]:
    """Return the cells of one generator."""
    with suppress(ew.ElsewhereError):
        make(people.of_users(np.arange(60)), np.random.default_rng(0))  # compiled before it is timed
    begin = time.process_time()
    fakes = make(people, np.random.default_rng(1))
    seconds = time.process_time() - begin
    uses = judge_usefulness(people, strangers, fakes, rng=np.random.default_rng(2))
    words = [use.verdict for use in uses.uses]
    attacks = ["A2", "A3", "A4", "A5", "A10", "A15", "A24"]
    found = ew.audit(people, strangers, fakes, None, attacks=attacks, rng=np.random.default_rng(3))
    told = found["A15"].main
    members = [(d["auc"][d["strongest"]].value, d["detectable"]) for d in (found[a].details for a in ("A3", "A10"))]
    member, chance = max((max(value, 1 - value), chance) for value, chance in members)
    nearer = [found[a].details["links_found"] for a in ("A2", "A4", "A5", "A24")]
    nearest = min(nearer, key=lambda d: d["p"])
    hours, flows = uses["hours"].fakes, uses["flows_neighbourhoods"].fakes
    return {
        "good": str(words.count("good")),
        "rough": str(words.count("rough")),
        "not": str(words.count("not for this")),
        "hours": "-" if hours is None else f"{hours:.2f}",
        "flows": "-" if flows is None else f"{flows:.2f}",
        "told": "-" if told is None else f"{told.value:.3f}",
        "membership (chance)": f"{member:.3f} ({chance:.3f})",
        "nearer (p)": f"{nearest['share'].value:.2f} ({nearest['p']:.3f})",
        "fakes": str(fakes.U),
        "seconds": f"{seconds:.1f}",
    }


def main() -> None:
    """Measure what the command line asks for, and print it."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", choices=["town", "pf"])
    options.add_argument("--which", default=",".join(GENERATORS).replace(", eps", " eps"))
    given = options.parse_args()
    warnings.simplefilter("ignore")
    names = [name for name in GENERATORS if name.replace(", eps", " eps") in given.which.split(",")]
    for data in [given.only] if given.only else ["town", "pf"]:
        everybody = {"town": town, "pf": pf}[data]()
        order = np.random.default_rng(0).permutation(everybody.U)
        people, strangers = (everybody.of_users(np.sort(order[i::2])) for i in (0, 1))
        print(f"\n{data}: {people} teach, {strangers.U} strangers\n")
        half = [strangers.of_users(np.arange(i, strangers.U, 2)) for i in (0, 1)]
        cells = judge(lambda _, rng: half[0], people, half[1])  # noqa: B023 - called at once
        print(f"| | {' | '.join(cells)} |\n|---|{'---|' * len(cells)}")
        print(f"| other real people | {' | '.join(cells.values())} |")
        for name in names:
            try:
                shown = " | ".join(judge(GENERATORS[name], people, strangers).values())
            except ew.ElsewhereError as error:
                shown = f"refused: {error.code}"
            print(f"| {name} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
