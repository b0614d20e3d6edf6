"""
Apply a function to many items: in this process by default, or on a `concurrent.futures.Executor`.

The caller owns the executor. Results come back in the order of the items, so they depend on neither the number of
workers nor the order in which they finish.

`Cluster` is an executor over the workers of a Dask scheduler. Scheduler and workers hold sealed bytes, which appear in
logs and on dashboards as a constant text. An error in a piece of work is reported to the caller alone.
"""

import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.metadata import version
from itertools import islice
from time import monotonic
from typing import Any, TypeVar
from uuid import uuid4

from elsewhere._version import __version__
from elsewhere.checkpoint import Stages, at_once
from elsewhere.errors import ClusterUnavailable, InvalidParameter, MissingExtra

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
    Return `[work(item) for item in items]`, on `executor` if there is one.

    `work` must not change its own state: an item whose worker has ended is computed again, perhaps from the start.
    `progress(done, total)` is called in this process after every item. With `stages` every result is kept as it
    arrives, under `name` and its number, and a resumed run computes only the missing ones.
    """
    missing = [item for i, item in enumerate(items) if f"{name}-{i}" not in stages.finished]
    if not isinstance(executor, Executor | None):
        raise InvalidParameter(
            f"`executor` must be a concurrent.futures.Executor, got {type(executor).__name__}.", parameter="executor"
        )
    answers = map(work, missing) if executor is None else _in_one_thread(executor.map(_Unseen(work), missing))
    results: list[Result] = []
    for i in range(len(items)):
        results.append(stages(f"{name}-{i}", lambda: next(answers)))
        if progress is not None:
            progress(len(results), len(items))
    next(answers, None)  # ends the generator, which closes what it has open
    return results


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which libraries compute in one thread, so that sums are the same on every machine (R5)."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1)  # type: ignore[no-any-return]


def _in_one_thread(results: Iterator[Result]) -> Iterator[Result]:
    """Yield the results, each computed in one thread, so that sums do not depend on the number of threads (R5)."""
    with one_thread():
        try:
            yield from results
        except BrokenExecutor:
            raise ClusterUnavailable(
                "a process of `executor` ended during its work, most likely because memory was short: create the "
                "executor again with fewer workers, and repeat the call.",
                code="E_CLUSTER_MEMORY",
            ) from None


CONNECT = 30.0  # seconds in which a scheduler must answer, and the first worker be there
CLOSE = 5.0  # seconds in which a failed connection must be closed
ALONE = 60.0  # seconds to wait for a worker when there is none
LOOK = 5.0  # seconds between two looks whether workers are still there
AHEAD = 4  # pieces submitted for each thread of the cluster
ALIKE = ("numpy", "numba", "scipy", "scikit-learn", "pandas", "pyarrow")  # what the bytes of a result depend on


@dataclass(frozen=True, repr=False)
class Sealed:
    """An object as bytes, of which no log shows the content."""

    content: bytes

    @staticmethod
    def of(content: Any) -> "Sealed":
        """Seal an object."""
        import cloudpickle

        return Sealed(cloudpickle.dumps(content))

    def open(self) -> Any:
        """Return the object, a new one every time."""
        import cloudpickle

        return cloudpickle.loads(self.content)

    def __repr__(self) -> str:
        return "Sealed()"

    def __sizeof__(self) -> int:
        return len(self.content)


@lru_cache(maxsize=1)
def _shared(work: Sealed) -> Any:
    """Return what all pieces share, which is unpacked once on a worker."""
    return work.open()


def carry_out(work: Sealed, item: Sealed) -> Sealed:
    """Do a piece of work on a worker; return the result or the error, sealed for the caller alone."""
    from threadpoolctl import threadpool_limits

    try:
        expected, do = _shared(work)
        if expected != versions():
            raise _differ("a worker that came later", versions(), expected)
        threadpool_limits(1)  # for ever: the process belongs to a worker
        return Sealed.of((do(item.open()), None))
    except Exception as error:  # it is raised again where the work was asked for
        return _seal_error(error)


def _seal_error(error: Exception) -> Sealed:
    try:
        error_sealed = Sealed.of((None, error.with_traceback(None)))
        error_sealed.open()
    except Exception:  # an error that cannot be sent
        return Sealed.of((None, RuntimeError(f"{type(error).__name__} on a worker.")))
    return error_sealed


def versions() -> dict[str, str]:
    """Return the versions here of what the bytes of a result depend on."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return {"elsewhere": __version__, "python": python, **{name: version(name) for name in ALIKE}}


def _differ(who: str, theirs: dict[str, str], ours: dict[str, str]) -> ClusterUnavailable:
    other = [name for name in ours if theirs.get(name) != ours[name]]
    parts = ", ".join(f"{name} {theirs.get(name, 'none')} (not {ours[name]})" for name in other)
    return ClusterUnavailable(
        f"{who} has {parts}: install the same versions on this machine, the scheduler and all workers.",
        code="E_CLUSTER_VERSION",
    )


class Cluster(Executor):
    """
    Do work on the workers of a Dask scheduler: an `executor` for any function that takes one.

    Results are equal to those of one process, byte by byte. When a worker ends, its unfinished pieces are done again by
    others; when all have ended, the call is refused and can be repeated. The data of a run are sent to scheduler and
    workers as arguments; a task name is the name of a function and a random number.

    Parameters
    ----------
    address
        Of the scheduler: "tls://host:8786", or "tcp://host:8786" on one machine or a private network. Certificates are
        those of Dask's configuration (`distributed.comm.tls`).

    Examples
    --------
    >>> import elsewhere as ew
    >>> with ew.Cluster("tls://scheduler.example:8786") as cluster:  # doctest: +SKIP
    ...     ew.synthesize("traces", "out/fakes", executor=cluster)

    """

    def __init__(self, address: str) -> None:
        self.address = address
        self._client = _connect(address)
        try:
            self._check()
        except BaseException:
            self.shutdown()
            raise

    def __repr__(self) -> str:
        return f"Cluster({self.address!r})"

    def map(
        self, fn: Callable[..., Any], *iterables: Iterable[Any], timeout: float | None = None, chunksize: int = 1
    ) -> Iterator[Any]:
        """
        Yield `fn(item)` for every item of one iterable, in order; a few items per thread are submitted at a time.

        `fn` is sent to every worker once, however many items there are; `timeout` and `chunksize` are ignored.
        """
        items, waiting = iter(*iterables), deque[Any]()
        work, name = Sealed.of((versions(), fn)), _task_name(fn)
        try:
            with self._reached():
                most = AHEAD * max(1, sum(self._client.nthreads().values()))
                shared = self._client.scatter(work, broadcast=True, hash=False, timeout=ALONE)
            while True:
                more = [Sealed.of(item) for item in islice(items, most - len(waiting))]
                with self._reached():
                    for item in more:
                        key = f"{name}-{uuid4().hex}"
                        waiting.append(self._client.submit(carry_out, shared, item, key=key, pure=False))
                    if not waiting:
                        return
                    done = self._wait_for(waiting[0])
                waiting.popleft()
                result, error = done.open()
                if error is not None:
                    raise error
                yield result
        finally:
            if waiting and self._client.status == "running":  # nobody waits for these
                self._client.cancel(list(waiting), force=True)

    def _wait_for(self, begun: Any) -> Sealed:
        """Return the result of a piece; `TimeoutError` when there has been no worker for a while."""
        from distributed import TimeoutError as TooLate

        alone_since = None
        while True:
            try:
                result: Sealed = begun.result(timeout=LOOK)
                return result
            except TooLate:
                alone = self._client.status == "running" and not self._client.nthreads()
                alone_since = (alone_since or monotonic()) if alone else None
                if alone_since is not None and monotonic() - alone_since > ALONE:
                    raise

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """Turn what Dask raises when scheduler or workers fail into `ClusterUnavailable`."""
        from distributed import KilledWorker
        from distributed import TimeoutError as TooLate

        try:
            yield
        except KilledWorker:
            code, why = "E_CLUSTER_MEMORY", (
                "a piece of work stopped every worker that took it, most likely because memory was short: give "
                "each worker more (`dask worker --memory-limit`), or fewer threads."
            )  # fmt: skip
        except TooLate:
            code, why = "E_CLUSTER_WORKERS", (
                f"the Dask scheduler at {self.address} has no worker: start one, `dask worker {self.address}`."
            )  # fmt: skip
        except ImportError:
            code, why = "E_CLUSTER_VERSION", (
                f"scheduler or workers at {self.address} cannot load elsewhere: install it there, in the same version."
            )  # fmt: skip
        except (CancelledError, OSError, RuntimeError):
            code, why = "E_CLUSTER_LOST", (
                f"the Dask scheduler at {self.address} can no longer be used: it or all its workers went away, with "
                "what they were sent. Nothing was published; look at its log, start it again, and repeat the call, "
                "which resumes."
            )  # fmt: skip
        else:
            return
        raise ClusterUnavailable(why, code=code)

    def _check(self) -> None:
        """Refuse a cluster that has no workers, or other versions than this machine."""
        with self._reached():
            self._client.wait_for_workers(1, timeout=CONNECT)
            try:
                there = self._client.run(versions)
            except OSError:
                raise
            except Exception:  # an ImportError, or a text that says so
                raise ImportError from None
        for who, found in there.items():
            if found != versions():
                raise _differ(f"worker {who}", found, versions())

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Disconnect from the cluster, which keeps running."""
        _close(self._client, LOOK)


@dataclass(frozen=True, repr=False)
class _Unseen:
    """Work for an executor, of which no log shows the data bound into it."""

    function: Callable[..., Any]

    def __call__(self, item: Any) -> Any:
        return self.function(item)

    def __repr__(self) -> str:
        return f"work({_task_name(self.function)})"


def _task_name(work: Any) -> str:
    """Return the name of a function or of its class, without its arguments, which may be private."""
    while isinstance(work, partial | _Unseen):
        work = work.func if isinstance(work, partial) else work.function
    name = getattr(work, "__name__", type(work).__name__)
    return "".join(c for c in name if c.isalnum() or c == "_").strip("_") or "work"


def _connect(address: str) -> Any:
    try:
        from distributed import Client as DaskClient
    except ImportError:
        raise MissingExtra("a cluster needs distributed: pip install 'elsewhere[dask]'.") from None
    connect: Any = DaskClient  # untyped
    what = 'give the address of a Dask scheduler, such as "tls://host:8786"'
    client = connect.__new__(connect)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # versions are compared, and refused, below
            client.__init__(address, timeout=CONNECT, set_as_default=False)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        _close(client, CLOSE)  # otherwise Dask closes it when Python ends, with a minute's wait and a traceback
        if isinstance(error, TypeError):  # of Dask, where a tls:// address has no certificates
            what = "set the certificates of distributed.comm.tls in Dask's configuration (docs/reliability.md)"
        raise ClusterUnavailable(f"no Dask scheduler answers at {address}: {what}.", code="E_CLUSTER") from None
    return client


def _close(client: Any, timeout: float) -> None:
    """Close a client once: the garbage collector would close it again, and could block another one that starts."""
    with suppress(Exception):
        client.close(timeout=timeout)
    client.status = "closed"
