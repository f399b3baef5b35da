"""Retention and protection that a change reduces: shorter periods, versions and backups switched off, removed locks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.templates.difference import MISSING, PropertyChange
from hyperpod_cdk.templates.values import Unknown, plain

_KEEPS: Final[dict[str, str]] = {
    "AutomaticBackupRetentionDays": "backups are kept for",
    "AutomatedSnapshotRetentionPeriod": "snapshots are kept for",
    "BackupRetentionPeriod": "backups are kept for",
    "DataRetentionInHours": "data is kept for",
    "DeleteAfterDays": "backups are kept for",
    "Days": "objects are kept for",
    "ExpirationInDays": "objects are kept for",
    "AutomaticBackupReplicationRetentionPeriod": "backups in the other region are kept for",
    "FinalSnapshotRetentionPeriod": "the last snapshot is kept for",
    "MagneticStoreRetentionPeriodInDays": "records are kept for",
    "ManualSnapshotRetentionPeriod": "snapshots are kept for",
    "MemoryStoreRetentionPeriodInHours": "records can be written and read at once for",
    "MessageRetentionPeriod": "messages are kept for",
    "MinRetentionDays": "backups are locked for",
    "NoncurrentDays": "older versions are kept for",
    "NoncurrentVersionExpirationInDays": "older versions are kept for",
    "PendingWindowInDays": "a deleted key can be restored for",
    "RecoveryPeriodInDays": "the table can be restored for",
    "RetainInterval": "snapshots or images are kept for",
    "RetentionDays": "it is kept for",
    "RetentionInDays": "logs are kept for",
    "RetentionLockTimeInDays": "tapes are locked for",
    "RetentionPeriodValue": "deleted data can be restored for",
    "RetentionPeriod": "data is kept for",
    "RetentionPeriodHours": "records are kept for",
    "RetentionPeriodInDays": "data is kept for",
    "SnapshotCopyRetentionPeriod": "snapshots in the other region are kept for",
    "SnapshotRetentionLimit": "snapshots are kept for",
    "SnapshotRetentionPeriod": "snapshots are kept for",
    "Years": "objects are kept for",
}
"""Properties of any type that state how long something is kept; a lower value is shorter."""

_UNITS: Final[dict[str, str]] = {
    **dict.fromkeys(("DataRetentionInHours", "MemoryStoreRetentionPeriodInHours", "RetentionPeriodHours"), "hour"),
    **dict.fromkeys(("RetainInterval", "RetentionPeriodValue"), ""),
    "MessageRetentionPeriod": "second",
    "Years": "year",
}
"""The units of those that are not in days; empty if another property has the unit (the properties' pages)."""

_KEEPS_BELOW: Final[dict[tuple[str, str], str]] = {
    ("RetainRule", "Count"): "this number of snapshots or images is kept:",
    ("RetainRule", "Interval"): "snapshots or images are kept for",
    ("RetentionArchiveTier", "Count"): "this number of archived snapshots is kept:",
    ("RetentionArchiveTier", "Interval"): "archived snapshots are kept for",
}
"""Properties whose names have another meaning elsewhere, by the key above them."""

_UNITS_BELOW: Final = {
    # SNS has days where SQS has seconds
    ("ArchivePolicy", "MessageRetentionPeriod"): "day",
    **dict.fromkeys(_KEEPS_BELOW, ""),
}

_FOREVER_WITHOUT: Final = frozenset(
    {
        *("DeleteAfterDays", "ExpirationInDays", "ManualSnapshotRetentionPeriod", "NoncurrentDays", "RetentionInDays"),
        *("NoncurrentVersionExpirationInDays", "RetentionDays"),
    }
)
"""Properties for which none, or -1, means for ever, so that any number is less."""

_NONE_WITHOUT: Final = frozenset({"Days", "MinRetentionDays", "RetentionLockTimeInDays", "Years"})
"""Properties without which nothing is kept or locked."""

_SWITCHES: Final[dict[str, tuple[str, ...]]] = {
    "BgpLogEnabled": ("true",),
    "CacheDataEncrypted": ("true",),
    "CloudWatchEncryptionEnabled": ("true",),
    "DeletionProtection": ("true", "ACTIVE", "active", "ENABLED"),
    "DeletionProtectionEnabled": ("true",),
    "DisableApiTermination": ("true",),
    "EnableTerminationProtection": ("true",),
    "EnableDeletionProtection": ("true",),
    "EnableKeyRotation": ("true",),
    "DeleteProtection": ("true",),
    "DeletionProtected": ("true",),
    "DeletionProtectionStatus": ("ENABLED",),
    "TerminationProtected": ("true",),
    "ManagedTerminationProtection": ("ENABLED",),
    "SubnetChangeProtection": ("true",),
    "FirewallPolicyChangeProtection": ("true",),
    "AvailabilityZoneChangeProtection": ("true",),
    "ReplicationOverwriteProtection": ("ENABLED",),
    "MutationProtection": ("ENABLED",),
    "ActionsEnabled": ("true",),
    "CloudWatchMetricsEnabled": ("true",),
    "SampledRequestsEnabled": ("true",),
    "EnablePerformanceInsights": ("true",),
    "PerformanceInsightsEnabled": ("true",),
    "AtRestEncryptionEnabled": ("true",),
    "AutomaticFailoverEnabled": ("true",),
    "EnableIAMDatabaseAuthentication": ("true",),
    "EnableLogFileValidation": ("true",),
    "Encrypted": ("true",),
    "EnforceHTTPS": ("true",),
    "HookStatus": ("ENABLED",),
    "EnableContinuousBackup": ("true",),
    "EnforceWorkGroupConfiguration": ("true",),
    "HttpTokens": ("required",),
    "EncryptionSupport": ("enable",),
    "InCluster": ("true",),
    "IngestionEnabled": ("true",),
    "KMSEncrypted": ("true",),
    "LogEnabled": ("true",),
    "RequireTLS": ("true",),
    "RootVolumeEncryptionEnabled": ("true",),
    "UserVolumeEncryptionEnabled": ("true",),
    "UserRoleRequired": ("true",),
    "RequireInstanceProperties": ("true",),
    "IsLogging": ("true",),
    "IsMultiRegionTrail": ("true",),
    "MfaDelete": ("Enabled",),
    "MultiAZ": ("true",),
    "S3EncryptionEnabled": ("true",),
    "SSEEnabled": ("true",),
    "ScanOnPush": ("true",),
    "ScanType": ("ENHANCED",),
    "SqsManagedSseEnabled": ("true",),
    "TransitEncryption": ("ENABLED",),
    "StorageEncrypted": ("true",),
    "TransitEncryptionEnabled": ("true",),
    "ObjectLockEnabled": ("true", "Enabled"),
    "ObjectOwnership": ("BucketOwnerEnforced",),
    "NewInstancesProtectedFromScaleIn": ("true",),
    "NodeRecovery": ("Automatic",),
    "PointInTimeRecoveryEnabled": ("true",),
    "PreserveOnDelete": ("true",),
    "RecursiveLoop": ("Terminate",),
    "TerminationProtectionEnabled": ("true",),
}
_SWITCHES_OF: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("AWS::DLM::LifecyclePolicy", "State"): ("ENABLED",),
}
"""Switches that protect only on one type, by the type: the same name has another meaning elsewhere."""

_LADDERS: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("", "ImageTagMutability"): ("IMMUTABLE", "IMMUTABLE_WITH_EXCLUSION", "MUTABLE_WITH_EXCLUSION", "MUTABLE"),
    ("", "InternetGatewayBlockMode"): ("block-bidirectional", "block-ingress", "off"),
    ("", "AssertionEncryptionMode"): ("Required", "Allowed"),
    ("", "DeletionProtection"): ("prevent-all-deletion", "prevent-force-deletion", "none"),
    ("", "FailureMode"): ("FAIL", "WARN"),
    ("", "LoggingLevel"): ("INFO", "ERROR", "NONE"),
    ("", "MfaConfiguration"): ("ON", "OPTIONAL", "OFF"),
    ("", "RetentionLockType"): ("COMPLIANCE", "GOVERNANCE", "NONE"),
    ("", "State"): ("block-all-sharing", "block-new-sharing", "unblocked"),
    ("", "TransitEncryptionMode"): ("required", "preferred"),
    ("CustomOriginConfig", "OriginProtocolPolicy"): ("https-only", "match-viewer", "http-only"),
    **{
        (behavior, "ViewerProtocolPolicy"): ("https-only", "redirect-to-https", "allow-all")
        for behavior in ("CacheBehaviors", "DefaultCacheBehavior")
    },
    **{
        ("AuditLogConfiguration", name): ("SUCCESS_AND_FAILURE", "FAILURE_ONLY", "SUCCESS_ONLY", "DISABLED")
        for name in ("FileAccessAuditLogLevel", "FileShareAccessAuditLogLevel")
    },
    ("LogConfiguration", "Level"): ("WARN_ERROR", "ERROR_ONLY", "WARN_ONLY", "DISABLED"),
    ("Auth", "IAMAuth"): ("REQUIRED", "ENABLED", "DISABLED"),
    ("CodeSigningPolicies", "UntrustedArtifactOnDeployment"): ("Enforce", "Warn"),
    ("DefaultRetention", "Mode"): ("COMPLIANCE", "GOVERNANCE"),
    ("DeleteMarkerReplication", "Status"): ("Disabled", "Enabled"),
    **{(rule, "IntervalUnit"): ("YEARS", "MONTHS", "WEEKS", "DAYS") for rule in ("RetainRule", "RetentionArchiveTier")},
    ("EncryptionAtRest", "CatalogEncryptionMode"): ("SSE-KMS-WITH-SERVICE-ROLE", "SSE-KMS", "DISABLED"),
    ("EncryptionInTransit", "ClientBroker"): ("TLS", "TLS_PLAINTEXT", "PLAINTEXT"),
    ("ExecuteCommandConfiguration", "Logging"): ("OVERRIDE", "DEFAULT", "NONE"),
    ("LoggingConfiguration", "Level"): ("ALL", "ERROR", "FATAL", "OFF"),
    ("ScanActions", "ScanMode"): ("FULL_SCAN", "INCREMENTAL_SCAN"),
    ("ServerSideEncryptionByDefault", "SSEAlgorithm"): ("aws:kms:dsse", "aws:kms", "AES256"),
    ("SnaplockConfiguration", "PrivilegedDelete"): ("PERMANENTLY_DISABLED", "DISABLED", "ENABLED"),
}
"""Properties, by the key above them, whose values protect more or less, the strongest first; none is the weakest.

Source: the property's own page in the CloudFormation template reference.
"""

_ATTRIBUTES: Final = re.compile(
    r"(?:deletion_protection|(?:access|connection|health_check)_logs\.s3|routing\.http\.drop_invalid_header_fields)\.enabled"
)
"""Attributes of load balancers, by their keys, that protect or record if their value is true.

Source: Elastic Load Balancing API reference, LoadBalancerAttribute, Key.
"""

_LEAST_TLS: Final = frozenset({"MinimumProtocolVersion", "SecurityPolicy", "SslPolicy", "TLSSecurityPolicy"})
"""Properties of any type whose value names the oldest accepted version of TLS."""

_VERSION_OF_TLS: Final = re.compile(r"(?:TLS13|TLS|FS)[-_]?v?(\d)(?!\d)(?:[-_.](\d)(?!\d))?", re.IGNORECASE)
_TLS_WITHOUT: Final = {"ELBSecurityPolicy-": "TLS 1.0", "SSLv3": "SSL 3"}
"""Prefixes of policy names without a version, with the version that they accept.

Sources: Application Load Balancer guide, "Security policies for your Application Load Balancer"; CloudFront developer
guide, "Supported protocols and ciphers between viewers and CloudFront"; OpenSearch Service API, DomainEndpointOptions;
API Gateway developer guide, "Supported security policies".
"""

_STATES: Final[dict[tuple[str, ...], tuple[str, ...]]] = {
    ("EncryptionAtRestOptions", "Enabled"): ("true",),
    ("NodeToNodeEncryptionOptions", "Enabled"): ("true",),
    ("", "Enable"): ("true",),
    ("", "BlockPublicPolicy"): ("true",),
    ("CloudWatchLogs", "Status"): ("ENABLED",),
    ("S3Logs", "Status"): ("ENABLED",),
    ("Logs", "Audit"): ("true",),
    ("Logs", "General"): ("true",),
    ("ReplicationConfiguration", "Rules", "Status"): ("Enabled",),
    **{
        ("SourceSelectionCriteria", name, "Status"): ("Enabled",)
        for name in ("ReplicaModifications", "SseKmsEncryptedObjects")
    },
    ("BackupPolicy", "Status"): ("ENABLED",),
    ("DeploymentCircuitBreaker", "Enable"): ("true",),
    ("DeploymentCircuitBreaker", "Rollback"): ("true",),
    ("DeploymentConfiguration", "Alarms", "Enable"): ("true",),
    ("DeploymentConfiguration", "Alarms", "Rollback"): ("true",),
    ("NodeRepairConfig", "Enabled"): ("true",),
    ("VersioningConfiguration", "Status"): ("Enabled",),
}
_OF_LOGS: Final = re.compile(r"(?:\w*[a-z\d])?Log(?:s|ging)?(?:[A-Z]\w*)?")
"""Keys of any type that contain what is logged: ``BrokerLogs``, ``LogOptions``, ``LoggingInfo``."""
_KEY: Final = re.compile(
    r"(?!Rotate)\w*?(?:KMS|Kms|Cmk)(?:Master|Encryption)?(?:Key)?(?:Arn|ARN|Id|ID|Identifier)?"
    r"|(?!Rotate)\w*EncryptionKey(?:Arn)?|KeyArn"
)
"""Properties of any type that name the customer's key: without one a key of AWS encrypts, without a policy."""

_LOGS: Final = frozenset(
    {
        *("DeliveryStatusLogging", "EnableCloudwatchLogsExports", "EnabledCloudwatchLogsExports", "EnabledTypes"),
        *("LogDeliveryConfigurations", "LogExports"),
    }
)
"""Lists of any type of what is logged; a shorter one records less."""

_LIMITS: Final[dict[tuple[str, str], str]] = {
    ("CreateRule", "Interval"): "hours between two snapshots or images:",
    **{(above, "CreateInterval"): "days between two snapshots or images:" for above in ("", "PolicyDetails")},
    ("BudgetLimit", "Amount"): "the budget warns from",
    ("", "RotationPeriodInDays"): "days for which the key's material stays the same:",
    ("MetadataOptions", "HttpPutResponseHopLimit"): "hops to which instances hand their role's credentials:",
    (
        "",
        "MaxSessionDuration",
    ): "seconds for which anyone who assumes the role keeps its permissions, also after these are removed:",
    ("", "SessionDuration"): "time for which anyone who signs in keeps the permissions of the permission set:",
}
_LIMIT_WITHOUT: Final = {
    "MaxSessionDuration": 3600.0,
    "SessionDuration": 3600.0,
    "HttpPutResponseHopLimit": 1.0,
    "RotationPeriodInDays": 365.0,
}
_DURATION: Final = re.compile(r"PT(\d+)([HMS])")
_SECONDS: Final = {"H": 3600, "M": 60, "S": 1}
"""Numbers from which on something warns or stops; a higher one is later, or further.

Source of the hops: EC2 user guide, "Instance metadata options": with two, containers reach the instance's credentials.
Of the sessions: IAM API reference, UpdateRole ("the default value of one hour is applied ... from 1 hour to 12 hours");
IAM Identity Center API reference, CreatePermissionSet.
"""

_GUARDS: Final[dict[tuple[str, str], str]] = {
    ("", "AutomaticBackupReplicationRegion"): "backups are no longer copied to another Region",
    ("", "DestinationRegion"): "snapshots are no longer copied to another Region",
    ("LockConfiguration", "ChangeableForDays"): "principals with the permission can remove the lock again",
    ("", "GuardrailPolicies"): "members of the channel may use all permissions of its role",
    ("", "CodeSigningConfigArn"): "the signature of code is no longer checked",
    ("LoggingConfiguration", "DestinationBucketName"): "requests are no longer logged",
    ("LoggingProperties", "BucketName"): "connections are no longer logged",
    ("DistributionConfig", "WebACLId"): "no web ACL inspects requests any more",
    ("", "AuthToken"): "clients no longer need a token",
    ("", "UserGroupId"): "clients no longer need to be users of a group",
    ("", "UserGroupIds"): "clients no longer need to be users of a group",
}
"""Properties, by the key above them, that protect by their existence, and the effect of their removal."""

_GUARDING: Final[dict[str, str]] = {
    "DataProtectionPolicy": "sensitive data in it is no longer hidden",
    "EncryptionConfiguration": "a key of AWS encrypts it, or none",
    "NetworkAccessControl": "everyone on the internet reaches the workspace's page, where users sign in",
    "FileSystemPolicy": "EFS's default allows any client that reaches a mount target to mount, write and be root",
    "QueryLoggingConfig": "queries of its names are no longer logged",
    "ReplicationConfiguration": "nothing is replicated any more",
    "StreamEncryption": "records are no longer encrypted",
}
"""Top-level properties that protect by their existence, and the effect of their removal.

Source for the file system: EFS user guide, "Using IAM to control access to file systems", default file system policy.
For the workspace: Amazon Managed Grafana API reference, CreateWorkspace, networkAccessControl.
"""

_ENDS_BY: Final[dict[tuple[str, str], tuple[str, str]]] = {
    ("OntapConfiguration", "SnapshotPolicy"): ("none", "no snapshots are taken any more"),
    ("", "MonitoringInterval"): ("0", "its operating system is no longer recorded"),
    ("SharedEnvironmentConfig", "FSxLustreDeletionPolicy"): (
        "DeleteIfNotUsed",
        "the file system of the restricted groups is deleted with the last of them, with its files",
    ),
    ("", "ResolveConflicts"): ("OVERWRITE", "values that users have set are overwritten"),
    ("", "ACLName"): ("open-access", "clients no longer need a password"),
}
"""Properties, by the key above them, with the value that ends something, and what ends."""

_PROTECTING: Final = frozenset(
    {
        *_KEEPS,
        *_SWITCHES,
        *_LOGS,
        *_GUARDING,
        # the last one is a word of many meanings if it is below another one
        *(above or name for above, name in (*_LADDERS, *_GUARDS, *_LIMITS)),
        *(next(filter(None, steps)) for steps in _STATES),
        *("BlockPublicAcls", "IgnorePublicAcls", "RestrictPublicBuckets"),
    }
)
"""Names of properties that protect, or that contain what does."""

_DELETING_EVENTS: Final[dict[str, str]] = {
    "AutoExportPolicy": "deleting a file deletes the object in the bucket",
    "AutoImportPolicy": "deleting an object in the bucket deletes the file",
}
"""Policies of FSx whose event ``DELETED`` also deletes on the other side.

Source: FSx API reference, AutoExportPolicy and AutoImportPolicy, Events.
"""

_FILTERS: Final = {"DefaultAction": "Block", "Action": "Block", "OverrideAction": "None"}
"""What lets a web ACL block requests; the last one counts the rules of a group."""

_COPIES: Final[dict[str, tuple[tuple[str, ...], str]]] = {
    "BackupPlanRule": (("RuleName",), "the rule no longer creates backups"),
    "CopyActions": (("DestinationBackupVaultArn",), "backups are no longer copied to"),
    "CrossRegionCopyRules": (("TargetRegion", "Target"), "snapshots or images are no longer copied to"),
    "CrossRegionCopyTargets": (("TargetRegion",), "snapshots or images are no longer copied to"),
    "Destinations": (("Region",), "it is no longer copied to"),
    "ReplicaRegions": (("Region",), "it is no longer kept in"),
    "Replicas": (("Region",), "it is no longer kept in"),
    "ScanActions": (("MalwareScanner",), "backups are no longer scanned by"),
    "Schedules": (("Name",), "the schedule no longer creates snapshots or images"),
}
"""Lists of any type of copies, the property that identifies an item, and what ends.

An item that is added does not affect existing copies, however short its own retention is. Source: the pages of
``AWS::Backup::BackupPlan``, ``AWS::DLM::LifecyclePolicy``, ``AWS::ECR::ReplicationConfiguration``,
``AWS::EFS::FileSystem``, ``AWS::SecretsManager::Secret`` and ``AWS::DynamoDB::GlobalTable`` in the CloudFormation
template reference.
"""

_DELETES: Final[dict[str, tuple[str, ...]]] = {
    "DeleteAutomatedBackups": ("true",),
    "DeleteReports": ("true",),
    "EncryptionDisabled": ("true",),
    "ExtendDeletion": ("true",),
    "InsecureSsl": ("true",),
    "InstanceInitiatedShutdownBehavior": ("terminate",),
    "DeleteOnTermination": ("true",),
    "SkipFinalBackup": ("true",),
}
"""Switches of any type with which something is kept: on is one of these values; also those that delete when on."""


_BY_DEFAULT: Final[dict[tuple[str, str], str]] = {
    ("", "ActionsEnabled"): "true",
    ("", "AutomatedSnapshotRetentionPeriod"): "1",
    ("", "BackupRetentionPeriod"): "1",
    ("", "IngestionEnabled"): "true",
    ("", "MessageRetentionPeriod"): "345600",
    ("", "SqsManagedSseEnabled"): "true",
    ("", "PendingWindowInDays"): "30",
    ("", "RecursiveLoop"): "Terminate",
    ("", "RetentionPeriodHours"): "24",
    ("", "TerminationProtectionEnabled"): "true",
    ("FileSystemProtection", "ReplicationOverwriteProtection"): "ENABLED",
    ("PointInTimeRecoverySpecification", "RecoveryPeriodInDays"): "35",
    **{(f"{kind}Configuration", "AutomaticBackupRetentionDays"): "30" for kind in ("Windows", "Ontap", "OpenZFS")},
}
"""Properties, by the key above them, that protect by default, and their protecting value.

Source: the property's own page in the CloudFormation template reference, or that of the service's API.
"""

_SECRET: Final = re.compile(r"\{\{resolve:(?:secretsmanager|ssm-secure):")
_UNKNOWN: Final = re.compile(r"\{\{resolve:|\$\{")
"""Values of Secrets Manager and secure ones of Parameter Store, and other values that only the deployment shows.

Source: CloudFormation user guide, "Get values stored in other services using dynamic references".
"""

_BY_DEFAULT_BEFORE: Final[dict[tuple[str, str], str]] = {
    ("", "NodeRecovery"): "Automatic",
    ("Rules", "ObjectOwnership"): "BucketOwnerEnforced",
}
"""Properties that a resource has if it never stated them, without documentation that their removal restores them.

Source: S3 user guide, "Controlling ownership of objects". No page states HyperPod's; examples are Automatic.
"""


def lifted(change: PropertyChange, resource_type: str = "") -> Iterator[tuple[str, Any, Any, str]]:
    """Yield the places below a changed property where protection is reduced: path, before, after, and a clause."""
    yield from _copied_no_more(change)
    yield from _logged_no_more(change)
    yield from _gone_whole(change)
    yield from _excluded(change)
    yield from _deleting(change)
    yield from _decided_otherwise(change)
    was, will = (_filters(change.steps, each) for each in (change.before, change.after))
    if was["DefaultAction"] > will["DefaultAction"]:
        yield change.path, "Block", MISSING, "the default action no longer blocks"
    elif was.total() > will.total():
        yield change.path, MISSING, MISSING, "fewer of its rules block"
    if MISSING in (change.before, change.after) and any(name in _COPIES for name in change.steps[-2:-1]):
        # copies that are added, or removed and reported as such
        return
    for steps, before, after in _leaves(change.steps, change.before, change.after):
        # a value that is added together with its parent had no default of its own
        is_alone = change.before is not MISSING or steps == change.steps
        on = _SWITCHES_OF.get((resource_type, steps[0])) if len(steps) == 1 else None
        said = (
            _switched(steps[0], before, after, on) if on else _change_in_words(steps, before, after, is_alone=is_alone)
        )
        if said:
            yield ".".join(steps).replace(".[", "["), before, after, said


def _change_in_words(steps: tuple[str, ...], before: Any, after: Any, *, is_alone: bool) -> str:
    names = [step for step in steps if not step.startswith("[")]
    name, above = names[-1], names[-2] if len(names) > 1 else ""
    if isinstance(after, str) and _SECRET.search(plain(before)) and not _UNKNOWN.search(after):
        return "its value is now in the template, for anyone who may read the stack"
    default = _BY_DEFAULT.get((above, name), MISSING)
    if before is MISSING:
        before = _BY_DEFAULT_BEFORE.get((above, name), default if is_alone else MISSING)
    if after is MISSING:
        after = default
    if _KEY.fullmatch(name) or (above, name) in _LIMITS:
        return _loosened(above, name, before, after)
    guards = name in _LEAST_TLS or any((above, name) in each for each in (_GUARDS, _ENDS_BY))
    # on other types a property of that name may be a switch
    if guards or _text(before) in _LADDERS.get((above, name), ()):
        return _weakened(above, name, before, after)
    on = _SWITCHES.get(name) or _state(above, names)
    if on is None and name == "Value" and (attribute := _ATTRIBUTES.search(".".join(steps))):
        name, on = attribute[0], ("true",)
    if on is not None:
        return _switched(name, before, after, on)
    if name in _DELETES:
        was, will = _text(before) in _DELETES[name], _text(after) in _DELETES[name]
        return f"{name} is {plain(after)}" if will and not was else ""
    return _kept_shorter(above, name, before, after)


def _least_tls(name: str) -> str:
    """Return the oldest version that a policy accepts, empty if it is unknown; their names are in their order."""
    if found := _VERSION_OF_TLS.search(name):
        return f"TLS {found[1]}.{found[2] or 0}"
    return next((version for start, version in _TLS_WITHOUT.items() if name.startswith(start)), "")


def _switched(name: str, before: Any, after: Any, on: tuple[str, ...]) -> str:
    if _may_have_been(before, after) and _text(after) not in on:
        return f"{name} may no longer be {on[0]}"
    return f"{name} is no longer {plain(before)}" if _text(before) in on and _text(after) not in on else ""


def _weakened(above: str, name: str, before: Any, after: Any) -> str:
    if guard := _GUARDS.get((above, name)):
        return guard if after is MISSING else ""
    if ends := _ENDS_BY.get((above, name)):
        return ends[1] if _text(after) == ends[0] != _text(before) else ""
    if name in _LEAST_TLS:
        until_now, let_in = (_least_tls(_text(each)) for each in (before, after))
        said = f"connections with {let_in} are accepted, until now from {until_now} on"
        return said if "" < let_in < until_now else ""
    ladder = _LADDERS[above, name]
    was, will = (ladder.index(_text(each)) if _text(each) in ladder else len(ladder) for each in (before, after))
    return f"{name} is no longer {plain(before)}" if was < will else ""


def _decided_otherwise(change: PropertyChange) -> Iterator[tuple[str, Any, Any, str]]:
    """Yield a value of several settings that protect, of which only the deployment knows what it was."""
    if _may_have_been(change.before, change.after):
        # their names are in the text of the values that a condition or a mapping chooses from
        found = sorted(_PROTECTING.intersection(re.findall(r"(\w+): ", change.before.text)))
        if found:
            yield change.path, change.before, change.after, f"{joined(found)} may no longer be as before"


def _may_have_been(before: Any, after: Any) -> bool:
    """Whether only the deployment knows what a setting was, and what decides it changes."""
    return isinstance(before, Unknown) and before != after


def _state(above: str, names: list[str]) -> tuple[str, ...] | None:
    """Return the values of a switch that is one only below some key."""
    ends = ((*names[-3:],), (above, names[-1]))
    is_of_logs = names[-1] == "Enabled" and any(_OF_LOGS.fullmatch(each) for each in names[:-1])
    return next((_STATES[each] for each in ends if each in _STATES), ("true",) if is_of_logs else None)


def _gone_whole(change: PropertyChange) -> Iterator[tuple[str, Any, Any, str]]:
    """Yield what protects by its existence, and is removed as a whole."""
    if len(change.steps) == 1 and change.after is MISSING and (said := _GUARDING.get(change.steps[0])):
        yield change.path, change.before, MISSING, said


def _copied_no_more(change: PropertyChange) -> Iterator[tuple[str, Any, Any, str]]:
    """Yield what no longer creates copies: an item that is removed, or that now creates them elsewhere."""
    path = change.path
    for at, name in enumerate(change.steps[:-1]):
        keys, said = _COPIES.get(name, ((), ""))
        is_item, is_key = len(change.steps) == at + 2, change.steps[at + 2 :] in {(key,) for key in keys}
        if is_item and change.after is MISSING and _name_of(change.before, keys):
            yield path, change.before, MISSING, f"{said} {_name_of(change.before, keys)}"
        elif is_key and change.before is not MISSING:
            yield path, change.before, change.after, f"{said} {plain(change.before)}"
    pending = [(change.steps, change.before, change.after)]
    while pending:
        steps, before, after = pending.pop()
        if isinstance(before, dict) and after is not MISSING:
            new = after if isinstance(after, dict) else {}
            pending += [((*steps, str(key)), value, new.get(key, MISSING)) for key, value in before.items()]
        if steps[-1] not in _COPIES or not isinstance(before, list):
            continue
        keys, said = _COPIES[steps[-1]]
        old, kept = (
            dict.fromkeys(_name_of(each, keys) for each in (side if isinstance(side, list) else []))
            for side in (before, after)
        )
        gone = [name for name in old if name and name not in kept]
        if gone:
            yield ".".join(steps).replace(".[", "["), before, MISSING, f"{said} {joined(gone)}"


def _name_of(item: Any, keys: tuple[str, ...]) -> str:
    """Return what identifies an item of its list, empty if it has no such property."""
    return next((plain(item[key]) for key in keys if key in item), "") if isinstance(item, dict) else ""


def _paired(name: str, before: Any, after: Any) -> Iterator[tuple[int, Any, Any]]:
    """Return the items of a list that correspond to each other: by position, or copies by their identity.

    Copies only if both sides have them: removed ones are reported as such, and added ones reduce nothing.
    """
    old, new = (each if isinstance(each, list) else [] for each in (before, after))
    keys, _ = _COPIES.get(name, ((), ""))
    if keys and all(_name_of(each, keys) for each in (*old, *new)):
        known = {_name_of(each, keys): each for each in old}
        found = ((index, known.get(_name_of(each, keys)), each) for index, each in enumerate(new))
        yield from (each for each in found if each[1] is not None)
        return
    for index in range(max(len(old), len(new))):
        one, other = (each[index] if index < len(each) else MISSING for each in (old, new))
        yield index, one, other


def _excluded(change: PropertyChange) -> Iterator[tuple[str, Any, Any, str]]:
    """Yield the tags of images that could not be overwritten so far, and now can."""
    if change.steps[0] != "ImageTagMutabilityExclusionFilters" or change.after is MISSING:
        return
    if change.before is MISSING or (
        isinstance(change.before, list)
        and isinstance(change.after, list)
        and any(each not in change.before for each in change.after)
    ):
        yield change.path, change.before, change.after, "tags that match it may be overwritten, or no longer be"


def _deleting(change: PropertyChange) -> Iterator[tuple[str, Any, Any, str]]:
    for policy, said in _DELETING_EVENTS.items():
        old, new = (_events(change.steps, each, policy) for each in (change.before, change.after))
        if "DELETED" in new and "DELETED" not in old:
            yield change.path, change.before, change.after, said


def _events(steps: tuple[str, ...], value: Any, policy: str) -> set[str]:
    """Return the events of a policy in, at or above a changed value."""
    found: set[str] = set()
    pending = [(steps, value)]
    while pending:
        path, item = pending.pop()
        if isinstance(item, dict):
            pending += [((*path, str(key)), each) for key, each in item.items()]
        elif isinstance(item, list):
            pending += [(path, each) for each in item]
        elif policy in path and "Events" in path and item is not MISSING:
            found.add(_text(item))
    return found


def _kept_shorter(above: str, name: str, before: Any, after: Any) -> str:
    keeps = _KEEPS_BELOW.get((above, name)) or _KEEPS.get(name, "")
    if not keeps or (name in ("Days", "Years") and above != "DefaultRetention"):
        return ""
    old, new = _length(name, before), _length(name, after)
    if old is None or new is None:
        return f"{keeps} an unknown time" if before != after else ""
    if new >= old:
        return ""
    until_now = "for ever" if old == _FOREVER else _timed(above, name, before)
    without = "no time" if name in _NONE_WITHOUT else "the default"
    return f"{keeps} {_timed(above, name, after) if after is not MISSING else without}, until now {until_now}"


def _timed(above: str, name: str, value: Any) -> str:
    """Return a length with its unit."""
    unit = _UNITS_BELOW.get((above, name), _UNITS.get(name, "day"))
    written = plain(value)
    return f"{written} {unit}{'' if written == '1' else 's'}" if unit else written


_FOREVER: Final = float("inf")


def _length(name: str, value: Any) -> float | None:
    """Return how long something is kept, None if only the deployment shows it."""
    if value is MISSING:
        return _FOREVER if name in _FOREVER_WITHOUT else 0.0
    text = _text(value)
    if text == "-1":
        return _FOREVER
    return float(text) if text.isdecimal() else None


def _leaves(steps: tuple[str, ...], before: Any, after: Any) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    """Yield what is below a property that is added, removed or changed as a whole."""
    if isinstance(before, dict) or isinstance(after, dict):
        old, new = (value if isinstance(value, dict) else {} for value in (before, after))
        for key in dict.fromkeys((*old, *new)):
            yield from _leaves((*steps, str(key)), old.get(key, MISSING), new.get(key, MISSING))
    elif isinstance(before, list) or isinstance(after, list):
        for index, one, other in _paired(steps[-1], before, after):
            yield from _leaves((*steps, f"[{index}]"), one, other)
    else:
        yield steps, before, after


def _loosened(above: str, name: str, before: Any, after: Any) -> str:
    if _KEY.fullmatch(name):
        return f"{name} is no longer stated: a key of AWS encrypts it" if after is MISSING else ""
    least = _LIMIT_WITHOUT.get(name)
    was, will = (least if each is MISSING else _amount(each) for each in (before, after))
    if was is None or (will is not None and will <= was):
        return ""
    until_now = "the default" if before is MISSING else plain(before)
    from_now_on = "no longer stated" if after is MISSING and least is None else plain(after)
    return f"{_LIMITS[above, name]} {from_now_on}, until now {until_now}"


def _filters(steps: tuple[str, ...], value: Any) -> Counter[str]:
    """Count what blocks requests in and around a changed value: an empty object with the name of the action."""
    found: Counter[str] = Counter()
    names = [step for step in steps if not step.startswith("[")]
    if value is not MISSING and len(names) > 1 and _FILTERS.get(names[-2]) == names[-1]:
        found[names[-2]] += 1
    pending = [(names[-1], value)]
    while pending:
        name, item = pending.pop()
        if isinstance(item, list):
            pending += [(name, each) for each in item]
        elif isinstance(item, dict):
            if _FILTERS.get(name) in item:
                found[name] += 1
            pending += [(str(key), each) for key, each in item.items()]
    return found


def _amount(value: Any) -> float | None:
    if isinstance(value, str) and (found := _DURATION.fullmatch(value)):
        return float(found[1]) * _SECONDS[found[2]]
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _logged_no_more(change: PropertyChange) -> Iterator[tuple[str, Any, Any, str]]:
    """Yield the lists of what is logged that lose something, in any order."""
    pending = [(change.steps, change.before, change.after)]
    while pending:
        steps, before, after = pending.pop()
        if isinstance(before, dict):
            new = after if isinstance(after, dict) else {}
            pending += [((*steps, str(key)), value, new.get(key, MISSING)) for key, value in before.items()]
        if _LOGS.isdisjoint(steps):
            continue
        if not isinstance(before, list):
            if after is MISSING and not isinstance(before, dict):
                # one item of the list less; only the whole list would show which one
                yield ".".join(steps).replace(".[", "["), before, after, "it logs less"
            continue
        left = {plain(each) for each in after} if isinstance(after, list) else set()
        gone = [each for each in before if plain(each) not in left]
        if gone:
            types = [
                _name_of(each, ("Type", "LogType", "Protocol")) if isinstance(each, dict) else plain(each)
                for each in gone
            ]
            yield ".".join(steps).replace(".[", "["), before, MISSING, f"no longer logged: {', '.join(types)}"


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
