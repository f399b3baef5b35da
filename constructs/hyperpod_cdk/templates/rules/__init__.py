"""The policy pack: CloudFormation's own engine and what no schema says about HyperPod, over plain templates.

Works on any template, one of this project or of somebody else: what a template does not show is not judged. Knows
neither aws_cdk nor a construct; ``template_checks`` makes a plugin for CDK of it, ``review.policy`` a part of a report.
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
