"""The simulated cluster of a scenario, and what steps can do to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from mooring.errors import InputError
from mooring.objects.admission import Refused
from mooring.objects.documents import Document
from mooring.objects.manifests import Manifests, ReadOptions, read_as_written
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.storage import CSINode
from mooring.sim.scenarios.drain import cordon, drain, uncordon
from mooring.sim.scenarios.expectations import Difference, Expectation
from mooring.sim.scenarios.node_choice import NodeChoice
from mooring.sim.scenarios.pod_conditions import length
from mooring.sim.scenarios.view import Subject, View
from mooring.sim.scenarios.workloads import Workloads
from mooring.sim.simulation import SimOptions, Simulation


class ScenarioCluster:
    """A simulation with controllers. Only the methods under "Time" let virtual time pass."""

    def __init__(self, options: SimOptions, folder: Path) -> None:
        self.simulation = Simulation(options)
        self.workloads = Workloads(self.simulation)
        #: The folder that file names are relative to.
        self.folder = folder
        #: Failed node → the objects to restore when it recovers.
        self._lost: dict[str, list[KubeObject]] = {}
        #: Objects of the files that the API server refused.
        self._refused: list[Refused] = []

    def close(self) -> None:
        self.simulation.close()

    @property
    def read_options(self) -> ReadOptions:
        """With the kinds that the plugins declare."""
        frameworks = self.simulation.scheduler.frameworks.values()
        kinds = (kind for framework in frameworks for kind in framework.kinds())
        return ReadOptions(kinds=tuple(dict.fromkeys(kinds)))

    @property
    def now_s(self) -> float:
        return self.simulation.clock.elapsed_s

    @property
    def view(self) -> View:
        return View(self.simulation, (*self._refused, *self.workloads.refused))

    def objects(self) -> list[KubeObject]:
        return list(self.simulation.api.all(KubeObject))

    # Time

    def settle(self) -> None:
        self.simulation.settle()

    def wait(self, until_s: float) -> None:
        self.simulation.run(until_s=until_s)

    def wait_until(self, expectation: Expectation, timeout_s: float) -> Difference | None:
        """Wait until the expectation holds; the difference if it does not in time."""

        def holds() -> bool:
            return expectation.differs(self.view) is None

        if not holds():
            self.simulation.run(until_s=self.now_s + timeout_s, stops_when=holds)
        return expectation.differs(self.view)

    # Objects

    def load(self, base: Sequence[KubeObject], manifests: Manifests) -> None:
        self._note_refused(manifests)
        self.simulation.load((*base, *manifests.objects))

    def apply(self, paths: Sequence[str], documents: Iterable[Document]) -> Manifests:
        """Raises InputError."""
        manifests = read_as_written(
            [self.folder / path for path in paths],
            options=self.read_options,
            documents=documents,
            among=self.objects(),
        )
        self._note_refused(manifests)
        objects = self.simulation.in_gangs(manifests.objects)
        for obj in sorted(objects, key=lambda obj: isinstance(obj, Pod)):
            self.workloads.apply(obj)
        return manifests

    def _note_refused(self, manifests: Manifests) -> None:
        """The pods of controllers are tried again and again; see `Workloads.refused`."""
        created = {(type(obj), obj.key) for obj in manifests.objects}
        kept = [e for e in self._refused if (type(e.object), e.object.key) not in created]
        refused = [e for e in manifests.refused if e.object.metadata.controller is None]
        self._refused = [*kept, *refused]

    def delete(self, obj: KubeObject) -> None:
        if isinstance(obj, Node):
            self.fail([obj])
            del self._lost[obj.name]
        else:
            self.workloads.delete(obj)

    def delete_pods(self, subject: Subject) -> None:
        """Raises InputError if there are none."""
        pods = self.view.subjects(subject)
        if not pods:
            raise InputError(["no such pod"])
        for pod in pods:
            self.workloads.delete(pod)

    # Nodes

    def chosen(self, choice: NodeChoice) -> list[Node]:
        return choice.among(self.simulation.api.all(Node))

    def cordon(self, choice: NodeChoice) -> None:
        for node in self.chosen(choice):
            cordon(self.simulation.api, node)

    def uncordon(self, choice: NodeChoice) -> None:
        for node in self.chosen(choice):
            uncordon(self.simulation.api, node)

    def drain(self, choice: NodeChoice) -> None:
        drain(self.simulation.api, self.chosen(choice))

    def fail(self, nodes: Sequence[Node]) -> None:
        """Remove the nodes and their pods at once."""
        api = self.simulation.api
        names = {node.name for node in nodes}
        for pod in list(api.all(Pod)):
            if pod.node_name in names:
                api.delete(pod)
        for node in nodes:
            drivers = api.get(CSINode, node.name)
            self._lost[node.name] = [node] if drivers is None else [node, drivers]
            for obj in self._lost[node.name]:
                api.delete(obj)

    def recover(self, choice: NodeChoice) -> None:
        """Raises InputError if no such node has failed."""
        lost = [obj for objects in self._lost.values() for obj in objects if isinstance(obj, Node)]
        for node in choice.among(lost):
            for obj in self._lost.pop(node.name):
                self.simulation.api.create(obj)


Action = Callable[[ScenarioCluster], Difference | None]


def waited_for(timeout_s: float, difference: Difference) -> Difference:
    """The difference when a wait times out."""
    found = f"not within {length(timeout_s)}: {difference.found}"
    return Difference(difference.expected, found, difference.pods)
