# SPDX-License-Identifier: Apache-2.0
# NVIDIA Grace and Grace Hopper (Neoverse V2): cp slurm/packaging/config/grace.mk config.mk
# g++ 13 may tune for neoverse-v2. oneDNN 3 built with the Arm Compute Library is the faster one. Needs libsimde-dev.
CXX := g++
MARCH := armv9-a+crc+bf16+i8mm
CXXFLAGS += -mtune=neoverse-n2
GENCODE := -gencode arch=compute_90,code=sm_90
# ONEDNN := /opt/onednn3
