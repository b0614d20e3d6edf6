"""
`publish`, the only door to the public side; the files that are published, and the private links that are kept.

Publishing drops seeds, order, likelihoods and entropy, gives every fake a random id, and keeps a budget per seed (E59).

Links say which fake was made from whom: the private table `fake, seed, date, row` that an audit needs and nobody else
may see. `fake` is the id of a published fake, `seed` the user id of its seed in the file of real traces, `date` the day
of the seed, needed only where that user has several, and `row` its number, from 0, among that user's complete traces
(of that day), needed only where these tell no single one. No message shows an id.
"""

import csv
import io
import os
import secrets
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from elsewhere._version import __version__
from elsewhere.checkpoint import derive_bytes, derive_rng, hash_file
from elsewhere.errors import (
    InvalidParameter,
    InvalidTraces,
    PublicationRefused,
    require_whole,
)
from elsewhere.pool import Pool
from elsewhere.run.fakes import Fakes, finite_loglik
from elsewhere.run.public_map import Days, PublicMap
from elsewhere.run.roles import FEWEST
from elsewhere.settings import Preset
from elsewhere.traces.fixes import Preparation, length_text
from elsewhere.traces.formats import open_table
from elsewhere.traces.model import Ints, Traces
from elsewhere.traces.sources import Table, read_labels

Link = tuple[str, str | None, str | None]  # seed, date, row
SAME = "same"  # instead of a file: fakes carry the ids of their seeds
NO_CATEGORIES = (
    "categories of places are not published: they were found in the input, which the theorem does not cover; a map "
    "with a column of categories (`locations`) gives them."
)


def links_file(fakes: Traces | Sequence[Any], seeds: Traces, seed_index: Ints) -> bytes:
    """Return the private table as CSV: one line per day of a fake, in the order of the fakes, or of their given ids."""
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    days = None if seeds.dates is None else seeds.dates.astype(str)
    users, number = seeds.users, _numbers(seeds)
    several = bool(number.max() > 0)
    writer.writerow(["fake", "seed", *([] if days is None else ["date"]), *(["row"] if several else [])])
    for fake, row in zip(fakes.users if isinstance(fakes, Traces) else fakes, seed_index, strict=True):
        day = [] if days is None else [days[row]]
        writer.writerow([fake, users[row], *day, *([number[row]] if several else [])])
    return sink.getvalue().encode()


def published_links(content: bytes, rows: Ints, pool: Traces, fakes: int) -> bytes:
    r"""
    Return the private table of a pool, from that of all fakes by number, which is kept until they are published.

    Parameters
    ----------
    content
        What `links_file` wrote, fakes named 0, 1, ...
    rows
        Number of each row of the pool among them.
    pool
        The published fakes, whose ids take the place of the numbers.
    fakes
        How many there are in all.

    Examples
    --------
    >>> from elsewhere.traces.model import Locations
    >>> links = b"fake,seed\n0,ann\n1,bob\n"
    >>> published_links(links, np.array([1]), Traces([[0]], Locations(n=1), users=["f7"]), 2)
    b'fake,seed\nf7,bob\n'

    """
    head, *lines = csv.reader(io.StringIO(content.decode()))
    if [line[0] for line in lines] != [str(i) for i in range(fakes)]:
        raise InvalidTraces("the links kept beside these fakes are those of others.", code="E_LINKS")
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([fake, *lines[row][1:]] for fake, row in zip(pool.users, rows.tolist(), strict=True))
    return sink.getvalue().encode()


def _numbers(traces: Traces) -> Ints:
    """Return the number of each row among the complete ones of its user and day, from 0; gaps make no seeds."""
    last_number: dict[tuple[int, str], int] = {}
    out = np.full(len(traces), -1, dtype=np.int64)
    for row in np.flatnonzero(np.all(traces.r >= 0, axis=1)).tolist():
        key = (int(traces.user[row]), "" if traces.dates is None else str(traces.dates[row]))
        out[row] = last_number[key] = last_number.get(key, -1) + 1
    return out


def read_links(source: str | Path | Any, fakes: Traces, real: Traces) -> Ints:
    """
    Return the (F,) rows of `real` that each fake was made from.

    Parameters
    ----------
    source
        A file or frame with the columns `fake` and `seed`, `date` where a seed's user has several days (without it the
        fake's own date counts), `row` where there are several traces of a day; or the word "same" where fakes carry the
        ids of their seeds.
    fakes, real
        The traces whose ids it names.

    Examples
    --------
    >>> from elsewhere.traces.model import Locations
    >>> real = Traces([[0, 1], [1, 1]], Locations(n=2), users=["ann", "bob"])
    >>> fakes = Traces([[1, 0]], Locations(n=2), users=["f7"])
    >>> read_links({"fake": ["f7"], "seed": ["bob"]}, fakes, real).tolist()
    [1]

    """
    if isinstance(source, str | Path) and str(source) == SAME:
        links_of: dict[str, list[Link]] = {str(label): [(str(label), None, None)] for label in fakes.labels}
    else:
        links_of = _table(open_table(source))
    without_link = sum(str(label) not in links_of for label in fakes.labels)
    if without_link:
        raise InvalidTraces(
            f"`links` must name the seed of every fake: {without_link} of {len(fakes.labels)} are missing.",
            code="E_LINKS",
        )
    rows_of: dict[str, list[int]] = {}
    for row, label in enumerate(real.users):
        rows_of.setdefault(str(label), []).append(row)
    number = _numbers(real)
    index = np.empty(len(fakes), dtype=np.int64)
    times = dict.fromkeys(links_of, 0)
    for f in np.lexsort((np.arange(len(fakes)), _days(fakes))).tolist():
        label = str(fakes.labels[fakes.user[f]])
        links = links_of[label]
        # the days of a life are linked one by one, in their order; a single line speaks of all of them
        seed, day, nth = links[min(times[label], len(links) - 1)]
        times[label] += 1
        rows = rows_of.get(seed, [])
        index[f] = _row(rows, day, nth, real, number)
        if index[f] == -2 and day is None and fakes.dates is not None:
            there = _row(rows, str(fakes.dates[f]), nth, real, number)
            index[f] = there if there >= 0 else -2
    for fault, what in ((-1, "seeds that are not among the real traces"), (-2, "seeds with several days, and no date")):
        if np.any(index == fault):
            raise InvalidTraces(
                f"`links` names {what}, for {int((index == fault).sum())} fakes; columns are fake, seed, date, row.",
                code="E_LINKS",
            )
    return index


def _days(traces: Traces) -> Ints:
    return np.zeros(len(traces), dtype=np.int64) if traces.dates is None else traces.dates.astype(np.int64)


def _row(rows: list[int], day: str | None, nth: str | None, real: Traces, number: Ints) -> int:
    """Return the one row that is meant; -1 if there is none, -2 if it cannot be told."""
    if day is not None and real.dates is not None:
        rows = [row for row in rows if str(real.dates[row]) == day]
    if nth is not None:
        rows = [row for row in rows if str(number[row]) == nth]
    return rows[0] if len(rows) == 1 else -2 if rows else -1


def _table(table: Table) -> dict[str, list[Link]]:
    names = {name.strip().lower(): name for name in table.columns}
    if {"fake", "seed"} <= names.keys():
        fake, seed, date, nth = names["fake"], names["seed"], names.get("date"), names.get("row")
    elif len(table.columns) == 2:
        (fake, seed), date, nth = table.columns, None, None
    else:
        raise table.error("links need the columns `fake` and `seed`.", "E_COLUMN")
    columns = [read_labels(table, name) if name is not None else None for name in (fake, seed, date, nth)]
    if any(column is not None and np.any(column[0] < 0) for column in columns[:2]):
        raise table.error("a line without a fake or without a seed.", "E_LINKS")
    text = [
        [None] * table.rows if each is None else [each[1][c] if c >= 0 else None for c in each[0]] for each in columns
    ]
    links_of: dict[str, list[Link]] = {}
    for row, (label, owner, day, number) in enumerate(zip(*text, strict=True)):
        link = (str(owner), None if day is None else str(day)[:10], None if number is None else str(number))
        links = links_of.setdefault(str(label), [])
        if links and links[0][0] != link[0]:
            raise table.error("a fake with two seeds.", "E_LINKS", row)
        links.append(link)
    return links_of


ALSO = {"gpx": "fakes.gpx", "geojson": "fakes.geojson", "sglt": "fakes.trace"}
TEXTS = ("csv", "parquet", "excel")
# formats that are read and never written, by the name that a note gives them
NOT_WRITTEN = {"google": "Google", "geolife": "GeoLife", "foursquare": "Foursquare"}
FORMS = ("fakes.csv", "fakes.parquet", *ALSO.values(), "fakes.locations")  # beside the pool


def remember_input(fakes: Fakes, read: Preparation) -> Fakes:
    """Return the same fakes, which remember the columns and the format of the input: they are published as it is."""
    # a column that was read as two things is written as one: where that is not the user, the usual ones are written, as
    # of SGLT, which has a file of its own
    columns = read.columns if "user" in read.columns and read.format != "sglt" else {}
    reading = read.in_public(max(FEWEST, fakes.preset.m_min))
    frame = replace(fakes.frame, columns=columns, format=read.format, times=read.times, form=read.form, reading=reading)
    return replace(fakes, frame=frame)


MUCH = 0.2  # of people's time at places that no fake shows: said with what it costs


def note_rare_places(fakes: Fakes, read: Preparation, traces: Traces) -> tuple[Fakes, Preparation]:
    """
    Return the same, with a note on the places that are in no fake because too few people share them, and on the
    category of most of them, where enough people and places are behind it.

    It is a note of the fakes, for everybody, or of the reading, for the owner alone: where a theorem covers the fakes,
    which such a count is not covered by, and where it would count fewer than five places.
    """
    frame = fakes.frame
    fewest, categories = max(FEWEST, frame.m_min), frame.locations.categories
    row, slot = np.nonzero(traces.r >= 0)
    place, user = traces.r[row, slot], traces.user[row]
    places = np.unique(place)
    rare = places[~frame.known[places]]
    if len(rare) == 0:
        return fakes, read
    mostly = ""
    if categories is not None:
        words = np.array(categories, dtype=object)
        names, count = np.unique(words[rare].astype(str), return_counts=True)
        name, many = str(names[np.argmax(count)]), int(count.max())
        behind = np.unique(user[~frame.known[place] & (words[place] == name)])
        if name and many >= FEWEST and 2 * many > len(rare) and len(behind) >= fewest:
            mostly = f", mostly {name!r},"
    lost = float(np.mean(~frame.known[place]))
    note = (
        f"{len(rare):,} of {len(places):,} places{mostly} {'is' if len(rare) == 1 else 'are'} in no fake: fewer "
        f"than {frame.m_min} people go there (`m_min`)."
    )
    if lost > MUCH:
        instead = "at the nearest shared place" if frame.locations.has_coordinates else "somewhere else"
        note += (
            f" People spend {lost:.0%} of their time there, and fakes are {instead} instead: what asks for single "
            "places suffers; larger places, or more people, keep more."
        )
    if fakes.covered or len(rare) < FEWEST:
        return fakes, replace(read, notes=(*read.notes, note))
    return replace(fakes, notes=(*fakes.notes, note)), read


def write_fakes(pool: Pool, out: Path, frame: PublicMap, also: Sequence[str], out_as: str | None = None) -> list[str]:
    """Write the fakes in the columns of the input, and in other forms; the names of the files, for `write_pool`."""
    from elsewhere.traces.maps import places_file_name
    from elsewhere.traces.write import write_traces

    columns = frame.columns or None
    if frame.format in ALSO:
        also = sorted({*also, frame.format})
    names = ["fakes.csv", "fakes.parquet", *(ALSO[form] for form in also)]
    lines = out_as or _lines(frame)
    for name in names:
        if name in ("fakes.csv", "fakes.parquet"):
            form = frame.form if columns else None
            write_traces(pool.traces, out / name, columns=columns, out_as=lines, times=frame.times, form=form)
        else:
            write_traces(pool.traces, out / name)
    if "sglt" in also and pool.traces.locations.has_coordinates:
        names.append(places_file_name(ALSO["sglt"]))
    return names


def _lines(frame: PublicMap) -> str:
    """Return the lines that fakes have unless others are asked for: those of the input."""
    return "trips" if "end_time" in frame.columns else "visits" if "left" in frame.columns else "slots"


def describe_output(
    pool: Pool, frame: PublicMap, also: Sequence[str], out_as: str | None = None
) -> tuple[Pool, list[str]]:
    """Return the pool with words on what dates of fakes mean, and on fakes without a line among events; the words."""
    notes = [note for note in pool.provenance["notes"] if note.startswith(("dates: ", "categories of places"))]
    # every form that is no table has times, but SGLT
    dated = bool({"time", "utc", "local", "date", "arrived"} & set(frame.columns)) or not (
        frame.columns or frame.format in ("", "sglt")
    )
    if pool.traces.dates is None and (dated or set(also) - {"sglt"} or out_as not in (None, "slots")):
        why = "the input has no dates"
        if pool.provenance["preset"] == "private":
            why = "on which days people have data is theirs, and is not published"
        elif dated:
            why = "no span of days is shared by enough people, or the model was learnt beforehand"
        notes.append(f"{why}: the fakes are dated 2001-01-01, a Monday, and no analysis by weekday or date holds.")
    if (lines := out_as or _lines(frame)) in ("events", "trips"):
        still = int(np.all(pool.traces.r == pool.traces.r[:, :1], axis=1).sum())
        words = {"events": "they arrive nowhere, and have no event", "trips": "they have no trip"}[lines]
        notes += [f"on {still} days a fake stays at one place: {words}."] * (still > 0)
        if lines == "trips":
            step = length_text(pool.traces.step_minutes)
            notes.append(f"every trip lasts one slot, {step}: the fakes do not tell how long people's trips take.")
    if frame.format == "json" and any("." in name for name in frame.columns.values()):
        notes.append("form: objects within objects of the input are columns outer.inner in fakes.csv.")
    elif not frame.columns and frame.format in TEXTS:
        notes.append(
            "form: the columns of the input cannot be written as they stand: fakes.csv has columns of its own."
        )
    elif not frame.columns and frame.format in NOT_WRITTEN:
        notes.append(f"form: fakes.csv is a table; files of {NOT_WRITTEN[frame.format]} are read, and not written.")
    known_notes = pool.provenance["notes"]
    more = [*known_notes, *(note for note in notes if note not in known_notes)]
    return replace(pool, provenance={**pool.provenance, "notes": more}), notes


def write_pool(pool: Pool, out: Path, names: list[str]) -> list[str]:
    """Write the pool with a manifest that lists the files `names` beside it, last; return the names of all files."""
    from elsewhere.files import write_files

    beside = {name: hash_file(out / name) for name in names}
    write_files(out, pool.files(beside))
    now, folder = time.time_ns(), [*names, "pool.parquet", "places.parquet", "manifest.json"]
    for name in folder:
        # one time for all: how long the fakes took, or their judge, is not told (E63)
        os.utime(out / name, ns=(now, now))
    return folder


def publish(
    fakes: Fakes,
    *,
    per_seed: int = 1,
    choose: Literal["uniform", "likelihood"] | None = None,
    temp: float | None = None,
    laboratory: bool = False,
    rng: np.random.Generator | None = None,
) -> Pool:
    """
    Return a pool of fakes that may leave the house: no seed, no order, no likelihood, no entropy.

    Parameters
    ----------
    fakes
        As `generate_fakes` makes them.
    per_seed
        Budget of each seed, over all publications of these fakes (E59). Where a theorem covers the whole release, all
        fakes are published.
    choose
        "uniform", or "likelihood": without replacement with weights exp(loglik / L / temp) (E62), of a life the mean
        over its days; a likelihood of 0 counts as the smallest of the others. By default as the preset says.
    temp
        Temperature of that choice; by default that of the preset.
    laboratory
        Publish a laboratory run all the same; the pool is then stamped as reproducible.
    rng
        Chooses and shuffles; by default the operating system's entropy. With it the pool is a laboratory pool.

    Examples
    --------
    >>> import numpy as np, elsewhere as ew
    >>> town = ew.simulate_town(users=60, locations=100, rng=np.random.default_rng(1))
    >>> fakes = ew.generate_fakes(town.traces, kappa=8, m_min=2, c_min=1, per_seed=2)
    >>> pool = ew.publish(fakes)
    >>> len(pool) == len(np.unique(fakes.seed))
    True

    """
    return publish_with_rows(fakes, per_seed=per_seed, choose=choose, temp=temp, laboratory=laboratory, rng=rng)[0]


def publish_with_rows(
    fakes: Fakes,
    *,
    per_seed: int = 1,
    choose: str | None = None,
    temp: float | None = None,
    laboratory: bool = False,
    rng: np.random.Generator | None = None,
    secret: bytes | None = None,
) -> tuple[Pool, Ints]:
    """
    Return the pool of `publish`, and for each of its fakes the number it has in `fakes`: private, for the audit.

    `secret` are 32 bytes that decide all draws, so that a run which was stopped publishes the same pool; by default
    they are the operating system's, or those of `rng`.
    """
    if not isinstance(fakes, Fakes):
        raise InvalidParameter(
            f"`fakes` must be what `generate_fakes` returns, got {type(fakes).__name__}.", parameter="fakes"
        )
    require_whole("per_seed", per_seed, 1)
    options = {name: value for name, value in (("choose", choose), ("temp", temp)) if value is not None}
    settings = fakes.preset.changed(**options)
    if (fakes.laboratory or rng is not None) and not laboratory:
        raise PublicationRefused(
            "a run with a given `rng` can be repeated by whoever knows it, so it is not for publishing; generate "
            "without `rng`, or pass `laboratory=True` to keep it as a laboratory result.",
            code="E_LABORATORY",
            parameter="laboratory",
        )
    secret = secret or (secrets.token_bytes(32) if rng is None else rng.bytes(32))
    draw = derive_rng(secret, "choice")
    if fakes.covered:
        rows = np.arange(len(fakes))
        if fakes.published.any():
            raise PublicationRefused("these fakes are published already.", code="E_BUDGET")
    else:
        rows = _draw_within_budget(fakes, per_seed, settings.choose, settings.temp, draw)
    given_out = rows
    # people in random order, each with their days one after the other
    place = draw.permutation(fakes.people)[fakes.life[rows]]
    rows = rows[np.lexsort((rows, place))]
    life = fakes.life[rows]
    ids = np.empty(fakes.people, dtype=object)
    # ids are public: from them nobody finds the other draws, or the order of the seeds
    bytes_of_ids = derive_bytes(secret, "ids", 16 * fakes.people)
    for number in dict.fromkeys(life.tolist()):
        ids[number] = bytes_of_ids[16 * number : 16 * number + 16].hex()
    frame, notes = fakes.frame, list(fakes.notes)
    if fakes.covered and frame.locations.category_users is not None:
        # found in the rows of the input, those of seeds too
        notes.append(NO_CATEGORIES)
        frame = replace(frame, locations=frame.locations.relabel(categories=None, category_users=None))
    locations, r = frame.published(fakes.r[rows])
    weekend = None if fakes.weekend is None else fakes.weekend[rows]
    # days of the calendar, whatever the seed's: a date must not name a day only one was there
    dates = frame.dated(weekend, len(rows), draw) if fakes.day is None else frame.weeks(fakes.day[rows], life, draw)
    traces = Traces(
        r,
        locations,
        users=ids[life],
        dates=dates,
        step_minutes=frame.step_minutes,
        start=frame.start,
        tz=frame.tz,
    )
    fakes.published[given_out] = True
    pool = Pool(traces, _provenance(fakes, dates, notes, settings, per_seed, fakes.laboratory or rng is not None))
    return pool, np.asarray(rows)


def _draw_within_budget(fakes: Fakes, per_seed: int, choose: str, temp: float, rng: np.random.Generator) -> Ints:
    """Return the rows of fake people to publish, so many of each seed as its budget has left."""
    n = fakes.people
    first = np.searchsorted(fakes.life, np.arange(n))
    seed, given_out = fakes.person[first], fakes.published[first]
    fresh = np.flatnonzero(~given_out)
    budget = per_seed - np.bincount(seed[given_out], minlength=int(seed.max()) + 1)
    over = np.unique(seed[budget[seed] <= 0])
    if len(over) or len(fresh) == 0:
        raise PublicationRefused(
            f"{len(over)} seeds have spent their budget of `per_seed` = {per_seed} published fakes, and {len(fresh)} "
            "fakes are unpublished; raise `per_seed` to publish more from one seed, at a price in privacy.",
            code="E_BUDGET",
        )
    # Gumbel keys: the largest n of a seed are a draw without replacement with these weights
    weight = np.zeros(len(fresh))
    if choose == "likelihood":
        mean = np.bincount(fakes.life, finite_loglik(fakes.loglik), n) / np.bincount(fakes.life, minlength=n)
        weight = mean[fresh] / fakes.r.shape[1] / temp
    key = weight + rng.gumbel(size=len(fresh))
    order = fresh[np.lexsort((-key, seed[fresh]))]
    rank = np.arange(len(order)) - np.searchsorted(seed[order], seed[order])
    taken = np.zeros(n, dtype=bool)
    taken[order[rank < budget[seed[order]]]] = True
    return np.flatnonzero(taken[fakes.life])


def _provenance(
    fakes: Fakes, dates: Days | None, notes: Sequence[str], settings: Preset, per_seed: int, reproducible: bool
) -> dict[str, Any]:
    """Return what the manifest says of a pool: how it was made, what is proven, and notes, with one on its dates."""
    # counts over people are not covered by a theorem that protects these people
    private = ("people_by_gap", "share_filled", "map_km") if fakes.covered else ()
    on_dates = fakes.frame.on_dates(of_seeds=fakes.weekend is not None, of_weeks=None if fakes.day is None else dates)
    if fakes.preset.name == "private" and fakes.day is not None:
        on_dates = (
            f"dates: every fake person lives {fakes.preset.days} days on end in weeks of 2001, whatever the dates of "
            "the people. Weekday against weekend, and one day after the other: hold. Single weekdays and single dates: "
            "mean nothing; public holidays count as the weekday they fall on."
        )
    return {
        "elsewhere": __version__,
        "preset": settings.name,
        "parameters": settings.parameters(),
        "reading": {name: value for name, value in fakes.frame.reading.items() if name not in private},
        "kappa": fakes.kappa,
        "reproducible": reproducible,
        "per_seed": None if fakes.covered else per_seed,
        "notes": [*notes, *([on_dates] if on_dates else [])],
        "certificate": (fakes.certificate.in_laboratory() if reproducible else fakes.certificate).to_dict(),
    }
