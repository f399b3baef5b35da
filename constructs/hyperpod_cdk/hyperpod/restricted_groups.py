"""Restricted instance groups, for the customization of Amazon Nova models, and the execution role of their nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct, DependencyGroup, IDependable

from hyperpod_cdk.catalog import hyperpod, lustre, operators
from hyperpod_cdk.catalog import instance_groups as rules
from hyperpod_cdk.catalog import instance_types as catalog
from hyperpod_cdk.catalog.arns import OBJECT_KEY_ACTIONS
from hyperpod_cdk.common.acknowledgments import RESOURCE, acknowledge
from hyperpod_cdk.common.removal import goes_with_its_stack
from hyperpod_cdk.common.stack_arns import HERE
from hyperpod_cdk.config import restricted_group as fields
from hyperpod_cdk.config.argument_types import judged
from hyperpod_cdk.config.arguments import flaws, for_rules, is_token, refuse, refuse_all, refuse_for, refuse_unlike
from hyperpod_cdk.config.draft import certain
from hyperpod_cdk.hyperpod.execution_role import NodeExecutionRole
from hyperpod_cdk.hyperpod.instance_groups import DeepHealthCheck, InstanceGroup, in_lines, value_flaws

_READ = ("s3:GetBucketLocation", "s3:ListBucket")
_WRITE = ("s3:DeleteObject", "s3:GetObject", "s3:PutObject")


@judged()
@dataclass(frozen=True, kw_only=True)
class ServiceLustre:
    """A file system that the service creates for restricted nodes.

    ``capacity_gib`` (int, GiB): size of the file system: 1200, or a multiple of 2400 up to 100800. Raises ValueError
    for another size.

    ``throughput_mbps_per_tib`` (int, MB/s for each TiB): throughput: 125, 250, 500 or 1000. Default: 250. Raises
    ValueError for another number.
    """

    capacity_gib: int
    throughput_mbps_per_tib: int = 250

    def __post_init__(self) -> None:
        throughput = self.throughput_mbps_per_tib
        values = {"capacity_gib": self.capacity_gib, "throughput_mbps_per_tib": throughput}
        found = [*flaws(fields.RestrictedLustre, values)]
        if not found and not any(is_token(value) for value in values.values()):
            problem = lustre.capacity_problem(self.capacity_gib, throughput_mbps_per_tib=throughput, efa=False)
            found = [] if problem is None else [(("capacity_gib",), problem)]
        refuse_for(in_lines(found))

    def cloudformation(self) -> sagemaker.CfnCluster.FSxLustreConfigProperty:
        """Return it as ``FSxLustreConfig``."""
        return sagemaker.CfnCluster.FSxLustreConfigProperty(
            size_in_gib=self.capacity_gib, per_unit_storage_throughput=self.throughput_mbps_per_tib
        )


@judged()
@dataclass(frozen=True, kw_only=True)
class SharedEnvironment:
    """The shared environment of restricted groups: the file system of those without their own.

    ``lustre`` (ServiceLustre): the file system of the groups without their own.

    ``when_unused`` ("keep" | "delete"): what the service does with the file system when no restricted group uses it any
    more. Default: ``keep``. Raises ValueError for another value.
    """

    lustre: ServiceLustre
    when_unused: Literal["keep", "delete"] = "keep"

    def __post_init__(self) -> None:
        refuse(fields.RestrictedEnvironment, when_unused=self.when_unused)

    def cloudformation(self) -> sagemaker.CfnCluster.RestrictedInstanceGroupsConfigProperty:
        """Return it as ``RestrictedInstanceGroupsConfig``."""
        cfn = sagemaker.CfnCluster
        return cfn.RestrictedInstanceGroupsConfigProperty(
            shared_environment_config=cfn.SharedEnvironmentConfigProperty(
                f_sx_lustre_deletion_policy=hyperpod.RESTRICTED_LUSTRE_DELETION_POLICIES[self.when_unused],
                f_sx_lustre_config=self.lustre.cloudformation(),
            )
        )


@judged()
class RestrictedExecutionRole(Construct):
    """The execution role of restricted groups: a ``NodeExecutionRole`` with access to the data of the jobs.

    Restricted nodes have only this role's permissions: pods on them get none from EKS Pod Identity.

    ``node_role`` (NodeExecutionRole): the role of every node. Its managed policy allows reading buckets named
    ``sagemaker-*``.

    ``input_buckets`` (Sequence[str]): names of buckets that jobs read. Default: none. Raises ValueError for an invalid
    or repeated name, and for one that ``output_buckets`` has too.

    ``output_buckets`` (Sequence[str]): names of buckets that jobs read and write. Default: none. Raises ValueError for
    an invalid or repeated name.

    ``reward_functions`` (bool): whether jobs may invoke Lambda functions and use SQS queues of the account whose names
    contain ``SageMaker``, for the rewards of reinforcement fine-tuning. Default: no.

    ``kms_key_arns`` (Sequence[str], ARNs): KMS keys of the buckets. Default: none. Raises ValueError for text that is
    not the ARN of a key.

    ``prometheus_workspace_arn`` (str, ARN): the workspace into which the observability add-on writes metrics of these
    nodes. Default: none, and their metrics are not written. Raises ValueError for text that is not the ARN of a
    Prometheus workspace.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        node_role: NodeExecutionRole,
        input_buckets: Sequence[str] = (),
        output_buckets: Sequence[str] = (),
        reward_functions: bool = False,
        kms_key_arns: Sequence[str] = (),
        prometheus_workspace_arn: str | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        again = rules.bucket_problems(input_buckets, output_buckets)
        refuse_all(
            lambda: refuse(
                fields.RestrictedGroup,
                input_buckets=input_buckets,
                output_buckets=output_buckets,
                kms_key_arns=kms_key_arns,
            ),
            lambda: refuse_unlike(
                operators.PROMETHEUS_WORKSPACE_ARN, prometheus_workspace_arn=prometheus_workspace_arn
            ),
            lambda: refuse_for(f"{key}[{index}]: {problem}" for key, index, problem in again),
        )
        self.role: iam.IRole = node_role.role
        self.policies: IDependable = node_role.policies
        statements = list(_statements(input_buckets, output_buckets, kms_key_arns, reward_functions=reward_functions))
        if prometheus_workspace_arn is not None:
            # developer guide, observability add-on, "Additional prerequisites for Restricted Instance Groups": pods on
            # these nodes have no identities of their own
            statements.append(_allow("Metrics", ["aps:RemoteWrite"], [prometheus_workspace_arn]))
        if not statements:
            return
        policy = iam.CfnManagedPolicy(
            self,
            "Policy",
            description="Nova customization: data of the jobs",
            policy_document={"Version": "2012-10-17", "Statement": statements},
            roles=[self.role.role_name],
        )
        goes_with_its_stack(policy)
        both = DependencyGroup()
        both.add(node_role.policies)
        both.add(policy)
        self.policies = both
        acknowledge(
            policy,
            {
                **{
                    RESOURCE.format(f"arn:<AWS::Partition>:s3:::{name}/*"): "the file names the buckets of the jobs"
                    for name in (*input_buckets, *output_buckets)
                    if not is_token(name)
                },
                **{
                    RESOURCE.format(
                        f"arn:<AWS::Partition>:{service}:<AWS::Region>:<AWS::AccountId>:{name}"
                    ): "recipes name the functions and queues of rewards; AWS has them hold SageMaker in their names"
                    for service, name in (("lambda", "function:*SageMaker*"), ("sqs", "*SageMaker*"))
                    if reward_functions
                },
                RESOURCE.format("arn:<AWS::Partition>:aps:<AWS::Region>:<AWS::AccountId>:workspace/*"): (
                    "a workspace that the environment makes comes after these nodes; only metrics are written"
                ),
            },
        )


@judged()
@dataclass(frozen=True, kw_only=True)
class RestrictedGroup:
    """Restricted nodes with one configuration. Tokens are not checked.

    Nobody can log in to restricted nodes, they run no lifecycle scripts and only images of Nova recipes, and HyperPod
    accepts no customer managed KMS key for their volumes.

    The other arguments are as in ``InstanceGroup``.

    ``name`` (str): name of the group. Raises ValueError unless it is 1 to 63 letters, digits and hyphens.

    ``instance_type`` (str): type of the nodes, such as ``ml.p5.48xlarge``. Raises ValueError for a type that is neither
    in the catalog nor in ``stated_types``.

    ``count`` (int, nodes): nodes of the group; 0 is allowed. Raises ValueError for less than 0, and for more
    than HyperPod takes.

    ``subnet`` (ec2.ISubnet): private subnet of the group's zone. Raises ValueError for None.

    ``security_groups`` (Sequence[ec2.ISecurityGroup]): security groups of the nodes, 1 to 5. Raises ValueError for
    none, and for more.

    ``execution_role`` (RestrictedExecutionRole): the execution role of this group's nodes.

    ``lustre`` (ServiceLustre): the file system that the service creates for the group. Default: that of the
    ``SharedEnvironment``.

    ``availability_zone_id`` (str): AZ ID of the subnet. Default: not compared. Raises ValueError for text that is not
    an AZ ID, such as the name of a zone; ``HyperPodCluster`` also for a zone of another region.

    ``capacity`` ("on_demand" | "training_plan"): source of the instances; ``training_plan`` needs
    ``training_plan_arn``. Default: on-demand. Raises ValueError for another value, if it is left out for an accelerated
    type, and for a plan of a type for which AWS sells none.

    ``training_plan_arn`` (str, ARN): the training plan. Default: none. Raises ValueError for text that is not the ARN
    of a plan, with another ``capacity``, and if it is left out for ``training_plan``; ``HyperPodCluster`` also for a
    plan of another region or account.

    ``deep_health_checks`` (Sequence["instance_stress" | "instance_connectivity"]): tests before a node is used.
    Default: none. Raises ValueError for another or repeated value, and for types without accelerators.

    ``threads_per_core`` (int, threads): threads of each core. Default: 2 if the type has simultaneous multithreading,
    else 1. Raises ValueError unless it is 1 or 2, and for 2 threads of a type that has 1.

    ``volume_gib`` (int | None, GiB): size of the extra EBS volume; None leaves it out. Default: 500. Raises ValueError
    unless it is 1 to 16384.

    ``stated_types`` (Mapping[str, InstanceType]): your own rows, by name, for types that the catalog does not have or
    whose row is wrong. Default: none.
    """

    name: str
    instance_type: str
    count: int
    subnet: ec2.ISubnet
    security_groups: Sequence[ec2.ISecurityGroup]
    execution_role: RestrictedExecutionRole
    lustre: ServiceLustre | None = None
    availability_zone_id: str | None = None
    capacity: rules.RestrictedCapacity | None = None
    training_plan_arn: str | None = None
    deep_health_checks: Sequence[DeepHealthCheck] = ()
    threads_per_core: int | None = None
    volume_gib: int | None = 500
    stated_types: Mapping[str, catalog.InstanceType] = field(default_factory=dict)

    def __post_init__(self) -> None:
        refuse_for(self._problems(), where=f'restricted instance group "{self.name}"')

    def _problems(self) -> Iterator[str]:
        found = [*value_flaws(self, fields.RestrictedGroup)]
        yield from in_lines(found)
        # the service puts its own taints on these nodes
        known = for_rules(self, [place for place, _ in found], taints=())
        row = self.stated_types.get(self.instance_type) or catalog.get(self.instance_type)
        rows = [] if row is None else [row]
        yield from in_lines(rules.restricted_problems(known, lambda: rows, certain=certain))

    def cloudformation(self) -> sagemaker.CfnCluster.ClusterRestrictedInstanceGroupProperty:
        """Return the group as an element of ``RestrictedInstanceGroups``."""
        cfn = sagemaker.CfnCluster
        role_arn = self.execution_role.role.role_arn
        plain = self._plain().cloudformation(execution_role_arn=role_arn, lifecycle_source_s3_uri="")
        return cfn.ClusterRestrictedInstanceGroupProperty(
            instance_group_name=self.name,
            instance_type=self.instance_type,
            instance_count=self.count,
            execution_role=role_arn,
            threads_per_core=plain.threads_per_core,
            override_vpc_config=plain.override_vpc_config,
            instance_storage_configs=plain.instance_storage_configs,
            training_plan_arn=self.training_plan_arn,
            on_start_deep_health_checks=plain.on_start_deep_health_checks,
            environment_config=cfn.EnvironmentConfigProperty(f_sx_lustre_config=self.lustre.cloudformation())
            if self.lustre
            else None,
        )

    def place_problems(self, *, region: str, account: str) -> Iterator[str]:
        """Yield what in this group belongs to another region or account than its stack.

        ``region``, ``account``: those of the stack; a token is not compared.
        """
        return self._plain().place_problems(region=region, account=account)

    def _plain(self) -> InstanceGroup:
        """Return the ordinary group of the same nodes, which has the rules and properties of both kinds."""
        return InstanceGroup(
            name=self.name,
            instance_type=self.instance_type,
            count=self.count,
            subnet=self.subnet,
            security_groups=self.security_groups,
            availability_zone_id=self.availability_zone_id,
            capacity=self.capacity,
            training_plan_arn=self.training_plan_arn,
            deep_health_checks=self.deep_health_checks,
            threads_per_core=self.threads_per_core,
            volume_gib=self.volume_gib,
            stated_types=self.stated_types,
        )


def _statements(
    inputs: Sequence[str], outputs: Sequence[str], keys: Sequence[str], *, reward_functions: bool
) -> Iterator[dict[str, Any]]:
    here = f"{HERE.region}:{HERE.account}"
    buckets = [*inputs, *outputs]
    if buckets:
        yield _allow("ListData", _READ, [_bucket(name) for name in buckets])
    if inputs:
        yield _allow("GetData", ["s3:GetObject"], [f"{_bucket(name)}/*" for name in inputs])
    if outputs:
        yield _allow("PutResults", _WRITE, [f"{_bucket(name)}/*" for name in outputs])
    if keys:
        yield _allow("Keys", OBJECT_KEY_ACTIONS, keys)
    if reward_functions:
        functions = f"arn:{HERE.partition}:lambda:{here}:function:*SageMaker*"
        yield _allow("RewardFunctions", ["lambda:InvokeFunction"], [functions])
        queues = f"arn:{HERE.partition}:sqs:{here}:*SageMaker*"
        yield _allow("RewardQueues", ["sqs:DeleteMessage", "sqs:ReceiveMessage", "sqs:SendMessage"], [queues])


def _bucket(name: str) -> str:
    return f"arn:{HERE.partition}:s3:::{name}"


def _allow(sid: str, actions: Sequence[str], resources: Sequence[str]) -> dict[str, Any]:
    return {"Sid": sid, "Effect": "Allow", "Action": list(actions), "Resource": list(resources)}
