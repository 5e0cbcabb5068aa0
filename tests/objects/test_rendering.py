"""Kustomizations and charts are rendered by a program on the PATH, or not read at all."""

import json
import stat

import pytest

from mooring.errors import InputError
from mooring.objects.manifests import ReadOptions, read_manifests

POD = json.dumps(
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "raw"},
        "spec": {"containers": [{"name": "c"}]},
    }
)
#: Tests of a chart are not installed, and charts ask for the version of Kubernetes.
FLAGS = "--skip-tests --kube-version 1.36.4"


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """The PATH has only what a test puts there."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def add(name, script):
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    return add


@pytest.fixture
def folder(tmp_path):
    def write(*names, text=POD):
        for name in names:
            path = tmp_path / "files" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text if not name.endswith(("kustomization.yaml", "Chart.yaml")) else "")
        return tmp_path / "files"

    return write


def problem(path, **options):
    with pytest.raises(InputError) as error:
        read_manifests([path], options=ReadOptions(**options))
    (line,) = error.value.problems
    return line


def echoing(name="$2"):
    """A program that makes a pod named by its argument."""
    return (
        f'n=$(echo "{name}" | /usr/bin/tr / - | /usr/bin/tr -d _. | /usr/bin/tail -c 20 | /bin/sed s/^-*//)\n'
        + (
            'echo "{apiVersion: v1, kind: Pod, metadata: {name: r$n}, spec: {containers: [{name: c}]}}"'
        )
    )


@pytest.mark.parametrize(
    ("program", "shown"), [("kubectl", "kubectl kustomize"), ("kustomize", "kustomize build")]
)
def test_a_kustomization_is_rendered_and_never_read_raw(programs, folder, program, shown):
    programs(program, echoing())
    path = folder("kustomization.yaml", "pod.yaml")

    manifests = read_manifests([path])

    (pod,) = manifests.pods
    assert pod.name.endswith("files")
    assert manifests.notes == [f"{path}: rendered with `{shown} {path}`"]


def test_without_a_program_a_kustomization_is_one_line_with_the_command(programs, folder):
    path = folder("kustomization.yaml", "pod.yaml", "more/pod.yaml")

    assert problem(path) == (
        f"{path}: has a kustomization, and neither kubectl nor kustomize is on the PATH; "
        f"render it first: kubectl kustomize {path} | mooring simulate -, "
        "or leave it out with --exclude"
    )


def test_a_chart_is_rendered(programs, folder):
    given = f'[ "$1 $2 $4 $5 $6" = "template web {FLAGS}" ] || exit 3\n'
    programs("helm", given + echoing("$3"))
    path = folder("web/Chart.yaml", "web/templates/pod.yaml", "web/values.yaml", "pod.yaml")

    manifests = read_manifests([path])

    assert manifests.pods[0].name == "raw"
    assert len(manifests.pods) == 2
    assert manifests.notes == [f"{path}/web: rendered with `helm template web {path}/web {FLAGS}`"]


def test_hooks_that_helm_install_does_not_run_make_no_pods(programs, folder):
    """Jobs of upgrades and deletions were placed beside the chart's own pods."""
    hooks = {
        "plain": "",
        "install": "pre-install,post-upgrade",
        "upgrade": "pre-upgrade, post-upgrade",
        "uninstall": "pre-delete",
    }
    lines = "".join(
        f"---\n# {name}\n"
        f"{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, "
        f'annotations: {{"helm.sh/hook": "{hook}"}}}}, spec: {{containers: [{{name: c}}]}}}}\n'
        if hook
        else POD.replace("raw", name) + "\n"
        for name, hook in hooks.items()
    )
    path = folder("web/Chart.yaml")
    (path / "rendered.txt").write_text(lines)
    programs("helm", f"/bin/cat {path}/rendered.txt")

    manifests = read_manifests([path / "web"])

    assert [pod.name for pod in manifests.pods] == ["plain", "install"]
    assert f"{path}/web: 2 hooks of upgrades or deletions left out" in manifests.notes


def test_without_helm_a_chart_is_one_line_with_the_command(programs, folder):
    path = folder("web/Chart.yaml", *(f"web/templates/{n}.yaml" for n in range(50)))

    assert problem(path / "web") == (
        f"{path}/web: is a Helm chart, and helm is not on the PATH; render it first: "
        f"helm template web {path}/web {FLAGS} | mooring simulate -, or leave it out with --exclude"
    )


def test_what_another_kustomization_includes_is_not_rendered_alone(programs, folder):
    programs("kubectl", echoing())
    path = folder(
        "base/kustomization.yaml",
        "base/pod.yaml",
        "parts/kustomization.yaml",
        "prod/kustomization.yaml",
        "other/pod.yaml",
    )
    (path / "parts/kustomization.yaml").write_text("kind: Component\n")
    (path / "prod/kustomization.yaml").write_text("resources: [../base]\n")

    manifests = read_manifests([path])

    assert manifests.notes == [f"{path}/prod: rendered with `kubectl kustomize {path}/prod`"]
    assert [pod.name for pod in manifests.pods if pod.name == "raw"] == ["raw"]


def test_many_kustomizations_without_a_program_are_one_line(programs, folder):
    path = folder("a/kustomization.yaml", "b/kustomization.yaml", "pod.yaml")

    line = problem(path)

    assert line.startswith(f"2 folders have a kustomization ({path}/a, {path}/b), and neither")


def test_an_excluded_kustomization_needs_no_program(programs, folder):
    path = folder("a/kustomization.yaml", "pod.yaml")

    manifests = read_manifests([path], options=ReadOptions(exclude=("a",)))

    assert [pod.name for pod in manifests.pods] == ["raw"]


@pytest.mark.parametrize(
    ("said", "flag"),
    [
        (
            "trouble configuring HelmChartInflationGenerator: must specify --enable-helm",
            "--enable-helm",
        ),
        (
            "security; file '/a/namespace.yaml' is not in or below '/a/default'",
            "--load-restrictor LoadRestrictionsNone",
        ),
    ],
)
def test_a_kustomization_that_needs_leave_is_told_with_the_flag(programs, folder, said, flag):
    programs("kubectl", f'echo "{said}" >&2; exit 1')
    path = folder("kustomization.yaml")

    assert problem(path) == (
        f"{path}: `kubectl kustomize {path}` failed: {said}; render it first: "
        f"kubectl kustomize {path} {flag} | mooring simulate -, or leave it out with --exclude"
    )


def test_a_program_that_fails_is_told_with_what_it_said(programs, folder):
    programs("kubectl", 'echo "no such base" >&2; exit 1')
    path = folder("kustomization.yaml")

    assert problem(path) == (
        f"{path}: `kubectl kustomize {path}` failed: no such base; "
        "correct it, or leave it out with --exclude"
    )


def test_what_was_rendered_and_is_a_template_is_rendered_before_it_is_filled_in(programs, folder):
    programs("kubectl", f"echo '{POD.replace('raw', '${NAME}')}'")
    path = folder("kustomization.yaml")

    assert problem(path) == (
        f"{path}: is a template, as '${{NAME}}' shows; "
        f"fill it in first: kubectl kustomize {path} | envsubst | mooring simulate -"
    )


def test_a_chart_is_rendered_before_it_is_filled_in(programs, folder):
    programs("helm", f"echo '{POD.replace('raw', '${NAME}')}'")
    path = folder("shop/Chart.yaml") / "shop"

    assert problem(path) == (
        f"{path}: is a template, as '${{NAME}}' shows; "
        f"fill it in first: helm template shop {path} {FLAGS} | envsubst | mooring simulate -"
    )


def test_a_library_chart_makes_nothing(programs, folder):
    path = folder("lib/Chart.yaml", "pod.yaml")
    (path / "lib/Chart.yaml").write_text("apiVersion: v2\ntype: library\n")

    assert [pod.name for pod in read_manifests([path]).pods] == ["raw"]
