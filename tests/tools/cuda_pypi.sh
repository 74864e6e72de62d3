#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# For a user without root: gathers the CUDA toolkit, cuDNN, cuBLAS and NCCL from the wheels of PyPI into one folder as
# `make cuda` wants it (`make cuda CUDA_FROM=pypi`). A GPU's driver is still the system's.
#   cuda_pypi.sh FOLDER [12|13]     FOLDER: FOLDER/bin/nvcc, FOLDER/include, FOLDER/lib64; 2.5 GB of wheels beside it
#
# CUDA 13 comes whole from PyPI (drivers from 580 on). The wheels of CUDA 12 have no nvcc: with 12 the nvcc of a module
# or of the system is used (12.4 or later, drivers from 550 on).
set -euo pipefail
home=$1 major=${2:-}
if [ -z "$major" ]; then
  major=13
  if nvcc=$(command -v nvcc); then
    case $("$nvcc" --version | sed -n 's/.*release \([0-9]*\).*/\1/p') in 12) major=12 ;; esac
  fi
fi
[ "$home/.done-$major" -nt "$0" ] && exit 0
case $major in
  13) wheels=(nvidia-cuda-nvcc==13.* nvidia-cuda-crt==13.* nvidia-nvvm==13.* nvidia-cuda-cccl==13.* nvidia-cuda-runtime==13.*
    nvidia-cublas==13.* nvidia-cudnn-cu13==9.* nvidia-nccl-cu13==2.*) ;;
  12)
    nvcc=$(command -v nvcc) || { echo "CUDA_FROM=pypi with CUDA 12 needs an nvcc 12.4 or later on PATH: module load cuda/12.4" >&2; exit 3; }
    wheels=(nvidia-cuda-runtime-cu12 nvidia-cuda-cccl-cu12 nvidia-cublas-cu12 nvidia-cudnn-cu12==9.* nvidia-nccl-cu12==2.*) ;;
  *) echo "cuda_pypi.sh: CUDA $major is not known; 12 or 13 is" >&2; exit 2 ;;
esac
venv=$home/../wheels-$major
echo "installing into $home from PyPI: ${wheels[*]}"
mkdir -p "$home"
[ -x "$venv/bin/pip" ] || python3 -m venv "$venv" ||
  { echo "needs python3-venv: apt-get install python3-venv, or module load python" >&2; exit 3; }
"$venv/bin/pip" install --quiet --disable-pip-version-check "${wheels[@]}"

# One tree of links: the wheels have it in pieces, and name no library without its version.
rm -rf "$home"
mkdir -p "$home/include" "$home/lib64"
for piece in "$venv"/lib/python3*/site-packages/nvidia/*/; do
  [ -d "$piece/include" ] && cp -rsf "$(realpath "$piece/include")/." "$home/include/"
  [ -d "$piece/lib" ] && cp -rsf "$(realpath "$piece/lib")/." "$home/lib64/"
  # nvcc finds its parts from its own place: these stay as they are.
  for part in bin nvvm; do
    if [ -d "$piece/$part" ]; then mkdir -p "$home/$part" && cp -r "$piece/$part/." "$home/$part/"; fi
  done
done
ln -sfn lib64 "$home/lib"
for file in "$home"/lib64/lib*.so.*; do
  link=${file%%.so.*}.so
  [ -e "$link" ] || ln -s "$(basename "$file")" "$link"
done
if [ ! -x "$home/bin/nvcc" ]; then
  mkdir -p "$home/bin"
  printf '#!/bin/sh\nexec %s "$@"\n' "$(realpath "$nvcc")" > "$home/bin/nvcc"
fi
chmod +x "$home"/bin/* 2> /dev/null || true
[ -e "$home/include/cudnn.h" ] && [ -e "$home/lib64/libcublas.so" ] || { echo "cuda_pypi.sh: the wheels lack cudnn.h or libcublas" >&2; exit 3; }
touch "$home/.done-$major"
