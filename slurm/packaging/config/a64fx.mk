# SPDX-License-Identifier: Apache-2.0
# Fugaku, Ookami and other machines with A64FX: cp slurm/packaging/config/a64fx.mk config.mk
# g++ 12 or later; oneDNN 3 built with the Arm Compute Library has SVE, Debian's 2.6 has not. Needs libsimde-dev.
CXX := g++
MARCH := armv8.2-a+crc+sve
CXXFLAGS += -mtune=a64fx
# ONEDNN := /opt/onednn3
