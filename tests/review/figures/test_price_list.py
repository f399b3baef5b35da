"""What is made of the AWS Pricing API's answers, and what is not believed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperpod_cdk.catalog.prices import Price, Prices, parse_prices
from hyperpod_cdk.checks.answers import NotAnswered
from hyperpod_cdk.checks.aws import LiveAws
from hyperpod_cdk.handlers.quota_gate.reading import Own
from hyperpod_cdk.review.figures.price_list import REGION, WANTED, Fetched, differences, fetch, merged
from tests.support.scripted_aws import WHO, Fails, ScriptedSession, holds_to_shape
from tests.support.tables import row_by_row

DAY = "2026-11-20T17:05:01Z"
P5 = "node.ml.p5.48xlarge"


def product(
    usage: str, usd: str = "1", unit: str = "Hrs", *, region: str = "us-west-2", **changes: Any
) -> dict[str, Any]:
    """A product as the price list has it: an attribute is given by its name, the rest as ``terms`` and the like."""
    attributes = {"usagetype": usage, "regionCode": region, "location": "US West (Oregon)", **changes.pop("having", {})}
    dimension = {"unit": unit, "beginRange": "0", "endRange": "Inf", "pricePerUnit": {"USD": usd}}
    given_: dict[str, Any] = {
        "product": {"productFamily": "x", "attributes": attributes, "sku": "ABC"},
        "serviceCode": "x",
        "terms": {"OnDemand": {"ABC.JRTC": {"priceDimensions": {"ABC.JRTC.6YS6": dimension}, "sku": "ABC"}}},
        "version": "20261120170501",
        "publicationDate": DAY,
    }
    return {**given_, **changes}


LUSTRE = {"fileSystemType": "Lustre", "storageType": "SSD"}
OREGON = {
    "AmazonSageMaker": [
        product("USW2-Cluster:ml.p5.48xlarge", "66.0480000000", having={"component": "Cluster"}),
        product("USW2-ReservedCluster:ml.p5.48xlarge", "40", having={"component": "Cluster"}),
        product("USW2-Studio:ml.p5.48xlarge", "70", having={"component": "Studio"}),
        product("USW2-Cluster:VolumeUsage.gp3", "0.115", "GB-Mo", having={"component": "Cluster"}),
    ],
    "AmazonEKS": [
        product("USW2-AmazonEKS-Hours:perCluster", "0.1"),
        product("USW2-AmazonEKS-Hours:extendedSupport", "0.5"),
        product("USW2-AmazonEKS-Hours:ProvisionedControlPlane-4XL", "6.9"),
        product("USW2-EKS-Auto:m5.large", "0.01"),
    ],
    "AmazonFSx": [
        product("USW2-Storage", "0.14", "GB-Mo", having=LUSTRE),
        product("USW2-Storage.SSD.125", "0.145", "GB-Mo", having=LUSTRE),
        product("USW2-Storage.SSD.250", "0.21", "GB-Mo", having=LUSTRE),
        product("USW2-Storage.SSD.500", "0.34", "GB-Mo", having=LUSTRE),
        product("USW2-Storage.SSD.1000", "0.6", "GB-Mo", having=LUSTRE),
        product("USW2-Storage.HDD.12", "0.025", "GB-Mo", having={**LUSTRE, "storageType": "HDD"}),
        product("USW2-MetadataIOPS", "0.055", "IOPS-Mo", having=LUSTRE),
        product("USW2-ThroughputCapacity.P2", "0.52", "MBps-Mo", having=LUSTRE),
        product("USW2-SSDReadCache", "0.2", "GB-Mo", having=LUSTRE),
        product("USW2-BackupUsage", "0.05", "GB-Mo", having=LUSTRE),
    ],
    "AmazonVPC": [
        product("USW2-VpcEndpoint-Hours", "0.01"),
        product("USW2-PublicIPv4:InUseAddress", "0.005"),
        product("USW2-PublicIPv4:IdleAddress", "0.006"),
    ],
    "AmazonEC2": [
        product("USW2-NatGateway-Hours", "0.045", having={"productFamily": "NAT Gateway"}),
        product("USW2-RegionalNatGateway-Hours", "0.09", having={"productFamily": "NAT Gateway"}),
        product("USW2-NatGateway-Bytes", "0.045", "GB", having={"productFamily": "NAT Gateway"}),
        product(
            "USW2-EBS:VolumeUsage.gp3", "0.08", "GB-Mo", having={"productFamily": "Storage", "volumeApiName": "gp3"}
        ),
    ],
    "awskms": [product("us-west-2-KMS-Keys", "1", "Keys"), product("us-west-2-KMS-Requests", "0.000003", "Requests")],
    "AmazonCloudWatch": [
        product("USW2-CW:AlarmMonitorUsage", "0.1", "Alarms"),
        product("USW2-CW:HighResAlarmMonitorUsage", "0.3", "Alarms"),
        product("DashboardsUsageHour", "3", "Dashboards", region=""),
    ],
}


@dataclass
class PriceList:
    """The API with these products: it filters as AWS does, and remembers what it was asked."""

    products: dict[str, list[Any]]
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    refuses: dict[str, NotAnswered] = field(default_factory=dict)

    def __call__(self, service: str, operation: str, key: str, **params: Any) -> list[Any]:
        assert (service, operation, key, params["FormatVersion"]) == ("pricing", "get_products", "PriceList", "aws_v1")
        wanted = {each["Field"]: each["Value"] for each in params["Filters"]}
        code = params["ServiceCode"]
        self.asked.append((code, wanted))
        if code in self.refuses:
            raise self.refuses[code]
        return [
            each if isinstance(each, str) else json.dumps(each)
            for each in self.products.get(code, ())
            if not isinstance(each, dict) or _has(each, wanted)
        ]


def _has(each: dict[str, Any], wanted: dict[str, str]) -> bool:
    attributes = each.get("product", {}).get("attributes", {})
    return all(attributes.get(name) == value for name, value in wanted.items() if name in attributes)


def oregon(**changes: list[Any]) -> PriceList:
    return PriceList({**OREGON, **changes})


def found(pages: PriceList, *types: str) -> Fetched:
    return fetch(pages, {"us-west-2": types})


def test_everything_that_an_environment_is_made_of() -> None:
    fetched = found(oregon(), "ml.p5.48xlarge")
    assert {(region, sku): str(row.usd) for (region, sku), row in fetched.rows.items()} == {
        ("any", "cloudwatch.dashboard"): "3",
        ("us-west-2", P5): "66.048",
        ("us-west-2", "node_volume"): "0.115",
        ("us-west-2", "eks.cluster"): "0.1",
        ("us-west-2", "eks.extended_support"): "0.5",
        ("us-west-2", "eks.provisioned.tier-4xl"): "6.9",
        ("us-west-2", "lustre.scratch"): "0.14",
        ("us-west-2", "lustre.ssd.125"): "0.145",
        ("us-west-2", "lustre.ssd.250"): "0.21",
        ("us-west-2", "lustre.ssd.500"): "0.34",
        ("us-west-2", "lustre.ssd.1000"): "0.6",
        ("us-west-2", "lustre.hdd.12"): "0.025",
        ("us-west-2", "lustre.metadata_iops"): "0.055",
        ("us-west-2", "lustre.tiering.throughput"): "0.52",
        ("us-west-2", "lustre.read_cache"): "0.2",
        ("us-west-2", "interface_endpoint"): "0.01",
        ("us-west-2", "public_ipv4"): "0.005",
        ("us-west-2", "nat_gateway"): "0.045",
        ("us-west-2", "ebs.gp3"): "0.08",
        ("us-west-2", "kms.key"): "1",
        ("us-west-2", "cloudwatch.alarm"): "0.1",
        ("us-west-2", "cloudwatch.alarm.high_resolution"): "0.3",
    }
    assert (fetched.missing, fetched.problems) == ((), ())
    assert fetched.rows["us-west-2", P5] == Price(
        region="us-west-2",
        sku=P5,
        usd=Decimal("66.048"),
        unit="instance-hour",
        as_of=date(2026, 11, 20),
        source="api",
    )


def test_what_is_asked() -> None:
    pages = oregon()
    found(pages)
    where = {"regionCode": "us-west-2"}
    assert pages.asked == [
        ("AmazonCloudWatch", {"usagetype": "DashboardsUsageHour"}),
        ("AmazonSageMaker", {"component": "Cluster", **where}),
        ("AmazonEKS", where),
        ("AmazonFSx", {"fileSystemType": "Lustre", **where}),
        ("AmazonVPC", where),
        ("AmazonEC2", {"productFamily": "NAT Gateway", **where}),
        ("AmazonEC2", {"productFamily": "Storage", "volumeApiName": "gp3", **where}),
        ("awskms", where),
        ("AmazonCloudWatch", where),
    ]


def test_a_nat_gateway_that_belongs_to_the_vpc_is_found_there() -> None:
    nat = product("USW2-NatGateway-Hours", "0.045")
    pages = oregon(AmazonVPC=[*OREGON["AmazonVPC"], nat], AmazonEC2=OREGON["AmazonEC2"][3:])
    assert found(pages).rows["us-west-2", "nat_gateway"].usd == Decimal("0.045")
    assert not [wanted for _, wanted in pages.asked if wanted.get("productFamily") == "NAT Gateway"]


def test_a_component_of_another_name_is_found_by_its_usage_type() -> None:
    node = product("USW2-Cluster:ml.p5.48xlarge", "66.048", having={"component": "HyperPod"})
    pages = oregon(AmazonSageMaker=[node])
    assert found(pages).rows["us-west-2", P5].usd == Decimal("66.048")
    assert [wanted for code, wanted in pages.asked if code == "AmazonSageMaker"] == [
        {"component": "Cluster", "regionCode": "us-west-2"},
        {"regionCode": "us-west-2"},
    ]


def test_us_east_1_has_no_prefix_in_old_usage_types() -> None:
    nat = product("NatGateway-Hours", "0.045", region="us-east-1")
    fetched = fetch(PriceList({"AmazonEC2": [nat]}), {"us-east-1": ()})
    assert [sku for _, sku in fetched.rows] == ["nat_gateway"]


def test_what_is_not_found_is_reported() -> None:
    fetched = fetch(PriceList({}), {"us-west-2": ["ml.p5.48xlarge"], "us-east-1": []})
    assert fetched.rows == {}
    assert len(fetched.missing) == 2 * (len(WANTED) + 1) + 2
    assert fetched.missing[0] == "CloudWatch alarm in us-east-1"
    assert fetched.missing[len(WANTED)] == "nodes of HyperPod clusters in us-east-1"
    assert "ml.p5.48xlarge in us-west-2" in fetched.missing
    assert fetched.missing[-1] == "CloudWatch dashboard"


def tiers(*prices: tuple[str, str]) -> dict[str, Any]:
    dimensions = {
        str(number): {"unit": "Hrs", "beginRange": begin, "pricePerUnit": {"USD": usd}}
        for number, (begin, usd) in enumerate(prices)
    }
    return {"OnDemand": {"A.B": {"priceDimensions": dimensions}}}


@pytest.mark.parametrize(
    ("terms", "usd"),
    [
        (tiers(("0", "0.1")), "0.1"),
        (tiers(("100", "0.05"), ("0", "0.1")), "0.1"),
        # the account's free tier is not the environment's
        (tiers(("0", "0"), ("100", "0.1"), ("1000", "0.05")), "0.1"),
    ],
)
def test_the_first_tier_that_costs_anything(terms: dict[str, Any], usd: str) -> None:
    fetched = found(oregon(AmazonEKS=[product("USW2-AmazonEKS-Hours:perCluster", terms=terms)]))
    assert fetched.rows["us-west-2", "eks.cluster"].usd == Decimal(usd)


CLUSTER = "USW2-AmazonEKS-Hours:perCluster"


@row_by_row(
    "broken, problem",
    [
        (product(CLUSTER, unit="Quantity"), f"{CLUSTER} is sold by Quantity, not by cluster-hour"),
        (product(CLUSTER, terms={"Reserved": {"x": {}}}), f"{CLUSTER} has no on-demand price"),
        (product(CLUSTER, terms=None), f"{CLUSTER} has no on-demand price"),
        (
            product(CLUSTER, terms={"OnDemand": {"A": None, "B": {"priceDimensions": []}}}),
            f"{CLUSTER} has no on-demand price",
        ),
        (product(CLUSTER, usd="0"), f"{CLUSTER} has no price in US dollars"),
        (product(CLUSTER, usd="-1"), f"{CLUSTER} has no price in US dollars"),
        (product(CLUSTER, usd="free"), f"{CLUSTER} has no price in US dollars"),
        (product(CLUSTER, usd="99999999"), f"{CLUSTER} has no price in US dollars"),
        (
            product(
                CLUSTER,
                terms={"OnDemand": {"A": {"priceDimensions": {"B": {"unit": "Hrs", "pricePerUnit": {"CNY": "1"}}}}}},
            ),
            f"{CLUSTER} has no price in US dollars",
        ),
        (product(CLUSTER, terms=tiers(("first", "1"))), f"{CLUSTER} has no price in US dollars"),
        (product(CLUSTER, publicationDate=None), f"{CLUSTER} has no date"),
        (product(CLUSTER, publicationDate="soon"), f"{CLUSTER} has no date"),
        (product(CLUSTER, region="us-east-1"), f"{CLUSTER} is of region us-east-1"),
        ("{", "a product that cannot be read was omitted"),
        ("[]", "a product that cannot be read was omitted"),
        ({"product": {}}, "a product that cannot be read was omitted"),
    ],
)
def test_what_is_not_believed(broken: Any, problem: str) -> None:
    fetched = found(oregon(AmazonEKS=[json.dumps(broken) if isinstance(broken, dict) else broken]))
    assert ("us-west-2", "eks.cluster") not in fetched.rows
    assert fetched.problems == (f"AmazonEKS in us-west-2: {problem}",)
    assert "EKS cluster in us-west-2" in fetched.missing


def test_two_prices_for_one_thing_are_none() -> None:
    fetched = found(oregon(AmazonEKS=[product(CLUSTER, "0.1"), product(CLUSTER, "0.2"), product(CLUSTER, "0.10")]))
    assert ("us-west-2", "eks.cluster") not in fetched.rows
    assert fetched.problems == ("AmazonEKS in us-west-2: EKS cluster has 2 prices, 0.1, 0.2; none was used",)


def test_the_same_price_twice_is_one_of_the_later_day() -> None:
    later = product(CLUSTER, "0.10", publicationDate="2026-11-21T00:00:00Z")
    fetched = found(oregon(AmazonEKS=[product(CLUSTER, "0.1"), later, product(CLUSTER, "0.1")]))
    assert fetched.rows["us-west-2", "eks.cluster"].as_of == date(2026, 11, 21)
    assert fetched.problems == ()


def test_a_question_without_an_answer_ends_it() -> None:
    pages = oregon()
    pages.refuses["awskms"] = NotAnswered("AWS throttles", action="pricing:GetProducts")
    with pytest.raises(NotAnswered, match=r"^AWS throttles$"):
        found(pages)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(list(product("x"))), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=40)
@given(
    terms=JSON,
    attributes=st.dictionaries(st.sampled_from(["usagetype", "regionCode", "storageType"]), JSON, max_size=3),
    day=JSON,
)
def test_no_answer_breaks_it(terms: Any, attributes: dict[str, Any], day: Any) -> None:
    shape = {"product": {"attributes": attributes}, "terms": {"OnDemand": terms}, "publicationDate": day}
    named = product(CLUSTER, terms={"OnDemand": {"A": {"priceDimensions": terms}}}, publicationDate=day)
    fetched = fetch(
        PriceList({"AmazonEKS": [json.dumps(shape), json.dumps(named), json.dumps(terms)]}), {"us-west-2": ()}
    )
    assert fetched.rows == {}


# the same in LiveAws, over botocore: pages, retries and errors


def live(script: dict[str, Any]) -> tuple[Callable[..., list[Any]], ScriptedSession]:
    scripted = ScriptedSession({"sts:GetCallerIdentity": WHO, **script})
    aws = LiveAws.open(region=REGION, account="", own=Own(), session=scripted.session())
    return aws.pages, scripted


def test_pages_of_the_api_are_followed() -> None:
    def answer(params: Any) -> dict[str, Any]:
        service = params["ServiceCode"]
        items = [json.dumps(each) for each in OREGON[service] if _has(each, _filters(params))]
        first = {"FormatVersion": "aws_v1", "PriceList": items[:1], "NextToken": "2"}
        page = {"PriceList": items[1:]} if params.get("NextToken") else first
        holds_to_shape("pricing", "GetProducts", page)
        return page

    pages, scripted = live({"pricing:GetProducts": answer})
    fetched = fetch(pages, {"us-west-2": ()})
    assert fetched.rows == found(oregon()).rows
    assert sum(name == "pricing:GetProducts" for name, _ in scripted.asked) == 18


def _filters(params: Any) -> dict[str, str]:
    return {each["Field"]: each["Value"] for each in params["Filters"]}


def test_who_may_not_ask_learns_what_to_allow() -> None:
    said = "User: arn:aws:iam::111122223333:user/dana is not authorized to perform: pricing:GetProducts"
    pages, _ = live({"pricing:GetProducts": Fails("AccessDeniedException", said)})
    with pytest.raises(NotAnswered) as caught:
        fetch(pages, {"us-west-2": ()})
    assert (caught.value.reason, caught.value.action) == (
        "no permission for pricing:GetProducts",
        "pricing:GetProducts",
    )


def test_throttling_without_end_is_an_answer_that_is_missing() -> None:
    pages, _ = live({"pricing:GetProducts": Fails("ThrottlingException", "Rate exceeded")})
    with pytest.raises(NotAnswered, match="pricing:GetProducts"):
        fetch(pages, {"us-west-2": ()})


# from the answers to the file


def row(sku: str = "nat_gateway", usd: str = "0.045", region: str = "us-west-2", day: int = 20) -> Price:
    units = {"nat_gateway": "gateway-hour", "kms.key": "key-month"}
    return Price(
        region=region,
        sku=sku,
        usd=Decimal(usd),
        unit=units[sku],
        as_of=date(2026, 11, day),
        source="api" if day == 20 else "old",
    )


def of(*rows: Price) -> dict[tuple[str, str], Price]:
    return {(each.region, each.sku): each for each in rows}


def old_file(*rows: Price) -> Prices:
    return Prices(
        as_of=date(2026, 11, 1), sources={"old": "said so", "unused": "x"}, rows=of(*rows), where="prices.json"
    )


def test_an_empty_file_is_never_made() -> None:
    assert merged(Fetched(rows={}), old_file(row(day=1)), where="prices.json") is None


def test_regions_that_were_not_asked_for_stay() -> None:
    fetched = Fetched(rows=of(row(usd="0.05")))
    new = merged(fetched, old_file(row(day=1), row("kms.key", "1", day=1), row(region="eu-west-1", day=1)), where="f")
    assert new is not None
    assert new.rows == of(row(usd="0.05"), row(region="eu-west-1", day=1))
    assert new.as_of == date(2026, 11, 20)
    assert sorted(new.sources) == ["api", "old"]
    assert parse_prices(new.text(), where="f") == new


def test_a_first_file_has_what_was_fetched() -> None:
    new = merged(Fetched(rows=of(row())), None, where="prices.json")
    assert new is not None
    assert new.rows == of(row())
    assert new.sources == {"api": "AWS Pricing API, GetProducts; the day is that on which AWS published the list"}


def test_differences() -> None:
    before = old_file(row(day=1), row("kms.key", "1", day=1), row(region="eu-west-1", day=1))
    after = old_file(row(usd="0.05"), row("kms.key", "1.00"), row(region="us-east-1"))
    assert differences(before, after) == [
        "us-east-1: NAT gateway: new, 0.045 per gateway-hour",
        "us-west-2: NAT gateway: 0.045 -> 0.05 per gateway-hour",
    ]
    assert differences(before, old_file(row(day=1))) == ["us-west-2: KMS key: removed, was 1 per key-month"]
    assert differences(before, before) == []
