#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills studies at random, starts them again, and compares them with the same studies undisturbed.

  study_kills.py ECHELON [--kills N] [--seed S] [--only NAME]     from the repository's root

In each study two ranks run small cells on data/digits. A random rank, all ranks or the launcher gets SIGKILL at a
random moment, and the same command is given again, until there were N kills (20) and the study is done; if it is
done before, another one begins. A cell with which a job has died is left alone until it has a new checkpoint, because
another death would count against it. Then:

  - the study's table must be that of an undisturbed study, except for times and folders;
  - each cell's runs must have each step once: nothing finished was run again.

Prints one line per study; exit status 1 where something was lost.
"""
import argparse
import glob
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time

from kills import LIMIT_S, Lost, kill_ranks, load, prepare_environment, tell

EXPERIMENT = """
name = "s"
[model]
zoo = "digits_cnn"
[data]
train = "data/digits/train"
test = "data/digits/test"
sharding = "record"
[batch]
global = 96
[train]
epochs = 9
[optimizer]
learning_rate = 0.05
momentum = 0.9
[device]
threads = 1
pace_ms = 8
[checkpoint]
every_steps = 8
[goal]
metric = "test_accuracy"
target = 0.5
"""
SEARCH = """
trials = 9
halving = { eta = 3, first_epochs = 1%s }
[study.ranges]
"optimizer.learning_rate" = { low = 1e-3, high = 0.5, log = true }
"optimizer.momentum" = { low = 0.0, high = 0.95 }
"""
STUDIES = {
    "cells": "[study]\nranks = [1, 2]\n[study.axes]\n\"batch.global\" = [48, 96]\n"
             "\"exchange.strategy\" = [\"synchronous\", \"averaging\"]\n",
    "random, halving, 2 side by side": "[study]\nranks = [1]\nsearch = \"random\"\n" + SEARCH % "",
    "grid, halving": "[study]\nranks = [2]\nsearch = \"grid\"\ngrid_steps = 3\n" + SEARCH % "",
    "Bayesian, asynchronous halving": "[study]\nranks = [2]\nsearch = \"bayesian\"\n" + SEARCH % ", asynchronous = true",
}
BY_TIME = re.compile(r"took|folder|_s$|_mb$|seconds|samples_per|samples/s|host|started|hash|process")


class Study:
    """A study in a folder of its own."""

    def __init__(self, echelon, work, text):
        os.makedirs(work)
        self.folder = f"{work}/results/s"
        path = f"{work}/s.toml"
        with open(path, "w") as file:
            file.write(EXPERIMENT + f"[run]\nresults = \"{work}/results\"\n" + text)
        self.command = ["mpirun", "-n", "2", "--oversubscribe", "--bind-to", "none", echelon, "scale", path]

    def start(self):
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(self.command, stdout=self.log, stderr=subprocess.STDOUT)

    def finish(self):
        code = self.process.wait(LIMIT_S)
        if code not in (0, 8):
            self.log.seek(0)
            raise Lost(f"ended with {code}:\n{self.log.read()[-3000:]}")

    def cells(self):
        return {path: load(path) for path in sorted(glob.glob(f"{self.folder}/*/cell.json"))}

    def fragile(self):
        """Tells whether a cell runs that the next death of the job would end."""
        for path, cell in self.cells().items():
            saved = [int(re.search(r"step-(\d+)", name).group(1))
                     for name in glob.glob(os.path.dirname(path) + "/run-*/checkpoints/step-*.json")]
            if cell["state"] in ("running", "waiting") and cell["deaths"] > 0 and max(saved, default=0) <= cell["step"]:
                return True
        return False

    def table(self):
        """Returns the table of a search, else the figures of each cell, without what depends on time."""
        if not os.path.exists(f"{self.folder}/trials.json"):
            rows = []
            for path, cell in self.cells().items():
                run = load(cell["attempt"] + "/summary.json")
                rows.append([path.split("/")[-2], cell["state"], run.get("test_accuracy"), run.get("test_loss"),
                             run.get("weights_checksum")])
            return rows
        with open(f"{self.folder}/study.md") as file:
            rows = [[word.strip() for word in line.split("|")] for line in file]
        heading = next(row for row in rows if "place" in row)
        kept = [i for i, word in enumerate(heading) if not BY_TIME.search(word)]
        return [[row[i] for i in kept] if len(row) == len(heading) else row for row in rows]

    def check_steps(self):
        """Checks that each run has the rows of each step once."""
        for run in glob.glob(f"{self.folder}/*/run-*"):
            steps = []
            for path in sorted(glob.glob(f"{run}/[0-9]*/metrics.jsonl")):
                with open(path) as file:
                    rows = [json.loads(line) for line in file if line.endswith("\n")]
                steps += [row["step"] for row in rows if row["type"] == "step"]
            if steps != list(range(1, len(steps) + 1)):
                raise Lost(f"{run}: recorded steps {steps}")


def attempts_of(path):
    return sorted(glob.glob(os.path.dirname(path) + "/run-*/[0-9]*"))


def line_of(echelon, name, text, args, work):
    draws = random.Random(f"{args.seed} {name}")
    try:
        whole = Study(echelon, f"{work}/whole", text)
        whole.start()
        whole.finish()
        kills = studies = again = 0
        while kills < args.kills:
            study = Study(echelon, f"{work}/{studies}", text)
            over = {}
            while True:
                study.start()
                if kills < args.kills:
                    time.sleep(draws.uniform(0.3, 2.5))
                    while study.fragile() and study.process.poll() is None:
                        time.sleep(0.05)
                    killed = kill_ranks(study.process, draws)
                else:
                    killed = False
                if not killed:
                    study.finish()
                again += sum(attempts != attempts_of(path) for path, attempts in over.items())
                if not killed:
                    break
                kills += 1
                over = {path: attempts_of(path) for path, cell in study.cells().items()
                        if cell.get("state") in ("finished", "diverged", "left out")}
            studies += 1
            failed = [cell["reason"] for cell in study.cells().values() if cell["state"] == "failed"]
            if failed:
                raise Lost(f"cells failed: {failed}")
            if study.table() != whole.table():
                raise Lost(f"another table:\n{study.table()}\nundisturbed:\n{whole.table()}")
            study.check_steps()
        if again:
            raise Lost(f"{again} finished cells were run again")
        return f"{name:34}{kills:7}{studies:9}  nothing; the same table", True
    except (Lost, subprocess.TimeoutExpired) as error:
        return f"{name:34}  LOST: {error}", False


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("echelon")
    options.add_argument("--kills", type=int, default=20)
    options.add_argument("--seed", type=int, default=int(time.time()))
    options.add_argument("--only", default="", help="name of a line")
    args = options.parse_args()
    echelon = os.path.realpath(args.echelon)
    prepare_environment()
    wanted = {name: text for name, text in STUDIES.items() if args.only in ("", name)}
    print(f"seed {args.seed}")
    print(f"{'study':34}{'kills':>7}{'studies':>9}  lost", flush=True)
    passed = 0
    for name, text in wanted.items():
        with tempfile.TemporaryDirectory() as work:
            line, good = line_of(echelon, name, text, args, work)
        print(line, flush=True)
        passed += good
    return tell("study_kills", passed, len(wanted))


if __name__ == "__main__":
    sys.exit(main())
