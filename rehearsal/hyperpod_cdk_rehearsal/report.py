"""Prints what a rehearsal did and what exists afterwards."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hyperpod_cdk_rehearsal.inventory import Inventory, MissingNodes
from hyperpod_cdk_rehearsal.left_over import Kept

NOT_REHEARSED = (
    "the account is not yours: its quotas, plans and capacity are what the environment needs, or --account-file states",
    "Helm is not run and no pod starts: releases and manifests are recorded",
    "IAM policies are not enforced on API calls; roles must exist and trust the service that uses them",
    "lifecycle scripts are uploaded and read back, not run on a node",
)
"""What a rehearsal does not show; printed each time, because a passed rehearsal does not guarantee it."""


MOST_NAMED = 5
"""The largest number of retained resources of one type that are listed individually."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of the rehearsal with its result and its duration in seconds."""

    name: str
    result: str
    seconds: float


@dataclass(kw_only=True)
class Report:
    """The report of a rehearsal."""

    environment: str
    file: str
    account: str
    region: str
    steps: list[Step] = field(default_factory=list)
    inventory: Inventory = field(default_factory=Inventory)
    missing_nodes: list[MissingNodes] = field(default_factory=list)
    executions: list[dict[str, Any]] = field(default_factory=list)
    recorded: list[dict[str, Any]] = field(default_factory=list)
    kubernetes: list[str] = field(default_factory=list)
    retained: dict[str, list[str]] = field(default_factory=dict)
    kept: list[Kept] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    placeholder_chart: bool = False
    problem: str = ""

    @property
    def passed(self) -> bool:
        """Return whether every step passed."""
        return not self.problem

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain data for ``--format json``."""
        return {
            "environment": self.environment,
            "file": self.file,
            "account": self.account,
            "region": self.region,
            "passed": self.passed,
            "problem": self.problem,
            "steps": [asdict(step) for step in self.steps],
            "exists": self.inventory.as_dict(),
            "missing_nodes": [asdict(each) for each in self.missing_nodes],
            "custom_resources": self.executions,
            "recorded_only": self.recorded,
            "kubernetes": self.kubernetes,
            "retained": self.retained,
            "kept": [asdict(each) for each in self.kept],
            "refused_by_policy": self.refused,
            "placeholder_chart": self.placeholder_chart,
            "not_rehearsed": list(NOT_REHEARSED),
        }


def print_report(report: Report, console: Console) -> None:
    """Print the steps, the table of what exists, and what was not rehearsed."""
    console.print()
    if report.inventory.vpc_id:
        console.print(_exists(report.inventory, f"What exists in {report.region} (account {report.account})"))
    if report.missing_nodes:
        console.print("[bold]Nodes that are not Running[/bold]")
        for missing in report.missing_nodes:
            _item(console, str(missing) if missing.is_failure else f"{missing} (as expected in this account)")
    if report.inventory.quotas:
        console.print(_quotas(report.inventory))
    _custom_resources(report, console)
    if report.kept:
        console.print("\n[bold]Retained after a destroy[/bold]; delete it when you no longer need it")
        for kind, why, monthly, named in _by_reason(report.kept):
            listed = ", ".join(named) if len(named) <= MOST_NAMED else f"{len(named)}, such as {named[0]}"
            _item(console, f"{kind}: {listed} ({why}; each costs {monthly} per month)")
    console.print("\n[bold]Not rehearsed[/bold]")
    for each in NOT_REHEARSED:
        _item(console, each)
    if report.placeholder_chart:
        _item(
            console,
            "the HyperPod chart is a placeholder; 'hyperpod-cdk charts pull' fetches the real one, and a real "
            "deployment refuses without it",
        )
    console.print()
    seconds = sum(step.seconds for step in report.steps)
    if report.passed:
        console.print(f"[bold green]rehearsed[/bold green] {report.environment} in {seconds:.0f} s")
    else:
        console.print(f"[bold red]failed[/bold red] after {seconds:.0f} s", highlight=False)
        console.print(report.problem, markup=False, highlight=False, soft_wrap=True)


def _exists(found: Inventory, title: str) -> Table:
    table = Table(title=title, title_justify="left", show_lines=False, pad_edge=False)
    table.add_column("what", no_wrap=True, style="bold")
    table.add_column("which", overflow="fold")
    table.add_row("VPC", f"{found.vpc_id}  {', '.join(found.vpc_cidrs)}")
    for subnet in found.subnets:
        table.add_row(f"  subnet {subnet.availability_zone_id}", f"{subnet.cidr}  {subnet.name}")
    table.add_row("  egress", f"{found.nat_gateways} NAT gateway(s); endpoints: {', '.join(found.endpoints)}")
    table.add_row("EKS", f"{found.eks}  Kubernetes {found.kubernetes_version}  {found.eks_status}")
    for name, version in found.addons.items():
        table.add_row("  add-on", f"{name}  {version}")
    for principal, kind in found.access_entries.items():
        table.add_row("  access entry", f"{principal}  {kind}")
    table.add_row("HyperPod", f"{found.cluster}  {found.cluster_status}  {found.cluster_settings}")
    for group in found.groups:
        plan = f"  plan {group.training_plan}" if group.training_plan else ""
        table.add_row(
            f"  group {group.name}",
            f"{group.current}/{group.target} x {group.instance_types}  {group.availability_zone_ids}"
            f"  {group.status}{plan}",
        )
    table.add_row("  nodes", f"{found.running_nodes} Running")
    for folder, files in _by_folder(found.scripts).items():
        table.add_row("  scripts", f"{folder}\n{', '.join(files)}")
    for system in found.file_systems:
        table.add_row("FSx for Lustre", system)
    if found.policy:
        table.add_row("Cluster policy", found.policy)
    return table


def _by_folder(uris: list[str]) -> dict[str, list[str]]:
    """Group the objects of a bucket under the prefix that the cluster names: bucket and content hash."""
    folders: dict[str, list[str]] = {}
    for uri in uris:
        bucket, prefix, name = uri.removeprefix("s3://").split("/", 2)
        folders.setdefault(f"s3://{bucket}/{prefix}/", []).append(name)
    return folders


def _quotas(found: Inventory) -> Table:
    table = Table(title="Team quotas", title_justify="left", pad_edge=False)
    for column in ("team", "guaranteed", "weight", "sharing", "preemption", "status"):
        table.add_column(column, overflow="fold")
    for quota in found.quotas:
        table.add_row(quota.team, quota.resources, str(quota.weight), quota.sharing, quota.preemption, quota.status)
    return table


def _custom_resources(report: Report, console: Console) -> None:
    if report.executions:
        console.print("\n[bold]Custom resources[/bold]")
        counted = Counter((e["how"], e["type"], e.get("reason", "")) for e in report.executions)
        for (how, kind, reason), times in sorted(counted.items()):
            why = f" ({reason})" if reason else ""
            # its provider's code does not run on this machine, so its documented effect is applied
            did = "simulated" if how == "played" else how
            _item(console, f"{did} {times} x {kind}{why}")
    if report.kubernetes:
        console.print("[bold]Kubernetes objects recorded[/bold]")
        for each in report.kubernetes:
            _item(console, each)
    if report.recorded:
        kinds = ", ".join(sorted({each["type"] for each in report.recorded}))
        console.print(f"[bold]Recorded only[/bold], checked against their schema: {kinds}", highlight=False)


def _by_reason(kept: list[Kept]) -> list[tuple[str, str, str, list[str]]]:
    """Group retained resources with the same reason and price, in the given order."""
    grouped: dict[tuple[str, str, str], list[str]] = {}
    for each in kept:
        grouped.setdefault((each.kind, each.why, each.monthly), []).append(each.name)
    return [(*key, names) for key, names in grouped.items()]


def _item(console: Console, text: str) -> None:
    # Text, because names may contain brackets; padded, so that wrapped lines stay indented
    console.print(Padding(Text(text), (0, 0, 0, 2)), highlight=False)
