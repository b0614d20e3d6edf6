"""
Map over work: in this process by default, on any `concurrent.futures.Executor` when given one.

The caller owns the executor. Results come back in the order of the items, so they depend on neither the
number of workers nor the order in which they finish.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from elsewhere.checkpoint import Stages, at_once, kept
from elsewhere.errors import InvalidParameter, require_whole

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_over(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
    stages: Stages = at_once,
    name: str = "",
) -> list[Result]:
    """
    `[work(item) for item in items]`, on `executor` if there is one.

    `progress(done, total)` is called in this process after every item. With `stages` every result is kept as it comes,
    under `name` and its number, and of a run that was stopped only what is missing is done.
    """
    if executor is not None and not callable(getattr(executor, "map", None)):
        raise InvalidParameter(f"`executor` must be a concurrent.futures.Executor, got {type(executor).__name__}.")
    left = [item for i, item in enumerate(items) if not kept(stages, f"{name}-{i}")]
    finished: Iterator[Result] = iter(map(work, left) if executor is None else executor.map(work, left))
    results: list[Result] = []
    for i in range(len(items)):
        results.append(stages(f"{name}-{i}", lambda: next(finished)))
        if progress is not None:
            progress(len(results), len(items))
    return results


@contextmanager
def workers_or(executor: Executor | None, workers: int | None) -> Iterator[Executor | None]:
    """The caller's executor; else a pool of `workers` threads for the duration (kernels release the GIL); else None."""
    if executor is not None or workers is None or require_whole("workers", workers, 1) == 1:
        yield executor
    else:
        with ThreadPoolExecutor(workers) as pool:
            yield pool
