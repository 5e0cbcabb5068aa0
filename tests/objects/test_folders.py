"""Folders as people have them: foreign files, duplicates, templates, links, compressed files."""

import gzip
import io
import json
import os

import pytest

from mooring.errors import InputError
from mooring.objects.manifests import ReadOptions, read_manifests
from tests.unlistable import make_unlistable

FLAGS = "--skip-tests --kube-version 1.36.4"
DASHBOARD = json.dumps({"title": "Pods", "panels": [{"id": 1}], "schemaVersion": 30})


def pod(name, cpu="1", **metadata):
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, **metadata},
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]},
        }
    )


@pytest.fixture
def folder(tmp_path):
    def write(files):
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return tmp_path

    return write


def names(manifests):
    return sorted(pod.name for pod in manifests.pods)


def problems(*paths, **options):
    with pytest.raises(InputError) as error:
        read_manifests(list(paths), options=ReadOptions(**options))
    return list(error.value.problems)


FOREIGN = {
    "dashboard.json": DASHBOARD,
    "package.json": '{"name": "web", "version": "1.0.0"}',
    "values.yaml": "replicaCount: 3\nimage: {tag: v1}\n",
    "list.yaml": "- one\n- two\n",
    "numbers.json": "[1, 2]",
    "text.yaml": "just text",
    "broken.yaml": "a: [",
    "drone.yml": "kind: pipeline\ntype: docker\n",
    "grafana.yaml": "apiVersion: 1\ndatasources: []\n",
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_file_in_a_folder_is_left_out_with_a_line(folder, name):
    path = folder({"pod.yaml": pod("web"), name: FOREIGN[name]})

    manifests = read_manifests([path])

    assert names(manifests) == ["web"]
    assert manifests.left_out == 1
    assert manifests.warnings == [
        f"left out 1 file without Kubernetes objects: {path / name}",
    ]


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_file_that_is_named_is_an_error(folder, name):
    path = folder({name: FOREIGN[name]}) / name

    assert str(path) in problems(path)[0]


def test_many_foreign_files_are_one_line(folder):
    path = folder({"pod.yaml": pod("web"), **{f"d{n}.json": DASHBOARD for n in range(9)}})

    (line,) = read_manifests([path]).warnings

    assert line.startswith("left out 9 files without Kubernetes objects: ")
    assert line.endswith(" and 4 more")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("apiVersion: v1\nkind: Pod\nspec: [\n", id="broken YAML"),
        pytest.param("kind: Pod\nmetadata: {name: p}\n", id="no apiVersion"),
        pytest.param("apiVersion: v1\nmetadata: {name: p}\n", id="no kind"),
        pytest.param(pod("p") + "\n---\na: 1\n", id="an object and something else"),
    ],
)
def test_a_broken_object_in_a_folder_is_still_an_error(folder, text):
    path = folder({"pod.yaml": pod("web"), "x.yaml": text})

    (line,) = problems(path)

    assert line.startswith(f"{path}/x.yaml: document ")


def test_a_broken_document_of_a_kind_without_effect_is_left_out(folder):
    broken = "apiVersion: v1\nkind: Secret\ntype: a\n  b: c\n"
    path = folder({"pod.yaml": pod("web"), "secret.yaml": broken})

    manifests = read_manifests([path])

    assert names(manifests) == ["web"]
    assert "left out, without effect on scheduling (Secret): " in manifests.warnings[0]
    assert "secret.yaml: document 1: line 4, column 4: mapping values are" in manifests.warnings[0]


TWICE = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  priority: 1
  priority: 2
  containers: [{name: c}]
"""


def test_of_a_key_that_is_given_twice_the_last_one_counts(folder):
    """As in kubectl; the whole folder was refused."""
    path = folder({"pod.yaml": TWICE, "values.yaml": "a: 1\na: 2\n"})
    secret = "apiVersion: v1\nkind: Secret\ntype: a\ntype: b\n"
    (path / "secret.yaml").write_text(secret)

    manifests = read_manifests([path], options=ReadOptions(exclude=("values.yaml",)))

    assert manifests.pods[0].spec.priority == 2
    assert manifests.warnings == [
        f"{path}/pod.yaml: document 1: line 7, column 3: 'priority' is given twice in one mapping; "
        "keep one of them; the last one counts"
    ]


def test_a_key_that_is_given_twice_is_an_error_with_strict(folder):
    path = folder({"pod.yaml": TWICE})

    with pytest.raises(InputError, match="'priority' is given twice in one mapping; keep one"):
        read_manifests([path], options=ReadOptions(strict=True))


# The same name twice


def test_identical_duplicates_are_one_object(folder):
    path = folder({"a.yaml": pod("web"), "b/c.yaml": pod("web")})

    assert names(read_manifests([path])) == ["web"]


def test_a_later_path_replaces_what_an_earlier_one_brought(folder):
    path = folder({"a.yaml": pod("web", "1") + "\n---\n" + pod("api"), "b.yaml": pod("web", "2")})

    manifests = read_manifests([path / "a.yaml", path / "b.yaml"])

    assert [p.name for p in manifests.pods] == ["web", "api"]
    assert manifests.pods[0].requests == {"cpu": 2000}
    assert manifests.notes == [f"1 object of {path}/b.yaml replaces the same in {path}/a.yaml"]


def test_alternatives_in_one_folder_are_told_with_how_to_choose(folder):
    path = folder({"v1/app.yaml": pod("web", "1"), "v2/app.yaml": pod("web", "2")})

    assert problems(path) == [
        f"Pod default/web: 2 files have different objects of this name: {path}/v1/app.yaml, "
        f"{path}/v2/app.yaml; choose one of them: leave out the others with --exclude "
        f"{path}/v2/app.yaml, or select objects by their labels with --selector"
    ]


@pytest.mark.parametrize(
    "glob", ["v2", "v2/", "v2/*", "*/v2/*", "v2/app.yaml", "{path}/v2/app.yaml"]
)
def test_exclude_leaves_out_files_and_folders(folder, glob):
    path = folder({"v1/app.yaml": pod("web", "1"), "v2/app.yaml": pod("web", "2")})
    options = ReadOptions(exclude=(glob.format(path=path),))

    assert read_manifests([path], options=options).pods[0].requests == {"cpu": 1000}


def test_a_selector_chooses_objects_but_keeps_nodes(folder):
    node = '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}'
    path = folder(
        {
            "a.yaml": pod("web", "1", labels={"track": "stable"}),
            "b.yaml": pod("web", "2", labels={"track": "canary"}),
            "c.json": pod("other"),
            "node.yaml": node,
        }
    )

    manifests = read_manifests([path], options=ReadOptions(selector="track=canary"))

    assert [p.requests for p in manifests.pods] == [{"cpu": 2000}]
    assert [n.name for n in manifests.nodes] == ["n"]


def test_a_wrong_selector_is_told(folder):
    (line,) = problems(folder({"a.yaml": pod("p")}), selector="a in b c")

    assert line.startswith("--selector: 'a in b c' is not a label selector")


# Forms of files


def test_compressed_files_are_read(folder):
    path = folder({"a.yaml.gz": gzip.compress(pod("a").encode()), "b.json": pod("b")})

    assert names(read_manifests([path])) == ["a", "b"]
    assert names(read_manifests([path / "a.yaml.gz"])) == ["a"]
    piped = io.BytesIO(gzip.compress(pod("c").encode()))
    assert names(read_manifests(["-"], stdin=piped)) == ["c"]


def test_a_damaged_compressed_file_is_told(folder):
    path = folder({"a.yaml.gz": gzip.compress(pod("a").encode())[:-20]})

    (line,) = problems(path)

    assert line.startswith(f"{path}/a.yaml.gz: cannot be decompressed: ")


def test_a_pipe_in_a_folder_is_left_out(folder):
    """To read it would wait for ever, as nobody writes."""
    path = folder({"pod.yaml": pod("web")})
    os.mkfifo(path / "pipe.yaml")

    manifests = read_manifests([path])

    assert names(manifests) == ["web"]
    assert manifests.warnings == [
        f"left out 1 file that is a pipe, a socket or a device: {path}/pipe.yaml"
    ]


def test_a_link_to_a_folder_that_looks_like_a_file_is_not_read(folder):
    path = folder({"pod.yaml": pod("web")})
    (path / "more.yaml").symlink_to(path)

    assert names(read_manifests([path])) == ["web"]


def test_a_folder_that_cannot_be_listed_is_an_error(folder):
    """Its objects would be missing without a word."""
    path = folder({"pod.yaml": pod("web")})
    make_unlistable(path)

    [problem] = problems(path)
    assert problem.startswith(f"{path}/ddd")


def test_a_broken_link_in_a_folder_is_left_out(folder):
    path = folder({"pod.yaml": pod("web")})
    (path / "gone.yaml").symlink_to(path / "nowhere.yaml")

    manifests = read_manifests([path])

    assert names(manifests) == ["web"]
    assert manifests.warnings == [f"left out 1 file that is a link to nothing: {path}/gone.yaml"]
    assert problems(path / "gone.yaml") == [
        f"{path}/gone.yaml: no such file or folder; check the path"
    ]


@pytest.mark.parametrize(
    "text",
    [
        f"[{pod('a')}, {pod('b')}]",
        f"\n [\n{pod('a')},\n{pod('b')}]\n",
    ],
)
def test_a_json_array_is_a_list_of_objects(text):
    assert names(read_manifests(["-"], stdin=io.BytesIO(text.encode()))) == ["a", "b"]


@pytest.mark.parametrize(
    "text",
    [
        '{"apiVersion": "v1", "kind": "List", "items": null}',
        '{"apiVersion": "v1", "kind": "PodList", "items": null}',
        "apiVersion: v1\nkind: List\nitems:\n",
        "apiVersion: v1\nkind: List\nitems: []\n",
    ],
)
def test_a_list_without_items_is_empty(text):
    manifests = read_manifests(["-"], stdin=io.BytesIO(text.encode()))

    assert (manifests.objects, manifests.skipped) == ([], {})


def test_an_escaped_quote_is_read_as_go_reads_it():
    text = """
apiVersion: v1
kind: Pod
metadata: {name: p, annotations: {a: "it\\'s", b: "\\u00fc \\'\\"\\'", c: 'x\\'}}
spec: {containers: [{name: c}]}
"""
    (pod,) = read_manifests(["-"], stdin=io.BytesIO(text.encode())).pods

    assert pod.metadata.annotations == {"a": "it's", "b": "ü '\"'", "c": "x\\"}


def test_another_unknown_escape_is_an_error():
    with pytest.raises(InputError, match="unknown escape"):
        read_manifests(["-"], stdin=io.BytesIO(b'a: "\\q"\n'))


# Templates

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: a}}}}
  template:
    metadata: {{labels: {{app: a}}}}
    spec: {{containers: [{{name: c, image: "${{IMAGE}}", args: ["{{{{x}}}}"]}}]}}
"""


@pytest.mark.parametrize(
    ("name", "replicas", "mark"),
    [
        ("web", "{{ .Values.replicas }}", "{{ .Values.replicas }}"),
        ("web", '"{{ .Values.replicas }}"', "{{ .Values.replicas }}"),
        ("'{{ .Release.Name }}-web'", "1", "{{ .Release.Name }}"),
        ("${NAME}", "1", "${NAME}"),
        ('"web-${NAME}"', "1", "${NAME}"),
        ("web-$NAME", "1", "$NAME"),
        ("<name>", "1", "<name>"),
        ('"<your name>"', "1", "<your name>"),
    ],
)
def test_a_template_is_recognised_however_it_is_quoted(folder, name, replicas, mark):
    path = folder({"web.yaml": DEPLOYMENT.format(name=name, replicas=replicas)})

    (line,) = problems(path)

    assert line.startswith(f"{path}/web.yaml: is a template, as {mark!r} shows; ")


def test_a_template_is_recognised_by_a_piece_between_its_objects(folder):
    """The first document is no YAML, and has nothing of an object."""
    text = "{{ if .Values.enabled }}\n---\n" + DEPLOYMENT.format(name="web", replicas=1)
    path = folder({"web.yaml": text + "---\n{{ end }}\n"})

    for given in (path, path / "web.yaml"):
        (line,) = problems(given)

        assert line.startswith(
            f"{path}/web.yaml: is a template, as '{{{{ if .Values.enabled }}}}' "
        )


def test_marks_in_text_for_other_programs_are_no_template(folder):
    path = folder({"web.yaml": DEPLOYMENT.format(name="web", replicas=2)})

    assert len(read_manifests([path]).pods) == 2


@pytest.mark.parametrize(
    "fields",
    [
        {"serviceAccountName": "$KSA_NAME"},
        {"volumes": [{"name": "v", "nfs": {"server": "<server>", "path": "/"}}]},
        {
            "volumes": [
                {"name": "v", "csi": {"driver": "d", "volumeAttributes": {"bucket": "${BUCKET}"}}}
            ]
        },
    ],
)
def test_what_has_no_effect_on_scheduling_makes_no_template_of_a_pod(folder, fields):
    body = json.loads(pod("p"))
    body["spec"] |= fields

    assert names(read_manifests([folder({"p.json": json.dumps(body)})])) == ["p"]


def test_the_templates_of_a_chart_are_one_line(folder):
    templates = {
        f"chart/templates/{n}.yaml": DEPLOYMENT.format(name="'{{ .Release.Name }}'", replicas=1)
        for n in range(20)
    }
    path = folder({"chart/Chart.yaml": "apiVersion: v2\nname: x\n", **templates})

    (line,) = problems(path / "chart/templates")

    assert "and 19 more files: are templates" in line
    assert line.endswith(
        f"render the chart: helm template chart {path}/chart {FLAGS} | mooring simulate -"
    )


def test_every_template_of_a_chart_counts_whatever_its_kind(folder):
    """Not YAML, and of kinds without effect: left out with a line each, the folder looked empty."""
    templates = {
        f"chart/templates/rbac/{n}.yaml": (
            f"{{{{- if .Values.rbac }}}}\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\n"
            f"metadata:\n  name: {{{{ .Release.Name }}}}-{n}\n{{{{- end }}}}\n"
        )
        for n in range(3)
    }
    path = folder({"chart/Chart.yaml": "apiVersion: v2\nname: x\n", **templates})

    (line,) = problems(path / "chart/templates/rbac")

    assert "and 2 more files: are templates, as '{{- if .Values.rbac }}' shows" in line


def test_an_action_of_a_template_can_go_on_for_lines(folder):
    action = '{{- if and\n  (eq .Values.mode "internal")\n  (ne .Values.auth "legacy")\n}}\n---\n'
    path = folder({"web.yaml": action + DEPLOYMENT.format(name="web", replicas=1)})

    (line,) = problems(path)

    assert f"{path}/web.yaml: is a template, as '{{{{- if and (eq .Values.mode " in line


def test_broken_documents_of_kinds_without_effect_are_one_line(folder):
    broken = "apiVersion: v1\nkind: {}\ndata: [\n"
    files = {f"{n}.yaml": broken.format("Secret") for n in range(3)}
    path = folder({"pod.yaml": pod("web"), "z.yaml": broken.format("ConfigMap"), **files})

    manifests = read_manifests([path])

    assert names(manifests) == ["web"]
    (line,) = manifests.warnings
    assert line.startswith(
        f"left out, without effect on scheduling (ConfigMap, Secret): {path}/0.yaml: "
    )
    assert line.endswith(" (and 3 more)")
