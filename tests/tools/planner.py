#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares `echelon plan` with runs: predictions for every strategy on hosts with shaped links (hosts.sh), written before
anything is measured, then the runs, then the table of both as markdown on standard output.

  planner.py ECHELON [WORK] [--table NAME ...] [--hosts 2 4 8] [--rates 100mbit 1gbit] [--only TEXT ...] [--stop-after predict]

WORK: a folder on no host's /tmp (default /var/tmp/echelon-planner); finished runs are not repeated, so the same command
resumes where it was stopped; existing predictions are kept: delete WORK/predicted.json to predict again.
Tables: alike     paced ranks with 16 samples each, which take the same time per step
        jitter    ranks that compute, then sleep to a time which varies from step to step
        compute   real compute on 2 hosts with one core each

Calibration: one run per table (the step), and `bench network` on all hosts (latency, bandwidth, bandwidth under load). The
run has one rank; for `compute` it has two on two hosts, which compute at the same time and exchange only their weights, at
the end of an epoch, so that the ranks share caches and memory; a second run of `compute`, a ring, measures how much of the
exchange overlap hides. A run of `strom` on two hosts measures how fast it codes its messages. Needs root and network
namespaces; takes the hosts down at its end."""
import argparse
import glob
import json
import os
import shutil
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
HOSTS = os.path.join(HERE, "..", "cluster", "hosts.sh")
BASE = """name = "planner"
[model]
zoo = "cnn_32_64"
[data]
train = "{work}/data"
sharding = "record"
[batch]
global = 16
[train]
epochs = 0
steps = 20
[device]
threads = 1
[checkpoint]
every_epochs = 0
[run]
restart = "never"
progress = "none"
"""
SYNCHRONOUS = ["exchange.strategy=synchronous", "exchange.algorithm=ring", "exchange.bucket_mb=0.25"]
# Whole weights in one message would delay MPI's control messages in the other direction of the same connection.
GOSSIP = ["exchange.strategy=gossip", "exchange.gossip.consensus_every=10", "exchange.bucket_mb=0.25"]
STRATEGIES = {  # label -> settings; steps of a period
    "ring, none": (SYNCHRONOUS + ["exchange.overlap=none"], 1),
    "ring, buckets": (SYNCHRONOUS + ["exchange.overlap=buckets"], 1),
    "ring, layers": (SYNCHRONOUS, 1),
    "halving_doubling": (SYNCHRONOUS + ["exchange.algorithm=halving_doubling"], 1),
    "tree": (SYNCHRONOUS + ["exchange.algorithm=tree"], 1),
    "ring, fp16": (SYNCHRONOUS + ["exchange.codec=fp16"], 1),
    "direct, int8": (SYNCHRONOUS + ["exchange.codec=int8"], 1),
    "server": (["exchange.strategy=server", "exchange.bucket_mb=0.25"], 1),
    "backup, 1": (["exchange.strategy=backup", "exchange.backup.replicas=1"], 1),
    "averaging, H = 5": (["exchange.strategy=averaging", "exchange.averaging.period=5"], 5),
    "elastic, H = 5": (["exchange.strategy=elastic", "exchange.elastic.period=5"], 5),
    "asynchronous": (["exchange.strategy=asynchronous"], 1),
    "stale_synchronous, s = 1": (["exchange.strategy=stale_synchronous", "exchange.stale_synchronous.bound=1"], 1),
    "gossip": (GOSSIP, 10),
    "gossip, mix_before": (GOSSIP + ["exchange.gossip.order=mix_before"], 10),
    "strom": (["exchange.strategy=strom", "exchange.strom.density=0.01"], 1),
    "strom, asynchronous": (["exchange.strategy=strom", "exchange.strom.density=0.01", "exchange.strom.rounds=asynchronous"], 1),
}
TABLES = {  # name -> settings of the ranks, steps and ranks of the calibration, hosts (None: as asked)
    "alike": (["device.kind=paced", "device.paced_gflops=4", "device.paced_gb_per_s=10"], 20, 1, None),
    "jitter": (["device.pace_ms=100", "device.pace_jitter=0.2"], 1000, 1, None),
    "compute": (["batch.global=64"], 100, 2, [2]),
}
APART = ["exchange.strategy=averaging", "exchange.averaging.period=1000000"]  # nothing is exchanged within an epoch
BURST = "64kb"  # what an idle link lets through at once
SKIPPED = 5  # steps at the start of a run that are not measured


class Planner:
    def __init__(self, args):
        self.args = args
        self.work = os.path.abspath(args.work)
        os.makedirs(self.work, exist_ok=True)
        self.predicted = self.load("predicted.json")
        self.echelon = os.path.join(self.work, "echelon")
        shutil.copy(args.echelon, self.echelon)

    def load(self, name):
        path = os.path.join(self.work, name)
        return json.load(open(path)) if os.path.exists(path) else {}

    def store(self, name, what):
        path = os.path.join(self.work, name)
        with open(path + ".new", "w") as file: json.dump(what, file, indent=1)
        os.replace(path + ".new", path)

    def call(self, words, limit_s=300):
        done = subprocess.run(words, cwd=self.work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=limit_s)
        if done.returncode: sys.exit(f"{' '.join(words)}: code {done.returncode}\n{done.stdout[-3000:]}")
        return done.stdout

    def hosts(self, *words): return self.call(["env", f"ECHELON_BURST={BURST}", HOSTS, *map(str, words)])

    def shape(self, rate):
        if getattr(self, "rate", None) == rate: return
        self.hosts("shape", rate)
        self.rate = rate

    def run(self, folder, ranks, sets, steps):
        """Returns the folder of the attempt."""
        known = glob.glob(f"{self.work}/runs/{folder}/*/run-*/*/summary.json")
        if not known:
            shutil.rmtree(f"{self.work}/runs/{folder}", ignore_errors=True)
            mca = [word for pair in self.args.mca for word in ("--mca", *pair)]
            words = [HOSTS, "mpirun", *mca, "-n", str(ranks), self.echelon, "train", "base.toml", "--set", f"train.steps={steps}",
                     "--set", f"run.results={self.work}/runs/{folder}"]
            for one in sets: words += ["--set", one]
            if os.geteuid() == 0: words = ["nice", "-n", "-10"] + words
            self.call(words)
            known = glob.glob(f"{self.work}/runs/{folder}/*/run-*/*/summary.json")
        return os.path.dirname(sorted(known)[-1])

    def prepare(self):
        with open(self.work + "/base.toml", "w") as file: file.write(BASE.format(work=self.work))
        if not os.path.isdir(self.work + "/data"):
            self.call([self.echelon, "data", "synth", "--out", self.work + "/data", "--samples", "4096", "--shape", "1,28,28",
                       "--classes", "10"])
        most = max(self.args.hosts)
        self.hosts("up", most, "1gbit")

    def network(self, rate):
        """Returns the file of `bench network` on all hosts, with the median of three measurements for each number."""
        path = f"network-{rate}.json"
        if not os.path.exists(os.path.join(self.work, path)):
            self.shape(rate)
            some = []
            for turn in range(3):
                self.call(["nice", "-n", "-10", HOSTS, "mpirun", "-n", str(max(self.args.hosts)), self.echelon, "bench", "network", "--seconds", "0.2",
                           "--out", f"{path}.{turn}"])
                some.append(self.load(f"{path}.{turn}"))
            for name in ("latency_s", "bytes_per_s"):
                for i, row in enumerate(some[0][name]):
                    for j in range(len(row)):
                        if i != j: row[j] = statistics.median(one[name][i][j] for one in some)
            for i, row in enumerate(some[0]["loaded"]):
                for name in ("ring_bytes_per_s", "shuffle_bytes_per_s"): row[name] = statistics.median(one["loaded"][i][name] for one in some)
            self.store(path, some[0])
        return path

    def batch(self, table):
        """Returns the samples of a rank in a step."""
        return next((int(s.split("=")[1]) for s in TABLES[table][0] if s.startswith("batch.global")), 16)

    def cells(self):
        for table in self.args.table:
            sets, _, _, hosts = TABLES[table]
            for rate in self.args.rates:
                for label, (more, period) in STRATEGIES.items():
                    if self.args.only and not any(word in label for word in self.args.only): continue
                    for k in hosts or self.args.hosts:
                        slug = "".join(c if c.isalnum() else "-" for c in f"{table}-{rate}-{label}-{k}")
                        yield table, rate, label, sets + more, period, k, slug

    def on_two_hosts(self, table, rate, name, exchange, steps):
        """Returns the folder of a run that calibrates one property of this exchange."""
        self.shape(rate)
        sets = [s for s in TABLES[table][0] if not s.startswith("batch.global")] + exchange
        return self.run(f"{table}-{name}", 2, sets + [f"batch.global={2 * self.batch(table)}"], steps)

    def predict(self):
        """Predicts everything that is not predicted yet, from the runs that calibrate."""
        calibrated = {}
        for table in self.args.table:
            sets, steps, ranks, _ = TABLES[table]
            together = APART + [f"batch.global={ranks * self.batch(table)}"] if ranks > 1 else []
            calibrated[table] = self.run(f"{table}-{ranks}", ranks, sets + together, steps)
        done = {}
        for table, rate, label, sets, period, k, slug in self.cells():
            if slug in self.predicted: continue
            if (table, rate, label) not in done:
                hosts = TABLES[table][3] or self.args.hosts
                runs = [calibrated[table]]
                if TABLES[table][2] > 1: runs.append(self.on_two_hosts(table, rate, f"{rate}-overlapped", SYNCHRONOUS, 60))
                if label.startswith("strom"): runs.append(self.on_two_hosts(table, rate, "coded", STRATEGIES["strom"][0], 20))
                words = [self.echelon, "plan", "base.toml", *(word for run in runs for word in ("--from", run)), "--network", self.network(rate),
                         "--replicas", ",".join(map(str, hosts)), "--compare", "none", "--out", "plans", "--name", slug]
                for one in sets: words += ["--set", one]
                self.call(words)
                rows = json.load(open(f"{self.work}/plans/{slug}.json"))["plans"][0]["rows"]
                done[table, rate, label] = {row["replicas"]: row for row in rows}
            self.predicted[slug] = done[table, rate, label][k]
        self.store("predicted.json", self.predicted)

    def measured(self, folder, period):
        """Returns mean seconds per step without hooks, over whole periods after the first steps; and quartiles of steps."""
        rows = [json.loads(line) for line in open(folder + "/metrics.jsonl")]
        rows = [row for row in rows if row["type"] == "step"]
        first = -(-SKIPPED // period) * period
        count = (len(rows) - first) // period * period
        rows = rows[first - 1:first + count]
        times = [row["time"]["total"] - row["time"]["hooks"] for row in rows[1:]]
        return sum(times) / (rows[-1]["step"] - rows[0]["step"])

    def table(self):
        errors, by_label = [], {}
        print("| ranks | network | exchange | hosts | predicted, ms | range | measured, ms | error |")
        print("|---|---|---|---:|---:|---|---:|---:|")
        for table, rate, label, sets, period, k, slug in self.cells():
            row = self.predicted[slug]
            steps = min(60, max(20, round(4 / row["step_s"] / 10) * 10))
            self.shape(rate)
            sets = [s if not s.startswith("batch.global") else "" for s in sets]
            folder = self.run(slug, k, [s for s in sets if s] + [f"batch.global={self.batch(table) * k}"], steps)
            seconds = self.measured(folder, period)
            error = row["step_s"] / seconds - 1
            errors.append(error)
            by_label.setdefault(label, []).append(error)
            print(f"| {table} | {rate} | {label} | {k} | {1e3 * row['step_s']:.1f} | {1e3 * row['low_s']:.1f} to "
                  f"{1e3 * row['high_s']:.1f} | {1e3 * seconds:.1f} | {100 * error:+.1f} % |", flush=True)
        size = [abs(error) for error in errors]
        print("\n| exchange | median of the errors | largest |\n|---|---:|---:|")
        for label, some in by_label.items():
            print(f"| {label} | {100 * statistics.median(map(abs, some)):.1f} % | {100 * max(map(abs, some)):.1f} % |")
        print(f"\n{len(size)} runs: median of the errors {100 * statistics.median(size):.1f} %, largest {100 * max(size):.1f} %, "
              f"{sum(s > 0.1 for s in size)} above 10 %")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("echelon")
    parser.add_argument("work", nargs="?", default="/var/tmp/echelon-planner")
    parser.add_argument("--table", nargs="+", default=["alike"], choices=list(TABLES))
    parser.add_argument("--hosts", nargs="+", type=int, default=[2, 4, 8])
    parser.add_argument("--rates", nargs="+", default=["100mbit", "1gbit"])
    parser.add_argument("--only", nargs="+", help="strategies whose label has one of these words")
    parser.add_argument("--mca", nargs=2, action="append", default=[], help="of Open MPI, such as btl_tcp_sndbuf 131072")
    parser.add_argument("--stop-after", choices=["predict"])
    args = parser.parse_args()
    if os.path.exists("/var/tmp/echelon-hosts"): sys.exit("other hosts are up: tests/cluster/hosts.sh down")
    planner = Planner(args)
    planner.prepare()
    try:
        planner.predict()
        if not args.stop_after: planner.table()
    finally:
        planner.hosts("down")


if __name__ == "__main__":
    main()
