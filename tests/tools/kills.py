#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills runs of every strategy at random, starts them again, and checks that they lose nothing.

  kills.py ECHELON [--kills N] [--seed S] [--only "NAME;.."] [--at-once N] [--ranks N] [--set KEY=VALUE]..
                                                                               from the repository's root

Three ranks (--ranks) learn data/digits. A random rank, all ranks or the launcher gets SIGKILL at a random moment, and
the same command is given again, until the run is finished; then the next run begins, until there were N kills (50).
What is checked:

  - an attempt begins at the newest checkpoint that the attempt before had reported (status.json) or at a later one, and
    skips none as damaged: a resume compares each file with its checksums;
  - finished runs end with 0, at their last step, with every epoch's record once, and no half-written file is left;
  - where the strategy's weights do not depend on timing, they are those of a run that nobody disturbed.

Prints one line for each form of a strategy that `echelon info --strategies` lists, and for codecs and meshes. The exit
status is 1 where something was lost; the folders of that run are kept. Seconds: median from the start of the launcher to
the first step.
"""
import argparse
import concurrent.futures
import glob
import json
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

EPOCHS, STEPS = 12, 192
LIMIT_S = 120  # limit of a wait
COMMON = ["device.threads=1", "device.pace_ms=4", f"train.epochs={EPOCHS}", "checkpoint.every_steps=8",
          "checkpoint.every_epochs=1", "evaluate.every_epochs=6", "exchange.bucket_mb=0.05", "run.progress=none",
          "optimizer.momentum=0.5"]
# Codecs, an algorithm and meshes, under the default strategy.
OTHERS = {"int8": ["exchange.codec=int8"], "topk": ["exchange.codec=topk", "exchange.density=0.05"],
          "hierarchical": ["exchange.algorithm=hierarchical"], "pipeline": ["parallel.pipeline={ranks}"],
          "tensor": ["parallel.tensor={ranks}"]}


def ways(echelon, ranks, only=""):
    """Returns the settings of each line by its name, and the names of those whose weights depend on timing."""
    text = subprocess.run([echelon, "info", "--strategies"], capture_output=True, text=True, check=True).stdout
    forms = [json.loads(line) for line in text.splitlines()]
    sets = {form["name"]: form["sets"] for form in forms}
    sets |= {name: [one.format(ranks=ranks) for one in more] for name, more in OTHERS.items()}
    return ({name: more for name, more in sets.items() if not only or name in only.split(";")},
            {form["name"] for form in forms if form["by_timing"]})


def load(path):
    try:
        with open(path) as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


class Lost(Exception):
    pass


class Run:
    """One run in a folder of results of its own."""

    def __init__(self, echelon, ranks, results, sets):
        self.results = results
        words = [echelon, "train", "configs/smoke/digits.toml"]
        for one in [*COMMON, *sets, f"run.results={results}"]:
            words += ["--set", one]
        self.command = ["mpirun", "-n", str(ranks), "--oversubscribe", "--bind-to", "none", *words]

    def start(self):
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(self.command, stdout=self.log, stderr=subprocess.STDOUT)

    def text(self):
        self.log.seek(0)
        return self.log.read()

    def attempts(self):
        return sorted(glob.glob(f"{self.results}/*/run-*/[0-9][0-9]*"))

    def status(self):
        return load(self.attempts()[-1] + "/status.json") if self.attempts() else {}

    def has_row(self, attempts):
        """Tells whether an attempt after the first `attempts` has recorded something."""
        known = self.attempts()
        path = known[-1] + "/metrics.jsonl" if len(known) > attempts else ""
        return os.path.exists(path) and os.path.getsize(path) > 0

    def wait_for_row(self, attempts):
        """Returns the seconds until then; None where the run ended first."""
        start_s = time.monotonic()
        while self.process.poll() is None and time.monotonic() < start_s + LIMIT_S:
            if self.has_row(attempts):
                return time.monotonic() - start_s
            time.sleep(0.005)
        return None

    def saved(self):
        """Returns the step of the newest checkpoint that was reported."""
        found = re.search(r"step-(\d+)", str(self.status().get("checkpoint", "")))
        return int(found.group(1)) if found else 0

    def rows(self):
        for attempt in self.attempts():
            path = attempt + "/metrics.jsonl"
            with open(path if os.path.exists(path) else os.devnull) as file:
                yield from (json.loads(line) for line in file if line.endswith("\n"))

    def finish(self):
        """Waits for the end, which must be a regular one; returns the weights' checksum."""
        code = self.process.wait(LIMIT_S)
        if code != 0:
            raise Lost(f"ended with {code}:\n{self.text()[-3000:]}")
        summary = load(self.attempts()[-1] + "/summary.json")
        if (summary.get("state"), summary.get("steps")) != ("finished", STEPS):
            raise Lost(f"ended {summary.get('state')} at step {summary.get('steps')}")
        epochs = [row["epoch"] for row in self.rows() if row["type"] == "epoch"]
        if epochs != list(range(1, EPOCHS + 1)):
            raise Lost(f"recorded epochs {epochs}")
        left = [path for path in glob.glob(f"{self.results}/**", recursive=True) if ".tmp" in path]
        if left:
            raise Lost(f"left {left}")
        return summary["weights_checksum"]


def lives(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def kill_somewhere(run, attempts, draws, starts_s):
    """Returns True once something was killed, False where the run ended first; adds a start's seconds to `starts_s`."""
    if draws.random() < 0.2:  # while it starts
        time.sleep(draws.uniform(0.05, 0.7))
    else:
        start_s = run.wait_for_row(attempts)
        if start_s and attempts:
            starts_s.append(start_s)
        time.sleep(draws.uniform(0, 0.8))
    return kill_ranks(run.process, draws)


def kill_ranks(process, draws):
    """Kills ranks of a launcher, or itself, and waits until all are gone; returns False where it had ended."""
    if process.poll() is not None:
        return False
    ranks = [int(pid) for pid in
             subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True).stdout.split()]
    whom = draws.choice(["one", "one", "all", "launcher"]) if ranks else "launcher"
    for pid in {"one": ranks and [draws.choice(ranks)], "all": ranks, "launcher": [process.pid]}[whom]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    # Open MPI 4.1's launcher waits for itself when a rank dies while it starts others: it is killed once all are gone.
    end_s = time.monotonic() + LIMIT_S
    grace_s = time.monotonic() + 5
    while process.poll() is None or any(lives(pid) for pid in ranks):
        if time.monotonic() > end_s:
            raise Lost(f"ranks {[pid for pid in ranks if lives(pid)]} outlive a kill, or their launcher")
        if process.poll() is None and time.monotonic() > grace_s and not any(lives(pid) for pid in ranks):
            process.kill()
        time.sleep(0.01)
    return True


def soak(echelon, name, sets, by_timing, args, draws, work):
    """Returns kills, checkpoints that were resumed from, steps repeated, runs, and seconds of starts."""
    wanted, ranks = args.kills, args.ranks
    kills = resumed = repeated = runs = 0
    undisturbed, starts_s = {}, []
    while kills < wanted:
        seed = ["seed=%d" % (1 + runs % 2)]
        run = Run(echelon, ranks, f"{work}/{name.replace(', ', '-').replace(' ', '-')}-{runs}", sets + seed)
        saved, reached = 0, 0
        while True:
            attempts = len(run.attempts())
            run.start()
            killed = kills < wanted and kill_somewhere(run, attempts, draws, starts_s)
            if not killed:
                checksum = run.finish()
            text = run.text()
            begun = re.search(r"resuming  from step (\d+)", text)
            begins = "results   " in text
            if "damaged" in text:
                raise Lost(f"a checkpoint was damaged:\n{text[-3000:]}")
            if begins and saved > (int(begun.group(1)) if begun else 0):
                raise Lost(f"step {saved} was reported as saved, and the next attempt began at "
                           f"{begun.group(1) if begun else 0}:\n{text[-3000:]}")
            if begins and begun:
                resumed += 1
                repeated += max(0, reached - int(begun.group(1)))
            if not killed:
                break
            kills += 1
            saved = max(saved, run.saved())
            reached = max([row["step"] for row in run.rows() if row["type"] == "step"], default=0)
        runs += 1
        if by_timing:
            continue
        if seed[0] not in undisturbed:
            whole = Run(echelon, ranks, f"{work}/whole-{name.replace(', ', '-').replace(' ', '-')}-{seed[0]}", sets + seed)
            whole.start()
            undisturbed[seed[0]] = whole.finish()
        if checksum != undisturbed[seed[0]]:
            raise Lost(f"ended with other weights than an undisturbed run: {checksum}, {undisturbed[seed[0]]}")
    return kills, resumed, repeated, runs, starts_s


def line_of(echelon, name, sets, by_timing, args):
    """Returns the line of a strategy, and whether nothing was lost; keeps the folders of runs where something was."""
    work = tempfile.mkdtemp(prefix="echelon-kills-")
    try:
        draws = random.Random(f"{args.seed} {name}")
        kills, resumed, repeated, runs, starts_s = soak(echelon, name, sets, by_timing, args, draws, work)
    except (Lost, subprocess.TimeoutExpired) as error:
        return f"{name:22}  LOST (kept in {work}): {error}", False
    shutil.rmtree(work)
    weights = "nothing" if by_timing else "nothing; the same weights"
    return f"{name:22}{kills:7}{resumed:9}{repeated:16}{runs:6}{statistics.median(starts_s or [0]):9.2f}  {weights}", True


def prepare_environment():
    os.environ.setdefault("PMIX_MCA_psec", "^munge")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    if os.getuid() == 0:
        os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


def tell(ring, passed, wanted):
    """Prints the last line of a ring; returns its exit status."""
    line = f"{ring}: {passed} passed, {wanted - passed} failed, 0 skipped"
    print(line)
    if "ECHELON_TEST_SUMMARY" in os.environ:
        with open(os.environ["ECHELON_TEST_SUMMARY"], "a") as file:
            file.write(line + "\n")
    return 0 if passed == wanted else 1


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("echelon")
    options.add_argument("--kills", type=int, default=50)
    options.add_argument("--seed", type=int, default=int(time.time()))
    options.add_argument("--only", default="", help="names of lines, with ; between")
    options.add_argument("--at-once", type=int, default=2, help="strategies")
    options.add_argument("--ranks", type=int, default=3)
    options.add_argument("--set", action="append", default=[], help="a setting of all runs")
    args = options.parse_args()
    echelon = os.path.realpath(args.echelon)
    prepare_environment()
    wanted, by_timing = ways(echelon, args.ranks, args.only)
    print(f"seed {args.seed}")
    print(f"{'strategy':22}{'kills':>7}{'resumed':>9}{'steps repeated':>16}{'runs':>6}{'s':>9}  lost", flush=True)
    passed = 0
    with concurrent.futures.ThreadPoolExecutor(args.at_once) as pool:
        lines = [pool.submit(line_of, echelon, name, sets + args.set, name in by_timing, args)
                 for name, sets in wanted.items()]
        for line, good in (one.result() for one in lines):
            print(line, flush=True)
            passed += good
    return tell("kills", passed, len(wanted))


if __name__ == "__main__":
    sys.exit(main())
