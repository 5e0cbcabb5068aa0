"""A folder that nobody can list. Root may list every folder, but no path as long as the one in it."""

import os
from pathlib import Path


def make_unlistable(folder: Path) -> None:
    here = os.open(folder, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=here)
        below = os.open("d" * 250, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
