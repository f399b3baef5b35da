"""Access rules: the role of the nodes, the bucket of their scripts, the API server of their EKS cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from hyperpod_cdk.catalog import hyperpod, iam, kubernetes
from hyperpod_cdk.catalog.iam_matching import matches_action
from hyperpod_cdk.templates.assembly import Resource
from hyperpod_cdk.templates.groups import entries
from hyperpod_cdk.templates.rules.rule import EKS_CLUSTER, Context, Spot, listed
from hyperpod_cdk.templates.values import Unknown, is_known, plain, resolve

ROLE: Final = "AWS::IAM::Role"
_BUCKET: Final = "AWS::S3::Bucket"
_MANAGED_POLICY: Final = "AWS::IAM::ManagedPolicy"
_TOKEN_OR_BLANK: Final = re.compile(r"\$\{[^}]*\}|\s")
_ACCESS_ENTRY: Final = "AWS::EKS::AccessEntry"
_BROAD: Final = re.compile(r":(?:iam::aws:)?policy/(?:[\w-]+/)*(\w+FullAccess|AdministratorAccess|PowerUserAccess)$")
_SOURCE: Final = re.compile(r"s3://(?:\$\{(?P<id>[^}.]+)\}|(?P<name>[^/]+))")
_BLOCKS: Final = ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets")
_READ: Final = "s3:GetObject"


def node_role(context: Context) -> Iterator[Spot]:
    """Find roles of nodes with permissions for a whole service or account."""
    for role in _node_roles(context):
        for index, policy in enumerate(listed(context.value(role, "ManagedPolicyArns"))):
            broad = _BROAD.search(plain(policy))
            if broad:
                yield Spot(
                    resource=role,
                    place=f"Properties.ManagedPolicyArns.{index}",
                    message=_too_broad(broad[1]),
                )
        for holder, place, statement in _statements(context, role):
            wide = [action for action in map(plain, listed(statement.get("Action"))) if action.endswith("*")]
            whole = [action for action in wide if action == "*" or action.endswith(":*")]
            if whole and any(plain(each) == "*" for each in listed(statement.get("Resource"))):
                yield Spot(resource=holder, place=place, message=_too_broad(f"{', '.join(whole)} on *"))


def policies_fit(context: Context) -> Iterator[Spot]:
    """Find roles and managed policies with more characters than IAM accepts, whatever the values of their tokens
    are."""
    for role in context.of_type(ROLE):
        documents = [(role, policy.get("PolicyDocument")) for policy in entries(role.properties.get("Policies"))]
        documents += [
            (policy, policy.properties.get("PolicyDocument"))
            for policy in context.policies.get((role.stack, role.logical_id), ())
            if policy.type != _MANAGED_POLICY
        ]
        length = sum(
            _least_characters(resolve(context.assembly, holder.stack, document)) for holder, document in documents
        )
        if length > iam.MOST_INLINE_CHARACTERS:
            yield Spot(
                resource=role,
                place="Properties.Policies",
                message=f"must have inline policies of at most {iam.MOST_INLINE_CHARACTERS:,} characters "
                f"together, got {length:,} or more; name fewer resources, or their common prefix",
            )
    for policy in context.of_type(_MANAGED_POLICY):
        length = _least_characters(context.value(policy, "PolicyDocument"))
        if length > iam.MOST_MANAGED_CHARACTERS:
            yield Spot(
                resource=policy,
                place="Properties.PolicyDocument",
                message=f"must have at most {iam.MOST_MANAGED_CHARACTERS:,} characters, got {length:,} or more; "
                "name fewer resources, or their common prefix",
            )


def lifecycle_bucket(context: Context) -> Iterator[Spot]:
    """Find buckets of lifecycle scripts that nodes cannot read, or that everyone can."""
    seen: set[tuple[str, str]] = set()
    for group in context.groups:
        cluster = group.read.cluster
        scripts = resolve(context.assembly, cluster.stack, group.body.get("LifeCycleConfig"))
        source = scripts.get("SourceS3Uri") if isinstance(scripts, dict) else None
        found = _SOURCE.match(source) if isinstance(source, str) else None
        if found is None:
            continue
        bucket = _bucket(context, cluster, found["id"]) if found["id"] else None
        name = _bucket_name(context, bucket) if bucket else found["name"]
        role = context.target(cluster, group.body.get("ExecutionRole"))
        key = (found[0], role.logical_id if role else "")
        if key in seen:
            continue
        seen.add(key)
        if name is not None and role is not None and not _is_readable(context, name, role):
            prefix = hyperpod.LIFECYCLE_BUCKET_PREFIX
            yield Spot(
                resource=bucket or cluster,
                place="Properties.BucketName" if bucket else f"{group.place}.LifeCycleConfig.SourceS3Uri",
                message=f"must have a name that begins with {prefix}, the only buckets that AWS's policy for "
                f"nodes can read, got {name}, and {role.logical_id} has no permission of its own for "
                f"{_READ}; rename the bucket or grant the permission",
            )
        if bucket is not None:
            yield from _public(context, bucket)


def eks_public_endpoint(context: Context) -> Iterator[Spot]:
    """Find API servers that are open to the whole internet."""
    for cluster in context.of_type(EKS_CLUSTER):
        public = context.value(cluster, "ResourcesVpcConfig", "EndpointPublicAccess")
        cidrs = context.value(cluster, "ResourcesVpcConfig", "PublicAccessCidrs")
        open_to_all = cidrs is None or (isinstance(cidrs, list) and "0.0.0.0/0" in cidrs)
        if public in (None, True, "true") and open_to_all:
            yield Spot(
                resource=cluster,
                place="Properties.ResourcesVpcConfig",
                message="must answer to known addresses only, got a public endpoint open to "
                f"0.0.0.0/0{', the default of EKS' if cidrs is None else ''}; set PublicAccessCidrs, or "
                "EndpointPublicAccess: false and EndpointPrivateAccess: true",
            )


def eks_administrators(context: Context) -> Iterator[Spot]:
    """Find EKS clusters that no one can access: neither their creator, nor a role with an access entry."""
    entries_for_people = [each for each in context.of_type(_ACCESS_ENTRY) if _is_for_people(context, each)]
    entered = {
        (cluster.stack, cluster.logical_id)
        for entry in entries_for_people
        if (cluster := context.target(entry, entry.properties.get("ClusterName"))) is not None
    }
    # in addition to a reference, a literal name; one that cannot be read may be any cluster's
    names = [context.value(entry, "ClusterName") for entry in entries_for_people]
    if any(isinstance(name, Unknown) for name in names):
        return
    for cluster in context.of_type(EKS_CLUSTER):
        if context.value(cluster, "Name") in [name for name in names if isinstance(name, str)]:
            continue
        mode = context.value(cluster, "AccessConfig", "AuthenticationMode")
        maker = context.value(cluster, "AccessConfig", "BootstrapClusterCreatorAdminPermissions")
        if mode == "API" and maker in (False, "false") and (cluster.stack, cluster.logical_id) not in entered:
            yield Spot(
                resource=cluster,
                place="Properties.AccessConfig.BootstrapClusterCreatorAdminPermissions",
                message="must give someone access, got false for its creator and no access entry with a policy "
                "for a role from elsewhere; add AWS::EKS::AccessEntry with AmazonEKSClusterAdminPolicy "
                "for the role that you use",
            )


def eks_audit_log(context: Context) -> Iterator[Spot]:
    """Find EKS clusters without audit logs."""
    for cluster in context.of_type(EKS_CLUSTER):
        types = context.value(cluster, "Logging", "ClusterLogging", "EnabledTypes")
        enabled = [plain(each.get("Type")) for each in entries(types)]
        if "audit" not in enabled and is_known(types):
            yield Spot(
                resource=cluster,
                place="Properties.Logging",
                message="must log the requests to the API server, got "
                f"{', '.join(enabled) or 'no control-plane log'}; add the type audit to EnabledTypes",
            )


def eks_authentication(context: Context) -> Iterator[Spot]:
    """Find EKS clusters that HyperPod cannot give its nodes access to."""
    for cluster in context.orchestrators:
        mode = context.value(cluster, "AccessConfig", "AuthenticationMode")
        if mode is None or mode == "CONFIG_MAP":
            yield Spot(
                resource=cluster,
                place="Properties.AccessConfig.AuthenticationMode",
                message="must support access entries, which HyperPod creates for its nodes, got "
                f"{'CONFIG_MAP' if mode else 'none stated, which means CONFIG_MAP'}; set "
                "AuthenticationMode: API",
            )


def kubernetes_version(context: Context) -> Iterator[Spot]:
    """Find versions that HyperPod does not accept, or that EKS no longer supports or supports at extra cost."""
    runs_hyperpod = {(each.stack, each.logical_id) for each in context.orchestrators}
    for cluster in context.of_type(EKS_CLUSTER):
        value = context.value(cluster, "Version")
        if value is None or not is_known(value):
            continue
        version = str(value)
        problem = None
        if (cluster.stack, cluster.logical_id) in runs_hyperpod:
            problem = kubernetes.version_problem(version, key="Version")
        problem = kubernetes.support_warning(version, on=kubernetes.AS_OF, key="Version") or problem
        if problem:
            yield Spot(resource=cluster, place="Properties.Version", message=problem)


def _is_for_people(context: Context, entry: Resource) -> bool:
    """Whether an entry has a policy and a principal from outside the templates: a function's role gives users no
    access."""
    principal = context.target(entry, entry.properties.get("PrincipalArn"))
    return bool(listed(context.value(entry, "AccessPolicies"))) and principal is None


def _too_broad(got: str) -> str:
    return (
        "must give the nodes only the permissions that they use, because every pod on the host network has them, "
        f"too, got {got}; name actions and resources"
    )


def _node_roles(context: Context) -> list[Resource]:
    """Return the roles of nodes, of HyperPod groups and of EKS node groups, each once."""
    found: dict[tuple[str, str], Resource] = {}
    named = [(group.read.cluster, group.body.get("ExecutionRole")) for group in context.groups]
    named += [(each, each.properties.get("NodeRole")) for each in context.of_type("AWS::EKS::Nodegroup")]
    for holder, value in named:
        role = context.target(holder, value)
        if role is not None and role.type == ROLE:
            found[role.stack, role.logical_id] = role
    return list(found.values())


def _statements(context: Context, role: Resource) -> Iterator[tuple[Resource, str, dict[str, Any]]]:
    """Return (resource, place, statement) of everything that policies of these templates allow a role."""
    documents = [
        (role, f"Properties.Policies.{index}.PolicyDocument", policy.get("PolicyDocument"))
        for index, policy in enumerate(entries(role.properties.get("Policies")))
    ]
    documents += [
        (policy, "Properties.PolicyDocument", policy.properties.get("PolicyDocument"))
        for policy in context.policies.get((role.stack, role.logical_id), ())
    ]
    for holder, place, document in documents:
        resolved = resolve(context.assembly, holder.stack, document)
        statements = listed(resolved.get("Statement")) if isinstance(resolved, dict) else []
        for index, statement in enumerate(statements):
            if isinstance(statement, dict) and statement.get("Effect") == "Allow":
                yield holder, f"{place}.Statement.{index}", statement


def _least_characters(value: Any) -> int:
    """Count the characters of a document as JSON without white space; values that only the deployment knows count
    none."""
    if isinstance(value, dict):
        return 1 + sum(len(str(key)) + 4 + _least_characters(each) for key, each in value.items())
    if isinstance(value, list):
        return 1 + sum(1 + _least_characters(each) for each in value)
    if isinstance(value, str):
        return 2 + len(_TOKEN_OR_BLANK.sub("", value))
    return 0


def _bucket(context: Context, cluster: Resource, logical_id: str) -> Resource | None:
    for stack in (context.assembly.by_name[cluster.stack], *context.assembly.stacks):
        found = stack.resources.get(logical_id)
        if found is not None and found.type == _BUCKET:
            return found
    return None


def _bucket_name(context: Context, bucket: Resource) -> str | None:
    """Return the known beginning of the name; None if there is none."""
    name = context.value(bucket, "BucketName")
    if name is None:
        # CloudFormation creates a name that begins with the stack's
        own = bucket.stack.lower()
        return None if own.startswith(hyperpod.LIFECYCLE_BUCKET_PREFIX) else "a generated name"
    return name if isinstance(name, str) and not name.startswith(("${", "{")) else None


def _is_readable(context: Context, name: str, role: Resource) -> bool:
    if name.startswith(hyperpod.LIFECYCLE_BUCKET_PREFIX):
        return True
    if role.type != ROLE:
        return True
    policies = context.value(role, "ManagedPolicyArns")
    # the content of other policies is unknown here, except for AWS's policy for nodes
    if any(not re.search(r"policy/(?:[\w-]+/)*Amazon(?!S3)", plain(each)) for each in listed(policies)):
        return True
    return any(
        matches_action(plain(action), _READ)
        for _, _, statement in _statements(context, role)
        for action in listed(statement.get("Action"))
    )


def _public(context: Context, bucket: Resource) -> Iterator[Spot]:
    lifted = [
        name for name in _BLOCKS if context.value(bucket, "PublicAccessBlockConfiguration", name) in (False, "false")
    ]
    if lifted:
        yield Spot(
            resource=bucket,
            place="Properties.PublicAccessBlockConfiguration",
            message="must block public access, because anyone who can write its scripts runs as root on every "
            f"node, got {', '.join(f'{name}: false' for name in lifted)}; set them to true",
        )
