"""A11, A14, A21: what stands in the table where no attack runs here."""

from elsewhere.evaluation.attacks.finding import REVIEW, Finding

REVIEWS = {
    "A11": (
        "singling out, linkability and inference on tables",
        "Run a tabular tool in an environment of its own on derived tables (user by hourly place); no dependency here.",
    ),
    "A14": (
        "membership from the aggregates p_bar and pi_bar",
        "A pool holds neither: its files are the fakes, the places and a manifest. The model file is private.",
    ),
    "A21": (
        "regeneration from a guessed seed of the random generator",
        "Published fakes come from the operating system's entropy; a run with a given generator is refused by publish.",
    ),
}


def entry(attack: str) -> Finding:
    """The line of an attack that does not run here."""
    title, words = REVIEWS[attack]
    return Finding(attack, title, status=REVIEW, words=words)
