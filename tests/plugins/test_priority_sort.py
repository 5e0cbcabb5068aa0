from dataclasses import dataclass

import pytest

from mooring.objects.pod import Pod
from mooring.plugins.priority_sort import PrioritySort
from tests.makers import make_pod


@dataclass
class Queued:
    pod: Pod
    timestamp: float


@pytest.mark.parametrize(
    ("a", "b", "first"),
    [
        pytest.param((10, 2.0), (5, 1.0), True, id="higher priority, though later"),
        pytest.param((5, 1.0), (10, 2.0), False, id="lower priority, though earlier"),
        pytest.param((5, 1.0), (5, 2.0), True, id="equal and earlier"),
        pytest.param((5, 2.0), (5, 1.0), False, id="equal and later"),
        pytest.param((5, 1.0), (5, 1.0), False, id="alike in both"),
        pytest.param((None, 1.0), (0, 2.0), True, id="no priority is 0"),
        pytest.param((None, 2.0), (-1, 1.0), True, id="no priority is above a negative one"),
    ],
)
def test_the_higher_priority_goes_first_and_then_the_earlier(a, b, first):
    queued = [Queued(make_pod(priority=priority), timestamp) for priority, timestamp in (a, b)]

    assert PrioritySort().less(*queued) is first
