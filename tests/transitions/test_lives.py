"""The procedures of docs/lifecycle-of-an-environment.md, executed by 'deploy' in the embedded AWS."""

from __future__ import annotations

import copy
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from hyperpod_cdk.catalog import prices
from hyperpod_cdk.checks.aws import LiveAws
from hyperpod_cdk.config import load_environment
from hyperpod_cdk.eks.dependencies import PLACEHOLDER_PARAMETER
from hyperpod_cdk.handlers.quota_gate.reading import Own
from hyperpod_cdk.review.model import Side
from hyperpod_cdk.review.sources import Source
from hyperpod_cdk.templates.assembly import Assembly, read_assembly
from hyperpod_cdk.transitions.cdk import Cdk
from hyperpod_cdk.transitions.model import Plan, Recovery
from hyperpod_cdk.transitions.plan import plan
from hyperpod_cdk.transitions.recovering import Recovering
from hyperpod_cdk.transitions.run import Deployment, Destruction
from hyperpod_cdk_rehearsal.account_files import satisfying
from hyperpod_cdk_rehearsal.cdk_cli import CdkCli
from hyperpod_cdk_rehearsal.left_over import Snapshot, kept_and_unexpected, snapshot
from tests.support.assembly import PROJECT
from tests.support.callers import with_callers
from tests.support.embedded import Embedded, embedded
from tests.support.in_process_cdk import Aws, InProcessCdk
from tests.support.pairs import Person

ACCOUNT, REGION = "111122223333", "us-east-1"
SMALL = """
name: small
account: "111122223333"
region: us-east-1
tags: {cost-center: "42"}
eks: {admin_role_arns: ["arn:aws:iam::111122223333:role/admin"], public_access_cidrs: [0.0.0.0/0]}
network:
  vpc_cidr: 10.192.0.0/16
  retain: true
  availability_zones: {use1-az5: {}, use1-az4: {}, use1-az6: {}}
encryption: {logs: create, node_volumes: create}
hyperpod:
  instance_groups:
    - {name: system, instance_type: ml.m5.2xlarge, count: 1, availability_zone_id: use1-az4}
    - {name: far, instance_type: ml.m5.2xlarge, count: 1, availability_zone_id: use1-az6}
storage:
  lustre:
    - name: near
      availability_zone_id: use1-az4
      capacity_gib: 1200
      claim: {name: near, namespaces: [default]}
    - name: far
      availability_zone_id: use1-az6
      capacity_gib: 1200
      claim: {name: far, namespaces: [default]}
"""

Edit = Callable[[dict[str, Any]], None]


def logs_out(data: dict[str, Any]) -> None:
    """Take the key of the log groups away."""
    del data["encryption"]["logs"]


def node_volumes_out(data: dict[str, Any]) -> None:
    """Take the key of nodes' volumes away: a group keeps its key, so each gets another name."""
    del data["encryption"]
    for group in data["hyperpod"]["instance_groups"]:
        group["name"] = f"{group['name']}-2"


def zone_out(data: dict[str, Any]) -> None:
    """Take a zone out with its group and its file system."""
    data["network"]["availability_zones"].pop("use1-az6")
    data["hyperpod"]["instance_groups"].pop()
    data["storage"]["lustre"].pop()


def last_file_system_out(data: dict[str, Any]) -> None:
    """Take the only file system out: its stack leaves the app."""
    del data["storage"]


def karpenter_off(data: dict[str, Any]) -> None:
    """Turn Karpenter off: its pools go, and the groups that it scaled."""
    data["hyperpod"]["autoscaling"] = "disabled"
    del data["hyperpod"]["karpenter_pools"]
    data["hyperpod"]["instance_groups"] = [each for each in data["hyperpod"]["instance_groups"] if each["count"]]


@dataclass(frozen=True)
class WithPlaceholder:
    """Deploys the chart's placeholder, as a rehearsal does; else the CDK CLI as it is given."""

    cdk: Any
    name: str
    ran: list[tuple[str, ...]] = field(default_factory=list)

    def run(self, arguments: Sequence[str]) -> None:
        self.ran.append(tuple(arguments[3 : arguments.index("--concurrency")]))
        chart = ["--parameters", f"{self.name}-foundation:{PLACEHOLDER_PARAMETER}=rehearsal"]
        # the CDK CLI knows only parameters of stacks that it deploys
        is_there = any(f"{self.name}/{each}" in arguments for each in ("*", "foundation"))
        self.cdk.run([*arguments, *(chart if is_there else [])])


@dataclass
class Life:
    """One environment in a separate account."""

    there: Embedded
    cdk: Any
    folder: Path
    aws: Aws
    before: Snapshot
    data: dict[str, Any]
    count: int = 0

    def change(self, edit: Edit | None = None) -> tuple[list[tuple[str, ...]], Person]:
        """Edit the file and deploy it; give what the CDK CLI was told to deploy, and what was shown."""
        if edit is not None:
            edit(self.data)
        self.count += 1
        file = self.folder / "edited.yaml"
        file.write_text(yaml.safe_dump(self.data, sort_keys=False), encoding="utf-8")
        assembly = self.folder / f"assembly-{self.count}"
        self.cdk.synth(file, assembly)
        person, cdk = Person(), WithPlaceholder(self.cdk, self.data["name"])
        assert self.deployment(assembly, person, cdk).run(), "\n".join(person.told)
        # what stands is what the file says: another one finds nothing to do
        again = Person()
        assert self.deployment(assembly, again, cdk).run()
        assert again.shown[0].steps == ()
        return cdk.ran, person

    def refused(self, edit: Edit) -> Person:
        """Deploy an edited file that is refused, and put the edit back; give what was shown."""
        data = copy.deepcopy(self.data)
        edit(data)
        file, assembly = self.folder / "refused.yaml", self.folder / "refused"
        file.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
        self.cdk.synth(file, assembly)
        person, cdk = Person(), WithPlaceholder(self.cdk, data["name"])
        before = self.stacks()
        assert not self.deployment(assembly, person, cdk).run()
        assert (cdk.ran, self.stacks()) == ([], before)
        return person

    def destroy(self) -> Plan:
        """Destroy it by its name, as 'destroy' does; give what was shown."""
        person, own = Person(), Own(stacks=(), hyperpod_cluster="", eks_cluster="")
        ended = Destruction(
            aws=lambda: LiveAws.open(region=self.data["region"], account=ACCOUNT, own=own),
            head=Source(
                assembly=read_assembly(self.folder / f"assembly-{self.count}", self.data["name"]),
                side=Side(label="working tree"),
            ),
            person=person,
            pause=lambda _: None,
        )
        assert ended.run(), "\n".join(person.told)
        assert self.stacks() == {}
        return person.shown[0]

    def recover(self, assembly: Path) -> tuple[list[Recovery], Person]:
        """Recover it as 'recover' does, with a person who agrees to all; give what was shown and told."""
        person, own = Person(), Own(stacks=(), hyperpod_cluster="", eks_cluster="")
        shown: list[Recovery] = []
        recovering = Recovering(
            aws=lambda: LiveAws.open(region=self.data["region"], account=ACCOUNT, own=own),
            head=Source(assembly=read_assembly(assembly, self.data["name"]), side=Side(label="working tree")),
            person=person,
            show=shown.append,
            pause=lambda _: None,
        )
        assert recovering.run(), "\n".join(person.told)
        return shown, person

    def deployment(self, assembly: Path, person: Person, cdk: Cdk) -> Deployment:
        """Return the deployment of an assembly as in 'deploy'."""
        own = Own(stacks=(), hyperpod_cluster="", eks_cluster="")
        return Deployment(
            aws=lambda: LiveAws.open(region=self.data["region"], account=ACCOUNT, own=own),
            head=Source(assembly=read_assembly(assembly, self.data["name"]), side=Side(label="working tree")),
            cdk=cdk,
            person=person,
            pause=lambda _: None,
        )

    def stacks(self) -> dict[str, str]:
        """Return the status of every stack that is there, by name."""
        found = self.there.client("cloudformation").describe_stacks()["Stacks"]
        return {each["StackName"]: each["StackStatus"] for each in found if each["StackName"] != "CDKToolkit"}


@contextmanager
def living(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *, text: str = SMALL, is_real: bool = False
) -> Iterator[Life]:
    """Yield a deployed environment, deployed by the unmodified CDK CLI or its simulation."""
    file = folder / "first.yaml"
    file.write_text(text, encoding="utf-8")
    data = yaml.safe_load(text)
    document = satisfying(load_environment(file).environment)
    if is_real:
        document["bootstrap"] = None
    with embedded(document, region=data["region"], is_hurried=True) as there:
        for name, value in there.environment().items():
            monkeypatch.setenv(name, value)
        aws = Aws(there, folder)
        before = snapshot(aws)
        cdk: Any = InProcessCdk(aws)
        if is_real:
            cdk = CdkCli(project=PROJECT, scratch=folder, environment=there.environment())
            assembly = folder / "bootstrap"
            cdk.synth(file, assembly)
            cdk.run(["bootstrap", f"aws://{ACCOUNT}/{data['region']}", "--app", str(assembly)])
        life = Life(there, cdk, folder, aws, before, data)
        ran, _ = life.change()
        assert ran == [(f"{data['name']}/*",)]
        yield life


@pytest.mark.examples
@pytest.mark.timeout(600)
def test_keys_a_zone_and_the_last_file_system_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with living(tmp_path, monkeypatch) as life:
        ran, _ = life.change(logs_out)
        assert ran == [
            ("small/storage", "small/hyperpod", "small/observability", "--exclusively"),
            ("small/*",),
        ]

        ran, _ = life.change(node_volumes_out)
        assert ran == [
            # the groups of the new names stand beside the old ones, then these go, then their key
            ("small/hyperpod", "--exclusively"),
            ("small/hyperpod", "--exclusively"),
            ("small/*",),
        ]

        ran, person = life.change(zone_out)
        assert ran == [
            ("small/hyperpod", "small/platform", "--exclusively"),
            ("small/storage", "--exclusively"),
            ("small/*",),
        ]
        assert any("End the pods that mount the claim default/far" in each for each in person.told)

        ran, person = life.change(last_file_system_out)
        assert ran == [("small/*",)]
        assert "small-storage: deleted" in person.told
        assert set(life.stacks()) == {"small-foundation", "small-hyperpod", "small-platform", "small-observability"}
        # both are retained: no plan deletes data
        assert len(life.there.client("fsx").describe_file_systems()["FileSystems"]) == 2

        life.destroy()


@pytest.mark.examples
@pytest.mark.timeout(600)
def test_a_destroy_leaves_what_it_says_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with living(tmp_path, monkeypatch) as life:
        vpc = life.there.client("fsx").describe_file_systems()["FileSystems"][0]["VpcId"]
        subnets = life.there.client("ec2").describe_subnets(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["Subnets"]
        made = [each for each in subnets if not each["CidrBlock"].startswith("10.192.")]
        assert len(made) == 3
        # network.retain asks for them
        asked = {vpc, *(each["SubnetId"] for each in made)}
        shown = life.destroy()
        kept, unexpected = kept_and_unexpected(
            life.aws, life.before, region=REGION, prices=prices.shipped(), asked=asked
        )
        assert unexpected == []
        said = {each.partition(" remains in the account")[0] for step in shown.steps for each in step.stays}
        assert {"small-storage / Lustre-near/FileSystem", "small-storage / Lustre-far/FileSystem"} <= said
        assert len([each for each in kept if each.kind == "FSx file system"]) == 2
        # the next life needs no step in between
        life.change()


@pytest.mark.examples
@pytest.mark.timeout(600)
def test_a_file_system_is_replaced_in_three_steps_of_one_deployment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def moved(data: dict[str, Any]) -> None:
        data["storage"]["lustre"][1]["availability_zone_id"] = "use1-az4"

    with living(tmp_path, monkeypatch) as life:
        first = life.there.client("fsx").describe_file_systems()["FileSystems"]
        ran, person = life.change(moved)
        assert ran == [("small/platform", "--exclusively"), ("small/*",)]
        step, _ = person.shown[0].steps
        assert (bool(step.between), step.needs_a_person) == (True, True)
        assert step.does == ("small-platform: 1 deleted.",)
        # the old one is retained
        assert len(life.there.client("fsx").describe_file_systems()["FileSystems"]) == len(first) + 1


@pytest.mark.examples
@pytest.mark.timeout(600)
def test_a_claim_that_pods_hold_stops_the_way_before_its_file_system_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with living(tmp_path, monkeypatch) as life:
        life.data["storage"]["lustre"][1]["availability_zone_id"] = "use1-az4"
        file, assembly = tmp_path / "moved.yaml", tmp_path / "moved"
        file.write_text(yaml.safe_dump(life.data, sort_keys=False), encoding="utf-8")
        life.cdk.synth(file, assembly)
        (claim,) = (
            each.logical_id
            for each in read_assembly(assembly, "small").of_type("Custom::AWSCDK-EKS-KubernetesResource")
            if each.stack == "small-platform" and "farClaim" in each.logical_id
        )
        # the function that runs kubectl gives up each time, and CloudFormation after the third one
        fault = {"stack": "small-platform", "logical_id": claim, "when": "delete", "times": 3}
        life.there.address.control("faults", [fault], timeout_s=60)
        person, cdk = Person(), WithPlaceholder(life.cdk, "small")
        assert not life.deployment(assembly, person, cdk).run()
        assert cdk.ran == [("small/platform", "--exclusively")]
        assert life.stacks()["small-platform"] == "UPDATE_COMPLETE"
        assert len(life.there.client("fsx").describe_file_systems()["FileSystems"]) == 2
        # with the ID that says which of them it is
        left = (
            rf"small-platform: {claim} \(Custom::AWSCDK-EKS-KubernetesResource [0-9a-f-]{{36}}\) could not be deleted: "
        )
        assert re.match(left, person.told[-2])
        # the next one asks for it before it goes on, and a pipeline does not
        person = Person(is_there=False)
        assert not life.deployment(assembly, person, cdk).run()
        (step,) = person.shown[0].steps
        (asked,) = step.first
        assert asked.startswith(
            "Delete PersistentVolume default.far and PersistentVolumeClaim default/far with kubectl"
        )


@pytest.mark.examples
@pytest.mark.timeout(600)
def test_a_group_that_moves_under_its_name_is_deleted_before_it_is_created_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def moved(data: dict[str, Any]) -> None:
        data["hyperpod"]["instance_groups"][1]["availability_zone_id"] = "use1-az4"

    with living(tmp_path, monkeypatch) as life:
        ran, person = life.change(moved)
        assert ran == [("small/hyperpod", "--exclusively"), ("small/*",)]
        step, _ = person.shown[0].steps
        assert (bool(step.between), step.needs_a_person) == (True, True)


@pytest.mark.examples
@pytest.mark.timeout(600)
def test_a_group_in_a_new_zone_exists_next_to_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def smaller(data: dict[str, Any]) -> None:
        del data["storage"], data["network"]["availability_zones"]["use1-az6"]
        data["hyperpod"]["instance_groups"][1]["availability_zone_id"] = "use1-az5"

    def moved(data: dict[str, Any]) -> None:
        data["network"]["availability_zones"]["use1-az6"] = {}
        data["hyperpod"]["instance_groups"][1].update(name="farther", availability_zone_id="use1-az6")

    small = yaml.safe_load(SMALL)
    smaller(small)
    with living(tmp_path, monkeypatch, text=yaml.safe_dump(small, sort_keys=False)) as life:
        ran, person = life.change(moved)
        assert ran == [("small/foundation", "small/hyperpod", "--exclusively"), ("small/*",)]
        assert [bool(each.between) for each in person.shown[0].steps] == [True, False]
        found = life.there.client("sagemaker").describe_cluster(ClusterName="small")["InstanceGroups"]
        assert sorted(each["InstanceGroupName"] for each in found) == ["farther", "system"]


@pytest.mark.examples
@pytest.mark.timeout(600)
def test_karpenter_goes_after_its_pools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = with_callers((PROJECT / "examples" / "karpenter-spot.yaml").read_text(encoding="utf-8"))
    with living(tmp_path, monkeypatch, text=text) as life:
        ran, person = life.change(karpenter_off)
        assert ran == [("spot/foundation", "spot/platform", "--exclusively"), ("spot/*",)]
        why = person.shown[0].steps[0].why
        assert any("which works only while spot-hyperpod runs Karpenter" in each for each in why)
        cluster = life.there.client("sagemaker").describe_cluster(ClusterName="spot")
        assert cluster.get("AutoScaling", {}).get("Mode") != "Enable"


@pytest.mark.examples
@pytest.mark.parametrize(
    ("zone", "works"),
    [
        ("use1-az5", "Keep the settings that replace Cluster in the file as they are deployed"),
        ("use1-az4", "Keep it in the file as it is deployed"),
    ],
)
def test_one_of_the_first_two_zones_never_goes(tmp_path: Path, zone: str, works: str) -> None:
    def without(data: dict[str, Any], gone: str) -> Assembly:
        data = copy.deepcopy(data)
        data["network"]["availability_zones"].pop(gone, None)
        for each in (*data["hyperpod"]["instance_groups"], *data["storage"]["lustre"]):
            if each["availability_zone_id"] == gone:
                each.update(name=f"{each['name']}-2", availability_zone_id="use1-az6")
        file, folder = tmp_path / f"{gone}.yaml", tmp_path / gone
        file.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
        InProcessCdk.synth(file, folder)
        return read_assembly(folder, data["name"])

    small = yaml.safe_load(SMALL)
    base, head = without(small, "none"), without(small, zone)
    found = plan(base, head, base_side=Side(label="deployed"), head_side=Side(label="working tree"))
    assert found.steps == ()
    assert any(works in each.what_works for each in found.refusals), found.refusals


PAGE = """
name: small
account: "111122223333"
region: us-east-1
eks: {admin_role_arns: ["arn:aws:iam::111122223333:role/admin"], oidc_provider: true}
network:
  vpc_cidr: 10.192.0.0/16
  availability_zones: {use1-az5: {}, use1-az4: {}}
hyperpod:
  tiered_checkpointing: {memory_percent: 20}
  instance_groups:
    - {name: system, instance_type: ml.m5.4xlarge, count: 2, availability_zone_id: use1-az4}
    - name: gpu
      instance_type: ml.g6e.12xlarge
      count: 1
      availability_zone_id: use1-az5
      capacity: on_demand
      image: {release_version: 2.0.2}
operators: {inference: {enabled: true}}
storage:
  lustre:
    - {name: near, availability_zone_id: use1-az4, capacity_gib: 1200, claim: {name: near, namespaces: [default]}}
  s3:
    - {name: corpus, bucket: my-corpus, claim: {name: corpus, namespaces: [default]}}
"""


def _set(path: str, value: Any) -> Edit:
    """Return the edit that writes a value at a path, ``None`` that takes it out."""

    def edit(data: dict[str, Any]) -> None:
        *way, last = (int(each) if each.isdigit() else each for each in path.split("."))
        place: Any = data
        for each in way:
            place = place.setdefault(each, {}) if isinstance(place, dict) else place[each]
        if value is None:
            del place[last]
        else:
            place[last] = value

    return edit


def _edited(folder: Path, *edits: Edit) -> Assembly:
    data = yaml.safe_load(PAGE)
    for edit in edits:
        edit(data)
    file, assembly_ = folder / "page.yaml", folder / "page"
    file.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
    InProcessCdk.synth(file, assembly_)
    return read_assembly(assembly_, data["name"])


@pytest.fixture(name="page", scope="module")
def _page(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    return _edited(tmp_path_factory.mktemp("page"))


_ALL = ("small/*",)
_CLAIMS = ("small/platform", "--exclusively")
_GPU = "hyperpod.instance_groups.1"


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        # Which stacks, in which order: software updates need a person, a schedule does not
        pytest.param([_set(f"{_GPU}.image.release_version", "2.1.0")], [(_ALL, True)], id="release"),
        pytest.param([_set(f"{_GPU}.image", {"ami_id": "ami-0123456789abcdef0"})], [(_ALL, True)], id="AMI"),
        pytest.param([_set(f"{_GPU}.patching", {"schedule": "cron(0 2 ? * SAT *)"})], [(_ALL, False)], id="patching"),
        # Change the target of a claim
        pytest.param([_set("storage.s3.0.bucket", "another")], [(_CLAIMS, True), (_ALL, False)], id="bucket"),
        pytest.param([_set("storage.s3.0.read_only", True)], [(_CLAIMS, True), (_ALL, False)], id="read only"),  # noqa: FBT003 - a value of YAML
        pytest.param([_set("storage.s3.0.claim.name", "other")], [(_ALL, True)], id="claim's name"),
        # Remove a file system: another name of it takes one more step, since another stack uses it
        pytest.param([_set("storage.lustre.0.name", "other")], [(_CLAIMS, True), (_ALL, False)], id="file system"),
        # Enable a feature again: the opposite changes need one deployment
        pytest.param(
            [_set("hyperpod.lifecycle.existing_bucket", {"name": "sagemaker-mine"})], [(_ALL, False)], id="own bucket"
        ),
        pytest.param([_set("operators", None), _set("eks.oidc_provider", None)], [(_ALL, True)], id="inference out"),
        # Replace an instance group
        pytest.param(
            [_set(f"{_GPU}.name", "other")], [(("small/hyperpod", "--exclusively"), False), (_ALL, True)], id="renamed"
        ),
        pytest.param(
            [_set(f"{_GPU}.availability_zone_id", "use1-az4")],
            [(("small/hyperpod", "--exclusively"), True), (_ALL, False)],
            id="moved under its name",
        ),
        # Run without nodes for a while
        pytest.param([_set(f"{_GPU}.count", 0)], [(_ALL, True)], id="no nodes"),
        pytest.param([_set(f"{_GPU}.count", 3)], [(_ALL, False)], id="more nodes"),
        # Disable tiered checkpointing
        pytest.param([_set("hyperpod.tiered_checkpointing", {"enabled": False})], [(_ALL, False)], id="tiered off"),
    ],
)
@pytest.mark.examples
def test_what_the_page_says_of_a_change(
    edits: list[Edit], said: list[tuple[tuple[str, ...], bool]], page: Assembly, tmp_path: Path
) -> None:
    head = _edited(tmp_path, *edits)
    found = plan(page, head, base_side=Side(label="deployed"), head_side=Side(label="working tree"))
    assert found.refusals == ()
    steps = [
        ((*each.selected, *(["--exclusively"] if each.exclusively else [])), each.needs_a_person)
        for each in found.steps
    ]
    assert steps == said


TAKEN_BACK = """
name: small
account: "111122223333"
region: us-east-1
eks:
  kubernetes_version: "1.33"
  admin_role_arns: ["arn:aws:iam::111122223333:role/admin"]
  public_access_cidrs: [0.0.0.0/0]
network:
  vpc_cidr: 10.192.0.0/16
  availability_zones: {use1-az5: {}, use1-az4: {}}
hyperpod:
  instance_groups:
    - {name: system, instance_type: ml.m5.2xlarge, count: 1, availability_zone_id: use1-az4}
"""


@pytest.mark.examples
@pytest.mark.timeout(900)
def test_a_kubernetes_version_that_no_rollback_brings_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with living(tmp_path, monkeypatch, text=TAKEN_BACK) as life:
        life.data["eks"]["kubernetes_version"] = "1.34"
        file, assembly = tmp_path / "newer.yaml", tmp_path / "newer"
        file.write_text(yaml.safe_dump(life.data, sort_keys=False), encoding="utf-8")
        life.cdk.synth(file, assembly)
        (kubectl,) = (
            each.logical_id
            for each in read_assembly(assembly, "small").of_type("AWS::Lambda::Function")
            if "KubectlProviderHandler" in each.logical_id
        )
        # it is changed once the control plane has its new version
        fault = {"stack": "small-foundation", "logical_id": kubectl, "when": "before_update"}
        life.there.address.control("faults", [fault], timeout_s=60)
        assert not life.deployment(assembly, Person(), WithPlaceholder(life.cdk, "small")).run()
        assert life.stacks()["small-foundation"] == "UPDATE_ROLLBACK_FAILED"
        # no deployment is begun before it is recovered
        assert not life.deployment(assembly, Person(), WithPlaceholder(life.cdk, "small")).run()

        shown, person = life.recover(assembly)
        (stuck,) = shown[0].stacks
        failed = "could not be changed: Unsupported Kubernetes minor version update from 1.34 to 1.33."
        assert stuck.held == (f"ControlPlane/Cluster (AWS::EKS::Cluster) {failed}",)
        # the layer of kubectl that the update made holds nothing
        assert stuck.loses == ()
        (cluster,) = (each.logical_id for each in read_assembly(assembly, "small").of_type("AWS::EKS::Cluster"))
        back = "aws eks update-cluster-version --name small-eks --kubernetes-version 1.33"
        assert person.told == [
            f"small-foundation: {cluster} (AWS::EKS::Cluster) {failed}",
            (
                f"  if skipped, {cluster} remains as it is and differs from the template: correct it before the next"
                " deployment, which may otherwise fail."
            ),
            (
                "  small-eks runs Kubernetes 1.34, and its template says 1.33: within 7 days of the upgrade,"
                f" '{back}' rolls it back. Do that before the next deployment, which may otherwise be refused, also"
                " with 1.34 in the file."
            ),
            "small-foundation: UPDATE_ROLLBACK_COMPLETE",
        ]
        assert person.typed == ["small"]

        # what it keeps is the version that it has; with what was said done, deploying again is enough
        eks = life.there.client("eks")
        assert eks.describe_cluster(name="small-eks")["cluster"]["version"] == "1.34"
        assert not life.deployment(assembly, Person(), WithPlaceholder(life.cdk, "small")).run()
        eks.update_cluster_version(name="small-eks", version="1.33")
        while eks.describe_cluster(name="small-eks")["cluster"]["status"] != "ACTIVE":
            time.sleep(0.05)
        life.change()
        assert eks.describe_cluster(name="small-eks")["cluster"]["version"] == "1.34"


@pytest.mark.examples
@pytest.mark.timeout(900)
def test_the_unmodified_cdk_cli_takes_a_file_system_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with living(tmp_path, monkeypatch, is_real=True) as life:
        ran, _ = life.change(lambda data: data["storage"]["lustre"].pop())
        assert ran[-1] == ("small/*",)
        assert ("--exclusively" in ran[0], "small/platform" in ran[0], len(ran)) == (True, True, 2)
        assert set(life.stacks().values()) <= {"CREATE_COMPLETE", "UPDATE_COMPLETE"}


def test_every_edit_changes_the_file() -> None:
    for edit in (logs_out, node_volumes_out, zone_out, last_file_system_out):
        data = yaml.safe_load(SMALL)
        before = copy.deepcopy(data)
        edit(data)
        assert data != before
