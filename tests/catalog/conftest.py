"""The data of the installed packages about AWS, for comparison with the catalog."""

from __future__ import annotations

import gzip
import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import botocore
import pytest

from hyperpod_cdk.catalog import _data
from tests.support.schemas import resource_schema

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def sagemaker_shapes() -> dict[str, Any]:
    """Shapes of botocore's SageMaker model."""
    path = Path(botocore.__file__).parent / "data" / "sagemaker" / "2017-07-24" / "service-2.json.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        shapes: dict[str, Any] = json.load(file)["shapes"]
    return shapes


@pytest.fixture(scope="session")
def registry_schema() -> Callable[[str], dict[str, Any]]:
    """CloudFormation schema of a type, as cfn-lint ships it for us-east-1."""
    return resource_schema


@pytest.fixture(scope="session")
def refresh_catalog() -> ModuleType:
    """The module scripts/refresh_catalog.py."""
    spec = importlib.util.spec_from_file_location("refresh_catalog", ROOT / "scripts" / "refresh_catalog.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(params=sorted(path.stem for path in _data.DIRECTORY.iterdir()))
def document(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Each data file in turn."""
    return _data.load(request.param)
