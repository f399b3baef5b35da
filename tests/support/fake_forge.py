"""A forge for pipelines: runs the scripts of jobs as they stand in their YAML, and answers their calls to its API.

What a script runs is real, but for the tools that ``make setup`` would install: they stand in ``.venv/bin`` as small
programs. A job has the variables of AWS where it takes a role, and nowhere else. Of GitHub's expressions it knows those
that the workflows use; another one is an error of the test.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

PROJECT = Path(__file__).parents[2]
SCRIPTS = ("post_review.py", "deployed_tool.py")
COMMAND = Path(sys.executable).parent / "hyperpod-cdk"

APP = """\
import json, os, pathlib
context = json.loads(os.environ["CDK_CONTEXT_JSON"])
text = pathlib.Path(__file__).parent.joinpath("environments", f"{context['env']}.yaml").read_text()
settings = dict(line.split(": ", 1) for line in text.splitlines())
name = settings["name"]
properties = {"LogGroupName": settings["group"], "RetentionInDays": int(settings["days"])}
out = pathlib.Path(os.environ["CDK_OUTDIR"])
stage = out / f"assembly-{name}"
stage.mkdir(parents=True)
group = {"Type": "AWS::Logs::LogGroup", "Properties": properties}
(stage / "t.json").write_text(json.dumps({"Resources": {"Group": group}}))
stack = {"type": "aws:cloudformation:stack", "environment": "aws://111122223333/us-east-1",
         "properties": {"stackName": f"{name}-foundation", "templateFile": "t.json"}}
(stage / "manifest.json").write_text(json.dumps({"artifacts": {"x": stack}}))
nested = {"type": "cdk:cloud-assembly", "properties": {"directoryName": f"assembly-{name}", "displayName": name}}
(out / "manifest.json").write_text(json.dumps({"artifacts": {name: nested}}))
"""

CDK = f'''\
#!{sys.executable}
"""cdk synth and cdk deploy, as far as the pipelines use them."""
import json, os, pathlib, subprocess, sys
words = sys.argv[1:]
if words[0] == "synth":
    env = words[words.index("--context") + 1].removeprefix("env=")
    out = words[words.index("--output") + 1] if "--output" in words else "cdk.out"
    given = {{"CDK_CONTEXT_JSON": json.dumps({{"env": env}}), "CDK_OUTDIR": os.path.abspath(out)}}
    sys.exit(subprocess.run([sys.executable, "-IS", "app.py"], env={{**os.environ, **given}}).returncode)
folder = pathlib.Path(words[words.index("--app") + 1])
import boto3
client = boto3.client("cloudformation")
for template in folder.glob("assembly-*/t.json"):
    name = template.parent.name.removeprefix("assembly-") + "-foundation"
    try:
        client.create_stack(StackName=name, TemplateBody=template.read_text())
        client.get_waiter("stack_create_complete").wait(StackName=name, WaiterConfig={{"Delay": 1}})
    except client.exceptions.AlreadyExistsException:
        client.update_stack(StackName=name, TemplateBody=template.read_text())
        client.get_waiter("stack_update_complete").wait(StackName=name, WaiterConfig={{"Delay": 1}})
print("deployed")
'''

HYPERPOD = f"""\
#!/bin/sh
# what asks AWS for more than CloudFormation, or wants the real app, is another test's
case "$1 $2" in
  charts*|preflight*|templates*) exit 0 ;;
  "fleet hold") # as far as CloudFormation tells: what stands is what was assembled
    {COMMAND} review "$3" --project "$5" --deployed --head "$7/$3" --format json > hold.json
    exec grep -q '"level": "no change"' hold.json ;;
esac
exec {COMMAND} "$@"
"""

MAKEFILE = """\
setup:
\tmkdir -p .venv/bin
\tcp tools/* .venv/bin/
\tln -sf {python} .venv/bin/python
"""


class JobFailedError(Exception):
    """A job's script ended with an exit code other than 0; the message is its output."""

    def __init__(self, code: int, output: str) -> None:
        super().__init__(output)
        self.code = code


@dataclass
class Api:
    """Comments as both forges' APIs list, add, change and delete them; all are a bot's. And what was deployed.

    ``runs`` are GitHub's runs of deploy.yaml with their ``jobs``, ``deployments`` are GitLab's, both newest first.
    """

    comments: list[dict[str, Any]] = field(default_factory=list)
    runs: list[dict[str, Any]] = field(default_factory=list)
    deployments: list[dict[str, Any]] = field(default_factory=list)
    address: str = ""
    number: int = 0

    def deployed(self, commit: str, environment: str = "prod") -> None:
        """Record that a job deployed an environment."""
        jobs = [{"name": f"environment ({environment}) / deploy", "conclusion": "success"}]
        run = {"id": len(self.runs), "event": "push", "head_branch": "main", "head_sha": commit, "jobs": jobs}
        self.runs.insert(0, run)
        job = {
            "name": f"deploy: [{environment}]",
            "ref": "main",
            "tag": False,
            "status": "success",
            "commit": {"id": commit},
        }
        self.deployments.insert(0, {"ref": "main", "sha": commit, "deployable": job})

    def answer(self, path: str) -> Any:
        """Return the response to a GET of a path."""
        if "/actions/workflows/deploy.yaml/runs?" in path:
            return {"workflow_runs": self.runs}
        if jobs := re.search(r"/actions/runs/(\d+)/jobs\?", path):
            return {"jobs": next(run["jobs"] for run in self.runs if run["id"] == int(jobs[1]))}
        if "/deployments?" in path:
            return self.deployments
        if path.partition("?")[0].endswith(("/comments", "/notes")):
            page = re.search(r"[?&]page=(\d+)", path)
            return self.comments if page and page[1] == "1" else []
        return {"id": 9}


@contextmanager
def api() -> Iterator[Api]:
    """Yield the address of the forge's API on the loopback interface."""
    state = Api()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(state.answer(self.path))

        def do_POST(self) -> None:
            state.number += 1
            bot = {"id": 9, "type": "Bot"}
            state.comments.append({"id": state.number, "body": self._body(), "user": bot, "author": bot})
            self._answer(state.comments[-1])

        def do_PATCH(self) -> None:
            self._found()["body"] = self._body()
            self._answer({})

        do_PUT = do_PATCH  # noqa: N815 - as the base class wants it

        def do_DELETE(self) -> None:
            state.comments.remove(self._found())
            self.send_response(204)
            self.end_headers()

        def _found(self) -> dict[str, Any]:
            return next(each for each in state.comments if str(each["id"]) == self.path.rpartition("/")[2])

        def _body(self) -> str:
            return str(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"])

        def _answer(self, data: object) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(data).encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the base class names it
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        state.address = f"http://127.0.0.1:{server.server_port}"
        try:
            yield state
        finally:
            server.shutdown()
            thread.join()


@dataclass
class Repository:
    """The repository on the forge: ``main`` and the branches that a test creates."""

    folder: Path

    @classmethod
    def make(cls, folder: Path, environment: str) -> Repository:
        """Create a repository with an app, its tools and one environment."""
        folder.mkdir(parents=True)
        repository = cls(folder)
        repository.git("init", "-q", "-b", "main", "--template=")
        files = {
            "app.py": APP,
            "cdk.json": json.dumps({"app": "python -IS app.py"}),
            "Makefile": MAKEFILE.format(python=sys.executable),
            "tools/cdk": CDK,
            "tools/hyperpod-cdk": HYPERPOD,
            ".gitignore": ".venv/\n",
            **{f".ci/{name}": (PROJECT / ".ci" / name).read_text(encoding="utf-8") for name in SCRIPTS},
            "environments/prod.yaml": environment,
        }
        repository.commit(files)
        return repository

    def git(self, *arguments: str, folder: Path | None = None) -> str:
        """Run git in the repository, or in a clone of it."""
        identity = ("-c", "user.name=Dana", "-c", "user.email=dana@example.com", "-c", "advice.detachedHead=false")
        done = subprocess.run(
            ["git", *identity, *arguments],  # noqa: S607 - git is where PATH has it
            cwd=folder or self.folder,
            env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def commit(self, files: Mapping[str, str | None]) -> str:
        """Write files (None deletes one) and commit them to the branch that is checked out."""
        for name, text in files.items():
            file = self.folder / name
            if text is None:
                file.unlink()
                continue
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            if name.startswith("tools/"):
                file.chmod(0o755)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "more")
        return self.git("rev-parse", "HEAD")

    def branch(self, name: str, files: Mapping[str, str | None]) -> str:
        """Commit files to a branch from main and return the commit that merges it into main, as a forge tests it."""
        self.git("checkout", "-q", "main")
        self.git("checkout", "-q", "-B", name)
        self.commit(files)
        self.git("checkout", "-q", "-B", f"merge-{name}", "main")
        self.git("merge", "-q", "--no-ff", "-m", "merge", name)
        merged = self.git("rev-parse", "HEAD")
        self.git("checkout", "-q", "main")
        return merged

    def clone(self, folder: Path, commit: str) -> None:
        """Check a commit out, as a job begins."""
        self.git("clone", "-q", "--no-checkout", str(self.folder), str(folder))
        self.git("checkout", "-q", "--detach", commit, folder=folder)


@dataclass
class Run:
    """One run of pipelines: its repository, commit, variables, artifacts, and what each job gave to the next."""

    repository: Repository
    commit: str
    scratch: Path
    variables: dict[str, str]
    aws: dict[str, str] = field(default_factory=dict)
    matrix: dict[str, str] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    results: dict[str, str] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    number: int = 0

    @property
    def artifacts(self) -> Path:
        """Return the folder of artifacts, with a folder for each."""
        return self.scratch / "artifacts"

    def workspace(self) -> Path:
        """Return an empty folder for a job."""
        self.number += 1
        return self.scratch / f"job-{self.number}"

    def _document(self, name: str) -> Any:
        """Return a pipeline: the repository's own, or this project's if it has none."""
        own = self.repository.folder / name
        return yaml.safe_load((own if own.is_file() else PROJECT / name).read_text(encoding="utf-8"))

    def github(self, workflow: str, job: str, **more: str) -> str:
        """Run a job of a workflow as GitHub does; returns its result, ``skipped`` if its condition is false."""
        described = self._document(f".github/workflows/{workflow}")["jobs"][job]
        scope = _Scope(run=self, steps={}, workspace=self.workspace())
        condition = str(described.get("if", "success()"))
        needs = described.get("needs", [])
        failed = [name for name in ([needs] if isinstance(needs, str) else needs) if self.results[name] != "success"]
        if not scope.truth(condition) or (failed and "cancelled()" not in condition):
            self.results[job] = "skipped"
            return "skipped"
        scope.workspace.mkdir(parents=True)
        ok = True
        for step in described["steps"]:
            wanted = str(step.get("if", "success()"))
            if scope.truth(wanted) and (ok or "always()" in wanted):
                try:
                    self._step(scope, {**described.get("env", {}), **step.get("env", {})}, step, more)
                except JobFailedError as error:
                    self.said[job] = str(error)
                    ok = False
        self.outputs[job] = {key: scope.text(value) for key, value in described.get("outputs", {}).items()}
        self.results[job] = "success" if ok else "failure"
        return self.results[job]

    def _step(self, scope: _Scope, env: Mapping[str, str], step: Mapping[str, Any], more: Mapping[str, str]) -> None:
        given = {key: scope.text(value) for key, value in step.get("with", {}).items()}
        action = str(step.get("uses", "")).partition("@")[0]
        if action == "actions/checkout":
            shutil.rmtree(scope.workspace)
            self.repository.clone(scope.workspace, given.get("ref") or self.commit)
        elif action == "actions/upload-artifact":
            shutil.copytree(scope.workspace / given["path"], self.artifacts / given["name"], dirs_exist_ok=True)
            scope.steps[step.get("id", "")] = {"artifact-id": given["name"]}
        elif action == "actions/download-artifact":
            # a number is unique, which a name is here
            pattern = given.get("pattern") or given.get("artifact-ids") or given["name"]
            found = sorted(self.artifacts.glob(pattern))
            if "pattern" not in given and not found:
                raise JobFailedError(1, f"no artifact {pattern}")
            for folder in found:
                is_merged = "pattern" not in given or given.get("merge-multiple")
                target = scope.workspace / given["path"] / ("" if is_merged else folder.name)
                shutil.copytree(folder, target, dirs_exist_ok=True)
        elif action == "aws-actions/configure-aws-credentials":
            scope.variables |= self.aws
        elif action and action != "actions/setup-python":
            raise AssertionError(f"the fake forge does not know {action}")
        if "run" in step:
            output = scope.workspace.parent / f"{scope.workspace.name}.output"
            output.unlink(missing_ok=True)
            variables = {
                **self.variables,
                **scope.variables,
                **{key: scope.text(value) for key, value in env.items()},
                "GITHUB_OUTPUT": str(output),
                "GITHUB_STEP_SUMMARY": os.devnull,
                "RUNNER_TEMP": str(scope.workspace.parent),
                "GITHUB_SHA": self.commit,
                **more,
            }
            self.said[str(step.get("name") or step.get("id") or step["run"])] = _bash(
                step["run"], scope.workspace, variables
            )
            if output.is_file():
                lines = output.read_text(encoding="utf-8").splitlines()
                scope.steps[step.get("id", "")] = dict(line.split("=", 1) for line in lines)

    def gitlab(self, job: str, **more: str) -> int:
        """Run a job of GitLab's file; returns its exit code. Its artifacts are available to later jobs."""
        document = self._document(".gitlab-ci.yml")
        described: dict[str, Any] = {**document[job]}
        while extends := described.pop("extends", None):
            parent = document[extends]
            described = {**parent, **described}
            described["extends"] = parent.get("extends")
        workspace = self.workspace()
        self.repository.clone(workspace, self.commit)
        if self.artifacts.is_dir():
            shutil.copytree(self.artifacts, workspace, dirs_exist_ok=True)
        # GitLab flattens what an anchor brings, and a later line sees the variables of an earlier one
        lines = [line for item in described["script"] for line in (item if isinstance(item, list) else [item])]
        variables = {
            **{key: str(value) for key, value in described.get("variables", {}).items() if key != "AWS_ROLE_ARN"},
            **self.variables,
            **({**self.aws, "AWS_TOKEN": "x"} if "id_tokens" in described else {}),
            **self.matrix,
            **more,
        }
        variables["AWS_WEB_IDENTITY_TOKEN_FILE"] = str(self.scratch / "token")
        try:
            self.said[job] = _bash("\n".join(lines), workspace, variables)
        except JobFailedError as error:
            self.said[job] = str(error)
            return error.code
        finally:
            for stated in described.get("artifacts", {}).get("paths", []):
                path = stated.replace("$ENVIRONMENT", self.matrix.get("ENVIRONMENT", ""))
                if (workspace / path).is_dir():
                    shutil.copytree(workspace / path, self.artifacts / path, dirs_exist_ok=True)
        return 0


def _bash(script: str, folder: Path, variables: Mapping[str, str]) -> str:
    tools = folder.parent / "path"
    tools.mkdir(exist_ok=True)
    for name in ("sudo",):
        (tools / name).write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
        (tools / name).chmod(0o755)
    if not (tools / "python3").exists():
        (tools / "python3").symlink_to(sys.executable)
    done = subprocess.run(
        ["bash", "-e", "-c", script],  # noqa: S607 - bash is where PATH has it
        cwd=folder,
        env={"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder.parent), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise JobFailedError(done.returncode, done.stdout)
    return done.stdout


@dataclass
class _Scope:
    """What the expressions of one job see."""

    run: Run
    steps: dict[str, dict[str, str]]
    workspace: Path
    variables: dict[str, str] = field(default_factory=dict)

    def text(self, value: object) -> str:
        """Return a value with its ``${{ }}`` filled in."""
        return re.sub(r"\$\{\{(.*?)\}\}", lambda found: str(self._value(found[1])), str(value))

    def truth(self, expression: str) -> bool:
        """Return whether a condition holds."""
        return bool(self._value(expression.removeprefix("${{").removesuffix("}}")))

    def _value(self, expression: str) -> Any:
        # names become look-ups, operators Python's; strings stay
        tokens = re.findall(r"'[^']*'|&&|\|\||!=|==|!|[\w.-]+|[(),]|\S", expression)
        words = {"&&": " and ", "||": " or ", "!": " not "}
        functions = ("always", "cancelled", "success", "hashFiles", "format", "fromJSON")
        python = "".join(
            words.get(token)
            or (token if token in functions or not re.match(r"[A-Za-z]", token) else f"look({token!r})")
            for token in tokens
        )
        names = {
            "always": lambda: True,
            "cancelled": lambda: False,
            "success": lambda: True,
            "hashFiles": lambda pattern: "x" if list(self.workspace.glob(pattern)) else "",
            "format": lambda text, *given: text.format(*given),
            "fromJSON": json.loads,
            "look": self._look,
        }
        return eval(python.strip(), {"__builtins__": {}}, names)  # noqa: S307 - the project's own workflows

    def _look(self, path: str) -> Any:
        kind, _, rest = path.partition(".")
        if kind == "needs":
            job, _, what = rest.partition(".")
            if what == "result":
                return self.run.results[job]
            return self.run.outputs.get(job, {}).get(what.removeprefix("outputs."), "")
        if kind == "steps":
            step, _, what = rest.partition(".outputs.")
            return self.steps.get(step, {}).get(what, "")
        known = {
            **{f"matrix.{key}": value for key, value in self.run.matrix.items()},
            **{f"inputs.{key}": value for key, value in self.run.inputs.items()},
            "github.event.pull_request.head.repo.full_name": "acme/platform",
            "github.event.pull_request.number": "7",
            "github.event.before": "",
            "github.run_attempt": "1",
            "github.repository": "acme/platform",
            "github.token": "token",
        }
        return known[path] if path in known else self.run.variables[path]
