#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints tables of results/strategies.md, strategies_nets.md and staleness.md as markdown: accuracy, time, traffic and
staleness of every strategy.

  strategies.py ECHELON TABLE [--seeds 1 2 3] [--set KEY=VALUE ...]
  TABLE: lenet | resnet20 | charlstm    every strategy after equal samples, 8 replicas (configs/scaling/strategies_TABLE.toml)
         periods | soft | bounds        H of averaging, S of soft synchronisation, s of stale-synchronous parallel (LeNet)
         remedies                       what reduces the harm of staleness, beside the oscillation of the loss (LeNet)
         slow                           step times with one of 8 replicas 4 times as slow, and with all alike (LeNet)
         staleness                      means and histograms for 2, 4 and 8 workers, alike and with a slow one (LeNet)

Ranks are paced (device.pace_ms): they train, then sleep to the same time of a step, so that 8 fit on few cores; the last column is the
share of steps that took longer than 1.05 of their pace. Finished runs are not repeated (results/study-*)."""
import argparse
import glob
import json
import os
import subprocess
import sys
from statistics import fmean as mean

REPLICAS = 8
DIVERGED = 5  # exit code where the loss is not finite
TARGET = {"lenet": ("test_accuracy", 0.85), "resnet20": ("test_accuracy", 0.80), "charlstm": ("test_loss", 2.0)}
STRATEGIES = {  # label -> settings
    "synchronous (ring)": ["exchange.strategy=synchronous", "exchange.algorithm=ring"],
    "synchronous, Adasum": ["exchange.strategy=synchronous", "exchange.reduction=adasum"],
    "server": ["exchange.strategy=server"],
    "backup, 1 of 8": ["exchange.strategy=backup", "exchange.backup.replicas=1"],
    "averaging, H = 10": ["exchange.strategy=averaging", "exchange.averaging.period=10"],
    "averaging, H = 10, outer momentum 0.5": ["exchange.strategy=averaging", "exchange.averaging.period=10",
                                              "exchange.averaging.outer_momentum=0.5"],
    "averaging, H = 10, after 1 synchronous epoch": ["exchange.strategy=averaging", "exchange.averaging.period=10",
                                                     "exchange.averaging.synchronous_epochs=1"],
    "elastic, H = 4": ["exchange.strategy=elastic", "exchange.elastic.period=4"],
    "gossip, push-sum": ["exchange.strategy=gossip"],
    "gossip, D-PSGD on a ring": ["exchange.strategy=gossip", "exchange.gossip.topology=ring", "exchange.gossip.push_sum=false"],
    "asynchronous": ["exchange.strategy=asynchronous"],
    "asynchronous, rate 1": ["exchange.strategy=asynchronous", "exchange.asynchronous.rate=full"],
    "asynchronous, states on servers": ["exchange.strategy=asynchronous", "exchange.asynchronous.states=server"],
    "asynchronous, delay compensation": ["exchange.strategy=asynchronous", "exchange.asynchronous.delay_compensation=0.04"],
    "stale-synchronous, s = 3": ["exchange.strategy=stale_synchronous", "exchange.stale_synchronous.bound=3"],
    "Strom, density 1 %": ["exchange.strategy=strom", "exchange.strom.density=0.01", "exchange.strom.warmup_steps=47"],
    "Strom, density 0.1 %": ["exchange.strategy=strom", "exchange.strom.density=0.001", "exchange.strom.warmup_steps=47"],
    "Strom, asynchronous, density 1 %": ["exchange.strategy=strom", "exchange.strom.rounds=asynchronous",
                                         "exchange.strom.density=0.01", "exchange.strom.warmup_steps=47"],
}
ASYNCHRONOUS = ["exchange.strategy=asynchronous"]
REMEDIES = {
    "synchronous": ["exchange.strategy=synchronous"],
    "none: rate 1": ASYNCHRONOUS + ["exchange.asynchronous.rate=full"],
    "rate 1/sqrt k": ASYNCHRONOUS + ["exchange.asynchronous.rate=sqrt"],
    "rate 1/k": ASYNCHRONOUS + ["exchange.asynchronous.rate=share"],
    "scaled by 1/staleness": ASYNCHRONOUS + ["exchange.asynchronous.rate=full", "exchange.asynchronous.staleness_scale=1"],
    "dropped above staleness 10": ASYNCHRONOUS + ["exchange.asynchronous.rate=full", "exchange.asynchronous.drop_above=10"],
    "soft, S = 8": ASYNCHRONOUS + ["exchange.asynchronous.rate=full", "exchange.asynchronous.soft=8"],
    "soft, S = 4, scaled": ASYNCHRONOUS + ["exchange.asynchronous.rate=full", "exchange.asynchronous.soft=4",
                                           "exchange.asynchronous.staleness_scale=1"],
    "momentum 0": ASYNCHRONOUS + ["exchange.asynchronous.rate=full", "optimizer.momentum=0"],
    "momentum 0, learning rate x 10": ASYNCHRONOUS + ["exchange.asynchronous.rate=full", "optimizer.momentum=0", "rate*10"],
    "delay compensation 0.04": ASYNCHRONOUS + ["exchange.asynchronous.rate=full", "exchange.asynchronous.delay_compensation=0.04"],
    "delay compensation 2, adaptive": ASYNCHRONOUS + ["exchange.asynchronous.rate=full", "exchange.asynchronous.delay_compensation=2",
                                                      "exchange.asynchronous.compensation_decay=0.95"],
    "states on servers": ASYNCHRONOUS + ["exchange.asynchronous.rate=full", "exchange.asynchronous.states=server"],
    "warm-up on 2 replicas, half an epoch": ASYNCHRONOUS + ["exchange.asynchronous.rate=full", "exchange.warmup_replicas=2",
                                                            "exchange.warmup_epochs=0.5"],
    "half the batch": ASYNCHRONOUS + ["exchange.asynchronous.rate=full", "batch/2"],
    "scaled, dropped, warm-up": ASYNCHRONOUS + ["exchange.asynchronous.rate=full", "exchange.asynchronous.staleness_scale=1",
                                                "exchange.asynchronous.drop_above=10", "exchange.warmup_replicas=2",
                                                "exchange.warmup_epochs=0.5"],
}


class Run:
    """A finished attempt: summary.json, its epochs and steps, and the histograms of staleness."""

    def __init__(self, folder):
        self.summary = json.load(open(folder + "/summary.json"))
        rows = [json.loads(line) for line in open(folder + "/metrics.jsonl")]
        self.epochs = [row for row in rows if row["type"] == "epoch"]
        histogram = folder + "/staleness.json"
        self.workers = json.load(open(histogram))["workers"] if os.path.exists(histogram) else []

    def seconds(self):
        """Returns the seconds of training since the start, by epoch, without the mean time of evaluations."""
        hooks = self.summary["time_split_s"]["hooks"] / max(1, len(self.epochs))
        total, out = 0.0, []
        for row in self.epochs:
            total += row["seconds"] - hooks
            out.append(total)
        return out

    def seconds_to(self, figure, target):
        """Interpolates between evaluations; None where the target was not reached, or was reached before the first."""
        sign = 1 if figure == "test_accuracy" else -1
        before = None
        for row, at in zip(self.epochs, self.seconds()):
            value = sign * row[figure]
            if value >= sign * target:
                if before is None: return at
                return before[0] + (at - before[0]) * (sign * target - before[1]) / (value - before[1])
            before = (at, value)
        return None

    def oscillation(self):
        value = self.summary.get("loss_oscillation")
        return float("nan") if value is None else value

    def over_pace(self):
        over = self.summary.get("pace_over_steps") or [0]
        return max(over) / self.summary["steps"]


class Tables:
    def __init__(self, args):
        self.args = args

    def run(self, model, name, sets, ranks=REPLICAS):
        config = f"configs/scaling/strategies_{model}.toml"
        plain = [s for s in sets if "=" in s]
        if "rate*10" in sets: plain.append(f"optimizer.learning_rate={10 * self.rate_of(config)}")
        if "batch/2" in sets: plain.append(f"batch.global={self.batch_of(config) // 2}")
        command = ["mpirun", "-n", str(ranks), "--oversubscribe", "--bind-to", "none", self.args.echelon, "train", config]
        for s in plain + [f"name={name}"] + self.args.set: command += ["--set", s]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900)
        if done.returncode == DIVERGED: return None
        if done.returncode != 0: sys.exit(f"{name}: exit code {done.returncode}\n{done.stdout[-2000:]}")
        folders = sorted(glob.glob(f"results/{name}/run-*/[0-9]*/summary.json"), key=os.path.getmtime)
        return Run(os.path.dirname(folders[-1]))

    @staticmethod
    def value_of(config, key):
        return next(line.split("=")[1].split("#")[0].strip() for line in open(config) if line.startswith(key))

    def rate_of(self, config): return float(self.value_of(config, "learning_rate"))
    def batch_of(self, config): return int(self.value_of(config, "global"))

    def seeds(self, model, label, sets):
        slug = "".join(c if c.isalnum() else "-" for c in label).strip("-").lower()
        runs = [self.run(model, f"study-{model}-{slug}-{seed}", sets + [f"seed={seed}"]) for seed in self.args.seeds]
        print(f"  {model}: {label}", file=sys.stderr, flush=True)
        return [r for r in runs if r]

    def accuracy(self, runs, figure):
        """Returns the mean, the range, and how many seeds diverged."""
        values = [r.summary[figure] * (100 if figure == "test_accuracy" else 1) for r in runs]
        lost = len(self.args.seeds) - len(runs)
        return f"{mean(values):.2f} | {min(values):.2f} to {max(values):.2f}" + (f", {lost} of {lost + len(runs)} diverged" if lost else "")

    def strategies(self, model):
        figure, target = TARGET[model]
        goal = f"{100 * target:.0f} %" if figure == "test_accuracy" else f"{target:g} nats"
        what = "accuracy, %" if figure == "test_accuracy" else "test loss, nats"
        print(f"| strategy | {what}, mean | least to greatest | s to {goal} | s in all | MB a step | staleness, mean | largest | over pace |")
        print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
        for label, sets in STRATEGIES.items():
            if self.args.only and label not in self.args.only: continue
            runs = self.seeds(model, label, sets)
            if not runs: print(f"| {label} | all diverged |"); continue
            reached = [t for t in (r.seconds_to(figure, target) for r in runs) if t is not None]
            to = f"{mean(reached):.1f}" if len(reached) == len(runs) else f"{len(reached)} of {len(runs)} reached it"
            print(f"| {label} | {self.accuracy(runs, figure)} | {to} | {mean(r.seconds()[-1] for r in runs):.1f} | {self.traffic(runs)} "
                  f"| {self.staleness_of(runs)} | {100 * max(r.over_pace() for r in runs):.0f} % |", flush=True)

    @staticmethod
    def traffic(runs): return f"{mean(r.summary['wire_bytes_per_step'] for r in runs) / 1e6:.3f}"

    @staticmethod
    def staleness_of(runs):
        """Returns the mean and the largest; empty cells for strategies that count none."""
        if "staleness_mean" not in runs[0].summary: return "|"
        return f"{mean(r.summary['staleness_mean'] for r in runs):.3f} | {max(r.summary['staleness_largest'] for r in runs):.0f}"

    def sweep(self, heading, cells):
        print(f"| {heading} | accuracy, %, mean | least to greatest | s in all | MB a step | drift, last | staleness, mean | largest |")
        print("|---:|---:|---:|---:|---:|---:|---:|---:|")
        for value, label, sets in cells:
            runs = self.seeds("lenet", label, sets)
            if not runs: print(f"| {value} | all diverged |"); continue
            drift = [[row["drift"] for row in r.steps if row.get("drift") is not None] for r in runs]
            drift = [d[-1] for d in drift if d]
            print(f"| {value} | {self.accuracy(runs, 'test_accuracy')} | {mean(r.seconds()[-1] for r in runs):.1f} | {self.traffic(runs)} "
                  f"| {f'{mean(drift):.4f}' if drift else ''} | {self.staleness_of(runs)} |", flush=True)

    def periods(self):
        self.sweep("H", [(h, f"averaging {h}", ["exchange.strategy=averaging", f"exchange.averaging.period={h}"])
                         for h in (1, 2, 5, 10, 20, 50, 200, 1000)])

    def soft(self):
        self.sweep("S", [(s, f"soft {s}", ASYNCHRONOUS + [f"exchange.asynchronous.soft={s}"]) for s in (1, 2, 4, 8)])

    def bounds(self):
        slow = ["device.pace_factors=[4]", "train.epochs=1"]
        self.sweep("s", [(s, f"bound {s}", ["exchange.strategy=stale_synchronous", f"exchange.stale_synchronous.bound={s}"])
                         for s in (0, 1, 3, 10)] +
                   [(f"{s}, one 4x slow", f"slow bound {s}", slow + ["exchange.strategy=stale_synchronous",
                                                                 f"exchange.stale_synchronous.bound={s}"]) for s in (0, 1, 3, 10)])

    def remedies(self):
        print("| remedy | accuracy, %, mean | least to greatest | oscillation of the loss | staleness, mean | largest | dropped |")
        print("|---|---:|---:|---:|---:|---:|---:|")
        for label, sets in REMEDIES.items():
            runs = self.seeds("lenet", "remedy " + label, sets)
            if not runs: print(f"| {label} | all diverged |"); continue
            dropped = [r.summary["updates_dropped"] / (r.summary["updates_applied"] + r.summary["updates_dropped"])
                       for r in runs if "updates_dropped" in r.summary]
            print(f"| {label} | {self.accuracy(runs, 'test_accuracy')} | {mean(r.oscillation() for r in runs):.3f} "
                  f"| {self.staleness_of(runs)} | {f'{100 * mean(dropped):.1f} %' if dropped else ''} |", flush=True)

    def slow(self):
        cells = {"synchronous": ["exchange.strategy=synchronous"],
                 "backup, 7 of 8": ["exchange.strategy=backup", "exchange.backup.replicas=1", "exchange.backup.period=1000"],
                 "stale-synchronous, s = 3": ["exchange.strategy=stale_synchronous", "exchange.stale_synchronous.bound=3"],
                 "asynchronous": ASYNCHRONOUS,
                 "asynchronous, a queue of batches": ASYNCHRONOUS + ["data.balance=queue", "data.sharding=auto"],
                 "averaging, H = 10": ["exchange.strategy=averaging", "exchange.averaging.period=10"]}
        print("| strategy | samples/s (median), all alike | one of 8 4x slow | ratio | ms a step (mean), alike | one slow | ratio |")
        print("|---|---:|---:|---:|---:|---:|---:|")
        short = ["train.epochs=0", "train.steps=150", "evaluate.every_epochs=0", f"seed={self.args.seeds[0]}"]
        for label, sets in cells.items():
            rates, times = [], []
            for kind, more in (("alike", []), ("slow", ["device.pace_factors=[1, 1, 1, 1, 1, 1, 1, 4]"])):
                slug = "".join(c if c.isalnum() else "-" for c in label).lower()
                run = self.run("lenet", f"study-slow-{slug}-{kind}", sets + short + more)
                rates.append(run.summary["samples_per_s"]["median"])
                split = run.summary["time_split_s"]  # a median would hide steps that meet now and then
                times.append(1e3 * (split["total"] - split["hooks"]) / run.summary["steps"])
            print(f"| {label} | {rates[0]:,.0f} | {rates[1]:,.0f} | {rates[1] / rates[0]:.2f} | {times[0]:.1f} | {times[1]:.1f} "
                  f"| {times[1] / times[0]:.2f} |", flush=True)

    def staleness(self):
        print("| workers | | updates | mean | all | off k - 1 by | largest | % of updates by staleness |")
        print("|---:|---|---:|---:|---:|---:|---:|---|")
        short = ["train.epochs=0", "train.steps=1100", "evaluate.every_epochs=0", f"seed={self.args.seeds[0]}",
                 "data.balance=queue", "data.sharding=auto"]  # keeps all workers busy until the end
        for k in (2, 4, 8):
            for kind, more in (("alike", []), ("one 4x slow", ["device.pace_factors=[4]"])):
                run = self.run("lenet", f"study-staleness-{k}-{'slow' if more else 'alike'}", ASYNCHRONOUS + short + more +
                               [f"batch.global={16 * k}", f"device.pace_ms={2.5 * k}"], k)
                if not run: print(f"| {k} | {kind} | failed |"); continue
                mean = run.summary["staleness_mean"]
                for w, worker in enumerate(run.workers):
                    if more and w > 1: continue  # fast workers are alike
                    if not more and w > 0: continue
                    total = sum(n for _, n in worker["histogram"])
                    shares = dict(worker["histogram"])
                    percent = {s: f"{100 * n / total:.0f}" for s, n in sorted(shares.items())}
                    seen = [s for s, text in percent.items() if text != "0"]
                    text = f"{seen[0]}: " + " ".join(percent.get(s, "0") for s in range(seen[0], seen[-1] + 1))
                    print(f"| {k} | {kind}, worker {w} | {worker['applied']:,} | {worker['mean']:.3f} | {mean:.3f} "
                          f"| {100 * (mean / (k - 1) - 1):+.2f} % | {worker['largest']} | {text} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("echelon")
    parser.add_argument("table", choices=["lenet", "resnet20", "charlstm", "periods", "soft", "bounds", "remedies", "slow", "staleness"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--only", nargs="+", help="of a table of strategies these rows")
    parser.add_argument("--set", action="append", default=[])
    args = parser.parse_args()
    if os.geteuid() == 0: os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    tables = Tables(args)
    if args.table in TARGET: tables.strategies(args.table)
    else: getattr(tables, args.table)()


if __name__ == "__main__":
    main()
