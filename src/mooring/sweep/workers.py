"""Where cells run: in this process, on the cores of this machine, or on a Dask cluster.

All three are used through `concurrent.futures`, so that there is one way to run a sweep.
"""

from __future__ import annotations

import importlib
import logging
import multiprocessing
import os
import signal
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from typing import Any

from mooring.errors import MooringError
from mooring.sweep.cell import Measures, run_cell
from mooring.sweep.sent_modules import run_sent_cell
from mooring.sweep.work import Work

_LOG = logging.getLogger(__name__)

#: How long to wait for the scheduler of a Dask cluster.
_CONNECT_S = 10


class WorkersError(MooringError):
    """There is nothing to run cells on."""


class Workers(ABC):
    """What runs cells."""

    #: How often a cell may be lost with its worker until it counts as failed: it may be what kills workers.
    most_losses = 3

    @property
    @abstractmethod
    def slots(self) -> int:
        """How many cells to submit at once."""

    @abstractmethod
    def submit(self, work: Work) -> Future[Measures]:
        """The future raises BrokenExecutor if the cell is lost with its worker."""

    def replace_lost(self) -> None:
        """Called after cells were lost, when none is running."""
        raise NotImplementedError

    @abstractmethod
    def close(self) -> None:
        """Stop at once; cells that are running are lost."""


class InProcess(Workers):
    """One cell after the other, in this process."""

    slots = 1

    def submit(self, work: Work) -> Future[Measures]:
        future: Future[Measures] = Future()
        try:
            future.set_result(run_cell(work))
        except Exception as error:
            future.set_exception(error)
        return future

    def close(self) -> None:
        pass


class Processes(Workers):
    """A pool of processes. A process that dies takes the pool down; a new pool takes over."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._others = set(multiprocessing.active_children())
        self._pool = self._new_pool()

    @property
    def slots(self) -> int:
        # No more than run: then a cell that is lost was running, and not only waiting.
        return self._jobs

    def submit(self, work: Work) -> Future[Measures]:
        return self._pool.submit(run_cell, work)

    def replace_lost(self) -> None:
        self.close()
        self._pool = self._new_pool()

    def close(self) -> None:
        for process in self._started():
            process.kill()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _new_pool(self) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self._jobs, mp_context=context, initializer=_belong_to_parent)

    def _started(self) -> list[BaseProcess]:
        return [each for each in multiprocessing.active_children() if each not in self._others]


def _belong_to_parent() -> None:
    """Ctrl-C reaches every process of a terminal; the one that runs the sweep answers it for all.

    A sweep that is killed cannot end its workers, and they would wait for cells for ever.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


class DaskWorkers(Workers):
    """The workers of a Dask cluster. Its scheduler gives the cells of a lost worker to another one."""

    def __init__(self, address: str) -> None:
        """Raises WorkersError."""
        self._client = _connected(address)
        if not self._client.nthreads():
            _LOG.warning("the Dask cluster at %s has no workers yet; cells wait for one", address)
        self._executor: Executor = self._client.get_executor(pure=False)

    @property
    def slots(self) -> int:
        """More than run, so that a worker need not wait for its next cell; workers may join later."""
        threads: int = sum(self._client.nthreads().values())
        return max(8, 2 * threads)

    def submit(self, work: Work) -> Future[Measures]:
        return self._executor.submit(run_sent_cell, work)

    def close(self) -> None:
        self._executor.shutdown(wait=False)
        self._client.close()


def _connected(address: str) -> Any:
    """A `distributed.Client`, which is untyped."""
    try:
        client: Any = importlib.import_module("distributed").Client
    except ImportError as error:
        raise WorkersError(
            "a Dask cluster needs the package distributed, which is not installed; install it with"
            " pip install 'mooring[sweep]'"
        ) from error
    try:
        return client(address, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise WorkersError(
            f"no Dask scheduler answers at {address}: {error}; give its address, such as"
            " tcp://127.0.0.1:8786"
        ) from error


def _cores() -> int:
    """Those that this process may use, where the system can say."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def open_workers(*, dask: str | None = None, jobs: int | None = None) -> Iterator[Workers]:
    """By default, a process for each core. Raises WorkersError."""
    jobs = jobs or _cores()
    workers: Workers
    if dask is not None:
        workers = DaskWorkers(dask)
    else:
        workers = InProcess() if jobs == 1 else Processes(jobs)
    try:
        yield workers
    finally:
        workers.close()
