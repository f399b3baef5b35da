"""The engine: create, update, replace, roll back, delete, on resources that can be made to fail."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from hyperpod_cdk_rehearsal.embedded.operations import ServiceError
from hyperpod_cdk_rehearsal.embedded.resources.registry import HandlerError

Template = dict[str, Any]
Resource = Callable[..., dict[str, Any]]


def stack(**resources: Any) -> Template:
    return {"Resources": resources}


class TestCreate:
    def test_resources_come_in_the_order_of_their_references(self, cloud: Any, parameter: Resource) -> None:
        template = stack(
            C={**parameter("x"), "DependsOn": "B"},
            B=parameter({"Fn::GetAtt": ["A", "Arn"]}),
            A=parameter("first"),
        )
        assert cloud.deploy("net", template) == "CREATE_COMPLETE"
        assert cloud.handler.calls == [("create", "A"), ("create", "B"), ("create", "C")]
        assert cloud.handler.existing["B-1"]["Value"] == "arn:A-1"
        assert cloud.events("net") == [
            ("net", "CREATE_IN_PROGRESS"),
            ("A", "CREATE_IN_PROGRESS"),
            ("A", "CREATE_COMPLETE"),
            ("B", "CREATE_IN_PROGRESS"),
            ("B", "CREATE_COMPLETE"),
            ("C", "CREATE_IN_PROGRESS"),
            ("C", "CREATE_COMPLETE"),
            ("net", "CREATE_COMPLETE"),
        ]

    def test_independent_resources_are_made_side_by_side(self, cloud: Any, parameter: Resource) -> None:
        together = threading.Barrier(3, timeout=5)
        cloud.handler.before_call = lambda _verb, _request: together.wait() and None
        assert cloud.deploy("net", stack(A=parameter("x"), B=parameter("x"), C=parameter("x"))) == "CREATE_COMPLETE"

    def test_events_never_share_a_millisecond(self, cloud: Any, parameter: Resource) -> None:
        cloud.deploy("net", stack(**{f"R{i}": parameter("x") for i in range(20)}))
        stamps = [event.timestamp for event in cloud.stack("net").events]
        assert stamps == sorted(set(stamps))
        assert all(stamp.microsecond % 1000 == 0 for stamp in stamps)

    def test_conditions_leave_resources_and_outputs_out(self, cloud: Any, parameter: Resource) -> None:
        template = {
            "Conditions": {"Never": {"Fn::Equals": ["a", "b"]}},
            "Resources": {"A": parameter("x"), "B": {**parameter("x"), "Condition": "Never"}},
            "Outputs": {"B": {"Condition": "Never", "Value": {"Ref": "B"}}, "A": {"Value": {"Ref": "A"}}},
        }
        assert cloud.deploy("net", template) == "CREATE_COMPLETE"
        assert (cloud.handler.calls, cloud.outputs("net")) == ([("create", "A")], {"A": "A-1"})

    def test_stack_tags_reach_taggable_resources(self, cloud: Any, parameter: Resource) -> None:
        template = stack(A=parameter("x", Tags={"own": "1", "team": "mine"}), B={"Type": "AWS::S3::Bucket"})
        cloud.deploy("net", template, Tags=[{"Key": "team", "Value": "ml"}])
        assert cloud.handler.existing["A-1"]["Tags"] == {"team": "mine", "own": "1"}
        assert cloud.handler.existing["B-1"]["Tags"] == [{"Key": "team", "Value": "ml"}]

    def test_dynamic_references_are_resolved_when_provisioned(self, cloud: Any, parameter: Resource) -> None:
        cloud.clients.parameters["/ami"] = "ami-1"
        cloud.deploy("net", stack(A=parameter("<{{resolve:ssm:/ami}}>")))
        assert cloud.handler.existing["A-1"]["Value"] == "<ami-1>"

    def test_failure_deletes_in_reverse_order(self, cloud: Any, parameter: Resource) -> None:
        cloud.handler.fail("create", "C", HandlerError("ServiceLimitExceeded", "too many"))
        template = stack(
            A=parameter("x"), B=parameter({"Ref": "A"}), C=parameter({"Ref": "B"}), D=parameter({"Ref": "C"})
        )
        assert cloud.deploy("net", template) == "ROLLBACK_COMPLETE"
        assert cloud.handler.calls == [
            ("create", "A"),
            ("create", "B"),
            ("create", "C"),
            ("delete", "B"),
            ("delete", "A"),
        ]
        assert cloud.handler.existing == {}
        reason = cloud.reason("net", "C")
        assert reason.startswith('Resource handler returned message: "too many" (RequestToken: ')
        assert reason.endswith(", HandlerErrorCode: ServiceLimitExceeded)")
        assert cloud.reason("net", "net") == (
            "The following resource(s) failed to create: [C]. Rollback requested by user."
        )

    def test_a_custom_resources_reason_is_its_own(self, cloud: Any) -> None:
        cloud.handler.fail("create", "A", HandlerError("GeneralServiceException", "Received response status [FAILED]"))
        cloud.deploy("net", stack(A={"Type": "Custom::Thing", "Properties": {"ServiceToken": "arn"}}))
        assert cloud.reason("net", "A") == "Received response status [FAILED]"

    def test_a_handlers_bug_fails_its_resource_only(self, cloud: Any, parameter: Resource) -> None:
        cloud.handler.fail("create", "A", KeyError("oops"))
        assert cloud.deploy("net", stack(A=parameter("x"))) == "ROLLBACK_COMPLETE"
        assert "InternalFailure" in cloud.reason("net", "A")

    @pytest.mark.parametrize(
        ("policy", "request_", "kept"),
        [
            ("Delete", {}, False),
            ("Retain", {}, True),
            ("RetainExceptOnCreate", {}, False),
            ("Retain", {"RetainExceptOnCreate": True}, False),
        ],
    )
    def test_rollback_follows_the_deletion_policy(
        self, cloud: Any, parameter: Resource, policy: str, request_: dict[str, Any], *, kept: bool
    ) -> None:
        cloud.handler.fail("create", "B")
        template = stack(A={**parameter("x"), "DeletionPolicy": policy}, B=parameter({"Ref": "A"}))
        assert cloud.deploy("net", template, **request_) == "ROLLBACK_COMPLETE"
        assert ("A-1" in cloud.handler.existing) is kept

    def test_what_a_failed_create_left_behind_is_deleted(self, cloud: Any, parameter: Resource) -> None:
        cloud.handler.fail("create", "A", HandlerError("NotStabilized", "stuck", physical_id="half-made"))
        cloud.handler.existing["half-made"] = {}
        cloud.deploy("net", stack(A=parameter("x")))
        assert cloud.handler.existing == {}

    def test_a_rollback_that_fails(self, cloud: Any, parameter: Resource) -> None:
        cloud.handler.fail("create", "B")
        cloud.handler.fail("delete", "A")
        assert cloud.deploy("net", stack(A=parameter("x"), B=parameter({"Ref": "A"}))) == "ROLLBACK_FAILED"
        assert cloud.reason("net", "net") == "The following resource(s) failed to delete: [A]. "

    def test_without_rollback_everything_stays(self, cloud: Any, parameter: Resource) -> None:
        cloud.handler.fail("create", "B")
        template = stack(A=parameter("x"), B=parameter({"Ref": "A"}))
        assert cloud.deploy("net", template, DisableRollback=True) == "CREATE_FAILED"
        assert list(cloud.handler.existing) == ["A-1"]
        # AWS's own words, aws-cdk-cli's tests and reports of users have them
        assert "currently in a non-terminal [CREATE_FAILED] state" in cloud.refused(
            "UpdateStack", StackName="net", TemplateBody=_json(template)
        )
        assert cloud.deploy("net", template, DisableRollback=True) == "UPDATE_COMPLETE"
        assert cloud.handler.calls == [("create", "B")]

    def test_on_failure_delete(self, cloud: Any, parameter: Resource) -> None:
        cloud.handler.fail("create", "A")
        stack_id = cloud.ask(
            "CreateStack", StackName="net", TemplateBody=_json(stack(A=parameter("x"))), OnFailure="DELETE"
        )
        assert cloud.settled(stack_id["StackId"]) == "DELETE_COMPLETE"

    def test_properties_are_checked_before_the_handler_is_asked(self, cloud: Any) -> None:
        template = stack(A={"Type": "AWS::SSM::Parameter", "Properties": {"Type": "Text", "Valeu": "x"}})
        assert cloud.deploy("net", template) == "ROLLBACK_COMPLETE"
        assert cloud.handler.calls == []
        assert cloud.reason("net", "A") == (
            "Properties validation failed for resource A with message: #/Type: Text is not a valid enum value; "
            "#: extraneous key [Valeu] is not permitted; #: required key [Value] not found"
        )

    def test_an_attribute_that_turns_out_missing(self, cloud: Any, parameter: Resource) -> None:
        template = stack(
            A={"Type": "Custom::Thing", "Properties": {"ServiceToken": "arn"}}, B=parameter({"Fn::GetAtt": ["A", "X"]})
        )
        assert cloud.deploy("net", template) == "ROLLBACK_COMPLETE"
        assert cloud.reason("net", "B") == (
            "CustomResource attribute error: Vendor response doesn't contain X key in object A-1 in S3 bucket"
        )


class TestUpdate:
    def test_only_what_differs_is_touched(self, cloud: Any, parameter: Resource) -> None:
        cloud.deploy("net", stack(A=parameter("a"), B=parameter("b")))
        assert cloud.deploy("net", stack(A=parameter("a"), B=parameter("c"), C=parameter("new"))) == "UPDATE_COMPLETE"
        assert sorted(cloud.handler.calls) == [("create", "C"), ("update", "B")]
        assert cloud.stack("net").resources["B"].physical_id == "B-1"

    def test_a_changed_attribute_reaches_those_who_use_it(self, cloud: Any, parameter: Resource) -> None:
        custom = {"Type": "Custom::Thing", "Properties": {"ServiceToken": "arn", "Version": 1}}
        uses = parameter({"Fn::GetAtt": ["A", "Answer"]})
        cloud.handler.attributes["A"] = {"Answer": "41"}
        cloud.deploy("net", stack(A=custom, B=uses))
        cloud.handler.attributes["A"] = {"Answer": "42"}
        cloud.deploy("net", stack(A={**custom, "Properties": {"ServiceToken": "arn", "Version": 2}}, B=uses))
        assert cloud.handler.calls == [("update", "A"), ("update", "B")]
        assert cloud.handler.existing["B-1"]["Value"] == "42"

    def test_replacement_is_new_then_old(self, cloud: Any, parameter: Resource) -> None:
        cloud.deploy("net", stack(A=parameter("a", Name="one"), B=parameter({"Ref": "A"})))
        assert cloud.deploy("net", stack(A=parameter("a", Name="two"), B=parameter({"Ref": "A"}))) == "UPDATE_COMPLETE"
        assert cloud.handler.calls == [("create", "A"), ("update", "B"), ("delete", "A")]
        assert cloud.handler.existing["B-1"]["Value"] == "A-2"
        assert "A-1" not in cloud.handler.existing
        assert cloud.events("net") == [
            ("net", "UPDATE_IN_PROGRESS"),
            ("A", "UPDATE_IN_PROGRESS"),
            ("A", "UPDATE_COMPLETE"),
            ("B", "UPDATE_IN_PROGRESS"),
            ("B", "UPDATE_COMPLETE"),
            ("net", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"),
            ("A", "DELETE_IN_PROGRESS"),
            ("A", "DELETE_COMPLETE"),
            ("net", "UPDATE_COMPLETE"),
        ]

    def test_update_replace_policy_retain_keeps_the_old_one(self, cloud: Any, parameter: Resource) -> None:
        kept = {"UpdateReplacePolicy": "Retain"}
        cloud.deploy("net", stack(A={**parameter("a", Name="one"), **kept}))
        cloud.deploy("net", stack(A={**parameter("a", Name="two"), **kept}))
        assert sorted(cloud.handler.existing) == ["A-1", "A-2"]
        assert ("A", "DELETE_SKIPPED") in cloud.events("net")

    def test_a_custom_name_cannot_be_kept_through_a_replacement(self, cloud: Any) -> None:
        def bucket(name: str, prefix: str) -> dict[str, Any]:
            return {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": name, "BucketNamePrefix": prefix}}

        cloud.deploy("net", stack(A=bucket("same-name", "a")))
        assert cloud.deploy("net", stack(A=bucket("same-name", "b"))) == "UPDATE_ROLLBACK_COMPLETE"
        assert cloud.reason("net", "A") == (
            "CloudFormation cannot update a stack when a custom-named resource requires replacing. "
            "Rename same-name and update the stack again."
        )

    def test_a_custom_resource_that_answers_with_a_new_id_is_replaced(self, cloud: Any) -> None:
        def custom(version: int) -> dict[str, Any]:
            return {"Type": "Custom::Thing", "Properties": {"ServiceToken": "arn", "Version": version}}

        cloud.deploy("net", stack(A=custom(1)))
        cloud.handler.update = cloud.handler.create
        cloud.deploy("net", stack(A=custom(2)))
        assert cloud.handler.calls == [("create", "A"), ("delete", "A")]
        assert list(cloud.handler.existing) == ["A-2"]

    def test_removed_resources_go_after_the_rest_and_retained_ones_stay(self, cloud: Any, parameter: Resource) -> None:
        first = stack(
            A=parameter("a"),
            B=parameter({"Ref": "A"}),
            Kept={**parameter("k"), "DeletionPolicy": "Retain"},
            C=parameter("c"),
        )
        cloud.deploy("net", first)
        assert cloud.deploy("net", stack(C=parameter("changed"))) == "UPDATE_COMPLETE"
        assert cloud.handler.calls == [("update", "C"), ("delete", "B"), ("delete", "A")]
        assert list(cloud.stack("net").resources) == ["C"]

    def test_a_removal_that_fails_is_left_behind(self, cloud: Any, parameter: Resource) -> None:
        cloud.deploy("net", stack(A=parameter("a"), B=parameter("b")))
        refusals = [HandlerError("GeneralServiceException", f"no luck {number}") for number in range(3)]
        cloud.handler.fail("delete", "A", *refusals)
        assert cloud.deploy("net", stack(B=parameter("c"))) == "UPDATE_COMPLETE"
        assert cloud.events("net").count(("A", "DELETE_FAILED")) == 3
        assert "A-1" in cloud.handler.existing
        assert list(cloud.stack("net").resources) == ["B"]

    def test_a_removal_is_tried_three_times(self, cloud: Any, parameter: Resource) -> None:
        cloud.deploy("net", stack(A=parameter("a"), B=parameter("b")))
        refusals = [HandlerError("GeneralServiceException", f"no luck {number}") for number in range(2)]
        cloud.handler.fail("delete", "A", *refusals)
        assert cloud.deploy("net", stack(B=parameter("c"))) == "UPDATE_COMPLETE"
        assert cloud.events("net").count(("A", "DELETE_FAILED")) == 2
        assert list(cloud.handler.existing) == ["B-1"]

    def test_no_change_is_refused(self, cloud: Any, parameter: Resource) -> None:
        template = stack(A=parameter("a"))
        cloud.deploy("net", template)
        refused = cloud.refused("UpdateStack", StackName="net", TemplateBody=_json(template))
        assert refused == "ValidationError: No updates are to be performed."

    @pytest.mark.parametrize(
        "change",
        [
            {"Metadata": {"a": 1}},
            {"DeletionPolicy": "Retain"},
        ],
    )
    def test_attributes_alone_are_an_update_without_a_call(
        self, cloud: Any, parameter: Resource, change: dict[str, Any]
    ) -> None:
        cloud.deploy("net", stack(A=parameter("a")))
        assert cloud.deploy("net", stack(A={**parameter("a"), **change})) == "UPDATE_COMPLETE"
        assert cloud.handler.calls == []
        assert cloud.delete("net") == "DELETE_COMPLETE"
        assert ("A-1" in cloud.handler.existing) is ("DeletionPolicy" in change)

    def test_type_change_is_refused(self, cloud: Any, parameter: Resource) -> None:
        cloud.deploy("net", stack(A=parameter("a")))
        with pytest.raises(ServiceError, match="Update of resource type is not permitted"):
            cloud.deploy("net", stack(A={"Type": "AWS::SNS::Topic"}))


class TestUpdateRollback:
    def test_every_touched_resource_gets_its_properties_back(self, cloud: Any, parameter: Resource) -> None:
        cloud.deploy("net", stack(A=parameter("a"), B=parameter("b", Name="one"), C=parameter("c")))
        cloud.handler.fail("update", "C")
        second = stack(
            A=parameter("a2"),
            B=parameter("b", Name="two"),
            New=parameter({"Ref": "B"}),
            C={**parameter("c2"), "DependsOn": ["A", "New"]},
        )
        assert cloud.deploy("net", second) == "UPDATE_ROLLBACK_COMPLETE"
        values = {name: properties["Value"] for name, properties in cloud.handler.existing.items()}
        assert sorted(values.values()) == ["a", "b", "c"]
        resources = cloud.stack("net").resources
        assert sorted(resources) == ["A", "B", "C"]
        assert cloud.handler.existing[resources["B"].physical_id]["Name"] == "one"
        assert cloud.stack("net").template.resources["A"].properties["Value"] == "a"
        assert cloud.reason("net", "C").startswith('Resource handler returned message: "no luck"')
        statuses = [status for name, status in cloud.events("net") if name == "net"]
        assert statuses == [
            "UPDATE_IN_PROGRESS",
            "UPDATE_ROLLBACK_IN_PROGRESS",
            "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS",
            "UPDATE_ROLLBACK_COMPLETE",
        ]

    def test_the_stack_can_be_updated_again(self, cloud: Any, parameter: Resource) -> None:
        cloud.deploy("net", stack(A=parameter("a")))
        cloud.handler.fail("update", "A")
        assert cloud.deploy("net", stack(A=parameter("b"))) == "UPDATE_ROLLBACK_COMPLETE"
        assert cloud.deploy("net", stack(A=parameter("b"))) == "UPDATE_COMPLETE"

    def test_properties_the_registry_forbids_never_reach_the_handler(self, cloud: Any, parameter: Resource) -> None:
        cloud.deploy("net", stack(A=parameter("a")))
        assert cloud.deploy("net", stack(A=parameter("a", Tier="Huge"))) == "UPDATE_ROLLBACK_COMPLETE"
        assert cloud.handler.calls == []

    def test_what_a_failed_replacement_left_behind_is_deleted(self, cloud: Any, parameter: Resource) -> None:
        cloud.deploy("net", stack(A=parameter("a", Name="one")))
        cloud.handler.existing["half-made"] = {}
        cloud.handler.fail("create", "A", HandlerError("NotStabilized", "stuck", physical_id="half-made"))
        assert cloud.deploy("net", stack(A=parameter("a", Name="two"))) == "UPDATE_ROLLBACK_COMPLETE"
        assert list(cloud.handler.existing) == ["A-1"]
        assert ("update", "A") not in cloud.handler.calls

    def test_failed_rollback_is_continued(self, cloud: Any, parameter: Resource) -> None:
        cloud.deploy("net", stack(A=parameter("a"), B=parameter("b")))
        failure = HandlerError("GeneralServiceException", "no luck")
        cloud.handler.before_call = lambda _verb, request: (
            cloud.handler.fail("update", "A", failure) if request.properties["Value"] == "a" else None
        )
        cloud.handler.fail("update", "B")
        assert cloud.deploy("net", stack(A=parameter("a2"), B={**parameter("b2"), "DependsOn": "A"})) == (
            "UPDATE_ROLLBACK_FAILED"
        )
        assert cloud.reason("net", "net") == "The following resource(s) failed to update: [A]. "
        cloud.handler.before_call = lambda _verb, _request: None
        cloud.ask("ContinueUpdateRollback", StackName="net")
        assert cloud.settled("net") == "UPDATE_ROLLBACK_COMPLETE"
        assert cloud.handler.existing["A-1"]["Value"] == "a"

    def test_a_rollback_that_goes_on_keeps_what_it_has_restored(self, cloud: Any, parameter: Resource) -> None:
        cloud.deploy("net", stack(A=parameter("a", Name="one"), B=parameter("b")))
        cloud.handler.fail("update", "B", *[HandlerError("GeneralServiceException", "no luck")] * 3)
        head = stack(A=parameter("a", Name="two"), B={**parameter("c"), "DependsOn": "A"})
        assert cloud.deploy("net", head) == "UPDATE_ROLLBACK_FAILED"
        cloud.ask("ContinueUpdateRollback", StackName="net")
        assert cloud.settled("net") == "UPDATE_ROLLBACK_FAILED"
        assert sorted(cloud.handler.existing) == ["A-1", "A-2", "B-1"]
        cloud.handler.calls.clear()
        cloud.ask("ContinueUpdateRollback", StackName="net", ResourcesToSkip=["B"])
        assert cloud.settled("net") == "UPDATE_ROLLBACK_COMPLETE"
        # the replacement goes, not what it was to replace
        assert sorted(cloud.handler.existing) == ["A-1", "B-1"]
        assert cloud.handler.calls == [("delete", "A")]

    def test_continue_may_skip(self, cloud: Any, parameter: Resource) -> None:
        cloud.deploy("net", stack(A=parameter("a")))
        cloud.handler.fail("update", "A", *[HandlerError("GeneralServiceException", "no luck")] * 2)
        assert cloud.deploy("net", stack(A=parameter("b"))) == "UPDATE_ROLLBACK_FAILED"
        cloud.ask("ContinueUpdateRollback", StackName="net", ResourcesToSkip=["A"])
        assert cloud.settled("net") == "UPDATE_ROLLBACK_COMPLETE"
        assert cloud.reason("net", "A") == "Resource skipped during UpdateRollback"
        # it is taken for what the template says, so that the next update is a change of it
        assert cloud.deploy("net", stack(A=parameter("b"))) == "UPDATE_COMPLETE"
        assert cloud.handler.calls == [("update", "A")]

    def test_only_what_a_rollback_failed_at_can_be_skipped(self, cloud: Any, parameter: Resource) -> None:
        cloud.deploy("net", stack(A=parameter("a"), B=parameter("b")))
        failure = HandlerError("GeneralServiceException", "no luck")
        cloud.handler.fail("update", "A", failure, failure)
        assert cloud.deploy("net", stack(A=parameter("c"), B=parameter("b"))) == "UPDATE_ROLLBACK_FAILED"
        assert cloud.refused("ContinueUpdateRollback", StackName="net", ResourcesToSkip=["A", "B"]).endswith(
            "because a rollback failed, got [B]"
        )
        both = {"ResourcesToSkip": ["A"], "ForceRollback": True}
        assert cloud.refused("ContinueUpdateRollback", StackName="net", **both).endswith("mutually exclusive")
        cloud.ask("ContinueUpdateRollback", StackName="net", ForceRollback=True)
        assert cloud.settled("net") == "UPDATE_ROLLBACK_COMPLETE"

    @pytest.mark.parametrize(("asked", "left"), [({}, True), ({"RetainExceptOnCreate": True}, False)])
    def test_a_creation_rolled_back_on_demand_retains_unless_asked(
        self, cloud: Any, parameter: Resource, asked: dict[str, Any], *, left: bool
    ) -> None:
        cloud.handler.fail("create", "B")
        template = stack(A={**parameter("a"), "DeletionPolicy": "Retain"}, B={**parameter("b"), "DependsOn": "A"})
        assert cloud.deploy("net", template, DisableRollback=True) == "CREATE_FAILED"
        cloud.ask("RollbackStack", StackName="net", **asked)
        assert cloud.settled("net") == "ROLLBACK_COMPLETE"
        assert bool(cloud.handler.existing) is left

    def test_rollback_on_demand_over_two_failed_updates(self, cloud: Any, parameter: Resource) -> None:
        cloud.deploy("net", stack(A=parameter("a"), B=parameter("b")))
        for value in ("x", "y"):
            cloud.handler.fail("update", "B")
            template = stack(A=parameter(value), B={**parameter(value), "DependsOn": "A"})
            assert cloud.deploy("net", template, DisableRollback=True) == "UPDATE_FAILED"
        cloud.ask("RollbackStack", StackName="net")
        assert cloud.settled("net") == "UPDATE_ROLLBACK_COMPLETE"
        assert {p["Value"] for p in cloud.handler.existing.values()} == {"a", "b"}

    def test_nothing_to_roll_back(self, cloud: Any, parameter: Resource) -> None:
        cloud.deploy("net", stack(A=parameter("a")))
        stack_id = cloud.stack("net").stack_id
        assert cloud.refused("RollbackStack", StackName="net") == (
            f"ValidationError: Stack:{stack_id} is in CREATE_COMPLETE state and can not be rolled back."
        )
        assert cloud.refused("ContinueUpdateRollback", StackName="net") == (
            f"ValidationError: Stack:{stack_id} is in CREATE_COMPLETE state and can not continue update rollback."
        )


class TestDelete:
    def test_dependents_go_first(self, cloud: Any, parameter: Resource) -> None:
        cloud.deploy("net", stack(A=parameter("a"), B=parameter({"Ref": "A"}), C=parameter({"Ref": "B"})))
        assert cloud.delete("net") == "DELETE_COMPLETE"
        assert cloud.handler.calls == [("delete", "C"), ("delete", "B"), ("delete", "A")]
        assert cloud.refused("DescribeStacks", StackName="net") == "ValidationError: Stack with id net does not exist"

    def test_a_failure_keeps_its_prerequisites_and_can_be_repeated(self, cloud: Any, parameter: Resource) -> None:
        cloud.deploy("net", stack(A=parameter("a"), B=parameter({"Ref": "A"}), C=parameter("c")))
        cloud.handler.fail("delete", "B")
        assert cloud.delete("net") == "DELETE_FAILED"
        assert sorted(cloud.handler.existing) == ["A-1", "B-1"]
        assert cloud.reason("net", "net") == "The following resource(s) failed to delete: [B]. "
        assert cloud.delete("net") == "DELETE_COMPLETE"
        assert cloud.handler.calls == [("delete", "B"), ("delete", "A")]

    def test_retain_resources_after_a_failure_only(self, cloud: Any, parameter: Resource) -> None:
        cloud.deploy("net", stack(A=parameter("a")))
        refused = cloud.refused("DeleteStack", StackName="net", RetainResources=["A"])
        assert "Specify resources to retain only when the stack is in the DELETE_FAILED state" in refused
        cloud.handler.fail("delete", "A")
        assert cloud.delete("net") == "DELETE_FAILED"
        assert cloud.delete("net", RetainResources=["A"]) == "DELETE_COMPLETE"
        assert list(cloud.handler.existing) == ["A-1"]

    def test_termination_protection(self, cloud: Any, parameter: Resource) -> None:
        cloud.deploy("net", stack(A=parameter("a")), EnableTerminationProtection=True)
        assert cloud.refused("DeleteStack", StackName="net") == (
            "ValidationError: Stack [net] cannot be deleted while TerminationProtection is enabled"
        )
        cloud.ask("UpdateTerminationProtection", StackName="net", EnableTerminationProtection=False)
        assert cloud.delete("net") == "DELETE_COMPLETE"

    def test_a_stack_that_does_not_exist_is_no_error(self, cloud: Any) -> None:
        assert cloud.ask("DeleteStack", StackName="nothing") == {}


class TestExports:
    @pytest.fixture
    def pair(self, cloud: Any, parameter: Resource) -> Any:
        cloud.deploy("net", _exporting(parameter("a"), {"Ref": "A"}))
        cloud.deploy("app", stack(B=parameter({"Fn::ImportValue": "vpc"})))
        return cloud

    def test_an_import_gets_the_value(self, pair: Any) -> None:
        assert pair.handler.existing["B-1"]["Value"] == "A-1"
        assert pair.ask("ListImports", ExportName="vpc") == {"Imports": ["app"]}
        assert [e["Value"] for e in pair.ask("ListExports")["Exports"]] == ["A-1"]

    def test_an_export_in_use_stays(self, pair: Any) -> None:
        assert pair.delete("net") == "CREATE_COMPLETE"
        assert pair.stack("net").status_reason == "Export vpc cannot be deleted as it is in use by app"
        assert pair.handler.calls == []

    def test_everybody_who_uses_an_export_is_named(self, pair: Any, parameter: Resource) -> None:
        pair.deploy("other", stack(B=parameter({"Fn::ImportValue": "vpc"})))
        assert pair.delete("net") == "CREATE_COMPLETE"
        assert pair.stack("net").status_reason == "Export vpc cannot be deleted as it is in use by app and other"
        assert pair.delete("other") == "DELETE_COMPLETE"
        assert pair.delete("app") == "DELETE_COMPLETE"
        assert pair.delete("net") == "DELETE_COMPLETE"

    @pytest.mark.parametrize(
        ("value", "reason"),
        [
            ("other", "Cannot update export vpc as it is in use by app "),
            (None, "Export vpc cannot be deleted as it is in use by app "),
        ],
    )
    def test_an_export_in_use_cannot_change(
        self, pair: Any, parameter: Resource, value: str | None, reason: str
    ) -> None:
        template = _exporting(parameter("b"), value) if value else stack(A=parameter("b"))
        assert pair.deploy("net", template) == "UPDATE_ROLLBACK_COMPLETE"
        assert pair.reason("net", "net") == reason
        assert pair.handler.existing["A-1"]["Value"] == "a"

    def test_no_such_export(self, cloud: Any, parameter: Resource) -> None:
        template = stack(B=parameter({"Fn::Sub": ["${v}", {"v": {"Fn::ImportValue": "vpc"}}]}))
        refused = cloud.refused("CreateStack", StackName="app", TemplateBody=_json(template))
        assert refused == "ValidationError: No export named vpc found."

    def test_export_names_are_unique(self, pair: Any, parameter: Resource) -> None:
        assert pair.deploy("other", _exporting(parameter("x"), "x")) == "ROLLBACK_COMPLETE"
        assert pair.reason("other", "other").startswith("Export with name vpc is already exported by stack net.")


def _exporting(resource: dict[str, Any], value: Any) -> Template:
    return {"Resources": {"A": resource}, "Outputs": {"Vpc": {"Value": value, "Export": {"Name": "vpc"}}}}


def _json(template: Template) -> str:
    return json.dumps(template)
