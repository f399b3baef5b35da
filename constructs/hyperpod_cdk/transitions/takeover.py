"""Takes over an existing HyperPod cluster: CloudFormation imports it and its roles as they are.

It makes an IMPORT change set for each stack, with templates that say what AWS has. An import changes nothing of the
resources. The next deployment changes what the environment's own templates say otherwise, and a takeover is refused
if that would replace anything, lose a node, or is unknown. CloudFormation user guide, "Import AWS resources into a
CloudFormation stack manually". 'cdk import' does not work here: it imports whole stacks of the app, and those have
more resources than are imported.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Final

from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.checks.answers import NotAnswered, Refused
from hyperpod_cdk.handlers.quota_gate.reading import NotFound
from hyperpod_cdk.importing.live import free_groups
from hyperpod_cdk.living.facts import canonical
from hyperpod_cdk.living.hyperpod import described_in_template, is_on_eks
from hyperpod_cdk.living.look import reading
from hyperpod_cdk.living.standing import grounded
from hyperpod_cdk.review.changes.blast_radius import blast_radius
from hyperpod_cdk.review.deployed import SETTLED, Api
from hyperpod_cdk.review.model import Effect
from hyperpod_cdk.templates.assembly import Assembly, Resource, Stack
from hyperpod_cdk.templates.difference import compare
from hyperpod_cdk.templates.values import imports, resolve, target
from hyperpod_cdk.transitions.counterparts import UNSURE, Standing, counterparts
from hyperpod_cdk.transitions.failures import first_failure
from hyperpod_cdk.transitions.model import Way
from hyperpod_cdk.transitions.standing import recovers, way_of

CHANGE_SET: Final = "hyperpod-cdk-takeover"
_CLUSTER: Final = "AWS::SageMaker::Cluster"
_ROLE: Final = "AWS::IAM::Role"
_GO_ON_WITHOUT: Final = (
    f"{joined(sorted(UNSURE))} are not in CloudFormation's list of types that it imports, and nothing was"
    " changed. To continue without them: remove task_governance from the file, and run the same command again"
)
_OR_KEEP: Final = {
    "AWS::EKS::Addon": ". To leave it there: add the add-on to eks.existing.installed_addons",
    "AWS::EKS::AccessEntry": ". To leave it there: remove the role from eks.admin_role_arns or member_role_arns",
    "AWS::EKS::PodIdentityAssociation": ". To leave it there: add its add-on to eks.existing.installed_addons",
    **dict.fromkeys(UNSURE, ". To leave it there: remove task_governance from the file"),
}
_HARMLESS: Final = frozenset({Effect.IN_PLACE, Effect.ADDED})
_POLLS: Final = 1800


@dataclass(frozen=True, kw_only=True)
class Taken:
    """One resource that a stack takes over: ``identifier`` is how CloudFormation finds it, ``body`` its template."""

    stack: Stack
    logical_id: str
    type: str
    id: str
    identifier: Mapping[str, str]
    body: Mapping[str, Any]
    outputs: Mapping[str, Any]
    """Its stack's outputs for the other one, added in a separate change set: an import cannot add outputs."""
    is_there: bool = False
    """Whether the stack already has it."""
    is_given: bool = False
    """Whether the stack already has the outputs."""

    @property
    def called(self) -> str:
        """Its ID, with the name of a policy or quota, whose ID does not identify it for a reader."""
        return f"{self.id} ({self.body['Properties']['Name']})" if self.type in UNSURE else self.id


@dataclass(frozen=True, kw_only=True)
class Takeover:
    """What a takeover does: ``taken`` in order.

    ``refusals`` say why it is refused, ``later`` what the next deployment changes of it.
    """

    cluster: str
    taken: tuple[Taken, ...] = ()
    refusals: tuple[str, ...] = ()
    later: tuple[str, ...] = ()
    counted: tuple[str, ...] = ()
    """Groups of a cluster with Karpenter for which the file has a count."""

    @property
    def open(self) -> tuple[Taken, ...]:
        """What is still to be imported."""
        return tuple(each for each in self.taken if not (each.is_there and each.is_given))

    @property
    def steps(self) -> tuple[tuple[Taken, ...], ...]:
        """What one import contains: the cluster and each role alone, because later ones can refer to it."""

        def together(each: Taken) -> tuple[str, bool, str]:
            alone = each.logical_id if each.type in (_CLUSTER, _ROLE) else ""
            return each.stack.name, each.type in UNSURE, alone

        return tuple(tuple(step) for _, step in groupby(self.open, together))


def planned(aws: Api, head: Assembly, cluster: str) -> Takeover:
    """Return the plan to take over a cluster and its role into the stacks of ``head``. Raises NotAnswered."""
    with reading(f"the existing resources of {cluster}"):
        return _planned(aws, head, cluster)


def _planned(aws: Api, head: Assembly, cluster: str) -> Takeover:
    try:
        answer = aws.call("sagemaker", "describe_cluster", ClusterName=cluster)
    except NotFound:
        return Takeover(cluster=cluster, refusals=(f"SageMaker has no cluster {cluster} in this account and region",))
    refusals = list(_unfit(answer, head, cluster))
    resources = list(head.of_type(_CLUSTER))
    if refusals or len(resources) != 1:
        return Takeover(cluster=cluster, refusals=tuple(refusals) or ("the stacks create no HyperPod cluster",))
    (resource,) = resources
    role, refusal = _role_to_take(answer, head, resource)
    refusals = [*refusal, *_of_no_zone(answer, resource), *_of_karpenter(answer, head, resource)]
    if refusals:
        return Takeover(cluster=cluster, refusals=tuple(refusals))
    karpenter = target(head, resource.stack, resource.properties.get("ClusterRole"))
    roles = [(role[0], role[1])] if role else []
    if karpenter is not None and answer.get("ClusterRole"):
        roles.append((karpenter, str(answer["ClusterRole"])))
    first = (
        *(_take_role(aws, head, made, arn.rpartition("/")[2]) for made, arn in roles),
        _take_cluster(aws, head, resource, answer),
    )
    beside = list(counterparts(aws, grounded(head, _ids(first)), str(answer["ClusterArn"])))
    if refusals := [why for each in beside for why in each.refusals]:
        return Takeover(cluster=cluster, refusals=tuple(refusals))
    taken = _in_order(head, first, [_take_beside(head, each) for each in beside])
    standing = tuple(_as_it_stands(aws, each, taken) for each in _worded(head, taken))
    refused, later = _judged(head, standing)
    owned = [
        f"{each.id} already belongs to the CloudFormation stack {owner}, which has to release it first: set"
        f" DeletionPolicy: Retain there, then remove it from that template{_OR_KEEP.get(each.type, '')}"
        for each in standing
        if not each.is_there and (owner := _owner(aws, each)) is not None
    ]
    found = Takeover(cluster=cluster, taken=standing, later=later, counted=_counted(answer, resource))
    return replace(found, refusals=(*_unready(aws, head, found.open), *owned, *refused))


def _unready(aws: Api, head: Assembly, taken: Sequence[Taken]) -> Iterator[str]:
    """Say which stacks accept no change set as they are. Raises NotAnswered.

    A stack that does not exist, or that has only change sets, accepts one, and so does one whose last operation
    succeeded or was rolled back (CloudFormation user guide, "Stack status codes").
    """
    for name in dict.fromkeys(each.stack.name for each in taken):
        try:
            (stack,) = aws.send("cloudformation", "describe_stacks", StackName=name)["Stacks"]
        except Refused as refused:
            if refused.is_of_no_stack:
                continue
            raise
        status = str(stack["StackStatus"])
        if status in SETTLED or status in ("REVIEW_IN_PROGRESS", "DELETE_COMPLETE"):
            continue
        if way_of(status) is Way.WAIT:
            yield f"{name} is {status}: CloudFormation works on it; wait until it has ended"
        elif status == "ROLLBACK_COMPLETE":
            yield (
                f"{name} is {status}, holds nothing and can only be deleted: 'aws cloudformation delete-stack"
                f" --stack-name {name}'"
            )
        else:
            yield f"{name} is {status}, which allows no import: '{recovers(head.word)}' names the cause and what works"


def _unfit(answer: Mapping[str, Any], head: Assembly, cluster: str) -> Iterator[str]:
    if not is_on_eks(answer):
        yield f"{cluster} runs on Slurm; this library is for HyperPod on EKS"
        return
    if answer.get("ClusterStatus") != "InService":
        yield f"{cluster} is {answer.get('ClusterStatus')}, not InService: wait, or fix it first"
    if answer.get("RestrictedInstanceGroups"):
        yield (
            f"{cluster} has restricted instance groups, whose roles and file systems are not taken over; {_A_SECOND}"
        )
    stated = list(head.of_type(_CLUSTER))
    name = stated[0].properties.get("ClusterName") if stated else answer.get("ClusterName")
    if name != answer.get("ClusterName"):
        yield f"the file says hyperpod.cluster_name: {name}, the cluster is {answer.get('ClusterName')}"


_A_SECOND: Final = "deploy a second one: another hyperpod.cluster_name and EKS cluster, then move the work"
_NAME: Final = "InstanceGroupName"


def _groups_of(cluster: Resource) -> list[Mapping[str, Any]]:
    groups = cluster.properties.get("InstanceGroups")
    return [each for each in groups if isinstance(each, dict)] if isinstance(groups, list) else []


def _role_to_take(
    answer: Mapping[str, Any], head: Assembly, cluster: Resource
) -> tuple[tuple[Resource, str] | None, list[str]]:
    """Return the execution role of the stacks with the one of the groups that get it, or why there is none."""
    made: Resource | None = None
    ours = set()
    for each in _groups_of(cluster):
        found = target(head, cluster.stack, each.get("ExecutionRole"))
        if found is not None and found.type == _ROLE:
            made = found
            ours.add(each.get(_NAME))
    by_role: dict[str, list[str]] = {}
    for row in answer.get("InstanceGroups") or ():
        if row[_NAME] in ours:
            by_role.setdefault(str(row["ExecutionRole"]), []).append(str(row[_NAME]))
    if made is None or not by_role:
        # every group has its own role, which keeps its owner
        return None, []
    if len(by_role) == 1:
        arn = next(iter(by_role))
        again = sorted(str(each.get(_NAME)) for each in _groups_of(cluster) if each.get("ExecutionRole") == arn)
        if again:
            twice = f"the environment takes over {arn}, and the file says that {', '.join(again)} keeps it"
            return None, [f"{twice}: remove existing.execution_role_arn there, or add it to every group"]
        return (made, arn), []
    told = "; ".join(f"{role}: {', '.join(sorted(by_role[role]))}" for role in sorted(by_role))
    refusal = (
        f"its groups use {len(by_role)} execution roles ({told}), and the file gives them one. HyperPod never"
        " changes the role of a group: add existing.execution_role_arn to the groups of all roles except one"
    )
    return None, [refusal]


def _of_no_zone(answer: Mapping[str, Any], cluster: Resource) -> Iterator[str]:
    """Say which groups can have nodes in several zones and are pinned to one by the stacks."""
    pinned = {each.get(_NAME) for each in _groups_of(cluster) if each.get("OverrideVpcConfig")}
    if free := sorted(free_groups(answer) & pinned):
        yield (
            f"{', '.join(free)}: no subnets of {'its' if len(free) == 1 else 'their'} own (OverrideVpcConfig). The file"
            " puts every group into the subnet of its zone, and HyperPod never changes that: add existing:"
            f" {{cluster_network: true}} to {'the group' if len(free) == 1 else 'each of them'}"
        )


def _of_karpenter(answer: Mapping[str, Any], head: Assembly, cluster: Resource) -> Iterator[str]:
    """Say where the stacks would disable Karpenter, or create a second set of its objects."""
    if not _is_scaled(answer):
        return
    if not _is_scaled(resolve(head, cluster.stack, dict(cluster.properties))):
        yield "Karpenter scales it, and the file does not say so: set hyperpod.autoscaling: karpenter"
        return
    if not answer.get("ClusterRole"):
        yield f"Karpenter scales it, and DescribeCluster shows no ClusterRole; {_A_SECOND}"
    elif shared := sorted(
        str(row[_NAME]) for row in answer["InstanceGroups"] if row.get("ExecutionRole") == answer["ClusterRole"]
    ):
        yield (
            f"{answer['ClusterRole']} is the role of Karpenter and of the nodes of {', '.join(shared)}. The environment"
            " has two roles, and each trusts one service. HyperPod changes the role of Karpenter only while autoscaling"
            " is off: disable it, set another role, enable it, and import again"
        )
    manifests = (json.dumps(dict(each.properties), default=str) for each in head.of_type(_MANIFEST))
    if any("HyperpodNodeClass" in each for each in manifests):
        yield (
            "Karpenter's node pools are in Kubernetes, and the file creates others for the same groups, or changes"
            " them, so Karpenter would replace their nodes: set hyperpod.existing_karpenter_pools: true, and remove"
            " karpenter_pools"
        )


def _counted(answer: Mapping[str, Any], cluster: Resource) -> tuple[str, ...]:
    numbers = {each.get(_NAME): each.get("InstanceCount") for each in _groups_of(cluster)} if _is_scaled(answer) else {}
    return tuple(str(name) for name, count in numbers.items() if isinstance(count, int | float) and count > 0)


def _is_scaled(cluster: Mapping[str, Any]) -> bool:
    return (cluster.get("AutoScaling") or {}).get("Mode") == "Enable"


_MANIFEST: Final = "Custom::AWSCDK-EKS-KubernetesResource"


def _take_cluster(aws: Api, head: Assembly, resource: Resource, answer: Mapping[str, Any]) -> Taken:
    arn = str(answer["ClusterArn"])
    tags = aws.pages("sagemaker", "list_tags", "Tags", ResourceArn=arn)
    properties = described_in_template(answer, like=resource.properties)
    own = [each for each in tags if not str(each["Key"]).startswith("aws:")]
    return Taken(
        stack=head.by_name[resource.stack],
        logical_id=resource.logical_id,
        type=_CLUSTER,
        id=arn,
        identifier={"ClusterArn": arn},
        body=_body(_CLUSTER, {**properties, **({"Tags": own} if own else {})}),
        outputs={},
    )


def _take_role(aws: Api, head: Assembly, resource: Resource, name: str) -> Taken:
    role = aws.call("iam", "get_role", RoleName=name)["Role"]
    attached = aws.pages("iam", "list_attached_role_policies", "AttachedPolicies", RoleName=name)
    inline = aws.pages("iam", "list_role_policies", "PolicyNames", RoleName=name)
    policies = [aws.call("iam", "get_role_policy", RoleName=name, PolicyName=each) for each in sorted(inline)]
    session = role.get("MaxSessionDuration")
    properties = {
        "AssumeRolePolicyDocument": role["AssumeRolePolicyDocument"],
        "Description": role.get("Description"),
        "ManagedPolicyArns": sorted(str(each["PolicyArn"]) for each in attached),
        "MaxSessionDuration": None if session == _DEFAULT_SESSION_S else session,
        "Path": None if role["Path"] == "/" else role["Path"],
        "PermissionsBoundary": role.get("PermissionsBoundary", {}).get("PermissionsBoundaryArn"),
        "Policies": [{"PolicyName": each["PolicyName"], "PolicyDocument": each["PolicyDocument"]} for each in policies],
        "Tags": [each for each in role.get("Tags", ()) if not str(each["Key"]).startswith("aws:")],
    }
    return Taken(
        stack=head.by_name[resource.stack],
        logical_id=resource.logical_id,
        type=_ROLE,
        id=name,
        identifier={"RoleName": name},
        body=_body(_ROLE, {key: value for key, value in properties.items() if value}),
        outputs=_outputs(head, head.by_name[resource.stack], resource.logical_id),
    )


_DEFAULT_SESSION_S: Final = 3600
"""Default seconds of a role's session (IAM API reference, CreateRole)."""


def _take_beside(head: Assembly, standing: Standing) -> Taken:
    resource = standing.resource
    return Taken(
        stack=head.by_name[resource.stack],
        logical_id=resource.logical_id,
        type=resource.type,
        id=standing.id,
        identifier=standing.identifier,
        body=_body(resource.type, standing.properties),
        outputs={},
    )


def _in_order(head: Assembly, first: Sequence[Taken], beside: Sequence[Taken]) -> tuple[Taken, ...]:
    """Return the resources stack by stack, those that may not import after those that certainly do.

    Policy and quotas refer to the cluster, which is an output of its stack.
    """
    names = dict.fromkeys(each.stack.name for each in first)
    names |= dict.fromkeys(name for name in head.by_name if name not in names)
    places = {name: place for place, name in enumerate(names)}

    def given(each: Taken) -> Taken:
        if not any(other.type in UNSURE and other.stack.name != each.stack.name for other in beside):
            return each
        return replace(each, outputs=_outputs(head, each.stack, each.logical_id))

    return tuple(
        sorted(
            (*map(given, first), *sorted(beside, key=lambda each: each.type not in UNSURE)),
            key=lambda each: places[each.stack.name],
        )
    )


def _outputs(head: Assembly, stack: Stack, logical_id: str) -> dict[str, Any]:
    """Return the outputs of a stack that are a value of one of its resources."""
    resource = stack.resources[logical_id]
    return {
        key: output
        for key, output in stack.outputs.items()
        if target(head, stack.name, output.get("Value")) == resource
    }


def _ids(taken: Sequence[Taken]) -> dict[tuple[str, str], str]:
    return {(each.stack.name, each.logical_id): each.id for each in taken}


def _body(kind: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    # imported resources stay if their stack is deleted, until a deployment of the environment says otherwise
    return {"Type": kind, "DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain", "Properties": dict(properties)}


def _as_it_stands(aws: Api, each: Taken, taken: Sequence[Taken]) -> Taken:
    """Return whether its stack has it; raises NotAnswered if the stack has resources that no takeover starts with."""
    rows = _rows(aws, each.stack.name)
    ours = {other.logical_id: other.id for other in taken if other.stack.name == each.stack.name}
    mine = [row for row in rows if row["LogicalResourceId"] == each.logical_id]
    if mine and mine[0].get("PhysicalResourceId") == each.id:
        (stack,) = aws.send("cloudformation", "describe_stacks", StackName=each.stack.name)["Stacks"]
        given = {row["OutputKey"] for row in stack.get("Outputs", ())}
        each = replace(each, is_there=True, is_given=set(each.outputs) <= given)
    # the templates of an import would remove all its other resources
    is_deployed = any(row.get("PhysicalResourceId") != ours.get(row["LogicalResourceId"]) for row in rows)
    if is_deployed and not (each.is_there and each.is_given):
        lacks = f"the outputs of {each.id}" if each.is_there else each.id
        raise NotAnswered(
            f"the stack {each.stack.name} already exists without {lacks}: a takeover starts before the first"
            " deployment of the environment"
        )
    return each


def _rows(aws: Api, stack: str) -> Sequence[Mapping[str, Any]]:
    try:
        rows = aws.pages("cloudformation", "list_stack_resources", "StackResourceSummaries", StackName=stack)
    except Refused as refused:
        if refused.is_of_no_stack:
            return ()
        raise
    return [row for row in rows if row["ResourceStatus"] not in ("DELETE_COMPLETE", "DELETE_SKIPPED")]


def _owner(aws: Api, each: Taken) -> str | None:
    """Return the stack that owns a resource; None if none does."""
    try:
        rows = aws.call("cloudformation", "describe_stack_resources", PhysicalResourceId=each.id)["StackResources"]
    except Refused as refused:
        if refused.is_of_no_stack:
            return None
        raise
    return next((str(row["StackName"]) for row in rows if row["ResourceStatus"] != "DELETE_SKIPPED"), None)


def _worded(head: Assembly, taken: Sequence[Taken]) -> Iterator[Taken]:
    """Write what AWS has in the words of ``head`` if both mean the same: else a later plan would see a change.

    Of other stacks' outputs only that of the role exists by then.
    """
    ids = _ids(taken)
    after = grounded(head, ids)
    for each in taken:
        name = each.stack.name
        told, stated = (side.by_name[name].resources[each.logical_id].properties for side in (after, head))

        def is_known(value: Any, name: str = name) -> bool:
            found = target(head, name, value)
            return found is not None and (found.stack, found.logical_id) in ids

        def worded(
            value: Any, raw: Any, plain: Any, stack: Stack = each.stack, is_known: Callable[[Any], bool] = is_known
        ) -> Any:
            if canonical(resolve(after, stack.name, plain)) == canonical(value) and (
                is_known(raw) or not any(imports(stack, raw))
            ):
                return raw
            if isinstance(value, Mapping) and isinstance(raw, Mapping) and isinstance(plain, Mapping):
                return {
                    key: worded(each, raw[key], plain[key]) if key in raw and key in plain else each
                    for key, each in value.items()
                }
            if _are_groups(value) and _are_groups(raw) and _are_groups(plain):
                by_name = [{row[_NAME]: row for row in rows} for rows in (raw, plain)]
                return [
                    worded(row, *(rows[row[_NAME]] for rows in by_name))
                    if all(row[_NAME] in rows for rows in by_name)
                    else row
                    for row in value
                ]
            return value

        yield replace(each, body={**each.body, "Properties": worded(each.body["Properties"], dict(stated), dict(told))})


def _are_groups(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, Mapping) and _NAME in each for each in value)


def _judged(head: Assembly, taken: Sequence[Taken]) -> tuple[list[str], tuple[str, ...]]:
    """Return why the next deployment is refused, and what it changes of the imported resources."""
    ids = _ids(taken)
    names = dict.fromkeys(each.stack.name for each in taken)
    base = Assembly(
        environment=head.environment,
        stacks=tuple(
            replace(
                head.by_name[name],
                template={
                    "Resources": {each.logical_id: each.body for each in taken if each.stack.name == name},
                    "Outputs": {
                        key: output for each in taken if each.stack.name == name for key, output in each.outputs.items()
                    },
                },
            )
            for name in names
        ),
    )
    before, after = grounded(base, ids), grounded(head, ids)
    effects = [
        each
        for each in blast_radius(before, after, compare(before, after)).resources
        if (each.stack, each.logical_id) in ids
    ]
    told = {
        (each.stack, each.logical_id): f"{each.type} {ids[each.stack, each.logical_id]}: {each.summary}"
        for each in effects
    }
    refused = [told[each.stack, each.logical_id] for each in effects if each.effect not in _HARMLESS]
    # that 'destroy' deletes it from then on is said once for all
    policies = {"DeletionPolicy", "UpdateReplacePolicy"}
    changed = [each for each in effects if not {found.path for found in each.properties} <= policies]
    return refused, tuple(told[each.stack, each.logical_id] for each in changed)


@dataclass(frozen=True, kw_only=True)
class Import:
    """Executes the plan, one change set after another; what was imported stays imported if a later one fails."""

    aws: Api
    say: Callable[[str], None]
    pause: Callable[[float], None]

    def run(self, takeover: Takeover) -> bool:
        """Import what is not imported yet; False if CloudFormation refuses or fails. Raises NotAnswered."""
        there = [each for each in takeover.taken if each.is_there]
        return all(self._step(step, there) for step in takeover.steps)

    def _step(self, step: Sequence[Taken], there: list[Taken]) -> bool:
        """Import one group of resources, then add the outputs that other stacks need; ``there`` is already imported."""
        name, new = step[0].stack.name, [each for each in step if not each.is_there]
        held = [each for each in there if each.stack.name == name]
        template = {
            "Resources": {each.logical_id: each.body for each in (*held, *new)},
            # an import neither adds nor removes outputs
            "Outputs": {key: output for each in held if each.is_given for key, output in each.outputs.items()},
        }
        if new:
            for each in new:
                self.say(f"{name}: imports {each.type} {each.called}")
            wanted = [
                {
                    "ResourceType": each.type,
                    "LogicalResourceId": each.logical_id,
                    "ResourceIdentifier": dict(each.identifier),
                }
                for each in new
            ]
            more = {"ChangeSetType": "IMPORT", "ResourcesToImport": wanted}
            if not self._change(name, template, "IMPORT_COMPLETE", **more):
                if any(each.type in UNSURE for each in new):
                    self.say(f"{name}: {_GO_ON_WITHOUT}")
                return False
        if outputs := {key: output for each in step for key, output in each.outputs.items()}:
            self.say(f"{name}: adds {', '.join(each.id for each in step)} to its outputs")
            both = {**template["Outputs"], **outputs}
            if not self._change(name, {**template, "Outputs": both}, "UPDATE_COMPLETE", ChangeSetType="UPDATE"):
                return False
        there[:] = [each for each in there if each not in step]
        there += [replace(each, is_there=True, is_given=True) for each in step]
        return True

    def _change(self, name: str, template: Mapping[str, Any], wanted: str, **more: Any) -> bool:
        """Create a change set and execute it; False if CloudFormation refuses it, or it does not succeed."""
        aws = self.aws
        self._drop_old(name)
        body = json.dumps(template, default=str)
        try:
            made = aws.send(
                "cloudformation",
                "create_change_set",
                StackName=name,
                ChangeSetName=CHANGE_SET,
                **more,
                TemplateBody=body,
                Capabilities=["CAPABILITY_NAMED_IAM"],
            )
        except Refused as refused:
            self.say(f"{name}: {refused.sentence}")
            return False
        # another takeover can have replaced this change set by its own of the same name
        named = {"StackName": name, "ChangeSetName": str(made["Id"])}
        found = self._until(
            lambda: aws.send("cloudformation", "describe_change_set", **named), "Status", "_IN_PROGRESS"
        )
        if found["Status"] != "CREATE_COMPLETE":
            self.say(f"{name}: CloudFormation refuses: {found.get('StatusReason', found['Status'])}")
            return False
        aws.send("cloudformation", "execute_change_set", **named)
        stack = self._until(lambda: self._stack(name), "StackStatus", "_IN_PROGRESS")
        status = str(stack["StackStatus"])
        self.say(f"{name}: {status}")
        if status != wanted:
            reason = self._reason(str(stack["StackId"]), status)
            self.say(f"{name}: {reason}; the resources to import were not changed")
        return status == wanted

    def _drop_old(self, stack: str) -> None:
        """Delete the change set of an interrupted attempt; wait for one that runs."""
        try:
            self._until(lambda: self._stack(stack), "StackStatus", "_IN_PROGRESS")
            self.aws.send("cloudformation", "delete_change_set", StackName=stack, ChangeSetName=CHANGE_SET)
        except Refused as refused:
            if refused.code not in ("ValidationError", "ChangeSetNotFound"):
                raise

    def _stack(self, name: str) -> Mapping[str, Any]:
        (stack,) = self.aws.send("cloudformation", "describe_stacks", StackName=name)["Stacks"]
        found: Mapping[str, Any] = stack
        return found

    def _until(self, ask: Callable[[], Mapping[str, Any]], key: str, while_in: str) -> Mapping[str, Any]:
        for _ in range(_POLLS):
            found = ask()
            status = str(found[key])
            if not status.endswith(while_in) or status == "REVIEW_IN_PROGRESS":
                return found
            self.pause(2)
        raise NotAnswered("CloudFormation has not finished in time; run the same command again to continue")

    def _reason(self, stack_id: str, status: str) -> str:
        events = self.aws.pages("cloudformation", "describe_stack_events", "StackEvents", StackName=stack_id)
        with reading("cloudformation:DescribeStackEvents"):
            failure = first_failure(events, status)
        return failure.reason if failure and failure.reason else "CloudFormation does not say why"


def lines(takeover: Takeover) -> Iterator[str]:
    """Yield the plan of a takeover as lines."""
    if takeover.refusals:
        yield f"{takeover.cluster} cannot be taken over:"
        yield from (f"  {each}" for each in takeover.refusals)
        return
    for each in takeover.taken:
        state = "is already imported" if each.is_there else "is imported as it is (IMPORT)"
        yield f"{each.stack.name}: {each.type} {each.called} {state}"
    if counted := takeover.counted:
        yield (
            f"Karpenter: {', '.join(counted)} keep the count of the file. If a HyperpodNodeClass names one of them, set"
            " count: 0 before you deploy; its nodes stay."
        )
    yield (
        "The VPC, its subnets, the EKS cluster, file systems, and add-ons and access entries that are not named above"
        " stay references: no stack owns them."
    )
    if any(each.type in UNSURE and not each.is_there for each in takeover.taken):
        yield (
            "Policy and quotas: they are not in CloudFormation's list of types that it imports (unsure). The takeover"
            " tries them after the cluster; if CloudFormation refuses, they are unchanged."
        )
    if takeover.later:
        yield "The next 'hyperpod-cdk deploy' then changes these in place:"
        yield from (f"  {each}" for each in takeover.later)
        if any(each.type == _ROLE for each in takeover.taken):
            yield "  It also removes policies of a role that are not the environment's, seconds before it adds its own."
    stacks = dict.fromkeys(each.stack.name for each in reversed(takeover.taken))
    yield "To go back before that deployment: delete the stacks; DeletionPolicy: Retain keeps their resources:"
    yield from (f"  aws cloudformation delete-stack --stack-name {each}" for each in stacks)
    yield "After it the environment owns them: 'hyperpod-cdk destroy' then deletes everything named above."
