"""How the kubelet finds a driver, and its word on whether it has taken it."""

import logging

from hami_mock.kit.text import cut
from hami_mock.kubelet._proto import pluginregistration as api

TYPE = "DRAPlugin"
# Kubelets from 1.37 on look for the health service among these; older ones just ask.
SERVICES = ("v1.DRAPlugin", "v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth")

_NOT_YET = "the kubelet hasn't registered it yet"

_log = logging.getLogger(__name__)


class RegistrationService(api.RegistrationBase):
    """Answers on a socket in the kubelet's folder of registrations."""

    def __init__(self, driver: str, endpoint: str) -> None:
        self._driver = driver
        self._endpoint = endpoint
        self.problem = _NOT_YET
        """Why the kubelet doesn't use the driver; "" if it does."""
        self.registrations = 0

    def begin(self) -> None:
        """Note that it is served from now on: the kubelet has to find it, anew if it knew it."""
        self.problem = _NOT_YET

    async def get_info(self, message: api.InfoRequest) -> api.PluginInfo:
        return api.PluginInfo(
            type=TYPE,
            name=self._driver,
            endpoint=self._endpoint,
            supported_versions=[*SERVICES],
        )

    async def notify_registration_status(
        self, message: api.RegistrationStatus
    ) -> api.RegistrationStatusResponse:
        # It tries again by itself.
        self.problem = "" if message.plugin_registered else f"refused: {cut(message.error)}"
        if message.plugin_registered:
            self.registrations += 1
            _log.info("%s: registered with the kubelet", self._driver)
        else:
            _log.warning("%s: the kubelet refused the driver: %s", self._driver, cut(message.error))
        return api.RegistrationStatusResponse()
