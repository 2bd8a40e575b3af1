"""How much memory a device has, and how much of it is free."""

from __future__ import annotations

import os
import re
from pathlib import Path

import torch

_MEMORY = Path("/proc/meminfo")


def physical_memory() -> int:
    """Return bytes of memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def free_memory(device: torch.device) -> int:
    """Return bytes that a device can give this process; half of the machine's memory where the system does not say.

    On Linux the cache of files counts as free: it fills the memory of any machine that has run for a while. Processes
    of one `torchrun` on a machine share its memory, and each has a GPU of its own.
    """
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    text = _MEMORY.read_text(encoding="ascii") if _MEMORY.exists() else ""
    available = re.search(r"^MemAvailable: +(\d+) kB$", text, re.MULTILINE)
    free = int(available[1]) * 1024 if available else physical_memory() // 2
    return free // int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
