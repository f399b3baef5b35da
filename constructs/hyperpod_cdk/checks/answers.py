"""The questions that checks ask AWS and the shape of its answers. Without boto3: ``aws.py`` answers, or a test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Generic, Protocol, Self, TypeVar

from hyperpod_cdk.handlers.quota_gate.comparison import Usage
from hyperpod_cdk.handlers.quota_gate.reading import NotAnswered as NotAnswered  # noqa: PLC0414 - the checks' word too

MemberT = TypeVar("MemberT", bound="Named")
ThingT = TypeVar("ThingT")


class Named(Protocol):
    """Something that AWS lists by name and describes one by one."""

    @property
    def name(self) -> str:
        """The name by which it is listed."""
        ...


class Why(str):
    """Why something was not answered, with the words of it that answers about other things may share.

    ``causes`` are sentences that each say less than the one before; the last is the bare cause: ``the key K: AWS
    throttled kms:DescribeKey`` and ``AWS throttled kms:DescribeKey``. It is text wherever text is wanted; text that is
    made of it has no cause but itself.
    """

    __slots__ = ("causes",)
    causes: tuple[str, ...]

    def __new__(cls, text: str, *, causes: tuple[str, ...] = ()) -> Self:
        """Make a reason of its text; ``causes`` default to the text alone."""
        reason = super().__new__(cls, text)
        reason.causes = causes or (text,)
        return reason

    @classmethod
    def about(cls, what: str, reason: str) -> Self:
        """Say first what the question was about."""
        causes = causes_of(reason)
        return cls(f"{what}: {reason}", causes=(f"{what}: {causes[0]}", *causes))


def causes_of(reason: str) -> tuple[str, ...]:
    """Return the causes of a reason, the one that says most first; of plain text itself."""
    return reason.causes if isinstance(reason, Why) else (reason,)


class Refused(NotAnswered):
    """An error of AWS with its code. A question for which the code is an answer returns that answer."""

    def __init__(self, reason: str, *, action: str = "", said: str = "", code: str = "", message: str = "") -> None:
        super().__init__(reason, action=action, said=said)
        self.code = code
        self.message = message

    @property
    def is_of_no_stack(self) -> bool:
        """Whether CloudFormation says that there is no such stack; it has no code of its own for that."""
        return self.code == "ValidationError" and "does not exist" in self.message

    @property
    def is_of_no_import(self) -> bool:
        """Whether CloudFormation says that no stack imports an export; it has no code of its own for that."""
        return self.code == "ValidationError" and "is not imported by any stack" in self.message


def allowing(action: str, reason: str) -> str:
    """Say which IAM action to allow, as the end of ``reason``; empty if there is none, or if ``reason`` names it."""
    return f"; allow {action}" if action and action not in reason else ""


UNREADABLE: Final = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
"""What Python raises if a member of an answer is missing or has another type."""


def what_is_lost(error: Exception) -> str:
    """Say what one of ``UNREADABLE`` shows about an answer."""
    if isinstance(error, ArithmeticError):
        return "what should be a number is none"
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turn an incomplete answer into NotAnswered: it proves nothing."""
    try:
        yield
    except UNREADABLE as error:
        raise NotAnswered(f"the answer to {what} cannot be read: {what_is_lost(error)}") from None


@dataclass(frozen=True, kw_only=True)
class Undescribed:
    """A member of a list that AWS names and did not describe; ``arn`` and ``status`` only if the list has them."""

    name: str
    why: NotAnswered
    arn: str = ""
    status: str = ""


@dataclass(frozen=True, kw_only=True)
class Partial(Generic[MemberT]):
    """A list whose members AWS describes one by one: what of it was read, and what was not and why.

    It cannot be iterated as if it were complete. ``read`` are the members that were described, ``unread`` those that
    were only listed, ``broken_off`` says why the list itself was not read, or not completely. A member that was deleted
    after it was listed is in neither.
    """

    read: tuple[MemberT, ...] = ()
    unread: tuple[Undescribed, ...] = ()
    broken_off: NotAnswered | None = None

    @property
    def gaps(self) -> tuple[NotAnswered, ...]:
        """Why there may be more than ``read``; empty if everything was read."""
        return (*([self.broken_off] if self.broken_off is not None else []), *(each.why for each in self.unread))

    @property
    def names(self) -> frozenset[str]:
        """The names of all members that certainly exist, described or not."""
        return frozenset([*(each.name for each in self.read), *(each.name for each in self.unread)])

    def whole(self) -> tuple[MemberT, ...]:
        """Return everything; raises the first NotAnswered if something was not read."""
        for gap in self.gaps:
            raise gap
        return self.read

    def named(self, name: str) -> MemberT | None:
        """Return one member, or None if there is none; raises NotAnswered if that one was not read."""
        for member in self.read:
            if member.name == name:
                return member
        for listed in self.unread:
            if listed.name == name:
                raise listed.why
        if self.broken_off is not None:
            raise self.broken_off
        return None

    def has(self, name: str) -> bool:
        """Return whether there is one of this name, described or not; raises NotAnswered if the list is incomplete."""
        if name in self.names:
            return True
        if self.broken_off is not None:
            raise self.broken_off
        return False


class Among(Mapping[str, ThingT]):
    """Which of the requested names exist, with their values; a missing name does not exist.

    A name about which AWS did not answer is neither: looking it up raises NotAnswered, and so does iterating over
    all of them, so that a part is never used as the whole. ``read`` is that part.
    """

    def __init__(self, read: Mapping[str, ThingT], unread: Mapping[str, NotAnswered] | None = None) -> None:
        self.read = read
        self.unread: dict[str, NotAnswered] = {name: why for name, why in (unread or {}).items() if name not in read}

    def __getitem__(self, name: str) -> ThingT:
        if name in self.unread:
            raise self.unread[name]
        return self.read[name]

    def __iter__(self) -> Iterator[str]:
        for why in self.unread.values():
            raise why
        return iter(self.read)

    def __len__(self) -> int:
        return len(list(iter(self)))


class AwsAccessError(Exception):
    """AWS cannot be called: there are no credentials, or they expired. The message is one sentence with the fix."""


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Who asks. ``arn`` is that of GetCallerIdentity: a session's ARN for an assumed role."""

    account: str
    arn: str


@dataclass(frozen=True, kw_only=True)
class QuotaValue:
    """An applied quota value, or AWS's default if the account has none (``is_default``)."""

    name: str
    code: str
    value: float
    is_default: bool = False
    adjustable: bool = True


@dataclass(frozen=True, kw_only=True)
class QuotaRequest:
    """A request for an increase, as Service Quotas lists it."""

    request_id: str
    service: str
    code: str
    name: str
    desired: float
    status: str
    created: datetime | None = None
    case_id: str = ""

    @property
    def is_open(self) -> bool:
        """Whether the request is undecided."""
        return self.status in {"PENDING", "CASE_OPENED"}


@dataclass(frozen=True, kw_only=True)
class ReservedCapacity:
    """One block of a training plan. ``availability_zone_id`` is empty if AWS gives only the name (local zones)."""

    instance_type: str
    count: int
    status: str
    availability_zone: str
    availability_zone_id: str
    start: datetime | None
    end: datetime | None


@dataclass(frozen=True, kw_only=True)
class TrainingPlan:
    """A training plan as DescribeTrainingPlan gives it; a count is None if AWS does not show it."""

    arn: str
    name: str
    status: str
    status_message: str
    total: int | None
    available: int | None
    in_use: int | None
    unhealthy: int | None
    target_resources: tuple[str, ...]
    blocks: tuple[ReservedCapacity, ...]
    start: datetime | None
    end: datetime | None
    upfront_fee: str = ""
    currency: str = ""


@dataclass(frozen=True, kw_only=True)
class Offering:
    """A training plan on offer; AWS names its zones, not their IDs. ``duration_hours`` is the whole plan's, None if
    AWS does not show it."""

    offering_id: str
    instance_type: str
    count: int
    duration_hours: int | None
    upfront_fee: str
    currency: str
    target_resources: tuple[str, ...]
    blocks: tuple[ReservedCapacity, ...]


@dataclass(frozen=True, kw_only=True)
class InstancesInCluster:
    """One group of a HyperPod cluster. ``types`` are several in a flexible group."""

    group: str
    types: tuple[str, ...]
    current: int
    target: int
    spot: bool
    training_plan_arn: str


@dataclass(frozen=True, kw_only=True)
class HyperPodClusterAnswer:
    """A HyperPod cluster in the account."""

    name: str
    arn: str
    status: str
    eks_cluster_arn: str
    groups: tuple[InstancesInCluster, ...]
    autoscaled: bool = False
    checkpoints_in_memory: bool = False


@dataclass(frozen=True, kw_only=True)
class ImageAnswer:
    """An AMI that the account may use. ``volumes`` counts its EBS volumes, ``public`` says that all accounts may."""

    image_id: str
    owner: str
    state: str
    architecture: str
    volumes: int
    encrypted: bool
    public: bool


@dataclass(frozen=True, kw_only=True)
class Zone:
    """An availability zone or a local zone of the account. ``kind`` is ``availability-zone`` or ``local-zone``."""

    zone_id: str
    name: str
    state: str
    kind: str
    opted_in: bool


@dataclass(frozen=True, kw_only=True)
class VpcAnswer:
    """A VPC with all its IPv4 blocks, the primary one first; its attributes are queried one by one.

    ``owner`` is the account that it belongs to, which may share it; empty if not queried.
    """

    vpc_id: str
    cidrs: tuple[str, ...]
    tags: Mapping[str, str] = field(default_factory=dict)
    dns_support: bool | NotAnswered
    dns_hostnames: bool | NotAnswered
    owner: str = ""


@dataclass(frozen=True, kw_only=True)
class SubnetAnswer:
    """A subnet; ``free`` counts the addresses that are left in it."""

    subnet_id: str
    vpc_id: str
    availability_zone_id: str
    cidr: str
    free: int
    assigns_public_addresses: bool
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Route:
    """A route. ``target`` is the ID of its target (``nat-…``, ``igw-…``, ``tgw-…``, ``local``, ``vpce-…``)."""

    destination: str
    target: str
    state: str = "active"


@dataclass(frozen=True, kw_only=True)
class RouteTable:
    """A route table of a VPC; ``is_main`` serves every subnet without its own."""

    route_table_id: str
    is_main: bool
    subnet_ids: tuple[str, ...]
    routes: tuple[Route, ...]


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """A VPC endpoint. ``service`` is the last part of its name: ``s3``, ``ecr.api``."""

    endpoint_id: str
    service: str
    kind: str
    state: str
    route_table_ids: tuple[str, ...]
    subnet_ids: tuple[str, ...]
    security_group_ids: tuple[str, ...]
    private_dns: bool


@dataclass(frozen=True, kw_only=True)
class SecurityGroupRule:
    """One rule; ``protocol`` is ``-1`` for all. Groups, blocks and prefix lists are the other side."""

    protocol: str
    from_port: int | None
    to_port: int | None
    group_ids: tuple[str, ...]
    cidrs: tuple[str, ...]
    prefix_list_ids: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SecurityGroupAnswer:
    """A security group with its inbound and outbound rules."""

    group_id: str
    vpc_id: str
    ingress: tuple[SecurityGroupRule, ...]
    egress: tuple[SecurityGroupRule, ...]


@dataclass(frozen=True, kw_only=True)
class KubernetesVersionAnswer:
    """A Kubernetes version as EKS offers it today. ``status`` is STANDARD_SUPPORT, EXTENDED_SUPPORT or UNSUPPORTED."""

    version: str
    status: str
    end_of_standard_support: datetime | None
    end_of_extended_support: datetime | None


@dataclass(frozen=True, kw_only=True)
class AddonVersions:
    """The versions of one add-on for one Kubernetes version, newest first; ``default`` is what EKS installs."""

    addon: str
    kubernetes_version: str
    versions: tuple[str, ...]
    default: str


@dataclass(frozen=True, kw_only=True)
class InstalledAddon:
    """An add-on on an EKS cluster."""

    name: str
    version: str
    status: str


@dataclass(frozen=True, kw_only=True)
class EksClusterAnswer:
    """An EKS cluster in the account."""

    name: str
    arn: str
    status: str
    kubernetes_version: str
    authentication_mode: str
    vpc_id: str
    subnet_ids: tuple[str, ...]
    security_group_ids: tuple[str, ...]
    cluster_security_group_id: str
    endpoint: str
    endpoint_public: bool
    endpoint_private: bool
    public_access_cidrs: tuple[str, ...] | None
    """Who reaches the public endpoint; None if EKS does not show it."""
    certificate_authority: str
    oidc_issuer: str
    ip_family: str = "ipv4"
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RoleAnswer:
    """An IAM role; ``trusts`` are the service principals that may assume it."""

    name: str
    arn: str
    trusts: tuple[str, ...]
    boundary_arn: str = ""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What the policy simulator says of one action: ``allowed``, ``explicitDeny`` or ``implicitDeny``.

    ``unknown_keys`` are condition keys that a policy uses and that the simulated request did not have: a real request
    may have them, and the result may differ.
    """

    action: str
    decision: str
    denied_by_organization: bool = False
    denied_by_boundary: bool = False
    unknown_keys: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LustreChange:
    """A request to change a file system; ``target`` has the members of ``LustreAnswer`` that it was to change."""

    asked: datetime
    status: str
    target: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class LustreAnswer:
    """An FSx for Lustre file system in the account.

    ``capacity_gib`` is 0 on Intelligent-Tiering, ``throughput_capacity_mbps`` None elsewhere; ``metadata_iops`` None
    is automatic, or none to choose; ``provisioned_metadata_iops`` are those of either mode, None without a metadata
    configuration. ``network_interface_ids`` are those of its servers, ``changes`` the requests that FSx still lists.
    """

    file_system_id: str
    deployment_type: str
    capacity_gib: int
    subnet_ids: tuple[str, ...]
    lifecycle: str
    vpc_id: str = ""
    mount_name: str = ""
    dns_name: str = ""
    efa: bool = False
    metadata_iops: int | None = None
    provisioned_metadata_iops: int | None = None
    throughput_mbps_per_tib: int | None = None
    throughput_capacity_mbps: int | None = None
    network_interface_ids: tuple[str, ...] = ()
    changes: tuple[LustreChange, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The ID, by which FSx lists it."""
        return self.file_system_id


@dataclass(frozen=True, kw_only=True)
class BackupAnswer:
    """A backup of an FSx file system; ``kind`` is the file system's: LUSTRE and the like."""

    backup_id: str
    lifecycle: str
    kind: str
    capacity_gib: int


@dataclass(frozen=True, kw_only=True)
class TopicAnswer:
    """An SNS topic; ``kms_key`` is the ID, alias or ARN of its key, empty if its messages are not encrypted.

    ``policy`` says who may publish, None if AWS does not show it.
    """

    arn: str
    kms_key: str
    policy: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class SlackChannelAnswer:
    """A Slack channel that receives notifications of the account, under the name of its configuration."""

    workspace_id: str
    channel_id: str
    name: str


@dataclass(frozen=True, kw_only=True)
class BucketAnswer:
    """An S3 bucket that the caller can access."""

    name: str
    region: str


@dataclass(frozen=True, kw_only=True)
class BucketSettings:
    """The settings of a bucket, each queried separately.

    ``owned``: the caller's account owns it. ``kms_key`` is empty if S3's own key encrypts.
    """

    owned: bool | NotAnswered
    public: bool | NotAnswered
    versioned: bool | NotAnswered
    kms_key: str | NotAnswered


@dataclass(frozen=True, kw_only=True)
class KmsKeyAnswer:
    """A KMS key as DescribeKey gives it. ``state`` is Enabled, Disabled, PendingDeletion and the like."""

    arn: str
    state: str
    spec: str
    usage: str


@dataclass(frozen=True, kw_only=True)
class StackAnswer:
    """A CloudFormation stack by name; ``is_protected`` is its termination protection."""

    name: str
    status: str
    status_reason: str = ""
    is_protected: bool = False


class Aws(Protocol):
    """What checks may ask. Every question is asked at most once in a run, independent of the caller.

    Every method raises NotAnswered if AWS gave no answer. None, or an empty tuple, means that AWS said there is no
    such thing.
    """

    def caller(self) -> Caller:
        """The caller."""
        ...

    def quota(self, service: str, name: str, code: str | None) -> QuotaValue | None:
        """The value of the quota whose normalised name is ``name``; ``code`` is a hint. None: no quota of that name."""
        ...

    def usage(self, kind: str) -> Usage:
        """How much of something others than this environment use; kinds are those of the quota gate.

        The only question that never raises NotAnswered: what was not read is a part of the answer.
        """
        ...

    def quota_requests(self, service: str, code: str) -> tuple[QuotaRequest, ...]:
        """Every increase that was ever requested for a quota, the newest first."""
        ...

    def training_plan(self, arn: str) -> TrainingPlan | None:
        """A plan of this account and region."""
        ...

    def training_plan_offerings(
        self,
        *,
        instance_type: str,
        count: int,
        duration_hours: int,
        start_after: datetime | None,
        end_before: datetime | None,
    ) -> tuple[Offering, ...]:
        """Plans on offer for HyperPod clusters, for exactly this duration."""
        ...

    def hyperpod_clusters(self) -> Partial[HyperPodClusterAnswer]:
        """The HyperPod clusters of the account in the region."""
        ...

    def zones(self) -> tuple[Zone, ...]:
        """Every zone of the region, including those that are not opted in."""
        ...

    def images(self, image_ids: Sequence[str]) -> Among[ImageAnswer]:
        """The AMIs that the account may use among these, by ID."""
        ...

    def alarms(self, names: Sequence[str]) -> Among[str]:
        """The state (OK, ALARM, INSUFFICIENT_DATA) of the CloudWatch alarms that exist among these, by name."""
        ...

    def instance_type_zones(self, ec2_names: Sequence[str]) -> Among[frozenset[str]]:
        """For each EC2 type (``p5.48xlarge``) the IDs of the zones that offer it; empty: none in the region."""
        ...

    def vpc(self, vpc_id: str) -> VpcAnswer | None:
        """A VPC with its blocks and DNS attributes."""
        ...

    def subnets(self, subnet_ids: Sequence[str]) -> Among[SubnetAnswer]:
        """The subnets that exist among these, by ID."""
        ...

    def route_tables(self, vpc_id: str) -> tuple[RouteTable, ...]:
        """The route tables of a VPC."""
        ...

    def endpoints(self, vpc_id: str) -> tuple[Endpoint, ...]:
        """The VPC endpoints of a VPC."""
        ...

    def endpoint_services(self, services: Sequence[str]) -> Among[frozenset[str]]:
        """For each service by the end of its endpoint's name (``ecr.api``) the IDs of the zones that have it."""
        ...

    def security_groups(self, group_ids: Sequence[str]) -> Among[SecurityGroupAnswer]:
        """The security groups that exist among these, by ID."""
        ...

    def kubernetes_versions(self) -> tuple[KubernetesVersionAnswer, ...]:
        """The Kubernetes versions that EKS offers."""
        ...

    def addon_versions(self, addon: str, kubernetes_version: str) -> AddonVersions | None:
        """The versions of an add-on for a Kubernetes version, empty for any; None: EKS has no such add-on for it."""
        ...

    def eks_cluster(self, name: str) -> EksClusterAnswer | None:
        """An EKS cluster of the account in the region."""
        ...

    def installed_addons(self, cluster: str) -> Partial[InstalledAddon]:
        """The EKS add-ons of a cluster."""
        ...

    def kubernetes_api_groups(self, cluster: str) -> frozenset[str]:
        """The API groups (``kueue.x-k8s.io``) that a cluster's API server serves to the caller."""
        ...

    def kubernetes_daemon_sets(self, cluster: str, namespace: str) -> Mapping[str, tuple[str, ...]]:
        """The container images of each DaemonSet of a namespace (``aws-node`` shows the VPC CNI's version)."""
        ...

    def role(self, name: str) -> RoleAnswer | None:
        """An IAM role of the account."""
        ...

    def policy_exists(self, arn: str) -> bool:
        """Whether a managed policy exists."""
        ...

    def simulate(
        self,
        principal_arn: str,
        actions: Sequence[str],
        *,
        resource: str = "*",
        context: Mapping[str, str] | None = None,
    ) -> Among[Decision]:
        """The results of IAM's policy simulator for actions of an identity on a resource, by ARN, or on all resources.

        By action, for every requested one.

        ``context`` are condition keys of the request (``iam:AWSServiceName``) in addition to ``aws:RequestedRegion``,
        which is always that of the environment.
        """
        ...

    def bootstrap_version(self, qualifier: str) -> int | None:
        """The version of the CDK bootstrap stack in the region; None: not bootstrapped."""
        ...

    def lustre_file_systems(self) -> Partial[LustreAnswer]:
        """Every FSx for Lustre file system of the account in the region."""
        ...

    def file_system_backup(self, backup_id: str) -> BackupAnswer | None:
        """A backup of an FSx file system, of the account in the region."""
        ...

    def interface_groups(self, interface_ids: Sequence[str]) -> Among[tuple[str, ...]]:
        """The security groups of the network interfaces that exist among these, by the interface's ID."""
        ...

    def bucket(self, name: str) -> BucketAnswer | None:
        """An S3 bucket; None: no bucket of that name anywhere."""
        ...

    def bucket_settings(self, name: str) -> BucketSettings:
        """The settings of a bucket that the caller can access."""
        ...

    def container_image_exists(self, account: str, repository: str, tag: str) -> bool:
        """Whether a repository of an account's ECR registry, in the same region, holds an image with this tag."""
        ...

    def kms_key(self, arn: str) -> KmsKeyAnswer | None:
        """A KMS key of the region, of any account; None: there is none."""
        ...

    def kms_key_policy(self, arn: str) -> Mapping[str, Any]:
        """The policy of a KMS key of the account, as a document."""
        ...

    def prometheus_workspace(self, arn: str) -> str | None:
        """The status of a workspace of managed Prometheus in the region, such as ACTIVE."""
        ...

    def grafana_workspace(self, arn: str) -> str | None:
        """The status of a workspace of managed Grafana in the region, such as ACTIVE."""
        ...

    def topic(self, arn: str) -> TopicAnswer | None:
        """An SNS topic of the region, of any account that allows the caller to read it; None: there is none."""
        ...

    def event_bus_exists(self, name: str) -> bool:
        """Whether the account has an EventBridge event bus of this name in the region."""
        ...

    def slack_workspaces(self) -> frozenset[str]:
        """The IDs of the Slack workspaces that the account may write to."""
        ...

    def slack_channels(self) -> tuple[SlackChannelAnswer, ...]:
        """The Slack channels that the account writes to, in any region."""
        ...

    def stack(self, name: str) -> StackAnswer | None:
        """A CloudFormation stack by name; None: there is none."""
        ...


@dataclass(frozen=True, kw_only=True)
class Question:
    """The API calls behind one method of ``Aws``, and the IAM actions they need (the same unless given).

    ``thing`` is the kind of thing that the question names, if it names one (``VPC``); AWS may answer that it does not
    exist: with None, or by leaving it out of a mapping. Empty: the question lists what exists.
    """

    calls: tuple[str, ...]
    actions: tuple[str, ...]
    thing: str = ""

    def missing(self, arguments: Sequence[object], answer: object) -> tuple[str, ...]:
        """Name what was queried and does not exist, by AWS's answer."""
        if not self.thing:
            return ()
        if answer is None:
            name = str(arguments[0]).rpartition("/")[2] if arguments else ""
            return (f"there is no {self.thing} {name}".rstrip(),)
        if isinstance(answer, Among) and arguments and isinstance(arguments[0], list | tuple):
            known = {*answer.read, *answer.unread}
            return tuple(f"there is no {self.thing} {name}" for name in arguments[0] if name not in known)
        return ()


def _question(*calls: str, actions: tuple[str, ...] | None = None, thing: str = "") -> Question:
    return Question(calls=calls, actions=calls if actions is None else actions, thing=thing)


_CLUSTERS = ("sagemaker:ListClusters", "sagemaker:DescribeCluster")

QUESTIONS: Mapping[str, Question] = {
    "caller": _question("sts:GetCallerIdentity"),
    "quota": _question(
        "servicequotas:GetServiceQuota",
        "servicequotas:GetAWSDefaultServiceQuota",
        "servicequotas:ListServiceQuotas",
        "servicequotas:ListAWSDefaultServiceQuotas",
        thing="quota of the service",
    ),
    "usage": _question(
        *_CLUSTERS,
        "ec2:DescribeVpcs",
        "ec2:DescribeAddresses",
        "ec2:DescribeInternetGateways",
        "ec2:DescribeNatGateways",
        "ec2:DescribeNetworkInterfaces",
        "ec2:DescribeSecurityGroups",
        "ec2:DescribeVpcEndpoints",
        "ec2:DescribeSubnets",
        "eks:ListClusters",
        "fsx:DescribeFileSystems",
        "sagemaker:ListTrainingPlans",
    ),
    "quota_requests": _question("servicequotas:ListRequestedServiceQuotaChangeHistoryByQuota"),
    "training_plan": _question("sagemaker:DescribeTrainingPlan", thing="training plan"),
    "training_plan_offerings": _question("sagemaker:SearchTrainingPlanOfferings"),
    "hyperpod_clusters": _question(*_CLUSTERS),
    "zones": _question("ec2:DescribeAvailabilityZones"),
    "images": _question("ec2:DescribeImages", thing="AMI"),
    "alarms": _question("cloudwatch:DescribeAlarms", thing="alarm"),
    "instance_type_zones": _question("ec2:DescribeInstanceTypeOfferings"),
    "vpc": _question("ec2:DescribeVpcs", "ec2:DescribeVpcAttribute", thing="VPC"),
    "subnets": _question("ec2:DescribeSubnets", thing="subnet"),
    "route_tables": _question("ec2:DescribeRouteTables"),
    "endpoints": _question("ec2:DescribeVpcEndpoints"),
    "endpoint_services": _question("ec2:DescribeVpcEndpointServices"),
    "security_groups": _question("ec2:DescribeSecurityGroups", thing="security group"),
    "kubernetes_versions": _question("eks:DescribeClusterVersions"),
    "addon_versions": _question("eks:DescribeAddonVersions", thing="add-on"),
    "eks_cluster": _question("eks:DescribeCluster", thing="EKS cluster"),
    "installed_addons": _question("eks:ListAddons", "eks:DescribeAddon"),
    # the API server's own authorisation decides, by the access entry of the caller
    "kubernetes_api_groups": _question("eks:DescribeCluster"),
    "kubernetes_daemon_sets": _question("eks:DescribeCluster"),
    "role": _question("iam:GetRole", thing="role"),
    "prometheus_workspace": _question("aps:DescribeWorkspace", thing="workspace"),
    "grafana_workspace": _question("grafana:DescribeWorkspace", thing="workspace"),
    "topic": _question("sns:GetTopicAttributes", thing="SNS topic"),
    "event_bus_exists": _question("events:DescribeEventBus"),
    "slack_workspaces": _question("chatbot:DescribeSlackWorkspaces"),
    "slack_channels": _question("chatbot:DescribeSlackChannelConfigurations"),
    "policy_exists": _question("iam:GetPolicy"),
    "simulate": _question("iam:GetRole", "iam:SimulatePrincipalPolicy"),
    "bootstrap_version": _question("ssm:GetParameter", thing="CDK bootstrap stack with the qualifier"),
    "lustre_file_systems": _question("fsx:DescribeFileSystems"),
    "file_system_backup": _question("fsx:DescribeBackups", thing="backup"),
    "interface_groups": _question("ec2:DescribeNetworkInterfaces", thing="network interface"),
    "bucket": _question("s3:HeadBucket", actions=("s3:ListBucket",), thing="bucket"),
    "bucket_settings": _question(
        "s3:ListBuckets",
        "s3:GetBucketPolicyStatus",
        "s3:GetBucketVersioning",
        "s3:GetBucketEncryption",
        actions=(
            "s3:ListAllMyBuckets",
            "s3:GetBucketPolicyStatus",
            "s3:GetBucketVersioning",
            "s3:GetEncryptionConfiguration",
        ),
    ),
    "container_image_exists": _question("ecr:DescribeImages"),
    "kms_key": _question("kms:DescribeKey", thing="KMS key"),
    "kms_key_policy": _question("kms:GetKeyPolicy"),
    "stack": _question("cloudformation:DescribeStacks", thing="stack"),
}
"""Every question of ``Aws`` with what it calls. The calls are those that may be made; not all are made every time."""
