"""Every rule with a file that breaks it: the complete messages are in two tables next to this file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from hyperpod_cdk.config import EnvironmentFileError, LoadedEnvironment
from hyperpod_cdk.config.rules import RULES
from hyperpod_cdk.findings import Finding, Severity
from tests.config.conftest import FILE, rows_of
from tests.support.tables import row_by_row

Changed = Callable[[Mapping[str, str]], str]
Load = Callable[[str], LoadedEnvironment]
Refuse = Callable[[str], tuple[Finding, ...]]


def cases(name: str) -> Iterator[Any]:
    for section, rows in rows_of(name).items():
        for case, row in rows.items():
            says = [f"{FILE}:{line}" for line in row["says"]]
            yield pytest.param(row["change"], says, id=f"{section}-{case}")


def test_the_base_file_is_right(base: str, load: Load) -> None:
    assert load(base).warnings == ()


@row_by_row("change, says", cases("wrong_files.yaml"))
def test_wrong_file(changed: Changed, refuse: Refuse, change: Mapping[str, str], says: list[str]) -> None:
    assert [finding.render() for finding in refuse(changed(change))] == says


@row_by_row("change, says", cases("first_files.yaml"))
def test_first_file(changed: Changed, refuse: Refuse, change: Mapping[str, str], says: list[str]) -> None:
    assert [finding.render() for finding in refuse(changed(change))] == says


@row_by_row("change, says", cases("doubtful_files.yaml"))
def test_doubtful_file(changed: Changed, load: Load, change: Mapping[str, str], says: list[str]) -> None:
    assert [finding.render() for finding in load(changed(change)).warnings] == says


def test_every_rule_has_a_case(changed: Changed, load: Load) -> None:
    seen = set()
    for table in ("wrong_files.yaml", "doubtful_files.yaml"):
        for section in rows_of(table).values():
            for row in section.values():
                try:
                    found = load(changed(row["change"])).warnings
                except EnvironmentFileError as error:
                    found = error.findings
                seen |= {finding.rule for finding in found}
    assert {rule.name for rule in RULES} - seen == set()


def test_wrong_combinations_give_one_finding_each(changed: Changed, refuse: Refuse) -> None:
    """What the models let pass and a rule over the file refuses is wrong in combination only."""
    over_the_file = {rule.name for rule in RULES}
    texts = [changed(row["change"]) for rows in rows_of("wrong_files.yaml").values() for row in rows.values()]
    found = [[each for each in refuse(text) if each.severity is Severity.ERROR] for text in texts]
    assert sum(len(each) == 1 and each[0].rule in over_the_file for each in found) >= 60


def test_rule_names_are_unique() -> None:
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names)


def test_warnings_come_along_with_errors(changed: Changed, refuse: Refuse) -> None:
    text = changed({'"1.35"': '"1.33"', "nat_gateways: 1": "nat_gateways: 0"})
    assert [(finding.severity, finding.rule) for finding in refuse(text)] == [
        (Severity.ERROR, "bounds"),
        (Severity.WARNING, "kubernetes_version_is_supported"),
    ]


def test_each_bound_at_and_beside_it(changed: Changed, load: Load, refuse: Refuse) -> None:
    for old, allowed, refused in (
        ("volume_gib: 500", ("volume_gib: 1", "volume_gib: 16384"), ("volume_gib: 0", "volume_gib: 16385")),
        (
            "borrow_limit_percent: 50",
            ("borrow_limit_percent: 1", "borrow_limit_percent: 500"),
            ("borrow_limit_percent: 0", "borrow_limit_percent: 501"),
        ),
        (
            "fair_share_weight: 100",
            ("fair_share_weight: 0", "fair_share_weight: 100"),
            ("fair_share_weight: -1", "fair_share_weight: 101"),
        ),
        (
            "node_recovery: automatic",
            ("tiered_checkpointing: {memory_percent: 20}", "tiered_checkpointing: {memory_percent: 100}"),
            ("tiered_checkpointing: {memory_percent: 19}", "tiered_checkpointing: {memory_percent: 101}"),
        ),
        ("nat_gateways: 1", ("nat_gateways: 2",), ("nat_gateways: 0", "nat_gateways: 3")),
        ("name: prod\n", ("name: a\n", f"name: {'a' * 16}\n"), ('name: ""\n', f"name: {'a' * 17}\n")),
        (
            "capacity_gib: 4800",
            ("capacity_gib: 1200", "capacity_gib: 2400"),
            ("capacity_gib: 1199", "capacity_gib: 2401"),
        ),
        ("10.1.0.0/16", ("10.1.0.0/24",), ("10.1.0.0/25",)),
    ):
        for new in allowed:
            load(changed({old: new}))
        for new in refused:
            assert len(refuse(changed({old: new}))) >= 1, new


def test_addresses_at_and_beside_the_block(changed: Changed, load: Load, refuse: Refuse) -> None:
    """A /24 leaves 251 addresses: two nodes of 81, a spare one and 8 servers of the file system, or 89 without it.

    Of the 89, 8 are metadata servers: FSx provisions 96,000 metadata operations for 194,400 GiB.
    """
    text = changed({"10.1.0.0/16": "10.1.0.0/24"})
    assert load(text.replace("capacity_gib: 4800", f"capacity_gib: {2400 * 7}")).warnings == ()
    for servers, of_objects in ((9, 8), (89, 81)):
        (tight,) = load(text.replace("capacity_gib: 4800", f"capacity_gib: {2400 * of_objects}")).warnings
        assert tight.message.startswith(f"should hold {243 + servers} addresses (h100: 2 nodes and 1 spare of")
        assert tight.message.endswith("; otherwise the replacement of a faulty node may get no IP address")
    too_full = refuse(text.replace("capacity_gib: 4800", f"capacity_gib: {2400 * 82}"))
    assert [finding.rule for finding in too_full] == ["node_block_holds_its_nodes"]


def test_addresses_of_nodes_with_efa_only(changed: Changed, load: Load, refuse: Refuse) -> None:
    """EFA-only interfaces take no address: of the 81 of an ml.p5.48xlarge the 50 of the primary interface stay."""
    text = changed({"10.1.0.0/16": "10.1.0.0/25"})
    assert [finding.rule for finding in refuse(text)] == ["node_block_holds_its_nodes"]
    frugal = text.replace("volume_gib: 500", "network_interface: efa_only")
    (tight,) = load(frugal).warnings
    assert "h100: 2 nodes and 1 spare of ml.p5.48xlarge, 50 each" in tight.message
    assert load(frugal.replace("node_recovery: automatic", "node_recovery: none")).warnings == ()


def test_groups_of_two_zones_that_a_label_distinguishes(changed: Changed, load: Load) -> None:
    more = "ml.p5.48xlarge, count: 1, availability_zone_id: use1-az4, capacity: on_demand"
    apart = {
        "    - name: system\n": (
            f"    - {{name: more, instance_type: {more}, labels: {{job-domain: b}}}}\n    - name: system\n"
        ),
        "      volume_gib: 500": "      labels: {job-domain: a}",
    }
    # a file system is in one zone all the same
    assert [finding.rule for finding in load(changed(apart)).warnings] == ["file_system_is_beside_nodes"]
    alike = changed(apart).replace("job-domain: b", "job-domain: a")
    assert [finding.rule for finding in load(alike).warnings] == [
        "efa_groups_share_a_zone",
        "file_system_is_beside_nodes",
    ]


def test_a_group_without_a_second_volume(changed: Changed, load: Load) -> None:
    loaded = load(changed({"volume_gib: 500": "volume_gib: null"}))
    assert loaded.warnings == ()
    assert loaded.environment.hyperpod.instance_groups[1].volume_gib is None
