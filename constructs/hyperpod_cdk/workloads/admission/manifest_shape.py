"""Validates the types of the fields that are read from manifests, and reports the place of a wrong one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from hyperpod_cdk.config.source import MAX_BYTES, render_path
from hyperpod_cdk.file_reading import read_text
from hyperpod_cdk.workloads.admission.quantities import amount
from hyperpod_cdk.yaml_reading import ShallowLoader, values_with_aliases

_MOST_VALUES = 1_000_000
"""The largest number of values in a file after aliases are replaced."""

_Quantities = dict[str, Annotated[object, AfterValidator(amount)]]


class _Part(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True)


class _Resources(_Part):
    requests: _Quantities = {}
    limits: _Quantities = {}


class _Container(_Part):
    resources: _Resources = _Resources()


class _Expression(_Part):
    key: str
    operator: str
    values: list[str] = []


class _Term(_Part):
    match_expressions: list[_Expression] = Field(default=[], alias="matchExpressions")


class _Required(_Part):
    terms: list[_Term] = Field(alias="nodeSelectorTerms")


class _NodeAffinity(_Part):
    required: _Required | None = Field(default=None, alias="requiredDuringSchedulingIgnoredDuringExecution")


class _Affinity(_Part):
    node: _NodeAffinity | None = Field(default=None, alias="nodeAffinity")


class _Pod(_Part):
    containers: list[_Container]
    init_containers: list[_Container] = Field(default=[], alias="initContainers")
    overhead: _Quantities = {}
    node_selector: dict[str, str] = Field(default={}, alias="nodeSelector")
    affinity: _Affinity | None = None


class _Labelled(_Part):
    labels: dict[str, str] = {}


class _Metadata(_Labelled):
    name: str
    namespace: str = ""


class _Template(_Part):
    metadata: _Labelled | None = None
    spec: _Pod


class _Replica(_Part):
    replicas: int = Field(default=1, ge=0)
    template: _Template


class _NamedReplica(_Replica):
    name: str
    spares: int = Field(default=0, ge=0)


class _Mpi(_Part):
    replicas: dict[str, _Replica] = Field(alias="mpiReplicaSpecs")


class _PyTorch(_Part):
    replicas: dict[str, _Replica] = Field(alias="pytorchReplicaSpecs")


class _Elastic(_Part):
    most: int | None = Field(default=None, alias="maxReplicas")
    least: int | None = Field(default=None, alias="minReplicas")
    step: int = Field(default=1, alias="replicaIncrementStep", ge=1)
    values: list[int] = Field(default=[], alias="replicaDiscreteValues")


class _HyperPodPyTorch(_Part):
    replicas: list[_NamedReplica] = Field(alias="replicaSpecs")
    elastic: _Elastic | None = Field(default=None, alias="elasticPolicy")


class _Batch(_Part):
    parallelism: int = Field(default=1, ge=0)
    completions: int | None = Field(default=None, ge=0)
    template: _Template


_SPECS: Mapping[str, type[_Part]] = {
    "MPIJob": _Mpi,
    "PyTorchJob": _PyTorch,
    "HyperPodPyTorchJob": _HyperPodPyTorch,
    "Job": _Batch,
    "Pod": _Pod,
    "Deployment": _Replica,
    "StatefulSet": _Replica,
}


def read_documents(path: Path) -> Sequence[Mapping[str, Any]]:
    """Return the documents of a file of Kubernetes objects, or none if it is another file or not valid YAML."""
    try:
        # as a list, because a generator would raise an error only when it reaches the invalid document
        text = read_text(path, most=MAX_BYTES)
        found = [each for each in yaml.load_all(text, Loader=ShallowLoader) if each is not None]
        total = values_with_aliases(found)
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return ()
    are_objects = all(isinstance(each, dict) and "apiVersion" in each for each in found)
    return found if are_objects and total is not None and total <= _MOST_VALUES else ()


def objects(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the objects of a document: the document, or the items of a list such as ``kubectl get -o yaml`` writes.

    Keys without a value are omitted, as in Kubernetes.

    Raises:
        ValueError: if a field that affects admission does not have the type that Kubernetes requires.
    """
    told = _without_nothing(document)
    kind = str(told.get("kind", ""))
    if not kind:
        raise ValueError("kind: is missing")
    if kind.endswith("List") and "items" in told:
        items = told["items"]
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise ValueError(f"{kind}: items: must be a list of Kubernetes objects, got {items!r}")
        for item in items:
            yield from objects(item)
        return
    _check(_Metadata, told.get("metadata", {}), kind, "metadata")
    _check(_SPECS.get(kind, _Part), told.get("spec", {}), f"{kind} {told['metadata']['name']}", "spec")
    yield told


def _check(model: type[_Part], value: object, of: str, root: str) -> None:
    try:
        model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        if first["type"] == "missing":
            said = "is missing"
        elif first["type"] == "value_error":
            said = first["msg"].removeprefix("Value error, ")
        elif first["type"] in {"model_type", "dict_type"}:
            said = f"must be a mapping, got {first['input']!r}"
        else:
            said = f"{first['msg'].replace('Input should', 'must', 1)}, got {first['input']!r}"
        raise ValueError(f"{of}: {render_path((root, *first['loc']))}: {said}") from None


def _without_nothing(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nothing(each) for key, each in value.items() if each is not None}
    return [_without_nothing(each) for each in value] if isinstance(value, list | tuple) else value
