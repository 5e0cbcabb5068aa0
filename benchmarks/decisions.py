"""Decisions per second of three workloads: the first thing to run, and the smallest.

    python benchmarks/decisions.py [--nodes 1000 5000] [--pods 500] [--output json]

Plain pods, hard zone spread and required anti-affinity, of those in `benchmarks.suite`, which takes the
same options and more.
"""

from __future__ import annotations

import sys
from pathlib import Path

WORKLOADS = ("basic", "zone-spread", "pod-anti-affinity")


def main() -> int:
    # Run as a file, this folder is on the path, and not the one that it is in.
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from benchmarks import suite

    defaults = ["--nodes", "1000", "5000", "--pods", "500", "--repeats", "1"]
    return suite.main([*defaults, "--workloads", *WORKLOADS, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
