"""The built-in plugins, one a module: its rule, its kernels, its queueing hints, its signature."""
