"""FSx for Lustre: the rules at creation, growth, links to S3."""

from __future__ import annotations

from typing import Any

import pytest

from hyperpod_cdk.rehearsal.embedded.services import fsx as service

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
            (3600, "StorageCapacity must be 1200 GiB or a multiple of 2400 GiB, got 3600; set StorageCapacity: 4800"),
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
            (
                "PerUnitStorageThroughput must be 125, 250, 500 or 1000 MB/s per TiB, got 200; set "
                "PerUnitStorageThroughput: 250"
            ),
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
                "MetadataConfiguration.Iops must be 1500, 3000, 6000 or a multiple of 12000 up to 192000, got 2000; "
                "set "
                "Iops: 3000"
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
            (
                f"StorageCapacity must be a multiple of {step} GiB with EFA at {throughput} MB/s per TiB, got "
                f"{step + 2400}; set "
                f"StorageCapacity: {2 * step}"
            ),
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
        fsx.delete_data_repository_association(AssociationId=key)
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
            f"The data repository s3://{bucket}/ does not exist or FSx cannot reach its bucket.",
        )


def test_tags(world: Any) -> None:
    made = make(world, Tags=[{"Key": "a", "Value": "1"}])
    fsx, arn = world.client("fsx"), made["ResourceARN"]
    fsx.tag_resource(ResourceARN=arn, Tags=[{"Key": "b", "Value": "2"}])
    fsx.untag_resource(ResourceARN=arn, TagKeys=["a"])
    assert fsx.list_tags_for_resource(ResourceARN=arn)["Tags"] == [{"Key": "b", "Value": "2"}]
