"""Handlers of the FSx types: Lustre file system, data repository association."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hyperpod_cdk_rehearsal.embedded.resources._calls import call, changed, ignoring, retag, stack_tags, tag_list, take
from hyperpod_cdk_rehearsal.embedded.resources._waiting import wait_until_gone, wait_while
from hyperpod_cdk_rehearsal.embedded.resources.registry import (
    HandlerError,
    ResourceHandler,
    ResourceRequest,
    ResourceResult,
    handles,
)

FILE_SYSTEM_GONE = "FileSystemNotFound"
ASSOCIATION_GONE = "DataRepositoryAssociationNotFound"
PASSING = ("CREATING", "UPDATING")

UPDATABLE_LUSTRE = (
    "AutoImportPolicy",
    "AutomaticBackupRetentionDays",
    "DailyAutomaticBackupStartTime",
    "DataCompressionType",
    "DataReadCacheConfiguration",
    "LogConfiguration",
    "MetadataConfiguration",
    "PerUnitStorageThroughput",
    "RootSquashConfiguration",
    "ThroughputCapacity",
    "WeeklyMaintenanceStartTime",
)
"""Members of LustreConfiguration that UpdateFileSystem takes; a change of any other cannot be made in place."""


@handles("AWS::FSx::FileSystem")
class FileSystemHandler(ResourceHandler):
    """`Ref` is the file system's id."""

    # the schema marks no nested property; the template reference does: "Update requires: Replacement"
    create_only = frozenset({"LustreConfiguration.CopyTagsToBackups", "LustreConfiguration.DeploymentType"})

    def create(self, request: ResourceRequest) -> ResourceResult:
        """Create the file system and wait until it is AVAILABLE."""
        members = (
            "FileSystemType",
            "FileSystemTypeVersion",
            "KmsKeyId",
            "LustreConfiguration",
            "SecurityGroupIds",
            "StorageCapacity",
            "StorageType",
            "SubnetIds",
        )
        tags = [*tag_list(request.properties.get("Tags")), *stack_tags(request)]
        arguments = {**take(request.properties, *members), "Tags": tags}
        backup_id = request.properties.get("BackupId")
        if backup_id:
            # a backup says itself of what kind it is
            restored = {**arguments, "FileSystemType": None, "BackupId": backup_id}
            made = call(_fsx(request), "create_file_system_from_backup", restored)
        else:
            made = call(_fsx(request), "create_file_system", arguments)
        return self._settled(request, made["FileSystem"]["FileSystemId"])

    def update(self, request: ResourceRequest) -> ResourceResult:
        """Grow the file system and change its settings in place."""
        file_system_id = request.existing_id
        before = _lustre(request.previous or {})
        after = _lustre(request.properties)
        changes = {member: value for member, value in after.items() if before.get(member) != value}
        fixed = sorted({*(set(before) - set(after)), *changes} - set(UPDATABLE_LUSTRE))
        if fixed:
            raise HandlerError("NotUpdatable", f"LustreConfiguration members cannot be changed: {', '.join(fixed)}")
        if changed(request, "StorageType"):
            raise HandlerError("NotUpdatable", "StorageType cannot be changed")
        if changes or changed(request, "StorageCapacity"):
            arguments = {"FileSystemId": file_system_id, "LustreConfiguration": changes or None}
            if changed(request, "StorageCapacity"):
                arguments["StorageCapacity"] = request.properties.get("StorageCapacity")
            call(_fsx(request), "update_file_system", arguments)
        result = self._settled(request, file_system_id)
        _retag(request, str(result.attributes["ResourceARN"]))
        return result

    def delete(self, request: ResourceRequest) -> None:
        """Delete the file system and wait until it is gone."""
        file_system_id = request.existing_id
        fsx = _fsx(request)
        with ignoring(FILE_SYSTEM_GONE):
            fsx.delete_file_system(FileSystemId=file_system_id)
        wait_until_gone(
            request.context, lambda: fsx.describe_file_systems(FileSystemIds=[file_system_id]), FILE_SYSTEM_GONE
        )

    def _settled(self, request: ResourceRequest, file_system_id: str) -> ResourceResult:
        fsx = _fsx(request)
        found = wait_while(
            request.context,
            lambda: dict(fsx.describe_file_systems(FileSystemIds=[file_system_id])["FileSystems"][0]),
            lambda item: str(item["Lifecycle"]),
            *PASSING,
        )
        if found["Lifecycle"] != "AVAILABLE":
            raise HandlerError("NotStabilized", f"File system {file_system_id} is {found['Lifecycle']}")
        attributes = {
            "Id": file_system_id,
            "DNSName": found["DNSName"],
            "LustreMountName": found.get("LustreConfiguration", {}).get("MountName", ""),
            "ResourceARN": found["ResourceARN"],
            "RootVolumeId": "",
        }
        return ResourceResult(file_system_id, attributes)


@handles("AWS::FSx::DataRepositoryAssociation")
class DataRepositoryAssociationHandler(ResourceHandler):
    """`Ref` is the association's id."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        """Link the directory and wait until the link is AVAILABLE."""
        members = (
            "BatchImportMetaDataOnCreate",
            "DataRepositoryPath",
            "FileSystemId",
            "FileSystemPath",
            "ImportedFileChunkSize",
            "S3",
        )
        arguments = {**take(request.properties, *members), "Tags": tag_list(request.properties.get("Tags")) or None}
        made = call(_fsx(request), "create_data_repository_association", arguments)
        return self._settled(request, made["Association"]["AssociationId"])

    def update(self, request: ResourceRequest) -> ResourceResult:
        """Change what is imported and exported by itself."""
        members = ("ImportedFileChunkSize", "S3")
        if changed(request, *members):
            arguments = {"AssociationId": request.existing_id, **take(request.properties, *members)}
            call(_fsx(request), "update_data_repository_association", arguments)
        result = self._settled(request, request.existing_id)
        _retag(request, str(result.attributes["ResourceARN"]))
        return result

    def delete(self, request: ResourceRequest) -> None:
        """Cut the link and wait until it is gone; the data stays."""
        association_id = request.existing_id
        fsx = _fsx(request)
        with ignoring(ASSOCIATION_GONE):
            fsx.delete_data_repository_association(AssociationId=association_id, DeleteDataInFileSystem=False)
        wait_until_gone(
            request.context,
            lambda: fsx.describe_data_repository_associations(AssociationIds=[association_id])["Associations"],
            ASSOCIATION_GONE,
        )

    def _settled(self, request: ResourceRequest, association_id: str) -> ResourceResult:
        fsx = _fsx(request)
        found = wait_while(
            request.context,
            lambda: dict(fsx.describe_data_repository_associations(AssociationIds=[association_id])["Associations"][0]),
            lambda item: str(item["Lifecycle"]),
            *PASSING,
        )
        if found["Lifecycle"] != "AVAILABLE":
            message = found.get("FailureDetails", {}).get("Message", "")
            raise HandlerError(
                "NotStabilized", f"Association {association_id} is {found['Lifecycle']} {message}".strip()
            )
        return ResourceResult(association_id, {"AssociationId": association_id, "ResourceARN": found["ResourceARN"]})


def _fsx(request: ResourceRequest) -> Any:
    return request.context.client("fsx")


def _lustre(properties: Mapping[str, Any]) -> dict[str, Any]:
    return dict(properties.get("LustreConfiguration") or {})


def _retag(request: ResourceRequest, arn: str) -> None:
    fsx = _fsx(request)
    retag(
        request,
        add=lambda tags: fsx.tag_resource(ResourceARN=arn, Tags=tag_list(tags)),
        remove=lambda keys: fsx.untag_resource(ResourceARN=arn, TagKeys=keys),
    )
