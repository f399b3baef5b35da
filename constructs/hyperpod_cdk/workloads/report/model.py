"""The report on a log: verdict, evidence and numbers. Its JSON has a published schema."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Verdict(StrEnum):
    """``unknown`` if neither the log nor published values show the result; missing knowledge never results in pass."""

    PASS = "pass"  # noqa: S105 - a verdict
    FAIL = "fail"
    UNKNOWN = "unknown"


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return fail if one is fail, otherwise unknown if one is unknown or there is none, otherwise pass."""
    found = set(verdicts)
    if Verdict.FAIL in found:
        return Verdict.FAIL
    return Verdict.UNKNOWN if Verdict.UNKNOWN in found or not found else Verdict.PASS


class _Part(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Evidence(_Part):
    """A line of the log."""

    file: str = Field(description="The log's file; empty for standard input.")
    line: int = Field(description="Number of the line in the file, from 1.")
    text: str = Field(description="The line without rank prefix and timestamp, cut after 300 characters.")


CheckName = Literal[
    "network",
    "interfaces",
    "lustre",
    "bandwidth",
    "results",
    "completeness",
    "nodes",
    "instance type",
    "pairs",
    "errors",
    "health",
]


class Check(_Part):
    """One check of the log; it passes only with a line of the log as evidence."""

    name: CheckName = Field(description="What was checked.")
    verdict: Verdict
    says: str = Field(description="The result, as a sentence.")
    fix: str = Field(description="What to do about it; empty if there is nothing to do.")
    evidence: tuple[Evidence, ...]

    @model_validator(mode="after")
    def _passes_by_evidence(self) -> Check:
        if self.verdict is Verdict.PASS and not self.evidence:
            raise ValueError(f"the check {self.name} passes without a line of the log as evidence")
        return self


class Network(_Part):
    """The network that the traffic between nodes used."""

    state: Literal["efa", "tcp", "mixed", "other", "unknown", "unused"] = Field(
        description="mixed: some hosts used EFA and others TCP. unused: all ranks ran on one node."
    )
    interfaces: int | None = Field(description="Smallest number of EFA interfaces on a node, or null.")
    gpudirect: bool | None = Field(description="Whether GPUs exchanged data without copies in memory; null if unknown.")
    hosts_on_tcp: tuple[str, ...]
    evidence: tuple[Evidence, ...]


class Size(_Part):
    """The measurement of one message size."""

    bytes: int
    out_of_place_gb_s: float | None
    in_place_gb_s: float | None
    wrong: int | None = Field(description="Wrong elements; null if results were not verified.")


class Comparison(_Part):
    """A run compared with published values for its instance type."""

    measured_gb_s: float
    measured_bytes: int
    baseline_gb_s: float
    baseline_bytes: int
    baseline_nodes: int
    ratio: float = Field(description="Measured value divided by the baseline.")
    source: str = Field(description="Source of the baseline.")
    unsure: tuple[str, ...] = Field(description="Inferred or disputed parts of the baseline.")


class Run(_Part):
    """One run of a collective."""

    tool: Literal["nccl-tests", "nccom-test"]
    collective: str | None = Field(description="Name, such as all_reduce; null if the log does not show it.")
    collective_from: Literal["job", "program", "columns", "unknown"] = Field(
        description="columns: inferred from the table's bandwidths and operation."
    )
    pair: tuple[str, ...] = Field(description="The two hosts of a test in pairs; otherwise empty.")
    hosts: tuple[str, ...]
    nodes: int | None
    ranks: int | None
    sizes: tuple[Size, ...]
    plateau_gb_s: float | None = Field(
        description="Median bus bandwidth of the sizes within a factor of eight of the largest."
    )
    average_gb_s: float | None = Field(description="Average over all sizes, as printed by the program.")
    wrong: int | None = Field(description="Wrong elements of all sizes; null if results were not verified.")
    memory_limit_bytes: int | None = Field(description="Largest message that the GPUs' memory allowed, or null.")
    exit_code: int | None = Field(description="Exit code of the program if the job reports a failure; otherwise null.")
    complete: bool = Field(description="Whether the program completed.")
    verdict: Verdict = Field(description="Verdict on its bandwidth, results and completion.")
    comparison: Comparison | None
    begins: Evidence


class Pair(_Part):
    """The bandwidth between two nodes."""

    hosts: tuple[str, ...]
    collective: str | None
    plateau_gb_s: float | None
    of_median: float | None = Field(description="Its plateau divided by the median of all pairs.")
    verdict: Verdict


class Fabric(_Part):
    """The devices that fi_info lists in one pod or rank."""

    of: str = Field(description="Pod and rank in the log; empty if the log contains none.")
    provider: str
    devices: tuple[str, ...]


class HealthTest(_Part):
    """A test of ``dcgmi diag``."""

    of: str = Field(description="The pod; empty if the log contains none.")
    category: str
    name: str
    status: Literal["pass", "fail", "warn", "skip", "unknown"]
    says: tuple[str, ...] = Field(description="Warnings, with the GPUs they concern.")


class Report(_Part):
    """The report on a log."""

    version: Literal[1] = Field(description="Version of this format.")
    verdict: Verdict = Field(description="fail if a check fails, otherwise unknown if one is, otherwise pass.")
    summary: str
    instance_type: str | None = Field(description="Instance type of the nodes; null if several types are possible.")
    instance_types: tuple[str, ...] = Field(description="Possible types according to the name of the GPU.")
    instance_type_from: Literal["option", "job", "device", "unknown"]
    nodes: int | None
    nodes_from: Literal["option", "job", "hosts", "unknown"]
    checks: tuple[Check, ...]
    network: Network
    runs: tuple[Run, ...]
    pairs: tuple[Pair, ...]
    suspects: tuple[str, ...] = Field(description="Hosts that are in every slow pair and in no fast pair.")
    fabric: tuple[Fabric, ...]
    health: tuple[HealthTest, ...]
    versions: dict[str, str] = Field(description="Versions in the log by program or library.")
    files: tuple[str, ...]
    lines: int

    @model_validator(mode="after")
    def _is_the_worst_of_its_checks(self) -> Report:
        if self.verdict is not worst(check.verdict for check in self.checks):
            raise ValueError(f"the verdict {self.verdict} is not the verdict of the checks")
        return self

    @property
    def holds_a_test(self) -> bool:
        """Whether the log contains a test: a run, a list of network devices, a diagnostic, or messages of NCCL."""
        return bool(self.checks)
