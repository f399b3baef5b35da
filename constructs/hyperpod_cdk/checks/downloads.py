"""Which commands of a script download something, and whether a repeated download gets the same content."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import urlsplit

from hyperpod_cdk.checks.bash_commands import Command

# a branch or an alias instead of a release or a commit
_MOVING = re.compile(r"(?:^|[/@:=])(main|master|HEAD|develop|latest|nightly|stable)(?=$|[/.?&#])")
_OF_THIS_NODE = frozenset({"localhost", "127.0.0.1", "::1", "169.254.169.254", "fd00:ec2::254"})
_OF_AWS = re.compile(r"(?:^|[./@])amazonaws\.com(?:\.cn)?(?:[:/]|$)")
_OF_AMAZON_LINUX = frozenset({"yum", "dnf", "microdnf", "amazon-linux-extras"})
_TAKES_SOURCES = frozenset({"pip", "pip3", "uv", "python", "python3", "npm", "helm", "conda", "mamba", "micromamba"})
_SOURCES = frozenset({"-i", "-f", "-c", "--index-url", "--find-links", "--registry", "--repo", "--channel"})
_COMMIT = re.compile(r"^[0-9a-f]{7,64}$")
_RELEASE = re.compile(r"^v?\d+(?:\.\d+)+")
_VERSIONED = re.compile(r"[=<>~]=|==|@ |\.whl$|-[0-9]")


def download(command: Command) -> str:
    """Say in a few words what a command downloads, as ``git clone of a branch``, or give nothing."""
    teller = _TELLERS.get(command.name)
    return teller(command) if teller else ""


def leaves_the_network(command: Command) -> bool:
    """Return whether a download certainly needs a host on the internet.

    False if a variable or an option names the source, for hosts of AWS, which may have endpoints, and for
    the package managers of Amazon Linux, whose repositories are in S3.
    """
    if command.name in _OF_AMAZON_LINUX:
        return False
    names_source = command.name in _TAKES_SOURCES and any(
        word.partition("=")[0] in _SOURCES for word in command.arguments
    )
    return not names_source and not any("$" in word or _OF_AWS.search(word) for word in command.arguments)


def _fetch(command: Command) -> str:
    urls = [word for word in command.arguments if "://" in word or "$" in word]
    urls = urls or [word for word in command.arguments if "." in word and not word.startswith("-")]
    if not urls or all(_is_of_this_node(url) for url in urls):
        return ""
    return _moving(command.name, urls)


def _git(command: Command) -> str:
    verb, rest = _verb(command.arguments, with_value={"-C", "-c", "--git-dir", "--work-tree"})
    if verb not in {"clone", "pull", "fetch", "submodule"}:
        return ""
    if verb != "clone":
        return f"git {verb}"
    branch = _option(rest, "--branch", "-b")
    if branch and (_RELEASE.match(branch) or _COMMIT.match(branch)):
        return "git clone"
    return f"git clone of the branch {branch}" if branch else "git clone of a branch"


def _pip(command: Command) -> str:
    verb, rest = _verb(command.arguments)
    if verb == "pip" and command.name == "uv":
        verb, rest = _verb(rest)
    if verb not in {"install", "download", "sync"}:
        return ""
    if "--no-index" in rest:
        return ""
    takes = {
        "-r",
        "-c",
        "-t",
        "-i",
        "-f",
        "--requirement",
        "--constraint",
        "--index-url",
        "--extra-index-url",
        "--target",
    }
    packages = _operands(rest, with_value=takes)
    floating = [
        package for package in packages if not _VERSIONED.search(package) and not package.startswith(("/", "."))
    ]
    said = f"{command.name} {verb}"
    return f"{said} without a version: {' '.join(floating)}" if floating else said


def _python(command: Command) -> str:
    words = command.arguments
    if words[:2] == ("-m", "pip"):
        return _pip(Command(line=command.line, words=("pip", *words[2:])))
    return ""


def _packages(command: Command) -> str:
    verb, _ = _verb(command.arguments)
    if verb in {
        "install",
        "update",
        "upgrade",
        "dist-upgrade",
        "full-upgrade",
        "localinstall",
        "groupinstall",
        "reinstall",
    }:
        return f"{command.name} {verb}"
    return ""


def _containers(command: Command) -> str:
    words = [word for word in command.arguments if word not in {"images", "image"}]
    verb, rest = _verb(words, with_value={"-n", "--namespace", "-H", "--host", "-a", "--address"})
    if verb not in {"pull", "run"}:
        return ""
    takes = {"-e", "--env", "-v", "--volume", "--name", "-u", "--user", "-p", "--network", "--mount", "-w", "--gpus"}
    image = next(iter(_operands(rest, with_value=takes)), "")
    said = f"{command.name} {verb}"
    if not image or "@sha256:" in image or "$" in image:
        return said
    tag = image.rsplit("/", 1)[-1].partition(":")[2]
    return f"{said} of a tag that can change: {image}" if tag in {"", "latest"} else said


def _helm(command: Command) -> str:
    verb, rest = _verb(command.arguments)
    if verb not in {"install", "upgrade", "pull", "repo"}:
        return ""
    return f"helm {verb}" if verb == "repo" or _option(rest, "--version") else f"helm {verb} without a version"


def _installers(verbs: Sequence[str]) -> Callable[[Command], str]:
    def told(command: Command) -> str:
        verb, rest = _verb(command.arguments)
        return _moving(f"{command.name} {verb}", rest) if verb in verbs else ""

    return told


_TELLERS: Mapping[str, Callable[[Command], str]] = {
    **dict.fromkeys(("curl", "wget", "aria2c"), _fetch),
    "git": _git,
    **dict.fromkeys(("pip", "pip3", "uv"), _pip),
    **dict.fromkeys(("python", "python3"), _python),
    **dict.fromkeys(("apt", "apt-get", "yum", "dnf", "microdnf", "zypper", "snap", "amazon-linux-extras"), _packages),
    **dict.fromkeys(("docker", "podman", "nerdctl", "crictl", "ctr"), _containers),
    "helm": _helm,
    **dict.fromkeys(("conda", "mamba", "micromamba"), _installers(("install", "create", "update"))),
    "npm": _installers(("install", "i", "ci")),
    "go": _installers(("install", "get")),
    "cargo": _installers(("install",)),
}


def _moving(said: str, words: Sequence[str]) -> str:
    for word in words:
        if match := _MOVING.search(word):
            return f"{said} of {match[1]}, which can change"
    return said


def _is_of_this_node(url: str) -> bool:
    try:
        host = urlsplit(url if "://" in url else f"http://{url}").hostname
    except ValueError:
        return False
    return host in _OF_THIS_NODE


def _verb(words: Sequence[str], *, with_value: set[str] | None = None) -> tuple[str, Sequence[str]]:
    operands = _operands(words, with_value=with_value or set())
    if not operands:
        return "", ()
    return operands[0], words[list(words).index(operands[0]) + 1 :]


def _operands(words: Sequence[str], *, with_value: set[str]) -> list[str]:
    found = []
    skips = False
    for word in words:
        if skips:
            skips = False
        elif word.startswith("-"):
            skips = word in with_value
        else:
            found.append(word)
    return found


def _option(words: Sequence[str], *names: str) -> str:
    for word, value in zip(words, [*words[1:], ""], strict=True):
        name, equals, given = word.partition("=")
        if name in names:
            return given if equals else value
    return ""
