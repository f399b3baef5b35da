"""What is reported of a log: the verdict, what it rests on, the numbers. Its JSON is published by a schema."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Verdict(StrEnum):
    """``unknown`` where the log, or what is published, does not show; never pass for want of knowledge."""

    PASS = "pass"  # noqa: S105 - a verdict
    FAIL = "fail"
    UNKNOWN = "unknown"


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Give fail where one fails, else unknown where one is or there is none, else pass."""
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
    """One question that was put to the log; none passes without a line of the log that says so."""

    name: CheckName = Field(description="What was asked.")
    verdict: Verdict
    says: str = Field(description="The answer, a sentence.")
    fix: str = Field(description="What to do about it; empty where there is nothing to do.")
    evidence: tuple[Evidence, ...]

    @model_validator(mode="after")
    def _passes_by_evidence(self) -> Check:
        if self.verdict is Verdict.PASS and not self.evidence:
            raise ValueError(f"the check {self.name} passes without a line of the log that says so")
        return self


class Network(_Part):
    """What carried the traffic between nodes."""

    state: Literal["efa", "tcp", "mixed", "other", "unknown", "unused"] = Field(
        description="mixed: some hosts used EFA and others TCP. unused: all ranks ran on one node."
    )
    interfaces: int | None = Field(description="EFA interfaces that the plugin found on a node, the least; else null.")
    gpudirect: bool | None = Field(description="Whether GPUs exchanged data without copies in memory; null: unknown.")
    hosts_on_tcp: tuple[str, ...]
    evidence: tuple[Evidence, ...]


class Size(_Part):
    """The measurement of one message size."""

    bytes: int
    out_of_place_gb_s: float | None
    in_place_gb_s: float | None
    wrong: int | None = Field(description="Wrong elements; null where results were not compared.")


class Comparison(_Part):
    """A run compared with published values for its instance type."""

    measured_gb_s: float
    measured_bytes: int
    baseline_gb_s: float
    baseline_bytes: int
    baseline_nodes: int
    ratio: float = Field(description="Measured by baseline.")
    source: str = Field(description="Source of the baseline.")
    unsure: tuple[str, ...] = Field(description="What is inferred or disputed of the baseline.")


class Run(_Part):
    """One run of a collective."""

    tool: Literal["nccl-tests", "nccom-test"]
    collective: str | None = Field(description="all_reduce and the like; null where the log does not show.")
    collective_from: Literal["job", "program", "columns", "unknown"] = Field(
        description="columns: inferred from the table's bandwidths and operation."
    )
    pair: tuple[str, ...] = Field(description="The two hosts, where a bad node is looked for in pairs; else empty.")
    hosts: tuple[str, ...]
    nodes: int | None
    ranks: int | None
    sizes: tuple[Size, ...]
    plateau_gb_s: float | None = Field(
        description="Median bus bandwidth of the sizes within a factor of eight of the largest."
    )
    average_gb_s: float | None = Field(description="The average that the program itself prints, over all sizes.")
    wrong: int | None = Field(description="Wrong elements of all sizes; null where results were not compared.")
    memory_limit_bytes: int | None = Field(description="The largest message that the GPUs' memory allowed, where less.")
    exit_code: int | None = Field(description="Exit code of the program if the job reports a failure; else null.")
    complete: bool = Field(description="Whether the program came to its end.")
    verdict: Verdict = Field(description="Of its bandwidth, results and end.")
    comparison: Comparison | None
    begins: Evidence


class Pair(_Part):
    """Two nodes and how fast they are together."""

    hosts: tuple[str, ...]
    collective: str | None
    plateau_gb_s: float | None
    of_median: float | None = Field(description="Its plateau by the median of all pairs.")
    verdict: Verdict


class Fabric(_Part):
    """What fi_info lists on one pod or rank."""

    of: str = Field(description="Pod and rank as the log names them; empty where it names none.")
    provider: str
    devices: tuple[str, ...]


class HealthTest(_Part):
    """A test of ``dcgmi diag``."""

    of: str = Field(description="The pod; empty where the log names none.")
    category: str
    name: str
    status: Literal["pass", "fail", "warn", "skip", "unknown"]
    says: tuple[str, ...] = Field(description="Warnings, with the GPUs they concern.")


class Report(_Part):
    """A log, judged."""

    version: Literal[1] = Field(description="Of this form.")
    verdict: Verdict = Field(description="fail where a check fails, else unknown where one is, else pass.")
    summary: str
    instance_type: str | None = Field(description="What it ran on; null where several types are possible.")
    instance_types: tuple[str, ...] = Field(description="The types that are possible by the name of the GPU.")
    instance_type_from: Literal["option", "job", "device", "unknown"]
    nodes: int | None
    nodes_from: Literal["option", "job", "hosts", "unknown"]
    checks: tuple[Check, ...]
    network: Network
    runs: tuple[Run, ...]
    pairs: tuple[Pair, ...]
    suspects: tuple[str, ...] = Field(description="Hosts that every slow pair, and no fast one, has in common.")
    fabric: tuple[Fabric, ...]
    health: tuple[HealthTest, ...]
    versions: dict[str, str] = Field(description="Program or library -> version, as in the log.")
    files: tuple[str, ...]
    lines: int

    @model_validator(mode="after")
    def _is_the_worst_of_its_checks(self) -> Report:
        if self.verdict is not worst(check.verdict for check in self.checks):
            raise ValueError(f"the verdict {self.verdict} is not that of the checks")
        return self

    @property
    def holds_a_test(self) -> bool:
        """Whether the log holds anything to judge: a run, a look at the fabric, a diagnostic, NCCL's words."""
        return bool(self.checks)
