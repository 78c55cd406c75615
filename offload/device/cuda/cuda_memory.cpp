#include "offload/device/cuda/cuda_memory.h"

#include <cuda.h>
#include <fmt/format.h>

#include <optional>

#include "offload/device/host/mapped_pages.h"
#include "src/base/bytes.h"
#include "src/base/error.h"

namespace ferry {
namespace {

/** The driver's virtual memory calls: addresses that outlive the memory behind them. */
struct VirtualMemory {
  decltype(&cuMemGetAllocationGranularity) granularity;
  decltype(&cuMemAddressReserve) reserve_addresses;
  decltype(&cuMemAddressFree) free_addresses;
  decltype(&cuMemCreate) create;
  decltype(&cuMemRelease) release;
  decltype(&cuMemMap) map;
  decltype(&cuMemUnmap) unmap;
  decltype(&cuMemSetAccess) set_access;
};

/** Null where the device has none, as some virtual GPUs. */
const VirtualMemory* virtual_memory() {
  static const std::optional<VirtualMemory> found = []() -> std::optional<VirtualMemory> {
    VirtualMemory v{};
    decltype(&cuDeviceGetAttribute) attribute = nullptr;
    int device = 0, is_supported = 0;
    if (cudaGetDevice(&device) != cudaSuccess || !find_entry("cuDeviceGetAttribute", attribute) ||
        attribute(&is_supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device) !=
            CUDA_SUCCESS ||
        !is_supported)
      return std::nullopt;
    const bool all = find_entry("cuMemGetAllocationGranularity", v.granularity) &&
                     find_entry("cuMemAddressReserve", v.reserve_addresses) &&
                     find_entry("cuMemAddressFree", v.free_addresses) &&
                     find_entry("cuMemCreate", v.create) && find_entry("cuMemRelease", v.release) &&
                     find_entry("cuMemMap", v.map) && find_entry("cuMemUnmap", v.unmap) &&
                     find_entry("cuMemSetAccess", v.set_access);
    return all ? std::optional(v) : std::nullopt;
  }();
  return found ? &*found : nullptr;
}

[[noreturn]] void refuse_gpu(int64_t n_bytes) {
  cudaGetLastError();
  size_t free = 0, total = 0;
  cudaMemGetInfo(&free, &total);
  throw Error(Fault::does_not_fit, "device.reserve",
              fmt::format("{} of GPU memory asked for, {} of {} are free", format_bytes(n_bytes),
                          format_bytes(static_cast<int64_t>(free)),
                          format_bytes(static_cast<int64_t>(total))),
              "lower gpu_memory, or close what else uses the card");
}

/** The streams of a device do not wait for the default stream, which fills. */
void fill_with_zeros(void* p, int64_t n_bytes) {
  FERRY_CUDA(cudaMemset(p, 0, static_cast<size_t>(n_bytes)));
  FERRY_CUDA(cudaStreamSynchronize(nullptr));
}

class GpuReservation final : public Reservation {
 public:
  explicit GpuReservation(int64_t n_bytes) : n_bytes_(n_bytes) {
    if (n_bytes == 0) return;
    void* p = nullptr;
    if (cudaMalloc(&p, static_cast<size_t>(n_bytes)) != cudaSuccess) refuse_gpu(n_bytes);
    data_.reset(static_cast<std::byte*>(p));
    fill_with_zeros(p, n_bytes);
  }
  std::byte* data() override { return data_.get(); }
  int64_t n_bytes() const override { return n_bytes_; }
  bool release() override { return false; }
  void acquire() override {}

 private:
  GpuArray<std::byte> data_;
  int64_t n_bytes_;
};

/** Memory that a paused run gives back while everything keeps its addresses. */
class VirtualGpuReservation final : public Reservation {
 public:
  VirtualGpuReservation(int64_t n_bytes, const VirtualMemory& calls)
      : calls_(calls), n_bytes_(n_bytes) {
    location_.type = CU_MEM_LOCATION_TYPE_DEVICE;
    FERRY_CUDA(cudaGetDevice(&location_.id));
    const CUmemAllocationProp properties = allocation();
    size_t granularity = 0;
    check(calls_.granularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
          "cuMemGetAllocationGranularity");
    mapped_bytes_ = static_cast<size_t>(round_up(n_bytes, static_cast<int64_t>(granularity)));
    check(calls_.reserve_addresses(&address_, mapped_bytes_, 0, 0, 0), "cuMemAddressReserve");
    try {
      acquire();
    } catch (...) {
      calls_.free_addresses(address_, mapped_bytes_);
      throw;
    }
    fill_with_zeros(data(), n_bytes);
  }
  ~VirtualGpuReservation() override {
    release();
    calls_.free_addresses(address_, mapped_bytes_);
  }
  VirtualGpuReservation(const VirtualGpuReservation&) = delete;
  VirtualGpuReservation& operator=(const VirtualGpuReservation&) = delete;

  std::byte* data() override { return reinterpret_cast<std::byte*>(address_); }
  int64_t n_bytes() const override { return n_bytes_; }
  bool release() override {
    if (!is_mapped_) return true;
    const OnDevice on_device(location_.id);
    cudaDeviceSynchronize();
    calls_.unmap(address_, mapped_bytes_);
    calls_.release(memory_);
    is_mapped_ = false;
    return true;
  }
  void acquire() override {
    const CUmemAllocationProp properties = allocation();
    const CUresult created = calls_.create(&memory_, mapped_bytes_, &properties, 0);
    if (created == CUDA_ERROR_OUT_OF_MEMORY) refuse_gpu(n_bytes_);
    check(created, "cuMemCreate");
    const CUmemAccessDesc access = {.location = location_,
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUresult status = calls_.map(address_, mapped_bytes_, 0, memory_, 0);
    if (status == CUDA_SUCCESS) {
      status = calls_.set_access(address_, mapped_bytes_, &access, 1);
      if (status != CUDA_SUCCESS) calls_.unmap(address_, mapped_bytes_);
    }
    if (status != CUDA_SUCCESS) calls_.release(memory_);
    check(status, "cuMemMap");
    is_mapped_ = true;
  }

 private:
  CUmemAllocationProp allocation() const {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = location_;
    return properties;
  }
  static void check(CUresult status, const char* call) {
    if (status != CUDA_SUCCESS)
      throw Error(Fault::machine, "cuda",
                  fmt::format("{}: error {}", call, static_cast<int>(status)),
                  "update the NVIDIA driver");
  }

  const VirtualMemory& calls_;
  int64_t n_bytes_;
  size_t mapped_bytes_ = 0;
  CUmemLocation location_{};
  CUdeviceptr address_ = 0;
  CUmemGenericAllocationHandle memory_ = 0;
  bool is_mapped_ = false;
};

class CudaPinning final : public PinningSystem {
 public:
  bool pin(std::byte* at, int64_t n_bytes) override {
    if (cudaHostRegister(at, static_cast<size_t>(n_bytes), cudaHostRegisterPortable) == cudaSuccess)
      return true;
    cudaGetLastError();  // or the next call that asks for errors would find it
    return false;
  }
  void unpin(std::byte* at, int64_t) override {
    if (cudaHostUnregister(at) != cudaSuccess) cudaGetLastError();
  }
};

/** Pages of the system, of which the driver pins a part: a caching host allocator would round sizes
 * up. */
class HostReservation final : public Reservation {
 public:
  HostReservation(int64_t n_bytes,
                  const FirstTouch& touch,
                  const ByteRange& copied,
                  std::shared_ptr<Pinning> pinning)
      : pinning_(std::move(pinning)),
        pages_(round_up(n_bytes, 2 * kMiB),
               "host memory",
               "lower host_memory or the model's size; see `ferry plan`") {
    if (n_bytes == 0) return;
    // Page faults cost more than pinning, and the driver takes them one by one.
    if (touch)
      touch(pages_.data());
    else
      touch_first(pages_.data(), n_bytes);
    pinning_->add(pages_.data(), copied);
  }
  ~HostReservation() override {
    if (pages_.data()) pinning_->remove(pages_.data());
  }
  HostReservation(const HostReservation&) = delete;
  HostReservation& operator=(const HostReservation&) = delete;
  std::byte* data() override { return pages_.data(); }
  int64_t n_bytes() const override { return pages_.n_bytes(); }
  bool release() override { return false; }  // a run keeps its host memory
  void acquire() override {}

 private:
  std::shared_ptr<Pinning> pinning_;
  MappedPages pages_;
};

}  // namespace

void check_cuda(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  throw Error(Fault::machine, "cuda", fmt::format("{}: {}", call, cudaGetErrorString(status)),
              "see `ferry doctor`");
}

bool has_context(int index) {
  using GetState = int (*)(int device, unsigned* flags, int* is_active);
  static const GetState get_state = [] {
    GetState its = nullptr;
    return find_entry("cuDevicePrimaryCtxGetState", its) ? its : nullptr;
  }();
  unsigned flags = 0;
  int is_active = 0;
  return !get_state || (get_state(index, &flags, &is_active) == 0 && is_active != 0);
}

std::unique_ptr<Reservation> reserve_gpu(int64_t n_bytes) {
  if (const VirtualMemory* calls = virtual_memory(); calls && n_bytes > 0)
    return std::make_unique<VirtualGpuReservation>(n_bytes, *calls);
  return std::make_unique<GpuReservation>(n_bytes);
}

std::shared_ptr<Pinning> make_cuda_pinning(int64_t pinned_bytes_max) {
  return std::make_shared<Pinning>(std::make_unique<CudaPinning>(), pinned_bytes_max,
                                   kPinnedPage_bytes);
}

std::unique_ptr<Reservation> reserve_host(int64_t n_bytes,
                                          const FirstTouch& touch,
                                          const ByteRange& copied,
                                          std::shared_ptr<Pinning> pinning) {
  return std::make_unique<HostReservation>(n_bytes, touch, copied, std::move(pinning));
}

}  // namespace ferry
