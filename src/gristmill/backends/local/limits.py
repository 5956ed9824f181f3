"""How many files this process may have open: every queued block of shared memory is one."""

import resource

ENOUGH = 65_536


def allow_many_files() -> int:
    """Raise the soft limit as far as the system lets us, up to ENOUGH; return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return ENOUGH if soft == resource.RLIM_INFINITY else soft
