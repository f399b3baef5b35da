"""The node commands: details, and manual replacement, reboot and checks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from hyperpod_cdk import cli
from hyperpod_cdk._cli.review import Access
from hyperpod_cdk.checks.policy import VERBS
from tests.living.test_status import ARN, FILE, NOW, answers, opened
from tests.support.answers import answered
from tests.support.scripted_aws import Fails

FAILED = "i-00000000000000003"
RUNNING = "i-00000000000000005"
DENIED: Any = Fails("AccessDeniedException", "no", 403)
JOBS = (
    "skipped jobs on the nodes: no permission for eks:DescribeCluster; 'kubectl get pods -A -o wide' shows the pods of"
    ' each node; AWS says: "no"\n'
)
LOST = (
    "Every volume of a replaced node is destroyed, root and secondary; file systems\n"
    "  and buckets stay. The new instance has the same AMI and configuration.\n"
)


def _described(params: Mapping[str, Any]) -> Any:
    name = params.get("NodeId") or params.get("NodeLogicalId")
    for row in answers()["sagemaker:ListClusterNodes"]["ClusterNodeSummaries"]:
        if row["InstanceId"] == name:
            return {
                "NodeDetails": {
                    **row,
                    "NodeLogicalId": f"{row['InstanceGroupName']}-1a2b3c4d",
                    "PrivatePrimaryIp": "10.1.0.4",
                    "Placement": {"AvailabilityZone": "us-east-1a", "AvailabilityZoneId": "use1-az5"},
                    "CapacityType": "OnDemand",
                    "CurrentImageReleaseVersion": "2.1.0",
                    "KubernetesConfig": {
                        "CurrentLabels": {"team": "research"},
                        "CurrentTaints": [{"Key": "gpu", "Value": "yes", "Effect": "NoSchedule"}],
                    },
                }
            }
    if name == "h100-new":
        row = {"InstanceGroupName": "h100", "InstanceType": "ml.p5.48xlarge", "LaunchTime": NOW}
        status = {"Status": "Pending", "Message": ""}
        return {"NodeDetails": {**row, "InstanceId": "", "NodeLogicalId": name, "InstanceStatus": status}}
    return Fails("ResourceNotFound", "no such node")


def script(*, continuous: bool = True, **more: Any) -> dict[str, Any]:
    """Return a cluster whose nodes can be asked for one by one."""
    found = answers()
    cluster = found["sagemaker:DescribeCluster"]
    cluster["NodeProvisioningMode"] = "Continuous" if continuous else None
    if not continuous:
        del cluster["NodeProvisioningMode"]
    found["sagemaker:DescribeTrainingPlan"]["AvailableSpareInstanceCount"] = 1
    found["sagemaker:DescribeClusterNode"] = _described
    found["eks:DescribeCluster"] = Fails("AccessDeniedException", "no", 403)
    found["sagemaker:BatchReplaceClusterNodes"] = lambda params: {"Successful": params["NodeIds"]}
    found["sagemaker:BatchRebootClusterNodes"] = lambda params: {"Successful": params["NodeIds"]}
    found["sagemaker:StartClusterHealthCheck"] = {"ClusterArn": ARN}
    return {**found, **{name.replace("_", ":", 1): answer for name, answer in more.items()}}


@dataclass
class Runs:
    """Runs verbs of an environment dev against a script, and keeps what AWS was asked."""

    folder: Path
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def __call__(self, verb: str, *words: str, aws: dict[str, Any] | None = None, typed: str = "") -> Result:
        folder = self.folder / "environments"
        folder.mkdir(exist_ok=True)
        (folder / "dev.yaml").write_text(FILE, encoding="utf-8")
        access = Access(open=lambda _region, _account: opened(script() if aws is None else aws, self.asked))
        line = ["node", verb, "dev", *words, "--project", str(self.folder)]
        return CliRunner().invoke(cli.app, line, prog_name="hyperpod-cdk", obj=access, input=typed)

    def sent(self, name: str) -> list[dict[str, Any]]:
        """Return what was sent with a call."""
        return [params for each, params in self.asked if each == f"sagemaker:{name}"]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    # what is confirmed is typed at a terminal, which no test has
    monkeypatch.setattr("hyperpod_cdk._cli.transitions.is_terminal", lambda: True)
    monkeypatch.chdir(tmp_path)
    return Runs(folder=tmp_path)


class TestList:
    def test_the_reason_of_a_failing_node_is_below_it(self, run: Runs) -> None:
        done = run("list", "--group", "h100")
        assert done.exit_code == 1
        assert done.stdout == (
            "dev: 1 of 4 nodes runs; 1 failing.\n"
            "\n"
            "group  node                 type         status                     launched\n"
            "h100   i-00000000000000001  p5.48xlarge  Running                    2026-11-23 03:00\n"
            "h100   i-00000000000000002  p5.48xlarge  DeepHealthCheckInProgress  2026-11-23 03:00\n"
            "h100   i-00000000000000003  p5.48xlarge  Failure                    2026-11-23 03:00\n"
            "  Lifecycle scripts did not run successfully\n"
            "h100   i-00000000000000004  p5.48xlarge  Pending                    2026-11-23 03:00\n"
        )

    def test_a_group_that_the_cluster_has_not(self, run: Runs) -> None:
        done = run("list", "--group", "h200")
        assert (done.exit_code, done.stdout) == (2, "")
        assert done.stderr == "cluster dev has no instance group h200; it has h100, system\n"

    @pytest.mark.parametrize(
        ("words", "said"),
        [((), "No node is listed; wanted: 6."), (("--group", "h100"), "No node is listed; wanted: 4.")],
    )
    def test_no_node_is_no_proof_that_all_is_well(self, run: Runs, words: tuple[str, ...], said: str) -> None:
        empty: dict[str, Any] = {"ClusterNodeSummaries": []}
        done = run("list", *words, aws=script(sagemaker_ListClusterNodes=empty))
        assert (done.exit_code, done.stdout) == (0, f"dev: {said}\n")
        assert run("list", *words, "--strict", aws=script(sagemaker_ListClusterNodes=empty)).exit_code == 1
        none = script(sagemaker_ListClusterNodes=empty)
        for each in none["sagemaker:DescribeCluster"]["InstanceGroups"]:
            each["TargetCount"] = 0
        found = answered("nodes", run("list", *words, "--format", "json", aws=none).stdout)
        assert (found["verdict"], found["passed"]) == ("There is no node, and none is wanted.", True)
        del none["sagemaker:DescribeCluster"]["InstanceGroups"][0]["TargetCount"]
        assert run("list", *words, aws=none).stdout == "dev: No node is listed; wanted: an unknown number.\n"
        # groups that AWS does not show are not none
        del none["sagemaker:DescribeCluster"]["InstanceGroups"]
        found = json.loads(run("list", *words, "--format", "json", aws=none).stdout)
        assert (found["verdict"], found["passed"]) == ("The nodes could not be read.", None)

    @pytest.mark.parametrize("verb", [("list",), ("describe", RUNNING)])
    def test_a_state_that_aws_adds_is_never_clean(self, run: Runs, verb: tuple[str, ...]) -> None:
        strange = {"Status": "Quarantined", "Message": ""}
        node = {**script()["sagemaker:ListClusterNodes"]["ClusterNodeSummaries"][0], "InstanceStatus": strange}
        more: dict[str, Any] = {"sagemaker_ListClusterNodes": {"ClusterNodeSummaries": [node]}}
        done = run(*verb, "--format", "json", aws=script(**more, sagemaker_DescribeClusterNode={"NodeDetails": node}))
        found = json.loads(done.stdout)
        assert (found["passed"], [each["reason"] for each in found["skipped"]]) == (
            None,
            ["1 node is Quarantined, which this version does not know"],
        )

    def test_only_failing_ones(self, run: Runs) -> None:
        found = answered("nodes", run("list", "--failing", "--format", "json").stdout)
        assert ([each["id"] for each in found["nodes"]], found["passed"]) == ([FAILED], False)

    @pytest.mark.parametrize(("more", "code"), [((), 0), (("--strict",), 1)])
    def test_what_is_denied_is_skipped(self, run: Runs, more: tuple[str, ...], code: int) -> None:
        done = run("list", *more, aws=script(sagemaker_ListClusterNodes=DENIED))
        assert done.exit_code == code
        assert done.stdout == (
            "dev: The nodes could not be read.\n"
            'skipped nodes: no permission for sagemaker:ListClusterNodes; AWS says: "no"\n'
        )


class TestDescribe:
    def test_a_node_whose_group_is_not_shown_has_no_names_with_a_gap(self, run: Runs) -> None:
        node = {**script()["sagemaker:ListClusterNodes"]["ClusterNodeSummaries"][0]}
        for shown in (True, False):
            if not shown:
                del node["InstanceGroupName"]
            aws = script(sagemaker_DescribeClusterNode={"NodeDetails": node})
            (found,) = json.loads(run("describe", RUNNING, "--format", "json", aws=aws).stdout)["nodes"]
            assert (bool(found["shell"]), bool(found["log_stream"])) == (shown, shown)

    def test_a_node_by_its_name_in_kubernetes(self, run: Runs) -> None:
        done = run("describe", f"hyperpod-{FAILED}")
        assert done.exit_code == 1
        assert done.stdout == (
            f"dev: {FAILED} failing.\n"
            "\n"
            f"node {FAILED} of group h100, ml.p5.48xlarge: Failure: Lifecycle\n"
            "  scripts did not run successfully\n"
            f"  kubernetes  hyperpod-{FAILED}\n"
            "  logical ID  h100-1a2b3c4d\n"
            "  zone        use1-az5\n"
            "  address     10.1.0.4\n"
            "  capacity    training plan h100-april of its group (CapacityType OnDemand)\n"
            "  launched    2026-11-23 03:00 UTC\n"
            "  software    2.1.0\n"
            "  labels      team=research\n"
            "  taints      gpu=yes:NoSchedule\n"
            f"  shell       sagemaker-cluster:abcdefabcdef_h100-{FAILED}\n"
            "  log group   /aws/sagemaker/Clusters/dev/abcdefabcdef\n"
            f"  log stream  LifecycleConfig/h100/{FAILED}\n"
            "  2026-11-23 02:00 UTC Info h100 i-3: EC2 Instance i-1 successfully provisioned\n"
            "  2026-11-23 02:00 UTC Error h100 i-3: Instance creation failed\n"
        )

    def test_events_are_of_continuous_clusters(self, run: Runs) -> None:
        done = run("describe", RUNNING, "--format", "json", aws=script(continuous=False))
        found = answered("node-details", done.stdout)
        assert (done.exit_code, found["passed"], found["nodes"][0]["events"]) == (0, True, [])
        assert "sagemaker:ListClusterEvents" not in {name for name, _ in run.asked}

    def test_events_that_are_denied_are_skipped(self, run: Runs) -> None:
        done = run("describe", RUNNING, "--format", "json", aws=script(sagemaker_ListClusterEvents=DENIED))
        found = answered("node-details", done.stdout)
        assert (done.exit_code, found["passed"], found["skipped"][0]["what"]) == (0, None, f"events of {RUNNING}")

    def test_a_node_that_is_not_there(self, run: Runs) -> None:
        done = run("describe", "i-00000000000000009")
        assert (done.exit_code, done.stderr) == (
            2,
            "cluster dev has no node i-00000000000000009; 'hyperpod-cdk node list dev' lists its nodes\n",
        )


class TestRefusals:
    """What is certain is refused before anything is sent."""

    @pytest.mark.parametrize(
        ("verb", "words", "said"),
        [
            ("replace", (RUNNING, f"hyperpod-{RUNNING}"), f"node {RUNNING} is named more than once; name it once"),
            (
                "check",
                (RUNNING,),
                None,
            ),
            ("check", ("--group", "gone"), "cluster dev has no group gone; its groups are h100, system"),
            ("check", ("--group", "spot"), "cluster dev has no group spot; its groups are h100, system"),
            ("check", (), "specify nodes, or a group with --group"),
            ("check", ("h100-new",), "node h100-new has no instance yet (it is Pending); wait until it has one"),
            ("logs", ("h100-new",), "node h100-new has no instance yet (it is Pending), so it has no logs"),
            (
                "replace",
                (RUNNING, "--format", "json"),
                f"--format json cannot ask for confirmation; add --confirm {RUNNING}",
            ),
            (
                "reboot",
                (RUNNING, "--confirm", FAILED),
                f"--confirm: must contain the same names as the command, {RUNNING}, got {FAILED}",
            ),
        ],
    )
    def test_sentences(self, run: Runs, verb: str, words: tuple[str, ...], said: str | None) -> None:
        aws = script()
        if said is None:
            rows = aws["sagemaker:ListClusterNodes"]["ClusterNodeSummaries"]
            details = {**rows[4], "InstanceType": "ml.m5.2xlarge"}
            aws["sagemaker:DescribeClusterNode"] = {"NodeDetails": details}
            said = f"node {RUNNING} cannot be checked: ml.m5.2xlarge of group system has no accelerators; leave it out"
        done = run(verb, *words, aws=aws)
        assert (done.exit_code, done.stderr) == (2, f"{said}\n")

    def test_a_node_without_instance_where_nothing_is_continuous(self, run: Runs) -> None:
        done = run("replace", "h100-new", aws=script(continuous=False))
        assert done.stderr == "node h100-new has no instance yet (it is Pending); wait until it has one\n"

    @pytest.mark.parametrize("verb", ["describe", "logs", "replace", "reboot", "check"])
    def test_a_cluster_on_slurm(self, run: Runs, verb: str) -> None:
        aws = script()
        aws["sagemaker:DescribeCluster"]["Orchestrator"] = {"Slurm": {}}
        done = run(verb, RUNNING, aws=aws)
        assert done.stderr == "cluster dev runs Slurm or nothing yet, not EKS: this command leaves its nodes alone\n"
        assert done.exit_code == 2

    @pytest.mark.parametrize("call", ["DescribeCluster", "DescribeClusterNode"])
    def test_what_is_not_known_is_left_alone(self, run: Runs, call: str) -> None:
        done = run("replace", FAILED, "--confirm", FAILED, aws=script(**{f"sagemaker_{call}": DENIED}))
        assert (done.exit_code, done.stderr) == (
            2,
            (
                f"the node could not be read: no permission for sagemaker:{call}; allow sagemaker:{call}"
                '; AWS says: "no"; nothing was done\n'
            ),
        )
        assert run.sent("BatchReplaceClusterNodes") == []


class TestReplace:
    def test_what_it_takes_is_shown_before_the_node_is_typed(self, run: Runs) -> None:
        done = run("replace", FAILED, typed=f"{FAILED}\n")
        assert done.exit_code == 0, done.output
        assert done.stdout == (
            "dev: 1 node to be replaced.\n"
            "\n"
            f"node {FAILED} of group h100, ml.p5.48xlarge: Failure: Lifecycle\n"
            "  scripts did not run successfully\n"
            "  plan h100-april is Active: instances 0 available, 1 spare\n"
            f"{LOST}{JOBS}"
            f"Type {FAILED} to replace it: {FAILED}\n"
            f"{FAILED}: begun\n"
            "dev: 1 of 1 node being replaced.\n"
        )
        assert run.sent("BatchReplaceClusterNodes") == [{"ClusterName": "dev", "NodeIds": [FAILED]}]

    @pytest.mark.parametrize("typed", ["", "\n", "yes\n", f"{RUNNING}\n"])
    def test_anything_else_is_no(self, run: Runs, typed: str) -> None:
        done = run("replace", FAILED, typed=typed)
        assert (done.exit_code, done.stdout.splitlines()[-1]) == (1, "Nothing was done.")
        assert run.sent("BatchReplaceClusterNodes") == []

    def test_without_a_terminal_the_flag_is_named(self, run: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("hyperpod_cdk._cli.transitions.is_terminal", lambda: False)
        done = run("replace", FAILED, RUNNING, typed="2 nodes\n")
        asked = "Type 2 nodes to replace them: this must be typed on a terminal, and standard input is not a terminal"
        told = f"{asked}; in a program, add --confirm {FAILED} --confirm {RUNNING}"
        assert (done.exit_code, done.stdout.splitlines()[-2:]) == (1, [told, "Nothing was done."])
        assert run.sent("BatchReplaceClusterNodes") == []

    def test_several_are_confirmed_by_their_number(self, run: Runs) -> None:
        done = run("replace", FAILED, RUNNING, typed="2 nodes\n")
        assert "Type 2 nodes to replace them: 2 nodes\n" in done.stdout
        assert run.sent("BatchReplaceClusterNodes")[0]["NodeIds"] == [FAILED, RUNNING]

    def test_on_demand_capacity_is_not_known(self, run: Runs) -> None:
        done = run("replace", RUNNING, "--confirm", RUNNING)
        assert (
            "skipped capacity for replacements in system: AWS does not show in advance whether instances outside"
            " of training plans are available\n"
        ) in done.stdout

    def test_a_plan_that_is_not_read_is_skipped(self, run: Runs) -> None:
        done = run("replace", FAILED, "--confirm", FAILED, aws=script(sagemaker_DescribeTrainingPlan=DENIED))
        assert (
            "skipped capacity for replacements in h100: no permission for sagemaker:DescribeTrainingPlan" in done.stdout
        )
        assert done.exit_code == 0

    def test_karpenter_and_a_whole_group_are_reported(self, run: Runs) -> None:
        aws = script()
        aws["sagemaker:DescribeCluster"]["AutoScaling"] = {"Mode": "Enable", "Status": "InService"}
        aws["sagemaker:DescribeCluster"]["InstanceGroups"][1]["CurrentCount"] = 1
        done = run("replace", RUNNING, aws=aws)
        assert (
            f"{LOST}Karpenter scales this cluster: it adds a new node only while pods are pending.\n"
            "That is every node of group system at once.\n"
        ) in done.stdout

    def test_each_node_has_its_own_answer(self, run: Runs) -> None:
        """A part that HyperPod refuses ends the verb with 1, and nothing is hidden."""
        row = {"NodeId": RUNNING, "ErrorCode": "InstanceIdInUse", "Message": "Another operation is in progress."}
        answer = {"Successful": [FAILED], "Failed": [row]}
        words = (FAILED, RUNNING, "--confirm", FAILED, "--confirm", RUNNING)
        done = run("replace", *words, aws=script(sagemaker_BatchReplaceClusterNodes=answer))
        assert done.exit_code == 1
        assert done.stdout.endswith(
            f"{FAILED}: begun\n"
            f"{RUNNING}: not begun, InstanceIdInUse: Another operation is in\n"
            "  progress.\n"
            "dev: 1 of 2 nodes being replaced; 1 not.\n"
        )
        done = run("replace", *words, "--format", "json", aws=script(sagemaker_BatchReplaceClusterNodes=answer))
        found = answered("node-work", done.stdout)
        assert [(each["accepted"], each["error_code"]) for each in found["nodes"]] == [
            (True, ""),
            (False, "InstanceIdInUse"),
        ]
        assert (done.exit_code, found["passed"]) == (1, False)

    @pytest.mark.parametrize(
        ("answer", "accepted"),
        [
            (DENIED, False),
            (Fails("ValidationException", "patch the cluster first"), False),
            (Fails("ThrottlingException", "slow down"), False),
            (Fails("InternalFailure", "oops", 500), None),
            ({"Successful": [RUNNING]}, None),
        ],
    )
    def test_a_request_that_fails_says_whether_anything_has_begun(
        self, run: Runs, answer: Any, accepted: object
    ) -> None:
        words = (FAILED, "--confirm", FAILED, "--format", "json")
        done = run("replace", *words, aws=script(sagemaker_BatchReplaceClusterNodes=answer))
        (node,) = answered("node-work", done.stdout)["nodes"]
        assert (done.exit_code, node["accepted"], bool(node["error"])) == (1, accepted, True)

    @pytest.mark.parametrize(("number", "parts"), [(25, [25]), (26, [25, 1])])
    def test_25_nodes_a_request(self, run: Runs, number: int, parts: list[int]) -> None:
        names = [f"i-{each:017x}" for each in range(number)]
        row = answers()["sagemaker:ListClusterNodes"]["ClusterNodeSummaries"][0]
        aws = script()
        aws["sagemaker:DescribeClusterNode"] = lambda params: {"NodeDetails": {**row, "InstanceId": params["NodeId"]}}
        done = run("replace", *names, aws=aws, typed=f"{number} nodes\n")
        assert (done.exit_code, f"dev: {number} of {number} nodes being replaced." in done.stdout) == (0, True)
        assert [len(each["NodeIds"]) for each in run.sent("BatchReplaceClusterNodes")] == parts

    def test_a_node_without_instance_goes_by_its_logical_id(self, run: Runs) -> None:
        answer = {"SuccessfulNodeLogicalIds": ["h100-new"]}
        aws = script(sagemaker_BatchReplaceClusterNodes=answer)
        done = run("replace", "h100-new", "--confirm", "h100-new", aws=aws)
        assert done.exit_code == 0
        assert run.sent("BatchReplaceClusterNodes") == [{"ClusterName": "dev", "NodeLogicalIds": ["h100-new"]}]


def test_a_reboot_destroys_nothing(run: Runs) -> None:
    done = run("reboot", RUNNING, "--confirm", RUNNING)
    assert done.stdout == (
        "dev: 1 node to be rebooted.\n"
        "\n"
        f"node {RUNNING} of group system, ml.p5.48xlarge: Running\n"
        "The operating system restarts, and what runs on the node is interrupted; the\n"
        "  instance stays.\n"
        f"{JOBS}"
        f"{RUNNING}: begun\n"
        "dev: 1 of 1 node being rebooted.\n"
    )
    assert run.sent("BatchRebootClusterNodes") == [{"ClusterName": "dev", "NodeIds": [RUNNING]}]


class TestCheck:
    def test_a_group_is_all_of_its_nodes(self, run: Runs) -> None:
        done = run("check", RUNNING, "--group", "h100", "--confirm", RUNNING, "--confirm", "h100")
        assert done.exit_code == 0
        assert (
            "Kubernetes schedules no new pods on a node during its check, which takes 1 h to 2 h. HyperPod reboots or"
            " replaces a node that fails, and a replacement destroys its volumes."
        ) in " ".join(done.stdout.split())
        both = ["InstanceStress", "InstanceConnectivity"]
        rows = [each["DeepHealthCheckConfigurations"] for each in run.sent("StartClusterHealthCheck")]
        assert rows == [
            [{"InstanceGroupName": "system", "InstanceIds": [RUNNING], "DeepHealthChecks": both}],
            [
                {
                    "InstanceGroupName": "h100",
                    "InstanceIds": [f"i-{each:017x}" for each in range(1, 5)],
                    "DeepHealthChecks": both,
                }
            ],
        ]

    def test_a_row_without_a_group_is_no_answer(self, run: Runs) -> None:
        answers = script()
        del answers["sagemaker:ListClusterNodes"]["ClusterNodeSummaries"][1]["InstanceGroupName"]
        done = run("check", "--group", "h100", "--confirm", "h100", aws=answers)
        said = "the answer to sagemaker:ListClusterNodes cannot be read: 'InstanceGroupName' is missing"
        assert (done.exit_code, done.stderr) == (2, f"the node could not be read: {said}; nothing was done\n")
        answers = script()
        del answers["sagemaker:DescribeCluster"]["ClusterArn"]
        done = run("describe", RUNNING, aws=answers)
        said = "the answer to sagemaker:DescribeCluster cannot be read: 'ClusterArn' is missing"
        assert (done.exit_code, done.stderr) == (2, f"the node could not be read: {said}; nothing was done\n")

    def test_one_check(self, run: Runs) -> None:
        run("check", FAILED, "--only", "instance_stress", "--confirm", FAILED)
        (sent,) = run.sent("StartClusterHealthCheck")
        assert sent["DeepHealthCheckConfigurations"][0]["DeepHealthChecks"] == ["InstanceStress"]

    def test_a_refusal_is_of_each_node_that_it_was_asked_for(self, run: Runs) -> None:
        refused = Fails("ValidationException", "Deep health checks are not supported.")
        done = run("check", FAILED, "--confirm", FAILED, aws=script(sagemaker_StartClusterHealthCheck=refused))
        assert done.exit_code == 1
        assert "dev: 0 of 1 node being checked; 1 not.\n" in done.stdout


@pytest.mark.parametrize("code", ["ResourceNotFound", "ResourceNotFoundException"])
def test_a_node_that_goes_after_it_was_described_has_events_that_were_skipped(run: Runs, code: str) -> None:
    done = run("describe", RUNNING, aws=script(sagemaker_ListClusterEvents=Fails(code, "gone", 404)))
    said = f"skipped events of {RUNNING}: sagemaker:ListClusterEvents was refused with {code}: gone\n"
    assert (done.exit_code, done.stdout.endswith(said)) == (0, True)
    strict = run("describe", RUNNING, "--strict", aws=script(sagemaker_ListClusterEvents=Fails(code, "gone", 404)))
    assert strict.exit_code == 1


def test_events_of_a_node_behind_a_page_without_any(run: Runs) -> None:
    event = {"EventId": "1", "EventTime": NOW, "Description": "rebooted", "ClusterName": "dev"}
    pages: list[Any] = [{"Events": [], "NextToken": "more"}, {"Events": [event]}]
    done = run("describe", RUNNING, aws=script(sagemaker_ListClusterEvents=pages))
    assert (done.exit_code, "rebooted" in done.stdout) == (0, True)


def test_events_of_a_node_that_go_in_circles_are_skipped(run: Runs) -> None:
    again = {"Events": [], "NextToken": "again"}
    done = run("describe", RUNNING, "--strict", aws=script(sagemaker_ListClusterEvents=again))
    said = "sagemaker:ListClusterEvents returned the same page again"
    assert (done.exit_code, done.stdout.endswith(f"skipped events of {RUNNING}: {said}\n")) == (1, True)


@pytest.mark.parametrize("verb", ["list", "check"])
def test_nodes_of_a_cluster_that_goes_are_not_none(run: Runs, verb: str) -> None:
    words = () if verb == "list" else ("--group", "h100", "--confirm", "h100")
    done = run(verb, *words, aws=script(sagemaker_ListClusterNodes=Fails("ResourceNotFound", "gone", 400)))
    said = "sagemaker:ListClusterNodes was refused with ResourceNotFound: gone"
    if verb == "list":
        assert (done.exit_code, done.stdout) == (
            0,
            (f"dev: The nodes could not be read.\nskipped nodes: {said}\n"),
        )
    else:
        assert (done.exit_code, done.stderr) == (2, f"the node could not be read: {said}; nothing was done\n")


@pytest.mark.parametrize("verb", ["describe", "replace", "reboot", "check", "logs"])
@pytest.mark.parametrize(
    ("lost", "said"),
    [
        ({"NodeDetails": None}, "'NoneType' object has no attribute 'get'"),
        ({"NodeDetails": {"InstanceStatus": []}}, "'list' object has no attribute 'get'"),
    ],
)
def test_an_answer_that_is_not_a_node_is_ignored(run: Runs, verb: str, lost: Any, said: str) -> None:
    words = ("--confirm", RUNNING) if verb in ("replace", "reboot", "check") else ()
    done = run(verb, RUNNING, *words, aws=script(sagemaker_DescribeClusterNode=lost))
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"the answer to sagemaker:DescribeClusterNode cannot be read: {said}" in done.stderr


class TestLogs:
    GROUP = "/aws/sagemaker/Clusters/dev/abcdefabcdef"

    def row(self, text: str, second: int = 0) -> dict[str, Any]:
        at = datetime(2026, 11, 23, 3, 4, second, tzinfo=UTC)
        return {"timestamp": int(at.timestamp() * 1000), "message": text}

    def test_the_newest_lines_of_the_lifecycle_scripts(self, run: Runs) -> None:
        page = {"events": [self.row("first"), self.row("second\n", 1)], "nextBackwardToken": "b/1"}
        done = run("logs", FAILED, "--lines", "2", aws=script(logs_GetLogEvents=page))
        assert (done.exit_code, done.stdout) == (
            0,
            f"2026-11-23 03:04:00 UTC first\n2026-11-23 03:04:01 UTC second\ndev: 2 lines of {FAILED}.\n",
        )
        (asked,) = [params for name, params in run.asked if name == "logs:GetLogEvents"]
        assert asked == {
            "logGroupName": self.GROUP,
            "logStreamName": f"LifecycleConfig/h100/{FAILED}",
            "startFromHead": False,
            "limit": 2,
        }

    def test_an_empty_page_is_not_the_end(self, run: Runs) -> None:
        pages_of_log: list[Any] = [
            {"events": [], "nextBackwardToken": "b/1"},
            {"events": [self.row("only")], "nextBackwardToken": "b/2"},
            {"events": [], "nextBackwardToken": "b/2"},
        ]
        done = run("logs", FAILED, aws=script(logs_GetLogEvents=pages_of_log))
        assert done.stdout.startswith("2026-11-23 03:04:00 UTC only\n")

    def test_the_agents_stream_holds_the_instance(self, run: Runs) -> None:
        names = [f"SagemakerHealthMonitoringAgent/h100/{FAILED}", f"SagemakerHealthMonitoringAgent/h100/{RUNNING}"]
        streams = {"logStreams": [{"logStreamName": name} for name in names]}
        page = {"events": [self.row("NPD caught event")], "nextBackwardToken": "b/1"}
        aws = script(logs_DescribeLogStreams=streams, logs_GetLogEvents=[page, {**page, "events": []}])
        found = answered("node-logs", run("logs", FAILED, "--of", "health", "--format", "json", aws=aws).stdout)
        assert [(each["stream"], each["text"]) for each in found["lines"]] == [(names[0], "NPD caught event")]

    def test_checks_are_found_by_the_instance_that_they_name(self, run: Runs) -> None:
        events = {"events": [{**self.row("passed"), "logStreamName": "DeepHealthCheckResults/1"}]}
        done = run("logs", FAILED, "--of", "checks", aws=script(logs_FilterLogEvents=events))
        assert done.stdout.startswith("2026-11-23 03:04:00 UTC passed\n")
        (asked,) = [params for name, params in run.asked if name == "logs:FilterLogEvents"]
        assert (asked["filterPattern"], asked["logStreamNamePrefix"]) == (f'"{FAILED}"', "DeepHealthCheckResults/")

    @pytest.mark.parametrize("of", ["lifecycle", "health", "checks"])
    def test_no_log_is_no_lines(self, run: Runs, of: str) -> None:
        none = Fails("ResourceNotFoundException", "The specified log group does not exist.")
        calls: dict[str, Any] = {
            f"logs_{name}": none for name in ("GetLogEvents", "DescribeLogStreams", "FilterLogEvents")
        }
        done = run("logs", FAILED, "--of", of, aws=script(**calls))
        assert (done.exit_code, done.stdout) == (0, f"dev: {FAILED} has no such lines.\n")

    @pytest.mark.parametrize(
        "log", [{"of": "lifecycle", "call": "GetLogEvents"}, {"of": "checks", "call": "FilterLogEvents"}]
    )
    def test_an_answer_without_its_list_is_no_empty_log(self, run: Runs, log: dict[str, str]) -> None:
        answers: dict[str, Any] = {f"logs_{log['call']}": {}}
        done = run("logs", FAILED, "--of", log["of"], aws=script(**answers))
        skipped = f"skipped log {log['of']}: the answer to logs:{log['call']} cannot be read: 'events' is missing\n"
        assert (done.exit_code, done.stdout) == (1, f"dev: The log could not be read.\n{skipped}")

    def test_what_is_denied_ends_with_1(self, run: Runs) -> None:
        done = run("logs", FAILED, aws=script(logs_GetLogEvents=DENIED))
        assert (done.exit_code, done.stdout) == (
            1,
            (
                "dev: The log could not be read.\n"
                'skipped log lifecycle: no permission for logs:GetLogEvents; AWS says: "no"\n'
            ),
        )


@pytest.mark.parametrize(
    ("verb", "words"),
    [
        ("list", ()),
        ("describe", (FAILED,)),
        ("replace", (FAILED, "--confirm", FAILED)),
        ("reboot", (FAILED, "--confirm", FAILED)),
        ("check", (FAILED, "--group", "h100", "--confirm", FAILED, "--confirm", "h100")),
        ("logs", (FAILED,)),
    ],
)
def test_only_what_the_rights_of_the_verb_allow_is_asked(run: Runs, verb: str, words: tuple[str, ...]) -> None:
    log: dict[str, Any] = {"logs_GetLogEvents": {"events": [], "nextBackwardToken": ""}}
    run(verb, *words, aws=script(**log))
    (rights,) = (each for each in VERBS if each.name == f"node {verb}")
    beyond = {"logs:DescribeLogStreams", "logs:FilterLogEvents"} if verb == "logs" else set[str]()
    # of a large cluster the groups are asked for, too
    beyond |= {"sagemaker:DescribeCluster"} if verb == "list" else set()
    assert {name for name, _ in run.asked} | beyond == set(rights.actions)
