"""FSx for Lustre: the rules at creation, growth, links to S3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hyperpod_cdk_rehearsal.embedded.services import fsx as service

Refusal = Callable[..., tuple[str, str]]

LNET = (
    "The file system cannot be created because the default security group in the subnet provided or the provided "
    "security "
    "groups do not permit Lustre LNET network traffic on port {port}"
)


def lustre_group(world: Any, *ports: tuple[int, int]) -> str:
    """A security group that lets itself in on TCP port ranges."""
    ec2 = world.client("ec2")
    name = "lustre" + "-".join(str(first) for first, _ in ports)
    group = str(ec2.create_security_group(GroupName=name, Description=name, VpcId=world.vpc_id)["GroupId"])
    for first, last in ports:
        permission = {"IpProtocol": "tcp", "FromPort": first, "ToPort": last, "UserIdGroupPairs": [{"GroupId": group}]}
        ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[permission])
    return group


def request(world: Any, group: str = "", *, lustre: dict[str, Any] | None = None, **members: Any) -> dict[str, Any]:
    configuration = {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 250, "DataCompressionType": "LZ4"}
    return {
        "FileSystemType": "LUSTRE",
        "FileSystemTypeVersion": "2.15",
        "StorageCapacity": 4800,
        "SubnetIds": [world.subnets["use1-az5"]],
        "SecurityGroupIds": [group or lustre_group(world, (988, 988), (1018, 1023))],
        "LustreConfiguration": {**configuration, **(lustre or {})},
        **members,
    }


def make(world: Any, **members: Any) -> dict[str, Any]:
    made = world.client("fsx").create_file_system(**request(world, **members))["FileSystem"]
    world.settle()
    return describe(world, made["FileSystemId"])


def describe(world: Any, file_system_id: str) -> dict[str, Any]:
    found: dict[str, Any] = world.client("fsx").describe_file_systems(FileSystemIds=[file_system_id])["FileSystems"][0]
    return found


def test_states_and_names(world: Any) -> None:
    made = world.client("fsx").create_file_system(**request(world))["FileSystem"]
    assert made["Lifecycle"] == "CREATING"
    world.clock.sleep(service.CREATE_SECONDS)
    found = describe(world, made["FileSystemId"])
    assert found["Lifecycle"] == "AVAILABLE"
    assert found["DNSName"] == f"{made['FileSystemId']}.fsx.us-east-1.amazonaws.com"
    assert len(found["LustreConfiguration"]["MountName"]) == 8
    assert found["LustreConfiguration"]["DataCompressionType"] == "LZ4"


class TestPorts:
    @pytest.mark.parametrize(
        ("ports", "missing"),
        [
            ([(988, 988), (1018, 1023)], None),
            ([(900, 1100)], None),
            ([(1018, 1023)], "988"),
            ([(988, 988)], "1018-1023"),
            ([(988, 988), (1018, 1022)], "1018-1023"),
        ],
    )
    def test_the_group_must_let_itself_in_before(
        self, world: Any, refusal: Any, ports: list[tuple[int, int]], missing: str | None
    ) -> None:
        group = lustre_group(world, *ports)
        if missing is None:
            assert world.client("fsx").create_file_system(**request(world, group))["FileSystem"]
            return
        assert refusal(world.client("fsx").create_file_system, **request(world, group)) == (
            "InvalidNetworkSettings",
            LNET.format(port=missing),
        )

    def test_a_rule_by_address_will_do(self, world: Any) -> None:
        ec2 = world.client("ec2")
        group = ec2.create_security_group(GroupName="cidr", Description="x", VpcId=world.vpc_id)["GroupId"]
        permission = {"IpProtocol": "tcp", "FromPort": 988, "ToPort": 1023, "IpRanges": [{"CidrIp": "10.0.0.0/16"}]}
        ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[permission])
        assert world.client("fsx").create_file_system(**request(world, group))["FileSystem"]

    def test_the_subnets_default_group_is_looked_at(self, world: Any) -> None:
        ec2 = world.client("ec2")
        filters = [{"Name": "vpc-id", "Values": [world.vpc_id]}, {"Name": "group-name", "Values": ["default"]}]
        default = ec2.describe_security_groups(Filters=filters)["SecurityGroups"][0]["GroupId"]
        itself = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": default}]}]
        ec2.authorize_security_group_ingress(GroupId=default, IpPermissions=itself)
        without = request(world)
        del without["SecurityGroupIds"]
        assert world.client("fsx").create_file_system(**without)["FileSystem"]


class TestSubnet:
    def test_exactly_one(self, world: Any, refusal: Any) -> None:
        two = list(world.subnets.values())
        assert refusal(world.client("fsx").create_file_system, **request(world, SubnetIds=two)) == (
            "BadRequest",
            "Exactly one subnet ID must be specified for a Lustre file system, got 2.",
        )

    def test_it_must_exist(self, world: Any, refusal: Any) -> None:
        gone = "subnet-00000000000000000"
        assert refusal(world.client("fsx").create_file_system, **request(world, SubnetIds=[gone])) == (
            "InvalidNetworkSettings",
            f"The subnet ID '{gone}' does not exist.",
        )

    def test_the_group_must_be_in_its_vpc(self, world: Any, refusal: Any) -> None:
        ec2 = world.client("ec2")
        other = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
        group = ec2.create_security_group(GroupName="x", Description="x", VpcId=other)["GroupId"]
        assert refusal(world.client("fsx").create_file_system, **request(world, group)) == (
            "InvalidNetworkSettings",
            f"The security group '{group}' does not exist in {world.vpc_id}.",
        )


class TestConfiguration:
    @pytest.mark.parametrize(
        ("capacity", "problem"),
        [
            (1200, None),
            (2400, None),
            (3600, "StorageCapacity must be 1200 GiB, 2400 GiB or an increment of 2400 GiB, got 3600"),
            (4800, None),
        ],
    )
    def test_capacity_steps(self, world: Any, refusal: Any, capacity: int, problem: str | None) -> None:
        create = world.client("fsx").create_file_system
        if problem is None:
            assert create(**request(world, StorageCapacity=capacity))["FileSystem"]["StorageCapacity"] == capacity
            return
        assert refusal(create, **request(world, StorageCapacity=capacity)) == ("BadRequest", problem)

    def test_throughput_tiers(self, world: Any, refusal: Any) -> None:
        lustre = {"PerUnitStorageThroughput": 200}
        assert refusal(world.client("fsx").create_file_system, **request(world, lustre=lustre)) == (
            "BadRequest",
            "PerUnitStorageThroughput must be one of 125, 250, 500 or 1000, got 200",
        )

    def test_throughput_is_required(self, world: Any, refusal: Any) -> None:
        without = request(world)
        del without["LustreConfiguration"]["PerUnitStorageThroughput"]
        assert refusal(world.client("fsx").create_file_system, **without) == (
            "BadRequest",
            "PerUnitStorageThroughput is required for PERSISTENT_2 on SSD.",
        )

    def test_an_old_lustre_is_refused(self, world: Any, refusal: Any) -> None:
        assert refusal(world.client("fsx").create_file_system, **request(world, FileSystemTypeVersion="2.10")) == (
            "BadRequest",
            "PERSISTENT_2 requires Lustre version 2.12 or 2.15, got 2.10.",
        )

    def test_metadata_iops(self, world: Any, refusal: Any) -> None:
        lustre = {"MetadataConfiguration": {"Mode": "USER_PROVISIONED", "Iops": 2000}}
        assert refusal(world.client("fsx").create_file_system, **request(world, lustre=lustre)) == (
            "BadRequest",
            (
                "MetadataConfiguration.Iops must be 1500, 3000, 6000, 12000 or a multiple of 12000 up to 192000, "
                "got 2000"
            ),
        )

    def test_provisioned_metadata_names_its_iops(self, world: Any, refusal: Any) -> None:
        lustre = {"MetadataConfiguration": {"Mode": "USER_PROVISIONED"}}
        assert refusal(world.client("fsx").create_file_system, **request(world, lustre=lustre)) == (
            "BadRequest",
            "MetadataConfiguration.Iops is required with Mode USER_PROVISIONED",
        )

    def test_the_key_must_exist(self, world: Any, refusal: Any) -> None:
        key = "arn:aws:kms:us-east-1:123456789012:key/00000000-0000-0000-0000-000000000000"
        assert refusal(world.client("fsx").create_file_system, **request(world, KmsKeyId=key)) == (
            "BadRequest",
            f"The KMS key {key} does not exist.",
        )

    @pytest.mark.parametrize(("capacity", "fits"), [(96000, True), (100800, False)])
    def test_the_accounts_capacity(self, world: Any, refusal: Any, capacity: int, fits: bool) -> None:  # noqa: FBT001 - table
        make(world)
        create = world.client("fsx").create_file_system
        group = world.security_group("wide")
        if fits:
            assert create(**request(world, group, StorageCapacity=capacity))["FileSystem"]
            return
        code, message = refusal(create, **request(world, group, StorageCapacity=capacity))
        assert code == "ServiceLimitExceeded"
        assert message.endswith(": the limit is 100800, 4800 are in use and the request needs 100800 more.")


class TestEfa:
    EFA = {"EfaEnabled": True, "MetadataConfiguration": {"Mode": "AUTOMATIC"}}  # noqa: RUF012 - never changed

    @pytest.mark.parametrize(("throughput", "step"), [(125, 38400), (250, 19200), (500, 9600), (1000, 4800)])
    def test_steps_by_throughput(self, world: Any, refusal: Any, throughput: int, step: int) -> None:
        group = world.security_group("efa-lustre")
        lustre = {**self.EFA, "PerUnitStorageThroughput": throughput}
        create = world.client("fsx").create_file_system
        assert create(**request(world, group, lustre=lustre, StorageCapacity=step))["FileSystem"]
        assert refusal(create, **request(world, group, lustre=lustre, StorageCapacity=step + 2400)) == (
            "BadRequest",
            (f"StorageCapacity must be a multiple of {step} GiB with EFA at {throughput} MB/s/TiB, got {step + 2400}"),
        )

    def test_metadata_is_required(self, world: Any, refusal: Any) -> None:
        group = world.security_group("efa-lustre")
        lustre = {"EfaEnabled": True, "PerUnitStorageThroughput": 1000}
        assert refusal(world.client("fsx").create_file_system, **request(world, group, lustre=lustre)) == (
            "BadRequest",
            "EfaEnabled requires MetadataConfiguration.",
        )

    def test_only_persistent_2(self, world: Any, refusal: Any) -> None:
        group = world.security_group("efa-lustre")
        lustre = {**self.EFA, "DeploymentType": "PERSISTENT_1"}
        assert refusal(world.client("fsx").create_file_system, **request(world, group, lustre=lustre)) == (
            "BadRequest",
            "EfaEnabled and MetadataConfiguration require PERSISTENT_2, got PERSISTENT_1.",
        )

    def test_the_group_must_name_itself_for_all_traffic(self, world: Any, refusal: Any) -> None:
        group = lustre_group(world, (988, 988), (1018, 1023))
        lustre = {**self.EFA, "PerUnitStorageThroughput": 1000}
        assert refusal(world.client("fsx").create_file_system, **request(world, group, lustre=lustre)) == (
            "InvalidNetworkSettings",
            (
                "An EFA-enabled file system requires a security group with rules for all traffic in and out that name "
                "the group "
                f"itself; none of {group} has both."
            ),
        )

    def test_throughput_stays(self, world: Any, refusal: Any) -> None:
        group = world.security_group("efa-lustre")
        lustre = {**self.EFA, "PerUnitStorageThroughput": 1000}
        made = make(world, group=group, lustre=lustre)
        change = {"PerUnitStorageThroughput": 500}
        assert refusal(
            world.client("fsx").update_file_system, FileSystemId=made["FileSystemId"], LustreConfiguration=change
        ) == ("BadRequest", "PerUnitStorageThroughput of an EFA-enabled file system cannot be changed.")


TIERING_LUSTRE: dict[str, Any] = {
    "PerUnitStorageThroughput": None,
    "ThroughputCapacity": 4000,
    "DataReadCacheConfiguration": {"SizingMode": "USER_PROVISIONED", "SizeGiB": 64},
    "MetadataConfiguration": {"Mode": "USER_PROVISIONED", "Iops": 6000},
}


def variant(world: Any, group: str, *, lustre: dict[str, Any], **members: Any) -> dict[str, Any]:
    """A request in which None takes a member away."""
    wanted = request(world, group, lustre=lustre, **members)
    wanted["LustreConfiguration"] = {k: v for k, v in wanted["LustreConfiguration"].items() if v is not None}
    return {key: value for key, value in wanted.items() if value is not None}


def tiering(world: Any, lustre: dict[str, Any] | None = None, **members: Any) -> dict[str, Any]:
    asked = {"StorageType": "INTELLIGENT_TIERING", "StorageCapacity": None, **members}
    return variant(world, world.security_group_id, lustre={**TIERING_LUSTRE, **(lustre or {})}, **asked)


def scratch(world: Any, lustre: dict[str, Any] | None = None, **members: Any) -> dict[str, Any]:
    settings = {"DeploymentType": "SCRATCH_2", "PerUnitStorageThroughput": None, **(lustre or {})}
    return variant(world, world.security_group_id, lustre=settings, **members)


SCRATCH_REFUSALS: tuple[tuple[dict[str, Any], dict[str, Any], str], ...] = (
    (
        {"PerUnitStorageThroughput": 250},
        {},
        "PerUnitStorageThroughput is not supported for SCRATCH_2.",
    ),
    ({"AutomaticBackupRetentionDays": 7}, {}, "Backups are not supported for SCRATCH_2."),
    (
        {"MetadataConfiguration": {"Mode": "AUTOMATIC"}},
        {},
        "EfaEnabled and MetadataConfiguration require PERSISTENT_2, got SCRATCH_2.",
    ),
    (
        {},
        {"StorageType": "INTELLIGENT_TIERING"},
        "StorageType INTELLIGENT_TIERING requires PERSISTENT_2, got SCRATCH_2.",
    ),
    (
        {},
        {"StorageCapacity": 3600},
        "StorageCapacity must be 1200 GiB, 2400 GiB or an increment of 2400 GiB, got 3600",
    ),
    (
        {},
        {"KmsKeyId": "arn:aws:kms:us-east-1:999999999999:key/00000000-0000-0000-0000-000000000000"},
        "KmsKeyId is not supported for SCRATCH_2.",
    ),
)


class TestScratch:
    def test_it_may_be_linked(self, world: Any) -> None:
        fsx = world.client("fsx")
        made = fsx.create_file_system(**scratch(world))["FileSystem"]["FileSystemId"]
        world.settle()
        assert fsx.create_data_repository_association(
            FileSystemId=made, FileSystemPath="/a", DataRepositoryPath="s3://data/"
        )["Association"]

    def test_refusals(self, world: Any, refusal: Any) -> None:
        for lustre, members, message in SCRATCH_REFUSALS:
            asked = scratch(world, lustre, **members)
            assert refusal(world.client("fsx").create_file_system, **asked) == ("BadRequest", message)

    def test_the_accounts_capacity(self, world: Any, refusal: Any) -> None:
        create = world.client("fsx").create_file_system
        assert create(**scratch(world))
        code, message = refusal(create, **scratch(world, StorageCapacity=100_800))
        assert code == "ServiceLimitExceeded"
        assert message.endswith(": the limit is 100800, 4800 are in use and the request needs 100800 more.")


TIERING_REFUSALS: tuple[tuple[dict[str, Any], dict[str, Any], str], ...] = (
    (
        {},
        {"StorageCapacity": 4800},
        "StorageCapacity cannot be specified with StorageType INTELLIGENT_TIERING.",
    ),
    (
        {"PerUnitStorageThroughput": 250},
        {},
        "PerUnitStorageThroughput cannot be specified with StorageType INTELLIGENT_TIERING.",
    ),
    (
        {"ThroughputCapacity": None},
        {},
        "ThroughputCapacity is required with StorageType INTELLIGENT_TIERING.",
    ),
    (
        {"DataReadCacheConfiguration": None},
        {},
        "DataReadCacheConfiguration is required with StorageType INTELLIGENT_TIERING.",
    ),
    (
        {"MetadataConfiguration": {"Mode": "AUTOMATIC"}},
        {},
        "MetadataConfiguration.Mode must be USER_PROVISIONED with INTELLIGENT_TIERING.",
    ),
    (
        {"MetadataConfiguration": {"Mode": "USER_PROVISIONED", "Iops": 3000}},
        {},
        "MetadataConfiguration.Iops must be 6000 or 12000, got 3000",
    ),
    (
        {"ThroughputCapacity": 5000},
        {},
        ("ThroughputCapacity must be a multiple of 4000 up to 2000000, got 5000"),
    ),
    (
        {"DataReadCacheConfiguration": {"SizingMode": "USER_PROVISIONED"}},
        {},
        "DataReadCacheConfiguration.SizeGiB is required with SizingMode USER_PROVISIONED",
    ),
    (
        {"DataReadCacheConfiguration": {"SizingMode": "NO_CACHE", "SizeGiB": 64}},
        {},
        "DataReadCacheConfiguration.SizeGiB cannot be specified with SizingMode NO_CACHE",
    ),
    (
        {"DataReadCacheConfiguration": {"SizingMode": "USER_PROVISIONED", "SizeGiB": 31}},
        {},
        ("DataReadCacheConfiguration.SizeGiB must be between 32 and 131072 at 4000 MB/s, got 31"),
    ),
)


class TestIntelligentTiering:
    @pytest.mark.parametrize("efa", [False, True])
    def test_it_is_made(self, world: Any, *, efa: bool) -> None:
        made = world.client("fsx").create_file_system(**tiering(world, {"EfaEnabled": efa}))["FileSystem"]
        assert (made["StorageType"], made["StorageCapacity"]) == ("INTELLIGENT_TIERING", 0)

    def test_refusals(self, world: Any, refusal: Any) -> None:
        for lustre, members, message in TIERING_REFUSALS:
            asked = tiering(world, lustre, **members)
            assert refusal(world.client("fsx").create_file_system, **asked) == ("BadRequest", message)

    def test_ssd_has_no_throughput_of_its_own(self, world: Any, refusal: Any) -> None:
        asked = request(world, world.security_group_id, lustre={"ThroughputCapacity": 4000})
        assert refusal(world.client("fsx").create_file_system, **asked) == (
            "BadRequest",
            "ThroughputCapacity requires StorageType INTELLIGENT_TIERING.",
        )

    def test_its_throughput_grows_and_does_not_shrink(self, world: Any, refusal: Any) -> None:
        fsx = world.client("fsx")
        grown = {"ThroughputCapacity": 8000, "DataReadCacheConfiguration": {"SizingMode": "NO_CACHE"}}
        made = fsx.create_file_system(**tiering(world, grown))["FileSystem"]["FileSystemId"]
        world.settle()
        update = fsx.update_file_system
        assert refusal(update, FileSystemId=made, LustreConfiguration={"ThroughputCapacity": 4000}) == (
            "BadRequest",
            "ThroughputCapacity can only grow: the file system has 8000, got 4000.",
        )
        assert refusal(update, FileSystemId=made, LustreConfiguration={"ThroughputCapacity": 9000})[0] == "BadRequest"
        update(FileSystemId=made, LustreConfiguration={"ThroughputCapacity": 12000})
        world.settle()
        assert describe(world, made)["LustreConfiguration"]["ThroughputCapacity"] == 12000

    def test_the_accounts_throughput_and_read_cache(self, world: Any, refusal: Any) -> None:
        create = world.client("fsx").create_file_system
        much = {"ThroughputCapacity": 104_000, "DataReadCacheConfiguration": {"SizingMode": "NO_CACHE"}}
        code, message = refusal(create, **tiering(world, much))
        assert (code, message.split(": ")[1]) == (
            "ServiceLimitExceeded",
            "the limit is 100000, 0 are in use and the request needs 104000 more.",
        )
        cache = {"DataReadCacheConfiguration": {"SizingMode": "USER_PROVISIONED", "SizeGiB": 110_000}}
        code, message = refusal(create, **tiering(world, cache))
        assert (code, message.split(": ")[1]) == (
            "ServiceLimitExceeded",
            "the limit is 100800, 0 are in use and the request needs 110000 more.",
        )


class TestBackups:
    def test_not_beside_data_repositories(self, world: Any, refusal: Any) -> None:
        fsx, made = world.client("fsx"), make(world, lustre={"AutomaticBackupRetentionDays": 7})["FileSystemId"]
        link = {"FileSystemId": made, "FileSystemPath": "/a", "DataRepositoryPath": "s3://data/"}
        assert refusal(fsx.create_data_repository_association, **link) == (
            "BadRequest",
            "A file system with automatic backups cannot have data repositories.",
        )
        fsx.update_file_system(FileSystemId=made, LustreConfiguration={"AutomaticBackupRetentionDays": 0})
        world.settle()
        fsx.create_data_repository_association(**link)
        world.settle()
        change = {"AutomaticBackupRetentionDays": 7}
        assert refusal(fsx.update_file_system, FileSystemId=made, LustreConfiguration=change) == (
            "BadRequest",
            "Backups are not supported for a file system with data repositories.",
        )

    def test_a_restore(self, world: Any, refusal: Any) -> None:
        world.account_file(existing={"backups": [{"backup_id": "backup-01234567", "capacity_gib": 2400}]})
        fsx = world.client("fsx")
        asked = request(world, world.security_group_id)
        del asked["FileSystemType"]
        assert refusal(fsx.create_file_system_from_backup, BackupId="backup-76543210", **asked) == (
            "BackupNotFound",
            "Backup 'backup-76543210' does not exist.",
        )
        assert refusal(fsx.create_file_system_from_backup, BackupId="backup-01234567", **asked) == (
            "BadRequest",
            "StorageCapacity must be that of the backup, 2400, got 4800.",
        )
        asked["StorageCapacity"] = 2400
        made = fsx.create_file_system_from_backup(BackupId="backup-01234567", **asked)["FileSystem"]
        assert made["StorageCapacity"] == 2400
        (backup,) = fsx.describe_backups()["Backups"]
        assert (backup["BackupId"], backup["Lifecycle"]) == ("backup-01234567", "AVAILABLE")
        assert refusal(fsx.describe_backups, BackupIds=["backup-76543210"])[0] == "BackupNotFound"


LOG_GROUP = "arn:aws:logs:us-east-1:123456789012:log-group:/aws/fsx/"


class TestLogs:
    def test_the_group_must_exist_under_the_prefix(self, world: Any, refusal: Any) -> None:
        create, logs = world.client("fsx").create_file_system, world.client("logs")
        arn = "arn:aws:logs:us-east-1:123456789012:log-group:{}"
        problem = "LogConfiguration.Destination must be a log group that exists and begins with /aws/fsx, got {}."
        for name, made, works in (("/aws/fsx/a", False, False), ("/mine", True, False), ("/aws/fsx/b", True, True)):
            if made:
                logs.create_log_group(logGroupName=name)
            log = {"LogConfiguration": {"Level": "WARN_ERROR", "Destination": arn.format(name)}}
            asked = request(world, world.security_group_id, lustre=log)
            if works:
                assert create(**asked)["FileSystem"]
            else:
                assert refusal(create, **asked) == ("BadRequest", problem.format(name))

    def test_a_log_that_is_off_has_no_destination(self, world: Any, refusal: Any) -> None:
        log = {"LogConfiguration": {"Level": "DISABLED", "Destination": f"{LOG_GROUP}a"}}
        asked = request(world, world.security_group_id, lustre=log)
        assert refusal(world.client("fsx").create_file_system, **asked) == (
            "BadRequest",
            "LogConfiguration.Destination cannot be specified with Level DISABLED.",
        )


class TestUpdate:
    def test_it_grows(self, world: Any) -> None:
        made = make(world)
        fsx = world.client("fsx")
        change = {"DataCompressionType": "NONE"}
        fsx.update_file_system(FileSystemId=made["FileSystemId"], StorageCapacity=7200, LustreConfiguration=change)
        assert describe(world, made["FileSystemId"])["Lifecycle"] == "UPDATING"
        world.settle()
        found = describe(world, made["FileSystemId"])
        assert (found["StorageCapacity"], found["LustreConfiguration"]["DataCompressionType"]) == (7200, "NONE")

    def test_it_does_not_shrink(self, world: Any, refusal: Any) -> None:
        made = make(world)
        update = world.client("fsx").update_file_system
        assert refusal(update, FileSystemId=made["FileSystemId"], StorageCapacity=2400) == (
            "BadRequest",
            "StorageCapacity can only grow: the file system has 4800 GiB, got 2400.",
        )

    def test_metadata_is_for_creation_only(self, world: Any, refusal: Any) -> None:
        made = make(world)
        change = {"MetadataConfiguration": {"Mode": "AUTOMATIC"}}
        assert refusal(
            world.client("fsx").update_file_system, FileSystemId=made["FileSystemId"], LustreConfiguration=change
        ) == ("BadRequest", "MetadataConfiguration can only be set when the file system is created.")

    def test_metadata_iops_do_not_shrink(self, world: Any, refusal: Any) -> None:
        made = make(world, lustre={"MetadataConfiguration": {"Mode": "USER_PROVISIONED", "Iops": 6000}})
        change = {"MetadataConfiguration": {"Mode": "USER_PROVISIONED", "Iops": 3000}}
        update = world.client("fsx").update_file_system
        assert refusal(update, FileSystemId=made["FileSystemId"], LustreConfiguration=change) == (
            "BadRequest",
            "MetadataConfiguration.Iops can only grow: the file system has 6000, got 3000.",
        )

    def test_metadata_and_storage_do_not_grow_together(self, world: Any, refusal: Any) -> None:
        """User guide, "Managing metadata performance", considerations."""
        made = make(world, lustre={"MetadataConfiguration": {"Mode": "USER_PROVISIONED", "Iops": 6000}})
        update, name = world.client("fsx").update_file_system, made["FileSystemId"]
        more = {"MetadataConfiguration": {"Mode": "USER_PROVISIONED", "Iops": 12_000}}
        grown = made["StorageCapacity"] + 2400
        assert refusal(update, FileSystemId=name, StorageCapacity=grown, LustreConfiguration=more) == (
            "BadRequest",
            "StorageCapacity and MetadataConfiguration.Iops cannot be scaled concurrently.",
        )
        assert update(FileSystemId=name, LustreConfiguration=more)["FileSystem"]["Lifecycle"] == "UPDATING"

    @pytest.mark.parametrize(
        ("capacity_gib", "iops"),
        [(1200, 1500), (2400, 3000), (4800, 6000), (9600, 6000), (12_000, 12_000), (45_600, 12_000), (48_000, 24_000)],
    )
    def test_automatic_metadata_states_what_is_provisioned(self, world: Any, capacity_gib: int, iops: int) -> None:
        """API reference, FileSystemLustreMetadataConfiguration; the numbers are the performance page's."""
        made = make(world, StorageCapacity=capacity_gib, lustre={"MetadataConfiguration": {"Mode": "AUTOMATIC"}})
        assert made["LustreConfiguration"]["MetadataConfiguration"] == {"Mode": "AUTOMATIC", "Iops": iops}

    def test_automatic_metadata_grows_with_the_storage(self, world: Any) -> None:
        made = make(world, StorageCapacity=2400, lustre={"MetadataConfiguration": {"Mode": "AUTOMATIC"}})
        world.client("fsx").update_file_system(FileSystemId=made["FileSystemId"], StorageCapacity=12_000)
        found = describe(world, made["FileSystemId"])["LustreConfiguration"]["MetadataConfiguration"]
        assert found == {"Mode": "AUTOMATIC", "Iops": 12_000}

    def test_automatic_metadata_is_no_less_than_what_was_provisioned(self, world: Any, refusal: Any) -> None:
        """API reference, UpdateFileSystemLustreMetadataConfiguration, Mode: downscaling is not supported."""
        made = make(world, lustre={"MetadataConfiguration": {"Mode": "USER_PROVISIONED", "Iops": 12_000}})
        update, name = world.client("fsx").update_file_system, made["FileSystemId"]
        automatic = {"MetadataConfiguration": {"Mode": "AUTOMATIC"}}
        text = (
            "MetadataConfiguration.Mode cannot become AUTOMATIC: the file system has 12000 metadata IOPS, more than the"
            " automated default of 6000, and downscaling is not supported."
        )
        assert refusal(update, FileSystemId=name, LustreConfiguration=automatic) == ("BadRequest", text)
        update(FileSystemId=name, StorageCapacity=12_000, LustreConfiguration=automatic)
        found = describe(world, name)["LustreConfiguration"]["MetadataConfiguration"]
        assert found == {"Mode": "AUTOMATIC", "Iops": 12_000}

    def test_provisioned_metadata_is_no_less_than_what_was_automatic(self, world: Any, refusal: Any) -> None:
        made = make(world, lustre={"MetadataConfiguration": {"Mode": "AUTOMATIC"}})
        less = {"MetadataConfiguration": {"Mode": "USER_PROVISIONED", "Iops": 3000}}
        update = world.client("fsx").update_file_system
        assert refusal(update, FileSystemId=made["FileSystemId"], LustreConfiguration=less) == (
            "BadRequest",
            "MetadataConfiguration.Iops can only grow: the file system has 6000, got 3000.",
        )

    @pytest.mark.parametrize(
        ("member", "first", "second"),
        [
            ("StorageCapacity", {"StorageCapacity": 7200}, {"StorageCapacity": 9600}),
            (
                "MetadataConfiguration.Iops",
                {"LustreConfiguration": {"MetadataConfiguration": {"Mode": "USER_PROVISIONED", "Iops": 12_000}}},
                {"LustreConfiguration": {"MetadataConfiguration": {"Mode": "USER_PROVISIONED", "Iops": 24_000}}},
            ),
            (
                "PerUnitStorageThroughput",
                {"LustreConfiguration": {"PerUnitStorageThroughput": 1000}},
                {"LustreConfiguration": {"PerUnitStorageThroughput": 125}},
            ),
        ],
    )
    def test_it_changes_once_in_six_hours(
        self, world: Any, refusal: Any, member: str, first: dict[str, Any], second: dict[str, Any]
    ) -> None:
        """User guide, "Managing storage capacity", "... metadata performance", "... throughput capacity"."""
        made = make(world, lustre={"MetadataConfiguration": {"Mode": "USER_PROVISIONED", "Iops": 6000}})
        update, name = world.client("fsx").update_file_system, made["FileSystemId"]
        asked = world.clock.now()
        update(FileSystemId=name, **first)
        world.clock.sleep(6 * 3600 - 60)
        text = f"{member} was changed {asked:%Y-%m-%d %H:%M} UTC and can be changed again after 6 hours."
        assert refusal(update, FileSystemId=name, **second) == ("BadRequest", text)
        update(FileSystemId=name, LustreConfiguration={"DataCompressionType": "NONE"})
        told = describe(world, name)["AdministrativeActions"]
        assert [(each["Status"], each["RequestTime"], each["TargetFileSystemValues"]) for each in told] == [
            ("IN_PROGRESS", world.clock.now(), {"LustreConfiguration": {"DataCompressionType": "NONE"}}),
            ("COMPLETED", asked, first),
        ]
        world.clock.sleep(60)
        assert update(FileSystemId=name, **second)["FileSystem"]["Lifecycle"] == "UPDATING"

    def test_automatic_metadata_states_no_iops(self, world: Any, refusal: Any) -> None:
        lustre = {"MetadataConfiguration": {"Mode": "AUTOMATIC", "Iops": 3000}}
        assert refusal(world.client("fsx").create_file_system, **request(world, lustre=lustre)) == (
            "BadRequest",
            "MetadataConfiguration.Iops cannot be specified with Mode AUTOMATIC",
        )

    def test_not_while_it_is_created(self, world: Any, refusal: Any) -> None:
        made = world.client("fsx").create_file_system(**request(world))["FileSystem"]["FileSystemId"]
        assert refusal(world.client("fsx").update_file_system, FileSystemId=made, StorageCapacity=7200) == (
            "BadRequest",
            f"File system '{made}' cannot be updated while it is CREATING.",
        )


def test_a_deleted_file_system_is_not_found(world: Any, refusal: Any) -> None:
    made = make(world)["FileSystemId"]
    world.client("fsx").delete_file_system(FileSystemId=made)
    assert describe(world, made)["Lifecycle"] == "DELETING"
    world.settle()
    assert refusal(world.client("fsx").describe_file_systems, FileSystemIds=[made]) == (
        "FileSystemNotFound",
        f"File system '{made}' does not exist.",
    )


class TestAssociations:
    def link(self, world: Any, file_system_id: str, path: str = "/datasets", uri: str = "s3://data/a/") -> Any:
        return world.client("fsx").create_data_repository_association(
            FileSystemId=file_system_id, FileSystemPath=path, DataRepositoryPath=uri
        )["Association"]

    def test_states_update_and_delete(self, world: Any, refusal: Any) -> None:
        made = make(world)["FileSystemId"]
        association = self.link(world, made)
        assert association["Lifecycle"] == "CREATING"
        world.settle()
        fsx, key = world.client("fsx"), association["AssociationId"]
        policy = {"AutoImportPolicy": {"Events": ["NEW"]}}
        fsx.update_data_repository_association(AssociationId=key, S3=policy)
        world.settle()
        by_file_system = [{"Name": "file-system-id", "Values": [made]}]
        found = fsx.describe_data_repository_associations(Filters=by_file_system)["Associations"]
        assert [(item["AssociationId"], item["Lifecycle"], item["S3"]) for item in found] == [
            (key, "AVAILABLE", policy)
        ]
        second = self.link(world, made, "/more", "s3://data/b/")["AssociationId"]
        first = fsx.describe_data_repository_associations(MaxResults=1)
        rest = fsx.describe_data_repository_associations(MaxResults=1, NextToken=first["NextToken"])
        assert [each["AssociationId"] for part in (first, rest) for each in part["Associations"]] == [key, second]
        assert "NextToken" not in rest
        fsx.delete_data_repository_association(AssociationId=key)
        fsx.delete_data_repository_association(AssociationId=second)
        world.settle()
        assert fsx.describe_data_repository_associations()["Associations"] == []
        assert refusal(fsx.describe_data_repository_associations, AssociationIds=[key]) == (
            "DataRepositoryAssociationNotFound",
            f"Data repository association '{key}' does not exist.",
        )

    @pytest.mark.parametrize(
        ("path", "uri", "message"),
        [
            ("/datasets/a", "s3://other/", "FileSystemPath /datasets/a overlaps /datasets of {first}."),
            ("/models", "s3://data/a/b/", "DataRepositoryPath s3://data/a/b/ overlaps s3://data/a/ of {first}."),
            ("models", "s3://other/", "FileSystemPath must begin with /, got models."),
        ],
    )
    def test_paths(self, world: Any, refusal: Any, path: str, uri: str, message: str) -> None:
        made = make(world)["FileSystemId"]
        first = self.link(world, made)["AssociationId"]
        create = world.client("fsx").create_data_repository_association
        assert refusal(create, FileSystemId=made, FileSystemPath=path, DataRepositoryPath=uri) == (
            "BadRequest",
            message.format(first=first),
        )

    @pytest.mark.parametrize(("bucket", "exists"), [("mine", True), ("ours", True), ("theirs", False)])
    def test_the_bucket_must_exist(self, world: Any, refusal: Any, bucket: str, exists: bool) -> None:  # noqa: FBT001 - table
        world.account_file(existing={"s3_buckets": ["mine"]})
        world.client("s3").create_bucket(Bucket="ours")
        made = make(world)["FileSystemId"]
        if exists:
            assert self.link(world, made, uri=f"s3://{bucket}/")
            return
        create = world.client("fsx").create_data_repository_association
        assert refusal(create, FileSystemId=made, FileSystemPath="/a", DataRepositoryPath=f"s3://{bucket}/") == (
            "BadRequest",
            (
                "Amazon FSx is unable to validate access to the S3 bucket. Ensure the IAM role or user you are using"
                " has s3:Get*, s3:List* and s3:PutObject permissions to the S3 bucket prefix."
            ),
        )

    @pytest.mark.parametrize(
        ("action", "resource", "is_refused"),
        [
            ("s3:ListBucket", "arn:aws:s3:::data", True),
            ("s3:Get*", "arn:aws:s3:::data/*", True),
            ("s3:PutObject", "arn:aws:s3:::data/raw/*", True),
            ("s3:PutObject", "arn:aws:s3:::other/*", False),
            ("s3:DeleteObject", "arn:aws:s3:::data/*", False),
        ],
    )
    def test_the_caller_that_links_a_bucket_needs_access(
        self, world: Any, refusal: Any, action: str, resource: str, *, is_refused: bool
    ) -> None:
        # FSx for Lustre user guide, "Unable to validate access to an S3 bucket when creating a DRA"
        world.account_file(iam={"denied_actions": [{"action": action, "resource": resource}]})
        made = make(world)["FileSystemId"]
        if not is_refused:
            assert self.link(world, made, uri="s3://data/raw/")
            return
        create = world.client("fsx").create_data_repository_association
        code, message = refusal(create, FileSystemId=made, FileSystemPath="/a", DataRepositoryPath="s3://data/raw/")
        assert (code, message.partition(".")[0]) == (
            "BadRequest",
            "Amazon FSx is unable to validate access to the S3 bucket",
        )


def test_tags(world: Any) -> None:
    made = make(world, Tags=[{"Key": "a", "Value": "1"}])
    fsx, arn = world.client("fsx"), made["ResourceARN"]
    fsx.tag_resource(ResourceARN=arn, Tags=[{"Key": "b", "Value": "2"}])
    fsx.untag_resource(ResourceARN=arn, TagKeys=["a"])
    assert fsx.list_tags_for_resource(ResourceARN=arn)["Tags"] == [{"Key": "b", "Value": "2"}]


def test_a_file_system_holds_its_subnet_and_group_until_it_is_gone(world: Any, refusal: Refusal) -> None:
    ec2, file_system = world.client("ec2"), make(world)
    (subnet_id,) = file_system["SubnetIds"]
    interfaces = ec2.describe_network_interfaces(NetworkInterfaceIds=file_system["NetworkInterfaceIds"])
    first = interfaces["NetworkInterfaces"][0]
    assert (first["SubnetId"], first["Description"]) == (subnet_id, f"FSx for Lustre {file_system['FileSystemId']}")
    group_id = first["Groups"][0]["GroupId"]
    assert refusal(ec2.delete_subnet, SubnetId=subnet_id) == (
        "DependencyViolation",
        f"The subnet '{subnet_id}' has dependencies and cannot be deleted.",
    )
    assert refusal(ec2.delete_security_group, GroupId=group_id) == (
        "DependencyViolation",
        f"resource {group_id} has a dependent object",
    )
    assert refusal(ec2.delete_vpc, VpcId=world.vpc_id) == (
        "DependencyViolation",
        f"The vpc '{world.vpc_id}' has dependencies and cannot be deleted.",
    )
    # only the service takes its interfaces away
    assert refusal(ec2.delete_network_interface, NetworkInterfaceId=first["NetworkInterfaceId"]) == (
        "OperationNotPermitted",
        "You do not have permission to access the specified resource.",
    )

    world.client("fsx").delete_file_system(FileSystemId=file_system["FileSystemId"])
    assert refusal(ec2.delete_subnet, SubnetId=subnet_id)[0] == "DependencyViolation"
    world.clock.sleep(service.DELETE_SECONDS)
    ec2.delete_security_group(GroupId=group_id)
    ec2.delete_subnet(SubnetId=subnet_id)
