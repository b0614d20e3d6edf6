"""The summary of a run for people: tables and last lines."""

from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from elsewhere.run.summary import verdicts

if TYPE_CHECKING:
    from elsewhere.judge.run import Judgement


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
