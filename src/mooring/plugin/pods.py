"""Counts over pods that the engine keeps up to date: by selector, by affinity term, by topology domain."""

from mooring.cluster.affinity_terms import HeldTerm as HeldTerm
from mooring.cluster.affinity_terms import TermKind as TermKind
from mooring.cluster.deduced_selectors import DeducedSelectors as DeducedSelectors
from mooring.cluster.pod_counts import MOST_COUNTERS as MOST_COUNTERS
from mooring.cluster.pod_counts import PodQuery as PodQuery
from mooring.cluster.pod_counts import look_up as look_up
from mooring.cluster.row_counts import DomainCounts as DomainCounts
from mooring.cluster.row_counts import RowCounts as RowCounts
from mooring.cluster.row_counts import by_domain as by_domain
from mooring.cluster.row_counts import domains_among as domains_among
from mooring.cluster.topology_index import Terms as Terms
from mooring.cluster.topology_index import TopologyIndex as TopologyIndex
