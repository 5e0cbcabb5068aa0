"""The built-in plugins. A module or package for each: rule, kernels, queueing hints, signature."""
