"""What a reader calls resource types."""

from __future__ import annotations

from hyperpod_cdk.review.nouns import count, noun
from tests.support.tables import row_by_row


@row_by_row(
    "resource_type, said",
    [
        ("AWS::EC2::RouteTable", "route table"),
        ("AWS::EC2::SecurityGroupIngress", "security group rule"),
        ("AWS::EC2::NatGateway", "NAT gateway"),
        ("AWS::EC2::VPCGatewayAttachment", "VPC gateway attachment"),
        ("AWS::EC2::DHCPOptions", "DHCP option set"),
        ("AWS::EKS::Addon", "EKS add-on"),
        ("AWS::Lambda::LayerVersion", "layer version"),
        ("Custom::AWSCDK-EKS-KubernetesResource", "custom resource"),
        ("Whatever", "whatever"),
        ("", "resource"),
    ],
)
def test_nouns(resource_type: str, said: str) -> None:
    assert noun(resource_type) == said


@row_by_row(
    "number, name, said",
    [
        (0, "file system", "0 file systems"),
        (1, "file system", "1 file system"),
        (2, "file system", "2 file systems"),
        (1, "IAM policy", "1 IAM policy"),
        (2, "IAM policy", "2 IAM policies"),
        (2, "internet gateway", "2 internet gateways"),
        (2, "Elastic IP address", "2 Elastic IP addresses"),
        (2, "event bus", "2 event buses"),
        (2, "alias", "2 aliases"),
        (2, "mailbox", "2 mailboxes"),
        (2, "refresh", "2 refreshes"),
        (2, "batch", "2 batches"),
        (2, "account settings", "2 account settings"),
    ],
)
def test_count(number: int, name: str, said: str) -> None:
    assert count(number, name) == said
