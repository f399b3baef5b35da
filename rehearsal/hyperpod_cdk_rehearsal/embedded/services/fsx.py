"""FSx for Lustre: file systems and data repository associations."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from botocore.exceptions import ClientError

from hyperpod_cdk_rehearsal.embedded.account import account_of
from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.operations import PassToMoto, ServiceError, operation
from hyperpod_cdk_rehearsal.embedded.published import lustre, quotas
from hyperpod_cdk_rehearsal.embedded.published.lustre import PERSISTENT_2, PROVISIONED_CACHE, SCRATCH_2, TIERING
from hyperpod_cdk_rehearsal.embedded.services.identity import may_deploy
from hyperpod_cdk_rehearsal.embedded.services.interfaces import give_up, make_interface
from hyperpod_cdk_rehearsal.embedded.services.keys import key_problem
from hyperpod_cdk_rehearsal.embedded.services.network import Network
from hyperpod_cdk_rehearsal.embedded.services.quotas import effective_value
from hyperpod_cdk_rehearsal.embedded.services.stores import FileSystem, FileSystemChange, FsxStore, file_systems
from hyperpod_cdk_rehearsal.embedded.services.timeline import GONE, Timeline, page

CREATE_SECONDS = 1.0
UPDATE_SECONDS = 0.2
DELETE_SECONDS = 0.4
ASSOCIATION_SECONDS = 0.4

SERVERS_SHOWN = 2
"""Network interfaces that DescribeFileSystems lists; how many servers stand behind them is not known here."""

PORTS_TEXT = (
    "The file system cannot be created because the default security group in the subnet provided or the provided "
    "security "
    "groups do not permit Lustre LNET network traffic on port {port}"
)
DEFAULT_LUSTRE = {
    "WeeklyMaintenanceStartTime": "1:05:00",
    "DataCompressionType": "NONE",
    "LogConfiguration": {"Level": "DISABLED"},
    "AutomaticBackupRetentionDays": 0,
    "CopyTagsToBackups": False,
}


@operation("fsx", "CreateFileSystem")
def create_file_system(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Check what FSx checks and begin to create a Lustre file system; other types are moto's."""
    if request["FileSystemType"] != "LUSTRE":
        raise PassToMoto
    return _create(context, request)


@operation("fsx", "CreateFileSystemFromBackup")
def create_file_system_from_backup(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Begin to create a file system that holds what a backup of the account holds."""
    backup_id = request["BackupId"]
    backup = next((each for each in account_of(context).existing.backups if each.backup_id == backup_id), None)
    if backup is None:
        raise ServiceError("BackupNotFound", f"Backup '{backup_id}' does not exist.")
    if request.get("StorageCapacity") not in {None, backup.capacity_gib}:
        raise ServiceError(
            "BadRequest",
            f"StorageCapacity must be that of the backup, {backup.capacity_gib}, got {request['StorageCapacity']}.",
        )
    return _create(context, {**request, "FileSystemType": "LUSTRE", "StorageCapacity": backup.capacity_gib})


@operation("fsx", "DescribeBackups")
def describe_backups(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """The backups that stood in the account before."""
    wanted = request.get("BackupIds") or []
    known = {each.backup_id: each for each in account_of(context).existing.backups}
    for backup_id in wanted:
        if backup_id not in known:
            raise ServiceError("BackupNotFound", f"Backup '{backup_id}' does not exist.")
    shown, token = page(list(wanted or known), request.get("NextToken"), request.get("MaxResults") or 100)
    return {
        "Backups": [
            {
                "BackupId": each.backup_id,
                "Lifecycle": each.lifecycle,
                "Type": "USER_INITIATED",
                "CreationTime": context.clock.now(),
                "FileSystem": {"FileSystemType": "LUSTRE", "StorageCapacity": each.capacity_gib},
            }
            for each in (known[backup_id] for backup_id in shown)
        ],
        **({"NextToken": token} if token else {}),
    }


def _create(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    subnet = _check_network(context, request)
    _check_configuration(context, request)
    _check_quotas(context, request)
    store = context.state.store(FsxStore)
    with context.state.lock:
        number = len(store.file_systems)
        file_system_id = (
            f"fs-{_digest(context, 'file-system', subnet['SubnetId'], str(number), str(context.clock.now()))[:17]}"
        )
        file_system = FileSystem(
            file_system_id=file_system_id,
            view=_new_view(context, request, file_system_id, subnet),
            timeline=Timeline.begin(context.clock, "CREATING", (CREATE_SECONDS, "AVAILABLE")),
            tags=_tag_map(request.get("Tags")),
        )
        store.file_systems[file_system_id] = file_system
    return {"FileSystem": _view(context, file_system)}


@operation("fsx", "DescribeFileSystems")
def describe_file_systems(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Every file system, or those named."""
    wanted = request.get("FileSystemIds") or []
    found = [_find(context, name) for name in wanted] if wanted else list(file_systems(context).values())
    return {"FileSystems": [_view(context, item) for item in found]}


@operation("fsx", "UpdateFileSystem")
def update_file_system(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Grow a file system or change its settings in place."""
    file_system = _find(context, request["FileSystemId"])
    status = file_system.timeline.at(context.clock.now())
    if status != "AVAILABLE":
        raise ServiceError(
            "BadRequest", f"File system '{file_system.file_system_id}' cannot be updated while it is {status}."
        )
    changes = dict(request.get("LustreConfiguration") or {})
    _check_update(context, file_system, request.get("StorageCapacity"), changes)
    with context.state.lock:
        configuration = file_system.view["LustreConfiguration"]
        limited = _limited(file_system.view, request.get("StorageCapacity"), changes)
        file_system.changes.append(FileSystemChange(context.clock.now(), limited, _target(request)))
        file_system.view["StorageCapacity"] = request.get("StorageCapacity") or file_system.view["StorageCapacity"]
        metadata = changes.pop("MetadataConfiguration", None)
        configuration.update(changes)
        if metadata:
            configuration["MetadataConfiguration"] = {**configuration["MetadataConfiguration"], **metadata}
        _provision_metadata(file_system.view)
        file_system.timeline = Timeline.begin(context.clock, "UPDATING", (UPDATE_SECONDS, "AVAILABLE"))
    return {"FileSystem": _view(context, file_system)}


@operation("fsx", "DeleteFileSystem")
def delete_file_system(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Delete a file system with its data repository associations."""
    file_system = _find(context, request["FileSystemId"])
    with context.state.lock:
        file_system.timeline = Timeline.begin(context.clock, "DELETING", (DELETE_SECONDS, GONE))
    give_up(context, file_system.view["NetworkInterfaceIds"], after_seconds=DELETE_SECONDS)
    return {"FileSystemId": file_system.file_system_id, "Lifecycle": "DELETING"}


@operation("fsx", "CreateDataRepositoryAssociation")
def create_data_repository_association(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Link a directory to an S3 prefix."""
    file_system = _find(context, request["FileSystemId"])
    path = request.get("FileSystemPath") or "/"
    _check_association(context, file_system, path, request["DataRepositoryPath"])
    digest = _digest(context, "association", file_system.file_system_id, path, str(len(file_system.associations)))
    association_id = f"dra-{digest[:17]}"
    members = ("BatchImportMetaDataOnCreate", "ImportedFileChunkSize", "S3")
    association = {
        "AssociationId": association_id,
        "ResourceARN": context.arn("fsx", f"association/{file_system.file_system_id}/{association_id}"),
        "FileSystemId": file_system.file_system_id,
        "FileSystemPath": path,
        "DataRepositoryPath": request["DataRepositoryPath"],
        "CreationTime": context.clock.now(),
        "BatchImportMetaDataOnCreate": False,
        "ImportedFileChunkSize": 1024,
        **{member: request[member] for member in members if request.get(member) is not None},
    }
    with context.state.lock:
        file_system.associations[association_id] = association
        file_system.association_tags[association_id] = _tag_map(request.get("Tags"))
        file_system.association_timelines[association_id] = Timeline.begin(
            context.clock, "CREATING", (ASSOCIATION_SECONDS, "AVAILABLE")
        )
    return {"Association": _association_view(context, file_system, association_id)}


@operation("fsx", "DescribeDataRepositoryAssociations")
def describe_data_repository_associations(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Every association, those named, or those of a file system."""
    wanted = request.get("AssociationIds") or []
    for association_id in wanted:
        _find_association(context, association_id)
    filters = {item["Name"]: item["Values"] for item in request.get("Filters") or []}
    only = filters.get("file-system-id")
    found = [
        _association_view(context, file_system, association_id)
        for file_system in file_systems(context).values()
        for association_id in _associations(context, file_system)
        if (not wanted or association_id in wanted) and (only is None or file_system.file_system_id in only)
    ]
    return {"Associations": found}


@operation("fsx", "UpdateDataRepositoryAssociation")
def update_data_repository_association(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Change what is imported and exported by itself."""
    file_system, association_id = _find_association(context, request["AssociationId"])
    with context.state.lock:
        for member in ("ImportedFileChunkSize", "S3"):
            if request.get(member) is not None:
                file_system.associations[association_id][member] = request[member]
        file_system.association_timelines[association_id] = Timeline.begin(
            context.clock, "UPDATING", (UPDATE_SECONDS, "AVAILABLE")
        )
    return {"Association": _association_view(context, file_system, association_id)}


@operation("fsx", "DeleteDataRepositoryAssociation")
def delete_data_repository_association(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Cut the link; the data stays unless asked otherwise."""
    file_system, association_id = _find_association(context, request["AssociationId"])
    with context.state.lock:
        file_system.association_timelines[association_id] = Timeline.begin(
            context.clock, "DELETING", (DELETE_SECONDS, GONE)
        )
    return {
        "AssociationId": association_id,
        "Lifecycle": "DELETING",
        "DeleteDataInFileSystem": bool(request.get("DeleteDataInFileSystem")),
    }


@operation("fsx", "TagResource")
def tag_resource(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Tag a file system or an association."""
    _tags_of(context, request["ResourceARN"]).update(_tag_map(request["Tags"]))
    return {}


@operation("fsx", "UntagResource")
def untag_resource(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Take tags away."""
    tags = _tags_of(context, request["ResourceARN"])
    for key in request["TagKeys"]:
        tags.pop(key, None)
    return {}


@operation("fsx", "ListTagsForResource")
def list_tags_for_resource(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """The tags of a file system or an association."""
    return {"Tags": _tag_list(_tags_of(context, request["ResourceARN"]))}


def _check_network(context: Context, request: Mapping[str, Any]) -> dict[str, Any]:
    network = Network(context)
    subnet_ids = request["SubnetIds"]
    if len(subnet_ids) != 1:
        raise ServiceError(
            "BadRequest", f"Exactly one subnet ID must be specified for a Lustre file system, got {len(subnet_ids)}."
        )
    subnet = network.subnet(subnet_ids[0])
    if subnet is None:
        raise ServiceError("InvalidNetworkSettings", f"The subnet ID '{subnet_ids[0]}' does not exist.")
    groups = request.get("SecurityGroupIds") or _default_group(context, subnet["VpcId"])
    for group_id in groups:
        group = network.security_group(group_id)
        if group is None or group["VpcId"] != subnet["VpcId"]:
            raise ServiceError(
                "InvalidNetworkSettings", f"The security group '{group_id}' does not exist in {subnet['VpcId']}."
            )
    for ports in lustre.PORTS:
        if not any(network.admits(name, ports, groups) and network.sends(name, ports, groups) for name in groups):
            shown = str(ports[0]) if ports[0] == ports[1] else f"{ports[0]}-{ports[1]}"
            raise ServiceError("InvalidNetworkSettings", PORTS_TEXT.format(port=shown))
    configuration = request.get("LustreConfiguration") or {}
    problem = lustre.local_zone_refusal(
        subnet["AvailabilityZoneId"],
        configuration.get("DeploymentType", "SCRATCH_1"),
        efa=bool(configuration.get("EfaEnabled")),
        tiering=request.get("StorageType", "SSD") == TIERING,
        throughput=configuration.get("PerUnitStorageThroughput"),
    )
    if problem:
        raise ServiceError("BadRequest", problem)
    if configuration.get("EfaEnabled") and not any(network.allows_itself(name) for name in groups):
        raise ServiceError(
            "InvalidNetworkSettings",
            "An EFA-enabled file system requires a security group with rules for all traffic in and out that name "
            "the group "
            f"itself; none of {', '.join(groups)} has both.",
        )
    return subnet


def _default_group(context: Context, vpc_id: str) -> list[str]:
    filters = [{"Name": "vpc-id", "Values": [vpc_id]}, {"Name": "group-name", "Values": ["default"]}]
    found = context.client("ec2").describe_security_groups(Filters=filters)["SecurityGroups"]
    return [group["GroupId"] for group in found]


def _check_configuration(context: Context, request: Mapping[str, Any]) -> None:
    configuration = request.get("LustreConfiguration") or {}
    deployment = configuration.get("DeploymentType", "SCRATCH_1")
    efa = bool(configuration.get("EfaEnabled"))
    tiering = request.get("StorageType", "SSD") == TIERING
    problem = key_problem(context, request["KmsKeyId"]) if request.get("KmsKeyId") else None
    if problem:
        raise ServiceError("BadRequest", f"The KMS key {request['KmsKeyId']} {problem}.")
    _check_log(context, configuration.get("LogConfiguration") or {})
    if deployment != PERSISTENT_2:
        if efa or configuration.get("MetadataConfiguration"):
            raise ServiceError(
                "BadRequest", f"EfaEnabled and MetadataConfiguration require {PERSISTENT_2}, got {deployment}."
            )
        if tiering:
            raise ServiceError("BadRequest", f"StorageType {TIERING} requires {PERSISTENT_2}, got {deployment}.")
        if deployment == SCRATCH_2:
            _check_scratch(request, configuration)
        return
    problem = lustre.region_refusal(context.region, efa=efa) or lustre.version_refusal(
        request.get("FileSystemTypeVersion"), metadata=bool(configuration.get("MetadataConfiguration"))
    )
    if problem:
        raise ServiceError("BadRequest", problem)
    if tiering:
        _check_tiering(request, configuration)
    else:
        _check_ssd(request, configuration)


def _check_scratch(request: Mapping[str, Any], configuration: Mapping[str, Any]) -> None:
    for member in ("PerUnitStorageThroughput", "ThroughputCapacity", "DataReadCacheConfiguration"):
        if configuration.get(member) is not None:
            raise ServiceError("BadRequest", f"{member} is not supported for {SCRATCH_2}.")
    if configuration.get("AutomaticBackupRetentionDays"):
        raise ServiceError("BadRequest", f"Backups are not supported for {SCRATCH_2}.")
    if request.get("KmsKeyId"):
        raise ServiceError("BadRequest", f"KmsKeyId is not supported for {SCRATCH_2}.")
    capacity = request.get("StorageCapacity") or 0
    problem = lustre.capacity_refusal(capacity)
    _refuse({"StorageCapacity": problem})


def _check_tiering(request: Mapping[str, Any], configuration: Mapping[str, Any]) -> None:
    if request.get("StorageCapacity"):
        raise ServiceError("BadRequest", f"StorageCapacity cannot be specified with StorageType {TIERING}.")
    if configuration.get("PerUnitStorageThroughput") is not None:
        raise ServiceError("BadRequest", f"PerUnitStorageThroughput cannot be specified with StorageType {TIERING}.")
    for member in ("ThroughputCapacity", "DataReadCacheConfiguration", "MetadataConfiguration"):
        if configuration.get(member) is None:
            raise ServiceError("BadRequest", f"{member} is required with StorageType {TIERING}.")
    metadata = configuration["MetadataConfiguration"]
    if metadata.get("Mode") != "USER_PROVISIONED":
        raise ServiceError("BadRequest", f"MetadataConfiguration.Mode must be USER_PROVISIONED with {TIERING}.")
    _refuse(_tiering_problems(configuration))


def _tiering_problems(configuration: Mapping[str, Any]) -> Mapping[str, str | None]:
    throughput = configuration["ThroughputCapacity"]
    cache = configuration["DataReadCacheConfiguration"]
    size, iops = cache.get("SizeGiB"), configuration["MetadataConfiguration"].get("Iops")
    size_problem = None
    if cache.get("SizingMode") == PROVISIONED_CACHE:
        size_problem = (
            f"is required with SizingMode {PROVISIONED_CACHE}"
            if size is None
            else lustre.cache_refusal(size, throughput_mbps=throughput)
        )
    elif size is not None:
        size_problem = f"cannot be specified with SizingMode {cache.get('SizingMode')}"
    return {
        "ThroughputCapacity": lustre.tiering_throughput_refusal(throughput),
        "DataReadCacheConfiguration.SizeGiB": size_problem,
        "MetadataConfiguration.Iops": "is required with Mode USER_PROVISIONED"
        if iops is None
        else lustre.metadata_refusal(iops, tiering=True),
    }


def _check_ssd(request: Mapping[str, Any], configuration: Mapping[str, Any]) -> None:
    for member in ("ThroughputCapacity", "DataReadCacheConfiguration"):
        if configuration.get(member) is not None:
            raise ServiceError("BadRequest", f"{member} requires StorageType {TIERING}.")
    efa, throughput = bool(configuration.get("EfaEnabled")), configuration.get("PerUnitStorageThroughput")
    if throughput is None:
        raise ServiceError("BadRequest", f"PerUnitStorageThroughput is required for {PERSISTENT_2} on SSD.")
    metadata = configuration.get("MetadataConfiguration") or {}
    if efa and not metadata:
        raise ServiceError("BadRequest", "EfaEnabled requires MetadataConfiguration.")
    problems = {
        "PerUnitStorageThroughput": lustre.throughput_refusal(throughput),
        "StorageCapacity": lustre.capacity_refusal(
            request.get("StorageCapacity") or 0, efa_throughput=throughput if efa else None
        ),
        "MetadataConfiguration.Iops": _metadata_problem(metadata),
    }
    _refuse(problems)


def _check_log(context: Context, log: Mapping[str, Any]) -> None:
    destination = log.get("Destination")
    if destination is None:
        return
    if log.get("Level") == "DISABLED":
        raise ServiceError("BadRequest", "LogConfiguration.Destination cannot be specified with Level DISABLED.")
    name = destination.split(":log-group:")[-1].removesuffix(":*")
    found = context.client("logs").describe_log_groups(logGroupNamePrefix=name)["logGroups"]
    if not name.startswith(lustre.LOG_GROUP_PREFIX) or name not in {each["logGroupName"] for each in found}:
        raise ServiceError(
            "BadRequest",
            f"LogConfiguration.Destination must be a log group that exists and begins with {lustre.LOG_GROUP_PREFIX}, "
            f"got {name}.",
        )


def _metadata_problem(metadata: Mapping[str, Any]) -> str | None:
    if metadata.get("Mode") == "USER_PROVISIONED" and metadata.get("Iops") is None:
        return "is required with Mode USER_PROVISIONED"
    if metadata.get("Mode") == "AUTOMATIC" and metadata.get("Iops") is not None:
        return "cannot be specified with Mode AUTOMATIC"
    return lustre.metadata_refusal(metadata["Iops"]) if metadata.get("Iops") else None


def _check_update(
    context: Context, file_system: FileSystem, capacity_gib: int | None, changes: Mapping[str, Any]
) -> None:
    view = file_system.view
    configuration = view["LustreConfiguration"]
    _check_log(context, changes.get("LogConfiguration") or {})
    efa = bool(configuration.get("EfaEnabled"))
    throughput = changes.get("PerUnitStorageThroughput", configuration.get("PerUnitStorageThroughput"))
    if efa and throughput != configuration.get("PerUnitStorageThroughput"):
        raise ServiceError("BadRequest", "PerUnitStorageThroughput of an EFA-enabled file system cannot be changed.")
    _check_growth(view, capacity_gib, changes)
    _check_interval(context, file_system, _limited(view, capacity_gib, changes))
    if changes.get("AutomaticBackupRetentionDays") and file_system.associations:
        raise ServiceError("BadRequest", "Backups are not supported for a file system with data repositories.")
    metadata = changes.get("MetadataConfiguration") or {}
    if metadata and "MetadataConfiguration" not in configuration:
        raise ServiceError("BadRequest", "MetadataConfiguration can only be set when the file system is created.")
    _check_automatic(view, capacity_gib, metadata)
    _refuse(_update_problems(view, capacity_gib, changes))


def _update_problems(
    view: Mapping[str, Any], capacity_gib: int | None, changes: Mapping[str, Any]
) -> Mapping[str, str | None]:
    configuration = {**view["LustreConfiguration"], **changes}
    capacity = capacity_gib or view["StorageCapacity"]
    if configuration["DeploymentType"] == SCRATCH_2:
        problem = lustre.capacity_refusal(capacity)
        return {"StorageCapacity": problem}
    if configuration["DeploymentType"] != PERSISTENT_2:
        return {}
    if view["StorageType"] == TIERING:
        before = view["LustreConfiguration"]["MetadataConfiguration"]
        metadata = {**before, **configuration["MetadataConfiguration"]}
        return _tiering_problems({**configuration, "MetadataConfiguration": metadata})
    throughput = configuration["PerUnitStorageThroughput"]
    return {
        "PerUnitStorageThroughput": lustre.throughput_refusal(throughput),
        "StorageCapacity": lustre.capacity_refusal(
            capacity, efa_throughput=throughput if configuration.get("EfaEnabled") else None
        ),
        "MetadataConfiguration.Iops": _metadata_problem(changes.get("MetadataConfiguration") or {}),
    }


def _check_growth(view: Mapping[str, Any], capacity_gib: int | None, changes: Mapping[str, Any]) -> None:
    configuration = view["LustreConfiguration"]
    # "The value must be greater than the current storage capacity" (FSx API reference, UpdateFileSystem)
    if capacity_gib is not None and capacity_gib <= view["StorageCapacity"]:
        raise ServiceError(
            "BadRequest",
            f"StorageCapacity can only grow: the file system has {view['StorageCapacity']} GiB, got {capacity_gib}.",
        )
    metadata = configuration.get("MetadataConfiguration") or {}
    iops = (changes.get("MetadataConfiguration") or {}).get("Iops")
    # user guide, "Managing metadata performance": "You cannot scale metadata performance and file system storage
    # capacity concurrently."
    if capacity_gib is not None and iops is not None and iops != metadata.get("Iops"):
        raise ServiceError(
            "BadRequest", "StorageCapacity and MetadataConfiguration.Iops cannot be scaled concurrently."
        )
    for member, has, wanted in (
        ("ThroughputCapacity", configuration.get("ThroughputCapacity"), changes.get("ThroughputCapacity")),
        (
            "MetadataConfiguration.Iops",
            metadata.get("Iops"),
            iops,
        ),
    ):
        if has is not None and wanted is not None and wanted < has:
            raise ServiceError("BadRequest", f"{member} can only grow: the file system has {has}, got {wanted}.")


def _target(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return what DescribeFileSystems tells as the target of a request (AdministrativeAction of the API reference)."""
    return {name: request[name] for name in ("StorageCapacity", "LustreConfiguration") if request.get(name) is not None}


def _limited(view: Mapping[str, Any], capacity_gib: int | None, changes: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what a request changes of what FSx changes once in six hours only."""
    configuration = view["LustreConfiguration"]
    has = (configuration.get("MetadataConfiguration") or {}).get("Iops")
    iops = (changes.get("MetadataConfiguration") or {}).get("Iops")
    return (
        *(["StorageCapacity"] if capacity_gib is not None else []),
        *(["MetadataConfiguration.Iops"] if has is not None and iops is not None and iops > has else []),
        *(
            member
            for member in ("PerUnitStorageThroughput", "ThroughputCapacity")
            if changes.get(member) not in {None, configuration.get(member)}
        ),
    )


def _check_interval(context: Context, file_system: FileSystem, members: Iterable[str]) -> None:
    hours = lustre.HOURS_BETWEEN_CHANGES
    for member in members:
        for change in file_system.changes:
            asked = _asked(context, change)
            if member in change.limited and context.clock.now() < asked + timedelta(hours=hours):
                raise ServiceError(
                    "BadRequest",
                    f"{member} was changed {asked:%Y-%m-%d %H:%M} UTC and can be changed again after {hours} hours.",
                )


def _asked(context: Context, change: FileSystemChange) -> datetime:
    """When a change was asked for, by a clock whose hours pass as fast as every other wait of this account."""
    now = context.clock.now()
    return now - (now - change.asked) / context.clock.scale


def _actions(context: Context, file_system: FileSystem, lifecycle: str) -> list[dict[str, Any]]:
    """What FSx tells of changes, the newest first; it lists ten of each type (user guide, "Monitoring ...")."""
    return [
        {
            "AdministrativeActionType": "FILE_SYSTEM_UPDATE",
            "RequestTime": _asked(context, change),
            "Status": "IN_PROGRESS" if change is file_system.changes[-1] and lifecycle == "UPDATING" else "COMPLETED",
            "TargetFileSystemValues": change.target,
        }
        for change in reversed(file_system.changes[-10:])
    ]


def _check_automatic(view: Mapping[str, Any], capacity_gib: int | None, metadata: Mapping[str, Any]) -> None:
    """Refuse the automatic mode where it would give less than there is (FSx API reference, the member Mode)."""
    has = view["LustreConfiguration"].get("MetadataConfiguration") or {}
    if metadata.get("Mode") != "AUTOMATIC" or has.get("Mode") == "AUTOMATIC" or view["StorageType"] == TIERING:
        return
    default = lustre.automatic_iops(capacity_gib or view["StorageCapacity"])
    if has["Iops"] > default:
        raise ServiceError(
            "BadRequest",
            f"MetadataConfiguration.Mode cannot become AUTOMATIC: the file system has {has['Iops']} metadata IOPS, more"
            f" than the automated default of {default}, and downscaling is not supported.",
        )


def _provision_metadata(view: Mapping[str, Any]) -> None:
    """State the metadata IOPS that are provisioned, as FSx answers in both modes."""
    configuration = view["LustreConfiguration"]
    metadata = configuration.get("MetadataConfiguration") or {}
    if metadata.get("Mode") == "AUTOMATIC":
        configuration["MetadataConfiguration"] = {**metadata, "Iops": lustre.automatic_iops(view["StorageCapacity"])}


def _refuse(problems: Mapping[str, str | None]) -> None:
    for member, problem in problems.items():
        if problem:
            raise ServiceError("BadRequest", f"{member} {problem}")


def _check_quotas(context: Context, request: Mapping[str, Any]) -> None:
    configuration = request.get("LustreConfiguration") or {}
    deployment = configuration.get("DeploymentType")
    views = [item.view for item in file_systems(context).values()]
    present = [view for view in views if view["LustreConfiguration"]["DeploymentType"] == deployment]
    used_gib = sum(view["StorageCapacity"] for view in present)
    wanted_gib = request.get("StorageCapacity") or 0
    demands: list[tuple[str, float, float]] = []
    if deployment == PERSISTENT_2:
        demands.append((quotas.PERSISTENT_2_FILE_SYSTEMS, len(present), 1))
        demands.append((quotas.PERSISTENT_2_CAPACITY, used_gib, wanted_gib))
    if deployment == SCRATCH_2:
        demands.append((quotas.SCRATCH_CAPACITY, used_gib, wanted_gib))
    for name, of in (
        (quotas.TIERING_THROUGHPUT, _tiering_mbps),
        (quotas.TIERING_READ_CACHE, _read_cache_gib),
    ):
        demands.append((name, sum(of(view["LustreConfiguration"]) for view in views), of(configuration)))
    for name, used, delta in demands:
        quota = quotas.get("fsx", name)
        limit = effective_value(context, quota)
        if delta and used + delta > limit:
            raise ServiceError(
                "ServiceLimitExceeded",
                f"{quota.name}: the limit is {limit:g}, {used:g} are in use and the request needs {delta:g} more.",
            )


def _tiering_mbps(configuration: Mapping[str, Any]) -> float:
    return float(configuration.get("ThroughputCapacity") or 0)


def _read_cache_gib(configuration: Mapping[str, Any]) -> float:
    return float((configuration.get("DataReadCacheConfiguration") or {}).get("SizeGiB") or 0)


def _check_association(context: Context, file_system: FileSystem, path: str, repository: str) -> None:
    if file_system.timeline.at(context.clock.now()) not in {"AVAILABLE", "UPDATING"}:
        raise ServiceError("BadRequest", f"File system '{file_system.file_system_id}' is not AVAILABLE.")
    if file_system.view["StorageType"] == TIERING:
        raise ServiceError(
            "BadRequest", "Data repository associations are not supported on Intelligent-Tiering file systems."
        )
    if file_system.view["LustreConfiguration"].get("AutomaticBackupRetentionDays"):
        raise ServiceError("BadRequest", "A file system with automatic backups cannot have data repositories.")
    if not path.startswith("/"):
        raise ServiceError("BadRequest", f"FileSystemPath must begin with /, got {path}.")
    for other_id in _associations(context, file_system):
        other = file_system.associations[other_id]
        if _overlap(other["FileSystemPath"], path):
            raise ServiceError("BadRequest", f"FileSystemPath {path} overlaps {other['FileSystemPath']} of {other_id}.")
        if _overlap(other["DataRepositoryPath"], repository):
            raise ServiceError(
                "BadRequest", f"DataRepositoryPath {repository} overlaps {other['DataRepositoryPath']} of {other_id}."
            )
    bucket, _, prefix = repository.removeprefix("s3://").partition("/")
    if (
        not repository.startswith("s3://")
        or not _bucket_exists(context, bucket)
        or not _may_be_linked(context, bucket, prefix)
    ):
        raise ServiceError(
            "BadRequest",
            "Amazon FSx is unable to validate access to the S3 bucket. Ensure the IAM role or user you are using has"
            " s3:Get*, s3:List* and s3:PutObject permissions to the S3 bucket prefix.",
        )


def _overlap(one: str, other: str) -> bool:
    first, second = f"{one.rstrip('/')}/", f"{other.rstrip('/')}/"
    return first.startswith(second) or second.startswith(first)


def _may_be_linked(context: Context, bucket: str, prefix: str) -> bool:
    """Whether whoever links a bucket may look into it (FSx for Lustre user guide, the page of the error above)."""
    arn = f"arn:{context.partition}:s3:::{bucket}"
    places = {arn: ("s3:GetBucketPolicy", "s3:ListBucket"), f"{arn}/{prefix}*": ("s3:GetObject", "s3:PutObject")}
    return all(may_deploy(context, action, place) for place, actions in places.items() for action in actions)


def _bucket_exists(context: Context, bucket: str) -> bool:
    known = account_of(context).existing.s3_buckets
    if known is None or bucket in known:
        return True
    try:
        context.client("s3").head_bucket(Bucket=bucket)
    except ClientError:
        return False
    return True


def _new_view(
    context: Context, request: Mapping[str, Any], file_system_id: str, subnet: Mapping[str, Any]
) -> dict[str, Any]:
    configuration = {**DEFAULT_LUSTRE, "DeploymentType": "SCRATCH_1", **(request.get("LustreConfiguration") or {})}
    # these are told back as a data repository configuration, which persistent 2 file systems do not have
    for member in ("ImportPath", "ExportPath", "ImportedFileChunkSize", "AutoImportPolicy"):
        configuration.pop(member, None)
    scratch = configuration["DeploymentType"] == "SCRATCH_1"
    configuration["MountName"] = "fsx" if scratch else _digest(context, "mount", file_system_id)[:8]
    groups = request.get("SecurityGroupIds") or _default_group(context, subnet["VpcId"])
    interfaces = [
        make_interface(
            context, subnet_id=subnet["SubnetId"], group_ids=groups, description=f"FSx for Lustre {file_system_id}"
        )
        for _ in range(SERVERS_SHOWN)
    ]
    view = {
        "OwnerId": context.account,
        "CreationTime": context.clock.now(),
        "FileSystemId": file_system_id,
        "FileSystemType": "LUSTRE",
        "FileSystemTypeVersion": request.get("FileSystemTypeVersion") or lustre.DEFAULT_VERSION,
        "StorageCapacity": request.get("StorageCapacity") or 0,
        "StorageType": request.get("StorageType") or "SSD",
        "VpcId": subnet["VpcId"],
        "SubnetIds": [subnet["SubnetId"]],
        "NetworkInterfaceIds": interfaces,
        "DNSName": f"{file_system_id}.fsx.{context.region}.{context.url_suffix}",
        "ResourceARN": context.arn("fsx", f"file-system/{file_system_id}"),
        "LustreConfiguration": configuration,
    }
    _provision_metadata(view)
    return {**view, "KmsKeyId": request["KmsKeyId"]} if request.get("KmsKeyId") else view


def _view(context: Context, file_system: FileSystem) -> dict[str, Any]:
    lifecycle = file_system.timeline.at(context.clock.now())
    view = {**file_system.view, "Lifecycle": lifecycle}
    if file_system.changes:
        view["AdministrativeActions"] = _actions(context, file_system, lifecycle)
    return {**view, "Tags": _tag_list(file_system.tags)} if file_system.tags else view


def _find(context: Context, file_system_id: str) -> FileSystem:
    file_system = file_systems(context).get(file_system_id)
    if file_system is None:
        raise ServiceError("FileSystemNotFound", f"File system '{file_system_id}' does not exist.")
    return file_system


def _associations(context: Context, file_system: FileSystem) -> list[str]:
    now = context.clock.now()
    with context.state.lock:
        for association_id in list(file_system.associations):
            if file_system.association_timelines[association_id].at(now) == GONE:
                del file_system.associations[association_id]
        return list(file_system.associations)


def _find_association(context: Context, association_id: str) -> tuple[FileSystem, str]:
    for file_system in file_systems(context).values():
        if association_id in _associations(context, file_system):
            return file_system, association_id
    raise ServiceError(
        "DataRepositoryAssociationNotFound", f"Data repository association '{association_id}' does not exist."
    )


def _association_view(context: Context, file_system: FileSystem, association_id: str) -> dict[str, Any]:
    state = file_system.association_timelines[association_id].at(context.clock.now())
    view = {**file_system.associations[association_id], "Lifecycle": state}
    tags = file_system.association_tags[association_id]
    return {**view, "Tags": _tag_list(tags)} if tags else view


def _tags_of(context: Context, arn: str) -> dict[str, str]:
    for file_system in file_systems(context).values():
        if arn == file_system.view["ResourceARN"]:
            return file_system.tags
        for association_id in _associations(context, file_system):
            if arn == file_system.associations[association_id]["ResourceARN"]:
                return file_system.association_tags[association_id]
    raise PassToMoto


def _tag_map(tags: Any) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in tags or []}


def _tag_list(tags: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in sorted(tags.items())]


def _digest(context: Context, *parts: str) -> str:
    return hashlib.sha256("/".join((context.account, context.region, *parts)).encode()).hexdigest()
