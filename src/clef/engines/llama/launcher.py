"""Turns itself into the program it is given, tied to the life of the process that started it.

    python -I -S launcher.py PARENT_PID PROGRAM [ARGUMENT ...]

Run by path, as a script of its own, so that it costs about 15 ms: standard library only and no package import.
The tie is Linux's parent-death signal, which survives exec. It is SIGKILL, because the parent is gone: nobody is
left to escalate when a busy or stuck server sits on a SIGTERM, and it has nothing to save. The signal is bound to
the thread that started us, so that has to be one that lives as long as the parent (the event loop's).
"""

import os
import signal
import sys

PR_SET_PDEATHSIG = 1
NOT_OURS = 2
"""Exit code when the parent was gone before the tie was made."""


def main() -> None:
    """Tie, check that the parent is still the one that started us, become the program."""
    parent, *program = sys.argv[1:]
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != int(parent):
            sys.exit(NOT_OURS)
    try:
        os.execv(program[0], program)  # noqa: S606 - an argument list is the point
    except OSError as error:
        sys.exit(f"error: cannot run {program[0]}: {error.strerror}")


if __name__ == "__main__":
    main()
