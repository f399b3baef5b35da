"""Every resource type that is compared with AWS; all other types are reported as not compared."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from hyperpod_cdk.living import eks, functions, hyperpod, identity, network, notifying, objects, storage, watching
from hyperpod_cdk.living.look import Kind

KINDS: Final[Mapping[str, Kind]] = {
    **hyperpod.KINDS,
    **eks.KINDS,
    **objects.KINDS,
    **storage.KINDS,
    **network.KINDS,
    **identity.KINDS,
    **watching.KINDS,
    **functions.KINDS,
    **notifying.KINDS,
}
"""How each is compared, by CloudFormation's name of the type."""

_PARTS: Final = frozenset(
    {
        "AWS::EC2::Route",
        "AWS::EC2::SecurityGroupEgress",
        "AWS::EC2::SecurityGroupIngress",
        "AWS::EC2::SubnetRouteTableAssociation",
        "AWS::EC2::VPCCidrBlock",
        "AWS::EC2::VPCGatewayAttachment",
        "AWS::IAM::Policy",
        "AWS::IAM::RolePolicy",
        "AWS::Lambda::Permission",
        "AWS::SNS::Subscription",
    }
)
"""Types that are compared as a part of another resource: a rule with its group, an inline policy with its role."""

_STATELESS: Final = frozenset(
    {
        "AWS::CDK::Metadata",
        "AWS::CloudFormation::WaitConditionHandle",
        "Custom::AWSCDK-EKS-KubernetesObjectValue",
        "Custom::HyperPodAutoscaler",
        "Custom::HyperPodNodeCounts",
        "Custom::HyperPodNodesReady",
        "Custom::HyperPodQuotaGate",
    }
)
"""Types that only wait, read or check during a deployment: nothing of them exists in AWS."""


def is_left_out(resource_type: str, kinds: Collection[str] = KINDS.keys()) -> bool:
    """Return whether a type exists in AWS and is compared neither alone nor as a part of another resource."""
    return resource_type not in {*kinds, *_PARTS, *_STATELESS}
