"""Whether a file is nobody else's: one name, and no process that could still write into it."""

from __future__ import annotations

import fcntl
import os
import signal
from pathlib import Path

_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def is_sole(path: Path) -> bool:
    """Whether what takes the file's name away leaves its bytes to whoever has another link; False in doubt.

    Linux grants a lease for reading only where nobody has the file open for writing, mapped or not. A file
    system that knows no leases, or a file of somebody else, is a doubt.
    """
    try:
        handle = os.open(path, _OPEN)
    except OSError:
        return False
    try:
        if os.fstat(handle).st_nlink != 1:
            return False
        # who opens it to write while we hold the lease has us signalled: by a signal that does no harm
        fcntl.fcntl(handle, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True
