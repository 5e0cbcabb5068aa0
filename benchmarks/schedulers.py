"""The schedulers that are measured beside each other, as processes: how each is started, and what it costs.

Both read the same KubeSchedulerConfiguration. What a process costs is what Linux says of it in /proc.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from control_plane import Component, ControlPlane

#: Below this share of a core, a scheduler has nothing to do.
_IDLE_SHARE = 0.03
_IDLE_LOOK_S = 0.5

_TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")


def _mooring(control_plane: ControlPlane, config: Path, flags: Sequence[str] = ()) -> Component:
    command = [sys.executable, "-m", "mooring", "run", f"--config={config}", "--port=0", *flags]
    component = Component("mooring", command, config.with_suffix(".log"))
    component.start()
    return component


def _reference(control_plane: ControlPlane, config: Path, flags: Sequence[str] = ()) -> Component:
    """The flags are gates, which the control plane gives to all of its components."""
    return control_plane.start_scheduler(config)


class StartScheduler(Protocol):
    """Start a scheduler with a configuration file, which names the kubeconfig, and flags for gates."""

    def __call__(
        self, control_plane: ControlPlane, config: Path, flags: Sequence[str] = (), /
    ) -> Component: ...


SCHEDULERS: dict[str, StartScheduler] = {
    "mooring": _mooring,
    "kube-scheduler": _reference,
}


def wait_until_idle(component: Component, *, at_least_s: float, most_s: float) -> bool:
    """Wait until it has had nothing to do for so long; False if it does not come to rest in time."""
    deadline = time.monotonic() + most_s
    idle_s, spent_s = 0.0, cpu_s(component)
    while idle_s < at_least_s:
        if time.monotonic() > deadline:
            return False
        time.sleep(_IDLE_LOOK_S)
        spent_before_s, spent_s = spent_s, cpu_s(component)
        is_idle = (spent_s - spent_before_s) / _IDLE_LOOK_S < _IDLE_SHARE
        idle_s = idle_s + _IDLE_LOOK_S if is_idle else 0.0
    return True


def cpu_s(component: Component) -> float:
    """Seconds of CPU that a process has spent, in its own code and in the kernel."""
    # The name of the program, in parentheses, may hold spaces.
    fields = Path(f"/proc/{_pid(component)}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK_S


def peak_mb(component: Component) -> float:
    """The most memory that was resident since its start."""
    return _memory_mb(component, "VmHWM")


def resident_mb(component: Component) -> float:
    """How much memory is resident at this moment."""
    return _memory_mb(component, "VmRSS")


def _memory_mb(component: Component, name: str) -> float:
    lines = Path(f"/proc/{_pid(component)}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) / 1e3


def _pid(component: Component) -> int:
    component.check()
    assert component.process is not None
    return component.process.pid
