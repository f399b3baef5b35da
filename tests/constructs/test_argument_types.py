"""The judge of the types of arguments: what it says of each kind of argument, and what it lets pass."""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, Protocol

import aws_cdk as cdk
import jsii
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks as eks_v1
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk.lambda_layer_kubectl_v34 import KubectlV34Layer
from constructs import Construct, DependencyGroup, IDependable

from hyperpod_cdk.config.argument_types import judged
from tests.support.templates import stack


class Like(Protocol):
    @property
    def name(self) -> str: ...


@judged()
@dataclass(frozen=True)
class Inner:
    name: str
    size: int | None = None


@dataclass(frozen=True)
class NotJudged:
    name: str


class Text(str):
    __slots__ = ()


class Word(enum.StrEnum):
    ONE = "one"


@judged(known=("chosen",), whole=("passed",))
class Judged:
    """Arguments of every kind that constructs have."""

    def __init__(
        self,
        first: object = None,
        /,
        *,
        text: str = "",
        number: int = 0,
        fraction: float = 0,
        size_gib: int | None = None,
        switch: bool = False,
        choice: Literal["one", "two"] | None = None,
        choices: Sequence[Literal["one", "two"]] = (),
        some: Collection[Literal["one", "two"]] = frozenset(),
        texts: Sequence[str] = (),
        passed: Sequence[str] = (),
        mapping: Mapping[str, int] | None = None,
        anything: Mapping[str, Any] | None = None,
        place: str | Path | None = None,
        inner: Inner | None = None,
        inners: Sequence[Inner] = (),
        plain: NotJudged | None = None,
        like: Like | None = None,
        policy: cdk.RemovalPolicy = cdk.RemovalPolicy.RETAIN,
        vpc: ec2.IVpc | None = None,
        cluster: eks.ICluster | None = None,
        after: IDependable | None = None,
        chosen: str = "",
        refused: str = "",
    ) -> None:
        self.given = locals()
        if refused:
            raise ValueError(f'refused: must be something else, got "{refused}" and {number}; correct refused')


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"text": 1.34}, 'text: must be text, got 1.34; write text="1.34"'),
        ({"text": True}, "text: must be text, got True; write text as text"),
        ({"text": b"a"}, "text: must be text, got an object of bytes; write text as text"),
        ({"number": None}, "number: must be a whole number, got None; write number in digits"),
        ({"number": True}, "number: must be a whole number, got True; write number in digits"),
        ({"number": "12"}, 'number: must be a whole number, got "12"; write number=12'),
        ({"number": 2.0}, "number: must be a whole number, got 2.0; write number in digits"),
        (
            {"number": Decimal(2)},
            "number: must be a whole number, got an object of decimal.Decimal; write number in digits",
        ),
        ({"size_gib": "500GB"}, 'size_gib: must be a whole number, got "500GB"; write size_gib=500'),
        ({"fraction": "a"}, 'fraction: must be a number, got "a"; write fraction in digits'),
        ({"switch": "yes"}, 'switch: must be True or False, got "yes"; write switch=True or switch=False'),
        ({"switch": None}, "switch: must be True or False, got None; write switch=True or switch=False"),
        ({"choice": 1}, "choice: must be one or two, got 1; set choice to one of these"),
        ({"texts": "a"}, 'texts: must be a list, got "a"; write texts=["a"]'),
        ({"texts": None}, "texts: must be a list, got None; write texts=[...]"),
        (
            {"texts": (each for each in "ab")},
            "texts: must be a list, got an object of generator; write texts=list(...)",
        ),
        ({"texts": {"a"}}, "texts: must be a list, got an object of set; write texts=list(...)"),
        ({"texts": ["a", 5]}, 'texts[1]: must be text, got 5; write texts[1]="5"'),
        ({"mapping": [1]}, "mapping: must be a mapping, got a list; write mapping={...}"),
        ({"mapping": {1: 1}}, "mapping: must have text as its keys, got 1; correct the key"),
        ({"mapping": {"a": "b"}}, "mapping['a']: must be a whole number, got \"b\"; write mapping['a'] in digits"),
        ({"place": 5}, 'place: must be text or a Path, got 5; write place="5"'),
        ({"inner": {"name": "a"}}, "inner: must be an Inner, got a mapping; write inner=Inner(...)"),
        ({"inners": [None]}, "inners[0]: must be an Inner, got None; write inners[0]=Inner(...)"),
        ({"plain": NotJudged(5)}, 'plain.name: must be text, got 5; write plain.name="5"'),  # type: ignore[arg-type]
        ({"like": object()}, "like: must be a Like, got an object of object; write like=Like(...)"),
        (
            {"policy": "retain"},
            (
                'policy: must be an aws_cdk.RemovalPolicy, got "retain"; write one of its members, such as'
                " RemovalPolicy.DESTROY"
            ),
        ),
        ({"vpc": "vpc-1"}, 'vpc: must be an aws_ec2.IVpc, got "vpc-1"; pass such a construct'),
        ({"after": "Other"}, 'after: must be a constructs.IDependable, got "Other"; pass such a construct'),
        ({"chosen": cdk.Aws.REGION}, "chosen: must be known at synthesis, got a token; write the value out"),
        ({"choice": cdk.Aws.REGION}, "choice: must be known at synthesis, got a token; write the value out"),
        ({"choices": [cdk.Aws.REGION]}, "choices[0]: must be known at synthesis, got a token; write the value out"),
        (
            {"mapping": {cdk.Aws.REGION: 1}},
            "a key of mapping: must be known at synthesis, got a token; write the value out",
        ),
        (
            {"texts": cdk.Token.as_list(cdk.Fn.split(",", cdk.Aws.REGION))},
            (
                "texts: must be a list of known length, got a token of a whole list; pass its items one by one, such as"
                " Fn.select(0, ...)"
            ),
        ),
        (
            {"refused": f"a-{cdk.Aws.REGION}-b", "number": cdk.Token.as_number({"Ref": "N"})},
            "refused: must be something else, got a token and a token; correct refused",
        ),
    ],
)
def test_what_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        Judged(**arguments)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"text": Text("a"), "choice": Word.ONE, "texts": (Text("a"), cdk.Aws.REGION)},
        {"number": 5, "fraction": 5, "switch": True, "some": {"one"}},
        {"number": cdk.Token.as_number({"Ref": "N"}), "text": f"a-{cdk.Aws.REGION}"},
        {"passed": cdk.Token.as_list({"Ref": "L"})},
        {"mapping": {"a": cdk.Token.as_number({"Ref": "N"})}, "anything": {"a": [{"b": None}]}},
        {"place": Path("a"), "inner": Inner("a", size=1), "plain": NotJudged("a"), "like": Inner("a")},
    ],
)
def test_what_is_taken(arguments: dict[str, Any]) -> None:
    assert Judged(**arguments).given.items() >= arguments.items()


def test_a_missing_or_unknown_argument_is_pythons_error() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'txt'"):
        Judged(txt="a")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'name'"):
        Inner()  # type: ignore[call-arg]


@jsii.implements(ec2.ISecurityGroup)
class OwnGroup(cdk.Resource):
    """Implements an interface of CDK in Python."""


@judged()
class OfCdk:
    """Arguments that are CDK's interfaces."""

    def __init__(
        self,
        *,
        vpc: ec2.IVpc | None = None,
        subnet: ec2.ISubnet | None = None,
        group: ec2.ISecurityGroup | None = None,
        bucket: s3.IBucket | None = None,
        key: kms.IKey | None = None,
        cluster: eks.ICluster | None = None,
        after: IDependable | None = None,
        scope: Construct | None = None,
    ) -> None: ...


def test_what_cdk_makes_and_imports_is_taken() -> None:
    theirs = stack()
    vpc = ec2.Vpc(theirs, "Vpc", max_azs=2)
    named = ec2.Vpc.from_vpc_attributes(theirs, "Named", vpc_id="vpc-1", availability_zones=["us-east-1a"])
    version = eks.KubernetesVersion.V1_34
    layer = eks.KubectlProviderOptions(kubectl_layer=KubectlV34Layer(theirs, "Kubectl"))
    after = cdk.CfnResource(theirs, "Any", type="A::B::C")
    # jsii gives interfaces as protocols, which checkers compare with classes by their parameters' names
    made: list[tuple[str, Any]] = [
        ("vpc", vpc),
        ("vpc", named),
        ("after", vpc),
        ("after", after),
        ("after", DependencyGroup()),
        ("scope", theirs),
        *(("subnet", subnet) for subnet in vpc.private_subnets),
        ("subnet", ec2.Subnet.from_subnet_id(theirs, "Subnet", "subnet-1")),
        ("group", ec2.SecurityGroup.from_security_group_id(theirs, "Group", "sg-1")),
        ("group", ec2.SecurityGroup(theirs, "Made", vpc=vpc)),
        ("group", OwnGroup(theirs, "Own")),
        ("bucket", s3.Bucket.from_bucket_name(theirs, "Theirs", "theirs")),
        ("bucket", s3.Bucket(theirs, "Bucket")),
        ("key", kms.Key(theirs, "Key")),
        ("key", kms.Alias.from_alias_name(theirs, "Alias", "alias/theirs")),
        ("cluster", eks.Cluster(theirs, "Eks", vpc=vpc, version=version, kubectl_provider_options=layer)),
        ("cluster", eks.Cluster.from_cluster_attributes(theirs, "Platform", cluster_name="platform")),
    ]
    for name, value in made:
        OfCdk(**{name: value})


def test_another_interface_of_cdk_is_refused() -> None:
    theirs = stack()
    old: Any = eks_v1.Cluster.from_cluster_attributes(theirs, "Old", cluster_name="old")
    with pytest.raises(
        ValueError, match=r"^cluster: must be an aws_eks_v2\.ICluster, got .*aws_cdk\.aws_eks\.ICluster;"
    ):
        OfCdk(cluster=old)
    subnet: Any = ec2.Subnet.from_subnet_id(theirs, "Subnet", "subnet-1")
    with pytest.raises(
        ValueError, match=r"^vpc: must be an aws_ec2\.IVpc, got an object of .*aws_cdk\.aws_ec2\.ISubnet;"
    ):
        OfCdk(vpc=subnet)
