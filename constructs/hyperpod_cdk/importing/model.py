"""An import as data: what ``--format json`` writes. Its schema is published."""

from __future__ import annotations

from typing import Final, Literal

from hyperpod_cdk.json_schema import Model

Kind = Literal["create-cluster", "describe-cluster", "living", "setup", "terraform", "terraform-state"]
"""What was read."""

Family = Literal["create-cluster", "setup", "terraform"]
"""What a source can be said to be; an answer of DescribeCluster is told from a request anyway."""

Weight = Literal["missing", "skipped", "refused", "unsafe", "changed", "lost"]
"""How a note weighs; see ``WEIGHTS``."""

WEIGHTS: Final[dict[Weight, str]] = {
    "missing": "the file needs it and the source does not say it; nothing is in its place",
    "skipped": "AWS did not answer, so that the file may lack something; nothing is in its place",
    "refused": "'validate' refuses the file for it",
    "unsafe": "taken over as it is, and worth a change",
    "changed": "the environment does it otherwise",
    "lost": "the source says it and the file does not",
}


class Note(Model):
    """One thing that a reader has to know of the file that was written."""

    weight: Weight
    source: str
    """Where it comes from: file, line and place; empty where the source says nothing of it."""
    path: str
    """The place in the environment file; empty where it has none there."""
    message: str

    def render(self) -> str:
        """Give the note on one line, without its weight."""
        places = " -> ".join(each for each in (self.source, self.path) if each)
        return f"{places}: {self.message}" if places else self.message


class Imported(Model):
    """What became of a source."""

    environment: str
    source: str
    """The file that was read, or the cluster."""
    kind: Kind
    file: str
    """The environment file that was written."""
    passed: bool | None
    """Whether 'validate' accepts the file as it was written; null where it does and AWS did not answer everything."""
    instance_groups: int
    notes: tuple[Note, ...]
    next: tuple[str, ...]
    """Commands that come next."""
