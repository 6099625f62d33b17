"""An API server for the bench's agents, in a thread of the bench."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import trustme
from anyio.from_thread import start_blocking_portal

from bench.workspace import Workspace
from tests.integration.access_rig import data, server_tls, write_kubeconfig
from tests.integration.fake_api_server import FakeApiServer, Object, serving


@contextmanager
def api_server(
    work: Workspace,
    server: FakeApiServer,
    objects: Iterable[tuple[str, Object]],
    authority: trustme.CA | None = None,
) -> Iterator[tuple[Workspace, str]]:
    """Serve objects, over TLS if there is an authority.

    Gives a workspace whose processes know the server, and its URL.
    """
    tls = server_tls(authority, "127.0.0.1") if authority else None
    trust = {"certificate-authority-data": data(authority.cert_pem)} if authority else {}
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(serving(server, tls)) as url,
    ):
        for resource, thing in objects:
            portal.call(server.put, resource, thing)
        config = work.folder / "kubeconfig"
        write_kubeconfig(config, {"server": url, **trust}, {"token": "bench"})
        yield replace(work, environment={**work.environment, "KUBECONFIG": str(config)}), url
