"""The nodes for which a deployment waits before it installs add-ons."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hyperpod_cdk.config import LoadedEnvironment
from hyperpod_cdk.config.awaited_nodes import addon_groups

FILE = """\
name: prod
account: "111122223333"
region: us-east-1
network: {{availability_zones: {{use1-az5: , use1-az4: }}}}
eks: {{oidc_provider: true}}
hyperpod:
  instance_groups:
    - {{name: a, instance_type: {a}, count: 1, availability_zone_id: use1-az4}}
    - {{name: b, instance_type: {b}, count: 1, availability_zone_id: use1-az4}}
operators: {{inference: {{enabled: {inference}}}}}
"""


@pytest.mark.parametrize(
    ("a", "b", "inference", "awaited"),
    [
        ("ml.m7g.4xlarge", "ml.m5.4xlarge", "false", "ab"),
        # the images of the inference operator are for amd64, and none of its pods starts elsewhere
        ("ml.m7g.4xlarge", "ml.m5.4xlarge", "true", "b"),
        ("ml.m5.4xlarge", "ml.m5.2xlarge", "true", "a"),
        # no node has both, and a deployment waits for any
        ("ml.m7g.4xlarge", "ml.m5.2xlarge", "true", "ab"),
        ("ml.m7g.4xlarge", "ml.c7g.4xlarge", "true", "ab"),
    ],
)
def test_groups_that_run_every_operator_are_awaited(
    load: Callable[[str], LoadedEnvironment], *, a: str, b: str, inference: str, awaited: str
) -> None:
    loaded = load(FILE.format(a=a, b=b, inference=inference))
    assert "".join(group.name for group in addon_groups(loaded.environment)) == awaited
