"""What a run of the generator says of itself: acceptance by rule, achieved k, how fakes move; totals only (E63)."""

from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

if TYPE_CHECKING:
    from elsewhere.fakes import Fakes
    from elsewhere.judge.run import Judgement
    from elsewhere.traces.model import Traces


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


def tables(told: dict[str, Any]) -> list[Any]:
    """The summary for people."""
    days = f" who live {told['days']:,} days" if told["days"] > told["fakes"] else ""
    shown: list[Any] = [f"preset {told['preset']}: {told['fakes']} fakes{days}, of nobody in particular"]
    if "seeds" in told:
        shown = [
            f"preset {told['preset']}: {told['fakes']} fakes{days} of {told['seeds']} seeds, of {told['users']} users "
            f"with a usable day; {told['kappa']} {'class' if told['kappa'] == 1 else 'classes'} of places"
        ]
    if "attempts" in told:
        rules = Table("rule", "rejected", "share", box=SIMPLE_HEAD)
        for name, number in told["rejected_by"].items():
            rules.add_row(name.replace("not_made", "nothing to try"), f"{number:,}", f"{number / told['attempts']:.1%}")
        rules.add_row("passed all", f"{told['passed']:,}", f"{told['passed'] / told['attempts']:.1%}")
        shown.append(rules)
        if told["k"] > 1:
            shown.append(
                f"every fake resembles {told['k'] - 1} or more other people about as much as the one it was made from"
            )
    shown.append(" ".join(told["certificate"]["words"]))
    life = Table("per trace", "real", "fakes", box=SIMPLE_HEAD)
    for name in ("moves", "places"):
        life.add_row(name, *(f"{told['per_trace'][who][name]:.1f}" for who in ("real", "fakes")))
    real, fake = (told["per_trace"][who]["moves"] for who in ("real", "fakes"))
    slow = ["fakes move less than half as often as people: try a larger --kappa"]
    return [*shown, life, *(slow if fake < real / 2 else []), *told["notes"]]


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


def closing(judgement: "Judgement") -> list[str]:
    """The last lines of a run: what each attack learnt, what the fakes are good for, whether to publish them."""
    said = verdicts(judgement)["publish"]
    lines = judgement.in_words()
    if judgement.uses is not None:
        lines += ["", "what the fakes are good for:", *(f"  {line}" for line in judgement.uses.in_words())]
    if judgement.lives is not None:
        lines += ["", "lives over days:", *(f"  {line}" for line in judgement.lives.in_words())]
    if judgement.audit is not None:
        lines += ["", judgement.audit.in_words()]
    return [*lines, f"{said['words']}. {said['because']}", ""]
