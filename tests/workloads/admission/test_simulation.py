"""The simulation admits, queues and preempts jobs as Kueue does, according to reports and to its documentation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperpod_cdk.config import Environment, load_environment
from hyperpod_cdk.workloads.admission.simulation import Admission, ClusterModel, Decision, simulate
from hyperpod_cdk.workloads.loading import load_job
from hyperpod_cdk.workloads.manifests.render import render
from tests.support.tables import row_by_row

Manifest = dict[str, Any]

GPU = "nvidia.com/gpu"
TYPE = "ml.g5.12xlarge"
LABEL = "node.kubernetes.io/instance-type"


def _environment(*teams: Manifest, nodes: int = 4, groups: Sequence[Manifest] = (), **section: Any) -> Environment:
    group = {"name": "a10g", "instance_type": TYPE, "count": nodes, "availability_zone_id": "use1-az5"}
    return Environment.model_validate(
        {
            "name": "lab",
            "account": "111122223333",
            "region": "us-east-1",
            "network": {"availability_zones": {"use1-az5": {}, "use1-az4": {}}},
            "hyperpod": {"instance_groups": [group, *groups]},
            "task_governance": {"teams": list(teams), **section},
        }
    )


def _team(name: str, count: int = 2, **fields: Any) -> Manifest:
    return {"name": name, "quota": [{"instance_type": TYPE, "count": count}], **fields}


def _job(
    team: str,
    pods: int,
    *,
    name: str = "",
    priority: str | None = None,
    queue: str | None = "",
    gpus: int = 4,
    pod: Manifest | None = None,
    more: Manifest | None = None,
    **requests: Any,
) -> Manifest:
    """A job of whole nodes."""
    wanted = {**requests, **(more or {}), **({GPU: gpus} if gpus else {})}
    container = {"name": "a", "image": "b:1", "resources": {"requests": wanted, "limits": wanted}}
    labels = {} if queue is None else {"kueue.x-k8s.io/queue-name": queue or f"hyperpod-ns-{team}-localqueue"}
    if priority:
        labels["kueue.x-k8s.io/priority-class"] = f"{priority}-priority"
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name or f"{team}-{pods}", "namespace": f"hyperpod-ns-{team}", "labels": labels},
        "spec": {
            "pytorchReplicaSpecs": {
                "Worker": {"replicas": pods, "template": {"spec": {"containers": [container], **(pod or {})}}}
            }
        },
    }


def _admission(*teams: Manifest, **fields: Any) -> Admission:
    return Admission(ClusterModel.of(_environment(*teams, **fields)))


def _submit(admission: Admission, *manifests: Manifest) -> Decision:
    (decision,) = admission.submit(manifests)
    return decision


def _percent(decision: Decision, resource: str = GPU) -> tuple[float | None, float | None]:
    before = next(each.percent for each in decision.before if each.resource == resource)
    return before, next(each.percent for each in decision.after if each.resource == resource)


def test_two_teams_as_in_a_public_report(project: Path) -> None:
    """John's job by hand takes half of the GPUs, smith's the other half, one node of it borrowed."""
    environment = load_environment(project / "examples" / "two-teams.yaml").environment
    text = (project / "tests" / "workloads" / "admission" / "two_teams.yaml").read_text(encoding="utf-8")
    submitted = [list(yaml.safe_load_all(text.replace("-john", team))) for team in ("-john", "-smith")]
    decisions = simulate(environment, submitted)
    assert [(each.job, each.status, each.why) for each in decisions] == [
        ("Deployment hyperpod-ns-john/etcd", "admitted", "requests nothing that a quota counts"),
        ("PyTorchJob hyperpod-ns-john/fsdp", "admitted", "within the quota of john"),
        ("Deployment hyperpod-ns-smith/etcd", "admitted", "requests nothing that a quota counts"),
        (
            "PyTorchJob hyperpod-ns-smith/fsdp",
            "admitted",
            "borrows 4 nvidia.com/gpu and 1 vpc.amazonaws.com/efa of ml.g5.12xlarge, idle in the quota of john",
        ),
    ]
    assert [_percent(each) for each in decisions] == [(0.0, 0.0), (0.0, 50.0), (50.0, 50.0), (50.0, 100.0)]
    assert decisions[3].lenders == ("john",)


def test_the_two_teams_as_they_are_rendered(project: Path) -> None:
    """The examples' jobs, which ask for CPU and memory too, come to the same, in either order."""
    loaded = load_environment(project / "examples" / "two-teams.yaml")
    jobs = [
        render(
            loaded.environment,
            load_job(project / f"examples/jobs/{name}-fsdp.yaml", environment=loaded, overrides={}).job,
        )
        for name in ("john", "smith")
    ]
    for submitted in (jobs, jobs[::-1]):
        first, second = simulate(loaded.environment, submitted)
        assert (first.status, _percent(first)) == ("admitted", (0.0, 50.0))
        assert (second.status, _percent(second)) == ("admitted", (50.0, 100.0))
        assert not (*first.warnings, *second.warnings, *first.preempted, *second.preempted)


def test_what_aws_shows_of_a_borrowing_queue() -> None:
    """The walkthrough of AWS's command line: 88 vCPUs and 328 GiB in use, 40 and 136 of them borrowed."""
    sharing = {"strategy": "lend_and_borrow", "borrow_limit_percent": 100}
    admission = _admission(_team("a", 1, sharing=sharing), _team("b", 1, sharing=sharing), nodes=2)
    decision = _submit(admission, _job("a", 2, cpu=44, memory="164Gi"))
    assert {each.resource: each.amount for each in decision.borrowed} == {"cpu": 40, "memory": 136 * 2**30, GPU: 4}
    assert {each.resource: each.amount for each in decision.own} == {"cpu": 48, "memory": 192 * 2**30, GPU: 4}
    assert [str(each) for each in decision.own] == [
        f"48 vCPUs of {TYPE}",
        f"192 GiB of memory of {TYPE}",
        f"4 nvidia.com/gpu of {TYPE}",
    ]
    taken_back = _submit(admission, _job("b", 1))
    assert (taken_back.why, taken_back.preempted) == (
        "within the quota of b; preempts PyTorchJob hyperpod-ns-a/a-2",
        ("PyTorchJob hyperpod-ns-a/a-2",),
    )
    assert admission.waiting == ("PyTorchJob hyperpod-ns-a/a-2",)


@pytest.mark.parametrize("idle_compute", ["fair_share", "first_come_first_served"])
def test_the_three_jobs_of_awss_example(idle_compute: str) -> None:
    """Idle compute is lent, the owner takes it back, and a higher priority comes first within the team."""
    admission = _admission(_team("team-a"), _team("team-b"), ordering="priority", idle_compute=idle_compute)
    first = _submit(admission, _job("team-a", 3, name="one"))
    assert (first.status, first.lenders) == ("admitted", ("team-b",))
    assert first.why == "borrows 4 nvidia.com/gpu of ml.g5.12xlarge, idle in the quota of team-b"
    second = _submit(admission, _job("team-b", 2, name="two"))
    assert (second.status, second.preempted) == ("admitted", ("PyTorchJob hyperpod-ns-team-a/one",))
    third = _submit(admission, _job("team-b", 2, name="three", priority="training"))
    assert (third.status, third.priority, third.preempted) == ("admitted", 80, ("PyTorchJob hyperpod-ns-team-b/two",))
    assert admission.running == ("PyTorchJob hyperpod-ns-team-b/three",)
    assert admission.waiting == ("PyTorchJob hyperpod-ns-team-a/one", "PyTorchJob hyperpod-ns-team-b/two")
    # of those that wait, the one that borrows nothing comes first, and leaves too little for the other
    (again,) = admission.finish("PyTorchJob hyperpod-ns-team-b/three")
    assert (again.job, again.status) == ("PyTorchJob hyperpod-ns-team-b/two", "admitted")
    assert list(admission.waiting) == ["PyTorchJob hyperpod-ns-team-a/one"]


NEVER: dict[str, tuple[Manifest, str]] = {
    "more than may be borrowed": (
        _job("a", 4),
        (
            "requests 16 nvidia.com/gpu of ml.g5.12xlarge, of which a owns 8 nvidia.com/gpu and may borrow at most 4"
            " nvidia.com/gpu; request less, or raise the team's quota or borrow limit"
        ),
    ),
    "more memory": (
        _job("a", 2, memory="300Gi"),
        (
            "requests 600 GiB of memory of ml.g5.12xlarge, of which a owns 384 GiB of memory and may borrow at most 192"
            " GiB of memory; request less, or raise the team's quota or borrow limit"
        ),
    ),
    "another type": (
        _job("a", 1, pod={"nodeSelector": {LABEL: "ml.p5.48xlarge"}}),
        "its worker pods select nodes for which a has no quota (it has ml.g5.12xlarge); add them to the team's quota",
    ),
    "partitions": (
        _job("a", 1, gpus=0, more={"nvidia.com/mig-3g.20gb": 1}),
        (
            "its worker pods request nvidia.com/mig-3g.20gb, which the queue of a does not count; add it to the team's"
            " quota"
        ),
    ),
    "another name of a device": (
        _job("a", 1, gpus=0, more={"aws.amazon.com/neuron": 1}),
        (
            "its worker pods request aws.amazon.com/neuron, which the queue of a does not count; request"
            " aws.amazon.com/neurondevice"
        ),
    ),
    "another team's queue": (
        _job("a", 1, queue="hyperpod-ns-b-localqueue"),
        (
            "must name a queue of its namespace (hyperpod-ns-a-localqueue), got hyperpod-ns-b-localqueue in"
            " hyperpod-ns-a; set the label kueue.x-k8s.io/queue-name, or the namespace of the team"
        ),
    ),
    "no team's namespace": (
        _job("x", 1, queue="hyperpod-ns-a-localqueue"),
        (
            "must name a queue of its namespace (there is none), got hyperpod-ns-a-localqueue in hyperpod-ns-x; set the"
            " label kueue.x-k8s.io/queue-name, or the namespace of the team"
        ),
    ),
    "unknown priority": (
        _job("a", 1, priority="urgent"),
        (
            "must name a priority class of the cluster (inference-priority, training-priority), got urgent-priority;"
            " set the label kueue.x-k8s.io/priority-class"
        ),
    ),
    "quota not in force": (_job("c", 1), "the compute quota of c is not active; set active: true"),
}


@row_by_row("name", NEVER)
def test_jobs_that_are_never_admitted(name: str) -> None:
    """Each says what it lacks, uses nothing and does not wait."""
    manifest, why = NEVER[name]
    admission = _admission(_team("a"), _team("b"), _team("c", 1, active=False), ordering="priority")
    decision = _submit(admission, manifest)
    assert (decision.status, decision.why) == ("never", why)
    assert decision.before == decision.after
    assert (admission.waiting, admission.running) == ((), ())


def test_jobs_without_a_queue_start_outside_quotas() -> None:
    """They use nodes that the quotas count on; a default queue catches them."""
    admission = _admission(_team("a"), _team("b", default_queue=True))
    free = _submit(admission, _job("a", 2, queue=None))
    assert (free.status, _percent(free)) == ("unmanaged", (0.0, 50.0))
    assert free.why == (
        "it has no label kueue.x-k8s.io/queue-name, so it starts outside all quotas; set the label"
        " kueue.x-k8s.io/queue-name: hyperpod-ns-a-localqueue"
    )
    labelled = _job("x", 1, queue=None)
    template = labelled["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]
    template["metadata"] = {"labels": {"kueue.x-k8s.io/queue-name": "hyperpod-ns-a-localqueue"}}
    assert _submit(admission, labelled).why == (
        "only its pods have the label kueue.x-k8s.io/queue-name, and Kueue reads the job's, so it starts outside all"
        " quotas; submit it in the namespace of a team, with its queue"
    )
    caught = _submit(admission, _job("b", 2, queue=None))
    assert (caught.status, caught.queue, caught.team) == ("admitted", "default", "b")
    # quotas have room, nodes have none: the percentages tell
    assert _percent(caught) == (75.0, 125.0)
    assert admission.finish(free.job) == ()
    with pytest.raises(ValueError, match="must be a running job") as error:
        admission.finish(free.job)
    assert str(error.value) == (
        "must be a running job (PyTorchJob hyperpod-ns-b/b-2), got PyTorchJob hyperpod-ns-a/a-2"
    )


def test_without_task_governance_jobs_start_at_once() -> None:
    """Labels do nothing there."""
    environment = _environment(_team("a")).model_copy(update={"task_governance": None})
    (decision,) = simulate(environment, [[_job("a", 1)]])
    assert (decision.status, decision.why) == (
        "unmanaged",
        "the environment has no task governance, so jobs start at once",
    )


def test_jobs_wait_and_start_when_others_end() -> None:
    """What waits says what is free; it starts by priority, not by age."""
    admission = _admission(_team("a", 2), ordering="priority", nodes=2)
    running = _submit(admission, _job("a", 2, priority="inference"))
    late = _submit(admission, _job("a", 1, name="late"))
    _submit(admission, _job("a", 2, name="urgent", priority="training"))
    assert (late.status, late.why) == (
        "waiting",
        (
            "requests 4 nvidia.com/gpu of ml.g5.12xlarge, of which 0 nvidia.com/gpu are free for a now (it owns 8"
            " nvidia.com/gpu and uses 8 nvidia.com/gpu), and no job may be preempted for it; it starts when others end"
        ),
    )
    assert [each.name for each in admission.finish(running.job)] == ["urgent"]
    assert admission.waiting == (late.job,)


@row_by_row(
    "lender, borrower, pods, status",
    [
        ({"strategy": "lend_and_borrow"}, {"strategy": "lend_and_borrow"}, 3, "admitted"),
        ({"strategy": "lend"}, {"strategy": "lend_and_borrow"}, 3, "admitted"),
        ({"strategy": "dont_lend"}, {"strategy": "lend_and_borrow"}, 3, "never"),
        ({"strategy": "lend"}, {"strategy": "lend"}, 3, "never"),
        ({"strategy": "lend"}, {"strategy": "dont_lend"}, 3, "never"),
        ({"strategy": "dont_lend"}, {"strategy": "dont_lend"}, 2, "admitted"),
        ({"strategy": "lend"}, {"strategy": "lend_and_borrow", "borrow_limit_percent": 49}, 3, "never"),
        ({"strategy": "lend"}, {"strategy": "lend_and_borrow", "borrow_limit_percent": 100}, 4, "admitted"),
        (
            {"strategy": "lend"},
            {"strategy": "lend_and_borrow", "absolute_borrow_limits": [{"instance_type": TYPE, "count": 2}]},
            4,
            "admitted",
        ),
        (
            {"strategy": "lend"},
            {
                "strategy": "lend_and_borrow",
                "borrow_limit_percent": 500,
                "absolute_borrow_limits": [{"instance_type": TYPE, "accelerators": 3}],
            },
            3,
            "never",
        ),
    ],
)
def test_lending_and_borrowing(lender: Manifest, borrower: Manifest, pods: int, status: str) -> None:
    """A job of so many nodes by a team that owns two of four."""
    admission = _admission(_team("a", sharing=borrower), _team("b", sharing=lender))
    assert _submit(admission, _job("a", pods)).status == status


@pytest.mark.parametrize(("sharing", "status"), [(True, "admitted"), (False, "never"), (None, "never")])
def test_compute_outside_quotas(sharing: bool | None, status: str) -> None:  # noqa: FBT001 - a column of the table
    """Nodes that no quota covers can be borrowed where the policy says so."""
    admission = _admission(_team("a", 2), nodes=4, idle_resource_sharing=sharing)
    decision = _submit(admission, _job("a", 3))
    assert decision.status == status
    if sharing:
        assert decision.why == "borrows 4 nvidia.com/gpu of ml.g5.12xlarge, idle outside all quotas"


def test_what_is_not_known_or_not_there_is_no_compute() -> None:
    """A type without numbers has no quota, a group without nodes nothing beside quotas."""
    empty = {"name": "empty", "instance_type": "ml.g6.12xlarge", "count": 0, "availability_zone_id": "use1-az5"}
    rows = [{"instance_type": TYPE, "count": 1}, {"instance_type": "ml.p99.48xlarge", "count": 1}]
    model = ClusterModel.of(
        _environment({"name": "a", "quota": rows}, nodes=2, groups=[empty], idle_resource_sharing=True)
    )
    assert {name for name, _ in model.unassigned} == {TYPE}
    assert model.queue("a").types == (TYPE,)


def test_a_quota_that_is_not_in_force_lends_nothing() -> None:
    """Others cannot borrow it."""
    admission = _admission(_team("a"), _team("b", active=False))
    assert _submit(admission, _job("a", 3)).status == "never"


def test_a_team_that_lends_nothing_keeps_what_it_owns() -> None:
    """Its own jobs fit whatever others borrow among themselves."""
    sharing = {"strategy": "lend_and_borrow", "borrow_limit_percent": 500}
    teams = (_team("a", 1, sharing=sharing), _team("b", 1), _team("c", 2, sharing={"strategy": "dont_lend"}))
    admission = _admission(*teams)
    assert _submit(admission, _job("a", 2)).status == "admitted"
    kept = _submit(admission, _job("c", 2))
    assert (kept.status, kept.preempted) == ("admitted", ())


@pytest.mark.parametrize(
    ("idle_compute", "weights", "status"),
    [
        ("fair_share", (0, 100), "admitted"),
        ("fair_share", (1, 100), "admitted"),
        ("fair_share", (100, 0), "waiting"),
        ("fair_share", (0, 0), "waiting"),
        ("first_come_first_served", (0, 100), "waiting"),
    ],
)
def test_idle_compute_goes_by_weight(idle_compute: str, weights: tuple[int, int], status: str) -> None:
    """A borrows what c leaves idle, then b wants to: with fair sharing the greater weight takes it over."""
    sharing = {"strategy": "lend_and_borrow", "borrow_limit_percent": 500}
    teams = [_team(name, 1, sharing=sharing, fair_share_weight=w) for name, w in zip("ab", weights, strict=True)]
    admission = _admission(*teams, _team("c", 1), nodes=3, idle_compute=idle_compute)
    assert _submit(admission, _job("a", 1, name="own")).status == "admitted"
    borrowing = _submit(admission, _job("a", 1, name="extra"))
    assert _submit(admission, _job("b", 1, name="own")).status == "admitted"
    decision = _submit(admission, _job("b", 1, name="extra"))
    assert (decision.status, decision.preempted) == (status, (borrowing.job,) if status == "admitted" else ())


def test_the_second_rule_of_fair_sharing() -> None:
    """One large borrowing job gives way to a team that borrows less, though the first would then borrow nothing."""
    sharing = {"strategy": "lend_and_borrow", "borrow_limit_percent": 500}
    teams = [_team(name, 1, sharing=sharing, fair_share_weight=10) for name in "ab"]
    admission = _admission(*teams, _team("c", 3), nodes=5)
    assert _submit(admission, _job("a", 4)).status == "admitted"
    assert _submit(admission, _job("b", 1, name="own")).status == "admitted"
    decision = _submit(admission, _job("b", 1, name="extra"))
    assert (decision.status, decision.preempted) == ("admitted", ("PyTorchJob hyperpod-ns-a/a-4",))


def test_only_as_many_jobs_stop_as_have_to() -> None:
    """The youngest borrowers first, and whoever turns out not to be needed goes on."""
    sharing = {"strategy": "lend_and_borrow", "borrow_limit_percent": 500}
    admission = _admission(_team("a", 1, sharing=sharing), _team("b", 3))
    for number, gpus in enumerate((4, 4, 4, 2, 2)):
        assert _submit(admission, _job("a", 1, name=f"j{number}", gpus=gpus)).status == "admitted"
    # 16 of 16 are in use; the owner wants 8 back, for which the two small ones and one large one give way
    decision = _submit(admission, _job("b", 2))
    assert decision.preempted == tuple(f"PyTorchJob hyperpod-ns-a/j{number}" for number in (4, 3, 2))
    assert decision.status == "admitted"


@pytest.mark.parametrize(("preemption", "status"), [("lower_priority", "admitted"), ("never", "waiting")])
def test_priorities_within_a_team(preemption: str, status: str) -> None:
    """A team may forbid it; equal priorities never stop one another."""
    admission = _admission(_team("a", 1, preemption=preemption), nodes=1, ordering="priority")
    first = _submit(admission, _job("a", 1, name="first", priority="training"))
    assert _submit(admission, _job("a", 1, name="equal", priority="training")).status == "waiting"
    decision = _submit(admission, _job("a", 1, name="higher", priority="inference"))
    assert (decision.status, decision.preempted) == (status, (first.job,) if status == "admitted" else ())


def test_priority_does_not_count_between_teams() -> None:
    """What a team uses of its own is safe from others, whatever they are called."""
    sharing = {"strategy": "lend_and_borrow", "borrow_limit_percent": 500}
    admission = _admission(_team("a", 2), _team("b", 2, sharing=sharing), ordering="priority")
    _submit(admission, _job("a", 2))
    assert _submit(admission, _job("b", 3, priority="inference")).status == "waiting"


def test_preempted_jobs_start_again_where_they_fit() -> None:
    """A job of which half would have been enough to stop comes back at once if there is room."""
    small = {"name": "small", "instance_type": "ml.g6.12xlarge", "count": 1, "availability_zone_id": "use1-az5"}
    rows = [{"instance_type": TYPE, "count": 1}, {"instance_type": "ml.g6.12xlarge", "count": 1}]
    admission = _admission({"name": "a", "quota": rows}, nodes=1, groups=[small], ordering="priority")
    first = _submit(admission, _job("a", 1, name="first"))
    assert first.own[0].instance_type == TYPE
    chosen = {"nodeSelector": {LABEL: TYPE}}
    second = _submit(admission, _job("a", 1, name="second", priority="training", pod=chosen))
    assert second.preempted == (first.job,)
    assert (admission.running, admission.waiting) == ((second.job, first.job), ())


def _elastic(team: str, least: int, most: int, begins: int) -> Manifest:
    job = _job(team, begins, name="elastic")
    template = job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]
    spec = {
        "replicaSpecs": [{"name": "pods", "replicas": begins, "maxReplicas": most, "template": template}],
        "elasticPolicy": {"minReplicas": least, "maxReplicas": most},
    }
    return {**job, "kind": "HyperPodPyTorchJob", "apiVersion": "sagemaker.amazonaws.com/v1", "spec": spec}


def test_elastic_jobs_grow_and_shrink() -> None:
    """It takes what lies idle, gives it back to its owner alone, and grows again."""
    admission = _admission(
        _team("a", 1, sharing={"strategy": "lend_and_borrow", "borrow_limit_percent": 500}), _team("b", 3)
    )
    decision = _submit(admission, _elastic("a", 1, 4, 1))
    assert (decision.pods, _percent(decision)) == (4, (0.0, 100.0))
    assert decision.why == (
        "borrows 12 nvidia.com/gpu of ml.g5.12xlarge, idle in the quota of b; grows from 1 to 4 pods with idle compute"
    )
    owner = _submit(admission, _job("b", 2))
    assert (owner.status, owner.preempted, _percent(owner)) == ("admitted", (decision.job,), (100.0, 100.0))
    assert (admission.running, admission.waiting) == ((decision.job, owner.job), ())
    assert admission.finish(owner.job) == ()
    (_, after) = _percent(_submit(admission, _job("b", 0, name="nothing")))
    assert after == 100.0


def test_what_quotas_do_not_see_is_a_warning() -> None:
    """Pods that no node can hold, nodes that no group has, resources that queues do not count."""
    admission = _admission(_team("a"), nodes=4)
    large = _submit(admission, _job("a", 1, gpus=8))
    assert (large.status, large.warnings) == (
        "admitted",
        (
            (
                "no node has room for one of its worker pods, which request 8 nvidia.com/gpu: a node of a10g has 48"
                " vCPUs,"
                " 192 GiB of memory, 4 nvidia.com/gpu, 1 vpc.amazonaws.com/efa"
            ),
        ),
    )
    cores = _submit(admission, _job("a", 1, name="cores", queue=None, gpus=0, more={"aws.amazon.com/neuroncore": 2}))
    assert (cores.status, cores.warnings) == ("unmanaged", ())
    elsewhere = _submit(admission, _job("a", 1, name="elsewhere", pod={"nodeSelector": {LABEL: "ml.p5.48xlarge"}}))
    assert elsewhere.warnings == ("no instance group has nodes of the types that its worker pods need",)
    pages = _submit(admission, _job("a", 1, name="pages", more={"hugepages-2Mi": "5120Mi"}))
    assert pages.warnings == (
        (
            "its worker pods request hugepages-2Mi, which AWS does not show in a team's queue: unless Kueue is"
            " configured to ignore it, the job is never admitted"
        ),
    )


def test_parts_of_instances_count_by_ratio() -> None:
    """Accelerators bring their share of vCPUs and memory, and whole EFA interfaces."""
    row = {"instance_type": TYPE, "accelerators": 6}
    (queue,) = ClusterModel.of(_environment({"name": "a", "quota": [row]})).queues
    assert {key[1]: value for key, value in queue.nominal.items()} == {
        "cpu": 72,
        "memory": 288 * 2**30,
        GPU: 6,
        "vpc.amazonaws.com/efa": 2,
    }
    partition = {"instance_type": "ml.p4d.24xlarge", "accelerator_partition": {"profile": "mig-3g.20gb", "count": 8}}
    (queue,) = ClusterModel.of(_environment({"name": "a", "quota": [partition]})).queues
    assert {key[1]: value for key, value in queue.nominal.items()} == {
        "cpu": 48,
        "memory": 576 * 2**30,
        "nvidia.com/mig-3g.20gb": 8,
        "vpc.amazonaws.com/efa": 2,
    }


def test_decisions_are_plain_data_too() -> None:
    """What ``--format json`` prints survives JSON as it is."""
    decision = _submit(_admission(_team("a"), _team("b")), _job("a", 3))
    found = decision.as_dict()
    assert json.loads(json.dumps(found)) == found
    assert found["borrowed"] == [{"instance_type": TYPE, "resource": GPU, "amount": 4.0}]
    assert found["after"][GPU] == {"used": 12.0, "capacity": 16.0, "percent": 75.0}
    assert {name: found[name] for name in ("job", "team", "status", "pods", "lenders", "preempted")} == {
        "job": "PyTorchJob hyperpod-ns-a/a-3",
        "team": "a",
        "status": "admitted",
        "pods": 3,
        "lenders": ["b"],
        "preempted": [],
    }


def test_elastic_jobs_stop_growing_where_nothing_is_left() -> None:
    """Not every size has room."""
    admission = _admission(_team("a", 2), nodes=2)
    decision = _submit(admission, _elastic("a", 1, 8, 1))
    assert (decision.pods, decision.why) == (
        2,
        "within the quota of a; grows from 1 to 2 pods with idle compute",
    )


def test_nodes_that_karpenter_makes_have_no_end() -> None:
    """Groups without nodes count for nothing in use, and with idle_resource_sharing without end beside quotas."""
    about = _environment(_team("a", 1), nodes=0, idle_resource_sharing=True)
    hyperpod = about.hyperpod.model_copy(update={"autoscaling": "karpenter"})
    admission = Admission(ClusterModel.of(about.model_copy(update={"hyperpod": hyperpod})))
    decision = _submit(admission, _job("a", 1))
    assert (decision.status, _percent(decision)) == ("admitted", (None, None))
    assert _submit(admission, _job("a", 1, gpus=2, name="more")).lenders == ("outside all quotas",)


def test_quotas_of_trainium_count_devices_by_aws_name() -> None:
    """What the device plugin calls a device in one place is a Neuron device in quotas."""
    row = {"instance_type": "ml.trn1.32xlarge", "count": 1}
    (queue,) = ClusterModel.of(_environment({"name": "a", "quota": [row]})).queues
    assert queue.nominal["ml.trn1.32xlarge", "aws.amazon.com/neurondevice"] == 16
    cpu = {"instance_type": "ml.c5.large", "count": 1}
    (queue,) = ClusterModel.of(_environment({"name": "a", "quota": [cpu]})).queues
    assert set(queue.resources) == {"cpu", "memory"}


SHARING: st.SearchStrategy[Manifest] = st.one_of(
    st.builds(dict, strategy=st.sampled_from(["lend", "dont_lend"])),
    st.builds(dict, strategy=st.just("lend_and_borrow"), borrow_limit_percent=st.integers(1, 500)),
)
TEAMS: st.SearchStrategy[list[Manifest]] = st.lists(
    st.builds(dict, count=st.integers(1, 4), sharing=SHARING, weight=st.integers(0, 3), preempts=st.booleans()),
    min_size=1,
    max_size=4,
)
SUBMISSIONS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(1, 5), st.sampled_from([None, "training", "inference"]), st.booleans()),
    max_size=10,
)


def _drawn(teams: list[Manifest], *, idle_compute: str = "fair_share") -> Environment:
    return _environment(
        *(
            _team(
                f"t{index}",
                each["count"],
                sharing=each["sharing"],
                fair_share_weight=each["weight"],
                preemption="lower_priority" if each["preempts"] else "never",
            )
            for index, each in enumerate(teams)
        ),
        nodes=sum(each["count"] for each in teams),
        ordering="priority",
        idle_compute=idle_compute,
    )


@given(TEAMS, SUBMISSIONS, st.sampled_from(["fair_share", "first_come_first_served"]))
@settings(max_examples=60)
def test_quotas_hold_whatever_is_submitted(
    teams: list[Manifest], submissions: list[tuple[int, int, str | None, bool]], idle_compute: str
) -> None:
    """Nobody exceeds quota and limit, all together no more than there is, and an owner is refused only by its own."""
    admission = Admission(ClusterModel.of(_drawn(teams, idle_compute=idle_compute)))
    for number, (index, pods, priority, ends) in enumerate(submissions):
        team = f"t{index % len(teams)}"
        decision = _submit(admission, _job(team, pods, name=f"j{number}", priority=priority))
        used = {queue.team: Decimal(0) for queue in admission.model.queues}
        for running in admission._running:
            used[running.team] += running.wanted.get((TYPE, GPU), Decimal(0))
        for queue in admission.model.queues:
            key = (TYPE, GPU)
            owned = queue.nominal[key]
            assert used[queue.team] <= owned + queue.borrows.get(key, Decimal(0))
            others = sum(used.values()) - used[queue.team]
            # what is kept from lending is there for its owner
            assert others <= sum(each.nominal[key] for each in admission.model.queues) - queue.kept(key)
        assert sum(used.values()) <= 4 * sum(each["count"] for each in teams)
        own = admission.model.queue(team).nominal[TYPE, GPU]
        if decision.status == "waiting":
            assert used[team] + 4 * pods > own
        assert (decision.status == "never") == (
            4 * pods > admission.model.available(admission.model.queue(team), (TYPE, GPU), {})
        )
        if ends and decision.status == "admitted":
            admission.finish(decision.job)
