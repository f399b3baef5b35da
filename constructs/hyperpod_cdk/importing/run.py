"""From a file of another kind, or an existing cluster, to an environment file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hyperpod_cdk.config import EnvironmentFileError, LoadedEnvironment, load_environment, missing_scripts
from hyperpod_cdk.config.documents import DocumentError, shown
from hyperpod_cdk.config.loading import SCRIPTS, called
from hyperpod_cdk.findings import Finding, Severity
from hyperpod_cdk.importing import create_cluster, document, set_up, terraform, tfstate, tfvars
from hyperpod_cdk.importing.document import Log, Node
from hyperpod_cdk.importing.draft import Draft, Known
from hyperpod_cdk.importing.live import read_living_cluster
from hyperpod_cdk.importing.model import Family, Imported, Kind, Note
from hyperpod_cdk.importing.page import file_text
from hyperpod_cdk.review.deployed import Api

_UNKNOWN = (
    "cannot be imported: it must be a request of CreateCluster (with InstanceGroups), an answer of DescribeCluster,"
    " parameters of AWS's set-up stack (with InstanceGroupSettings1), variables of AWS's Terraform module (with"
    " instance_groups) or its state; name the right file"
)


def detected(text: str, file: str, log: Log, *, said: Family | None = None) -> tuple[Kind, Node]:
    """Return the kind of a source by its content, unless it is ``said``. Raises DocumentError if it is unknown."""
    if tfvars.is_tfvars(text):
        source = tfvars.read_tfvars(text, file)
        node = Node(source, source.data if isinstance(source.data, dict) else {}, (), log)
    else:
        node = document.opened(text, file, log)
    if said in (None, "terraform") and tfstate.is_state(node):
        return "terraform-state", node
    parameters = set_up.parameters_of(node, is_certain=said == "setup")
    if parameters is not None and said in (None, "setup"):
        return "setup", parameters
    if said == "create-cluster" or (said is None and create_cluster.is_cluster(node)):
        return ("describe-cluster" if create_cluster.is_answer(node) else "create-cluster"), node
    if said == "terraform" or (said is None and terraform.is_variables(node)):
        return "terraform", node
    raise DocumentError(
        [Finding(severity=Severity.ERROR, message=_UNKNOWN, file=file, line=1, rule="import")], file=file
    )


_READERS: dict[Kind, Callable[[Node, Draft], None]] = {
    "create-cluster": create_cluster.read_cluster,
    "describe-cluster": create_cluster.read_cluster,
    "setup": set_up.read_parameters,
    "terraform": terraform.read_variables,
    "terraform-state": tfstate.read_state,
}


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where an environment file is written: ``target``, in the project ``root``, whose lifecycle scripts it can name.

    ``schema`` is the JSON Schema as seen from the file, None where it has none.
    """

    target: Path
    root: Path
    schema: str | None


def imported(path: Path, known: Known, *, to: Place, kind: Family | None = None) -> tuple[Imported, str]:
    """Return the result of an import, and the text of the environment file; nothing is written.

    ``kind`` is the kind of the source. Default: by its content. Raises DocumentError with all reasons for which the
    source is refused.
    """
    file, log = shown(path), Log()
    found, node = detected(document.read(path), file, log, said=kind)
    draft = Draft(known, log)
    _READERS[found](node, draft)
    return _written(draft, source=file, kind=found, to=to)


def imported_living(aws: Api, cluster: str, known: Known, *, to: Place) -> tuple[Imported, str]:
    """Return the result of importing an existing cluster by its name, as ``imported`` does; AWS is only read.

    Raises DocumentError if the cluster does not exist, cannot be read, or is not on EKS.
    """
    draft = read_living_cluster(aws, cluster, known, Log())
    return _written(draft, source=f"cluster {cluster}", kind="living", to=to)


def _written(draft: Draft, *, source: str, kind: Kind, to: Place) -> tuple[Imported, str]:
    log = draft.log
    data = draft.page()
    log.raise_errors()
    if kind == "describe-cluster":
        log.note(
            "unsafe",
            "the cluster already exists, and names are unique in an account: a deployment of this file does not take it"
            " over, it fails because of the name; write another one to create a second cluster",
            path="hyperpod.cluster_name",
        )
    text = file_text(data, source=source, kind=kind, schema=to.schema, notes=log.notes)
    notes = (*log.notes, *_refused(to.target, text, to.root, log.notes))
    weights = {each.weight for each in notes}
    name = draft.known.name
    report = Imported(
        environment=name,
        source=source,
        kind=kind,
        file=shown(to.target),
        passed=False if weights & {"missing", "refused"} else None if "skipped" in weights else True,
        instance_groups=len(draft.groups),
        notes=notes,
        next=tuple(f"hyperpod-cdk {verb} {called(to.target)}" for verb in ("validate", "rehearse", "preflight")),
    )
    return report, text


def _refused(target: Path, text: str, root: Path, notes: Sequence[Note]) -> list[Note]:
    """Return what 'validate' refuses in the file, except what is known to be missing."""
    missing = {each.path for each in notes if each.weight == "missing"}
    if "hyperpod.restricted_dependencies" in missing:
        missing.add("hyperpod.restricted_instance_groups")
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
