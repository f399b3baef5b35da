"""An AWS for tests of checks: every answer is a field that the test sets, all others raise NotAnswered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias, TypeVar, cast

from hyperpod_cdk.checks.answers import (
    AddonVersions,
    Among,
    BackupAnswer,
    BucketAnswer,
    BucketSettings,
    Caller,
    Decision,
    EksClusterAnswer,
    Endpoint,
    HyperPodClusterAnswer,
    ImageAnswer,
    InstalledAddon,
    KmsKeyAnswer,
    KubernetesVersionAnswer,
    LustreAnswer,
    MemberT,
    NotAnswered,
    Offering,
    Partial,
    QuotaRequest,
    QuotaValue,
    RoleAnswer,
    RouteTable,
    SecurityGroupAnswer,
    SlackChannelAnswer,
    StackAnswer,
    SubnetAnswer,
    TopicAnswer,
    TrainingPlan,
    VpcAnswer,
    Zone,
)
from hyperpod_cdk.handlers.quota_gate.comparison import Unread, Usage

NOT_SET = "not set in this test"

KeyT = TypeVar("KeyT")
AnswerT = TypeVar("AnswerT")

By: TypeAlias = dict[KeyT, AnswerT | NotAnswered] | NotAnswered
Whole: TypeAlias = AnswerT | NotAnswered


def _unset() -> NotAnswered:
    return NotAnswered(NOT_SET)


@dataclass(kw_only=True)
class Answers:
    """One field for each method, with the method's name. A NotAnswered in place of an answer is raised.

    A question without arguments has its answer as the field. Others have a dict from the argument in the comment; a
    key that is missing is not answered, None as a value says that there is no such thing.
    """

    caller: Whole[Caller] = field(default_factory=_unset)
    quota: By[str, QuotaValue | None] = field(default_factory=dict)  # name
    usage: By[str, float | Usage] = field(default_factory=dict)  # kind; a number is all there is
    quota_requests: By[tuple[str, str], tuple[QuotaRequest, ...]] = field(default_factory=dict)  # (service, code)
    training_plan: By[str, TrainingPlan | None] = field(default_factory=dict)  # ARN
    # all there are; those of the type, count and duration that was asked for are given
    training_plan_offerings: Whole[tuple[Offering, ...]] = field(default_factory=_unset)
    # all there are, or as much as was read of them
    hyperpod_clusters: Whole[tuple[HyperPodClusterAnswer, ...] | Partial[HyperPodClusterAnswer]] = field(
        default_factory=_unset
    )
    zones: Whole[tuple[Zone, ...]] = field(default_factory=_unset)
    # all there are, by ID; one that is missing does not exist
    images: Whole[Mapping[str, ImageAnswer] | Among[ImageAnswer]] = field(default_factory=_unset)
    # all there are with their states, by name; one that is missing does not exist
    alarms: Whole[Mapping[str, str] | Among[str]] = field(default_factory=_unset)
    # all there are, by EC2 name; a type that is missing is offered nowhere
    instance_type_zones: Whole[Mapping[str, frozenset[str]] | Among[frozenset[str]]] = field(default_factory=_unset)
    endpoint_services: Whole[Mapping[str, frozenset[str]] | Among[frozenset[str]]] = field(default_factory=_unset)
    vpc: By[str, VpcAnswer | None] = field(default_factory=dict)  # VPC ID
    # all there are, by ID; one that is missing does not exist
    subnets: Whole[Mapping[str, SubnetAnswer] | Among[SubnetAnswer]] = field(default_factory=_unset)
    route_tables: By[str, tuple[RouteTable, ...]] = field(default_factory=dict)  # VPC ID
    endpoints: By[str, tuple[Endpoint, ...]] = field(default_factory=dict)  # VPC ID
    # all there are, by ID; one that is missing does not exist
    security_groups: Whole[Mapping[str, SecurityGroupAnswer] | Among[SecurityGroupAnswer]] = field(
        default_factory=_unset
    )
    kubernetes_versions: Whole[tuple[KubernetesVersionAnswer, ...]] = field(default_factory=_unset)
    addon_versions: By[tuple[str, str], AddonVersions | None] = field(default_factory=dict)  # (add-on, Kubernetes)
    eks_cluster: By[str, EksClusterAnswer | None] = field(default_factory=dict)  # name
    installed_addons: By[str, tuple[InstalledAddon, ...] | Partial[InstalledAddon]] = field(
        default_factory=dict
    )  # cluster
    kubernetes_api_groups: By[str, frozenset[str]] = field(default_factory=dict)  # cluster
    # by cluster and namespace
    kubernetes_daemon_sets: By[tuple[str, str], Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    role: By[str, RoleAnswer | None] = field(default_factory=dict)  # name
    policy_exists: By[str, bool] = field(default_factory=dict)  # ARN
    prometheus_workspace: By[str, str | None] = field(default_factory=dict)  # ARN
    grafana_workspace: By[str, str | None] = field(default_factory=dict)  # ARN
    topic: By[str, TopicAnswer | None] = field(default_factory=dict)  # ARN
    event_bus_exists: By[str, bool] = field(default_factory=dict)  # name
    slack_workspaces: Whole[frozenset[str]] = field(default_factory=_unset)
    slack_channels: Whole[tuple[SlackChannelAnswer, ...]] = field(default_factory=_unset)
    # by action, or by "action resource" for one resource alone; an action that is missing is allowed
    simulate: Whole[Mapping[str, Decision | NotAnswered]] = field(default_factory=_unset)
    bootstrap_version: By[str, int | None] = field(default_factory=dict)  # qualifier
    lustre_file_systems: Whole[tuple[LustreAnswer, ...] | Partial[LustreAnswer]] = field(default_factory=_unset)
    file_system_backup: By[str, BackupAnswer | None] = field(default_factory=dict)  # backup ID
    # all there are, by ID; one that is missing does not exist
    interface_groups: Whole[Mapping[str, tuple[str, ...]] | Among[tuple[str, ...]]] = field(default_factory=_unset)
    bucket: By[str, BucketAnswer | None] = field(default_factory=dict)  # name
    bucket_settings: By[str, BucketSettings] = field(default_factory=dict)  # name
    container_image_exists: By[tuple[str, str, str], bool] = field(default_factory=dict)  # account, repository, tag
    kms_key: By[str, KmsKeyAnswer | None] = field(default_factory=dict)  # ARN
    kms_key_policy: By[str, Mapping[str, Any]] = field(default_factory=dict)  # ARN
    # all names there are; those with the prefix are given
    stack: By[str, StackAnswer | None] = field(default_factory=dict)  # name


@dataclass
class FakeAws:
    """Implements ``Aws`` from ``answers``; ``asked`` lists every question with its arguments, in order."""

    answers: Answers = field(default_factory=Answers)
    asked: list[tuple[object, ...]] = field(default_factory=list)

    def caller(self) -> Caller:
        self.asked.append(("caller",))
        return _whole(self.answers.caller)

    def quota(self, service: str, name: str, code: str | None) -> QuotaValue | None:
        self.asked.append(("quota", service, name, code))
        return _by_key(self.answers.quota, name)

    def usage(self, kind: str) -> Usage:
        self.asked.append(("usage", kind))
        try:
            found = cast("float | Usage", _by_key(self.answers.usage, kind))
        except NotAnswered as missing:
            unread = Unread(kind="thing", reason=missing.reason, action=missing.action, said=missing.said)
            return Usage(unread=(unread,))
        return found if isinstance(found, Usage) else Usage(at_least=found)

    def quota_requests(self, service: str, code: str) -> tuple[QuotaRequest, ...]:
        self.asked.append(("quota_requests", service, code))
        return _by_key(self.answers.quota_requests, (service, code))

    def training_plan(self, arn: str) -> TrainingPlan | None:
        self.asked.append(("training_plan", arn))
        return _by_key(self.answers.training_plan, arn)

    def training_plan_offerings(
        self,
        *,
        instance_type: str,
        count: int,
        duration_hours: int,
        start_after: datetime | None,
        end_before: datetime | None,
    ) -> tuple[Offering, ...]:
        self.asked.append(("training_plan_offerings", instance_type, count, duration_hours, start_after, end_before))
        wanted = (instance_type, count)
        return tuple(
            each
            for each in _whole(self.answers.training_plan_offerings)
            if (each.instance_type, each.count) == wanted and each.duration_hours in (duration_hours, None)
        )

    def hyperpod_clusters(self) -> Partial[HyperPodClusterAnswer]:
        self.asked.append(("hyperpod_clusters",))
        return _partial(self.answers.hyperpod_clusters)

    def zones(self) -> tuple[Zone, ...]:
        self.asked.append(("zones",))
        return _whole(self.answers.zones)

    def images(self, image_ids: Sequence[str]) -> Among[ImageAnswer]:
        self.asked.append(("images", tuple(image_ids)))
        return _among(image_ids, self.answers.images)

    def alarms(self, names: Sequence[str]) -> Among[str]:
        self.asked.append(("alarms", tuple(names)))
        return _among(names, self.answers.alarms)

    def instance_type_zones(self, ec2_names: Sequence[str]) -> Among[frozenset[str]]:
        self.asked.append(("instance_type_zones", tuple(ec2_names)))
        return _among(ec2_names, self.answers.instance_type_zones, frozenset())

    def endpoint_services(self, services: Sequence[str]) -> Among[frozenset[str]]:
        self.asked.append(("endpoint_services", tuple(services)))
        return _among(services, self.answers.endpoint_services, frozenset())

    def vpc(self, vpc_id: str) -> VpcAnswer | None:
        self.asked.append(("vpc", vpc_id))
        return _by_key(self.answers.vpc, vpc_id)

    def subnets(self, subnet_ids: Sequence[str]) -> Among[SubnetAnswer]:
        self.asked.append(("subnets", tuple(subnet_ids)))
        return _among(subnet_ids, self.answers.subnets)

    def route_tables(self, vpc_id: str) -> tuple[RouteTable, ...]:
        self.asked.append(("route_tables", vpc_id))
        return _by_key(self.answers.route_tables, vpc_id)

    def endpoints(self, vpc_id: str) -> tuple[Endpoint, ...]:
        self.asked.append(("endpoints", vpc_id))
        return _by_key(self.answers.endpoints, vpc_id)

    def security_groups(self, group_ids: Sequence[str]) -> Among[SecurityGroupAnswer]:
        self.asked.append(("security_groups", tuple(group_ids)))
        return _among(group_ids, self.answers.security_groups)

    def kubernetes_versions(self) -> tuple[KubernetesVersionAnswer, ...]:
        self.asked.append(("kubernetes_versions",))
        return _whole(self.answers.kubernetes_versions)

    def addon_versions(self, addon: str, kubernetes_version: str) -> AddonVersions | None:
        self.asked.append(("addon_versions", addon, kubernetes_version))
        return _by_key(self.answers.addon_versions, (addon, kubernetes_version))

    def eks_cluster(self, name: str) -> EksClusterAnswer | None:
        self.asked.append(("eks_cluster", name))
        return _by_key(self.answers.eks_cluster, name)

    def installed_addons(self, cluster: str) -> Partial[InstalledAddon]:
        self.asked.append(("installed_addons", cluster))
        try:
            found = cast(
                "tuple[InstalledAddon, ...] | Partial[InstalledAddon]", _by_key(self.answers.installed_addons, cluster)
            )
        except NotAnswered as missing:
            return Partial(broken_off=missing)
        return found if isinstance(found, Partial) else Partial(read=found)

    def kubernetes_api_groups(self, cluster: str) -> frozenset[str]:
        self.asked.append(("kubernetes_api_groups", cluster))
        return _by_key(self.answers.kubernetes_api_groups, cluster)

    def kubernetes_daemon_sets(self, cluster: str, namespace: str) -> Mapping[str, tuple[str, ...]]:
        self.asked.append(("kubernetes_daemon_sets", cluster, namespace))
        return _by_key(self.answers.kubernetes_daemon_sets, (cluster, namespace))

    def role(self, name: str) -> RoleAnswer | None:
        self.asked.append(("role", name))
        return _by_key(self.answers.role, name)

    def prometheus_workspace(self, arn: str) -> str | None:
        self.asked.append(("prometheus_workspace", arn))
        return _by_key(self.answers.prometheus_workspace, arn)

    def grafana_workspace(self, arn: str) -> str | None:
        self.asked.append(("grafana_workspace", arn))
        return _by_key(self.answers.grafana_workspace, arn)

    def topic(self, arn: str) -> TopicAnswer | None:
        self.asked.append(("topic", arn))
        return _by_key(self.answers.topic, arn)

    def event_bus_exists(self, name: str) -> bool:
        self.asked.append(("event_bus_exists", name))
        return _by_key(self.answers.event_bus_exists, name)

    def slack_workspaces(self) -> frozenset[str]:
        self.asked.append(("slack_workspaces",))
        return _whole(self.answers.slack_workspaces)

    def slack_channels(self) -> tuple[SlackChannelAnswer, ...]:
        self.asked.append(("slack_channels",))
        return _whole(self.answers.slack_channels)

    def policy_exists(self, arn: str) -> bool:
        self.asked.append(("policy_exists", arn))
        return _by_key(self.answers.policy_exists, arn)

    def simulate(
        self,
        principal_arn: str,
        actions: Sequence[str],
        *,
        resource: str = "*",
        context: Mapping[str, str] | None = None,
    ) -> Among[Decision]:
        self.asked.append(("simulate", principal_arn, tuple(actions), resource, dict(context or {})))
        decided = _whole(self.answers.simulate)
        found = {
            action: decided.get(
                f"{action} {resource}", decided.get(action, Decision(action=action, decision="allowed"))
            )
            for action in actions
        }
        unread = {action: each for action, each in found.items() if isinstance(each, NotAnswered)}
        return Among({action: each for action, each in found.items() if isinstance(each, Decision)}, unread)

    def bootstrap_version(self, qualifier: str) -> int | None:
        self.asked.append(("bootstrap_version", qualifier))
        return _by_key(self.answers.bootstrap_version, qualifier)

    def lustre_file_systems(self) -> Partial[LustreAnswer]:
        self.asked.append(("lustre_file_systems",))
        return _partial(self.answers.lustre_file_systems)

    def file_system_backup(self, backup_id: str) -> BackupAnswer | None:
        self.asked.append(("file_system_backup", backup_id))
        return _by_key(self.answers.file_system_backup, backup_id)

    def interface_groups(self, interface_ids: Sequence[str]) -> Among[tuple[str, ...]]:
        self.asked.append(("interface_groups", tuple(interface_ids)))
        return _among(interface_ids, self.answers.interface_groups)

    def bucket(self, name: str) -> BucketAnswer | None:
        self.asked.append(("bucket", name))
        return _by_key(self.answers.bucket, name)

    def bucket_settings(self, name: str) -> BucketSettings:
        self.asked.append(("bucket_settings", name))
        return _by_key(self.answers.bucket_settings, name)

    def container_image_exists(self, account: str, repository: str, tag: str) -> bool:
        self.asked.append(("container_image_exists", account, repository, tag))
        return _by_key(self.answers.container_image_exists, (account, repository, tag))

    def kms_key(self, arn: str) -> KmsKeyAnswer | None:
        self.asked.append(("kms_key", arn))
        return _by_key(self.answers.kms_key, arn)

    def kms_key_policy(self, arn: str) -> Mapping[str, Any]:
        self.asked.append(("kms_key_policy", arn))
        return _by_key(self.answers.kms_key_policy, arn)

    def stack(self, name: str) -> StackAnswer | None:
        self.asked.append(("stack", name))
        return _by_key(self.answers.stack, name)


def _whole(answer: AnswerT | NotAnswered) -> AnswerT:
    if isinstance(answer, NotAnswered):
        raise answer
    return answer


def _among(
    names: Sequence[str], there: Mapping[str, AnswerT] | Among[AnswerT] | NotAnswered, otherwise: AnswerT | None = None
) -> Among[AnswerT]:
    there = _whole(there)
    unread = there.unread if isinstance(there, Among) else {}
    known = there.read if isinstance(there, Among) else there
    read = {name: known[name] for name in names if name in known}
    if otherwise is not None:
        read = {name: known.get(name, otherwise) for name in names if name not in unread}
    return Among(read, {name: why for name, why in unread.items() if name in names})


def _partial(found: tuple[MemberT, ...] | Partial[MemberT] | NotAnswered) -> Partial[MemberT]:
    if isinstance(found, Partial):
        return found
    return Partial(broken_off=found) if isinstance(found, NotAnswered) else Partial(read=found)


def _by_key(answers: Mapping[KeyT, AnswerT | NotAnswered] | NotAnswered, key: KeyT) -> AnswerT:
    there = _whole(answers)
    if key not in there:
        raise NotAnswered(NOT_SET)
    return _whole(there[key])
