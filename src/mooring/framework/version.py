"""The version of the contract of plugins, and whether a plugin can live with it."""

from __future__ import annotations

from mooring.errors import PluginError

#: (major, minor) of `mooring.plugin`, independent of the version of mooring.
#:
#: The minor number grows when names, optional methods or optional arguments are added: a plugin that worked
#: goes on working. The major number grows when a public name is removed or renamed, when a method is called
#: with other arguments or at another time, or when an answer means something else. Public is what
#: `mooring.plugin.__all__` and the modules of `mooring.plugin` list, with the attributes and methods that
#: have no underscore. Everything else may change at any time.
VERSION = (1, 0)


def check_version(plugin: object, name: str) -> None:
    """Raises PluginError if a plugin says `requires = (major, minor)` and that is not here."""
    requires = getattr(plugin, "requires", None)
    if requires is None:
        return
    if not (isinstance(requires, tuple) and len(requires) == 2):
        raise PluginError(f"plugin {name!r}: requires must be (major, minor), not {requires!r}")
    major, minor = VERSION
    if requires[0] != major or requires[1] > minor:
        raise PluginError(
            f"plugin {name!r} requires version {requires[0]}.{requires[1]} of mooring.plugin;"
            f" this is {major}.{minor}"
        )
