"""Pods that train: checkpoints and the time to write one."""

from __future__ import annotations

from typing import Any

import pytest

from hyperpod_cdk.workloads.manifests.training_pods import processes, service_account, training_template
from hyperpod_cdk.workloads.plan import Plan
from tests.workloads.groups import environment
from tests.workloads.groups import planned as planned_there
from tests.workloads.training_jobs import TIERED, container, planned, variables

LOGS = {"name": "checkpoint-logs", "mountPath": "/var/log/sagemaker_checkpointing"}


def template_of(plan: Plan) -> dict[str, Any]:
    return training_template(plan, container="pytorch", launcher=())


def checkpoint_variables(plan: Plan) -> dict[str, str]:
    return {name: value for name, value in variables(template_of(plan)).items() if "CHECKPOINT" in name}


def test_a_job_without_checkpoints_hears_of_none() -> None:
    assert checkpoint_variables(planned()) == {}
    assert [mount["name"] for mount in container(template_of(planned()))["volumeMounts"]] == ["shared-memory"]


@pytest.mark.parametrize(
    ("stated", "address"),
    [
        ("s3://my-checkpoints/llama", "s3://my-checkpoints/llama"),
        ("s3://my-checkpoints/llama/", "s3://my-checkpoints/llama"),
        ("my-checkpoints", "s3://my-checkpoints"),
    ],
)
def test_programs_read_where_checkpoints_go(stated: str, address: str) -> None:
    plan = planned(checkpoints={"path": "/data/checkpoints", "s3_uri": stated})
    assert checkpoint_variables(plan) == {"CHECKPOINT_PATH": "/data/checkpoints", "CHECKPOINT_S3_URI": address}


def test_a_variable_of_the_job_wins() -> None:
    plan = planned(checkpoints={"path": "/data"}, environment={"CHECKPOINT_PATH": "/mine"})
    assert checkpoint_variables(plan) == {"CHECKPOINT_PATH": "/mine"}


def test_tiered_checkpoints_have_a_name_of_their_own_in_the_cluster() -> None:
    found = variables(template_of(planned(TIERED, team="research", checkpoints={"tiered": True})))
    assert found["TIERED_CHECKPOINT_NAMESPACE"] == found["TRAINING_JOB_NAME"] == "hyperpod-ns-research-llm"


def test_the_log_of_tiered_checkpoints_goes_with_the_pod_that_may_not_mount_its_node() -> None:
    spec = template_of(planned(TIERED, checkpoints={"tiered": True}))["spec"]
    assert LOGS in spec["containers"][0]["volumeMounts"]
    assert {"name": "checkpoint-logs", "emptyDir": {}} in spec["volumes"]


def test_the_log_of_tiered_checkpoints_stays_on_the_node_of_a_privileged_team() -> None:
    trusted = environment(
        "ml.p5.48xlarge", hyperpod={"tiered_checkpointing": {"memory_percent": 20}}, pod_security="privileged"
    )
    fields: dict[str, Any] = {"name": "llm", "image": "i:1", "checkpoints": {"tiered": True}}
    spec = template_of(planned_there(trusted, "hyperpod-pytorch", team="research", **fields))["spec"]
    assert {
        "name": "checkpoint-logs",
        "hostPath": {"path": "/var/logs/sagemaker_checkpointing", "type": "DirectoryOrCreate"},
    } in spec["volumes"]


def test_a_claim_may_have_the_name_of_that_volume() -> None:
    volumes = [{"claim": "checkpoint-logs", "mount_path": "/data"}]
    spec = template_of(planned(TIERED, checkpoints={"tiered": True}, volumes=volumes))["spec"]
    assert [volume["name"] for volume in spec["volumes"]] == ["shared-memory", "checkpoint-logs", "checkpoint-logs-2"]


def test_a_claim_may_take_that_log() -> None:
    volumes = [{"claim": "exports", "mount_path": "/var/log/sagemaker_checkpointing"}]
    spec = template_of(planned(TIERED, checkpoints={"tiered": True}, volumes=volumes))["spec"]
    assert [volume["name"] for volume in spec["volumes"]] == ["shared-memory", "exports"]


@pytest.mark.parametrize(
    ("fields", "account"),
    [
        ({"team": "research", "checkpoints": {"tiered": True}}, "trainer"),
        ({"team": "research", "checkpoints": {"tiered": True}, "service_account": "mine"}, "mine"),
        ({"team": "research", "checkpoints": {"path": "/data"}}, None),
        ({"checkpoints": {"tiered": True}}, None),
    ],
)
def test_tiered_jobs_use_the_account_with_rights(fields: dict[str, object], account: str | None) -> None:
    plan = planned(TIERED, **fields)
    assert service_account(plan) == account
    assert template_of(plan)["spec"].get("serviceAccountName") == account


@pytest.mark.parametrize(("stated", "seconds"), [({}, 60), ({"shutdown_seconds": 600}, 630)])
def test_kubernetes_waits_longer_than_the_agent(stated: dict[str, int], seconds: int) -> None:
    assert template_of(planned(restart=stated))["spec"]["terminationGracePeriodSeconds"] == seconds


@pytest.mark.parametrize(
    ("file", "fields", "expected"),
    [
        ("environments/prod.yaml", {}, 8),
        ("environments/prod.yaml", {"accelerators_per_node": 2}, 2),
        ("environments/prod.yaml", {"group": "system"}, 1),
        ("examples/two-teams.yaml", {"group": "a10g"}, 4),
        ("examples/trainium.yaml", {"group": "trn2"}, 64),
        ("examples/trainium.yaml", {"group": "trn2", "accelerators_per_node": 4}, 16),
    ],
)
def test_processes(file: str, fields: dict[str, object], expected: int) -> None:
    assert processes(planned(file, **fields)) == expected
