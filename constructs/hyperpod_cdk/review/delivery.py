"""What changes in how stacks are deployed, beside what their templates say: as whom, from where, and who is told."""

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
    "assumeRoleArn": "the role as which it is deployed",
    "cloudFormationExecutionRoleArn": "the role as which CloudFormation makes every change",
    "notificationArns": "the topics that are told of everything that happens to the stack",
    "lookupRole.arn": "the role as which what it needs is looked up",
    "assets": "where its code and template are put, and as whom",
    "unusedAssets": "what is uploaded although no resource uses it, under names that a later change may use",
    "parameters": "values that stand for the template's defaults",
    "dockerImages": "what its images are built with beside their folder",
}


def changed_settings(base: Assembly, head: Assembly) -> list[Found]:
    """Find what 'cdk deploy' takes of the head's assembly that the base's has not, each as a gain of access.

    Where the base does not show (a stack that is new, or deployed: CloudFormation knows of two of them), what 'cdk
    bootstrap' makes in the stack's own account is as it should be, and anything else needs approval.
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
        message=f"The asset {name} has another content under the name that it had. No template says so.",
    )
    return Found(item=item, kind=ReasonKind.ACCESS)


def _by_other_commands(base: Assembly, head: Assembly, top: Path) -> Iterator[Found]:
    """Tell of images that 'cdk deploy' builds where it runs, by commands that nobody has read yet.

    A tag that the base's templates name is in the repository, and is not built again.
    """
    known = json.dumps([stack.template for stack in base.stacks], default=str)
    before = [] if base.folder is None else list(uploads(base.folder).values())
    read = {_text_of(each) for each in before if each.dockerfile is not None}
    places = {each.place for each in before}
    for each in uploads(top).values():
        if each.dockerfile is None or each.place in places or each.name in known:
            continue
        by = "a Dockerfile that is compared with nothing"
        if base.folder is not None:
            # a command that stays may run a script of the folder that does not
            by = "files that the base has not" if _text_of(each) in read else "a Dockerfile that the base has not"
        item = Attention(
            effect=None,
            about="access",
            resource=head.environment or head.stacks[0].name,
            property="dockerImages",
            message=f"Docker builds the image {each.place} where 'cdk deploy' runs, by {by}: its commands run "
            "there, with that machine's network. No template says so.",
        )
        yield Found(item=item, kind=ReasonKind.ACCESS)


def _text_of(image: Upload) -> bytes:
    file = image.path / (image.dockerfile or "")
    try:
        return read_bytes(file, most=_LONGEST_DOCKERFILE) if file.is_file() else b""
    except (OSError, TooLargeError):
        # what cannot be read is like no other
        return image.name.encode()


def _of_stack(old: Stack | None, new: Stack) -> Iterator[Found]:
    told = {} if old is None else old.settings
    names = [*new.settings, *(name for name in told if name not in new.settings)]
    where = {"account": new.account, "region": new.region}
    for name in names:
        after = new.settings.get(name, ())
        is_told = old is not None and (old.settings_are_whole or name in told)
        before = told.get(name, ())
        if is_told and comparable(before, **where) == comparable(after, **where):
            continue
        # a stack that gets its first image has another bucket or repository of the same bootstrap
        if (name == "assets" or not (is_told and before)) and is_usual(name, after, **where):
            continue
        if old is not None and not old.settings_are_whole and not after and not is_told:
            continue
        what = _WHAT.get(name, "a setting by which it is deployed")
        until = f"until now {shown(before) or 'none'}" if is_told else "which is not what 'cdk bootstrap' makes"
        item = Attention(
            effect=None,
            about="access",
            resource=new.name,
            property=name,
            before=shown(before) or None,
            after=shown(after) or None,
            message=f"The cloud assembly sets {what}: {shown(after) or 'none'}, {until}. No template says so.",
        )
        yield Found(item=item, kind=ReasonKind.ACCESS)
