"""In-tree volumes translated to the CSI volumes that they are migrated to.

CSI drivers serve seven kinds of volumes that were once built into Kubernetes. Their objects keep
the in-tree form, so they are translated before the volumes of a driver are counted, or their
topology is compared with the labels of nodes. Only what a scheduler reads is translated: driver,
handle, node affinity and access modes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from msgspec.structs import replace

from mooring.errors import MooringError
from mooring.objects.selectors import NodeSelector, NodeSelectorTerm, SelectorRequirement
from mooring.objects.storage import (
    AzureDisk,
    CSINode,
    CSIVolumeSource,
    PersistentVolume,
    Volume,
    VolumeNodeAffinity,
    VolumeSources,
)
from mooring.objects.well_known import BETA_REGION, BETA_ZONE, REGION, ZONE

#: Separates the zones in the label of a volume in several zones.
ZONES_DELIMITER = "__"

#: An annotation of CSINode: the in-tree plugins that are migrated on this node.
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"

_EBS_VOLUME = re.compile(r"vol-[^/]*")
_MANAGED_DISK = "managed"
_UNSPECIFIED = "UNSPECIFIED"
_ZONAL_DISK = "projects/{}/zones/{}/disks/{}"
_REGIONAL_DISK = "projects/{}/regions/{}/disks/{}"


class TranslationError(MooringError):
    """A volume that has no CSI form."""


@dataclass(frozen=True, slots=True)
class InTreePlugin:
    """One of the seven kinds."""

    #: The name in CSINodes and in the provisioner of a StorageClass.
    name: str
    #: The CSI driver that serves the volumes.
    driver: str
    #: The node label in which the driver puts the zone; "" if zones are not translated.
    zone_key: str = ""
    #: Whether schedulers consider the migration enabled.
    migrated: bool = True


AWS_EBS = InTreePlugin("kubernetes.io/aws-ebs", "ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone")
GCE_PD = InTreePlugin("kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "topology.gke.io/zone")
AZURE_DISK = InTreePlugin("kubernetes.io/azure-disk", "disk.csi.azure.com")
CINDER = InTreePlugin(
    "kubernetes.io/cinder", "cinder.csi.openstack.org", "topology.cinder.csi.openstack.org/zone"
)
PORTWORX = InTreePlugin("kubernetes.io/portworx-volume", "pxd.portworx.com")
AZURE_FILE = InTreePlugin("kubernetes.io/azure-file", "file.csi.azure.com", migrated=False)
VSPHERE = InTreePlugin("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com", migrated=False)

#: By the name of the provisioner in a StorageClass.
IN_TREE_PLUGINS: dict[str, InTreePlugin] = {
    plugin.name: plugin
    for plugin in (AWS_EBS, GCE_PD, AZURE_DISK, CINDER, PORTWORX, AZURE_FILE, VSPHERE)
}


#: By the field of a volume that holds its source.
_BY_SOURCE: dict[str, InTreePlugin] = {
    "aws_elastic_block_store": AWS_EBS,
    "gce_persistent_disk": GCE_PD,
    "azure_disk": AZURE_DISK,
    "cinder": CINDER,
    "portworx_volume": PORTWORX,
    "azure_file": AZURE_FILE,
    "vsphere_volume": VSPHERE,
}
_NO_IN_TREE_SOURCE = dict.fromkeys(_BY_SOURCE)


def plugin_of(sources: VolumeSources) -> InTreePlugin | None:
    """The in-tree plugin of a volume; None if it is not migrated, like a CSI volume."""
    for field, plugin in _BY_SOURCE.items():
        if getattr(sources, field) is not None:
            return plugin
    return None


def migrated_on(plugin: InTreePlugin, csi_node: CSINode | None) -> bool:
    """Whether the plugin is migrated to its CSI driver on a node."""
    if not plugin.migrated or csi_node is None:
        return False
    # As in the reference, spaces around names are not stripped.
    return plugin.name in csi_node.metadata.annotations.get(MIGRATED_PLUGINS, "").split(",")


def seen_from(volume: PersistentVolume, csi_node: CSINode | None) -> PersistentVolume:
    """The volume in the form that a node uses, in-tree or CSI. Raises TranslationError."""
    plugin = plugin_of(volume.spec)
    if plugin is None or not migrated_on(plugin, csi_node):
        return volume
    try:
        return translate_volume(volume)
    except TranslationError as error:
        raise TranslationError(f"could not translate pv: {error}") from error


def translate_inline(volume: Volume) -> CSIVolumeSource:
    """The CSI form of a pod's own volume. Raises TranslationError."""
    plugin = plugin_of(volume)
    if plugin is None:
        raise TranslationError(
            f'could not find in-tree plugin translation logic for "{volume.name}"'
        )
    return CSIVolumeSource(driver=plugin.driver, volume_handle=_handle(volume, zones=[""]))


def translate_volume(volume: PersistentVolume) -> PersistentVolume:
    """The CSI form of a volume. Raises TranslationError."""
    plugin = plugin_of(volume.spec)
    if plugin is None:
        raise TranslationError(
            f'could not find in-tree plugin translation logic for "{volume.name}"'
        )
    labels = volume.labels
    zones = (labels.get(BETA_ZONE) or labels.get(ZONE, "")).split(ZONES_DELIMITER)
    source = CSIVolumeSource(driver=plugin.driver, volume_handle=_handle(volume.spec, zones=zones))
    changes: dict[str, object] = {"csi": source}
    if plugin.zone_key:
        changes["node_affinity"] = _translated_affinity(volume, plugin.zone_key)
    if plugin is GCE_PD:
        changes["access_modes"] = _enforceable_modes(volume.spec.access_modes)
    return replace(volume, spec=replace(volume.spec, **_NO_IN_TREE_SOURCE, **changes))


def _handle(sources: VolumeSources, *, zones: list[str]) -> str:
    """The driver's handle for the volume. Raises TranslationError."""
    if sources.aws_elastic_block_store is not None:
        return _ebs_handle(sources.aws_elastic_block_store.volume_id)
    if sources.gce_persistent_disk is not None:
        return _gce_handle(sources.gce_persistent_disk.pd_name, zones)
    if sources.azure_disk is not None:
        return _azure_handle(sources.azure_disk)
    if sources.cinder is not None:
        return sources.cinder.volume_id
    if sources.portworx_volume is not None:
        return sources.portworx_volume.volume_id
    if sources.vsphere_volume is not None:
        return sources.vsphere_volume.volume_path
    # The handle of an Azure file is never read: these volumes are not counted.
    return ""


def _ebs_handle(volume_id: str) -> str:
    """`vol-x` for `vol-x`, `aws:///vol-x` and `aws://zone/vol-x`."""
    if not volume_id.startswith("aws://"):
        return volume_id
    doing = "failed to translate Kubernetes ID to EBS Volume ID"
    try:
        handle = unquote(urlsplit(volume_id).path).strip("/")
    except ValueError as error:
        raise TranslationError(f"{doing} Invalid disk name ({volume_id}): {error}") from error
    if not _EBS_VOLUME.fullmatch(handle):
        raise TranslationError(f"{doing} Invalid format for AWS volume ({volume_id})")
    return handle


def _gce_handle(name: str, zones: list[str]) -> str:
    if len(zones) > 1:
        return _REGIONAL_DISK.format(_UNSPECIFIED, _gce_region(zones), name)
    return _ZONAL_DISK.format(_UNSPECIFIED, zones[0] or _UNSPECIFIED, name)


def _gce_region(zones: list[str]) -> str:
    """The region of the zones; a zone is a locale, a region and a letter."""
    doing = "failed to get region from zones"
    regions = set()
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != 3:
            raise TranslationError(
                f"{doing}: zone in unexpected format, expected: {{locale}}-{{region}}-{{zone}},"
                f" got: {zone}"
            )
        regions.add("-".join(parts[:2]))
    if len(regions) != 1:
        found = " ".join(f"{region}:{{}}" for region in sorted(regions))
        raise TranslationError(
            f"{doing}: multiple or no regions gotten from zones, got: map[{found}]"
        )
    return regions.pop()


def _azure_handle(disk: AzureDisk) -> str:
    if disk.kind is not None and disk.kind.lower() != _MANAGED_DISK:
        raise TranslationError(f"kind({disk.kind}) is not supported in csi migration")
    return disk.disk_uri


def _enforceable_modes(modes: list[str]) -> list[str]:
    """The access modes that the driver enforces. The in-tree plugin enforced none."""
    if not modes:
        return []
    read_only = "ReadOnlyMany" in modes
    writable = "ReadWriteMany" in modes or "ReadWriteOnce" in modes
    return ["ReadOnlyMany"] if read_only and not writable else ["ReadWriteOnce"]


def _translated_affinity(volume: PersistentVolume, zone_key: str) -> VolumeNodeAffinity | None:
    """The node affinity with the driver's zone label, from the terms or the volume's label."""
    terms = _terms_of(volume)
    zone, region = _topology_keys(volume, terms)
    if any(line.values for line in _lines_with(zone, terms)):
        terms = _renamed(terms, zone, zone_key)
    elif zone in volume.labels:
        terms = _narrowed(terms, zone_key, volume.labels[zone])
    if region == BETA_REGION and any(line.values for line in _lines_with(region, terms)):
        terms = _renamed(terms, BETA_REGION, REGION)
    if terms == _terms_of(volume):
        return volume.spec.node_affinity
    return VolumeNodeAffinity(required=NodeSelector(node_selector_terms=terms))


def _terms_of(volume: PersistentVolume) -> list[NodeSelectorTerm]:
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return []
    return affinity.required.node_selector_terms


def _topology_keys(volume: PersistentVolume, terms: list[NodeSelectorTerm]) -> tuple[str, str]:
    """The label keys for zone and region in the volume's terms or, failing that, its labels."""
    current, beta = (ZONE, REGION), (BETA_ZONE, BETA_REGION)
    for keys in (current, beta):
        if any(True for _ in _lines_with(keys[0], terms)):
            return keys
    return beta if BETA_ZONE in volume.labels and ZONE not in volume.labels else current


def _lines_with(key: str, terms: list[NodeSelectorTerm]) -> Iterator[SelectorRequirement]:
    return (line for term in terms for line in term.match_expressions if line.key == key)


def _renamed(terms: list[NodeSelectorTerm], key: str, new_key: str) -> list[NodeSelectorTerm]:
    return [
        replace(
            term,
            match_expressions=[
                replace(line, key=new_key) if line.key == key else line
                for line in term.match_expressions
            ],
        )
        for term in terms
    ]


def _narrowed(terms: list[NodeSelectorTerm], key: str, label: str) -> list[NodeSelectorTerm]:
    """The terms with the zones of the label added. Without zones, the terms do not change."""
    zones = sorted({zone.strip() for zone in label.split(ZONES_DELIMITER)} - {""})
    if not zones:
        return terms
    line = SelectorRequirement(key=key, operator="In", values=zones)
    return [
        replace(term, match_expressions=[*term.match_expressions, line])
        for term in terms or [NodeSelectorTerm()]
    ]
