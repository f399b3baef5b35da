"""An embedded account in this process: moto for what moto plays, our operations called directly, a clock that jumps."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from botocore.validate import ParamValidator
from moto import backends
from moto.core.base_backend import BackendDict
from moto.core.models import DEFAULT_ACCOUNT_ID, botocore_stubber

from hyperpod_cdk_rehearsal.embedded import account, moto_edge, services
from hyperpod_cdk_rehearsal.embedded.context import Account, Clock, Context
from hyperpod_cdk_rehearsal.embedded.moto_pages import in_pages
from hyperpod_cdk_rehearsal.embedded.operations import PassToMoto, ServiceError, operation_for
from hyperpod_cdk_rehearsal.embedded.services import kubernetes_store
from hyperpod_cdk_rehearsal.embedded.services.rules import NODE_ACTIONS
from hyperpod_cdk_rehearsal.embedded.validation import request_problems, validation_message

assert services

# moto makes 1,300 images for every fresh account otherwise, a quarter of a second each time
os.environ["MOTO_EC2_LOAD_DEFAULT_AMIS"] = "false"
moto_edge._list_services_once()
moto_edge._list_methods_once()
moto_edge._make_no_rsa_keys_in_vain()
moto_edge._notify_topics_of_alarms()

REGION = "us-east-1"
FAR_AHEAD_SECONDS = 3600.0


class JumpingClock(Clock):
    """A clock that stands still until a test sleeps or jumps."""

    def __init__(self) -> None:
        super().__init__()
        self.moment = datetime(2026, 4, 1, 9, 0, tzinfo=UTC)

    def now(self) -> datetime:
        """The time it was set to."""
        return self.moment

    def sleep(self, seconds: float) -> None:
        """Jump."""
        self.moment += timedelta(seconds=seconds)


class LocalClient:
    """A boto3 client whose calls our operations answer in this process, checked against the model both ways."""

    def __init__(self, context: Context, service: str) -> None:
        self._context = context
        self._service = service
        self._real = _moto_client(service, context.region)
        self.meta = self._real.meta

    def __getattr__(self, method: str) -> Any:
        name = self.meta.method_to_api_mapping.get(method)
        function = operation_for(self._service, name) if name else None
        if function is None:
            return getattr(self._real, method)

        def call(**request: Any) -> Any:
            model = self.meta.service_model.operation_model(name)
            problems = request_problems(model.input_shape, request)
            if problems:
                raise _client_error("ValidationException", validation_message(problems), str(name))
            try:
                answer = in_pages(self._service, str(name), request, function(self._context, request)) or {}
            except PassToMoto:
                return getattr(self._real, method)(**request)
            except ServiceError as error:
                raise _client_error(error.code, error.message, str(name)) from error
            if model.output_shape is not None:
                report = ParamValidator().validate(answer, model.output_shape)
                assert not report.has_errors(), report.generate_report()
                assert set(answer) <= set(model.output_shape.members), set(answer) - set(model.output_shape.members)
            return answer

        return call


@dataclass
class LocalContext(Context):
    """A context whose clients stay in this process."""

    def client(self, service: str, region: str | None = None) -> Any:
        """A client that needs no server."""
        key = (service, region or self.region)
        if key not in self._clients:
            self._clients[key] = LocalClient(self, service)
        return self._clients[key]


@dataclass
class World:
    """An account with a network, roles, a lifecycle bucket and an EKS cluster that a HyperPod cluster can stand on."""

    context: LocalContext
    vpc_id: str = ""
    subnets: dict[str, str] = field(default_factory=dict)
    route_tables: dict[str, str] = field(default_factory=dict)
    security_group_id: str = ""
    node_role_arn: str = ""
    eks_role_arn: str = ""
    bucket: str = ""

    @property
    def clock(self) -> JumpingClock:
        """The clock, to jump."""
        clock = self.context.clock
        assert isinstance(clock, JumpingClock)
        return clock

    def client(self, service: str) -> Any:
        """A client of this account."""
        return self.context.client(service)

    def settle(self) -> None:
        """Jump until all running operations are complete."""
        self.clock.sleep(FAR_AHEAD_SECONDS)

    def account_file(self, **sections: Any) -> None:
        """Change sections of the account file, which is read again."""
        self.context.account_file = Account({**self.context.account_file.document, **sections})
        self.context.state.store(account._Parsed).file = None

    def role(
        self, name: str, *services: str, actions: Mapping[str, Any] | None = None, trust: Any = "sts:AssumeRole"
    ) -> str:
        """A role that trusts services, with an inline policy."""
        iam = self.client("iam")
        document = {
            "Version": "2012-10-17",
            "Statement": [{"Effect": "Allow", "Principal": {"Service": list(services)}, "Action": trust}],
        }
        arn = str(iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(document))["Role"]["Arn"])
        if actions:
            self.allow(name, actions)
        return arn

    def allow(self, role_name: str, actions: Mapping[str, Any], policy_name: str = "inline") -> None:
        """Set a role's inline policy: resource -> actions."""
        statements = [{"Effect": "Allow", "Action": names, "Resource": what} for what, names in actions.items()]
        document = json.dumps({"Version": "2012-10-17", "Statement": statements})
        self.client("iam").put_role_policy(RoleName=role_name, PolicyName=policy_name, PolicyDocument=document)

    def security_group(self, name: str, *, ingress: bool = True, egress: bool = True) -> str:
        """A security group with the rules to itself that are asked for."""
        ec2 = self.client("ec2")
        group_id = str(ec2.create_security_group(GroupName=name, Description=name, VpcId=self.vpc_id)["GroupId"])
        itself = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group_id}]}]
        if ingress:
            ec2.authorize_security_group_ingress(GroupId=group_id, IpPermissions=itself)
        if egress:
            ec2.authorize_security_group_egress(GroupId=group_id, IpPermissions=itself)
        return group_id

    def group(
        self, name: str = "system", instance_type: str = "ml.m5.2xlarge", count: int = 1, **members: Any
    ) -> dict[str, Any]:
        """An instance group that passes every rule."""
        return {
            "InstanceGroupName": name,
            "InstanceType": instance_type,
            "InstanceCount": count,
            "ExecutionRole": self.node_role_arn,
            "ThreadsPerCore": 2,
            "LifeCycleConfig": {"SourceS3Uri": f"s3://{self.bucket}/abc", "OnCreate": "on_create.sh"},
            **members,
        }

    def hyperpod_request(self, *groups: dict[str, Any], **members: Any) -> dict[str, Any]:
        """A CreateCluster request that passes every rule; a member that is None is left out."""
        request = {
            "ClusterName": "prod",
            "InstanceGroups": list(groups) or [self.group()],
            "VpcConfig": {"SecurityGroupIds": [self.security_group_id], "Subnets": [self.subnets["use1-az5"]]},
            "Orchestrator": {"Eks": {"ClusterArn": self.context.arn("eks", "cluster/prod-eks")}},
            "NodeProvisioningMode": "Continuous",
            "Tags": [{"Key": "SageMaker", "Value": "true"}],
            **members,
        }
        return {member: value for member, value in request.items() if value is not None}

    def eks_request(self, **members: Any) -> dict[str, Any]:
        """An EKS CreateCluster request that passes every rule."""
        return {
            "name": "prod-eks",
            "version": "1.34",
            "roleArn": self.eks_role_arn,
            "resourcesVpcConfig": {"subnetIds": list(self.subnets.values())},
            "accessConfig": {"authenticationMode": "API"},
            **members,
        }

    def make_eks(self, *, chart: bool = True, **members: Any) -> None:
        """An ACTIVE EKS cluster, with the HyperPod chart."""
        self.client("eks").create_cluster(**self.eks_request(**members))
        self.settle()
        if chart:
            kubernetes_store.record_helm_release(
                self.context, "prod-eks", "hyperpod-dependencies", "kube-system", "HyperPodHelmChart", {}
            )

    def make_hyperpod(self, *groups: dict[str, Any], **members: Any) -> str:
        """An InService HyperPod cluster on an EKS cluster; gives its ARN."""
        if "prod-eks" not in self.client("eks").list_clusters()["clusters"]:
            self.make_eks()
        arn = str(self.client("sagemaker").create_cluster(**self.hyperpod_request(*groups, **members))["ClusterArn"])
        self.settle()
        return arn

    def failure_message(self, *groups: dict[str, Any], **members: Any) -> str:
        """Create a HyperPod cluster whose nodes fail, and return the reason.

        Where it provisions all or nothing the cluster itself has failed; else it is in service, and an event tells.
        """
        arn = self.make_hyperpod(*groups, **members)
        sagemaker = self.client("sagemaker")
        cluster = sagemaker.describe_cluster(ClusterName=arn)
        if cluster.get("NodeProvisioningMode") != "Continuous":
            assert cluster["ClusterStatus"] == "Failed"
            return str(cluster["FailureMessage"])
        assert cluster["ClusterStatus"] == "InService"
        events = sagemaker.list_cluster_events(ClusterName=arn, ResourceType="Instance")["Events"]
        newest = next(event for event in events if event["EventLevel"] == "Error")
        described = sagemaker.describe_cluster_event(ClusterName=arn, EventId=newest["EventId"])["EventDetails"]
        return str(described["EventDetails"]["EventMetadata"]["Instance"]["FailureMessage"])


@pytest.fixture
def world() -> Iterator[World]:
    """A fresh account."""
    laid = _laid()
    with _moto():
        for service, account_id, region, backend in pickle.loads(laid.backends):  # noqa: S301 - pickled by this process
            backends.get_backend(service)[account_id][region] = backend
        yield World(_empty_context(), **pickle.loads(laid.members))  # noqa: S301 - as above


@pytest.fixture
def refusal() -> Callable[..., tuple[str, str]]:
    """Call something that must be refused; returns AWS's code and the complete message."""

    def refused(call: Callable[..., Any], **arguments: Any) -> tuple[str, str]:
        with pytest.raises(ClientError) as caught:
            call(**arguments)
        error = caught.value.response.get("Error", {})
        return error.get("Code", ""), error.get("Message", "")

    return refused


_QUOTAS = {
    "ml.m5.2xlarge for cluster usage": 20,
    "ml.p5.48xlarge for cluster usage": 16,
    "ml.g5.12xlarge for cluster usage": 8,
    "Total number of instances allowed across SageMaker HyperPod clusters": 100,
    "Maximum size of EBS volume in GB for a SageMaker HyperPod cluster instance": 1024,
}


@cache
def _moto_client(service: str, region: str) -> Any:
    # made once: clients cost more than most tests; moto answers them whenever its mock is on
    return boto3.client(  # type: ignore[call-overload]  # boto3 wants a literal
        service,  # pyright: ignore[reportArgumentType] - as above
        region_name=region,
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
        config=Config(user_agent="tests"),  # botocore's own is put together anew for every request
    )


@dataclass(frozen=True)
class _Laid:
    """What moto holds of a world, and the world's members that name it, pickled: each test loads a copy of its own."""

    backends: bytes
    members: bytes


@cache
def _laid() -> _Laid:
    # made once: loading what moto holds costs a fiftieth of asking for it again, request by request
    with _moto():
        pass  # what other tests of this process have left would be part of every world
    with _moto():
        world = World(_empty_context())
        _lay_network(world)
        _make_roles(world)
        _fill_bucket(world)
        # what our own operations would keep could name this context, and would be lost
        assert set(world.context.state._stores) <= {account._Parsed}
        every: Any = BackendDict  # generic, and its instances stand on the class
        held = [
            (of_service.service_name, *place_and_backend)
            for of_service in every._instances
            for place_and_backend in of_service.iter_backends()
        ]
        members = {member.name: getattr(world, member.name) for member in fields(World) if member.name != "context"}
        return _Laid(pickle.dumps(held), pickle.dumps(members))


def _empty_context() -> LocalContext:
    return LocalContext(
        account=DEFAULT_ACCOUNT_ID,
        region=REGION,
        partition="aws",
        url_suffix="amazonaws.com",
        endpoint="",
        clock=JumpingClock(),
        account_file=Account({"quotas": {"sagemaker": _QUOTAS}}),
    )


@contextmanager
def _moto() -> Iterator[None]:
    # mock_aws() also takes the place of `requests`, with a thousand patterns each time; only botocore asks here
    botocore_stubber.enabled = True
    try:
        yield
    finally:
        botocore_stubber.enabled = False
        # emptied first: a reset would lay default VPCs that nobody sees
        backends.get_backend("ec2").clear()
        BackendDict.reset()


def _client_error(code: str, message: str, name: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, name)


def _lay_network(world: World) -> None:
    ec2 = world.client("ec2")
    world.vpc_id = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=world.vpc_id)
    nat_subnet = ec2.create_subnet(VpcId=world.vpc_id, CidrBlock="10.0.255.0/24")["Subnet"]["SubnetId"]
    nat = ec2.create_nat_gateway(SubnetId=nat_subnet)["NatGateway"]["NatGatewayId"]
    for number, zone in enumerate(("use1-az5", "use1-az4")):
        subnet = ec2.create_subnet(VpcId=world.vpc_id, CidrBlock=f"10.0.{number * 16}.0/20", AvailabilityZoneId=zone)
        table = ec2.create_route_table(VpcId=world.vpc_id)["RouteTable"]["RouteTableId"]
        world.subnets[zone] = subnet["Subnet"]["SubnetId"]
        world.route_tables[zone] = table
        ec2.associate_route_table(RouteTableId=table, SubnetId=world.subnets[zone])
        ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", NatGatewayId=nat)
    ec2.create_vpc_endpoint(
        VpcId=world.vpc_id,
        ServiceName=f"com.amazonaws.{REGION}.s3",
        VpcEndpointType="Gateway",
        RouteTableIds=list(world.route_tables.values()),
    )
    world.security_group_id = world.security_group("efa")


def _make_roles(world: World) -> None:
    actions = {
        "*": ["ec2:DescribeSubnets", *NODE_ACTIONS],
        "arn:aws:s3:::sagemaker-*": ["s3:GetObject", "s3:ListBucket"],
    }
    world.node_role_arn = world.role("nodes", "sagemaker.amazonaws.com", actions=actions)
    world.eks_role_arn = world.role("control-plane", "eks.amazonaws.com")


def _fill_bucket(world: World) -> None:
    world.bucket = "sagemaker-prod-lifecycle"
    s3 = world.client("s3")
    s3.create_bucket(Bucket=world.bucket)
    s3.put_object(Bucket=world.bucket, Key="abc/on_create.sh", Body=b"#!/bin/bash\nexit 0\n")
