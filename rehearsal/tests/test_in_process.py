"""Requests that the embedded AWS hands to itself: what its application sees, and what the client gets."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.compat import HTTPHeaders
from botocore.exceptions import ClientError

from hyperpod_cdk_rehearsal.embedded.context import Context, call_listener
from hyperpod_cdk_rehearsal.embedded.in_process import Environ, answered

ENDPOINT = "http://127.0.0.1:5000"


class Application:
    """Answers every request with one response and keeps what it saw."""

    def __init__(self, status: str = "200 OK", body: bytes = b"{}") -> None:
        self.status, self.body = status, body
        self.seen: list[Environ] = []
        self.listeners: list[object] = []

    def __call__(self, environ: Environ, start_response: Any) -> Iterable[bytes]:
        self.seen.append({**environ, "body": environ["wsgi.input"].read()})
        self.listeners.append(call_listener.get())
        start_response(self.status, [("Content-Type", "application/json"), ("Content-Length", str(len(self.body)))])
        return [self.body[:1], self.body[1:]]


def request(method: str = "GET", path: str = "/", body: Any = None, **headers: str) -> AWSPreparedRequest:
    """Return a request as botocore is about to send it."""
    named = HTTPHeaders.from_dict({name.replace("_", "-"): value for name, value in headers.items()})
    return AWSPreparedRequest(method, f"{ENDPOINT}{path}", named, body, stream_output=False)


def test_the_application_sees_what_a_server_would_give_it() -> None:
    application = Application()
    answered(application, request("PUT", "/a%20b/%C3%A4?x=1&y=%2F", b"told", Content_Type="text/plain", X_Amz_Date="d"))
    (seen,) = application.seen
    assert {key: seen[key] for key in ("REQUEST_METHOD", "QUERY_STRING", "HTTP_HOST", "SERVER_PORT", "body")} == {
        "REQUEST_METHOD": "PUT",
        "QUERY_STRING": "x=1&y=%2F",
        "HTTP_HOST": "127.0.0.1:5000",
        "SERVER_PORT": "5000",
        "body": b"told",
    }
    # PEP 3333: a character for each byte of the decoded path; S3 keys are matched against the path as it was sent
    assert seen["PATH_INFO"] == "/a b/\u00c3\u00a4"
    assert seen["RAW_URI"] == seen["REQUEST_URI"] == "/a%20b/%C3%A4?x=1&y=%2F"
    assert (seen["CONTENT_TYPE"], seen["HTTP_X_AMZ_DATE"], seen["CONTENT_LENGTH"]) == ("text/plain", "d", "4")


@pytest.mark.parametrize(
    ("body", "whole"),
    [(None, b""), (b"a", b"a"), (bytearray(b"a"), b"a"), ("\u00e4", b"\xc3\xa4"), (io.BytesIO(b"ab"), b"ab")],
)
def test_a_body_comes_whole_however_it_is_given(body: Any, whole: bytes) -> None:
    application = Application()
    answered(application, request("PUT", body=body, Transfer_Encoding="chunked"))
    (seen,) = application.seen
    assert (seen["body"], seen["CONTENT_LENGTH"]) == (whole, str(len(whole)))
    assert "HTTP_TRANSFER_ENCODING" not in seen


@pytest.mark.parametrize(("method", "content"), [("GET", b"told"), ("HEAD", b"")])
def test_the_client_gets_status_headers_and_body(method: str, content: bytes) -> None:
    response = answered(Application("404 Error", b"told"), request(method))
    assert (response.status_code, response.headers["content-length"], response.content) == (404, "4", content)


def test_who_listens_to_the_calls_of_one_request_does_not_hear_those_of_the_request_inside() -> None:
    application = Application()
    token = call_listener.set(lambda _params, _model: None)
    try:
        answered(application, request())
    finally:
        call_listener.reset(token)
    assert application.listeners == [None]


def test_clients_of_a_context_ask_its_answer_and_open_no_connection() -> None:
    application = Application(body=b'{"clusters": ["a"]}')

    def answer(asked: AWSPreparedRequest) -> AWSResponse:
        return answered(application, asked)

    # nothing listens at this port
    context = Context("111122223333", "eu-west-1", "aws", "amazonaws.com", "http://127.0.0.1:9", answer=answer)
    assert context.client("eks").list_clusters()["clusters"] == ["a"]
    (seen,) = application.seen
    # the region and the service are read from the signature
    assert "/eu-west-1/eks/aws4_request" in seen["HTTP_AUTHORIZATION"]

    application.status, application.body = "404 Error", b'{"__type": "ResourceNotFoundException", "message": "gone"}'
    with pytest.raises(ClientError, match="gone"):
        context.client("eks").describe_cluster(name="a")
