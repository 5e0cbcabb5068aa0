"""A Kubernetes control plane on this machine's loopback interface: etcd, kube-apiserver, and more if asked.

For tests, and for anyone who wants an API server and has no cluster. There are no kubelets: a node is an
object that somebody creates, and a pod that is bound to it stays as it is. Everything a control plane
writes is in one folder; `stop` ends every process and, where the folder is the control plane's own,
removes it.

    with ControlPlane() as control_plane:
        control_plane.client().create(...)                # as the administrator
        subprocess.run(["mooring", "run", "--kubeconfig", control_plane.kubeconfig(MOORING)])

`python tools/control-plane/control_plane.py up` does the same by hand. The binaries come from
`make control-plane`.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from plain_client import ApiFailure, PlainClient

HERE = Path(__file__).parent
HOST = "127.0.0.1"

#: What `make control-plane` builds.
BINARIES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")

#: Reading logs and data that were just written can take long on a busy machine; nothing waits for ever.
START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 20.0

#: The kernel ends a component whose parent died without stopping it, so that not even a killed test run
#: leaves processes behind. (It watches the thread that started the component: let that be one that stays.)
DIE_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL") if shutil.which("setpriv") else ()


@dataclass(frozen=True)
class User:
    """A user that the API server knows by a token."""

    name: str
    groups: tuple[str, ...] = ()


#: May do everything.
ADMIN = User("admin", ("system:masters",))
#: The service account of `deploy/`; may do what the roles there allow, once they are applied.
MOORING = User(
    "system:serviceaccount:kube-system:mooring",
    ("system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"),
)
#: May do what the API server's own roles allow a kube-scheduler.
KUBE_SCHEDULER = User("system:kube-scheduler", ("system:authenticated",))

USERS = (ADMIN, MOORING, KUBE_SCHEDULER)

#: TaintNodesByCondition taints each new node as not ready, until a kubelet says otherwise; ServiceAccount
#: wants an account in the namespace of each new pod, and nobody makes them; StorageObjectInUseProtection
#: keeps a volume from being deleted until a controller agrees.
DISABLED_ADMISSION = "TaintNodesByCondition,ServiceAccount,StorageObjectInUseProtection"

#: Who bound, evicted or deleted which pod, and what the API server answered.
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {
            "level": "Metadata",
            "verbs": ["create"],
            "resources": [{"group": "", "resources": ["pods/binding", "pods/eviction"]}],
        },
        {
            "level": "Metadata",
            "verbs": ["delete"],
            "resources": [{"group": "", "resources": ["pods"]}],
        },
        {"level": "None"},
    ],
}


class ControlPlaneError(Exception):
    """The control plane cannot be had: which part of it, why, and what to do."""


@dataclass(frozen=True)
class Binaries:
    """Where each binary of the control plane is."""

    paths: dict[str, Path]

    @classmethod
    def find(cls) -> Binaries:
        """Look where envtest puts them, then where `make control-plane` does."""
        folders = [build_folder()]
        if assets := os.environ.get("KUBEBUILDER_ASSETS"):
            folders.insert(0, Path(assets))
        paths = {}
        for name in BINARIES:
            found = [folder / name for folder in folders if os.access(folder / name, os.X_OK)]
            if not found:
                looked = " or ".join(str(folder) for folder in folders)
                raise ControlPlaneError(f"no {name} in {looked}; run `make control-plane`")
            paths[name] = found[0]
        return cls(paths)

    def __getitem__(self, name: str) -> Path:
        return self.paths[name]


def version() -> str:
    """The version of Kubernetes that `make control-plane` builds, as in ``v1.2.3``."""
    found = re.search(r"k8s\.io/kubernetes (v[0-9.]+)", (HERE / "go.mod").read_text())
    if found is None:
        raise ControlPlaneError(f"{HERE / 'go.mod'} names no version of k8s.io/kubernetes")
    return found[1]


def build_folder() -> Path:
    """Where `make control-plane` puts the binaries; `build.sh` has the same rule."""
    if folder := os.environ.get("MOORING_CONTROL_PLANE"):
        return Path(folder)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "mooring" / "control-plane" / version()


@dataclass
class Component:
    """One process of the control plane, which can be ended and started again."""

    name: str
    command: Sequence[str | Path]
    log: Path
    #: None: as this process.
    environment: dict[str, str] | None = None
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        if self.running:
            raise ControlPlaneError(f"{self.name} is running already")
        with self.log.open("ab") as log:
            # A group of its own: Ctrl-C in the terminal is for whoever started the control plane, who
            # then stops the components in order.
            self.process = subprocess.Popen(
                [*DIE_WITH_PARENT, *self.command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,
                env=self.environment,
            )

    def kill(self) -> None:
        """End it as a crash would (SIGKILL)."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Ask it to end (SIGTERM), and end it if it does not."""
        self._end(signal.SIGTERM)

    def pause(self) -> None:
        """Hold it still (SIGSTOP), as a machine does that has no time for it."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def check(self) -> None:
        """Raise, with the end of its log, if it is not running."""
        if not self.running:
            raise ControlPlaneError(f"{self.name} ended; its log ends with\n{tail(self.log)}")

    def _signal(self, number: signal.Signals) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def _end(self, number: signal.Signals) -> None:
        if self.process is None:
            return
        self._signal(number)
        try:
            self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class ControlPlane:
    """etcd and kube-apiserver, on free ports of the loopback interface.

    With a `folder`, what is in it is used again and stays there; without, a folder is made for the time
    that the control plane runs. `audit_policy` says which requests `audited` tells of. `gates` are switched
    on in every component (or off, as `Gate=false`), and `apis` (as `scheduling.k8s.io/v1alpha2`) are served
    beside the usual ones.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        binaries: Binaries | None = None,
        audit_policy: Mapping[str, Any] = AUDIT_POLICY,
        gates: Sequence[str] = (),
        apis: Sequence[str] = (),
    ) -> None:
        self.binaries = binaries or Binaries.find()
        named = ",".join(gate if "=" in gate else f"{gate}=true" for gate in gates)
        self._gates = [f"--feature-gates={named}"] * bool(gates)
        self._apis = [f"--runtime-config={','.join(f'{api}=true' for api in apis)}"] * bool(apis)
        self._audit_policy = audit_policy
        self._owns_folder = folder is None
        self.folder = folder or Path(tempfile.mkdtemp(prefix="control-plane-"))
        self.folder.mkdir(parents=True, exist_ok=True)
        self._tokens = {user: secrets.token_hex(16) for user in USERS}
        self._etcd_port, etcd_peer_port, self._api_port = free_ports(3)
        self._write_files()
        self.etcd = self._component("etcd", self._etcd_arguments(etcd_peer_port))
        self.api_server = self._component("kube-apiserver", self._api_server_arguments())
        self._others: list[Component] = []

    @property
    def url(self) -> str:
        return f"https://{HOST}:{self._api_port}"

    @property
    def ca_file(self) -> Path:
        """What verifies the API server: the certificate that it made at its first start, and its CA's."""
        return self.folder / "certificates" / "apiserver.crt"

    @property
    def audit_log(self) -> Path:
        return self.folder / "audit.log"

    def __enter__(self) -> ControlPlane:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start etcd and the API server, and wait until they serve."""
        try:
            self.etcd.start()
            self._wait_for(self.etcd, f"http://{HOST}:{self._etcd_port}/readyz")
            self.start_api_server()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End every process; remove the folder if it was made here."""
        for component in [*reversed(self._others), self.api_server, self.etcd]:
            component.resume()
            # What nobody will read need not be put in order.
            if self._owns_folder:
                component.kill()
            else:
                component.stop()
        if self._owns_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def start_api_server(self) -> None:
        """Start it (again, on the same port and with the same data) and wait until it is ready."""
        self.api_server.start()
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._is_ready():
            self.api_server.check()
            if time.monotonic() > deadline:
                log = tail(self.api_server.log)
                raise ControlPlaneError(f"kube-apiserver is not ready; its log ends with\n{log}")
            time.sleep(0.05)

    def restart_api_server(self) -> None:
        """Kill the API server and start it again; its watch cache begins at this moment."""
        self.api_server.kill()
        self.start_api_server()

    def start_controllers(self, *names: str) -> Component:
        """Start kube-controller-manager with these controllers alone."""
        component = self._component(
            "kube-controller-manager",
            [
                f"--kubeconfig={self.kubeconfig()}",
                f"--controllers={','.join(names)}",
                "--leader-elect=false",
                "--secure-port=0",
                "--pvclaimbinder-sync-period=1s",
                "--kube-api-qps=1000",
                "--kube-api-burst=1000",
                *self._gates,
            ],
        )
        return self._start_beside(component)

    def start_scheduler(self, config: Path | None = None) -> Component:
        """Start a kube-scheduler; `config` must name the kubeconfig itself (clientConnection)."""
        if config is None:
            kubeconfig = self.kubeconfig(KUBE_SCHEDULER)
            arguments = [f"--kubeconfig={kubeconfig}", "--leader-elect=false"]
        else:
            arguments = [f"--config={config}"]
        arguments += ["--secure-port=0", *self._gates]
        return self._start_beside(self._component("kube-scheduler", arguments))

    def client(self, user: User = ADMIN) -> PlainClient:
        return PlainClient(self.url, token=self.token(user), ca_file=self.ca_file)

    def token(self, user: User) -> str:
        return self._tokens[user]

    def kubeconfig(self, user: User = ADMIN, *, server: str | None = None) -> Path:
        """Write a kubeconfig for the user, and say where it is.

        `server` names another address under which the API server is reached (a proxy's).
        """
        context = user.name.rpartition(":")[2]
        port = (server or self.url).rpartition(":")[2]
        path = self.folder / f"{context}-{port}.kubeconfig"
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": context,
            "contexts": [{"name": context, "context": {"cluster": "here", "user": context}}],
            "users": [{"name": context, "user": {"token": self.token(user)}}],
            "clusters": [
                {
                    "name": "here",
                    "cluster": {
                        "server": server or self.url,
                        "certificate-authority": str(self.ca_file.absolute()),
                    },
                }
            ],
        }
        # JSON is YAML. One that is there may be being read.
        text = json.dumps(document, indent=2) + "\n"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
        return path

    def kubectl(self, *arguments: str | Path, user: User = ADMIN) -> str:
        """Run kubectl and return what it prints."""
        command = [self.binaries["kubectl"], f"--kubeconfig={self.kubeconfig(user)}", *arguments]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            words = " ".join(str(argument) for argument in arguments)
            raise ControlPlaneError(f"kubectl {words}: {done.stderr.strip()}")
        return done.stdout

    def compact(self) -> int:
        """Make etcd forget every revision but the last, and return that one.

        A watch from an older one can no longer be served from etcd; the API server may still have the
        events in its watch cache, which a restart empties.
        """
        revision = int(self._ask_etcd("range", {"key": _encoded("x")})["header"]["revision"])
        self._ask_etcd("compaction", {"revision": revision, "physical": True})
        return revision

    def audit_position(self) -> int:
        """Where the audit log ends now, for `audited`."""
        return self.audit_log.stat().st_size if self.audit_log.exists() else 0

    def audited(self, since: int = 0) -> Iterator[dict[str, Any]]:
        """Every answer that the audit policy asks for since a position of the log.

        By default: to a bind, an eviction or a deletion of a pod.
        """
        if not self.audit_log.exists():
            return
        with self.audit_log.open("rb") as lines:
            lines.seek(since)
            for line in lines:
                # The last one may be half written.
                if line.endswith(b"}\n"):
                    yield json.loads(line)

    def _component(self, name: str, arguments: Sequence[str]) -> Component:
        return Component(name, [self.binaries[name], *arguments], self.folder / f"{name}.log")

    def _start_beside(self, component: Component) -> Component:
        self._others = [*(other for other in self._others if other.running), component]
        component.start()
        return component

    def _write_files(self) -> None:
        lines = [
            f"{self.token(user)},{user.name},{user.name},{json.dumps(','.join(user.groups))}\n"
            for user in USERS
        ]
        (self.folder / "tokens.csv").write_text("".join(lines))
        (self.folder / "audit-policy.json").write_text(json.dumps(self._audit_policy))
        key = self.folder / "service-account.key"
        if not key.exists():
            key.write_text(_private_key())

    def _etcd_arguments(self, peer_port: int) -> list[str]:
        client, peer = f"http://{HOST}:{self._etcd_port}", f"http://{HOST}:{peer_port}"
        return [
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            # What is kept for the length of a test need not survive a power cut.
            "--unsafe-no-fsync",
            "--quota-backend-bytes=8589934592",
            "--log-level=warn",
        ]

    def _api_server_arguments(self) -> list[str]:
        key = self.folder / "service-account.key"
        return [
            f"--etcd-servers=http://{HOST}:{self._etcd_port}",
            # History goes when `compact` says so.
            "--etcd-compaction-interval=0",
            f"--bind-address={HOST}",
            f"--advertise-address={HOST}",
            f"--secure-port={self._api_port}",
            f"--cert-dir={self.ca_file.parent}",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-signing-key-file={key}",
            f"--service-account-key-file={key}",
            "--service-cluster-ip-range=10.0.0.0/24",
            f"--disable-admission-plugins={DISABLED_ADMISSION}",
            # The test decides which clients it slows down.
            "--enable-priority-and-fairness=false",
            "--max-requests-inflight=10000",
            "--max-mutating-requests-inflight=10000",
            f"--audit-policy-file={self.folder / 'audit-policy.json'}",
            f"--audit-log-path={self.audit_log}",
            # In megabytes. A position in the log is one in this file, so it must not be rotated.
            "--audit-log-maxsize=10000",
            "--shutdown-delay-duration=0s",
            *self._gates,
            *self._apis,
        ]

    def _is_ready(self) -> bool:
        if not self.ca_file.exists():
            return False
        try:
            with self.client() as client:
                client.read("/readyz")
                # Readiness comes before the default objects of the cluster.
                client.request("GET", "/api/v1/namespaces/default")
        except (ApiFailure, OSError):
            return False
        return True

    def _wait_for(self, component: Component, url: str) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            component.check()
            try:
                with urllib.request.urlopen(url, timeout=5):
                    return
            except OSError as error:
                if time.monotonic() > deadline:
                    log = tail(component.log)
                    raise ControlPlaneError(
                        f"{component.name} is not ready: {error}; its log ends with\n{log}"
                    ) from error
            time.sleep(0.05)

    def _ask_etcd(self, what: str, body: dict[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(
            f"http://{HOST}:{self._etcd_port}/v3/kv/{what}",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                decoded: dict[str, Any] = json.load(answer)
                return decoded
        except urllib.error.HTTPError as error:
            raise ControlPlaneError(f"etcd {what}: {error.read().decode()}") from error


def free_ports(count: int) -> list[int]:
    """Ports that nobody uses at this moment."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind((HOST, 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def tail(log: Path, lines: int = 20) -> str:
    """The last lines of a log."""
    text = log.read_text(errors="replace") if log.exists() else ""
    return "\n".join(text.splitlines()[-lines:])


def _private_key() -> str:
    """A key that signs service account tokens: P-256 as in RFC 5915, without the optional public part."""
    key = bytes.fromhex("30310201010420") + secrets.token_bytes(32)
    der = base64.encodebytes(key + bytes.fromhex("a00a06082a8648ce3d030107")).decode()
    return f"-----BEGIN EC PRIVATE KEY-----\n{der}-----END EC PRIVATE KEY-----\n"


def _encoded(key: str) -> str:
    return base64.b64encode(key.encode()).decode()


def main() -> None:
    parser = argparse.ArgumentParser(description="Run a Kubernetes control plane on this machine.")
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="start one, print its kubeconfig, run until Ctrl-C")
    up.add_argument("--dir", type=Path, help="keep its data here (default: nowhere)")
    up.add_argument(
        "--controllers",
        default="",
        metavar="NAME,…",
        help="also run kube-controller-manager with these controllers",
    )
    up.add_argument("--scheduler", action="store_true", help="also run kube-scheduler")
    options = parser.parse_args()

    # SIGTERM, too, must stop what was started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with ControlPlane(options.dir) as control_plane:
            if options.controllers:
                control_plane.start_controllers(*options.controllers.split(","))
            if options.scheduler:
                control_plane.start_scheduler()
            print(control_plane.kubeconfig(), flush=True)
            signal.pause()
    except KeyboardInterrupt:
        pass
    except ControlPlaneError as error:
        raise SystemExit(f"error: {error}") from error


if __name__ == "__main__":
    main()
