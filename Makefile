# SPDX-License-Identifier: Apache-2.0
# echelon: build, test, demonstrate. `make help` lists the targets; this file is never edited to add a source file.
#
#   CUDA=0|1      leave the CUDA device out or demand it (default: built where a GPU, nvcc and cuDNN 9 are found)
#   ASAN=1 UBSAN=1 TSAN=1   sanitised builds, each in a folder of its own
#   MPI=openmpi|mpich|cray|intel|abi   which MPI, built in a folder of its own (default: mpicxx on PATH; MPICXX=FILE: this
#                           wrapper; tests/tools/mpi.sh)
#   MARCH=x86-64-v3         processors that the program runs on, as -march has it: native, armv8-a+crc (CXX of ARM), x86-64
#                           (less than AVX2; needs libsimde-dev, as ARM does)
#   CUDA_FROM=pypi          CUDA, cuDNN and NCCL from the wheels of PyPI, without root (tests/tools/cuda_pypi.sh); or the
#                           folders CUDA_HOME, CUDNN_HOME, NCCL_HOME; GENCODE: the GPUs, as nvcc has them
#   ONEDNN=/opt/onednn      another oneDNN, 2.6 or 3.x, than the system's
#   PREFIX=/usr/local       where `make install` puts things
#   config.mk     read if present: a site's own settings (CXX, CUDA_HOME, CPPFLAGS, ..)
-include config.mk

BUILD ?= build
PREFIX ?= /usr/local
ifeq ($(CUDA_FROM),pypi)
CUDA_HOME := $(abspath $(BUILD)/cuda-pypi/home)
endif
CUDA_HOME ?= $(patsubst %/bin/,%,$(dir $(realpath $(or $(shell command -v nvcc 2>/dev/null),/usr/local/cuda/bin/nvcc))))
ifeq ($(origin CXX),default)
CXX := $(if $(shell command -v ccache 2>/dev/null),ccache )g++
endif
MARCH ?= $(if $(filter aarch64%,$(shell $(CXX) -dumpmachine 2>/dev/null)),armv8-a+crc,x86-64-v3)
MARCH := $(MARCH)

SAN := $(strip $(if $(filter 1,$(ASAN)),asan) $(if $(filter 1,$(UBSAN)),ubsan) $(if $(filter 1,$(TSAN)),tsan))
empty :=
space := $(empty) $(empty)
comma := ,
MODE := $(if $(SAN),$(subst $(space),-,$(SAN)),release)
OUT := $(BUILD)/$(MODE)$(MPI:%=-%)
export MPICXX
CUDA_FOUND := $(if $(and $(wildcard $(CUDA_HOME)/bin/nvcc),$(firstword $(wildcard $(patsubst %,%/include/cudnn.h,$(CUDNN_HOME) $(CUDA_HOME) /usr)))),1,0)
# A machine without a GPU builds the device on demand only (`make cuda`, `make bundle`): it takes as long as the rest.
WITH_CUDA := $(or $(CUDA),$(CUDA_FOUND))
CUDA ?= $(if $(wildcard /dev/nvidia0),$(CUDA_FOUND),0)
NCCL_FOUND := $(firstword $(wildcard $(patsubst %,%/include/nccl.h,$(NCCL_HOME) $(CUDA_HOME) /usr /usr/local)))
CUDA_INCLUDE := $(patsubst %,-isystem %/include,$(CUDA_HOME) $(CUDNN_HOME) $(NCCL_HOME))

SANFLAGS := $(if $(filter asan,$(SAN)),-fsanitize=address) $(if $(filter ubsan,$(SAN)),-fsanitize=undefined -fno-sanitize-recover=undefined) $(if $(filter tsan,$(SAN)),-fsanitize=thread)
WARN := -Wall -Wextra -Wshadow -Wconversion -Wnon-virtual-dtor -Woverloaded-virtual -Werror=return-type -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds
OPT := $(if $(SAN),-O1 -fno-omit-frame-pointer,-O3)
CXXFLAGS += -std=c++20 -g1 $(OPT) -march=$(MARCH) -ffp-contract=off -fPIC -fopenmp -pthread $(WARN) $(SANFLAGS)
# pkg-config is asked once, when something is compiled, so that `make deps` works on a bare machine.
PKG = $(eval PKG := $$(shell pkg-config --cflags hdf5 spdlog fmt 2>/dev/null) -DSPDLOG_COMPILED_LIB -DSPDLOG_FMT_EXTERNAL)$(PKG)
# Only src/comm/mpi includes <mpi.h>: builds for several MPIs share all other objects of ccache.
MPI_WORDS = $(eval MPI_WORDS := $$(shell CXX='$(CXX)' tests/tools/mpi.sh $(MPI) || echo failed))$(if $(filter failed,$(MPI_WORDS)),$(error no MPI to build with))$(MPI_WORDS)
MPI_CFLAGS = $(filter -I% -D% -isystem%,$(MPI_WORDS))
CPPFLAGS += -Isrc -MMD -MP $(ONEDNN:%=-I%/include)
LIBS = $(eval LIBS := $$(shell pkg-config --libs hdf5 spdlog fmt libarchive libjpeg libpng 2>/dev/null) $(if $(ONEDNN),-L$(ONEDNN)/lib -Wl$(comma)-rpath$(comma)$(ONEDNN)/lib) -ldnnl -lz -ldl $(filter-out -I% -D% -isystem%,$(MPI_WORDS)))$(LIBS)
LDFLAGS += -rdynamic -fopenmp -pthread $(SANFLAGS)

find = $(sort $(shell find $(1) -name '*.$(2)' 2>/dev/null))
objects = $(patsubst %,$(OUT)/obj/%.o,$(1))
SRC := $(call find,src,cpp)
# This file replaces operator new in the program alone, because tests and sanitisers have replacements of their own.
COUNTED := src/cli/counted_new.cpp

# A file that is first compiled joins a unit of its room; hot loops, files with flags of their own and those that
# cuda_on_cpu links without their room are compiled alone.
ALONE := src/main.cpp $(COUNTED) src/base/version.cpp src/config/toml_tree.cpp tests/main.cpp tests/mpi/main.cpp \
  $(call find,src/device src/comm/codec src/verify src/h5,cpp) $(addprefix tests/support/,session.cpp codec_pair.cpp discrete_codec.cpp)
# The targets that compile themselves; the others start a make of their own.
COMPILES := $(filter-out all help demo test quick-test mpi-test fuzz cuda-on-cpu soak bench lint analyze analyzed format cuda bundle deb deps check-system clean,$(or $(MAKECMDGOALS),all))
sources = $(filter $(ALONE),$(1)) $(if $(COMPILES),$(shell tests/tools/units.sh $(OUT) $(filter-out $(ALONE),$(1))))
compiled = $(patsubst $(OUT)/obj/$(OUT)/units/%.cpp.o,$(OUT)/units/%.o,$(call objects,$(call sources,$(1))))
LIB_OBJ := $(call compiled,$(filter-out src/main.cpp $(COUNTED),$(SRC)))
SUPPORT_OBJ := $(call compiled,$(call find,tests/support,cpp))
# The user calls make once; the inner make runs as many compilers as there are cores.
SUBMAKE = $(MAKE) --no-print-directory $(if $(filter -j%,$(MFLAGS)),,-j$(shell nproc))
# The same with a line about what is left: tests/tools/build.sh starts make itself.
WATCHED = +@tests/tools/build.sh $(SUBMAKE)
RINGS := unit contract mpi run
ring_objects = $(call compiled,$(call find,tests/$(1),cpp)) $(if $(filter mpi,$(1)),,$(call objects,tests/main.cpp))
ECHELON := $(OUT)/bin/echelon
CUDA_LIB := $(OUT)/bin/libechelon_cuda.so
CALLS := $(OUT)/cuda_calls
PRODUCTS := $(ECHELON) $(if $(filter 1,$(CUDA)),$(CUDA_LIB))

.PHONY: all cuda demo test quick-test mpi-test fuzz cuda-on-cpu soak bench lint analyze analyzed format bundle deb install deps check-system build tests clean help
.DEFAULT_GOAL := all
all: deps
	$(WATCHED) build

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: deps ## train the digits CNN on 2 ranks and on 1, and print the scaling table
	$(WATCHED) build
	@tests/tools/demo.sh $(ECHELON)
test: deps ## install what is missing, build, run every test
	@tests/tools/install_deps.sh $(BUILD) --tests
	$(WATCHED) build tests
	@tests/tools/run_tests.sh $(OUT) lint $(RINGS) fuzz cluster cuda cuda_calls cuda_on_cpu
quick-test: deps ## the unit and contract rings without slow cases, under 30 s
	$(WATCHED) build tests
	@tests/tools/run_tests.sh $(OUT) --quick unit contract
mpi-test: deps ## the tests that need mpirun
	$(WATCHED) build tests
	@tests/tools/run_tests.sh $(OUT) mpi
fuzz: deps ## random and damaged inputs for every reader; TIMES=N for N times as many; best with ASAN=1 UBSAN=1
	@+$(SUBMAKE) $(OUT)/tests/fuzz
	@ECHELON_FUZZ_TIMES=$(TIMES) tests/tools/run_tests.sh $(OUT) fuzz
cuda-on-cpu: deps ## the CUDA kernels on the CPU against the reference; best with ASAN=1 UBSAN=1
	@+$(SUBMAKE) $(OUT)/tests/cuda_on_cpu
	@tests/tools/run_tests.sh $(OUT) cuda_on_cpu
soak: deps ## the long forms of tests that `make test` samples
	$(WATCHED) build tests
	@tests/tools/run_tests.sh $(OUT) --soak unit contract fuzz cuda_on_cpu kills faults study_kills
bench: deps ## step time of the zoo's models on this machine
	$(WATCHED) build
	@tests/tools/bench.sh $(ECHELON)
lint: ## house rules, formatting, ladder of includes
	@tests/lint/lint.sh
analyze: deps ## clang-tidy and cppcheck over changed files of src/; long the first time; not part of `make test`
	@tests/tools/install_deps.sh $(BUILD) --optional
	@+$(SUBMAKE) --keep-going analyzed
format: ## clang-format over every source file
	@git ls-files --cached --others --exclude-standard '*.cpp' '*.hpp' '*.cu' '*.cuh' | xargs clang-format -i
cuda: deps ## the CUDA device, on a machine without a GPU too; CUDA_FROM=pypi without root
	@$(if $(filter pypi,$(CUDA_FROM)),tests/tools/cuda_pypi.sh $(BUILD)/cuda-pypi/home $(CUDA_MAJOR))
	$(WATCHED) build CUDA=1
bundle: deps ## a relocatable tar for machines without the packages
	$(WATCHED) build CUDA=$(WITH_CUDA) $(if $(filter 1,$(WITH_CUDA)),$(OUT)/tests/cuda)
	@tests/tools/bundle.sh $(OUT)
deb: deps ## a Debian package for the release that this machine runs
	$(WATCHED) build
	@tests/tools/deb.sh $(OUT)
install: build ## install into PREFIX
	@tests/tools/install.sh $(OUT) $(PREFIX)
deps: ## install missing Debian packages (root or sudo), else print the one command
	@tests/tools/install_deps.sh $(BUILD)
check-system: ## what this machine has of what echelon needs, and the cure for the rest
	@CXX='$(CXX)' CPPFLAGS='$(CPPFLAGS)' MPI=$(MPI) ONEDNN=$(ONEDNN) MARCH=$(MARCH) CUDA_HOME=$(CUDA_HOME) CUDNN_HOME=$(CUDNN_HOME) \
	  tests/tools/check_system.sh
clean: ## remove every build
	rm -rf $(BUILD)

build: $(PRODUCTS)
	@tests/tools/mpi.sh $(MPI) --launcher $(OUT)/launch
tests: $(RINGS:%=$(OUT)/tests/%) $(OUT)/tests/fuzz $(OUT)/tests/cuda_on_cpu $(if $(filter 1,$(CUDA)),$(OUT)/tests/cuda $(if $(NCCL_FOUND),$(CALLS)/cuda_calls))

$(ECHELON): $(LIB_OBJ) $(call objects,src/main.cpp $(if $(SAN),,$(COUNTED)))
	@mkdir -p $(@D)
	@echo "  LINK $@"
	@$(CXX) -o $@ $^ $(LDFLAGS) $(LIBS)

define ring
$(OUT)/tests/$(1): $(LIB_OBJ) $(SUPPORT_OBJ) $(call ring_objects,$(1))
	@mkdir -p $$(@D)
	@echo "  LINK $$@"
	@$$(CXX) -o $$@ $$^ $$(LDFLAGS) $$(LIBS)
endef
$(foreach r,$(RINGS) cuda,$(eval $(call ring,$(r))))

# This ring links the rooms that read outside input and those below them; its sanitised build compiles no others.
FUZZ_ROOMS := base checkpoint comm config data device exchange h5 job model optim report study
FUZZ_SRC := $(foreach room,$(FUZZ_ROOMS),$(call find,src/$(room),cpp)) $(call find,tests/fuzz,cpp)
$(OUT)/tests/fuzz: $(call compiled,$(FUZZ_SRC))
	@mkdir -p $(@D)
	@echo "  LINK $@"
	@$(CXX) -o $@ $^ $(LDFLAGS) $(LIBS)

# Records what the objects were built with: a change of flags or of the commit rebuilds what depends on it alone.
$(OUT)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CXX) $(CXXFLAGS) $(CPPFLAGS)' | cmp -s - $@ || echo '$(CXX) $(CXXFLAGS) $(CPPFLAGS)' > $@
$(OUT)/mpi: FORCE
	@mkdir -p $(@D)
	@echo '$(MPI_WORDS)' | cmp -s - $@ || echo '$(MPI_WORDS)' > $@
$(OUT)/obj/src/comm/% $(OUT)/units/src/comm/%: private CPPFLAGS += $(MPI_CFLAGS)
$(filter $(OUT)/obj/src/comm/% $(OUT)/units/src/comm/%,$(LIB_OBJ)): $(OUT)/mpi
$(OUT)/commit: FORCE
	@mkdir -p $(@D)
	@commit=$$(git describe --always --dirty --abbrev=12 2>/dev/null || echo unknown); echo $$commit | cmp -s - $@ || echo $$commit > $@
FORCE:

$(OUT)/obj/src/base/version.cpp.o: $(OUT)/commit
$(OUT)/obj/src/base/version.cpp.o: CPPFLAGS += -DECHELON_COMMIT='"$(shell cat $(OUT)/commit 2>/dev/null)"'
$(OUT)/obj/tests/% $(OUT)/units/%: CPPFLAGS += -I.
# Tests are compiled more often than they run, and a third of the compile time with -O3 is optimisation.
$(OUT)/obj/tests/% $(OUT)/units/tests/% $(OUT)/pch/tests.hpp: private CXXFLAGS += $(if $(SAN),,-O1)
# The same holds for rooms that set up, describe and report, once a run.
COLD := cli config fault job report run study
$(foreach room,$(COLD),$(OUT)/obj/src/$(room)/% $(OUT)/units/src/$(room)/%) $(OUT)/pch/cold.hpp: private CXXFLAGS += $(if $(SAN),,-O1)
# A sqrt that may set errno keeps Adam and its kin out of the vector units; the bits are the same without errno.
$(OUT)/obj/src/device/host_update.cpp.o: private CXXFLAGS += -fno-math-errno
# toml++ 3.3 marks a place as unreachable that letters from U+00A1 on do reach; the compiled code is right for all.
$(if $(filter ubsan,$(SAN)),$(OUT)/obj/src/config/toml_tree.cpp.o: private CXXFLAGS += -fno-sanitize=unreachable)

# Headers that most files include are parsed once, at the optimisation level of the files (g++ 12 crashed on a mixture).
# ccache keys on the checksum beside them. Files with flags of their own, and those that configure Catch2, use none.
IN_COLD := $(foreach room,$(COLD),src/$(room)/% $(OUT)/units/src/$(room)/%)
PRECOMPILED = $(OUT)/pch/$(if $(filter tests/% $(OUT)/units/tests/%,$<),tests,$(if $(filter $(IN_COLD),$<),cold,src)).hpp
$(OUT)/pch/src.hpp $(OUT)/pch/cold.hpp: src/base/precompiled.hpp
$(OUT)/pch/tests.hpp: tests/support/precompiled.hpp src/base/precompiled.hpp
$(OUT)/pch/%.hpp: $(OUT)/flags
	@mkdir -p $(@D)
	@echo "  PCH  $@"
	@echo '#include "$(patsubst src/%,%,$(firstword $(filter %/precompiled.hpp,$^)))"' > $@
	@CCACHE_DISABLE=1 $(CXX) $(CXXFLAGS) $(CPPFLAGS) -I. $(PKG) -x c++-header -o $@.gch $@ || { rm -f $@; exit 1; }
	@cat $(filter-out FORCE,$^) | cksum > $@.gch.sum
PLAIN := $(call objects,src/device/host_update.cpp tests/support/session.cpp tests/main.cpp tests/mpi/main.cpp)
$(filter-out $(PLAIN),$(call objects,$(SRC) $(call find,tests,cpp))): private CPPFLAGS += -include $(PRECOMPILED) -Winvalid-pch
$(filter-out $(PLAIN),$(call objects,$(SRC))): $(OUT)/pch/src.hpp $(OUT)/pch/cold.hpp
$(filter-out $(PLAIN),$(call objects,$(call find,tests,cpp))): $(OUT)/pch/tests.hpp
export CCACHE_SLOPPINESS ?= pch_defines,time_macros
export CCACHE_PCH_EXTSUM ?= 1

$(OUT)/obj/%.cpp.o: %.cpp $(OUT)/flags
	@mkdir -p $(@D)
	@echo "  CXX  $<"
	@$(CXX) $(CXXFLAGS) $(CPPFLAGS) $(PKG) -c -o $@ $<
define compile_unit
@echo "  CXX  $(@:$(OUT)/units/%.o=%) ($$(wc -l < $<) files)"
@$(CXX) $(CXXFLAGS) -Wno-shadow -Wno-stringop-overread $(CPPFLAGS) $(PKG) -include $(PRECOMPILED) -Winvalid-pch -c -o $@ $<
endef
$(OUT)/units/src/%.o: $(OUT)/units/src/%.cpp $(OUT)/flags $(OUT)/pch/src.hpp $(OUT)/pch/cold.hpp
	$(compile_unit)
$(OUT)/units/tests/%.o: $(OUT)/units/tests/%.cpp $(OUT)/flags $(OUT)/pch/tests.hpp
	$(compile_unit)

# The CUDA library is a second file, which the executable opens at run time and which takes what it needs of src/base
# and src/device from the executable. It opens NCCL at run time itself, so only NCCL's header is needed here.
CUDA_SRC := $(filter-out $(if $(NCCL_FOUND),cuda/without_nccl.cpp,cuda/nccl.cpp),$(call find,cuda,cpp)) $(call find,cuda,cu)
GENCODE ?= -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=[sm_90,compute_90]
NVCCFLAGS ?= -std=c++20 --extended-lambda -O3 -lineinfo -Xcompiler=-fPIC,-Wall,-ffp-contract=off $(GENCODE)
CUDA_LINK := $(foreach home,$(CUDNN_HOME) $(CUDA_HOME),-L$(home)/lib64 -L$(home)/lib) \
  $(foreach home,$(CUDNN_HOME) $(if $(CUDA_FROM),$(CUDA_HOME)),-Wl,-rpath,$(home)/lib64 -Wl,-rpath,$(home)/lib)
$(CUDA_LIB): $(call objects,$(CUDA_SRC))
	@mkdir -p $(@D)
	@echo "  LINK $@"
	@$(CXX) -shared -o $@ $^ $(SANFLAGS) $(CUDA_LINK) -lcudnn -lcublas -lcudart_static -lrt -ldl -lpthread \
	  -Wl,--exclude-libs,ALL -Wl,-rpath,'$$ORIGIN'
$(OUT)/obj/cuda/%.cpp.o: CPPFLAGS += -I. $(CUDA_INCLUDE)
$(OUT)/obj/cuda/%.cu.o: cuda/%.cu $(OUT)/flags
	@mkdir -p $(@D)
	@echo "  NVCC $<"
	@$(CUDA_HOME)/bin/nvcc $(NVCCFLAGS) -Isrc -I. -MMD -MP -c -o $@ $<

# This ring needs no GPU: the CUDA library is linked with a stand-in for CUDA, cuDNN, cuBLAS and NCCL, in its own
# folder, because the program looks for the library beside the executable. libcuda.so.1 is opened, and never used.
STANDIN_SRC := $(filter-out %/nccl.cpp %/nvml.cpp,$(call find,tests/cuda_calls/standin,cpp))
$(OUT)/obj/tests/cuda_calls/%: CPPFLAGS += $(CUDA_INCLUDE)
$(CALLS)/libcuda.so.1:
	@mkdir -p $(@D)
	@$(CXX) -shared -o $@ -x c++ /dev/null
$(CALLS)/libechelon_cuda.so: $(call objects,$(CUDA_SRC) $(STANDIN_SRC)) | $(CALLS)/libcuda.so.1
	@echo "  LINK $@"
	@$(CXX) -shared -o $@ $^ $(SANFLAGS) -lfmt -ldl -Wl,-soname,$(@F) -Wl,-rpath,'$$ORIGIN'
$(CALLS)/libnccl.so.2: $(OUT)/obj/tests/cuda_calls/standin/nccl.cpp.o $(CALLS)/libechelon_cuda.so
	@echo "  LINK $@"
	@$(CXX) -shared -o $@ $^ $(SANFLAGS) -lfmt -Wl,-soname,$(@F) -Wl,-rpath,'$$ORIGIN'
$(CALLS)/libnvidia-ml.so.1: $(OUT)/obj/tests/cuda_calls/standin/nvml.cpp.o
	@mkdir -p $(@D)
	@$(CXX) -shared -o $@ $^ $(SANFLAGS)
$(CALLS)/echelon: $(ECHELON) $(CALLS)/libnccl.so.2 $(CALLS)/libnvidia-ml.so.1
	@ln -f $< $@
$(CALLS)/cuda_calls: $(LIB_OBJ) $(SUPPORT_OBJ) $(call objects,$(wildcard tests/cuda_calls/*.cpp) tests/main.cpp) | $(CALLS)/echelon
	@echo "  LINK $@"
	@$(CXX) -o $@ $^ $(LDFLAGS) $(LIBS) -Wl,-rpath,'$$ORIGIN'

# This ring compiles the kernels as plain C++ against headers of its own, with all that launches them but cuDNN's ops,
# and what they are compared with. It compiles no other file of src/, and needs neither nvcc nor CUDA's headers.
CPU := $(OUT)/obj/cuda_on_cpu
CPU_SRC := $(call find,cuda/kernels,cu) $(call find,cuda/ops,cpp) $(addprefix cuda/,card.cpp check.cpp context.cpp) $(call find,tests/cuda_on_cpu,cpp)
CPU_COMPARED := $(filter-out src/device/cuda_entry.cpp src/device/onednn/% src/device/paced/% src/comm/codec/%_bucket.cpp src/comm/codec/part_codecs.cpp,$(call find,src/base src/device src/comm/codec,cpp)) \
  $(addprefix src/verify/,device_cases.cpp device_contract.cpp device_contract_memory.cpp device_variants.cpp oracle.cpp random.cpp stored.cpp) \
  $(call find,src/verify/ops,cpp) src/h5/initialise.cpp src/h5/handle.cpp src/h5/numbers.cpp src/h5/lzf.cpp $(addprefix tests/support/,session.cpp codec_pair.cpp discrete_codec.cpp) tests/main.cpp
$(CPU)/tests/%: private CXXFLAGS += $(if $(SAN),,-O1)
$(CPU)/%.o: % $(OUT)/flags $(OUT)/pch/src.hpp $(OUT)/pch/tests.hpp
	@mkdir -p $(@D)
	@echo "  CXX  $< (on the CPU)"
	@$(CXX) $(filter-out -Wconversion -Wshadow,$(CXXFLAGS)) -Itests/cuda_on_cpu/include $(CPPFLAGS) -I. $(PKG) -include $(PRECOMPILED) -Winvalid-pch -x c++ -c -o $@ $<
$(OUT)/tests/cuda_on_cpu: $(CPU_SRC:%=$(CPU)/%.o) $(call compiled,$(CPU_COMPARED))
	@mkdir -p $(@D)
	@echo "  LINK $@"
	@$(CXX) -o $@ $^ $(LDFLAGS) $(LIBS)

# Analysis leaves a stamp per file and tool that found nothing. Checks: .clang-tidy, tests/lint/cppcheck.txt.
ANALYZE := $(OUT)/analyze
ANALYZERS = $(foreach tool,clang-tidy cppcheck,$(if $(shell command -v $(tool) 2>/dev/null),$(tool)))
analyzed: $(foreach tool,$(ANALYZERS),$(SRC:%=$(ANALYZE)/%.$(tool)))
ANALYZE_FLAGS = -std=c++20 -march=$(MARCH) -fopenmp -pthread -Isrc $(MPI_CFLAGS) $(PKG) -DECHELON_COMMIT='"analysis"'
# clang's analyser follows this program's own calls, not those inside the standard library: three times as fast.
TIDY_FLAGS = $(foreach own,c++-stdlib-inlining c++-template-inlining,-Xclang -analyzer-config -Xclang $(own)=false)
$(ANALYZE)/%.clang-tidy: % .clang-tidy tests/lint/clang.hpp
	@mkdir -p $(@D)
	@echo "  TIDY $<"
	@found=$$(clang-tidy --quiet $< -- $(ANALYZE_FLAGS) $(TIDY_FLAGS) -include tests/lint/clang.hpp 2>&1) || { printf '%s\n' "$$found"; exit 1; }
	@$(CXX) $(ANALYZE_FLAGS) -MM -MP -MT $@ -MF $@.d $<
	@touch $@
$(ANALYZE)/%.cppcheck: % tests/lint/cppcheck.txt
	@mkdir -p $(@D)
	@echo "  CPPCHECK $<"
	@cppcheck --quiet --std=c++20 --language=c++ -Isrc --enable=warning,performance,portability --inline-suppr \
	  --suppressions-list=tests/lint/cppcheck.txt --template=gcc --error-exitcode=1 $<
	@$(CXX) $(ANALYZE_FLAGS) -MM -MP -MT $@ -MF $@.d $<
	@touch $@

-include $(shell find $(OUT)/obj $(OUT)/units $(ANALYZE) -name '*.d' 2>/dev/null)
