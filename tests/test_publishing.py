"""The publishing scenario: golden divergences, slow twins, laws, datasets, and what bad input gets."""

import json
import math
import time
from pathlib import Path

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import traces

import elsewhere as ew
from elsewhere.evaluation import publishing
from elsewhere.evaluation.publishing import Scene, datasets_of

PF = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "pf_tokyo"
COUNTS = st.lists(st.integers(0, 9), min_size=3, max_size=6).filter(any)


def small(rng, N=6, L=9, R=5):
    return ew.Traces(rng.integers(R, size=(N, L)), ew.Locations(xy=rng.random((R, 2)) * 5), step_minutes=1440 / L)


def test_golden_kl_of_small_counts():
    real = [6, 3, 1, 0]

    assert publishing.kl(real, [4, 4, 2, 0]) == pytest.approx(0.086792, abs=5e-7)
    assert publishing.kl(real, np.ones(4)) == pytest.approx(0.441693, abs=5e-7)
    assert publishing.kl(real, [10, 0, 0, 0]) == pytest.approx(0.954383, abs=5e-7)


def test_golden_baselines_of_the_paper():
    # 2,160 visits of 400 places, 115.24 of them at the first, entropy 4.7997: a falling tail is bent until it fits
    N, R, p1, H = 2160, 400, 0.053353, 4.7997
    low, high = 0.0, 1.0
    for _ in range(200):
        bend = (low + high) / 2
        tail = np.exp(-bend * np.arange(R - 1))
        p = np.concatenate([[p1], (1 - p1) * tail / tail.sum()])
        low, high = (bend, high) if float(-(p * np.log(p)).sum()) > H else (low, bend)
    counts = N * p
    single = np.zeros(R)
    single[0] = N

    assert counts.min() > 0
    assert publishing.kl(counts, np.ones(R)) == pytest.approx(1.1918, abs=1e-4)
    assert publishing.kl(counts, single) == pytest.approx(4.6666, abs=1e-4)


@given(COUNTS, COUNTS)
def test_the_divergence_equals_its_slow_twin(real, other):
    n = min(len(real), len(other))
    real, other = real[:n], other[:n]
    if not (any(real) and any(other)):
        return

    assert publishing.kl(real, other) == pytest.approx(naive.kl_of_counts(real, other), abs=1e-12)
    assert publishing.kl(real, real) == 0


@given(traces(min_users=2, max_slots=8), st.integers(0, 2))
def test_time_allocation_equals_its_slow_twin(t, rank):
    other = (t.r + t.r[:, ::-1]) % t.R
    a, b = publishing.top_shares(t.r)[:, rank], publishing.top_shares(other)[:, rank]

    assert publishing.allocation_kl(a, b, t.L) == pytest.approx(
        naive.allocation_kl(t.r.tolist(), other.tolist(), rank, t.L), abs=1e-12
    )
    assert publishing.allocation_kl(a, a, t.L) == 0
    # a third each, whatever the rank: the uniform law over traces
    uniform = publishing.allocation_kl(a, np.full(len(a), 1 / 3), t.L)
    smooth = np.where(a > 0, a * t.L, 0.1) if a.any() else np.ones(len(a))
    assert uniform == pytest.approx(
        math.log(len(a)) + float((smooth / smooth.sum() * np.log(smooth / smooth.sum())).sum()), abs=1e-12
    )


def test_random_shares_are_sorted_as_fakes_are():  # E70
    rng = np.random.default_rng(5)
    real = np.arange(1, 31) / 40  # from little to much time, so that sorting matters
    uniform = publishing.allocation_kl(real, np.full(30, 1 / 3), 72)
    # KL - uniform = sum_i p_i (-ln x_i) + ln mean(x), of mean ln .5 - var(x) / (2 mean(x)^2 n) nearly
    mean = math.log(0.5) - 1 / (6 * 30)
    # the k-th smallest of n uniform numbers has E(-ln x) = 1/k + ... + 1/n
    by_rank = [sum(1 / i for i in range(k, 31)) for k in range(1, 31)]
    expected = float(real @ by_rank) / real.sum() + mean
    # one value has standard deviation about .18 at 30 users
    tolerance = 4.9 * 0.18 / math.sqrt(publishing.RANDOM_DRAWS)

    assert publishing.random_allocation(real, 72, rng).mean() - uniform == pytest.approx(expected, abs=tolerance)
    assert expected < 1 - math.log(2) - 2 * tolerance
    unsorted = publishing.random_allocation(real, 72, rng, paired=True)
    assert unsorted.mean() - uniform == pytest.approx(1 - math.log(2), abs=tolerance)


def test_other_numbers_of_traces_are_read_at_quantiles():
    real = np.array([0.1, 0.2, 0.3, 0.4])

    assert publishing.allocation_kl(real, np.repeat(real, 5), 72) < 0.01
    assert publishing.allocation_kl(real, real[::-1], 72) == 0
    assert publishing.allocation_kl(real, real[::-1], 72, paired=True) > 0.1


@settings(max_examples=25)
@given(traces(min_users=2))
def test_a_dataset_against_itself_is_as_near_as_can_be(t):
    found = ew.evaluate_publishing(t, t, t).to_dict()

    for name in ("p_bar", "pi_bar"):
        assert found["aggregate"][name]["fakes"]["mean"] == pytest.approx(1, abs=1e-12)
        assert found["aggregate"][name]["testing"] == pytest.approx(1, abs=1e-12)
    for table in (*found["visits"].values(), *found["allocation"].values()):
        assert table["fakes"]["mean"] == table["testing"] == 0
    assert found["similarity"]["real_real"]["quantiles"] == found["similarity"]["fake_fake"]["quantiles"]


@pytest.mark.parametrize("epsilon", [0.0, 0.01, 1.0])
def test_aggregate_similarity_equals_its_slow_twin(epsilon):
    rng = np.random.default_rng(11)
    real, other = small(rng, R=4), small(rng, R=4)
    other = ew.Traces(other.r, real.locations, step_minutes=real.step_minutes)
    tau = [0] * real.L
    d = real.locations.distance(np.arange(4)[:, None], np.arange(4)).tolist()
    found = ew.evaluate_publishing(real, None, other, epsilon=epsilon).aggregate

    slow = naive.aggregate_similarity(real.r.tolist(), other.r.tolist(), tau, 1, 4, d, epsilon)
    assert found["p_bar"]["fakes"]["mean"] == pytest.approx(slow, abs=1e-12)
    a, b = (naive.aggregate_first([[x] for x in rows.r.tolist()], tau, 1, 4) for rows in (real, other))
    assert found["pi_bar"]["fakes"]["mean"] == pytest.approx(sum(map(min, a, b)), abs=1e-12)


def test_the_whole_aggregate_is_compared_where_nobody_moves():
    # blocks of rows and places that somebody moved to, against the whole of p_bar
    rng = np.random.default_rng(12)
    where = ew.Locations(xy=rng.random((200, 2)) * 9)
    real, other = (ew.Traces(rng.integers(150, size=(40, 12)), where) for _ in range(2))
    a, b = (ew.aggregate(ew.fit_profiles(t), where) for t in (real, other))
    dense = a.pi_bar @ np.minimum(a.table(), b.table()).sum(axis=1)

    assert ew.evaluate_publishing(real, None, other).aggregate["p_bar"]["fakes"]["mean"] == pytest.approx(dense)


def test_sorted_kl_does_not_see_a_renaming():
    rng = np.random.default_rng(2)
    t = ew.Traces(np.minimum(rng.integers(9, size=(20, 10)), rng.integers(9, size=(20, 10))), ew.Locations(n=9))
    found = ew.evaluate_publishing(t, None, 8 - t.r)

    assert found.visits["all"]["fakes"]["mean"] == 0


def test_visits_follow_the_tables_of_the_paper():
    rng = np.random.default_rng(8)
    R = 70
    real = ew.Traces(np.minimum(*rng.integers(R, size=(2, 40, 15))), ew.Locations(n=R))
    other, test = rng.integers(R, size=(2, 40, 15))
    found = ew.evaluate_publishing(real, test, other).visits
    counts = {
        name: sorted(naive.place_counts(r.tolist(), R), reverse=True)
        for name, r in (("real", real.r), ("f", other), ("t", test))
    }

    for name, n in (("all", R), ("top", 50)):
        top = counts["real"][:n]
        assert found[name]["places"] == n
        assert found[name]["fakes"]["mean"] == pytest.approx(naive.kl_of_counts(top, counts["f"][:n]))
        assert found[name]["testing"] == pytest.approx(naive.kl_of_counts(top, counts["t"][:n]))
        assert found[name]["uniform"] == pytest.approx(naive.kl_of_counts(top, [1] * n))
        # all visits of these places at one of them
        assert found[name]["single"] == pytest.approx(naive.kl_of_counts(top, [sum(top)] + [0] * (n - 1)))


def test_similarities_with_the_own_seed_and_with_others_equal_single_pairs():
    rng = np.random.default_rng(4)
    seeds, fakes = rng.integers(5, size=(2, 6, 12))
    train = ew.Traces(seeds, ew.Locations(n=5), users=[0, 0, 1, 1, 2, 2])
    owner = np.array([3, 3, 0, 5, 1, 4])
    found = ew.evaluate_publishing(train, None, fakes, seed_index=owner)
    one = [ew.fit_profiles(ew.Traces(r, ew.Locations(n=5))) for r in (seeds, fakes)]
    sim = np.array([[ew.semantic_similarity(s, f).sim for f in one[1]] for s in one[0]])
    own = [ew.geographic_similarity(one[0][s], one[1][f]) for f, s in enumerate(owner)]
    gaps = [abs(sim[s, f] - sim[o, f]) for f, s in enumerate(owner) for o in range(6) if o // 2 != s // 2]

    assert found.samples["geographic"] == pytest.approx(own)
    assert found.samples["semantic"] == pytest.approx([sim[s, f] for f, s in enumerate(owner)])
    assert np.sort(found.samples["differential"]) == pytest.approx(np.sort(gaps))


def test_pairs_are_compared_within_the_datasets():
    rng = np.random.default_rng(6)
    train = rng.integers(4, size=(12, 10))
    found = ew.evaluate_publishing(train, None, rng.integers(6, size=(12, 10)))
    real = ew.pairwise_semantic_similarity(ew.fit_profiles(ew.Traces(train, ew.Locations(n=6))))
    pairs = np.repeat(real[np.triu_indices(12, 1)], 2)
    told = found.to_dict()["similarity"]["real_real"]

    assert np.sort(found.samples["real_real"]) == pytest.approx(np.sort(pairs))
    assert [told["quantiles"][q] for q in ("25", "50", "75")] == pytest.approx(np.quantile(pairs, [0.25, 0.5, 0.75]))


def scene(N, F, owner=None):
    r = np.zeros((max(N, F), 3), dtype=np.int32)
    rows = None if owner is None else np.array(owner)
    return Scene(r[:N], np.arange(N), None, r[:F], rows, ew.Locations(n=1))


def test_every_dataset_holds_one_fake_of_every_seed():
    owner = np.repeat(np.arange(30), 50)
    chosen, notes = datasets_of(
        scene(30, 1500, np.random.default_rng(1).permutation(owner)), 10, np.random.default_rng(2)
    )
    owner = np.random.default_rng(1).permutation(owner)

    assert notes == []
    assert [sorted(owner[rows]) for rows in chosen] == [list(range(30))] * 10
    assert len(np.unique(np.concatenate(chosen))) == 300


def test_too_few_fakes_are_said_and_used_again():
    chosen, notes = datasets_of(scene(4, 6, [0, 0, 0, 1, 1, 3]), 10, np.random.default_rng(2))

    assert len(chosen) == 3
    assert sorted(chosen[0]) + sorted(chosen[1]) != sorted(chosen[0]) * 2
    assert all(5 in rows and len(rows) == 3 for rows in chosen)
    assert [n.split(" ")[0] for n in notes] == ["1", "no", "seeds"]
    assert notes[1] == "no seed has more than 3 fakes: 3 datasets instead of 10."


def test_one_dataset_has_no_spread():
    train = np.random.default_rng(3).integers(6, size=(10, 8))
    one, two = (
        ew.evaluate_publishing(train, None, train[owner], seed_index=owner, rng=np.random.default_rng(1))
        for owner in (np.arange(10), np.repeat(np.arange(10), 2))
    )

    assert "no seed has more than 1 fake: 1 dataset instead of 10." in one.notes
    assert one.visits["all"]["fakes"]["std"] is None
    assert two.visits["all"]["fakes"]["std"] == 0  # which is measured


def test_without_seeds_datasets_are_random_parts_of_the_size_of_the_real_one():
    rng = np.random.default_rng(2)

    assert [sorted(d) for d in datasets_of(scene(4, 4), 10, rng)[0]] == [[0, 1, 2, 3]]
    apart = datasets_of(scene(4, 20), 5, rng)[0]
    assert sorted(np.concatenate(apart)) == list(range(20))
    again, notes = datasets_of(scene(4, 7), 5, rng)
    assert [len(np.unique(d)) for d in again] == [4] * 5
    assert notes


def test_mean_median_and_standard_deviation_are_over_the_datasets():
    rng = np.random.default_rng(3)
    train, fakes = rng.integers(6, size=(10, 8)), rng.integers(6, size=(40, 8))
    found = ew.evaluate_publishing(train, None, fakes, datasets=4, rng=np.random.default_rng(9))
    chosen, _ = datasets_of(
        scene(10, 40)._replace(real=train, fakes=fakes, places=ew.Locations(n=6)), 4, np.random.default_rng(9)
    )
    ranked = lambda r: sorted(np.bincount(r.ravel(), minlength=6).tolist(), reverse=True)  # noqa: E731
    each = [naive.kl_of_counts(ranked(train), ranked(fakes[d])) for d in chosen]

    assert found.visits["all"]["fakes"] == pytest.approx(
        {"mean": np.mean(each), "median": np.median(each), "std": np.std(each, ddof=1)}
    )


def test_large_inputs_are_sampled_and_it_is_said(monkeypatch):
    monkeypatch.setattr(publishing, "MOST_PAIRS", 40)
    monkeypatch.setattr(publishing, "MOST_COMPARED", 4)
    rng = np.random.default_rng(3)
    found = ew.evaluate_publishing(
        rng.integers(6, size=(10, 8)), None, rng.integers(6, size=(20, 8)), seed_index=np.arange(20) % 10
    )

    assert len(found.samples["semantic"]) == 4
    assert len(found.samples["real_real"]) == 12
    assert any("4 fakes" in note for note in found.notes)


def test_result_is_plain_and_repeatable_and_says_little():
    rng = np.random.default_rng(3)
    t = ew.Traces(
        rng.integers(77, size=(9, 8)), ew.Locations(xy=rng.random((80, 2))), users=[f"canary{i}" for i in range(9)]
    )
    fakes = rng.integers(80, size=(36, 8))
    first, again = (ew.evaluate_publishing(t, None, fakes, seed_index=np.arange(36) % 9).to_dict() for _ in range(2))

    assert json.loads(json.dumps(first)) == again
    assert "canary" not in json.dumps(first)
    assert "testing" not in first["visits"]["all"]


def test_missing_slots_are_no_visits():
    holes = np.array([[0, -1, 1, 1], [2, 2, -1, 0]])
    found = ew.evaluate_publishing(holes, holes[::-1], holes)

    assert found.visits["all"]["fakes"]["mean"] == 0
    assert found.allocation["1"]["fakes"]["mean"] == 0


@pytest.mark.filterwarnings("ignore:`alternates=")
def test_fakes_of_ours_bring_their_seeds():
    town = ew.simulate_town(users=60, locations=60, rng=np.random.default_rng(1))
    fakes = ew.generate_fakes(town.traces, method="paper", classes=town.truth, rng=np.random.default_rng(2))
    found = ew.evaluate_publishing(town.traces, None, fakes)

    assert found.samples["semantic"].shape == (len(fakes),)
    assert found.samples["geographic"].max() <= 0.1


R5 = np.zeros((3, 4), dtype=int)


@pytest.mark.parametrize(
    ("train", "test", "fakes", "options", "code"),
    [
        (R5, None, R5, {"datasets": 0}, "E_PARAM"),
        (R5, None, R5, {"datasets": 2.5}, "E_PARAM"),
        (R5, None, R5, {"epsilon": -1}, "E_PARAM"),
        (R5, None, R5, {"epsilon": math.nan}, "E_PARAM"),
        (R5, None, R5, {"rng": 7}, "E_PARAM"),
        (R5, None, R5, {"seed_index": [0, 1]}, "E_SHAPE"),
        (R5, None, R5, {"seed_index": [0, 1, 3]}, "E_INDEX"),
        (R5, None, R5, {"seed_index": [0.0, 1, 2]}, "E_SHAPE"),
        (R5, None, R5, {"locations": ew.Locations(n=1), "epsilon": -1}, "E_PARAM"),
        (R5, None, R5[:, :2], {}, "E_SHAPE"),
        (R5, R5[:, :2], R5, {}, "E_SHAPE"),
        (R5, None, R5 + 5, {"locations": ew.Locations(n=4)}, "E_INDEX"),
        (R5, None, R5 - 2, {}, "E_INDEX"),
        (R5 * math.nan, None, R5, {}, "E_NUMBER"),
        (R5, None, R5[0], {}, "E_SHAPE"),
        (R5, None, R5[:0], {"locations": ew.Locations(n=1)}, "E_EMPTY"),
        (R5, None, "fakes.csv", {}, "E_NUMBER"),
        (ew.Traces(R5, ew.Locations(n=3)), None, ew.Traces(R5, ew.Locations(n=4)), {}, "E_MISMATCH"),
    ],
)
def test_bad_input_is_refused_with_a_code(train, test, fakes, options, code):
    with pytest.raises(ew.ElsewhereError) as error:
        ew.evaluate_publishing(train, test, fakes, **options)

    assert error.value.code == code


def test_the_original_tool_on_pf_tokyo():
    if not PF.exists():
        pytest.skip("the PF Tokyo data are not beside the project")
    import pandas as pd

    people = pd.read_csv(PF / "pf_tokyo_traces.csv.gz").sort_values(["uid", "slot"])["loc"].to_numpy().reshape(1000, 30)
    places = pd.read_csv(PF / "pf_tokyo_locations.csv")
    made = pd.read_parquet(
        PF / "sglt_reference_outputs.parquet", filters=[("clusters", "==", 50), ("par_l", "==", 1.0)]
    ).sort_values(["user", "trace_no", "time_period"])
    fakes = made["poi_index"].to_numpy().reshape(5000, 30)
    where = ew.Locations(lat=places["lat"], lon=places["lon"])
    train = ew.Traces(people[:500], where, start="09:00")
    before = time.process_time()
    found = ew.evaluate_publishing(
        train, people[500:], fakes, seed_index=made["user"].to_numpy().reshape(5000, 30)[:, 0]
    ).to_dict()
    took = time.process_time() - before

    assert found["sizes"]["datasets"] == 10
    assert found["sizes"]["dataset_size"] == 500
    # far from the real aggregates, where a second real dataset is near
    assert found["aggregate"]["p_bar"]["testing"] > found["aggregate"]["p_bar"]["fakes"]["mean"] + 0.2
    assert took < 30


def test_many_traces_compared_with_themselves_are_sampled_alike():
    days = np.random.default_rng(1).integers(6, size=(1100, 5))
    found = ew.evaluate_publishing(days, None, days)

    assert np.array_equal(found.samples["real_real"], found.samples["fake_fake"])
    assert np.array_equal(found.samples["real_real"], found.samples["fake_fake"])
