"""``fleet`` as users run it: one table, the worst exit code, and no environment that hides another."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from hyperpod_cdk import cli
from hyperpod_cdk._cli.review import Access
from hyperpod_cdk.catalog import quotas
from hyperpod_cdk.catalog.addons import TASK_GOVERNANCE
from hyperpod_cdk.checks.answers import AwsAccessError
from hyperpod_cdk.config.wanted_addons import EVERYWHERE
from hyperpod_cdk.handlers.quota_gate.reading import Own
from tests.cli.test_plan import write_assembly
from tests.living.account import Account
from tests.support.answers import answered
from tests.support.callers import with_callers
from tests.support.scripted_aws import WHO, Fails, Reaching, ScriptedSession, a_role, workloads

WAVES = """\
waves:
  - { name: staging, environments: [staging], soak_minutes: 60 }
  - { name: prod, environments: [prod], approval: true }
"""


@pytest.fixture
def fleet(tmp_path: Path, project: Path) -> Path:
    """A project of two environments, staging and prod, that differ by name and blocks."""
    (tmp_path / "environments").mkdir()
    text = with_callers((project / "examples" / "two-teams.yaml").read_text(encoding="utf-8"))
    for name, block in (("staging", "10.200.0.0/16"), ("prod", "10.201.0.0/16")):
        own = text.replace("two-teams", name).replace("network:\n", f"network:\n  vpc_cidr: {block}\n", 1)
        for old, new in (("10.1.0.0", "10.11.0.0"), ("10.2.0.0", "10.12.0.0")) if name == "prod" else ():
            own = own.replace(old, new)
        (tmp_path / "environments" / f"{name}.yaml").write_text(own, encoding="utf-8")
    return tmp_path


Run = Callable[..., Result]


@pytest.fixture
def run(fleet: Path) -> Run:
    def run_command(*arguments: object, obj: object = None) -> Result:
        with chdir(fleet):
            words = ["fleet", *(str(each) for each in arguments)]
            return CliRunner().invoke(cli.app, words, prog_name="hyperpod-cdk", obj=obj, catch_exceptions=False)

    return run_command


def rows(done: Result) -> list[list[str]]:
    return [line.split("  ") for line in done.stdout.split("\n\n")[0].splitlines()]


def cells(done: Result) -> list[list[str]]:
    return [[cell.strip() for cell in row if cell.strip()] for row in rows(done)]


def test_every_environment_is_listed_in_the_order_of_the_waves(run: Run, fleet: Path) -> None:
    done = run("validate")
    assert done.exit_code == 0, done.output
    assert [row[0] for row in cells(done)] == ["environment", "prod", "staging"]
    (fleet / "fleet.yaml").write_text(WAVES, encoding="utf-8")
    done = run("validate")
    assert [row[:2] for row in cells(done)] == [["environment", "wave"], ["staging", "staging"], ["prod", "prod"]]


def test_one_that_is_refused_and_one_that_is_not_there_hide_nobody(run: Run, fleet: Path) -> None:
    file = fleet / "environments" / "staging.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("region:", "regoin:"), encoding="utf-8")
    done = run("validate", "staging", "prd", "prod")
    assert done.exit_code == 2
    assert [(row[0], row[-2]) for row in cells(done)[1:2]] == [("staging", "failed")]
    assert " regoin: is not a known key here; did you mean region?" in done.stdout
    assert 'prd: no environment "prd" in environments; did you mean prod?' in done.stdout.replace("\n  ", " ")
    assert done.stdout.endswith("\n3 environments: 1 failed, 1 not checked, 1 ok.\n")
    assert run("validate", "staging", "prod").exit_code == 1
    assert run("validate", "prod").exit_code == 0


def test_by_whatever_path_one_is_asked_for_it_is_looked_at_once(run: Run) -> None:
    done = run("validate", "prod", "environments/prod.yaml", "environments", "prod")
    assert [row[0] for row in cells(done)[1:]] == ["prod", "staging"]


def test_a_file_that_leads_nowhere_is_refused_and_not_left_out(run: Run, fleet: Path) -> None:
    (fleet / "environments" / "dev.yaml").symlink_to("nowhere.yaml")
    for words in (("validate",), ("validate", "environments")):
        done = run(*words)
        assert (done.exit_code, [(row[0], row[-2]) for row in cells(done)[1:2]]) == (1, [("dev", "failed")])
        assert "error environments/nowhere.yaml: does not exist; create it with" in done.stdout


def test_a_wrong_fleet_file_is_reported_beside_all(run: Run, fleet: Path) -> None:
    (fleet / "fleet.yaml").write_text(WAVES.replace("[prod]", "[prd]"), encoding="utf-8")
    done = run("validate")
    assert done.exit_code == 1
    assert (
        "error fleet.yaml:3 waves[1].environments[0]: must be an environment of environments/, got prd; did you mean"
        " prod?\n"
    ) in done.stdout
    assert done.stdout.endswith("\n2 environments: 2 ok, fleet.yaml refused.\n")


def test_what_suffices_for_each_and_not_for_both_is_reported(run: Run) -> None:
    found = json.loads(run("validate", "--format", "json").stdout)
    rules = {each["rule"] for row in found["environments"] for each in row["findings"]}
    assert "quotas_suffice_for_all_environments" in rules


def test_json_follows_its_schema(run: Run) -> None:
    for verb in (("validate",), ("preflight", "--offline")):
        answered("fleet-report", run(*verb, "--format", "json").stdout)
    answered("fleet-sums", run("sums", "--no-cost", "--format", "json").stdout)


def test_preflight_without_aws_is_skipped_and_strict_says_so(run: Run) -> None:
    done = run("preflight", "--offline")
    assert (done.exit_code, [row[3] for row in cells(done)[1:]]) == (0, ["skipped", "skipped"])
    assert run("preflight", "--offline", "--strict").exit_code == 1


def test_assemblies_are_for_costs(run: Run) -> None:
    done = run("sums", "--no-cost", "--heads", ".")
    said = "--heads is for --cost; add --cost, or omit --heads\n"
    assert (done.exit_code, done.stdout, done.stderr) == (2, "", said)


def test_preflight_of_no_such_check_is_a_sentence(run: Run) -> None:
    done = run("preflight", "--only", "quota")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "quota" in done.stderr


# --- status ---------------------------------------------------------------------------------------------------------


WITHOUT_NODES = {
    "InstanceGroupName": "a10g",
    "InstanceType": "ml.g5.12xlarge",
    "TargetCount": 0,
    "CurrentCount": 0,
    "Status": "InService",
}


def cluster(name: str, *states: str) -> dict[str, Any]:
    return {
        "ClusterArn": f"arn:aws:sagemaker:us-east-1:111122223333:cluster/{name:0<12}",
        "ClusterName": name,
        "ClusterStatus": "InService",
        "NodeProvisioningMode": "Continuous",
        "Orchestrator": {"Eks": {"ClusterArn": f"arn:aws:eks:us-east-1:111122223333:cluster/{name}-eks"}},
        "InstanceGroups": [
            {
                "InstanceGroupName": "system",
                "InstanceType": "ml.m5.2xlarge",
                "TargetCount": len(states),
                "CurrentCount": len(states),
                "Status": "InService",
            },
            *([] if name == "lacking" else [{**WITHOUT_NODES}]),
        ],
    }


_HERE = "arn:aws:sagemaker:us-east-1:111122223333"


def _quota(team: str) -> dict[str, Any]:
    return {
        "ComputeQuotaArn": f"{_HERE}:compute-quota/{team:0<12}",
        "ComputeQuotaId": f"{team:0<12}",
        "Name": team,
        "Status": "Created",
        "CreationTime": "2026-11-23T00:00:00Z",
        "ComputeQuotaTarget": {"TeamName": team, "FairShareWeight": 0},
    }


QUOTAS = {
    each.code: each.name
    for each in (
        quotas.cluster_usage("ml.g5.12xlarge"),
        quotas.cluster_usage("ml.m5.2xlarge"),
        quotas.get("hyperpod_instances_total"),
    )
}

WHOLE: dict[str, Any] = {
    "eks:ListAddons": {"addons": [*EVERYWHERE, TASK_GOVERNANCE]},
    "cloudwatch:DescribeAlarms": lambda params: {
        "MetricAlarms": [{"AlarmName": f"{params['AlarmNamePrefix']}events", "StateValue": "OK"}]
    },
    "sagemaker:ListClusters": {"ClusterSummaries": []},
    "servicequotas:GetServiceQuota": lambda params: {
        "Quota": {"QuotaName": QUOTAS[params["QuotaCode"]], "QuotaCode": params["QuotaCode"], "Value": 8.0}
    },
    "sagemaker:ListComputeQuotas": {"ComputeQuotaSummaries": [_quota("john"), _quota("smith")]},
    "sagemaker:ListClusterSchedulerConfigs": {
        "ClusterSchedulerConfigSummaries": [
            {
                "ClusterSchedulerConfigArn": f"{_HERE}:cluster-scheduler-config/0a1b2c3d4e5f",
                "ClusterSchedulerConfigId": "0a1b2c3d4e5f",
                "Name": "governance",
                "Status": "Created",
                "CreationTime": "2026-11-23T00:00:00Z",
            }
        ]
    },
}
"""What of two-teams stands beside its groups, and the quotas of which these take."""

NODES = {"prod": ("Running", "Running"), "staging": ("Running", "Failure"), "lacking": ("Running", "Running")}


def answering(more: dict[str, Any] | None = None) -> Access:
    def nodes(params: Any) -> Any:
        name = params["ClusterName"]
        if (more or {}).get(name) is not None:
            return (more or {})[name]
        return {
            "ClusterNodeSummaries": [
                {
                    "InstanceGroupName": "system",
                    "InstanceId": f"i-{index:017x}",
                    "InstanceType": "ml.m5.2xlarge",
                    "LaunchTime": "2026-11-23T00:00:00Z",
                    "InstanceStatus": {"Status": state},
                }
                for index, state in enumerate(NODES[name])
            ]
        }

    script: dict[str, Any] = {
        "sts:GetCallerIdentity": WHO,
        "iam:GetRole": a_role,
        "sagemaker:DescribeCluster": lambda params: cluster(params["ClusterName"], *NODES[params["ClusterName"]]),
        "sagemaker:ListClusterNodes": nodes,
        "sagemaker:ListClusterEvents": {"Events": []},
        "fsx:DescribeFileSystems": {"FileSystems": []},
        **WHOLE,
        **{call: answer for call, answer in (more or {}).items() if ":" in call},
    }
    session = ScriptedSession(script).session()

    def opening(region: str, account: str) -> Any:
        if account == "444455556666":
            raise AwsAccessError("the credentials are of account 111122223333, and the environment of 444455556666")
        own = Own(stacks=(), hyperpod_cluster="", eks_cluster="")
        aws = Reaching.open(region=region, account=account, own=own, session=session)
        assert isinstance(aws, Reaching)
        aws.kubernetes = workloads()
        return aws

    return Access(open=opening)


def test_status_of_both(run: Run) -> None:
    done = run("status", obj=answering())
    assert done.exit_code == 1, done.output
    assert cells(done) == [
        ["environment", "account", "region", "result"],
        ["prod", "111122223333", "us-west-2", "ok", "2 of 2 nodes run"],
        ["staging", "111122223333", "us-west-2", "failed", "1 of 2 nodes run"],
    ]
    assert done.stdout.endswith(
        "\n\nstaging: 1 of 2 nodes run; system: 1 node failing.\n\n2 environments: 1 failed, 1 ok.\n"
    )


def test_a_cluster_without_a_group_of_the_file_fails(run: Run, fleet: Path) -> None:
    text = (fleet / "environments" / "prod.yaml").read_text(encoding="utf-8")
    (fleet / "environments" / "lacking.yaml").write_text(text.replace("name: prod", "name: lacking"), encoding="utf-8")
    done = run("status", "lacking", obj=answering())
    assert done.exit_code == 1
    assert cells(done)[1][-2:] == ["failed", "2 of 2 nodes run, no group a10g"]
    assert "lacking: 2 of 2 nodes run; of the file, group a10g is not in AWS." in done.stdout


def test_status_of_one_that_cannot_be_asked(run: Run, fleet: Path) -> None:
    file = fleet / "environments" / "prod.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("111122223333", "444455556666"), encoding="utf-8")
    done = run("status", obj=answering())
    # what fails of the other is told all the same, and not having looked is worse
    assert done.exit_code == 2
    assert [row[-2:] for row in cells(done)[1:]] == [
        ["not checked", "the credentials are of accou…"],
        ["failed", "1 of 2 nodes run"],
    ]
    assert max(map(len, done.stdout.splitlines())) <= 80
    said = "prod: the credentials are of account 111122223333, and the environment of 444455556666"
    assert said in " ".join(done.stdout.split())
    found = answered("fleet-report", run("status", "--format", "json", obj=answering()).stdout)
    assert (found["passed"], found["exit_code"]) == (False, 2)
    prod, staging = found["environments"]
    assert (prod["passed"], prod["exit_code"], prod["status"]) == (None, 2, None)
    assert prod["verdict"] == "the credentials are of account 111122223333, and the environment of 444455556666"
    assert staging["status"]["groups"][0]["failing"] == 1


@pytest.mark.parametrize(("strict", "code"), [((), 0), (("--strict",), 1)])
def test_status_that_is_half_read_is_no_ok(run: Run, strict: tuple[str, ...], code: int) -> None:
    done = run("status", "prod", *strict, obj=answering({"prod": Fails("AccessDeniedException", "no", 403)}))
    assert done.exit_code == code
    assert cells(done)[1][-2:] == ["skipped", "? of 2 nodes run"]
    assert "skipped nodes: no permission for sagemaker:ListClusterNodes" in done.stdout


# --- drift and review ------------------------------------------------------------------------------------------------


@pytest.fixture
def one_drifts(fleet: Path, project: Path) -> tuple[Path, Access]:
    """An environment dev that is deployed beside prod, of which there is no assembly, and a count by hand."""
    text = with_callers((project / "examples" / "two-teams.yaml").read_text(encoding="utf-8"))
    (fleet / "environments" / "dev.yaml").write_text(
        text.replace("two-teams", "dev").replace("a10g", "h100"), encoding="utf-8"
    )
    account = Account()
    account.group("h100")["TargetCount"] = 6
    templates = {name.removeprefix("dev-"): each for name, each in account.head.items()}
    write_assembly(fleet / "heads" / "dev", templates, {})
    return fleet / "heads", Access(open=lambda region, of: account.aws())  # noqa: ARG005 - one account


def test_drift_of_one_beside_one_without_an_assembly(run: Run, one_drifts: tuple[Path, Access]) -> None:
    heads, access = one_drifts
    done = run("drift", "prod", "dev", "--heads", heads, obj=access)
    assert done.exit_code == 2
    missing, differing = (row[-2:] for row in cells(done)[1:])
    assert missing[0] == "not checked"
    assert missing[1].startswith("--heads: ")
    assert differing == ["failed", "1 difference"]
    assert "/heads has no cloud assembly prod" in " ".join(done.stdout.split())
    found = answered("fleet-report", run("drift", "dev", "--heads", heads, "--format", "json", obj=access).stdout)
    (row,) = found["environments"]
    assert row["drift"]["differences"][0]["path"] == "InstanceGroups[h100].InstanceCount"
    assert run("drift", "dev", "--heads", heads, obj=access).exit_code == 1


def test_review_of_two_assemblies(run: Run, one_drifts: tuple[Path, Access], fleet: Path) -> None:
    heads, _ = one_drifts
    account = Account()
    account.in_file()["NodeRecovery"] = "None"
    templates = {name.removeprefix("dev-"): each for name, each in account.head.items()}
    write_assembly(fleet / "bases" / "dev", templates, {})
    done = run("review", "dev", "prod", "--base", fleet / "bases", "--heads", heads, "--out", fleet / "fleet.md")
    assert done.exit_code == 2
    assert [row[0] for row in cells(done)[1:]] == ["dev", "prod"]
    page = (fleet / "fleet.md").read_text(encoding="utf-8")
    assert page.splitlines()[2] == "| environment | wave | account | region | result | approval |"
    assert "### dev" in page
    assert "has no cloud assembly prod" in page


def nodes_of(*groups: str) -> dict[str, Any]:
    """Return nodes that run, one for each name of a group."""
    return {
        "ClusterNodeSummaries": [
            {
                "InstanceGroupName": group,
                "InstanceId": f"i-{index:017x}",
                "InstanceType": "ml.p5.48xlarge",
                "LaunchTime": "2026-11-23T00:00:00Z",
                "InstanceStatus": {"Status": "Running"},
            }
            for index, group in enumerate(groups)
        ]
    }


def _alarms(params: Any) -> dict[str, Any]:
    """Answer to drift, which asks for one alarm, and to status, which asks for those of a cluster."""
    if "AlarmNamePrefix" in params:
        return dict(WHOLE["cloudwatch:DescribeAlarms"](params))
    return dict(Account().more["cloudwatch:DescribeAlarms"])


def _add_on(params: Any) -> dict[str, Any]:
    addon = Account().more["eks:DescribeAddon"]["addon"]
    return {"addon": {**addon, "addonName": params["addonName"]}}


HELD: dict[str, Any] = {
    "sagemaker:ListClusterNodes": nodes_of("system", "system", "h100", "h100"),
    "sagemaker:ListClusterEvents": {"Events": []},
    "eks:ListAddons": {"addons": [*EVERYWHERE]},
    "eks:DescribeAddon": _add_on,
    "cloudwatch:DescribeAlarms": _alarms,
}


def _standing(
    fleet: Path,
    checks: str,
    more: dict[str, Any] | None = None,
    *,
    count: int = 2,
    statuses: dict[str, str] | None = None,
) -> tuple[Path, Access]:
    """An environment dev, a wave alone with these checks; what is in its assembly is what is deployed."""
    waves = f"waves:\n  - {{name: a, environments: [dev], checks: {checks}}}\n"
    waves += "  - {name: b, environments: [prod, staging]}\n"
    (fleet / "fleet.yaml").write_text(waves, encoding="utf-8")
    file = fleet / "environments" / "dev.yaml"
    # its templates have another team
    file.write_text(file.read_text(encoding="utf-8").partition("\ntask_governance:")[0], encoding="utf-8")
    account = Account(more={**HELD, **(more or {})}, statuses=statuses or {})
    for side in (account.deployed, account.head):
        resources = next(each["Resources"] for each in side.values() if "Eks" in each["Resources"])
        (cni,) = (each for each in resources.values() if each["Type"] == "AWS::EKS::Addon")
        for number, name in enumerate(set(EVERYWHERE) - {"vpc-cni"}):
            resources[f"Addon{number}"] = {**cni, "Properties": {**cni["Properties"], "AddonName": name}}
    account.group("h100")["TargetCount"] = count
    templates = {name.removeprefix("dev-"): each for name, each in account.head.items()}
    write_assembly(fleet / "assemblies" / "dev", templates, {})
    return fleet / "assemblies", Access(open=lambda region, of: account.aws())  # noqa: ARG005 - one account


DENIED = Fails("AccessDeniedException", "no", 403)


@pytest.mark.parametrize(
    ("checks", "more", "count", "code", "result"),
    [
        ("[status]", {}, 2, 0, "ok"),
        ("[status, drift]", {}, 2, 0, "ok"),
        ("[]", {"sagemaker:ListClusterNodes": DENIED}, 6, 0, "ok"),
        # what no check looks at holds nobody
        ("[status]", {}, 6, 0, "ok"),
        ("[drift]", {}, 6, 1, "failed"),
        # nothing fails where nothing runs, and nothing was soaked
        ("[status]", {"sagemaker:ListClusterNodes": nodes_of()}, 2, 1, "failed"),
        # what could not be looked at holds
        ("[status]", {"sagemaker:ListClusterNodes": DENIED}, 2, 1, "skipped"),
        ("[drift]", {"sagemaker:DescribeCluster": DENIED}, 2, 1, "skipped"),
    ],
)
def test_what_holds_the_next_wave(
    *,
    run: Run,
    fleet: Path,
    one_drifts: tuple[Path, Access],  # noqa: ARG001 - makes the environment dev
    checks: str,
    more: dict[str, Any],
    count: int,
    code: int,
    result: str,
) -> None:
    heads, access = _standing(fleet, checks, more, count=count)
    done = run("hold", "dev", "--heads", heads, obj=access)
    assert (done.exit_code, cells(done)[1][4]) == (code, result), done.output


def test_an_alarm_on_a_used_up_quota_is_reported_but_stops_no_wave(
    run: Run,
    fleet: Path,
    one_drifts: tuple[Path, Access],  # noqa: ARG001 - makes the environment dev
) -> None:
    names = [f"{kind}-ml.{each}" for kind, each in (("quota", "m5.2xlarge"), ("quota", "g5.12xlarge"))]

    def alarms(state: str) -> dict[str, Any]:
        def rows(params: Any) -> dict[str, Any]:
            states = {"events": "OK", "notifications": "OK", **dict.fromkeys(names, "OK"), names[0]: state}
            prefix = params["AlarmNamePrefix"]
            return {
                "MetricAlarms": [{"AlarmName": f"{prefix}{name}", "StateValue": each} for name, each in states.items()]
            }

        return {"cloudwatch:DescribeAlarms": rows}

    heads, access = _standing(fleet, "[status]", alarms("ALARM"))
    file = fleet / "environments" / "dev.yaml"
    notify = "notify: {emails: [ml@example.com], events: [quota_used]}\n"
    file.write_text(f"{file.read_text(encoding='utf-8')}\n{notify}", encoding="utf-8")
    done = run("hold", "dev", "--heads", heads, obj=access)
    said = f"warning alarm dev-hyperpod-{names[0]} is in ALARM, which is only advice"
    assert (done.exit_code, cells(done)[1][4]) == (0, "ok"), done.output
    assert said in done.stdout
    assert said in run("status", "dev", obj=access).stdout


def _git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=dana", "-c", "user.email=dana@example.com", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)  # noqa: S607 - of the test


@pytest.mark.parametrize("is_revision", [False, True])
def test_a_review_names_who_has_no_file_any_more(
    *, run: Run, one_drifts: tuple[Path, Access], fleet: Path, is_revision: bool
) -> None:
    """A file that is removed, or renamed, deletes nothing: without its row nobody would be told of its stacks."""
    heads, _ = one_drifts
    bases = fleet / "bases"
    for name in ("dev", "prod"):
        write_assembly(bases / name, {each.removeprefix("dev-"): body for each, body in Account().head.items()}, {})
    base = str(bases)
    if is_revision:
        _git(fleet, "init", "--quiet")
        _git(fleet, "add", "environments")
        _git(fleet, "commit", "--quiet", "--message", "one")
        base = "HEAD"
    for name in ("prod", "staging"):
        (fleet / "environments" / f"{name}.yaml").unlink()
    done = run("review", "--base", base, "--heads", heads, "--format", "json")
    found = answered("fleet-report", done.stdout)
    gone = ["prod", "staging"] if is_revision else ["prod"]
    assert [each["environment"] for each in found["environments"]] == ["dev", *gone]
    for each in found["environments"][1:]:
        assert (each["passed"], each["exit_code"], each["summary"]) == (None, 0, "file removed")
        assert each["verdict"] == (
            f"it is in {base} and has no file here, so it was not compared. Its deployed resources remain, with"
            " their cost, until 'hyperpod-cdk destroy' runs with the earlier file."
        )
    assert found["passed"] is not True
    # who is asked for by name is looked at alone
    assert (
        len(
            json.loads(run("review", "dev", "--base", base, "--heads", heads, "--format", "json").stdout)[
                "environments"
            ]
        )
        == 1
    )


def test_something_else_that_is_deployed_holds(
    run: Run,
    fleet: Path,
    one_drifts: tuple[Path, Access],  # noqa: ARG001 - makes the environment dev
) -> None:
    heads, access = _standing(fleet, "[]")
    (template,) = [file for file in heads.rglob("*.json") if '"NodeRecovery"' in file.read_text(encoding="utf-8")]
    text = template.read_text(encoding="utf-8")
    template.write_text(text.replace('"NodeRecovery": "Automatic"', '"NodeRecovery": "None"'), encoding="utf-8")
    done = run("hold", "dev", "--heads", heads, obj=access)
    assert (done.exit_code, cells(done)[1][4:]) == (1, ["failed", "not as deployed"])
    assert "a deployment is waiting, failed, or ran in between" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("status", "code"),
    [
        *((status, 0) for status in ("UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "IMPORT_ROLLBACK_COMPLETE")),
        *((f"{action}_FAILED", 1) for action in ("CREATE", "UPDATE", "ROLLBACK", "DELETE", "UPDATE_ROLLBACK")),
        *((status, 1) for status in ("UPDATE_IN_PROGRESS", "IMPORT_ROLLBACK_FAILED", "PAUSED")),
    ],
)
def test_a_stack_that_is_halfway_holds(
    run: Run,
    fleet: Path,
    one_drifts: tuple[Path, Access],  # noqa: ARG001 - makes the environment dev
    status: str,
    code: int,
) -> None:
    """Its template may be that of --heads already."""
    heads, access = _standing(fleet, "[]", statuses={"dev-foundation": status})
    done = run("hold", "dev", "--heads", heads, obj=access)
    assert done.exit_code == code, done.output
    if code:
        assert cells(done)[1][4:] == ["failed", "not as deployed"]
        assert f" is {status}: a deployment is running, or stopped halfway" in " ".join(done.stdout.split())


def test_a_group_that_has_gone_since_the_deployment_holds(
    run: Run,
    fleet: Path,
    project: Path,
    one_drifts: tuple[Path, Access],  # noqa: ARG001 - makes the environment dev
) -> None:
    text = with_callers((project / "examples" / "two-teams.yaml").read_text(encoding="utf-8"))
    (fleet / "environments" / "dev.yaml").write_text(text.replace("two-teams", "dev"), encoding="utf-8")
    heads, access = _standing(fleet, "[status]")
    done = run("hold", "dev", "--heads", heads, obj=access)
    assert (done.exit_code, cells(done)[1][4]) == (1, "failed")
    assert "4 of 4 nodes run; of the file, group a10g is not in AWS." in " ".join(done.stdout.split())


def test_what_is_not_deployed_has_no_number_of_differences(run: Run, one_drifts: tuple[Path, Access]) -> None:
    heads, _ = one_drifts
    account = Account()
    account.deployed.clear()
    access = Access(open=lambda region, of: account.aws())  # noqa: ARG005 - one account
    done = run("drift", "dev", "--heads", heads, obj=access)
    assert (done.exit_code, cells(done)[1][-2:]) == (0, ["skipped", "unknown"])
    assert run("drift", "dev", "--heads", heads, "--strict", obj=access).exit_code == 1


def test_a_wrong_fleet_file_holds(
    run: Run,
    fleet: Path,
    one_drifts: tuple[Path, Access],  # noqa: ARG001 - makes the environment dev
) -> None:
    heads, access = _standing(fleet, "[none]")
    done = run("hold", "dev", "--heads", heads, obj=access)
    assert done.exit_code == 1
    assert 'waves[0].checks[0]: must be status or drift, got "none"' in done.stdout
    # none of which it was said that it is well
    assert done.stdout.startswith("error fleet.yaml:")
    assert done.stdout.endswith("\n\nNo environment was checked.\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("review",), "specify what to compare with"),
        (("review", "--base", "main", "--deployed"), "specify what to compare with"),
        (("review", "--deployed", "--out", "fleet.html"), "--out: the name must end with .md or .json"),
        (("drift", "--heads", "nowhere"), "--heads: folder nowhere does not exist"),
    ],
)
def test_wrong_words_are_one_sentence(run: Run, arguments: tuple[str, ...], said: str) -> None:
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(said)


def test_a_project_without_environments(run: Run, fleet: Path) -> None:
    for file in (fleet / "environments").iterdir():
        file.unlink()
    done = run("validate")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "create one with 'hyperpod-cdk init NAME'" in done.stderr
