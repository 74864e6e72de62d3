# SPDX-License-Identifier: Apache-2.0
# HPE Cray EX: module load PrgEnv-gnu cray-mpich cray-hdf5; cp slurm/packaging/config/cray.mk config.mk
# CC brings Cray MPICH by itself; cray-hdf5 is the serial one (cray-hdf5-parallel is not wanted).
MPI := cray
CXX := CC
MARCH := x86-64-v3
