"""Asks AWS: typed answers over botocore, each question once in a run, errors turned into ours.

The only module of the checks that imports botocore. It is imported where a command asks AWS, never for ``--offline``.
"""

from __future__ import annotations

import base64
import copy
import json
import os
import random
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeVar, cast

import botocore.session
from botocore import exceptions as errors
from botocore.config import Config
from botocore.model import ServiceId
from botocore.parsers import ResponseParserError
from botocore.signers import RequestSigner

from hyperpod_cdk.catalog.arns import arn_parts
from hyperpod_cdk.catalog.notifications import CHAT_REGION
from hyperpod_cdk.checks import api_server, aws_shapes
from hyperpod_cdk.checks.answers import (
    UNREADABLE,
    AddonVersions,
    Among,
    AwsAccessError,
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
    Refused,
    RoleAnswer,
    RouteTable,
    SecurityGroupAnswer,
    SlackChannelAnswer,
    StackAnswer,
    SubnetAnswer,
    TopicAnswer,
    TrainingPlan,
    Undescribed,
    VpcAnswer,
    Zone,
    what_is_lost,
)
from hyperpod_cdk.checks.side_by_side import deepen_to, depth, start, together
from hyperpod_cdk.handlers.quota_gate.comparison import Usage
from hyperpod_cdk.handlers.quota_gate.reading import (
    Listed,
    NoSuchQuota,
    NotFound,
    Own,
    is_gone,
    quoted,
    read_quota,
    used,
)


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long to wait for AWS.

    AWS's endpoints accept a connection within some 300 ms from anywhere; a slow one is a blocked one. The slowest
    question, SimulatePrincipalPolicy for a hundred actions, takes some seconds. ``attempts`` counts the first one too:
    where every third call is throttled, one of 700 fails six times. ``call_s`` bounds a call with all its attempts,
    pauses and look-ups of names.
    """

    connect_timeout_s: float = 3.0
    read_timeout_s: float = 8.0
    attempts: int = 6
    call_s: float = 20.0


_FIRST_PAUSE_S = 0.25
_LONGEST_PAUSE_S = 2.0
"""Bounds of the random pause after a throttled call: the first one, which doubles each time, and the longest."""

MOST_CALLS_AT_ONCE = 48
"""Calls in flight, and connections kept for each service: enough for every check, too few to be throttled for."""

MOST_PAGES = 400
"""No account has more pages of anything; an answer that goes on is a broken one."""

ALARM_NAMES = 100
"""How many names DescribeAlarms takes."""
FILTER_VALUES = 200
"""EC2 takes so many values in one filter."""

SIMULATED_ACTIONS = 100
"""Actions in one SimulatePrincipalPolicy: as many results as IAM puts on a page when it is not asked for more.

IAM's API reference gives no limit to the list of actions.
"""

TOKEN_LIFETIME_S = 60
"""Of the presigned request inside an EKS token, as ``aws eks get-token`` makes it."""

_REGIONS = {"chatbot": CHAT_REGION}
"""Services of the whole account that answer elsewhere than in the region of the cluster."""

_PREFIXES = {"service-quotas": "servicequotas", "amp": "aps"}
_ACTIONS = {
    "s3:HeadBucket": "s3:ListBucket",
    "s3:ListBuckets": "s3:ListAllMyBuckets",
    "s3:ListObjectsV2": "s3:ListBucket",
    "s3:GetBucketEncryption": "s3:GetEncryptionConfiguration",
    "s3:GetPublicAccessBlock": "s3:GetBucketPublicAccessBlock",
}

_DENIED = re.compile(r"AccessDenied|Unauthorized(Operation|Access)|NotAuthorized|^Forbidden|^403$|AuthorizationError")
_THROTTLED = re.compile(
    r"Thrott|TooManyRequests|RequestLimitExceeded|SlowDown|BandwidthLimitExceeded|^429$|^Limit.*Rate"
)
_EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired"})
_NOT_ACCEPTED = frozenset(
    {
        "AuthFailure",
        "IncompleteSignature",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "MissingAuthenticationToken",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
_NAMED_ACTION = re.compile(r"not authorized to perform: ([a-zA-Z0-9-]+:[a-zA-Z0-9*]+)")
_POLICY_TO_BLAME = re.compile(r"(?:explicit deny in an? |because no )((?:[A-Za-z-]+ )*?(?:policy|boundary))\b")
"""IAM's user guide, "Troubleshoot access denied error messages": both forms of the sentence, the kinds of policy."""
_WHO_CHANGES = {
    "service control policy": "only who manages the organization changes it",
    "resource control policy": "only who manages the organization changes it",
    "permissions boundary": "another policy for the caller does not help: the boundary has to allow it, too",
    "session policy": "it came with the session: assume the role without it, or with one that allows it",
    "VPC endpoint policy": "it belongs to the VPC endpoint that the call goes through",
    "resource-based policy": "it belongs to what was asked about, and its owner changes it",
}
"""Whose a policy is, where adding a right to the caller does not help."""
_CLOCK = re.compile(r"Signature (?:expired|not yet current)|RequestTimeTooSkewed|difference between the request time")
"""What AWS says of a signature with a wrong time (aws-cli issue 6676, aws-sdk-js issue 2565; S3's error responses)."""
_CLOCK_REASON = "the clock of this machine is wrong, so that AWS does not take its signatures; set it by NTP"
_NOT_ENABLED = frozenset({"OptInRequired"})
_NO_CREDENTIALS = (
    errors.NoCredentialsError,
    errors.PartialCredentialsError,
    errors.CredentialRetrievalError,
    errors.SSOError,
    errors.TokenRetrievalError,
)
_NOT_REACHED = (
    errors.EndpointConnectionError,
    errors.ConnectTimeoutError,
    errors.ProxyConnectionError,
    errors.SSLError,
)


def configured_region() -> str | None:
    """Give the region of the AWS configuration, as the AWS CLI finds it; None where there is none, or no profile."""
    try:
        # botocore does not look at the variable that the AWS CLI looks at first
        found = os.environ.get("AWS_REGION") or botocore.session.Session().get_config_variable("region")
    except errors.BotoCoreError:
        return None
    return str(found) if found else None


class _TooLongError(Exception):
    """A call took longer than ``Patience.call_s``."""


@dataclass
class _Attempts:
    """What a call has met so far: requests sent, and the code of the last error of AWS."""

    made: int = 0
    code: str = ""

    @property
    def is_throttled(self) -> bool:
        """Whether the last answer said that there were too many requests."""
        return _THROTTLED.search(self.code) is not None


_SENTENCES: tuple[tuple[Any, str], ...] = (
    ((errors.ReadTimeoutError, _TooLongError), "{name} gave no answer within {seconds:g} s{times}"),
    (errors.HTTPClientError, "the connection broke off during {name}{times}"),
    (_NO_CREDENTIALS, "there are no credentials any more for {name}: {error}"),
    (errors.ParamValidationError, "{name} cannot be asked: {error}"),
    (ResponseParserError, "the answer to {name} is not whole, or does not come from AWS"),
    (Exception, "the answer to {name} cannot be read: {error}"),
)
"""What to say of an error that is not AWS's own; the first kind that fits."""

_ACCESS_SENTENCES: tuple[tuple[Any, str], ...] = (
    (
        (errors.UnauthorizedSSOTokenError, errors.SSOTokenLoadError, errors.TokenRetrievalError),
        "the AWS session of IAM Identity Center has ended; run 'aws sso login'",
    ),
    (errors.NoCredentialsError, "no AWS credentials; set AWS_PROFILE or run 'aws sso login'"),
    (_NO_CREDENTIALS, "no AWS credentials: {error}; correct the profile"),
    (_NOT_REACHED, "AWS is out of reach: {error}; check the network, its proxy and AWS_ENDPOINT_URL"),
)
_LARGEST_PAGE = 1000
_LONGEST_REASON = 300

AnswerT = TypeVar("AnswerT")
ItemT = TypeVar("ItemT")


@dataclass(frozen=True, kw_only=True)
class Call:
    """One API call that was made: ``depth`` counts the calls that had to end before it, and itself."""

    service: str
    operation: str
    seconds: float
    depth: int
    retries: int

    @property
    def name(self) -> str:
        """Give the call as IAM names its action: ``ec2:DescribeVpcs``."""
        return f"{self.service}:{self.operation}"


class _OtherAccount(NotAnswered):
    """The credentials are those of an account that is not the environment's."""


class _NoClient(NotAnswered):
    """botocore cannot even be set up: a profile that is not there, a setting that it cannot read."""


@dataclass(frozen=True)
class _Kept:
    """An answer, or why there is none, with the depth at which it came."""

    answer: Any
    missing: NotAnswered | None
    depth: int


class LiveAws:
    """Answers every question of ``Aws`` from one account in one region, and is the ``Api`` of the quota gate's code.

    A question costs its calls once in a run, whoever asks and from whichever thread. ``calls`` are those made so far.
    Nothing but NotAnswered leaves a question, and AwsAccessError leaves ``open``.
    """

    @classmethod
    def open(
        cls,
        *,
        region: str,
        account: str,
        own: Own,
        session: botocore.session.Session | None = None,
        patience: Patience | None = None,
    ) -> LiveAws:
        """Ask AWS who the credentials belong to; they are found as the AWS CLI finds them.

        ``AWS_ENDPOINT_URL`` is honoured. ``account`` is whose answers count, empty for that of the credentials.
        ``own`` is what ``usage`` does not count. Raises AwsAccessError, one sentence with the fix, where there are no
        credentials that AWS accepts or where no answer of AWS comes. Where STS refuses for another reason the questions
        say so, one by one.
        """
        start()
        aws = cls(
            region=region,
            account=account,
            own=own,
            session=session or botocore.session.Session(),
            patience=patience or Patience(),
        )
        try:
            aws.caller()
        except _NoClient as missing:
            raise AwsAccessError(missing.reason) from None
        except NotAnswered as missing:
            sentence = _no_access(missing, region)
            if sentence:
                raise AwsAccessError(sentence) from None
        return aws

    def __init__(
        self, *, region: str, account: str, own: Own, session: botocore.session.Session, patience: Patience
    ) -> None:
        self._region = region
        self._account = account
        self._own = own
        self._session = session
        self._patience = patience
        self._config = Config(
            region_name=region,
            connect_timeout=patience.connect_timeout_s,
            read_timeout=patience.read_timeout_s,
            # not adaptive: that slows down every call of a service once one was throttled (26 s in place of 3)
            retries={"mode": "standard", "total_max_attempts": patience.attempts},
            max_pool_connections=MOST_CALLS_AT_ONCE,
        )
        self._calls: list[Call] = []
        self._clients: dict[str, Any] = {}
        # loading service models is work of the processor: side by side it only takes longer
        self._making_client = threading.Lock()
        self._slots = threading.BoundedSemaphore(MOST_CALLS_AT_ONCE)
        self._answers: dict[object, Future[_Kept]] = {}
        self._answering = threading.Lock()
        self._out_of_reach: dict[str, NotAnswered] = {}
        self._current = threading.local()

    def require_account(self) -> None:
        """Raise AwsAccessError where no question can have an answer: the credentials are not the environment's."""
        try:
            self._hold_account()
        except _OtherAccount as missing:
            raise AwsAccessError(f"{missing.reason}; set AWS_PROFILE to a profile of {self._account}") from None
        except NotAnswered as missing:
            raise AwsAccessError(missing.sentence) from None

    @property
    def calls(self) -> tuple[Call, ...]:
        """Every call that was made, in the order in which they ended."""
        return tuple(self._calls)

    @property
    def depth(self) -> int:
        """The longest chain of calls of which each had to wait for the one before."""
        return max((call.depth for call in self._calls), default=0)

    def call(self, service: str, operation: str, **params: Any) -> Mapping[str, Any]:
        """Make one call, once in a run; raises NoSuchQuota or NotFound for what is not there, else NotAnswered.

        ``service`` and ``operation`` are boto3's names: ``ec2``, ``describe_vpcs``.
        """
        try:
            return cast("Mapping[str, Any]", self._asked(service, operation, params))
        except Refused as refused:
            if refused.code == "NoSuchResourceException":
                raise NoSuchQuota(refused.reason) from None
            if service == "sagemaker" and _is_missing_from_sagemaker(refused):
                raise NotFound(refused.reason) from None
            raise

    def send(self, service: str, operation: str, **params: Any) -> Mapping[str, Any]:
        """Make one call, each time it is asked for: for what changes meanwhile. Raises NotAnswered."""
        return cast("Mapping[str, Any]", self._send(service, operation, params))

    def listed(self, service: str, operation: str, key: str, **params: Any) -> Listed:
        """Make a call as often as there are pages, once in a run; give the items of ``key`` of those that came."""

        def ask() -> Listed:
            items: list[Any] = []
            try:
                items.extend(self._pages(service, operation, key, params))
            except NotAnswered as missing:
                return Listed(items=items, missing=missing)
            return Listed(items=items)

        return self._once(("listed", service, operation, _frozen(params)), ask)

    def pages(self, service: str, operation: str, key: str, **params: Any) -> list[Any]:
        """Give the items of ``key`` of all pages; raises NotAnswered where one did not come."""
        return self.listed(service, operation, key, **params).whole()

    def each(self, function: Callable[[ItemT], AnswerT], items: Iterable[ItemT]) -> list[AnswerT]:
        """Call ``function`` with each item side by side; results in order, the first error raised."""
        results = together(function, items)
        for result in results:
            if isinstance(result, NotAnswered):
                raise result
        return cast("list[AnswerT]", results)

    def caller(self) -> Caller:
        answer = self._asked("sts", "get_caller_identity", {})
        with _read("sts:GetCallerIdentity"):
            return Caller(account=answer["Account"], arn=answer["Arn"])

    def quota(self, service: str, name: str, code: str | None) -> QuotaValue | None:
        with _read("Service Quotas"):
            try:
                found = read_quota(self, service, name, code)
            except NoSuchQuota:
                return None
            return QuotaValue(
                name=found.name,
                code=found.code,
                value=found.value,
                is_default=found.is_default,
                adjustable=found.is_adjustable,
            )

    def usage(self, kind: str) -> Usage:
        return used(self, kind, self._own)

    def quota_requests(self, service: str, code: str) -> tuple[QuotaRequest, ...]:
        operation = "list_requested_service_quota_change_history_by_quota"
        try:
            rows = self.pages("service-quotas", operation, "RequestedQuotas", ServiceCode=service, QuotaCode=code)
        except Refused as refused:
            if refused.code == "NoSuchResourceException":
                return ()
            raise
        return _newest_first(rows)

    def training_plan(self, arn: str) -> TrainingPlan | None:
        region, account = _place(arn)
        here = self._account or self.caller().account
        if (region, account) != (self._region, here):
            raise NotAnswered(
                f"the plan is in {region or 'no region'} of account {account or 'unknown'}, "
                f"the environment in {self._region} of {here}"
            )
        answer = self._found(
            "sagemaker", "describe_training_plan", {"TrainingPlanName": arn}, _is_missing_from_sagemaker
        )
        with _read("sagemaker:DescribeTrainingPlan"):
            return None if answer is None else aws_shapes.training_plan(answer)

    def training_plan_offerings(
        self,
        *,
        instance_type: str,
        count: int,
        duration_hours: int,
        start_after: datetime | None,
        end_before: datetime | None,
    ) -> tuple[Offering, ...]:
        params: dict[str, Any] = {
            "InstanceType": instance_type,
            "InstanceCount": count,
            "DurationHours": duration_hours,
            "TargetResources": ["hyperpod-cluster"],
        }
        if start_after is not None:
            params["StartTimeAfter"] = start_after
        if end_before is not None:
            params["EndTimeBefore"] = end_before
        answer = self._asked("sagemaker", "search_training_plan_offerings", params)
        with _read("sagemaker:SearchTrainingPlanOfferings"):
            rows = answer["TrainingPlanOfferings"]
            return tuple(aws_shapes.offering(row, instance_type=instance_type, count=count) for row in rows)

    def hyperpod_clusters(self) -> Partial[HyperPodClusterAnswer]:
        listed = self.listed("sagemaker", "list_clusters", "ClusterSummaries")
        with _read("sagemaker:ListClusters"):
            rows = [
                _Row(name=row["ClusterName"], arn=row.get("ClusterArn", ""), status=row.get("ClusterStatus", ""))
                for row in listed.items
            ]

        def describe(name: str) -> HyperPodClusterAnswer | None:
            cluster = self._found("sagemaker", "describe_cluster", {"ClusterName": name}, _is_missing_from_sagemaker)
            with _read("sagemaker:DescribeCluster"):
                return None if cluster is None else aws_shapes.hyperpod_cluster(name, cluster)

        return _partial(listed, rows, describe)

    def zones(self) -> tuple[Zone, ...]:
        answer = self._asked("ec2", "describe_availability_zones", {"AllAvailabilityZones": True})
        with _read("ec2:DescribeAvailabilityZones"):
            return tuple(aws_shapes.zone(row) for row in answer["AvailabilityZones"])

    def images(self, image_ids: Sequence[str]) -> Among[ImageAnswer]:
        return self._those_of(image_ids, _IMAGES, lambda row: (row["ImageId"], aws_shapes.image(row)))

    def alarms(self, names: Sequence[str]) -> Among[str]:
        kinds = ["MetricAlarm", "CompositeAlarm"]

        def ask(batch: Sequence[str]) -> tuple[dict[str, str], NotAnswered | None]:
            asked = {"AlarmNames": list(batch), "AlarmTypes": kinds}
            answer = self._asked("cloudwatch", "describe_alarms", asked)
            with _read("cloudwatch:DescribeAlarms"):
                rows = (*answer["MetricAlarms"], *answer.get("CompositeAlarms", ()))
                return {row["AlarmName"]: row["StateValue"] for row in rows}, None

        return _among(names, ALARM_NAMES, ask)

    def instance_type_zones(self, ec2_names: Sequence[str]) -> Among[frozenset[str]]:
        def ask(batch: Sequence[str]) -> tuple[dict[str, frozenset[str]], NotAnswered | None]:
            # each type has several rows, so that none is known before the last page
            rows = self._filtered(_OFFERINGS, batch, LocationType="availability-zone-id").whole()
            with _read("ec2:DescribeInstanceTypeOfferings"):
                pairs = [(row["InstanceType"], row["Location"]) for row in rows]
            return {name: frozenset(zone for of, zone in pairs if of == name) for name in batch}, None

        return _among(ec2_names, FILTER_VALUES, ask)

    def vpc(self, vpc_id: str) -> VpcAnswer | None:
        def ask(attribute: str) -> Any:
            if not attribute:
                return self._filtered(_VPCS, [vpc_id]).whole()
            answer = self._found(
                "ec2",
                "describe_vpc_attribute",
                {"VpcId": vpc_id, "Attribute": attribute},
                lambda refused: refused.code == "InvalidVpcID.NotFound",
            )
            with _read("ec2:DescribeVpcAttribute"):
                return None if answer is None else answer[f"{attribute[:1].upper()}{attribute[1:]}"]["Value"]

        rows, support, hostnames = together(ask, ("", "enableDnsSupport", "enableDnsHostnames"))
        if isinstance(rows, NotAnswered):
            raise rows
        if not rows or support is None or hostnames is None:
            return None
        with _read("ec2:DescribeVpcs"):
            return aws_shapes.vpc(rows[0], dns_support=support, dns_hostnames=hostnames)

    def subnets(self, subnet_ids: Sequence[str]) -> Among[SubnetAnswer]:
        return self._those_of(subnet_ids, _SUBNETS, lambda row: (row["SubnetId"], aws_shapes.subnet(row)))

    def route_tables(self, vpc_id: str) -> tuple[RouteTable, ...]:
        rows = self._filtered(_ROUTE_TABLES, [vpc_id]).whole()
        with _read("ec2:DescribeRouteTables"):
            return tuple(aws_shapes.route_table(row) for row in rows)

    def endpoints(self, vpc_id: str) -> tuple[Endpoint, ...]:
        rows = self._filtered(_ENDPOINTS, [vpc_id]).whole()
        with _read("ec2:DescribeVpcEndpoints"):
            return tuple(aws_shapes.endpoint(row) for row in rows)

    def endpoint_services(self, services: Sequence[str]) -> Among[frozenset[str]]:
        listed = self._filtered(_ENDPOINT_SERVICES, ["Interface"])
        with _read("ec2:DescribeVpcEndpointServices"):
            there = {
                aws_shapes.endpoint_service(row["ServiceName"]): frozenset(row["AvailabilityZoneIds"])
                for row in listed.items
            }
        if listed.missing is not None and not there:
            raise copy.copy(listed.missing)
        known = {name: there.get(name, frozenset()) for name in services if name in there or listed.missing is None}
        return Among(known, dict.fromkeys(services, listed.missing) if listed.missing else None)

    def security_groups(self, group_ids: Sequence[str]) -> Among[SecurityGroupAnswer]:
        return self._those_of(group_ids, _SECURITY_GROUPS, lambda row: (row["GroupId"], aws_shapes.security_group(row)))

    def kubernetes_versions(self) -> tuple[KubernetesVersionAnswer, ...]:
        rows = self.pages("eks", "describe_cluster_versions", "clusterVersions", includeAll=True)
        with _read("eks:DescribeClusterVersions"):
            return tuple(aws_shapes.kubernetes_version(row) for row in rows)

    def addon_versions(self, addon: str, kubernetes_version: str) -> AddonVersions | None:
        version = {"kubernetesVersion": kubernetes_version} if kubernetes_version else {}
        try:
            rows = self.pages("eks", "describe_addon_versions", "addons", addonName=addon, **version)
        except Refused as refused:
            if refused.code == "ResourceNotFoundException":
                return None
            raise
        with _read("eks:DescribeAddonVersions"):
            return aws_shapes.addon_versions(addon, kubernetes_version, rows)

    def eks_cluster(self, name: str) -> EksClusterAnswer | None:
        answer = self._found("eks", "describe_cluster", {"name": name}, _is_missing_from_eks)
        with _read("eks:DescribeCluster"):
            return None if answer is None else aws_shapes.eks_cluster(answer["cluster"])

    def installed_addons(self, cluster: str) -> Partial[InstalledAddon]:
        listed = self.listed("eks", "list_addons", "addons", clusterName=cluster)

        def describe(name: str) -> InstalledAddon | None:
            asked = {"clusterName": cluster, "addonName": name}
            addon = self._found("eks", "describe_addon", asked, _is_missing_from_eks)
            with _read("eks:DescribeAddon"):
                return None if addon is None else aws_shapes.installed_addon(addon["addon"])

        return _partial(listed, [_Row(name=str(name)) for name in listed.items], describe)

    def kubernetes_api_groups(self, cluster: str) -> frozenset[str]:
        answer = self._from_api_server(cluster, api_server.API_GROUPS)
        with _read(f"GET {api_server.API_GROUPS} of {cluster}"):
            return api_server.group_names(answer)

    def kubernetes_daemon_sets(self, cluster: str, namespace: str) -> Mapping[str, tuple[str, ...]]:
        path = api_server.daemon_sets_path(namespace)
        answer = self._from_api_server(cluster, path)
        with _read(f"GET {path} of {cluster}"):
            return api_server.images(answer)

    def kubernetes_read(self, cluster: str, path: str) -> Mapping[str, Any]:
        """GET a path of the API server of an EKS cluster. Raises NotAnswered, Refused with the HTTP status as code."""
        return self._from_api_server(cluster, path)

    def kubernetes_patch(self, cluster: str, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """PATCH what stands under a path, by a strategic merge; once, since nobody knows what a lost answer did."""
        found = self.eks_cluster(cluster)
        if found is None:
            raise NotAnswered(f"there is no EKS cluster {cluster}")
        with self._recorded(f"kubernetes:PATCH {path}"):
            return api_server.read(found, path, self._token(cluster), patch=body)

    def role(self, name: str) -> RoleAnswer | None:
        answer = self._found("iam", "get_role", {"RoleName": name}, _is_missing_from_iam)
        with _read("iam:GetRole"):
            return None if answer is None else aws_shapes.role(answer["Role"])

    def policy_exists(self, arn: str) -> bool:
        return self._found("iam", "get_policy", {"PolicyArn": arn}, _is_missing_from_iam) is not None

    def simulate(
        self,
        principal_arn: str,
        actions: Sequence[str],
        *,
        resource: str = "*",
        context: Mapping[str, str] | None = None,
    ) -> Among[Decision]:
        """As in ``Aws``. ``principal_arn`` may be that of a session, as ``caller`` gives it.

        IAM's simulator asks for an identity: a session stands for its role. A session's own policies, and conditions
        of service control policies, are not simulated.
        """
        identity = self._identity(principal_arn)
        # most policies of organizations look at the region, and IAM knows none here
        keys = {"aws:RequestedRegion": self._region, **(context or {})}

        def ask(batch: Sequence[str]) -> tuple[dict[str, Decision], NotAnswered | None]:
            listed = self.listed(
                "iam",
                "simulate_principal_policy",
                "EvaluationResults",
                PolicySourceArn=identity,
                ActionNames=list(batch),
                ResourceArns=[resource],
                ContextEntries=[
                    {"ContextKeyName": key, "ContextKeyValues": [value], "ContextKeyType": "string"}
                    for key, value in sorted(keys.items())
                ],
            )
            with _read("iam:SimulatePrincipalPolicy"):
                decided = {row["EvalActionName"].lower(): aws_shapes.decision(row) for row in listed.items}
                found = {
                    action: replace(decided[action.lower()], action=action)
                    for action in batch
                    if action.lower() in decided
                }
            undecided = next((action for action in batch if action not in found), None)
            if undecided is None or listed.missing is not None:
                return found, listed.missing
            # IAM decides every action that it is asked about
            return found, NotAnswered(
                f"the answer to iam:SimulatePrincipalPolicy cannot be read: '{undecided.lower()}' is missing"
            )

        return _among(actions, SIMULATED_ACTIONS, ask)

    def bootstrap_version(self, qualifier: str) -> int | None:
        answer = self._found(
            "ssm",
            "get_parameter",
            {"Name": f"/cdk-bootstrap/{qualifier}/version"},
            lambda refused: refused.code == "ParameterNotFound",
        )
        with _read("ssm:GetParameter"):
            return None if answer is None else int(answer["Parameter"]["Value"])

    def lustre_file_systems(self) -> Partial[LustreAnswer]:
        listed = self.listed("fsx", "describe_file_systems", "FileSystems")
        with _read("fsx:DescribeFileSystems"):
            read = tuple(aws_shapes.lustre(row) for row in listed.items if row["FileSystemType"] == "LUSTRE")
        return Partial(read=read, broken_off=listed.missing)

    def file_system_backup(self, backup_id: str) -> BackupAnswer | None:
        answer = self._found(
            "fsx", "describe_backups", {"BackupIds": [backup_id]}, lambda refused: refused.code == "BackupNotFound"
        )
        if not answer:
            return None
        with _read("fsx:DescribeBackups"):
            return next((aws_shapes.backup(row) for row in answer["Backups"]), None)

    def interface_groups(self, interface_ids: Sequence[str]) -> Among[tuple[str, ...]]:
        return self._those_of(
            interface_ids,
            _INTERFACES,
            lambda row: (row["NetworkInterfaceId"], tuple(each["GroupId"] for each in row["Groups"])),
        )

    def bucket(self, name: str) -> BucketAnswer | None:
        answer = self._found(
            "s3", "head_bucket", {"Bucket": name}, lambda refused: refused.code in {"404", "NoSuchBucket"}
        )
        if answer is None:
            return None
        with _read("s3:HeadBucket"):
            headers = answer["ResponseMetadata"]["HTTPHeaders"]
            return BucketAnswer(name=name, region=answer.get("BucketRegion") or headers["x-amz-bucket-region"])

    def bucket_settings(self, name: str) -> BucketSettings:
        bucket = {"Bucket": name}

        def owned() -> bool:
            listed = self.listed("s3", "list_buckets", "Buckets")
            with _read("s3:ListBuckets"):
                if any(row["Name"] == name for row in listed.items):
                    return True
            # not among those that were read is no answer where there may be more
            listed.whole()
            return False

        def public() -> bool:
            answer = self._found(
                "s3", "get_bucket_policy_status", bucket, lambda refused: refused.code == "NoSuchBucketPolicy"
            )
            with _read("s3:GetBucketPolicyStatus"):
                return answer is not None and bool(answer["PolicyStatus"]["IsPublic"])

        def versioned() -> bool:
            # a bucket that never had versions has no status
            return bool(self._asked("s3", "get_bucket_versioning", bucket).get("Status") == "Enabled")

        def kms_key() -> str:
            answer = self._found(
                "s3",
                "get_bucket_encryption",
                bucket,
                lambda refused: refused.code == "ServerSideEncryptionConfigurationNotFoundError",
            )
            with _read("s3:GetBucketEncryption"):
                return "" if answer is None else aws_shapes.default_key(answer)

        asked: list[Callable[[], bool | str]] = [owned, public, versioned, kms_key]
        answers: list[Any] = list(together(lambda ask: ask(), asked))
        return BucketSettings(owned=answers[0], public=answers[1], versioned=answers[2], kms_key=answers[3])

    def kms_key(self, arn: str) -> KmsKeyAnswer | None:
        answer = self._found("kms", "describe_key", {"KeyId": arn}, lambda refused: refused.code == "NotFoundException")
        with _read("kms:DescribeKey"):
            return None if answer is None else aws_shapes.kms_key(answer["KeyMetadata"])

    def kms_key_policy(self, arn: str) -> Mapping[str, Any]:
        answer = self._asked("kms", "get_key_policy", {"KeyId": arn, "PolicyName": "default"})
        with _read("kms:GetKeyPolicy"):
            return cast("Mapping[str, Any]", dict(json.loads(answer["Policy"])))

    def prometheus_workspace(self, arn: str) -> str | None:
        asked = {"workspaceId": arn.rpartition("/")[2]}
        answer = self._found("amp", "describe_workspace", asked, _is_missing_from_eks)
        with _read("aps:DescribeWorkspace"):
            return None if answer is None else str(answer["workspace"]["status"]["statusCode"])

    def grafana_workspace(self, arn: str) -> str | None:
        asked = {"workspaceId": arn.rpartition("/")[2]}
        answer = self._found("grafana", "describe_workspace", asked, _is_missing_from_eks)
        with _read("grafana:DescribeWorkspace"):
            return None if answer is None else str(answer["workspace"]["status"])

    def topic(self, arn: str) -> TopicAnswer | None:
        # the service model names NotFoundException, its answers NotFound
        answer = self._found(
            "sns", "get_topic_attributes", {"TopicArn": arn}, lambda refused: refused.code.startswith("NotFound")
        )
        with _read("sns:GetTopicAttributes"):
            if answer is None:
                return None
            attributes = answer["Attributes"]
            policy = json.loads(attributes.get("Policy") or "null")
            if not isinstance(policy, dict | None):
                raise TypeError("the policy of the topic is no mapping")
            return TopicAnswer(
                arn=str(attributes["TopicArn"]), kms_key=str(attributes.get("KmsMasterKeyId", "")), policy=policy
            )

    def event_bus_exists(self, name: str) -> bool:
        answer = self._found("events", "describe_event_bus", {"Name": name}, _is_missing_from_eks)
        with _read("events:DescribeEventBus"):
            return answer is not None and bool(answer["Name"])

    def slack_workspaces(self) -> frozenset[str]:
        rows = self.pages("chatbot", "describe_slack_workspaces", "SlackWorkspaces")
        with _read("chatbot:DescribeSlackWorkspaces"):
            return frozenset(str(row["SlackTeamId"]) for row in rows if row.get("State") != "DISABLED")

    def slack_channels(self) -> tuple[SlackChannelAnswer, ...]:
        rows = self.pages("chatbot", "describe_slack_channel_configurations", "SlackChannelConfigurations")
        with _read("chatbot:DescribeSlackChannelConfigurations"):
            return tuple(
                SlackChannelAnswer(
                    workspace_id=str(row["SlackTeamId"]),
                    channel_id=str(row["SlackChannelId"]),
                    name=str(row.get("ConfigurationName", "")),
                )
                for row in rows
            )

    def stack(self, name: str) -> StackAnswer | None:
        answer = self._found(
            "cloudformation",
            "describe_stacks",
            {"StackName": name},
            lambda refused: refused.code == "ValidationError" and "does not exist" in refused.message,
        )
        with _read("cloudformation:DescribeStacks"):
            return None if answer is None else aws_shapes.stack(answer["Stacks"][0])

    def request_quota(self, service: str, code: str, desired: float) -> QuotaRequest:
        """Ask AWS to raise a quota to ``desired``, and give the request; one that is open already is given instead.

        This writes. It is no question of ``Aws``, and no answer from before is used. Raises NotAnswered where AWS
        refuses.
        """
        with _read("servicequotas:RequestServiceQuotaIncrease"):
            open_request = self._open_request(service, code)
            if open_request is not None:
                return open_request
            params = {"ServiceCode": service, "QuotaCode": code, "DesiredValue": desired}
            try:
                answer = self._send("service-quotas", "request_service_quota_increase", params)
            except Refused as refused:
                # another one came first, or this one arrived although its answer was lost
                open_request = self._open_request(service, code)
                if refused.code != "ResourceAlreadyExistsException" or open_request is None:
                    raise
                return open_request
            return aws_shapes.quota_request(answer["RequestedQuota"])

    def _open_request(self, service: str, code: str) -> QuotaRequest | None:
        operation = "list_requested_service_quota_change_history_by_quota"
        params = {"ServiceCode": service, "QuotaCode": code}
        rows = self._pages("service-quotas", operation, "RequestedQuotas", params)
        return next((each for each in _newest_first(rows) if each.is_open), None)

    def _identity(self, arn: str) -> str:
        kind, _, name = arn.rpartition(":")[2].partition("/")
        if arn.endswith(":root"):
            raise NotAnswered("the caller is the account's root user, which IAM cannot simulate; use a role")
        if kind == "federated-user":
            raise NotAnswered("the caller is a federated user, which IAM cannot simulate; use a role")
        if kind != "assumed-role":
            return arn
        # a session's ARN leaves out the path of its role, and the roles of IAM Identity Center have one
        role = self.role(name.partition("/")[0])
        if role is None:
            raise NotAnswered(f"the role of {arn} is gone")
        return role.arn

    def _filtered(self, of: _Filtered, values: Sequence[str], **params: Any) -> Listed:
        """Ask EC2 by a filter: what does not exist is left out, where an ID as a parameter would be an error."""
        filters = [{"Name": of.filter, "Values": list(values)}]
        return self.listed("ec2", of.operation, of.key, Filters=filters, **params)

    def _those_of(
        self, values: Sequence[str], of: _Filtered, read: Callable[[Mapping[str, Any]], tuple[str, ItemT]]
    ) -> Among[ItemT]:
        """Ask EC2 for what exists among these, each of which is one row of its answer."""

        def ask(batch: Sequence[str]) -> tuple[dict[str, ItemT], NotAnswered | None]:
            listed = self._filtered(of, batch)
            with _read(self._name("ec2", of.operation)):
                return dict(read(row) for row in listed.items), listed.missing

        return _among(values, FILTER_VALUES, ask)

    def _found(
        self, service: str, operation: str, params: Mapping[str, Any], is_missing: Callable[[Refused], bool]
    ) -> Any:
        try:
            return self._asked(service, operation, params)
        except Refused as refused:
            if is_missing(refused):
                return None
            raise

    def _asked(self, service: str, operation: str, params: Mapping[str, Any]) -> Any:
        return self._once((service, operation, _frozen(params)), lambda: self._send(service, operation, params))

    def _once(self, key: object, ask: Callable[[], AnswerT]) -> AnswerT:
        """Give the answer to ``ask``, which runs once for a key; others who want it wait for the one who asks."""
        with self._answering:
            future = self._answers.get(key)
            is_first = future is None
            if future is None:
                future = self._answers[key] = Future()
        if is_first:
            try:
                future.set_result(_Kept(ask(), None, depth()))
            except NotAnswered as missing:
                future.set_result(_Kept(None, missing, depth()))
            except BaseException as error:
                future.set_exception(error)
                raise
        kept = future.result()
        deepen_to(kept.depth)
        if kept.missing is not None:
            # a copy, since an exception keeps the place from where it was raised, and several threads raise this one
            raise copy.copy(kept.missing) from kept.missing.__cause__
        return cast("AnswerT", kept.answer)

    def _pages(self, service: str, operation: str, key: str, params: Mapping[str, Any]) -> Iterator[Any]:
        name = self._name(service, operation)
        shape = self._pagination(service, name.partition(":")[2])
        asked: dict[str, Any] = {**params, **shape.page_size}
        seen = set()
        for _ in range(MOST_PAGES):
            answer = self._send(service, operation, asked)
            with _read(name):
                yield from answer[key]
            token = answer.get(shape.output_token)
            if shape.more_results and answer.get(shape.more_results) and not token:
                raise NotAnswered(f"the answer to {name} is cut off: AWS says there is more and not where")
            if not token or (shape.more_results and not answer.get(shape.more_results)):
                return
            if not isinstance(token, str):
                raise NotAnswered(f"the answer to {name} cannot be read: its token for the next page is no text")
            if token in seen:
                raise NotAnswered(f"the answer to {name} goes in circles: the same page comes again")
            seen.add(token)
            asked[shape.input_token] = token
        raise NotAnswered(f"the answer to {name} does not end after {MOST_PAGES} pages")

    def _pagination(self, service: str, operation: str) -> _Pagination:
        with self._making_client:
            try:
                model = self._session.get_paginator_model(service).get_paginator(operation)
            except (ValueError, errors.DataNotFoundError):
                return _Pagination()
        limit = model.get("limit_key", "")
        members = self._client(service).meta.service_model.operation_model(operation).input_shape.members
        most = members[limit].metadata.get("max", 0) if limit in members else 0
        return _Pagination(
            input_token=model["input_token"],
            output_token=model["output_token"],
            more_results=model.get("more_results", ""),
            # one large page rather than several one after another
            page_size={limit: most} if 0 < most <= _LARGEST_PAGE else {},
        )

    def _send(self, service: str, operation: str, params: Mapping[str, Any]) -> Any:
        """Make one call, with botocore's retries; raises NotAnswered, with AWS's code where it gave one."""
        if service != "sts":
            self._hold_account()
        name = self._name(service, operation)
        if service in self._out_of_reach:
            raise copy.copy(self._out_of_reach[service])
        client = self._client(service)
        with self._recorded(name) as attempts:
            try:
                return self._in_time(lambda: getattr(client, operation)(**params), attempts)
            except Exception as error:
                # not only botocore's own: its parsers raise anything when fed with garbage
                missing = self._not_answered(error, name, attempts)
                if isinstance(error, _NOT_REACHED) or (isinstance(error, _TooLongError) and attempts.is_throttled):
                    self._out_of_reach[service] = missing
                raise missing from error

    def _hold_account(self) -> None:
        try:
            caller = self.caller()
        except NotAnswered as missing:
            raise NotAnswered(
                f"it is not known whose the credentials are: {missing.reason}", action=missing.action, said=missing.said
            ) from None
        if self._account and caller.account != self._account:
            raise _OtherAccount(
                f"the credentials belong to account {caller.account}, the environment to {self._account}"
            )

    def _client(self, service: str) -> Any:
        with self._making_client:
            if service not in self._clients:
                try:
                    here = Config(region_name=_REGIONS.get(service, self._region))
                    client = self._session.create_client(service, config=self._config.merge(here))
                except (errors.BotoCoreError, ValueError) as error:
                    raise _NoClient(_no_client(error)) from None
                client.meta.events.register("before-send", self._count_attempt)
                # as specific as botocore's own, which is then asked after it
                event = f"needs-retry.{client.meta.service_model.service_id.hyphenize()}"
                client.meta.events.register_first(event, self._see_response)  # type: ignore[arg-type]  # gives a pause
                self._clients[service] = client
            return self._clients[service]

    def _name(self, service: str, operation: str) -> str:
        methods = self._client(service).meta.method_to_api_mapping
        return f"{_PREFIXES.get(service, service)}:{methods[operation]}"

    def _count_attempt(self, **_: object) -> None:
        self._current.attempts.made += 1

    def _see_response(self, response: Any = None, attempts: int = 1, **_: object) -> float | None:
        """Keep the code of an answer, and give the pause in seconds before a call that was throttled is repeated.

        botocore takes the first answer of those who are asked whether to repeat. Its own pauses after throttling, up to
        1, 2, 4 s in standard mode, cost a run of three calls in a row three times as much (measured).
        """
        if response is None:
            return None
        self._current.attempts.code = str(response[1].get("Error", {}).get("Code", ""))
        if not self._current.attempts.is_throttled or attempts >= self._patience.attempts:
            return None
        return random.uniform(0, min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** (attempts - 1)))  # noqa: S311 - no secret

    @contextmanager
    def _recorded(self, name: str) -> Iterator[_Attempts]:
        """Keep a call: it starts when there is a slot, and whatever follows it in this thread is one deeper."""
        with self._slots:
            attempts = _Attempts()
            started = time.monotonic()
            try:
                yield attempts
            finally:
                service, _, operation = name.partition(":")
                deepen_to(depth() + 1)
                self._calls.append(
                    Call(
                        service=service,
                        operation=operation,
                        seconds=time.monotonic() - started,
                        depth=depth(),
                        retries=max(0, attempts.made - 1),
                    )
                )

    def _in_time(self, ask: Callable[[], AnswerT], attempts: _Attempts) -> AnswerT:
        """Run a call in a thread of its own, which is left to itself when its time is over."""
        future: Future[AnswerT] = Future()

        def run() -> None:
            self._current.attempts = attempts
            try:
                future.set_result(ask())
            except BaseException as error:  # noqa: BLE001 - it is raised where the call was made
                future.set_exception(error)

        # a thread that hangs must not keep the process from ending
        threading.Thread(target=run, name="aws", daemon=True).start()
        try:
            return future.result(timeout=self._patience.call_s)
        except TimeoutError:
            if future.done():
                raise
            raise _TooLongError from None

    def _not_answered(self, error: Exception, name: str, attempts: _Attempts) -> NotAnswered:
        times = f", {attempts.made} times" if attempts.made > 1 else ""
        if isinstance(error, errors.ClientError):
            return self._refused(error, name, times)
        if isinstance(error, _NOT_REACHED):
            return NotAnswered(self._unreachable(error, name))
        if isinstance(error, _TooLongError) and attempts.is_throttled:
            return NotAnswered(f"AWS throttled {name}{times}; run it again later")
        if isinstance(error, _TooLongError) and not attempts.made:
            waited = f"{self._patience.call_s:g} s"
            return NotAnswered(f"{name} had no turn within {waited}: AWS throttles, or the credentials take too long")
        seconds = self._patience.call_s if isinstance(error, _TooLongError) else self._patience.read_timeout_s
        sentence = next(sentence for kinds, sentence in _SENTENCES if isinstance(error, kinds))
        return NotAnswered(sentence.format(name=name, times=times, seconds=seconds, error=_line(error)))

    def _refused(self, error: errors.ClientError, name: str, times: str) -> NotAnswered:
        said = error.response.get("Error", {})
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        code, message = _line(said.get("Code", "")) or str(status), _line(said.get("Message") or "")
        # an error that no service wrote, of a gateway or a proxy, has the status as its code
        shown = f"HTTP {code}" if code.isdigit() else code
        if error.operation_name != name.partition(":")[2]:
            return NotAnswered(f"there are no credentials any more for {name}: {error.operation_name} gave {code}")
        if _DENIED.search(code):
            return _denied(name, code, message)
        if _CLOCK.search(f"{code} {message}"):
            # before what it is reported as: credentials that expired, or a signature that is wrong
            reason = _CLOCK_REASON
        elif code in _EXPIRED:
            # the same for every call: one thing is wrong
            reason = "the credentials expired during the run; renew them and run it again"
        elif code in _NOT_ENABLED:
            reason = f"{name} is not enabled in the account ({code}); enable the region or the service"
        elif code in _NOT_ACCEPTED:
            reason = f"AWS does not accept the credentials for {name} ({code}); is the region enabled in the account?"
        elif _THROTTLED.search(code):
            reason = f"AWS throttled {name}{times}; run it again later"
        elif status >= 500:
            reason = f"{name} failed inside AWS with {shown}{times}; run it again later"
        else:
            # a page of HTML comes from a proxy, or from what is no AWS
            reason = f"{name} was refused with {shown}" + (f": {message}" if message and message[0] != "<" else "")
        # AWS's own sentence is kept, but a page of HTML is none
        sentence = "" if message in reason or message.startswith("<") else message
        return Refused(reason, said=sentence, code=code, message=message)

    def _unreachable(self, error: Exception, name: str) -> str:
        service = name.partition(":")[0]
        client_name = next((ours for ours, prefix in _PREFIXES.items() if prefix == service), service)
        url = self._client(client_name).meta.endpoint_url
        if isinstance(error, errors.EndpointConnectionError) and self._is_missing_in_region(client_name):
            return f"{service} is not there in {self._region}: nothing answers at {url}"
        return f"{service} is out of reach: nothing answers at {url}; check network and proxy"

    def _is_missing_in_region(self, service: str) -> bool:
        try:
            with self._making_client:
                partition = self._session.get_partition_for_region(self._region)
                regions = self._session.get_available_regions(service, partition)
        except errors.BotoCoreError:
            return False
        # iam and others have one endpoint for all regions, and an empty list
        return bool(regions) and self._region not in regions

    def _from_api_server(self, cluster: str, path: str) -> Mapping[str, Any]:
        found = self.eks_cluster(cluster)
        if found is None:
            raise NotAnswered(f"there is no EKS cluster {cluster}")

        def ask() -> Mapping[str, Any]:
            token = self._token(cluster)
            with self._recorded(f"kubernetes:GET {path}") as attempts:
                try:
                    return self._in_time(lambda: api_server.read(found, path, token), attempts)
                except _TooLongError:
                    raise NotAnswered(f"the API server of EKS cluster {cluster} is not reachable from here") from None

        return self._once(("kubernetes", cluster, path), ask)

    def _token(self, cluster: str) -> str:
        """Make the bearer token that EKS takes: a presigned GetCallerIdentity, tied to the cluster's name."""
        try:
            credentials = self._session.get_credentials()
            if credentials is None:
                raise errors.NoCredentialsError
            emitter = self._session.get_component("event_emitter")
            signer = RequestSigner(ServiceId("STS"), self._region, "sts", "v4", credentials, emitter)
            url = signer.generate_presigned_url(
                {
                    "method": "GET",
                    "url": f"{self._client('sts').meta.endpoint_url}/?Action=GetCallerIdentity&Version=2011-06-15",
                    "body": {},
                    "headers": {"x-k8s-aws-id": cluster},
                    "context": {},
                },
                operation_name="",
                region_name=self._region,
                expires_in=TOKEN_LIFETIME_S,
            )
        except (errors.BotoCoreError, errors.ClientError) as error:
            raise NotAnswered(f"no token can be made for EKS cluster {cluster}: {_line(error)}") from None
        return "k8s-aws-v1." + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")


@dataclass(frozen=True, kw_only=True)
class _Pagination:
    """How an operation tells that there is more; the defaults are those of one that botocore knows no pages of."""

    input_token: str = "NextToken"  # noqa: S105 - the name of a parameter
    output_token: str = "NextToken"  # noqa: S105 - the name of a parameter
    more_results: str = ""
    page_size: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Filtered:
    """An operation of EC2, the member of its answer that holds the rows, and the filter by which it is asked."""

    operation: str
    key: str
    filter: str


_IMAGES = _Filtered("describe_images", "Images", "image-id")
_OFFERINGS = _Filtered("describe_instance_type_offerings", "InstanceTypeOfferings", "instance-type")
_VPCS = _Filtered("describe_vpcs", "Vpcs", "vpc-id")
_SUBNETS = _Filtered("describe_subnets", "Subnets", "subnet-id")
_ROUTE_TABLES = _Filtered("describe_route_tables", "RouteTables", "vpc-id")
_ENDPOINTS = _Filtered("describe_vpc_endpoints", "VpcEndpoints", "vpc-id")
_ENDPOINT_SERVICES = _Filtered("describe_vpc_endpoint_services", "ServiceDetails", "service-type")
_SECURITY_GROUPS = _Filtered("describe_security_groups", "SecurityGroups", "group-id")
_INTERFACES = _Filtered("describe_network_interfaces", "NetworkInterfaces", "network-interface-id")


@dataclass(frozen=True, kw_only=True)
class _Row:
    """What a list says of one member."""

    name: str
    arn: str = ""
    status: str = ""


def _partial(listed: Listed, rows: Sequence[_Row], describe: Callable[[str], MemberT | None]) -> Partial[MemberT]:
    """Describe what was listed side by side; a member that is gone meanwhile is not there."""
    answers = together(describe, [row.name for row in rows])
    return Partial(
        read=tuple(each for each in answers if each is not None and not isinstance(each, NotAnswered)),
        unread=tuple(
            Undescribed(name=row.name, arn=row.arn, status=row.status, why=answer)
            for row, answer in zip(rows, answers, strict=True)
            if isinstance(answer, NotAnswered)
        ),
        broken_off=listed.missing,
    )


def _among(
    names: Sequence[str],
    most: int,
    ask: Callable[[Sequence[str]], tuple[Mapping[str, ItemT], NotAnswered | None]],
) -> Among[ItemT]:
    """Ask about names in batches of at most ``most`` side by side; those of a batch that did not come are unread.

    ``ask`` gives what there is among the names of a batch, and why there may be more. Raises NotAnswered where nothing
    of them was read.
    """
    wanted = list(dict.fromkeys(names))
    batches = [wanted[start : start + most] for start in range(0, len(wanted), most)]
    read: dict[str, ItemT] = {}
    unread: dict[str, NotAnswered] = {}
    for batch, answer in zip(batches, together(ask, batches), strict=True):
        there, why = ({}, answer) if isinstance(answer, NotAnswered) else answer
        read.update(there)
        if why is not None:
            unread.update(dict.fromkeys(batch, why))
    if unread and not read and len(unread) == len(wanted):
        # said once, and not once for each of them
        raise copy.copy(next(iter(unread.values())))
    return Among(read, unread)


@contextmanager
def _read(name: str) -> Iterator[None]:
    """Turn a member that is missing or of another kind into NotAnswered: such an answer lost something on its way."""
    try:
        yield
    except UNREADABLE as error:
        raise NotAnswered(f"the answer to {name} cannot be read: {_line(what_is_lost(error))}") from None


def _no_access(missing: NotAnswered, region: str) -> str:
    """Say why there is nobody to ask AWS as, with the fix; empty where the credentials are not the reason."""
    error = missing.__cause__
    for kinds, sentence in _ACCESS_SENTENCES:
        if isinstance(error, kinds):
            return sentence.format(error=_line(error))
    if not isinstance(error, errors.ClientError):
        return f"AWS is out of reach: {missing.reason}; check the network, its proxy and AWS_ENDPOINT_URL"
    return _no_credentials(error, region)


def _no_credentials(error: errors.ClientError, region: str) -> str:
    """Say why AWS does not take the credentials, with its own words; empty where they are not the reason."""
    answer = error.response.get("Error", {})
    code, message = str(answer.get("Code", "")), _line(answer.get("Message") or "")
    if error.operation_name != "GetCallerIdentity":
        return f"no AWS credentials: {error.operation_name} gave {code}; correct the profile{quoted(message)}"
    if _CLOCK.search(f"{code} {message}"):
        return f"{_CLOCK_REASON}{quoted(message)}"
    if code in _EXPIRED:
        return "the AWS credentials have expired; renew them, in a profile of IAM Identity Center with 'aws sso login'"
    if code in _NOT_ACCEPTED:
        return (
            f"AWS does not accept the credentials ({code}): they are wrong or deactivated, or {region} is not enabled"
            f" in their account; renew them, or enable the region{quoted(message)}"
        )
    return ""


def _no_client(error: Exception) -> str:
    if isinstance(error, errors.ProfileNotFound):
        name = error.kwargs["profile"]
        return f"there is no AWS profile {name}; set AWS_PROFILE to one that 'aws configure list-profiles' shows"
    return f"the AWS settings cannot be used: {_line(error)}; correct ~/.aws/config or the AWS_ variables"


def _denied(name: str, code: str, message: str) -> NotAnswered:
    named = _NAMED_ACTION.search(message)
    action = named[1] if named else _ACTIONS.get(name, name)
    blamed = _POLICY_TO_BLAME.search(message)
    because = ""
    if blamed:
        whose = _WHO_CHANGES.get(blamed[1], "")
        how = "explicit deny in" if "explicit deny" in message else "no"
        because = f" ({how} {blamed[1]}{f'; {whose}' if whose else ''})"
    alternative = ", or the bucket is somebody else's" if name == "s3:HeadBucket" else ""
    return Refused(
        f"no permission for {action}{because}{alternative}", action=action, code=code, message=message, said=message
    )


def _newest_first(rows: Iterable[Mapping[str, Any]]) -> tuple[QuotaRequest, ...]:
    with _read("servicequotas:ListRequestedServiceQuotaChangeHistoryByQuota"):
        requests = [aws_shapes.quota_request(row) for row in rows]
    return tuple(sorted(requests, key=lambda each: each.created.timestamp() if each.created else 0.0, reverse=True))


def _is_missing_from_sagemaker(refused: Refused) -> bool:
    return is_gone(refused.code, refused.message)


def _is_missing_from_eks(refused: Refused) -> bool:
    return refused.code == "ResourceNotFoundException"


def _is_missing_from_iam(refused: Refused) -> bool:
    return refused.code == "NoSuchEntity"


def _place(arn: str) -> tuple[str, str]:
    """Give region and account of an ARN, or nothing where it is none."""
    of = arn_parts(arn)
    return of.region, of.account


def _frozen(params: Mapping[str, Any]) -> str:
    return json.dumps(params, sort_keys=True, default=str)


def _line(said: object) -> str:
    """Give what a library or AWS says as one line of bounded length."""
    line = " ".join("".join(each if each.isprintable() else " " for each in str(said)).split()).rstrip(".: ")
    return line if len(line) <= _LONGEST_REASON else f"{line[:_LONGEST_REASON].rstrip()} ..."
