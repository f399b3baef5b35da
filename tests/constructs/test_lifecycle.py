"""The lifecycle bucket, the upload and what is refused before it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, cast

import aws_cdk as cdk
import pytest
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Template
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk import script_files
from hyperpod_cdk.catalog import regions
from hyperpod_cdk.hyperpod.lifecycle import LifecycleScripts, bucket_name
from hyperpod_cdk.script_files import MAX_TOTAL_MIB, check_scripts, content_hash, library_scripts
from tests.support.templates import app, template_of

KEY = "arn:aws-us-gov:kms:us-gov-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
SCRIPT = "#!/usr/bin/env bash\necho hello\n"
BUCKET, ACCESS_LOGS, UPLOAD_LOGS = "ScriptsBucketC04F7688", "ScriptsAccessLogsAAB6C044", "ScriptsUploadLogs48381A98"


@pytest.fixture
def stack() -> cdk.Stack:
    """Somebody else's stack, without account, region or feature flags."""
    return cdk.Stack(app(), "foreign")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one good script."""
    made = tmp_path / "scripts"
    made.mkdir()
    (made / "on_create.sh").write_text(SCRIPT)
    return made


def resources(stack: cdk.Stack) -> dict[str, Any]:
    found: dict[str, Any] = template_of(stack)["Resources"]
    return found


def of_type(stack: cdk.Stack, resource_type: str) -> dict[str, Any]:
    return {name: each for name, each in resources(stack).items() if each["Type"] == resource_type}


def statements(policy: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = policy["Properties"]["PolicyDocument"]["Statement"]
    return found


def test_steps_come_into_the_folder_and_its_name(stack: cdk.Stack, folder: Path, tmp_path: Path) -> None:
    step = tmp_path / "60_ours.sh"
    step.write_text(SCRIPT, encoding="utf-8")
    scripts = LifecycleScripts(stack, "Scripts", directory=folder, steps=[step])
    assert scripts.content_hash == content_hash(folder, {"steps/60_ours.sh": SCRIPT}) != content_hash(folder)
    (upload,) = of_type(stack, "Custom::CDKBucketDeployment").values()
    assert len(upload["Properties"]["SourceObjectKeys"]) == 2


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "ours.sh",
            SCRIPT,
            (
                "must be named as steps are, two digits, _ and a word in lower case, got ours.sh; rename it, for"
                " instance to 60_ours.sh"
            ),
        ),
        ("40_load_efa.sh", SCRIPT, "has the name of another step, which nodes would not run; rename it"),
        ("60_ours.sh", "", "must be a script, got an empty file; write it or remove it"),
        ("60_ours.sh", None, "is a lifecycle step that is not there; write it, or name another file"),
        ("60_ours.sh", b"#!/bin/bash\n\xff\n", "must be UTF-8 text; save it as UTF-8"),
    ],
)
def test_a_step_that_no_node_could_run(
    stack: cdk.Stack, tmp_path: Path, name: str, text: str | bytes | None, said: str
) -> None:
    step = tmp_path / name
    if text is not None:
        step.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=f"^{re.escape(f'{step} {said}')}$"):
        LifecycleScripts(stack, "Scripts", steps=[step])


def test_a_step_larger_than_all_scripts_may_be_is_not_read(stack: cdk.Stack, tmp_path: Path) -> None:
    step = tmp_path / "60_ours.sh"
    step.touch()
    os.truncate(step, 5 << 30)
    said = f"must be of at most {MAX_TOTAL_MIB} MiB, as all scripts are; shorten it"
    with pytest.raises(ValueError, match=f"^{re.escape(f'{step} {said}')}$"):
        LifecycleScripts(stack, "Scripts", steps=[step])


def test_it_synthesizes_alone_without_errors(stack: cdk.Stack) -> None:
    LifecycleScripts(stack, "Scripts")

    assert len(template_of(stack)["Resources"]) == 10


class TestBucket:
    def test_is_versioned_encrypted_private_and_logged(self, stack: cdk.Stack) -> None:
        LifecycleScripts(stack, "Scripts")

        properties = resources(stack)[BUCKET]["Properties"]
        assert properties["VersioningConfiguration"] == {"Status": "Enabled"}
        assert properties["BucketEncryption"] == {
            "ServerSideEncryptionConfiguration": [{"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]
        }
        assert set(properties["PublicAccessBlockConfiguration"].values()) == {True}
        assert properties["LoggingConfiguration"] == {"DestinationBucketName": {"Ref": ACCESS_LOGS}}

    def test_keeps_its_logical_ids_and_outlives_the_stack(self, stack: cdk.Stack) -> None:
        LifecycleScripts(stack, "Scripts")

        kept = {
            name: (each["DeletionPolicy"], each["UpdateReplacePolicy"])
            for name, each in resources(stack).items()
            if each["Type"] in {"AWS::S3::Bucket", "AWS::Logs::LogGroup"}
        }
        assert kept == dict.fromkeys((BUCKET, ACCESS_LOGS, UPLOAD_LOGS), ("Retain", "Retain"))

    @pytest.mark.parametrize("bucket", [BUCKET, ACCESS_LOGS])
    def test_refuses_plain_http(self, stack: cdk.Stack, bucket: str) -> None:
        LifecycleScripts(stack, "Scripts")

        policies = of_type(stack, "AWS::S3::BucketPolicy").values()
        (policy,) = [each for each in policies if each["Properties"]["Bucket"] == {"Ref": bucket}]
        deny = next(each for each in statements(policy) if each["Effect"] == "Deny")
        assert deny["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
        assert deny["Action"] == "s3:*"

    def test_only_the_upload_writes_what_nodes_run_as_root(self, stack: cdk.Stack) -> None:
        LifecycleScripts(stack, "Scripts")

        policies = of_type(stack, "AWS::S3::BucketPolicy").values()
        (policy,) = [each for each in policies if each["Properties"]["Bucket"] == {"Ref": BUCKET}]
        (deny,) = [each for each in statements(policy) if each.get("Sid") == "OnlyTheUploadWrites"]
        ((function, upload),) = of_type(stack, "AWS::Lambda::Function").items()
        assert function.startswith("CustomCDKBucketDeployment")
        assert deny == {
            "Sid": "OnlyTheUploadWrites",
            "Effect": "Deny",
            "Principal": {"AWS": "*"},
            "Action": [
                "s3:BypassGovernanceRetention",
                "s3:DeleteObject*",
                "s3:PutObject*",
                "s3:ReplicateDelete",
                "s3:ReplicateObject",
                "s3:RestoreObject",
            ],
            "Resource": {"Fn::Join": ["", [{"Fn::GetAtt": [BUCKET, "Arn"]}, "/*"]]},
            "Condition": {"ArnNotEquals": {"aws:PrincipalArn": upload["Properties"]["Role"]}},
        }
        assert "DeletionPolicy" not in policy, "it goes with the stack: whoever empties the bucket then is let"

    def test_whose_bucket_is_given_keeps_its_policy(self, stack: cdk.Stack) -> None:
        LifecycleScripts(stack, "Scripts", bucket=s3.Bucket.from_bucket_name(stack, "Theirs", "sagemaker-theirs"))

        assert of_type(stack, "AWS::S3::BucketPolicy") == {}

    def test_access_logs_come_by_policy_and_not_by_acl(self, stack: cdk.Stack) -> None:
        LifecycleScripts(stack, "Scripts")

        assert "AccessControl" not in resources(stack)[ACCESS_LOGS]["Properties"]
        policies = of_type(stack, "AWS::S3::BucketPolicy").values()
        (policy,) = [each for each in policies if each["Properties"]["Bucket"] == {"Ref": ACCESS_LOGS}]
        (allow,) = [each for each in statements(policy) if each["Effect"] == "Allow"]
        assert allow["Principal"] == {"Service": "logging.s3.amazonaws.com"}
        assert allow["Action"] == "s3:PutObject"
        assert allow["Condition"]["ArnLike"] == {"aws:SourceArn": {"Fn::GetAtt": [BUCKET, "Arn"]}}

    def test_takes_a_key(self, stack: cdk.Stack) -> None:
        key = kms.Key.from_key_arn(stack, "Key", KEY)
        LifecycleScripts(stack, "Scripts", encryption_key=key)

        encryption = resources(stack)[BUCKET]["Properties"]["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        assert encryption == [
            {
                "BucketKeyEnabled": True,
                "ServerSideEncryptionByDefault": {
                    "KMSMasterKeyID": KEY,
                    "SSEAlgorithm": "aws:kms",
                },
            }
        ]

    def test_takes_a_bucket_instead(self, stack: cdk.Stack) -> None:
        bucket = s3.Bucket.from_bucket_name(stack, "Theirs", "sagemaker-theirs")
        scripts = LifecycleScripts(stack, "Scripts", bucket=bucket)

        assert of_type(stack, "AWS::S3::Bucket") == {}
        assert scripts.source_s3_uri == f"s3://sagemaker-theirs/{scripts.content_hash}"

    def test_refuses_a_key_for_a_bucket_that_is_given(self, stack: cdk.Stack) -> None:
        bucket = s3.Bucket.from_bucket_name(stack, "Theirs", "sagemaker-theirs")
        key = kms.Key.from_key_arn(stack, "Key", KEY)

        with pytest.raises(ValueError, match="encryption_key") as raised:
            LifecycleScripts(stack, "Scripts", bucket=bucket, encryption_key=key)
        assert str(raised.value) == (
            "encryption_key is for a new bucket, got both bucket and encryption_key; "
            "leave out encryption_key: the given bucket has its own"
        )


class TestBucketName:
    def test_is_stable_in_a_stack_and_new_in_its_successor(self, stack: cdk.Stack) -> None:
        LifecycleScripts(stack, "Scripts", name="prod")

        name = resources(stack)[BUCKET]["Properties"]["BucketName"]
        stack_uuid = {"Fn::Select": [2, {"Fn::Split": ["/", {"Ref": "AWS::StackId"}]}]}
        parts = [
            "sagemaker-prod-",
            {"Fn::Select": [0, {"Fn::Split": ["-", stack_uuid]}]},
            "-",
            {"Ref": "AWS::AccountId"},
            "-",
            {"Ref": "AWS::Region"},
        ]
        assert name == {"Fn::Join": ["", parts]}

    def test_is_of_the_construct_unless_another_is_given(self, stack: cdk.Stack) -> None:
        """Two of a stack do not have one name; the name of a nested stack is a token, which cannot be cut."""
        LifecycleScripts(stack, "One")
        LifecycleScripts(stack, "Two")
        nested = cdk.NestedStack(stack, "Nested")
        LifecycleScripts(nested, "Three")

        words = [
            row["Properties"]["BucketName"]["Fn::Join"][1][0]
            for each in (stack, nested)
            for row in Template.from_stack(each).find_resources("AWS::S3::Bucket").values()
            if "BucketName" in row["Properties"]
        ]
        assert [re.sub("[0-9a-f]{8}-$", "<hash>-", word) for word in words] == [
            "sagemaker-forone<hash>-",
            "sagemaker-fortwo<hash>-",
            "sagemaker-forree<hash>-",
        ]
        assert len(set(words)) == len(words)

    @pytest.mark.parametrize(
        ("label", "word"),
        [
            ("prod", "prod"),
            ("Prod_Hyperpod", "prod-hyperpod"),
            ("exactly-fifteen", "exactly-fifteen"),
            ("one-over-fifteen", "one-over-fiftee"),
            ("cut-after-hyph-en", "cut-after-hyph"),
            ("--", "hyperpod"),
        ],
    )
    def test_takes_any_label(self, label: str, word: str) -> None:
        assert bucket_name(label).startswith(f"sagemaker-{word}-$")

    @given(st.text(max_size=80))
    def test_is_a_bucket_name_in_every_region(self, label: str) -> None:
        tokens = iter(["1a2b3c4d", "111122223333", max(regions.names(), key=len)])
        name = re.sub(r"\$\{Token\[[^]]*\]\}", lambda _: next(tokens), bucket_name(label))

        assert re.fullmatch(r"sagemaker-[a-z0-9][a-z0-9-]*[a-z0-9]", name)
        assert len(name) <= 63


class TestUpload:
    def test_goes_to_a_prefix_of_its_own_and_removes_nothing(self, stack: cdk.Stack, folder: Path) -> None:
        scripts = LifecycleScripts(stack, "Scripts", directory=folder)

        (upload,) = of_type(stack, "Custom::CDKBucketDeployment").values()
        assert upload["Properties"]["DestinationBucketName"] == {"Ref": BUCKET}
        assert upload["Properties"]["DestinationBucketKeyPrefix"] == content_hash(folder)
        assert upload["Properties"]["Prune"] is False
        assert upload["Properties"]["RetainOnDelete"] is True
        assert stack.resolve(scripts.source_s3_uri) == {
            "Fn::Join": ["", ["s3://", {"Ref": BUCKET}, f"/{content_hash(folder)}"]]
        }

    @pytest.mark.parametrize("prefix", ["hyperpod/prod"])
    def test_goes_below_a_prefix_of_a_bucket_that_is_given(self, stack: cdk.Stack, folder: Path, prefix: str) -> None:
        given = s3.Bucket.from_bucket_name(stack, "Given", "sagemaker-scripts")
        scripts = LifecycleScripts(stack, "Scripts", directory=folder, bucket=given, prefix=prefix)

        (upload,) = of_type(stack, "Custom::CDKBucketDeployment").values()
        assert upload["Properties"]["DestinationBucketKeyPrefix"] == f"hyperpod/prod/{content_hash(folder)}"
        assert scripts.source_s3_uri == f"s3://sagemaker-scripts/hyperpod/prod/{content_hash(folder)}"
        assert of_type(stack, "AWS::S3::Bucket") == of_type(stack, "AWS::S3::BucketPolicy") == {}

    def test_a_prefix_leaves_room_for_the_version(self, stack: cdk.Stack, folder: Path) -> None:
        given = s3.Bucket.from_bucket_name(stack, "Given", "sagemaker-scripts")
        LifecycleScripts(stack, "Longest", directory=folder, bucket=given, prefix="p" * 69)
        (upload,) = of_type(stack, "Custom::CDKBucketDeployment").values()
        assert len(upload["Properties"]["DestinationBucketKeyPrefix"]) == 102

        with pytest.raises(ValueError, match=r"^prefix: must be folders joined by /, .* of at most 69 characters, got"):
            LifecycleScripts(stack, "TooLong", directory=folder, bucket=given, prefix="p" * 70)

    def test_says_what_the_environment_needs_of_its_nodes(self, tmp_path: Path, folder: Path) -> None:
        own = cdk.App(outdir=str(tmp_path / "out"), builtin_cloud_formation_validation=False)
        scripts = LifecycleScripts(
            cdk.Stack(own, "foreign"),
            "Scripts",
            directory=folder,
            lustre=["ml.g5.8xlarge", "ml.p5.48xlarge"],
            lustre_over_efa={"ml.p4d.24xlarge": 0, "ml.p5.48xlarge": 8},
        )
        own.synth()

        (written,) = (tmp_path / "out").rglob("environment.conf")
        assert written.read_text() == (
            "# what the environment needs of its nodes, by instance type\n"
            "lustre=g5.8xlarge p5.48xlarge\n"
            "lustre_over_efa=p4d.24xlarge:0 p5.48xlarge:8\n"
        )
        # a node that is being made keeps what it began with
        assert scripts.content_hash == content_hash(folder, {"environment.conf": written.read_text()})
        assert scripts.content_hash != content_hash(folder)

    def test_writes_nothing_where_it_would_say_nothing(self, stack: cdk.Stack, folder: Path) -> None:
        scripts = LifecycleScripts(stack, "Scripts", directory=folder, lustre=(), lustre_over_efa={})

        (upload,) = of_type(stack, "Custom::CDKBucketDeployment").values()
        assert len(upload["Properties"]["SourceObjectKeys"]) == 1
        assert scripts.content_hash == content_hash(folder)

    def test_refuses_a_folder_with_the_file_that_is_written(self, stack: cdk.Stack, folder: Path) -> None:
        (folder / "environment.conf").write_text("lustre=p5.48xlarge\n")

        with pytest.raises(ValueError, match=r"environment\.conf") as raised:
            LifecycleScripts(stack, "Scripts", directory=folder)
        assert str(raised.value) == (
            f"{folder}/environment.conf must not be in the folder, since it is written from the environment;"
            " rename or remove it"
        )

    def test_logs_into_a_group_of_the_template(self, stack: cdk.Stack, folder: Path) -> None:
        LifecycleScripts(stack, "Scripts", directory=folder)

        (function,) = of_type(stack, "AWS::Lambda::Function").values()
        assert function["Properties"]["LoggingConfig"] == {"LogGroup": {"Ref": UPLOAD_LOGS}}
        assert function["Properties"]["MemorySize"] == 512
        assert of_type(stack, "Custom::LogRetention") == {}

    def test_can_be_waited_for(self, stack: cdk.Stack, folder: Path) -> None:
        scripts = LifecycleScripts(stack, "Scripts", directory=folder)
        later = cdk.CfnResource(stack, "Later", type="AWS::SNS::Topic")
        later.node.add_dependency(scripts.deployment)

        (upload,) = of_type(stack, "Custom::CDKBucketDeployment")
        assert upload in resources(stack)["Later"]["DependsOn"]

    def test_leaves_out_what_tools_leave_behind(self, tmp_path: Path, folder: Path) -> None:
        (folder / ".DS_Store").write_text("finder")
        (folder / "__pycache__").mkdir()
        (folder / "__pycache__" / "a.pyc").write_text("code")
        own = cdk.App(outdir=str(tmp_path / "out"), builtin_cloud_formation_validation=False)
        LifecycleScripts(cdk.Stack(own, "foreign"), "Scripts", directory=folder)
        own.synth()

        assets = [path.parent for path in (tmp_path / "out").rglob("on_create.sh")]
        assert [sorted(path.name for path in asset.rglob("*")) for asset in assets] == [["on_create.sh"]]


class TestContentHash:
    def test_is_32_hexadecimal_digits(self, folder: Path) -> None:
        assert re.fullmatch("[0-9a-f]{32}", content_hash(folder))

    def test_does_not_depend_on_place_or_time(self, tmp_path: Path, folder: Path) -> None:
        before = content_hash(folder)
        moved = folder.rename(tmp_path / "elsewhere")
        (moved / "on_create.sh").touch()

        assert content_hash(moved) == before

    @pytest.mark.parametrize("change", ["bytes", "name", "mode", "file"])
    def test_depends_on(self, folder: Path, change: str) -> None:
        before, script = content_hash(folder), folder / "on_create.sh"
        match change:
            case "bytes":
                script.write_text(SCRIPT + "\n")
            case "name":
                script.rename(folder / "on_start.sh")
            case "mode":
                script.chmod(0o755)
            case "file":
                (folder / "empty").touch()

        assert content_hash(folder) != before

    def test_knows_only_the_executable_bit_of_a_mode(self, folder: Path) -> None:
        script = folder / "on_create.sh"
        script.chmod(0o644)
        before = content_hash(folder)
        script.chmod(0o600)

        assert content_hash(folder) == before

    def test_does_not_depend_on_the_order_of_the_directory(self, tmp_path: Path) -> None:
        hashes = set()
        for number, names in enumerate((("a", "b/c", "b.d"), ("b.d", "b/c", "a"))):
            for name in names:
                path = tmp_path / str(number) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(name)
            hashes.add(content_hash(tmp_path / str(number)))

        assert len(hashes) == 1


class TestFolder:
    def test_default_is_the_librarys_own(self, stack: cdk.Stack, project: Path) -> None:
        scripts = LifecycleScripts(stack, "Scripts", entry_points=["on_create.sh", "on_create_noop.sh"])

        assert scripts.directory == library_scripts() == project / "lifecycle_scripts"

    def test_in_an_installed_package_they_lie_inside_it(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "_lifecycle_scripts").mkdir()
        monkeypatch.setattr(script_files, "__file__", str(tmp_path / "script_files.py"))

        assert library_scripts() == tmp_path / "_lifecycle_scripts"

    def test_must_exist(self, tmp_path: Path) -> None:
        assert refusal(tmp_path / "none") == (
            f"directory must be a folder of lifecycle scripts, got {tmp_path / 'none'}, which is none; "
            "set directory to the folder that holds on_create.sh"
        )

    def test_must_hold_something(self, tmp_path: Path) -> None:
        assert refusal(tmp_path) == (
            f"directory must hold a lifecycle script, got {tmp_path}, which is empty; add on_create.sh"
        )

    def test_may_hold_so_many_files_and_no_more(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(script_files, "MAX_FILES", 2)
        (folder / "second").write_text("")
        check_scripts(folder)
        (folder / "third").write_text("")

        assert refusal(folder) == (
            f"directory must hold at most 2 files, got 3 in {folder}; "
            "move what is no script to an AMI or a container image"
        )

    def test_may_be_so_large_and_no_larger(self, folder: Path) -> None:
        large = folder / "driver.run"
        size = script_files.MAX_TOTAL_MIB * 2**20 - len(SCRIPT)
        with large.open("wb") as stream:
            stream.truncate(size)
        check_scripts(folder)
        with large.open("wb") as stream:
            stream.truncate(size + 2**20)

        assert refusal(folder) == (
            f"directory must hold at most 64 MiB, got 65.0 MiB in {folder}; "
            f"{large} is the largest file: move it to an AMI or a container image"
        )

    def test_scripts_must_end_lines_with_lf(self, folder: Path) -> None:
        script = folder / "steps.sh"
        script.write_bytes(b"#!/bin/bash\necho one\necho two\r\n")

        assert refusal(folder) == (
            f"{script}:3 must end its lines with LF, got CR LF, which bash takes for part of the command; "
            f"run 'dos2unix {script}' and add '*.sh text eol=lf' to .gitattributes"
        )

    def test_scripts_must_not_be_empty(self, folder: Path) -> None:
        script = folder / "on_create.sh"
        script.write_text(" \n")

        assert refusal(folder) == f"{script} must be a script, got an empty file; write it or remove it"

    @pytest.mark.parametrize(
        ("first_line", "got"),
        [("echo hello", "echo hello"), ("# a comment", "# a comment"), ("#!bash", "#!bash"), ("", "")],
    )
    def test_scripts_must_name_their_interpreter(self, folder: Path, first_line: str, got: str) -> None:
        script = folder / "on_create.sh"
        script.write_text(f"{first_line}\necho hello\n")

        assert refusal(folder) == (
            f'{script}:1 must name its interpreter, got "{got}"; make the first line #!/usr/bin/env bash'
        )

    @pytest.mark.parametrize("first_line", ["#!/bin/bash", "#!/usr/bin/env bash", "#! /bin/sh -e", "#!/bin/bash -ex"])
    def test_takes_every_good_first_line(self, folder: Path, first_line: str) -> None:
        (folder / "on_create.sh").write_text(f"{first_line}\necho hello\n")

        check_scripts(folder)

    def test_other_files_may_be_anything(self, folder: Path) -> None:
        (folder / "config.ini").write_bytes(b"[a]\r\nb=c\r\n")
        (folder / "empty.json").touch()
        (folder / "image.png").write_bytes(b"\x89PNG\r\n\x1a\n")

        check_scripts(folder)

    def test_scripts_without_a_suffix_are_scripts_too(self, folder: Path) -> None:
        script = folder / "helper"
        script.write_bytes(b"#!/bin/bash\r\n")

        assert refusal(folder).startswith(f"{script}:1 must end its lines with LF")


class TestEntryPoints:
    def test_must_be_in_the_folder(self, stack: cdk.Stack, folder: Path) -> None:
        with pytest.raises(ValueError, match="entry_points") as raised:
            LifecycleScripts(stack, "Scripts", directory=folder, entry_points=["on_create.sh", "gpu.sh"])

        assert str(raised.value) == (
            f'entry_points[1] must be a script in {folder}, got "gpu.sh"; write it, or name one of on_create.sh'
        )

    def test_lie_below_the_folder(self, stack: cdk.Stack, folder: Path) -> None:
        with pytest.raises(ValueError, match="entry_points") as raised:
            LifecycleScripts(stack, "Scripts", directory=folder, entry_points=["../on_create.sh"])

        assert str(raised.value) == (
            "entry_points[0] must be the path of a script below the folder of lifecycle scripts, without / at its"
            ' beginning, "." and "..", got "../on_create.sh"; set entry_points[0]="on_create.sh"'
        )

    def test_must_name_their_interpreter(self, stack: cdk.Stack, folder: Path) -> None:
        (folder / "start").write_text("echo hello\n")
        scripts = LifecycleScripts(stack, "Scripts", directory=folder)

        assert scripts.script_problem("start") == (
            f'{folder / "start"}:1 must name its interpreter, got "echo hello"; make the first line #!/usr/bin/env bash'
        )

    @pytest.mark.parametrize(("length", "allowed"), [(128, True), (129, False)])
    def test_may_have_names_of_128_characters(self, stack: cdk.Stack, folder: Path, length: int, allowed: bool) -> None:  # noqa: FBT001 - a column of the table
        name = "a" * (length - 3) + ".sh"
        (folder / name).write_text(SCRIPT)
        scripts = LifecycleScripts(stack, "Scripts", directory=folder)

        assert (scripts.script_problem(name) is None) == allowed

    def test_may_lie_in_a_sub_folder(self, stack: cdk.Stack, folder: Path) -> None:
        (folder / "gpu").mkdir()
        (folder / "gpu" / "on_create.sh").write_text(SCRIPT)

        LifecycleScripts(stack, "Scripts", directory=folder, entry_points=["gpu/on_create.sh"])


def refusal(folder: Path) -> str:
    with pytest.raises(ValueError, match=re.escape(str(folder))) as raised:
        check_scripts(folder)
    return cast("str", raised.value.args[0])
