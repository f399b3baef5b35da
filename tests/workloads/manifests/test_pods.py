"""The requests, node selection and mounts of pods."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.config import Environment
from hyperpod_cdk.workloads.manifests.pods import labels, metadata, pod_spec, template, topology_annotations
from hyperpod_cdk.workloads.plan import Plan
from tests.workloads.groups import environment, planned

DATA = {"claim": "scratch", "mount_path": "/data"}


def spec_of(made: Plan, **options: Any) -> dict[str, Any]:
    return pod_spec(made, **{"container": "worker", "command": ("run",), **options})


def container_of(made: Plan, **options: Any) -> dict[str, Any]:
    container: dict[str, Any] = spec_of(made, **options)["containers"][0]
    return container


def env_of(made: Plan, **options: Any) -> dict[str, str]:
    return {entry["name"]: entry["value"] for entry in container_of(made, **options)["env"] if "value" in entry}


def terms_of(made: Plan) -> list[dict[str, Any]]:
    required = spec_of(made)["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (term,) = required["nodeSelectorTerms"]
    terms: list[dict[str, Any]] = term["matchExpressions"]
    return terms


def test_devices_are_the_same_in_requests_and_limits() -> None:
    devices = {"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 32, "hugepages-2Mi": "5120Mi"}
    assert container_of(planned("ml.p5.48xlarge", "nccl"))["resources"] == {
        "requests": {"cpu": 178, "memory": "1847Gi", **devices},
        "limits": devices,
    }


def test_without_devices_there_are_no_limits() -> None:
    about = environment("ml.m5.2xlarge")
    assert container_of(planned(about, "pytorch", name="a", image="i:1"))["resources"] == {
        "requests": {"cpu": 7, "memory": "24Gi"}
    }


def test_a_team_s_queue_knows_neuron_devices_by_another_name() -> None:
    resources = container_of(planned("ml.trn1.32xlarge", "nccom", team="research"))["resources"]
    assert resources["limits"] == {"aws.amazon.com/neurondevice": 16, "vpc.amazonaws.com/efa": 8}
    alone = container_of(planned("ml.trn1.32xlarge", "nccom"))["resources"]
    assert alone["limits"]["aws.amazon.com/neuron"] == 16


def test_partitions_are_asked_for_by_name_once_they_are_made() -> None:
    cut = environment("ml.p4d.24xlarge", group={"labels": {"nvidia.com/mig.config": "all-3g.20gb"}})
    spec = spec_of(planned(cut, "pytorch", name="a", image="i:1"))
    assert spec["containers"][0]["resources"]["limits"] == {"nvidia.com/mig-3g.20gb": 1}
    assert spec["nodeSelector"]["nvidia.com/mig.config.state"] == "success"


def test_memory_may_be_locked_without_a_limit_where_there_is_efa_and_the_team_is_privileged() -> None:
    trusted = environment("ml.p5.48xlarge", pod_security="privileged")
    assert container_of(planned(trusted, "nccl", team="research"))["securityContext"] == {
        "capabilities": {"add": ["IPC_LOCK"]}
    }
    assert "securityContext" not in container_of(planned(trusted, "nccl"))
    assert "securityContext" not in container_of(planned("ml.p5.48xlarge", "nccl", team="research"))
    slow = environment("ml.g5.xlarge", pod_security="privileged")
    assert "securityContext" not in container_of(planned(slow, "nccl", team="research"))


def test_a_pod_names_type_and_group_and_a_healthy_node() -> None:
    made = planned("ml.p5.48xlarge", "nccl")
    assert spec_of(made)["nodeSelector"] == {
        "node.kubernetes.io/instance-type": "ml.p5.48xlarge",
        "sagemaker.amazonaws.com/instance-group-name": "work",
    }
    healthy = {"key": "sagemaker.amazonaws.com/node-health-status", "operator": "In", "values": ["Schedulable"]}
    assert terms_of(made) == [healthy]
    passed = {"key": "sagemaker.amazonaws.com/deep-health-check-status", "operator": "In", "values": ["Passed"]}
    assert terms_of(planned("ml.p5.48xlarge", "nccl", passed_deep_health_checks=True)) == [healthy, passed]


def test_a_flexible_group_takes_any_of_its_types() -> None:
    made = planned(("ml.g6.12xlarge", "ml.g6.24xlarge"), "nccl")
    assert spec_of(made)["nodeSelector"] == {"sagemaker.amazonaws.com/instance-group-name": "work"}
    assert terms_of(made)[1] == {
        "key": "node.kubernetes.io/instance-type",
        "operator": "In",
        "values": ["ml.g6.12xlarge", "ml.g6.24xlarge"],
    }


def test_karpenter_makes_nodes_for_types_only() -> None:
    growing = environment("ml.g5.12xlarge", group={"count": 0}, hyperpod={"autoscaling": "karpenter"})
    made = planned(growing, "nccl")
    assert spec_of(made)["nodeSelector"] == {"node.kubernetes.io/instance-type": "ml.g5.12xlarge"}
    assert terms_of(made)[0]["operator"] == "NotIn"
    assert "Unschedulable" in terms_of(made)[0]["values"]


def test_two_pods_share_a_node_only_where_nothing_is_left_for_the_second() -> None:
    assert "podAntiAffinity" not in spec_of(planned("ml.p5.48xlarge", "nccl"))["affinity"]
    part = planned("ml.p5.48xlarge", "nccl", accelerators_per_node=4)
    assert spec_of(part)["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] == [
        {
            "labelSelector": {
                "matchExpressions": [
                    {"key": "app.kubernetes.io/instance", "operator": "In", "values": ["nccl-work"]},
                    {"key": "app.kubernetes.io/component", "operator": "NotIn", "values": ["launcher"]},
                ]
            },
            "topologyKey": "kubernetes.io/hostname",
        }
    ]
    assert "podAntiAffinity" not in spec_of(part, with_devices=False)["affinity"]


def test_taints_of_the_group_and_of_its_devices_are_tolerated() -> None:
    taints = [
        {"key": "dedicated", "value": "training", "effect": "NoSchedule"},
        {"key": "mine", "effect": "NoExecute"},
    ]
    tainted = environment("ml.p5.48xlarge", group={"taints": taints})
    assert spec_of(planned(tainted, "nccl"))["tolerations"] == [
        {"key": "dedicated", "operator": "Equal", "value": "training", "effect": "NoSchedule"},
        {"key": "mine", "operator": "Exists", "effect": "NoExecute"},
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "aws.amazon.com/efa", "operator": "Exists", "effect": "NoSchedule"},
    ]
    assert "tolerations" not in spec_of(planned("ml.m5.2xlarge", "pytorch", name="a", image="i:1"))


def test_shared_memory_is_memory_of_the_pod() -> None:
    spec = spec_of(planned("ml.p5.48xlarge", "nccl", shared_memory_gib=64))
    assert spec["volumes"] == [{"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": "64Gi"}}]
    path = "/dev/shm"  # noqa: S108 - where POSIX shared memory is
    assert spec["containers"][0]["volumeMounts"] == [{"name": "shared-memory", "mountPath": path}]


def test_a_claim_is_one_volume_with_as_many_mounts_as_wanted() -> None:
    volumes = [
        {**DATA, "sub_path": "in", "read_only": True},
        {"claim": "scratch", "mount_path": "/out"},
        {"claim": "corpus", "mount_path": "/corpus", "read_only": True},
    ]
    spec = spec_of(planned("ml.p5.48xlarge", "nccl", volumes=volumes))
    assert spec["containers"][0]["volumeMounts"][1:] == [
        {"name": "scratch", "mountPath": "/data", "subPath": "in", "readOnly": True},
        {"name": "scratch", "mountPath": "/out"},
        {"name": "corpus", "mountPath": "/corpus", "readOnly": True},
    ]
    assert spec["volumes"][1:] == [
        {"name": "scratch", "persistentVolumeClaim": {"claimName": "scratch"}},
        {"name": "corpus", "persistentVolumeClaim": {"claimName": "corpus", "readOnly": True}},
    ]


def test_shared_memory_takes_the_next_name_that_is_free() -> None:
    volumes = [{"claim": name, "mount_path": f"/{name}"} for name in ("shared-memory", "shared-memory-3")]
    spec = spec_of(planned("ml.p5.48xlarge", "nccl", volumes=volumes))
    assert [volume["name"] for volume in spec["volumes"]] == ["shared-memory-2", "shared-memory", "shared-memory-3"]


@given(names=st.lists(st.sampled_from(("shared-memory", "shared-memory-2", "a", "b")), max_size=4))
def test_no_claim_s_name_takes_that_of_shared_memory(names: list[str]) -> None:
    volumes = [{"claim": name, "mount_path": f"/{index}"} for index, name in enumerate(names)]
    found = [volume["name"] for volume in spec_of(planned("ml.p5.48xlarge", "nccl", volumes=volumes))["volumes"]]
    assert len(found) == len(set(found)) == len(set(names)) + 1


def test_the_job_s_variables_win_over_the_kind_s_and_these_over_the_catalog_s() -> None:
    made = planned("ml.p5.48xlarge", "nccl", environment={"MINE": "job", "BOTH": "job"})
    env = env_of(made, environment={"FI_PROVIDER": "kind", "BOTH": "kind"})
    assert (env["FI_PROVIDER"], env["BOTH"], env["MINE"]) == ("kind", "job", "job")


def test_a_secret_stands_for_a_variable_of_its_name() -> None:
    made = planned(
        "ml.p5.48xlarge", "nccl", environment={"TOKEN": "plain"}, secrets={"TOKEN": {"secret": "hub", "key": "token"}}
    )
    named = [entry for entry in container_of(made)["env"] if entry["name"] == "TOKEN"]
    assert named == [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}}]


def test_the_node_s_name_comes_from_kubernetes() -> None:
    made = planned("ml.p5.48xlarge", "nccl")
    first = container_of(made, node_variable="NODE")["env"][0]
    assert first == {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    stated = planned("ml.p5.48xlarge", "nccl", environment={"NODE": "mine"})
    assert [e for e in container_of(stated, node_variable="NODE")["env"] if e["name"] == "NODE"] == [
        {"name": "NODE", "value": "mine"}
    ]


def test_a_launcher_takes_no_device_and_little_else() -> None:
    spec = spec_of(planned("ml.p5.48xlarge", "nccl", volumes=[DATA]), with_devices=False)
    container = spec["containers"][0]
    assert container["resources"] == {"requests": {"cpu": 1, "memory": "2Gi"}}
    assert "securityContext" not in container
    assert [volume["name"] for volume in spec["volumes"]] == ["scratch"]
    assert spec["tolerations"]


def test_what_the_job_leaves_out_stays_out() -> None:
    bare = spec_of(planned("ml.p5.48xlarge", "nccl"))
    assert {"restartPolicy", "serviceAccountName"} & set(bare) == set()
    assert {"args", "ports", "imagePullPolicy"} & set(bare["containers"][0]) == set()
    full = spec_of(
        planned("ml.p5.48xlarge", "nccl", service_account="trainer", image_pull_policy="Always"),
        args=("a", "b"),
        ports=(8080,),
        restart_policy="Never",
    )
    assert (full["serviceAccountName"], full["restartPolicy"]) == ("trainer", "Never")
    container = full["containers"][0]
    assert (container["args"], container["ports"], container["imagePullPolicy"]) == (
        ["a", "b"],
        [{"containerPort": 8080}],
        "Always",
    )


def test_queue_and_priority_are_labels_of_the_job_and_of_its_pods() -> None:
    made = planned("ml.g5.12xlarge", "nccl", team="research", priority="training")
    expected = {
        "app.kubernetes.io/instance": "nccl-work",
        "app.kubernetes.io/managed-by": "hyperpod-cdk",
        "kueue.x-k8s.io/queue-name": "hyperpod-ns-research-localqueue",
        "kueue.x-k8s.io/priority-class": "training-priority",
    }
    assert labels(made) == expected
    assert metadata(made) == {"name": "nccl-work", "namespace": "hyperpod-ns-research", "labels": expected}
    assert template(made, {})["metadata"] == {"labels": expected}
    assert template(made, {}, component="launcher")["metadata"]["labels"] == {
        **expected,
        "app.kubernetes.io/component": "launcher",
    }
    assert [key for key in labels(planned("ml.g5.12xlarge", "nccl")) if "kueue" in key] == []


@pytest.mark.parametrize("word", ["preferred", "required"])
def test_topology_is_an_annotation_of_the_pods_that_work(word: str) -> None:
    made = planned("ml.g5.12xlarge", "nccl", topology={word: "topology.k8s.aws/network-node-layer-3"})
    expected = {f"kueue.x-k8s.io/podset-{word}-topology": "topology.k8s.aws/network-node-layer-3"}
    assert topology_annotations(made) == expected
    assert template(made, {})["metadata"]["annotations"] == expected
    assert "annotations" not in template(made, {}, component="launcher")["metadata"]


def test_without_topology_there_is_no_annotation() -> None:
    about: Environment = environment("ml.g5.12xlarge")
    assert topology_annotations(planned(about, "nccl")) == {}
    assert "annotations" not in template(planned(about, "nccl"), {})["metadata"]
