"""Commands that start, watch and remove a job, the same with ``hyp``, and what ``hyp`` cannot express."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hyperpod_cdk.catalog import scheduling, training
from hyperpod_cdk.workloads.job import KINDS, TRAINING, Elastic
from hyperpod_cdk.workloads.manifests.hyperpod_pytorch import launcher
from hyperpod_cdk.workloads.manifests.pods import COMPONENT_LABEL, INSTANCE_LABEL, LAUNCHER
from hyperpod_cdk.workloads.manifests.training_pods import is_tiered, processes, service_account, training_variables
from hyperpod_cdk.workloads.nodes import mig_profile
from hyperpod_cdk.workloads.plan import MPI, SHARED_MEMORY_PATH, Plan

_SHARED_MEMORY = f"name=shared-memory,type=hostPath,mount_path={SHARED_MEMORY_PATH},path={SHARED_MEMORY_PATH}"


@dataclass(frozen=True, kw_only=True)
class NextSteps:
    """Commands for a shell, each on one line; ``hyp`` is one command over several lines, or None if there is none.

    ``without_hyp`` is the reason why there is none, or what that command omits.
    """

    apply: str
    watch: tuple[str, ...]
    remove: str
    hyp: str | None
    without_hyp: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        """Yield the commands as lines of a shell script, with a comment above each group."""
        yield "# start it: pipe the manifests into" if self.apply.endswith(" -") else "# start it"
        yield self.apply
        yield "# watch it"
        yield from self.watch
        yield "# remove it"
        yield self.remove
        if self.hyp is not None:
            yield "# the same with hyp, instead of kubectl apply"
            yield from self.hyp.splitlines()
        if self.without_hyp:
            yield f"# hyp cannot express: {'; '.join(self.without_hyp)}"


def next_steps(plan: Plan, manifests: Sequence[Mapping[str, Any]], *, file: str = "-") -> NextSteps:
    """Return the commands for the job whose ``manifests`` are in ``file``, a file, a folder or - for the input."""
    where = ["-n", plan.namespace]
    mine = f"{INSTANCE_LABEL}={plan.name}"
    kinds = ",".join(dict.fromkeys(str(manifest["kind"]).lower() for manifest in manifests))
    watch = [["kubectl", "get", f"{kinds},pods", *where, "-l", mine]]
    if plan.queue is not None:
        # the conditions of its workload show why a job waits for its quota
        watch.append(["kubectl", "get", "workloads.kueue.x-k8s.io", *where])
    hyp, without = _hyp(plan)
    return NextSteps(
        apply=shlex.join(["kubectl", "apply", "-f", file]),
        watch=(*(shlex.join(words) for words in watch), _logs(plan, mine)),
        # standard input has already been read
        remove=shlex.join(
            ["kubectl", "delete", kinds, *where, "-l", mine] if file == "-" else ["kubectl", "delete", "-f", file]
        ),
        hyp=hyp,
        without_hyp=without,
    )


def _logs(plan: Plan, mine: str) -> str:
    words = ["kubectl", "logs", "-n", plan.namespace]
    if plan.kind == "pytorch":
        return shlex.join([*words, "-f", f"{plan.name}-worker-0"])
    if plan.kind == "hyperpod-pytorch":
        return shlex.join([*words, "-f", f"{plan.name}-{training.HYPERPOD_REPLICAS}-0"])
    chosen = f"{mine},{COMPONENT_LABEL}={LAUNCHER}" if plan.kind in MPI else mine
    # with a selector, kubectl shows only the last ten lines of at most five pods
    line = shlex.join([*words, "-l", chosen, "--prefix", "--tail=-1", f"--max-log-requests={max(5, plan.nodes)}"])
    return line if plan.kind == "neuron-info" or plan.kind not in KINDS else f"{line} | hyperpod-cdk job report"


def _hyp(plan: Plan) -> tuple[str | None, tuple[str, ...]]:
    if plan.kind != "hyperpod-pytorch":
        # hyp creates no other kind of job
        return None, ()
    command = [*(launcher(plan) if plan.job.launcher else ()), *plan.job.command]
    unsupported = _unsupported(plan, command)
    if unsupported is not None:
        return None, (unsupported,)
    options = [f"{option} {shlex.quote(value)}" for option, value in hyp_options(plan, command)]
    return " \\\n  ".join([training.HYP_COMMAND, *options]), tuple(_left_out(plan))


def hyp_options(plan: Plan, command: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the options of ``hyp create hyp-pytorch-job`` for the job, with their values."""
    job = plan.job
    variables = {
        name: value
        for name, value in {**plan.variables, **training_variables(plan), **job.environment}.items()
        if name not in job.secrets
    }
    yield "--job-name", plan.name
    yield "--namespace", plan.namespace
    yield "--image", plan.image
    yield from _maybe("--pull-policy", job.image_pull_policy)
    yield "--command", f"[{', '.join(command)}]"
    if variables:
        yield "--environment", json.dumps(variables)
    yield "--instance-type", plan.shape.instance_types[0]
    if not plan.is_autoscaled:
        # nodes that Karpenter has not created yet have no such labels
        yield "--label-selector", json.dumps(_labels(plan))
    if job.passed_deep_health_checks:
        yield "--deep-health-check-passed-nodes-only", "true"
    if not _has_partitions(plan):
        yield "--replica-count", str(plan.nodes if job.elastic is None else job.elastic.min_nodes)
    yield "--tasks-per-node", str(processes(plan))
    yield from _resources(plan)
    yield from _maybe("--service-account-name", service_account(plan))
    if plan.may_use_the_node:
        yield "--volume", _SHARED_MEMORY
    for number, volume in enumerate(job.volumes, start=1):
        # a claim can be mounted twice, but names of volumes must be unique
        name = f"{volume.claim}-{number}"
        yield "--volume", f"name={name},type=pvc,mount_path={volume.mount_path},claim_name={volume.claim}"
    if is_tiered(plan) and plan.may_use_the_node:
        logs = f"mount_path={training.CHECKPOINT_LOGS},path={training.CHECKPOINT_HOST_LOGS}"
        yield "--volume", f"name=checkpoint-logs,type=hostPath,{logs}"
    yield from _maybe("--queue-name", plan.queue)
    yield from _maybe("--priority", plan.priority_class)
    if job.topology is not None:
        for option, label in (
            ("--preferred-topology", job.topology.preferred),
            ("--required-topology", job.topology.required),
        ):
            yield from _maybe(option, label if label in training.HYP_TOPOLOGIES else None)
    yield "--max-retry", str(job.restart.max_retries)
    if job.elastic is not None:
        yield from _elastic(job.elastic)


def _elastic(elastic: Elastic) -> Iterator[tuple[str, str]]:
    yield "--max-replica-count", str(elastic.max_nodes)
    if elastic.values:
        yield "--elastic-replica-discrete-values", f"[{', '.join(str(value) for value in elastic.values)}]"
    else:
        yield "--elastic-replica-increment-step", str(elastic.increment or 1)
    yield from _maybe("--elastic-graceful-shutdown-timeout-in-seconds", elastic.graceful_shutdown_seconds)
    yield from _maybe("--elastic-scaling-timeout-in-seconds", elastic.scaling_seconds)
    yield from _maybe("--elastic-scale-up-snooze-time-in-seconds", elastic.snooze_seconds)


def _resources(plan: Plan) -> Iterator[tuple[str, str]]:
    if _has_partitions(plan):
        yield from _maybe("--accelerator-partition-type", mig_profile(plan.group))
        yield "--accelerator-partition-count", str(plan.accelerators)
        yield "--accelerator-partition-limit", str(plan.accelerators)
    elif plan.shape.accelerator_resource is not None and plan.accelerators:
        yield "--accelerators", str(plan.accelerators)
        yield "--accelerators-limit", str(plan.accelerators)
    yield "--vcpu", str(plan.vcpu)
    yield "--memory", str(plan.memory_gib)
    if plan.efa:
        yield "--efa", str(plan.efa)
        yield "--efa-limit", str(plan.efa)


def _has_partitions(plan: Plan) -> bool:
    return plan.accelerators > 0 and mig_profile(plan.group) is not None


def _labels(plan: Plan) -> dict[str, str]:
    return {
        scheduling.INSTANCE_GROUP_LABEL: plan.group.name,
        scheduling.HEALTH_LABEL: scheduling.SCHEDULABLE,
    }


def _maybe(option: str, value: str | int | None) -> Iterator[tuple[str, str]]:
    if value is not None:
        yield option, str(value)


def _unsupported(plan: Plan, command: Sequence[str]) -> str | None:
    """Return what ``hyp`` would refuse or change, so that no ``hyp`` command is equivalent, or None."""
    if _has_partitions(plan) and (plan.nodes > 1 or plan.job.elastic is not None):
        return "a number of nodes together with partitions of GPUs"
    changed = None
    # hyp splits [a, b] at commas, and strips every part
    if any("," in word for word in command):
        changed = "a comma"
    elif any(not word or word != word.strip() for word in command):
        changed = "white space around an argument, or an empty one,"
    elif re.search(r"^[\[\]]|[\[\]]$", " ".join(command)):
        changed = "a bracket at its beginning or end"
    return None if changed is None else f"{changed} in command, which hyp parses as a list"


def _left_out(plan: Plan) -> Iterator[str]:
    job = plan.job
    stated = job.model_dump(exclude_defaults=True)
    for key, _ in training.WITHOUT_HYP_OPTION:
        if _is_stated(stated, key.replace("[]", "").split(".")):
            yield key
    if len(plan.shape.instance_types) > 1:
        yield f"{len(plan.shape.instance_types)} instance types"
    if plan.hugepages_mib:
        yield f"{plan.hugepages_mib} MiB of huge pages"
    if plan.efa and plan.may_use_the_node:
        yield "locked memory (IPC_LOCK)"
    if not plan.may_use_the_node:
        refuses = f"which pod_security: {plan.pod_security} refuses"
        yield f"separate shared memory of the pod (hyp supports folders of the node, {refuses})"
    if plan.group.taints:
        yield "tolerations of the group's taints"
    if job.elastic is not None and plan.nodes != job.elastic.min_nodes:
        yield "nodes together with elastic.min_nodes"
    if job.topology is not None:
        for label in (job.topology.preferred, job.topology.required):
            if label is not None and label not in training.HYP_TOPOLOGIES:
                yield f"topology by {label}"


def _is_stated(value: object, path: Sequence[str]) -> bool:
    if not path:
        return True
    if isinstance(value, list | tuple):
        return any(_is_stated(item, path) for item in value)
    return isinstance(value, Mapping) and path[0] in value and _is_stated(value[path[0]], path[1:])


def hyp_parameters_page() -> str:
    """Return the page that lists the job file keys for each option of ``hyp create hyp-pytorch-job``."""
    lines = [
        "# From `hyp create hyp-pytorch-job`",
        "",
        f"This page is for people who know `{training.HYP_COMMAND}` and want to write a job file. It lists every",
        f"option of that command ({training.HYP_VERSION}, read {training.AS_OF}) that has an effect on the job, the",
        "corresponding keys of a [job file](job-file.md), and their place in the manifest. `hyperpod-cdk job render`",
        "prints the corresponding `hyp` line, and what that line does not contain. This page is generated from the",
        "catalog with `make docs`.",
        "",
        "Paths in the manifest begin with `metadata` or `spec` of the HyperPodPyTorchJob, `replicas`",
        "(`spec.replicaSpecs[0]`), `template` (its `template`), `pod` (`template.spec`) or `container`",
        "(`pod.containers[0]`).",
        "",
        "| hyp | job file | manifest | notes |",
        "|---|---|---|---|",
    ]
    for row in training.HYP_PARAMETERS:
        keys = ", ".join(f"`{key}`" for key in row.keys) or "-"
        lines.append(f"| `{row.option}` | {keys} | {_path(row.manifest)} | {row.note} |")
    lines += [
        "",
        "## Job file keys without a `hyp` option",
        "",
        "| job file | manifest |",
        "|---|---|",
        *(f"| `{key}` | {_path(path)} |" for key, path in training.WITHOUT_HYP_OPTION),
        "",
        "In addition, the manifests of hyperpod-cdk have separate shared memory for each pod, and tolerate the taints",
        f"of the group. The other training kind, `{TRAINING[0]}`, does not exist in `hyp`.",
    ]
    return "\n".join(lines) + "\n"


def _path(path: Sequence[str]) -> str:
    if not path:
        return "-"
    words = [f'["{word}"]' if re.search(r"[./-]", word) else f".{word}" for word in path]
    return f"`{''.join(words).removeprefix('.')}`"
