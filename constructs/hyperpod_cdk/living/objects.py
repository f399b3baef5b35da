"""Kubernetes objects that the stacks applied, as the API server has them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from urllib.parse import quote

from hyperpod_cdk.checks.answers import NotAnswered, Refused
from hyperpod_cdk.living.facts import holds_unknown, text
from hyperpod_cdk.living.kubernetes import Kubernetes
from hyperpod_cdk.living.look import Kind, Look, Properties, Stated, reading
from hyperpod_cdk.templates.values import UNKNOWN_PART

MANIFEST: Final = "Custom::AWSCDK-EKS-KubernetesResource"
_WHAT_IT_IS: Final = ("apiVersion", "kind", "status")
_SECRET: Final = ("data", "stringData")
"""Parts of a Secret that are neither compared nor shown."""

_SUFFIXES: Final = {
    **{
        name: Decimal(1000) ** power for power, name in enumerate(("n", "u", "m", "", "k", "M", "G", "T", "P", "E"), -3)
    },
    **{name: Decimal(1024) ** power for power, name in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)},
}
_QUANTITY: Final = re.compile(r"([+-]?[0-9]+(?:\.[0-9]*)?)(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?")
"""Kubernetes API reference, Quantity."""


def _objects(manifest: Any) -> list[dict[str, Any]]:
    """Return the objects of a manifest, and the items of lists one by one. Raises NotAnswered if it is unknown."""
    if not isinstance(manifest, str):
        raise NotAnswered("its manifest has a value that is known only at deployment")
    try:
        parsed = json.loads(manifest)
    except ValueError:
        raise NotAnswered("its manifest is not valid JSON") from None
    return list(_flat(parsed if isinstance(parsed, list) else [parsed]))


def _flat(items: Sequence[Any]) -> Iterator[dict[str, Any]]:
    for each in items:
        if isinstance(each, dict) and each.get("kind") == "List":
            yield from _flat(each.get("items", []))
        elif isinstance(each, dict):
            yield each


def _called(item: Mapping[str, Any]) -> str:
    metadata = item.get("metadata") or {}
    space = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{item.get('kind')} {space}{metadata.get('name')}"


def _compared(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the compared parts of an object: all that it states except its identity and its secrets."""
    left = (*_WHAT_IT_IS, *(_SECRET if item.get("kind") == "Secret" else ()))
    metadata = {key: each for key, each in (item.get("metadata") or {}).items() if key in ("labels", "annotations")}
    rest = {key: each for key, each in item.items() if key not in (*left, "metadata")}
    return {"Name": _called(item), **({"metadata": metadata} if metadata else {}), **rest}


def _of_manifest(stated: Stated) -> Properties:
    return {"Objects": [_compared(each) for each in _objects(stated.properties.get("Manifest"))]}


def _applied(look: Look) -> Properties | None:
    """Read each object of the deployed manifest."""
    api = look.aws
    if not isinstance(api, Kubernetes):
        raise NotAnswered("Kubernetes was not asked")
    cluster = str(look.properties["ClusterName"])
    found = []
    for each in _objects(look.properties.get("Manifest")):
        try:
            there = api.kubernetes_read(cluster, _path(api, cluster, each))
        except Refused as refused:
            if refused.code != "404":
                raise
            continue
        with reading(_called(each)):
            found.append(_restricted(_compared(each), {**_compared(there), "Name": _called(each)}))
    return {"Objects": found}


def _path(api: Kubernetes, cluster: str, item: Mapping[str, Any]) -> str:
    """Return the path of an object: the API server says the name of its kind, and whether the kind has namespaces."""
    version, kind = str(item.get("apiVersion")), str(item.get("kind"))
    group = f"/apis/{version}" if "/" in version else f"/api/{version}"
    known = api.kubernetes_read(cluster, group)
    with reading(f"the kinds of {version}"):
        rows = [row for row in known["resources"] if row["kind"] == kind and "/" not in row["name"]]
        if not rows:
            raise Refused(f"the API server has no {kind} of {version}", code="404")
        metadata = item["metadata"]
        space = f"/namespaces/{quote(str(metadata.get('namespace') or 'default'), safe='')}"
        return (
            f"{group}{space if rows[0]['namespaced'] else ''}/{rows[0]['name']}/{quote(str(metadata['name']), safe='')}"
        )


def _restricted(stated: Any, there: Any) -> Any:
    """Return the API server's values for what a manifest states; its defaults and additions of others are no drift."""
    if isinstance(stated, Mapping) and isinstance(there, Mapping):
        return {key: _restricted(each, there[key]) for key, each in stated.items() if key in there}
    if isinstance(stated, list) and isinstance(there, list):
        names = [each.get("name") if isinstance(each, Mapping) else None for each in (*stated, *there)]
        if all(names) and stated:
            rows = {each["name"]: each for each in stated}
            return [_restricted(rows.get(each["name"], each), each) for each in there]
        if len(stated) == len(there):
            return [_restricted(*each) for each in zip(stated, there, strict=True)]
        return there
    return stated if _are_equal(stated, there) or _may_be(stated, there) else there


def _may_be(stated: Any, there: Any) -> bool:
    """Whether a text with parts that are known only at deployment can be the actual one."""
    if not isinstance(stated, str) or not isinstance(there, str) or not holds_unknown(stated):
        return False
    pattern = ".*".join(re.escape(each) for each in UNKNOWN_PART.split(stated))
    return re.fullmatch(pattern, there, re.DOTALL) is not None


def _are_equal(stated: Any, there: Any) -> bool:
    """Whether two plain values are equal: the API server writes quantities in its own form."""
    if isinstance(stated, (Mapping, list)) or isinstance(there, (Mapping, list)):
        return False
    one, other = text(stated), text(there)
    return one == other or (None is not _amount(one) == _amount(other))


def _amount(value: str) -> Decimal | None:
    found = _QUANTITY.fullmatch(value)
    if found is None:
        return None
    try:
        return Decimal(found[1]) * _SUFFIXES[found[2] or ""]
    except (InvalidOperation, ValueError):
        return None


KINDS: Final[Mapping[str, Kind]] = {
    MANIFEST: Kind(
        properties=("ClusterName", "Manifest"),
        read=_applied,
        state=_of_manifest,
        is_sent_whole=True,
        resent="kubectl applies the whole manifest",
    ),
}
