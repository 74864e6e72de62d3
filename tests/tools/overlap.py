#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how much of an exchange is hidden where compute and exchange share the cores: LeNet on hosts with shaped links
(tests/cluster/hosts.sh), one rank and one core a host.

  overlap.py ECHELON [--rate 1gbit] [--ranks 2] [--batch 64] [--steps 150] [--rounds 3] [--mca NAME VALUE]
No step can take less than its work on all cores (compute, engines, TCP in the kernel) divided by their number, nor less
than its bytes on the wire. The first bound is measured by the busy time of the whole machine (/proc/stat, softirq and
steal included): that of a run of twice as many steps less that of a run; waits that poll count as work. Forms of
overlap alternate within each round; the table has medians. Needs root, network namespaces and a
machine that does nothing else; takes the hosts down at its end."""
import argparse
import glob
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

from planner import APART, BASE, HOSTS

FORMS = {
    "no exchange": APART,
    "none": ["exchange.overlap=none"],
    "buckets": ["exchange.overlap=buckets", "exchange.bucket_mb=0.25"],
    "layers": ["exchange.overlap=layers", "exchange.bucket_mb=0.25"],
}
SKIPPED = 10  # steps at the start


def busy_s():
    """Returns the seconds that the machine's cores have worked since it started."""
    with open("/proc/stat") as file: fields = [int(x) for x in file.readline().split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


class Bench:
    def __init__(self, args, work):
        self.args, self.work = args, work
        self.echelon = f"{work}/echelon"
        shutil.copy(args.echelon, self.echelon)
        with open(f"{work}/config.toml", "w") as file: file.write(BASE.format(work=work))
        self.call([self.echelon, "data", "synth", "--out", f"{work}/data", "--samples", "8192", "--shape", "1,28,28", "--classes", "10"])

    def call(self, words):
        done = subprocess.run(words, cwd=self.work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
        if done.returncode: sys.exit(f"{' '.join(words)}: code {done.returncode}\n{done.stdout[-2000:]}")

    def run(self, sets, steps):
        """Returns the busy seconds of the machine, and the records of steps."""
        folder = tempfile.mkdtemp(dir=self.work)
        words = [HOSTS, "mpirun"] + [word for pair in self.args.mca for word in ("--mca", *pair)]
        words += ["-n", str(self.args.ranks), self.echelon, "train", "config.toml"]
        for one in sets + [f"batch.global={self.args.batch * self.args.ranks}", f"train.steps={steps}", f"run.results={folder}"]: words += ["--set", one]
        before = busy_s()
        self.call(words)
        busy = busy_s() - before
        rows = [json.loads(line) for line in open(glob.glob(f"{folder}/*/run-*/*/metrics.jsonl")[0])]
        return busy, [row for row in rows if row["type"] == "step"][SKIPPED:]

    def measure(self, sets):
        """Returns for a step: seconds, seconds that compute waited for the exchange, busy seconds of the machine."""
        short, _ = self.run(sets, self.args.steps)
        long, rows = self.run(sets, 2 * self.args.steps)
        total = statistics.median(row["time"]["total"] - row["time"]["hooks"] for row in rows)
        return total, statistics.median(row["time"]["exchange"] for row in rows), (long - short) / self.args.steps


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("echelon")
    parser.add_argument("--rate", default="1gbit")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--batch", type=int, default=64, help="samples of a rank")
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mca", nargs=2, action="append", default=[], help="of Open MPI, such as btl_tcp_sndbuf 131072")
    args = parser.parse_args()
    if os.path.exists("/var/tmp/echelon-hosts"): sys.exit("other hosts are up: tests/cluster/hosts.sh down")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as work:
        bench = Bench(args, work)
        found = {name: [] for name in FORMS}
        subprocess.run([HOSTS, "up", str(args.ranks), args.rate], check=True)
        try:
            for _ in range(args.rounds):
                for name, sets in FORMS.items(): found[name].append(bench.measure(sets))
        finally:
            subprocess.run([HOSTS, "down"], check=True)
    cores = os.cpu_count()
    median = {name: [statistics.median(one[i] for one in some) for i in range(3)] for name, some in found.items()}
    alone = median["no exchange"][0]
    print("| overlap | step, ms | beyond compute, ms | exposed, ms | work of all cores, ms | work / cores, ms | step / bound |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, (total, exposed, busy) in median.items():
        print(f"| {name} | {1e3 * total:.2f} | {1e3 * (total - alone):.2f} | {1e3 * exposed:.2f} | {1e3 * busy:.2f} | "
              f"{1e3 * busy / cores:.2f} | {total * cores / busy:.2f} |")


if __name__ == "__main__":
    main()
