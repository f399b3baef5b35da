"""Rules about required fields of jobs, and about fields that a kind does not use."""

from __future__ import annotations

from collections.abc import Mapping

from hyperpod_cdk.catalog.rules import listing
from hyperpod_cdk.catalog.sentences import Sentence, Setting, plural
from hyperpod_cdk.config.rules.book import Problem, warning
from hyperpod_cdk.workloads.job import KINDS, TRAINING, Kind, own_kinds, runs_a_program
from hyperpod_cdk.workloads.nodes import node_shape
from hyperpod_cdk.workloads.rules.book import Book, Context, Found, fix_for, is_unknown

BOOK = Book()

_TESTS: tuple[Kind, ...] = tuple(kind for kind in KINDS if kind not in TRAINING)
_COLLECTIVES: tuple[Kind, ...] = ("nccl", "nccom")
_OPERATOR: tuple[Kind, ...] = ("hyperpod-pytorch",)
_WITH_RANKS: tuple[Kind, ...] = tuple(kind for kind in KINDS if kind != "efa-info")
_WITH_EFA: tuple[Kind, ...] = tuple(kind for kind in KINDS if kind != "dcgm")

_READ_BY: Mapping[tuple[str, ...], tuple[Kind, ...]] = {
    ("shared_memory_gib",): _WITH_RANKS,
    ("huge_pages_mib",): _WITH_EFA,
    ("command",): TRAINING,
    ("launcher",): TRAINING,
    ("checkpoints",): TRAINING,
    ("restart",): TRAINING,
    ("restart", "evaluation_seconds"): _OPERATOR,
    ("restart", "before_full"): _OPERATOR,
    ("restart", "max_full"): _OPERATOR,
    ("restart", "spares"): _OPERATOR,
    ("elastic",): _OPERATOR,
    ("log_monitoring",): _OPERATOR,
    ("measure",): _TESTS,
    ("measure", "collectives"): _COLLECTIVES,
    ("measure", "min_bytes"): _COLLECTIVES,
    ("measure", "max_bytes"): _COLLECTIVES,
    ("measure", "iterations"): _COLLECTIVES,
    ("measure", "pairs"): ("nccl",),
    ("measure", "diagnostic_level"): ("dcgm",),
}
"""Fields that not every kind uses; an outer field precedes the fields inside it."""


@BOOK.rule
def kind_is_stated(context: Context) -> Found:
    """Refuse a job without a kind."""
    if context.job.kind is None:
        kinds = listing((*KINDS, *own_kinds()))
        yield Problem(("kind",), f"is missing; add kind: nccl, or another of {kinds}, to the job file, or use --kind")


@BOOK.rule
def group_is_there(context: Context) -> Found:
    """Refuse a job without an instance group, and groups that do not exist or are for Nova recipes."""
    name, section = context.job.group, context.environment.hyperpod
    names = [group.name for group in section.instance_groups]
    if not names:
        yield Problem(("group",), "needs an instance group, but the environment has only restricted ones; add one")
    elif name is None:
        yield Problem(
            ("group",),
            f"is missing; add group: {_likely(context)}, or specify --group; there"
            f" {plural(len(names), 'is', 'are')} {_all(names)}",
        )
    elif name in {group.name for group in section.restricted_instance_groups}:
        yield Problem(
            ("group",),
            Sentence(
                f"must be one of instance_groups ({listing(names)}), got {name}, a restricted group, which runs only"
                " Nova recipes; ",
                Setting("group", _likely(context)),
            ),
        )
    elif name not in names:
        yield Problem(
            ("group",),
            Sentence(
                f'must be an instance group of {context.environment.name} ({listing(names)}), got "{name}"; ',
                fix_for(name, names, key="group", likely=_likely(context)),
            ),
        )


@BOOK.rule
def training_comes_with_a_file(context: Context) -> Found:
    """Refuse training without a job file, because the image and the command have no options."""
    if context.kind in TRAINING and not context.has_file:
        yield Problem(
            ("kind",),
            f"must be a test ({listing(_TESTS)}) without a job file, got {context.kind}; specify --job FILE with"
            " name, image and command",
        )


@BOOK.rule
def training_says_what_to_run(context: Context) -> Found:
    """Refuse training without a name, an image or a command."""
    if not runs_a_program(context.kind) or not context.has_file:
        return
    examples = {"name": "pre-training", "image": "<registry>/<repository>:<tag>", "command": "[train.py]"}
    if context.kind not in KINDS:
        # an extension's kind may provide the command
        del examples["command"]
    for key, example in examples.items():
        value = getattr(context.job, key)
        if not is_unknown(value) and not value:
            said = Sentence(f"is missing, and kind {context.kind} requires it; ", Setting(key, example, verb="add"))
            yield Problem((key,), said)


@BOOK.rule
def kinds_read_what_is_stated(context: Context) -> Found:
    """Refuse fields that a kind does not use, because they would be ignored."""
    refused: set[str] = set()
    for path, kinds in _READ_BY.items():
        outer, *inner = path
        # the code of an extension's kind gets the whole job, like the simplest kind of training
        kind = context.kind if context.kind in KINDS else TRAINING[0]
        if outer not in context.job.model_fields_set or outer in refused or kind in kinds:
            continue
        value = getattr(context.job, outer)
        if is_unknown(value) or (inner and (value is None or inner[0] not in value.model_fields_set)):
            continue
        if inner and is_unknown(getattr(value, inner[0])):
            continue
        if not inner:
            refused.add(outer)
        yield Problem(
            path,
            f"must be left out with kind {context.kind}, which does not use it; remove {path[-1]}, or set kind:"
            f" {listing(kinds)}",
        )


@BOOK.rule
def images_are_pinned(context: Context) -> Found:
    """Warn about an image without a tag or digest, or with the tag latest."""
    image = context.job.image
    if image is None or "@" in image:
        return
    _, colon, tag = image.rpartition("/")[2].partition(":")
    if not colon or tag == "latest":
        yield warning(
            ("image",),
            f"{image} is whatever image has {'this tag' if colon else 'the tag latest'} when a node pulls it, so a pod"
            " that is replaced may run other code than the others; specify a version or a digest",
        )


@BOOK.rule
def variables_have_one_value(context: Context) -> Found:
    """Refuse a variable that is in both environment and secrets."""
    for name in context.job.secrets:
        if name in context.job.environment:
            yield Problem(
                ("secrets", name), f"must be unique, got {name} as in environment; remove it from one of the two"
            )


def _likely(context: Context) -> str:
    """Return the most likely group: the first one with accelerators."""
    groups = context.environment.hyperpod.instance_groups
    shapes = [node_shape(context.environment, group) for group in groups]
    accelerated = (shape.group.name for shape in shapes if shape is not None and shape.accelerator_count)
    return next(accelerated, groups[0].name)


def _all(names: list[str]) -> str:
    return listing(names, last="and")
