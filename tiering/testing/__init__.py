"""What tests of stores need, for this package and for whoever writes a backend of their own.

Owns the conformance suite, real servers, and stores and a proxy that fail on purpose; knows nothing
of what objects mean.
Needs pytest; no product code imports it.
"""

from tiering.testing.conformance import StoreConformance
from tiering.testing.faults import FaultyStore
from tiering.testing.proxy import Fault, FaultProxy, SeenRequest
from tiering.testing.servers import (
    AzureServer,
    S3Server,
    azurite_server,
    find_azurite,
    find_weed,
    has_moto,
    moto_server,
    seaweed_server,
)

__all__ = [
    "AzureServer",
    "Fault",
    "FaultProxy",
    "FaultyStore",
    "S3Server",
    "SeenRequest",
    "StoreConformance",
    "azurite_server",
    "find_azurite",
    "find_weed",
    "has_moto",
    "moto_server",
    "seaweed_server",
]
