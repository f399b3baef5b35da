"""Creates a cloud assembly from environment files: reads them, builds one stage for each, validates and writes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import aws_cdk as cdk
from cdk_nag import AwsSolutionsChecks

from hyperpod_cdk import HyperPodChart, TemplateChecks
from hyperpod_cdk.catalog import kubernetes
from hyperpod_cdk.config import (
    EnvironmentFileError,
    LoadedEnvironment,
    UsageError,
    environment_files,
    judged_by,
    load_environment,
    missing_scripts,
    resolve_environment_file,
)
from hyperpod_cdk.config.extensions import builders, lifecycle_steps
from hyperpod_cdk.config.loading import SCRIPTS
from hyperpod_cdk.config.several import found_together
from hyperpod_cdk.eks.charts import ChartError
from hyperpod_cdk.findings import Severity
from hyperpod_cdk.script_files import check_scripts, check_steps, library_scripts
from hyperpod_cdk.templates.extension_sections import write_sections
from hyperpod_cdk_stacks.environment import HyperPodEnvironment

FEATURE_FLAGS = {
    "@aws-cdk/aws-ec2:restrictDefaultSecurityGroup": False,
    "@aws-cdk/aws-eks:useNativeOidcProvider": True,
    "@aws-cdk/aws-iam:minimizePolicies": True,
    "@aws-cdk/aws-iam:standardizedServicePrincipals": True,
    "@aws-cdk/aws-kms:reduceCrossAccountRegionPolicyScope": True,
    "@aws-cdk/aws-lambda:recognizeLayerVersion": True,
    "@aws-cdk/aws-lambda:recognizeVersionProps": True,
    "@aws-cdk/aws-lambda:useCdkManagedLogGroup": True,
    "@aws-cdk/aws-s3:createDefaultLoggingPolicy": True,
    "@aws-cdk/aws-s3:serverAccessLogsUseBucketPolicy": True,
    "@aws-cdk/core:checkSecretUsage": True,
    # a stack keeps exports that another one imports: removing a subnet with nodes is refused
    "@aws-cdk/core:defaultCrossStackReferences": "strong",
    # stack traces of warnings contain local paths and differ in every run
    "aws:cdk:disable-stack-trace": True,
}
"""Set here and not in cdk.json, so that ``python app.py`` and ``cdk synth`` write the same templates."""


_VERSION = "eks.kubernetes_version"


def synthesize(root: Path, *, builtin_validation: bool = False) -> None:
    """Write the cloud assembly of the environments in ``root``; exits with 1 and all errors if a file is refused."""
    app = new_app(builtin_validation=builtin_validation)
    stages = build(app, read_environments(root, app.node.try_get_context("env")), root=root)
    assembly = Path(app.outdir)
    try:
        app.synth()
    finally:
        # refused templates are also reviewed
        if (assembly / "manifest.json").is_file():
            write_sections(assembly, [stage.stage_name for stage in stages])


def new_app(*, outdir: Path | None = None, builtin_validation: bool = False) -> cdk.App:
    """Return an empty app with the feature flags for all templates; ``outdir`` is as in CDK.

    CDK's own template validation is disabled: it runs as WebAssembly for seconds, while ``TemplateChecks`` runs the
    same engine natively. The benchmark enables it to show the difference.
    """
    return cdk.App(
        context=FEATURE_FLAGS,
        builtin_cloud_formation_validation=builtin_validation,
        analytics_reporting=False,
        outdir=None if outdir is None else str(outdir),
    )


def build(app: cdk.App, environments: Sequence[LoadedEnvironment], *, root: Path) -> list[HyperPodEnvironment]:
    """Add a stage for each environment, and the checks for all templates."""
    scripts = root / SCRIPTS
    try:
        # templates that are committed for review must not depend on a pulled chart
        left_out = app.node.try_get_context("chart") == "placeholder"
        chart = HyperPodChart.placeholder() if left_out else HyperPodChart.locate(root)
        if scripts.is_dir():
            check_scripts(scripts)
        check_steps(lifecycle_steps(), scripts if scripts.is_dir() else library_scripts())
    except (ChartError, ValueError) as error:
        # errors in files of the project, which the user can fix
        sys.exit(str(error))
    stages = [
        add_environment(
            app,
            each,
            chart=chart,
            lifecycle_scripts=scripts if scripts.is_dir() else None,
            reviewed_by=judged_by.said_of(root, each.environment.name),
        )
        for each in environments
    ]
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app), TemplateChecks())
    return stages


def add_environment(
    app: cdk.App,
    loaded: LoadedEnvironment,
    *,
    chart: HyperPodChart,
    lifecycle_scripts: Path | None,
    reviewed_by: str = "",
) -> HyperPodEnvironment:
    """Add one environment as a stage with its name; its warnings become annotations that the CDK CLI prints.

    ``reviewed_by`` identifies the files that its reviews use (``config.judged_by.said_of``); empty without any.
    """
    stage = HyperPodEnvironment(
        app,
        loaded.environment.name,
        environment=loaded.environment,
        chart=chart,
        lifecycle_scripts=lifecycle_scripts,
        lifecycle_steps=lifecycle_steps(),
        reviewed_by=reviewed_by,
    )
    for extension, make in builders(loaded.environment):
        with extension.blamed():
            make(stage)
    notes = cdk.Annotations.of(stage.foundation)
    for warning in loaded.warnings:
        notes.add_warning_v2(f"hyperpod-cdk:{warning.rule}:{warning.path}", warning.render())
    return stage


def read_environments(root: Path, wanted: object = None) -> list[LoadedEnvironment]:
    """Read the environments in ``root``, or only ``wanted``; prints all errors and exits with 1 if one is refused."""
    try:
        files = _files(root, wanted)
    except UsageError as error:
        sys.exit(str(error))
    loaded: list[LoadedEnvironment] = []
    refused: list[str] = []
    for file in files:
        try:
            # the date of the tables and not today's date, so that the same commit always writes the same templates
            loaded.append(load_environment(file, today=kubernetes.AS_OF))
        except EnvironmentFileError as error:
            refused += [finding.render() for finding in error.findings if finding.severity is Severity.ERROR]
    together = (*found_together(loaded), *missing_scripts(loaded, root / SCRIPTS))
    refused += [finding.render() for finding in together if finding.severity is Severity.ERROR]
    refused += [
        f"{each.file}:{each.line_of(_VERSION)} {_VERSION}: {problem}"
        for each in loaded
        if (problem := kubernetes.kubectl_problem(each.environment.eks.kubernetes_version))
    ]
    if refused:
        sys.exit("\n".join(refused))
    return loaded


def _files(root: Path, wanted: object) -> Sequence[Path]:
    if wanted is not None:
        return [resolve_environment_file(str(wanted), root)]
    files = environment_files(root)
    if not files:
        raise UsageError("environments/ contains no *.yaml file; create one with 'hyperpod-cdk init NAME'")
    return files
