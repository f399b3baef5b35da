"""What other types state about accounts, addresses and public access, outside of policies and security groups.

Policies, security groups, routes and clusters are read by their meaning (``statements``, ``reach``,
``cluster_access``). Every other type is read here by the property names that all types share, so that each new account,
address block and switch that gives access is reported.
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
from hyperpod_cdk.review.rights.views import TOKEN, Place, View, is_unknown, place_of
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
    "AWS::Budgets::BudgetsAction": "applies policies, or stops instances, automatically once a budget is exceeded",
    **dict.fromkeys(
        ("AWS::Chatbot::MicrosoftTeamsChannelConfiguration", "AWS::Chatbot::SlackChannelConfiguration"),
        "lets members of a chat channel read and run what its role and its guardrails permit, which permit "
        "everything if none are stated",
    ),
    "AWS::CloudFormation::HookTypeConfig": "defines what hooks check, and whether they stop what they find",
    "AWS::CloudFormation::Stack": "creates the resources of a template that was not read",
    "AWS::CloudFormation::StackSet": (
        "creates the resources of a template that was not read in other accounts or Regions"
    ),
    "AWS::CodeStarConnections::Connection": "gives access to anyone who pushes to its connection",
    "AWS::Config::RemediationConfiguration": "runs a document of Systems Manager automatically if a rule fails",
    "AWS::DMS::ReplicationTask": "copies data to its target",
    "AWS::EC2::ClientVpnAuthorizationRule": "lets clients of a VPN reach a network",
    "AWS::EC2::ClientVpnEndpoint": "lets clients from the internet reach a VPC",
    "AWS::EC2::EIPAssociation": "gives a public address to the resource that it is associated with",
    "AWS::EC2::InstanceConnectEndpoint": "lets anyone whom IAM permits connect to private addresses from the internet",
    "AWS::EC2::TrafficMirrorSession": "copies a network interface's traffic to its target",
    "AWS::EC2::TransitGatewayPeeringAttachment": "connects a transit gateway with another one",
    "AWS::EC2::TransitGatewayRoute": "opens a route between networks of a transit gateway, or drops its traffic",
    "AWS::EC2::TransitGatewayRouteTableAssociation": "opens routes between networks of a transit gateway",
    "AWS::EC2::TransitGatewayRouteTablePropagation": "opens routes between networks of a transit gateway",
    "AWS::EC2::VPCBlockPublicAccessExclusion": "excludes a network from the account's block of public access",
    "AWS::EC2::VPNConnection": "connects a network outside of AWS",
    "AWS::ECR::PullThroughCacheRule": "makes images of another registry look like the account's own",
    "AWS::ElastiCache::User": "signs in to caches with the permissions of its access string",
    "AWS::ElastiCache::UserGroup": "defines who signs in to caches",
    "AWS::IAM::OIDCProvider": "gives everyone whom its issuer authenticates access to every role that trusts it",
    "AWS::IAM::SAMLProvider": "gives everyone whom its issuer authenticates access to every role that trusts it",
    "AWS::IdentityStore::GroupMembership": "gives a user everything that is assigned to a group",
    "AWS::IoT::RoleAlias": "lets devices with a certificate assume a role",
    "AWS::LakeFormation::DataLakeSettings": "defines who administers the data lake",
    "AWS::LakeFormation::Permissions": "grants permissions in the data lake",
    "AWS::LakeFormation::PrincipalPermissions": "grants permissions in the data lake",
    "AWS::MemoryDB::ACL": "defines who signs in to clusters",
    "AWS::MemoryDB::User": "signs in to clusters with the permissions of its access string",
    "AWS::OpenSearchServerless::AccessPolicy": "defines who reads and writes the data of collections",
    "AWS::Route53Resolver::ResolverRule": "forwards DNS queries to other resolvers",
    "AWS::Route53Resolver::ResolverRuleAssociation": "forwards DNS queries to other resolvers",
    "AWS::S3::AccessGrant": "gives permissions for objects that no policy states",
    "AWS::ServiceCatalog::LaunchRoleConstraint": "lets anyone who launches the product use a role",
    "AWS::ServiceCatalog::PortfolioPrincipalAssociation": "lets a principal launch the products of a portfolio",
    "AWS::Transfer::User": "lets anyone who has its keys read and write with its role",
}
"""Types that give access by existing, inbound or outbound, and their effect; no policy shows it.

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
"""The properties, for some of these types, that define who gets access and to what; the others do not change it."""

_KEYS_OF_LOGINS: Final = ("Ec2SshKey", "KeyName", "PublicKey", "PublicKeys", "PublicKeyMaterial", "SshPublicKeys")
"""Properties of any type that name a key with which its holder logs in."""

_ALIAS: Final = "AWS::KMS::Alias"
_KUBERNETES_TEXTS: Final = ("Manifest", "Values", "ConfigurationValues", "ApplyPatchJson", "RestorePatchJson")
"""Properties with texts that ``cluster_access`` and ``addons`` read."""

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
"""Properties of any type whose value gives public access: to an instance, a database, a function, an image."""
_OPEN_WITHOUT: Final[dict[str, tuple[str, ...]]] = {
    "AWS::ApiGatewayV2::Route": ("AuthorizationType",),
    "AWS::AppRunner::Service": ("NetworkConfiguration", "IngressConfiguration", "IsPubliclyAccessible"),
    "AWS::DMS::ReplicationInstance": ("PubliclyAccessible",),
    "AWS::SageMaker::Domain": ("AppNetworkAccessType",),
    "AWS::SageMaker::NotebookInstance": ("DirectInternetAccess",),
    "AWS::VpcLattice::Service": ("AuthType",),
    "AWS::VpcLattice::ServiceNetwork": ("AuthType",),
}
"""The property, per type, without which it is public.

Source: API references of DMS (CreateReplicationInstance, "the default value is true"), VPC Lattice (CreateService,
"This is the default"), SageMaker (CreateDomain, "the default value is PublicInternetOnly"; "Notebook Instances Are
Internet-Enabled by Default"); API Gateway, Route, AuthorizationType: NONE "for open access"; App Runner, "Enabling
private endpoints": a service is public by default.
"""
_CONTAINERS: Final = ("AWS::Batch::JobDefinition", "AWS::ECS::DaemonTaskDefinition", "AWS::ECS::TaskDefinition")
_OPENS_IN: Final[dict[tuple[str, str], tuple[tuple[str, ...], str]]] = {
    **{(type_, "Privileged"): (("true",), "its container is root on its host") for type_ in _CONTAINERS},
    **{(type_, "PidMode"): (("host",), "its container sees the other processes of its host") for type_ in _CONTAINERS},
    **{(type_, "IpcMode"): (("host",), "its container shares memory with its host") for type_ in _CONTAINERS},
    **{(type_, "SourcePath"): ((), "its container has a folder of its host") for type_ in _CONTAINERS},
    ("AWS::CodeBuild::Project", "Visibility"): (
        ("PUBLIC_READ",),
        "results, logs and artifacts of its builds, including past ones, are public",
    ),
    ("AWS::CodeBuild::Project", "PrivilegedMode"): (("true",), "its builds run privileged"),
    ("AWS::CodeBuild::Project", "Webhook"): (("true",), "anyone who pushes starts its builds"),
    ("AWS::Cognito::UserPool", "AllowAdminCreateUserOnly"): (("false",), "anyone can sign up without an administrator"),
    ("AWS::EC2::Instance", "SourceDestCheck"): (("false",), "it can forward, and read, traffic of others"),
    ("AWS::EC2::NetworkInterface", "SourceDestCheck"): (("false",), "it can forward, and read, traffic of others"),
    ("AWS::ECS::Service", "EnableExecuteCommand"): (("true",), "anyone who may call ExecuteCommand gets a shell there"),
    ("AWS::FSx::Volume", "Clients"): (("*",), "every address that reaches it may mount it"),
    ("AWS::Logs::LogGroup", "BearerTokenAuthenticationEnabled"): (
        ("true",),
        "anyone with a bearer token writes to it, without an IAM signature",
    ),
    ("AWS::MSK::Cluster", "Type"): (("SERVICE_PROVIDED_EIPS",), "its brokers get public addresses"),
    ("AWS::RAM::ResourceShare", "AllowExternalPrincipals"): (
        ("true",),
        "accounts of other organizations may get access",
    ),
    **{
        ("AWS::S3::AccessPoint", name): (("false",), f"{name} is false")
        for name in ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets")
    },
    ("AWS::SageMaker::NotebookInstance", "RootAccess"): (("Enabled",), "its users are root there"),
    ("AWS::S3::Bucket", "AllowedOrigins"): (("*",), "scripts of any site may read it (CORS)"),
    ("AWS::S3::Bucket", "IndexDocument"): ((), "it is a website"),
    ("AWS::S3::Bucket", "HostName"): ((), "it is a website"),
}
"""Properties of one type whose value gives access, any value if none is named, and their effect."""

_OPENS_AT: Final[dict[tuple[str, tuple[str, ...]], tuple[tuple[str, ...], str]]] = {
    ("AWS::MSK::Cluster", ("ClientAuthentication", "Unauthenticated", "Enabled")): (
        ("true",),
        "its clients need not authenticate",
    ),
}
"""Properties whose names have another meaning elsewhere in the type, by their place."""

_OPENED_FROM: Final[dict[tuple[str, str], tuple[tuple[str, ...], str]]] = {
    ("AWS::ApiGateway::RestApi", "Types"): (("PRIVATE",), "it is reachable from the internet, not only from its VPCs"),
    ("AWS::Transfer::Server", "EndpointType"): (
        ("VPC", "VPC_ENDPOINT"),
        "it is reachable from the internet, not only through its VPC's endpoint",
    ),
}
"""Properties of one type that restrict it with a value, and the effect of any other value.

Source: API Gateway developer guide, "Change a public or private API endpoint type" (From private to Regional); Transfer
Family API reference, UpdateServer, EndpointType.
"""

_SINKS: Final = frozenset(
    {
        *("ArtifactS3Location", "BucketARN", "BucketArn", "DestinationBucketArn", "DestinationResourceArn"),
        *("InvocationEndpoint", "LogDestination", "LogDestinationConfigs", "OutputLocation", "S3BucketArn"),
        *("S3BucketName", "S3OutputLocation", "S3OutputPath"),
    }
)
"""Properties of any type that name the destination of data, results or records."""
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
"""Such properties of one type, also by their place.

Source: each property's page in the CloudFormation template reference. A bucket's ARN and name do not show the account,
so one that is in no template may be any account's. Access logs of S3 are excluded: their bucket is in the same account.
"""

_OUTSIDE: Final = ("http", "https", "email", "email-json", "sms")
"""Protocols with which an SNS subscription sends messages to a destination outside of AWS."""

_REPLICATION: Final = ("ReplicationConfiguration", "Rules", "Destination", "Bucket")


class Exposure(NamedTuple):
    """One new access or name, in words."""

    sentence: str
    place: Place
    is_world: bool
    is_grave: bool
    properties: tuple[str, ...] = ()


def exposures(before: View, after: View, changes: Sequence[ResourceChange]) -> Iterator[Exposure]:
    """Yield what resources newly state about other accounts, address blocks and public access."""
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
    """Return the effect of a resource's existence if it is new or changed; empty for any other."""
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
        # another value is reported as a way to sign in; an issuer of the templates, such as a cluster's, authenticates
        # no one else
        return ""
    return f"new {name} {does}" if was is None else f"{name} changes, and {does}"


def _open_without(before: View, after: View, change: ResourceChange) -> str:
    """Return a sentence if a resource is public because it states nothing, and is new or stated something; else
    empty."""
    resource, old = change.after, change.before
    path = _OPEN_WITHOUT.get(resource.type) if resource is not None else None
    if resource is None or path is None or _at(after.properties(resource), path) is not None:
        return ""
    if old is not None and old.type == resource.type and _at(before.properties(old), path) is None:
        return ""
    return f"{after.name(resource)} becomes public: without {'.'.join(path)} it is public"


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _opening(
    view: View, resource: Resource, path: tuple[str, ...], value: str, was: Sequence[tuple[tuple[str, ...], str]]
) -> Exposure | None:
    """Return the access that a value newly gives, wherever else it was before."""
    name, place, type_ = view.name(resource), place_of(resource), resource.type
    said = ""
    if path[-1] in _OPENS and (value in _OPENS[path[-1]] or is_unknown(value)) and type_ not in _READ_AS_OPENINGS:
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
    """Return a sentence on a destination that no template contains, or on a login with its key; empty for none."""
    if type_ == "AWS::EC2::VPCEndpoint" and path == ("ServiceName",) and _SERVICE_OF_OTHERS.fullmatch(value):
        return f"{name} connects to {value}, a service that is not AWS's own"
    if path[-1] == "DataRepositoryPath" and _BUCKET_URL.fullmatch(value):
        return f"{name} exchanges files with {value}, which is in no template"
    if path[-1] in _KEYS_OF_LOGINS and type_ not in _NOT_LOGINS:
        return f"anyone who has the key of {'.'.join(path)} can log in to {name}"
    is_sink = path[-1] in _SINKS or (type_, path[-1]) in _SINKS_OF or (type_, path) in _SINKS_AT
    if is_sink and not TOKEN.search(value) and not _is_own(account, value):
        return f"{name} sends data to {value}, which is in no template"
    return _replicated(name, path, value) if type_ == "AWS::S3::Bucket" else ""


def _replicated(name: str, path: tuple[str, ...], value: str) -> str:
    if path[-4:] == _REPLICATION and not TOKEN.search(value):
        return f"{name} is replicated to {value}, which is in no template"
    if path[-2:] == ("AccessControlTranslation", "Owner") and value == "Destination":
        return f"{name} gives its copies to the account that owns their bucket"
    return ""


def _naming(
    view: View, resource: Resource, path: tuple[str, ...], value: str, old_values: Collection[str]
) -> Exposure | None:
    """Return whom or what a value names that nothing of the resource named before."""
    name, place, type_, where = view.name(resource), place_of(resource), resource.type, ".".join(path)
    if type_ == "AWS::SNS::Subscription" and path == ("Endpoint",):
        protocol = text(view.properties(resource).get("Protocol"))
        if protocol in _OUTSIDE:
            said = f"{name} sends messages to {value}, outside of AWS"
            return Exposure(said, place, is_world=False, is_grave=True)
        if is_unknown(protocol) and not TOKEN.search(value) and not value.startswith("arn:"):
            said = f"{name} sends messages to {value}, perhaps outside of AWS: its protocol is unknown ({protocol})"
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
    """Return the effect of a property's value for a type, empty for none; any value counts only if there was none."""
    name = at[-1]
    shut, opened = _OPENED_FROM.get((type_, name), ((), ""))
    if shut and value not in shut and any(path[-1] == name and old in shut for path, old in was):
        return opened
    values, said = _OPENS_AT.get((type_, at)) or _OPENS_IN.get((type_, name), ((), ""))
    if not said or (values and value not in values and not is_unknown(value)):
        return ""
    return "" if not values and any(path[-1] == name for path, _ in was) else said


def _leaves(value: Any) -> list[tuple[tuple[str, ...], str]]:
    """Return every plain value with the keys that lead to it, except for policies, which are read by their
    permissions."""
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
    """Return the content of a JSON text; the text itself if it is not JSON, or is a policy, which is read elsewhere."""
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
