#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Hosts on one machine, to see what crosses a network: each a network namespace with a name, an address, a /tmp and a
# shaped link of its own, all on one bridge.
#
#   hosts.sh up N [RATE]       N hosts h1 .. hN; RATE of each link, each way: 1gbit, 100mbit, 0: unshaped (default)
#   hosts.sh shape RATE [HOST] another rate for every link, or for the link of one host
#   hosts.sh slurm             a real Slurm over them: one controller here, one slurmd in each host (packages slurm-wlm, munge)
#   hosts.sh env               lets mpirun, sbatch and srun of a shell use the hosts: eval "$(hosts.sh env)"
#   hosts.sh mpirun ARGS...    mpirun over all hosts, ranks dealt to the hosts in turn, over TCP alone
#   hosts.sh unplug HOST | plug HOST      takes a host's link away, or gives it back
#   hosts.sh fell HOST         ends every process of a host at once
#   hosts.sh down              takes down all that was set up
#   hosts.sh abandoned         succeeds where hosts are up whose ECHELON_HOSTS_OWNER (process id) has died
#
# ECHELON_BURST (256kb) is how much an idle link lets through at once.
# Needs root, iproute2 and util-linux. Addresses 10.78.0.0/24 never leave this machine.
set -euo pipefail
base=/var/tmp/echelon-hosts
bridge=echelon0
gateway=10.78.0.254

[ ! -e $base ] && [ ! -L $base ] || { [ ! -L $base ] && [ -O $base ] && [ "$(stat -c %A $base)" = drwxr-xr-x ]; } ||
  { echo "hosts.sh: $base was not made by this user: remove it" >&2; exit 1; }

die() { echo "hosts.sh: $*" >&2; exit 1; }
names() { [ -d $base/host ] || return 0; for dir in $base/host/*/; do basename "$dir"; done | sort -V; }
address() { echo 10.78.0."${1#h}"; }
# enter HOST COMMAND...: runs COMMAND in the network, name and /tmp of HOST
enter() { local host=$1; shift; nsenter --net=/run/netns/"$host" --uts=$base/host/"$host"/uts --mount=$base/ns/"$host" -- "$@"; }

# begun PROCESS: prints its number and the time when it began, which no other process shares
begun() { echo "$1 $(sed 's/.*) //' "/proc/$1/stat" 2> /dev/null | cut -d' ' -f20)"; }
abandoned() { [ -e $base/owner ] && [ "$(cat $base/owner)" != "$(begun "$(cut -d' ' -f1 $base/owner)")" ]; }

# Traffic that a host sends queues in the host; traffic to it queues at the bridge.
set_rate() { # host rate
  nsenter --net=/run/netns/"$1" tc qdisc del dev net0 root 2> /dev/null || true
  tc qdisc del dev "br-$1" root 2> /dev/null || true
  [ "$2" = 0 ] || nsenter --net=/run/netns/"$1" tc qdisc add dev net0 root tbf rate "$2" burst "${ECHELON_BURST:-256kb}" latency 200ms
  [ "$2" = 0 ] || tc qdisc add dev "br-$1" root tbf rate "$2" burst "${ECHELON_BURST:-256kb}" latency 200ms
}

make_host() { # number rate
  local host=h$1 home=$base/host/h$1
  mkdir -p "$home"/tmp "$home"/spool
  chmod 1777 "$home"/tmp
  ip netns add "$host"
  ip link add "br-$host" type veth peer name net0 netns "$host"
  ip link set "br-$host" master $bridge up
  ip -n "$host" addr add "$(address "$host")"/24 dev net0
  ip -n "$host" link set net0 up
  ip -n "$host" link set lo up
  touch "$home"/uts $base/ns/"$host"
  unshare --uts="$home"/uts --mount=$base/ns/"$host" --propagation slave -- \
    sh -c "hostname $host && mount --bind $home/tmp /tmp"
  set_rate "$host" "$2"
}

up() {
  [ $# -ge 1 ] || die "up N [RATE]"
  [ "$(id -u)" = 0 ] || die "needs root"
  [ ! -e $base ] || die "already up ($base): hosts.sh down"
  mkdir -m 755 $base
  mkdir $base/host $base/ns $base/state
  [ -z "${ECHELON_HOSTS_OWNER:-}" ] || begun "$ECHELON_HOSTS_OWNER" > $base/owner
  mount --bind $base/ns $base/ns
  mount --make-private $base/ns
  ip link add $bridge type bridge
  ip addr add $gateway/24 dev $bridge
  ip link set $bridge up
  cp /etc/hosts $base/hosts.before
  for i in $(seq "$1"); do
    make_host "$i" "${2:-0}"
    echo "$(address h"$i") h$i" >> /etc/hosts
  done
  cat > $base/remote << R
#!/bin/sh
# what mpirun takes for ssh
host=\$1; shift
exec nsenter --net=/run/netns/\$host --uts=$base/host/\$host/uts --mount=$base/ns/\$host -- sh -c "\$*"
R
  chmod +x $base/remote
  echo "$1 hosts, links of ${2:-0}"
}

# A requeued job waits until its credential has expired (120 s by default).
slurm_conf() {
  cat << C
ClusterName=echelon
SlurmctldHost=$(hostname)($gateway)
SlurmUser=root
AuthType=auth/munge
AuthInfo=cred_expire=10
MpiDefault=pmix
KillWait=9
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmdParameters=config_overrides
ReturnToService=2
StateSaveLocation=$base/state
SlurmdSpoolDir=$base/host/%n/spool
SlurmctldPidFile=$base/slurmctld.pid
SlurmctldLogFile=$base/slurmctld.log
SlurmdPidFile=$base/host/%n/slurmd.pid
SlurmdLogFile=$base/host/%n/slurmd.log
C
  for host in $(names); do echo "NodeName=$host NodeAddr=$(address "$host") CPUs=8 State=UNKNOWN"; done
  echo "PartitionName=main Nodes=ALL Default=YES State=UP OverSubscribe=FORCE:4 PriorityTier=1 GraceTime=20"
  echo "PartitionName=urgent Nodes=ALL State=UP PriorityTier=10 PreemptMode=OFF"
}

slurm() {
  [ -n "$(names)" ] || die "no hosts: hosts.sh up N"
  slurm_conf > $base/slurm.conf
  if ! munge -n < /dev/null > /dev/null 2>&1; then
    install -d -o munge -g munge /run/munge
    su -s /bin/sh munge -c munged
    touch $base/munged
  fi
  slurmctld -f $base/slurm.conf
  for host in $(names); do enter "$host" slurmd -f $base/slurm.conf; done
  local want; want=$(names | wc -l)
  for _ in $(seq 60); do
    [ "$(SLURM_CONF=$base/slurm.conf sinfo -h -t idle -o %D 2> /dev/null)" != "$want" ] || { echo "Slurm over $want hosts"; return; }
    sleep 0.5
  done
  SLURM_CONF=$base/slurm.conf sinfo >&2
  die "Slurm does not show all hosts idle after 30 s"
}

print_env() {
  echo "export SLURM_CONF=$base/slurm.conf OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
  echo "export OMPI_MCA_btl=tcp,vader,self OMPI_MCA_btl_tcp_if_include=10.78.0.0/24 OMPI_MCA_oob_tcp_if_include=10.78.0.0/24"
  # echelon sets this for cards of 1 Gbit/s and below; a virtual card claims 10, whatever rate its link is shaped to.
  echo "export OMPI_MCA_btl_tcp_sndbuf=${OMPI_MCA_btl_tcp_sndbuf:-65536}"
  echo "export OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_rmaps_base_oversubscribe=1"
}

over_hosts() {
  [ -n "$(names)" ] || die "no hosts: hosts.sh up N"
  eval "$(print_env)"
  local list; list=$(names | sed 's/$/:16/' | paste -sd,)
  exec mpirun --mca plm rsh --mca plm_rsh_agent $base/remote --map-by node --bind-to none -H "$list" "$@"
}

# Returns when frames pass again. Addresses for which nobody answered meanwhile are asked for anew.
plug() { # host
  ip link set "br-$1" up
  for _ in $(seq 50); do
    [ "$(cat "/sys/class/net/br-$1/operstate")" != up ] || break
    sleep 0.1
  done
  ip neigh flush dev $bridge
  for host in $(names); do nsenter --net=/run/netns/"$host" ip neigh flush dev net0; done
}

down() {
  [ -e $base ] || return 0
  [ ! -e $base/slurmctld.pid ] || kill "$(cat $base/slurmctld.pid)" 2> /dev/null || true
  if [ -e $base/munged ]; then  # started here; a socket without its daemon would delay each start of MPI by 2.3 s
    kill "$(cat /run/munge/munged.pid)" 2> /dev/null || true
    rm -f /run/munge/munge.socket.2
  fi
  for host in $(names); do
    ip netns pids "$host" 2> /dev/null | xargs -r kill -9 2> /dev/null || true
    umount -l $base/ns/"$host" $base/host/"$host"/uts 2> /dev/null || true
    ip netns del "$host" 2> /dev/null || true
    ip link del "br-$host" 2> /dev/null || true
  done
  ip link del $bridge 2> /dev/null || true
  umount -l $base/ns 2> /dev/null || true
  [ ! -e $base/hosts.before ] || cat $base/hosts.before > /etc/hosts
  rm -rf $base
}

verb=${1:-help}
[ $# -eq 0 ] || shift
case $verb in
  up) up "$@" ;;
  shape) for host in ${2:-$(names)}; do set_rate "$host" "$1"; done ;;
  slurm) slurm ;;
  env) print_env ;;
  mpirun) over_hosts "$@" ;;
  unplug) ip link set "br-$1" down ;;
  plug) plug "$1" ;;
  fell) ip netns pids "$1" | xargs -r kill -9 ;;
  down) down ;;
  abandoned) abandoned ;;
  *) sed -n '2,16p' "$0" | sed 's/^# \{0,1\}//' ;;
esac
