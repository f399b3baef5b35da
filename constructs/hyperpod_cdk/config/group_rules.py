"""What AWS takes of one instance group: rules over its values, for environment files and for constructs alike.

Each gives the sentence that refuses, without the name of the value, or None.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hyperpod_cdk.catalog import arns, hyperpod, instance_types
from hyperpod_cdk.catalog.instance_types import InstanceType
from hyperpod_cdk.catalog.rules import again_problem, repeated

_MIG_PROFILE = re.compile(r"\d+g\.\d+gb")


def repeated_taints(taints: Sequence[tuple[str, str]]) -> Iterator[tuple[int, str]]:
    """Give the index of every taint (key, effect) that stood before, which Kubernetes refuses, with the sentence."""
    first: dict[tuple[str, str], int] = {}
    for index, (key, effect) in enumerate(taints):
        before = first.setdefault((key, effect), index)
        if before != index:
            yield (
                index,
                (
                    f'must be unique by key and effect, got "{key}" with {effect} as in taints[{before}]; remove one of'
                    " the two"
                ),
            )


def plan_problem(row: InstanceType) -> str | None:
    """Say that no training plans are sold for a type."""
    if row.training_plan_supported:
        return None
    return (
        f"must not be training_plan for {row.name}, for which no plans are sold (as of {instance_types.as_of()}); set"
        " capacity: on_demand or spot"
    )


def plan_home_problems(arn: str, *, partition: str, region: str, account: str) -> Iterator[str]:
    """Give why a training plan is not of the cluster's partition, region or account; plans cannot be shared.

    An empty ``region`` or ``account`` is one that nobody knows yet, and is not compared.
    """
    of = arns.arn_parts(arn)
    if region and of.region != region:
        yield (
            f"must be a plan in {region}, got one in {of.region or 'no region'}; name a plan of"
            f" {region}, or set region: {of.region or region}"
        )
    elif region and (problem := arns.partition_problem(arn, partition=partition, region=region)):
        yield problem
    if account and of.account != account:
        yield (
            f"must be a plan of account {account}, got one of {of.account}; plans cannot be shared: name a plan of"
            f' {account}, or set account: "{of.account}"'
        )


def ultraserver_problem(instance_type: str, capacity: str | None) -> str | None:
    """Say that a type is sold with a training plan only, where another ``capacity`` is stated."""
    known = hyperpod.ultraserver(instance_type)
    if known is None or capacity in {None, "training_plan"}:
        return None
    sizes = [f"{count} ({size})" for size, count in known.sizes.items()]
    said = f"{', '.join(sizes[:-1])} or {sizes[-1]}" if len(sizes) > 1 else sizes[0]
    return (
        f"must be training_plan for {instance_type}, which is sold as UltraServers of {said} instances, got"
        f" {capacity}; set capacity: training_plan with its training_plan_arn"
    )


def ultraserver_region_problem(instance_type: str, *, region: str) -> str | None:
    """Say that the UltraServers of a type stand in another region than the cluster."""
    known = hyperpod.ultraserver(instance_type)
    if known is None or region == known.region:
        return None
    return (
        f"must be a type of {region}, got {instance_type}, whose UltraServers stand in"
        f" {known.zone_name} only (as of {hyperpod.AS_OF}); name another type, or set region: {known.region}"
    )


def mig_problems(configuration: str, rows: Sequence[InstanceType]) -> Iterator[tuple[bool, str]]:
    """Give what is wrong with a configuration of GPU slices, and whether that is certain.

    ``rows`` are the types of the group as far as they are known.
    """
    profiles = tuple(dict.fromkeys(_MIG_PROFILE.findall(configuration)))
    for row in rows:
        if not row.mig_profiles:
            yield (
                False,
                (
                    f"{row.name} is not known for GPU slices (catalog of {instance_types.as_of()}); remove the label if"
                    " nodes do not become Ready"
                ),
            )
            continue
        known = [profile.removeprefix("mig-") for profile in row.mig_profiles]
        for profile in profiles:
            if profile in known:
                continue
            fix = f"set it to a configuration of {_or(known)}, such as all-{known[0]}"
            if row.mig_documented:
                yield True, f"must divide {row.name} into slices that it has, got {profile}; {fix}"
            else:
                yield (
                    False,
                    (
                        f"{row.name} is not known to have the slice {profile} (catalog of {instance_types.as_of()});"
                        f" {fix}, if nodes do not become Ready"
                    ),
                )


def mig_configuration_problem(configuration: str, rows: Sequence[InstanceType]) -> str | None:
    """Say that the dependency chart has no such configuration, unless ``mig_problems`` says more of it."""
    if configuration in hyperpod.MIG_CONFIGS:
        return None
    sizes = {profile.removeprefix("mig-") for row in rows for profile in row.mig_profiles}
    if any(row.mig_documented for row in rows) and not sizes.issuperset(_MIG_PROFILE.findall(configuration)):
        return None
    choice = [
        name
        for name in hyperpod.MIG_CONFIGS
        if name.startswith("all-") and _MIG_PROFILE.search(name) and sizes.issuperset(_MIG_PROFILE.findall(name))
    ]
    fix = f"set it to {_or(choice)}, or to a mixture of the chart's default-mig-config" if choice else "remove it"
    return (
        "must be a configuration that the dependency chart gives the GPU operator, which otherwise does not "
        "partition GPUs, got"
        f" {configuration}; {fix}"
    )


def bucket_problems(inputs: Sequence[str], outputs: Sequence[str]) -> Iterator[tuple[str, int, str]]:
    """Give the buckets that a restricted group names twice: name and index of the list, and the sentence.

    Output buckets are read as well.
    """
    for key, buckets in (("input_buckets", inputs), ("output_buckets", outputs)):
        for index, first in repeated(buckets):
            yield key, index, again_problem(buckets[index], first)
    for index, name in enumerate(inputs):
        if name in outputs:
            yield (
                "input_buckets",
                index,
                (f"must be named once, got {name} in output_buckets too, which are read as well; remove it here"),
            )


def volume_key_problem(provisioning: str) -> str:
    """Say that HyperPod takes no key for volumes of nodes with ``provisioning``, another than continuous.

    Developer guide, "Customer managed AWS KMS key encryption for SageMaker HyperPod".
    """
    return f"needs continuous provisioning, got provisioning: {provisioning}"


def scripts_problem(on_create: str | None, on_init_complete: str | None) -> str | None:
    """Say that both scripts are stated: one sets the node up, the other runs after HyperPod has done so."""
    if on_create is None or on_init_complete is None:
        return None
    return (
        f"cannot be set together with on_create, got {on_create} and {on_init_complete}; remove on_create if "
        "HyperPod itself should set up the nodes, otherwise remove on_init_complete"
    )


def _or(words: Sequence[str]) -> str:
    *most, end = words
    return f"{', '.join(most)} or {end}" if most else end
