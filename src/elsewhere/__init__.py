"""
Turn real location traces into fake ones that live like people, elsewhere, and point at no one.

The front door: what most programs need, loaded when it is first used, so that `import elsewhere` costs next to nothing.
Types of results, errors and what experts need are in their modules.

The rooms, in the order of a run; each imports only those before it (docs/architecture.md):

    data        reads files into visits of places, and writes them
    paper       the paper: profiles, similarities, classes of places, the privacy test, its fakes
    synthesis   lives: how from many, where by meaning
    privacy     certificates
    run         the whole job, from a file to two folders
    evaluation  attacks on fakes, and what they are good for
    reports     figures and pages
    cli         one command per library call

`pool`, `serve` and `lbs` are the public side: they hand out published fakes and have never seen a real trace. Under all
rooms are `errors`, `settings`, `files`, `checkpoint`, `scale` and `sorting`.
"""

import lazy_loader

# the names stand in __init__.pyi, which editors and type checkers read too
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
