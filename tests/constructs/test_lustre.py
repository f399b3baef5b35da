"""The Lustre file system: what FSx accepts, rules that stand first, and that it outlives its stack."""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperpod_cdk.catalog import lustre as rules
from hyperpod_cdk.lustre import DataRepository, LustreFileSystem
from tests.support.templates import app, of_type, stack, template_of

CLIENTS = "sg-0123456789abcdef0"
EFA = {"efa": True, "throughput_mbps_per_tib": 1000, "capacity_gib": 4800}


def lustre(own: cdk.Stack, **options: Any) -> LustreFileSystem:
    vpc = ec2.Vpc.from_vpc_attributes(own, "Vpc", vpc_id="vpc-0123456789abcdef0", availability_zones=["a"])
    given: dict[str, Any] = {
        "vpc": vpc,
        "subnet": ec2.Subnet.from_subnet_id(own, "Subnet", "subnet-0123456789abcdef0"),
        "availability_zone_id": "use1-az5",
        "client_security_group": ec2.SecurityGroup.from_security_group_id(own, "Clients", CLIENTS),
        "capacity_gib": 4800,
        **options,
    }
    return LustreFileSystem(own, "Scratch", **given)


def made(**options: Any) -> dict[str, Any]:
    own = stack()
    lustre(own, **options)
    return template_of(own)


def file_system(template: dict[str, Any]) -> dict[str, Any]:
    (row,) = of_type(template, "AWS::FSx::FileSystem").values()
    return row


def passages(template: dict[str, Any]) -> set[tuple[str, str, str, str, int | None, int | None]]:
    """(direction, whose group, the other group, protocol, first and last port) of every rule."""

    def group(value: Any) -> str:
        return "clients" if value == CLIENTS else "servers"

    found = set()
    for direction, other in (("Ingress", "SourceSecurityGroupId"), ("Egress", "DestinationSecurityGroupId")):
        for row in of_type(template, f"AWS::EC2::SecurityGroup{direction}").values():
            rule = row["Properties"]
            ports = (rule.get("FromPort"), rule.get("ToPort"))
            found.add((direction, group(rule["GroupId"]), group(rule[other]), rule["IpProtocol"], *ports))
    return found


def refusal_of(**options: Any) -> str:
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 - callers compare the whole message
        lustre(stack(), **options)
    return str(refusal.value)


def test_the_file_system() -> None:
    row = file_system(made(name="prod-scratch"))

    (group,) = row["Properties"].pop("SecurityGroupIds")
    assert group["Fn::GetAtt"][1] == "GroupId"
    assert row["Properties"] == {
        "FileSystemType": "LUSTRE",
        "FileSystemTypeVersion": "2.15",
        "StorageCapacity": 4800,
        "StorageType": "SSD",
        "SubnetIds": ["subnet-0123456789abcdef0"],
        "LustreConfiguration": {
            "DeploymentType": "PERSISTENT_2",
            "PerUnitStorageThroughput": 250,
            "DataCompressionType": "LZ4",
            "EfaEnabled": False,
            "MetadataConfiguration": {"Mode": "AUTOMATIC"},
        },
        "Tags": [{"Key": "Name", "Value": "prod-scratch"}],
    }


def test_it_is_called_by_its_path_unless_named() -> None:
    assert file_system(made())["Properties"]["Tags"] == [{"Key": "Name", "Value": "test/Scratch"}]


def test_folders_that_differ_in_a_slash_are_two_links() -> None:
    paths = ["/a/b", "/a-b", "/a%2Db", "/a--b"]
    links = [DataRepository(path=path, s3_uri=f"s3://my-datasets/{n}/") for n, path in enumerate(paths)]
    template = made(data_repositories=links)
    found = of_type(template, "AWS::FSx::DataRepositoryAssociation").values()
    assert sorted(each["Properties"]["FileSystemPath"] for each in found) == sorted(paths)


def test_logical_ids_that_must_not_change() -> None:
    # a new id is a new, empty file system
    template = made(data_repositories=[DataRepository(path="/datasets", s3_uri="s3://my-datasets/")])
    assert list(of_type(template, "AWS::FSx::FileSystem")) == ["ScratchFileSystemFCAD7E08"]
    assert list(of_type(template, "AWS::FSx::DataRepositoryAssociation")) == ["ScratchDataRepositorydatasets25B05B25"]


def test_the_file_system_and_what_it_uses_outlive_the_stack() -> None:
    template = made(data_repositories=[DataRepository(path="/datasets", s3_uri="s3://my-datasets/")])
    assert {row.get("DeletionPolicy") for row in template["Resources"].values()} == {"RetainExceptOnCreate"}
    assert {row.get("UpdateReplacePolicy") for row in template["Resources"].values()} == {"Retain"}


def test_lustre_ports_pass_between_clients_and_servers_by_group_id() -> None:
    assert passages(made()) == {
        (direction, owner, other, "tcp", first, last)
        for direction, owner, other in (
            ("Ingress", "servers", "servers"),
            ("Egress", "servers", "servers"),
            ("Ingress", "servers", "clients"),
            ("Egress", "servers", "clients"),
            ("Ingress", "clients", "servers"),
            ("Egress", "clients", "servers"),
        )
        for first, last in ((988, 988), (1018, 1023))
    }


def test_everything_passes_with_efa() -> None:
    assert passages(made(**EFA)) == {
        (direction, owner, other, "-1", None, None)
        for direction in ("Ingress", "Egress")
        for owner, other in (("servers", "servers"), ("servers", "clients"), ("clients", "servers"))
    }


@pytest.mark.parametrize("options", [{}, EFA], ids=["tcp", "efa"])
def test_every_rule_stands_before_the_file_system(options: dict[str, Any]) -> None:
    template = made(**options)
    rules_ = {*of_type(template, "AWS::EC2::SecurityGroupIngress"), *of_type(template, "AWS::EC2::SecurityGroupEgress")}
    assert set(file_system(template)["DependsOn"]) == rules_


@pytest.mark.parametrize(("compression", "expected"), [("lz4", "LZ4"), ("none", "NONE")])
def test_compression(compression: str, expected: str) -> None:
    row = file_system(made(compression=compression))
    assert row["Properties"]["LustreConfiguration"]["DataCompressionType"] == expected


@pytest.mark.parametrize(
    ("options", "allowed"),
    [
        ({"capacity_gib": 1199}, False),
        ({"capacity_gib": 1200}, True),
        ({"capacity_gib": 1201}, False),
        ({"capacity_gib": 2399}, False),
        ({"capacity_gib": 2400}, True),
        ({"capacity_gib": 3600}, False),
        ({"capacity_gib": 4800}, True),
        ({**EFA, "capacity_gib": 2400}, False),
        ({**EFA, "capacity_gib": 4800}, True),
        ({**EFA, "capacity_gib": 9600}, True),
        ({**EFA, "capacity_gib": 9600, "throughput_mbps_per_tib": 250}, False),
        ({**EFA, "capacity_gib": 19200, "throughput_mbps_per_tib": 250}, True),
        ({"throughput_mbps_per_tib": 124}, False),
        ({"throughput_mbps_per_tib": 125}, True),
        ({"throughput_mbps_per_tib": 1000}, True),
        ({"throughput_mbps_per_tib": 2000}, False),
    ],
)
def test_sizes_follow_the_table(options: dict[str, Any], allowed: bool) -> None:  # noqa: FBT001 - a table's column
    values = {"capacity_gib": 4800, "throughput_mbps_per_tib": 250, "efa": False, **options}
    throughput = rules.throughput_problem(values["throughput_mbps_per_tib"])
    capacity = rules.capacity_problem(
        values["capacity_gib"], throughput_mbps_per_tib=values["throughput_mbps_per_tib"], efa=values["efa"]
    )
    if allowed:
        assert file_system(made(**options))["Properties"]["StorageCapacity"] == values["capacity_gib"]
        return
    expected = f"throughput_mbps_per_tib: {throughput}" if throughput else f"capacity_gib: {capacity}"
    assert refusal_of(**options) == expected


def test_a_refusal_says_the_whole_rule() -> None:
    assert refusal_of(capacity_gib=1201) == (
        "capacity_gib: must be 1200 GiB or a multiple of 2400 GiB, got 1201; set capacity_gib: 2400"
    )


def test_tokens_are_left_to_fsx() -> None:
    own = stack()
    size = cdk.CfnParameter(own, "Size", type="Number", default=1200)
    lustre(own, capacity_gib=size.value_as_number)
    assert file_system(template_of(own))["Properties"]["StorageCapacity"] == {"Ref": "Size"}


def test_efa_does_not_cross_zones() -> None:
    assert refusal_of(**EFA, client_availability_zone_ids=["use1-az5", "use1-az4"]) == (
        "availability_zone_id: must be that of all clients with EFA, which does not cross zones, got use1-az5 and "
        "clients in use1-az4; put the file system in use1-az4, or set efa: false"
    )
    made(**EFA, client_availability_zone_ids=["use1-az5"])
    made(client_availability_zone_ids=["use1-az5", "use1-az4"])


@pytest.mark.parametrize(("region", "options"), [("me-south-1", {}), ("il-central-1", EFA)])
def test_regions_without_it_are_refused(region: str, options: dict[str, Any]) -> None:
    own = cdk.Stack(app(), "test", env=cdk.Environment(account="111122223333", region=region))
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 - the whole message is compared below
        lustre(own, **options)
    assert str(refusal.value) == f"region: {rules.region_problem(region, efa=bool(options))}"


def test_a_data_repository_never_deletes_from_the_bucket_by_itself() -> None:
    template = made(data_repositories=[DataRepository(path="/datasets", s3_uri="s3://my-datasets/train/")])
    (row,) = of_type(template, "AWS::FSx::DataRepositoryAssociation").values()

    assert row["Properties"] == {
        "FileSystemId": {"Ref": "ScratchFileSystemFCAD7E08"},
        "FileSystemPath": "/datasets",
        "DataRepositoryPath": "s3://my-datasets/train/",
        "BatchImportMetaDataOnCreate": True,
        "S3": {
            "AutoImportPolicy": {"Events": ["NEW", "CHANGED", "DELETED"]},
            "AutoExportPolicy": {"Events": ["NEW", "CHANGED"]},
        },
    }


def test_a_data_repository_may_be_read_only() -> None:
    template = made(
        data_repositories=[DataRepository(path="/", s3_uri="s3://mine/", auto_import=["new"], auto_export=[])]
    )
    (row,) = of_type(template, "AWS::FSx::DataRepositoryAssociation").values()
    assert row["Properties"]["S3"] == {"AutoImportPolicy": {"Events": ["NEW"]}}


def test_backups() -> None:
    settings_ = file_system(made(backup_retention_days=7))["Properties"]["LustreConfiguration"]
    assert settings_["AutomaticBackupRetentionDays"] == 7
    assert settings_["CopyTagsToBackups"] is True
    without = file_system(made(backup_retention_days=0))["Properties"]["LustreConfiguration"]
    assert without["AutomaticBackupRetentionDays"] == 0
    assert "CopyTagsToBackups" not in without


def test_a_key_of_ones_own() -> None:
    own = stack()
    key = kms.Key(own, "Mine")
    lustre(own, kms_key=key)
    assert file_system(template_of(own))["Properties"]["KmsKeyId"] == own.resolve(key.key_arn)


def test_attributes_are_tokens_of_the_file_system() -> None:
    own = stack()
    made_ = lustre(own)
    name = "ScratchFileSystemFCAD7E08"

    assert own.resolve(made_.file_system_id) == {"Ref": name}
    assert own.resolve(made_.dns_name) == {"Fn::GetAtt": [name, "DNSName"]}
    assert own.resolve(made_.mount_name) == {"Fn::GetAtt": [name, "LustreMountName"]}
    assert own.resolve(made_.security_group.security_group_id) == {"Fn::GetAtt": ["ScratchGroup2B1BD756", "GroupId"]}
    assert made_.file_system.storage_capacity == 4800


REPOSITORY = DataRepository(path="/a", s3_uri="s3://mine/a/")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"compression": "gzip"}, "compression: must be lz4 or none, got 'gzip'; set compression: lz4"),
        (
            {"backup_retention_days": 91},
            "backup_retention_days: must be between 0 and 90, got 91; set 0 for no backups",
        ),
        (
            {"backup_retention_days": -1},
            "backup_retention_days: must be between 0 and 90, got -1; set 0 for no backups",
        ),
        (
            {"backup_retention_days": 7, "data_repositories": [REPOSITORY]},
            (
                "backup_retention_days: must be 0 beside data_repositories, of which FSx makes no backups, got 7; "
                "leave it out, the linked buckets hold the data"
            ),
        ),
        (
            {"data_repositories": [DataRepository(path="a", s3_uri="s3://mine/")]},
            "data_repositories[0].path: must begin with /, got 'a'; set /a",
        ),
        (
            {"data_repositories": [DataRepository(path="/a", s3_uri="mine")]},
            "data_repositories[0].s3_uri: must look like s3://bucket/prefix/, got 'mine'",
        ),
        (
            {"data_repositories": [REPOSITORY, DataRepository(path="/a/b", s3_uri="s3://mine/b/")]},
            (
                "data_repositories[1].path: must not overlap another link's, got /a/b beside /a; "
                "choose folders of which none holds the other"
            ),
        ),
        (
            {"data_repositories": [DataRepository(path=f"/{n}", s3_uri=f"s3://mine/{n}/") for n in range(9)]},
            "data_repositories: must hold at most 8 data repositories, got 9; remove 1",
        ),
    ],
)
def test_misuse_is_refused(options: dict[str, Any], message: str) -> None:
    assert refusal_of(**options) == message


def test_eight_data_repositories_are_allowed() -> None:
    template = made(data_repositories=[DataRepository(path=f"/{n}", s3_uri=f"s3://mine/{n}/") for n in range(8)])
    assert len(of_type(template, "AWS::FSx::DataRepositoryAssociation")) == 8


@given(st.lists(st.sampled_from(["a", "ab", "b"]), max_size=3), st.lists(st.sampled_from(["a", "ab", "b"]), max_size=3))
@settings(deadline=None)
def test_a_folder_contains_itself_and_what_is_below_it(outer: list[str], inner: list[str]) -> None:
    assert rules.contains("/" + "/".join(outer), "/" + "/".join(inner)) == (inner[: len(outer)] == outer)
