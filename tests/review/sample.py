"""A report made by hand in which every part is filled, and one that says nothing, for the tests of the renderings."""

from __future__ import annotations

from functools import cache

from hyperpod_cdk.review.model import (
    Access,
    Attention,
    BlastRadius,
    BlockAddresses,
    Capacity,
    CapacityTotal,
    Cause,
    Change,
    Cost,
    CostLine,
    Effect,
    Excepted,
    Fabric,
    FabricSubject,
    Grant,
    GroupCapacity,
    LeftBehind,
    Level,
    Minutes,
    PlanFee,
    PlanSeats,
    Policy,
    PolicyFinding,
    Proof,
    PropertyEffect,
    QuotaNeed,
    Reach,
    Reason,
    ReasonKind,
    Report,
    ResourceEffect,
    Side,
    Step,
    Timeline,
    Verdict,
)

HOSTILE = (
    "a | b",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "--> <h1>out of the comment</h1>",
    "`one` ``two`` ```three",
    "`",
    "first\nsecond\r\n# third\n\n- fourth",
    "@octocat and @org/team please look, mail me@example.com",
    "#123 GH-7 org/repo#9 deadbeefcafe 0123456789abcdef0123456789abcdef01234567",
    "https://evil.example/?a=1&b=2 www.evil.example [click](javascript:alert(1)) ![x](https://evil.example/x.png)",
    "**bold** _it_ ~~gone~~ \\| \\\\| &lt; &amp;amp; $5 and $6 $`x`$ $$y$$",
    "\U0001f680 :tada: \U0001f469\u200d\U0001f4bb",
    "\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627 \u202etxt.exe\u202c \u2066x\u2069",
    "nul \x00 bell \x07 escape \x1b[31mred half \ud800",
    "</details></td></table></style>",
    "{{ 7 * 7 }} {% raw %}",
    "1. one",
    "> quoted",
    "",
)
"""Texts that a template or an environment file may hold and that no rendering may take for its own."""

LONG = "prod-hyperpod/Cluster/InstanceGroups/very-long-name-that-nobody-would-choose-but-somebody-will/Provider/" * 2
EFFECTS = {
    Effect.REPLACED: ("AWS::FSx::FileSystem", "Lustre/scratch", "LustreConfiguration.DeploymentType", True),
    Effect.DELETED: ("AWS::SageMaker::Cluster", "Cluster", "InstanceGroups[preprocess]", True),
    Effect.REFUSED: ("AWS::EKS::Cluster", "ControlPlane", "Version", True),
    Effect.INTERRUPTED: ("AWS::SageMaker::Cluster", "Cluster", "InstanceGroups[train].LifeCycleConfig", True),
    Effect.UNKNOWN: ("Custom::Foreign", "Foreign", "Anything", False),
    Effect.LEFT_BEHIND: ("AWS::S3::Bucket", "Scripts", "BucketName", True),
    Effect.IN_PLACE: ("AWS::EKS::Addon", "Addon", "AddonVersion", False),
    Effect.ADDED: ("AWS::IAM::Role", "TeamRole", "AssumeRolePolicyDocument", False),
}
ABOUT = ("protection", "fabric", "quota", "plan", "addresses", "access", "policy", "cost")
"""What there is to look at beside changes to resources."""
GROUP_PATH = "hyperpod.instance_groups[1].count"


@cache
def rich_report(*, resources: int = 8, rows: int = 6, hostile: tuple[str, ...] = HOSTILE) -> Report:
    """Return a report with every section filled; ``resources`` and ``rows`` say how long its lists are."""
    texts = hostile or ("plain",)
    cause = Cause(file="environments/prod.yaml", line=31, path=GROUP_PATH, before="16", after="24")
    gone = Cause(file="environments/prod.yaml", line=None, path="storage.lustre.scratch", before="there", after=None)
    effects = list(EFFECTS)
    changed = tuple(
        ResourceEffect(
            stack="prod-hyperpod",
            logical_id=f"Resource{index}",
            type=EFFECTS[effect][0],
            name=f"{EFFECTS[effect][1]}{index}" if index else LONG,
            effect=effect,
            stateful=EFFECTS[effect][3],
            summary=f"It is {effect}: {texts[index % len(texts)]}",
            properties=(
                PropertyEffect(
                    path=EFFECTS[effect][2],
                    before=texts[index % len(texts)],
                    after=texts[(index + 1) % len(texts)],
                    effect=effect,
                    reason="The property is create-only.",
                    source="CloudFormation schema",
                ),
                PropertyEffect(
                    path="Tags[cost-centre]",
                    after="4711",
                    effect=Effect.IN_PLACE,
                    reason="Tags change without an interruption.",
                    source="https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-resource.html?a=1&b=2",
                ),
            ),
            causes=(cause, gone),
        )
        for index, effect in ((i, effects[i * len(effects) // resources]) for i in range(resources))
    )
    return Report(
        environment="prod",
        base=Side(label="main", commit="5c92d1c0ffee", environment_file="environments/prod.yaml"),
        head=Side(label="feature/bigger | faster", environment_file="environments/prod.yaml"),
        verdict=Verdict(
            level=Level.REPLACED,
            sentence="The file system scratch is replaced and its data is lost; 16 nodes of train are interrupted.",
            approval="Needs approval by platform: 1 replacement; by a person: 1 cost.",
            needs_approval=(
                Reason(
                    kind=ReasonKind.REPLACEMENT,
                    resource="prod-data / Lustre/scratch",
                    property="LustreConfiguration.DeploymentType",
                    sentence="The property is create-only.",
                    causes=(cause,),
                    approvers=("platform", "data | owners"),
                ),
                Reason(kind=ReasonKind.COST, resource="cost per month", sentence=texts[0]),
            ),
            excepted=(
                Excepted(
                    reason=Reason(kind=ReasonKind.ACCESS, resource=texts[-1], sentence=texts[0]),
                    because=texts[-1],
                    owner="security",
                    expires="2027-03-31",
                ),
            ),
            reviewed_on="2026-11-22",
            attention=(
                *(
                    Attention(
                        effect=effect,
                        resource=f"prod-hyperpod / {name}",
                        property=path,
                        before=texts[index % len(texts)],
                        after=texts[(index + 3) % len(texts)],
                        message=f"{text} (number {index})",
                        causes=(cause,),
                    )
                    for index, text in enumerate(texts)
                    for effect, (_, name, path, _) in (list(EFFECTS.items())[index % 5],)
                ),
                *(
                    Attention(
                        effect=None,
                        about=about,
                        resource=f"prod-hyperpod / {texts[index % len(texts)]}",
                        before="holds" if index % 2 else None,
                        after="broken" if index % 3 else None,
                        message=f"Look at the {about}.",
                    )
                    for index, about in enumerate(ABOUT)
                ),
            ),
        ),
        blast_radius=BlastRadius(
            resources=changed,
            left_behind=(
                LeftBehind(
                    stack="prod-data",
                    logical_id="Lustre",
                    type="AWS::FSx::FileSystem",
                    name="Lustre/scratch",
                    why="UpdateReplacePolicy is Retain",
                    costs_money=True,
                ),
                LeftBehind(
                    stack="prod-data",
                    logical_id="Scripts",
                    type="AWS::S3::Bucket",
                    name=texts[0],
                    why=texts[-1],
                    costs_money=None,
                ),
            ),
            counts={effect: sum(each.effect == effect for each in changed) for effect in reversed(effects)},
            schemas_as_of="2026-10-01",
        ),
        capacity=_capacity(texts, rows),
        cost=_cost(texts, rows),
        access=_access(texts, rows),
        fabric=_fabric(texts, rows),
        timeline=_timeline(texts, rows),
        policy=_policy(texts, rows),
        notes=tuple(texts),
    )


def quiet_report() -> Report:
    """Return the report of a change that changes nothing."""
    return Report(
        environment="prod",
        base=Side(label="main"),
        head=Side(label="main"),
        verdict=Verdict(
            level=Level.NONE,
            approval="Needs no approval, because no deployed resource changes.",
            sentence="Nothing changes.",
        ),
        blast_radius=BlastRadius(),
        capacity=Capacity(),
        cost=Cost(region="us-east-1", prices_as_of="2026-11-20"),
        access=Access(),
        fabric=Fabric(),
        timeline=Timeline(),
        policy=Policy(),
    )


def _capacity(texts: tuple[str, ...], rows: int) -> Capacity:
    groups = tuple(
        GroupCapacity(
            name=f"train-{index}",
            instance_types=("ml.p5.48xlarge", "ml.p5en.48xlarge") if index % 3 == 2 else ("ml.p5.48xlarge",),
            zone_ids=("use1-az5",) if index % 4 else (),
            capacity="training plan h100-april" if index % 2 else "on-demand",
            nodes=Change(before=16, after=24 if index == 0 else 16),
            accelerator="H100 80 GB" if index % 2 == 0 else None,
            accelerators=Change(before=128, after=192 if index == 0 else 128),
            efa_interfaces=Change(before=512, after=None if index == 1 else 512),
        )
        for index in range(rows)
    )
    return Capacity(
        groups=groups,
        totals=(
            CapacityTotal(
                instance_type="ml.p5.48xlarge",
                zone_id="use1-az5",
                nodes=Change(before=16, after=24),
                accelerators=Change(before=128, after=192),
                efa_interfaces=Change(before=512, after=768),
            ),
        ),
        plans=(
            PlanSeats(
                plan="h100-april",
                instance_type="ml.p5.48xlarge",
                used=Change(before=16, after=24),
                seats=16,
                recorded_on="2026-11-20",
                problem="24 instances do not fit into 16 seats",
            ),
            PlanSeats(
                plan=texts[0],
                instance_type="ml.trn2.48xlarge",
                used=Change(before=0, after=4),
                seats=None,
                recorded_on=None,
            ),
        ),
        blocks=(
            BlockAddresses(
                subnet="prod-network / Vpc/private1",
                cidr="10.1.0.0/16",
                zone_id="use1-az5",
                used=Change(before=1301, after=1949),
                usable=65_531,
                note=texts[1 % len(texts)],
            ),
            BlockAddresses(
                subnet="imported", cidr="unknown", zone_id="unknown", used=Change(before=None, after=None), usable=None
            ),
        ),
        quotas=(
            QuotaNeed(
                name="ml.p5.48xlarge for cluster usage",
                code="L-1234ABCD",
                needed=Change(before=16, after=24),
                recorded=20,
                recorded_on="2026-11-01",
                result="short",
            ),
            QuotaNeed(
                name="VPCs per Region",
                code="L-F678F1CE",
                needed=Change(before=1, after=1),
                recorded=5,
                recorded_on=None,
                result="enough",
            ),
            QuotaNeed(
                name=texts[2 % len(texts)],
                code=None,
                needed=Change(before=None, after=3),
                recorded=None,
                recorded_on=None,
                result="unknown",
            ),
        ),
        notes=(texts[3 % len(texts)], "Addresses are those of nodes at full use."),
    )


def _cost(texts: tuple[str, ...], rows: int) -> Cost:
    return Cost(
        region="us-east-1",
        prices_as_of="2026-11-20",
        lines=(
            *(
                CostLine(
                    resource=f"prod-hyperpod / Cluster, group train-{index}",
                    kind="nodes",
                    what=f"{16 + index} x ml.p5.48xlarge, on demand",
                    unit_price=63.296,
                    unit="instance-hour",
                    monthly=Change(before=739_297.28, after=739_297.28 + 1_000 * index),
                )
                for index in range(rows)
            ),
            CostLine(
                resource="prod-network / Nat",
                kind="network",
                what=texts[1 % len(texts)],
                unit_price=0.045,
                unit="hour",
                monthly=Change(before=0, after=32.85),
                note="Data processing is by use.",
            ),
            CostLine(
                resource="prod-hyperpod / Group new",
                kind="nodes",
                what="4 x ml.p6-b300.48xlarge",
                unit_price=None,
                unit="instance-hour",
                monthly=Change(before=0, after=None),
                note=texts[4 % len(texts)],
            ),
        ),
        monthly=Change(before=12_345, after=13_000),
        is_lower_bound=True,
        plans=(
            PlanFee(
                plan="h100-april",
                fee=Change(before=0, after=1_234_567.5),
                starts="2027-04-01",
                ends="2027-04-15",
                environment_during_window=Change(before=None, after=6_500),
                note=texts[5 % len(texts)],
            ),
        ),
        unknown=("ml.p6-b300.48xlarge in us-east-1", texts[6 % len(texts)]),
        notes=("A month has 730 hours.",),
    )


def _access(texts: tuple[str, ...], rows: int) -> Access:
    return Access(
        grants=(
            *(
                Grant(
                    change="added" if index % 2 else "removed",
                    kind=("permission", "trust", "cluster access", "resource policy")[index % 4],
                    sentence=f"The role of team {index} may read every object of {texts[index % len(texts)]}",
                    who=f"team-{index}",
                    what=("s3:GetObject",),
                    which=("arn:aws:s3:::bucket/*",),
                    condition='{"StringEquals": {"aws:SourceAccount": "1|2"}}' if index % 2 else None,
                    effect="Deny" if index == 3 else "Allow",
                    is_wildcard=index % 3 == 0,
                    stack="prod-teams",
                    logical_id=f"Role{index}",
                )
                for index in range(rows)
            ),
        ),
        reach=(
            Reach(
                change="added",
                sentence="Any address reaches the nodes on port 22.",
                is_world=True,
                stack="prod-network",
                logical_id="NodeSecurityGroup",
            ),
            Reach(change="removed", sentence=texts[7 % len(texts)], stack="prod-network", logical_id="Endpoint"),
        ),
        wildcards=Change(before=2, after=3),
        notes=(texts[8 % len(texts)],),
    )


def _fabric(texts: tuple[str, ...], rows: int) -> Fabric:
    proofs = (
        Proof(name="self-reference in", result="holds", detail="sg NodeSecurityGroup allows all from itself"),
        Proof(name="self-reference out", result="broken", detail=texts[9 % len(texts)]),
        Proof(name="ECR", result="unknown", detail="The route table is not in the template."),
    )
    return Fabric(
        subjects=(
            *(
                FabricSubject(
                    subject=f"train-{index}",
                    kind="instance group",
                    stack="prod-hyperpod",
                    logical_id="Cluster",
                    proofs=proofs if index == 1 else proofs[:1],
                    newly_broken=("self-reference out",) if index == 1 else (),
                )
                for index in range(rows)
            ),
            FabricSubject(
                subject=texts[10 % len(texts)],
                kind="file system",
                stack="prod-data",
                logical_id="Lustre",
                proofs=proofs[2:],
            ),
        )
    )


def _timeline(texts: tuple[str, ...], rows: int) -> Timeline:
    return Timeline(
        steps=tuple(
            Step(
                stack="prod-hyperpod",
                logical_id=f"Step{index}",
                type="AWS::SageMaker::Cluster",
                name=f"{('Cluster', 'Lustre', 'Addon', 'Role')[index % 4]}{index} {texts[index % len(texts)]}",
                action=("update", "replace", "create", "delete")[index % 4],
                starts=Minutes(low=5 * index, high=7.5 * index),
                lasts=Minutes(low=0.5, high=20),
                is_critical=index % 2 == 0,
                source=(
                    "https://docs.aws.amazon.com/fsx/latest/LustreGuide/getting-started.html"
                    if index % 2
                    else f"not published: {texts[index % len(texts)]}"
                ),
                if_it_fails="The stack rolls back; the new file system stays and costs $1,200 a month.",
            )
            for index in range(rows)
        ),
        total=Minutes(low=35, high=125),
        critical_path=tuple(f"prod-hyperpod / Step{index}" for index in range(0, rows, 2)),
        durations_as_of="2026-10-15",
        notes=(texts[11 % len(texts)],),
    )


def _policy(texts: tuple[str, ...], rows: int) -> Policy:
    return Policy(
        findings=tuple(
            PolicyFinding(
                rule="AwsSolutions-IAM5",
                severity="error" if index % 2 else "warning",
                resource=f"prod-teams / Role{index}",
                message=f"The statement holds a wildcard: {texts[index % len(texts)]}",
                status=("new", "standing", "resolved")[index % 3],
                suppressed="The action has no resource-level permission." if index % 4 == 3 else None,
            )
            for index in range(rows)
        ),
        skipped=(texts[12 % len(texts)], "cdk-nag needs the construct tree."),
    )
