"""Resources that are told to fail, at each point at which AWS can fail."""

from __future__ import annotations

from typing import Any

import pytest

from hyperpod_cdk_rehearsal.embedded.cloudformation.faults import set_faults


def stack(**resources: Any) -> dict[str, Any]:
    return {"Resources": resources}


def let_fail(cloud: Any, when: str, logical_id: str = "B", times: int = 1) -> None:
    set_faults(cloud.context, [{"stack": "net", "logical_id": logical_id, "when": when, "times": times}])


@pytest.fixture
def pair(parameter: Any) -> Any:
    return lambda value: stack(A=parameter(value), B=parameter({"Fn::Sub": "${A}-" + value}))


@pytest.mark.parametrize(
    ("when", "calls"),
    [
        ("before_create", [("create", "A"), ("delete", "A")]),
        ("after_create", [("create", "A"), ("create", "B"), ("delete", "B"), ("delete", "A")]),
    ],
)
def test_a_creation_is_taken_back(cloud: Any, pair: Any, when: str, calls: list[Any]) -> None:
    let_fail(cloud, when)
    assert cloud.deploy("net", pair("a")) == "ROLLBACK_COMPLETE"
    assert "told to fail" in cloud.reason("net", "B")
    assert cloud.handler.calls == calls
    assert cloud.handler.existing == {}


@pytest.mark.parametrize(
    ("when", "calls"),
    [
        ("before_update", [("update", "A"), ("update", "A"), ("update", "B")]),
        ("after_update", [("update", "A"), ("update", "B"), ("update", "A"), ("update", "B")]),
    ],
)
def test_an_update_is_taken_back(cloud: Any, pair: Any, when: str, calls: list[Any]) -> None:
    cloud.deploy("net", pair("a"))
    let_fail(cloud, when)
    assert cloud.deploy("net", pair("b")) == "UPDATE_ROLLBACK_COMPLETE"
    assert cloud.handler.calls == calls
    assert cloud.handler.existing["A-1"]["Value"] == "a"
    assert cloud.deploy("net", pair("b")) == "UPDATE_COMPLETE"


def test_a_rollback_fails(cloud: Any, pair: Any) -> None:
    cloud.deploy("net", pair("a"))
    faults = [
        {"stack": "net", "logical_id": name, "when": when} for name, when in (("B", "after_update"), ("A", "rollback"))
    ]
    set_faults(cloud.context, faults)
    assert cloud.deploy("net", pair("b")) == "UPDATE_ROLLBACK_FAILED"
    assert cloud.refused("CreateChangeSet", StackName="net", ChangeSetName="c", TemplateBody="{}").endswith(
        " is in UPDATE_ROLLBACK_FAILED state and can not be updated."
    )
    assert [each["when"] for each in set_faults(cloud.context, None)] == ["after_update", "rollback"]
    assert [each["when"] for each in set_faults(cloud.context, [])] == ["after_update", "rollback"]
    assert set_faults(cloud.context, None) == []


def test_a_deletion_fails_once(cloud: Any, pair: Any) -> None:
    cloud.deploy("net", pair("a"))
    let_fail(cloud, "delete")
    assert cloud.delete("net") == "DELETE_FAILED"
    assert cloud.delete("net") == "DELETE_COMPLETE"
    assert cloud.handler.existing == {}


def test_a_point_that_there_is_not_is_refused(cloud: Any) -> None:
    with pytest.raises(ValueError, match=r"^when: must be one of before_create, .*, got 'never'$"):
        let_fail(cloud, "never")
