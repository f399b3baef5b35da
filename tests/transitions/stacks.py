"""Small assemblies for tests: the exports and imports of each stack, and its other resources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hyperpod_cdk.review.model import Side
from hyperpod_cdk.templates.assembly import Assembly, Stack
from hyperpod_cdk.transitions.model import Plan
from hyperpod_cdk.transitions.plan import plan

REGION = "us-east-1"
ACCOUNT = "111122223333"
BASE = Side(label="deployed")
HEAD = Side(label="working tree", environment_file="environments/dev.yaml")


def stack(
    name: str,
    *,
    exports: Sequence[str] = (),
    imports: Sequence[Any] = (),
    after: Sequence[str] = (),
    resources: Mapping[str, Any] | None = None,
    protected: bool = False,
) -> Stack:
    """Return a stack dev-NAME; an export is a security group of its own, one policy names all imports."""
    made: dict[str, Any] = {
        each: {"Type": "AWS::EC2::SecurityGroup", "Properties": {"GroupDescription": each}} for each in exports
    }
    if imports:
        value = {"Fn::Join": ["", [{"Fn::ImportValue": each} for each in imports]]}
        made["Reader"] = {"Type": "AWS::IAM::ManagedPolicy", "Properties": {"Description": value}}
    return Stack(
        name=f"dev-{name}",
        template={
            "Resources": {"Always": {"Type": "AWS::SQS::Queue"}, **made, **(resources or {})},
            "Outputs": {each: {"Value": {"Ref": each}, "Export": {"Name": each}} for each in exports},
        },
        account=ACCOUNT,
        region=REGION,
        dependencies=tuple(f"dev-{each}" for each in after),
        termination_protection=protected,
        shown=f"dev/{name}",
    )


def assembly(*stacks: Stack) -> Assembly:
    """Return an environment dev of stacks in the order of their deployment."""
    return Assembly(environment="dev", stacks=stacks)


def planned(base: Assembly, head: Assembly, **more: Any) -> Plan:
    """Plan from one to the other, AWS having been asked who imports."""
    return plan(base, head, base_side=BASE, head_side=HEAD, **{"importers": {}, **more})


def steps(found: Plan) -> list[tuple[str, ...]]:
    """Return the steps as short as they can be told: the action, what is selected, the stacks."""
    return [(each.action, *each.stacks, *(["exclusively"] if each.exclusively else [])) for each in found.steps]
