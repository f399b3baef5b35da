"""The part below the verdict: what a reviewer must check, the most severe first, and in few lines."""

from __future__ import annotations

from typing import Any

import pytest

from hyperpod_cdk.review.approval import first_line
from hyperpod_cdk.review.attention import findings, lifted_protection
from hyperpod_cdk.review.model import (
    Access,
    Attention,
    BlastRadius,
    BlockAddresses,
    Capacity,
    Cause,
    Change,
    Cost,
    CostLine,
    Effect,
    Fabric,
    FabricSubject,
    Grant,
    LeftBehind,
    Paid,
    PlanFee,
    PlanSeats,
    Policy,
    PolicyFinding,
    Proof,
    PropertyEffect,
    QuotaNeed,
    Reach,
    ReasonKind,
    ResourceEffect,
    Unpriced,
    Verdict,
)
from hyperpod_cdk.review.retention import lifted
from hyperpod_cdk.review.review_file import ReviewRules, Thresholds
from hyperpod_cdk.templates.assembly import Assembly, Stack
from hyperpod_cdk.templates.difference import PropertyChange, compare
from tests.review.judged import CLUSTER, FINDINGS, LAYER, LUSTRE, changed, finding, judged, proven, resource
from tests.support.tables import row_by_row

CAUSE = Cause(file="environments/dev.yaml", line=7, path="hyperpod.instance_groups[0].count", before="4", after="3")


def test_a_resource_that_needs_a_look() -> None:
    of_property = changed("Groups[a].Count", Effect.INTERRUPTED, before="4", after="3", causes=(CAUSE,))
    quiet = changed("Tags", Effect.IN_PLACE)
    (found,) = judged(resource(Effect.INTERRUPTED, CLUSTER, properties=(of_property, quiet))).attention
    assert found == Attention(
        effect=Effect.INTERRUPTED,
        resource="dev-x / It",
        property="Groups[a].Count",
        before="4",
        after="3",
        message="Nodes go.",
        causes=(CAUSE,),
    )


def test_a_resource_without_a_property_that_explains_it() -> None:
    causes = (CAUSE,)
    (gone,) = judged(resource(Effect.DELETED, LUSTRE, causes=causes)).attention
    assert gone == Attention(effect=Effect.DELETED, resource="dev-x / It", message="It happens.", causes=causes)
    lesser = (changed("P", Effect.UNKNOWN),)
    found = judged(resource(Effect.REPLACED, LUSTRE, properties=lesser)).attention
    assert [(each.effect, each.property, each.message) for each in found] == [
        (Effect.REPLACED, None, "It happens."),
        (Effect.UNKNOWN, "P", "Nodes go."),
    ]


@pytest.mark.parametrize(
    "quiet",
    [resource(Effect.IN_PLACE), resource(Effect.ADDED), resource(Effect.REPLACED, LAYER)],
    ids=lambda each: each.effect,
)
def test_what_needs_no_look(quiet: ResourceEffect) -> None:
    assert judged(quiet).attention == ()


INDIRECT: dict[str, Any] = {"is_indirect": True}


@row_by_row(
    "changes, said",
    [
        (
            [changed("A", Effect.REPLACED, reason="It refers to X.", **INDIRECT)],
            [("replaced", "A", "It refers to X.")],
        ),
        (
            [changed(path, Effect.REPLACED, reason="It refers to X.", **INDIRECT) for path in "AB"],
            [("replaced", "A", "It refers to X. So does B.")],
        ),
        (
            [changed(path, Effect.REPLACED, reason="It refers to X.", **INDIRECT) for path in "ABC"],
            [("replaced", "A", "It refers to X. So do B and C.")],
        ),
        (
            [changed(path, Effect.REPLACED, reason="It refers to X.", **INDIRECT) for path in "ABCDEF"],
            [("replaced", "A", "It refers to X. So do B, C and 3 more.")],
        ),
        # which other resource it is that another property refers to is in the blast radius
        (
            [changed(path, Effect.REPLACED, reason=f"It refers to {path}.", **INDIRECT) for path in "AABCD"],
            [
                (
                    "replaced",
                    "A",
                    "It refers to A. So does A. In addition, B, C and D refer to resources that are replaced.",
                )
            ],
        ),
        # each effect has its line
        (
            [changed(effect.name, effect, **INDIRECT) for effect in (Effect.REPLACED, Effect.REFUSED)],
            [("replaced", "REPLACED", "Nodes go."), ("refused by the service", "REFUSED", "Nodes go.")],
        ),
        # what the change itself says is told singly
        (
            [changed(path, Effect.REPLACED) for path in "AB"],
            [("replaced", "A", "Nodes go."), ("replaced", "B", "Nodes go.")],
        ),
        # what is replaced as it is needs no further reason
        (
            [changed("V", Effect.REPLACED, **INDIRECT), *(changed(path, Effect.REPLACED) for path in "AB")],
            [
                ("replaced", "A", "Nodes go. In addition, V refers to resources that are replaced."),
                ("replaced", "B", "Nodes go."),
            ],
        ),
        # what is refused needs each
        (
            [
                changed("A", Effect.REFUSED, reason="The name is taken."),
                changed("B", Effect.REFUSED, reason="It refers to X, and so it is refused.", **INDIRECT),
            ],
            [
                ("refused by the service", "A", "The name is taken."),
                ("refused by the service", "B", "It refers to X, and so it is refused."),
            ],
        ),
        (
            [changed("Export x:A", Effect.REFUSED, of="export", reason="Y imports it.", **INDIRECT)],
            [("refused by the service", "Export x:A", "Y imports it.")],
        ),
        (
            [
                changed(f"Export x:{each}", Effect.REFUSED, of="export", reason="Y imports it.", **INDIRECT)
                for each in "AB"
            ],
            [("refused by the service", "Export x:A", "Y imports it. The export x:B is imported as well.")],
        ),
        (
            [
                changed(f"Export x:{each}", Effect.REFUSED, of="export", reason="Y imports it.", **INDIRECT)
                for each in "ABC"
            ],
            [
                (
                    "refused by the service",
                    "Export x:A",
                    "Y imports it. The exports x:B and x:C are imported as well.",
                )
            ],
        ),
    ],
)
def test_what_is_one_thing_is_one_line(changes: list[PropertyEffect], said: list[tuple[str, str, str]]) -> None:
    gravest = min((change.effect for change in changes), key=list(Effect).index)
    found = judged(resource(gravest, LUSTRE, stateful=True, properties=tuple(changes))).attention
    assert [(each.effect and each.effect.value, each.property, each.message) for each in found] == said


@pytest.mark.parametrize(
    "each",
    [
        resource(
            Effect.LEFT_BEHIND, LUSTRE, stateful=True, properties=(changed("Export x:A", Effect.REFUSED, of="export"),)
        ),
        resource(Effect.IN_PLACE, properties=(changed("Export x:A", Effect.REFUSED, of="export"),)),
        resource(
            Effect.REPLACED,
            LAYER,
            properties=(changed("Content", Effect.REPLACED), changed("Export x:A", Effect.REFUSED, of="export")),
        ),
    ],
    ids=lambda each: each.effect,
)
def test_what_is_refused_in_part_is_reported_of_everything(each: ResourceEffect) -> None:
    (first, *others) = judged(each).attention
    assert (first.effect, first.property) == (Effect.REFUSED, "Export x:A")
    # and that it is out of its stack, of what holds data
    assert [line.effect for line in others] == [Effect.LEFT_BEHIND] * (each.effect is Effect.LEFT_BEHIND)


def gone(number: int, **given: Any) -> list[ResourceEffect]:
    kinds = ["AWS::IAM::Role", "AWS::EKS::Addon", "AWS::EKS::Addon", "AWS::EC2::Route"]
    return [
        resource(Effect.DELETED, kind, logical_id=str(index), name=f"It{index}", **given)
        for index, kind in enumerate(kinds[:number])
    ]


def test_three_that_merely_follow_are_listed_singly() -> None:
    assert seen(judged(*gone(3))) == [("change", "deleted", f"dev-x / It{index}", "It happens.") for index in range(3)]


def test_more_that_merely_follow_are_one_line() -> None:
    other = Cause(file="environments/dev.yaml", line=8, path="eks", before="1", after="2")
    follows = (
        changed("RoleArn", Effect.DELETED, **INDIRECT, causes=(other, CAUSE)),
        # what only changes beside it is not why it is gone
        changed("Name", Effect.IN_PLACE, **INDIRECT, causes=(OTHER,)),
    )
    together = [*gone(3, causes=(CAUSE,)), resource(Effect.DELETED, properties=follows, causes=(other, CAUSE))]
    found = judged(*together)
    assert seen(found) == [
        (
            "change",
            "deleted",
            "dev-x / It0 and 3 more",
            "2 IAM roles and 2 EKS add-ons, which contain neither data nor nodes: the blast radius lists them.",
        )
    ]
    assert found.attention[0].causes == (CAUSE, other)


def test_what_is_not_mere_consequence_is_never_folded() -> None:
    held = resource(Effect.DELETED, LUSTRE, name="Held", stateful=True)
    chosen = resource(Effect.DELETED, name="Chosen", properties=(changed("Name", Effect.DELETED),))
    unknown = resource(Effect.UNKNOWN, "Custom::A", name="Unknown")
    found = judged(*gone(4), held, chosen, unknown).attention
    assert [each.resource for each in found] == [
        "dev-x / Held",
        "dev-x / Chosen",
        "dev-x / It0 and 3 more",
        "dev-x / Unknown",
    ]


@pytest.mark.parametrize(
    ("path", "of", "is_asked"),
    [
        # a property of somebody's custom resource, whatever it is called
        ("MetadataFormat", "property", False),
        ("Export file", "property", False),
        ("Metadata.AWS::CloudFormation::Init", "metadata", True),
        ("Export x:A", "export", True),
    ],
)
def test_what_more_than_a_custom_resource_depends_on_is_asked(path: str, of: Any, *, is_asked: bool) -> None:
    it = resource(Effect.UNKNOWN, "Custom::A", properties=(changed(path, Effect.UNKNOWN, of=of),))
    assert [each.kind.value for each in judged(it).needs_approval] == ["unknown"] * is_asked


def test_what_is_refused_is_not_folded_away() -> None:
    follows = (
        changed("GroupId", Effect.REPLACED, **INDIRECT),
        changed("Export x:A", Effect.REFUSED, of="export", **INDIRECT),
    )
    some = [
        resource(Effect.REPLACED, logical_id=str(index), name=f"It{index}", properties=follows[: 1 + (index < 3)])
        for index in range(4)
    ]
    assert [(each.effect, each.resource) for each in judged(*some).attention] == [
        (Effect.REPLACED, "dev-x / It0 and 3 more"),
        *((Effect.REFUSED, f"dev-x / It{index}") for index in range(3)),
    ]


def test_other_things_stand_among_the_effects() -> None:
    cost = Cost(region="", prices_as_of="", monthly=Change(before=0, after=100))
    found = judged(
        *(resource(effect, name=effect.value) for effect in (Effect.UNKNOWN, Effect.INTERRUPTED, Effect.REFUSED)),
        cost=cost,
        capacity=Capacity(quotas=(quota(),)),
        policy=Policy(findings=(finding(),)),
        fabric=Fabric(subjects=(proven("file system", S3="broken"),)),
        left_behind=(
            LeftBehind(stack="dev-x", logical_id="Id", type=LUSTRE, name="It", why="It is kept", costs_money=True),
        ),
    ).attention
    assert [each.effect or each.about for each in found] == [
        Effect.REFUSED,
        "quota",
        Effect.INTERRUPTED,
        "fabric",
        Effect.UNKNOWN,
        "policy",
        Effect.LEFT_BEHIND,
        "cost",
    ]


def test_the_gravest_comes_first() -> None:
    found = judged(
        resource(Effect.UNKNOWN, name="a"),
        resource(Effect.REFUSED, name="b"),
        resource(Effect.REPLACED, name="c"),
        resource(Effect.DELETED, name="d"),
        resource(Effect.INTERRUPTED, name="e"),
        resource(Effect.REPLACED, name="f"),
    ).attention
    assert [each.resource[-1] for each in found] == ["c", "f", "d", "b", "e", "a"]


def seen(found: Verdict) -> list[tuple[str, str | None, str, str]]:
    """Each line's ``about``, effect, resource and message."""
    return [(each.about, each.effect and each.effect.value, each.resource, each.message) for each in found.attention]


@pytest.mark.parametrize(
    ("costs", "said"),
    [
        (True, "It is kept. It costs money."),
        (None, "It is kept. It may cost money."),
        (False, None),
    ],
)
def test_left_behind(costs: bool | None, said: str | None) -> None:  # noqa: FBT001 - a table
    left = LeftBehind(stack="dev-x", logical_id="Id", type=LUSTRE, name="It", why="It is kept", costs_money=costs)
    found = judged(left_behind=(left,))
    assert seen(found) == ([("left behind", "left behind", "dev-x / It", said)] if said else [])


def test_left_behind_together() -> None:
    left = [
        LeftBehind(stack=stack, logical_id=name, type=LUSTRE, name=name, why="It is kept.", costs_money=True)
        for stack, name in (("dev-x", "a"), ("dev-y", "b"), ("dev-x", "c"))
    ]
    gone = [
        resource(Effect.LEFT_BEHIND, stack=each.stack, logical_id=each.logical_id, causes=(CAUSE,)) for each in left
    ]
    found = judged(*gone, left_behind=tuple(left))
    assert seen(found) == [
        ("left behind", "left behind", "dev-x / a and 1 more", "It is kept. Each costs money."),
        ("left behind", "left behind", "dev-y / b", "It is kept. It costs money."),
    ]
    assert [each.causes for each in found.attention] == [(CAUSE,), (CAUSE,)]


def test_a_broken_network() -> None:
    proofs = (
        Proof(name="self-reference out", result="broken", detail="no rule lets it out"),
        Proof(name="self-reference in", result="broken", detail="No rule lets it in."),
        Proof(name="one zone", result="unknown", detail="A parameter decides."),
        Proof(name="S3", result="holds", detail="By the gateway."),
    )
    subject = FabricSubject(
        subject="group a",
        kind="instance group",
        stack="dev-x",
        logical_id="Id",
        proofs=proofs,
        newly_broken=("self-reference out",),
    )
    found = judged(fabric=Fabric(subjects=(subject,)))
    assert seen(found) == [
        ("fabric", None, "group a", "No rule lets it out."),
        ("fabric", None, "group a", "No rule lets it in."),
    ]
    assert [(each.property, each.before, each.after) for each in found.attention] == [
        ("self-reference out", "holds", "broken"),
        ("self-reference in", None, "broken"),
    ]


def quota(**given: Any) -> QuotaNeed:
    values = {"name": "p5 for cluster usage", "code": "L-1", "needed": Change(before=8, after=16), "result": "short"}
    return QuotaNeed(**{"recorded": 8, "recorded_on": "2026-10-01", **values, **given})


@pytest.mark.parametrize(
    ("need", "said"),
    [
        (quota(), "16 are needed, the quota is 8 (recorded on 2026-10-01)."),
        (quota(recorded=0.5, recorded_on=None), "16 are needed, the quota is 0.50 (AWS's default)."),
        (quota(result="enough"), None),
        (quota(result="unknown", recorded=None), None),
    ],
)
def test_quotas(need: QuotaNeed, said: str | None) -> None:
    expected = [("quota", None, "p5 for cluster usage", said)] if said else []
    assert seen(judged(capacity=Capacity(quotas=(need,)))) == expected


UNRECORDED = "how many it has is not recorded; run 'hyperpod-cdk plans record dev'."


def plan(used: float | None, seats: int | None, problem: str | None = None) -> PlanSeats:
    return PlanSeats(
        plan="h100-april",
        instance_type="ml.p5.48xlarge",
        used=Change(before=4, after=used),
        seats=seats,
        recorded_on=None,
        problem=problem,
    )


@pytest.mark.parametrize(
    ("seats", "expected"),
    [
        (plan(8, 8), []),
        (plan(9, 8), ["The groups use 9 of 8 ml.p5.48xlarge: 1 more than the plan has."]),
        (
            plan(9, None),
            [f"The groups use 9 ml.p5.48xlarge of the plan, before 4: {UNRECORDED}"],
        ),
        (plan(4, None), []),
        (plan(None, 8), []),
        (plan(8, 8, "It has ended"), ["It has ended."]),
    ],
)
def test_plans(seats: PlanSeats, expected: list[str]) -> None:
    found = judged(capacity=Capacity(plans=(seats,)))
    assert seen(found) == [("plan", None, "h100-april", said) for said in expected]


@pytest.mark.parametrize(
    ("used", "usable", "is_reported"), [(251, 251, False), (252, 251, True), (252, None, False), (None, 251, False)]
)
def test_blocks(used: float | None, usable: int | None, is_reported: bool) -> None:  # noqa: FBT001 - a table
    block = BlockAddresses(
        subnet="subnet a", cidr="10.0.0.0/24", zone_id="use1-az5", used=Change(before=1, after=used), usable=usable
    )
    said = "252 addresses are needed in 10.0.0.0/24, which has 251."
    expected = [("addresses", None, "subnet a", said)] if is_reported else []
    assert seen(judged(capacity=Capacity(blocks=(block,)))) == expected


def grant(**given: Any) -> Grant:
    values = {"change": "added", "kind": "permission", "sentence": "a can do B", "who": "A", "what": (), "which": ()}
    return Grant(**{**values, "stack": "dev-x", "logical_id": "Id", **given})


@row_by_row(
    "given, is_reported",
    [
        (grant(), False),
        (grant(is_wildcard=True), True),
        (grant(effect="Deny", change="removed"), True),
        (grant(kind="trust"), True),
        (grant(kind="trust", who="service account a/b"), True),
        # somebody's ECS service, which is none of AWS
        (grant(kind="trust", who="service web"), True),
        (grant(kind="trust", who="service lambda.amazonaws.com", is_of_service=True), False),
        (grant(kind="cluster access"), False),
        (grant(kind="cluster access", is_grave=True), True),
    ],
)
def test_access(given: Grant, is_reported: bool) -> None:  # noqa: FBT001 - a table
    expected = [("access", None, f"dev-x / {given.who}", "A can do B.")] if is_reported else []
    assert seen(judged(access=Access(grants=(given,)))) == expected


@pytest.mark.parametrize(
    "given",
    [
        grant(change="removed"),
        grant(change="removed", is_wildcard=True),
        grant(change="removed", kind="trust"),
        grant(change="removed", kind="cluster access"),
        grant(effect="Deny"),
    ],
)
@pytest.mark.parametrize("is_relied_on", [False, True])
def test_a_right_that_is_lost_is_reported_and_asked_where_something_runs_by_it(
    given: Grant, *, is_relied_on: bool
) -> None:
    found = judged(access=Access(grants=(given.model_copy(update={"is_relied_on": is_relied_on}),)))
    assert seen(found) == [("access", None, "dev-x / A", "A can do B: requests that rely on it are refused.")]
    assert [each.kind.value for each in found.needs_approval] == ["interruption"] * is_relied_on


def test_a_sentence_that_begins_with_an_arn_leaves_it_as_it_is() -> None:
    given = grant(is_grave=True, sentence="arn:aws:lambda:f is open")
    assert [each.message for each in judged(access=Access(grants=(given,))).attention] == ["arn:aws:lambda:f is open."]


def test_a_right_that_a_wider_statement_still_gives_is_not_lost() -> None:
    given = grant(change="removed", is_relied_on=True)
    covered = given.model_copy(update={"is_covered": True})
    assert seen(judged(access=Access(grants=(covered,)))) == []
    # the words of the sentence decide nothing
    said = given.model_copy(update={"sentence": "a may no longer do B on queue x; a wider statement y"})
    assert [each.kind.value for each in judged(access=Access(grants=(said,))).needs_approval] == ["interruption"]


@pytest.mark.parametrize("effect", [Effect.DELETED, Effect.REPLACED, Effect.LEFT_BEHIND])
def test_what_goes_loses_no_right(effect: Effect) -> None:
    given = grant(change="removed", is_relied_on=True)
    found = judged(resource(effect, logical_id="Id"), access=Access(grants=(given,)))
    assert "refused" not in " ".join(each.message for each in found.attention)


@pytest.mark.parametrize(
    ("change", "is_world", "is_reported"), [("added", True, True), ("added", False, False), ("removed", True, False)]
)
def test_reach(change: Any, is_world: bool, is_reported: bool) -> None:  # noqa: FBT001 - a table
    reach = Reach(change=change, sentence="Anyone reaches it", is_world=is_world, stack="dev-x", logical_id="Id")
    expected = [("access", None, "dev-x / Id", "Anyone reaches it.")] if is_reported else []
    assert seen(judged(access=Access(reach=(reach,)))) == expected


@pytest.mark.parametrize(("given", "is_error"), FINDINGS)
def test_policy(given: PolicyFinding, is_error: bool) -> None:  # noqa: FBT001 - a table
    expected = [("policy", None, "dev-x / It", "It is open.")] if is_error else []
    assert seen(judged(policy=Policy(findings=(given,)))) == expected


@row_by_row(
    "before, after, is_lower_bound, said",
    [
        (1000, 1099, False, None),
        (1000, 1100, False, "Costs $100 more per month, $1,100 in all."),
        (10_000, 10_999, False, None),
        (10_000, 11_000, True, "Costs $1,000 more per month as far as prices are known, at least $11,000 in all."),
        (0, 99, False, None),
        (0, 100, False, "Costs $100 more per month, $100 in all."),
        (1000, 0, False, None),
        (None, 1000, False, None),
        (1000, None, False, None),
    ],
)
def test_cost(before: float | None, after: float | None, is_lower_bound: bool, said: str | None) -> None:  # noqa: FBT001 - a table
    cost = Cost(
        region="us-east-1",
        prices_as_of="2026-01-01",
        monthly=Change(before=before, after=after),
        is_lower_bound=is_lower_bound,
    )
    assert seen(judged(cost=cost)) == ([("cost", None, "cost per month", said)] if said else [])


def told_of(cost: Cost, threshold: float) -> list[tuple[ReasonKind | None, str]]:
    found = findings(
        BlastRadius(),
        capacity=Capacity(),
        cost=cost,
        access=Access(),
        fabric=Fabric(),
        policy=Policy(),
        word="dev",
        monthly_increase_usd=threshold,
    )
    return [(each.kind, each.item.message) for each in found]


PAID_ONCE = "paid once, whether the nodes run or not."


@row_by_row(
    "before, after, threshold, said",
    [
        (0, 1000, 1000, f"Costs $1,000 more, {PAID_ONCE}"),
        (0, 999.99, 1000, None),
        (500, 1500, 1000, f"Costs $1,000 more, {PAID_ONCE}"),
        (5000, 0, 1000, None),
        (0, 0.4, 0, f"Costs $0.40 more, {PAID_ONCE}"),
        # what costs as much as it did costs nothing more, whatever the threshold
        (1000, 1000, 0, None),
        (0, 0, 0, None),
        # told of as what has no known price
        (0, None, 1000, None),
        (None, None, 0, None),
        (None, 0, 0, None),
    ],
)
def test_fees_of_plans(before: float | None, after: float | None, threshold: float, said: str | None) -> None:
    plan = PlanFee(
        plan="p",
        fee=Change(before=before, after=after),
        starts=None,
        ends=None,
        environment_during_window=Change(before=None, after=None),
    )
    cost = Cost(region="us-east-1", prices_as_of="2026-01-01", plans=(plan,))
    assert told_of(cost, threshold) == ([(ReasonKind.COST, said)] if said else [])


@pytest.mark.parametrize(
    ("more", "threshold", "asks", "said"),
    [
        (1000, 1000, True, "Costs $1,000 more per month, $1,000 in all."),
        (1000.01, 1000, True, "Costs $1,000 more per month, $1,000 in all."),
        (999.4, 1000, False, "Costs $999 more per month, $999 in all."),
        (0.01, 0, True, "Costs $0.01 more per month, $0.01 in all."),
        (99.99, 50, True, "Costs $99.99 more per month, $99.99 in all."),
        (0, 0, False, None),
    ],
)
def test_thresholds_at_and_beside_what_is_asked(more: float, threshold: float, said: str | None, *, asks: bool) -> None:
    cost = Cost(region="us-east-1", prices_as_of="2026-01-01", monthly=Change(before=0, after=more))
    assert told_of(cost, threshold) == ([(ReasonKind.COST if asks else None, said)] if said else [])


@pytest.mark.parametrize(
    ("threshold", "said"),
    [
        (0, "it costs no more a month"),
        (-0.0, "it costs no more a month"),
        (0.4, "it costs less than $0.40 more a month"),
        (250.5, "it costs less than $250.50 more a month"),
        (1000, "it costs less than $1,000 more a month"),
        (1_000_000_000, "it costs less than $1,000,000,000 more a month"),
    ],
)
def test_what_is_reported_about_a_cost_that_nobody_is_asked_about(threshold: float, said: str) -> None:
    rules = ReviewRules(thresholds=Thresholds(monthly_increase_usd=threshold))
    line = first_line([], [], changes=True, rules=rules)
    assert line.rpartition(", and ")[2] == f"{said}."


def assembly(body: dict[str, Any], *, is_protected: bool = False, stacks: tuple[str, ...] = ("dev-x",)) -> Assembly:
    made = (
        Stack(
            name=name,
            template={"Resources": {"It": {"Type": LUSTRE, **body}}},
            termination_protection=is_protected,
        )
        for name in stacks
    )
    return Assembly(environment="dev", stacks=tuple(made))


LOST = "The file system loses its protection against deletion."
KEPT = {"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"}
ON, OFF = ({"Properties": {"DeletionProtection": each}} for each in (True, False))


@row_by_row(
    "base, head, said",
    [
        (assembly(KEPT), assembly(KEPT), []),
        (
            assembly(KEPT),
            assembly({}),
            [
                (
                    "The file system is deleted with its content once it is removed from its stack or is replaced; "
                    "until now it was kept."
                )
            ],
        ),
        (
            assembly(KEPT),
            assembly({"DeletionPolicy": "Retain"}),
            ["The file system is deleted with its content once it is replaced; until now it was kept."],
        ),
        (
            assembly({"DeletionPolicy": "Snapshot"}),
            assembly({"DeletionPolicy": "Delete"}),
            [
                (
                    "The file system is deleted with its content once it is removed from its stack; until now a "
                    "snapshot of it was kept."
                )
            ],
        ),
        (assembly({}), assembly(KEPT), []),
        (
            assembly({"DeletionPolicy": "Retain"}),
            assembly({"DeletionPolicy": "Snapshot"}),
            [
                (
                    "The file system is deleted with its content once it is removed from its stack, and a snapshot "
                    "of it is kept; until now it was kept."
                )
            ],
        ),
        (assembly(ON), assembly(OFF), [LOST]),
        (assembly(ON), assembly({}), [LOST]),
        (assembly(OFF), assembly(ON), []),
        (
            assembly({}, is_protected=True),
            assembly({}),
            ["The stack dev-x loses its termination protection: any later delete-stack succeeds."],
        ),
        (
            assembly({}, is_protected=True, stacks=("dev-x", "dev-y", "dev-z")),
            assembly({}, stacks=("dev-x", "dev-y", "dev-z")),
            [("The stacks dev-x, dev-y and dev-z lose their termination protection: any later delete-stack succeeds.")],
        ),
        (assembly({}), assembly({}, is_protected=True), []),
    ],
)
def test_protection(base: Assembly, head: Assembly, said: list[str]) -> None:
    found = lifted_protection(base, head, compare(base, head))
    assert [each.message for each in found] == said
    assert {(each.about, each.effect) for each in found} <= {("protection", None)}
    assert judged(protection=found).attention == tuple(found)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (KEPT, {}, ("DeletionPolicy and UpdateReplacePolicy", "Retain", None)),
        (
            {**KEPT, "DeletionPolicy": "RetainExceptOnCreate"},
            {"DeletionPolicy": "Delete", "UpdateReplacePolicy": "Delete"},
            ("DeletionPolicy and UpdateReplacePolicy", "RetainExceptOnCreate and Retain", "Delete"),
        ),
        (KEPT, {"DeletionPolicy": "Delete"}, ("DeletionPolicy and UpdateReplacePolicy", "Retain", "Delete and none")),
        ({"DeletionPolicy": "Snapshot"}, {}, ("DeletionPolicy", "Snapshot", None)),
        (ON, OFF, ("DeletionProtection", "true", "false")),
        (ON, {}, ("DeletionProtection", "true", None)),
    ],
)
def test_protection_before_and_after(before: Any, after: Any, expected: tuple[str, str, str | None]) -> None:
    base, head = assembly(before), assembly(after)
    known = resource(Effect.IN_PLACE, LUSTRE, logical_id="It", causes=(CAUSE,))
    (found,) = lifted_protection(base, head, compare(base, head), [known])
    assert (found.property, found.before, found.after) == expected
    assert (found.resource, found.causes) == ("dev-x / It", (CAUSE,))
    paths = expected[0].split(" and ")
    changes = (*(changed(each, Effect.IN_PLACE, causes=(CAUSE,)) for each in paths), BESIDE)
    (found,) = lifted_protection(base, head, compare(base, head), [known.model_copy(update={"properties": changes})])
    assert found.causes == (CAUSE,)
    (found,) = lifted_protection(base, head, compare(base, head), [known.model_copy(update={"properties": (BESIDE,)})])
    assert found.causes == ()


OTHER = CAUSE.model_copy(update={"line": 9, "path": "tags.a"})
BESIDE = changed("Version", Effect.IN_PLACE, causes=(OTHER,))


def roles(number: int, **policies: str) -> Assembly:
    made = {f"Role{index}": {"Type": "AWS::IAM::Role", **policies} for index in range(number)}
    held = {"Held": {"Type": LUSTRE, **policies}}
    return Assembly(environment="dev", stacks=(Stack(name="dev-x", template={"Resources": {**made, **held}}),))


def test_three_that_hold_nothing_are_listed_singly() -> None:
    base, head = roles(3, DeletionPolicy="Retain"), roles(3)
    assert [(each.resource, each.message) for each in lifted_protection(base, head, compare(base, head))] == [
        (
            "dev-x / Held",
            "The file system is deleted with its content once it is removed from its stack; until now it was kept.",
        ),
        *(
            (
                f"dev-x / Role{index}",
                "The IAM role is deleted once it is removed from its stack; until now it was kept.",
            )
            for index in range(3)
        ),
    ]


def test_more_that_hold_nothing_are_one_line() -> None:
    base, head = roles(4, DeletionPolicy="Retain"), roles(4)
    known = [resource(Effect.IN_PLACE, logical_id=f"Role{index}", causes=(CAUSE,)) for index in range(4)]
    _, found = lifted_protection(base, head, compare(base, head), known)
    assert found == Attention(
        effect=None,
        about="protection",
        resource="dev-x / Role0 and 3 more",
        message="4 IAM roles, which contain neither data nor nodes, lose their protection against deletion.",
        causes=(CAUSE,),
    )


def test_a_new_environment_brings_its_usual_access_in_one_line() -> None:
    def grant(who: str, **given: Any) -> Grant:
        values = {"what": ("s3:*",), "which": ("*",), "is_wildcard": True, "stack": "dev-x", "logical_id": "Id"}
        return Grant(change="added", kind="permission", sentence=f"{who} may do it", who=who, **{**values, **given})

    usual = tuple(grant(f"role {letter}") for letter in "abc")
    grave = grant("role admin", is_grave=True)
    way = Reach(change="added", sentence="it reaches out", is_world=True, stack="dev-x", logical_id="Id")
    access = Access(grants=(*usual, grave), reach=(way,))

    first = judged(resource(Effect.ADDED), access=access).attention
    assert [(each.resource, each.message) for each in first] == [
        ("dev-x / role admin", "Role admin may do it."),
        (
            "additions of a new environment",
            (
                "3 statements with a wildcard or another trust, and 1 way to or from any address: the section about "
                "access lists them."
            ),
        ),
    ]
    few = judged(resource(Effect.ADDED), access=Access(grants=(*usual[:2], grave), reach=(way,))).attention
    assert [each.message for each in few] == [
        "Role admin may do it.",
        "It reaches out.",
        "Role a may do it.",
        "Role b may do it.",
    ]
    later = judged(resource(Effect.ADDED), resource(Effect.IN_PLACE), access=access).attention
    assert len(later) == 5


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        # what is about it, alone or beside something else
        ((("ResourcesVpcConfig.PublicAccessCidrs", CAUSE),), [CAUSE]),
        ((("ResourcesVpcConfig.PublicAccessCidrs", CAUSE), ("Tags.a", OTHER)), [CAUSE]),
        # a wrong line is worse than none
        ((("Tags.a", OTHER),), []),
        ((("ResourcesVpcConfig.PublicAccessCidrs", None), ("Tags.a", OTHER)), []),
        # what is new has the lines that made it
        ((), [CAUSE]),
    ],
)
def test_a_reason_of_access_has_the_lines_that_allow_it(
    properties: tuple[tuple[str, Cause | None], ...], expected: list[Cause]
) -> None:
    changes = tuple(changed(path, Effect.IN_PLACE, causes=(line,) if line else ()) for path, line in properties)
    lines = (CAUSE,) if not properties else tuple(line for _, line in properties if line)
    effect = Effect.IN_PLACE if properties else Effect.ADDED
    of = resource(effect, "AWS::EKS::Cluster", properties=changes, causes=lines)
    grant = Grant(
        change="added",
        kind="cluster access",
        sentence="it does",
        who="role a",
        what=("x",),
        which=(),
        is_grave=True,
        stack="dev-x",
        logical_id="Id",
    )
    way = Reach(change="added", sentence="it reaches", is_grave=True, is_world=True, stack="dev-x", logical_id="Id")
    asked = judged(of, access=Access(grants=(grant,), reach=(way,))).needs_approval
    assert [list(each.causes) for each in asked] == [expected, expected]


@pytest.mark.parametrize(
    ("properties", "about", "else_"),
    [
        # what runs on nodes is no number of them, and an item's name is no property
        (
            ("InstanceGroups.SourceS3Uri",),
            "InstanceGroups[a].LifeCycleConfig.SourceS3Uri",
            "InstanceGroups[a].InstanceCount",
        ),
        ((), "InstanceGroups[a].ExecutionRole", "InstanceGroups[a].InstanceCount"),
        ((), "SecurityGroupIngress[0].CidrIp", "Tags[Role].Value"),
        (("InstanceGroups.OnCreate",), "InstanceGroups[a]", "RestrictedInstanceGroups[a].OnCreate"),
        (
            ("SecurityGroupIds",),
            "InstanceGroups[a].OverrideVpcConfig.SecurityGroupIds",
            "InstanceGroups[a].ExecutionRole",
        ),
        (("SecurityGroupIds",), "InstanceGroups[a]", "Tags[a]"),
        (("PublicAccessCidrs",), "ResourcesVpcConfig.PublicAccessCidrs", "AccessConfig.AuthenticationMode"),
    ],
)
def test_a_reason_of_access_has_only_the_lines_of_its_own_properties(
    properties: tuple[str, ...], about: str, else_: str
) -> None:
    changes = (
        changed(about, Effect.IN_PLACE, causes=(CAUSE,)),
        changed(else_, Effect.IN_PLACE, causes=(OTHER,)),
    )
    of = resource(Effect.IN_PLACE, CLUSTER, properties=changes, causes=(CAUSE, OTHER))
    given = {"change": "added", "is_grave": True, "stack": "dev-x", "logical_id": "Id", "properties": properties}
    grant = Grant(kind="trust", sentence="it does", who="role a", what=("x",), which=(), **given)
    access = Access(grants=(grant,), reach=(Reach(sentence="it reaches", **given),))
    assert [each.causes for each in judged(of, access=access).needs_approval] == [(CAUSE,), (CAUSE,)]


def test_what_comes_as_a_part_has_its_properties_within() -> None:
    part = changed("InstanceGroups[a].LifeCycleConfig", Effect.IN_PLACE, after='{"OnCreate": "x"}', causes=(CAUSE,))
    other = changed("InstanceGroups[a].KubernetesConfig", Effect.IN_PLACE, after='{"Labels": {}}', causes=(OTHER,))
    of = resource(Effect.IN_PLACE, CLUSTER, properties=(part, other), causes=(CAUSE, OTHER))
    by = ("InstanceGroups.OnCreate",)
    given = {"is_grave": True, "is_world": True, "stack": "dev-x", "logical_id": "Id", "properties": by}
    way = Reach(change="added", sentence="it reaches", **given)
    assert [each.causes for each in judged(of, access=Access(reach=(way,))).needs_approval] == [(CAUSE,)]


def test_a_line_of_something_else_is_no_cause() -> None:
    changes = (changed("Version", Effect.REPLACED), changed("Tags.a", Effect.IN_PLACE, causes=(OTHER,)))
    of = resource(Effect.REPLACED, CLUSTER, properties=changes, causes=(OTHER,))
    assert [each.causes for each in judged(of).needs_approval] == [()]


def test_a_reason_of_cost_has_the_lines_of_the_properties_that_decide_it() -> None:
    changes = (
        changed("StorageCapacity", Effect.IN_PLACE, causes=(CAUSE,)),
        changed("LustreConfiguration.DataCompressionType", Effect.IN_PLACE, causes=(OTHER,)),
    )
    of = resource(Effect.IN_PLACE, LUSTRE, properties=changes, causes=(CAUSE, OTHER))
    paid = Paid(stack="dev-x", logical_id="Id", properties=("StorageCapacity",))
    unpriced = Unpriced(what="n", kind="storage", unit="", quantity=Change(before=0, after=1), missing="m", of=(paid,))
    cost = Cost(region="us-east-1", prices_as_of="2026-01-01", unpriced=(unpriced,))
    assert [each.causes for each in judged(of, cost=cost).needs_approval] == [(CAUSE,)]


def test_a_reason_of_cost_has_the_lines_of_the_groups_that_cost_more() -> None:
    changes = (
        changed("InstanceGroups[a].InstanceCount", Effect.IN_PLACE, causes=(CAUSE,)),
        changed("InstanceGroups[b].InstanceCount", Effect.IN_PLACE, causes=(OTHER,)),
        changed("Tags.a", Effect.IN_PLACE, causes=(OTHER,)),
    )
    of = resource(Effect.IN_PLACE, CLUSTER, properties=changes, causes=(CAUSE, OTHER))
    paid = Paid(stack="dev-x", logical_id="Id", item="a")
    line = {"kind": "nodes", "what": "x", "unit_price": 1.0, "unit": "", "resource": "dev-x / It[a]"}
    cost = Cost(
        region="us-east-1",
        prices_as_of="2026-01-01",
        lines=(
            CostLine(**line, of=paid, monthly=Change(before=0, after=5000)),
            CostLine(**line, of=paid.model_copy(update={"item": "b"}), monthly=Change(before=9, after=9)),
        ),
        unpriced=(
            Unpriced(what="n", kind="nodes", unit="", quantity=Change(before=0, after=1), missing="m", of=(paid,)),
        ),
        monthly=Change(before=0, after=5000),
    )
    asked = judged(of, cost=cost).needs_approval
    assert [(each.kind.value, each.causes) for each in asked] == [("cost", (CAUSE,)), ("cost", (CAUSE,))]


def test_reasons_stand_in_the_order_of_what_they_cost_who_reads_them() -> None:
    lost = resource(Effect.DELETED, LUSTRE, name="Lost", logical_id="L", stateful=True)
    unknown = resource(Effect.UNKNOWN, LUSTRE, name="Unknown", logical_id="U", stateful=True)
    grant = Grant(
        change="added",
        kind="cluster access",
        sentence="it does",
        who="role a",
        what=("x",),
        which=(),
        is_grave=True,
        stack="dev-x",
        logical_id="A",
    )
    cost = Cost(region="us-east-1", prices_as_of="2026-01-01", monthly=Change(before=0, after=80_000))
    stopped = resource(Effect.INTERRUPTED, CLUSTER, name="Stopped", logical_id="S", stateful=True)
    found = judged(unknown, stopped, lost, access=Access(grants=(grant,)), cost=cost).needs_approval
    assert [each.kind.value for each in found] == ["deletion", "access", "interruption", "cost", "unknown"]


@row_by_row(
    "policy, oldest",
    [
        ("ELBSecurityPolicy-TLS13-1-3-2021-06", "TLS 1.3"),
        ("ELBSecurityPolicy-TLS13-1-2-Res-PQ-2025-09", "TLS 1.2"),
        ("ELBSecurityPolicy-TLS-1-2-Ext-2018-06", "TLS 1.2"),
        ("ELBSecurityPolicy-TLS-1-1-2017-01", "TLS 1.1"),
        ("ELBSecurityPolicy-FS-1-2-Res-2020-10", "TLS 1.2"),
        ("ELBSecurityPolicy-FS-2018-06", "TLS 1.0"),
        ("ELBSecurityPolicy-2016-08", "TLS 1.0"),
        ("TLSv1.3_2025", "TLS 1.3"),
        ("TLSv1.2_2021", "TLS 1.2"),
        ("TLSv1_2016", "TLS 1.0"),
        ("TLSv1", "TLS 1.0"),
        ("SSLv3", "SSL 3"),
        ("Policy-Min-TLS-1-2-PFS-2023-10", "TLS 1.2"),
        ("Policy-Min-TLS-1-0-2019-07", "TLS 1.0"),
        ("TLS_1_2", "TLS 1.2"),
        ("SecurityPolicy_TLS13_1_3_2025_09", "TLS 1.3"),
        ("Ours", ""),
        ("", ""),
    ],
)
def test_which_version_of_tls_a_policy_lets_in_follows_from_its_name(policy: str, oldest: str) -> None:
    def said(before: str, after: str) -> list[str]:
        change = PropertyChange(steps=("SslPolicy",), before=before, after=after)
        return [clause for *_, clause in lifted(change)]

    newest, older = "ELBSecurityPolicy-TLS13-9-9", "SSLv2"
    assert said(newest, policy) == (
        [f"connections with {oldest} are accepted, until now from TLS 9.9 on"] if oldest else []
    )
    assert said(policy, newest) == said(policy, policy) == said(policy, older) == []
