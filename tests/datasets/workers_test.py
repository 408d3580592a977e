"""Workers of one machine: this process and its children."""

import os
import time

import pytest
from tmaops.dataset.errors import Refused
from tmaops.dataset.workers import Workers


def begin():
    os.environ["BEGUN"] = str(os.getpid())


def square(number):
    if number == 7:
        raise Refused("episode 7", "seven", "another number")
    return number**2, os.getpid(), os.environ.get("BEGUN")


def slow(number):
    time.sleep(0.01)
    return os.getpid()


def fail(number):
    raise ZeroDivisionError(f"of {number}")


def fail_in_a_child(parent):
    if os.getpid() != parent:
        fail(5)
    time.sleep(0.02)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_every_task_is_done_once_and_refusals_are_handed_on(count):
    with Workers(count, begin) as workers:
        for _ in range(2):
            found = dict(workers.map(square, list(range(40))))
            assert sorted(found) == list(range(40))
            assert isinstance(found[7], Refused) and found.pop(7).where == "episode 7"
            assert all(result[0] == number**2 for number, result in found.items())
            assert all(result[1] == os.getpid() or result[2] == str(result[1]) for result in found.values())


@pytest.mark.parametrize("count", [1, 3])
def test_another_error_is_raised_and_ends_the_work(count):
    with Workers(count, begin) as workers, pytest.raises(ZeroDivisionError, match="of "):
        list(workers.map(fail, list(range(10))))


def test_children_do_a_part_of_the_work():
    with Workers(3, begin) as workers:
        children = set()
        while len(children) < 2:  # a busy machine starts one of them late
            children |= {each.result() for each in [workers._pool.submit(slow, 0) for _ in range(4)]}
        assert os.getpid() not in children
        assert len({process for _, process in workers.map(slow, list(range(60)))}) == 3


def test_an_error_of_a_child_says_where_it_was_raised():
    with Workers(2, begin) as workers:
        workers._ready[0].result()
        with pytest.raises(ZeroDivisionError) as caught:
            list(workers.map(fail_in_a_child, [os.getpid()] * 20))
    assert "workers_test.py" in str(caught.value.__cause__)
