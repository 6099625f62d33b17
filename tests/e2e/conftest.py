"""The cluster that the end-to-end tests share, one for each Kubernetes release asked for."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .durations import durations_table
from .harness import (
    DEFAULT,
    WORDS,
    Cluster,
    ClusterApi,
    ExistingCluster,
    HarnessError,
    KubernetesVersion,
    Progress,
    RequirementsMissing,
    build_image,
    containerd_with_cdi,
    dra_gates,
    parse_versions,
    prepare,
)
from .mock import IMAGE, ROOT, Figures, Mock

EXISTING = os.environ.get("E2E_KUBECONFIG")
_image = pytest.StashKey[Path]()
_progress = pytest.StashKey[Progress]()
_figures = pytest.StashKey[Figures]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--kubernetes",
        action="append",
        default=[],
        metavar="1.X[.Y]",
        help=f"release to test on, may be repeated, or {', '.join(WORDS)} (default {DEFAULT})",
    )

    parser.addoption("--slow", action="store_true", help="run what takes minutes to wait for, too")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_progress] = Progress()
    config.addinivalue_line("markers", "e2e: runs on a real Kubernetes cluster")
    config.addinivalue_line("markers", "minors(range): is true of these minors of Kubernetes only")
    config.addinivalue_line("markers", "cdi: needs a container runtime that reads CDI specs")
    config.addinivalue_line("markers", "slow: takes minutes to wait for; runs with --slow")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.partition("::")[0].startswith("tests/e2e/"):
            item.add_marker(pytest.mark.e2e)
    is_hurried = not config.getoption("--slow")
    elsewhere = [
        item
        for item in items
        if not _is_of_its_release(item) or (is_hurried and item.get_closest_marker("slow"))
    ]
    items[:] = [item for item in items if item not in elsewhere]
    config.hook.pytest_deselected(items=elsewhere)


def _is_of_its_release(item: pytest.Item) -> bool:
    marker = item.get_closest_marker("minors")
    if marker is None:
        return True
    assert isinstance(item, pytest.Function)
    version = item.callspec.params["kubernetes_version"]
    assert isinstance(version, KubernetesVersion)
    return version.minor in marker.args[0]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if not {"kubernetes_version", "any_version"} & set(metafunc.fixturenames):
        return
    if EXISTING:
        versions = [ExistingCluster(EXISTING, os.environ.get("E2E_NODE")).version]
    else:
        versions = list(parse_versions(metafunc.config.getoption("--kubernetes")))
    if "kubernetes_version" in metafunc.fixturenames:
        metafunc.parametrize("kubernetes_version", versions, ids=str, scope="session")
    if metafunc.definition.get_closest_marker("cdi"):  # the cluster changes with it
        metafunc.parametrize("with_cdi", [True], ids=["cdi"], indirect=True, scope="session")
    if "any_version" in metafunc.fixturenames:  # what is true of every release: once is enough
        metafunc.parametrize("any_version", versions[:1], ids=str, scope="module")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Compile and build before the first test: one of minutes is taken for one that hangs."""
    if EXISTING or session.testsfailed or session.config.option.collectonly:
        return
    versions = {
        value
        for item in session.items
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
        for value in item.callspec.params.values()
        if isinstance(value, KubernetesVersion)
    }
    if not versions:
        return
    try:
        with progress_shown(session.config) as progress:
            prepare(versions, progress)
            if any("equipped" in getattr(item, "fixturenames", ()) for item in session.items):
                session.config.stash[_image] = _build_image(session.config, progress)
            if any(item.get_closest_marker("cdi") for item in session.items):
                containerd_with_cdi(progress)
    except RequirementsMissing:
        return  # each test skips or fails with the reason
    except HarnessError as error:
        pytest.exit(f"the tests can't be prepared: {error}", returncode=1)


def _build_image(config: pytest.Config, progress: Progress) -> Path:
    """The archive of the image that the Containerfile makes; removed when pytest ends."""
    folder = tempfile.TemporaryDirectory(prefix="hami-mock-image-")
    config.add_cleanup(folder.cleanup)
    archive = Path(folder.name) / "hami-mock.tar"
    build_image(ROOT / "Containerfile", ROOT, IMAGE, archive, progress)
    return archive


@pytest.fixture(scope="session")
def with_cdi(request: pytest.FixtureRequest) -> bool:
    """Whether the cluster's runtime must read CDI specs, as tests marked `cdi` want it."""
    return bool(getattr(request, "param", False))


@pytest.fixture(scope="session")
def any_cluster(
    kubernetes_version: KubernetesVersion, with_cdi: bool, pytestconfig: pytest.Config
) -> Iterator[ClusterApi]:
    """A cluster of our own, or the one that $E2E_KUBECONFIG names."""
    if EXISTING:
        yield ExistingCluster(EXISTING, os.environ.get("E2E_NODE"))
        return
    with progress_shown(pytestconfig) as progress:
        try:
            runtime = containerd_with_cdi(progress) if with_cdi else None
            starting = Cluster.start(kubernetes_version, progress, runtime=runtime)
            running = starting.__enter__()
        except RequirementsMissing as missing:
            skip_or_fail(missing)
    try:
        yield running
    finally:
        with progress_shown(pytestconfig):
            starting.__exit__(None, None, None)


@pytest.fixture(scope="session")
def cluster(any_cluster: ClusterApi) -> Cluster:
    """A cluster of our own, whose daemons a test may kill."""
    if not isinstance(any_cluster, Cluster):
        pytest.skip("this needs a cluster of our own, and $E2E_KUBECONFIG names another")
    return any_cluster


@pytest.fixture(scope="module", name="dra_gates")
def dra_gates_on(any_cluster: ClusterApi) -> Iterator[None]:
    """All feature gates that our DRA driver needs, for the tests of a module.

    Releases that have them on by default stay as they are, and so does a cluster of somebody's own.
    """
    if not isinstance(any_cluster, Cluster):
        yield
        return
    with any_cluster.feature_gates(dra_gates(any_cluster.version)):
        yield


def skip_or_fail(missing: RequirementsMissing) -> None:
    """On a person's machine a test that can't run is skipped; in CI it must have run."""
    told = "; ".join(missing.sentences)
    if os.environ.get("CI") == "true":
        pytest.fail(told, pytrace=False)
    pytest.skip(told)


@contextmanager
def progress_shown(config: pytest.Config) -> Iterator[Progress]:
    """Let what is written now be seen now: the first start takes minutes."""
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture is None:
        yield config.stash[_progress]
        return
    with capture.global_and_fixture_disabled():
        print()  # ends pytest's own unfinished line
        yield config.stash[_progress]


@pytest.fixture(scope="session")
def equipped(any_cluster: ClusterApi, pytestconfig: pytest.Config) -> ClusterApi:
    """A cluster that has the image; one that isn't ours has it already."""
    if isinstance(any_cluster, Cluster):
        with progress_shown(pytestconfig) as progress, progress.step("load the image"):
            any_cluster.load_image(pytestconfig.stash[_image])
    return any_cluster


@pytest.fixture
def mock(equipped: ClusterApi) -> Iterator[Mock]:
    """The agent, not deployed yet; afterwards it is gone, and so are the pods."""
    mock = Mock(equipped, os.environ.get("E2E_IMAGE", IMAGE) if EXISTING else IMAGE)
    yield mock
    mock.delete_pods()
    mock.remove()


@pytest.fixture
def hami_node(mock: Mock) -> Iterator[Mock]:
    """A cluster in which the agent may be HAMi's node side."""
    rbac = ROOT / "components" / "hami" / "rbac.yaml"
    mock.cluster.kubectl("apply", "-f", rbac)
    yield mock
    mock.delete_pods()
    mock.remove()
    mock.cluster.kubectl("delete", "-f", rbac)


@pytest.fixture(scope="session")
def figures(pytestconfig: pytest.Config) -> Figures:
    """Where a test leaves what it measured; the table is printed at the end."""
    return pytestconfig.stash.setdefault(_figures, Figures())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    stash = terminalreporter.config.stash
    reports = [
        report
        for category in terminalreporter.stats.values()
        for report in category
        if isinstance(report, pytest.TestReport)
    ]
    figures = stash.get(_figures, Figures())
    for title, lines in (
        ("where the time went", durations_table(stash[_progress].finished, reports)),
        ("figures", figures.table() if figures.rows else []),
    ):
        if lines:
            terminalreporter.section(title)
        for line in lines:
            terminalreporter.write_line(line)
