"""Detection of secrets; the samples are assembled here so that no scanner reports them."""

from __future__ import annotations

from hyperpod_cdk.checks.secrets import FORMS, secrets
from tests.support.tables import row_by_row

LETTERS = "AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGhIjKlMn"


@row_by_row(
    "text, kind",
    [
        ("AK" + "IA" + "Q" * 16, "an AWS access key ID"),
        ("export AWS_ACCESS_KEY_ID=" + "AS" + "IA" + "7" * 16, "an AWS access key ID"),
        ("AWS_SECRET_" + "ACCESS_KEY='" + "a1/+" * 10 + "'", "an AWS secret access key"),
        ("aws_secret_access_" + "key: " + "b" * 40, "an AWS secret access key"),
        ("-----BEGIN " + "PRIVATE KEY-----", "a private key"),
        ("-----BEGIN OPENSSH " + "PRIVATE KEY-----", "a private key"),
        ("-----BEGIN PGP " + "PRIVATE KEY BLOCK-----", "a private key"),
        ("gh" + "p_" + LETTERS[:36], "a GitHub token"),
        ("github_" + "pat_" + LETTERS[:22] + "_" + LETTERS[:59], "a GitHub token"),
        ("HF_TOKEN=" + "hf" + "_" + LETTERS[:34], "a Hugging Face token"),
        ("xo" + "xb-1234567890-abc", "a Slack token"),
        (
            "https://hooks." + "slack.com/services/T" + LETTERS[:8] + "/B" + LETTERS[:8] + "/" + LETTERS[:24],
            "a Slack webhook",
        ),
        ("nv" + "api-" + LETTERS + "0123", "an NVIDIA NGC key"),
    ],
)
def test_secrets_are_reported_by_line_and_kind(text: str, kind: str) -> None:
    assert list(secrets(f"#!/bin/bash\n\nx={text}; y={text}\n")) == [(3, kind)]


@row_by_row(
    "text",
    [
        "AKIAIOSFODNN7EXAMPLE",
        "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "AWS_SECRET_ACCESS_KEY=$SECRET",
        "AK" + "IA" + "Q" * 17,
        "-----BEGIN PUBLIC KEY-----",
        "-----BEGIN CERTIFICATE-----",
        "ghp_short",
        "hf_transfer and hf_hub_download",
        "xoxo-kisses-and-hugs",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI",
    ],
)
def test_what_is_none_is_left_alone(text: str) -> None:
    assert list(secrets(text)) == []


def test_every_form_names_its_source() -> None:
    assert [form.kind for form in FORMS if len(form.source.split()) < 3] == []
