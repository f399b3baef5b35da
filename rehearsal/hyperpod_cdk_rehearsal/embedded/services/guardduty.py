"""GuardDuty's automated agent: the endpoint and the security group that it creates in a VPC and never deletes."""

from __future__ import annotations

from collections.abc import Sequence

from hyperpod_cdk_rehearsal.embedded.context import Context

_TAGS = [{"Key": "GuardDutyManaged", "Value": "true"}]


def put_agent_endpoint(context: Context, vpc_id: str, subnet_ids: Sequence[str]) -> None:
    """Make the endpoint ``guardduty-data`` with its group, unless the VPC has one, which GuardDuty then uses.

    GuardDuty user guide, "How Runtime Monitoring works with Amazon EKS clusters" and "Using infrastructure as code with
    GuardDuty automated agents"; it keeps both until Runtime Monitoring is turned off.
    """
    ec2, service = context.client("ec2"), f"com.amazonaws.{context.region}.guardduty-data"
    here = [{"Name": "vpc-id", "Values": [vpc_id]}]
    standing = ec2.describe_vpc_endpoints(Filters=here)["VpcEndpoints"]
    if any(each["ServiceName"] == service and each["State"].lower() != "deleted" for each in standing):
        return
    vpc = ec2.describe_vpcs(VpcIds=[vpc_id])["Vpcs"][0]
    group_id = ec2.create_security_group(
        GroupName=f"GuardDutyManagedSecurityGroup-{vpc_id}",
        Description="Associated with VPC endpoint guardduty-data and tagged as GuardDutyManaged",
        VpcId=vpc_id,
        TagSpecifications=[{"ResourceType": "security-group", "Tags": _TAGS}],
    )["GroupId"]
    https = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "IpRanges": [{"CidrIp": vpc["CidrBlock"]}]}
    ec2.authorize_security_group_ingress(GroupId=group_id, IpPermissions=[https])
    ec2.create_vpc_endpoint(
        VpcId=vpc_id,
        ServiceName=service,
        VpcEndpointType="Interface",
        SubnetIds=list(subnet_ids),
        SecurityGroupIds=[group_id],
        PrivateDnsEnabled=True,
        TagSpecifications=[{"ResourceType": "vpc-endpoint", "Tags": _TAGS}],
    )
