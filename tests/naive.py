"""
Slow twins: every metric, sampler and gate again, from its definition, with loops.

Imports nothing of ours, so that it can judge us.
"""


def location_graph(r, user, tau, R, T):
    """
    w_G of fig:alg by its double loop over ordered pairs of users; order 0, one sigma per period, ties shared (E22).

    `r` is a list of traces, `user` the user of each, `tau` the period of each instant.
    """
    users = sorted(set(user))
    counts = {u: [{} for _ in range(T)] for u in users}
    for row, u in zip(r, user, strict=True):
        for place, t in zip(row, tau, strict=True):
            if place >= 0:
                counts[u][t][place] = counts[u][t].get(place, 0) + 1

    def weight_at_rank(seen):
        """rank -> {place: weight}: a place in a block of b tied counts carries 1/b at each rank of the block."""
        ranks, position = {}, 0
        for count in sorted(set(seen.values()), reverse=True):
            block = [place for place in seen if seen[place] == count]
            for i in range(position, position + len(block)):
                ranks[i] = {place: 1 / len(block) for place in block}
            position += len(block)
        return ranks

    def similarity(u, v):
        total = sum(sum(seen.values()) for seen in counts[u])
        s = 0.0
        for seen_u, seen_v in zip(counts[u], counts[v], strict=True):
            if not seen_u or not seen_v:
                continue
            L_u, L_v = sum(seen_u.values()), sum(seen_v.values())
            x = sorted((c / L_u for c in seen_u.values()), reverse=True)
            y = sorted((c / L_v for c in seen_v.values()), reverse=True)
            s += L_u / total * sum(min(a, b) for a, b in zip(x, y, strict=False))
        return s

    w = [[0.0] * R for _ in range(R)]
    for u in users:
        total = sum(sum(seen.values()) for seen in counts[u])
        for v in users:
            if u == v:
                continue
            s = similarity(u, v)
            for t in range(T):
                here, there = weight_at_rank(counts[u][t]), weight_at_rank(counts[v][t])
                share = sum(counts[u][t].values()) / total
                for i in here:
                    for a, x in here[i].items():
                        for b, y in there.get(i, {}).items():
                            w[a][b] += share * s * x * y
    return [[0.0 if a == b else (w[a][b] + w[b][a]) / 2 for b in range(R)] for a in range(R)]
