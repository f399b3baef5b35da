"""HyperPodPyTorchJobs: sizes, restarts, rules over the log, the elastic agent's launcher."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from hyperpod_cdk.workloads.manifests.hyperpod_pytorch import hyperpod_pytorch_job
from hyperpod_cdk.workloads.plan import Plan
from tests.workloads.schemas import check
from tests.workloads.training_jobs import container, example, planned, variables


def spec_of(plan: Plan) -> dict[str, Any]:
    (job,) = hyperpod_pytorch_job(plan)
    check(job)
    assert (job["apiVersion"], job["kind"]) == ("sagemaker.amazonaws.com/v1", "HyperPodPyTorchJob")
    spec: dict[str, Any] = job["spec"]
    return spec


def replicas_of(plan: Plan) -> dict[str, Any]:
    (replicas,) = spec_of(plan)["replicaSpecs"]
    assert isinstance(replicas, dict)
    return replicas


def test_a_plain_job_says_no_more_than_it_has_to() -> None:
    spec = spec_of(planned())
    assert {key: value for key, value in spec.items() if key != "replicaSpecs"} == {
        "nprocPerNode": "8",
        "runPolicy": {"cleanPodPolicy": "None", "jobMaxRetryCount": 3},
    }
    replicas = {key: value for key, value in spec["replicaSpecs"][0].items() if key != "template"}
    assert replicas == {"name": "pods", "replicas": 2}


def test_the_launcher_is_the_elastic_agent() -> None:
    worker = container(replicas_of(planned(nodes=1))["template"])
    assert worker["command"] == [
        "hyperpodrun",
        "--nnodes=1",
        "--nproc-per-node=8",
        "--tee=3",
        "--log-dir=/tmp/hyperpod",
        "--shutdown-signal=SIGTERM",
        "--shutdown-timeout=30",
        "train.py",
        "--steps",
        "10",
    ]
    assert worker["ports"] == [{"containerPort": 8080}]


def test_a_command_may_start_everything_itself() -> None:
    worker = container(replicas_of(planned(launcher=False, command=["/start.sh"]))["template"])
    assert worker["command"] == ["/start.sh"]


def test_elastic_in_steps() -> None:
    plan = example("pre-training")
    assert spec_of(plan)["elasticPolicy"] == {
        "minReplicas": 2,
        "maxReplicas": 8,
        "replicaIncrementStep": 2,
        "gracefulShutdownTimeoutInSeconds": 600,
        "scalingTimeoutInSeconds": 60,
        "faultyScaleDownTimeoutInSeconds": 30,
    }
    replicas = replicas_of(plan)
    assert (replicas["replicas"], replicas["maxReplicas"]) == (2, 8)
    # the agent takes one number, and elastic_event_detected() says nothing without the variable
    assert container(replicas["template"])["command"][1] == "--nnodes=2"
    assert variables(replicas["template"])["HYPERPOD_SIGNAL_COORDINATION"] == "distributed"


@pytest.mark.parametrize(
    ("stated", "sizes"),
    [
        ({}, {"replicaIncrementStep": 1}),
        ({"increment": 3}, {"replicaIncrementStep": 3}),
        ({"values": [1, 2]}, {"replicaDiscreteValues": [1, 2]}),
    ],
)
def test_elastic_sizes(stated: dict[str, object], sizes: dict[str, object]) -> None:
    spec = spec_of(planned(elastic={"min_nodes": 1, "max_nodes": 2, **stated}))
    assert spec["elasticPolicy"] == {"minReplicas": 1, "maxReplicas": 2, **sizes}


def test_a_job_of_fixed_size_hears_of_no_change() -> None:
    assert "HYPERPOD_SIGNAL_COORDINATION" not in variables(replicas_of(planned())["template"])


@pytest.mark.parametrize(
    ("restart", "elastic", "policy"),
    [
        ({}, {}, None),
        ({"evaluation_seconds": 60}, {}, {"evalPeriodSeconds": 60}),
        ({"max_full": 0}, {}, {"evalPeriodSeconds": 3600, "maxFullJobRestarts": 0}),
        ({"before_full": 3}, {}, {"evalPeriodSeconds": 3600, "numRestartBeforeFullJobRestart": 3}),
        ({}, {"snooze_seconds": 0}, {"evalPeriodSeconds": 3600, "scaleUpSnoozeTimeInSeconds": 0}),
        (
            {"evaluation_seconds": 90, "before_full": 2, "max_full": 1},
            {"snooze_seconds": 5},
            {
                "evalPeriodSeconds": 90,
                "numRestartBeforeFullJobRestart": 2,
                "maxFullJobRestarts": 1,
                "scaleUpSnoozeTimeInSeconds": 5,
            },
        ),
    ],
)
def test_restart_policy(restart: dict[str, int], elastic: dict[str, int], policy: dict[str, int] | None) -> None:
    spec = spec_of(planned(restart=restart, elastic={"min_nodes": 1, "max_nodes": 2, **elastic}))
    assert spec["runPolicy"].get("restartPolicy") == policy


def test_spares() -> None:
    plan = planned(nodes=1, team="research", restart={"spares": 1, "max_retries": 9})
    assert spec_of(plan)["runPolicy"]["jobMaxRetryCount"] == 9
    assert (replicas_of(plan)["replicas"], replicas_of(plan)["spares"]) == (1, 1)


def test_rules_over_the_log() -> None:
    rules = [
        {"name": "start", "pattern": ".*step.*", "expected_start_seconds": 600, "stop_pattern": ".*step 1 .*"},
        {
            "name": "slow",
            "pattern": ".*samples/s: ([0-9.]+).*",
            "expected_every_seconds": 60,
            "metric_limit": 80,
            "operator": "lteq",
            "evaluations": 25,
        },
        {"name": "memory", "pattern": ".*out of memory.*", "fault_on_match": True},
    ]
    assert spec_of(planned(log_monitoring=rules))["runPolicy"]["logMonitoringConfiguration"] == [
        {
            "name": "start",
            "logPattern": ".*step.*",
            "stopPattern": ".*step 1 .*",
            "expectedStartCutOffInSeconds": 600,
        },
        {
            "name": "slow",
            "logPattern": ".*samples/s: ([0-9.]+).*",
            "expectedRecurringFrequencyInSeconds": 60,
            "metricThreshold": 80,
            "operator": "lteq",
            "metricEvaluationDataPoints": 25,
        },
        {"name": "memory", "logPattern": ".*out of memory.*", "faultOnMatch": True},
    ]


# the rules that AWS's guide shows (page sagemaker-eks-operator-usage), in the job file's words
AWS_RULES = (
    {"name": "JobStart", "pattern": ".*Experiment configuration.*", "expected_start_seconds": 120},
    {
        "name": "JobHangingDetection",
        "pattern": r".*\[Epoch 0 Batch \d+.*'training_loss_step': (\d+(\.\d+)?).*",
        "expected_every_seconds": 300,
        "expected_start_seconds": 600,
    },
    {
        "name": "NoS3CheckpointingDetection",
        "pattern": ".*The checkpoint is finalized. All shards is written.*",
        "expected_every_seconds": 600,
        "expected_start_seconds": 1800,
    },
)


def test_the_rules_of_the_operators_guide_are_taken_with_their_names() -> None:
    policy = spec_of(planned(log_monitoring=AWS_RULES))["runPolicy"]
    assert [(rule["name"], rule["logPattern"]) for rule in policy["logMonitoringConfiguration"]] == [
        (rule["name"], rule["pattern"]) for rule in AWS_RULES
    ]


@pytest.mark.parametrize("name", ["a", "A_b-9", "x" * 63])
def test_names_of_rules_at_their_bounds_are_taken(name: str) -> None:
    rule = {"name": name, "pattern": ".*x", "fault_on_match": True}
    (written,) = spec_of(planned(log_monitoring=[rule]))["runPolicy"]["logMonitoringConfiguration"]
    assert written["name"] == name


@pytest.mark.parametrize("name", ["", "9a", "a-", "a b", "x" * 64])
def test_names_of_rules_beyond_their_bounds_are_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="1 to 63 letters, digits, hyphens and underscores"):
        planned(log_monitoring=[{"name": name, "pattern": ".*x", "fault_on_match": True}])
