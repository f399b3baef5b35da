"""Lifecycle scripts: what would fail on a node is said with the script's own file and line."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hyperpod_cdk.checks import lifecycle_scripts
from hyperpod_cdk.checks.model import Result, Status
from tests.support.fake_aws import FakeAws

GOOD = "#!/usr/bin/env bash\nset -euo pipefail\necho ready\n"

STARTS = "lifecycle_scripts_can_start"
PARSES = "lifecycle_scripts_are_bash"
CALLS = "lifecycle_scripts_find_what_they_call"
DOWNLOADS = "lifecycle_scripts_download_nothing"
SECRETS = "lifecycle_scripts_hold_no_secret"
ALL = (STARTS, PARSES, CALLS, DOWNLOADS, SECRETS)

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, case_of: Any, run_check: Any, fake_aws: FakeAws) -> Run:
    """Runs a check on a project whose lifecycle_scripts/ holds on_create.sh with the given text, and other files."""

    def on(check: str, on_create: str | bytes = GOOD, /, **files: str | bytes) -> Result:
        folder = tmp_path / "lifecycle_scripts"
        for name, content in {"on_create.sh": on_create, **files}.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        result: Result = run_check(check, case_of(project=tmp_path), fake_aws)
        assert fake_aws.asked == []
        return result

    return on


def said(result: Result) -> list[str]:
    """What a result says, errors and warnings apart."""
    return [f"{finding.severity.value}: {finding.render()}" for finding in result.findings]


@pytest.mark.check("lifecycle_scripts_can_start", "passes")
@pytest.mark.check("lifecycle_scripts_are_bash", "passes")
@pytest.mark.check("lifecycle_scripts_find_what_they_call", "passes")
@pytest.mark.check("lifecycle_scripts_download_nothing", "passes")
@pytest.mark.check("lifecycle_scripts_hold_no_secret", "passes")
@pytest.mark.parametrize("check", ALL)
def test_the_librarys_own_scripts_pass(
    check: str, tmp_path: Path, case_of: Any, run_check: Any, fake_aws: FakeAws
) -> None:
    for case in (case_of(), case_of(project=tmp_path)):  # a project without scripts gets the library's
        result = run_check(check, case, fake_aws)
        assert (result.status, said(result)) == (Status.PASSED, [])


@pytest.mark.check("lifecycle_scripts_can_start", "fails")
@pytest.mark.parametrize(
    ("script", "message"),
    [
        (b"", "error: lifecycle_scripts/on_create.sh: must be a script, got an empty file; write it or remove it"),
        (
            b"echo\n",
            (
                'error: lifecycle_scripts/on_create.sh:1: must name its interpreter, got "echo";'
                " make the first line #!/usr/bin/env bash"
            ),
        ),
        (
            b"#!/bin/bash\necho\r\n",
            (
                "error: lifecycle_scripts/on_create.sh:2: must end its lines with LF, got CR LF, which bash takes"
                " for part"
                " of the command; run 'dos2unix lifecycle_scripts/on_create.sh' and add '*.sh text eol=lf' to"
                " .gitattributes"
            ),
        ),
        (
            b"\xef\xbb\xbf#!/bin/bash\necho\n",
            (
                "error: lifecycle_scripts/on_create.sh:1: must begin with #!, got a byte order mark before it,"
                " which the"
                " kernel takes for part of the line; save the file as UTF-8 without BOM"
            ),
        ),
        (
            b"#!/bin/bash\necho\na\0b\n",
            (
                "error: lifecycle_scripts/on_create.sh:3: must be text, got a NUL byte; save the script as UTF-8, or"
                " rename it without .sh"
            ),
        ),
        (
            b"#!/bin/bash\n# gr\xfcn\n",
            "warning: lifecycle_scripts/on_create.sh:2: should be UTF-8, got the byte 0xfc; save the script as UTF-8",
        ),
        (
            b"#!/usr/local/bin/bash\necho\n",
            (
                "warning: lifecycle_scripts/on_create.sh:1: should name an interpreter that every node has, got"
                " /usr/local/bin/bash; make the first line #!/usr/bin/env bash"
            ),
        ),
        (
            b"#!/usr/bin/env bash -e\necho\n",
            (
                'warning: lifecycle_scripts/on_create.sh:1: should give env only the program, got "bash -e", which env'
                " reads as one name; make the first line #!/usr/bin/env bash and write 'set -e' below it"
            ),
        ),
    ],
)
def test_a_script_that_cannot_start(run: Run, script: bytes, message: str) -> None:
    assert said(run(STARTS, script)) == [message]
    if message.startswith("error"):
        # one broken thing, one finding
        assert [said(run(check, script)) for check in ALL if check != STARTS] == [[], [], [], []]


@pytest.mark.parametrize(
    "first", ["#!/bin/bash", "#! /bin/bash -e", "#!/bin/sh", "#!/usr/bin/env -S bash -e", "#!/usr/bin/python3"]
)
def test_interpreters_that_every_node_has(run: Run, first: str) -> None:
    assert said(run(STARTS, f"{first}\n")) == []


def test_a_script_that_no_group_finds(tmp_path: Path, case_of: Any, run_check: Any, fake_aws: FakeAws) -> None:
    folder = tmp_path / "lifecycle_scripts"
    folder.mkdir()
    (folder / "on_create_gpu.sh").write_text(GOOD)
    case = case_of(
        {
            "hyperpod.instance_groups[0].on_create": "on_create_gpu.sh",
            "hyperpod.instance_groups[1].on_create": "gpu.sh",
        },
        project=tmp_path,
    )
    assert said(run_check(STARTS, case, fake_aws)) == [
        (
            'error: hyperpod.instance_groups[1].on_create: must be a script in lifecycle_scripts/, got "gpu.sh";'
            " write it, or name one of on_create_gpu.sh"
        )
    ]
    near = case_of(
        {
            "hyperpod.instance_groups[0].on_create": "on_create_gpus.sh",
            "hyperpod.instance_groups[1]": ...,
            "storage": ...,
            "task_governance": ...,
        },
        project=tmp_path,
    )
    assert said(run_check(STARTS, near, fake_aws)) == [
        (
            "error: hyperpod.instance_groups[0].on_create: must be a script in lifecycle_scripts/, got"
            ' "on_create_gpus.sh";'
            " did you mean on_create_gpu.sh?"
        )
    ]


def test_an_empty_folder(tmp_path: Path, case_of: Any, run_check: Any, fake_aws: FakeAws) -> None:
    (tmp_path / "lifecycle_scripts").mkdir()
    assert said(run_check(STARTS, case_of(project=tmp_path), fake_aws)) == [
        (
            "error: lifecycle_scripts: must hold a lifecycle script, got lifecycle_scripts, which is empty; add"
            " on_create.sh"
        )
    ]


def test_a_file_that_is_written_from_the_environment(run: Run) -> None:
    assert said(run(STARTS, GOOD, **{"environment.conf": "lustre=p5.48xlarge\n"})) == [
        (
            "error: lifecycle_scripts/environment.conf: must not be in the folder, since it is written from the"
            " environment; rename or remove it"
        )
    ]


@pytest.mark.parametrize(("mib", "messages"), [(63, 0), (64, 1)])
def test_size(run: Run, mib: int, messages: int) -> None:
    result = run(STARTS, GOOD, **{"data/model.bin": b"\1" * mib * 2**20})
    assert len(result.findings) == messages
    if messages:
        assert said(result) == [
            (
                "error: lifecycle_scripts: must hold at most 64 MiB, got 64.0 MiB in lifecycle_scripts;"
                " lifecycle_scripts/data/model.bin is the largest file: move it to an AMI or a container image"
            )
        ]


def test_what_every_node_downloads_is_reported(run: Run) -> None:
    (detail,) = run(STARTS, GOOD).details
    assert detail.text == "lifecycle_scripts/ has 1 file, 0.0 KiB; each new node downloads it"
    (detail,) = run(STARTS, GOOD, **{"steps/a.sh": GOOD}).details
    assert detail.text == "lifecycle_scripts/ has 2 files, 0.1 KiB; each new node downloads them all"
    assert detail.data == {"files": 2, "bytes": 2 * len(GOOD)}


@pytest.mark.check("lifecycle_scripts_are_bash", "fails")
def test_a_syntax_error_has_its_line(run: Run) -> None:
    result = run(
        PARSES,
        GOOD,
        **{"steps/10_disk.sh": "#!/bin/sh\nif true; then\n  echo\nfii\n", "x.py": "#!/usr/bin/python3\nif (\n"},
    )
    # bash 5.3 also says of which command the end is missing
    assert [each.replace(" from `if' command on line 2", "") for each in said(result)] == [
        (
            "error: lifecycle_scripts/steps/10_disk.sh:5: must be bash that 'bash -n' reads to its end, got"
            ' "syntax error: unexpected end of file"; fix the script at or above this line'
        )
    ]


@pytest.mark.check("lifecycle_scripts_are_bash", "skips")
def test_without_bash_nothing_is_claimed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    result = run(PARSES)
    assert result.status is Status.SKIPPED
    assert [each.reason for each in result.skipped] == [
        "there is no bash on this machine to read the scripts with 'bash -n'"
    ]
    assert run(STARTS).status is Status.PASSED


def test_reading_a_script_runs_nothing(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trap = tmp_path / "trap.sh"
    trap.write_text(f"touch {tmp_path}/sprung\n")
    monkeypatch.setenv("BASH_ENV", str(trap))
    assert said(run(PARSES, f"#!/bin/bash\ntouch {tmp_path}/sprung\n")) == []
    assert not (tmp_path / "sprung").exists()


@pytest.mark.check("lifecycle_scripts_find_what_they_call", "fails")
@pytest.mark.parametrize(
    "call",
    [
        'bash "$(dirname "$0")/main.sh"',
        'source "$(dirname "${BASH_SOURCE[0]}")/main.sh"',
        'here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"; . "$here/main.sh"',
        'DIR=$(dirname $0); sudo bash -x "${DIR}/main.sh" --verbose',
        "here=${BASH_SOURCE[0]%/*}; sh $here/main.sh",
        'here="$(cd "$(dirname "$0")/steps" && pwd)"; bash "$here/../main.sh"',
        "if ! bash main.sh; then exit 1; fi",
        "source ./main.sh",
    ],
)
def test_a_called_file_that_is_missing(run: Run, call: str) -> None:
    called = next(word for word in call.replace("; ", " ").split() if "main.sh" in word).strip('";')
    script = f"#!/bin/bash\n\n{call}\n"
    (finding,) = run(CALLS, script).findings
    assert (finding.file, finding.line) == ("lifecycle_scripts/on_create.sh", 3)
    assert finding.message.startswith("must find what it calls in lifecycle_scripts/, got ")
    assert called.removeprefix("$0")[-8:] in finding.message
    assert finding.message.endswith(", and there is no lifecycle_scripts/main.sh; add the file or remove the call")
    assert said(run(CALLS, script, **{"main.sh": GOOD})) == []


def test_the_whole_message_of_a_missing_file(run: Run) -> None:
    script = '#!/bin/bash\nhere="$(dirname "$0")"\nbash "$here/on_create_main.sh"\n'
    assert said(run(CALLS, script)) == [
        (
            "error: lifecycle_scripts/on_create.sh:3: must find what it calls in lifecycle_scripts/, got"
            ' "$here/on_create_main.sh", and there is no lifecycle_scripts/on_create_main.sh;'
            " add the file or remove the call"
        )
    ]


@pytest.mark.parametrize(
    "text",
    [
        'bash "$step"',
        'bash "$root/main.sh"',
        "bash /opt/main.sh",
        "bash -c 'main.sh'",
        "python3 -m main.sh",
        'here="$(dirname "$0")"; bash "$here/$name.sh"',
        'here="$(dirname "$0")"; [[ -f "$here/main.sh" ]] && bash "$here/main.sh"',
        'here="$(dirname "$0")"; cp /a "$here/main.sh"; bash "$here/main.sh"',
        "cat >main.sh <<EOF\nx\nEOF\nbash main.sh",
        "cd /opt/tool; ./main.sh",
        'here="$(dirname "$0")"; bash "$here/../../etc/main.sh"',
        "echo bash main.sh",
    ],
)
def test_what_the_text_does_not_name_is_left_alone(run: Run, text: str) -> None:
    assert said(run(CALLS, f"#!/bin/bash\n{text}\n")) == []


def test_s3_keeps_no_executable_bit(run: Run) -> None:
    script = '#!/bin/bash\nhere="$(dirname "$0")"\n"$here/main.sh" now\n'
    assert said(run(CALLS, script, **{"main.sh": GOOD})) == [
        (
            "warning: lifecycle_scripts/on_create.sh:3: should run lifecycle_scripts/main.sh through its"
            " interpreter, got"
            ' "$here/main.sh", which S3 leaves without its executable bit; write \'bash "$here/main.sh"\''
        )
    ]
    made = script.replace('"$here/main.sh" now', 'chmod +x "$here"/*.sh\n"$here/main.sh" now')
    assert said(run(CALLS, made, **{"main.sh": GOOD})) == []


@pytest.mark.check("lifecycle_scripts_download_nothing", "fails")
def test_downloads_warn_with_their_lines(run: Run) -> None:
    script = "#!/bin/bash\napt-get update && apt-get install -y jq\n# curl https://example.com\ngit clone https://x/y\n"
    result = run(DOWNLOADS, script)
    assert result.status is Status.WARNED
    assert said(result) == [
        (
            "warning: lifecycle_scripts/on_create.sh:2: downloads while the node boots (apt-get update, apt-get"
            " install); a"
            " node that is replaced later may get something else or nothing: put it into a custom AMI or a"
            " container image"
        ),
        (
            "warning: lifecycle_scripts/on_create.sh:4: downloads while the node boots (git clone of a branch); a"
            " node that"
            " is replaced later may get something else or nothing: put it into a custom AMI or a container image"
        ),
    ]


def test_a_closed_network_has_nothing_to_download_from(
    tmp_path: Path, case_of: Any, run_check: Any, fake_aws: FakeAws
) -> None:
    folder = tmp_path / "lifecycle_scripts"
    folder.mkdir()
    script = '#!/bin/bash\ndnf install -y jq\ncurl https://example.com/x && curl "$MIRROR/y"\n'
    (folder / "on_create.sh").write_text(script, encoding="utf-8")
    case = case_of({"network.nat_gateways": ..., "network.egress": "closed"}, project=tmp_path)
    assert said(run_check(DOWNLOADS, case, fake_aws)) == [
        (
            "warning: lifecycle_scripts/on_create.sh:2: downloads while the node boots (dnf install); a node that is"
            " replaced later may get something else or nothing: put it into a custom AMI or a container image"
        ),
        (
            "error: lifecycle_scripts/on_create.sh:3: must download nothing from the internet (curl, curl), which"
            " cannot be reached with network.egress: closed; put it into a custom AMI or a container image of ECR, or"
            " download it with 'aws s3 cp'"
        ),
    ]


@pytest.mark.check("lifecycle_scripts_hold_no_secret", "fails")
def test_a_secret_is_reported_and_never_shown(run: Run) -> None:
    token = "hf" + "_" + "AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh"
    result = run(
        SECRETS, f"#!/bin/bash\nexport HF_TOKEN={token}\n", **{"node/key.pem": "-----BEGIN " + "PRIVATE KEY-----\n"}
    )
    assert said(result) == [
        (
            "error: lifecycle_scripts/node/key.pem:1: must not contain a secret, got text that looks like a private"
            " key, readable in the bucket and on every node; remove and revoke it, and read it in the script from AWS"
            " Secrets Manager"
        ),
        (
            "error: lifecycle_scripts/on_create.sh:2: must not contain a secret, got text that looks like a Hugging"
            " Face"
            " token, readable in the bucket and on every node; remove and revoke it, and read it in the script from"
            " AWS Secrets Manager"
        ),
    ]
    assert token not in str(result)


@pytest.mark.check("lifecycle_scripts_are_bash", "skips")
@pytest.mark.check("lifecycle_scripts_find_what_they_call", "skips")
@pytest.mark.check("lifecycle_scripts_download_nothing", "skips")
@pytest.mark.parametrize("check", [PARSES, CALLS, DOWNLOADS])
def test_a_script_that_is_not_read(run: Run, check: str) -> None:
    longest = GOOD.encode().ljust(lifecycle_scripts.LARGEST_SCRIPT_KIB * 2**10, b"\n")
    assert run(check, longest).status is Status.PASSED
    result = run(check, longest + b"\n", **{"steps/a.sh": "echo\n"})
    assert (result.status, [each.reason for each in result.skipped]) == (
        Status.SKIPPED,
        [
            "lifecycle_scripts/on_create.sh was not read: it is larger than 512 KiB",
            "lifecycle_scripts/steps/a.sh was not read: lifecycle_scripts_can_start reports why a node cannot run it",
        ],
    )


@pytest.mark.parametrize("check", [PARSES, CALLS, DOWNLOADS])
def test_a_folder_without_a_script_of_bash(run: Run, check: str) -> None:
    assert run(check, "#!/usr/bin/python3\n").status is Status.NOT_NEEDED
    assert run(check, "#!/usr/bin/python3\n", **{"a.sh": GOOD}).status is Status.PASSED


@pytest.mark.check("lifecycle_scripts_hold_no_secret", "skips")
def test_a_large_file_is_not_searched(run: Run) -> None:
    large = b"x\n" * (lifecycle_scripts.LARGEST_TEXT_MIB * 2**19)
    assert run(SECRETS, GOOD, **{"a.txt": large}).status is Status.PASSED
    result = run(SECRETS, GOOD, **{"a.txt": large + b"x"})
    assert [each.reason for each in result.skipped] == [
        "lifecycle_scripts/a.txt is larger than 2 MiB, not searched for secrets"
    ]
    assert run(SECRETS, GOOD, **{"a.txt": b"\0" + large}).status is Status.PASSED
