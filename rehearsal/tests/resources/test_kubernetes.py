"""CDK's kubectl provider, played: what it records, and what it refuses in kubectl's words."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from hyperpod_cdk_rehearsal.embedded.resources import kubernetes
from hyperpod_cdk_rehearsal.embedded.resources.custom import executions
from hyperpod_cdk_rehearsal.embedded.resources.registry import HandlerError
from hyperpod_cdk_rehearsal.embedded.services import kubernetes_store

CLUSTER = "prod-eks"
RESOURCE, CHART = "Custom::AWSCDK-EKS-KubernetesResource", "Custom::AWSCDK-EKS-HelmChart"
WHERE = 'error when creating "/tmp/manifest.yaml"'
INVALID = 'error: error validating "/tmp/manifest.yaml": error validating data'
TURN_OFF = "if you choose to ignore these errors, turn validation off with --validate=false"
NAME_REQUIRED = "metadata.name: Required value: name or generateName is required"
PATCH, VALUE = "Custom::AWSCDK-EKS-KubernetesPatch", "Custom::AWSCDK-EKS-KubernetesObjectValue"


def config_map(name: str = "settings", namespace: str = "default", **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


@pytest.fixture
def token(stack: Any, function: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> str:
    """The provider as CDK makes it, in an account with one cluster."""
    clusters = {CLUSTER}
    stack.clusters = clusters
    monkeypatch.setattr(kubernetes, "_addon_names", lambda _context, _cluster: ["cert-manager"])
    monkeypatch.setattr(kubernetes, "_cluster_exists", lambda _context, name: name in clusters)
    handler = function("def handler(event, context):\n    raise RuntimeError('kubectl')\n", name="kubectl-handler")
    return function(
        "exports.onEvent = 1;",
        name="kubectl-provider",
        Runtime="nodejs24.x",
        Handler="framework.onEvent",
        Environment={"Variables": {"USER_ON_EVENT_FUNCTION_ARN": handler}},
    )


@pytest.fixture
def apply(stack: Any, token: str) -> Callable[..., Any]:
    """Create a manifest of these objects."""

    def create(*objects: Any, **properties: Any) -> Any:
        manifest = json.dumps(list(objects))
        return stack.create(
            RESOURCE, {"ServiceToken": token, "ClusterName": CLUSTER, "Manifest": manifest, **properties}
        )

    return create


def output_of(call: Callable[[], Any]) -> str:
    """What the command printed, out of CloudFormation's, the framework's and the handler's words around it."""
    with pytest.raises(HandlerError) as error:
        call()
    message = error.value.message
    start = "Received response status [FAILED] from custom resource. Message returned: Error: b"
    assert message.startswith(start)
    assert "\n\nLogs: /aws/lambda/kubectl-handler\n (RequestId: " in message
    quoted = message.removeprefix(start)
    return quoted[1 : quoted.index(quoted[0] + "\n\nLogs")].replace("\\n", "\n")


def local_queue(api: str) -> dict[str, Any]:
    metadata = {"name": "default", "namespace": "default"}
    return {"apiVersion": f"kueue.x-k8s.io/{api}", "kind": "LocalQueue", "metadata": metadata}


def no_queues(api: str) -> str:
    return (
        'error: resource mapping not found for name: "default" namespace: "default" from "/tmp/manifest.yaml": no'
        f' matches for kind "LocalQueue" in version "kueue.x-k8s.io/{api}"\nensure CRDs are installed first\n'
    )


def test_a_queue_needs_a_kueue(stack: Any, apply: Callable[..., Any]) -> None:
    assert output_of(lambda: apply(local_queue("v1beta2"))) == no_queues("v1beta2")
    kubernetes_store.record_helm_release(stack.context, CLUSTER, "kueue", "kueue-system", "kueue", {})
    apply(local_queue("v1beta2"))
    assert names(stack) == ["default"]


@pytest.mark.parametrize(("version", "api", "is_served"), [("v1.4.0", "v1beta2", False), ("v1.4.0", "v1beta1", True)])
def test_a_queue_needs_an_api_that_task_governance_serves(  # noqa: PLR0917 - table and fixtures
    stack: Any,
    apply: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    version: str,
    api: str,
    is_served: bool,  # noqa: FBT001 - table
) -> None:
    monkeypatch.setattr(kubernetes, "_task_governance", lambda _context, _cluster: f"{version}-eksbuild.1")
    if is_served:
        apply(local_queue(api))
        assert names(stack) == ["default"]
    else:
        assert output_of(lambda: apply(local_queue(api))) == no_queues(api)


def names(stack: Any) -> list[str]:
    return [item["metadata"]["name"] for item in kubernetes_store.objects(stack.context, CLUSTER)]


class TestManifest:
    def test_create_update_delete(self, stack: Any, apply: Callable[..., Any]) -> None:
        made = apply(config_map(a="1"))
        assert len(made.physical_id) == 36
        assert made.attributes == {}
        stack.update(made.physical_id, Manifest=json.dumps([config_map(a="2")]))
        [stored] = kubernetes_store.objects(stack.context, CLUSTER)
        assert stored["data"] == {"a": "2"}
        stack.delete(made.physical_id)
        stack.delete(made.physical_id)
        assert names(stack) == []
        assert {(row.mode, row.resource_type) for row in executions(stack.context)} == {("played", RESOURCE)}

    def test_a_namespace_made_before_counts(self, stack: Any, apply: Callable[..., Any]) -> None:
        apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}, config_map(namespace="team"))
        assert sorted(names(stack)) == ["settings", "team"]

    @pytest.mark.parametrize("namespace", ["default", "kube-system", "kube-public", "cert-manager"])
    def test_namespaces_that_stand(self, apply: Callable[..., Any], namespace: str) -> None:
        apply(config_map(namespace=namespace))

    @pytest.mark.parametrize(
        ("item", "said"),
        [
            (
                config_map(namespace="absent"),
                f'Error from server (NotFound): {WHERE}: namespaces "absent" not found\n',
            ),
            (
                {"kind": "ConfigMap", "metadata": {"name": "a"}},
                f"{INVALID}: apiVersion not set; {TURN_OFF}\n",
            ),
            (
                {"metadata": {"name": "a"}},
                f"{INVALID}: [apiVersion not set, kind not set]; {TURN_OFF}\n",
            ),
            (
                {"apiVersion": "v1", "kind": "ConfigMap"},
                f'Error from server (Invalid): {WHERE}: ConfigMap "" is invalid: {NAME_REQUIRED}\n',
            ),
        ],
        ids=["namespace", "apiVersion", "apiVersion and kind", "name"],
    )
    def test_what_kubectl_refuses(self, apply: Callable[..., Any], item: dict[str, Any], said: str) -> None:
        assert output_of(lambda: apply(item)) == said

    def test_an_existing_object(self, stack: Any, apply: Callable[..., Any]) -> None:
        apply(config_map())
        assert output_of(lambda: apply(config_map())) == (
            'Error from server (AlreadyExists): error when creating "/tmp/manifest.yaml": '
            'configmaps "settings" already exists\n'
        )
        apply(config_map(a="1"), Overwrite=True)
        assert kubernetes_store.objects(stack.context, CLUSTER)[0]["data"] == {"a": "1"}

    def test_what_fails_halfway_stays_and_meets_the_next_creation(self, stack: Any, apply: Callable[..., Any]) -> None:
        objects = config_map("first"), config_map("second", namespace="absent")
        failed = output_of(lambda: apply(*objects))
        assert failed == f'Error from server (NotFound): {WHERE}: namespaces "absent" not found\n'
        assert names(stack) == ["first"]

        made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "absent"}}
        kubernetes_store.record_manifest(stack.context, CLUSTER, [made])
        assert output_of(lambda: apply(*objects)) == (
            f'Error from server (AlreadyExists): {WHERE}: configmaps "first" already exists\n'
        )
        apply(*objects, Overwrite=True)
        assert sorted(names(stack)) == ["absent", "first", "second"]

    @pytest.mark.parametrize(
        ("kind", "before", "after", "said"),
        [
            (
                "PersistentVolume",
                {"csi": {"volumeAttributes": {"bucketName": "one"}}},
                {"csi": {"volumeAttributes": {"bucketName": "two"}}},
                (
                    'The PersistentVolume "data" is invalid: spec.persistentvolumesource: Forbidden:'
                    " spec.persistentvolumesource is immutable after creation\n"
                ),
            ),
            (
                "PersistentVolumeClaim",
                {"accessModes": ["ReadWriteMany"]},
                {"accessModes": ["ReadOnlyMany"]},
                (
                    'The PersistentVolumeClaim "data" is invalid: spec: Forbidden: spec is immutable after creation'
                    " except resources.requests and volumeAttributesClassName for bound claims\n"
                ),
            ),
            (
                "PersistentVolume",
                {"csi": {"driver": "fsx"}, "capacity": {"storage": "1200Gi"}},
                {"csi": {"driver": "fsx"}, "capacity": {"storage": "2400Gi"}},
                "",
            ),
        ],
    )
    def test_a_volume_leads_where_it_led(  # noqa: PLR0917 - table and fixtures
        self, stack: Any, apply: Callable[..., Any], kind: str, before: Any, after: Any, said: str
    ) -> None:
        def volume(spec: Any) -> dict[str, Any]:
            return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "data"}, "spec": spec}

        made = apply(volume(before))

        def update() -> Any:
            return stack.update(made.physical_id, Manifest=json.dumps([volume(after)]))

        assert (output_of(update) if said else update() and "") == said

    def test_prune_removes_what_left_the_manifest(self, stack: Any, apply: Callable[..., Any]) -> None:
        def labelled(name: str) -> dict[str, Any]:
            item = config_map(name)
            item["metadata"]["labels"] = {"aws.cdk.eks/prune-c8": ""}
            return item

        made = apply(labelled("a"), labelled("b"), PruneLabel="aws.cdk.eks/prune-c8")
        stack.update(made.physical_id, Manifest=json.dumps([labelled("b")]))
        assert names(stack) == ["b"]

    def test_a_cluster_that_is_not_there(self, stack: Any, apply: Callable[..., Any]) -> None:
        stack.clusters.clear()
        with pytest.raises(HandlerError) as error:
            apply(config_map())
        assert (
            "Error: Command '['aws', 'eks', 'update-kubeconfig', '--name', 'prod-eks', "
            "'--kubeconfig', '/tmp/kubeconfig']' returned non-zero exit status 254." in error.value.message
        )


class TestChart:
    @pytest.fixture
    def install(self, stack: Any, token: str) -> Callable[..., Any]:
        def create(**properties: Any) -> Any:
            required = {"ServiceToken": token, "ClusterName": CLUSTER, "Release": "dependencies"}
            return stack.create(CHART, {**required, **properties})

        return create

    def test_an_asset_by_its_own_name(
        self, stack: Any, install: Callable[..., Any], zipped: Callable[..., bytes]
    ) -> None:
        s3 = stack.context.client("s3")
        s3.create_bucket(Bucket="assets")
        body = zipped({"Chart.yaml": "name: hyperpod-helm-chart\nversion: 0.1.0\n"})
        s3.put_object(Bucket="assets", Key="chart.zip", Body=body)
        made = install(
            ChartAssetURL="s3://assets/chart.zip", Namespace="kube-system", Values=json.dumps({"neuron": {"on": False}})
        )
        [release] = kubernetes_store.releases(stack.context, CLUSTER)
        assert (release.name, release.namespace, release.chart) == (
            "dependencies",
            "kube-system",
            "hyperpod-helm-chart",
        )
        assert release.values == {"neuron": {"on": False}}
        stack.delete(made.physical_id)
        stack.delete(made.physical_id)
        assert kubernetes_store.releases(stack.context, CLUSTER) == []

    def test_an_archive_that_is_no_chart(
        self, stack: Any, install: Callable[..., Any], zipped: Callable[..., bytes]
    ) -> None:
        s3 = stack.context.client("s3")
        s3.create_bucket(Bucket="assets")
        s3.put_object(Bucket="assets", Key="chart.zip", Body=zipped({"README.md": ""}))
        said = output_of(lambda: install(ChartAssetURL="s3://assets/chart.zip"))
        assert said == "Error: Chart.yaml file is missing\n"

    def test_a_namespace_must_stand_or_be_made(self, stack: Any, install: Callable[..., Any]) -> None:
        assert output_of(lambda: install(Chart="kueue", Namespace="kueue-system")) == (
            'Release "dependencies" does not exist. Installing it now.\n'
            'Error: create: failed to create: namespaces "kueue-system" not found\n'
        )
        install(Chart="kueue", Namespace="kueue-system", CreateNamespace=True)
        assert names(stack) == ["kueue-system"]


class TestPatchAndValue:
    def test_a_patch_is_merged_and_restored(self, stack: Any, token: str, apply: Callable[..., Any]) -> None:
        apply(config_map(a="1", b="2"))
        made = stack.create(
            PATCH,
            {
                "ServiceToken": token,
                "ClusterName": CLUSTER,
                "ResourceName": "configmap/settings",
                "ResourceNamespace": "default",
                "ApplyPatchJson": json.dumps({"data": {"a": None, "b": "3"}}),
                "RestorePatchJson": json.dumps({"data": {"b": "2"}}),
                "PatchType": "merge",
            },
        )
        assert kubernetes_store.objects(stack.context, CLUSTER)[0]["data"] == {"b": "3"}
        stack.delete(made.physical_id)
        assert kubernetes_store.objects(stack.context, CLUSTER)[0]["data"] == {"b": "2"}

    def test_a_value_by_json_path(self, stack: Any, token: str, apply: Callable[..., Any]) -> None:
        apply({**config_map("s"), "kind": "Service", "status": {"ingress": [{"hostname": "lb"}]}})
        properties = {
            "ServiceToken": token,
            "ClusterName": CLUSTER,
            "ObjectType": "service",
            "ObjectName": "s",
            "ObjectNamespace": "default",
            "JsonPath": ".status.ingress[0].hostname",
            "TimeoutSeconds": "1",
        }
        assert stack.create(VALUE, properties).attributes == {"Value": "lb"}
        with pytest.raises(HandlerError) as error:
            stack.create(VALUE, {**properties, "ObjectName": "absent"})
        assert "Timeout waiting for output from kubectl command: ['get', '-n', 'default', 'service', 'absent'" in (
            error.value.message
        )


def test_karpenters_kinds_come_with_autoscaling(apply: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "gpu"}}
    assert output_of(lambda: apply(pool)) == (
        'error: resource mapping not found for name: "gpu" namespace: "" from "/tmp/manifest.yaml": no matches for '
        'kind "NodePool" in version "karpenter.sh/v1"\nensure CRDs are installed first\n'
    )
    scaled = SimpleNamespace(request={"AutoScaling": {"Mode": "Enable"}})
    monkeypatch.setattr(kubernetes, "hyperpod_cluster_on", lambda _context, _arn: scaled)
    apply(pool)
