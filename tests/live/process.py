"""`mooring run` as an operator runs it: a process, a configuration file, a log, a port."""

from __future__ import annotations

import os
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from control_plane import HOST, Component, free_ports
from plain_client import Json

from tests.live.waiting import PATIENCE_S, wait_for

EXAMPLES = Path(__file__).parents[2] / "examples"

#: Tests are about what is decided; how fast requests may follow each other is for the tests of that.
UNHURRIED = {"qps": 1000, "burst": 1000}

#: A leader that died is succeeded within seconds, and one on a busy machine is not taken for dead.
SHORT_LEASE = {
    "leaderElect": True,
    "leaseDuration": "6s",
    "renewDeadline": "5s",
    "retryPeriod": "500ms",
    "resourceName": "mooring",
}


def configuration(
    *scheduler_names: str, profiles: Sequence[Json] = (), **fields: Any
) -> dict[str, Any]:
    """A KubeSchedulerConfiguration: these names with the default plugins, or these profiles."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": UNHURRIED,
        "leaderElection": {"leaderElect": False},
        "profiles": [*({"schedulerName": name} for name in scheduler_names), *profiles],
        **fields,
    }


class Mooring(Component):
    """One instance."""

    def __init__(
        self, name: str, folder: Path, kubeconfig: Path, config: Json, arguments: Sequence[str] = ()
    ) -> None:
        self.config = folder / f"{name}.yaml"
        self.configure(config)
        [self.port] = free_ports(1)
        super().__init__(
            name,
            [
                *(sys.executable, "-m", "mooring", "run"),
                f"--kubeconfig={kubeconfig}",
                f"--config={self.config}",
                f"--port={self.port}",
                *arguments,
            ],
            folder / f"{name}.log",
        )

    @property
    def exit_code(self) -> int | None:
        return None if self.process is None else self.process.poll()

    def configure(self, config: Json) -> None:
        """Replace the configuration file, all at once."""
        beside = self.config.with_suffix(".next")
        beside.write_text(yaml.safe_dump(config))
        beside.replace(self.config)

    def start(self) -> None:
        # Where the plugins of the examples are.
        paths = [str(EXAMPLES / "03-gang"), os.environ.get("PYTHONPATH", "")]
        self.environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
        super().start()

    def wait_until_ready(self, *, within_s: float = PATIENCE_S) -> None:
        """Wait until it knows the cluster; a standby does, too."""

        def is_ready() -> bool:
            self.check()
            return self.read("readyz") == "ok"

        wait_for(is_ready, lambda: f"{self.name} is ready\n{self.log_tail()}", within_s=within_s)

    def log_tail(self) -> str:
        """The end of its log, without what it says of being asked whether it is ready."""
        lines = self.log.read_text().splitlines()
        return "\n".join([line for line in lines if "readyz check" not in line][-60:])

    def read(self, what: str) -> str:
        """What it says at an endpoint; "" if it says nothing good."""
        try:
            with urllib.request.urlopen(f"http://{HOST}:{self.port}/{what}", timeout=5) as answer:
                text: str = answer.read().decode()
                return text
        except OSError:
            return ""

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric's series that have these labels."""
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        return sum(
            float(line.rpartition(" ")[2])
            for line in self.read("metrics").splitlines()
            if line.partition(" ")[0].partition("{")[0] == name
            and all(label in line for label in wanted)
        )

    def resident_bytes(self) -> int:
        """How much memory it has."""
        assert self.process is not None
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")
