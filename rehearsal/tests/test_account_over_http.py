"""What the account file says of an account, as boto3 sees it: zones, offerings, IAM, leftovers, faults, latency."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError, HTTPClientError
from botocore.parsers import ResponseParserError

from hyperpod_cdk_rehearsal.embedded import resources, services
from hyperpod_cdk_rehearsal.embedded.account import DEFAULT_ACCOUNT_FILE, AccountFile, read_account_file
from hyperpod_cdk_rehearsal.embedded.moto_pages import PAGE, in_pages, paginated
from hyperpod_cdk_rehearsal.embedded.operations import _operations
from hyperpod_cdk_rehearsal.embedded.protocol import service_model
from rehearsal.tests.support.embedded import ACCOUNT, Embedded, embedded

Account = Callable[..., "Clients"]


class Clients:
    """Clients of an account that never repeat a request."""

    def __init__(self, there: Embedded) -> None:
        self.there = there

    def __call__(self, service: str, **settings: Any) -> Any:
        return self.there.client(service, **settings)


@pytest.fixture
def account() -> Iterator[Account]:
    """Make an account of sections of the account file."""
    with ExitStack() as stack:

        def make(*, latency_ms: float = 0, now: datetime | None = None, **sections: Any) -> Clients:
            return Clients(stack.enter_context(embedded(sections, latency_ms=latency_ms, now=now)))

        yield make


def code_of(call: Callable[..., Any], **arguments: Any) -> tuple[str, int]:
    """Return error code and HTTP status of a call that is refused."""
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    # the stubs declare every key as one that may be missing; parsed responses have them all
    response: Any = caught.value.response
    return str(response["Error"]["Code"]), int(response["ResponseMetadata"]["HTTPStatusCode"])


def test_the_shipped_file_states_every_section() -> None:
    assert set(read_account_file(DEFAULT_ACCOUNT_FILE)) == set(AccountFile.model_fields)


def test_zones(account: Account) -> None:
    local = {"use1-dfw2-az1": {"name": "us-east-1-dfw-2a"}}
    ec2 = account(zones={"missing": ["use1-az3"], "states": {"use1-az5": "impaired"}, "local": local})("ec2")
    zones = {zone["ZoneId"]: zone for zone in ec2.describe_availability_zones()["AvailabilityZones"]}
    assert sorted(zones) == ["use1-az1", "use1-az2", "use1-az4", "use1-az5", "use1-az6"]
    assert (zones["use1-az5"]["State"], zones["use1-az4"]["OptInStatus"]) == ("impaired", "opt-in-not-required")
    every = ec2.describe_availability_zones(AllAvailabilityZones=True)["AvailabilityZones"]
    found = next(zone for zone in every if zone["ZoneId"] == "use1-dfw2-az1")
    assert (found["ZoneType"], found["OptInStatus"], found["GroupName"]) == (
        "local-zone",
        "not-opted-in",
        "us-east-1-dfw-2",
    )
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    refused = code_of(ec2.create_subnet, VpcId=vpc, CidrBlock="10.0.0.0/24", AvailabilityZoneId="use1-az3")
    assert refused == ("InvalidParameterValue", 400)
    # not opted in
    refused = code_of(ec2.create_subnet, VpcId=vpc, CidrBlock="10.0.0.0/24", AvailabilityZoneId="use1-dfw2-az1")
    assert refused == ("InvalidParameterValue", 400)


def test_a_subnet_in_a_local_zone_that_is_opted_in(account: Account) -> None:
    local = {"use1-dfw2-az1": {"name": "us-east-1-dfw-2a", "opted_in": True}}
    for _ in range(2):
        # what moto was told before is told once, and is no zone of another account
        ec2 = account(zones={"local": local})("ec2")
        vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        made = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24", AvailabilityZoneId="use1-dfw2-az1")["Subnet"]
        assert (made["AvailabilityZone"], made["AvailabilityZoneId"]) == ("us-east-1-dfw-2a", "use1-dfw2-az1")
        zones = [zone["ZoneId"] for zone in ec2.describe_availability_zones()["AvailabilityZones"]]
        assert zones.count("use1-dfw2-az1") == 1
    zones = account()("ec2").describe_availability_zones(AllAvailabilityZones=True)["AvailabilityZones"]
    assert all(zone["ZoneType"] == "availability-zone" for zone in zones)


def test_offerings_come_in_pages(account: Account) -> None:
    ec2 = account(offerings={"p5.48xlarge": ["use1-az5"]}, page_size=3)("ec2")
    pages = list(
        ec2.get_paginator("describe_instance_type_offerings").paginate(
            LocationType="availability-zone-id",
            Filters=[{"Name": "instance-type", "Values": ["p5.48xlarge", "m5.2xlarge"]}],
        )
    )
    rows = [(row["InstanceType"], row["Location"]) for page in pages for row in page["InstanceTypeOfferings"]]
    assert len(pages) == 3
    assert [zone for name, zone in rows if name == "p5.48xlarge"] == ["use1-az5"]
    assert len([zone for name, zone in rows if name == "m5.2xlarge"]) == 6


def test_offerings_are_whole(account: Account) -> None:
    """EC2 gives a thousand at once, unlike others, and as many pages as there are."""
    ec2 = account()("ec2")
    pages = list(ec2.get_paginator("describe_instance_type_offerings").paginate(LocationType="availability-zone-id"))
    rows = [(row["InstanceType"], row["Location"]) for page in pages for row in page["InstanceTypeOfferings"]]
    assert len(rows) == len(set(rows)) > 1000
    assert [len(page["InstanceTypeOfferings"]) for page in pages[:-1]] == [1000] * (len(pages) - 1)
    # every zone offers what the first one does
    zones = {zone for _, zone in rows}
    types = {name for name, _ in rows}
    assert len(rows) == len(zones) * len(types)


@pytest.mark.parametrize(
    ("service", "operation", "key", "whole"),
    [
        ("ec2", "describe_vpcs", "Vpcs", 4),
        ("ec2", "describe_security_groups", "SecurityGroups", 4),
        ("ec2", "describe_subnets", "Subnets", 6),
        ("eks", "describe_cluster_versions", "clusterVersions", 7),
        ("eks", "list_clusters", "clusters", 3),
        ("fsx", "describe_file_systems", "FileSystems", 3),
        ("sagemaker", "list_clusters", "ClusterSummaries", 3),
        ("logs", "describe_log_groups", "logGroups", 3),
    ],
)
def test_lists_come_in_pages(account: Account, service: str, operation: str, key: str, whole: int) -> None:
    make = account(
        page_size=2,
        in_use={"vpcs": 3, "eks_clusters": 3, "file_systems": [{"capacity_gib": 1200}] * 3},
        clusters=[{"name": name} for name in ("one", "two", "three")],
        log_groups=["/one", "/two", "/three"],
        # each with a status of its own: by dates, one fewer is supported every few months
        kubernetes={"versions": {"1.29": "gone", **{f"1.{minor}": "EXTENDED_SUPPORT" for minor in range(30, 37)}}},
    )
    pages = list(make(service).get_paginator(operation).paginate())
    assert [len(page[key]) for page in pages] == [2] * (whole // 2) + [1] * (whole % 2)


def test_interfaces_and_services_come_in_pages(account: Account) -> None:
    make = account(page_size=2)
    ec2 = make("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")["Subnet"]["SubnetId"]
    for _ in range(3):
        ec2.create_network_interface(SubnetId=subnet)
    pages = ec2.get_paginator("describe_network_interfaces").paginate()
    assert [len(page["NetworkInterfaces"]) for page in pages] == [2, 1]
    found = [len(page["Services"]) for page in make("service-quotas").get_paginator("list_services").paginate()]
    assert len(found) > 1
    assert set(found[:-1]) == {2}


@pytest.mark.parametrize(
    ("service", "operation", "key"),
    [
        ("eks", "ListUpdates", "updateIds"),
        ("eks", "ListAssociatedAccessPolicies", "associatedAccessPolicies"),
        ("eks", "ListPodIdentityAssociations", "associations"),
        ("fsx", "ListTagsForResource", "Tags"),
        ("sagemaker", "ListTags", "Tags"),
        ("service-quotas", "ListServices", "Services"),
        ("iam", "SimulatePrincipalPolicy", "EvaluationResults"),
    ],
)
def test_a_list_that_is_given_whole_comes_in_pages(service: str, operation: str, key: str) -> None:
    model, rows = paginated(service, operation), list(range(PAGE + 1))
    is_last, got, sizes = False, [], []
    request: dict[str, Any] = {}
    while not is_last:
        answer = in_pages(service, operation, request, {key: rows})
        assert answer is not None
        got += answer[key]
        sizes.append(len(answer[key]))
        is_last = model["output_token"] not in answer
        assert answer.get("IsTruncated", not is_last) is not is_last
        request = {model["input_token"]: answer.get(model["output_token"])}
    assert (got, sizes) == (rows, [PAGE, 1])
    first = in_pages(service, operation, {model["limit_key"]: 2}, {key: rows})
    assert first is not None
    assert first[key] == [0, 1]
    # what fits stays as it is, and so does what is no list
    assert in_pages(service, operation, {}, {key: rows[:PAGE]}) == {key: rows[:PAGE]}
    assert in_pages(service, operation, {}, None) is None


def test_every_list_of_a_function_has_pages() -> None:
    """A list that the model pages is paged here where botocore names its one result; the others are few."""
    # which register their functions when imported
    assert services
    assert resources
    others = {
        f"{service}:{name}"
        for service, name in _operations
        if _tokens(service, name) and not isinstance(paginated(service, name).get("result_key"), str)
    }
    # the first pages itself, moto answers the other after its function
    assert others == {"ec2:DescribeVpcEndpointServices", "iam:ListEntitiesForPolicy"}


def _tokens(service: str, name: str) -> set[str]:
    model = service_model(service).operation_model(name)
    asked, answered = (shape.members if shape else {} for shape in (model.input_shape, model.output_shape))
    return {each for each in asked if each in {"NextToken", "nextToken", "Marker"}} & set(answered)


def test_iam(account: Account) -> None:
    boundary = f"arn:aws:iam::{ACCOUNT}:policy/developer-boundary"
    denied = [{"action": "ec2:Create*", "principal": "deployer", "by": "organization"}]
    make = account(
        iam={
            "caller": f"arn:aws:sts::{ACCOUNT}:assumed-role/deployer/me",
            "service_linked_roles": {"AWSServiceRoleForAmazonEKS": "eks.amazonaws.com"},
            "policies": [boundary],
            "denied_actions": denied,
        },
        existing={"iam_roles": ["deployer"]},
    )
    iam = make("iam")
    assert make("sts").get_caller_identity()["Arn"].endswith("assumed-role/deployer/me")
    assert iam.get_policy(PolicyArn=boundary)["Policy"]["Arn"] == boundary
    trust = iam.get_role(RoleName="AWSServiceRoleForAmazonEKS")["Role"]["AssumeRolePolicyDocument"]
    assert trust["Statement"][0]["Principal"] == {"Service": "eks.amazonaws.com"}
    role = iam.get_role(RoleName="deployer")["Role"]["Arn"]
    simulate = iam.simulate_principal_policy
    results = simulate(PolicySourceArn=role, ActionNames=["ec2:CreateVpc", "ec2:DescribeVpcs"])["EvaluationResults"]
    assert [result["EvalDecision"] for result in results] == ["explicitDeny", "allowed"]
    assert results[0]["OrganizationsDecisionDetail"] == {"AllowedByOrganizations": False}
    session = f"arn:aws:sts::{ACCOUNT}:assumed-role/deployer/me"
    assert code_of(simulate, PolicySourceArn=session, ActionNames=["ec2:CreateVpc"]) == ("InvalidInput", 400)
    nobody = f"arn:aws:iam::{ACCOUNT}:role/nobody"
    assert code_of(simulate, PolicySourceArn=nobody, ActionNames=["ec2:CreateVpc"]) == ("NoSuchEntity", 404)


def test_leftovers(account: Account) -> None:
    make = account(
        stacks={"prod-network": "UPDATE_IN_PROGRESS"},
        log_groups=["/aws/eks/prod-eks/cluster"],
        buckets={"my-datasets": "eu-west-1"},
        bootstrap={"version": 6},
    )
    began = time.monotonic()
    assert make("cloudformation").describe_stacks(StackName="prod-network")["Stacks"][0]["StackStatus"] == (
        "UPDATE_IN_PROGRESS"
    )
    # a request waits a minute for an account that is not filled
    assert time.monotonic() - began < 40
    groups = make("logs").describe_log_groups(logGroupNamePrefix="/aws/eks/prod-eks/")["logGroups"]
    assert [group["logGroupName"] for group in groups] == ["/aws/eks/prod-eks/cluster"]
    assert make("s3").head_bucket(Bucket="my-datasets")["BucketRegion"] == "eu-west-1"
    assert make("ssm").get_parameter(Name="/cdk-bootstrap/hnb659fds/version")["Parameter"]["Value"] == "6"
    roles = make("iam")
    assert roles.get_role(RoleName=f"cdk-hnb659fds-cfn-exec-role-{ACCOUNT}-us-east-1")["Role"]["Arn"]


def test_time_goes_on_from_where_it_is_set(account: Account) -> None:
    plan = {"name": "a", "instance_type": "ml.p5.48xlarge", "instance_count": 1, "availability_zone_id": "use1-az5"}
    make = account(now=datetime(2030, 1, 1, tzinfo=UTC), training_plans={"plans": [plan]})
    assert make("sagemaker").describe_training_plan(TrainingPlanName="a")["StartTime"].year == 2029


WORDS = {
    ("ec2", "describe_vpcs"): [("UnauthorizedOperation", 403), ("RequestLimitExceeded", 503), ("RequestExpired", 400)],
    ("iam", "list_roles"): [("AccessDenied", 403), ("Throttling", 400), ("ExpiredToken", 403)],
    ("eks", "list_clusters"): [
        ("AccessDeniedException", 403),
        ("ThrottlingException", 429),
        ("ExpiredTokenException", 403),
    ],
    ("ssm", "describe_parameters"): [
        ("AccessDeniedException", 400),
        ("ThrottlingException", 400),
        ("ExpiredTokenException", 400),
    ],
}


@pytest.mark.parametrize(("service", "call"), WORDS)
def test_each_service_refuses_in_its_own_words(account: Account, service: str, call: str) -> None:
    for kind, expected in zip(("access_denied", "throttle", "expired_token"), WORDS[service, call], strict=True):
        client = account(faults=[{"service": service, "kind": kind}])(service)
        assert code_of(getattr(client, call)) == expected


def test_a_denied_call_has_its_action_and_the_identity_is_never_denied(account: Account) -> None:
    make = account(
        iam={"denied_calls": ["s3:ListBucket", "sts:*", "ec2:Describe*"]}, buckets={"my-datasets": "us-east-1"}
    )
    assert code_of(make("s3").head_bucket, Bucket="my-datasets") == ("403", 403)
    assert make("sts").get_caller_identity()["Account"] == ACCOUNT
    with pytest.raises(ClientError, match="not authorized to perform: ec2:DescribeVpcs because"):
        make("ec2").describe_vpcs()


def test_a_fault_strikes_as_often_as_it_says(account: Account) -> None:
    fault = {"service": "fsx", "operation": "DescribeFileSystems", "kind": "server_error", "after": 1, "times": 2}
    fsx = account(faults=[fault])("fsx")
    outcomes = []
    for _ in range(5):
        try:
            fsx.describe_file_systems()
            outcomes.append("answered")
        except ClientError:
            outcomes.append("failed")
    assert outcomes == ["answered", "failed", "failed", "answered", "answered"]


def test_a_connection_that_breaks(account: Account) -> None:
    ec2 = account(faults=[{"service": "ec2", "kind": "no_endpoint"}])("ec2")
    with pytest.raises(ConnectionClosedError):
        ec2.describe_vpcs()
    slow = account(faults=[{"service": "ec2", "kind": "timeout", "seconds": 5}])("ec2", read_timeout=0.2)
    began = time.monotonic()
    with pytest.raises(HTTPClientError):
        slow.describe_vpcs()
    assert time.monotonic() - began < 3


def test_an_empty_answer(account: Account) -> None:
    cut = account(faults=[{"service": "ec2", "kind": "truncated"}])("ec2")
    with pytest.raises(ResponseParserError):
        cut.describe_vpcs()
    # botocore takes a sign-in page for an answer without members
    page = account(faults=[{"service": "*", "kind": "garbage"}])
    assert "Vpcs" not in page("ec2").describe_vpcs()
    assert "Clusters" not in page("eks").list_clusters()


def test_latency_is_waited_for_side_by_side(account: Account) -> None:
    make = account(latency_ms=300)
    sts = make("sts", max_pool_connections=40)
    began = time.monotonic()
    # as many at once as the count below says; how long they take together is the machine's
    with ThreadPoolExecutor(40) as pool:
        list(pool.map(lambda _: sts.get_caller_identity(), range(40)))
    assert time.monotonic() - began >= 0.3
    calls = make.there.calls()
    assert (calls["total"], calls["by_operation"]) == (40, {"sts:GetCallerIdentity": 40})
    assert calls["in_flight_maximum"] > 20


def test_an_account_that_cannot_be_made_says_why() -> None:
    with (
        pytest.raises(AssertionError, match="The maximum number of VPCs has been reached"),
        embedded({"in_use": {"vpcs": 9}}),
    ):
        pass


def test_sections_change_while_the_account_keeps_what_is_in_it(account: Account) -> None:
    name = "ml.p5.48xlarge for cluster usage"
    clients = account(quotas={"sagemaker": {name: 1}})
    vpc = clients("ec2").create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]

    def granted() -> float:
        rows = clients("service-quotas").list_service_quotas(ServiceCode="sagemaker", MaxResults=100)["Quotas"]
        return next(float(row["Value"]) for row in rows if row["QuotaName"] == name)

    def amend(**sections: Any) -> str:
        return str(clients.there.address.control("amendment", sections)["problem"])

    assert granted() == 1
    assert amend(quotas={"sagemaker": {name: 4}}) == ""
    assert granted() == 4
    assert "quota" in amend(quota={}), "an unknown section is told"
    assert granted() == 4
    assert vpc in {each["VpcId"] for each in clients("ec2").describe_vpcs()["Vpcs"]}
