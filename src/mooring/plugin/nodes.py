"""Nodes as columns, in detail: label columns, images, ports, and node selectors over all rows."""

from mooring.cluster.columns import ABSENT as ABSENT
from mooring.cluster.columns import Codes as Codes
from mooring.cluster.columns import ImageState as ImageState
from mooring.cluster.columns import InternedColumn as InternedColumn
from mooring.cluster.columns import LabelColumn as LabelColumn
from mooring.cluster.node_info import HostPort as HostPort
from mooring.cluster.node_matching import RequiredNodeAffinity as RequiredNodeAffinity
from mooring.cluster.node_matching import match_rows as match_rows
from mooring.cluster.node_matching import match_rows_any as match_rows_any
from mooring.cluster.node_matching import matches_any as matches_any
from mooring.cluster.node_matching import rows_named as rows_named
from mooring.cluster.row_states import StateAmounts as StateAmounts
