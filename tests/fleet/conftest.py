"""A control plane for the tests of a module, and a fleet on it."""

import os
from collections.abc import Iterator

import pytest

from hami_mock.errors import StartError
from hami_mock.fleet.sandbox import Programs, Sandbox, find_programs, sandbox
from hami_mock.fleet.stages import Bind
from tests.fleet.api import Api
from tests.fleet.program import Fleet


@pytest.fixture(scope="session")
def programs() -> Programs:
    """Those of the cache; where they aren't, a person's run is skipped and CI's fails."""
    try:
        return find_programs(release=os.environ.get("FLEET_KUBERNETES", ""))
    except StartError as error:
        if os.environ.get("CI", "false") not in ("", "0", "false"):
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def bind() -> Bind:
    """Who answers HAMi's scheduler; a module may say otherwise."""
    return Bind.NONE


@pytest.fixture(scope="module")
def cluster(programs: Programs, bind: Bind) -> Iterator[Sandbox]:
    with sandbox(programs, bind=bind, audit=True) as running:
        yield running


@pytest.fixture(scope="module")
def api(cluster: Sandbox) -> Iterator[Api]:
    api = Api(cluster.kubeconfig)
    yield api
    api.close()


@pytest.fixture(scope="module")
def fleet(cluster: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    fleet = Fleet(cluster.kubeconfig_of("fleet"), tmp_path_factory.mktemp("fleet"), "test")
    yield fleet
    fleet.end()
