"""
From classes, chains and people to fakes.

`paper` makes one attempt at a fake of a seed: semantic seed, then decoding (GenerateFake). `walk` draws walks with
memory, and lives over days, without any seed, and pairs them with seeds afterwards.
"""
