"""Locks of the package that a fork leaves whole.

A process that forks while one of its threads holds a lock gives its child a lock that nobody will ever open. So a fork
waits until the lock is free, and holds it itself: the child finds what the lock protects as it should be.
"""

from __future__ import annotations

import os
import threading


def lock_across_forks() -> threading.Lock:
    """A lock that lasts as long as the process: for modules, not for objects."""
    lock = threading.Lock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return lock
