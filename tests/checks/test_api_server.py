"""Calls to a cluster's API server: the token for EKS, TLS with the cluster's authority, clear reasons."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from hyperpod_cdk.checks import api_server
from hyperpod_cdk.checks.answers import EksClusterAnswer, NotAnswered
from hyperpod_cdk.checks.aws import LiveAws
from hyperpod_cdk.handlers.quota_gate.reading import Own
from tests.support.scripted_aws import ACCOUNT, REGION, WHO, Fails, ScriptedSession

GROUPS = {"kind": "APIGroupList", "groups": [{"name": "apps"}, {"name": "kueue.x-k8s.io"}]}
DAEMON_SETS = {
    "kind": "DaemonSetList",
    "items": [
        {
            "metadata": {"name": "aws-node"},
            "spec": {"template": {"spec": {"containers": [{"image": "cni:v1.20.0"}, {"image": "agent:v1.2.6"}]}}},
        }
    ],
}
KUBE_SYSTEM = "/apis/apps/v1/namespaces/kube-system/daemonsets"


@dataclass
class Server:
    """An API server on this machine; ``answers`` has status and body by path."""

    endpoint: str
    authority: str
    answers: dict[str, tuple[int, bytes]]
    asked: list[tuple[str, str]] = field(default_factory=list)

    def cluster(self) -> EksClusterAnswer:
        return EksClusterAnswer(
            name="prod",
            arn="arn",
            status="ACTIVE",
            kubernetes_version="1.35",
            authentication_mode="API",
            vpc_id="vpc-1",
            subnet_ids=(),
            security_group_ids=(),
            cluster_security_group_id="sg-1",
            endpoint=self.endpoint,
            endpoint_public=True,
            endpoint_private=True,
            public_access_cidrs=(),
            certificate_authority=self.authority,
            oidc_issuer="",
        )

    def described(self) -> dict[str, Any]:
        return {
            "cluster": {
                "name": "prod",
                "arn": "arn",
                "status": "ACTIVE",
                "version": "1.35",
                "endpoint": self.endpoint,
                "certificateAuthority": {"data": self.authority},
                "resourcesVpcConfig": {
                    "subnetIds": [],
                    "vpcId": "vpc-1",
                    "endpointPublicAccess": True,
                    "endpointPrivateAccess": True,
                },
            }
        }


def certificate(folder: Path) -> tuple[Path, str]:
    """Create an authority like EKS's, without key identifiers, and a file with a key and a signed certificate."""
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
    authority_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes")])
    now = datetime.now(UTC)

    def build(subject: x509.Name, key: ec.EllipticCurvePrivateKey, extension: x509.ExtensionType) -> x509.Certificate:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(authority_name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(extension, critical=False)
            .sign(keys[0], hashes.SHA256())
        )

    authority = build(authority_name, keys[0], x509.BasicConstraints(ca=True, path_length=None))
    server_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")])
    server = build(server_name, keys[1], x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]))
    pem = serialization.Encoding.PEM
    private = keys[1].private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file = folder / "server.pem"
    file.write_bytes(private + server.public_bytes(pem))
    return file, base64.b64encode(authority.public_bytes(pem)).decode()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """An API server that answers to anybody."""
    file, authority = certificate(tmp_path)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.asked.append((self.path, self.headers["Authorization"]))
            status, body = served.answers[self.path]
            self.send_response(status)
            if status == 302:
                self.send_header("Location", f"{served.endpoint}/elsewhere")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's signature
            """Keep the test's output clean."""

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    listening.socket = context.wrap_socket(listening.socket, server_side=True)
    served = Server(
        endpoint=f"https://127.0.0.1:{listening.server_port}",
        authority=authority,
        answers={
            "/apis": (200, json.dumps(GROUPS).encode()),
            KUBE_SYSTEM: (200, json.dumps(DAEMON_SETS).encode()),
        },
    )
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield served
    listening.shutdown()
    thread.join()
    listening.server_close()


def opened(described: Any) -> LiveAws:
    session = ScriptedSession({"sts:GetCallerIdentity": WHO, "eks:DescribeCluster": described}).session()
    return LiveAws.open(region=REGION, account=ACCOUNT, own=Own(), session=session)


def reason(ask: Callable[[], object]) -> str:
    with pytest.raises(NotAnswered) as caught:
        ask()
    assert caught.value.action == ""
    return caught.value.reason


def test_groups_and_daemon_sets_are_read(server: Server) -> None:
    aws = opened(server.described())
    assert aws.kubernetes_api_groups("prod") == {"apps", "kueue.x-k8s.io"}
    assert aws.kubernetes_daemon_sets("prod", "kube-system") == {"aws-node": ("cni:v1.20.0", "agent:v1.2.6")}
    aws.kubernetes_api_groups("prod")
    assert [call.name for call in aws.calls] == [
        "sts:GetCallerIdentity",
        "eks:DescribeCluster",
        "kubernetes:GET /apis",
        f"kubernetes:GET {KUBE_SYSTEM}",
    ]
    assert [path for path, _ in server.asked] == ["/apis", KUBE_SYSTEM]


def test_the_token_is_a_presigned_request_for_this_cluster(server: Server) -> None:
    opened(server.described()).kubernetes_api_groups("prod")
    ((_, authorization),) = server.asked
    scheme, _, token = authorization.partition(" ")
    version, _, encoded = token.partition("k8s-aws-v1.")
    assert (scheme, version) == ("Bearer", "")
    assert "=" not in encoded
    url = urlsplit(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode())
    assert f"{url.scheme}://{url.netloc}{url.path}" == "https://sts.us-east-1.amazonaws.com/"
    query = {name: values[0] for name, values in parse_qs(url.query).items()}
    assert (query["Action"], query["Version"], query["X-Amz-Expires"]) == ("GetCallerIdentity", "2011-06-15", "60")
    assert query["X-Amz-SignedHeaders"] == "host;x-k8s-aws-id"
    assert query["X-Amz-Credential"].split("/")[0] == "AKIAEXAMPLE"
    assert query["X-Amz-Credential"].split("/", 2)[2] == "us-east-1/sts/aws4_request"


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, b"{}", "the API server of EKS cluster prod does not recognize the caller; it needs an access entry"),
        (
            403,
            b"{}",
            (
                "the API server of EKS cluster prod does not allow the caller to read /apis; its access entry needs a"
                " policy such as AmazonEKSViewPolicy"
            ),
        ),
        (302, b"", "the API server of EKS cluster prod answered HTTP 302"),
        (503, b"", "the API server of EKS cluster prod answered HTTP 503"),
        (200, b"<html>", "the API server of EKS cluster prod answered something that cannot be read"),
        (200, b"[]", "the API server of EKS cluster prod answered something that cannot be read"),
        (200, b"[" * 100_000, "the API server of EKS cluster prod answered something that cannot be read"),
        (200, b'{"groups": [{}]}', "the answer to GET /apis of prod cannot be read: 'name' is missing"),
    ],
    ids=["unknown", "forbidden", "redirect", "down", "page", "list", "nest", "members"],
)
def test_what_is_no_answer_is_reported(status: int, body: bytes, said: str, server: Server) -> None:
    server.answers["/apis"] = (status, body)
    aws = opened(server.described())
    assert reason(lambda: aws.kubernetes_api_groups("prod")) == said
    assert len(server.asked) == 1


def test_another_authority_is_not_trusted(server: Server, tmp_path: Path) -> None:
    _, other = certificate(tmp_path)
    said = reason(lambda: api_server.read(replace(server.cluster(), certificate_authority=other), "/apis", "token"))
    assert said.startswith("the API server of EKS cluster prod is not reachable from here: TLS failed: ")
    assert server.asked == []


@pytest.mark.parametrize("authority", ["", "%%%", base64.b64encode(b"no certificate").decode()])
def test_without_an_authority_nothing_is_trusted(authority: str, server: Server) -> None:
    cluster = replace(server.cluster(), certificate_authority=authority)
    said = reason(lambda: api_server.read(cluster, "/apis", "token"))
    assert said.startswith("the API server of EKS cluster prod is not reachable from here: ")
    assert server.asked == []


@pytest.mark.parametrize(
    ("public", "cause"),
    [(True, "no answer; check that its endpoint allows this address"), (False, "its endpoint is private")],
)
def test_a_server_that_does_not_answer(public: bool, cause: str, server: Server) -> None:  # noqa: FBT001 - a case
    cluster = replace(server.cluster(), endpoint="https://127.0.0.1:1", endpoint_public=public)
    assert reason(lambda: api_server.read(cluster, "/apis", "token")) == (
        f"the API server of EKS cluster prod is not reachable from here: {cause}"
    )


def test_a_proxy_of_the_environment_is_used(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:1")
    assert reason(lambda: api_server.read(server.cluster(), "/apis", "token")).endswith(
        "check that its endpoint allows this address"
    )
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert api_server.read(server.cluster(), "/apis", "token") == GROUPS


@pytest.mark.parametrize("endpoint", ["", "http://127.0.0.1:1"])
def test_a_cluster_without_an_endpoint(endpoint: str, server: Server) -> None:
    cluster = replace(server.cluster(), endpoint=endpoint, status="CREATING")
    assert reason(lambda: api_server.read(cluster, "/apis", "token")) == (
        "the API server of EKS cluster prod has no HTTPS endpoint yet; the cluster is CREATING"
    )


def test_a_cluster_that_is_not_there() -> None:
    aws = opened(Fails("ResourceNotFoundException", "No cluster found", 404))
    assert reason(lambda: aws.kubernetes_api_groups("prod")) == "there is no EKS cluster prod"


@pytest.mark.parametrize(
    ("namespace", "path"),
    [
        ("kube-system", KUBE_SYSTEM),
        ("../../secrets", "/apis/apps/v1/namespaces/..%2F..%2Fsecrets/daemonsets"),
    ],
)
def test_a_namespace_stays_a_namespace(namespace: str, path: str) -> None:
    assert api_server.daemon_sets_path(namespace) == path
