"""Servers on loopback that speak HTTPS, as what they stand for does: one certificate, made for this run."""

from __future__ import annotations

import ipaddress
import ssl
import tempfile
import threading
from datetime import UTC, datetime, timedelta
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

DAYS_VALID = 2


def serve(handler: type[BaseHTTPRequestHandler], *, name: str) -> ThreadingHTTPServer:
    """Listen on a port of loopback from now on, in a thread of this name."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        # the standard library reads a key from a file only
        file.write("".join(certificate()))
        file.flush()
        tls.load_cert_chain(Path(file.name))
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, name=name, daemon=True).start()
    return server


@cache
def certificate() -> tuple[str, str]:
    """Make a certificate for loopback that signs itself, and its key; both as PEM."""
    # comes with moto; only an account with such a server needs it
    from cryptography import x509  # noqa: PLC0415
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "embedded AWS")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=DAYS_VALID))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return made.public_bytes(serialization.Encoding.PEM).decode(), secret.decode()
