"""`hyperpod-cdk import`: files of other kinds in, an environment file out, with a line for everything that is lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from hyperpod_cdk.catalog import regions
from hyperpod_cdk.config import load_environment
from tests.cli.conftest import Run
from tests.support.answers import answered

SUBNET, OTHER = "subnet-0a1b2c3d4e5f67890", "subnet-0b2c3d4e5f678901a"
NODES, EKS = "sg-0a1b2c3d4e5f67890", "sg-0b2c3d4e5f678901a"
VPC = "vpc-0a1b2c3d4e5f67890"
SAYS: dict[str, Any] = yaml.load((Path(__file__).parent / "import_says.yaml").read_text("utf-8"), yaml.CSafeLoader)
"""What is said of each source, a line each, by the name of its test."""

SAID = (
    *("--vpc-id", VPC, "--subnet", f"{SUBNET}=use1-az5", "--eks-security-group", EKS),
    *("--kubernetes-version", "1.33"),
)
# of the shape of awsome-distributed-training, 1.architectures/7.sagemaker-hyperpod-eks/README-manual-steps.md
REQUEST = f"""{{
  "ClusterName": "ml-cluster",
  "Orchestrator": {{"Eks": {{"ClusterArn": "arn:aws:eks:us-east-1:111122223333:cluster/platform"}}}},
  "InstanceGroups": [
    {{
      "InstanceGroupName": "worker-group-1",
      "InstanceType": "ml.p5.48xlarge",
      "InstanceCount": 4,
      "InstanceStorageConfigs": [{{"EbsVolumeConfig": {{"VolumeSizeInGB": 500}}}}],
      "LifeCycleConfig": {{"SourceS3Uri": "s3://sagemaker-x", "OnCreate": "on_create.sh"}},
      "ExecutionRole": "arn:aws:iam::111122223333:role/nodes",
      "ThreadsPerCore": 1,
      "OnStartDeepHealthChecks": ["InstanceStress", "InstanceConnectivity"]
    }}
  ],
  "VpcConfig": {{
    "SecurityGroupIds": ["{NODES}"],
    "Subnets": ["{SUBNET}"]
  }},
  "NodeRecovery": "Automatic"
}}
"""


def changed(**top: Any) -> dict[str, Any]:
    return {**json.loads(REQUEST), **top}


def group(**fields: Any) -> dict[str, Any]:
    return changed(InstanceGroups=[{**json.loads(REQUEST)["InstanceGroups"][0], **fields}])


@pytest.fixture(autouse=True)
def app(workspace: Path) -> Path:
    """Make the folder a project, which has an app."""
    path = workspace / "app.py"
    path.touch()
    return path


def notes_of(run: Run, workspace: Path, request: dict[str, Any], *said: str) -> list[dict[str, str]]:
    (workspace / "cluster.json").write_text(json.dumps(request, indent=2), encoding="utf-8")
    done = run("import", "cluster.json", "--name", "lab", "--format", "json", *(said or SAID))
    assert done.stderr == ""
    found = answered("import", done.stdout)
    assert done.returncode == (0 if found["passed"] else 1)
    notes: list[dict[str, str]] = found["notes"]
    return notes


def test_with_everything_known(run: Run, run_process: Run, workspace: Path) -> None:
    (workspace / "cluster.json").write_text(REQUEST, encoding="utf-8")
    done = run_process("import", "cluster.json", "--name", "lab", *SAID)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == SAYS["everything known"]
    assert (
        (workspace / "environments" / "lab.yaml").read_text(encoding="utf-8")
        == f"""\
# yaml-language-server: $schema=../schemas/environment.schema.json

# From cluster.json (create-cluster), by 'hyperpod-cdk import'.

name: lab
account: "111122223333"
region: us-east-1

network:
  existing:
    vpc_id: {VPC}
    node_subnet_ids:
      use1-az5: {SUBNET}
    security_group_id: {NODES}

eks:
  kubernetes_version: "1.33"
  existing:
    cluster_name: platform
    security_group_id: {EKS}

hyperpod:
  cluster_name: ml-cluster
  provisioning: all_or_nothing
  instance_groups:
  - name: worker-group-1
    instance_type: ml.p5.48xlarge
    count: 4
    availability_zone_id: use1-az5
    capacity: on_demand
    deep_health_checks: [instance_stress, instance_connectivity]
    threads_per_core: 1
"""
    )
    assert run("validate", "lab").returncode == 0
    assert (workspace / "environments" / "../schemas/environment.schema.json").is_file()


def test_what_the_source_does_not_state_is_missing(run: Run, workspace: Path) -> None:
    (workspace / "cluster.json").write_text(REQUEST, encoding="utf-8")
    done = run("import", "cluster.json", "--name", "lab")
    assert done.returncode == 1
    missing = [line.removeprefix("missing ") for line in done.stdout.splitlines() if line.startswith("missing")]
    assert missing == SAYS["nothing known"]
    assert "refused" not in done.stdout
    text = (workspace / "environments" / "lab.yaml").read_text(encoding="utf-8")
    # nothing is in its place but a comment
    assert "use1" not in text
    assert "# network.existing.vpc_id: the VPC of the subnets" in text
    # what validate refuses is what was said to be missing
    refused = run("validate", "lab", "--format", "json")
    errors = [each for each in json.loads(refused.stdout)["files"][0]["findings"] if each["severity"] == "error"]
    assert {each["path"] for each in errors} <= {line.partition(": ")[0].rpartition("-> ")[2] for line in missing}


def test_account_and_region_are_not_invented(run: Run, workspace: Path) -> None:
    request = group(ExecutionRole="nodes")
    request["Orchestrator"]["Eks"]["ClusterArn"] = ":cluster/platform"
    notes = notes_of(run, workspace, request, "--vpc-id", VPC, "--kubernetes-version", "1.33")
    paths = [each["path"] for each in notes if each["weight"] == "missing"]
    assert paths[1:3] == ["account", "region"]
    (workspace / "environments" / "lab.yaml").unlink()
    # the ID of a zone tells the region
    assert [each["path"] for each in notes_of(run, workspace, request) if each["weight"] == "missing"] == ["account"]


PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/h100"
KEY = "arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
VOLUME = {"EbsVolumeConfig": {"VolumeSizeInGB": 500}}
NAMED = {
    "a key that nobody knows": group(InstanceCuont=3),
    "threads left out": group(ThreadsPerCore=None),
    "several subnets": changed(VpcConfig={"SecurityGroupIds": [NODES], "Subnets": [SUBNET, OTHER]}),
    "several groups of rules": changed(
        VpcConfig={"SecurityGroupIds": [NODES, "sg-0c3d4e5f678901a2b"], "Subnets": [SUBNET]}
    ),
    "no recovery": changed(NodeRecovery="None"),
    "a root volume with a size": group(
        InstanceStorageConfigs=[VOLUME, {"EbsVolumeConfig": {"RootVolume": True, "VolumeSizeInGB": 100}}]
    ),
    "two volumes": group(InstanceStorageConfigs=[VOLUME, VOLUME]),
    "a key by its alias": group(
        InstanceStorageConfigs=[{"EbsVolumeConfig": {"VolumeSizeInGB": 500, "VolumeKmsKeyId": "alias/mine"}}]
    ),
    "a mount": group(InstanceStorageConfigs=[{"FsxLustreConfig": {"DnsName": "fs-1.fsx.aws", "MountName": "abc"}}]),
    "a strategy that the file has not": group(AutoPatchConfig={"PatchingStrategy": "DrainFirst"}),
    "security groups of its own": group(OverrideVpcConfig={"SecurityGroupIds": [EKS], "Subnets": [SUBNET]}),
    "no script": group(LifeCycleConfig=None),
    "a tag without a value": changed(Tags=[{"Key": "SageMaker", "Value": "true"}, {"Key": "team", "Value": ""}]),
    "a script that is not there": group(LifeCycleConfig={"SourceS3Uri": "s3://sagemaker-x/a b", "OnCreate": "mine.sh"}),
    "restricted groups": changed(
        RestrictedInstanceGroups=[
            {
                "InstanceGroupName": "nova",
                "InstanceType": "ml.p5.48xlarge",
                "InstanceCount": 2,
                "EnvironmentConfig": {"FSxLustreConfig": {"SizeInGiB": 9600, "PerUnitStorageThroughput": 250}},
            }
        ]
    ),
}


@pytest.mark.parametrize("name", NAMED)
def test_what_is_named(run: Run, workspace: Path, name: str) -> None:
    notes = notes_of(run, workspace, NAMED[name])
    said = [f"{each['weight']} {each['source'].partition(' ')[2]}: {each['message']}" for each in notes]
    assert SAYS["named"][name] in said


def test_what_validate_refuses_is_reported(run: Run, workspace: Path) -> None:
    notes = notes_of(run, workspace, group(InstanceType="ml.p5.49xlarge", TrainingPlanArn=PLAN))
    (refused,) = (each for each in notes if each["weight"] == "refused")
    assert refused["path"] == "hyperpod.instance_groups[0].instance_type"
    assert "ml.p5.49xlarge" in refused["message"]
    entry = json.loads((run("validate", "lab", "--format", "json")).stdout)
    assert entry["passed"] is False


def test_every_part_of_a_group(run: Run, workspace: Path) -> None:
    request = group(
        InstanceType=None,
        InstanceRequirements={"InstanceTypes": ["ml.g6e.12xlarge", "ml.g5.12xlarge"]},
        MinInstanceCount=1,
        ThreadsPerCore=2,
        CapacityRequirements={"Spot": {}},
        InstanceStorageConfigs=[{"EbsVolumeConfig": {"VolumeSizeInGB": 200, "VolumeKmsKeyId": KEY}}],
        ImageId="ami-0123456789abcdef0",
        KubernetesConfig={
            "Labels": {"team": "research"},
            "Taints": [{"Key": "dedicated", "Value": "training", "Effect": "NoSchedule"}],
        },
        OnStartDeepHealthChecks=None,
        ScheduledUpdateConfig={
            "ScheduleExpression": "cron(0 3 ? * SUN *)",
            "DeploymentConfig": {
                "RollingUpdatePolicy": {"MaximumBatchSize": {"Type": "CAPACITY_PERCENTAGE", "Value": 10}},
                "WaitIntervalInSeconds": 60,
                "AutoRollbackConfiguration": [{"AlarmName": "jobs-fail"}],
            },
        },
        LifeCycleConfig={"SourceS3Uri": "s3://sagemaker-x", "OnInitComplete": "on_create.sh"},
    )
    request |= {
        "NodeProvisioningMode": "Continuous",
        "TieredStorageConfig": {"Mode": "Enable", "InstanceMemoryAllocationPercentage": 30},
        "Tags": [{"Key": "cost-center", "Value": "ml"}],
    }
    notes = notes_of(run, workspace, request)
    assert [each["weight"] for each in notes] == ["lost", "changed"]
    environment = load_environment(workspace / "environments" / "lab.yaml").environment
    (found,) = environment.hyperpod.instance_groups
    assert found.model_dump(exclude_unset=True) == {
        "name": "worker-group-1",
        "instance_types": ("ml.g6e.12xlarge", "ml.g5.12xlarge"),
        "count": 4,
        "min_count": 1,
        "availability_zone_id": "use1-az5",
        "capacity": "spot",
        "volume_gib": 200,
        "labels": {"team": "research"},
        "taints": ({"key": "dedicated", "value": "training", "effect": "NoSchedule"},),
        "image": {"ami_id": "ami-0123456789abcdef0"},
        "patching": {
            "schedule": "cron(0 3 ? * SUN *)",
            "max_batch": {"percent": 10},
            "wait_seconds": 60,
            "rollback_alarms": ("jobs-fail",),
        },
        "on_init_complete": "on_create.sh",
    }
    assert environment.encryption.node_volumes == KEY
    assert environment.tags == {"cost-center": "ml"}
    assert environment.hyperpod.tiered_checkpointing is not None
    assert environment.hyperpod.tiered_checkpointing.memory_percent == 30


def test_an_answer_of_describe_cluster(run: Run, workspace: Path) -> None:
    request = group(CurrentCount=3, TargetCount=4, Status="InService", DesiredImageReleaseVersion="1.0.1")
    del request["InstanceGroups"][0]["InstanceCount"]
    request |= {
        "ClusterArn": "arn:aws:sagemaker:us-east-1:111122223333:cluster/abc",
        "ClusterStatus": "InService",
        "CreationTime": "2026-01-01",
        "NodeProvisioningMode": "Continuous",
    }
    notes = notes_of(run, workspace, request)
    assert not [each for each in notes if "unknown here" in each["message"]]
    assert notes[-1] == {
        "weight": "unsafe",
        "source": "",
        "path": "hyperpod.cluster_name",
        "message": "the cluster already exists, and names are unique in an account: a deployment of this file does not"
        " take it over, it fails because of the name; write another one to create a second cluster",
    }
    (found,) = load_environment(workspace / "environments" / "lab.yaml").environment.hyperpod.instance_groups
    assert (found.count, found.image.release_version) == (4, None)


SLURM = (
    "refuses Orchestrator: must be Eks, got Slurm (a cluster without an orchestrator is on Slurm); this library is for"
    " HyperPod on EKS, and a HyperPod cluster on EKS has Orchestrator.Eks.ClusterArn"
)
BAD = {
    "not JSON": REQUEST.replace('"InstanceCount": 4,', '"InstanceCount": 4'),
    "a number that JSON has not": '{"InstanceGroups": [{"InstanceCount": NaN}]}',
    "another document": '{"Resources": {}}',
    "a list": "[1]",
    "nothing": "",
    "twice": REQUEST.replace('"NodeRecovery"', '"ClusterName"'),
    "deep": "[" * 100_000 + "]" * 100_000,
    "Slurm": json.dumps({**changed(), "Orchestrator": None}),
    "Slurm by name": json.dumps(changed(Orchestrator={"Slurm": {}})),
    "a count that is text": json.dumps(group(InstanceCount="4")),
    "a count that is true": json.dumps(group(InstanceCount=True)),
    "no name": json.dumps(group(InstanceGroupName=None)),
    "groups that are none": json.dumps(changed(InstanceGroups=[3])),
    "a plan of another account": json.dumps(group(TrainingPlanArn=PLAN.replace("1111", "9999"))),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_sources(run: Run, workspace: Path, name: str) -> None:
    text = BAD[name]
    (workspace / "cluster.json").write_text(text, encoding="utf-8")
    done = run("import", "cluster.json", "--name", "lab")
    assert (done.returncode, done.stdout.splitlines()[0]) == (1, SAYS["bad"][name])
    assert not (workspace / "environments" / "lab.yaml").exists()


def test_a_large_file_and_one_of_bytes(run: Run, workspace: Path) -> None:
    (workspace / "cluster.json").touch()
    with (workspace / "cluster.json").open("r+b") as stream:
        stream.truncate(5 << 30)
    assert run("import", "cluster.json", "--name", "lab").stdout.splitlines()[0] == (
        "cluster.json: must have at most 1000000 bytes, got 5368709120; a file to import is much smaller: name the"
        " right file"
    )
    (workspace / "cluster.json").write_bytes(b"{\n\xff\x00")
    assert run("import", "cluster.json", "--name", "lab").stdout.splitlines()[0] == (
        "cluster.json:2: is not UTF-8 text: byte 0xff; save it as UTF-8"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--account", "999922223333"),
            (
                "cluster.json:3 Orchestrator.Eks.ClusterArn: is of account 111122223333, and --account says"
                " 999922223333; correct one of the two"
            ),
        ),
        (
            ("--region", "us-west-2"),
            (
                "cluster.json:3 Orchestrator.Eks.ClusterArn: is of region us-east-1, and --region says us-west-2;"
                " correct one of the two"
            ),
        ),
    ],
)
def test_who_says_something_else(run: Run, workspace: Path, words: tuple[str, ...], said: str) -> None:
    (workspace / "cluster.json").write_text(REQUEST, encoding="utf-8")
    done = run("import", "cluster.json", "--name", "lab", *words)
    assert (done.returncode, done.stdout.splitlines()[0]) == (1, said)


def test_existing_files_are_never_overwritten(run: Run, workspace: Path) -> None:
    (workspace / "cluster.json").write_text(REQUEST, encoding="utf-8")
    before = (workspace / "environments" / "dev.yaml").read_bytes()
    for words in (("--name", "dev"), ("--name", "lab", "--out", "environments/dev.yaml")):
        done = run("import", "cluster.json", *words)
        assert (done.returncode, done.stdout, done.stderr) == (
            2,
            "",
            (
                "environments/dev.yaml exists and is never overwritten; remove it to import again, choose another name"
                " or edit it\n"
            ),
        )
    assert (workspace / "environments" / "dev.yaml").read_bytes() == before


def test_without_an_app_only_what_works_there_is_next(run: Run, workspace: Path, app: Path) -> None:
    app.unlink()
    (workspace / "cluster.json").write_text(REQUEST, encoding="utf-8")
    done = run("import", "cluster.json", "--name", "lab", *SAID)
    assert done.stdout.splitlines()[-3:] == [
        "next: read it, then 'hyperpod-cdk validate lab'",
        (
            f"      {workspace} has neither cdk.json nor app.py, so the CDK has nothing to run; 'hyperpod-cdk new DIR'"
            " creates a project;"
        ),
        "      move the file into the project's environments/ before the next steps",
    ]


def test_another_place(run: Run, workspace: Path) -> None:
    (workspace / "cluster.json").write_text(REQUEST, encoding="utf-8")
    assert run("import", "cluster.json", "--name", "lab", "--out", "a/b/lab.yaml", *SAID).returncode == 0
    first = (workspace / "a" / "b" / "lab.yaml").read_text(encoding="utf-8").splitlines()[0]
    assert first == "# yaml-language-server: $schema=../../schemas/environment.schema.json"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--name", "Lab!"),
            (
                "--name: must be 1 to 16 lower-case letters, digits and single hyphens, beginning with a letter, ending"
                ' with a letter or digit (bucket names leave no more), got "Lab!"; give --name lab'
            ),
        ),
        (
            ("--name", "lab", "--subnet", "use1-az5"),
            '--subnet: must be a subnet and its AZ ID, such as subnet-0a1b2c3d4e5f67890=use1-az5, got "use1-az5"',
        ),
        (
            ("--name", "lab", "--region", "eu-west-1", "--zone", "use1-az5"),
            (
                "--zone: must be an availability zone ID of eu-west-1 (euw1-az...), got use1-az5 of us-east-1; write"
                " one of eu-west-1, or give --region us-east-1"
            ),
        ),
        (
            ("--name", "lab", "--region", "mars"),
            (
                f'--region: must be an AWS region known on {regions.AS_OF}, got "mars"; set --region to one of'
                f" {', '.join(regions.HYPERPOD_REGIONS)}"
            ),
        ),
    ],
)
def test_wrong_words(run: Run, workspace: Path, words: tuple[str, ...], said: str) -> None:
    (workspace / "cluster.json").write_text(REQUEST, encoding="utf-8")
    done = run("import", "cluster.json", *words)
    assert (done.returncode, done.stderr) == (2, f"{said}\n")


def test_a_missing_name_is_reported_in_a_sentence(run: Run, workspace: Path) -> None:
    (workspace / "request.json").write_text("{}", encoding="utf-8")
    done = run("import", "request.json")
    said = "\n--name is missing and was not answered, so nothing was written; give --name\n"
    assert (done.returncode, done.stdout.strip(), done.stderr.endswith(said)) == (2, "", True)
