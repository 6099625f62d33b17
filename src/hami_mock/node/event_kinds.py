"""The kinds of event, in a form that Kubernetes accepts as the reason of an Event. Pure."""

from enum import StrEnum


class Kind(StrEnum):
    """What an event is about."""

    CARD_FAILED = "CardFailed"
    CARD_RECOVERED = "CardRecovered"
    CARD_LOST = "CardLost"
    CARD_RETURNED = "CardReturned"
    CARD_DEGRADED = "CardDegraded"
    CARD_RESTORED = "CardRestored"
    CARD_CUT = "CardCut"
    XID = "Xid"
    FAULT_BEGAN = "FaultBegan"
    FAULT_ENDED = "FaultEnded"
    STREAMS_DROPPED = "StreamsDropped"
    CONFIGURATION_CHANGED = "ConfigurationChanged"
    CONFIGURATION_REJECTED = "ConfigurationRejected"
    DEVICES_RELEASED = "DevicesReleased"
    SCENARIO_STARTED = "ScenarioStarted"
    SCENARIO_ENDED = "ScenarioEnded"
    SCENARIO_STEP_FAILED = "ScenarioStepFailed"


WARNINGS = {
    Kind.CARD_FAILED,
    Kind.CARD_LOST,
    Kind.CARD_DEGRADED,
    Kind.XID,
    Kind.FAULT_BEGAN,
    Kind.STREAMS_DROPPED,
    Kind.CONFIGURATION_REJECTED,
    Kind.SCENARIO_STEP_FAILED,
}
"""The kinds that say that something got worse."""
