"""The policy pack: CloudFormation's own engine and rules for HyperPod that no schema has, on plain templates.

Works on any template, of this project or of others: what a template does not show is not judged. Does not use aws_cdk
or constructs; ``template_checks`` creates a plugin for CDK from it, ``review.policy`` a part of a report.
"""

from __future__ import annotations

from hyperpod_cdk.templates.rules.engine import DATED, LEFT_OUT
from hyperpod_cdk.templates.rules.pack import RULES, TABLE, problems
from hyperpod_cdk.templates.rules.rule import Context, Problem, Rule, Spot
from hyperpod_cdk.templates.rules.suppressions import WITHOUT_REASON, Suppression, Suppressions

__all__ = [
    "DATED",
    "LEFT_OUT",
    "RULES",
    "TABLE",
    "WITHOUT_REASON",
    "Context",
    "Problem",
    "Rule",
    "Spot",
    "Suppression",
    "Suppressions",
    "problems",
]
