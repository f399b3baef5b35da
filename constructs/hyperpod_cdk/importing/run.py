"""From a file of another kind to an environment file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from hyperpod_cdk.config import EnvironmentFileError, LoadedEnvironment, load_environment, missing_scripts
from hyperpod_cdk.config.documents import DocumentError, shown
from hyperpod_cdk.config.loading import SCRIPTS
from hyperpod_cdk.findings import Finding, Severity
from hyperpod_cdk.importing import create_cluster, document
from hyperpod_cdk.importing.document import Log, Node
from hyperpod_cdk.importing.draft import Draft, Known
from hyperpod_cdk.importing.model import Imported, Kind, Note
from hyperpod_cdk.importing.page import file_text

_UNKNOWN = (
    "is none of what can be imported: a request of CreateCluster (with InstanceGroups) or an answer of DescribeCluster;"
    " name the right file"
)


def detected(text: str, file: str, log: Log) -> tuple[Kind, Node]:
    """Tell by its content what a source is. Raises DocumentError where it is nothing that is known."""
    node = document.opened(text, file, log)
    if create_cluster.is_cluster(node):
        return ("describe-cluster" if create_cluster.is_answer(node) else "create-cluster"), node
    raise DocumentError(
        [Finding(severity=Severity.ERROR, message=_UNKNOWN, file=file, line=1, rule="import")], file=file
    )


_READERS: dict[Kind, Callable[[Node, Draft], None]] = {
    "create-cluster": create_cluster.read_cluster,
    "describe-cluster": create_cluster.read_cluster,
}


def imported(path: Path, known: Known, *, target: Path, root: Path, schema: str | None) -> tuple[Imported, str]:
    """Give what becomes of a source, and the text of the environment file ``target``; nothing is written.

    ``root`` is the project, whose lifecycle scripts the file may name; ``schema`` the JSON Schema as seen from the
    file. Raises DocumentError with everything for which the source is refused.
    """
    file, log = shown(path), Log()
    kind, node = detected(document.read(path), file, log)
    draft = Draft(known, log)
    _READERS[kind](node, draft)
    data = draft.page()
    log.raise_errors()
    if kind == "describe-cluster":
        log.note(
            "unsafe",
            "the cluster stands already, and names are unique in an account: a deployment of this file does not take it"
            " over, it fails at that name; write another one to have a cluster made beside it",
            path="hyperpod.cluster_name",
        )
    text = file_text(data, source=file, kind=kind, schema=schema, notes=log.notes)
    refused = _refused(target, text, root, log.notes)
    notes = (*log.notes, *refused)
    name = known.name
    report = Imported(
        environment=name,
        source=file,
        kind=kind,
        file=shown(target),
        passed=not any(each.weight in ("missing", "refused") for each in notes),
        instance_groups=len(draft.groups),
        notes=notes,
        next=(f"hyperpod-cdk validate {name}", f"hyperpod-cdk rehearse {name}", f"hyperpod-cdk preflight {name}"),
    )
    return report, text


def _refused(target: Path, text: str, root: Path, notes: Sequence[Note]) -> list[Note]:
    """Give what 'validate' refuses of the file, but for what is known to be missing."""
    missing = {each.path for each in notes if each.weight == "missing"}
    loaded: LoadedEnvironment | None = None
    try:
        loaded = load_environment(target, text=text, with_record=False)
        findings: Sequence[Finding] = missing_scripts([loaded], root / SCRIPTS)
    except EnvironmentFileError as error:
        findings = error.findings
    return [
        Note(weight="refused", source="", path=each.path, message=each.message)
        for each in findings
        if each.severity is Severity.ERROR and each.path not in missing
    ]
