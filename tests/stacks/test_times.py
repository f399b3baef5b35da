"""How long a first deployment takes, side by side as the README says it: a model of what waits for what.

Durations are single numbers here, those by which the cut of the stacks was chosen (docs/decisions/0015); reviews show
the ranges of the catalog, in which each of them lies.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from hyperpod_cdk.catalog import durations
from tests.support.assembly import ENVIRONMENTS, Node, Synthesized, shipped
from tests.support.tables import row_by_row

SECONDS = {
    "AWS::EC2::InternetGateway": 16,
    "AWS::EC2::NatGateway": 110,
    "AWS::EKS::Addon": 90,
    "AWS::EKS::Cluster": 600,
    "AWS::FSx::FileSystem": 720,
    "AWS::Lambda::Function": 12,
    "AWS::SageMaker::Cluster": 1200,
    "Custom::AWSCDK-EKS-HelmChart": 150,
}
INTERFACE_ENDPOINT, CUSTOM_RESOURCE, IAM, ALL_ELSE = 60, 45, 18, 5
STACK = 15
"""What each stack takes before its first resource."""

TO_CREATE_CLUSTER = 860
"""Prod's network beside its gate, EKS, kubectl's access, chart and two stacks: 760 are necessary."""

DECISION = Path(__file__).resolve().parents[2] / "docs" / "decisions" / "0015-one-foundation.md"

NECESSARY = (
    *("AWS::EC2::NatGateway", "AWS::EKS::", "AWS::FSx::", "AWS::SageMaker::", "AWS::Grafana::", "AWS::APS::"),
    *("Custom::AWSCDK-EKS-HelmChart", "Custom::AWSCDK-EKS-KubernetesResource"),
    *("Custom::ComputeQuota", "Custom::ClusterSchedulerConfig"),
)
"""What a user asked for and AWS, helm or kubectl has to make: no gate, no wait, no function, no role, no stack."""


def seconds(resource: dict[str, Any]) -> int:
    """Return how long a resource takes to be created."""
    kind = resource["Type"]
    if kind in SECONDS:
        return SECONDS[kind]
    if kind.startswith("Custom::"):
        return CUSTOM_RESOURCE
    if kind.startswith("AWS::IAM::"):
        return IAM
    is_interface = kind == "AWS::EC2::VPCEndpoint" and resource["Properties"]["VpcEndpointType"] == "Interface"
    return INTERFACE_ENDPOINT if is_interface else ALL_ELSE


@dataclass(frozen=True)
class Times:
    """When each resource of an environment begins, with everything independent side by side."""

    synthesized: Synthesized
    only_necessary: bool = False

    @cached_property
    def _placed(self) -> tuple[dict[Node, int], dict[Node, Node | None]]:
        begins: dict[Node, int] = {}
        waited_for: dict[Node, Node | None] = {}
        done: dict[str, tuple[int, Node | None]] = {}
        for stack in self._stacks():
            before = [done[each] for each in self.synthesized.stack_dependencies[stack]]
            start, last = max(before, key=lambda each: each[0], default=(0, None))
            for node in self._ordered(stack):
                begins[node], waited_for[node] = start + (0 if self.only_necessary else STACK), last
                for needed in self.synthesized.graph.successors(node):
                    if needed[0] == stack and begins[needed] + self._lasts(needed) > begins[node]:
                        begins[node], waited_for[node] = begins[needed] + self._lasts(needed), needed
            ends = {node: begins[node] + self._lasts(node) for node in begins if node[0] == stack}
            final = max(ends, key=lambda node: ends[node])
            done[stack] = ends[final], final
        return begins, waited_for

    def _stacks(self) -> list[str]:
        left, ordered = dict(self.synthesized.stack_dependencies), list[str]()
        while left:
            ready = [name for name, needed in left.items() if set(needed) <= set(ordered)]
            ordered += ready
            for name in ready:
                del left[name]
        return ordered

    def _ordered(self, stack: str) -> list[Node]:
        resources = self.synthesized.templates[stack]["Resources"]
        ordered: dict[Node, None] = {}
        pending = [(stack, name) for name in reversed(resources)]
        while pending:
            node = pending[-1]
            open_ones = [n for n in self.synthesized.graph.successors(node) if n[0] == stack and n not in ordered]
            if open_ones:
                pending += open_ones
            else:
                ordered.setdefault(pending.pop())
        return list(ordered)

    def _lasts(self, node: Node) -> int:
        resource = self.synthesized.resource(node)
        if self.only_necessary and not resource["Type"].startswith(NECESSARY):
            return 0
        return seconds(resource)

    def begin(self, node: Node) -> int:
        return self._placed[0][node]

    def end(self, *nodes: Node) -> int:
        return max(self.begin(node) + self._lasts(node) for node in nodes or self._placed[0])

    def chain(self, node: Node) -> str:
        """Name what ``node`` waits for, the first one first, each with when it begins."""
        named = list[str]()
        at: Node | None = node
        while at is not None:
            named.append(f"{self.begin(at):5} {at[0]}/{at[1]} ({self._lasts(at)})")
            at = self._placed[1][at]
        return "\n".join(reversed(named))

    def last(self) -> Node:
        return max(self._placed[0], key=self.end)


def test_the_cluster_of_prod_is_asked_for_in_time(prod: Synthesized) -> None:
    times = Times(prod)
    (cluster,) = prod.of_type("AWS::SageMaker::Cluster")
    assert times.begin(cluster) <= TO_CREATE_CLUSTER, f"this chain is too long:\n{times.chain(cluster)}"


def test_times_of_every_environment(synthesized: Synthesized) -> None:
    times, least = Times(synthesized), Times(synthesized, only_necessary=True)
    (cluster,) = synthesized.of_type("AWS::SageMaker::Cluster")
    name, began, ended = synthesized.environment.name, times.begin(cluster), times.end()
    print(f"{name}: CreateCluster begins at {began} s, the last resource ends at {ended} s, {least.end()} necessary")
    print(times.chain(times.last()))
    # an order that nobody needs shows as more than the stacks before and the cluster itself
    assert began + SECONDS["AWS::SageMaker::Cluster"] <= ended
    listed = f"| {name} | {began} | {ended:,} | {least.end():,} | {ended / least.end():.2f} |"
    assert listed in DECISION.read_text(), f"the decision's table must say {listed}; {times.chain(times.last())}"


def test_no_order_of_the_addons_around_kueue_is_shorter(prod: Synthesized) -> None:
    """Every order in which nothing is created while a webhook that is called for it is registered and not answered.

    cert-manager and the training operator bring deployments into namespaces that Kueue sees, so each is done before
    Kueue's add-on begins or begins once Kueue answers; the operator brings certificates, too, so it begins once
    cert-manager answers (docs/decisions/0016).
    """
    addon, wait = SECONDS["AWS::EKS::Addon"], CUSTOM_RESOURCE
    found: dict[int, tuple[bool, bool]] = {}
    for is_cert_first, is_operator_first in ((True, True), (True, False), (False, False)):
        certificates = addon if is_cert_first else 0
        operator = certificates + wait + addon if is_operator_first else 0
        kueue = max(certificates, operator) + addon + wait
        if not is_cert_first:
            certificates = kueue + addon
        if not is_operator_first:
            operator = max(kueue, certificates + wait) + addon
        found[max(kueue, operator)] = (is_cert_first, is_operator_first)
    shortest = min(found)
    assert found[shortest] == (True, False)

    times = Times(prod)
    first = prod.addon("cert-manager")
    operator_ends = times.end(prod.addon("amazon-sagemaker-hyperpod-training-operator"))
    assert operator_ends - times.begin(first) == shortest
    assert times.end() == operator_ends
    # and before them nothing but the nodes, for which the switch of EKS's own protection makes no time
    nodes = prod.of_type("Custom::HyperPodNodesReady")
    assert times.begin(first) == times.end(*nodes)


def test_the_chain_that_was_asked_for_ends_in_time_without_cert_manager(prod: Synthesized) -> None:
    """Network, EKS, chart, cluster, governance add-on and quota: 2,070 s necessary, 1.1 times that asked for."""
    times = Times(prod)
    (quota,) = prod.of_type("AWS::SageMaker::ComputeQuota")
    kueue = prod.addon("amazon-sagemaker-hyperpod-taskgovernance")
    earlier = times.begin(kueue) - times.begin(prod.addon("cert-manager"))
    assert times.end(quota) - earlier <= 1.1 * 2070


@row_by_row(
    "kind, when, wanted",
    [
        *((kind, "", wanted) for kind, wanted in SECONDS.items()),
        ("AWS::EC2::VPCEndpoint", "interface", INTERFACE_ENDPOINT),
        ("AWS::IAM::Role", "", IAM),
        ("AWS::IAM::ManagedPolicy", "", IAM),
        ("Custom::HyperPodQuotaGate", "", CUSTOM_RESOURCE),
        ("Custom::AWSCDK-EKS-KubernetesResource", "", CUSTOM_RESOURCE),
        ("AWS::EC2::Subnet", "", ALL_ELSE),
    ],
)
def test_the_figures_lie_in_the_ranges_that_reviews_show(kind: str, when: str, wanted: int) -> None:
    shown = durations.duration(kind, "create", when=when)
    assert shown.low * 60 <= wanted <= shown.high * 60
    assert shown.source


OUTSIDE = {"AWS::FSx::DataRepositoryAssociation": "as long as FSx reads names of files in: 5 to 30 minutes"}
"""Types whose figure is not in the range, and why: no figure of the model is theirs."""


def _types(synthesized: Synthesized) -> set[str]:
    return {str(each["Type"]) for template in synthesized.templates.values() for each in template["Resources"].values()}


def test_every_figure_lies_in_the_range_that_reviews_show(synthesized: Synthesized) -> None:
    found = {
        str(each["Type"]) for template in synthesized.templates.values() for each in template["Resources"].values()
    }
    wrong = []
    for kind in sorted(found - OUTSIDE.keys()):
        shown = durations.duration(kind, "create")
        if not shown.low * 60 <= seconds({"Type": kind, "Properties": {"VpcEndpointType": ""}}) <= shown.high * 60:
            wrong.append(kind)
    assert wrong == []


def test_no_row_of_the_model_is_about_nothing(assemblies: Path) -> None:
    found = set[str]().union(*(_types(shipped(assemblies, name)) for name in ENVIRONMENTS))
    # of a region that has no such type in CloudFormation, where nothing that ships stands
    found.add("Custom::ComputeQuota")
    assert sorted(SECONDS.keys() - found) == []
    assert [start for start in NECESSARY if not any(kind.startswith(start) for kind in found)] == []
    assert sorted(OUTSIDE.keys() - found) == []


def test_what_a_stack_takes_lies_in_its_range() -> None:
    assert durations.STACK.low * 60 <= STACK <= durations.STACK.high * 60
