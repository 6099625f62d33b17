"""Where the program starts: `hami-mock`, `k8s-device-plugin` and `python -m hami_mock`."""

import gc
import signal
import sys


def main() -> int:
    """Import the program and run it."""
    # Ctrl-C ends it at once and without a traceback, wherever it is; what has something to tidy up
    # takes the signal itself. Where it is ignored (nohup), it stays so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Held back until it is known whether this is an agent, which doesn't end for it.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    # Imports make a hundred thousand objects and no garbage. To look for some meanwhile would take
    # longer than to register with the kubelet; what runs for long turns it on again.
    gc.disable()
    from hami_mock.cli import main

    return main.main()


if __name__ == "__main__":
    sys.exit(main())
