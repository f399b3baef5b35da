"""Queries AWS: typed answers, each question once in a run. ``checks.aws_calls`` makes the calls.

Both are imported if a command calls AWS, never for ``--offline``.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, cast

import botocore.session

from hyperpod_cdk.catalog.arns import arn_parts
from hyperpod_cdk.checks import api_server, aws_shapes
from hyperpod_cdk.checks.answers import (
    AddonVersions,
    Among,
    BackupAnswer,
    BucketAnswer,
    BucketSettings,
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
)
from hyperpod_cdk.checks.aws_calls import AwsCalls, ItemT, Patience, TooLongError, reading
from hyperpod_cdk.checks.side_by_side import start, together
from hyperpod_cdk.handlers.quota_gate.comparison import Usage
from hyperpod_cdk.handlers.quota_gate.reading import (
    Listed,
    NoSuchQuota,
    NotFound,
    Own,
    is_gone,
    read_quota,
    used,
)

ALARM_NAMES = 100
"""How many names DescribeAlarms accepts."""
FILTER_VALUES = 200
"""How many values EC2 accepts in one filter."""

SIMULATED_ACTIONS = 100
"""Actions in one SimulatePrincipalPolicy: the number of results that IAM puts on a page by default.

IAM's API reference gives no limit to the list of actions.
"""

_NO_IMAGE = frozenset({"RepositoryNotFoundException", "ImageNotFoundException"})


class _NotThere(NotFound, NotAnswered):
    """AWS says that something does not exist; no answer to a caller who got its name from another answer."""


class _NoQuota(NoSuchQuota, NotAnswered):
    """The same of a quota."""


class LiveAws(AwsCalls):
    """Answers every question of ``Aws`` for one account in one region, and is the ``Api`` of the quota gate's code.

    A question makes its calls once in a run, for every caller and thread. ``calls`` are those made so far.
    A question raises only NotAnswered, and ``open`` only AwsAccessError.
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

        ``AWS_ENDPOINT_URL`` is used. ``account`` is the expected account, empty for that of the credentials.
        ``own`` is what ``usage`` does not count. Raises AwsAccessError as ``require_credentials`` does.
        """
        start()
        aws = cls(
            region=region,
            account=account,
            own=own,
            session=session or botocore.session.Session(),
            patience=patience or Patience(),
        )
        aws.require_credentials()
        return aws

    def __init__(
        self, *, region: str, account: str, own: Own, session: botocore.session.Session, patience: Patience
    ) -> None:
        super().__init__(region=region, account=account, session=session, patience=patience)
        self._own = own

    def call(self, service: str, operation: str, **params: Any) -> Mapping[str, Any]:
        """Make one call, once in a run; raises NoSuchQuota or NotFound for what does not exist, else NotAnswered.

        ``service`` and ``operation`` are boto3's names: ``ec2``, ``describe_vpcs``.
        """
        try:
            return cast("Mapping[str, Any]", self._asked(service, operation, params))
        except Refused as refused:
            if refused.code == "NoSuchResourceException":
                raise _NoQuota(refused.reason) from None
            if service == "sagemaker" and _is_missing_from_sagemaker(refused):
                raise _NotThere(refused.reason, said=refused.said) from None
            raise

    def quota(self, service: str, name: str, code: str | None) -> QuotaValue | None:
        with reading("Service Quotas"):
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
        with reading("sagemaker:DescribeTrainingPlan"):
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
        with reading("sagemaker:SearchTrainingPlanOfferings"):
            rows = answer["TrainingPlanOfferings"]
            return tuple(aws_shapes.offering(row, instance_type=instance_type, count=count) for row in rows)

    def hyperpod_clusters(self) -> Partial[HyperPodClusterAnswer]:
        listed = self.listed("sagemaker", "list_clusters", "ClusterSummaries")
        with reading("sagemaker:ListClusters"):
            rows = [
                _Row(name=row["ClusterName"], arn=row.get("ClusterArn", ""), status=row.get("ClusterStatus", ""))
                for row in listed.items
            ]

        def describe(name: str) -> HyperPodClusterAnswer | None:
            cluster = self._found("sagemaker", "describe_cluster", {"ClusterName": name}, _is_missing_from_sagemaker)
            with reading("sagemaker:DescribeCluster"):
                return None if cluster is None else aws_shapes.hyperpod_cluster(name, cluster)

        return _partial(listed, rows, describe)

    def zones(self) -> tuple[Zone, ...]:
        answer = self._asked("ec2", "describe_availability_zones", {"AllAvailabilityZones": True})
        with reading("ec2:DescribeAvailabilityZones"):
            return tuple(aws_shapes.zone(row) for row in answer["AvailabilityZones"])

    def images(self, image_ids: Sequence[str]) -> Among[ImageAnswer]:
        return self._those_of(image_ids, _IMAGES, lambda row: (row["ImageId"], aws_shapes.image(row)))

    def alarms(self, names: Sequence[str]) -> Among[str]:
        def ask(batch: Sequence[str]) -> tuple[dict[str, str], NotAnswered | None]:
            # a page holds at most as many as are asked for, and may hold fewer
            asked = [
                self.listed("cloudwatch", "describe_alarms", f"{kind}s", AlarmNames=list(batch), AlarmTypes=[kind])
                for kind in ("MetricAlarm", "CompositeAlarm")
            ]
            with reading("cloudwatch:DescribeAlarms"):
                there = {row["AlarmName"]: row["StateValue"] for each in asked for row in each.items}
            return there, next((each.missing for each in asked if each.missing is not None), None)

        return _among(names, ALARM_NAMES, ask)

    def instance_type_zones(self, ec2_names: Sequence[str]) -> Among[frozenset[str]]:
        def ask(batch: Sequence[str]) -> tuple[dict[str, frozenset[str]], NotAnswered | None]:
            # each type has several rows, so no type is complete before the last page
            rows = self._filtered(_OFFERINGS, batch, LocationType="availability-zone-id").whole()
            with reading("ec2:DescribeInstanceTypeOfferings"):
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
            with reading("ec2:DescribeVpcAttribute"):
                return None if answer is None else answer[f"{attribute[:1].upper()}{attribute[1:]}"]["Value"]

        rows, support, hostnames = together(ask, ("", "enableDnsSupport", "enableDnsHostnames"))
        if isinstance(rows, NotAnswered):
            raise rows
        if not rows or support is None or hostnames is None:
            return None
        with reading("ec2:DescribeVpcs"):
            return aws_shapes.vpc(rows[0], dns_support=support, dns_hostnames=hostnames)

    def subnets(self, subnet_ids: Sequence[str]) -> Among[SubnetAnswer]:
        return self._those_of(subnet_ids, _SUBNETS, lambda row: (row["SubnetId"], aws_shapes.subnet(row)))

    def route_tables(self, vpc_id: str) -> tuple[RouteTable, ...]:
        rows = self._filtered(_ROUTE_TABLES, [vpc_id]).whole()
        with reading("ec2:DescribeRouteTables"):
            return tuple(aws_shapes.route_table(row) for row in rows)

    def endpoints(self, vpc_id: str) -> tuple[Endpoint, ...]:
        rows = self._filtered(_ENDPOINTS, [vpc_id]).whole()
        with reading("ec2:DescribeVpcEndpoints"):
            return tuple(aws_shapes.endpoint(row) for row in rows)

    def endpoint_services(self, services: Sequence[str]) -> Among[frozenset[str]]:
        listed = self._filtered(_ENDPOINT_SERVICES, ["Interface"])
        with reading("ec2:DescribeVpcEndpointServices"):
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
        with reading("eks:DescribeClusterVersions"):
            return tuple(aws_shapes.kubernetes_version(row) for row in rows)

    def addon_versions(self, addon: str, kubernetes_version: str) -> AddonVersions | None:
        version = {"kubernetesVersion": kubernetes_version} if kubernetes_version else {}
        try:
            rows = self.pages("eks", "describe_addon_versions", "addons", addonName=addon, **version)
        except Refused as refused:
            if refused.code == "ResourceNotFoundException":
                return None
            raise
        with reading("eks:DescribeAddonVersions"):
            return aws_shapes.addon_versions(addon, kubernetes_version, rows)

    def eks_cluster(self, name: str) -> EksClusterAnswer | None:
        answer = self._found("eks", "describe_cluster", {"name": name}, _is_missing_from_eks)
        with reading("eks:DescribeCluster"):
            return None if answer is None else aws_shapes.eks_cluster(answer["cluster"])

    def installed_addons(self, cluster: str) -> Partial[InstalledAddon]:
        listed = self.listed("eks", "list_addons", "addons", clusterName=cluster)

        def describe(name: str) -> InstalledAddon | None:
            asked = {"clusterName": cluster, "addonName": name}
            addon = self._found("eks", "describe_addon", asked, _is_missing_from_eks)
            with reading("eks:DescribeAddon"):
                return None if addon is None else aws_shapes.installed_addon(addon["addon"])

        return _partial(listed, [_Row(name=str(name)) for name in listed.items], describe)

    def kubernetes_api_groups(self, cluster: str) -> frozenset[str]:
        answer = self._from_api_server(cluster, api_server.API_GROUPS)
        with reading(f"GET {api_server.API_GROUPS} of {cluster}"):
            return api_server.group_names(answer)

    def kubernetes_daemon_sets(self, cluster: str, namespace: str) -> Mapping[str, tuple[str, ...]]:
        path = api_server.daemon_sets_path(namespace)
        answer = self._from_api_server(cluster, path)
        with reading(f"GET {path} of {cluster}"):
            return api_server.images(answer)

    def kubernetes_read(self, cluster: str, path: str) -> Mapping[str, Any]:
        """GET a path of the API server of an EKS cluster. Raises NotAnswered, Refused with the HTTP status as code."""
        return self._from_api_server(cluster, path)

    def kubernetes_patch(self, cluster: str, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """PATCH the object at a path, by a strategic merge; once, because the effect of a lost answer is unknown."""
        found = self.eks_cluster(cluster)
        if found is None:
            raise NotAnswered(f"there is no EKS cluster {cluster}")
        with self._recorded(f"kubernetes:PATCH {path}"):
            return api_server.read(found, path, self._token(cluster), patch=body)

    def role(self, name: str) -> RoleAnswer | None:
        answer = self._found("iam", "get_role", {"RoleName": name}, _is_missing_from_iam)
        with reading("iam:GetRole"):
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

        IAM's simulator needs an identity: a session counts as its role. A session's own policies, and conditions
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
            with reading("iam:SimulatePrincipalPolicy"):
                decided = {row["EvalActionName"].lower(): aws_shapes.decision(row) for row in listed.items}
                found = {
                    action: replace(decided[action.lower()], action=action)
                    for action in batch
                    if action.lower() in decided
                }
            undecided = next((action for action in batch if action not in found), None)
            if undecided is None or listed.missing is not None:
                return found, listed.missing
            # IAM decides every requested action
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
        with reading("ssm:GetParameter"):
            return None if answer is None else int(answer["Parameter"]["Value"])

    def lustre_file_systems(self) -> Partial[LustreAnswer]:
        listed = self.listed("fsx", "describe_file_systems", "FileSystems")
        with reading("fsx:DescribeFileSystems"):
            read = tuple(aws_shapes.lustre(row) for row in listed.items if row["FileSystemType"] == "LUSTRE")
        return Partial(read=read, broken_off=listed.missing)

    def file_system_backup(self, backup_id: str) -> BackupAnswer | None:
        answer = self._found(
            "fsx", "describe_backups", {"BackupIds": [backup_id]}, lambda refused: refused.code == "BackupNotFound"
        )
        if not answer:
            return None
        with reading("fsx:DescribeBackups"):
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
        with reading("s3:HeadBucket"):
            headers = answer["ResponseMetadata"]["HTTPHeaders"]
            return BucketAnswer(name=name, region=answer.get("BucketRegion") or headers["x-amz-bucket-region"])

    def bucket_settings(self, name: str) -> BucketSettings:
        bucket = {"Bucket": name}

        def owned() -> bool:
            listed = self.listed("s3", "list_buckets", "Buckets")
            with reading("s3:ListBuckets"):
                if any(row["Name"] == name for row in listed.items):
                    return True
            # not being among those that were read proves nothing if there may be more
            listed.whole()
            return False

        def public() -> bool:
            answer = self._found(
                "s3", "get_bucket_policy_status", bucket, lambda refused: refused.code == "NoSuchBucketPolicy"
            )
            with reading("s3:GetBucketPolicyStatus"):
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
            with reading("s3:GetBucketEncryption"):
                return "" if answer is None else aws_shapes.default_key(answer)

        asked: list[Callable[[], bool | str]] = [owned, public, versioned, kms_key]
        answers: list[Any] = list(together(lambda ask: ask(), asked))
        return BucketSettings(owned=answers[0], public=answers[1], versioned=answers[2], kms_key=answers[3])

    def container_image_exists(self, account: str, repository: str, tag: str) -> bool:
        named = {"registryId": account, "repositoryName": repository, "imageIds": [{"imageTag": tag}]}
        answer = self._found("ecr", "describe_images", named, lambda refused: refused.code in _NO_IMAGE)
        with reading("ecr:DescribeImages"):
            return answer is not None and bool(answer["imageDetails"])

    def kms_key(self, arn: str) -> KmsKeyAnswer | None:
        answer = self._found("kms", "describe_key", {"KeyId": arn}, lambda refused: refused.code == "NotFoundException")
        with reading("kms:DescribeKey"):
            return None if answer is None else aws_shapes.kms_key(answer["KeyMetadata"])

    def kms_key_policy(self, arn: str) -> Mapping[str, Any]:
        answer = self._asked("kms", "get_key_policy", {"KeyId": arn, "PolicyName": "default"})
        with reading("kms:GetKeyPolicy"):
            return cast("Mapping[str, Any]", dict(json.loads(answer["Policy"])))

    def prometheus_workspace(self, arn: str) -> str | None:
        asked = {"workspaceId": arn.rpartition("/")[2]}
        answer = self._found("amp", "describe_workspace", asked, _is_missing_from_eks)
        with reading("aps:DescribeWorkspace"):
            return None if answer is None else str(answer["workspace"]["status"]["statusCode"])

    def grafana_workspace(self, arn: str) -> str | None:
        asked = {"workspaceId": arn.rpartition("/")[2]}
        answer = self._found("grafana", "describe_workspace", asked, _is_missing_from_eks)
        with reading("grafana:DescribeWorkspace"):
            return None if answer is None else str(answer["workspace"]["status"])

    def topic(self, arn: str) -> TopicAnswer | None:
        # the service model names NotFoundException, its answers NotFound
        answer = self._found(
            "sns", "get_topic_attributes", {"TopicArn": arn}, lambda refused: refused.code.startswith("NotFound")
        )
        with reading("sns:GetTopicAttributes"):
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
        with reading("events:DescribeEventBus"):
            return answer is not None and bool(answer["Name"])

    def slack_workspaces(self) -> frozenset[str]:
        rows = self.pages("chatbot", "describe_slack_workspaces", "SlackWorkspaces")
        with reading("chatbot:DescribeSlackWorkspaces"):
            return frozenset(str(row["SlackTeamId"]) for row in rows if row.get("State") != "DISABLED")

    def slack_channels(self) -> tuple[SlackChannelAnswer, ...]:
        rows = self.pages("chatbot", "describe_slack_channel_configurations", "SlackChannelConfigurations")
        with reading("chatbot:DescribeSlackChannelConfigurations"):
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
            lambda refused: refused.is_of_no_stack,
        )
        with reading("cloudformation:DescribeStacks"):
            return None if answer is None else aws_shapes.stack(answer["Stacks"][0])

    def request_quota(self, service: str, code: str, desired: float) -> QuotaRequest:
        """Request a quota increase to ``desired``, and give the request; an open request is given instead.

        This writes. It is not a question of ``Aws``, and does not use earlier answers. Raises NotAnswered if AWS
        refuses.
        """
        with reading("servicequotas:RequestServiceQuotaIncrease"):
            open_request = self._open_request(service, code)
            if open_request is not None:
                return open_request
            params = {"ServiceCode": service, "QuotaCode": code, "DesiredValue": desired}
            try:
                answer = self._send("service-quotas", "request_service_quota_increase", params)
            except Refused as refused:
                # another request was first, or this one arrived although its answer was lost
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
        # a session's ARN does not have the path of its role, and the roles of IAM Identity Center have one
        role = self.role(name.partition("/")[0])
        if role is None:
            raise NotAnswered(f"the role of {arn} is gone")
        return role.arn

    def _filtered(self, of: _Filtered, values: Sequence[str], **params: Any) -> Listed:
        """Query EC2 with a filter: what does not exist is left out; an ID as a parameter would be an error."""
        filters = [{"Name": of.filter, "Values": list(values)}]
        return self.listed("ec2", of.operation, of.key, Filters=filters, **params)

    def _those_of(
        self, values: Sequence[str], of: _Filtered, read: Callable[[Mapping[str, Any]], tuple[str, ItemT]]
    ) -> Among[ItemT]:
        """Query EC2 for what exists among these; each is one row of its answer."""

        def ask(batch: Sequence[str]) -> tuple[dict[str, ItemT], NotAnswered | None]:
            listed = self._filtered(of, batch)
            with reading(self._name("ec2", of.operation)):
                return dict(read(row) for row in listed.items), listed.missing

        return _among(values, FILTER_VALUES, ask)

    def _from_api_server(self, cluster: str, path: str) -> Mapping[str, Any]:
        found = self.eks_cluster(cluster)
        if found is None:
            raise NotAnswered(f"there is no EKS cluster {cluster}")

        def ask() -> Mapping[str, Any]:
            token = self._token(cluster)
            with self._recorded(f"kubernetes:GET {path}") as attempts:
                try:
                    return self._in_time(lambda: api_server.read(found, path, token), attempts)
                except TooLongError:
                    raise NotAnswered(f"the API server of EKS cluster {cluster} is not reachable from here") from None

        return self._once(("kubernetes", cluster, path), ask)


@dataclass(frozen=True)
class _Filtered:
    """An operation of EC2, the member of its answer with the rows, and the filter for the query."""

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
    """What a list says about one member."""

    name: str
    arn: str = ""
    status: str = ""


def _partial(listed: Listed, rows: Sequence[_Row], describe: Callable[[str], MemberT | None]) -> Partial[MemberT]:
    """Describe what was listed in parallel; a member that was deleted in the meantime is left out."""
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
    """Query names in parallel batches of at most ``most``; names of a failed batch are unread.

    ``ask`` gives what there is among the names of a batch, and why there may be more. Raises NotAnswered if nothing
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


def _newest_first(rows: Iterable[Mapping[str, Any]]) -> tuple[QuotaRequest, ...]:
    with reading("servicequotas:ListRequestedServiceQuotaChangeHistoryByQuota"):
        requests = [aws_shapes.quota_request(row) for row in rows]
    return tuple(sorted(requests, key=lambda each: each.created.timestamp() if each.created else 0.0, reverse=True))


def _is_missing_from_sagemaker(refused: Refused) -> bool:
    return is_gone(refused.code, refused.message)


def _is_missing_from_eks(refused: Refused) -> bool:
    return refused.code == "ResourceNotFoundException"


def _is_missing_from_iam(refused: Refused) -> bool:
    return refused.code == "NoSuchEntity"


def _place(arn: str) -> tuple[str, str]:
    """Return region and account of an ARN, or empty text if it is not an ARN."""
    of = arn_parts(arn)
    return of.region, of.account
