"""The instance types that SageMaker's own model names for clusters."""

from __future__ import annotations

from functools import cache

import botocore.session


@cache
def cluster_types() -> tuple[str, ...]:
    """Return the members of ``ClusterInstanceType``, as botocore ships it."""
    shape = botocore.session.get_session().get_service_model("sagemaker").shape_for("ClusterInstanceType")
    # the stubs know texts without their values
    return tuple(getattr(shape, "enum", ()))
