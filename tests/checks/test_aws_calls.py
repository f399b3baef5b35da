"""AWS calls: once each, in parallel, with their longest chain, and with all errors converted."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import Context
from typing import Any, ClassVar, TypeVar

import pytest
from botocore import exceptions as errors
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperpod_cdk.checks.answers import NotAnswered
from hyperpod_cdk.checks.aws import LiveAws
from hyperpod_cdk.checks.aws_calls import MOST_CALLS_AT_ONCE, MOST_PAGES
from hyperpod_cdk.checks.side_by_side import together
from hyperpod_cdk.handlers.quota_gate.reading import NoSuchQuota, Own
from tests.support.scripted_aws import ACCOUNT, ARN, REGION, WHO, Fails, Script, ScriptedSession
from tests.support.tables import row_by_row

ResultT = TypeVar("ResultT")

ZONES = "ec2:DescribeAvailabilityZones"
CLUSTERS = "sagemaker:ListClusters"


def opened(script: Script) -> LiveAws:
    session = ScriptedSession({"sts:GetCallerIdentity": WHO, **script}).session()
    return LiveAws.open(region=REGION, account=ACCOUNT, own=Own(), session=session)


def apart(function: Callable[[], ResultT]) -> ResultT:
    """Run a function as a check runs: what it waits for is no part of the test's own chain of calls."""
    return Context().run(function)


def refusal(ask: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(NotAnswered) as caught:
        ask()
    return caught.value.reason, caught.value.action


def summary(name: str) -> dict[str, Any]:
    return {"ClusterName": name}


def cluster(_: Mapping[str, Any]) -> dict[str, Any]:
    return {"ClusterArn": "arn", "ClusterStatus": "InService", "InstanceGroups": []}


def test_a_question_is_asked_once_by_any_number_of_threads() -> None:
    waiting = threading.Barrier(8)

    def answer(_: Mapping[str, Any]) -> dict[str, Any]:
        return {"AvailabilityZones": []}

    aws = opened({ZONES: answer})

    def ask(_: int) -> object:
        waiting.wait(timeout=10)
        return aws.zones()

    assert together(ask, range(8)) == [()] * 8
    assert [call.name for call in aws.calls] == ["sts:GetCallerIdentity", ZONES]


def test_those_who_wait_for_the_same_answer_get_the_same_refusal() -> None:
    started = threading.Event()

    def refuse(_: Mapping[str, Any]) -> Fails:
        started.wait(timeout=0.2)
        return Fails("UnauthorizedOperation", "You are not authorized to perform this operation.", 403)

    aws = opened({ZONES: refuse})
    results = together(lambda _: aws.zones(), range(8))
    assert {str(result) for result in results} == {"no permission for ec2:DescribeAvailabilityZones"}
    assert len({id(result) for result in results}) == 8
    assert len(aws.calls) == 2


def test_a_mistake_in_one_thread_is_no_endless_wait_in_another() -> None:
    aws = opened({})

    def mistake() -> object:
        raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            aws._once("key", mistake)


def test_questions_with_other_parameters_are_other_questions() -> None:
    aws = opened({"eks:DescribeCluster": Fails("ResourceNotFoundException")})
    assert [aws.eks_cluster(name) for name in ("a", "b", "a")] == [None, None, None]
    assert len(aws.calls) == 3


def test_no_more_calls_are_in_flight_than_is_good() -> None:
    lock, running, most = threading.Lock(), 0, 0

    def answer(_: Mapping[str, Any]) -> dict[str, Any]:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        threading.Event().wait(0.002)
        with lock:
            running -= 1
        return Fails("NoSuchEntity")  # type: ignore[return-value] # a scripted error

    aws = opened({"iam:GetRole": answer})
    together(lambda batch: together(lambda number: aws.role(f"r{batch}-{number}"), range(20)), range(10))
    assert len(aws.calls) == 201
    assert 1 < most <= MOST_CALLS_AT_ONCE


class TestDepth:
    """The longest chain of calls of which each waited for the one before."""

    SCRIPT: ClassVar[Script] = {
        ZONES: {"AvailabilityZones": []},
        CLUSTERS: {"ClusterSummaries": [summary("a"), summary("b"), summary("c")]},
        "sagemaker:DescribeCluster": cluster,
    }

    def test_every_question_waits_for_the_caller(self) -> None:
        def run() -> LiveAws:
            aws = opened(self.SCRIPT)
            aws.zones()
            return aws

        aws = apart(run)
        assert [(call.name, call.depth) for call in aws.calls] == [("sts:GetCallerIdentity", 1), (ZONES, 2)]

    def test_questions_side_by_side_are_no_deeper_than_one(self) -> None:
        def run() -> LiveAws:
            aws = opened(self.SCRIPT)
            together(lambda ask: ask(), (aws.zones, aws.hyperpod_clusters))
            return aws

        aws = apart(run)
        depths = {call.name: call.depth for call in aws.calls}
        assert depths == {"sts:GetCallerIdentity": 1, ZONES: 2, CLUSTERS: 2, "sagemaker:DescribeCluster": 3}
        assert aws.depth == 3

    def test_an_answer_that_is_there_already_counts_with_what_it_waited_for(self) -> None:
        def run() -> LiveAws:
            aws = opened({**self.SCRIPT, "iam:GetRole": Fails("NoSuchEntity")})
            apart(aws.hyperpod_clusters)
            aws.hyperpod_clusters()
            aws.role("r")
            return aws

        assert {call.name: call.depth for call in apart(run).calls}["iam:GetRole"] == 4

    def test_a_page_waits_for_the_page_before(self) -> None:
        pages: Script = {CLUSTERS: [{"ClusterSummaries": [], "NextToken": "1"}, {"ClusterSummaries": []}]}

        def run() -> LiveAws:
            aws = opened(pages)
            aws.hyperpod_clusters()
            return aws

        assert [call.depth for call in apart(run).calls] == [1, 2, 3]

    def test_a_call_that_was_refused_was_waited_for_too(self) -> None:
        def run() -> LiveAws:
            aws = opened({ZONES: Fails("AccessDenied"), "iam:GetRole": Fails("NoSuchEntity")})
            with pytest.raises(NotAnswered):
                aws.zones()
            aws.role("r")
            return aws

        assert apart(run).depth == 3


class TestPages:
    """Answers in several parts."""

    def test_the_items_of_all_pages_are_given(self) -> None:
        tokens = []

        def page(params: Mapping[str, Any]) -> dict[str, Any]:
            tokens.append(params.get("NextToken"))
            number = len(tokens)
            more = {"NextToken": f"t{number}"} if number < 3 else {}
            return {"ClusterSummaries": [summary(f"c{number}")], **more}

        aws = opened({CLUSTERS: page, "sagemaker:DescribeCluster": cluster})
        assert [each.name for each in aws.hyperpod_clusters().whole()] == ["c1", "c2", "c3"]
        assert tokens == [None, "t1", "t2"]

    def test_pages_are_large(self) -> None:
        asked: list[Mapping[str, Any]] = []

        def page(params: Mapping[str, Any]) -> dict[str, Any]:
            asked.append(params)
            return {"ClusterSummaries": []}

        opened({CLUSTERS: page}).hyperpod_clusters()
        assert asked == [{"MaxResults": 100}]

    @pytest.mark.parametrize("tokens", [["a", "a"], ["a", "b", "a"]], ids=["the same", "in a circle"])
    def test_a_page_that_comes_again_is_no_endless_loop(self, tokens: list[str]) -> None:
        aws = opened({CLUSTERS: [{"ClusterSummaries": [], "NextToken": token} for token in tokens]})
        assert refusal(lambda: aws.hyperpod_clusters().whole()) == (
            "the answer to sagemaker:ListClusters repeats: AWS gave the same page again",
            "",
        )

    def test_pages_that_never_end_are_no_answer(self) -> None:
        count = iter(range(MOST_PAGES + 1))
        aws = opened({CLUSTERS: lambda _: {"ClusterSummaries": [], "NextToken": str(next(count))}})
        assert refusal(lambda: aws.hyperpod_clusters().whole()) == (
            f"the answer to sagemaker:ListClusters does not end after {MOST_PAGES} pages",
            "",
        )

    def test_what_was_read_of_a_list_that_broke_off_is_kept(self) -> None:
        """A cluster that is denied, one that is gone, and a second page that does not come."""
        named: dict[str, Mapping[str, Any] | Fails] = {
            "kept": cluster({}),
            "denied": Fails("AccessDeniedException", "no"),
            "gone": Fails("ResourceNotFound", "Cluster not found"),
        }
        first = {"ClusterSummaries": [{**summary(each), "ClusterStatus": "InService"} for each in named]}
        pages = iter([{**first, "NextToken": "1"}, {}])
        found = opened(
            {
                CLUSTERS: lambda _: next(pages),
                "sagemaker:DescribeCluster": lambda params: named[params["ClusterName"]],
            }
        ).hyperpod_clusters()
        assert [each.name for each in found.read] == ["kept"]
        assert [(each.name, each.status, each.why.action) for each in found.unread] == [
            ("denied", "InService", "sagemaker:DescribeCluster")
        ]
        assert found.broken_off is not None
        assert found.names == {"kept", "denied"}
        assert found.named("kept") is not None
        for ask in (lambda: found.named("denied"), lambda: found.named("other"), found.whole):
            with pytest.raises(NotAnswered):
                ask()

    def test_a_page_without_its_items_is_no_answer(self) -> None:
        aws = opened({CLUSTERS: [{"ClusterSummaries": [], "NextToken": "1"}, {}]})
        assert refusal(lambda: aws.hyperpod_clusters().whole()) == (
            "the answer to sagemaker:ListClusters cannot be read: 'ClusterSummaries' is missing",
            "",
        )

    def test_an_answer_of_which_the_rest_is_missing_is_no_answer(self) -> None:
        aws = opened({"iam:SimulatePrincipalPolicy": {"EvaluationResults": [], "IsTruncated": True}})
        assert refusal(lambda: aws.simulate(ARN, ["ec2:CreateVpc"])) == (
            "the answer to iam:SimulatePrincipalPolicy is incomplete: AWS says that there is more, but not where",
            "",
        )

    def test_a_marker_without_more_is_the_end(self) -> None:
        row = {"EvalActionName": "ec2:CreateVpc", "EvalDecision": "allowed"}
        answer = {"EvaluationResults": [row], "IsTruncated": False, "Marker": "x"}
        assert len(opened({"iam:SimulatePrincipalPolicy": answer}).simulate(ARN, ["ec2:CreateVpc"])) == 1


DENIED_BY_SCP = (
    "You are not authorized to perform this operation. User: arn:aws:sts::111122223333:assumed-role/r/s is not "
    "authorized to perform: ec2:DescribeAvailabilityZones with an explicit deny in a service control policy"
)


@row_by_row(
    "failure, reason, action",
    [
        (Fails("UnauthorizedOperation", "no", 403), f"no permission for {ZONES}", ZONES),
        (
            Fails("UnauthorizedOperation", DENIED_BY_SCP, 403),
            (
                f"no permission for {ZONES} (explicit deny in service control policy; only the organization's"
                " administrators can change it)"
            ),
            ZONES,
        ),
        (
            Fails(
                "AccessDenied", "User: x is not authorized to perform: ec2:Other because no permissions boundary allows"
            ),
            (
                "no permission for ec2:Other (no permissions boundary; another policy for the caller does not help:"
                " the boundary must allow it too)"
            ),
            "ec2:Other",
        ),
        (Fails("AccessDeniedException"), f"no permission for {ZONES}", ZONES),
        (Fails("RequestLimitExceeded", "Rate", 503), f"AWS throttled {ZONES}; run it again later", ""),
        (Fails("ThrottlingException", "Rate"), f"AWS throttled {ZONES}; run it again later", ""),
        (
            Fails("ExpiredTokenException", "expired"),
            "the credentials expired during the run; renew them and run it again",
            "",
        ),
        (
            Fails("AuthFailure", "AWS was not able to validate", 401),
            f"AWS does not accept the credentials for {ZONES} (AuthFailure); is the region enabled in the account?",
            "",
        ),
        (
            Fails("InternalError", "oops", 500),
            f"{ZONES} failed inside AWS with InternalError; run it again later",
            "",
        ),
        (Fails("", "", 503), f"{ZONES} failed inside AWS with HTTP 503; run it again later", ""),
        (
            Fails("InvalidAction", "The action\n is not valid."),
            f"{ZONES} was refused with InvalidAction: The action is not valid",
            "",
        ),
        (Fails("404", "<html>Not found</html>", 404), f"{ZONES} was refused with HTTP 404", ""),
        (errors.ReadTimeoutError(endpoint_url="https://ec2"), f"{ZONES} gave no answer within 8 s", ""),
        (
            errors.ConnectionClosedError(endpoint_url="https://ec2"),
            f"the connection was lost during {ZONES}",
            "",
        ),
        (
            errors.NoCredentialsError(),
            f"the credentials for {ZONES} are no longer available: Unable to locate credentials",
            "",
        ),
        (
            errors.ClientError({"Error": {"Code": "AccessDenied"}}, "AssumeRole"),
            f"the credentials for {ZONES} are no longer available: AssumeRole gave AccessDenied",
            "",
        ),
        (
            errors.ConnectTimeoutError(endpoint_url="https://ec2"),
            "ec2 cannot be reached: nothing answers at https://ec2.us-east-1.amazonaws.com; check network and proxy",
            "",
        ),
        (
            errors.EndpointConnectionError(endpoint_url="https://ec2"),
            "ec2 cannot be reached: nothing answers at https://ec2.us-east-1.amazonaws.com; check network and proxy",
            "",
        ),
        (AttributeError("garbage"), f"the answer to {ZONES} cannot be read: garbage", ""),
    ],
)
def test_an_error_is_a_plain_reason(failure: Fails | BaseException, reason: str, action: str) -> None:
    assert refusal(opened({ZONES: failure}).zones) == (reason, action)


def test_a_service_that_is_out_of_reach_is_tried_once() -> None:
    aws = opened({ZONES: errors.ConnectTimeoutError(endpoint_url="https://ec2")})
    reasons = {refusal(ask)[0] for ask in (aws.zones, lambda: aws.vpc("vpc-1"), lambda: aws.route_tables("vpc-1"))}
    assert reasons == {
        "ec2 cannot be reached: nothing answers at https://ec2.us-east-1.amazonaws.com; check network and proxy"
    }
    assert [call.name for call in aws.calls] == ["sts:GetCallerIdentity", ZONES]


def test_a_service_that_the_region_does_not_have_is_named() -> None:
    session = ScriptedSession(
        {"sts:GetCallerIdentity": WHO, "fsx:DescribeFileSystems": errors.EndpointConnectionError(endpoint_url="x")}
    ).session()
    aws = LiveAws.open(region="us-moon-1", account=ACCOUNT, own=Own(), session=session)
    reason, _ = refusal(lambda: aws.lustre_file_systems().whole())
    assert reason.startswith("fsx does not exist in us-moon-1: nothing answers at https://fsx.")


def test_a_name_that_no_api_takes_is_no_crash() -> None:
    assert refusal(lambda: opened({}).role(""))[0].startswith(
        "iam:GetRole cannot be called: Parameter validation failed"
    )


def test_the_gates_code_gets_its_own_error_for_a_quota_that_is_not_there() -> None:
    aws = opened({"servicequotas:GetServiceQuota": Fails("NoSuchResourceException", "none")})
    with pytest.raises(NoSuchQuota):
        aws.call("service-quotas", "get_service_quota", ServiceCode="ec2", QuotaCode="L-0")


def test_a_kind_of_use_that_there_is_not_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match=r'^no such kind of use: "unicorns"; the kinds are hyperpod_instances, '):
        opened({}).usage("unicorns")


CODES = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ["AccessDenied", "Throttling", "ExpiredToken", "NoSuchEntity", "ResourceNotFound", "ValidationError"]
    ),
)
QUESTIONS_ASKED: dict[str, Callable[[LiveAws], object]] = {
    ZONES: lambda aws: aws.zones(),
    CLUSTERS: lambda aws: aws.hyperpod_clusters().whole(),
    "iam:GetRole": lambda aws: aws.role("r"),
    "eks:DescribeCluster": lambda aws: aws.eks_cluster("c"),
    "s3:HeadBucket": lambda aws: aws.bucket("b"),
    "cloudformation:DescribeStacks": lambda aws: aws.stack("s"),
    "servicequotas:GetServiceQuota": lambda aws: aws.quota("ec2", "EIPs", "L-1"),
}


@settings(max_examples=150, deadline=None)
@given(
    name=st.sampled_from(sorted(QUESTIONS_ASKED)),
    code=CODES,
    message=st.one_of(st.text(max_size=40), st.just("words " * 100)),
    status=st.sampled_from([301, 400, 401, 403, 404, 409, 429, 500, 503]),
)
def test_whatever_aws_says_nothing_but_not_answered_leaves(name: str, code: str, message: str, status: int) -> None:
    script: Script = {
        "servicequotas:GetAWSDefaultServiceQuota": Fails(code, message, status),
        "servicequotas:ListServiceQuotas": Fails(code, message, status),
        "servicequotas:ListAWSDefaultServiceQuotas": Fails(code, message, status),
        name: Fails(code, message, status),
    }
    aws = opened(script)
    reason = answer = None
    try:
        answer = QUESTIONS_ASKED[name](aws)
    except NotAnswered as missing:
        reason = missing.reason
    assert answer is None
    assert reason is None or (reason.isprintable() and 0 < len(reason) < 500)
    assert reason is None or reason.removesuffix(" ...")[-1] not in ". "


@settings(max_examples=100, deadline=None)
@given(
    name=st.sampled_from([ZONES, CLUSTERS, "iam:GetRole", "eks:DescribeCluster", "cloudformation:DescribeStacks"]),
    answer=st.dictionaries(
        st.sampled_from(["AvailabilityZones", "ClusterSummaries", "Role", "cluster", "Stacks", "NextToken"]),
        st.one_of(
            st.none(),
            st.integers(),
            st.text(max_size=5),
            st.lists(st.dictionaries(st.text(max_size=3), st.text(max_size=3)), max_size=2),
        ),
        min_size=1,
    ),
)
def test_whatever_an_answer_holds_nothing_but_not_answered_leaves(name: str, answer: dict[str, Any]) -> None:
    aws = opened({name: answer})
    with suppress(NotAnswered):
        QUESTIONS_ASKED[name](aws)
    assert name in {call.name for call in aws.calls}


def test_offline_code_does_not_load_boto3() -> None:
    code = (
        "import sys; import hyperpod_cdk.checks.run, hyperpod_cdk.checks.side_by_side, hyperpod_cdk.checks.aws_shapes; "
        "sys.exit(bool({'boto3', 'botocore', 'aws_cdk'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


DENIAL = "User: arn:aws:iam::777788889999:user/JohnDoe is not authorized to perform: ec2:DescribeAvailabilityZones"
NO = f"no permission for {ZONES}"


@row_by_row(
    "because, reason",
    [
        # IAM user guide, "Troubleshoot access denied error messages", one row for each kind of policy and denial
        (f"because no identity-based policy allows the {ZONES} action", f"{NO} (no identity-based policy)"),
        ("with an explicit deny in an identity-based policy", f"{NO} (explicit deny in identity-based policy)"),
        (
            f"because no service control policy allows the {ZONES} action",
            f"{NO} (no service control policy; only the organization's administrators can change it)",
        ),
        (
            # AWS security blog, "Enhanced access denied error messages with policy ARNs"
            "with an explicit deny in a service control policy: arn:aws:organizations::987654321098:policy/o-q/p-2",
            f"{NO} (explicit deny in service control policy; only the organization's administrators can change it)",
        ),
        (
            "with an explicit deny in a resource control policy",
            f"{NO} (explicit deny in resource control policy; only the organization's administrators can change it)",
        ),
        (
            f"because no permissions boundary allows the {ZONES} action",
            (
                f"{NO} (no permissions boundary; another policy for the caller does not help: the boundary must allow"
                " it too)"
            ),
        ),
        (
            f"because no VPC endpoint policy allows the {ZONES} action",
            f"{NO} (no VPC endpoint policy; it belongs to the VPC endpoint that the call goes through)",
        ),
        (
            "with an explicit deny in a VPC endpoint policy",
            f"{NO} (explicit deny in VPC endpoint policy; it belongs to the VPC endpoint that the call goes through)",
        ),
        (
            f"because no session policy allows the {ZONES} action",
            (
                f"{NO} (no session policy; it came with the session: assume the role without it, or with one that"
                " allows it)"
            ),
        ),
        (
            "with an explicit deny in a resource-based policy",
            (
                f"{NO} (explicit deny in resource-based policy; it belongs to the queried resource, whose owner can"
                " change it)"
            ),
        ),
    ],
)
def test_who_has_to_change_what_denies(because: str, reason: str) -> None:
    sentence = f"{DENIAL} on resource: * {because}"
    aws = opened({ZONES: Fails("AccessDenied", sentence, 403)})
    with pytest.raises(NotAnswered) as caught:
        aws.zones()
    assert (caught.value.reason, caught.value.action, caught.value.said) == (reason, ZONES, sentence)


@pytest.mark.parametrize(
    ("code", "message", "reason"),
    [
        (
            "InvalidSignatureException",
            "Signature expired: 20180920T174101Z is now earlier than 20180920T174504Z (20180920T175004Z - 5 min",
            "the clock of this machine is wrong, so AWS does not accept its signatures; set it with NTP",
        ),
        (
            "RequestExpired",
            "Request has expired",
            "the credentials expired during the run; renew them and run it again",
        ),
        (
            "OptInRequired",
            "You are not subscribed to this service",
            f"{ZONES} is not enabled in the account (OptInRequired); enable the region or the service",
        ),
        (
            "AuthFailure",
            "AWS was not able to validate the provided access credentials",
            f"AWS does not accept the credentials for {ZONES} (AuthFailure); is the region enabled in the account?",
        ),
    ],
)
def test_awss_own_sentence_is_kept(code: str, message: str, reason: str) -> None:
    aws = opened({ZONES: Fails(code, message, 403)})
    with pytest.raises(NotAnswered) as caught:
        aws.zones()
    assert (caught.value.reason, caught.value.said) == (reason, message)
