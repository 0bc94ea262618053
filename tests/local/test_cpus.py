"""Threads from the quota of cgroup trees as kernels and containers show them."""

import os

import pytest

from local.cpus import affinity, fewest, quota, threads

V2_MOUNT = "30 23 0:26 {root} {point} rw,nosuid - cgroup2 cgroup rw,nsdelegate\n"
V1_MOUNT = "35 23 0:31 {root} {point} rw,nosuid - cgroup cgroup rw,cpu,cpuacct\n"
OTHER_MOUNTS = (
    "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
    "36 23 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
)


@pytest.fixture
def tree(tmp_path):
    """Lay a fake /proc and cgroup tree: `lay(cgroup_lines, mounts, {folder: {file: text}})`."""

    def lay(cgroup, mounts, groups):
        proc = tmp_path / "proc/self"
        proc.mkdir(parents=True)
        (proc / "cgroup").write_text(cgroup)
        (proc / "mountinfo").write_text(OTHER_MOUNTS + mounts)
        for folder, files in groups.items():
            path = tmp_path / folder.lstrip("/")
            path.mkdir(parents=True, exist_ok=True)
            for name, text in files.items():
                (path / name).write_text(text)
        return tmp_path

    return lay


def test_s12_v2_quota_in_a_container(tree):
    root = tree(
        "0::/\n",
        V2_MOUNT.format(root="/", point="/sys/fs/cgroup"),
        {"/sys/fs/cgroup": {"cpu.max": "400000 100000\n"}},
    )
    assert quota(root) == 4


def test_s12_the_smallest_quota_on_the_way_up_counts(tree):
    root = tree(
        "0::/user.slice/app.scope\n",
        V2_MOUNT.format(root="/", point="/sys/fs/cgroup"),
        {
            "/sys/fs/cgroup": {},
            "/sys/fs/cgroup/user.slice": {"cpu.max": "150000 100000\n"},
            "/sys/fs/cgroup/user.slice/app.scope": {"cpu.max": "max 100000\n"},
        },
    )
    assert quota(root) == 1.5


def test_s12_v1_quota(tree):
    root = tree(
        "4:memory:/docker/x\n2:cpu,cpuacct:/docker/x\n",
        V1_MOUNT.format(root="/", point="/sys/fs/cgroup/cpu,cpuacct"),
        {
            "/sys/fs/cgroup/cpu,cpuacct/docker/x": {
                "cpu.cfs_quota_us": "250000\n",
                "cpu.cfs_period_us": "100000\n",
            },
            "/sys/fs/cgroup/cpu,cpuacct": {
                "cpu.cfs_quota_us": "-1\n",
                "cpu.cfs_period_us": "100000\n",
            },
        },
    )
    assert quota(root) == 2.5


def test_s12_v1_container_that_sees_only_its_own_part(tree):
    root = tree(
        "2:cpu,cpuacct:/docker/x\n",
        V1_MOUNT.format(root="/docker/x", point="/sys/fs/cgroup/cpu"),
        {"/sys/fs/cgroup/cpu": {"cpu.cfs_quota_us": "50000", "cpu.cfs_period_us": "100000"}},
    )
    assert quota(root) == 0.5


def test_v1_container_with_a_path_of_the_host(tree):
    root = tree(
        "2:cpu,cpuacct:/kubepods/pod1/c1\n",
        V1_MOUNT.format(root="/docker/other", point="/sys/fs/cgroup/cpu"),
        {"/sys/fs/cgroup/cpu": {"cpu.cfs_quota_us": "200000", "cpu.cfs_period_us": "100000"}},
    )
    assert quota(root) == 2


def test_a_path_outside_the_namespace_stays_inside_the_mount(tree):
    root = tree(
        "0::/../../other\n",
        V2_MOUNT.format(root="/", point="/sys/fs/cgroup"),
        {"/sys/fs/cgroup": {"cpu.max": "300000 100000\n"}},
    )
    assert quota(root) == 3


@pytest.mark.parametrize("text", ["", "max", "max 100000", "-1 100000", "x y", "100 0", "0 100000"])
def test_no_limit(tree, text):
    root = tree(
        "0::/\n",
        V2_MOUNT.format(root="/", point="/sys/fs/cgroup"),
        {"/sys/fs/cgroup": {"cpu.max": text}},
    )
    assert quota(root) is None


def test_no_cgroups_at_all(tmp_path):
    assert quota(tmp_path) is None


@pytest.mark.parametrize(
    ("limits", "count"),
    [
        ((64, 64, 4.0), 4),
        ((64, 8, None), 8),
        ((4, 4, 1.9), 1),
        ((4, 4, 0.25), 1),
        ((2, None, 8.0), 2),
        ((None, None, None), 1),
    ],
)
def test_fewest(limits, count):
    assert fewest(*limits) == count


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system has no affinity mask")
def test_affinity_of_this_process():
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert affinity() == 1
        assert threads() == 1
    finally:
        os.sched_setaffinity(0, before)
    assert 1 <= threads() <= len(before)
