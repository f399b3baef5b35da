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
from hyperpod_cdk.catalog.sentences import in_python
from hyperpod_cdk.storage.lustre import DataRepository, LustreFileSystem, ReadCache
from tests.support.schemas import resource_schema
from tests.support.tables import row_by_row
from tests.support.templates import app, of_type, stack, template_of

CLIENTS = "sg-0123456789abcdef0"
SCRATCH: dict[str, Any] = {"deployment_type": "scratch_2"}
TIERING: dict[str, Any] = {
    "storage_type": "intelligent_tiering",
    "capacity_gib": None,
    "throughput_capacity_mbps": 4000,
    "read_cache": ReadCache(sizing="proportional"),
}
EFA = {"efa": True, "throughput_mbps_per_tib": 1000, "capacity_gib": 4800}


def lustre(own: cdk.Stack, **options: Any) -> LustreFileSystem:
    vpc = ec2.Vpc.from_vpc_attributes(own, "Vpc", vpc_id="vpc-0123456789abcdef0", availability_zones=["a"])
    given: dict[str, Any] = {
        "vpc": vpc,
        "subnet": ec2.Subnet.from_subnet_id(own, "Subnet", "subnet-0123456789abcdef0"),
        "availability_zone_id": "use1-az5",
        "client_security_group": ec2.SecurityGroup.from_security_group_id(
            own, "Clients", CLIENTS, allow_all_outbound=options.pop("allow_all_outbound", False)
        ),
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


def fsx_schema() -> dict[str, Any]:
    """CloudFormation's own, as cfn-lint carries it."""
    return resource_schema("AWS::FSx::FileSystem")


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
    policies = {
        name: (row.get("DeletionPolicy"), row.get("UpdateReplacePolicy")) for name, row in template["Resources"].items()
    }
    # a rule that names the clients' group would hold that group in a VPC that is to go
    to_clients = {name for name in policies if name.startswith(("ScratchClientsToServers", "ScratchServersToClients"))}
    assert len(to_clients) == 8
    assert {policies[name] for name in to_clients} == {(None, None)}
    assert {policies[name] for name in policies.keys() - to_clients} == {("RetainExceptOnCreate", "Retain")}


def test_lustre_ports_pass_between_clients_and_servers_by_group_id() -> None:
    assert passages(made()) == {
        (direction, owner, other, "tcp", first, last)
        for direction, owner, other in (
            ("Ingress", "servers", "clients"),
            ("Egress", "servers", "clients"),
            ("Ingress", "clients", "servers"),
            ("Egress", "clients", "servers"),
        )
        for first, last in ((988, 988), (1018, 1023))
    } | {(direction, "servers", "servers", "-1", None, None) for direction in ("Ingress", "Egress")}


@pytest.mark.parametrize(("options", "gets_egress"), [({}, False), (EFA, True)], ids=["tcp", "efa"])
def test_clients_that_may_send_everything_get_an_egress_rule_for_efa_only(
    options: dict[str, Any], *, gets_egress: bool
) -> None:
    # CloudFormation would remove their rule that allows everything
    without, with_rule = (passages(made(allow_all_outbound=each, **options)) for each in (True, False))
    missing = {way for way in with_rule - without if way[:3] == ("Egress", "clients", "servers")}
    assert with_rule - without == missing
    assert bool(missing) is not gets_egress


def test_rules_that_stay_are_the_same_with_and_without_efa() -> None:
    # one that leaves the template stays in the group, and EC2 refuses to make it once more
    kept = [
        {
            name: row
            for name, row in made(**options)["Resources"].items()
            if "Servers" in name and "DeletionPolicy" in row
        }
        for options in ({}, EFA)
    ]
    assert len(kept[0]) == 2
    assert kept[0] == kept[1]


def test_everything_passes_with_efa() -> None:
    assert passages(made(**EFA)) == {
        (direction, owner, other, "-1", None, None)
        for direction in ("Ingress", "Egress")
        for owner, other in (("servers", "servers"), ("servers", "clients"), ("clients", "servers"))
    }


@pytest.mark.parametrize("options", [{}, EFA], ids=["tcp", "efa"])
def test_every_rule_precedes_the_file_system(options: dict[str, Any]) -> None:
    template = made(**options)
    rules_ = {*of_type(template, "AWS::EC2::SecurityGroupIngress"), *of_type(template, "AWS::EC2::SecurityGroupEgress")}
    assert set(file_system(template)["DependsOn"]) == rules_


@pytest.mark.parametrize(("compression", "expected"), [("lz4", "LZ4"), ("none", "NONE")])
def test_compression(compression: str, expected: str) -> None:
    row = file_system(made(compression=compression))
    assert row["Properties"]["LustreConfiguration"]["DataCompressionType"] == expected


@row_by_row(
    "options, allowed",
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
    name, problem = ("throughput_mbps_per_tib", throughput) if throughput else ("capacity_gib", capacity)
    assert refusal_of(**options) == f"{name}: {in_python(problem or '')}"


def test_a_refusal_says_the_whole_rule() -> None:
    assert refusal_of(capacity_gib=1201) == (
        "capacity_gib: must be 1200 GiB or a multiple of 2400 GiB, got 1201; set capacity_gib=2400"
    )


def test_tokens_are_left_to_fsx() -> None:
    own = stack()
    size = cdk.CfnParameter(own, "Size", type="Number", default=1200)
    lustre(own, capacity_gib=size.value_as_number)
    assert file_system(template_of(own))["Properties"]["StorageCapacity"] == {"Ref": "Size"}


def test_efa_does_not_cross_zones() -> None:
    assert refusal_of(**EFA, client_availability_zone_ids=["use1-az5", "use1-az4"]) == (
        "efa: must have its users in use1-az5, because EFA does not cross zones, got clients in use1-az4; put the file"
        " system in use1-az4, or set efa=False"
    )
    made(**EFA, client_availability_zone_ids=["use1-az5"])
    made(client_availability_zone_ids=["use1-az5", "use1-az4"])


@pytest.mark.parametrize(
    ("region", "zone", "options"), [("me-south-1", "mes1-az1", {}), ("il-central-1", "ilc1-az1", EFA)]
)
def test_regions_without_it_are_refused(region: str, zone: str, options: dict[str, Any]) -> None:
    own = cdk.Stack(app(), "test", env=cdk.Environment(account="111122223333", region=region))
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 - the whole message is compared below
        lustre(own, availability_zone_id=zone, **options)
    assert str(refusal.value) == f"region: {in_python(rules.region_problem(region, efa=bool(options)) or '')}"


def test_a_zone_of_another_region_is_refused() -> None:
    assert refusal_of(availability_zone_id="usw2-az1") == (
        "availability_zone_id: must be an availability zone ID of us-east-1 (use1-az...), got usw2-az1 of us-west-2;"
        " write one of us-east-1"
    )


def test_local_zones_without_it_are_refused() -> None:
    assert refusal_of(**EFA, availability_zone_id="use1-dfw2-az1") == (
        "efa: FSx for Lustre does not offer EFA in the Local Zone use1-dfw2-az1; set efa=False\n"
        "throughput_mbps_per_tib: must be 125 or 250 MB/s per TiB in the Local Zone use1-dfw2-az1, got 1000; set"
        " throughput_mbps_per_tib=250"
    )
    assert refusal_of(availability_zone_id="use1-dfw2-az1", throughput_mbps_per_tib=500) == (
        "throughput_mbps_per_tib: must be 125 or 250 MB/s per TiB in the Local Zone use1-dfw2-az1, got "
        "500; set throughput_mbps_per_tib=250"
    )
    made(availability_zone_id="use1-dfw2-az1")


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


def test_backups_come_and_go_without_a_property_that_cannot_change() -> None:
    for days in (7, 0):
        settings_ = file_system(made(backup_retention_days=days))["Properties"]["LustreConfiguration"]
        assert settings_["AutomaticBackupRetentionDays"] == days
        assert "CopyTagsToBackups" not in settings_


def test_a_customer_managed_key() -> None:
    own = stack()
    key = kms.Key(own, "Mine")
    lustre(own, kms_key=key)
    assert file_system(template_of(own))["Properties"]["KmsKeyId"] == own.resolve(key.key_arn)


def test_scratch_has_neither_tier_nor_metadata_nor_efa() -> None:
    row = file_system(made(**SCRATCH, data_repositories=[DataRepository(path="/", s3_uri="s3://mine/")]))
    assert row["Properties"]["StorageCapacity"] == 4800
    assert row["Properties"]["LustreConfiguration"] == {"DeploymentType": "SCRATCH_2", "DataCompressionType": "LZ4"}


def test_scratch_takes_no_key() -> None:
    own = stack()
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 - the whole message is compared below
        lustre(own, **SCRATCH, kms_key=kms.Key(own, "Mine"))
    assert str(refusal.value) == (
        "kms_key: must be left out with scratch_2, which FSx encrypts with a key of its own; leave it out, or set "
        'deployment_type="persistent_2"'
    )


@pytest.mark.parametrize(
    ("options", "cache"),
    [
        ({}, {"SizingMode": "PROPORTIONAL_TO_THROUGHPUT_CAPACITY"}),
        ({"read_cache": ReadCache(sizing="none")}, {"SizingMode": "NO_CACHE"}),
        (
            {"read_cache": ReadCache(sizing="provisioned", size_gib=32)},
            {"SizingMode": "USER_PROVISIONED", "SizeGiB": 32},
        ),
    ],
)
def test_intelligent_tiering(options: dict[str, Any], cache: dict[str, Any]) -> None:
    row = file_system(made(**{**TIERING, **options}))
    assert row["Properties"]["StorageType"] == "INTELLIGENT_TIERING"
    assert "StorageCapacity" not in row["Properties"]
    assert row["Properties"]["LustreConfiguration"] == {
        "DeploymentType": "PERSISTENT_2",
        "DataCompressionType": "LZ4",
        "EfaEnabled": False,
        "MetadataConfiguration": {"Mode": "USER_PROVISIONED", "Iops": 6000},
        "ThroughputCapacity": 4000,
        "DataReadCacheConfiguration": cache,
    }


def test_provisioned_metadata() -> None:
    settings_ = file_system(made(metadata_iops=12000))["Properties"]["LustreConfiguration"]
    assert settings_["MetadataConfiguration"] == {"Mode": "USER_PROVISIONED", "Iops": 12000}


def test_times_and_a_backup_to_restore() -> None:
    row = file_system(
        made(
            backup_retention_days=7,
            backup_start_time="23:59",
            copy_tags_to_backups=True,
            maintenance_window="1:00:00",
            from_backup="backup-0a1b2c3d4e5f67890",
        )
    )
    settings_ = row["Properties"]["LustreConfiguration"]
    assert settings_["DailyAutomaticBackupStartTime"] == "23:59"
    assert settings_["CopyTagsToBackups"] is True
    assert settings_["WeeklyMaintenanceStartTime"] == "1:00:00"
    assert row["Properties"]["BackupId"] == "backup-0a1b2c3d4e5f67890"


def test_the_log_is_in_no_later_stacks_way_and_stays() -> None:
    template = made(name="prod-scratch", log_level="warnings_and_errors", data_repositories=[REPOSITORY])
    ((group_id, group),) = of_type(template, "AWS::Logs::LogGroup").items()
    log = file_system(template)["Properties"]["LustreConfiguration"]["LogConfiguration"]

    assert group["DeletionPolicy"] == "RetainExceptOnCreate"
    # one that is taken out and comes back in the same stack has another security group
    ((security_group_id, _),) = of_type(template, "AWS::EC2::SecurityGroup").items()
    name = group["Properties"]["LogGroupName"]["Fn::Join"][1]
    assert name == ["/aws/fsx/prod-scratch-", {"Fn::GetAtt": [security_group_id, "GroupId"]}]
    assert log["Level"] == "WARN_ERROR"
    assert {"Ref": group_id} in log["Destination"]["Fn::Join"][1]


def test_a_name_that_no_log_group_may_have_keeps_its_tag() -> None:
    template = made(name="Größe: 1 + 2")
    (group,) = of_type(template, "AWS::Logs::LogGroup").values()
    assert group["Properties"]["LogGroupName"]["Fn::Join"][1][0] == "/aws/fsx/Gr-e-1-2-"
    assert file_system(template)["Properties"]["Tags"] == [{"Key": "Name", "Value": "Größe: 1 + 2"}]


def test_every_property_is_used_or_left_out_for_a_reason() -> None:
    schema = fsx_schema()
    (link,) = of_type(made(data_repositories=[FULL_LINK]), "AWS::FSx::DataRepositoryAssociation").values()
    own = stack()
    lustre(own, metadata_iops=1500, kms_key=kms.Key(own, "Mine"))
    keyed = file_system(template_of(own))["Properties"]
    rows = [
        keyed,
        *(
            file_system(made(**options))["Properties"]
            for options in (
                {**TIERING, "read_cache": ReadCache(sizing="provisioned", size_gib=32)},
                {"backup_retention_days": 7, "backup_start_time": "03:00", "copy_tags_to_backups": True},
                {"from_backup": "backup-01234567"},
                {"maintenance_window": "1:00:00", "log_level": "errors"},
            )
        ),
    ]
    used = {name for row in rows for name in row}
    used |= {f"LustreConfiguration.{name}" for row in rows for name in row["LustreConfiguration"]}
    known = set(schema["properties"])
    known |= {f"LustreConfiguration.{name}" for name in schema["definitions"]["LustreConfiguration"]["properties"]}
    assert used & set(rules.LEFT_OUT) == set()
    assert used | set(rules.LEFT_OUT) == known
    assert link["Properties"]["ImportedFileChunkSize"] == 2048
    assert link["Properties"]["BatchImportMetaDataOnCreate"] is False


def test_attributes_are_tokens_of_the_file_system() -> None:
    own = stack()
    made_ = lustre(own)
    name = "ScratchFileSystemFCAD7E08"

    assert own.resolve(made_.file_system_id) == {"Ref": name}
    assert own.resolve(made_.dns_name) == {"Fn::GetAtt": [name, "DNSName"]}
    assert own.resolve(made_.mount_name) == {"Fn::GetAtt": [name, "LustreMountName"]}
    assert own.resolve(made_.security_group.security_group_id) == {"Fn::GetAtt": ["ScratchGroup2B1BD756", "GroupId"]}
    assert made_.file_system.storage_capacity == 4800


FULL_LINK = DataRepository(path="/b", s3_uri="s3://mine/b/", batch_import=False, imported_file_chunk_size_mib=2048)
REPOSITORY = DataRepository(path="/a", s3_uri="s3://mine/a/")
BETWEEN_STEPS = rules.capacity_problem(2000, throughput_mbps_per_tib=0, efa=False)


@row_by_row(
    "options, message",
    [
        ({"compression": "gzip"}, 'compression: must be lz4 or none, got "gzip"; set compression to one of these'),
        (
            {"backup_retention_days": 91},
            "backup_retention_days: must be at most 90, got 91; set backup_retention_days to 90 or less",
        ),
        (
            {"backup_retention_days": -1},
            "backup_retention_days: must be at least 0, got -1; set backup_retention_days to 0 or more",
        ),
        (
            {"backup_retention_days": 7, "data_repositories": [REPOSITORY]},
            (
                "backup_retention_days: cannot be set together with data_repositories, because FSx does not back up"
                " such a file system, got 7 days; remove it: the linked buckets contain the data"
            ),
        ),
        (
            {"deployment_type": "persistent_1"},
            ('deployment_type: must be persistent_2 or scratch_2, got "persistent_1"; did you mean persistent_2?'),
        ),
        (
            {"storage_type": "hdd"},
            'storage_type: must be ssd or intelligent_tiering, got "hdd"; set storage_type to one of these',
        ),
        (
            {**SCRATCH, "throughput_mbps_per_tib": 250},
            (
                "throughput_mbps_per_tib: must be left out with scratch_2, which has none; remove it, or set "
                'deployment_type="persistent_2"'
            ),
        ),
        (
            {**SCRATCH, "backup_retention_days": 7},
            (
                "backup_retention_days: must be left out with scratch_2, which has none; remove it, or set "
                'deployment_type="persistent_2"'
            ),
        ),
        ({**SCRATCH, "capacity_gib": 2000}, "capacity_gib: " + in_python(BETWEEN_STEPS or "")),
        (
            {"capacity_gib": None},
            "capacity_gib: is missing; add capacity_gib, such as capacity_gib=1200",
        ),
        (
            {**TIERING, "throughput_capacity_mbps": 4001},
            (
                "throughput_capacity_mbps: must be a multiple of 4000 MB/s up to 2000000, got 4001; "
                "set throughput_capacity_mbps=8000"
            ),
        ),
        (
            {**TIERING, "read_cache": ReadCache(sizing="whole")},  # type: ignore[arg-type]
            'read_cache.sizing: must be none, proportional or provisioned, got "whole"; set sizing to one of these',
        ),
        (
            {**TIERING, "read_cache": ReadCache(sizing="provisioned", size_gib=31)},
            "read_cache.size_gib: must be between 32 and 131072 GiB at 4000 MB/s, got 31; set size_gib=32",
        ),
        (
            {**TIERING, "metadata_iops": 1500},
            "metadata_iops: must be 6000 or 12000 with intelligent_tiering, got 1500; set metadata_iops=6000",
        ),
        (
            {"metadata_iops": 2000},
            (
                "metadata_iops: must be 1500, 3000, 6000 or a multiple of 12000 up to 192000, got 2000; "
                "set metadata_iops=3000"
            ),
        ),
        (
            {"backup_start_time": "03:00"},
            (
                'backup_start_time: must be left out without backups, got "03:00"; remove it, or set'
                " backup_retention_days to 1 or more"
            ),
        ),
        (
            {"backup_retention_days": 7, "backup_start_time": "24:00"},
            (
                'backup_start_time: must be a time of day in UTC, HH:MM, got "24:00"; correct backup_start_time, which'
                " must look like 03:00"
            ),
        ),
        (
            {"maintenance_window": "0:03:00"},
            (
                'maintenance_window: must be a day of the week (1 is Monday) and a time in UTC, d:HH:MM, got "0:03:00";'
                " correct maintenance_window, which must look like 7:03:00"
            ),
        ),
        (
            {"data_repositories": [DataRepository(path="a", s3_uri="s3://mine/")]},
            (
                "data_repositories[0].path: must be an absolute path in the file system of at most 4096 characters, got"
                ' "a"; set path="/a"'
            ),
        ),
        (
            {"data_repositories": [DataRepository(path="/a", s3_uri="mine")]},
            (
                'data_repositories[0].s3_uri: must be the S3 address of a bucket or a prefix, got "mine"; correct'
                " s3_uri, which must look like s3://my-datasets/"
            ),
        ),
        (
            {"data_repositories": [REPOSITORY, DataRepository(path="/a/b", s3_uri="s3://mine/b/")]},
            (
                "data_repositories[1].path: must not overlap another link, got /a/b and /a of data_repositories[0];"
                " choose folders that are not nested"
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
