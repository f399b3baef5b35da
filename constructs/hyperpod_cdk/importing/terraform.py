"""Variables of AWS's Terraform module hyperpod-eks-tf, in ``*.tfvars`` or ``*.tfvars.json``.

Read of awslabs/awsome-distributed-ai (aws-samples/awsome-distributed-training), commit 7217859f,
1.architectures/7.sagemaker-hyperpod-eks/terraform-modules/hyperpod-eks-tf; the other names of older versions from
terraform.tfvars there at commit 0162aacd.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hyperpod_cdk.config.source import Source
from hyperpod_cdk.importing.document import Node
from hyperpod_cdk.importing.draft import Draft, Group

_REGION: Final = "us-west-2"
_VPC_CIDR: Final = "10.192.0.0/16"
_VERSION: Final = "1.33"
_OURS: Final = frozenset(
    {"instance_groups", "restricted_instance_groups", "hyperpod_cluster_name", "create_hyperpod_module"}
)
_OF_THE_MODULE: Final = (
    *("resource_name_prefix", "public_subnet_1_cidr", "public_subnet_2_cidr", "eks_private_subnet_1_cidr"),
    *("eks_private_subnet_2_cidr", "existing_nat_gateway_id", "existing_private_route_table_ids"),
    *("create_vpc_endpoint_ingress_rule", "create_vpc_endpoints_module", "create_s3_endpoint", "create_ec2_endpoint"),
    *("create_ecr_api_endpoint", "create_ecr_dkr_endpoint", "create_sts_endpoint", "create_logs_endpoint"),
    *(
        "create_monitoring_endpoint",
        "create_ssm_endpoint",
        "create_ssmmessages_endpoint",
        "create_ec2messages_endpoint",
    ),
    *("create_eks_auth_endpoint",),
    *("create_lifecycle_script_module", "create_helm_chart_module", "helm_repo_path", "helm_repo_path_hpio"),
    *("helm_release_name", "helm_release_name_hpio", "namespace", "rig_script_path", "enable_guardduty_cleanup"),
    *("eks_private_node_subnet_cidr", "existing_private_route_table_id", "create_s3_endpoint_module"),
    *("create_fsx_pvc_namespace", "create_fsx_module", "eks_endpoint_private_access"),
)
"""Variables for what this library creates in its own way, or what an existing network has."""

_OF_THE_CHART: Final = (
    *(
        "helm_repo_revision",
        "helm_repo_revision_rig",
        "helm_repo_revision_hpio",
        "enable_gpu_operator",
        "enable_mlflow",
    ),
    *("enable_kubeflow_training_operators", "enable_cluster_role_and_bindings", "enable_namespaced_role_and_bindings"),
    *("enable_team_role_and_bindings", "enable_nvidia_device_plugin", "enable_neuron_device_plugin"),
    *("enable_mpi_operator", "enable_deep_health_check", "enable_job_auto_restart", "enable_hyperpod_patching"),
)

_FROM_BASIC: Final = {"basic": "BASIC", "advanced": "ADVANCED"}
_FROM_NONE: Final = {"disabled": "DISABLED", "advanced": "ADVANCED"}
_METRICS: Final[Mapping[str, Mapping[str, str | None]]] = {
    **dict.fromkeys(("training", "cluster", "node", "accelerated_compute"), _FROM_BASIC),
    **dict.fromkeys(("task_governance", "scaling", "network"), _FROM_NONE),
}
"""The module's ``..._metric_level`` by the file's name of the category, with its words by the file's own."""

_OF_OBSERVABILITY: Final = (
    *(f"{ours}_metric_level" for ours in _METRICS),
    *("create_prometheus_workspace", "existing_prometheus_workspace_id", "prometheus_workspace_name"),
    *("create_grafana_workspace", "existing_grafana_workspace_id", "grafana_workspace_name", "logging_enabled"),
)

_NOT_BESIDE_RESTRICTED: Final[Mapping[str, str]] = {
    "create_new_fsx_filesystem": "storage",
    "create_task_governance_module": "task_governance",
    "create_hyperpod_training_operator_module": "operators",
    "create_hyperpod_inference_operator_module": "operators",
    "create_observability_module": "operators",
}


def is_variables(node: Node) -> bool:
    """Return whether a document holds variables of the module."""
    return bool(_OURS & set(node.value))


def read_variables(node: Node, draft: Draft) -> None:
    """Fill a draft from the variables of the module."""
    log = draft.log
    if not _is_on(node, "create_hyperpod_module", default=True):
        log.refuse(node.place("create_hyperpod_module"), "is false: there is no HyperPod cluster to import")
    region = node.text("aws_region")
    if region is not None or draft.known.region is None:
        draft.stated_region(region or _REGION, node.place("aws_region"))
    if region is None and draft.known.region is None:
        log.note("changed", f"is left out, which means {_REGION} there", at=node.place("aws_region"), path="region")
    restricted = _groups(node, "restricted_instance_groups")
    _read_network(node, draft)
    _read_eks(node, draft)
    _read_cluster(node, draft, is_restricted=bool(restricted))
    for is_restricted, rows in ((False, _groups(node, "instance_groups")), (True, restricted)):
        for row in rows:
            _read_group(row, draft, zone=node.text("availability_zone_id"), is_restricted=is_restricted)
    _read_lustre(node, draft)
    _read_operators(node, draft)
    _read_buckets(node, draft)
    if restricted:
        _drop_beside_restricted(node, draft)
    _read_rest(node, draft)


def _read_rest(node: Node, draft: Draft) -> None:
    role = node.text("existing_sagemaker_iam_role_name")
    if not _is_on(node, "create_sagemaker_iam_role_module", default=True) and role:
        draft.log.note(
            "changed",
            f"{role} is not used: the environment creates the execution role of its nodes; other permissions of its"
            " policies are lost",
            at=node.place("existing_sagemaker_iam_role_name"),
        )
    bucket = node.text("existing_s3_bucket_name")
    if not _is_on(node, "create_s3_bucket_module", default=True) and bucket:
        draft.log.note(
            "changed",
            f"{bucket} is not used: the environment creates the bucket of its lifecycle scripts; to use an existing"
            " one, set hyperpod.lifecycle.existing_bucket",
            at=node.place("existing_s3_bucket_name"),
            path="hyperpod.lifecycle",
        )
    node.asked.update(_OF_THE_MODULE)
    for key in _OF_THE_CHART:
        if node.has(key):
            draft.log.note(
                "changed",
                "is not imported: the environment installs HyperPod's chart at the commit of charts/charts.lock.yaml",
                at=node.place(key),
            )
    if node.has("gated_access"):
        draft.log.note("lost", "the file has no word for it", at=node.place("gated_access"))
    node.rest()


def _is_on(node: Node, key: str, *, default: bool) -> bool:
    value = node.truth(key)
    return default if value is None else value


def _read_network(node: Node, draft: Draft) -> None:
    is_made = _is_on(node, "create_vpc_module", default=True)
    is_closed = _is_on(node, "closed_network", default=False)
    cidr, vpc_id = node.text("vpc_cidr"), node.text("existing_vpc_id")
    has_subnets = _is_on(node, "create_private_subnet_module", default=True)
    of_list = "existing_private_subnet_ids"
    subnets = [(each, node.place(of_list, index)) for index, each in enumerate(node.texts(of_list))]
    if older := node.text("existing_private_subnet_id"):
        subnets.append((older, node.place("existing_private_subnet_id")))
    has_group = _is_on(node, "create_security_group_module", default=True)
    group = node.text("existing_security_group_id")
    for_eks = [] if _is_on(node, "create_eks_subnets", default=True) else node.texts("existing_eks_subnet_ids")
    node.texts("existing_eks_subnet_ids")
    block = "private_subnet_cidrs" if node.texts("private_subnet_cidrs") else "private_subnet_cidr"
    if is_closed:
        draft.network["egress"] = "closed"
    if is_made:
        if cidr and cidr != _VPC_CIDR:
            draft.network = {"vpc_cidr": cidr, **draft.network}
        if node.texts("private_subnet_cidrs") or node.text("private_subnet_cidr"):
            draft.log.note(
                "changed",
                "which zone gets which block is not in the file there; here each zone's block follows from its ID, or"
                " is its node_cidr",
                at=node.place(block),
                path="network.availability_zones",
            )
        return
    draft.network["existing"] = {"vpc_id": vpc_id, "control_plane_subnet_ids": for_eks}
    for each, at in subnets:
        draft.subnet(each, at)
    if has_subnets:
        draft.log.note(
            "missing",
            "the node subnets: that module creates them in the existing VPC, and an environment creates none in an"
            " existing VPC; name those that the module created",
            at=node.place("create_private_subnet_module"),
            path="network.existing.node_subnet_ids",
        )
    if not has_group and group:
        draft.network["existing"]["security_group_id"] = group


def _read_eks(node: Node, draft: Draft) -> None:
    version, name = node.text("kubernetes_version"), node.text("eks_cluster_name")
    existing = node.text("existing_eks_cluster_name")
    is_public = _is_on(node, "eks_endpoint_public_access", default=True)
    if not _is_on(node, "create_eks_module", default=True):
        draft.eks["existing"] = {"cluster_name": existing}
        if version:
            draft.eks["kubernetes_version"] = version
        return
    draft.eks["kubernetes_version"] = version or _VERSION
    if not is_public:
        draft.eks["endpoint_access"] = "private"
    if name:
        draft.log.note(
            "changed",
            f"the EKS cluster {name} gets another name: the environment's own is {draft.known.name}-eks",
            at=node.place("eks_cluster_name"),
        )


def _read_cluster(node: Node, draft: Draft, *, is_restricted: bool) -> None:
    section, log = draft.hyperpod, draft.log
    section["cluster_name"] = node.text("hyperpod_cluster_name") or "ml-cluster"
    recovery, is_recovered = _either(node, "auto_node_recovery", "node_recovery", "Automatic")
    if not is_recovered:
        section["node_recovery"] = "none"
        log.note(
            "unsafe",
            "failed nodes are not replaced automatically",
            at=node.place(recovery),
            path="hyperpod.node_recovery",
        )
    mode, is_continuous = _either(node, "continuous_provisioning_mode", "node_provisioning_mode", "Continuous")
    if not is_continuous or is_restricted:
        section["provisioning"] = "all_or_nothing"
        why = ", as that module does it with restricted groups" if is_restricted else ""
        log.note(
            "unsafe",
            f"all or nothing{why}: one node without capacity rolls the whole cluster back; for continuous, remove"
            " provisioning",
            at=node.place(mode),
            path="hyperpod.provisioning",
        )
    if _is_on(node, "karpenter_autoscaling", default=False) and not is_restricted:
        section["autoscaling"] = "karpenter"


def _either(node: Node, key: str, older: str, word: str) -> tuple[str, bool]:
    """Return a switch of the module by its name, or by that of older versions, in which ``word`` means on."""
    said = node.text(older)
    return (key, _is_on(node, key, default=True)) if said is None else (older, said == word)


def _groups(node: Node, key: str) -> Sequence[Node]:
    """Return the groups of a variable: a list, or in older versions of the module a mapping of them by name."""
    if not isinstance(node.value.get(key), dict):
        return node.rows(key)
    section = node.section(key)
    rows = []
    for name in section.value if section else ():
        row = section.section(name) if section else None
        if row is not None:
            source = Source(row.source.file, row.source.data, row.source.lines)
            rows.append(Node(source, {"name": name, **row.value}, row.path, row.log))
    return rows


def _read_group(row: Node, draft: Draft, *, zone: str | None, is_restricted: bool = False) -> None:
    log = draft.log
    name, kind, count = row.text("name"), row.text("instance_type"), row.number("instance_count")
    for key in ("name", "instance_type", "instance_count"):
        if not row.has(key):
            log.refuse(row.place(), f"{key} is missing")
    if name is None or kind is None or count is None:
        return
    script = row.text("lifecycle_script")
    group = Group(
        at=row.place(),
        name=name,
        types=[kind],
        count=count,
        zone=row.text("availability_zone_id") or zone,
        plan=row.text("training_plan_arn"),
        threads=row.number("threads_per_core"),
        threads_at=row.place("threads_per_core"),
        volume_gib=row.number("ebs_volume_size_in_gb"),
        labels=row.mapping("labels"),
        on_create=script,
        is_restricted=is_restricted,
    )
    if image := row.text("image_id"):
        group.image["ami_id"] = image
    for key, check in (
        ("enable_stress_check", "instance_stress"),
        ("enable_connectivity_check", "instance_connectivity"),
    ):
        if row.truth(key):
            group.checks.append(check)
    for taint in row.rows("taints"):
        words = {key: taint.text(key) for key in ("key", "value", "effect")}
        group.taints.append({key: value for key, value in words.items() if value is not None})
        taint.rest()
    if is_restricted:
        sizes: dict[str, Any] = {
            "capacity_gib": row.number("fsxl_size_in_gi_b"),
            "throughput_mbps_per_tib": row.number("fsxl_per_unit_storage_throughput"),
        }
        group.lustre = {key: value for key, value in sizes.items() if value is not None}
    elif script:
        log.note(
            "changed",
            f"{script} is that of lifecycle_scripts/, or without that folder the library's own, not that of the module",
            at=row.place("lifecycle_script"),
            path="hyperpod.lifecycle",
        )
    row.rest()
    draft.groups.append(group)


def _read_buckets(node: Node, draft: Draft) -> None:
    inputs, outputs = node.text("rig_input_s3_bucket"), node.text("rig_output_s3_bucket")
    rewards = [_is_on(node, key, default=True) for key in ("rig_rft_lambda_access", "rig_rft_sqs_access")]
    for group in draft.groups:
        if group.is_restricted:
            group.more = {
                "input_buckets": [inputs] if inputs else [],
                "output_buckets": [outputs] if outputs else [],
                "reward_functions": any(rewards) or None,
            }


def _read_lustre(node: Node, draft: Draft) -> None:
    capacity, throughput = node.number("fsx_storage_capacity"), node.number("fsx_throughput")
    compression, namespace = node.text("fsx_data_compression_type"), node.text("fsx_pvc_namespace")
    node.has("fsx_file_system_type_version")
    if not _is_on(node, "create_new_fsx_filesystem", default=False):
        return
    zones = sorted({each.zone for each in draft.groups if each.zone})
    entry: dict[str, Any] = {"name": "fsx"}
    if len(zones) == 1:
        entry["availability_zone_id"] = zones[0]
    else:
        draft.log.note(
            "missing",
            "where the file system is, which the source does not say",
            at=node.place("create_new_fsx_filesystem"),
            path="storage.lustre[0].availability_zone_id",
        )
    entry |= {"capacity_gib": capacity or 1200, "throughput_mbps_per_tib": throughput or 250}
    if compression == "NONE":
        entry["compression"] = "none"
    entry["claim"] = {"namespaces": [namespace or "default"]}
    draft.sections["storage"] = {"lustre": [entry]}
    draft.log.note(
        "changed",
        "there a Kubernetes claim creates the file system; here a stack creates another one, and it stays if the stack"
        " is deleted",
        at=node.place("create_new_fsx_filesystem"),
        path="storage.lustre[0]",
    )


def _read_operators(node: Node, draft: Draft) -> None:
    operators: dict[str, Any] = {}
    for ours, key in (
        ("training", "create_hyperpod_training_operator_module"),
        ("inference", "create_hyperpod_inference_operator_module"),
        ("observability", "create_observability_module"),
    ):
        if _is_on(node, key, default=False):
            operators[ours] = _observability(node, draft) if ours == "observability" else {"enabled": True}
    # what the module does not create gets no note
    node.asked.update(_OF_OBSERVABILITY)
    if operators:
        draft.sections["operators"] = operators
    if _is_on(node, "create_task_governance_module", default=False):
        draft.sections["task_governance"] = {"teams": []}
    if "inference" in operators and "existing" not in draft.eks:
        draft.eks["oidc_provider"] = True


def _observability(node: Node, draft: Draft) -> dict[str, Any]:
    """Read the module's observability settings: by default with its own workspaces for Prometheus and Grafana."""
    found: dict[str, Any] = {"enabled": True}
    for ours in ("prometheus", "grafana"):
        stands, path = f"existing_{ours}_workspace_id", f"operators.observability.{ours}_workspace"
        if _is_on(node, f"create_{ours}_workspace", default=True):
            if ours == "grafana":
                # it is the default for Prometheus, both here and there
                found["grafana_workspace"] = "create"
            if node.has(f"{ours}_workspace_name"):
                message = "is not imported: the environment names the workspaces that it creates"
                draft.log.note("changed", message, at=node.place(f"{ours}_workspace_name"))
        elif node.has(stands):
            message = "is the ID of a workspace, and the file needs its ARN; write that into the file"
            draft.log.note("lost", message, at=node.place(stands), path=path)
    levels = {ours: node.word(f"{ours}_metric_level", words) for ours, words in _METRICS.items()}
    metrics = {ours: level for ours, level in levels.items() if level is not None}
    if metrics:
        found["metrics"] = metrics
    if node.truth("logging_enabled"):
        found["logs"] = True
    return found


def _drop_beside_restricted(node: Node, draft: Draft) -> None:
    if not all(each.is_restricted for each in draft.groups):
        draft.log.note(
            "changed",
            "with restricted groups that module silently creates no other groups; here they are created",
            at=node.place("instance_groups"),
            path="hyperpod.instance_groups",
        )
    for key, section in _NOT_BESIDE_RESTRICTED.items():
        if node.truth(key):
            draft.log.note(
                "changed",
                "with restricted groups that module silently leaves it out; so does the file",
                at=node.place(key),
            )
        draft.sections.pop(section, None)
    draft.eks.pop("oidc_provider", None)
