"""What this process may use of its computer: CPUs and memory, less what the limits of containers take away. No torch here."""

import os
import platform
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import psutil


def cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine() or "unknown CPU"


def cpus_usable(root: Path = Path("/")) -> float:
    """CPUs this process may use: those it is bound to, or fewer where the quota of a control group says so.

    root  of the file system; a test gives a folder of its own
    """
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min([bound, *(quota for group in control_groups("cpu", root) if (quota := _cpu_quota(group)))])


def memory_left(root: Path = Path("/")) -> int:
    """Bytes of memory this process can still have: what the system can give, or less where a control group's limit is nearer."""
    left = [_memory_left(group) for group in control_groups("memory", root)]
    return max(0, min([psutil.virtual_memory().available, *(number for number in left if number is not None)]))


def thread_problem(threads: int, usable: float) -> str | None:
    """Threads that wait for each other's turn on too few CPUs are far slower than fewer threads."""
    if threads <= max(1, usable):
        return None
    return (
        f"torch uses {threads} threads and this process may use {usable:g} CPUs: expect slow and unsteady timings. "
        f"Set OMP_NUM_THREADS={max(1, int(usable))} before starting."
    )


def control_groups(controller: str, root: Path = Path("/")) -> Iterator[Path]:
    """Folders of the control groups that limit this process, its own first and then each one above it.

    A limit holds for all groups below it, so the smallest on the way up counts. Both kinds are read: of v2, where one
    tree holds all controllers, and of v1, where cpu and memory have trees of their own. Formats: man 7 cgroups, man 5 proc.
    """
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        for mount in _lines(root / "proc/self/mountinfo"):
            before, _, after = mount.partition(" - ")
            inside, where = before.split()[3:5]
            kind, _, options = after.split(" ", 2)
            if (kind == "cgroup2" and not controllers) or (
                kind == "cgroup" and controller in controllers.split(",") and controller in options.split(",")
            ):  # fmt: skip
                group, top = PurePosixPath(path), PurePosixPath(inside)
                if not group.is_relative_to(top) or ".." in group.parts:  # mounted from outside this container: its top is ours
                    group = top
                below = group.relative_to(top)
                for part in (below, *below.parents):
                    yield root / where.lstrip("/") / part


def _cpu_quota(group: Path) -> float | None:
    """CPUs: quota and period stand in one file of v2, in two of v1; "max" or -1 is no quota."""
    words = " ".join(_lines(group / "cpu.max") or _lines(group / "cpu.cfs_quota_us") + _lines(group / "cpu.cfs_period_us"))
    numbers = [_number(word) or 0 for word in words.split()]
    return numbers[0] / numbers[1] if len(numbers) == 2 and min(numbers) > 0 else None


def _memory_left(group: Path) -> int | None:
    """Limit less what is used; pages of files that nobody uses are given up first, so they count as free."""
    for limit, used, unused in (
        ("memory.max", "memory.current", "inactive_file"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        numbers = [_number("".join(_lines(group / name))) for name in (limit, used)]
        if None not in numbers:
            stat = dict(line.split(" ", 1) for line in _lines(group / "memory.stat"))
            return numbers[0] - numbers[1] + (_number(stat.get(unused, "")) or 0)
    return None


def _number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:  # "max", or no such file
        return None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
