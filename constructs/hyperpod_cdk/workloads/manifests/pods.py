"""The pods of a job: their requests, node selection and mounts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain, count
from typing import Any

from hyperpod_cdk.catalog import governance, scheduling
from hyperpod_cdk.workloads.manifests.lustre_transport import telling
from hyperpod_cdk.workloads.nodes import EFA_RESOURCE, mig_profile
from hyperpod_cdk.workloads.plan import HUGEPAGES_RESOURCE, SHARED_MEMORY_PATH, Plan

MANAGED_BY = "hyperpod-cdk"
INSTANCE_LABEL = "app.kubernetes.io/instance"
COMPONENT_LABEL = "app.kubernetes.io/component"
MANAGED_BY_LABEL = "app.kubernetes.io/managed-by"
LAUNCHER = "launcher"
"""The component that runs no rank of the job, so that it can share a node with a worker."""

_SHARED_MEMORY = "shared-memory"


def labels(plan: Plan) -> dict[str, str]:
    """Return the labels of the job and of its pod templates: job name, queue, priority.

    Kueue reads them from the job; on the pods they show users, and an admission policy, the queue that admitted them.
    """
    of_kueue = {governance.QUEUE_LABEL: plan.queue, governance.PRIORITY_LABEL: plan.priority_class}
    return {
        INSTANCE_LABEL: plan.name,
        MANAGED_BY_LABEL: MANAGED_BY,
        **{key: value for key, value in of_kueue.items() if value is not None},
    }


def topology_annotations(plan: Plan) -> dict[str, str]:
    """Return the annotations of the pod template, which define how close to each other Kueue places the pods."""
    topology = plan.job.topology
    if topology is None:
        return {}
    wanted = {
        scheduling.PREFERRED_TOPOLOGY: topology.preferred,
        scheduling.REQUIRED_TOPOLOGY: topology.required,
    }
    return {key: value for key, value in wanted.items() if value is not None}


def metadata(plan: Plan) -> dict[str, Any]:
    """Return the metadata of the job: name, namespace, labels."""
    return {"name": plan.name, "namespace": plan.namespace, "labels": labels(plan)}


def template(plan: Plan, spec: Mapping[str, Any], *, component: str | None = None) -> dict[str, Any]:
    """Return a pod template with ``spec``; ``component`` is its role in the job (``LAUNCHER``). Default: a worker."""
    marks = {} if component is None else {COMPONENT_LABEL: component}
    notes = {} if component == LAUNCHER else topology_annotations(plan)
    about: dict[str, Any] = {"labels": {**labels(plan), **marks}}
    if notes:
        about["annotations"] = notes
    return {"metadata": about, "spec": dict(spec)}


def pod_spec(
    plan: Plan,
    *,
    container: str,
    command: Sequence[str],
    args: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    ports: Sequence[int] = (),
    with_devices: bool = True,
    restart_policy: str | None = None,
    node_variable: str | None = None,
) -> dict[str, Any]:
    """Return the specification of one pod, with one container called ``container``.

    ``environment`` are variables of the kind of job; they override those of the catalog, and the job's own override
    both. Without ``with_devices``, the pod is a launcher: little CPU and memory, no accelerators, no EFA, no shared
    memory, and no node of its own. It runs in the same group, because the team has a quota there and the image fits
    its architecture. ``node_variable`` is the variable for the name of the node.
    """
    mounts, volumes = _mounts(plan, with_devices=with_devices)
    spec: dict[str, Any] = {
        "restartPolicy": restart_policy,
        "serviceAccountName": plan.job.service_account,
        "nodeSelector": _node_selector(plan),
        "affinity": _affinity(plan, alone=with_devices and not plan.fills_its_nodes),
        "tolerations": _tolerations(plan),
        "containers": [
            _without_empty(
                {
                    "name": container,
                    "image": plan.image,
                    "imagePullPolicy": plan.job.image_pull_policy,
                    "command": telling(plan, command) if with_devices else list(command),
                    "args": list(args),
                    "env": _env(plan, environment or {}, node_variable),
                    "ports": [{"containerPort": port} for port in ports],
                    "resources": _resources(plan) if with_devices else _launcher_resources(),
                    # EFA locks memory; the limit of HyperPod's nodes suffices, and baseline does not allow to raise it
                    "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}}
                    if with_devices and plan.efa and plan.may_use_the_node
                    else None,
                    "volumeMounts": mounts,
                }
            )
        ],
        "volumes": volumes,
    }
    return _without_empty(spec)


def free_name(wanted: str, taken: Collection[str]) -> str:
    """Return ``wanted``, with a number appended if the name is in ``taken``."""
    candidates = chain([wanted], (f"{wanted}-{number}" for number in count(2)))
    return next(name for name in candidates if name not in taken)


def _without_empty(mapping: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if value not in (None, [], {})}


def _env(plan: Plan, of_kind: Mapping[str, str], node_variable: str | None) -> list[dict[str, Any]]:
    plain = {**plan.variables, **of_kind, **plan.job.environment}
    secrets = plan.job.secrets
    node = [] if node_variable is None or node_variable in {*plain, *secrets} else [node_variable]
    return [
        *({"name": name, "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}} for name in node),
        *({"name": name, "value": value} for name, value in plain.items() if name not in secrets),
        *(
            {"name": name, "valueFrom": {"secretKeyRef": {"name": value.secret, "key": value.key}}}
            for name, value in secrets.items()
        ),
    ]


def _resources(plan: Plan) -> dict[str, Any]:
    # for these, Kubernetes requires requests and limits to be equal
    devices: dict[str, Any] = {}
    resource = plan.shape.accelerator_resource
    if resource is not None and plan.accelerators:
        devices[resource if plan.queue is None else scheduling.name_in_quotas(resource)] = plan.accelerators
    if plan.efa:
        devices[EFA_RESOURCE] = plan.efa
    if plan.hugepages_mib:
        devices[HUGEPAGES_RESOURCE] = f"{plan.hugepages_mib}Mi"
    resources: dict[str, Any] = {"requests": {"cpu": plan.vcpu, "memory": f"{plan.memory_gib}Gi", **devices}}
    if devices:
        resources["limits"] = devices
    return resources


def _launcher_resources() -> dict[str, Any]:
    return {"requests": {"cpu": scheduling.LAUNCHER_VCPU, "memory": f"{scheduling.LAUNCHER_MEMORY_GIB}Gi"}}


def _mounts(plan: Plan, *, with_devices: bool) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    claims = list(dict.fromkeys(claim.claim for claim in plan.claims))
    # a claim is read-only only if all of its mounts are
    writable = {claim.claim for claim in plan.claims if not claim.read_only}
    mounts: list[dict[str, Any]] = []
    volumes: list[dict[str, Any]] = []
    if with_devices:
        name = free_name(_SHARED_MEMORY, claims)
        mounts.append({"name": name, "mountPath": SHARED_MEMORY_PATH})
        volumes.append({"name": name, "emptyDir": {"medium": "Memory", "sizeLimit": f"{plan.shared_memory_gib}Gi"}})
    for claim in plan.claims:
        mount: dict[str, Any] = {"name": claim.claim, "mountPath": claim.mount_path}
        if claim.sub_path is not None:
            mount["subPath"] = claim.sub_path
        if claim.read_only:
            mount["readOnly"] = True
        mounts.append(mount)
    for claim_name in claims:
        source: dict[str, Any] = {"claimName": claim_name}
        if claim_name not in writable:
            source["readOnly"] = True
        volumes.append({"name": claim_name, "persistentVolumeClaim": source})
    return mounts, volumes


def _node_selector(plan: Plan) -> dict[str, str]:
    chosen: dict[str, str] = {}
    if len(plan.shape.instance_types) == 1:
        chosen[scheduling.INSTANCE_TYPE_LABEL] = plan.shape.instance_types[0]
    if not plan.is_autoscaled:
        # Karpenter creates no node for a label that its node pool does not contain
        chosen[scheduling.INSTANCE_GROUP_LABEL] = plan.group.name
    if plan.accelerators and mig_profile(plan.group) is not None:
        chosen[scheduling.MIG_STATE_LABEL] = scheduling.MIG_DONE
    return chosen


def _affinity(plan: Plan, *, alone: bool) -> dict[str, Any]:
    terms = [_health(plan)]
    if len(plan.shape.instance_types) > 1:
        terms.append(_expression(scheduling.INSTANCE_TYPE_LABEL, "In", plan.shape.instance_types))
    if plan.job.passed_deep_health_checks:
        terms.append(_expression(scheduling.DEEP_HEALTH_CHECK_LABEL, "In", (scheduling.PASSED,)))
    affinity: dict[str, Any] = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": terms}]}
        }
    }
    if alone:
        others = [
            _expression(INSTANCE_LABEL, "In", (plan.name,)),
            _expression(COMPONENT_LABEL, "NotIn", (LAUNCHER,)),
        ]
        affinity["podAntiAffinity"] = {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchExpressions": others}, "topologyKey": scheduling.HOSTNAME_LABEL}
            ]
        }
    return affinity


def _health(plan: Plan) -> dict[str, Any]:
    if plan.is_autoscaled:
        # a new node has no status yet, and Karpenter only considers labels of its node pool
        return _expression(scheduling.HEALTH_LABEL, "NotIn", scheduling.NOT_SCHEDULABLE)
    return _expression(scheduling.HEALTH_LABEL, "In", (scheduling.SCHEDULABLE,))


def _expression(key: str, operator: str, values: Sequence[str]) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def _tolerations(plan: Plan) -> list[dict[str, str]]:
    stated = [
        {"key": taint.key, "operator": "Exists", "effect": taint.effect}
        if taint.value is None
        else {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect}
        for taint in plan.group.taints
    ]
    usual = scheduling.tolerated_taints(
        nvidia=plan.shape.is_nvidia, neuron=plan.shape.is_neuron, efa=plan.shape.efa_count != 0
    )
    return [*stated, *({"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in usual)]
