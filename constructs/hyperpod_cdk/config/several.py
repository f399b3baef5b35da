"""Errors of several environments together: names, plans, address blocks, Slack channels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network

from hyperpod_cdk.catalog import network as catalog
from hyperpod_cdk.config.environment import Environment
from hyperpod_cdk.config.loading import LoadedEnvironment, shared_names
from hyperpod_cdk.config.recorded_plans import RecordedPlan, groups_by_plan
from hyperpod_cdk.config.source import DataPath, render_path
from hyperpod_cdk.findings import Finding, Severity

Place = tuple[str, str]
"""An account and a region."""


def found_together(loaded: Sequence[LoadedEnvironment]) -> list[Finding]:
    """Return every conflict between environments, once each, at the later file."""
    return [*shared_names(loaded), *_plans(loaded), *_overlaps(loaded), *_channels(loaded)]


def place_of(environment: Environment) -> Place:
    """Return the account and region of an environment."""
    return environment.account, environment.region


def free_blocks(taken: Sequence[IPv4Network], *, vpc: str, zones: Sequence[str]) -> tuple[str, dict[str, str]] | None:
    """Return a VPC block and a node block for each zone that do not overlap ``taken``; None if none is left.

    The search begins at ``vpc``, and the answer has its size. Node blocks are a /16 each.
    """
    pool = IPv4Network(catalog.secondary_pool(vpc))
    used = list(taken)

    first = IPv4Network(vpc)
    own = next(
        (
            each
            for each in (first, *(each for each in pool.subnets(new_prefix=first.prefixlen) if each > first))
            if not any(each.overlaps(other) for other in used)
        ),
        None,
    )
    if own is None:
        return None
    used.append(own)
    chosen: list[str] = []
    for each in pool.subnets(new_prefix=catalog.SHORTEST_PREFIX):
        if len(chosen) == len(zones):
            break
        if not any(each.overlaps(other) for other in used) and _all_fit(str(own), [*chosen, str(each)]):
            chosen.append(str(each))
    return (str(own), dict(zip(zones, chosen, strict=True))) if len(chosen) == len(zones) else None


def _all_fit(primary: str, secondary: Sequence[str]) -> bool:
    """Whether AWS adds each of these blocks to a VPC that has the others."""
    return all(
        catalog.secondary_cidr_problem(each, primary=primary, others=[other for other in secondary if other != each])
        is None
        for each in secondary
    )


@dataclass(frozen=True, kw_only=True)
class Booked:
    """A training plan and the instances that each environment uses of it; ``plan`` is None without a record of it."""

    arn: str
    users: Sequence[tuple[LoadedEnvironment, int]]
    plan: RecordedPlan | None
    seats: int | None

    @property
    def name(self) -> str:
        """Its name, as its ARN has it."""
        return self.arn.rpartition("/")[2]

    @property
    def total(self) -> int:
        """How many instances all environments use."""
        return sum(seats for _, seats in self.users)


def booked_plans(loaded: Sequence[LoadedEnvironment]) -> list[Booked]:
    """Return each training plan that environments use, in the order of the files."""
    booked: dict[str, list[tuple[LoadedEnvironment, int]]] = {}
    for each in loaded:
        for arn, groups in groups_by_plan(each.environment).items():
            others = booked.setdefault(arn, [])
            if all(other.file != each.file for other, _ in others):
                others.append((each, sum(group.count for _, group in groups)))
    found = []
    for arn, users in booked.items():
        records = [record.plan(arn) for user, _ in users if (record := user.recorded_plans) is not None]
        # the record with the fewest instances counts
        plan = min(filter(None, records), key=lambda each: each.seats, default=None)
        found.append(Booked(arn=arn, users=users, plan=plan, seats=None if plan is None else plan.seats))
    return found


def _plans(loaded: Sequence[LoadedEnvironment]) -> Iterator[Finding]:
    """Find training plans that several environments use: refuse if a record has too few instances for all."""
    for booked in booked_plans(loaded):
        if len(booked.users) < 2 or (booked.seats is not None and booked.total <= booked.seats):
            continue
        each, _ = booked.users[-1]
        place, _ = groups_by_plan(each.environment)[booked.arn][0]
        path = render_path((*place, "training_plan_arn"))
        shares = ", ".join(f"{seats} of {user.file}" for user, seats in booked.users)
        if booked.seats is not None:
            text = (
                f"must use at most the {booked.seats} instances of {booked.name} with the other environments, got"
                f" {booked.total} ({shares}); lower the counts by {booked.total - booked.seats}"
            )
        else:
            text = (
                f"is used by {len(booked.users)} environments for {booked.total} instances in total ({shares}), and"
                f" how many {booked.name} has is not recorded; run 'hyperpod-cdk plans record {each.called}'"
            )
        severity = Severity.WARNING if booked.seats is None else Severity.ERROR
        yield _finding(each, severity, path, text, "plan_is_booked_within_its_seats")


def _overlaps(loaded: Sequence[LoadedEnvironment]) -> Iterator[Finding]:
    """Warn of overlapping blocks in one account and region: such VPCs can never be connected."""
    before: list[tuple[LoadedEnvironment, dict[DataPath, IPv4Network]]] = []
    for each in loaded:
        own = each.environment.network.blocks()
        found = next(
            (
                (path, block, other, there)
                for path, block in own.items()
                for other, theirs in before
                if other.file != each.file
                and place_of(other.environment) == place_of(each.environment)
                and _vpc(other.environment) != _vpc(each.environment)
                for there in theirs.values()
                if block.overlaps(there)
            ),
            None,
        )
        before.append((each, own))
        if found is not None:
            path, block, other, there = found
            yield _finding(
                each,
                Severity.WARNING,
                render_path(path),
                f"{block} overlaps {there} of {other.file}, in the same account and region: the two VPCs can neither be"
                " peered nor share a transit gateway; choose other blocks before the first deployment if they are to",
                "blocks_overlap_no_other_environment",
            )


def _channels(loaded: Sequence[LoadedEnvironment]) -> Iterator[Finding]:
    """Warn of a Slack channel in two environments of one account: AWS refuses the second configuration.

    The service says so ("has already been configured for AWS account": cdk-constructs issue 92, awscc issue 1011), and
    its guide does not mention it.
    """
    first: dict[tuple[str, str, str], LoadedEnvironment] = {}
    for each in loaded:
        slack = each.environment.notify.slack if each.environment.notify else None
        if slack is None:
            continue
        other = first.setdefault((each.environment.account, slack.workspace_id, slack.channel_id), each)
        if other.file != each.file:
            yield _finding(
                each,
                Severity.WARNING,
                "notify.slack.channel_id",
                f"{slack.channel_id} is also the channel of {other.file}, and the service has refused a second"
                " configuration of a channel in one account; name another channel",
                "slack_channel_is_no_other_environments",
            )


def _vpc(environment: Environment) -> str:
    """Return what identifies a VPC: the ID of an existing one, else the environment that creates it."""
    existing = environment.network.existing
    return f"made for {environment.name}" if existing is None else existing.vpc_id


def _finding(each: LoadedEnvironment, severity: Severity, path: str, message: str, rule: str) -> Finding:
    return Finding(severity=severity, message=message, path=path, file=each.file, line=each.line_of(path), rule=rule)
