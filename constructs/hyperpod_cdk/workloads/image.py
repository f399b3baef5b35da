"""The Dockerfile of a training image, with the other files of its build."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from hyperpod_cdk.catalog import training_images
from hyperpod_cdk.catalog.closest import closest
from hyperpod_cdk.catalog.instance_types import InstanceType
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.catalog.training_images import Accelerator, Installer, Stack
from hyperpod_cdk.workloads.program import ArgumentError

TEMPLATES = Path(__file__).parent / "templates"
LOCKS = TEMPLATES / "locks"

ARCHITECTURES: Mapping[str, str] = MappingProxyType({"x86_64": "linux/amd64", "arm64": "linux/arm64"})
"""The platform of images by an instance type's architecture."""

_MACHINES = {"x86_64": "x86_64", "arm64": "aarch64"}
_COPIED = ("check_image.sh", "ssh_client.conf", "ssh_server.conf")
_IGNORED = "*\n!Dockerfile\n!locks\n!program\n" + "".join(f"!{name}\n" for name in _COPIED)


@dataclass(frozen=True, kw_only=True)
class RenderedImage:
    """A build context: the text of each file by path, including the ``Dockerfile``.

    ``stack`` and ``installer`` are the rows of the compatibility table that it uses, ``platform`` is the platform of
    the nodes (``linux/amd64``).
    """

    stack: Stack
    installer: Installer
    platform: str
    files: Mapping[str, str]

    @property
    def dockerfile(self) -> str:
        """Return the text of the Dockerfile."""
        return self.files["Dockerfile"]

    @property
    def doubts(self) -> tuple[str, ...]:
        """Return what no source confirms about the versions, for comments and warnings."""
        named = (
            (f"CUDA {self.stack.name}", self.stack.unsure),
            (f"EFA installer {self.installer.version}", self.installer.unsure),
        )
        return tuple(f"{what}: {doubt}" for what, doubt in named if doubt)

    def commands(self, *, tag: str, folder: str) -> tuple[str, ...]:
        """Return the commands that build the image from ``folder`` and push it as ``tag``."""
        return (f"docker buildx build --platform {self.platform} --tag {tag} --push {folder}",)


def render(
    *,
    accelerators: Sequence[str] = (),
    architecture: str = "x86_64",
    cuda: str | None = None,
    efa_installer: str | None = None,
    base_image: str | None = None,
    program: Mapping[str, str] | None = None,
) -> RenderedImage:
    """Write the build context of an image for NVIDIA GPUs.

    ``accelerators`` are kinds such as ``nvidia-h100``; default: all that the CUDA release supports. ``cuda`` (``13.0``)
    and ``efa_installer`` are rows of the compatibility table; default: the newest CUDA that supports the accelerators
    and the architecture, and the installer that is known to be compatible. ``base_image`` is the same base image in
    another registry. ``program`` (text by path) is copied to the image's /workspace.

    Raises ``ArgumentError`` for values that the table does not contain.
    """
    kinds = [_accelerator(kind) for kind in dict.fromkeys(accelerators)]
    if architecture not in ARCHITECTURES:
        raise ArgumentError("architecture", f'must be {joined(ARCHITECTURES, last="or")}, got "{architecture}"')
    stack = _stack(cuda, kinds, architecture)
    installer = _installer(stack.efa_installer if efa_installer is None else efa_installer)
    if base_image is not None and not _is_pinned(base_image):
        raise ArgumentError("base_image", f'must be an image with a tag or a digest, got "{base_image}"')
    known = [
        each for each in training_images.accelerators().values() if _release(each.since_cuda) <= _release(stack.name)
    ]
    dockerfile = _template().render(
        title=", ".join(each.kind.removeprefix("nvidia-").upper() for each in kinds) or "any NVIDIA GPU",
        stack=stack,
        installer=installer,
        base=base_image or f"{stack.base}@{stack.digest}",
        url=training_images.INSTALLER_URL,
        key=training_images.INSTALLER_KEY,
        nccl_tests_version=training_images.NCCL_TESTS_VERSION,
        nccl_tests_sha256=training_images.NCCL_TESTS_SHA256,
        gencode=_gencode(kinds or known),
        has_program=bool(program),
    )
    locks = {f"locks/{name}": _text(LOCKS / name) for name in ("build.txt", f"cuda-{stack.name}.txt")}
    copied = {name: _text(TEMPLATES / name) for name in _COPIED}
    own = {f"program/{path}": text for path, text in (program or {}).items()}
    files = {"Dockerfile": dockerfile, ".dockerignore": _IGNORED, **copied, **locks, **own}
    return RenderedImage(
        stack=stack,
        installer=installer,
        platform=ARCHITECTURES[architecture],
        files=MappingProxyType(dict(sorted(files.items()))),
    )


def render_for(
    rows: Sequence[InstanceType],
    *,
    cuda: str | None = None,
    efa_installer: str | None = None,
    base_image: str | None = None,
    program: Mapping[str, str] | None = None,
) -> RenderedImage:
    """Write the build context as ``render`` does, for the nodes of an instance group; ``rows`` are its types.

    Raises ``ArgumentError`` also for types without NVIDIA GPUs and for types of several architectures.
    """
    for row in rows:
        if not row.is_nvidia:
            fix = "AWS's own images are for Neuron" if row.accelerator_kind else "use a group with GPUs"
            raise ArgumentError("group", f"must be of types with NVIDIA GPUs, got {row.name}; {fix}")
    architectures = sorted({row.architecture for row in rows})
    if len(architectures) != 1:
        raise ArgumentError("group", f"must be of types of one architecture, got {joined(architectures) or 'no type'}")
    return render(
        accelerators=[row.accelerator_kind for row in rows if row.accelerator_kind is not None],
        architecture=architectures[0],
        cuda=cuda,
        efa_installer=efa_installer,
        base_image=base_image,
        program=program,
    )


def _accelerator(kind: str) -> Accelerator:
    known = training_images.accelerators()
    if kind not in known:
        near = f"nvidia-{kind}" if f"nvidia-{kind}" in known else closest(kind, known)
        fix = f"; did you mean {near}?" if near else ""
        raise ArgumentError("accelerator", f'must be one of {", ".join(known)}, got "{kind}"{fix}')
    return known[kind]


def _stack(cuda: str | None, kinds: Sequence[Accelerator], architecture: str) -> Stack:
    stacks = training_images.stacks()
    if cuda is not None and cuda not in {stack.name for stack in stacks}:
        raise ArgumentError("cuda", f'must be one of {", ".join(stack.name for stack in stacks)}, got "{cuda}"')
    wanted = [stack for stack in stacks if cuda in (None, stack.name)]
    problems = []
    for stack in wanted:
        problem = _stack_problem(stack, kinds, architecture)
        if problem is None:
            return stack
        problems.append(problem)
    raise ArgumentError("cuda", problems[0])


def _stack_problem(stack: Stack, kinds: Sequence[Accelerator], architecture: str) -> str | None:
    if _MACHINES[architecture] not in stack.architectures:
        return f"must be a CUDA whose PyTorch is built for {architecture}, got {stack.name}; omit it"
    for each in kinds:
        if _release(stack.name) < _release(each.since_cuda):
            return f"must be {each.since_cuda} or newer for {each.kind}, got {stack.name}; omit it"
    return None


def _installer(version: str) -> Installer:
    known = {each.version: each for each in training_images.installers()}
    if version not in known:
        raise ArgumentError(
            "efa_installer",
            f'must be one of {", ".join(known)}, got "{version}"; those before'
            f" {training_images.PLUGIN_BUNDLED_SINCE} bring no aws-ofi-nccl",
        )
    return known[version]


def _gencode(kinds: Sequence[Accelerator]) -> str:
    names = sorted({each.capability for each in kinds}, key=_release)
    numbers = [name.replace(".", "") for name in names]
    return " ".join(f"-gencode=arch=compute_{number},code=sm_{number}" for number in numbers)


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _is_pinned(image: str) -> bool:
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return bool(name) and not any(letter.isspace() for letter in image) and bool(digest or (tag and tag != "latest"))


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        autoescape=False,  # noqa: S701 - a Dockerfile is no HTML
    )
    return environment.get_template("Dockerfile.j2")
