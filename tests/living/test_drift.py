"""Drift of the cluster: each planted difference is found once, with what the next deployment does about it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from hyperpod_cdk.checks.policy import VERBS
from hyperpod_cdk.living.drift import NOT_IN_CHANGE
from hyperpod_cdk.living.kinds import KINDS
from hyperpod_cdk.living.model import Difference, Next
from tests.living.account import CLUSTER_ARN, Account, Plant, only
from tests.support.scripted_aws import Fails
from tests.support.tables import row_by_row

LATER = "The next change of any part of this HyperPod cluster: "


def _others(account: Account) -> None:
    """Change something else of the cluster in the file."""
    account.in_file()["NodeProvisioningMode"] = "Continuous "


def _count(number: int) -> Plant:
    return lambda account: account.group("h100").update(TargetCount=number, CurrentCount=number)


def _file_count(number: int) -> Plant:
    return lambda account: account.group_in_file("h100").update(InstanceCount=number)


def _made_by_hand(account: Account) -> None:
    account.cluster["InstanceGroups"].append({**account.group("h100"), "InstanceGroupName": "extra"})


def _deleted_by_hand(account: Account) -> None:
    account.cluster["InstanceGroups"].remove(account.group("h100"))


def test_what_was_deployed_is_no_drift() -> None:
    """Order, defaults that AWS fills in, and numbers as text are none."""
    found = Account().drift()
    assert (found.differences, found.skipped, found.passed) == ((), (), True)
    assert found.verdict == "AWS matches the last deployment."
    left = {"AWS::EKS::PodIdentityAssociation", "Custom::CDKBucketDeployment", "Custom::AWSCDK-EKS-KubernetesResource"}
    left |= {"Custom::ComputeQuota", "Custom::ClusterSchedulerConfig"}
    assert set(found.compared) == set(KINDS) - left
    # what is compared with something else, such as a route with its table, is no gap
    assert found.not_compared == {}


@row_by_row(
    "plant, edit, expected",
    [
        # CloudFormation user guide, "Update behaviors of stack resources": templates are compared, not what AWS has
        pytest.param(
            _count(6),
            None,
            Next(
                effect="nothing",
                sentence=NOT_IN_CHANGE,
                later=f"{LATER}Sets h100 from 6 back to 2: 4 nodes are terminated; HyperPod chooses which.",
            ),
            id="scaled out, file as deployed",
        ),
        pytest.param(
            _count(6),
            _others,
            Next(
                effect="sets",
                sentence="Sets h100 from 6 back to 2: 4 nodes are terminated; HyperPod chooses which.",
                nodes_lost=4,
            ),
            id="scaled out, another part of the cluster changed",
        ),
        pytest.param(
            _count(3),
            _others,
            Next(
                effect="sets",
                sentence="Sets h100 from 3 back to 2: 1 node is terminated; HyperPod chooses which.",
                nodes_lost=1,
            ),
            id="one more",
        ),
        pytest.param(
            _count(6),
            _file_count(6),
            Next(effect="agrees", sentence="The file says what AWS has: nothing changes."),
            id="the file followed",
        ),
        pytest.param(
            _count(6),
            _file_count(4),
            Next(
                effect="sets",
                sentence="Sets h100 from 6 back to 4: 2 nodes are terminated; HyperPod chooses which.",
                nodes_lost=2,
            ),
            id="the file followed half",
        ),
        pytest.param(
            _count(6),
            _file_count(8),
            Next(effect="sets", sentence="Sets h100 from 6 to 8: 2 nodes are created."),
            id="the file asks for more",
        ),
        pytest.param(
            _count(1),
            _others,
            Next(effect="sets", sentence="Sets h100 from 1 to 2: 1 node is created."),
            id="scaled in",
        ),
        pytest.param(
            _count(0),
            None,
            Next(
                effect="nothing",
                sentence=NOT_IN_CHANGE,
                later=f"{LATER}Sets h100 from 0 to 2: 2 nodes are created.",
            ),
            id="scaled to nothing",
        ),
    ],
)
def test_a_count(plant: Plant, edit: Plant | None, expected: Next) -> None:
    account = Account()
    plant(account)
    if edit is not None:
        edit(account)
    found = account.drift()
    difference = only(found)
    assert (difference.path, difference.deployed, difference.actual) == (
        "InstanceGroups[h100].InstanceCount",
        "2",
        str(account.group("h100")["TargetCount"]),
    )
    assert difference.file == str(account.group_in_file("h100")["InstanceCount"])
    assert difference.next == expected
    assert found.passed is False


def _set(name: str, value: Any) -> Plant:
    return lambda account: account.cluster.update({name: value})


def _of_group(**values: Any) -> Plant:
    return lambda account: account.group("system").update(values)


def _labels(**values: Any) -> Plant:
    return lambda account: account.group("system")["KubernetesConfig"].update(values)


@row_by_row(
    "plant, path, deployed, actual",
    [
        (_set("NodeRecovery", "None"), "NodeRecovery", "Automatic", "None"),
        (_set("AutoScaling", {"Mode": "Enable"}), "AutoScaling.Mode", None, "Enable"),
        (_set("AutoScaling", {"Mode": "Disable"}), None, None, None),
        (_set("TieredStorageConfig", {"Mode": "Enable"}), "TieredStorageConfig.Mode", None, "Enable"),
        (_set("TieredStorageConfig", {"Mode": "Disable"}), None, None, None),
        (_of_group(OnStartDeepHealthChecks=[]), None, None, None),
        (_of_group(OnStartDeepHealthChecks=["InstanceStress"]), "OnStartDeepHealthChecks", None, "InstanceStress"),
        (
            _of_group(ScheduledUpdateConfig={"ScheduleExpression": "cron(0 3 ? * SUN *)"}),
            "ScheduledUpdateConfig.ScheduleExpression",
            None,
            "cron(0 3 ? * SUN *)",
        ),
        (_of_group(DesiredImageReleaseVersion="2.2.0"), "ImageReleaseVersion", "2.1.0", "2.2.0"),
        (_of_group(DesiredImageId="ami-0b"), None, None, None),
        (_of_group(InstanceType="ml.p5e.48xlarge"), "InstanceType", "ml.p5.48xlarge", "ml.p5e.48xlarge"),
        (_of_group(ThreadsPerCore=1), "ThreadsPerCore", "2", "1"),
        (_of_group(MinCount=1), "MinInstanceCount", None, "1"),
        (_of_group(TrainingPlanArn="arn:plan"), "TrainingPlanArn", None, "arn:plan"),
        (
            _of_group(LifeCycleConfig={"SourceS3Uri": "s3://mine/x", "OnCreate": "on_create.sh"}),
            "LifeCycleConfig.SourceS3Uri",
            "s3://sagemaker-dev/0a",
            "s3://mine/x",
        ),
        (
            _of_group(OverrideVpcConfig={"SecurityGroupIds": ["sg-0a1b", "sg-9"], "Subnets": ["subnet-0a1b"]}),
            "OverrideVpcConfig.SecurityGroupIds",
            "sg-0a1b",
            "sg-0a1b, sg-9",
        ),
        (
            _of_group(InstanceStorageConfigs=[{"EbsVolumeConfig": {"VolumeSizeInGB": 600}}]),
            "InstanceStorageConfigs",
            '{"EbsVolumeConfig": {"VolumeSizeInGB": "500"}}',
            '{"EbsVolumeConfig": {"VolumeSizeInGB": "600"}}',
        ),
        (_labels(DesiredLabels={"role": "other"}), "KubernetesConfig.Labels.role", "system", "other"),
        (
            _labels(DesiredLabels={"role": "system", "team": "a"}),
            "KubernetesConfig.Labels.team",
            None,
            "a",
        ),
        (_labels(DesiredLabels={}), "KubernetesConfig.Labels.role", "system", None),
        (
            _labels(DesiredTaints=[]),
            "KubernetesConfig.Taints",
            '{"Effect": "NoSchedule", "Key": "system", "Value": "true"}',
            None,
        ),
    ],
)
def test_a_setting(plant: Plant, path: str | None, deployed: str | None, actual: str | None) -> None:
    account = Account()
    plant(account)
    found = account.drift()
    if path is None:
        # the template says nothing of it, and AWS fills it in
        assert found.differences == ()
        return
    difference = only(found)
    of_cluster = ("NodeRecovery", "AutoScaling", "TieredStorageConfig")
    of_group = "" if path.startswith(of_cluster) else "InstanceGroups[system]."
    assert (difference.path, difference.deployed, difference.file, difference.actual) == (
        f"{of_group}{path}",
        deployed,
        deployed,
        actual,
    )
    assert (difference.next.effect, difference.next.nodes_lost) == ("nothing", 0)
    # whether a release goes again that the templates do not change is not documented
    assert difference.next.later.startswith("" if path == "ImageReleaseVersion" else LATER)


def test_what_is_inside_of_a_nested_stack_is_skipped_and_not_as_deployed() -> None:
    account = Account()
    nested = {"Type": "AWS::CloudFormation::Stack", "Properties": {"TemplateURL": "https://s3.amazonaws.com/a/b.json"}}
    for templates in (account.deployed, account.head):
        templates["dev-foundation"]["Resources"]["Nested"] = nested
    found = account.drift()
    assert (found.differences, found.passed) == ((), None)
    assert [(each.what, each.reason) for each in found.skipped] == [
        ("dev-foundation / Nested (nested stack)", "the resources of a nested stack are not compared")
    ]


def test_settings_are_sent_with_any_change_of_the_cluster() -> None:
    account = Account()
    account.cluster["NodeRecovery"] = "None"
    _others(account)
    assert only(account.drift()).next == Next(effect="sets", sentence="Sets NodeRecovery from None to Automatic.")


def test_what_goes_only_where_the_templates_differ_is_unknown_elsewhere() -> None:
    account = Account()
    account.group("system")["DesiredImageReleaseVersion"] = "2.2.0"
    account.tags[0]["Value"] = "43"
    _others(account)
    release, tag = sorted(account.drift().differences, key=lambda each: each.path)
    unknown = "Unknown: the resource is in the change and this {} is not; whether CloudFormation sends it again is not"
    assert release.next == Next(effect="unknown", sentence=f"{unknown.format('property')} documented.", nodes_lost=None)
    assert tag.next == Next(effect="unknown", sentence=f"{unknown.format('tag')} documented.")
    account.in_file()["Tags"] = [{"Key": "cost-center", "Value": "44"}]
    found = {each.path: each.next.sentence for each in account.drift().differences}
    assert found["Tags[cost-center]"] == "Sets Tags[cost-center] from 43 to 44."


def test_an_instance_type_cannot_be_set_back() -> None:
    """UpdateCluster changes no InstanceType of a group that stands (catalog/data/updates.json)."""
    account = Account()
    account.group("system")["InstanceType"] = "ml.p5e.48xlarge"
    _others(account)
    assert only(account.drift()).next.effect == "fails"


def test_a_group_made_by_hand_is_reported_once() -> None:
    account = Account()
    _made_by_hand(account)
    difference = only(account.drift())
    assert (difference.path, difference.deployed, difference.file, difference.actual) == (
        "InstanceGroups[extra]",
        None,
        None,
        "there",
    )
    assert difference.next.effect == "nothing"
    _others(account)
    found = account.drift()
    assert only(found).next == Next(
        effect="unknown",
        sentence=(
            "Unknown: the update leaves out group extra. AWS's pages differ on whether that alone deletes it with"
            " its nodes; add it to the file first."
        ),
        nodes_lost=None,
    )
    assert found.verdict == "1 difference; it is unknown whether the next deployment removes nodes."
    # what is not known is no zero beside what is
    account.group("h100")["TargetCount"] = 6
    assert account.drift().verdict == "2 differences; the next deployment removes at least 4 nodes."


def test_a_group_deleted_by_hand_is_reported_once() -> None:
    account = Account()
    _deleted_by_hand(account)
    difference = only(account.drift())
    assert (difference.path, difference.deployed, difference.actual) == ("InstanceGroups[h100]", "there", None)
    _others(account)
    assert only(account.drift()).next == Next(effect="makes", sentence="Creates group h100 again, with new nodes.")


def test_a_cluster_deleted_by_hand() -> None:
    account = Account(more={"sagemaker:DescribeCluster": Fails("ResourceNotFound", "Cluster with name dev not found.")})
    difference = only(account.drift())
    assert (difference.path, difference.deployed, difference.actual) == ("", "there", None)
    assert difference.next.sentence == f"{NOT_IN_CHANGE} It is not created again."
    _others(account)
    assert only(account.drift()).next.effect == "fails"
    del account.head["dev-foundation"]["Resources"]["Cluster"]
    assert only(account.drift()).next.effect == "agrees"


def test_tags() -> None:
    account = Account(tags=[{"Key": "cost-center", "Value": "43"}, {"Key": "owner", "Value": "dana"}])
    account.tags.append({"Key": "aws:cloudformation:stack-name", "Value": "dev-foundation"})
    found = account.drift()
    assert [(each.path, each.deployed, each.actual) for each in found.differences] == [
        ("Tags[cost-center]", "42", "43"),
        ("Tags[owner]", None, "dana"),
    ]


@pytest.mark.parametrize("name", ["AutoScaling", "TieredStorageConfig"])
def test_what_an_update_leaves_out_is_not_reported_as_removed(name: str) -> None:
    """UpdateCluster turns it off by its mode; of a request without it no page tells anything."""
    account = Account()
    account.cluster[name] = {"Mode": "Enable"}
    found = only(account.drift()).next
    unknown = "Unknown: no template has it, and whether an update that omits it removes it is not documented."
    assert (found.effect, found.sentence, found.later) == ("nothing", NOT_IN_CHANGE, f"{LATER}{unknown}")
    account.in_file()["NodeRecovery"] = "None"
    found = only(account.drift()).next
    assert (found.effect, found.sentence, found.nodes_lost) == ("unknown", unknown, None)
    # one that the file states is sent
    account.in_file()[name] = {"Mode": "Disable"}
    assert only(account.drift()).next.effect == "sets"


@pytest.mark.parametrize(
    ("path", "deployed", "actual"),
    [
        ("AutoScaling.Mode", {"AutoScaling": {"Mode": "Enable"}}, {"AutoScaling": {"Mode": "Disable"}}),
        (
            "TieredStorageConfig.Mode",
            {"TieredStorageConfig": {"Mode": "Enable"}},
            {"TieredStorageConfig": {"Mode": "Disable"}},
        ),
    ],
)
def test_what_the_file_leaves_out_again_is_not_reported_as_removed(
    path: str, deployed: dict[str, Any], actual: dict[str, Any]
) -> None:
    account = Account()
    account.deployed["dev-foundation"]["Resources"]["Cluster"]["Properties"].update(deployed)
    account.cluster.update(actual)
    found = only(account.drift())
    assert (found.path, found.deployed, found.file, found.actual) == (path, "Enable", None, "Disable")
    unknown = "Unknown: the file omits it, and whether an update that omits it removes it is not documented."
    assert (found.next.effect, found.next.sentence, found.next.nodes_lost) == ("unknown", unknown, None)


@pytest.mark.parametrize(
    ("group", "by_hand", "path", "effect"),
    [
        # the group of the file declares labels, and the other one declares none
        (
            "system",
            {"KubernetesConfig": {"DesiredLabels": {"role": "system", "use": "web"}}},
            "KubernetesConfig.Labels.use",
            "sets",
        ),
        ("h100", {"KubernetesConfig": {"DesiredLabels": {"use": "web"}}}, "KubernetesConfig.Labels.use", "unknown"),
        ("system", {"OnStartDeepHealthChecks": ["InstanceStress"]}, "OnStartDeepHealthChecks", "unknown"),
        (
            "h100",
            {"ScheduledUpdateConfig": {"ScheduleExpression": "cron(0 3 ? * SUN *)"}},
            "ScheduledUpdateConfig.ScheduleExpression",
            "unknown",
        ),
    ],
)
def test_what_a_group_of_the_file_leaves_out_is_not_reported_as_removed(
    group: str, by_hand: dict[str, Any], path: str, effect: str
) -> None:
    account = Account()
    account.group(group).update(by_hand)
    if group == "system" and "KubernetesConfig" in by_hand:
        taints = [{"Key": "system", "Value": "true", "Effect": "NoSchedule"}]
        account.group(group)["KubernetesConfig"]["DesiredTaints"] = taints
    _others(account)
    found = only(account.drift())
    assert (found.path, found.next.effect) == (f"InstanceGroups[{group}].{path}", effect)


def test_a_protection_that_is_switched_off_is_found_and_comes_back_with_a_change() -> None:
    account = Account()
    account.more["eks:DescribeCluster"]["cluster"]["deletionProtection"] = False
    found = only(account.drift())
    assert (found.resource, found.path, found.deployed, found.actual) == ("Protection", "Enabled", "true", "false")
    resent = "the function behind it switches the protection with every update."
    assert (found.next.effect, found.next.sentence) == ("nothing", NOT_IN_CHANGE)
    assert found.next.later.endswith(f": Sets Enabled from false to true: {resent}")
    # one that was off before EKS had it is told without the member
    del account.more["eks:DescribeCluster"]["cluster"]["deletionProtection"]
    assert only(account.drift()).actual == "false"
    account.head["dev-foundation"]["Resources"]["Protection"]["Properties"]["Enabled"] = False
    assert only(account.drift()).next.effect == "agrees"


def test_a_tag_of_a_bucket_may_go_with_the_others() -> None:
    """PutBucketTagging puts all tags anew, where other services add one."""
    tags = [{"Key": "owner", "Value": "dana"}]
    account = Account(more={"s3:GetBucketTagging": {"TagSet": tags}})
    assert only(account.drift()).next.effect == "nothing"
    account.head["dev-foundation"]["Resources"]["Bucket"]["Properties"]["Tags"] = [{"Key": "team", "Value": "ml"}]
    said = {each.path: each.next.effect for each in account.drift().differences}
    assert said["Tags[owner]"] == "unknown"


def test_a_rule_by_which_a_bucket_deletes_is_found() -> None:
    """S3 deletes by it the scripts that the next node runs; a template that states rules of its own is not compared."""
    rule = {"ID": "old", "Status": "Enabled", "Filter": {"Prefix": ""}, "Expiration": {"Days": 1}}
    account = Account(more={"s3:GetBucketLifecycleConfiguration": {"Rules": [rule]}})
    found = only(account.drift())
    assert (found.path, found.deployed, found.file, found.next.effect) == ("LifecycleRules[old]", None, None, "nothing")
    assert '"Days": "1"' in str(found.actual)
    for templates in (account.deployed, account.head):
        bucket = templates["dev-foundation"]["Resources"]["Bucket"]["Properties"]
        bucket["LifecycleConfiguration"] = {"Rules": [{"Status": "Enabled", "ExpirationInDays": 1}]}
    assert account.drift().differences == ()


def test_what_karpenter_scales_is_no_drift() -> None:
    account = Account()
    for template in (account.deployed, account.head):
        resources = template["dev-foundation"]["Resources"]
        resources["Counts"] = {"Type": "Custom::HyperPodNodeCounts", "Properties": {"Groups": ["h100"]}}
        cluster = resources["Cluster"]["Properties"]
        cluster["AutoScaling"] = {"Mode": "Enable", "AutoScalerType": "Karpenter"}
        cluster["InstanceGroups"][0]["InstanceCount"] = {"Fn::GetAtt": ["Counts", "Count0"]}
    account.cluster["AutoScaling"] = {"Mode": "Enable", "AutoScalerType": "Karpenter", "Status": "InService"}
    account.group("h100")["TargetCount"] = 17
    assert account.drift().differences == ()


def test_since_when_a_count_is_another() -> None:
    moment = datetime(2026, 11, 20, 3, 4, tzinfo=UTC)
    row = {"OperationId": "1", "ClusterArn": CLUSTER_ARN, "Type": "Scaling", "Status": "Done", "CreationTime": moment}
    account = Account(more={"sagemaker:ListClusterOperations": {"ClusterOperationSummaries": [row]}})
    account.group("h100")["TargetCount"] = 6
    assert only(account.drift()).since == "last scaled 2026-11-20 03:04 UTC"
    account.more["sagemaker:ListClusterOperations"] = Fails("AccessDeniedException", "no", 403)
    found = account.drift()
    assert only(found).since == ""
    assert [(each.what, each.action) for each in found.skipped] == [
        ("when dev-foundation / Cluster was last scaled", "sagemaker:ListClusterOperations")
    ]
    account.more["sagemaker:ListClusterOperations"] = {}
    (skipped,) = account.drift().skipped
    lost = "'ClusterOperationSummaries' is missing"
    assert skipped.reason == f"the answer to sagemaker:ListClusterOperations cannot be read: {lost}"
    # of a cluster that was never scaled there is no time
    account.more["sagemaker:ListClusterOperations"] = {"ClusterOperationSummaries": []}
    found = account.drift()
    assert (only(found).since, found.skipped) == ("", ())


def test_a_count_that_removes_nodes_is_listed_first() -> None:
    account = Account(tags=[])
    account.cluster["NodeRecovery"] = "None"
    account.group("system")["TargetCount"] = 3
    _others(account)
    found = account.drift()
    assert [each.path for each in found.differences] == [
        "InstanceGroups[system].InstanceCount",
        "NodeRecovery",
        "Tags[cost-center]",
    ]
    assert found.verdict == "3 differences; the next deployment removes 1 node."


def test_what_could_not_be_read_is_never_clean() -> None:
    account = Account(more={"sagemaker:DescribeCluster": Fails("AccessDeniedException", "no", 403)})
    found = account.drift()
    (skipped,) = found.skipped
    assert (found.passed, found.differences) == (None, ())
    assert "AWS::SageMaker::Cluster" not in found.compared
    assert skipped.what == "dev-foundation / Cluster (HyperPod cluster)"
    assert skipped.action == "sagemaker:DescribeCluster"
    assert found.verdict == "No difference in what was read; 1 thing could not be checked."


def test_an_answer_that_lost_something_is_skipped() -> None:
    account = Account()
    del account.group("h100")["InstanceGroupName"]
    (skipped,) = account.drift().skipped
    assert skipped.reason == "the answer to sagemaker:DescribeCluster cannot be read: 'InstanceGroupName' is missing"
    # groups that AWS does not show were not deleted by hand
    account = Account()
    del account.cluster["InstanceGroups"]
    found = account.drift()
    (skipped,) = found.skipped
    assert (found.passed, found.differences) == (None, ())
    assert skipped.reason == "the answer to sagemaker:DescribeCluster cannot be read: 'InstanceGroups' is missing"


def test_a_cluster_on_slurm_is_skipped_in_one_line() -> None:
    account = Account()
    del account.cluster["Orchestrator"]
    found = account.drift()
    (skipped,) = found.skipped
    assert (found.passed, skipped.reason) == (None, "cluster dev runs Slurm or nothing yet, not EKS")


@pytest.mark.parametrize("status", ["UPDATE_IN_PROGRESS", "UPDATE_ROLLBACK_FAILED"])
def test_a_stack_in_between_is_skipped(status: str) -> None:
    account = Account(statuses={"dev-foundation": status})
    account.group("h100")["TargetCount"] = 6
    found = account.drift()
    (skipped,) = found.skipped
    assert (found.passed, found.differences) == (None, ())
    assert skipped.reason == f"it is {status}: its resources may differ from its template"


def test_a_stack_without_a_template_is_skipped() -> None:
    """It may hold what an import has brought into it, and could not roll back."""
    account = Account(statuses={"dev-platform": "IMPORT_ROLLBACK_FAILED"})
    account.deployed["dev-platform"] = {}
    found = account.drift()
    assert (found.passed, found.differences) == (None, ())
    assert [(each.what, each.reason) for each in found.skipped] == [
        ("dev-platform", "it is IMPORT_ROLLBACK_FAILED, and CloudFormation shows no template of it")
    ]


def test_nothing_is_deployed() -> None:
    account = Account(deployed={})
    found = account.drift()
    assert (found.passed, found.verdict) == (
        None,
        "No stack is deployed in 111122223333 us-east-1, so there is nothing to compare.",
    )


def test_a_setting_that_is_stated_off_and_that_aws_leaves_out_is_no_drift() -> None:
    account = Account()
    account.deployed["dev-foundation"]["Resources"]["Cluster"]["Properties"]["AutoScaling"] = {"Mode": "Disable"}
    account.in_file()["AutoScaling"] = {"Mode": "Disable"}
    assert account.drift().differences == ()


def test_without_the_cluster_nothing_has_passed() -> None:
    account = Account()
    for templates in (account.deployed, account.head):
        del templates["dev-foundation"]["Resources"]["Cluster"]
    found = account.drift()
    assert (found.passed, found.verdict) == (
        None,
        "No HyperPod cluster is deployed; AWS matches the last deployment for everything else.",
    )


def test_an_unknown_reference_is_skipped() -> None:
    account = Account()
    for template in (account.deployed, account.head):
        template["dev-foundation"]["Resources"]["Cluster"]["Properties"]["ClusterRole"] = {
            "Fn::ImportValue": "elsewhere"
        }
    (skipped,) = account.drift().skipped
    assert skipped.reason == ("the template says ClusterRole by a reference whose value CloudFormation does not show")


def test_only_what_the_policy_of_the_verb_allows_is_asked() -> None:
    account = Account()
    account.group("h100")["TargetCount"] = 6
    account.drift()
    (verb,) = (each for each in VERBS if each.name == "drift")
    actions = {
        "s3:GetBucketEncryption": "s3:GetEncryptionConfiguration",
        "s3:GetBucketLifecycleConfiguration": "s3:GetLifecycleConfiguration",
        "s3:GetPublicAccessBlock": "s3:GetBucketPublicAccessBlock",
        "budgets:DescribeBudget": "budgets:ViewBudget",
        "budgets:DescribeNotificationsForBudget": "budgets:ViewBudget",
        "budgets:DescribeSubscribersForNotification": "budgets:ViewBudget",
    }
    assert {actions.get(name, name) for name, _ in account.asked} <= set(verb.actions)


def test_every_difference_is_data() -> None:
    account = Account()
    account.group("h100")["TargetCount"] = 6
    difference = only(account.drift())
    assert isinstance(difference, Difference)
    assert (difference.stack, difference.resource, difference.id) == ("dev-foundation", "Cluster", CLUSTER_ARN)


@pytest.mark.parametrize(
    ("efa", "effect", "said"),
    [
        (False, "sets", "to 500."),
        (True, "fails", "because the service refuses it"),
        (
            {"Fn::ImportValue": "elsewhere"},
            "sets",
            "to 500: a value that decides it is known only at deployment; possibly",
        ),
    ],
)
def test_a_value_that_other_properties_make_a_service_refuse(efa: Any, effect: str, said: str) -> None:
    """FSx changes no throughput of a file system with EFA (FSx API reference, UpdateFileSystemLustreConfiguration)."""
    account = Account()
    for side in (account.deployed, account.head):
        settings = side["dev-foundation"]["Resources"]["FileSystem"]["Properties"]["LustreConfiguration"]
        settings["EfaEnabled"] = efa
    account.in_file("FileSystem")["LustreConfiguration"]["PerUnitStorageThroughput"] = 500
    (system,) = account.more["fsx:DescribeFileSystems"]["FileSystems"]
    system["LustreConfiguration"] |= {"PerUnitStorageThroughput": 125, "EfaEnabled": efa is True}
    (found,) = [each for each in account.drift().differences if each.path.endswith("PerUnitStorageThroughput")]
    assert found.next.effect == effect
    assert said in found.next.sentence
