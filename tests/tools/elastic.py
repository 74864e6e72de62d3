#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the loss of a host: time to the last step when one of four hosts fails at step 500 and comes back later.

  elastic.py ECHELON [WORK] [--rounds N] [--steps N] [--kill-at N] [--outage SECONDS] [--rate RATE]
                                                                               from the repository's root

  undisturbed   no host fails
  aborted       without a checkpoint: once the host is back, the run starts from scratch
  resumed       a checkpoint every 100 steps: once the host is back the same command resumes
  elastic       `echelon supervise` resumes on the three hosts that are left at once, and on four once the host is back

Kills every process of the host and takes its link away. Ranks compute for real and sleep until the time that a step
of their samples would take at --gflops, so that three hosts take 4/3 of the time of four. WORK: a folder on no host's
/tmp. Needs root and network namespaces (tests/cluster/hosts.sh); takes the hosts down at its end. Prints a Markdown
table: medians over the rounds, which run in turns."""
import argparse
import glob
import json
import os
import shutil
import statistics
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
HOSTS = os.path.join(HERE, "..", "cluster", "hosts.sh")
REMOTE = "/var/tmp/echelon-hosts/remote"
WAYS = ["undisturbed", "aborted", "resumed", "elastic"]
LIMIT_S = 600
LOST = 7


def hosts(*words):
    subprocess.run([HOSTS, *words], check=True, stdout=subprocess.DEVNULL)


def environment(work):
    text = subprocess.run([HOSTS, "env"], check=True, capture_output=True, text=True).stdout
    words = [word for line in text.splitlines() for word in line.removeprefix("export ").split()]
    found = dict(word.split("=", 1) for word in words)
    found.pop("SLURM_CONF", None)
    return {**os.environ, **found, "TMPDIR": work, "OMP_NUM_THREADS": "1", "PMIX_MCA_psec": "^munge"}


class Run:
    """One training, over as many attempts as it takes."""

    def __init__(self, args, way, number):
        self.args, self.way = args, way
        self.results = f"{args.work}/{way}-{number}"
        shutil.rmtree(self.results, ignore_errors=True)
        self.log = open(f"{self.results}.log", "w")

    def start(self):
        sets = ["train.epochs=0", f"train.steps={self.args.steps}", "run.progress=none", "device.threads=1",
                "device.pace_ms=-1", f"device.paced_gflops={self.args.gflops}", f"run.results={self.results}",
                "data.ragged=zero_weight", "evaluate.every_epochs=0", "checkpoint.every_epochs=0",
                "checkpoint.every_steps=" + ("0" if self.way == "aborted" else "100"), "run.hang_timeout_s=10"]
        train = [self.args.echelon, "train", f"{self.args.work}/digits.toml"]
        for one in sets:
            train += ["--set", one]
        launch = ["mpirun", "--mca", "plm", "rsh", "--mca", "plm_rsh_agent", REMOTE, "--map-by", "node", "--bind-to",
                  "none"]
        if self.way == "elastic":
            supervisor = [self.args.echelon, "supervise", "--restarts", "9", "--hosts", "h1,h2,h3,h4",
                          "--min-hosts", "2",
                          "--look", "1", "--probe", "ip link show br-{host} | grep -q LOWER_UP", "--"]
            words = supervisor + launch + ["-H", "{slots}", "-n", "{ranks}"] + train
        else:
            words = launch + ["-H", "h1,h2,h3,h4", "-n", "4"] + train
        return subprocess.Popen(words, cwd=self.args.work, env=environment(self.args.work), stdout=self.log,
                                stderr=subprocess.STDOUT)

    def rows(self):
        """Returns the rows of the newest attempt."""
        found = []
        for path in sorted(glob.glob(f"{self.results}/*/run-*/[0-9]*/metrics.jsonl"))[-1:]:
            with open(path) as file:
                for line in file:
                    if line.endswith("\n"):
                        found.append(json.loads(line))
        return [row for row in found if row["type"] == "step"]

    def attempts(self):
        return len(glob.glob(f"{self.results}/*/run-*/[0-9]*"))

    def until(self, condition, process=None):
        end = time.monotonic() + LIMIT_S
        while not condition():
            if time.monotonic() > end or (process and process.poll() is not None and not condition()):
                raise SystemExit(f"{self.way}: see {self.results}.log")
            time.sleep(0.02)

    def seconds(self):
        """Returns seconds to the last step, and from the kill to the next step that is trained."""
        begin = time.monotonic()
        process = self.start()
        gap = None
        if self.way != "undisturbed":
            self.until(lambda: self.rows() and self.rows()[-1]["step"] >= self.args.kill_at, process)
            killed = time.monotonic()
            hosts("fell", "h3")
            hosts("unplug", "h3")
            if self.way == "elastic":
                before = self.attempts()
                self.until(lambda: self.attempts() > before and self.rows(), process)
                gap = time.monotonic() - killed
                time.sleep(max(0, killed + self.args.outage - time.monotonic()))
                hosts("plug", "h3")
            else:
                process.wait(LIMIT_S)
                time.sleep(max(0, killed + self.args.outage - time.monotonic()))
                hosts("plug", "h3")
                before = self.attempts()
                process = self.start()
                self.until(lambda: self.attempts() > before and self.rows(), process)
                gap = time.monotonic() - killed
        if process.wait(LIMIT_S) != 0 or self.rows()[-1]["step"] != self.args.steps:
            raise SystemExit(f"{self.way}: see {self.results}.log")
        return time.monotonic() - begin, gap, self.attempts()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("echelon")
    parser.add_argument("work", nargs="?", default="/var/tmp/echelon-elastic")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--kill-at", type=int, default=500)
    parser.add_argument("--outage", type=float, default=20)
    parser.add_argument("--rate", default="1gbit")
    parser.add_argument("--gflops", type=float, default=1)
    args = parser.parse_args()
    shutil.rmtree(args.work, ignore_errors=True)
    os.makedirs(f"{args.work}/data")
    args.echelon = shutil.copy(args.echelon, f"{args.work}/echelon")
    shutil.copy("configs/smoke/digits.toml", args.work)
    shutil.copytree("data/digits", f"{args.work}/data/digits")
    hosts("up", "4", args.rate)
    took = {way: [] for way in WAYS}
    try:
        for number in range(args.rounds):
            for way in WAYS:
                took[way].append(Run(args, way, number).seconds())
                print(f"# round {number + 1}, {way}: {took[way][-1][0]:.1f} s", flush=True)
    finally:
        subprocess.run([HOSTS, "down"], check=False)
    base = statistics.median(seconds for seconds, _, _ in took["undisturbed"])
    print(f"\n| a host fails at step {args.kill_at} for {args.outage:g} s | attempts | to step {args.steps} | ratio | "
          "from the failure to the next step |\n|---|--:|--:|--:|--:|")
    for way in WAYS:
        seconds = statistics.median(one[0] for one in took[way])
        gap = "" if way == "undisturbed" else f"{statistics.median(one[1] for one in took[way]):.1f} s"
        print(f"| {way} | {took[way][0][2]} | {seconds:.1f} s | {seconds / base:.2f} | {gap} |")


if __name__ == "__main__":
    main()
