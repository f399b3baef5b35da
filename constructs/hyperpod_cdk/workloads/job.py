"""The job file: what somebody wants to run on an instance group, on a page of YAML."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, Strict, create_model

from hyperpod_cdk.catalog.rules import Bound, Pattern
from hyperpod_cdk.config.checkpointing import BUCKET_OR_PREFIX, SERVICE_ACCOUNT_NAME
from hyperpod_cdk.config.extensions import Extension, ExtensionError, active
from hyperpod_cdk.config.section import Section, filled, like, within
from hyperpod_cdk.config.storage import DNS_LABEL

Kind = Literal["efa-info", "nccl", "dcgm", "neuron-info", "nccom", "pytorch", "hyperpod-pytorch"]
"""What can be rendered: a look at a fabric and its speed, for NVIDIA and for Neuron, the health of GPUs, training."""

KINDS: tuple[Kind, ...] = get_args(Kind)
TRAINING: tuple[Kind, ...] = ("pytorch", "hyperpod-pytorch")
"""Kinds that run a program of the user's; the others bring their own image and command."""

_OWN_KIND = re.compile(r"[a-z][a-z0-9-]{0,30}")

Collective = Literal[
    "all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast", "reduce", "sendrecv", "gather", "scatter"
]
"""What a test measures, by the name of its nccl-tests program without ``_perf``."""

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
    regex=r"[a-z]([-a-z0-9]*[a-z0-9])?",
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

_COUNT = Bound(minimum=1, maximum=6758)
_SECONDS = Bound(minimum=0, maximum=86400)
_POSITIVE_SECONDS = Bound(minimum=1, maximum=604800)
_RETRIES = Bound(minimum=0, maximum=1000)
_BYTES = Bound(minimum=4, maximum=2**40)
_TEXTS = Strict(strict=False)


class Volume(Section):
    """A claim of the environment, mounted into every pod."""

    claim: Annotated[str, like(DNS_LABEL)] = Field(
        description="Name of the persistent volume claim in the job's namespace; storage.*.claim of the environment"
        " makes it.",
        examples=["scratch"],
    )
    mount_path: Annotated[str, like(MOUNT_PATH)] = Field(
        description="Where it is mounted in the container.", examples=["/data"]
    )
    sub_path: Annotated[str, like(SUB_PATH)] | None = Field(
        default=None, description="Folder of the volume that is mounted. Default: all of it.", examples=["runs/llama"]
    )
    read_only: bool = Field(default=False, description="Whether the pods may only read.")


class SecretValue(Section):
    """One key of a Kubernetes secret in the job's namespace."""

    secret: Annotated[str, like(SERVICE_ACCOUNT_NAME)] = Field(
        description="Name of the secret.", examples=["hugging-face"]
    )
    key: Annotated[str, like(SECRET_KEY)] = Field(description="Key in the secret.", examples=["token"])


class Topology(Section):
    """How near to each other the pods have to be: a label of nodes, by Kueue's topology-aware scheduling."""

    preferred: Annotated[str, like(TOPOLOGY_LEVEL)] | None = Field(
        default=None,
        description="Pods share a value of this node label if there is room. Not with required.",
        examples=["topology.k8s.aws/network-node-layer-3"],
    )
    required: Annotated[str, like(TOPOLOGY_LEVEL)] | None = Field(
        default=None,
        description="Pods share a value of this node label, or wait. Not with preferred.",
        examples=["topology.k8s.aws/network-node-layer-2"],
    )


class Checkpoints(Section):
    """Where checkpoints go; the reference program and the containers' environment read it."""

    path: Annotated[str, like(MOUNT_PATH)] | None = Field(
        default=None,
        description="Folder for checkpoints, inside a volume of the job: FSx for Lustre or a mounted bucket.",
        examples=["/data/checkpoints"],
    )
    s3_uri: Annotated[str, like(BUCKET_OR_PREFIX)] | None = Field(
        default=None,
        description="S3 address for checkpoints that the program writes itself. Needs a service account with rights.",
        examples=["s3://my-checkpoints/llama-70b"],
    )
    tiered: bool = Field(
        default=False,
        description="Whether checkpoints are kept in the nodes' memory first (managed tiered checkpointing), and in S3"
        " at s3_uri now and then. Needs hyperpod.tiered_checkpointing in the environment.",
    )


class Elastic(Section):
    """Growing and shrinking with what is idle; hyperpod-pytorch only."""

    min_nodes: Annotated[int, within(_COUNT)] = Field(description="Fewest nodes the job runs on.", examples=[2])
    max_nodes: Annotated[int, within(_COUNT)] = Field(description="Most nodes the job runs on.", examples=[8])
    increment: Annotated[int, within(_COUNT)] | None = Field(
        default=None, description="Nodes it grows or shrinks by. Either this or values. Default: 1.", examples=[2]
    )
    values: Annotated[tuple[Annotated[int, within(_COUNT)], ...], _TEXTS] = Field(
        default=(), description="Numbers of nodes it may run on. Either this or increment.", examples=[[2, 4, 8]]
    )
    graceful_shutdown_seconds: Annotated[int, within(_SECONDS)] | None = Field(
        default=None,
        description="How long pods may take to write a checkpoint before a change of size. Default: the operator's.",
        examples=[600],
    )
    scaling_seconds: Annotated[int, within(_SECONDS)] | None = Field(
        default=None,
        description="How long the operator waits before it grows the job, against frequent changes. Default: its own.",
        examples=[60],
    )
    snooze_seconds: Annotated[int, within(_SECONDS)] | None = Field(
        default=None,
        description="How long after a restart the operator does not grow the job. Default: its own.",
        examples=[600],
    )
    faulty_scale_down_seconds: Annotated[int, within(_SECONDS)] | None = Field(
        default=None,
        description="How long the operator waits for a faulty node's replacement before it shrinks the job. Default:"
        " its own.",
        examples=[30],
    )


class LogRule(Section):
    """A rule over the log by which the training operator finds a job that is slow or hangs; hyperpod-pytorch only."""

    name: Annotated[str, like(RULE_NAME)] = Field(description="Name of the rule.", examples=["loss"])
    pattern: str = Field(
        description="Regular expression that finds the line, from its beginning (Python's re.match); with a metric"
        " limit, its first group is the number.",
        examples=[r".*loss: ([0-9.]+).*"],
    )
    stop_pattern: str | None = Field(
        default=None,
        description="Regular expression of the line that ends the rule, from its beginning. Default: it never ends.",
        examples=[r".*training finished.*"],
    )
    fault_on_match: bool = Field(
        default=False, description="Whether the first match is the fault by itself: an error message, for instance."
    )
    expected_start_seconds: Annotated[int, within(_POSITIVE_SECONDS)] | None = Field(
        default=None, description="Within which time the first match must come. Default: no limit.", examples=[600]
    )
    expected_every_seconds: Annotated[int, within(_POSITIVE_SECONDS)] | None = Field(
        default=None, description="Longest time between two matches. Default: no limit.", examples=[300]
    )
    metric_limit: int | None = Field(
        default=None,
        description="Whole number the one in the log is compared with. Together with operator.",
        examples=[80],
    )
    operator: Literal["lt", "lteq", "gt", "gteq", "eq"] | None = Field(
        default=None, description="How the number is compared; the comparison that holds is the fault.", examples=["gt"]
    )
    evaluations: Annotated[int, within(Bound(minimum=1, maximum=10000))] | None = Field(
        default=None, description="Matches in a row for which it has to hold. Default: the operator's.", examples=[5]
    )


class Restart(Section):
    """What happens when a pod or a node fails."""

    max_retries: Annotated[int, within(_RETRIES)] = Field(
        default=3, description="How often the job starts anew before it counts as failed."
    )
    evaluation_seconds: Annotated[int, within(_POSITIVE_SECONDS)] | None = Field(
        default=None,
        description="Window in which restarts are counted; hyperpod-pytorch only. Default: the operator's, or an hour"
        " where one of the two limits below is stated.",
        examples=[3600],
    )
    before_full: Annotated[int, within(_RETRIES)] | None = Field(
        default=None,
        description="Restarts of processes before the whole job, pods and all, is started anew; hyperpod-pytorch only."
        " Default: the operator's.",
        examples=[3],
    )
    max_full: Annotated[int, within(_RETRIES)] | None = Field(
        default=None,
        description="How often the whole job may be started anew before it fails; hyperpod-pytorch only. Default: the"
        " operator's.",
        examples=[1],
    )
    shutdown_seconds: Annotated[int, within(Bound(minimum=1, maximum=86400))] = Field(
        default=30,
        description="How long the program may take to write a checkpoint after SIGTERM, before it is killed. With kind"
        " pytorch more than 30 needs PyTorch 2.12.",
    )
    spares: Annotated[int, within(Bound(minimum=0, maximum=1000))] = Field(
        default=0, description="Pods that wait, with their nodes, to replace one that fails; hyperpod-pytorch only."
    )


class Measurement(Section):
    """What a test measures."""

    collectives: Annotated[tuple[Collective, ...], _TEXTS, filled("collective")] = Field(
        default=("all_reduce",),
        description="What is measured, one after the other. On Trainium: all_reduce, all_gather, reduce_scatter and"
        " alltoall.",
    )
    min_bytes: Annotated[int, within(_BYTES)] = Field(default=8, description="Smallest message in bytes.")
    max_bytes: Annotated[int, within(_BYTES)] | None = Field(
        default=None, description="Largest message in bytes. Default: 16 GiB, less on GPUs of little memory."
    )
    iterations: Annotated[int, within(Bound(minimum=1, maximum=100000))] = Field(
        default=50, description="Repetitions of each size."
    )
    pairs: bool = Field(
        default=False,
        description="Whether nodes are measured in pairs, several rounds of them, which shows the one that is slow.",
    )
    diagnostic_level: Annotated[int, within(Bound(minimum=1, maximum=4))] = Field(
        default=2, description="Level of the GPU diagnostic of kind dcgm: seconds, minutes, half an hour, hours."
    )


class Job(Section):
    """One job on one instance group of an environment.

    Fields that are left out follow from the group: a pod takes a whole node with all its accelerators and network
    interfaces.
    """

    name: Annotated[str, like(JOB_NAME)] | None = Field(
        default=None,
        description="Name of the job. Default: its kind and its group; training jobs have to say.",
        examples=["pre-training"],
    )
    kind: Kind | None = Field(
        default=None, description="What to run. --kind on the command line wins.", examples=["hyperpod-pytorch"]
    )
    group: str | None = Field(
        default=None,
        description="Instance group of the environment. --group on the command line wins.",
        examples=["h100"],
    )
    team: str | None = Field(
        default=None,
        description="Team whose namespace, queue and quota the job uses. Default: none, and no quota.",
        examples=["research"],
    )
    namespace: Annotated[str, like(DNS_LABEL)] | None = Field(
        default=None, description="Namespace of a job without a team. Default: default.", examples=["experiments"]
    )
    priority: str | None = Field(
        default=None,
        description="Priority class of the environment, without -priority at its end. Default: none, weight 0.",
        examples=["training"],
    )
    nodes: Annotated[int, within(_COUNT)] | None = Field(
        default=None, description="How many nodes, one pod on each. Default: all of the group.", examples=[2]
    )
    accelerators_per_node: Annotated[int, within(_COUNT)] | None = Field(
        default=None,
        description="Accelerators of each pod. Default: all of the node, and of partitioned GPUs one partition for"
        " training.",
        examples=[8],
    )
    efa_per_node: Annotated[int, within(Bound(minimum=0, maximum=64))] | None = Field(
        default=None,
        description="EFA interfaces of each pod. Default: all of the node where the pod has all its accelerators,"
        " else none.",
        examples=[32],
    )
    huge_pages_mib: Annotated[int, within(Bound(minimum=0, maximum=2**20))] | None = Field(
        default=None,
        description="Huge pages of each pod in MiB, for EFA's buffers. Default: what AWS's manifests ask for with EFA;"
        " 0 for training, whose data loaders fork, and for a team's job, since the queues that task governance makes"
        " are not known to admit them: EFA then does without.",
        examples=[5120],
    )
    vcpu_per_node: Annotated[int, within(_COUNT)] | None = Field(
        default=None, description="vCPUs of each pod. Default: its share of what the node has to give.", examples=[96]
    )
    memory_gib_per_node: Annotated[int, within(Bound(minimum=1, maximum=32768))] | None = Field(
        default=None,
        description="Memory of each pod in GiB. Default: its share of what the node has to give.",
        examples=[1024],
    )
    shared_memory_gib: Annotated[int, within(Bound(minimum=1, maximum=32768))] | None = Field(
        default=None,
        description="Size of /dev/shm in GiB, part of the pod's memory. Default: half of it.",
        examples=[512],
    )
    image: Annotated[str, like(IMAGE)] | None = Field(
        default=None,
        description="Container image. Training jobs have to say; tests have one by default.",
        examples=[IMAGE.example],
    )
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = Field(
        default=None, description="When nodes pull the image. Default: Kubernetes' own choice by its tag."
    )
    command: Annotated[tuple[str, ...], _TEXTS] = Field(
        default=(),
        description="Program and arguments of a training job, without the launcher: torchrun or hyperpodrun is put"
        " before it.",
        examples=[["train.py", "--steps", "1000"]],
    )
    launcher: bool = Field(
        default=True,
        description="Whether the launcher is put before command. false: command starts everything itself.",
    )
    environment: dict[Annotated[str, like(ENVIRONMENT_NAME)], str] = Field(
        default_factory=dict,
        description="Environment variables, beside those that fit the group; one of the same name wins.",
        examples=[{"HF_HOME": "/data/hf"}],
    )
    secrets: dict[Annotated[str, like(ENVIRONMENT_NAME)], SecretValue] = Field(
        default_factory=dict,
        description="Environment variables from Kubernetes secrets.",
        examples=[{"HF_TOKEN": {"secret": "hugging-face", "key": "token"}}],
    )
    volumes: Annotated[tuple[Volume, ...], _TEXTS] = Field(
        default=(), description="Claims that are mounted.", examples=[[{"claim": "scratch", "mount_path": "/data"}]]
    )
    checkpoints: Checkpoints | None = Field(default=None, description="Where checkpoints go. Default: nowhere.")
    service_account: Annotated[str, like(SERVICE_ACCOUNT_NAME)] | None = Field(
        default=None, description="Service account of the pods. Default: the namespace's own.", examples=["trainer"]
    )
    passed_deep_health_checks: bool = Field(
        default=False, description="Whether only nodes that passed their deep health checks are taken."
    )
    topology: Topology | None = Field(default=None, description="How near the pods have to be. Default: anywhere.")
    restart: Restart = Field(default_factory=Restart, description="What happens when something fails.")
    elastic: Elastic | None = Field(default=None, description="Growing and shrinking. Default: a fixed size.")
    log_monitoring: Annotated[tuple[LogRule, ...], _TEXTS] = Field(
        default=(),
        description="Rules over the log; hyperpod-pytorch only. They are held against the output of the first process"
        " of every pod, so that a line which only the first of all processes writes makes the other pods hang.",
    )
    measure: Measurement = Field(default_factory=Measurement, description="What a test measures.")


def own_kinds() -> Mapping[str, Extension]:
    """Give the kinds that extensions add, with the extension of each; raises ExtensionError for one that is taken."""
    found: dict[str, Extension] = {}
    for extension in active():
        for kind in extension.job_kinds:
            if kind in KINDS or kind in found or not _OWN_KIND.fullmatch(kind):
                raise ExtensionError(
                    f"the extension {extension.name}: job_kinds: must be words of lower-case letters, digits and - that"
                    f" are no kind yet, got {kind!r}; rename it"
                )
            found[kind] = extension
    return found


def runs_a_program(kind: str) -> bool:
    """Whether a kind runs a program of the user's: training, and what extensions add."""
    return kind in TRAINING or kind not in KINDS


def job_model() -> type[Job]:
    """Give the model of job files, with the kinds of extensions."""
    added = tuple(own_kinds())
    if not added:
        return Job
    told = Job.model_fields["kind"]
    kind: Any = Literal[(*KINDS, *added)]
    fields: dict[str, Any] = {"kind": (kind | None, told)}
    return create_model("Job", __base__=Job, __doc__=Job.__doc__, **fields)
