"""The wheel, installed elsewhere, serves somebody else's stack."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

FOREIGN_APP = """
import sys
import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2, aws_eks_v2 as eks
import hyperpod_cdk
assert hyperpod_cdk.__file__.startswith(sys.argv[1]), hyperpod_cdk.__file__
from hyperpod_cdk import EfaSecurityGroup, HyperPodCluster, InstanceGroup, LifecycleScripts, NodeExecutionRole

app = cdk.App(outdir=sys.argv[2], builtin_cloud_formation_validation=False)
stack = cdk.Stack(app, "Foreign")
vpc = ec2.Vpc.from_vpc_attributes(
    stack,
    "Vpc",
    vpc_id="vpc-0123456789abcdef0",
    availability_zones=["a"],
    private_subnet_ids=["subnet-0123456789abcdef0"],
)
subnet = ec2.Subnet.from_subnet_id(stack, "Nodes", "subnet-0123456789abcdef0")
efa = EfaSecurityGroup(stack, "Efa", vpc=vpc)
scripts = LifecycleScripts(stack, "Scripts")
arn = "arn:aws:eks:us-east-1:111122223333:cluster/theirs"
role = NodeExecutionRole(
    stack,
    "Role",
    bucket=scripts.bucket,
    eks_cluster_arn=arn,
    vpc=vpc,
    subnets=[subnet],
    security_groups=[efa.security_group],
)
HyperPodCluster(
    stack,
    "Cluster",
    cluster_name="theirs",
    eks_cluster_arn=arn,
    vpc_subnets=[subnet],
    security_groups=[efa.security_group],
    instance_groups=[
        InstanceGroup(
            name="gpu",
            instance_type="ml.p5.48xlarge",
            count=2,
            capacity="on_demand",
            subnet=subnet,
            availability_zone_id="use1-az5",
            security_groups=(efa.security_group,),
        )
    ],
    execution_role=role,
    lifecycle=scripts,
)
app.synth()
"""


@pytest.fixture(scope="module")
def wheel(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(project)]
    subprocess.run(command, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def test_lifecycle_scripts_keep_their_executable_bit(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        scripts = [i for i in archive.infolist() if "_lifecycle_scripts/" in i.filename and i.filename.endswith(".sh")]
    assert {Path(i.filename).name for i in scripts} >= {"on_create.sh", "on_create_noop.sh"}
    assert [i.filename for i in scripts if not (i.external_attr >> 16) & 0o111] == []


def test_the_wheel_carries_its_data_and_nothing_else_of_the_repository(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert "hyperpod_cdk/py.typed" in names
    assert "hyperpod_cdk/catalog/data/instance_types.json" in names
    assert {
        "hyperpod_cdk/review/pages/templates/report.html.jinja",
        "hyperpod_cdk/review/pages/templates/report.css",
    } <= set(names)
    assert "hyperpod_cdk/_charts/charts.lock.yaml" in names
    assert {
        "hyperpod_cdk/_training_program/fsdp_training/train.py",
        "hyperpod_cdk/workloads/templates/Dockerfile.j2",
        "hyperpod_cdk/workloads/templates/locks/cuda-13.0.txt",
    } <= set(names)
    assert [name for name in names if "__pycache__" in name] == []
    assert {name.split("/")[0].removesuffix(".dist-info").split("-")[0] for name in names} == {
        "hyperpod_cdk",
        "hyperpod_cdk_stacks",
    }


def test_a_foreign_stack_synthesizes(wheel: Path, tmp_path: Path) -> None:
    target = tmp_path / "site"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", target, wheel],
        check=True,
        capture_output=True,
    )
    app = tmp_path / "app.py"
    app.write_text(FOREIGN_APP, encoding="utf-8")
    # first on the path, so that the checkout installed for the other tests does not shadow it
    runner = f"import sys; sys.path.insert(0, {str(target)!r}); exec(open({str(app)!r}).read())"
    done = subprocess.run(
        [sys.executable, "-c", runner, str(target), str(tmp_path / "out")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    template = (tmp_path / "out" / "Foreign.template.json").read_text(encoding="utf-8")
    assert '"AWS::SageMaker::Cluster"' in template
