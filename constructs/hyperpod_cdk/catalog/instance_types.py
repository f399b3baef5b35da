"""SageMaker ``ml.*`` instance types that a HyperPod instance group may name, and what each can do."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import date
from functools import cache
from typing import Any

from hyperpod_cdk.catalog import _data
from hyperpod_cdk.catalog.closest import closest as _closest
from hyperpod_cdk.catalog.rules import Pattern, listing
from hyperpod_cdk.catalog.sentences import Choosing, OnlyInFiles, Sentence

AS_OF: date


@dataclass(frozen=True, kw_only=True)
class InstanceType:
    """One instance type and its numbers. None means that no source states the value.

    ``name`` (str): name of the type, such as ``ml.p5.48xlarge``.

    ``ec2_name`` (str): name of the type in EC2, without ``ml.``.

    ``family`` (str): family of the type, such as ``p5``.

    ``architecture`` (str): architecture of the processors, ``x86_64`` or ``arm64``.

    ``vcpu`` (int, vCPUs): vCPUs of an instance.

    ``memory_gib`` (float, GiB): the machine's memory, as the EC2 guide prints it.

    ``network_cards`` (int, cards): network cards of an instance.

    ``accelerator_kind`` (str): ``nvidia-`` or ``aws-`` and the model in lower case, such as ``nvidia-h100``. Default:
    none, it has no accelerators.

    ``accelerator_count`` (int, accelerators): accelerators of an instance. Default: 0.

    ``accelerator_memory_gib`` (float, GiB): memory of one accelerator, as the EC2 guide prints it. Default: unknown.

    ``efa_supported`` (bool): whether the type has EFA. Default: no.

    ``efa_count`` (int | None, interfaces): EFA interfaces that the type carries, one for each network card; None if
    sources conflict. Default: 0.

    ``efa_generation`` (str): generation of EFA. Default: unknown.

    ``rdma_read`` (bool): whether EFA supports RDMA read. Default: no.

    ``rdma_write`` (bool): whether EFA supports RDMA write. Default: no.

    ``gpudirect_rdma`` (bool): whether EFA supports GPUDirect RDMA. Default: no.

    ``gpudirect_storage_fsx`` (bool): whether FSx for Lustre supports GPUDirect Storage on the type. Default: no.

    ``fsx_efa_client`` (bool): whether the type can use FSx for Lustre over EFA. Default: no.

    ``max_enis`` (int, interfaces): network interfaces that an instance can have. Default: unknown.

    ``ips_per_eni`` (int, addresses): addresses that one network interface can have. Default: unknown.

    ``max_pods`` (int, pods): pods of a node in the developer guide's table. Default: unknown.

    ``ips_per_node`` (int, addresses): addresses that one HyperPod node uses in its subnet. Default: unknown.

    ``ips_basis`` (str): how ``ips_per_node`` was obtained. Default: unknown.

    ``default_threads_per_core`` (int, threads): threads per core that EC2 gives. Default: unknown.

    ``valid_threads_per_core`` (tuple[int, ...], threads): threads per core that EC2 lets one choose. Default: none, EC2
    states nothing.

    ``deep_health_check`` (bool): whether HyperPod runs deep health checks on it. Default: no.

    ``training_plan_supported`` (bool): whether AWS sells training plans for it. Default: no.

    ``mig_profiles`` (tuple[str, ...]): Multi-Instance GPU slices. Default: none.

    ``mig_documented`` (bool): whether a page documents the slices; no if only a command-line tool lists them. Default:
    no.

    ``cluster_quota_name`` (str): name in Service Quotas of the quota for cluster usage. Default: unknown.

    ``cluster_quota_code`` (str): code of that quota, a hint. Default: unknown.

    ``spot_quota_name`` (str): name in Service Quotas of the quota for cluster spot instance usage. Default: unknown.

    ``spot_quota_code`` (str): code of that quota, a hint. Default: unknown.

    ``training_plan_quota_name`` (str): name in Service Quotas of the quota for training plans. Default: unknown.

    ``training_plan_quota_code`` (str): code of that quota, a hint. Default: unknown.

    ``in_hyperpod_cli_table`` (bool): whether the table of the HyperPod CLI has the type. Default: no.

    ``sources`` (tuple[str, ...]): keys of ``source_texts()``. Default: none.

    ``unsure`` (tuple[str, ...]): what is inferred or disputed. Default: none.
    """

    name: str
    ec2_name: str
    family: str
    architecture: str
    vcpu: int
    memory_gib: float
    network_cards: int
    accelerator_kind: str | None = None
    accelerator_count: int = 0
    accelerator_memory_gib: float | None = None
    efa_supported: bool = False
    efa_count: int | None = 0
    efa_generation: str | None = None
    rdma_read: bool = False
    rdma_write: bool = False
    gpudirect_rdma: bool = False
    gpudirect_storage_fsx: bool = False
    fsx_efa_client: bool = False
    max_enis: int | None = None
    ips_per_eni: int | None = None
    max_pods: int | None = None
    ips_per_node: int | None = None
    ips_basis: str | None = None
    default_threads_per_core: int | None = None
    valid_threads_per_core: tuple[int, ...] = ()
    deep_health_check: bool = False
    training_plan_supported: bool = False
    mig_profiles: tuple[str, ...] = ()
    mig_documented: bool = False
    cluster_quota_name: str | None = None
    cluster_quota_code: str | None = None
    spot_quota_name: str | None = None
    spot_quota_code: str | None = None
    training_plan_quota_name: str | None = None
    training_plan_quota_code: str | None = None
    in_hyperpod_cli_table: bool = False
    sources: tuple[str, ...] = ()
    unsure: tuple[str, ...] = ()

    @property
    def is_accelerated(self) -> bool:
        """Whether the type has GPUs or Neuron devices."""
        return self.accelerator_count > 0

    @property
    def is_nvidia(self) -> bool:
        """Whether the accelerators are NVIDIA GPUs."""
        return (self.accelerator_kind or "").startswith("nvidia-")

    @property
    def is_neuron(self) -> bool:
        """Whether the accelerators are AWS's own (Trainium), driven by Neuron."""
        return (self.accelerator_kind or "").startswith("aws-")

    @property
    def has_smt(self) -> bool | None:
        """Whether a core runs two threads and ``ThreadsPerCore`` may be 2; None when no source says."""
        if self.default_threads_per_core is None:
            return None
        return self.default_threads_per_core == 2

    def addresses_per_node(self, *, efa_only: bool) -> int | None:
        """Return how many addresses a node uses in its subnet, None if ``ips_per_node`` is unknown.

        ``efa_only``: the interfaces of all network cards but the first are EFA-only. "You can't assign an IP address to
        an EFA-only network interface", nor make it the primary one (EC2 user guide, create-efa and efa-acc-inst-types).
        """
        if self.ips_per_node is None or not efa_only:
            return self.ips_per_node
        return max(1, self.ips_per_node - self.secondary_interfaces)

    @property
    def pods_per_node(self) -> int | None:
        """How many pods fit on a node; None if unknown.

        From the developer guide's table if it has the type, else the addresses of the primary interface without the
        node's own, which is the table's rule for all types.
        """
        if self.max_pods is not None or self.ips_per_node is None:
            return self.max_pods
        return self.ips_per_node - self.secondary_interfaces - 1

    @property
    def secondary_interfaces(self) -> int:
        """Network interfaces of a node without the primary one: one for each further network card."""
        return self.network_cards - 1

    @property
    def cores(self) -> int | None:
        """Physical cores; None when the threads per core are unknown."""
        if self.default_threads_per_core is None:
            return None
        return self.vcpu // self.default_threads_per_core


NAME = Pattern(
    regex=r"ml\.[a-z0-9-]+\.[a-z0-9-]+",
    maximum=64,
    describes="an instance type of SageMaker, which begins with ml.",
    refers=True,
    example="ml.p5.48xlarge",
    source="boto; ClusterInstanceType, whose values all are so",
)


def get(name: str) -> InstanceType | None:
    """Return the row of an ``ml.*`` name, or None when the catalog does not know it."""
    return _table().get(name)


def names() -> tuple[str, ...]:
    """Return every known name, in the order of the API's own list."""
    return tuple(_table())


def closest(name: str) -> str | None:
    """Return the known name that was probably meant (``p5.48xlarge`` -> ``ml.p5.48xlarge``), or None."""
    wanted = name.strip().lower()
    return _closest(wanted if wanted.startswith("ml.") else f"ml.{wanted}", _table())


def _of_its_family(name: str) -> tuple[str, ...]:
    """Return the types of a known family if ``name`` has a size that there is, but not in that family."""
    wanted = name.strip().lower()
    family, _, size = (wanted if wanted.startswith("ml.") else f"ml.{wanted}").rpartition(".")
    if f"{family}.{size}" in _table() or size not in {each.rpartition(".")[2] for each in _table()}:
        return ()
    of_it = [each for each in _table() if each.startswith((f"{family}.", f"{family}-"))]
    return tuple(of_it) if family.count(".") == 1 else ()


def xlarge(name: str) -> int | None:
    """Return the size in a type's name: 4 for ``ml.c5.4xlarge``, 0 below ``xlarge``, None if the name has none."""
    size = name.rpartition(".")[2] if "." in name else ""
    if size in {"nano", "micro", "small", "medium", "large"}:
        return 0
    match = re.fullmatch(r"([0-9]*)xlarge", size)
    return None if match is None else int(match[1] or 1)


def unknown_type_problem(
    name: str,
    *,
    key: str = "instance_type",
    otherwise: str = "state the type's numbers under instance_types:",
    stated: Iterable[str] = (),
    where: str = "in this file",
) -> str | None:
    """Say that neither the catalog nor ``stated`` has ``name``, with a similar name and the date, or return None.

    ``otherwise`` is what to do if AWS has such a type; ``where`` is where the caller states types.
    """
    known = set(stated)
    if name in _table() or name in known:
        return None
    # if only "ml." is missing, the catalog has the better answer
    near_stated = None if f"ml.{name}" in _table() else _closest(name, sorted(known))
    if near_stated:
        return f'must be an instance type that is known, got "{name}"; did you mean {near_stated}, stated {where}?'
    said = f'must be a HyperPod instance type known on {as_of()}, got "{name}"; '
    if family := _of_its_family(name):
        also = OnlyInFiles(f", or {otherwise}", python=f", or {otherwise}")
        return Sentence(said, Choosing(key), f" {listing(family)}", also)
    if near := closest(name):
        return Sentence(
            said, f"did you mean {near}?", OnlyInFiles(f" If not, {otherwise}", python=f" If not, {otherwise}")
        )
    return Sentence(
        said,
        Choosing(key),
        f" one of the {len(_table())} known",
        OnlyInFiles(", which 'hyperpod-cdk schema' lists"),
        OnlyInFiles(f", or {otherwise}", python=f", or {otherwise}"),
    )


def as_of() -> date:
    """Return the date on which the table was read; the module attribute ``AS_OF`` is the same."""
    return _data.as_of("instance_types")


@cache
def _table() -> dict[str, InstanceType]:
    return {row["name"]: _instance_type(row) for row in _data.load("instance_types")["types"]}


_FIELDS = frozenset(field.name for field in fields(InstanceType))
_LISTS = ("mig_profiles", "sources", "unsure", "valid_threads_per_core")


def _instance_type(row: dict[str, Any]) -> InstanceType:
    values = {name: value for name, value in row.items() if name in _FIELDS}
    values.update({name: tuple(row.get(name, ())) for name in _LISTS})
    return InstanceType(**values)


def __getattr__(name: str) -> date:
    if name == "AS_OF":
        return as_of()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
