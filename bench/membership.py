"""
Who was in the file? Shadow releases of a town, half of the people in each; the attacker knows everybody's week.

`attack(lives, truth, xy, make, releases)` calls `make(members, rng) -> (lives (n, 7, 72), person each was made from)`
for each release, describes every person of the town by about 60 features of nearness to that release,
and returns AUC and true-positive rate at 1 % false positives of two classifiers added up: on the same people in other
releases, on new people, seeds and others apart; of the best single feature of each family; and the share of fakes that
each of 16 measures of nearness names.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from _membership_kernels import equal_slots, mean_difference, shifted_agreement
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

ROAD = 5
NAMES = (
    "class", "class shift", "rank shift", "profile", "moves", "moves3", "moves shift", "order rank", "order class",
    "home distance", "amount", "shape", "shape sorted", "place slot", "all", "all but own places",
)  # fmt: skip
FAMILIES = {
    "places": ("places",),
    "rare moves": ("rare moves",),
    "place and slot": ("place slot",),
    "times": ("moves", "moves3", "moves shift", "day moves3", "day moves shift"),
    "classes": ("class", "class shift", "profile", "day class", "day class shift"),
    "ranks": ("rank", "rank shift", "day rank", "day rank shift"),
    "order": ("order rank", "order class", "day order rank", "day order class"),
    "distances": ("home distance", "amount"),
    "shape": ("shape", "shape sorted"),
    "absence": ("absence",),
    "joint": ("all", "all but own places"),
}


@dataclass
class Release:
    """A release, or the population, as the attacker codes it: lives (n, 7, 72) of places."""

    lives: Any
    truth: Any
    distance: Any
    view: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        lives, truth, distance = self.lives, self.truth, self.distance
        n, places, view = len(lives), len(truth), self.view
        view["class"] = truth[lives].astype(np.int8)
        stay = np.zeros(lives.shape, bool)
        equal = lives[:, :, 1:] == lives[:, :, :-1]
        stay[:, :, 1:] |= equal
        stay[:, :, :-1] |= equal
        stay &= view["class"] != ROAD
        rank = np.full(lives.shape, 7, np.int8)
        home, top = np.zeros(n, int), np.zeros((n, 4), int) - 1
        order = {name: np.zeros((n, 7), np.int64) for name in ("order rank", "order class")}
        occupied = np.zeros((n, places), np.float32)
        for i in range(n):
            c = np.bincount(lives[i].ravel(), minlength=places)
            occupied[i] = c
            stays = np.bincount(lives[i][stay[i]], minlength=places) + 1e-3 * c
            best = np.argsort(-stays, kind="stable")
            ranks, m = np.full(places, 7, np.int8), min(6, int((stays >= 1).sum()))
            ranks[best[:m]] = np.arange(m)
            ranks[(stays >= 1) & (ranks == 7)] = 6
            rank[i], home[i] = ranks[lives[i]], best[0]
            top[i, : min(4, m)] = best[: min(4, m)]
            for d in range(7):
                w = lives[i, d]
                s = w[np.flatnonzero(stay[i, d] & np.r_[True, w[1:] != w[:-1]])]
                if len(s):
                    s = s[np.r_[True, s[1:] != s[:-1]]]
                order["order rank"][i, d] = hash(tuple(ranks[s].tolist()))
                order["order class"][i, d] = hash(tuple(truth[s].tolist()))
        moved = np.zeros(lives.shape, np.float32)
        moved[:, :, 1:] = lives[:, :, 1:] != lives[:, :, :-1]
        wide = moved.copy()
        wide[:, :, 1:] += moved[:, :, :-1]
        wide[:, :, :-1] += moved[:, :, 1:]
        step = distance[lives[:, :, :-1], lives[:, :, 1:]].sum(2)
        far = distance[home[:, None, None], lives]
        tops = np.where(top < 0, home[:, None], top)
        i, j = np.triu_indices(4, 1)
        amount = [np.log(step + 0.4), np.log(far.max(2) + 0.4), 0.5 * np.log1p(moved.sum(2))]
        cls = view["class"]
        profile = [
            np.stack([(cls[:, days] == c).mean(1) for c in range(6)], 2).reshape(n, -1)
            for days in (slice(0, 5), slice(5, 7))
        ]
        view |= order | {
            "rank": rank,
            "occupied": occupied,
            "moves": moved.reshape(n, -1),
            "moves3": np.minimum(wide, 1).reshape(n, -1),
            "home distance": np.log(far + 0.4)[:, :, ::2].reshape(n, -1).astype(np.float32),
            "amount": np.concatenate(amount, 1).astype(np.float32),
            "shape": np.log(distance[tops[:, i], tops[:, j]] + 0.4).astype(np.float32),
            "profile": np.concatenate(profile, 1).astype(np.float32),
        }


class Attacker:
    """Knows the week of everybody in town."""

    def __init__(self, lives: Any, truth: Any, xy: Any) -> None:
        self.truth, self.R, self.N = truth, len(xy), len(lives)
        self.distance = np.hypot(*(xy[:, None] - xy[None]).transpose(2, 0, 1)).astype(np.float32)
        self.people = Release(lives, truth, self.distance).view
        self.lives = lives
        self.visitors = (self.people["occupied"] > 0).sum(0)
        self.rarity = {k: np.zeros((self.N, 7), np.float32) for k in ("order rank", "order class")}
        for k, table in self.rarity.items():
            for d in range(7):
                _, i, c = np.unique(self.people[k][:, d], return_inverse=True, return_counts=True)
                table[:, d] = -np.log(c[i] / self.N)
        self.own_moves = [np.unique(self.moves_of(lives[i : i + 1])) for i in range(self.N)]
        self.movers = np.bincount(np.concatenate(self.own_moves), minlength=self.R**2)

    def moves_of(self, lives: Any) -> Any:
        """Return the numbers of all moves between neighbouring slots."""
        a, b = lives[:, :, :-1], lives[:, :, 1:]
        return a[a != b] * self.R + b[a != b]

    def nearness(self, release: Release) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return (fakes, people) similarities over the week, and (7, fakes, people) per day."""
        f, p, week, day = release.view, self.people, {}, {}
        for k in ("class", "rank"):
            week[k + " shift"], day[k + " shift"], week[k], day[k] = shifted_agreement(f[k], p[k], 6)
        slots = [v["moves3"].reshape(-1, 7, 72).astype(np.int8) for v in (f, p)]
        week["moves shift"], day["moves shift"], _, _ = shifted_agreement(*slots, 6)
        for k in ("moves", "moves3"):
            week[k] = _jaccard(f[k], p[k])
        by_day = [v["moves3"].reshape(-1, 7, 72) for v in (f, p)]
        day["moves3"] = np.stack([_jaccard(by_day[0][:, d], by_day[1][:, d]) for d in range(7)])
        for k, table in self.rarity.items():
            equal = [(f[k][:, d][:, None] == p[k][:, d][None]) * table[:, d][None] for d in range(7)]
            day[k] = np.stack(equal).astype(np.float32)
            week[k] = day[k].sum(0)
        for k in ("profile", "home distance", "amount", "shape"):
            week[k] = mean_difference(f[k], p[k])
        week["shape sorted"] = mean_difference(np.sort(f["shape"], 1), np.sort(p["shape"], 1))
        flat = [x.reshape(len(x), -1).astype(np.int16) for x in (release.lives, self.lives)]
        week["place slot"] = equal_slots(*flat)
        shared = (f["occupied"] > 0).astype(np.float32) @ (p["occupied"] > 0).T.astype(np.float32)
        week["own places"] = shared
        joint = ("class shift", "rank shift", "profile", "moves3", "moves shift", "order rank", "order class",
                 "home distance", "amount", "shape sorted")  # fmt: skip
        week["all"] = sum((week[k] - week[k].mean()) / (week[k].std() + 1e-9) for k in joint)
        week["all but own places"] = week["all"] - 2 * np.minimum(shared, 3)
        return week, day

    def features(self, release: Release, week: Any, day: Any) -> dict[tuple[str, str], Any]:
        """Return features (people,) of how near somebody is to a release."""
        out, f, people, own = {}, release.view, self.people, self.people["occupied"] > 0
        for k, s in week.items():
            if k == "own places":
                continue
            m = np.sort(s, 0)
            out[k, "max"], out[k, "gap"] = m[-1], m[-1] - m[-2]
            t = np.sort(s, 1)
            out[k, "margin"] = (s - np.where(s == t[:, -1:], t[:, -2:-1], t[:, -1:])).max(0)
        for k, s in day.items():
            m = s.max(1)
            out["day " + k, "mean"], out["day " + k, "min"] = m.mean(0), np.sort(m, 0)[:2].mean(0)
            if k in self.rarity:
                out["day " + k, "count"] = (self.rarity[k].T * np.log1p((s > 0).sum(1))).mean(0)
            else:
                t = np.partition(s, -2, 2)[:, :, -2:]
                first, second = t.max(2)[:, :, None], t.min(2)[:, :, None]
                out["day " + k, "margin"] = (s - np.where(s == first, second, first)).max(1).mean(0)
        count, total = (f["occupied"] > 0).sum(0), f["occupied"].sum(0)
        rare = own / np.maximum(self.visitors, 1)
        border = (self.visitors >= 4) & (self.visitors <= 16) & (count > 0)
        hour = np.broadcast_to(np.arange(72) // 3, release.lives.shape)
        by_hour = np.zeros((self.R, 24), np.float32)
        np.add.at(by_hour, (release.lives.ravel(), hour.ravel()), 1)
        hours = np.broadcast_to(np.arange(72) // 3, self.lives.shape)
        moves = np.bincount(self.moves_of(release.lives), minlength=self.R**2)
        shared = week["own places"]
        nearest = week["all"].argmax(0)
        top = np.argsort(-week["all"], 0)[:5]
        weighted = (f["occupied"] > 0).astype(float) @ rare.T
        mine = self.own_moves
        return out | {
            ("places", "share"): (own * (count > 0)).sum(1) / own.sum(1),
            ("places", "rare"): (rare * (count > 0)).sum(1),
            ("places", "border"): (own * border).sum(1),
            ("places", "density"): (rare * np.log1p(count)).sum(1),
            ("places", "time"): (people["occupied"] * np.log(total + 1)).sum(1) / 504,
            ("places", "hour"): np.log(by_hour[self.lives, hours] + 1).mean((1, 2)),
            ("rare moves", "share"): np.array([(moves[m] > 0).mean() for m in mine]),
            ("rare moves", "rare"): np.array([((moves[m] > 0) / self.movers[m]).sum() for m in mine]),
            ("rare moves", "single"): np.array([(moves[m[self.movers[m] == 1]] > 0).sum() for m in mine]),
            ("rare moves", "count"): np.array([(np.log1p(moves[m]) / self.movers[m]).sum() for m in mine]),
            ("absence", "zero"): (shared == 0).mean(0),
            ("absence", "best"): shared[nearest, np.arange(self.N)] - shared.mean(0),
            ("absence", "least"): np.sort(weighted, 0)[:3].mean(0),
            ("absence", "best5"): np.take_along_axis(shared, top, 0).mean(0) - shared.mean(0),
        }


def _jaccard(a: Any, b: Any) -> Any:
    both = a @ b.T
    return both / np.maximum(a.sum(1)[:, None] + b.sum(1)[None] - both, 1)


def true_positives(y: Any, score: Any, at: float = 0.01) -> float:
    """Return the share of positives above the score that a share `at` of negatives exceeds."""
    negative = np.sort(score[~y])[::-1]
    return float((score[y] > negative[int(at * len(negative))]).mean())


def _fit_predict(train: Any, y: Any, test: Any) -> Any:
    linear = make_pipeline(StandardScaler(), LogisticRegression(C=0.02, max_iter=300)).fit(train, y)
    trees = HistGradientBoostingClassifier(
        max_depth=4, max_iter=80, learning_rate=0.08, min_samples_leaf=40, l2_regularization=1.0, random_state=0
    ).fit(train, y)
    return linear.decision_function(test) + trees.decision_function(test)


def attack(lives: Any, truth: Any, xy: Any, make: Any, releases: int, folds: int = 3) -> dict[str, Any]:
    """Attack `releases` shadow releases of half of these people; return figures (AUC, TPR at 1 %) and `named`."""
    attacker, N = Attacker(lives, truth, xy), len(lives)
    X, Y, named, seeded, fakes = [], [], [], [], 0
    for k in range(releases):
        members = np.sort(np.random.default_rng(1000 + k).permutation(N)[: N // 2])
        made, person = make(members, np.random.default_rng(5000 + k))
        release = Release(made, truth, attacker.distance)
        week, day = attacker.nearness(release)
        columns = attacker.features(release, week, day)
        X.append(np.column_stack(list(columns.values())))
        Y.append(np.isin(np.arange(N), members))
        seeded.append(np.isin(np.arange(N), person))
        at = np.searchsorted(members, person)
        named.append([(week[name][:, members].argmax(1) == at).mean() for name in NAMES])
        fakes += len(made)
    return _judge(np.nan_to_num(np.array(X, float)), np.array(Y), np.array(seeded), list(columns), named, folds) | {
        "fakes": fakes / releases
    }


def _judge(X: Any, y: Any, seeded: Any, columns: Any, named: Any, folds: int) -> dict[str, Any]:
    K, N, n = X.shape
    perm = np.random.default_rng(0).permutation(N)
    halves = [np.sort(perm[: N // 2]), np.sort(perm[N // 2 :])]
    same, new = np.zeros((K, N)), np.zeros((K, N))
    family = {name: np.zeros((K, N)) for name in FAMILIES}
    for fold in range(folds):
        test = np.arange(K) % folds == fold
        train = ~test
        mean, sd = X[train].mean(0), X[train].std(0)
        Z = np.concatenate([X, (X - mean) / (sd + 0.3 * sd.mean(0) + 1e-9)], 2)
        score = _fit_predict(Z[train].reshape(-1, 2 * n), y[train].ravel(), Z[test].reshape(-1, 2 * n))
        same[test] = score.reshape(-1, N)
        for a, b in (halves, halves[::-1]):
            q = _fit_predict(X[train][:, a].reshape(-1, n), y[train][:, a].ravel(), X[test][:, b].reshape(-1, n))
            new[np.ix_(test, b)] = q.reshape(test.sum(), -1)
        for name, of in FAMILIES.items():
            ids = [n + i for i, c in enumerate(columns) if c[0] in of]
            auc = [roc_auc_score(y[train].ravel(), Z[train][:, :, i].ravel()) for i in ids]
            best = int(np.argmax(np.abs(np.array(auc) - 0.5)))
            family[name][test] = Z[test][:, :, ids[best]] * np.sign(auc[best] - 0.5)
    flat, only = y.ravel(), y & ~seeded
    out: dict[str, Any] = {
        name: (roc_auc_score(flat, s.ravel()), true_positives(flat, s.ravel()))
        for name, s in (("same people", same), ("new people", new))
    }
    for name, mask in (("seeds", seeded | ~y), ("others in the file", only | ~y)):
        if mask[y].any() and only.any():
            out[name] = (roc_auc_score(y[mask], same[mask]), true_positives(y[mask], same[mask]))
    out["families"] = {name: roc_auc_score(flat, s.ravel()) for name, s in family.items()}
    mean = np.mean(named, 0)
    out["named"] = (float(mean.max()), NAMES[int(mean.argmax())])
    return out
