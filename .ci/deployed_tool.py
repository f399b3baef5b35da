"""Names the commit whose tool judges and deploys: the last one that was deployed, never the one to be deployed.

    python3 -I .ci/deployed_tool.py ENVIRONMENT FILE

Writes FILE (JSON): ``commit``; ``first``, whether nothing was deployed yet, so that the commit at hand judges itself;
``changed``, the files by which the commit at hand would judge and deploy the next time. With either, a person decides.
HYPERPOD_TOOL, a variable of the forge, names a commit in its place, and nothing that is merged changes that.

The forge says what was deployed, in a way that no job can write: on GitHub by the jobs of deploy.yaml's runs, on GitLab
by deployments that a job made. It counts where the commit was itself on the branch: the one at hand, its first parent,
that one's first parent. What was merged into it was not, and a tag called like the branch may have run it.
Runs with nothing but Python and git, from a clone with its history.

GitHub: GITHUB_API_URL, GITHUB_REPOSITORY, GITHUB_SHA, GITHUB_TOKEN (permission actions: read).
GitLab: CI_API_V4_URL, CI_PROJECT_ID, CI_COMMIT_SHA, CI_DEFAULT_BRANCH, CI_JOB_TOKEN.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

PAGE = 100
PAGES = 10
TIMEOUT_SECONDS = 30
COMMIT = re.compile(r"[0-9a-f]{40}")
BRANCH = "main"
EVENTS = ("push", "workflow_dispatch")

JUDGED = (
    *("environments", "synthesized", "lifecycle_scripts", "charts", "examples", "docs", "tests", "workloads"),
    *("review.yaml", "prices.json", "*.md"),
)
"""What the tool reads or does not read, and is not made of: everything else is the tool."""


class ToolError(Exception):
    """It cannot be told whose tool judges; the text is one line that says why."""


def deployed(environment: str, variables: Mapping[str, str]) -> Iterator[str]:
    """Give the commits that were deployed, newest first. Raises ToolError."""
    if "GITHUB_REPOSITORY" in variables:
        yield from _of_github(environment, variables)
    elif "CI_API_V4_URL" in variables:
        yield from _of_gitlab(environment, variables)
    else:
        raise ToolError("neither GITHUB_REPOSITORY nor CI_API_V4_URL is set: who knows what was deployed?")


def _of_github(environment: str, variables: Mapping[str, str]) -> Iterator[str]:
    api, repository, token = (
        variables.get(name, "") for name in ("GITHUB_API_URL", "GITHUB_REPOSITORY", "GITHUB_TOKEN")
    )
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
    actions = f"{api}/repos/{repository}/actions"
    runs = f"{actions}/workflows/deploy.yaml/runs?branch={BRANCH}&status=completed"
    for run in _pages(runs, headers, "workflow_runs"):
        if run.get("event") not in EVENTS or run.get("head_branch") != BRANCH:
            continue
        jobs = _pages(f"{actions}/runs/{run['id']}/jobs?filter=latest", headers, "jobs")
        name = f"environment ({environment}) / deploy"
        if any(job.get("name") == name and job.get("conclusion") == "success" for job in jobs):
            yield str(run.get("head_sha"))


def _of_gitlab(environment: str, variables: Mapping[str, str]) -> Iterator[str]:
    api, project, token = (variables.get(name, "") for name in ("CI_API_V4_URL", "CI_PROJECT_ID", "CI_JOB_TOKEN"))
    wanted = urllib.parse.urlencode({"environment": environment, "status": "success", "order_by": "id", "sort": "desc"})
    for each in _pages(f"{api}/projects/{project}/deployments?{wanted}", {"JOB-TOKEN": token}, None):
        # one that was made by a call to the API has no job, and says what its caller wants
        job = each.get("deployable") or {}
        if (
            each.get("ref") == job.get("ref") == variables.get("CI_DEFAULT_BRANCH")
            and job.get("tag") is False
            and job.get("status") == "success"
            and str(job.get("name", "")).partition(":")[0] in ("deploy", "deploy-approved")
            and (job.get("commit") or {}).get("id") == each.get("sha")
        ):
            yield str(each.get("sha"))


def chosen(environment: str, variables: Mapping[str, str]) -> dict[str, Any]:
    """Give what FILE says. Raises ToolError."""
    head = variables.get("GITHUB_SHA") or variables.get("CI_COMMIT_SHA") or ""
    if not COMMIT.fullmatch(head):
        raise ToolError("neither GITHUB_SHA nor CI_COMMIT_SHA names the commit at hand")
    if named := variables.get("HYPERPOD_TOOL"):
        if not COMMIT.fullmatch(named):
            raise ToolError(f"HYPERPOD_TOOL must be a whole commit (40 hexadecimal digits), got {named}")
        return {"commit": named, "first": False, "changed": []}
    own = set((_git("rev-list", "--first-parent", head) or "").split())
    if not own:
        raise ToolError(f"git does not show which commits the branch had before {head}")
    for commit in deployed(environment, variables):
        if commit in own:
            paths = (".", *(f":(exclude,top,glob){each}" for each in JUDGED))
            paths += tuple(f":(exclude,top,glob){each}/**" for each in JUDGED if "." not in each)
            said = _git("diff", "--name-only", "--no-renames", "-z", commit, head, "--", *paths)
            if said is None:
                raise ToolError(f"git does not show what changed from {commit} to {head}")
            return {"commit": commit, "first": False, "changed": [each for each in said.split("\0") if each]}
    return {"commit": head, "first": True, "changed": []}


def _git(*arguments: str) -> str | None:
    """Give what git prints, None where it ends with another code than 0."""
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)  # noqa: S607 - git is where PATH has it
    return done.stdout if done.returncode == 0 else None


def _pages(address: str, headers: Mapping[str, str], key: str | None) -> Iterator[dict[str, Any]]:
    for page in range(1, PAGES + 1):
        asked = f"{address}&per_page={PAGE}&page={page}"
        request = urllib.request.Request(asked, headers=dict(headers))  # noqa: S310 - the forge's own address
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310 - as above
                found = json.loads(answer.read())
        except urllib.error.HTTPError as error:
            raise ToolError(f"{asked}: {error.code} {error.reason}") from None
        except (OSError, ValueError) as error:
            raise ToolError(f"{asked}: {error}") from None
        items = found.get(key) if key is not None and isinstance(found, dict) else found
        if not isinstance(items, list):
            raise ToolError(f"{asked}: the answer is no list")
        yield from items
        if len(items) < PAGE:
            return


def main(arguments: list[str]) -> int:
    """Run the script; 0 where FILE is written, 1 where it cannot be told, 2 for a wrong call."""
    if len(arguments) != 2:
        print("usage: deployed_tool.py ENVIRONMENT FILE", file=sys.stderr)
        return 2
    try:
        found = chosen(arguments[0], os.environ)
    except ToolError as error:
        print(error, file=sys.stderr)
        return 1
    Path(arguments[1]).write_text(json.dumps(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
