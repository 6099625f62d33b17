"""Where things are unless the user says otherwise; light, for `ctl` needs it too."""

CONTROL_SOCKET = "/run/hami-mock/control.sock"
DRIVER_ROOT = "/run/hami-mock/driver"
