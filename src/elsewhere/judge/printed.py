"""What the paper prints in sec:evaluation, with its place: the numbers of tables and text, and what figures show."""

from typing import NamedTuple


class Printed(NamedTuple):
    """One number of the paper: where it stands, what it is, its value, and whether it is a fact of the data alone."""

    place: str
    what: str
    value: float
    of_data: bool = False


# the keys are those of `reproduce`; facts of the data would come out alike only on the paper's own data (Lausanne)
NUMBERS = {
    "users": Printed("sec:dataset", "users", 30, True),
    "places": Printed("sec:dataset", "places after merging", 400, True),
    "kappa": Printed("fig:dataset b", "semantic classes", 20),
    "passed": Printed("Publishing, Privacy", "share of fakes that pass the geographic and intersection tests", 0.80),
    "p_bar mean": Printed("Publishing, Utility", "similarity of p_bar, mean of 10 datasets", 0.8061),
    "p_bar median": Printed("Publishing, Utility", "similarity of p_bar, median", 0.8073),
    "p_bar std": Printed("Publishing, Utility", "similarity of p_bar, standard deviation", 0.0060),
    "pi_bar mean": Printed("Publishing, Utility", "similarity of pi_bar, mean of 10 datasets", 0.7856),
    "pi_bar median": Printed("Publishing, Utility", "similarity of pi_bar, median", 0.7867),
    "pi_bar std": Printed("Publishing, Utility", "similarity of pi_bar, standard deviation", 0.0152),
    "all testing": Printed("tbl:vistprob-kl", "KL of visits, testing", 0.0377, True),
    "all fakes": Printed("tbl:vistprob-kl", "KL of visits, fakes, mean", 0.3841),
    "all std": Printed("tbl:vistprob-kl", "KL of visits, fakes, standard deviation", 0.0432),
    "all uniform": Printed("tbl:vistprob-kl", "KL of visits, uniform", 1.1918, True),
    "all single": Printed("tbl:vistprob-kl", "KL of visits, single", 4.6666, True),
    "top testing": Printed("tbl:vistprob-kl-50mp", "KL of the 50 most popular, testing", 0.0215, True),
    "top fakes": Printed("tbl:vistprob-kl-50mp", "KL of the 50 most popular, fakes, mean", 0.0289),
    "top std": Printed("tbl:vistprob-kl-50mp", "KL of the 50 most popular, fakes, standard deviation", 0.0086),
    "top uniform": Printed("tbl:vistprob-kl-50mp", "KL of the 50 most popular, uniform", 0.2040, True),
    "top single": Printed("tbl:vistprob-kl-50mp", "KL of the 50 most popular, single", 5.1131, True),
    "time 1 testing": Printed("tbl:timealloc-kl", "KL of time at the 1st place, testing", 0.0189, True),
    "time 1 fakes": Printed("tbl:timealloc-kl", "KL of time at the 1st place, fakes, mean", 0.0125),
    "time 1 std": Printed("tbl:timealloc-kl", "KL of time at the 1st place, fakes, standard deviation", 0.0022),
    "time 1 uniform": Printed("tbl:timealloc-kl", "KL of time at the 1st place, uniform", 0.1652, True),
    "time 1 random": Printed("tbl:timealloc-kl", "KL of time at the 1st place, random", 0.6794, True),
    "time 2 testing": Printed("tbl:timealloc-kl", "KL of time at the 2nd place, testing", 0.0026, True),
    "time 2 fakes": Printed("tbl:timealloc-kl", "KL of time at the 2nd place, fakes, mean", 0.0092),
    "time 2 std": Printed("tbl:timealloc-kl", "KL of time at the 2nd place, fakes, standard deviation", 0.0031),
    "time 2 uniform": Printed("tbl:timealloc-kl", "KL of time at the 2nd place, uniform", 0.0778, True),
    "time 2 random": Printed("tbl:timealloc-kl", "KL of time at the 2nd place, random", 0.5360, True),
    "time 3 testing": Printed("tbl:timealloc-kl", "KL of time at the 3rd place, testing", 0.0114, True),
    "time 3 fakes": Printed("tbl:timealloc-kl", "KL of time at the 3rd place, fakes, mean", 0.0089),
    "time 3 std": Printed("tbl:timealloc-kl", "KL of time at the 3rd place, fakes, standard deviation", 0.0036),
    "time 3 uniform": Printed("tbl:timealloc-kl", "KL of time at the 3rd place, uniform", 0.0779, True),
    "time 3 random": Printed("tbl:timealloc-kl", "KL of time at the 3rd place, random", 0.5092, True),
}
