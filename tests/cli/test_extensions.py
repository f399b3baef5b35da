"""What a project adds takes effect in every verb; what is wrong with it is said as the project's own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hyperpod_cdk.config import Extension
from hyperpod_cdk.config.extensions import ExtensionError, activate, active
from hyperpod_cdk.findings import Severity
from hyperpod_cdk.templates.assembly import Assembly
from hyperpod_cdk.templates.rules import Rule
from hyperpod_cdk.templates.rules.pack import problems

Run = Callable[..., subprocess.CompletedProcess[str]]
REFUSED = "pyproject.toml: [tool.hyperpod-cdk.extensions]"
PAGE = (Path(__file__).parents[2] / "docs" / "extending.md").read_text(encoding="utf-8")
TABLE, SECOND = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
CODE, JOBS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
(STEP,) = re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
(SECTION,) = re.findall(r"```yaml\n# environments/prod\.yaml\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(autouse=True)
def _no_extension_stays(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    yield
    activate(tmp_path_factory.mktemp("none"))


@pytest.fixture
def demo(run: Run, workspace: Path) -> Path:
    """A project with the extension of the page."""
    run("new", "demo")
    folder = workspace / "demo"
    with (folder / "pyproject.toml").open("a", encoding="utf-8") as stream:
        stream.write(f"\n{TABLE}{SECOND}")
    (folder / "ours.py").write_text(CODE, encoding="utf-8")
    (folder / "ours_jobs.py").write_text(JOBS, encoding="utf-8")
    (folder / "60_our_certificate.sh").write_text(STEP, encoding="utf-8")
    return folder


def state(demo: Path, section: str) -> int:
    """Write a section at the end of the environment file and give its line."""
    file = demo / "environments" / "prod.yaml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text + section, encoding="utf-8")
    return len(text.splitlines()) + 1


def synthesize(demo: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "app.py"],
        cwd=demo,
        env={**os.environ, "CDK_OUTDIR": str(demo / "cdk.out")},
        capture_output=True,
        text=True,
        check=False,
    )


def test_no_part_is_longer_than_thirty_lines() -> None:
    parts = re.split(r"\n\n\n", f"{CODE}\n\n\n{JOBS}\n\n\n{STEP}")
    assert max(len(part.splitlines()) for part in parts) <= 30


def test_its_section_is_validated(run: Run, demo: Path) -> None:
    line = state(demo, SECTION)
    assert run("validate", "prod", cwd=demo).returncode == 0
    (demo / "environments" / "prod.yaml").write_text(
        (demo / "environments" / "prod.yaml").read_text(encoding="utf-8").replace("name: /ours", "nane: /ours"), "utf-8"
    )
    done = run("validate", "prod", cwd=demo)
    assert done.returncode == 1
    assert f"environments/prod.yaml:{line} results.nane: " in done.stdout
    assert "did you mean name?" in done.stdout


def test_a_deprecated_field_of_its_section_warns_where_it_is_stated(run: Run, demo: Path) -> None:
    old = (
        "    class Old(Section):\n"
        '        days: int = Field(default=1, deprecated="write kept_days; it ends with 2.0", description="Days.")\n\n'
        "    kept: Old | None = Field(default=None, description='How long.')\n"
        "    others: list[Old] = Field(default=[], description='Others.')\n"
        "    by_name: dict[str, Old] = Field(default={}, description='Others.')\n"
    )
    before = "    name: str = Field("
    (demo / "ours.py").write_text(CODE.replace(before, old + before, 1), encoding="utf-8")
    line = state(demo, SECTION)
    assert "deprecated" not in run("validate", "prod", cwd=demo).stdout
    stated = SECTION.replace(
        "name: /ours/results",
        "name: /ours/results, kept: {days: 1}, others: [{}, {days: 2}], by_name: {a: {days: 3}}",
    )
    file = demo / "environments" / "prod.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace(SECTION, stated), encoding="utf-8")
    done = run("validate", "prod", cwd=demo)
    assert done.returncode == 0, done.stdout
    said = [each for each in done.stdout.splitlines() if "deprecated" in each]
    assert said == [
        f"warning environments/prod.yaml:{line} results.{place}: is deprecated; write kept_days; it ends with 2.0"
        for place in ("by_name.a.days", "kept.days", "others[1].days")
    ]
    assert '"deprecated": true' in run("schema", cwd=demo).stdout


def test_it_is_in_the_schema(run: Run, demo: Path) -> None:
    schema = json.loads(run("schema", cwd=demo).stdout)
    assert schema["properties"]["results"]["description"] == "A log group for what our jobs write."
    assert schema["$defs"]["Results"]["additionalProperties"] is False


def test_without_the_extension_its_section_is_unknown(run: Run, demo: Path) -> None:
    line = state(demo, SECTION)
    (demo / "pyproject.toml").unlink()
    done = run("validate", "prod", cwd=demo)
    assert done.returncode == 1
    assert f"environments/prod.yaml:{line} results: " in done.stdout


def test_its_check_runs_in_preflight(run: Run, demo: Path) -> None:
    line = state(demo, SECTION.replace("/ours", "/theirs"))
    done = run("preflight", "prod", "--offline", "--only", "results", cwd=demo)
    assert done.returncode == 1
    assert (
        f'environments/prod.yaml:{line} results.name: must begin with /ours/, got "/theirs/results"; set name:'
        " /ours/theirs/results"
    ) in done.stdout


def test_files_of_another_commit_are_judged_by_the_extensions_of_who_judges(run: Run, demo: Path) -> None:
    state(demo, SECTION.replace("/ours", "/theirs"))
    (demo / ".head").mkdir()
    (demo / "environments").rename(demo / ".head" / "environments")
    (demo / "environments").mkdir()
    done = run("preflight", "prod", "--project", ".head", "--offline", "--only", "results", cwd=demo)
    assert done.returncode == 1
    assert "results.name: must begin with /ours/" in done.stdout


JOB = "kind: evaluation\ngroup: h100\nname: nightly\nimage: registry.example.com/evaluation:1\ncommand: [--fast]\n"


def test_its_kind_of_job_is_rendered(run: Run, demo: Path) -> None:
    (demo / "job.yaml").write_text(JOB, encoding="utf-8")
    done = run("job", "render", "prod", "--job", "job.yaml", "--format", "json", cwd=demo)
    assert done.returncode == 0, done.stderr
    (manifest,) = json.loads(done.stdout)["manifests"]
    assert (manifest["kind"], manifest["metadata"]["name"]) == ("Job", "nightly")
    (container,) = manifest["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["evaluate", "--fast"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 32}


def test_its_kind_of_job_is_in_the_schema(run: Run, demo: Path) -> None:
    words = json.dumps(json.loads(run("schema", "--of", "job", cwd=demo).stdout)["properties"]["kind"])
    assert '"evaluation"' in words
    assert '"nccl"' in words


def test_its_kind_of_job_says_what_training_says(run: Run, demo: Path) -> None:
    (demo / "job.yaml").write_text("kind: evaluation\ngroup: h100\nelastic: { min_nodes: 1, max_nodes: 2 }\n", "utf-8")
    done = run("job", "render", "prod", "--job", "job.yaml", cwd=demo)
    assert done.returncode == 1
    assert [line.partition(": ")[0] for line in done.stderr.splitlines() if line.startswith("job.yaml")] == [
        "job.yaml:1 image",
        "job.yaml:1 name",
        "job.yaml:3 elastic",
    ]


@pytest.mark.parametrize("kind", ["nccl", "Our_Kind"])
def test_a_kind_of_job_that_cannot_be(run: Run, demo: Path, kind: str) -> None:
    (demo / "ours_jobs.py").write_text(JOBS.replace('"evaluation": ev', f'"{kind}": ev'), encoding="utf-8")
    (demo / "job.yaml").write_text(JOB, encoding="utf-8")
    done = run("job", "render", "prod", "--job", "job.yaml", cwd=demo)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "the extension evaluation: job_kinds: must be words of lower-case letters, digits and - that are not a kind"
        f" yet, got '{kind}'; rename it"
    )


def test_its_lifecycle_step_is_read_by_preflight(run: Run, demo: Path) -> None:
    preflight = ("preflight", "prod", "--offline", "--only", "lifecycle-scripts")
    assert run(*preflight, cwd=demo).returncode == 0
    (demo / "60_our_certificate.sh").write_bytes(STEP.replace("\n", "\r\n").encode())
    done = run(*preflight, cwd=demo)
    assert done.returncode == 1
    assert "60_our_certificate.sh:1: must end its lines with LF, got CR LF" in done.stdout
    (demo / "60_our_certificate.sh").write_text(f"{STEP}if\n", encoding="utf-8")
    done = run(*preflight, cwd=demo)
    assert done.returncode == 1
    assert "60_our_certificate.sh:" in done.stdout
    assert "must be bash that 'bash -n' reads to its end" in done.stdout


@pytest.mark.examples
def test_its_step_and_its_section_come_with_the_assembly(demo: Path) -> None:
    done = synthesize(demo)
    assert done.returncode == 0, done.stderr
    assert len(list((demo / "cdk.out").glob("asset.*/steps/60_our_certificate.sh"))) == 1
    shown = json.loads((demo / "cdk.out" / "hyperpod-cdk.review.json").read_text(encoding="utf-8"))["prod"]
    assert shown["evaluation"]["says"] == "How long the logs of the environment are kept, in days."
    assert shown["evaluation"]["rows"]["prod-foundation / Network/FlowLogGroup"] == "90"
    (demo / "60_our_certificate.sh").rename(demo / "certificate.sh")
    done = synthesize(demo)
    assert done.returncode == 1
    assert "60_our_certificate.sh is a lifecycle step that is not there; write it, or name another file" in done.stderr


@pytest.mark.examples
def test_its_construct_and_its_rule_take_effect(demo: Path) -> None:
    state(demo, SECTION)
    done = synthesize(demo)
    assert done.returncode == 0, done.stderr
    template = next((demo / "cdk.out").glob("assembly-prod/*foundation*.template.json")).read_text(encoding="utf-8")
    assert '"/ours/results"' in template
    code = (demo / "ours.py").read_text(encoding="utf-8").replace("ONE_YEAR", "ONE_MONTH")
    (demo / "ours.py").write_text(code, encoding="utf-8")
    done = synthesize(demo)
    assert done.returncode == 1
    assert "ours-kept-a-year" in done.stdout + done.stderr


@pytest.mark.parametrize(
    "part",
    [
        "checks",
        "module",
        pytest.param("constructs", marks=pytest.mark.examples),
        pytest.param("rules", marks=pytest.mark.examples),
        "job_kinds",
        pytest.param("review", marks=pytest.mark.examples),
    ],
)
def test_one_that_raises_is_named_with_its_traceback(run: Run, demo: Path, part: str) -> None:
    state(demo, SECTION)
    first = {
        "constructs": "    from aws_cdk import aws_logs as logs\n",
        "checks": "    results = section_of(",
        "rules": '    for group in context.of_type("',
        "module": "KEPT = Rule(",
        "job_kinds": "    spec = pod_spec(",
        "review": "    groups = context",
    }[part]
    file, code = ("ours.py", CODE) if first in CODE else ("ours_jobs.py", JOBS)
    indent = first[: len(first) - len(first.lstrip())]
    (demo / file).write_text(code.replace(first, f'{indent}raise LookupError("no such thing")\n{first}'), "utf-8")
    (demo / "job.yaml").write_text(JOB, encoding="utf-8")
    verbs = {
        "checks": ("preflight", "prod", "--offline"),
        "module": ("preflight", "prod", "--offline"),
        "job_kinds": ("job", "render", "prod", "--job", "job.yaml"),
    }
    done = run(*verbs[part], cwd=demo) if part in verbs else synthesize(demo)
    assert done.returncode == 2
    assert f'{file}", line ' in done.stderr
    name = "results" if file == "ours.py" else "evaluation"
    assert done.stderr.endswith(
        f"LookupError: no such thing\nthe extension {name} of pyproject.toml raised this, not hyperpod-cdk\n"
    )


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (
            'network = "ours:RESULTS"',
            (
                f"{REFUSED} network: must be lower-case letters, digits and _, the name of a section that environment"
                " files do not have yet, got a section of hyperpod-cdk's own; rename it"
            ),
        ),
        (
            'results = "ours.py"',
            (
                f"{REFUSED} results: must be a module and the name of an Extension in it, got 'ours.py'; write results"
                ' = "ours:RESULTS"'
            ),
        ),
        (
            'results = "ours:KEPT"',
            f'{REFUSED} results: ours:KEPT: must be an Extension, got Rule; write results = "ours:RESULTS"',
        ),
        (
            'results = "ours:RESULT"',
            (
                f"{REFUSED} results: ours:RESULT: must be an Extension, ours has no such name; write results ="
                ' "ours:RESULTS"'
            ),
        ),
        (
            'results = "our:RESULTS"',
            f"{REFUSED} results: our:RESULTS: no module our in DEMO and none is installed; did you mean ours?",
        ),
        (
            'results = "reports.daily:RESULTS"',
            (
                f"{REFUSED} results: reports.daily:RESULTS: no module reports in DEMO and none is installed; write"
                " reports.py there, or correct the name"
            ),
        ),
        (
            'results = "ours.sub:RESULTS"',
            (
                f"{REFUSED} results: ours.sub:RESULTS: no module ours.sub in DEMO and none is installed; did you mean"
                " ours?"
            ),
        ),
    ],
)
def test_a_table_that_names_none(run: Run, demo: Path, table: str, said: str) -> None:
    name_in_place(demo, table)
    done = run("validate", "prod", cwd=demo)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{said}\n".replace("DEMO", str(demo)))


WRONG_PARTS = [
    ("constructs=5", "constructs must be a function of the stage and of the section, got 5; write constructs=NAME"),
    (
        "checks=print",
        (
            "checks must be a list of functions of the case and of AWS, or of checks.model.Check, got <built-in"
            " function print>; write checks=[NAME]"
        ),
    ),
    (
        "checks=[5]",
        (
            "checks must be a list of functions of the case and of AWS, or of checks.model.Check, got [5]; write"
            " checks=[NAME]"
        ),
    ),
    ("rules=[5]", "rules must be a list of templates.rules.Rule, got [5]; write rules=[NAME]"),
    ("review={}", "review must be a function of the finished templates, got {}; write review=NAME"),
    (
        "job_kinds=['a']",
        (
            "job_kinds must be a map from the kind to a function of the plan, got ['a']; write"
            ' job_kinds={"evaluation": NAME}'
        ),
    ),
    (
        "lifecycle_steps='60_ours.sh'",
        (
            "lifecycle_steps must be a list of files, got '60_ours.sh'; write"
            ' lifecycle_steps=[Path(__file__).parent / "60_ours.sh"]'
        ),
    ),
]


def own_module(demo: Path, code: str) -> None:
    """Make ``wrong``, whose module is ``code``, the only extension."""
    (demo / "wrong.py").write_text(f"from hyperpod_cdk.config import Extension, Section\n{code}\n", encoding="utf-8")
    file = demo / "pyproject.toml"
    text = file.read_text(encoding="utf-8").replace(TABLE, "").replace(SECOND, "")
    file.write_text(f'{text}\n[tool.hyperpod-cdk.extensions]\nwrong = "wrong:WRONG"\n', encoding="utf-8")


@pytest.mark.parametrize(("part", "said"), WRONG_PARTS, ids=[part for part, _ in WRONG_PARTS])
def test_a_part_of_an_unknown_kind(run: Run, demo: Path, part: str, said: str) -> None:
    own_module(demo, f"WRONG = Extension({part})")
    done = run("validate", "prod", cwd=demo)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"the extension wrong: {said}\n")


GIVES = [
    ("yield 'all is well'", "TypeError: a check must give error(...), warning(...), Skipped(...) or Detail(...)"),
    ("return None", "TypeError: 'NoneType' object is not iterable"),
    ("raise SystemExit(0)", "SystemExit: 0"),
]


@pytest.mark.parametrize(("code", "said"), GIVES)
def test_a_check_that_gives_no_findings_has_not_passed(run: Run, demo: Path, code: str, said: str) -> None:
    own_module(demo, f"def looks(case, aws):\n    {code}\n\n\nWRONG = Extension(checks=[looks])")
    done = run("preflight", "prod", "--offline", "--only", "wrong", "--format", "json", cwd=demo)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.endswith("the extension wrong of pyproject.toml raised this, not hyperpod-cdk\n")


def test_one_that_ends_the_process_is_named(run: Run, demo: Path) -> None:
    own_module(demo, "raise SystemExit(0)")
    done = run("validate", "prod", cwd=demo)
    assert done.returncode == 2
    assert done.stderr.endswith("SystemExit: 0\nthe extension wrong of pyproject.toml raised this, not hyperpod-cdk\n")


def test_what_it_prints_does_not_stand_in_the_answer(run: Run, demo: Path) -> None:
    own_module(
        demo,
        "print('imported')\n\n\ndef looks(case, aws):\n    print('looked')\n    return []\n\n\n"
        "WRONG = Extension(checks=[looks])",
    )
    done = run("preflight", "prod", "--offline", "--only", "wrong", "--format", "json", cwd=demo)
    assert done.returncode == 0
    assert json.loads(done.stdout)["counts"]["passed"] == 1
    assert [line for line in done.stderr.splitlines() if "warning" not in line] == ["imported", "looked"]


def test_what_others_print_meanwhile_stays_in_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    """Checks run side by side."""
    both = threading.Barrier(2)

    def theirs() -> None:
        with Extension(name="wrong").blamed():
            both.wait()
            print("theirs")
            both.wait()

    with ThreadPoolExecutor() as pool:
        running = pool.submit(theirs)
        both.wait()
        print("ours")
        both.wait()
        running.result()
    print("ours, after it")
    assert capsys.readouterr() == ("ours\nours, after it\n", "theirs\n")


def test_a_validator_of_its_section(run: Run, demo: Path) -> None:
    own_module(
        demo,
        "from pydantic import field_validator\n\n\nclass Wrong(Section):\n    days: int\n\n"
        "    @field_validator('days')\n    def whole(cls, days: int) -> int:\n        if days == 1:\n"
        "            raise LookupError('no such thing')\n        raise ValueError('must be 2')\n\n\n"
        "WRONG = Extension(section=Wrong)",
    )
    state(demo, "wrong: {days: 1}\n")
    done = run("validate", "prod", cwd=demo)
    assert done.returncode == 2
    assert done.stderr.endswith(
        "LookupError: no such thing\nthe extension wrong of pyproject.toml raised this, not hyperpod-cdk\n"
    )


OWN_FIELDS = """
from datetime import date
from pydantic import Field, field_validator


class Wrong(Section):
    name: str = Field(default="a", pattern="^[a-z]+$")
    days: int = Field(default=1, ge=1)
    until: date | None = Field(default=None, strict=False)
    places: list[str] = Field(default=[], max_length=1)
    odd: int = 1

    @field_validator("odd")
    @classmethod
    def is_odd(cls, odd: int) -> int:
        if odd % 2 == 0:
            raise ValueError(f"must be odd, got {odd}; write {odd + 1}")
        return odd


WRONG = Extension(section=Wrong)
"""
OWN_VALUES = [
    ("until: '2026-12-01'", ""),
    (
        "until: 2026-12-01",
        'until: must be a valid date, got 2026-12-01, which YAML reads as a date; write until: "2026-12-01"',
    ),
    ("name: A", """name: must match pattern '^[a-z]+$', got "A"; change name"""),
    ("days: 0", "days: must be greater than or equal to 1, got 0; change days"),
    ("days: a", 'days: must be a whole number, got "a"; write digits after days:'),
    ("until: soon", 'until: must be a valid date or datetime, input is too short, got "soon"; change until'),
    ("places: a", 'places: must be a valid list, got "a"; change places'),
    ("places: [1]", "places[0]: must be a valid string, got 1; change places[0]"),
    ("places: [a, b]", "places: must have at most 1 item after validation, not 2, got a list; change places"),
    ("odd: 2", "odd: must be odd, got 2; write 3"),
]


@pytest.mark.parametrize(("stated", "said"), OWN_VALUES, ids=[stated for stated, _ in OWN_VALUES])
def test_a_value_that_its_section_does_not_take(run: Run, demo: Path, stated: str, said: str) -> None:
    own_module(demo, OWN_FIELDS)
    line = state(demo, f"wrong: {{{stated}}}\n")
    done = run("validate", "prod", cwd=demo)
    found = [
        each for each in done.stdout.splitlines() if each.startswith("environments/prod.yaml:") and "wrong" in each
    ]
    assert found == [f"environments/prod.yaml:{line} wrong.{said}"] * bool(said)
    assert done.returncode == bool(said)


def test_a_step_that_is_not_there(run: Run, demo: Path) -> None:
    own_module(demo, "WRONG = Extension(lifecycle_steps=['61_ours.sh'])")
    done = run("preflight", "prod", "--offline", "--only", "lifecycle-scripts", cwd=demo)
    assert done.returncode == 1
    assert "61_ours.sh: is a lifecycle step that is not there; write it, or name another file" in done.stdout


def test_a_rule_that_gives_no_place_and_one_of_a_name_that_is_taken(demo: Path) -> None:
    assembly = Assembly(environment="prod", stacks=())
    own_module(demo, "RULES = []\nWRONG = Extension(rules=RULES)")
    activate(demo)
    rules = active()[0].rules
    assert isinstance(rules, list)
    for name, given, said in (
        ("ours", ["bad"], "a rule must yield Spot(...) for each place, got 'bad'"),
        ("node-recovery", [], "the ID node-recovery is that of a rule of hyperpod-cdk; use another one"),
    ):
        rule = Rule(
            id=name,
            severity=Severity.ERROR,
            reason="r",
            source="s",
            fix="f",
            check=lambda _, given=given: iter(given),  # type: ignore[misc]
        )
        rules[:] = [rule]
        with pytest.raises(ExtensionError) as caught:
            problems(assembly)
        assert said in str(caught.value)


@pytest.mark.examples
def test_an_app_that_is_named_for_an_extension(run_process: Run, demo: Path) -> None:
    """As processes: whatever refuses a table ends an app as it ends the command, and an app is not run by itself."""
    name_in_place(demo, 'results = "app:RESULTS"')
    said = (
        f"{REFUSED} results: app:RESULTS: must be an Extension, app has no such name; write RESULTS ="
        " Extension(...) in app\n"
    )
    for done in (run_process("validate", "prod", cwd=demo), synthesize(demo)):
        assert (done.returncode, done.stdout, done.stderr) == (2, "", said)


def name_in_place(demo: Path, table: str) -> None:
    """Let the project's table name another extension in place of results."""
    text = (demo / "pyproject.toml").read_text(encoding="utf-8")
    (demo / "pyproject.toml").write_text(text.replace('results = "ours:RESULTS"', table), encoding="utf-8")


def test_what_a_module_imports_in_vain_is_its_own_mistake(run: Run, demo: Path) -> None:
    (demo / "ours.py").write_text("import nowhere\n", encoding="utf-8")
    done = run("validate", "prod", cwd=demo)
    assert (done.returncode, done.stderr) == (
        2,
        (
            "Traceback (most recent call last):\n"
            f'  File "{demo / "ours.py"}", line 1, in <module>\n    import nowhere\n'
            "ModuleNotFoundError: No module named 'nowhere'\n"
            "the extension results of pyproject.toml raised this, not hyperpod-cdk\n"
        ),
    )


def test_verbs_that_judge_strangers_run_no_code_of_theirs(run: Run, demo: Path) -> None:
    state(demo, SECTION)
    (demo / "ours.py").write_text("raise SystemExit('run')", encoding="utf-8")
    done = run("review", "prod", "--base", "nowhere", cwd=demo)
    assert done.returncode == 2
    assert "run" not in done.stderr.split()


@pytest.mark.examples
def test_it_is_reviewed_and_rehearsed(run: Run, demo: Path, project: Path) -> None:
    (demo / "node_modules").symlink_to(project / "node_modules")
    git = ["git", "-c", "user.name=Dana", "-c", "user.email=dana@example.com"]
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "First"]):
        subprocess.run([*git, *words], cwd=demo, check=True)
    state(demo, SECTION)
    done = run("review", "prod", "--base", "main", cwd=demo)
    assert "/ours/results" in done.stdout or "Results" in done.stdout, done.stdout + done.stderr
    assert "How long the logs of the environment are kept, in days. 1 of " in done.stdout
    done = run("rehearse", "prod", cwd=demo)
    assert done.returncode == 0, done.stdout + done.stderr
