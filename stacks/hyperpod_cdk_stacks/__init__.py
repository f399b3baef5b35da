"""Deployable stacks, which only compose constructs and define no resources. An app calls ``synthesize``."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import NoReturn

__all__ = ["synthesize"]

_BESIDE_NODE = ("hyperpod_cdk.config.extensions", "hyperpod_cdk.config.rules", "hyperpod_cdk_stacks.environment")
"""Modules that are imported while Node.js starts; the imports do not call Node.js (tests/stacks/test_warm_up.py)."""
_SWITCH_SECONDS = 0.0005
"""A tenth of Python's default, with which each of the first answers of Node.js could wait 5 ms."""


def synthesize(project: Path) -> NoReturn:
    """Write the cloud assembly of a project: each file of its ``environments/`` becomes one ``cdk.Stage``.

    A complete app.py: ``synthesize(Path(__file__).parent)``. The context ``env`` (``cdk synth -c env=prod``) selects an
    environment by its name in environments/ or by the path of its file. Ends the process with exit code 0 if the
    assembly was written, 1 if a file is refused, after printing all errors, and 2 if an extension in pyproject.toml
    raised an exception.

    ``project`` (Path): the folder with environments/ and, if the project has its own, lifecycle_scripts/ and charts/.
    """
    # garbage collection only costs time in such a short process
    gc.disable()
    # the importing thread yields sooner when Node.js has answered the other thread
    sys.setswitchinterval(_SWITCH_SECONDS)
    from hyperpod_cdk.packaged_node import (  # noqa: PLC0415 - see below
        ToolMissingError,
        compiled_modules_kept,
        node,
        use_packaged_node,
    )
    from hyperpod_cdk.templates.engine import warm_up  # noqa: PLC0415 - as below

    use_packaged_node()
    try:
        node()
    except ToolMissingError as error:
        sys.exit(str(error))
    # jsii reads JSII_NODE when aws_cdk is first imported, and starts Node.js
    with compiled_modules_kept():
        warm_up(*_BESIDE_NODE)
        _load_rules()

    from hyperpod_cdk.config.extensions import ExtensionError, activate  # noqa: PLC0415 - as above
    from hyperpod_cdk_stacks import app  # noqa: PLC0415 - as above

    try:
        activate(project)
        app.synthesize(project)
    except ExtensionError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)
    # the assembly is written; deallocating a million objects would take another fifth of the whole run
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _load_rules() -> None:
    """Start Node.js and load the hundred CDK modules that cdk-nag's rules need, while Python imports modules.

    Each rule loads the modules of its services at its first resource, which here is one that no rule applies to.
    """
    from aws_cdk import CfnResource, Stack  # noqa: PLC0415 - as above
    from cdk_nag import AwsSolutionsChecks  # noqa: PLC0415 - as above
    from constructs import RootConstruct  # noqa: PLC0415 - as above

    stack = Stack(RootConstruct(), "Rules")
    CfnResource(stack, "Resource", type="AWS::CloudFormation::WaitConditionHandle")
    AwsSolutionsChecks().validate_scope(stack)
