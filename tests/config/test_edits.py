"""Single values set in a file: everything else of it stays as it was written."""

from __future__ import annotations

import pytest

from hyperpod_cdk.config.edits import EditError, with_text
from hyperpod_cdk.config.source import DataPath

VERSION: DataPath = ("eks", "kubernetes_version")
PIN: DataPath = ("eks", "addon_versions", "coredns")
GROUPS = """\
hyperpod:
  instance_groups:
    - name: a
      count: 1
    - name: b  # gpu
      image: {{release_version: {}}}
"""
RELEASE: DataPath = ("hyperpod", "instance_groups", 1, "image", "release_version")


@pytest.mark.parametrize(
    ("before", "path", "value", "after"),
    [
        (
            '# top\neks:\n  kubernetes_version: "1.33"  # the oldest\nname: prod\n',
            VERSION,
            "1.34",
            '# top\neks:\n  kubernetes_version: "1.34"  # the oldest\nname: prod\n',
        ),
        ("eks: {kubernetes_version: '1.33'}\n", VERSION, "1.34", "eks: {kubernetes_version: '1.34'}\n"),
        # a number would be read otherwise: it gets quotes
        ("eks:\n  kubernetes_version: 1.33\n", VERSION, "1.34", 'eks:\n  kubernetes_version: "1.34"\n'),
        # what is missing comes behind the last key, a comment beside that stays beside it
        (
            "name: prod\neks:\n  oidc_provider: true # IRSA\n\n# next\nhyperpod: {}\n",
            VERSION,
            "1.34",
            'name: prod\neks:\n  oidc_provider: true # IRSA\n  kubernetes_version: "1.34"\n\n# next\nhyperpod: {}\n',
        ),
        (
            "eks:\n  admin_role_arns:\n    - arn:a\n    - arn:b  # second\nname: x\n",
            PIN,
            "v1.2.3-eksbuild.1",
            (
                "eks:\n  admin_role_arns:\n    - arn:a\n    - arn:b  # second\n"
                "  addon_versions:\n    coredns: v1.2.3-eksbuild.1\nname: x\n"
            ),
        ),
        ("eks: {a: 1}\n", PIN, "v1.2.3", "eks: {a: 1, addon_versions: {coredns: v1.2.3}}\n"),
        ("eks: {}\n", PIN, "v1.2.3", "eks: {addon_versions: {coredns: v1.2.3}}\n"),
        ("eks: {a: 1, }\n", VERSION, "1.34", 'eks: {a: 1, kubernetes_version: "1.34"}\n'),
        ("name: prod", VERSION, "1.34", 'name: prod\neks:\n  kubernetes_version: "1.34"\n'),
        (
            "name: prod\r\neks:\r\n  a: b\r\n",
            VERSION,
            "1.34",
            'name: prod\r\neks:\r\n  a: b\r\n  kubernetes_version: "1.34"\r\n',
        ),
        ("\ufeffeks:\n  a: b\n", VERSION, "1.34", '\ufeffeks:\n  a: b\n  kubernetes_version: "1.34"\n'),
        (
            GROUPS.format("1.4.0"),
            RELEASE,
            "2.1.0",
            GROUPS.format("2.1.0"),
        ),
        (
            "hyperpod:\n  instance_groups:\n    - {name: a}\n    - {name: b}\n",
            RELEASE,
            "2.1.0",
            "hyperpod:\n  instance_groups:\n    - {name: a}\n    - {name: b, image: {release_version: 2.1.0}}\n",
        ),
        (
            "eks:\n  addon_versions:\n    coredns:\nname: x\n",
            PIN,
            "v1.2.3",
            "eks:\n  addon_versions:\n    coredns: v1.2.3\nname: x\n",
        ),
    ],
)
def test_one_value_is_set(before: str, path: DataPath, value: str, after: str) -> None:
    assert with_text(before, path, value) == after
    # what is set already is not written otherwise
    assert with_text(after, path, value) == after


@pytest.mark.parametrize(
    ("text", "path", "said"),
    [
        ("eks: [a]\n", VERSION, 'eks is no mapping; write eks.kubernetes_version: "1.34" by hand'),
        ("eks:\n", VERSION, 'eks is no mapping; write eks.kubernetes_version: "1.34" by hand'),
        ("eks: {kubernetes_version: [a]}\n", VERSION, "eks.kubernetes_version is no single value; write it by hand"),
        (
            "hyperpod: {instance_groups: []}\n",
            RELEASE,
            (
                "hyperpod.instance_groups is no mapping; write"
                ' hyperpod.instance_groups[1].image.release_version: "1.34"'
                " by hand"
            ),
        ),
    ],
)
def test_what_cannot_be_set_is_said(text: str, path: DataPath, said: str) -> None:
    with pytest.raises(EditError) as caught:
        with_text(text, path, "1.34")
    assert str(caught.value) == said
