"""What any type says of accounts, addresses and public access outside of policies and security groups.

Policies, security groups, routes and clusters are read by what they mean (``statements``, ``reach``,
``cluster_access``). Every other type is read here by the words that all types share, so that no account, no address
block and no switch that opens something is added without a row.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, NamedTuple

from hyperpod_cdk.catalog.arns import arn_parts
from hyperpod_cdk.review.rights import images
from hyperpod_cdk.review.rights.reach import is_internet
from hyperpod_cdk.review.rights.statements import READ, looks_like_policy, text
from hyperpod_cdk.review.rights.views import PARAMETER, TOKEN, Place, View, place_of
from hyperpod_cdk.templates.assembly import Resource
from hyperpod_cdk.templates.difference import ResourceChange

_READ_AS_NETWORK: Final = frozenset(
    {
        *("AWS::EC2::SecurityGroup", "AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress"),
        *("AWS::EC2::Route", "AWS::EC2::NetworkAclEntry", "AWS::EKS::Cluster", "AWS::EC2::VPC", "AWS::EC2::Subnet"),
        *("AWS::EC2::VPCCidrBlock", "AWS::EC2::SubnetCidrBlock", "AWS::EC2::VPCPeeringConnection"),
    }
)
_READ_AS_ENTRIES: Final = frozenset(
    {
        "AWS::EC2::VPCPeeringConnection",
        "AWS::EKS::AccessEntry",
        "AWS::EKS::PodIdentityAssociation",
        "AWS::RAM::ResourceShare",
    }
)
_WAYS_IN: Final[dict[str, str]] = {
    "AWS::Budgets::BudgetsAction": "applies policies, or stops instances, by itself once a budget is passed",
    **dict.fromkeys(
        ("AWS::Chatbot::MicrosoftTeamsChannelConfiguration", "AWS::Chatbot::SlackChannelConfiguration"),
        "lets members of a chat channel read and run what its role and its guardrails permit, which permit all where "
        "none are stated",
    ),
    "AWS::CloudFormation::HookTypeConfig": "says what hooks look at, and whether they stop what they find",
    "AWS::CloudFormation::Stack": "makes what a template says that was not read",
    "AWS::CloudFormation::StackSet": "makes in other accounts or regions what a template says that was not read",
    "AWS::CodeStarConnections::Connection": "lets in anyone who pushes to what it is connected with",
    "AWS::Config::RemediationConfiguration": "runs a document of Systems Manager by itself where a rule fails",
    "AWS::DMS::ReplicationTask": "copies data to its target",
    "AWS::EC2::ClientVpnAuthorizationRule": "lets clients of a VPN reach a network",
    "AWS::EC2::ClientVpnEndpoint": "lets clients from the internet into a VPC",
    "AWS::EC2::EIPAssociation": "gives what it is associated with a public address",
    "AWS::EC2::InstanceConnectEndpoint": "lets anyone whom IAM permits connect to private addresses from the internet",
    "AWS::EC2::TrafficMirrorSession": "copies a network interface's traffic to its target",
    "AWS::EC2::TransitGatewayPeeringAttachment": "connects a transit gateway with another one",
    "AWS::EC2::TransitGatewayRoute": "opens a way between networks of a transit gateway, or drops what goes there",
    "AWS::EC2::TransitGatewayRouteTableAssociation": "opens ways between networks of a transit gateway",
    "AWS::EC2::TransitGatewayRouteTablePropagation": "opens ways between networks of a transit gateway",
    "AWS::EC2::VPCBlockPublicAccessExclusion": "takes a network out of the account's block of public access",
    "AWS::EC2::VPNConnection": "connects a network outside of AWS",
    "AWS::ECR::PullThroughCacheRule": "makes images of another registry look like the account's own",
    "AWS::ElastiCache::User": "signs in to caches with the rights of its access string",
    "AWS::ElastiCache::UserGroup": "says who signs in to caches",
    "AWS::IAM::OIDCProvider": "lets in whomever its issuer signs in, to every role that trusts it",
    "AWS::IAM::SAMLProvider": "lets in whomever its issuer signs in, to every role that trusts it",
    "AWS::IdentityStore::GroupMembership": "gives a user all that a group is assigned",
    "AWS::IoT::RoleAlias": "lets devices with a certificate take on a role",
    "AWS::LakeFormation::DataLakeSettings": "says who administers the data lake",
    "AWS::LakeFormation::Permissions": "gives rights in the data lake",
    "AWS::LakeFormation::PrincipalPermissions": "gives rights in the data lake",
    "AWS::MemoryDB::ACL": "says who signs in to clusters",
    "AWS::MemoryDB::User": "signs in to clusters with the rights of its access string",
    "AWS::OpenSearchServerless::AccessPolicy": "says who reads and writes the data of collections",
    "AWS::Route53Resolver::ResolverRule": "sends questions for names elsewhere",
    "AWS::Route53Resolver::ResolverRuleAssociation": "sends questions for names elsewhere",
    "AWS::S3::AccessGrant": "gives rights to objects that no policy states",
    "AWS::ServiceCatalog::LaunchRoleConstraint": "lets anyone who launches the product use a role",
    "AWS::ServiceCatalog::PortfolioPrincipalAssociation": "lets somebody launch the products of a portfolio",
    "AWS::Transfer::User": "lets anyone who has its keys read and write through its role",
}
"""Types that let somebody or something in, or out, by being there, with what they then do; no policy says so.

Source: each type's page in the CloudFormation template reference, its first paragraph.
"""

_WAYS_IN_BY: Final[dict[str, tuple[str, ...]]] = {
    "AWS::Chatbot::MicrosoftTeamsChannelConfiguration": (
        *("CustomizationResourceArns", "GuardrailPolicies", "IamRoleArn"),
        *("TeamId", "TeamsChannelId", "TeamsTenantId", "UserRoleRequired"),
    ),
    "AWS::Chatbot::SlackChannelConfiguration": (
        *("CustomizationResourceArns", "GuardrailPolicies", "IamRoleArn"),
        *("SlackChannelId", "SlackWorkspaceId", "UserRoleRequired"),
    ),
}
"""Of some of these types, the properties that say who gets in and to what; the others change nothing of that."""

_KEYS_OF_LOGINS: Final = ("Ec2SshKey", "KeyName", "PublicKey", "PublicKeys", "PublicKeyMaterial", "SshPublicKeys")
"""Properties, of whatever type, that name a key by which its holder logs in."""

_ALIAS: Final = "AWS::KMS::Alias"
_KUBERNETES_TEXTS: Final = ("Manifest", "Values", "ConfigurationValues", "ApplyPatchJson", "RestorePatchJson")
"""Properties whose texts ``cluster_access`` and ``addons`` read."""

_NOT_LOGINS: Final = ("AWS::EC2::KeyPair", "AWS::CloudFront::PublicKey", "AWS::KMS::Key")
_READ_AS_SIGN_INS: Final = ("AWS::IAM::OIDCProvider", "AWS::IAM::SAMLProvider")
_SERVICE_OF_OTHERS: Final = re.compile(r"com\.amazonaws\.vpce\..+")
_BUCKET_URL: Final = re.compile(r"s3://[^/$]+(?:/.*)?")
_READ_AS_OPENINGS: Final = READ | {"AWS::Lambda::Url", "AWS::RAM::ResourceShare"}
_READ_ELSEWHERE: Final = READ | _READ_AS_ENTRIES
_ACCOUNT: Final = re.compile(r"\d{12}")
_ARN: Final = re.compile(r"arn:[\w-]+:[^:]*:[^:]*:(\d{12}):")
_OPENS: Final[dict[str, tuple[str, ...]]] = {
    "AcceptanceRequired": ("false",),
    "AllowedPrincipals": ("*",),
    "AssignPublicIp": ("ENABLED",),
    "Authentication": ("UNAUTHENTICATED",),
    "AuthenticationType": ("API_KEY",),
    "AssociatePublicIpAddress": ("true",),
    "AllowFromPublic": ("true",),
    "AppNetworkAccessType": ("PublicInternetOnly",),
    "AuthType": ("NONE",),
    "AuthorizationType": ("NONE",),
    "AutoAcceptSharedAttachments": ("enable",),
    "BlockPublicSecurityGroupRules": ("false",),
    "DirectInternetAccess": ("Enabled",),
    "IsPubliclyAccessible": ("true",),
    "OnUnauthenticatedRequest": ("allow",),
    "Principal": ("*",),
    "Principals": ("*",),
    "PublicConnectivity": ("true",),
    "PubliclyAccessible": ("true",),
    "UserGroups": ("all",),
    "WebserverAccessMode": ("PUBLIC_ONLY", "PUBLIC_AND_PRIVATE"),
}
"""Properties, of whatever type, whose value opens something: an instance, a database, a function, an image."""
_OPEN_WITHOUT: Final[dict[str, tuple[str, ...]]] = {
    "AWS::ApiGatewayV2::Route": ("AuthorizationType",),
    "AWS::AppRunner::Service": ("NetworkConfiguration", "IngressConfiguration", "IsPubliclyAccessible"),
    "AWS::DMS::ReplicationInstance": ("PubliclyAccessible",),
    "AWS::SageMaker::Domain": ("AppNetworkAccessType",),
    "AWS::SageMaker::NotebookInstance": ("DirectInternetAccess",),
    "AWS::VpcLattice::Service": ("AuthType",),
    "AWS::VpcLattice::ServiceNetwork": ("AuthType",),
}
"""The property, per type, without which it is open.

Source: API references of DMS (CreateReplicationInstance, "the default value is true"), VPC Lattice (CreateService,
"This is the default"), SageMaker (CreateDomain, "the default value is PublicInternetOnly"; "Notebook Instances Are
Internet-Enabled by Default"); API Gateway, Route, AuthorizationType: NONE "for open access"; App Runner, "Enabling
private endpoints": a service is public where nothing is said.
"""
_CONTAINERS: Final = ("AWS::Batch::JobDefinition", "AWS::ECS::DaemonTaskDefinition", "AWS::ECS::TaskDefinition")
_OPENS_IN: Final[dict[tuple[str, str], tuple[tuple[str, ...], str]]] = {
    **{(type_, "Privileged"): (("true",), "its container is root on its host") for type_ in _CONTAINERS},
    **{(type_, "PidMode"): (("host",), "its container sees what else runs on its host") for type_ in _CONTAINERS},
    **{(type_, "IpcMode"): (("host",), "its container shares memory with its host") for type_ in _CONTAINERS},
    **{(type_, "SourcePath"): ((), "its container has a folder of its host") for type_ in _CONTAINERS},
    ("AWS::CodeBuild::Project", "Visibility"): (
        ("PUBLIC_READ",),
        "results, logs and artifacts of its builds, those of the past too, are for anybody",
    ),
    ("AWS::CodeBuild::Project", "PrivilegedMode"): (("true",), "its builds run privileged"),
    ("AWS::CodeBuild::Project", "Webhook"): (("true",), "who pushes starts its builds"),
    ("AWS::Cognito::UserPool", "AllowAdminCreateUserOnly"): (("false",), "anybody may sign up on his own"),
    ("AWS::EC2::Instance", "SourceDestCheck"): (("false",), "it may pass on, and read, the traffic of others"),
    ("AWS::EC2::NetworkInterface", "SourceDestCheck"): (("false",), "it may pass on, and read, the traffic of others"),
    ("AWS::ECS::Service", "EnableExecuteCommand"): (("true",), "who may call ExecuteCommand gets a shell there"),
    ("AWS::FSx::Volume", "Clients"): (("*",), "every address that reaches it may mount it"),
    ("AWS::Logs::LogGroup", "BearerTokenAuthenticationEnabled"): (
        ("true",),
        "who has a bearer token writes to it, without a signature of IAM",
    ),
    ("AWS::MSK::Cluster", "Type"): (("SERVICE_PROVIDED_EIPS",), "its brokers get public addresses"),
    ("AWS::RAM::ResourceShare", "AllowExternalPrincipals"): (("true",), "other organizations' accounts may be let in"),
    **{
        ("AWS::S3::AccessPoint", name): (("false",), f"{name} is false")
        for name in ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets")
    },
    ("AWS::SageMaker::NotebookInstance", "RootAccess"): (("Enabled",), "its users are root there"),
    ("AWS::S3::Bucket", "AllowedOrigins"): (("*",), "scripts of any site may read it (CORS)"),
    ("AWS::S3::Bucket", "IndexDocument"): ((), "it is a website"),
    ("AWS::S3::Bucket", "HostName"): ((), "it is a website"),
}
"""Properties of one type whose value opens it, any value where none is named, with what that means."""

_OPENS_AT: Final[dict[tuple[str, tuple[str, ...]], tuple[tuple[str, ...], str]]] = {
    ("AWS::MSK::Cluster", ("ClientAuthentication", "Unauthenticated", "Enabled")): (
        ("true",),
        "its clients need not say who they are",
    ),
}
"""Those that are so called elsewhere in the type, too, by where they stand."""

_OPENED_FROM: Final[dict[tuple[str, str], tuple[tuple[str, ...], str]]] = {
    ("AWS::ApiGateway::RestApi", "Types"): (("PRIVATE",), "it is reached from the internet, not from its VPCs alone"),
    ("AWS::Transfer::Server", "EndpointType"): (
        ("VPC", "VPC_ENDPOINT"),
        "it is reached from the internet, not by its VPC's endpoint alone",
    ),
}
"""Properties of one type that shut it by a value, with what any other one means after that.

Source: API Gateway developer guide, "Change a public or private API endpoint type" (From private to Regional);
Transfer Family API reference, UpdateServer, EndpointType.
"""

_SINKS: Final = frozenset(
    {
        *("ArtifactS3Location", "BucketARN", "BucketArn", "DestinationBucketArn", "DestinationResourceArn"),
        *("InvocationEndpoint", "LogDestination", "LogDestinationConfigs", "OutputLocation", "S3BucketArn"),
        *("S3BucketName", "S3OutputLocation", "S3OutputPath"),
    }
)
"""Properties, of whatever type, that say where data, results or records are sent."""
_SINKS_OF: Final = frozenset(
    {
        *(("AWS::CUR::ReportDefinition", "S3Bucket"), ("AWS::BCMDataExports::Export", "S3Bucket")),
        *(
            ("AWS::IoT::TopicRule", "Url"),
            ("AWS::IoT::TopicRule", "BucketName"),
            ("AWS::SES::ReceiptRule", "BucketName"),
        ),
        *(("AWS::KinesisFirehose::DeliveryStream", "Url"), ("AWS::Redshift::Cluster", "BucketName")),
        *(("AWS::SSM::ResourceDataSync", "BucketName"), ("AWS::AppFlow::Flow", "BucketName")),
    }
)
_SINKS_AT: Final = frozenset(
    {
        ("AWS::CodeBuild::Project", ("Artifacts", "Location")),
        ("AWS::CodeBuild::Project", ("SecondaryArtifacts", "Location")),
        ("AWS::CodeBuild::Project", ("LogsConfig", "S3Logs", "Location")),
        ("AWS::CodeBuild::ReportGroup", ("ExportConfig", "S3Destination", "Bucket")),
        ("AWS::CodePipeline::Pipeline", ("ArtifactStore", "Location")),
        ("AWS::CodePipeline::Pipeline", ("ArtifactStores", "ArtifactStore", "Location")),
    }
)
"""Those of one type that are so called, and by where they stand.

Source: each property's page in the CloudFormation template reference. A bucket's ARN and name tell no account, so that
one that no template holds may be anybody's. Access logs of S3 are left out: their bucket is of the same account.
"""

_OUTSIDE: Final = ("http", "https", "email", "email-json", "sms")
"""Protocols by which a subscription of SNS sends what is published to somewhere outside of AWS."""

_REPLICATION: Final = ("ReplicationConfiguration", "Rules", "Destination", "Bucket")


class Exposure(NamedTuple):
    """One thing that is newly open or named, in words."""

    sentence: str
    place: Place
    is_world: bool
    is_grave: bool
    properties: tuple[str, ...] = ()


def exposures(before: View, after: View, changes: Sequence[ResourceChange]) -> Iterator[Exposure]:
    """Give what resources newly say of other accounts, of address blocks, and of being public."""
    for change in changes:
        if change.after is None:
            continue
        if said := _way_in(before, after, change):
            yield Exposure(said, place_of(change.after), is_world=False, is_grave=True)
        was = _leaves(before.properties(change.before)) if change.before is not None else []
        if said := _open_without(before, after, change):
            place, by = place_of(change.after), _OPEN_WITHOUT[change.after.type][-1:]
            yield Exposure(said, place, is_world=True, is_grave=True, properties=by)
        old, old_values = set(was), {value for _, value in was}
        for path, value in dict.fromkeys(_leaves(after.properties(change.after))):
            if (path, value) in old:
                continue
            found = _opening(after, change.after, path, value, was)
            if found is None and value not in old_values:
                found = _naming(after, change.after, path, value, old_values)
            if found is not None:
                yield found._replace(properties=(path[-1],))


def _way_in(before: View, after: View, change: ResourceChange) -> str:
    """Say what a resource does by being there, where it is new or says something else; empty for any other."""
    resource, old = change.after, change.before
    if resource is None:
        return ""
    name, properties = after.name(resource), after.properties(resource)
    was = before.properties(old) if old is not None and old.type == resource.type else None
    if resource.type == _ALIAS and was is not None and was.get("TargetKeyId") != properties.get("TargetKeyId"):
        return f"{name} is an alias of another key: anyone who may use that key encrypts and decrypts"
    does = _WAYS_IN.get(resource.type)
    if does is None or was == properties:
        return ""
    names = _WAYS_IN_BY.get(resource.type, ())
    if names and was is not None and all(was.get(each) == properties.get(each) for each in names):
        return ""
    if resource.type in _READ_AS_SIGN_INS and (was is not None or TOKEN.search(text(properties.get("Url")))):
        # another value is told as a way to sign in; an issuer of the templates, as a cluster's is, signs in nobody else
        return ""
    return f"new {name} {does}" if was is None else f"{name} changes, and {does}"


def _open_without(before: View, after: View, change: ResourceChange) -> str:
    """Say that a resource is open because it states nothing, where it is new or stated something; empty else."""
    resource, old = change.after, change.before
    path = _OPEN_WITHOUT.get(resource.type) if resource is not None else None
    if resource is None or path is None or _at(after.properties(resource), path) is not None:
        return ""
    if old is not None and old.type == resource.type and _at(before.properties(old), path) is None:
        return ""
    return f"{after.name(resource)} is opened: without {'.'.join(path)} it is open"


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _opening(
    view: View, resource: Resource, path: tuple[str, ...], value: str, was: Sequence[tuple[tuple[str, ...], str]]
) -> Exposure | None:
    """Say what a value newly opens, wherever else it stood before."""
    name, place, type_ = view.name(resource), place_of(resource), resource.type
    said = ""
    if (
        path[-1] in _OPENS
        and (value in _OPENS[path[-1]] or PARAMETER.fullmatch(value))
        and type_ not in _READ_AS_OPENINGS
    ):
        said = f"{name} is opened: {'.'.join(path)} is {value}"
    elif opened := _opened(type_, path, value, was):
        said = f"{name} is opened: {opened}"
    elif type_ == "AWS::EC2::SnapshotBlockPublicAccess" and value == "unblocked":
        said = f"{name} no longer blocks public snapshots"
    if said:
        return Exposure(said, place, is_world=True, is_grave=True)
    said = _leading(name, type_, path, value, view.account)
    return Exposure(said, place, is_world=False, is_grave=True) if said else None


def _leading(name: str, type_: str, path: tuple[str, ...], value: str, account: str) -> str:
    """Say where a value leads that no template holds, and who logs in by it; empty for nothing."""
    if type_ == "AWS::EC2::VPCEndpoint" and path == ("ServiceName",) and _SERVICE_OF_OTHERS.fullmatch(value):
        return f"{name} leads to {value}, a service that is not AWS's own"
    if path[-1] == "DataRepositoryPath" and _BUCKET_URL.fullmatch(value):
        return f"{name} exchanges files with {value}, which no template holds"
    if path[-1] in _KEYS_OF_LOGINS and type_ not in _NOT_LOGINS:
        return f"anyone who has the key of {'.'.join(path)} logs in to {name}"
    is_sink = path[-1] in _SINKS or (type_, path[-1]) in _SINKS_OF or (type_, path) in _SINKS_AT
    if is_sink and not TOKEN.search(value) and not _is_own(account, value):
        return f"{name} sends data to {value}, which no template holds"
    return _replicated(name, path, value) if type_ == "AWS::S3::Bucket" else ""


def _replicated(name: str, path: tuple[str, ...], value: str) -> str:
    if path[-4:] == _REPLICATION and not TOKEN.search(value):
        return f"{name} is replicated to {value}, which no template holds"
    if path[-2:] == ("AccessControlTranslation", "Owner") and value == "Destination":
        return f"{name} gives its copies to the account of the bucket that they are in"
    return ""


def _naming(
    view: View, resource: Resource, path: tuple[str, ...], value: str, old_values: Collection[str]
) -> Exposure | None:
    """Say whom or what a value names that nothing of the resource named before."""
    name, place, type_, where = view.name(resource), place_of(resource), resource.type, ".".join(path)
    if type_ == "AWS::SNS::Subscription" and path == ("Endpoint",):
        protocol = text(view.properties(resource).get("Protocol"))
        if protocol in _OUTSIDE:
            said = f"{name} sends what is published to {value}, outside of AWS"
            return Exposure(said, place, is_world=False, is_grave=True)
    is_code = path[-1] in images.PROPERTIES and images.repository(value) not in map(images.repository, old_values)
    if is_code and (whose := images.publisher(value, view.account)):
        return Exposure(f"{name} runs the image {value} of {whose}", place, is_world=False, is_grave=True)
    if (account := _account(view, value)) and type_ not in _READ_ELSEWHERE:
        whose = "another account" if view.account else "which the template does not show from its own"
        said = f"{name} names account {account} ({whose}) in {where}"
        return Exposure(said, place, is_world=False, is_grave=True)
    if _is_block(value) and type_ not in _READ_AS_NETWORK:
        is_world = is_internet(value)
        return Exposure(f"{name} names the address block {value} in {where}", place, is_world, is_world)
    return None


def _opened(type_: str, at: tuple[str, ...], value: str, was: Sequence[tuple[tuple[str, ...], str]]) -> str:
    """Say what a value of a property opens of a type, empty for nothing; any value opens only what had none."""
    name = at[-1]
    shut, opened = _OPENED_FROM.get((type_, name), ((), ""))
    if shut and value not in shut and any(path[-1] == name and old in shut for path, old in was):
        return opened
    values, said = _OPENS_AT.get((type_, at)) or _OPENS_IN.get((type_, name), ((), ""))
    if not said or (values and value not in values and not PARAMETER.fullmatch(value)):
        return ""
    return "" if not values and any(path[-1] == name for path, _ in was) else said


def _leaves(value: Any) -> list[tuple[tuple[str, ...], str]]:
    """Give every plain value with the keys that lead to it, but for policies, which are read by what they permit."""
    found: list[tuple[tuple[str, ...], str]] = []
    _gather(value, (), found)
    return found


def _gather(value: Any, path: tuple[str, ...], found: list[tuple[tuple[str, ...], str]]) -> None:
    if isinstance(value, str) and value[:1] in ("{", "[") and path and path[-1] not in _KUBERNETES_TEXTS:
        value = _within_text(value)
    if isinstance(value, dict):
        if looks_like_policy(value):
            return
        for key, item in value.items():
            _gather(item, (*path, str(key)), found)
    elif isinstance(value, list):
        for item in value:
            _gather(item, path, found)
    elif path:
        found.append((path, text(value)))


def _within_text(value: str) -> Any:
    """Give what a text of JSON holds, the text itself where it is none, or is a policy, which is read elsewhere."""
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _is_own(account: str, value: str) -> bool:
    """Whether an ARN names the own account, or a service's own that every account has."""
    return arn_parts(value).account in {account, "${AWS::AccountId}", "aws"} - {""}


def _account(view: View, value: str) -> str:
    found = _ARN.match(value)
    account = found[1] if found else value if _ACCOUNT.fullmatch(value) else ""
    return account if account != view.account else ""


def _is_block(value: str) -> bool:
    if "/" not in value:
        return False
    try:
        ipaddress.ip_network(value, strict=False)
    except ValueError:
        return False
    return True
