"""Finds outdated versions of an environment, and the steps to newer ones: one Kubernetes minor version at a time."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from hyperpod_cdk.catalog import addons as addon_rows
from hyperpod_cdk.catalog import governance, images, kubernetes, scheduling
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.checks.eks import wanted_addons
from hyperpod_cdk.config import Environment, InstanceGroup
from hyperpod_cdk.config.edits import EditError, with_value
from hyperpod_cdk.config.source import DataPath, read_source, render_path
from hyperpod_cdk.review.nouns import count
from hyperpod_cdk.transitions.ages import Ages, Software
from hyperpod_cdk.transitions.model import Aged, Edit, Refusal, Upgrade, UpgradeKind, UpgradeStep

LOCK: Final = "charts/charts.lock.yaml"
_VERSION: Final[DataPath] = ("eks", "kubernetes_version")
_PINS: Final[DataPath] = ("eks", "addon_versions")
_PODS: Final = "pods of add-ons that change restart; nodes and jobs stay"
_NODES: Final = (
    "the nodes of the group stop, their root volumes are replaced, and HyperPod drains no jobs: everything on root"
    " volumes is lost"
)
_AGAIN: Final = "deploy the file as it was before"
_OF_FILE: Final = "version of the file, because the deployed version was not read"
_AMI_BACK: Final = (
    "set the previous release in image.release_version and deploy, which interrupts the nodes again; AWS accepts"
    " releases that it still supports"
)


@dataclass(frozen=True, kw_only=True)
class Locks:
    """The chart's locks: that of the project, None if it has none, and that of the library; commit and text."""

    own: tuple[str, str] | None
    library: tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is to be upgraded; ``kubernetes`` is the target version."""

    kubernetes: str | None = None
    addons: bool = False
    ami: bool = False
    chart: bool = False
    library: bool = False

    @property
    def is_nothing(self) -> bool:
        """Whether only a report is wanted."""
        return self == Asked()


class _StopError(Exception):
    """No further step is known; ``refusal`` says why."""

    def __init__(self, why: str, what_works: str) -> None:
        super().__init__(why)
        self.refusal = Refusal(why=why, what_works=what_works)


def upgrade(
    environment: Environment,
    text: str,
    *,
    file: str,
    argument: str,
    asked: Asked,
    ages: Ages,
    locks: Locks,
    library: str,
    now: datetime,
) -> tuple[Upgrade, dict[str, str]]:
    """Return what is outdated and the steps, and the texts of the files that the first step writes, by path.

    ``text`` is that of the environment file, ``file`` and ``argument`` how users name it, ``library`` the installed
    version. Without AWS's answers the versions in the file are used as the deployed versions.
    """
    run = _Upgrade(environment, text, argument=argument, asked=asked, ages=ages, locks=locks, now=now)
    things = tuple(run.things(library))
    steps: list[UpgradeStep] = []
    writes: list[dict[str, str]] = []
    refusals: list[Refusal] = []
    try:
        for step, texts in run.steps():
            steps.append(step)
            writes.append({file if name == "" else name: each for name, each in texts.items()})
    except _StopError as stop:
        refusals.append(stop.refusal)
    if refusals:
        steps, writes = [], []
    first = writes[0] if writes else {}
    olds = {file: text, LOCK: locks.own[1] if locks.own else ""}
    told = Upgrade(
        environment=environment.name,
        file=file,
        verdict=_verdict(asked, things, steps, refusals, ages),
        things=things,
        steps=tuple(steps),
        diff="".join(_diff(name, olds[name], new) for name, new in first.items()),
        refusals=tuple(refusals),
        skipped=tuple(ages.skipped),
        notes=tuple(run.notes()),
    )
    return told, first


class _Upgrade:
    def __init__(
        self,
        environment: Environment,
        text: str,
        *,
        argument: str,
        asked: Asked,
        ages: Ages,
        locks: Locks,
        now: datetime,
    ) -> None:
        self._environment = environment
        self._text = text
        self._argument = argument
        self._asked = asked
        self._ages = ages
        self._locks = locks
        self._now = now
        self._stated = environment.eks.kubernetes_version
        self._stands = ages.kubernetes or self._stated
        self._addons = tuple(wanted_addons(environment))
        self._deploy = (f"hyperpod-cdk plan {self._argument}", f"hyperpod-cdk deploy {self._argument}")

    # what is old

    def things(self, library: str) -> Iterator[Aged]:
        """Yield a row for everything with a version, in the order in which it is upgraded."""
        yield Aged(
            what="hyperpod-cdk",
            stands=library,
            newest=None,
            is_old=None,
            says="the package index, which has the newest, was not asked",
        )
        yield self._kubernetes()
        for name in self._addons:
            yield self._addon(name)
        own, shipped = self._locks.own, self._locks.library[0]
        is_other = own is not None and own[0] != shipped
        yield Aged(
            what="dependency chart",
            stands=(own[0] if own else shipped)[:12],
            newest=shipped[:12],
            is_old=is_other,
            says=f"that of this hyperpod-cdk was read on {images.AS_OF}; AWS states no end of support",
        )
        for group in self._environment.hyperpod.instance_groups:
            yield self._image(group)

    def _kubernetes(self) -> Aged:
        newest = kubernetes.hyperpod_versions()[-1]
        state = kubernetes.support_state(self._stands, on=self._now.date())
        says = f"{state} (calendar of {kubernetes.AS_OF})" if state else f"not in the calendar of {kubernetes.AS_OF}"
        until = self._until()
        if until is not None and until >= self._now:
            says = f"{says}; EKS can roll it back by one minor version until {_minute(until)}"
        is_old: bool | None = kubernetes.is_newer(newest, self._stands)
        if self._ages.kubernetes is None and self._is_unread:
            says, is_old = f"{_OF_FILE}; {says}", None
        return Aged(what="Kubernetes", stands=self._stands, newest=newest, is_old=is_old, says=says)

    def _addon(self, name: str) -> Aged:
        pinned = self._environment.eks.addon_versions.get(name)
        stands = self._ages.addons.get(name) or pinned
        offer = self._ages.offers.get(name, {}).get(self._stands)
        default = offer.default if offer else None
        is_of_file = name not in self._ages.addons and self._is_unread
        if offer is None and stands is not None and stands == addon_rows.published(name, self._stands):
            says, is_old = f"fits Kubernetes {self._stands} (EKS user guide); it is unknown whether others do", None
        elif offer is None:
            says, is_old = f"it is unknown which versions fit Kubernetes {self._stands}", None
        elif stands is None:
            says, is_old = "its deployed version was not read" if is_of_file else "not installed yet", None
        elif stands not in offer.versions:
            says, is_old = f"EKS no longer has it for Kubernetes {self._stands}", True
        else:
            says = f"fits Kubernetes {_minors(self._fits(name, stands))}"
            is_old = _release(default) > _release(stands) if default else None
        if stands is not None and is_of_file:
            says, is_old = f"{_OF_FILE}; {says}", None
        return Aged(what=f"add-on {name}", stands=stands, newest=default, is_old=is_old, says=says)

    def _fits(self, name: str, version: str) -> list[str]:
        return sorted(
            (minor for minor, offer in self._ages.offers[name].items() if version in offer.versions),
            key=lambda minor: [int(part) for part in minor.split(".")],
        )

    def _image(self, group: InstanceGroup) -> Aged:
        what = f"AMI of group {group.name}"
        if group.image.ami_id:
            says = "your own, built on HyperPod's; no API shows whether it matches the cluster's Kubernetes version"
            return Aged(what=what, stands=group.image.ami_id, newest=None, is_old=None, says=says)
        software = (self._ages.groups or {}).get(group.name)
        stands = (software.release if software else None) or group.image.release_version
        newest = self._newest(group, self._stands)
        says = f"AWS supports {kubernetes.IMAGE_SUPPORT} (releases as of {kubernetes.AS_OF})"
        if self._is_behind(software):
            says = f"older than the control plane's upgrade; {says}"
            return Aged(what=what, stands=stands, newest=newest, is_old=True, says=says)
        is_old = _number(newest) > _number(stands) if newest and stands else None
        if stands is not None and software is None and self._is_unread:
            says, is_old = f"{_OF_FILE}; {says}", None
        return Aged(what=what, stands=stands, newest=newest, is_old=is_old, says=says)

    @property
    def _is_unread(self) -> bool:
        """Whether AWS was asked for the deployed versions and did not show all of them."""
        return self._ages.is_asked and self._ages.is_deployed is not False and bool(self._ages.skipped)

    def notes(self) -> Iterator[str]:
        """Yield notes on all steps."""
        if self._is_unread and self._ages.kubernetes is None:
            yield (
                f"The version of {self._environment.eks_cluster_name} could not be read: the steps start at that of the"
                " "
                "file."
            )
        yield from self._apart()
        if self._ages.is_deployed is False:
            yield (
                f"{self._environment.eks_cluster_name} is not deployed: the versions in the file are used "
                "as the deployed versions."
            )
        if self._environment.hyperpod.restricted_instance_groups and (self._asked.ami or self._asked.kubernetes):
            yield (
                "Restricted groups are left out: AWS does not document whether UpdateClusterSoftware accepts their"
                " names."
            )

    def _apart(self) -> Iterator[str]:
        """Say what the next deployment does if the version of the file differs from the deployed one."""
        stands, asked = self._ages.kubernetes, self._asked.kubernetes
        if stands is None or stands == self._stated or self._environment.eks.existing is not None:
            return
        said = f"eks.kubernetes_version is {self._stated}, and {self._environment.eks_cluster_name} runs {stands}"
        if kubernetes.is_newer(stands, self._stated):
            if asked is None:
                yield f'{said}: set it to "{stands}" before the next deployment, which rolls no control plane back.'
        elif asked is None or kubernetes.is_newer(self._stated, asked):
            yield f"{said}: the next deployment of the file upgrades it."

    # the steps

    def steps(self) -> Iterator[tuple[UpgradeStep, dict[str, str]]]:
        """Yield each step with the files that it writes; the environment file has an empty name. Raises _StopError."""
        if self._asked.library:
            yield self._library(), {}
        if self._asked.kubernetes is not None:
            yield from self._to(self._asked.kubernetes)
        elif self._asked.addons:
            yield from self._in_file(UpgradeKind.ADDONS, "add-ons", self._pins(self._stands, newest=True))
        if self._asked.chart:
            yield from self._chart()
        # each new minor version includes a new AMI
        if self._asked.ami and self._asked.kubernetes in {None, self._stands}:
            behind = [] if self._asked.kubernetes else self._behind()
            yield from self._software(self._stands, behind, is_new_minor=True)
            others = [each for each in self._environment.hyperpod.instance_groups if each not in self._behind()]
            yield from self._software(self._stands, others, is_new_minor=False)

    def _library(self) -> UpgradeStep:
        return UpgradeStep(
            kind=UpgradeKind.LIBRARY,
            title="hyperpod-cdk: review the newest version before you install it",
            commands=(
                "python -m venv ../next",
                "../next/bin/pip install 'hyperpod-cdk[node]'",
                f"../next/bin/hyperpod-cdk review {self._argument} --base .venv --head ../next",
            ),
            interrupts="nothing; the review says what the next deployment with it would interrupt",
            back="the previous version in the project's lock file",
        )

    def _to(self, target: str) -> Iterator[tuple[UpgradeStep, dict[str, str]]]:
        groups = self._environment.hyperpod.instance_groups
        if self._environment.eks.existing is not None:
            raise _StopError(
                f"{self._environment.eks_cluster_name} is an existing cluster: only its owner changes its version.",
                "Have its owner upgrade it one minor version, set eks.kubernetes_version to that, and deploy.",
            )
        if kubernetes.is_newer(self._stands, target):
            raise _StopError(
                f"{self._environment.eks_cluster_name} runs Kubernetes {self._stands}, and {target} is older: a file"
                " with an older version rolls no control plane back.",
                self._way_back(target),
            )
        if kubernetes.is_newer(self._stands, self._stated):
            raise _StopError(
                f"eks.kubernetes_version is {self._stated}, and {self._environment.eks_cluster_name} runs"
                f" {self._stands}: the file is older than the deployed version.",
                f'Set eks.kubernetes_version: "{self._stands}", deploy, and upgrade then.',
            )
        if self._ages.is_deployed is False:
            yield from self._in_file(
                UpgradeKind.KUBERNETES,
                f"Kubernetes {target}",
                {_VERSION: target, **self._pins(target, newest=self._asked.addons)},
            )
            return
        yield from self._software(self._stands, self._behind(), is_new_minor=True)
        if self._stands == target and self._asked.addons:
            yield from self._in_file(UpgradeKind.ADDONS, "add-ons", self._pins(self._stands, newest=True))
        before = self._stands
        for minor in kubernetes.minors_to(target, self._stands):
            problem = kubernetes.kubectl_problem(minor, key="--kubernetes")
            if problem is not None:
                raise _StopError(f"Kubernetes {minor} {problem}.", "Install that package, then upgrade.")
            changes = {_VERSION: minor, **self._pins(minor, newest=self._asked.addons)}
            title = f"Kubernetes {before} -> {minor}, with compatible add-ons"
            yield from self._in_file(UpgradeKind.KUBERNETES, title, changes, back=self._rollback(before))
            yield from self._software(minor, groups, is_new_minor=True)
            before = minor

    def _behind(self) -> list[InstanceGroup]:
        groups = self._environment.hyperpod.instance_groups
        return [each for each in groups if self._is_behind((self._ages.groups or {}).get(each.name))]

    def _rollback(self, to: str) -> str:
        return (
            f"nodes and add-ons first, then aws eks update-cluster-version --name {self._environment.eks_cluster_name}"
            f" --kubernetes-version {to}; neither the older file nor a stack's rollback does it"
        )

    def _until(self) -> datetime | None:
        """Return until when EKS can roll the control plane back, counted from the end of its upgrade: a lower bound.

        None if it was not upgraded, or that is unknown.
        """
        upgraded = self._ages.upgraded
        return None if upgraded is None else upgraded + timedelta(days=kubernetes.ROLLBACK_DAYS)

    def _way_back(self, target: str) -> str:
        """Say how a control plane gets to an older version, if EKS rolls it back (user guide, rollback-cluster)."""
        elsewhere = f"create a second environment with {target}, and move the workloads to it"
        if len(kubernetes.minors_to(self._stands, target)) != 1:
            return f"EKS rolls a control plane back by only one minor version; {elsewhere}."
        if kubernetes.is_unsupported(target, on=self._now.date()):
            return f"Stay on {self._stands}: {kubernetes.support_state(target, on=self._now.date())}."
        until = self._until()
        if until is None and self._ages.are_updates_read:
            return f"EKS rolls back only an upgrade, once, and there was none to {self._stands}; {elsewhere}."
        if until is not None and until < self._now:
            days = f"{kubernetes.ROLLBACK_DAYS} days after its upgrade"
            return f"EKS could roll it back until {_minute(until)}, {days}; {elsewhere}."
        when = f"Until {_minute(until)}" if until else f"Within {kubernetes.ROLLBACK_DAYS} days of its upgrade"
        return f"{when} EKS can roll it back by one minor version: {self._rollback(target)}"

    def _pins(self, minor: str, *, newest: bool) -> dict[DataPath, str]:
        """Return the add-on versions to write for a minor version: for those that do not fit, or all with newer
        ones."""
        pins: dict[DataPath, str] = {}
        for name in self._addons:
            offers = self._ages.offers.get(name)
            pinned = self._pinned(name)
            # an earlier step may already have written it
            current = pinned or self._ages.addons.get(name)
            if offers is None:
                pins |= self._blind(name, pinned, minor)
                continue
            offer = offers.get(minor)
            if offer is None or offer.default is None:
                raise _StopError(
                    f"EKS has no version of the add-on {name} for Kubernetes {minor} in {self._environment.region}.",
                    "Stay on a version that has it, or remove what needs it from the file"
                    f" ({wanted_addons(self._environment)[name]}).",
                )
            if current is None:
                continue
            if current not in offer.versions or (newest and _release(offer.default) > _release(current)):
                self._check_way(name, current, offer.default)
                pins[*_PINS, name] = offer.default
        return pins

    def _pinned(self, name: str) -> str | None:
        found = _at(read_source(self._text, "").data, (*_PINS, name))
        return found if isinstance(found, str) else None

    def _is_deployed(self) -> bool:
        """Whether the add-ons are deployed in the versions of the file."""
        return all(self._pinned(name) in {None, stands} for name, stands in self._ages.addons.items())

    def _blind(self, name: str, pinned: str | None, minor: str) -> dict[DataPath, str]:
        """Return the version to write if AWS does not show which fit: one of its user guide, if not older."""
        named = addon_rows.published(name, minor)
        if pinned is None or pinned == named:
            return {}
        if named is not None and _release(named) > _release(pinned):
            return {(*_PINS, name): named}
        raise _StopError(
            f"eks.addon_versions.{name} is {pinned}, and it is unknown whether it fits Kubernetes {minor}: AWS was"
            " not asked, or did not answer.",
            f"Run it with credentials that allow eks:DescribeAddonVersions; or run 'aws eks describe-addon-versions"
            f" --addon-name {name} --kubernetes-version {minor}' and set it by hand.",
        )

    def _check_way(self, name: str, stands: str, wanted: str) -> None:
        problem = governance.update_problem(stands, wanted) if name == addon_rows.TASK_GOVERNANCE else None
        if problem is not None:
            raise _StopError(
                f"eks.addon_versions.{name} {problem}.",
                f"Set eks.addon_versions.{name} to a release between them, deploy, and then upgrade.",
            )

    def _in_file(
        self, kind: UpgradeKind, title: str, changes: Mapping[DataPath, str], *, back: str = _AGAIN
    ) -> Iterator[tuple[UpgradeStep, dict[str, str]]]:
        """Yield the step that writes values into the file as it is after the steps before, and deploys it."""
        edits = self._write(changes)
        if not edits and kind is not UpgradeKind.KUBERNETES and self._is_deployed():
            return
        step = UpgradeStep(
            kind=kind if edits else UpgradeKind.WAIT,
            title=title if edits else f"{title}: in the file and not deployed",
            edits=tuple(edits),
            commands=self._deploy,
            interrupts=_PODS if kind is UpgradeKind.ADDONS else f"the API server stays reachable; {_PODS}",
            back=f"only within {kubernetes.ROLLBACK_DAYS} days of the upgrade, and not after another one: {back}"
            if back != _AGAIN
            else back,
        )
        yield step, {"": self._text} if edits else {}

    def _write(self, changes: Mapping[DataPath, str]) -> list[Edit]:
        source = read_source(self._text, "")
        edits: list[Edit] = []
        text = self._text
        for path, value in changes.items():
            before = _at(source.data, path)
            if before == value:
                continue
            try:
                text = with_value(text, path, value)
            except EditError as error:
                raise _StopError(f"{error}.", "Write it so, and upgrade then.") from None
            edits.append(
                Edit(
                    path=render_path(path),
                    line=source.line_of(path),
                    before=before if isinstance(before, str) else None,
                    after=value,
                )
            )
        self._text = text
        return edits

    def _chart(self) -> Iterator[tuple[UpgradeStep, dict[str, str]]]:
        own, (commit, text) = self._locks.own, self._locks.library
        if own is None or own[0] == commit:
            return
        step = UpgradeStep(
            kind=UpgradeKind.CHART,
            title=f"dependency chart {own[0][:12]} -> {commit[:12]}, which this hyperpod-cdk was tested with",
            commands=("hyperpod-cdk charts pull", *self._deploy),
            interrupts="pods of the chart that change restart: device plugins, health agents, operators; jobs stay",
            back=f"the previous lock in {LOCK}, charts pull, and deploy",
        )
        yield step, {LOCK: text}

    # the software of nodes

    def _software(
        self, minor: str, groups: Sequence[InstanceGroup], *, is_new_minor: bool
    ) -> Iterator[tuple[UpgradeStep, dict[str, str]]]:
        for group in groups:
            index = self._environment.hyperpod.instance_groups.index(group)
            found = self._group_step(index, group, minor, is_new_minor=is_new_minor)
            if found is not None:
                yield found

    def _group_step(
        self, index: int, group: InstanceGroup, minor: str, *, is_new_minor: bool
    ) -> tuple[UpgradeStep, dict[str, str]] | None:
        path: DataPath = ("hyperpod", "instance_groups", index, "image", "release_version")
        stated = _at(read_source(self._text, "").data, path)
        pinned = stated if isinstance(stated, str) else None
        newest = self._newest(group, minor)
        software = (self._ages.groups or {}).get(group.name)
        if group.image.ami_id:
            return (self._own_ami(group, minor), {}) if is_new_minor else None
        edits: list[Edit] = []
        if pinned and newest and self._is_to_change(group, pinned, newest, minor):
            edits = self._write({path: newest})
        elif not is_new_minor and self._is_newest(software, pinned, newest):
            return None
        # a release that an earlier step has written is deployed by then
        is_deployed = software is None or pinned in {None, software.release} or pinned != group.image.release_version
        title = f"AMI of group {group.name} for Kubernetes {minor}"
        commands = self._deploy if edits or not is_deployed else (self._command(group, pinned),)
        step = UpgradeStep(
            kind=UpgradeKind.AMI if edits or is_deployed else UpgradeKind.WAIT,
            title=f"{title}: {pinned} -> {newest}" if edits else title,
            edits=tuple(edits),
            first=(self._drain(group),),
            commands=commands,
            interrupts=_NODES,
            back=_AMI_BACK,
        )
        return step, {"": self._text} if edits else {}

    @staticmethod
    def _is_newest(software: Software | None, pinned: str | None, newest: str | None) -> bool:
        if software is None or software.release is None:
            return pinned is not None
        return software.release == (pinned or newest)

    def _is_to_change(self, group: InstanceGroup, pinned: str, newest: str, minor: str) -> bool:
        architecture = self._architecture(group)
        is_of_others = architecture is not None and kubernetes.is_image_of_others(pinned, minor, architecture)
        return _number(newest) > _number(pinned) or is_of_others

    def _own_ami(self, group: InstanceGroup, minor: str) -> UpgradeStep:
        return UpgradeStep(
            kind=UpgradeKind.AMI,
            title=f"AMI of group {group.name} for Kubernetes {minor}: your own",
            first=(
                f"Build it on HyperPod's AMI for Kubernetes {minor} and set image.ami_id of {group.name}.",
                self._drain(group),
            ),
            commands=self._deploy,
            interrupts=_NODES,
            back="set the previous AMI and deploy, which interrupts the nodes again",
        )

    def _drain(self, group: InstanceGroup) -> str:
        select = f"{scheduling.INSTANCE_GROUP_LABEL}={group.name}"
        return (
            f"Let the jobs on group {group.name} write a checkpoint and end them, or: kubectl drain -l {select}"
            " --ignore-daemonsets --delete-emptydir-data; afterwards: kubectl uncordon"
            f" -l {select}."
        )

    def _command(self, group: InstanceGroup, pinned: str | None) -> str:
        name = f"InstanceGroupName={group.name}"
        groups = f"{name},ImageReleaseVersion={pinned}" if pinned else name
        cluster = self._environment.hyperpod_cluster_name
        return (
            f"aws sagemaker update-cluster-software --region {self._environment.region} --cluster-name {cluster}"
            f" --instance-groups {groups}"
        )

    def _newest(self, group: InstanceGroup, minor: str) -> str | None:
        architecture = self._architecture(group)
        releases = kubernetes.image_releases(minor, architecture) if architecture else ()
        return releases[-1] if releases else None

    def _architecture(self, group: InstanceGroup) -> str | None:
        rows = [self._environment.instance_type(name) for name in group.all_instance_types]
        found = {row.architecture if row is not None else None for row in rows}
        return found.pop() if len(found) == 1 else None

    def _is_behind(self, software: Software | None) -> bool:
        """Whether the software of a group's nodes is older than the control plane's upgrade."""
        upgraded = self._ages.upgraded
        return bool(software and software.updated and upgraded and software.updated < upgraded)


def _minute(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def _at(data: object, path: DataPath) -> object:
    for step in path:
        if isinstance(step, int):
            data = data[step] if isinstance(data, list) and step < len(data) else None
        else:
            data = data.get(step) if isinstance(data, dict) else None
    return data


def _release(version: str | None) -> tuple[int, ...]:
    return addon_rows.release(version or "") or ()


def _minors(versions: Sequence[str]) -> str:
    """Return Kubernetes minor versions in order, consecutive ones as a range."""
    numbers = [int(each.partition(".")[2]) for each in versions]
    if len(versions) > 2 and numbers == list(range(numbers[0], numbers[0] + len(numbers))):
        return f"{versions[0]} to {versions[-1]}"
    return joined(versions)


def _number(version: str | None) -> tuple[int, ...]:
    return tuple(int(part) for part in (version or "").split(".") if part.isdecimal())


def _diff(name: str, old: str, new: str) -> str:
    lines = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), fromfile=f"a/{name}", tofile=f"b/{name}"
    )
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def _verdict(
    asked: Asked, things: Sequence[Aged], steps: Sequence[UpgradeStep], refusals: Sequence[Refusal], ages: Ages
) -> str:
    unread = f"; {count(len(ages.skipped), 'thing')} could not be read" if ages.is_asked and ages.skipped else ""
    if refusals:
        return "Refused; nothing is written."
    if asked.is_nothing:
        old = [each for each in things if each.is_old]
        unknown = sum(each.is_old is None for each in things)
        end = f", {unknown} unknown" if unknown else ""
        return f"{len(old)} outdated{end}{unread}."
    if not steps and unread:
        # a version that was not read is no proof of a deployment
        return f"No step is known{unread}."
    if not steps:
        return f"Nothing to do: the requested versions are {'deployed' if ages.is_asked else 'in the file'}."
    return f"{count(len(steps), 'step')}; the next one: {steps[0].title}{unread}."
