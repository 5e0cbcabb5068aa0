import pytest

from mooring.objects.claims import (
    CLASS_ANNOTATION,
    allows_topology,
    bound_to,
    claim_name,
    class_of_claim,
    class_of_volume,
    fully_bound,
    is_accessible_from,
    offers_modes,
    ownership_problem,
    same_volume_mode,
    uses_claim,
)
from mooring.objects.storage import EphemeralVolumeSource, Volume
from tests.makers import make_claim_volume, make_node_term
from tests.volume_world import make_claim, make_class, make_ephemeral, make_volume, pod_with

ANNOTATED = {CLASS_ANNOTATION: "annotated"}
EMPTY = {CLASS_ANNOTATION: ""}


@pytest.mark.parametrize(
    ("annotations", "in_spec", "expected"),
    [
        ({}, "spec", "spec"),
        (ANNOTATED, "spec", "annotated"),
        pytest.param(EMPTY, "spec", "", id="even an empty annotation counts"),
    ],
)
def test_an_annotation_says_the_class_before_the_spec_does(annotations, in_spec, expected):
    assert class_of_claim(make_claim(storage_class=in_spec, annotations=annotations)) == expected
    assert class_of_volume(make_volume(storage_class=in_spec, annotations=annotations)) == expected


def test_a_claim_without_any_class_has_the_empty_one():
    assert class_of_claim(make_claim(storage_class=None)) == ""


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        (make_claim(volume="v", bound=True), True),
        pytest.param(make_claim(volume="v", phase="Bound"), False, id="the phase says nothing"),
        pytest.param(make_claim(bound=True), False, id="no volume"),
    ],
)
def test_a_claim_is_bound_when_the_controller_has_completed_it(claim, expected):
    assert fully_bound(claim) == expected


def test_an_ephemeral_volume_has_a_claim_of_its_own_name():
    pod = pod_with(name="p")

    assert claim_name(pod, make_ephemeral("data")) == "p-data"
    assert claim_name(pod, make_claim_volume("c")) == "c"
    assert claim_name(pod, Volume(name="other")) is None


@pytest.mark.parametrize(
    ("claim", "used"),
    [
        (make_claim("c"), True),
        (make_claim("p-data"), True),
        (make_claim("other"), False),
        pytest.param(make_claim("c", namespace="other"), False, id="of another namespace"),
    ],
)
def test_a_pod_uses_the_claims_it_names_and_those_of_its_ephemeral_volumes(claim, used):
    pod = pod_with("c", volumes=[Volume(name="data", ephemeral=EphemeralVolumeSource())])

    assert uses_claim(pod, claim) == used


def test_the_claim_of_an_ephemeral_volume_belongs_to_its_pod():
    pod, namesake = pod_with(name="p"), pod_with(name="p", uid="another")

    assert ownership_problem(pod, make_claim("p-data", owner=pod)) is None
    for claim in (make_claim("p-data"), make_claim("p-data", owner=namesake)):
        assert ownership_problem(pod, claim) == (
            "PVC ns/p-data was not created for pod ns/p (pod is not owner)"
        )


@pytest.mark.parametrize(
    ("volume", "expected"),
    [
        (make_volume(), False),
        (make_volume(claim="c"), True),
        (make_volume(claim="c", claim_uid="uid-c"), True),
        pytest.param(make_volume(claim="c", claim_uid="other"), False, id="a claim before it"),
        (make_volume(claim="d"), False),
    ],
)
def test_a_volume_is_bound_to_the_claim_it_refers_to(volume, expected):
    assert bound_to(volume, make_claim("c")) == expected


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        pytest.param(None, True, id="no affinity"),
        pytest.param([], False, id="no terms"),
        pytest.param([make_node_term()], False, id="an empty term"),
        ([make_node_term(("zone", "In", ["a"]))], True),
        ([make_node_term(("zone", "In", ["b"]))], False),
        pytest.param(
            [make_node_term(("zone", "In", ["b"])), make_node_term(("zone", "In", ["a"]))],
            True,
            id="any term will do",
        ),
        pytest.param(
            [make_node_term(("zone", "Bad", ["a"]))], False, id="a malformed term never matches"
        ),
        pytest.param(
            [make_node_term(fields=[("metadata.name", "In", ["other"])])],
            True,
            id="what is said of names is passed over",
        ),
    ],
)
def test_a_volume_is_within_reach_by_the_labels_of_a_node(terms, expected):
    assert is_accessible_from(make_volume(terms=terms), {"zone": "a"}) == expected


@pytest.mark.parametrize(
    ("asked", "offered", "expected"),
    [
        (["ReadWriteOnce"], ["ReadWriteOnce", "ReadOnlyMany"], True),
        (["ReadWriteOnce", "ReadOnlyMany"], ["ReadWriteOnce"], False),
        ([], [], True),
    ],
)
def test_every_access_mode_asked_for_must_be_offered(asked, offered, expected):
    assert offers_modes(make_volume(modes=offered), make_claim(modes=asked)) == expected


def test_a_volume_mode_that_is_not_given_is_filesystem():
    assert same_volume_mode(make_volume(), make_claim(volume_mode="Filesystem"))
    assert not same_volume_mode(make_volume(volume_mode="Block"), make_claim())


@pytest.mark.parametrize(
    ("topologies", "expected"),
    [
        ([], True),
        pytest.param([{}], False, id="a term without expressions"),
        ([{"zone": ["a", "b"]}], True),
        ([{"zone": ["b"]}], False),
        ([{"zone": ["a"], "rack": ["1"]}], False),
        ([{"zone": ["b"]}, {"zone": ["a"]}], True),
        pytest.param([{"zone": []}], False, id="an expression without values"),
        pytest.param([{"zone": ["a", "not a value"]}], False, id="a malformed term"),
    ],
)
def test_a_class_allows_nodes_by_any_of_its_terms(topologies, expected):
    assert allows_topology(make_class(topologies=topologies), {"zone": "a"}) == expected
