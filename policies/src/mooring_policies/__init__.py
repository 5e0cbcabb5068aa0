"""Placement policies as plugins of mooring.

Each policy is a module or a folder of its own and imports only `mooring.plugin` and `mooring.objects`.
The entry points in `policies/pyproject.toml` list the names that configurations use.
"""
