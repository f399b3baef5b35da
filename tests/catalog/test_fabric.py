"""Variables, huge pages and images that fit the hardware generation of instance types."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.catalog import fabric, instance_types
from hyperpod_cdk.catalog.instance_types import InstanceType
from tests.support.tables import row_by_row

ROWS = [row for name in instance_types.names() if (row := instance_types.get(name)) is not None]
IMAGE = re.compile(r"[a-z0-9.-]+(/[a-z0-9._-]+)+:[A-Za-z0-9._-]+")
INTERFACES = "^docker,lo,veth"
SHM = {"NCCL_SHM_USE_CUDA_MEMCPY": "1"}
NO_NVLINK = {"NCCL_MNNVL_ENABLE": "0"}


OF_CUDA_12 = [
    *("ml.p4d.24xlarge", "ml.g5.8xlarge", "ml.g6.8xlarge", "ml.g6e.8xlarge", "ml.p5.48xlarge", "ml.p5en.48xlarge"),
    *("ml.p6-b200.48xlarge", "ml.p6e-gb200.36xlarge"),
]


def rows(*names: str) -> list[InstanceType]:
    found = [row for name in names if (row := instance_types.get(name)) is not None]
    assert len(found) == len(names)
    return found


@row_by_row(
    "names, more",
    [
        (["ml.g5.8xlarge"], {}),
        (["ml.g5.12xlarge"], SHM),
        (["ml.g4dn.12xlarge"], {}),
        (["ml.g6.8xlarge"], {"FI_EFA_USE_DEVICE_RDMA": "1"}),
        (["ml.g6.12xlarge"], {"FI_EFA_USE_DEVICE_RDMA": "1", **SHM}),
        (["ml.p4d.24xlarge"], {"FI_EFA_USE_DEVICE_RDMA": "1"}),
        (["ml.p5.48xlarge"], {"FI_EFA_USE_DEVICE_RDMA": "1"}),
        (["ml.p5en.48xlarge"], {"FI_EFA_USE_DEVICE_RDMA": "1", "FI_HMEM_CUDA_USE_DMABUF": "1"}),
        (["ml.p6-b200.48xlarge"], {"FI_EFA_USE_DEVICE_RDMA": "1", "FI_HMEM_CUDA_USE_DMABUF": "1"}),
        (["ml.p6e-gb200.36xlarge"], {"FI_EFA_USE_DEVICE_RDMA": "1", **NO_NVLINK}),
        (["ml.p6e-gb200.36xlarge", "ml.p5.48xlarge"], {"FI_EFA_USE_DEVICE_RDMA": "1"}),
        (["ml.p5.48xlarge", "ml.p5en.48xlarge"], {"FI_EFA_USE_DEVICE_RDMA": "1"}),
        (["ml.p5.48xlarge", "ml.g5.48xlarge"], {}),
        (["ml.g5.12xlarge", "ml.g5.8xlarge"], {}),
    ],
)
def test_variables_fit_the_generation(names: list[str], more: dict[str, str]) -> None:
    expected = {"FI_PROVIDER": "efa", "NCCL_SOCKET_IFNAME": INTERFACES, **more}
    assert fabric.variables(rows(*names), accelerators_are_whole=True) == expected


@pytest.mark.parametrize("name", ["ml.g5.xlarge", "ml.c5n.18xlarge", "ml.trn1.32xlarge", "ml.m5.2xlarge"])
def test_nothing_is_set_for_efa_and_nccl_where_one_of_both_is_missing(name: str) -> None:
    assert fabric.variables(rows(name), accelerators_are_whole=True) == {}
    assert fabric.variables(rows("ml.p5.48xlarge", name), accelerators_are_whole=True) == {}


def test_partitions_do_not_join_over_efa() -> None:
    assert fabric.variables(rows("ml.p5.48xlarge"), accelerators_are_whole=False) == {}


def test_tcp_is_asked_for_by_name() -> None:
    assert fabric.tcp_variables(rows("ml.g5.xlarge")) == {"NCCL_NET": "Socket", "NCCL_SOCKET_IFNAME": INTERFACES}
    assert fabric.tcp_variables(rows("ml.g5.12xlarge")) == {
        "NCCL_NET": "Socket",
        "NCCL_SOCKET_IFNAME": INTERFACES,
        **SHM,
    }
    assert fabric.tcp_variables(rows("ml.p6e-gb200.36xlarge")).items() >= NO_NVLINK.items()


def test_neuron_has_variables_of_its_own() -> None:
    assert fabric.neuron_variables(rows("ml.trn1.32xlarge", "ml.trn2.48xlarge")) == {
        "FI_PROVIDER": "efa",
        "FI_EFA_USE_DEVICE_RDMA": "1",
        "FI_EFA_FORK_SAFE": "1",
        "CCOM_SOCKET_IFNAME": "eth0",
    }
    assert fabric.neuron_variables(rows("ml.p5.48xlarge")) == {}
    assert fabric.neuron_variables(rows("ml.trn1.32xlarge", "ml.c5n.18xlarge")) == {}


def test_no_type_without_rdma_is_set_to_use_it() -> None:
    # libfabric aborts the program then
    for row in ROWS:
        told = fabric.variables([row], accelerators_are_whole=True) | fabric.neuron_variables([row])
        assert row.rdma_read or "FI_EFA_USE_DEVICE_RDMA" not in told, row.name
        assert row.efa_supported or told == {}, row.name


@given(st.lists(st.sampled_from(ROWS), min_size=1, max_size=4))
def test_several_types_get_what_each_of_them_would(mixed: list[InstanceType]) -> None:
    together = fabric.variables(mixed, accelerators_are_whole=True)
    each = [fabric.variables([row], accelerators_are_whole=True).items() for row in mixed]
    assert together.items() == set.intersection(*(set(items) for items in each))


def test_a_pod_without_huge_pages_says_so() -> None:
    assert fabric.variables_without_hugepages() == {"FI_EFA_USE_HUGE_PAGE": "0"}


@row_by_row(
    "name, asked, kept",
    [
        ("ml.p5.48xlarge", 5120, 42242),
        ("ml.p4de.24xlarge", 5120, 21122),
        ("ml.g5.8xlarge", 3522, 7042),
        ("ml.g5.12xlarge", 5120, 10562),
        ("ml.p5.4xlarge", 1762, 3522),
        ("ml.g5.4xlarge", 0, 0),
        ("ml.p6e-gb200.36xlarge", 0, 31682),
        ("ml.c5n.18xlarge", 0, 15842),
        ("ml.m5.2xlarge", 0, 0),
    ],
)
def test_huge_pages(name: str, asked: int, kept: int) -> None:
    (row,) = rows(name)
    assert (fabric.hugepages_mib(row), fabric.hugepages_kept_mib(row)) == (asked, kept)


def test_huge_pages_of_a_type_with_an_unknown_number_of_cores() -> None:
    # two threads to a core, as all types with EFA but Graviton have
    (row,) = rows("ml.p5.4xlarge")
    assert fabric.hugepages_mib(replace(row, default_threads_per_core=None)) == fabric.hugepages_mib(row) == 1762


def test_no_type_is_asked_for_more_huge_pages_than_it_keeps() -> None:
    too_many = [row.name for row in ROWS if fabric.hugepages_mib(row) > fabric.hugepages_kept_mib(row)]
    assert too_many == []
    assert all(fabric.hugepages_mib(row) % 2 == 0 for row in ROWS)  # pages are of 2 MiB


@pytest.mark.parametrize(
    ("names", "cuda"),
    [
        (["ml.g5.8xlarge"], "12.8.1"),
        (["ml.p6-b200.48xlarge", "ml.p5.48xlarge"], "12.8.1"),
        (["ml.p6e-gb200.36xlarge"], "12.8.1"),
        # all GPUs that the oldest CUDA supports, and one more
        (OF_CUDA_12, "12.8.1"),
        ([*OF_CUDA_12, "ml.p6-b300.48xlarge"], "13.0.2"),
        (["ml.p6-b300.48xlarge"], "13.0.2"),
        (["ml.g7e.48xlarge", "ml.g5.8xlarge"], "13.1.2"),
        (["ml.c5n.18xlarge"], "12.8.1"),
    ],
)
def test_the_test_image_knows_the_gpus(names: list[str], cuda: str) -> None:
    assert fabric.test_image(rows(*names)).startswith(f"public.ecr.aws/hpc-cloud/nccl-tests:cuda{cuda}-efa")
    assert fabric.test_image_problem(rows(*names)) is None


def test_a_gpu_that_no_public_image_knows() -> None:
    assert fabric.test_image_problem(rows("ml.g5.8xlarge", "ml.g4dn.12xlarge")) == (
        "must be an image whose nccl-tests are compiled for nvidia-t4, and no public one is, got none for"
        " ml.g4dn.12xlarge; set image to one that hyperpod-cdk image render creates"
    )
    # of several the first is named
    several = fabric.test_image_problem(rows("ml.g4dn.12xlarge", "ml.g4dn.8xlarge"))
    assert several == fabric.test_image_problem(rows("ml.g4dn.12xlarge"))
    assert fabric.test_image(rows("ml.g4dn.12xlarge")) == fabric.test_image(rows("ml.g5.8xlarge"))


def test_images_are_pinned() -> None:
    images = [fabric.test_image, fabric.neuron_image, fabric.dcgm_image]
    for image, row in itertools.product(images, ROWS):
        name = image([row])
        assert IMAGE.fullmatch(name), name
        assert not name.endswith(":latest")
    assert fabric.neuron_image(rows("ml.trn2.48xlarge")).startswith("public.ecr.aws/neuron/pytorch-training-neuronx:2")
    assert fabric.dcgm_image(rows("ml.g4dn.12xlarge")).startswith("nvcr.io/nvidia/cloud-native/dcgm:4.")
