"""Turns `clef` and `python -m clef` into a command.

Until the command is loaded, and after it is done, Ctrl+C ends the process without a word.
"""

import gc
import signal

# First, since the imports that follow take a tenth of a second; not where clef was told to ignore it.
_may_interrupt = signal.getsignal(signal.SIGINT) is signal.default_int_handler
if _may_interrupt:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> None:
    """Run the command line."""
    gc.disable()  # what is loaded stays: to look through it again and again takes a tenth of the start
    from clef.cli.main import main as run

    gc.enable()
    if _may_interrupt:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        run()
    finally:
        if _may_interrupt:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    main()
