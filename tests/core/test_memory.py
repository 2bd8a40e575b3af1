"""Memory that a loop frees and takes again stays with the process."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

COUNTS = """
import resource, threading
import numpy as np
from seesaw_cf.base.system import keep_memory

def loop(found):
    def faults(times):
        start = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
        for _ in range(times):
            arrays = [np.ones(400_000) for _ in range(4)]
            del arrays
        return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - start
    found.append(faults(20))
    keep_memory()
    faults(2)
    found.append(faults(20))

found = []
thread = threading.Thread(target=loop, args=[found])
thread.start()
thread.join()
print(*found)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library keeps memory by its own rules")
def test_a_loop_gets_the_memory_that_it_freed() -> None:
    """20 times 13 MB are 65,000 pages of 4 kB: fetched each time, or once."""
    done = subprocess.run([sys.executable, "-c", COUNTS], check=True, capture_output=True, text=True)
    before, after = map(int, done.stdout.split())
    assert before > 20_000
    assert after < before / 10
