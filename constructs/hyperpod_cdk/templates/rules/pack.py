"""The table of rules, and how they are applied."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hyperpod_cdk.findings import Severity
from hyperpod_cdk.templates.assembly import Assembly, Stack
from hyperpod_cdk.templates.rules import access, cluster, data, network, portable
from hyperpod_cdk.templates.rules.engine import engine_problems
from hyperpod_cdk.templates.rules.rule import Context, Problem, Rule

_PREREQUISITES = "SageMaker AI developer guide, prerequisites of HyperPod on EKS"

TABLE: tuple[Rule, ...] = (
    Rule(
        id="no-get-azs",
        severity=Severity.ERROR,
        reason="The order of zone names differs from account to account, so that two accounts get two networks.",
        source="EC2 user guide, AZ IDs",
        fix="Name Availability Zone IDs.",
        check=portable.no_get_azs,
        is_house=True,
    ),
    Rule(
        id="no-dummy-values",
        severity=Severity.ERROR,
        reason="CDK writes a placeholder if it has not looked a value up, and AWS refuses it, or takes it for "
        "another value.",
        source="CDK developer guide, context values",
        fix="Pass the value instead of a lookup.",
        check=portable.no_dummy_values,
    ),
    Rule(
        id="partition-from-token",
        severity=Severity.ERROR,
        reason="An ARN with a literal partition is not valid in China and GovCloud.",
        source="CloudFormation template reference, pseudo parameters",
        fix="Write arn:${AWS::Partition}.",
        check=portable.partition_from_token,
        is_house=True,
    ),
    Rule(
        id="subnet-zone-by-id",
        severity=Severity.ERROR,
        reason="A training plan's zone is identified by its ID, and a name means another zone in another account.",
        source="EC2 user guide, AZ IDs",
        fix="Set AvailabilityZoneId instead of AvailabilityZone.",
        check=portable.subnet_zone_by_id,
        is_house=True,
    ),
    Rule(
        id="cluster-tag",
        severity=Severity.ERROR,
        reason="The managed policy of the training operator allows reading nodes only for clusters with the tag "
        "SageMaker=true.",
        source="AWS managed policy AmazonSageMakerHyperPodTrainingOperatorAccess",
        fix='Add the tag {"Key": "SageMaker", "Value": "true"}.',
        check=cluster.cluster_tag,
        is_house=True,
    ),
    Rule(
        id="instance-group-complete",
        severity=Severity.ERROR,
        reason="If a group omits a property, the service decides it, and can decide it again at every update.",
        source="SageMaker API reference, ClusterInstanceGroupSpecification",
        fix="State OverrideVpcConfig, ThreadsPerCore and LifeCycleConfig of every group.",
        check=cluster.instance_group_complete,
        is_house=True,
    ),
    Rule(
        id="efa-security-group",
        severity=Severity.ERROR,
        reason="EFA requires all traffic from and to the security group by its own ID, and 0.0.0.0/0 does not "
        "replace it.",
        source=f"{_PREREQUISITES}; EC2 user guide, EFA",
        fix="Add ingress and egress of all traffic from and to the group itself.",
        check=network.efa_security_group,
    ),
    Rule(
        id="kept-egress",
        severity=Severity.WARNING,
        reason="Before CloudFormation creates AWS::EC2::SecurityGroupEgress, it removes the group's rule for all IPv4 "
        "traffic to 0.0.0.0/0, also one that the group states: nodes then reach no service.",
        source="github.com/aws/aws-cdk issue 22140; no page of AWS says it",
        fix="Allow 0.0.0.0/1 and 128.0.0.0/1 instead of 0.0.0.0/0.",
        check=network.kept_egress,
    ),
    Rule(
        id="node-role",
        severity=Severity.WARNING,
        reason="Every pod on the host network has the permissions of the node's role.",
        source=f"{_PREREQUISITES}; AmazonSageMakerClusterInstanceRolePolicy",
        fix="Name the actions and the resources that nodes use, instead of a FullAccess policy or a wildcard.",
        check=access.node_role,
    ),
    Rule(
        id="policies-fit",
        severity=Severity.ERROR,
        reason="IAM refuses policies that are too long when a deployment creates the role.",
        source="IAM user guide, IAM and AWS STS quotas",
        fix="Name fewer resources, or their common prefix.",
        check=access.policies_fit,
    ),
    Rule(
        id="lifecycle-bucket",
        severity=Severity.WARNING,
        reason="Nodes read their scripts only from buckets named sagemaker-*, and run them as root.",
        source="AWS managed policy AmazonSageMakerClusterInstanceRolePolicy",
        fix="Name the bucket sagemaker-..., or grant the role s3:GetObject, and keep public access blocked.",
        check=access.lifecycle_bucket,
    ),
    Rule(
        id="kept-on-delete",
        severity=Severity.WARNING,
        reason="CloudFormation deletes resources that a stack omits or replaces, unless the template retains them.",
        source="CloudFormation template reference, DeletionPolicy and UpdateReplacePolicy",
        fix="Set both to Retain on file systems, HyperPod clusters and EKS clusters, or protect clusters: "
        "DeletionProtection on EKS, or this library's DeletionProtection together with "
        "UpdateReplacePolicy: Retain.",
        check=data.kept_on_delete,
    ),
    Rule(
        id="node-recovery",
        severity=Severity.WARNING,
        reason="Without automatic recovery a node with a faulty accelerator stays until someone replaces it.",
        source="SageMaker AI developer guide, HyperPod automatic node recovery",
        fix="Set NodeRecovery: Automatic.",
        check=cluster.node_recovery,
    ),
    Rule(
        id="provisioning-mode",
        severity=Severity.WARNING,
        reason="Without continuous provisioning a cluster gets all of its nodes or none.",
        source="SageMaker AI developer guide, continuous provisioning",
        fix="Set NodeProvisioningMode: Continuous.",
        check=cluster.provisioning_mode,
    ),
    Rule(
        id="deep-health-checks",
        severity=Severity.WARNING,
        reason="One faulty accelerator stops a job that runs on all nodes of a group.",
        source="SageMaker AI developer guide, deep health checks",
        fix="Set OnStartDeepHealthChecks on groups of two or more nodes of a training type.",
        check=cluster.deep_health_checks,
    ),
    Rule(
        id="group-in-one-zone",
        severity=Severity.WARNING,
        reason="EFA does not cross Availability Zones, and a training plan has all its instances in one.",
        source="EC2 user guide, EFA; SageMaker AI developer guide, training plans",
        fix="Set OverrideVpcConfig with the subnets of one zone.",
        check=cluster.group_in_one_zone,
    ),
    Rule(
        id="node-subnet-size",
        severity=Severity.ERROR,
        reason="A node uses an address for each pod and EFA interface, and AWS cannot resize a subnet; a "
        "warning if the shortage depends on estimated numbers.",
        source=f"{_PREREQUISITES}; the catalog's ips_per_node",
        fix="Give the nodes a larger block.",
        check=cluster.node_subnet_size,
    ),
    Rule(
        id="lustre-zone",
        severity=Severity.WARNING,
        reason="Traffic between zones is slower and charged, and EFA does not cross zones.",
        source="FSx for Lustre guide, performance and EFA",
        fix="Put the file system into a subnet of its nodes' zone.",
        check=network.lustre_zone,
    ),
    Rule(
        id="s3-gateway-endpoint",
        severity=Severity.WARNING,
        reason="Without a gateway endpoint, checkpoints and data go through a NAT gateway, which charges for "
        "every byte.",
        source=_PREREQUISITES,
        fix="Add a gateway endpoint for S3 to the route tables of the nodes.",
        check=network.s3_gateway_endpoint,
    ),
    Rule(
        id="world-ingress",
        severity=Severity.WARNING,
        reason="No part of a training cluster needs to be reachable from every address.",
        source="Amazon VPC user guide, security group rules",
        fix="Name the security group or the block that needs it.",
        check=network.world_ingress,
    ),
    Rule(
        id="eks-administrators",
        severity=Severity.WARNING,
        reason="A cluster whose creator is no administrator answers Unauthorized to everyone without an access entry.",
        source="EKS user guide, access entries",
        fix="Add an access entry with AmazonEKSClusterAdminPolicy for the role that you use.",
        check=access.eks_administrators,
    ),
    Rule(
        id="eks-public-endpoint",
        severity=Severity.WARNING,
        reason="An API server that is open to the internet is attacked from the internet.",
        source="EKS user guide, cluster endpoint",
        fix="Set PublicAccessCidrs, or remove the public endpoint.",
        check=access.eks_public_endpoint,
    ),
    Rule(
        id="eks-audit-log",
        severity=Severity.WARNING,
        reason="Only the audit log shows who deleted a job.",
        source="EKS user guide, control plane logs",
        fix="Add the type audit to Logging.",
        check=access.eks_audit_log,
    ),
    Rule(
        id="eks-authentication",
        severity=Severity.ERROR,
        reason="HyperPod creates an access entry for its nodes, and CreateCluster fails on an EKS cluster "
        "without support for them.",
        source=_PREREQUISITES,
        fix="Set AccessConfig.AuthenticationMode to API or API_AND_CONFIG_MAP.",
        check=access.eks_authentication,
    ),
    Rule(
        id="kubernetes-version",
        severity=Severity.WARNING,
        reason="EKS charges for extended support and ends it on a fixed day; HyperPod accepts a range of versions.",
        source="EKS user guide, Kubernetes versions, on the catalog's date",
        fix="Set a version that both support.",
        check=access.kubernetes_version,
    ),
    Rule(
        id="imports-are-exported",
        severity=Severity.ERROR,
        reason="CloudFormation fails a stack that imports a missing export, after the stacks before it were created.",
        source="CloudFormation user guide, exports and Fn::ImportValue",
        fix="Export what the other stacks import.",
        check=portable.imports_are_exported,
    ),
)
"""Every rule of this pack. The first seven are conventions of this project, and errors because of that."""

RULES: tuple[str, ...] = tuple(rule.id for rule in TABLE)
"""Their IDs."""


def problems(
    assembly: Assembly, *, is_own: bool = True, engine: Callable[[Stack], Iterable[Problem]] = engine_problems
) -> list[Problem]:
    """Return the findings of the engine and of this pack on templates that belong together (a cluster and its network).

    ``engine`` returns the findings of AWS's engine on one stack, by default in this process (``problems_apart`` in
    another). Suppressed ones are included: ask ``Suppressions`` for each. Conventions of this project are only warnings
    if the templates were not created by its constructs (``is_own`` is False).
    """
    from hyperpod_cdk.config.extensions import active  # noqa: PLC0415 - the engine's own process needs no configuration
    from hyperpod_cdk.templates.rules.rule import Spot  # noqa: PLC0415 - as above

    found = [problem for stack in assembly.stacks for problem in engine(stack)]
    context = Context(assembly)
    spots = [(rule, spot) for rule in TABLE for spot in rule.check(context)]
    for extension in active():
        with extension.blamed():
            own = [(rule, spot) for rule in extension.rules for spot in rule.check(context)]
            if wrong := [rule.id for rule in extension.rules if rule.id in RULES]:
                raise ValueError(f"rules: the ID {wrong[0]} is that of a rule of hyperpod-cdk; use another one")
            if given := [spot for _, spot in own if not isinstance(spot, Spot)]:
                raise TypeError(f"a rule must yield Spot(...) for each place, got {given[0]!r}")
            spots += own
    found += [
        Problem(
            stack=assembly.by_name[spot.resource.stack],
            rule=rule.id,
            severity=Severity.WARNING if rule.is_house and not is_own else spot.severity or rule.severity,
            message=spot.message,
            logical_id=spot.resource.logical_id,
            place=spot.place,
        )
        for rule, spot in spots
    ]
    return found
