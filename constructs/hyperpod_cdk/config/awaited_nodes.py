"""On which nodes add-ons can run, and so which nodes a deployment waits for before it installs them."""

from __future__ import annotations

from hyperpod_cdk.catalog import addons, instance_types
from hyperpod_cdk.config.environment import Environment
from hyperpod_cdk.config.instance_group import InstanceGroup


def addon_groups(environment: Environment) -> tuple[InstanceGroup, ...]:
    """Return the groups whose nodes can run the pods of add-ons: nodes of their own, and no taint that keeps pods off.

    Groups that Karpenter scales have no nodes of their own, and HyperPod taints restricted groups. If an add-on needs
    larger nodes, or nodes of one architecture, only groups with such nodes count. Groups with accelerators count only
    if there are no others.
    """
    groups = tuple(
        group
        for group in environment.hyperpod.instance_groups
        if group.count and not any(taint.effect != "PreferNoSchedule" for taint in group.taints)
    )
    fitting = tuple(group for group in groups if _runs_all(environment, group))
    return fitting if any(comes_soon(environment, group) for group in fitting) else groups


def comes_soon(environment: Environment, group: InstanceGroup) -> bool:
    """Return whether the nodes of a group join within minutes: nodes without accelerators; False for unknown types."""
    rows = [environment.instance_type(name) for name in group.all_instance_types]
    return all(row is not None and not row.is_accelerated for row in rows)


def _runs_all(environment: Environment, group: InstanceGroup) -> bool:
    operators = environment.operators
    enabled = {addons.INFERENCE: operators.inference.enabled, addons.OBSERVABILITY: operators.observability.enabled}
    wanted = [addons.row(name) for name, is_on in enabled.items() if is_on]
    least = max((addon.minimum_node_xlarge or 0 for addon in wanted), default=0)
    architectures = {addon.architecture for addon in wanted} - {None}
    types = {name: environment.instance_type(name) for name in group.all_instance_types}
    return all(
        (instance_types.xlarge(name) or 0) >= least and (row is None or architectures <= {row.architecture})
        for name, row in types.items()
    )
