"""CDK's kubectl provider, played: manifests and charts go into the Kubernetes store, refused as kubectl refuses."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable, Iterable, Mapping
from itertools import takewhile
from typing import Any

import yaml
from botocore.exceptions import ClientError

from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.published import addons, kubernetes, task_governance
from hyperpod_cdk_rehearsal.embedded.resources._calls import ignoring, is_true
from hyperpod_cdk_rehearsal.embedded.resources._played import Answer, Play, PlayFailed
from hyperpod_cdk_rehearsal.embedded.resources._waiting import beats
from hyperpod_cdk_rehearsal.embedded.services import kubernetes_store, webhooks
from hyperpod_cdk_rehearsal.embedded.services.rules import is_autoscaled
from hyperpod_cdk_rehearsal.embedded.services.stores import eks_clusters, hyperpod_cluster_on

NO_CLUSTER = "there is no Kubernetes here; its objects are recorded"
MANIFEST_FILE = "/tmp/manifest.yaml"  # noqa: S108 - the path in kubectl's messages, nothing is written
KUBECONFIG = "/tmp/kubeconfig"  # noqa: S108 - as above
CHART_NAMESPACES = frozenset({"aws-hyperpod", "kubeflow"})
"""Namespaces that the HyperPod dependency chart makes."""
SECONDS_OF_A_SECOND = 60
"""A second of the embedded AWS is about a minute of AWS's (account.yaml), for the handler's patience too."""
JSON_PATH_STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")


def manifest(play: Play) -> Answer:
    """Custom::AWSCDK-EKS-KubernetesResource: `kubectl create`, `apply` (Overwrite, and on update) or `delete`."""
    cluster = _cluster(play)
    objects = _parsed(play.properties["Manifest"])
    if play.is_delete:
        kubernetes_store.remove_manifest(play.context, cluster, objects)
        return Answer(reason=NO_CLUSTER)
    applies = play.request_type == "Update" or is_true(play.properties.get("Overwrite", "false"))
    failures: list[str] = []
    for item in _flat(objects):
        verb = "applying" if applies else "creating"
        failure = (
            _unknown_kind(play.context, cluster, item)
            or _problem(play.context, cluster, item, verb=verb)
            or _refused(play.context, cluster, item, verb=verb)
        )
        if failure:
            failures.append(failure)
        else:
            kubernetes_store.record_manifest(play.context, cluster, [item])
    if failures:
        raise _output_error(play, "\n".join(failures) + "\n")
    if play.request_type == "Update" and play.properties.get("PruneLabel"):
        _prune(play, cluster, objects)
    return Answer(reason=NO_CLUSTER)


def chart(play: Play) -> Answer:
    """Custom::AWSCDK-EKS-HelmChart: `helm upgrade --install` or `helm uninstall`."""
    cluster, properties = _cluster(play), play.properties
    release, namespace = properties["Release"], properties.get("Namespace", "default")
    if play.is_delete:
        kubernetes_store.remove_helm_release(play.context, cluster, release, namespace)
        return Answer(reason=NO_CLUSTER)
    name = _chart_name(play)
    values = json.loads(properties.get("Values") or "{}")
    if is_true(properties.get("CreateNamespace", "false")):
        made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        if namespace not in namespaces(play.context, cluster):
            kubernetes_store.record_manifest(play.context, cluster, [made])
    elif namespace not in namespaces(play.context, cluster):
        raise _output_error(
            play,
            f'Release "{release}" does not exist. Installing it now.\n'
            f'Error: create: failed to create: namespaces "{namespace}" not found\n',
        )
    kubernetes_store.record_helm_release(play.context, cluster, release, namespace, name, values)
    return Answer(reason=NO_CLUSTER)


def patch(play: Play) -> Answer:
    """Custom::AWSCDK-EKS-KubernetesPatch: `kubectl patch`, merged into the object where the store holds it."""
    cluster, properties = _cluster(play), play.properties
    text = properties["RestorePatchJson" if play.is_delete else "ApplyPatchJson"]
    try:
        wanted = json.loads(text)
    except ValueError as error:
        raise _output_error(play, f'error: unable to parse "{text}": {error}\n') from error
    kind, _, name = str(properties["ResourceName"]).partition("/")
    found = _find(play.context, cluster, kind, name, properties["ResourceNamespace"])
    if found is not None and isinstance(wanted, dict):
        kubernetes_store.record_manifest(play.context, cluster, [kubernetes_store.merged(found, wanted)])
    return Answer(reason=NO_CLUSTER)


def object_value(play: Play) -> Answer:
    """Custom::AWSCDK-EKS-KubernetesObjectValue: a value of an object, by JSON path."""
    if play.is_delete:
        return Answer(reason=NO_CLUSTER)
    cluster, properties = _cluster(play), play.properties
    kind, name, namespace = (properties[key] for key in ("ObjectType", "ObjectName", "ObjectNamespace"))
    found, value = None, None
    most = int(properties["TimeoutSeconds"]) / SECONDS_OF_A_SECOND
    for _ in takewhile(lambda waited: waited <= most, beats(play.context)):
        found = _find(play.context, cluster, kind, name, namespace)
        value = _at_path(found, properties["JsonPath"]) if found is not None else None
        if value not in (None, ""):
            break
    else:
        arguments = ["get", "-n", namespace, kind, name, f"-o=jsonpath='{{{properties['JsonPath']}}}'"]
        last = f'Error from server (NotFound): {kubernetes_store.plural(kind)} "{name}" not found\n'.encode()
        error = str(last) if found is None else None
        raise _worded(play, f"Timeout waiting for output from kubectl command: {arguments} (last_error={error})")
    return Answer(data={"Value": value if isinstance(value, str) else json.dumps(value)}, reason=NO_CLUSTER)


def namespaces(context: Context, cluster: str) -> frozenset[str]:
    """Namespaces a cluster has: Kubernetes' own, those of its add-ons and charts, and those that were applied."""
    stored = {
        str(item["metadata"]["name"])
        for item in kubernetes_store.objects(context, cluster)
        if item.get("kind") == "Namespace"
    }
    releases = kubernetes_store.releases(context, cluster)
    from_chart = CHART_NAMESPACES if any(row.is_of(kubernetes_store.HYPERPOD_CHART) for row in releases) else set()
    rows = [addons.get(name) for name in _addon_names(context, cluster)]
    from_addons = {row.namespace for row in rows if row is not None and row.namespace}
    return frozenset(kubernetes_store.BUILT_IN_NAMESPACES | stored | from_chart | from_addons)


def _addon_names(context: Context, cluster: str) -> list[str]:
    names: list[str] = context.client("eks").list_addons(clusterName=cluster)["addons"]
    return names


def _cluster(play: Play) -> str:
    """The cluster's name; one that is not there fails where the provider logs in to it."""
    name = str(play.properties["ClusterName"])
    if not play.is_delete and not _cluster_exists(play.context, name):
        command = ["aws", "eks", "update-kubeconfig", "--name", name, "--kubeconfig", KUBECONFIG]
        raise _worded(play, f"Command '{command}' returned non-zero exit status 254.")
    return name


def _cluster_exists(context: Context, name: str) -> bool:
    with ignoring("ResourceNotFoundException"):
        context.client("eks").describe_cluster(name=name)
        return True
    return False


def _parsed(text: str) -> list[Mapping[str, Any]]:
    parsed = json.loads(text)
    items = parsed if isinstance(parsed, list) else [parsed]
    return [item for item in items if isinstance(item, Mapping)]


def _flat(objects: Iterable[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    for item in objects:
        if item.get("kind") == "List":
            yield from _flat(item.get("items", []))
        else:
            yield item


def _problem(context: Context, cluster: str, item: Mapping[str, Any], *, verb: str) -> str | None:
    """What kubectl says against an object, None where it takes it."""
    missing = [f"{name} not set" for name in ("apiVersion", "kind") if not item.get(name)]
    if missing:
        listed = missing[0] if len(missing) == 1 else f"[{', '.join(missing)}]"
        return (
            f'error: error validating "{MANIFEST_FILE}": error validating data: {listed}; '
            "if you choose to ignore these errors, turn validation off with --validate=false"
        )
    metadata = item.get("metadata") or {}
    kind, name, namespace = str(item["kind"]), metadata.get("name"), metadata.get("namespace")
    if not _is_served(context, cluster, str(item["apiVersion"])):
        return (
            f'error: resource mapping not found for name: "{name}" namespace: "{namespace or ""}" from'
            f' "{MANIFEST_FILE}": no matches for kind "{kind}" in version "{item["apiVersion"]}"\n'
            "ensure CRDs are installed first"
        )
    where = f'error when {verb} "{MANIFEST_FILE}"'
    if not name and not metadata.get("generateName"):
        required = "metadata.name: Required value: name or generateName is required"
        return f'Error from server (Invalid): {where}: {kind} "" is invalid: {required}'
    if namespace and namespace not in namespaces(context, cluster):
        return f'Error from server (NotFound): {where}: namespaces "{namespace}" not found'
    if verb == "creating" and _stands(context, cluster, item):
        return f'Error from server (AlreadyExists): {where}: {kubernetes_store.plural(kind)} "{name}" already exists'
    return _unchangeable(context, cluster, item)


def _refused(context: Context, cluster: str, item: Mapping[str, Any], *, verb: str) -> str | None:
    """What the API server says where a webhook that it must ask does not answer."""
    standing = eks_clusters(context).get(cluster)
    refusal = webhooks.refusal_of_object(context, standing, item) if standing is not None else None
    return f'Error from server (InternalError): error when {verb} "{MANIFEST_FILE}": {refusal}' if refusal else None


def _unchangeable(context: Context, cluster: str, item: Mapping[str, Any]) -> str | None:
    """Volumes and claims keep what they lead to: only another object leads elsewhere."""
    standing = next((o for o in kubernetes_store.objects(context, cluster) if _identity(o) == _identity(item)), None)
    if standing is None:
        return None
    kind, name = str(item["kind"]), item["metadata"].get("name")
    before, after = standing.get("spec") or {}, item.get("spec") or {}
    if kind == "PersistentVolume" and before.get("csi") != after.get("csi"):
        path = "spec.persistentvolumesource"
        return f'The {kind} "{name}" is invalid: {path}: Forbidden: {path} is immutable after creation'
    if kind == "PersistentVolumeClaim" and before != after:
        return (
            f'The {kind} "{name}" is invalid: spec: Forbidden: spec is immutable after creation except'
            " resources.requests and volumeAttributesClassName for bound claims"
        )
    return None


def _is_served(context: Context, cluster: str, api: str) -> bool:
    """Whether the API server knows Kueue's objects in this version: with task governance, or with a Kueue release."""
    if api.partition("/")[0] != task_governance.KUEUE_GROUP:
        return True
    if any(row.is_of(kubernetes_store.KUEUE_CHART) for row in kubernetes_store.releases(context, cluster)):
        return True
    version = _task_governance(context, cluster)
    return version is not None and task_governance.serves_kueue_api(version, api)


def _task_governance(context: Context, cluster: str) -> str | None:
    """The version of the add-on on the cluster, None where it is not installed."""
    if addons.TASK_GOVERNANCE not in _addon_names(context, cluster):
        return None
    addon = context.client("eks").describe_addon(clusterName=cluster, addonName=addons.TASK_GOVERNANCE)["addon"]
    return str(addon["addonVersion"])


def _unknown_kind(context: Context, cluster: str, item: Mapping[str, Any]) -> str | None:
    """What kubectl says against a kind of Karpenter's where HyperPod has not brought them; others are not tracked."""
    version, kind, metadata = str(item.get("apiVersion")), item.get("kind"), item.get("metadata") or {}
    if version.partition("/")[0] not in kubernetes.KARPENTER_GROUPS:
        return None
    owner = hyperpod_cluster_on(context, context.arn("eks", f"cluster/{cluster}"))
    if owner is not None and is_autoscaled(owner.request):
        return None
    return (
        f'error: resource mapping not found for name: "{metadata.get("name")}" namespace: '
        f'"{metadata.get("namespace", "")}" from "{MANIFEST_FILE}": no matches for kind "{kind}" in version "{version}"'
        "\nensure CRDs are installed first"
    )


def _stands(context: Context, cluster: str, item: Mapping[str, Any]) -> bool:
    return _identity(item) in [_identity(stored) for stored in kubernetes_store.objects(context, cluster)]


def _identity(item: Mapping[str, Any]) -> tuple[str, ...]:
    metadata = item.get("metadata") or {}
    return (
        str(item.get("apiVersion", "")),
        str(item.get("kind", "")),
        str(metadata.get("namespace", "")),
        str(metadata.get("name", "")),
    )


def _prune(play: Play, cluster: str, objects: list[Mapping[str, Any]]) -> None:
    """Remove what carries the label and left the manifest."""
    kept = {_identity(item) for item in _flat(objects)}
    label = str(play.properties["PruneLabel"]).partition("=")[0]
    for stored in kubernetes_store.objects(play.context, cluster):
        labels = (stored.get("metadata") or {}).get("labels") or {}
        if label in labels and _identity(stored) not in kept:
            kubernetes_store.remove_manifest(play.context, cluster, [stored])


def _chart_name(play: Play) -> str:
    """The chart as the store names it: its own name where it is an asset, the reference elsewhere."""
    properties = play.properties
    url, reference = properties.get("ChartAssetURL"), properties.get("Chart") or properties.get("Repository")
    if not url:
        if not reference:
            raise _worded(play, "chart or chartAsset must be specified")
        return str(reference)
    bucket, _, key = str(url).removeprefix("s3://").partition("/")
    try:
        body = play.context.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
    except ClientError as error:
        command = ["aws", "s3", "cp", url, "/tmp/chart.zip"]  # noqa: S108 - the path in the provider's message
        raise _worded(play, f"Command '{command}' returned non-zero exit status 1.") from error
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        if "Chart.yaml" not in archive.namelist():
            raise _output_error(play, "Error: Chart.yaml file is missing\n")
        return str(yaml.safe_load(archive.read("Chart.yaml")).get("name", ""))


def _find(context: Context, cluster: str, kind: str, name: str, namespace: str) -> dict[str, Any] | None:
    """An object by any of the names kubectl takes for its kind."""
    wanted = kind.partition(".")[0].lower()
    standing = eks_clusters(context).get(cluster)
    of_addons = webhooks.deployments(context, standing) if standing is not None else []
    for item in [*kubernetes_store.objects(context, cluster), *of_addons]:
        metadata = item.get("metadata") or {}
        own = str(item.get("kind", ""))
        same_kind = wanted in {own.lower(), kubernetes_store.plural(own)}
        if same_kind and metadata.get("name") == name and metadata.get("namespace") in {None, "", namespace}:
            return item
    return None


def _at_path(item: Any, path: str) -> Any:
    """A plain JSON path such as `.status.loadBalancer.ingress[0].hostname`; None where it leads nowhere."""
    for name, index in JSON_PATH_STEP.findall(path):
        if index and isinstance(item, list) and int(index) < len(item):
            item = item[int(index)]
        elif name and isinstance(item, Mapping):
            item = item.get(name)
        else:
            return None
    return item


def _output_error(play: Play, output: str) -> PlayFailed:
    """A command's output as the provider raises it: the bytes, as Python writes them."""
    return _worded(play, str(output.encode()))


def _worded(play: Play, message: str) -> PlayFailed:
    """The provider framework's words around what the function raised."""
    return PlayFailed(f"Error: {message}\n\nLogs: /aws/lambda/{_handler_name(play)}\n")


def _handler_name(play: Play) -> str:
    """The function behind the framework, whose log a user must read."""
    configuration = play.context.client("lambda").get_function_configuration(FunctionName=play.function_name)
    variables = (configuration.get("Environment") or {}).get("Variables") or {}
    return str(variables.get("USER_ON_EVENT_FUNCTION_ARN", play.function_name)).rpartition(":")[2]


PLAYERS: dict[str, Callable[[Play], Answer]] = {
    "Custom::AWSCDK-EKS-KubernetesResource": manifest,
    "Custom::AWSCDK-EKS-HelmChart": chart,
    "Custom::AWSCDK-EKS-KubernetesPatch": patch,
    "Custom::AWSCDK-EKS-KubernetesObjectValue": object_value,
}
