"""The policy pack's findings on both sides: which are new, which existed before, which are gone, and which are
suppressed.

An assembly of ``cdk synth`` has the report of its validation, cdk-nag included; without it, the pack runs over the
templates.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, cast

from hyperpod_cdk.file_reading import read_text
from hyperpod_cdk.findings import Severity
from hyperpod_cdk.review.model import Policy, PolicyFinding
from hyperpod_cdk.review.nag import NagError, NagViolation, nag_violations
from hyperpod_cdk.templates.assembly import EMPTY, Assembly, Resource, Stack
from hyperpod_cdk.templates.rules import WITHOUT_REASON, Suppressions, problems
from hyperpod_cdk.templates.rules.engine import engine_problems
from hyperpod_cdk.templates.rules.engine_process import MANY, EngineError, problems_apart

Nag = Callable[[Mapping[str, Any]], Sequence[NagViolation]]

_MOST_BYTES: Final = 64 * 2**20
_REPORT: Final = "validation-report.json"
_NAG: Final = re.compile(r"(?:AwsSolutions|HIPAA\.Security|NIST\.800\.53\.R[45]|PCI\.DSS\.321|Serverless)-")
_ITEM: Final = re.compile(r"\b(InstanceGroups|RestrictedInstanceGroups)\.(\d+)")
_INDEX: Final = re.compile(r"\.\d+(?=\.|$)")
_NESTED: Final = "AWS::CloudFormation::Stack"


def policy(base: Assembly, head: Assembly, *, nag: Nag = nag_violations) -> Policy:
    """Compare the findings of two sides; either may be ``EMPTY``. ``nag`` runs cdk-nag on a single template.

    A finding stays the same while its rule, its resource and its place stay, whatever its message is. If cdk-nag ran
    only on the head, its findings count as existing: it is unknown since when.
    """
    # cdk-nag runs in a separate process for each side, and takes most of the time
    with ThreadPoolExecutor(2) as pool:
        looked = [pool.submit(_look, side, name, nag) for side, name in ((base, "base"), (head, "head"))]
        before, after = (each.result() for each in looked)
    skipped = [*before.skipped, *after.skipped]
    unknown_before = base is not EMPTY and bool(base.stacks) and after.has_nag and not before.has_nag
    if unknown_before and any(_NAG.match(each.rule) for each in after.found):
        skipped.append("cdk-nag was not run on the base: its findings in the head are shown as existing")
    findings: list[PolicyFinding] = []
    old, new = _by_identity(before.found), _by_identity(after.found)
    for identity in {**old, **new}:
        was, now = old.get(identity, []), new.get(identity, [])
        told = {each.message for each in was} & {each.message for each in now}
        # of findings whose message changed, as many are existing as there were before
        changed = [each for each in was if each.message not in told]
        for each in now:
            stood = each.message in told
            is_nags = unknown_before and _NAG.match(each.rule) is not None
            if not stood and not is_nags and changed:
                changed.pop()
                stood = True
            findings.append(each.finding("standing" if stood or is_nags else "new", stood=stood))
        findings += [each.finding("resolved") for each in changed]
    findings.sort(key=_order)
    return Policy(findings=tuple(findings), skipped=tuple(dict.fromkeys(skipped)))


@dataclass(frozen=True, kw_only=True)
class _Found:
    rule: str
    severity: Severity
    resource: str
    place: str
    message: str
    suppressed: str | None = None

    @property
    def identity(self) -> tuple[str, str, str]:
        """Return what stays the same when other items of a list are added or removed, or the message has another
        number."""
        return self.rule, self.resource, _INDEX.sub("", self.place)

    def finding(self, status: Literal["new", "standing", "resolved"], *, stood: bool = False) -> PolicyFinding:
        return PolicyFinding(
            rule=self.rule,
            severity=self.severity.value,
            resource=self.resource,
            message=f"{self.place}: {self.message}" if self.place else self.message,
            status=status,
            stood=stood,
            suppressed=self.suppressed,
        )


@dataclass
class _Side:
    found: list[_Found] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    has_nag: bool = False


def _by_identity(found: list[_Found]) -> dict[tuple[str, str, str], list[_Found]]:
    grouped: dict[tuple[str, str, str], list[_Found]] = defaultdict(list)
    for each in sorted(set(found), key=lambda each: (each.message, each.severity, each.suppressed or "")):
        grouped[each.identity].append(each)
    return grouped


_STATUSES: Final = ("new", "standing", "resolved")


def _order(finding: PolicyFinding) -> tuple[bool, int, bool, str, str, str]:
    """Order findings that are not suppressed first, then new ones, then errors."""
    return (
        finding.suppressed is not None,
        _STATUSES.index(finding.status),
        finding.severity != "error",
        finding.rule,
        finding.resource,
        finding.message,
    )


def _look(assembly: Assembly, name: str, nag: Nag) -> _Side:
    if not assembly.stacks:
        return _Side()
    suppressions = Suppressions()
    reports = _reports(assembly)
    side = _Side()
    for resource in assembly.of_type(_NESTED):
        side.skipped.append(f"{_label(resource.stack, resource)}: a nested stack, whose template is not checked")
    if reports is None:
        try:
            side.found += _of_pack(assembly, suppressions)
        except EngineError as error:
            side.skipped.append(
                f"the policy pack was not run on the {name}: AWS's template engine could not run: {error}"
            )
        _run_nag(assembly, name, side, suppressions, nag)
        return side
    side.found += _reported(assembly, reports)
    acknowledged = list(_acknowledged(assembly, suppressions))
    side.found += acknowledged
    side.has_nag = bool(acknowledged) or any(_NAG.match(str(each.get("ruleName"))) for each, _ in reports)
    if not side.has_nag:
        side.skipped.append(f"it is unknown whether cdk-nag was run on the {name}: its report has no finding of it")
    return side


def _of_pack(assembly: Assembly, suppressions: Suppressions) -> Iterator[_Found]:
    # a template without an environment is not the library's
    is_large = any(len(stack.resources) >= MANY for stack in assembly.stacks)
    engine = problems_apart if is_large else engine_problems
    for problem in problems(assembly, is_own=bool(assembly.environment), engine=engine):
        found = _Found(
            rule=problem.rule,
            severity=problem.severity,
            resource=_label(problem.stack.name, problem.resource),
            place=_place(problem.resource, problem.place),
            message=problem.message,
        )
        yield from _judged(found, problem.stack, problem.resource, suppressions)


def _judged(found: _Found, stack: Stack, resource: Resource | None, suppressions: Suppressions) -> Iterator[_Found]:
    """Return a finding with the reason for which it is suppressed; a missing reason is a finding itself."""
    known = suppressions.of(stack, resource, found.rule)
    if known is None:
        yield found
        return
    yield replace(found, suppressed=known.reason or "no reason given")
    if not known.reason:
        yield _Found(
            rule=WITHOUT_REASON,
            severity=Severity.WARNING,
            resource=found.resource,
            place=f"Metadata {found.rule}",
            message=f"must state why {found.rule} is suppressed; list it with its reason in "
            "Metadata.cdk_nag.rules_to_suppress",
        )


def _run_nag(assembly: Assembly, name: str, side: _Side, suppressions: Suppressions, nag: Nag) -> None:
    """Run cdk-nag on a single template; templates of an environment have the report of their synthesis."""
    (stack, *others) = assembly.stacks
    if others or assembly.environment or stack.file is None:
        side.skipped.append(
            f"cdk-nag was not run on the {name}: it runs in 'cdk synth', whose {_REPORT} is not next to these templates"
        )
        return
    try:
        violations = nag(stack.template)
    except NagError as error:
        side.skipped.append(f"cdk-nag was not run on {stack.name}: {error}")
        return
    side.has_nag = True
    for violation in violations:
        resource = stack.resources.get(violation.logical_id)
        if violation.is_undecided:
            side.skipped.append(
                f"{_label(stack.name, resource)}: {violation.rule} cannot judge it, because it expects a value where "
                "an expression is"
            )
            continue
        found = _Found(
            rule=violation.rule,
            # the engine reports what AWS refuses; for templates of others the remaining rules are advice
            severity=Severity.WARNING,
            resource=_label(stack.name, resource),
            place="",
            message=violation.message,
        )
        side.found += _judged(found, stack, resource, suppressions)


def _reports(assembly: Assembly) -> list[tuple[Mapping[str, Any], bool]] | None:
    """Return (violation, whether it is suppressed) of an assembly's validation; None if there is no report of it."""
    if assembly.folder is None:
        return None
    try:
        document = json.loads(read_text(assembly.folder / _REPORT, most=_MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    plugins = document.get("pluginReports") if isinstance(document, dict) else None
    if not isinstance(plugins, list):
        return None
    return [
        (violation, suppressed)
        for plugin in plugins
        if isinstance(plugin, dict)
        for key, suppressed in (("violations", False), ("suppressedViolations", True))
        for violation in plugin.get(key) or ()
        if isinstance(violation, dict)
    ]


def _reported(assembly: Assembly, reports: list[tuple[Mapping[str, Any], bool]]) -> Iterator[_Found]:
    by_file = {stack.file.name: stack for stack in assembly.stacks if stack.file}
    by_path = {resource.construct_path: resource for resource in assembly.resources() if resource.construct_path}
    for violation, suppressed in reports:
        for construct in violation.get("violatingConstructs") or ():
            located = construct.get("cloudFormationResource") or {}
            path = str(construct.get("constructPath") or "")
            stack = by_file.get(str(located.get("templatePath") or "").rpartition("/")[2])
            resource = stack.resources.get(str(located.get("logicalId"))) if stack else None
            resource = resource or by_path.get(path) or by_path.get(f"{path}/Resource")
            if stack is None and resource is None:
                # a finding of another environment: one report contains all environments of an assembly
                continue
            reason = str(violation.get("reason") or "no reason given") if suppressed else None
            places = [str(place) for place in located.get("propertyPaths") or () if place != "Properties"]
            for place in places or [""]:
                yield _Found(
                    rule=str(violation.get("ruleName") or ""),
                    severity=Severity.ERROR if violation.get("severity") == "error" else Severity.WARNING,
                    resource=_label(stack.name if stack else cast("Resource", resource).stack, resource),
                    place=_place(resource, place),
                    message=str(violation.get("description") or ""),
                    suppressed=reason,
                )


def _acknowledged(assembly: Assembly, suppressions: Suppressions) -> Iterator[_Found]:
    """Return the acknowledgments for cdk-nag, which omits such findings from the report."""
    for stack in assembly.stacks:
        for path, reasons in suppressions.acknowledged(stack).items():
            name = "/".join(path.split("/")[2:]) or stack.name
            for rule, reason in reasons.items():
                if _NAG.match(rule):
                    yield _Found(
                        rule=rule,
                        severity=Severity.ERROR,
                        resource=f"{stack.name} / {name}",
                        place="",
                        message="is acknowledged for this construct and its children",
                        suppressed=reason or "no reason given",
                    )


def _label(stack: str, resource: Resource | None) -> str:
    return f"{stack} / {resource.name}" if resource else stack


def _place(resource: Resource | None, place: str) -> str:
    """Return a place without ``Properties``, with instance groups by their names."""
    place = place.removeprefix("Properties.")
    if place == "Properties":
        return ""

    def named(found: re.Match[str]) -> str:
        groups = resource.properties.get(found[1]) if resource else None
        index = int(found[2])
        group = groups[index] if isinstance(groups, list) and index < len(groups) else None
        name = group.get("InstanceGroupName") if isinstance(group, dict) else None
        return f"{found[1]}[{name}]" if isinstance(name, str) else found[0]

    return _ITEM.sub(named, place)
