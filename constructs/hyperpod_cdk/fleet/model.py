"""Looks at several environments, and their sums, as data: what ``--format json`` writes. Schemas are published."""

from __future__ import annotations

from typing import Literal

from hyperpod_cdk.json_schema import Model, Told
from hyperpod_cdk.living.model import Drift, Status, Unread
from hyperpod_cdk.review.model import Cost, Reason

Verb = Literal["validate", "preflight", "review", "status", "drift", "hold"]


class Look(Model):
    """What a verb says of one environment."""

    environment: str
    file: str = ""
    account: str = ""
    region: str = ""
    wave: str = ""
    """Its wave by fleet.yaml; empty without that file."""
    passed: bool | None
    """As the verb alone says it: false where something is wrong, null where something could not be looked at."""
    exit_code: Literal[0, 1, 2]
    """As of the verb alone; 2 where nothing of it could be looked at."""
    summary: str
    """What stands in the table."""
    verdict: str
    """One sentence."""
    findings: tuple[Told, ...] = ()
    skipped: tuple[Unread, ...] = ()
    approval: str = ""
    """Of ``review``: who has to look at what."""
    needs_approval: tuple[Reason, ...] = ()
    cost: Cost | None = None
    """Of ``review``."""
    status: Status | None = None
    drift: Drift | None = None


class FleetReport(Model):
    """What a verb says of several environments. None of them hides another."""

    verb: Verb
    verdict: str
    """One sentence."""
    passed: bool | None
    """False where one is wrong, null where one could not be looked at in full."""
    exit_code: Literal[0, 1, 2]
    """The worst."""
    environments: tuple[Look, ...]
    findings: tuple[Told, ...] = ()
    """Of fleet.yaml; what it says counts for nothing then."""


class Share(Model):
    """What one environment takes of something; null where that is not known."""

    environment: str
    amount: float | None


class QuotaSum(Model):
    """One quota of one account and region, and what all environments there need of it together.

    What others in the account take is not in it: 'quotas show' and preflight count that, live.
    """

    account: str
    region: str
    service: str
    name: str
    unit: str
    needed: float
    shares: tuple[Share, ...]
    allowed: float
    """The lowest value that is recorded beside one of the files, else AWS's default."""
    source: Literal["recorded", "AWS's default"]
    result: Literal["enough", "short", "short of the default"]
    """What the account really has may be more than AWS's default."""


class PlanSum(Model):
    """One training plan, and the instances that all environments book of it."""

    account: str
    region: str
    plan: str
    arn: str
    booked: int
    shares: tuple[Share, ...]
    seats: int | None
    """How many instances it has; null where no record tells."""
    fee: float | None
    """Its upfront fee in US dollars, paid once for all; null where no record tells."""
    result: Literal["enough", "short", "unknown"]


class CostSum(Model):
    """What all environments of one account and region cost a month, beside the fees of their plans."""

    account: str
    region: str
    monthly: float | None
    """US dollars, as far as prices are known; null where nothing is known."""
    is_lower_bound: bool
    shares: tuple[Share, ...]
    unknown: tuple[str, ...]
    """What has no known price, or one by use."""
    prices_as_of: str


class Sums(Model):
    """What the environments of each account and region take together."""

    verdict: str
    """One sentence."""
    passed: bool | None
    """False where something does not suffice for all, null where something is not known."""
    quotas: tuple[QuotaSum, ...]
    plans: tuple[PlanSum, ...]
    costs: tuple[CostSum, ...]
    findings: tuple[Told, ...] = ()
    """Of files that are refused: what they take is in no sum."""
    skipped: tuple[Unread, ...] = ()


class TeamShare(Model):
    """What one team carries of a pool of nodes."""

    team: str
    """Empty: nobody, that is nodes of which no team has a quota, and seats of a plan that no group takes."""
    nodes: float | None
    """Its quota in nodes; null where the quota cannot be counted in nodes, or the team has none in the file."""
    by_quota: float | None
    """US dollars; null where that is not known."""
    used_hours: float | None = None
    """Hours of accelerators, or of vCPU where there are none, that its tasks held; null where no report tells."""
    by_use: float | None = None
    """US dollars, in proportion to the hours of all; null where that is not known."""


class Pool(Model):
    """Nodes of one instance type that are paid in one way."""

    instance_type: str
    capacity: str
    """``on demand``, ``spot``, ``training plan h100-april``."""
    nodes: int
    """Of the file's groups."""
    cost: float | None
    """US dollars: the plan's upfront fee, or nodes x 730 hours x the list price; null where that is not known."""
    period: str
    """What it pays for."""
    why: str = ""
    """Why the cost, or a share of it, is not known."""
    shares: tuple[TeamShare, ...]
    """They add up to the cost, to the cent."""


class TeamsCost(Model):
    """What nodes cost, and which team carries how much of it: by its quotas, and by its use where a report tells."""

    environment: str
    verdict: str
    """One sentence."""
    passed: bool | None
    """Null where something is not known."""
    prices_as_of: str
    pools: tuple[Pool, ...]
    skipped: tuple[Unread, ...] = ()
