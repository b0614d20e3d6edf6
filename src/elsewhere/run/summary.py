"""What a run says of itself: what was read, acceptance by rule, achieved k, how fakes move, and what the judges say."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elsewhere.fakes import Fakes
    from elsewhere.judge.run import Judgement
    from elsewhere.traces.fixes import Preparation
    from elsewhere.traces.model import Traces


def counts(read: "Preparation") -> dict[str, Any]:
    """What became of an input, without its name: a result may travel further than the file."""
    return {field: value for field, value in read.to_dict().items() if field != "name"}


def opening(read: dict[str, Any]) -> list[str]:
    """The `counts` in words: what was read, dropped and repaired, and what should be known about it."""
    kept = f"read {read['rows']:,} rows: {read['users']:,} users, {read['days']:,} days"
    kept += f"; {read['users_usable']:,} of {read['users'] + read['users_dropped']:,} people have a usable day"
    lost = f"{sum(read['dropped'].values()):,} rows, {read['days_dropped']:,} days, {read['users_dropped']:,} users"
    return [f"{kept}; dropped {lost}", *repairs(read), *read["notes"]]


def repairs(read: dict[str, Any]) -> list[str]:
    """How many rows were dropped or repaired, one line per reason."""
    from elsewhere.reports.preparation import REASONS

    return [
        f"{did}: {n:,} {'row' if n == 1 else 'rows'}, {REASONS.get(why, why)}"
        for did in ("dropped", "fixed")
        for why, n in read[did].items()
    ]


def summary(fakes: "Fakes", traces: "Traces") -> dict[str, Any]:
    """Acceptance by rule, achieved k, and how fakes move beside real traces; totals only (E63)."""
    import numpy as np

    def life(r: Any) -> dict[str, float]:
        moves = np.count_nonzero(r[:, 1:] != r[:, :-1], axis=1).mean()
        ordered = np.sort(r, axis=1)
        places = 1 + np.count_nonzero(ordered[:, 1:] != ordered[:, :-1], axis=1).mean()
        return {"moves": round(float(moves), 2), "places": round(float(places), 2)}

    told: dict[str, Any] = {
        "preset": fakes.preset.name,
        "users": traces.U,
        "seeds": traces.U if fakes.seed_rows is None else len(np.unique(traces.user[fakes.seed_rows])),
        "rows": len(traces),
        "kappa": fakes.kappa,
        "fakes": fakes.people,
        "days": len(fakes),
        "attempts": fakes.tally["tested"],
        "passed": fakes.tally["passed"],
        "rejected_by": {n: c for n, c in fakes.tally.items() if n not in ("tested", "passed") and c},
        "per_trace": {"real": life(traces.r), "fakes": life(fakes.r)},
        "notes": list(fakes.notes),
    }
    told["certificate"] = fakes.certificate.to_dict()
    if fakes.covered:
        idle = ("kappa", "seeds") if fakes.preset.name == "private" else ()
        for name in ("attempts", "passed", "rejected_by", *idle):  # nothing is tried twice
            del told[name]
    else:
        told["k"] = fakes.preset.k
    return told


def verdicts(judgement: "Judgement") -> dict[str, Any]:
    """What the judges say, for --json: `uses`, `lives`, `publish` (level, words, because) and the whole `judgement`."""
    from elsewhere.reports.claims import advice

    told = judgement.to_dict()
    return {
        "uses": told["uses"],
        "lives": told["lives"],
        "publish": advice(told["audit"], judgement.run, told["uses"])._asdict(),
        "judgement": told,
    }
