"""An import as data: what ``--format json`` writes. Its schema is published."""

from __future__ import annotations

from typing import Final, Literal

from hyperpod_cdk.json_schema import Model

Kind = Literal["create-cluster", "describe-cluster", "living", "setup", "terraform", "terraform-state"]
"""What was read."""

Family = Literal["create-cluster", "setup", "terraform"]
"""The kinds of sources that a user can name; an answer of DescribeCluster is recognized in any case."""

Weight = Literal["missing", "skipped", "refused", "unsafe", "changed", "lost"]
"""The severity of a note; see ``WEIGHTS``."""

WEIGHTS: Final[dict[Weight, str]] = {
    "missing": "the file needs it and the source does not state it; the file has no value for it",
    "skipped": "AWS did not answer, so something may be missing in the file",
    "refused": "'validate' refuses the file for it",
    "unsafe": "imported as it is, and should be changed",
    "changed": "the environment does it in another way",
    "lost": "the source has it and the file does not",
}


class Note(Model):
    """One thing that a reader has to know about the written file."""

    weight: Weight
    source: str
    """Where it comes from: file, line and place; empty if the source has no place for it."""
    path: str
    """The place in the environment file; empty if it has none."""
    message: str

    def render(self) -> str:
        """Return the note on one line, without its weight."""
        places = " -> ".join(each for each in (self.source, self.path) if each)
        return f"{places}: {self.message}" if places else self.message


class Imported(Model):
    """The result of an import."""

    environment: str
    source: str
    """The file that was read, or the cluster."""
    kind: Kind
    file: str
    """The environment file that was written."""
    passed: bool | None
    """Whether 'validate' accepts the written file; null if it does and AWS did not answer everything."""
    instance_groups: int
    notes: tuple[Note, ...]
    next: tuple[str, ...]
    """Commands that come next."""
