"""Bundles: no private data in them, what could not be read, and invalid files."""

from __future__ import annotations

import base64
import copy
import json
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from botocore.model import ListShape, MapShape, StringShape, StructureShape

from hyperpod_cdk.checks.policy import VERBS
from hyperpod_cdk.living.model import Unread
from hyperpod_cdk.living.observing.comparison import Observed, deviations
from hyperpod_cdk.living.observing.happened import Happened
from hyperpod_cdk.living.observing.model import Bundle, Filled, Member, Message, Operation, Times, Updated
from hyperpod_cdk.living.observing.observe import bundle_of, observe
from hyperpod_cdk.living.observing.pages import BundleError, read_bundle, text
from hyperpod_cdk.living.observing.recorder import Answer
from hyperpod_cdk.living.observing.redaction import Redactor, model_of, names_in, published
from hyperpod_cdk.living.observing.shapes import everybodys, operations
from hyperpod_cdk.living.pages import as_json
from hyperpod_cdk.templates.assembly import Assembly
from tests.living.account import Account
from tests.support.answers import answered
from tests.support.scripted_aws import Fails
from tests.support.tables import row_by_row

NOW = datetime(2026, 11, 23, tzinfo=UTC)


def event(name: str, kind: str, status: str, minute: float, **more: Any) -> dict[str, Any]:
    """Return a stack event."""
    return {
        "StackId": "stack",
        "EventId": f"{name}-{minute}",
        "StackName": "dev-foundation",
        "LogicalResourceId": name,
        "PhysicalResourceId": name,
        "ResourceType": kind,
        "Timestamp": NOW + timedelta(minutes=minute),
        "ResourceStatus": status,
        **more,
    }


EKS, EIP = "AWS::EKS::Cluster", "AWS::EC2::EIP"
EVENTS = [
    event("Ip", EIP, "CREATE_FAILED", 12, ResourceStatusReason="research is over its quota at 198.51.100.7"),
    event("Ip", EIP, "CREATE_IN_PROGRESS", 11),
    event("Eks", EKS, "CREATE_COMPLETE", 10),
    event("Eks", EKS, "CREATE_IN_PROGRESS", 1, ResourceStatusReason="Resource creation Initiated"),
    event("Eks", EKS, "CREATE_IN_PROGRESS", 0, ResourceProperties='{"Name": "dev-eks"}'),
]
NODE = {
    "InstanceGroupName": "h100",
    "InstanceId": "i-0123456789abcdef0",
    "InstanceType": "ml.p5.48xlarge",
    "LaunchTime": NOW,
    "InstanceStatus": {"Status": "Running", "Message": ""},
}


def account(**more: Any) -> Account:
    """Return an account that answers all that is asked."""
    answers = {
        "cloudformation:DescribeStackEvents": {"StackEvents": EVENTS},
        "sagemaker:ListClusterNodes": {"ClusterNodeSummaries": [NODE]},
        "sagemaker:ListClusterEvents": {"Events": []},
        "sagemaker:DescribeClusterNode": {"NodeDetails": NODE},
    }
    return Account(more={**answers, **more})


def observed(of: Account) -> Bundle:
    """Observe."""
    return observe(of.aws(), of.assembly(), now=NOW)


def test_every_call_is_in_its_policy() -> None:
    of = account()
    found = observed(of)
    assert found.skipped == ()
    (verb,) = (each for each in VERBS if each.name == "observe")
    called = {"s3:GetBucketEncryption": "s3:GetEncryptionConfiguration"}
    called["s3:GetBucketLifecycleConfiguration"] = "s3:GetLifecycleConfiguration"
    called["s3:GetPublicAccessBlock"] = "s3:GetBucketPublicAccessBlock"
    of_budgets = ("DescribeBudget", "DescribeNotificationsForBudget", "DescribeSubscribersForNotification")
    called |= dict.fromkeys((f"budgets:{each}" for each in of_budgets), "budgets:ViewBudget")
    actions = {called.get(name, name) for name, _ in of.asked}
    assert actions <= set(verb.actions)
    assert {"cloudformation:DescribeStackEvents", "sagemaker:DescribeClusterNode"} <= actions
    assert all(each.partition(":")[2].startswith(("Describe", "Get", "List", "View")) for each in verb.actions)


def test_a_bundle_follows_its_schema_and_is_read_again(tmp_path: Path) -> None:
    found = observed(account())
    file = tmp_path / "bundle.json"
    file.write_text(as_json(found), encoding="utf-8")
    answered("observation", as_json(found))
    assert read_bundle(file) == found
    assert as_json(observed(account())) == as_json(found)
    assert all(len(line) <= 80 or " " not in line.strip() for line in text(found).splitlines())


def test_a_node_of_each_group_is_described_of_whatever_page() -> None:
    other = {**NODE, "InstanceGroupName": "system", "InstanceId": "i-0123456789abcdef1"}

    def listed(params: Mapping[str, Any]) -> dict[str, Any]:
        rows = [
            each
            for each in (NODE, other)
            if params.get("InstanceGroupNameContains", each["InstanceGroupName"]) in str(each["InstanceGroupName"])
        ]
        if "InstanceGroupNameContains" in params:
            return {"ClusterNodeSummaries": rows}
        return {"ClusterNodeSummaries": rows[:1], "NextToken": "second"}

    of = account(**{"sagemaker:ListClusterNodes": listed})
    observed(of)
    described = {params["NodeId"] for name, params in of.asked if name == "sagemaker:DescribeClusterNode"}
    assert described == {NODE["InstanceId"], other["InstanceId"]}


SECRET = "zq7"
"""Stands in every planted secret and in no word of AWS."""

DEEP = 2
"""So many levels of structures that did not come are planted; a model may nest without end."""

MANY = 50
"""So many times five texts are planted at least."""


def _secrets() -> Iterator[str]:
    """Yield secrets of many forms, numbered, without end: no word of them may be in a bundle."""
    for number in count(1):
        name, arn = f"{SECRET}{number}", f"arn:aws:iam::999988887777:user/{SECRET}{number}"
        certificate = base64.b64encode(f"-----BEGIN CERTIFICATE-----{name}".encode()).decode()
        yield from (
            f"{number}-{SECRET}",
            f"{number}:arn:aws:iam::999988887777:role/{name}",
            f"{number} 198.51.100.{number % 255} {name}@example.com 2001:db8::{number:x} 0a:1b:2c:3d:4e:{number:02x}",
            f"{number} AKIA{name} the token of {SECRET}x{number}/key=Pass{SECRET}",
            f"{number} {SECRET}word",
            f"{number} i-0{number:016x} 999988887777.dkr.ecr.us-east-1.amazonaws.com/{name}",
            f"{number} {quote(arn, safe='')} {base64.b64encode(name.encode()).decode()}",
            f"{number} {certificate} {name.encode().hex()}",
            json.dumps({"Statement": [{"Principal": {"AWS": f"arn:aws:iam::999988887777:root/{name}"}}]}),
            f"#!/bin/bash\nexport {SECRET.upper()}{number}='{name}'; curl https://{name}.example.com",
            "zq" + "".join(chr(97 + int(each)) for each in str(number)),
            f"{number} eyJ{base64.urlsafe_b64encode(name.encode()).decode()}.{name}._-{SECRET}",
            f"{number} https://{name}.s3.cn-north-1.amazonaws.com.cn/k?X-Amz-Signature={name.encode().hex()}&x='{SECRET}'",
            f"{number} {SECRET.title()}'s O'{name} {SECRET}ü{number} (\"{name}\"),[{name}];<{name}>",
            f"{number} {name}\x00{name}\u2028{name}\n{name}\t{name}",
            f"{number} {f'{name}/' * 2000}",
            f"{number} arn:aws-cn:sagemaker:cn-north-1:999988887777:cluster/{name} {name}.local fe80::{number:x}%eth0",
        )


def words_of(secret: str) -> Iterator[str]:
    """Yield what of a planted secret must not be in a bundle, of words that AWS has, too, none."""
    common = {"the", "token", "of", "export", "curl", '{"Statement":', '[{"Principal":', '{"AWS":'}
    yield from (each for each in secret.split() if each not in common and not re.fullmatch(r"\d{1,3}", each))


def planted(shape: Any, answer: Any, secrets: Iterator[str], *, depth: int = 0) -> Any:
    """Return an answer in which every text, of every member that the model has, is a secret; states stay.

    Structures and lists of them that did not come are there, too, some levels deep.
    """
    if isinstance(shape, StructureShape):
        known = dict(answer) if isinstance(answer, Mapping) else {}
        for name, member in shape.members.items():
            if name in known:
                known[name] = planted(member, known[name], secrets)
            elif isinstance(member, StringShape):
                known[name] = planted(member, "", secrets)
            elif isinstance(member, MapShape) and isinstance(member.value, StringShape):
                known[name] = {next(secrets): planted(member.value, "", secrets)}
            elif isinstance(member, ListShape) and isinstance(member.member, StringShape):
                known[name] = [planted(member.member, "", secrets)]
            elif isinstance(member, StructureShape) and depth < DEEP:
                known[name] = planted(member, {}, secrets, depth=depth + 1)
            elif isinstance(member, ListShape) and isinstance(member.member, StructureShape) and depth < DEEP:
                known[name] = [planted(member.member, {}, secrets, depth=depth + 1)]
        return known
    if published(shape) and isinstance(answer, str):
        # letters alone are taken for a state that AWS has added
        return f"{next(secrets)} 0"
    if isinstance(shape, ListShape) and isinstance(answer, (list, tuple)):
        return [planted(shape.member, each, secrets) for each in answer]
    if isinstance(shape, MapShape) and isinstance(answer, Mapping):
        return {next(secrets): planted(shape.value, each, secrets) for each in answer.values()}
    return next(secrets) if isinstance(answer, str) and isinstance(shape, StringShape) else answer


class Kept(Iterator[str]):
    """Gives one secret after the other, also to several threads, and keeps which it gave."""

    def __init__(self) -> None:
        self.given: list[str] = []
        self._secrets, self._lock = _secrets(), threading.Lock()

    def __next__(self) -> str:
        with self._lock:
            self.given.append(next(self._secrets))
            return self.given[-1]


class Planting:
    """Puts secrets into every answer but what names stacks and resources to each other, and that within its texts."""

    def __init__(self, aws: Any, *, is_hard: bool) -> None:
        self.aws, self.secrets, self.is_hard = aws, Kept(), is_hard
        self.planted = self.secrets.given

    def _plant(self, service: str, operation: str, answer: Any, key: str = "") -> Any:
        model = model_of(service)
        name = next(each for each in model.operation_names if each.lower() == operation.replace("_", ""))
        shape = model.operation_model(name).output_shape
        found = copy.deepcopy(dict(answer))
        if name in {"ListStackResources", "GetTemplate"}:
            # names of the account's own, which are looked for, too
            return found
        if name == "DescribeStacks":
            kept = [{key: each[key] for key in ("StackName", "StackId", "StackStatus")} for each in found["Stacks"]]
            rows = planted(shape, found, self.secrets)["Stacks"]
            return {"Stacks": [{**row, **each} for row, each in zip(rows, kept, strict=True)]}
        if name == "DescribeStackEvents":
            # what events are about stays, or nothing of them is read
            for each in found["StackEvents"]:
                each.update(
                    LogicalResourceId=f"{SECRET}{each['LogicalResourceId']}",
                    PhysicalResourceId=next(self.secrets),
                    ResourceStatusReason=next(self.secrets),
                    ResourceProperties=json.dumps({next(self.secrets): next(self.secrets)}),
                )
                if self.is_hard:
                    each["ResourceType"] = f"Custom::{SECRET}"
            return found
        return planted(shape if not key else StructureOf(shape, key), found, self.secrets)

    def call(self, service: str, operation: str, **params: Any) -> Any:
        return self._plant(service, operation, self.aws.call(service, operation, **params))

    send = call

    def pages(self, service: str, operation: str, key: str, **params: Any) -> Any:
        found = {key: self.aws.pages(service, operation, key, **params)}
        return self._plant(service, operation, found, key)[key]


def StructureOf(shape: Any, key: str) -> Any:  # noqa: N802 - stands for a shape
    """Return a structure with one member of a shape."""
    model = copy.copy(shape)
    model.__dict__["members"] = {key: shape.members[key]}
    return model


@pytest.mark.parametrize("is_hard", [False, True])
def test_no_secret_of_any_answer_is_in_a_bundle(*, is_hard: bool) -> None:
    of = account()
    planting = Planting(of.aws(), is_hard=is_hard)
    found = as_json(observe(planting, of.assembly(), now=NOW))
    assert len(planting.planted) > 5 * MANY
    words = {word for each in planting.planted for word in words_of(each)}
    assert len(words) > MANY
    assert SECRET not in found.lower()
    # so no word that holds it is there; those that do not (hexadecimal, base64, numbers) are looked for one by one
    assert [each for each in words if SECRET not in each.lower() and each in found] == []
    for each in ("999988887777", "198.51", "AKIA", "example.com", "111122223333", "arn:aws"):
        assert each not in found, each
    # names of the environment itself
    for each in ("dev-eks", "dev-nodes", "i-0123456789abcdef0", "sg-0a1b", "cost-center"):
        assert each not in found, each


def test_nothing_of_an_unplanted_account_is_in_its_bundle() -> None:
    found = as_json(observed(account()))
    for each in ("111122223333", "dev-", "h100", "research", "sg-", "arn:", "192.0.2", "cost-center", "198.51"):
        assert each not in found, each


def test_names_that_only_a_template_or_a_policy_has_are_in_no_message() -> None:
    answers = {"Template": {"Resources": {"Q": {"Properties": {"TeamName": "research", "Labels": {"physics": "x"}}}}}}
    answer = Answer(
        service="cloudformation", operation="get_template", params="", body={"TemplateBody": answers["Template"]}
    )
    own = names_in(everybodys([answer]))
    assert {"research", "physics"} <= own
    assert Redactor(own=own).text("The role of research") == "The role of <1>"
    (operation,) = operations([answer], Redactor(own=own))
    assert [each.mistyped for each in operation.members if each.mistyped] == []
    assert Redactor().place("InstanceGroups[h100].KubernetesConfig.Labels.Owner") == (
        "InstanceGroups[].KubernetesConfig.Labels.<1>"
    )


def test_a_time_that_nothing_can_take_is_skipped() -> None:
    """Two clocks of AWS may differ: an event that is older than what it ends is no time, and no traceback either."""
    events = [
        event("Ip", EIP, "CREATE_COMPLETE", 7),
        event("Ip", EIP, "CREATE_IN_PROGRESS", 8),
        event("Eks", EKS, "CREATE_COMPLETE", 200_000),
        event("Eks", EKS, "CREATE_IN_PROGRESS", 0),
        event("Vpc", "AWS::EC2::VPC", "CREATE_COMPLETE", 0),
        event("Vpc", "AWS::EC2::VPC", "CREATE_IN_PROGRESS", 0),
    ]
    found = observed(account(**{"cloudformation:DescribeStackEvents": {"StackEvents": events}}))
    assert [(each.type, each.seconds) for each in found.times] == [("AWS::EC2::VPC", (0.0,))]
    assert [each.what for each in found.skipped] == [f"time of {EKS}", f"time of {EIP}"]
    assert found.passed is not True


def test_where_no_stack_is_there_it_says_so() -> None:
    found = observed(Account(more=account().more, deployed={}))
    assert (found.passed, found.verdict) == (None, "Nothing was compared; 1 thing could not be read.")
    assert [(each.what, each.reason) for each in found.skipped] == [("all", "no stack of the environment is deployed")]


def test_5000_events_are_read_page_by_page_in_a_moment() -> None:
    events = [
        each
        for number in range(2500)
        for each in (
            event(f"E{number}", EKS, "CREATE_COMPLETE", number + 10),
            event(f"E{number}", EKS, "CREATE_IN_PROGRESS", number),
        )
    ]

    def page(params: Mapping[str, Any]) -> dict[str, Any]:
        first = int(params.get("NextToken", 0))
        more = {"NextToken": str(first + 100)} if first + 100 < len(events) else {}
        return {"StackEvents": events[first : first + 100], **more}

    began = time.process_time()
    found = observed(account(**{"cloudformation:DescribeStackEvents": page}))
    assert time.process_time() - began < 5
    assert [len(each.seconds) for each in found.times] == [2500]
    assert found.compared.times == 2500


def test_redaction_is_stable() -> None:
    redactor = Redactor(own=frozenset({"research"}))
    one = redactor.text("research may not use 198.51.100.7 of team-a, since research is over its quota")
    assert one == "<1> may not use <2> of <3>, since <1> is over its quota"
    assert redactor.text("(team-a)") == "(<3>)"
    assert redactor.value("198.51.100.7") == "<2>"
    assert [redactor.value(each) for each in ("500", "true", "1.34", "PERSISTENT_2", "ml.p5.48xlarge")] == [
        *("500", "true", "1.34", "PERSISTENT_2", "ml.p5.48xlarge")
    ]
    assert redactor.value("111122223333") == "<4>"
    assert redactor.state("Quarantined") == "Quarantined"
    assert redactor.state("i-0123") == "<5>"
    assert redactor.place("InstanceGroups[h100].KubernetesConfig.Labels.my-team") == (
        "InstanceGroups[].KubernetesConfig.Labels.<6>"
    )
    assert redactor.type("AWS::EKS::Cluster") == "AWS::EKS::Cluster"
    assert [redactor.type(each) for each in ("AWS::My::Secret", "Custom::Mine", "Custom::HyperPodQuotaGate")] == [
        *("Custom::*", "Custom::*", "Custom::HyperPodQuotaGate")
    ]


DENIED = Fails("AccessDeniedException", "User: arn:aws:iam::111122223333:user/dana may not", 403)
THROTTLED = Fails("ThrottlingException", "Rate exceeded", 400)


NOT_READ = (
    "cloudformation:DescribeStackEvents",
    "sagemaker:DescribeCluster",
    "sagemaker:ListClusterNodes",
    "sagemaker:DescribeClusterNode",
    "eks:DescribeCluster",
    "fsx:DescribeFileSystems",
)


@pytest.mark.parametrize(("name", "how"), [*((each, DENIED) for each in NOT_READ), ("kms:GetKeyPolicy", THROTTLED)])
def test_what_is_not_read_is_skipped_and_not_as_assumed(name: str, how: Fails) -> None:
    found = observed(account(**{name: how}))
    assert found.skipped
    assert name not in {each.operation for each in found.answers}
    if name == "cloudformation:DescribeStackEvents":
        assert (found.compared.times, found.times, found.messages) == (0, (), ())
    assert found.passed is (False if found.deviations else None)
    assert "dana" not in as_json(found)


@pytest.mark.parametrize("skipped", [(), (Unread(what="all", reason="it is not there"),)])
def test_where_nothing_is_read_nothing_is_as_assumed(skipped: tuple[Unread, ...]) -> None:
    found = bundle_of(Observed(), skipped=skipped, redactor=Redactor(), region="us-east-1")
    end = "; 1 thing could not be read" if skipped else ""
    assert (found.passed, found.verdict) == (None, f"Nothing was compared{end}.")


FSX, COPIES = "AWS::FSx::FileSystem", "LustreConfiguration.CopyTagsToBackups"


def member(**more: Any) -> Operation:
    """Return an operation with one member."""
    row = {"place": "cluster.status", "came": 1, "of": 1, **more}
    return Operation(operation="eks:DescribeCluster", answers=1, members=(Member(**row),))


def message(code: str = "", form: Any = "handler") -> Message:
    """Return why an address failed."""
    return Message(type=EIP, status="CREATE_FAILED", text="no", code=code, form=form)


def times(kind: str, *seconds: float, when: str | None = "", action: Any = "create") -> Times:
    """Return measured times."""
    return Times(type=kind, action=action, when=when, seconds=seconds)


@row_by_row(
    "seen, said",
    [
        # 8 to 17 minutes, with a second to either side
        (Observed(times=[times(EKS, 480, 1020)]), []),
        (Observed(times=[times(EKS, 479)]), []),
        (Observed(times=[times(EKS, 478.9)]), [("durations", f"{EKS} create", "7.98 to 7.98 minutes")]),
        (Observed(times=[times(EKS, 1021)]), []),
        (Observed(times=[times(EKS, 1021.1)]), [("durations", f"{EKS} create", "17.02 to 17.02 minutes")]),
        # an update in unknown circumstances: 3 to 25 minutes
        (Observed(times=[times(EKS, 1500, when=None, action="update")]), []),
        (
            Observed(times=[times(EKS, 1500, action="update")]),
            [("durations", f"{EKS} update", "25.00 to 25.00 minutes")],
        ),
        (
            Observed(times=[times("AWS::EC2::EIP", 60)]),
            [("durations", f"{EIP} create (others)", "1.00 to 1.00 minutes")],
        ),
        (Observed(answers=[member(words=("ACTIVE",))]), []),
        (
            Observed(answers=[member(came=1, of=2)]),
            [("answers", "eks:DescribeCluster cluster.status", "it was there 1 time of 2")],
        ),
        # the model has it: that it comes is no news
        (Observed(answers=[member(place="cluster.outpostConfig")]), []),
        (
            Observed(answers=[member(place="cluster.version", mistyped=("float", "integer"))]),
            [("answers", "eks:DescribeCluster cluster.version", "it had the type float or integer")],
        ),
        (
            Observed(answers=[member(unpublished=("ASLEEP",))]),
            [("states", "eks:DescribeCluster cluster.status", "ASLEEP")],
        ),
        # nothing is known of the answers to this one
        (
            Observed(
                answers=[
                    Operation(operation="eks:DescribeInsight", answers=1, members=(Member(place="x", came=1, of=1),))
                ]
            ),
            [],
        ),
        (
            Observed(
                defaults=[
                    Filled(
                        type="AWS::FSx::FileSystem",
                        place="LustreConfiguration.CopyTagsToBackups",
                        values=("false", "true"),
                    )
                ]
            ),
            [("defaults", "AWS::FSx::FileSystem LustreConfiguration.CopyTagsToBackups", "true")],
        ),
        (Observed(defaults=[Filled(type=FSX, place="Unknown", values=("1",))]), []),
        (Observed(updates=[Updated(type=EKS, places=("Logging",), outcome="in place", foretold=("in place",))]), []),
        (
            Observed(updates=[Updated(type=EKS, places=("Logging",), outcome="replaced", foretold=("in place",))]),
            [("updates", f"{EKS} Logging", "replaced")],
        ),
        (
            Observed(updates=[Updated(type=EKS, places=("Name",), outcome="in place", foretold=("replaced",))]),
            [("updates", f"{EKS} Name", "in place")],
        ),
        (Observed(updates=[Updated(type=EKS, places=("Name",), outcome="replaced", foretold=("unknown",))]), []),
        (
            Observed(
                messages=[Message(type=EIP, status="CREATE_FAILED", text="no", code="InvalidRequest", form="handler")]
            ),
            [],
        ),
        (
            Observed(messages=[message(code="Tired")]),
            [("messages", f"{EIP} CREATE_FAILED", "Tired")],
        ),
        (
            Observed(messages=[message(form="other")] * 2),
            [("messages", f"{EIP} CREATE_FAILED", "no")],
        ),
    ],
)
def test_each_row_is_contradicted_once(seen: Observed, said: list[tuple[str, str, str]]) -> None:
    found, _ = deviations(seen)
    assert [(each.table, each.row, each.observed) for each in found] == said


def test_the_deviations_of_an_account_are_reported() -> None:
    found = observed(account())
    assert [(each.table, each.row) for each in found.deviations if each.table in ("durations", "messages")] == [
        ("messages", f"{EIP} CREATE_FAILED")
    ]
    (message,) = found.messages
    assert re.fullmatch(r"<\d+> is over its quota at <\d+>", message.text)
    assert [(each.type, each.action, each.when, each.seconds) for each in found.times] == [
        (EKS, "create", "", (600.0,))
    ]


GOOD = as_json(Bundle(made_by="0.2.0", botocore="1.44.5", region="us-east-1", verdict="", passed=True))


def with_times(seconds: list[float]) -> str:
    """Return a bundle with the times of one type."""
    row = {"type": EKS, "action": "create", "when": None, "seconds": seconds}
    return json.dumps({**json.loads(GOOD), "times": [row]})


def with_member(place: str, operation: str = "eks:DescribeCluster") -> str:
    """Return a bundle with one member."""
    row = {"operation": operation, "answers": 1, "members": [{"place": place, "came": 1, "of": 1}]}
    return json.dumps({**json.loads(GOOD), "answers": [row]})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is not complete JSON: "),
        (GOOD[: len(GOOD) // 2], "is not complete JSON: "),
        ("[" * 100_000, "is not a bundle: it is nested too deeply"),
        ("[]", "is not a bundle of 'hyperpod-cdk observe'"),
        ("{}", "is not a bundle of 'hyperpod-cdk observe'"),
        (GOOD.replace('"version": 1', '"version": 2'), "is a bundle of version 2, and this command reads 1; "),
        (GOOD.replace('"version": 1', '"version": "\\u001b[2J\\n' + "x" * 500 + '"'), "is a bundle of version "),
        (GOOD.replace('"version": 1', '"version": true'), "is a bundle of version True"),
        (GOOD.replace('"passed": true', '"passed": NaN'), "is not complete JSON: NaN is not a JSON number"),
        (GOOD.replace('"passed": true', '"passed": "yes"'), "is not a bundle: passed: "),
        (GOOD.replace('"region": "us-east-1"', '"region": "../../etc"'), "is not a bundle: region: "),
        (GOOD.replace('"verdict"', '"more": 1, "verdict"'), "is not a bundle: more: "),
        (with_times([]), "is not a bundle: times.0.seconds: "),
        (with_times([-1]), "is not a bundle: times.0.seconds.0: "),
        (with_times([1]).replace("[1]", "[1e999]"), "is not a bundle: "),
        (with_member("../../etc"), "is not a bundle: answers.0.members.0.place: "),
        (with_member("a", "\u001b[2J:x"), "is not a bundle: answers.0.operation: "),
        (GOOD.replace('"verdict": ""', '"verdict": "\\ud800"'), "is not a bundle: "),
        (b"\xff\xfe", "cannot be read: "),
    ],
)
def test_a_file_that_is_no_bundle_is_refused_in_one_line(content: str | bytes, said: str, tmp_path: Path) -> None:
    file = tmp_path / "bundle.json"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(BundleError) as caught:
        read_bundle(file)
    line = str(caught.value)
    assert line.startswith(f"{file}: {said}")
    assert "\n" not in line
    assert "\x1b" not in line
    assert len(line) < len(str(file)) + 400


def test_a_file_that_is_not_there_is_reported_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"bundle.json: cannot be read: No such file"):
        read_bundle(tmp_path / "bundle.json")
    (tmp_path / "large.json").touch()

    os.truncate(tmp_path / "large.json", 1 << 30)
    with pytest.raises(BundleError, match=r"cannot be read: .*at most"):
        read_bundle(tmp_path / "large.json")


def test_of_a_group_that_comes_or_goes_nothing_was_predicted() -> None:
    kind = "AWS::SageMaker::Cluster"
    properties = [
        json.dumps({"AutoScaling": {"Mode": "Enable"}, "NodeRecovery": recovery, "InstanceGroups": groups})
        for recovery, groups in (("None", [{"InstanceGroupName": "a"}]), ("Automatic", []))
    ]
    events = [
        event("Cluster", kind, "UPDATE_COMPLETE", 30, ResourceProperties=properties[1]),
        event("Cluster", kind, "UPDATE_IN_PROGRESS", 20, ResourceProperties=properties[1]),
        event("Cluster", kind, "CREATE_COMPLETE", 10, ResourceProperties=properties[0]),
        event("Cluster", kind, "CREATE_IN_PROGRESS", 0, ResourceProperties=properties[0]),
    ]
    found = observed(account(**{"cloudformation:DescribeStackEvents": {"StackEvents": events}}))
    assert [(each.places, each.outcome) for each in found.updates] == [(("NodeRecovery",), "in place")]


def test_a_time_that_cannot_be_computed_is_no_row() -> None:
    happened = Happened(deployed=Assembly(environment="dev", stacks=()), redactor=Redactor())
    ended = event("Eks", EKS, "CREATE_COMPLETE", 10)
    ended["Timestamp"] = ended["Timestamp"].replace(tzinfo=None)
    with pytest.raises(TypeError):
        happened.read("dev-foundation", [ended, event("Eks", EKS, "CREATE_IN_PROGRESS", 0)])
    assert happened.times == ()
