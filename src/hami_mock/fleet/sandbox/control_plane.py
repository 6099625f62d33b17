"""Bring the programs up in their order, and take them down."""

import os
import shutil
import socket
import ssl
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

from hami_mock.errors import StartError
from hami_mock.fleet import stages
from hami_mock.fleet.sandbox import flags
from hami_mock.fleet.sandbox.access import ADMIN, write_kubeconfig, write_tokens
from hami_mock.fleet.sandbox.child import Child
from hami_mock.fleet.sandbox.flags import Places
from hami_mock.fleet.sandbox.programs import Programs
from hami_mock.fleet.sandbox.readiness import READY_SECONDS, Readiness

USERS = (ADMIN, "kube-controller-manager", "kube-scheduler", "kwok", "fleet", "guest")
_MOST_STARTS = 3
_PORT_TAKEN = "address already in use"
# It outlives us by as long as it takes to see that our end of its pipe is closed. What ends with us
# may write for a moment yet, so it looks again.
_CLEAN_UP = 'read _; for _ in 1 2 3 4 5 6 7 8 9; do rm -rf "$1" && exit; sleep 0.2; done'

# setpriv ties a program to its parent, whoever that is by then: if we are gone, it must not begin.
_IF_WE_LIVE = '[ "$PPID" = "$1" ] || exit 1; shift; exec "$@"'


class Sandbox:
    """A control plane that runs. Make it with `sandbox`."""

    def __init__(self, programs: Programs, places: Places) -> None:
        self.programs = programs
        self.places = places
        self.children: dict[str, Child] = {}

    @property
    def folder(self) -> Path:
        return self.places.folder

    @property
    def kubeconfig(self) -> Path:
        """By which an administrator reaches it."""
        return self.kubeconfig_of(ADMIN)

    def kubeconfig_of(self, user: str) -> Path:
        """Return the kubeconfig of one of USERS: the audit log tells them apart."""
        return self.places.kubeconfig(user)

    @property
    def audit_log(self) -> Path:
        return self.places.audit_log

    def start(
        self, name: str, argv: Sequence[str | Path], environment: Mapping[str, str] | None = None
    ) -> Child:
        """Start another program, which ends with the others."""
        if_we_live = ["/bin/sh", "-c", _IF_WE_LIVE, "sh", str(os.getpid())]
        tied = [self.programs.setpriv, "--pdeathsig=KILL", "--", *if_we_live, *argv]
        child = Child(name, tied, self.folder, environment or {})
        self.children[name] = child
        return child

    def stop(self, name: str) -> None:
        self.children.pop(name).stop()

    def stop_all(self) -> None:
        """End all, the last one first, so that none complains of another."""
        for name in reversed([*self.children]):
            self.stop(name)

    def check(self) -> None:
        """Raise StartError if a program has ended by itself."""
        for child in self.children.values():
            child.check()


@contextmanager
def sandbox(
    programs: Programs,
    *,
    bind: stages.Bind = stages.Bind.NONE,
    audit: bool = False,
) -> Iterator[Sandbox]:
    """Run a control plane and KWOK for the time of the block.

    With `audit`, the API server writes down who writes nodes and pods. Enter it in the main thread:
    the programs end with the thread that starts them. Raises StartError if one doesn't come up.
    """
    with _folder() as folder:
        running = _started(programs, folder, bind, audit)
        try:
            yield running
            # What they did in vain would be taken for a fault of the one who asked.
            running.check()
        finally:
            running.stop_all()


def _started(programs: Programs, folder: Path, bind: stages.Bind, audit: bool) -> Sandbox:
    """Start it; again with other ports where somebody took one between our look and its use."""
    for _ in range(_MOST_STARTS):
        running = Sandbox(programs, Places(folder, *free_ports(3)))
        try:
            _start(running, bind, audit)
        except BaseException as error:
            running.stop_all()
            if isinstance(error, StartError) and _PORT_TAKEN in str(error):
                continue
            raise
        return running
    raise StartError(f"ports of this machine were taken {_MOST_STARTS} times in a row: try again")


def _start(running: Sandbox, bind: stages.Bind, audit: bool) -> None:
    programs, places = running.programs, running.places
    tokens = write_tokens(places.tokens, USERS)
    places.audit_policy.write_text(flags.audit_policy())
    places.scheduler_config.write_text(flags.scheduler_config(places))
    places.kwok_config.write_text(stages.config(bind, flags.LEASE_SECONDS))
    for name, argv in (
        ("etcd", flags.etcd(programs, places)),
        ("kube-apiserver", flags.api_server(programs, places, audit)),
    ):
        with Readiness() as ready:
            ready.wait(running.start(name, argv, ready.environment))
    for user, token in tokens.items():
        write_kubeconfig(places.kubeconfig(user), places.server, places.authority, token)
    for name, argv in (
        ("kube-controller-manager", flags.controller_manager(programs, places)),
        ("kube-scheduler", flags.scheduler(programs, places)),
        ("kwok", flags.kwok(programs, places)),
    ):
        running.start(name, argv)
    _wait_for_account(running, tokens[ADMIN])


def _wait_for_account(running: Sandbox, token: str) -> None:
    """Wait for what a pod needs to be made at all, the last that the programs make at a start."""
    where = "/api/v1/namespaces/default/serviceaccounts"
    query = "watch=1&fieldSelector=metadata.name%3Ddefault"
    url = f"{running.places.server}{where}?{query}&timeoutSeconds={READY_SECONDS:.0f}"
    trusted = ssl.create_default_context(cafile=str(running.places.authority))
    request = Request(url, headers={"Authorization": f"Bearer {token}"})  # noqa: S310 - it is ours
    try:
        with urlopen(request, context=trusted, timeout=READY_SECONDS) as answer:  # noqa: S310
            is_there = bool(answer.readline())
    except (URLError, TimeoutError) as error:
        running.check()
        raise StartError(f"the API server of the sandbox doesn't answer: {error}") from error
    running.check()
    if not is_there:
        last_words = running.children["kube-controller-manager"].last_words()
        raise StartError(f"the controller manager makes no service account; {last_words}")


@contextmanager
def _folder() -> Iterator[Path]:
    """Make a folder that goes when we do; where something went wrong, its logs stay."""
    folder = Path(tempfile.mkdtemp(prefix="hami-mock-sandbox-"))
    (folder / "logs").mkdir()
    # In a session of its own: it mustn't end with the terminal that we are ended with.
    keeper = subprocess.Popen(  # noqa: S603
        ["/bin/sh", "-c", _CLEAN_UP, "sh", str(folder)],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield folder
    except Exception as error:
        logs = tempfile.mkdtemp(prefix="hami-mock-sandbox-logs-")
        shutil.copytree(folder / "logs", logs, dirs_exist_ok=True)
        told = f"the logs of the sandbox are in {logs}"
        if isinstance(error, StartError):
            raise StartError(f"{error}\n{told}") from error
        error.add_note(told)
        raise
    finally:
        assert keeper.stdin is not None
        keeper.stdin.close()
        keeper.wait()


def free_ports(count: int) -> list[int]:
    """Return ports of loopback that nobody listens on now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
