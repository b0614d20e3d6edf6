"""
Bad inputs of what is learnt, made and written (docs/reliability.md, B37-B42 and B49-B54), through the command line.

A row of ROWS is a command line on a town of people and its answer: an exit status with a code and words, or what must
be true of the result. Refusals leave nothing behind and show no id or coordinate, as in test_inputs.py.
"""

import json
import os
import resource
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from test_inputs import CANARIES, HEAD, STAMPS, elsewhere, listing  # noqa: F401 (a fixture)

import elsewhere as ew
from elsewhere.settings import preset_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.usefixtures("few_draws"),
]  # of few classes, and of the paper's preset

SYNTHESIZE = ("synthesize", "TOWN", "-o", "OUT", "--no-report")
ALONE = ("--set", "k=3", "--set", "c_min=1", "--set", "m_min=2", "--kappa", "10", "--set", "method=kmeans")
LOOSE = ("--set", "k=3", "--set", "c_min=2", "--set", "m_min=2", "--kappa", "3")


def town(users=40, places=12, same=False, still=False, apart=False):
    """A day of people who go from home to work, to a third place and home again, as CSV."""
    rng = np.random.default_rng(1)
    rows = []
    for u in range(users):
        mine = rng.integers(0, places, 3).tolist()
        if apart:
            mine = [3 * u, 3 * u + 1, 3 * u + 2]
        if still and u == 0:
            mine = [mine[0]] * 3
        for i, time in enumerate(STAMPS):
            place = i // 6 if same else mine[0] if i < 24 or i >= 60 else mine[1] if i < 50 else mine[2]
            rows.append(f"CANARY-{u:03},{time},{46.519 + place / 100:.4f},6.632\n")
    return HEAD + "".join(rows)


@dataclass(frozen=True)
class Row:
    """What is read, what is asked, and the answer."""

    text: Callable[[], str] = town
    words: tuple[str, ...] = SYNTHESIZE
    status: int = 2
    code: str = ""
    message: str = ""
    check: Callable[[dict, Path], bool] | None = None


def asked(*words, **answer):
    return Row(words=(*SYNTHESIZE, *words), **answer)


def refused(*words):
    return asked(*words, code="E_PARAM")


def fakes_are_there(told, out):
    return told["fakes"] > 0 and (out / "fakes.csv").exists()


def fakes_are_spread(told, out):
    """Where no candidate is left in a class of one place, the ladder of E45 looks further; it never means place 0."""
    share = np.bincount(ew.Pool.load(out).traces.r.ravel(), minlength=12) / ew.Pool.load(out).traces.r.size
    return told["kappa"] == 10 and told["fakes"] > 0 and share[0] < 0.5


ROWS = {
    "B37 paper": Row(
        lambda: town(1),
        (*SYNTHESIZE, "--preset", "paper"),
        code="E_TOO_FEW",
        message="need at least 2 users for `k`",
    ),
    "B37 product": Row(lambda: town(13), code="E_TOO_FEW", message="need at least 14 users for `k` = 10"),
    "B38 all users are one": Row(
        lambda: town(same=True),
        (*SYNTHESIZE, "--preset", "paper"),
        status=3,
        code="E_NOTHING_PASSED",
        message="0 of 400 fakes passed",
    ),
    "B38 all users are one, in the product": Row(
        lambda: town(same=True), (*SYNTHESIZE, *LOOSE[:6]), status=3, code="E_NOTHING_PASSED", message="fakes passed"
    ),
    "B39 somebody who never moves": Row(
        lambda: town(still=True), (*SYNTHESIZE, *LOOSE), status=0, check=fakes_are_there
    ),
    "B40 one place": Row(lambda: town(places=1), code="E_TOO_FEW_PLACES"),
    "B40 one place, to learn from": Row(lambda: town(places=1), ("fit", "TOWN", "-o", "OUT"), code="E_TOO_FEW_PLACES"),
    # by default such places are joined until enough people share them
    "B41 nobody shares a place": Row(lambda: town(apart=True), (*SYNTHESIZE, "--places", "grid"), code="E_SUPPRESSED"),
    "B42 all of a class is the seed's": Row(
        words=(*SYNTHESIZE, "--preset", "paper", *ALONE, "--set", "par_l=1"),
        status=0,
        check=fakes_are_spread,
    ),
    **{
        f"B49 {word}": refused("--preset", preset, "--set", word)
        for preset, words in (
            ("paper", ("par_c=1", "par_m=1", "par_v=.5", "par_l=1.5", "par_c=nan")),
            ("product", ("k=0", "par_d=-1")),
            ("private", ("eps=0", "delta=0")),
        )
        for word in words
    },
    "B49 of another preset": asked("--set", "par_c=.3", code="E_NOT_READ", message='use preset "paper"'),
    "B49 kappa=1": refused("--kappa", "1"),
    "B49 kappa>R": refused("--kappa", "500"),
    "B49 no such parameter": refused("--set", "par_z=1"),
    "B50 par_i=0, par_s=0": asked(*LOOSE, "--set", "par_i=0", "--set", "par_s=0", status=0, check=fakes_are_there),
    "B53 another map": Row(
        lambda: town().replace("6.632", "7.632"),
        ("generate", "TOWN", "-o", "OUT", "--model", "MODEL", *LOOSE[:6]),
        code="E_MISMATCH",
    ),
    "B54 a file": Row(words=("prepare", "TOWN", "-o", "TOWN"), code="E_OUTPUT"),
    "B54 below a file": Row(words=("synthesize", "TOWN", "-o", "TOWN/out"), code="E_OUTPUT"),
    "B54 where nothing can be made": Row(words=("prepare", "TOWN", "-o", "/proc/elsewhere"), code="E_OUTPUT"),
    "B54 a folder that holds something": Row(words=("prepare", "TOWN", "-o", "MODEL"), code="E_OUTPUT"),
}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The folder of a model that was learnt from the town."""
    folder = tmp_path_factory.mktemp("model")
    (folder / "town.csv").write_text(town())
    settings = preset_of("product", k=3, c_min=2, m_min=2, alternates="split")
    learnt = ew.learn(ew.read_traces(folder / "town.csv"), settings, kappa=3, rng=np.random.default_rng(1))
    learnt.save(folder / "model")
    return folder / "model"


def put(words, folder, model):
    for word in words:
        for name, path in (("TOWN", folder / "town.csv"), ("OUT", folder / "out"), ("MODEL", model)):
            if word == name or word.startswith(f"{name}/"):
                word = str(path) + word.removeprefix(name)
        yield word


@pytest.mark.parametrize("name", ROWS)
def test_answer(name, tmp_path, model, elsewhere):  # noqa: F811
    row = ROWS[name]
    (tmp_path / "town.csv").write_text(row.text())
    before = listing(tmp_path), listing(model)
    status, told, said, heard = elsewhere(*put(row.words, tmp_path, model), "--json")

    assert status == row.status, said
    assert [canary for canary in CANARIES if canary in heard] == []
    if row.code:
        assert (told["error"]["code"], told["error"]["exit_status"]) == (row.code, row.status)
        assert said.splitlines()[-1] == f"{row.code}: {told['error']['message']}"
        assert row.message in told["error"]["message"]
        assert (listing(tmp_path), listing(model)) == before
    else:
        assert row.check is None or row.check(told, tmp_path / "out")
        names = listing(tmp_path / "out")
        assert len({each.lower() for each in names}) == len(names)  # on a disk that does not know capitals
        assert not any("CANARY" in each for each in names)


def test_who_never_moves_is_somewhere_else():  # B39
    r = [[u % 5] * 6 if u < 15 else [(u + s) % 5 for s in range(6)] for u in range(20)]
    traces = ew.Traces(r, ew.Locations(n=5), users=[f"u{u}" for u in range(20)])
    fakes = ew.generate_fakes(traces, preset="paper", kappa=2, rng=np.random.default_rng(1), par_s=1.0, par_d=1.0)
    still = [i for i, seed in enumerate(fakes.seed) if seed < 15]

    assert still
    assert all(r[fakes.seed[i]][0] not in fakes.r[i] for i in still)


# B51: the matrix of feasible moves, which only the library takes


FEASIBLE = {
    "B51 not R x R": (np.ones((2, 3)), "E_SHAPE"),
    "B51 negative": (np.array([[1, -1], [1, 1]]), "E_PARAM"),
    "B51 one way only": (np.array([[1, 1], [0, 1]]), None),
}


@pytest.mark.parametrize("name", FEASIBLE)
def test_feasible_moves(name):
    feasible, code = FEASIBLE[name]
    profiles = ew.fit_profiles(ew.Traces([[0, 1, 0]], ew.Locations(n=2)))
    if code is None:
        assert ew.aggregate(profiles, ew.Locations(n=2), feasible=feasible).R == 2
        return
    with pytest.raises(ew.errors.InvalidParameter) as caught:
        ew.aggregate(profiles, ew.Locations(n=2), feasible=feasible)

    assert caught.value.code == code


def test_a_place_nobody_may_leave_is_said_aloud():
    profiles = ew.fit_profiles(ew.Traces([[0, 1, 0]], ew.Locations(n=2)))
    with pytest.warns(UserWarning, match="absorbing|leave"):
        ew.aggregate(profiles, ew.Locations(n=2), feasible=np.array([[1, 1], [0, 0]]))


# B52: models that are none


def index(folder, **changes):
    told = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps({**told, **changes}))


def array(folder, change):
    """The arrays of a model changed, and the index made to name the new file."""
    import hashlib

    with np.load(folder / "model.npz") as file:
        arrays = change(dict(file))
    np.savez(folder / "model.npz", **arrays)
    index(folder, files={"model.npz": hashlib.sha256((folder / "model.npz").read_bytes()).hexdigest()})


def flipped(folder):
    content = bytearray((folder / "model.npz").read_bytes())
    content[len(content) // 2] ^= 1
    (folder / "model.npz").write_bytes(content)


def swapped(arrays):
    return {**arrays, "label": arrays["place"][:-1], "place": arrays["label"]}


def pickled(arrays):
    return {**arrays, "label": np.array([{"a": 1}] * len(arrays["label"]), dtype=object)}


def huge(folder):
    told = json.loads((folder / "model.json").read_text())
    told["arrays"]["label"]["shape"] = [10**12]
    index(folder, arrays=told["arrays"])


def pipe(name):
    def inside(folder):
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return inside


MODELS = {
    "B52 wrong magic": lambda f: index(f, kind="another"),
    "B52 newer": lambda f: index(f, format=2),
    "B52 truncated": lambda f: (f / "model.npz").write_bytes((f / "model.npz").read_bytes()[:99]),
    "B52 a flipped byte": flipped,
    "B52 swapped arrays": lambda f: array(f, swapped),
    "B52 a huge shape": huge,
    "B52 a pickle": lambda f: array(f, pickled),
    "B52 no index": lambda f: (f / "model.json").unlink(),
    "B52 deep nonsense": lambda f: (f / "model.json").write_text("[" * 10**5),
    "B52 a pipe for an index": pipe("model.json"),
    "B52 a pipe for arrays": pipe("model.npz"),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_that_is_none(name, tmp_path, model, elsewhere):  # noqa: F811
    (tmp_path / "town.csv").write_text(town())
    shutil.copytree(model, tmp_path / "model")
    MODELS[name](tmp_path / "model")
    before = listing(tmp_path)
    words = ("generate", tmp_path / "town.csv", "-o", tmp_path / "out", "--model", tmp_path / "model", "--json")
    status, told, said, heard = elsewhere(*words)

    assert (status, told["error"]["code"]) == (2, "E_MODEL")
    assert len(said.splitlines()) == 1
    assert listing(tmp_path) == before
    assert [canary for canary in CANARIES if canary in heard] == []


# B54: a disk that is full, and another one


def test_a_full_disk_leaves_nothing_half(tmp_path, elsewhere):  # noqa: F811
    (tmp_path / "town.csv").write_text(town())
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "traces.csv").write_text("the old one")
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2048, limit[1]))
    try:
        status, told, *_ = elsewhere("prepare", tmp_path / "town.csv", "-o", tmp_path / "out", "--force", "--json")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)

    assert (status, told["error"]["code"]) == (2, "E_OUTPUT")
    assert (tmp_path / "out" / "traces.csv").read_text() == "the old one"
    # whole files or none, and no index that would make a prepared folder of them
    assert set(listing(tmp_path / "out")) <= {"traces.csv", "traces.parquet"}


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no second file system")  # noqa: S108
def test_another_file_system(tmp_path, elsewhere):  # noqa: F811
    (tmp_path / "town.csv").write_text(town())
    out = Path("/dev/shm") / f"elsewhere-test-{os.getpid()}"  # noqa: S108
    try:
        assert elsewhere("prepare", tmp_path / "town.csv", "-o", out, "--json")[0] == 0
        assert ew.read_traces(out).U == 40
    finally:
        shutil.rmtree(out, ignore_errors=True)
