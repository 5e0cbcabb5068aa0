"""Resource claims as plugins assume them, device classes, and the devices that nodes have left."""

from mooring.cluster.claim_cache import ClaimCache as ClaimCache
from mooring.cluster.claim_cache import UnknownClaimError as UnknownClaimError
from mooring.cluster.device_classes import DEVICE_CLASS_PREFIX as DEVICE_CLASS_PREFIX
from mooring.cluster.device_classes import DeviceClassNames as DeviceClassNames
from mooring.cluster.device_classes import is_counted as is_counted
from mooring.cluster.device_counts import DeviceCounts as DeviceCounts
