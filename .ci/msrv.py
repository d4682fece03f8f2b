"""Compares the stated minimum Rust version with what the dependencies of the library state."""

import json
import subprocess
import sys


def version(text):
    return tuple(int(part) for part in (text + ".0.0").split(".")[:3])


metadata = json.loads(
    subprocess.run(
        ["cargo", "metadata", "--format-version", "1", "--locked"],
        check=True, stdout=subprocess.PIPE,
    ).stdout
)
packages = {package["id"]: package for package in metadata["packages"]}
nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}


def needed(root):
    """Returns the packages that a package is built from, itself left out."""
    seen, waiting = set(), [root]
    while waiting:
        for dependency in nodes[waiting.pop()]["deps"]:
            is_normal = any(kind["kind"] in (None, "build") for kind in dependency["dep_kinds"])
            if is_normal and dependency["pkg"] not in seen:
                seen.add(dependency["pkg"])
                waiting.append(dependency["pkg"])
    return [packages[name] for name in seen]


failed = False
for root in metadata["workspace_members"]:
    stated = packages[root]["rust_version"]
    others = [p for p in needed(root) if p["rust_version"] and p["id"] not in metadata["workspace_members"]]
    greatest = max(others, key=lambda package: version(package["rust_version"]))
    name = packages[root]["name"]
    print(f"{name}: states {stated}; {greatest['name']} {greatest['version']} needs {greatest['rust_version']}")
    failed |= version(stated) < version(greatest["rust_version"])
sys.exit(failed)
