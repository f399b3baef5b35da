"""Deployable stacks: composition of constructs only, no resource of their own. An app calls ``synthesize``."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import NoReturn

__all__ = ["synthesize"]

_BESIDE_NODE = ("hyperpod_cdk.config.extensions", "hyperpod_cdk.config.rules", "hyperpod_cdk_stacks.environment")
"""What is imported while Node.js starts; importing them calls nothing of it (tests/stacks/test_warm_up.py)."""
_SWITCH_SECONDS = 0.0005
"""A tenth of Python's own, by which each of the first answers of Node.js could wait 5 ms."""


def synthesize(project: Path) -> NoReturn:
    """Write the cloud assembly of a project: each file of its ``environments/`` becomes one ``cdk.Stage``.

    The whole of an app.py: ``synthesize(Path(__file__).parent)``. The context ``env`` (``cdk synth -c env=prod``) takes
    a name in environments/ or a file's path and narrows it to one. Ends the process: with 0 where the assembly is
    written, with 1 after every error of every file, with 2 where an extension of
    pyproject.toml raised.

    ``project``: the folder with environments/ and, where the project has its own, lifecycle_scripts/ and charts/.
    """
    # a process this short only loses time by looking for garbage
    gc.disable()
    # the thread that imports hands over sooner, once Node.js has answered the other one
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
    # the assembly is written; taking a million objects apart one by one would take a fifth of the whole run again
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _load_rules() -> None:
    """Start Node.js and have it load what cdk-nag's rules ask for, a hundred of CDK's modules, while Python imports.

    Each rule loads the modules of its services when it first looks at a resource: here at one that none speaks of.
    """
    from aws_cdk import CfnResource, Stack  # noqa: PLC0415 - as above
    from cdk_nag import AwsSolutionsChecks  # noqa: PLC0415 - as above
    from constructs import RootConstruct  # noqa: PLC0415 - as above

    stack = Stack(RootConstruct(), "Rules")
    CfnResource(stack, "Resource", type="AWS::CloudFormation::WaitConditionHandle")
    AwsSolutionsChecks().validate_scope(stack)
