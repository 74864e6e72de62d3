#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Launcher of the bundle: runs ../libexec/<the name by which it is called> with the bundle's own libraries and Open MPI
# components, and with the CUDA libraries of this machine where there are any.
set -u
name=${0##*/}
self=$(readlink -f "$0")
root=$(cd "${self%/*}/.." && pwd)

# Remote shells are the system's programs and want the system's libraries.
if [ "$name" = ssh-clean ]; then
  unset LD_LIBRARY_PATH
  exec ssh "$@"
fi

path=$root/lib
# Prints the first folder that holds a library which the loader does not find by itself. It looks in LD_LIBRARY_PATH and
# the loader's cache, then in CUDA_HOME, the usual places, and the packages of Python's wheels.
find_library() { # SONAME
  old_ifs=$IFS; IFS=:
  for folder in ${LD_LIBRARY_PATH:-}; do [ -e "$folder/$1" ] && { IFS=$old_ifs; return; }; done
  IFS=$old_ifs
  { ldconfig -p || /sbin/ldconfig -p; } 2> /dev/null | grep -q "[[:space:]]$1 " && return
  for folder in ${CUDA_HOME:+"$CUDA_HOME/lib64" "$CUDA_HOME/lib"} ${CUDNN_HOME:+"$CUDNN_HOME/lib64" "$CUDNN_HOME/lib"} \
    /usr/local/cuda*/lib64 /usr/local/cuda*/lib /usr/local/cuda*/targets/*/lib /opt/cuda*/lib64 \
    ${VIRTUAL_ENV:+"$VIRTUAL_ENV"/lib/python3*/site-packages/nvidia/*/lib} \
    ${CONDA_PREFIX:+"$CONDA_PREFIX/lib" "$CONDA_PREFIX"/lib/python3*/site-packages/nvidia/*/lib} \
    "${HOME:-/nonexistent}"/.local/lib/python3*/site-packages/nvidia/*/lib \
    /usr/local/lib/python3*/*-packages/nvidia/*/lib /usr/lib/python3*/*-packages/nvidia/*/lib \
    /opt/*/lib/python3*/site-packages/nvidia/*/lib; do
    [ -e "$folder/$1" ] || continue
    case ":$path:" in *":$folder:"*) ;; *) path=$path:$folder ;; esac
    return
  done
}
if [ -e "$root/lib/libechelon_cuda.so" ]; then
  for soname in libcudnn.so.9 libcublas.so.13 libnvrtc.so.13; do find_library $soname; done
fi
case ":${LD_LIBRARY_PATH:-}:" in *":$path:"*) ;; *) export LD_LIBRARY_PATH="$path${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" ;; esac

# Open MPI 4 and PMIx 4 were configured for the folders of Debian's packages; these take their place.
export OPAL_PREFIX="$root" OPAL_BINDIR="$root/bin" OPAL_LIBDIR="$root/lib" OPAL_PKGLIBDIR="$root/lib/openmpi" \
  OPAL_DATADIR="$root/share" OPAL_PKGDATADIR="$root/share/openmpi" OPAL_SYSCONFDIR="$root/etc/openmpi" \
  OMPI_MCA_mca_base_component_path="$root/lib/openmpi" \
  PMIX_PREFIX="$root" PMIX_SYSCONFDIR="$root/share/pmix2" PMIX_PKGDATADIR="$root/share/pmix2/pmix" \
  PMIX_PKGLIBDIR="$root/lib/pmix" PMIX_MCA_mca_base_component_path="$root/lib/pmix" \
  UCX_MODULE_DIR="$root/lib/ucx"
[ -n "${OMPI_MCA_plm_rsh_agent:-}" ] || export OMPI_MCA_plm_rsh_agent="$root/bin/ssh-clean"

exec "$root/libexec/$name" "$@"
