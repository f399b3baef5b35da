"""Runs the code of Lambda functions for real, in a subprocess of this machine: no Docker, no root, loopback only."""

from __future__ import annotations

from hyperpod_cdk_rehearsal.embedded.lambda_runner.code import FunctionCode, NotExecutableError, function_code
from hyperpod_cdk_rehearsal.embedded.lambda_runner.responses import ResponseUrl
from hyperpod_cdk_rehearsal.embedded.lambda_runner.runner import Invocation, invoke, set_log_group

__all__ = [
    "FunctionCode",
    "Invocation",
    "NotExecutableError",
    "ResponseUrl",
    "function_code",
    "invoke",
    "set_log_group",
]
