"""Work for other processes: what tests send there, how they start them, and how runs are short."""

import importlib
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import elsewhere

PLAIN = os.environ.get("NUMBA_DISABLE_JIT", "0") != "0"  # kernels are plain Python: `make test-nojit`
HERE = Path(__file__).parent
PATIENCE = 120  # seconds in which a process must be there, on a machine that has much else to do


@dataclass
class Started:
    """A scheduler and workers as processes of their own, with what they log."""

    folder: Path
    address: str = ""
    workers: list = field(default_factory=list)
    scheduler: subprocess.Popen | None = None

    def start(self, command, *words, code=None):
        """Start a process of Dask; `code` is run in it first."""
        run = f"{code or ''}\nimport sys\nsys.argv[0] = 'dask'\nfrom distributed.cli.dask_{command} import main\nmain()"
        log = self.folder / f"{command}-{len(self.workers)}.log"
        paths = os.pathsep.join([str(HERE), str(Path(elsewhere.__file__).parents[1])])  # the code that is being tested
        env = {**os.environ, "PYTHONPATH": paths, "DASK_DISTRIBUTED__WORKER__PROFILE__INTERVAL": "1s"}
        env["DASK_TEMPORARY_DIRECTORY"] = str(self.folder / "scratch")
        with log.open("wb") as file:
            return subprocess.Popen(
                [sys.executable, "-c", run, *map(str, words)],
                stdout=file,
                stderr=subprocess.STDOUT,
                env=env,
                cwd=self.folder,
            )

    def begin(self):
        """Start the scheduler."""
        told = self.folder / "scheduler.json"
        local = ["--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0"]
        self.scheduler = self.start("scheduler", *local, "--scheduler-file", told)
        until = time.monotonic() + PATIENCE
        while not self.address:
            assert self.scheduler.poll() is None, self.logs()
            assert time.monotonic() < until, self.logs()
            time.sleep(0.05)
            if told.exists() and told.read_text().strip():
                self.address = json.loads(told.read_text())["address"]
        return self

    def add(self, code=None):
        """Start a worker of one thread, and return its process."""
        words = [self.address, "--no-nanny", "--nthreads", "1", "--dashboard-address", "127.0.0.1:0"]
        self.workers.append(self.start("worker", *words, code=code))
        return self.workers[-1]

    def logs(self):
        """All that scheduler and workers have said so far."""
        return "\n".join(log.read_text(errors="replace") for log in sorted(self.folder.glob("*.log")))

    def end(self):
        """End every process that was started here."""
        for process in [*self.workers, self.scheduler]:
            if process is not None and process.poll() is None:
                process.kill()
            if process is not None:
                process.wait()


@dataclass(frozen=True)
class Slow:
    """The square of a number, after a while; each time one begins is written into a folder."""

    folder: Path
    seconds: float = 0.05

    def __call__(self, number):
        """Do it."""
        with (self.folder / f"{number}").open("a") as file:
            file.write(f"{os.getpid()}\n")
        time.sleep(self.seconds)
        return number**2


# how long the law of certified fakes is led to the sums
FEW_ROUNDS = {
    "synthesis.certified.ROUNDS": 4,
    "synthesis.certified.PLACED": 3,
    "synthesis.certified.LIVES": 300,
}


def change(constants):
    """Set constants of the package, and return what they were."""
    before = {}
    for name, value in constants.items():
        home, _, constant = name.rpartition(".")
        module = importlib.import_module(f"elsewhere.{home}")
        before[name] = getattr(module, constant)
        setattr(module, constant, value)
    return before


def refuse(number):
    """Fail as our code does, and as others' code does, with what nobody is to read."""
    from elsewhere.errors import InvalidTraces

    if number == 0:
        raise InvalidTraces("refused on purpose", code="E_PURPOSE")
    raise KeyError(f"person-{number}")
