// SPDX-License-Identifier: Apache-2.0
#include "h5/faulty_driver.hpp"

#include <atomic>
#include <cstring>
#include <memory>
#include <string>

#include "base/file_faults.hpp"
#include "h5/handle.hpp"

namespace echelon::h5 {
namespace {

struct FaultyFile {
  H5FD_t base = {};  // the library's struct must come first
  H5FD_t* inner = nullptr;
  std::string path;
};

H5FD_t* inner(const H5FD_t* file) { return reinterpret_cast<const FaultyFile*>(file)->inner; }

H5FD_t* open_file(const char* name, unsigned flags, hid_t, haddr_t most) {
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fapl_sec2(access.id());
  auto file = std::make_unique<FaultyFile>();
  file->inner = H5FDopen(name, flags, access.id(), most);
  file->path = name;
  return file->inner == nullptr ? nullptr : &file.release()->base;
}

herr_t close_file(H5FD_t* file) {
  const std::unique_ptr<FaultyFile> own(reinterpret_cast<FaultyFile*>(file));
  return H5FDclose(own->inner);
}

herr_t query(const H5FD_t* file, unsigned long* flags) {
  if (file != nullptr) return H5FDquery(inner(file), flags) < 0 ? -1 : 0;
  *flags = 0;
  return 0;
}

herr_t read_some(H5FD_t* file, H5FD_mem_t type, hid_t transfer, haddr_t at, std::size_t bytes, void* to) {
  const herr_t status = H5FDread(inner(file), type, transfer, at, bytes, to);
  FileFaults* const faults = file_faults.load(std::memory_order_acquire);
  if (status >= 0 && faults != nullptr && type == H5FD_MEM_DRAW)
    faults->have_read(reinterpret_cast<FaultyFile*>(file)->path, to, bytes);
  return status;
}

herr_t write_some_of(H5FD_t* file, H5FD_mem_t type, hid_t transfer, haddr_t at, std::size_t bytes, const void* from) {
  FileFaults* const faults = file_faults.load(std::memory_order_acquire);
  const int error = faults == nullptr ? 0 : faults->write_error(bytes);
  if (error == 0) return H5FDwrite(inner(file), type, transfer, at, bytes, from);
  H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_IO, H5E_WRITEERROR,
           "file write failed: error message = '%s'", std::strerror(error));
  return -1;
}

std::atomic<hid_t> fault_driver = -1;

hid_t register_driver() {
  static H5FD_class_t driver = {};
  driver.name = "echelon_faults";
  driver.maxaddr = HADDR_MAX / 2;
  driver.fc_degree = H5F_CLOSE_WEAK;
  driver.open = open_file;
  driver.close = close_file;
  driver.cmp = [](const H5FD_t* a, const H5FD_t* b) { return H5FDcmp(inner(a), inner(b)); };
  driver.query = query;
  driver.get_eoa = [](const H5FD_t* file, H5FD_mem_t type) { return H5FDget_eoa(inner(file), type); };
  driver.set_eoa = [](H5FD_t* file, H5FD_mem_t type, haddr_t at) { return H5FDset_eoa(inner(file), type, at); };
  driver.get_eof = [](const H5FD_t* file, H5FD_mem_t type) { return H5FDget_eof(inner(file), type); };
  driver.get_handle = [](H5FD_t* file, hid_t access, void** handle) {
    return H5FDget_vfd_handle(inner(file), access, handle);
  };
  driver.read = read_some;
  driver.write = write_some_of;
  driver.flush = [](H5FD_t* file, hid_t transfer, hbool_t closing) {
    return H5FDflush(inner(file), transfer, closing);
  };
  driver.truncate = [](H5FD_t* file, hid_t transfer, hbool_t closing) {
    return H5FDtruncate(inner(file), transfer, closing);
  };
  driver.lock = [](H5FD_t* file, hbool_t writes) { return H5FDlock(inner(file), writes); };
  driver.unlock = [](H5FD_t* file) { return H5FDunlock(inner(file)); };
  for (int type = 0; type < H5FD_MEM_NTYPES; ++type)
    driver.fl_map[type] = type == 0 ? H5FD_MEM_DEFAULT : H5FD_MEM_SUPER;
  driver.fl_map[H5FD_MEM_DRAW] = driver.fl_map[H5FD_MEM_GHEAP] = H5FD_MEM_DRAW;
  return H5FDregister(&driver);
}

}  // namespace

void use_file_faults(hid_t access) {
  if (file_faults.load(std::memory_order_acquire) == nullptr) return;
  static const hid_t driver = register_driver();
  fault_driver.store(driver, std::memory_order_release);
  H5Pset_driver(access, driver, nullptr);
}

bool is_faulty_driver(hid_t driver) { return driver >= 0 && driver == fault_driver.load(std::memory_order_acquire); }

}  // namespace echelon::h5
