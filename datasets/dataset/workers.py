"""Workers of one machine: this process, and children that start while it still plans."""

import contextlib
import math
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import types
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from tmaops.dataset.errors import Lost, Refused


class Workers:
    """So many workers for map(); `begin` is called in each child before its first task. A context manager."""

    def __init__(self, count: int, begin: Callable[[], None]):
        self.count = count
        self._pool = ProcessPoolExecutor(max(count - 1, 1), multiprocessing.get_context("spawn"), _begin, (begin,))
        with _as_children_begin():
            self._ready = [self._pool.submit(os.getpid) for _ in range(count - 1)]

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def map(self, work: Callable[[Any], Any], tasks: list[Any]) -> Iterator[tuple[Any, Any]]:
        """Does work(task) of all tasks in any order, and yields each task with the result, or with the Refused that it raised.

        Other errors are raised here. Tasks of children that run when the caller stops are ended first. This process does its
        share; each child that is up has a task that waits.
        """
        waiting, running = deque(tasks), {}
        try:
            while waiting or running:
                while len(waiting) > 1 and len(running) < 2 * sum(each.done() for each in self._ready):
                    task = waiting.popleft()
                    running[self._pool.submit(tried, work, task)] = task
                if waiting:
                    task = waiting.popleft()
                    yield task, tried(work, task)
                for future in wait(running, 0 if waiting else None, FIRST_COMPLETED).done:
                    yield running.pop(future), future.result()
        except BrokenProcessPool:
            raise Lost("a worker", "a process that was killed", "more memory, or fewer --workers (--resume)") from None
        finally:
            wait([future for future in running if not future.cancel()])


@contextlib.contextmanager
def _as_children_begin() -> Iterator[None]:
    """Processes that start inside do not run the caller's main module again, leave Ctrl-C to us, and NumPy one thread."""
    main, before = sys.modules["__main__"], signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    threads = os.environ.get("OPENBLAS_NUM_THREADS")
    try:
        sys.modules["__main__"] = types.ModuleType("__main__")
        os.environ["OPENBLAS_NUM_THREADS"] = threads or "1"
        yield
    finally:
        sys.modules["__main__"] = main
        if threads is None:
            del os.environ["OPENBLAS_NUM_THREADS"]
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(begin: Callable[[], None]) -> None:
    """The begin of a child, which ends with its parent."""

    def end() -> None:
        multiprocessing.parent_process().join()
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()
    sys.meta_path.insert(0, types.SimpleNamespace(find_spec=_without_pandas))
    begin()


def _without_pandas(name: str, *_: object) -> None:
    """Says that pandas is not installed. pyarrow imports it only to ask whether an array is a Series."""
    if name == "pandas":
        raise ModuleNotFoundError("workers do without pandas", name=name)


def tried(work: Callable[[Any], Any], task: Any) -> Any:
    try:
        return work(task)
    except Refused as error:
        return error
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:  # some errors of libraries can be packed and not unpacked
            raise RuntimeError(str(error)) from error
        raise


def without_end(seconds: float, work: Callable[[Any], None], given: Any) -> str | None:
    """How a copy of this process fails to end work(given) within these seconds; None where it does not fail."""

    def limited() -> None:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(math.ceil(seconds))
        with contextlib.suppress(Exception):
            work(given)

    process = multiprocessing.get_context("fork").Process(target=limited)
    process.start()
    process.join()
    if process.exitcode == -signal.SIGALRM:
        return f"no end after {seconds:.0f} s"
    return f"an end by signal {-process.exitcode}" if process.exitcode < 0 else None
