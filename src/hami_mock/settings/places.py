"""Where things are unless the user says otherwise; light, for `ctl` needs it too."""

CONTROL_SOCKET = "/run/hami-mock/control.sock"
DRIVER_ROOT = "/var/lib/hami-mock/driver"
"""Not in /run: where that is mounted noexec, no library could be loaded from there."""
