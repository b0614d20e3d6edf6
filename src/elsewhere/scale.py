"""
Map over work: in this process by default, on any `concurrent.futures.Executor` when given one.

The caller owns the executor. Results come back in the order of the items, so they depend on neither the
number of workers nor the order in which they finish.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from elsewhere.errors import InvalidParameter, require_whole

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_over(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Result]:
    """
    `[work(item) for item in items]`, on `executor` if there is one.

    `progress(done, total)` is called in this process after every item.
    """
    if executor is not None and not callable(getattr(executor, "map", None)):
        raise InvalidParameter(f"`executor` must be a concurrent.futures.Executor, got {type(executor).__name__}.")
    finished: Iterable[Result] = map(work, items) if executor is None else executor.map(work, items)
    results: list[Result] = []
    for result in finished:
        results.append(result)
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
