# SPDX-License-Identifier: Apache-2.0
"""Spack recipe of echelon, which builds the checkout that it lies in.

    spack repo add slurm/packaging/spack/spack_repo/echelon
    spack install echelon ^openmpi        # or ^mpich, ^intel-oneapi-mpi, ^cray-mpich
    spack load echelon && echelon info
"""
import pathlib

from spack_repo.builtin.build_systems.cuda import CudaPackage
from spack_repo.builtin.build_systems.makefile import MakefilePackage

from spack.package import *


class Echelon(MakefilePackage, CudaPackage):
    """Trains convolutional and recurrent networks from HDF5 data over MPI ranks, and measures whether that pays."""

    homepage = git = pathlib.Path(__file__).resolve().parents[7].as_uri()

    license("Apache-2.0")

    version("main", branch="main")

    variant("nccl", default=False, description="Sums on GPUs by NCCL", when="+cuda")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("tomlplusplus", type="build")
    depends_on("cli11", type="build")
    depends_on("nlohmann-json", type="build")
    depends_on("mpi@3:")
    depends_on("hdf5@1.10:~mpi")
    depends_on("onednn@2.6:")
    depends_on("fmt@9:")
    depends_on("spdlog@1.10:+shared")
    depends_on("libarchive")
    depends_on("jpeg")
    depends_on("libpng")
    depends_on("zlib-api")
    depends_on("simde", type="build", when="target=aarch64:")
    with when("+cuda"):
        depends_on("cuda@12.4:")
        depends_on("cudnn@9:")
        depends_on("nccl", when="+nccl")

    conflicts("%gcc@:11", msg="needs the C++20 of g++ 12 or clang 16")
    conflicts("%clang@:15", msg="needs the C++20 of g++ 12 or clang 16")

    def flags(self):
        spec = self.spec
        flags = [
            f"CXX={spack_cxx}",
            f"MPICXX={spec['mpi'].mpicxx}",
            f"ONEDNN={spec['onednn'].prefix}",
            f"CUDA={1 if spec.satisfies('+cuda') else 0}",
            f"PREFIX={self.prefix}",
        ]
        words = spec.target.optimization_flags("gcc", "12.0").split()
        flags += [f"MARCH={word[7:]}" for word in words if word.startswith("-march=")]
        if spec.satisfies("+cuda"):
            arch = spec.variants["cuda_arch"].value
            gencode = " ".join(self.cuda_flags(arch)) if arch[0] != "none" else ""
            flags += [f"CUDA_HOME={spec['cuda'].prefix}", f"CUDNN_HOME={spec['cudnn'].prefix}"]
            flags += [f"GENCODE={gencode}"] if gencode else []
            flags += [f"NCCL_HOME={spec['nccl'].prefix}"] if spec.satisfies("+nccl") else []
        return flags

    @property
    def build_targets(self):
        return ["build", *self.flags()]

    @property
    def install_targets(self):
        return ["install", *self.flags()]

    def test_info(self):
        """print what the program runs on"""
        out = which(self.prefix.bin.echelon)("info", output=str.split, error=str.split)
        check_outputs(["version", "MPI", "HDF5"], out)
