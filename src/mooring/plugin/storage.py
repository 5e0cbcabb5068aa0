"""Volumes and claims as plugins assume them, and the part of a pod's signature for its volumes."""

from mooring.cluster.volume_cache import AssumeError as AssumeError
from mooring.cluster.volume_cache import VolumeCache as VolumeCache
from mooring.framework.volume_signature import sign_volumes as sign_volumes
