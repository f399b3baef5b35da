"""The policy pack for CDK: checks finished templates with AWS's own engine, and with rules for HyperPod."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from itertools import groupby
from pathlib import Path

import aws_cdk as cdk
import jsii

from hyperpod_cdk.config.extensions import ExtensionError, active
from hyperpod_cdk.findings import Finding, Severity
from hyperpod_cdk.templates.assembly import Assembly, AssemblyError, Stack, parse_template
from hyperpod_cdk.templates.engine import validation_engine
from hyperpod_cdk.templates.rules import LEFT_OUT, RULES, Problem, Suppressions, problems

USAGE = 2
"""Exit code if an extension raised: nothing was judged."""


def check_templates(paths: Iterable[str | Path], *, region: str | None = None) -> list[Finding]:
    """Check templates that belong together (a cluster and the network that it imports) and return every error and
    warning.

    ``region`` is where they are deployed; without it the engine assumes us-east-1. Paths of findings are construct
    paths if the template has them (metadata ``aws:cdk:path``), else logical IDs. A rule that a resource lists in its
    own metadata, for cfn-lint (``ignore_checks``) or cdk-nag (``rules_to_suppress``), is not reported for it, nor is
    one that is acknowledged in CDK's metadata next to the template.
    """
    stacks = tuple(_stack(str(path), str(path), region) for path in paths)
    suppressions = Suppressions()
    return [
        _finding(problem)
        for problem in problems(Assembly(environment="", stacks=stacks))
        if suppressions.of(problem.stack, problem.resource, problem.rule) is None
    ]


@jsii.implements(cdk.IPolicyValidationPlugin)
class TemplateChecks:
    """CDK policy-validation plugin that runs ``check_templates`` on every template of an app.

    ``cdk.Validations.of(app).add_plugins(TemplateChecks())``, with CDK's built-in validation turned off
    (``cdk.App(builtin_cloud_formation_validation=False)``), which is an older version of the same engine and a hundred
    times slower. Errors fail the synthesis, warnings are printed. A finding is acknowledged with the ID that is printed
    with it, e.g. ``cdk.Validations.of(scope).acknowledge(cdk.Acknowledgment(id="hyperpod-cdk::cluster-tag",
    reason="..."))``.
    """

    @property
    def name(self) -> str:
        """The plugin's name in CDK's report."""
        return "hyperpod-cdk"

    @property
    def version(self) -> str:
        """The version of the engine, whose schemas decide most findings."""
        return version("cloudformation-validate")

    @property
    def rule_ids(self) -> list[str]:
        """Every rule that can have findings: this pack's own, then the engine's."""
        added = [rule.id for extension in active() for rule in extension.rules]
        return [*RULES, *added, *(rule.id for rule in validation_engine().list_rules() if rule.id not in LEFT_OUT)]

    def validate(self, context: cdk.IPolicyValidationContext) -> cdk.PolicyValidationPluginReport:
        """Check the templates of an app or stage, each for the Region of its stack.

        ``context``: CDK's context of plugins; it names the templates.
        """
        try:
            found = [problem for assembly in _assemblies(context) for problem in problems(assembly)]
        except ExtensionError as error:
            # called by JavaScript, which would hide the origin of an error
            sys.stderr.write(f"{error}\n")
            sys.stderr.flush()
            os._exit(USAGE)
        return cdk.PolicyValidationPluginReport(
            success=not any(problem.severity is Severity.ERROR for problem in found),
            violations=[_violation(problem) for problem in found],
        )


def _assemblies(context: cdk.IPolicyValidationContext) -> Iterator[Assembly]:
    """Return the templates of each stage: no stage refers to resources of another."""
    # of CDK's own context jsii would read the list twice, each time with four calls to Node.js for each stack
    is_cdks = hasattr(context, "__jsii_ref__")
    templates = jsii.get(context, "stackTemplates") if is_cdks else context.stack_templates
    read = [(each.template_path, each.stack_construct_path, each.region) for each in templates]
    read.sort(key=lambda each: str(Path(each[0]).parent))
    for _, stage in groupby(read, key=lambda each: Path(each[0]).parent):
        # CDK's name for a stack without a name
        stacks = (_stack(path, construct.replace("/", "-"), region) for path, construct, region in stage)
        yield Assembly(environment="", stacks=tuple(stacks))


def _stack(path: str, name: str, region: str | None) -> Stack:
    try:
        template = parse_template(Path(path).read_text(encoding="utf-8"), path)
    except AssemblyError:
        # the engine reports what is wrong with it, and where
        template = {}
    return Stack(name=name, template=template, region=region or "", file=Path(path))


def _finding(problem: Problem) -> Finding:
    resource = problem.resource
    construct = (resource.construct_path if resource else "") or problem.logical_id
    return Finding(
        severity=problem.severity,
        message=problem.message,
        path=" ".join(part for part in (construct, problem.place) if part),
        file=str(problem.stack.file),
        line=problem.line,
        rule=problem.rule,
    )


def _violation(problem: Problem) -> cdk.PolicyViolation:
    return cdk.PolicyViolation(
        rule_name=problem.rule,
        description=problem.message,
        severity=problem.severity.value,
        violating_resources=[
            cdk.PolicyViolatingResource(
                resource_logical_id=problem.logical_id,
                template_path=str(problem.stack.file),
                locations=[problem.place] if problem.place else [],
            )
        ],
    )


__all__ = ["LEFT_OUT", "RULES", "TemplateChecks", "check_templates"]
