"""The account file: what it says, what it takes from the environment, what it refuses."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from botocore.exceptions import ClientError

from hyperpod_cdk.config import load_environment
from hyperpod_cdk.config.encryption import Encryption
from hyperpod_cdk.config.lifecycle import Lifecycle
from hyperpod_cdk.config.operators import Operators
from hyperpod_cdk.config.storage import Storage
from hyperpod_cdk_rehearsal.account_files import load_document, resolved
from hyperpod_cdk_rehearsal.embedded.account import (
    DEFAULT_ACCOUNT_FILE,
    AccountFile,
    AccountFileError,
    read_account_file,
)
from rehearsal.tests.support.embedded import embedded

WRONG_MONTH = """training_plans:
  plans:
    - name: ours
      instance_type: ml.p5.48xlarge
      instance_count: 1
      availability_zone_id: use1-az5
      start_time: 2026-13-45T00:00:00Z
"""
ALIASES = b"a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + b"".join(
    b"a%d: &a%d [%s]\n" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 10)) for n in range(1, 30)
)
"""Thirty lines that stand for ten values to the power of thirty."""
WRONG_BUILD = (
    "5 kubernetes.addons.vpc-cni.1: must be an add-on version as EKS writes it, such as v1.20.4-eksbuild.1, got "
    '"v1.20.4-eksbuild1"'
)
MONTH = "input should be a valid datetime or date, month value is outside expected range of 1-12"
FROM_ENVIRONMENT = {"from_environment": True}
PLAN_ARN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/h100-april"


def group(**members: Any) -> SimpleNamespace:
    defaults = {
        "name": "h100",
        "instance_type": "ml.p5.48xlarge",
        "instance_types": None,
        "count": 2,
        "availability_zone_id": "use1-az5",
        "capacity": "training_plan",
        "training_plan_arn": PLAN_ARN,
        "volume_gib": 500,
        "execution_role_arn": None,
    }
    return SimpleNamespace(**{**defaults, **members})


def environment(*groups: SimpleNamespace, admins: tuple[str, ...] = ()) -> Any:
    return SimpleNamespace(
        account="111122223333",
        region="us-east-1",
        hyperpod=SimpleNamespace(
            all_groups=list(groups) or [group()],
            instance_groups=list(groups) or [group()],
            lifecycle=Lifecycle(),
        ),
        encryption=Encryption(),
        operators=Operators(),
        storage=Storage(),
        network=SimpleNamespace(existing=None),
        eks=SimpleNamespace(admin_role_arns=list(admins), existing=None, image_registry=None),
        task_governance=None,
        notify=None,
    )


def test_the_shipped_file_is_valid_and_takes_everything_from_the_environment() -> None:
    document = read_account_file(DEFAULT_ACCOUNT_FILE)
    assert document["quotas"] == document["training_plans"] == FROM_ENVIRONMENT


@pytest.mark.parametrize(
    ("path", "plans"),
    [
        ("environments/prod.yaml", {"h100-april": (2, "use1-az5")}),
        ("examples/two-teams.yaml", {}),
        ("examples/elastic-training.yaml", {"h100-eight": (8, "use2-az1")}),
    ],
)
def test_the_shipped_environments_find_their_plans(project: Path, path: str, plans: dict[str, Any]) -> None:
    file = AccountFile.model_validate(load_document(None, project / path))
    found = {plan.name: (plan.instance_count, plan.availability_zone_id) for plan in file.training_plans.plans}
    assert found == plans


class TestPlansOfTheEnvironment:
    def plans(self, stated: list[dict[str, Any]], *groups: SimpleNamespace) -> dict[str, Any]:
        document = {"training_plans": {**FROM_ENVIRONMENT, "plans": stated}}
        made = resolved(document, environment(*groups))["training_plans"]["plans"]
        return {plan["name"]: plan for plan in made}

    def test_type_count_and_zone_are_the_groups(self) -> None:
        assert self.plans([])["h100-april"] == {
            "name": "h100-april",
            "instance_type": "ml.p5.48xlarge",
            "instance_count": 2,
            "availability_zone_id": "use1-az5",
        }

    def test_groups_of_one_plan_add_up(self) -> None:
        assert self.plans([], group(), group(name="more", count=3))["h100-april"]["instance_count"] == 5

    def test_a_stated_plan_wins(self) -> None:
        stated = {
            "name": "h100-april",
            "instance_type": "ml.p5.48xlarge",
            "instance_count": 1,
            "availability_zone_id": "use1-az6",
        }
        found = self.plans([stated])["h100-april"]
        assert (found["instance_count"], found["availability_zone_id"]) == (1, "use1-az6")

    @pytest.mark.parametrize(("region", "account"), [("us-west-2", "111122223333"), ("us-east-1", "444455556666")])
    def test_a_plan_of_elsewhere_is_not_made(self, region: str, account: str) -> None:
        arn = f"arn:aws:sagemaker:{region}:{account}:training-plan/h100-april"
        assert self.plans([], group(training_plan_arn=arn)) == {}

    def test_nothing_is_made_unasked(self) -> None:
        assert resolved({}, environment()) == {}


def test_local_zones_are_those_of_the_environment() -> None:
    zones = ("use1-az5", "use1-dfw2-az1", "use1-bos1-az2")
    named: Any = SimpleNamespace(region="us-east-1", network=SimpleNamespace(zone_ids=lambda: zones))
    stated = {"use1-dfw2-az1": {"name": "us-east-1-dfw-2a", "opted_in": False}}
    found = resolved({"zones": {**FROM_ENVIRONMENT, "missing": ["use1-az3"], "local": stated}}, named)["zones"]
    boston = {"name": "us-east-1-bos-1b", "opted_in": True}
    assert found == {"missing": ["use1-az3"], "local": {**stated, "use1-bos1-az2": boston}}


class TestQuotasOfTheEnvironment:
    def quotas(self, stated: dict[str, Any], **changes: Any) -> Any:
        document = {
            "name": "dev",
            "account": "111122223333",
            "region": "us-east-1",
            "network": {"availability_zones": {"use1-az5": {}, "use1-az4": {}}},
            "hyperpod": {
                "instance_groups": [
                    {
                        "name": "h100",
                        "instance_type": "ml.p5.48xlarge",
                        "count": 2,
                        "availability_zone_id": "use1-az5",
                        "capacity": "on_demand",
                        **changes.pop("group", {}),
                    }
                ]
            },
            **changes,
        }
        loaded = load_environment(Path("dev.yaml"), text=yaml.safe_dump(document))
        return resolved({"quotas": {**FROM_ENVIRONMENT, **stated}}, loaded.environment)["quotas"]

    def test_twice_the_need_but_not_below_the_default(self) -> None:
        assert self.quotas({}) == {
            "sagemaker": {
                "ml.p5.48xlarge for cluster usage": 4.0,
                "Total number of instances allowed across SageMaker HyperPod clusters": 4.0,
                "Maximum number instances allowed per SageMaker HyperPod cluster": 20.0,
                "Maximum size of EBS volume in GB for a SageMaker HyperPod cluster instance": 1000.0,
            }
        }

    def test_spot(self) -> None:
        found = self.quotas({}, group={"capacity": "spot"})["sagemaker"]
        assert found["ml.p5.48xlarge for cluster spot instance usage"] == 4.0
        assert found["Total number of Spot instances allowed across SageMaker HyperPod clusters"] == 4.0

    def test_what_other_services_grant_by_default_is_raised_where_it_is_too_little(self) -> None:
        storage = {"lustre": [{"name": "s", "availability_zone_id": "use1-az5", "capacity_gib": 120000}]}
        assert self.quotas({}, storage=storage)["fsx"] == {"Lustre Persistent_2 storage capacity": 240000.0}

    def test_a_stated_value_wins(self) -> None:
        stated = {"sagemaker": {"ml.p5.48xlarge for cluster usage": 1}, "vpc": {"VPCs per Region": 3}}
        found = self.quotas(stated)
        assert (found["sagemaker"]["ml.p5.48xlarge for cluster usage"], found["vpc"]) == (1, {"VPCs per Region": 3})


def test_roles_of_the_environment_exist() -> None:
    admins = ("arn:aws:iam::111122223333:role/teams/admin",)
    document = {"existing": {**FROM_ENVIRONMENT, "iam_roles": ["mine"], "s3_buckets": ["data"]}}
    assert resolved(document, environment(admins=admins))["existing"] == {
        "iam_roles": ["mine", "teams/admin"],
        "s3_buckets": ["data"],
        "workspaces": {},
        "slack_workspaces": [],
        "event_buses": [],
        "container_images": [],
    }


def test_roles_that_groups_keep_exist_and_nodes_may_use_them() -> None:
    kept = group(execution_role_arn="arn:aws:iam::111122223333:role/nodes/worker")
    assert resolved({"existing": FROM_ENVIRONMENT}, environment(kept, kept))["existing"]["roles"] == [
        {
            "name": "worker",
            "path": "/nodes/",
            "trusts": ["sagemaker.amazonaws.com"],
            "managed_policies": ["AmazonSageMakerClusterInstanceRolePolicy"],
        }
    ]


# the topic of a file is one that its alarms and budget may publish to
ON_CALL = {"name": "on-call", "kms_key": "", "publishers": ["cloudwatch.amazonaws.com", "budgets.amazonaws.com"]}


@pytest.mark.parametrize(
    ("named", "topics", "buses"),
    [
        ({}, None, []),
        ({"sns_topic_arn": "arn:aws:sns:us-east-1:111122223333:on-call"}, [ON_CALL], []),
        ({"sns_topic_arn": "arn:aws:sns:us-east-1:444455556666:on-call"}, None, []),
        ({"event_bus_arn": "arn:aws:events:us-east-1:111122223333:event-bus/ml"}, None, ["ml"]),
        ({"event_bus_arn": "arn:aws:events:us-east-1:444455556666:event-bus/ml"}, None, []),
    ],
)
def test_where_notifications_go_exists(
    named: dict[str, str], topics: list[dict[str, Any]] | None, buses: list[str]
) -> None:
    told = environment()
    told.notify = SimpleNamespace(**{"sns_topic_arn": None, "event_bus_arn": None, "slack": None, **named})
    found = resolved({"existing": FROM_ENVIRONMENT}, told)["existing"]
    assert (found.get("topics"), found.get("event_buses")) == (topics, buses)


def test_the_slack_workspace_of_notifications_is_authorized() -> None:
    told = environment()
    slack = SimpleNamespace(workspace_id="T0123ABCD", channel_id="C0123ABCD")
    told.notify = SimpleNamespace(sns_topic_arn=None, event_bus_arn=None, slack=slack)
    stated = {"existing": {**FROM_ENVIRONMENT, "slack_workspaces": ["T0123ABCA"]}}
    assert resolved(stated, told)["existing"]["slack_workspaces"] == ["T0123ABCA", "T0123ABCD"]


def test_topics_and_buses_that_the_file_states_stand() -> None:
    existing = {"topics": [{"name": "on-call", "kms_key": "alias/aws/sns"}], "event_buses": ["ml"]}
    with embedded({"existing": existing}) as aws:
        topic = "arn:aws:sns:us-east-1:111122223333:on-call"
        attributes = aws.client("sns").get_topic_attributes(TopicArn=topic)["Attributes"]
        assert (attributes["TopicArn"], attributes["KmsMasterKeyId"]) == (topic, "alias/aws/sns")
        assert aws.client("events").describe_event_bus(Name="ml")["Name"] == "ml"


OURS = "111122223333.dkr.ecr.us-east-1.amazonaws.com"
THEIRS = "444455556666.dkr.ecr.us-east-1.amazonaws.com"


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"repositoryName": "mirror/a"}, ["1", "2"]),
        ({"repositoryName": "mirror/a", "imageIds": [{"imageTag": "2"}]}, ["2"]),
        ({"repositoryName": "mirror/a", "imageIds": [{"imageTag": "3"}]}, "ImageNotFoundException"),
        ({"repositoryName": "mirror/b", "imageIds": [{"imageTag": "1"}]}, "RepositoryNotFoundException"),
        ({"repositoryName": "mirror/c", "imageIds": [{"imageTag": "1"}]}, "RepositoryNotFoundException"),
        ({"repositoryName": "mirror/b", "registryId": "444455556666"}, ["1"]),
        ({"repositoryName": "mirror/a", "registryId": "444455556666"}, "RepositoryNotFoundException"),
        ({"repositoryName": "elsewhere", "registryId": "111122223333"}, "RepositoryNotFoundException"),
        ({"repositoryName": "own"}, []),
    ],
)
def test_images_that_the_file_states_are_in_ecr(asked: dict[str, Any], found: list[str] | str) -> None:
    elsewhere = f"{OURS.replace('us-east-1', 'us-west-2')}/elsewhere:1"
    images = [f"{OURS}/mirror/a:1", f"{OURS}/mirror/a:2", f"{THEIRS}/mirror/b:1", elsewhere]
    with embedded({"existing": {"container_images": images}}) as aws:
        ecr = aws.client("ecr")
        ecr.create_repository(repositoryName="own")
        if isinstance(found, str):
            with pytest.raises(ClientError, match=rf"\({found}\)"):
                ecr.describe_images(**asked)
        else:
            assert [tag for each in ecr.describe_images(**asked)["imageDetails"] for tag in each["imageTags"]] == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a\n", " must be a mapping, got list"),
        ("\nquota: {}\n", "2 quota: extra inputs are not permitted"),
        (
            "training_plans: {plans: [{name: a, instance_type: b, instance_count: 0, availability_zone_id: c}]}\n",
            "1 training_plans.plans.0.instance_count: input should be greater than or equal to 1",
        ),
        ("nodes:\n  system:\n    newer: 1\n", "3 nodes.system.newer: extra inputs are not permitted"),
        (
            "nodes:\n  system: {reason: no power}\n",
            "2 nodes.system: value error, reason needs nodes that are never launched; add never",
        ),
        (
            "nodes:\n  system: {message: no disk}\n",
            "2 nodes.system: value error, message and failures need nodes that fail; add failing",
        ),
        (
            "nodes:\n  system: {failures: 2}\n",
            "2 nodes.system: value error, message and failures need nodes that fail; add failing",
        ),
        (
            "nodes:\n  system: {never: all, failing: 1}\n",
            "2 nodes.system: value error, never and failing are both all nodes; remove one of the two",
        ),
        (
            "kubernetes:\n  addons:\n    vpc-cni:\n      - v1.20.4-eksbuild.1\n      - v1.20.4-eksbuild1\n",
            WRONG_BUILD,
        ),
        ("page_size: 1\n\nfaults: []\npage_size: 2\n", "4 page_size: is there twice; keep one of them"),
        ("page_size: [1\n", "2 expected ',' or ']', but got '<stream end>'"),
        ("page_size: 1\nfaults: \x01\n", "2 holds the character U+0001, which YAML does not allow; remove it"),
        (
            WRONG_MONTH,
            f"7 training_plans.plans.0.start_time: {MONTH}",
        ),
        ("capacity:\n  ml.p5.48xlarge: use1-az5\n", "2 capacity.ml.p5.48xlarge: input should be a valid tuple"),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "account.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(AccountFileError) as caught:
        read_account_file(path)
    assert str(caught.value) == f"{path}:{message}"


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"page_size: 1\n# caf\xe9\n", ":2 is not UTF-8 text: byte 0xe9; save it as UTF-8"),
        ("page_size: 1\n".encode("utf-16"), ":1 is not UTF-8 text: byte 0xff; save it as UTF-8"),
        (b"[" * 5000, ": cannot be read: brackets nest more than 100 deep"),
        (b"page_size: " + b"9" * 5000, ": cannot be read: Exceeds the limit (4300 digits)"),
        (ALIASES, ": contains more than 500,000 values after its aliases are replaced"),
        (b"page_size: &a [*a]\n", ": cannot be read: "),
    ],
    ids=["latin-1", "utf-16", "deep", "long", "aliases", "circle"],
)
def test_bytes_that_are_no_file_are_refused_in_a_line(tmp_path: Path, raw: bytes, message: str) -> None:
    path = tmp_path / "account.yaml"
    path.write_bytes(raw)
    with pytest.raises(AccountFileError) as caught:
        read_account_file(path)
    assert str(caught.value).startswith(f"{path}{message}")
    assert "\n" not in str(caught.value)


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    path = tmp_path / "account.yaml"
    path.write_bytes(b"\xef\xbb\xbfpage_size: 3\n")
    assert read_account_file(path) == {"page_size": 3}


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (
            "{sytem: {never: 1}}",
            "nodes.sytem: must be an instance group of environment prod, got sytem; did you mean system?",
        ),
        (
            "{racks: {never: 1}}",
            "nodes.racks: must be an instance group of environment prod, got racks; use one of system, h100",
        ),
        (
            "{system: {never: 2, failing: 1}}",
            "nodes.system: must describe at most the 2 nodes of the group, got 3; lower never or failing",
        ),
    ],
)
def test_nodes_are_those_of_the_environment(tmp_path: Path, project: Path, nodes: str, message: str) -> None:
    path = tmp_path / "account.yaml"
    path.write_text(f"page_size: 10\nnodes: {nodes}\n", encoding="utf-8")
    assert read_account_file(path)["page_size"] == 10
    with pytest.raises(AccountFileError) as caught:
        load_document(path, project / "environments/prod.yaml")
    assert str(caught.value) == f"{path}:2 {message}"


def test_an_empty_file_is_an_account_with_nothing(tmp_path: Path) -> None:
    path = tmp_path / "account.yaml"
    path.write_text("", encoding="utf-8")
    assert AccountFile.model_validate(read_account_file(path)) == AccountFile()
