#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills ranks of `echelon supervise` within the first seconds of their launch.

  start_kills.py ECHELON [--kills N] [--seed S] [--at-once N] [--ranks N] [--within S] [--limit S]
                                                                               from the repository's root

`echelon supervise --restarts 1` starts a short run under mpirun. After a random time of at most --within seconds from the
moment when its first rank appears, one rank or all of them get SIGKILL. Each kill must be followed by a second launch
that ends with 0, all within --limit seconds: Open MPI 4.1's mpirun waits for itself when a rank dies while it starts
others, and `echelon supervise` ends it then.

Prints one line of counts at the end; exit status 1 where a run did not return in time or with another code.
"""
import argparse
import concurrent.futures
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from kills import prepare_environment, tell

STEPS = 40
SETS = ["device.threads=1", "device.pace_ms=4", f"train.steps={STEPS}", "checkpoint.every_steps=8", "run.progress=none"]


def children(pid):
    return [int(word) for word in
            subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split()]


def ranks_below(pid):
    return [rank for launcher in children(pid) for rank in children(launcher)]


def kill_once(args, number):
    """Returns whom it killed, when, the seconds to the return, and its code (None: not in time)."""
    draws = random.Random(f"{args.seed} {number}")
    results = tempfile.mkdtemp(prefix="echelon-start-kills-")
    command = [args.echelon, "supervise", "--restarts", "1", "--grace", "3", "--", "mpirun", "-n", str(args.ranks),
               "--oversubscribe", "--bind-to", "none", args.echelon, "train", "configs/smoke/digits.toml"]
    for one in [*SETS, f"run.results={results}"]:
        command += ["--set", one]
    with tempfile.TemporaryFile("w+") as log:
        start_s = time.monotonic()
        run = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        while not (ranks := ranks_below(run.pid)) and run.poll() is None:
            time.sleep(0.005)
        after_s = draws.uniform(0, args.within)
        time.sleep(after_s)
        ranks = ranks_below(run.pid)
        whom = draws.choice(["one", "one", "all"])
        for pid in ranks if whom == "all" else ranks and [draws.choice(ranks)]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            code = run.wait(args.limit)
        except subprocess.TimeoutExpired:
            code = None
        took_s = time.monotonic() - start_s
        log.seek(0)
        text = log.read()
    if code == 0:
        shutil.rmtree(results)
    elif not args.keep_hung or code is not None:
        for pid in [pid for launcher in children(run.pid) for pid in [*children(launcher), launcher]] + [run.pid]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        run.wait()
    return whom, after_s, took_s, code, text, "has not reacted to the end of a rank" in text


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("echelon")
    options.add_argument("--kills", type=int, default=100)
    options.add_argument("--seed", type=int, default=int(time.time()))
    options.add_argument("--at-once", type=int, default=2)
    options.add_argument("--ranks", type=int, default=3)
    options.add_argument("--within", type=float, default=2, help="seconds after the first rank appears")
    options.add_argument("--limit", type=float, default=60, help="seconds to the return")
    options.add_argument("--keep-hung", action="store_true", help="leave the processes of a hung run, to look at")
    args = options.parse_args()
    args.echelon = os.path.realpath(args.echelon)
    prepare_environment()
    print(f"seed {args.seed}", flush=True)
    passed, longest_s, stuck = 0, 0, 0
    with concurrent.futures.ThreadPoolExecutor(args.at_once) as pool:
        for done in pool.map(lambda number: kill_once(args, number), range(args.kills)):
            whom, after_s, took_s, code, text, was_stuck = done
            stuck += was_stuck
            longest_s = max(longest_s, took_s)
            passed += code == 0
            if code != 0 or took_s > args.limit / 4:
                print(f"{whom} killed {after_s:.2f} s after the start: "
                      f"{'not returned' if code is None else f'returned {code}'} after {took_s:.0f} s\n{text[-2000:]}",
                      flush=True)
    print(f"{args.kills} kills, {passed} returned with 0, the longest after {longest_s:.1f} s; "
          f"{stuck} launchers that took no notice were ended")
    return tell("start kills", passed, args.kills)


if __name__ == "__main__":
    sys.exit(main())
