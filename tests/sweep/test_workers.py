"""Worker processes belong to the sweep that started them."""

from __future__ import annotations

import os
import select
import subprocess
import sys

#: Starts a worker, says its process id, and waits to be killed.
SWEEP = """
import os, sys
from mooring.sweep.workers import Processes
if __name__ == "__main__":
    workers = Processes(1)
    print(workers._pool.submit(os.getpid).result(), flush=True)
    sys.stdin.read()
"""


def test_the_workers_of_a_sweep_that_is_killed_end(tmp_path):
    """They waited for cells for ever, each with its memory, as nobody told them that the sweep was gone."""
    script = tmp_path / "sweep.py"
    script.write_text(SWEEP)
    with subprocess.Popen(
        [sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as sweep:
        assert sweep.stdout is not None
        worker = os.pidfd_open(int(sweep.stdout.readline()))
        sweep.kill()
    try:
        ended, _, _ = select.select([worker], [], [], 30)
    finally:
        os.close(worker)

    assert ended
