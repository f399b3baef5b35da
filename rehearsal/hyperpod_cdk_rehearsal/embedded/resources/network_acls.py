"""AWS::EC2: network ACLs, their entries and their subnets."""

from __future__ import annotations

from hyperpod_cdk_rehearsal.embedded.resources._calls import call, ignoring, is_true, take
from hyperpod_cdk_rehearsal.embedded.resources._ec2 import client_of, retag_by_ec2, tag_specifications
from hyperpod_cdk_rehearsal.embedded.resources.registry import ResourceHandler, ResourceRequest, ResourceResult, handles


@handles("AWS::EC2::NetworkAcl")
class NetworkAcl(ResourceHandler):
    """A network ACL. `Ref` is its id."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        acl = call(
            client_of(request),
            "create_network_acl",
            take(request.properties, "VpcId") | tag_specifications(request, "network-acl"),
        )["NetworkAcl"]
        return self._result(acl["NetworkAclId"])

    def update(self, request: ResourceRequest) -> ResourceResult:
        retag_by_ec2(request)
        return self._result(request.existing_id)

    def delete(self, request: ResourceRequest) -> None:
        with ignoring("InvalidNetworkAclID.NotFound"):
            client_of(request).delete_network_acl(NetworkAclId=request.existing_id)

    @staticmethod
    def _result(acl_id: str) -> ResourceResult:
        return ResourceResult(acl_id, {"Id": acl_id})


@handles("AWS::EC2::NetworkAclEntry")
class NetworkAclEntry(ResourceHandler):
    """An entry of a network ACL. `Ref` is CloudFormation's own name for it."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        self._write(request, "create_network_acl_entry")
        entry_id = request.generated_name(max_length=255)
        return ResourceResult(entry_id, {"Id": entry_id})

    def update(self, request: ResourceRequest) -> ResourceResult:
        self._write(request, "replace_network_acl_entry")
        return ResourceResult(request.existing_id, {"Id": request.existing_id})

    def delete(self, request: ResourceRequest) -> None:
        with ignoring("InvalidNetworkAclEntry.NotFound", "InvalidNetworkAclID.NotFound"):
            if not self._stands(request):
                return
            call(
                client_of(request),
                "delete_network_acl_entry",
                take(request.properties, "NetworkAclId", "RuleNumber")
                | {"Egress": request.properties.get("Egress", False)},
            )

    @staticmethod
    def _stands(request: ResourceRequest) -> bool:
        properties = request.properties
        acls = client_of(request).describe_network_acls(NetworkAclIds=[properties["NetworkAclId"]])["NetworkAcls"]
        wanted = (int(properties["RuleNumber"]), is_true(properties.get("Egress", False)))
        return any((row["RuleNumber"], row["Egress"]) == wanted for acl in acls for row in acl["Entries"])

    @staticmethod
    def _write(request: ResourceRequest, method: str) -> None:
        call(
            client_of(request),
            method,
            take(
                request.properties,
                "NetworkAclId",
                "RuleNumber",
                "Protocol",
                "RuleAction",
                "CidrBlock",
                "Ipv6CidrBlock",
                "PortRange",
                IcmpTypeCode="Icmp",
            )
            | {"Egress": request.properties.get("Egress", False)},
        )


@handles("AWS::EC2::SubnetNetworkAclAssociation")
class SubnetNetworkAclAssociation(ResourceHandler):
    """A subnet's network ACL. `Ref` is the association's id."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        association = self._point(request, request.properties["NetworkAclId"])
        return ResourceResult(association, {"AssociationId": association})

    def delete(self, request: ResourceRequest) -> None:
        client = client_of(request)
        with ignoring("InvalidSubnetID.NotFound", "InvalidNetworkAclID.NotFound", "InvalidAssociationID.NotFound"):
            subnet = client.describe_subnets(SubnetIds=[request.properties["SubnetId"]])["Subnets"][0]
            default = client.describe_network_acls(
                Filters=[
                    {"Name": "vpc-id", "Values": [subnet["VpcId"]]},
                    {"Name": "default", "Values": ["true"]},
                ]
            )["NetworkAcls"][0]
            self._point(request, default["NetworkAclId"])

    @staticmethod
    def _point(request: ResourceRequest, acl_id: str) -> str:
        client, subnet_id = client_of(request), request.properties["SubnetId"]
        acls = client.describe_network_acls(Filters=[{"Name": "association.subnet-id", "Values": [subnet_id]}])[
            "NetworkAcls"
        ]
        current = next(
            association["NetworkAclAssociationId"]
            for acl in acls
            for association in acl["Associations"]
            if association["SubnetId"] == subnet_id
        )
        answer = client.replace_network_acl_association(AssociationId=current, NetworkAclId=acl_id)
        return str(answer["NewAssociationId"])
