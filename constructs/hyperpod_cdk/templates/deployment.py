"""What 'cdk deploy' uses of a cloud assembly in addition to a stack's template: roles, assets, notifications.

None of it is in a template, and all of it decides what is deployed, and with which role (aws-cdk 2.1148: the properties
of ``aws:cloudformation:stack``, the manifests of assets, and how it selects stacks and uploads templates).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hyperpod_cdk.file_reading import read_bytes, resolved
from hyperpod_cdk.templates.assets import MOST_BYTES, place_of

ASSETS: Final = "cdk:asset-manifest"
TOPICS: Final = "notificationArns"
"""The setting with the topics that receive the events of a stack."""


_READ: Final = (
    *("templateFile", "stackName", "displayName", "tags", "terminationProtection", "stackTemplateAssetObjectUrl"),
    *("additionalDependencies", "requiresBootstrapStackVersion", "validateOnSynth"),
)
"""Members of a stack's artifact that need no comparison here: read elsewhere, or read only by the CDK CLI."""

_OF_AN_IMAGE: Final = ("directory", "dockerFile", "dockerBuildTarget", "dockerBuildArgs", "platform")
"""Members of an image's source that refer only to the assembly and the image."""

_ROLES: Final = {
    "assumeRoleArn": "deploy",
    "cloudFormationExecutionRoleArn": "cfn-exec",
    "lookupRole.arn": "lookup",
}
_PARTITION: Final = re.compile(r"\barn:(?:aws[a-z-]*|\$\{AWS::Partition\}):")


@dataclass(frozen=True, order=True)
class Destination:
    """The destination of an asset: a bucket or repository, its Region, and the role of the upload."""

    place: str
    region: str
    by: str

    def __str__(self) -> str:
        return f"{self.place} in {self.region} as {self.by}"


Setting = tuple[str | Destination, ...]
"""A setting, one item for each thing that it names."""


def shown(setting: Setting) -> str:
    """Return a setting in one line; empty if it names nothing."""
    return "; ".join(map(str, setting))


class DeploymentError(Exception):
    """The deployment does not match the templates of the assembly; the text is one line."""


def settings(
    folder: Path, top: Path, artifacts: Mapping[str, Mapping[str, Any]], key: str, template: Mapping[str, Any]
) -> dict[str, Setting]:
    """Return the settings of one stack's artifact by name, without empty ones that have no effect.

    ``folder`` contains its manifest, ``top`` is the whole assembly, ``template`` is the stack's. Raises DeploymentError
    if another file is uploaded as its template, or if an asset is created by a command or from files outside of the
    assembly.
    """
    artifact = artifacts[key]
    properties = dict(artifact.get("properties") or {})
    found = {
        name: value
        for name, value in properties.items()
        if name not in _READ
        and name != "lookupRole"
        # an empty list of topics removes those of a stack, a missing one leaves them
        and (value not in (None, "", [], {}) or (name == TOPICS and value == []))
    }
    role = properties.get("lookupRole")
    if isinstance(role, dict):
        found |= {
            f"lookupRole.{name}": value for name, value in role.items() if name != "requiresBootstrapStackVersion"
        }
    manifests = [_manifest(folder, name, each) for name, each in artifacts.items() if each.get("type") == ASSETS]
    needed = {*_listed(artifact.get("dependencies")), *_listed(properties.get("additionalDependencies"))}
    own = [
        _manifest(folder, name, each)
        for name, each in artifacts.items()
        if each.get("type") == ASSETS and (name in needed or not needed)
    ]
    for manifest in manifests:
        _refuse_foreign_sources(folder, top, manifest)
    url = properties.get("stackTemplateAssetObjectUrl")
    if url:
        _refuse_another_template(folder, key, str(properties.get("templateFile")), str(url), manifests)
    told = {name: _items(value) for name, value in found.items()}
    if destinations := sorted({each for manifest in own for each in _destinations(manifest)}):
        told["assets"] = tuple(destinations)
    if unused := sorted(each for manifest in own for each in _unused(folder, manifest, template, str(url))):
        told["unusedAssets"] = tuple(unused)
    images = [each.get("source") for manifest in own for each in _mapped(manifest.get("dockerImages")).values()]
    if more := [rest for each in images if (rest := {k: v for k, v in _mapped(each).items() if k not in _OF_AN_IMAGE})]:
        told["dockerImages"] = _items(more)
    return told


def is_usual(name: str, setting: Setting, *, account: str, region: str) -> bool:
    """Whether a setting names resources of 'cdk bootstrap' in the stack's own account and Region.

    The names are those of the bootstrap template (aws-cdk, lib/api/bootstrap/bootstrap-template.yaml), with any
    qualifier.
    """
    own = f"{re.escape(account) if account else '[^-]+'}-{re.escape(region) if region else '.+'}"
    role = rf"arn:\*:iam::{re.escape(account) if account else '[^:]+'}:role/cdk-[a-z0-9]{{1,10}}-{{}}-role-{own}"
    if name in _ROLES:
        forms = [role.replace("{}", _ROLES[name])]
    elif name in ("bootstrapStackVersionSsmParameter", "lookupRole.bootstrapStackVersionSsmParameter"):
        forms = [r"/cdk-bootstrap/[a-z0-9]{1,10}/version"]
    elif name == "assets":
        forms = [
            rf"cdk-[a-z0-9]{{1,10}}-(?:container-)?assets-{own}",
            re.escape(region) if region else ".+",
            role.replace("{}", "(?:file|image)-publishing"),
        ]
    else:
        return False
    return bool(setting) and all(
        re.fullmatch(form, _filled_in(text, account=account, region=region))
        for each in setting
        for form, text in zip(forms, _texts(each), strict=True)
    )


def tags_of_project(configuration: Mapping[str, Any]) -> dict[str, str]:
    """Return the tags that a project's cdk.json adds to every stack instead of the app's own; empty if it has none.

    The CDK CLI uses ``tags`` only if they are a list, and otherwise none (CDK CLI 2.1148.1, ``deploy``). Raises
    DeploymentError if an item is not a key with a value, which CloudFormation refuses.
    """
    stated = configuration.get("tags")
    if not isinstance(stated, list):
        return {}
    for each in stated:
        if not (isinstance(each, dict) and isinstance(each.get("Key"), str) and isinstance(each.get("Value"), str)):
            raise DeploymentError(f'tags in cdk.json: must be {{"Key": "...", "Value": "..."}}, got {json.dumps(each)}')
    return {each["Key"]: each["Value"] for each in stated}


def topics(settings: Mapping[str, Setting], *, account: str, region: str) -> frozenset[str]:
    """Return the topics that receive the events of a stack, from its settings."""
    return frozenset(comparable(settings.get(TOPICS, ()), account=account, region=region))


def comparable(setting: Setting, *, account: str, region: str) -> tuple[str, ...]:
    """Return a setting with its placeholders filled in, so that different forms of one are the same."""
    return tuple(_filled_in(str(each), account=account, region=region) for each in setting)


def _texts(item: str | Destination) -> tuple[str, ...]:
    return (item,) if isinstance(item, str) else (item.place, item.region, item.by)


def _filled_in(text: str, *, account: str, region: str) -> str:
    text = _PARTITION.sub("arn:*:", text)
    for placeholder, own in (("${AWS::AccountId}", account), ("${AWS::Region}", region)):
        text = text.replace(placeholder, own or placeholder)
    return text


def _manifest(folder: Path, name: str, artifact: Mapping[str, Any]) -> dict[str, Any]:
    given = _mapped(artifact.get("properties")).get("file")
    if not given:
        # the CDK CLI refuses it, and would have nothing to upload
        return {}
    file = folder / str(given)
    if not resolved(file).is_relative_to(resolved(folder)) or not file.is_file():
        raise DeploymentError(f"{folder / 'manifest.json'}: the asset manifest of {name} is not a file of its folder")
    try:
        return _mapped(json.loads(read_bytes(file, most=MOST_BYTES)))
    except (OSError, ValueError, RecursionError):
        raise DeploymentError(f"{file}: not JSON; is the file half-written?") from None


def _refuse_foreign_sources(folder: Path, top: Path, manifest: Mapping[str, Any]) -> None:
    for kind in ("files", "dockerImages"):
        for name, asset in _mapped(manifest.get(kind)).items():
            source = _mapped(_mapped(asset).get("source"))
            if source.get("executable"):
                raise DeploymentError(
                    f"{folder}: 'cdk deploy' would run a command for the asset {name}: "
                    f"{_text(source['executable'])}; use an asset that is a file of the assembly"
                )
            path = str(source.get("path" if kind == "files" else "directory", ""))
            paths = [folder / path, folder / path / str(source.get("dockerFile", ""))]
            if any(not resolved(each).is_relative_to(resolved(top)) for each in paths):
                raise DeploymentError(
                    f"{folder}: the asset {name} is created from a path outside of the assembly: {path}"
                )


def _refuse_another_template(folder: Path, key: str, template: str, url: str, manifests: list[dict[str, Any]]) -> None:
    """An upload stays there with its name: only one whose name is the file's SHA-256 is certain to be the file."""
    said = f"{folder / 'manifest.json'}: what is deployed of {key} is not {template}"
    sources = [
        _mapped(each.get("source"))
        for manifest in manifests
        for each in map(_mapped, _mapped(manifest.get("files")).values())
        if any(url == place_of(one) for one in _mapped(each.get("destinations")).values())
    ]
    if not sources:
        raise DeploymentError(f"{said}: {url} is not one of its assets")
    if any(each.get("path") != template or each.get("packaging", "file") != "file" for each in sources):
        raise DeploymentError(f"{said}: {url} is created from {_text([each.get('path') for each in sources])}")
    file = folder / template
    digest = hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""
    if not digest or digest not in url.rpartition("/")[2]:
        raise DeploymentError(f"{said}: {url} does not name its SHA-256 {digest}, so that it may be an older upload")


def _destinations(manifest: Mapping[str, Any]) -> Iterator[Destination]:
    for kind in ("files", "dockerImages"):
        for asset in _mapped(manifest.get(kind)).values():
            for each in map(_mapped, _mapped(_mapped(asset).get("destinations")).values()):
                where = each.get("bucketName") or each.get("repositoryName")
                more = {k: v for k, v in each.items() if k in ("assumeRoleExternalId", "assumeRoleAdditionalOptions")}
                by = f"{each.get('assumeRoleArn', 'the identity that deploys')}{f' with {_text(more)}' if more else ''}"
                yield Destination(str(where), str(each.get("region", "its region")), by)


def _unused(folder: Path, manifest: Mapping[str, Any], template: Mapping[str, Any], url: str) -> Iterator[str]:
    """Return the names of uploads that no property of the stack, or of a nested one, uses."""
    texts = [json.dumps([_mapped(each).get("Properties") for each in _mapped(template.get("Resources")).values()])]
    for asset in _mapped(manifest.get("files")).values():
        path = str(_mapped(_mapped(asset).get("source")).get("path"))
        if path.endswith(".nested.template.json") and (folder / path).is_file():
            texts.append((folder / path).read_text(encoding="utf-8", errors="replace"))
    for kind in ("files", "dockerImages"):
        for asset in _mapped(manifest.get(kind)).values():
            for each in map(_mapped, _mapped(_mapped(asset).get("destinations")).values()):
                name = str(each.get("objectKey") or each.get("imageTag") or "")
                if name and place_of(each) != url and not any(name in one for one in texts):
                    yield name


def _items(value: object) -> Setting:
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return tuple(value)
    return (_text(value),)


def _text(value: object) -> str:
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return "; ".join(value)
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapped(value: object) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}
