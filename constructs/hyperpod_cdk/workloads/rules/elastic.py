"""Rules about elastic training: its requirements, and the sizes of a job."""

from __future__ import annotations

from hyperpod_cdk.catalog.rules import listing
from hyperpod_cdk.catalog.sentences import Sentence, Setting
from hyperpod_cdk.config.rules.book import Problem, warning
from hyperpod_cdk.workloads.job import Elastic
from hyperpod_cdk.workloads.rules.book import Book, Context, Found, or_less

BOOK = Book()

_OPERATOR = "hyperpod-pytorch"


@BOOK.rule
def elastic_training_is_possible(context: Context) -> Found:
    """Refuse elastic training if the operator does not support it."""
    if context.job.elastic is None or context.kind != _OPERATOR:
        return
    at = ("elastic",)
    training, checkpoints = context.environment.operators.training, context.job.checkpoints
    if training.enabled and not training.elastic:
        yield Problem(
            at,
            "must be left out if operators.training.elastic is false; set it to true in the environment, or remove"
            " elastic",
        )
    elif context.group.resolved_capacity == "spot":
        yield Problem(
            at,
            "must be left out on Spot capacity, which elastic training does not support, got group"
            f" {context.group.name}; remove elastic, or use another group",
        )
    elif checkpoints is not None and checkpoints.tiered:
        yield Problem(
            at,
            "must be left out with tiered checkpointing, which elastic training does not support; remove elastic, or"
            " checkpoints.tiered",
        )
    elif checkpoints is None:
        yield warning(
            ("checkpoints",),
            "elastic training resumes from a checkpoint at each change of size, and without one starts"
            " again from the beginning; add"
            " checkpoints",
        )


@BOOK.rule
def elastic_sizes_go_together(context: Context) -> Found:
    """Refuse sizes that contradict each other, the group, or the initial number of nodes."""
    elastic = context.job.elastic
    if elastic is None or context.kind != _OPERATOR:
        return
    least, most = elastic.min_nodes, elastic.max_nodes
    if least > most:
        yield Problem(
            ("elastic", "min_nodes"), f"must be at most max_nodes, {most}, got {least}; set min_nodes: {or_less(most)}"
        )
        return
    if elastic.values and elastic.increment is not None:
        yield Problem(
            ("elastic", "increment"),
            f"cannot be set together with values, a list of the sizes, got {elastic.increment}; remove one of the two",
        )
        return
    wrong = list(_values(elastic))
    if elastic.increment is not None and (most - least) % elastic.increment:
        reached = most - (most - least) % elastic.increment
        wrong.append(
            Problem(
                ("elastic", "max_nodes"),
                f"must be min_nodes and a multiple of increment, {least} and times {elastic.increment}, got {most}; set"
                f" max_nodes: {reached} or {reached + elastic.increment}",
            )
        )
    count = context.group.count
    if not wrong and count and most > count:
        wrong.append(
            Problem(
                ("elastic", "max_nodes"),
                f"must be at most {count}, the count of group {context.group.name}, got {most}; set max_nodes:"
                f" {or_less(count)}",
            )
        )
    yield from wrong
    if not wrong:
        yield from _beginning(context, elastic)


def _values(elastic: Elastic) -> Found:
    """Yield problems of listed sizes."""
    at = ("elastic", "values")
    values, least, most = elastic.values, elastic.min_nodes, elastic.max_nodes
    for index, value in enumerate(values):
        if not least <= value <= most:
            yield Problem(
                (*at, index), f"must be within min_nodes and max_nodes, {least} to {most}, got {value}; remove it"
            )
    if list(values) != sorted(set(values)):
        ordered = ", ".join(str(value) for value in sorted(set(values)))
        yield Problem(at, f"must be in ascending order without duplicates, got {list(values)}; set values: [{ordered}]")


def _beginning(context: Context, elastic: Elastic) -> Found:
    """Yield problems of the initial number of nodes."""
    nodes, least = context.nodes, elastic.min_nodes
    step = elastic.increment or 1
    sizes = elastic.values or tuple(range(least, elastic.max_nodes + 1, step))
    if nodes in sizes:
        return
    got = f"got {nodes}" if context.job.nodes else f"got all {nodes} of group {context.group.name}"
    shown = listing(sizes) if len(sizes) <= 8 else f"{sizes[0]}, {sizes[1]} ... {sizes[-1]}"
    said = f"must be an initial size that elastic allows ({shown}), {got}; "
    yield Problem(("nodes",), Sentence(said, Setting("nodes", least)))
