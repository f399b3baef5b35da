"""The wheel, installed in another environment, works in another app's stack."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
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


def build(project: Path, folder: Path) -> Path:
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(project)]
    subprocess.run(command, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def wheel(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(project, tmp_path_factory.mktemp("wheel"))


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
    projects = {name.removeprefix("hyperpod_cdk/_project/") for name in names if "/_project/" in name}
    # what 'hyperpod-cdk new' writes as it stands here, and the lock by which the CDK CLI is installed
    assert projects == {
        *("app.py", "cdk.json", "package-lock.json", ".gitlab-ci.yml", ".ci/post_review.py", ".ci/deployed_tool.py"),
        *(f".github/workflows/{name}.yaml" for name in ("review", "deploy", "deploy-environment")),
    }
    assert [name for name in names if "__pycache__" in name] == []
    assert {name.split("/")[0].removesuffix(".dist-info").split("-")[0] for name in names} == {
        "hyperpod_cdk",
        "hyperpod_cdk_stacks",
    }


@pytest.mark.examples
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


@pytest.mark.examples
def test_what_is_installed_makes_a_project_and_rehearses_it(wheel: Path, project: Path, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    rehearsal = build(project / "rehearsal", tmp_path / "rehearsal")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--ignore-installed"]
    subprocess.run([*install, "--prefix", venv, wheel, rehearsal], check=True, capture_output=True)
    # what the wheels depend on, as it is installed here; the checkout itself is not: a path of its own would name it
    (packages,) = venv.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    (command,) = venv.glob("bin/hyperpod-cdk")
    lines = command.read_text(encoding="utf-8").splitlines()
    command.write_text("\n".join([f"#!{venv}/bin/python", *lines[1:]]), encoding="utf-8")
    lock = json.loads((project / "package-lock.json").read_text(encoding="utf-8"))
    version = lock["packages"]["node_modules/aws-cdk"]["version"]
    modules = tmp_path / "cache" / "hyperpod-cdk" / f"aws-cdk-{version}" / "node_modules"
    modules.mkdir(parents=True)
    (modules / "aws-cdk").symlink_to(project / "node_modules" / "aws-cdk")
    # git is all that a stranger has beside Python: no Node.js of its own
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("git", "sh", "env"):
        (programs / name).symlink_to(str(shutil.which(name)))
    variables = {
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "PATH": f"{venv / 'bin'}:{programs}",
        "JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(Path.home() / ".cache" / "aws" / "jsii" / "package-cache"),
    }

    def run(*words: str, folder: Path) -> str:
        done = subprocess.run(words, cwd=folder, env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
        return done.stdout

    where = run(
        str(venv / "bin" / "python"), "-c", "import hyperpod_cdk; print(hyperpod_cdk.__file__)", folder=tmp_path
    )
    assert where.startswith(str(venv))
    run("hyperpod-cdk", "new", "demo", "--with", "github", folder=tmp_path)
    demo = tmp_path / "demo"
    run("git", "init", "--quiet", "--initial-branch", "main", folder=demo)
    run("git", "add", "--all", folder=demo)
    author = ("-c", "user.name=Dana", "-c", "user.email=dana@example.com")
    run("git", *author, "commit", "--quiet", "--message", "First", folder=demo)
    assert "ok, 2 warnings" in run("hyperpod-cdk", "validate", folder=demo)
    assert "nothing failed" in run("hyperpod-cdk", "preflight", "prod", "--offline", folder=demo)
    run("hyperpod-cdk", "cdk", "synth", "**", "--quiet", "-c", "env=prod", folder=demo)
    assert "NO CHANGE" in run("hyperpod-cdk", "review", "prod", "--base", "main", folder=demo)
    run("hyperpod-cdk", "templates", "--trusted", folder=demo)
    run("hyperpod-cdk", "bootstrap-policy", "prod", "--out", "policy.json", folder=demo)
    run("hyperpod-cdk", "job", "render", "prod", "--group", "h100", "--kind", "nccl", "--out", "nccl.yaml", folder=demo)
    run("hyperpod-cdk", "image", "render", "prod", "--group", "h100", "--out", "image", folder=demo)
    for page in ("environment", "job", "job-report", "review", "review-report", "plan", "drift", "status"):
        run("hyperpod-cdk", "schema", "--of", page, folder=demo)
    assert "rehearsed prod in" in run("hyperpod-cdk", "rehearse", "prod", folder=demo)
