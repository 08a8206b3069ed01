"""Turns itself into the program it is given, or its keeper, tied to the life of the process that started it.

    python -I -S launcher.py signal PARENT_PID PROGRAM [ARGUMENT ...]
    python -I -S launcher.py pipe PARENT_PID PROGRAM [ARGUMENT ...]

Run by path, as a script of its own, so that it costs about 15 ms: standard library only and no package import.

signal  Linux's parent-death signal, which survives exec: the launcher becomes the program. The signal is bound to the
        thread that started us, so that has to be one that lives as long as the parent (the event loop's).
pipe    everywhere else: the launcher stays as the program's parent, and ends it when our stdin closes, of which the
        starting process alone holds the other end. It ends as the program does, by the same code or signal.

Both end the program by SIGKILL, because the parent is gone: nobody is left to escalate when a busy or stuck server
sits on a SIGTERM, and it has nothing to save.
"""

import os
import signal
import subprocess
import sys
import threading

PR_SET_PDEATHSIG = 1
NOT_OURS = 2
"""Exit code when the parent was gone before the tie was made."""


def become(parent: int, program: list[str]) -> None:
    """Tie by the parent-death signal, check that the parent is still the one that started us, become the program."""
    import ctypes

    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(NOT_OURS)
    os.execv(program[0], program)  # noqa: S606 - an argument list is the point


def keep(program: list[str]) -> None:
    """Run the program until it ends, or until nobody holds the other end of our stdin."""
    # Handlers and not SIG_IGN, which the program would inherit. It gets these signals itself, by its group.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave_to_the_program)
    child = subprocess.Popen(program, stdin=subprocess.DEVNULL)
    threading.Thread(target=_end_with_pipe, args=(child,), daemon=True).start()
    code = child.wait()
    if code < 0:
        _end_by(-code)
    # Not sys.exit: the thread that waits for stdin holds a lock that an orderly end would wait for.
    os._exit(code)


def _leave_to_the_program(number: int, _: object) -> None:
    """What a signal does to the launcher: nothing."""


def _end_with_pipe(child: "subprocess.Popen[bytes]") -> None:
    while os.read(0, 1):
        pass
    if sys.platform != "win32" and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)  # what the program started as well; and us
    child.kill()


def _end_by(number: int) -> None:
    """End by a signal, as the program did, without a second core file."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Not by signal.signal, which refuses SIGKILL; its handler is the default one anyway.
    if number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def main() -> None:
    """Tie and run."""
    tie, parent, *program = sys.argv[1:]
    try:
        become(int(parent), program) if tie == "signal" else keep(program)
    except OSError as error:
        sys.exit(f"error: cannot run {program[0]}: {error.strerror}")


if __name__ == "__main__":
    main()
