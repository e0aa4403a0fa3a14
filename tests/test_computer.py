"""What this process may use, read from copies of the files that Linux shows: control groups of both kinds, nested, from inside."""

from types import SimpleNamespace

import psutil
import pytest

from shapelab import computer
from shapelab.computer import cpus_usable, memory_left, thread_problem

V2 = "31 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate"
V1 = (
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755",
    "32 31 0:29 {inside} /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct",
    "33 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset",
    "34 31 0:32 {inside} /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory",
)
NO_LIMIT_V1 = 9223372036854771712  # what v1 shows where nobody set a limit


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    """Eight CPUs and 64 GB free."""
    monkeypatch.setattr(computer.os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=64 * 10**9))


@pytest.fixture
def linux(tmp_path):
    """Writes a machine's files: this process's groups, the mounts, and files by their path under /sys/fs/cgroup."""

    def write(groups, mounts, files):
        for path, text in {
            "proc/self/cgroup": groups,
            "proc/self/mountinfo": "\n".join(mounts) + "\n",
            **{f"sys/fs/cgroup/{name}": f"{text}\n" for name, text in files.items()},
        }.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        return tmp_path

    return write


def v1(inside="/"):
    return [line.format(inside=inside) for line in V1]


CPU_QUOTAS = {
    "v2, its own": ("0::/pod/me\n", [V2], {"pod/me/cpu.max": "150000 100000"}, 1.5),
    "v2, above": ("0::/pod/me\n", [V2], {"pod/me/cpu.max": "max 100000", "pod/cpu.max": "250000 100000"}, 2.5),
    "v2, the smallest counts": ("0::/pod/me\n", [V2], {"pod/me/cpu.max": "400000 100000", "pod/cpu.max": "50000 100000"}, 0.5),
    "v2, its own is smaller": ("0::/pod/me\n", [V2], {"pod/me/cpu.max": "50000 100000", "pod/cpu.max": "400000 100000"}, 0.5),
    "v2, in a namespace": ("0::/\n", [V2], {"cpu.max": "200000 100000"}, 2),
    "v2, moved out of its namespace": ("0::/../other\n", [V2], {"cpu.max": "200000 100000"}, 2),
    "v2, no quota": ("0::/\n", [V2], {"cpu.max": "max 100000"}, 8),
    "v2, more than there are": ("0::/\n", [V2], {"cpu.max": "1600000 100000"}, 8),
    "v2, damaged": ("0::/\n", [V2], {"cpu.max": ""}, 8),
    "a sibling's quota": ("0::/pod/me\n", [V2], {"pod/you/cpu.max": "50000 100000"}, 8),
    "v1, its own": (
        "4:cpuset:/\n3:cpu,cpuacct:/docker/ab\n", v1(),
        {"cpu,cpuacct/docker/ab/cpu.cfs_quota_us": 300000, "cpu,cpuacct/docker/ab/cpu.cfs_period_us": 100000}, 3,
    ),
    "v1, above": (
        "3:cpu,cpuacct:/docker/ab\n", v1(),
        {"cpu,cpuacct/docker/ab/cpu.cfs_quota_us": -1, "cpu,cpuacct/docker/ab/cpu.cfs_period_us": 100000,
         "cpu,cpuacct/docker/cpu.cfs_quota_us": 25000, "cpu,cpuacct/docker/cpu.cfs_period_us": 50000}, 0.5,
    ),
    "v1, from inside, its top is our group": (
        "3:cpu,cpuacct:/docker/ab\n", v1("/docker/ab"), {"cpu,cpuacct/cpu.cfs_quota_us": 150000, "cpu,cpuacct/cpu.cfs_period_us": 100000}, 1.5,
    ),
    "v1, nested, from inside": (
        "3:cpu,cpuacct:/docker/ab/job\n", v1("/docker/ab"),
        {"cpu,cpuacct/job/cpu.cfs_quota_us": 75000, "cpu,cpuacct/job/cpu.cfs_period_us": 100000}, 0.75,
    ),
    "both, as systemd's hybrid": (
        "3:cpu,cpuacct:/a\n0::/b\n", [*v1(), "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw"],
        {"cpu,cpuacct/a/cpu.cfs_quota_us": 200000, "cpu,cpuacct/a/cpu.cfs_period_us": 100000, "unified/b/cgroup.procs": 1}, 2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CPU_QUOTAS)
def test_the_smallest_cpu_quota_on_the_way_up_counts(linux, case):
    groups, mounts, files, expected = CPU_QUOTAS[case]
    assert cpus_usable(linux(groups, mounts, files)) == expected


def test_cpus_without_linux(tmp_path, monkeypatch):
    assert cpus_usable(tmp_path) == 8
    monkeypatch.delattr(computer.os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(computer.os, "cpu_count", lambda: 6)
    assert cpus_usable(tmp_path) == 6


def v2_memory(group, limit, used, inactive=0):
    return {
        f"{group}/memory.max": limit,
        f"{group}/memory.current": used,
        f"{group}/memory.stat": f"anon 7\ninactive_file {inactive}",
    }


def v1_memory(group, limit, used, inactive=0):
    stat = f"inactive_file 1\ntotal_inactive_file {inactive}"
    files = {"memory.limit_in_bytes": limit, "memory.usage_in_bytes": used, "memory.stat": stat}
    return {f"memory/{group}/{name}": value for name, value in files.items()}


MEMORY_LIMITS = {
    "v2": ("0::/me\n", [V2], v2_memory("me", 2 * 10**9, 5 * 10**8), 1_500_000_000),
    "v2, files nobody uses are free": ("0::/me\n", [V2], v2_memory("me", 2 * 10**9, 5 * 10**8, 4 * 10**8), 1_900_000_000),
    "v2, no limit": ("0::/me\n", [V2], v2_memory("me", "max", 5 * 10**8), 64 * 10**9),
    "v2, above": ("0::/pod/me\n", [V2], v2_memory("pod/me", "max", 10**8) | v2_memory("pod", 10**9, 4 * 10**8), 600_000_000),
    "v2, the nearest limit counts": (
        "0::/pod/me\n", [V2], v2_memory("pod/me", 3 * 10**9, 0) | v2_memory("pod", 4 * 10**9, 3 * 10**9), 10**9,
    ),
    "v2, over its limit": ("0::/me\n", [V2], v2_memory("me", 10**9, 2 * 10**9), 0),
    "v1": ("9:memory:/docker/ab\n", v1(), v1_memory("docker/ab", 10**9, 7 * 10**8, 10**8), 400_000_000),
    "v1, from inside": ("9:memory:/docker/ab\n", v1("/docker/ab"), v1_memory("", 10**9, 7 * 10**8), 300_000_000),
    "v1, above": (
        "9:memory:/docker/ab\n", v1(), v1_memory("docker/ab", NO_LIMIT_V1, 10**8) | v1_memory("docker", 10**9, 2 * 10**8), 800_000_000,
    ),
    "v1, no limit": ("9:memory:/\n", v1(), v1_memory("", NO_LIMIT_V1, 10**8), 64 * 10**9),
}  # fmt: skip


@pytest.mark.parametrize("case", MEMORY_LIMITS)
def test_the_nearest_memory_limit_on_the_way_up_counts(linux, case):
    groups, mounts, files, expected = MEMORY_LIMITS[case]
    assert memory_left(linux(groups, mounts, files)) == expected


def test_memory_without_linux(tmp_path):
    assert memory_left(tmp_path) == 64 * 10**9


def test_here():
    assert 0 < cpus_usable() <= 8 and 0 <= memory_left() <= 64 * 10**9


def test_too_many_threads_are_a_sentence():
    assert "64 threads" in thread_problem(64, 2) and "OMP_NUM_THREADS=2 " in thread_problem(64, 2)
    assert "OMP_NUM_THREADS=1 " in thread_problem(2, 0.5)


@pytest.mark.parametrize("threads,usable", [(2, 2), (1, 2), (1, 0.5)])
def test_enough_cpus_are_no_problem(threads, usable):
    assert thread_problem(threads, usable) is None
