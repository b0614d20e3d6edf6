"""A person's list of a certified run, from its definition, in plain Python."""

import math

SLOTS, CLASSES, PASSED, UNSEEN, STATES = 72, 6, 5, 6, 7
PASSING, BINS = 3, 10


def runs_of(day):
    """(first slot, slot after it, place) of each run of one place, -1 where nobody was seen."""
    out, t = [], 0
    while t < len(day):
        u = t
        while u < len(day) and day[u] == day[t]:
            u += 1
        out.append((t, u, day[t]))
        t = u
    return out


def classes_of(days, off, prototypes):
    """The class of each place of a person, by its definition."""
    everything = sum(r >= 0 for day in days for r in day)
    found = {}
    for x in {r for day in days for r in day if r >= 0}:
        parts, runs, between, on = [0.0] * 16, 0, 0, 0
        for day, weekend in zip(days, off, strict=True):
            on += x in day
            for t in range(SLOTS):
                if day[t] == x:
                    parts[t // 9 + 8 * weekend] += 1
            for t, u, r in runs_of(day):
                if r == x:
                    runs += 1
                    inside = 0 < t and u < SLOTS
                    between += inside and u - t <= PASSING and day[t - 1] >= 0 and day[u] >= 0 and day[t - 1] != day[u]
        total = sum(parts)
        if between == runs:
            found[x] = PASSED
            continue
        row = [math.sqrt(p / total) for p in parts]
        row += [1.5 * total / everything, 0.4 * math.log1p(total / runs / 3), 0.8 * on / len(days)]
        far = [sum((a - b) ** 2 for a, b in zip(row, centre, strict=True)) for centre in prototypes]
        found[x] = far.index(min(far))
    return found


def anchors_of(days, classes):
    """The night place and the main place: most time in class 0, or at all; most time elsewhere, a twentieth of it."""
    time = {x: sum(r == x for day in days for r in day) for x in classes}
    order = list(dict.fromkeys(r for day in days for r in day if r >= 0))
    home = max([x for x in order if classes[x] == 0] or order, key=time.get)
    rest = [x for x in order if x != home]
    main = max(rest, key=time.get) if rest else -1
    return home, main if rest and time[main] >= 0.05 * sum(time.values()) else -1


def person_list(days, off, whole, prototypes, xy, limits):
    """
    The list of one person before it is bounded: (maps by (class, place), blocks by name as dicts of number -> value).

    `days` are lists of 72 places, `off` says which are at a weekend, `whole` is what its last block says.
    """
    n, classes = len(days), classes_of(days, off, prototypes)
    everything = sum(r >= 0 for day in days for r in day)
    maps = {(c, x): sum(r == x for day in days for r in day) / everything for x, c in classes.items()}
    home, main = anchors_of(days, classes)
    blocks = {name: {} for name in ("hours", "ends", "next", "stays", "far", "again", "pace", "whole")}

    def add(name, cell, x):
        blocks[name][cell] = blocks[name].get(cell, 0.0) + x

    def length_bin(slots):
        return min(6, max(0, math.ceil(math.log2(slots))))

    def apart(a, b):
        d = (xy[a][0] - xy[b][0]) ** 2 + (xy[a][1] - xy[b][1]) ** 2
        return sum(d >= limit for limit in limits)

    near = {"home": set(), "main": set()}
    for day, weekend in zip(days, off, strict=True):
        known = [t for t in range(SLOTS) if day[t] >= 0]
        begin, end = known[0], known[-1] + 1
        add("ends", begin, 1 / n)
        add("ends", SLOTS + end - begin - 1, 1 / n)
        before = last = stayed = None
        moves = 0
        for t, u, x in runs_of(day[begin:end]):
            state = UNSEEN if x < 0 else classes[x]
            add("stays", state * 7 + length_bin(u - t), 1 / n)
            if before is not None:
                add("next", ((begin + t) * 4 // SLOTS * STATES + before) * STATES + state, 1 / n)
            before = state
            if x < 0:
                continue
            for s in range(begin + t, begin + u):
                add("hours", (weekend * 24 + s // 3) * CLASSES + state, 1 / n / 3)
            moves += last is not None and last != x
            last = x
            if state == PASSED:
                continue
            if stayed is not None and stayed != x:
                for name, anchor in (("home", home), ("main", main)):
                    near[name] |= {b for a, b in ((stayed, x), (x, stayed)) if a == anchor}
                if not {stayed, x} & {home, main}:
                    add("far", 4 * CLASSES * BINS + apart(stayed, x), 1.0)
            stayed = x
        add("pace", min(moves, 11), 1 / n)
        add("pace", 12 + min(len({r for r in day if r >= 0}), 8) - 1, 1 / n)
    for a, (name, anchor) in enumerate((("home", home), ("main", main))):
        for x, c in classes.items():
            if anchor >= 0 and x not in (home, anchor) and c != PASSED:
                add("far", ((2 * a + (x in near[name])) * CLASSES + c) * BINS + apart(anchor, x), 1.0)
    for c in set(classes.values()):
        own = [x for x in classes if classes[x] == c]
        add("again", 3 * c, sum(r in own for day in days for _, _, r in runs_of(day)) / n)
        add("again", 3 * c + 1, len(own) / n)
        add("again", 3 * c + 2, 1 / n)
    add("pace", 20 + sum(n > most for most in (1, 3, 7, 14, 28, 56)), 1.0)
    for i, x in enumerate(whole):
        add("whole", i, x)
    return maps, blocks
