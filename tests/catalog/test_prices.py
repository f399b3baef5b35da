"""Prices: the shipped file, the format of a price file, and the CloudFormation types with a cost."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.catalog import _data, instance_types, prices, regions
from hyperpod_cdk.catalog.prices import Price, Prices, PricesError, parse_prices
from tests.support.assembly import ENVIRONMENTS, shipped
from tests.support.tables import row_by_row

ANEW = "write it again with 'hyperpod-cdk prices refresh'"
ROW = {
    "region": "us-east-1",
    "sku": "nat_gateway",
    "usd": "0.045",
    "unit": "gateway-hour",
    "as_of": "2026-09-24",
    "source": "api",
}


def document(*rows: Any, **changes: Any) -> str:
    given_: dict[str, Any] = {
        "format": 1,
        "as_of": "2026-11-21",
        "sources": {"api": "AWS Pricing API"},
        "prices": list(rows) or [ROW],
    }
    return json.dumps({**given_, **changes})


def price(sku: str = "nat_gateway", usd: str = "0.045", region: str = "us-east-1", **changes: Any) -> Price:
    given_: dict[str, Any] = {
        "region": region,
        "sku": sku,
        "usd": Decimal(usd),
        "unit": prices.unit_of(sku),
        "as_of": date(2026, 9, 24),
        "source": "api",
    }
    return Price(**{**given_, **changes})


def test_the_shipped_prices_are_of_regions_and_types_that_there_are() -> None:
    shipped = prices.shipped()
    assert shipped.as_of == prices.AS_OF
    assert all(regions.is_known(region) for region in shipped.regions())
    nodes = {sku.removeprefix("node.") for _, sku in shipped.rows if sku.startswith("node.")}
    assert nodes <= set(instance_types.names())
    assert "ml.p5.48xlarge" in nodes


@row_by_row("row", prices.shipped().rows.values(), ids=lambda row: f"{row.region}-{row.sku}")
def test_a_shipped_price_is_dated_or_marked(row: Price) -> None:
    assert row.usd > 0
    assert row.as_of is not None or row.unsure
    assert row.as_of is None or row.as_of <= prices.AS_OF


def test_the_same_number_where_the_same_thing_costs_the_same() -> None:
    shipped = prices.shipped()
    for sku in ("eks.cluster", "eks.extended_support", "public_ipv4"):
        anywhere = shipped.find("us-east-2", sku)
        assert anywhere is not None
        assert {row.usd for (_, name), row in shipped.rows.items() if name == sku} == {anywhere.usd}


@row_by_row(
    "sku, unit",
    [
        ("node.ml.p5.48xlarge", "instance-hour"),
        ("node.ml.p6-b200.48xlarge", "instance-hour"),
        ("node.p5.48xlarge", None),
        ("node_volume", "GB-month"),
        ("ebs.gp3", "GB-month"),
        ("ebs.gp2", None),
        ("eks.cluster", "cluster-hour"),
        ("eks.extended_support", "cluster-hour"),
        ("eks.provisioned.tier-4xl", "cluster-hour"),
        ("eks.provisioned.", None),
        ("nat_gateway", "gateway-hour"),
        ("public_ipv4", "address-hour"),
        ("interface_endpoint", "endpoint-hour"),
        ("lustre.scratch", "GB-month"),
        ("lustre.ssd.1000", "GB-month"),
        ("lustre.hdd.12", "GB-month"),
        ("lustre.ssd.", None),
        ("lustre.read_cache", "GB-month"),
        ("lustre.tiering.throughput", "MBps-month"),
        ("lustre.metadata_iops", "IOPS-month"),
        ("kms.key", "key-month"),
        ("cloudwatch.alarm", "alarm-month"),
        ("cloudwatch.alarm.high_resolution", "alarm-month"),
        ("cloudwatch.dashboard", "dashboard-month"),
        ("", None),
    ],
)
def test_units(sku: str, unit: str | None) -> None:
    assert prices.unit_of(sku) == unit


def test_a_month_has_730_hours_for_what_is_paid_by_the_hour_only() -> None:
    assert price().monthly == Decimal("32.850")
    assert price("kms.key", "1.00").monthly == Decimal("1.00")


def test_a_price_says_its_own_day_where_its_table_has_another() -> None:
    table = date(2026, 11, 21)
    assert price(as_of=table).remark(table) == ""
    assert price().remark(table) == "price of 2026-09-24"
    assert price(as_of=None).remark(table) == "price of an unknown day"
    assert price(unsure="seen once").remark(table) == "price of 2026-09-24, not confirmed"


def test_a_doubt_names_the_day() -> None:
    assert price().doubt == ""
    assert price(unsure="seen once").doubt == "price of 2026-09-24, not confirmed"
    assert price(unsure="seen once", as_of=None).doubt == "price of an unknown day, not confirmed"


def test_what_costs_the_same_everywhere() -> None:
    keys = (price("kms.key", "1", "any"), price("kms.key", "2", "us-west-1"))
    rows = {(each.region, each.sku): each for each in keys}
    of = Prices(as_of=date(2026, 11, 21), sources={"api": "x"}, rows=rows)
    assert (of.find("us-east-1", "kms.key"), of.find("us-west-1", "kms.key")) == keys
    assert of.find("cn-north-1", "kms.key") is None
    assert of.find("", "kms.key") is None
    assert of.find("us-east-1", "nat_gateway") is None
    assert of.regions() == ("us-west-1",)
    ours = price(region="eu-west-1")
    assert Prices(as_of=of.as_of, sources=of.sources, rows={**rows, ("eu-west-1", ours.sku): ours}).regions() == (
        "eu-west-1",
        "us-west-1",
    )
    assert [each.region for each in of.of_region("us-east-1")] == ["any"]


def test_a_file_is_read() -> None:
    key = {**ROW, "sku": "kms.key", "unit": "key-month", "as_of": None}
    read = parse_prices(document(ROW, key), where="prices.json")
    assert (read.as_of, read.where) == (date(2026, 11, 21), "prices.json")
    assert dict(read.sources) == {"api": "AWS Pricing API"}
    assert read.find("us-east-1", "nat_gateway") == price()
    assert read.find("us-east-1", "kms.key") == price("kms.key", "0.045", as_of=None)


@row_by_row(
    "text, problem",
    [
        ("[]", "prices.json: must be an object with format, as_of, sources and prices"),
        ("{}", "prices.json: format: must be 1, which this hyperpod-cdk reads, got null"),
        (document(format=2), "prices.json: format: must be 1, which this hyperpod-cdk reads, got 2"),
        (document(format=True), "prices.json: format: must be 1, which this hyperpod-cdk reads, got true"),
        (document(as_of="2026-13-01"), 'prices.json: as_of: must be a day such as 2026-11-21, got "2026-13-01"'),
        (document(as_of=None), "prices.json: as_of: must be a day such as 2026-11-21, got null"),
        (document(sources={}), "prices.json: sources: must say what each source is"),
        *(
            (document(sources=sources), "prices.json: sources: must say what each source is")
            for sources in ({"api": 1}, {"api": "x", "me": 1}, ["api"], None)
        ),
        (document(prices=[]), "prices.json: prices: must be a list of prices, got none"),
        (document(prices={}), "prices.json: prices: must be a list of prices, got none"),
        (document("x"), 'prices.json: prices[0]: must be an object, got "x"'),
        (
            document({**ROW, "region": "Ohio"}),
            "prices.json: prices[0].region: must be an AWS region or 'any', got \"Ohio\"",
        ),
        (
            document({**ROW, "region": 1}),
            "prices.json: prices[0].region: must be an AWS region or 'any', got 1",
        ),
        (document({**ROW, "sku": 1}), "prices.json: prices[0].sku: is not a known name: 1"),
        (
            document({**ROW, "sku": "nat"}),
            'prices.json: prices[0].sku: is not a known name: "nat"',
        ),
        (
            document({**ROW, "unit": "gateway-month"}),
            "prices.json: prices[0].unit: must be 'gateway-hour' for nat_gateway, got \"gateway-month\"",
        ),
        *(
            (
                document({**ROW, "usd": usd}),
                f'prices.json: prices[0].usd: must be US dollars as text such as "0.045", got {shown}',
            )
            for usd, shown in (
                (0.045, "0.045"),
                ("-1", '"-1"'),
                ("1e3", '"1e3"'),
                ("NaN", '"NaN"'),
                ("", '""'),
                ("100000", '"100000"'),
                ("٣", '"٣"'),
                (None, "null"),
            )
        ),
        (
            document({**ROW, "as_of": "yesterday"}),
            'prices.json: prices[0].as_of: must be a day such as 2026-11-21, or null, got "yesterday"',
        ),
        (
            document({name: value for name, value in ROW.items() if name != "as_of"}),
            "prices.json: prices[0].as_of: must be a day such as 2026-11-21, or null, got null",
        ),
        (document({**ROW, "source": "me"}), 'prices.json: prices[0].source: must be one of sources, got "me"'),
        (document({**ROW, "source": ["api"]}), 'prices.json: prices[0].source: must be one of sources, got ["api"]'),
        (document(ROW, {**ROW, "unsure": None}), "prices.json: prices[1].unsure: must be text, got null"),
        (document({**ROW, "unsure": 1}), "prices.json: prices[0].unsure: must be text, got 1"),
        (document(ROW, ROW), "prices.json: prices[1]: nat_gateway of us-east-1 is repeated"),
        ('{"format": 1, "format": 1}', "prices.json: is not JSON: the key 'format' is repeated"),
    ],
)
def test_a_file_that_cannot_be_used(text: str, problem: str) -> None:
    with pytest.raises(PricesError) as caught:
        parse_prices(text, where="prices.json")
    assert str(caught.value) == f"{problem}; {ANEW}"


def test_a_half_written_file_names_its_line() -> None:
    with pytest.raises(PricesError) as caught:
        parse_prices('{\n"format": 1,', where="prices.json")
    assert str(caught.value).startswith("prices.json:2: is not JSON: ")


@pytest.mark.parametrize(
    ("length", "shown"),
    [(58, '"' + "x" * 58 + '"'), (59, '"' + "x" * 56 + "..."), (200, '"' + "x" * 56 + "...")],
)
def test_a_value_without_end_is_shown_short(length: int, shown: str) -> None:
    with pytest.raises(PricesError) as caught:
        parse_prices(document({**ROW, "sku": "x" * length}), where="prices.json")
    assert str(caught.value) == f"prices.json: prices[0].sku: is not a known name: {shown}; {ANEW}"


ROWS = st.builds(
    price,
    sku=st.sampled_from(["nat_gateway", "node.ml.p5.48xlarge", "lustre.ssd.250", "kms.key"]),
    usd=st.decimals(min_value=0, max_value=99999, places=10, allow_nan=False).map(lambda usd: f"{usd:f}"),
    region=st.sampled_from(["any", "us-east-1", "eu-west-2"]),
    as_of=st.none() | st.dates(min_value=date(2020, 1, 1), max_value=date(2030, 1, 1)),
    unsure=st.sampled_from(["", "seen once, äöü"]),
)


@given(rows=st.lists(ROWS, min_size=1, max_size=8, unique_by=lambda row: (row.region, row.sku)))
def test_what_is_written_is_read_the_same(rows: list[Price]) -> None:
    made = Prices(
        as_of=date(2026, 11, 21), sources={"api": "x"}, rows={(row.region, row.sku): row for row in rows}, where="f"
    )
    read = parse_prices(made.text(), where="f")
    assert read.rows == made.rows
    assert read.text() == made.text()
    assert made.text().count("\n    {") == len(rows)
    assert made.text().startswith('{\n  "format": ')


def test_a_project_s_own_file_takes_the_place_of_the_shipped_one(tmp_path: Path) -> None:
    assert prices.of_project(tmp_path) is prices.shipped()
    (tmp_path / "prices.json").write_text(document(), encoding="utf-8")
    own = prices.of_project(tmp_path)
    assert own.where == "prices.json"
    assert set(own.rows) == {("us-east-1", "nat_gateway")}


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda file: file.mkdir(), "prices.json: cannot be read: Is a directory"),
        (lambda file: file.symlink_to("nowhere"), "prices.json: cannot be read: No such file or directory"),
        (lambda file: file.write_bytes(b"{\xff"), "prices.json: is not UTF-8 text: byte 0xff"),
        (
            lambda file: file.write_bytes(b" " * (prices.MAX_BYTES + 1)),
            f"prices.json: must have at most {prices.MAX_BYTES} bytes, got {prices.MAX_BYTES + 1}",
        ),
    ],
    ids=["folder", "link", "bytes", "size"],
)
def test_a_project_s_file_that_cannot_be_read(make: Callable[[Path], object], problem: str, tmp_path: Path) -> None:
    make(tmp_path / "prices.json")
    with pytest.raises(PricesError) as caught:
        prices.of_project(tmp_path)
    assert str(caught.value) == f"{problem}; {ANEW}"


def test_every_type_that_ships_is_known_to_cost_or_not(assemblies: Path) -> None:
    types = {
        str(resource["Type"])
        for name in ENVIRONMENTS
        for template in shipped(assemblies, name).templates.values()
        for resource in template["Resources"].values()
    }
    read_by_review = {"AWS::EKS::Addon", "AWS::SSM::Parameter"}
    assert "AWS::SageMaker::Cluster" in types
    assert [name for name in sorted(types - read_by_review) if prices.billing_of(name) is None] == []


def test_what_is_free_has_a_source_of_its_own() -> None:
    free = [row for row in _data.load("prices")["types"] if row["billing"] == "free"]
    assert free
    assert [row["types"] for row in free if row["source"] == "pages"] == []


def test_a_type_is_listed_once_in_the_table() -> None:
    listed = Counter(name for row in _data.load("prices")["types"] for name in row["types"])
    assert [name for name, count in listed.items() if count > 1] == []
    assert {row["billing"] for row in _data.load("prices")["types"]} == {"free", "by use", "by hour"}
    assert all(bool(row.get("what")) == (row["billing"] == "by use") for row in _data.load("prices")["types"])


@pytest.mark.parametrize(
    ("name", "billing"),
    [
        ("AWS::IAM::Role", "free"),
        ("AWS::Logs::LogGroup", "by use"),
        ("AWS::EC2::NatGateway", "by hour"),
        ("Custom::Anything", "free"),
        ("AWS::CloudFormation::Stack", None),
        ("AWS::Quantum::Computer", None),
    ],
)
def test_how_a_type_is_paid(name: str, billing: str | None) -> None:
    found = prices.billing_of(name)
    assert (found.billing if found else None) == billing


def test_add_ons_that_send_what_is_paid() -> None:
    assert prices.by_use_addon("amazon-cloudwatch-observability") == "the metrics and logs that it sends"
    assert prices.by_use_addon("vpc-cni") is None


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("0", "0"),
        ("0.045", "0.045"),
        ("99999.999999999999", "99999.999999999999"),
        ("100000", None),
        ("1.", None),
        (1, None),
    ],
)
def test_amounts(text: object, amount: str | None) -> None:
    assert prices.amount_of(text) == (amount and Decimal(amount))


def test_content_as_long_as_it_may_be() -> None:
    with pytest.raises(PricesError, match=r"^prices\.json:1: is not JSON: "):
        prices.read_content(b" " * prices.MAX_BYTES, where="prices.json")
    with pytest.raises(PricesError, match=f"must have at most {prices.MAX_BYTES} bytes, got {prices.MAX_BYTES + 1}"):
        prices.read_content(b" " * (prices.MAX_BYTES + 1), where="prices.json")
    assert prices.MAX_BYTES == 8_000_000


def test_a_row_as_data_says_what_is_known() -> None:
    data = {**ROW, "usd": "0.0450"}
    assert price(usd="0.0450").as_data() == data
    assert price(usd="0.0450", unsure="seen once", as_of=None).as_data() == {
        **data,
        "as_of": None,
        "unsure": "seen once",
    }


def test_what_is_paid_by_use() -> None:
    logs, gateway, custom = (
        prices.billing_of(name) for name in ("AWS::Logs::LogGroup", "AWS::EC2::NatGateway", "Custom::Anything")
    )
    assert logs is not None
    assert gateway is not None
    assert custom is not None
    assert (logs.kind, bool(logs.what)) == ("logs", True)
    assert (gateway.kind, gateway.what) == ("network", "")
    assert (custom.kind, custom.what) == ("other", "")
