"""The commands that count as downloads, and their messages."""

from __future__ import annotations

from hyperpod_cdk.checks.bash_commands import commands
from hyperpod_cdk.checks.downloads import download, leaves_the_network
from tests.support.tables import row_by_row


@row_by_row(
    "text, said",
    [
        ("curl -fsSL https://example.com/a-1.2.tgz -o x", "curl"),
        ("curl https://raw.githubusercontent.com/o/r/main/x.sh", "curl of main, which can change"),
        ("wget -q https://github.com/o/r/releases/latest/download/x", "wget of latest, which can change"),
        ('curl "$URL"', "curl"),
        ("wget example.com/x", "wget"),
        ("curl --version", ""),
        ("curl -s http://169.254.169.254/latest/meta-data", ""),
        ("curl http://localhost:8080/healthz", ""),
        ("curl http://[bad", "curl"),
        ("git clone https://github.com/o/r", "git clone of a branch"),
        ("git clone --depth 1 -b main https://github.com/o/r", "git clone of the branch main"),
        ("git clone --branch=v1.2.3 https://github.com/o/r", "git clone"),
        ("git -C /opt/r pull", "git pull"),
        ("git submodule update --init", "git submodule"),
        ("git status", ""),
        ("pip install torch", "pip install without a version: torch"),
        ("pip3 install -U torch==2.7.0", "pip3 install"),
        ("pip install -r requirements.txt", "pip install"),
        ("pip install --no-index ./a.whl", ""),
        ("uv pip install torch", "uv install without a version: torch"),
        ("python3 -m pip install torch", "pip install without a version: torch"),
        ("python3 run.py", ""),
        ("pip list", ""),
        ("apt-get -y install jq", "apt-get install"),
        ("apt update", "apt update"),
        ("dnf install -y jq", "dnf install"),
        ("yum remove jq", ""),
        ("docker pull nvcr.io/nvidia/pytorch", "docker pull of a tag that can change: nvcr.io/nvidia/pytorch"),
        ("docker run --rm -v /a:/b busybox:latest ls", "docker run of a tag that can change: busybox:latest"),
        ("docker pull localhost:5000/a:1.2", "docker pull"),
        ("ctr -n k8s.io images pull docker.io/library/a@sha256:0123", "ctr pull"),
        ("docker ps", ""),
        ("helm repo add a https://a", "helm repo"),
        ("helm install a b/c", "helm install without a version"),
        ("helm upgrade --install a b/c --version 1.2", "helm upgrade"),
        ("conda install -y numpy", "conda install"),
        ("go install example.com/x@latest", "go install of latest, which can change"),
        ("npm ci", "npm ci"),
        ("npm", ""),
        ("aws s3 cp s3://bucket/x .", ""),
        ("echo curl https://example.com", ""),
    ],
)
def test_downloads_are_reported(text: str, said: str) -> None:
    assert [told for each in commands(text) if (told := download(each))] == ([said] if said else [])


@row_by_row(
    "text, leaves",
    [
        ("curl -fsSL https://example.com/a-1.2.tgz", True),
        ("curl https://my-bucket.s3.us-east-1.amazonaws.com/a.tgz", False),
        ("curl https://amazonaws.com.example.com/a.tgz", True),
        ('curl "$URL"', False),
        ("git clone https://github.com/o/r", True),
        ("git clone https://git-codecommit.us-east-1.amazonaws.com/v1/repos/r", False),
        ("pip install torch", True),
        ("pip install --index-url=https://packages.example.com/simple torch", False),
        ("pip install -i https://packages.example.com/simple torch", False),
        ("apt-get install -y jq", True),
        ("dnf install -y jq", False),
        ("yum -y update", False),
        ("docker pull nvcr.io/nvidia/pytorch:25.01-py3", True),
        ("docker pull 111122223333.dkr.ecr.us-east-1.amazonaws.com/pytorch:1", False),
    ],
)
def test_what_surely_leaves_the_network(text: str, leaves: bool) -> None:  # noqa: FBT001 - a parameter of the test
    (command,) = commands(text)
    assert download(command)
    assert leaves_the_network(command) is leaves
