"""On which nodes add-ons can run, and so which nodes a deployment waits for before it installs them."""

from __future__ import annotations

from hyperpod_cdk.catalog import addons, instance_types
from hyperpod_cdk.config.environment import Environment
from hyperpod_cdk.config.instance_group import InstanceGroup


def addon_groups(environment: Environment) -> tuple[InstanceGroup, ...]:
    """Give the groups whose nodes take the pods of add-ons: with nodes of their own, and no taint that keeps pods off.

    Karpenter's groups have none of their own, restricted groups are tainted by HyperPod. Where an add-on needs larger
    nodes than others, or nodes of one architecture, it is the groups of such only, unless all of them have
    accelerators: nobody waits for those alone while there are others.
    """
    groups = tuple(
        group
        for group in environment.hyperpod.instance_groups
        if group.count and not any(taint.effect != "PreferNoSchedule" for taint in group.taints)
    )
    fitting = tuple(group for group in groups if _runs_all(environment, group))
    return fitting if any(comes_soon(environment, group) for group in fitting) else groups


def comes_soon(environment: Environment, group: InstanceGroup) -> bool:
    """Say whether the nodes of a group come within minutes, as those without accelerators do; unknown types may not."""
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
