"""All manifests, for all nodes, are accepted unchanged by an API server and admitted by Kueue within the quota."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperpod_cdk.catalog import instance_types
from hyperpod_cdk.catalog.instance_types import InstanceType
from hyperpod_cdk.config import Environment
from hyperpod_cdk.workloads.admission.simulation import Admission, ClusterModel
from hyperpod_cdk.workloads.job import KINDS, TRAINING, Job, Kind
from hyperpod_cdk.workloads.manifests.render import render
from tests.workloads.groups import TYPES, environment
from tests.workloads.schemas import check

TRAINED = {"name": "train", "image": "registry.example.com/training:1", "command": ["train.py"]}
MIG = ("all-1g.5gb", "all-3g.20gb", "all-7g.40gb")


def _row(name: str) -> InstanceType:
    row = instance_types.get(name)
    assert row is not None
    return row


def _suits(kind: Kind, row: InstanceType) -> bool:
    """Whether the rules let a kind run on nodes of a type."""
    match kind:
        case "nccl" | "dcgm":
            return row.is_nvidia
        case "neuron-info" | "nccom":
            return row.is_neuron
        case "efa-info":
            return row.efa_supported
        case _:
            return True


def _owned(about: Environment) -> Environment:
    """The environment with a quota of all nodes for the team."""
    (group,) = about.hyperpod.instance_groups
    quota = [{"instance_type": name, "count": group.count} for name in group.all_instance_types]
    section = {"ordering": "priority", "teams": [{"name": "research", "quota": quota}]}
    return Environment.model_validate({**about.model_dump(exclude_unset=True), "task_governance": section})


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_on_every_type(kind: Kind) -> None:
    """A job of all nodes passes the definitions, fits its nodes, and is admitted within a quota of all nodes."""
    suitable = [name for name in TYPES if _suits(kind, _row(name))]
    assert len(suitable) > 3
    for name in suitable:
        about = _owned(environment(name))
        fields = {"kind": kind, "group": "work", "team": "research", **(TRAINED if kind in TRAINING else {})}
        manifests = render(about, Job.model_validate(fields))
        check(*manifests)
        decisions = Admission(ClusterModel.of(about)).submit(manifests)
        assert decisions
        for decision in decisions:
            assert (decision.status, decision.warnings, decision.borrowed) == ("admitted", (), ()), (name, decision.why)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_without_a_team(kind: Kind) -> None:
    """Outside quotas, where pods may ask for huge pages too, manifests pass on the types with EFA."""
    for name in (name for name in TYPES if _row(name).efa_supported and _suits(kind, _row(name))):
        fields = {"kind": kind, "group": "work", **(TRAINED if kind in TRAINING else {})}
        manifests = render(environment(name), Job.model_validate(fields))
        check(*manifests)
        decisions = Admission(ClusterModel.of(environment(name))).submit(manifests)
        assert {(each.status, each.warnings) for each in decisions} == {("unmanaged", ())}


NAMES = st.from_regex(r"[a-z]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=20)
VARIABLES: st.SearchStrategy[dict[str, str]] = st.dictionaries(
    st.from_regex(r"[A-Z_][A-Z0-9_]{0,9}", fullmatch=True), TEXTS, max_size=3
)
SECRETS: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    st.from_regex(r"S_[A-Z]{1,5}", fullmatch=True), st.builds(dict, secret=NAMES, key=NAMES), max_size=2
)
VOLUMES: st.SearchStrategy[list[dict[str, Any]]] = st.lists(
    st.builds(
        dict,
        claim=st.sampled_from(["scratch", "data"]),
        mount_path=st.sampled_from(["/a", "/b", "/c/d"]),
        sub_path=st.sampled_from([None, "runs"]),
        read_only=st.booleans(),
    ),
    max_size=3,
    unique_by=lambda volume: str(volume["mount_path"]),
)
TOPOLOGY: st.SearchStrategy[dict[str, str] | None] = st.one_of(
    st.none(),
    st.builds(dict, preferred=st.just("topology.k8s.aws/network-node-layer-3")),
    st.builds(dict, required=st.just("topology.k8s.aws/network-node-layer-2")),
)
GROUPS: st.SearchStrategy[dict[str, Any]] = st.builds(
    dict,
    count=st.integers(2, 16),
    labels=st.dictionaries(NAMES, NAMES, max_size=2),
    taints=st.lists(
        st.builds(
            dict,
            key=st.sampled_from(["nvidia.com/gpu", "team", "example.com/spot"]),
            value=st.sampled_from([None, "true"]),
            effect=st.sampled_from(["NoSchedule", "PreferNoSchedule", "NoExecute"]),
        ),
        max_size=2,
        unique_by=lambda taint: (str(taint["key"]), str(taint["effect"])),
    ),
)


@st.composite
def _cases(draw: st.DrawFn) -> tuple[Environment, Job]:
    """An environment with one group of one or two types, perhaps of partitioned GPUs, and a job that suits it."""
    first = draw(st.sampled_from(TYPES))
    kinds = [kind for kind in KINDS if _suits(kind, _row(first))]
    kind = draw(st.sampled_from(kinds))
    group = draw(GROUPS)
    alike = [name for name in TYPES if _row(name).accelerator_kind == _row(first).accelerator_kind and name != first]
    types: str | tuple[str, ...] = first
    if first == "ml.p4d.24xlarge" and draw(st.booleans()):
        group["labels"] = {**group["labels"], "nvidia.com/mig.config": draw(st.sampled_from(MIG))}
    elif alike and kind != "efa-info" and draw(st.booleans()):
        types = (first, draw(st.sampled_from(alike)))
    fields: dict[str, Any] = {
        "kind": kind,
        "group": "work",
        "name": draw(NAMES),
        "nodes": draw(st.integers(2, group["count"])),
        "environment": draw(VARIABLES),
        "secrets": draw(SECRETS),
        "volumes": draw(VOLUMES),
        "topology": draw(TOPOLOGY),
        "passed_deep_health_checks": draw(st.booleans()),
        "service_account": draw(st.sampled_from([None, "trainer"])),
        "image_pull_policy": draw(st.sampled_from([None, "Always"])),
        "team": draw(st.sampled_from([None, "research"])),
    }
    if kind in TRAINING:
        fields |= {**TRAINED, "name": fields["name"], "launcher": draw(st.booleans())}
        fields["restart"] = {"max_retries": draw(st.integers(0, 100))}
        fields["checkpoints"] = draw(st.sampled_from([None, {"s3_uri": "s3://my-bucket/a"}]))
    if kind == "hyperpod-pytorch":
        most = draw(st.integers(fields["nodes"], 16))
        fields["elastic"] = draw(st.sampled_from([None, {"min_nodes": 1, "max_nodes": most, "increment": 1}]))
        fields["log_monitoring"] = draw(
            st.sampled_from([(), [{"name": "loss", "pattern": "loss: ([0-9.]+)", "metric_limit": 3, "operator": "gt"}]])
        )
    if kind == "nccl":
        fields["measure"] = {"pairs": draw(st.booleans()), "collectives": ["all_reduce", "alltoall"]}
    return environment(types, group=group), Job.model_validate(fields)


@given(_cases())
@settings(max_examples=50)
def test_jobs_of_all_sorts_on_groups_of_all_sorts(case: tuple[Environment, Job]) -> None:
    """Manifests pass, and the same job gives the same manifests."""
    about, job = case
    manifests = render(about, job)
    check(*manifests)
    assert render(about, job) == manifests
