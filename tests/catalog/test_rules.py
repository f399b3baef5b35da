"""Messages of limits and patterns contain the requirement, the value and the fix."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import hyperpod_cdk
from hyperpod_cdk import catalog
from hyperpod_cdk.catalog.rules import (
    Bound,
    Pattern,
    again_problem,
    bounds,
    brackets_problem,
    joined,
    listing,
    patterns,
    repeated,
    repeated_problem,
    same_names_problem,
    slug,
    template_mark_problem,
)
from hyperpod_cdk.config.draft import UNKNOWN

SOURCES = Path(hyperpod_cdk.__file__).parent
WHOLE = Bound(minimum=1, maximum=10, warn_above=5, unsure="two sources differ")
NAME = Pattern(
    regex="[a-z0-9](-*[a-z0-9])*",
    maximum=8,
    describes="1 to 8 lower-case letters, digits and hyphens",
    example="prod",
)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (0, "must be at least 1, got 0; set count: 1 or more"),
        (1, None),
        (10, None),
        (11, "must be at most 10, got 11; set count: 10 or less"),
    ],
)
def test_a_value_beside_its_bounds(value: int, problem: str | None) -> None:
    assert WHOLE.problem(value, key="count") == problem


@pytest.mark.parametrize(
    ("count", "problem"),
    [
        (0, "must hold taints, got none; add one"),
        (1, None),
        (10, None),
        (12, "must hold at most 10 taints, got 12; remove 2"),
    ],
)
def test_a_count_beside_its_bounds(count: int, problem: str | None) -> None:
    assert WHOLE.count_problem(count, what="taints") == problem


@pytest.mark.parametrize(
    ("count", "warning"),
    [
        (5, None),
        (6, "should hold at most 5 taints (two sources differ), got 6; remove 1 to be safe"),
        (10, "should hold at most 5 taints (two sources differ), got 10; remove 5 to be safe"),
        (11, None),
    ],
)
def test_a_count_that_only_one_source_allows(count: int, warning: str | None) -> None:
    assert WHOLE.count_warning(count, what="taints") == warning


@pytest.mark.parametrize(
    ("count", "problem"),
    [
        (0, "must hold at least 2 zones, got 0; add 2"),
        (1, "must hold at least 2 zones, got 1; add 1"),
        (2, None),
        (3, None),
        (4, "must hold at most 3 zones, got 4; remove 1"),
    ],
)
def test_a_count_with_a_least_of_two(count: int, problem: str | None) -> None:
    assert Bound(minimum=2, maximum=3).count_problem(count, what="zones") == problem


def test_a_bound_of_zero_is_a_bound() -> None:
    assert Bound(minimum=0).problem(-1, key="n") == "must be at least 0, got -1; set n: 0 or more"
    assert Bound(maximum=0).problem(1, key="n") == "must be at most 0, got 1; set n: 0 or less"
    assert Bound(maximum=0).count_problem(1, what="zones") == "must hold at most 0 zones, got 1; remove 1"
    assert Bound(minimum=0).count_problem(0, what="zones") is None
    assert Bound(warn_above=0, unsure="seen once").count_warning(1, what="zones") == (
        "should hold at most 0 zones (seen once), got 1; remove 1 to be safe"
    )


def test_a_bound_without_doubt_never_warns() -> None:
    assert Bound(minimum=0, maximum=50).count_warning(50, what="labels") is None


def test_an_open_end_refuses_nothing() -> None:
    assert Bound(minimum=1).problem(10**9, key="instances") is None
    assert Bound(maximum=1).problem(-(10**9), key="instances") is None
    assert Bound().count_problem(10**9, what="things") is None


@given(minimum=st.integers(-100, 100), size=st.integers(0, 100), value=st.integers(-300, 300))
def test_a_problem_is_reported_exactly_outside_the_bounds(minimum: int, size: int, value: int) -> None:
    bound = Bound(minimum=minimum, maximum=minimum + size)
    outside = not minimum <= value <= minimum + size
    assert (bound.problem(value, key="x") is not None) == outside
    assert (bound.count_problem(value, what="xs") is not None) == outside


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("My_Team", "my-team"),
        ("a b", "a-b"),
        ("-prod-", "prod"),
        ("production", "producti"),
        ("https://prod/", "prod"),
        ("été", "t"),
    ],
)
def test_a_name_is_corrected(text: str, fix: str) -> None:
    assert NAME.problem(text, key="name") == (
        f'must be 1 to 8 lower-case letters, digits and hyphens, got "{text}"; set name: {fix}'
    )


@pytest.mark.parametrize("text", ["", "___"])
def test_where_nothing_follows_from_the_text_an_example_is_only_shown(text: str) -> None:
    assert NAME.problem(text, key="name") == (
        f'must be 1 to 8 lower-case letters, digits and hyphens, got "{text}"; correct name, which must look like prod'
    )


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("s3://my-runs", "set bucket: my-runs"),
        ("s3://my-runs/llama/", "set bucket: my-runs (llama after it is a prefix, which is written separately)"),
        # nothing says that what is before the slash is a bucket
        ("my-runs/llama", "correct bucket, which must look like my-checkpoints"),
        ("s3://My-Runs/llama", "correct bucket, which must look like my-checkpoints"),
        ("my runs", "correct bucket, which must look like my-checkpoints"),
    ],
)
def test_no_other_name_is_derived_from_existing_ones(text: str, fix: str) -> None:
    bucket = Pattern(
        regex="[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]",
        maximum=63,
        describes="a bucket",
        example="my-checkpoints",
        refers=True,
    )
    assert bucket.problem(text, key="bucket") == f'must be a bucket, got "{text}"; {fix}'


@pytest.mark.parametrize("text", ["a", "prod", "a--b", "12345678"])
def test_a_name_that_passes(text: str) -> None:
    assert NAME.problem(text, key="name") is None


def test_the_whole_text_must_match() -> None:
    assert not NAME.matches("prod\n")
    assert not NAME.matches("prod prod")


@pytest.mark.parametrize(
    ("regex", "text", "fix"),
    [
        ("[a-z]+/", "a", "set name: a/"),
        ("/[a-z]+", "a/", "set name: /a"),
        ("/[a-z]+", "/a b", "correct name, which must look like b"),
    ],
)
def test_slashes_are_corrected_first(regex: str, text: str, fix: str) -> None:
    pattern = Pattern(regex=regex, maximum=8, describes="a path", example="b", refers=True)
    assert pattern.problem(text, key="name") == f'must be a path, got "{text}"; {fix}'


def test_no_address_is_made_with_hyphens() -> None:
    # an ARN's own text has colons, which its example shows
    pattern = Pattern(regex="[a-z-]+", maximum=8, describes="a name", example="a:b")
    assert pattern.problem("a b", key="name") == 'must be a name, got "a b"; correct name, which must look like a:b'


def test_the_length_of_a_text_beside_its_bounds() -> None:
    pattern = Pattern(regex=".*", minimum=2, maximum=3, describes="a text", example="abc")
    assert [pattern.matches("a" * length) for length in range(5)] == [False, False, True, True, False]
    assert not Pattern(regex=".*", maximum=3, describes="a text", example="abc").matches("")


def test_the_categories_of_every_character() -> None:
    pattern = Pattern(regex=".*", maximum=9, describes="a text", example="abc", categories="LZ")
    assert [pattern.matches(each) for each in ("ä b", "a1", "1a", "a-b")] == [True, False, False, False]


LIMITS = yaml.safe_load((Path(__file__).parent / "limits.yaml").read_text(encoding="utf-8"))
CHOSEN = {
    "arns.KEY_ALIAS",
    "arns.KEY_DESCRIPTION",
    *(f"governance.{name}" for name in ("PRIORITY_CLASS_NAME", "TEAM_NAME", "POLICY_NAME", "DESCRIPTION")),
    *("governance.RESOURCE_NAME", "governance.QUANTITY"),
    *("hyperpod.CLUSTER_NAME", "hyperpod.INSTANCE_GROUP_NAME", "hyperpod.KARPENTER_POOL_NAME"),
    *(f"hyperpod.{part}_{name}" for part in ("LABEL", "TAINT") for name in ("KEY", "VALUE")),
    *("hyperpod.CRON", "hyperpod.LIFECYCLE_SCRIPT"),
    *("kubernetes.DNS_LABEL", "kubernetes.SERVICE_ACCOUNT_NAME"),
    *("lustre.PATH", "lustre.DAILY_TIME", "lustre.WEEKLY_TIME"),
    "network.GROUP_DESCRIPTION",
    *("operators.PROMETHEUS_WORKSPACE_ALIAS", "operators.GRAFANA_WORKSPACE_NAME"),
    *("s3_places.MOUNT_PREFIX", "s3_places.FOLDER"),
}
"""The texts that a file may choose; every other pattern is of the name of something that exists already."""


def test_every_limit_of_the_catalog_is_the_one_that_is_listed() -> None:
    stated: dict[str, dict[str, list[int | None]]] = {}
    chosen: set[str] = set()
    for module in pkgutil.iter_modules(catalog.__path__):
        constants = vars(importlib.import_module(f"{catalog.__name__}.{module.name}"))
        found = {name: value for name, value in constants.items() if name.isupper()}
        rows = {name: value for name, value in found.items() if isinstance(value, (Bound, Pattern))}
        if rows:
            stated[module.name] = {name: [row.minimum, row.maximum] for name, row in rows.items()}
        patterns_of = {name: row for name, row in rows.items() if isinstance(row, Pattern)}
        chosen |= {f"{module.name}.{name}" for name, row in patterns_of.items() if not row.refers}
    assert stated == LIMITS
    assert chosen == CHOSEN


@given(st.text(max_size=20))
def test_every_fix_passes(text: str) -> None:
    problem = NAME.problem(text, key="name")
    assert (
        problem is None
        or problem.endswith("look like prod")
        or NAME.matches(yaml.safe_load(problem.rsplit("set name: ", 1)[1]))
    )


def test_rows_become_objects() -> None:
    assert bounds({"labels": {"minimum": 0, "maximum": 50, "source": "boto"}}) == {
        "labels": Bound(minimum=0, maximum=50, source="boto")
    }
    row = {"regex": "a+", "maximum": 3, "describes": "{minimum} to {maximum} a", "example": "a"}
    assert patterns({"letters": row}) == {"letters": Pattern(regex="a+", maximum=3, describes="1 to 3 a", example="a")}


@pytest.mark.parametrize(
    ("values", "places", "problem"),
    [
        ([], [], None),
        (["a", "b"], [], None),
        (["a", "a"], [(1, 0, "a")], "keys[1]: must be named once, got a again after [0]; remove one of the two"),
        (
            ["a", "b", "c", "b", "b", "c"],
            [(3, 1, "b"), (4, 1, "b"), (5, 2, "c")],
            "keys[3]: must be named once, got b again after [1]; remove one of the two",
        ),
    ],
)
def test_a_duplicate_value(values: list[str], places: list[tuple[int, int, str]], problem: str | None) -> None:
    assert list(repeated(values)) == places
    assert repeated_problem(values, key="keys") == problem


def test_an_unknown_value_equals_no_other() -> None:
    assert list(repeated([UNKNOWN, UNKNOWN, "a", ("a", UNKNOWN), ("a", UNKNOWN), "a"])) == [(5, 2, "a")]


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        ([], None),
        (["a", "b"], None),
        (["a", "b", "c", "b"], 'groups[3].name: must be unique, got "b" as in groups[1]; rename one of the two'),
    ],
)
def test_two_of_a_name(names: list[str], problem: str | None) -> None:
    assert same_names_problem(names, listed="groups") == problem


def test_where_a_list_is_named() -> None:
    assert again_problem("a", 2) == "must be named once, got a again after [2]; remove one of the two"
    assert again_problem("a", 2, listed="zones") == (
        "must be named once, got a again after zones[2]; remove one of the two"
    )


@pytest.mark.parametrize(
    ("text", "mark"),
    [("a $b {c} {{d}}", None), ("a ${b}", "${"), ("{{resolve:ssm:b}}", "{{resolve:"), ("{{resolve:ssm:${b}}}", "${")],
)
def test_what_a_template_reads_as_a_reference(text: str, mark: str | None) -> None:
    assert template_mark_problem(text, key="title") == (
        mark
        and f'must not contain {mark}, which begins a reference in CloudFormation templates, got "{text}"; change title'
    )


@pytest.mark.parametrize("text", ["", "a", "(a)", "a[b]{c}", "([{}])()"])
def test_brackets_in_pairs(text: str) -> None:
    assert brackets_problem(text, key="title") is None


@pytest.mark.parametrize("text", ["(", ")", "(]", "([)]", "a)(b", "(a))", "((a)", "()]"])
def test_brackets_without_another(text: str) -> None:
    assert brackets_problem(text, key="title") == (
        f'must have matching brackets, which CDK requires in names that policies use, got "{text}"; change title'
    )


@pytest.mark.parametrize(
    ("text", "room", "written"),
    [
        ("Prod", None, "prod"),
        ("-My  data_2.", None, "my-data-2"),
        ("my data", 3, "my"),
        ("my data", 4, "my-d"),
        # counted before what is at the ends is removed
        ("-my", 2, "m"),
        ("_", None, ""),
    ],
)
def test_slug(text: str, room: int | None, written: str) -> None:
    assert slug(text, room=room) == written


@pytest.mark.parametrize(
    ("parts", "said"), [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")]
)
def test_joined(parts: list[str], said: str) -> None:
    assert joined(parts) == said
    assert joined(parts, last="or") == said.replace("and", "or")
    assert listing(parts) == (said.replace("and", "or") or "none")


def test_only_the_first_of_many_are_named() -> None:
    assert joined("abc", most=3) == "a, b and c"
    assert joined("abcd", most=3) == "a, b and 2 more"
    assert joined("abcde", last="or", most=2, more="more ports") == "a or 4 more ports"


_BY_HAND = re.compile(r"""(['"]) (?:and|or) \1\.join\(""")


def test_lists_are_written_by_one_function() -> None:
    """But for code of Lambda functions, which is alone there, for what the quota gate's templates state, which would
    change, and for conditions, of which each and all must hold.
    """
    found = [
        path.relative_to(SOURCES).as_posix()
        for path in SOURCES.rglob("*.py")
        if "handlers" not in path.parts and _BY_HAND.search(path.read_text(encoding="utf-8"))
    ]
    assert sorted(found) == ["quotas/needs.py", "review/rights/grave.py", "review/rights/words.py"]


@pytest.mark.parametrize(
    ("text", "homes"),
    [
        (r"ml\.[a-z0-9-]+", {"catalog/instance_types.py"}),
        ("6758", set()),
        ("/aws/sagemaker/Clusters/", {"catalog/hyperpod.py", "config/encryption.py"}),
        ('"hyperpod-ns-"', set()),
        ("[a-z0-9]([-a-z0-9]*[a-z0-9])?", {"catalog/kubernetes.py"}),
        ("[a-z0-9][a-z0-9.-]{", {"catalog/s3_places.py"}),
        ("there is no such team", {"catalog/governance.py"}),
        ("which has {seats}", {"catalog/instance_groups.py"}),
        ("secondary_interfaces - 1", {"catalog/instance_types.py"}),
        ('}-foundation"', set()),
        # the second is the group of Kubernetes' API of jobs of that name
        ('"sagemaker.amazonaws.com"', {"catalog/hyperpod.py", "governance/team_access.py"}),
        ('"kube-system"', {"catalog/kubernetes.py"}),
        ("[a-z]{2,4}(", {"catalog/regions.py"}),
        ("[a-z]{2}(-", set()),
        ("ecr(?", {"catalog/images.py"}),
        ("must be a script in", {"script_files.py"}),
        ("because EFA does not cross zones,", {"catalog/lustre.py"}),
        ('"API_AND_CONFIG_MAP"', {"catalog/kubernetes.py"}),
        ("must not overlap another block of the VPC", {"catalog/network.py"}),
        (r"dkr\.ecr", set()),
        # the second compares the names of quotas
        ("[^a-z0-9]+", {"catalog/rules.py", "catalog/quotas.py"}),
        ("[a-z](-?[a-z0-9])*", {"catalog/rules.py"}),
        ('"kms:ReEncryptTo"', {"catalog/arns.py"}),
        ('"kms:Decrypt", "kms:GenerateDataKey', {"catalog/arns.py"}),
        ('"/aws/events/', {"catalog/hyperpod.py"}),
        ('"/aws/eks/', {"catalog/kubernetes.py"}),
        ('"cloudwatch.amazonaws.com"', set()),
        ('"budgets.amazonaws.com"', set()),
        ("ends with / and does not begin with it", {"catalog/s3_places.py"}),
        ("must end with / and not begin", set()),
        ("def plural(", {"catalog/sentences.py"}),
        ("def _plural(", set()),
    ],
)
def test_what_one_module_states_no_other_states_again(text: str, homes: set[str]) -> None:
    """Handlers may: only their own files are in what Lambda runs."""
    root = Path(hyperpod_cdk.__file__).parent
    files = (file for file in root.rglob("*.py") if "handlers" not in file.parts)
    assert {file.relative_to(root).as_posix() for file in files if text in file.read_text(encoding="utf-8")} == homes
