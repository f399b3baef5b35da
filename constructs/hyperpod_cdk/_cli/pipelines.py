"""The part of pipelines that is generated from ``fleet.yaml``: environments, waves, and the checks between waves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hyperpod_cdk._cli.project import SET_UP

if TYPE_CHECKING:
    from hyperpod_cdk.config.fleet import Fleet, Wave

GITHUB: Final = Path(".github/workflows/deploy.yaml")
GITLAB: Final = Path(".gitlab-ci.yml")

BEGIN: Final = "# begin of the waves: 'hyperpod-cdk fleet pipelines' writes them, from fleet.yaml where there is one"
END: Final = "# end of the waves"

_MAIN: Final = '$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH && $HYPERPOD_DEPLOY == "true"'


class PipelineError(Exception):
    """A file has no place for the waves; the message contains its name and the fix."""


def written(text: str, file: Path, fleet: Fleet | None, names: Sequence[str], *, is_clone: bool) -> str:
    """Return a pipeline's text with new waves; everything else is unchanged.

    ``names`` are all environments, which are one wave without a fleet; ``is_clone`` is whether the project has this
    repository's Makefile. Raises PipelineError unless each line that marks the place is there exactly once.
    """
    lines = text.split("\n")
    places = [[at for at, line in enumerate(lines) if line.strip() == mark] for mark in (BEGIN, END)]
    if any(len(each) != 1 for each in places) or places[0][0] > places[1][0]:
        raise PipelineError(
            f"{file.as_posix()}: must contain the lines {BEGIN!r} and {END!r}, once each and in this order, around the"
            " waves; copy them from a pipeline that 'hyperpod-cdk new DIR' writes"
        )
    (begin,), (end,) = places
    made = "\n".join(_github(fleet) if file == GITHUB else _gitlab(fleet, names))
    if not is_clone:
        made = made.replace("make setup", SET_UP)
    return "\n".join([*lines[: begin + 1], *made.split("\n"), *lines[end:]])


def oldest_first(fleet: Fleet) -> Iterator[str]:
    """Yield the command that makes GitLab finish one run before the next begins, which no file can configure.

    GitLab, "Resource groups", process modes: oldest_first includes jobs that are not created yet. Only the API sets
    it, with a token that jobs do not have.
    """
    yield "for GitLab to finish one run before the next, once, after the first run:"
    yield (
        f"  for name in {' '.join(fleet.environments)}; do glab api --method PUT"
        ' "projects/:id/resource_groups/deploy-$name" --field process_mode=oldest_first; done'
    )


def _github(fleet: Fleet | None) -> Iterator[str]:
    if fleet is None:
        yield _GITHUB_ALL
        return
    yield _GITHUB_JOBS
    before: Sequence[str] = ()
    for index, wave in enumerate(fleet.waves):
        needs = before
        if wave.approval:
            yield _GITHUB_APPROVAL.format(wave=wave.name, needs=_needs(before), condition=_CONDITION)
            needs = (f"approve-{wave.name}",)
        listed = ", ".join(wave.environments)
        yield _GITHUB_WAVE.format(wave=wave.name, needs=_needs(needs), environments=listed, condition=_CONDITION)
        if index + 1 == len(fleet.waves) and not wave.checks:
            return
        begins = f"wave-{wave.name}"
        if wave.soak_minutes:
            yield _GITHUB_SOAK.format(
                wave=wave.name, minutes=wave.soak_minutes, limit=wave.soak_minutes + 10, condition=_CONDITION
            )
            begins = f"soak-{wave.name}"
        for name in wave.environments:
            yield _GITHUB_HOLD.format(environment=name, begins=begins, wave=wave.name, condition=_CONDITION)
        before = tuple(f"hold-{name}" for name in wave.environments)


def _needs(jobs: Sequence[str]) -> str:
    return f"\n    needs: [{', '.join(jobs)}]" if jobs else ""


_CONDITION: Final = "vars.HYPERPOD_DEPLOY == 'true'"

_GITHUB_JOBS: Final = """\
# one run after the other: the next commit neither cuts a soak short nor begins it anew
concurrency:
  group: deploy
  cancel-in-progress: false

jobs:"""

_GITHUB_ALL: Final = """\
jobs:
  environments:
    if: vars.HYPERPOD_DEPLOY == 'true'
    runs-on: ubuntu-24.04
    timeout-minutes: 5
    permissions:
      contents: read
    outputs:
      names: ${{ steps.list.outputs.names }}
    steps:
      - uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1
        with:
          persist-credentials: false
      - id: list
        run: |
          names=$(git ls-tree --name-only HEAD environments/ | sed -n 's|^environments/\\(.*\\)\\.yaml$|\\1|p' |
            python3 -c 'import json, sys; print(json.dumps(sys.stdin.read().split()))')
          echo "names=$names" >> "$GITHUB_OUTPUT"

  environment:
    needs: environments
    if: needs.environments.outputs.names != '[]'
    strategy:
      fail-fast: false
      matrix:
        environment: ${{ fromJSON(needs.environments.outputs.names) }}
    permissions:
      contents: read
      actions: read
      id-token: write
    # from the review to the end of the deployment, so that what is deployed is compared with what then runs;
    # a deployment that has begun is never cancelled
    concurrency:
      group: deploy-${{ matrix.environment }}
      cancel-in-progress: false
    uses: ./.github/workflows/deploy-environment.yaml
    with:
      environment: ${{ matrix.environment }}"""

_GITHUB_APPROVAL: Final = """
  approve-{wave}:{needs}
    if: {condition}
    runs-on: ubuntu-24.04
    timeout-minutes: 5
    permissions: {{}}
    # this GitHub environment has required reviewers: they let the wave begin
    environment: wave-{wave}
    steps:
      - run: echo "approved\""""

_GITHUB_WAVE: Final = """
  wave-{wave}:{needs}
    if: {condition}
    # by this name the next run finds what was deployed
    name: environment (${{{{ matrix.environment }}}})
    strategy:
      fail-fast: false
      matrix:
        environment: [{environments}]
    permissions:
      contents: read
      actions: read
      id-token: write
    # from the review to the end of the deployment, so that what is deployed is compared with what then runs;
    # a deployment that has begun is never cancelled
    concurrency:
      group: deploy-${{{{ matrix.environment }}}}
      cancel-in-progress: false
    uses: ./.github/workflows/deploy-environment.yaml
    with:
      environment: ${{{{ matrix.environment }}}}"""

_GITHUB_SOAK: Final = """
  soak-{wave}:
    needs: wave-{wave}
    if: {condition}
    runs-on: ubuntu-24.04
    timeout-minutes: {limit}
    permissions: {{}}
    steps:
      - run: sleep {minutes}m"""

_GITHUB_HOLD: Final = """
  # names who judges, without a role, as in deploy-environment.yaml
  tool-{environment}:
    needs: wave-{wave}
    if: {condition}
    runs-on: ubuntu-24.04
    timeout-minutes: 10
    permissions:
      contents: read
      actions: read
    outputs:
      commit: ${{{{ steps.tool.outputs.commit }}}}
    steps:
      - uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1
        with:
          fetch-depth: 0
          persist-credentials: false
      - id: tool
        run: |
          git cat-file -e "${{BEFORE:-none}}:.ci/deployed_tool.py" 2> /dev/null || BEFORE="$GITHUB_SHA^1"
          git cat-file -e "$BEFORE:.ci/deployed_tool.py" 2> /dev/null || BEFORE=$GITHUB_SHA
          git cat-file blob "$BEFORE:.ci/deployed_tool.py" > "$RUNNER_TEMP/deployed_tool.py"
          python3 -I "$RUNNER_TEMP/deployed_tool.py" {environment} "$RUNNER_TEMP/tool.json"
          python3 -I -c 'import json, sys; print("commit=" + json.load(open(sys.argv[1]))["commit"])' \\
            "$RUNNER_TEMP/tool.json" >> "$GITHUB_OUTPUT"
        env:
          BEFORE: ${{{{ github.event.before }}}}
          GITHUB_TOKEN: ${{{{ github.token }}}}
          HYPERPOD_TOOL: ${{{{ vars.HYPERPOD_TOOL }}}}

  # the next wave begins where this one stands as it was deployed and its checks pass
  hold-{environment}:
    needs: [{begins}, tool-{environment}]
    if: {condition}
    runs-on: ubuntu-24.04
    timeout-minutes: 30
    permissions:
      contents: read
      id-token: write
    # gives vars.AWS_REVIEW_ROLE, which only reads; it waits for nobody
    environment: {environment}-review
    steps:
      - uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1
        with:
          fetch-depth: 0
          persist-credentials: false
      - uses: actions/setup-python@5fda3b95a4ea91299a34e894583c3862153e4b97 # v7.0.0
        with:
          python-version: "3.11"
      - name: take the tool of the last deployment
        run: |
          mkdir .head
          git ls-tree -r -z "$GITHUB_SHA" -- environments lifecycle_scripts fleet.yaml |
            while IFS= read -r -d "" entry; do
              read -r mode _ blob <<< "${{entry%%$'\\t'*}}"
              name=.head/${{entry#*$'\\t'}}
              case $mode in
                100644 | 100755) ;;
                *) echo "::error::a link among the files that are read could lead to any file of this machine"
                   exit 1 ;;
              esac
              mkdir -p "$(dirname "$name")"
              git cat-file blob "$blob" > "$name"
              chmod "${{mode#100}}" "$name"
            done
          git checkout --quiet --detach "$TOOL"
        env:
          TOOL: ${{{{ needs.tool-{environment}.outputs.commit }}}}
      # from here on no file of the commit at hand is run
      - run: make setup
      - uses: actions/download-artifact@3e5f45b2cfb9172054b4087a40e8e0b5a5461e7c # v8.0.1
        with:
          name: assembly-{environment}
          path: assemblies/{environment}
      - id: where
        run: |
          .venv/bin/python -I -c 'import sys, yaml
          print("region=" + yaml.safe_load(open(sys.argv[1]))["region"].split()[0])' \\
            .head/environments/{environment}.yaml >> "$GITHUB_OUTPUT"
      - uses: aws-actions/configure-aws-credentials@e6de054238d6b7531b4efff3b6587d9aade6a06c # v6.2.3
        with:
          role-to-assume: ${{{{ vars.AWS_REVIEW_ROLE }}}}
          aws-region: ${{{{ steps.where.outputs.region }}}}
      - name: hold
        run: .venv/bin/hyperpod-cdk fleet hold {environment} --project .head --heads assemblies"""


def _gitlab(fleet: Fleet | None, names: Sequence[str]) -> Iterator[str]:
    waves: Sequence[Wave] = fleet.waves if fleet else ()
    yield _GITLAB_ALL.format(name=".environments", environments=", ".join(names), needs="")
    first = waves[0] if waves else None
    needs = _after(first, "") if first and first.approval else ""
    listed = first.environments if first else names
    yield "\n# the wave that waits for no other"
    yield _GITLAB_ALL.format(name=".first-wave", environments=", ".join(listed), needs=needs)
    before, deploys = "", "deploy"
    for index, wave in enumerate(waves):
        if wave.approval:
            needs = f'["hold:{before}"]' if before else "[plan]"
            yield _GITLAB_APPROVAL.format(wave=wave.name, needs=needs, main=_MAIN)
        listed = wave.environments
        if index:
            deploys = f"deploy:{wave.name}"
            for job in ("deploy", "deploy-approved"):
                yield _GITLAB_WAVE.format(
                    job=job, wave=wave.name, environments=", ".join(listed), needs=_after(wave, before)
                )
        if index + 1 < len(waves) or wave.checks:
            when = f"\n      when: delayed\n      start_in: {wave.soak_minutes} minutes" if wave.soak_minutes else ""
            yield _GITLAB_HOLD.format(
                wave=wave.name, environments=", ".join(listed), deploys=deploys, main=_MAIN, when=when
            )
        before = wave.name


def _after(wave: Wave, before: str) -> str:
    holds = [f"approve:{wave.name}"] if wave.approval else [f"hold:{before}"]
    jobs = "".join(f'\n    - {{ job: "{each}", artifacts: false }}' for each in holds)
    return f"\n  needs:\n    - plan{jobs}"


_GITLAB_ALL: Final = """\
{name}:
  parallel:
    matrix:
      - ENVIRONMENT: [{environments}]{needs}"""

_GITLAB_APPROVAL: Final = """
# who may let the wave begin: those whom the protected environment names
approve:{wave}:
  stage: deploy
  needs: {needs}
  rules:
    - if: {main}
      when: manual
      allow_failure: false
  environment:
    name: wave-{wave}
    action: access
  script:
    - echo "approved\""""

_GITLAB_WAVE: Final = """
{job}:{wave}:
  extends: {job}
  parallel:
    matrix:
      - ENVIRONMENT: [{environments}]{needs}"""

_GITLAB_HOLD: Final = """
# red where something of the wave waits for deploy-approved: retry it when that is done
hold:{wave}:
  extends: .hold
  needs: [plan, "{deploys}"]
  parallel:
    matrix:
      - ENVIRONMENT: [{environments}]
  rules:
    - if: {main}{when}"""
