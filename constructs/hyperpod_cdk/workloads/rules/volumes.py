"""Rules about the mounts and checkpoints of a job."""

from __future__ import annotations

from collections.abc import Iterator

from hyperpod_cdk.catalog.rules import listing, repeated
from hyperpod_cdk.config import Lustre, S3Volume
from hyperpod_cdk.config.checkpointing import CheckpointAccount
from hyperpod_cdk.config.rules.book import Problem, warning
from hyperpod_cdk.config.suggest import closest
from hyperpod_cdk.workloads.job import Checkpoints, Volume, runs_a_program
from hyperpod_cdk.workloads.plan import SHARED_MEMORY_PATH
from hyperpod_cdk.workloads.rules.book import Book, Context, Found

BOOK = Book()

_DEFAULT_ACCOUNT = "default"
_SECTION = "hyperpod.tiered_checkpointing"


@BOOK.rule
def claims_are_there(context: Context) -> Found:
    """Refuse claims that the environment does not create in the job's namespace."""
    claims = dict(_claims(context))
    for index, volume in enumerate(context.job.volumes):
        at = ("volumes", index, "claim")
        name = volume.claim
        namespaces = [each for claim, (where, _) in _claims(context) if claim == name for each in where]
        if context.namespace in namespaces:
            continue
        if name in claims:
            yield Problem(
                at,
                f"must be in the namespace of the job, {context.namespace}, got {name}, which is in"
                f" {listing(namespaces, last='and')}; add {context.namespace} to the claim's namespaces in the"
                " environment",
            )
            continue
        here = list(dict.fromkeys(claim for claim, (where, _) in _claims(context) if context.namespace in where))
        if not here:
            near = closest(name, claims)
            fix = (
                f"did you mean {near}?"
                if near
                else "add a claim under storage in the environment, or remove the volume"
            )
            yield Problem(
                at, f'must be a claim of {context.environment.name} in {context.namespace}, got "{name}"; {fix}'
            )
        else:
            near = closest(name, here)
            fix = f"did you mean {near}?" if near else f"set claim: {here[0]}"
            yield Problem(
                at,
                f"must be a claim of {context.environment.name} in {context.namespace} ({listing(here)}), got"
                f' "{name}"; {fix}',
            )


@BOOK.rule
def mounts_are_apart(context: Context) -> Found:
    """Refuse two volumes at one path, and a volume at the path of shared memory."""
    paths = [volume.mount_path for volume in context.job.volumes]
    for index, first, path in repeated(paths):
        yield Problem(
            ("volumes", index, "mount_path"),
            f"must be unique, got {path} as in volumes[{first}]; mount one of the two at another path",
        )
    for index, path in enumerate(paths):
        if path == SHARED_MEMORY_PATH:
            yield Problem(
                ("volumes", index, "mount_path"),
                f"must not be {SHARED_MEMORY_PATH}, where every pod has its shared memory; mount it at another path",
            )


@BOOK.rule
def checkpoints_go_somewhere(context: Context) -> Found:
    """Refuse a section without a location."""
    section = _checkpoints(context)
    if section is not None and section.path is None and section.s3_uri is None and not section.tiered:
        yield Problem(("checkpoints",), "must have path or s3_uri, got neither; add one, or remove checkpoints")


@BOOK.rule
def checkpoints_are_kept(context: Context) -> Found:
    """Refuse a path outside of all volumes, which is lost with the pod, and volumes that do not allow checkpoints."""
    section = _checkpoints(context)
    if section is None or section.path is None:
        return
    at, path = ("checkpoints", "path"), section.path
    holding = [volume for volume in context.job.volumes if _within(path, volume.mount_path)]
    if not holding:
        paths = [volume.mount_path for volume in context.job.volumes]
        fix = f"put it below {listing(paths)}" if paths else "add a volume and put it below its mount_path"
        yield Problem(at, f"must be inside a volume, because other files are lost with the pod, got {path}; {fix}")
        return
    volume = max(holding, key=lambda each: len(each.mount_path))
    if volume.read_only:
        yield Problem(
            at,
            f"must be inside a volume to which pods may write, got {path} on {volume.mount_path} with read_only: true;"
            " set read_only: false, or use another path",
        )
        return
    bucket = _bucket(context, volume)
    if bucket is not None:
        yield from _on_a_bucket(path, bucket)


@BOOK.rule
def tiered_checkpointing_is_on(context: Context) -> Found:
    """Refuse checkpoints in the nodes' memory if nodes reserve none; warn if they are stored nowhere else."""
    section = _checkpoints(context)
    if section is None or not section.tiered:
        return
    if not context.environment.hyperpod.checkpoints_in_memory:
        yield Problem(
            ("checkpoints", "tiered"),
            f"must be false if nodes reserve no memory for checkpoints; add {_SECTION} to the environment, or remove"
            " tiered",
        )
    elif section.s3_uri is None:
        yield warning(
            ("checkpoints", "tiered"),
            "without s3_uri, checkpoints are only in the memory of the nodes and are lost with them; add s3_uri",
        )


@BOOK.rule
def checkpoint_accounts_cover_the_address(context: Context) -> Found:
    """Refuse a location to which the service account may not write; warn about permissions outside the environment."""
    section = _checkpoints(context)
    if section is None or section.s3_uri is None:
        return
    at = ("checkpoints", "s3_uri")
    tiered = context.environment.hyperpod.tiered_checkpointing
    accounts = () if tiered is None else tiered.service_accounts
    name = context.job.service_account or _DEFAULT_ACCOUNT
    own = next((each for each in accounts if (each.namespace, each.name) == (context.namespace, name)), None)
    if own is not None:
        if not any(_within(_address(section.s3_uri), _address(place)) for place in own.buckets):
            yield Problem(
                at,
                f"must be inside {listing(own.buckets)}, to which service account {name} of {context.namespace} may"
                f" write, got {section.s3_uri}; use a location there, or add this one to its buckets under {_SECTION}",
            )
        return
    fitting = [each.name for each in accounts if each.namespace == context.namespace and _covers(each, section.s3_uri)]
    if fitting or context.job.service_account is None:
        fix = (
            f"set service_account: {closest(name, fitting) or fitting[0]}"
            if fitting
            else f"add one with this bucket to {_SECTION}.service_accounts in the environment and use it, or use one"
            " that has permissions from elsewhere"
        )
        got = f"service account {name} of {context.namespace}, which has none under {_SECTION}"
        yield Problem(at, f"needs a service account with permissions for {section.s3_uri}, got {got}; {fix}")
    else:
        yield warning(
            ("service_account",),
            f"{name} of {context.namespace} is not under {_SECTION}.service_accounts, so it is unknown whether it may"
            f" write to {section.s3_uri}; add it there unless it has permissions from elsewhere",
        )


def _checkpoints(context: Context) -> Checkpoints | None:
    """Return the checkpoints section of training; in a test, the section itself is refused."""
    return context.job.checkpoints if runs_a_program(context.kind) else None


def _on_a_bucket(path: str, bucket: S3Volume) -> Iterator[Problem]:
    at = ("checkpoints", "path")
    if bucket.read_only:
        yield Problem(
            at,
            f"must be inside a volume to which pods may write, got {path} on storage.s3 {bucket.name} with read_only:"
            " true; use a path on another volume",
        )
    elif not bucket.allow_overwrite:
        yield Problem(
            at,
            "must be on a volume where files can be replaced, because a restarted job writes the checkpoint of a"
            f" step again, got {path} on storage.s3 {bucket.name}; set allow_overwrite: true there, or use s3_uri or a"
            " file system",
        )
    else:
        yield warning(
            at,
            f"{path} is on storage.s3 {bucket.name}, and Mountpoint cannot rename files in a bucket, which"
            " PyTorch's distributed checkpoints need (FileSystemWriter); use s3_uri, a file system, or a program that"
            " does not rename",
        )


def _claims(context: Context) -> Iterator[tuple[str, tuple[tuple[str, ...], Lustre | S3Volume]]]:
    """Yield the claims: name, namespaces, and the mounted volume."""
    for system in context.environment.storage.lustre:
        if system.claim is not None:
            yield system.resolved_claim_name, (system.claim.namespaces, system)
    for volume in context.environment.storage.s3:
        yield volume.resolved_claim_name, (volume.claim.namespaces, volume)


def _bucket(context: Context, volume: Volume) -> S3Volume | None:
    """Return the bucket of a volume, or None for a file system."""
    for name, (namespaces, mounted) in _claims(context):
        if name == volume.claim and context.namespace in namespaces and isinstance(mounted, S3Volume):
            return mounted
    return None


def _covers(account: CheckpointAccount, s3_uri: str) -> bool:
    return any(_within(_address(s3_uri), _address(place)) for place in account.buckets)


def _address(place: str) -> str:
    return (place if place.startswith("s3://") else f"s3://{place}").rstrip("/")


def _within(inner: str, outer: str) -> bool:
    return inner == outer or inner.startswith(f"{outer}/")
