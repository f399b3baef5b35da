"""Scheduling of pods: the labels, taints and annotations in manifests."""

from __future__ import annotations

import pytest

from hyperpod_cdk.catalog import scheduling


def test_a_node_that_takes_pods_is_none_of_those_that_do_not() -> None:
    assert scheduling.SCHEDULABLE == "Schedulable"
    assert scheduling.SCHEDULABLE not in scheduling.NOT_SCHEDULABLE
    assert len(scheduling.NOT_SCHEDULABLE) == 3


@pytest.mark.parametrize(
    ("devices", "keys"),
    [
        ((False, False, False), ()),
        ((True, False, False), ("nvidia.com/gpu",)),
        ((True, False, True), ("nvidia.com/gpu", "aws.amazon.com/efa")),
        ((False, True, True), ("aws.amazon.com/neuron", "aws.amazon.com/efa")),
    ],
)
def test_pods_tolerate_the_taints_of_what_they_use(devices: tuple[bool, bool, bool], keys: tuple[str, ...]) -> None:
    nvidia, neuron, efa = devices
    assert scheduling.tolerated_taints(nvidia=nvidia, neuron=neuron, efa=efa) == keys


@pytest.mark.parametrize(
    ("resource", "covered"),
    [("cpu", True), ("nvidia.com/gpu", True), ("vpc.amazonaws.com/efa", True), ("hugepages-2Mi", False)],
)
def test_a_cluster_queue_covers_devices_but_no_huge_pages(resource: str, *, covered: bool) -> None:
    assert scheduling.is_in_quotas(resource) is covered


def test_a_cluster_queue_has_its_own_name_for_neuron_devices() -> None:
    assert not scheduling.is_in_quotas("aws.amazon.com/neuron")
    assert scheduling.is_in_quotas(scheduling.name_in_quotas("aws.amazon.com/neuron"))
    assert scheduling.name_in_quotas("nvidia.com/gpu") == "nvidia.com/gpu"
