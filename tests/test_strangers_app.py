"""An app of others with every public construct passes type checks and synthesizes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import hyperpod_cdk
from tests import strangers_app
from tests.support.templates import app, of_type, template_of


def test_every_public_name_is_used() -> None:
    text = Path(strangers_app.__file__).read_text("utf-8")
    assert set(re.findall(r"\bhp\.(\w+)", text)) == set(hyperpod_cdk.__all__)


@pytest.mark.examples
def test_it_synthesizes() -> None:
    theirs, nova = strangers_app.build(app())
    (cluster,) = of_type(template_of(theirs), "AWS::SageMaker::Cluster").values()
    assert [group["InstanceGroupName"] for group in cluster["Properties"]["InstanceGroups"]] == ["burst", "system"]
    (restricted,) = of_type(template_of(nova), "AWS::SageMaker::Cluster").values()
    assert [group["InstanceGroupName"] for group in restricted["Properties"]["RestrictedInstanceGroups"]] == ["nova"]
