"""`mooring explain`: why is this pod on its node or pending, and what would make it fit?"""

from __future__ import annotations

from typing import Any

import click

from mooring.cli import output
from mooring.cli.config_inputs import ConfigInput, LoadedConfig, naming
from mooring.cli.explain_tables import write_explanation, write_node, write_workload
from mooring.cli.group_tables import write_group
from mooring.cli.inputs import ClusterInput, read_cluster
from mooring.cli.options import (
    budget_option,
    cluster_input,
    config_input,
    number_option,
    output_option,
    seed_option,
    until_option,
)
from mooring.cli.progress import Progress
from mooring.cli.simulate import placing_pods
from mooring.explain.counterfactuals import Counterfactuals, find_counterfactuals
from mooring.explain.explanation import Explainer, Explanation, check_created, explainer_for
from mooring.explain.group_counterfactuals import find_group_counterfactuals
from mooring.explain.pod_group import GroupName, GroupTrial, group_name
from mooring.explain.targets import find_target
from mooring.explain.workload import explain_workload
from mooring.sim.simulation import SimOptions


@click.command()
@click.argument("pod", metavar="POD|KIND/NAME|podgroup/NAME")
@cluster_input
@config_input
@click.option(
    "--node", "node_name", metavar="NAME", help="Show what every plugin says about this node."
)
@click.option(
    "--as-is",
    is_flag=True,
    help="Explain the pod on the cluster as the files describe it, without placing any pod first.",
)
@seed_option
@until_option
@number_option("--top", default=3, help="The number of best nodes to show with their scores.")
@budget_option("2s", to="make a pending pod fit")
@output_option("table", "json", help="json has every node with every plugin.")
def explain(
    pod: str,
    cluster: ClusterInput,
    config: ConfigInput,
    node_name: str | None,
    as_is: bool,
    seed: int | None,
    until_s: float | None,
    top: int,
    budget_s: float,
    form: str,
) -> None:
    """Explain why a pod goes to its node or stays pending, and what would make it fit.

    POD is a name, namespace/name, the beginning of a name that only one pod or workload has, or a
    workload such as deployment/web: then mooring shows what becomes of its pods, and explains one of them.
    podgroup/NAME explains a pod group as a whole: how many members fit, which one stops it, where it was
    tried, and what would make all of it fit. PATH is as for `mooring simulate`.
    mooring simulates the cluster first. If the simulation places the pod, the explanation shows the cluster
    as it was at that moment. If the pod is pending, it shows the cluster at the end. If the pod had a node
    from the start, it shows where the pod would go if it were scheduled again.

    Exits 0 if the pod has a node or would get one (a gang: minCount of its pods), 1 if it fits on no node
    or is gated, 2 if mooring cannot answer.

    \b
    Examples:
      mooring explain web-0 -f cluster/
      mooring explain shop/web-0 cluster.yaml --node worker-3
      mooring explain deployment/web -n shop -f app/ --nodes 3xm5.xlarge
      mooring explain podgroup/train cluster.yaml --feature-gates GenericWorkload=true,GangScheduling=true
      mooring explain train-7 cluster.yaml --config scheduler.yaml --budget 10s
      mooring explain web-0 cluster.yaml -o json | jq '.nodes[] | select(.fits)'
    """
    loaded = config.read()
    manifests = read_cluster(cluster, warns_without_nodes=False, kinds=loaded.kinds)
    check_created(manifests.refused, pod)
    objects = config.choose_pods(manifests.objects, loaded)
    options = SimOptions(config=loaded.config, seed=seed)
    group = group_name(objects, pod, namespace=cluster.namespace)
    if group is not None:
        if node_name is not None:
            raise click.UsageError("--node is about a pod; explain one of the group's pods")
        with naming(loaded.path), placing_pods(manifests.pods, options) as followed:
            explainer = explainer_for(objects, followed, until_s=until_s, as_read=as_is)
        with explainer:
            _explain_group(explainer, group, loaded=loaded, budget_s=budget_s, form=form)
        return
    target = find_target(objects, pod, namespace=cluster.namespace, refused=manifests.refused)
    watched = target.pods[0]
    with naming(loaded.path), placing_pods(manifests.pods, options) as followed:
        explainer = explainer_for(
            objects, followed, watched=watched, until_s=until_s, as_read=as_is
        )
    with explainer:
        workload = explain_workload(explainer, target) if target.workload else None
        explanation = workload.example if workload else explainer.explain(watched)
        if node_name is not None:
            explanation.node_view(node_name)
        changes = None
        searches = node_name is None and budget_s > 0 and not explanation.is_refused_later
        if not explanation.fits and searches:
            changes = find_counterfactuals(explainer.what_if, explanation.pod, budget_s=budget_s)

    def data() -> dict[str, Any]:
        told = _data(explanation, changes, node_name)
        if workload is not None:
            told = {**workload.to_data(), "example": told}
        return {**loaded.to_data(), **told}

    def table() -> None:
        if workload is not None and node_name is None:
            write_workload(workload)
        _write_table(explanation, changes, node_name=node_name, top=top)

    fits = workload.fits if workload is not None else explanation.fits
    output.answer(form, yes=fits, data=data, table=table)


def _explain_group(
    explainer: Explainer, wanted: GroupName, *, loaded: LoadedConfig, budget_s: float, form: str
) -> None:
    trial = GroupTrial(explainer.what_if, wanted)
    explanation = trial.explain()
    changes = None
    if not explanation.fits and budget_s > 0:
        with Progress("trying changes") as progress:
            changes = find_group_counterfactuals(
                trial, explanation, budget_s=budget_s, on_progress=progress.update
            )

    def data() -> dict[str, Any]:
        told = explanation.to_data()
        if changes is not None:
            told["wouldFitIf"] = changes.to_data()
        return {**loaded.to_data(), **told}

    output.answer(
        form, yes=explanation.fits, data=data, table=lambda: write_group(explanation, changes)
    )


def _data(
    explanation: Explanation, changes: Counterfactuals | None, node_name: str | None
) -> dict[str, Any]:
    data = explanation.to_data()
    if node_name is not None:
        data["nodes"] = [explanation.node_view(node_name).to_data()]
    if changes is not None:
        data["wouldFitIf"] = changes.to_data()
    return data


def _write_table(
    explanation: Explanation, changes: Counterfactuals | None, *, node_name: str | None, top: int
) -> None:
    if node_name is not None:
        write_node(explanation, node_name)
    else:
        write_explanation(explanation, changes, top=top)
