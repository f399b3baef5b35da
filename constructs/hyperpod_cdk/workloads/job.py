"""The job file: a job for an instance group, described in YAML."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, Strict, create_model

from hyperpod_cdk.catalog import hyperpod, kubernetes
from hyperpod_cdk.catalog.kubernetes import DNS_LABEL, SERVICE_ACCOUNT_NAME
from hyperpod_cdk.catalog.rules import Bound, Pattern
from hyperpod_cdk.catalog.s3_places import BUCKET_OR_PREFIX
from hyperpod_cdk.config.extensions import Extension, ExtensionError, active
from hyperpod_cdk.config.section import Section, filled, like, within

Kind = Literal["efa-info", "nccl", "dcgm", "neuron-info", "nccom", "pytorch", "hyperpod-pytorch"]
"""The kinds of jobs: tests of the network and its speed for NVIDIA and Neuron, diagnostics of GPUs, and training."""

KINDS: tuple[Kind, ...] = get_args(Kind)
TRAINING: tuple[Kind, ...] = ("pytorch", "hyperpod-pytorch")
"""Kinds that run a program of the user; the other kinds have their own image and command."""

_OWN_KIND = re.compile(r"[a-z][a-z0-9-]{0,30}")

Collective = Literal[
    "all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast", "reduce", "sendrecv", "gather", "scatter"
]
"""The collective operations of tests, by the name of the nccl-tests program without ``_perf``."""

RULE_NAME = Pattern(
    regex=r"[A-Za-z]([-_A-Za-z0-9]*[A-Za-z0-9])?",
    maximum=63,
    describes="1 to 63 letters, digits, hyphens and underscores, beginning with a letter, ending with a letter or"
    " digit",
    example="JobHangingDetection",
    source="SageMaker AI guide, page sagemaker-eks-operator-usage, whose rules are JobStart and JobHangingDetection;"
    " the operator's CRD asks for any text",
)
JOB_NAME = Pattern(
    regex=kubernetes.DNS_1035_LABEL_REGEX,
    maximum=45,
    describes="1 to 45 lower-case letters, digits and hyphens, beginning with a letter, ending with a letter or digit"
    " (the names of its pods and services add to it, and end at 63)",
    example="pre-training",
    source="Kubernetes, DNS label names; training-operator names services <job>-worker-<index>",
)
MOUNT_PATH = Pattern(
    regex=r"/[^:\x00-\x1f\x7f]*[^:/\x00-\x1f\x7f]",
    maximum=1024,
    minimum=2,
    describes="an absolute path without colons and without / at its end",
    example="/data",
    source="Kubernetes, VolumeMount.mountPath",
)
SUB_PATH = Pattern(
    regex=r"(?!.*(^|/)\.\.(/|$))[^/:\x00-\x1f\x7f][^:\x00-\x1f\x7f]*",
    maximum=1024,
    describes="a path inside the volume, not absolute and without ..",
    example="runs/llama",
    source="Kubernetes, VolumeMount.subPath",
)
ENVIRONMENT_NAME = Pattern(
    regex=r"[A-Za-z_][A-Za-z0-9_]*",
    maximum=256,
    describes="the name of an environment variable: letters, digits and _, not beginning with a digit",
    example="HF_HOME",
    source="POSIX; Kubernetes takes more, but shells do not",
)
_REGISTRY = r"[-a-zA-Z0-9]+((\.[-a-zA-Z0-9]+)+(:[0-9]{1,5})?|:[0-9]{1,5})/"
_REPOSITORY = r"[a-z0-9]+((\.|__?|-+)[a-z0-9]+)*"
IMAGE = Pattern(
    regex=rf"({_REGISTRY})?{_REPOSITORY}(/{_REPOSITORY})*(:[a-zA-Z0-9_][-a-zA-Z0-9_.]{{0,127}})?(@sha256:[0-9a-f]{{64}})?",
    maximum=512,
    minimum=2,
    describes="a container image: registry, repository in lower case, and a tag or a digest",
    refers=True,
    example="111122223333.dkr.ecr.us-east-1.amazonaws.com/training:2026-11",
    source="OCI distribution specification",
)
SECRET_KEY = Pattern(
    regex=r"[-._a-zA-Z0-9]+",
    maximum=253,
    describes="a key of a secret: letters, digits, '-', '_' and '.'",
    example="token",
    source="Kubernetes, Secret.data",
)
TOPOLOGY_LEVEL = Pattern(
    regex=r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?",
    maximum=317,
    describes="the node label of a topology level",
    example="topology.k8s.aws/network-node-layer-3",
    source="Kueue, podset topology annotations",
)

_COUNT = Bound(minimum=1, maximum=hyperpod.INSTANCE_COUNT.maximum)
_SECONDS = Bound(minimum=0, maximum=86400)
_POSITIVE_SECONDS = Bound(minimum=1, maximum=604800)
_RETRIES = Bound(minimum=0, maximum=1000)
_BYTES = Bound(minimum=4, maximum=2**40)
_TEXTS = Strict(strict=False)


class Volume(Section):
    """A persistent volume claim of the environment, mounted into every pod."""

    claim: Annotated[str, like(DNS_LABEL)] = Field(
        description=(
            "Name of the persistent volume claim in the namespace of the job; storage.*.claim of the"
            " environment creates it."
        ),
        examples=["scratch"],
    )
    mount_path: Annotated[str, like(MOUNT_PATH)] = Field(description="Mount path in the container.", examples=["/data"])
    sub_path: Annotated[str, like(SUB_PATH)] | None = Field(
        default=None, description="Folder of the volume to mount. Default: the whole volume.", examples=["runs/llama"]
    )
    read_only: bool = Field(default=False, description="Whether the pods can only read.")


class SecretValue(Section):
    """One key of a Kubernetes secret in the job's namespace."""

    secret: Annotated[str, like(SERVICE_ACCOUNT_NAME)] = Field(
        description="Name of the secret.", examples=["hugging-face"]
    )
    key: Annotated[str, like(SECRET_KEY)] = Field(description="Key in the secret.", examples=["token"])


class Topology(Section):
    """How close to each other the pods must be scheduled: a node label, for Kueue's topology-aware scheduling."""

    preferred: Annotated[str, like(TOPOLOGY_LEVEL)] | None = Field(
        default=None,
        description=(
            "Node label. The pods run on nodes with the same value of this label, if there is capacity."
            " Cannot be combined with required."
        ),
        examples=["topology.k8s.aws/network-node-layer-3"],
    )
    required: Annotated[str, like(TOPOLOGY_LEVEL)] | None = Field(
        default=None,
        description=(
            "Node label. The pods run on nodes with the same value of this label, or wait. Cannot be combined"
            " with preferred."
        ),
        examples=["topology.k8s.aws/network-node-layer-2"],
    )


class Checkpoints(Section):
    """Where checkpoints are stored. The reference program and the environment variables of the containers use it."""

    path: Annotated[str, like(MOUNT_PATH)] | None = Field(
        default=None,
        description="Folder for checkpoints, inside a volume of the job: FSx for Lustre or a mounted bucket.",
        examples=["/data/checkpoints"],
    )
    s3_uri: Annotated[str, like(BUCKET_OR_PREFIX)] | None = Field(
        default=None,
        description="S3 URI for checkpoints that the program itself writes. Needs a service account with permissions.",
        examples=["s3://my-checkpoints/llama-70b"],
    )
    tiered: bool = Field(
        default=False,
        description=(
            "Whether checkpoints are written to the memory of the nodes first (managed tiered checkpointing),"
            " and less often to S3 at s3_uri. Needs hyperpod.tiered_checkpointing in the environment."
        ),
    )


class Elastic(Section):
    """Elastic training: the job grows and shrinks with the idle capacity. Only for kind hyperpod-pytorch."""

    min_nodes: Annotated[int, within(_COUNT)] = Field(description="Minimum number of nodes of the job.", examples=[2])
    max_nodes: Annotated[int, within(_COUNT)] = Field(description="Maximum number of nodes of the job.", examples=[8])
    increment: Annotated[int, within(_COUNT)] | None = Field(
        default=None,
        description="Number of nodes by which the job grows or shrinks. Use either this or values. Default: 1.",
        examples=[2],
    )
    values: Annotated[tuple[Annotated[int, within(_COUNT)], ...], _TEXTS] = Field(
        default=(), description="Allowed numbers of nodes. Use either this or increment.", examples=[[2, 4, 8]]
    )
    graceful_shutdown_seconds: Annotated[int, within(_SECONDS)] | None = Field(
        default=None,
        description=(
            "Maximum time for the pods to write a checkpoint before the size changes. Default: the operator's default."
        ),
        examples=[600],
    )
    scaling_seconds: Annotated[int, within(_SECONDS)] | None = Field(
        default=None,
        description=(
            "How long the operator waits before it grows the job, to avoid frequent changes. Default: the"
            " operator's default."
        ),
        examples=[60],
    )
    snooze_seconds: Annotated[int, within(_SECONDS)] | None = Field(
        default=None,
        description="How long after a restart the operator does not grow the job. Default: the operator's default.",
        examples=[600],
    )
    faulty_scale_down_seconds: Annotated[int, within(_SECONDS)] | None = Field(
        default=None,
        description=(
            "How long the operator waits for the replacement of a faulty node before it shrinks the job."
            " Default: the operator's default."
        ),
        examples=[30],
    )


class LogRule(Section):
    """A log rule with which the training operator detects a slow or hanging job. Only for kind hyperpod-pytorch."""

    name: Annotated[str, like(RULE_NAME)] = Field(description="Name of the rule.", examples=["loss"])
    pattern: str = Field(
        description=(
            "Regular expression for the log line, matched from the beginning of the line (Python's re.match)."
            " With metric_limit, the first group is the number."
        ),
        examples=[r".*loss: ([0-9.]+).*"],
    )
    stop_pattern: str | None = Field(
        default=None,
        description=(
            "Regular expression for the log line that ends the rule, matched from the beginning of the line."
            " Default: the rule never ends."
        ),
        examples=[r".*training finished.*"],
    )
    fault_on_match: bool = Field(
        default=False, description="Whether the first match is already the fault, for example an error message."
    )
    expected_start_seconds: Annotated[int, within(_POSITIVE_SECONDS)] | None = Field(
        default=None, description="Maximum time until the first match. Default: no limit.", examples=[600]
    )
    expected_every_seconds: Annotated[int, within(_POSITIVE_SECONDS)] | None = Field(
        default=None, description="Maximum time between two matches. Default: no limit.", examples=[300]
    )
    metric_limit: int | None = Field(
        default=None,
        description="Whole number with which the number in the log is compared. Required with operator.",
        examples=[80],
    )
    operator: Literal["lt", "lteq", "gt", "gteq", "eq"] | None = Field(
        default=None, description="Comparison operator. The job has a fault if the comparison is true.", examples=["gt"]
    )
    evaluations: Annotated[int, within(Bound(minimum=1, maximum=10000))] | None = Field(
        default=None,
        description=(
            "Number of consecutive matches for which the comparison must be true. Default: the operator's default."
        ),
        examples=[5],
    )


class Restart(Section):
    """What happens when a pod or a node fails."""

    max_retries: Annotated[int, within(_RETRIES)] = Field(
        default=3, description="How often the job is restarted before it counts as failed."
    )
    evaluation_seconds: Annotated[int, within(_POSITIVE_SECONDS)] | None = Field(
        default=None,
        description=(
            "Time window in which restarts are counted. Only for kind hyperpod-pytorch. Default: the"
            " operator's default, or one hour if one of the two following limits is set."
        ),
        examples=[3600],
    )
    before_full: Annotated[int, within(_RETRIES)] | None = Field(
        default=None,
        description=(
            "Number of process restarts before the whole job is restarted with all pods. Only for kind"
            " hyperpod-pytorch. Default: the operator's default."
        ),
        examples=[3],
    )
    max_full: Annotated[int, within(_RETRIES)] | None = Field(
        default=None,
        description=(
            "How often the whole job can be restarted before it fails. Only for kind hyperpod-pytorch."
            " Default: the operator's default."
        ),
        examples=[1],
    )
    shutdown_seconds: Annotated[int, within(Bound(minimum=1, maximum=86400))] = Field(
        default=30,
        description=(
            "Maximum time for the program to write a checkpoint after SIGTERM, before it is killed. With kind"
            " pytorch, more than 30 needs PyTorch 2.12."
        ),
    )
    spares: Annotated[int, within(Bound(minimum=0, maximum=1000))] = Field(
        default=0,
        description=(
            "Number of spare pods, with their nodes, that wait to replace a failed pod. Only for kind hyperpod-pytorch."
        ),
    )


class Measurement(Section):
    """Settings of a test."""

    collectives: Annotated[tuple[Collective, ...], _TEXTS, filled("collective")] = Field(
        default=("all_reduce",),
        description=(
            "Collective operations to measure, one after the other. On Trainium: all_reduce, all_gather,"
            " reduce_scatter and alltoall."
        ),
    )
    min_bytes: Annotated[int, within(_BYTES)] = Field(default=8, description="Smallest message size in bytes.")
    max_bytes: Annotated[int, within(_BYTES)] | None = Field(
        default=None, description="Largest message size in bytes. Default: 16 GiB, less on GPUs with little memory."
    )
    iterations: Annotated[int, within(Bound(minimum=1, maximum=100000))] = Field(
        default=50, description="Number of repetitions of each message size."
    )
    pairs: bool = Field(
        default=False,
        description="Whether nodes are measured in pairs, in several rounds, which shows which node is slow.",
    )
    diagnostic_level: Annotated[int, within(Bound(minimum=1, maximum=4))] = Field(
        default=2,
        description="Level of the GPU diagnostics of kind dcgm; it takes seconds, minutes, half an hour or hours.",
    )


class Job(Section):
    """One job on one instance group of an environment.

    Fields that are left out follow from the group: a pod takes a whole node with all its accelerators and network
    interfaces.
    """

    name: Annotated[str, like(JOB_NAME)] | None = Field(
        default=None,
        description="Name of the job. Required for training jobs. Default: its kind and its group.",
        examples=["pre-training"],
    )
    kind: Kind | None = Field(
        default=None, description="What to run. --kind on the command line overrides it.", examples=["hyperpod-pytorch"]
    )
    group: str | None = Field(
        default=None,
        description="Instance group of the environment. --group on the command line overrides it.",
        examples=["h100"],
    )
    team: str | None = Field(
        default=None,
        description="Team whose namespace, queue and quota the job uses. Default: no team and no quota.",
        examples=["research"],
    )
    namespace: Annotated[str, like(DNS_LABEL)] | None = Field(
        default=None, description="Namespace, for a job without a team. Default: default.", examples=["experiments"]
    )
    priority: str | None = Field(
        default=None,
        description="Priority class of the environment, without the suffix -priority. Default: none, weight 0.",
        examples=["training"],
    )
    nodes: Annotated[int, within(_COUNT)] | None = Field(
        default=None,
        description="Number of nodes, with one pod on each. Default: all nodes of the group.",
        examples=[2],
    )
    accelerators_per_node: Annotated[int, within(_COUNT)] | None = Field(
        default=None,
        description=(
            "Number of accelerators of each pod. Default: all accelerators of the node; for training on"
            " partitioned GPUs, one partition."
        ),
        examples=[8],
    )
    efa_per_node: Annotated[int, within(Bound(minimum=0, maximum=64))] | None = Field(
        default=None,
        description=(
            "Number of EFA interfaces of each pod. Default: all EFA interfaces of the node if the pod has all"
            " its accelerators, otherwise none."
        ),
        examples=[32],
    )
    huge_pages_mib: Annotated[int, within(Bound(minimum=0, maximum=2**20))] | None = Field(
        default=None,
        description=(
            "Huge pages of each pod in MiB, for the buffers of EFA. Default: the value in AWS's manifests for"
            " EFA. It is 0 for training jobs, because their data loaders fork, and for jobs of a team,"
            " because it is not known that the queues of task governance admit huge pages; EFA then works"
            " without them."
        ),
        examples=[5120],
    )
    vcpu_per_node: Annotated[int, within(_COUNT)] | None = Field(
        default=None,
        description="Number of vCPUs of each pod. Default: its share of the allocatable vCPUs of the node.",
        examples=[96],
    )
    memory_gib_per_node: Annotated[int, within(Bound(minimum=1, maximum=32768))] | None = Field(
        default=None,
        description="Memory of each pod in GiB. Default: its share of the allocatable memory of the node.",
        examples=[1024],
    )
    shared_memory_gib: Annotated[int, within(Bound(minimum=1, maximum=32768))] | None = Field(
        default=None,
        description="Size of /dev/shm in GiB, which is part of the memory of the pod. Default: half of the memory.",
        examples=[512],
    )
    image: Annotated[str, like(IMAGE)] | None = Field(
        default=None,
        description="Container image. Required for training jobs; tests have a default image.",
        examples=[IMAGE.example],
    )
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = Field(
        default=None, description="When nodes pull the image. Default: Kubernetes' default for the tag."
    )
    command: Annotated[tuple[str, ...], _TEXTS] = Field(
        default=(),
        description=(
            "Program and arguments of a training job, without the launcher; torchrun or hyperpodrun is added before it."
        ),
        examples=[["train.py", "--steps", "1000"]],
    )
    launcher: bool = Field(
        default=True,
        description="Whether the launcher is added before command. false: command starts all processes itself.",
    )
    environment: dict[Annotated[str, like(ENVIRONMENT_NAME)], str] = Field(
        default_factory=dict,
        description=(
            "Environment variables, in addition to those for the group; a variable with the same name"
            " overrides the one for the group."
        ),
        examples=[{"HF_HOME": "/data/hf"}],
    )
    secrets: dict[Annotated[str, like(ENVIRONMENT_NAME)], SecretValue] = Field(
        default_factory=dict,
        description="Environment variables from Kubernetes secrets.",
        examples=[{"HF_TOKEN": {"secret": "hugging-face", "key": "token"}}],
    )
    volumes: Annotated[tuple[Volume, ...], _TEXTS] = Field(
        default=(),
        description="Persistent volume claims to mount.",
        examples=[[{"claim": "scratch", "mount_path": "/data"}]],
    )
    checkpoints: Checkpoints | None = Field(
        default=None, description="Where checkpoints are stored. Default: checkpoints are not stored."
    )
    service_account: Annotated[str, like(SERVICE_ACCOUNT_NAME)] | None = Field(
        default=None,
        description="Service account of the pods. Default: the default service account of the namespace.",
        examples=["trainer"],
    )
    passed_deep_health_checks: bool = Field(
        default=False, description="Whether the pods run only on nodes that passed their deep health checks."
    )
    topology: Topology | None = Field(
        default=None, description="How close to each other the pods must be scheduled. Default: no constraint."
    )
    restart: Restart = Field(default_factory=Restart, description="What happens if a pod or a node fails.")
    elastic: Elastic | None = Field(default=None, description="Elastic training. Default: a fixed number of nodes.")
    log_monitoring: Annotated[tuple[LogRule, ...], _TEXTS] = Field(
        default=(),
        description=(
            "Log rules. Only for kind hyperpod-pytorch. The rules apply to the output of the first process of"
            " every pod. If only the first of all processes writes the line, the other pods count as hanging."
        ),
    )
    measure: Measurement = Field(default_factory=Measurement, description="Settings of a test.")


def own_kinds() -> Mapping[str, Extension]:
    """Return the kinds that extensions add, each with its extension; raises ExtensionError if a kind exists already."""
    found: dict[str, Extension] = {}
    for extension in active():
        for kind in extension.job_kinds:
            if kind in KINDS or kind in found or not _OWN_KIND.fullmatch(kind):
                raise ExtensionError(
                    f"the extension {extension.name}: job_kinds: must be words of lower-case letters, digits and - that"
                    f" are not a kind yet, got {kind!r}; rename it"
                )
            found[kind] = extension
    return found


def runs_a_program(kind: str) -> bool:
    """Return whether a kind runs a program of the user: training, and kinds of extensions."""
    return kind in TRAINING or kind not in KINDS


def job_model() -> type[Job]:
    """Return the model of job files, including the kinds of extensions."""
    added = tuple(own_kinds())
    if not added:
        return Job
    told = Job.model_fields["kind"]
    kind: Any = Literal[(*KINDS, *added)]
    fields: dict[str, Any] = {"kind": (kind | None, told)}
    return create_model("Job", __base__=Job, __doc__=Job.__doc__, **fields)
