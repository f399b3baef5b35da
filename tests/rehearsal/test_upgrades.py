"""Upgrade by two Kubernetes minor versions, with add-ons, chart and AMIs, in the embedded AWS, as upgrade shows."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from rich.console import Console
from typer.testing import CliRunner

from hyperpod_cdk import cli
from hyperpod_cdk._cli.review import open_aws
from hyperpod_cdk._cli.transitions import Deploying
from hyperpod_cdk.catalog import images
from hyperpod_cdk.checks.model import REGISTER
from hyperpod_cdk.config import load_environment
from hyperpod_cdk.eks.dependencies import PLACEHOLDER_PARAMETER
from hyperpod_cdk_rehearsal.account_files import satisfying
from hyperpod_cdk_rehearsal.cdk_cli import CdkCli, CdkFailedError
from hyperpod_cdk_rehearsal.driver import _Rehearsal
from hyperpod_cdk_rehearsal.process import EmbeddedAws
from hyperpod_cdk_rehearsal.report import Report
from tests.support.assembly import ENVIRONMENTS, PROJECT
from tests.support.embedded import embedded
from tests.support.in_process_cdk import Aws, InProcessCdk

NAME = "two-teams"
SKIPPED = [f"--skip={area}" for area in REGISTER.areas() if area != "account"]
"""What preflight asks beside who deploys is proven elsewhere."""
OLD_CHART = "a" * 40
MINORS = ("1.33", "1.34", "1.35")
COREDNS = {
    "1.33": ["v1.12.4-eksbuild.1"],
    "1.34": ["v1.13.2-eksbuild.7", "v1.12.4-eksbuild.1"],
    "1.35": ["v1.14.2-eksbuild.4"],
}
"""What EKS's user guide lists ("CoreDNS versions"), the default first."""


def kube_proxy(minor: str) -> str:
    return f"v{minor}.0-eksbuild.1"


class Lived:
    """An environment as it was made at the oldest of the three versions, in a project of its own."""

    def __init__(self, aws: Aws, project: Path, run: _Rehearsal, cdk: InProcessCdk) -> None:
        self.aws, self.project, self.rehearsal, self.cdk = aws, project, run, cdk
        self.file = project / "environments" / f"{NAME}.yaml"
        self.number = 0

    def deploy(self, file: Path | None = None) -> None:
        self.number += 1
        assembly = self.project / f"cdk.out.{self.number}"
        self.cdk.synth(file or self.file, assembly)
        self.rehearsal._deploy(assembly)

    def refused(self, *changes: tuple[str, str]) -> str:
        text = self.file.read_text(encoding="utf-8")
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        edited = self.project / "edited" / self.file.name
        edited.parent.mkdir(exist_ok=True)
        edited.write_text(text, encoding="utf-8")
        with pytest.raises(CdkFailedError) as failed:
            self.deploy(edited)
        return str(self.rehearsal.explain(failed.value))

    def upgrade(self) -> dict[str, Any]:
        """Run the verb as it stands on the page, once, and give what it told."""
        words = ["upgrade", NAME, "--kubernetes", "1.35", "--addons", "--chart", "--ami", "--write"]
        arguments = [*words, "--format", "json", "--project", str(self.project)]
        done = CliRunner().invoke(cli.app, arguments, prog_name="hyperpod-cdk")
        assert done.exit_code == 0, done.output
        told: dict[str, Any] = json.loads(done.stdout)
        assert told["skipped"] == []
        return told

    def run(self, arguments: Sequence[str]) -> None:
        """Stand in for the CDK CLI of the verb 'deploy', with the placeholder of the chart."""
        is_there = any(f"{NAME}/{each}" in arguments for each in ("*", "foundation"))
        chart = ["--parameters", f"{NAME}-foundation:{PLACEHOLDER_PARAMETER}=rehearsal"]
        self.cdk.run([*arguments, *(chart if is_there else [])])

    def deploy_by_verb(self) -> None:
        """Deploy as somebody at a terminal does, who agrees and types the name where that is asked for."""
        self.number += 1
        assembly = self.project / f"cdk.out.{self.number}"
        self.cdk.synth(self.file, assembly)
        words = ["deploy", NAME, "--head", str(assembly), "--project", str(self.project), *SKIPPED]
        done = CliRunner().invoke(
            cli.app,
            words,
            prog_name="hyperpod-cdk",
            obj=Deploying(open=open_aws, cdk=lambda _: self),
            input=f"y\n{NAME}\n",
            catch_exceptions=False,
        )
        # of the chart there is only the placeholder here, so that its step changes nothing
        assert (done.exit_code, "the deployed stacks match the file." in done.stdout) == (0, True), done.output

    def do(self, step: dict[str, Any]) -> None:
        """Do what a step says: deploy, or make the one call of AWS that it shows."""
        for command in step["commands"]:
            words = shlex.split(command)
            if words[:2] == ["hyperpod-cdk", "deploy"]:
                self.deploy_by_verb()
            elif words[:3] == ["aws", "sagemaker", "update-cluster-software"]:
                given = dict(zip(words[3::2], words[4::2], strict=True))
                group = dict(each.split("=") for each in given["--instance-groups"].split(","))
                sagemaker = self.aws.client("sagemaker")
                sagemaker.update_cluster_software(ClusterName=given["--cluster-name"], InstanceGroups=[group])
                while sagemaker.describe_cluster(ClusterName=NAME)["ClusterStatus"] != "InService":
                    time.sleep(0.1)

    def stands(self) -> tuple[str, dict[str, str], dict[str, str]]:
        eks, sagemaker = self.aws.client("eks"), self.aws.client("sagemaker")
        names = [
            name for name in eks.list_addons(clusterName=f"{NAME}-eks")["addons"] if name in ("coredns", "kube-proxy")
        ]
        groups = sagemaker.describe_cluster(ClusterName=NAME)["InstanceGroups"]
        return (
            eks.describe_cluster(name=f"{NAME}-eks")["cluster"]["version"],
            {
                name: eks.describe_addon(clusterName=f"{NAME}-eks", addonName=name)["addon"]["addonVersion"]
                for name in names
            },
            {each["InstanceGroupName"]: each["CurrentImageReleaseVersion"] for each in groups},
        )


@pytest.mark.examples
def test_two_minors_with_add_ons_chart_and_amis_step_by_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "project"
    (project / "environments").mkdir(parents=True)
    (project / "charts").mkdir()
    lock = (PROJECT / "charts" / "charts.lock.yaml").read_text(encoding="utf-8")
    (project / "charts" / "charts.lock.yaml").write_text(lock.replace(images.CHART_COMMIT, OLD_CHART), encoding="utf-8")
    text = (PROJECT / ENVIRONMENTS[NAME]).read_text(encoding="utf-8")
    pins = f"  addon_versions:\n    kube-proxy: {kube_proxy('1.33')} # with the control plane\n"
    text = text.replace('kubernetes_version: "1.35"\n', f'kubernetes_version: "1.33" # for now\n{pins}')
    text = text.replace(
        "      capacity: on_demand", "      image: { release_version: 1.4.0 }\n      capacity: on_demand"
    )
    file = project / "environments" / f"{NAME}.yaml"
    file.write_text(text, encoding="utf-8")
    environment = load_environment(file).environment
    document = satisfying(environment)
    offers = {minor: {"coredns": COREDNS[minor], "kube-proxy": [kube_proxy(minor)]} for minor in MINORS}
    document["kubernetes"] = {"addons_for": offers, "api": "answers"}
    with embedded(document, region=environment.region, account=environment.account, is_hurried=True) as there:
        for name, value in there.environment().items():
            monkeypatch.setenv(name, value)
        aws = Aws(there, tmp_path / "log")
        cdk = InProcessCdk(aws)
        run = _Rehearsal(
            loaded=load_environment(file),
            aws=cast("EmbeddedAws", aws),
            cdk=cast("CdkCli", cdk),
            scratch=tmp_path,
            console=Console(quiet=True),
            report=Report(environment=NAME, file=str(file), account=environment.account, region=environment.region),
            stacks=[f"{NAME}-{stack}" for stack in ("foundation", "hyperpod", "platform")],
        )
        monkeypatch.setattr("hyperpod_cdk._cli.transitions.is_terminal", lambda: True)
        life = Lived(aws, project, run, cdk)
        life.deploy()
        assert life.stands()[0] == "1.33"

        # what EKS and HyperPod refuse
        assert "Unsupported Kubernetes minor version update from 1.33 to 1.35" in life.refused(('"1.33"', '"1.35"'))
        assert f"Addon version specified is not supported: {kube_proxy('1.34')}" in life.refused(
            (kube_proxy("1.33"), kube_proxy("1.34"))
        )
        assert "ImageReleaseVersion 2.0.1 is not available for Kubernetes version 1.33" in life.refused(
            ("1.4.0", "2.0.1")
        )
        assert life.stands()[0] == "1.33"

        done: list[str] = []
        while (told := life.upgrade())["steps"]:
            step = told["steps"][0]
            done.append(f"{step['kind']}: {step['title']}")
            assert len(done) < 12, done[4:]
            life.do(step)
        stands = life.stands()
    new = images.CHART_COMMIT[:12]
    assert done == [
        "kubernetes: Kubernetes 1.33 -> 1.34, with compatible add-ons",
        "ami: AMI of group system for Kubernetes 1.34",
        "ami: AMI of group a10g for Kubernetes 1.34: 1.4.0 -> 2.1.0",
        "kubernetes: Kubernetes 1.34 -> 1.35, with compatible add-ons",
        "ami: AMI of group system for Kubernetes 1.35",
        "ami: AMI of group a10g for Kubernetes 1.35",
        f"chart: dependency chart {OLD_CHART[:12]} -> {new}, which this hyperpod-cdk was tested with",
    ]
    versions = {"coredns": COREDNS["1.35"][0], "kube-proxy": kube_proxy("1.35")}
    assert stands == ("1.35", versions, {"a10g": "2.1.0", "system": "2.1.0"})
    assert (project / "charts" / "charts.lock.yaml").read_text(encoding="utf-8") == lock
    written = file.read_text(encoding="utf-8")
    assert written.splitlines()[:17] == text.splitlines()[:17]
    assert 'kubernetes_version: "1.35" # for now\n' in written
    assert f"kube-proxy: {kube_proxy('1.35')} # with the control plane\n    coredns: {COREDNS['1.35'][0]}\n" in written
    assert "image: { release_version: 2.1.0 }\n" in written
