"""Rules about the nodes that a job needs from its group."""

from __future__ import annotations

from hyperpod_cdk.catalog import fabric
from hyperpod_cdk.catalog.sentences import Sentence, Setting
from hyperpod_cdk.config.rules.book import Problem, warning
from hyperpod_cdk.config.source import DataPath
from hyperpod_cdk.workloads.allocatable import allocatable, kept_for_checkpoints
from hyperpod_cdk.workloads.job import KINDS, TRAINING, runs_a_program
from hyperpod_cdk.workloads.nodes import mig_profile
from hyperpod_cdk.workloads.plan import plan
from hyperpod_cdk.workloads.rules.book import Book, Context, Found, or_less

BOOK = Book()

_NVIDIA = ("nccl", "dcgm")
_NEURON = ("nccom", "neuron-info")
_NEURON_INSTEAD = {"nccl": "nccom", "dcgm": "neuron-info"}
_NVIDIA_INSTEAD = {"nccom": "nccl", "neuron-info": "dcgm"}
_PAIR = 2
_HUGE_PAGE_MIB = 2
_HOURS = 4
"""The level of DCGM diagnostics that takes hours."""


@BOOK.rule
def kinds_suit_the_accelerators(context: Context) -> Found:
    """Refuse training and tests on a group without the accelerators or interfaces that they need."""
    kind, shape = context.kind, context.shape
    if kind == "efa-info":
        if shape.efa_count == 0:
            yield Problem(
                ("group",),
                f"must have EFA for kind efa-info, got {context.group.name} of {context.types}; {_other('EFA')}",
            )
        return
    if not shape.accelerator_count:
        # the builder of an extension's kind checks what it needs
        if kind not in KINDS:
            return
        yield Problem(
            ("group",),
            f"must have accelerators for kind {kind}, got {context.group.name} of {context.types};"
            f" {_other('accelerators')}",
        )
    elif kind in _NVIDIA and not shape.is_nvidia:
        yield Problem(
            ("kind",),
            Sentence(
                f"must be a test of Neuron for group {context.group.name} of {context.types}, got {kind}, which is for"
                " NVIDIA GPUs; ",
                Setting("kind", _NEURON_INSTEAD[kind]),
            ),
        )
    elif kind in _NEURON and not shape.is_neuron:
        yield Problem(
            ("kind",),
            Sentence(
                f"must be a test of NVIDIA GPUs for group {context.group.name} of {context.types}, got {kind}, which is"
                " for Neuron devices; ",
                Setting("kind", _NVIDIA_INSTEAD[kind]),
            ),
        )


@BOOK.rule
def a_test_image_knows_the_gpus(context: Context) -> Found:
    """Refuse nccl-tests without an image if no public image is compiled for the GPUs."""
    if context.kind == "nccl" and context.job.image is None and context.shape.is_nvidia:
        message = fabric.test_image_problem(context.shape.rows)
        if message is not None:
            yield Problem(("image",), message)


@BOOK.rule
def nodes_are_in_the_group(context: Context) -> Found:
    """Refuse more nodes than the group has; with Karpenter, require their number and warn."""
    count, nodes = context.group.count, context.job.nodes
    spares = context.job.restart.spares
    if context.is_autoscaled:
        if nodes is None:
            yield Problem(
                ("nodes",),
                Sentence(
                    f"is missing, and group {context.group.name} has no number of its own, because Karpenter adds its"
                    " nodes; ",
                    Setting("nodes", 2, verb="add"),
                ),
            )
        else:
            yield warning(
                ("nodes",),
                f"Karpenter must add {nodes + spares} nodes of {context.types}; check that the account's quotas and"
                " the available capacity cover them",
            )
        return
    if not count:
        yield Problem(
            ("group",),
            f"must have nodes, got {context.group.name} with count: 0; raise it in the environment, or use another"
            " group",
        )
    elif nodes is not None and nodes > count:
        yield Problem(
            ("nodes",),
            Sentence(
                f"must be at most {count}, the count of group {context.group.name}, got {nodes}; ",
                Setting("nodes", or_less(count)),
            ),
        )
    elif spares and context.nodes + spares > count:
        left = count - context.nodes
        fix = Setting("spares", or_less(left)) if left else Setting("nodes", or_less(max(1, count - spares)))
        yield Problem(
            ("restart", "spares"),
            Sentence(
                f"must leave nodes and spares within the {count} of group {context.group.name}, got {context.nodes} and"
                f" {spares}; ",
                fix,
            ),
        )


@BOOK.rule
def collectives_have_two_nodes(context: Context) -> Found:
    """Refuse a network test on one node; warn about a test in pairs with only one pair."""
    if context.kind != "nccl":
        return
    at: DataPath = ("nodes",)
    nodes = context.nodes
    if nodes < _PAIR:
        where = "" if context.job.nodes else f", which is all of group {context.group.name}"
        yield Problem(
            at,
            Sentence(
                f"must be at least 2 for kind nccl, which measures between nodes, got {nodes}{where}; ",
                Setting("nodes", "2 or more"),
                ", or kind: dcgm for tests within a node",
            ),
        )
    elif context.job.measure.pairs and nodes == _PAIR:
        yield warning(
            ("measure", "pairs"),
            Sentence(
                "two nodes are only one pair, which cannot show which node is slow; ",
                Setting("nodes", "3 or more"),
                ", or remove pairs",
            ),
        )


@BOOK.rule
def accelerators_fit_a_node(context: Context) -> Found:
    """Refuse more accelerators than a node has."""
    wanted, most = context.job.accelerators_per_node, context.shape.accelerator_count
    if wanted is None or wanted <= most:
        return
    if not most:
        if context.kind == "efa-info":
            yield Problem(
                ("accelerators_per_node",),
                f"must be left out on {context.types}, which has none, got {wanted}; remove it",
            )
        return
    what = "partitions" if mig_profile(context.group) else "accelerators"
    yield Problem(
        ("accelerators_per_node",),
        f"must be at most {most}, the {what} of {context.types}, got {wanted}; set accelerators_per_node:"
        f" {or_less(most)}",
    )


@BOOK.rule
def interfaces_fit_a_node(context: Context) -> Found:
    """Refuse EFA if the type has none, more interfaces than a node has, and EFA with parts of a node or of its GPUs."""
    at: DataPath = ("efa_per_node",)
    wanted, most, shape = context.job.efa_per_node, context.shape.efa_count, context.shape
    in_doubt = any(doubt.startswith("efa_count") for row in shape.rows for doubt in row.unsure)
    if most is None and wanted is None and context.kind != "dcgm":
        yield warning(
            at,
            f"the number of EFA interfaces of {context.types} is unknown, so pods request one; set efa_per_node, or"
            " set efa_count under instance_types in the environment file",
        )
    elif most and wanted is None and in_doubt and context.kind != "dcgm":
        yield warning(
            at,
            f"pods request {most} EFA interfaces of {context.types}, as AWS's own tests do; how many HyperPod attaches"
            " is"
            " not documented: set efa_per_node to fewer if pods stay Pending",
        )
    if not wanted:
        return
    if most == 0:
        yield Problem(at, f"must be left out on {context.types}, which has no EFA, got {wanted}; remove efa_per_node")
    elif most is not None and wanted > most and not in_doubt:
        yield Problem(
            at,
            f"must be at most {most}, the EFA interfaces of {context.types}, got {wanted}; set efa_per_node:"
            f" {or_less(most)}",
        )
    elif mig_profile(context.group):
        yield Problem(
            at,
            f"must be left out on group {context.group.name}, whose GPUs are partitioned: NCCL does not work across"
            f" partitions, got {wanted}; remove efa_per_node",
        )
    elif 0 < context.accelerators < shape.accelerator_count:
        yield Problem(
            at,
            f"must be left out if a pod uses a part of the node ({context.accelerators} of"
            f" {shape.accelerator_count} accelerators), got {wanted}; remove efa_per_node, or set"
            f" accelerators_per_node: {shape.accelerator_count}",
        )


@BOOK.rule
def huge_pages_are_there(context: Context) -> Found:
    """Refuse huge pages without EFA, and more than the nodes reserve; warn about a team's queue."""
    at: DataPath = ("huge_pages_mib",)
    wanted, shape = context.job.huge_pages_mib, context.shape
    if not wanted or context.kind == "dcgm":
        return
    kept = min(fabric.hugepages_kept_mib(row) for row in shape.rows)
    is_partial = context.kind != "efa-info" and 0 < context.accelerators < shape.accelerator_count
    if not kept or is_partial or mig_profile(context.group) or context.job.efa_per_node == 0:
        yield Problem(at, f"must be left out if pods have no EFA, got {wanted}; remove huge_pages_mib")
    elif wanted > kept:
        yield Problem(
            at,
            f"must be at most {kept}, the huge pages that {context.types} reserves, got {wanted}; set huge_pages_mib:"
            f" {or_less(kept)}",
        )
    elif wanted % _HUGE_PAGE_MIB:
        yield Problem(
            at,
            f"must be a multiple of {_HUGE_PAGE_MIB}, the size of a page, got {wanted}; set huge_pages_mib:"
            f" {wanted - wanted % _HUGE_PAGE_MIB}",
        )
    elif context.job.team is not None:
        yield warning(
            at,
            "it is unknown whether the queues of task governance count huge pages, and Kueue never admits a resource"
            " that a queue does not count; remove huge_pages_mib unless the cluster queue covers hugepages-2Mi",
        )


@BOOK.rule
def partitions_stay_on_one_node(context: Context) -> Found:
    """Refuse jobs of several nodes on partitioned GPUs, and tests that partitions do not support."""
    if not mig_profile(context.group):
        return
    if context.kind == "nccl":
        yield Problem(
            ("group",),
            f"must have whole GPUs for kind nccl, got {context.group.name}, whose GPUs are partitioned: NCCL does not"
            " work across partitions; use another group",
        )
    elif runs_a_program(context.kind) and context.nodes > 1:
        yield Problem(
            ("nodes",),
            Sentence(
                f"must be 1 on group {context.group.name}, whose GPUs are partitioned: NCCL does not work across"
                f" partitions, got {context.nodes}; ",
                Setting("nodes", 1),
            ),
        )


@BOOK.rule
def processors_and_memory_fit_a_node(context: Context) -> Found:
    """Refuse more vCPUs and memory than the instance has; warn if its own services probably need them."""
    shape = context.shape
    percent = kept_for_checkpoints(context.environment)
    vcpu, memory_gib = allocatable(shape, checkpoint_percent=percent)
    system = "kubelet, the system and add-ons"
    with_checkpoints = f"kubelet, the system, add-ons and tiered checkpointing ({percent} %)" if percent else system
    for key, wanted, machine, likely, what in (
        ("vcpu_per_node", context.job.vcpu_per_node, shape.vcpu, vcpu, "vCPUs"),
        ("memory_gib_per_node", context.job.memory_gib_per_node, shape.memory_gib, memory_gib, "GiB of memory"),
    ):
        if wanted is None or wanted <= likely:
            continue
        if wanted > machine:
            yield Problem(
                (key,),
                f"must be at most the {machine:g} {what} of {context.types}, got {wanted}; set {key}:"
                f" {or_less(likely)}",
            )
        else:
            kept = with_checkpoints if key.startswith("memory") else system
            yield warning(
                (key,),
                f"of the {machine:g} {what} of {context.types}, {kept} leave about {likely}, so a pod with"
                f" {wanted} may wait forever; set {key}: {or_less(likely)}",
            )


@BOOK.rule
def shared_memory_fits_the_pod(context: Context) -> Found:
    """Refuse more shared memory than the memory of the pod, of which it is a part."""
    wanted = context.job.shared_memory_gib
    if wanted is not None and wanted > context.plan.memory_gib:
        most = context.plan.memory_gib
        yield Problem(
            ("shared_memory_gib",),
            f"must be at most {most}, the memory of the pod, of which it is a part, got {wanted}; set"
            f" shared_memory_gib: {max(1, most // 2)}",
        )


@BOOK.rule
def variables_of_the_fabric_are_kept(context: Context) -> Found:
    """Warn about a variable that overrides one for the hardware: most of them result in a slow network."""
    own = plan(context.environment, context.plan.job.model_copy(update={"environment": {}})).variables
    for name, value in context.job.environment.items():
        if own.get(name, value) != value:
            yield warning(
                ("environment", name),
                f"{name} is {own[name]} for the hardware of {context.types}, got {value}; remove it unless you measured"
                " that it is better",
            )


@BOOK.rule
def nvlink_ends_at_the_node(context: Context) -> Found:
    """Warn if nodes share NVLink, which the pods of a job cannot use: the manifests claim no IMEX channel."""
    talks = (context.kind == "nccl" or runs_a_program(context.kind)) and context.nodes > 1
    if talks and context.plan.variables.get(fabric.NVLINK_BETWEEN_NODES) == "0":
        yield warning(
            ("group",),
            f"traffic between nodes of {context.types} uses EFA and not the UltraServer's NVLink, because pods"
            " claim no IMEX channel; for NVLink install NVIDIA's DRA driver, add a ComputeDomain and the workers'"
            f" claim of it to the manifest, and set {fabric.NVLINK_BETWEEN_NODES} to 1 in it",
        )


@BOOK.rule
def deep_health_checks_are_made(context: Context) -> Found:
    """Refuse to wait for nodes that passed deep health checks if the group has none."""
    if context.job.passed_deep_health_checks and not context.group.deep_health_checks:
        yield Problem(
            ("passed_deep_health_checks",),
            f"must be false on group {context.group.name}, which has no deep_health_checks: no node ever passes them;"
            " remove it, or add deep_health_checks to the group",
        )


@BOOK.rule
def spot_nodes_come_and_go(context: Context) -> Found:
    """Warn about work on Spot nodes that is lost when they are interrupted."""
    if context.group.resolved_capacity != "spot":
        return
    if context.kind in TRAINING:
        if context.job.checkpoints is None:
            yield warning(
                ("checkpoints",),
                f"group {context.group.name} is Spot capacity, which may be interrupted with two minutes' notice, and"
                " training without checkpoints starts from the beginning each time; add checkpoints",
            )
    elif context.kind == "dcgm" and context.job.measure.diagnostic_level == _HOURS:
        yield warning(
            ("measure", "diagnostic_level"),
            f"group {context.group.name} is Spot capacity, which may be interrupted in the hours that level {_HOURS}"
            " takes; set diagnostic_level: 3 or less",
        )


@BOOK.rule
def topology_is_wished_or_demanded(context: Context) -> Found:
    """Refuse both values, and neither, and a topology without a queue, because Kueue only places queued jobs."""
    topology = context.job.topology
    if topology is None:
        return
    if topology.preferred is not None and topology.required is not None:
        yield Problem(("topology",), "must state preferred or required, got both; remove one of the two")
    elif topology.preferred is None and topology.required is None:
        yield Problem(("topology",), "must state preferred or required, got neither; add one, or remove topology")
    elif context.job.team is None:
        yield Problem(
            ("topology",),
            "needs a team, because Kueue places only the pods of queued jobs; set team, or remove topology",
        )


def _other(what: str) -> str:
    return f"use a group with {what}"
