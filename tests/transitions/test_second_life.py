"""Retained resources of a stack prevent resources with the same names while they exist."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from hyperpod_cdk.checks.answers import NotAnswered
from hyperpod_cdk.transitions.second_life import InTheWay, in_the_way
from tests.transitions.stacks import assembly, stack

BUCKET = "AWS::S3::Bucket"
GROUP = "AWS::Logs::LogGroup"
NAMED = {"Type": BUCKET, "Properties": {"BucketName": {"Fn::Join": ["-", ["hyperpod", {"Ref": "AWS::StackId"}]]}}}
LOGS = {"Type": GROUP, "Properties": {"LogGroupName": "/aws/fsx/dev"}}


@dataclass
class Api:
    """A CloudFormation that tells events, and an account with buckets and log groups; all else fails."""

    events: list[tuple[str, str]] = field(default_factory=list)
    names: tuple[str, ...] = ()
    denied: str = ""
    asked: list[str] = field(default_factory=list)
    kind: str = BUCKET

    def pages(self, service: str, operation: str, key: str, **params: Any) -> list[Any]:  # noqa: ARG002 - as LiveAws
        self.asked.append(operation)
        if operation == self.denied:
            raise NotAnswered("no permission", action="x:Y")
        if operation == "list_buckets":
            return [{"Name": each} for each in self.names]
        if operation == "describe_log_groups":
            return [{"logGroupName": f"{params['logGroupNamePrefix']}-2"}, *({"logGroupName": n} for n in self.names)]
        assert (operation, params) == ("describe_stack_events", {"StackName": "dev-one"})
        return [
            {"LogicalResourceId": "It", "ResourceType": self.kind, "ResourceStatus": status, "PhysicalResourceId": name}
            for status, name in self.events
        ]

    def call(self, service: str, operation: str, **params: Any) -> Any:
        raise AssertionError((service, operation, params))

    send = call


def looked(api: Api, body: dict[str, Any] = NAMED, *, before: dict[str, Any] | None = None) -> InTheWay:
    base = assembly(stack("one", resources=before or {}))
    return in_the_way(api, base, assembly(stack("one", resources={"It": body}), stack("new", resources={"It": body})))


KEPT = ("DELETE_SKIPPED", "hyperpod-1")
MADE = ("CREATE_COMPLETE", "hyperpod-1")


@pytest.mark.parametrize(
    ("events", "names", "is_refused"),
    [
        ([KEPT, MADE], ("hyperpod-1",), True),
        # a creation that failed at it since
        ([("CREATE_FAILED", "hyperpod-1"), ("CREATE_IN_PROGRESS", "hyperpod-1"), KEPT, MADE], ("hyperpod-1",), True),
        # CloudFormation could not delete it, and has left it behind
        ([("DELETE_FAILED", "hyperpod-1"), MADE], ("hyperpod-1",), True),
        # somebody has deleted it
        ([KEPT, MADE], ("hyperpod-12",), False),
        # it was deleted, not retained
        ([("DELETE_COMPLETE", "hyperpod-1"), MADE], ("hyperpod-1",), False),
        ([], ("hyperpod-1",), False),
    ],
)
def test_a_bucket_that_stays(events: list[tuple[str, str]], names: tuple[str, ...], *, is_refused: bool) -> None:
    found = looked(Api(events, names))
    why = (
        "dev-one / It: hyperpod-1 exists from an earlier deployment of this stack, which retained it, and a new one "
        "cannot have the same name."
    )
    works = (
        "Check what it holds, and if none of that is needed, empty it with all versions of its objects ('Empty' in "
        "the S3 console) and delete it (aws s3api delete-bucket --bucket hyperpod-1), then plan again. Or keep in the "
        "file what it replaces."
    )
    assert [(each.why, each.what_works) for each in found.refusals] == is_refused * [(why, works)]
    assert found.unseen == ()


OBJECTS = "Custom::AWSCDK-EKS-KubernetesResource"


@pytest.mark.parametrize(
    ("events", "left"),
    [
        ([("DELETE_FAILED", "c"), ("DELETE_FAILED", "c"), ("CREATE_COMPLETE", "c")], True),
        # made again since, or deleted by another try
        ([("CREATE_COMPLETE", "d"), ("DELETE_FAILED", "c")], False),
        ([("DELETE_COMPLETE", "c"), ("DELETE_FAILED", "c")], False),
        ([], False),
    ],
)
def test_objects_that_a_deployment_could_not_delete_are_known(events: list[tuple[str, str]], *, left: bool) -> None:
    found = looked(Api(events, kind=OBJECTS), {"Type": OBJECTS})
    assert found == InTheWay(left={("dev-one", "It"): "no reason is given"} if left else {})
    # what stays in the stack is its own
    api = Api(events, kind=OBJECTS)
    assert looked(api, {"Type": OBJECTS}, before={"It": {"Type": OBJECTS}}) == InTheWay()
    assert api.asked == []


def test_whether_objects_were_left_may_not_be_readable() -> None:
    found = looked(Api(denied="describe_stack_events"), {"Type": OBJECTS})
    (unseen,) = found.unseen
    assert unseen == (
        "Whether dev-one left Kubernetes objects behind that it creates again could not be checked: no"
        " permission; allow x:Y"
    )


@pytest.mark.parametrize(("names", "is_refused"), [(("/aws/fsx/dev",), True), ((), False)])
def test_a_log_group_that_stays(names: tuple[str, ...], *, is_refused: bool) -> None:
    found = looked(Api([("DELETE_SKIPPED", "/aws/fsx/dev")], names, kind=GROUP), LOGS)
    assert bool(found.refusals) is is_refused


@pytest.mark.parametrize(
    ("body", "before"),
    [
        ({"Type": BUCKET}, {}),
        ({"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "q"}}, {}),
        # it stands in the stack
        (NAMED, {"It": NAMED}),
    ],
)
def test_what_gets_another_name_or_is_there_is_not_asked_for(body: dict[str, Any], before: dict[str, Any]) -> None:
    api = Api([KEPT])
    assert looked(api, body, before=before) == InTheWay()
    assert api.asked == []


def test_a_name_with_the_id_of_what_is_made_with_it_is_another_each_time() -> None:
    named = {"Type": GROUP, "Properties": {"LogGroupName": {"Fn::Join": ["-", ["/aws/fsx/dev", {"Ref": "Servers"}]]}}}
    servers = {"Type": "AWS::EC2::SecurityGroup"}
    kept = Api([("DELETE_SKIPPED", "/aws/fsx/dev-sg-1")], ("/aws/fsx/dev-sg-1",), kind=GROUP)
    head = assembly(stack("one", resources={"It": named, "Servers": servers}))
    assert in_the_way(kept, assembly(stack("one")), head) == InTheWay()
    assert kept.asked == []
    # the group stands, so that the name is what it was
    assert in_the_way(kept, assembly(stack("one", resources={"Servers": servers})), head).refusals


BLOCK = "AWS::EC2::VPCCidrBlock"


@dataclass
class Network:
    """A VPC with address blocks, some of which a stack has."""

    has: dict[str, str]
    ids: dict[str, str] = field(default_factory=lambda: {"Vpc": "vpc-1"})
    state: str = "associated"
    denied: str = ""
    asked: list[str] = field(default_factory=list)

    def pages(self, service: str, operation: str, key: str, **params: Any) -> list[Any]:  # noqa: ARG002 - as LiveAws
        self.asked.append(operation)
        if operation == self.denied:
            raise NotAnswered("no permission", action="x:Y")
        if operation == "list_stack_resources":
            return [{"LogicalResourceId": key, "PhysicalResourceId": each} for key, each in self.ids.items()]
        assert (operation, params) == ("describe_vpcs", {"VpcIds": ["vpc-1"]})
        rows = [
            {"AssociationId": key, "CidrBlock": each, "CidrBlockState": {"State": self.state}}
            for key, each in self.has.items()
        ]
        return [{"VpcId": "vpc-1", "CidrBlockAssociationSet": rows}]

    def call(self, service: str, operation: str, **params: Any) -> Any:
        raise AssertionError((service, operation, params))

    send = call


def _blocks(**blocks: str) -> dict[str, Any]:
    found = {
        name: {"Type": BLOCK, "Properties": {"VpcId": {"Ref": "Vpc"}, "CidrBlock": cidr}}
        for name, cidr in blocks.items()
    }
    return {"Vpc": {"Type": "AWS::EC2::VPC"}, **found}


def _added(network: Network, *, base: dict[str, Any] | None = None) -> InTheWay:
    before = _blocks() if base is None else base
    return in_the_way(
        network,
        assembly(stack("one", resources=before)),
        assembly(stack("one", resources={**before, **_blocks(Far="10.3.0.0/16")})),
    )


@pytest.mark.parametrize(
    ("taken", "is_refused"),
    [
        ("10.3.0.0/16", True),
        ("10.3.255.0/24", True),
        ("10.2.0.0/15", True),
        ("10.2.0.0/16", False),
        ("10.4.0.0/16", False),
    ],
)
def test_an_address_block_that_the_vpc_has_still(taken: str, *, is_refused: bool) -> None:
    found = _added(Network({"assoc-1": taken}))
    why = (
        f"dev-one / Far: vpc-1 has the address block {taken}, which is no longer in any stack, and EC2 does not "
        "add 10.3.0.0/16 to it. The block of a zone that was removed stays, with the file systems in its subnet."
    )
    works = (
        f"Give the zone another node_cidr. Or check the file systems in {taken}; if they are not needed, delete them, "
        "the subnet and the block, then plan again."
    )
    assert [(each.why, each.what_works) for each in found.refusals] == is_refused * [(why, works)]


def test_a_block_of_the_stack_or_one_that_is_gone_is_not_in_the_way() -> None:
    assert _added(Network({"assoc-1": "10.3.0.0/16"}, state="disassociated")) == InTheWay()
    assert _added(Network({"assoc-1": "10.3.0.0/16"}, ids={"Vpc": "vpc-1", "Near": "assoc-1"})) == InTheWay()


def test_no_approval_without_a_new_block() -> None:
    network = Network({"assoc-1": "10.3.0.0/16"})
    assert _added(network, base=_blocks(Far="10.3.0.0/16")) == InTheWay()
    assert network.asked == []


@pytest.mark.parametrize("denied", ["list_stack_resources", "describe_vpcs"])
def test_blocks_that_could_not_be_looked_at_are_reported(denied: str) -> None:
    said = (
        "Whether an address block of the VPC conflicts with one that dev-one adds could not be checked: no"
        " permission; allow x:Y"
    )
    assert _added(Network({}, denied=denied)) == InTheWay(unseen=(said,))


@dataclass
class Links:
    """A file system with links, some of which a stack has."""

    path: str
    ids: dict[str, str] = field(default_factory=lambda: {"Fs": "fs-1"})
    lifecycle: str = "AVAILABLE"
    asked: list[str] = field(default_factory=list)

    def pages(self, service: str, operation: str, key: str, **params: Any) -> list[Any]:  # noqa: ARG002 - as LiveAws
        self.asked.append(operation)
        if operation == "list_stack_resources":
            return [{"LogicalResourceId": key, "PhysicalResourceId": each} for key, each in self.ids.items()]
        assert operation == "describe_data_repository_associations"
        assert params == {"Filters": [{"Name": "file-system-id", "Values": ["fs-1"]}]}
        return [
            {
                "AssociationId": "dra-1",
                "FileSystemId": "fs-1",
                "FileSystemPath": self.path,
                "DataRepositoryPath": "s3://b/",
                "Lifecycle": self.lifecycle,
            }
        ]

    def call(self, service: str, operation: str, **params: Any) -> Any:
        raise AssertionError((service, operation, params))

    send = call


def _linked(links: Links, *, base: dict[str, Any] | None = None) -> InTheWay:
    link = {
        "Type": "AWS::FSx::DataRepositoryAssociation",
        "Properties": {"FileSystemId": {"Ref": "Fs"}, "FileSystemPath": "/data/a"},
    }
    before = {"Fs": {"Type": "AWS::FSx::FileSystem"}} if base is None else base
    after = {"Fs": {"Type": "AWS::FSx::FileSystem"}, "Link": link}
    return in_the_way(
        links, assembly(stack("one", resources=before)), assembly(stack("one", resources={**before, **after}))
    )


@pytest.mark.parametrize(
    ("path", "is_refused"),
    [
        ("/data/a", True),
        ("/data/a/", True),
        ("/data", True),
        ("/", True),
        ("/data/a/b", True),
        ("/data/ab", False),
        ("/data/b", False),
    ],
)
def test_a_folder_that_is_linked_still(path: str, *, is_refused: bool) -> None:
    why = (
        f"dev-one / Link: fs-1 links {path} to s3://b/ by dra-1, which is no longer in any stack, and FSx cannot "
        "link /data/a at the same time. A link that is removed from the file stays in force."
    )
    works = (
        "Run 'aws fsx delete-data-repository-association --association-id dra-1 --no-delete-data-in-file-system', "
        "which removes that link and leaves the files where they are (wait until auto-export has ended), then plan "
        "again. Or keep the file as it is deployed."
    )
    found = _linked(Links(path))
    assert [(each.why, each.what_works) for each in found.refusals] == is_refused * [(why, works)]


def test_a_link_of_the_stack_one_that_goes_and_a_new_file_system_are_not_in_the_way() -> None:
    assert _linked(Links("/data/a", lifecycle="DELETING")) == InTheWay()
    assert _linked(Links("/data/a", ids={"Fs": "fs-1", "Other": "dra-1"})) == InTheWay()
    new = Links("/data/a")
    assert _linked(new, base={}) == InTheWay()
    assert new.asked == []


@pytest.mark.parametrize("denied", ["describe_stack_events", "list_buckets"])
def test_what_could_not_be_looked_at_is_reported(denied: str) -> None:
    found = looked(Api([KEPT], denied=denied))
    assert found == InTheWay(
        unseen=("Whether what dev-one retained conflicts with It could not be checked: no permission; allow x:Y",)
    )


@dataclass
class Storage:
    """A file system of the stack, as FSx has it by now."""

    capacity_gib: int
    denied: str = ""
    asked: list[str] = field(default_factory=list)

    def pages(self, service: str, operation: str, key: str, **params: Any) -> list[Any]:  # noqa: ARG002 - as LiveAws
        self.asked.append(operation)
        if operation == self.denied:
            raise NotAnswered("no permission", action="x:Y")
        if operation == "list_stack_resources":
            return [{"LogicalResourceId": "Near", "PhysicalResourceId": "fs-1"}]
        assert (operation, params) == ("describe_file_systems", {"FileSystemIds": ["fs-1"]})
        return [{"FileSystemId": "fs-1", "StorageCapacity": self.capacity_gib}]

    def call(self, service: str, operation: str, **params: Any) -> Any:
        raise AssertionError((service, operation, params))

    send = call


def _grown(storage: Storage, wanted: int, *, base: int = 1200, kind: str = "LUSTRE") -> InTheWay:
    sides = ({"FileSystemType": kind, "StorageCapacity": each} for each in (base, wanted))
    resources = ({"Near": {"Type": "AWS::FSx::FileSystem", "Properties": each}} for each in sides)
    before, after = (assembly(stack("storage", resources=each)) for each in resources)
    return in_the_way(storage, before, after)


@pytest.mark.parametrize(
    ("capacity", "wanted", "is_refused"),
    [
        # UpdateFileSystem takes a greater capacity only (FSx API reference)
        (2400, 2400, True),
        (4800, 2400, True),
        (2400, 4800, False),
        # as it was deployed
        (1200, 2400, False),
    ],
)
def test_a_file_system_that_has_grown_already(capacity: int, wanted: int, *, is_refused: bool) -> None:
    """By hand, or by an update whose rollback could not take it back and was told to skip it."""
    why = (
        f"dev-storage / Near: fs-1 already has {capacity} GiB, and CloudFormation does not know that. FSx accepts only"
        " a"
        f" greater capacity, so an update to {wanted} GiB fails."
    )
    works = (
        f"Write the deployed 1200 GiB into the file: the file system keeps its {capacity} GiB, and nothing of it"
        f" changes. Or write more than {capacity} GiB."
    )
    found = _grown(Storage(capacity), wanted)
    assert [(each.why, each.what_works) for each in found.refusals] == is_refused * [(why, works)]
    assert found.unseen == ()


@pytest.mark.parametrize("denied", ["list_stack_resources", "describe_file_systems"])
def test_whether_a_file_system_has_grown_may_not_be_readable(denied: str) -> None:
    found = _grown(Storage(2400, denied=denied), 2400)
    assert found.refusals == ()
    (said,) = found.unseen
    assert said.startswith("Whether a file system of dev-storage has already grown could not be checked: ")


def test_without_a_greater_capacity_no_file_system_is_asked_for() -> None:
    storage = Storage(4800)
    assert _grown(storage, 1200) == InTheWay()
    assert _grown(storage, 1200, base=2400) == InTheWay()
    assert _grown(storage, 2400, kind="ONTAP") == InTheWay()
    assert storage.asked == []
