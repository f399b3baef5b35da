"""``drift`` as users run it: exit codes, text at 80 columns, JSON by its schema, the policy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from hyperpod_cdk import cli
from hyperpod_cdk._cli.review import Access
from hyperpod_cdk.checks.policy import VERBS
from tests.cli.test_plan import write_assembly
from tests.living.account import ACCOUNT, REGION, Account
from tests.support.answers import answered
from tests.support.scripted_aws import Fails


def _run(*arguments: object, obj: object = None) -> Result:
    return CliRunner().invoke(cli.app, [str(each) for each in arguments], prog_name="hyperpod-cdk", obj=obj)


def _drift(account: Account, folder: Path, *more: str) -> Result:
    opened: list[tuple[str, str]] = []

    def opening(region: str, of: str) -> Any:
        opened.append((region, of))
        return account.aws()

    templates = {name.removeprefix("dev-"): each for name, each in account.head.items()}
    head = write_assembly(folder / "head", templates, {}, where=f"aws://{ACCOUNT}/{REGION}")
    done = _run("drift", "dev", "--head", head, *more, obj=Access(open=opening))
    assert opened == [(REGION, ACCOUNT)]
    return done


def test_a_count_by_hand_ends_with_1(tmp_path: Path) -> None:
    account = Account()
    account.group("h100")["TargetCount"] = 6
    account.in_file()["NodeRecovery"] = "None"
    done = _drift(account, tmp_path)
    assert done.exit_code == 1, done.output
    assert done.stdout == (
        "dev: 1 difference; the next deployment removes 4 nodes.\n"
        "\n"
        "dev-foundation / Cluster (HyperPod cluster)\n"
        "  InstanceGroups[h100].InstanceCount\n"
        "    deployed  2\n"
        "    file      2\n"
        "    AWS has   6\n"
        "    next      Sets h100 from 6 back to 2: 4 nodes are terminated; HyperPod\n"
        "              chooses which.\n"
    )


def test_nothing_differs(tmp_path: Path) -> None:
    done = _drift(Account(), tmp_path, "--strict")
    assert (done.exit_code, done.stdout) == (0, "dev: AWS matches the last deployment.\n")


def test_what_no_version_compares_is_named(tmp_path: Path) -> None:
    """Nobody takes an answer for one about a chart, of which nothing is read here."""
    account = Account()
    for templates in (account.deployed, account.head):
        templates["dev-foundation"]["Resources"]["Chart"] = {"Type": "Custom::AWSCDK-EKS-HelmChart", "Properties": {}}
    done = _drift(account, tmp_path, "--strict")
    said = (
        "dev: AWS matches the last deployment in everything that is compared.\n\n"
        "not compared: Custom::AWSCDK-EKS-HelmChart (1)\n"
    )
    assert (done.exit_code, done.stdout) == (0, said)


@pytest.mark.parametrize(("more", "code"), [((), 0), (("--strict",), 1)])
def test_what_could_not_be_read(more: tuple[str, ...], code: int, tmp_path: Path) -> None:
    denied = Fails("AccessDeniedException", "no", 403)
    done = _drift(Account(more={"sagemaker:DescribeCluster": denied}), tmp_path, *more)
    assert done.exit_code == code
    assert done.stdout == (
        "dev: No difference in what was read; 1 thing could not be checked.\n"
        "skipped dev-foundation / Cluster (HyperPod cluster): no permission for sagemaker:DescribeCluster; AWS"
        ' says: "no"\n'
    )


def test_json_follows_its_schema(tmp_path: Path) -> None:
    account = Account()
    account.group("h100")["TargetCount"] = 6
    done = _drift(account, tmp_path, "--format", "json")
    found = answered("drift", done.stdout)
    assert (done.exit_code, found["passed"], found["differences"][0]["actual"]) == (1, False, "6")


def test_cloudformation_that_does_not_answer_ends_with_2(tmp_path: Path) -> None:
    denied = Fails("AccessDenied", "no", 403)
    done = _drift(Account(more={"cloudformation:ListStackResources": denied}), tmp_path)
    assert done.exit_code == 2
    assert done.stderr.startswith(
        "the deployed stacks cannot be read: no permission for cloudformation:ListStackResources"
    )


def test_the_policies_read_only() -> None:
    actions: set[str] = set()
    for verb in ("drift", "status", "observe"):
        (statement,) = answered("iam-policy", _run(verb, "dev", "--iam-policy").stdout)["Statement"]
        actions |= set(statement["Action"])
    of_nodes = ("node list", "node describe", "node logs")
    actions |= {action for verb in VERBS if verb.name in of_nodes for action in verb.actions}
    assert all(each.partition(":")[2].startswith(("Describe", "Filter", "Get", "List", "View")) for each in actions)
    page = json.loads((Path(__file__).parents[2] / "docs/living-policy.json").read_text(encoding="utf-8"))
    assert page["Statement"][0]["Action"] == sorted(actions)


FILE = """\
name: dev
account: "111122223333"
region: us-east-1
eks: {admin_role_arns: ["arn:aws:iam::111122223333:role/admin"], public_access_cidrs: [54.240.193.128/26]}
network: {availability_zones: {use1-az5: {}, use1-az4: {}}}
hyperpod:
  instance_groups:
    - {name: system, instance_type: ml.m5.2xlarge, count: 2, availability_zone_id: use1-az4}
    # for pretraining
    - name: h100
      instance_type: ml.p5.48xlarge
      count: 2 # for now
      availability_zone_id: use1-az5
      capacity: on_demand
"""
DIFF = """\
@@ -9,6 +9,6 @@
     # for pretraining
     - name: h100
       instance_type: ml.p5.48xlarge
-      count: 2 # for now
+      count: 6 # for now
       availability_zone_id: use1-az5
       capacity: on_demand
"""


class TestAdopt:
    """What AWS has goes into the file: shown, asked for, and all else of the file as it was."""

    def adopt(self, account: Account, folder: Path, *more: str, typed: str = "") -> tuple[Result, Path]:
        file = folder / "environments" / "dev.yaml"
        file.parent.mkdir()
        file.write_text(FILE, encoding="utf-8")
        templates = {name.removeprefix("dev-"): each for name, each in account.head.items()}
        head = write_assembly(folder / "head", templates, {}, where=f"aws://{ACCOUNT}/{REGION}")
        line = ["drift", "dev", "--head", str(head), "--adopt", "--project", str(folder), *more]
        access = Access(open=lambda _region, _account: account.aws())
        done = CliRunner().invoke(cli.app, line, prog_name="hyperpod-cdk", obj=access, input=typed)
        return done, file

    def scaled(self) -> Account:
        account = Account()
        account.group("h100")["TargetCount"] = 6
        return account

    @pytest.mark.parametrize(("more", "typed"), [(("--yes",), ""), ((), "y\n")])
    def test_a_count_is_written_and_its_comment_stays(self, tmp_path: Path, more: tuple[str, ...], typed: str) -> None:
        done, file = self.adopt(self.scaled(), tmp_path, *more, typed=typed)
        assert DIFF in done.stdout
        assert file.read_text(encoding="utf-8") == FILE.replace("count: 2 # for now", "count: 6 # for now")
        # the file says all that differs
        assert (done.exit_code, done.stderr) == (0, f"wrote {file}\n")

    @pytest.mark.parametrize("typed", ["", "n\n"])
    def test_no_confirmation(self, tmp_path: Path, typed: str) -> None:
        done, file = self.adopt(self.scaled(), tmp_path, typed=typed)
        assert (done.exit_code, done.stdout.splitlines()[-1]) == (1, "Nothing was written.")
        assert file.read_text(encoding="utf-8") == FILE

    def test_an_edit_during_a_question_is_not_overwritten(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        edited = FILE.replace("count: 2 # for now", "count: 3 # by hand")

        def agrees(*_: object) -> bool:
            (tmp_path / "environments" / "dev.yaml").write_text(edited, encoding="utf-8")
            return True

        monkeypatch.setattr("hyperpod_cdk._cli.living.Terminal.agrees", agrees)
        done, file = self.adopt(self.scaled(), tmp_path)
        said = f"{file} changed since the change was shown; nothing was written to it. Run it again.\n"
        assert (done.exit_code, done.stderr, file.read_text(encoding="utf-8")) == (1, said, edited)

    def test_what_no_file_can_say_is_named_and_ends_with_1(self, tmp_path: Path) -> None:
        account = self.scaled()
        account.tags[0]["Value"] = "43"
        done, file = self.adopt(account, tmp_path, "--yes")
        assert (
            "not adopted: Cluster Tags[cost-center]: the file has no tag cost-center; if you add it under tags,"
            " all resources get it\n"
        ) in done.stdout
        assert (done.exit_code, "count: 6" in file.read_text(encoding="utf-8")) == (1, True)

    def test_only_what_no_file_can_say(self, tmp_path: Path) -> None:
        account = Account(tags=[{"Key": "cost-center", "Value": "43"}])
        done, file = self.adopt(account, tmp_path)
        assert (done.exit_code, done.stdout.splitlines()[-1]) == (1, "The file was not changed.")
        assert file.read_text(encoding="utf-8") == FILE

    def test_a_file_that_would_be_refused_is_not_written(self, tmp_path: Path) -> None:
        account = Account()
        account.group("h100")["MinCount"] = 9
        done, file = self.adopt(account, tmp_path, "--yes")
        assert (done.exit_code, done.stdout.splitlines()[-1]) == (1, "Such a file is refused; nothing was written.")
        assert "hyperpod.instance_groups[1].min_count: " in done.stdout
        assert file.read_text(encoding="utf-8") == FILE

    def test_nothing_to_adopt(self, tmp_path: Path) -> None:
        done, _ = self.adopt(Account(), tmp_path)
        assert (done.exit_code, done.stdout) == (0, "dev: AWS matches the last deployment.\n")

    def test_what_was_not_read_is_not_whole(self, tmp_path: Path) -> None:
        account = self.scaled()
        account.more["fsx:DescribeFileSystems"] = Fails("AccessDeniedException", "no", 403)
        done, _ = self.adopt(account, tmp_path, "--yes", "--strict")
        assert done.exit_code == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--adopt", "--format", "json"), "--adopt shows the changes and asks for confirmation; omit --format json"),
        (("--yes",), "--yes is for --adopt"),
    ],
)
def test_words_that_do_not_go_together(words: tuple[str, ...], said: str) -> None:
    done = _run("drift", "dev", *words)
    assert (done.exit_code, done.stderr) == (2, f"{said}\n")


@pytest.mark.parametrize(
    ("target", "reasons"),
    [
        (6, ["Sets h100 from 6 back to 2: 4 nodes are terminated; HyperPod chooses which."]),
        (3, ["Sets h100 from 3 back to 2: 1 node is terminated; HyperPod chooses which."]),
        (2, []),
        (1, []),
    ],
)
def test_a_review_says_on_top_which_nodes_go_that_no_deployment_made(
    target: int, reasons: list[str], tmp_path: Path
) -> None:
    account = Account()
    account.group("h100")["TargetCount"] = target
    account.in_file()["NodeRecovery"] = "None"
    done = _review(account, tmp_path, "--format", "json")
    verdict = json.loads(done.stdout)["verdict"]
    beside = [each for each in verdict["needs_approval"] if each["resource"] == "nodes that no deployment created"]
    assert [(each["kind"], each["sentence"]) for each in beside] == [("deletion", each) for each in reasons]
    shown = _review(account, tmp_path / "again").stdout
    assert all(each.partition(":")[0] in " ".join(shown.split()) for each in reasons)


def test_a_review_that_cannot_look_at_nodes_says_so(tmp_path: Path) -> None:
    account = Account(more={"sagemaker:DescribeCluster": Fails("AccessDeniedException", "no", 403)})
    account.in_file()["NodeRecovery"] = "None"
    (note,) = [
        each for each in json.loads(_review(account, tmp_path, "--format", "json").stdout)["notes"] if "nodes" in each
    ]
    assert note == (
        "Whether it removes nodes that no deployment created could not be checked: no permission for"
        ' sagemaker:DescribeCluster; allow sagemaker:DescribeCluster; AWS says: "no"'
    )


def _review(account: Account, folder: Path, *more: str) -> Result:
    folder.mkdir(exist_ok=True)
    templates = {name.removeprefix("dev-"): each for name, each in account.head.items()}
    head = write_assembly(folder / "head", templates, {}, where=f"aws://{ACCOUNT}/{REGION}")
    way = Access(open=lambda *_: account.aws())
    return _run("review", "dev", "--head", head, "--deployed", *more, obj=way)
