"""The check of manifests finds what an API server would refuse or drop, and nothing in manifests that are good."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from hyperpod_cdk.governance.team_access import team_objects
from hyperpod_cdk.governance.teams import QuotaRow, Team
from tests.support.tables import row_by_row
from tests.workloads.schemas import FOLDER, KUBERNETES_VERSIONS, SOURCES, check, pod_templates, problems

Manifest = dict[str, Any]


def _pod() -> Manifest:
    return {
        "restartPolicy": "OnFailure",
        "nodeSelector": {"node.kubernetes.io/instance-type": "ml.p5.48xlarge"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["use1-az5"]}]}
                    ]
                }
            }
        },
        "containers": [
            {
                "name": "pytorch",
                "image": "example.com/training:1",
                "env": [{"name": "NCCL_DEBUG", "value": "INFO"}],
                "ports": [{"containerPort": 8080, "name": "agent"}],
                "resources": {
                    "requests": {"cpu": 96, "memory": "512Gi", "nvidia.com/gpu": 8, "hugepages-2Mi": "5120Mi"},
                    "limits": {"nvidia.com/gpu": 8, "hugepages-2Mi": "5120Mi"},
                },
                "volumeMounts": [{"name": "shared-memory", "mountPath": "/data"}],
            }
        ],
        "volumes": [{"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": "64Gi"}}],
    }


def _template() -> Manifest:
    return {"metadata": {"labels": {"app": "training"}}, "spec": _pod()}


def _job(api_version: str, kind: str, spec: Manifest) -> Manifest:
    metadata = {"name": "pre-training", "namespace": "hyperpod-ns-research", "labels": {"app": "training"}}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def _mpi() -> Manifest:
    replica = {"replicas": 2, "template": _template()}
    return _job("kubeflow.org/v2beta1", "MPIJob", {"mpiReplicaSpecs": {"Launcher": replica, "Worker": replica}})


def _pytorch() -> Manifest:
    replica = {"replicas": 2, "restartPolicy": "OnFailure", "template": _template()}
    return _job("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": {"Worker": replica}})


def _hyperpod() -> Manifest:
    return _job(
        "sagemaker.amazonaws.com/v1",
        "HyperPodPyTorchJob",
        {
            "nprocPerNode": "8",
            "replicaSpecs": [{"name": "pods", "replicas": 4, "maxReplicas": 8, "spares": 1, "template": _template()}],
            "elasticPolicy": {"minReplicas": 2, "maxReplicas": 8, "replicaDiscreteValues": [2, 4, 8]},
            "runPolicy": {
                "cleanPodPolicy": "None",
                "restartPolicy": {"evalPeriodSeconds": 21600, "maxFullJobRestarts": 1},
                "logMonitoringConfiguration": [
                    {"name": "loss", "logPattern": "loss ([0-9.]+)", "metricThreshold": 2.5, "operator": "gt"}
                ],
            },
        },
    )


def _kueue() -> list[Manifest]:
    return list(
        yaml.safe_load_all("""
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: ml.g5.12xlarge}
spec: {nodeLabels: {node.kubernetes.io/instance-type: ml.g5.12xlarge}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: hyperpod-ns-john-clusterqueue}
spec:
  cohortName: cluster
  namespaceSelector: {}
  preemption: {reclaimWithinCohort: Any, withinClusterQueue: LowerPriority}
  fairSharing: {weight: "100"}
  resourceGroups:
    - coveredResources: [cpu, memory, nvidia.com/gpu]
      flavors:
        - name: ml.g5.12xlarge
          resources:
            - {name: cpu, nominalQuota: "144", borrowingLimit: "72"}
            - {name: memory, nominalQuota: 576Gi}
            - {name: nvidia.com/gpu, nominalQuota: 12}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: hyperpod-ns-john-localqueue, namespace: hyperpod-ns-john}
spec: {clusterQueue: hyperpod-ns-john-clusterqueue}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: training-priority}
value: 80
description: Training
""")
    )


def test_good_manifests_pass() -> None:
    """Jobs of all kinds, Kueue's objects and Kubernetes' own pass."""
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "etcd"}, "spec": {"ports": [{"port": 2379}]}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "spec": _pod()}
    job = _job("batch/v1", "Job", {"template": {**_template(), "spec": {**_pod(), "restartPolicy": "Never"}}})
    check(_mpi(), _pytorch(), _hyperpod(), *_kueue(), service, pod, job)


def test_every_problem_of_every_manifest_is_reported() -> None:
    """The error names them all, with kind, name and path."""
    wrong, other = _pytorch(), _mpi()
    wrong["spec"]["elasticPolicy"] = {"minReplica": 1}
    other["metadata"]["name"] = "Not_DNS"
    with pytest.raises(AssertionError) as caught:
        check(wrong, other)
    assert str(caught.value) == (
        "PyTorchJob pre-training: spec.elasticPolicy: Additional properties are not allowed ('minReplica' was"
        " unexpected)\n"
        "MPIJob Not_DNS: metadata.name: 'Not_DNS' is no DNS subdomain"
    )


def _container(pod: Manifest) -> Manifest:
    container: Manifest = pod["containers"][0]
    return container


WRONG_PODS: dict[str, tuple[Callable[[Manifest], object], str]] = {
    "unknown field": (lambda pod: pod.update(nodeSelectors={}), "'nodeSelectors' was unexpected"),
    "number for text": (lambda pod: _container(pod)["env"][0].update(value=1), "env[0].value: 1 is not"),
    "no containers": (lambda pod: pod.update(containers=[]), "a pod has none"),
    "no image": (lambda pod: _container(pod).pop("image"), "image: a container has none"),
    "name twice": (
        lambda pod: pod.update(containers=[_container(pod), _container(pod)]),
        "'pytorch' stands there more than once",
    ),
    "name of a container": (lambda pod: _container(pod).update(name="A"), "spec.containers: 'A' is no DNS label"),
    "variable twice": (
        lambda pod: _container(pod)["env"].append({"name": "NCCL_DEBUG", "value": "WARN"}),
        "'NCCL_DEBUG' stands there more than once",
    ),
    "value and source": (
        lambda pod: _container(pod)["env"][0].update(valueFrom={"fieldRef": {"fieldPath": "metadata.name"}}),
        "env.NCCL_DEBUG: has a value and a source",
    ),
    "request over limit": (
        lambda pod: _container(pod)["resources"]["limits"].update(cpu="95500m"),
        "resources.requests.cpu: 96 is more than the limit 95500m",
    ),
    "device without limit": (
        lambda pod: _container(pod)["resources"]["limits"].pop("nvidia.com/gpu"),
        "limits.nvidia.com/gpu: has to be there, requests alone are not taken",
    ),
    "device request differs": (
        lambda pod: _container(pod)["resources"]["requests"].update({"nvidia.com/gpu": 4}),
        "requests.nvidia.com/gpu: 4 differs from the limit 8",
    ),
    "half a device": (
        lambda pod: [each.update({"nvidia.com/gpu": "500m"}) for each in _container(pod)["resources"].values()],
        "limits.nvidia.com/gpu: 500m is no whole number",
    ),
    "quantity": (
        lambda pod: _container(pod)["resources"]["requests"].update(memory="512GB"),
        "resources.requests.memory: '512GB' ",
    ),
    "negative quantity": (
        lambda pod: _container(pod)["resources"]["requests"].update(memory="-1Gi"),
        "requests.memory: '-1Gi' is negative",
    ),
    "unknown resource": (
        lambda pod: _container(pod)["resources"]["requests"].update(gpu=1),
        "resources: 'gpu' is no resource",
    ),
    "huge pages alone": (
        lambda pod: _container(pod).update(
            resources={"limits": {"hugepages-2Mi": "2Mi"}, "requests": {"hugepages-2Mi": "2Mi"}}
        ),
        "hugepages-2Mi needs cpu or memory beside it",
    ),
    "mount without volume": (lambda pod: pod.pop("volumes"), "volumeMounts: no volume 'shared-memory'"),
    "volume without source": (
        lambda pod: pod["volumes"][0].pop("emptyDir"),
        "spec.volumes.shared-memory: has 0 sources",
    ),
    "size of a volume": (lambda pod: pod["volumes"][0]["emptyDir"].update(sizeLimit="big"), "sizeLimit: 'big' "),
    "place twice": (
        lambda pod: _container(pod)["volumeMounts"].append({"name": "shared-memory", "mountPath": "/data"}),
        "'/data' stands there more than once",
    ),
    "port": (lambda pod: _container(pod)["ports"][0].update(containerPort=65536), "is no port"),
    "name of a port": (lambda pod: _container(pod)["ports"][0].update(name="a-very-long-name"), "is no port"),
    "toleration with value": (lambda pod: pod["tolerations"][0].update(value="true"), "is no toleration"),
    "toleration of nothing": (lambda pod: pod.update(tolerations=[{"value": "x"}]), "is no toleration"),
    "node selector": (
        lambda pod: pod["nodeSelector"].update({"a b": "c"}),
        "spec.nodeSelector: 'a b' is no name of a label",
    ),
    "affinity without values": (
        lambda pod: _expression(pod).update(values=[]),
        "spec.affinity: In with 0 values",
    ),
    "affinity with values": (
        lambda pod: _expression(pod).update(operator="Exists"),
        "spec.affinity: Exists with 1 values",
    ),
    "affinity to nothing": (
        lambda pod: _required(pod).update(nodeSelectorTerms=[]),
        "spec.affinity: no term is required",
    ),
    "volume twice": (
        lambda pod: pod["volumes"].append(pod["volumes"][0]),
        "'shared-memory' stands there more than once",
    ),
    "affinity operator": (lambda pod: _expression(pod).update(operator="Is"), "'Is' is no operator"),
    "value of a label": (lambda pod: _expression(pod).update(values=["x" * 64]), "is no value of a label"),
}


def _required(pod: Manifest) -> Manifest:
    required: Manifest = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return required


def _expression(pod: Manifest) -> Manifest:
    expression: Manifest = _required(pod)["nodeSelectorTerms"][0]["matchExpressions"][0]
    return expression


@pytest.mark.parametrize("make", [_mpi, _pytorch, _hyperpod])
def test_what_is_wrong_in_a_pod_is_found_in_every_kind(make: Callable[[], Manifest]) -> None:
    """Each of the wrong pods is found, whatever it stands in."""
    missed = []
    for name, (spoil, expected) in WRONG_PODS.items():
        manifest = json.loads(json.dumps(make()))
        for _, template in pod_templates(manifest):
            spoil(template["spec"])
        found = problems(manifest)
        if not any(expected in problem for problem in found):
            missed.append((name, found))
    assert not missed


WRONG_JOBS: dict[str, tuple[Manifest, str]] = {
    "replicas as text": (
        _job("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": {"Worker": {"replicas": "2"}}}),
        "spec.pytorchReplicaSpecs.Worker.replicas: '2' is not of type 'integer'",
    ),
    "MPI implementation": (
        _job("kubeflow.org/v2beta1", "MPIJob", {"mpiReplicaSpecs": {}, "mpiImplementation": "MPI"}),
        "spec.mpiImplementation: 'MPI' is not one of ['OpenMPI', 'Intel', 'MPICH']",
    ),
    "MPI replicas": (
        _job("kubeflow.org/v2beta1", "MPIJob", {"slotsPerWorker": 8}),
        "spec: 'mpiReplicaSpecs' is a required property",
    ),
    "another version": (
        _job("kubeflow.org/v1", "MPIJob", {}),
        f"Kubernetes {KUBERNETES_VERSIONS[0]} has no MPIJob of kubeflow.org/v1",
    ),
    "processes as number": (
        _job("sagemaker.amazonaws.com/v1", "HyperPodPyTorchJob", {"nprocPerNode": 8}),
        "spec.nprocPerNode: 8 is not of type 'string'",
    ),
    "rule's operator": (
        _job(
            "sagemaker.amazonaws.com/v1",
            "HyperPodPyTorchJob",
            {"runPolicy": {"logMonitoringConfiguration": [{"name": "a", "logPattern": "b", "operator": ">"}]}},
        ),
        "operator: '>' is not one of ['gt', 'gteq', 'lt', 'lteq', 'eq']",
    ),
    "annotation as boolean": (
        {
            **_job("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": {}}),
            "metadata": {"name": "a", "annotations": {"sagemaker.amazonaws.com/enable-job-auto-resume": True}},
        },
        "True is not of type 'string'",
    ),
    "namespace": (
        {**_pytorch(), "metadata": {"name": "a", "namespace": "a.b"}},
        "metadata.namespace: 'a.b' is no DNS label",
    ),
    "value of a label": (
        {**_pytorch(), "metadata": {"name": "a", "labels": {"app": "-a"}}},
        "metadata.labels.app: '-a' is no value of a label",
    ),
    "name of an annotation": (
        {**_pytorch(), "metadata": {"name": "a", "annotations": {"a/b/c": "d"}}},
        "metadata.annotations: 'a/b/c' is no name of a label",
    ),
    "no metadata": ({"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "spec": {}}, "'metadata' is a required"),
    "queue's reference": (
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "LocalQueue",
            "metadata": {"name": "a"},
            "spec": {"queue": "b"},
        },
        "'queue' was unexpected",
    ),
    "resource twice": (
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "ClusterQueue",
            "metadata": {"name": "a"},
            "spec": {
                "resourceGroups": [
                    {
                        "coveredResources": ["cpu"],
                        "flavors": [
                            {"name": "b", "resources": [{"name": "cpu", "nominalQuota": 1}] * 2},
                        ],
                    }
                ]
            },
        },
        "spec.resourceGroups[0].flavors[0].resources: 'cpu' stands there more than once",
    ),
}


@row_by_row("name", WRONG_JOBS)
def test_what_is_wrong_in_a_job_is_found(name: str) -> None:
    """Each of the wrong jobs is found by the definition of its kind."""
    manifest, expected = WRONG_JOBS[name]
    found = problems(manifest)
    assert any(expected in problem for problem in found), found


def test_what_teams_get_in_their_namespaces_passes() -> None:
    """The local queue, the limits and the roles that the library makes are taken too."""
    team = Team(
        name="research",
        quota=[QuotaRow(instance_type="ml.g5.12xlarge", count=1)],
        member_role_arns=["arn:aws:iam::111122223333:role/Researcher"],
        access="rbac",
        default_queue=True,
        resource_quota={"requests.nvidia.com/gpu": "64"},
    )
    objects = team_objects(team, queue_api="kueue.x-k8s.io/v1beta2")
    assert set(objects) == {"PodSecurity", "Members", "DefaultQueue", "ResourceQuota"}
    check(*(each for group in objects.values() for each in group))


def test_the_blogs_manifests_pass(project: Path) -> None:
    """What people wrote by hand, and ran, is in order."""
    text = (project / "tests" / "workloads" / "admission" / "two_teams.yaml").read_text(encoding="utf-8")
    check(*yaml.safe_load_all(text))


def test_sources_are_stated() -> None:
    """Every schema has a source at a fixed commit, a licence, and is named in the README; nothing else lies there."""
    assert {path.name for path in FOLDER.iterdir()} == {
        "README.md",
        "sources.json",
        *(source["file"] for source in SOURCES),
    }
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    for source in SOURCES:
        assert source["file"] in readme
        assert re.fullmatch(r"[0-9a-f]{40}", source["commit"])
        assert source["licence"] == "Apache-2.0"
        schema = json.loads((FOLDER / source["file"]).read_text(encoding="utf-8"))
        assert (schema["properties"]["apiVersion"], schema["properties"]["kind"]) == (
            {"const": source["api_version"]},
            {"const": source["kind"]},
        )


CRD = """
spec:
  versions:
    - name: v1
      schema:
        openAPIV3Schema:
          description: Dropped.
          type: object
          properties:
            apiVersion: {type: string}
            spec:
              type: object
              required: [size]
              properties:
                size: {type: integer, format: int32, default: 1}
                note: {type: string, nullable: true}
                free: {type: object, x-kubernetes-preserve-unknown-fields: true}
                port:
                  anyOf: [{type: integer}, {type: string}]
                  x-kubernetes-int-or-string: true
            status: {type: object}
"""

MODEL = '''
class Inner(BaseModel):
    """One."""
    model_config = ConfigDict(extra="forbid")
    name: str = Field(description="...")
    size: Optional[Union[int, str]] = Field(default=None, alias="the_size")

class Outer(BaseModel):
    inner: Optional[List[Inner]] = None
    pods: Optional[Inner] = None
    labels: Dict[str, str] = Field(default_factory=dict)
    on: bool
'''


def _repository(folder: Path) -> str:
    folder.mkdir()
    (folder / "crd.yaml").write_text(CRD, encoding="utf-8")
    (folder / "model.py").write_text(MODEL, encoding="utf-8")
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "One"]):
        subprocess.run([*git, *arguments], check=True)
    return subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()


def test_schemas_are_made_from_clones(project: Path, tmp_path: Path) -> None:
    """The script reads definitions and models at the commit, closes objects, and says with --check what is stale."""
    commit = _repository(tmp_path / "clone")
    folder = tmp_path / "crds"
    folder.mkdir()
    common = {"repository": "a/b", "commit": commit, "api_version": "b.com/v1", "licence": "Apache-2.0"}
    sources = [
        {"file": "one.json", "kind": "One", "path": "crd.yaml", **common},
        {
            "file": "two.json",
            "kind": "Two",
            "path": "model.py",
            "class": "Outer",
            "open": ["pods"],
            "documented": {"inner.[].mode": {"enum": ["x"]}},
            **common,
        },
    ]
    (folder / "sources.json").write_text(json.dumps(sources), encoding="utf-8")

    def run(*arguments: str) -> tuple[int, str]:
        code = (
            "import runpy, sys, pathlib; sys.exit(runpy.run_path(sys.argv[1])['main'](sys.argv[3:],"
            " folder=pathlib.Path(sys.argv[2])))"
        )
        script = project / "scripts" / "refresh_crds.py"
        done = subprocess.run(
            [sys.executable, "-c", code, str(script), str(folder), *arguments],
            check=False,
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout + done.stderr

    clone = f"a/b={tmp_path / 'clone'}"
    assert run("c/d=x") == (1, "needs a clone of a/b\n")
    assert run(clone, "--check") == (1, "one.json is stale\ntwo.json is stale\nsources.json is stale\n")
    assert run(clone) == (0, "one.json was written\ntwo.json was written\nsources.json was written\n")
    assert run(clone, "--check", "--head") == (0, "")
    one = json.loads((folder / "one.json").read_text(encoding="utf-8"))
    assert one == {
        "type": "object",
        "additionalProperties": False,
        "required": ["apiVersion", "kind", "metadata"],
        "properties": {
            "apiVersion": {"const": "b.com/v1"},
            "kind": {"const": "One"},
            "metadata": {"type": "object"},
            "spec": {
                "type": "object",
                "additionalProperties": False,
                "required": ["size"],
                "properties": {
                    "size": {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1},
                    "note": {"type": ["string", "null"]},
                    "free": {"type": "object"},
                    "port": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
                },
            },
        },
    }
    two = json.loads((folder / "two.json").read_text(encoding="utf-8"))
    assert two["required"] == ["apiVersion", "kind", "metadata", "spec"]
    assert two["properties"]["spec"] == {
        "type": "object",
        "additionalProperties": False,
        "required": ["on"],
        "properties": {
            "inner": {
                "type": "array",
                "items": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["name"],
                    "properties": {
                        "name": {"type": "string"},
                        "size": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
                        "mode": {"enum": ["x"]},
                    },
                },
            },
            "pods": {"type": "object"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "on": {"type": "boolean"},
        },
    }
