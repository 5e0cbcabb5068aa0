"""What an index and a sort find, against the rule as one loop."""

from hypothesis import given
from hypothesis import strategies as st

from mooring.objects.claims import bound_to, is_accessible_from, offers_modes, storage_capacity
from mooring.objects.quantity import parse_quantity
from mooring.plugins.volume_binding.matching import Candidates
from tests.makers import make_node_term, make_selector
from tests.volume_world import make_claim, make_volume

MODES = st.lists(st.sampled_from(("ReadWriteOnce", "ReadOnlyMany")), min_size=1, unique=True)
SIZES = st.sampled_from(("1Gi", "1024Mi", "2Gi", "1G", "1500m"))
VALUES = st.lists(st.sampled_from("ab"), max_size=2, unique=True)
LINES = st.tuples(
    st.sampled_from(("zone", "host")), st.sampled_from(("In", "NotIn", "Exists")), VALUES
)
TERMS = st.builds(lambda lines: make_node_term(*lines), st.lists(LINES, max_size=2))

volumes = st.builds(
    dict,
    storage=SIZES,
    terms=st.none() | st.lists(TERMS, max_size=2),
    claim=st.sampled_from((None, None, None, "c", "d")),
    claim_uid=st.sampled_from(("", "uid-c", "other")),
    modes=MODES,
    phase=st.sampled_from(("Available", "Available", "Released")),
    labels=st.dictionaries(st.just("tier"), st.sampled_from("ab")),
    deleting=st.sampled_from((False, False, False, True)),
    volume_mode=st.sampled_from((None, "Filesystem", "Block")),
    volume_attributes_class_name=st.sampled_from((None, "", "gold")),
)
claims = st.builds(
    dict,
    storage=st.none() | SIZES,
    modes=MODES,
    selector=st.sampled_from((None, make_selector(), make_selector({"tier": "a"}))),
    volume_mode=st.sampled_from((None, "Block")),
    volume_attributes_class_name=st.sampled_from((None, "gold")),
)


def in_one_loop(claim, there, labels, chosen):
    """The rules one by one, in the order in which they are asked."""
    request = claim.spec.resources.requests.get("storage", parse_quantity("0"))
    smallest = None
    for volume in there:
        spec = volume.spec
        if volume.name in chosen:
            continue
        if spec.claim_ref is not None and not bound_to(volume, claim):
            continue
        if request.exceeds(storage_capacity(volume)):
            continue
        if (spec.volume_mode or "Filesystem") != (claim.spec.volume_mode or "Filesystem"):
            continue
        if (spec.volume_attributes_class_name or "") != (
            claim.spec.volume_attributes_class_name or ""
        ):
            continue
        if volume.terminating:
            continue
        near = is_accessible_from(volume, labels)
        if bound_to(volume, claim):
            return volume if near else None
        if volume.status.phase != "Available":
            continue
        selector = claim.spec.selector
        if selector is not None and not selector.match_labels.items() <= volume.labels.items():
            continue
        if not near or not offers_modes(volume, claim):
            continue
        if smallest is None or storage_capacity(smallest).exceeds(storage_capacity(volume)):
            smallest = volume
    return smallest


@given(
    given_claim=claims,
    given_volumes=st.lists(volumes, max_size=6),
    labels=st.dictionaries(st.sampled_from(("zone", "host")), st.sampled_from("ab")),
    chosen=st.sets(st.sampled_from(("v0", "v1", "v2"))),
)
def test_the_best_volume_is_the_one_that_the_loop_ends_with(
    given_claim, given_volumes, labels, chosen
):
    claim = make_claim("c", **given_claim)
    there = [make_volume(f"v{n}", **fields) for n, fields in enumerate(given_volumes)]

    best = Candidates(claim, there).best(labels, chosen)

    assert best is in_one_loop(claim, there, labels, chosen)
