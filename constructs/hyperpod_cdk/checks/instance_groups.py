"""What instance groups depend on in the account: images, alarms, and nodes that Karpenter has created."""

from __future__ import annotations

from collections.abc import Iterator

from hyperpod_cdk.catalog.sentences import plural
from hyperpod_cdk.checks.answers import Among, Aws, HyperPodClusterAnswer, ImageAnswer, NotAnswered
from hyperpod_cdk.checks.model import Case, Detail, Found, check, error, unanswered, warning
from hyperpod_cdk.config import InstanceGroup

AREA = "instance-groups"


@check(
    area=AREA,
    asks=("images",),
    inputs="image.ami_id and the types of every instance group.",
    passes="Every AMI exists in the region, is available, of the types' architecture, unencrypted, with one volume, and"
    " the account's own or a public one, as HyperPod's are.",
    fails="An AMI does not exist in the region or is not shared with the account, is not available yet, is for another"
    " architecture, is encrypted, has further volumes, or belongs to another account: HyperPod refuses the group.",
    skips="EC2 does not answer; an AMI that it showed is still checked.",
    by_hand="aws ec2 describe-images --image-ids ami-0123456789abcdef0 --query 'Images[].[State, Architecture, OwnerId,"
    " Public, BlockDeviceMappings[].Ebs.Encrypted]'",
)
def images_can_be_booted(case: Case, aws: Aws) -> Iterator[Found]:
    """HyperPod checks the AMI only when it creates the group, after everything else was created."""
    wanted = {
        index: group.image.ami_id
        for index, group in enumerate(case.environment.hyperpod.instance_groups)
        if group.image.ami_id not in (None, "default")
    }
    images = aws.images(sorted({str(ami_id) for ami_id in wanted.values()})) if wanted else Among({})
    for index, ami_id in wanted.items():
        path = f"hyperpod.instance_groups[{index}].image.ami_id"
        try:
            image = images.get(str(ami_id))
        except NotAnswered as missing:
            yield unanswered(missing, path, about=str(ami_id))
            continue
        if image is None:
            yield error(
                path,
                f"needs an AMI that account {case.environment.account} may use in {case.environment.region}, got"
                f" {ami_id}, which does not exist there; copy it to the region, or correct the ID",
            )
            continue
        for problem in _image_problems(case, image, case.environment.hyperpod.instance_groups[index]):
            yield error(path, f"{problem}; build the AMI again on the public HyperPod AMI, or use another")


def _image_problems(case: Case, image: ImageAnswer, group: InstanceGroup) -> Iterator[str]:
    if image.state != "available":
        yield f"needs an available AMI, got {image.image_id}, which is {image.state}"
    for name in group.all_instance_types:
        row = case.environment.instance_type(name)
        if row is not None and row.architecture != image.architecture:
            yield (
                f"needs an AMI for {row.architecture}, the architecture of {name}, got {image.image_id} for"
                f" {image.architecture}"
            )
    if image.encrypted:
        yield f"needs an unencrypted AMI, got {image.image_id}, whose volume is encrypted"
    if image.volumes > 1:
        yield f"needs an AMI with one volume, got {image.image_id} with {image.volumes}"
    if image.owner != case.environment.account and not image.public:
        yield f"needs an AMI of account {case.environment.account} itself, got {image.image_id} of {image.owner}"


@check(
    area=AREA,
    asks=("alarms",),
    inputs="patching.rollback_alarms of every instance group.",
    passes="Every alarm exists in the region, and none of them is in state ALARM.",
    fails="An alarm does not exist: nothing would roll a bad update back. One that is in ALARM now is a warning, since"
    " an update would be rolled back immediately.",
    skips="CloudWatch does not answer; an alarm that it showed is still checked.",
    by_hand="aws cloudwatch describe-alarms --alarm-names node-deficit --query 'MetricAlarms[].[AlarmName,"
    " StateValue]'",
)
def rollback_alarms_exist(case: Case, aws: Aws) -> Iterator[Found]:
    """HyperPod identifies alarms by name, so an alarm with this name must exist."""
    named = [
        (f"hyperpod.instance_groups[{index}].patching.rollback_alarms[{place}]", name)
        for index, group in enumerate(case.environment.hyperpod.instance_groups)
        if group.patching is not None
        for place, name in enumerate(group.patching.rollback_alarms)
    ]
    states = aws.alarms(sorted({name for _, name in named})) if named else Among({})
    for path, name in named:
        try:
            state = states.get(name)
        except NotAnswered as missing:
            yield unanswered(missing, path, about=name)
            continue
        if state is None:
            yield error(
                path,
                f'needs a CloudWatch alarm of {case.environment.region}, got "{name}", which does not exist; create the'
                " alarm, or correct the name",
            )
        elif state == "ALARM":
            yield warning(path, f"{name} is in ALARM, so an update would be rolled back at once; fix its cause first")


@check(
    area=AREA,
    asks=("hyperpod_clusters",),
    inputs="autoscaling; count of every instance group; the counts of the existing cluster.",
    passes="There is no such cluster yet, or the deployment removes no nodes that Karpenter created, and gives it none"
    " that it would remove.",
    fails="Never; an effect on nodes is a warning: autoscaling is disabled and groups change to the"
    " count of the file, or it is enabled and Karpenter removes the nodes of groups that now have count 0.",
    skips="AWS does not answer for the HyperPod clusters.",
    by_hand="aws sagemaker describe-cluster --cluster-name prod --query '[AutoScaling, InstanceGroups[]"
    ".[InstanceGroupName, TargetCount]]'",
)
def autoscaled_nodes_are_kept(case: Case, aws: Aws) -> Iterator[Found]:
    """Counts of the file and counts of the cluster differ if Karpenter scales: see docs/decisions/0011."""
    environment = case.environment
    cluster = aws.hyperpod_clusters().named(environment.hyperpod_cluster_name)
    if cluster is None:
        return
    targets = {group.group: group.target for group in cluster.groups}
    goes_on = environment.hyperpod.autoscaling == "karpenter"
    for index, group in enumerate(environment.hyperpod.instance_groups):
        found = _change(cluster, goes_on=goes_on, group=group, target=targets.get(group.name, 0))
        if found:
            yield warning(f"hyperpod.instance_groups[{index}].count", found)
        elif goes_on and group.count == 0:
            yield Detail(text=f"{group.name} keeps the {targets.get(group.name, 0)} nodes that Karpenter has created")


@check(
    area=AREA,
    asks=("hyperpod_clusters",),
    inputs="autoscaling and tiered_checkpointing; those of the existing cluster.",
    passes="There is no such cluster yet, or the file keeps or explicitly disables what it has enabled.",
    fails="Never; a warning if the file only leaves out what the cluster has enabled: UpdateCluster changes what"
    " the request contains, so AWS may leave it enabled.",
    skips="AWS does not answer for the HyperPod clusters.",
    by_hand="aws sagemaker describe-cluster --cluster-name prod --query '[AutoScaling, TieredStorageConfig]'",
)
def what_is_left_out_is_off(case: Case, aws: Aws) -> Iterator[Found]:
    """Find what stays enabled unless the file disables it."""
    section = case.environment.hyperpod
    wanted = case.environment.hyperpod_cluster_name
    cluster = aws.hyperpod_clusters().named(wanted)
    if cluster is None:
        return
    if cluster.autoscaled and section.autoscaling == "none":
        yield warning(
            "hyperpod.autoscaling",
            f"autoscaling is enabled in {cluster.name}, and leaving it out of the file may keep it enabled; set"
            " autoscaling:"
            " disabled until it is disabled",
        )
    if cluster.checkpoints_in_memory and section.tiered_checkpointing is None:
        yield warning(
            "hyperpod.tiered_checkpointing",
            f"tiered checkpointing is enabled in {cluster.name} and reserves memory on every node, and leaving it out"
            " of"
            " the file may keep it enabled; set tiered_checkpointing: {enabled: false} until it is disabled",
        )


def _change(cluster: HyperPodClusterAnswer, *, goes_on: bool, group: InstanceGroup, target: int) -> str | None:
    if cluster.autoscaled and not goes_on and target > group.count:
        return (
            f"this deployment disables autoscaling, and {group.name} changes from {target} {plural(target, 'node')} to"
            f" {group.count}; set count: {target} to keep {plural(target, 'it', 'them')}"
        )
    if not cluster.autoscaled and goes_on and group.count == 0 and target > 0:
        return (
            f"this deployment enables autoscaling, and the {target} {plural(target, 'node')} of {group.name}, which"
            f" Karpenter did not create, {plural(target, 'is', 'are')} removed; set count: {target} to keep"
            f" {plural(target, 'it', 'them')}, and let Karpenter scale another group"
        )
    return None
