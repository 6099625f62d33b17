"""The API server as a kubeconfig names it, for whoever isn't in a pod."""

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

from hami_mock.cluster import credential_plugin
from hami_mock.cluster.access import (
    Access,
    AccessError,
    Endpoint,
    basic,
    bearer,
    checked_url,
    proxy_of,
)
from hami_mock.cluster.credential_plugin import Credential
from hami_mock.cluster.kubeconfig_file import KubeconfigFile, Section

USER_CONFIG = Path("~/.kube/config")
_KEEP_SECONDS = 60.0
"""A file with a token is written anew before the token expires."""


def paths() -> list[Path]:
    """Return the files to read: those of $KUBECONFIG, or the user's own; none if there is none."""
    if named := [Path(each) for each in os.environ.get("KUBECONFIG", "").split(":") if each]:
        return named
    own = USER_CONFIG.expanduser()
    return [own] if own.exists() else []


class Kubeconfig:
    """Reads the files again and again, and keeps to the context that was current at first."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = files
        self._context = ""

    async def load(self) -> Access:
        """Read the files, and run the program that they may name. Raises AccessError."""
        file = KubeconfigFile(self._files)
        # Another one that became current may be another cluster.
        self._context = self._context or file.current_context
        context = file.named("context", self._context)
        cluster = file.named("cluster", context.needed("cluster"))
        name = context.text("user")
        user = file.named("user", name) if name else Section({}, "user", cluster.folder)
        credential = await _credential(user, cluster)
        headers = (("Authorization", credential.header), *_impersonation(user))
        return Access(
            _endpoint(cluster, user, credential),
            tuple((name, value) for name, value in headers if value),
            credential.expires,
        )


def _endpoint(cluster: Section, user: Section, credential: Credential) -> Endpoint:
    url = checked_url(cluster.needed("server"), f"{cluster.place}.server")
    return Endpoint(
        url,
        cluster.content("certificate-authority"),
        is_verified=not cluster.is_set("insecure-skip-tls-verify"),
        server_name=cluster.text("tls-server-name"),
        certificate=credential.certificate or user.content("client-certificate"),
        key=credential.key or user.content("client-key"),
        proxy=proxy_of(url, cluster.text("proxy-url"), f"{cluster.place}.proxy-url"),
    )


async def _credential(user: Section, cluster: Section) -> Credential:
    if "exec" in user.values:
        return await credential_plugin.run(user.section("exec"), cluster)
    if "auth-provider" in user.values:
        return Credential(bearer(_provided(user.section("auth-provider")), user.place))
    if path := user.path("tokenFile"):
        token = user.file("tokenFile").decode(errors="replace")
        return Credential(bearer(token, str(path)), expires=time.time() + _KEEP_SECONDS)
    if token := user.text("token"):
        return Credential(bearer(token, f"{user.place}.token"))
    if name := user.text("username"):
        return Credential(basic(name, user.text("password")))
    return Credential()


def _provided(provider: Section) -> str:
    """Return the token of the only provider that kubectl has left, which renews it in the file."""
    name = provider.text("name")
    token = provider.section("config").text("id-token") if name == "oidc" else ""
    if not token:
        raise AccessError(
            f"{provider.place}: there is no token for the provider {name!r} here; run kubectl "
            "once, which renews it, or use a credential plugin (exec)"
        )
    return token


def _impersonation(user: Section) -> Iterator[tuple[str, str]]:
    """Yield the headers that ask to act as somebody else, who may do less."""
    yield "Impersonate-User", user.text("as")
    yield "Impersonate-Uid", user.text("as-uid")
    for group in user.texts("as-groups"):
        yield "Impersonate-Group", group
    extra = user.section("as-user-extra")
    for key in extra.values:
        name = quote(str(key), safe="", errors="replace")
        for value in extra.texts(key):
            yield f"Impersonate-Extra-{name}", value
