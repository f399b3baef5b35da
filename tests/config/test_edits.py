"""Single values set in a file: everything else is unchanged."""

from __future__ import annotations

import pytest

from hyperpod_cdk.config.edits import EditError, with_value
from hyperpod_cdk.config.source import DataPath, read_source
from tests.support.tables import row_by_row

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


@row_by_row(
    "before, path, value, after",
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
        ("eks: {a: 1, }\n", VERSION, "1.34", 'eks: {a: 1, kubernetes_version: "1.34", }\n'),
        (
            "eks: {\n  a: 1, # one\n  b: 2 # two\n}\n",
            VERSION,
            "1.34",
            'eks: {\n  a: 1, # one\n  b: 2, kubernetes_version: "1.34" # two\n}\n',
        ),
        ("a: &x 1\neks: {b: &x 2}\n", VERSION, "1.34", 'a: &x 1\neks: {b: &x 2, kubernetes_version: "1.34"}\n'),
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
    assert with_value(before, path, value) == after
    # what is set already is not written otherwise
    assert with_value(after, path, value) == after


@pytest.mark.parametrize(
    ("text", "path", "said"),
    [
        ("eks: [a]\n", VERSION, 'eks is not a mapping; write eks.kubernetes_version: "1.34" by hand'),
        ("eks:\n", VERSION, 'eks is not a mapping; write eks.kubernetes_version: "1.34" by hand'),
        ("eks: {kubernetes_version: [a]}\n", VERSION, "eks.kubernetes_version is not a single value; write it by hand"),
        (
            "hyperpod: {instance_groups: []}\n",
            RELEASE,
            (
                "hyperpod.instance_groups is not a mapping; write"
                ' hyperpod.instance_groups[1].image.release_version: "1.34"'
                " by hand"
            ),
        ),
    ],
)
def test_what_cannot_be_set_is_reported(text: str, path: DataPath, said: str) -> None:
    with pytest.raises(EditError) as caught:
        with_value(text, path, "1.34")
    assert str(caught.value) == said


VALUES = (
    *("on", "No", "null", "~", "", " ", "0042", "1e3", "1_000", "0x1F", "1.34", "12:30", "2026-11-28", "=", "<<"),
    *("a: b", "a #b", "- a", "? a", "[a]", "{a}", "a, b", "*a", "&a", "!a", "|", ">", "%a", "@a", "`a", "'", '"', "\\"),
    *("it's", 'say "so"', "two\nlines", "\t", "\x7f", "\x85", "\u2028", "\ufeff", "Gr\u00fc\u00dfe", "\U0001f600"),
    *("arn:aws:iam::111122223333:role/admin", "v1.20.4-eksbuild.2", "2.1.0", "none", "a.", "a:", "a-"),
)


@pytest.mark.parametrize("text", ["a: {}\n", "a: {b: old}\n", "a: {b: 'old'}\n", 'a:\n  b: "old"\n', "a:\n  c: d\n"])
def test_a_text_is_read_as_it_was_written(text: str) -> None:
    for value in VALUES:
        data = read_source(with_value(text, ("a", "b"), value), "").data
        assert isinstance(data, dict)
        assert isinstance(data["a"], dict)
        assert (value, data["a"]["b"]) == (value, value)


@pytest.mark.parametrize("value", [0, 7, -1, 12345])
def test_a_number_is_a_number(value: int) -> None:
    assert with_value("a: {b: '1'}\n", ("a", "b"), value) == f"a: {{b: {value}}}\n"
