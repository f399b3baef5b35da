"""Short ways to write what changes, and to have it judged."""

from __future__ import annotations

from typing import Any

from hyperpod_cdk.review.model import (
    Access,
    BlastRadius,
    Capacity,
    Cost,
    Effect,
    Fabric,
    FabricSubject,
    LeftBehind,
    Policy,
    PolicyFinding,
    Proof,
    PropertyEffect,
    ResourceEffect,
    Verdict,
)
from hyperpod_cdk.review.verdict import verdict

CLUSTER = "AWS::SageMaker::Cluster"
LUSTRE = "AWS::FSx::FileSystem"
LAYER = "AWS::Lambda::LayerVersion"


def resource(effect: Effect, resource_type: str = "AWS::IAM::Role", **given: Any) -> ResourceEffect:
    values = {"stack": "dev-x", "logical_id": "Id", "name": "It", "stateful": False, "summary": "It happens."}
    return ResourceEffect(effect=effect, type=resource_type, **{**values, **given})


def changed(path: str, effect: Effect, **given: Any) -> PropertyEffect:
    return PropertyEffect(path=path, effect=effect, **{"reason": "Nodes go.", **given})


def judged(*resources: ResourceEffect, **sections: Any) -> Verdict:
    left_behind: tuple[LeftBehind, ...] = sections.pop("left_behind", ())
    empty = {
        "capacity": Capacity(),
        "cost": Cost(region="us-east-1", prices_as_of="2026-01-01"),
        "access": Access(),
        "fabric": Fabric(),
        "policy": Policy(),
        "word": "dev",
    }
    return verdict(BlastRadius(resources=resources, left_behind=left_behind), **{**empty, **sections})


def proven(kind: Any, **results: Any) -> FabricSubject:
    """Return a subject of which proofs are told by name."""
    proofs = tuple(Proof(name=name, result=result, detail="") for name, result in results.items())
    return FabricSubject(subject="a", kind=kind, stack="dev-x", logical_id="Id", proofs=proofs)


def finding(**given: Any) -> PolicyFinding:
    values = {"rule": "HP1", "severity": "error", "resource": "dev-x / It", "message": "It is open", "status": "new"}
    return PolicyFinding(**{**values, **given})


FINDINGS = [
    (finding(), True),
    (finding(status="standing"), True),
    (finding(status="resolved"), False),
    (finding(severity="warning"), False),
    (finding(suppressed="it is meant"), False),
]
"""Findings, and whether they are errors that stand."""
