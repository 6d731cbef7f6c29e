#!/usr/bin/env python3
"""How many relations of a paper reproduce with each reading of what the paper leaves open.

Usage: bench/readings.py PAPER [--seeds N] [--program FILE] [--out DIR] [--only NAME]...

`bench/readings/PAPER.toml` has the sets. A set is a name and changes to the paper's files, each the text that is
replaced and what it becomes; a text that is not there is an error. The baseline is the files as they are. Every set
runs with `anabranch lab run`, and becomes a row: how many relations reproduce, and which differ from the baseline.
Relations of our own schemes do not count.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tomllib

PAPERS = pathlib.Path(__file__).resolve().parent.parent / "papers"
SETS = pathlib.Path(__file__).with_suffix("")


def changed(paper, changes, folder):
    """The paper's files in another folder, with the changes of a set."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(PAPERS / paper, folder / paper)
    for change in changes:
        files = sorted((folder / paper).glob(change["files"]))
        found = 0
        for file in files:
            text = file.read_text()
            found += text.count(change["text"])
            file.write_text(text.replace(change["text"], change["becomes"]))
        if not found:
            sys.exit(f"{change['files']}: no '{change['text']}'")


def verdicts(program, ids, seeds, papers, out):
    """The relations of the paper's own schemes: whether each reproduces, and its number."""
    # Runs that several sets have in common are made once.
    out.mkdir(parents=True, exist_ok=True)
    (out / "runs").exists() or (out / "runs").symlink_to((out / "../../runs").resolve())
    command = [program, "lab", "run", *ids, "--seeds", str(seeds), "--jobs", "1", "--papers", papers, "--out", out]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    told = json.loads((out / "verdicts.json").read_text())
    return {
        (one["id"], one["relation"]): (one["verdict"] == "reproduces", one["measured"])
        for one in told
        if any(one["id"].startswith(id) for id in ids) and not one["published"].startswith("ours")
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paper")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--program", default="target/release/anabranch")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("lab-readings"))
    parser.add_argument("--only", action="append", help="only the sets whose name contains this")
    arguments = parser.parse_args()
    read = tomllib.loads((SETS / f"{arguments.paper}.toml").read_text())
    sets = [{"name": "baseline", "changes": []}, *read["set"]]
    if arguments.only:
        sets = [one for one in sets if any(only in one["name"] for only in ["baseline", *arguments.only])]
    (arguments.out / arguments.paper / "runs").mkdir(parents=True, exist_ok=True)
    baseline = None
    print("| set | reproduce | not as at the baseline |\n|---|---:|---|", flush=True)
    for one in sets:
        out = arguments.out / arguments.paper / one["name"].replace(" ", "-").replace("/", "-")
        changed(arguments.paper, one["changes"], out / "papers")
        ids = one.get("experiments", read.get("experiments", [arguments.paper]))
        got = verdicts(arguments.program, ids, arguments.seeds, out / "papers", out / "results")
        baseline = baseline or got
        other = [
            f"`{id}` {relation} {'reproduces' if reproduces else 'differs'} ({measured:.4g})"
            for (id, relation), (reproduces, measured) in got.items()
            if baseline.get((id, relation), (None,))[0] != reproduces and measured is not None
        ]
        reproduce = sum(reproduces for reproduces, _ in got.values())
        print(f"| {one['name']} | {reproduce} of {len(got)} | {'; '.join(other)} |", flush=True)


if __name__ == "__main__":
    main()
