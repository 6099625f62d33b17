"""The kinds of objects that are read and written, as the API server and its roles name them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Resource:
    """A kind of object: its plural name, and the API group and version that have it.

    `parts` are the mappings that an object has beside its metadata. What has no version is no kind
    of object, but a path of the server.
    """

    name: str
    group: str = ""
    version: str = "v1"
    is_namespaced: bool = False
    parts: tuple[str, ...] = ("spec", "status")

    @property
    def root(self) -> str:
        """Where its group is served; the group without a name is older than the others' scheme."""
        if not self.version:
            return ""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    @property
    def rule(self) -> str:
        """Where a rule of a role has it."""
        if not self.version:
            return f'nonResourceURLs: ["/{self.name}"]'
        return f'apiGroups: ["{self.group}"]'

    def __str__(self) -> str:
        return self.name


NODES = Resource("nodes")
NAMESPACES = Resource("namespaces")
PODS = Resource("pods", is_namespaced=True)
EVENTS = Resource("events", is_namespaced=True, parts=())

LEASES = Resource("leases", "coordination.k8s.io", is_namespaced=True, parts=("spec",))
DEPLOYMENTS = Resource("deployments", "apps", is_namespaced=True)

_DRA = "resource.k8s.io"
RESOURCE_SLICES = Resource("resourceslices", _DRA, parts=("spec",))
RESOURCE_CLAIMS = Resource("resourceclaims", _DRA, is_namespaced=True)
RESOURCE_CLAIM_TEMPLATES = Resource(
    "resourceclaimtemplates", _DRA, is_namespaced=True, parts=("spec",)
)
DEVICE_CLASSES = Resource("deviceclasses", _DRA, parts=("spec",))

SERVER_VERSION = Resource("version", version="")
