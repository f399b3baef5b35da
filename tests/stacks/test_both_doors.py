"""Every wrong file at the other door: the constructs that it asks for, without the file's own rules in between.

What a construct refuses it refuses with ValueError, in a sentence of the file's, whole with its fix and with keys and
values as Python writes them. A rule that constructs cannot know stands in ``ONLY_THE_FILE``, a file that never reaches
a construct in ``NEVER_BUILT``, one that is refused in another sentence in ``IN_OTHER_WORDS``, and one whose fix is
another one for callers of constructs in ``ANOTHER_FIX``, each with the reason: what is neither refused nor listed
fails, and so does a file that is listed and refused after all, or refused in the file's sentence or with its fix.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from hyperpod_cdk import HyperPodChart
from hyperpod_cdk.catalog.sentences import in_python
from hyperpod_cdk.config import Environment, EnvironmentFileError, load_environment
from hyperpod_cdk.config.draft import Faults, draft
from hyperpod_cdk.config.rules import RULES
from hyperpod_cdk.config.source import DataPath, read_source
from hyperpod_cdk.findings import Finding, Severity
from hyperpod_cdk_stacks.environment import HyperPodEnvironment
from tests.config.conftest import FILE, HERE, TODAY, rows_of
from tests.support.assembly import light_app

_SYNTAX = "about the text of the file"
_KEYS = "about the keys of the file; a misspelt argument is Python's TypeError"
_SECTIONS = "about sections of the file that exclude each other, of which the stacks read one"
_TWO = "about two constructs, of which neither knows the other"
_GROUPS = "TaskGovernance knows teams and no instance groups"
_STAGE = "about the stage, its account or its region: no construct has such an argument"
_TAGS = "CDK's Tags, which no construct takes"
_SPAN = "about the addresses of all nodes, file systems and endpoints; Network knows none of them"
_RESOLVED = "the stacks pass on what the file resolves; the construct itself refuses, as its own tests show"

ONLY_THE_FILE: Mapping[str, str] = {
    "accelerated_groups_say_their_capacity": _RESOLVED,
    "restricted_groups_say_their_capacity": _RESOLVED,
    "borrow_limit_goes_with_borrowing": _RESOLVED,
    "additional_endpoints_add_something": _RESOLVED,
    "endpoints_stand_in_zones_of_the_network": _RESOLVED,
    "closed_network_has_no_way_out": _RESOLVED,
    "addon_versions_are_of_addons_asked_for": _TWO,
    "addon_versions_are_of_known_addons": "one mapping holds the versions of all constructs; each reads its own",
    "pinned_addons_suit_the_operators": _TWO,
    "elastic_training_has_a_new_operator": "whether jobs are elastic is a word to the file's rules only",
    "claims_are_unique": _TWO,
    "claims_name_teams": _TWO,
    "checkpoint_accounts_are_unique": _TWO,
    "checkpoint_namespaces_are_there": _TWO,
    "file_system_names_are_unique": _TWO,
    "existing_file_systems_are_named_once": _TWO,
    "file_systems_key_has_file_systems": _TWO,
    "notifications_key_has_a_topic": _TWO,
    "model_buckets_are_distinct": "the driver takes a bucket for each of its users, and may be given one twice",
    "group_stands_in_a_listed_zone": _TWO,
    "adopted_groups_are_of_this_cluster": _TWO,
    "somebody_is_notified": "programs may subscribe to the topic that Notifications makes",
    "thresholds_are_of_published_events": "an argument left at its default says nothing",
    "pools_go_with_autoscaling": _TWO,
    "pools_name_autoscaled_groups": _TWO,
    "each_autoscaled_group_has_one_pool": _TWO,
    "control_plane_has_subnets": _TWO,
    "existing_eks_stands_in_an_existing_network": _TWO,
    "services_have_addresses_of_their_own": "what blocks its IVpc has ControlPlane cannot know",
    "existing_eks_states_its_version": "an argument without default in ExistingControlPlane",
    "existing_file_system_is_only_claimed": _SECTIONS,
    "bucket_key_is_of_a_bucket_to_make": _SECTIONS,
    "secrets_key_is_of_a_cluster_to_make": _SECTIONS,
    "eks_is_made_or_exists": _SECTIONS,
    "network_is_made_or_exists": _SECTIONS,
    "installed_addons_are_distinct": _SECTIONS,
    "operators_that_stand_already_are_not_configured": _SECTIONS,
    "unused_operator_settings": _SECTIONS,
    "vpc_blocks_are_distinct": "ExistingNetwork takes the primary block alone",
    "closed_network_reaches_its_images": "HyperPodDependencies knows no network",
    "node_block_holds_its_nodes": _SPAN,
    "vpc_block_holds_its_endpoints": _SPAN,
    "node_volumes_of_restricted_groups_keep_the_key_of_aws": "RestrictedGroup takes no key",
    "quotas_are_of_types_in_the_cluster": _GROUPS,
    "quotas_are_within_capacity": _GROUPS,
    "group_names_its_types": "the stacks read the types ahead of the construct",
    "permissions_boundary_is_in_reach": _STAGE,
    "region_runs_hyperpod": _STAGE,
    "stated_instance_types_are_new": _STAGE,
    "tag_key": _TAGS,
    "tag_value": _TAGS,
    "tags_differ_by_more_than_case": _TAGS,
    "texts_are_no_references": "constructs take references on purpose: CDK's tokens",
    "no_aliases": _SYNTAX,
    "no_duplicate_keys": _SYNTAX,
    "no_tags": _SYNTAX,
    "missing_key": "an argument without default; Python's TypeError",
    "type": "of a type that Python's own and mypy refuse, and that the stacks read ahead of the construct",
    "unknown_key": _KEYS,
}

NEVER_BUILT: Mapping[str, str] = {
    "identity-boundary_is_no_policy": _STAGE,
    "existing-security_group_is_a_name": "constructs take CDK's ISecurityGroup",
    "existing-installed_addon_of_the_owner": _SECTIONS,
    "existing-installed_addon_misspelt": _SECTIONS,
    "existing-installed_addon_unknown": _SECTIONS,
    "storage-file_system_name_in_capitals": "a construct id, which CDK judges",
    "storage-claim_without_namespace": "the stacks make no claim for no namespace; VolumeClaims refuses it",
    "task_governance-provider_misspelt": "the stacks choose between the two kinds of resources",
    "several-value_and_rule_in_one_group": "the stacks read the count, a text there, ahead of the construct",
    "karpenter-karpenter_misspelt": "the stacks make KarpenterAutoscaling, or make none",
}


_FIRST = (
    "another construct meets the value first, and refuses what follows from it; no construct has this rule's argument"
)
_OTHER_ARGUMENT = "the argument is of another kind than the field, and its sentence says what it takes"
_TYPE = "the type of an argument is judged ahead of its value, in Python's words, and not what YAML may have read"
_MORE_IS_KNOWN = "the file names what else it holds, of which the construct does not know"

IN_OTHER_WORDS: Mapping[str, str] = {
    "identity-tag_value_is_a_date": _TYPE,
    "identity-quota_check_is_no": _TYPE,
    "network-nat_gateways_is_true": _TYPE,
    "eks-kubernetes_to_base_60": _TYPE,
    "eks-endpoint_is_a_truth": _TYPE,
    "eks-public_blocks_are_on": _TYPE,
    "task_governance-vcpu_is_text": _TYPE,
    "hyperpod-label_value_is_a_truth": _TYPE,
    "hyperpod-taint_without_effect": _TYPE,
    "storage-efa_is_yes": _TYPE,
    "text-alias": _TYPE,
    "text-tag": _TYPE,
    "notify-budget_with_its_unit": _TYPE,
    "notify-a_percentage_with_its_sign": _TYPE,
    "identity-account_too_short": _FIRST,
    "identity-unknown_region": _FIRST,
    "existing-network_missing": "an argument without default, for which the stacks pass on that there is no zone",
    "eks-kubernetes_1_12": "a construct warns of what HyperPod does not take, and refuses what it has no kubectl for",
    "eks-kubernetes_beyond_hyperpod": "a construct warns of what HyperPod does not take, and refuses as above",
    "eks-kubernetes_without_quotes": "Python has the number alone, and not how it was written",
    "karpenter-default_pool_too_large": _MORE_IS_KNOWN,
    "nodes-restricted_groups_without_their_dependencies": _OTHER_ARGUMENT,
}


_STATED = "state the type's numbers under instance_types:"
_CONTINUOUS = {"hyperpod.provisioning": "provisioning"}
_GATE = {
    "enforce, warn or off": "enforce or warn",
    "set quota_check to one of these": "leave out the gate to turn it off",
}
_BLOCK = {"node_cidr": "availability_zones['use1-az4']"}
_NAMED = {"create or the ARN": "the ARN"}
_LIKE_A_KEY = (
    "correct arn, which must look like arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
)
CALLED_OTHERWISE: Mapping[str, Mapping[str, str]] = {
    "network-node_block_overlaps_the_vpc": {**_BLOCK, " of vpc_cidr": ""},
    "network-node_blocks_overlap": {**_BLOCK, " of the nodes in use1-az5": ""},
    "network-node_block_of_a_range_aws_does_not_add": _BLOCK,
    "network-node_block_beyond_28": _BLOCK,
    "identity-quota_check_is_no": _GATE,
    "identity-unknown_quota_check": _GATE,
    "storage-file_system_in_a_zone_not_listed": {
        "network.availability_zones": "availability_zones",
        "set availability_zone_id to one of these, or add the zone there": (
            "leave out a zone without a file system of this network"
        ),
    },
    "task_governance-limit_is_no_quantity": {"set requests.memory to": "set resource_quota['requests.memory'] to"},
    "task_governance-limit_without_quotes": {
        ", which YAML reads as the number 16": "",
        'write requests.nvidia.com/gpu as "16"': "write requests.nvidia.com/gpu as text",
    },
    "encryption-key_by_id": {**_NAMED, "set node_volumes: create, or write the whole ARN": _LIKE_A_KEY},
    "encryption-key_by_alias": _NAMED,
    "encryption-key_of_aws": {**_NAMED, "set file_systems: create, or write the whole ARN": _LIKE_A_KEY},
    "operators-prometheus_workspace_by_its_id": {
        **_NAMED,
        "write create to create one, or the ARN of one that exists, such as": (
            "correct prometheus_workspace_arn, which must look like"
        ),
    },
    "identity-name_in_capitals": {"set name=": "set environment_name="},
    "identity-name_too_long": {"set name=": "set environment_name="},
    "identity-tags_are_a_list": {"below tags,": "below log_group_tags,"},
    "existing-vpc_block_with_host_bits": {"vpc_cidrs[0]": "vpc_cidr"},
    "existing-eks_name_with_a_blank": {"correct cluster_name": "correct eks_cluster_name"},
    "hyperpod-tiered_checkpointing_below_20": {"set memory_percent": "set tiered_checkpointing_memory_percent"},
    "hyperpod-unknown_type": {_STATED: "pass an InstanceType with its numbers"},
    "hyperpod-type_without_prefix": {_STATED: "pass an InstanceType with its numbers"},
    "hyperpod-type_unlike_any": {
        ", which 'hyperpod-cdk schema' lists": "",
        _STATED: "pass an InstanceType with its numbers",
        "set instance_type ": "set instance_types ",
    },
    "hyperpod-spot_without_continuous": _CONTINUOUS,
    "hyperpod-min_count_without_continuous": _CONTINUOUS,
    "hyperpod-flexible_without_continuous": _CONTINUOUS,
    "hyperpod-label_value_with_a_blank": {"set team=": "set labels.team="},
    "storage-backups_for_91_days": {"set retention_days": "set backup_retention_days"},
    "storage-backup_time_without_backups": {"set retention_days": "set backup_retention_days"},
    "storage-backup_time_without_a_zero": {"correct start_time": "correct backup_start_time"},
    "task_governance-default_queue_of_an_old_kueue": {"raise the version in eks.addon_versions": "raise addon_version"},
    "task_governance-quota_of_an_unknown_type": {_STATED: "state the type's numbers in stated_types"},
    "restricted-restricted_unknown_type": {_STATED: "pass an InstanceType with its numbers"},
    "encryption-existing_bucket_of_another_name": {"correct name": "correct bucket"},
    "encryption-existing_bucket_key_to_create": {"correct kms_key_arn": "correct arn"},
    "karpenter-karpenter_without_node_recovery": {"hyperpod.node_recovery": "node_recovery"},
    "karpenter-pool_of_unlike_taints": {"its own pool of karpenter_pools": "its own pool"},
    "karpenter-default_pool_of_unlike_taints": {"its own pool of karpenter_pools": "its own pool"},
    "notify-topic_by_name": {"correct sns_topic_arn": "correct topic_arn"},
    "notify-ordered_topic": {"correct sns_topic_arn": "correct topic_arn"},
    "task_governance-absolute_limits_of_a_lender": {"strategy": "sharing"},
    "restricted-restricted_without_file_system": {"hyperpod.restricted_environment to share": "shared_environment"},
    "restricted-shared_environment_without_groups": {"restricted_instance_groups": "restricted_groups"},
    "encryption-key_of_a_topic_that_stands": {"notify.sns_topic_arn": "topic_arn"},
}
"""Words of the file's sentence -> those of the construct's.

Its argument has another name than the field, or one value less: what makes a key or a workspace, or leaves the gate
out, is another construct, or none.
"""


_ONE_BLOCK = "the construct divides the blocks itself, and does not know which of the two subnets is deployed"
_A_BLOCK = "the construct does not know the other blocks of its caller's network, and names no free one"
_LEFT_OUT = "an argument is left out, a field is removed or written as none"
_OBJECT = "the argument is an object, not a mapping or a word"

ANOTHER_FIX: Mapping[str, tuple[str, str]] = {
    "identity-tags_are_a_list": (_TYPE, "write log_group_tags={...}"),
    "eks-public_blocks_are_text": (_TYPE, 'write public_access_cidrs=["54.240.193.128/26"]'),
    "hyperpod-count_is_a_fraction": (_TYPE, "write count in digits"),
    "task_governance-limit_without_quotes": (_TYPE, "write resource_quota['requests.nvidia.com/gpu']=\"16\""),
    "storage-efa_is_text": (_TYPE, "write efa=True or efa=False"),
    "operators-a_new_and_an_existing_workspace": (_TYPE, "write prometheus_workspace_arn as text"),
    "network-node_blocks_of_two_local_zones": (_ONE_BLOCK, "set availability_zones['use1-chi2-az1'] to a free block"),
    "eks-block_that_another_zone_has_by_default": (_ONE_BLOCK, "set availability_zones['use1-az4'] to a free block"),
    "network-node_block_overlaps_the_vpc": (_A_BLOCK, "set availability_zones['use1-az4'] to a free block"),
    "network-node_blocks_overlap": (_A_BLOCK, "set availability_zones['use1-az4'] to a free block"),
    "network-node_block_of_a_range_aws_does_not_add": (
        _A_BLOCK,
        "set availability_zones['use1-az4'] to a block of 10.0.0.0/8",
    ),
    "existing-one_control_plane_subnet": ("ControlPlane makes a cluster; ExistingControlPlane is another", "add 1"),
    "existing-control_plane_subnet_twice": ("the argument may list more subnets than two", "remove one of the two"),
    "task_governance-memory_is_a_word": (
        "its type is judged before the field, which has an example",
        "write memory_gib in digits",
    ),
    "restricted-restricted_without_file_system": (_OBJECT, "set lustre=ServiceLustre(...)"),
    "restricted-shared_environment_without_groups": (_LEFT_OUT, "pass one or leave out shared_environment"),
    "encryption-node_volumes_without_continuous_provisioning": (
        _LEFT_OUT,
        'set provisioning="continuous", or leave volume_kms_key_arn out',
    ),
    "encryption-key_of_a_topic_that_stands": (_LEFT_OUT, "remove topic_key, and set the key on that topic itself"),
    "operators-prometheus_workspace_of_another_account": (
        _OBJECT,
        "name one of the account, or make one with PrometheusWorkspace",
    ),
    "operators-prometheus_workspace_in_another_region": (
        _OBJECT,
        "name one of the region, or make one with PrometheusWorkspace",
    ),
    "operators-grafana_workspace_of_another_account": (
        _OBJECT,
        "name one of the account, or make one with GrafanaWorkspace",
    ),
    "operators-network_metrics_at_a_level_that_is_not": ("the sentence names the argument", "set one of these"),
    "karpenter-karpenter_without_continuous": (_LEFT_OUT, 'set provisioning="continuous", or leave out autoscaling'),
    "karpenter-karpenter_without_node_recovery": (_LEFT_OUT, 'set node_recovery="automatic", or leave out autoscaling'),
    "karpenter-karpenter_without_a_group_to_scale": (_LEFT_OUT, "set count=0 in one, or leave out autoscaling"),
}
"""Cases whose construct proposes another fix than the file -> the reason, and that fix."""


OF_THE_FILE = frozenset({"operators-inference_without_an_oidc_provider"})
"""Cases that the stacks refuse themselves, in the file's words."""

_AS_IN_A_FILE = re.compile(
    r"\b(add|got|needs|raise|set|such as|with|write) [a-z_.]+(\[[^\]]*\])*: "
    r"|\b(got|must be|to) (true|false)\b|\bin quotes\b|\bafter [a-z_.]+:"
)
"""How a sentence states a key, a value or how it is written for a file; Python has ``key=value`` and ``True``."""


class _Everything(Faults):
    """All of the file is built as it stands, right or wrong."""

    def __init__(self) -> None:
        super().__init__((), lists=(), keys=())

    def touch(self, path: DataPath) -> bool:  # noqa: ARG002 - the shape of Faults
        return True


@pytest.mark.examples
@pytest.mark.timeout(900)
@pytest.mark.parametrize("section", list(rows_of("wrong_files.yaml")))
def test_what_the_file_refuses_a_construct_refuses(section: str, base: str, tmp_path: Path) -> None:
    _both_doors(section, list(rows_of("wrong_files.yaml")[section]), base, tmp_path)


@pytest.mark.parametrize("section", list(rows_of("wrong_files.yaml")))
def test_some_of_each_section_a_construct_refuses(section: str, base: str, tmp_path: Path) -> None:
    """The same of a few, which take seconds."""
    cases = list(rows_of("wrong_files.yaml")[section])
    _both_doors(section, cases[:: max(1, len(cases) // 2)], base, tmp_path)


def _both_doors(section: str, cases: Sequence[str], base: str, tmp_path: Path) -> None:
    unlisted, refused_after_all, in_other_words, in_its_words, other_fixes = [], [], [], [], []
    as_in_a_file = []
    for case in cases:
        text = base
        for old, new in rows_of("wrong_files.yaml")[section][case]["change"].items():
            text = text.replace(old, new)
        name, found = f"{section}-{case}", _errors_of(text)
        rules = {finding.rule for finding in found}
        said = _refusal(text, tmp_path)
        if said is not None and _AS_IN_A_FILE.search(said) and name not in OF_THE_FILE:
            as_in_a_file.append((name, said))
        called = CALLED_OTHERWISE.get(name, {})
        is_same = said is not None and any(
            _core(finding.message, called) in _core(said, whole=True) for finding in found
        )
        if said is None and not (name in NEVER_BUILT or rules <= set(ONLY_THE_FILE)):
            unlisted.append((name, sorted(rules)))
        elif said is not None and name in NEVER_BUILT:
            refused_after_all.append(name)
        elif said is not None and not is_same and name not in IN_OTHER_WORDS:
            in_other_words.append((name, said))
        elif is_same and name in IN_OTHER_WORDS:
            in_its_words.append(name)
        elif said is not None and is_same:
            has_the_fix = any(_core(each.message, called, whole=True) in _core(said, whole=True) for each in found)
            fixes = {line.partition("; ")[2] for line in said.splitlines()}
            if has_the_fix is (name in ANOTHER_FIX) or (name in ANOTHER_FIX and ANOTHER_FIX[name][1] not in fixes):
                other_fixes.append((name, sorted(fixes)))
    assert (unlisted, refused_after_all, in_other_words, in_its_words, other_fixes) == ([], [], [], [], [])
    assert as_in_a_file == []


def test_what_is_listed_exists() -> None:
    cases = {f"{section}-{case}" for section, rows in rows_of("wrong_files.yaml").items() for case in rows}
    assert {*NEVER_BUILT, *IN_OTHER_WORDS, *ANOTHER_FIX, *CALLED_OTHERWISE, *OF_THE_FILE} <= cases
    of_values = {
        "missing_key",
        "no_aliases",
        "no_duplicate_keys",
        "no_tags",
        "tag_key",
        "tag_value",
        "type",
        "unknown_key",
    }
    assert set(ONLY_THE_FILE) <= {rule.name for rule in RULES} | of_values


@pytest.fixture(scope="session")
def base() -> str:
    """The text of the valid file that each row changes."""
    return (HERE / "base.yaml").read_text(encoding="utf-8")


def _errors_of(text: str) -> list[Finding]:
    with pytest.raises(EnvironmentFileError) as caught:
        load_environment(FILE, text=text, today=TODAY)
    return [finding for finding in caught.value.findings if finding.severity is Severity.ERROR]


def _core(message: str, called: Mapping[str, str] | None = None, *, whole: bool = False) -> str:
    """Return a sentence without its fix, or ``whole``, in the words of ``called``.

    Which list an index is of, and whether a fix says how old its facts are, is each caller's word.
    """
    said = in_python(message)
    said = said if whole else said.partition("; ")[0]
    for field, argument in (called or {}).items():
        said = said.replace(field, argument)
    return re.sub(r" \(as of [0-9-]+\)$", "", re.sub(r"[\w.]+(\[[0-9]+\])", r"\1", said))


def _refusal(text: str, outdir: Path) -> str | None:
    """Say what a construct refuses; what breaks ahead of any construct, in the file's own models, is no refusal."""
    app = light_app(outdir)
    try:
        environment = draft(Environment, read_source(text, "x").data, _Everything())
        HyperPodEnvironment(
            app, "prod", environment=environment, chart=HyperPodChart.placeholder(), lifecycle_scripts=None
        )
    except ValueError as refused:
        return str(refused)
    except Exception:  # noqa: BLE001 - whatever the drafted models or jsii make of values of the wrong type
        return None
    return None
