"""A real one-machine Kubernetes, brought up and torn down by our own code.

api.py             what a test can ask of any cluster, also one that was there (existing.py)
prepare.py         what takes minutes, before any test waits for it
cluster.py         a cluster of our own, and what a test can do to it
├── binaries.py        the Kubernetes programs, compiled once into the cache (cache.py)
├── requirements.py    what the machine must have
├── sandbox.py         namespaces that take everything along when they end (sandbox_init.py,
│                      cgroups.py, layout.py)
├── pki.py, control_plane.py, node.py   certificates and daemons (daemon.py)
├── feature_gates.py   those of Kubernetes that a test can ask for
└── small_images.py    the pods' sandbox and a workload
hami.py            HAMi's own scheduler beside it (hami_config.py)
go_install.py       programs of published Go modules, compiled once into the cache:
├── helm_program.py    helm, for the chart
├── kwok_program.py    KWOK and Kueue, for fleets
└── containerd_program.py  a containerd that reads CDI specs, where Debian's is too old
container_build.py  the project's Containerfile as an image (base_image.py)
leftovers.py        what a cluster could leave behind
"""

from .api import ClusterApi
from .cluster import Cluster
from .container_build import build_image
from .containerd_program import containerd_with_cdi
from .errors import CommandFailed, HarnessError, NotReachedInTime, RequirementsMissing
from .existing import ExistingCluster
from .feature_gates import dra_gates
from .hami import Hami, running_hami
from .hami_config import default_device_config, managed_resources
from .hami_program import hami_scheduler
from .helm_program import helm
from .prepare import prepare
from .progress import Progress
from .requirements import missing_requirements
from .small_images import WORKLOAD
from .versions import DEFAULT, PINNED, WORDS, KubernetesVersion, parse_version, parse_versions

__all__ = [
    "DEFAULT",
    "PINNED",
    "WORDS",
    "WORKLOAD",
    "Cluster",
    "ClusterApi",
    "CommandFailed",
    "ExistingCluster",
    "Hami",
    "HarnessError",
    "KubernetesVersion",
    "NotReachedInTime",
    "Progress",
    "RequirementsMissing",
    "build_image",
    "containerd_with_cdi",
    "default_device_config",
    "dra_gates",
    "hami_scheduler",
    "helm",
    "managed_resources",
    "missing_requirements",
    "parse_version",
    "parse_versions",
    "prepare",
    "running_hami",
]
