"""Templates of other partitions: ARNs, host names and endpoint names are those of the stacks' Region."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import yaml

from hyperpod_cdk.config import Environment
from tests.support.assembly import PROJECT, Synthesized, synthesize_unchecked
from tests.support.templates import of_type

EXAMPLE = PROJECT / "examples/closed-network.yaml"
REGIONS = {
    "cn-north-1": ("aws-cn", "cnn1", "amazonaws.com.cn"),
    "us-gov-west-1": ("aws-us-gov", "usgw1", "amazonaws.com"),
}
# the principal of a service is the same everywhere, and nothing else may name a host by hand
WRITTEN_PRINCIPALS = re.compile(r'"Service":\["[a-z0-9.",-]+"\]')
PRINCIPAL = re.compile(r"^[a-z0-9.-]+\.amazonaws\.com$")


@cache
def _folder(region: str) -> Synthesized:
    partition, prefix, suffix = REGIONS[region]
    text = EXAMPLE.read_text(encoding="utf-8")
    for ours, theirs in (
        ("us-east-1.amazonaws.com", f"{region}.{suffix}"),
        ("us-east-1", region),
        ("arn:aws:", f"arn:{partition}:"),
        ("use1-az5", f"{prefix}-az1"),
        ("use1-az4", f"{prefix}-az2"),
        ("use1-az6", f"{prefix}-az3"),
    ):
        text = text.replace(ours, theirs)
    # a file for these regions is refused, HyperPod being in none of them; the constructs and stacks stand anywhere
    return synthesize_unchecked(Environment.model_validate(yaml.safe_load(text)), project=PROJECT)


@pytest.fixture(params=REGIONS)
def abroad(request: pytest.FixtureRequest) -> Synthesized:
    """The closed example in a region of another partition."""
    return _folder(request.param)


def placed(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every text of a template with the keys that lead to it."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, list):
        for each in value:
            yield from placed(each, path)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from placed(each, (*path, key))


def test_no_arn_names_the_commercial_partition(abroad: Synthesized) -> None:
    texts = [text for template in abroad.templates.values() for _, text in placed(template)]
    assert [text for text in texts if re.search(r"arn:aws[:\"]", text)] == []


def test_no_host_is_of_the_commercial_partition(abroad: Synthesized) -> None:
    suffix = REGIONS[abroad.environment.region][2]
    found = [
        (".".join(path), text)
        for template in abroad.templates.values()
        for path, text in placed(template["Resources"])
        # what KMS calls a service through is no host; how China's KMS writes it is not documented
        if "kms:ViaService" not in path and not (PRINCIPAL.match(text) and _is_service(path))
        if "amazonaws.com" in WRITTEN_PRINCIPALS.sub("", text)
    ]
    assert [(path, text) for path, text in found if suffix not in text] == []


def _is_service(path: tuple[str, ...]) -> bool:
    return path[-1] in {"Service", "Principal"}


def test_endpoints_have_the_names_of_the_partition(abroad: Synthesized) -> None:
    (template,) = [each for name, each in abroad.templates.items() if name.endswith("-foundation")]
    names = {
        "".join(part if isinstance(part, str) else "REGION" for part in row["Properties"]["ServiceName"]["Fn::Join"][1])
        for row in of_type(template, "AWS::EC2::VPCEndpoint").values()
    }
    in_china = {name for name in names if name.startswith("cn.")}
    assert all(re.fullmatch(r"(cn\.)?com\.amazonaws\.REGION\.[a-z0-9.-]+", name) for name in names)
    assert {name.rpartition("REGION.")[2] for name in in_china} == (
        {"ec2", "ecr.api", "ecr.dkr", "eks", "fsx", "lambda", "monitoring", "sagemaker.api", "sts"}
        if abroad.environment.partition == "aws-cn"
        else set()
    )


def test_the_s3_gateway_is_named_alike_everywhere(abroad: Synthesized) -> None:
    (template,) = [each for name, each in abroad.templates.items() if name.endswith("-foundation")]
    gateways = [
        row["Properties"]["ServiceName"]["Fn::Join"][1][0]
        for row in of_type(template, "AWS::EC2::VPCEndpoint").values()
        if row["Properties"]["VpcEndpointType"] == "Gateway"
    ]
    assert gateways == ["com.amazonaws."]
