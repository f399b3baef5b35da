"""Changes of how stacks are deployed, in addition to their templates: roles, sources and notifications."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from hyperpod_cdk.file_reading import TooLargeError, read_bytes
from hyperpod_cdk.review.attention import Found
from hyperpod_cdk.review.model import Attention, ReasonKind
from hyperpod_cdk.templates.assembly import Assembly, Stack
from hyperpod_cdk.templates.assets import Upload, other_contents, uploads
from hyperpod_cdk.templates.deployment import comparable, is_usual, shown

_LONGEST_DOCKERFILE: Final = 2**20
_WHAT: Final = {
    "assumeRoleArn": "the role with which it is deployed",
    "cloudFormationExecutionRoleArn": "the role with which CloudFormation makes every change",
    "notificationArns": "the topics that receive all events of the stack",
    "lookupRole.arn": "the role with which values are looked up",
    "assets": "the destination of its code and template, and the role of the upload",
    "unusedAssets": "the uploads that no resource uses, under names that a later change may use",
    "parameters": "the values that replace the template's defaults",
    "dockerImages": "the build inputs of its images in addition to their folder",
}


def changed_settings(base: Assembly, head: Assembly) -> list[Found]:
    """Find settings of the head's assembly that 'cdk deploy' uses and the base does not have, each as a grant of
    access.

    If the base does not show them (a new stack, or a deployed one: CloudFormation knows two of them), the resources of
    'cdk bootstrap' in the stack's own account are expected, and anything else needs approval.
    """
    found = [each for stack in head.stacks for each in _of_stack(base.by_name.get(stack.name), stack)]
    if base.folder is not None and head.folder is not None and base.stacks and head.stacks:
        found += [_under_one_name(head, name) for name in other_contents(base.folder, head.folder)]
    if head.folder is not None and base.stacks and head.stacks:
        found += _by_other_commands(base, head, head.folder)
    return found


def _under_one_name(head: Assembly, name: str) -> Found:
    item = Attention(
        effect=None,
        about="access",
        resource=head.environment or head.stacks[0].name,
        property="assets",
        message=f"The asset {name} has other content under the same name. No template shows this.",
    )
    return Found(item=item, kind=ReasonKind.ACCESS)


def _by_other_commands(base: Assembly, head: Assembly, top: Path) -> Iterator[Found]:
    """Find images that 'cdk deploy' builds where it runs, with commands that were not reviewed yet.

    An image whose tag is in the base's templates is in the repository, and is not built again.
    """
    known = json.dumps([stack.template for stack in base.stacks], default=str)
    before = [] if base.folder is None else list(uploads(base.folder).values())
    read = {_text_of(each) for each in before if each.dockerfile is not None}
    places = {each.place for each in before}
    for each in uploads(top).values():
        if each.dockerfile is None or each.place in places or each.name in known:
            continue
        by = "a Dockerfile that was compared with nothing"
        if base.folder is not None:
            # an unchanged command may run a script of the folder that has changed
            by = (
                "files that the base does not have"
                if _text_of(each) in read
                else "a Dockerfile that the base does not have"
            )
        item = Attention(
            effect=None,
            about="access",
            resource=head.environment or head.stacks[0].name,
            property="dockerImages",
            message=(
                f"Docker builds the image {each.place} where 'cdk deploy' runs, by {by}: its commands run there, "
                "with that machine's network. No template shows this."
            ),
        )
        yield Found(item=item, kind=ReasonKind.ACCESS)


def _text_of(image: Upload) -> bytes:
    file = image.path / (image.dockerfile or "")
    try:
        return read_bytes(file, most=_LONGEST_DOCKERFILE) if file.is_file() else b""
    except (OSError, TooLargeError):
        # a file that cannot be read equals no other one
        return image.name.encode()


def _of_stack(old: Stack | None, new: Stack) -> Iterator[Found]:
    told = {} if old is None else old.settings
    names = [*new.settings, *(name for name in told if name not in new.settings)]
    where = {"account": new.account, "region": new.region}
    for name in names:
        after = new.settings.get(name, ())
        is_known = old is not None and (old.settings_are_whole or name in told)
        before = told.get(name, ())
        if is_known and comparable(before, **where) == comparable(after, **where):
            continue
        # a stack that gets its first image uses another bucket or repository of the same bootstrap
        if (name == "assets" or not (is_known and before)) and is_usual(name, after, **where):
            continue
        if old is not None and not old.settings_are_whole and not after and not is_known:
            continue
        what = _WHAT.get(name, "a setting by which it is deployed")
        until = f"until now {shown(before) or 'none'}" if is_known else "which is not what 'cdk bootstrap' creates"
        item = Attention(
            effect=None,
            about="access",
            resource=new.name,
            property=name,
            before=shown(before) or None,
            after=shown(after) or None,
            message=f"The cloud assembly sets {what}: {shown(after) or 'none'}, {until}. No template shows this.",
        )
        yield Found(item=item, kind=ReasonKind.ACCESS)
