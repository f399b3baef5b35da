"""Plans between small assemblies: the steps and their texts, and refusals with their fixes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from hyperpod_cdk.review.model import Minutes
from hyperpod_cdk.templates.assembly import EMPTY, Assembly, Stack
from hyperpod_cdk.transitions.cdk import selection
from hyperpod_cdk.transitions.model import Refusal
from tests.support.picomatch import matches
from tests.support.tables import row_by_row
from tests.transitions.stacks import ACCOUNT, REGION, assembly, planned, stack, steps

NETWORK = stack("network", exports=["vpc"])
STORAGE = stack("storage", exports=["scratch"], imports=["vpc"], after=["network"])
PLATFORM = stack("platform", imports=["scratch"], after=["storage"])
ALL = assembly(NETWORK, STORAGE, PLATFORM)


def _files(name: str, subnet: str = "subnet-1") -> dict[str, Any]:
    return {
        name: {
            "Type": "AWS::FSx::FileSystem",
            "Properties": {"FileSystemType": "LUSTRE", "StorageCapacity": 1200, "SubnetIds": [subnet]},
            "DeletionPolicy": "Retain",
            "UpdateReplacePolicy": "Retain",
        }
    }


def _nested(template: str) -> dict[str, Any]:
    """A nested stack, as an extension may add one; its template is another file."""
    properties = {"TemplateURL": f"https://s3.amazonaws.com/assets/{template}.json"}
    return {"Nested": {"Type": "AWS::CloudFormation::Stack", "Properties": properties}}


WITH_NESTED = assembly(NETWORK, stack("results", resources=_nested("a")))
CHANGES = (
    "dev-results / Nested: TemplateURL https://s3.amazonaws.com/assets/a.json -> "
    "https://s3.amazonaws.com/assets/b.json: Perhaps, because it is unknown: Changes inside of a nested stack are "
    "not in this template."
)
GOES = "dev-results / Nested: It is deleted, and with it the resources of its template."


@pytest.mark.parametrize(
    ("base", "head", "needs_a_person", "loses"),
    [
        (WITH_NESTED, WITH_NESTED, None, []),
        (assembly(NETWORK), WITH_NESTED, False, []),
        (
            WITH_NESTED,
            assembly(NETWORK, stack("results", resources=_nested("b"))),
            True,
            [CHANGES],
        ),
        (WITH_NESTED, assembly(NETWORK, stack("results")), True, [GOES]),
        # it leaves the app, and the environment is destroyed
        (WITH_NESTED, assembly(NETWORK), True, [GOES]),
        (WITH_NESTED, assembly(), True, [GOES]),
    ],
)
def test_what_a_nested_stack_holds_is_lost_only_by_a_person(
    *, base: Assembly, head: Assembly, needs_a_person: bool | None, loses: list[str]
) -> None:
    found = planned(base, head)
    assert found.refusals == ()
    assert [each.needs_a_person for each in found.steps] == ([] if needs_a_person is None else [needs_a_person])
    assert [line for each in found.steps for line in each.loses if "Nested" in line] == loses
    assert "The template of the nested stack dev-results / Nested is another file, which was not read." in found.notes


def _claim(reclaim: str = "Retain") -> dict[str, Any]:
    objects = [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "ml.fsx"},
            "spec": {"persistentVolumeReclaimPolicy": reclaim},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"namespace": "ml", "name": "fsx"},
            "spec": {"volumeName": "ml.fsx"},
        },
    ]
    manifest = {"Type": "Custom::AWSCDK-EKS-KubernetesResource", "Properties": {"Manifest": json.dumps(objects)}}
    return {"Claim": manifest}


@pytest.mark.parametrize(
    ("base", "head", "expected"),
    [
        pytest.param(ALL, ALL, [], id="no change"),
        pytest.param(EMPTY, ALL, [("deploy", "dev-network", "dev-storage", "dev-platform")], id="first deployment"),
        pytest.param(
            ALL,
            assembly(NETWORK, stack("storage", imports=["vpc"], after=["network"]), stack("platform")),
            [("deploy", "dev-platform", "exclusively"), ("deploy", "dev-storage")],
            id="an export goes",
        ),
        pytest.param(
            ALL,
            assembly(NETWORK, stack("platform")),
            [("deploy", "dev-platform"), ("delete", "dev-storage")],
            id="a stack leaves the app",
        ),
        pytest.param(
            ALL,
            assembly(stack("network"), stack("platform")),
            [("deploy", "dev-platform", "exclusively"), ("delete", "dev-storage"), ("deploy", "dev-network")],
            id="a stack that leaves holds what another drops",
        ),
        pytest.param(
            ALL,
            assembly(NETWORK, STORAGE, PLATFORM, stack("more", imports=["scratch"], after=["storage"])),
            [("deploy", "dev-more")],
            id="a stack comes",
        ),
        pytest.param(
            ALL,
            assembly(NETWORK, stack("storage", exports=["scratch"], imports=["vpc"], protected=True), PLATFORM),
            [("deploy", "dev-storage")],
            id="nothing but protection",
        ),
    ],
)
def test_steps(base: Assembly, head: Assembly, expected: list[tuple[str, ...]]) -> None:
    found = planned(base, head)
    assert found.refusals == ()
    assert steps(found) == expected


def test_what_is_reported_about_a_file_system_that_goes() -> None:
    base = assembly(
        stack("storage", exports=["scratch"], resources=_files("Scratch")),
        stack("platform", imports=["scratch"], after=["storage"], resources=_claim()),
    )
    found = planned(base, assembly(stack("storage"), stack("platform", after=["storage"])))
    assert found.verdict == "2 steps, 1 of which needs a person."
    release, last = found.steps
    assert release.commands == (
        "hyperpod-cdk cdk deploy dev/platform --exclusively -c env=dev --concurrency 3 --require-approval never",
    )
    assert release.selected == ("dev/platform",)
    assert release.why == (
        ("dev-platform still uses scratch, which dev-storage will remove; CloudFormation refuses the opposite order."),
    )
    assert release.does == ("dev-platform: 2 deleted.",)
    (first,) = release.first
    assert first == (
        "End the pods that mount the claim ml/fsx: Kubernetes keeps a claim while a pod uses it, and the deployment "
        "gives up after attempts of 15 minutes."
    )
    # what the claim leads to stays: its volume is retained
    assert release.loses == ()
    assert release.interrupts == ("dev-platform / Claim: It is deleted: kubectl deletes its objects.",)
    assert last.commands == ("hyperpod-cdk cdk deploy 'dev/*' -c env=dev --concurrency 3 --require-approval never",)
    assert last.does == ("dev-storage: 1 deleted, 1 left in the account.",)
    assert last.stays == ("dev-storage / Scratch remains in the account and costs money.",)
    assert last.back == "Deploy the current version again, in 1 step; this creates again, without the data: Scratch."
    assert (last.first, last.loses, last.unknown, last.why) == ((), (), (), ())
    assert found.total == Minutes(low=release.lasts.low + last.lasts.low, high=release.lasts.high + last.lasts.high)


def test_what_is_reported_about_an_environment_that_goes() -> None:
    on_it = {"ServiceToken": "arn:aws:lambda:us-east-1:111122223333:function:k", "ClusterName": {"Ref": "Cluster"}}
    chart = {"Type": "Custom::AWSCDK-EKS-HelmChart", "Properties": {**on_it, "Release": "hyperpod"}}
    made = {
        "Cluster": {"Type": "AWS::EKS::Cluster", "Properties": {"Name": "dev"}},
        "Chart": {**chart, "DeletionPolicy": "Retain"},
        "Layer": {"Type": "AWS::Lambda::LayerVersion", "Properties": {}},
        "Logs": {"Type": "AWS::Logs::LogGroup", "Properties": {}, "DeletionPolicy": "Retain"},
    }
    stands = stack("foundation", exports=["efa"], resources=made)
    exported = {**stands.outputs, "Eks": {"Value": {"Ref": "Cluster"}, "Export": {"Name": "eks"}}}
    base = assembly(replace(stands, template={**stands.template, "Outputs": exported}))
    found = planned(base, EMPTY)
    assert found.verdict == "1 step, which needs a person."
    (step,) = found.steps
    # nobody imports what is exported, functions keep the layer that they have, and the chart goes with its cluster
    assert step.does == ("dev-foundation: deletes it: 5 deleted, 1 left in the account.",)
    assert step.loses == (
        "dev-foundation / Always: It is deleted, and with it messages.",
        "dev-foundation / Cluster: It is deleted: all Kubernetes objects are lost.",
        "dev-foundation / Chart: It is deleted with Cluster.",
    )
    assert set(step.interrupts) == set(step.loses)
    assert step.stays == ("dev-foundation / Logs remains in the account and costs money.",)
    assert step.unknown == ()


def test_a_claim_whose_volume_goes_with_it_is_lost() -> None:
    base = assembly(stack("platform", resources=_claim("Delete")))
    (step,) = planned(base, assembly(stack("platform"))).steps
    assert step.loses == ("dev-platform / Claim: It is deleted: kubectl deletes its objects.",)
    assert step.needs_a_person


def test_what_is_reported_about_a_stack_that_leaves() -> None:
    bucket = {"Data": {"Type": "AWS::S3::Bucket", "DeletionPolicy": "Delete"}}
    base = assembly(stack("network"), stack("storage", resources={**bucket, **_files("Scratch")}, protected=True))
    (step,) = planned(base, assembly(stack("network"))).steps
    where = "--stack-name dev-storage --region us-east-1"
    assert step.commands == (
        f"aws cloudformation update-termination-protection --no-enable-termination-protection {where}",
        f"aws cloudformation delete-stack {where}",
        f"aws cloudformation wait stack-delete-complete {where}",
    )
    assert step.selected == ()
    assert step.does == (
        "dev-storage: disables its termination protection and deletes it: 2 deleted, 1 left in the account.",
    )
    assert [each.partition(":")[0] for each in step.loses] == ["dev-storage / Always", "dev-storage / Data"]
    assert step.stays == ("dev-storage / Scratch remains in the account and costs money.",)
    assert step.back == "Deploy dev-storage again from the revision that has it; what it creates is new and empty."
    assert step.needs_a_person


def test_a_first_deployment_goes_back_by_a_destroy() -> None:
    (step,) = planned(EMPTY, ALL).steps
    assert step.back == "Destroy these stacks: nothing was deployed before."
    assert step.does[0] == "dev-network: is created, 2 resources."


def test_an_app_without_stages_is_deployed_by_the_names_of_its_stacks() -> None:
    lone = stack("one")
    head = Assembly(environment="", stacks=(type(lone)(name="one", template=lone.template, shown="one"),))
    (step,) = planned(EMPTY, head).steps
    assert step.selected == ("--all",)


def _refused(base: Assembly, head: Assembly, **more: Any) -> Refusal:
    found = planned(base, head, **more)
    assert found.steps == ()
    assert found.verdict == "Refused: 1 reason; nothing would be changed."
    (refusal,) = found.refusals
    return refusal


def test_an_export_that_changes_in_use_is_refused() -> None:
    def side(subnet: str) -> Assembly:
        exported = stack("storage", resources=_files("Scratch", subnet))
        template = {**exported.template, "Outputs": {"O": {"Value": {"Ref": "Scratch"}, "Export": {"Name": "fs"}}}}
        return assembly(type(exported)(**{**vars(exported), "template": template}), stack("platform", imports=["fs"]))

    refusal = _refused(side("subnet-1"), side("subnet-2"))
    assert refusal.why == (
        "dev-storage would change Scratch, which dev-platform uses before and after the change. CloudFormation does "
        "not change an export that is in use. Replaced: Scratch because of its SubnetIds."
    )
    assert refusal.what_works.startswith("Two deployments: first a file in which nothing of dev-platform uses Scratch")
    # CloudFormation gives a template without the construct's path where its metadata was left out
    named = side("subnet-2")
    named.by_name["dev-storage"].template["Resources"]["Scratch"]["Metadata"] = {
        "aws:cdk:path": "dev/storage/Files/Resource"
    }
    assert _refused(side("subnet-1"), named).why.endswith("Replaced: Scratch because of its SubnetIds.")


def test_a_network_that_changes_in_use_is_not_worth_two_deployments() -> None:
    # a VPC whose block changes is replaced (AWS::EC2::VPC, CidrBlock), and every interface in it
    def side(block: str) -> Assembly:
        vpc = {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": block}}
        exported = stack("network", resources={"Vpc": vpc})
        template = {**exported.template, "Outputs": {"O": {"Value": {"Ref": "Vpc"}, "Export": {"Name": "vpc"}}}}
        return assembly(replace(exported, template=template), stack("platform", imports=["vpc"]))

    assert _refused(side("10.0.0.0/16"), side("10.1.0.0/16")).what_works == (
        "Keep the settings that replace Vpc in the file as they are deployed. Or create a second environment,"
        " move the workloads to it, and destroy this one."
    )


def test_a_circle_is_refused() -> None:
    base = assembly(stack("storage", exports=["old"]), stack("platform", imports=["old"], after=["storage"]))
    head = assembly(stack("storage", exports=["new"]), stack("platform", imports=["new"], after=["storage"]))
    refusal = _refused(base, head)
    told = {
        "dev-platform needs new, which is new in dev-storage",
        "dev-platform still uses old, which dev-storage will remove",
    }
    assert set(refusal.why.removeprefix("No order of stacks works: ").removesuffix(".").split("; ")) == told


def test_a_recreated_layer_needs_no_approval() -> None:
    # the layer of kubectl is another with every minor of Kubernetes; Lambda API, DeleteLayerVersion: "functions that
    # already use the version aren't affected"
    def side(key: str) -> Assembly:
        content = {"Content": {"S3Bucket": "assets", "S3Key": key}}
        layer = {"Type": "AWS::Lambda::LayerVersion", "Properties": content}
        return assembly(stack("foundation", resources={"KubectlLayer": layer}))

    (step,) = planned(side("a.zip"), side("b.zip")).steps
    assert not step.needs_a_person


_ONCE_GONE = (
    "Deploy the current version again, in 1 step, once It no longer exists: it stays in the account, and no other can "
    "have the same name, block or folder; this creates again, without the data: It."
)


@pytest.mark.parametrize(
    ("body", "back"),
    [
        (
            {"Type": "AWS::EC2::VPCCidrBlock", "Properties": {"VpcId": "vpc-1", "CidrBlock": "10.1.0.0/16"}},
            _ONCE_GONE,
        ),
        (
            {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "mine"}},
            _ONCE_GONE,
        ),
        # CloudFormation gives each another name
        (
            {"Type": "AWS::S3::Bucket"},
            "Deploy the current version again, in 1 step; this creates again, without the data: It.",
        ),
    ],
)
def test_what_stays_may_be_in_the_way_of_the_way_back(body: dict[str, Any], back: str) -> None:
    base = assembly(stack("foundation", resources={"It": {**body, "DeletionPolicy": "Retain"}}))
    (step,) = planned(base, assembly(stack("foundation"))).steps
    assert step.back == back


def test_kubernetes_goes_up_one_minor_at_a_time() -> None:
    # docs.aws.amazon.com/eks/latest/userguide/update-cluster.html: "you can only update one minor version at a time"
    def side(version: str) -> Assembly:
        return assembly(
            stack("foundation", resources={"Eks": {"Type": "AWS::EKS::Cluster", "Properties": {"Version": version}}})
        )

    assert planned(side("1.33"), side("1.34")).refusals == ()
    assert _refused(side("1.32"), side("1.35")) == Refusal(
        why="dev-foundation / Eks: Version: EKS upgrades one minor version at a time.",
        what_works=(
            'One minor version at a time: set eks.kubernetes_version: "1.33", deploy, then "1.34", deploy,'
            ' then "1.35", deploy; add-ons with versions in the file need a version that fits each minor'
            " version."
        ),
    )
    assert _refused(side("1.35"), side("1.33")).what_works == (
        "Set eks.kubernetes_version: \"1.35\", as it is deployed. 'hyperpod-cdk upgrade dev --kubernetes 1.33'"
        " says whether EKS can still roll back the control plane, and how."
    )


def _one(kind: str, **properties: Any) -> Assembly:
    return assembly(stack("foundation", resources={"It": {"Type": kind, "Properties": properties}}))


def _lustre(size: int) -> Assembly:
    settings = {"DeploymentType": "SCRATCH_2"}
    return _one("AWS::FSx::FileSystem", FileSystemType="LUSTRE", StorageCapacity=size, LustreConfiguration=settings)


@pytest.mark.parametrize(
    ("base", "head", "back"),
    [
        (
            _one("AWS::EKS::Cluster", Version="1.33"),
            _one("AWS::EKS::Cluster", Version="1.34"),
            (
                "The current version cannot be deployed again. dev-foundation / It: Version: A template with a "
                "lower version starts no rollback: EKS rolls back only one minor version, within seven days, and "
                "only on a request outside of CloudFormation (stated for a stack that rolls back, assumed for an "
                "update to a lower version)."
            ),
        ),
        (
            _lustre(1200),
            _lustre(2400),
            (
                "The current version cannot be deployed again. dev-foundation / It: StorageCapacity: The capacity "
                "of a Lustre file system can only grow."
            ),
        ),
        (
            assembly(*_lustre(1200).stacks, replace(_lustre(1200).stacks[0], name="dev-storage", shown="dev/storage")),
            assembly(*_lustre(2400).stacks, replace(_lustre(2400).stacks[0], name="dev-storage", shown="dev/storage")),
            (
                "The current version cannot be deployed again. dev-foundation / It: StorageCapacity: The capacity "
                "of a Lustre file system can only grow. And 1 more."
            ),
        ),
        (
            _one("AWS::EKS::Cluster", Version="1.33", Tags=[]),
            _one("AWS::EKS::Cluster", Version="1.33", Tags=[{"Key": "a", "Value": "b"}]),
            "Deploy the current version again, in 1 step.",
        ),
    ],
)
def test_a_way_back_that_the_service_refuses_is_not_promised(base: Assembly, head: Assembly, back: str) -> None:
    (step,) = planned(base, head).steps
    assert step.back == back


def test_add_ons_without_a_version_stay_behind_the_cluster() -> None:
    # docs.aws.amazon.com/eks/latest/userguide/update-cluster.html, step 8: add-ons are updated by whoever updates it
    def side(version: str, **addons: dict[str, str]) -> Assembly:
        cluster = {"Type": "AWS::EKS::Cluster", "Properties": {"Version": version}}
        found = {
            name: {"Type": "AWS::EKS::Addon", "Properties": {"AddonName": name, **properties}}
            for name, properties in addons.items()
        }
        return assembly(stack("foundation", resources={"Eks": cluster, **found}))

    pinned = {"AddonVersion": "v1.20.5-eksbuild.1"}
    (step,) = planned(side("1.33", proxy={}, cni=pinned), side("1.34", proxy={}, cni=pinned, agent={})).steps
    (told,) = step.stays
    assert told == (
        "dev-foundation / Eks: proxy keep their versions: EKS does not update add-ons with their cluster. For"
        " newer ones, write versions that fit 1.34 into eks.addon_versions."
    )
    (step,) = planned(side("1.33", cni=pinned), side("1.34", cni=pinned)).steps
    assert step.stays == ()


def test_what_the_service_refuses_is_refused() -> None:
    def side(path: str) -> Assembly:
        role = {"Type": "AWS::IAM::Role", "Properties": {"RoleName": "one", "Path": path}}
        return assembly(stack("platform", resources={"Role": role}))

    refusal = _refused(side("/a/"), side("/b/"))
    assert refusal.why.startswith("dev-platform / Role: RoleName:")
    assert refusal.what_works == (
        "Keep it in the file as it is deployed, or give it another name, so that a new one is created. If it"
        " cannot have another name, make a second environment."
    )


def test_other_importers_are_named() -> None:
    refusal = _refused(ALL, assembly(stack("network"), stack("storage"), stack("platform")), importers={"vpc": ["x"]})
    assert refusal == Refusal(
        why="dev-network would change or remove its export vpc, which x imports.",
        what_works="Remove the import from x, or keep in the file what the export refers to.",
    )


def test_unknown_importers_are_a_note() -> None:
    head = assembly(stack("network"), stack("storage"), stack("platform"))
    (note,) = planned(ALL, head, importers=None).notes
    assert note == (
        "2 exports would be removed or changed: whether a stack outside of the app imports one was not checked. If "
        "one does, CloudFormation refuses the step."
    )
    assert planned(ALL, head).notes == ()


def test_an_import_from_elsewhere_is_a_note() -> None:
    found = planned(EMPTY, assembly(stack("one", imports=["theirs"])))
    assert found.notes == ("dev-one imports theirs from outside of the app: whether it exists is unknown.",)


def test_an_import_of_what_is_gone_is_refused() -> None:
    refusal = _refused(ALL, assembly(NETWORK, PLATFORM))
    assert refusal.why == "dev-platform imports scratch, which no stack would export."


def test_a_name_that_moves_to_another_stack_is_exported_by_one_at_a_time() -> None:
    base = assembly(stack("one", exports=["it"]), stack("two"))
    assert steps(planned(base, assembly(stack("one"), stack("two", exports=["it"])))) == [
        ("deploy", "dev-one", "exclusively"),
        ("deploy", "dev-two"),
    ]


@pytest.mark.parametrize("elsewhere", [{"region": "us-west-2"}, {"account": "444455556666"}])
def test_a_file_of_another_region_is_a_new_environment_and_the_old_one_stays(elsewhere: dict[str, Any]) -> None:
    base = assembly(stack("network", exports=["it"]), stack("user", imports=["it"], after=["network"]))
    found = planned(base, assembly(*(replace(each, **elsewhere) for each in base.stacks)))
    assert steps(found) == [("deploy", "dev-network", "dev-user")]
    assert not found.steps[0].needs_a_person
    assert found.notes[0] == (
        f"dev-network in {ACCOUNT} {REGION} and dev-user in {ACCOUNT} {REGION} stay as they are: the name, the account"
        " or the Region has changed, so this is a new environment. 'hyperpod-cdk destroy' with the previous file"
        " deletes the old one."
    )


def test_a_file_of_another_name_is_a_new_environment_and_the_old_one_stays() -> None:
    base = assembly(stack("network", exports=["it"]), stack("user", imports=["it"], after=["network"]))
    network, user = (replace(each, name=each.name.replace("dev", "new"), dependencies=()) for each in base.stacks)
    found = planned(base, Assembly(environment="new", stacks=(network, replace(user, dependencies=(network.name,)))))
    assert steps(found) == [("deploy", "new-network", "new-user")]
    assert found.notes[0].startswith("dev-network and dev-user stay as they are: the name, the account")


def test_a_parameter_without_a_value_is_a_note() -> None:
    one = stack("one")
    parameters = {"Chart": {"Type": "String", "Description": "Pull it."}, "Given": {"Type": "String", "Default": ""}}
    head = assembly(type(one)(**{**vars(one), "template": {**one.template, "Parameters": parameters}}))
    assert planned(EMPTY, head).notes == (
        "dev-one has no value for its parameter Chart, and cannot be deployed without one: Pull it.",
    )


TOPIC = "arn:aws:sns:us-east-1:111122223333:on-call"
OTHER = "arn:aws:sns:us-east-1:111122223333:night"


@row_by_row(
    "old, new, is_step, is_notified",
    [
        ("", TOPIC, True, False),
        (TOPIC, OTHER, True, False),
        (TOPIC, f"{OTHER} {TOPIC}", True, False),
        (f"{TOPIC} {OTHER}", f"{OTHER} {TOPIC}", False, False),
        (TOPIC, "arn:${AWS::Partition}:sns:${AWS::Region}:${AWS::AccountId}:on-call", False, False),
        # an empty list takes them away, to say nothing leaves them
        (TOPIC, "", True, False),
        (TOPIC, None, False, True),
        ("", None, False, False),
    ],
)
def test_who_is_notified_of_a_stack(old: str, new: str | None, is_step: bool, is_notified: bool) -> None:  # noqa: FBT001 - a parameter of the table
    base = replace(stack("one"), settings={"notificationArns": tuple(old.split())}, settings_are_whole=False)
    head = replace(stack("one"), settings={} if new is None else {"notificationArns": tuple(new.split())})
    found = planned(assembly(base), assembly(head))
    assert steps(found) == ([("deploy", "dev-one")] if is_step else [])
    assert [line for each in found.steps for line in each.does] == (
        ["dev-one: changes outputs, tags, topics or protection only."] if is_step else []
    )
    says = (
        f"dev-one still sends its events to {TOPIC}: the app names no topics, and 'cdk deploy' then keeps those of"
        " the stack."
    )
    assert list(found.notes) == ([says] if is_notified else [])


def _cluster(**parts: Any) -> dict[str, Any]:
    return {"Cluster": {"Type": "AWS::SageMaker::Cluster", "Properties": {"ClusterName": "dev", **parts}}}


def _pool() -> dict[str, Any]:
    pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "gpu"}}
    of_it = {**pool, "apiVersion": "karpenter.sagemaker.amazonaws.com/v1", "kind": "HyperpodNodeClass"}
    manifest = {"Type": "Custom::AWSCDK-EKS-KubernetesResource", "Properties": {"Manifest": json.dumps([pool, of_it])}}
    return {"Pool": manifest}


KARPENTER = {"AutoScaling": {"Mode": "Enable", "AutoScalerType": "Karpenter"}}


def test_karpenters_pools_go_before_it_is_turned_off() -> None:
    base = assembly(
        stack("hyperpod", resources=_cluster(**KARPENTER)), stack("platform", after=["hyperpod"], resources=_pool())
    )
    off = _cluster(AutoScaling={"Mode": "Disable"})
    found = planned(base, assembly(stack("hyperpod", resources=off), stack("platform", after=["hyperpod"])))
    assert steps(found) == [("deploy", "dev-platform", "exclusively"), ("deploy", "dev-hyperpod")]
    assert found.steps[0].why == (
        "dev-platform deletes the Karpenter pools gpu, which works only while dev-hyperpod runs Karpenter.",
    )
    (first,) = found.steps[0].first
    assert first == (
        "End what runs on nodes of NodePool gpu and must not be disrupted: Karpenter drains them, and the deployment "
        "gives up after attempts of 15 minutes."
    )
    # pools that go while Karpenter goes on need no step of their own
    on = stack("hyperpod", resources=_cluster(**KARPENTER, NodeRecovery="None"))
    assert steps(planned(base, assembly(on, stack("platform", after=["hyperpod"])))) == [
        ("deploy", "dev-hyperpod", "dev-platform")
    ]


@pytest.mark.parametrize(
    ("name", "more", "has"),
    [
        ("amazon-sagemaker-hyperpod-training-operator", {}, "its jobs (HyperPodPyTorchJob), with their pods,"),
        ("amazon-sagemaker-spaces", {}, "its spaces, with their volumes and the files on these,"),
        ("amazon-sagemaker-spaces", {"PreserveOnDelete": True}, None),
        ("aws-mountpoint-s3-csi-driver", {}, None),
    ],
)
def test_what_an_operator_leaves_behind_is_not_known(name: str, more: dict[str, bool], has: str | None) -> None:
    addon = {"Operator": {"Type": "AWS::EKS::Addon", "Properties": {"AddonName": name, "ClusterName": "dev", **more}}}
    control = {"Eks": {"Type": "AWS::EKS::Cluster", "Properties": {"Name": "dev"}}}
    base = assembly(stack("foundation", resources=control), stack("platform", resources=addon, after=["foundation"]))

    def unknown(head: Assembly) -> list[str]:
        return [each for step in planned(base, head).steps for each in step.unknown if "operator" in each]

    stays = assembly(base.by_name["dev-foundation"], stack("platform", after=["foundation"]))
    said = (
        f"dev-platform / Operator: AWS does not document whether {has} are deleted with the operator; end or save them"
        " before."
    )
    assert unknown(stays) == ([said] if has else [])
    # with the control plane everything goes, which its own line says
    assert unknown(EMPTY) == []


@pytest.mark.parametrize("name", ["amazon-sagemaker-hyperpod-inference", "amazon-sagemaker-spaces"])
def test_load_balancers_of_endpoints_go_before_their_operator(name: str) -> None:
    addon = {"Operator": {"Type": "AWS::EKS::Addon", "Properties": {"AddonName": name, "ClusterName": "dev"}}}
    base = assembly(stack("foundation"), stack("platform", resources=addon, after=["foundation"]))
    said = (
        "Delete the endpoints (InferenceEndpointConfig, JumpStartModel) with kubectl and wait until their load"
        " balancers are gone: nothing deletes these afterwards, and while they exist EC2 does not delete their"
        " VPC."
    )
    wanted = [said] if "inference" in name else []
    for head in (EMPTY, assembly(base.by_name["dev-foundation"], stack("platform", after=["foundation"]))):
        assert [each for step in planned(base, head).steps for each in step.first] == wanted
    # an operator that stays goes on deleting them itself
    assert planned(base, base).steps == ()


@pytest.mark.parametrize(
    ("name", "on", "written"),
    [
        ("AutoScaling", KARPENTER["AutoScaling"], "autoscaling: disabled"),
        ("TieredStorageConfig", {"Mode": "Enable"}, "tiered_checkpointing: {enabled: false}"),
    ],
)
def test_what_only_leaves_the_template_is_not_known_to_be_off(name: str, on: dict[str, str], written: str) -> None:
    base = assembly(stack("hyperpod", resources=_cluster(**{name: on})))

    def unknown(**parts: Any) -> list[str]:
        (step,) = planned(base, assembly(stack("hyperpod", resources=_cluster(NodeRecovery="None", **parts)))).steps
        return [each for each in step.unknown if "leaves the template" in each]

    (said,) = unknown()
    assert said == (
        f"dev-hyperpod / Cluster: {name} is on and leaves the template, and AWS may leave it on; deploy {written} "
        "first, and leave it out afterwards."
    )
    assert unknown(**{name: {"Mode": "Disable"}}) == []
    assert unknown(**{name: on}) == []


def _of_groups(*groups: tuple[str, int], **of_each: Any) -> Assembly:
    stated = [
        {"InstanceGroupName": name, "InstanceType": "ml.p5.48xlarge", "InstanceCount": number, **of_each}
        for name, number in groups
    ]
    cluster = {"Type": "AWS::SageMaker::Cluster", "Properties": {"ClusterName": "dev", "InstanceGroups": stated}}
    return assembly(stack("hyperpod", resources={"Cluster": cluster}))


_H100 = ("h100", 16)
_FEWER = (
    "InstanceGroups[h100].InstanceCount 16 -> 15: Nodes are terminated, and AWS decides which; data on their "
    "volumes is lost."
)
_NOT_KNOWN = (
    "InstanceGroups[h100].ThreadsPerCore 1: Perhaps, because it is unknown: An update that omits it resets it; the "
    "effect on running nodes is not documented (that omitting it resets it was observed by others)."
)
_SOFTWARE = (
    "InstanceGroups[h100].ImageReleaseVersion 1.0.0 -> 1.1.0: Another release is installed with UpdateClusterSoftware: "
    "nodes go down, their root volumes are replaced, jobs are not drained."
)
_IMAGE = (
    "InstanceGroups[h100].ImageId ami-1 -> ami-2: Another image is installed as a software update is: nodes go down "
    "and their root volumes are replaced (whether CloudFormation updates running nodes to another ImageId, or only "
    "new ones get it, is not documented: assumed to interrupt)."
)
_GONE = "A group that is omitted is deleted with its nodes and all data on their volumes."


@row_by_row(
    "base, head, loses",
    [
        pytest.param(_of_groups(_H100), _of_groups(_H100), None, id="as it is"),
        pytest.param(_of_groups(_H100), _of_groups(("h100", 17)), (), id="one node more"),
        pytest.param(_of_groups(_H100), _of_groups(_H100, ("h200", 1)), (), id="one group more"),
        pytest.param(
            _of_groups(_H100),
            _of_groups(("h100", 15)),
            (_FEWER,),
            id="one node less",
        ),
        pytest.param(
            _of_groups(_H100, ("sys", 2)),
            _of_groups(("sys", 2)),
            (f"InstanceGroups[h100] 16 x ml.p5.48xlarge: {_GONE}",),
            id="a group goes",
        ),
        pytest.param(_of_groups(("h100", 0), ("sys", 2)), _of_groups(("sys", 2)), (), id="a group without nodes goes"),
        pytest.param(
            _of_groups(_H100),
            _of_groups(("h200", 16)),
            (f"InstanceGroups[h100] 16 x ml.p5.48xlarge: {_GONE}",),
            id="a group gets another name",
        ),
        pytest.param(
            _of_groups(_H100, ThreadsPerCore=1),
            _of_groups(_H100),
            (_NOT_KNOWN,),
            id="nobody knows",
        ),
        pytest.param(
            _of_groups(_H100, ImageReleaseVersion="1.0.0"),
            _of_groups(_H100, ImageReleaseVersion="1.1.0"),
            (_SOFTWARE,),
            id="a software update",
        ),
        pytest.param(
            _of_groups(_H100, ImageId="ami-1"), _of_groups(_H100, ImageId="ami-2"), (_IMAGE,), id="another image"
        ),
    ],
)
def test_nodes_that_go_need_a_person(base: Assembly, head: Assembly, loses: tuple[str, ...] | None) -> None:
    found = planned(base, head)
    told = [each.removeprefix("dev-hyperpod / Cluster: ") for step in found.steps for each in step.loses]
    assert told == list(loses or ())
    by_hand = [step.needs_a_person for step in found.steps]
    # a group that comes in the place of another stands beside it first
    assert by_hand == ([] if loses is None else [*([False] * (len(by_hand) - 1)), bool(loses)])


def test_an_empty_zone_is_removed_without_approval() -> None:
    # EC2 deletes no subnet with something in it, and takes no block away that a subnet uses
    def side(*zones: str) -> Assembly:
        made: dict[str, Any] = {}
        for each in zones:
            block = {"VpcId": "vpc-1", "CidrBlock": f"10.{len(made)}.0.0/16"}
            made[f"Block{each}"] = {"Type": "AWS::EC2::VPCCidrBlock", "Properties": block}
            made[f"Subnet{each}"] = {"Type": "AWS::EC2::Subnet", "Properties": block}
            made[f"Table{each}"] = {"Type": "AWS::EC2::RouteTable", "Properties": {"VpcId": "vpc-1"}}
            link = {"SubnetId": {"Ref": f"Subnet{each}"}, "RouteTableId": {"Ref": f"Table{each}"}}
            made[f"Link{each}"] = {"Type": "AWS::EC2::SubnetRouteTableAssociation", "Properties": link}
        routes = {"VpcId": "vpc-1", "ServiceName": "s3", "RouteTableIds": [{"Ref": f"Table{each}"} for each in zones]}
        return assembly(
            stack("foundation", resources={**made, "S3": {"Type": "AWS::EC2::VPCEndpoint", "Properties": routes}})
        )

    (step,) = planned(side("A", "B"), side("A")).steps
    assert (step.loses, step.unknown, step.needs_a_person) == ((), (), False)
    assert [each.partition(":")[0] for each in step.interrupts] == [
        "dev-foundation / BlockB",
        "dev-foundation / SubnetB",
    ]
    assert step.does == ("dev-foundation: 4 deleted, 1 changed in place.",)


def test_what_comes_back_as_it_was_needs_no_person() -> None:
    # AWS::FSx::FileSystem: another throughput is no loss
    def side(mbps: int) -> Assembly:
        files = {"Type": "AWS::FSx::FileSystem", "Properties": {"FileSystemType": "OPENZFS", "StorageCapacity": 64}}
        files["Properties"]["OpenZFSConfiguration"] = {"DeploymentType": "SINGLE_AZ_1", "ThroughputCapacity": mbps}  # type: ignore[index]  # a dictionary
        return assembly(stack("storage", resources={"Files": files}))

    (step,) = planned(side(64), side(128)).steps
    assert step.interrupts
    assert (step.loses, step.needs_a_person) == ((), False)


@pytest.mark.parametrize(
    ("shown", "selected"),
    [
        # what picomatch takes, as the CDK CLI 2.1148.1 calls it: "*" ends at a slash, "/**" does not
        (("dev/storage", "dev/platform"), "dev/*"),
        (("dev/storage", "dev/team/ours"), "dev/**"),
        (("dev/storage", "dev/team/of/ours"), "dev/**"),
        (("dev/storage", "other"), "--all"),
    ],
)
def test_all_stacks_are_selected(shown: tuple[str, ...], selected: str) -> None:
    head = assembly(*(replace(stack(each.replace("/", "-")), shown=each) for each in shown))
    assert selection(head) == selected
    if selected != "--all":
        assert all(matches(each, selected) for each in shown)
        assert not any(matches(each, selected) for each in ("develop/storage", "other/dev/storage"))


def _exports_by(name: Any) -> Stack:
    made = stack("network")
    return replace(made, template={**made.template, "Outputs": {"V": {"Value": "v", "Export": {"Name": name}}}})


@pytest.mark.parametrize(
    "name",
    [
        {"Fn::Sub": "${AWS::StackName}-vpc"},
        {"Fn::Join": ["-", [{"Ref": "AWS::StackName"}, "vpc"]]},
        "dev-network-vpc",
    ],
)
def test_a_name_of_an_export_is_what_it_says_in_any_form(name: Any) -> None:
    importer = stack("platform", imports=[{"Fn::Sub": "dev-${Always}-vpc"}, {"Fn::Sub": "dev-network-vpc"}])
    base = assembly(_exports_by(name), importer)
    assert list(base.exports) == ["dev-network-vpc"]
    found = planned(base, assembly(stack("network"), stack("platform")))
    assert steps(found) == [("deploy", "dev-platform", "exclusively"), ("deploy", "dev-network")]


def test_a_name_that_only_the_deployment_shows_is_reported() -> None:
    base = assembly(_exports_by({"Fn::Sub": "${Stage}-vpc"}), stack("platform", imports=[{"Ref": "Stage"}]))
    assert base.exports == {}
    exports, imports = planned(base, base).notes
    assert exports == (
        "dev-network exports V by a name that is known only during the deployment: whether another stack imports"
        " it is unknown."
    )
    assert imports == (
        "dev-platform imports by a name that is known only during the deployment: what it needs, and which"
        " exports it uses, is unknown."
    )
