from hypothesis import given
from hypothesis import strategies as st

from mooring.cluster.listers import Index, Listers
from mooring.objects.storage import PersistentVolume, StorageClass, VolumeAttachment
from tests.volume_world import make_attachment, make_class, make_volume


def by_node(listers):
    return Index(listers, VolumeAttachment, lambda attachment: attachment.spec.node_name)


def test_followers_are_told_of_every_change_of_their_kind():
    listers, told = Listers(), []
    listers.follow(PersistentVolume, told.append)

    listers.put(make_volume("v"))
    listers.put(make_volume("v", version="2"))
    listers.put(make_class("c"))
    listers.drop(make_volume("v"))

    assert told == ["v", "v", "v"]


def test_a_follower_finds_the_object_as_it_became():
    listers, seen = Listers(), []
    listers.follow(StorageClass, lambda key: seen.append(listers.get(StorageClass, key)))
    storage_class = make_class("c")

    listers.put(storage_class)
    listers.drop(storage_class)

    assert seen == [storage_class, None]


def test_an_index_knows_what_was_there_before_it():
    listers = Listers()
    listers.put(make_attachment("a", "n1", "v"))

    assert [found.name for found in by_node(listers).under("n1")] == ["a"]


def test_nothing_is_found_under_a_value_that_nothing_has():
    assert list(by_node(Listers()).under("n1")) == []


@given(
    changes=st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from(["n1", "n2", None])), max_size=20
    )
)
def test_an_index_finds_what_a_search_through_all_finds(changes):
    """A change without a node is a deletion."""
    listers = Listers()
    index = by_node(listers)
    for name, node in changes:
        if node is None:
            listers.drop(make_attachment(name, "", None))
        else:
            listers.put(make_attachment(name, node, None))
        for value in ("n1", "n2"):
            there = [a for a in listers.all(VolumeAttachment) if a.spec.node_name == value]
            assert list(index.under(value)) == sorted(there, key=lambda each: each.key)
