"""Randomly broken files of every kind that the command reads, and their readers."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hyperpod_cdk.catalog.prices import PricesError, read_prices
from hyperpod_cdk.config import EnvironmentFileError, LoadedEnvironment, load_environment
from hyperpod_cdk.config.documents import DocumentError
from hyperpod_cdk.eks.charts import LOCK_FILE, ChartError, ChartLock
from hyperpod_cdk.review.review_file import read_rules
from hyperpod_cdk.templates.assembly import Assembly, AssemblyError, Stack, parse_template
from hyperpod_cdk.templates.rules import problems
from hyperpod_cdk.workloads import report
from hyperpod_cdk.workloads.admission.manifest_shape import read_documents
from hyperpod_cdk.workloads.admission.simulation import Admission, ClusterModel
from hyperpod_cdk.workloads.loading import load_job
from hyperpod_cdk_rehearsal.embedded.account import DEFAULT_ACCOUNT_FILE, AccountFileError, read_account_file
from tests.support.legal import HOSTILE

PROJECT = Path(__file__).parents[2]
_LONGEST_LINE = 6000
_WORDS: tuple[bytes, ...] = (
    *(each.encode("utf-8", "replace") for each in HOSTILE),
    b"\xff\xfe",
    b"\xc3",
    b"\x00" * 20,
    b"a" * 70_000,
    b"[" * 3000,
    b"{" * 3000,
    b"9" * 5000,
    b"-" * 100,
    b"1e999",
    b"-1",
    b"0x1f",
    b".nan",
    b"null",
    b"true",
    b"~",
    b"&a *a",
    b"<<: *a",
    b"!!python/object:os.system x",
    b"\r\n",
    b"---\n",
    b"? ",
    b"\xef\xbb\xbf",
    b"2026-13-45",
    b"1970-01-01T00:00:00Z",
)


@dataclass(frozen=True)
class Kind:
    """One kind of file: valid examples, and the reader. ``read`` returns the lines of a refusal."""

    originals: Sequence[bytes]
    read: Callable[[Path], Sequence[str]]


def mutated(original: bytes, chance: random.Random) -> bytes:
    """Break a file in one to four places."""
    text = original
    for _ in range(chance.randint(1, 4)):
        start = chance.randrange(len(text) + 1)
        end = min(len(text), start + chance.choice((0, 1, 3, 20, 200)))
        how = chance.randrange(6)
        if how == 0:
            text = text[:start] + chance.choice(_WORDS) + text[end:]
        elif how == 1:
            text = text[:start] + text[end:]
        elif how == 2:
            text = text[:end] + text[start:end] * chance.choice((1, 2, 50)) + text[end:]
        elif how == 3:
            text = text[:start] + bytes([chance.randrange(256)]) + text[start + 1 :]
        elif how == 4:
            lines = text.split(b"\n")
            index, other = chance.randrange(len(lines)), chance.randrange(len(lines))
            lines[index], lines[other] = lines[other], lines[index]
            text = b"\n".join(lines)
        else:
            lines = text.split(b"\n")
            index = chance.randrange(len(lines))
            key, colon, _ = lines[index].partition(b":")
            lines[index] = key + colon + b" " + chance.choice(_WORDS)
            text = b"\n".join(lines)
    return text


def kinds(folder: Path) -> Mapping[str, Kind]:
    """Return every kind of file; ``folder`` becomes a project with the environment dev."""
    environments = folder / "environments"
    environments.mkdir(parents=True)
    dev = (PROJECT / "examples" / "two-teams.yaml").read_bytes().replace(b"two-teams", b"dev")
    (environments / "dev.yaml").write_bytes(dev)
    loaded = load_environment(environments / "dev.yaml")
    examples = [path.read_bytes() for path in sorted((PROJECT / "examples").glob("*.yaml"))]
    jobs = [path.read_bytes() for path in sorted((PROJECT / "examples" / "jobs").glob("*.yaml"))]
    logs = [path.read_bytes() for path in sorted((PROJECT / "tests/workloads/report/logs").iterdir()) if path.is_file()]
    templates = [path.read_bytes() for path in sorted((PROJECT / "synthesized").rglob("*.yaml"))[:3]]
    plans = (
        b'{"schema_version": 1, "recorded": "2026-11-21", "account": "111122223333", "region": "us-west-2",'
        b'\n "plans": [{"arn": "arn:aws:sagemaker:us-west-2:111122223333:training-plan/p", "name": "p", "status":'
        b' "Active", "target_resources": ["hyperpod-cluster"], "instance_count": 4, "blocks": []}]}\n'
    )
    quotas = (
        b'{"schema_version": 1, "recorded": "2026-11-21", "account": "111122223333", "region": "us-west-2",'
        b'\n "quotas": [{"service": "sagemaker", "name": "ml.g5.12xlarge for cluster usage", "code": "L-1", "value": 4,'
        b' "is_default": false, "used": {"cluster:ml.g5.12xlarge": 0}}]}\n'
    )
    prices = (PROJECT / "constructs/hyperpod_cdk/catalog/data/prices.json").read_bytes()
    guide = (PROJECT / "docs" / "review.md").read_bytes()
    start = guide.index(b"thresholds: {")
    reviews = [
        (PROJECT / "constructs/hyperpod_cdk/_cli/project/review.yaml").read_bytes(),
        guide[start : guide.index(b"```", start)],
    ]
    manifests = [path.read_bytes() for path in sorted((PROJECT / "tests/workloads/manifests").rglob("*.yaml"))[:12]]
    return {
        "environment": Kind(examples, _environment),
        "job": Kind(jobs, lambda path: _job(path, loaded)),
        "log": Kind(logs, _log),
        "plans": Kind([plans], lambda path: _beside(path, environments / "dev.plans.json")),
        "quotas": Kind([quotas], lambda path: _beside(path, environments / "dev.quotas.json")),
        "template": Kind(templates, _template),
        "account": Kind([DEFAULT_ACCOUNT_FILE.read_bytes()], _account),
        "prices": Kind([prices], _prices),
        "review": Kind(reviews, _review),
        "charts": Kind([(PROJECT / LOCK_FILE).read_bytes()], lambda path: _charts(path, folder)),
        "manifests": Kind(manifests, lambda path: _manifests(path, loaded)),
    }


def cases(folder: Path, *, count: int, seed: int) -> Iterator[tuple[str, bytes, Kind]]:
    """Yield ``count`` broken files, the kinds in turn."""
    chance = random.Random(seed)  # noqa: S311 - the same files for the same seed
    table = kinds(folder)
    names = list(table)
    for number in range(count):
        name = names[number % len(names)]
        kind = table[name]
        yield name, mutated(chance.choice(kind.originals), chance), kind


def looked_at(folder: Path, text: bytes, kind: Kind) -> None:
    """Read a file: a refusal is a list of single lines, and never an exception."""
    path = folder / "broken.yaml"
    path.write_bytes(text)
    for line in kind.read(path):
        assert 0 < len(line) < _LONGEST_LINE, line[:300]
        assert len(line.splitlines()) == 1, line


def _environment(path: Path) -> Sequence[str]:
    try:
        load_environment(path)
    except EnvironmentFileError as error:
        return [each.render() for each in error.findings]
    return []


def _job(path: Path, environment: LoadedEnvironment) -> Sequence[str]:
    try:
        load_job(path, environment=environment)
    except DocumentError as error:
        return [each.render() for each in error.findings]
    return []


def _log(path: Path) -> Sequence[str]:
    with path.open("rb") as stream:
        report.report_json(report.judge(report.parse_files([(path.name, report.read_lines(stream))])))
    return []


def _beside(path: Path, record: Path) -> Sequence[str]:
    record.write_bytes(path.read_bytes())
    try:
        return _environment(record.with_name("dev.yaml"))
    finally:
        record.unlink()


def _template(path: Path) -> Sequence[str]:
    try:
        template = parse_template(path.read_bytes().decode("utf-8", "replace"), path.name)
    except AssemblyError as error:
        return [str(error)]
    stack = Stack(name="broken", template=template, region="us-east-1", file=path)
    return [each.message for each in problems(Assembly(environment="", stacks=(stack,)))]


def _account(path: Path) -> Sequence[str]:
    try:
        read_account_file(path)
    except AccountFileError as error:
        return [str(error)]
    return []


def _review(path: Path) -> Sequence[str]:
    try:
        read_rules(path)
    except DocumentError as error:
        return [each.render() for each in error.findings]
    return []


def _charts(path: Path, project: Path) -> Sequence[str]:
    lock = project / LOCK_FILE
    lock.parent.mkdir(exist_ok=True)
    lock.write_bytes(path.read_bytes())
    try:
        ChartLock.load(project)
    except ChartError as error:
        return [str(error)]
    return []


def _manifests(path: Path, environment: LoadedEnvironment) -> Sequence[str]:
    try:
        Admission(ClusterModel.of(environment.environment)).submit(read_documents(path))
    except ValueError as error:
        return [str(error)]
    return []


def _prices(path: Path) -> Sequence[str]:
    try:
        read_prices(path, where=path.name)
    except PricesError as error:
        return [str(error)]
    return []
