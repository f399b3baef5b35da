"""Other code with an unchanged identity: what a resource runs, and with which role.

A principal that decides the code of a resource with a powerful identity has its permissions (``power``), and code that
runs as root on nodes can use everything on them. The table states by type which properties decide the code; the name of
a CDK upload contains a hash of its content, so unchanged code has the same value on both sides.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from hyperpod_cdk.review.rights.power import Power
from hyperpod_cdk.review.rights.statements import items, text
from hyperpod_cdk.review.rights.views import TOKEN, Place, View, place_of
from hyperpod_cdk.review.rights.words import Principal
from hyperpod_cdk.templates.assembly import Resource
from hyperpod_cdk.templates.difference import ResourceChange

_UPLOAD: Final = "Custom::CDKBucketDeployment"
_ALIAS: Final = "AWS::Lambda::Alias"
_LAYER: Final = "AWS::Lambda::LayerVersion"
_OF_AWS: Final = "aws/codebuild/"
"""CodeBuild's own images; ``images`` reports those of other publishers."""

_ALL: Final[frozenset[str]] = frozenset()
_CONTAINER: Final = frozenset({"Image", "Command", "EntryPoint", "image", "command", "args"})
_MODEL: Final = frozenset({"Image", "ModelDataUrl", "S3Uri", "ModelPackageName"})
_SCRIPTS: Final = frozenset({"SourceS3Uri", "OnCreate", "OnInitComplete", "ImageId"})
_BOOT: Final = frozenset({"UserData", "ImageId"})
_VARIABLES: Final = frozenset(
    {
        *("AWS_LAMBDA_EXEC_WRAPPER", "NODE_OPTIONS", "JAVA_TOOL_OPTIONS", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME"),
        *("LD_PRELOAD", "LD_LIBRARY_PATH", "PATH", "BASH_ENV", "RUBYOPT", "RUBYLIB", "NODE_PATH", "CLASSPATH"),
        *("DOTNET_STARTUP_HOOKS", "PERL5OPT"),
    }
)
"""Variables with which a program loads other code before its own."""

_AS_ROLE: Final[Mapping[str, Mapping[str, frozenset[str]]]] = {
    "AWS::AppRunner::Service": {"SourceConfiguration": _ALL},
    "AWS::Batch::JobDefinition": dict.fromkeys(
        ("ContainerProperties", "EcsProperties", "EksProperties", "NodeProperties"), _CONTAINER
    ),
    "AWS::BedrockAgentCore::Runtime": {"AgentRuntimeArtifact": _ALL},
    "AWS::CodeBuild::Project": {
        **dict.fromkeys(("Source", "SecondarySources", "SourceVersion", "SecondarySourceVersions"), _ALL),
        "Environment": frozenset({"Image", "EnvironmentVariables"}),
    },
    "AWS::CodePipeline::Pipeline": {"Stages": _ALL},
    "AWS::DataPipeline::Pipeline": {"PipelineObjects": _ALL, "ParameterValues": _ALL},
    "AWS::ECS::TaskDefinition": {"ContainerDefinitions": _CONTAINER},
    "AWS::EMR::Cluster": {"BootstrapActions": _ALL, "Steps": _ALL, "CustomAmiId": _ALL},
    "AWS::EMRServerless::Application": {"ImageConfiguration": _ALL},
    "AWS::Events::Rule": {"Targets": _ALL},
    "AWS::Glue::DevEndpoint": dict.fromkeys(
        ("ExtraPythonLibsS3Path", "ExtraJarsS3Path", "PublicKey", "PublicKeys", "Arguments"), _ALL
    ),
    "AWS::Glue::Job": {"Command": _ALL, "DefaultArguments": _ALL, "NonOverridableArguments": _ALL},
    "AWS::KinesisAnalyticsV2::Application": {"ApplicationConfiguration": frozenset({"CodeContent"})},
    "AWS::Lambda::Alias": dict.fromkeys(("FunctionVersion", "RoutingConfig"), _ALL),
    "AWS::Lambda::Function": {
        **dict.fromkeys(("Code", "Layers", "Handler", "ImageConfig"), _ALL),
        "Environment": _VARIABLES,
    },
    "AWS::Pipes::Pipe": dict.fromkeys(("Target", "TargetParameters", "Enrichment", "EnrichmentParameters"), _ALL),
    "AWS::SageMaker::Model": {"PrimaryContainer": _MODEL, "Containers": _MODEL},
    "AWS::SageMaker::NotebookInstance": dict.fromkeys(
        ("LifecycleConfigName", "DefaultCodeRepository", "AdditionalCodeRepositories"), _ALL
    ),
    "AWS::SageMaker::Pipeline": {"PipelineDefinition": _ALL},
    "AWS::Scheduler::Schedule": {"Target": _ALL},
    "AWS::Serverless::Function": {
        **dict.fromkeys(("CodeUri", "InlineCode", "ImageUri", "Layers", "Handler", "ImageConfig"), _ALL),
        "Environment": _VARIABLES,
    },
    "AWS::StepFunctions::StateMachine": dict.fromkeys(
        ("Definition", "DefinitionString", "DefinitionS3Location", "DefinitionSubstitutions"), _ALL
    ),
    "AWS::Synthetics::Canary": {"Code": _ALL},
    # the SDK calls that the CDK's own handler makes with its role
    "Custom::AWS": {"Create": _ALL, "Update": _ALL, "Delete": _ALL},
}
"""Type -> property that decides what runs with the resource's role -> the deciding keys below it, all if none.

Source: each type's page in the CloudFormation template reference; for Events, Scheduler and Pipes the input of a target
can be a command (a task's overrides, a document's parameters).
"""

_AS_ROOT: Final[Mapping[str, tuple[str, Mapping[str, frozenset[str]]]]] = {
    "AWS::AutoScaling::LaunchConfiguration": ("on its instances, as root", dict.fromkeys(_BOOT, _ALL)),
    **{
        f"AWS::CloudFormation::{kind}DefaultVersion": (
            "in all templates that use the type",
            dict.fromkeys(("VersionId", "TypeVersionArn", "VersionArn"), _ALL),
        )
        for kind in ("Hook", "Module", "Resource")
    },
    "AWS::CodeDeploy::DeploymentGroup": ("on its instances, as root", {"Deployment": _ALL}),
    "AWS::EC2::Instance": ("on the instance, as root", {"UserData": _ALL}),
    "AWS::EC2::LaunchTemplate": ("on every instance that it starts, as root", {"LaunchTemplateData": _BOOT}),
    "AWS::EMR::Step": ("on a cluster", {"HadoopJarStep": _ALL}),
    "AWS::ImageBuilder::Component": ("in the images built with it, as root", {"Data": _ALL, "Uri": _ALL}),
    "AWS::ImageBuilder::ContainerRecipe": (
        "in the images built by it, as root",
        dict.fromkeys(("Components", "ParentImage", "DockerfileTemplateData", "DockerfileTemplateUri"), _ALL),
    ),
    "AWS::ImageBuilder::ImageRecipe": (
        "in the images built by it, as root",
        dict.fromkeys(("Components", "ParentImage", "AdditionalInstanceConfiguration"), _ALL),
    ),
    "AWS::SageMaker::Cluster": (
        "on its nodes, as root",
        {"InstanceGroups": _SCRIPTS, "RestrictedInstanceGroups": _SCRIPTS},
    ),
    "AWS::SageMaker::CodeRepository": ("in the notebooks that use it", {"GitConfig": _ALL}),
    "AWS::SageMaker::ImageVersion": ("in the apps that use it", {"BaseImage": _ALL}),
    "AWS::SageMaker::NotebookInstanceLifecycleConfig": (
        "on the notebooks that use it, as root",
        {"OnStart": _ALL, "OnCreate": _ALL},
    ),
    "AWS::SageMaker::StudioLifecycleConfig": ("in the apps that use it", {"StudioLifecycleConfigContent": _ALL}),
    "AWS::SecretsManager::RotationSchedule": (
        "with the secret's value",
        dict.fromkeys(("RotationLambdaARN", "HostedRotationLambda"), _ALL),
    ),
    "AWS::SSM::Association": (
        "on the nodes that it names, as root",
        dict.fromkeys(("Name", "DocumentVersion", "Parameters", "Targets", "InstanceId"), _ALL),
    ),
    "AWS::SSM::Document": ("on its targets, as root", {"Content": _ALL, "Attachments": _ALL}),
    "AWS::SSM::MaintenanceWindowTarget": ("on other nodes, by the window's tasks, as root", {"Targets": _ALL}),
    "AWS::SSM::MaintenanceWindowTask": (
        "on the nodes that it names, as root",
        dict.fromkeys(("TaskArn", "TaskInvocationParameters", "TaskParameters", "Targets"), _ALL),
    ),
}
"""Type -> where its code runs, and the properties that decide it as in _AS_ROLE: judged without a role.

Source: SSM, "AWS-RunShellScript" runs as root; SageMaker, "Customization of a notebook instance" and "Lifecycle
scripts" of HyperPod: as root; EC2, "Run commands when you launch an EC2 instance": user data runs as root.
"""
_BEGINS_AT_ONCE: Final = ("AWS::SSM::Association", "AWS::SSM::MaintenanceWindowTask", "AWS::EMR::Step")
"""Types that run their code on existing resources."""


_UPLOADS: Final = (
    *("SourceObjectKeys", "SourceBucketNames", "SourceMarkers"),
    *("DestinationBucketName", "DestinationBucketKeyPrefix"),
)
_BUCKET_KEYS: Final = frozenset({"S3Bucket", "Bucket", "BucketName"})


class OtherCode(NamedTuple):
    """Code that changes: a sentence that begins with ``subject``, and the roles with which it runs.

    ``is_grave`` is whether it gives more access; other code with a role that can do little is listed, too.
    """

    subject: str
    sentence: str
    place: Place
    roles: tuple[Principal, ...] = ()
    is_grave: bool = True
    properties: tuple[str, ...] = ()


def other_code(before: View, after: View, changes: Sequence[ResourceChange], power: Power) -> Iterator[OtherCode]:
    """Find unchanged resources that run other code with a powerful identity or as root, or code from another bucket."""
    for change in changes:
        resource = change.after
        if resource is None:
            continue
        old = before.find(after.token(resource))
        if old is None:
            if before.resources and resource.type in _BEGINS_AT_ONCE:
                where, names = _AS_ROOT[resource.type]
                said = "runs code on existing resources"
                stated = _stated(after, resource, names)
                yield _other_code(after, resource, f"{{}} {said}: {where} ({', '.join(stated)})", stated, names)
            continue
        was, will = before.properties(old), after.properties(resource)
        if resource.type in _AS_ROOT:
            where, names = _AS_ROOT[resource.type]
            if found := _different(was, will, names):
                yield _other_code(
                    after, resource, f"{{}} runs other code {where} ({', '.join(found)} changes)", found, names
                )
        elif resource.type == _UPLOAD:
            found = _different(was, will, dict.fromkeys(_UPLOADS, _ALL))
            if found and _is_run_from(after, will):
                said = f"{{}} uploads other files to a bucket from which code is run ({', '.join(found)} changes)"
                yield _other_code(after, resource, said, found)
        else:
            yield from _under_an_identity(before, after, resource, (was, will), power)


def _under_an_identity(
    before: View,
    after: View,
    resource: Resource,
    properties: tuple[Mapping[str, Any], Mapping[str, Any]],
    power: Power,
) -> Iterator[OtherCode]:
    """Return other code with its most serious aspect: its identity, the resources that depend on it, or its origin."""
    was, will = properties
    names = {"Content": _ALL} if resource.type == _LAYER else _AS_ROLE.get(resource.type, {})
    found = _different(was, will, names)
    if not found:
        return
    said = f"{{}} runs other code ({', '.join(found)} changes)"
    if roles := _roles(after, resource, power):
        is_powerful = any(each in power for each in roles)
        whom = "that can get every permission" if is_powerful else "of which no template says what it may do"
        yield _other_code(after, resource, f"{said} as an identity {whom}", found, names, roles)
    elif _answers(after, resource):
        yield _other_code(after, resource, f"{said} and decides the result of custom resources", found, names)
    elif buckets := _buckets(after, will, names) - _buckets(before, was, names):
        yield _other_code(
            after, resource, f"{{}} runs code from another bucket: {', '.join(sorted(buckets))}", found, names
        )
    elif weak := _any_roles(after, resource, power):
        yield _other_code(after, resource, said, found, names, weak)._replace(is_grave=False)


def _other_code(  # noqa: PLR0917 - what is told, then by what
    view: View,
    resource: Resource,
    said: str,
    found: Sequence[str],
    names: Mapping[str, frozenset[str]] | None = None,
    roles: tuple[Principal, ...] = (),
) -> OtherCode:
    name = view.name(resource)
    keys = {each: sorted((names or {}).get(each, _ALL)) for each in found}
    by = [f"{each}.{key}" for each, below in keys.items() for key in below] or list(found)
    # what is said may itself contain a value with braces
    return OtherCode(name, said.replace("{}", name, 1), place_of(resource), roles, properties=tuple(by))


def _stated(view: View, resource: Resource, names: Mapping[str, frozenset[str]]) -> list[str]:
    properties = view.properties(resource)
    return [name for name in names if name in properties]


def _different(was: Mapping[str, Any], will: Mapping[str, Any], names: Mapping[str, frozenset[str]]) -> list[str]:
    """Return the properties that newly decide what runs; not those only removed from a list, or moved in it."""
    found = []
    for name, keys in names.items():
        old, new = (_parts(each.get(name), keys) for each in (was, will))
        if old != new if not keys else new - old:
            found.append(name)
    return found


def _parts(value: Any, keys: frozenset[str]) -> set[str]:
    """Return the deciding values below a property, each container or group on its own, as text."""
    if not keys:
        return {json.dumps(value, sort_keys=True)}
    found: set[str] = set()
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, list):
            pending += item
        elif isinstance(item, dict):
            decides = {key: _bare(each) for key, each in item.items() if key in keys and each not in (None, [], "")}
            if decides:
                found.add(json.dumps(decides, sort_keys=True))
            pending += [each for key, each in item.items() if key not in keys]
    return found


def _bare(value: Any) -> Any:
    return _OF_AWS if isinstance(value, str) and value.startswith(_OF_AWS) else value


def _roles(view: View, resource: Resource, power: Power) -> tuple[Principal, ...]:
    """Return the powerful identities with which the code of a resource runs."""
    return tuple(sorted({role for each in _running(view, resource) for role in power.runs_as(each)}))


def _any_roles(view: View, resource: Resource, power: Power) -> tuple[Principal, ...]:
    """Return the roles of the templates with which it runs, whatever they may do."""
    return tuple(sorted({role for each in _running(view, resource) for role in power.acting.get(view.token(each), ())}))


def _running(view: View, resource: Resource) -> list[Resource]:
    """Return the resources that run the code that a resource decides."""
    if resource.type == _LAYER:
        layer = view.token(resource)
        return [
            each
            for each in view.of_type("AWS::Lambda::Function", "AWS::Serverless::Function")
            if layer in map(text, items(view.properties(each).get("Layers")))
        ]
    runs = [resource]
    for name in ("ServiceToken", *(("FunctionName",) if resource.type == _ALIAS else ())):
        if found := TOKEN.match(text(view.properties(resource).get(name, ""))):
            handler = view.find(f"${{{found[1]}/{found[2]}}}")
            runs += [handler] if handler is not None else []
    return runs


def _answers(view: View, resource: Resource) -> bool:
    """Whether a function handles custom resources: for them it acts with its role, and gives values to other
    resources."""
    token = view.token(resource)
    return any(
        (found := TOKEN.match(text(view.properties(each)["ServiceToken"]))) and f"${{{found[1]}/{found[2]}}}" == token
        for each in view.resources
        if "ServiceToken" in view.properties(each)
    )


def _is_run_from(view: View, upload: Mapping[str, Any]) -> bool:
    """Whether a resource of the templates runs files of an upload's bucket, or they do not show which bucket it is."""
    bucket = text(upload.get("DestinationBucketName"))
    if "${" in bucket and not TOKEN.fullmatch(bucket):
        return True
    name = re.sub(r"\.[^{}/.]+\}$", "}", bucket)
    tables: dict[str, Mapping[str, frozenset[str]]] = {type_: names for type_, (_, names) in _AS_ROOT.items()}
    for type_, names in {**_AS_ROLE, **tables}.items():
        for each in view.of_type(type_):
            properties = view.properties(each)
            if any(name in json.dumps(properties.get(one)) for one in names):
                return True
    return False


def _buckets(view: View, properties: Mapping[str, Any], names: Mapping[str, frozenset[str]]) -> set[str]:
    """Return the buckets that code is read from, without those of the templates and of the CDK's bootstrap."""
    found: set[str] = set()
    pending: list[Any] = [properties.get(name) for name in names]
    while pending:
        item = pending.pop()
        if isinstance(item, list):
            pending += item
        elif isinstance(item, dict):
            found |= {text(value) for key, value in item.items() if key in _BUCKET_KEYS}
            pending += item.values()
        elif isinstance(item, str) and item.startswith("s3://"):
            found.add(item.removeprefix("s3://").partition("/")[0])
    account = re.escape(view.account) if view.account else r"(?:\d{12}|\$\{AWS::AccountId\})"
    own = re.compile(rf"cdk-[a-z0-9]{{1,10}}-assets-(?:{account}|\$\{{AWS::AccountId\}})-.+")
    return {each for each in found if not TOKEN.match(each) and not own.fullmatch(each)}
