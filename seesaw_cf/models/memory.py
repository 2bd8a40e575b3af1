"""How much memory a device has, and how much of it is free."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import torch

_MEMORY, _OWN_GROUPS, _GROUPS = Path("/proc/meminfo"), Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
# Controllers of a hierarchy of control groups, "" of version 2 -> its folder, and files of limit and use.
_FILES = {
    "": (".", "memory.max", "memory.current"),
    "memory": ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
}


def physical_memory() -> int:
    """Return bytes of memory of this machine, or that its container or its job may use."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *(limit for limit, _ in _limits())])


def free_memory(device: torch.device) -> int:
    """Return bytes that a device can give this process; half of the machine's memory where the system does not say.

    On Linux the cache of files counts as free: it fills the memory of any machine that has run for a while.
    """
    if device.type == "cuda":  # what torch holds and nothing uses is free, too
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0]) + unused
    available = re.search(r"^MemAvailable: +(\d+) kB$", _text(_MEMORY), re.MULTILINE)
    free = int(available[1]) * 1024 if available else physical_memory() // 2
    return min([free, *(max(limit - used, 0) for limit, used in _limits())])


def _limits() -> Iterator[tuple[int, int]]:
    """Yield limit and use, in bytes, of every control group of this process that has a limit."""
    for line in _text(_OWN_GROUPS).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers not in _FILES:
            continue
        below, limit, used = _FILES[controllers]
        root = _GROUPS / below
        group = root / path.strip("/")  # in a container a path of the host, which is not there: its root is
        for folder in (group, *group.parents):
            if folder.is_relative_to(root) and (bound := _text(folder / limit).strip()).isdecimal():
                caches = re.findall(r"^(?:total_)?inactive_file (\d+)$", _text(folder / "memory.stat"), re.MULTILINE)
                yield int(bound), int(_text(folder / used) or 0) - max(map(int, caches), default=0)


def _text(file: Path) -> str:
    return file.read_text(encoding="ascii") if file.is_file() else ""
