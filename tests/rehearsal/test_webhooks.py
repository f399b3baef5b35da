"""Prod on clusters whose webhooks take their time: nothing of ours is refused, and without the waits it would be."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from hyperpod_cdk_rehearsal.account_files import satisfying
from hyperpod_cdk_rehearsal.cdk_cli import CdkFailedError
from tests.rehearsal.test_examples import living
from tests.support.assembly import shipped
from tests.support.embedded import SLOW_SCALE

WAIT = "Custom::AWSCDK-EKS-KubernetesObjectValue"
QUOTA = "AWS::SageMaker::ComputeQuota"
"""What Kueue would refuse, too, and in some runs first; CloudFormation then cancels the add-on that a test looks at."""
MINUTES_OF_AWS = 4
"""A second of the embedded AWS stands for about a minute; the waits give up after five."""
FOR_EVER = 500


# what 'make test' runs of webhooks is in rehearsal/tests/services/test_webhooks.py, without a deployment
pytestmark = pytest.mark.examples


def test_prod_waits_for_webhooks_that_are_slow(assemblies: Path, tmp_path: Path) -> None:
    document = {
        **satisfying(shipped(assemblies, "prod").environment),
        "kubernetes": {"webhook_seconds": MINUTES_OF_AWS},
    }
    with living(shipped(assemblies, "prod"), document, tmp_path, clock_scale=SLOW_SCALE) as life:
        life.deploy(assemblies / "prod")
        addons = life.aws.client("eks").list_addons(clusterName="prod-eks")["addons"]
        assert {"cert-manager", "amazon-sagemaker-hyperpod-taskgovernance"} < set(addons)


@pytest.mark.parametrize(
    ("name", "webhook"),
    [("prod", "mdeployment.kb.io"), ("trainium", "webhook.cert-manager.io")],
)
def test_without_the_waits_the_training_operator_is_refused(
    assemblies: Path, tmp_path: Path, name: str, webhook: str
) -> None:
    synthesized = shipped(assemblies, name)
    assembly = tmp_path / name
    shutil.copytree(assemblies / name, assembly)
    (template,) = assembly.rglob("*platform*.template.json")
    _take_waits_away(template)
    document = {**satisfying(synthesized.environment), "kubernetes": {"webhook_seconds": FOR_EVER}}
    with living(synthesized, document, tmp_path, clock_scale=SLOW_SCALE) as life:
        with pytest.raises(CdkFailedError):
            life.deploy(assembly)
        told = life.run.explain(RuntimeError())
    operator = f"Addon amazon-sagemaker-hyperpod-training-operator of cluster {name}-eks is CREATE_FAILED"
    assert f"{operator}: AdmissionRequestDenied: Internal error occurred" in told
    assert f'failed calling webhook "{webhook}": failed to call webhook: Post "https://' in told


def _take_waits_away(template: Path) -> None:
    """Take the waits for deployments, and quotas, out: who waited for them waits for what they waited for."""
    document = json.loads(template.read_text(encoding="utf-8"))
    resources = document["Resources"]
    gone = {name for name, each in resources.items() if each["Type"] in (WAIT, QUOTA)}
    assert any(resources[name]["Type"] == WAIT for name in gone)
    for each in resources.values():
        if isinstance(each.get("DependsOn"), list):
            passed = [other for name in gone & {*each["DependsOn"]} for other in resources[name]["DependsOn"]]
            each["DependsOn"] = sorted({*each["DependsOn"], *passed} - gone)
    document["Resources"] = {name: each for name, each in resources.items() if name not in gone}
    before = hashlib.sha256(template.read_bytes()).hexdigest()
    template.write_text(json.dumps(document), encoding="utf-8")
    after = hashlib.sha256(template.read_bytes()).hexdigest()
    for file in (template.parent / "manifest.json", *template.parent.glob("*.assets.json")):
        # an assembly whose template is not the one that its manifest names is refused
        file.write_text(file.read_text(encoding="utf-8").replace(before, after), encoding="utf-8")
