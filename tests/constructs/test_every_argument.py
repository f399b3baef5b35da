"""Every argument of every public construct that takes text or numbers, given what no service takes.

``tests/strangers_app.py`` makes each of them once, as a user would; here each argument in turn is another. What an
argument takes after all stands in ``TAKEN`` with the reason: a new argument is judged, or it is listed. The line of an
argument that is refused says so.
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import json
import re
import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

import aws_cdk as cdk
import pytest
from constructs import Construct

import hyperpod_cdk as hp
from tests import strangers_app
from tests.support.templates import HERE, app

EMPTY, MARKS, LONG = "", "no such\x07thing", "a" * 9_000
NEGATIVE, HUGE = -1, 10**12

_CUT = "a word within a name, which is cut and cleaned"
_DEFAULT = "stands for the default"
_ANY = "AWS states neither a length nor letters for it"

TAKEN: Mapping[tuple[str, str], tuple[str, Collection[object]]] = {
    ("Batch", "instances"): ("AWS states no maximum", [HUGE]),
    ("ControlPlane", "addon_versions"): (
        "one mapping holds the versions of all constructs, each of which reads its own",
        [EMPTY, MARKS, LONG],
    ),
    ("EncryptionKey", "description"): ("KMS takes an empty one, and states no letters", [EMPTY, MARKS]),
    ("InferenceOperator", "name"): (_CUT, [EMPTY, MARKS, LONG]),
    ("InterfaceEndpoints", "services"): (_ANY, [LONG]),
    ("LifecycleScripts", "name"): (_CUT, [EMPTY, MARKS, LONG]),
    ("LifecycleScripts", "prefix"): (_DEFAULT, [EMPTY]),
    ("MountedBucket", "prefix"): (_DEFAULT, [EMPTY]),
    ("NodeAddon", "addon_name"): (_ANY, [MARKS, LONG]),
    ("Notifications", "monthly_budget_usd"): ("AWS Budgets states no maximum", [HUGE]),
    ("Patching", "rollback_alarms"): ("AWS states no letters", [MARKS]),
    ("PodRole", "description"): ("IAM takes an empty one", [EMPTY]),
    ("PodRole", "reason"): ("a reviewer reads it, no service", [MARKS, LONG]),
    ("Pool", "instance_groups"): ("InstanceGroup judges the names of groups", [EMPTY, MARKS, LONG]),
    ("QuotaGate", "environment_name"): (_DEFAULT, [EMPTY]),
    ("Spaces", "name"): (_CUT, [EMPTY, MARKS, LONG]),
}
"""Construct and argument -> why it takes what, of the values that are tried."""

UNJUDGED: Mapping[str, str] = {
    "InstanceType": "the caller states what no catalog has yet",
    "OidcProvider": "constructs make it; IAM and EKS name what is in it",
    "Own": "names that are compared with those that AWS lists",
    "Requirement": "texts for the messages of the gate; Service Quotas judges its names",
}
"""Classes that take any value in most arguments, with the reason."""

_TIERING = {
    "storage_type": "intelligent_tiering",
    "throughput_capacity_mbps": 4000,
    "capacity_gib": None,
    "data_repositories": (),
}

JUDGED_BY: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    "Batch": ("Patching", "max_batch", {}),
    "DataRepository": ("LustreFileSystem", "data_repositories", {}),
    "Patching": ("InstanceGroup", "patching", {}),
    "Pool": ("KarpenterPools", "pools", {}),
    "ReadCache": ("LustreFileSystem", "read_cache", _TIERING),
    "Requirement": ("QuotaGate", "requirements", {}),
    "Taint": ("InstanceGroup", "taints", {}),
}
"""Classes whose values another one judges: its argument that takes them, and what it needs besides."""

ALONE: Mapping[str, dict[str, Any]] = {
    # the counts of one autoscaled cluster are made once
    "HyperPodCluster": {"autoscaling": None},
}
"""What of the stranger's arguments cannot be given to a second one."""


RIGHT: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("ControlPlane", "addon_versions"): {"coredns": "v1.12.4-eksbuild.1"},
    ("LifecycleScripts", "lustre_over_efa"): {"ml.p5.48xlarge": 1},
    ("Notifications", "file_systems"): {"scratch": "fs-0a1b2c3d4e5f67890"},
    ("ObservabilityAddon", "metrics"): {"node": "basic"},
}
"""What is right where the stranger gives nothing, so that a wrong value is not refused for its key."""


def _values(kind: Any, right: Any = None) -> Iterator[tuple[object, Any]]:
    """Yield wrong values of a type: what is wrong about each, and the value that holds it."""
    origin, of = get_origin(kind), get_args(kind)
    if origin is Literal:
        yield MARKS, MARKS
    elif kind is str:
        yield from ((each, each) for each in (EMPTY, MARKS, LONG))
    elif kind is int:
        yield from ((each, each) for each in (NEGATIVE, HUGE))
    elif origin in (Union, types.UnionType):
        for each in of:
            yield from _values(each, right)
    elif origin in (Sequence, Collection):
        yield from ((wrong, [each]) for wrong, each in _values(of[0]))
    elif origin is Mapping and set(of) <= {str, int}:
        key, value = next(iter((right or {"a": "a"}).items()))
        yield from ((wrong, {each: value}) for wrong, each in _values(of[0]))
        yield from ((wrong, {key: each}) for wrong, each in _values(of[1]))


def _public() -> Iterator[tuple[str, Any]]:
    for name in hp.__all__:
        public = getattr(hp, name)
        if issubclass(public, Construct) or dataclasses.is_dataclass(public):
            yield name, public


@pytest.fixture
def made() -> Mapping[str, tuple[tuple[Any, ...], dict[str, Any]]]:
    """The scope and the arguments with which the stranger makes each public construct first."""
    found: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {}

    def recorded(name: str, before: Callable[..., None]) -> Callable[..., None]:
        def make(self: object, *scope: Any, **given: Any) -> None:
            found.setdefault(name, (scope[:1], given))
            before(self, *scope, **given)

        return make

    with pytest.MonkeyPatch.context() as patch:
        for name, public in _public():
            patch.setattr(public, "__init__", recorded(name, public.__init__))
        # without the checks of templates: what is tried beside them has findings
        scope = app()
        strangers_app.Cluster(scope, "Theirs")
        strangers_app.Existing(scope, "Nova")
    return found


Made = Mapping[str, tuple[tuple[Any, ...], dict[str, Any]]]


def _make(made: Made, name: str, changed: Mapping[str, Any], construct_id: str, scope: Construct | None = None) -> None:
    """Make what the stranger makes with other arguments, and what judges it, in the stranger's stack or ``scope``."""
    theirs, given = made[name]
    public = getattr(hp, name)
    place: tuple[Any, ...] = (scope or theirs[0], construct_id) if issubclass(public, Construct) else ()
    found = public(*place, **{**given, **ALONE.get(name, {}), **changed})
    if name in JUDGED_BY:
        owner, argument, beside = JUDGED_BY[name]
        is_listed = get_origin(get_type_hints(getattr(hp, owner).__init__)[argument]) is Sequence
        _make(made, owner, {**beside, argument: [found] if is_listed else found}, construct_id, scope)


def _arguments() -> Iterator[tuple[str, str, Any]]:
    """Yield each public class, each argument of it and its annotation."""
    for name, public in _public():
        for argument, kind in get_type_hints(public.__init__).items():
            if argument in inspect.signature(public.__init__).parameters and argument not in {"scope", "construct_id"}:
                yield name, argument, kind


@pytest.mark.examples
@pytest.mark.timeout(600)
def test_what_no_service_takes_is_refused(made: Made) -> None:
    taken: dict[tuple[str, str], list[object]] = {}
    unsaid: list[tuple[str, str]] = []
    tried = 0

    for name, argument, kind in _arguments():
        _, given = made[name]
        said = inspect.getdoc(getattr(hp, name)) or ""
        for wrong, value in _values(kind, given.get(argument) or RIGHT.get((name, argument))):
            tried += 1
            try:
                _make(made, name, {argument: value}, f"Tried{tried}")
            except ValueError:
                line = said.partition(f"\n\n``{argument}`` (")[2].partition("\n\n")[0]
                if "ValueError" not in line:
                    unsaid.append((name, argument))
                continue
            if name not in UNJUDGED:
                taken.setdefault((name, argument), []).append(wrong)
    assert unsaid == []
    assert {place: set(map(str, wrong)) for place, wrong in taken.items()} == {
        place: set(map(str, wrong)) for place, (_, wrong) in TAKEN.items()
    }
    assert tried > 500


OF_ANY_TYPE: Mapping[str | tuple[str, str], str] = {
    "InstanceType": "the caller states what no catalog has yet",
    "OidcProvider": "constructs make it",
    "Own": "QuotaGate judges it",
    ("QuotaGate", "makes"): "any value that JSON has",
}
"""Classes, or arguments, that do not refuse every other type, with the reason."""


def test_every_public_class_judges_the_types_of_its_arguments() -> None:
    unjudged = {name for name, public in _public() if not hasattr(public.__init__, "__wrapped__")}
    # it is also a class of the gate's function, where there is no judge: QuotaGate judges what is in it
    assert unjudged == {"Requirement", *(each for each in OF_ANY_TYPE if isinstance(each, str))}


_BY_IT = "what the second may be depends on the first"
_NAMES_IT = "the sentence about the second names values of the first"

FOLLOWS: Mapping[tuple[str, str, str], str] = {
    ("InstanceGroup", "instance_type", "deep_health_checks"): _BY_IT,
    ("InstanceGroup", "instance_type", "training_plan_arn"): _BY_IT,
    ("InstanceGroup", "capacity", "training_plan_arn"): _BY_IT,
    ("LifecycleScripts", "directory", "entry_points"): _BY_IT,
    ("LustreFileSystem", "deployment_type", "capacity_gib"): _BY_IT,
    ("LustreFileSystem", "deployment_type", "throughput_capacity_mbps"): _BY_IT,
    ("LustreFileSystem", "deployment_type", "throughput_mbps_per_tib"): _BY_IT,
    ("LustreFileSystem", "storage_type", "capacity_gib"): _BY_IT,
    ("LustreFileSystem", "storage_type", "metadata_iops"): _BY_IT,
    ("LustreFileSystem", "storage_type", "throughput_capacity_mbps"): _BY_IT,
    ("LustreFileSystem", "storage_type", "throughput_mbps_per_tib"): _BY_IT,
    ("LustreFileSystem", "throughput_mbps_per_tib", "capacity_gib"): _BY_IT,
    ("LustreFileSystem", "backup_retention_days", "backup_start_time"): _BY_IT,
    ("Network", "availability_zones", "control_plane_zones"): _NAMES_IT,
    ("Network", "availability_zones", "file_system_zones"): _NAMES_IT,
    ("Network", "egress", "endpoint_zones"): _BY_IT,
    ("NodeAddon", "addon_name", "configuration_values"): _NAMES_IT,
    ("ReadCache", "sizing", "size_gib"): _BY_IT,
    ("RestrictedGroup", "capacity", "training_plan_arn"): _BY_IT,
    ("TaskGovernance", "policy_name", "name_prefix"): _BY_IT,
}
"""Class, a wrong argument, and another one whose own sentence is then not said -> the reason."""

_OWNER = re.compile(
    r"^(?:(?:restricted )?instance group|karpenter pool|priority class|partition|team|quota of) [^:]*: "
)


def _sentences(refused: ValueError) -> set[str]:
    """Return the lines of a refusal without the name of whose arguments they are, which may be wrong itself."""
    return {_OWNER.sub("", line) for line in str(refused).split("\n")}


@pytest.mark.examples
@pytest.mark.timeout(600)
def test_wrong_arguments_are_refused_together(made: Made) -> None:
    """Whatever two arguments of a class are wrong, its refusal has the sentences of both."""
    numbers = itertools.count()
    wrong: dict[str, dict[str, tuple[Any, set[str]]]] = {}
    for name, argument, kind in _arguments():
        tried = _values(kind, made[name][1].get(argument) or RIGHT.get((name, argument)))
        # of what is empty last: an empty path is the working directory, which changes
        for _, value in sorted(tried, key=lambda each: each[0] == EMPTY):
            try:
                _make(made, name, {argument: value}, f"Alone{next(numbers)}")
            except ValueError as refused:
                wrong.setdefault(name, {})[argument] = value, _sentences(refused)
                break
    pairs = [(name, *pair) for name, of in wrong.items() for pair in itertools.permutations(of, 2)]
    hidden = set()
    for name, first, second in pairs:
        (value, _), (other, said) = wrong[name][first], wrong[name][second]
        with pytest.raises(ValueError, match=r".") as caught:
            _make(made, name, {first: value, second: other}, f"Pair{next(numbers)}")
        if not said <= _sentences(caught.value):
            hidden.add((name, first, second))
    assert hidden == set(FOLLOWS)
    assert len(pairs) > 1000


class Other:
    """What no argument takes."""


@pytest.mark.examples
@pytest.mark.timeout(600)
def test_another_type_is_refused_by_the_name_of_the_argument(made: Made) -> None:
    wrong: list[tuple[str, str, str]] = []
    for name, argument, kind in _arguments():
        if name in OF_ANY_TYPE or (name, argument) in OF_ANY_TYPE:
            continue
        values: list[object] = [Other(), b"a", *([] if type(None) in get_args(kind) else [None])]
        for value in values:
            try:
                _make(made, name, {argument: value}, "Tried")
                wrong.append((name, argument, "taken"))
            except ValueError as refused:
                if not re.search(rf"\b{argument}: must be .*, got .*; ", str(refused)):
                    wrong.append((name, argument, str(refused)))
    assert wrong == []


@pytest.mark.examples
@pytest.mark.timeout(600)
def test_a_token_is_refused_or_reaches_the_template(made: Made) -> None:
    """No name, construct ID or text has CDK's encoding of a token, which changes from one synthesis to the next."""
    scope = cast("cdk.App", next(iter(place[0].node.root for place, _ in made.values() if place)))
    unclear: list[tuple[str, str, str]] = []
    taken: set[tuple[str, str, str]] = set()
    for index, (name, argument, kind) in enumerate(_arguments()):
        for form in ("text", "number", "list", "whole list"):
            tried = cdk.Stack(scope, f"Tried{index}-{form.replace(' ', '-')}", env=HERE)
            value = _token(tried, form, kind)
            if value is None or name in OF_ANY_TYPE:
                scope.node.try_remove_child(tried.node.id)
                continue
            try:
                _make(made, name, {argument: value}, "Tried", tried)
                taken.add((name, argument, form))
            except ValueError as refused:
                scope.node.try_remove_child(tried.node.id)
                if _ENCODED.search(str(refused)):
                    unclear.append((name, argument, str(refused)))
    found = {
        each.stack_name: match[0]
        for each in scope.synth().stacks
        if (match := _ENCODED.search(json.dumps(each.template))) is not None
    }
    assert (unclear, found) == ([], {})
    # what users give as parameters
    assert taken >= {
        ("ControlPlane", "eks_cluster_name", "text"),
        ("ControlPlane", "public_access_cidrs", "whole list"),
        ("LustreFileSystem", "capacity_gib", "number"),
        ("Notifications", "cluster_name", "text"),
        ("Notifications", "emails", "list"),
        ("TaskGovernance", "name_prefix", "text"),
    }


_ENCODED = re.compile(r".{40}(?:Token\[|TOKEN|token-token|-1\.88\d+e|\d{100}).{20}")


def _token(scope: Construct, form: str, kind: Any) -> Any:
    """Return a token for an argument of this type; None if it takes no such value."""
    kinds = {kind, *get_args(kind)} if get_origin(kind) in (Union, types.UnionType) else {kind}
    parameter = cdk.CfnParameter(scope, "Given", type="Number" if form == "number" else "String", default=1)
    if form == "number":
        return parameter.value_as_number if kinds & {int, float} else None
    if form == "text":
        is_text = str in kinds or any(get_origin(each) is Literal for each in kinds)
        return f"given-{parameter.value_as_string}" if is_text else None
    if not any(get_origin(each) is Sequence and get_args(each)[0] is str for each in kinds):
        return None
    return [parameter.value_as_string] if form == "list" else cdk.Fn.split(",", parameter.value_as_string)
