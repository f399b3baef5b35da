"""Kubernetes objects that the stacks applied, compared with what the API server has of them."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from hyperpod_cdk.checks.answers import NotAnswered, Refused
from hyperpod_cdk.living.drift import NOT_IN_CHANGE, drift
from hyperpod_cdk.living.model import Drift
from hyperpod_cdk.living.objects import MANIFEST
from hyperpod_cdk.living.standing import read_living
from tests.living.account import Account

VOLUME: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "near", "labels": {"app": "near"}},
    "spec": {
        "capacity": {"storage": "1200Gi"},
        "persistentVolumeReclaimPolicy": "Retain",
        "mountOptions": ["flock"],
        "csi": {"volumeHandle": "fs-1", "volumeAttributes": {"mountname": "MOUNT"}},
    },
}
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "token", "namespace": "kube-system"},
    "data": {"t": "eA=="},
}
QUEUE: dict[str, Any] = {
    "apiVersion": "kueue.x-k8s.io/v1beta1",
    "kind": "LocalQueue",
    "metadata": {"name": "jobs", "namespace": "research"},
    "spec": {"clusterQueue": "all", "flavors": [{"name": "a", "cpu": "1500m"}, {"name": "b", "cpu": "2"}]},
}
KINDS = {
    "/api/v1": [("persistentvolumes", "PersistentVolume", False), ("secrets", "Secret", True)],
    "/apis/kueue.x-k8s.io/v1beta1": [("localqueues", "LocalQueue", True), ("localqueues/status", "LocalQueue", True)],
}
PATHS = {
    "volume": "/api/v1/persistentvolumes/near",
    "secret": "/api/v1/namespaces/kube-system/secrets/token",
    "queue": "/apis/kueue.x-k8s.io/v1beta1/namespaces/research/localqueues/jobs",
}


@dataclass
class Server:
    """An account with an API server that has what was applied, as it keeps it."""

    aws: Any
    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    refuses: str = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.aws, name)

    def kubernetes_read(self, cluster: str, path: str) -> Mapping[str, Any]:
        assert cluster == "dev-eks"
        if self.refuses == "unreachable":
            raise NotAnswered("the API server of EKS cluster dev-eks is not reachable from here")
        if self.refuses:
            raise Refused("the API server of EKS cluster dev-eks does not admit the caller", code=self.refuses)
        if path in KINDS:
            rows = [{"name": name, "kind": kind, "namespaced": spaced} for name, kind, spaced in KINDS[path]]
            return {"resources": rows}
        if path not in self.objects:
            raise Refused("not there", code="404")
        return self.objects[path]

    def kubernetes_patch(self, cluster: str, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        raise AssertionError(f"{path} of {cluster} is to become {body}")


def kept() -> dict[str, dict[str, Any]]:
    """Return the objects as an API server keeps them: with what it adds, and quantities in its own words."""
    volume, queue = copy.deepcopy(VOLUME), copy.deepcopy(QUEUE)
    volume["metadata"] = {**volume["metadata"], "uid": "1", "annotations": {"pv.kubernetes.io/bound-by": "x"}}
    volume["spec"] = {**volume["spec"], "volumeMode": "Filesystem", "capacity": {"storage": "1288490188800"}}
    volume["status"] = {"phase": "Bound"}
    queue["spec"]["flavors"] = [{"name": "b", "cpu": "2000m", "more": 1}, {"name": "a", "cpu": "1.5"}]
    return {PATHS["volume"]: volume, PATHS["secret"]: {**SECRET, "data": {"t": "eQ=="}}, PATHS["queue"]: queue}


def look(server: Any = None, *, head: str = "", stated: Any = None) -> Drift:
    account = Account()
    text: Any = json.dumps([VOLUME, {"apiVersion": "v1", "kind": "List", "items": [SECRET, QUEUE]}])
    before, after = text.split("MOUNT")
    manifest = {"Fn::Join": ["", [before, {"Fn::GetAtt": ["FileSystem", "LustreMountName"]}, after]]}
    for templates, more in ((account.deployed, ""), (account.head, head)):
        templates["dev-foundation"]["Resources"]["Objects"] = {
            "Type": MANIFEST,
            "Properties": {
                "ClusterName": {"Ref": "Eks"},
                "Manifest": manifest if stated is None else stated,
                **({"Overwrite": more} if more else {}),
            },
        }
    aws = account.aws()
    living = read_living(aws, account.assembly())
    return drift(server if server is not None else aws, living)


def standing(**edits: Any) -> Server:
    server = Server(Account().aws(), kept())
    for name, edit in edits.items():
        edit(server.objects[PATHS[name]])
    return server


def test_what_was_applied_is_no_drift() -> None:
    """What the server fills in, other words for an amount, the order of named rows, and a part that nobody tells."""
    found = look(standing())
    assert (found.differences, found.skipped, found.compared[MANIFEST]) == ((), (), 1)


@pytest.mark.parametrize(
    ("server", "path", "deployed", "actual"),
    [
        (
            standing(volume=lambda each: each["spec"].update(persistentVolumeReclaimPolicy="Delete")),
            "Objects[PersistentVolume near].spec.persistentVolumeReclaimPolicy",
            "Retain",
            "Delete",
        ),
        (
            standing(volume=lambda each: each["spec"]["capacity"].update(storage="1201Gi")),
            "Objects[PersistentVolume near].spec.capacity.storage",
            "1200Gi",
            "1201Gi",
        ),
        (
            standing(volume=lambda each: each["metadata"].pop("labels")),
            "Objects[PersistentVolume near].metadata.labels.app",
            "near",
            None,
        ),
        (
            standing(queue=lambda each: each["spec"].update(clusterQueue="other")),
            "Objects[LocalQueue research/jobs].spec.clusterQueue",
            "all",
            "other",
        ),
        (
            standing(volume=lambda each: each["spec"]["csi"].update(volumeHandle="fs-2")),
            "Objects[PersistentVolume near].spec.csi.volumeHandle",
            "fs-1",
            "fs-2",
        ),
    ],
)
def test_a_difference_is_found_once(server: Server, path: str, deployed: str, actual: str | None) -> None:
    (one,) = look(server).differences
    assert (one.path, one.deployed, one.actual) == (path, deployed, actual)
    assert (one.next.effect, one.next.sentence) == ("nothing", NOT_IN_CHANGE)
    (one,) = look(server, head="true").differences
    shown = "nothing" if actual is None else actual
    assert one.next.sentence == f"Sets {path} from {shown} to {deployed}: kubectl applies the whole manifest."


@pytest.mark.parametrize("name", ["queue", "secret"])
def test_an_object_deleted_by_hand(name: str) -> None:
    server = standing()
    del server.objects[PATHS[name]]
    (one,) = look(server, head="true").differences
    assert (one.deployed, one.actual, one.next.effect) == ("there", None, "makes")
    assert one.next.sentence == f"Creates {one.path} again: kubectl applies the whole manifest."


def test_nothing_of_a_secret_is_shown() -> None:
    assert "eA==" not in look(standing()).model_dump_json()


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("401", "the API server of EKS cluster dev-eks does not admit the caller"),
        ("403", "the API server of EKS cluster dev-eks does not admit the caller"),
        ("unreachable", "the API server of EKS cluster dev-eks is not reachable from here"),
    ],
)
def test_what_the_server_does_not_show_is_skipped(how: str, reason: str) -> None:
    found = look(Server(Account().aws(), kept(), refuses=how))
    assert (found.passed, found.differences, [each.reason for each in found.skipped]) == (None, (), [reason])


@pytest.mark.parametrize(
    ("stated", "reason"),
    [
        ("no JSON", "its manifest is not valid JSON"),
        ({"Fn::GetAtt": ["FileSystem", "DNSName"]}, "its manifest has a value that is known only at deployment"),
    ],
)
def test_a_manifest_that_cannot_be_read_is_skipped(stated: Any, reason: str) -> None:
    found = look(standing(), stated=stated)
    assert (found.passed, [each.reason for each in found.skipped]) == (None, [reason])
