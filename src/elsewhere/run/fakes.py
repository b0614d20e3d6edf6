"""`Fakes`, what a preset has made, with the seed of each: for the owner alone; and the folder they are kept in."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elsewhere._version import __version__
from elsewhere.data.slots import Traces
from elsewhere.data.visits import Codes, Floats, Ints, Locations
from elsewhere.errors import InvalidModel
from elsewhere.files import check_folder, pack_arrays, read_arrays, read_index, read_listed, write_folder
from elsewhere.privacy.certificate import NOTHING_PROVEN, Certificate
from elsewhere.run.model import FittedModel
from elsewhere.run.public_map import PublicMap
from elsewhere.settings import Preset

KIND, FORMAT = "elsewhere fakes (private)", 2
LARGEST = 2**32  # bytes of all arrays


@dataclass(frozen=True, eq=False)
class Fakes:
    """
    The accepted fakes of a run (private side).

    `people` is the number of fake people. `covered` tells whether the preset has a theorem for the whole release: all
    fakes are then published, once. Both follow from the parameters.

    Parameters
    ----------
    r
        (F, L) places.
    seed
        (F,) row of `seeds` each fake was made from; -1 in the private preset, where fakes are nobody's.
    loglik
        (F,) ln Pr{fake} under the aggregate model.
    verdicts
        What the privacy test measured on each.
    attempts
        (N,) tries per row of `seeds`; in the private preset, which tries nothing twice, the number of fakes.
    tally
        Attempts by outcome: tested, passed, and rejected by each rule.
    seeds
        The traces that were given, or None for fakes read from a file.
    frame
        Codes, clock and calendar of the seeds, without the seeds.
    learnt
        Model and classes, or None for fakes read from a file.
    preset
        All parameters.
    kappa
        Number of classes.
    laboratory
        Whether a given `rng` made the run repeatable: such fakes are not for publishing (R2).
    notes
        What the run decided by itself and a reader should know.
    published
        (F,) which fakes are published already; the one array that changes.
    seed_rows
        Rows of `seeds` that could be a seed: whoever has none is nobody's seed. None where it is not known.
    weekend
        (F,) whether the day of each fake's seed is at a weekend; None where there are no dates.
    sampler
        The sums of the private preset, for the audit; not kept in a file.
    life
        (F,) which fake person each row, a day, belongs to: 0, 1, ... in order.
    person
        (F,) number of the seed, a person, that it was made from: fakes of one seed share it, and a budget.
    day
        (F,) its day in the calendar of weeks that all lives share, day 0 a Monday (`People`); None where fakes live one
        day.
    certificate
        What is proven of the whole release, and of whom; in a laboratory run nothing.

    """

    r: Codes
    seed: Ints
    loglik: Floats
    verdicts: Sequence[Any] = field(repr=False)
    attempts: Ints = field(repr=False)
    tally: Mapping[str, int]
    seeds: Traces | None
    frame: PublicMap = field(repr=False)
    learnt: FittedModel | None = field(repr=False)
    preset: Preset = field(repr=False)
    kappa: int
    laboratory: bool
    notes: tuple[str, ...] = ()
    published: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=bool), repr=False)
    seed_rows: Ints | None = field(default=None, repr=False)
    weekend: NDArray[np.bool_] | None = field(default=None, repr=False)
    sampler: Any = field(default=None, repr=False)
    life: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64), repr=False)
    person: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64), repr=False)
    day: Ints | None = field(default=None, repr=False)
    certificate: Certificate = field(default=NOTHING_PROVEN, repr=False)
    covered: bool = field(init=False)
    people: int = field(init=False)

    def __post_init__(self) -> None:
        if len(self.life) != len(self.r):
            object.__setattr__(self, "life", np.arange(len(self.r)))
        if len(self.person) != len(self.r):
            object.__setattr__(self, "person", self.seed)
        if len(self.published) != len(self.r):
            object.__setattr__(self, "published", np.zeros(len(self.r), dtype=bool))
        object.__setattr__(self, "covered", self.preset.name == "private")
        object.__setattr__(self, "people", int(self.life.max(initial=-1)) + 1)

    def __len__(self) -> int:
        return len(self.r)

    def __repr__(self) -> str:
        days = "" if self.day is None else f", {len(self)} days"
        return f"Fakes({self.people} fakes{days}, preset {self.preset.name!r})"

    @property
    def days(self) -> NDArray[np.datetime64] | None:
        """
        Return a date for each day of a life, in order and of the right kind, not the published one; None for
        one day.
        """
        return None if self.day is None else np.datetime64("1970-01-05", "D") + self.day  # a Monday

    @property
    def acceptance(self) -> float:
        """Return the share of the attempts that passed."""
        return self.tally["passed"] / max(1, self.tally["tested"])

    def save(self, folder: str | Path, *, force: bool = False) -> None:
        """
        Write the fakes with the numbers of their seeds into a private folder (files 0600), for `publish` later.

        Neither real traces nor the entropy of the run are in it.
        """
        check_folder(Path(folder), force=force)
        arrays = {name: getattr(self, name) for name in ("r", "seed", "loglik", "attempts", "published")}
        f = self.frame
        arrays |= {name: a for name in ("lat", "lon", "xy") if (a := getattr(f.locations, name)) is not None}
        arrays["known"] = f.known
        more = {
            "seed_rows": self.seed_rows,
            "weekend": self.weekend,
            "life": self.life,
            "person": self.person,
            "day": self.day,
            "dates": None if f.dates is None else f.dates.astype(np.int64),
            "category_users": f.locations.category_users,
        }
        arrays |= {name: a for name, a in more.items() if a is not None}
        content = pack_arrays(arrays)
        index = {
            "kind": KIND,
            "format": FORMAT,
            "version": __version__,
            "places": len(f.locations),
            "names": None if f.locations.names is None else list(f.locations.names),
            "categories": None if f.locations.categories is None else list(f.locations.categories),
            "clock": {"step_minutes": f.step_minutes, "start": f.start, "tz": f.tz},
            "calendar": {"weekend": f.weekend, "m_min": f.m_min},
            "input": {name: getattr(f, name) for name in ("columns", "format", "times", "form", "reading")},
            "tally": dict(self.tally),
            "preset": self.preset.to_file(),
            "kappa": self.kappa,
            "laboratory": self.laboratory,
            "notes": list(self.notes),
            "certificate": self.certificate.to_dict(),
            "files": {"fakes.npz": hashlib.sha256(content).hexdigest()},
        }
        files = {"fakes.npz": content, "fakes.json": json.dumps(index, indent=1).encode()}
        write_folder(Path(folder), files, force=force)

    @staticmethod
    def load(folder: str | Path) -> "Fakes":
        """Read what `save` wrote."""
        try:
            index = read_index(Path(folder) / "fakes.json", 2**26)
            if index["kind"] != KIND or index["format"] != FORMAT:
                raise InvalidModel(f"{folder} holds fakes of another kind or format.", code="E_FAKES")
            arrays = read_arrays(read_listed(Path(folder), "fakes.npz", index, LARGEST), LARGEST)
            where: dict[str, Any] = {name: arrays[name] for name in ("lat", "lon", "xy") if name in arrays} or {
                "n": index["places"]
            }
            where |= {name: index[name] for name in ("names", "categories")}
            where["category_users"] = arrays.get("category_users")
            dates = arrays["dates"].astype("datetime64[D]") if "dates" in arrays else None
            preset = Preset.of_file(index["preset"])
            frame = PublicMap(
                Locations(**where), arrays["known"], dates, **index["clock"], **index["input"], **index["calendar"]
            )
            return Fakes(
                **{name: arrays[name] for name in ("r", "seed", "loglik", "attempts", "published")},
                verdicts=(),
                tally=index["tally"],
                seeds=None,
                frame=frame,
                learnt=None,
                preset=preset,
                kappa=index["kappa"],
                laboratory=index["laboratory"],
                notes=tuple(index["notes"]),
                seed_rows=arrays.get("seed_rows"),
                weekend=arrays.get("weekend"),
                life=arrays["life"],
                person=arrays["person"],
                day=arrays.get("day"),
                certificate=Certificate.from_dict(index["certificate"]),
            )
        except OSError:
            raise InvalidModel(
                f"{folder} holds no fakes: fakes.json and fakes.npz cannot be read.", code="E_FAKES"
            ) from None
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            if isinstance(error, InvalidModel):
                raise
            raise InvalidModel(f"the fakes in {folder} are damaged.", code="E_FAKES") from None


def finite_loglik(loglik: Floats) -> Floats:
    """
    Return likelihoods to choose by: days that the model holds impossible count as the least likely of the others.

    The aggregate model knows less than the walk: every tenth walk begins where none of the model's people does at that
    hour. That is no reason never to publish it.

    Examples
    --------
    >>> finite_loglik(np.array([-3.0, -np.inf, -7.0])).tolist(), finite_loglik(np.array([-np.inf])).tolist()
    ([-3.0, -7.0, -7.0], [0.0])

    """
    known = np.isfinite(loglik)
    return np.where(known, loglik, loglik[known].min(initial=0.0))
