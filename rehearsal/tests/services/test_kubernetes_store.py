"""Helm releases and objects of the embedded Kubernetes."""

from __future__ import annotations

from typing import Any

import pytest

from hyperpod_cdk_rehearsal.embedded.services import kubernetes_store as store
from rehearsal.tests.support.tables import row_by_row


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}


def test_applying_again_replaces(world: Any) -> None:
    store.record_manifest(world.context, "prod", [config_map("a", x="1"), config_map("b")])
    store.record_manifest(world.context, "prod", [config_map("a", x="2")])
    assert [(item["metadata"]["name"], item["data"]) for item in store.objects(world.context, "prod")] == [
        ("a", {"x": "2"}),
        ("b", {}),
    ]


def test_a_list_is_taken_apart(world: Any) -> None:
    bundle = {"apiVersion": "v1", "kind": "List", "items": [config_map("a"), config_map("b")]}
    store.record_manifest(world.context, "prod", [bundle])
    store.remove_manifest(world.context, "prod", [bundle, config_map("never there")])
    assert store.objects(world.context, "prod") == []


def test_clusters_do_not_share(world: Any) -> None:
    store.record_manifest(world.context, "prod", [config_map("a")])
    store.record_helm_release(world.context, "prod", "r", "ns", "chart", {"k": 1})
    assert (store.objects(world.context, "dev"), store.releases(world.context, "dev")) == ([], [])
    store.remove_cluster(world.context, "prod")
    assert (store.objects(world.context, "prod"), store.releases(world.context, "prod")) == ([], [])


@pytest.mark.parametrize(
    ("name", "chart", "found"),
    [
        ("hyperpod-dependencies", "", True),
        ("deps", "oci://somewhere/HyperPodHelmChart", True),
        ("ingress", "nginx", False),
    ],
)
def test_the_hyperpod_chart_is_known_by_its_name(name: str, chart: str, found: bool) -> None:  # noqa: FBT001 - table
    assert store.Release(name, "kube-system", chart).is_of(store.HYPERPOD_CHART) is found


@row_by_row(
    "base, change, expected",
    [
        # the examples of RFC 7386, appendix A, that are of objects
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_a_merge_patch(base: dict[str, Any], change: dict[str, Any], expected: dict[str, Any]) -> None:
    before = repr(base)
    assert store.merged(base, change) == expected
    assert repr(base) == before


def test_a_patch_of_what_is_not_there_makes_nothing(world: Any) -> None:
    store.record_manifest(world.context, "prod", [config_map("a", x="1")])
    store.patch(world.context, "prod", config_map("a"), {"data": {"x": None, "y": "2"}})
    store.patch(world.context, "prod", config_map("b"), {"data": {"y": "2"}})
    (one,) = store.objects(world.context, "prod")
    assert one["data"] == {"y": "2"}
