"""An embedded CloudFormation on resources in a dictionary: every handler call is seen and can be made to fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rehearsal.tests.support.fake_cloudformation import Cloud


@pytest.fixture
def cloud() -> Cloud:
    return Cloud()


@pytest.fixture
def parameter() -> Callable[..., dict[str, Any]]:
    """An AWS::SSM::Parameter: `Name` is create-only, `Value` is not."""

    def make(value: Any, **properties: Any) -> dict[str, Any]:
        return {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": value, **properties}}

    return make
