#pragma once
// A device whose n-th submitted work throws, before or after what it would have done: a fault of
// any queue's worker, at any action, on any device.

#include <memory>
#include <stdexcept>

#include "tests/offload/device/wrapped_device.h"

namespace ferry::test {

struct PlantedFault {
  int n = -1;             ///< of the works submitted; -1: none
  bool is_after = false;  ///< its effect is there, or under way on a GPU
};

class FailingDevice final : public WrappedDevice {
 public:
  FailingDevice(std::unique_ptr<Device> device, PlantedFault fault)
      : WrappedDevice(std::move(device)), fault_(fault) {}
  int n_submitted() const { return n_submitted_; }

  void submit(QueueId queue, std::function<void()> work) override {
    if (n_submitted_++ != fault_.n) return WrappedDevice::submit(queue, std::move(work));
    WrappedDevice::submit(queue, [work = std::move(work), is_after = fault_.is_after] {
      if (is_after) work();
      throw std::runtime_error("planted");
    });
  }

 private:
  PlantedFault fault_;
  int n_submitted_ = 0;
};

}  // namespace ferry::test
