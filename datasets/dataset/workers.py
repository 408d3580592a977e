"""Workers of one machine: this process, and children that start while it still plans.

A child is a new interpreter, which imports this package alone. It does not run the caller's main module again, and does not
inherit the state of the caller's threads, as a fork would.
"""

import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, Pipe
from multiprocessing.spawn import get_executable
from typing import Any

from tmaops.dataset.errors import Lost, Refused

_CHILD = "import sys; sys.path[:] = sys.argv[2:]; from tmaops.dataset.workers import serve; serve(int(sys.argv[1]))"


class Workers:
    """So many workers for map(); `begin` is called in each child before its first task. A context manager."""

    def __init__(self, count: int, begin: Callable[[], None]):
        self.count = count
        self._children = [_Child(begin) for _ in range(count - 1)]

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._children:
            child.end()

    def map(self, work: Callable[[Any], Any], tasks: list[Any]) -> Iterator[tuple[Any, Any]]:
        """Does work(task) of all tasks in any order, and yields each task with the result, or with the Refused that it raised.

        Other errors are raised here. Tasks of children that run when the caller stops are ended first. This thread does its
        share: memory of other threads goes back to the system after each task, and comes anew.
        """
        waiting = deque(tasks)
        results: queue.SimpleQueue = queue.SimpleQueue()

        def drain(child: _Child) -> None:
            try:
                while child.ready() and waiting:
                    with contextlib.suppress(IndexError):  # another one took the last task
                        task = waiting.popleft()
                        results.put((task, child.do(work, task)))
            except BaseException as error:
                results.put((None, error))

        children = self._children if len(tasks) > 1 else []
        lanes = [threading.Thread(name="worker", target=drain, args=(child,)) for child in children]
        for lane in lanes:
            lane.start()
        left = len(tasks)
        try:
            while left:
                with contextlib.suppress(IndexError):
                    task = waiting.popleft()
                    results.put((task, _tried(work, task)))
                while left and (not waiting or not results.empty()):
                    task, result = results.get()
                    if task is None:
                        raise result
                    left -= 1
                    yield task, result
        finally:
            waiting.clear()
            for child in children:
                child.stop_waiting()
            for lane in lanes:
                lane.join()


def _tried(work: Callable[[Any], Any], task: Any) -> Any:
    try:
        return work(task)
    except Refused as error:
        return error


class _Child:
    """A process that does one task at a time."""

    def __init__(self, begin: Callable[[], None]):
        self._connection, theirs = Pipe()
        command = [os.fsdecode(get_executable()), "-c", _CHILD, str(theirs.fileno()), *sys.path]
        environment = {"OPENBLAS_NUM_THREADS": "1", **os.environ}  # NumPy starts its threads when it is imported
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # the child inherits it: Ctrl-C is ours
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], env=environment
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            theirs.close()
        self._connection.send(begin)
        self._ready = self._given_up = False

    def ready(self) -> bool:
        """Waits until the process has imported what it needs. False where it is no longer wanted."""
        if not self._ready:
            try:
                self._ready = self._connection.recv()
            except (EOFError, OSError):
                if not self._given_up:
                    raise _dead() from None
        return self._ready

    def do(self, work: Callable[[Any], Any], task: Any) -> Any:
        try:
            self._connection.send((work, task))
            result, remote = self._connection.recv()
        except (EOFError, OSError):
            raise _dead() from None
        if remote is not None and not isinstance(result, Refused):
            raise result from RuntimeError(f"in a worker process:\n{remote}")
        return result

    def stop_waiting(self) -> None:
        """Ends a process that has not begun."""
        if not self._ready:
            self._given_up = True
            self._process.kill()

    def end(self) -> None:
        self._connection.close()
        self.stop_waiting()
        self._process.wait()


def _dead() -> Lost:
    return Lost("a worker", "a process that was killed", "fewer --workers or more memory; --resume goes on")


class _WithoutPandas:
    """Says that pandas is not installed. With the first array pyarrow imports it, only to ask whether the array is a Series."""

    def find_spec(self, name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("workers do without pandas", name=name)


def serve(descriptor: int) -> None:
    """The child: tasks from the connection, until it is closed."""
    connection = Connection(descriptor)
    sys.meta_path.insert(0, _WithoutPandas())
    with contextlib.suppress(EOFError, OSError):
        connection.recv()()
        connection.send(True)
        while True:
            work, task = connection.recv()
            try:
                answer = pickle.dumps((work(task), None))
            except BaseException as error:
                answer = _pickled(error)
            connection.send_bytes(answer)
    os._exit(0)  # nothing is left to be written, and tearing down the libraries takes time


def _pickled(error: BaseException) -> bytes:
    remote = traceback.format_exc()
    try:
        made = pickle.dumps((error, remote))
        pickle.loads(made)  # some errors of libraries can be packed and not unpacked
        return made
    except Exception:
        return pickle.dumps((RuntimeError(str(error)), remote))
