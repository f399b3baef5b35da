"""Task governance: the add-on, the cluster policy, and what each team may use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import aws_cdk as cdk
from aws_cdk import aws_eks_v2 as eks_v2
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct, IDependable

from hyperpod_cdk.catalog import addons, arns, governance, hyperpod, regions
from hyperpod_cdk.catalog.rules import same_names_problem
from hyperpod_cdk.catalog.sentences import in_python
from hyperpod_cdk.common.acknowledgments import RESOURCE, acknowledge
from hyperpod_cdk.common.handler_functions import handler_function, handler_role
from hyperpod_cdk.common.manifests import applied_manifest
from hyperpod_cdk.common.stack_arns import arn_here, arn_of_aws
from hyperpod_cdk.config import task_governance as fields
from hyperpod_cdk.config.argument_types import judged
from hyperpod_cdk.config.arguments import is_token, refuse, refuse_all, refuse_for, refuse_unlike
from hyperpod_cdk.config.eks import Eks
from hyperpod_cdk.config.environment import Environment
from hyperpod_cdk.eks.node_addons import NodeAddon, WebhookReady, check_addon
from hyperpod_cdk.governance.team_access import POD_SECURITY, access_entries, shared_objects, team_objects
from hyperpod_cdk.governance.teams import PriorityClass, Team, check

Ordering = Literal["priority", "first_come_first_served"]
IdleCompute = Literal["fair_share", "first_come_first_served"]

_TIMEOUT_SECONDS = 900
_ANSWER_SECONDS = _TIMEOUT_SECONDS + 60
_POLICIES_AND_QUOTAS = ("cluster-scheduler-config/*", "compute-quota/*")
_ANY_ID = "SageMaker assigns the IDs of policies and quotas when they are created"


@judged()
class TaskGovernance(Construct):
    """HyperPod task governance on one cluster: its add-on, then the cluster policy, then a compute quota per team.
    Tokens are not checked.

    Deletion is in the reverse order, as required: a HyperPod cluster with policies attached cannot be deleted. The
    add-on needs a node that is Ready and a cluster without another Kueue; it must depend on the HyperPod cluster.
    Without ``install_addon`` it must be on the EKS cluster already.

    How the arguments map to the API (botocore's SchedulerConfig and the developer guide's page "Policies"):

    - ``ordering="priority"`` is the console's task ranking: ``PriorityClasses`` decide which queued task is next.
      ``"first_come_first_served"`` sends an empty list of classes, so that classes set before are removed.
    - ``idle_compute="fair_share"`` is ``FairShare: Enabled``: teams borrow idle compute by their fair-share weights.
      ``"first_come_first_served"`` is ``Disabled``: the first team that requests it may use all idle compute.
    - ``share_unallocated`` is ``IdleResourceSharing``: whether compute that no team's quota covers may be borrowed too.
      It is a separate setting (unsure: the console shows no such choice in the guide) and left out unless set, which
      AWS treats as ``Disabled``.

    ``priority_classes`` left empty uses the catalog's default classes. ``native_scheduler_config`` and
    ``native_compute_quota`` say whether to use CloudFormation's own types; else one Lambda function serves custom
    resources with the same properties. ``catalog.governance.is_native`` gives an answer that never changes:
    CloudFormation refuses to change the type of a deployed resource. Names consist of ``name_prefix`` and the team's
    name and never change, so that nothing is replaced by accident; ``policy_name`` and a team's ``quota_name`` are for
    existing policies and quotas.

    Members get an access entry. AWS's own access policies are enough for most and need no kubectl: AmazonEKSEditPolicy
    and AmazonSagemakerHyperpodTrainingPolicy (Kubeflow, Ray and HyperPod jobs, Kueue's queues) in the team's namespace,
    AmazonSagemakerHyperpodUserClusterPolicy for what is cluster-wide (developer guide, "Setting up an Amazon EKS
    cluster in Studio"). A team with ``access="rbac"``, for regions or partitions without the two HyperPod policies or
    for jobs that they do not include (JobSet, LeaderWorkerSet), gets a Role and its entries name Kubernetes groups. EKS
    allows one access entry per role, so members must not be in ``admin_role_arns``, the roles that have access already
    as administrators.

    ``cluster`` checks whether Kueue's webhooks answer, before the policy and the quotas, from which SageMaker creates
    Kueue's objects, and before everything that depends on ``ready``. It also applies Kubernetes objects: the Pod
    Security level of each team's namespace, and roles, default queues and ResourceQuotas of teams that request them.
    They are created after the team's quota and deleted before it, except the namespace, which belongs to SageMaker.
    Without ``cluster`` nothing waits for Kueue, and a member's pod may be privileged, and so root on its node.

    ``eks_cluster_name`` (str): name of the EKS cluster. Raises ValueError for a name that EKS refuses.

    ``cluster_arn`` (str, ARN): the HyperPod cluster. Raises ValueError for text that is not the ARN of a HyperPod
    cluster.

    ``name_prefix`` (str): prefix of the names of the policy and the quotas. Raises ValueError if a name that is made
    with it is not 1 to 63 letters, digits and hyphens.

    ``teams`` (Sequence[Team]): the teams, each name once. Raises ValueError for two teams or two quotas with one name,
    for a member of another partition or in ``admin_role_arns``, and for Kubernetes objects of a team without
    ``cluster``.

    ``description`` (str): description of the policy, 1 to 1024 characters on one line. Default: none. Raises ValueError
    for other text.

    ``policy_name`` (str): name of the policy. Default: ``name_prefix`` with ``-policy``. Raises ValueError unless it is
    1 to 63 letters, digits and hyphens.

    ``native_scheduler_config`` (bool): whether the policy is CloudFormation's own type.

    ``native_compute_quota`` (bool): whether the quotas are CloudFormation's own type.

    ``ordering`` ("priority" | "first_come_first_served"): how queued tasks are ordered, as above. Default:
    ``priority``. Raises ValueError for another value.

    ``priority_classes`` (Sequence[PriorityClass]): classes that tasks name, at most 10. Default: the catalog's. Raises
    ValueError for more, two of one name, and any with ``ordering="first_come_first_served"``.

    ``idle_compute`` ("fair_share" | "first_come_first_served"): how idle compute is distributed, as above. Default:
    ``fair_share``. Raises ValueError for another value.

    ``share_unallocated`` (bool): whether compute without a quota may be borrowed. Default: AWS's own, which is no.

    ``install_addon`` (bool): whether the add-on is created here. Default: yes.

    ``addon_version`` (str): version of the add-on, such as ``v1.2.3-eksbuild.1``. Default: EKS's default for the
    Kubernetes version. Raises ValueError for text of another form, and for a version without default queues if a team
    has one.

    ``cluster`` (eks_v2.ICluster): the CDK construct of the EKS cluster, which applies Kubernetes objects. Default:
    none, and no such objects.

    ``await_webhooks`` (bool): whether policy, quotas and ``ready`` wait until Kueue's webhooks answer, which is
    impossible on a cluster without nodes that can run add-ons. Default: yes.

    ``admin_role_arns`` (Sequence[str], ARNs): administrators of the cluster, which members must not be. Default: none.
    Raises ValueError for text that is not the ARN of a role.

    ``tags`` (Mapping[str, str]): tags of the policy and the quotas. Default: none. Raises ValueError for a key or value
    that AWS refuses as a tag.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        eks_cluster_name: str,
        cluster_arn: str,
        name_prefix: str,
        teams: Sequence[Team],
        description: str | None = None,
        policy_name: str | None = None,
        native_scheduler_config: bool,
        native_compute_quota: bool,
        ordering: Ordering = "priority",
        priority_classes: Sequence[PriorityClass] = (),
        idle_compute: IdleCompute = "fair_share",
        share_unallocated: bool | None = None,
        install_addon: bool = True,
        addon_version: str | None = None,
        cluster: eks_v2.ICluster | None = None,
        await_webhooks: bool = True,
        admin_role_arns: Sequence[str] = (),
        tags: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        region = cdk.Stack.of(self).region
        refuse_all(
            lambda: check_addon(eks_cluster_name, addon_version),
            lambda: refuse_unlike(hyperpod.CLUSTER_ARN, cluster_arn=cluster_arn),
            lambda: refuse_for(
                f"team {team.name}{problem}"
                for team in teams
                for problem in _team_problems(team, region, cluster, addon_version, admin_role_arns)
            ),
            lambda: refuse(Eks, admin_role_arns=admin_role_arns),
            lambda: refuse(Environment, tags=tags),
            lambda: refuse(
                fields.TaskGovernance,
                where="task governance",
                idle_compute=idle_compute,
                description=description,
                policy_name=policy_name,
            ),
            (
                lambda: refuse(fields.TaskGovernance, where="task governance", ordering=ordering),
                lambda: _check_classes(ordering, priority_classes),
            ),
            lambda: check(same_names_problem([team.name for team in teams], listed="teams"), where="task governance"),
            (
                lambda: refuse_for(_name_problems(name_prefix, teams, policy_name)),
                lambda: refuse_for(_taken_problems(name_prefix, teams, policy_name)),
            ),
        )
        classes = _classes(ordering, priority_classes)
        self._cluster_arn = cluster_arn
        self._eks_cluster_name = eks_cluster_name
        self._queue_api = governance.local_queue_api(addon_version)
        self._tags = [{"Key": key, "Value": value} for key, value in sorted((tags or {}).items())]
        names = {team.name: team.quota_name or governance.made_name(name_prefix, team.name) for team in teams}
        policy = policy_name or governance.made_name(name_prefix, governance.POLICY_PART)

        self.addon: eks_v2.CfnAddon | None = (
            NodeAddon(
                self,
                "Addon",
                eks_cluster_name=eks_cluster_name,
                addon_name=addons.TASK_GOVERNANCE,
                addon_version=addon_version,
            ).addon
            if install_addon
            else None
        )
        self.ready: WebhookReady | None = None
        if self.addon is not None and cluster is not None and await_webhooks:
            self.ready = WebhookReady(
                self,
                "KueueReady",
                cluster=cluster,
                addon=self.addon,
                namespace=governance.KUEUE_NAMESPACE,
                deployments=[governance.KUEUE_DEPLOYMENT],
            )
        self.function: lambda_.CfnFunction | None = None
        self.log_group: logs.CfnLogGroup | None = None
        if not native_scheduler_config or (teams and not native_compute_quota):
            self.function = self._handler()
        scheduler: dict[str, Any] = {"PriorityClasses": classes, "FairShare": governance.IDLE_COMPUTE[idle_compute]}
        if share_unallocated is not None:
            scheduler["IdleResourceSharing"] = "Enabled" if share_unallocated else "Disabled"
        # a description that is not sent does not change, nor does the state of a quota: so an empty one is sent too
        self.scheduler_config: cdk.CfnResource = self._resource(
            "SchedulerConfig",
            "ClusterSchedulerConfig",
            native=native_scheduler_config,
            properties={"Name": policy, "Description": description or "", "SchedulerConfig": scheduler},
            after=self.ready or self.addon,
        )
        # in parallel: no page of AWS says that a cluster accepts one quota at a time (botocore describes
        # ConflictException of CreateComputeQuota only in general, DeleteComputeQuota has none), and in a chain one team
        # would block the next; our own handler retries after a conflict, and CloudFormation retries a ResourceConflict
        # of a type
        self.quotas: Mapping[str, IDependable] = {
            team.name: self._resource(
                f"Quota-{team.name}",
                "ComputeQuota",
                native=native_compute_quota,
                properties={
                    "Name": names[team.name],
                    "Description": team.description or "",
                    "ActivationState": "Enabled" if team.active else "Disabled",
                    "ComputeQuotaTarget": {"TeamName": team.name, "FairShareWeight": team.fair_share_weight},
                    "ComputeQuotaConfig": team.quota_config(),
                },
                after=self.scheduler_config,
            )
            for team in teams
        }
        self.access_entries: Sequence[eks_v2.CfnAccessEntry] = access_entries(
            self, teams, eks_cluster_name=eks_cluster_name
        )
        self.manifests: Mapping[str, IDependable] = {} if cluster is None else self._objects(teams, cluster)

    def _objects(self, teams: Sequence[Team], cluster: eks_v2.ICluster) -> dict[str, IDependable]:
        shared = shared_objects(teams)
        if shared:
            applied_manifest(self, "Members", cluster=cluster, objects=shared)
        found: dict[str, IDependable] = {}
        for team in teams:
            for what, objects in team_objects(team, queue_api=self._queue_api).items():
                construct_id = f"{what}-{team.name}"
                # removing the labels would delete the namespace with its workloads, in a rollback too
                stays = cdk.RemovalPolicy.RETAIN if what == POD_SECURITY else None
                found[construct_id] = applied_manifest(
                    self,
                    construct_id,
                    cluster=cluster,
                    objects=objects,
                    # the quota creates the namespace and the cluster queue, and is deleted after the objects in them
                    after=self.quotas[team.name],
                    removal_policy=stays,
                )
        return found

    def _resource(
        self,
        construct_id: str,
        noun: str,
        *,
        native: bool,
        properties: Mapping[str, Any],
        after: IDependable | None,
    ) -> cdk.CfnResource:
        service: dict[str, Any] = {}
        if not native and self.function is not None:
            service = {"ServiceToken": self.function.attr_arn, "ServiceTimeout": _ANSWER_SECONDS}
        resource = cdk.CfnResource(
            self,
            construct_id,
            type=f"AWS::SageMaker::{noun}" if native else f"Custom::{noun}",
            properties={
                **service,
                "ClusterArn": self._cluster_arn,
                **properties,
                **({"Tags": self._tags} if self._tags else {}),
            },
        )
        if after is not None:
            resource.node.add_dependency(after)
        return resource

    def _handler(self) -> lambda_.CfnFunction:
        self.log_group = logs.CfnLogGroup(self, "HandlerLogs", retention_in_days=365)
        self.log_group.apply_removal_policy(cdk.RemovalPolicy.RETAIN)
        role = handler_role(
            self,
            "HandlerRole",
            description="HyperPod task governance custom resources",
            policy_name="governance",
            statements=self._rights(self.log_group.attr_arn),
        )
        acknowledge(
            role,
            {
                **{_nag_arn("sagemaker", each): _ANY_ID for each in _POLICIES_AND_QUOTAS},
                _nag_arn("eks", f"access-entry/{self._eks_cluster_name}/*"): "SageMaker chooses the entry that it uses",
                RESOURCE.format("*"): "listing policies and quotas supports no resource-level permissions",
            },
        )
        return handler_function(
            self,
            "Handler",
            description="HyperPod task governance: cluster policies and compute quotas",
            serves="governance",
            role=role,
            log_group=self.log_group,
            timeout_seconds=_TIMEOUT_SECONDS,
            memory_mib=256,
        )

    def _rights(self, log_group_arn: str) -> list[dict[str, Any]]:
        """List what the registry's handlers of the two native types need, and the Lambda's own log group."""
        nouns = ("ClusterSchedulerConfig", "ComputeQuota")
        verbs = ("Create", "Describe", "Update", "Delete")
        name = self._eks_cluster_name
        eks_arns = [arn_here("eks", resource) for resource in (f"cluster/{name}", f"access-entry/{name}/*")]
        hyperpod_policies = arn_of_aws("eks", "cluster-access-policy/AmazonSagemakerHyperpod*")
        return [
            {
                "Action": [
                    *(f"sagemaker:{verb}{noun}" for noun in nouns for verb in verbs),
                    "sagemaker:AddTags",
                    "sagemaker:DeleteTags",
                    "sagemaker:ListTags",
                ],
                "Resource": [
                    *(arn_here("sagemaker", resource) for resource in _POLICIES_AND_QUOTAS),
                    self._cluster_arn,
                ],
            },
            {"Action": ["sagemaker:DescribeCluster"], "Resource": [self._cluster_arn]},
            # listing supports no resource-level permissions
            {"Action": [f"sagemaker:List{noun}s" for noun in nouns], "Resource": ["*"]},
            {
                "Action": ["eks:DescribeCluster", "eks:DescribeAccessEntry", "eks:ListAssociatedAccessPolicies"],
                "Resource": eks_arns,
            },
            {
                "Action": ["eks:AssociateAccessPolicy", "eks:DisassociateAccessPolicy"],
                "Resource": eks_arns,
                # SageMaker gives its own entry HyperPod's policies; nothing here may hand out an administrator's
                "Condition": {"ArnLike": {"eks:policyArn": hyperpod_policies}},
            },
            {"Action": ["logs:CreateLogStream", "logs:PutLogEvents"], "Resource": [log_group_arn]},
        ]


def _team_problems(
    team: Team,
    region: str,
    cluster: eks_v2.ICluster | None,
    addon_version: str | None,
    admin_role_arns: Sequence[str],
) -> Iterator[str]:
    """Yield what is wrong with a team here, each with a colon before it, or the argument and one."""
    for index, arn in enumerate(team.member_role_arns):
        if problem := governance.member_problem(arn, admin_role_arns, listed="admin_role_arns"):
            yield f": member_role_arns[{index}]: {in_python(problem)}"
    if problem := _kubectl_problem(team, cluster):
        yield f": {in_python(problem)}"
    if problem := _queue_problem(team, addon_version):
        yield f": default_queue: {in_python(problem)}"
    yield from (f": member_role_arns: {in_python(problem)}" for problem in _partition_problems(region, team) if problem)


def _kubectl_problem(team: Team, cluster: eks_v2.ICluster | None) -> str | None:
    wishes = {
        "access: rbac": team.access == "rbac" and bool(team.member_role_arns),
        "default_queue": team.default_queue,
        "resource_quota": bool(team.resource_quota),
    }
    wish = next((name for name, wanted in wishes.items() if wanted), None)
    if wish is None or cluster is not None:
        return None
    return f"needs the EKS cluster, whose kubectl applies the objects for {wish}; pass cluster"


def _queue_problem(team: Team, addon_version: str | None) -> str | None:
    if addon_version is None or not team.default_queue:
        return None
    problem = governance.default_queue_problem(addon_version)
    return problem and f"{problem}; raise addon_version, or set default_queue=False"


def _partition_problems(region: str, team: Team) -> Iterator[str | None]:
    partition = None if is_token(region) else regions.partition_of(region)
    for arn in team.member_role_arns if partition else ():
        if not is_token(arn):
            yield arns.role_partition_problem(arn, partition=partition or "", region=region)


def _check_classes(ordering: str, classes: Sequence[PriorityClass]) -> None:
    if ordering != "priority":
        unranked = governance.unranked_classes_problem(ordering) if classes else None
        check(unranked, where="task governance: priority_classes")
        return
    check(
        governance.PRIORITY_CLASSES.count_problem(
            len(classes or governance.DEFAULT_PRIORITY_CLASSES), what="priority classes"
        ),
        same_names_problem([each.name for each in classes], listed="priority_classes"),
        where="task governance",
    )


def _classes(ordering: str, classes: Sequence[PriorityClass]) -> list[dict[str, Any]]:
    if ordering != "priority":
        return []
    chosen = classes or [PriorityClass(name=n, weight=w) for n, w in governance.DEFAULT_PRIORITY_CLASSES]
    return [{"Name": each.name, "Weight": each.weight} for each in chosen]


def _name_problems(prefix: str, teams: Sequence[Team], policy_name: str | None) -> Iterator[str]:
    parts = [*(team.name for team in teams if not team.quota_name), *(() if policy_name else [governance.POLICY_PART])]
    for name in (governance.made_name(prefix, part) for part in parts):
        if not is_token(name) and not governance.POLICY_NAME.matches(name):
            yield (
                f"task governance: names made of name_prefix and the team must be {governance.POLICY_NAME.describes}, "
                f'got "{name}"; shorten or change name_prefix'
            )


def _taken_problems(prefix: str, teams: Sequence[Team], policy_name: str | None) -> Iterator[str]:
    wanted = [(team.name, team.quota_name) for team in teams]
    for taken in governance.names_taken(prefix, wanted, policy_name):
        # whether a quota may have the policy's name is not documented; validation warns about it
        if not taken.is_policys and teams[taken.team].quota_name is not None:
            said = governance.same_quota_name_problem(taken.name)
            yield f"team {teams[taken.team].name}: quota_name: {in_python(said)}"


def _nag_arn(service: str, resource: str) -> str:
    """The same, as cdk-nag spells it."""
    return RESOURCE.format(f"arn:<AWS::Partition>:{service}:<AWS::Region>:<AWS::AccountId>:{resource}")
