"""A control plane and KWOK as child processes on loopback: gone when the block ends, or we do.

It has no kubelet and no containers, and needs no root: what runs on its nodes, KWOK plays.
"""

from hami_mock.fleet.sandbox.control_plane import Sandbox, free_ports, sandbox
from hami_mock.fleet.sandbox.programs import Programs, cache_folder, find_programs

__all__ = ["Programs", "Sandbox", "cache_folder", "find_programs", "free_ports", "sandbox"]
