"""Results of several environments, and their sums, as ``--format json`` writes them. Schemas are published."""

from __future__ import annotations

from typing import Literal

from hyperpod_cdk.json_schema import Model, Told
from hyperpod_cdk.living.model import Drift, Status, Unread
from hyperpod_cdk.review.model import Cost, Reason

Verb = Literal["validate", "preflight", "review", "status", "drift", "hold"]


class Look(Model):
    """The result of a command for one environment."""

    environment: str
    file: str = ""
    account: str = ""
    region: str = ""
    wave: str = ""
    """Its wave by fleet.yaml; empty without that file."""
    passed: bool | None
    """As the command alone says it: false if something is wrong, null if something could not be checked."""
    exit_code: Literal[0, 1, 2]
    """As the command alone returns it; 2 if nothing of the environment could be checked."""
    summary: str
    """The columns of the table."""
    verdict: str
    """One sentence."""
    findings: tuple[Told, ...] = ()
    skipped: tuple[Unread, ...] = ()
    approval: str = ""
    """Of ``review``: who has to approve what."""
    needs_approval: tuple[Reason, ...] = ()
    cost: Cost | None = None
    """Of ``review``."""
    status: Status | None = None
    drift: Drift | None = None


class FleetReport(Model):
    """The results of a command for several environments. No result hides another one."""

    verb: Verb
    verdict: str
    """One sentence."""
    passed: bool | None
    """False if something is wrong in an environment, null if one could not be checked in full."""
    exit_code: Literal[0, 1, 2]
    """The worst."""
    environments: tuple[Look, ...]
    findings: tuple[Told, ...] = ()
    """Findings of fleet.yaml; if there is an error, its contents are not used."""


class Share(Model):
    """How much of something one environment uses; null if that is unknown."""

    environment: str
    amount: float | None


class QuotaSum(Model):
    """One quota of one account and Region, and how much of it all environments there need together.

    What others in the account use is not in it: 'quotas show' and preflight count that in the account.
    """

    account: str
    region: str
    service: str
    name: str
    unit: str
    needed: float
    shares: tuple[Share, ...]
    allowed: float
    """The lowest value in the quota records of the environments, else AWS's default."""
    source: Literal["recorded", "AWS's default"]
    result: Literal["enough", "short", "short of the default"]
    """The account's own value can be higher than AWS's default."""


class PlanSum(Model):
    """One training plan, and the number of its instances that all environments use."""

    account: str
    region: str
    plan: str
    arn: str
    booked: int
    shares: tuple[Share, ...]
    seats: int | None
    """How many instances it has; null if no record shows it."""
    fee: float | None
    """Its upfront fee in US dollars, paid once for all environments; null if no record shows it."""
    result: Literal["enough", "short", "unknown"]


class CostSum(Model):
    """The cost per month of all environments of one account and Region, without the fees of their plans."""

    account: str
    region: str
    monthly: float | None
    """US dollars, as far as prices are known; null if no price is known."""
    is_lower_bound: bool
    shares: tuple[Share, ...]
    unknown: tuple[str, ...]
    """What has no known price, or is billed by use."""
    prices_as_of: str


class Sums(Model):
    """What the environments of each account and Region use together."""

    verdict: str
    """One sentence."""
    passed: bool | None
    """False if something is too small for all environments, null if something is unknown."""
    quotas: tuple[QuotaSum, ...]
    plans: tuple[PlanSum, ...]
    costs: tuple[CostSum, ...]
    findings: tuple[Told, ...] = ()
    """Findings of refused files; what those environments use is in no sum."""
    skipped: tuple[Unread, ...] = ()


class TeamShare(Model):
    """The share of a pool of nodes that one team pays."""

    team: str
    """Empty for the share of no team: nodes without a quota of a team, and instances of a plan that no group uses."""
    nodes: float | None
    """Its quota in nodes; null if the quota cannot be counted in nodes, or the team has none in the file."""
    by_quota: float | None
    """US dollars; null if unknown."""
    used_hours: float | None = None
    """Accelerator-hours (vCPU-hours for types without accelerators) that its tasks held; null without a report."""
    by_use: float | None = None
    """US dollars, in proportion to the hours of all teams; null if unknown."""


class Pool(Model):
    """Nodes of one instance type with one capacity type."""

    instance_type: str
    capacity: str
    """``on demand``, ``spot``, ``training plan h100-april``."""
    nodes: int
    """The number of nodes in the file's groups."""
    cost: float | None
    """US dollars: the plan's upfront fee, or nodes x 730 hours x the list price; null if unknown."""
    period: str
    """The period that the cost covers."""
    why: str = ""
    """Why the cost, or a share of it, is unknown."""
    shares: tuple[TeamShare, ...]
    """The shares add up to the cost, to the cent."""


class TeamsCost(Model):
    """What nodes cost, and each team's share of it: by quota, and by use if there is a usage report."""

    environment: str
    verdict: str
    """One sentence."""
    passed: bool | None
    """Null if something is unknown."""
    prices_as_of: str
    pools: tuple[Pool, ...]
    skipped: tuple[Unread, ...] = ()
