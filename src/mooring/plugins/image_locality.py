"""ImageLocality: prefer nodes that already have the pod's images.

An image counts by its size, scaled by the share of nodes that have it, so that the pods of a rare
image do not all go to one node.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mooring.objects.pod import Pod
from mooring.plugin import MAX_SCORE, Columns, CycleState, Depends, Handle, Ints, NodeInfo, Rows
from mooring.plugin.nodes import ImageState

_MB = 1024 * 1024
#: The size that scores 0, and the size for each container that gets the full score.
MIN_BYTES = 23 * _MB
MAX_BYTES_PER_CONTAINER = 1000 * _MB


class ImageLocality:
    name = "ImageLocality"

    def __init__(self, args: object, handle: Handle) -> None:
        self._cluster = handle.cluster

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """The size of the present images, scaled by their spread, as a share."""
        assert node.node is not None
        columns = self._cluster.columns
        here = {name for image in node.node.status.images for name in image.names}
        present = sum(
            _spread_bytes(columns.images[image], columns.count)
            for image in _images(pod)
            if image in here
        )
        highest = MAX_BYTES_PER_CONTAINER * _container_count(pod)
        if present < MIN_BYTES:
            present = MIN_BYTES
        elif present > highest:
            present = highest
        return MAX_SCORE * (present - MIN_BYTES) // (highest - MIN_BYTES)

    def score_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> Ints:
        present = np.zeros(columns.size, np.int64)
        for name in _images(pod):
            image = columns.images.get(name)
            if image is not None:
                present[image.index] += _spread_bytes(image, columns.count)
        return _share(present[rows], MAX_BYTES_PER_CONTAINER * _container_count(pod))

    def depends_on(self, pod: Pod) -> Depends:
        return Depends.NODES

    def sign(self, pod: Pod) -> Mapping[str, object]:
        """All that the score reads.

        The reference signs the distinct images of containers, though an image that is used twice
        counts twice, and image volumes count too.
        """
        images = tuple(sorted(_images(pod)))
        return {"v1.Pod.Spec.CanonicalImageNames()": (images, _container_count(pod))}

    def sign_here(self, pod: Pod) -> Mapping[str, object]:
        """Only the images that nodes have: another one adds nothing on any node.

        Nearly every workload has an image of its own, which no node has when its first pod comes.
        """
        known = self._cluster.columns.images
        images = tuple(sorted([image for image in _images(pod) if image in known]))
        count = _container_count(pod) if images else 0
        return {"v1.Pod.Spec.CanonicalImageNames()": (images, count)}

    def sign_version(self) -> int:
        return self._cluster.columns.image_epoch

    def nodes_version(self) -> int:
        """The share of nodes that have an image counts on each of them."""
        return self._cluster.columns.image_spread_epoch


def _images(pod: Pod) -> list[str]:
    """Every image of the pod, as often as the pod uses it."""
    spec = pod.spec
    containers = (
        [*spec.init_containers, *spec.containers] if spec.init_containers else spec.containers
    )
    images = [_with_tag(container.image) for container in containers]
    if spec.volumes:
        images += [_with_tag(v.image.reference) for v in spec.volumes if v.image is not None]
    return images


def _with_tag(image: str) -> str:
    """The image name as nodes list it: `latest` if it has no tag or digest."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


def _spread_bytes(image: ImageState, nodes: int) -> int:
    """The size scaled by the share of nodes, in the reference's order of operations."""
    spread = float(len(image.rows)) / float(nodes)
    return int(float(image.size_bytes) * spread)


def _container_count(pod: Pod) -> int:
    """The number of containers; image volumes do not raise the size for the full score."""
    return len(pod.spec.init_containers) + len(pod.spec.containers)


def _share(present: Ints, highest: int) -> Ints:
    """Score each row by its position between MIN_BYTES and `highest`, 0..100.

    ``100 * (present - MIN_BYTES) // (highest - MIN_BYTES)`` with `present` clamped to this range.
    Neither difference can be negative without the other, so rounding down truncates.

    present
        ``int64[row]``.
    """
    share = np.where(present < MIN_BYTES, MIN_BYTES, np.minimum(present, highest))
    np.subtract(share, MIN_BYTES, out=share)
    np.multiply(share, MAX_SCORE, out=share)
    np.floor_divide(share, highest - MIN_BYTES, out=share)
    return share
