"""The fix in a message, applied literally, removes the finding and causes no new one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import yaml

from hyperpod_cdk.config import EnvironmentFileError, LoadedEnvironment
from hyperpod_cdk.config.source import parse_path
from hyperpod_cdk.findings import Finding, Severity
from tests.config.conftest import rows_of

Changed = Callable[[Mapping[str, str]], str]
Load = Callable[[str], LoadedEnvironment]

SET = re.compile(r"; (?:set|write|add) (?P<key>[A-Za-z0-9_.\[\]\"/-]+): (?P<value>\S.*)$")
REMOVE = re.compile(r"; remove (?P<key>it|[a-z_]+)(?:$|, or |:| \(| or )")
OWNED = re.compile(r"[0-9]{12}|\b(?:fs|vpc|subnet|sg|ami|backup|ws)-[0-9a-f-]{6,}")
"""Values that belong to a user: an account, and the ID of a resource."""

CHOICES = re.compile(r" without quotes|,? or |, and | \(| in one|, which | where |, one of |,? unless | if | with its ")
"""The text after the value in a fix with several options."""


def loaded(text: str) -> Any:
    """Read a file as the product does: PyYAML's own parser refuses some that libyaml takes."""
    return yaml.load(text, yaml.CSafeLoader)


def test_no_fix_proposes_an_account_or_id_that_the_file_does_not_hold(changed: Changed, load: Load) -> None:
    for name, text in texts(changed):
        for finding in findings(load, text):
            for key, value in fix_of(finding):
                strange = [word for word in OWNED.findall(value) if word not in text]
                assert not strange, f"{name}: {key}: {value}"


def test_an_example_has_the_account_and_region_of_the_file(changed: Changed, load: Load) -> None:
    text = changed({})
    data = loaded(text.replace("111122223333", "222233334444"))
    data["eks"]["admin_role_arns"] = ["arn:aws:iam::222233334444:user/bob"]
    data["eks"]["image_registry"] = "https://222233334444.dkr.ecr.us-east-1.amazonaws.com/mirror"
    said = [finding.message.rpartition("; ")[2] for finding in findings(load, yaml.safe_dump(data, sort_keys=False))]
    assert said == [
        "name the role that people assume, such as arn:aws:iam::222233334444:role/platform-admin",
        "set image_registry: 222233334444.dkr.ecr.us-east-1.amazonaws.com/mirror",
    ]


def test_an_example_has_the_region_of_a_sovereign_partition(changed: Changed, load: Load) -> None:
    data = loaded(changed({}))
    data["region"] = "eusc-de-east-1"
    data["eks"]["image_registry"] = "https://x"
    (said,) = [each.message for each in findings(load, yaml.safe_dump(data)) if each.path == "eks.image_registry"]
    assert said.endswith("111122223333.dkr.ecr.eusc-de-east-1.amazonaws.com/mirror"), said


def test_a_removal_that_is_carried_out_is_a_fix(changed: Changed, load: Load) -> None:
    carried_out = 0
    wrong = []
    for name, text in texts(changed):
        for finding in findings(load, text):
            if fixed := without(text, finding):
                carried_out += 1
                after = findings(load, fixed)
                wrong += [
                    f"{name}: {finding.render()} -> {each.render()}"
                    for each in after
                    if (each.message, each.path) == (finding.message, finding.path)
                    or (each.severity is Severity.ERROR and each.path == finding.path and each.rule != "missing_key")
                ]
    assert not wrong, "\n".join(wrong)
    assert carried_out > 30


def without(text: str, finding: Finding) -> str | None:
    """Carry out a fix that says what to remove; None where the finding has none, or the file cannot be read."""
    match = REMOVE.search(finding.message)
    path = list(parse_path(finding.path) or ())
    if match is None or not path:
        return None
    try:
        data: Any = loaded(text)
    except yaml.YAMLError:
        return None
    key = path[-1] if match["key"] == "it" else match["key"]
    for above in (path[:-1], path, path[:-2], [], [path[0]]):
        section = value_at(data, above)
        if isinstance(section, dict) and key in section:
            del section[key]
            return yaml.safe_dump(data, sort_keys=False)
        if isinstance(section, list) and isinstance(key, int):
            del section[key]
            return yaml.safe_dump(data, sort_keys=False)
    return None


def test_a_fix_that_is_applied_is_a_fix(changed: Changed, load: Load) -> None:
    applied = 0
    wrong = []
    for name, text in texts(changed):
        before = findings(load, text)
        for finding in before:
            for key, value in fix_of(finding):
                fixed = written(text, finding, key, value)
                if fixed is None:
                    continue
                applied += 1
                after = findings(load, fixed)
                if "because Karpenter scales only these" in finding.message:
                    continue  # which of the groups is the reader's choice
                if any((each.message, each.path) == (finding.message, finding.path) for each in after):
                    wrong.append(f"{name}: not gone: {finding.render()}")
                wrong += [
                    f"{name}: {finding.render()} -> {each.render()}"
                    for each in after
                    if each.severity is Severity.ERROR and each.path == finding.path and not is_next_step(finding, each)
                ]
    assert not wrong, "\n".join(wrong)
    assert applied > 60


def test_no_fix_leads_back(changed: Changed, load: Load) -> None:
    circles = []
    for name, text in texts(changed):
        seen, said = {text}, []
        while step := next_step(text, findings(load, text)):
            finding, text = step  # noqa: PLW2901 - the file after its fix
            said.append(finding.render())
            if text in seen:
                circles.append(f"{name}: {' -> '.join(said)}")
                break
            seen.add(text)
    assert not circles, "\n".join(circles)


def next_step(text: str, found: Sequence[Finding]) -> tuple[Finding, str] | None:
    """Carry out the first fix of an error that can be; returns the error and the text after it."""
    for finding in found:
        if finding.severity is not Severity.ERROR or "because Karpenter scales only these" in finding.message:
            continue  # which of the groups is the reader's choice
        fixed = [written(text, finding, key, value) for key, value in fix_of(finding)]
        after = next((each for each in fixed if each), None) or without(text, finding)
        if after:
            return finding, after
    return None


def is_next_step(first: Finding, then: Finding) -> bool:
    """Return whether the second finding requires something that the first one's fix refers to, in another place."""
    return (
        # a partition that the type has still wants the label that makes it
        then.rule == "partitions_are_made"
        or (key_is_a_zone(first) and "or add the zone there" in then.message)
        or ("with its training_plan_arn" in first.message and "plan" in then.message)
    )


def key_is_a_zone(finding: Finding) -> bool:
    return finding.path.endswith("availability_zone_id")


def value_at(data: Any, path: Sequence[str | int]) -> Any:
    for step in path:
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):
            return None
    return data


def texts(changed: Changed) -> Iterator[tuple[str, str]]:
    """Yield the name and text of every wrong file."""
    for table in ("wrong_files.yaml", "first_files.yaml", "doubtful_files.yaml"):
        for section, rows in rows_of(table).items():
            for case, row in rows.items():
                yield f"{section}-{case}", changed(row["change"])


def findings(load: Load, text: str) -> tuple[Finding, ...]:
    try:
        return load(text).warnings
    except EnvironmentFileError as error:
        return error.findings


def fix_of(finding: Finding) -> Iterator[tuple[str, str]]:
    """Yield key and value of a fix."""
    match = SET.search(finding.message)
    if match:
        yield match["key"], CHOICES.split(match["value"])[0].rstrip("?,")


def written(text: str, finding: Finding, key: str, value: str) -> str | None:
    """Write a value at the finding's place; returns None if the file cannot be read, or has no such key."""
    try:
        data: Any = loaded(text)
        parsed = loaded(value)
    except yaml.YAMLError:
        return None
    path = list(parse_path(finding.path) or ())
    steps = list(parse_path(key) or ())
    if not steps or not isinstance(data, dict):
        return None
    place = next((path[:n] for n in range(len(path), -1, -1) if path[n : n + len(steps)] == steps), None)
    # what a section needs is next to it, not in it
    if place is None and len(steps) == 1 and finding.message.startswith("needs "):
        place = path[:-1]
    if place is None and len(steps) == 1 and isinstance(value_at(data, path), dict):
        place = path
    if place is None:
        place = [] if str(steps[0]) in data and len(steps) > 1 else path[:-1]
    at: Any = data
    for step in (*place, *steps[:-1]):
        try:
            at = at.setdefault(step, {}) if isinstance(at, dict) else at[step]
        except (IndexError, TypeError, KeyError):
            return None
    if not isinstance(at, dict | list):
        return None
    at[steps[-1]] = parsed  # type: ignore[index] # a step of a list is its number
    return yaml.safe_dump(data, sort_keys=False)
