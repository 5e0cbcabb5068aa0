"""Resource claims as plugins assume them, device classes, what nodes have left, and the allocator."""

from mooring.cluster.claim_cache import ClaimCache as ClaimCache
from mooring.cluster.claim_cache import UnknownClaimError as UnknownClaimError
from mooring.cluster.device_classes import DEVICE_CLASS_PREFIX as DEVICE_CLASS_PREFIX
from mooring.cluster.device_classes import DeviceClassNames as DeviceClassNames
from mooring.cluster.device_classes import is_counted as is_counted
from mooring.cluster.device_counts import DeviceCounts as DeviceCounts
from mooring.devices.allocated import AllocatedDevices as AllocatedDevices
from mooring.devices.allocated import PoolID as PoolID
from mooring.devices.allocator import AllocationTimeout as AllocationTimeout
from mooring.devices.allocator import Allocator as Allocator
from mooring.devices.allocator import NodeOnlyError as NodeOnlyError
from mooring.devices.double_booking import double_booked as double_booked
from mooring.devices.step_limit import after_steps_of as after_steps_of
