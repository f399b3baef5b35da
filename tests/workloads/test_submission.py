"""The next commands, the hyp command, and the table for both."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args, get_origin

import pytest
from pydantic import BaseModel

from hyperpod_cdk.catalog import training
from hyperpod_cdk.workloads.job import Job, Kind
from hyperpod_cdk.workloads.manifests.hyperpod_pytorch import hyperpod_pytorch_job
from hyperpod_cdk.workloads.manifests.pytorch import pytorch_job
from hyperpod_cdk.workloads.manifests.render import BUILDERS
from hyperpod_cdk.workloads.plan import Plan
from hyperpod_cdk.workloads.submission import NextSteps, hyp_parameters_page, next_steps
from tests.support.assembly import PROJECT
from tests.workloads.groups import environment as environment_of
from tests.workloads.groups import planned as planned_there
from tests.workloads.schemas import pod_templates
from tests.workloads.training_jobs import EXAMPLES, PROD, TIERED, example, planned

LAB = "tests/workloads/environment.yaml"
EVERYTHING: dict[str, Any] = {
    "team": "research",
    "priority": "training",
    "image_pull_policy": "Always",
    "passed_deep_health_checks": True,
    "environment": {"HF_HOME": "/data/it's"},
    "secrets": {"HF_TOKEN": {"secret": "hugging-face", "key": "token"}},
    "volumes": [{"claim": "scratch", "mount_path": "/data", "sub_path": "runs", "read_only": True}],
    "service_account": "trainer",
    "shared_memory_gib": 64,
    "topology": {
        "preferred": "topology.k8s.aws/network-node-layer-3",
        "required": "topology.k8s.aws/network-node-layer-2",
    },
    "restart": {
        "max_retries": 5,
        "evaluation_seconds": 60,
        "before_full": 2,
        "max_full": 1,
        "spares": 1,
        "shutdown_seconds": 90,
    },
    "log_monitoring": [{"name": "hang", "pattern": ".*loss.*", "expected_every_seconds": 60}],
    "elastic": {
        "min_nodes": 1,
        "max_nodes": 2,
        "increment": 1,
        "graceful_shutdown_seconds": 600,
        "scaling_seconds": 60,
        "snooze_seconds": 30,
        "faulty_scale_down_seconds": 20,
    },
}
LISTED: dict[str, Any] = {"elastic": {"min_nodes": 1, "max_nodes": 2, "values": [1, 2]}}


def steps_of(plan: Plan, *, file: str = "-") -> NextSteps:
    return next_steps(plan, hyperpod_pytorch_job(plan), file=file)


def hyp_options_of(plan: Plan) -> list[tuple[str, str]]:
    line = steps_of(plan).hyp
    assert line is not None
    words = shlex.split(line.replace("\\\n", " "))
    assert words[:3] == ["hyp", "create", "hyp-pytorch-job"]
    return list(zip(words[3::2], words[4::2], strict=True))


def test_a_training_job() -> None:
    steps = steps_of(example("research"), file="research.yaml")
    assert steps.apply == "kubectl apply -f research.yaml"
    assert steps.watch == (
        "kubectl get hyperpodpytorchjob,pods -n hyperpod-ns-research -l app.kubernetes.io/instance=research",
        "kubectl get workloads.kueue.x-k8s.io -n hyperpod-ns-research",
        "kubectl logs -n hyperpod-ns-research -f research-pods-0",
    )
    assert steps.remove == "kubectl delete -f research.yaml"


def test_manifests_from_the_input_are_removed_by_name() -> None:
    steps = steps_of(planned())
    assert steps.apply == "kubectl apply -f -"
    assert steps.remove == "kubectl delete hyperpodpytorchjob -n default -l app.kubernetes.io/instance=llm"


def test_a_job_without_a_team_waits_for_no_quota() -> None:
    assert steps_of(planned()).watch == (
        "kubectl get hyperpodpytorchjob,pods -n default -l app.kubernetes.io/instance=llm",
        "kubectl logs -n default -f llm-pods-0",
    )


def test_hyp_makes_no_pytorch_job() -> None:
    plan = example("john-fsdp")
    steps = next_steps(plan, pytorch_job(plan))
    assert (steps.hyp, steps.without_hyp) == (None, ())
    assert steps.watch[-1] == "kubectl logs -n hyperpod-ns-john -f fsdp-worker-0"
    assert list(steps.lines()) == [
        "# start it: pipe the manifests into",
        "kubectl apply -f -",
        "# watch it",
        *steps.watch,
        "# remove it",
        steps.remove,
    ]


@pytest.mark.parametrize(
    ("kind", "logs"),
    [
        (
            "nccl",
            (
                "kubectl logs -n default -l app.kubernetes.io/instance=nccl-h100,app.kubernetes.io/component=launcher"
                " --prefix --tail=-1 --max-log-requests=5 | hyperpod-cdk job report"
            ),
        ),
        (
            "dcgm",
            (
                "kubectl logs -n default -l app.kubernetes.io/instance=dcgm-h100"
                " --prefix --tail=-1 --max-log-requests=16 | hyperpod-cdk job report"
            ),
        ),
        (
            "neuron-info",
            (
                "kubectl logs -n default -l app.kubernetes.io/instance=neuron-info-h100"
                " --prefix --tail=-1 --max-log-requests=16"
            ),
        ),
    ],
)
def test_what_tests_print_goes_to_the_report(kind: str, logs: str) -> None:
    nodes = 2 if kind == "nccl" else 16
    plan = planned(TIERED, kind=kind, name=None, image="registry/tests:1", command=[], nodes=nodes)
    steps = next_steps(plan, [{"kind": "MPIJob"}, {"kind": "MPIJob"}, {"kind": "ConfigMap"}])
    assert steps.watch[0].startswith("kubectl get mpijob,configmap,pods -n default -l ")
    assert steps.watch[-1] == logs
    assert steps.hyp is None


@pytest.mark.parametrize(
    ("kind", "file", "group"),
    [
        ("efa-info", TIERED, "h100"),
        ("nccl", TIERED, "h100"),
        ("dcgm", TIERED, "h100"),
        ("neuron-info", "examples/trainium.yaml", "trn2"),
        ("nccom", "examples/trainium.yaml", "trn2"),
    ],
)
def test_the_selector_finds_the_pods_that_print(kind: Kind, file: str, group: str) -> None:
    plan = planned(file, kind=kind, group=group, name=None, image=None, command=[])
    manifests = BUILDERS[kind](plan)
    selector = re.findall(r" -l (\S+)", next_steps(plan, manifests).watch[-1])[0]
    wanted = dict(pair.split("=") for pair in selector.split(","))
    found = [
        template
        for manifest in manifests
        for _, template in pod_templates(manifest)
        if template["metadata"]["labels"].items() >= wanted.items()
    ]
    assert len(found) == 1
    assert all(manifest["metadata"]["labels"]["app.kubernetes.io/instance"] == plan.name for manifest in manifests)


def test_the_line_for_hyp() -> None:
    assert hyp_options_of(planned(**EVERYTHING)) == [
        ("--job-name", "llm"),
        ("--namespace", "hyperpod-ns-research"),
        ("--image", "registry/training:1"),
        ("--pull-policy", "Always"),
        (
            "--command",
            (
                "[hyperpodrun, --nnodes=2, --nproc-per-node=8, --tee=3, --log-dir=/tmp/hyperpod,"
                " --shutdown-signal=SIGTERM, --shutdown-timeout=90, train.py, --steps, 10]"
            ),
        ),
        (
            "--environment",
            json.dumps({**planned(**EVERYTHING).variables, "HYPERPOD_SIGNAL_COORDINATION": "distributed"}),
        ),
        ("--instance-type", "ml.p5.48xlarge"),
        (
            "--label-selector",
            (
                '{"sagemaker.amazonaws.com/instance-group-name": "h100",'
                ' "sagemaker.amazonaws.com/node-health-status": "Schedulable"}'
            ),
        ),
        ("--deep-health-check-passed-nodes-only", "true"),
        ("--replica-count", "1"),
        ("--tasks-per-node", "8"),
        ("--accelerators", "8"),
        ("--accelerators-limit", "8"),
        ("--vcpu", str(planned().vcpu)),
        ("--memory", str(planned().memory_gib)),
        ("--efa", "32"),
        ("--efa-limit", "32"),
        ("--service-account-name", "trainer"),
        ("--volume", "name=scratch-1,type=pvc,mount_path=/data,claim_name=scratch"),
        ("--queue-name", "hyperpod-ns-research-localqueue"),
        ("--priority", "training-priority"),
        ("--preferred-topology", "topology.k8s.aws/network-node-layer-3"),
        ("--required-topology", "topology.k8s.aws/network-node-layer-2"),
        ("--max-retry", "5"),
        ("--max-replica-count", "2"),
        ("--elastic-replica-increment-step", "1"),
        ("--elastic-graceful-shutdown-timeout-in-seconds", "600"),
        ("--elastic-scaling-timeout-in-seconds", "60"),
        ("--elastic-scale-up-snooze-time-in-seconds", "30"),
    ]


def test_hyp_gets_the_step_of_an_elastic_job() -> None:
    def step(**sizes: Any) -> str | None:
        return dict(hyp_options_of(planned(elastic={"min_nodes": 2, "max_nodes": 4, **sizes}))).get(
            "--elastic-replica-increment-step"
        )

    assert (step(), step(increment=2), step(values=[2, 4])) == ("1", "2", None)


def test_what_hyp_leaves_out() -> None:
    plan = planned(**EVERYTHING)
    steps = steps_of(plan)
    assert steps.without_hyp == (
        "elastic.faulty_scale_down_seconds",
        "restart.evaluation_seconds",
        "restart.before_full",
        "restart.max_full",
        "restart.shutdown_seconds",
        "restart.spares",
        "log_monitoring",
        "secrets",
        "volumes[].sub_path",
        "volumes[].read_only",
        "shared_memory_gib",
        *([f"{plan.hugepages_mib} MiB of huge pages"] if plan.hugepages_mib else []),
        "separate shared memory of the pod (hyp supports folders of the node, which pod_security: baseline refuses)",
        "nodes together with elastic.min_nodes",
    )
    assert list(steps.lines())[-1] == f"# hyp cannot express: {'; '.join(steps.without_hyp)}"


def test_hyp_leaves_out_what_one_volume_of_two_says() -> None:
    volumes = [
        {"claim": "scratch", "mount_path": "/data", "sub_path": "runs"},
        {"claim": "scratch", "mount_path": "/b"},
    ]
    assert "volumes[].sub_path" in steps_of(planned(volumes=volumes)).without_hyp
    assert "volumes[].read_only" not in steps_of(planned(volumes=volumes)).without_hyp


def test_hyp_leaves_out_little_of_a_job_on_one_accelerator() -> None:
    plan = planned(accelerators_per_node=1, topology={"required": "kubernetes.io/hostname"})
    assert steps_of(plan).without_hyp == (
        "separate shared memory of the pod (hyp supports folders of the node, which pod_security: baseline refuses)",
        "topology by kubernetes.io/hostname",
    )
    assert {option for option, _ in hyp_options_of(plan)}.isdisjoint({"--efa", "--efa-limit", "--required-topology"})


def test_hyp_gets_partitions() -> None:
    options = dict(hyp_options_of(planned(LAB, group="slices", accelerators_per_node=2, nodes=1)))
    assert options["--accelerator-partition-type"] == "mig-3g.20gb"
    assert options["--accelerator-partition-count"] == options["--accelerator-partition-limit"] == "2"
    assert options.keys().isdisjoint({"--accelerators", "--replica-count"})


@pytest.mark.parametrize("fields", [{"nodes": 2}, {"nodes": 1, "elastic": {"min_nodes": 1, "max_nodes": 2}}])
def test_hyp_takes_no_number_of_nodes_beside_partitions(fields: dict[str, Any]) -> None:
    steps = steps_of(planned(LAB, group="slices", **fields))
    assert (steps.hyp, steps.without_hyp) == (None, ("a number of nodes together with partitions of GPUs",))
    assert list(steps.lines())[-1] == "# hyp cannot express: a number of nodes together with partitions of GPUs"


def test_hyp_takes_one_type_and_no_labels_of_nodes_to_come() -> None:
    plan = planned(LAB, group="elastic")
    options = dict(hyp_options_of(plan))
    assert options["--instance-type"] == "ml.g6.12xlarge"
    assert "--label-selector" not in options
    assert "2 instance types" in steps_of(plan).without_hyp


def test_hyp_mounts_folders_of_the_node_where_the_team_may() -> None:
    trusted = environment_of(
        "ml.p5.48xlarge", hyperpod={"tiered_checkpointing": {"memory_percent": 20}}, pod_security="privileged"
    )
    fields: dict[str, Any] = {"name": "llm", "image": "i:1", "command": ["train.py"], "checkpoints": {"tiered": True}}
    plan = planned_there(trusted, "hyperpod-pytorch", team="research", **fields)
    options = hyp_options_of(plan)
    assert ("--volume", "name=shared-memory,type=hostPath,mount_path=/dev/shm,path=/dev/shm") in options
    logs = "mount_path=/var/log/sagemaker_checkpointing,path=/var/logs/sagemaker_checkpointing"
    assert ("--volume", f"name=checkpoint-logs,type=hostPath,{logs}") in options
    assert "locked memory (IPC_LOCK)" in steps_of(plan).without_hyp


def test_hyp_gets_the_variables_of_tiered_checkpoints() -> None:
    options = hyp_options_of(planned(TIERED, team="research", checkpoints={"tiered": True}))
    assert json.loads(dict(options)["--environment"])["TIERED_CHECKPOINT_NAMESPACE"] == "hyperpod-ns-research-llm"
    assert not [value for option, value in options if option == "--volume" and "hostPath" in value]


@pytest.mark.parametrize(
    ("command", "what"),
    [
        (["train.py", "--sizes=1,2"], "a comma"),
        (["train.py", ""], "white space around an argument, or an empty one,"),
        (["train.py", " 1"], "white space around an argument, or an empty one,"),
        (["train.py", "[1]"], "a bracket at its beginning or end"),
    ],
)
def test_a_command_that_hyp_would_change(command: list[str], what: str) -> None:
    steps = steps_of(planned(command=command))
    assert steps.hyp is None
    assert steps.without_hyp == (f"{what} in command, which hyp parses as a list",)


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_lines_are_commands_or_comments(name: str) -> None:
    plan = example(name)
    builder = pytorch_job if plan.kind == "pytorch" else hyperpod_pytorch_job
    lines = list(next_steps(plan, builder(plan)).lines())
    assert {line.split()[0] for line in lines if not line.startswith((" ", "#"))} <= {"kubectl", "hyp"}


# --- the table ---


def test_every_key_is_one_of_a_job_file() -> None:
    keys = [key for row in training.HYP_PARAMETERS for key in row.keys]
    for key in [*keys, *(key for key, _ in training.WITHOUT_HYP_OPTION)]:
        assert _has_field(Job, key.replace("[]", "").split(".")), key


def test_every_path_leads_somewhere() -> None:
    jobs = [
        *hyperpod_pytorch_job(planned(**EVERYTHING)),
        *hyperpod_pytorch_job(planned(**LISTED)),
    ]
    paths = [row.manifest for row in training.HYP_PARAMETERS if row.keys]
    # arguments are part of our command, and partitions of other groups
    paths.remove(("container", "args"))
    for path in [*paths, *(path for _, path in training.WITHOUT_HYP_OPTION)]:
        assert any(_leads(job, path) for job in jobs), path


def test_what_is_offered_is_used_but_for_other_words_of_the_same() -> None:
    used = {
        option
        for plan in (planned(**EVERYTHING), planned(**LISTED), planned(LAB, group="slices", nodes=1))
        for option, _ in hyp_options_of(plan)
    }
    offered = {row.option for row in training.HYP_PARAMETERS if row.keys}
    assert used <= offered
    assert offered - used == {"--args", "--node-count", "--max-node-count"}


def test_the_page_is_up_to_date_and_names_every_option() -> None:
    page = hyp_parameters_page()
    assert (PROJECT / "docs" / "hyp-parameters.md").read_text(encoding="utf-8") == page
    assert re.findall(r"^\| `(--[a-z-]+)`", page, re.MULTILINE) == [row.option for row in training.HYP_PARAMETERS]
    assert '| `--queue-name` | `team` | `metadata.labels["kueue.x-k8s.io/queue-name"]` |' in page
    assert "| `--vcpu-limit` | - | - | not offered: " in page


def test_the_example_of_the_environment_is_the_one_that_a_file_names() -> None:
    for name, environment in EXAMPLES.items():
        text = (PROJECT / "examples" / "jobs" / f"{name}.yaml").read_text(encoding="utf-8")
        shown = "prod" if environment == PROD else environment
        assert f"#   hyperpod-cdk job render {shown} --job examples/jobs/{name}.yaml | kubectl apply -f -" in text


def _leads(job: Mapping[str, Any], path: Sequence[str]) -> bool:
    (replicas,) = job["spec"]["replicaSpecs"]
    template = replicas["template"]
    roots: dict[str, Any] = {
        "metadata": job["metadata"],
        "spec": job["spec"],
        "replicas": replicas,
        "template": template,
        "pod": template["spec"],
        "container": template["spec"]["containers"][0],
    }
    value: Any = roots
    for word in path:
        if not isinstance(value, Mapping) or word not in value:
            return False
        value = value[word]
    return True


def _has_field(model: type[BaseModel], path: Sequence[str]) -> bool:
    field = model.model_fields.get(path[0])
    if field is None or len(path) == 1:
        return field is not None
    return any(_has_field(inner, path[1:]) for inner in _models(field.annotation))


def _models(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and get_origin(annotation) is None and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)
