"""Existing clusters: AWS's data about them is in the file, and missing data is reported, never guessed."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from hyperpod_cdk import cli
from hyperpod_cdk._cli.review import Access
from hyperpod_cdk.checks.aws_calls import configured_region
from hyperpod_cdk.checks.policy import VERBS
from hyperpod_cdk.config import load_environment
from hyperpod_cdk.config.documents import DocumentError
from hyperpod_cdk.importing.asking import Asking
from hyperpod_cdk.importing.document import Log
from hyperpod_cdk.importing.draft import Draft, Known
from hyperpod_cdk.importing.live_teams import read_teams
from hyperpod_cdk.importing.model import Imported
from hyperpod_cdk.importing.run import Place, imported_living
from tests.importing import standing_cluster as there
from tests.support.answers import answered
from tests.support.assembly import PROJECT
from tests.support.scripted_aws import ACCOUNT, REGION, Fails

SAYS: dict[str, Any] = yaml.load((Path(__file__).parent / "live_says.yaml").read_text("utf-8"), yaml.CSafeLoader)


def read(tmp_path: Path, **more: Any) -> tuple[Imported, str]:
    aws, _ = there.asked(**more)
    to = Place(target=tmp_path / "lab.yaml", root=PROJECT, schema=None)
    return imported_living(aws, "ml-cluster", Known(name="lab"), to=to)


def said(found: Imported) -> list[str]:
    return [f"{each.weight} {each.render()}" for each in found.notes]


def described(**more: Any) -> dict[str, Any]:
    return {**there.cluster(), **more}


def group(index: int, **more: Any) -> dict[str, Any]:
    cluster = there.cluster()
    cluster["InstanceGroups"][index] |= more
    return cluster


def test_everything_is_answered(tmp_path: Path) -> None:
    found, text = read(tmp_path)
    assert text == SAYS["file"]
    assert said(found) == SAYS["notes"]
    # which pods mount the file system only Kubernetes knows
    assert found.passed is False
    with_claim = text.replace(
        "      capacity_gib: 4800\n", "      capacity_gib: 4800\n    claim: {namespaces: [default]}\n"
    )
    loaded = load_environment(tmp_path / "lab.yaml", text=with_claim)
    assert [each.name for each in loaded.environment.hyperpod.instance_groups] == ["h100", "system"]
    assert loaded.environment.account == ACCOUNT


NO_STORAGE: dict[str, Any] = {"fsx_DescribeFileSystems": {"FileSystems": []}}
PLANTS: dict[str, dict[str, Any]] = {
    "nodes in two zones": {
        "sagemaker_DescribeClusterNode": lambda params: {
            "NodeDetails": {
                "Placement": {"AvailabilityZoneId": {"i-1": "use1-az4", "i-2": "use1-az5"}[params["NodeId"]]}
            }
        }
    },
    "a node that is unknown": {
        "sagemaker_DescribeClusterNode": lambda params: (
            there.DENIED
            if params["NodeId"] == "i-2"
            else {"NodeDetails": {"Placement": {"AvailabilityZoneId": "use1-az4"}}}
        )
    },
    "a plan that ended": {
        "sagemaker_DescribeTrainingPlan": {
            "TrainingPlanArn": there.PLAN_ARN,
            "TrainingPlanName": "h100-april",
            "Status": "Expired",
            "EndTime": datetime(2026, 4, 30, 11, 30, tzinfo=UTC),
        }
    },
    "a plan that is gone": {"sagemaker_DescribeTrainingPlan": Fails("ResourceNotFound", "no such plan")},
    "Karpenter": {"sagemaker_DescribeCluster": described(AutoScaling={"Mode": "Enable", "Status": "InService"})},
    "no scripts": {"s3_ListObjectsV2": {}},
    "a bucket that is gone": {"s3_ListObjectsV2": Fails("NoSuchBucket", "gone", 404)},
    "a subnet that is gone": {"sagemaker_DescribeCluster": group(0, OverrideVpcConfig={"Subnets": ["subnet-0dead"]})},
    "a map of the cluster": {
        "eks_DescribeCluster": {"cluster": {**there.answers()["eks:DescribeCluster"]["cluster"], "accessConfig": {}}}
    },
    "no provider": {"iam_GetOpenIDConnectProvider": Fails("NoSuchEntity", "none", 404)},
    "no governance": {
        "sagemaker_ListClusterSchedulerConfigs": {"ClusterSchedulerConfigSummaries": []},
        "sagemaker_ListComputeQuotas": {"ComputeQuotaSummaries": []},
    },
    "a file system elsewhere": {
        "fsx_DescribeFileSystems": {"FileSystems": [there._lustre("fs-0c3d4e5f678901a2b", there.VPC, "subnet-0c")]}
    },
    "while it is updated": {"sagemaker_DescribeCluster": described(ClusterStatus="Updating")},
    "an answer that lost its middle": {"eks_DescribeCluster": {"cluster": {"name": there.EKS}}},
}


@pytest.mark.parametrize("name", PLANTS)
def test_what_is_reported_about_another_cluster(name: str, tmp_path: Path) -> None:
    """Against the cluster above: what is said more, and what less."""
    found, text = read(tmp_path, **{**NO_STORAGE, **PLANTS[name]})
    plain, plain_text = read(tmp_path, **NO_STORAGE)
    before, after = said(plain), said(found)
    changes = [f"+ {each}" for each in after if each not in before] + [
        f"- {each}" for each in before if each not in after
    ]
    gone = [each for each in plain_text.splitlines() if each not in text.splitlines()]
    assert changes == SAYS["other clusters"][name]["said"]
    assert gone == SAYS["other clusters"][name].get("gone", [])


READS = sorted(set(there.answers()) - {"sts:GetCallerIdentity", "sagemaker:DescribeCluster"})


@pytest.mark.parametrize("error", ["AccessDeniedException", "ThrottlingException", "InternalFailure"])
@pytest.mark.parametrize("call", READS)
def test_what_is_not_answered_is_skipped(call: str, error: str, tmp_path: Path) -> None:
    """Whatever call fails: the file has less and never something else, and its head and the report say so."""
    found, text = read(tmp_path, **{**NO_STORAGE, call.replace(":", "_"): Fails(error, "no", 403)})
    skipped = [each for each in found.notes if each.weight == "skipped"]
    assert skipped
    action = {"s3:ListObjectsV2": "s3:ListBucket"}.get(call, call)
    assert all(action in each.message or call in each.message for each in skipped)
    assert "What AWS did not answer" in text
    assert found.passed is not True
    _, whole = read(tmp_path, **NO_STORAGE)
    (lines, others) = (
        {line.strip() for line in each.splitlines() if not line.startswith("#")} for each in (text, whole)
    )
    assert lines - others <= {"installed_addons: []", "task_governance:", "teams: []"}


_NODE_THERE = {"NodeDetails": {"Placement": {"AvailabilityZoneId": "use1-az4"}}}
GONE: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "the policy": ({"sagemaker_DescribeClusterSchedulerConfig": Fails("ResourceNotFound", "none")}, ("ordering:",)),
    "a quota": ({"sagemaker_DescribeComputeQuota": Fails("ValidationException", "not found")}, ("name: research",)),
    "an add-on": (
        {
            "eks_DescribeAddon": lambda params: (
                Fails("ResourceNotFoundException", "none", 404)
                if params["addonName"] == "cert-manager"
                else {"addon": {"addonName": params["addonName"], "addonVersion": "v1.2.0-eksbuild.1"}}
            )
        },
        ("cert-manager",),
    ),
    "a node": (
        {
            "sagemaker_DescribeClusterNode": lambda params: (
                Fails("ResourceNotFound", "none") if params["NodeId"] == "i-2" else _NODE_THERE
            )
        },
        (),
    ),
}


@pytest.mark.parametrize("name", GONE)
def test_what_goes_after_it_was_listed_is_not_there(name: str, tmp_path: Path) -> None:
    """The file is that of a cluster that has it no more, and nothing is said to be unread."""
    answers, lacks = GONE[name]
    found, text = read(tmp_path, **{**NO_STORAGE, **answers})
    assert [each.render() for each in found.notes if each.weight == "skipped"] == []
    _, whole = read(tmp_path, **NO_STORAGE)
    assert all(each in whole and each not in text for each in lacks)
    assert ("zone" in text) == ("zone" in whole)


def test_nodes_of_many_groups_are_read_side_by_side(tmp_path: Path) -> None:
    """Each page of a group waits for the one before, and no group for another."""

    def depth(number: int) -> int:
        cluster = there.cluster()
        names = [f"g{each}" for each in range(number)]
        free = {key: value for key, value in cluster["InstanceGroups"][1].items() if key != "OverrideVpcConfig"}
        cluster["InstanceGroups"] = [{**free, "InstanceGroupName": name} for name in names]

        def pages(params: Any) -> dict[str, Any]:
            name, page = params["InstanceGroupNameContains"], int(params.get("NextToken", 0))
            more = {"NextToken": str(page + 1)} if page < 3 else {}
            node = {"InstanceGroupName": name, "InstanceId": f"i-{name}-{page}", "InstanceType": "ml.m5.2xlarge"}
            row = {**node, "LaunchTime": datetime(2026, 11, 1, tzinfo=UTC), "InstanceStatus": {"Status": "Running"}}
            return {"ClusterNodeSummaries": [row], **more}

        answers = {"sagemaker_DescribeCluster": cluster, "sagemaker_ListClusterNodes": pages}
        aws, _ = there.asked(**NO_STORAGE, **answers, sagemaker_DescribeClusterNode=_NODE_THERE)
        to = Place(target=tmp_path / "lab.yaml", root=PROJECT, schema=None)
        _, text = imported_living(aws, "ml-cluster", Known(name="lab"), to=to)
        assert text.count("availability_zone_id: use1-az4") == number
        return aws.depth

    # a node of each group is asked about once the group was read
    assert depth(4) - depth(1) <= 3


def test_half_an_account(tmp_path: Path) -> None:
    """Nothing but the cluster itself may be read: every gap is named, nothing is invented, and it never is clean."""
    denied = {call.replace(":", "_"): there.DENIED for call in READS}
    found, text = read(tmp_path, **denied)
    assert found.passed is False
    assert [each.render() for each in found.notes if each.weight == "skipped"] == SAYS["half an account"]
    for guess in ("vpc-", "use1-az", "1.34", there.OF_EKS, "task_governance:", "storage:"):
        assert guess not in "\n".join(line for line in text.splitlines() if not line.startswith("#"))


@pytest.mark.parametrize(
    ("call", "rows", "said_of"),
    [
        ("sagemaker_ListComputeQuotas", "ComputeQuotaSummaries", "the compute quotas"),
        ("sagemaker_ListClusterSchedulerConfigs", "ClusterSchedulerConfigSummaries", "the cluster policy"),
    ],
)
def test_a_row_without_its_id_is_skipped(call: str, rows: str, said_of: str, tmp_path: Path) -> None:
    found, _ = read(tmp_path, **{**NO_STORAGE, call: {rows: [{"Name": "lost"}]}})
    (gap,) = [each.message for each in found.notes if each.weight == "skipped"]
    assert gap.startswith(f"{said_of}: the answer about {said_of} cannot be read: ")
    assert found.passed is not True


def test_a_cluster_without_an_arn_has_no_provider_that_is_known(tmp_path: Path) -> None:
    eks = {**there.answers()["eks:DescribeCluster"]["cluster"], "arn": ""}
    found, _ = read(tmp_path, **NO_STORAGE, eks_DescribeCluster={"cluster": eks})
    gaps = [each.render() for each in found.notes if each.weight == "skipped"]
    assert any(each.endswith("EKS does not show the ARN of the cluster") for each in gaps), gaps
    assert found.passed is not True


def test_a_cluster_that_does_not_state_its_name_has_the_one_it_was_asked_by(tmp_path: Path) -> None:
    lost = described()
    del lost["ClusterName"]
    assert read(tmp_path, **NO_STORAGE, sagemaker_DescribeCluster=lost)[1] == read(tmp_path, **NO_STORAGE)[1]


BAD: dict[str, dict[str, Any]] = {
    "on Slurm": {"sagemaker_DescribeCluster": described(Orchestrator={"Slurm": {}})},
    "without an orchestrator": {"sagemaker_DescribeCluster": described(Orchestrator=None)},
    "denied": {"sagemaker_DescribeCluster": there.DENIED},
    "throttled": {"sagemaker_DescribeCluster": Fails("ThrottlingException", "slow down")},
    "not there": {
        "sagemaker_DescribeCluster": Fails("ResourceNotFound", "Cluster not found"),
        "sagemaker_ListClusters": {"ClusterSummaries": [{"ClusterName": "ml-clusters"}, {"ClusterName": "b"}]},
    },
    "not there nor another": {
        "sagemaker_DescribeCluster": Fails("ResourceNotFound", "Cluster not found"),
        "sagemaker_ListClusters": {"ClusterSummaries": []},
    },
    "not there and no list": {
        "sagemaker_DescribeCluster": Fails("ResourceNotFound", "Cluster not found"),
        "sagemaker_ListClusters": there.DENIED,
    },
}


@pytest.mark.parametrize("name", BAD)
def test_one_line_for_what_cannot_be_imported(name: str, tmp_path: Path) -> None:
    with pytest.raises(DocumentError) as refused:
        read(tmp_path, **BAD[name])
    assert [each.render() for each in refused.value.findings] == [SAYS["bad"][name]]


def test_only_what_the_policy_of_the_verb_allows_is_asked(tmp_path: Path) -> None:
    aws, scripted = there.asked()
    to = Place(target=tmp_path / "lab.yaml", root=PROJECT, schema=None)
    imported_living(aws, "ml-cluster", Known(name="lab"), to=to)
    (verb,) = (each for each in VERBS if each.name == "import")
    actions = {"s3:ListObjectsV2": "s3:ListBucket"}
    asked = {actions.get(name, name) for name, _ in scripted.asked}
    assert asked <= set(verb.actions)
    assert set(verb.actions) - asked == {"sagemaker:ListClusters"}
    assert all(each.partition(":")[2].startswith(("Describe", "Get", "List")) for each in verb.actions)


def run(tmp_path: Path, *words: str, **more: Any) -> Result:
    (tmp_path / "environments").mkdir(exist_ok=True)

    def opening(region: str, account: str) -> Any:
        assert (region, account) == ("us-east-1", "")
        return there.asked(**more)[0]

    line = ["import", "--project", str(tmp_path), *words]
    return CliRunner(env={"AWS_REGION": "us-east-1"}).invoke(
        cli.app, line, prog_name="hyperpod-cdk", obj=Access(open=opening), catch_exceptions=False
    )


NAMED = ("--cluster", "ml-cluster", "--name", "lab")


@pytest.mark.parametrize(
    ("more", "words", "passed", "code"),
    [
        ({}, (), True, 0),
        ({"s3_ListObjectsV2": there.DENIED}, (), None, 0),
        ({"s3_ListObjectsV2": there.DENIED}, ("--strict",), None, 1),
        ({"eks_DescribeCluster": there.DENIED}, (), False, 1),
    ],
)
def test_exit_codes(more: dict[str, Any], words: tuple[str, ...], passed: object, code: int, tmp_path: Path) -> None:
    done = run(tmp_path, *NAMED, "--format", "json", *words, **NO_STORAGE, **more)
    found = answered("import", done.stdout)
    assert (found["passed"], done.exit_code, found["kind"]) == (passed, code, "living")
    assert (tmp_path / "environments" / "lab.yaml").is_file()


def test_what_was_imported_already_stays(tmp_path: Path) -> None:
    assert run(tmp_path, *NAMED, **NO_STORAGE).exit_code == 0
    before = (tmp_path / "environments" / "lab.yaml").read_bytes()
    again = run(tmp_path, *NAMED, **NO_STORAGE)
    assert (again.exit_code, again.stderr.splitlines()[0].partition("environments/")[2]) == (
        2,
        "lab.yaml exists and is never overwritten; remove it to import again, choose another name or edit it",
    )
    assert (tmp_path / "environments" / "lab.yaml").read_bytes() == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--name", "lab"), "specify either SOURCE, a file, or --cluster, the name of an existing cluster\n"),
        ((*NAMED, "cluster.json"), "specify either SOURCE, a file, or --cluster, the name of an existing cluster\n"),
        ((*NAMED, "--from", "setup"), "--from is the type of a file; omit it with --cluster\n"),
    ],
)
def test_words_that_do_not_go_together(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = run(tmp_path, *words)
    assert (done.exit_code, done.stdout, done.stderr) == (2, "", said)


def test_nowhere_to_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    assert configured_region() is None
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-2")
    assert configured_region() == "us-west-2"
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    assert configured_region() == "us-east-1"
    monkeypatch.delenv("AWS_REGION")
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    assert configured_region() is None
    done = CliRunner().invoke(cli.app, ["import", *NAMED, "--project", str(tmp_path)], prog_name="hyperpod-cdk")
    assert (done.exit_code, done.stderr) == (
        2,
        "--cluster needs a Region; specify --region, set AWS_REGION, or set a Region in the AWS profile\n",
    )


def taken_over(tmp_path: Path, cluster: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the groups of the file of a takeover by name, and what is said of them."""
    aws, _ = there.asked(sagemaker_DescribeCluster=cluster)
    to = Place(target=tmp_path / "lab.yaml", root=PROJECT, schema=None)
    found, text = imported_living(aws, "ml-cluster", Known(name="lab", is_takeover=True), to=to)
    notes = [each.message for each in found.notes if each.path.startswith("hyperpod.")]
    hyperpod = yaml.safe_load(text)["hyperpod"]
    return {**hyperpod, "groups": {each["name"]: each for each in hyperpod["instance_groups"]}}, notes


def test_a_takeover_keeps_what_never_changes_of_a_group(tmp_path: Path) -> None:
    """The role of most groups becomes the environment's; a tie is decided by name."""
    cluster = group(0, ExecutionRole="arn:aws:iam::111122223333:role/zeta")
    hyperpod, notes = taken_over(tmp_path, cluster)
    assert hyperpod["groups"]["h100"]["existing"] == {"execution_role_arn": "arn:aws:iam::111122223333:role/zeta"}
    assert hyperpod["groups"]["system"]["existing"] == {"cluster_network": True}
    assert hyperpod["groups"]["system"]["availability_zone_id"] == "use1-az4"
    assert "existing_karpenter_pools" not in hyperpod
    assert [each for each in notes if "no subnets" in each or "stays yours" in each or "takes over arn" in each] == [
        (
            "system has no subnets of its own, which HyperPod never changes: new nodes can come up in any of use1-az5,"
            " use1-az4. EFA traffic and volumes do not cross zones"
        ),
        (
            f"the environment takes over {there.ROLE_ARN}: a deployment replaces its policies by those of its nodes;"
            " other permissions are lost"
        ),
        (
            "arn:aws:iam::111122223333:role/zeta of h100 stays yours, and no stack owns it: a deployment attaches the"
            " policy of nodes to it, and changes nothing else of it"
        ),
    ]
    assert not any("is not used" in each or "pinned to no zone" in each for each in notes)


def test_a_takeover_of_a_group_without_nodes_counts_it_in_the_first_zone(tmp_path: Path) -> None:
    hyperpod, _ = taken_over(tmp_path, group(1, TargetCount=0, CurrentCount=0, InstanceGroupName="empty"))
    assert hyperpod["groups"]["empty"]["existing"] == {"cluster_network": True}
    assert hyperpod["groups"]["empty"]["availability_zone_id"] in there.SUBNETS.values()


def test_a_takeover_names_what_comes_beside_the_cluster(tmp_path: Path) -> None:
    """Policy and quota under their names; cert-manager alone has settings of its own."""
    known = Known(name="lab", is_takeover=True)

    def add_on(params: dict[str, Any]) -> dict[str, Any]:
        own = {"configurationValues": "{}"} if params["addonName"] == "cert-manager" else {}
        return {"addon": {"addonName": params["addonName"], "addonVersion": "v1.2.0-eksbuild.1", **own}}

    aws, _ = there.asked(sagemaker_DescribeCluster=group(1), eks_DescribeAddon=add_on)
    to = Place(target=tmp_path / "lab.yaml", root=PROJECT, schema=None)
    found, text = imported_living(aws, "ml-cluster", known, to=to)
    data = yaml.safe_load(text)
    assert data["eks"]["existing"]["installed_addons"] == ["cert-manager"]
    assert data["task_governance"]["policy_name"] == "policy"
    (team,) = data["task_governance"]["teams"]
    assert (team["quota_name"], team["pod_security"]) == ("research-quota", "privileged")
    said = [f"{each.weight} {each.path}: {each.message}" for each in found.notes]
    assert [each for each in said if "installed_addons" in each or "task_governance" in each or "admin_" in each] == [
        (
            f"lost eks.admin_role_arns: access entries of {there.EKS} stay, and the file names none of them:"
            f" {there.ADMIN}; the takeover imports the entries of roles that you write here"
        ),
        (
            "lost task_governance.teams: roles of the teams' members: their access entries are on the EKS cluster and"
            " stay there"
        ),
        (
            "unsafe task_governance: CloudFormation's guide does not list AWS::SageMaker::ClusterSchedulerConfig"
            " and AWS::SageMaker::ComputeQuota among the types that it imports, and their schemas have all"
            " handlers that an import needs (unsure): the takeover tries it after the cluster. If CloudFormation"
            " refuses, they are unchanged; then remove this section"
        ),
        (
            "unsafe task_governance.teams: labels of the teams' namespaces are in Kubernetes, which was not read:"
            " pod_security: privileged limits no pod. If a namespace enforces another level, write that one,"
            " because a deployment sets it"
        ),
        (
            "changed eks.existing.installed_addons: the environment takes over"
            " amazon-sagemaker-hyperpod-training-operator unchanged, and 'hyperpod-cdk destroy' then deletes"
            " them: add those that you want to keep to it"
        ),
        "lost eks.existing.installed_addons: cert-manager stays yours: it has configuration values of its own",
    ]


@pytest.mark.parametrize(
    ("region", "more", "said"),
    [
        (
            "us-west-2",
            {},
            (
                "lost cluster policy and quotas stay as they are and belong to no stack: in us-west-2 a custom"
                " resource replaces AWS::SageMaker::ClusterSchedulerConfig, and CloudFormation imports no custom"
                " resource"
            ),
        ),
        (
            "us-east-1",
            {"sagemaker_ListClusterSchedulerConfigs": {"ClusterSchedulerConfigSummaries": []}},
            (
                "changed the cluster has no policy: a deployment creates one that admits tasks in their order and"
                " distributes idle compute by fair-share weight"
            ),
        ),
        (
            "us-east-1",
            {},
            (
                "changed with Karpenter, a deployment gives each team's namespace a ResourceQuota with what the"
                " team owns and can borrow: Kubernetes refuses pods above it. resource_quota sets other limits"
            ),
        ),
    ],
)
def test_a_takeover_says_what_becomes_of_teams(region: str, more: dict[str, Any], said: str) -> None:
    log = Log()
    draft = Draft(Known(name="lab", is_takeover=True), log, hyperpod={"autoscaling": "karpenter"})
    aws, _ = there.asked(**more)
    read_teams(Asking(aws=aws, log=log), draft, there.CLUSTER_ARN.replace(REGION, region))
    assert said in [f"{each.weight} {each.message}" for each in log.notes]
    assert ("task_governance" in draft.sections) is (region == "us-east-1")


def test_a_takeover_with_karpenter_leaves_its_pools(tmp_path: Path) -> None:
    scaling = {"Mode": "Enable", "AutoScalerType": "Karpenter", "Status": "InService"}
    cluster = described(AutoScaling=scaling, ClusterRole="arn:aws:iam::111122223333:role/karpenter")
    hyperpod, notes = taken_over(tmp_path, cluster)
    assert (hyperpod["autoscaling"], hyperpod["existing_karpenter_pools"]) == ("karpenter", True)
    assert any(each.startswith("which groups Karpenter scales is in Kubernetes") for each in notes)
    assert not any("is not used" in each for each in notes)


def _quota(params: Any) -> dict[str, Any]:
    """Return what DescribeComputeQuota says."""
    found: Any = there.answers()["sagemaker:DescribeComputeQuota"]
    answer: dict[str, Any] = found if isinstance(found, dict) else found(params)
    return answer


@pytest.mark.parametrize("is_takeover", [True, False])
@pytest.mark.parametrize(
    "half",
    [
        {"sagemaker_ListTags": {"Tags": [None]}},
        {"eks_DescribeAddon": {"addon": {}}},
        {"sagemaker_DescribeComputeQuota": {"ComputeQuotaArn": "arn"}},
        {"ec2_DescribeSubnets": {"Subnets": [{"SubnetId": None, "AvailabilityZoneId": None}]}},
        {"eks_DescribeCluster": {"cluster": {"name": there.EKS, "arn": None}}},
        {"eks_DescribeCluster": {"cluster": {**there.answers()["eks:DescribeCluster"]["cluster"], "identity": {}}}},
        {
            "sagemaker_DescribeClusterSchedulerConfig": {
                key: value
                for key, value in there.answers()["sagemaker:DescribeClusterSchedulerConfig"].items()
                if key != "SchedulerConfig"
            }
        },
        {
            "sagemaker_DescribeComputeQuota": lambda params: {
                **_quota(params),
                "ComputeQuotaConfig": {
                    key: value
                    for key, value in _quota(params)["ComputeQuotaConfig"].items()
                    if key != "ResourceSharingConfig"
                },
            }
        },
        {
            "fsx_DescribeFileSystems": {
                "FileSystems": [
                    {key: value for key, value in row.items() if key != "VpcId"}
                    for row in there.answers()["fsx:DescribeFileSystems"]["FileSystems"]
                ]
            }
        },
    ],
    ids=lambda half: next(iter(half)),
)
def test_half_an_answer_is_skipped(half: dict[str, Any], tmp_path: Path, *, is_takeover: bool) -> None:
    aws, _ = there.asked(**{**NO_STORAGE, **half})
    to = Place(target=tmp_path / "lab.yaml", root=PROJECT, schema=None)
    found, _ = imported_living(aws, "ml-cluster", Known(name="lab", is_takeover=is_takeover), to=to)
    assert any(each.weight == "skipped" for each in found.notes)
    assert found.passed is not True


@pytest.mark.parametrize("half", [{"InstanceGroups": [None]}, {"VpcConfig": ["x"]}, {"Orchestrator": {"Eks": [1]}}])
def test_half_a_cluster_is_one_line(half: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(DocumentError) as refused:
        read(tmp_path, **NO_STORAGE, sagemaker_DescribeCluster=described(**half))
    assert refused.value.findings
    assert all("\n" not in each.render() for each in refused.value.findings)
