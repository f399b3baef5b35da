"""Whether an API server would take a manifest, and keep all of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate.utils
import referencing
from jsonschema.exceptions import ValidationError, best_match
from jsonschema.protocols import Validator

from hyperpod_cdk.catalog import kubernetes
from hyperpod_cdk.workloads.admission.quantities import amount

Manifest = Mapping[str, Any]

FOLDER = Path(__file__).parent / "crds"
SOURCES: list[dict[str, Any]] = json.loads((FOLDER / "sources.json").read_text(encoding="utf-8"))
KUBERNETES_VERSIONS = (kubernetes.hyperpod_versions()[0], kubernetes.hyperpod_versions()[-1])
"""The oldest and the newest: a pod that both take is taken by those between them."""

_CUSTOM = {(source["api_version"], source["kind"]): source["file"] for source in SOURCES}
_LABEL_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_DNS_SUBDOMAIN = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_PORT_NAME = re.compile(r"(?=.*[a-z])[a-z0-9]([-a-z0-9]{0,13}[a-z0-9])?")
_NATIVE = ("cpu", "memory", "ephemeral-storage")


def check(*manifests: Manifest) -> None:
    """Raise an AssertionError with everything that an API server would refuse or drop in ``manifests``.

    Custom kinds are held against their definitions, pods inside them and Kubernetes' own kinds against the schemas of
    the oldest and the newest version that HyperPod takes, unknown fields included, and all of them against rules that
    API servers have beside their schemas: labels, quantities, extended resources, volumes, tolerations, affinities.
    """
    found = [problem for manifest in manifests for problem in problems(manifest)]
    assert not found, "\n".join(found)


def problems(manifest: Manifest) -> list[str]:
    """Return what is wrong with a manifest, ``KIND NAME: path: what``, nothing for one that is in order."""
    metadata = manifest.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    # what tuples are in Python, and whether a key is text, shows only in the document that kubectl sends
    document = json.loads(json.dumps(manifest))
    found = [*_schema_problems(document)]
    if not found:
        found += _metadata_problems(document["metadata"], "metadata", needs_name=True)
        for path, template in pod_templates(document):
            found += _pod_problems(template, path)
    return [f"{manifest.get('kind')} {name}: {problem}" for problem in found]


def pod_templates(manifest: Manifest) -> Iterator[tuple[str, Manifest]]:
    """Yield path and content of every pod template of a manifest; a pod is its own."""
    spec = manifest.get("spec", {})
    if manifest.get("kind") == "Pod":
        yield "", manifest
    for field in ("mpiReplicaSpecs", "pytorchReplicaSpecs"):
        for role, replica in spec.get(field, {}).items():
            yield f"spec.{field}.{role}.template", replica.get("template", {})
    for index, replica in enumerate(spec.get("replicaSpecs", ())):
        yield f"spec.replicaSpecs[{index}].template", replica.get("template", {})
    if "template" in spec:
        yield "spec.template", spec["template"]


def _schema_problems(document: Manifest) -> Iterator[str]:
    key = (str(document.get("apiVersion")), str(document.get("kind")))
    if key not in _CUSTOM:
        yield from _native_problems(*key, document)
        return
    yield from _errors(_custom(_CUSTOM[key]), document)
    yield from _native_problems(
        "v1", "ConfigMap", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": document.get("metadata")}
    )
    for path, template in pod_templates(document):
        pod = {"apiVersion": "v1", "kind": "PodTemplate", "template": template}
        yield from (f"{path}: {problem}" for problem in _native_problems("v1", "PodTemplate", pod))


def _native_problems(api_version: str, kind: str, document: Manifest) -> Iterator[str]:
    for version in KUBERNETES_VERSIONS:
        validator = _native(api_version, kind, version)
        if validator is None:
            yield f"Kubernetes {version} has no {kind} of {api_version}"
        else:
            yield from (f"{problem} (Kubernetes {version})" for problem in _errors(validator, document))


def _errors(validator: Validator, document: Manifest) -> Iterator[str]:
    for error in validator.iter_errors(document):
        deepest = best_match([error])
        yield f"{deepest.json_path.removeprefix('$').removeprefix('.')}: {deepest.message}"


def _unique_keys(_: Validator, keys: list[str], instance: object, __: object) -> Iterator[ValidationError]:
    if isinstance(instance, list):
        seen = [tuple(str(item.get(key)) for key in keys) for item in instance if isinstance(item, dict)]
        for twice in sorted({key for key in seen if seen.count(key) > 1}):
            yield ValidationError(f"{', '.join(map(repr, twice))} stands there more than once")


_Strict: Any = jsonschema.validators.extend(  # type: ignore[no-untyped-call]  # the stubs leave it untyped
    jsonschema.Draft202012Validator, {"x-kubernetes-list-map-keys": _unique_keys}
)


@cache
def _remembering(version: str) -> Any:  # noqa: ARG001 - one memory for each
    """A validator of one version that looks at equal parts of manifests once: hundreds of them differ in few places."""
    good: set[tuple[str, str]] = set()
    look = _Strict.VALIDATORS["$ref"]

    def reference(validator: Validator, target: str, instance: object, schema: object) -> Iterator[ValidationError]:
        key = target, repr(instance)
        if key in good:
            return
        found = list(look(validator, target, instance, schema))
        if not found:
            good.add(key)
        yield from found

    return jsonschema.validators.extend(_Strict, {"$ref": reference})  # type: ignore[no-untyped-call]  # as above


@cache
def _custom(file: str) -> Validator:
    validator: Validator = _Strict(json.loads((FOLDER / file).read_text(encoding="utf-8")))
    return validator


@cache
def _native(api_version: str, kind: str, version: str) -> Validator | None:
    group, _, number = api_version.rpartition("/")
    name = "-".join(part for part in (kind.lower(), group.partition(".")[0], number) if part)
    try:
        schema = kubernetes_validate.utils.schema_contents(f"{_folder(version)}/{name}.json", version)
    except FileNotFoundError:
        return None
    validator: Validator = _remembering(version)(schema, registry=_registry(version))
    return validator


@cache
def _registry(version: str) -> referencing.Registry[Any]:
    definitions = kubernetes_validate.utils.schema_contents(f"{_folder(version)}/_definitions.json", version)
    return referencing.Resource.from_contents(definitions) @ referencing.Registry()


def _folder(version: str) -> str:
    return f"kubernetes-json-schema/v{version}.0-local-strict"


def _metadata_problems(metadata: Manifest, path: str, *, needs_name: bool = False) -> Iterator[str]:
    if needs_name and not _DNS_SUBDOMAIN.fullmatch(metadata.get("name", "")):
        yield f"{path}.name: {metadata.get('name')!r} is no DNS subdomain"
    if "namespace" in metadata and not _DNS_LABEL.fullmatch(metadata["namespace"]):
        yield f"{path}.namespace: {metadata['namespace']!r} is no DNS label"
    for key, value in metadata.get("labels", {}).items():
        yield from _label_problems(key, [value], f"{path}.labels")
    for key in metadata.get("annotations", {}):
        yield from _label_problems(key, [], f"{path}.annotations")


def _label_problems(key: str, values: Iterable[str], path: str) -> Iterator[str]:
    prefix, slash, name = key.rpartition("/")
    if not _LABEL_NAME.fullmatch(name) or (slash and not _DNS_SUBDOMAIN.fullmatch(prefix)):
        yield f"{path}: {key!r} is no name of a label"
    for value in values:
        if value and not _LABEL_NAME.fullmatch(value):
            yield f"{path}.{key}: {value!r} is no value of a label"


def _pod_problems(template: Manifest, path: str) -> Iterator[str]:
    spec = template.get("spec", {})
    yield from _metadata_problems(template.get("metadata", {}), f"{path}.metadata")
    containers = [*spec.get("initContainers", ()), *spec.get("containers", ())]
    if not spec.get("containers"):
        yield f"{path}.spec.containers: a pod has none"
    yield from _names([container["name"] for container in containers], f"{path}.spec.containers")
    volumes = {volume["name"]: volume for volume in spec.get("volumes", ())}
    yield from _names([volume["name"] for volume in spec.get("volumes", ())], f"{path}.spec.volumes")
    for name, volume in volumes.items():
        if len(volume) != 2:
            yield f"{path}.spec.volumes.{name}: has {len(volume) - 1} sources"
        yield from _quantity_problems({"sizeLimit": (volume.get("emptyDir") or {}).get("sizeLimit", 0)}, path)
    for container in containers:
        yield from _container_problems(container, f"{path}.spec.containers.{container['name']}", set(volumes))
    for key, value in spec.get("nodeSelector", {}).items():
        yield from _label_problems(key, [value], f"{path}.spec.nodeSelector")
    yield from _toleration_problems(spec.get("tolerations", ()), f"{path}.spec.tolerations")
    yield from _affinity_problems(spec.get("affinity", {}).get("nodeAffinity", {}), f"{path}.spec.affinity")


def _names(names: list[str], path: str) -> Iterator[str]:
    # that each stands there once is part of the schemas
    yield from (f"{path}: {name!r} is no DNS label" for name in names if not _DNS_LABEL.fullmatch(name))


def _container_problems(container: Manifest, path: str, volumes: set[str]) -> Iterator[str]:
    if not container.get("image"):
        yield f"{path}.image: a container has none"
    mounts = container.get("volumeMounts", ())
    yield from (f"{path}.volumeMounts: no volume {m['name']!r}" for m in mounts if m["name"] not in volumes)
    for what, values in (
        ("volumeMounts", [mount["mountPath"] for mount in mounts]),
        ("env", [variable["name"] for variable in container.get("env", ())]),
        ("ports", [port["name"] for port in container.get("ports", ()) if "name" in port]),
    ):
        yield from (f"{path}.{what}: {v!r} stands there more than once" for v in set(values) if values.count(v) > 1)
    for variable in container.get("env", ()):
        if "value" in variable and "valueFrom" in variable:
            yield f"{path}.env.{variable['name']}: has a value and a source"
    for port in container.get("ports", ()):
        if not 1 <= port["containerPort"] <= 65535 or not _PORT_NAME.fullmatch(port.get("name", "a")):
            yield f"{path}.ports: {port} is no port"
    yield from _resource_problems(container.get("resources", {}), f"{path}.resources")


def _quantity_problems(quantities: Manifest, path: str) -> Iterator[str]:
    for name, quantity in quantities.items():
        try:
            if amount(quantity) < 0:
                yield f"{path}.{name}: {quantity!r} is negative"
        except ValueError as error:
            yield f"{path}.{name}: {quantity!r} {error}"


def _resource_problems(resources: Manifest, path: str) -> Iterator[str]:
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    wrong = [*_quantity_problems(limits, f"{path}.limits"), *_quantity_problems(requests, f"{path}.requests")]
    if wrong:
        yield from wrong
        return
    bounds: dict[str, Decimal] = {name: amount(quantity) for name, quantity in limits.items()}
    wanted: dict[str, Decimal] = {name: amount(quantity) for name, quantity in requests.items()}
    for name in sorted({*bounds, *wanted}):
        is_huge = name.startswith("hugepages-")
        if "/" not in name and not is_huge:
            if name not in _NATIVE:
                yield f"{path}: {name!r} is no resource"
            if name in bounds and wanted.get(name, Decimal(0)) > bounds[name]:
                yield f"{path}.requests.{name}: {requests[name]} is more than the limit {limits[name]}"
            continue
        if name not in bounds:
            yield f"{path}.limits.{name}: has to be there, requests alone are not taken"
        elif wanted.get(name, bounds[name]) != bounds[name]:
            yield f"{path}.requests.{name}: {requests[name]} differs from the limit {limits[name]}"
        elif not is_huge and bounds[name] % 1:
            yield f"{path}.limits.{name}: {limits[name]} is no whole number"
        if is_huge and not {"cpu", "memory"} & {*bounds, *wanted}:
            yield f"{path}: {name} needs cpu or memory beside it"


def _toleration_problems(tolerations: Iterable[Manifest], path: str) -> Iterator[str]:
    for toleration in tolerations:
        operator = toleration.get("operator", "Equal")
        is_right = (
            operator in {"Exists", "Equal"}
            and not (operator == "Exists" and toleration.get("value"))
            and not (operator == "Equal" and not toleration.get("key"))
            and toleration.get("effect", "NoSchedule") in {"NoSchedule", "PreferNoSchedule", "NoExecute"}
        )
        if not is_right:
            yield f"{path}: {dict(toleration)} is no toleration"


def _affinity_problems(affinity: Manifest, path: str) -> Iterator[str]:
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {"nodeSelectorTerms": [{}]})
    preferred = affinity.get("preferredDuringSchedulingIgnoredDuringExecution", ())
    if not required["nodeSelectorTerms"]:
        yield f"{path}: no term is required"
    for term in (*required["nodeSelectorTerms"], *(each["preference"] for each in preferred)):
        for expression in term.get("matchExpressions", ()):
            values = expression.get("values", ())
            yield from _label_problems(expression["key"], values, path)
            if expression["operator"] not in {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"}:
                yield f"{path}: {expression['operator']!r} is no operator"
            if (expression["operator"] in {"In", "NotIn"}) != bool(values) and expression["operator"] not in "Gt Lt":
                yield f"{path}: {expression['operator']} with {len(values)} values"
