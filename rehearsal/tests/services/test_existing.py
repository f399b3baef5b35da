"""A VPC and an EKS cluster that stand before the first request, under the IDs of the account file, each breakable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from hyperpod_cdk.config import load_environment
from hyperpod_cdk_rehearsal.account_files import _blocks, load_document, resolved
from hyperpod_cdk_rehearsal.embedded.account import AccountFileError
from hyperpod_cdk_rehearsal.inventory import Inventory, read_inventory
from rehearsal.tests.support.embedded import Embedded, embedded

FILE = "examples/existing-vpc-and-eks.yaml"
VPC = "vpc-0c1f4e8a9b7d26350"
SUBNET = "subnet-0d5a9e3b71c84f206"
GROUP, EKS_GROUP = "sg-0f2c7a9d4e6b81503", "sg-03e9b5d7f1a8c2646"
KUBECTL = "arn:aws:iam::111122223333:role/platform/kubectl"
OIDC = "arn:aws:iam::111122223333:oidc-provider/oidc.eks.us-east-1.amazonaws.com/id/4C7E1F0A93B8D2566A1B9E3D70F4C825"
HERE = [{"Name": "vpc-id", "Values": [VPC]}]


class Clients:
    """boto3 clients of one embedded AWS."""

    def __init__(self, there: Embedded) -> None:
        self._there = there

    def __getattr__(self, service: str) -> Any:
        return self._there.client(service)

    def client(self, service: str) -> Any:
        """Return a client, as whatever reads an inventory wants it."""
        return getattr(self, service)


@pytest.fixture(scope="module")
def document(project: Path) -> dict[str, Any]:
    """The account that the example needs."""
    return load_document(environment_file=project / FILE)


@pytest.fixture(scope="class")
def healthy(document: dict[str, Any]) -> Iterator[Clients]:
    """That account, as it should be."""
    with embedded(document) as aws:
        yield Clients(aws)


def changed(document: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """The document with members of its one VPC (vpc), first subnet, first group (group) or cluster replaced."""
    result = deepcopy(dict(document))
    (vpc,), (cluster,) = result["existing"]["networks"], result["existing"]["eks_clusters"]
    places = {"vpc": vpc, "subnet": vpc["subnets"][0], "group": vpc["security_groups"][0], "cluster": cluster}
    for place, members in changes.items():
        places[place].update(members)
    return result


def default_route(aws: Clients, subnet_id: str) -> dict[str, str]:
    tables = aws.ec2.describe_route_tables(Filters=[{"Name": "association.subnet-id", "Values": [subnet_id]}])
    (table,) = tables["RouteTables"]
    return next((dict(r) for r in table["Routes"] if r.get("DestinationCidrBlock") == "0.0.0.0/0"), {})


def names_itself(permissions: list[dict[str, Any]], group_id: str) -> bool:
    return any(pair["GroupId"] == group_id for each in permissions for pair in each["UserIdGroupPairs"])


class TestHealthy:
    def test_the_vpc_has_its_blocks_and_subnets(self, healthy: Clients) -> None:
        (vpc,) = healthy.ec2.describe_vpcs(VpcIds=[VPC])["Vpcs"]
        blocks = [each["CidrBlock"] for each in vpc["CidrBlockAssociationSet"]]
        assert blocks == ["10.40.0.0/16", "100.64.0.0/16"]
        subnets = healthy.ec2.describe_subnets(Filters=HERE)["Subnets"]
        assert {(each["SubnetId"], each["AvailabilityZoneId"]) for each in subnets} == {
            (SUBNET, "use1-az6"),
            ("subnet-02b6f8d4e9a13c75e", "use1-az4"),
            ("subnet-09e47b1c6d2f8a035", "use1-az6"),
            ("subnet-0a83d5f2e7c1b6490", "use1-az4"),
        }
        assert [each["MapPublicIpOnLaunch"] for each in subnets] == [False] * 4

    def test_nodes_have_a_way_out_and_to_s3(self, healthy: Clients) -> None:
        assert default_route(healthy, SUBNET)["NatGatewayId"].startswith("nat-")
        (endpoint,) = healthy.ec2.describe_vpc_endpoints(Filters=HERE)["VpcEndpoints"]
        assert endpoint["ServiceName"] == "com.amazonaws.us-east-1.s3"
        assert len(endpoint["RouteTableIds"]) == 4

    @pytest.mark.parametrize("group_id", [GROUP, EKS_GROUP])
    def test_groups_name_themselves(self, healthy: Clients, group_id: str) -> None:
        (group,) = healthy.ec2.describe_security_groups(GroupIds=[group_id])["SecurityGroups"]
        assert group["VpcId"] == VPC
        assert names_itself(group["IpPermissions"], group_id)
        assert names_itself(group["IpPermissionsEgress"], group_id)

    def test_the_cluster(self, healthy: Clients) -> None:
        cluster = healthy.eks.describe_cluster(name="platform")["cluster"]
        assert (cluster["status"], cluster["version"]) == ("ACTIVE", "1.35")
        assert cluster["accessConfig"]["authenticationMode"] == "API"
        assert cluster["resourcesVpcConfig"]["vpcId"] == VPC
        assert cluster["resourcesVpcConfig"]["clusterSecurityGroupId"] == EKS_GROUP
        assert cluster["identity"]["oidc"]["issuer"] == f"https://{OIDC.partition(':oidc-provider/')[2]}"
        assert healthy.eks.list_addons(clusterName="platform")["addons"] == [
            "cert-manager",
            "coredns",
            "eks-pod-identity-agent",
            "kube-proxy",
            "vpc-cni",
        ]
        assert healthy.eks.list_access_entries(clusterName="platform")["accessEntries"] == [KUBECTL]

    def test_iam(self, healthy: Clients) -> None:
        assert healthy.iam.get_role(RoleName="kubectl")["Role"]["Arn"] == KUBECTL
        arns = [each["Arn"] for each in healthy.iam.list_open_id_connect_providers()["OpenIDConnectProviderList"]]
        assert arns == [OIDC]

    def test_an_inventory_shows_what_no_stack_made(self, healthy: Clients) -> None:
        found = read_inventory(healthy, [], existing_vpc_id=VPC, existing_eks_cluster="platform")
        assert (found.vpc_id, found.vpc_cidrs) == (VPC, ["10.40.0.0/16", "100.64.0.0/16"])
        assert (found.nat_gateways, found.endpoints) == (1, ["s3 (gateway)"])
        assert (found.eks, found.kubernetes_version, found.eks_status) == ("platform", "1.35", "ACTIVE")
        assert found.access_entries == {"kubectl": "STANDARD"}
        assert read_inventory(healthy, []) == Inventory()


class TestBroken:
    @pytest.mark.parametrize(
        ("way_out", "target"),
        [("internet_gateway", ("GatewayId", "igw-")), ("transit_gateway", ("TransitGatewayId", "tgw-"))],
    )
    def test_another_way_out(self, document: dict[str, Any], way_out: str, target: tuple[str, str]) -> None:
        with embedded(changed(document, subnet={"way_out": way_out})) as aws:
            key, prefix = target
            assert default_route(Clients(aws), SUBNET)[key].startswith(prefix)

    def test_a_subnet_that_is_shut_in_full_public_and_elsewhere(self, document: dict[str, Any]) -> None:
        subnet = {
            "way_out": "none",
            "s3_endpoint": False,
            "free_addresses": 17,
            "assigns_public_addresses": True,
            "availability_zone_id": "use1-az1",
        }
        with embedded(changed(document, subnet=subnet)) as aws:
            clients = Clients(aws)
            (found,) = clients.ec2.describe_subnets(SubnetIds=[SUBNET])["Subnets"]
            assert (found["AvailabilityZoneId"], found["AvailableIpAddressCount"]) == ("use1-az1", 17)
            assert found["MapPublicIpOnLaunch"] is True
            assert default_route(clients, SUBNET) == {}
            (endpoint,) = clients.ec2.describe_vpc_endpoints(Filters=HERE)["VpcEndpoints"]
            assert len(endpoint["RouteTableIds"]) == 3

    @pytest.mark.parametrize(
        ("members", "found"),
        [
            ({"self_ingress": False}, (False, True)),
            ({"self_egress": False}, (True, False)),
            ({"self_egress": False, "open_egress": False}, (True, False)),
        ],
    )
    def test_a_group_without_a_rule(
        self, document: dict[str, Any], members: dict[str, bool], found: tuple[bool, bool]
    ) -> None:
        with embedded(changed(document, group=members)) as aws:
            (group,) = Clients(aws).ec2.describe_security_groups(GroupIds=[GROUP])["SecurityGroups"]
            inwards, outwards = group["IpPermissions"], group["IpPermissionsEgress"]
            assert (names_itself(inwards, GROUP), names_itself(outwards, GROUP)) == found
            opened = any(each["IpRanges"] for each in outwards)
            assert opened is members.get("open_egress", True)

    def test_a_subnet_of_another_vpc(self, document: dict[str, Any]) -> None:
        broken = deepcopy(document)
        (vpc,) = broken["existing"]["networks"]
        moved = {**vpc["subnets"].pop(0), "cidr": "10.50.0.0/20"}
        other = "vpc-0123456789abcdef0"
        broken["existing"]["networks"].append({"vpc_id": other, "cidrs": ["10.50.0.0/16"], "subnets": [moved]})
        with embedded(broken) as aws:
            (found,) = Clients(aws).ec2.describe_subnets(SubnetIds=[SUBNET])["Subnets"]
            assert found["VpcId"] == other

    def test_a_cluster_that_hyperpod_refuses(self, document: dict[str, Any]) -> None:
        members = {
            "authentication_mode": "CONFIG_MAP",
            "addons": {"vpc-cni": "v1.18.1-eksbuild.1"},
            "endpoint_public": False,
            "kueue": True,
            "access_entries": [],
            "daemon_sets": {"aws-node": ["amazon-k8s-cni:v1.18.1"]},
            "cluster_security_group_id": "sg-0123456789abcdef0",
        }
        with embedded(changed(document, cluster=members)) as aws:
            clients = Clients(aws)
            cluster = clients.eks.describe_cluster(name="platform")["cluster"]
            assert cluster["accessConfig"]["authenticationMode"] == "CONFIG_MAP"
            assert cluster["resourcesVpcConfig"]["endpointPublicAccess"] is False
            (group,) = clients.ec2.describe_security_groups(GroupIds=["sg-0123456789abcdef0"])["SecurityGroups"]
            assert group["VpcId"] == VPC
            addon = clients.eks.describe_addon(clusterName="platform", addonName="vpc-cni")["addon"]
            assert addon["addonVersion"] == "v1.18.1-eksbuild.1"


def test_what_the_file_states_itself_stays(project: Path, document: dict[str, Any]) -> None:
    environment = load_environment(project / FILE).environment
    stated = {"vpc_id": VPC, "cidrs": ["10.0.0.0/8"]}
    found = resolved({"existing": {"from_environment": True, "networks": [stated]}}, environment)["existing"]
    assert [(row["vpc_id"], row["cidrs"]) for row in found["networks"]] == [(VPC, ["10.0.0.0/8"])]
    assert found["eks_clusters"] == document["existing"]["eks_clusters"]


def test_an_unknown_member_is_refused(project: Path) -> None:
    environment = load_environment(project / FILE).environment
    with pytest.raises(AccountFileError, match=r"existing\.networks\.0\.subnet: extra inputs are not permitted"):
        resolved({"existing": {"networks": [{"vpc_id": VPC, "subnet": []}]}}, environment)


@pytest.mark.parametrize(
    ("cidrs", "count", "first"),
    [
        (("10.0.0.0/16",), 1, "10.0.0.0/16"),
        (("10.0.0.0/16",), 2, "10.0.0.0/17"),
        (("10.0.0.0/16",), 5, "10.0.0.0/19"),
        (("10.0.0.0/16", "100.64.0.0/16"), 2, "10.0.0.0/16"),
        (("10.0.0.0/24", "10.0.1.0/24"), 2, "10.0.0.0/24"),
    ],
)
def test_blocks_of_subnets(cidrs: tuple[str, ...], count: int, first: str) -> None:
    parts = list(_blocks(cidrs, count))
    assert len(parts) >= count
    assert parts[0] == first
