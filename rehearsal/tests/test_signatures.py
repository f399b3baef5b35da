"""Only calls with its own keys to its own address may use the embedded AWS."""

from __future__ import annotations

import base64
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from botocore.auth import S3SigV4Auth, S3SigV4QueryAuth, SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from hyperpod_cdk_rehearsal.embedded.access_keys import CALLER, FUNCTION, INTERNAL, AccessKey
from hyperpod_cdk_rehearsal.embedded.kubernetes_api import _is_known
from hyperpod_cdk_rehearsal.embedded.signatures import RefusedSignatureError, SignedRequest, signer_of
from rehearsal.tests.support.embedded import REGION, Embedded, embedded

STRANGER = AccessKey.random("STRANGER")
UNKNOWN = "The security token included in the request is invalid."
WRONG = "The request signature we calculated does not match the signature you provided."
MISSING = "Request is missing Authentication Token"


@pytest.fixture(scope="module")
def there() -> Iterator[Embedded]:
    with embedded({}) as aws:
        yield aws


def client(there: Embedded, service: str, key_id: str, secret: str, token: str | None = None) -> Any:
    make: Any = boto3.client
    return make(
        service,
        region_name=REGION,
        endpoint_url=there.address.endpoint,
        aws_access_key_id=key_id,
        aws_secret_access_key=secret,
        aws_session_token=token,
        config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
    )


def refusal(call: Callable[[], Any]) -> tuple[str, str, int]:
    with pytest.raises(ClientError) as caught:
        call()
    answer: Any = caught.value.response
    return answer["Error"]["Code"], answer["Error"]["Message"], answer["ResponseMetadata"]["HTTPStatusCode"]


def fetched(url: str, headers: dict[str, str] | None = None, *, data: bytes | None = None) -> tuple[int, str]:
    request = urllib.request.Request(url, data=data, headers=headers or {})  # noqa: S310 - loopback
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - as above
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


class TestCalls:
    @pytest.mark.parametrize(
        ("service", "call", "unknown", "wrong"),
        [
            ("sts", "get_caller_identity", ("InvalidClientTokenId", 403), ("SignatureDoesNotMatch", 403)),
            ("cloudformation", "list_stacks", ("InvalidClientTokenId", 403), ("SignatureDoesNotMatch", 403)),
            ("sagemaker", "list_clusters", ("UnrecognizedClientException", 403), ("InvalidSignatureException", 403)),
            ("eks", "list_clusters", ("UnrecognizedClientException", 403), ("InvalidSignatureException", 403)),
            ("lambda", "list_functions", ("UnrecognizedClientException", 403), ("InvalidSignatureException", 403)),
            ("ec2", "describe_vpcs", ("AuthFailure", 401), ("AuthFailure", 401)),
            ("s3", "list_buckets", ("InvalidAccessKeyId", 403), ("SignatureDoesNotMatch", 403)),
        ],
    )
    def test_another_key_or_secret_is_refused_as_the_service_does(
        self, there: Embedded, service: str, call: str, unknown: tuple[str, int], wrong: tuple[str, int]
    ) -> None:
        stranger = getattr(client(there, service, STRANGER.key_id, STRANGER.secret), call)
        assert refusal(stranger) == (unknown[0], UNKNOWN, unknown[1])
        liar = getattr(client(there, service, there.address.access_key_id, STRANGER.secret), call)
        assert refusal(liar) == (wrong[0], WRONG, wrong[1])
        getattr(there.client(service), call)()

    @pytest.mark.parametrize("key_id", ["testing", "rehearsal", "embedded-aws", "AKIAEXAMPLE"])
    def test_no_key_is_known_beforehand(self, there: Embedded, key_id: str) -> None:
        assert refusal(client(there, "sts", key_id, key_id).get_caller_identity)[0] == "InvalidClientTokenId"

    def test_no_signature_at_all(self, there: Embedded) -> None:
        status, text = fetched(f"{there.address.endpoint}/", data=b"Action=GetCallerIdentity&Version=2011-06-15")
        assert (status, MISSING in text) == (403, True)

    def test_head_is_refused_without_a_body(self, there: Embedded) -> None:
        stranger = client(there, "s3", STRANGER.key_id, STRANGER.secret)
        for _ in range(2):
            assert refusal(lambda: stranger.head_bucket(Bucket="nothing"))[2] == 403

    def test_what_a_stranger_calls_is_not_counted(self, there: Embedded) -> None:
        before = there.calls()["total"]
        refusal(client(there, "sts", STRANGER.key_id, STRANGER.secret).get_caller_identity)
        assert there.calls()["total"] == before

    def test_an_assumed_role_signs_with_its_token_and_not_without(self, there: Embedded) -> None:
        role = "arn:aws:iam::111122223333:role/somebody"
        given = there.client("sts").assume_role(RoleArn=role, RoleSessionName="me")["Credentials"]
        keys = given["AccessKeyId"], given["SecretAccessKey"]
        assumed = client(there, "sts", *keys, given["SessionToken"]).get_caller_identity()
        assert assumed["Arn"] == "arn:aws:sts::111122223333:assumed-role/somebody/me"
        assert refusal(client(there, "sts", *keys).get_caller_identity)[1] == UNKNOWN
        assert refusal(client(there, "sts", *keys, "another").get_caller_identity)[1] == UNKNOWN

    def test_a_key_of_a_user_that_was_made_here(self, there: Embedded) -> None:
        there.client("iam").create_user(UserName="ci")
        made = there.client("iam").create_access_key(UserName="ci")["AccessKey"]
        identity = client(there, "sts", made["AccessKeyId"], made["SecretAccessKey"]).get_caller_identity()
        assert identity["Arn"] == "arn:aws:iam::111122223333:user/ci"

    def test_keys_and_paths_with_every_letter(self, there: Embedded) -> None:
        s3, key = there.client("s3"), "a b+c%2Fd/ü~(1)*'!/=&?.txt"
        s3.create_bucket(Bucket="letters")
        s3.put_object(Bucket="letters", Key=key, Body=b"hello", Metadata={"note": "two  blanks"})
        assert s3.get_object(Bucket="letters", Key=key)["Body"].read() == b"hello"
        assert [each["Key"] for each in s3.list_objects_v2(Bucket="letters", Prefix="a b+c")["Contents"]] == [key]
        url = there.client("s3", signature_version="s3v4").generate_presigned_url(
            "get_object", Params={"Bucket": "letters", "Key": key}
        )
        assert fetched(url) == (200, "hello")
        status, text = fetched(url.replace("letters", "letterz"))
        assert (status, WRONG in text) == (403, True)

    def test_a_role_path_is_encoded_twice(self, there: Embedded) -> None:
        arn = "arn:aws:eks:us-east-1:111122223333:cluster/none such"
        code = refusal(lambda: there.client("eks").list_tags_for_resource(resourceArn=arn))[0]
        assert code not in {"InvalidSignatureException", "UnrecognizedClientException"}


class TestAddress:
    @pytest.mark.parametrize(
        "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "169.254.1.1:{port}"]
    )
    @pytest.mark.parametrize("path", ["/", "/_rehearsal/state"])
    def test_a_foreign_host_is_refused(self, there: Embedded, host: str, path: str) -> None:
        port = there.address.endpoint.rpartition(":")[2]
        headers = {"Host": host.format(port=port), "X-Rehearsal-Token": there.address.control_token}
        status, text = fetched(f"{there.address.endpoint}{path}", headers)
        assert (status, text) == (421, "this address is not served here\n")

    def test_localhost_is_the_same(self, there: Embedded) -> None:
        url = there.address.endpoint.replace("127.0.0.1", "localhost")
        headers = {"Host": url.removeprefix("http://"), "X-Rehearsal-Token": there.address.control_token}
        assert fetched(f"{there.address.endpoint}/_rehearsal/state", headers)[0] == 200

    @pytest.mark.parametrize(
        ("path", "data", "token", "expected"),
        [
            ("state", None, "", (403, "X-Rehearsal-Token is missing or wrong\n")),
            ("state", None, "guess", (403, "X-Rehearsal-Token is missing or wrong\n")),
            ("account", b"{}", "", (403, "X-Rehearsal-Token is missing or wrong\n")),
            ("account", None, "right", (404, "there is no such control endpoint\n")),
            ("elsewhere", None, "right", (404, "there is no such control endpoint\n")),
        ],
    )
    def test_the_control_endpoints_want_their_token(
        self, there: Embedded, path: str, data: bytes | None, token: str, expected: tuple[int, str]
    ) -> None:
        given = there.address.control_token if token == "right" else token
        headers = {"X-Rehearsal-Token": given} if given else {}
        assert fetched(f"{there.address.endpoint}/_rehearsal/{path}", headers, data=data) == expected


def signed(key: AccessKey, service: str = "sagemaker", **changes: Any) -> SignedRequest:
    """A request that botocore signed, changed afterwards."""
    is_s3, in_query = service == "s3", changes.pop("in_query", False)
    body = changes.pop("sent", b'{"a": 1}')
    target = changes.pop("target", "/clusters/a%20b/x?b=2&a=1%2B1")
    request = AWSRequest("POST", f"http://127.0.0.1:1{target}", headers={"Host": "127.0.0.1:1"}, data=body)
    credentials = Credentials(key.key_id, key.secret, key.session_token)
    kinds: dict[tuple[bool, bool], Any] = {
        (False, False): SigV4Auth,
        (False, True): SigV4QueryAuth,
        (True, False): S3SigV4Auth,
        (True, True): S3SigV4QueryAuth,
    }
    kinds[is_s3, in_query](credentials, service, "us-east-1").add_auth(request)
    headers = {name.lower(): str(value) for name, value in request.headers.items()} | changes.pop("headers", {})
    path = str(request.url).removeprefix("http://127.0.0.1:1")
    return SignedRequest(**{"method": "POST", "target": path, "headers": headers, "body": body, **changes})


class TestSignatures:
    @pytest.mark.parametrize("key", [CALLER, INTERNAL, FUNCTION], ids=["caller", "internal", "function"])
    @pytest.mark.parametrize("service", ["sagemaker", "eks", "s3"])
    @pytest.mark.parametrize("in_query", [False, True])
    def test_what_botocore_signs_is_known(self, key: AccessKey, service: str, *, in_query: bool) -> None:
        sent = b"" if in_query else b'{"a": 1}'
        assert signer_of(signed(key, service, in_query=in_query, sent=sent)) == key

    @pytest.mark.parametrize(
        "changes",
        [
            {"method": "GET"},
            {"target": "/clusters/a%20b/y?b=2&a=1%2B1", "path": True},
            {"body": b'{"a": 2}'},
            {"headers": {"host": "127.0.0.1:2"}},
            {"headers": {"x-amz-date": "20260101T000000Z"}},
        ],
        ids=["method", "path", "body", "host", "date"],
    )
    def test_what_was_changed_after_is_refused(self, changes: dict[str, Any]) -> None:
        request = signed(CALLER)
        is_path = changes.pop("path", False)
        altered = {
            "method": changes.get("method", request.method),
            "target": changes["target"] if is_path else request.target,
            "headers": {**request.headers, **changes.get("headers", {})},
            "body": changes.get("body", request.body),
        }
        with pytest.raises(RefusedSignatureError) as caught:
            signer_of(SignedRequest(**altered))
        assert str(caught.value) == WRONG

    def test_a_signature_without_the_host_is_invalid(self) -> None:
        request = signed(CALLER)
        headers = {**request.headers, "authorization": request.headers["authorization"].replace("host;", "")}
        with pytest.raises(RefusedSignatureError, match=MISSING):
            signer_of(SignedRequest(request.method, request.target, headers, request.body))

    def test_keys_differ_and_are_not_shown(self) -> None:
        one, other = AccessKey.random("REHEARSAL"), AccessKey.random("REHEARSAL")
        assert len({one.key_id, other.key_id, one.secret, other.secret}) == 4
        assert (len(one.key_id), one.key_id.isalnum(), one.secret in repr(one)) == (20, True, False)


class TestKubernetesTokens:
    @staticmethod
    def token(key: AccessKey, cluster: str, action: str = "GetCallerIdentity") -> str:
        url = f"https://sts.us-east-1.amazonaws.com/?Action={action}&Version=2011-06-15"
        request = AWSRequest("GET", url, headers={"x-k8s-aws-id": cluster})
        SigV4QueryAuth(Credentials(key.key_id, key.secret), "sts", "us-east-1", expires=60).add_auth(request)
        return "Bearer k8s-aws-v1." + base64.urlsafe_b64encode(str(request.url).encode()).decode().rstrip("=")

    def test_the_run_s_own_key_is_known_for_the_cluster_it_names(self) -> None:
        assert _is_known(self.token(CALLER, "prod-eks"), "prod-eks")

    @pytest.mark.parametrize(
        "token",
        [
            "",
            "Bearer k8s-aws-v1.",
            "Bearer k8s-aws-v1.abc",
            "Bearer k8s-aws-v1." + base64.urlsafe_b64encode(b"https://sts/?Action=GetCallerIdentity").decode(),
            "Bearer k8s-aws-v1.\u00fc",
        ],
    )
    def test_what_is_no_token(self, token: str) -> None:
        assert not _is_known(token, "prod-eks")

    def test_another_key_another_cluster_another_call(self) -> None:
        assert not _is_known(self.token(STRANGER, "prod-eks"), "prod-eks")
        assert not _is_known(self.token(CALLER, "dev-eks"), "prod-eks")
        assert not _is_known(self.token(CALLER, "prod-eks", "GetSessionToken"), "prod-eks")
        assert not _is_known(self.token(CALLER, "prod-eks").removeprefix("Bearer "), "prod-eks")
