"""Sweeps: many runs at once, over configurations, inputs, seeds and loads."""

from mooring.sweep.sweep import Sweep as Sweep
from mooring.sweep.sweep import run_sweep as run_sweep
